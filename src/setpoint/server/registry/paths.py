"""Where values stand, and what is told of them: neither grows with the square of a body.

A key may be as long as the body lets it, and stand above as many values as the rest has room for.  So a
``Path`` is a chain of steps, whose text is made only where it is told; and ``Told`` keeps the first texts,
until they are enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from setpoint.server.statuses import MOST_TOLD

_MOST_TEXTS: Final = 100  # as many as Go collects


class Path:
    """Where a value stands; its text is made when asked for."""

    __slots__ = ("above", "is_empty", "is_told", "step")

    def __init__(self, above: Path | None = None, step: str = "", *, is_told: bool = True) -> None:
        self.above = above
        self.step = step
        self.is_empty: bool = not step and (above is None or above.is_empty)
        self.is_told = is_told

    def __repr__(self) -> str:
        return f"<Path {self}>"

    def __str__(self) -> str:
        steps: list[str] = []
        at: Path | None = self
        while at is not None:
            steps.append(at.step)
            at = at.above
        return "".join(reversed(steps))

    @property
    def text(self) -> str:
        """As an error names it: nothing stands before the first name."""
        return str(self).removeprefix(".")

    def below(self, step: str) -> Path:
        return Path(self, step) if self.is_told else _SILENT

    def child(self, name: str) -> Path:
        return self.below(f".{name}")

    def key(self, name: str | int) -> Path:
        return self.below(f"[{name}]")

    def silent(self) -> Path:
        """In its place where what is found may be thrown away: that something is wrong, and not where."""
        return _SILENT_ROOT if self.is_empty else _SILENT


_SILENT_ROOT: Final = Path(is_told=False)
_SILENT: Final = Path(step="…", is_told=False)


class Told:
    """The first texts, none twice, as many as are told."""

    __slots__ = ("_left", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._left = MOST_TOLD

    def __repr__(self) -> str:
        return f"<Told {len(self.texts)} texts>"

    @property
    def is_full(self) -> bool:
        """Whether nothing more is kept."""
        return self._left <= 0 or len(self.texts) >= _MOST_TEXTS

    def add(self, text: str) -> None:
        if not self.is_full:
            self._left -= len(text)  # also of one that is there already: it was made
            if text not in self.texts:
                self.texts.append(text)

    def add_all(self, texts: Iterable[str]) -> None:
        for one in texts:
            if self.is_full:
                break
            self.add(one)
