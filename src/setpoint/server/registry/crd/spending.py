"""What an evaluation costs while it runs, in cel-go's numbers, and where it ends.

``Meter`` counts the cost of one evaluation and ends it at its limit.  ``Purse`` holds what all
expressions that judge one object may cost together.  The limits are Kubernetes'.

cel-go's numbers are not what is done: two maps of 100,000 entries that are compared cost as much as two
whose entries are equally many and nested, and a text that is made of others may cost nothing.  So the
work is counted as well, in values looked at and characters written, and paid before it is done; and now
and then a meter looks at the clock.  Who works too much ends as who costs too much.

On the event loop an evaluation is given less, and then raises ``TooLong`` (``registry/patience.py`` says
why); so does one that is given up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from setpoint.server.registry.crd.opaques import NamedFormat
from setpoint.server.registry.crd.signatures import Overload
from setpoint.server.registry.crd.values import EvaluationError, Made, Opaque, Optional, size_of
from setpoint.server.registry.patience import PATIENCE, TooLong, spend

CALL_LIMIT: Final = 1_000_000  # of one expression
BUDGET: Final = 10_000_000  # of all that judge one object, or through one binding
CONDITIONS_BUDGET: Final = 2_500_000  # of all match conditions of one webhook or policy
WORK_LIMIT = 2_000_000  # of one expression: a second or two; the largest object is half of it
WORK_BUDGET: Final = 10_000_000  # of all that judge one object
_LONGEST: Final = 30.0  # seconds of one expression, whatever it does
_PAUSE: Final = 10_000  # of work, between two looks at the clock
_WRITTEN: Final = 16  # characters that are copied while one value is looked at
OVER_LIMIT: Final = "operation cancelled: actual cost limit exceeded"
OVER_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_TEXT: Final = 0.1  # of a step over a text
_PATTERN: Final = 0.25  # of a character of a pattern
_LIST: Final = 10  # to make one


class OverLimit(Exception):
    """One evaluation costs too much.  No ``EvaluationError``, which an expression may get over."""


class OverBudget(Exception):
    """All that one object may cost is spent; the text is Kubernetes'."""

    def __init__(self) -> None:
        super().__init__(OVER_BUDGET)


# ── What is spent ───────────────────────────────────────────────────────────────────────────────────


class Meter:
    """One evaluation: the names that it sees, what it has cost, and what was done."""

    __slots__ = ("_end", "_weights", "cost", "excused", "limit", "most", "names", "pause", "work")

    def __init__(self, names: dict[str, Any], limit: int = CALL_LIMIT, most: int | None = None) -> None:
        self.names = names
        self.cost = 0
        self.limit = limit
        self.excused = 0  # which counts, and takes no time
        self.work = 0
        self.most = WORK_LIMIT if most is None else min(most, WORK_LIMIT)  # of work
        self.pause = min(self.most, _PAUSE)  # at how much work to look at the clock
        self._end = time.monotonic() + _LONGEST
        self._weights: dict[
            int, tuple[Any, int]
        ] = {}  # by id; with the value, whose id it is while it is kept

    def excuse(self, cost: int) -> None:
        self.excused += cost
        self.limit = min(CALL_LIMIT, self.limit + cost)

    def check(self) -> None:
        """Raises ``OverLimit``."""
        if self.cost > self.limit or self.work > self.most:
            raise OverLimit
        if self.work > self.pause:
            if time.monotonic() > self._end or _is_given_up():
                raise OverLimit
            self.pause = min(self.most, self.work + _PAUSE)

    def toil(self, work: int) -> None:
        """Before it is done.  Raises ``OverLimit``."""
        self.work += work
        if self.work > self.pause:
            self.check()

    def weigh(self, value: Any) -> int:
        """How many values there are in one, and below.  Raises ``OverLimit`` rather than to count on."""
        kind = type(value)
        if kind is str or kind is bytes:
            return 1 + len(value) // _WRITTEN
        if not isinstance(value, list | dict | Optional):
            return 1
        known = self._weights.get(id(value))
        if known is not None:
            return known[1]
        weight = _weight(value, self.most - self.work)
        if weight > self.most - self.work:
            self.toil(weight)
        if kind is dict or kind is list:  # what an expression made may still grow
            self._weights[id(value)] = value, weight
        return weight

    def afford(self, size: int) -> None:
        """Before something is made that only its size would show to be too much."""
        if size > self.limit:
            self.cost = max(self.cost, self.limit + 1)
            raise OverLimit


