"""Says where two runs of one plan differ, and what in the operator's code is likely to be the reason.

Everything else in a run is repeatable: one loop, seeded chance, a calendar of its own.  So when two runs of
one plan differ, the operator decided by something that is another each time.  How its values differ tells
what: a counter goes on, a set has another order, chance gives as many other characters.  Pure.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from setpoint.testing.proof.redaction import Redactor
from setpoint.testing.proof.states import difference, leaves
from setpoint.testing.proof.trace import Run, Written

_CLOCK: Final = (
    "a clock of the machine that is not controlled, as time.monotonic and `from time import time` are not "
    "(use ctx.now())"
)
_COUNTER: Final = (
    "a counter or other state that outlives the process, in a module or a class (give prove a function that "
    "makes the operator, and keep the state in there)"
)
_ORDER: Final = "the order of a set, or of hashes (sort it)"
_CHANCE: Final = (
    "chance that is not seeded (use random, secrets or uuid by their modules' names; a generator of your own "
    "is made in the function that makes the operator)"
)
_UNKNOWN: Final = (
    "a clock of the machine (use ctx.now()), chance, the order of a set, a thread, or something that is kept "
    "between runs (give prove a function that makes the operator)"
)
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_WORDS: Final = re.compile(r"[^\s,;\[\]{}()'\"]+")
_EPOCH: Final = 1_000_000_000  # seconds: what is more than that, and a number, is likely a time


def explain(one: Run, other: Run) -> str:
    """Where two runs of one plan part, and likely why, as it may be shown."""
    where, source = _parted(one, other)
    why = f"the operator's own code differs from run to run: likely {source}"
    return Redactor(one, other).text(f"two runs of {one.plan} differ {where}; {why}")


def _parted(one: Run, other: Run) -> tuple[str, str]:
    for first, second in zip(one.writes, other.writes, strict=False):
        if first.data != second.data and first.place == second.place:
            return _written(first, second)
    for mine, yours in zip(one.lines, other.lines, strict=False):
        if mine != yours:
            where = f"at {mine.time:.3f} s: {mine.lane}: {mine.what!r}, then {yours.lane}: {yours.what!r}"
            return where, likely_source(mine.what, yours.what)
    return "in length", _UNKNOWN


def _written(first: Written, second: Written) -> tuple[str, str]:
    called = f"{first.resource} {first.namespace}/{first.name}"
    mine, yours = msgspec.json.decode(first.data), msgspec.json.decode(second.data)
    for obj in (mine, yours):
        obj.get("metadata", {}).pop("managedFields", None)
    lines = difference({called: mine}, {called: yours}, most=1)
    values, others = dict(leaves(mine)), dict(leaves(yours))
    paths = [each for each in sorted(values.keys() & others.keys()) if values[each] != others[each]]
    source = likely_source(values[paths[0]], others[paths[0]]) if paths else _UNKNOWN
    return f"in what is written at {first.time:.3f} s: {lines[0] if lines else called}", source


def likely_source(one: Any, other: Any) -> str:
    """What makes a value be this in one run and that in another."""
    first, second = str(one), str(other)
    if _TIME.search(first) and _TIME.search(second):
        return _CLOCK
    words, others = _WORDS.findall(first), _WORDS.findall(second)
    if len(words) > 1 and words != others and sorted(words) == sorted(others):
        return _ORDER
    if len(words) != len(others):
        return _UNKNOWN
    for mine, yours in zip(words, others, strict=True):
        if mine != yours:
            return _of_words(mine, yours)
    return _UNKNOWN


def _of_words(one: str, other: str) -> str:
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    while start and one[start - 1].isdigit():
        start -= 1
    numbers = _NUMBER.fullmatch(one[start:]), _NUMBER.fullmatch(other[start:])
    if all(numbers):
        values = [float(each[0]) for each in numbers if each is not None]
        if min(values) > _EPOCH:
            return _CLOCK
        return _COUNTER if abs(values[0] - values[1]) < 10_000 and "." not in one else _CHANCE
    return _CHANCE if abs(len(one) - len(other)) <= 2 and len(one) - start >= 4 else _UNKNOWN
