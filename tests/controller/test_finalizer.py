"""Finalizers: patches that leave those of others alone, and the order of things around a clean-up."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api import ObjectMeta, apply_patch
from setpoint.client.client import Client
from setpoint.controller.finalizer import (
    add_finalizer,
    addition,
    check_name,
    read_live,
    removal,
    remove_finalizer,
)
from setpoint.errors import Conflict
from setpoint.kube.core.v1 import ConfigMap
from tests.peer import Peer, Reply, status

OURS, THEIRS = "op.setpoint.dev/cleanup", "other.example/x"


def wire(*finalizers: str, version: str = "1", **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": "a",
        "namespace": "shop",
        "uid": "u",
        "resourceVersion": version,
        **more,
    }
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def typed(*finalizers: str, version: str = "1") -> ConfigMap:
    return ConfigMap(
        metadata=ObjectMeta(
            name="a", namespace="shop", uid="u", resource_version=version, finalizers=list(finalizers) or None
        )
    )


# The patches.


@pytest.mark.parametrize("names", [(), (THEIRS,), (THEIRS, "b/c")])
def test_ours_is_added_after_those_of_others(names: tuple[str, ...]) -> None:
    for obj in (wire(*names), typed(*names)):
        patch = addition(obj, OURS)
        assert patch is not None
        made = apply_patch(patch.ops, wire(*names))
        assert made["metadata"]["finalizers"] == [*names, OURS]


@pytest.mark.parametrize("names", [(OURS,), (THEIRS, OURS), (OURS, THEIRS), ("a/b", OURS, THEIRS)])
def test_ours_is_removed_and_those_of_others_stay(names: tuple[str, ...]) -> None:
    for obj in (wire(*names), typed(*names)):
        patch = removal(obj, OURS)
        assert patch is not None
        made = apply_patch(patch.ops, wire(*names))
        assert made["metadata"]["finalizers"] == [name for name in names if name != OURS]


def test_nothing_is_done_twice() -> None:
    assert addition(wire(OURS), OURS) is None
    assert removal(wire(THEIRS), OURS) is None


def test_a_patch_is_for_the_version_that_was_read() -> None:
    for patch in (addition(typed(version="7"), OURS), removal(typed(OURS, version="7"), OURS)):
        assert patch is not None
        assert patch.ops[0] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def test_a_name_that_the_server_would_refuse_is_refused_at_once() -> None:
    assert check_name("op.setpoint.dev/cleanup")
    for name in ("cleanup", "a/b/c", "/x", "a/", "A.b/c", "a b/c", "x" * 254 + "/y"):
        with pytest.raises(ValueError, match="cannot name a finalizer"):
            check_name(name)


# Sending them.


def client(peer: Peer) -> Client:
    return Client(transport=peer)


async def test_adding_gives_the_object_as_it_then_is() -> None:
    peer = Peer([Reply(body=wire(OURS, version="2"))])
    added = await add_finalizer(client(peer), typed(), OURS, field_manager="op")
    assert added is not None
    assert (added.metadata.finalizers, added.metadata.resource_version) == ([OURS], "2")
    assert peer.requests[0].headers["Content-Type"] == "application/json-patch+json"
    assert await add_finalizer(client(peer), added, OURS, field_manager="op") is added, "without a request"


async def test_when_somebody_wrote_first_it_is_read_again() -> None:
    peer = Peer(
        [status(409, "Conflict"), Reply(body=wire(THEIRS, version="5")), Reply(body=wire(THEIRS, OURS))]
    )
    await add_finalizer(client(peer), typed(), OURS, field_manager="op")
    assert peer.sent(2) == [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "5"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": OURS},
    ]


@pytest.mark.parametrize(
    "live",
    [
        status(404, "NotFound", details={"name": "a"}),
        Reply(body=wire(uid="another")),
        Reply(body=wire(deletionTimestamp="2030-01-01T00:00:00Z")),
    ],
    ids=["gone", "made anew", "going"],
)
async def test_an_object_that_is_gone_or_going_gets_none(live: Reply) -> None:
    peer = Peer([status(409, "Conflict"), live])
    assert await add_finalizer(client(peer), typed(), OURS, field_manager="op") is None


async def test_removing_from_what_is_gone_is_done() -> None:
    peer = Peer([status(404, "NotFound", details={"name": "a"})])
    await remove_finalizer(client(peer), typed(OURS), OURS, field_manager="op")
    peer = Peer([status(409, "Conflict"), Reply(body=wire(THEIRS, version="5"))])
    await remove_finalizer(client(peer), typed(OURS), OURS, field_manager="op")
    assert len(peer.requests) == 2, "somebody else has removed it"


async def test_a_conflict_that_does_not_end_is_raised() -> None:
    def answer(request: Any) -> Reply:
        return status(409, "Conflict") if request.method == "PATCH" else Reply(body=wire(OURS, version="9"))

    with pytest.raises(Conflict):
        await remove_finalizer(client(Peer(answer)), typed(OURS), OURS, field_manager="op")


async def test_another_object_of_that_name_is_not_the_same() -> None:
    assert await read_live(client(Peer([Reply(body=wire(uid="another"))])), typed()) is None
    assert await read_live(client(Peer([Reply(body=wire())])), typed()) is not None
