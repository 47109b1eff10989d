"""The rules of ``controller/predicates.py``, row by row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from setpoint.api.wire import Snapshot
from setpoint.cache.store import Seen
from setpoint.controller.predicates import (
    Predicate,
    annotations_changed,
    anything,
    changed,
    generation_changed,
    labels_changed,
    selected,
    version_changed,
    where,
)
from setpoint.kube.core.v1 import Pod


def pod(version: int = 1, *, phase: str = "Pending", **metadata: Any) -> Snapshot:
    said = {"name": "web", "namespace": "shop", "resourceVersion": str(version), **metadata}
    obj = {"metadata": said, "spec": {"containers": []}, "status": {"phase": phase}}
    return Snapshot.of(json.dumps(obj).encode())


def added(new: Snapshot) -> Seen:
    return Seen("ADDED", None, new)


def updated(old: Snapshot, new: Snapshot) -> Seen:
    return Seen("UPDATED", old, new)


def deleted(old: Snapshot) -> Seen:
    return Seen("DELETED", old, None)


def resynced(new: Snapshot) -> Seen:
    return Seen("RESYNC", new, new)


RUNNING = where(Pod, lambda pod: pod.status.phase == "Running")
PHASE = changed(Pod, lambda pod: pod.status.phase)
CHANGED = [generation_changed, labels_changed, annotations_changed, PHASE]


@pytest.mark.parametrize("predicate", [*CHANGED, version_changed, anything], ids=repr)
def test_what_is_new_and_what_is_gone_matters_to_all(predicate: Predicate) -> None:
    assert predicate(added(pod()))
    assert predicate(deleted(pod()))


@pytest.mark.parametrize("predicate", [*CHANGED, anything], ids=repr)
def test_a_resync_is_let_through(predicate: Predicate) -> None:
    assert predicate(resynced(pod(generation=1)))


def test_resyncs_are_left_out_where_only_versions_matter() -> None:
    assert not version_changed(resynced(pod()))
    assert version_changed(updated(pod(1), pod(2)))


@pytest.mark.parametrize(
    ("predicate", "old", "new", "matters"),
    [
        (generation_changed, pod(1, generation=1), pod(2, generation=2), True),
        (generation_changed, pod(1, generation=1), pod(2, generation=1), False),
        (generation_changed, pod(1), pod(2), True),
        (generation_changed, pod(1, generation=1), pod(2, generation=1, deletionTimestamp="2026"), True),
        (labels_changed, pod(1, labels={"a": "1"}), pod(2, labels={"a": "2"}), True),
        (labels_changed, pod(1, labels={"a": "1"}), pod(2, labels={"a": "1"}, annotations={"b": "1"}), False),
        (labels_changed, pod(1), pod(2, labels={}), False),
        (annotations_changed, pod(1), pod(2, annotations={"b": "1"}), True),
        (annotations_changed, pod(1), pod(2, labels={"a": "1"}), False),
        (PHASE, pod(1), pod(2, phase="Running"), True),
        (PHASE, pod(1), pod(2, labels={"a": "1"}), False),
    ],
)
def test_a_change_matters_where_the_thing_itself_changed(
    predicate: Predicate, old: Snapshot, new: Snapshot, matters: bool
) -> None:
    assert predicate(updated(old, new)) is matters


@pytest.mark.parametrize(
    ("seen", "matters"),
    [
        (added(pod(labels={"tier": "web"})), True),
        (added(pod()), False),
        (deleted(pod(labels={"tier": "web"})), True),
        (updated(pod(), pod(labels={"tier": "web"})), True),
        (updated(pod(labels={"tier": "web"}), pod()), True),
        (updated(pod(labels={"tier": "db"}), pod()), False),
    ],
    ids=["enters", "stays out", "goes", "is labelled", "is unlabelled", "has others"],
)
def test_an_object_that_leaves_a_selection_matters_as_one_that_enters_it(seen: Seen, matters: bool) -> None:
    assert selected("tier in (web, api)")(seen) is matters
    assert selected({"tier": "web"})(seen) is matters


def test_a_function_is_asked_of_the_object_as_it_was_and_as_it_is() -> None:
    assert RUNNING(updated(pod(), pod(phase="Running")))
    assert RUNNING(updated(pod(phase="Running"), pod()))
    assert not RUNNING(updated(pod(), pod(phase="Failed")))
    assert RUNNING(deleted(pod(phase="Running")))


def test_predicates_combine() -> None:
    relabelled = updated(pod(1, generation=1), pod(2, generation=1, labels={"tier": "web"}))
    assert (generation_changed | labels_changed)(relabelled)
    assert not (generation_changed & labels_changed)(relabelled)
    assert (~generation_changed)(relabelled)
    assert (labels_changed & ~selected("paused"))(relabelled)
    assert (
        repr(~(generation_changed | selected("a=b"))) == "<Predicate ~(generation_changed | selected('a=b'))>"
    )


def test_a_function_of_the_change_itself_will_do() -> None:
    only_new = Predicate(lambda seen: seen.type == "ADDED", "only_new")
    assert only_new(added(pod()))
    assert not only_new(deleted(pod()))
