"""What a user does with an operator, where nobody says: made from the schema of a kind.

Create an object with every required field; change each field of its spec, numbers up and down again, the rest
one by one and then back together; ask for what the operator may choke on, and take that back; delete the
object; create it again under the same name; delete it while the operator is down.

``example`` is the spec to begin with, where the schema says too little (a rule, say).  Where the items
of a list or map have fields, those of one item are changed.  A field that no other value comes to mind for is
left alone, and ``fields`` says why.  Where a schema has very many fields, those that the operator reads are
changed, and a sample of the others (``choose``).

Pure; ``usual.py`` puts the lives of several kinds together.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from setpoint.server.registry.crd.patterns import CannotMatch, compiled
from setpoint.testing.proof.matching import matching
from setpoint.testing.proof.plans import Change, Create, Delete, Step

Json: TypeAlias = Any
Schema: TypeAlias = Mapping[str, Any]

_FORMATS = {
    "byte": "YQ==",
    "cidr": "192.0.2.0/24",
    "date-time": "2030-01-01T00:00:00Z",
    "date": "2030-01-01",
    "duration": "1h",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "mac": "02:00:00:00:00:01",
    "uri": "https://example.com/",
    "uuid": "2f1d5c0e-6f0e-4b69-9a7a-5b0c8f3e7a11",
}
_OTHERS = {
    "byte": "Yg==",
    "cidr": "198.51.100.0/24",
    "date-time": "2031-02-03T04:05:06Z",
    "date": "2031-02-03",
    "duration": "2h",
    "email": "another@example.com",
    "hostname": "another.example.com",
    "ipv4": "192.0.2.2",
    "ipv6": "2001:db8::2",
    "mac": "02:00:00:00:00:02",
    "uri": "https://example.com/another",
    "uuid": "8d0b2c44-1c3f-4f0a-8b60-0d8e5c2f9b37",
}
_WRONG = "bad"  # names nothing that there is
_MOST_OF_ITEM = 20  # fields of an item of a list or map that are changed: each costs a step
_ALL = 30  # fields of a spec that are all changed, whatever the operator reads
_SAMPLE = 4  # fields that are changed, of those that are read as a whole or not at all
_FIXED: Final = "a rule holds it against its old value"
_UNSAID: Final = "the schema does not say what else it may be"
_MANY: Final = f"of the fields of an item the first {_MOST_OF_ITEM} are changed"


class Field(NamedTuple):
    """A field of a spec, and how it is changed."""

    path: str  # "ports[].name"; of a map, "sites.*.name"
    patch: dict[str, Any] | None  # a merge patch; None: it is left alone
    why_not: str = ""


def usual_steps(
    crd: Mapping[str, Any],
    example: Mapping[str, Any] | None = None,
    *,
    name: str = "sample",
    without: Collection[str] = (),
) -> tuple[Step, ...]:
    """The life of one object, from a definition in wire form; ``without`` changes of the fields at these
    paths.
    """
    api_version, kind, schema = served(crd)
    spec = dict(example) if example is not None else sample(schema)
    metadata = {"name": name, "namespace": "default"}
    if crd["spec"].get("scope") == "Cluster":
        del metadata["namespace"]
    obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    namespace = metadata.get("namespace", "default")
    create, delete = Create(obj), Delete(api_version, kind, name, namespace)
    changes = [
        Change(api_version, kind, name, {"spec": patch}, namespace, may_fail=may_fail)
        for patch, may_fail in _changes(schema, spec, without)
    ]
    last = Delete(api_version, kind, name, namespace, while_down=True)
    return (create, *changes, delete, create, last)


def _changes(
    schema: Schema, spec: Mapping[str, Any], without: Collection[str]
) -> Iterator[tuple[dict[str, Any], bool]]:
    """Patches of a spec, in order, and whether each asks for what may not be; in the end it is as it was."""
    patches = [patch for path, patch, _ in fields(schema, spec) if patch is not None and path not in without]
    for patch in patches:
        yield patch, False
        if _is_number(patch):
            yield undone(patch, spec), False
    rest: dict[str, Any] = {}
    for patch in patches:
        if not _is_number(patch):
            _merge(rest, undone(patch, spec))
    if rest:
        yield rest, False
    if wrong := misoperation(schema, spec):
        yield wrong, True
        yield undone(wrong, spec), False


def _is_number(patch: Json) -> bool:
    """Whether it sets a number: a count of something, as a rule."""
    while isinstance(patch, dict) and len(patch) == 1:
        patch = next(iter(patch.values()))
    return isinstance(patch, int | float) and not isinstance(patch, bool)


def _merge(into: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value


def undone(patch: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that takes another back."""
    return {
        name: undone(value, spec[name])
        if isinstance(value, dict) and isinstance(spec.get(name), dict)
        else spec.get(name)
        for name, value in patch.items()
    }


