"""The fixture ``cluster``: a cluster of the test's own, in which time passes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from setpoint.api import MergePatch, ObjectMeta, crd_of, to_wire, yaml
from setpoint.controller.context import Context
from setpoint.errors import AlreadyExists, ApplyConflict, NotFound
from setpoint.kube.core.v1 import ConfigMap, Container, Pod, PodSpec
from setpoint.kube.rbac.v1 import ClusterRole
from setpoint.testing.proof.lab import Lab
from setpoint.testing.proof.plans import AnyFault, At, ClockStep, Crash, SlowClock
from tests.mutants.operators import timestamps
from tests.mutants.widgets import Widget, child, operator_of


async def reconcile(widget: Widget, ctx: Context) -> None:
    await ctx.apply(child(widget, text=widget.spec.text))


def a_widget() -> Widget:
    return Widget(metadata=ObjectMeta(name="w", namespace="default"))


def test_an_operator_keeps_its_children_through_crashes_and_old_views(cluster: Lab) -> None:
    cluster.run(lambda: operator_of(reconcile))
    cluster.create(a_widget())
    cluster.fault(Crash(at=At("apply configmaps default/w", 2), when="after"))
    cluster.delete(ConfigMap, "w")
    assert cluster.get(ConfigMap, "w").data == {"text": "a"}
    cluster.freeze("widgets.test.setpoint.dev", seconds=100)
    cluster.change(Widget, "w", {"spec": {"text": "b"}})
    assert cluster.get(ConfigMap, "w").data == {"text": "b"}
    cluster.restart()
    cluster.assert_quiescent()
    assert list(cluster.snapshot()) == ["configmaps default/w", "widgets.test.setpoint.dev default/w"]


def test_two_clusters_share_nothing(cluster: Lab) -> None:
    assert cluster.list(ConfigMap) == []
    with Lab() as other:
        other.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="default")))
        assert len(other.list(ConfigMap)) == 1
    assert cluster.list(ConfigMap) == []


def test_an_hour_passes_at_once(cluster: Lab) -> None:
    began = cluster.now()
    cluster.pass_time(3600)
    assert cluster.now() - began == 3600


@pytest.mark.parametrize(
    "fault",
    [
        ClockStep(at=At("apply configmaps default/w"), seconds=3600.0, clock="steady"),
        SlowClock(at=At("apply configmaps default/w")),
    ],
)
def test_the_clocks_of_an_operators_machine_go_wrong_and_nobody_elses(cluster: Lab, fault: AnyFault) -> None:
    ahead: list[float] = []

    async def looks(widget: Widget, ctx: Context) -> None:
        ahead.append(asyncio.get_running_loop().time() - cluster.now())
        await reconcile(widget, ctx)

    cluster.run(lambda: operator_of(looks))
    cluster.fault(fault)
    cluster.create(a_widget())
    cluster.pass_time(60)
    cluster.change(Widget, "w", {"spec": {"text": "b"}})
    assert abs(ahead[0]) < 1
    assert abs(ahead[-1]) > 20
    assert cluster.now() < 2000


def test_who_does_not_keep_still_is_told_so(cluster: Lab) -> None:
    cluster.run(lambda: timestamps(wrong=True))
    cluster.create(a_widget())
    with pytest.raises(AssertionError, match="written though nothing has changed: 2 s later: patch widgets"):
        cluster.assert_quiescent()


def test_what_fails_in_the_block_of_a_lab_is_told_with_the_story() -> None:
    def fail() -> None:
        with Lab() as lab:
            lab.run(lambda: operator_of(reconcile))
            lab.create(a_widget())
            lab.get(ConfigMap, "other")

    with pytest.raises(NotFound) as failure:
        fail()
    (story,) = failure.value.__notes__
    assert "create Widget w" in story
    assert "configmaps default" in story


def test_the_story_without_faults_is_how_it_ended(cluster: Lab) -> None:
    for number in range(100):
        cluster.create(ConfigMap(metadata=ObjectMeta(name=f"c{number}")))
    told = cluster.story()
    assert "create ConfigMap c99" in told
    assert "create ConfigMap c0\n" not in told


def test_the_story_is_about_what_was_looked_at_and_what_belongs_to_that(cluster: Lab) -> None:
    cluster.run(lambda: operator_of(reconcile))
    cluster.create(a_widget())
    cluster.create(Widget(metadata=ObjectMeta(name="unconcerned")))
    cluster.get(ConfigMap, "w")
    told = cluster.story()
    assert "create Widget w" in told
    assert "reconcile" in told
    assert "unconcerned" not in told
    cluster.change(Widget, "unconcerned", {"spec": {"text": "b"}})
    cluster.get(ConfigMap, "unconcerned")
    told = cluster.story()
    assert "change Widget" in told
    assert "create Widget w" not in told, "what was looked at before that is done with"


def test_the_story_says_what_the_user_did_and_what_was_refused(cluster: Lab) -> None:
    cluster.create(ConfigMap(metadata=ObjectMeta(name="c")))
    cluster.change(ConfigMap, "c", {"data": {"a": "b"}})
    with pytest.raises(AlreadyExists):
        cluster.create(ConfigMap(metadata=ObjectMeta(name="c")))
    told = cluster.story()
    assert "(by user)" in told
    assert 'change ConfigMap c: {"data":{"a":"b"}}' in told
    assert "refused: create v1 ConfigMap default/c" in told


def test_the_fixture_operator_runs_it(cluster: Lab, operator: object) -> None:
    assert callable(operator)
    operator(lambda: operator_of(reconcile))
    cluster.create(a_widget())
    assert cluster.get(ConfigMap, "w")


# ---- as kubectl


TWO = """
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {colour: blue}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: default}}
"""


def test_a_file_of_several_documents_is_applied_and_applied_again(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    with Lab(folder=tmp_path) as lab:
        lab.apply("two.yaml")
        assert [each.metadata.name for each in lab.list(ConfigMap)] == ["one", "two"]
        file.write_text(TWO.replace("data: {colour: blue}", "data: {size: big}"))
        lab.apply(file)
        assert lab.get(ConfigMap, "one").data == {"size": "big"}, "what is no longer said is given up"


def test_definitions_are_served_before_what_follows_them_is_applied(cluster: Lab) -> None:
    cluster.apply(yaml.dump_all([crd_of(Widget), to_wire(a_widget())]))
    assert cluster.get(Widget, "w").metadata.name == "w"
    cluster.run(lambda: operator_of(reconcile))
    assert cluster.get(ConfigMap, "w").data == {"text": "a"}


def test_what_others_manage_is_taken_over_only_by_force(cluster: Lab) -> None:
    cluster.run(lambda: operator_of(reconcile))
    cluster.create(a_widget())
    mine = ConfigMap(metadata=ObjectMeta(name="w"), data={"text": "mine"})
    with pytest.raises(ApplyConflict, match="text"):
        cluster.apply(mine)
    cluster.apply(mine, force=True)
    assert cluster.get(ConfigMap, "w").data == {"text": "a"}, "and the operator takes it back"


def test_to_delete_what_is_not_there_is_a_failure(cluster: Lab) -> None:
    with pytest.raises(NotFound, match="ConfigMap default/c"):
        cluster.delete(ConfigMap, "c")


def test_kinds_without_namespace_are_asked_for_in_the_same_way(cluster: Lab) -> None:
    cluster.create(ClusterRole(metadata=ObjectMeta(name="reader")))
    assert cluster.get(ClusterRole, "reader")
    cluster.delete(ClusterRole, "reader")
    cluster.wait_for(ClusterRole, "reader", deleted=True)


def a_pod() -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p"),
        spec=PodSpec(containers=[Container(name="c", image="c")], node_name="n"),
    )


def is_ready(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, "reason": "Because", "message": "so it is"}]}


def test_wait_for_gives_the_object_once_it_is_in_the_condition(cluster: Lab) -> None:
    cluster.create(a_pod())

    async def become_ready() -> None:
        await asyncio.sleep(20)
        await cluster.client.patch(Pod, "p", MergePatch({"status": is_ready("True")}), subresource="status")

    began = cluster.now()
    cluster.wait(_in_background(become_ready()))
    pod = cluster.wait_for(Pod, "p")
    assert pod.status is not None
    assert 20 <= cluster.now() - began < 21


def test_wait_for_says_what_it_saw_last(cluster: Lab) -> None:
    with pytest.raises(AssertionError, match=r"Pod p is Ready: not so within 5 s; .*NotFound: get v1 Pod"):
        cluster.wait_for(Pod, "p", timeout=5)
    cluster.create(a_pod())
    with pytest.raises(AssertionError, match=r"Pod p is deleted: .* it is there: .*\"name\":\"p\""):
        cluster.wait_for(Pod, "p", deleted=True)
    cluster.wait(
        cluster.client.patch(Pod, "p", MergePatch({"status": is_ready("False")}), subresource="status")
    )
    with pytest.raises(AssertionError, match=r"last saw AssertionError: Ready=False \(Because: so it is\)"):
        cluster.wait_for(Pod, "p", "Ready")
    assert cluster.wait_for(Pod, "p", "Ready=False")


def test_wait_for_a_function_of_the_object(cluster: Lab) -> None:
    cluster.create(ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "b"}))
    assert cluster.wait_for(ConfigMap, "c", lambda seen: seen.data == {"a": "b"}).data == {"a": "b"}

    def is_big(seen: ConfigMap) -> bool:
        return bool(seen.data and "size" in seen.data)

    with pytest.raises(AssertionError, match=r"ConfigMap c is as is_big asks: .*\"data\":\{\"a\":\"b\"\}"):
        cluster.wait_for(ConfigMap, "c", is_big)


def test_eventually_lets_the_clusters_time_pass_between_two_looks(cluster: Lab) -> None:
    began = cluster.now()
    assert cluster.eventually(lambda: cluster.now() - began > 25) is True

    async def has_pods() -> list[Pod]:
        return list(await cluster.client.list(Pod))

    began = cluster.now()
    with pytest.raises(AssertionError, match=r"^has_pods: not so within 3 s; .* the last saw \[\]$"):
        cluster.eventually(has_pods, timeout=3)
    assert cluster.now() - began == pytest.approx(3), "to the deadline, and not beyond"


def test_a_snapshot_is_compared_with_a_file(tmp_path: Path) -> None:
    with Lab(folder=tmp_path, update=True) as lab:
        lab.create(ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "b"}))
        lab.assert_matches("kept/c.yaml")
    assert "configmaps default/c:" in (tmp_path / "kept" / "c.yaml").read_text()
    with Lab(folder=tmp_path, seed=1) as lab:
        lab.apply(ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "b"}))
        lab.assert_matches("kept/c.yaml")


async def _in_background(work: Coroutine[Any, Any, None]) -> None:
    _tasks.append(asyncio.get_running_loop().create_task(work))


_tasks: list[asyncio.Task[None]] = []
