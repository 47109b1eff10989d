"""Brings a Deployment's pods to its template, step by step, through a ReplicaSet for each template.

Each look: claim the ReplicaSets that match; if the Deployment is paused or its size changed, scale what there
is; else take the next step of the rollout, and clean up behind a finished one.  At the end, the status.

To go back to a former template (``kubectl rollout undo``) is to change the template: the ReplicaSet that has
it is found again, gets the next revision, and grows.

What to do is decided in ``rollout.py``; the pods are the ReplicaSets' own matter.
"""

from __future__ import annotations

import copy

from setpoint.api.meta import LabelSelector
from setpoint.api.model import ObjectMeta
from setpoint.builtin import rollout
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods import reference
from setpoint.builtin.pods_claims import claim, claims_of, selector_of
from setpoint.builtin.pods_means import Means, complete, look_again
from setpoint.builtin.revisions import hash_of
from setpoint.builtin.rollout import Scaling
from setpoint.client.client import ignore_not_found
from setpoint.controller.controller import Controller
from setpoint.controller.owners import controller_of
from setpoint.controller.result import Request, Result
from setpoint.errors import AlreadyExists, ApiError, NotFound
from setpoint.kube.apps.v1 import Deployment, ReplicaSet, ReplicaSetSpec

NAME = "deployment-controller"
_WORKERS = 5


class Deployments:
    """The reconciler."""

    def __init__(self, means: Means) -> None:
        self._means = means

    async def reconcile(self, request: Request) -> Result:
        deployment = await ignore_not_found(
            self._means.client.get(Deployment, request.name, namespace=request.namespace)
        )
        if deployment is None:
            return Result()
        selector = selector_of(deployment)
        if not selector.requirements:
            self._means.warn(
                deployment,
                "SelectingAll",
                "This deployment is selecting all pods. A non-empty selector is required.",
            )
            return Result()
        found = await claim(self._means, deployment, selector, ReplicaSet)
        look = _Look(self._means, deployment, found)
        await look.run()
        after = rollout.seconds_to_deadline(look.deployment, look.deployment.status, self._means.now())
        return look_again(after)


