"""The generated models hold what a real server said: every kind, every field, every value."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.api.meta import LabelSelector, ObjectMeta
from setpoint.api.model import Model, Object, decode, encode, to_wire
from setpoint.api.names import GroupVersionKind
from setpoint.api.openapi import read, stable
from setpoint.cli.source import write
from setpoint.kube.apps.v1 import Deployment, DeploymentSpec, DeploymentStatus
from setpoint.kube.core.v1 import ConfigMap, Container, Pod, PodSpec, PodTemplateSpec, Secret
from tests.kube_models import recorded, wire


def struct_classes(module: str) -> dict[str, type[Model]]:
    found = vars(importlib.import_module(module))
    return {
        name: each
        for name, each in found.items()
        if isinstance(each, type) and issubclass(each, Model) and each.__module__ == module
    }


def test_the_modules_are_what_the_command_makes_of_what_the_server_said() -> None:
    said = recorded.kubernetes()
    resources = recorded.resources()
    served = {(resource.group, resource.version) for resource in resources if stable(resource.version)}
    document = {"components": {"schemas": said["schemas"]}}
    again = f"Of Kubernetes {said['version']}; made anew by `make models`."

    made = write(read([document], resources, served, builtin=True), again)

    kept = {
        file.relative_to(recorded.PACKAGE).as_posix(): file.read_text()
        for file in recorded.PACKAGE.glob("*/*.py")
    }
    assert made.keys() == kept.keys(), "run `make models`"
    for name, text in made.items():
        assert text == kept[name], f"{name} differs: run `make models`"


def test_every_resource_has_its_kind_with_the_same_names() -> None:
    kinds = recorded.kinds()
    for resource in recorded.resources():
        known = kinds[resource.gvk].resource
        assert (known.plural, known.namespaced) == (resource.plural, resource.namespaced), resource
        assert known.singular == resource.singular, resource
        assert known.short_names == resource.short_names, resource
        assert known.categories == resource.categories, resource
        assert known.subresources == resource.subresources, resource


def test_bodies_of_subresources_have_their_kinds() -> None:
    kinds = recorded.kinds()
    for api_version, kind in [
        ("autoscaling/v1", "Scale"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("policy/v1", "Eviction"),
        ("v1", "Binding"),
    ]:
        assert GroupVersionKind.of(api_version, kind) in kinds


@pytest.mark.parametrize("module", recorded.modules())
def test_every_class_has_the_wire_names_of_its_schema(module: str) -> None:
    _, _, group, version = module.split(".")
    properties = {
        name.rpartition(".")[2]: set(schema.get("properties", {}))
        for name, schema in recorded.kubernetes()["schemas"].items()
        if name.endswith(f".{group}.{version}.{name.rpartition('.')[2]}")
    }
    for name, each in struct_classes(module).items():
        assert {field.encode_name for field in msgspec.structs.fields(each)} == properties[name], name


@pytest.mark.parametrize("module", recorded.modules())
def test_what_only_the_server_writes_can_be_made_from_nothing(module: str) -> None:
    for name, each in struct_classes(module).items():
        if name.endswith("Status") and not issubclass(each, Object):
            each()


@pytest.mark.parametrize("kind", recorded.kinds().values(), ids=lambda kind: str(kind.gvk))
def test_a_status_is_always_there(kind: type[Object]) -> None:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    if "status" in fields:
        assert not fields["status"].required
        assert fields["status"].default_factory is not msgspec.NODEFAULT


@pytest.mark.parametrize("said", recorded.objects(), ids=wire.title)
def test_recorded_objects_are_read_and_written_without_loss(said: dict[str, Any]) -> None:
    kind = recorded.kinds()[GroupVersionKind.of(said["apiVersion"], said["kind"])]
    assert wire.lost(said, to_wire(kind.decode(json.dumps(said).encode()))) == []


SCHEMAS = wire.Schemas(recorded.kubernetes()["schemas"])
KINDS = st.sampled_from(sorted(recorded.kinds().values(), key=lambda kind: str(kind.gvk)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kind=KINDS, data=st.data())
def test_whatever_a_schema_allows_is_read_and_written_without_loss(
    kind: type[Object], data: st.DataObject
) -> None:
    said = data.draw(SCHEMAS.objects_of(kind.gvk))
    assert wire.lost(said, to_wire(kind.decode(json.dumps(said).encode()))) == []


def test_importing_a_module_imports_no_others_but_those_it_needs() -> None:
    assert loaded_by("setpoint.kube.coordination.v1") == {"setpoint.kube.coordination.v1"}
    assert loaded_by("setpoint.kube.apps.v1") == {"setpoint.kube.apps.v1", "setpoint.kube.core.v1"}


def loaded_by(module: str) -> set[str]:
    program = f"import sys, {module}; print(*[m for m in sys.modules if m.startswith('setpoint.kube.')])"
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return {name for name in shown.stdout.split() if name.count(".") == 3}


def test_a_deployment_is_written_as_one_would_by_hand() -> None:
    labels = {"app": "web"}
    deployment = Deployment(
        metadata=ObjectMeta(name="web", namespace="shop"),
        spec=DeploymentSpec(
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels),
                spec=PodSpec(containers=[Container(name="web", image="nginx")], host_ipc=True),
            ),
        ),
    )
    assert to_wire(deployment) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}], "hostIPC": True},
            },
        },
        "status": {},
    }


def test_what_is_always_there_can_be_reached_without_a_question() -> None:
    """mypy --strict reads this file: none of these may be None."""
    pod = Pod(spec=PodSpec(containers=[Container(name="a", image="b")]))
    image: str | None = pod.spec.containers[0].image
    deployment = decode(
        Deployment, b'{"spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "a"}]}}}}'
    )
    name: str = deployment.spec.template.spec.containers[0].name
    available: int = deployment.status.available_replicas or 0
    assert (image, name, available, deployment.status) == ("b", "a", 0, DeploymentStatus())


def test_a_null_where_go_has_an_empty_list_is_an_empty_list() -> None:
    pod = Pod.decode(b'{"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": null}}')
    assert pod.spec.containers == []


def test_bytes_are_base64_on_the_wire() -> None:
    secret = Secret(metadata=ObjectMeta(name="s"), data={"password": b"\x00\xff"})
    assert b'"data":{"password":"AP8="}' in encode(secret)
    assert Secret.decode(encode(secret)).data == {"password": b"\x00\xff"}


def test_a_kind_without_spec_or_status_has_none() -> None:
    assert to_wire(ConfigMap(metadata=ObjectMeta(name="c"), data={})) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {},
    }
