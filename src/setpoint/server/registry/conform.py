"""Decides whether a value is what its type says, and makes it so where Kubernetes would.

``conform(obj, type) -> Decoded``: the object with only what its type has, and texts about what was dropped,
as fieldValidation shows them (``unknown field "spec.foo"``), in the order of the body.  The object may be
changed in place; the one in ``Decoded`` is the one to go on with.  ``WrongType``, whose text is Go's own,
where a value cannot be what its type says; ``wrong_type(error, kind, version)`` makes the refusal that
clients see.  ``restore(obj, type)`` is the same for what a strategic merge patch left, which Kubernetes does
not decode but convert: it has other words for what is wrong.

As Go's decoder does it:

1. Names match by case.  A field that the type lacks is dropped, with all below it.
2. null is no value: a field loses it; in a list or a map it becomes the item's zero value.
3. The first wrong type is the one that is named, but a text that cannot be read (a quantity, a time) comes
   first.
4. A key that appears twice (``doubled.py``) is named, and what both say is merged.
5. Quantities, times and bytes come out in their canonical text.

What conforms already, which is nearly everything, is only looked at: one compiled check per type.  The walk
that knows paths runs on the rest.  Types are the shipped ones; custom kinds have ``crd/``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any, Final

from setpoint.server.golang import quoted
from setpoint.server.registry import instants, quantities
from setpoint.server.registry.bodies import go_kind
from setpoint.server.registry.doubled import Doubled, plain
from setpoint.server.registry.forms import LOOKS, are_resources, first_illegal, is_int32, recoded, zero
from setpoint.server.registry.paths import Path, Told
from setpoint.server.registry.resources import Decoded, Object
from setpoint.server.registry.types import Field, Type
from setpoint.server.statuses import StatusError, bad_request

_Check = Callable[[Any], bool]


class WrongType(ValueError):
    """A value that cannot be what its type says; the text is Go's."""


def conform(obj: Object, type: Type) -> Decoded:  # noqa: A002
    return Decoded(obj, []) if _check_of(type)(obj) else _mended(_Walk(), obj, type)


def restore(obj: Object, type: Type) -> Decoded:  # noqa: A002
    return Decoded(obj, []) if _check_of(type)(obj) else _mended(_Restoring(), obj, type)


def _mended(walk: _Walk, obj: Object, type: Type) -> Decoded:  # noqa: A002
    done = walk.struct(obj, type, "", Path())
    if walk.wrong:
        raise WrongType(walk.wrong)
    return Decoded(done, walk.told.texts)


