"""What ``ctx`` does for a reconciler, request by request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from setpoint.api import Key, ObjectMeta
from setpoint.controller.context import LABEL, Context, Means
from setpoint.controller.hot_loop import HotLoops
from setpoint.controller.recorder import Recorder
from setpoint.controller.worker import Log
from setpoint.errors import AlreadyOwned, Conflict, NotFound
from setpoint.kube.core.v1 import Secret
from tests.controller.cluster import Child, Cluster, Parent, Room, Wire, child
from tests.controller.world import Process, Spec
from tests.peer import status

MANAGER, LABEL_VALUE = "op", "op.parent"


class World:
    """A context for the Parent ``shop/web``, and the cluster it works on."""

    def __init__(self, cluster: Cluster, process: Process) -> None:
        self.cluster = cluster
        self.process = process
        self.recorder = Recorder(process.client)
        self.means = Means(
            "parent",
            process.client,
            process.metrics.controller("parent"),
            MANAGER,
            LABEL_VALUE,
            self.recorder,
        )

    async def context(self, name: str = "web", *, kind: type[Any] = Parent) -> Context:
        namespace = "shop" if kind is Parent else None
        primary = await self.process.client.live.get(kind, name, namespace=namespace)
        return Context(self.means, primary, log=Log(logging.getLogger("test"), {}))

    async def cleaning_up(self) -> Context:
        """A context for the same Parent, which somebody has deleted; from now on the cache hears nothing."""
        self.cluster.change("parents", "web", {"metadata": {"finalizers": ["op/cleanup"]}})
        self.cluster.mark_deleted("parents", "web")
        self.cluster.is_late = True
        ctx = await self.context()
        self.cluster.requests.clear()
        return ctx

    async def caught_up(self) -> None:
        """Wait until the cache has seen what somebody else did."""
        version = self.cluster.of("children")["metadata"]["resourceVersion"]
        (informer,) = self.process.cache.holds(Child.gvk)
        assert await informer.wait_until(lambda: informer.store.version >= version, 10)

    def writes(self) -> list[str]:
        """What was written since the last look."""
        found = self.cluster.writes()
        self.cluster.requests.clear()
        return found


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    cluster = Cluster()
    cluster.put("parents", "web")
    cluster.put("rooms", "hall", namespace="")
    process = Process(cluster)
    process.cache.declare(Parent)
    process.cache.declare(Child)
    async with process.cache:
        await process.cache.wait_synced()
        yield World(cluster, process)


def wire() -> Wire:
    """What ``child()`` is, as a plain object."""
    metadata, spec = {"name": "web"}, {"colour": "red"}
    return {"apiVersion": "demo.setpoint.dev/v1", "kind": "Child", "metadata": metadata, "spec": spec}


# Apply.


@pytest.mark.virtual_time
async def test_what_is_desired_is_made_owned_labelled_and_in_our_namespace() -> None:
    async with world() as here:
        ctx = await here.context()
        desired = child(colour="blue")
        made = await ctx.apply(desired)
        assert here.writes() == ["apply children shop/web"]
        assert made.spec.colour == "blue"
        assert made.metadata.labels == {LABEL: LABEL_VALUE}
        (owner,) = made.metadata.owner_references or []
        assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Parent", "web", "uid-101", True)
        assert desired == child(colour="blue"), "what was given is as it was"


@pytest.mark.virtual_time
async def test_at_its_fixed_point_an_apply_sends_nothing() -> None:
    async with world() as here:
        ctx = await here.context()
        made = await ctx.apply(child())
        here.writes()
        again = await ctx.apply(child())
        plain = await ctx.apply(
            {
                "apiVersion": "demo.setpoint.dev/v1",
                "kind": "Child",
                "metadata": {"name": "web"},
                "spec": {"colour": "red"},
            }
        )
        assert here.cluster.requests == []
        assert again == made
        assert plain["metadata"]["uid"] == made.metadata.uid
        again.spec.colour = "changed"
        assert (await ctx.apply(child())).spec.colour == "red", "what is given is fresh"


@pytest.mark.virtual_time
async def test_drift_is_put_back_and_a_changed_wish_is_sent() -> None:
    async with world() as here:
        ctx = await here.context()
        await ctx.apply(child())
        here.cluster.change("children", "web", {"spec": {"colour": "green"}})
        await here.caught_up()
        assert (await ctx.apply(child())).spec.colour == "red"
        assert (await ctx.apply(child(colour="blue"))).spec.colour == "blue"


@pytest.mark.virtual_time
async def test_the_server_is_asked_once_where_it_writes_things_in_another_way() -> None:
    """It drops what it does not know, so the comparison never matches; what came of it is remembered."""
    async with world() as here:
        ctx = await here.context()
        desired = {**wire(), "unknown": 1}
        await ctx.apply(desired)
        here.writes()
        for _ in range(3):
            await ctx.apply(desired)
        assert here.writes() == []
        await ctx.apply({**desired, "unknown": 2})
        assert here.writes() == ["apply children shop/web"]


@pytest.mark.virtual_time
async def test_a_kind_that_is_not_declared_is_read_from_the_server_and_still_not_written() -> None:
    async with world() as here:
        ctx = await here.context(name="hall", kind=Room)
        await ctx.apply(Room(metadata=ObjectMeta(name="cellar")))
        here.cluster.requests.clear()
        await ctx.apply(Room(metadata=ObjectMeta(name="cellar")))
        assert here.cluster.requests == ["get rooms cellar"]


@pytest.mark.virtual_time
async def test_what_belongs_to_nobody_has_no_owner() -> None:
    async with world() as here:
        ctx = await here.context()
        made = await ctx.apply(child(), owned=False)
        assert made.metadata.owner_references is None
        room = await ctx.apply(Room(metadata=ObjectMeta(name="cellar")), owned=False)
        assert room.metadata.namespace is None or room.metadata.namespace == ""


@pytest.mark.virtual_time
async def test_what_another_controls_is_not_taken() -> None:
    async with world() as here:
        owner = {"apiVersion": "v1", "kind": "Boss", "name": "b", "uid": "b", "controller": True}
        here.cluster.put("children", "web", ownerReferences=[owner])
        await here.caught_up()
        ctx = await here.context()
        with pytest.raises(AlreadyOwned, match="Boss b is its controller"):
            await ctx.apply(child())
        assert here.writes() == []


@pytest.mark.virtual_time
async def test_an_owner_that_cannot_be_is_refused_before_anything_is_sent() -> None:
    async with world() as here:
        ctx = await here.context()
        elsewhere = Child(metadata=ObjectMeta(name="a", namespace="elsewhere"))
        with pytest.raises(ValueError, match="in another namespace"):
            await ctx.apply(elsewhere)
        with pytest.raises(ValueError, match="belongs to no namespace"):
            await ctx.apply(Room(metadata=ObjectMeta(name="cellar")))
        with pytest.raises(ValueError, match="cannot own itself"):
            await ctx.apply(Parent(metadata=ObjectMeta(name="web")))
        room = await here.context(name="hall", kind=Room)
        with pytest.raises(ValueError, match=r"in which namespace is .* Child web"):
            await room.apply(child())
        assert here.cluster.writes() == []


@pytest.mark.virtual_time
async def test_what_was_read_cannot_be_applied() -> None:
    async with world() as here:
        ctx = await here.context()
        made = await ctx.apply(child())
        with pytest.raises(ValueError, match="would claim every field"):
            await ctx.apply(made)


# Reading.


@pytest.mark.virtual_time
async def test_reads_are_in_our_namespace_and_from_the_cache() -> None:
    async with world() as here:
        ctx = await here.context()
        await ctx.apply(child("a"))
        here.cluster.put("children", "b")
        here.cluster.put("children", "c", namespace="elsewhere")
        await ctx.client.list(Child)
        here.cluster.requests.clear()
        assert (await ctx.get(Child, "a")).metadata.name == "a"
        assert [each.metadata.name for each in await ctx.list(Child, owned=True)] == ["a"]
        with pytest.raises(NotFound):
            await ctx.get(Child, "c")
        elsewhere = await ctx.get(Child, "c", namespace="elsewhere")
        assert elsewhere.metadata.namespace == "elsewhere"
        assert here.cluster.requests == []


# Create or patch.


def paint(colour: str) -> Any:
    def mutate(obj: Child) -> None:
        obj.spec.colour = colour

    return mutate


@pytest.mark.virtual_time
async def test_create_or_patch_makes_changes_or_leaves_alone() -> None:
    async with world() as here:
        ctx = await here.context()
        made = await ctx.create_or_patch(child(), paint("blue"))
        assert (made.spec.colour, here.writes()) == ("blue", ["create children shop/"])
        same = await ctx.create_or_patch(child(), paint("blue"))
        assert (same.spec.colour, here.writes()) == ("blue", [])
        changed = await ctx.create_or_patch(child(), paint("green"))
        assert (changed.spec.colour, here.writes()) == ("green", ["patch children shop/web"])
        assert [owner.name for owner in changed.metadata.owner_references or []] == ["web"]


@pytest.mark.virtual_time
async def test_create_or_patch_begins_again_when_the_cache_was_behind() -> None:
    async with world() as here:
        ctx = await here.context()
        here.cluster.is_late = True
        here.cluster.put("children", "web", colour="green")
        patched = await ctx.create_or_patch(child(), paint("blue"))
        assert patched.spec.colour == "blue"
        assert here.writes() == ["create children shop/", "patch children shop/web"]


@pytest.mark.virtual_time
async def test_create_or_patch_begins_again_when_somebody_wrote_first_to_the_same_list() -> None:
    async with world() as here:
        ctx = await here.context()
        await ctx.create_or_patch(child(), paint("blue"))
        here.cluster.is_late = True
        here.cluster.change("children", "web", {"metadata": {"finalizers": ["theirs.example/x"]}})

        def hold(obj: Child) -> None:
            obj.metadata.finalizers = [*(obj.metadata.finalizers or []), "ours.example/x"]

        patched = await ctx.create_or_patch(child(), hold)
        assert patched.metadata.finalizers == ["theirs.example/x", "ours.example/x"]


@pytest.mark.virtual_time
async def test_create_or_patch_does_not_rename() -> None:
    async with world() as here:
        ctx = await here.context()

        def rename(obj: Child) -> None:
            obj.metadata.name = "other"

        with pytest.raises(ValueError, match="names cannot change"):
            await ctx.create_or_patch(child(), rename)


# Delete.


@pytest.mark.virtual_time
async def test_deletes_name_the_uid_and_the_version_that_was_seen() -> None:
    async with world() as here:
        ctx = await here.context()
        made = await ctx.apply(child())
        here.cluster.is_late = True
        here.cluster.change("children", "web", {"spec": {"colour": "green"}})
        with pytest.raises(Conflict):
            await ctx.delete(made)
        assert here.cluster.names("children") == ["web"]
        here.cluster.catch_up()
        assert await ctx.delete(await ctx.client.live.get(Child, "web", namespace="shop"))
        assert here.cluster.names("children") == []


@pytest.mark.virtual_time
async def test_what_is_not_there_needs_no_deletion() -> None:
    async with world() as here:
        ctx = await here.context()
        assert not await ctx.delete(Child, "web")
        made = await ctx.apply(child())
        assert await ctx.delete(Child, "web")
        assert not await ctx.delete(made)
        assert not await ctx.delete(child())


@pytest.mark.virtual_time
async def test_what_was_desired_stands_for_what_there_is() -> None:
    async with world() as here:
        ctx = await here.context()
        await ctx.apply(child())
        assert await ctx.delete(child())
        assert here.cluster.names("children") == []


@pytest.mark.virtual_time
async def test_what_is_going_already_is_left_to_go() -> None:
    async with world() as here:
        ctx = await here.context()
        here.cluster.put("children", "a", deletionTimestamp="2030-01-01T00:00:00Z", finalizers=["a/b"])
        here.cluster.requests.clear()
        going = await ctx.client.live.get(Child, "a", namespace="shop")
        assert await ctx.delete(going)
        assert here.writes() == []


@pytest.mark.virtual_time
@pytest.mark.parametrize("it_is", ["changed", "going", "another", "gone"])
async def test_nothing_is_deleted_for_an_object_that_was_old_when_it_was_read(it_is: str) -> None:
    async with world() as here:
        ctx = await here.context()
        await ctx.apply(child())
        if it_is == "changed":
            here.cluster.change("parents", "web", {"spec": {"colour": "green"}})
        elif it_is == "going":
            await here.cleaning_up()
        else:
            here.cluster.delete("parents", "web")
        if it_is == "another":
            here.cluster.put("parents", "web")
        here.cluster.requests.clear()
        with pytest.raises(Conflict, match=r"delete .* Child shop/web: .* Parent shop/web, for whose sake"):
            await ctx.delete(Child, "web")
        assert here.cluster.requests == ["get parents shop/web"]
        assert here.cluster.names("children") == ["web"]


@pytest.mark.virtual_time
async def test_one_look_at_the_server_is_enough_for_all_that_a_reconcile_deletes() -> None:
    async with world() as here:
        ctx = await here.context()
        for name in ("a", "b"):
            await ctx.apply(child(name))
        here.cluster.change("parents", "web", {"status": {"phase": "another"}})
        here.cluster.requests.clear()
        assert not await ctx.delete(Child, "c")
        assert here.cluster.requests == [], "what is not there is not deleted"
        for name in ("a", "b"):
            assert await ctx.delete(Child, name)
        assert here.cluster.requests == [
            "get parents shop/web",
            "delete children shop/a",
            "delete children shop/b",
        ]


# In a clean-up.


@pytest.mark.virtual_time
async def test_a_clean_up_finds_what_an_old_view_does_not_have() -> None:
    async with world() as here:
        ctx = await here.cleaning_up()
        here.cluster.put("children", "web")
        assert (await ctx.get(Child, "web")).metadata.name == "web"
        here.cluster.requests.clear()
        assert await ctx.delete(Child, "web")
        assert here.cluster.requests == ["get children shop/web", "delete children shop/web"]
        assert here.cluster.names("children") == []


@pytest.mark.virtual_time
async def test_a_clean_up_does_not_take_the_namesake_of_what_is_going_for_going() -> None:
    async with world() as here:
        here.cluster.put("children", "web", deletionTimestamp="2030-01-01T00:00:00Z", finalizers=["a/b"])
        await here.caught_up()
        ctx = await here.cleaning_up()
        assert await ctx.delete(Child, "web")
        assert here.cluster.requests == ["get children shop/web"], "it is on its way, as the server says"
        here.cluster.delete("children", "web")
        here.cluster.put("children", "web")
        assert await ctx.delete(Child, "web")
        assert here.cluster.names("children") == []


@pytest.mark.virtual_time
async def test_what_is_not_there_costs_a_clean_up_one_request_and_a_reconcile_none() -> None:
    async with world() as here:
        ctx = await here.context()
        here.cluster.requests.clear()
        assert not await ctx.delete(Child, "web")
        with pytest.raises(NotFound):
            await ctx.get(Child, "web")
        assert here.cluster.requests == []
        ctx = await here.cleaning_up()
        assert not await ctx.delete(Child, "web")
        assert here.cluster.requests == ["get children shop/web"]
        here.cluster.requests.clear()
        assert not await ctx.delete(Room, "cellar")
        assert here.cluster.requests == ["get rooms cellar"], "a kind that is not declared is asked for once"


@pytest.mark.virtual_time
async def test_what_is_there_costs_a_clean_up_its_deletion_alone() -> None:
    async with world() as here:
        here.cluster.put("children", "web")
        await here.caught_up()
        ctx = await here.cleaning_up()
        assert await ctx.delete(Child, "web")
        assert here.cluster.requests == ["delete children shop/web"]


@pytest.mark.virtual_time
async def test_a_clean_up_leaves_alone_what_the_declarations_do_not_select() -> None:
    cluster = Cluster()
    cluster.put("parents", "web")
    process = Process(cluster)
    process.cache.declare(Child, labels={"ours": "yes"})
    async with process.cache:
        await process.cache.wait_synced()
        ctx = await World(cluster, process).cleaning_up()
        cluster.put("children", "web")
        assert not await ctx.delete(Child, "web")
        cluster.put("children", "web", labels={"ours": "yes"})
        assert await ctx.delete(Child, "web")


# Owning, conditions, events.


@pytest.mark.virtual_time
async def test_an_object_can_be_made_ours_by_hand() -> None:
    async with world() as here:
        ctx = await here.context()
        secret = Secret(metadata=ObjectMeta(name="s"))
        ctx.set_controller_reference(secret)
        assert secret.metadata.namespace == "shop"
        plain: Wire = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}}
        ctx.set_controller_reference(plain)
        assert plain["metadata"]["ownerReferences"][0]["uid"] == "uid-101"


@pytest.mark.virtual_time
async def test_conditions_are_put_into_the_status_with_time_and_generation() -> None:
    async with world() as here:
        ctx = await here.context()
        assert ctx.set_condition("Ready", False, "Waiting", "for it")
        assert not ctx.set_condition("Ready", "False", "Waiting", "for it")
        parent: Any = ctx._primary
        (condition,) = parent.status.conditions
        assert (condition.status, condition.observed_generation) == ("False", 1)
        assert condition.last_transition_time
        dict_: dict[str, Any] = {"apiVersion": "v1", "kind": "X", "metadata": {"generation": 3}}
        plain = Context(here.means, dict_, log=ctx.log)
        assert plain.set_condition("Ready", True, "Done")
        (said,) = dict_["status"]["conditions"]
        assert (said["status"], said["observedGeneration"]) == ("True", 3)
        room = await here.context(name="hall", kind=Room)
        with pytest.raises(TypeError, match="no list of conditions"):
            room.set_condition("Ready", True, "Done")


@pytest.mark.virtual_time
async def test_events_are_about_the_object_unless_told() -> None:
    async with world() as here:
        ctx = await here.context()
        ctx.event("Normal", "Made", "a child")
        ctx.event(
            "Warning", "Lost", "a child", action="Search", regarding=Room(metadata=ObjectMeta(name="hall"))
        )
        waiting: Any = here.recorder._waiting
        first, second = (each.happening for each in waiting)
        assert (first.regarding.kind, first.regarding.name, first.action) == ("Parent", "web", "Reconcile")
        assert (second.regarding.kind, second.type, second.action) == ("Room", "Warning", "Search")
        with pytest.raises(ValueError, match="Normal or Warning"):
            ctx.event("Error", "Made", "a child")  # type: ignore[arg-type]  # the mistake that is made here
        with pytest.raises(ValueError, match="a reason"):
            ctx.event("Normal", "", "a child")


# Hot loops.


@pytest.mark.virtual_time
async def test_a_fight_over_a_field_is_named_in_the_log_counted_and_slowed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world() as here:
        for _ in range(8):
            ctx = await here.context()
            await ctx.apply(child())
            here.cluster.change("children", "web", {"spec": {"colour": "green"}}, manager="rival")
            await here.caught_up()
        assert "hot loop: demo.setpoint.dev/v1 Child shop/web was written 6 times" in caplog.text
        assert "spec.colour was put back each time, and rival undid it" in caplog.text
        assert caplog.text.count("hot loop") == 1
        assert here.process.value("setpoint_hot_loops_total", controller="parent") == 1
        assert (
            here.means.hot_loops.wait(
                Key("shop", "web"),
                uid=ctx._me.uid,
                now=asyncio.get_running_loop().time(),
                generation=1,
            )
            > 0
        )


@pytest.mark.virtual_time
async def test_a_write_that_fails_is_no_write() -> None:
    async with world() as here:
        here.cluster.refuse = lambda request: status(500) if request.method == "PATCH" else None
        for _ in range(8):
            ctx = await here.context()
            with pytest.raises(Exception, match="no"):
                await ctx.apply(child())
        assert repr(here.means.hot_loops) == repr(HotLoops())


def test_a_context_says_whose_it_is() -> None:
    primary = Parent(metadata=ObjectMeta(name="web", namespace="shop"), spec=Spec())
    cluster = Cluster()
    process = Process(cluster)
    means = Means("parent", process.client, process.metrics.controller("parent"), "op", "op.parent")
    ctx = Context(means, primary, log=Log(logging.getLogger("test"), {}))
    assert repr(ctx) == "<Context of demo.setpoint.dev/v1 Parent shop/web>"
    ctx.event("Normal", "Made", "nobody listens")
