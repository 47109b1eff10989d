"""What is known of the built-in kinds: which are served and how, and the type of each.

The facts are one table in the wheel, ``facts.json.z``, made by ``tools/facts`` from Kubernetes' Go types and
a real kube-apiserver.  It is read once, on first use, and the fields of a type when they are first looked at:
of most kinds a server never sees an object.  What this hands out is shared and never changes.

- ``resources()``: every resource that the real server serves, in its order.
- ``type_of(group, version, kind)``: the ``Type`` of a kind, of its list, or of a kind that every version has
  (``DeleteOptions``, ``Status``, ``PatchOptions``, …); KeyError for what there is not.
- ``kinds()``: the kinds that have a type, as (group, version, kind).
- ``release()``: the Kubernetes release that all of it describes.

Not here: what is done with a type (conform, emit, protobuf, defaults, managed fields).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple, cast

import msgspec

from setpoint.server.registry.resources import Column, Subresource
from setpoint.server.registry.types import NONE, Field, Form, Type

_META: Final = "meta.k8s.io/v1"  # where the table keeps the kinds that every version has


class Served(NamedTuple):
    """A resource, as the real server serves it."""

    group: str
    version: str
    plural: str
    kind: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    subresources: tuple[Subresource, ...]
    columns: tuple[Column, ...]
    storage_version_hash: str
    deprecation: str  # the warning that every request gets
    list_kind: str


@cache
def release() -> str:
    return str(_table()["release"])


@cache
def resources() -> tuple[Served, ...]:
    return tuple(_served(row) for row in _table()["resources"])


def kinds() -> Iterator[tuple[str, str, str]]:
    for named in _table()["kinds"]:
        version, _, kind = named.rpartition("/")
        group, _, version = version.rpartition("/")
        yield group, version, kind


def type_of(group: str, version: str, kind: str) -> Type:
    """The type of a kind; KeyError if there is none of that name."""
    known: dict[str, int] = _table()["kinds"]
    number = known.get(f"{group}/{version}/{kind}" if group else f"{version}/{kind}")
    if number is None:
        number = known[f"{_META}/{kind}"]
    return _numbered(number)


# --- the table


@cache
def _table() -> dict[str, Any]:
    packed = Path(__file__).with_name("facts.json.z").read_bytes()
    return cast("dict[str, Any]", msgspec.json.decode(zlib.decompress(packed)))


def _served(row: list[Any]) -> Served:
    group, version, plural, kind, singular, namespaced, verbs, short_names, categories, *rest = row
    subresources, columns, deprecation, storage_version_hash = rest
    listed = f"{kind}List"
    named = f"{group}/{version}/{listed}" if group else f"{version}/{listed}"
    return Served(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        singular=singular,
        namespaced=namespaced,
        verbs=tuple(verbs),
        short_names=tuple(short_names),
        categories=tuple(categories),
        subresources=tuple(_below(*one) for one in subresources),
        columns=tuple(Column(*column) for column in columns),
        storage_version_hash=storage_version_hash,
        deprecation=deprecation,
        list_kind=listed if named in _table()["kinds"] else "",
    )


def _below(name: str, kind: str, group: str, version: str, verbs: list[str]) -> Subresource:
    return Subresource(name, kind, tuple(verbs), group, version)


# --- types

_BUILT: Final[dict[int, Type]] = {}  # rows
_BUILDING: Final = RLock()  # servers in several threads share them

_SCALARS: Final[dict[str, Form]] = {
    "string": "string",
    "int32": "int32",
    "int64": "int64",
    "int": "int64",
    "float64": "float",
    "bool": "bool",
    "bytes": "bytes",
    "interface {}": "any",
}
# Forms that Go holds in a struct: without a pointer, omitempty does not leave them out.
_STRUCTS: Final = frozenset({"struct", "time", "microtime", "duration", "quantity", "int-or-string", "any"})


class _Struct(Type):
    """A struct that reads its fields when they are first looked at."""

    __slots__ = ("_reading", "_rows")

    def __init__(self, name: str, rows: list[Any], *, is_atomic: bool) -> None:
        super().__init__("struct", name, is_atomic=is_atomic)
        self._rows = rows
        self._reading: dict[str, Field] | None = None
        del self.fields  # asked for, it is not there, and ``__getattr__`` is called

    def __getattr__(self, name: str) -> dict[str, Field]:
        if name != "fields":
            raise AttributeError(f"a type has no {name}")
        with _BUILDING:
            if self._reading is None:
                self._reading = {}
                for row in self._rows:
                    self._reading[row[0]] = _field(*row)
                self.fields = self._reading
            return self._reading  # which has not all of them yet where a struct holds itself


def _numbered(number: int) -> Type:
    with _BUILDING:
        return _row(number)


def _row(number: int) -> Type:
    """A named type: [Go's name, what it is] or [Go's name, fields, whether it is owned as a whole]."""
    built = _BUILT.get(number)
    if built is not None:
        return built
    name, what, *rest = _table()["types"][number]
    if isinstance(what, list):
        built = _BUILT[number] = _Struct(name, what, is_atomic=bool(rest))
        return built
    if what in _STRUCTS:
        # Apply has no insight into a RawExtension; other open types it walks.
        built = _BUILT[number] = Type(what, name, is_atomic=name == "runtime.RawExtension")
        built.item = _row(rest[0]) if rest else None
        return built
    plain = _expression(what.removesuffix("!"))
    built = _BUILT[number] = Type(plain.form, name, item=plain.item, is_message=what.endswith("!"))
    return built


@cache
def _expression(text: str) -> Type:
    """A type as its place names it: ``#7`` is a row, ``[]#7`` and ``map[string]#7`` hold one."""
    if text.startswith("#"):
        return _row(int(text[1:]))
    if text.startswith("[]"):
        item = _expression(text[2:])
        return Type("list", f"[]{item.name}", item=item)
    if text.startswith("map["):
        key, _, inner = text[4:].partition("]")
        item = _expression(inner)
        return Type("map", f"map[{key}]{item.name}", item=item)
    if text.startswith("*"):
        return _expression(text[1:])
    return Type(_SCALARS[text], "[]uint8" if text == "bytes" else text)


_NOTHING: Final[dict[str, Any]] = {}


def _field(name: str, text: str, flags: str, number: int, rarer: dict[str, Any] = _NOTHING) -> Field:
    """A field; flags are e omitempty, z omitzero, p pointer, r required, a owned as a whole, t told."""
    found = _expression(text)
    if "a" in flags or "l" in rarer:
        found = Type(
            found.form,
            found.name,
            found.fields,
            found.item,
            list_type=rarer.get("l", "atomic"),
            map_keys=tuple(rarer.get("k", ())),
            is_atomic="a" in flags,
            is_message=found.is_message,
        )
    is_pointer = "p" in flags
    is_struct = found.form in _STRUCTS and not is_pointer
    return Field(
        name,
        found,
        number,
        default=rarer.get("d", NONE),
        is_required="r" in flags,
        is_emitted_empty="z" not in flags and ("e" not in flags or is_struct),
        is_pointer=is_pointer,
        is_told="t" in flags,
        enum=tuple(rarer.get("e", ())),
        patch_strategy=frozenset(rarer.get("s", ())),
        merge_key=rarer.get("m", ""),
        within=tuple((step, embedded) for step, embedded in rarer.get("w", ())),
    )
