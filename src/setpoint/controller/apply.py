"""Decides whether applying an intent would change anything, and says which fields.

Server-side apply makes the fields of an intent ours and gives up what we applied before and no longer
want.  It changes nothing exactly if

1. every field of the intent has that value already,
2. our entry in managedFields holds every field of the intent, and
3. it holds no other.

The kind's schema is not known here.  It need not be: our entry tells which lists are told apart by keys
(``k:``), which are sets (``v:``), and what is owned as one piece (``{}``).  Where that leaves a doubt, and
where the server writes a value in another way than we do (a quantity, a default inside an atomic field), the
answer is "it would change".  ``changes`` thus errs only towards sending.

What the server made of an intent is remembered by ``Settled``, so that such a doubt costs one request and
not one at every look: the same intent on the object that came of it changes nothing.

No request here: ``context.py`` reads, asks, and sends.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

from setpoint.api.model import encode, to_wire
from setpoint.api.names import GroupVersionKind, Key, Resource
from setpoint.api.patches import same
from setpoint.api.wire import Snapshot, told_apart

Path: TypeAlias = tuple[str, ...]
"""A field as managedFields spells it: ``("f:spec", "f:containers", 'k:{"name":"web"}', "f:image")``."""

Place: TypeAlias = tuple[GroupVersionKind, Key]

# They say which object is meant; apply claims none of them.
_NAMES = frozenset({"name", "namespace"})
_ABSENT: Any = object()


def intent_of(obj: object, resource: Resource) -> dict[str, Any]:
    """What an apply of this object says, on the wire: without the status, where that is a part of its own."""
    intent: dict[str, Any] = to_wire(obj)
    if "status" in resource.subresources:
        intent.pop("status", None)
    return intent


def move_string_data(secret: Any) -> None:
    """Write a Secret as the server keeps it, typed or plain: what ``stringData`` says goes into ``data``."""
    if isinstance(secret, dict):
        texts = secret.pop("stringData", None) or {}
        said = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        if said:
            secret["data"] = {**(secret.get("data") or {}), **said}
    elif secret.string_data is not None:
        said = {name: text.encode() for name, text in secret.string_data.items()}
        secret.data, secret.string_data = {**(secret.data or {}), **said}, None


def changes(intent: Mapping[str, Any], live: Mapping[str, Any], manager: str) -> list[Path]:
    """The fields that an apply of ``intent`` by ``manager`` would set, take or give up; none: no change.

    Both are in wire form; ``live`` has its managedFields.  ``()`` stands for all fields: nothing was applied
    by this manager, or in another version of the kind.
    """
    ours = _entry(live, manager, intent.get("apiVersion"))
    if ours is None:
        return [()]
    comparison = _Comparison(_entries(live))
    comparison.compare(_claimed(intent), ours, live)
    return comparison.found


def say(path: Path) -> str:
    """A field for people: ``spec.containers[name=web].image``."""
    said = ""
    for step in path:
        sort, content = step[:2], step[2:]
        if sort == "f:" and content.isidentifier():
            said += f".{content}"
        elif sort == "k:":
            said += "[" + ",".join(f"{name}={value}" for name, value in json.loads(content).items()) + "]"
        else:
            said += f"[{content}]"
    return said.removeprefix(".") or "the whole object"


def managers_of(live: Mapping[str, Any], path: Path, *, besides: str) -> list[str]:
    """Who else set this field; where nobody has it by now, who wrote last."""
    entries = [entry for entry in _entries(live) if entry.get("manager") != besides]
    holders = [entry for entry in entries if path and _holds(entry.get("fieldsV1") or {}, path)]
    if not holders:
        holders = sorted(entries, key=lambda entry: entry.get("time") or "")[-1:]
    return sorted({entry.get("manager") or "unknown" for entry in holders})


# What came of it.


@dataclass(frozen=True, slots=True)
class _Sent:
    intent: bytes
    content: bytes  # of the object, without its status and its managers
    managers: bytes
    version: str  # the object's then
    until: float


class Settled:
    """What the server made of the intents sent last.

    Only a saving: whoever forgets it sends once more.  Every entry ends after ``seconds``, for what the
    server makes of an intent may change without the object (a webhook, a default).
    """

    def __init__(self, *, limit: int = 20_000, seconds: float = 600.0) -> None:
        self._limit = limit
        self._seconds = seconds
        self._sent: dict[Place, _Sent] = {}

    def __repr__(self) -> str:
        return f"<Settled {len(self._sent)} intents>"

    def __len__(self) -> int:
        return len(self._sent)

    def remember(self, place: Place, intent: Mapping[str, Any], answer: Snapshot, *, now: float) -> None:
        """The server was sent this intent, and answered with this object."""
        content, managers = _gist(answer.data)
        self._sent.pop(place, None)  # the newest is last
        self._sent[place] = _Sent(
            digest(intent), content, managers, answer.metadata.resource_version, now + self._seconds
        )
        if len(self._sent) > self._limit:
            del self._sent[next(iter(self._sent))]

    def is_still(self, place: Place, intent: Mapping[str, Any], version: str, *, now: float) -> bool:
        """Whether nobody has written the object since this intent was, so that it need not be read."""
        sent = self._sent.get(place)
        return (
            sent is not None
            and now < sent.until
            and sent.version == version != ""
            and sent.intent == digest(intent)
        )

    def is_result(self, place: Place, intent: Mapping[str, Any], live: Snapshot, *, now: float) -> bool:
        """Whether this object is what came of this intent, but for its status."""
        sent = self._sent.get(place)
        if sent is None or now >= sent.until or sent.intent != digest(intent):
            return False
        content, managers = _gist(live.data)
        return sent.content == content and managers in (sent.managers, b"")  # a cache may strip them


def _gist(data: bytes) -> tuple[bytes, bytes]:
    content, managers = told_apart(data)
    return _digest(content), _digest(managers) if managers else b""


def version_of(obj: Mapping[str, Any]) -> str:
    """The resourceVersion of an object in wire form."""
    return (obj.get("metadata") or {}).get("resourceVersion") or ""


def digest(value: object) -> bytes:
    """Sixteen bytes that tell a value apart from others."""
    return _digest(encode(value))


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


# Our entry.


def _entries(live: Mapping[str, Any]) -> list[dict[str, Any]]:
    return (live.get("metadata") or {}).get("managedFields") or []


def _entry(live: Mapping[str, Any], manager: str, api_version: object) -> dict[str, Any] | None:
    """The fields that our applies have set."""
    for entry in _entries(live):
        if (
            (entry.get("manager"), entry.get("operation")) == (manager, "Apply")
            and not entry.get("subresource")
            and entry.get("apiVersion") == api_version
            and entry.get("fieldsType", "FieldsV1") == "FieldsV1"
        ):
            return entry.get("fieldsV1") or {}
    return None


def _claimed(intent: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that an intent claims."""
    claimed = {
        name: value for name, value in intent.items() if name not in ("apiVersion", "kind", "metadata")
    }
    metadata = {name: value for name, value in (intent.get("metadata") or {}).items() if name not in _NAMES}
    return {"metadata": metadata, **claimed} if metadata else claimed


