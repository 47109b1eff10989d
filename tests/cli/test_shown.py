"""What ``setpoint dev`` shows: the tree of owners, and events in words."""

from __future__ import annotations

from setpoint.cli.shown import Node, seconds, told_of, told_of_change, tree
from tests.cli.scenes import DEPLOYMENT, POD, WEBAPP, WROTE, ended, item, webapp


def names(nodes: tuple[Node, ...]) -> list[object]:
    return [(node.item.uid, names(node.children)) if node.children else node.item.uid for node in nodes]


def test_an_object_stands_under_its_owner() -> None:
    grown = tree(webapp(2), [WEBAPP])
    assert names(grown) == [("shop", [("shop-deployment", ["pod-0", "pod-1"])])]
    assert sum(map(len, grown)) == 4


def test_what_belongs_to_no_object_of_the_operator_is_not_shown() -> None:
    assert tree([item("alone"), item("of-another", POD, "unknown")], [WEBAPP]) == ()


def test_a_kind_that_is_reconciled_and_owned_stands_only_under_its_owner() -> None:
    assert names(tree(webapp(0), [WEBAPP, DEPLOYMENT])) == [("shop", ["shop-deployment"])]


def test_owners_that_go_round_in_a_circle_are_shown_once() -> None:
    circle = [item("top", WEBAPP), item("a", POD, "top", "b"), item("b", POD, "a")]
    assert names(tree(circle, [WEBAPP])) == [("top", [("a", ["b"])])]


def test_siblings_are_in_the_order_of_their_kinds_and_names() -> None:
    children = [item(uid, kind, "top") for uid, kind in (("b", POD), ("a", POD), ("z", DEPLOYMENT))]
    assert names(tree([item("top", WEBAPP), *children], [WEBAPP])) == [("top", ["z", "a", "b"])]


def test_a_reconcile_is_told_with_its_reason_and_what_it_wrote() -> None:
    assert told_of(ended(wrote=WROTE)) == (
        "12:00:01  reconciled webapp default/shop in 12 ms: success; "
        "because Deployment default/shop MODIFIED; "
        "wrote apply Deployment default/shop, patch WebApp/status default/shop"
    )


def test_a_reconcile_that_failed_is_told_and_one_of_which_nothing_came_is_not() -> None:
    failed = told_of(ended(came_to="error", error="ValueError: no", reasons=()))
    assert (
        failed
        == "12:00:01  reconciled webapp default/shop in 12 ms: error; ValueError: no; because asked for"
    )
    assert told_of(ended()) is None


def test_of_an_object_it_is_told_when_it_is_as_ready_as_it_was_not_before() -> None:
    ready, waits = item("a"), item("a", state="InProgress", reason="0 of 2")
    assert told_of_change("12:00", None, waits) == "12:00  Pod default/a: in progress: 0 of 2"
    assert told_of_change("12:00", waits, ready) == "12:00  Pod default/a: ready"
    assert told_of_change("12:00", ready, ready) is None
    assert told_of_change("12:00", ready, None) == "12:00  Pod default/a: gone"


def test_seconds_are_as_fine_as_anyone_wants_to_know() -> None:
    assert [seconds(each) for each in (0.0123, 4.21, 250.4)] == ["12 ms", "4.2 s", "250 s"]
