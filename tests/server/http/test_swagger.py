"""The older OpenAPI document, in both its forms.  Whether it says what the real server's does is for
``tests/conformance`` to show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.protobuf import entries, fields
from tests.server.http.asking import DEFINITIONS, Asking, asking, definition, until_served, version

V2 = "/openapi/v2"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
FOO = "com.example.v1.Foo"


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from _references(one)
    elif isinstance(value, list):
        for one in value:
            yield from _references(one)


async def _define(ask: Asking, **more: Any) -> None:
    await ask.create(DEFINITIONS, definition(version("v1", storage=True, **more)))
    await until_served(ask, "/apis/example.com/v1/foos")


async def test_every_reference_leads_somewhere_also_those_of_a_custom_kind() -> None:
    async with asking() as ask:
        await _define(ask, subresources={"status": {}})
        document = (await ask.get(V2)).json
        for told in set(_references(document)):
            _, part, name = told.split("/")
            assert name in document[part], told


async def test_a_document_is_sent_once_until_what_is_served_changes() -> None:
    async with asking() as ask:
        first = await ask.get(V2)
        assert (await ask.get(V2, If_None_Match=first.headers["ETag"])).status == 304
        await _define(ask)
        second = await ask.get(V2, If_None_Match=first.headers["ETag"])
        assert second.status == 200
        assert second.headers["ETag"] != first.headers["ETag"]
        assert second.json["definitions"][FOO]["properties"]["spec"]["description"] == "what is wanted"
        assert "/apis/example.com/v1/namespaces/{namespace}/foos/{name}" in second.json["paths"]
        assert FOO not in first.json["definitions"]


async def test_a_custom_kind_is_not_in_it_any_more_once_it_is_gone() -> None:
    async with asking() as ask:
        await _define(ask)
        assert FOO in (await ask.get(V2)).json["definitions"]
        assert (await ask("DELETE", f"{DEFINITIONS}/foos.example.com")).status == 200
        while FOO in (await ask.get(V2)).json["definitions"]:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("accept", "told"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/json;q=0.5,text/html", "application/json"),
        (PROTOBUF, PROTOBUF.replace("@", ".")),
        (f"{PROTOBUF},application/json", PROTOBUF.replace("@", ".")),
        (f"text/html,application/json,{PROTOBUF}", "application/json"),
    ],
)
async def test_it_comes_in_the_first_form_that_it_has(accept: str, told: str) -> None:
    async with asking() as ask:
        assert (await ask.get(V2, accept)).headers["Content-Type"] == told


async def test_in_a_form_that_it_has_not_it_does_not_come() -> None:
    async with asking() as ask:
        for accept in ("application/yaml", "text/plain", "application/vnd.kubernetes.protobuf"):
            got = await ask.get(V2, accept)
            assert (got.status, got.body) == (406, b"")


async def test_as_protobuf_it_has_the_same_paths_definitions_and_kinds() -> None:
    async with asking() as ask:
        await _define(ask)
        document = (await ask.get(V2)).json
        whole = dict(fields((await ask.get(V2, PROTOBUF)).body))
        paths, definitions = whole[8], whole[9]
        assert isinstance(paths, bytes)
        assert isinstance(definitions, bytes)
        assert entries(paths, 2).keys() == document["paths"].keys()
        found = entries(definitions, 1)
        assert found.keys() == document["definitions"].keys()
        extensions = entries(found[FOO], 31)
        (kind,) = (value for _, value in fields(extensions["x-kubernetes-group-version-kind"]))
        assert isinstance(kind, bytes)
        assert msgspec.json.decode(kind) == [{"group": "example.com", "version": "v1", "kind": "Foo"}]


async def test_what_kubectl_looks_for_is_told_at_each_operation_and_not_by_reference() -> None:
    async with asking() as ask:
        await _define(ask)
        paths = (await ask.get(V2)).json["paths"]
        for path in ("/api/v1/nodes/{name}", "/apis/example.com/v1/namespaces/{namespace}/foos/{name}"):
            told = {one.get("name") for one in paths[path]["patch"]["parameters"]}
            assert {"dryRun", "fieldValidation"} <= told
