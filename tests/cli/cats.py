"""An operator that may forget to look again, for commands that prove it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from setpoint.cli.main import main

OPERATOR = """
from setpoint import Context, Operator
from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.kube.core.v1 import ConfigMap

class Spec(Model):
    size: int = 1

class Cat(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: Spec = Spec()

operator = Operator("cats")
fed = {}

@operator.controller(Cat, owns=[ConfigMap])
async def feed(cat: Cat, ctx: Context) -> None:
    if REMEMBERS and cat.metadata.generation == fed.get(cat.metadata.uid):
        return
    fed[cat.metadata.uid] = cat.metadata.generation
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=cat.metadata.name), data={"size": str(cat.spec.size)}))
"""


def invoke(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def elsewhere(folder: Path, server: str = "https://192.0.2.1:6443") -> str:
    """A kubeconfig of a cluster there."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        f"""{{apiVersion: v1, kind: Config, current-context: prod,
        contexts: [{{name: prod, context: {{cluster: prod, user: me}}}}],
        clusters: [{{name: prod, cluster: {{server: "{server}"}}}}],
        users: [{{name: me, user: {{}}}}]}}"""
    )
    return str(kubeconfig)
