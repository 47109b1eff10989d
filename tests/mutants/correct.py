"""Operators without a mistake that a careless proof would accuse: every plan must leave them alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.controller.context import Context
from setpoint.kube.apps.v1 import ControllerRevision
from setpoint.kube.core.v1 import ConfigMap, Namespace
from setpoint.operator import Operator
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.report import Report
from tests.mutants.sole import EVERY
from tests.mutants.widgets import Widget, child, operator_of


@dataclass(frozen=True)
class Correct:
    """An operator without a mistake, and why a proof might think otherwise."""

    number: str
    what: str
    make: Callable[[], Operator]
    history: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.number

    def proven(self, most_of_class: int | None = 1) -> Report:
        """A little of every class of faults, with what a user does where nobody says."""
        return prove(self.make, history=self.history, only=EVERY, most_of_class=most_of_class, shrink=False)


class LampSpec(Model):
    on: bool = False


class Bulb(Model):
    watts: int = 40
    colours: list[str] = []


class LampStatus(Model):
    lit: bool = False
    bulb: Bulb = Bulb()


class Lamp(CustomResource, group="test.setpoint.dev", version="v1"):
    spec: LampSpec = LampSpec()
    status: LampStatus = LampStatus()


class TenantSpec(Model):
    tier: str = "free"


class Tenant(CustomResource, group="test.setpoint.dev", version="v1", namespaced=False):
    spec: TenantSpec = TenantSpec()


def lamps() -> Operator:
    """Says in its status what is so, also where that is what the status says by default."""
    operator = Operator("lamps")

    @operator.controller(Lamp)
    async def reconcile(lamp: Lamp, ctx: Context) -> None:
        del ctx
        lamp.status.lit = lamp.spec.on
        lamp.status.bulb = Bulb(watts=60, colours=["red"]) if lamp.spec.on else Bulb()

    return operator


def revisions() -> Operator:
    """Keeps a revision of every template that it has ever rolled out, as a StatefulSet does."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))
        found = await ctx.list(ControllerRevision, owned=True)
        digest = hashlib.sha256(widget.spec.text.encode()).hexdigest()[:8]
        name = f"{widget.metadata.name}-{digest}"
        if name not in {each.metadata.name for each in found}:
            revision = ControllerRevision(
                metadata=ObjectMeta(name=name, namespace=widget.metadata.namespace),
                data={"text": widget.spec.text},
                revision=1 + max((each.revision or 0 for each in found), default=0),
            )
            await ctx.apply(revision)

    operator = Operator("widgets")
    operator.controller(Widget, owns=[ConfigMap, ControllerRevision])(reconcile)
    return operator


def catches_up() -> Operator:
    """Reads much from the server when it is started, and nothing of that again."""
    is_read = False

    async def reconcile(widget: Widget, ctx: Context) -> None:
        nonlocal is_read
        for number in range(0 if is_read else 60):
            labels = {"part": f"{number}"}
            await ctx.client.live.list(ConfigMap, namespace=widget.metadata.namespace, labels=labels)
        is_read = True
        await ctx.apply(child(widget, text=widget.spec.text))

    return operator_of(reconcile)


def tenants() -> Operator:
    """Owns a Namespace, which is deleted with the object."""
    operator = Operator("tenants")

    @operator.controller(Tenant, owns=[Namespace])
    async def reconcile(tenant: Tenant, ctx: Context) -> None:
        labels = {"tier": tenant.spec.tier}
        await ctx.apply(Namespace(metadata=ObjectMeta(name=f"tenant-{tenant.metadata.name}", labels=labels)))

    return operator


CORRECT: Final = (
    Correct("14a", "a status that says what it would say by default", lamps),
    Correct("14b", "a history of revisions", revisions, history=("controllerrevisions.apps",)),
    Correct("14c", "a Namespace of its own", tenants),
    Correct("14d", "many requests after each restart", catches_up),
)
