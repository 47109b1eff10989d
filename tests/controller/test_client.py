"""The promises of ``controller/client.py``: what a write did, row by row; then reads after writes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from setpoint import errors
from setpoint.api.forms import metadata_only, untyped
from setpoint.api.meta import ObjectMeta
from setpoint.api.names import Key
from setpoint.api.patches import MergePatch
from setpoint.api.requests import Call
from setpoint.cache.consistency import CachedReader
from setpoint.client.sender import Answer
from setpoint.controller.client import Deleted, ReconcileClient, Unclear, Wrote, effects_of
from setpoint.controller.worker import Log, Look, looking
from setpoint.errors import AnswerLost, ApiError
from tests.controller.world import GROUP, Child, Parent, Process, Room, Server, Spec, child_of
from tests.peer import status

WEB = Key("shop", "web")


def call(
    verb: str, *, subresource: str = "", target: str = "/x", body: bytes | None = None, key: Key = WEB
) -> Call:
    return Call(
        verb,
        "POST",
        target,
        f"{verb} it",
        body=body,
        resource=Child.resource,
        key=key,
        subresource=subresource,
    )


def answer(**metadata: Any) -> bytes:
    return json.dumps(
        {"kind": "Child", "metadata": {"name": "web", "namespace": "shop", **metadata}}
    ).encode()


STATUS = json.dumps({"kind": "Status", "metadata": {}, "status": "Success"}).encode()
GONE = json.dumps({"kind": "Status", "metadata": {}, "details": {"name": "web", "uid": "u1"}}).encode()
TWO = json.dumps(
    {"kind": "ChildList", "items": [{"metadata": {"name": n, "namespace": "shop", "uid": n}} for n in "ab"]}
).encode()
DRY = "/x?dryRun=All"


@pytest.mark.parametrize(
    ("made", "body", "effects"),
    [
        (call("create"), answer(resourceVersion="7"), [Wrote(WEB, "7", {})]),
        (call("create", key=Key("shop", "")), answer(resourceVersion="7"), [Wrote(WEB, "7", {})]),
        (call("update"), answer(resourceVersion="7", labels={"a": "b"}), [Wrote(WEB, "7", {"a": "b"})]),
        (call("patch"), answer(resourceVersion="7"), [Wrote(WEB, "7", {})]),
        (call("apply"), answer(resourceVersion="7"), [Wrote(WEB, "7", {})]),
        (call("update", subresource="status"), answer(resourceVersion="7"), [Wrote(WEB, "7")]),
        (call("patch", subresource="scale"), answer(resourceVersion="7"), [Wrote(WEB, "7")]),
        (call("delete"), GONE, [Deleted(WEB, "u1", is_gone=True)]),
        (
            call("delete", body=b'{"preconditions":{"resourceVersion":"7"}}'),
            GONE,
            [Deleted(WEB, "u1", is_gone=True, existed_at="7")],
        ),
        (call("delete"), answer(resourceVersion="7", uid="u1"), [Deleted(WEB, "u1", existed_at="7")]),
        (call("delete"), STATUS, [Unclear(WEB)]),
        (call("deletecollection", key=Key("shop", "")), TWO, [Deleted(Key("shop", n), n) for n in "ab"]),
        (call("create", subresource="eviction"), STATUS, [Unclear(WEB)]),
        (call("create", subresource="token"), STATUS, []),
        (call("update"), answer(resourceVersion="7", deletionTimestamp="2026"), [Unclear(WEB)]),
        (
            call("update"),
            answer(resourceVersion="7", uid="u1", deletionTimestamp="2026", deletionGracePeriodSeconds=0),
            [Deleted(WEB, "u1", is_gone=True, existed_at="7")],
        ),
        (
            call("update"),
            answer(resourceVersion="7", uid="u1", deletionTimestamp="2026", deletionGracePeriodSeconds=30),
            [Unclear(WEB)],
        ),
        (
            call("update"),
            answer(resourceVersion="7", deletionTimestamp="2026", finalizers=["x/y"]),
            [Wrote(WEB, "7", {})],
        ),
        (
            call("patch", subresource="status"),
            answer(resourceVersion="7", deletionTimestamp="2026", deletionGracePeriodSeconds=30),
            [Wrote(WEB, "7")],
        ),
        (call("update"), b"what", [Unclear(WEB)]),
        (call("create", key=Key("shop", "")), None, [Unclear(Key("shop", ""))]),
        (call("deletecollection", key=Key("shop", "")), None, [Unclear(Key("shop", ""))]),
        (call("update"), None, [Unclear(WEB)]),
        (call("delete"), None, [Unclear(WEB)]),
        (call("update", target=DRY), answer(resourceVersion="7"), []),
        (call("update", target=DRY), None, []),
        (call("delete", body=b'{"dryRun":["All"]}'), GONE, []),
    ],
)  # fmt: skip
def test_what_a_write_did_is_read_from_its_answer(made: Call, body: bytes | None, effects: list[Any]) -> None:
    assert effects_of(made, body) == effects


def test_a_call_about_no_object_did_nothing_to_one() -> None:
    assert effects_of(Call("create", "POST", "/x", "ask", resource=None), b"{}") == []


# Reading after writing, in virtual time.


@asynccontextmanager
async def reconciling(server: Server, *kinds: Any) -> AsyncIterator[tuple[ReconcileClient, Process]]:
    """The client of a process, used in a reconcile of the controller "test"."""
    process = Process(server)
    for kind in kinds or (Child,):
        process.cache.declare(kind)
    async with process.cache:
        await process.cache.wait_synced()
        with looking(look(process)):
            yield process.client, process


def look(process: Process, controller: str = "test") -> Look:
    reader = CachedReader(process.cache, metrics=process.metrics.controller(controller))
    return Look(controller, WEB, "1", (), 0, reader, Log(logging.getLogger("test"), {}))


def asked(server: Server, verb: str) -> int:
    return sum(each.startswith(verb) for each in server.requests)


def late_by(server: Server, seconds: float) -> None:
    """What is written from now on is seen so much later."""
    server.is_late = True
    asyncio.get_running_loop().call_later(seconds, server.catch_up)


virtual = pytest.mark.virtual_time


@virtual
async def test_what_is_declared_is_read_from_the_cache_in_any_form() -> None:
    server = Server()
    server.put("children", "web", colour="blue")
    async with reconciling(server) as (client, _):
        assert (await client.get(Child, "web")).spec.colour == "blue"
        assert (await client.get(untyped(f"{GROUP}/v1", "Child"), "web"))["spec"] == {"colour": "blue"}
        assert (await client.get(metadata_only(Child), "web")).metadata.name == "web"
        assert [each.metadata.name for each in await client.list(Child)] == ["web"]
        assert [each.metadata.name async for each in client.list(Child, labels={"a": "b"})] == []
        assert [len(page) async for page in client.list(Child, fields="spec.colour=blue").pages()] == [1]
        with pytest.raises(errors.NotFound):
            await client.get(Child, "api")
        assert (asked(server, "get"), asked(server, "list")) == (0, 0)


@virtual
async def test_what_is_not_declared_or_asks_for_more_is_live() -> None:
    server = Server()
    server.put("children", "web")
    server.put("parents", "web")
    async with reconciling(server) as (client, _):
        await client.get(Parent, "web")
        await client.list(Parent)
        await client.get(Child, "web", resource_version="0")
        await client.list(Child, resource_version="0")
        await client.live.get(Child, "web")
        await client.live.list(Child)
        assert (asked(server, "get"), asked(server, "list")) == (3, 3)
        with pytest.raises(ValueError, match="no owner and no index"):
            client.list(Child, resource_version="0", owner="u")


@virtual
async def test_children_are_listed_by_their_owner() -> None:
    server = Server()
    references = [{"apiVersion": f"{GROUP}/v1", "kind": "Parent", "name": "web", "uid": "u1"}]
    server.put("children", "mine", ownerReferences=references)
    server.put("children", "other")
    async with reconciling(server) as (client, _):
        assert [each.metadata.name for each in await client.list(Child, owner="u1")] == ["mine"]


@virtual
async def test_objects_are_had_as_they_are_held_and_never_behind_a_write() -> None:
    server = Server()
    server.put("children", "old")
    async with reconciling(server) as (client, _):
        (before,) = await client.snapshots(Child)
        await client.create(child_of("new", "blue"))
        after = await client.snapshots(Child)
        assert [each.metadata.name for each in after] == ["new", "old"]
        assert after[1] is before
        assert [each.metadata.name for each in await client.snapshots(Child, fields="spec.colour=blue")] == [
            "new"
        ]


async def _create(client: ReconcileClient) -> None:
    await client.create(child_of("new", "blue"))


async def _update(client: ReconcileClient) -> None:
    child = await client.get(Child, "new")
    child.spec.colour = "blue"
    await client.update(child)


async def _patch(client: ReconcileClient) -> None:
    await client.patch(Child, "new", MergePatch({"spec": {"colour": "blue"}}))


async def _apply(client: ReconcileClient) -> None:
    await client.apply(Child(metadata=ObjectMeta(name="new", namespace="shop"), spec=Spec(colour="blue")))


async def _live(client: ReconcileClient) -> None:
    await client.live.patch(Child, "new", MergePatch({"spec": {"colour": "blue"}}))


@virtual
@pytest.mark.parametrize("write", [_create, _update, _patch, _apply, _live])
async def test_every_verb_counts_and_the_next_read_waits_for_it(
    write: Callable[[ReconcileClient], Awaitable[None]],
) -> None:
    server = Server()
    if write is not _create:
        server.put("children", "new", colour="red")
    async with reconciling(server) as (client, process):
        late_by(server, 0.5)
        await write(client)
        began = asyncio.get_running_loop().time()

        assert (await client.get(Child, "new")).spec.colour == "blue"
        assert asyncio.get_running_loop().time() - began == pytest.approx(0.5)
        assert [each.spec.colour for each in await client.list(Child)] == ["blue"]
        assert asked(server, "get") == 0
        assert process.value("setpoint_cache_wait_seconds_count", controller="test") == 1


@virtual
async def test_a_deletion_counts_and_so_does_that_of_a_collection() -> None:
    server = Server()
    for name in ("a", "b", "c"):
        server.put("children", name)
    async with reconciling(server) as (client, _):
        late_by(server, 0.5)
        await client.delete(Child, "a")
        with pytest.raises(errors.NotFound):
            await client.get(Child, "a")
        late_by(server, 0.5)
        await client.delete_collection(Child, namespace="shop")
        assert await client.list(Child) == []
        assert (asked(server, "get"), asked(server, "list")) == (0, 0)


@virtual
async def test_a_cache_that_does_not_catch_up_in_time_is_not_read() -> None:
    server = Server()
    server.put("children", "web")
    async with reconciling(server) as (client, process):
        server.is_late = True
        await _patch_web(client)
        assert (await client.get(Child, "web")).spec.colour == "blue"
        assert asked(server, "get") == 1
        assert process.value("setpoint_cache_wait_timeouts_total", controller="test") == 1


async def _patch_web(client: ReconcileClient) -> None:
    await client.patch(Child, "web", MergePatch({"spec": {"colour": "blue"}}))


@virtual
async def test_after_a_write_without_an_answer_that_object_is_read_live() -> None:
    server = Server()
    server.put("children", "web")
    server.put("children", "other")
    async with reconciling(server) as (client, _):
        server.is_late = True
        server.lose = lambda request: AnswerLost("", "cut off") if request.method == "PATCH" else None
        with pytest.raises(errors.AnswerLost):
            await _patch_web(client)

        assert (await client.get(Child, "web")).spec.colour == "blue", "it did happen"
        assert asked(server, "get") == 1
        await client.get(Child, "other")
        assert asked(server, "get") == 1, "others are read from the cache"


@virtual
async def test_after_a_deletion_of_many_without_an_answer_all_are_doubted() -> None:
    server = Server()
    server.put("children", "a")
    server.put("children", "b")
    server.put("children", "c", namespace="lab")
    async with reconciling(server) as (client, _):
        server.is_late = True
        server.lose = lambda request: AnswerLost("", "cut off") if request.method == "DELETE" else None
        with pytest.raises(errors.AnswerLost):
            await client.delete_collection(Child, namespace="shop")
        asyncio.get_running_loop().call_later(0.5, server.catch_up)
        assert [str(each.metadata.namespace) for each in await client.list(Child)] == ["lab"]


@virtual
async def test_a_refused_write_and_a_dry_run_are_not_waited_for() -> None:
    server = Server()
    server.put("children", "web")
    async with reconciling(server) as (client, process):
        server.refuse = lambda request: status(422, "Invalid") if request.method == "PATCH" else None
        with pytest.raises(errors.Invalid):
            await _patch_web(client)
        await client.get(Child, "web")
        assert process.value("setpoint_cache_wait_seconds_count", controller="test") == 0
        assert asked(server, "get") == 0


@virtual
async def test_each_controller_waits_for_its_own_writes_only() -> None:
    server = Server()
    server.put("children", "web")
    async with reconciling(server) as (client, process):
        server.is_late = True
        await _patch_web(client)
        with looking(look(process, "other")):
            assert (await client.get(Child, "web")).spec.colour == "red"
            assert asked(server, "get") == 0


@virtual
async def test_outside_of_any_reconcile_the_client_keeps_its_promises_to_itself() -> None:
    server = Server()
    server.put("children", "web")
    process = Process(server)
    process.cache.declare(Child)
    async with process.cache:
        late_by(server, 0.5)
        await _patch_web(process.client)
        assert (await process.client.get(Child, "web")).spec.colour == "blue"
        assert asked(server, "get") == 0


@virtual
async def test_a_reconcile_may_use_the_client_of_another_cluster() -> None:
    here, there = Server(), Server()
    there.put("children", "web", colour="blue")
    async with reconciling(here) as (_, _):
        elsewhere = Process(there)
        elsewhere.cache.declare(Child)
        async with elsewhere.cache:
            assert (await elsewhere.client.get(Child, "web")).spec.colour == "blue"


class Remembers:
    """Sees every write, and may refuse it."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.seen: list[str] = []

    def before(self, call: Call) -> None:
        self.seen.append(f"before {call.verb}")
        if self.refuses:
            raise errors.TerminalError("not by me")

    def answered(self, call: Call, answer: Answer) -> None:  # noqa: ARG002 - the protocol's
        self.seen.append("answered")

    def refused(self, call: Call, error: ApiError) -> None:  # noqa: ARG002
        self.seen.append("refused")

    def unknown(self, call: Call) -> None:  # noqa: ARG002
        self.seen.append("unknown")


