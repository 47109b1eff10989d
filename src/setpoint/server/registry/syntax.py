"""Says what is wrong with text that should be JSON, in the words of Go's decoder.

``problem(body)``: the first thing wrong, or "" if nothing is.  Run only on what another reader has refused
already.
"""

from __future__ import annotations

import re
from typing import Final

from setpoint.server.golang import quoted

_DEEPEST: Final = 10_000
_BLANK: Final = re.compile(rb"[ \t\r\n]*")
_ORDINARY: Final = re.compile(rb'[^"\\\x00-\x1f]*')
_DIGITS: Final = re.compile(rb"[0-9]*")
_END: Final = "unexpected end of JSON input"


class _Bad(ValueError):
    """Where reading ends."""


def problem(body: bytes) -> str:
    try:
        _scan(body)
    except _Bad as bad:
        return str(bad)
    return ""


def _scan(body: bytes) -> None:
    at, state, within = 0, "value", bytearray()
    while True:
        at = _skip(_BLANK, body, at)
        if state == "after" and not within and at == len(body):
            return
        one = _at(body, at)
        match state:
            case "value" | "first value":
                if one in b"{[":
                    within += one
                    if len(within) > _DEEPEST:
                        raise _bad(one, "exceeded max depth")
                    state = "first key" if one == b"{" else "first value"
                    at += 1
                elif one == b"]" and state == "first value":
                    within.pop()
                    at, state = at + 1, "after"
                else:
                    at, state = _scalar(body, at), "after"
            case "key" | "first key":
                if one == b"}" and state == "first key":
                    within.pop()
                    at, state = at + 1, "after"
                elif one == b'"':
                    at, state = _string(body, at + 1), "colon"
                else:
                    raise _bad(one, "looking for beginning of object key string")
            case "colon":
                if one != b":":
                    raise _bad(one, "after object key")
                at, state = at + 1, "value"
            case _:
                state = _after(one, within)
                at += 1


def _after(one: bytes, within: bytearray) -> str:
    """What comes after what stands behind a value."""
    if not within:
        raise _bad(one, "after top-level value")
    in_object = within[-1:] == b"{"
    if one == b",":
        return "key" if in_object else "value"
    if one != (b"}" if in_object else b"]"):
        raise _bad(one, "after object key:value pair" if in_object else "after array element")
    within.pop()
    return "after"


def _scalar(body: bytes, at: int) -> int:
    """Where the value that begins here ends."""
    one = _at(body, at)
    if one == b'"':
        return _string(body, at + 1)
    for word in (b"true", b"false", b"null"):
        if one == word[:1]:
            return _word(body, at, word)
    if one == b"-" or one.isdigit():
        return _number(body, at)
    raise _bad(one, "looking for beginning of value")


def _word(body: bytes, at: int, word: bytes) -> int:
    for place, wanted in enumerate(word.decode()):
        one = _at(body, at + place)
        if one != wanted.encode():
            raise _bad(one, f"in literal {word.decode()} (expecting '{wanted}')")
    return at + len(word)


def _string(body: bytes, at: int) -> int:
    while True:
        at = _skip(_ORDINARY, body, at)
        one = _at(body, at)
        if one == b'"':
            return at + 1
        if one != b"\\":
            raise _bad(one, "in string literal")
        escaped = _at(body, at + 1)
        at += 2
        if escaped == b"u":
            for _ in range(4):
                digit = _at(body, at)
                if digit not in b"0123456789abcdefABCDEF":
                    raise _bad(digit, "in \\u hexadecimal character escape")
                at += 1
        elif escaped not in b'"\\/bfnrt':
            raise _bad(escaped, "in string escape code")


def _number(body: bytes, at: int) -> int:
    if _at(body, at) == b"-":
        at += 1
        if not _at(body, at).isdigit():
            raise _bad(_at(body, at), "in numeric literal")
    at = at + 1 if _at(body, at) == b"0" else _skip(_DIGITS, body, at)
    if body[at : at + 1] == b".":
        at = _digits(body, at + 1, "after decimal point in numeric literal")
    if body[at : at + 1] in (b"e", b"E"):
        at += 2 if body[at + 1 : at + 2] in (b"+", b"-") else 1
        at = _digits(body, at, "in exponent of numeric literal")
    return at


def _digits(body: bytes, at: int, where: str) -> int:
    if not _at(body, at).isdigit():
        raise _bad(_at(body, at), where)
    return _skip(_DIGITS, body, at)


def _skip(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    match = pattern.match(body, at)
    return match.end() if match else at


def _at(body: bytes, at: int) -> bytes:
    if at >= len(body):
        raise _Bad(_END)
    return body[at : at + 1]


def _bad(one: bytes, where: str) -> _Bad:
    shown = "\\'" if one == b"'" else '"' if one == b'"' else quoted(one.decode("latin-1"))[1:-1]
    return _Bad(f"invalid character '{shown}' {where}")
