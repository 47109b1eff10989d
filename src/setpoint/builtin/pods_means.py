"""What one controller of workloads works with: a client, the time, and a voice of its own for Events.

``Means.of(parts, name)`` makes them.  The name is the one kube-controller-manager gives the controller, and
is what its Events say they come from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from setpoint.api.model import Object
from setpoint.api.times import Time
from setpoint.builtin.parts import Manager, Parts
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import Builder, builder
from setpoint.controller.client import ReconcileClient
from setpoint.controller.controller import Controller
from setpoint.controller.result import Request, Result
from setpoint.errors import ApiError, Conflict, Forbidden, NotFound


@dataclass(frozen=True, slots=True)
class Means:
    """What one controller works with."""

    name: str
    parts: Parts
    voice: str = ""  # what Events say they come from, where that is another name

    @property
    def manager(self) -> Manager:
        return self.parts.manager

    @property
    def client(self) -> ReconcileClient:
        return self.parts.client

    def now(self) -> Time:
        """The time in whole seconds, as objects carry it."""
        return Time.of(self.parts.clock.utc())

    def tell(self, about: Object, reason: str, note: str) -> None:
        """Record an Event about an object."""
        self.parts.tell(self.voice or self.name, about, "Normal", reason, note)

    def warn(self, about: Object, reason: str, note: str) -> None:
        self.parts.tell(self.voice or self.name, about, "Warning", reason, note)

    def building(self, workers: int) -> Builder:
        """The controller of this name, which is yet to be told what it is for."""
        return builder(self.manager).named(self.name).with_options(workers=workers)


def complete(building: Builder, reconcile: Callable[[Request], Awaitable[Result | None]]) -> Controller:
    """The controller, to which two refusals are no failure.

    After a conflict the next look sees what the other wrote; and in a namespace that ends, nothing new is to
    be made.
    """

    async def look(request: Request) -> Result | None:
        try:
            return await reconcile(request)
        except (Conflict, NotFound):
            return Result(requeue=True)
        except Forbidden as error:
            if is_of_an_ending_namespace(error):
                return None
            raise

    return building.complete(look)


def is_of_an_ending_namespace(error: ApiError) -> bool:
    """Whether something was refused because its namespace is being deleted."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def look_again(*seconds: float | None) -> Result:
    """The result that looks again at the first of these times; None is never."""
    wait = min((each for each in seconds if each is not None), default=None)
    return Result() if wait is None else Result(requeue_after=max(0.0, wait))


async def is_still_there(means: Means, owner: Object) -> bool:
    """Whether the server has this very owner still, and it is not being deleted."""
    metadata = owner.metadata
    fresh = await ignore_not_found(
        means.client.live.get(type(owner), metadata.name or "", namespace=metadata.namespace)
    )
    return (
        fresh is not None and fresh.metadata.uid == metadata.uid and fresh.metadata.deletion_timestamp is None
    )
