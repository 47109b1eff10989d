"""Decides which objects a label selector or a field selector means.

Promises:

1. Texts are read by Kubernetes' grammar and refused with Kubernetes' words, so a mistake reads the
   same here as from the server.
2. ``str()`` gives the text the server prints: label requirements sorted by key, values sorted.
   Parsing it gives an equal selection.
3. ``matches()`` answers as the server would: ``!=`` and ``notin`` also match where the label is absent.

A selector object (``matchLabels`` and ``matchExpressions``) that is missing selects nothing, and an
empty one everything.  Nothing is written as a requirement that contradicts itself, so that it stays
nothing on its way through a server (Go prints it as the empty text, which selects everything).

Which fields a kind offers to select by is the server's business.  Fed by the client's ``labels=`` and
``fields=`` through ``label_selection`` and ``field_selection``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, Protocol, Self, get_args

# ---- what may be a label ---------------------------------------------------------------------------

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_NAME})?"
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_LINEAR_SUBDOMAIN: Final = _SUBDOMAIN.replace("(", "(?:") + "+"  # the same, without backtracking

_IS_NAME: Final = re.compile(_NAME).fullmatch
_IS_VALUE: Final = re.compile(_VALUE).fullmatch
_IS_SUBDOMAIN: Final = re.compile(_LINEAR_SUBDOMAIN).fullmatch

_ENDS: Final = "and must start and end with an alphanumeric character"
_MADE_OF: Final = f"consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_WRONG_NAME: Final = (
    f"must {_MADE_OF} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_WRONG_KEY: Final = (
    f"a valid label key {_WRONG_NAME} "
    "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_WRONG_VALUE: Final = (
    f"a valid label must be an empty string or {_MADE_OF} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_WRONG_SUBDOMAIN: Final = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)


def label_key_errors(key: str) -> list[str]:
    """What is wrong with a label or annotation key, in Kubernetes' words; empty if nothing is."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [_WRONG_KEY]
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    if _size(prefix) > 253:
        errors.append("prefix part must be no more than 253 bytes")
    if prefix and not _IS_SUBDOMAIN(prefix):
        errors.append(f"prefix part {_WRONG_SUBDOMAIN}")
    if not name:
        errors.append("name part must be non-empty")
    if _size(name) > 63:
        errors.append("name part must be no more than 63 bytes")
    if not _IS_NAME(name):
        errors.append(f"name part {_WRONG_NAME}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """What is wrong with a label's value, in Kubernetes' words; empty if nothing is."""
    errors = ["must be no more than 63 bytes"] if _size(value) > 63 else []
    return errors if _IS_VALUE(value) else [*errors, _WRONG_VALUE]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


# ---- label selectors -------------------------------------------------------------------------------

Operator = Literal["in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"]

_WRITTEN: Final = {"in": " in ", "notin": " notin ", "gt": ">", "lt": "<"}
_BETWEEN: Final[dict[str, Operator]] = {
    "in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt",
}  # fmt: skip
_IN_OBJECTS: Final[dict[str, Operator]] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one label must be: ``Requirement("tier", "in", ("web", "api"))``."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        errors = dict.fromkeys(self._errors())
        if errors:
            raise ValueError(f"[{', '.join(errors)}]" if len(errors) > 1 else next(iter(errors)))
        object.__setattr__(self, "values", tuple(sorted(set(self.values))))

    def _errors(self) -> Iterable[str]:
        if errors := label_key_errors(self.key):
            yield f"key: Invalid value: {_quoted(self.key)}: {'; '.join(errors)}"
        if self.operator not in get_args(Operator):
            supported = ", ".join(sorted(map(_quoted, get_args(Operator))))
            yield f"operator: Unsupported value: {_quoted(self.operator)}: supported values: {supported}"
        if wrong := _wrong_count(self.operator, len(self.values)):
            shown = json.dumps(self.values or None, ensure_ascii=False, separators=(",", ":"))
            yield f"values: Invalid value: {shown}: {wrong}"
        for index, value in enumerate(self.values):
            if self.operator in ("gt", "lt") and _integer(value) is None:
                wrong = "for 'Gt', 'Lt' operators, the value must be an integer"
                yield f"values[{index}]: Invalid value: {_quoted(value)}: {wrong}"
        for index, value in enumerate(self.values):
            if errors := label_value_errors(value):
                yield f"values[{index}][{self.key}]: Invalid value: {_quoted(value)}: {'; '.join(errors)}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "=" | "==" | "in":
                return value in self.values
            case "!=" | "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        number, bound = _integer(value or ""), _integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "gt" else number < bound

    def __str__(self) -> str:
        values = ",".join(self.values)
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                values = f"({values})"
        return f"{self.key}{_WRITTEN.get(self.operator, self.operator)}{values}"


def _wrong_count(operator: Operator, count: int) -> str:
    match operator:
        case "in" | "notin" if count == 0:
            return "for 'in', 'notin' operators, values set can't be empty"
        case "=" | "==" | "!=" if count != 1:
            return "exact-match compatibility requires one single value"
        case "exists" | "!" if count != 0:
            return "values set must be empty for exists and does not exist"
        case "gt" | "lt" if count != 1:
            return "for 'Gt', 'Lt' operators, exactly one value is required"
    return ""


class LabelSelectorRequirement(Protocol):
    """Meta v1's type of this name, as the generated model has it."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str] | None: ...


class LabelSelector(Protocol):
    """Meta v1's type of this name, as the generated model has it."""

    @property
    def match_labels(self) -> Mapping[str, str] | None: ...
    @property
    def match_expressions(self) -> Sequence[LabelSelectorRequirement] | None: ...


@dataclass(frozen=True, slots=True)
class LabelSelection:
    """Objects by their labels; all requirements must hold.  ``LabelSelection()`` is everything."""

    requirements: tuple[Requirement, ...] = ()

    NOTHING: ClassVar[LabelSelection]

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", tuple(sorted(self.requirements, key=attrgetter("key"))))

    @classmethod
    def parse(cls, text: str) -> Self:
        """From the text of ``kubectl -l``: ``a in (x,y),!b,c=d``."""
        return cls(tuple(_Parser(text).requirements()))

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Self:
        """Those that have all of these labels."""
        return cls(tuple(Requirement(key, "=", (_text(key, value),)) for key, value in labels.items()))

    @classmethod
    def from_object(cls, selector: Mapping[str, Any] | LabelSelector | None) -> LabelSelection:
        """From a selector inside an object (``spec.selector``), as a dict in wire form or as a model."""
        if selector is None:
            return cls.NOTHING
        labels = LabelSelection.of(_field(selector, "matchLabels", "match_labels") or {})
        expressions = _field(selector, "matchExpressions", "match_expressions") or ()
        return cls((*labels.requirements, *map(_requirement, expressions)))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels (None: without any) is meant."""
        return all(requirement.matches(labels or {}) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


LabelSelection.NOTHING = LabelSelection((Requirement("nothing", "exists"), Requirement("nothing", "!")))


def label_selection(value: LabelSelection | LabelSelector | Mapping[str, str] | str) -> LabelSelection:
    """A selection from whatever a caller may write: a text, labels to equal, or a selector."""
    if isinstance(value, LabelSelection):
        return value
    if isinstance(value, str):
        return LabelSelection.parse(value)
    if isinstance(value, Mapping):
        return LabelSelection.of(value)
    if hasattr(value, "match_labels"):
        return LabelSelection.from_object(value)
    raise TypeError(f"cannot select by labels with {value!r}; write 'app=web' or {{'app': 'web'}}")


def _requirement(expression: Mapping[str, Any] | LabelSelectorRequirement) -> Requirement:
    key, operator = _field(expression, "key", "key"), _field(expression, "operator", "operator")
    if operator not in _IN_OBJECTS:
        raise ValueError(f"{_quoted(str(operator))} is not a valid label selector operator")
    values = _field(expression, "values", "values") or ()
    return Requirement(key, _IN_OBJECTS[operator], tuple(_text(key, value) for value in values))


def _field(thing: object, on_the_wire: str, in_python: str) -> Any:
    return thing.get(on_the_wire) if isinstance(thing, Mapping) else getattr(thing, in_python)


def _text(key: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        raise TypeError(
            f"{key!r} holds no label; a selector with matchLabels goes through LabelSelection.from_object"
        )
    raise TypeError(f"label {key!r} must be text, not {value!r}")


def _integer(text: str) -> int | None:
    """As Go reads an int64: ASCII digits and a sign, no blanks, no underscores."""
    if not re.fullmatch(r"[+-]?0*[0-9]{1,19}", text):
        return None
    return number if -(2**63) <= (number := int(text)) < 2**63 else None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_SYMBOL: Final = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+")


class _Parser:
    """The grammar of label selectors, one method to a rule.  The empty symbol is the end of the text."""

    def __init__(self, text: str) -> None:
        self._symbols: list[str] = [*_SYMBOL.findall(text), ""]
        self._at = 0

    def _peek(self) -> str:
        return self._symbols[self._at]

    def _take(self) -> str:
        symbol = self._symbols[self._at]
        self._at += symbol != ""
        return symbol

    def requirements(self) -> Iterable[Requirement]:
        while symbol := self._peek():
            if not _is_word(symbol) and symbol != "!":
                raise ValueError(f"found '{symbol}', expected: !, identifier, or 'end of string'")
            try:
                requirement = self._requirement()
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            yield requirement
            if (symbol := self._take()) not in ("", ","):
                raise ValueError(f"found '{symbol}', expected: ',' or 'end of string'")
            if symbol and not _is_word(self._peek()) and self._peek() != "!":
                raise ValueError(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!" and self._take()
        key = self._take()
        if not _is_word(key):
            raise ValueError(f"found '{key}', expected: identifier")
        if errors := label_key_errors(key):
            raise ValueError(f"<nil>: Invalid value: {_quoted(key)}: {'; '.join(errors)}")
        if absent:
            return Requirement(key, "!")
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        symbol = self._take()
        if symbol not in _BETWEEN:
            raise ValueError(f"found '{symbol}', expected: {', '.join(_BETWEEN.values())}")
        values = self._set() if symbol in ("in", "notin") else self._value()
        return Requirement(key, _BETWEEN[symbol], tuple(sorted(values)))

    def _value(self) -> set[str]:
        if self._peek() in ("", ","):
            return {""}
        if not _is_word(symbol := self._take()):
            raise ValueError(f"found '{symbol}', expected: identifier")
        return {symbol}

    def _set(self) -> set[str]:
        if (symbol := self._take()) != "(":
            raise ValueError(f"found '{symbol}' expected: '('")
        if not _is_word(symbol := self._peek()) and symbol not in (",", ")"):
            raise ValueError(f"found '{symbol}', expected: ',', ')' or identifier")
        values = set()
        symbol = ""
        while symbol != ")":  # each turn reads one value, which may be empty, and what ends it
            word = self._take() if _is_word(self._peek()) else ""
            values.add(word)
            symbol = self._take()
            if symbol not in (",", ")"):
                expected = "',' or ')'" if word else "',', or identifier"
                raise ValueError(f"found '{symbol}', expected: {expected}")
        return values


def _is_word(symbol: str) -> bool:
    return symbol[:1] not in ("", *"=!(),<>")


# ---- field selectors -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """What one field must, or must not, be."""

    field: str
    operator: Literal["=", "!="]
    value: str

    def matches(self, value: str | None) -> bool:
        return ((value or "") == self.value) == (self.operator == "=")

    def __str__(self) -> str:
        escaped = re.sub(r"[\\,=]", r"\\\g<0>", self.value)
        return f"{self.field}{self.operator}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelection:
    """Objects by their fields; all requirements must hold.  ``FieldSelection()`` is everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", tuple(sorted(self.requirements, key=str)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """From the text of ``kubectl --field-selector``: ``metadata.name=x,status.phase!=Running``."""
        found = [_field_requirement(term, text) for term in sorted(_terms(text))]
        return cls(tuple(each for each in found if each.field or each.value))  # Kubernetes drops a lone "="

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """Those whose fields have all of these values."""
        for field in fields:
            if re.search(r"[\\,=]|!$", field):
                raise ValueError(f"no field is called {field!r} (one is written as in metadata.name)")
        return cls(tuple(FieldRequirement(field, "=", value) for field, value in fields.items()))

    def matches(self, fields: Mapping[str, str] | Callable[[str], str | None]) -> bool:
        """Whether an object with these fields is meant; a field it does not have is empty."""
        get = fields if callable(fields) else fields.get
        return all(requirement.matches(get(requirement.field)) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def field_selection(value: FieldSelection | Mapping[str, str] | str) -> FieldSelection:
    """A selection from whatever a caller may write: a text, or fields to equal."""
    if isinstance(value, FieldSelection):
        return value
    if isinstance(value, str):
        return FieldSelection.parse(value)
    if isinstance(value, Mapping):
        return FieldSelection.of(value)
    raise TypeError(
        f"cannot select by fields with {value!r}; write 'metadata.name=x' or {{'metadata.name': 'x'}}"
    )


def _terms(text: str) -> list[str]:
    """The text cut at its commas, except at escaped ones."""
    return [match[0] for match in re.finditer(r"(?:[^\\,]|\\.?)+", text, re.DOTALL)]


def _field_requirement(term: str, text: str) -> FieldRequirement:
    match = re.fullmatch(r"(.*?)(!=|==?)(.*)", term, re.DOTALL)
    if match is None:
        raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")
    field, operator, value = match.groups()
    return FieldRequirement(field, "!=" if operator == "!=" else "=", _unescaped(value))


def _unescaped(text: str) -> str:
    written, characters = [], iter(text)
    for character in characters:
        if character == "\\":
            character = next(characters, "")  # noqa: PLW2901
            if character not in ("\\", ",", "="):
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{character}")
        elif character in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(character)}")
        written.append(character)
    return "".join(written)
