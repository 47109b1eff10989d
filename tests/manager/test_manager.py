"""A whole manager in virtual time: controllers, leader election, readiness, the journal."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.api.names import Key
from setpoint.cache.watch_state import Timing
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.builder import builder
from setpoint.controller.result import Request, Result
from setpoint.errors import ConnectionFailed, LeadershipLost
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.manager import Manager
from setpoint.net.transport import Request as HttpRequest
from tests.controller.world import Child, Parent, Server
from tests.manager.leases import LEASE, Shelf
from tests.peer import Reply, status

ELECTION = LeaderElection("op", "shop")


class World:
    """A server that has leases too."""

    def __init__(self) -> None:
        self.server, self.leases = Server(), Shelf.with_free_lease(LEASE.replace("shop-operator", "op"))

    async def __call__(self, request: HttpRequest) -> Reply:
        return await (self.leases if "/leases" in request.target else self.server)(request)

    def manager(self, **options: Any) -> Manager:
        return Manager(client=Client(transport=self), **options)


def now() -> float:
    return asyncio.get_running_loop().time()


def reconciled_by(
    manager: Manager, reconcile: Callable[[Request], Awaitable[Result | None]], **options: Any
) -> None:
    builder(manager).for_(Parent).owns(Child).with_options(**options).complete(reconcile)


async def eventually(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(1000):  # virtual seconds
        while not condition():
            await asyncio.sleep(0.01)


pytestmark = pytest.mark.virtual_time


async def test_a_block_begins_when_caches_are_synced_and_controllers_run() -> None:
    world, seen = World(), list[Request]()
    world.server.put("parents", "a")

    async def reconcile(request: Request) -> None:
        seen.append(request)

    manager = world.manager()
    reconciled_by(manager, reconcile)
    async with manager:
        assert all(each.is_synced for each in manager.cache.stats())
        await eventually(lambda: seen)
        world.server.put("parents", "b")
        await eventually(lambda: len(seen) == 2)
    assert seen == [Key("shop", "a"), Key("shop", "b")]


async def test_on_shutdown_a_reconcile_that_runs_is_finished() -> None:
    world, diary = World(), list[str]()
    world.server.put("parents", "a")

    async def reconcile(_: Request) -> None:
        diary.append("begun")
        await asyncio.sleep(20)
        await manager.client.create(Child(metadata=ObjectMeta(name="x", namespace="shop")))
        diary.append("finished")

    manager = world.manager()
    reconciled_by(manager, reconcile)
    async with manager:
        await eventually(lambda: diary)
    assert diary == ["begun", "finished"]
    assert world.server.writes() == ["create children shop/"]


async def test_reconcilers_that_raise_stop_nobody() -> None:
    world, looks = World(), list[Request]()
    world.server.put("parents", "a")

    async def reconcile(request: Request) -> None:
        looks.append(request)
        raise LookupError("every time")

    manager = world.manager()
    reconciled_by(manager, reconcile)
    async with manager:
        await eventually(lambda: len(looks) == 5)


async def test_a_failure_cancels_the_block_and_is_raised_where_it_ends() -> None:
    class Broken:
        needs_leadership = False

        async def run(self) -> None:
            await asyncio.sleep(1)
            raise LookupError("gone")

    manager = World().manager()
    manager.add(Broken())
    with pytest.raises(LookupError, match="gone"):
        async with manager:
            await asyncio.Event().wait()


async def test_the_blocks_own_error_leaves_as_it_is() -> None:
    with pytest.raises(LookupError, match="mine"):
        async with World().manager():
            raise LookupError("mine")


async def test_a_failure_at_the_start_is_raised_at_once() -> None:
    class Broken:
        needs_leadership = False

        async def run(self) -> None:
            raise LookupError("gone")

        async def wait_ready(self) -> None:
            await asyncio.Event().wait()

    manager = World().manager()
    manager.add(Broken())
    with pytest.raises(LookupError, match="gone"):
        async with manager:
            await asyncio.Event().wait()


async def test_a_manager_runs_once() -> None:
    manager = World().manager()
    async with manager:
        pass
    with pytest.raises(RuntimeError, match="has run"):
        await manager.run()


async def test_a_client_that_was_given_stays_open_and_one_of_its_own_is_closed() -> None:
    world = World()
    client = Client(transport=world)
    async with Manager(client=client):
        pass
    world.server.put("parents", "a")
    assert (await client.get(Parent, "a", namespace="shop")).metadata.name == "a"
    with pytest.raises(ValueError, match="config or a client"):
        Manager(Config(server="http://localhost"), client=client)


async def test_two_controllers_of_one_name_are_refused() -> None:
    manager = World().manager()

    async def reconcile(_: Request) -> None: ...

    reconciled_by(manager, reconcile)
    with pytest.raises(ValueError, match="'parent' already"):
        reconciled_by(manager, reconcile)


async def test_only_the_given_namespaces_are_watched() -> None:
    world = World()

    async def reconcile(_: Request) -> None: ...

    manager = world.manager(namespaces=["bank"])
    reconciled_by(manager, reconcile)
    async with manager:
        await asyncio.sleep(5)
    assert sorted(world.server.requests) == ["watch children bank/", "watch parents bank/"]


async def test_managers_in_one_process_share_nothing() -> None:
    world = World()
    world.server.put("parents", "a")
    seen: dict[str, int] = {}

    def counting(name: str) -> Callable[[Request], Awaitable[None]]:
        async def reconcile(_: Request) -> None:
            seen[name] = seen.get(name, 0) + 1

        return reconcile

    first, second = world.manager(name="first"), world.manager(name="second")
    reconciled_by(first, counting("first"))
    reconciled_by(second, counting("second"))
    async with first, second:
        await eventually(lambda: len(seen) == 2)
        second.stop()
        await asyncio.sleep(1)
        world.server.put("parents", "b")
        await eventually(lambda: seen["first"] == 2)
    assert seen == {"first": 2, "second": 1}
    line = b'controller_runtime_reconcile_total{controller="parent",result="success"}'
    assert line + b" 2.0" in first.metrics.exposition()
    assert line + b" 1.0" in second.metrics.exposition()


# Leader election.


async def test_a_standby_has_warm_caches_and_reconciles_nothing() -> None:
    world, seen = World(), list[str]()
    world.server.put("parents", "a")

    def telling(name: str) -> Callable[[Request], Awaitable[None]]:
        async def reconcile(request: Request) -> None:
            seen.append(f"{name} {request}")

        return reconcile

    first, second = world.manager(leader_election=ELECTION), world.manager(leader_election=ELECTION)
    reconciled_by(first, telling("first"))
    reconciled_by(second, telling("second"))
    async with first:
        await eventually(lambda: first.is_leading)
        async with second:
            await asyncio.sleep(60)
            assert not second.is_leading
            assert all(each.is_synced for each in second.cache.stats())
            assert second.cache.peek(Parent, Key("shop", "a")) is not None
            assert seen == ["first shop/a"]
            listed = world.server.requests.count("list parents") + world.server.requests.count(
                "watch parents"
            )
            first.stop()
            stopped = now()
            await eventually(lambda: seen[-1] == "second shop/a")
            assert now() - stopped < 3
            again = world.server.requests.count("list parents") + world.server.requests.count("watch parents")
            assert again == listed, "the cache was warm"


async def test_with_leader_election_no_reconcile_starts_after_the_lease_may_have_been_lost() -> None:
    """The first half of contract 12; also: the client refuses writes, and run() raises."""
    world, started, refused = World(), list[float](), list[str]()
    world.server.put("parents", "a")

    async def reconcile(_: Request) -> Result:
        started.append(now())
        return Result(requeue_after=0.5)

    async def write_forever() -> None:
        """As a thread would: nobody can cancel it."""
        while not refused:
            try:
                await manager.client.create(Child(metadata=ObjectMeta(name="x", namespace="shop")))
                written.append(now())
            except LeadershipLost as error:
                refused.append(str(error))
            await asyncio.sleep(0.5)

    written: list[float] = []
    manager = world.manager(leader_election=ELECTION)
    reconciled_by(manager, reconcile)
    running = asyncio.create_task(manager.run())
    await eventually(lambda: started)
    thread = asyncio.create_task(write_forever())
    await asyncio.sleep(30)
    world.leases.down = True
    renewed = max(at for at, _, _ in world.leases.writes)
    with pytest.raises(LeadershipLost, match="could not be renewed"):
        await running
    await thread
    assert max(started) < renewed + ELECTION.renew_deadline
    assert max(written) < renewed + ELECTION.renew_deadline
    assert max(written) > renewed + ELECTION.renew_deadline - 1, "and until then it works"
    assert "create demo.setpoint.dev/v1 Child" in refused[0]
    assert now() < renewed + ELECTION.lease_duration, "all of this before another can lead"


async def test_when_the_lease_is_lost_reconciles_that_run_are_cancelled() -> None:
    world, ends = World(), list[str]()
    world.server.put("parents", "a")

    async def reconcile(_: Request) -> None:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    manager = world.manager(leader_election=ELECTION)
    reconciled_by(manager, reconcile)
    running = asyncio.create_task(manager.run())
    await eventually(lambda: manager.is_leading)
    await asyncio.sleep(5)
    world.leases.edit(holderIdentity="another")
    with pytest.raises(LeadershipLost, match="another holds it now"):
        await running
    assert ends == ["cancelled"]
    assert now() < 10


async def test_on_shutdown_workers_finish_then_the_lease_is_released() -> None:
    """The second half of contract 12."""
    world, holders = World(), list[str]()
    world.server.put("parents", "a")

    async def reconcile(_: Request) -> None:
        await asyncio.sleep(20)
        holders.append(world.leases.holder)
        await manager.client.create(Child(metadata=ObjectMeta(name="x", namespace="shop")))

    manager = world.manager(leader_election=ELECTION)
    reconciled_by(manager, reconcile)
    async with manager:
        await eventually(lambda: manager.is_leading)
        await asyncio.sleep(1)
    assert holders == [manager.election.settings.identity if manager.election else ""]
    assert world.server.writes() == ["create children shop/"]
    assert world.leases.holder == ""


async def test_the_plain_client_writes_whoever_leads() -> None:
    world = World()
    world.server.put("parents", "a")
    async with world.manager(leader_election=ELECTION) as first:
        await eventually(lambda: first.is_leading)
        async with world.manager(leader_election=ELECTION) as second:
            child = Child(metadata=ObjectMeta(name="x", namespace="shop"))
            with pytest.raises(LeadershipLost, match="does not lead yet"):
                await second.client.create(child)
            await second.plain_client.create(child)


async def test_what_every_replica_runs_does_not_wait_for_leadership() -> None:
    class Everywhere:
        needs_leadership = False
        runs = False

        async def run(self) -> None:
            self.runs = True
            await asyncio.Event().wait()

    world = World()
    async with world.manager(leader_election=ELECTION) as first:
        await eventually(lambda: first.is_leading)
        second = world.manager(leader_election=ELECTION)
        thing = second.add(Everywhere())
        async with second:
            assert thing.runs
            assert not second.is_leading


# How it is.


async def test_readiness_names_the_controller_and_the_kind_that_are_refused() -> None:
    world = World()
    world.server.refuse = lambda request: (
        status(403, "Forbidden", "no") if "children" in request.target else None
    )

    async def reconcile(_: Request) -> None: ...

    manager = world.manager()
    reconciled_by(manager, reconcile)
    ready = manager.probes.ready
    async with manager:
        assert "parent: " in str(ready["controllers"]())
        assert 'resources: ["children"]' in str(ready["controllers"]())
        assert "demo.setpoint.dev/v1 Child" in str(ready["caches"]())
        assert manager.probes.health["workers"]() is None, "it is alive, and waits"
        world.server.refuse = lambda _: None
        await eventually(lambda: ready["controllers"]() is None and ready["caches"]() is None)
    assert ready["controllers"]() == "stopping"


async def test_a_standby_is_ready() -> None:
    """Else a rollout would wait for the new pod, and that for the old pod's lease, for ever."""
    world = World()

    async def reconcile(_: Request) -> None: ...

    async with world.manager(leader_election=ELECTION) as first:
        await eventually(lambda: first.is_leading)
        second = world.manager(leader_election=ELECTION)
        reconciled_by(second, reconcile)
        async with second:
            assert second.probes.ready["controllers"]() is None
            assert second.probes.ready["caches"]() is None
            assert second.probes.ready["leader-election"]() is None


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
async def test_a_replica_that_may_not_have_the_lease_is_not_ready_and_says_what_to_grant(method: str) -> None:
    world = World()
    if method == "POST":
        world.leases = Shelf()
    may_lead = False

    async def transport(request: HttpRequest) -> Reply:
        if "/leases" in request.target and request.method == method and not may_lead:
            return status(403, "Forbidden", "leases is forbidden: no")
        return await world(request)

    manager = Manager(client=Client(transport=transport), leader_election=ELECTION)
    ready = manager.probes.ready["leader-election"]
    async with manager:
        await eventually(lambda: ready() is not None)
        assert 'resources: ["leases"], verbs: [get, create, update, watch]' in str(ready())
        may_lead = True
        await eventually(lambda: ready() is None)
        await eventually(lambda: manager.is_leading)
        assert ready() is None


