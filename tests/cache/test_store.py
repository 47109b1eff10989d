"""The promises of ``cache/store.py``."""

from __future__ import annotations

import random
from typing import Any

import pytest

from setpoint.api.names import Key
from setpoint.api.selectors import FieldSelection, LabelSelection
from setpoint.cache.index import by_field, by_owner
from setpoint.cache.store import REMEMBERED_DELETIONS, Query, Seen, Store, Writer
from tests.cache.objects import snapshot


def filled(*snapshots: Any, version: str = "100") -> Writer:
    writer = Writer()
    writer.stage(snapshots)
    writer.swap(version)
    return writer


def brief(changes: list[Seen]) -> list[str]:
    return [f"{each.type} {each.key.name} {each.snapshot.metadata.resource_version}" for each in changes]


def names(store: Store, **query: Any) -> list[str]:
    return [str(each.key) for each in store.select(Query(**query))]


# One writer


def test_a_store_can_only_be_read() -> None:
    public = {name for name in dir(Store) if not name.startswith("_")}
    assert public == {"bytes", "get", "indexes", "is_synced", "select", "version"}


def test_it_says_what_it_holds() -> None:
    writer = Writer()
    assert repr(writer.store) == "<Store 0 objects, 0 bytes, not synced>"
    held = snapshot("a", 5)
    writer.stage([held])
    writer.swap("9")
    assert repr(writer.store) == f"<Store 1 objects, {len(held.data)} bytes, at version 9>"


# Swapping


def test_nothing_of_a_list_is_seen_before_it_is_swapped_in() -> None:
    writer = filled(snapshot("a", 5))
    writer.stage([snapshot("b", 6)])
    assert names(writer.store) == ["shop/a"]
    writer.stage([snapshot("c", 7)])
    writer.swap("9")
    assert names(writer.store) == ["shop/b", "shop/c"]


def test_a_list_that_is_forgotten_leaves_nothing_behind() -> None:
    writer = filled(snapshot("a", 5))
    writer.stage([snapshot("b", 6)])
    writer.forget()
    writer.stage([snapshot("a", 5)])
    assert writer.swap("9") == []
    assert names(writer.store) == ["shop/a"]


def test_the_first_list_is_added_and_is_initial() -> None:
    writer = Writer()
    writer.stage([snapshot("a", 5), snapshot("b", 6)])
    assert writer.swap("9") == [
        Seen("ADDED", None, snapshot("a", 5), initial=True),
        Seen("ADDED", None, snapshot("b", 6), initial=True),
    ]


def test_a_later_list_comes_out_as_its_difference_deletions_first() -> None:
    writer = filled(snapshot("gone", 1), snapshot("same", 2), snapshot("changed", 3))
    writer.stage([snapshot("new", 11), snapshot("same", 2), snapshot("changed", 12)])
    seen = writer.swap("20")
    assert brief(seen) == ["DELETED gone 1", "ADDED new 11", "UPDATED changed 12"]
    assert not any(change.initial for change in seen)
    assert seen[2].old == snapshot("changed", 3)


def test_what_was_deleted_and_made_again_meanwhile_is_deleted_then_added() -> None:
    writer = filled(snapshot("a", 5, uid="first"))
    writer.stage([snapshot("a", 9, uid="second")])
    assert brief(writer.swap("10")) == ["DELETED a 5", "ADDED a 9"]


def test_what_is_deleted_while_the_list_is_sent_does_not_come_with_it() -> None:
    writer = Writer()
    writer.stage([snapshot("a", 5), snapshot("b", 6)])
    writer.unstage(Key("shop", "a"))
    writer.unstage(Key("elsewhere", "a"))
    assert brief(writer.swap("9")) == ["ADDED b 6"]


def test_what_did_not_change_is_held_once_while_a_new_list_arrives() -> None:
    held = snapshot("a", 5)
    writer = filled(held)
    writer.stage([snapshot("a", 5)])
    writer.swap("101")
    assert writer.store.get(Key("shop", "a")) is held


# A change at a time


