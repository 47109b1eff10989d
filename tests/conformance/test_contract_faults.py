"""Every line of the contract under every fault, on a real kube-apiserver.

For each fault all lines are shown at once, each in a namespace, with connections and an operator of its own;
one test for each pair then says what became of it, and that the fault did strike there.  What a line is shown
by is in ``contract_lines.py``; where it is shown more closely, and under faults made for it alone, in
``test_contract.py``.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from setpoint.api import ObjectMeta, crd_of
from setpoint.cache import Timing
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.errors import LeadershipLost
from setpoint.kube.coordination.v1 import Lease
from setpoint.kube.core.v1 import ConfigMap, Namespace, Secret
from setpoint.manager.manager import Manager
from setpoint.testing.faults import Faults, Rule
from setpoint.testing.kube import ControlPlane
from setpoint.testing.proxy import Proxy
from setpoint.testing.waiting import eventually
from tests.conformance.contract_lines import (
    LINES,
    TIMING,
    Authored,
    Bulb,
    Journal,
    Line,
    OneLeader,
    election,
    namespace_of,
)
from tests.conformance.planes import NewPlane
from tests.pages import ROOT

# ---- where lines are shown -------------------------------------------------------------------------


class Here:
    """A line in this process, with a network of its own."""

    def __init__(
        self, line: type[Line], world: str, user: Client, folder: Path, *, timing: Timing = TIMING
    ) -> None:
        self.user = user
        self._timing = timing
        self._folder = folder
        self._names = iter(("first", "second", "third"))
        self.line = line(namespace_of(world, line), Journal(folder, "user"))
        self._running: dict[str, tuple[Manager, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        config = self.user.config
        async with AsyncExitStack() as stack:
            self.proxy = await stack.enter_async_context(Proxy.of(config))
            through = self.proxy.config(config)
            self.faults = await stack.enter_async_context(Faults.of(through))
            operator = Client(through, transport=self.faults, timeout=1.5)
            self._operator = await stack.enter_async_context(operator)
            await self.user.create(Namespace(metadata=ObjectMeta(name=self.line.namespace)))
            try:
                await self.restart()
                if isinstance(self.line, OneLeader):
                    await self._start(self.user)  # to whom nothing happens, and who stands by
                yield
            finally:
                self.line.journal.open_gate(self.line.number)
                self.faults.drop()
                for name in list(self._running):
                    await self._stop(name)

    @property
    def leader(self) -> str:
        (leader,) = [name for name, (manager, _) in self._running.items() if manager.is_leading]
        return leader

    @property
    def watches(self) -> int:
        """How many have been opened, or tried."""
        return sum(
            asked.verb == "watch" and asked.namespace == self.line.namespace for asked in self.faults.requests
        )

    async def crash(self) -> None:
        gone = self.faults.drop()  # the network first, so that nothing dies in order
        self.faults.cut()
        await self.end()
        gone.remove()

    async def restart(self) -> None:
        await self._start(self._operator)

    async def end(self) -> None:
        await self._stop(self.leader)

    async def _start(self, client: Client) -> None:
        name = next(self._names)
        line = type(self.line)(self.line.namespace, Journal(self._folder, name))
        is_elected = isinstance(line, OneLeader)
        manager = Manager(
            client=client,
            timing=self._timing,
            graceful_shutdown=0,
            leader_election=election(line.namespace, name) if is_elected else None,
        )
        line.add_to(manager)
        self._running[name] = manager, asyncio.create_task(manager.run(), name=f"{name} of {line.namespace}")
        if is_elected and client is not self.user:
            await eventually(lambda: manager.is_leading)

    async def _stop(self, name: str) -> None:
        manager, running = self._running.pop(name)
        manager.stop()
        try:
            await running
        except LeadershipLost:
            assert isinstance(self.line, OneLeader)  # another leads, or nobody does


class There:
    """A line in two other processes, of which one leads."""

    def __init__(self, line: type[Line], world: str, replicas: Replicas) -> None:
        self.line = line(namespace_of(world, line), Journal(replicas.folder, "user"))
        self._replicas = replicas

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        yield

    @property
    def user(self) -> Client:
        return self._replicas.user

    @property
    def leader(self) -> str:
        return self._replicas.leader

    async def crash(self) -> None:
        """That is what the fault is."""

    async def restart(self) -> None:
        """The other takes over."""

    async def end(self) -> None:
        """When all lines are shown, those processes end that have not ended already."""


class Replicas:
    """Two processes, each an operator that relies on every line."""

    def __init__(self, user: Client, world: str, folder: Path, kubeconfig: Path) -> None:
        self.user = user
        self.folder = folder
        self.leader = ""
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self._world = world
        self._kubeconfig = kubeconfig

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        for line in LINES:
            name = namespace_of(self._world, line)
            await self.user.create(Namespace(metadata=ObjectMeta(name=name)))
        try:
            for name in ("first", "second"):
                self.processes[name] = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "tests.conformance.contract_lines"),
                    *(str(self.folder), name, self._world),
                    cwd=ROOT,
                    env={"KUBECONFIG": str(self._kubeconfig)},
                    stderr=asyncio.subprocess.PIPE,
                )
            self.leader = await eventually(self.holder)
            yield
        finally:
            for process in self.processes.values():
                if process.returncode is None:
                    process.kill()
                    await process.communicate()

    async def holder(self) -> str:
        lease = await self.user.get(Lease, "operator", namespace=namespace_of(self._world, OneLeader))
        return lease.spec.holder_identity or ""

    def send(self, number: signal.Signals, name: str) -> None:
        self.processes[name].send_signal(number)

    async def followed(self) -> str:
        """Wait until another leads; who led before."""
        before = self.leader

        async def another() -> str:
            holder = await self.holder()
            return holder if holder != before else ""

        self.leader = await eventually(another)
        return before


# ---- faults ----------------------------------------------------------------------------------------


class Fault:
    """What happens to one line, from ``begin`` to ``end``; ``count`` says how often it did."""

    name = ""
    timing = TIMING

    def __init__(self, at: Here) -> None:
        self.at = at
        self.rules: list[Rule] = []
        self._watches = at.watches
        self.cuts = 0

    async def begin(self) -> None: ...

    async def end(self) -> None: ...

    @property
    def count(self) -> int:
        return min((rule.count for rule in self.rules), default=0)

    @property
    def watches_since(self) -> int:
        return self.at.watches - self._watches


class ConnectionsCut(Fault):
    name = "connections cut"

    async def begin(self) -> None:
        self._watches = self.at.watches
        self.at.proxy.refuse()
        self.cuts = self.at.proxy.cut()

    async def end(self) -> None:
        await self.at.proxy.resume()

    @property
    def count(self) -> int:
        return min(self.cuts, self.watches_since)


class HalfOpen(Fault):
    name = "half-open"
    timing = replace(TIMING, liveness=1.0, progress=2.0)

    async def begin(self) -> None:
        self._watches = self.at.watches
        self.at.proxy.freeze()

    async def end(self) -> None:
        self.cuts = self.at.proxy.strand()  # these are lost for ever; new ones work
        await self.at.proxy.resume()

    @property
    def count(self) -> int:
        return min(self.cuts, self.watches_since)


class Refused(Fault):
    """The next two writes, and the watches until it ends."""

    code = 0
    of: tuple[str, ...] = ("watch", "write")

    async def begin(self) -> None:
        faults, namespace = self.at.faults, self.at.line.namespace
        wait = 1 if self.code == 429 else None
        if "write" in self.of:
            self.rules.append(
                faults.refuse(self.code, verb="write", namespace=namespace, times=2, retry_after=wait)
            )
        if "watch" in self.of:
            await eventually(lambda: faults.cut(self.code, namespace=namespace))
            self.rules.append(faults.refuse(self.code, verb="watch", namespace=namespace))

    async def end(self) -> None:
        if "watch" in self.of:
            await eventually(lambda: self.rules[-1].count)
            self.rules[-1].remove()


class Refused409(Refused):
    name, code, of = "409", 409, ("write",)


class Refused410(Refused):
    name, code, of = "410", 410, ("watch",)


class Refused429(Refused):
    name, code = "429", 429


class Refused500(Refused):
    name, code = "500", 500


class Refused503(Refused):
    name, code = "503", 503


class Slow(Fault):
    name = "slow responses"

    async def begin(self) -> None:
        namespace = self.at.line.namespace
        self.rules = [
            self.at.faults.delay(before=0.02, after=0.05, namespace=namespace),
            self.at.faults.hold(namespace=namespace),
        ]

    async def end(self) -> None:
        _, held = self.rules
        await eventually(lambda: held.count)
        held.remove()


class Doubled(Fault):
    name = "duplicate delivery"

    async def begin(self) -> None:
        self.rules = [self.at.faults.double(namespace=self.at.line.namespace)]


class Reordered(Fault):
    """What is later of one kind arrives before what is earlier of the other; then the other way round."""

    name = "reordering across kinds"

    async def begin(self) -> None:
        line = self.at.line
        first = Bulb if isinstance(line, Authored) else ConfigMap
        self.rules = [self.at.faults.hold(kind=first, namespace=line.namespace)]

    async def end(self) -> None:
        line = self.at.line
        second = ConfigMap if isinstance(line, Authored) else Secret
        passing = second(metadata=line.named("passer-by"))
        await self.at.user.create(passing)  # later than all that is held, and first to arrive
        (held,) = self.rules
        await eventually(lambda: held.count)
        other = self.at.faults.hold(kind=second, namespace=line.namespace)
        held.remove()
        asyncio.get_running_loop().call_later(0.3, other.remove)


class ServerKilled(Fault):
    """What happens meanwhile, the operator hears of only when the server is back."""

    name = "API server killed and restarted"

    async def begin(self) -> None:
        self._watches = self.at.watches
        self.cuts = await eventually(self.at.faults.cut)
        self.rules = [self.at.faults.drop()]

    async def end(self) -> None:
        self.rules[-1].remove()

    @property
    def count(self) -> int:
        return min(self.cuts, self.watches_since)


LEADER_FAULTS = {"leader killed": signal.SIGKILL, "leader paused": signal.SIGSTOP}
FAULTS: tuple[type[Fault], ...] = (
    ConnectionsCut,
    HalfOpen,
    Refused409,
    Refused410,
    Refused429,
    Refused500,
    Refused503,
    Slow,
    Doubled,
    Reordered,
    ServerKilled,
)

# Pairs that make no sense, and why.
SENSELESS = {
    (7, "409"): "no watch is ever answered with a conflict",
    (12, "reordering across kinds"): "a lease is one object, and what is written under it needs no order",
}


# ---- lines under faults ----------------------------------------------------------------------------

Outcomes = dict[int, Exception | None]
Step = Callable[[], Awaitable[object]]


async def nothing() -> None:
    pass


class Show:
    """All lines at once: each does its steps, and none begins one before all have done the last."""

    STEPS = 5  # before, the fault begins, during, it ends, after

    def __init__(self, parties: int) -> None:
        self.outcomes: Outcomes = {}
        self._barrier = asyncio.Barrier(parties)

    async def line(self, at: Here | There, begin: Step = nothing, end: Step = nothing) -> None:
        line = at.line
        steps: list[Step] = [
            partial(line.before, at),
            begin,
            partial(line.during, at),
            end,
            partial(line.after, at),
        ]
        self.outcomes[line.number] = None
        async with at.entered():
            for step in steps:
                try:
                    if self.outcomes[line.number] is None:
                        await step()
                except Exception as error:  # noqa: BLE001 - the test of the pair raises it
                    self.outcomes[line.number] = error
                await self._barrier.wait()

    async def conduct(self, steps: dict[int, Step]) -> None:
        """Do something for all of them, beside their step of this number."""
        for number in range(self.STEPS):
            await steps.get(number, nothing)()
            await self._barrier.wait()


async def show_here(kube: ControlPlane, fault: type[Fault], folder: Path) -> Outcomes:
    async with Client(Config.load(kube.kubeconfig)) as user:
        await serve_bulbs(user)
        world = f"faults-{secrets.token_hex(4)}"
        shown = [line for line in LINES if (line.number, fault.name) not in SENSELESS]
        show = Show(len(shown) + 1)

        restarted = asyncio.Event()

        async def kill_server() -> None:
            await asyncio.to_thread(kube.compact)
            if isinstance(kube, ControlPlane):
                kube._processes["kube-apiserver"].kill()  # merely stopped, it would end watches in order
            await asyncio.to_thread(kube.stop_api_server)
            await asyncio.to_thread(kube.start_api_server)
            restarted.set()

        async def one(line: type[Line]) -> None:
            (own := folder / f"line-{line.number}").mkdir()
            at = Here(line, world, user, own, timing=fault.timing)
            faults: list[Fault] = []

            async def begin() -> None:
                faults.append(fault(at))
                await faults[0].begin()

            async def end() -> None:
                if fault is ServerKilled:
                    await restarted.wait()
                await faults[0].end()

            await show.line(at, begin, end)
            if show.outcomes[line.number] is None and not faults[0].count:
                show.outcomes[line.number] = AssertionError(f"{fault.name} did not strike")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(show.conduct({3: kill_server} if fault is ServerKilled else {}))
            for line in shown:
                tasks.create_task(one(line))
        return show.outcomes


async def show_there(kube: ControlPlane, fate: signal.Signals, folder: Path) -> Outcomes:
    async with Client(Config.load(kube.kubeconfig)) as user:
        await serve_bulbs(user)
        world = f"faults-{secrets.token_hex(4)}"
        replicas = Replicas(user, world, folder, kube.kubeconfig)
        show = Show(len(LINES) + 1)
        before = ""

        async def begin() -> None:
            replicas.send(fate, replicas.leader)

        async def end() -> None:
            nonlocal before
            before = await replicas.followed()
            if fate is signal.SIGSTOP:
                replicas.send(signal.SIGCONT, before)

        async def one(line: type[Line]) -> None:
            at = There(line, world, replicas)
            await show.line(at)
            workers = {note.who for note in at.line.notes() if note.what in ("begin", "lit")}
            if show.outcomes[line.number] is None and workers != {before, replicas.leader}:
                show.outcomes[line.number] = AssertionError(f"not followed: {workers} have worked on it")

        async with replicas.entered():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(show.conduct({1: begin, 3: end}))
                for line in LINES:
                    tasks.create_task(one(line))
            replicas.send(signal.SIGTERM, replicas.leader)
            try:
                async with asyncio.timeout(10):
                    ends = {name: await each.communicate() for name, each in replicas.processes.items()}
                assert replicas.processes[replicas.leader].returncode == 0
                assert (b"LeadershipLost" in ends[before][1]) == (fate is signal.SIGSTOP)
            except (AssertionError, TimeoutError) as error:
                show.outcomes[14] = show.outcomes[14] or AssertionError(f"they did not end in order: {error}")
        return show.outcomes


async def serve_bulbs(user: Client) -> None:
    await user.apply(crd_of(Bulb), force=True)

    async def are_served() -> bool:
        await user.list(Bulb)
        return True

    await eventually(are_served)


@pytest.fixture(scope="module")
def known() -> dict[str, Outcomes]:
    """What has been shown so far."""
    return {}


PAIRS = [
    pytest.param(fault, line.number, id=f"{line.number}-{fault.replace(' ', '-')}")
    for fault in (*(fault.name for fault in FAULTS), *LEADER_FAULTS)
    for line in LINES
    if (line.number, fault) not in SENSELESS
]


@pytest.mark.deadline(120)
@pytest.mark.parametrize(("fault", "number"), PAIRS)
async def test_every_line_of_the_contract_holds_under_every_fault(  # noqa: PLR0917 - fixtures
    kube: ControlPlane,
    new_plane: NewPlane,
    known: dict[str, Outcomes],
    tmp_path: Path,
    fault: str,
    number: int,
) -> None:
    if fault not in known:
        if fault in LEADER_FAULTS:
            known[fault] = await show_there(kube, LEADER_FAULTS[fault], tmp_path)
        elif fault == ServerKilled.name:
            async with new_plane() as own:  # the other tests need theirs
                known[fault] = await show_here(own, ServerKilled, tmp_path)
        else:
            (kind,) = [each for each in FAULTS if each.name == fault]
            known[fault] = await show_here(kube, kind, tmp_path)
    error = known[fault][number]
    if error is not None:
        raise error


def test_only_pairs_of_a_line_and_a_fault_are_left_out() -> None:
    faults = {fault.name for fault in FAULTS} | LEADER_FAULTS.keys()
    assert [line.number for line in LINES] == list(range(1, 15)), "all lines are there"
    for number, fault in SENSELESS:
        assert number in range(1, 15)
        assert fault in faults
