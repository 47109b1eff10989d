"""The conformance files of CEL's specification, run through our evaluator.

    python -m tests.conformance.cel_spec        a table of how many pass, for each file

The files come with the Go module ``cel.dev/expr``, which kube-apiserver needs: ``make kube`` has fetched
it.  What is evaluated is what Kubernetes has of CEL: a test that needs protobuf's messages, enums or another
container is left out.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from setpoint.server.registry.crd.checking import DYN, Checker, Objects
from setpoint.server.registry.crd.evaluating import PlanError, planned
from setpoint.server.registry.crd.programs import CompileError, parse
from setpoint.server.registry.crd.spending import Meter, OverLimit
from setpoint.server.registry.crd.values import (
    EvaluationError,
    Made,
    MadeMap,
    TypeValue,
    UInt,
    equal,
    key_of,
)

Message = dict[str, list[Any]]
_KUBE: Final = Path(__file__).parent.parent / "kube"
_TOKEN: Final = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>[-\w.+/\[\]]+)|(?P<sign>[{}<>:;,])"""
)
_MESSAGES: Final = re.compile(
    r"TestAllTypes|google\.protobuf|proto\.|cel\.expr|GlobalEnum|\.[A-Z]\w+\{|NestedEnum|cel\.block|cel\.bind|base64|math\.|cel\.@|NestedTestAllTypes"
)


def folder() -> Path | None:
    """Where the files are; None where Go has not fetched them."""
    try:
        told = subprocess.run(
            ["go", "list", "-m", "-f", "{{.Dir}}", "cel.dev/expr"],
            cwd=_KUBE,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    found = Path(told) / "tests" / "simple" / "testdata"
    return found if told and found.is_dir() else None


# ── Text of protobuf ────────────────────────────────────────────────────────────────────────────────


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"cannot read {text[place : place + 40]!r}")
        place = found.end()
        if found.lastgroup:
            yield found.lastgroup, found[0]


def read(text: str) -> Message:
    """Every field is a list: of texts, words and messages."""
    tokens = list(_tokens(text))
    place = 0

    def message() -> Message:
        nonlocal place
        found: Message = {}
        while place < len(tokens) and tokens[place][1] not in ("}", ">"):
            name = tokens[place][1]
            place += 1
            if tokens[place][1] == ":":
                place += 1
            found.setdefault(name, []).append(value())
            if place < len(tokens) and tokens[place][1] in (",", ";"):
                place += 1
        place += 1
        return found

    def value() -> Any:
        nonlocal place
        kind, said = tokens[place]
        place += 1
        if said in ("{", "<"):
            return message()
        if kind != "text":
            return said
        parts = [_unescaped(said)]
        while place < len(tokens) and tokens[place][0] == "text":
            parts.append(_unescaped(tokens[place][1]))
            place += 1
        return b"".join(parts)

    return message()


def _unescaped(said: str) -> bytes:
    plain = {"n": b"\n", "t": b"\t", "r": b"\r", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v"}
    out = b""
    for one in re.finditer(
        r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|([^\\]+)", said[1:-1], re.DOTALL
    ):
        if one[2] is not None:
            out += one[2].encode()
        elif one[1][0] == "x":
            out += bytes([int(one[1][1:], 16)])
        elif one[1][0] in "uU":
            out += chr(int(one[1][1:], 16)).encode()
        elif one[1].isdigit():
            out += bytes([int(one[1], 8)])
        else:
            out += plain.get(one[1], one[1].encode())
    return out


class LeftOut(Exception):
    """Not of what Kubernetes has of CEL."""


def value_of(said: Message) -> Any:
    ((kind, (one, *_)),) = said.items()
    match kind:
        case "int64_value":
            return int(one)
        case "uint64_value":
            return UInt(one)
        case "double_value":
            return float(one)
        case "string_value":
            return one.decode()
        case "bytes_value":
            return one
        case "bool_value":
            return one == "true"
        case "null_value":
            return None
        case "type_value":
            return TypeValue(one.decode())
        case "list_value":
            return Made(value_of(each) for each in one.get("values", ()))
        case "map_value":
            return MadeMap(
                {
                    key_of(value_of(each["key"][0])): value_of(each["value"][0])
                    for each in one.get("entries", ())
                }
            )
    raise LeftOut


# ── Running ─────────────────────────────────────────────────────────────────────────────────────────


class Count(NamedTuple):
    passed: int
    failed: tuple[str, ...]
    left_out: int


def run_file(path: Path) -> Count:
    passed, left_out = 0, 0
    failed = []
    for section in read(path.read_text()).get("section", ()):
        for test in section.get("test", ()):
            try:
                if _holds(test):
                    passed += 1
                else:
                    failed.append(f"{section['name'][0].decode()}/{test['name'][0].decode()}")
            except LeftOut:
                left_out += 1
    return Count(passed, tuple(failed), left_out)


def _holds(test: Message) -> bool:
    text: str = test["expr"][0].decode()
    if (
        _MESSAGES.search(text)
        or "container" in test
        or {"unknown", "any_unknowns", "typed_result"} & set(test)
    ):
        raise LeftOut
    names = {}
    for one in test.get("bindings", ()):
        bound = one["value"][0].get("value")
        if bound is None:
            raise LeftOut
        names[one["key"][0].decode()] = value_of(bound[0])
    if any("." in name for name in names):
        raise LeftOut
    wants_error = "eval_error" in test or "any_eval_errors" in test
    wanted = True if "value" not in test else value_of(test["value"][0])
    try:
        checker = Checker(parse(text), Objects(), dict.fromkeys(names, (DYN, None)))
        checked = checker.check()
        if wants_error and checker.issues:
            return True  # it is found out earlier
        # Kubernetes' checker refuses some of what CEL allows; then it is evaluated all the same.
        found = planned(checked.root, checked.facts, {})(Meter(dict(names)))
    except (EvaluationError, CompileError, PlanError, OverLimit):
        return wants_error
    return not wants_error and _same(found, wanted)


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, float) and math.isnan(wanted):
        return math.isnan(found)
    return (
        type(found) is type(wanted) and equal(found, wanted)
        if not isinstance(wanted, Made | MadeMap)
        else equal(found, wanted)
    )


def table(where: Path) -> dict[str, Count]:
    return {one.stem: run_file(one) for one in sorted(where.glob("*.textproto"))}


if __name__ == "__main__":
    found_at = folder()
    if found_at is None:
        raise SystemExit("the files are not there: run `make kube`, which needs Go")
    for name, count in table(found_at).items():
        sys.stdout.write(
            f"{name:16} {count.passed:4} passed {len(count.failed):4} failed {count.left_out:4} left out\n"
        )
        for each in count.failed:
            sys.stdout.write(f"{'':16} {each}\n")
