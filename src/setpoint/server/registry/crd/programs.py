"""Expressions: text → tree, by the engine; tree → something that gives a value, and is paid for.

Errors are told in cel-go's words, since these are what Kubernetes' clients see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from setpoint.server.registry.crd import engine
from setpoint.server.registry.crd.checking import Checked
from setpoint.server.registry.crd.evaluating import PlanError, planned
from setpoint.server.registry.crd.expressions import Parsed, messages, read
from setpoint.server.registry.crd.spending import OverBudget, Purse, metered
from setpoint.server.registry.crd.values import EvaluationError

__all__ = ["CompileError", "EvaluationError", "OverBudget", "Program", "Purse", "parse", "program"]
MISSING: Final = "this server has no CEL engine (pip install 'setpoint[cel]'; it has no build for musl)"
_TOO_DEEP: Final = "ERROR: <input>:1:1: expression recursion limit exceeded"
_NO_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType({})

Program = Callable[[dict[str, Any], Purse], Any]


class CompileError(ValueError):
    """The expression cannot be compiled; the text is the compiler's."""


def parse(text: str) -> Parsed:
    """The tree of an expression.  Raises ``CompileError``."""
    try:
        found = read(_environment().compile(text, disable_check=True).serialize())
        for one in messages(found.root):  # which stand where their brace is
            found.positions[one.id] = max(0, text.find("{", found.positions.get(one.id, 0)))
        return found
    except TypeError:  # lone surrogates
        raise CompileError("ERROR: <input>:1:1: the text is not valid Unicode") from None
    except RecursionError:
        raise CompileError(_TOO_DEEP) from None
    except RuntimeError as error:
        raise CompileError(engine.plain(str(error))) from None


def program(checked: Checked, more: Mapping[str, Callable[..., Any]] = _NO_FUNCTIONS) -> Program:
    """What evaluates a tree on the values of its names.  Raises ``CompileError``.

    It raises ``EvaluationError`` where there is no value, and ``OverBudget`` where too little is left for it.
    ``more`` are functions that rules of schemas do not have.
    """
    try:
        run = planned(checked.root, checked.facts, more)
    except PlanError as error:
        raise CompileError(f"program instantiation failed: {error}") from None
    except RecursionError:
        raise CompileError(_TOO_DEEP) from None
    return lambda data, purse: metered(run, dict(data), purse)


@cache
def _environment() -> Any:
    """What the parser has to know: macros.  Types and functions are ``checking.py``'s business."""
    loaded = engine.load()
    if loaded is None:
        raise CompileError(MISSING)
    return loaded.cel.NewEnv(
        variables={"self": loaded.cel.Type.DYN, "oldSelf": loaded.cel.Type.DYN},
        extensions=[loaded.strings.ExtStrings(), loaded.optional.ExtOptional()],
    )
