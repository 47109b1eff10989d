"""Keeps the pods of a StatefulSet: each with a place, a name and claims of its own, at the right revision.

Each look claims the pods of the set, finds or makes the revision of its template, takes the steps that
``statefulsets_steps.py`` decides on, writes the status, and forgets revisions that nobody is at any more.
The claims of a pod are made before it, and stay when it goes, unless the retention policy says otherwise.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from setpoint.api.model import ObjectMeta, OwnerReference, to_wire
from setpoint.api.patches import StrategicPatch
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods import PodState, next_available, pod_from, reference
from setpoint.builtin.pods_claims import ORPHANS, claim, claims_of, orphans, selector_of
from setpoint.builtin.pods_means import Means, complete, look_again
from setpoint.builtin.revisions import REVISION_LABEL, History, template_of
from setpoint.builtin.statefulsets_steps import (
    Create,
    Delete,
    Replace,
    Step,
    View,
    ordinal_of,
    status_of,
    steps,
)
from setpoint.client.client import ignore_not_found
from setpoint.controller.controller import Controller
from setpoint.controller.result import Request, Result
from setpoint.errors import AlreadyExists, ApiError, Conflict, NotFound
from setpoint.kube.apps.v1 import ControllerRevision, StatefulSet
from setpoint.kube.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    Pod,
    Volume,
)

NAME = "statefulset-controller"
_WORKERS = 5
_HASH_LABEL = "controller.kubernetes.io/hash"
_POD_NAME = "statefulset.kubernetes.io/pod-name"
_POD_INDEX = "apps.kubernetes.io/pod-index"


class StatefulSets:
    """The reconciler."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._client = means.client

    async def reconcile(self, request: Request) -> Result:
        owner = await ignore_not_found(
            self._client.get(StatefulSet, request.name, namespace=request.namespace)
        )
        if owner is None:
            return Result()
        selector, now = selector_of(owner), self._means.now()
        history = History(self._means, owner, hash_label=_HASH_LABEL)
        revisions = await history.revisions(selector)
        pods = await claim(
            self._means,
            owner,
            selector,
            PodState,
            fits=lambda pod: ordinal_of(owner, pod.metadata.name or "") is not None,
        )
        update, collisions = await history.current(
            revisions, owner.spec.template, owner.status.collision_count or 0
        )
        current = next(
            (each for each in revisions if each.metadata.name == owner.status.current_revision), update
        )
        view = View(owner, pods, current.metadata.name or "", update.metadata.name or "", now)
        failed: ApiError | None = None
        if owner.metadata.deletion_timestamp is None:
            failed = await self._carry_out(owner, steps(view), [*revisions, update])
        status = status_of(view, collisions)
        if status != owner.status:
            owner.status = status
            await self._client.update_status(owner)
        if failed is not None:
            raise failed
        live = {
            view.current,
            view.update,
            *((pod.metadata.labels or {}).get(REVISION_LABEL, "") for pod in pods),
        }
        await history.truncate(revisions, live, owner.spec.revision_history_limit)
        return look_again(next_available(pods, owner.spec.min_ready_seconds or 0, now))

    async def _carry_out(
        self, owner: StatefulSet, taken: Sequence[Step], revisions: Sequence[ControllerRevision]
    ) -> ApiError | None:
        """Take the steps; the first refusal, if any, after the status has been written."""
        by_name = {each.metadata.name: each for each in revisions}
        failed: ApiError | None = None
        for step in taken:
            try:
                match step:
                    case Create(ordinal, revision):
                        await self._create(owner, ordinal, by_name[revision])
                    case Delete(pod, is_condemned):
                        if is_condemned:
                            await self._give_claims_to(owner, pod)
                        await self._delete(owner, pod)
                    case Replace(pod):
                        self._warn_ended(owner, pod)
                        await self._delete(owner, pod)
            except ApiError as error:
                failed = failed or error
        return failed

    def _warn_ended(self, owner: StatefulSet, pod: PodState) -> None:
        how = "Failed" if pod.status.phase == "Failed" else "Terminated"
        where = f"StatefulSet {owner.metadata.namespace}/{owner.metadata.name}"
        note = f"{where} is recreating {how.lower()} Pod {pod.metadata.name}"
        self._means.warn(owner, f"Recreating{how}Pod", note)

    async def _create(self, owner: StatefulSet, ordinal: int, revision: ControllerRevision) -> None:
        pod = new_pod(owner, ordinal, revision)
        name = pod.metadata.name or ""
        for wish in claims_for(owner, name):
            await self._create_claim(owner, name, wish)
        try:
            await self._client.create(pod)
        except (AlreadyExists, NotFound):
            raise  # it is in the way, and looked at again; or its namespace is gone, and nobody is told
        except ApiError as error:
            self._means.warn(
                owner,
                "FailedCreate",
                f"create Pod {name} in StatefulSet {owner.metadata.name} failed error: {error.message}",
            )
            raise
        self._means.tell(
            owner, "SuccessfulCreate", f"Create Pod {name} in StatefulSet {owner.metadata.name} successful"
        )

    async def _create_claim(self, owner: StatefulSet, pod: str, wish: PersistentVolumeClaim) -> None:
        name = wish.metadata.name or ""
        there = await ignore_not_found(
            self._client.get(PersistentVolumeClaim, name, namespace=wish.metadata.namespace)
        )
        if there is not None:
            return
        where = f"Claim {name} Pod {pod} in StatefulSet {owner.metadata.name}"
        try:
            await self._client.create(wish)
        except AlreadyExists:
            return
        except ApiError as error:
            self._means.warn(owner, "FailedCreate", f"create {where} failed error: {error.message}")
            raise
        self._means.tell(owner, "SuccessfulCreate", f"Create {where} success")

    async def _delete(self, owner: StatefulSet, pod: PodState) -> None:
        name = pod.metadata.name or ""
        try:
            await self._client.delete(pod, uid=pod.metadata.uid or "")
        except (NotFound, Conflict):
            return  # it is gone, and another may have its name
        except ApiError as error:
            self._means.warn(
                owner,
                "FailedDelete",
                f"delete Pod {name} in StatefulSet {owner.metadata.name} failed error: {error.message}",
            )
            raise
        self._means.tell(
            owner, "SuccessfulDelete", f"Delete Pod {name} in StatefulSet {owner.metadata.name} successful"
        )

    async def _give_claims_to(self, owner: StatefulSet, pod: PodState) -> None:
        """Where a set that shrinks gives up claims, they go with the pod."""
        policy = owner.spec.persistent_volume_claim_retention_policy
        if policy is None or policy.when_scaled != "Delete":
            return
        owning = to_wire(
            OwnerReference(
                api_version="v1", kind="Pod", name=pod.metadata.name or "", uid=pod.metadata.uid or ""
            )
        )
        for each in claims_for(owner, pod.metadata.name or ""):
            patch = StrategicPatch({"metadata": {"ownerReferences": [owning]}})
            await ignore_not_found(
                self._client.patch(
                    PersistentVolumeClaim, each.metadata.name or "", patch, namespace=each.metadata.namespace
                )
            )


