"""Makes two runs comparable: every object, with what is bound to differ said in words that do not.

Canonical, not masked.  A uid becomes whose uid it is; a name that the server chose becomes its beginning and
a number; a moment becomes ``<time>``, so that it must be there but may be any; a generation that was observed
becomes how far behind it is.  Versions, the records of field managers and a Deployment's count of its
revisions are left out.  Conditions are in the order of their types, which alone tell them apart; they,
annotations and all else are compared as they are.

A status is compared by what it means: a field that is not stored has the default that its schema gives it
(``status_defaults``).  Whether a default is stored depends on what was written before, and readers of the
kind cannot tell the difference.

``varying`` finds what differs between runs without faults: chance of the operator's own (a password), which
alone is masked.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from setpoint.server.registry.crd.fill import Fill, filler
from setpoint.server.storage.protocol import Record
from setpoint.testing.proof.plans import REDACTED, SECRET_FIELDS
from setpoint.testing.proof.trace import State

Path: TypeAlias = tuple[str, ...]
Masked: TypeAlias = frozenset[tuple[str, Path]]  # the fields of objects that are not compared

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_LEFT_OUT = {"resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "selfLink"}
_REVISION = "deployment.kubernetes.io/revision"  # how often it has changed, and not how it is
_ALLOCATED = {"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"}
_IGNORED = {
    "apiservices.apiregistration.k8s.io",  # made by the server, of what is defined
    "customresourcedefinitions.apiextensions.k8s.io",
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
}
_SECRET = {(field,) for field in SECRET_FIELDS}
VARIES = "<varies>"


def canonical(
    records: Iterable[Record],
    clouds: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
    *,
    beginning: Mapping[Any, int] | None = None,
    masked: Masked = frozenset(),
    defaults: Mapping[str, Fill] | None = None,
) -> State:
    """The state of a cluster, and of what is outside of it; without what was there at the beginning.

    ``defaults`` fill in the status of objects, by resource, where it is to be compared by its meaning.
    """
    before = beginning or {}
    objects: list[tuple[Record, dict[str, Any]]] = [
        (record, msgspec.json.decode(record.data))
        for record in records
        if record.place.resource not in _IGNORED and before.get(record.place) != record.revision
    ]
    for record, obj in objects:
        if fill := (defaults or {}).get(record.place.resource):
            _fill_status(obj, fill)
    names = _names(objects)
    uids = {obj["metadata"].get("uid", ""): names[record.place] for record, obj in objects}
    state: State = {names[record.place]: _object(obj, uids) for record, obj in objects}
    for cloud, things in (clouds or {}).items():
        for thing, data in things.items():
            called = f"{cloud} {in_words(thing, uids)}"
            state[called] = _value(dict(data), uids, 0)
    mask(state, masked)
    return dict(sorted(state.items()))


def status_defaults(crds: Iterable[Mapping[str, Any]]) -> dict[str, Fill]:
    """What fills in the defaults of a status, by resource, for the kinds of these definitions."""
    found: dict[str, Fill] = {}
    for crd in crds:
        spec = crd["spec"]
        stored = next((each for each in spec["versions"] if each.get("storage")), spec["versions"][-1])
        schema = (stored.get("schema") or {}).get("openAPIV3Schema") or {}
        if fill := filler((schema.get("properties") or {}).get("status") or {}):
            found[f"{spec['names']['plural']}.{spec['group']}"] = fill
    return found


def _fill_status(obj: dict[str, Any], fill: Fill) -> None:
    status = obj.get("status") or {}
    fill(status)
    if status:
        obj["status"] = status


def _names(objects: Iterable[tuple[Record, dict[str, Any]]]) -> dict[Any, str]:
    """What each object is called: as it is named, or by its beginning and its number in order of creation."""
    names: dict[Any, str] = {}
    counts: dict[str, int] = {}
    for record, obj in sorted(objects, key=lambda each: each[0].created):
        resource, namespace, name = record.place
        prefix = obj["metadata"].get("generateName")
        called = f"{resource} {namespace}/" if namespace else f"{resource} "
        if prefix and name.startswith(prefix):
            called += f"{prefix}*"
            counts[called] = counts.get(called, 0) + 1
            called += str(counts[called])
        else:
            called += name
        names[record.place] = called
    return names


def _object(obj: dict[str, Any], uids: Mapping[str, str]) -> dict[str, Any]:
    generation = obj.get("metadata", {}).get("generation") or 0
    out: dict[str, Any] = _value(obj, uids, generation)
    metadata = out.get("metadata", {})
    for name in _LEFT_OUT:
        metadata.pop(name, None)
    if _REVISION in (annotations := metadata.get("annotations") or {}):
        del annotations[_REVISION]
        if not annotations:
            del metadata["annotations"]
    metadata.pop("name", None)
    metadata.pop("namespace", None)
    return out


def _value(value: Any, uids: Mapping[str, str], generation: int) -> Any:
    if isinstance(value, dict):
        out: dict[str, Any] = {}
        for name, each in value.items():
            if name == "observedGeneration" and isinstance(each, int) and generation:
                out[name] = "current" if each == generation else f"{generation - each} behind"
            elif name in _ALLOCATED and each != "None":
                out[name] = "<allocated>"
            else:
                out[in_words(name, uids)] = _value(each, uids, generation)
        if _are_conditions(out.get("conditions")):
            out["conditions"] = sorted(out["conditions"], key=lambda each: str(each["type"]))
        return out
    if isinstance(value, list):
        return [_value(each, uids, generation) for each in value]
    return in_words(value, uids) if isinstance(value, str) else value


def _are_conditions(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and "type" in each for each in value)


def in_words(value: str, uids: Mapping[str, str]) -> str:
    """A text, with moments and uids said in words that are the same in every run."""
    if _TIME.fullmatch(value):
        return "<time>"
    if len(value) >= 36:
        return _UID.sub(lambda found: f"<uid of {uids.get(found[0], 'nobody')}>", value)
    return value


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value at the end of a path; an empty list or dict is one."""
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from leaves(each, (*path, name))
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from leaves(each, (*path, str(number)))
    else:
        yield path, value