async def test_a_replica_without_an_election_has_no_check_of_it() -> None:
    assert "leader-election" not in World().manager().probes.ready


async def test_it_is_connected_when_the_server_has_answered_and_not_refused() -> None:
    world, down = World(), True

    async def transport(request: HttpRequest) -> Reply:
        if down:
            raise ConnectionFailed("connect", "refused")
        return await world(request)

    async def reconcile(_: Request) -> None: ...

    manager = Manager(client=Client(transport=transport))
    reconciled_by(manager, reconcile)
    waiting = asyncio.create_task(manager.wait_connected())
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(30)
    assert not waiting.done()
    down = False
    await waiting
    manager.stop()
    await running


async def test_a_manager_that_starts_is_not_ready_and_names_what_it_waits_for() -> None:
    class Slow:
        needs_leadership = False
        name = "slow"

        async def run(self) -> None:
            await asyncio.Event().wait()

        async def wait_ready(self) -> None:
            await asyncio.sleep(60)

    manager = World().manager()
    manager.add(Slow())
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(30)
    assert manager.probes.ready["controllers"]() == "slow: not ready yet"
    await manager.wait_started()
    assert manager.probes.ready["controllers"]() is None
    manager.stop()
    await running


async def test_checks_of_the_authors_own_are_asked() -> None:
    manager = World().manager()
    manager.add_ready_check("database", lambda: "no connection")
    manager.add_health_check("database", lambda: None)
    assert manager.probes.ready["database"]() == "no connection"
    for taken in ("caches", "database", "", "a/b"):
        with pytest.raises(ValueError, match="cannot name a check"):
            manager.add_ready_check(taken, lambda: None)


