"""The rules of ``queue/workqueue.py``, one test to a promise, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.errors import QueueShutDown
from setpoint.metrics import Metrics
from setpoint.queue.workqueue import LOW_PRIORITY, MOST_REASONS, QueueStats, Taken, WorkQueue
from tests.queue.model import Model

pytestmark = pytest.mark.virtual_time

Queue = WorkQueue[str, str]


def new_queue(**options: int) -> Queue:
    """With a backoff of as many seconds as there were failures."""
    return Queue("webapp", Metrics(), backoff=float, **options)


def now() -> float:
    return asyncio.get_running_loop().time()


async def settle() -> None:
    """Let everyone run until all wait, without a moment passing."""
    for _ in range(5):
        await asyncio.sleep(0)


async def take(queue: Queue) -> Taken[str, str]:
    """Take the next key and give it back."""
    async with queue.next_key() as taken:
        return taken


async def nothing_is_due(queue: Queue) -> bool:
    waiting = asyncio.create_task(queue.get())
    await settle()
    waiting.cancel()
    await asyncio.wait([waiting])
    return waiting.cancelled()


@asynccontextmanager
async def workers(queue: Queue, number: int, seconds: float = 0.0) -> AsyncIterator[list[str]]:
    """So many workers, who need so many seconds for a key; what they were given, in that order."""
    worked: list[str] = []

    async def work() -> None:
        with contextlib.suppress(QueueShutDown):
            while True:
                async with queue.next_key() as taken:
                    worked.append(taken.key)
                    await asyncio.sleep(seconds)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(number):
            tasks.create_task(work())
        yield worked
        queue.shut_down()


# Waiting.


async def test_a_worker_waits_until_a_key_is_due() -> None:
    queue = new_queue()
    queue.add("shop/a", after=30)
    assert (await take(queue)).key == "shop/a"
    assert now() == 30


async def test_an_add_wakes_a_waiting_worker_at_once() -> None:
    queue = new_queue()
    waiting = asyncio.create_task(take(queue))
    await asyncio.sleep(7)
    queue.add("shop/a")
    assert (await waiting).key == "shop/a"
    assert now() == 7


async def test_an_immediate_add_overtakes_a_delayed_one() -> None:
    queue = new_queue()
    queue.add("shop/a", after=60)
    waiting = asyncio.create_task(take(queue))
    await settle()
    queue.add("shop/a")
    await waiting
    assert now() == 0
    await asyncio.sleep(100)
    assert await nothing_is_due(queue), "the delayed one is not there any more"


async def test_an_earlier_time_wakes_a_worker_that_waits_for_a_later_one() -> None:
    queue = new_queue()
    queue.add("shop/late", after=60)
    waiting = asyncio.create_task(take(queue))
    await asyncio.sleep(10)
    queue.add("shop/early", after=5)
    assert (await waiting).key == "shop/early"
    assert now() == 15


async def test_a_wait_that_is_over_is_due_now() -> None:
    queue = new_queue()
    queue.add("shop/a", after=-5)
    assert (await take(queue)).due_since == 0


@pytest.mark.parametrize("after", [float("inf"), float("nan")])
async def test_a_wait_without_end_is_refused(after: float) -> None:
    with pytest.raises(ValueError, match="add shop/a to queue webapp"):
        new_queue().add("shop/a", after=after)


async def test_there_is_a_timer_only_while_someone_waits_for_what_is_delayed() -> None:
    def has_timer() -> bool:
        return queue._timer is not None

    queue = new_queue()
    queue.add("shop/a", after=60)
    assert await nothing_is_due(queue)
    assert not has_timer()
    waiting = asyncio.create_task(take(queue))
    await settle()
    assert has_timer()
    queue.shut_down()
    assert not has_timer()
    with pytest.raises(QueueShutDown):
        await waiting


# 1. Fairness.


async def test_waiting_workers_are_served_in_the_order_in_which_they_began_to_wait_one_key_each() -> None:
    queue = new_queue()
    served = []

    async def wait(worker: int) -> None:
        await queue.get()
        served.append(worker)

    async with asyncio.TaskGroup() as tasks:
        for worker in range(4):
            tasks.create_task(wait(worker))
        await settle()
        for number in range(3):
            queue.add(f"shop/{number}")
            await settle()
            assert served == list(range(number + 1))
        queue.add("shop/3")


async def test_a_worker_that_comes_late_does_not_overtake_one_that_waits() -> None:
    queue = new_queue()
    waiting = asyncio.create_task(queue.get())
    await settle()
    queue.add("shop/first")  # it has not run yet
    late = asyncio.create_task(queue.get())
    await settle()
    assert waiting.done()
    assert not late.done()
    queue.add("shop/second")
    assert (await waiting, await late) == ("shop/first", "shop/second")


async def test_a_key_is_never_worked_on_twice_at_once() -> None:
    queue = new_queue()
    at_work = set[str]()
    chance = random.Random(3)

    async def work() -> None:
        with contextlib.suppress(QueueShutDown):
            while True:
                async with queue.next_key() as taken:
                    assert taken.key not in at_work
                    at_work.add(taken.key)
                    await asyncio.sleep(chance.random())
                    at_work.remove(taken.key)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(work())
        for _ in range(2000):
            queue.add(f"shop/{chance.randrange(8)}", after=chance.random())
            await asyncio.sleep(chance.random() / 10)
        queue.shut_down(drain=True)


async def test_any_number_of_changes_while_a_key_is_worked_on_mean_exactly_one_more_look() -> None:
    queue = new_queue()
    async with workers(queue, 3, seconds=10) as worked:
        queue.add("shop/a")
        for _ in range(9):
            await asyncio.sleep(1)
            queue.add("shop/a")
        await asyncio.sleep(100)
        assert worked == ["shop/a", "shop/a"]


async def test_what_is_due_goes_by_priority() -> None:
    queue = new_queue()
    queue.add("shop/resync", priority=LOW_PRIORITY)
    queue.add("shop/change")
    queue.add("shop/urgent", priority=10)
    assert [(await take(queue)).priority for _ in range(3)] == [10, 0, -100]


async def test_start_up_and_resync_work_has_low_priority_but_ages_so_that_nothing_starves() -> None:
    """Twice as many changes as there is time for, for ever: a resync still has its turn."""
    queue = new_queue(patience=9)
    async with workers(queue, 1, seconds=1.0) as worked:
        queue.add("shop/change")
        await settle()
        queue.add("shop/resync", priority=LOW_PRIORITY)
        for number in range(40):
            queue.add(f"shop/change-{number}")
            await asyncio.sleep(0.5)
        assert worked.index("shop/resync") <= 10


# 2. Giving back.


async def test_a_key_is_given_back_however_the_block_ends() -> None:
    queue = new_queue()
    queue.add("shop/a")
    with pytest.raises(ZeroDivisionError):
        async with queue.next_key():
            _ = 1 / 0
    assert queue.stats().taken == 0

    async def hold() -> None:
        async with queue.next_key():
            await asyncio.sleep(1000)

    queue.add("shop/a")
    holding = asyncio.create_task(hold())
    await settle()
    assert queue.stats().taken == 1
    holding.cancel()
    await asyncio.wait([holding])
    assert queue.stats().taken == 0


async def test_a_worker_that_is_cancelled_before_its_key_reached_it_leaves_the_key_in_the_queue() -> None:
    queue = new_queue()
    waiting = asyncio.create_task(take(queue))
    await settle()
    queue.add("shop/a", priority=3, reason="created")
    assert queue.stats().taken == 1
    queue.add("shop/a", reason="changed")
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    taken = await take(queue)
    assert (taken.key, taken.priority, taken.reasons) == ("shop/a", 3, ("created", "changed"))
    assert now() == 0


async def test_the_key_of_a_cancelled_worker_goes_to_the_next_who_waits() -> None:
    queue = new_queue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await settle()
    queue.add("shop/a")
    first.cancel()
    assert await second == "shop/a"
    assert first.cancelled()


async def test_a_cancelled_worker_that_has_not_left_yet_is_given_nothing() -> None:
    queue = new_queue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await settle()
    first.cancel()
    queue.add("shop/a")
    assert await second == "shop/a"


async def test_the_longhand_is_get_and_done() -> None:
    queue = new_queue()
    queue.add("shop/a")
    key = await queue.get()
    queue.add(key)
    assert await nothing_is_due(queue)
    queue.done(key)
    assert await queue.get() == "shop/a"
    queue.done(key)
    with pytest.raises(ValueError, match="shop/a is not taken"):
        queue.done(key)


# 3. Backoff.


async def test_a_failing_key_backs_off_alone_until_forgotten() -> None:
    queue = new_queue()
    assert [queue.add_rate_limited("shop/a") for _ in range(3)] == [1, 2, 3]
    assert queue.add_rate_limited("shop/b") == 1
    assert (queue.failures("shop/a"), queue.failures("shop/b")) == (3, 1)
    queue.forget("shop/a")
    queue.forget("shop/never-failed")
    assert queue.failures("shop/a") == 0
    assert queue.add_rate_limited("shop/a") == 1


async def test_a_key_backs_off_after_as_long_as_was_asked_for() -> None:
    """Not for the longer of the two: those who were asked together would come back together."""
    queue = new_queue()
    assert [queue.add_rate_limited("shop/a", not_before=2.5) for _ in range(3)] == [3.5, 4.5, 5.5]


async def test_a_failing_key_never_holds_back_another() -> None:
    queue = new_queue()
    for _ in range(50):
        queue.add_rate_limited("shop/failing")
    queue.add("shop/well")
    assert (await take(queue)).key == "shop/well"
    assert now() == 0


async def test_a_change_overtakes_the_backoff() -> None:
    queue = new_queue()
    queue.add("shop/a")
    async with queue.next_key():
        queue.add("shop/a", reason="changed meanwhile")
        queue.add_rate_limited("shop/a")
    await take(queue)
    assert now() == 0


async def test_a_retry_has_the_priority_it_is_given() -> None:
    queue = new_queue()
    queue.add_rate_limited("shop/a", priority=LOW_PRIORITY, reason="failed")
    taken = await take(queue)
    assert (taken.priority, taken.reasons, now()) == (LOW_PRIORITY, ("failed",), 1)


async def test_the_first_retry_comes_within_5_ms_unless_told_otherwise() -> None:
    queue = Queue("webapp", Metrics())
    assert 0.0025 <= queue.add_rate_limited("shop/a") <= 0.005


# 4. Reasons.


async def test_the_reasons_of_all_adds_are_handed_out_with_the_key_once() -> None:
    queue = new_queue()
    for reason in ("created", "changed", "created"):
        queue.add("shop/a", reason=reason)
    queue.add("shop/a")
    queue.add("shop/b", reason="other")
    async with queue.next_key() as taken:
        assert taken.reasons == ("created", "changed")
        queue.add("shop/a", reason="meanwhile")
    assert (await take(queue)).reasons == ("other",)
    assert (await take(queue)).reasons == ("meanwhile",)
    queue.add("shop/a")
    assert (await take(queue)).reasons == ()


async def test_who_has_not_begun_takes_in_what_was_asked_for_meanwhile_and_it_is_not_taken_again() -> None:
    queue = new_queue()
    queue.add("shop/a", reason="created")
    async with queue.next_key() as taken:
        assert queue.joined(taken) == taken
        queue.add("shop/a", reason="changed", priority=3)
        queue.add("shop/a", reason="created")
        joined = queue.joined(taken)
        assert (joined.reasons, joined.priority) == (("created", "changed"), 3)
        queue.add("shop/a", after=5, reason="later")
        assert queue.joined(joined) == joined, "that is not due"
    started = now()
    assert (await take(queue)).reasons == ("later",)
    assert now() == started + 5


async def test_the_first_8_reasons_that_differ_are_kept() -> None:
    queue = new_queue()
    for number in range(100):
        queue.add("shop/a", reason=f"change {number // 2}")
    assert (await take(queue)).reasons == tuple(f"change {number}" for number in range(MOST_REASONS))


# 5. The end.


async def test_after_shut_down_nothing_is_added() -> None:
    queue = new_queue()
    queue.shut_down(drain=True)
    queue.add("shop/a", reason="late")
    queue.add_rate_limited("shop/a")
    with pytest.raises(QueueShutDown, match="take the next key of queue webapp: the queue was shut down"):
        await queue.get()
    assert len(queue._schedule) == len(queue._reasons) == 0


@pytest.mark.parametrize("drain", [True, False])
async def test_shut_down_ends_every_wait(drain: bool) -> None:
    queue = new_queue()
    queue.add("shop/late", after=60)
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settle()
    queue.shut_down(drain=drain)
    await asyncio.wait(waiting)
    assert [type(each.exception()) for each in waiting] == [QueueShutDown] * 3
    assert now() == 0, "what is delayed is not waited for"


async def test_dropping_what_is_due_is_not_handed_out_any_more() -> None:
    queue = new_queue()
    queue.add("shop/a", reason="created")
    queue.add("shop/b", reason="created")
    async with queue.next_key():
        queue.add("shop/a")
        queue.shut_down()
    with pytest.raises(QueueShutDown):
        await queue.get()
    assert not queue._reasons


async def test_draining_hands_out_what_is_due_and_what_was_asked_for_meanwhile() -> None:
    queue = new_queue()
    for key in ("shop/a", "shop/b"):
        queue.add(key, reason="created")
    queue.add("shop/late", after=1)
    async with queue.next_key() as taken:
        queue.add("shop/a", reason="meanwhile")
        queue.shut_down(drain=True)
        assert taken.key == "shop/a"
        assert (await take(queue)).reasons == ("created",)
        waiting = asyncio.create_task(take(queue))
        await settle()
        assert not waiting.done(), "there is one more to come"
    assert (await waiting).reasons == ("meanwhile",)
    with pytest.raises(QueueShutDown):
        await queue.get()


async def test_a_queue_that_is_draining_can_still_be_dropped_but_not_the_other_way() -> None:
    queue = new_queue()
    queue.add("shop/a")
    queue.shut_down(drain=True)
    assert repr(queue) == "<WorkQueue webapp, draining: 1 waiting, 0 taken>"
    queue.shut_down()
    queue.shut_down(drain=True)
    assert repr(queue) == "<WorkQueue webapp, shut down: 0 waiting, 0 taken>"


async def test_a_key_that_is_put_back_after_the_drop_is_dropped_too() -> None:
    queue = new_queue()
    waiting = asyncio.create_task(queue.get())
    await settle()
    queue.add("shop/a", reason="created")
    queue.shut_down()
    waiting.cancel()
    await asyncio.wait([waiting])
    await queue.wait_drained()
    assert repr(queue) == "<WorkQueue webapp, shut down: 0 waiting, 0 taken>"


async def test_a_worker_cancelled_as_the_queue_shuts_down_ends_quietly() -> None:
    queue = new_queue()
    waiting = asyncio.create_task(queue.get())
    await settle()
    queue.shut_down()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()


@pytest.mark.parametrize("drain", [True, False])
async def test_wait_drained_waits_until_every_key_was_given_back(drain: bool) -> None:
    queue = new_queue()
    drained = asyncio.create_task(queue.wait_drained())
    async with workers(queue, 2, seconds=10) as worked:
        for key in ("shop/a", "shop/b", "shop/c"):
            queue.add(key)
        await asyncio.sleep(1)
        assert not drained.done()
        queue.shut_down(drain=drain)
        await drained
        assert now() == (20 if drain else 10)
        assert worked == ["shop/a", "shop/b", "shop/c"][: 3 if drain else 2]


async def test_a_queue_that_nobody_used_is_drained_when_it_is_shut_down() -> None:
    queue = new_queue()
    queue.shut_down()
    await queue.wait_drained()


# Numbers.


async def test_stats_say_what_it_holds_and_has_done() -> None:
    queue = new_queue()
    queue.add("shop/a")
    queue.add("shop/b", priority=LOW_PRIORITY)
    queue.add("shop/b", priority=LOW_PRIORITY)
    queue.add("shop/c", priority=LOW_PRIORITY)
    queue.add_rate_limited("shop/d")
    queue.add("shop/e", after=100)
    await queue.get()
    await asyncio.sleep(4)
    await queue.get()
    await asyncio.sleep(3)
    assert queue.stats() == QueueStats(
        depth={-100: 2},
        delayed=1,
        taken=2,
        failing=1,
        adds=4,
        retries=1,
        oldest_waiting_seconds=7,
        longest_running_seconds=7,
        unfinished_seconds=10,
    )


def test_a_queue_can_be_made_and_looked_at_before_there_is_a_loop() -> None:
    queue = new_queue()
    assert queue.stats().adds == 0
    assert repr(queue) == "<WorkQueue webapp, open: 0 waiting, 0 taken>"


async def test_it_belongs_to_the_thread_of_its_event_loop() -> None:
    queue = new_queue()
    queue.add("shop/a")
    raised: list[BaseException] = []

    def elsewhere() -> None:
        for call in (lambda: queue.add("shop/b"), lambda: asyncio.run(queue.get())):
            try:
                call()
            except RuntimeError as error:
                raised.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(raised) == 2
    assert "call_soon_threadsafe" in str(raised[0])


# All of it.

STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 5), st.sampled_from((0, 0, 2, 5)), st.integers(-1, 1)),
    st.tuples(st.just("get")),
    st.tuples(st.just("done"), st.integers(0, 5)),
    st.tuples(st.just("cancel"), st.integers(0, 2)),
    st.tuples(st.just("pass"), st.integers(1, 4)),
    st.tuples(st.just("shut down"), st.booleans()),
)


class Expected:
    """What workers must be given, by the model of the schedule and a list of who waits."""

    def __init__(self) -> None:
        self.model = Model(patience=2)
        self.waiting: list[asyncio.Task[int]] = []
        self.given: dict[asyncio.Task[int], int | None] = {}  # None: the queue was shut down
        self.is_open = True

    def hand_out(self, now: float) -> None:
        while self.waiting and (taken := self.model.take(now)) is not None:
            self.given[self.waiting.pop(0)] = taken[0]
        if not self.is_open and not self.model.remaining():
            self.given.update(dict.fromkeys(self.waiting))
            self.waiting.clear()

    def shut_down(self, now: float, drain: bool) -> None:
        self.is_open = False
        self.model.remove_after(now if drain else -1.0)

    def pass_until(self, end: float) -> None:
        for moment in sorted({each.at for each in self.model.waiting}):
            if moment <= end:
                self.hand_out(moment)


@given(steps=st.lists(STEPS, max_size=60))
@settings(max_examples=300, deadline=None)
async def test_whatever_happens_workers_are_given_what_the_model_gives(steps: list[tuple[Any, ...]]) -> None:
    queue, expected = WorkQueue[int, str]("webapp", Metrics(), patience=2), Expected()
    tasks: list[asyncio.Task[int]] = []
    dropped = False
    for step in steps:
        match step:
            case ("add", key, after, priority):
                queue.add(key, after=after, priority=priority)
                if expected.is_open:
                    expected.model.add(key, now() + after, priority)
            case ("get",):
                tasks.append(asyncio.create_task(queue.get()))
                expected.waiting.append(tasks[-1])
            case ("done", key) if key in expected.model.taken:
                queue.done(key)
                expected.model.done(key)
            case ("cancel", index) if index < len(expected.waiting):
                expected.waiting.pop(index).cancel()
            case ("pass", seconds):
                expected.pass_until(now() + seconds)
                await asyncio.sleep(seconds)
            case ("shut down", drain):
                dropped = dropped or not drain
                queue.shut_down(drain=drain)
                expected.shut_down(now(), drain=not dropped)
        await settle()
        expected.hand_out(now())
        assert {
            task: outcome(task) for task in tasks if task.done() and not task.cancelled()
        } == expected.given
        assert queue._drained.is_set() == (
            not expected.is_open and not expected.model.remaining() and not expected.model.taken
        )
    for task in tasks:
        task.cancel()
    await settle()


def outcome(task: asyncio.Task[int]) -> int | None:
    return None if isinstance(task.exception(), QueueShutDown) else task.result()


# The metrics under their Go names.


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, {"name": "webapp", "controller": "webapp", **labels})


async def test_the_metrics_of_a_queue_are_there_from_the_start() -> None:
    metrics = Metrics()
    Queue("webapp", metrics)
    assert value(metrics, "workqueue_depth", priority="0") == 0
    for name in ("adds_total", "retries_total", "unfinished_work_seconds"):
        assert value(metrics, f"workqueue_{name}") == 0
    assert value(metrics, "workqueue_longest_running_processor_seconds") == 0
    assert value(metrics, "workqueue_queue_duration_seconds_count") == 0
    assert value(metrics, "workqueue_work_duration_seconds_count") == 0


async def test_the_metrics_of_a_queue_follow_it() -> None:
    metrics = Metrics()
    queue = Queue("webapp", metrics, backoff=float)
    queue.add("shop/a")
    queue.add("shop/b", priority=LOW_PRIORITY)
    queue.add_rate_limited("shop/c")
    await asyncio.sleep(20)
    async with queue.next_key():
        await asyncio.sleep(2)
        assert value(metrics, "workqueue_depth", priority="0") == 1
        assert value(metrics, "workqueue_depth", priority="-100") == 1
        assert value(metrics, "workqueue_unfinished_work_seconds") == 2
        assert value(metrics, "workqueue_longest_running_processor_seconds") == 2
    assert value(metrics, "workqueue_adds_total") == 3
    assert value(metrics, "workqueue_retries_total") == 1
    assert value(metrics, "workqueue_queue_duration_seconds_sum") == 20
    assert value(metrics, "workqueue_work_duration_seconds_sum") == 2
    assert value(metrics, "workqueue_work_duration_seconds_bucket", le="1.0") == 0
    assert value(metrics, "workqueue_work_duration_seconds_bucket", le="10.0") == 1


async def test_what_waits_is_told_with_the_seconds_until_it_is_due() -> None:
    queue = new_queue()
    assert queue.first(3) == []
    queue.add("later", after=30)
    queue.add("now")
    await asyncio.sleep(10)
    (now, overdue), (later, left) = queue.first(3)
    assert (now, later) == ("now", "later")
    assert overdue == pytest.approx(-10, abs=0.1)
    assert left == pytest.approx(20, abs=0.1)
