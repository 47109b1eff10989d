"""YAML text to plain JSON values and back; the one module that knows PyYAML.

Kubernetes reads YAML as another way to write JSON.  So do we, by the same rules:

1. What comes out is dict with text keys, list, str, int, float, bool and None.  A date stays the text it
   is; ``yes``, ``on`` and ``y`` are true, ``017`` is fifteen, ``1e3`` is a number, ``1:30`` is text.
2. What JSON cannot say is refused: keys that are not text, infinity, tags other than JSON's own.
3. A key that appears twice is refused: one of the two would be lost without a word.
4. Text made to exhaust us is refused: nothing may nest deeper than 100, and aliases may repeat at most
   100,000 values.
5. What ``dump`` writes reads back as the same values, here and by Kubernetes' own reader.

Errors are ValueErrors that say where, and what to do.  Reading files is the caller's business.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import NoneType
from typing import Any

import yaml

from setpoint.api.model import to_wire

_DEPTH = 100
_REPEATED = 100_000

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where it is there: ten times faster
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def load(text: str | bytes) -> Any:
    """The values of the one document in the text; None if it is empty."""
    documents = load_all(text)
    if len(documents) > 1:
        raise ValueError(f"there are {len(documents)} YAML documents where one is expected; use load_all")
    return documents[0] if documents else None


def load_all(text: str | bytes) -> list[Any]:
    """The values of every document in the text that is not empty."""
    with _said_where():
        return [value for value in _documents(yaml.parse(text, Loader=_Parser)) if value is not None]


def load_first(text: str | bytes, doubled: list[tuple[int, str]]) -> Any:
    """The values of the first document, as a server reads it from strangers; None if it is empty.

    Aliases are refused: few bytes could stand for many.  Of a key that appears twice the last one counts;
    its value's line and it are added to ``doubled``.
    """
    with _said_where():
        return next(_documents(yaml.parse(text, Loader=_Parser), doubled), None)


def dump(value: object) -> str:
    """Models or plain JSON values as YAML, in the order they are in; a list of objects is one list."""
    return str(yaml.dump(to_wire(value), Dumper=_Writer, sort_keys=False, allow_unicode=True, width=1000))


def dump_all(values: list[Any]) -> str:
    """Several documents, divided by ``---``."""
    return "---\n".join(dump(value) for value in values)


# Reading: from parser events, for a tree of nodes would be built by recursion of any depth.


@contextmanager
def _said_where() -> Iterator[None]:
    """What the parser refuses is said as everything else is: where, and what."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(f"{_where(mark)}: {error.problem or error.context}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"this is not YAML text in UTF-8: {error}") from error


def _documents(events: Iterator[yaml.Event], doubled: list[tuple[int, str]] | None = None) -> Iterator[Any]:
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            yield _Document(events, doubled).value(next(events), 0)


class _Document:
    """One document while it is read."""

    def __init__(self, events: Iterator[yaml.Event], doubled: list[tuple[int, str]] | None) -> None:
        self._events = events
        self._doubled = doubled  # None: what is read is our own; keys may not appear twice, aliases may
        self._anchors: dict[str, Any] = {}
        self._repeated = 0

    def value(self, event: Any, depth: int) -> Any:
        if depth > _DEPTH:
            raise _refused(event, f"this nests deeper than {_DEPTH}")
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event)
        if isinstance(event, yaml.MappingStartEvent):
            _check_tag(event, "tag:yaml.org,2002:map")
            value: Any = self._mapping(depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            _check_tag(event, "tag:yaml.org,2002:seq")
            value = self._sequence(depth)
        else:
            value = _scalar(event)
        if event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _sequence(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self.value(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<":
                merged = self._merged(next(self._events), depth) | merged
                continue
            key = self.value(event, depth + 1)
            if not isinstance(key, str):
                raise _refused(event, "a key must be text; put it in quotes")
            if key in items and self._doubled is None:
                raise _refused(event, f"the key {key!r} is already there; remove one")
            value: Any = next(self._events)
            if key in items and self._doubled is not None:
                self._doubled.append((value.start_mark.line + 1, key))
            items[key] = self.value(value, depth + 1)
        return merged | items

    def _merged(self, event: yaml.Event, depth: int) -> dict[str, Any]:
        """What ``<<`` brings in: one mapping, or a list of which the first has the last word."""
        value = self.value(event, depth + 1)
        merged: dict[str, Any] = {}
        for mapping in reversed(value if isinstance(value, list) else [value]):
            if not isinstance(mapping, dict):
                raise _refused(event, "<< takes a mapping, or a list of mappings")
            merged |= mapping
        return merged

    def _aliased(self, event: yaml.AliasEvent) -> Any:
        if self._doubled is not None:
            raise _refused(event, "aliases are not taken here: write the value out")
        if event.anchor not in self._anchors:
            raise _refused(event, f"no value before this is called &{event.anchor}")
        try:
            return self._copy(self._anchors[event.anchor])
        except OverflowError:
            raise _refused(event, f"aliases repeat more than {_REPEATED:,} values") from None

    def _copy(self, value: Any) -> Any:
        """A value of its own, so that changing one place does not change another."""
        self._repeated += 1
        if self._repeated > _REPEATED:
            raise OverflowError
        if isinstance(value, dict):
            return {key: self._copy(item) for key, item in value.items()}
        return [self._copy(item) for item in value] if isinstance(value, list) else value


_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON")
_FALSE = re.compile(r"n|N|no|No|NO|false|False|FALSE|off|Off|OFF")
_INT = re.compile(r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MOST_DIGITS = 250  # in any base that is less than the largest float
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def _scalar(event: Any) -> Any:
    text: str = event.value
    tag = event.tag
    if tag in ("!", "tag:yaml.org,2002:str") or (tag is None and not event.implicit[0]):
        return text
    value = _plain(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise _refused(event, f"JSON has no {text}; put it in quotes if it is text")
    if tag is not None and tag != f"tag:yaml.org,2002:{_NAMES[type(value)]}":
        raise _refused(event, f"{text!r} is no {tag}; leave out the tag")
    return value


_NAMES = {NoneType: "null", bool: "bool", int: "int", float: "float", str: "str"}


def _plain(text: str) -> bool | int | float | str | None:
    """What text without quotes stands for."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    digits = text.replace("_", "")
    if _INT.fullmatch(digits):
        if len(digits) > _MOST_DIGITS:
            return math.inf
        number = _int(digits)
        return number if -(2**63) <= number < 2**64 else float(number)
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        return int(value) if value.is_integer() and abs(value) < 1e21 else value  # as Go would print it
    if _NO_NUMBER.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def _int(digits: str) -> int:
    if re.fullmatch(r"[-+]?0[0-7]+", digits):
        return int(digits, 8)
    return int(digits, 0)


def _check_tag(event: Any, expected: str) -> None:
    if event.tag not in (None, "!", expected):
        raise _refused(event, f"the tag {event.tag} has no meaning in JSON; remove it")


def _refused(event: Any, why: str) -> ValueError:
    return ValueError(f"{_where(event.start_mark)}: {why}")


def _where(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else "YAML"


# Writing.


class _Writer(_Dumper):  # type: ignore[misc]
    """Puts in quotes all text that some reader would take for something else."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(writer: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    if style is None and not isinstance(_plain(text), str):
        style = "'"
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _text)