async def test_a_worker_that_ended_fails_health_until_it_is_restarted() -> None:
    world = World()

    async def reconcile(_: Request) -> None: ...

    manager = world.manager()
    reconciled_by(manager, reconcile)
    health, ready = manager.probes.health["workers"], manager.probes.ready["controllers"]
    async with manager:
        await eventually(lambda: ready() is None)
        for task in asyncio.all_tasks():
            if task.get_name() == "worker 1 of parent":
                task.cancel()
        await eventually(lambda: health() is not None)
        assert str(health()).startswith("parent: worker 1 of 1 ended: CancelledError")
        assert ready() is not None
        await eventually(lambda: health() is None and ready() is None)


async def test_what_ends_by_itself_is_no_reason_to_kill_the_process() -> None:
    class Once:
        async def run(self) -> None: ...

    manager = World().manager()
    manager.add(Once())
    async with manager:
        await asyncio.sleep(1)
        assert manager.probes.health["workers"]() is None


async def test_a_controller_that_needs_no_leadership_writes_on_a_standby_and_nobody_else_does() -> None:
    world = World()
    world.server.put("parents", "a")
    leader = world.manager(leader_election=ELECTION)
    standby = world.manager(leader_election=ELECTION)

    async def make(name: str) -> None:
        await standby.client.create(Child(metadata=ObjectMeta(name=name, namespace="shop")))

    async def reconcile(_: Request) -> None:
        await make("everywhere")

    reconciled_by(standby, reconcile, needs_leadership=False)
    other = World().manager()  # whose reconciles are free, but not by leave of the one that stands by
    refused = list[LeadershipLost]()

    async def trespass(_: Request) -> None:
        with pytest.raises(LeadershipLost) as caught:
            await make("strange")
        refused.append(caught.value)

    builder(other).named("other").streams(lambda: _once(Key("shop", "a"))).with_options(
        needs_leadership=False
    ).complete(trespass)
    async with leader:
        await eventually(lambda: leader.is_leading)
        async with standby, other:
            await eventually(lambda: world.server.writes() and refused)
            assert not standby.is_leading
            with pytest.raises(LeadershipLost):
                await make("outside")
    assert world.server.writes() == ["create children shop/"]


