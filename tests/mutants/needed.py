"""Mistakes that only one class of faults, or pair of them, brings to light, or that only one oracle sees.

Without the class, or the oracle, each of these would live: that is what they are here for.  ``sole.py`` says
which is whose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any

from setpoint.api import CustomResource, MergePatch, Model, ObjectMeta
from setpoint.api.wire import read_metadata
from setpoint.cache import reflector
from setpoint.cache.store import Seen
from setpoint.client.client import ignore_not_found
from setpoint.controller import Request, Result, builder
from setpoint.controller.context import Context
from setpoint.controller.predicates import Predicate
from setpoint.errors import (
    AlreadyExists,
    ApiError,
    Gone,
    NotFound,
    RetryLater,
    ServerError,
    SetpointError,
    TransportError,
)
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager import lease, lease_state
from setpoint.manager.lease_state import Absent, Failed, Leading, Standby, Written
from setpoint.manager.manager import Manager
from setpoint.server.storage.protocol import Encode, Event, Place, Record, Unwritable
from setpoint.testing.proof.plans import Change, Create, Delete, Pass
from setpoint.testing.proof.process import Subject
from setpoint.testing.proof.store import WorldStore
from tests.mutants.framework import exchanged, plain
from tests.mutants.operators import ONE, Mutant, cloud, finalizer_of, is_held, is_of
from tests.mutants.widgets import (
    API,
    Longhand,
    Widget,
    change,
    change_map,
    child,
    config_map,
    create,
    delete,
    operator_of,
)

_EVER = float("inf")

# ---- 28, 29: Setpoint itself -----------------------------------------------------------------------


class _NoChance:
    @staticmethod
    def random() -> float:
        return 0.0


def without_jitter() -> AbstractContextManager[None]:
    """28: all watches that lost the server come back at the same moments."""
    return exchanged(reflector, "random", _NoChance)


def dirty_reads() -> AbstractContextManager[None]:
    """29: a write is shown to watches before it is kept, and then it is not."""
    keep = WorldStore.create

    async def shown_first(self: WorldStore, place: Place, encode: Encode) -> Record:
        if self.is_full and self.get(place) is None:
            revision = self.revision + 1
            record = Record(place, revision, revision, encode(revision))
            self._history.publish([Event("ADDED", record, None)], asyncio.get_running_loop().time())
            self._history.revision = revision - 1
            raise Unwritable("no space left on the device")
        return await keep(self, place, encode)

    return exchanged(WorldStore, "create", shown_first)


def once_if_absent(*, wrong: bool) -> Subject:
    """Makes what it does not see; right, as long as it sees nothing that is not so."""
    del wrong

    async def reconcile(widget: Widget, ctx: Context) -> None:
        name = f"{widget.metadata.name}"
        if await ignore_not_found(ctx.client.cache.get(ConfigMap, name, namespace="default")) is None:
            obj = child(widget)
            ctx.set_controller_reference(obj)
            with suppress(AlreadyExists):  # it is not seen yet
                await ctx.client.create(obj)

    return operator_of(reconcile)


# ---- E1: acts on changes alone ---------------------------------------------------------------------


class Baseline:
    """What there was when the process began."""

    needs_leadership = False

    def __init__(self, manager: Manager) -> None:
        self.client = manager.plain_client
        self.known: dict[str, int | None] = {}
        self.ready = asyncio.Event()

    async def run(self) -> None:
        while not self.ready.is_set():
            try:
                for each in await self.client.list(Widget, namespace="default"):
                    self.known[each.metadata.uid or ""] = each.metadata.generation
                self.ready.set()
            except SetpointError:
                await asyncio.sleep(1)
        await asyncio.Event().wait()


class OnChange:
    """Applies a spec when it differs from the last that this process knew."""

    def __init__(self, manager: Manager, baseline: Baseline | None) -> None:
        self.client, self.baseline = manager.client, baseline
        self.known = {} if baseline is None else baseline.known

    async def reconcile(self, request: Request) -> Result:
        if self.baseline is not None:
            await self.baseline.ready.wait()
        widget = await ignore_not_found(self.client.get(Widget, request.name, namespace="default"))
        if widget is None or self.known.get(widget.metadata.uid or "") == widget.metadata.generation:
            return Result()
        patch = MergePatch({"metadata": {"annotations": {"seen": widget.spec.text}}})
        await ignore_not_found(self.client.patch(Widget, request.name, patch, namespace="default"))
        self.known[widget.metadata.uid or ""] = widget.metadata.generation
        return Result()


def on_change(*, wrong: bool) -> Subject:
    def add(manager: Manager) -> object:
        baseline = manager.add(Baseline(manager)) if wrong else None
        return builder(manager).named("widget").for_(Widget).complete(OnChange(manager, baseline))

    return Longhand(add)


# ---- E2: remembered only when it is done -----------------------------------------------------------


class Remembers:
    """Makes something outside, and a ConfigMap that says so: before it, or when it is done."""

    def __init__(self, manager: Manager, *, late: bool) -> None:
        self.client, self.late = manager.client, late

    async def reconcile(self, request: Request) -> Result:
        name, live = request.name, self.client.live
        if await ignore_not_found(live.get(Widget, name, namespace="default")) is None:
            if await ignore_not_found(live.get(ConfigMap, name, namespace="default")) is not None:
                await cloud.delete(name)
                await ignore_not_found(self.client.delete(ConfigMap, name, namespace="default"))
            return Result()
        for makes in (self._make, self._remember) if self.late else (self._remember, self._make):
            await makes(name)
        return Result()

    async def _make(self, name: str) -> None:
        if await cloud.get(name) is None:
            await cloud.create(name)

    async def _remember(self, name: str) -> None:
        if await ignore_not_found(self.client.live.get(ConfigMap, name, namespace="default")) is None:
            await self.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))


def remembers(*, wrong: bool) -> Subject:
    def add(manager: Manager) -> object:
        made = builder(manager).named("widget").for_(Widget)
        made = made.watches(ConfigMap, lambda found: [Request("default", found.metadata.name or "")])
        return made.complete(Remembers(manager, late=wrong))

    return Longhand(add)


# ---- E4: a timeout is taken for "not done" ---------------------------------------------------------


def tries_at_once(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        live = ctx.client.live
        found = [
            each
            for each in await live.list(ConfigMap, namespace="default")
            if any(owner.uid == widget.metadata.uid for owner in each.metadata.owner_references or ())
        ]
        if found:
            return
        name = ObjectMeta(generate_name=f"{widget.metadata.name}-", namespace="default")
        made = ConfigMap(metadata=name)
        ctx.set_controller_reference(made)
        try:
            await ctx.client.create(made)
        except ServerError as error:
            if not wrong or error.code != 504:
                raise
            await ctx.client.create(made)

    return operator_of(reconcile, owns=False)


# ---- V2: a state in between that is never seen -----------------------------------------------------


PHASES = ("", "new", "starting", "ready")


class Follows:
    """Tells the phase of what its text names: as that is, or event by event, from each phase to the next."""

    def __init__(self, manager: Manager, *, wrong: bool) -> None:
        self.client, self.wrong = manager.client, wrong
        self.seen: list[str] = []

    def mapped(self, found: ConfigMap) -> list[Request]:
        self.seen.append(_phase_of(found))
        return [Request("default", "w")]

    async def reconcile(self, request: Request) -> Result:
        live = self.client.live
        widget = await ignore_not_found(live.get(Widget, request.name, namespace="default"))
        if widget is None:
            return Result()
        phase = widget.status.phase
        if self.wrong:
            for each in self.seen:
                if PHASES.index(each) == PHASES.index(phase) + 1:  # no other step can be
                    phase = each
        else:
            found = await ignore_not_found(live.get(ConfigMap, widget.spec.text, namespace="default"))
            phase = phase if found is None else _phase_of(found)
        if phase != widget.status.phase:
            patch = MergePatch({"status": {"phase": phase}})
            asked = self.client.patch(Widget, request.name, patch, namespace="default", subresource="status")
            await ignore_not_found(asked)
        return Result()


def _phase_of(found: ConfigMap) -> str:
    return (found.metadata.labels or {}).get("phase", "")


def follows(*, wrong: bool) -> Subject:
    def add(manager: Manager) -> object:
        reconciler = Follows(manager, wrong=wrong)
        made = builder(manager).named("widget").for_(Widget).watches(ConfigMap, reconciler.mapped)
        return made.complete(reconciler)

    return Longhand(add)


# ---- V1+L1: what it has made is known to it alone ---------------------------------------------------


def keeps_to_itself(*, wrong: bool) -> Subject:
    made: dict[str, float] = {}  # for which, and until when, a child need not be seen: it is there, or may be

    async def reconcile(widget: Widget, ctx: Context) -> None:
        uid, loop = widget.metadata.uid or "", asyncio.get_running_loop()
        if wrong:
            found = await ctx.client.cache.list(ConfigMap, namespace="default", owner=uid)
        else:
            listed = await ctx.client.live.list(ConfigMap, namespace="default")
            found = [each for each in listed if is_of(widget, each)]
        until = made.get(uid, 0.0) if wrong and not found else 0.0
        if loop.time() < until < _EVER:
            raise RetryLater(until - loop.time(), "it may have been made: by then it is seen")
        if not found and until <= loop.time():
            name = ObjectMeta(generate_name=f"{widget.metadata.name}-", namespace="default")
            obj = ConfigMap(metadata=name)
            ctx.set_controller_reference(obj)
            made[uid] = _EVER
            try:
                await ctx.client.create(obj)
            except SetpointError as error:
                made[uid] = loop.time() + 30
                raise RetryLater(30, "it may have been made: by then it is seen") from error
        widget.status.done = widget.spec.text

    return operator_of(reconcile)


# ---- I1+V2: the first event after a write is taken for its own -------------------------------------


class Skips:
    """Tells what it has done in the status, and need not look at that: what a write brings is its own."""

    def __init__(self, manager: Manager, *, wrong: bool) -> None:
        self.client, self.wrong = manager.client, wrong
        self.until: float | None = None  # the event of the last write is expected

    def matters(self, seen: Seen) -> bool:
        if not self.wrong:
            return True
        until, self.until = self.until, None
        return until is None or seen.type != "UPDATED" or asyncio.get_running_loop().time() > until

    async def reconcile(self, request: Request) -> Result:
        live = self.client.live
        widget = await ignore_not_found(live.get(Widget, request.name, namespace="default"))
        if widget is not None and widget.status.done != widget.spec.text:
            patch = MergePatch({"status": {"done": widget.spec.text}})
            asked = self.client.patch(Widget, request.name, patch, namespace="default", subresource="status")
            self.until = asyncio.get_running_loop().time() + 1  # no event takes longer
            await ignore_not_found(asked)
        return Result()


def skips(*, wrong: bool) -> Subject:
    def add(manager: Manager) -> object:
        reconciler = Skips(manager, wrong=wrong)
        made = builder(manager).named("widget").for_(Widget, when=Predicate(reconciler.matters))
        return made.complete(reconciler)

    return Longhand(add)


# ---- V4: what is referred to, and is seen later ----------------------------------------------------


def refers(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        where = ctx.client.cache if wrong else ctx.client.live
        if widget.status.phase:
            return
        try:
            await where.get(ConfigMap, widget.spec.text, namespace="default")
        except NotFound:
            widget.status.phase = "Failed"
            return
        widget.status.phase = "Ready"

    return operator_of(reconcile)


# ---- E3, S1: what cannot be read is taken for gone -------------------------------------------------


class Unread:
    """Has something outside as long as there is a Widget; its finalizer holds that until it is gone."""

    def __init__(self, manager: Manager, *, gone: tuple[type[SetpointError], ...]) -> None:
        self.client, self.gone = manager.client, gone

    async def reconcile(self, request: Request) -> Result:
        name = request.name
        try:
            widget = await ignore_not_found(self.client.live.get(Widget, name, namespace="default"))
        except self.gone:
            await cloud.delete(name)
            return Result(requeue_after=10)
        if widget is None:
            return Result()
        if widget.metadata.deletion_timestamp is not None:
            if is_held(widget):
                await cloud.delete(name)
                await self._patch(name, finalizer_of(widget, is_held=False))
            return Result()
        if not is_held(widget):
            await self._patch(name, finalizer_of(widget, is_held=True))
            return Result()  # that is a change
        if await cloud.get(name) is None:
            await cloud.create(name)
        if widget.status.done != widget.spec.text:
            await self._patch(name, MergePatch({"status": {"done": widget.spec.text}}), "status")
        return Result()

    async def _patch(self, name: str, patch: MergePatch, part: str = "") -> None:
        asked = self.client.patch(Widget, name, patch, namespace="default", subresource=part)
        await ignore_not_found(asked)


def unread(*gone: type[SetpointError]) -> Subject:
    return Longhand(
        lambda manager: builder(manager).named("widget").for_(Widget).complete(Unread(manager, gone=gone))
    )


# ---- S2: a list that expires between two pages -----------------------------------------------------


class Pages:
    """Marks every ConfigMap, a page at a time."""

    def __init__(self, manager: Manager, *, wrong: bool) -> None:
        self.reader, self.client, self.wrong = manager.plain_client, manager.client, wrong

    async def reconcile(self, request: Request) -> Result:
        widget = await ignore_not_found(self.client.get(Widget, request.name, namespace="default"))
        if widget is None or widget.status.done == widget.spec.text:
            return Result()
        token, is_first = "", True
        while token or is_first:
            try:
                page = await self.reader.list_page(ConfigMap, token, page_size=1, namespace="default")
            except Gone:
                if not self.wrong:
                    raise
                break
            token, is_first = page.continue_token, False
            for item in page.items:
                name = read_metadata(item).name
                mark = MergePatch({"metadata": {"annotations": {"mark": widget.spec.text}}})
                await self.client.patch(ConfigMap, name, mark, namespace="default")
        patch = MergePatch({"status": {"done": widget.spec.text}})
        await ignore_not_found(
            self.client.patch(Widget, request.name, patch, namespace="default", subresource="status")
        )
        return Result()


def in_pages(*, wrong: bool) -> Subject:
    return Longhand(
        lambda manager: builder(manager).named("widget").for_(Widget).complete(Pages(manager, wrong=wrong))
    )


# ---- S4: gives up when something is refused for long -----------------------------------------------


def gives_up_counting(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        if widget.status.phase == "Failed":
            return
        try:
            await ctx.apply(child(widget, text=widget.spec.text))
        except ApiError:
            if wrong:
                widget.status.attempts += 1
                if widget.status.attempts > 8:
                    widget.status.phase = "Failed"
            raise
        widget.status.attempts = 0
        widget.status.done = widget.spec.text

    return operator_of(reconcile)


# ---- L2: a renewal that failed is taken for one that was done --------------------------------------


@contextmanager
def hopeful() -> Iterator[None]:
    advance = lease_state.advance

    def as_if_written(state: Any, heard: Any, settings: Any, *, now: float, jitter: float) -> Any:
        is_answered = isinstance(state, Leading) and now < state.try_at + 1
        if is_answered and isinstance(heard, Failed):
            return replace(state, sent_at=now, try_at=now + settings.retry_period)
        return advance(state, heard, settings, now=now, jitter=jitter)

    with exchanged(lease, "advance", as_if_written), exchanged(lease_state, "advance", as_if_written):
        yield


# ---- L3: a Lease that is missing is taken for one that nobody holds --------------------------------


@contextmanager
def missing_is_free() -> Iterator[None]:
    """Whoever finds no Lease creates it at once, and leads."""
    advance = lease_state.advance

    def at_once(state: Any, heard: Any, settings: Any, *, now: float, jitter: float) -> Any:
        after: Any = advance(state, heard, settings, now=now, jitter=jitter)
        if isinstance(state, Standby) and isinstance(heard, Absent):
            return replace(after, missing_since=None)
        if isinstance(state, Standby) and not state.version and isinstance(heard, Written):
            sent_at = heard.attempt.sent_at
            return Leading(heard.attempt.record, heard.version, sent_at, sent_at + settings.retry_period)
        return after

    with exchanged(lease, "advance", at_once), exchanged(lease_state, "advance", at_once):
        yield


# ---- C1: a clock that is slow, and one that has jumped ---------------------------------------------


@contextmanager
def just_in_time() -> Iterator[None]:
    """The lease is renewed when there is just time enough, by a clock that is right."""
    advance = lease_state.advance

    def late(state: Any, heard: Any, settings: Any, *, now: float, jitter: float) -> Any:
        after = advance(state, heard, settings, now=now, jitter=jitter)
        if isinstance(after, Leading) and isinstance(heard, Written):
            return replace(after, try_at=after.sent_at + 0.95 * settings.renew_deadline)
        return after

    with exchanged(lease, "advance", late), exchanged(lease_state, "advance", late):
        yield


def takes_too_long(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        if widget.status.phase == "Failed":
            return
        began = asyncio.get_running_loop().time()
        await ctx.apply(child(widget, text=widget.spec.text))
        if wrong and asyncio.get_running_loop().time() > began + 1800:
            widget.status.phase = "Failed"
        widget.status.done = widget.spec.text

    return operator_of(reconcile)


# ---- O6, O7, O8: what is wrong without any fault ---------------------------------------------------


def leaves_outside(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        del ctx
        if await cloud.get(widget.metadata.uid or "") is None:
            await cloud.create(widget.metadata.uid or "")

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del ctx
        await cloud.delete(widget.metadata.uid or "")

    return operator_of(reconcile, None if wrong else clean_up, owns=False, verify=True)


def waits_for_children(*, wrong: bool) -> Subject:
    """They go when it has gone, and it waits for them."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))

    async def clean_up(widget: Widget, ctx: Context) -> Result | None:
        del widget
        left = await ctx.list(ConfigMap, owned=True)
        if wrong:
            return Result(requeue_after=30) if left else None
        for each in left:
            await ctx.delete(each)
        return None

    return operator_of(reconcile, clean_up)


