"""Finds a text that a pattern matches: a plain one, and a short one, always the same.

Of several letters the plainest is taken, of several ways the first, and what may be repeated is there as
seldom as may be.  Where that is not enough for who asks (``is_right``: too short, say), once more each time.

None for a pattern that ``re`` may read otherwise than the server does (``registry/crd/patterns.py``), and for
one that wants letters that are not plain.  Pure; asked by ``workload.py``.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, Final

from setpoint.server.registry.crd.patterns import parsed_pattern

# 1 comes before 0, with which few numbers begin.
_PLAIN: Final = (
    "a1" + string.ascii_lowercase + string.digits + string.ascii_uppercase + string.punctuation + " "
)
_CATEGORIES: Final = {
    "DIGIT": string.digits,
    "WORD": string.ascii_letters + string.digits + "_",
    "SPACE": string.whitespace,
}
_MOST: Final = 64  # repetitions that are tried
_LONGEST: Final = 1000  # a repetition in a repetition soon is very long


def matching(pattern: str, is_right: Callable[[str], bool]) -> str | None:
    """A text that a pattern matches and that is right; None if none comes to mind."""
    parsed = parsed_pattern(pattern)
    if parsed is None:
        return None
    texts = (_text(parsed, times) for times in range(_MOST + 1))
    try:
        return next((each for each in takewhile(_is_short, texts) if is_right(each)), None)
    except LookupError:
        return None


def _is_short(text: str) -> bool:
    return len(text) <= _LONGEST


def _text(parsed: Iterable[tuple[Any, Any]], times: int) -> str:
    """What a pattern matches, its parts repeated so often where they may be; LookupError if none is known."""
    return "".join(_one(str(operator), argument, times) for operator, argument in parsed)


def _one(operator: str, argument: Any, times: int) -> str:
    match operator:
        case "AT":
            return ""
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return _letter(lambda each: ord(each) != argument)
        case "ANY":
            return _PLAIN[0]
        case "IN":
            return _letter(lambda each: _is_in(argument, each))
        case "SUBPATTERN":
            return _text(argument[3], times)
        case "BRANCH":
            return _text(argument[1][0], times)
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, body = argument
            return _text(body, times) * min(max(int(least), times), int(most))
        case _:
            raise LookupError(f"{operator} is not known")


def _letter(is_one: Callable[[str], bool]) -> str:
    for each in _PLAIN:
        if is_one(each):
            return each
    raise LookupError("no plain letter is one of these")


def _is_in(members: Iterable[tuple[Any, Any]], letter: str) -> bool:
    """Whether a letter is one of a class: ``[a-z_]``."""
    is_found, is_negated = False, False
    for operator, argument in members:
        match str(operator):
            case "NEGATE":
                is_negated = True
            case "LITERAL":
                is_found |= ord(letter) == argument
            case "RANGE":
                is_found |= argument[0] <= ord(letter) <= argument[1]
            case "CATEGORY":
                _, *no, name = str(argument).split("_")  # CATEGORY_NOT_DIGIT
                is_found |= (letter in _CATEGORIES[name]) is not bool(no)
    return is_found is not is_negated
