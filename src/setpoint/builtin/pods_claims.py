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
from setpoint.builtin.pods import reference
from setpoint.builtin.pods_means import Means, is_still_there
from setpoint.controller.builder import Builder
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
) -> list[T]:
    """All of a kind that belong to the owner, after it took what it should and let go of the rest.

    ``fits`` says what is looked at at all; ``more`` is what an adopted object's metadata get besides.
    """
    namespace = owner.metadata.namespace
    own = await means.client.list(kind, namespace=namespace, owner=owner.metadata.uid)
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


def orphans(obj: Object) -> list[str]:
    return [] if controller_of(obj) is not None else [obj.metadata.namespace or ""]


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
