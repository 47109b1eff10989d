"""What may be forgotten, and when."""

from __future__ import annotations

from setpoint.server.storage.retention import Keep, Retention


def test_the_young_and_the_last_are_kept() -> None:
    retention = Retention(Keep(seconds=64, events=64, bytes=1_000_000))
    for revision in range(1, 201):
        retention.note(float(revision), revision, 1)
    assert retention.due(200.0, 200) == 136, "64 writes and 64 seconds ago"
    assert retention.due(200.0, 200) == 0, "it was said"
    assert retention.due(300.0, 200) == 0, "they are old, and the last 64"


def test_what_is_young_is_kept_however_many_it_is() -> None:
    retention = Retention(Keep(seconds=64, events=64, bytes=1_000_000))
    for revision in range(1, 1_000):
        retention.note(0.0, revision, 1)
    assert retention.due(63.0, 999) == 0
    assert 900 < retention.due(64.0, 999) <= 935


def test_there_is_an_end_to_bytes() -> None:
    retention = Retention(Keep(seconds=300, events=10_000, bytes=1_000))
    for revision in range(1, 101):
        retention.note(0.0, revision, 100)
    assert retention.due(0.0, 100) == 89


def test_marks_are_few() -> None:
    retention = Retention(Keep(seconds=300, events=6_400, bytes=10**9))
    for revision in range(1, 100_000):
        retention.note(revision / 10_000, revision, 10)
    assert len(retention._marks) < 1_100
