"""Decides whether the writes of a controller undo something again and again, and what to do about it.

Nothing is sent that would change nothing (``apply.py``, ``status.py``).  So a controller that goes on writing
the same object is in one of two loops:

1. *A fight.*  It sets a field to the value that it set before: somebody else undid it in between.  This often
   within the window, it is a hot loop, however slow the other is.
2. *A whim.*  It sets a field to ever new values, and nothing but this very object, or the one it is made for,
   changed: a time or a random number in what it desires.  This is one only where it goes fast.

An object that is deleted and created again is another one, by its uid: what was written for the former says
nothing about it, and is forgotten.

Found out, it is told once in a while, with the fields and the other managers, and the key is slowed: each
further round makes it wait twice as long, up to a minute.  It is never stopped: the other side may give in,
and a change of the spec or a deletion is looked at without waiting.

No clock, log or metric here: time comes in as ``now``.  Fed by ``context.py``; ``operator.py`` waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from setpoint.api.names import GroupVersionKind, Key
from setpoint.controller.apply import Path, say

_SHOWN = 5  # fields named in one sentence


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as a loop, and how it is slowed; times in seconds."""

    repeats: int = 5  # the same value set again: a fight
    window: float = 600.0
    quick_repeats: int = 10  # ever new values: a whim
    quick_window: float = 60.0
    told_every: float = 600.0
    first_delay: float = 1.0
    longest_delay: float = 60.0


@dataclass(frozen=True, slots=True)
class Write:
    """One write that changed an object: which fields it set, and to what (any bytes that tell it apart)."""

    kind: GroupVersionKind
    key: Key
    values: Mapping[Path, bytes]
    others: Callable[[], tuple[str, ...]] = tuple  # gives the managers that have set these fields, too
    is_own_doing: bool = False  # nothing changed but this object and the one it is made for


@dataclass(frozen=True, slots=True)
class HotLoop:
    """What was found out."""

    request: Key
    kind: GroupVersionKind
    key: Key
    fields: tuple[str, ...]
    managers: tuple[str, ...]
    times: int
    seconds: float
    is_fight: bool
    delay: float
    is_news: bool  # it was not told for a while

    def __str__(self) -> str:
        shown = ", ".join(self.fields[:_SHOWN]) + (", …" if len(self.fields) > _SHOWN else "")
        what = f"{self.kind} {self.key} was written {self.times} times in {self.seconds:.0f} s: {shown}"
        if not self.is_fight:
            return (
                f"{what} got a new value each time, though nothing else had changed; is it a time, or random?"
            )
        who = " and ".join(self.managers) or "somebody"
        return f"{what} was put back each time, and {who} undid it; only one of the two can have it"


@dataclass(slots=True)
class _Field:
    value: bytes
    undone: deque[float] = field(default_factory=deque)
    changed: deque[float] = field(default_factory=deque)


@dataclass(slots=True)
class _Object:
    fields: dict[Path, _Field] = field(default_factory=dict)
    told_at: float | None = None


@dataclass(slots=True)
class _Primary:
    """What was written for one object; the newest last."""

    uid: str
    objects: dict[tuple[GroupVersionKind, Key], _Object] = field(default_factory=dict)
    slowed_until: float = 0.0
    slowed_generation: int | None = None


class HotLoops:
    """The writes of one controller, as far as they matter here."""

    def __init__(self, limits: Limits = Limits(), *, remembered: int = 2_000) -> None:  # noqa: B008 - frozen
        self._limits = limits
        self._remembered = remembered
        self._primaries: dict[Key, _Primary] = {}  # the newest last
        self._count = 0  # of their objects

    def __repr__(self) -> str:
        slowed = sum(each.slowed_until > 0 for each in self._primaries.values())
        return f"<HotLoops {self._count} objects, {slowed} slowed>"

    def wrote(
        self, request: Key, write: Write, *, uid: str = "", now: float, generation: int | None = None
    ) -> HotLoop | None:
        """Take note of a write made for the object ``request`` with this ``uid``; what is found out by it, if
        anything.
        """
        primary = self._primary(request, uid)
        known = primary.objects.pop((write.kind, write.key), None)
        self._count += known is None
        known = primary.objects[write.kind, write.key] = known or _Object()
        if self._count > self._remembered:
            self._drop_oldest()
        for path, value in write.values.items():
            self._note(known, path, value, write, now)
        found = self._judge(known, request, write, now)
        if found is not None:
            primary.slowed_until, primary.slowed_generation = now + found.delay, generation
        return found

    def wait(self, request: Key, *, uid: str = "", now: float, generation: int | None = None) -> float:
        """For how many seconds the object should not be looked at; 0 for one of another uid or generation."""
        primary = self._primaries.get(request)
        if primary is None or primary.uid != uid:
            return 0.0
        if primary.slowed_until <= now or primary.slowed_generation != generation:
            primary.slowed_until = 0.0
            return 0.0
        return primary.slowed_until - now

    def forget(self, request: Key) -> None:
        """The object is gone."""
        primary = self._primaries.pop(request, None)
        if primary is not None:
            self._count -= len(primary.objects)

    def _primary(self, request: Key, uid: str) -> _Primary:
        known = self._primaries.get(request)
        if known is None or known.uid != uid:
            self.forget(request)
            known = _Primary(uid)
        else:
            del self._primaries[request]
        self._primaries[request] = known
        return known

    def _drop_oldest(self) -> None:
        request, oldest = next(iter(self._primaries.items()))
        del oldest.objects[next(iter(oldest.objects))]
        self._count -= 1
        if not oldest.objects:
            del self._primaries[request]

    def _note(self, known: _Object, path: Path, value: bytes, write: Write, now: float) -> None:
        before = known.fields.get(path)
        if before is None:
            known.fields[path] = _Field(value)
            return
        if before.value == value:
            before.undone.append(now)
        elif write.is_own_doing:
            before.changed.append(now)
        else:
            before.undone.clear()  # we want something else by now, and have a reason
        before.value = value
        _drop(before.undone, now - self._limits.window)
        _drop(before.changed, now - self._limits.quick_window)

    def _judge(self, known: _Object, request: Key, write: Write, now: float) -> HotLoop | None:
        limits = self._limits
        written = {path: known.fields[path] for path in write.values}
        fought = {path: each.undone for path, each in written.items() if len(each.undone) >= limits.repeats}
        whims = {
            path: each.changed for path, each in written.items() if len(each.changed) >= limits.quick_repeats
        }
        times = fought or whims
        if not times:
            return None
        longest = max(times.values(), key=len)
        beyond = len(longest) - (limits.repeats if fought else limits.quick_repeats)
        delay = min(limits.longest_delay, limits.first_delay * 2.0 ** min(beyond, 30))
        is_news = known.told_at is None or now - known.told_at >= limits.told_every
        if is_news:
            known.told_at = now
        return HotLoop(
            request,
            write.kind,
            write.key,
            tuple(sorted(map(say, times))),
            write.others(),
            len(longest) + 1,
            now - longest[0],
            is_fight=bool(fought),
            delay=delay,
            is_news=is_news,
        )


def _drop(times: deque[float], before: float) -> None:
    while times and times[0] < before:
        times.popleft()
