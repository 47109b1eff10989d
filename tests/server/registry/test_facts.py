"""The shipped table: what is served, and what is known of each type."""

from __future__ import annotations

from pathlib import Path

import pytest

from setpoint.server.registry import facts
from setpoint.server.registry.types import NONE, Type
from setpoint.testing.kube import KUBERNETES


def test_the_facts_describe_the_release_that_the_tests_build() -> None:
    assert facts.release() == KUBERNETES


def test_the_go_types_are_those_of_that_release() -> None:
    required = (Path(__file__).parents[3] / "tools" / "facts" / "go.mod").read_text()
    release = KUBERNETES.replace("v1.", "v0.", 1)
    for module in ("api", "apiextensions-apiserver", "apimachinery", "client-go", "kube-aggregator"):
        assert f"k8s.io/{module} {release}" in required


def test_every_resource_has_a_type_and_every_list_a_list_kind() -> None:
    for one in facts.resources():
        assert facts.type_of(one.group, one.version, one.kind).form == "struct"
        assert bool(one.list_kind) == ("list" in one.verbs), one
        assert bool(one.columns) == ("list" in one.verbs), one


def test_a_deployment_is_served_as_kubectl_knows_it() -> None:
    deployments = next(one for one in facts.resources() if one.plural == "deployments")
    assert (deployments.group, deployments.version, deployments.kind) == ("apps", "v1", "Deployment")
    assert deployments.namespaced
    assert deployments.short_names == ("deploy",)
    assert deployments.categories == ("all",)
    assert [one.name for one in deployments.subresources] == ["scale", "status"]
    assert deployments.subresources[0].group == "autoscaling"
    assert [one.name for one in deployments.columns if one.priority == 0] == [
        "Name", "Ready", "Up-to-date", "Available", "Age",
    ]  # fmt: skip


def test_a_field_says_how_it_merges_and_what_is_written_when_empty() -> None:
    spec = facts.type_of("", "v1", "Pod").fields["spec"].type
    containers = spec.fields["containers"]
    assert containers.type.form == "list"
    assert containers.type.list_type == "map"
    assert containers.type.map_keys == ("name",)
    assert (containers.patch_strategy, containers.merge_key) == (frozenset({"merge"}), "name")
    assert containers.is_required
    assert containers.is_emitted_empty
    container = containers.type.item
    assert container is not None
    assert container.name == "v1.Container"
    assert container.fields["resources"].is_emitted_empty, "a struct that is no pointer"
    assert not container.fields["image"].is_emitted_empty
    assert container.fields["imagePullPolicy"].type.name == "v1.PullPolicy"
    assert container.fields["imagePullPolicy"].enum == ("Always", "IfNotPresent", "Never")
    ports = container.fields["ports"].type.item
    assert ports is not None
    assert ports.fields["protocol"].default == "TCP"
    assert ports.fields["hostIP"].default is NONE


def test_what_is_owned_as_a_whole_is_atomic() -> None:
    spec = facts.type_of("apps", "v1", "Deployment").fields["spec"].type
    assert spec.fields["selector"].type.is_atomic
    assert facts.type_of("", "v1", "Pod").fields["spec"].type.fields["nodeSelector"].type.is_atomic
    assert not facts.type_of("", "v1", "ConfigMap").fields["data"].type.is_atomic


def test_kinds_of_every_version_are_found_in_each() -> None:
    for kind in ("DeleteOptions", "Status", "PatchOptions", "CreateOptions", "UpdateOptions", "ListOptions"):
        assert facts.type_of("apps", "v1", kind) is facts.type_of("", "v1", kind)
    for group, version, kind in (
        ("autoscaling", "v1", "Scale"),
        ("policy", "v1", "Eviction"),
        ("", "v1", "Binding"),
        ("authentication.k8s.io", "v1", "TokenRequest"),
        ("", "v1", "PodList"),
    ):
        assert facts.type_of(group, version, kind).fields["kind"].type.form == "string"
    with pytest.raises(KeyError):
        facts.type_of("", "v1", "Deployment")


def test_a_type_may_hold_itself() -> None:
    crd = facts.type_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    versions = crd.fields["spec"].type.fields["versions"].type.item
    assert versions is not None
    schema = versions.fields["schema"].type.fields["openAPIV3Schema"].type
    assert schema.fields["not"].type is schema
    assert schema.fields["items"].type.item is schema


def test_every_type_is_whole() -> None:
    seen: set[Type] = set()
    waiting = [facts.type_of(*kind) for kind in facts.kinds()]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.form in ("list", "map"):
            assert one.item is not None, one
        assert one.list_type != "map" or one.map_keys, one
        waiting += [field.type for field in one.fields.values()] + ([one.item] if one.item else [])
    assert len(seen) > 800
