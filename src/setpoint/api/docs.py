"""What the author of a class wrote about it: its docstring, and the texts right below its fields.

    class WebAppSpec(Model):
        "What to run, and how much of it."

        image: str
        "Where the container image is found."

Python keeps only the first of the two; the second is read from the source, if that can be found.  Where it
cannot (a notebook, a frozen program), ``Annotated[str, Description("...")]`` says the same.

Read by ``schema.py``, when a definition is written and not before.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, get_origin

Docs = Mapping[str, str]


def class_doc(cls: Any) -> str:
    """The docstring of the class itself, "" if it has none."""
    return inspect.cleandoc(vars(get_origin(cls) or cls).get("__doc__") or "")


def field_docs(cls: Any) -> Docs:
    """The texts below the fields of a class and of those it inherits from, by attribute name."""
    found: dict[str, str] = {}
    for one in reversed((get_origin(cls) or cls).__mro__):
        found |= _module_docs(one.__module__).get(one.__qualname__, {})
    return found


@lru_cache(maxsize=64)
def _module_docs(name: str) -> Mapping[str, Docs]:
    if name.partition(".")[0] in ("builtins", "msgspec", "setpoint"):
        return {}  # there are none; and the generated kinds are long to parse
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    return dict(_classes(tree.body, ""))


def _classes(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, Docs]]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            name = prefix + statement.name
            yield name, dict(_fields(statement.body))
            yield from _classes(statement.body, f"{name}.")
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes(statement.body, f"{prefix}{statement.name}.<locals>.")
        else:
            for inner in ("body", "orelse", "handlers", "finalbody"):  # if, try, with
                yield from _classes(getattr(statement, inner, ()), prefix)


def _fields(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, below in pairwise(body):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)
