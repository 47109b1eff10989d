"""Deletion: at once, marked and waiting, or left as it was."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from setpoint.server.registry.deletion import (
    DeleteOptions,
    check_preconditions,
    decide,
    delete_options,
    is_finished,
)
from setpoint.server.registry.resources import Object, PlainStrategy, Resource
from setpoint.server.registry.types import Type
from setpoint.server.statuses import StatusError

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


class _Strategy(PlainStrategy):
    def __getattr__(self, name: str) -> Any:  # what a deletion never asks
        raise AssertionError(f"a deletion asked for {name}")


def resource(plural: str = "configmaps", kind: str = "ConfigMap", *, policy: str = "Background") -> Resource:
    strategy = _Strategy()
    strategy.default_policy = policy
    return Resource("", "v1", plural, kind, True, (), Type("struct"), strategy)


def made(*finalizers: str, **metadata: Any) -> Object:
    given = {"name": "a", "uid": "u1", "resourceVersion": "7", "generation": 1, **metadata}
    if finalizers:
        given["finalizers"] = list(finalizers)
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": given, "spec": {}}


def pod(*, node: str = "n1", phase: str = "Running", grace: int = 30) -> Object:
    obj = made()
    obj["spec"] = {"nodeName": node, "terminationGracePeriodSeconds": grace}
    obj["status"] = {"phase": phase}
    return obj


PODS = resource("pods", "Pod")


def test_an_object_that_nothing_holds_is_gone_at_once() -> None:
    assert decide(made(), resource(), DeleteOptions(), NOW).does == "gone"


def test_an_object_with_a_finalizer_is_marked_and_waits() -> None:
    decision = decide(made("a.b/c"), resource(), DeleteOptions(), NOW)

    assert decision.does == "marked"
    metadata = decision.object["metadata"]
    assert metadata["deletionTimestamp"] == "2030-01-01T12:00:00Z"
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert metadata["generation"] == 2


def test_deleting_again_changes_nothing() -> None:
    marked = decide(made("a.b/c"), resource(), DeleteOptions(), NOW).object

    assert decide(marked, resource(), DeleteOptions(), NOW).does == "unchanged"


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [
        ("Foreground", ["a.b/c", "foregroundDeletion"]),
        ("Orphan", ["a.b/c", "orphan"]),
        ("Background", ["a.b/c"]),
    ],
)
def test_a_policy_sets_the_garbage_collectors_finalizer(policy: str, finalizers: list[str]) -> None:
    decision = decide(made("a.b/c"), resource(), DeleteOptions(policy=policy), NOW)

    assert decision.object["metadata"]["finalizers"] == finalizers


def test_another_policy_replaces_the_finalizer_of_the_first() -> None:
    waiting = decide(made(), resource(), DeleteOptions(policy="Foreground"), NOW).object

    decision = decide(waiting, resource(), DeleteOptions(policy="Orphan"), NOW)

    assert decision.does == "marked"
    assert decision.object["metadata"]["finalizers"] == ["orphan"]


def test_without_a_policy_the_kinds_own_holds() -> None:
    decision = decide(made(), resource("jobs", "Job", policy="Orphan"), DeleteOptions(), NOW)

    assert decision.object["metadata"]["finalizers"] == ["orphan"]


def test_a_running_pod_has_its_grace_period() -> None:
    decision = decide(pod(), PODS, DeleteOptions(), NOW)

    assert decision.does == "marked"
    assert decision.object["metadata"]["deletionTimestamp"] == "2030-01-01T12:00:30Z"
    assert decision.object["metadata"]["deletionGracePeriodSeconds"] == 30


@pytest.mark.parametrize("obj", [pod(node=""), pod(phase="Succeeded"), pod(phase="Failed")])
def test_a_pod_that_runs_nowhere_is_gone_at_once(obj: Object) -> None:
    assert decide(obj, PODS, DeleteOptions(), NOW).does == "gone"


def test_a_second_deletion_may_only_shorten_the_grace() -> None:
    waiting = decide(pod(), PODS, DeleteOptions(), NOW).object

    assert decide(waiting, PODS, DeleteOptions(grace=60), NOW).does == "unchanged"
    sooner = decide(waiting, PODS, DeleteOptions(grace=5), NOW)
    assert sooner.object["metadata"]["deletionTimestamp"] == "2030-01-01T12:00:05Z"
    assert decide(sooner.object, PODS, DeleteOptions(grace=0), NOW).does == "gone"


def test_a_namespace_waits_for_its_own_finalizers() -> None:
    namespaces = resource("namespaces", "Namespace")
    obj = made()
    obj["spec"] = {"finalizers": ["kubernetes"]}

    decision = decide(obj, namespaces, DeleteOptions(), NOW)

    assert decision.does == "marked"
    assert decision.object["status"]["phase"] == "Terminating"
    assert "deletionGracePeriodSeconds" not in decision.object["metadata"]
    assert not is_finished(decision.object, namespaces)
    decision.object["spec"] = {}
    assert is_finished(decision.object, namespaces)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (DeleteOptions(uid="u2"), "the UID in the precondition (u2) does not match the UID in record (u1)"),
        (DeleteOptions(version="6"), "the ResourceVersion in the precondition (6) does not match"),
    ],
)
def test_a_precondition_that_does_not_hold_is_a_conflict(options: DeleteOptions, said: str) -> None:
    with pytest.raises(StatusError) as refused:
        check_preconditions(made(), resource(), options)

    assert refused.value.code == 409
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            {"propagationPolicy": "Foo"},
            'Unsupported value: "Foo": supported values: "Foreground", "Background"',
        ),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, "cannot be both set"),
        ({"dryRun": ["Foo"]}, 'dryRun: Unsupported value: ["Foo"]'),
    ],
)
def test_wrong_options_are_refused(body: dict[str, Any], said: str) -> None:
    with pytest.raises(StatusError) as refused:
        delete_options(body)

    assert refused.value.code == 422
    assert said in refused.value.message
