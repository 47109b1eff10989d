"""What each word of ``controller/builder.py`` stands for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from setpoint.api.forms import untyped
from setpoint.api.names import Key
from setpoint.controller.builder import Manager, as_reconciler, builder
from setpoint.controller.controller import Controller
from setpoint.controller.mapping import to_itself, to_owner
from setpoint.controller.predicates import changed, labels_changed, selected
from setpoint.controller.result import Request, Result
from setpoint.controller.sources import Channel, Kind
from setpoint.controller.worker import current_look
from tests.controller.world import GROUP, Child, Parent, Process, Room, Server, child_of, running, until

pytestmark = pytest.mark.virtual_time

WEB, API = Key("shop", "web"), Key("shop", "api")


class Asked:
    """Remembers what it was asked, and why."""

    def __init__(self) -> None:
        self.keys: list[Request] = []
        self.reasons: list[str] = []

    async def reconcile(self, request: Request) -> Result:
        look = current_look()
        assert look is not None
        self.keys.append(request)
        self.reasons += map(str, look.reasons)
        return Result()


def owned(server: Server, name: str, by: str, *, controller: bool = True) -> None:
    reference = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Parent",
        "name": by,
        "uid": "u",
        "controller": controller,
    }
    server.put("children", name, ownerReferences=[reference])


async def test_for_and_owns_are_their_longhand() -> None:
    server = Server()
    server.put("parents", "web")
    process, short, long = Process(server), Asked(), Asked()
    builder(process).for_(Parent).owns(Child).complete(short)
    longhand = Controller(
        "longhand",
        long,
        [Kind(process.cache, Parent, to_itself), Kind(process.cache, Child, to_owner(Parent))],
        cache=process.cache,
        metrics=process.metrics,
    )
    process.add(longhand)
    async with running(process):
        await until(lambda: process.added[0].is_working and longhand.is_working)
        owned(server, "x", by="api")
        await until(lambda: len(short.keys) >= 2 and len(long.keys) >= 2)
        await asyncio.sleep(10)
    assert short.keys == long.keys == [WEB, API]
    assert short.reasons == long.reasons
    assert [each.name for each in process.added] == ["parent", "longhand"]
    assert process.added[0].kinds == longhand.kinds


async def test_owns_is_by_controller_unless_any_owner_counts() -> None:
    server, strict, loose = Server(), Asked(), Asked()
    owned(server, "x", by="web", controller=False)
    process = Process(server)
    builder(process).for_(Parent).owns(Child).complete(strict)
    builder(process).named("loose").owns(Child, any_owner=True).for_(Parent).complete(loose)
    async with running(process):
        await until(lambda: loose.keys == [WEB])
        await asyncio.sleep(10)
    assert strict.keys == []


async def test_watches_asks_a_function_which_may_be_async_and_read_the_cache() -> None:
    server, asked = Server(), Asked()
    server.put("parents", "web", colour="red")
    server.put("parents", "api", colour="blue")
    process = Process(server)

    async def of_its_colour(child: Child) -> list[Request]:
        found = await process.client.list(Parent, fields=f"spec.colour={child.spec.colour}")
        return [Key(each.metadata.namespace or "", each.metadata.name or "") for each in found]

    builder(process).for_(Parent).watches(Child, of_its_colour).complete(asked)
    async with running(process):
        await until(lambda: len(asked.keys) == 2)
        server.put("children", "x", colour="blue")
        await until(lambda: len(asked.keys) == 3)
    assert asked.keys[-1] == API


async def test_options_reach_the_declaration_and_predicates_the_changes() -> None:
    server, asked = Server(), Asked()
    server.put("parents", "web", labels={"tier": "web"})
    server.put("parents", "out", namespace="lab", labels={"tier": "web"})
    server.put("parents", "api")
    process = Process(server)
    colour = changed(Parent, lambda parent: parent.spec.colour)
    controller = (
        builder(process)
        .for_(Parent, when=selected("tier=web"), fields="metadata.namespace=shop", priority=3)
        .when(labels_changed | colour)
        .complete(asked)
    )
    assert [str(stats.scope) for stats in process.cache.stats()] == [
        "demo.setpoint.dev/v1 Parent where metadata.namespace=shop"
    ]
    async with running(process):
        await until(lambda: controller.is_working)
        server.put("parents", "web", labels={"tier": "web"}, annotations={"a": "b"})
        server.put("parents", "api", colour="blue")
        await asyncio.sleep(10)
    assert set(asked.keys) == {WEB, Key("lab", "out")}, "this server knows no field selectors"
    assert len(asked.keys) == 2


async def test_streams_channels_and_timers_are_sources_too() -> None:
    async def mine() -> AsyncIterator[Request]:
        yield Key("shop", "streamed")

    server, asked, channel = Server(), Asked(), Channel()
    server.put("parents", "web")
    process = Process(server)
    builder(process).for_(Parent).streams(mine).reads(channel).every(60).every(
        90, lambda: [API], priority=0
    ).complete(asked)
    async with running(process):
        await channel.send(Key("shop", "sent"))
        await asyncio.sleep(100)
    assert set(asked.keys) == {WEB, Key("shop", "streamed"), Key("shop", "sent"), API}
    assert asked.reasons.count("timer") == 2
    assert asked.reasons.count("stream") == 2


async def test_a_function_will_do_as_a_reconciler() -> None:
    server = Server()
    server.put("parents", "web")
    process, keys = Process(server), list[Request]()

    async def reconcile(request: Request) -> None:
        keys.append(request)

    builder(process).for_(Parent).complete(reconcile)
    async with running(process):
        await until(lambda: keys == [WEB])


async def test_objects_may_be_untyped_and_owners_in_no_namespace() -> None:
    server, asked = Server(), Asked()
    room = {"apiVersion": f"{GROUP}/v1", "kind": "Room", "name": "n1", "uid": "u", "controller": True}
    server.put("children", "x", ownerReferences=[room])
    process = Process(server)
    builder(process).for_(Room).owns(untyped(f"{GROUP}/v1", "Child")).complete(asked)
    async with running(process):
        await until(lambda: asked.keys == [Key("", "n1")])


def test_nothing_is_declared_before_the_end_of_the_sentence() -> None:
    process = Process(Server())
    begun = builder(process).for_(Parent).owns(Child)
    assert process.cache.stats() == []
    begun.build(Asked())
    assert len(process.cache.stats()) == 2
    assert process.added == [], "build does not add"


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        (lambda b: b.for_(Parent).for_(Child), "use watches"),
        (lambda b: b.named("x").owns(Child).build(Asked()), "who owns"),
        (lambda b: b.named("x").every(3).build(Asked()), "of which objects"),
        (lambda b: b.build(Asked()), "for something"),
        (lambda b: b.named("x").build(Asked()), "for something"),
    ],
    ids=range(5),
)
def test_a_sentence_that_makes_no_sense_is_refused_and_leaves_nothing_behind(
    sentence: Any, says: str
) -> None:
    process = Process(Server())
    with pytest.raises(ValueError, match=says):
        sentence(builder(process))
    assert process.cache.stats() == []


def test_what_cannot_reconcile_is_refused() -> None:
    wrong: Any = Asked
    with pytest.raises(TypeError, match=r"is a class: give an object of it, Asked\(…\)"):
        as_reconciler(wrong)
    wrong = 5
    with pytest.raises(TypeError, match="cannot reconcile"):
        as_reconciler(wrong)


def test_a_process_is_what_a_builder_needs() -> None:
    manager: Manager = Process(Server())
    assert repr(builder(manager).named("x")) == "<Builder of x, 0 sources>"
    assert child_of("web").metadata.name == "web"
