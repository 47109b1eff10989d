"""The operator that the soak runs: it copies a Lamp's value to its status, and to a ConfigMap if asked."""

from setpoint import Context, Operator
from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.kube.core.v1 import ConfigMap


class LampSpec(Model):
    value: str = ""
    child: bool = False
    note: str | None = None  # to make it large


class LampStatus(Model):
    value: str = ""


class Lamp(CustomResource, group="soak.setpoint.dev", version="v1"):
    spec: LampSpec = LampSpec()
    status: LampStatus = LampStatus()


operator = Operator("soak")


@operator.controller(Lamp, owns=[ConfigMap], workers=8)
async def reconcile(lamp: Lamp, ctx: Context) -> None:
    if lamp.spec.child:
        name = ObjectMeta(name=lamp.metadata.name)
        await ctx.apply(ConfigMap(metadata=name, data={"value": lamp.spec.value}))
    lamp.status.value = lamp.spec.value
