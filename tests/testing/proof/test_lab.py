"""The fixture ``cluster``: a cluster of the test's own, in which time passes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from setpoint.api import MergePatch, ObjectMeta, crd_of, to_wire, yaml
from setpoint.controller import Result
from setpoint.controller.context import Context
from setpoint.errors import AlreadyExists, ApplyConflict, NotFound
from setpoint.kube.core.v1 import ConfigMap, Container, Pod, PodSpec
from setpoint.kube.rbac.v1 import ClusterRole
from setpoint.manager.manager import Manager
from setpoint.operator import Operator
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.lab import Lab
from setpoint.testing.proof.plans import (
    AnyFault,
    At,
    ClockStep,
    Crash,
    Hide,
    Interfere,
    LeaseDeleted,
    Overlap,
    Rotate,
    SlowClock,
    Uncollected,
    Unrenewed,
)
from tests.mutants.operators import timestamps
from tests.mutants.widgets import Longhand, Widget, change, child, operator_of


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


APPLY = At("apply configmaps default/w")


def late(cluster: Lab) -> Callable[[], Operator]:
    """Looks every ten seconds, and does what it is for from a moment on at which no test does anything."""
    after = cluster.now() + 40

    async def looks(widget: Widget, ctx: Context) -> Result:
        if cluster.now() > after:
            await reconcile(widget, ctx)
        return Result(requeue_after=10)

    return lambda: operator_of(looks)


def test_an_operator_that_crashes_while_time_passes_is_started_again(cluster: Lab) -> None:
    cluster.run(late(cluster))
    cluster.create(a_widget())
    cluster.fault(Crash(at=APPLY))
    began = cluster.now()
    cluster.pass_time(60)
    assert cluster.now() - began == pytest.approx(60, abs=0.1)
    assert cluster.get(ConfigMap, "w").data == {"text": "a"}


def test_an_operator_that_crashes_while_something_is_waited_for_is_started_again(cluster: Lab) -> None:
    cluster.run(late(cluster))
    cluster.create(a_widget())
    cluster.fault(Crash(at=APPLY), Crash(at=At(APPLY.what, 2)))
    assert cluster.eventually(lambda: cluster.get(ConfigMap, "w"), timeout=60)
    cluster.delete(Widget, "w")
    cluster.fault(Crash(at=At(APPLY.what, 4)))
    cluster.create(a_widget())
    cluster.wait_for(ConfigMap, "w", lambda seen: seen.data == {"text": "a"}, timeout=60)


def test_time_does_not_wait_for_an_operator_that_is_away(cluster: Lab) -> None:
    cluster.run(late(cluster))
    cluster.create(a_widget())
    cluster.fault(Crash(at=APPLY, away=100))
    began = cluster.now()
    cluster.pass_time(60)
    assert cluster.now() - began == pytest.approx(60, abs=0.1)
    assert cluster.list(ConfigMap) == []
    cluster.settle()
    assert cluster.get(ConfigMap, "w"), "but to come to rest is to wait for that too"
    assert cluster.now() - began > 100


def test_an_operator_that_ends_by_itself_while_time_passes_is_started_again(cluster: Lab) -> None:
    ends: list[float] = []

    class Ends:
        needs_leadership = True

        async def run(self) -> None:
            await asyncio.sleep(100)
            ends.append(cluster.now())
            raise RuntimeError("enough")

    def add(manager: Manager) -> object:
        manager.add(Ends())
        return operator_of(reconcile).add_to(manager)

    cluster.run(lambda: Longhand(add))
    cluster.pass_time(350)
    assert len(ends) == 3
    cluster.create(a_widget())
    assert cluster.get(ConfigMap, "w")


def test_of_an_operator_with_replicas_the_leader_can_be_paused_or_lose_its_lease() -> None:
    for fault in (Overlap(at=APPLY), Unrenewed(at=APPLY)):
        with Lab(replicas=2) as lab:
            lab.run(lambda: operator_of(reconcile))
            assert [line.what for line in lab.trace.lines].count("starts") == 2
            lab.fault(fault)
            lab.create(a_widget())
            lab.change(Widget, "w", {"spec": {"text": "b"}})
            assert lab.get(ConfigMap, "w").data == {"text": "b"}
            lab.assert_struck()
            assert {effect.process for effect in lab.trace.effects} == {1, 2}, "another has taken over"
            lab.assert_quiescent()


def test_a_leader_whose_lease_is_deleted_leads_on_alone() -> None:
    with Lab(replicas=2) as lab:
        lab.run(lambda: operator_of(reconcile))
        lab.fault(LeaseDeleted(at=APPLY))
        lab.create(a_widget())
        lab.change(Widget, "w", {"spec": {"text": "b"}})
        assert lab.get(ConfigMap, "w").data == {"text": "b"}
        lab.assert_struck()
        assert len({effect.process for effect in lab.trace.effects}) == 1
        assert not lab.trace.overlaps
        lab.assert_quiescent()


def test_each_of_several_operators_has_a_leader_of_its_own() -> None:
    with Lab(replicas=2) as lab:
        lab.run(lambda: operator_of(reconcile))
        lab.run(another)
        lab.create(a_widget())
        assert {each.metadata.name for each in lab.list(ConfigMap)} == {"w", "w-another"}


def another() -> Operator:
    operator = Operator("another")

    @operator.controller(Widget, owns=[ConfigMap])
    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, "-another"))

    return operator


def test_a_fault_that_could_do_nothing_is_refused(cluster: Lab) -> None:
    for fault in (Overlap(at=APPLY), Unrenewed(at=APPLY), LeaseDeleted(at=APPLY)):
        with pytest.raises(ValueError, match=r"no lease to lose; have two of it, with Lab\(replicas=2\)"):
            cluster.fault(fault)
    with pytest.raises(ValueError, match=r"Lab\(clouds=\(cloud,\)\)"):
        cluster.fault(Hide(at=At("create dns w")))
    with pytest.raises(ValueError, match="only what is made in a cloud"), Lab(clouds=(Cloud("dns"),)) as lab:
        lab.fault(Hide(at=APPLY))
    cluster.assert_struck()


def test_a_fault_in_which_all_is_refused_has_not_struck() -> None:
    with Lab() as lab:
        lab.run(lambda: operator_of(reconcile))
        lab.fault(Interfere(at=APPLY, steps=(change("nobody", text="b"),)))
        lab.create(a_widget())
        with pytest.raises(AssertionError, match="or was refused: change Widget nobody"):
            lab.assert_struck()


def test_a_token_that_changes_is_read_again() -> None:
    asked: list[int] = []
    for faults in ((), (Rotate(at=APPLY),)):
        with Lab() as lab:
            lab.run(lambda: operator_of(reconcile))
            lab.fault(*faults)
            lab.create(a_widget())
            lab.change(Widget, "w", {"spec": {"text": "b"}})
            assert lab.get(ConfigMap, "w").data == {"text": "b"}
            lab.assert_struck()
            asked.append(lab.trace.requests)
    assert asked[1] > asked[0], "something was refused, and asked for again"


def test_garbage_is_collected_when_the_user_has_done_some_more_or_when_all_is_to_be_quiet(
    cluster: Lab,
) -> None:
    cluster.run(lambda: operator_of(reconcile))
    cluster.fault(Uncollected(at=APPLY, steps=3))
    cluster.create(a_widget())
    cluster.delete(Widget, "w")
    cluster.pass_time(3600)
    assert cluster.get(ConfigMap, "w"), "nobody has taken it away"
    cluster.create(ConfigMap(metadata=ObjectMeta(name="other")))
    assert [each.metadata.name for each in cluster.list(ConfigMap)] == ["other"]
    cluster.fault(Uncollected(at=At(APPLY.what, 2)))
    cluster.create(a_widget())
    cluster.delete(Widget, "w")
    assert cluster.get(ConfigMap, "w")
    cluster.assert_quiescent()
    assert [each.metadata.name for each in cluster.list(ConfigMap)] == ["other"]


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
