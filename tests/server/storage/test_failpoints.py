"""How failpoints are armed."""

from __future__ import annotations

import pytest

from setpoint.server.storage.failpoints import VARIABLE, Failpoints


def test_a_point_acts_the_time_it_was_told_and_only_then() -> None:
    points, acted, acted_after = Failpoints({}), [], []
    points.arm("write.begin", lambda: acted.append("now"), at=3)
    for _ in range(5):
        points.reached("write.begin")
        points.reached("write.committed")
        acted_after.append(len(acted))
    assert acted_after == [0, 0, 1, 1, 1]


def test_points_are_armed_by_the_environment() -> None:
    points = Failpoints({VARIABLE: "write.begin=error@2; compaction.begin=error"})
    points.reached("write.begin")
    for point in ("write.begin", "compaction.begin"):
        with pytest.raises(OSError, match="No space left"):
            points.reached(point)


@pytest.mark.parametrize(
    "said", ["write.nowhere=kill", "write.begin=sing", "write.begin=kill@often", "write.begin"]
)
def test_what_is_misspelt_is_not_passed_over(said: str) -> None:
    with pytest.raises(ValueError, match="write"):
        Failpoints({VARIABLE: said})