class _Look:
    """One look at one Deployment; ``replica_sets`` are kept as the server last gave them."""

    def __init__(self, means: Means, deployment: Deployment, replica_sets: list[ReplicaSet]) -> None:
        self._means = means
        self._client = means.client
        self._now = means.now()
        self.deployment = deployment
        self._replica_sets = replica_sets

    async def run(self) -> None:
        deployment = self.deployment
        if deployment.metadata.deletion_timestamp is not None:
            await self._tell_status(rollout.find_new(deployment, self._replica_sets), rolls_out=False)
            return
        await self._say_paused()
        if deployment.spec.paused or rollout.is_scaling(deployment, self._replica_sets):
            await self._scale_as_is()
        elif rollout.is_rolling(deployment):
            await self._roll()
        else:
            await self._recreate()

    # The ways a look can go.

    async def _scale_as_is(self) -> None:
        new = await self._find_new(make=False)
        for scaling in rollout.scale_in_proportion(self.deployment, new, self._old(new)):
            await self._scale(scaling)
        if self.deployment.spec.paused:
            await self._clean_up(new)
        await self._tell_status(self._same(new), rolls_out=False)

    async def _roll(self) -> None:
        new = await self._find_new(make=True)
        if new is None:
            return  # the name was taken: counted, and tried again
        for scaling in rollout.roll(self.deployment, new, self._old(new)):
            await self._scale(scaling)
        await self._finish(new)

    async def _recreate(self) -> None:
        new = await self._find_new(make=False)
        going = rollout.active(self._old(new))
        for each in going:
            await self._scale(Scaling(each, 0))
        if going or any(rollout.has_pods(each) for each in self._old(new)):
            await self._tell_status(self._same(new), rolls_out=True)
            return
        if new is None:
            new = await self._find_new(make=True)
            if new is None:
                return
        if rollout.size(new) != rollout.wanted(self.deployment):
            await self._scale(Scaling(new, rollout.wanted(self.deployment)))
        await self._finish(new)

    async def _finish(self, new: ReplicaSet) -> None:
        if rollout.is_complete(self.deployment, self.deployment.status):
            await self._clean_up(new)
        await self._tell_status(self._same(new), rolls_out=True)

    # What they are made of.

    def _old(self, new: ReplicaSet | None) -> list[ReplicaSet]:
        uid = None if new is None else new.metadata.uid
        return [each for each in self._replica_sets if each.metadata.uid != uid]

    def _same(self, replica_set: ReplicaSet | None) -> ReplicaSet | None:
        """A ReplicaSet as it is after what this look did to it."""
        if replica_set is None:
            return None
        uid = replica_set.metadata.uid
        return next((each for each in self._replica_sets if each.metadata.uid == uid), replica_set)

    def _replace(self, written: ReplicaSet) -> None:
        others = [each for each in self._replica_sets if each.metadata.uid != written.metadata.uid]
        self._replica_sets = [*others, written]

    async def _find_new(self, *, make: bool) -> ReplicaSet | None:
        """The ReplicaSet of the present template, with the newest revision."""
        deployment = self.deployment
        new = rollout.find_new(deployment, self._replica_sets)
        revision = rollout.next_revision(self._old(new))
        if new is None:
            return await self._make(revision) if make else None
        annotations = rollout.annotations_for(deployment, new, revision)
        min_ready = deployment.spec.min_ready_seconds
        if annotations != (new.metadata.annotations or {}) or min_ready != new.spec.min_ready_seconds:
            new.metadata.annotations = annotations
            new.spec.min_ready_seconds = min_ready
            new = await self._client.update(new)
            self._replace(new)
        await self._say_revision(
            rollout.revision_of(new), f'Found new replica set "{new.metadata.name}"', "FoundNewReplicaSet"
        )
        return new

    async def _make(self, revision: int) -> ReplicaSet | None:
        wish = self._new_replica_set(revision)
        name = wish.metadata.name or ""
        try:
            made = await self._client.create(wish)
        except AlreadyExists:
            there = await ignore_not_found(
                self._client.live.get(ReplicaSet, name, namespace=wish.metadata.namespace)
            )
            if there is None or not self._is_own(there):
                await self._count_collision()
                return None
            made = there
        except NotFound:
            raise  # its namespace is gone: there is nobody left to tell
        except ApiError as error:
            await self._say_failed(name, error)
            raise
        self._replace(made)
        if rollout.size(made):
            self._tell_scaled(name, 0, rollout.size(made))
        told = f'Created new replica set "{name}"'
        await self._say_revision(revision, told, "NewReplicaSetCreated", always=True)
        return made

    def _new_replica_set(self, revision: int) -> ReplicaSet:
        deployment = self.deployment
        pod_hash = hash_of(deployment.spec.template, deployment.status.collision_count)
        template = copy.deepcopy(deployment.spec.template)
        template.metadata.labels = {**(template.metadata.labels or {}), rollout.HASH_LABEL: pod_hash}
        selector = copy.deepcopy(deployment.spec.selector)
        selector = LabelSelector(
            match_labels={**(selector.match_labels or {}), rollout.HASH_LABEL: pod_hash},
            match_expressions=selector.match_expressions,
        )
        metadata = ObjectMeta(
            name=f"{deployment.metadata.name}-{pod_hash}",
            namespace=deployment.metadata.namespace,
            labels=dict(template.metadata.labels or {}),
            annotations=rollout.annotations_for(deployment, None, revision),
            owner_references=[reference(deployment)],
        )
        spec = ReplicaSetSpec(
            replicas=rollout.initial_size(deployment, self._replica_sets),
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector=selector,
            template=template,
        )
        return ReplicaSet(metadata=metadata, spec=spec)

    def _is_own(self, there: ReplicaSet) -> bool:
        owner = controller_of(there)
        return (
            owner is not None
            and owner.uid == self.deployment.metadata.uid
            and rollout.is_same_template(there.spec.template, self.deployment.spec.template)
        )

    async def _count_collision(self) -> None:
        status = self.deployment.status
        status.collision_count = (status.collision_count or 0) + 1
        self.deployment = await self._client.update_status(self.deployment)

    async def _scale(self, scaling: Scaling) -> None:
        replica_set, before = scaling.replica_set, rollout.size(scaling.replica_set)
        annotations = {
            **(replica_set.metadata.annotations or {}),
            **rollout.size_annotations(self.deployment),
        }
        if before == scaling.replicas and annotations == replica_set.metadata.annotations:
            return
        replica_set.metadata.annotations = annotations
        replica_set.spec.replicas = scaling.replicas
        self._replace(await self._client.update(replica_set))
        if before != scaling.replicas:
            self._tell_scaled(replica_set.metadata.name or "", before, scaling.replicas)

    async def _clean_up(self, new: ReplicaSet | None) -> None:
        for each in rollout.surplus(self.deployment, self._old(new)):
            await ignore_not_found(self._client.delete(each, uid=each.metadata.uid or ""))

    # What is said.

    def _tell_scaled(self, name: str, before: int, after: int) -> None:
        way = "up" if after > before else "down"
        self._means.tell(
            self.deployment,
            "ScalingReplicaSet",
            f"Scaled {way} replica set {name} from {before} to {after}",
        )

    async def _say_paused(self) -> None:
        said = rollout.paused_condition(self.deployment, self._now)
        if said is not None:
            rollout.put(self.deployment.status, said)
            self.deployment = await self._client.update_status(self.deployment)

    async def _say_revision(self, revision: int, message: str, reason: str, *, always: bool = False) -> None:
        """Write which revision is the present one, and that there is progress, where that is not said."""
        deployment = self.deployment
        annotations = dict(deployment.metadata.annotations or {})
        is_other = annotations.get(rollout.REVISION) != str(revision)
        if is_other:
            annotations[rollout.REVISION] = str(revision)
            deployment.metadata.annotations = annotations
        has_progress = rollout.find(deployment.status, "Progressing") is not None
        says = rollout.has_deadline(deployment) and (always or not has_progress)
        if says:
            rollout.put(
                deployment.status, rollout.condition("Progressing", "True", reason, message, self._now)
            )
        if is_other or says:
            self.deployment = await self._client.update_status(deployment)

    async def _say_failed(self, name: str, error: ApiError) -> None:
        deployment = self.deployment
        message = f'Failed to create new replica set "{name}": {error}'
        if rollout.has_deadline(deployment):
            failed = rollout.condition("Progressing", "False", "ReplicaSetCreateError", message, self._now)
            rollout.put(deployment.status, failed)
            await self._client.update_status(deployment)
        self._means.warn(deployment, "ReplicaSetCreateError", message)

    async def _tell_status(self, new: ReplicaSet | None, *, rolls_out: bool) -> None:
        deployment = self.deployment
        status = rollout.status_of(deployment, new, self._replica_sets, self._now)
        if rolls_out:
            rollout.settle_progress(deployment, status, new, self._replica_sets, self._now)
        if status != deployment.status:
            deployment.status = status
            self.deployment = await self._client.update_status(deployment)


def add_to(parts: Parts) -> Controller:
    """Have Deployments rolled out."""
    means = Means(NAME, parts)
    building = claims_of(means.building(_WORKERS).for_(Deployment), means, Deployment, ReplicaSet)
    return complete(building, Deployments(means).reconcile)
