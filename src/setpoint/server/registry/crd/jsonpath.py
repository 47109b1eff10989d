"""Reading a value out of an object by a JSON path, as columns and selectors of custom kinds name it.

``reader`` compiles a path.  What is known: fields (``.spec.size``, ``['my.field']``), places (``[0]``,
``[-1]``), slices, wildcards, ``..`` and filters that compare a field with a text or a number
(``[?(@.type=="Ready")]``).

A column that cannot be read is empty, as in Kubernetes; ``Unreadable`` where a path cannot be understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from setpoint.server.golang import parse_int

Step = Callable[[Any], Iterator[Any]]
Read = Callable[[Any], "list[Any]"]

_TOKEN = re.compile(
    r"(?P<deep>\.\.)|\.?(?P<all>\*)|\.(?P<name>(?:\\.|[^.\[\]])+)"
    r"|\[\s*'(?P<quoted>(?:[^'\\]|\\.)*)'\s*\]|\[\s*\"(?P<doubled>(?:[^\"\\]|\\.)*)\"\s*\]"
    r"|\[\s*(?P<star>\*)\s*\]|\[\?\((?P<filter>.*?)\)\]|\[(?P<slice>[-+0-9:,\s]+)\]"
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FILTER = re.compile(r"@(?P<path>[^=!<>\s]*+)\s*+(?:(?P<sign>==|!=|<=|>=|<|>)\s*+(?P<value>.+))?")
_LONGEST = 10_000  # characters of a path


class Unreadable(ValueError):
    """The path is not one."""


def find(path: str, value: Any) -> list[Any]:
    """What a path finds in a value; nothing where it cannot be understood."""
    try:
        return reader(path)(value)
    except Unreadable:
        return []


@lru_cache(maxsize=1024)
def reader(path: str) -> Read:
    """Compile a path such as ``.spec.size``; it finds none, one or several values."""
    if len(path) > _LONGEST:
        raise Unreadable(f"the path is longer than {_LONGEST} characters")
    steps = _steps(path.strip())

    def read(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [below for one in found for below in step(one)]
            if not found:
                break
        return found

    return read


def _steps(path: str) -> list[Step]:
    steps: list[Step] = []
    place = 0
    if path and path[0] not in ".[$@":
        path = "." + path
    path = path.lstrip("$@")
    while place < len(path):
        found = _TOKEN.match(path, place)
        if found is None:
            if path[place:] == ".":
                break
            raise Unreadable(f"cannot read {path!r} from {path[place:]!r} on")
        steps.append(_step(found))
        place = found.end()
        if found["deep"] and place < len(path) and path[place] not in ".[":
            path = path[:place] + "." + path[place:]
    return steps


def _step(found: re.Match[str]) -> Step:
    if found["deep"]:
        return _descendants
    if found["all"] or found["star"]:
        return _every
    if found["filter"] is not None:
        return _filtered(found["filter"])
    if found["slice"] is not None:
        return _places(found["slice"])
    name = found["name"] or found["quoted"] or found["doubled"] or ""
    return _field(re.sub(r"\\(.)", r"\1", name))


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if type(value) is dict and name in value:
            yield value[name]

    return step


def _every(value: Any) -> Iterator[Any]:
    if type(value) is list:
        yield from value
    elif type(value) is dict:
        yield from (value[name] for name in sorted(value))


def _descendants(value: Any) -> Iterator[Any]:
    yield value
    for one in _every(value):
        yield from _descendants(one)


def _places(text: str) -> Step:
    try:
        parts = [[_bound(one) for one in part.split(":")] for part in text.split(",")]
    except ValueError as error:
        raise Unreadable(str(error)) from None

    def step(value: Any) -> Iterator[Any]:
        if type(value) is not list:
            return
        for numbers in parts:
            if len(numbers) == 1:
                at = numbers[0] or 0
                if -len(value) <= at < len(value):
                    yield value[at]
            else:
                yield from value[slice(*numbers[:3])]

    return step


def _bound(text: str) -> int | None:
    return parse_int(text.strip()) if text.strip() else None


def _filtered(text: str) -> Step:
    found = _FILTER.fullmatch(text.strip())
    if found is None:
        raise Unreadable(f"cannot read the filter {text!r}")
    read, sign = reader(found["path"]) if found["path"] else (lambda value: [value]), found["sign"]
    wanted = _literal(found["value"]) if found["value"] is not None else None

    def step(value: Any) -> Iterator[Any]:
        if type(value) is not list:
            return
        for one in value:
            seen = read(one)
            if seen and (sign is None or _compare(seen[0], sign, wanted)):
                yield one

    return step


def _literal(text: str) -> Any:
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    if _DECIMAL.fullmatch(text):
        return float(text)
    try:
        return parse_int(text)
    except ValueError:
        raise Unreadable(f"cannot read the value {text!r}") from None


def _compare(seen: Any, sign: str, wanted: Any) -> bool:
    if sign == "==":
        return bool(seen == wanted)
    if sign == "!=":
        return bool(seen != wanted)
    if isinstance(seen, str) != isinstance(wanted, str) or not isinstance(seen, str | int | float):
        return False
    return bool({"<": seen < wanted, "<=": seen <= wanted, ">": seen > wanted, ">=": seen >= wanted}[sign])
