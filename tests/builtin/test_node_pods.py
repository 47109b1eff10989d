"""What ``builtin/node_pods.py`` decides, one look after the other."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from setpoint.api import ObjectMeta, is_true
from setpoint.api.times import Time
from setpoint.builtin.node_pods import (
    EXITS_AFTER,
    OUTCOME,
    STARTS_AFTER,
    STOPS_AFTER,
    Bind,
    Exits,
    Later,
    Outcome,
    Remove,
    Report,
    Runs,
    Step,
    Waits,
    next_step,
    stage_of,
    usual_outcome,
)
from setpoint.builtin.node_status import Host
from setpoint.kube.core.v1 import (
    Affinity,
    Container,
    ContainerStatus,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodCondition,
    PodReadinessGate,
    PodSchedulingGate,
    PodSpec,
)

HOST = Host("node-1", "198.51.100.1", {"disk": "fast"})
NOW, LATER = (Time.of(datetime(2030, 1, 1, hour, tzinfo=UTC)) for hour in (1, 2))


def pod(node: str | None = "node-1", policy: str = "Always") -> Pod:
    containers = [Container(name="web", image="web:1"), Container(name="log", image="log:2")]
    return Pod(
        metadata=ObjectMeta(name="a", namespace="shop", uid="u", generation=1),
        spec=PodSpec(node_name=node, restart_policy=policy, containers=containers),
    )


def look(one: Pod, outcome: Outcome | None = None, now: Time = NOW) -> Step | None:
    return next_step(one, HOST, outcome or usual_outcome(one), pod_ip="10.244.0.1", now=now)


def carry_on(one: Pod, outcome: Outcome | None = None, now: Time = NOW) -> list[str]:
    """The phases a pod goes through, look after look, until there is nothing left to do."""
    phases = []
    while isinstance(step := look(one, outcome, now), Report):
        one.status = step.status
        phases.append(f"{step.status.phase}")
        assert len(phases) < 10, "it must come to rest"
    assert step is None
    return phases


def test_a_pod_of_nobody_is_bound() -> None:
    assert look(pod(None)) == Bind()


def test_a_pod_of_another_node_is_left_alone() -> None:
    assert look(pod("node-2")) is None


def gated(one: Pod) -> None:
    one.spec.scheduling_gates = [PodSchedulingGate(name="wait")]


def of_another_scheduler(one: Pod) -> None:
    one.spec.scheduler_name = "mine"


def for_other_labels(one: Pod) -> None:
    one.spec.node_selector = {"disk": "slow"}


def for_another_name(one: Pod) -> None:
    one.spec.affinity = for_node("node-2")


def going(one: Pod) -> None:
    one.metadata.deletion_timestamp = NOW


def for_node(name: str) -> Affinity:
    """As a DaemonSet says where its pod belongs."""
    term = NodeSelectorTerm(
        match_fields=[NodeSelectorRequirement(key="metadata.name", operator="In", values=[name])]
    )
    return Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=[term])
        )
    )


@pytest.mark.parametrize(
    "change",
    [gated, of_another_scheduler, for_other_labels, for_another_name, going],
    ids=lambda f: f.__name__,
)
def test_a_pod_that_does_not_belong_here_is_not_bound(change: Callable[[Pod], None]) -> None:
    one = pod(None)
    change(one)
    assert look(one) is None


def test_a_pod_that_asks_for_this_node_is_bound() -> None:
    one = pod(None)
    one.spec.affinity = for_node("node-1")
    one.spec.node_selector = {"disk": "fast"}
    assert look(one) == Bind()


def test_a_pod_runs_and_is_ready_and_stays_so() -> None:
    one = pod()
    assert carry_on(one) == ["Running"]

    assert is_true(one.status.conditions, "Ready")
    assert (one.status.pod_ip, one.status.host_ip) == ("10.244.0.1", "198.51.100.1")
    assert one.status.start_time == NOW
    statuses = one.status.container_statuses or []
    assert [(each.name, each.ready, each.image) for each in statuses] == [
        ("web", True, "web:1"), ("log", True, "log:2")
    ]  # fmt: skip


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_pod_that_is_not_restarted_does_its_work_and_ends_well(policy: str) -> None:
    one = pod(policy=policy)
    assert carry_on(one) == ["Running", "Succeeded"]
    assert not is_true(one.status.conditions, "Ready")


def test_a_pod_may_end_badly() -> None:
    one = pod(policy="Never")
    assert carry_on(one, Exits(3)) == ["Running", "Failed"]
    ended = (one.status.container_statuses or [])[0].state.terminated
    assert ended is not None
    assert (ended.exit_code, ended.started_at) == (3, NOW)


def container(one: Pod) -> ContainerStatus:
    return (one.status.container_statuses or [])[0]


def words(one: Pod) -> tuple[str, int]:
    """In which state the first container is, and how often it was restarted."""
    state = container(one).state
    if state.waiting is not None:
        return state.waiting.reason or "", container(one).restart_count
    return ("running" if state.running else "terminated"), container(one).restart_count


def crash(one: Pod, outcome: Outcome, steps: int) -> list[tuple[str, int]]:
    """What the first container is told to be in so many steps, waiting as long as it must."""
    seen = []
    for _ in range(steps):
        step = look(one, outcome)
        assert isinstance(step, Report)
        one.status = step.status
        seen.append(words(one))
    return seen


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_what_is_restarted_and_fails_again_crashes_in_a_loop(policy: str) -> None:
    one = pod(policy=policy)
    assert crash(one, Exits(3), 8) == [
        ("running", 0), ("terminated", 0),
        ("running", 1), ("terminated", 1), ("CrashLoopBackOff", 1),
        ("running", 2), ("terminated", 2), ("CrashLoopBackOff", 2),
    ]  # fmt: skip
    assert one.status.phase == "Running"
    assert not is_true(one.status.conditions, "Ready")
    waiting, last = container(one).state.waiting, container(one).last_state.terminated
    assert waiting is not None
    assert waiting.message == "back-off 20s restarting failed container=web pod=a_shop(u)"
    assert last is not None
    assert (last.exit_code, last.reason, last.container_id) == (3, "Error", "stand-in://u/web/2")


def test_a_crashing_pod_is_restarted_later_each_time_but_at_least_every_five_minutes() -> None:
    one = pod()
    crash(one, Exits(1), 5)
    pauses = []
    for _ in range(7):
        step = next_step(one, HOST, Exits(1), pod_ip="10.244.0.1", now=NOW, waited=0.0)
        assert isinstance(step, Later)
        pauses.append(step.seconds)
        crash(one, Exits(1), 3)
    assert pauses == [10, 20, 40, 80, 160, 300, 300]


def test_how_long_a_pod_waits_is_counted_from_each_crash() -> None:
    one = pod()
    stages = []
    for _ in range(8):
        crash(one, Exits(1), 1)
        stages.append(stage_of(one))
    assert stages[4] == ("crashed", 1)
    assert stages[7] == ("crashed", 2)


def test_a_container_exits_when_it_says() -> None:
    one = pod(policy="Never")
    one.metadata.annotations = {EXITS_AFTER: "30"}
    crash(one, Exits(), 1)
    assert next_step(one, HOST, Exits(), pod_ip="10.244.0.1", now=NOW, waited=10.0) == Later(20.0)
    assert carry_on(one, Exits()) == ["Succeeded"]


def test_what_crashed_and_then_runs_is_ready_again() -> None:
    one = pod()
    crash(one, Exits(3), 5)
    assert carry_on(one, Runs()) == ["Running"]
    assert is_true(one.status.conditions, "Ready")
    assert words(one) == ("running", 2)


def test_a_pod_that_crashes_and_is_deleted_has_failed() -> None:
    one = pod()
    crash(one, Exits(3), 5)
    one.metadata.deletion_timestamp = NOW
    one.metadata.deletion_grace_period_seconds = 30
    step = look(one, Exits(3))
    assert isinstance(step, Report)
    assert step.status.phase == "Failed"


def test_a_pod_may_never_start() -> None:
    one = pod()
    assert carry_on(one, Waits("ErrImagePull")) == ["Pending"]
    assert one.status.pod_ip is None

    assert carry_on(one, Waits("ImagePullBackOff")) == ["Pending"], "the reason has changed"
    assert carry_on(one, Runs()) == ["Running"], "and then it did"
    assert is_true(one.status.conditions, "Ready")


def test_times_tell_when_a_condition_changed_and_not_when_it_was_looked_at() -> None:
    one = pod(policy="Never")
    carry_on(one, Waits(), now=NOW)
    carry_on(one, Exits(0), now=LATER)
    since = {each.type: each.last_transition_time for each in one.status.conditions or []}
    assert (since["PodScheduled"], since["PodReadyToStartContainers"]) == (NOW, LATER)
    assert one.status.start_time == NOW


def test_a_deleted_pod_is_told_as_stopped_and_then_let_go() -> None:
    one = pod()
    carry_on(one)
    one.metadata.deletion_timestamp = NOW
    one.metadata.deletion_grace_period_seconds = 30

    step = look(one)
    assert isinstance(step, Report)
    assert step.status.phase == "Succeeded"
    one.status = step.status
    assert look(one) == Remove()


def test_a_deleted_pod_that_others_hold_is_let_go_once() -> None:
    one = pod()
    carry_on(one)
    one.metadata.deletion_timestamp = NOW
    one.metadata.deletion_grace_period_seconds = 0
    one.metadata.finalizers = ["batch.kubernetes.io/job-tracking"]

    assert carry_on(one) == ["Succeeded"]


def test_looking_changes_nothing() -> None:
    one = pod()
    before = copy.deepcopy(one)
    look(one)
    assert one == before


# ---- what a pod says itself ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("runs", Runs()),
        ("never-ready", Runs(ready=False)),
        ("exits", Exits()),
        ("exits:3", Exits(3)),
        ("waits:ImagePullBackOff", Waits("ImagePullBackOff")),
    ],
)
def test_an_annotation_says_what_becomes_of_a_pod(said: str, outcome: Outcome) -> None:
    one = pod()
    one.metadata.annotations = {OUTCOME: said}
    assert usual_outcome(one) == outcome


@pytest.mark.parametrize("said", ["", "run", "exits:x", "waits:", "runs:1"])
def test_an_annotation_that_says_nothing_known_is_shown_in_the_pod(said: str) -> None:
    one = pod()
    one.metadata.annotations = {OUTCOME: said}
    outcome = usual_outcome(one)
    assert isinstance(outcome, Waits)
    assert outcome.reason == "InvalidAnnotation"
    assert repr(said) in outcome.message


def test_a_pod_that_is_never_ready_runs_all_the_same() -> None:
    one = pod()
    assert carry_on(one, Runs(ready=False)) == ["Running"]
    assert not is_true(one.status.conditions or [], "Ready")


def test_a_pod_that_takes_its_time_is_creating_until_then() -> None:
    one = pod()

    def wait(waited: float) -> Step | None:
        return next_step(one, HOST, Runs(), pod_ip="10.244.0.1", now=NOW, waited=waited, delay=5.0)

    creating = wait(0.0)
    assert isinstance(creating, Report)
    one.status = creating.status
    assert wait(2.0) == Later(3.0)
    running = wait(5.0)
    assert isinstance(running, Report)
    assert running.status.phase == "Running"
    one.metadata.annotations = {STARTS_AFTER: "7"}
    assert wait(5.0) == Later(2.0), "its own word counts for more than the node's"


def test_a_pod_stops_when_it_says_and_within_its_grace_period() -> None:
    one = pod()
    carry_on(one)
    going(one)
    one.metadata.deletion_grace_period_seconds = 30

    def wait(waited: float) -> Step | None:
        return next_step(one, HOST, Runs(), pod_ip="10.244.0.1", now=NOW, waited=waited)

    one.metadata.annotations = {STOPS_AFTER: "10"}
    assert wait(4.0) == Later(6.0)
    assert isinstance(wait(10.0), Report)
    one.metadata.annotations = {STOPS_AFTER: "1000"}
    assert wait(4.0) == Later(26.0)
    killed = wait(30.0)
    assert isinstance(killed, Report)
    one.status = killed.status
    ended = container(one).state.terminated
    assert ended is not None
    assert (one.status.phase, ended.exit_code, ended.reason) == ("Failed", 137, "Error")


def test_a_pod_that_never_started_and_is_deleted_has_failed() -> None:
    one = pod()
    carry_on(one, Waits())
    going(one)
    one.metadata.deletion_grace_period_seconds = 30
    step = look(one, Waits())
    assert isinstance(step, Report)
    one.status = step.status
    ended = container(one).state.terminated
    assert ended is not None
    assert (one.status.phase, ended.exit_code, ended.reason) == ("Failed", 137, "ContainerStatusUnknown")
    assert look(one, Waits()) == Remove()


# ---- how it is worded ------------------------------------------------------------------------------


def conditions(one: Pod) -> dict[str, tuple[str, str | None]]:
    return {each.type: (each.status, each.reason) for each in one.status.conditions or ()}


def test_what_waits_says_so_in_its_conditions() -> None:
    one = pod()
    carry_on(one, Waits())
    assert conditions(one) == {
        "PodReadyToStartContainers": ("False", None),
        "Initialized": ("True", None),
        "Ready": ("False", "ContainersNotReady"),
        "ContainersReady": ("False", "ContainersNotReady"),
        "PodScheduled": ("True", None),
    }
    ready = next(each for each in one.status.conditions or () if each.type == "Ready")
    assert ready.message == "containers with unready status: [web log]"


@pytest.mark.parametrize(("code", "reason"), [(0, "PodCompleted"), (1, "PodFailed")])
def test_what_has_ended_says_how_in_its_conditions(code: int, reason: str) -> None:
    one = pod(policy="Never")
    carry_on(one, Exits(code))
    assert conditions(one) == {
        "PodReadyToStartContainers": ("False", None),
        "Initialized": ("True", "PodCompleted" if code == 0 else None),
        "Ready": ("False", reason),
        "ContainersReady": ("False", reason),
        "PodScheduled": ("True", None),
    }


def test_a_pod_is_ready_when_others_say_so_too() -> None:
    one = pod()
    one.spec.readiness_gates = [PodReadinessGate(condition_type="example.com/fit")]
    carry_on(one)
    assert conditions(one)["Ready"] == ("False", "ReadinessGatesNotReady")
    assert conditions(one)["ContainersReady"] == ("True", None)
    assert one.status.conditions is not None
    one.status.conditions.append(PodCondition(type="example.com/fit", status="True"))
    crash(one, Runs(), 1)
    assert conditions(one)["Ready"] == ("True", None)


def test_init_containers_have_done_their_work_and_sidecars_stay() -> None:
    one = pod(policy="Never")
    one.spec.init_containers = [
        Container(name="init", image="init:1"),
        Container(name="side", image="side:1", restart_policy="Always"),
    ]

    def states() -> list[tuple[bool, bool, bool]]:
        """Of each, whether it waits, runs, or has ended."""
        return [
            (
                each.state.waiting is not None,
                each.state.running is not None,
                each.state.terminated is not None,
            )
            for each in one.status.init_container_statuses or ()
        ]

    step = next_step(one, HOST, Exits(), pod_ip="10.244.0.1", now=NOW, waited=0.0, delay=5.0)
    assert isinstance(step, Report)
    one.status = step.status
    assert states() == [(True, False, False)] * 2
    assert conditions(one)["Initialized"] == ("False", "ContainersNotInitialized")
    crash(one, Exits(), 1)
    assert states() == [(False, False, True), (False, True, False)]
    assert conditions(one)["Initialized"] == ("True", None)
    crash(one, Exits(), 1)
    assert states() == [(False, False, True)] * 2
