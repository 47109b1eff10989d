"""The rules of ``clock.py``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from setpoint.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_never_goes_back_and_knows_its_zone() -> None:
    clock: Clock = SystemClock()
    assert clock.now() <= clock.now()
    assert clock.utc().utcoffset() == timedelta(0)


def test_a_manual_clock_moves_only_when_turned_and_both_readings_move_together() -> None:
    clock = ManualClock(datetime(2031, 5, 1, tzinfo=UTC))
    before = clock.now()
    assert clock.now() == before
    clock.turn(90)
    assert clock.now() - before == 90
    assert clock.utc() == datetime(2031, 5, 1, 0, 1, 30, tzinfo=UTC)


def test_a_manual_clock_cannot_be_turned_back() -> None:
    with pytest.raises(ValueError, match="turned back"):
        ManualClock().turn(-1)
