"""The checker finds what it is there to find: each sort of lie, in a history that is right but for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from setpoint.server.storage.protocol import Place
from setpoint.testing.history_check import Recorder, Row, State, Write, check

A, B, OTHER = Place("pods", "ns", "a"), Place("pods", "ns", "b"), Place("pods", "other", "a")

LOG = [
    Row(2, "ADDED", A, "one", 0),
    Row(3, "ADDED", B, "two", 0),
    Row(4, "MODIFIED", A, "three", 2),
    Row(5, "DELETED", B, "four", 3),
    Row(6, "ADDED", OTHER, "five", 0),
]


def history() -> tuple[Recorder, list[Row]]:
    """Every write of the log answered, a write that never came to be, reads, a list and two watches."""
    recorder = Recorder(itertools.count().__next__)
    for row in LOG:
        recorder.done(recorder.write("c", row.type, row.place, row.value, row.previous), row.revision)
        if row.revision == 4:
            recorder.read("c", A, recorder.now(), State(4, "three"))
            found = {A: State(4, "three"), B: State(3, "two")}
            recorder.listed("c", ("pods", ""), recorder.now(), revision=4, found=found)
    recorder.refused(recorder.write("c", "MODIFIED", A, "late", 2))
    recorder.write("c", "MODIFIED", A, "lost", 4)
    recorder.read("c", B, recorder.now(), None)
    recorder.watch("w", "pods", "", 1).given += [LOG[0], LOG[1], 3, LOG[2], LOG[3], LOG[4], 6]
    recorder.watch("w", "pods", "ns", 3).given += [LOG[2], LOG[3], 6]
    return recorder, list(LOG)


def test_a_true_history_has_nothing_wrong() -> None:
    assert check(*history()) == []


def test_a_log_may_begin_where_another_ended() -> None:
    recorder = Recorder(itertools.count().__next__)
    recorder.done(recorder.write("c", "MODIFIED", A, "new", 4), 7)
    recorder.listed("c", ("pods", ""), recorder.now(), revision=7, found={A: State(7, "new")})
    log = [Row(7, "MODIFIED", A, "new", 4)]
    assert check(recorder, log, before={A: State(4, "three")}, after=6) == []
    assert check(recorder, log) != []


def _replace(log: list[Row], index: int, **changes: object) -> None:
    log[index] = log[index]._replace(**changes)  # type: ignore[arg-type]


def _move(write: Write, to: float) -> None:
    write.called, write.returned = to, to + 0.5


LIES: dict[str, tuple[Callable[[Recorder, list[Row]], object], str]] = {
    "an acknowledged write is lost": (lambda _, log: log.pop(), "is lost"),
    "a row that nobody asked for": (lambda _, log: log.append(Row(7, "ADDED", B, "x", 0)), "nobody asked"),
    "a row twice": (lambda _, log: log.append(Row(7, "ADDED", OTHER, "five", 0)), "happened at"),
    "a revision again": (lambda _, log: _replace(log, 4, revision=5), "comes after"),
    "another revision than was told": (lambda _, log: _replace(log, 4, revision=7), "is at 7"),
    "a refused write happened": (lambda _, log: log.append(Row(7, "MODIFIED", A, "late", 4)), "was refused"),
    "an unanswered write twice": (
        lambda _, log: log.extend([Row(7, "MODIFIED", A, "lost", 4), Row(8, "MODIFIED", A, "lost", 7)]),
        "happened at",
    ),
    "a create over something": (lambda _, log: _replace(log, 2, type="ADDED"), "is ADDED of"),
    "a write on another state": (lambda _, log: _replace(log, 2, previous=0), "takes the place of 0"),
    "a write that saw something else": (lambda r, _: setattr(r.writes[2], "seen", 1), "saw 1"),
    "a later write with an earlier revision": (lambda r, _: _move(r.writes[1], 1_000), "was given 3 after"),
    "a stale list": (lambda r, _: setattr(r.listings[0], "called", 1_000), "list at 4 after 6"),
    "a list that misses one": (lambda r, _: r.listings[0].found.pop(B), "list at 4"),
    "a read of what was never there": (
        lambda r, _: setattr(r.reads[0], "found", State(4, "x")),
        "which was not",
    ),
    "a stale read": (
        lambda r, _: setattr(r.reads[1], "found", State(3, "two")),
        "which was not there from 6",
    ),
    "a watch with a gap": (lambda r, _: r.watches[0].given.pop(3), "where the log has"),
    "a watch that repeats": (lambda r, _: r.watches[0].given.insert(1, LOG[0]), "gave 2 after 2"),
    "a watch out of order": (lambda r, _: r.watches[1].given.reverse(), "after"),
    "a watch of what is not its own": (lambda r, _: r.watches[1].given.insert(2, LOG[4]), "not in the log"),
    "a watch that tells another state": (
        lambda r, _: r.watches[1].given.__setitem__(0, LOG[2]._replace(value="x")),
        "where the log has",
    ),
    "a bookmark too far": (lambda r, _: r.watches[0].given.__setitem__(2, 4), "did not give 4"),
    "a bookmark that goes back": (lambda r, _: r.watches[0].given.append(5), "bookmarked 5 after 6"),
    "an end without all there was": (lambda r, _: r.watches[0].given.pop(-2), "did not give 6"),
    "two writes with one value": (lambda r, _: setattr(r.writes[-1], "value", "late"), "the same value"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(lie: str) -> None:
    tell, expected = LIES[lie]
    recorder, log = history()
    tell(recorder, log)
    assert any(expected in each for each in check(recorder, log)), check(recorder, log)