def test_an_object_is_added_updated_and_deleted() -> None:
    writer = filled()
    assert writer.put(snapshot("a", 101)) == [Seen("ADDED", None, snapshot("a", 101))]
    assert writer.put(snapshot("a", 102)) == [Seen("UPDATED", snapshot("a", 101), snapshot("a", 102))]
    assert writer.drop(snapshot("a", 103)) == [Seen("DELETED", snapshot("a", 103), None)], "as it last was"
    assert (len(writer.store), writer.store.bytes, writer.store.version) == (0, 0, "103")


def test_of_several_changes_at_once_each_is_seen_in_its_order() -> None:
    writer = filled(snapshot("a", 50))
    seen = writer.put(snapshot("b", 101), snapshot("a", 102), snapshot("b", 103), snapshot("a", 50))
    assert seen == [
        Seen("ADDED", None, snapshot("b", 101)),
        Seen("UPDATED", snapshot("a", 50), snapshot("a", 102)),
        Seen("UPDATED", snapshot("b", 101), snapshot("b", 103)),
    ]
    assert (len(writer.store), writer.store.version) == (2, "103")


def test_the_same_event_again_changes_nothing() -> None:
    writer = filled()
    writer.put(snapshot("a", 101))
    assert writer.put(snapshot("a", 101)) == []
    writer.drop(snapshot("a", 102))
    assert writer.drop(snapshot("a", 102)) == []


def test_an_object_never_goes_back() -> None:
    writer = filled(snapshot("a", 50, uid="second"))
    assert writer.put(snapshot("a", 49, uid="second")) == []
    assert writer.put(snapshot("a", 48, uid="first")) == []
    assert writer.drop(snapshot("a", 49, uid="first")) == []
    assert writer.store.get(Key("shop", "a")) == snapshot("a", 50, uid="second")


def test_an_event_older_than_the_deletion_brings_nothing_back() -> None:
    writer = filled(snapshot("a", 50))
    writer.drop(snapshot("a", 101))
    assert writer.put(snapshot("a", 60)) == []
    assert writer.put(snapshot("a", 101)) == []
    assert brief(writer.put(snapshot("a", 102))) == ["ADDED a 102"]


def test_an_event_older_than_the_list_brings_nothing_back() -> None:
    assert filled(version="100").put(snapshot("a", 60)) == []


def test_deletions_are_remembered_within_bounds_and_still_nothing_comes_back() -> None:
    writer = filled(version="1")
    for version in range(2, REMEMBERED_DELETIONS + 10):
        writer.drop(snapshot(f"x{version}", version))
    assert len(writer._gone) == REMEMBERED_DELETIONS
    assert writer.put(snapshot("x2", 2)) == []


def test_what_was_deleted_and_made_again_unseen_is_deleted_then_added() -> None:
    writer = filled(snapshot("a", 50, uid="first"))
    assert brief(writer.put(snapshot("a", 101, uid="second"))) == ["DELETED a 50", "ADDED a 101"]


def test_where_versions_cannot_be_compared_the_last_word_counts() -> None:
    writer = filled(snapshot("a", "zz"), version="yy")
    assert brief(writer.put(snapshot("a", "bb"))) == ["UPDATED a bb"]
    assert brief(writer.drop(snapshot("a", "aa"))) == ["DELETED a aa"]
    assert brief(writer.put(snapshot("a", "cc"))) == ["ADDED a cc"]
    assert writer.store.version == "cc"


def test_the_version_follows_objects_and_bookmarks_and_never_falls() -> None:
    writer = filled(version="100")
    writer.put(snapshot("a", 103))
    assert writer.store.version == "103"
    writer.reach("110")
    writer.reach("105")
    assert writer.store.version == "110"


# Reading


def shop() -> Writer:
    writer = Writer()
    for index in (by_field("spec.node"), by_field("spec.images[*]")):
        writer.add_index(index)
    writer.stage(
        [
            snapshot(
                "b", 2, namespace="shop", labels={"app": "web"}, spec={"node": "n1", "images": ["x", "y"]}
            ),
            snapshot("a", 1, namespace="shop", labels={"app": "db"}, spec={"node": "n2"}),
            snapshot("a", 3, namespace="lab", labels={"app": "web"}, spec={"node": "n1", "images": ["y"]}),
            snapshot("c", 4, namespace="lab", ownerReferences=[owner("u1"), owner("u2")]),
        ]
    )
    writer.swap("9")
    return writer