def wrong_type(error: WrongType | str, kind: str, version: str) -> StatusError:
    """The 400 that says so; ``version`` without its group."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}')


def strict_error(texts: Iterable[str], kind: str, version: str) -> StatusError:
    """The 400 of fieldValidation=Strict."""
    return wrong_type("strict decoding error: " + ", ".join(texts), kind, version)


# --- the look


_CHECKS: Final[dict[Type, _Check]] = {}  # of shipped types, which live as long as the process


def _check_of(type: Type) -> _Check:  # noqa: A002
    """Does a value conform as it stands?"""
    found = _CHECKS.get(type)
    if found is not None:
        return found
    if type.form == "struct":
        return _struct_check(type)
    if type.item is not None and type.form in ("list", "map"):
        item = type.item
        made = _items_check(list if type.form == "list" else dict, item.form == "string", _check_of(item))
        if type.name == "v1.ResourceList":
            made = are_resources
    elif type.item is not None:
        made = _schema_or_check(type.item)
    else:
        made = LOOKS[type.form]
    _CHECKS[type] = made
    return made


def _struct_check(type: Type) -> _Check:  # noqa: A002
    checks: dict[str, _Check] = {}

    def check(value: Any) -> bool:
        if value.__class__ is not dict:
            return False
        nulls: list[str] = []
        for key, inner in value.items():
            look = checks.get(key)
            if look is None:
                return False
            if not look(inner):
                if inner is not None:
                    return False
                nulls.append(key)
        for key in nulls:  # as in every pod: the times of conditions that were never probed
            del value[key]
        return True

    _CHECKS[type] = check  # before its fields: it may hold itself
    for name, field in type.fields.items():
        checks[name] = _check_of(field.type)
    return check


_STRING: Final = {str}


def _items_check(container: type[Any], of_strings: bool, look: _Check) -> _Check:
    def strings(value: Any) -> bool:
        return value.__class__ is container and set(map(type, _items(value))) <= _STRING

    def items(value: Any) -> bool:
        return value.__class__ is container and all(map(look, _items(value)))

    return strings if of_strings else items


def _items(value: Any) -> Iterable[Any]:
    return value.values() if value.__class__ is dict else value


def _schema_or_check(schema: Type) -> _Check:
    look = _check_of(schema)

    def check(value: Any) -> bool:
        # A list of schemas, or of names, is rare: the walk looks at it.
        return look(value) if value.__class__ is dict else value.__class__ is bool

    return check


# --- the walk

_ABSENT: Final = object()
_WHOLE: Final = 1e21  # from here on Go writes an exponent


class _Walk:
    """One pass over a value that does not conform as it stands."""

    def __init__(self) -> None:
        self.told = Told()
        self.wrong = ""  # the first wrong type; others are not said
        self._silent = 0  # inside types with a decoder of their own, which names nothing it drops

    # ``struct`` is the Go struct around a value, ``go`` the way to it as Go's errors write it, ``path`` as
    # fieldValidation writes it.

    def struct(self, value: Any, type: Type, go: str, path: Path) -> Any:  # noqa: A002
        done: Object = {}
        name = type.name.rpartition(".")[2]
        for key, inner in _pairs(value):
            field = type.fields.get(key)
            below = path.child(key)
            if field is None:
                self._note("unknown", below)
                continue
            if key in done and isinstance(value, Doubled):
                self._note("duplicate", below)
            if inner is None:
                if field.is_pointer or field.type.form not in _PRIMITIVE:
                    done.pop(key, None)
                continue
            made = self._value(inner, field.type, name, _through(go, field), below)
            if made is not _ABSENT:
                done[key] = _merged(done.get(key), made)
        return done

    def _value(self, value: Any, type: Type, struct: str, go: str, path: Path) -> Any:  # noqa: A002
        match type.form:
            case "struct":
                if isinstance(value, dict):
                    return self.struct(value, type, go, path)
            case "list":
                if isinstance(value, list):
                    return self._list(value, type, struct, go, path)
            case "map":
                if isinstance(value, dict):
                    return self._map(value, type, struct, go, path)
            case "any":
                return self._any(value, type, struct, go, path)
            case "quantity":
                return _read(quantities.canonical, value)
            case "time" | "microtime":
                return self._time(value, type, struct, go)
            case "int-or-string":
                if isinstance(value, str) or is_int32(value):
                    return value
            case "bytes":
                if isinstance(value, str):
                    return self._bytes(value)
                if isinstance(value, list):
                    return self._octets(value, struct, go)
            case "float" if isinstance(value, float):
                return int(value) if value.is_integer() and abs(value) < _WHOLE else value
            case _:
                if LOOKS[type.form](value):
                    return value
        return self._wrong(value, type, struct, go)

    def _list(self, value: list[Any], type: Type, struct: str, go: str, path: Path) -> list[Any]:  # noqa: A002
        item = type.item
        assert item is not None, f"{type.name} is a list of nothing"  # noqa: S101
        made = []
        for index, inner in enumerate(value):
            one = zero(item) if inner is None else self._value(inner, item, struct, go, path.key(index))
            made.append(None if one is _ABSENT else one)
        return made

    def _map(self, value: Object, type: Type, struct: str, go: str, path: Path) -> Object:  # noqa: A002
        item = type.item
        assert item is not None, f"{type.name} is a map of nothing"  # noqa: S101
        is_resources = type.name == "v1.ResourceList"
        made: Object = {}
        for key, inner in _pairs(value):
            below = path.child(key)
            if key in made and isinstance(value, Doubled):
                self._note("duplicate", below)
            if inner is None:
                made[key] = zero(item)
            elif is_resources:
                made[key] = _read(quantities.to_milli, inner)
            else:
                one = self._value(inner, item, struct, go, below)
                made[key] = None if one is _ABSENT else one
        return made

    def _any(self, value: Any, type: Type, struct: str, go: str, path: Path) -> Any:  # noqa: A002
        """Raw JSON stays as it is; a JSON schema or something simpler is looked into, without a word."""
        if type.item is None:
            return plain(value)[0]
        self._silent += 1
        try:
            if isinstance(value, dict):
                return self.struct(value, type.item, go, path)
            return self._simpler(value, type, struct, go, path)
        finally:
            self._silent -= 1

    def _simpler(self, value: Any, type: Type, struct: str, go: str, path: Path) -> Any:  # noqa: A002
        schema = type.item
        assert schema is not None, f"{type.name} has no schema"  # noqa: S101
        match type.name.rpartition("Or")[2]:
            case "Bool" if not isinstance(value, bool):
                raise WrongType("boolean or JSON schema expected")
            case "Bool":
                return value
            case "Array" if isinstance(value, list):
                return self._list(value, Type("list", item=schema), struct, go, path)
            case "StringArray" if isinstance(value, list):
                return self._list(value, _STRINGS, struct, go, path)
        return {}

    def _time(self, value: Any, type: Type, struct: str, go: str) -> Any:  # noqa: A002
        if not isinstance(value, str):
            return self._wrong(value, type, struct, go)
        made = _read(lambda text: instants.canonical(text, type.form == "microtime"), value)
        return _ABSENT if made is None else made

    def _bytes(self, value: str) -> str:
        kept = value.replace("\n", "").replace("\r", "")
        try:
            return recoded(kept)
        except ValueError:
            at = first_illegal(value)
            self.wrong = self.wrong or f"illegal base64 data at input byte {at}"
            return ""

    def _octets(self, value: list[Any], struct: str, go: str) -> str:
        """Bytes may be written as a list of numbers, too."""
        octets = bytearray()
        for one in value:
            if one is not None and (one.__class__ is not int or not 0 <= one < 256):
                self._wrong(one, _OCTET, struct, go)
            else:
                octets.append(one or 0)
        return base64.b64encode(octets).decode()

    def _note(self, what: str, path: Path) -> None:
        if not self._silent and not self.told.is_full:
            self.told.add(f"{what} field {quoted(path.text)}")

    def _wrong(self, value: Any, type: Type, struct: str, go: str) -> Any:  # noqa: A002
        text = f"{_cannot(value, type)} Go struct field {struct}.{go} of type {_wanted(type)}"
        if type.form in _OWN:
            raise WrongType(text)
        self.wrong = self.wrong or text
        return _ABSENT


class _Restoring(_Walk):
    """The same in the words of the converter: in the order of the type, and no further than the first."""

    def struct(self, value: Any, type: Type, go: str, path: Path) -> Any:  # noqa: A002
        ordered = {name: value[name] for name in type.fields if name in value}
        return super().struct(ordered | value, type, go, path)

    def _value(self, value: Any, type: Type, struct: str, go: str, path: Path) -> Any:  # noqa: A002
        if type.form in ("int32", "int64") and isinstance(value, float) and value.is_integer():
            value = int(value)
        return super()._value(value, type, struct, go, path)

    def _wrong(self, value: Any, type: Type, struct: str, go: str) -> Any:  # noqa: A002, ARG002
        raise WrongType(_not_restored(value, type))


def _not_restored(value: Any, type: Type) -> str:  # noqa: A002
    seen, form = _go_kind(value), type.form
    if form in _OWN:
        return f"{_cannot(value, type)} Go value of type {_wanted(type)}"
    if form in ("map", "list", "bytes"):
        return f"cannot restore {'map' if form == 'map' else 'slice'} from {seen}"
    if form == "struct":
        return f"cannot restore struct from: {seen}"
    if (seen, form) in _CONVERTIBLE:
        return f"cannot convert {seen} to {type.name}"
    return f"unrecognized type: {'float64' if form == 'float' else form}"


# What Go could convert, but JSON does not.
_CONVERTIBLE: Final = frozenset({("int64", "string"), ("float64", "int32"), ("float64", "int64")})
_OWN: Final = frozenset({"time", "microtime", "int-or-string"})  # forms with a decoder of their own
_OCTET: Final = Type("int32", "uint8")
_STRINGS: Final = Type("list", "[]string", item=Type("string", "string"))
_PRIMITIVE: Final = frozenset({"string", "int32", "int64", "float", "bool", "struct"})


def _pairs(value: Object) -> Iterable[tuple[str, Any]]:
    return value.pairs if isinstance(value, Doubled) else value.items()


def _through(go: str, field: Field) -> str:
    """The way to a field, by the names of the structs that it is embedded in."""
    names = [name for _, name in field.within]
    return ".".join([go, *names, field.name] if go else [*names, field.name])


def _merged(old: Any, new: Any) -> Any:
    """What a key that appears twice comes to: maps and structs are decoded one over the other."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: _merged(old.get(key), inner) for key, inner in new.items()}
    return new


def _read(reader: Callable[[Any], Any], value: Any) -> Any:
    """What a decoder of its own makes of a value; what it cannot read ends the walk."""
    try:
        return reader(value)
    except ValueError as error:
        raise WrongType(str(error)) from None


def _cannot(value: Any, type: Type) -> str:  # noqa: A002
    """How Go begins to say that a value does not fit; a number is shown where a number could have been."""
    shown = f" {value!r}" if type.form in _NUMBERS and go_kind(value) == "number" else ""
    return f"json: cannot unmarshal {go_kind(value)}{shown} into"


_NUMBERS: Final = frozenset({"int32", "int64", "float", "int-or-string"})


def _wanted(type: Type) -> str:  # noqa: A002
    if type.form == "int-or-string":
        return "int32"
    return "string" if type.form in ("time", "microtime") else type.name


def _go_kind(value: Any) -> str:
    kind = go_kind(value)
    if kind == "number":
        return "float64" if isinstance(value, float) else "int64"
    return {"array": "slice", "object": "map"}.get(kind, kind)
