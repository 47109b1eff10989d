"""The declarative form: applied in order, gated where asked, and pruned with care."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api import Key, ObjectMeta, OwnerReference
from setpoint.api.meta import PartialObjectMetadata as Metadata
from setpoint.controller.children import Children, Ready, to_prune
from setpoint.controller.context import Context
from setpoint.controller.result import Result
from setpoint.controller.sync_context import SyncContext
from setpoint.errors import SetpointError
from setpoint.operator import Operator
from tests.controller.cluster import Child, Cluster, Parent, Room, child, quiet, running, until
from tests.peer import status

# What goes.


def found(name: str, owner: str = "u", *, controller: bool = True, going: bool = False) -> Metadata:
    reference = OwnerReference(api_version="v1", kind="P", name="p", uid=owner, controller=controller)
    metadata = ObjectMeta(name=name, namespace="shop", owner_references=[reference])
    if going:
        metadata.deletion_timestamp = Parent.decode(
            b'{"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}'
        ).metadata.deletion_timestamp
    return Metadata(metadata=metadata)


def test_what_is_ours_and_no_longer_declared_goes_and_nothing_else() -> None:
    objects = [
        found("gone"),
        found("kept"),
        found("another's", owner="x"),
        found("shared", controller=False),
        found("going", going=True),
    ]
    pruned = to_prune(objects, owner="u", kept=[Key("shop", "kept")])
    assert [each.metadata.name for each in pruned] == ["gone"]


names = st.sampled_from("abcdef")


@given(there=st.sets(names), kept=st.sets(names), owner=st.sampled_from(["u", "v"]))
def test_what_is_declared_never_goes(there: set[str], kept: set[str], owner: str) -> None:
    pruned = to_prune([found(name) for name in there], owner=owner, kept=[Key("shop", name) for name in kept])
    gone = {each.metadata.name for each in pruned}
    assert not gone & kept
    assert gone == ((there - kept) if owner == "u" else set())


# In an operator.


class Wish:
    """An operator whose Parents have the children named here."""

    def __init__(self, *names: str, form: str = "async") -> None:
        self.names = list(names)
        self.fails_after: int | None = None
        self.given: list[Any] = []
        self.operator = Operator("op")
        register = self.operator.controller(Parent, owns=[Child])
        match form:
            case "async":
                register(self.as_generator)
            case "plain":
                register(self.as_plain_generator)
            case "list":
                register(self.as_list)

    def check(self, number: int) -> None:
        if number == self.fails_after:
            raise SetpointError("", "half-way")

    async def as_generator(self, _parent: Parent, _ctx: Context) -> Children:
        for number, name in enumerate(self.names):
            self.check(number)
            self.given.append((yield child(name)))

    def as_plain_generator(self, _parent: Parent, _ctx: SyncContext) -> Generator[Child, Any, None]:
        for number, name in enumerate(self.names):
            self.check(number)
            self.given.append((yield child(name)))

    async def as_list(self, _parent: Parent, _ctx: Context) -> list[Child]:
        self.check(1)
        return [child(name) for name in self.names]


def cluster() -> Cluster:
    made = Cluster()
    made.put("parents", "web")
    return made


def touch(server: Cluster) -> None:
    """Have the Parent looked at again."""
    version = server.version
    server.change("parents", "web", {"metadata": {"annotations": {"touched": str(version)}}})


FORMS = ["async", "list"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("form", FORMS)
async def test_children_are_applied_in_order_and_then_nothing_is_sent(form: str) -> None:
    server, wish = cluster(), Wish("b", "a", "c", form=form)
    async with running(wish.operator, server):
        await quiet(server)
        applied = [each for each in server.requests if each.startswith("apply")]
        assert applied == ["apply children shop/b", "apply children shop/a", "apply children shop/c"]
        touch(server)
        count = len(server.writes())
        await quiet(server)
        assert len(server.writes()) == count


@pytest.mark.virtual_time
@pytest.mark.parametrize("form", FORMS)
async def test_what_is_no_longer_declared_is_deleted(form: str) -> None:
    server, wish = cluster(), Wish("a", "b", form=form)
    server.put("children", "theirs")
    async with running(wish.operator, server):
        await quiet(server)
        wish.names = ["b", "c"]
        touch(server)
        await until(lambda: sorted(server.names("children")) == ["b", "c", "theirs"])


async def test_a_plain_generator_declares_as_well() -> None:
    server, wish = cluster(), Wish("a", "b", form="plain")
    async with running(wish.operator, server):
        await until(lambda: len(wish.given) >= 2, within=20)
        assert [each.metadata.name for each in wish.given[:2]] == ["a", "b"]
        assert sorted(server.names("children")) == ["a", "b"]
        wish.names = ["b"]
        touch(server)
        await until(lambda: server.names("children") == ["b"], within=20)


@pytest.mark.virtual_time
async def test_children_are_found_again_after_a_restart() -> None:
    server = cluster()
    async with running(Wish("a", "b").operator, server):
        await quiet(server)
    async with running(Wish("b").operator, server):
        await until(lambda: server.names("children") == ["b"])


@pytest.mark.virtual_time
@pytest.mark.parametrize("form", FORMS)
async def test_a_reconcile_that_raised_prunes_nothing(form: str) -> None:
    server, wish = cluster(), Wish("a", "b", form=form)
    async with running(wish.operator, server):
        await quiet(server)
        wish.names, wish.fails_after = ["a", "x"], 1
        touch(server)
        await asyncio.sleep(60)
        assert {"a", "b"} <= set(server.names("children"))


@pytest.mark.virtual_time
async def test_nothing_is_pruned_for_an_object_that_is_another_by_now() -> None:
    """The cache still has the old one; the server has its successor, which may want those children."""
    server, wish = cluster(), Wish("a", "b")
    async with running(wish.operator, server) as manager:
        await quiet(server)
        server.is_late = True
        old = server.delete("parents", "web")
        server.put("parents", "web", colour="new")
        wish.names = ["a"]
        (controller,) = manager.controllers
        controller.look_at(Key("shop", "web"))
        await asyncio.sleep(60)
        assert old["metadata"]["uid"] != server.of("parents")["metadata"]["uid"]
        assert "b" in server.names("children")


@pytest.mark.virtual_time
async def test_nothing_is_pruned_for_a_spec_that_is_old_by_now() -> None:
    server, wish = cluster(), Wish("a", "b")
    async with running(wish.operator, server) as manager:
        await quiet(server)
        server.is_late = True
        server.change("parents", "web", {"spec": {"colour": "blue"}})
        wish.names = ["a"]
        (controller,) = manager.controllers
        controller.look_at(Key("shop", "web"))
        await asyncio.sleep(60)
        assert sorted(server.names("children")) == ["a", "b"], "what we saw is not what is asked for now"
        server.catch_up()
        await until(lambda: server.names("children") == ["a"])


@pytest.mark.virtual_time
async def test_what_is_applied_by_hand_in_the_same_reconcile_is_not_pruned() -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> AsyncIterator[Child]:
        await ctx.apply(child("by-hand"))
        yield child("declared")

    async with running(operator, server):
        await quiet(server)
        touch(server)
        await quiet(server)
        assert sorted(server.names("children")) == ["by-hand", "declared"]


@pytest.mark.virtual_time
async def test_the_children_of_another_controller_are_not_pruned() -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent, owns=[Child], name="first")
    async def first(parent: Parent, ctx: Context) -> list[Child]:
        return [child("a")]

    @operator.controller(Parent, owns=[Child], name="second")
    async def second(parent: Parent, ctx: Context) -> list[Child]:
        return [child("b")]

    async with running(operator, server):
        await quiet(server)
        touch(server)
        await quiet(server)
        assert sorted(server.names("children")) == ["a", "b"]


@pytest.mark.virtual_time
async def test_yield_gives_the_object_as_it_is_and_raises_what_failed() -> None:
    server, operator, seen = cluster(), Operator("op"), list[object]()
    server.refuse = lambda request: (
        status(422, "Invalid", "bad") if b'"bad"' in (request.body or b"") else None
    )

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> Children:
        made = yield child("good")
        seen.append(made.metadata.uid)
        try:
            yield child("bad")
        except SetpointError as error:
            seen.append(type(error).__name__)
        yield Result(requeue_after=1000)

    async with running(operator, server) as manager:
        await until(lambda: len(seen) >= 2)
        (controller,) = manager.controllers
        await until(lambda: controller.last_look(Key("shop", "web")))
        looked = controller.last_look(Key("shop", "web"))
    assert seen[:2] == [server.of("children", "good")["metadata"]["uid"], "Invalid"]
    assert looked is not None
    assert looked.again_in == 1000


@pytest.mark.virtual_time
async def test_readiness_of_one_gates_the_next_and_nothing_is_pruned_meanwhile() -> None:
    server, operator, reached = cluster(), Operator("op"), list[str]()
    closed: list[bool] = []

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> Children:
        try:
            yield Ready(child("first"))
            reached.append("second")
            yield child("second")
        finally:
            closed.append(True)

    async with running(operator, server):
        await until(lambda: "first" in server.names("children"))
        not_ready = {"conditions": [{"type": "Ready", "status": "False"}]}
        server.change("children", "first", {"status": not_ready})
        await quiet(server)
        count = len(reached)
        server.change("children", "first", {"metadata": {"labels": {"x": "y"}}})
        await quiet(server)
        assert len(reached) == count, "it waits"
        assert server.of("parents")["status"]["observedGeneration"] == 1
        server.change("parents", "web", {"spec": {"colour": "blue"}})
        await quiet(server)
        assert "second" in server.names("children"), "not declared, for it was not reached; and not pruned"
        assert server.of("parents")["status"]["observedGeneration"] == 1, "this one is not done"
        server.change("children", "first", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        await until(lambda: len(reached) > count)
        await quiet(server)
        assert server.of("parents")["status"]["observedGeneration"] == 2
    assert closed


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([Room(metadata=ObjectMeta(name="r"))], r"does not own its kind.*owns=\[…\]"),
        ([child("a"), child("a")], "declared twice"),
        (["child"], "a reconciler yields objects"),
        ("child", "a reconciler returns None, a Result, or children"),
    ],
    ids=["not owned", "twice", "no object", "no list"],
)
async def test_a_wrong_declaration_is_told(wrong: Any, why: str) -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> Any:
        return wrong

    async with running(operator, server) as manager:
        (controller,) = manager.controllers
        await until(lambda: controller.last_look(Key("shop", "web")))
        looked = controller.last_look(Key("shop", "web"))
    assert looked is not None
    assert re.search(why, looked.error)