async def _once(key: Key) -> AsyncIterator[Request]:
    yield key


async def test_how_long_a_watch_may_be_silent_can_be_said() -> None:
    world = World()

    async def reconcile(_: Request) -> None: ...

    manager = world.manager(timing=Timing(liveness=5))
    reconciled_by(manager, reconcile)
    async with manager:
        asked = len(world.server.requests)
        await asyncio.sleep(20)
        assert len(world.server.requests) > asked, "a silent watch was begun anew"


async def test_requests_are_counted_as_client_go_counts_them() -> None:
    world = World()

    async def reconcile(_: Request) -> None: ...

    manager = world.manager(leader_election=ELECTION)
    reconciled_by(manager, reconcile)
    async with manager:
        await eventually(lambda: manager.is_leading)
        world.leases.down = True
        await asyncio.sleep(3)
        world.leases.down = False
        await asyncio.sleep(3)

    def counted(method: str, code: str) -> float:
        labels = {"method": method, "code": code, "host": "localhost"}
        return manager.metrics.registry.get_sample_value("rest_client_requests_total", labels) or 0

    assert counted("GET", "200") == 3, "the watches, and the lease"
    assert counted("PUT", "200") >= 2
    assert counted("PUT", "<error>") >= 1


async def test_it_explains_what_came_of_the_last_looks_at_an_object() -> None:
    world = World()
    world.server.put("parents", "a")

    async def reconcile(_: Request) -> Result | None:
        if len(manager.journal.of("parent", Key("shop", "a"))) < 2:
            raise LookupError("the other side is not there")
        return Result(requeue_after=600)

    manager = world.manager(leader_election=ELECTION)
    reconciled_by(manager, reconcile)
    async with manager:
        await eventually(lambda: len(manager.journal.of("parent", Key("shop", "a"))) == 3)
        await asyncio.sleep(50)
        for kind in ("Parent", "parents", "parent", "parents.demo.setpoint.dev"):
            told = manager.explain(kind, Key("shop", "a"))
            (controller,) = told["controllers"]
            assert controller["name"] == "parent"
        assert told["is_leading"]
        assert controller["is_working"]
        assert controller["object"]["resourceVersion"] == "101"
        assert controller["running_for"] is None
        assert 549 < controller["next_in"] <= 550
        assert [look["result"] for look in controller["looks"]] == ["error", "error", "requeue_after"]
        assert controller["looks"][0]["error"] == "LookupError: the other side is not there"
        assert [look["reasons"] for look in controller["looks"]] == [
            ["demo.setpoint.dev/v1 Parent shop/a ADDED"],
            ["retry"],
            ["retry"],
        ]
        assert [watch["problem"] for watch in told["watches"]] == [None, None]
        assert manager.explain("child", Key("shop", "a"))["watched_by"] == ["parent"]
        assert manager.explain("nonsense", Key("", "a"))["known"] == ["parent"]
        assert manager.explain("parent", Key("shop", "z"))["controllers"][0]["object"] is None


