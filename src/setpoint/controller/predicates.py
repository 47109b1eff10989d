"""Decides which changes matter.

A predicate is asked of each change, and sees the object as it was and as it is.  Predicates combine:
``generation_changed | labels_changed``, ``selected("tier=web") & ~selected("paused")``.  The promises:

1. What is new and what is gone matters to every ``*_changed``: nothing is known that it could equal.
2. A resync matters to them too, or it would be no safety net; ``version_changed`` alone is there to leave
   resyncs out.
3. An object that leaves a selection matters as one that enters it does.
4. ``generation_changed`` lets all changes of a kind pass that keeps no generation (ConfigMap, Secret …).

They filter changes, not what the cache holds: for that, declare the kind with ``labels`` or ``namespaces``.
Pure; asked by ``sources.py``, where one that raises lets the change pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from setpoint.api.forms import Form, form_of
from setpoint.api.selectors import label_selection
from setpoint.api.wire import Metadata
from setpoint.cache.cache import Labels
from setpoint.cache.store import Seen
from setpoint.controller.mapping import objects_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A question about a change; ``&``, ``|`` and ``~`` make others of it."""

    matters: Callable[[Seen], bool]
    name: str = "predicate"

    def __call__(self, seen: Seen) -> bool:
        return self.matters(seen)

    def __repr__(self) -> str:
        return f"<Predicate {self.name}>"

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(lambda seen: self(seen) and other(seen), f"({self.name} & {other.name})")

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(lambda seen: self(seen) or other(seen), f"({self.name} | {other.name})")

    def __invert__(self) -> Predicate:
        return Predicate(lambda seen: not self(seen), f"~{self.name}")


def _metadata_changed(name: str, differs: Callable[[Metadata, Metadata], bool]) -> Predicate:
    def matters(seen: Seen) -> bool:
        if seen.old is None or seen.new is None or seen.type == "RESYNC":
            return True
        return differs(seen.old.metadata, seen.new.metadata)

    return Predicate(matters, name)


def _is_other_generation(old: Metadata, new: Metadata) -> bool:
    # Built-in kinds count a deletion that has begun as a generation; other servers' may not.
    return (
        not new.generation
        or old.generation != new.generation
        or old.deletion_timestamp != new.deletion_timestamp
    )


anything = Predicate(lambda _: True, "anything")

generation_changed = _metadata_changed("generation_changed", _is_other_generation)
"""The spec changed, or the deletion began: status, labels or annotations alone do not matter."""

labels_changed = _metadata_changed(
    "labels_changed", lambda old, new: (old.labels or {}) != (new.labels or {})
)

annotations_changed = _metadata_changed(
    "annotations_changed", lambda old, new: (old.annotations or {}) != (new.annotations or {})
)

version_changed = Predicate(
    lambda seen: (
        seen.old is None
        or seen.new is None
        or seen.old.metadata.resource_version != seen.new.metadata.resource_version
    ),
    "version_changed",
)
"""Anything changed at all: leaves resyncs out."""


def selected(labels: Labels) -> Predicate:
    """The object has, or had, these labels: a text such as ``tier in (web, api)``, a dict, or a selection."""
    selection = label_selection(labels)
    return Predicate(
        lambda seen: any(selection.matches(each.metadata.labels) for each in objects_of(seen)),
        f"selected({str(selection)!r})",
    )


def where(kind: type[T] | Form[T], function: Callable[[T], bool]) -> Predicate:
    """A function says so of the object, as it was or as it is: ``where(Pod, lambda pod: …)``."""
    form = form_of(kind)
    return Predicate(
        lambda seen: any(function(form.decode(each.data)) for each in objects_of(seen)),
        f"where({form.gvk.kind})",
    )


def changed(kind: type[T] | Form[T], function: Callable[[T], object]) -> Predicate:
    """What a function says of the object changed: ``changed(Pod, lambda pod: pod.status.phase)``."""
    form = form_of(kind)

    def matters(seen: Seen) -> bool:
        if seen.old is None or seen.new is None or seen.type == "RESYNC":
            return True
        return function(form.decode(seen.old.data)) != function(form.decode(seen.new.data))

    return Predicate(matters, f"changed({form.gvk.kind})")
