"""Paths into a schema, as ``fieldPath`` of a rule and ``jsonPath`` of a selectable field write them.

``.spec.size`` and ``.spec['my.field']``: nothing but fields that the schema has, and keys of its maps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from setpoint.server.registry.crd.schemas import Schema, child, extra, has_extra, key, properties

_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}
_TOKEN: Final = re.compile(r"'(?:[^']|(?<=\\)')*'|[.\[\]]|[^.\[\]']+[^.\[\]]*")


class InvalidPath(ValueError):
    """The path leads nowhere; the text is Kubernetes'."""


class Resolved(NamedTuple):
    path: str
    schema: Schema | None  # None where the schema says nothing more


def resolved(text: str, schema: Schema, *, allows_brackets: bool = True) -> Resolved:
    """Raises ``InvalidPath``."""
    path = ""
    found: Schema | None = schema
    tokens = iter(_TOKEN.findall(text))
    for sign in tokens:
        if sign == "[":
            if not allows_brackets:
                raise InvalidPath("array notation is not allowed")
            name = _unquoted(_following(tokens))
            path, found = _step(path, found, name)
            if (closing := _following(tokens)) != "]":
                raise InvalidPath(f"expected ] but got {closing}")
        elif sign == ".":
            path, found = _step(path, found, _following(tokens))
        else:
            raise InvalidPath(f"expected [ or . but got: {sign}")
    return Resolved(path, found)


def _following(tokens: Iterator[str]) -> str:
    found = next(tokens, None)
    if found is None:
        raise InvalidPath("unexpected end of JSON path")
    return found


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise InvalidPath(f"expected single quoted string but got {token}")

    def unescape(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise InvalidPath(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", unescape, token[1:-1])


def _step(path: str, schema: Schema | None, name: str) -> tuple[str, Schema | None]:
    if schema is not None and properties(schema):
        if name not in properties(schema):
            raise InvalidPath("does not refer to a valid field")
        return child(path, name), properties(schema)[name]
    if schema is not None and has_extra(schema):
        return key(path, name), extra(schema)
    raise InvalidPath("does not refer to a valid field")
