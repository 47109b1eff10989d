"""Which view of the object a reconcile begins with, by ``controller/authored.py``.

What else happens around a call is in ``tests/test_operator.py``.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from setpoint.api import Key
from setpoint.controller.context import Context
from setpoint.operator import Operator
from tests.controller.cluster import Cluster, Parent, quiet, running, until

WEB = Key("shop", "web")
FINALIZER = "op.setpoint.dev/cleanup"
READ = "get parents shop/web"


class Looks:
    """An operator, and how often the server was asked for the object before each of its reconciles."""

    def __init__(self, server: Cluster, *, cleans_up: bool, **options: Any) -> None:
        self.operator = Operator("op")
        self.asked: list[int] = []
        self._server = server
        self.operator.controller(Parent, **options)(self.reconcile)
        if cleans_up:
            self.operator.finalizer(Parent)(self.clean_up)

    async def reconcile(self, parent: Parent, ctx: Context) -> None:
        del parent, ctx
        self.asked.append(self._server.requests.count(READ))

    async def clean_up(self, parent: Parent, ctx: Context) -> None: ...


def held() -> Cluster:
    """A server with an object that has its finalizer already."""
    server = Cluster()
    server.put("parents", "web", finalizers=[FINALIZER])
    return server


@pytest.mark.virtual_time
@pytest.mark.parametrize("becomes", ["gone", "going", "another"])
async def test_with_a_clean_up_an_old_view_has_no_effects(becomes: str) -> None:
    server = held()
    looks = Looks(server, cleans_up=True)
    async with running(looks.operator, server) as manager:
        await quiet(server)
        done = len(looks.asked)
        server.is_late = True
        if becomes == "going":
            server.mark_deleted("parents", "web")
        else:
            server.delete("parents", "web")
        if becomes == "another":
            server.put("parents", "web", finalizers=[FINALIZER])
        (controller,) = manager.controllers
        controller.look_at(WEB)
        await asyncio.sleep(60)
    assert done
    assert len(looks.asked) == done


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("cleans_up", "options", "reads"),
    [
        (True, {}, 1),
        (True, {"verify": False}, 0),
        (True, {"verify": True}, 1),
        (False, {}, 0),
        (False, {"verify": False}, 0),
        (False, {"verify": True}, 1),
    ],
)
async def test_the_server_is_asked_where_there_is_a_clean_up_unless_told_otherwise(
    cleans_up: bool, options: dict[str, bool], reads: int
) -> None:
    server = held()
    looks = Looks(server, cleans_up=cleans_up, **options)
    async with running(looks.operator, server):
        await until(lambda: looks.asked)
    assert looks.asked[0] == reads


@pytest.mark.virtual_time
async def test_a_finalizer_that_was_just_added_is_answer_enough() -> None:
    server = Cluster()
    server.put("parents", "web")
    looks = Looks(server, cleans_up=True)
    async with running(looks.operator, server):
        await until(lambda: looks.asked)
    assert looks.asked[0] == 0


@pytest.mark.virtual_time
async def test_with_nothing_to_call_nothing_is_asked() -> None:
    server, operator = held(), Operator("op")

    @operator.finalizer(Parent)
    async def clean_up(parent: Parent, ctx: Context) -> None: ...

    async with running(operator, server):
        await quiet(server)
    assert READ not in server.requests
