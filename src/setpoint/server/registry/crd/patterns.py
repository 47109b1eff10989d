"""Regular expressions as Go means them: linear in time, found anywhere, ASCII classes, ``$`` only at the
end.

``compiled`` gives a test for strings.  Short strings and simple patterns are tested by ``re``, which is
faster; all else by RE2, the very engine of Go's syntax, inside the CEL engine: ``re`` can take exponential
time.

Promises: no pattern hangs, as long as the engine is there (``engine.py`` says when it is not).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from setpoint.server.registry.crd import engine

_SHORT: Final = 256  # strings up to this may be tested by ``re``: two loops over it end in time
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}

_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "invalid repetition size": "invalid repeat count",
    "unexpected )": "unexpected )",
}  # RE2's words and Go's

Test = Callable[[str], bool]


class BadPattern(ValueError):
    """Go would not compile it; the text is what Go says."""


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Test:
    """Raises ``BadPattern``."""
    quick = _quick(pattern)
    if quick is not None and quick[1]:
        return _by_length(pattern, quick[0])
    slow = _by_engine(pattern)
    if slow is not None:
        return slow
    if quick is not None:
        return quick[0]
    raise BadPattern(f"error parsing regexp: not supported without the CEL engine: `{pattern}`")


def _by_engine(pattern: str) -> Test | None:
    try:
        return engine.pattern(pattern)
    except engine.PatternError as error:
        raise BadPattern(_explained(str(error))) from None


def _by_length(pattern: str, quick: Test) -> Test:
    """The engine is asked, and loaded, only for a long string."""

    def test(text: str) -> bool:
        if len(text) <= _SHORT:
            return quick(text)
        return (_by_engine(pattern) or quick)(text)

    return test


def _explained(said: str) -> str:
    """RE2's complaint in the words of Go."""
    for theirs, ours in _WORDS.items():
        if said.startswith(theirs):
            about = said[len(theirs) :].removeprefix(": ")
            return f"error parsing regexp: {ours}: `{about}`"
    problem, _, about = said.rpartition(": ")
    return f"error parsing regexp: {problem or said}: `{about if problem else ''}`"


def quick_pattern(pattern: str) -> re.Pattern[str] | None:
    """For whoever needs what was found, not only whether; None for what ``re`` may take long over."""
    quick = _quick(pattern)
    translated = _translated(pattern)
    if quick is None or not quick[1] or translated is None:
        return None
    return re.compile(translated, re.ASCII)


def parsed_pattern(pattern: str) -> Any:
    """The pattern as ``re`` reads it; None where that may be something else."""
    translated = _translated(pattern)
    if translated is None:
        return None
    try:
        return re._parser.parse(translated, re.ASCII)  # type: ignore[attr-defined]  # noqa: SLF001  # as below
    except (re.error, RecursionError, OverflowError):
        return None


def _quick(pattern: str) -> tuple[Test, bool] | None:
    """The pattern for ``re``, and whether it is sure to end in time; None if it cannot be said to ``re``."""
    translated = _translated(pattern)
    if translated is None:
        return None
    try:
        found = re.compile(translated, re.ASCII)
        parsed = re._parser.parse(translated, re.ASCII)  # type: ignore[attr-defined]  # noqa: SLF001  # there is no other reader of patterns
    except (re.error, RecursionError, OverflowError):
        return None
    search = found.search
    return (lambda text: search(text) is not None), _loops(parsed) <= 2


_MANY: Final = 99  # too many loops


def _loops(parsed: Any) -> int:
    """How many unbounded loops there are; a loop in a loop is too many."""
    total = 0
    for operator, argument in parsed:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, body = argument
            inside = _loops(body)
            if int(most) > 1000 and str(most) != "MAXREPEAT":
                return _MANY  # Go takes no such count
            if int(most) > 64:
                total += _MANY if inside or _branches(body) else 1
            else:
                total += inside * int(most)
        elif name == "SUBPATTERN":
            total += _loops(argument[3])
        elif name == "BRANCH":
            total += sum(_loops(one) for one in argument[1])
        elif name in ("ASSERT", "ASSERT_NOT", "GROUPREF", "GROUPREF_EXISTS", "ATOMIC_GROUP"):
            return _MANY  # Go has none of these
    return total


def _branches(parsed: Any) -> bool:
    return any(
        str(operator) == "BRANCH" or (str(operator) == "SUBPATTERN" and _branches(argument[3]))
        for operator, argument in parsed
    )


_UNSURE: Final = re.compile(r"\\[pPQEC0-9]|\(\?[^:P)]|\(\?P[^<]|\{,|&&|\|\||~~|--|\\x\{|[?*+}]\+|\[\]|\[\^\]")


def _translated(pattern: str) -> str | None:
    """The pattern in the words of ``re``, or None where one would have to look closer."""
    body = pattern
    flags = ""
    if opening := re.match(r"\(\?([is]+)\)", body):
        flags, body = opening[0], body[opening.end() :]
    if _UNSURE.search(body.replace("\\\\", "")):
        return None
    for name, members in _CLASSES.items():
        body = body.replace(f"[:{name}:]", members)
    if "[:" in body:
        return None
    out: list[str] = []
    in_class = False
    letters = iter(body)
    for one in letters:
        if one == "\\":
            following = next(letters, "")
            if following in ("Z", "u", "U", "N"):
                return None
            out.append("\\Z" if following == "z" else one + following)
            continue
        if one == "[":
            if in_class:
                out.append("\\")
            in_class = True
        elif one == "]":
            in_class = False
        out.append("\\Z" if one == "$" and not in_class else one)
    return flags + "".join(out)
