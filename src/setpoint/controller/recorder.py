"""Tells people what happened to an object: Events of events.k8s.io/v1, as ``kubectl describe`` shows them.

1. ``record`` never waits and never fails: no reconcile is slower or worse for it.
2. What is sent, and what only counted, is decided in ``event_series.py``, as client-go decides it.
3. What waits to be sent is bounded (1000); above that it is dropped, counted, and said once in the log.
4. A request that fails is tried 12 times, about 10 s apart; one that the server refuses is not tried again.
5. When it is stopped, it sends what is waiting, within ``drain`` seconds.

A runnable of the manager, one for all that runs there.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from setpoint.api.forms import metadata_only
from setpoint.api.model import Object, ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.api.times import MicroTime
from setpoint.client.client import Client
from setpoint.clock import SystemClock, within
from setpoint.controller.event_series import Again, EventSeries, Happening, New, Reference
from setpoint.controller.owners import AnyObject, identity_of
from setpoint.errors import AlreadyExists, ApiError, NotFound, ServerError, SetpointError, TooManyRequests

QUEUE = 1000
TRIES = 12
PAUSE = 10.0
_JITTER = 0.25
_LOOK_EVERY = 60.0  # whether a series is over, or its count is to be sent
_TIMEOUT = 10.0
_LONGEST_NOTE = 1024  # bytes, as the server allows
_LONGEST_NAME = 253
_LONGEST_WORD = 128

_utc = SystemClock().utc

log = logging.getLogger("setpoint.events")


class _Event(Object, group="events.k8s.io", version="v1", kind="Event", plural="events"):
    event_time: MicroTime
    reporting_controller: str
    reporting_instance: str
    type: str
    reason: str
    action: str
    note: str
    regarding: dict[str, str]
    related: dict[str, str] | None = None
    series: dict[str, Any] | None = None


class Recorder:
    """Sends Events to one server."""

    needs_leadership: Final = False  # it ends after those who tell it things

    def __init__(
        self,
        client: Client,
        *,
        instance: str = "",
        drain: float = 5.0,
        utc: Callable[[], datetime] = _utc,
    ) -> None:
        self._client = client
        self._instance = (instance or socket.gethostname())[:_LONGEST_WORD]
        self._drain = drain
        self._utc = utc
        self._series = EventSeries()
        self._waiting: deque[New | Again] = deque()
        self._arrived = asyncio.Event()
        self._refused: set[str] = set()
        self.dropped = 0

    def __repr__(self) -> str:
        return f"<Recorder {len(self._waiting)} waiting, {self.dropped} dropped>"

    def record(self, happening: Happening) -> None:
        """Tell it, some time soon.  To be called in the thread of the loop."""
        time = MicroTime.of(self._utc())
        to_send = self._series.add(happening, now=_now(), time=time)
        if to_send is None:
            return
        if len(self._waiting) >= QUEUE:
            if not self.dropped:
                log.warning("%d events wait for the server; further ones are dropped", QUEUE)
            self.dropped += 1
            return
        self._waiting.append(to_send)
        self._arrived.set()

    async def run(self) -> None:
        """Send what there is to send, until cancelled; then send the rest."""
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY if self._series.is_open else None):
                        await self._arrived.wait()
                self._arrived.clear()
                self._waiting.extend(self._series.due(now=_now()))
                while self._waiting:
                    # It stays first while it is under way: what is cancelled there is sent when draining.
                    await self._deliver(self._waiting[0])
                    self._waiting.popleft()
        finally:
            await self._send_rest()

    async def _send_rest(self) -> None:
        self._waiting.extend(self._series.finish(now=_now()))
        with suppress(TimeoutError), within(self._drain):
            while self._waiting:
                with suppress(SetpointError):
                    await self._send(self._waiting[0])
                self._waiting.popleft()
        if self._waiting:
            log.warning("%d events were not sent before the end", len(self._waiting))

    async def _deliver(self, to_send: New | Again) -> None:
        for tried in range(1, TRIES + 1):
            try:
                await self._send(to_send)
            except ApiError as error:
                if not isinstance(error, ServerError | TooManyRequests):
                    self._tell_once(error)
                    return
                failed: SetpointError = error
            except SetpointError as error:
                failed = error
            else:
                return
            if tried == TRIES:
                self._tell_once(failed)
            else:
                await asyncio.sleep(PAUSE * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311 - no secret

    async def _send(self, to_send: New | Again) -> None:
        if isinstance(to_send, New):
            await self._make(to_send)
            return
        series = {"count": to_send.count, "lastObservedTime": to_send.time.to_wire()}
        name, namespace = name_of(to_send.first), _namespace(to_send.first)
        try:
            await self._client.patch(
                metadata_only(_Event),
                name,
                MergePatch({"series": series}),
                namespace=namespace,
                timeout=_TIMEOUT,
            )
        except NotFound:  # the server keeps Events for an hour
            await self._make(to_send.first, series)

    async def _make(self, new: New, series: dict[str, Any] | None = None) -> None:
        told = new.happening
        event = _Event(
            metadata=ObjectMeta(name=name_of(new), namespace=_namespace(new)),
            event_time=new.time,
            reporting_controller=told.controller[:_LONGEST_WORD],
            reporting_instance=self._instance,
            type=told.type,
            reason=told.reason[:_LONGEST_WORD],
            action=told.action[:_LONGEST_WORD],
            note=told.note.encode()[:_LONGEST_NOTE].decode(errors="ignore"),
            regarding=_reference(told.regarding),
            related=None if told.related is None else _reference(told.related),
            series=series,
        )
        with suppress(AlreadyExists):  # an answer was lost
            await self._client.create(event, timeout=_TIMEOUT)

    def _tell_once(self, error: SetpointError) -> None:
        """A server that does not want our Events is said once, not with each."""
        causes = error.causes if isinstance(error, ApiError) else ()
        if any(cause.reason == "NamespaceTerminating" for cause in causes):
            log.debug("an event was not recorded: %s", error)  # it would go with the namespace
            return
        sort = type(error).__name__
        if sort not in self._refused:
            self._refused.add(sort)
            log.warning("an event was not recorded, and others may not be: %s", error)


def reference_to(obj: AnyObject) -> Reference:
    """How an Event speaks of an object."""
    it = identity_of(obj)
    return Reference(it.gvk.api_version, it.gvk.kind, it.namespace, it.name, it.uid)


def name_of(new: New) -> str:
    """What the Event is called: after its object and its time, and no other Event."""
    told = new.happening.regarding.name.lower()
    stem = re.sub(r"[^a-z0-9.-]", "-", told).strip(".-")  # the names of roles may hold more
    end = f".{int(new.time.timestamp() * 1_000_000):x}{new.number:x}"
    return (stem[: _LONGEST_NAME - len(end)].rstrip(".-") or "event") + end


def _now() -> float:
    return asyncio.get_running_loop().time()


def _namespace(new: New) -> str:
    return new.happening.regarding.namespace or "default"


def _reference(reference: Reference) -> dict[str, str]:
    said = {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
    }
    return {name: value for name, value in said.items() if value}
