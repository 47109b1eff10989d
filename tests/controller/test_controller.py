"""The promises of ``controller/controller.py``, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from setpoint import errors
from setpoint.api.names import GroupVersionKind, Key
from setpoint.cache.scope import Problem, Scope
from setpoint.controller.builder import builder
from setpoint.controller.controller import Controller
from setpoint.controller.mapping import Reason, to_itself
from setpoint.controller.predicates import Predicate
from setpoint.controller.result import Request, Result
from setpoint.controller.sources import Feed, Kind, Source, Stream
from setpoint.controller.worker import current_look
from setpoint.net.transport import Request as HttpRequest
from setpoint.queue.workqueue import LOW_PRIORITY
from tests.controller.world import Child, Parent, Process, Server, child_of, running, until
from tests.peer import Reply, status

pytestmark = pytest.mark.virtual_time

WEB = Key("shop", "web")


class Sudden(BaseException):
    """Not an Exception."""


class Nursery:
    """Keeps a child like each parent: one of the same name, of the same colour."""

    def __init__(self, process: Process) -> None:
        self.client = process.client
        self.asked: list[Request] = []
        self.reasons: list[str] = []

    async def reconcile(self, request: Request) -> Result:
        self.asked.append(request)
        look = current_look()
        assert look is not None
        self.reasons += map(str, look.reasons)
        try:
            parent = await self.client.get(Parent, request.name, namespace=request.namespace)
        except errors.NotFound:
            return Result()
        colour = parent.spec.colour
        try:
            child = await self.client.get(Child, request.name, namespace=request.namespace)
        except errors.NotFound:
            await self.client.create(child_of(request.name, colour, namespace=request.namespace))
            return Result()
        if child.spec.colour != colour:
            child.spec.colour = colour
            await self.client.update(child)
        return Result()


def nursery(process: Process, **options: Any) -> Nursery:
    reconciler = Nursery(process)
    builder(process).for_(Parent).owns(Child).with_options(**options).complete(reconciler)
    return reconciler


def colours(server: Server, plural: str = "children") -> dict[str, str]:
    return {key.name: obj["spec"]["colour"] for key, obj in server.objects[plural].items()}


def forbidding(plural: str) -> Any:
    def refuse(request: HttpRequest) -> Reply | None:
        if request.method == "GET" and f"/{plural}" in request.target:
            return status(403, "Forbidden", f"{plural}.demo.setpoint.dev is forbidden: user cannot watch")
        return None

    return refuse


def without_crd(plural: str) -> Any:
    def refuse(request: HttpRequest) -> Reply | None:
        if f"/{plural}" in request.target:
            return status(404, "NotFound", "the server could not find the requested resource")
        return None

    return refuse


@asynccontextmanager
async def at_work(server: Server, **options: Any) -> AsyncIterator[tuple[Process, Nursery, Controller]]:
    process = Process(server)
    reconciler = nursery(process, **options)
    (controller,) = process.added
    async with running(process):
        await until(lambda: controller.is_working)
        yield process, reconciler, controller


# A change's way to the world.


async def test_what_is_there_at_the_start_is_reconciled_and_what_changes_later() -> None:
    server = Server()
    server.put("parents", "web")
    server.put("parents", "api", colour="blue")
    async with at_work(server):
        await until(lambda: colours(server) == {"web": "red", "api": "blue"})
        server.put("parents", "web", colour="green")
        await until(lambda: colours(server) == {"web": "green", "api": "blue"})


async def test_drift_of_a_child_is_put_back() -> None:
    server = Server()
    server.put("parents", "web")
    async with at_work(server) as (_, _, controller):
        await until(lambda: colours(server) == {"web": "red"})
        drifted = server.objects["children"][WEB]
        server._store("children", {**drifted, "spec": {"colour": "pink"}})
        await until(lambda: colours(server) == {"web": "red"})
        server.delete("children", "web")
        await until(lambda: colours(server) == {"web": "red"})
        await until(lambda: controller.stats().queue.taken == 0)
        written = len(server.writes())
        await asyncio.sleep(100)
        assert len(server.writes()) == written, "at its fixed point it writes nothing"


async def test_a_restart_reconciles_everything_again() -> None:
    server = Server()
    for number in range(20):
        server.put("parents", f"web-{number}")
    async with at_work(server, workers=4) as (_, first, _):
        await until(lambda: len(first.asked) >= 5)
    server.put("parents", "late")
    server.delete("parents", "web-7")
    async with at_work(server) as (_, second, _):
        await until(lambda: len(colours(server)) >= 20)
        await until(lambda: len(set(second.asked)) >= 20)
    assert "late" in colours(server)


async def test_reasons_say_which_kind_and_key_changed_and_how() -> None:
    server = Server()
    server.put("parents", "web")
    async with at_work(server) as (_, reconciler, _):
        await until(lambda: "demo.setpoint.dev/v1 Child shop/web ADDED" in reconciler.reasons)
        assert reconciler.reasons[0] == "demo.setpoint.dev/v1 Parent shop/web ADDED"
        server.put("parents", "web", colour="blue")
        await until(lambda: "demo.setpoint.dev/v1 Parent shop/web MODIFIED" in reconciler.reasons)
        server.delete("parents", "web")
        await until(lambda: "demo.setpoint.dev/v1 Parent shop/web DELETED" in reconciler.reasons)


async def test_the_first_list_has_low_priority_and_a_change_goes_before_it() -> None:
    server = Server()
    for number in range(200):
        server.put("parents", f"old-{number:03}")
    process, order = Process(server), list[str]()

    async def reconcile(request: Request) -> None:
        order.append(request.name)
        await asyncio.sleep(0.01)

    controller = builder(process).for_(Parent).complete(reconcile)
    async with running(process):
        await until(lambda: len(order) >= 20)
        assert set(controller.stats().queue.depth) == {LOW_PRIORITY}
        server.put("parents", "new")
        at = len(order)
        await until(lambda: len(order) == 201)
    assert order.index("new") - at <= 2, "it waits for one turn, not for the list"


async def test_reads_are_never_behind_the_controllers_own_writes() -> None:
    server = Server()
    server.put("parents", "web")
    seen: list[str] = []
    process = Process(server)

    async def reconcile(request: Request) -> None:
        if not seen:
            child = await process.client.create(child_of("web"))
            server.is_late = True
            child.spec.colour = "blue"
            await process.client.update(child)
            asyncio.get_running_loop().call_later(0.3, server.catch_up)
        seen.append((await process.client.get(Child, request.name)).spec.colour)
        seen.append((await process.client.list(Child))[0].spec.colour)

    builder(process).for_(Parent).owns(Child).complete(reconcile)
    async with running(process):
        await until(lambda: len(seen) >= 2)
    assert set(seen) == {"blue"}
    assert process.value("setpoint_cache_wait_seconds_count", controller="parent") >= 1
    assert "get children shop/web" not in server.requests, "it was read from the cache"


async def test_what_comes_while_a_look_waits_for_its_own_write_needs_no_look_of_its_own() -> None:
    server = Server()
    server.put("parents", "web")
    process, looks = Process(server), list[tuple[str, ...]]()

    async def reconcile(request: Request) -> None:
        look = current_look()
        assert look is not None
        looks.append(tuple(map(str, look.reasons)))
        parent = await process.client.get(Parent, request.name)
        if len(looks) == 1:
            server.is_late = True
            await process.client.create(child_of("web"))
            parent.metadata.labels = {"seen": "yes"}
            await process.client.update(parent)
            asyncio.get_running_loop().call_later(0.3, server.catch_up)
        assert parent.metadata.labels == {"seen": "yes"}

    builder(process).for_(Parent).owns(Child).complete(reconcile)
    async with running(process):
        await until(lambda: len(looks) >= 2)
        await asyncio.sleep(5)
    assert looks[1:] == [
        ("demo.setpoint.dev/v1 Child shop/web ADDED", "demo.setpoint.dev/v1 Parent shop/web MODIFIED")
    ]


async def test_own_events_are_not_dropped() -> None:
    server = Server()
    server.put("parents", "web")
    async with at_work(server) as (_, reconciler, _):
        await until(lambda: len(reconciler.asked) == 2)
        assert reconciler.reasons[-1] == "demo.setpoint.dev/v1 Child shop/web ADDED"


# 1. When workers begin.


async def test_workers_begin_when_all_sources_are_synced() -> None:
    server = Server()
    server.put("parents", "web")
    server.refuse = lambda request: (
        status(503, "ServiceUnavailable") if "/children" in request.target else None
    )
    process = Process(server)
    reconciler = nursery(process)
    async with running(process):
        await asyncio.sleep(20)
        assert not reconciler.asked
        server.refuse = lambda _: None
        await until(lambda: colours(server) == {"web": "red"})


async def test_what_is_awaited_for_too_long_is_said_again_and_again_and_nothing_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server()
    server.refuse = lambda request: (
        status(503, "ServiceUnavailable", "sleepy") if "/children" in request.target else None
    )
    process = Process(server)
    nursery(process)
    (controller,) = process.added
    async with running(process):
        await asyncio.sleep(600)
        told = [each.getMessage() for each in caplog.records if "has waited" in each.getMessage()]
        assert len(told) in (4, 5), "every two minutes"
        assert "Child" in told[0]
        assert "sleepy" in told[0]
        assert not controller.is_working
        assert any("sleepy" in problem for problem in controller.problems)


# 2. What is refused.


async def test_a_missing_permission_stops_only_the_controller_that_needs_it_loudly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server()
    server.put("parents", "web")
    server.refuse = forbidding("children")
    process = Process(server)
    needy = nursery(process)
    others: list[Request] = []

    async def other(request: Request) -> None:
        others.append(request)

    builder(process).named("other").for_(Parent).complete(other)
    stopped, working = process.added
    async with running(process):
        await until(lambda: others == [WEB])
        await asyncio.sleep(100)
        assert not needy.asked
        assert (stopped.is_working, working.is_working) == (False, True)
        said = [each for each in caplog.records if each.name == "setpoint.controller.parent"]
        (line,) = [each.getMessage() for each in said if each.levelno == logging.ERROR]
        assert line.startswith("parent stops until this is mended: watch demo.setpoint.dev/v1 Child")
        assert "forbidden" in line
        for word in ('apiGroups: ["demo.setpoint.dev"]', 'resources: ["children"]', "list, watch"):
            assert word in line
        (problem,) = stopped.problems
        assert problem in line
        assert working.problems == ()

        server.refuse = lambda _: None
        await until(lambda: colours(server) == {"web": "red"})
        assert stopped.problems == ()


async def test_a_missing_crd_stops_only_the_controller_that_needs_it_and_it_starts_when_it_appears(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server()
    server.put("parents", "web")
    server.refuse = without_crd("parents")
    process = Process(server)
    reconciler = nursery(process)
    async with running(process):
        await asyncio.sleep(50)
        assert not reconciler.asked
        (line,) = [each.getMessage() for each in caplog.records if "stops until" in each.getMessage()]
        assert "v1 Parent" in line
        assert "CustomResourceDefinition installed" in line
        server.refuse = lambda _: None
        await until(lambda: colours(server) == {"web": "red"})


async def test_a_permission_that_is_taken_away_stops_it_until_it_is_given_back() -> None:
    server = Server()
    async with at_work(server) as (_, reconciler, controller):
        server.refuse = forbidding("children")
        server.cut()
        await until(lambda: not controller.is_working)
        server.put("parents", "web")
        await asyncio.sleep(100)
        assert not reconciler.asked, "what it sees of children is out of date"

        server.refuse = lambda _: None
        await until(lambda: colours(server) == {"web": "red"})


async def test_a_refused_watch_that_is_then_out_of_reach_is_refused_still() -> None:
    server = Server()
    async with at_work(server) as (_, reconciler, controller):
        server.refuse = forbidding("children")
        server.cut()
        await until(lambda: not controller.is_working)
        server.refuse = lambda request: status(503, "Unavailable") if "/children" in request.target else None
        server.put("parents", "web")
        await asyncio.sleep(300)
        assert not controller.is_working
        assert not reconciler.asked


async def test_an_outage_does_not_stop_it() -> None:
    server = Server()
    async with at_work(server) as (_, reconciler, controller):
        server.refuse = lambda request: status(503, "Unavailable") if "watch" in request.target else None
        server.cut()
        await asyncio.sleep(100)
        assert controller.is_working
        server.refuse = lambda _: None
        server.put("parents", "web")
        await until(lambda: reconciler.asked)


# 3. The end.


class Slow:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begun: list[Request] = []
        self.ended: list[Request] = []

    async def reconcile(self, request: Request) -> None:
        self.begun.append(request)
        await asyncio.sleep(self.seconds)
        self.ended.append(request)


async def test_on_stop_no_reconcile_starts_and_those_that_run_finish() -> None:
    server = Server()
    for number in range(10):
        server.put("parents", f"web-{number}")
    process, slow = Process(server), Slow(20)
    builder(process).for_(Parent).with_options(workers=2).complete(slow)
    async with running(process):
        await until(lambda: len(slow.begun) == 2)
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began == pytest.approx(20, abs=1)
    assert len(slow.begun) == 2
    assert sorted(slow.ended) == sorted(slow.begun)


async def test_those_that_do_not_finish_in_time_are_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.put("parents", "web")
    process, slow = Process(server), Slow(1000)
    builder(process).for_(Parent).with_options(grace=5).complete(slow)
    async with running(process):
        await until(lambda: slow.begun)
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=1)
    assert not slow.ended
    assert "shop/web took longer than 5 s" in caplog.text


async def test_told_a_second_time_it_does_not_wait() -> None:
    server = Server()
    server.put("parents", "web")
    process, slow = Process(server), Slow(1000)
    controller = builder(process).for_(Parent).build(slow)
    async with process.cache:
        task = asyncio.create_task(controller.run())
        await until(lambda: slow.begun)
        task.cancel()
        await asyncio.sleep(3)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task], timeout=1)
        assert task.cancelled()


async def test_told_a_third_time_it_leaves_behind_what_is_stuck() -> None:
    server = Server()
    server.put("parents", "web")
    begun = 0

    async def stuck(_: Request) -> None:
        """As one in a thread: cancelled, it waits for the thread; cancelled again, it does not."""
        nonlocal begun
        begun += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    process = Process(server)
    controller = builder(process).for_(Parent).build(stuck)
    async with process.cache:
        task = asyncio.create_task(controller.run())
        await until(lambda: begun)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(3)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task], timeout=1)
        assert task.cancelled()


async def test_it_stops_at_once_while_it_is_not_synced_or_refused() -> None:
    server = Server()
    server.put("parents", "web")
    async with at_work(server) as (_, _, controller):
        server.refuse = forbidding("children")
        server.cut()
        await until(lambda: not controller.is_working)
        server.put("parents", "api")
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 1

    process = Process(server)
    nursery(process)
    async with running(process):
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 1


async def test_what_it_needed_of_the_cache_is_let_go_at_the_end() -> None:
    process = Process(Server())
    controller = builder(process).for_(Parent).owns(Child).build(Slow(0))
    async with process.cache:
        task = asyncio.create_task(controller.run())
        await until(lambda: controller.is_working)
        assert len(process.cache.stats()) == 2
        task.cancel()
        await asyncio.wait([task])
        assert process.cache.stats() == []
    with pytest.raises(RuntimeError, match="has run: make a new one"):
        await controller.run()


# 4. Sources that raise, and that come and go.


class Broken(Source):
    """Raises twice, then works."""

    def __init__(self) -> None:
        self.begun: list[float] = []

    async def run(self, feed: Feed) -> None:
        self.begun.append(asyncio.get_running_loop().time())
        if len(self.begun) <= 2:
            raise OSError("no such socket")
        feed.add(WEB, 0, Reason("stream"))


class Troubled(Source):
    """Has problems of its own, and does not tell when they change."""

    def __init__(self) -> None:
        self.now: tuple[Problem, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.now

    async def run(self, feed: Feed) -> None:
        del feed
        await asyncio.Event().wait()


async def test_a_source_that_does_not_tell_when_its_problems_change_is_asked_every_second() -> None:
    process, source = Process(Server()), Troubled()
    controller = builder(process).for_(Parent).reads(source).complete(Slow(0))
    async with running(process):
        await until(lambda: controller.is_working)
        refusal = errors.Forbidden("watch toys", "no")
        source.now = (Problem(Scope(GroupVersionKind("demo", "v1", "Toy")), "watch", refusal, None),)
        await until(lambda: not controller.is_working, within=2)
        source.now = ()
        await until(lambda: controller.is_working, within=2)


async def test_a_source_that_raises_is_begun_anew_and_disturbs_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, source, slow = Server(), Broken(), Slow(0)
    server.put("parents", "api")
    process = Process(server)
    controller = builder(process).for_(Parent).reads(source).complete(slow)
    async with running(process):
        await until(lambda: len(slow.ended) == 2)
        assert slow.ended == [Key("shop", "api"), WEB]
        first, second, third = source.begun
        assert 0.5 <= second - first <= 1
        assert 1 <= third - second <= 2
        assert process.value("setpoint_callback_errors_total", controller="parent") == 2
        assert "no such socket" in caplog.text
        assert controller.is_working


async def test_sources_come_and_go_while_it_runs() -> None:
    server, slow = Server(), Slow(0)
    server.put("children", "web")
    process = Process(server)
    controller = builder(process).for_(Parent).complete(slow)
    async with running(process):
        await until(lambda: controller.is_working)
        end = controller.add_source(Kind(process.cache, Child, to_itself))
        await until(lambda: slow.ended == [WEB])
        assert [str(kind) for kind in controller.kinds] == [
            "demo.setpoint.dev/v1 Parent",
            "demo.setpoint.dev/v1 Child",
        ]
        end()
        end()
        server.put("children", "api")
        await asyncio.sleep(100)
        assert slow.ended == [WEB]
        assert len(process.cache.stats()) == 1


# How it is.


async def test_stats_show_what_runs_what_failed_and_what_waits() -> None:
    server = Server()
    for name in ("bad", "slow", "later"):
        server.put("parents", name)
    process = Process(server)
    told: list[tuple[str, str, str]] = []

    async def reconcile(request: Request) -> Result:
        if request.name == "bad":
            raise errors.TerminalError("no such image")
        if request.name == "slow":
            await asyncio.sleep(1000)
        return Result(requeue_after=500)

    controller = builder(process).for_(Parent).with_options(workers=2, grace=0).complete(reconcile)
    controller.on_look(lambda name, key, looked: told.append((name, key.name, looked.came_to)))
    assert controller.last_look(WEB) is None
    async with running(process):
        await until(lambda: controller.is_working)
        await asyncio.sleep(100)
        stats = controller.stats()
        assert (stats.name, stats.is_working, stats.problems, stats.workers) == ("parent", True, (), 2)
        assert list(stats.running) == [Key("shop", "slow")]
        assert 90 < stats.running[Key("shop", "slow")] <= 101
        assert {key.name: looked.error for key, looked in stats.errors.items()} == {"bad": "no such image"}
        assert (stats.queue.taken, stats.queue.delayed) == (1, 1)
        later = controller.last_look(Key("shop", "later"))
        assert later is not None
        assert later.again_in == 500
        assert repr(controller).startswith("<Controller parent, working: <WorkQueue parent")
        assert process.value("controller_runtime_max_concurrent_reconciles", controller="parent") == 2
    assert sorted(told) == [("parent", "bad", "error"), ("parent", "later", "requeue_after")]
    assert not controller.is_working
    assert controller.problems == ()


async def test_a_key_can_be_asked_for_by_hand() -> None:
    process, slow = Process(Server()), Slow(0)
    controller = builder(process).for_(Parent).complete(slow)
    async with running(process):
        await until(lambda: controller.is_working)
        controller.look_at(WEB)
        await until(lambda: slow.ended == [WEB])


async def test_no_reconcile_starts_without_leadership() -> None:
    server, slow = Server(), Slow(0)
    server.put("parents", "web")
    process = Process(server)
    process.is_leading = False
    builder(process).for_(Parent).complete(slow)
    everywhere = Slow(0)
    builder(process).named("everywhere").for_(Parent).with_options(needs_leadership=False).complete(
        everywhere
    )
    async with running(process):
        await until(lambda: everywhere.ended == [WEB])
        await asyncio.sleep(10)
        assert not slow.begun
        process.is_leading = True
        await until(lambda: slow.ended == [WEB])


@pytest.mark.parametrize("seconds", [None, "soon", float("inf"), float("nan")])
async def test_a_backoff_that_makes_no_sense_loses_no_key(
    caplog: pytest.LogCaptureFixture, seconds: Any
) -> None:
    server, asked = Server(), 0
    server.put("parents", "web")
    process = Process(server)

    async def reconcile(_: Request) -> None:
        nonlocal asked
        asked += 1
        raise OSError("no")

    def backoff(failures: int) -> Any:
        if seconds is None:
            raise ZeroDivisionError(failures)
        return seconds

    builder(process).for_(Parent).with_options(backoff=backoff).complete(reconcile)
    async with running(process):
        await until(lambda: asked == 4)
    assert "the usual one is used" in caplog.text


@pytest.mark.parametrize(
    ("options", "says"),
    [({"workers": 0}, "at least one"), ({"timeout": -1}, "some seconds")],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options: Any, says: str) -> None:
    process = Process(Server())
    with pytest.raises(ValueError, match=says):
        builder(process).for_(Parent).with_options(**options).build(Slow(0))
    assert process.cache.stats() == [], "and nothing stays declared"


def test_a_name_is_one_that_metrics_can_show() -> None:
    process = Process(Server())
    for name in ("Web", "web app", "-web", "wéb"):
        with pytest.raises(ValueError, match="cannot name a controller"):
            Controller(name, Slow(0), [], cache=process.cache, metrics=process.metrics)


async def test_a_stream_that_ends_is_fine(caplog: pytest.LogCaptureFixture) -> None:
    async def keys() -> AsyncIterator[Request]:
        yield WEB

    process, slow = Process(Server()), Slow(0)
    caplog.set_level(logging.INFO)
    builder(process).named("stream").reads(Stream(keys)).complete(slow)
    async with running(process):
        await until(lambda: slow.ended == [WEB])
        await asyncio.sleep(10)
    assert "has ended" in caplog.text


# A worker that ends although nobody stopped it.


@pytest.mark.parametrize("error", [OSError("no epoch"), SystemExit(3), asyncio.CancelledError(), Sudden()])
async def test_a_worker_that_ends_is_logged_counted_and_restarted(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    server, broken = Server(), [error]
    process = Process(server)
    reconciler = Nursery(process)

    def may_start() -> bool:
        if broken:
            raise broken[0]
        return True

    kind = Kind(process.cache, Parent, to_itself)
    options: Any = {"cache": process.cache, "metrics": process.metrics, "may_start": may_start}
    controller = Controller("parent", reconciler, [kind], workers=2, **options)
    server.put("parents", "web")
    async with running(process, controller):
        await until(lambda: len(controller.ended_workers) == 2)
        assert not controller.is_working
        assert "worker 1 of 2 ended: " in controller.problems[0]
        broken.clear()
        await until(lambda: colours(server) == {"web": "red"})
        await until(lambda: controller.is_working and not controller.ended_workers)
        server.put("parents", "api", colour="blue")
        await until(lambda: colours(server) == {"web": "red", "api": "blue"})
    assert process.value("setpoint_worker_restarts_total", controller="parent") >= 2
    assert "controller 'parent': worker 1 ended unexpectedly: " in caplog.text
    assert "restarting in" in caplog.text


async def test_a_worker_that_is_cancelled_from_outside_is_restarted() -> None:
    server = Server()
    async with at_work(server, workers=2) as (_, _, controller):
        for task in asyncio.all_tasks():
            if task.get_name() == "worker 1 of parent":
                task.cancel()
        await until(lambda: controller.ended_workers)
        assert controller.is_working, "there is another"
        await until(lambda: not controller.ended_workers)
        server.put("parents", "web")
        await until(lambda: colours(server) == {"web": "red"})


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), Sudden()])
async def test_no_error_of_a_source_ends_it(error: BaseException) -> None:
    server, reconciled, raised = Server(), list[Request](), [error]
    process = Process(server)

    async def keys() -> AsyncIterator[Request]:
        if raised:
            raise raised.pop()
        yield WEB
        await asyncio.Event().wait()

    async def reconcile(request: Request) -> None:
        reconciled.append(request)

    builder(process).for_(Parent).reads(Stream(keys)).complete(reconcile)
    async with running(process):
        await until(lambda: WEB in reconciled)
    assert process.value("setpoint_callback_errors_total", controller="parent") == 1


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), Sudden()])
async def test_no_error_of_a_mapper_or_predicate_ends_its_source(error: BaseException) -> None:
    server, reconciled, raised = Server(), list[Request](), [error, error]
    process = Process(server)

    def fail(_: object) -> None:
        if raised:
            raise raised.pop()

    def when(seen: Any) -> bool:
        fail(seen)
        return True

    def mapper(obj: Any) -> list[Request]:
        fail(obj)
        return [Key(obj.metadata.namespace, obj.metadata.name)]

    async def reconcile(request: Request) -> None:
        reconciled.append(request)

    builder(process).for_(Parent).watches(Child, mapper, when=Predicate(when)).complete(reconcile)
    server.put("children", "web")
    async with running(process):
        await until(lambda: WEB in reconciled)
