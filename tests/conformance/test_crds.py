"""Every definition that ``crd_of`` makes is taken by the real kube-apiserver, and does there what it says."""

from __future__ import annotations

import asyncio
import copy
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from setpoint import errors
from setpoint.api import (
    CustomResource,
    ObjectMeta,
    as_read,
    crd_of,
    from_wire,
    merged,
    to_wire,
    untyped,
)
from setpoint.client import Client, Config
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.kube.core.v1 import Container, Namespace, PodTemplateSpec
from setpoint.testing.kube import ControlPlane
from tests.api.kinds import (
    ALL,
    Colour,
    Endpoint,
    Gadget,
    GadgetV1Beta1,
    Runner,
    RunnerSpec,
    Sampler,
    SamplerSpec,
    Setting,
    WebApp,
    WebAppSpec,
    Window,
)


@asynccontextmanager
async def connected(kube: ControlPlane) -> AsyncIterator[tuple[Client, str]]:
    """An admin's client, and a namespace of its own."""
    async with Client(Config.from_kubeconfig(kube.kubeconfig)) as client:
        namespace = f"test-{secrets.token_hex(4)}"
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        yield client, namespace


async def install(client: Client, *versions: type[CustomResource]) -> CustomResourceDefinition:
    """Apply a definition, and wait until the server serves the kind."""
    definition = crd_of(*versions)
    await client.apply(definition, force=True)
    name = definition["metadata"]["name"]
    async with asyncio.timeout(30):
        async with client.watch(CustomResourceDefinition, fields={"metadata.name": name}) as changes:
            async for change in changes:
                conditions = {c.type: c for c in change.object.status.conditions or []}
                if "Established" in conditions and conditions["Established"].status == "True":
                    break
        while True:  # Established is said a moment before every path is served
            try:
                await client.list(versions[0])
            except errors.KindNotServed:
                await asyncio.sleep(0.05)
            else:
                return change.object


def sampler(name: str = "a", **spec: Any) -> Sampler:
    return Sampler(metadata=ObjectMeta(name=name), spec=SamplerSpec(text="t", count=2, **spec))


@pytest.mark.parametrize("versions", ALL, ids=lambda versions: versions[0].__name__)
async def test_every_definition_is_accepted_and_established_with_a_structural_schema(
    kube: ControlPlane, versions: tuple[type[CustomResource], ...]
) -> None:
    async with connected(kube) as (client, _):
        installed = await install(client, *versions)

    conditions = {c.type: (c.status, c.message) for c in installed.status.conditions or []}
    assert conditions["NamesAccepted"][0] == "True"
    assert "NonStructuralSchema" not in conditions


async def test_the_server_s_defaults_are_the_class_s_defaults(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Sampler)
        bare = {
            "apiVersion": "test.setpoint.dev/v1",
            "kind": "Sampler",
            "metadata": {"name": "bare"},
            "spec": {"text": "t", "count": 2},
        }
        made = await client.create(bare, namespace=namespace)
        ours = to_wire(sampler("bare").spec)
        assert made["spec"] == ours
        assert "status" not in made, "a status is the controller's to write"


async def test_an_object_is_read_back_as_it_was_written(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Sampler)
        wanted = sampler(
            anything={"a": [1, None]},
            table={"free": {"b": "c"}},
            labels={"k": "v"},
            sparse=[1, None],
            nested={"eu": [Endpoint(host="a.example.com")]},
            metadata=ObjectMeta(labels={"app": "a"}, annotations={"x": "1"}),
            irregular_url="https://example.com",
            loose=Endpoint(host="a"),
            embedded={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"free": True}},
        )
        made = await client.create(wanted, namespace=namespace)
        assert made.spec == wanted.spec
        assert (await client.get(Sampler, "a", namespace=namespace)).spec == wanted.spec


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"count": "two"}, "spec.count"),
        ({"colour": "green"}, "spec.colour"),
        ({"level": 2}, "spec.level"),
        ({"mode": "slow"}, "spec.mode"),
        ({"above": 1.0}, "spec.above"),
        ({"dozens": 13}, "spec.dozens"),
        ({"short": "TOO LONG FOR IT"}, "spec.short"),
        ({"few": ["a", "a"]}, "spec.few[1]"),
        ({"small": {"a": "1", "b": "2", "c": "3"}}, "spec.small"),
        ({"endpoints": [{"host": "a"}, {"host": "a"}]}, "spec.endpoints[1]"),
        ({"endpoints": [{"port": 1}]}, "spec.endpoints[0].host"),
        ({"window": {"low": 9, "high": 1}}, "spec.window.low"),
        ({"odd": 2}, "spec.odd"),
        ({"amount": "much"}, "spec.amount"),
        ({"since": "yesterday"}, "spec.since"),
        ({"data": "no base64!"}, "spec.data"),
        ({"target": 1.5}, "spec.target"),
        ({"embedded": {"spec": {}}}, "spec.embedded.apiVersion"),
        ({"text": None}, "spec.text"),
    ],
)
async def test_what_a_marker_forbids_the_server_refuses(
    kube: ControlPlane, wrong: dict[str, Any], field: str
) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Sampler)
        body = to_wire(sampler())
        body["spec"] |= wrong
        with pytest.raises(errors.Invalid) as refused:
            await client.create(body, namespace=namespace)
        assert field in {cause.field for cause in refused.value.causes}


