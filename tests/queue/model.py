"""The promises of ``queue/schedule.py`` again, as plainly as they can be said: lists, all of them looked at.

What the real one does with heaps and hints, in O(log n), this does by sorting; on every sequence of calls
the two must say the same.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Waiting:
    key: int
    at: float
    priority: int
    arrival: int  # changes when it is brought forward
    fell_due: int | None = None


class Model:
    """Answers as a Schedule must."""

    def __init__(self, patience: int) -> None:
        self.waiting: list[Waiting] = []
        self.taken: dict[int, list[tuple[float, int]]] = {}  # what it was asked for meanwhile
        self.patience = patience
        self.passed_over = 0
        self.arrivals = 0
        self.fallen = 0

    def add(self, key: int, at: float, priority: int) -> None:
        if key in self.taken:
            self.taken[key].append((at, priority))
            return
        known = next((each for each in self.waiting if each.key == key), None)
        if known is None:
            self.waiting.append(Waiting(key, at, priority, self._arrival()))
            return
        if at < known.at:
            known.at, known.arrival = at, self._arrival()
        known.priority = max(known.priority, priority)

    def take(self, now: float) -> tuple[int, float, int] | None:
        due = self.due(now)
        if not due:
            return None
        longest = min(due, key=lambda each: each.fell_due or 0)
        highest = min(due, key=lambda each: (-each.priority, each.fell_due or 0))
        chosen = longest if self.passed_over == self.patience else highest
        self.passed_over = 0 if chosen is longest else self.passed_over + 1
        self.waiting.remove(chosen)
        self.taken[chosen.key] = []
        return chosen.key, chosen.at, chosen.priority

    def due(self, now: float) -> list[Waiting]:
        for each in sorted(self.waiting, key=lambda each: (each.at, each.arrival)):
            if each.fell_due is None and each.at <= now:
                self.fallen += 1
                each.fell_due = self.fallen
        return [each for each in self.waiting if each.fell_due is not None]

    def done(self, key: int) -> None:
        if asked := self.taken.pop(key):
            self.add(key, min(at for at, _ in asked), max(priority for _, priority in asked))

    def join(self, key: int, now: float) -> tuple[float, int] | None:
        asked = self.taken.get(key)
        if not asked or min(at for at, _ in asked) > now:
            return None
        self.taken[key] = []
        return min(at for at, _ in asked), max(priority for _, priority in asked)

    def remove(self, key: int) -> None:
        self.waiting = [each for each in self.waiting if each.key != key]
        if key in self.taken:
            self.taken[key] = []
        self._begin_anew()

    def remove_after(self, moment: float) -> None:
        self.waiting = [each for each in self.waiting if each.at <= moment]
        for key, asked in self.taken.items():
            if asked and min(at for at, _ in asked) > moment:
                self.taken[key] = []
        self._begin_anew()

    def remaining(self) -> set[int]:
        return {each.key for each in self.waiting} | {key for key, asked in self.taken.items() if asked}

    def next_due(self) -> float | None:
        """Of what is known to be due, the one longest due; else the next time."""
        due = [each for each in self.waiting if each.fell_due is not None]
        if due:
            return min(due, key=lambda each: each.fell_due or 0).at
        return min((each.at for each in self.waiting), default=None)

    def _begin_anew(self) -> None:
        """Nobody was passed over, where nobody is due."""
        if all(each.fell_due is None for each in self.waiting):
            self.passed_over = 0

    def _arrival(self) -> int:
        self.arrivals += 1
        return self.arrivals
