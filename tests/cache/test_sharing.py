"""What ``cache/sharing.py`` lets objects share."""

from __future__ import annotations

from typing import Any

from setpoint.api.wire import Metadata
from setpoint.cache.sharing import Sharing
from tests.cache.objects import snapshot


def shared(sharing: Sharing, name: str, **metadata: Any) -> Metadata:
    found = snapshot(name, 1, **metadata).metadata
    sharing.share(found)
    return found


def test_equal_labels_annotations_owners_and_finalizers_are_kept_once() -> None:
    sharing = Sharing()
    common = {
        "labels": {"app": "web", "tier": "front"},
        "annotations": {"note": "x"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Thing", "name": "o", "uid": "u1"}],
        "finalizers": ["demo.setpoint.dev/clean"],
        "creationTimestamp": "2026-01-02T03:04:05Z",
    }
    one, other = shared(sharing, "a", **common), shared(sharing, "b", **common)
    for name in (
        "labels",
        "annotations",
        "owner_references",
        "finalizers",
        "namespace",
        "creation_timestamp",
    ):
        assert getattr(one, name) is getattr(other, name), name
    assert (one.name, other.name, other.labels) == ("a", "b", {"app": "web", "tier": "front"})


def test_what_differs_stays_different() -> None:
    sharing = Sharing()
    one = shared(sharing, "a", labels={"app": "web"})
    other = shared(sharing, "b", labels={"app": "db"}, annotations={"app": "web"})
    assert (one.labels, other.labels, other.annotations) == ({"app": "web"}, {"app": "db"}, {"app": "web"})
    assert shared(sharing, "c").labels is None


def test_the_tables_are_bounded() -> None:
    sharing = Sharing(limit=100)
    for number in range(1000):
        assert shared(sharing, "a", labels={"n": str(number)}).labels == {"n": str(number)}
    assert len(sharing._seen) <= 110
