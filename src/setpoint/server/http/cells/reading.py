"""What the printers share: reading objects that may lack anything, ages, and lists cut short.

Every printer is a function of an object in wire form and the present; it must take an object that has
nothing in it, for a bookmark is one.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from setpoint.api.selectors import LabelSelection
from setpoint.server.registry.resources import Object

Cells: TypeAlias = list[Any]


class Row(NamedTuple):
    cells: Cells
    condition: dict[str, str] | None = None  # says to clients that hide what is done with


Printer: TypeAlias = Callable[[Object, datetime], "Cells | Row"]

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


def at(value: Any, *path: str) -> Any:
    """What lies there; None if anything on the way is missing."""
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def items(value: Any, *path: str) -> list[Any]:
    return at(value, *path) or []


def text(value: Any, *path: str, otherwise: str = "") -> str:
    found = at(value, *path)
    return str(found) if found else otherwise


def number(value: Any, *path: str) -> int:
    return int(at(value, *path) or 0)


def flag(value: Any, *path: str, otherwise: bool = False) -> bool:
    found = at(value, *path)
    return otherwise if found is None else bool(found)


def name(obj: Object) -> str:
    return text(obj, "metadata", "name")


def created(obj: Object, now: datetime) -> str:
    """How long ago it was created."""
    return age(at(obj, "metadata", "creationTimestamp"), now)


def is_deleting(obj: Object) -> bool:
    return bool(at(obj, "metadata", "deletionTimestamp"))


def condition(obj: Object, type: str) -> dict[str, Any] | None:  # noqa: A002 - the field's name
    """The first of that type."""
    return next((one for one in items(obj, "status", "conditions") if one.get("type") == type), None)


def is_true(obj: Object, type: str) -> bool:  # noqa: A002
    found = condition(obj, type)
    return found is not None and found.get("status") == "True"


# ── Times ───────────────────────────────────────────────────────────────────────────────────────────


def moment(stamp: Any) -> datetime | None:
    if not stamp:
        return None
    try:
        return datetime.fromisoformat(stamp)
    except (TypeError, ValueError):
        return None


def age(stamp: Any, now: datetime) -> str:
    at_that_time = moment(stamp)
    return UNKNOWN if at_that_time is None else human((now - at_that_time).total_seconds())


def human(seconds: float) -> str:
    """A length of time in two or three figures, as Kubernetes tells it."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large}{unit}{small}{smaller}" if small else f"{large}{unit}"


# ── Words ───────────────────────────────────────────────────────────────────────────────────────────


def labels(found: Mapping[str, str] | None) -> str:
    """As a selector would be written: in the order of their keys."""
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def selector(found: Any, otherwise: str = NONE) -> str:
    """A label selector of an object; ``otherwise`` for one that selects by nothing."""
    if found is None:
        return otherwise
    try:
        return str(LabelSelection.from_object(found)) or otherwise
    except ValueError:
        return "<error>"


def containers(found: Sequence[Any]) -> tuple[str, str]:
    """Their names, and their images."""
    return ",".join(text(one, "name") for one in found), ",".join(text(one, "image") for one in found)


def cut_short(found: Sequence[str], count: int, most: int = 3, otherwise: str = UNSET) -> str:
    """The first few of ``count``, and how many there are beyond them."""
    shown = ",".join(found[:most])
    if count > most:
        return f"{shown} + {count - most} more..."
    return shown or otherwise


def balanced(status: Any) -> str:
    """The addresses of a load balancer."""
    return ",".join(sorted({address for one in items(status, "ingress") if (address := _address(one))}))


def _address(ingress: Any) -> str:
    return text(ingress, "ip") or text(ingress, "hostname")


def joined(found: Iterable[str], between: str = ",") -> str:
    return between.join(found)
