"""Operators with one mistake each, and the same without it.

Every mutant is a mistake that somebody has made in an operator that people use.  Each names the class of
faults that must kill it; its twin, in which only the mistake is mended, must live.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from setpoint.api import MergePatch, ObjectMeta, OwnerReference
from setpoint.api.forms import key_of
from setpoint.api.times import Time
from setpoint.client.client import ignore_not_found
from setpoint.controller import Request, Result, builder
from setpoint.controller.context import Context
from setpoint.errors import (
    AlreadyExists,
    Conflict,
    NotFound,
    RetryLater,
    ServerError,
    SetpointError,
    TerminalError,
    TransportError,
)
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.manager import Manager
from setpoint.net.transport import Request as HttpRequest
from setpoint.net.transport import Response, Transport
from setpoint.testing.proof.cloud import Cloud, CloudError
from setpoint.testing.proof.plans import Pass, Step
from setpoint.testing.proof.process import Subject
from tests.mutants.widgets import (
    Longhand,
    Widget,
    change,
    change_map,
    child,
    config_map,
    create,
    delete,
    delete_map,
    operator_of,
)

FINALIZER = "test.setpoint.dev/widget"
LIFE = (create(), change(text="b"), change(replicas=2), delete())
ONE = (create(), change(text="b"), delete())
AGAIN = (create(), change(text="b"), delete(), create(), delete())

cloud = Cloud()


@dataclass(frozen=True)
class Mutant:
    """A mistake, what must find it, and the same without it."""

    number: str
    bug: str
    killer: str  # the class of faults
    oracles: tuple[str, ...]
    make: Callable[..., Subject]  # told whether it is to be wrong
    steps: tuple[Step, ...] = LIFE
    at_most: tuple[tuple[str, int], ...] = ()
    breaking: Callable[[], AbstractContextManager[None]] = nullcontext  # what is wrong with Setpoint itself
    is_warned: bool = False  # a warning is all it gets: it takes more than an operator must bear to show it

    def __str__(self) -> str:
        return self.number

    @property
    def without(self) -> tuple[str, ...]:
        """Oracles that do not judge it: most mutants and twins know of one namespace, to be short."""
        return () if "O14" in self.oracles else ("O14",)

    def mutant(self) -> Subject:
        return self.make(wrong=True)

    def twin(self) -> Subject:
        return self.make(wrong=False)


def _as_cached(ctx: Context) -> Any:
    """The cache as it is, without what keeps it from being behind one's own writes."""
    return ctx.client.cache


def is_of(widget: Widget, found: ConfigMap) -> bool:
    """Whether it was made for this one, and not for another that had its name."""
    return any(owner.uid == widget.metadata.uid for owner in found.metadata.owner_references or ())


# ---- 1: children with generated names, counted in the cache ----------------------------------------


