"""What every built-in controller is made with: the manager it runs in, where Events go, and the time.

``controllers.py`` makes one ``Parts`` for all controllers of a manager, and gives it to the ``add_to`` of
each module beside this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from setpoint.client.client import Client
from setpoint.clock import Clock, SystemClock
from setpoint.controller.builder import Manager as Runner
from setpoint.controller.client import ReconcileClient
from setpoint.controller.event_series import EventType, Happening
from setpoint.controller.owners import AnyObject
from setpoint.controller.recorder import Recorder, reference_to


class Runnable(Protocol):
    """What a manager runs."""

    async def run(self) -> None: ...


class Manager(Runner, Protocol):
    """What is needed of a manager."""

    @property
    def client(self) -> ReconcileClient: ...

    @property
    def plain_client(self) -> Client: ...

    def add(self, runnable: Runnable, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What a built-in controller is made with."""

    manager: Manager
    recorder: Recorder
    clock: Clock
    root_ca: str = ""  # the certificate by which the server is known, as PEM

    @property
    def client(self) -> ReconcileClient:
        return self.manager.client

    def tell(self, controller: str, about: AnyObject, sort: EventType, reason: str, note: str) -> None:
        """Record an Event about an object."""
        self.recorder.record(Happening(controller, reference_to(about), sort, reason, reason, note))


def parts_of(manager: Manager, clock: Clock | None = None, *, root_ca: str = "") -> Parts:
    """The parts for some controllers of a manager, which runs the recorder from now on."""
    clock = clock or SystemClock()
    recorder = Recorder(manager.plain_client, utc=clock.utc)
    manager.add(recorder)
    return Parts(manager, recorder, clock, root_ca)
