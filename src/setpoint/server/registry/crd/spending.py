"""What an evaluation costs while it runs, in cel-go's numbers, and where it ends.

``Meter`` counts the cost of one evaluation and ends it at its limit.  ``Purse`` holds what all
expressions that judge one object may cost together.  The limits are Kubernetes'.

On the event loop an evaluation is given less, and then raises ``TooLong`` (``registry/patience.py`` says
why).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from setpoint.server.registry.crd.opaques import NamedFormat
from setpoint.server.registry.crd.signatures import Overload
from setpoint.server.registry.crd.values import EvaluationError, Opaque, size_of
from setpoint.server.registry.patience import PATIENCE, TooLong

CALL_LIMIT: Final = 1_000_000  # of one expression
BUDGET: Final = 10_000_000  # of all that judge one object, or through one binding
CONDITIONS_BUDGET: Final = 2_500_000  # of all match conditions of one webhook or policy
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
    """One evaluation: the names that it sees, and what it has cost."""

    __slots__ = ("cost", "excused", "limit", "names")

    def __init__(self, names: dict[str, Any], limit: int = CALL_LIMIT) -> None:
        self.names = names
        self.cost = 0
        self.limit = limit
        self.excused = 0  # which counts, and takes no time

    def excuse(self, cost: int) -> None:
        self.excused += cost
        self.limit = min(CALL_LIMIT, self.limit + cost)

    def check(self) -> None:
        """Raises ``OverLimit``."""
        if self.cost > self.limit:
            raise OverLimit

    def afford(self, size: int) -> None:
        """Before something is made that only its size would show to be too much."""
        if size > self.limit:
            self.cost = max(self.cost, self.limit + 1)
            raise OverLimit


class Purse:
    """What is left of a budget."""

    __slots__ = ("left",)

    def __init__(self, left: int = BUDGET) -> None:
        self.left = left

    def pay(self, cost: int) -> None:
        """Raises ``OverBudget``."""
        if cost > self.left:
            self.left = -1
            raise OverBudget
        self.left -= cost


# ── Where it is spent ───────────────────────────────────────────────────────────────────────────────


def metered(run: Callable[[Meter], Any], names: dict[str, Any], purse: Purse) -> Any:
    """An expression's value, paid for.  ``names`` are its own.  Raises ``OverBudget`` too."""
    patience = PATIENCE.get()
    limit = CALL_LIMIT if patience is None else min(CALL_LIMIT, patience.left)
    meter = Meter(names, limit)
    error: EvaluationError | None = None
    found = None
    try:
        found = run(meter)
        meter.check()
    except EvaluationError as raised:
        error = raised
    except OverLimit:
        if meter.limit < CALL_LIMIT:
            raise TooLong from None
        error = EvaluationError(OVER_LIMIT)
    if patience is not None:
        patience.left -= meter.cost - meter.excused
    purse.pay(meter.cost)
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
