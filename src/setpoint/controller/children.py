"""The declarative form: a reconcile says which children there should be, by yielding or returning them.

    async def reconcile(webapp: WebApp, ctx: Context) -> Children:
        yield Ready(database_of(webapp))        # what follows waits until it is ready
        deployment = yield deployment_of(webapp)
        if webapp.spec.public:
            yield ingress_of(webapp)            # and no longer yielded, it is deleted

1. What is yielded is applied at once, in order; the object as it is then is what ``yield`` gives.  An apply
   that fails is raised there.
2. ``Ready(child)`` goes on only if the child is ready; otherwise the rest is left for when it changes.
3. When all was yielded, children that were yielded before and are not now are deleted.  They are found by
   owner, by our label, among the kinds that the controller owns; never from memory.
4. Nothing is deleted if the reconcile raised or did not get to its end, nor if the object that it is for is,
   on the server, another one, or going, or changed since it was read.
5. What was applied with ``ctx.apply`` in the same reconcile counts as yielded.

What to delete is decided by ``to_prune``, which is pure.  Driven by ``authored.py``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from setpoint.api.forms import Form, form_of_object, key_of, metadata_only
from setpoint.api.meta import PartialObjectMetadata
from setpoint.api.model import Object
from setpoint.api.names import Key
from setpoint.controller.context import LABEL, Context, Means
from setpoint.controller.owners import AnyObject, identity_of, object_text
from setpoint.controller.readiness import Readiness, is_ready
from setpoint.controller.result import Result
from setpoint.errors import NotFound

Child: TypeAlias = Object | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ready:
    """A child that must be ready before the reconcile goes on."""

    child: Child


Declared: TypeAlias = Child | Ready | Result
Children: TypeAlias = AsyncGenerator[Declared, Any]
"""What an ``async`` reconciler returns that yields its children; ``yield`` gives back each as it is then."""


def to_prune(
    found: Iterable[PartialObjectMetadata], *, owner: str, kept: Iterable[Key]
) -> list[PartialObjectMetadata]:
    """Of the objects of a kind with our label, those that are to go: ours, not kept, and not going yet."""
    keep = set(kept)
    return [
        each
        for each in found
        if key_of(each) not in keep
        and each.metadata.deletion_timestamp is None
        and any(owned.uid == owner and owned.controller for owned in each.metadata.owner_references or ())
    ]


class Declaring:
    """What one reconcile declares."""

    def __init__(
        self, means: Means, context: Context, primary: AnyObject, owned: Sequence[Form[Any]]
    ) -> None:
        self._means = means
        self._context = context
        self._me = identity_of(primary)
        self._owned = {(form.gvk.group, form.gvk.kind): form for form in owned}
        self._declared: set[tuple[str, str, Key]] = set()
        self.result: Result | None = None
        self.waits_for: Readiness | None = None  # the gate at which it stopped

    async def take(self, item: Declared) -> Any:
        """Apply what was declared; what the author is given for it."""
        if isinstance(item, Result):
            self.result = item
            return None
        child = item.child if isinstance(item, Ready) else item
        if not isinstance(child, Object | dict):
            raise TypeError(f"a reconciler yields objects, Ready(object) or a Result, not {child!r}")
        self._check_kind(child)
        applied = await self._context.apply(child)
        self._check_twice(applied)
        if isinstance(item, Ready):
            readiness = is_ready(applied)
            if not readiness:
                self._context.log.info("waiting for %s: %s", object_text(applied), readiness)
                self.waits_for = readiness
        return applied

    def _check_kind(self, child: Child) -> None:
        gvk = form_of_object(child).gvk
        if (gvk.group, gvk.kind) not in self._owned:
            raise ValueError(
                f"{object_text(child)} was declared, and the controller does not own its kind: nobody would "
                f"notice a change of it, or delete it one day; add it to owns=[…]"
            )

    def _check_twice(self, applied: AnyObject) -> None:
        me = identity_of(applied)
        place = (me.gvk.group, me.gvk.kind, key_of(applied))
        if place in self._declared:
            raise ValueError(
                f"{object_text(applied)} was declared twice in one reconcile: each would undo the other"
            )
        self._declared.add(place)

    async def prune(self) -> None:
        """Delete the children that were declared once and are no longer."""
        me = self._me
        going: list[tuple[Form[Any], PartialObjectMetadata]] = []
        for (group, kind), form in reversed(self._owned.items()):
            kept = [
                key
                for each_group, each_kind, key in self._context.applied
                if (each_group, each_kind) == (group, kind)
            ]
            found = await self._means.client.list(
                metadata_only(form),
                namespace=me.namespace or None,
                labels={LABEL: self._means.label},
                owner=me.uid,
            )
            going += [(form, each) for each in to_prune(found, owner=me.uid, kept=kept)]
        if not going or not await self._context.is_current():
            return
        for form, each in going:
            key = key_of(each)
            self._context.log.info("deleting %s %s, no longer wanted", form.gvk, key)
            with suppress(NotFound):
                await self._means.client.delete(
                    form,
                    key.name,
                    namespace=key.namespace or None,
                    uid=each.metadata.uid or "",
                    resource_version=each.metadata.resource_version or "",
                    propagation="Background",
                )


async def declare_all(children: Declaring, items: Iterable[Declared]) -> None:
    """A list of children: those that were returned."""
    for item in items:
        await children.take(item)
        if children.waits_for is not None:
            return


async def declare_each(children: Declaring, generator: AsyncIterator[Declared]) -> None:
    """Declaring as an async generator yields them."""
    if not isinstance(generator, AsyncGenerator):
        async for item in generator:
            await children.take(item)
            if children.waits_for is not None:
                break
        return
    async with aclosing(generator):
        try:
            item = await anext(generator)
            while True:
                try:
                    given = await children.take(item)
                except Exception as error:  # noqa: BLE001 - it is the author's, at the place that caused it
                    item = await generator.athrow(error)
                    continue
                if children.waits_for is not None:
                    return
                item = await generator.asend(given)
        except StopAsyncIteration:
            pass


def declare_each_sync(
    children: Declaring, generator: Generator[Declared, Any, object], take: Callable[[Declared], Any]
) -> object:
    """Declaring as a plain generator yields them; what it returns."""
    try:
        item = next(generator)
        while True:
            try:
                given = take(item)
            except Exception as error:  # noqa: BLE001 - as above
                item = generator.throw(error)
                continue
            if children.waits_for is not None:
                return None
            item = generator.send(given)
    except StopIteration as end:
        return end.value
    finally:
        generator.close()
