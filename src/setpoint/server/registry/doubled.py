"""A JSON object in which a key appears twice.

Most readers keep the last and say nothing; Kubernetes names the key, and where it decodes into a type it
merges what both said.  ``bodies.py`` makes these, ``conform.py`` takes them apart, ``plain`` takes them
away.
"""

from __future__ import annotations

from typing import Any

from setpoint.server.golang import quoted
from setpoint.server.registry.paths import Path, Told


class Doubled(dict[str, Any]):
    """As a dict the last one counts; ``pairs`` has them all, in the order of the body."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def plain(value: Any) -> tuple[Any, list[str]]:
    """The value without any of them, and ``duplicate field "spec.a"`` for each key that appeared twice."""
    if _is_plain(value):
        return value, []
    told = Told()
    return _plain(value, Path(), told), told.texts


def _is_plain(value: Any) -> bool:
    """Whether there are none, as nearly always."""
    if value.__class__ is dict:
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if value.__class__ is list else not isinstance(value, dict | list)


def _plain(value: Any, path: Path, told: Told) -> Any:
    if isinstance(value, list):
        return [_plain(inner, path.key(index), told) for index, inner in enumerate(value)]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, inner in value.pairs if isinstance(value, Doubled) else value.items():
        below = path.child(key)
        if key in made and not told.is_full:
            told.add(f"duplicate field {quoted(below.text)}")
        made[key] = _plain(inner, below, told)
    return made
