"""Owns the clients, the cache, the controllers and the servers of a process; runs them until told to stop.

1. What runs starts in order (servers, webhooks, cache, others, then what needs leadership) and stops in
   reverse (``lifecycle.py``, ``supervisor.py``).
2. When one of them fails, all are stopped and ``run`` raises its error.  Controllers do not fail because of
   what reconcilers raise or a server refuses: they see to that themselves.
3. With leader election, what needs leadership starts when it is won.  When it may have been lost, no
   reconcile starts, the client refuses writes, all work is cancelled at once and ``run`` raises
   ``LeadershipLost``.  On shutdown the lease is given back when the work has ended, and not before.
4. Signals are handled only where ``run`` is told to.
5. Two managers in one process share nothing.

Not here: what happens in which order, and how it ends.  Driven by ``cli/run.py``, or by anyone's program.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlsplit

from setpoint.api.names import Key
from setpoint.api.requests import Call
from setpoint.cache.cache import Cache
from setpoint.cache.informer import RESYNC, SYNC_TIMEOUT
from setpoint.cache.watch_state import TIMING, Timing
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.clock import Clock, SystemClock
from setpoint.controller.client import ReconcileClient
from setpoint.controller.controller import Controller
from setpoint.controller.worker import current_look
from setpoint.errors import TransportError
from setpoint.manager.lease import Election
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.lifecycle import Group
from setpoint.manager.probes import LOOP_NAME, Check, Probes
from setpoint.manager.signals import stopped_by_signals
from setpoint.manager.supervisor import Runnable, Supervisor
from setpoint.manager.tracing import Tracing
from setpoint.manager.visitors import Visitors
from setpoint.manager.why import Journal, WhyServer, explain
from setpoint.metrics import Metrics
from setpoint.net.transport import Request, Response, Transport

R = TypeVar("R", bound=Runnable)

GRACEFUL_SHUTDOWN = 30.0  # as controller-runtime; a pod's terminationGracePeriodSeconds must be longer
_LOOK_EVERY = 0.05  # seconds between two looks at whether the cache is there

log = logging.getLogger("setpoint.manager")


class Manager:
    """Everything that one operator process runs.

    ``config`` says where the server is, as for a Client; or give a ``client``, which stays the caller's to
    close.  ``namespaces`` are those that are watched where a controller says nothing else; all, unless told.
    Addresses are ``host:port``: ``:8080`` listens on every interface, and an empty one not at all.
    ``metrics_secure`` serves metrics over TLS, to those whom the API server lets get /metrics; the folder
    ``metrics_certificate`` has its tls.crt and tls.key, and without one a certificate is made.

    ``timing`` says how patient the watches are: for odd proxies on the way to the server, and for tests.
    ``clock`` is where the times come from that are written down; the machine's, unless told.

    ``client`` reads declared kinds from the cache and, with leader election, writes only while this process
    leads, or in a reconcile of a controller that does not need leadership; ``plain_client`` is for what else
    every replica may write.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        client: Client | None = None,
        name: str = "setpoint",
        namespaces: Iterable[str] | None = None,
        leader_election: LeaderElection | None = None,
        health_address: str = "",
        metrics_address: str = "",
        metrics_secure: bool = False,
        metrics_certificate: str | Path | None = None,
        graceful_shutdown: float = GRACEFUL_SHUTDOWN,
        resync: float = RESYNC,
        sync_timeout: float = SYNC_TIMEOUT,
        timing: Timing = TIMING,
        why_socket: bool = False,
        clock: Clock | None = None,
    ) -> None:
        if config is not None and client is not None:
            raise ValueError("give a config or a client: a client has its own config")
        self.name: Final = name
        self.clock: Final[Clock] = clock or SystemClock()
        self._graceful_shutdown = graceful_shutdown
        self._supervisor = Supervisor(graceful_shutdown)
        self.metrics: Final = Metrics()
        uncounted = Client(config, field_manager=name) if client is None else client
        self._own_client = uncounted if client is None else None
        host = urlsplit(uncounted.config.server).netloc
        self._connected = asyncio.Event()
        self.plain_client: Final = uncounted.through(partial(_counted, self.metrics, host, self._connected))
        self.journal: Final = Journal()
        self.tracing: Final = Tracing()
        self.cache: Final = Cache(
            self.plain_client,
            self.metrics,
            resync=resync,
            sync_timeout=sync_timeout,
            timing=timing,
            namespaces=namespaces,
        )
        self.election: Final = (
            Election(leader_election, self.plain_client, self.metrics, clock=self.clock)
            if leader_election
            else None
        )
        guarded = self.plain_client.guarded_by(self._guard) if self.election else self.plain_client
        self.client: Final = ReconcileClient(guarded, self.cache)
        self.probes: Final = Probes(
            self.metrics,
            health_address=health_address,
            metrics_address=metrics_address,
            visitors=Visitors(self.plain_client) if metrics_secure else None,
            certificate=metrics_certificate,
        )
        self.probes.health["workers"] = self._ended_workers
        self.probes.ready |= {"caches": self._unsynced_caches, "controllers": self._idle_controllers}
        if self.election:
            self.probes.ready["leader-election"] = self._refused_election
        self._tasks: asyncio.TaskGroup | None = None  # of the block, where it is used as one
        if self.probes.is_wanted:
            self.add(self.probes)
        if why_socket:
            self.add(WhyServer(name, self.explain))
        self.add(_CacheRunner(self.cache, sync_timeout))
        if self.election:
            self.add(self.election)

    def __repr__(self) -> str:
        return f"<Manager {self.name} of {self.plain_client.config.server}: {self._supervisor.lifecycle!r}>"

    # What it runs.

    def add(self, runnable: R) -> R:
        """Run it when its time comes; now, if that is past.  ``supervisor.py`` says what can be run."""
        if isinstance(runnable, Controller):
            if any(each.name == runnable.name for each in self.controllers):
                raise ValueError(f"there is a controller {runnable.name!r} already: give one another name")
            runnable.around_look(self.tracing.around)
            runnable.on_look(self.journal.record)
            runnable.on_look(self.tracing.record)
        self._supervisor.add(runnable)
        return runnable

    async def remove(self, runnable: Runnable, *, grace: float | None = None) -> None:
        """Stop one of the things that were added, and wait for that; the others run on.

        What it has in hand may take ``grace`` seconds; unless told, as many as a shutdown may take.
        """
        await self._supervisor.remove(runnable, self._graceful_shutdown if grace is None else grace)

    @property
    def runnables(self) -> list[Runnable]:
        """All that was added, in that order."""
        return [slot.runnable for slot in self._supervisor.slots]

    @property
    def controllers(self) -> list[Controller]:
        return [slot.runnable for slot in self._supervisor.slots if isinstance(slot.runnable, Controller)]

    @property
    def is_leading(self) -> bool:
        """Whether what needs leadership may act just now; True where there is no election."""
        return self.election is None or self.election.epoch.is_valid

    def add_health_check(self, name: str, check: Check) -> None:
        """Have /healthz fail while ``check`` gives a reason: the process is then killed."""
        _add_check(self.probes.health, name, check)

    def add_ready_check(self, name: str, check: Check) -> None:
        """Have /readyz fail while ``check`` gives a reason."""
        _add_check(self.probes.ready, name, check)

    def explain(self, kind: str, key: Key) -> dict[str, Any]:
        """What is known about an object: what ``setpoint why`` shows."""
        leads = {"is_leading": self.is_leading, "leader": self.election.leader} if self.election else {}
        return leads | explain(
            kind,
            key,
            controllers=self.controllers,
            cache=self.cache,
            journal=self.journal,
            now=asyncio.get_running_loop().time(),
        )

    def _guard(self, call: Call) -> None:
        """Refuse a write that only the leader may make, unless we lead."""
        look = current_look()
        # A reconcile of another manager that uses our client knows nothing of our lease.
        is_free = look is not None and look.reader.cache is self.cache and not look.needs_leadership
        if self.election is not None and not is_free:
            self.election.epoch(call)

    # Running.

    async def run(self, *, handle_signals: bool = False) -> None:
        """Run everything until stopped, or until something fails: that is raised.

        With ``handle_signals``, SIGTERM and SIGINT stop it in order, and the second of them at once.
        """
        try:
            with stopped_by_signals(self.stop) if handle_signals else nullcontext():
                await self._supervisor.run()
        finally:
            if self._own_client is not None:
                await self._own_client.close()

    def stop(self) -> None:
        """Begin to stop in order; ``run`` ends when all has ended.  In the thread of the event loop."""
        self._supervisor.stop()

    async def wait_started(self) -> None:
        """Wait until all is ready that need not be elected first, or all is being stopped."""
        await self._supervisor.wait_started()

    async def wait_connected(self) -> None:
        """Wait until the API server has answered a request, and did not refuse it."""
        await self._connected.wait()

    async def __aenter__(self) -> Self:
        """Run everything beside the block, which begins as ``wait_started`` ends.

        If something fails, the block is cancelled, and leaving it raises the error.
        """
        self._tasks = asyncio.TaskGroup()
        await self._tasks.__aenter__()
        self._tasks.create_task(self.run(), name=f"manager {self.name}")
        try:
            await self.wait_started()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            raise AssertionError("a manager is left only where it was entered")
        self.stop()
        try:
            # A failure shows as the block's cancellation, which the group turns into the failure.  Any other
            # error is the block's own, and leaves as it is.
            if kind is not None and issubclass(kind, asyncio.CancelledError):
                await tasks.__aexit__(kind, error, trace)
            else:
                await tasks.__aexit__(None, None, None)
        except BaseExceptionGroup as group:
            if len(group.exceptions) == 1:
                raise group.exceptions[0] from None
            raise

    # How it is.

    def _ended_workers(self) -> str | None:
        """Controllers that should run and do not, and workers that ended."""
        lifecycle = self._supervisor.lifecycle
        alive = {*lifecycle.running(), *lifecycle.unready()}
        slots = [slot for slot in self._supervisor.slots if isinstance(slot.runnable, Controller)]
        ended = [slot.name for slot in slots if slot not in alive]
        wrong = [f"no longer running: {', '.join(ended)}"] if ended else []
        wrong += [
            f"{each.name}: {'; '.join(each.ended_workers)}" for each in self.controllers if each.ended_workers
        ]
        return "; ".join(wrong) if wrong and not lifecycle.is_stopping else None

    def _refused_election(self) -> str | None:
        """Why nobody here can ever lead; a replica that stands by could."""
        return None if self.election is None else self.election.problem

    def _unsynced_caches(self) -> str | None:
        late = [each for each in self.cache.stats() if not each.is_synced]
        return "; ".join(f"{each.scope}: {each.problem or 'no answer yet'}" for each in late) or None

    def _idle_controllers(self) -> str | None:
        lifecycle = self._supervisor.lifecycle
        if lifecycle.is_stopping:
            return "stopping"
        upto = Group.LEADERS if self.is_leading else Group.OTHERS
        late = lifecycle.unready(upto)
        idle = {
            slot.name: "; ".join(slot.runnable.problems) or "not working yet"
            for slot in lifecycle.running()
            if isinstance(slot.runnable, Controller) and not slot.runnable.is_working
        }
        wrong = dict.fromkeys((slot.name for slot in late), "not ready yet") | idle
        return "; ".join(f"{name}: {why}" for name, why in wrong.items()) or None


