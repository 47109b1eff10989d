"""What is wrong with an object: gathered field by field, in the order it is found.

Every module beside this one says which fields it looks at; this says how a finding is worded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from setpoint.server.golang import same
from setpoint.server.statuses import OMITTED, FieldError, unsupported

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"


class Found:
    """The errors so far."""

    __slots__ = ("errors",)

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def __repr__(self) -> str:
        return f"<Found {len(self.errors)} errors>"

    def required(self, path: str, detail: str = "") -> None:
        self.errors.append(FieldError("required", path, detail))

    def invalid(self, path: str, value: Any, detail: str) -> None:
        self.errors.append(FieldError("invalid", path, detail, value))

    def unnamed(self, path: str, detail: str) -> None:
        """Something is invalid, and its value is not shown."""
        self.errors.append(FieldError("invalid", path, detail, OMITTED))

    def told(self, path: str, value: Any, details: Iterable[str]) -> None:
        """One error for every text."""
        for detail in details:
            self.errors.append(FieldError("invalid", path, detail, value))

    def forbidden(self, path: str, detail: str) -> None:
        self.errors.append(FieldError("forbidden", path, detail))

    def duplicate(self, path: str, value: Any, detail: str = "") -> None:
        self.errors.append(FieldError("duplicate", path, detail, value))

    def missing(self, path: str, value: Any, detail: str = "") -> None:
        """It names what is not there."""
        self.errors.append(FieldError("not found", path, detail, value))

    def unsupported(self, path: str, value: Any, supported: Sequence[str]) -> None:
        self.errors.append(unsupported(path, value, supported))

    def too_long(self, path: str, most: int) -> None:
        self.errors.append(FieldError("too long", path, f"may not be more than {most} bytes"))

    def too_many(self, path: str, count: int, most: int) -> None:
        self.errors.append(FieldError("too many", path, f"must have at most {most} items", count))

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
    """What is found twice is said once."""
    if len(errors) < 2:
        return errors
    return list({(one.path, one.body): one for one in errors}.values())


def listed(texts: Collection[str]) -> str:
    """A Go slice of strings as ``%q`` prints it."""
    return "[" + " ".join(f'"{one}"' for one in texts) + "]"