def _holds(fields: dict[str, Any], path: Path) -> bool:
    """Whether a manager has a field, alone or with all that is around it."""
    for step in path:
        if step not in fields:
            return False
        fields = fields[step]
        if not fields:
            return True
    return True


def _node(fields: dict[str, Any], path: Path) -> dict[str, Any] | None:
    """What an entry says below a field; None if it does not have it."""
    for step in path:
        if step not in fields:
            return None
        fields = fields[step]
    return fields


# Intent, ours and live, field by field.


class _Comparison:
    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.found: list[Path] = []
        self._entries = entries

    def compare(self, want: Any, ours: dict[str, Any], live: Any, path: Path = ()) -> None:
        steps = [step for step in ours if step != "."]
        sorts = {step[:2] for step in steps}
        if want is None:  # in an intent null may mean "no value" or "nothing said": the server knows
            self.found.append(path)
        elif not steps:
            self._compare_whole(want, live, path)
        elif isinstance(want, dict) and sorts == {"f:"}:
            self._compare_fields(want, ours, live if isinstance(live, dict) else {}, path)
        elif isinstance(want, list) and sorts == {"k:"}:
            self._compare_items(want, ours, live if isinstance(live, list) else [], path)
        elif isinstance(want, list) and sorts == {"v:"}:
            self._compare_values(want, steps, live if isinstance(live, list) else [], path)
        else:
            self.found.append(path)

    def _compare_whole(self, want: Any, live: Any, path: Path) -> None:
        """What is ours as one piece; or was empty when it became ours, and is not one piece to others."""
        is_same = same(want, live) or (_is_empty(want) and (live is _ABSENT or _is_empty(live)))
        if isinstance(want, dict) and want and self._is_split(path):
            self.found.extend(_fields(want, path))
        elif not is_same:
            self.found.append(path)

    def _is_split(self, path: Path) -> bool:
        nodes = (_node(entry.get("fieldsV1") or {}, path) for entry in self._entries)
        return any(step != "." for node in nodes for step in node or ())

    def _compare_fields(
        self, want: dict[str, Any], ours: dict[str, Any], live: dict[str, Any], path: Path
    ) -> None:
        for name, value in want.items():
            step = f"f:{name}"
            if step in ours:
                self.compare(value, ours[step], live.get(name, _ABSENT), (*path, step))
            else:
                self.found.extend(_fields(value, (*path, step)))
        self.found.extend((*path, step) for step in ours if step != "." and step[2:] not in want)

    def _compare_items(self, want: list[Any], ours: dict[str, Any], live: list[Any], path: Path) -> None:
        """A list whose items have keys; of one that an item leaves out, ours and live say the default."""
        places: dict[int, int] = {}  # in the intent → in the live object
        for step, node in ours.items():
            if step == ".":
                continue
            key = json.loads(step[2:])
            mine = [i for i, item in enumerate(want) if _has_key(item, key)] or [
                i for i, item in enumerate(want) if _has_key(item, key, defaults=True)
            ]
            there = [i for i, item in enumerate(live) if _has_key(item, key)]
            if len(mine) != 1 or len(there) != 1 or mine[0] in places or (node and "." not in node):
                self.found.append((*path, step))
                continue
            places[mine[0]] = there[0]
            self.compare(want[mine[0]], node, live[there[0]], (*path, step))
        if len(places) < len(want) or not _rises(places[i] for i in sorted(places)):
            self.found.append(path)  # new items, or another order

    def _compare_values(self, want: list[Any], steps: list[str], live: list[Any], path: Path) -> None:
        """A list that is a set."""
        wanted = [encode(value) for value in want]
        there = {encode(value): i for i, value in enumerate(live)}
        ours = {encode(json.loads(step[2:])) for step in steps}
        is_same = len(wanted) == len(ours) and ours == set(wanted) and ours <= there.keys()
        if not is_same or not _rises(there[value] for value in wanted):
            self.found.append(path)


def _is_empty(value: Any) -> bool:
    return isinstance(value, dict | list) and not value


def _fields(value: Any, path: Path) -> Iterator[Path]:
    """The fields in a value that is new to us."""
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from _fields(below, (*path, f"f:{name}"))
    else:
        yield path


def _has_key(item: Any, key: dict[str, Any], *, defaults: bool = False) -> bool:
    return isinstance(item, dict) and all(
        same(item[name], value) if name in item else defaults for name, value in key.items()
    )


def _rises(numbers: Iterator[int]) -> bool:
    last = -1
    for number in numbers:
        if number <= last:
            return False
        last = number
    return True