def owner(uid: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Thing", "name": "o", "uid": uid}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["lab/a", "lab/c", "shop/a", "shop/b"]),
        ({"namespace": "shop"}, ["shop/a", "shop/b"]),
        ({"namespace": "none"}, []),
        ({"labels": LabelSelection.parse("app=web")}, ["lab/a", "shop/b"]),
        ({"labels": LabelSelection.parse("!app")}, ["lab/c"]),
        ({"labels": LabelSelection.parse("app=web"), "namespace": "lab"}, ["lab/a"]),
        ({"fields": FieldSelection.parse("spec.node=n1")}, ["lab/a", "shop/b"]),
        ({"fields": FieldSelection.parse("spec.node!=n1")}, ["lab/c", "shop/a"]),
        ({"fields": FieldSelection.parse("spec.node=")}, ["lab/c"]),
        ({"fields": FieldSelection.parse("metadata.name=a,spec.node=n1")}, ["lab/a"]),
        ({"fields": FieldSelection.parse("metadata.name=a")}, ["lab/a", "shop/a"]),
        ({"owner": "u2"}, ["lab/c"]),
        ({"owner": "u2", "namespace": "shop"}, []),
        ({"index": {"spec.images[*]": "y"}}, ["lab/a", "shop/b"]),
        ({"index": {"spec.images[*]": "y", "spec.node": "n1"}, "namespace": "shop"}, ["shop/b"]),
        ({"index": {"spec.images[*]": "z"}}, []),
    ],
)
def test_objects_are_found_by_what_is_asked(query: dict[str, Any], expected: list[str]) -> None:
    assert names(shop().store, **query) == expected


def test_an_index_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"no index 'spec.x' .*spec.images\[\*\], spec.node.*indexes="):
        shop().store.select(Query(index={"spec.x": "1"}))


def test_an_index_that_comes_later_holds_what_is_there() -> None:
    writer = filled(snapshot("a", 1, spec={"node": "n1"}))
    writer.add_index(by_field("spec.node"))
    assert names(writer.store, index={"spec.node": "n1"}) == ["shop/a"]


def test_an_index_of_the_same_definition_is_the_same_index() -> None:
    writer = filled(snapshot("a", 1, spec={"node": "n1"}))
    writer.add_index(by_field("spec.node"))
    known = writer.store.indexes["spec.node"]
    writer.add_index(by_field("spec.node"))
    assert writer.store.indexes["spec.node"] is known
    other = by_owner()
    other.name = "spec.node"
    with pytest.raises(ValueError, match="another definition"):
        writer.add_index(other)


def test_indexes_always_agree_with_the_objects() -> None:
    """Whatever is staged, swapped, put and dropped: what an index finds is what a search finds."""
    chance = random.Random(0)
    writer = Writer()
    writer.add_index(by_field("spec.node"))
    writer.store.select(Query(owner="o1"))  # from here on there is an index of owners
    for version in range(1, 2000):
        one = snapshot(
            chance.choice("abcdef"),
            version,
            namespace=chance.choice(["shop", "lab"]),
            uid=f"uid-{chance.randrange(3)}",
            spec={"node": chance.choice(["n1", "n2", None])},
            ownerReferences=[owner(chance.choice(["o1", "o2"]))],
        )
        match chance.randrange(10):
            case 0:
                writer.swap(str(version))
            case 1 | 2:
                writer.stage([one])
            case 3 | 4 | 5:
                writer.drop(one)
            case _:
                writer.put(one)
        held = list(writer.store)
        for node in ("n1", "n2"):
            searched = sorted(str(each.key) for each in held if f'"node": "{node}"' in each.data.decode())
            assert sorted(names(writer.store, index={"spec.node": node})) == searched
        for uid in ("o1", "o2"):
            owned = sorted(str(each.key) for each in held if f'"uid": "{uid}"' in each.data.decode())
            assert sorted(names(writer.store, owner=uid)) == owned
        assert writer.store.bytes == sum(len(each.data) for each in held)
        assert len(writer.store) == len(held)
