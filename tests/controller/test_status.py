"""A status is written as the difference alone: what others keep stays, and times move when they must."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api import Condition, Key, Model, Object, ObjectMeta, Time, apply_merge, set_condition
from setpoint.api.forms import form_of
from setpoint.client.client import Client
from setpoint.controller.status import (
    Change,
    Observed,
    Target,
    change_between,
    conditions_of,
    merge_conditions,
    observed_of,
    settle,
    status_of,
    with_defaults,
    write_status,
)
from setpoint.errors import Conflict, Invalid
from tests.peer import Peer, Reply, status

Wire = dict[str, Any]

OLD, NOW = "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"
TIME = Time.parse(NOW)
OBSERVED = Observed(generation=4, now=TIME, conditions_say_generation=True)


class WebAppStatus(Model):
    available: int = 0
    ready: bool = False
    phase: str | None = None
    observed_generation: int | None = None
    conditions: list[Condition] = []


class WebApp(Object, group="demo.setpoint.dev", version="v1", subresources=["status"]):
    status: WebAppStatus = WebAppStatus()


def condition(kind: str = "Ready", status: str = "True", **more: Any) -> Wire:
    return {"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": OLD, **more}


# The difference.


def test_nothing_is_written_when_nothing_changed() -> None:
    same = {"a": 1, "conditions": [condition()]}
    assert change_between(same, json.loads(json.dumps(same))) is None


def test_only_what_changed_is_written() -> None:
    change = change_between({"a": 1, "b": {"c": 1, "d": 2}, "gone": 1}, {"a": 1, "b": {"c": 2, "d": 2}})
    assert change is not None
    assert change.patch({}) == {"b": {"c": 2}, "gone": None}


def test_what_falls_to_its_default_is_written() -> None:
    left = WebApp(status=WebAppStatus(available=0, ready=False))
    before = status_of(WebApp(status=WebAppStatus(available=1, ready=True)))
    change = change_between(before, status_of(left))
    assert change is not None
    assert change.patch({}) == {"available": 0, "ready": False}


def test_defaults_alone_are_no_change_but_go_along_with_one() -> None:
    read = status_of(WebApp.decode(b'{"apiVersion": "demo.setpoint.dev/v1", "kind": "WebApp"}'))
    assert change_between(read, read) is None
    after = {**read, "available": 2}
    change = change_between(read, after)
    assert change is not None
    assert with_defaults(change, after, {}).patch({}) == {"available": 2, "ready": False}
    assert with_defaults(change, after, {"ready": True}).patch({}) == {"available": 2}


def test_conditions_that_are_none_are_a_list_like_any_other() -> None:
    change = change_between({"conditions": ["a"]}, {"conditions": ["b"]})
    assert change is not None
    assert change.patch({"conditions": ["c"]}) == {"conditions": ["b"]}


# Conditions.


def test_conditions_are_merged_by_type_and_others_stay() -> None:
    ours, theirs, newer = condition("Ready"), condition("Theirs"), condition("Newer")
    left = condition("Ready", "False")
    change = change_between({"conditions": [ours, theirs]}, {"conditions": [left, theirs]})
    assert change is not None
    assert change.patch({"conditions": [newer, ours, theirs]}) == {"conditions": [newer, left, theirs]}


def test_a_condition_left_out_is_taken_away_only_if_it_is_ours() -> None:
    before: Wire = {"conditions": [condition("A"), condition("B")]}
    after: Wire = {"conditions": []}
    assert change_between(before, after) is None, "both are somebody else's, as far as is known"
    change = change_between(before, after, ours={"A"})
    assert change is not None
    assert change.patch(before) == {"conditions": [condition("B")]}


def test_managed_fields_say_which_conditions_are_ours() -> None:
    fields: Wire = {"f:status": {"f:conditions": {'k:{"type":"A"}': {".": {}}, ".": {}}}}
    entry = {"manager": "op", "subresource": "status", "fieldsV1": fields}
    obj = {"metadata": {"managedFields": [entry, {"manager": "other", "fieldsV1": {}}]}}
    assert conditions_of(obj, "op") == {"A"}
    assert conditions_of(obj, "other") == set()
    typed = WebApp.decode(
        json.dumps({"apiVersion": "demo.setpoint.dev/v1", "kind": "WebApp", **obj}).encode()
    )
    assert conditions_of(typed, "op") == {"A"}
    assert conditions_of(WebApp(), "op") == set()


types = st.sampled_from("ABCD")
some_conditions = st.dictionaries(types, st.sampled_from(["True", "False"]), max_size=4).map(
    lambda given: [condition(kind, status) for kind, status in given.items()]
)


@given(before=some_conditions, after=some_conditions, live=some_conditions, ours=st.sets(types))
def test_conditions_of_others_are_never_lost_and_ours_are_as_left(
    before: list[Wire], after: list[Wire], live: list[Wire], ours: set[str]
) -> None:
    change = change_between({"conditions": before}, {"conditions": after}, ours=ours)
    result = live if change is None else apply_merge(change.patch({"conditions": live}), {})["conditions"]
    now = {each["type"]: each["status"] for each in result}
    assert len(now) == len(result), "one of a type"
    was, left, there = ({each["type"]: each["status"] for each in some} for some in (before, after, live))
    for kind, value in left.items():
        if was.get(kind) != value:
            assert now[kind] == value
    for kind, value in there.items():
        if was.get(kind) == left.get(kind) or (kind not in left and kind not in ours):
            assert now[kind] == value, "we did not touch it"


def test_a_status_that_somebody_set_before_us_changed_at_their_time() -> None:
    earlier = condition(lastTransitionTime="2030-01-01T12:00:00Z")
    merged = merge_conditions([earlier], {"Ready": condition(lastTransitionTime=NOW, reason="Ours")})
    assert merged == [{**earlier, "reason": "Ours"}]


# Times and generations.


def settled(before: list[Wire], left: list[Wire], observed: Observed = OBSERVED) -> list[Wire]:
    conditions: list[Wire] = settle({"conditions": before}, {"conditions": left}, observed)["conditions"]
    return conditions


def test_the_transition_time_stays_while_the_status_stays_whatever_the_author_wrote() -> None:
    before = [condition()]
    assert settled(before, [condition(lastTransitionTime=NOW)]) == before
    assert settled(before, [condition(lastTransitionTime=None)]) == before
    (changed,) = settled(before, [condition(reason="Other", lastTransitionTime=NOW)])
    assert changed["lastTransitionTime"] == OLD


def test_the_transition_time_moves_when_the_status_does() -> None:
    for time in (OLD, None, NOW):
        (changed,) = settled([condition()], [condition(status="False", lastTransitionTime=time)])
        assert changed["lastTransitionTime"] == NOW
    authors = "2030-01-01T12:00:00Z"
    (changed,) = settled([condition()], [condition(status="False", lastTransitionTime=authors)])
    assert changed["lastTransitionTime"] == authors, "the author knows when it happened"


def test_a_new_condition_begins_now() -> None:
    (new,) = settled([], [condition(lastTransitionTime=None)])
    assert new["lastTransitionTime"] == NOW


def test_a_condition_says_which_generation_it_is_about_when_its_content_changed() -> None:
    (same,) = settled([condition(observedGeneration=3)], [condition(observedGeneration=3)])
    assert same["observedGeneration"] == 3, "not touched: it may be somebody else's"
    (new,) = settled([], [condition()])
    assert new["observedGeneration"] == 4
    (changed,) = settled([condition(observedGeneration=3)], [condition(reason="X", observedGeneration=3)])
    assert changed["observedGeneration"] == 4
    (anew,) = settled([condition(observedGeneration=3)], [condition()])
    assert anew["observedGeneration"] == 4, "an author who writes the list anew looked at all of it"
    assert anew["lastTransitionTime"] == OLD
    (said,) = settled([condition(observedGeneration=3)], [condition(reason="X", observedGeneration=2)])
    assert said["observedGeneration"] == 2, "the author said so"


def test_conditions_of_another_class_are_not_given_a_field_they_may_not_have() -> None:
    (new,) = settled([], [condition()], Observed(generation=4, now=TIME))
    assert "observedGeneration" not in new


def test_the_generation_observed_is_that_of_the_object_reconciled() -> None:
    observed = Observed(generation=4, now=TIME, says_generation=True)
    assert settle({}, {}, observed) == {"observedGeneration": 4}
    assert settle({"observedGeneration": 3}, {"observedGeneration": 3}, observed) == {"observedGeneration": 4}
    assert settle({"observedGeneration": 3}, {"observedGeneration": 2}, observed) == {"observedGeneration": 2}


def test_a_reconcile_that_failed_and_is_retried_has_not_observed_the_generation() -> None:
    observed = Observed(generation=4, now=TIME, says_generation=True, is_done=False)
    assert settle({"observedGeneration": 3}, {"observedGeneration": 3}, observed) == {"observedGeneration": 3}


def test_what_a_status_can_say_is_read_from_its_class() -> None:
    webapp = WebApp(metadata=ObjectMeta(generation=4))
    observed = observed_of(webapp, 4, now=TIME, is_done=True)
    assert (observed.generation, observed.says_generation, observed.conditions_say_generation) == (
        4,
        True,
        True,
    )
    plain: Wire = {"metadata": {"generation": 4}, "status": {"phase": "x"}}
    assert observed_of(plain, 4, now=TIME, is_done=True) == Observed(4, TIME)
    plain["status"]["observedGeneration"] = 3
    assert observed_of(plain, 4, now=TIME, is_done=True).says_generation


def test_conditions_set_with_the_models_own_function_come_out_right() -> None:
    webapp = WebApp(metadata=ObjectMeta(generation=4))
    before = status_of(webapp)
    set_condition(webapp.status.conditions, Condition(type="Ready", status="True", reason="R"), now=TIME)
    after = settle(before, status_of(webapp), observed_of(webapp, 4, now=TIME, is_done=True))
    assert after["conditions"] == [condition(lastTransitionTime=NOW, observedGeneration=4)]
    again = settle(
        after, {**after}, observed_of(webapp, 4, now=Time.of(datetime(2031, 1, 1, tzinfo=UTC)), is_done=True)
    )
    assert change_between(after, again) is None


# Writing.


TARGET = Target(form_of(WebApp), Key("shop", "web"), "1", "10", {"conditions": [condition()]})


def client(peer: Peer) -> Client:
    return Client(transport=peer)


def webapp(version: str = "11", uid: str = "1", **status: Any) -> Wire:
    metadata = {"name": "web", "namespace": "shop", "uid": uid, "resourceVersion": version}
    return {"apiVersion": "demo.setpoint.dev/v1", "kind": "WebApp", "metadata": metadata, "status": status}


async def test_a_status_is_one_merge_patch_of_the_status_subresource() -> None:
    peer = Peer([Reply(body=webapp(available=1))])
    change = change_between({}, {"available": 1})
    assert change is not None
    written = await write_status(client(peer), TARGET, change, field_manager="op")
    assert written is not None
    assert WebApp.decode(written.data).status.available == 1
    assert peer.path() == "/apis/demo.setpoint.dev/v1/namespaces/shop/webapps/web/status"
    assert peer.requests[0].headers["Content-Type"] == "application/merge-patch+json"
    assert peer.query()["fieldManager"] == "op"
    assert peer.sent() == {"metadata": {"resourceVersion": "10"}, "status": {"available": 1}}


async def test_a_patch_carries_the_version_and_a_409_reads_again() -> None:
    theirs = condition("Theirs")
    peer = Peer(
        [
            status(409, "Conflict"),
            Reply(body=webapp("12", conditions=[theirs, condition()])),
            Reply(body=webapp("13")),
        ]
    )
    left = condition("Ready", "False", lastTransitionTime=NOW)
    change = change_between({"conditions": [condition()]}, {"conditions": [left]})
    assert change is not None
    await write_status(client(peer), TARGET, change, field_manager="op")
    assert peer.sent(0)["metadata"] == {"resourceVersion": "10"}
    assert peer.sent(2)["metadata"] == {"resourceVersion": "12"}
    assert peer.sent(2)["status"] == {"conditions": [theirs, left]}


async def test_what_somebody_else_has_written_meanwhile_is_not_written_again() -> None:
    left = condition("Ready", "False", lastTransitionTime=NOW)
    peer = Peer([status(409, "Conflict"), Reply(body=webapp("12", conditions=[left]))])
    change = Change({}, {"Ready": left})
    assert await write_status(client(peer), TARGET, change, field_manager="op") is not None
    assert len(peer.requests) == 2


async def test_a_newer_generation_that_another_controller_wrote_meanwhile_stays() -> None:
    peer = Peer(
        [
            status(409, "Conflict"),
            Reply(body=webapp("12", observedGeneration=6)),
            Reply(body=webapp("13")),
        ]
    )
    change = Change({"available": 1, "observedGeneration": 5}, {})
    await write_status(client(peer), TARGET, change, field_manager="op")
    assert peer.sent(0)["status"] == {"available": 1, "observedGeneration": 5}
    assert peer.sent(2)["status"] == {"available": 1}


async def test_a_409_that_does_not_end_is_raised() -> None:
    def answer(request: Any) -> Reply:
        return status(409, "Conflict") if request.method == "PATCH" else Reply(body=webapp("12"))

    with pytest.raises(Conflict):
        await write_status(
            client(Peer(answer)), TARGET, Change({}, {"A": condition("A")}), field_manager="op"
        )


@pytest.mark.parametrize(
    "answers",
    [
        [status(404, "NotFound", details={"name": "web"})],
        [status(409, "Conflict"), status(404, "NotFound", details={"name": "web"})],
        [status(409, "Conflict"), Reply(body=webapp("12", uid="another"))],
    ],
    ids=["gone", "gone meanwhile", "made anew"],
)
async def test_an_object_that_is_gone_gets_no_status(answers: list[Any]) -> None:
    peer = Peer(answers)
    assert (
        await write_status(client(peer), TARGET, Change({}, {"A": condition("A")}), field_manager="op")
        is None
    )
    assert not answers, "and nothing more was asked"


async def test_a_status_that_breaks_the_schema_is_raised() -> None:
    peer = Peer([status(422, "Invalid", details={"causes": [{"field": "status.available"}]})])
    with pytest.raises(Invalid):
        await write_status(client(peer), TARGET, Change({"available": "x"}, {}), field_manager="op")
