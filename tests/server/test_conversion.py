"""Owners of fields in versions that a webhook converts, beside what ``tests/conformance`` compares."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from setpoint.net.transport import Request
from setpoint.server.server import ApiServer
from tests.server.hooks import (
    DEFINITIONS,
    Hooks,
    Json,
    ask,
    converted,
    definition,
    hooks_behind,
    made,
    served,
)

_SIZES = "/apis/example.com/{}/namespaces/default/sizes"


@asynccontextmanager
async def converting(tmp_path: Path) -> AsyncIterator[tuple[ApiServer, Hooks]]:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = converted
        await made(server, DEFINITIONS, definition(hooks))
        await served(server, _SIZES.format("v2"))
        yield server, hooks


async def applied(
    server: ApiServer, version: str, manager: str, *, force: bool = False, **spec: int
) -> tuple[int, Json]:
    body = {"apiVersion": f"example.com/{version}", "kind": "Size", "metadata": {"name": "a"}, "spec": spec}
    target = f"{_SIZES.format(version)}/a?fieldManager={manager}&force={str(force).lower()}"
    content = {"Content-Type": "application/apply-patch+yaml"}
    response = await server.transport()(Request("PATCH", target, content, json.dumps(body).encode()))
    return response.status, json.loads(await response.read())


def owners(obj: Json) -> dict[str, Any]:
    return {one["manager"]: one["fieldsV1"].get("f:spec") for one in obj["metadata"]["managedFields"]}


async def test_an_apply_conflicts_with_who_owns_the_field_in_another_version(tmp_path: Path) -> None:
    async with converting(tmp_path) as (server, _):
        await applied(server, "v1", "one", size=4)
        status, refusal = await applied(server, "v2", "two", width=5)
        assert status == 409
        assert refusal["message"] == 'Apply failed with 1 conflict: conflict with "one": .spec.size'
        status, shared = await applied(server, "v2", "two", width=4)
        assert (status, owners(shared)) == (200, {"one": {"f:size": {}}, "two": {"f:width": {}}})
        _, taken = await applied(server, "v2", "two", width=5, force=True)
        assert (taken["spec"], owners(taken)) == ({"width": 5}, {"two": {"f:width": {}}})


async def test_what_an_applier_drops_stays_while_somebody_owns_it_in_another_version(tmp_path: Path) -> None:
    async with converting(tmp_path) as (server, _):
        await applied(server, "v1", "one", size=4, count=1)
        await applied(server, "v2", "two", width=4)
        _, left = await applied(server, "v1", "one", count=1)
        assert left["spec"] == {"size": 4, "count": 1}
        _, left = await applied(server, "v2", "two")
        assert left["spec"] == {"count": 1}


async def test_what_was_applied_in_one_version_is_dropped_in_another(tmp_path: Path) -> None:
    async with converting(tmp_path) as (server, _):
        await applied(server, "v1", "one", size=4, count=1)
        status, left = await applied(server, "v2", "one", count=1)
        assert (status, left["spec"]) == (200, {"count": 1})


async def test_a_webhook_is_asked_for_no_object_twice_in_one_apply(tmp_path: Path) -> None:
    async with converting(tmp_path) as (server, hooks):
        await applied(server, "v1", "one", size=4, count=1)
        await applied(server, "v2", "two", width=4, count=1)
        hooks.asked.clear()
        await applied(server, "v1", "one", count=1)
        asked = [json.dumps([one["desiredAPIVersion"], one["objects"]]) for one in hooks.asked]
        assert asked
        assert len(set(asked)) == len(asked)


async def test_a_write_goes_on_though_owners_in_another_version_cannot_be_told(tmp_path: Path) -> None:
    async with converting(tmp_path) as (server, hooks):
        await applied(server, "v2", "two", width=4)
        _, before = await ask(server, "GET", f"{_SIZES.format('v1')}/a")
        hooks.answer = lambda _: {"result": {"status": "Failed", "message": "not today"}}
        status, left = await ask(server, "PATCH", f"{_SIZES.format('v1')}/a", {"spec": {"size": 9}})
        assert (status, left["spec"]) == (200, {"size": 9})
        assert left["metadata"]["managedFields"] == before["metadata"]["managedFields"]
        status, refusal = await applied(server, "v1", "one", size=7)
        assert status == 500
        assert refusal["message"] == "conversion webhook for example.com/v1, Kind=Size failed: not today"
