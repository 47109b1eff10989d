"""Decides which keys a change concerns, and says why.  Pure.

A *mapper* turns an object into the requests of those who must look.  The promises:

1. On a change both the object as it was and as it is are mapped: who lost it must look too.
2. Of one change, each key comes out once, in the order in which it was first named.
3. An owner is found by group and kind, whatever the version; one that belongs to no namespace is found from
   objects in any.
4. What was only looked at in case (the first list, a resync) is of low priority.

A reason is advisory: what is true now is for the reconciler to find out.  Fed by ``sources.py``, which does
the waiting where a mapper is ``async``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from setpoint.api.forms import Form, form_of
from setpoint.api.names import GroupVersionKind, Key
from setpoint.api.wire import Owner, Snapshot
from setpoint.cache.store import Seen
from setpoint.controller.result import Request
from setpoint.queue.workqueue import LOW_PRIORITY

T = TypeVar("T")
Why: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "resync", "requeue", "retry", "timer", "stream"]
Mapped: TypeAlias = Iterable[Request] | Awaitable[Iterable[Request]]
Mapper: TypeAlias = Callable[[Snapshot], Mapped]

_WHY: dict[str, Why] = {"ADDED": "ADDED", "UPDATED": "MODIFIED", "DELETED": "DELETED", "RESYNC": "resync"}


class Reason(NamedTuple):
    """Why a key is looked at: what happened, and to what, where it was an object."""

    why: Why
    kind: GroupVersionKind | None = None
    key: Key | None = None

    def __str__(self) -> str:
        return self.why if self.kind is None else f"{self.kind} {self.key} {self.why}"


def reason_of(kind: GroupVersionKind, seen: Seen) -> Reason:
    return Reason(_WHY[seen.type], kind, seen.key)


def priority_of(seen: Seen, priority: int = 0) -> int:
    """That of a change, or the low one where nothing need have changed."""
    return min(priority, LOW_PRIORITY) if seen.initial or seen.type == "RESYNC" else priority


def objects_of(seen: Seen) -> tuple[Snapshot, ...]:
    """The object as it was and as it is, as far as these are two."""
    if seen.old is None or seen.new is None or seen.type == "RESYNC":
        return (seen.snapshot,)
    return (seen.old, seen.new)


def keys_of(answers: Iterable[Iterable[Request]]) -> list[Request]:
    """What a mapper answered for the objects of one change, each key once."""
    return list(dict.fromkeys(key for answer in answers for key in answer))


def checked(answer: object) -> list[Request]:
    """A mapper's answer, if it is one."""
    if answer == []:
        return []  # as most: a change concerns few of those who hear of it
    if isinstance(answer, str | Key) or not isinstance(answer, Iterable):
        raise TypeError(
            f"a mapper gives several Requests, such as [Request(namespace, name)], not {answer!r}"
        )
    keys = list(answer)
    for key in keys:
        if not isinstance(key, Key):
            raise TypeError(f"a mapper gives Requests, and {key!r} is none: Request(namespace, name)")
    return keys


# ---- mappers ---------------------------------------------------------------------------------------


def to_itself(snapshot: Snapshot) -> list[Request]:
    """The object's own key."""
    return [snapshot.key]


@dataclass(frozen=True, slots=True)
class ToOwner:
    """The keys of the object's owners of one kind: of its controller, or with ``any_owner`` of all."""

    form: Form[Any]
    any_owner: bool = False
    namespaced: bool | None = None  # None: to be asked of the server, as the form does not know

    def __call__(self, snapshot: Snapshot) -> list[Request]:
        if self.namespaced is None:
            raise AssertionError(f"whether {self.form.gvk} belongs to namespaces is found out before")
        namespace = snapshot.metadata.namespace if self.namespaced else ""
        return [Key(namespace, owner.name) for owner in self._owners(snapshot) if self._is_meant(owner)]

    def _owners(self, snapshot: Snapshot) -> Iterable[Owner]:
        if self.any_owner:
            return snapshot.metadata.owner_references or ()
        controller = snapshot.metadata.controller
        return () if controller is None else (controller,)

    def _is_meant(self, owner: Owner) -> bool:
        group = owner.api_version.rpartition("/")[0]
        return (group, owner.kind) == (self.form.gvk.group, self.form.gvk.kind)


def to_owner(kind: type[Any] | Form[Any], *, any_owner: bool = False) -> ToOwner:
    """The owner of this kind: the object's controller, or with ``any_owner`` each of its owners."""
    form = form_of(kind)
    return ToOwner(form, any_owner, None if form.resource is None else form.resource.namespaced)


@dataclass(frozen=True, slots=True)
class ToKeys(Generic[T]):
    """Whatever a function says of the object; it is given a fresh one each time."""

    form: Form[T]
    function: Callable[[T], Mapped]

    @property
    def is_async(self) -> bool:
        function = self.function
        return iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004

    def __call__(self, snapshot: Snapshot) -> Mapped:
        return self.function(self.form.decode(snapshot.data))


def to_keys(kind: type[T] | Form[T], function: Callable[[T], Mapped]) -> ToKeys[T]:
    """Whatever a function says of the object; it may be ``async``."""
    return ToKeys(form_of(kind), function)