async def test_signals_are_handled_only_where_asked_and_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    async with World().manager():
        assert signal.getsignal(signal.SIGTERM) is before
    manager = World().manager()
    running = asyncio.create_task(manager.run(handle_signals=True))
    await manager.wait_started()
    assert signal.getsignal(signal.SIGTERM) is not before
    signal.raise_signal(signal.SIGTERM)
    await running
    assert signal.getsignal(signal.SIGTERM) is before


def test_signals_are_refused_outside_of_the_main_thread() -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(World().manager().run(handle_signals=True))
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert "main thread" in str(errors[0])


async def test_a_controller_can_be_replaced_by_another_of_its_name_without_listing_again() -> None:
    world, seen = World(), list[str]()
    world.server.put("parents", "a")

    def by(who: str) -> Callable[[Request], Awaitable[None]]:
        async def reconcile(request: Request) -> None:
            seen.append(f"{who} {request.name}")

        return reconcile

    manager = world.manager()
    reconciled_by(manager, by("old"))
    async with manager:
        await eventually(lambda: seen == ["old a"])
        asked = len(world.server.requests)
        (old,) = manager.controllers
        with manager.cache.keeping():
            await manager.remove(old)
            assert old not in manager.runnables
            reconciled_by(manager, by("new"))
        await eventually(lambda: seen[1:] == ["new a"])
        world.server.put("parents", "b")
        await eventually(lambda: seen[2:] == ["new b"])
        assert len(world.server.requests) == asked, "the watches went on"


async def test_the_journal_tells_what_a_reconcile_wrote() -> None:
    world = World()
    world.server.put("parents", "a")

    async def reconcile(_: Request) -> None:
        child = Child(metadata=ObjectMeta(name="kid", namespace="shop"))
        await manager.client.create(child)

    manager = world.manager()
    reconciled_by(manager, reconcile)
    async with manager:
        await manager.client.create(Child(metadata=ObjectMeta(name="other", namespace="shop")))
        await eventually(lambda: manager.journal.of("parent", Key("shop", "a")))
        (controller,) = manager.explain("parent", Key("shop", "a"))["controllers"]
        assert controller["looks"][0]["wrote"] == ["create demo.setpoint.dev/v1 Child shop/kid"]
