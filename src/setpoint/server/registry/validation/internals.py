"""How the real server shows a value of its own types, and the difference of two.

Kubernetes keeps objects in types that have no names for JSON, and a refusal that shows such a value shows
Go's names and every empty field.  Clients compare those texts, so they are made here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import msgspec

from setpoint.server.registry.facts import type_of
from setpoint.server.registry.types import Field, Type

# Types of Kubernetes' machinery are shown as they are sent.
_AS_SENT: Final = frozenset(
    {"v1.LabelSelector", "v1.LabelSelectorRequirement", "v1.ObjectMeta", "v1.Condition"}
)
_SHORT: Final = re.compile(
    r"(api|aws|azure(?=$)|ca|cidr|csi|dns|fc|fs|gce|grpc|http|ip|iscsi|json|nfs|os|pd|rbd|se|tcp|tls|ttl|tty|uid|url)"
    r"(?=[A-Z]|s?$)"
)
_NAMES: Final = {
    "serviceAccount": "DeprecatedServiceAccount",
    "cephfs": "CephFS",
    "storageos": "StorageOS",
    "httpHeaders": "HTTPHeaders",
}
_EMPTY: Final[dict[str, Any]] = {
    "string": "",
    "int32": 0,
    "int64": 0,
    "float": 0,
    "bool": False,
    "int-or-string": 0,
}


@cache
def _go_name(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    short = _SHORT.match(name)
    if short is not None:
        return short[0].upper() + name[len(short[0]) :]
    return name[:1].upper() + name[1:]


def internal(value: Any, kind_type: Type) -> Any:
    """A value as Go would write it: fields in Go's order, the keys of maps sorted."""
    if value is None:
        return None
    match kind_type.form:
        case "struct":
            if kind_type.name in _AS_SENT:
                known = kind_type.fields.items()
                return {name: internal(value[name], one.type) for name, one in known if name in value}
            shown: dict[str, Any] = {}
            is_object = "metadata" in kind_type.fields
            for field in kind_type.fields.values():
                if field.type.name == "v1.ObjectMeta":
                    shown |= internal(value.get(field.name) or {}, field.type)
                    shown.pop("managedFields", None)
                elif not is_object or field.name not in ("kind", "apiVersion"):
                    shown[_go_name(field.name)] = _field(value.get(field.name), field)
            return shown
        case "list" | "map":
            item = kind_type.item
            if item is None:
                return value
            if isinstance(value, list):
                return [internal(one, item) for one in value]
            return {key: internal(one, item) for key, one in sorted(value.items())}
        case _:
            return value


def _field(value: Any, field: Field) -> Any:
    if value is None:
        if field.is_pointer or field.type.form in ("list", "map", "bytes", "time", "microtime", "any"):
            return None
        if field.type.form == "struct":
            return internal({}, field.type)
        return _EMPTY.get(field.type.form)
    return internal(value, field.type)


def shown(value: Any, *place: str) -> msgspec.Raw:
    """A value as a refusal shows it, written already; ``place`` is ``part_type``'s."""
    return written(internal(value, part_type(*place)))


def selector(value: Any) -> msgspec.Raw:
    """A label selector, which every version has in one form."""
    return shown(value, "apps", "v1", "Deployment", "spec", "selector")


def written(value: Any) -> msgspec.Raw:
    """A value whose fields are in order already."""
    return msgspec.Raw(msgspec.json.encode(value))


def part_type(group: str, version: str, kind: str, *path: str) -> Type:
    """The type of a field: ``part_type("", "v1", "Pod", "spec")``; a list's is that of its items."""
    found = type_of(group, version, kind)
    for name in path:
        found = found.fields[name].type
        while found.form in ("list", "map") and found.item is not None:
            found = found.item
    return found


_MOST_COMPARED: Final = 1000  # lines; finding the least that changed takes the square of them


def difference(old: Any, new: Any, kind_type: Type) -> str:
    """What changed, line by line; of much, the first lines of all from the first that did to the last."""
    before, after = (_lines(internal(one, kind_type)) for one in (old, new))
    if max(len(before), len(after)) > _MOST_COMPARED:
        head = _same_lines(before, after)
        tail = _same_lines(before[head:][::-1], after[head:][::-1])
        gone, come = before[head : len(before) - tail], after[head : len(after) - tail]
        return _signed("-", gone) + _signed("+", come)
    import difflib  # noqa: PLC0415 - for a rare refusal alone

    changed = list(difflib.unified_diff(before, after))
    return "".join(changed[2:])  # without the names of two files


def _signed(sign: str, lines: list[str]) -> str:
    told = "".join(f"{sign}{line}" for line in lines[:_MOST_COMPARED])
    return told if len(lines) <= _MOST_COMPARED else f"{told}{sign}…\n"


def _same_lines(one: list[str], other: list[str]) -> int:
    """With how many both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _lines(value: Any) -> list[str]:
    text = msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
    return [f"{line}\n" for line in text.split("\n")]
