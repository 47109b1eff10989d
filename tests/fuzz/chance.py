"""Odd values, by chance: from one seed the same ones each time.

``tests/server/test_fuzz.py`` has the same ideas as hypothesis' strategies, which shrink what they find; these
are a hundred times as fast, for runs of minutes.
"""

from __future__ import annotations

import copy
import json
import random
from typing import Any, TypeVar

from tests.server.test_fuzz import ODD, places

T = TypeVar("T")
WORDS = [
    *(
        "a",
        "b",
        "kube-system",
        "metadata.name",
        "metadata.namespace",
        "status.phase",
        "spec.nodeName",
        "name",
    ),
    *("in", "notin", "exists", "true", "false", "All", "Exact", "NotOlderThan", "Strict", "0", "1", "-1"),
    *("x-kubernetes-preserve-unknown-fields", "application/json", "Table", "meta.k8s.io", "v1", "v1beta1"),
    *(
        "..",
        ".",
        "/",
        "//",
        "%00",
        "%ff",
        "%2f",
        "%",
        "é",
        "😀",
        "\0",
        "\n",
        "\\",
        '"',
        "'",
        "$",
        "{",
    ),
    *(
        "}",
        "[",
        "]",
        "(",
        ")",
        "=",
        "==",
        "!=",
        "!",
        ",",
        ";",
        ":",
        "*",
        "**",
        "<",
        ">",
        "~0",
        "~1",
        "-",
        "&",
    ),
    *("2030-01-01T00:00:00Z", "1Gi", "100m", "1e400", "NaN", "9" * 400, "x" * 300, "18446744073709551616"),
]


class Chance(random.Random):
    """A source of odd things."""

    def one(self, *of: T) -> T:
        return self.choice(of)

    def often(self, share: float) -> bool:
        return self.random() < share

    def text(self, most: int = 6) -> str:
        return self.one("", " ", ",").join(self.choice(WORDS) for _ in range(self.randrange(most + 1)))

    def value(self, depth: int = 0) -> Any:
        """JSON of any shape."""
        match self.randrange(8 if depth < 4 else 5):
            case 0 | 1 | 2:
                return copy.deepcopy(self.choice(ODD))
            case 3 | 4:
                return self.text(3)
            case 5:
                return [self.value(depth + 1) for _ in range(self.randrange(4))]
            case _:
                return {self.text(1): self.value(depth + 1) for _ in range(self.randrange(4))}

    def bent(self, value: Any) -> Any:
        """The same with something else in a few places."""
        made = copy.deepcopy(value)
        for _ in range(self.one(1, 1, 1, 2, 3)):
            found = places(made)
            if not found:
                break
            holder, key = self.choice(found)
            match self.randrange(10):
                case 0:
                    del holder[key]
                case 1 if isinstance(holder, list):
                    holder += [copy.deepcopy(holder[key])] * self.one(1, 2, 300)
                case 2 if isinstance(holder, dict):
                    holder[self.text(1)] = copy.deepcopy(holder[key])
                case 3:  # what stands elsewhere in it
                    other, where = self.choice(found)
                    holder[key] = copy.deepcopy(other.get(where) if isinstance(other, dict) else None)
                case 4 | 5 | 6:  # of the same type, mostly: it gets further
                    holder[key] = self._like(holder[key])
                case _:
                    holder[key] = self.value(2)
        return made

    def _like(self, value: Any) -> Any:
        match value:
            case bool():
                return not value
            case int():
                return value + self.one(1, -1, 10, 2**31, 2**40, -(2**31), -value)
            case str():
                return self.one(self.text(2), value + self.choice(WORDS), value[:-1], value.upper(), "")
            case list():
                return value[:: self.one(-1, 2)]
        return self.value(2)

    def torn(self, data: bytes, most: int = 5) -> bytes:
        """Bytes, cut or changed in a few places."""
        made = bytearray(data)
        for _ in range(self.randint(1, most)):
            at = self.randrange(len(made) + 1)
            match self.randrange(7):
                case 0:
                    del made[at:]
                case 1:
                    made[at : at + 1] = self.randbytes(self.randrange(4))
                case 2:
                    made[at:at] = made[at : at + self.randint(1, 40)] * self.one(1, 2, 50)
                case 3:
                    del made[at : at + self.randint(1, 40)]
                case 4:
                    made[at:at] = self.choice(WORDS).encode("utf-8", "surrogatepass")
                case 5 if made:
                    made[at % len(made)] ^= 1 << self.randrange(8)
                case _:
                    made[at:at] = self.one(
                        b"\0", b"\r\n", b"\n", b" ", b"\xff", b"{", b"[", b'"', b"-", b"&a *a", b"\\ud83d"
                    )
        return bytes(made)

    def json(self, value: Any) -> bytes:
        data = json.dumps(value, ensure_ascii=self.often(0.5)).encode("utf-8", "surrogatepass")
        return self.torn(data) if self.often(0.2) else data