class _CacheRunner:
    """The cache, as something to run."""

    group = Group.CACHES
    name = "cache"

    def __init__(self, cache: Cache, sync_timeout: float) -> None:
        self._cache = cache
        self._sync_timeout = sync_timeout

    async def run(self) -> None:
        await self._cache.run()

    async def wait_ready(self) -> None:
        """Wait until all is there, or it is known why not: what one is refused holds up nobody else."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._sync_timeout
        while any(not each.is_synced and each.problem is None for each in self._cache.stats()):
            if loop.time() > until:
                log.warning("the cache is not synced after %g s; going on without", self._sync_timeout)
                return
            await asyncio.sleep(_LOOK_EVERY)


def _counted(metrics: Metrics, host: str, connected: asyncio.Event, transport: Transport) -> Transport:
    """The transport, which counts what passes through it, and notes the first success."""

    async def count(request: Request) -> Response:
        try:
            response = await transport(request)
        except TransportError:
            metrics.request(method=request.method, host=host, code="<error>")
            raise
        metrics.request(method=request.method, host=host, code=str(response.status))
        if response.status < 400:
            connected.set()
        return response

    return count


def _add_check(checks: dict[str, Check], name: str, check: Check) -> None:
    if not name or "/" in name or name in checks or name == LOOP_NAME:
        raise ValueError(f"{name!r} cannot name a check: it is empty, taken, or has a slash")
    checks[name] = check
