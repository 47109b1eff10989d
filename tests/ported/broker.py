"""Runs a message broker whose volumes can grow: what RabbitMQ's cluster operator does with storage.

Ported from the description of its behaviour.  A StatefulSet cannot change the size that its claims are made
with, so the operator lets the StatefulSet go without its pods (``Orphan``), has each claim ask for more, and
makes the StatefulSet again with the new size.  Two mistakes can be put in:

``by_template``
    Whether to grow is decided by the size in the StatefulSet.  A crash after that is gone, and before the
    claims were changed: it is made again with the new size, nothing is left to decide by, and the claims keep
    their old size for ever (rabbitmq/cluster-operator#782).
``any_difference``
    A size that differs is a reason, also one that is smaller, such as an old view shows after a restart: the
    StatefulSet is deleted for nothing (rabbitmq/cluster-operator#653).  Not so here: before it deletes
    anything, the runtime looks at the object as it is.
"""

from __future__ import annotations

from typing import Literal

from setpoint.api import CustomResource, LabelSelector, MergePatch, Model, ObjectMeta, Quantity
from setpoint.client.client import ignore_not_found
from setpoint.controller.context import Context
from setpoint.errors import RetryLater
from setpoint.kube.apps.v1 import StatefulSet, StatefulSetSpec
from setpoint.kube.core.v1 import (
    Container,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PodSpec,
    PodTemplateSpec,
    VolumeResourceRequirements,
)
from setpoint.operator import Operator

Mistake = Literal["", "by_template", "any_difference"]


class BrokerSpec(Model):
    replicas: int = 1
    storage: Quantity = Quantity("10Gi")


class BrokerStatus(Model):
    ready_replicas: int = 0


class Broker(CustomResource, group="ported.setpoint.dev", version="v1"):
    spec: BrokerSpec = BrokerSpec()
    status: BrokerStatus = BrokerStatus()


def brokers(mistake: Mistake = "") -> Operator:
    operator = Operator("brokers")

    @operator.controller(Broker, owns=[StatefulSet])
    async def reconcile(broker: Broker, ctx: Context) -> None:
        name, wanted = broker.metadata.name or "", broker.spec.storage
        found = await ignore_not_found(ctx.client.get(StatefulSet, name, namespace=broker.metadata.namespace))
        if found is not None and found.metadata.deletion_timestamp is not None:
            raise RetryLater(1, "the StatefulSet is on its way out")
        size = None if found is None else _size(found)
        if mistake == "by_template":
            if found is not None and size is not None and size < wanted:
                await ctx.delete(found, propagation="Orphan")
                await grow(broker, wanted, ctx)
        else:
            await grow(broker, wanted, ctx)
            is_other = size != wanted if mistake == "any_difference" else size is not None and size < wanted
            if found is not None and is_other:
                await ctx.delete(found, propagation="Orphan")
        if found is not None and size != wanted:
            raise RetryLater(1, "the StatefulSet is made again")
        made = await ctx.apply(_stateful_set(broker))
        broker.status.ready_replicas = (made.status and made.status.ready_replicas) or 0

    async def grow(broker: Broker, wanted: Quantity, ctx: Context) -> None:
        """Have every claim ask for as much as is wanted; none ever asks for less."""
        for number in range(broker.spec.replicas):
            name = f"data-{broker.metadata.name}-{number}"
            asked = ctx.client.live.get(PersistentVolumeClaim, name, namespace=broker.metadata.namespace)
            claim = await ignore_not_found(asked)
            if claim is None or claim.spec.resources is None:
                continue
            if Quantity((claim.spec.resources.requests or {}).get("storage", "0")) < wanted:
                patch = MergePatch({"spec": {"resources": {"requests": {"storage": str(wanted)}}}})
                await ctx.client.patch(
                    PersistentVolumeClaim, name, patch, namespace=broker.metadata.namespace
                )

    return operator


def _size(found: StatefulSet) -> Quantity:
    claim = (found.spec.volume_claim_templates or [])[0]
    requests = (claim.spec.resources and claim.spec.resources.requests) or {}
    return Quantity(requests.get("storage", "0"))


def _stateful_set(broker: Broker) -> StatefulSet:
    labels = {"broker": broker.metadata.name or ""}
    storage = VolumeResourceRequirements(requests={"storage": broker.spec.storage})
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data"),
        spec=PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=storage),
    )
    pod = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels),
        spec=PodSpec(containers=[Container(name="broker", image="broker")]),
    )
    return StatefulSet(
        metadata=ObjectMeta(name=broker.metadata.name, namespace=broker.metadata.namespace),
        spec=StatefulSetSpec(
            replicas=broker.spec.replicas,
            service_name=broker.metadata.name,
            selector=LabelSelector(match_labels=labels),
            template=pod,
            volume_claim_templates=[claim],
        ),
    )