def difference(expected: State, got: State, most: int = 8) -> list[str]:
    """What differs, a line each: the object, the field, what it should be and what it is."""
    lines: list[str] = []
    for called in sorted(expected.keys() | got.keys()):
        if called not in got:
            lines.append(f"{called}: missing")
        elif called not in expected:
            lines.append(f"{called}: should not be there")
        elif expected[called] != got[called]:
            should, is_ = dict(leaves(expected[called])), dict(leaves(got[called]))
            for path in sorted(should.keys() | is_.keys()):
                one, other = should.get(path, _NOTHING), is_.get(path, _NOTHING)
                lines += (
                    [f"{called}: {'.'.join(path)}: {_against(called, path, one, other)}"]
                    if one != other
                    else []
                )
    if len(lines) > most:
        lines[most:] = [f"… and {len(lines) - most} more"]
    return lines


def _against(called: str, path: Path, one: Any, other: Any) -> str:
    """What a field should be and what it is; of a Secret, only whether it is there."""
    if called.startswith("secrets ") and (path[:1] in _SECRET or "last-applied" in path[-1]):
        if isinstance(one, str) and isinstance(other, str):
            return f"expected {REDACTED}, got another value"
        one, other = (REDACTED if isinstance(each, str) else each for each in (one, other))
        return f"expected {one}, got {other}"
    return f"expected {one!r}, got {other!r}"


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def varying(states: Iterable[State]) -> Masked:
    """The fields whose value is another in each run, though they are there in all."""
    first, *others = [
        {(called, path): value for called, obj in state.items() for path, value in leaves(obj)}
        for state in states
    ]
    return frozenset(
        place
        for place, value in first.items()
        if any(place in other and other[place] != value for other in others)
    )


def mask(state: State, masked: Masked) -> None:
    """Put ``VARIES`` in place of these fields."""
    for called, path in masked:
        if called in state:
            _mask(state[called], path)


def _mask(obj: Any, path: Path) -> None:
    for name in path[:-1]:
        if isinstance(obj, dict) and name in obj:
            obj = obj[name]
        elif isinstance(obj, list) and name.isdigit() and int(name) < len(obj):
            obj = obj[int(name)]
        else:
            return
    if path and isinstance(obj, dict) and path[-1] in obj:
        obj[path[-1]] = VARIES
    elif path and isinstance(obj, list) and path[-1].isdigit() and int(path[-1]) < len(obj):
        obj[int(path[-1])] = VARIES