def _weight(value: Any, most: int) -> int:
    """Stops counting where it is more than that."""
    weight = 0
    waiting = [value]
    while waiting and weight <= most:
        one = waiting.pop()
        weight += 1
        if isinstance(one, str | bytes):
            weight += len(one) // _WRITTEN
        elif isinstance(one, dict):
            waiting.extend(one)
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, Optional):
            waiting.append(one.value)
    return weight


def _is_given_up() -> bool:
    patience = PATIENCE.get()
    return patience is not None and patience.is_given_up


_METER: Final[ContextVar[Meter | None]] = ContextVar("meter", default=None)


def toil(work: int) -> None:
    """For a function that finds out only while it works how much it does.

    Raises ``OverLimit``; outside of an evaluation, ``TooLong``.
    """
    meter = _METER.get()
    if meter is not None:
        meter.toil(work)
    else:
        spend(work)


class Purse:
    """What is left of a budget."""

    __slots__ = ("left", "work_left")

    def __init__(self, left: int = BUDGET) -> None:
        self.left = left
        self.work_left = WORK_BUDGET

    def pay(self, cost: int, work: int = 0) -> None:
        """Raises ``OverBudget``."""
        if cost > self.left or work > self.work_left:
            self.left = -1
            raise OverBudget
        self.left -= cost
        self.work_left -= work


# ── Where it is spent ───────────────────────────────────────────────────────────────────────────────


def metered(run: Callable[[Meter], Any], names: dict[str, Any], purse: Purse) -> Any:
    """An expression's value, paid for.  ``names`` are its own.  Raises ``OverBudget`` too."""
    if _is_given_up():
        raise TooLong
    patience = PATIENCE.get()
    left = None if patience is None else patience.left
    meter = Meter(names) if left is None else Meter(names, min(CALL_LIMIT, left), left)
    error: EvaluationError | None = None
    found = None
    token = _METER.set(meter)
    try:
        found = run(meter)
        meter.check()
    except EvaluationError as raised:
        error = raised
    except OverLimit:
        is_quick = left is not None and (meter.limit < CALL_LIMIT or meter.work > meter.most)
        if is_quick or _is_given_up():
            raise TooLong from None
        error = EvaluationError(OVER_LIMIT)
    finally:
        _METER.reset(token)
    if patience is not None and left is not None:
        patience.left = left - (meter.cost - meter.excused + meter.work)
    purse.pay(meter.cost, meter.work)
    if error is not None:
        raise error
    return found


# ── What a call costs ───────────────────────────────────────────────────────────────────────────────

Spent = Callable[[list[Any], Any], int]


def _share(size: float, factor: float) -> int:
    return math.ceil(size * factor)


def _of_first(factor: float) -> Spent:
    return lambda arguments, _: _share(size_of(arguments[0]), factor)


def _traversed(arguments: list[Any], _: Any) -> int:
    return _steps(arguments[0])


def _steps(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "surrogatepass")) * _TEXT)
    if isinstance(value, bytes):
        return int(len(value) * _TEXT)
    if isinstance(value, list):
        return sum(map(_steps, value))
    if isinstance(value, dict):
        return sum(_steps(name) + _steps(one) for name, one in value.items())
    return 1


def _searched(arguments: list[Any], _: Any) -> int:
    return _share(1 + size_of(arguments[0]), _TEXT) * _share(size_of(arguments[1]), _PATTERN)


def _joined(_: list[Any], result: Any) -> int:
    return _share(size_of(result), 2 * _TEXT)


