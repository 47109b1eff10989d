"""``prove_on_cluster``: what an operator does not survive, found on a real cluster, of which nothing is left.

It is made small there, and replayed there.  And the fixture ``cluster`` as a namespace of that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from setpoint.api import CustomResource, ObjectMeta, crd_of, to_wire, yaml
from setpoint.cli.main import main
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.context import Context
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import ConfigMap, Namespace
from setpoint.kube.rbac.v1 import ClusterRole
from setpoint.operator import Operator
from setpoint.testing.kube import ControlPlane
from setpoint.testing.proof.plans import At, Crash, Create, Plan
from setpoint.testing.proof.prove import CLASSES
from setpoint.testing.proof.real_lab import RealLab
from setpoint.testing.proof.real_proof import prove_on_cluster
from setpoint.testing.proof.report import Report
from setpoint.testing.waiting import eventually
from tests.mutants.operators import ONE, gives_up, marked_before, prunes
from tests.mutants.widgets import Widget, WidgetStatus, change, child, create, delete, operator_of


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


def proven(config: Config, *, wrong: bool) -> Report:
    return prove_on_cluster(
        lambda: marked_before(wrong=wrong), config, steps=ONE, only=["E2", "E6"], budget=300, at_once=3
    )


def test_a_mutant_is_killed_and_made_small_and_nothing_is_left_behind(config: Config) -> None:
    before = there(config)
    report = proven(config, wrong=True)
    assert [failure.first.oracle for failure in report.failures] == ["O3"], str(report)
    written = At("patch widgets.test.setpoint.dev/status default/w")
    assert report.failures[0].plan == Plan((create(),), (Crash(at=written, when="after"),))
    assert there(config) == before


def test_its_twin_lives_and_what_was_left_out_is_said(config: Config) -> None:
    report = proven(config, wrong=False)
    assert report.is_good, str(report)
    assert report.plans >= 5
    assert not report.inconclusive
    assert report.skipped.keys() == {"E6", "O2 an hour later", "O4 in the status of children", "O12"}
    assert "skipped: O2 an hour later, E6 (needs time that can be put forward)" in str(report)


@pytest.mark.parametrize("wrong", [True, False])
def test_a_state_that_depends_on_the_way_that_led_there_is_found(config: Config, wrong: bool) -> None:
    steps = [create(replicas=2), change(replicas=1), delete()]
    report = prove_on_cluster(
        lambda: prunes(wrong=wrong), config, steps=steps, only=["none"], budget=300, at_once=3
    )
    assert report.is_good is not wrong, str(report)
    for failure in report.failures:
        assert failure.first.oracle == "O4"
        assert "configmaps default/w-1: should not be there" in failure.first.what
        assert failure.plan.steps == tuple(steps[:2])


@pytest.mark.parametrize("wrong", [True, False])
def test_two_faults_find_what_one_does_not(config: Config, wrong: bool) -> None:
    report = prove_on_cluster(
        lambda: gives_up(wrong=wrong),
        config,
        steps=[create()],
        only=["E2", "E7"],
        most_failures=1,
        budget=240,
        at_once=3,
    )
    assert report.is_good is not wrong, str(report)
    assert {state for cell, state in report.cells.items() if cell.fault == "E2"} == {"ok"}
    pairs = {state for cell, state in report.cells.items() if cell.fault == "E7"}
    assert ("failed" in pairs) is wrong
    assert wrong or "ok" in pairs


def test_of_every_class_that_can_be_had_there_a_plan_is_survived_and_none_is_broken(config: Config) -> None:
    classes = set(CLASSES) - {"none", "X1"}  # without faults others are; nothing is made outside
    report = prove_on_cluster(
        lambda: operator_of(keep),
        config,
        steps=[create(), change(text="b")],
        only=sorted(classes),
        most_of_class=1,
        budget=300,
        at_once=30,  # it is waiting that takes time
    )
    assert report.is_good, str(report)
    assert not report.failures, str(report)
    tried = {cell.fault for cell, state in report.cells.items() if state != "open"}
    assert tried == classes - report.skipped.keys(), str(report)


def test_what_fails_there_is_kept_and_replayed_there_by_the_commands(
    cluster: ControlPlane, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = there(config)
    operator, steps = tmp_path / "widgets.py", tmp_path / "steps.yaml"
    made = "from tests.mutants.operators import marked_before\noperator = marked_before(wrong={})\n"
    operator.write_text(made.format(True))
    created = create()
    assert isinstance(created, Create)
    steps.write_text(yaml.dump([{"type": "Create", "object": created.object}]))
    where = ["--cluster", "--kubeconfig", str(cluster.kubeconfig)]

    def invoke(*arguments: str) -> tuple[int, str]:
        ran = CliRunner().invoke(main, [*arguments, *where])
        assert isinstance(ran.exception, SystemExit | None), ran.exception
        return ran.exit_code, ran.output

    code, told = invoke("prove", str(operator), "--steps", str(steps), "--only", "E2", "--without", "O10")
    assert code == 1, told
    (kept,) = (tmp_path / ".setpoint" / "proof").glob("*.json")
    assert f"setpoint replay {kept.relative_to(tmp_path)} {' '.join(where)}" in told
    assert '"is_on_cluster": true' in kept.read_text()
    code, told = invoke("replay", str(kept))
    assert code == 1, told
    assert f"on {config.server}" in told
    assert "FAIL O3" in told
    operator.write_text(made.format(False))
    code, told = invoke("replay", str(kept))
    assert code == 0, told
    assert "ok widgets" in told
    assert there(config) == before


class Gadget(CustomResource, group="test.setpoint.dev", version="v1"):
    """A kind that the cluster does not know before."""

    status: WidgetStatus = WidgetStatus()


def gadgets() -> Operator:
    operator = Operator("gadgets")

    @operator.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        del ctx
        gadget.status.done = "yes"

    return operator


def test_of_two_proofs_at_once_none_takes_the_definition_from_the_other(config: Config) -> None:
    before = there(config)
    gadgets().crds()  # reads the docs of its fields: Python 3.11 cannot do that in two threads at once
    metadata = {"name": "g", "namespace": "default"}
    steps = [Create({"apiVersion": "test.setpoint.dev/v1", "kind": "Gadget", "metadata": metadata})]

    def proof(plans: int) -> Report:
        return prove_on_cluster(gadgets, config, steps=steps, only=["E1", "E2", "E4"], most_plans=plans)

    async def both() -> list[Report]:
        return list(await asyncio.gather(*(asyncio.to_thread(proof, plans) for plans in (4, 6))))

    try:
        for report in asyncio.run(both()):
            assert report.is_good, str(report)
            assert not report.inconclusive
    finally:
        logging.disable(logging.NOTSET)  # in one process each is the other's way back
    assert there(config) == before


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


def test_it_is_talked_to_as_with_kubectl_there(lab: RealLab, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        yaml.dump_all([crd_of(Widget), to_wire(Widget(metadata=ObjectMeta(name="w")))])
        + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, finalizers: [test.setpoint.dev/hold]}\n"
    )
    lab.apply(file)
    assert lab.wait_for(Widget, "w", lambda seen: seen.spec.text == "a")
    lab.delete(ConfigMap, "c")
    with pytest.raises(AssertionError, match=r"c is deleted: not so within 0.5 s; .*setpoint.dev/hold"):
        lab.wait_for(ConfigMap, "c", deleted=True, timeout=0.5)
    lab.change(ConfigMap, "c", {"metadata": {"finalizers": None}})
    lab.wait_for(ConfigMap, "c", deleted=True)
    assert "delete ConfigMap c" in lab.story()


def test_with_a_node_deployments_become_available(config: Config) -> None:
    web = """
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: web, image: web}]}
    """
    with RealLab(config, unavailable=unavailable, node=True) as real:
        real.apply(web)
        found = real.wait_for(Deployment, "web", "Available", timeout=60)
        assert found.status is not None
        assert found.status.available_replicas == 1
