"""Deletes Events an hour after they were last told, as kube-apiserver does by itself.

An Event that happened again lives an hour from then.  Only a server that keeps Events for ever needs this
one; on another it finds nothing to do.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.result import Request, Result
from setpoint.errors import NotFound
from setpoint.kube.core.v1 import Event

NAME: Final = "event-ttl-controller"
TTL = timedelta(hours=1)  # kube-apiserver's --event-ttl, unless told


def add_to(parts: Parts) -> None:
    """Delete Events that are too old."""

    async def reconcile(request: Request) -> Result | None:
        event = await ignore_not_found(parts.client.get(Event, request.name, namespace=request.namespace))
        told = None if event is None else last_told(event)
        if event is None or told is None:
            return None
        left = (told + TTL - parts.clock.utc()).total_seconds()
        if left > 0:
            return Result(requeue_after=left)
        with suppress(NotFound):
            version = event.metadata.resource_version or ""
            await parts.client.delete(event, uid=event.metadata.uid or "", resource_version=version)
        return None

    complete(builder(parts.manager).named(NAME).for_(Event, strip_managed_fields=True), reconcile)


def last_told(event: Event) -> datetime | None:
    """When an Event last said that something happened."""
    series = event.series.last_observed_time if event.series is not None else None
    times = [event.metadata.creation_timestamp, event.last_timestamp, event.event_time, series]
    return max((each for each in times if each is not None), default=None)
