"""Leader election in time that costs nothing: slow, absent and forgetful servers, jumping clocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.client.client import Client
from setpoint.errors import LeadershipLost
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.epoch import Epoch, SteadyClock, _Sleeps
from setpoint.manager.lease import Election
from setpoint.manager.lease_state import LeaderElection, Lost
from setpoint.metrics import Metrics
from tests.manager.leases import Jumping, Shelf
from tests.peer import status

pytestmark = pytest.mark.virtual_time


def candidate(shelf: Shelf, identity: str = "a", **options: Any) -> Election:
    settings = LeaderElection("shop-operator", namespace="shop", identity=identity)
    return Election(settings, Client(transport=shelf), Metrics(), **options)


@asynccontextmanager
async def running(*elections: Election) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(each.run()) for each in elections]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, LeadershipLost):
                await task


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_single_candidate_leads_at_once_and_renews_every_two_seconds() -> None:
    shelf = Shelf.with_free_lease()
    election = candidate(shelf)
    async with running(election):
        await election.wait_ready()
        assert now() == 0
        assert election.epoch.is_valid
        await asyncio.sleep(9)
    times = [at for at, _, _ in shelf.writes]
    assert times == pytest.approx([0, 2, 4, 6, 8])
    assert shelf.lease["holderIdentity"] == "a"
    assert shelf.lease["leaseDurationSeconds"] == 15
    assert shelf.lease["leaseTransitions"] == 1


async def test_the_identity_is_the_host_and_something_random() -> None:
    first, second = candidate(Shelf(), ""), candidate(Shelf(), "")
    host, _, unique = first.settings.identity.rpartition("_")
    assert host
    assert len(unique) == 36
    assert first.settings.identity != second.settings.identity


async def test_what_others_put_on_the_lease_stays() -> None:
    shelf = Shelf.with_free_lease()
    election = candidate(shelf)
    async with running(election):
        await election.wait_ready()
        shelf.edit(preferredHolder="b", unheardOf={"x": 1})
        await asyncio.sleep(5)
        assert election.epoch.is_valid
    assert shelf.lease["unheardOf"] == {"x": 1}
    assert shelf.lease["preferredHolder"] == "b"


async def test_when_a_leader_dies_the_next_leads_once_its_lease_has_run_out() -> None:
    shelf = Shelf.with_free_lease()
    first, second = candidate(shelf, "a"), candidate(shelf, "b")
    async with running(first):
        await first.wait_ready()
        async with running(second):
            await asyncio.sleep(5)
    died = now()
    second = candidate(shelf, "b")
    async with running(second):
        await second.wait_ready()
        assert 15 <= now() - died <= 15 + 2.4
    assert shelf.lease["leaseTransitions"] == 2


async def test_a_lease_that_is_given_back_is_taken_at_once_by_who_may_watch_it() -> None:
    shelf = Shelf.with_free_lease(tells=True)
    first, second, third = (candidate(shelf, name) for name in "abc")
    async with running(first) as (run,):
        await first.wait_ready()
        await asyncio.sleep(5)
        assert not shelf.watches, "who leads has nothing to watch"
        async with running(second, third):
            await asyncio.sleep(5.1)
            assert len(shelf.watches) == 2
            first.stop()
            await run
            stopped = now()
            await asyncio.sleep(0.1)
            assert [second.epoch.is_valid, third.epoch.is_valid].count(True) == 1
            assert now() == stopped + 0.1
            await asyncio.sleep(0.1)
            assert [each.is_closed for each in shelf.watches].count(True) == 1, "the leader's"
    assert shelf.lease["leaseTransitions"] == 2


async def test_who_creates_the_lease_leads_once_it_has_not_changed_for_as_long_as_it_says() -> None:
    shelf = Shelf()
    election = candidate(shelf)
    async with running(election):
        await election.wait_ready()
        assert 15 <= now() <= 15 + 2.4
        assert shelf.holder == "a"


async def test_who_stops_before_it_leads_does_not_give_back_the_lease_that_it_created() -> None:
    """Given back, another would take it at once, and a leader whose Lease was deleted may be at work."""
    shelf = Shelf()
    election = candidate(shelf)
    async with running(election) as (run,):
        await asyncio.sleep(1)
        election.stop()
        await run
    assert shelf.holder == ""
    assert not shelf.lease.get("renewTime"), "it does not count as given back"


@pytest.mark.parametrize("tells", [False, True])
async def test_whenever_the_lease_is_deleted_at_most_one_leads(tells: bool) -> None:
    """Those that stand by have seen its holder; one that starts just then has not."""
    shelf = Shelf.with_free_lease(latency=0.02, tells=tells)
    elections = [candidate(shelf, name) for name in "abc"]
    async with running(*elections):
        await asyncio.sleep(1)
        for number in range(40):
            await asyncio.sleep(1 + 0.37 * number % 5)
            shelf.delete()
            newcomer = candidate(shelf, f"new-{number}")
            async with running(newcomer):
                for _ in range(30):
                    await asyncio.sleep(0.25)
                    assert [each.epoch.is_valid for each in (*elections, newcomer)].count(True) <= 1
            await asyncio.sleep(20)
            assert [each.epoch.is_valid for each in elections].count(True) == 1
            elections = [each for each in elections if not isinstance(each.state, Lost)]
            if len(elections) == 1:
                return


async def test_a_leader_creates_its_deleted_lease_anew_before_those_that_stand_by_do() -> None:
    shelf = Shelf.with_free_lease(latency=0.1, tells=True)
    first, second = candidate(shelf, "a"), candidate(shelf, "b")
    async with running(first):
        await first.wait_ready()
        async with running(second):
            for number in range(10):
                await asyncio.sleep(2 + 0.37 * number % 2)
                shelf.delete()
                await asyncio.sleep(2.5)
                assert shelf.holder == "a"
            assert first.epoch.is_valid


async def test_a_lease_deleted_while_its_leader_is_cut_off_is_not_acquired_before_its_time_is_over() -> None:
    shelf, cut_off = Shelf.with_free_lease(), Shelf(down=True)
    first, second = candidate(shelf, "a"), candidate(shelf, "b")
    async with running(first):
        await first.wait_ready()
        first._client = Client(transport=cut_off)
        shelf.delete()
        async with running(second):
            while not second.epoch.is_valid:
                await asyncio.sleep(0.1)
                assert not (first.epoch.is_valid and second.epoch.is_valid)
            assert now() <= 15 + 2 * 2.4


async def test_a_leader_that_stops_gives_the_lease_back_and_the_next_leads_soon_where_none_may_watch() -> (
    None
):
    shelf = Shelf.with_free_lease()
    first, second = candidate(shelf, "a"), candidate(shelf, "b")
    async with running(first, second) as (run, _):
        await first.wait_ready()
        await asyncio.sleep(5)
        assert not second.epoch.is_valid
        first.stop()
        await run
        assert not first.epoch.is_valid
        assert shelf.lease["holderIdentity"] == ""
        assert shelf.lease["leaseDurationSeconds"] == 1
        stopped = now()
        await second.wait_ready()
        assert now() - stopped <= 2.4


async def test_a_lease_is_given_back_even_if_the_last_renewal_is_in_doubt() -> None:
    shelf = Shelf.with_free_lease(latency=1.0)
    election = candidate(shelf)
    async with running(election) as (run,):
        await election.wait_ready()
        while len(shelf.writes) < 3:  # the renewal has happened, and its answer is on the way
            await asyncio.sleep(0.1)
        election.stop()
        await run
    assert shelf.holder == ""


async def test_a_lease_that_was_just_being_taken_is_given_back() -> None:
    shelf = Shelf.with_free_lease(latency=1.0)
    election = candidate(shelf)
    async with running(election) as (run,):
        while not shelf.writes:
            await asyncio.sleep(0.1)
        election.stop()
        await run
    assert shelf.holder == ""


async def test_a_lease_that_may_still_be_worked_under_is_not_given_back() -> None:
    shelf = Shelf.with_free_lease()
    election = candidate(shelf)
    async with running(election) as (run,):
        await election.wait_ready()
        election.abandon()
        election.stop()
        await run
    assert shelf.holder == "a"
    assert not election.epoch.is_valid


async def test_giving_back_does_not_wait_forever() -> None:
    shelf = Shelf.with_free_lease()
    election = candidate(shelf)
    async with running(election) as (run,):
        await election.wait_ready()
        shelf.latency = 1_000
        began = now()
        election.stop()
        await run
    assert now() - began <= 10


@pytest.mark.parametrize("latency", [0.0, 1.0, 4.5])
async def test_a_slow_server_costs_nobody_the_lease(latency: float) -> None:
    shelf = Shelf.with_free_lease(latency=latency)
    first, second = candidate(shelf, "a"), candidate(shelf, "b")
    async with running(first):
        await first.wait_ready()
        async with running(second):
            for _ in range(600):
                await asyncio.sleep(0.5)
                assert first.epoch.is_valid
                assert not second.epoch.is_valid


async def test_a_leader_that_cannot_renew_ends_before_another_can_begin() -> None:
    shelf = Shelf.with_free_lease()
    first, second = candidate(shelf, "a"), candidate(shelf, "b")
    async with running(first, second) as (run, _):
        await first.wait_ready()
        await asyncio.sleep(5)
        cut, first._client = now(), Client(transport=Shelf(down=True))
        with pytest.raises(LeadershipLost, match="could not be renewed"):
            await run
        assert now() - cut <= 10
        assert not first.epoch.is_valid
        assert not second.epoch.is_valid
        await second.wait_ready()
        assert shelf.holder == "b"


async def test_an_outage_shorter_than_the_deadline_is_outlasted() -> None:
    shelf = Shelf.with_free_lease()
    election = candidate(shelf)
    async with running(election):
        await election.wait_ready()
        shelf.down = True
        await asyncio.sleep(7)
        assert election.epoch.is_valid
        shelf.down = False
        await asyncio.sleep(30)
        assert election.epoch.is_valid


async def test_answers_that_get_lost_are_no_reason_to_stop_leading() -> None:
    shelf = Shelf.with_free_lease()
    election = candidate(shelf)
    async with running(election):
        await election.wait_ready()
        for _ in range(20):
            shelf.mute = True
            await asyncio.sleep(3)
            shelf.mute = False
            await asyncio.sleep(5)
            assert election.epoch.is_valid


async def test_leadership_that_was_taken_is_noticed_at_the_next_renewal() -> None:
    shelf = Shelf.with_free_lease()
    election = candidate(shelf)
    async with running(election) as (run,):
        await election.wait_ready()
        shelf.edit(holderIdentity="b")
        with pytest.raises(LeadershipLost, match="b holds it now"):
            await run
        assert now() <= 2.5


async def test_a_lease_deleted_by_hand_is_made_again() -> None:
    shelf = Shelf.with_free_lease()
    election = candidate(shelf)
    async with running(election):
        await election.wait_ready()
        shelf.objects.clear()
        await asyncio.sleep(5)
        assert shelf.holder == "a"
        assert election.epoch.is_valid


async def test_a_calendar_that_jumps_changes_nothing() -> None:
    shelf = Shelf.with_free_lease()
    first = candidate(shelf, "a", clock=Jumping())
    second = candidate(shelf, "b", clock=Jumping())
    async with running(first, second):
        await first.wait_ready()
        for _ in range(200):
            await asyncio.sleep(0.5)
            assert first.epoch.is_valid
            assert not second.epoch.is_valid


async def test_of_many_candidates_exactly_one_leads_at_any_time() -> None:
    shelf = Shelf.with_free_lease(latency=0.3)
    elections = [candidate(shelf, str(number)) for number in range(5)]
    async with running(*elections):
        await asyncio.sleep(1)
        for _ in range(200):
            await asyncio.sleep(0.5)
            assert [each.epoch.is_valid for each in elections].count(True) == 1


async def test_without_permission_it_is_said_once_which_rule_is_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def forbidden(_: object) -> Any:
        return status(403, "Forbidden")

    election = Election(LeaderElection("op", "shop"), Client(transport=forbidden), Metrics())
    async with running(election):
        await asyncio.sleep(60)
    assert len(caplog.records) == 1
    assert 'resources: ["leases"]' in caplog.text


# What the epoch keeps from happening.


async def test_the_client_refuses_writes_before_during_and_after_as_leadership_has_it() -> None:
    shelf = Shelf.with_free_lease()
    election = candidate(shelf)
    client = Client(transport=shelf).guarded_by(election.epoch)
    config = ConfigMap(metadata=ObjectMeta(name="x"))
    with pytest.raises(LeadershipLost, match="does not lead yet") as standing_by:
        await client.create(config)
    assert "end the process" not in str(standing_by.value)
    assert "plain_client" in str(standing_by.value)
    async with running(election) as (run,):
        await election.wait_ready()
        written = await client.create(config)
        election._client = Client(transport=Shelf(down=True))
        with pytest.raises(LeadershipLost):
            await run
    with pytest.raises(LeadershipLost, match=r"could not be renewed.*end the process"):
        await client.update(written)
    assert (await client.get(ConfigMap, "x")).metadata.name == "x", "it may still read"


async def test_a_process_that_wakes_up_late_is_refused_before_anything_else_has_run() -> None:
    """As after a pause: the clock has moved on, and no task of ours has had its turn."""
    epoch, shelf, clock = Epoch("shop/op"), Shelf.with_free_lease(), SteadyClock()
    client = Client(transport=shelf).guarded_by(epoch)
    epoch.extend(clock.now() + 10, clock)
    await client.create(ConfigMap(metadata=ObjectMeta(name="x")))
    await asyncio.sleep(10)
    with pytest.raises(LeadershipLost, match="not renewed in time"):
        await client.create(ConfigMap(metadata=ObjectMeta(name="y")))
    epoch.extend(clock.now() + 10, clock)
    assert not epoch.is_valid, "what is over stays over"


async def test_a_write_that_is_tried_again_asks_again_whether_it_may() -> None:
    epoch, shelf, clock = Epoch("shop/op"), Shelf.with_free_lease(), SteadyClock()
    epoch.extend(clock.now() + 10, clock)
    client = Client(transport=shelf).guarded_by(epoch)
    shelf.refuse = [status(429, "TooManyRequests", headers={"Retry-After": "20"})]
    with pytest.raises(LeadershipLost):
        await client.create(ConfigMap(metadata=ObjectMeta(name="x")))
    assert shelf.requests == 1, "not a second time"
    assert now() >= 20


async def test_the_gauge_says_who_leads() -> None:
    metrics = Metrics()
    shelf = Shelf.with_free_lease()
    election = Election(LeaderElection("op", "shop"), Client(transport=shelf), metrics)
    async with running(election) as (run,):
        await election.wait_ready()
        assert b'leader_election_master_status{name="op"} 1.0' in metrics.exposition()
        election.stop()
        await run
    assert b'leader_election_master_status{name="op"} 0.0' in metrics.exposition()


def test_a_sleep_of_the_machine_counts_and_an_imprecise_reading_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter([100.0, 100.3, 99.7, 103.0, 102.8, 100.0])
    monkeypatch.setattr(_Sleeps, "_read", staticmethod(lambda: next(readings)))
    sleeps = _Sleeps()
    assert [sleeps.seconds() for _ in range(5)] == [100.0, 100.0, 103.0, 103.0, 103.0]
