"""Which Events are sent: as many as help people, and no flood."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from setpoint.api import MicroTime
from setpoint.controller.event_series import Again, EventSeries, Happening, New, Reference

START = datetime(2030, 1, 1, tzinfo=UTC)


def at(now: float) -> dict[str, Any]:
    return {"now": now, "time": MicroTime.of(START + timedelta(seconds=now))}


def pod(name: str = "web") -> Reference:
    return Reference("v1", "Pod", "shop", name, f"uid-of-{name}")


def happening(note: str = "it did", name: str = "web", reason: str = "Did", **more: Any) -> Happening:
    return Happening("op", pod(name), "Normal", reason, "Reconcile", note, **more)


def test_the_first_is_an_event_the_second_makes_it_a_series_and_the_rest_is_counted() -> None:
    series = EventSeries()
    first = series.add(happening(), **at(0))
    assert isinstance(first, New)
    second = series.add(happening(), **at(1))
    assert second == Again(first, 2, MicroTime.of(START + timedelta(seconds=1)))
    assert [series.add(happening(), **at(n)) for n in range(2, 50)] == [None] * 48


def test_the_count_is_told_when_it_is_over() -> None:
    series = EventSeries()
    for n in range(10):
        series.add(happening(), **at(n))
    assert list(series.due(now=100)) == []
    (last,) = series.due(now=9 + 360)
    assert (last.count, last.time) == (10, MicroTime.of(START + timedelta(seconds=9)))
    assert not series.is_open
    assert isinstance(series.add(happening(), **at(400)), New), "what happens after that is another"


def test_the_count_is_told_every_half_hour_while_it_goes_on() -> None:
    series = EventSeries()
    told = []
    for now in range(0, 7200, 60):
        series.add(happening(), **at(now))
        told += [each.count for each in series.due(now=now)]
    assert told == [32, 62, 92]


def test_what_happened_once_is_not_told_again() -> None:
    series = EventSeries()
    series.add(happening(), **at(0))
    assert list(series.due(now=10_000)) == []
    assert not series.is_open


def test_what_differs_is_another_event() -> None:
    series = EventSeries()
    for other in (
        happening(),
        happening(reason="Else"),
        happening(name="other"),
        happening("note"),
        happening(related=pod("x")),
    ):
        assert isinstance(series.add(other, **at(0)), New)


def test_of_many_notes_ten_are_sent_and_the_rest_is_combined() -> None:
    series = EventSeries()
    sent = [series.add(happening(f"note {n}"), **at(n)) for n in range(20)]
    new = [each for each in sent if isinstance(each, New)]
    assert [each.happening.note for each in new[:10]] == [f"note {n}" for n in range(10)]
    assert [each.happening.note for each in new[10:]] == ["(combined from similar events): note 10"]
    assert isinstance(sent[11], Again)
    assert sent[12:] == [None] * 8


def test_ten_quiet_minutes_and_notes_are_sent_again() -> None:
    series = EventSeries()
    for n in range(20):
        series.add(happening(f"note {n}"), **at(0))
    later = series.add(happening("note 99"), **at(601))
    assert isinstance(later, New)
    assert later.happening.note == "note 99"


def test_about_one_object_there_are_25_at_once_and_one_more_every_five_minutes() -> None:
    series = EventSeries()
    sent = [series.add(happening(reason=f"R{n}"), **at(0)) for n in range(40)]
    assert sum(each is not None for each in sent) == 25
    assert series.dropped == 15
    assert series.add(happening(name="other"), **at(0)) is not None, "others are not held back"
    assert series.add(happening(reason="A"), **at(299)) is None
    assert series.add(happening(reason="B"), **at(301)) is not None
    assert series.add(happening(reason="C"), **at(302)) is None


def test_at_the_end_what_was_not_told_is_told() -> None:
    series = EventSeries()
    for n in range(5):
        series.add(happening(), **at(n))
    series.add(happening(name="once"), **at(5))
    assert [each.count for each in series.finish(now=5)] == [5]
    assert list(series.finish(now=5)) == []


def test_what_is_remembered_is_bounded() -> None:
    series = EventSeries(remembered=10)
    for n in range(100):
        series.add(happening(name=str(n)), **at(0))
    assert "10 told lately" in repr(series)
