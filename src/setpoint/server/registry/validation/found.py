"""What is wrong with an object: gathered field by field, in the order it is found.

Every module beside this one says which fields it looks at; this says how a finding is worded.  However much
is wrong, only so much is kept (``is_full``): an object is refused for what was found first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import msgspec

from setpoint.server.golang import same
from setpoint.server.statuses import OMITTED, FieldError, unsupported

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"
MOST: Final = 2**22  # characters of paths and details
EACH: Final = 100  # characters that an error counts for beside its own
_LARGE: Final = (list, dict, msgspec.Raw)


class Found:
    """The errors so far."""

    __slots__ = ("_left", "errors")

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self._left = MOST

    def __repr__(self) -> str:
        return f"<Found {len(self.errors)} errors>"

    @property
    def is_full(self) -> bool:
        """Whether nothing more is kept."""
        return self._left <= 0

    def _add(self, error: FieldError) -> None:
        if self._left > 0:
            self._left -= len(error.path) + len(error.detail) + EACH
            self.errors.append(error)

    def required(self, path: str, detail: str = "") -> None:
        self._add(FieldError("required", path, detail))

    def invalid(self, path: str, value: Any, detail: str) -> None:
        self._add(FieldError("invalid", path, detail, value))

    def unnamed(self, path: str, detail: str) -> None:
        """Something is invalid, and its value is not shown."""
        self._add(FieldError("invalid", path, detail, OMITTED))

    def told(self, path: str, value: Any, details: Iterable[str]) -> None:
        """One error for every text."""
        for detail in details:
            self._add(FieldError("invalid", path, detail, value))

    def forbidden(self, path: str, detail: str) -> None:
        self._add(FieldError("forbidden", path, detail))

    def duplicate(self, path: str, value: Any, detail: str = "") -> None:
        self._add(FieldError("duplicate", path, detail, value))

    def missing(self, path: str, value: Any, detail: str = "") -> None:
        """It names what is not there."""
        self._add(FieldError("not found", path, detail, value))

    def unsupported(self, path: str, value: Any, supported: Sequence[str]) -> None:
        self._add(unsupported(path, value, supported))

    def too_long(self, path: str, most: int) -> None:
        self._add(FieldError("too long", path, f"may not be more than {most} bytes"))

    def too_many(self, path: str, count: int, most: int) -> None:
        self._add(FieldError("too many", path, f"must have at most {most} items", count))

    # ── Rules that many fields share ────────────────────────────────────────────────────────────────

    def not_negative(self, path: str, value: int | None) -> None:
        if value is not None and value < 0:
            self.invalid(path, value, NEGATIVE)

    def one_of(self, path: str, value: Any, supported: Sequence[str]) -> None:
        """``supported`` is shown as it is given."""
        if value not in supported:
            self.unsupported(path, value, supported)

    def some_of(self, path: str, value: str | None, supported: Sequence[str]) -> None:
        """Required, and one of these."""
        if not value:
            self.required(path)
        elif value not in supported:
            self.unsupported(path, value, supported)

    def unique(self, path: str, value: str, seen: set[str]) -> None:
        if value in seen:
            self.duplicate(path, value)
        seen.add(value)

    def unchanged(self, path: str, new: Any, old: Any, shown: Any = OMITTED) -> None:
        """``shown`` is what the refusal shows, if it is not the new value itself."""
        if not same(new, old):
            self.invalid(path, new if shown is OMITTED else shown, IMMUTABLE)


def once(errors: list[FieldError]) -> list[FieldError]:
    """What is found twice is said once.  The texts tell; they are only made where nothing less does."""
    if len(errors) < 2:
        return errors
    kept: list[FieldError] = []
    seen: set[tuple[Any, ...]] = set()
    for one in errors:
        value = one.value
        about = (one.type, one.path, one.detail)
        if isinstance(value, _LARGE):  # shown by many errors, it may be large
            by_place = (*about, id(value))
            if by_place in seen:
                continue
            seen.add(by_place)
            value = one.body
        key = (*about, type(value), value)
        if key not in seen:
            seen.add(key)
            kept.append(one)
    return kept


def listed(texts: Collection[str]) -> str:
    """A Go slice of strings as ``%q`` prints it."""
    return "[" + " ".join(f'"{one}"' for one in texts) + "]"
