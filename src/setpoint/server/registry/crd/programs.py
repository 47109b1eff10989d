"""Expressions on the engine: text → tree, tree → something that gives a value.

Errors are told in cel-go's words, since these are what Kubernetes' clients see.  The engine ends a loop of
more than ten thousand steps by itself, so that no rule takes long.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from setpoint.server.registry.crd import engine
from setpoint.server.registry.crd.expressions import Node, Parsed, read, written
from setpoint.server.registry.crd.functions import FUNCTIONS, Function

MISSING: Final = "this server has no CEL engine (pip install 'setpoint[cel]'; it has no build for musl)"
OVER_BUDGET: Final = "operation cancelled: actual cost limit exceeded"
_ERRORS: Final = (
    (re.compile(r'Key not found in map : "?(.*?)"?', re.DOTALL), r"no such key: \1"),
    (re.compile(r"Index error: index=(-?[0-9]+).*"), r"index out of bounds: \1"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"No matching overloads found.*", re.DOTALL), "no such overload"),
    (re.compile(r"Iteration budget exceeded"), OVER_BUDGET),
    (re.compile(r'No value with name "(.*?)" found in Activation'), r"no such attribute(s): \1"),
)  # the engine's words and cel-go's

Program = Callable[[dict[str, Any]], Any]


class CompileError(ValueError):
    """The expression cannot be compiled; the text is the compiler's."""


class EvaluationError(ValueError):
    """The expression has no value on these data; the text is cel-go's."""


def parse(text: str) -> Parsed:
    """The tree of an expression.  Raises ``CompileError``."""
    try:
        return read(_environment().compile(text, disable_check=True).serialize())
    except TypeError:  # lone surrogates
        raise CompileError("ERROR: <input>:1:1: the text is not valid Unicode") from None
    except RuntimeError as error:
        raise CompileError(engine.plain(str(error))) from None


def program(root: Node, more: tuple[Function, ...] = ()) -> Program:
    """What evaluates a tree on the values of its names.  Raises ``CompileError``; it, ``EvaluationError``.

    ``more`` are functions that rules of schemas do not have.
    """
    try:
        compiled = _environment(more).deserialize(written(root))
    except RuntimeError as error:
        raise CompileError(engine.plain(str(error))) from None

    def run(data: dict[str, Any]) -> Any:
        try:
            found = compiled.eval(data=data)
        except (RuntimeError, UnicodeError) as error:
            raise EvaluationError(_told(str(error))) from None
        if str(found.type()) == "ERROR":
            raise EvaluationError(_told(str(found.value())))
        return found.plain_value()

    return run


def _told(error: str) -> str:
    said = engine.plain(error)
    for theirs, ours in _ERRORS:
        if found := theirs.fullmatch(said):
            return found.expand(ours)
    return said


@cache
def _environment(more: tuple[Function, ...] = ()) -> Any:
    """Every function that a rule may call; types are ``checking.py``'s business."""
    loaded = engine.load()
    if loaded is None:
        raise CompileError(MISSING)
    cel = loaded.cel
    declared: dict[str, list[Any]] = {}
    for place, one in enumerate((*FUNCTIONS, *more)):
        first = cel.Type.LIST if one.on_list else cel.Type.DYN
        declared.setdefault(one.name, []).append(
            cel.Overload(
                id=f"kubernetes_{place}",
                return_type=cel.Type.DYN,
                parameters=[first, *([cel.Type.DYN] * (one.size - 1))],
                is_member=one.is_member,
                impl=one.call,
            )
        )
    library = cel.CelExtension(
        "kubernetes", [cel.FunctionDecl(name, found) for name, found in declared.items()]
    )
    return cel.NewEnv(
        variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN},
        extensions=[
            loaded.strings.ExtStrings(),
            loaded.optional.ExtOptional(),
            library,
        ],
    )
