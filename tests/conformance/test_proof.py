"""``prove_on_cluster``: what an operator does not survive, found on a real cluster, of which nothing is left.

And the fixture ``cluster`` as a namespace of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from setpoint.api import ObjectMeta, crd_of
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.context import Context
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import ConfigMap, Namespace
from setpoint.kube.rbac.v1 import ClusterRole
from setpoint.testing.kube import ControlPlane
from setpoint.testing.proof.plans import At, Crash
from setpoint.testing.proof.real_lab import RealLab
from setpoint.testing.proof.real_proof import RealReport, prove_on_cluster
from setpoint.testing.waiting import eventually
from tests.mutants.operators import ONE, marked_before
from tests.mutants.widgets import Widget, child, create, delete, operator_of


@pytest.fixture(scope="module")
def config(cluster: ControlPlane) -> Config:
    """A cluster that knows the kind for a while: its garbage collector takes half a minute to hear of it."""
    found = Config.load(cluster.kubeconfig)

    async def define() -> None:
        async with Client(found) as client:
            await client.create(crd_of(Widget))

            async def is_served() -> bool:
                await client.list(Widget)
                return True

            await eventually(is_served, timeout=30, what="the kind is served")

    asyncio.run(define())
    return found


def there(config: Config) -> tuple[set[str], set[str]]:
    """The namespaces and definitions that a cluster has."""

    async def read() -> tuple[set[str], set[str]]:
        async with Client(config) as client:
            namespaces = {each.metadata.name or "" for each in await client.list(Namespace)}
            return namespaces, {
                each.metadata.name or "" for each in await client.list(CustomResourceDefinition)
            }

    return asyncio.run(read())


def proven(config: Config, *, wrong: bool) -> RealReport:
    return prove_on_cluster(
        lambda: marked_before(wrong=wrong), config, steps=ONE, only=["E2", "E6"], budget=120, at_once=3
    )


def test_a_mutant_is_killed_and_nothing_is_left_behind(config: Config) -> None:
    before = there(config)
    report = proven(config, wrong=True)
    assert [failure.first.oracle for failure in report.failures] == ["O3"], str(report)
    assert "crash after patch widgets.test.setpoint.dev/status default/w" in str(report)
    assert report.skipped.keys() == {"E6"}
    assert "skipped: E6 (needs time that can be put forward)" in str(report)
    assert there(config) == before


def test_its_twin_lives(config: Config) -> None:
    report = proven(config, wrong=False)
    assert report.is_good, str(report)
    assert report.plans >= 6
    assert not report.inconclusive


def test_who_writes_outside_of_its_namespace_is_kept_from_it_and_told(config: Config) -> None:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.client.create(ClusterRole(metadata=ObjectMeta(name="strayed")))

    with pytest.raises(ValueError, match=r"create clusterroles.*belong to none.*prove it in process"):
        prove_on_cluster(lambda: operator_of(reconcile), config, steps=[create(), delete()], only=["E2"])


def test_where_another_operator_is_at_work_nothing_is_begun(config: Config) -> None:
    async def prove_beside() -> None:
        from setpoint.manager.manager import Manager

        async with Client(config) as client:
            manager = Manager(client=client, name="running")
            marked_before(wrong=False).add_to(manager)
            async with manager:
                with pytest.raises(ValueError, match="somebody already sees to Widget objects"):
                    await asyncio.to_thread(proven, config, wrong=False)

    asyncio.run(prove_beside())


# ---- the fixture


def unavailable(why: str) -> NoReturn:
    raise LookupError(why)


@pytest.fixture
def lab(config: Config) -> Iterator[RealLab]:
    with RealLab(config, unavailable=unavailable) as real:
        yield real


async def keep(widget: Widget, ctx: Context) -> None:
    await ctx.apply(child(widget, text=widget.spec.text))


def test_a_lab_on_a_cluster_is_as_one_in_memory(lab: RealLab) -> None:
    lab.run(lambda: operator_of(keep))
    lab.create(Widget(metadata=ObjectMeta(name="w", namespace="default")))
    assert lab.get(ConfigMap, "w").data == {"text": "a"}
    lab.fault(Crash(at=At("apply configmaps default/w", 2), when="after"))
    lab.delete(ConfigMap, "w")
    assert lab.get(ConfigMap, "w").metadata.namespace == "default"
    assert "crash after apply configmaps default/w #2" in lab.trace.fired
    assert list(lab.snapshot()) == ["configmaps default/w", "widgets.test.setpoint.dev default/w"]
    lab.assert_quiescent()


def test_what_cannot_be_had_there_is_said(lab: RealLab) -> None:
    with pytest.raises(LookupError, match="3600 seconds take 3600 seconds"):
        lab.pass_time(3600)


def test_with_a_node_deployments_become_available(config: Config) -> None:
    web: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    }
    with RealLab(config, unavailable=unavailable, node=True) as real:
        real.create(web)

        async def available() -> bool:
            found = await real.client.get(Deployment, "web", namespace="default")
            return found.status is not None and found.status.available_replicas == 1

        real.wait(eventually(available, timeout=60, what="the Deployment is available"))
