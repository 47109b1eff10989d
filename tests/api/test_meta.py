"""The promises of ``api/meta.py``: conditions, and the types that every group shares."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api import meta
from setpoint.api.meta import (
    APIGroup,
    Condition,
    DeleteOptions,
    LabelSelector,
    LabelSelectorRequirement,
    ListMeta,
    Preconditions,
    Status,
    find_condition,
    is_true,
    set_condition,
)
from setpoint.api.model import Model, decode, encode, from_wire, to_wire
from setpoint.api.times import Time
from setpoint.kube.apps.v1 import DeploymentCondition, DeploymentStatus

THEN, NOW = Time.parse("2026-01-01T00:00:00Z"), Time.parse("2026-06-01T00:00:00Z")


def ready(
    status: str = "True", *, reason: str = "AllUp", message: str = "", generation: int | None = 1
) -> Condition:
    return Condition(
        type="Ready", status=status, reason=reason, message=message, observed_generation=generation
    )


def test_a_new_condition_is_added_with_the_time_it_was_seen() -> None:
    conditions: list[Condition] = []
    assert set_condition(conditions, ready(), now=NOW)
    assert to_wire(conditions) == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "AllUp",
            "message": "",
            "lastTransitionTime": "2026-06-01T00:00:00Z",
            "observedGeneration": 1,
        }
    ]


def test_the_transition_time_moves_only_when_the_status_changes() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, ready("False"), now=THEN)
    assert set_condition(conditions, ready("False", reason="Slow", message="waiting", generation=2), now=NOW)
    assert conditions == [
        Condition(
            type="Ready",
            status="False",
            reason="Slow",
            message="waiting",
            observed_generation=2,
            last_transition_time=THEN,
        )
    ]
    assert set_condition(conditions, ready("True"), now=NOW)
    assert conditions[0].last_transition_time == NOW


def test_setting_what_is_already_so_changes_nothing_and_says_so() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, ready(), now=THEN)
    before = encode(conditions)
    assert not set_condition(conditions, ready(), now=NOW)
    assert encode(conditions) == before


def test_a_look_that_does_not_say_its_generation_leaves_the_one_known() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, ready(generation=7), now=THEN)
    assert not set_condition(conditions, ready(generation=None), now=NOW)
    assert conditions[0].observed_generation == 7


def test_a_transition_time_that_is_given_is_taken_at_a_transition() -> None:
    conditions: list[Condition] = []
    given_time = ready()
    given_time.last_transition_time = THEN
    set_condition(conditions, given_time, now=NOW)
    assert conditions[0].last_transition_time == THEN


def test_the_condition_given_is_not_the_one_kept() -> None:
    conditions: list[Condition] = []
    mine = ready()
    set_condition(conditions, mine, now=NOW)
    mine.status = "False"
    assert conditions[0].status == "True"
    assert mine.last_transition_time is None


def test_other_conditions_stay_and_keep_their_places() -> None:
    conditions = [Condition(type=name, status="True", reason="X") for name in ("A", "Ready", "B")]
    set_condition(conditions, ready("False"), now=NOW)
    assert [c.type for c in conditions] == ["A", "Ready", "B"]
    assert [c.status for c in conditions] == ["True", "False", "True"]


def test_conditions_are_found_by_type() -> None:
    conditions = [ready("False"), Condition(type="Synced", status="True", reason="X")]
    assert find_condition(conditions, "Synced") is conditions[1]
    assert find_condition(conditions, "Gone") is None
    assert is_true(conditions, "Synced")
    assert not is_true(conditions, "Ready")
    assert not is_true(conditions, "Gone")


def test_conditions_of_built_in_kinds_are_found_too() -> None:
    status = DeploymentStatus(conditions=[DeploymentCondition(type="Available", status="True")])
    found = find_condition(status.conditions, "Available")
    assert found is not None
    assert found.last_update_time is None
    assert is_true(status.conditions, "Available")
    assert not is_true(DeploymentStatus().conditions, "Available"), "None has no conditions"


looks = st.builds(
    ready,
    st.sampled_from(["True", "False", "Unknown"]),
    reason=st.sampled_from(["A", "B"]),
    message=st.sampled_from(["", "m"]),
    generation=st.none() | st.integers(1, 3),
)


@given(st.lists(looks, min_size=1))
def test_there_is_one_condition_to_a_type_and_it_dates_from_its_last_transition(
    seen: list[Condition],
) -> None:
    conditions: list[Condition] = []
    moved = Time.parse("2026-01-01T00:00:00Z")
    last = None
    for hour, look in enumerate(seen):
        now = Time.parse(f"2026-01-{hour // 24 + 1:02}T{hour % 24:02}:00:00Z")
        if look.status != last:
            moved, last = now, look.status
        before = encode(conditions)
        assert set_condition(conditions, look, now=now) == (encode(conditions) != before)
    [kept] = conditions
    assert (kept.status, kept.reason, kept.message) == (seen[-1].status, seen[-1].reason, seen[-1].message)
    assert kept.last_transition_time == moved


@pytest.mark.parametrize(
    ("model", "wire"),
    [
        (ListMeta(continue_="token", resource_version="1"), {"continue": "token", "resourceVersion": "1"}),
        (
            LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="Exists")]),
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        ),
        (
            DeleteOptions(preconditions=Preconditions(uid="u"), propagation_policy="Foreground"),
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "u"},
                "propagationPolicy": "Foreground",
            },
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_shared_types_are_written_as_kubernetes_writes_them(model: Model, wire: dict[str, object]) -> None:
    assert to_wire(model) == wire
    assert from_wire(type(model), wire) == model


def test_a_refusal_is_read() -> None:
    said = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "m",
        "reason": "Invalid",
        "details": {"name": "x", "kind": "K", "causes": [{"reason": "FieldValueRequired", "field": "spec"}]},
        "code": 422,
    }
    read = decode(Status, json.dumps(said).encode())
    assert read.details is not None
    assert read.details.causes is not None
    assert read.details.causes[0].field == "spec"
    assert to_wire(read) == said


def test_irregular_names_of_discovery_are_kept() -> None:
    said = {
        "apiVersion": "v1",
        "kind": "APIGroup",
        "name": "apps",
        "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1"}],
    }
    assert to_wire(from_wire(APIGroup, said)) == said


def test_every_name_offered_is_there() -> None:
    assert [name for name in meta.__all__ if not hasattr(meta, name)] == []
    assert meta.__all__ == sorted(meta.__all__)