def disowned(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        obj = child(widget)
        name = obj.metadata.name or ""
        found = await ignore_not_found(ctx.client.live.get(ConfigMap, name, namespace="default"))
        if not wrong:
            ctx.set_controller_reference(obj)
            if found is not None and not is_of(widget, found):
                raise RetryLater(5, "it is its namesake's, and will be collected")
        if found is None:
            with suppress(AlreadyExists):  # so much the better
                await ctx.client.create(obj)

    return operator_of(reconcile, owns=False)


# ---- O11: an error is caught and forgotten ---------------------------------------------------------


def forgets(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        done = widget.spec.text, widget.metadata.uid or ""  # of this one, and not of its namesake
        if (widget.status.done, widget.status.id) == done:
            return
        try:
            await ctx.apply(child(widget, text=widget.spec.text))
        except ApiError:
            if not wrong:
                raise
        widget.status.done, widget.status.id = done

    return operator_of(reconcile, owns=False)


# ---- M1: a child without its owner reference -------------------------------------------------------


def only_owned(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        obj = child(widget, text="a")
        if not wrong:
            await ctx.apply(obj)
            return
        if not await ctx.list(ConfigMap, owned=True):
            ctx.set_controller_reference(obj)
            await ctx.client.create(obj)

    return operator_of(reconcile)


# ---- O9, O13 ---------------------------------------------------------------------------------------


class GadgetSpec(Model):
    text: str = "a"


class GadgetStatus(Model):
    observed_generation: int | None = None
    done: str = ""


class Gadget(CustomResource, group="test.setpoint.dev", version="v1"):
    spec: GadgetSpec = GadgetSpec()
    status: GadgetStatus = GadgetStatus()


class Marks:
    """O9: reads the object again before it marks it as done, and marks what it has not done."""

    def __init__(self, manager: Manager, *, wrong: bool) -> None:
        self.client, self.wrong = manager.client, wrong

    async def reconcile(self, request: Request) -> Result:
        gadget = await self._read(request.name)
        if gadget is None or gadget.status.done == gadget.spec.text:
            return Result()
        await self._patch(request.name, {"observedGeneration": gadget.metadata.generation})
        later = await self._read(request.name) if self.wrong else gadget
        if later is not None:
            await self._patch(request.name, {"done": later.spec.text})
        return Result()

    async def _read(self, name: str) -> Gadget | None:
        return await ignore_not_found(self.client.live.get(Gadget, name, namespace="default"))

    async def _patch(self, name: str, status: dict[str, Any]) -> None:
        patch = MergePatch({"status": status})
        asked = self.client.patch(Gadget, name, patch, namespace="default", subresource="status")
        await ignore_not_found(asked)


def marks(*, wrong: bool) -> Subject:
    def add(manager: Manager) -> object:
        return builder(manager).named("gadget").for_(Gadget).complete(Marks(manager, wrong=wrong))

    return Longhand(add, Gadget)


GADGET = {
    "apiVersion": API,
    "kind": "Gadget",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"text": "a"},
}
OBSERVED = (
    config_map("x"),  # which a fresh start does not have: there is none to hold it against (O4)
    Create(GADGET),
    Change(API, "Gadget", "g", {"spec": {"text": "b"}}),
    Delete(API, "Gadget", "g"),
)


def idle(*, wrong: bool) -> Subject:
    """O13: it is for objects that nobody makes."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))

    return operator_of(reconcile, labels={"never": "there"} if wrong else None)


PHASED = (
    create(text="x"),
    config_map("x", labels={"phase": "new"}),
    change_map("x", {"metadata": {"labels": {"phase": "starting"}}}),
    change_map("x", {"metadata": {"labels": {"phase": "ready"}}}),
    delete(),
)
TEXTS = (create(), change(text="b"), change(text="c"), delete())
REFERS = (config_map("x"), create(text="x"), delete())
MARKED = (config_map("x"), config_map("y"), create(), change(text="b"))

NEEDED: tuple[Mutant, ...] = (
    Mutant("24b", "the first event after a write is its own", "I1+V2", ("O9", "O2"), skips, steps=TEXTS),
    Mutant(
        "L1c",
        "what it has made is known to it alone",
        "V1+L1",
        ("O8",),
        keeps_to_itself,
        steps=ONE,
        at_most=(("ConfigMap", 1),),
    ),
    Mutant("28", "all watches come back at the same moment", "S1", ("O10",), plain, breaking=without_jitter),
    Mutant(
        "29", "a write is shown before it is kept", "S3", ("O3", "O2"), once_if_absent, breaking=dirty_reads
    ),
    Mutant("E1", "what changed while it was away is no change", "E1", ("O3",), on_change),
    Mutant("E2", "what it makes is remembered when it is made", "E2", ("O6",), remembers),
    Mutant("E4", "a timeout is taken for a refusal", "E4", ("O3", "O5"), tries_at_once, steps=ONE),
    Mutant("V2", "a phase that it did not see cannot have been", "V2", ("O3",), follows, steps=PHASED),
    Mutant("V4", "what is not seen yet is taken for missing", "V4", ("O3",), refers, steps=REFERS),
    Mutant(
        "E3",
        "what may not be read is taken for gone",
        "E3",
        ("O5", "O3"),
        lambda wrong: unread(ApiError) if wrong else unread(),
    ),
    Mutant(
        "S1b",
        "what cannot be read is taken for gone",
        "S1",
        ("O5", "O3"),
        lambda wrong: unread(TransportError) if wrong else unread(),
    ),
    Mutant("S2b", "a list that expired is taken for whole", "S2", ("O3",), in_pages, steps=MARKED),
    Mutant("S4", "gives up when something is refused for long", "S4", ("O3",), gives_up_counting),
    Mutant("L2b", "a renewal that failed is taken for done", "L2", ("O12",), plain, breaking=hopeful),
    Mutant("L3", "a missing lease is taken for a free one", "L3", ("O12",), plain, breaking=missing_is_free),
    Mutant("C1b", "the lease is renewed just in time", "C1", ("O12",), plain, breaking=just_in_time),
    Mutant("C1c", "takes too long, by a clock that has jumped", "C1", ("O3",), takes_too_long),
    Mutant("O6", "nothing outside is ever cleaned up", "none", ("O6",), leaves_outside),
    Mutant("O7b", "waits for what goes when it has gone", "none", ("O7",), waits_for_children),
    Mutant("O8", "a child has no owner", "none", ("O8",), disowned),
    Mutant("O11b", "an error is caught and forgotten", "E3", ("O11",), forgets),
    Mutant(
        "M1",
        "a child without an owner is not its own",
        "M1",
        ("O1",),
        only_owned,
        steps=(create(), Pass(5), delete()),
        is_warned=True,
    ),
    Mutant("O9", "marks as done what it has not done", "I1", ("O9",), marks, steps=OBSERVED),
    Mutant("O13", "is for objects that nobody makes", "none", ("O13",), idle),
)
