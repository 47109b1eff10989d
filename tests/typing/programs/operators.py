"""Operators in every form, without a line for the type checker's sake; and what it must refuse."""

from collections.abc import Iterator
from typing import Any

from setpoint import (
    Children,
    Client,
    Context,
    Manager,
    Operator,
    Ready,
    Request,
    Result,
    SyncContext,
    is_ready,
    untyped,
)
from setpoint.api import Condition, CustomResource, Model, ObjectMeta
from setpoint.controller import generation_changed
from setpoint.kube.core.v1 import ConfigMap, Pod, Secret


class LampSpec(Model):
    colour: str = "white"


class LampStatus(Model):
    colour: str | None = None
    conditions: list[Condition] = []


class Lamp(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: LampSpec = LampSpec()
    status: LampStatus = LampStatus()


def settings_of(lamp: Lamp) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=lamp.metadata.name), data={"colour": lamp.spec.colour})


operator = Operator("lamp-operator")


@operator.controller(Lamp, owns=[ConfigMap, Secret], workers=4, timeout=60, when=generation_changed)
async def reconcile(lamp: Lamp, ctx: Context) -> Result | None:
    applied = await ctx.apply(settings_of(lamp))
    lamp.status.colour = (applied.data or {}).get("colour")
    plain = await ctx.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}})
    plain["data"] = {}
    pods = await ctx.list(Pod, labels={"lamp": ctx.request.name})
    ctx.set_condition("Ready", bool(pods), "Counted", f"{len(pods)} pods")
    if is_ready(applied) and await ctx.delete(Secret, "old"):
        ctx.event("Normal", "Cleaned", "an old secret", related=applied)
    patched = await ctx.create_or_patch(ConfigMap(metadata=ObjectMeta(name="y")), lambda it: it.metadata.name)
    assert patched.metadata
    secret = await ctx.client.live.get(Secret, "x", namespace=ctx.request.namespace)
    ctx.log.info("%s at %s, for %s", secret.metadata.name, ctx.now(), ctx.reasons)
    return Result(requeue_after=30) if not pods else None


@operator.finalizer(Lamp)
async def clean_up(lamp: Lamp, ctx: Context) -> None:
    await ctx.delete(settings_of(lamp))


others = Operator("lamp-others")  # a kind with a finalizer has one controller in an operator


@others.controller(Lamp, name="declared", owns=[ConfigMap])
async def declare(lamp: Lamp, ctx: Context) -> Children:
    settings = yield Ready(settings_of(lamp))
    lamp.status.colour = settings.data["colour"]
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    yield Result(requeue_after=60)


@others.controller(Lamp, name="listed", owns=[ConfigMap])
async def listed(lamp: Lamp, ctx: Context) -> list[ConfigMap]:
    return [settings_of(lamp)]


@others.controller(Lamp, name="plain", owns=[ConfigMap])
def plainly(lamp: Lamp, ctx: SyncContext) -> None:
    applied = ctx.apply(settings_of(lamp))
    lamp.status.colour = (applied.data or {}).get("colour")
    first = ctx.wait(ctx.client.get(Pod, "first"))
    assert first.spec


@others.controller(Lamp, name="plainly-declared", owns=[ConfigMap])
def plainly_declared(lamp: Lamp, ctx: SyncContext) -> Iterator[ConfigMap]:
    yield settings_of(lamp)


def by_name(settings: ConfigMap) -> list[Request]:
    return [Request(settings.metadata.namespace or "", settings.metadata.name or "")]


async def all_lamps(pod: Pod, client: Client) -> list[Request]:
    return [Request("", lamp.metadata.name or "") for lamp in await client.list(Lamp)]


@operator.controller(
    untyped("v1", "Node"), name="nodes", watches={ConfigMap: by_name, Pod: all_lamps}, every=60
)
async def nodes(node: dict[str, Any], ctx: Context) -> None:
    node["status"] = {}


class Reconciler:
    async def reconcile(self, lamp: Lamp, ctx: Context) -> None: ...


others.controller(Lamp, name="method")(Reconciler().reconcile)


async def main() -> None:
    manager = Manager()
    operator.add_to(manager)
    others.add_to(manager)
    await manager.run()


# A decorated function stays what it was.


async def test_of_the_authors(lamp: Lamp, ctx: Context) -> None:
    answer = await reconcile(lamp, ctx)
    assert answer is None or answer.requeue_after == 30


# What must not pass.


async def of_pods(pod: Pod, ctx: Context) -> None: ...


async def gives_text(lamp: Lamp, ctx: Context) -> str:
    return "done"


def wrongly() -> None:
    operator.controller(Lamp)(of_pods)  # type: ignore[arg-type]
    operator.controller(Lamp)(gives_text)  # type: ignore[type-var]
    operator.controller(Lamp, wokers=2)  # type: ignore[call-arg]


assert [each["metadata"]["name"] for each in operator.crds()] == ["lamps.demo.setpoint.dev"]
