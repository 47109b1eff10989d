"""Decides whom pods, ReplicaSets and revisions belong to, by label selector and owner reference.

A controller of a kind *claims* what it finds:

- what names it as its controller and matches its selector is its own;
- what names it and no longer matches is *released*;
- what matches and has no controller is *adopted*, if neither of the two is being deleted; before the first
  adoption the server itself is asked whether the adopter is still there;
- what names another controller is let alone.

``sort_out`` is pure; ``claim`` reads, carries out, and gives back what is claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from setpoint.api.model import Object, to_wire
from setpoint.api.patches import StrategicPatch
from setpoint.api.selectors import LabelSelection
from setpoint.api.wire import Metadata
from setpoint.builtin.pods import reference
from setpoint.builtin.pods_means import Means, is_still_there
from setpoint.cache.index import FromMetadata
from setpoint.controller.builder import Builder
from setpoint.controller.client import ReconcileClient
from setpoint.controller.owners import controller_of
from setpoint.controller.predicates import Predicate
from setpoint.controller.result import Request
from setpoint.errors import Invalid, NotFound

T = TypeVar("T", bound=Object)


@dataclass
class Claims(Generic[T]):
    """What is ours, what is let go of, and what could be taken."""

    kept: list[T] = field(default_factory=list)
    released: list[T] = field(default_factory=list)
    adopted: list[T] = field(default_factory=list)


def sort_out(owner: Object, selector: LabelSelection, found: Iterable[T]) -> Claims[T]:
    """Which of these belong to the owner, and which should, or should no longer."""
    claims = Claims[T]()
    is_leaving = owner.metadata.deletion_timestamp is not None
    for each in found:
        matches = selector.matches(each.metadata.labels)
        controller = controller_of(each)
        if controller is not None:
            if controller.uid != owner.metadata.uid:
                continue
            if matches:
                claims.kept.append(each)
            elif not is_leaving:
                claims.released.append(each)
        elif matches and not is_leaving and each.metadata.deletion_timestamp is None:
            claims.adopted.append(each)
    return claims


async def claim(
    means: Means,
    owner: Object,
    selector: LabelSelection,
    kind: type[T],
    *,
    fits: Callable[[T], bool] = lambda _: True,
    more: Mapping[str, Any] = MappingProxyType({}),
    known: Known[T] | None = None,
) -> list[T]:
    """All of a kind that belong to the owner, after it took what it should and let go of the rest.

    ``fits`` says what is looked at at all; ``more`` is what an adopted object's metadata get besides.  With
    ``known``, what was read before and has not changed is given again: it is not to be changed.
    """
    namespace = owner.metadata.namespace
    if known is None:
        own: list[T] = await means.client.list(kind, namespace=namespace, owner=owner.metadata.uid)
    else:
        own = await known.of_owner(owner)
    others = await means.client.list(kind, index={ORPHANS: namespace or ""})
    claims = sort_out(owner, selector, filter(fits, _each_once([*own, *others])))
    kept = claims.kept
    for each in claims.released:
        await _patch(means, each, {"ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}]})
    if claims.adopted and await is_still_there(means, owner):
        for each in claims.adopted:
            adopting = {"ownerReferences": [to_wire(reference(owner))], **more}
            if await _patch(means, each, adopting):
                kept.append(each)
    return kept


class Known(Generic[T]):
    """The objects that owners have, each decoded once for each of its versions.

    An owner of hundreds looks at all of them whenever one changes.  What is kept is what was there at the
    last look.
    """

    def __init__(self, client: ReconcileClient, kind: type[T]) -> None:
        self._client = client
        self._kind = kind
        self._objects: dict[str, dict[str, tuple[str, T]]] = {}  # by the owner's uid, then by their own

    async def of_owner(self, owner: Object) -> list[T]:
        """What an owner has now; not to be changed."""
        uid = owner.metadata.uid or ""
        there = await self._client.snapshots(self._kind, namespace=owner.metadata.namespace, owner=uid)
        before, now = self._objects.get(uid, {}), dict[str, tuple[str, T]]()
        for each in there:
            version = each.metadata.resource_version
            held = before.get(each.metadata.uid)
            if held is None or held[0] != version:
                held = version, self._kind.decode(each.data)
            now[each.metadata.uid] = held
        self._objects[uid] = now
        return [each for _, each in now.values()]

    def forget(self, uid: str) -> None:
        """The owner of this uid is gone."""
        self._objects.pop(uid, None)


async def _patch(means: Means, obj: Object, metadata: dict[str, Any]) -> bool:
    """Whether it could be done: what is gone by now, or is another, need not be."""
    try:
        patch = StrategicPatch({"metadata": {"uid": obj.metadata.uid, **metadata}})
        await means.client.patch(type(obj), obj.metadata.name or "", patch, namespace=obj.metadata.namespace)
    except (NotFound, Invalid):
        return False
    return True


def _each_once(found: Sequence[T]) -> Iterable[T]:
    return {each.metadata.uid: each for each in found}.values()


# ---- who must look at what has no controller -------------------------------------------------------

ORPHANS = "orphans"  # the index: namespace → what has no controller there


def _without_controller(metadata: Metadata) -> list[str]:
    return [] if metadata.controller is not None else [metadata.namespace]


orphans = FromMetadata(_without_controller)


has_no_controller = Predicate(lambda seen: seen.snapshot.metadata.controller is None, "has_no_controller")


def claims_of(building: Builder, means: Means, owner: type[Object], kind: type[Object]) -> Builder:
    """Have a controller look when something that it owns, or could own, changes."""

    async def concerned(orphan: Object) -> list[Request]:
        namespace = orphan.metadata.namespace
        owners: list[Object] = await means.client.cache.list(owner, namespace=namespace)
        return [
            Request(namespace or "", each.metadata.name or "")
            for each in owners
            if selector_of(each).matches(orphan.metadata.labels)
        ]

    return building.owns(kind, indexes={ORPHANS: orphans}).watches(kind, concerned, when=has_no_controller)


def selector_of(owner: Any) -> LabelSelection:
    """What an owner selects; one that says nothing selects nothing."""
    selector = owner.spec.selector
    if isinstance(selector, dict):  # a ReplicationController
        return LabelSelection.of(selector) if selector else LabelSelection.NOTHING
    return LabelSelection.from_object(selector)
