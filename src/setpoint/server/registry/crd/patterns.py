"""Regular expressions from users, matched by RE2: linear time, in Go's syntax and with Go's meaning.

``compiled`` gives a test for strings.  It never falls back to ``re``, which can take exponential time:
without RE2 (the extra ``patterns``) every pattern is refused, with the reason.

RE2's time is linear in the length of the text, and for hostile patterns proportional to the size of the
pattern too.  So each match has a limit, and is charged to the request (``spending.toil``), which moves on
to a thread when it takes long.

``parsed_pattern`` reads a pattern without matching anything, for ``searching.py`` and the proof.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from setpoint.server.golang import valid_text
from setpoint.server.registry.crd.spending import toil

MISSING: Final = (
    "this server has no engine for regular expressions "
    "(pip install 'setpoint[patterns]'; it has no build for musl)"
)
_MAX_MEMORY: Final = 4 * 2**20  # bytes of one compiled pattern, with what RE2 remembers about texts
_MAX_STEPS: Final = 100_000_000  # of one match, in the worst case: about a second
_STEPS: Final = 100  # that RE2 does in a microsecond, in the worst case
_COMPILE: Final = 5  # microseconds for one instruction of a pattern
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


class CannotMatch(ValueError):
    """Whether a text matches cannot be said; the text of the error is the reason."""


class BadPattern(CannotMatch):
    """Go would not compile the pattern; the text is what Go says."""


class NoEngine(BadPattern):
    """RE2 is not installed."""

    def __init__(self) -> None:
        super().__init__(MISSING)


class TextTooLong(CannotMatch):
    """The text is longer than what may be matched with this pattern."""


def load() -> ModuleType | None:
    """RE2; None where it is not installed.  It is loaded for the first pattern."""
    try:
        import re2  # noqa: PLC0415
    except ImportError:
        return None
    found: ModuleType = re2
    return found


@lru_cache(maxsize=256)  # with _MAX_MEMORY, the bound of what hostile patterns can hold
def compiled(pattern: str) -> Test:
    """A test for texts, which raises ``TextTooLong``.  Raises ``BadPattern``."""
    re2 = load()
    if re2 is None:
        raise NoEngine
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MAX_MEMORY
    try:
        expression = re2.compile(_encoded(pattern), options)
    except re2.error as error:
        toil(_COMPILE * len(pattern))
        raise BadPattern(_explained(error.args[0].decode("utf-8", "replace"))) from None
    size = expression.programsize
    toil(_COMPILE * size)
    longest = _MAX_STEPS // size
    search = expression.search

    def test(text: str) -> bool:
        data = _encoded(text)
        if len(data) > longest:
            raise TextTooLong(f"at most {longest} bytes can be matched with this pattern")
        toil(len(data) * size // _STEPS)
        return search(data) is not None

    return test


def _encoded(text: str) -> bytes:
    return (text if text.isascii() else valid_text(text)).encode()


def _explained(said: str) -> str:
    """RE2's complaint in the words of Go."""
    for theirs, ours in _WORDS.items():
        if said.startswith(theirs):
            about = said[len(theirs) :].removeprefix(": ")
            return f"error parsing regexp: {ours}: `{about}`"
    problem, _, about = said.rpartition(": ")
    return f"error parsing regexp: {problem or said}: `{about if problem else ''}`"


def parsed_pattern(pattern: str) -> Any:
    """The pattern as ``re`` reads it; None where that may be something else."""
    translated = _translated(pattern)
    if translated is None:
        return None
    try:
        return re._parser.parse(translated, re.ASCII)  # type: ignore[attr-defined]  # noqa: SLF001  # there is no other reader of patterns
    except (re.error, RecursionError, OverflowError):
        return None


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