async def test_rules_see_what_was_before(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Sampler)
        made = await client.create(sampler(forever=Endpoint(host="a"), grows=5), namespace=namespace)
        for change, said in [
            ({"fixed": "changed"}, "this field is immutable"),
            ({"forever": {"host": "b", "port": 443}}, "an endpoint is for ever"),
            ({"grows": 4}, "failed rule"),
        ]:
            body = to_wire(made)
            body["spec"] |= change
            with pytest.raises(errors.Invalid, match=said):
                await client.update(body)


async def test_the_rule_of_a_kind_sees_its_name(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Sampler)
        with pytest.raises(errors.Invalid, match="the name is too long"):
            await client.create(sampler("a" * 41), namespace=namespace)


async def test_null_is_kept_only_where_it_may_be(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Sampler)
        body = to_wire(sampler())
        body["spec"] |= {"null": None, "level": None, "odd": None}
        made = await client.create(body, namespace=namespace)
        assert made["spec"]["null"] is None
        assert "level" not in made["spec"]
        assert made["spec"]["odd"] == 1
        typed = from_wire(Sampler, made)
        assert typed.spec.null is None
        typed.spec.count = 3
        assert b'"null":null' in merged(typed), "what was there and was not changed stays"


async def test_unknown_fields_are_dropped_unless_preserved(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Sampler)
        body = to_wire(sampler(loose=Endpoint(host="a"), forever=Endpoint(host="a")))
        body["spec"]["loose"]["novel"] = body["spec"]["forever"]["novel"] = 1
        made = await client.create(body, namespace=namespace, field_validation="Ignore")
        assert made["spec"]["loose"]["novel"] == 1
        assert "novel" not in made["spec"]["forever"]


async def test_unknown_fields_survive_a_typed_update(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Sampler)
        body = to_wire(sampler(loose=Endpoint(host="a")))
        body["spec"]["loose"]["novel"] = 1
        await client.create(body, namespace=namespace)
        typed = await client.get(Sampler, "a", namespace=namespace)
        assert typed.spec.loose is not None
        typed.spec.loose.port = 80
        updated = await client.update(typed)
        assert b'"novel":1' in (as_read(updated) or b"")


async def test_status_is_a_subresource(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, WebApp)
        app = WebApp(metadata=ObjectMeta(name="a"), spec=WebAppSpec(image="i"))
        app.status.available_replicas = 7
        made = await client.create(app, namespace=namespace)
        assert made.status.available_replicas == 0, "create does not write a status"
        made.status.available_replicas, made.status.ready = 3, True
        seen = await client.update_status(made)
        seen.status.available_replicas, seen.status.ready = 0, False
        await client.update_status(seen)
        raw = await client.get(untyped("demo.setpoint.dev/v1", "WebApp"), "a", namespace=namespace)
        assert raw["status"] == {"availableReplicas": 0, "ready": False, "conditions": []}


