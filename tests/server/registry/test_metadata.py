"""``registry/metadata.py``: what the server writes into metadata, whatever a body brings."""

from __future__ import annotations

from typing import Any

from setpoint.server.registry.metadata import dedupe_owners
from tests.server.deadlines import within


def owned(*owners: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": list(owners)}}


def owner(uid: str, **more: Any) -> dict[str, Any]:
    return {"kind": "Pod", "uid": uid, **more}


def test_an_owner_that_is_named_twice_is_named_once_and_told() -> None:
    obj = owned(owner("a"), owner("b"), {"uid": "a", "kind": "Pod"}, owner("a", controller=True), owner("b"))

    [told] = dedupe_owners(obj)

    assert obj == owned(owner("a"), owner("b"), owner("a", controller=True))
    assert told.endswith("duplicate UID(s) observed: a, b")


def test_owners_that_are_named_once_stay() -> None:
    obj = owned(owner("a"), owner("b"))

    assert dedupe_owners(obj) == []
    assert obj == owned(owner("a"), owner("b"))


def test_as_many_owners_as_a_body_allows_are_looked_through_in_time() -> None:
    owners = [owner(str(number)) for number in range(50_000)]
    obj = owned(*owners, *owners)

    with within(20):
        [told] = dedupe_owners(obj)

    assert obj == owned(*owners)
    assert told.endswith(", 49999")
