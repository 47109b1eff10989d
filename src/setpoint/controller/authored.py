"""Makes a reconciler of an author's function: what happens before, around and after each call of it.

    1. read the object, from the cache; gone: nothing to do
    2. deleted: if our finalizer is there, read it from the server, clean up, write the status, let it go
    3. in a hot loop: look again later
    4. add the finalizer, if there is a clean-up; with ``verify``, read it from the server, unless it has just
       answered: gone or going, or another by that name: nothing to do, for that is a change, and is looked at
    5. call the author's function, with the object and a context
    6. declared children: apply them in order, then delete those that are no longer declared
    7. returned or raised: write what changed in the status

An object that is being deleted is not reconciled: its children go with it, and whoever made them anew would
fight the garbage collector.  When a reconcile is cancelled nothing more is written.

Who has a clean-up has effects that nobody else takes away again, so there ``verify`` is the default.

How each step decides is in the file of its name; ``operator.py`` puts these reconcilers into controllers.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from setpoint.api.forms import Form, Untyped, form_of_object, key_of
from setpoint.api.model import Object, as_read
from setpoint.api.names import Key
from setpoint.controller.children import Declaring, declare_all, declare_each, declare_each_sync
from setpoint.controller.context import Context, Means
from setpoint.controller.finalizer import add_finalizer, finalizers_of, is_going, read_live, remove_finalizer
from setpoint.controller.owners import AnyObject, in_metadata
from setpoint.controller.result import Request, Result, plan
from setpoint.controller.signatures import CallForm, call_form, unwrap_partial
from setpoint.controller.status import (
    Target,
    change_between,
    conditions_of,
    observed_of,
    settle,
    status_of,
    with_defaults,
    write_status,
)
from setpoint.controller.sync_context import SyncContext
from setpoint.controller.threads import Hop, run_in_thread
from setpoint.controller.worker import Log, current_look, describe
from setpoint.errors import DecodeError, NotFound, TerminalError

Function: TypeAlias = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Finalizer:
    """A clean-up, and the name under which the server waits for it."""

    name: str
    function: Function


class Authored:
    """A reconciler that calls an author's function for each object of a kind."""

    def __init__(
        self,
        means: Means,
        form: Form[Any],
        function: Function | None,
        *,
        finalizer: Finalizer | None = None,
        owned: Sequence[Form[Any]] = (),
        verify: bool | None = None,
    ) -> None:
        self._means = means
        self._form = form
        self._function = function
        self._finalizer = finalizer
        self._owned = owned
        self._verify = finalizer is not None if verify is None else verify
        self._sorts: dict[Function, CallForm] = {}
        self._log = logging.getLogger(f"setpoint.controller.{means.controller}")

    def __repr__(self) -> str:
        return f"<Authored {getattr(self._function, '__qualname__', self._function)} of {self._form.gvk}>"

    async def reconcile(self, request: Request, /) -> Result | None:
        client, loops = self._means.client, self._means.hot_loops
        try:
            obj: AnyObject = await client.get(self._form, request.name, namespace=request.namespace or None)
        except NotFound:
            loops.forget(request)
            return None
        except DecodeError as error:  # it stays so until somebody changes it
            raise TerminalError(str(error)) from error
        if is_going(obj):
            return await self._clean_up(obj)
        wait = loops.wait(
            request,
            uid=in_metadata(obj, "uid") or "",
            now=asyncio.get_running_loop().time(),
            generation=in_metadata(obj, "generation"),
        )
        if wait > 0:
            return Result(requeue_after=wait)
        is_live = False
        if self._finalizer is not None:
            held = await add_finalizer(
                client.live, obj, self._finalizer.name, field_manager=self._means.field_manager
            )
            if held is None:
                return None  # gone or going meanwhile: that is a change, and looked at
            is_live, obj = held is not obj, held  # another than the cache's is what the server answered
        if self._function is None:
            return None
        if self._verify and not is_live:
            live = await read_live(client.live, obj)
            if live is None or is_going(live):
                return None  # the cache is behind, and will tell
            obj = live
        return (await self._call(self._function, obj)).result

    async def _clean_up(self, obj: AnyObject) -> Result | None:
        finalizer, client = self._finalizer, self._means.client
        if finalizer is None or finalizer.name not in finalizers_of(obj):
            return None
        live = await read_live(client.live, obj)
        if live is None or not is_going(live) or finalizer.name not in finalizers_of(live):
            return None
        given = copy.deepcopy(live)  # the author may change anything in it
        outcome = await self._call(finalizer.function, given)
        if not outcome.is_done or outcome.result not in (None, Result()):
            return outcome.result
        cleaned = await read_live(client.live, live)  # its status may be another by now
        if cleaned is not None:
            await remove_finalizer(
                client.live, cleaned, finalizer.name, field_manager=self._means.field_manager
            )
        return None

    # One call.

    async def _call(self, function: Function, obj: AnyObject) -> _Outcome:
        read = _Read.of(obj, self._means.field_manager)  # the author may change anything in it
        context = self._context(obj)
        children = Declaring(self._means, context, obj, self._owned)
        outcome = _Outcome()
        error: BaseException | None = None
        try:
            outcome = await self._run(function, obj, context, children)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as raised:  # noqa: BLE001 - raised again below, when the status is written
            error = raised
            outcome = _Outcome(is_done=plan(raised).is_terminal)
        try:
            await self._write_status(obj, read, context, is_done=outcome.is_done)
        except Exception as failed:
            if error is None:
                raise
            both = f"{describe(error)}; then writing the status failed: {describe(failed)}"
            raise BaseExceptionGroup(both, [error, failed]) from None
        if error is not None:
            raise error
        return outcome

    def _context(self, obj: AnyObject) -> Context:
        look = current_look()
        if look is not None:
            return Context(self._means, obj, log=look.log, reasons=look.reasons)
        return Context(self._means, obj, log=Log(self._log, {"controller": self._means.controller}))

    async def _run(
        self, function: Function, obj: AnyObject, context: Context, children: Declaring
    ) -> _Outcome:
        """Call the function, in whichever of its forms, and see to what it declares."""
        sort = self._sorts.get(function)
        if sort is None:
            sort = self._sorts[function] = call_form(function)
        is_declarative = sort in ("generator", "async generator")
        answer: Any = None
        if sort == "async generator":
            await declare_each(children, function(obj, context))
        elif sort == "coroutine":
            answer = await function(obj, context)
        else:
            answer = await self._run_plain(function, obj, context, children)
        if isinstance(answer, list | tuple):
            await declare_all(children, answer)
            is_declarative, answer = True, None
        if not (answer is None or isinstance(answer, Result)):
            raise TypeError(
                f"{_name(function)} returned {answer!r}: a reconciler returns None, a Result, or children"
            )
        if is_declarative and children.waits_for is None:
            await children.prune()
        return _Outcome(children.result or answer, is_done=children.waits_for is None)

    async def _run_plain(
        self, function: Function, obj: AnyObject, context: Context, children: Declaring
    ) -> object:
        """Call a function that is not async, in a thread."""

        def call(hop: Hop) -> object:
            answer = function(obj, SyncContext(context, hop))
            if isinstance(answer, Generator):
                return declare_each_sync(children, answer, lambda item: hop.wait(children.take(item)))
            if inspect.isawaitable(answer):
                raise TypeError(f"{_name(function)} returned something to await: write it as `async def`")
            return answer

        return await run_in_thread(call, name=f"{self._means.controller} {key_of(obj)}", log=context.log)

    async def _write_status(self, obj: AnyObject, read: _Read, context: Context, *, is_done: bool) -> None:
        generation = read.generation
        tracker = self._means.generations if is_done and generation is not None else None
        may_observe = tracker is None or tracker.may_observe(read.key, read.uid, generation or 0)
        observed = observed_of(obj, generation, now=context.now(), is_done=is_done and may_observe)
        after = settle(read.status, status_of(obj), observed)
        await self._write_change(read, after, context)
        if tracker is not None:
            is_written = after.get("observedGeneration") == generation
            is_withheld = observed.says_generation and not may_observe and not is_written
            tracker.processed(
                read.key, read.uid, generation or 0, is_withheld=is_withheld, is_written=is_written
            )

    async def _write_change(self, read: _Read, after: dict[str, Any], context: Context) -> None:
        change = change_between(read.status, after, ours=read.ours)
        if change is None:
            return
        target = read.target
        change = with_defaults(change, after, target.status)
        written = await write_status(
            self._means.client.live, target, change, field_manager=self._means.field_manager
        )
        if written is not None and written.metadata.resource_version != target.version:
            context.note_status(change.written())


class _Outcome(NamedTuple):
    result: Result | None = None
    is_done: bool = True  # it has acted on all that the object asks for


class _Read(NamedTuple):
    """An object as it was read, as far as its status needs it."""

    form: Form[Any]
    key: Key
    uid: str
    version: str
    generation: int | None
    status: dict[str, Any]
    stored: bytes | None
    ours: set[str]

    @classmethod
    def of(cls, obj: AnyObject, manager: str) -> _Read:
        return cls(
            form_of_object(obj),
            key_of(obj),
            in_metadata(obj, "uid") or "",
            in_metadata(obj, "resource_version") or "",
            in_metadata(obj, "generation"),
            status_of(obj),
            as_read(obj) if isinstance(obj, Object) else None,
            conditions_of(obj, manager),
        )

    @property
    def target(self) -> Target:
        """Whose status to write; with the status as the server has it, which a class may know but in part."""
        stored = self.status if self.stored is None else status_of(Untyped(self.form.gvk).decode(self.stored))
        return Target(self.form, self.key, self.uid, self.version, stored)


def _name(function: Function) -> str:
    return getattr(unwrap_partial(function), "__qualname__", repr(function))