@virtual
async def test_others_may_see_every_write_and_refuse_it() -> None:
    server = Server()
    server.put("children", "web")
    async with reconciling(server) as (client, _):
        seeing, strict = Remembers(), Remembers(refuses=True)
        observed = client.observed_by(seeing)
        late_by(server, 0.5)
        await _patch_web(observed)
        await observed.live.patch(Child, "web", MergePatch({"spec": {"colour": "pink"}}))
        assert (await observed.get(Child, "web")).spec.colour == "pink", "and it still counts"
        with pytest.raises(errors.NotFound):
            await observed.delete(Child, "gone")
        server.lose = lambda _: AnswerLost("", "cut off")
        with pytest.raises(errors.AnswerLost):
            await _patch_web(observed)
        assert seeing.seen == [
            "before patch", "answered",
            "before patch", "answered",
            "before delete", "refused",
            "before patch", "unknown",
        ]  # fmt: skip
        with pytest.raises(errors.TerminalError):
            await _patch_web(observed.observed_by(strict))
        with pytest.raises(errors.TerminalError):
            await _patch_web(client.guarded_by(strict.before))
        with pytest.raises(errors.TerminalError):
            await client.guarded_by(strict.before).live.delete(Child, "web")


@virtual
async def test_a_cached_read_has_a_deadline_too() -> None:
    server = Server()
    server.refuse = lambda _: status(503, "ServiceUnavailable")
    process = Process(server)
    process.cache.declare(Room)
    async with process.cache:
        with pytest.raises(errors.DeadlineExceeded, match=r"get demo.setpoint.dev/v1 Room x: .* within 3 s"):
            await process.client.get(Room, "x", timeout=3)
        with pytest.raises(errors.DeadlineExceeded, match=r"list demo.setpoint.dev/v1 Room"):
            await process.client.list(Room, timeout=3)
    assert repr(process.client).startswith("<ReconcileClient of http://localhost, <Cache")