def misoperation(schema: Schema, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A patch that the schema allows and the operator may choke on; {} if none comes to mind.

    A text that names nothing; where there is none that may be so, the least of a number.
    """
    numbers: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        if is_fixed(field) or field.get("enum"):
            continue
        value = spec.get(name, sample(field))
        if field.get("type") == "string" and not field.get("format") and value != _WRONG:
            if _allows(field, _WRONG):
                return {name: _WRONG}
        elif field.get("type") in ("integer", "number") and not numbers:
            least = field.get("minimum", 0)
            least += bool(field.get("exclusiveMinimum"))
            numbers = {name: least} if _fits(field, least, other_than=value) else {}
    return numbers


def served(crd: Mapping[str, Any]) -> tuple[str, str, Schema]:
    """The apiVersion, the kind, and what a spec must look like."""
    spec = crd["spec"]
    version = next(each for each in spec["versions"] if each.get("served", True))
    schema = version["schema"]["openAPIV3Schema"].get("properties", {}).get("spec", {})
    return f"{spec['group']}/{version['name']}", spec["names"]["kind"], schema


def sample(schema: Schema) -> Json:
    """Some value that a schema allows: what must be there, and no more."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: sample(properties.get(name, {})) for name in schema.get("required", ())}
        case "array":
            return [sample(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number":
            low = schema.get("minimum", 1 if schema.get("maximum", 1) >= 1 else schema["maximum"])
            step = schema.get("multipleOf", 1)
            first = low if _fits(schema, low) else math.ceil(low / step) * step
            return next((each for each in _numbers(schema, first) if _fits(schema, each)), low)
        case "boolean":
            return False
        case "string":
            return _text(schema)
        case _:
            return {}


def _text(schema: Schema) -> str:
    """A text that a schema allows; a plain one, if none comes to mind."""
    plain: str = _FORMATS.get(schema.get("format", ""), "a" * max(1, schema.get("minLength", 1)))
    if _allows(schema, plain):
        return plain
    return matching(schema.get("pattern", ""), lambda text: text != "" and _allows(schema, text)) or plain


def another(schema: Schema, value: Json) -> Json:
    """A value other than this one; the same, if none comes to mind."""
    if schema.get("enum"):
        return next((each for each in schema["enum"] if each != value), value)
    sort = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        sort = "string" if isinstance(value, str) else "integer"
    match sort:
        case "integer" | "number" if isinstance(value, int | float):
            return next((each for each in _numbers(schema, value) if _fits(schema, each, value)), value)
        case "boolean":
            return not value
        case "string" if isinstance(value, str):
            return next((each for each in _texts(schema, value) if each != value), value)
        case "array" if isinstance(value, list):
            return _another_list(schema, value)
        case "object" if isinstance(value, Mapping) and isinstance(
            schema.get("additionalProperties"), Mapping
        ):
            return {**value, "another": sample(schema["additionalProperties"])}
        case _:
            return value


def _numbers(schema: Schema, value: float) -> Iterator[float]:
    """A number and those next to it; where it need not be whole, those half way to its bounds, too."""
    step = schema.get("multipleOf", 1)
    yield from (value, value + step, value - step)
    if schema.get("type") == "number":
        yield from ((value + schema[bound]) / 2 for bound in ("maximum", "minimum") if bound in schema)


def _fits(schema: Schema, number: float, other_than: float | None = None) -> bool:
    """Whether a number is as a schema has it, and another than this one."""
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if number == other_than or (step and not math.isclose(number / step, round(number / step))):
        return False
    if low is not None and (number < low or (number == low and schema.get("exclusiveMinimum"))):
        return False
    return high is None or number < high or (number == high and not schema.get("exclusiveMaximum"))


def _texts(schema: Schema, value: str) -> Iterator[str]:
    """Texts that a schema allows, like this one; none, where it must have a form that is not known here."""
    if known := _OTHERS.get(schema.get("format", "")):
        found = [known, _FORMATS[schema["format"]]]
    else:
        found = [] if schema.get("format") else [*_variants(value)]
    if schema.get("x-kubernetes-int-or-string"):  # as a rule a number and its unit
        found = found[2:] + found[:2]
    return (each for each in found if _allows(schema, each))


def _another_list(schema: Schema, value: list[Json]) -> list[Json]:
    """With an item more, or less; where it must have as many as it has, with another first one."""
    items = schema.get("items", {})
    if len(value) < schema.get("maxItems", len(value) + 1):
        more = _unlike(schema, value, sample(items))
        if more is not None:
            return [*value, more]
    if len(value) > schema.get("minItems", 0):
        return value[:-1]
    return [another(items, value[0]), *value[1:]] if value else value


def _unlike(schema: Schema, value: list[Json], item: Json) -> Json:
    """An item that a list may have besides those that it has; None, if none comes to mind."""
    sort, items = schema.get("x-kubernetes-list-type"), schema.get("items", {})
    keys = schema.get("x-kubernetes-list-map-keys", ()) if sort == "map" else ()
    for _ in value if sort in ("set", "map") else ():
        if all(_identity(each, keys) != _identity(item, keys) for each in value):
            break
        if keys and isinstance(item, dict):
            parts = items.get("properties", {})
            item = {**item, **{key: another(parts.get(key, {}), item[key]) for key in keys if key in item}}
        else:
            item = another(items, item)
    is_taken = any(_identity(each, keys) == _identity(item, keys) for each in value)
    return None if is_taken and sort in ("set", "map") else item


def _identity(item: Json, keys: Sequence[str]) -> Json:
    return [item.get(key) for key in keys] if keys and isinstance(item, Mapping) else item


def _variants(value: str) -> Iterator[str]:
    """Texts like this one: longer, or with its last digit or letter exchanged."""
    yield f"{value}b"
    yield f"{value}1"
    for sort, first, second in ((str.isdigit, "1", "2"), (str.isalpha, "b", "c")):
        where = max((number for number, each in enumerate(value) if sort(each)), default=None)
        if where is not None:
            given = value[where]
            other = str((int(given) + 1) % 10) if given.isdigit() else second if given == first else first
            yield value[:where] + other + value[where + 1 :]


def _allows(schema: Schema, value: str) -> bool:
    """Whether a text is as a schema has it; a pattern that the server cannot read allows none."""
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    pattern = schema.get("pattern")
    try:
        return not pattern or compiled(pattern)(value)
    except CannotMatch:
        return False


def choose(schema: Schema, spec: Mapping[str, Any], reads: Collection[str]) -> dict[str, str]:
    """The fields that are not changed, by their paths, and why: of many that the operator does not read by
    themselves, a few are changed.

    ``reads`` are paths that it reads.  What it hands on as a whole, a PodTemplate say, it can hardly treat
    field by field, and a few changes show what it does with all.
    """
    paths = [each.path for each in fields(schema, spec) if each.patch is not None]
    if len(paths) <= _ALL:
        return {}
    groups: dict[str, list[str]] = {}  # by the innermost part that is read as a whole
    for path in paths:
        if path not in reads:
            groups.setdefault(_read_part(path, reads), []).append(path)
    left: dict[str, str] = {}
    for part, those in groups.items():
        taken = {those[number * len(those) // _SAMPLE] for number in range(_SAMPLE)}
        what = f"the operator reads spec.{part} as a whole" if part else "the operator does not read it"
        why = f"{what}: {len(taken)} of {len(those)} such fields are changed"
        left |= {path: why for path in those if path not in taken}
    return left


def _read_part(path: str, reads: Collection[str]) -> str:
    """The innermost part of a spec with this field in it that is read; "" if none is."""
    part = path
    while part and part not in reads:
        cut = max(part.rfind("."), part.rfind("["))
        part = part[:cut] if cut > 0 else ""
    return part


def others(schema: Schema, spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Merge patches that change each field once; of those that may change."""
    return (each.patch for each in fields(schema, spec) if each.patch is not None)


def fields(schema: Schema, spec: Mapping[str, Any]) -> Iterator[Field]:
    """Every field that a spec may have, with what changes it, or why nothing does."""
    for name, field in schema.get("properties", {}).items():
        if is_fixed(field):
            yield Field(name, None, _FIXED)
            continue
        value = spec.get(name, sample(field))
        if field.get("type") == "object" and field.get("properties") and isinstance(value, Mapping):
            # Of what is not there yet, all that must be is made with it.
            begun = {} if name in spec or "default" in field else value
            for path, patch, why_not in fields(field, value):
                within = None if patch is None else {name: _merged(begun, patch)}
                yield Field(f"{name}.{path}", within, why_not)
            continue
        changed = another(field, value)
        if changed != value:
            yield Field(name, {name: changed})
        else:
            yield Field(name, None, _UNSAID)
        yield from _of_items(name, field, value)


def _of_items(name: str, field: Schema, value: Json) -> Iterator[Field]:
    """The fields of an item of a list or map: of the first, or of one that is made for that."""
    is_list = isinstance(value, list)
    items = field.get("items" if is_list else "additionalProperties")
    if not isinstance(value, list | Mapping) or not isinstance(items, Mapping) or not items.get("properties"):
        return
    key = next(iter(value), "another")  # of a map
    first = next(iter(value if isinstance(value, list) else value.values()), sample(items))
    if not isinstance(first, Mapping):
        return
    place = f"{name}[]" if is_list else f"{name}.*"
    inner = fields(items, first)
    for path, patch, why_not in islice(inner, _MOST_OF_ITEM):
        changed = None if patch is None else _merged(first, patch)
        whole = [changed, *value[1:]] if is_list else {key: changed}
        yield Field(f"{place}.{path}", None if patch is None else {name: whole}, why_not)
    if next(inner, None) is not None:
        yield Field(place, None, _MANY)


def _merged(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = copy.deepcopy(dict(value))
    _merge(merged, patch)
    return merged


def is_fixed(schema: Schema) -> bool:
    """Whether a rule speaks of the value before: it may not change freely."""
    return any("oldSelf" in rule.get("rule", "") for rule in schema.get("x-kubernetes-validations", ()))
