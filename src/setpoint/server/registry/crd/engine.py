"""The CEL engine, behind one door: ``cel-expr-python``, Google's own C++ core.

It is loaded when the first rule needs it, since it costs memory; where there is no build of
it (musl) it is missing, and then rules are refused when a definition is written, never ignored.

Decides: whether there is an engine.  Expressions are ``programs.py``'s, patterns ``patterns.py``'s.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, NamedTuple

_CODES: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_WORDS: Final = tuple(
    (re.compile(theirs), ours)
    for theirs, ours in (
        (r"'\\u003F'", "'?'"),  # which ANTLR writes so in C++
        (r"\nERROR: <input>:4294967295:0: <<nil>> parsetree", ""),
        (
            r"\b(?:all|exists|exists_one)\(\) variable name must be a simple identifier",
            "argument must be a simple name",
        ),
        (r"\b(?:map|filter)\(\) variable name must be a simple identifier", "argument is not an identifier"),
        (r"has\(\) argument must be a field selection", "invalid argument to has() macro"),
        (
            r"no viable alternative at input '\.(true|false|null|in)'",
            r"mismatched input '\1' expecting IDENTIFIER",
        ),
        (r"Invalid bytes literal: [^\n]*", "unable to unescape string"),
    )
)


class Engine(NamedTuple):
    """The modules of the library."""

    cel: Any
    strings: Any
    optional: Any


@cache
def load() -> Engine | None:
    """The engine; None where there is none."""
    try:
        from cel_expr_python import cel  # noqa: PLC0415  # only when it is needed
        from cel_expr_python.ext import ext_optional, ext_strings  # noqa: PLC0415
    except ImportError:
        return None
    return Engine(cel, ext_strings, ext_optional)


def plain(error: str) -> str:
    """What the engine says, without its codes, in cel-go's words."""
    told = _CODES.sub("", error)
    for theirs, ours in _WORDS:
        told = theirs.sub(ours, told)
    return told
