"""``authorization/defaults.py``: the roles of every cluster, made once and left alone."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.defaults import defaults, establish
from setpoint.server.authorization.rbac import GROUP, Rbac
from setpoint.server.registry.requests import User
from setpoint.server.storage.memory import MemoryStore
from setpoint.server.storage.protocol import Place

NOW = "2026-01-01T00:00:00Z"
VIEW = Place(f"clusterroles.{GROUP}", "", "view")
DISCOVERY = Place(f"clusterroles.{GROUP}", "", "system:discovery")
BINDING = Place(f"clusterrolebindings.{GROUP}", "", "system:discovery")


async def established(store: MemoryStore) -> None:
    numbers = count(1)
    await establish(store, uid=lambda: f"uid-{next(numbers)}", now=NOW)


async def test_each_has_a_uid_a_version_and_a_time() -> None:
    store = MemoryStore()
    await established(store)
    for place, _ in defaults():
        record = store.get(place)
        assert record is not None
        obj = msgspec.json.decode(record.data)
        metadata = obj["metadata"]
        assert list(obj)[:2] == ["kind", "apiVersion"], "as the server stores everything"
        assert metadata["uid"].startswith("uid-")
        assert metadata["resourceVersion"] == str(record.revision)
        assert metadata["creationTimestamp"] == NOW
        assert all(one["time"] == NOW for one in metadata["managedFields"])


def read(store: MemoryStore, place: Place) -> dict[str, Any]:
    record = store.get(place)
    assert record is not None
    found: dict[str, Any] = msgspec.json.decode(record.data)
    return found


async def write(store: MemoryStore, place: Place, obj: dict[str, Any]) -> None:
    record = store.get(place)
    assert record is not None
    await store.update(place, lambda _: msgspec.json.encode(obj), record.revision)


async def test_what_was_deleted_comes_back_and_what_is_there_is_not_written_again() -> None:
    store = MemoryStore()
    await established(store)
    gone = store.get(VIEW)
    assert gone is not None
    await store.delete(VIEW, lambda _: gone.data, gone.revision)
    before = store.revision

    await established(store)

    assert read(store, VIEW)["metadata"]["name"] == "view"
    assert store.revision == before + 1


async def test_what_a_default_role_lacks_is_added_and_what_was_added_stays() -> None:
    store = MemoryStore()
    await established(store)
    own = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["things"]}
    role = read(store, DISCOVERY)
    await write(store, DISCOVERY, {**role, "rules": [own]})
    binding = read(store, BINDING)
    jane = {"kind": "User", "apiGroup": GROUP, "name": "jane"}
    await write(store, BINDING, {**binding, "subjects": [jane]})

    await established(store)

    assert read(store, DISCOVERY)["rules"][0] == own
    somebody = User("x", ("system:authenticated",))
    assert Rbac(store).allows(somebody, Attributes("get", path="/api"))
    assert read(store, BINDING)["subjects"] == [jane, *binding["subjects"]]


async def test_who_does_not_want_that_says_so_in_an_annotation() -> None:
    store = MemoryStore()
    await established(store)
    role = read(store, DISCOVERY)
    role["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
    await write(store, DISCOVERY, {**role, "rules": []})

    await established(store)

    assert read(store, DISCOVERY)["rules"] == []


async def test_they_let_everybody_discover_and_ask_what_it_may_and_strangers_see_health() -> None:
    store = MemoryStore()
    await established(store)
    rbac = Rbac(store)
    somebody, stranger = User("x", ("system:authenticated",)), User("y", ("system:unauthenticated",))
    for path in ("/api", "/apis/apps/v1", "/openapi/v3", "/version", "/healthz"):
        assert rbac.allows(somebody, Attributes("get", path=path)), path
    assert rbac.allows(somebody, Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews"))
    assert rbac.allows(somebody, Attributes("create", "authentication.k8s.io", "selfsubjectreviews"))
    assert not rbac.allows(somebody, Attributes("list", "", "pods"))
    assert rbac.allows(stranger, Attributes("get", path="/healthz"))
    assert not rbac.allows(stranger, Attributes("get", path="/api"))
