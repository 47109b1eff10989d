"""Reads single fields out of an object's bytes, without decoding the rest.

A path names fields as they are on the wire: ``spec.nodeName``, ``spec.containers[*].image`` for every item of
a list, ``data["a.b"]`` for a name that holds a dot.  A path becomes a decoder that sees those fields and no
other; all else in the bytes is skipped over.  What is not there, or is not of this shape, has no value.
Values are text, as selectors and indexes compare it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import GenericAlias
from typing import Any, TypeAlias

import msgspec

from setpoint.api.selectors import FieldSelection
from setpoint.api.wire import Snapshot

Extract: TypeAlias = Callable[[Snapshot], tuple[str, ...]]

_STEP = re.compile(r"""\.?([^\s.\[\]"]+)|\["([^"]+)"\]|(\[\*\])""")
_FROM_METADATA: dict[str, Callable[[Snapshot], str]] = {
    "metadata.name": lambda snapshot: snapshot.metadata.name,
    "metadata.namespace": lambda snapshot: snapshot.metadata.namespace,
    "metadata.uid": lambda snapshot: snapshot.metadata.uid,
}


@lru_cache(maxsize=256)
def field(path: str) -> Extract:
    """A function that gives the values at ``path`` in an object; ValueError if it is no path."""
    known = _FROM_METADATA.get(path.removeprefix("."))
    if known is not None:
        return lambda snapshot: (text,) if (text := known(snapshot)) else ()
    decoder = msgspec.json.Decoder(_shape(_steps(path)))

    def extract(snapshot: Snapshot) -> tuple[str, ...]:
        try:
            found = decoder.decode(snapshot.data)
        except msgspec.DecodeError:  # something of another shape stands on the way
            return ()
        return tuple(dict.fromkeys(_leaves(found)))

    return extract


def has_fields(snapshot: Snapshot, selection: FieldSelection) -> bool:
    """Whether an object has the fields that a selection wants; of several values, any may be the one."""
    for requirement in selection.requirements:
        values = field(requirement.field)(snapshot) or ("",)
        if (requirement.value in values) != (requirement.operator == "="):
            return False
    return True


def _steps(path: str) -> tuple[str | None, ...]:
    """The names along a path; None stands for every item of a list."""
    steps: list[str | None] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            break
        steps.append(match[1] or match[2])
        at = match.end()
    if at < len(path) or not steps or steps[0] is None:
        raise ValueError(
            f"{path!r} is no path to a field: write it as in spec.nodeName, spec.containers[*].image or "
            'data["a.b"]'
        )
    return tuple(steps)


def _shape(steps: tuple[str | None, ...]) -> Any:
    """A type that has room for what is on the path, and for nothing else."""
    if not steps:
        return Any
    first, *rest = steps
    inner: Any = _shape(tuple(rest))
    if first is None:
        return GenericAlias(list, inner) | None
    return msgspec.defstruct("Step", [("value", inner, None)], rename={"value": first}, gc=False) | None


def _leaves(value: Any) -> Iterator[str]:
    match value:
        case None | dict():
            return
        case bool():
            yield "true" if value else "false"
        case str():
            yield value
        case int() | float():
            yield str(value)
        case list():
            for item in value:
                yield from _leaves(item)
        case _:
            yield from _leaves(value.value)
