"""``cache/reflector.py`` against a server in a function, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from setpoint import errors
from setpoint.api.forms import Form, form_of, metadata_only, untyped
from setpoint.api.names import GroupVersionKind
from setpoint.api.selectors import FieldSelection, LabelSelection
from setpoint.cache.reflector import Reflector, how_it_failed
from setpoint.cache.scope import Scope
from setpoint.cache.sharing import Sharing
from setpoint.cache.watch_state import (
    TIMING,
    Doubt,
    Drop,
    Effect,
    How,
    Put,
    Reach,
    Stage,
    Swap,
    Watching,
)
from setpoint.client.client import Client
from setpoint.net.transport import Request
from tests.cache.objects import Thing, thing
from tests.cache.wire import Live, bookmark, frame, is_watch, page, refusal, running, until
from tests.peer import FOREVER, Peer, Reply, status

pytestmark = pytest.mark.virtual_time

GVK = GroupVersionKind("demo.setpoint.dev", "v1", "Thing")


@dataclass
class Run:
    """A reflector under way, and what it has brought about."""

    reflector: Reflector
    peer: Peer
    effects: list[Effect]
    unstreamable: set[GroupVersionKind] = field(default_factory=set)

    def brief(self) -> list[str]:
        return [each for effect in self.effects for each in _brief(effect)]

    async def until(self, *last: str) -> None:
        await until(lambda: tuple(self.brief()[-len(last) :]) == last)

    def asked(self) -> list[str]:
        """The requests: what was asked, and from where."""
        return [_asked(self.peer, index) for index in range(len(self.peer.requests))]


def _brief(effect: Effect) -> list[str]:
    match effect:
        case Drop(one):
            return [f"Drop {one.metadata.name} {one.metadata.resource_version}"]
        case Stage(several) | Put(several):
            what = type(effect).__name__
            return [f"{what} {one.metadata.name} {one.metadata.resource_version}" for one in several]
        case Swap(version) | Reach(version):
            return [f"{type(effect).__name__} {version}"]
        case _:
            return [type(effect).__name__]


def _asked(peer: Peer, index: int) -> str:
    query = peer.query(index)
    if "watch" not in query:
        return f"list {query.get('continue', query.get('resourceVersion', ''))}".strip()
    start = "all" if "sendInitialEvents" in query else query.get("resourceVersion", "")
    return f"watch {start}".strip()


@asynccontextmanager
async def reflecting(
    answer: Any,
    *,
    scope: Scope | None = None,
    form: Form[Any] | None = None,
    unstreamable: set[GroupVersionKind] | None = None,
) -> AsyncIterator[Run]:
    peer = Peer(answer)
    effects: list[Effect] = []
    without = set() if unstreamable is None else unstreamable
    reflector = Reflector(
        Client(transport=peer),
        form or form_of(Thing),
        scope or Scope(GVK),
        effects.append,
        timing=TIMING,
        sharing=Sharing(),
        unstreamable=without,
    )
    async with running(reflector.run):
        yield Run(reflector, peer, effects, without)


def now() -> float:
    return asyncio.get_running_loop().time()


# Streaming


async def test_the_first_list_is_streamed_consistently_and_goes_on_as_the_watch() -> None:
    live = Live()
    async with reflecting([live]) as run:
        live.send(frame("ADDED", "a", 5), frame("ADDED", "b", 3), bookmark(9, end=True))
        live.send(frame("MODIFIED", "a", 10), bookmark(12), frame("DELETED", "b", 13))
        await run.until("Drop b 13")
        assert run.brief() == [
            "Stage a 5", "Stage b 3", "Swap 9", "Put a 10", "Reach 12", "Drop b 13",
        ]  # fmt: skip
    query = run.peer.query()
    assert "resourceVersion" not in query, "neither 0 nor anything: a restart must not go back in time"
    assert query["sendInitialEvents"] == query["allowWatchBookmarks"] == query["watch"] == "true"
    assert 300 <= int(query["timeoutSeconds"]) <= 600
    assert len(run.peer.requests) == 1


async def test_a_stream_without_progress_is_given_up_for_pages_and_that_is_remembered() -> None:
    silent = Reply(200, [frame("ADDED", "a", 5), FOREVER])
    async with reflecting([silent, page(thing("a", 5), version=9), Live()]) as run:
        began = now()
        await run.until("Swap 9")
        assert 29.9 < now() - began < 40
        assert run.brief() == ["Stage a 5", "Forget", "Stage a 5", "Swap 9"]
    assert silent.is_closed
    assert run.unstreamable == {GVK}
    async with reflecting([page(version=9), Live()], unstreamable=run.unstreamable) as run:
        await run.until("Swap 9")
    assert run.asked()[0] == "list", "for the other watches of the kind too"


async def test_a_stream_that_makes_progress_may_take_its_time() -> None:
    class Slow(Reply):
        async def chunks(self) -> AsyncIterator[bytes]:
            for number in range(100):
                await asyncio.sleep(20)
                yield frame("ADDED", f"a{number}", number + 1)
            yield bookmark(200, end=True)
            await asyncio.Event().wait()

    async with reflecting([Slow()]) as run:
        await run.until("Swap 200")
    assert len(run.peer.requests) == 1


async def test_changes_without_end_are_no_progress() -> None:
    """As from a server that does not know the parameter: it never sends the bookmark."""

    class Endless(Reply):
        async def chunks(self) -> AsyncIterator[bytes]:
            for number in range(1, 10**6):
                await asyncio.sleep(1)
                yield frame("MODIFIED", "a", number)

    async with reflecting([Endless(), page(version=99), Live()]) as run:
        began = now()
        await run.until("Swap 99")
        assert 29.9 < now() - began < 40
    assert run.unstreamable == {GVK}


@pytest.mark.parametrize("code", [400, 405, 422])
async def test_a_server_that_refuses_to_stream_is_listed_at_once(code: int) -> None:
    async with reflecting([status(code), page(thing("a", 5), version=9), Live()]) as run:
        began = now()
        await run.until("Swap 9")
        assert now() - began < 0.1
        await until(lambda: len(run.peer.requests) == 3)
        assert run.asked() == ["watch all", "list", "watch 9"]


async def test_a_stream_that_fails_on_the_server_is_listed_next() -> None:
    failing = Reply(200, [refusal(500, "InternalError")])
    async with reflecting([failing, page(version=9), Live()]) as run:
        await run.until("Swap 9")
    assert run.asked()[:2] == ["watch all", "list"]
    assert run.unstreamable == set()


# Pages


async def test_pages_are_fetched_one_after_the_other_and_the_watch_begins_at_their_version() -> None:
    replies = [page(thing("a", 5), version=9, token="t1"), page(thing("b", 6), version=9, token="t2")]
    replies += [page(thing("c", 7), version=9), Live()]
    async with reflecting(replies, unstreamable={GVK}) as run:
        await until(lambda: len(run.peer.requests) == 4)
        assert run.brief() == ["Stage a 5", "Stage b 6", "Stage c 7", "Swap 9"]
        assert run.asked() == ["list", "list t1", "list t2", "watch 9"]
        assert [run.peer.query(i).get("limit") for i in range(3)] == ["500", "500", "500"]
        assert "resourceVersion" not in run.peer.query(0)


async def test_pages_that_expire_are_fetched_anew_in_one_piece() -> None:
    replies = [page(thing("gone", 5), version=9, token="t1"), status(410, "Expired")]
    replies += [page(thing("a", 6), version=12), Live()]
    async with reflecting(replies, unstreamable={GVK}) as run:
        await run.until("Swap 12")
        assert run.brief() == ["Stage gone 5", "Forget", "Stage a 6", "Swap 12"]
        assert "limit" not in run.peer.query(2)


async def test_a_page_that_is_none_is_waited_out() -> None:
    rubbish = Reply(200, {"metadata": {"resourceVersion": "9"}, "items": ["rubbish"]})
    replies = [Reply(200, b"rubbish"), rubbish, page(version=9), Live()]
    async with reflecting(replies, unstreamable={GVK}) as run:
        await until(lambda: run.reflector.problem is not None)
        assert isinstance(run.reflector.problem and run.reflector.problem.error, errors.BadAnswer)
        await run.until("Swap 9")


# Watching


async def test_a_watch_that_ends_in_order_goes_on_at_once_without_a_list() -> None:
    first, second = Live(), Live()
    async with reflecting([page(version=9), first, second], unstreamable={GVK}) as run:
        first.send(frame("ADDED", "a", 10))
        for version in range(16, 21):
            await asyncio.sleep(61)
            first.send(bookmark(version))
        first.end()
        began = now()
        await until(lambda: len(run.peer.requests) == 3)
        assert now() - began < 0.1
        assert run.asked() == ["list", "watch 9", "watch 20"]


async def test_a_watch_that_ends_early_goes_on_at_once_and_must_show_that_its_past_is_the_same() -> None:
    first, second = Live(), Live()
    async with reflecting([page(version=9), first, second], unstreamable={GVK}) as run:
        first.send(frame("ADDED", "a", 10), bookmark(20))
        first.end()
        began = now()
        await until(lambda: len(run.peer.requests) == 3)
        assert now() - began < 0.1
        assert run.asked() == ["list", "watch 9", "watch 9"]
        second.send(frame("ADDED", "a", 10), frame("ADDED", "b", 21))
        await run.until("Put b 21")
        assert run.brief() == ["Swap 9", "Put a 10", "Reach 20", "Put b 21"]


async def test_a_watch_that_ends_at_once_does_not_spin() -> None:
    def answer(request: Request) -> Reply:
        return Reply(200, []) if is_watch(request) else page(thing("a", 9), version=9)

    async with reflecting(answer, unstreamable={GVK}) as run:
        await asyncio.sleep(600)
    assert len(run.peer.requests) < 40


async def test_a_watch_that_breaks_goes_on_after_a_moment_without_a_list() -> None:
    first, second = Live(), Live()
    async with reflecting([page(version=9), first, second], unstreamable={GVK}) as run:
        first.send(frame("ADDED", "a", 10))
        first.break_off(errors.AnswerLost("", "reset"))
        await until(lambda: run.reflector.problem is not None)
        began = now()
        second.send(frame("ADDED", "a", 10))
        second.send(frame("MODIFIED", "a", 11))
        await run.until("Put a 11")
        assert 0.79 < now() - began < 1.7
        assert run.asked() == ["list", "watch 9", "watch 9"], (
            "the last change comes again, and shows it is so"
        )
        assert run.brief() == ["Swap 9", "Put a 10", "Put a 11"]
        assert run.reflector.problem is None


async def test_a_watch_that_died_without_a_word_is_noticed() -> None:
    silent = Live()
    async with reflecting([page(version=9), silent, Live()], unstreamable={GVK}) as run:
        await until(lambda: len(run.peer.requests) == 2)
        began = now()
        await until(lambda: len(run.peer.requests) == 3)
        assert 89.9 < now() - began < 93
    assert silent.is_closed


async def test_the_stream_is_given_more_patience_once_it_is_a_watch() -> None:
    live = Live()
    async with reflecting([live, Live()]) as run:
        live.send(frame("ADDED", "a", 9))
        live.send(bookmark(9, end=True))
        await run.until("Swap 9")
        await asyncio.sleep(80)
        assert len(run.peer.requests) == 1
        await until(lambda: len(run.peer.requests) == 2)
        assert run.asked()[1] == "watch 8"


@pytest.mark.parametrize("as_event", [True, False])
async def test_an_expired_watch_is_listed_again_and_swapped_in_whole(as_event: bool) -> None:
    gone = Reply(200, [refusal(410, "Expired")]) if as_event else status(410, "Expired")
    replies = [page(thing("a", 5), version=9), gone, page(thing("b", 6), version=20), Live()]
    async with reflecting(replies, unstreamable={GVK}) as run:
        await run.until("Swap 20")
        assert run.brief() == ["Stage a 5", "Swap 9", "Stage b 6", "Swap 20"]
        assert run.asked()[:3] == ["list", "watch 9", "list"]


async def test_an_event_that_makes_no_sense_is_listed_over() -> None:
    replies = [page(version=9), Reply(200, [frame("ADDED", "a", 10), b"rubbish\n"]), page(version=20), Live()]
    async with reflecting(replies, unstreamable={GVK}) as run:
        await run.until("Swap 20")
        assert run.brief() == ["Swap 9", "Put a 10", "Swap 20"]


async def test_a_list_that_goes_back_in_time_is_asked_for_again() -> None:
    replies = [page(version=9), status(410, "Expired"), page(version=7), page(version=10), Live()]
    async with reflecting(replies, unstreamable={GVK}) as run:
        await run.until("Swap 10")
        assert [effect for effect in run.effects if isinstance(effect, Doubt)] == [Doubt("7", "9")]


async def test_a_stream_that_goes_back_in_time_is_closed() -> None:
    first, stale, fresh = Live(), Live(), Live()
    async with reflecting([first, status(410, "Expired"), stale, fresh]) as run:
        first.send(frame("ADDED", "a", 9), bookmark(9, end=True))
        first.end()
        stale.send(bookmark(7, end=True), frame("ADDED", "a", 8))
        fresh.send(bookmark(10, end=True))
        await run.until("Swap 10")
        assert stale.is_closed
        assert run.brief() == ["Stage a 9", "Swap 9", "Doubt", "Swap 10"]


# What stands in the way


async def test_a_missing_permission_is_told_and_waited_out(caplog: Any) -> None:
    allowed = False
    live = Live()

    def answer(request: Request) -> Reply:
        return live if allowed else status(403, "Forbidden", "you may not")

    with caplog.at_level(logging.ERROR):
        async with reflecting(answer, scope=Scope(GVK, namespace="shop")) as run:
            await until(lambda: run.reflector.problem is not None)
            problem = run.reflector.problem
            assert problem is not None
            assert problem.verb == "watch"
            assert 'apiGroups: ["demo.setpoint.dev"], resources: ["things"]' in problem.rule
            assert "a Role in namespace shop" in str(problem)
            await asyncio.sleep(1000)
            allowed = True
            live.send(bookmark(9, end=True))
            await run.until("Swap 9")
            assert run.reflector.problem is None
    assert problem.rule in caplog.text
    assert len(run.peer.requests) < 40


async def test_a_kind_that_is_not_there_yet_is_waited_for() -> None:
    replies = [Reply(404, b"404 page not found"), Reply(404, b"404 page not found"), Live()]
    async with reflecting(replies) as run:
        await until(lambda: run.reflector.problem is not None)
        assert "CustomResourceDefinition" in str(run.reflector.problem)
        await until(lambda: run.reflector.problem is None)
        assert run.asked() == ["watch all"] * 3


async def test_a_kind_that_goes_is_complained_of_only_if_it_stays_away(caplog: Any) -> None:
    live, gone = Live(), Reply(404, b"404 page not found")
    async with reflecting([live, gone, gone, Live()]) as run:
        live.send(bookmark(9, end=True))
        await run.until("Swap 9")
        with caplog.at_level(logging.WARNING):
            live.end()
            await until(lambda: len(run.peer.requests) == 2 and run.reflector.problem is not None)
            assert not caplog.records
            await until(lambda: len(run.peer.requests) == 4)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_a_kind_that_discovery_does_not_know_is_waited_for_too() -> None:
    def answer(request: Request) -> Reply:
        return Reply(200, {"kind": "APIGroupDiscoveryList", "items": []})

    async with reflecting(answer, form=untyped("demo.setpoint.dev/v1", "Thing")) as run:
        await until(lambda: run.reflector.problem is not None)
        assert isinstance(run.reflector.problem and run.reflector.problem.error, errors.UnknownKind)
        before = len(run.peer.requests)
        await until(lambda: len(run.peer.requests) > before)


async def test_a_namespace_of_a_kind_that_is_in_none_is_told() -> None:
    group = {
        "metadata": {"name": "demo.setpoint.dev"},
        "versions": [
            {
                "version": "v1",
                "resources": [{"resource": "things", "responseKind": {"kind": "Thing"}, "scope": "Cluster"}],
            }
        ],
    }

    def answer(request: Request) -> Reply:
        items = [group] if request.target.startswith("/apis") else []
        return Reply(200, {"kind": "APIGroupDiscoveryList", "items": items})

    form = untyped("demo.setpoint.dev/v1", "Thing")
    async with reflecting(answer, form=form, scope=Scope(GVK, namespace="shop")) as run:
        await until(lambda: run.reflector.problem is not None)
        assert "in no namespace" in str(run.reflector.problem)


async def test_a_server_that_has_too_much_to_do_is_asked_when_it_says() -> None:
    times: list[float] = []

    def answer(request: Request) -> Reply:
        times.append(now())
        return status(429, "TooManyRequests", headers={"Retry-After": "20"})

    async with reflecting(answer):
        await until(lambda: len(times) > 12)
    assert min(after - before for before, after in itertools.pairwise(times)) > 19.9


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (errors.WatchStalled("", ""), How.STALLED),
        (errors.Expired("", ""), How.EXPIRED),
        (errors.Gone("", ""), How.EXPIRED),
        (errors.Forbidden("", ""), How.DENIED),
        (errors.KindNotServed("", ""), How.DENIED),
        (errors.UnknownKind("", ""), How.DENIED),
        (errors.Unauthorized("", ""), How.BROKEN),
        (errors.CredentialError("", ""), How.BROKEN),
        (errors.ConnectionFailed("", ""), How.BROKEN),
        (errors.AnswerLost("", ""), How.BROKEN),
        (errors.DeadlineExceeded("", ""), How.BROKEN),
        (errors.TooManyRequests("", ""), How.ERRED),
        (errors.ServiceUnavailable("", ""), How.ERRED),
        (errors.ServerTimeout("", ""), How.ERRED),
        (errors.Invalid("", ""), How.REFUSED),
        (errors.BadAnswer("", ""), How.REFUSED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_every_failure_is_one_of_the_ways_to_fail(error: errors.SetpointError, how: How) -> None:
    assert how_it_failed(error) is how


# What is asked for, and what is kept


async def test_the_scope_is_what_the_server_is_asked_for() -> None:
    scope = Scope(
        GVK,
        namespace="shop",
        labels=LabelSelection.parse("app=web"),
        fields=FieldSelection.parse("metadata.name=a"),
    )
    async with reflecting([status(422), page(version=9), Live()], scope=scope) as run:
        await until(lambda: len(run.peer.requests) == 3)
        for index in range(3):
            query = run.peer.query(index)
            assert (query["labelSelector"], query["fieldSelector"]) == ("app=web", "metadata.name=a")
            assert run.peer.path(index) == "/apis/demo.setpoint.dev/v1/namespaces/shop/things"


async def test_metadata_can_be_all_that_is_asked_for() -> None:
    scope = Scope(GVK, metadata_only=True)
    async with reflecting(
        [status(422), page(version=9), Live()], scope=scope, form=metadata_only(Thing)
    ) as run:
        await until(lambda: len(run.peer.requests) == 3)
        accepts = [request.headers["Accept"] for request in run.peer.requests]
    assert "as=PartialObjectMetadata;" in accepts[0]
    assert "as=PartialObjectMetadataList;" in accepts[1]


async def test_managed_fields_are_left_out_if_so_told() -> None:
    managed = {"managedFields": [{"manager": "x"}], "labels": {"app": "web"}}
    live = Live()
    scope = Scope(GVK, strip_managed_fields=True)
    async with reflecting([live], scope=scope) as run:
        live.send(frame("ADDED", "a", 5, **managed), bookmark(9, end=True))
        await run.until("Swap 9")
        (staged,) = [effect for effect in run.effects if isinstance(effect, Stage)]
        assert json.loads(staged.snapshots[0].data) == thing("a", 5, labels={"app": "web"})


async def test_equal_metadata_is_shared() -> None:
    live = Live()
    async with reflecting([live]) as run:
        live.send(frame("ADDED", "a", 5, labels={"x": "y"}), frame("ADDED", "b", 6, labels={"x": "y"}))
        live.send(bookmark(9, end=True))
        await run.until("Swap 9")
        one, other = [
            each for effect in run.effects if isinstance(effect, Stage) for each in effect.snapshots
        ]
        assert one.metadata.labels is other.metadata.labels


async def test_it_ends_only_by_being_cancelled_and_lets_go_of_its_connection() -> None:
    live = Live()
    async with reflecting([live]) as run:
        live.send(bookmark(9, end=True))
        await run.until("Swap 9")
        assert repr(run.reflector) == "<Reflector watching demo.setpoint.dev/v1 Thing>"
        assert isinstance(run.reflector.state, Watching)
        assert run.reflector.state == Watching("9", run.reflector.state.known)
    assert live.is_closed