async def test_scale_columns_and_selectable_fields_work(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Sampler)
        await client.create(sampler("red"), namespace=namespace)
        await client.create(sampler("blue", colour=Colour.BLUE), namespace=namespace)
        await client.scale(Sampler, "red", 5, namespace=namespace)
        assert (await client.get(Sampler, "red", namespace=namespace)).spec.count == 5
        blue = await client.list(Sampler, namespace=namespace, fields={"spec.colour": "blue"})
        assert [each.metadata.name for each in blue] == ["blue"]
        table = await client.fetch(
            f"/apis/test.setpoint.dev/v1/namespaces/{namespace}/samplers",
            accept="application/json;as=Table;g=meta.k8s.io;v=v1",
        )
        shown = json.loads(table)
        columns = {column["name"]: column["type"] for column in shown["columnDefinitions"]}
        assert columns == {
            "Name": "string",
            "Count": "integer",
            "Share": "number",
            "Phase": "string",
            "Ready": "string",
            "Since": "date",
            "Age": "date",
        }


async def test_a_spec_that_was_not_given_is_filled_in_to_the_depth(kube: ControlPlane) -> None:
    async with connected(kube) as (client, _):
        await install(client, Setting)
        name = f"a-{secrets.token_hex(4)}"
        bare = {"apiVersion": "test.setpoint.dev/v1alpha1", "kind": "Setting", "metadata": {"name": name}}
        made = await client.create(bare)
        assert made["spec"] == {"size": 3, "window": {"low": 0, "high": 5}}
        assert from_wire(Setting, made).spec.window == Window(high=5)


async def test_both_versions_of_a_kind_are_served(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Gadget, GadgetV1Beta1)
        await client.create(Gadget(metadata=ObjectMeta(name="a")), namespace=namespace)
        old = await client.get(GadgetV1Beta1, "a", namespace=namespace)
        assert (old.api_version, old.spec.size) == ("test.setpoint.dev/v1beta1", 1)


async def test_kubernetes_types_inside_ours_lose_nothing(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install(client, Runner)
        template = from_wire(
            PodTemplateSpec,
            {
                "metadata": {"labels": {"app": "a"}, "annotations": {"x": "1"}},
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "ports": [{"containerPort": 80, "name": "web"}],
                            "resources": {"limits": {"cpu": "500m"}},
                            "livenessProbe": {"httpGet": {"port": "web", "path": "/"}},
                        }
                    ]
                },
            },
        )
        spec = RunnerSpec(template=template, containers=[Container(name="x")])
        made = await client.create(Runner(metadata=ObjectMeta(name="a"), spec=spec), namespace=namespace)
        assert made.spec == spec


# What we refuse when a class is made, the server would refuse too.


def bad(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    definition = copy.deepcopy(crd_of(WebApp))
    definition["metadata"]["name"] = "bads.demo.setpoint.dev"
    definition["spec"]["names"] = {"kind": "Bad", "plural": "bads", "singular": "bad", "listKind": "BadList"}
    change(definition["spec"])
    return definition


def spec_of(definition: dict[str, Any]) -> dict[str, Any]:
    schema = definition["versions"][0]["schema"]["openAPIV3Schema"]
    properties: dict[str, Any] = schema["properties"]["spec"]["properties"]
    return properties


@pytest.mark.parametrize(
    "change",
    [
        lambda crd: spec_of(crd)["replicas"].update(default=-1),
        lambda crd: spec_of(crd)["image"].update(pattern="(?=a)"),
        lambda crd: spec_of(crd).update(
            x={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"}
        ),
        lambda crd: spec_of(crd).update(
            x={
                "type": "array",
                "items": {"type": "object", "properties": {"k": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            }
        ),
        lambda crd: spec_of(crd).update(x={}),
        lambda crd: spec_of(crd).update(
            x={
                "x-kubernetes-preserve-unknown-fields": True,
                "x-kubernetes-validations": [{"rule": "self == 1"}],
            }
        ),
        lambda crd: crd["versions"][0].update(selectableFields=[{"jsonPath": ".spec.absent"}]),
        lambda crd: crd["versions"][0]["subresources"].update(
            scale={"specReplicasPath": ".replicas", "statusReplicasPath": ".status.replicas"}
        ),
        lambda crd: crd["names"].update(shortNames=["Upper_Case"]),
        lambda crd: crd["versions"].append({**crd["versions"][0], "name": "v2"}),
    ],
)
async def test_what_is_refused_when_a_class_is_made_is_refused_by_the_server_too(
    kube: ControlPlane, change: Callable[[dict[str, Any]], None]
) -> None:
    async with connected(kube) as (client, _):
        with pytest.raises(errors.Invalid):
            await client.create(bad(change))
