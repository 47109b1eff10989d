"""Setpoint with one mistake each, and the operators that would suffer from it.

Here the operator is right and the framework is not: a part of it is exchanged for the time of the proof.  The
twin is the same operator with Setpoint as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager
from typing import Any

from setpoint.api import Key, MergePatch
from setpoint.cache import reflector
from setpoint.cache.watch_state import Watching
from setpoint.client import auth
from setpoint.client.auth import Credentials
from setpoint.client.client import Client, ignore_not_found
from setpoint.controller import Request, Result, builder
from setpoint.controller.context import Context
from setpoint.controller.hot_loop import HotLoops
from setpoint.errors import AnswerLost, Gone, RetryLater, ServerError, SetpointError
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager import epoch, lease, lease_state
from setpoint.manager.lease_state import Leading
from setpoint.manager.manager import Manager
from setpoint.testing.proof import process
from setpoint.testing.proof.cloud import CloudError
from setpoint.testing.proof.plans import Pass
from setpoint.testing.proof.process import Subject
from tests.mutants.operators import LIFE, ONE, Mutant, cloud, counted_children, is_of
from tests.mutants.widgets import (
    Longhand,
    Widget,
    child,
    config_map,
    create,
    delete,
    delete_map,
    operator_of,
)


@contextmanager
def exchanged(place: Any, name: str, other: Any) -> Iterator[None]:
    """Have a part of Setpoint be another, inside the block."""
    kept = getattr(place, name)
    setattr(place, name, other)
    try:
        yield
    finally:
        setattr(place, name, kept)


def plain(*, wrong: bool) -> Subject:
    """An operator as the guide has it; what is wrong is in Setpoint."""
    del wrong

    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))
        widget.status.done = widget.spec.text

    return operator_of(reconcile)


def right_children(*, wrong: bool) -> Subject:
    """Children with generated names, which a list that is too old makes again."""
    del wrong
    return counted_children(wrong=False)


# ---- 17, L2: leadership ----------------------------------------------------------------------------


def _wall(_self: object) -> float:
    here = process.current.get()
    return 0.0 if here is None else here.clock.utc().timestamp()


def wall_clock() -> AbstractContextManager[None]:
    return exchanged(epoch.SteadyClock, "now", _wall)


@contextmanager
def no_deadline() -> Iterator[None]:
    def much_later(state: Leading, _settings: object) -> float:
        return state.sent_at + 1_000

    with exchanged(lease, "valid_until", much_later), exchanged(lease_state, "valid_until", much_later):
        yield


def unguarded() -> AbstractContextManager[None]:
    return exchanged(epoch.Epoch, "__call__", lambda _epoch, _call: None)


def in_a_while(*, wrong: bool) -> Subject:
    """One child is made at once, another a little later: who is paused meanwhile wakes up with that to do."""
    del wrong

    async def at_once(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))

    async def later(widget: Widget, ctx: Context) -> None:
        await asyncio.sleep(5)
        await ctx.apply(child(widget, "-2", text=widget.spec.text))

    operator = operator_of(at_once)
    operator.controller(Widget, owns=[ConfigMap], name="later")(later)
    return operator


# ---- 25: credentials -------------------------------------------------------------------------------


@contextmanager
def read_once() -> Iterator[None]:
    async def never(self: Credentials, used: object = None) -> bool:
        del self, used
        return False

    with exchanged(Credentials, "refresh", never), exchanged(auth, "FILES_EVERY", 1e9):
        yield


# ---- 26, 27, 30: watches ---------------------------------------------------------------------------


def patient() -> AbstractContextManager[None]:
    return exchanged(reflector.Reflector, "_patience", lambda _self: 1e9)


def any_version() -> AbstractContextManager[None]:
    watch_once = Client.watch_once

    def from_zero(self: Client, *args: Any, **options: Any) -> Any:
        if options.get("initial_events"):
            options["resource_version"] = "0"
        return watch_once(self, *args, **options)

    return exchanged(Client, "watch_once", from_zero)


def skips() -> AbstractContextManager[None]:
    connect = reflector.Reflector._connect

    async def one_too_far(self: Any, state: Any) -> None:
        if isinstance(state, Watching) and state.version and self._client is not None:
            state = Watching(str(int(state.version) + 1), state.known)
        await connect(self, state)

    return exchanged(reflector.Reflector, "_connect", one_too_far)


# ---- V3, V8, S2: watches of one's own --------------------------------------------------------------


class Watcher:
    """Watches ConfigMaps by itself, and tells how many there are, or how often one came."""

    needs_leadership = False

    def __init__(
        self,
        manager: Manager,
        *,
        counts: bool = False,
        ends_at: tuple[type[Exception], ...] = (),
        from_now: bool = False,
    ) -> None:
        self.client = manager.plain_client
        self.counts, self.ends_at, self.from_now = counts, ends_at, from_now
        self.names: dict[str, int] = {}

    @property
    def number(self) -> int:
        return sum(self.names.values()) if self.counts else len(self.names)

    async def run(self) -> None:
        version = ""
        while True:
            try:
                if not version:
                    found = await self.client.list(ConfigMap, namespace="default")
                    version = found.resource_version
                    now = {each.metadata.name or "" for each in found}
                    self.names = {name: self.names.get(name, 1) for name in now}
                async for seen in self._watch(version):
                    version = seen
            except self.ends_at:
                await asyncio.Event().wait()
            except Gone:
                version = ""
            except AnswerLost:
                if self.from_now:
                    version = await self._now()
            except SetpointError:
                version = "" if self.from_now else version
                await asyncio.sleep(1)

    async def _now(self) -> str:
        try:
            return (await self.client.list(ConfigMap, namespace="default")).resource_version
        except SetpointError:
            return ""

    async def _watch(self, version: str) -> AsyncIterator[str]:
        """The versions it has seen."""
        connection = self.client.watch_once(
            ConfigMap, namespace="default", resource_version=version, patience=lambda: 90.0
        )
        async with aclosing(connection):
            async for batch in connection:
                for frame in batch:
                    name = frame.metadata.name
                    if frame.type == "DELETED":
                        self.names.pop(name, None)
                    elif frame.type == "ADDED":
                        self.names[name] = self.names.get(name, 0) + 1
                    yield frame.metadata.resource_version


class Tells:
    def __init__(self, manager: Manager, watcher: Watcher) -> None:
        self.client, self.watcher = manager.client, watcher

    async def reconcile(self, request: Request) -> Result:
        widget = await ignore_not_found(self.client.get(Widget, request.name, namespace="default"))
        number = self.watcher.number
        if widget is not None and (widget.status.count != number or not widget.status.done):
            patch = MergePatch({"status": {"count": number, "done": "yes"}})
            await self.client.patch(Widget, request.name, patch, namespace="default", subresource="status")
        return Result(requeue_after=10)


def watches(**how: Any) -> Subject:
    def add(manager: Manager) -> object:
        watcher = manager.add(Watcher(manager, **how))
        return builder(manager).named("widget").for_(Widget).complete(Tells(manager, watcher))

    return Longhand(add)


MAPS = (create(), config_map("x"), config_map("y"), delete_map("x"), delete())


# ---- V10, S3, I3, X1, C1 ---------------------------------------------------------------------------


async def _is_there(where: Any, name: str) -> bool:
    return await ignore_not_found(where.get(ConfigMap, name, namespace="default")) is not None


def waits_for_the_cache(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))
        name = widget.metadata.name or ""
        while (
            wrong and await _is_there(ctx.client.live, name) and not await _is_there(ctx.client.cache, name)
        ):
            await asyncio.sleep(1)

    return operator_of(reconcile)


def swallows(*, wrong: bool) -> Subject:
    done: set[str] = set()

    async def reconcile(widget: Widget, ctx: Context) -> None:
        obj = child(widget, "-1")
        ctx.set_controller_reference(obj)
        name = obj.metadata.name or ""
        found = await ignore_not_found(ctx.client.live.get(ConfigMap, name, namespace="default"))
        if name in done or (found is not None and is_of(widget, found)):
            return
        if found is not None:
            raise RetryLater(5, "it is its namesake's, and will be collected")
        try:
            await ctx.client.create(obj)
        except ServerError:
            if not wrong:
                raise
        if wrong:
            done.add(name)

    return operator_of(reconcile, owns=False)


_SOON = 10.0  # seconds in which the garbage collector comes, nearly always


def adopts(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        name = widget.metadata.name or ""
        found = await ignore_not_found(ctx.client.live.get(ConfigMap, name, namespace="default"))
        if wrong and found is not None:
            made = widget.metadata.creation_timestamp
            if not is_of(widget, found) and made is not None and (ctx.now() - made).total_seconds() < _SOON:
                raise RetryLater(_SOON, "it is its namesake's, and will be collected")
            return  # by now it would be gone
        await ctx.apply(child(widget))

    return operator_of(reconcile, owns=False)


def makes_another(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        del ctx
        count = widget.status.attempts
        if count and await cloud.get(_id(widget, count, wrong=wrong)) is not None:
            return
        try:
            await cloud.create(_id(widget, count + 1, wrong=wrong))
        except CloudError as error:
            if error.code != 409:
                raise
        widget.status.attempts = count + 1 if wrong else 1

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del ctx
        for number in range(1, widget.status.attempts + 2):
            if await cloud.get(_id(widget, number, wrong=wrong)) is not None:
                await cloud.delete(_id(widget, number, wrong=wrong))

    return operator_of(reconcile, clean_up, owns=False)


def _id(widget: Widget, number: int, *, wrong: bool) -> str:
    return f"t-{widget.metadata.uid}-{number if wrong else 1}"


def in_an_hour(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        began = widget.metadata.creation_timestamp
        if wrong and began is not None and (ctx.now() - began).total_seconds() > 3000:
            widget.status.phase = "Failed"
        await ctx.apply(child(widget, text=widget.spec.text))
        widget.status.done = "yes"

    return operator_of(reconcile)


@contextmanager
def by_name() -> Iterator[None]:
    """Hot loops are found by the name of an object, and outlive it."""
    primary, wait = HotLoops._primary, HotLoops.wait

    def named(self: HotLoops, request: Key, _: str) -> Any:
        return primary(self, request, "")

    def wait_named(self: HotLoops, request: Key, *, uid: str = "", **options: Any) -> float:
        del uid
        return wait(self, request, **options)

    with (
        exchanged(HotLoops, "_primary", named),
        exchanged(HotLoops, "wait", wait_named),
        exchanged(HotLoops, "forget", lambda *_: None),
    ):
        yield


def with_status(*, wrong: bool) -> Subject:
    del wrong
    return in_an_hour(wrong=False)


AGAIN = (*(create(), delete()) * 12, create())  # more often than a loop goes round before it is found

MORE: tuple[Mutant, ...] = (
    Mutant(
        "H1", "hot loops are known by name", "none", ("O9", "O4"), with_status, steps=AGAIN, breaking=by_name
    ),
    Mutant("17", "the lease is kept by the calendar", "C1", ("O12",), plain, breaking=wall_clock),
    Mutant("25", "the token is read once", "C2", ("O1", "O3"), plain, breaking=read_once),
    Mutant("26", "a silent watch is not noticed", "V7", ("O3", "O1", "O9"), plain, breaking=patient),
    Mutant(
        "27",
        "the first list may be of any version",
        "V9a",
        ("O8",),
        right_children,
        steps=ONE,
        at_most=(("ConfigMap", 1),),
        breaking=any_version,
    ),
    Mutant("30", "a watch goes on one too far", "V5", ("O3", "O2", "O9"), plain, breaking=skips),
    Mutant("L1b", "a write is not held against the lease", "L1", ("O12",), in_a_while, breaking=unguarded),
    Mutant("L2", "leads on when the lease cannot be renewed", "L2", ("O12",), plain, breaking=no_deadline),
    Mutant(
        "V3", "counts what it is told twice", "V3", ("O3",), lambda wrong: watches(counts=wrong), steps=MAPS
    ),
    Mutant(
        "V5",
        "goes on from now when its watch broke",
        "V5",
        ("O3",),
        lambda wrong: watches(from_now=wrong),
        steps=MAPS,
    ),
    Mutant(
        "V8",
        "an ERROR event ends its watch",
        "V8",
        ("O3",),
        lambda wrong: watches(ends_at=(ServerError,) if wrong else ()),
        steps=MAPS,
    ),
    Mutant(
        "S2",
        "a compaction ends its watch",
        "S2",
        ("O3",),
        lambda wrong: watches(ends_at=(Gone,) if wrong else ()),
        steps=MAPS,
    ),
    Mutant("V10", "waits in a reconcile for a view that stands still", "V10", ("O1",), waits_for_the_cache),
    Mutant("S3", "a full disk is taken for success", "S3", ("O3",), swallows),
    Mutant(
        "I3",
        "takes what its namesake left for its own",
        "I3",
        ("O3",),
        adopts,
        steps=(create(), delete(), create(), Pass(2 * _SOON)),
    ),
    Mutant(
        "X1",
        "makes another when it cannot find the first",
        "X1",
        ("O8", "O3", "O5"),
        makes_another,
        at_most=(("cloud", 1),),
    ),
    Mutant("C1", "gives up by the calendar", "C1", ("O3", "O2"), in_an_hour, steps=LIFE),
)
