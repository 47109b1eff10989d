"""What clients learn of what is served: discovery and OpenAPI."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from setpoint.server.http.discovery import Discovery
from setpoint.server.http.openapi import OpenApi
from setpoint.server.registry import facts
from setpoint.server.registry.served import Resources
from tests.server.http.asking import DEFINITIONS, asking, definition, until_served, version
from tests.server.http.resources import resource

WHOLE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_the_whole_is_one_document_that_is_known_by_its_tag() -> None:
    async with asking() as ask:
        for root in ("/api", "/apis"):
            got = await ask.get(root, accept=f"{WHOLE},application/json")
            assert got.headers["Content-Type"] == WHOLE
            assert got.headers["Cache-Control"] == "public"
            assert got.headers["Vary"] == "Accept"
            again = await ask.get(root, accept=WHOLE, If_None_Match=got.headers["ETag"])
            assert (again.status, again.body) == (304, b"")
            assert again.headers["ETag"] == got.headers["ETag"]


async def test_the_whole_says_what_the_real_server_says() -> None:
    async with asking() as ask:
        core = (await ask.get("/api", accept=WHOLE)).json["items"]
        others = (await ask.get("/apis", accept=WHOLE)).json["items"]
        told = {
            (group["metadata"].get("name", ""), each["version"], one["resource"]): one
            for group in [*core, *others]
            for each in group["versions"]
            for one in each["resources"]
        }
        for one in facts.resources():
            said = told[one.group, one.version, one.plural]
            assert said["responseKind"] == {"group": "", "version": "", "kind": one.kind}
            assert (said["scope"] == "Namespaced") is one.namespaced
            assert said["verbs"] == list(one.verbs)
            assert said.get("shortNames", []) == list(one.short_names)
            assert said.get("categories", []) == list(one.categories)


async def test_each_version_is_told_alone_too() -> None:
    async with asking() as ask:
        for one in facts.resources():
            root = f"/apis/{one.group}" if one.group else "/api"
            told = (await ask.get(f"{root}/{one.version}")).json
            [said] = [row for row in told["resources"] if row["name"] == one.plural]
            assert said["kind"] == one.kind
            assert said.get("storageVersionHash", "") == one.storage_version_hash, one.plural
        apps = (await ask.get("/apis/apps")).json
        assert apps["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
        scale = next(
            row
            for row in (await ask.get("/apis/apps/v1")).json["resources"]
            if row["name"] == "deployments/scale"
        )
        assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


async def test_custom_kinds_come_and_go() -> None:
    async with asking() as ask:
        before = (await ask.get("/apis", accept=WHOLE)).headers["ETag"]
        scale = {
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
            "status": {},
        }
        await ask.create(
            DEFINITIONS, definition(version("v1beta1"), version("v1", storage=True, subresources=scale))
        )
        await until_served(ask, "/apis/example.com/v1")
        whole = await ask.get("/apis", accept=WHOLE)
        assert whole.headers["ETag"] != before
        [group] = [one for one in whole.json["items"] if one["metadata"]["name"] == "example.com"]
        assert [one["version"] for one in group["versions"]] == ["v1", "v1beta1"], "the preferred first"
        [foos] = group["versions"][0]["resources"]
        assert foos["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Foo"}
        assert {one["subresource"] for one in foos["subresources"]} == {"status", "scale"}
        assert (foos["shortNames"], foos["categories"]) == (["fo"], ["all"])

        assert (await ask("DELETE", f"{DEFINITIONS}/foos.example.com")).status == 200
        while (await ask.get("/apis/example.com/v1")).status != 404:
            await asyncio.sleep(0.01)
        assert (await ask.get("/apis/example.com")).body == b"404 page not found\n"
        assert (await ask.get("/apis", accept=WHOLE)).headers["ETag"] == before


async def test_openapi_has_a_document_for_each_version_found_by_its_hash() -> None:
    async with asking() as ask:
        index = (await ask.get("/openapi/v3")).json["paths"]
        assert {
            f"apis/{one.group}/{one.version}" if one.group else "api/v1" for one in facts.resources()
        } == set(index)
        url = index["apis/apps/v1"]["serverRelativeURL"]
        got = await ask.get(url, accept="application/json")
        assert got.headers["Cache-Control"] == "public, immutable"
        wrong = await ask.get("/openapi/v3/apis/apps/v1?hash=AAAA")
        assert (wrong.status, wrong.headers["Location"]) == (301, url)
        assert (await ask.get("/openapi/v3/apis/apps/v1", If_None_Match=got.headers["ETag"])).status == 304
        assert (await ask.get("/openapi/v3/apis/apps/v9")).status == 404
        assert (await ask.get("/openapi/v3/apis/apps/v1", accept="text/html")).status == 406


async def test_openapi_tells_kubectl_what_may_be_asked_of_the_server() -> None:
    """It looks for a patch of the kind with these parameters before it applies anything."""
    async with asking() as ask:
        for one in facts.resources():
            if "patch" not in one.verbs:
                continue
            name = f"apis/{one.group}/{one.version}" if one.group else "api/v1"
            document = (await ask.get(f"/openapi/v3/{name}")).json
            within = "namespaces/{namespace}/" if one.namespaced else ""
            patch = document["paths"][f"/{name}/{within}{one.plural}/{{name}}"]["patch"]
            kind = {"group": one.group, "version": one.version, "kind": one.kind}
            assert patch["x-kubernetes-group-version-kind"] == kind
            asked = {parameter["name"] for parameter in patch["parameters"]}
            assert asked == {"dryRun", "fieldManager", "fieldValidation", "force"}


async def test_every_reference_in_openapi_leads_somewhere() -> None:
    async with asking() as ask:
        for name in (await ask.get("/openapi/v3")).json["paths"]:
            document = (await ask.get(f"/openapi/v3/{name}")).json
            schemas = document["components"]["schemas"]
            missing = {one for one in _references(document) if one.rpartition("/")[2] not in schemas}
            assert not missing, name
            operations = [
                one["operationId"]
                for path in document["paths"].values()
                for key, one in path.items()
                if key != "parameters"
            ]
            assert len(operations) == len(set(operations))


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    return set[str]().union(*map(_references, value)) if isinstance(value, list) else set()


MERGED = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "x-kubernetes-patch-merge-key": "name",
    "x-kubernetes-patch-strategy": "merge",
}


@pytest.mark.parametrize(
    ("schema", "field", "said"),
    [
        ("io.k8s.api.core.v1.PodSpec", "containers", MERGED),
        (
            "io.k8s.api.apps.v1.DeploymentSpec",
            "strategy",
            {"x-kubernetes-patch-strategy": "retainKeys", "default": {}},
        ),
        ("io.k8s.api.core.v1.PodSpec", "nodeSelector", {"x-kubernetes-map-type": "atomic", "type": "object"}),
        ("io.k8s.api.core.v1.ContainerPort", "protocol", {"default": "TCP", "enum": ["SCTP", "TCP", "UDP"]}),
        ("io.k8s.api.apps.v1.DeploymentSpec", "replicas", {"type": "integer", "format": "int32"}),
    ],
)
async def test_schemas_say_how_lists_and_maps_merge(schema: str, field: str, said: dict[str, Any]) -> None:
    async with asking() as ask:
        schemas = (await ask.get("/openapi/v3/apis/apps/v1")).json["components"]["schemas"]
        found = schemas[schema]["properties"][field]
        assert {key: found.get(key) for key in said} == said


async def test_a_custom_kind_is_shown_by_its_own_schema() -> None:
    async with asking() as ask:
        await ask.create(DEFINITIONS, definition(version("v1", storage=True)))
        await until_served(ask, "/apis/example.com/v1")
        before = (await ask.get("/openapi/v3")).json["paths"]["apis/example.com/v1"]
        schemas = (await ask.get("/openapi/v3/apis/example.com/v1")).json["components"]["schemas"]
        foo = schemas["com.example.v1.Foo"]
        assert foo["description"] == "A Foo."
        assert foo["properties"]["spec"]["description"] == "what is wanted"
        assert foo["x-kubernetes-group-version-kind"] == [
            {"group": "example.com", "version": "v1", "kind": "Foo"}
        ]
        assert schemas["com.example.v1.FooList"]["properties"]["items"]["items"]["$ref"].endswith(
            "com.example.v1.Foo"
        )

        patch = {"spec": {"versions": [version("v1", storage=True), version("v2")]}}
        headers = {"Content-Type": "application/merge-patch+json"}
        assert (await ask("PATCH", f"{DEFINITIONS}/foos.example.com", patch, headers)).status == 200
        await until_served(ask, "/apis/example.com/v2")
        after = (await ask.get("/openapi/v3")).json["paths"]
        assert after["apis/example.com/v1"] == before, "what did not change keeps its hash"
        assert "apis/example.com/v2" in after


def test_documents_of_what_was_served_once_are_not_kept() -> None:
    resources = Resources([])
    openapi = OpenApi(resources)
    for number in range(5):
        kind = resource(
            f"g{number}.example.com", "v1", "foos", "Foo", verbs=("get",), type=facts.type_of("", "v1", "Pod")
        )
        resources.set_custom("foos.example.com", [kind])
        found = openapi.answer(("v3", "apis", f"g{number}.example.com", "v1"), {}, {})
        assert found is not None
        assert found.code == 200
    assert len(openapi._documents) == 1


def test_who_asks_for_what_there_is_not_fills_no_memory() -> None:
    resources = Resources([])
    resources.set_custom("foos.example.com", [resource("example.com", "v1", "foos", "Foo", verbs=("get",))])
    discovery = Discovery(resources)
    for number in range(50):
        assert discovery.group(f"g{number}") is None
        assert discovery.version(f"g{number}", "v1") is None
    assert not discovery._kept
    assert discovery.group("example.com") is discovery.group("example.com")
    assert discovery.version("example.com", "v1") is discovery.version("example.com", "v1")
