"""The promises of ``cache/writes.py``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from setpoint.api.names import GroupVersionKind, Key
from setpoint.api.selectors import LabelSelection
from setpoint.api.wire import Snapshot
from setpoint.cache.scope import Scope
from setpoint.cache.writes import IN_DOUBT, Write, Writes
from tests.cache.objects import snapshot

GVK = GroupVersionKind("demo.setpoint.dev", "v1", "Thing")
OTHER = GroupVersionKind("demo.setpoint.dev", "v1", "Other")
A, B = Key("shop", "a"), Key("lab", "b")
ALL = Scope(GVK)
WEB = replace(ALL, labels=LabelSelection.parse("app=web"))


@pytest.mark.parametrize(
    ("held", "reached", "is_seen"),
    [
        (None, "4", False),
        (None, "", False),
        (None, "5", True),  # it came and went
        (None, "9", True),
        (snapshot("a", 4), "4", False),
        (snapshot("a", 5), "5", True),
        (snapshot("a", 6), "6", True),
        (snapshot("a", 4), "5", True),  # a write that changed nothing gives the version that was
        (snapshot("a", 5), "3", True),
    ],
)
def test_a_write_is_seen_at_its_version_or_past_it(
    held: Snapshot | None, reached: str, is_seen: bool
) -> None:
    write = Write(at=0, version="5")
    assert write.is_seen(ALL, held, reached) is is_seen


@pytest.mark.parametrize(
    ("held", "reached", "is_seen"),
    [
        (None, "x", False),
        (snapshot("a", "x"), "x", False),
        (snapshot("a", "w"), "w", True),
        (None, "w", True),
    ],
)
def test_where_versions_cannot_be_compared_only_the_same_one_counts(
    held: Snapshot | None, reached: str, is_seen: bool
) -> None:
    write = Write(at=0, version="w")
    assert write.is_seen(ALL, held, reached) is is_seen


def test_a_deletion_is_seen_when_the_object_is_gone_another_or_on_its_way_out() -> None:
    write = Write(at=0, deleted="first")
    assert not write.is_seen(ALL, snapshot("a", 5, uid="first"), "9")
    assert write.is_seen(ALL, None, "4")
    assert write.is_seen(ALL, snapshot("a", 8, uid="second"), "9")
    on_its_way = snapshot("a", 8, uid="first", deletionTimestamp="2026-01-02T03:04:05Z")
    assert write.is_seen(ALL, on_its_way, "9")


def test_what_the_server_has_no_longer_is_not_seen_while_it_is_on_its_way_out() -> None:
    on_its_way = snapshot("a", 8, uid="first", deletionTimestamp="2026-01-02T03:04:05Z")
    writes = Writes()
    writes.deleted(GVK, A, "first", at=0, is_gone=True)
    writes.lost(GVK, B, at=0)
    writes.read_gone(GVK, B, "first")
    for _, write in writes.of_kind(GVK):
        assert not write.is_seen(ALL, on_its_way, "9")
        assert write.is_seen(ALL, None, "9")
        assert write.is_seen(ALL, snapshot("a", 9, uid="second"), "9")


def test_a_store_that_is_older_than_a_deleted_object_has_yet_to_bring_it() -> None:
    write = Write(at=0, deleted="first", is_gone=True, existed_at="7")
    assert not write.is_seen(ALL, None, "6")
    assert write.is_seen(ALL, None, "7")
    assert not write.is_seen(ALL, snapshot("a", 7, uid="first"), "8")
    assert write.is_seen(ALL, snapshot("a", 8, uid="second"), "8")
    assert write.is_seen(WEB, None, "6")  # it need not come


def test_an_object_made_and_deleted_is_seen_to_be_gone_only_after_it_was_made() -> None:
    writes = Writes()
    writes.wrote(GVK, A, "5", at=0)
    writes.deleted(GVK, A, "first", at=1)
    write = writes.of(GVK, A)
    assert write is not None
    assert not write.is_seen(ALL, None, "4"), "that it is not there may be older than both"
    assert write.is_seen(ALL, None, "5")


def test_what_is_not_selected_need_not_come() -> None:
    write = Write(at=0, version="5", labels={"app": "db"})
    assert write.is_seen(WEB, None, "4")
    assert not write.is_seen(WEB, snapshot("a", 4), "4"), "but what is held must go"
    assert not write.is_seen(ALL, None, "4")
    assert not Write(at=0, version="5", labels={"app": "web"}).is_seen(WEB, None, "4")
    assert not Write(at=0, version="5").is_seen(WEB, None, "4"), "nobody said"


def test_a_write_without_an_answer_is_in_doubt_while_the_server_can_be_at_it() -> None:
    writes = Writes()
    writes.lost(GVK, A, at=100)
    write = writes.of(GVK, A)
    assert write is not None
    assert write.is_in_doubt(100)
    assert write.is_in_doubt(100 + IN_DOUBT - 1)
    assert not write.is_in_doubt(100 + IN_DOUBT)


def test_an_answer_to_a_later_write_ends_the_doubt() -> None:
    writes = Writes()
    writes.lost(GVK, A, at=100)
    writes.wrote(GVK, A, "7", at=101)
    write = writes.of(GVK, A)
    assert write == Write(101, "7")


def test_what_the_server_says_meanwhile_is_what_the_store_must_reach() -> None:
    writes = Writes()
    writes.lost(GVK, A, at=100)
    writes.read_live(GVK, A, "8")
    write = writes.of(GVK, A)
    assert write is not None
    assert write.is_in_doubt(101), "the write may still be on its way"
    assert not write.is_seen(ALL, snapshot("a", 7), "7")
    assert write.is_seen(ALL, snapshot("a", 8), "8")
    writes.read_gone(GVK, A, "first")
    write = writes.of(GVK, A)
    assert write is not None
    assert not write.is_seen(ALL, snapshot("a", 8, uid="first"), "8")


def test_what_is_read_of_objects_never_written_is_not_kept() -> None:
    writes = Writes()
    writes.read_live(GVK, A, "8")
    writes.read_gone(GVK, A, "first")
    writes.give_up(GVK, A)
    assert len(writes) == 0


def test_writes_are_found_by_kind_and_namespace() -> None:
    writes = Writes()
    writes.wrote(GVK, A, "5", at=0)
    writes.wrote(GVK, B, "6", at=0)
    writes.wrote(OTHER, A, "7", at=0)
    assert [key for key, _ in writes.of_kind(GVK)] == [A, B]
    assert [key for key, _ in writes.of_kind(GVK, "lab")] == [B]
    writes.seen(GVK, A)
    writes.seen(GVK, A)
    assert writes.of(GVK, A) is None
    assert repr(writes) == "<Writes 2 that may not have been seen>"


def test_memory_is_bounded_and_the_oldest_become_everything_up_to_here() -> None:
    writes = Writes(limit=10)
    for number in range(1, 101):
        writes.wrote(GVK, Key("shop", f"a{number}"), str(number), at=0)
    assert len(writes) == 10
    assert writes.floor(GVK) == "90"
    assert writes.floor(OTHER) == ""


def test_of_deletions_and_lost_writes_beyond_the_bound_it_is_known_that_there_were_some() -> None:
    writes = Writes(limit=1)
    writes.deleted(GVK, A, "first", at=10)
    writes.wrote(OTHER, A, "5", at=11)
    assert writes.unknown_until(GVK) == 11, "no version says when it is seen"
    writes.listed_live(GVK, "6", at=12)
    assert writes.unknown_until(GVK) is None
    assert writes.floor(GVK) == "6", "whoever has reached the list has seen the deletion"

    writes.lost(GVK, A, at=20)
    writes.wrote(OTHER, A, "7", at=21)
    writes.listed_live(GVK, "8", at=22)
    assert writes.unknown_until(GVK) == 20 + IN_DOUBT, "it may still happen"
    writes.listed_live(GVK, "9", at=20 + IN_DOUBT)
    assert writes.unknown_until(GVK) is None
    assert writes.floor(GVK) == "9"


def test_a_write_beyond_the_bound_whose_version_cannot_be_compared_is_unknown_for_a_while() -> None:
    writes = Writes(limit=1)
    writes.wrote(GVK, A, "w", at=10)
    writes.wrote(GVK, B, "x", at=11)
    assert writes.floor(GVK) == ""
    assert writes.unknown_until(GVK) == 11 + IN_DOUBT


def test_what_was_to_be_named_by_the_server_is_unknown_until_a_list_after_it_can_have_happened() -> None:
    writes = Writes()
    writes.lost_unnamed(GVK, at=100)
    assert writes.unknown_until(GVK) == 100 + IN_DOUBT
    assert writes.unknown_until(OTHER) is None
    writes.listed_live(OTHER, "5", at=101)
    assert writes.floor(OTHER) == "", "a list of what nobody is in doubt about is not waited for"


def test_a_key_that_is_written_again_is_no_longer_the_oldest() -> None:
    writes = Writes(limit=2)
    writes.wrote(GVK, A, "1", at=0)
    writes.wrote(GVK, B, "2", at=0)
    writes.wrote(GVK, A, "3", at=0)
    writes.wrote(GVK, Key("shop", "c"), "4", at=0)
    assert writes.of(GVK, A) is not None
    assert writes.floor(GVK) == "2"
