"""Checks the parameters of the functions that authors pass: reconcilers, finalizers and mappers.  Pure.

1. A function that cannot be called as it will be is refused when it is passed, and not when the first object
   is reconciled; the error shows the signature it should have.
2. An annotation that contradicts what the function will be given is refused too.  A parameter without an
   annotation, or with one that cannot be resolved or compared (a Protocol, a union, a TypeVar), passes.

Used by ``operator.py`` and ``builder.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import UnionType
from typing import Any, Literal, TypeAlias, get_origin, get_type_hints

from setpoint.api.forms import Form, MetadataOnly, Untyped, form_of
from setpoint.api.meta import PartialObjectMetadata
from setpoint.controller.context import Context
from setpoint.controller.sync_context import SyncContext

CallForm: TypeAlias = Literal["async generator", "coroutine", "generator", "plain"]


def check_reconciler(function: Callable[..., Any], kind: type[Any] | Form[Any]) -> None:
    """Refuse a function that cannot be called with an object of the kind and a context."""
    is_async = call_form(function) in ("async generator", "coroutine")
    context = Context if is_async else SyncContext
    name, given = _name(function, "reconcile"), _wanted(kind)
    wanted = f"{'async ' if is_async else ''}def {name}({given}, ctx: {context.__name__})"
    problem = _problem(function, ("object", _class_of(kind)), ("context", context))
    if problem:
        raise TypeError(
            f"{_shown(function)} cannot reconcile {form_of(kind).gvk}: {problem}; write `{wanted}`"
        )


def check_mapper(function: Callable[..., Any], kind: type[Any] | Form[Any], *, client: bool = False) -> None:
    """Refuse a function that cannot map an object of the kind to Requests.

    With ``client`` it may also be ``async`` and take the client as its second parameter.
    """
    if not callable(function):
        raise TypeError(f"{function!r} cannot map {form_of(kind).gvk}: give a function that returns Requests")
    takes_client = client and takes_two(function)
    expected = [("object", _class_of(kind)), *([("client", None)] if takes_client else [])]
    problem = _problem(function, *expected)
    if not problem and takes_client and call_form(function) != "coroutine":
        problem = "it takes a client, whose methods must be awaited, and is not async"
    if problem:
        name, given = _name(function, "requests_for"), _wanted(kind)
        wanted = f"def {name}({given}) -> list[Request]"
        other = f"async def {name}({given}, client: Client) -> list[Request]"
        raise TypeError(
            f"{_shown(function)} cannot map {form_of(kind).gvk}: {problem}; "
            f"write `{wanted}`{f' or `{other}`' if client else ''}"
        )


def call_form(function: Callable[..., Any]) -> CallForm:
    """How a function is to be called."""
    plain = unwrap_partial(function)
    if inspect.isasyncgenfunction(plain):
        return "async generator"
    if inspect.iscoroutinefunction(plain):
        return "coroutine"
    return "generator" if inspect.isgeneratorfunction(plain) else "plain"


def unwrap_partial(function: Callable[..., Any]) -> Any:
    """The function inside a ``functools.partial``; of an object that can be called, its ``__call__``."""
    while isinstance(function, partial):
        function = function.func
    is_plain = inspect.isfunction(function) or inspect.ismethod(function)
    return function if is_plain else type(function).__call__


def takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function needs two positional arguments or more."""
    signature = _signature(function)
    required = [
        each
        for each in (signature.parameters.values() if signature else ())
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) and each.default is each.empty
    ]
    return len(required) >= 2


def _problem(function: Callable[..., Any], *expected: tuple[str, type[Any] | None]) -> str:
    """What is wrong with the parameters, where the arguments will be these; empty if nothing is."""
    signature = _signature(function)
    if signature is None:
        return ""
    try:
        bound = signature.bind(*[name for name, _ in expected])
    except TypeError:
        return f"it is called with {' and '.join(f'the {name}' for name, _ in expected)}"
    hints = _hints(function)
    for parameter, argument in bound.arguments.items():
        wanted = dict(expected).get(argument) if isinstance(argument, str) else None
        if wanted is not None and _contradicts(hints.get(parameter), wanted):
            return f"its {argument} will be a {wanted.__name__}, not a {_plain(hints[parameter]).__name__}"
    return ""


def _contradicts(hint: Any, wanted: type[Any]) -> bool:
    annotated = _plain(hint)
    if annotated is Any or not isinstance(annotated, type) or getattr(annotated, "_is_protocol", False):
        return False
    try:
        return not issubclass(wanted, annotated)
    except TypeError:  # a TypedDict, say, cannot be compared
        return False


def _plain(hint: Any) -> Any:
    """``dict`` of ``dict[str, Any]``; a union is no class."""
    return None if isinstance(hint, UnionType) else get_origin(hint) or hint


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # a builtin need not have one
        return None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations; none, if a name in them is only known to a type checker."""
    try:
        return get_type_hints(unwrap_partial(function))
    except Exception:  # noqa: BLE001 - an annotation may be any expression, and fail in any way
        return {}


def _class_of(kind: type[Any] | Form[Any]) -> type[Any] | None:
    """The class of the objects of a kind, as far as it is known."""
    if isinstance(kind, type):
        return kind
    if isinstance(kind, Untyped):
        return dict
    return PartialObjectMetadata if isinstance(kind, MetadataOnly) else None


def _wanted(kind: type[Any] | Form[Any]) -> str:
    """The first parameter as it should be written: ``webapp: WebApp``."""
    given = _class_of(kind)
    if given is None or given is dict:
        return "obj: dict[str, Any]" if given else "obj"
    return f"{given.__name__.lower()}: {given.__name__}"


def _name(function: Callable[..., Any], otherwise: str) -> str:
    name = getattr(function, "__name__", otherwise)
    return name if name.isidentifier() else otherwise


def _shown(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", repr(function))
    signature = _signature(function)
    return f"{name}({', '.join(map(_parameter, signature.parameters.values()))})" if signature else name


def _parameter(parameter: inspect.Parameter) -> str:
    hint = parameter.annotation
    shown = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    return parameter.name if hint is parameter.empty else f"{parameter.name}: {shown}"
