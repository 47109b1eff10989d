"""The rules of ``controller/mapping.py``, one test to a promise."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from setpoint.api.forms import untyped
from setpoint.api.names import Key
from setpoint.api.wire import Snapshot
from setpoint.cache.store import Seen
from setpoint.controller.mapping import (
    Reason,
    ToKeys,
    checked,
    keys_of,
    objects_of,
    priority_of,
    reason_of,
    to_itself,
    to_keys,
    to_owner,
)
from setpoint.kube.apps.v1 import Deployment, ReplicaSet
from setpoint.kube.core.v1 import ConfigMap, Node
from setpoint.queue.workqueue import LOW_PRIORITY

WEB, API = Key("shop", "web"), Key("shop", "api")


def config(name: str = "settings", *, namespace: str = "shop", **more: Any) -> Snapshot:
    data = more.pop("data", {})
    metadata = {"name": name, "namespace": namespace, "resourceVersion": "1", **more}
    return Snapshot.of(json.dumps({"metadata": metadata, "data": data}).encode())


def owned(*owners: tuple[str, str, str, bool], namespace: str = "shop") -> Snapshot:
    references = [
        {"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": controller}
        for version, kind, name, controller in owners
    ]
    return config(namespace=namespace, ownerReferences=references)


# 1. Old and new; 2. each key once.


def test_on_a_change_both_the_object_as_it_was_and_as_it_is_are_mapped() -> None:
    def users(settings: ConfigMap) -> list[Key]:
        return [Key("shop", (settings.data or {})["of"]), WEB]

    mapper = to_keys(ConfigMap, users)
    old, new = config(data={"of": "api"}), config(data={"of": "db"})
    seen = Seen("UPDATED", old, new)

    assert keys_of(checked(mapper(each)) for each in objects_of(seen)) == [API, WEB, Key("shop", "db")]


@pytest.mark.parametrize(
    ("seen", "count"),
    [
        (Seen("ADDED", None, config()), 1),
        (Seen("UPDATED", config(), config()), 2),
        (Seen("DELETED", config(), None), 1),
        (Seen("RESYNC", config(), config()), 1),
    ],
    ids=lambda value: value.type if isinstance(value, Seen) else "",
)
def test_what_is_one_object_is_mapped_once(seen: Seen, count: int) -> None:
    assert len(objects_of(seen)) == count


def test_an_object_stands_for_itself() -> None:
    assert to_itself(config("web")) == [WEB]


# 3. Owners.


@pytest.mark.parametrize(
    ("child", "found"),
    [
        (owned(("apps/v1", "Deployment", "web", True)), [WEB]),
        (owned(("apps/v1beta1", "Deployment", "web", True)), [WEB]),
        (owned(("extensions/v1", "Deployment", "web", True)), []),
        (owned(("apps/v1", "ReplicaSet", "web", True)), []),
        (owned(("apps/v1", "Deployment", "web", False)), []),
        (owned(("apps/v1", "Deployment", "api", False), ("apps/v1", "Deployment", "web", True)), [WEB]),
        (config(), []),
    ],
    ids=["controller", "other version", "other group", "other kind", "no controller", "one of two", "none"],
)
def test_an_owner_is_found_by_group_and_kind_whatever_the_version(child: Snapshot, found: list[Key]) -> None:
    assert to_owner(Deployment)(child) == found


def test_any_owner_counts_where_that_is_asked_for() -> None:
    child = owned(("apps/v1", "Deployment", "api", False), ("apps/v1", "Deployment", "web", True))
    assert to_owner(Deployment, any_owner=True)(child) == [API, WEB]
    assert to_owner(ReplicaSet, any_owner=True)(child) == []


def test_an_owner_that_belongs_to_no_namespace_is_found_from_any() -> None:
    assert to_owner(Node)(owned(("v1", "Node", "n1", True))) == [Key("", "n1")]
    assert to_owner(Node)(owned(("v1", "Node", "n1", True), namespace="")) == [Key("", "n1")]


def test_whether_an_untyped_owner_has_a_namespace_is_not_guessed() -> None:
    mapper = to_owner(untyped("apps/v1", "Deployment"))
    assert mapper.namespaced is None
    with pytest.raises(AssertionError, match="found out before"):
        mapper(owned(("apps/v1", "Deployment", "web", True)))


# 4. Priority, and why.


@pytest.mark.parametrize(
    ("seen", "priority", "why"),
    [
        (Seen("ADDED", None, config(), initial=True), LOW_PRIORITY, "ADDED"),
        (Seen("RESYNC", config(), config()), LOW_PRIORITY, "resync"),
        (Seen("ADDED", None, config()), 0, "ADDED"),
        (Seen("UPDATED", config(), config()), 0, "MODIFIED"),
        (Seen("DELETED", config(), None), 0, "DELETED"),
    ],
    ids=["first list", "resync", "added", "modified", "deleted"],
)
def test_what_is_only_looked_at_in_case_is_of_low_priority(seen: Seen, priority: int, why: Any) -> None:
    assert priority_of(seen) == priority
    assert reason_of(ConfigMap.resource.gvk, seen) == Reason(why, ConfigMap.resource.gvk, seen.key)


def test_a_priority_of_ones_own_is_for_changes() -> None:
    assert priority_of(Seen("ADDED", None, config()), 7) == 7
    assert priority_of(Seen("ADDED", None, config(), initial=True), 7) == LOW_PRIORITY
    assert priority_of(Seen("ADDED", None, config(), initial=True), -500) == -500


def test_a_reason_says_what_happened_to_what() -> None:
    seen = Seen("UPDATED", config(), config())
    assert str(reason_of(ConfigMap.resource.gvk, seen)) == "v1 ConfigMap shop/settings MODIFIED"
    assert str(Reason("retry")) == "retry"


# What a mapper may answer.


@pytest.mark.parametrize("answer", [WEB, "shop/web", None, [("shop", "web")], ["shop/web"], 3], ids=repr)
def test_a_wrong_answer_of_a_mapper_is_an_error_that_says_what_is_right(answer: Any) -> None:
    with pytest.raises(TypeError, match=r"Request\(namespace, name\)"):
        checked(answer)


def test_a_mapper_may_give_any_iterable() -> None:
    assert checked(key for key in [WEB, API]) == [WEB, API]
    assert checked({WEB}) == [WEB]


def test_whether_a_mapper_waits_is_seen_from_its_function() -> None:
    async def ask(_: ConfigMap) -> list[Key]:
        return [WEB]

    class Asker:
        async def __call__(self, _: ConfigMap) -> list[Key]:
            return [WEB]

    def take(settings: ConfigMap, /, *, more: int = 0) -> list[Key]:
        return [WEB]

    def is_async(mapper: ToKeys[ConfigMap]) -> bool:
        return mapper.is_async

    assert is_async(to_keys(ConfigMap, ask))
    assert is_async(to_keys(ConfigMap, Asker()))
    assert is_async(to_keys(ConfigMap, partial(ask)))
    assert not is_async(to_keys(ConfigMap, take))
