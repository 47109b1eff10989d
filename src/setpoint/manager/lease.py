"""Asks the server for the lease: the shell around ``lease_state.py``.

1. ``wait_ready`` ends when this process leads; ``run`` raises ``LeadershipLost`` when it no longer may.
2. No request lasts longer than the time for which we may count on the lease.
3. While another leads the lease is watched, so that it is taken at once when it is given back.  Where that
   is not permitted, or does not work, the looks every ``retry_period`` do.
4. Where the server refuses to let us read or write the lease, ``problem`` says so and what to grant.
5. After ``stop`` the lease is given back, so that another need not wait until it runs out.  That is for when
   the work has ended; ``abandon`` first where it has not, and the lease runs out by itself.

What to do and what to make of it is decided in ``lease_state.py``; who else may know is in ``epoch.py``.
Driven by ``manager.py`` as the one member of its group.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import random
import socket
import uuid
from dataclasses import replace

from setpoint.api.meta import ObjectMeta
from setpoint.api.names import Key
from setpoint.api.times import MicroTime
from setpoint.cache.scope import rbac_rule
from setpoint.client.client import Client
from setpoint.clock import Clock, SystemClock
from setpoint.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    LeadershipLost,
    NotFound,
    ServerError,
    SetpointError,
    Unauthorized,
)
from setpoint.kube.coordination.v1 import Lease
from setpoint.manager.epoch import Epoch, SteadyClock
from setpoint.manager.lease_state import (
    Absent,
    Attempt,
    Failed,
    Found,
    Freed,
    Heard,
    LeaderElection,
    Leading,
    Lost,
    Outrun,
    Read,
    Record,
    Standby,
    State,
    Wait,
    Write,
    Written,
    advance,
    check,
    next_step,
    release_step,
    valid_until,
)
from setpoint.manager.lifecycle import Group
from setpoint.metrics import Metrics

RELEASE_TIMEOUT = 5.0

log = logging.getLogger("setpoint.election")


class Election:
    """One candidate for one lease."""

    group = Group.ELECTION

    def __init__(
        self, settings: LeaderElection, client: Client, metrics: Metrics, *, clock: Clock | None = None
    ) -> None:
        self.settings = replace(
            settings,
            namespace=settings.namespace or client.config.namespace,
            identity=settings.identity or f"{socket.gethostname()}_{uuid.uuid4()}",
        )
        self.key = Key(self.settings.namespace, settings.name)
        self.epoch = Epoch(str(self.key))
        self.state: State = Standby()
        self._client = client
        self._clock = clock or SystemClock()  # only for what is written down
        self._steady_clock: SteadyClock | None = None  # from when there is a loop
        self._gauge = metrics.leader(settings.name)
        self._lease: Lease | None = None  # as the server last had it
        self._elected = asyncio.Event()
        self._scope: asyncio.Timeout | None = None
        self._freed = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None  # while another leads
        self._is_stopping = False
        self._is_abandoned = False
        self._said = ""
        self.problem: str | None = None  # why the server refuses us the lease; for readiness

    def __repr__(self) -> str:
        return f"<Election by lease {self.key}: {type(self.state).__name__.lower()}>"

    @property
    def name(self) -> str:
        return f"election by lease {self.key}"

    @property
    def leader(self) -> str:
        """Who leads, as far as is known; "" for nobody."""
        record = None if isinstance(self.state, Lost) else self.state.record
        return record.holder if record else ""

    async def wait_ready(self) -> None:
        """Wait until this process leads."""
        await self._elected.wait()

    def stop(self) -> None:
        """Have ``run`` end, and give the lease back."""
        self._is_stopping = True
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())

    def abandon(self) -> None:
        """Never give the lease back: something of ours may still be at work."""
        self._is_abandoned = True

    async def run(self) -> None:
        """Be a candidate, then the leader, until stopped."""
        self._gauge.set(0)
        try:
            async with asyncio.timeout(None) as self._scope:
                while not self._is_stopping:
                    await self._go_on()
        except TimeoutError:
            if not self._is_stopping:
                raise
        finally:
            self._scope = None
            self._gauge.set(0)
            self.epoch.end("this process no longer leads")
            await self._end_watch()
        if not self._is_abandoned:
            await self._release()

    async def _go_on(self) -> None:
        now = self._now()
        self._become(check(self.state, self.settings, now=now))
        if isinstance(self.state, Lost):
            raise LeadershipLost(f"lead by lease {self.key}", self.state.why)
        if self._watching is not None and isinstance(self.state, Leading):
            self._watching.cancel()
        match next_step(self.state, self.settings, now=now, utc=self._utc()):
            case Wait(until) if isinstance(self.state, Standby):
                await self._stand_by(until - now)
            case Wait(until):
                await asyncio.sleep(until - now)
            case step:
                await self._carry_out(step)

    async def _stand_by(self, seconds: float) -> None:
        """Wait until the next look is due, or the lease is given back."""
        if self._watching is None and self.leader:
            self._watching = asyncio.create_task(self._watch(), name=f"watch lease {self.key}")
        try:
            async with asyncio.timeout(seconds):
                await self._freed.wait()
        except TimeoutError:
            return
        self._freed.clear()
        self._hear(Freed())

    async def _watch(self) -> None:
        """Say when the lease is given back."""
        where = {"metadata.name": self.key.name}
        while True:
            try:
                async with self._client.watch(Lease, namespace=self.key.namespace, fields=where) as changes:
                    async for change in changes:
                        if change.type == "DELETED" or not change.object.spec.holder_identity:
                            self._freed.set()
            except Forbidden as error:
                log.info("standing by costs a little time, for the lease cannot be watched: %s", error)
                return
            except SetpointError as error:
                log.debug("election: %s", error)
            await asyncio.sleep(self.settings.lease_duration)

    async def _end_watch(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT):
                while step := release_step(self.state, utc=self._utc()):
                    if await self._carry_out(step, releasing=isinstance(step, Write)):
                        log.info("gave lease %s back", self.key)
                        return
        except TimeoutError:
            log.warning("could not give lease %s back in time: it runs out by itself", self.key)

    async def _carry_out(self, step: Read | Write, *, releasing: bool = False) -> bool:
        """Do it, and take in what came of it; whether it was written."""
        heard = await (self._look() if isinstance(step, Read) else self._write(step))
        if not (releasing and isinstance(heard, Written)):
            self._hear(heard)
        return isinstance(heard, Written)

    async def _look(self) -> Heard:
        try:
            self._lease = await self._client.get(
                Lease, self.key.name, namespace=self.key.namespace, timeout=self._time_left()
            )
        except NotFound:
            return Absent()
        except SetpointError as error:
            self._complain(error, "get")
            return Failed()
        return Found(self._record(self._lease), self._lease.metadata.resource_version or "")

    async def _write(self, step: Write) -> Heard:
        attempt = Attempt(step.record, self._now())  # before it is sent
        lease = self._written(step)
        send = self._client.update if step.version else self._client.create
        try:
            self._lease = await send(lease, timeout=self._time_left())
        except NotFound as error:
            if step.version:
                return Absent()
            self._complain(error, "create")  # there is no such namespace
            return Failed()
        except Conflict:
            return Outrun()
        except SetpointError as error:
            self._complain(error, "update" if step.version else "create")
            certain = isinstance(error, ConnectionFailed) or (
                isinstance(error, ApiError) and not isinstance(error, ServerError)
            )
            return Failed(None if certain else attempt)
        except asyncio.CancelledError:  # it may have happened, and then the lease must be given back
            self._hear(Failed(attempt))
            raise
        return Written(attempt, self._lease.metadata.resource_version or "")

    def _written(self, step: Write) -> Lease:
        """The lease as it is to be: what others put on it stays."""
        if step.version and self._lease is not None:
            lease = copy.deepcopy(self._lease)
            lease.metadata.resource_version = step.version
        else:
            lease = Lease(metadata=ObjectMeta(name=self.key.name, namespace=self.key.namespace))
        record = step.record
        lease.spec.holder_identity = record.holder
        lease.spec.lease_duration_seconds = record.duration
        lease.spec.acquire_time = None if record.acquired is None else MicroTime.of(record.acquired)
        lease.spec.renew_time = None if record.renewed is None else MicroTime.of(record.renewed)
        lease.spec.lease_transitions = record.transitions
        return lease

    def _record(self, lease: Lease) -> Record:
        spec = lease.spec
        return Record(
            spec.holder_identity or "",
            spec.lease_duration_seconds or self.settings.lease_duration,
            spec.acquire_time,
            spec.renew_time,
            spec.lease_transitions or 0,
        )

    def _hear(self, heard: Heard) -> None:
        jitter = random.random()  # noqa: S311 - no secret
        if not isinstance(heard, Failed):
            self._said, self.problem = "", None
        if isinstance(heard, Written) and heard.attempt.record.is_unheld:
            log.info("created lease %s: nobody leads for %d s", self.key, self.settings.lease_duration)
        self._become(advance(self.state, heard, self.settings, now=self._now(), jitter=jitter))

    def _become(self, state: State) -> None:
        before, self.state = self.state, state
        match state:
            case Leading():
                self.epoch.extend(valid_until(state, self.settings), self._steady())
                if not isinstance(before, Leading):
                    log.info("leading by lease %s as %s", self.key, self.settings.identity)
                    self._gauge.set(1)
                    self._elected.set()
            case Standby(record=Record(holder=holder)) if holder:
                known = before.record.holder if isinstance(before, Standby) and before.record else ""
                if holder != known:
                    log.info("standing by: %s holds lease %s", holder, self.key)
            case Lost(why):
                self.epoch.end(why)

    def _complain(self, error: SetpointError, verb: str) -> None:
        """Say what went wrong, once until something else does."""
        rule = ""
        if isinstance(error, Forbidden):
            rule = f"; add to the rules of a Role in namespace {self.key.namespace}: " + rbac_rule(
                "coordination.k8s.io", "leases", ("get", "create", "update", "watch")
            )
        # Out of reach it may come back by itself; what is refused somebody must grant.
        is_refused = isinstance(error, Forbidden | Unauthorized | NotFound)
        self.problem = f"{error}{rule}" if is_refused else None
        said = f"{verb}: {type(error).__name__}"
        if said != self._said:
            self._said = said
            log.warning("election: %s%s", error, rule)

    def _time_left(self) -> float:
        timeout = self.settings.request_timeout
        if isinstance(self.state, Leading):
            timeout = min(timeout, valid_until(self.state, self.settings) - self._now())
        return max(timeout, 0.001)

    def _steady(self) -> SteadyClock:
        if self._steady_clock is None:
            self._steady_clock = SteadyClock()
        return self._steady_clock

    def _now(self) -> float:
        return self._steady().now()

    def _utc(self) -> MicroTime:
        return MicroTime.of(self._clock.utc())