def counted_children(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        uid = widget.metadata.uid
        if wrong:
            found = await _as_cached(ctx).list(ConfigMap, namespace="default", owner=uid)
        else:
            found = await ctx.list(ConfigMap, owned=True)
        for _ in range(widget.spec.replicas - len(found)):
            made = ConfigMap(
                metadata=ObjectMeta(generate_name=f"{widget.metadata.name}-", namespace="default")
            )
            ctx.set_controller_reference(made)
            await ctx.client.create(made)
        for extra in found[widget.spec.replicas :]:
            await ctx.delete(extra)

    return operator_of(reconcile)


# ---- 2, 3: the finalizer at the wrong time ---------------------------------------------------------


def is_held(widget: Widget) -> bool:
    return FINALIZER in (widget.metadata.finalizers or [])


def finalizer_of(widget: Widget, *, is_held: bool) -> MergePatch:
    """Has our finalizer be there, or not be there; those of others stay, also one that has come meanwhile."""
    others = [name for name in widget.metadata.finalizers or [] if name != FINALIZER]
    names = [*others, FINALIZER] if is_held else others
    version = widget.metadata.resource_version
    return MergePatch({"metadata": {"finalizers": names or None, "resourceVersion": version}})


class ByHand:
    """A reconciler that sees to its finalizer itself."""

    def __init__(
        self,
        manager: Manager,
        *,
        late: bool = False,
        early_removal: bool = False,
        everybodys: bool = False,
        carries_on: bool = False,
    ) -> None:
        self.client = manager.client
        self.late, self.early_removal = late, early_removal
        self.everybodys, self.carries_on = everybodys, carries_on

    async def reconcile(self, request: Request) -> Result:
        try:
            widget = await self.client.live.get(Widget, request.name, namespace=request.namespace)
        except NotFound:
            return Result()
        key = f"{widget.metadata.uid}"
        is_going = widget.metadata.deletion_timestamp is not None
        if is_going and (is_held(widget) or not self.carries_on):
            if self.early_removal:
                await self._finalizer(widget, is_held=False)
            if is_held(widget):
                await cloud.delete(key)
                if not self.early_removal:
                    await self._finalizer(widget, is_held=False)
            return Result()
        if not self.late and not is_going and not is_held(widget):
            held = await self._finalizer(widget, is_held=True)
            if held is None:
                return Result()  # gone: that is a change
        found = await cloud.get(key)
        if found is None:
            await cloud.create(key, text=widget.spec.text)
        elif found["text"] != widget.spec.text:
            await cloud.update(key, text=widget.spec.text)
        if self.late and not is_held(widget):
            await self._finalizer(widget, is_held=True)
        return Result()

    async def _finalizer(self, widget: Widget, *, is_held: bool) -> Widget | None:
        patch = finalizer_of(widget, is_held=is_held)
        if self.everybodys and not is_held:
            patch = MergePatch({"metadata": {"finalizers": None}})
        asked = self.client.patch(Widget, widget.metadata.name or "", patch, namespace="default")
        return await ignore_not_found(asked)


def by_hand(**how: bool) -> Subject:
    def add(manager: Manager) -> object:
        return builder(manager).named("widget").for_(Widget).complete(ByHand(manager, **how))

    return Longhand(add)


# ---- 4, 5: progress in the wrong place -------------------------------------------------------------


def marked_before(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        wanted = f"{widget.spec.text}"
        if wrong and widget.status.done == wanted:
            return
        if wrong:
            patch = MergePatch({"status": {"done": wanted}})
            await ctx.client.patch(
                Widget, widget.metadata.name or "", patch, namespace="default", subresource="status"
            )
        await ctx.apply(child(widget, text=wanted))
        widget.status.done = wanted

    return operator_of(reconcile, owns=False)


def in_memory(*, wrong: bool) -> Subject:
    done: dict[str, int | None] = {}

    async def reconcile(widget: Widget, ctx: Context) -> None:
        key, generation = widget.metadata.uid or "", widget.metadata.generation
        if wrong and done.get(key) == generation:
            return
        done[key] = generation
        await ctx.apply(child(widget, text=widget.spec.text))

    return operator_of(reconcile, owns=False)


# ---- 6: cleans up only when it sees the child go ---------------------------------------------------


def sees_it_go(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        volume = f"volume-{widget.metadata.name}"
        name = f"{widget.metadata.name}-pod"
        try:
            pod = await ctx.get(ConfigMap, name)
        except NotFound:
            pod = None
        if widget.spec.replicas > 0:
            await ctx.apply(child(widget, "-pod", text=widget.spec.text))
            if await cloud.get(volume) is None:
                await cloud.create(volume)
            return
        if pod is not None and pod.metadata.deletion_timestamp is None:
            await ctx.delete(pod)
        is_going = pod is not None and pod.metadata.deletion_timestamp is not None
        if (is_going if wrong else True) and await cloud.get(volume) is not None:
            await cloud.delete(volume)

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del ctx
        await cloud.delete(f"volume-{widget.metadata.name}")

    return operator_of(reconcile, clean_up)


HELD = (
    create(),
    change_map("w-pod", {"metadata": {"finalizers": ["example.com/hold"]}}),
    change(replicas=0),
    change_map("w-pod", {"metadata": {"finalizers": None}}),
    delete(),
)


# ---- 7, 23: tears down on the strength of an old view ----------------------------------------------


class TearsDown:
    """Tears down what belongs to an object that is deleted; by hand."""

    def __init__(self, manager: Manager, *, by_name: bool = False, absent_is_deleted: bool = False) -> None:
        self.client = manager.client
        self.by_name, self.absent_is_deleted = by_name, absent_is_deleted

    async def reconcile(self, request: Request) -> Result:
        name = request.name
        reader = self.client if self.by_name or self.absent_is_deleted else self.client.live
        try:
            widget = await reader.get(Widget, name, namespace="default")
        except NotFound:
            if self.absent_is_deleted:
                await self._tear_down(name)
            return Result()
        if widget.metadata.deletion_timestamp is not None:
            if is_held(widget):
                await self._tear_down(name)
                patch = finalizer_of(widget, is_held=False)
                await ignore_not_found(self.client.patch(Widget, name, patch, namespace="default"))
            return Result()
        if not is_held(widget):
            patch = finalizer_of(widget, is_held=True)
            if await ignore_not_found(self.client.patch(Widget, name, patch, namespace="default")) is None:
                return Result()
        if await cloud.get(name) is None:
            await cloud.create(name)
        return Result()

    async def _tear_down(self, name: str) -> None:
        if await cloud.get(name) is not None:
            await cloud.delete(name)


def tears_down(**how: bool) -> Subject:
    def add(manager: Manager) -> object:
        made = builder(manager).named("widget").for_(Widget)
        if how.get("absent_is_deleted") is not None:
            made = made.watches(ConfigMap, lambda found: [Request("default", found.metadata.name or "")])
        return made.complete(TearsDown(manager, **how))

    return Longhand(add)


# ---- 8: an index made from events ------------------------------------------------------------------


class Index:
    """The ConfigMaps there are, as a watch of one's own tells."""

    needs_leadership = False

    def __init__(self, manager: Manager, *, forgets: bool) -> None:
        self.manager = manager
        self.names: dict[str, str] = {}
        self.forgets = forgets
        self.told: Callable[[], None] = lambda: None

    async def run(self) -> None:
        client = self.manager.plain_client
        while True:
            try:
                found = await client.list(ConfigMap, namespace="default")
                if self.forgets:
                    self.names.clear()
                self.names.update({each.metadata.name or "": "" for each in found})
                self.told()
                async with client.watch(
                    ConfigMap, namespace="default", resource_version=found.resource_version
                ) as changes:
                    async for seen in changes:
                        if seen.type == "DELETED":
                            self.names.pop(seen.object.metadata.name or "", None)
                        else:
                            self.names[seen.object.metadata.name or ""] = ""
                        self.told()
            except (ServerError, TransportError, Conflict, NotFound):
                await asyncio.sleep(1)
            except Exception as error:  # noqa: BLE001 - a 410, in whichever form
                del error
                await asyncio.sleep(1)


class Counts:
    def __init__(self, manager: Manager, index: Index) -> None:
        self.client, self.index = manager.client, index

    async def reconcile(self, request: Request) -> Result:
        widget = await ignore_not_found(self.client.get(Widget, request.name, namespace="default"))
        number = len(self.index.names)
        if widget is not None and (widget.status.count != number or not widget.status.done):
            patch = MergePatch({"status": {"count": number, "done": "yes"}})
            await self.client.patch(Widget, request.name, patch, namespace="default", subresource="status")
        return Result(requeue_after=10)


def indexes(*, wrong: bool) -> Subject:
    def add(manager: Manager) -> object:
        index = manager.add(Index(manager, forgets=not wrong))
        return builder(manager).named("widget").for_(Widget).complete(Counts(manager, index))

    return Longhand(add)


# ---- 9 to 11: what is written, and what is taken for success ---------------------------------------


def timestamps(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        if wrong:
            widget.status.done = str(Time.of(ctx._means.utc()))  # the time, as it is now
        else:
            ctx.set_condition("Ready", True, "Done")

    return operator_of(reconcile, owns=False)


def conflicts(*, wrong: bool) -> Subject:
    def add(manager: Manager) -> object:
        class Writes:
            async def reconcile(self, request: Request) -> Result:
                client = manager.client
                widget = await ignore_not_found(client.get(Widget, request.name, namespace="default"))
                if widget is None or widget.status.done == widget.spec.text:
                    return Result()
                widget.status.done = widget.spec.text
                try:
                    await client.update_status(widget)
                except Conflict:
                    if not wrong:
                        raise
                return Result()

        return builder(manager).named("widget").for_(Widget).complete(Writes())

    return Longhand(add)


def timeouts(*, wrong: bool) -> Subject:
    made: set[str] = set()

    async def reconcile(widget: Widget, ctx: Context) -> None:
        key = f"{widget.metadata.uid}/{widget.metadata.generation}"
        if wrong and key in made:
            return
        obj = child(widget, "-1")
        ctx.set_controller_reference(obj)
        found = await ignore_not_found(ctx.client.live.get(ConfigMap, key_of(obj).name, namespace="default"))
        if found is not None and is_of(widget, found):
            return
        if found is not None:
            raise RetryLater(5, "it is its namesake's, and will be collected")
        try:
            await ctx.client.create(obj)
        except AlreadyExists:
            pass
        except (ServerError, TransportError):
            if not wrong:
                raise
        made.add(key)

    return operator_of(reconcile, owns=False)


# ---- 12, 22: what is outside -----------------------------------------------------------------------


def random_ids(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        del ctx
        if widget.status.id:
            return
        chosen = f"t-{uuid.uuid4().hex[:8]}" if wrong else f"t-{widget.metadata.uid}"
        try:
            await cloud.create(chosen)
        except CloudError as error:
            if error.code != 409:
                raise
        widget.status.id = chosen

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del ctx
        await cloud.delete(widget.status.id if wrong else f"t-{widget.metadata.uid}")

    return operator_of(reconcile, clean_up, owns=False)


def stuck(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        del ctx
        if await cloud.get(widget.metadata.uid or "") is None:
            await cloud.create(widget.metadata.uid or "")

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del ctx
        if not await cloud.delete(widget.metadata.uid or "") and wrong and not widget.status.done:
            raise RetryLater(5, "there is nothing to delete, and there should be")

    return operator_of(reconcile, clean_up, owns=False)


# ---- 13, 19: children, and the cache ---------------------------------------------------------------


def exists_is_fatal(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        name = f"{widget.metadata.name}"
        known = await ignore_not_found(_as_cached(ctx).get(ConfigMap, name, namespace="default"))
        if known is None:
            obj = child(widget)
            ctx.set_controller_reference(obj)
            try:
                await ctx.client.create(obj)
            except AlreadyExists:
                if wrong:
                    widget.status.phase = "Failed"
                    raise TerminalError("somebody has made it already") from None

    return operator_of(reconcile)


def expectations(*, wrong: bool) -> Subject:
    expected: dict[str, tuple[int, float]] = {}

    async def reconcile(widget: Widget, ctx: Context) -> None:
        key, now = widget.metadata.uid or "", asyncio.get_running_loop().time()
        if not wrong:
            found = await ctx.list(ConfigMap, owned=True)
        else:
            found = await _as_cached(ctx).list(ConfigMap, namespace="default", owner=key)
            count, until = expected.get(key, (0, 0.0))
            if len(found) < count and now < until:
                return
        missing = widget.spec.replicas - len(found)
        if missing > 0:
            expected[key] = (widget.spec.replicas, now + 300)
        for _ in range(missing):
            made = ConfigMap(
                metadata=ObjectMeta(generate_name=f"{widget.metadata.name}-", namespace="default")
            )
            ctx.set_controller_reference(made)
            try:
                await ctx.client.create(made)
            except SetpointError as error:
                expected.pop(key, None)
                raise RetryLater(20, "it may have been made: by then it is seen") from error

    return operator_of(reconcile)


# ---- 14, 15: how it is written ---------------------------------------------------------------------


def puts(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        name = widget.metadata.name or ""
        found = await ignore_not_found(ctx.client.get(ConfigMap, name, namespace="default"))
        if found is None:
            await ctx.apply(child(widget, text=widget.spec.text))
            return
        if (found.data or {}).get("text") == widget.spec.text:
            return
        if wrong:
            found.data = {"text": widget.spec.text}
            found.metadata.resource_version = None
            await ctx.client.update(found)
        else:
            await ctx.apply(child(widget, text=widget.spec.text))

    return operator_of(reconcile)


def hurries(*, wrong: bool) -> Subject:
    def at_once(send: Transport) -> Transport:
        async def ask(request: HttpRequest) -> Response:
            while (response := await send(request)).status == 429:
                await response.close()
                await asyncio.sleep(0.2)
            return response

        return ask

    async def reconcile(widget: Widget, ctx: Context) -> None:
        client = ctx.client.live.through(at_once) if wrong else ctx.client
        patch = MergePatch({"metadata": {"annotations": {"text": widget.spec.text}}})
        if (widget.metadata.annotations or {}).get("text") != widget.spec.text:
            await client.patch(Widget, widget.metadata.name or "", patch, namespace="default")

    return operator_of(reconcile, owns=False)


# ---- 16: works on when it leads no longer ----------------------------------------------------------


def works_on(*, wrong: bool) -> Subject:
    left: set[asyncio.Task[Any]] = set()

    def add(manager: Manager) -> object:
        class Writes:
            async def reconcile(self, request: Request) -> Result:
                widget = await ignore_not_found(manager.client.get(Widget, request.name, namespace="default"))
                if widget is None or widget.status.done == widget.spec.text:
                    return Result()
                patch = MergePatch({"status": {"done": widget.spec.text}})
                client = manager.plain_client if wrong else manager.client
                writing = client.patch(
                    Widget, request.name, patch, namespace="default", subresource="status", timeout=500
                )
                if wrong:
                    task = asyncio.create_task(writing)
                    left.add(task)
                    await asyncio.shield(task)
                else:
                    await writing
                return Result()

        return builder(manager).named("widget").for_(Widget).complete(Writes())

    return Longhand(add)


# ---- 18: an owner in another namespace -------------------------------------------------------------


def elsewhere(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        me = widget.metadata
        obj = child(widget, text=widget.spec.text)
        if not wrong:
            await ctx.apply(obj)
            return
        obj.metadata.namespace = "kube-public"
        obj.metadata.owner_references = [
            OwnerReference(
                api_version="test.setpoint.dev/v1", kind="Widget", name=me.name or "", uid=me.uid or ""
            )
        ]
        if await ignore_not_found(ctx.client.get(ConfigMap, me.name or "", namespace="kube-public")) is None:
            await ctx.client.create(obj)

    return operator_of(reconcile)


# ---- 20, 21: the way that led there ----------------------------------------------------------------


def prunes(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> list[ConfigMap] | None:
        wanted = [child(widget, f"-{number}") for number in range(widget.spec.replicas)]
        if not wrong:
            return wanted
        for each in wanted:
            await ctx.apply(each)
        return None

    return operator_of(reconcile)


def waits(*, wrong: bool) -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        found = await ignore_not_found(ctx.get(ConfigMap, widget.metadata.name or ""))
        is_well = found is None or (found.data or {}).get("text") != "bad"
        if wrong and not is_well:
            return
        await ctx.apply(child(widget, text=widget.spec.text))

    return operator_of(reconcile)


# ---- 24: takes a user's change for its own ---------------------------------------------------------


def filters(*, wrong: bool) -> Subject:
    own: dict[Request, str] = {}

    def add(manager: Manager) -> object:
        class Filters:
            async def reconcile(self, request: Request) -> Result:
                client = manager.client
                widget = await ignore_not_found(client.get(Widget, request.name, namespace="default"))
                if widget is None:
                    return Result()
                if wrong and own.get(request) == widget.metadata.resource_version:
                    return Result()
                if widget.status.done == widget.spec.text:
                    return Result()
                patch = MergePatch({"status": {"done": widget.spec.text}})
                wrote = await client.patch(
                    Widget, request.name, patch, namespace="default", subresource="status"
                )
                own[request] = wrote.metadata.resource_version or ""
                return Result()

        return builder(manager).named("widget").for_(Widget).complete(Filters())

    return Longhand(add)


# ---- I2: what takes its time to go -----------------------------------------------------------------


def replaces(*, wrong: bool) -> Subject:
    """What cannot be changed is deleted and made anew; that it is still there is taken for done."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        obj = child(widget, text=widget.spec.text)
        ctx.set_controller_reference(obj)
        name = obj.metadata.name or ""
        found = await ignore_not_found(ctx.client.live.get(ConfigMap, name, namespace="default"))
        if found is not None and found.metadata.deletion_timestamp is None and is_of(widget, found):
            if found.data == obj.data:
                return
            await ctx.delete(found)
        try:
            await ctx.client.create(obj)
        except AlreadyExists:
            if not wrong:
                raise RetryLater(5, "it takes its time to go") from None

    return operator_of(reconcile, owns=False)


# ---- E6, E7, S1: those that the study has none for -------------------------------------------------


def never_goes(*, wrong: bool) -> Subject:
    """O7: what was never provisioned is waited for, quietly, and keeps the object from going."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        del ctx
        if await cloud.get(widget.metadata.uid or "") is None:
            await cloud.create(widget.metadata.uid or "")
        widget.status.done = "yes"

    async def clean_up(widget: Widget, ctx: Context) -> Result | None:
        del ctx
        if wrong and not widget.status.done and await cloud.get(widget.metadata.uid or "") is None:
            return Result(requeue_after=600)
        await cloud.delete(widget.metadata.uid or "")
        return None

    return operator_of(reconcile, clean_up, owns=False)


def stumbles(*, wrong: bool) -> Subject:
    """O11: a mistake on the way that is taken only when something goes wrong."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        try:
            await ctx.apply(child(widget, text=widget.spec.text))
        except Conflict as error:
            if wrong:
                widget.status.phase = error.args[7]
            raise

    return operator_of(reconcile)


def impatient(*, wrong: bool) -> Subject:
    """E6: what was not answered in time is taken for not done, and done again under another name."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        found = await ctx.list(ConfigMap, owned=True)
        if found:
            return
        tries = 2 if wrong else 1
        for number in range(tries):
            name = f"{widget.metadata.name}-{number if wrong else 0}"
            obj = ConfigMap(metadata=ObjectMeta(name=name, namespace="default"))
            ctx.set_controller_reference(obj)
            try:
                async with asyncio.timeout(28 if wrong else None):
                    await ctx.client.create(obj)
            except TimeoutError:
                continue
            except AlreadyExists:
                pass
            return

    return operator_of(reconcile)


def gives_up(*, wrong: bool) -> Subject:
    """E7: what two processes began and did not finish is taken for what ended them."""
    process = uuid.uuid4().hex

    async def reconcile(widget: Widget, ctx: Context) -> None:
        if widget.status.done == widget.spec.text or widget.status.phase == "Failed":
            return
        begun, name = widget.status.attempts, widget.metadata.name or ""
        version = widget.metadata.resource_version  # not of one that has come to bear its name

        async def note(**status: Any) -> str | None:
            patch = MergePatch({"metadata": {"resourceVersion": version}, "status": status})
            noted = ctx.client.patch(Widget, name, patch, namespace="default", subresource="status")
            return (await noted).metadata.resource_version

        if wrong and widget.status.id != process:
            if begun >= 2:
                widget.status.phase = "Failed"
                return
            version = await note(id=process, attempts=begun + 1)
        await ctx.apply(child(widget, text=widget.spec.text))
        await note(done=widget.spec.text, id="", attempts=0)

    return operator_of(reconcile, owns=False)


def forgives(*, wrong: bool) -> Subject:
    """S1: a connection that breaks is taken for a detail."""
    done: set[str] = set()

    async def reconcile(widget: Widget, ctx: Context) -> None:
        key = f"{widget.metadata.uid}/{widget.metadata.generation}"
        if wrong and key in done:
            return
        try:
            await ctx.apply(child(widget, text=widget.spec.text))
            await ctx.apply(child(widget, "-2", text=widget.spec.text))
        except TransportError:
            if not wrong:
                raise
        done.add(key)

    return operator_of(reconcile, owns=False)


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "01",
        "children with generated names, counted in the cache",
        "V1",
        ("O8",),
        counted_children,
        steps=ONE,
        at_most=(("ConfigMap", 1),),
    ),
    Mutant(
        "02",
        "something outside is made before the finalizer",
        "E2",
        ("O6",),
        lambda wrong: by_hand(late=wrong),
    ),
    Mutant(
        "03",
        "the finalizer is removed before the clean-up",
        "E1",
        ("O6",),
        lambda wrong: by_hand(early_removal=wrong),
    ),
    Mutant("04", "done is written before it is done", "E1", ("O3",), marked_before),
    Mutant("05", "progress is kept in memory", "E3", ("O3",), in_memory),
    Mutant("06", "cleans up only when it sees the child go", "V2", ("O3", "O6"), sees_it_go, steps=HELD),
    Mutant("07", "tears down by name", "V9", ("O5",), lambda wrong: tears_down(by_name=wrong), steps=AGAIN),
    Mutant(
        "08",
        "an index of events forgets no one after a 410",
        "V6",
        ("O3",),
        indexes,
        steps=(create(), config_map("x"), delete_map("x"), delete()),
    ),
    Mutant("09", "a timestamp in each reconcile", "none", ("O2",), timestamps),
    Mutant("10", "a conflict is swallowed", "E3", ("O3", "O2"), conflicts),
    Mutant("11", "a timeout is taken for success", "E3", ("O3", "O2"), timeouts),
    Mutant("12", "a new random id with each try", "E4", ("O8", "O6"), random_ids, at_most=(("cloud", 1),)),
    Mutant("13", "that something exists is fatal", "V1", ("O3",), exists_is_fatal),
    Mutant("14", "an unconditional PUT of what was read before", "I2", ("O8",), puts),
    Mutant("15", "does not wait as Retry-After says", "E5", ("O10",), hurries),
    Mutant(
        "I2a",
        "takes everybody's finalizers off",
        "I2",
        ("O8",),
        lambda wrong: by_hand(everybodys=wrong),
    ),
    Mutant(
        "I2b",
        "what is deleted and still there is taken for alive",
        "I2",
        ("O6",),
        lambda wrong: by_hand(carries_on=wrong),
    ),
    Mutant("I2c", "what is deleted is taken for gone", "I2", ("O3",), replaces),
    Mutant("16", "writes on when the lease is lost", "L1", ("O12",), works_on),
    Mutant("L1", "what another leader began is taken for done", "L1", ("O4",), marked_before),
    Mutant("18", "an owner in another namespace", "none", ("O8", "O1"), elsewhere),
    Mutant(
        "19",
        "an expectation that expires after five minutes",
        "V1",
        ("O8",),
        expectations,
        steps=ONE,
        at_most=(("ConfigMap", 1),),
    ),
    Mutant(
        "20",
        "nothing is taken away",
        "none",
        ("O4",),
        prunes,
        steps=(create(replicas=2), Pass(5), change(replicas=1), delete()),
    ),
    Mutant(
        "21",
        "waits for health before a new spec",
        "none",
        ("O4", "O3"),
        waits,
        steps=(create(), change(text="bad"), change(text="a"), delete()),
    ),
    Mutant("22", "cannot go if it never was", "E2", ("O7", "O6", "O1"), stuck),
    Mutant(
        "23",
        "absent in the cache is taken for deleted",
        "V9",
        ("O5",),
        lambda wrong: tears_down(absent_is_deleted=wrong),
        steps=AGAIN,
    ),
    Mutant("24", "a user's change is taken for one's own", "I1", ("O9", "O2"), filters),
    Mutant("E6", "what is late is done again", "E6", ("O3", "O5", "O8"), impatient),
    Mutant("E7", "gives up at the second crash", "E7", ("O3", "O9"), gives_up),
    Mutant("S1", "a broken connection is a detail", "S1", ("O3", "O2"), forgives),
    Mutant("O7", "waits for what never was, and cannot go", "E2", ("O7",), never_goes),
    Mutant("O11", "a mistake where errors are handled", "E3", ("O11",), stumbles),
)
