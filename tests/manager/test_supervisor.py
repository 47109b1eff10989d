"""How things start, fail and end together: the promises of ``manager/supervisor.py``, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from setpoint.errors import LeadershipLost
from setpoint.manager.lifecycle import Group
from setpoint.manager.supervisor import CANCEL_FOR, Supervisor, group_of

pytestmark = pytest.mark.virtual_time


async def forever() -> None:
    await asyncio.Event().wait()


@dataclass
class Thing:
    """Something to run, which writes down what happens to it."""

    name: str
    diary: list[str]
    group: Group = Group.OTHERS
    work: Callable[[], Awaitable[None]] = forever

    async def run(self) -> None:
        self.diary.append(f"{self.name} starts")
        try:
            await self.work()
        finally:
            self.diary.append(f"{self.name} ends")


@dataclass
class Slow(Thing):
    """One that must get ready first."""

    seconds: float = 3.0

    async def wait_ready(self) -> None:
        await asyncio.sleep(self.seconds)
        self.diary.append(f"{self.name} is ready")


@dataclass
class Polite(Thing):
    """One that finishes what it has in hand when cancelled once."""

    seconds: float = 3.0
    was_cut: bool = False

    async def run(self) -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            try:
                await asyncio.sleep(self.seconds)
            except asyncio.CancelledError:
                self.was_cut = True
                raise
            self.diary.append(f"{self.name} has finished")


class Sudden(BaseException):
    """Not an Exception."""


@dataclass
class Deaf(Thing):
    """One that cannot be cancelled, until the test lets it go."""

    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        while not self.free.is_set():
            try:
                await self.free.wait()
            except asyncio.CancelledError:
                continue


@dataclass
class Holder(Thing):
    """One that holds something for those who start later."""

    is_abandoned: bool = False
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        await self.told.wait()
        self.diary.append(f"{self.name} {'keeps' if self.is_abandoned else 'gives back'}")

    def stop(self) -> None:
        self.told.set()

    def abandon(self) -> None:
        self.is_abandoned = True


def supervisor(*things: Thing, graceful_shutdown: float = 30.0) -> Supervisor:
    made = Supervisor(graceful_shutdown)
    for thing in things:
        made.add(thing)
    return made


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_things_start_in_order_each_when_those_before_are_ready_and_end_in_reverse() -> None:
    diary: list[str] = []
    made = supervisor(
        Thing("leader", diary, Group.LEADERS),
        Slow("cache", diary, Group.CACHES),
        Thing("server", diary, Group.SERVERS),
    )
    running = asyncio.create_task(made.run())
    await made.wait_started()
    made.stop()
    await running
    assert diary == [
        "server starts",
        "cache starts",
        "cache is ready",
        "leader starts",
        "leader ends",
        "cache ends",
        "server ends",
    ]


async def test_what_says_nothing_needs_leadership() -> None:
    class Plain:
        async def run(self) -> None: ...

    class Everywhere(Plain):
        needs_leadership = False

    assert group_of(Plain()) is Group.LEADERS
    assert group_of(Everywhere()) is Group.OTHERS
    assert group_of(Thing("x", [], Group.WEBHOOKS)) is Group.WEBHOOKS


async def test_what_is_added_while_all_runs_starts_at_once() -> None:
    diary: list[str] = []
    made = supervisor(Thing("first", diary))
    running = asyncio.create_task(made.run())
    await made.wait_started()
    made.add(Slow("second", diary))
    made.add(Thing("third", diary, Group.LEADERS))
    await asyncio.sleep(3.5)
    assert diary == ["first starts", "second starts", "second is ready", "third starts"]
    made.stop()
    await running


async def test_when_one_fails_all_are_stopped_in_order_and_its_error_is_raised() -> None:
    diary: list[str] = []

    async def fail() -> None:
        await asyncio.sleep(1)
        raise LookupError("gone")

    made = supervisor(
        Thing("server", diary, Group.SERVERS),
        Thing("broken", diary, work=fail),
        Polite("worker", diary, Group.LEADERS),
    )
    with pytest.raises(LookupError, match="gone"):
        await made.run()
    assert diary[-2:] == ["worker has finished", "server ends"], "what works may finish"


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), Sudden("gone")], ids=repr)
async def test_an_error_that_is_no_exception_is_logged_and_stops_everything_in_order(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    diary: list[str] = []

    class Failing(Thing):
        async def run(self) -> None:
            await asyncio.sleep(5)
            raise error

    made = supervisor(Thing("server", diary, Group.SERVERS), Failing("failing", diary))
    with pytest.raises(type(error)):
        await made.run()
    assert diary[-1] == "server ends"
    assert f"failing failed, and so everything stops: {type(error).__name__}" in caplog.text


async def test_one_that_is_cancelled_by_somebody_else_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    diary: list[str] = []
    made = supervisor(Thing("one", diary), Thing("other", diary))
    running = asyncio.create_task(made.run())
    await made.wait_started()
    await asyncio.sleep(1)
    (slot, _) = made.slots
    assert slot.task is not None
    slot.task.cancel()
    await asyncio.sleep(1)
    made.stop()
    await running
    assert caplog.text.count("was cancelled, though nobody stopped it") == 1
    assert "one was cancelled" in caplog.text


async def test_one_that_fails_to_get_ready_fails() -> None:
    class Hopeless(Thing):
        async def wait_ready(self) -> None:
            raise LookupError("never")

    diary: list[str] = []
    with pytest.raises(LookupError, match="never"):
        await supervisor(Hopeless("cache", diary, Group.CACHES), Thing("other", diary)).run()
    assert "other starts" not in diary


async def test_several_failures_are_raised_together() -> None:
    async def fail() -> None:
        await asyncio.sleep(1)
        raise LookupError("gone")

    made = supervisor(Thing("a", [], work=fail), Thing("b", [], work=fail))
    with pytest.raises(ExceptionGroup) as caught:
        await made.run()
    assert len(caught.value.exceptions) == 2


async def test_one_that_has_nothing_more_to_do_stops_nobody() -> None:
    diary: list[str] = []

    async def once() -> None:
        pass

    made = supervisor(Thing("task", diary, work=once), Thing("other", diary, Group.LEADERS))
    running = asyncio.create_task(made.run())
    await asyncio.sleep(5)
    assert diary == ["task starts", "task ends", "other starts"]
    made.stop()
    await running


async def test_work_in_hand_is_finished_before_what_it_needs_is_stopped() -> None:
    diary: list[str] = []
    worker = Polite("worker", diary, Group.LEADERS, seconds=20)
    made = supervisor(worker, Thing("cache", diary, Group.CACHES))
    running = asyncio.create_task(made.run())
    await made.wait_started()
    made.stop()
    await running
    assert diary == ["cache starts", "worker has finished", "cache ends"]


async def test_after_the_grace_work_in_hand_is_cancelled() -> None:
    diary: list[str] = []
    worker = Polite("worker", diary, Group.LEADERS, seconds=1_000)
    made = supervisor(worker, Thing("cache", diary, Group.CACHES), graceful_shutdown=10)
    running = asyncio.create_task(made.run())
    await made.wait_started()
    began = now()
    made.stop()
    await running
    assert worker.was_cut
    assert 10 <= now() - began < 10 + CANCEL_FOR
    assert diary[-1] == "cache ends"


async def test_what_does_not_end_is_named_and_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    deaf, diary = Deaf("stone", [], Group.LEADERS), list[str]()
    made = supervisor(deaf, Thing("cache", diary, Group.CACHES), graceful_shutdown=10)
    running = asyncio.create_task(made.run())
    await made.wait_started()
    began = now()
    made.stop()
    await running
    assert now() - began <= 10 + 2 * CANCEL_FOR
    assert "stone does not end, and is left behind" in caplog.text
    assert diary[-1] == "cache ends"
    deaf.free.set()
    await asyncio.sleep(1)


async def test_what_is_held_for_others_is_given_back_when_they_have_ended() -> None:
    diary: list[str] = []
    made = supervisor(
        Holder("lease", diary, Group.ELECTION), Polite("worker", diary, Group.LEADERS, seconds=5)
    )
    running = asyncio.create_task(made.run())
    await asyncio.sleep(1)
    made.stop()
    await running
    assert diary == ["worker has finished", "lease gives back"]


async def test_what_is_held_for_one_that_had_to_be_cut_short_is_kept() -> None:
    """It may have left a thread behind that is still at work."""
    diary: list[str] = []
    worker = Polite("worker", diary, Group.LEADERS, seconds=20)
    made = supervisor(Holder("lease", diary, Group.ELECTION), worker, graceful_shutdown=10)
    running = asyncio.create_task(made.run())
    await asyncio.sleep(1)
    made.stop()
    await running
    assert diary == ["lease keeps"]


async def test_when_leadership_is_lost_there_is_no_grace() -> None:
    async def lose() -> None:
        await asyncio.sleep(5)
        raise LeadershipLost("lead", "another does")

    worker = Polite("worker", [], Group.LEADERS, seconds=20)
    with pytest.raises(LeadershipLost):
        await supervisor(Thing("election", [], Group.ELECTION, work=lose), worker).run()
    assert worker.was_cut
    assert now() < 6


async def test_that_leadership_was_lost_is_raised_once_whoever_notices() -> None:
    async def lose() -> None:
        await asyncio.sleep(5)
        raise LeadershipLost("lead", "another does")

    things = [Thing("election", [], Group.ELECTION, work=lose), Thing("writer", [], Group.LEADERS, work=lose)]
    with pytest.raises(LeadershipLost):
        await supervisor(*things).run()


async def test_cancelled_it_stops_in_order_and_cancelled_again_at_once() -> None:
    diary: list[str] = []
    worker = Polite("worker", diary, Group.LEADERS, seconds=5)
    running = asyncio.create_task(supervisor(worker).run())
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert diary == ["worker has finished"]

    worker = Polite("worker", [], Group.LEADERS, seconds=1_000)
    running = asyncio.create_task(supervisor(worker, graceful_shutdown=900).run())
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.sleep(1)
    running.cancel()
    began = now()
    await asyncio.wait([running])
    assert worker.was_cut
    assert now() - began < CANCEL_FOR


async def test_stopped_before_it_began_nothing_starts() -> None:
    diary: list[str] = []
    made = supervisor(Thing("a", diary))
    made.stop()
    await made.run()
    await made.wait_started()
    assert diary == []


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
def test_a_grace_that_has_no_end_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="every wait has an end"):
        Supervisor(seconds)


async def test_one_can_be_removed_while_the_others_run_and_its_place_taken() -> None:
    diary: list[str] = []
    made, one, other = Supervisor(10.0), Thing("one", diary), Thing("other", diary)
    made.add(one)
    made.add(other)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(made.run())
        await made.wait_started()
        await made.remove(one, 1.0)
        assert diary == ["one starts", "other starts", "one ends"]
        assert [slot.runnable for slot in made.slots] == [other]
        with pytest.raises(ValueError, match="is removed already"):
            await made.remove(one, 1.0)
        made.add(one)
        await asyncio.sleep(1)
        assert diary[-1] == "one starts"
        made.stop()


async def test_what_is_removed_before_it_started_never_starts() -> None:
    diary: list[str] = []
    made, one = Supervisor(10.0), Thing("one", diary)
    made.add(one)
    await made.remove(one, 1.0)
    made.stop()
    await made.run()
    assert diary == []


async def test_what_does_not_end_when_removed_is_cancelled_and_then_left_behind() -> None:
    made, polite, deaf = Supervisor(10.0), Polite("polite", []), Deaf("deaf", [])
    made.add(polite)
    made.add(deaf)
    running = asyncio.create_task(made.run())
    await made.wait_started()
    await made.remove(polite, 1.0)
    assert polite.was_cut, "it had a second, and wanted three"
    began = asyncio.get_running_loop().time()
    await made.remove(deaf, 1.0)
    assert asyncio.get_running_loop().time() - began == pytest.approx(1 + CANCEL_FOR, abs=0.5)
    made.stop()
    await running
    deaf.free.set()