def _selector(arguments: list[Any], _: Any) -> int:
    size = size_of(arguments[1])
    return _LIST + _share(size, _TEXT) + _share(_share(size, 0.5), _LIST + 40)


def _in_network(arguments: list[Any], _: Any) -> int:
    cost = _share(2 * size_of(arguments[0]), _TEXT)
    return cost + (_share(size_of(arguments[1]), _TEXT) if isinstance(arguments[1], str) else 0)


def _network_in_network(arguments: list[Any], result: Any) -> int:
    return _in_network(arguments, result) + _share(size_of(arguments[0]), _TEXT) + 1


def _address(arguments: list[Any], _: Any) -> int:
    return _share(len(arguments[0]), _TEXT) if isinstance(arguments[0], str) else 1


def _validated(arguments: list[Any], _: Any) -> int:
    known: NamedFormat = arguments[0]
    return _share(1 + size_of(arguments[1]), _TEXT) * _share(known.pattern_size, _PATTERN)


def _equal(arguments: list[Any], _: Any) -> int:
    return 1 if isinstance(arguments[0], Opaque) else _shorter(arguments, _)


def _shorter(arguments: list[Any], _: Any) -> int:
    one, other = arguments
    if type(one) is int:
        return 1 if size_of(other) else 0
    return -(-min(size_of(one), size_of(other)) // 10)


# By name, whatever the arguments are.
_ALWAYS: Final[dict[str, Spent]] = {
    "check": lambda *_: 350_000,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traversed),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _of_first(_TEXT)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "jsonpatch.escapeKey"), _of_first(_TEXT)),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _of_first(_TEXT)),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _of_first(2 * _TEXT)),
    "join": _joined,
    **dict.fromkeys(("find", "findAll"), _searched),
    "ip": _address,
    "containsIP": _in_network,
    "containsCIDR": _network_in_network,
    "validate": _validated,
    "_==_": _equal,
    "_!=_": _shorter,
}


def _made(factor: float) -> Callable[[int], int]:
    return lambda size: int(size * max(factor, 0) if factor >= 0 else size) + 1 + _LIST


def _output(_: list[Any], result: Any) -> int:
    return _made(1)(size_of(result))


def _flattened(arguments: list[Any], _: Any) -> int:
    return _made(float(arguments[1]) if len(arguments) > 1 else 1)(size_of(arguments[0]))


def _compared_with_itself(place: int) -> Spent:
    def cost(arguments: list[Any], _: Any) -> int:
        items = arguments[place]
        is_text = bool(items) and isinstance(items[0], str | bytes)
        return _made(2 + _TEXT if is_text else 2)(len(items) ** 2)

    return cost


def _of_sets(factor: float) -> Spent:
    return lambda arguments, _: 1 + int(size_of(arguments[0]) * size_of(arguments[1]) * factor)


def _second(arguments: list[Any], _: Any) -> int:
    return _share(size_of(arguments[1]), _TEXT)


def _both(arguments: list[Any], _: Any) -> int:
    return _share(size_of(arguments[0]) + size_of(arguments[1]), _TEXT)


def _product(arguments: list[Any], _: Any) -> int:
    return _share(size_of(arguments[0]), _TEXT) * _share(size_of(arguments[1]), _TEXT)


_LIST_COSTS: Final[dict[str, Spent]] = {
    **dict.fromkeys(("slice", "lists.range", "reverse"), _output),
    "flatten": _flattened,
    "distinct": _compared_with_itself(0),
    "sort": _compared_with_itself(0),
    "@sortByAssociatedKeys": _compared_with_itself(1),
    "sets.contains": _of_sets(1),
    "sets.intersects": _of_sets(1),
    "sets.equivalent": _of_sets(2),
    **dict.fromkeys(("startsWith", "endsWith"), _second),
    **dict.fromkeys(("strings.quote", "format"), _of_first(_TEXT)),
    "matches": _searched,
    "contains": _product,
}


