"""Values that options take, read before anything is run: each says what is wrong with it, and what to give.

Used by ``prove.py`` and ``replay.py``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click


class Seconds(click.ParamType[float]):
    """A time to spend, as 60s, 10m or 1h."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value)
        scale = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
        try:
            seconds = float(text[:-1]) * scale if scale else float(text)
        except ValueError:
            self.fail(f"{text!r} is no time: write 60s, 10m or 1h", param, ctx)
        if not 0 < seconds < math.inf:
            self.fail(
                f"{text!r} is no time in which anything could be tried: write 60s, 10m or 1h", param, ctx
            )
        return seconds


class Spec(click.ParamType[dict[str, Any]]):
    """A JSON object."""

    name = "json"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        import msgspec  # noqa: PLC0415 - only here

        give = """give the spec as a JSON object in quotes, '{"replicas": 2}'"""
        try:
            spec = msgspec.json.decode(str(value))
        except msgspec.DecodeError as error:
            self.fail(f"{str(value)!r} cannot be read ({error}): {give}", param, ctx)
        if not isinstance(spec, dict):
            self.fail(f"{str(value)!r} is not an object: {give}", param, ctx)
        return spec


class Known(click.ParamType[str]):
    """A name of a class of faults, an oracle or a controller: one that means nothing proves nothing."""

    name = "name"

    def __init__(self, what: str, known: Callable[[], Sequence[str]]) -> None:
        self._what = what
        self._known = known

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        there = self._known()
        if value not in there:
            self.fail(f"there is no {self._what} {value}: there are {', '.join(there)}", param, ctx)
        return str(value)


class NewFile(click.Path):
    """A file that can be written, known before a minute is spent on what is to stand in it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.absolute().parent.is_dir():
            self.fail(f"there is no folder {path.parent}: make it first", param, ctx)
        return path
