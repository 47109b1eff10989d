"""Operators that mix up objects, which shows only where there is more than one: mutants, and their twins."""

from __future__ import annotations

from typing import Final

from setpoint.api import ObjectMeta
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.testing.proof.process import Subject
from tests.mutants.operators import Mutant, cloud
from tests.mutants.widgets import Widget, child, operator_of

_LABELS: Final = {"app": "widgets"}


def hard_coded_namespace(*, wrong: bool) -> Subject:
    """Makes its child in the namespace that its author tried it in."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        made = child(widget, text=widget.spec.text)
        if wrong:
            made.metadata.namespace = "default"
        await ctx.apply(made)

    return operator_of(reconcile)


def reads_one_namespace(*, wrong: bool) -> Subject:
    """Says in its status whether its child is there, and looks for it where its author tried it."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))
        where = "default" if wrong else widget.metadata.namespace
        found = await ctx.client.live.list(ConfigMap, namespace=where)
        if widget.metadata.name in [each.metadata.name for each in found]:
            widget.status.id = widget.metadata.name or ""

    return operator_of(reconcile)


def prunes_siblings(*, wrong: bool) -> Subject:
    """Deletes the children that it no longer wants, by a label that the children of others have, too."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        namespace = widget.metadata.namespace
        wanted = [f"{widget.metadata.name}-{number}" for number in range(widget.spec.replicas)]
        for name in wanted:
            metadata = ObjectMeta(name=name, namespace=namespace, labels=_LABELS)
            await ctx.apply(ConfigMap(metadata=metadata))
        if wrong:
            found = list(await ctx.client.list(ConfigMap, namespace=namespace, labels=_LABELS))
        else:
            found = list(await ctx.list(ConfigMap, owned=True))
        for each in found:
            if each.metadata.name not in wanted:
                await ctx.delete(each)

    return operator_of(reconcile)


def named_without_namespace(*, wrong: bool) -> Subject:
    """Names what it makes outside by the name of the object alone."""

    def id_of(widget: Widget) -> str:
        name = widget.metadata.name or ""
        return name if wrong else f"{widget.metadata.namespace}-{name}"

    async def reconcile(widget: Widget, ctx: Context) -> None:
        del ctx
        found = await cloud.get(id_of(widget))
        if found is None:
            await cloud.create(id_of(widget), text=widget.spec.text)
        elif found["text"] != widget.spec.text:
            await cloud.update(id_of(widget), text=widget.spec.text)

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del ctx
        await cloud.delete(id_of(widget))

    return operator_of(reconcile, clean_up, owns=False)


APART: Final = (
    Mutant("N1", "its namespace is written in the code", "none", ("O14",), hard_coded_namespace),
    Mutant("N2", "looks for its child in one namespace", "none", ("O14",), reads_one_namespace),
    Mutant("N3", "prunes the children of its siblings", "none", ("O14",), prunes_siblings),
    Mutant("N4", "names what is outside without the namespace", "none", ("O14",), named_without_namespace),
)
