"""Custom kinds of several versions: one of them is stored, and each shows and owns what it knows.

What a real server answers is in ``tests/conformance`` (two versions in every verb); here is what lies in the
store.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from setpoint.server.registry.requests import Answered, Ask
from setpoint.server.statuses import StatusError
from setpoint.server.storage.protocol import Place
from tests.server.registry.test_registry import APPLY, MERGE, Server, serving, until_served

PATH = "example.com/{}/foos"
DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"


def _schema(**spec: Any) -> Any:
    return {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    }


async def define(server: Server, *, stored: str = "v1") -> None:
    first = _schema(a={"type": "string"}, b={"type": "integer", "default": 5})
    second = _schema(a={"type": "string"}, c={"type": "string", "default": "x"})
    versions = [
        {"name": name, "served": True, "storage": name == stored, "schema": schema}
        for name, schema in (("v1", first), ("v2", second))
    ]
    names = {"plural": "foos", "kind": "Foo", "singular": "foo", "listKind": "FooList"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": "foos.example.com"}, "spec": spec}  # fmt: skip
    await server.ask("create", DEFINITIONS, crd)
    await until_served(server)


def foo(version: str, name: str = "a", **spec: Any) -> Any:
    return {"apiVersion": f"example.com/{version}", "kind": "Foo", "metadata": {"name": name}, "spec": spec}


def kept(server: Server, name: str = "a") -> Any:
    record = server.store.get(Place("foos.example.com", "", name))
    assert record is not None
    return msgspec.json.decode(record.data)


async def test_an_object_is_stored_in_the_version_that_the_definition_says() -> None:
    async with serving() as server:
        await define(server)
        made = await server.do("create", PATH.format("v2"), foo("v2", a="x", c="y"))
        assert made["spec"] == {"a": "x"}, "v1 has no c to keep"
        assert kept(server)["apiVersion"] == "example.com/v1"
        assert kept(server)["spec"] == {"a": "x"}, "defaults are filled in when it is read"
        read = await server.do("get", f"{PATH.format('v1')}//a")
        assert read["spec"] == {"a": "x", "b": 5}
        assert list(read)[:2] == ["kind", "apiVersion"]


async def test_a_version_shows_what_it_knows_and_fills_in_nothing_that_is_not_stored() -> None:
    async with serving() as server:
        await define(server)
        await server.ask("create", PATH.format("v1"), foo("v1", a="x", b=7))
        read = await server.do("get", f"{PATH.format('v2')}//a")
        assert (read["apiVersion"], read["spec"]) == ("example.com/v2", {"a": "x"})


async def test_who_writes_in_one_version_does_not_own_what_another_cannot_name() -> None:
    async with serving() as server:
        await define(server)
        await server.ask("create", PATH.format("v2"), foo("v2", a="x"), agent="maker")
        patched = await server.ask("patch", f"{PATH.format('v1')}//a", {"spec": {"b": 9}}, content_type=MERGE)
        owners = msgspec.json.decode(patched.data)["metadata"]["managedFields"]
        assert [(one["manager"], one["apiVersion"]) for one in owners] == [("maker", "example.com/v2")]


async def test_an_apply_that_another_owner_s_version_cannot_tell_is_refused() -> None:
    async with serving() as server:
        await define(server)
        await server.ask("create", PATH.format("v1"), foo("v1", a="x"))
        with pytest.raises(StatusError, match=r"failed to convert new object: \.spec\.c: field not declared"):
            await server.ask(
                "patch", f"{PATH.format('v2')}//a", foo("v2", c="y"), content_type=APPLY, fieldManager="m"
            )


@pytest.mark.virtual_time
async def test_a_definition_goes_in_the_end_where_an_object_of_it_could_not_be_deleted_at_first(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as server:
        await define(server)
        await server.do("create", PATH.format("v1"), foo("v1"))
        delete, fails = server.registry.delete, iter(range(3))

        async def deleted(ask: Ask, *, is_trusted: bool = False) -> Answered:
            if is_trusted and next(fails, None) is not None:
                raise StatusError(500, "", "the disk is full")
            return await delete(ask, is_trusted=is_trusted)

        monkeypatch.setattr(server.registry, "delete", deleted)
        await server.ask("delete", f"{DEFINITIONS}//foos.example.com")
        async with asyncio.timeout(60):
            while server.store.get(
                Place("customresourcedefinitions.apiextensions.k8s.io", "", "foos.example.com")
            ):
                await asyncio.sleep(1)
        assert server.store.get(Place("foos.example.com", "", "a")) is None
        assert caplog.text.count("the disk is full") == 1, "it is told once, however often it is tried"