def new_pod(owner: StatefulSet, ordinal: int, revision: ControllerRevision) -> Pod:
    """The pod of a place, as a revision has it."""
    name = f"{owner.metadata.name}-{ordinal}"
    pod = pod_from(template_of(revision), owner)
    pod.metadata.name = name
    pod.metadata.labels = {
        **(pod.metadata.labels or {}),
        _POD_INDEX: str(ordinal),
        REVISION_LABEL: revision.metadata.name or "",
        _POD_NAME: name,
    }
    pod.spec.hostname = name
    pod.spec.subdomain = owner.spec.service_name
    claims = owner.spec.volume_claim_templates or ()
    own = [
        Volume(
            name=each.metadata.name or "",
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(
                claim_name=f"{each.metadata.name}-{name}"
            ),
        )
        for each in claims
    ]
    names = {volume.name for volume in own}
    others = [volume for volume in pod.spec.volumes or () if volume.name not in names]
    pod.spec.volumes = [*own, *others] or None
    return pod


def claims_for(owner: StatefulSet, pod: str) -> list[PersistentVolumeClaim]:
    """The claims of a pod of the set."""
    policy = owner.spec.persistent_volume_claim_retention_policy
    goes_with_set = policy is not None and policy.when_deleted == "Delete"
    made = []
    for template in owner.spec.volume_claim_templates or ():
        labels = {**(template.metadata.labels or {}), **(owner.spec.selector.match_labels or {})}
        metadata = ObjectMeta(
            name=f"{template.metadata.name}-{pod}",
            namespace=owner.metadata.namespace,
            labels=labels or None,
            annotations=template.metadata.annotations,
            owner_references=[reference(owner)] if goes_with_set else None,
        )
        made.append(PersistentVolumeClaim(metadata=metadata, spec=copy.deepcopy(template.spec)))
    return made


def add_to(parts: Parts) -> Controller:
    """Have StatefulSets looked after."""
    means = Means(NAME, parts)
    building = claims_of(means.building(_WORKERS).for_(StatefulSet), means, StatefulSet, PodState)
    building.owns(ControllerRevision, indexes={ORPHANS: orphans})
    return complete(building, StatefulSets(means).reconcile)