def spent(function: str, overload: Overload | None) -> Spent | None:
    """What a call costs, as the checker understood it; None if 1.  ``overload``: where there is only one."""
    if (always := _ALWAYS.get(function)) is not None:
        return always
    if overload is None:
        return None
    first = (overload.target or overload.arguments[0]).name if overload.target or overload.arguments else ""
    if function in ("_<_", "_<=_", "_>_", "_>=_") and first in ("string", "bytes"):
        return _shorter
    if function == "_+_" and first in ("string", "bytes"):
        return _both
    if (function, first) in (("bytes", "string"), ("string", "bytes")):
        return _of_first(_TEXT)
    if function == "@in" and overload.arguments[1].name == "list":
        return lambda arguments, _: size_of(arguments[1])
    return _LIST_COSTS.get(function)


# ── What a call does ────────────────────────────────────────────────────────────────────────────────

Toil = Callable[[Meter, list[Any]], int]
_READ: Final = 256  # characters that are compared while one value is looked at


def _compared(meter: Meter, arguments: list[Any]) -> int:
    one, other = arguments
    if not isinstance(one, list | dict | Optional) or type(other) is str:
        return 0
    if isinstance(other, list | dict) and not isinstance(one, Optional) and len(one) != len(other):
        return 0
    return meter.weigh(one) if type(one) in (list, dict, Made) else meter.weigh(one) + meter.weigh(other)


def _weighed(meter: Meter, arguments: list[Any]) -> int:
    return sum(map(meter.weigh, arguments))


def _first_weighed(meter: Meter, arguments: list[Any]) -> int:
    return meter.weigh(arguments[0])


def _searched_for(_: Meter, arguments: list[Any]) -> int:
    wanted, place = arguments
    if not isinstance(place, list):
        return 0
    each = len(wanted) // _READ if isinstance(wanted, str | bytes | list | dict) else 0
    return len(place) * (1 + each)


def _put_together(meter: Meter, arguments: list[Any]) -> int:
    one, other = arguments
    if isinstance(one, list) and isinstance(other, list):
        meter.afford(len(one) + len(other))
        return len(one) + len(other) if type(one) in (list, Made) else meter.weigh(one) + meter.weigh(other)
    if isinstance(one, str | bytes) and isinstance(other, str | bytes):
        return (len(one) + len(other)) // _WRITTEN
    return 0


def _written_together(meter: Meter, arguments: list[Any]) -> int:
    items, between = arguments[0], arguments[1] if len(arguments) > 1 else ""
    meter.toil(len(items))
    size = sum(len(one) for one in items if isinstance(one, str)) + len(items) * len(between)
    meter.afford(size // 10)
    return size // _WRITTEN


def _written_anew(meter: Meter, arguments: list[Any]) -> int:
    text, old, new = arguments[:3]
    size = len(text) + len(text) // max(1, len(old)) * len(new)
    meter.afford(size // 10)
    return size // _WRITTEN


_OF_CLAUSE: Final = 64  # a number may have a thousand digits


def _formatted(meter: Meter, arguments: list[Any]) -> int:
    text, values = arguments
    return len(text) + sum(_OF_CLAUSE + meter.weigh(one) for one in values)


def _counted(meter: Meter, arguments: list[Any]) -> int:
    meter.afford(arguments[0])
    return 0


def _inserted(_: Meter, arguments: list[Any]) -> int:
    return len(arguments[1]) if isinstance(arguments[1], dict) else 0


_TOILS: Final[dict[str, Toil]] = {
    **dict.fromkeys(("_==_", "_!=_"), _compared),
    "@in": _searched_for,
    "_+_": _put_together,
    **dict.fromkeys(("indexOf", "lastIndexOf", "includes"), _first_weighed),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "flatten", "distinct", "sort"), _weighed),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _weighed),
    "@sortByAssociatedKeys": _weighed,
    "join": _written_together,
    "replace": _written_anew,
    "format": _formatted,
    "lists.range": _counted,
    "cel.@mapInsert": _inserted,
}


def toil_of(function: str) -> Toil | None:
    """What a call does, beyond what its cost says; None if nothing."""
    return _TOILS.get(function)
