"""What a Deployment decides, without a server: the bounds hold at every step of any rollout."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from setpoint.api.int_or_string import IntOrString
from setpoint.api.times import Time
from setpoint.builtin import rollout
from setpoint.kube.apps.v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from tests.builtin.workloads import START, named, selecting, template

NOW = Time.of(START)


def deployment(
    replicas: int, surge: IntOrString = "25%", unavailable: IntOrString = "25%", image: str = "app:2"
) -> Deployment:
    rolling = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    spec = DeploymentSpec(
        replicas=replicas,
        selector=selecting(app="web"),
        template=template(image, app="web"),
        strategy=DeploymentStrategy(type="RollingUpdate", rolling_update=rolling),
        progress_deadline_seconds=600,
        revision_history_limit=10,
    )
    return Deployment(metadata=named("web"), spec=spec)


def replica_set(
    name: str, replicas: int, *, image: str = "app:1", available: int | None = None, revision: int = 1
) -> ReplicaSet:
    made = ReplicaSet(
        metadata=named(name),
        spec=ReplicaSetSpec(
            replicas=replicas, selector=selecting(app="web"), template=template(image, app="web")
        ),
        status=ReplicaSetStatus(
            replicas=replicas, available_replicas=replicas if available is None else available
        ),
    )
    made.metadata.creation_timestamp = Time.of(START + timedelta(seconds=revision))
    made.metadata.annotations = {rollout.REVISION: str(revision)}
    return made


def test_surge_is_rounded_up_and_unavailable_down() -> None:
    assert rollout.bounds(deployment(10, "25%", "25%")) == (3, 2)
    assert rollout.bounds(deployment(1, "25%", "25%")) == (1, 0)
    assert rollout.bounds(deployment(3, 0, "10%")) == (0, 1), "both zero: one pod may be missing"


def test_the_template_alone_says_which_replica_set_is_the_new_one() -> None:
    old, new = replica_set("old", 3), replica_set("new", 0, image="app:2", revision=2)
    assert new.spec.template is not None
    new.spec.template.metadata.labels = {"app": "web", "pod-template-hash": "abc"}
    assert rollout.find_new(deployment(3), [old, new]) is new
    assert rollout.find_new(deployment(3, image="app:3"), [old, new]) is None


def test_a_rolling_update_first_grows_then_shrinks() -> None:
    wish = deployment(4, 1, 1)
    old, new = replica_set("old", 4), replica_set("new", 0, image="app:2", available=0)
    assert rollout.roll(wish, new, [old]) == [rollout.Scaling(new, 1)]
    new.spec.replicas = 1
    assert rollout.roll(wish, new, [old]) == [rollout.Scaling(old, 3)], "of the old one may go at once"


def test_old_pods_that_do_not_work_go_first() -> None:
    wish = deployment(4, 1, 0)
    sick, well = replica_set("sick", 2, available=0), replica_set("well", 4, revision=2)
    new = replica_set("new", 1, image="app:2", available=0, revision=3)
    assert rollout.roll(wish, new, [sick, well]) == [rollout.Scaling(sick, 0)]


def test_while_new_pods_are_awaited_nothing_goes_for_them_twice() -> None:
    wish = deployment(4, 1, 0)
    sick = replica_set("sick", 4, available=3)
    new = replica_set("new", 1, image="app:2", available=0, revision=2)
    assert rollout.roll(wish, new, [sick]) == []


@given(
    replicas=st.integers(0, 12),
    surge=st.one_of(st.integers(0, 5), st.sampled_from(["25%", "50%", "100%"])),
    unavailable=st.one_of(st.integers(0, 5), st.sampled_from(["25%", "50%", "100%"])),
    before=st.integers(0, 12),
    luck=st.data(),
)
def test_at_every_step_the_bounds_hold_and_the_rollout_ends(
    replicas: int, surge: IntOrString, unavailable: IntOrString, before: int, luck: st.DataObject
) -> None:
    wish = deployment(replicas, surge, unavailable)
    most = replicas + rollout.max_surge(wish)
    least = replicas - rollout.max_unavailable(wish)
    old = replica_set("old", min(before, most))
    new = replica_set("new", rollout.initial_size(wish, [old]), image="app:2", available=0, revision=2)
    for _ in range(200):
        everything = [old, new]
        enough = min(least, rollout.available(everything))
        for scaling in rollout.roll(wish, new, [old]):
            scaling.replica_set.spec.replicas = scaling.replicas
            at_most = min(scaling.replica_set.status.available_replicas or 0, scaling.replicas)
            scaling.replica_set.status.available_replicas = at_most
        assert rollout.total(everything) <= max(most, min(before, most))
        assert rollout.available(everything) >= enough
        if rollout.size(old) == 0 and rollout.size(new) == replicas == (new.status.available_replicas or 0):
            return
        # Some of the new pods become available, sooner or later.
        ready = new.status.available_replicas or 0
        new.status.available_replicas = luck.draw(
            st.integers(min(ready + 1, rollout.size(new)), rollout.size(new))
        )
        old.status.available_replicas = rollout.size(old)
    raise AssertionError("the rollout never ended")


def test_in_the_middle_of_a_rollout_a_new_size_is_shared_in_proportion() -> None:
    wish = deployment(20, 3, 2)
    old, new = replica_set("old", 8), replica_set("new", 5, image="app:2", revision=2)
    for each in (old, new):
        each.metadata.annotations = {rollout.DESIRED: "10", rollout.MAXIMUM: "13"}
    assert rollout.is_scaling(wish, [old, new])
    sizes = {
        each.replica_set.metadata.name: each.replicas
        for each in rollout.scale_in_proportion(wish, new, [old])
    }
    assert sizes == {"old": 14, "new": 9}


def test_scaled_to_zero_everything_goes() -> None:
    wish = deployment(0, 3, 2)
    old, new = replica_set("old", 8), replica_set("new", 5, image="app:2", revision=2)
    sizes = {
        each.replica_set.metadata.name: each.replicas
        for each in rollout.scale_in_proportion(wish, new, [old])
    }
    assert sizes == {"old": 0, "new": 0}


def test_going_back_gives_the_old_replica_set_the_next_revision_and_it_remembers() -> None:
    back = replica_set("back", 0, image="app:2", revision=1)
    wish = deployment(3)
    wish.metadata.annotations = {"note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    after = rollout.annotations_for(wish, back, rollout.next_revision([replica_set("was", 3, revision=2)]))
    assert after == {"note": "x", rollout.REVISION: "3", rollout.REVISION_HISTORY: "1"}


def test_beyond_the_history_limit_the_oldest_revisions_go_but_none_that_has_pods() -> None:
    wish = deployment(1)
    wish.spec.revision_history_limit = 1
    empty = [replica_set(f"r{number}", 0, revision=number) for number in (3, 1, 2)]
    busy = replica_set("busy", 1, revision=0)
    going = rollout.surplus(wish, [*empty, busy])
    assert [each.metadata.name for each in going] == ["r1", "r2"]


def test_a_rollout_that_stands_still_times_out_after_its_deadline() -> None:
    wish = deployment(1)
    new = replica_set("web-1", 1, available=0)
    wish.status = DeploymentStatus(replicas=1, updated_replicas=1, unavailable_replicas=1)
    rollout.put(wish.status, rollout.condition("Progressing", "True", "ReplicaSetUpdated", "", NOW))
    assert rollout.seconds_to_deadline(wish, wish.status, NOW) == 601
    late = Time.of(START + timedelta(seconds=601))
    status = rollout.status_of(wish, new, [new], late)
    rollout.settle_progress(wish, status, new, [new], late)
    told = rollout.find(status, "Progressing")
    assert told is not None
    assert (told.status, told.reason) == ("False", "ProgressDeadlineExceeded")
    assert told.message == 'ReplicaSet "web-1" has timed out progressing.'
