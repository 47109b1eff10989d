"""A served version of a definition treats its objects as Kubernetes does, beyond what is recorded."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from setpoint.api import crd_of
from setpoint.server.registry.crd import definition, quick, validate
from setpoint.server.registry.crd.resource import CustomStrategy, resources_of
from setpoint.server.registry.resources import Object, Resource
from tests.api.kinds import ALL
from tests.server.registry.crd_answers import of_field
from tests.server.registry.crd_cases import INT, TEXT, VALUES, Schema, crd, ints, lists, obj


def served(schema: Schema | None = None, **version: Any) -> tuple[Resource, CustomStrategy]:
    root = obj(spec=schema or obj(size=INT, name=TEXT), status=obj(size=INT, selector=TEXT))
    found = resources_of(crd(root=root, **version))[0]
    assert isinstance(found.strategy, CustomStrategy)
    return found, found.strategy


def thing(**parts: Any) -> Object:
    made = of_field("size", 1)
    made["metadata"]["generation"] = 1
    return made | parts


WITH_STATUS: Schema = {"subresources": {"status": {}}}
WITH_SCALE: Schema = {
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.size",
            "labelSelectorPath": ".status.selector",
        },
    }
}


def test_each_served_version_is_a_resource() -> None:
    made = crd()
    plain = made["spec"]["versions"][0]
    made["spec"]["versions"] = [
        {**plain, "name": "v2"},
        {**plain, "storage": False, "deprecated": True},
        {**plain, "name": "v0", "storage": False, "served": False},
    ]
    resources = resources_of(made)
    assert [one.api_version for one in resources] == ["cases.example.com/v2", "cases.example.com/v1"]
    assert {one.stored for one in resources} == {"things.cases.example.com"}
    assert [one.deprecation for one in resources] == [
        "",
        "cases.example.com/v1 Thing is deprecated; use cases.example.com/v2 Thing",
    ]


def test_names_and_subresources_are_those_of_the_definition() -> None:
    resource, _ = served(**WITH_SCALE)
    assert (resource.plural, resource.kind, resource.list_kind) == ("things", "Thing", "ThingList")
    assert [(one.name, one.kind, one.group) for one in resource.subresources] == [
        ("status", "Thing", ""),
        ("scale", "Scale", "autoscaling"),
    ]
    assert resource.namespaced
    assert resource.is_custom


def test_columns_are_the_name_and_those_of_the_definition_or_the_age() -> None:
    resource, _ = served()
    assert [(one.name, one.type, one.json_path) for one in resource.columns] == [
        ("Name", "string", ""),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}
    resource, _ = served(additionalPrinterColumns=[column])
    assert [(one.name, one.priority, one.description) for one in resource.columns[1:]] == [
        ("Size", 1, "Custom resource definition column (in JSONPath format): .spec.size")
    ]


def test_a_creator_cannot_set_the_status_of_a_kind_that_has_one() -> None:
    _, strategy = served(**WITH_STATUS)
    made = thing(status={"size": 1})
    strategy.prepare_create(made)
    assert "status" not in made
    _, strategy = served()
    made = thing(status={"size": 1})
    strategy.prepare_create(made)
    assert made["status"] == {"size": 1}


def test_an_update_keeps_the_status_and_counts_changes_of_the_rest() -> None:
    _, strategy = served(**WITH_STATUS)
    new, old = thing(spec={"size": 2}, status={"size": 9}), thing(status={"size": 1})
    strategy.prepare_update(new, old, "")
    assert (new["status"], new["metadata"]["generation"]) == ({"size": 1}, 2)


def test_metadata_alone_is_no_new_generation() -> None:
    _, strategy = served(**WITH_STATUS)
    new = thing(status={"size": 5})
    new["metadata"] = {**new["metadata"], "labels": {"a": "b"}}
    strategy.prepare_update(new, thing(), "")
    assert new["metadata"]["generation"] == 1


def test_the_status_of_a_kind_without_that_subresource_counts() -> None:
    _, strategy = served()
    new = thing(status={"size": 5})
    strategy.prepare_update(new, thing(), "")
    assert new["metadata"]["generation"] == 2


def test_an_update_of_the_status_changes_nothing_else() -> None:
    _, strategy = served(**WITH_STATUS)
    old = thing(status={"size": 1})
    new = thing(spec={"size": 7}, status={"size": 2})
    new["metadata"] = {"name": "a", "labels": {"a": "b"}, "managedFields": [{"manager": "m"}]}
    strategy.prepare_update(new, old, "status")
    assert new["spec"] == old["spec"]
    assert new["status"] == {"size": 2}
    assert new["metadata"] == {"name": "a", "generation": 1, "managedFields": [{"manager": "m"}]}


def test_under_status_only_the_status_is_judged() -> None:
    root = obj(spec=obj(size=ints(minimum=5)), status=obj(size=ints(minimum=5)))
    strategy = resources_of(crd(root=root, **WITH_STATUS))[0].strategy
    new, old = thing(status={"size": 1}), thing(status={"size": 6})
    assert [str(one) for one in strategy.validate_update(new, old, "status")] == [
        "status.size: Invalid value: 1: size in body should be greater than or equal to 5"
    ]


def test_replicas_are_counts() -> None:
    _, strategy = served({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, **WITH_SCALE)
    wrong = thing(spec={"size": "3"}, status={"size": -1, "selector": 5})
    assert [str(one) for one in strategy.validate_create(wrong) if one.path.startswith(".")] == [
        ".spec.size: Invalid value: 0: .spec.size accessor error: 3 is of the type string, expected int64",
        ".status.size: Invalid value: -1: should be a non-negative integer",
        (
            '.status.selector: Invalid value: "": .status.selector accessor error: '
            "5 is of the type int64, expected string"
        ),
    ]


def test_a_scale_is_made_of_an_object_and_back() -> None:
    _, strategy = served(**WITH_SCALE)
    assert strategy.scaled is not None
    made = thing(status={"size": 3, "selector": "a=b"})
    assert strategy.scaled.scale_of(made) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a"},
        "spec": {"replicas": 1},
        "status": {"replicas": 3, "selector": "a=b"},
    }
    strategy.scaled.set_replicas(made, 8)
    assert made["spec"]["size"] == 8


def test_selectable_fields_are_read_as_text() -> None:
    fields = [{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.name"}]
    _, strategy = served(selectableFields=fields)
    assert strategy.selectable_fields() == ("spec.size", "spec.name")
    assert strategy.fields(thing()) == {"spec.size": "1", "spec.name": ""}


def test_finalizers_without_a_domain_are_warned_of_once() -> None:
    _, strategy = served()
    made = thing()
    made["metadata"]["finalizers"] = ["plain", "with.dots", "example.com/path", "kubernetes"]
    told = "to avoid accidental conflicts with other finalizer writers"
    with_path = "prefer a domain-qualified finalizer name including a path (/)"
    assert strategy.warnings(made, None) == [
        f'metadata.finalizers: "plain": prefer a domain-qualified finalizer name {told}',
        f'metadata.finalizers: "with.dots": {with_path} {told}',
    ]
    assert strategy.warnings(made, made) == []


def test_another_kind_or_version_is_refused() -> None:
    _, strategy = served()
    assert [str(one) for one in strategy.validate_create(thing(kind="Other"))] == [
        'kind: Invalid value: "Other": must be Thing'
    ]


def test_whole_floats_are_written_as_integers() -> None:
    _, strategy = served()
    shown = strategy.emit(thing(spec={"size": 3.0, "list": [1.5, 2.0, {"a": 1e22}]}))
    assert repr(shown["spec"]) == "{'size': 3, 'list': [1.5, 2, {'a': 1e+22}]}"
    assert list(shown)[:2] == ["kind", "apiVersion"]


def test_an_object_of_another_version_is_revived_by_this_ones_schema() -> None:
    _, strategy = served(obj(size=ints(default=4)))
    stored = thing(apiVersion="cases.example.com/v0", spec={"gone": 1})
    assert strategy.revive(stored) | {"metadata": {}} == {
        "apiVersion": "cases.example.com/v1",
        "kind": "Thing",
        "metadata": {},
        "spec": {"size": 4},
    }


@pytest.mark.parametrize("name", VALUES)
def test_the_quick_look_and_the_thorough_one_agree(name: str) -> None:
    """A quick yes is a yes; where the thorough look finds nothing, a quick no is asked again."""
    schema, given = VALUES[name]
    look = quick.check(schema)
    for value in given:
        if look(value):
            assert not validate.problems(schema, value), value


def test_the_quick_look_takes_what_is_right() -> None:
    """It would be no look at all if it left everything to the thorough one."""
    fine = obj(a=ints(minimum=1), b=lists(TEXT), c={"anyOf": [{"minimum": 1}], "type": "integer"})
    assert quick.check(fine)({"a": 1, "b": ["x"], "c": 2})


@pytest.mark.parametrize("versions", ALL, ids=lambda versions: versions[0].__name__)
def test_our_own_definitions_are_taken(versions: Any) -> None:
    made = copy.deepcopy(crd_of(*versions))
    made["spec"]["names"].setdefault("singular", made["spec"]["names"]["kind"].lower())
    made["spec"]["names"].setdefault("listKind", f"{made['spec']['names']['kind']}List")
    made["status"] = {"storedVersions": [one["name"] for one in made["spec"]["versions"] if one["storage"]]}
    assert definition.errors(made) == []
    assert resources_of(made)
