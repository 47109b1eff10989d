# pyright: strict
"""What an editor shows: each type a user meets is known, by pyright and by mypy alike.

``# pyright: strict`` above reports whatever is unknown, and each ``assert_type`` says what it must be.
"""

from typing import assert_type

from setpoint import Client, Context, Operator, Request, SyncContext
from setpoint.api import CustomResource, Model
from setpoint.cache import Cache
from setpoint.client import Objects
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import ConfigMap, Pod


class KettleSpec(Model):
    litres: int = 1


class KettleStatus(Model):
    boils: bool = False


class Kettle(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: KettleSpec = KettleSpec()
    status: KettleStatus = KettleStatus()


operator = Operator("kettle-operator")


@operator.controller(Kettle, owns=[Deployment])
async def reconcile(kettle: Kettle, ctx: Context) -> None:
    assert_type(kettle.spec.litres, int)
    assert_type(ctx.request.name, str)
    pods = await ctx.list(Pod, labels={"kettle": ctx.request.name})
    assert_type(pods, list[Pod])
    assert_type([pod.metadata.name for pod in pods], list[str | None])
    assert_type(await ctx.client.list(Pod), Objects[Pod])
    assert_type(await ctx.client.live.list(Pod), Objects[Pod])
    async for page in ctx.client.live.list(Pod).pages():
        assert_type(page, list[Pod])
    async for pod in ctx.client.live.list(Pod):
        assert_type(pod, Pod)
    assert_type(await ctx.get(Pod, "first"), Pod)
    assert_type(await ctx.apply(ConfigMap()), ConfigMap)


@operator.controller(Kettle, name="plain")
def plainly(kettle: Kettle, ctx: SyncContext) -> None:
    assert_type(ctx.list(Pod), list[Pod])
    assert_type(ctx.get(Pod, "first"), Pod)


async def cached(cache: Cache) -> None:
    assert_type(await cache.list(Pod), list[Pod])


def by_name(settings: ConfigMap) -> list[Request]:
    return [Request(settings.metadata.namespace or "", settings.metadata.name or "")]


async def of_pod(pod: Pod) -> list[Request]:
    return [Request("", pod.metadata.name or "")]


async def all_kettles(deployment: Deployment, client: Client) -> list[Request]:
    found = await client.list(Kettle)
    assert_type(found, Objects[Kettle])
    return [Request("", kettle.metadata.name or "") for kettle in found]


@operator.controller(
    Kettle, name="watching", watches={ConfigMap: by_name, Pod: of_pod, Deployment: all_kettles}
)
async def watching(kettle: Kettle, ctx: Context) -> None: ...


def named(settings: ConfigMap) -> str:
    return settings.metadata.name or ""


def too_many(settings: ConfigMap, client: Client, more: int) -> list[Request]:
    return []


def waits_in_vain(settings: ConfigMap, client: Client) -> list[Request]:
    return []


async def of_nothing() -> list[Request]:
    return []


def wrongly() -> None:
    operator.controller(Kettle, watches={ConfigMap: named})  # type: ignore[dict-item]
    operator.controller(Kettle, watches={ConfigMap: too_many})  # type: ignore[dict-item]
    operator.controller(Kettle, watches={ConfigMap: waits_in_vain})  # type: ignore[dict-item]
    operator.controller(Kettle, watches={ConfigMap: of_nothing})  # type: ignore[dict-item]
