"""Whether an apply would change anything, by what a real kube-apiserver answered."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api import Key, LabelSelector, ObjectMeta, Resource
from setpoint.api.model import encode
from setpoint.api.patches import apply_merge, same
from setpoint.api.wire import Snapshot
from setpoint.controller.apply import Settled, changes, intent_of, managers_of, move_string_data, say
from setpoint.kube.apps.v1 import Deployment, DeploymentSpec
from setpoint.kube.core.v1 import PodTemplateSpec, Secret
from tests.controller.intents import MANAGER, QUIET, UNSURE, recorded

Wire = dict[str, Any]


def case(name: str) -> tuple[Wire, Wire]:
    """An intent, and the object as the server then had it; copies."""
    return copy.deepcopy((QUIET | UNSURE)[name]), copy.deepcopy(recorded()[name])


def said(intent: Wire, live: Wire, manager: str = MANAGER) -> list[str]:
    return [say(path) for path in changes(intent, live, manager)]


def web(intent: Wire) -> Wire:
    """The first container of a Deployment."""
    container: Wire = intent["spec"]["template"]["spec"]["containers"][0]
    return container


# What changes nothing.


@pytest.mark.parametrize("name", QUIET)
def test_an_intent_whose_fields_are_all_there_and_all_ours_changes_nothing(name: str) -> None:
    intent, live = case(name)
    assert said(intent, live) == []


@pytest.mark.parametrize("name", UNSURE)
def test_where_it_is_not_sure_it_says_that_something_would_change(name: str) -> None:
    intent, live = case(name)
    assert said(intent, live) != []


@pytest.mark.parametrize("left", [{}, {"f:data": {}}, {"f:data": {".": {}}}], ids=str)
def test_a_field_that_was_all_we_had_of_its_parent_and_was_taken_is_named_itself(left: Wire) -> None:
    entries = [
        {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsV1": left},
        {"manager": "o", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:hue": {}}}},
    ]
    live = {"metadata": {"managedFields": entries}, "data": {"hue": "red"}}
    assert said({"apiVersion": "v1", "kind": "ConfigMap", "data": {"hue": "blue"}}, live, "m") == ["data.hue"]


def test_what_others_add_is_not_our_concern() -> None:
    intent, live = case("deployment")
    live["metadata"]["labels"]["theirs"] = "x"
    live["spec"]["paused"] = True
    live["spec"]["template"]["spec"]["containers"].append({"name": "injected", "image": "i"})
    live["status"] = {"replicas": 2}
    assert said(intent, live) == []


def test_a_status_has_no_part_in_it_where_it_is_a_part_of_its_own() -> None:
    resource = Deployment.resource
    deployment = Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(selector=LabelSelector(), template=PodTemplateSpec()),
    )
    assert "status" not in intent_of(deployment, resource)
    plain = {"apiVersion": "v1", "kind": "Thing", "status": {"a": 1}}
    assert "status" in intent_of(plain, Resource("", "v1", "Thing", "things"))
    assert "status" in plain, "the object given is as it was"


# What changes something.


def test_another_value_changes_something_and_the_field_is_named() -> None:
    intent, live = case("deployment")
    intent["spec"]["replicas"] = 3
    web(intent)["image"] = "web:2"
    assert said(intent, live) == ["spec.replicas", "spec.template.spec.containers[name=web].image"]


def test_drift_is_a_change_to_put_back() -> None:
    intent, live = case("deployment")
    live["spec"]["replicas"] = 7
    del live["metadata"]["labels"]["app.kubernetes.io/name"]
    assert said(intent, live) == ["metadata.labels[app.kubernetes.io/name]", "spec.replicas"]


def test_a_field_that_is_right_but_not_ours_is_taken() -> None:
    intent, live = case("config map")
    live["data"]["new"] = "1"
    intent["data"]["new"] = "1"
    assert said(intent, live) == ["data.new"]


def test_a_field_that_we_no_longer_want_is_given_up() -> None:
    intent, live = case("config map")
    del intent["data"]["empty"]
    assert said(intent, live) == ["data.empty"]
    del intent["metadata"]["labels"]
    assert said(intent, live) == ["data.empty", "metadata"]


def test_the_first_apply_of_a_manager_changes_something() -> None:
    intent, live = case("config map")
    assert said(intent, live, "another-operator") == ["the whole object"]
    live["metadata"]["managedFields"][0]["operation"] = "Update"
    assert said(intent, live) == ["the whole object"]


def test_an_apply_in_another_version_of_the_kind_changes_something() -> None:
    intent, live = case("deployment")
    intent["apiVersion"] = "apps/v2"
    assert said(intent, live) == ["the whole object"]


def test_an_entry_about_a_subresource_is_not_ours() -> None:
    intent, live = case("config map")
    live["metadata"]["managedFields"][0]["subresource"] = "status"
    assert said(intent, live) == ["the whole object"]


def test_a_version_in_the_intent_is_a_condition_for_the_server_to_check() -> None:
    intent, live = case("config map")
    intent["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    assert said(intent, live) == ["metadata.resourceVersion"]


# Lists.


def test_items_with_keys_are_told_apart_by_them() -> None:
    intent, live = case("deployment")
    web(intent)["env"][1]["value"] = "3"
    assert said(intent, live) == ["spec.template.spec.containers[name=web].env[name=B].value"]


def test_an_item_that_is_new_or_gone_is_a_change() -> None:
    intent, live = case("deployment")
    web(intent)["env"].append({"name": "C", "value": "3"})
    assert said(intent, live) == ["spec.template.spec.containers[name=web].env"]
    web(intent)["env"] = web(intent)["env"][:1]
    assert "spec.template.spec.containers[name=web].env[name=B]" in said(intent, live)


def test_another_order_is_a_change() -> None:
    for name, path in (("deployment", "spec.template.spec.containers"), ("garden", "spec.plants")):
        intent, live = case(name)
        holder: Any = intent
        *steps, last = path.split(".")
        for step in steps:
            holder = holder[step]
        holder[last].reverse()
        assert said(intent, live) == [path]


def test_a_key_left_out_has_its_default() -> None:
    intent, live = case("garden")
    intent["spec"]["ports"][0]["protocol"] = "TCP"
    assert said(intent, live) == ["spec.ports[port=80,protocol=TCP].protocol"], "saying it makes it ours"


def test_two_items_that_could_be_the_same_are_not_guessed_at() -> None:
    intent, live = case("garden")
    intent["spec"]["ports"].append({"port": 80})
    assert "spec.ports" in said(intent, live)


def test_a_set_is_compared_by_its_values() -> None:
    intent, live = case("garden")
    intent["spec"]["plants"] = ["rose"]
    assert said(intent, live) == ["spec.plants"]
    intent, live = case("garden")
    live["spec"]["plants"].remove("ivy")
    assert said(intent, live) == ["spec.plants"]


def test_what_is_owned_as_one_piece_must_be_the_same_as_a_whole() -> None:
    intent, live = case("garden")
    live["spec"]["origin"]["more"] = "x"
    live["spec"]["notes"].append("c")
    assert said(intent, live) == ["spec.notes", "spec.origin"]


def test_true_is_not_one() -> None:
    intent, live = case("deployment")
    live["metadata"]["ownerReferences"][0]["controller"] = 1
    assert said(intent, live) == ["metadata.ownerReferences[uid=5ea50f6e-0d5c-4b0c-8a3c-2f1f5f6a7b8c]"]


def test_what_is_strange_in_our_entry_is_sent() -> None:
    intent, live = case("garden")
    fields = live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    fields["f:notes"] = {"i:0": {}}
    fields["f:plants"] = {'v:"rose"': {}, "f:x": {}}
    assert set(said(intent, live)) == {"spec.plants", "spec.notes"}


# What must never be said.

scalars = st.sampled_from(["a", "b", "", 0, 1, True, 2.5])
values = st.recursive(
    scalars,
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


def fields_of(value: Any) -> Wire:
    """What managedFields say of a value without a schema: maps by entry, lists as one piece."""
    if not isinstance(value, dict) or not value:
        return {}
    return {f"f:{name}": fields_of(below) for name, below in value.items()}


def left_to_us(applied: Wire, live: Wire) -> Wire:
    """What managedFields still say of what we applied, when others have changed some of it."""
    left = {}
    for name, value in applied.items():
        there = live.get(name)
        if isinstance(value, dict) and value and isinstance(there, dict):
            if below := left_to_us(value, there):
                left[f"f:{name}"] = below
        elif same(value, there) or (value == {} and isinstance(there, dict)):
            left[f"f:{name}"] = {}
    return left


@given(applied=objects, others=objects, edits=objects, fresh=st.booleans())
def test_nothing_is_called_unchanged_that_a_merge_would_change(
    applied: Wire, others: Wire, edits: Wire, fresh: bool
) -> None:
    intent = edits if fresh else apply_merge(edits, applied)
    live = apply_merge(others, applied)
    ours = left_to_us(applied, live)
    entries = [
        {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsV1": ours},
        {"manager": "other", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields_of(others)},
    ]
    whole = {**live, "metadata": {"managedFields": entries}}
    if not changes({"apiVersion": "v1", **intent}, whole, "m"):
        assert same(without_empty(apply_merge(intent, live)), without_empty(live))
        assert fields_of(intent) == ours, "and we would own the same"


def without_empty(value: Any) -> Any:
    """Built-in kinds drop what is empty, so that such a field may be ours and not there."""
    if not isinstance(value, dict):
        return value
    return {name: without_empty(below) for name, below in value.items() if below not in ({}, [])}


# Who else.


def test_the_others_who_set_a_field_are_named() -> None:
    _, live = case("deployment")
    live["metadata"]["managedFields"] += [
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {
            "manager": "hpa",
            "operation": "Update",
            "subresource": "scale",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        },
        {
            "manager": "kcm",
            "operation": "Update",
            "fieldsV1": {"f:status": {}},
            "time": "2030-01-01T00:00:00Z",
        },
    ]
    assert managers_of(live, ("f:spec", "f:replicas"), besides=MANAGER) == ["hpa", "kubectl"]
    assert managers_of(live, ("f:status", "f:replicas"), besides=MANAGER) == ["kcm"]
    assert managers_of(live, ("f:spec", "f:paused"), besides=MANAGER) == ["kcm"], "who wrote last"
    assert managers_of({}, ("f:spec",), besides=MANAGER) == []


# What came of it.


PLACE = (Deployment.gvk, Key("shop", "web"))


def held(live: Wire) -> Snapshot:
    return Snapshot.of(encode(live))


def test_what_came_of_an_intent_is_known_when_it_is_seen_again() -> None:
    settled = Settled()
    intent, live = case("default in an atomic field")
    settled.remember(PLACE, intent, held(live), now=0)
    assert settled.is_result(PLACE, intent, held(live), now=1)

    live["status"] = {"replicas": 1}
    live["metadata"]["resourceVersion"] = "999"
    live["metadata"]["managedFields"].append({"manager": "kcm", "subresource": "status"})
    assert settled.is_result(PLACE, intent, held(live), now=1), "a status is nothing to an apply"
    del live["metadata"]["managedFields"]
    assert settled.is_result(PLACE, intent, held(live), now=1), "a cache may hold objects without them"


@pytest.mark.parametrize("difference", ["intent", "spec", "uid", "labels", "managers", "time", "place"])
def test_anything_else_about_it_and_it_is_not_known(difference: str) -> None:
    settled = Settled(seconds=600)
    intent, live = case("default in an atomic field")
    settled.remember(PLACE, intent, held(live), now=0)
    now, place = 1.0, PLACE
    match difference:
        case "intent":
            intent["spec"]["replicas"] = 5
        case "spec":
            live["spec"]["replicas"] = 5
        case "uid":
            live["metadata"]["uid"] = "another"
        case "labels":
            live["metadata"]["labels"] = {"a": "b"}
        case "managers":
            live["metadata"]["managedFields"][0]["fieldsV1"] = {}
        case "time":
            now = 601.0
        case "place":
            place = (Deployment.gvk, Key("shop", "other"))
    assert not settled.is_result(place, intent, held(live), now=now)


@pytest.mark.parametrize("difference", ["nothing", "intent", "version", "no version", "time", "place"])
def test_an_object_that_nobody_has_written_since_needs_no_second_look(difference: str) -> None:
    settled = Settled(seconds=600)
    intent, live = case("default in an atomic field")
    settled.remember(PLACE, intent, held(live), now=0)
    now, place, version = 1.0, PLACE, live["metadata"]["resourceVersion"]
    match difference:
        case "intent":
            intent["spec"]["replicas"] = 5
        case "version":
            version += "1"
        case "no version":
            version = live["metadata"]["resourceVersion"] = ""
            settled.remember(PLACE, intent, held(live), now=0)
        case "time":
            now = 601.0
        case "place":
            place = (Deployment.gvk, Key("shop", "other"))
    assert settled.is_still(place, intent, version, now=now) is (difference == "nothing")


def test_what_is_remembered_is_bounded() -> None:
    settled = Settled(limit=2)
    intent, live = case("config map")
    for name in "abc":
        settled.remember((Deployment.gvk, Key("shop", name)), intent, held(live), now=0)
    assert len(settled) == 2
    assert not settled.is_result((Deployment.gvk, Key("shop", "a")), intent, held(live), now=0)
    assert settled.is_result((Deployment.gvk, Key("shop", "c")), intent, held(live), now=0)


def test_text_in_a_secret_is_sent_as_the_server_keeps_it() -> None:
    plain: Wire = {"kind": "Secret", "stringData": {"a": "1"}, "data": {"a": "x", "b": "Mg=="}}
    move_string_data(plain)
    assert plain == {"kind": "Secret", "data": {"a": "MQ==", "b": "Mg=="}}
    typed = Secret(string_data={"a": "1"}, data={"b": b"2"})
    move_string_data(typed)
    assert (typed.data, typed.string_data) == ({"a": b"1", "b": b"2"}, None)
