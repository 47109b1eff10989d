"""What ``setpoint dev`` shows: the objects as a tree of owners, the queues, the last reconciles.  Values.

A ``Scene`` is all of it at one moment; ``tree`` puts the objects in order.  How a scene looks is decided in
``view.py``; ``watching.py`` finds out what is in it.

1. A root is an object of a kind that a controller is for, and whose owners are not among the objects.
2. An object stands under each of its owners; owners that go round in a circle are shown once.
3. Siblings are in the order of their kinds and names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from setpoint.api.names import GroupVersionKind, Key
from setpoint.controller.readiness import Readiness, State
from setpoint.controller.worker import Looked

STATES: dict[State, str] = {
    "Current": "ready",
    "InProgress": "in progress",
    "Failed": "failed",
    "Terminating": "being deleted",
}


@dataclass(frozen=True, slots=True)
class Item:
    """An object, as far as it is shown."""

    uid: str
    kind: GroupVersionKind
    key: Key
    owners: tuple[str, ...]  # uids
    readiness: Readiness

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.key}"


@dataclass(frozen=True, slots=True)
class Node:
    """An object, and those that it owns."""

    item: Item
    children: tuple[Node, ...] = ()

    def __len__(self) -> int:
        return 1 + sum(map(len, self.children))


@dataclass(frozen=True, slots=True)
class Queue:
    """The work of one controller."""

    controller: str
    is_working: bool
    problems: tuple[str, ...]  # why not
    due: int
    delayed: int
    running: tuple[tuple[Key, float], ...]  # for how many seconds
    waiting: tuple[tuple[Key, float, int], ...]  # in how many seconds, after how many failures; the soonest


@dataclass(frozen=True, slots=True)
class Ended:
    """A reconcile that has ended."""

    at: str  # of the clock on the wall
    controller: str
    key: Key
    looked: Looked


@dataclass(frozen=True, slots=True)
class Notice:
    """How it goes with the operator's file."""

    text: str
    is_bad: bool = False
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything, at one moment."""

    title: str
    server: str
    kubeconfig: str
    notice: Notice
    trees: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    ended: tuple[Ended, ...] = ()  # the newest first
    lines: tuple[str, ...] = ()  # what was printed and logged, the newest last


def tree(items: Iterable[Item], roots: Collection[GroupVersionKind]) -> tuple[Node, ...]:
    """The objects of the root kinds, each with all that it owns."""
    known = {item.uid: item for item in items}
    owned: defaultdict[str, list[Item]] = defaultdict(list)
    for item in known.values():
        for owner in item.owners:
            owned[owner].append(item)
    kinds = {(gvk.group, gvk.kind) for gvk in roots}

    def grow(item: Item, above: frozenset[str]) -> Node:
        below = above | {item.uid}
        return Node(
            item, tuple(grow(each, below) for each in _sorted(owned[item.uid]) if each.uid not in below)
        )

    tops = [
        item
        for item in known.values()
        if (item.kind.group, item.kind.kind) in kinds and not any(owner in known for owner in item.owners)
    ]
    return tuple(grow(item, frozenset()) for item in _sorted(tops))


def _sorted(items: Iterable[Item]) -> list[Item]:
    return sorted(items, key=lambda item: (item.kind.kind, item.key))


# In words, for when there is no terminal.


def told_of(ended: Ended) -> str | None:
    """A reconcile in a line; None where nothing came of it."""
    looked = ended.looked
    if not looked.wrote and not looked.error:
        return None
    parts = [f"reconciled {ended.controller} {ended.key} in {seconds(looked.seconds)}: {looked.came_to}"]
    if looked.error:
        parts.append(looked.error)
    parts.append(f"because {because(looked)}")
    if looked.wrote:
        parts.append(f"wrote {', '.join(wrote(looked))}")
    return f"{ended.at}  {'; '.join(parts)}"


def told_of_change(at: str, before: Item | None, after: Item | None) -> str | None:
    """What became of an object, in a line; None where it is as ready as it was."""
    if after is None:
        return None if before is None else f"{at}  {before}: gone"
    if before is not None and before.readiness.state == after.readiness.state:
        return None
    return f"{at}  {after}: {state(after.readiness)}"


def state(readiness: Readiness) -> str:
    """How ready, in plain words."""
    word = STATES[readiness.state]
    return word if readiness or not readiness.reason else f"{word}: {readiness.reason}"


def because(looked: Looked, namespace: str = "") -> str:
    """Why it was looked at: the first reason, and how many more there are."""
    said = [
        reason.why
        if reason.kind is None
        else f"{reason.kind.kind} {_near(reason.key, namespace)} {reason.why}"
        for reason in looked.reasons
    ]
    more = f" +{len(said) - 1}" if len(said) > 1 else ""
    return f"{said[0]}{more}" if said else "asked for"


def wrote(looked: Looked, namespace: str = "") -> Iterator[str]:
    """What it wrote, one by one; names in ``namespace`` do without it."""
    for each in looked.wrote:
        part = f"/{each.subresource}" if each.subresource else ""
        yield f"{each.verb} {each.kind.kind}{part} {_near(each.key, namespace)}"


def _near(key: Key | None, namespace: str) -> str:
    return key.name if key is not None and key.namespace == namespace else str(key)


def seconds(value: float) -> str:
    """As finely as anyone wants to know."""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"
