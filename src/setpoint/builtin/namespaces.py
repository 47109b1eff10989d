"""The end of a namespace: everything in it is deleted, of every kind, and then the namespace is let go.

1. Pods go first; while one is left, nothing else is touched, so that what stops can still use it.
2. Of every other kind that is in namespaces, custom ones too, all objects are deleted.
3. The namespace says how far it is, in the five conditions that kube-controller-manager writes.
4. It is let go when nothing is left, and not before: what has finalizers is waited for.

Which conditions follow from what was found, is decided in ``conditions_of``.  The server refuses new objects
in a namespace that ends, so there is an end.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from setpoint.api.names import Resource
from setpoint.api.times import Time
from setpoint.api.wire import Metadata
from setpoint.builtin.garbage import AsMetadata
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.predicates import where
from setpoint.controller.result import Request, Result
from setpoint.errors import ApiError, KindNotServed, MethodNotAllowed, NotFound
from setpoint.kube.core.v1 import Namespace, NamespaceCondition

NAME: Final = "namespace-controller"
WORKERS = 10  # as kube-controller-manager
FINALIZER: Final = "kubernetes"
SOONEST, LATEST = 0.2, 5.0  # seconds until what is left is looked at again: at first, and after a while

log = logging.getLogger("setpoint.builtin.namespaces")


def add_to(parts: Parts) -> None:
    """End namespaces that are deleted."""
    ending = where(Namespace, lambda namespace: namespace.metadata.deletion_timestamp is not None)
    building = builder(parts.manager).named(NAME).for_(Namespace, when=ending).with_options(workers=WORKERS)
    complete(building, Namespaces(parts).reconcile)


# ---- what is decided -------------------------------------------------------------------------------


@dataclass(slots=True)
class Left:
    """What is left in a namespace after everything was told to go."""

    objects: Counter[str] = field(default_factory=Counter[str])  # by "plural.group"
    finalizers: Counter[str] = field(default_factory=Counter[str])
    errors: list[str] = field(default_factory=list)

    def add(self, resource: Resource, remaining: Sequence[Metadata]) -> None:
        if remaining:
            self.objects[f"{resource.plural}.{resource.group}"] += len(remaining)
        for each in remaining:
            self.finalizers.update(each.finalizers or ())

    @property
    def is_empty(self) -> bool:
        return not self.objects and not self.errors


def conditions_of(left: Left) -> list[NamespaceCondition]:
    """What a namespace says of itself, as kube-controller-manager words it; the times are to be added."""

    def condition(sort: str, is_so: bool, reasons: tuple[str, str], messages: tuple[str, str]) -> None:
        found.append(
            NamespaceCondition(
                type=sort,
                status="True" if is_so else "False",
                reason=reasons[is_so],
                message=messages[is_so],
            )
        )

    found: list[NamespaceCondition] = []
    objects = ", ".join(
        f"{name} has {count} resource instances" for name, count in sorted(left.objects.items())
    )
    finalizers = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(left.finalizers.items())
    )
    errors = "; ".join(sorted(left.errors))
    condition(
        "NamespaceDeletionDiscoveryFailure",
        False,
        ("ResourcesDiscovered", "DiscoveryFailed"),
        ("All resources successfully discovered", ""),
    )
    condition(
        "NamespaceDeletionGroupVersionParsingFailure",
        False,
        ("ParsedGroupVersions", "GroupVersionParsingFailed"),
        ("All legacy kube types successfully parsed", ""),
    )
    condition(
        "NamespaceDeletionContentFailure",
        bool(left.errors),
        ("ContentDeleted", "ContentDeletionFailed"),
        (
            "All content successfully deleted, may be waiting on finalization",
            f"Failed to delete all resource types, {len(left.errors)} remaining: {errors}",
        ),
    )
    condition(
        "NamespaceContentRemaining",
        bool(objects),
        ("ContentRemoved", "SomeResourcesRemain"),
        ("All content successfully removed", f"Some resources are remaining: {objects}"),
    )
    condition(
        "NamespaceFinalizersRemaining",
        bool(finalizers),
        ("ContentHasNoFinalizers", "SomeFinalizersRemain"),
        (
            "All content-preserving finalizers finished",
            f"Some content in the namespace has finalizers remaining: {finalizers}",
        ),
    )
    return found


def merged(
    old: Sequence[NamespaceCondition], new: Sequence[NamespaceCondition], now: Time
) -> list[NamespaceCondition]:
    """The conditions to write: those of others stay, and a time changes where the status does."""
    known = {each.type: each for each in old}
    for each in new:
        before = known.get(each.type)
        is_same = before is not None and before.status == each.status
        each.last_transition_time = before.last_transition_time if before is not None and is_same else now
        known[each.type] = each
    return list(known.values())


def deletable(resources: Iterable[Resource]) -> list[Resource]:
    """The resources whose objects are in namespaces and can be deleted, each in its preferred version."""
    found: dict[tuple[str, str], Resource] = {}
    for resource in resources:
        if resource.namespaced and {"delete", "list"} <= set(resource.verbs):
            found.setdefault((resource.group, resource.plural), resource)
    return list(found.values())


# ---- what is done ----------------------------------------------------------------------------------


class Namespaces:
    """Ends one namespace, step by step."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._client = parts.client.live
        self._looks: dict[str, int] = {}  # how often each that ends was looked at: a hint for the next time

    async def reconcile(self, request: Request) -> Result | None:
        namespace = await ignore_not_found(self._client.get(Namespace, request.name))
        if (
            namespace is None
            or namespace.metadata.deletion_timestamp is None
            or FINALIZER not in (namespace.spec.finalizers or ())
        ):
            self._looks.pop(request.name, None)
            return None
        await self._client.discovery.refresh()
        resources = deletable(await self._client.discovery.resources())
        pods = [each for each in resources if (each.group, each.plural) == ("", "pods")]
        left, are_pods_left = Left(), False
        for resource in pods:
            are_pods_left = bool(await self._empty(resource, request.name))
        if not are_pods_left:
            for resource in resources:
                if resource not in pods:
                    await self._delete_all(resource, request.name, left)
        namespace = await self._tell(namespace, left)
        if left.is_empty and not are_pods_left:
            await self._let_go(namespace)
            return None
        looks = self._looks[request.name] = self._looks.get(request.name, 0) + 1
        return Result(requeue_after=min(LATEST, SOONEST * 1.5 ** min(looks, 20)))

    async def _delete_all(self, resource: Resource, namespace: str, left: Left) -> None:
        try:
            left.add(resource, await self._empty(resource, namespace))
        except (MethodNotAllowed, KindNotServed):
            pass  # its definition went meanwhile, or it only looks as if it could be deleted
        except ApiError as error:
            log.warning("namespace %s: %s", namespace, error)
            left.errors.append(f"unexpected items still remain in namespace: {namespace} for gvr: {resource}")

    async def _empty(self, resource: Resource, namespace: str) -> list[Metadata]:
        """Delete all objects of a kind; those that are left, waiting for something."""
        form = AsMetadata(resource.gvk, resource)
        remaining = list(await self._client.list(form, namespace=namespace))
        if all(each.deletion_timestamp is not None for each in remaining):
            return remaining
        if "deletecollection" in resource.verbs:
            await self._client.delete_collection(form, namespace=namespace, propagation="Background")
        else:
            for each in remaining:
                try:
                    await self._client.delete(form, each.name, namespace=namespace, propagation="Background")
                except NotFound:
                    continue
        return list(await self._client.list(form, namespace=namespace))

    async def _tell(self, namespace: Namespace, left: Left) -> Namespace:
        old = namespace.status.conditions or []
        now = Time.of(self._parts.clock.utc())
        conditions = merged(old, conditions_of(left), now)
        if conditions == old:
            return namespace
        namespace.status.conditions = conditions
        return await self._client.update_status(namespace)

    async def _let_go(self, namespace: Namespace) -> None:
        namespace.spec.finalizers = [each for each in namespace.spec.finalizers or () if each != FINALIZER]
        try:
            await self._client.update(namespace, subresource="finalize")
        except NotFound:
            log.debug("namespace %s is gone already", namespace.metadata.name)
        self._looks.pop(namespace.metadata.name or "", None)
