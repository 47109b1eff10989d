"""What a reconciler that is a plain function is given: the words of ``Context``, and each call waits itself.

Such a function runs in a thread (``threads.py``).  Every call hops to the loop, has its twin there do the
work, and waits in the thread; what it raises is raised here.  When the reconcile is cancelled, calls raise.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar, Unpack, overload

from setpoint.api.forms import Form
from setpoint.api.model import Object
from setpoint.api.requests import Propagation
from setpoint.client.client import SelectOptions
from setpoint.controller.client import ReconcileClient
from setpoint.controller.context import Context, EventOptions, RawObject
from setpoint.controller.event_series import EventType
from setpoint.controller.mapping import Reason
from setpoint.controller.owners import AnyObject
from setpoint.controller.result import Request
from setpoint.controller.threads import Hop

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=Object)
ObjectT = TypeVar("ObjectT", bound=AnyObject)


class SyncContext:
    """What a reconciler that is a plain function is given: as ``Context``, and each call waits by itself.

    ``wait`` does the same for anything that is ``async``: ``ctx.wait(ctx.client.list(Pod))``.
    """

    client: ReconcileClient
    request: Request
    log: logging.LoggerAdapter[logging.Logger]
    reasons: tuple[Reason, ...]

    def __init__(self, context: Context, hop: Hop) -> None:
        self._context = context
        self._hop = hop
        self.client = context.client
        self.request = context.request
        self.log = context.log
        self.reasons = context.reasons
        self.now = context.now
        self.set_condition = context.set_condition
        self.set_controller_reference = context.set_controller_reference

    def __repr__(self) -> str:
        return f"<SyncContext of {self.request}>"

    def wait(self, asked: Coroutine[Any, Any, T]) -> T:
        """Have the loop do something ``async``, and wait for what comes of it."""
        return self._hop.wait(asked)

    def get(self, kind: type[T] | Form[T], name: str, *, namespace: str | None = None) -> T:
        return self._hop.wait(self._context.get(kind, name, namespace=namespace))

    def list(
        self, kind: type[T] | Form[T], *, owned: bool = False, **select: Unpack[SelectOptions]
    ) -> builtins.list[T]:
        return self._hop.wait(self._context.list(kind, owned=owned, **select))

    @overload
    def apply(self, desired: ModelT, *, owned: bool = True, force: bool = True) -> ModelT: ...

    @overload
    def apply(self, desired: RawObject, *, owned: bool = True, force: bool = True) -> RawObject: ...

    def apply(self, desired: Any, *, owned: bool = True, force: bool = True) -> Any:
        return self._hop.wait(self._context.apply(desired, owned=owned, force=force))

    def create_or_patch(
        self, obj: ObjectT, mutate: Callable[[ObjectT], object], *, owned: bool = True
    ) -> ObjectT:
        return self._hop.wait(self._context.create_or_patch(obj, mutate, owned=owned))

    @overload
    def delete(self, obj: Object | RawObject, /, *, propagation: Propagation = "Background") -> bool: ...

    @overload
    def delete(
        self,
        kind: type[Object] | Form[Any],
        name: str,
        /,
        *,
        namespace: str | None = None,
        propagation: Propagation = "Background",
    ) -> bool: ...

    def delete(self, *target: Any, **options: Any) -> bool:
        return self._hop.wait(self._context.delete(*target, **options))

    def event(self, type: EventType, reason: str, note: str, **options: Unpack[EventOptions]) -> None:  # noqa: A002
        happening, recorder = self._context.happening(type, reason, note, **options), self._context.recorder
        if recorder is not None:
            self._hop.call(partial(recorder.record, happening))
