"""The promises of ``authorization/rbac.py``, on roles and bindings in a store."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from setpoint.server.authorization import rbac
from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.rbac import GROUP, Rbac
from setpoint.server.registry.requests import User
from setpoint.server.storage.memory import MemoryStore
from setpoint.server.storage.protocol import Place

JANE = User("jane", ("devs", "system:authenticated"))
GET = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
POD = Attributes("get", "", "pods", "", "shop", "web")
ANYWHERE = POD._replace(namespace="", name="")


class Roles:
    """Writes them."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.rbac = Rbac(self.store)

    async def write(self, plural: str, name: str, namespace: str, obj: dict[str, Any]) -> None:
        kind = {"rolebindings": "RoleBinding", "clusterrolebindings": "ClusterRoleBinding"}.get(plural, "")
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        place, data = Place(f"{plural}.{GROUP}", namespace, name), {"kind": kind, "metadata": metadata, **obj}
        known = self.store.get(place)
        if known is None:
            await self.store.create(place, lambda _: msgspec.json.encode(data))
        else:
            await self.store.update(place, lambda _: msgspec.json.encode(data), known.revision)

    async def delete(self, plural: str, name: str, namespace: str = "") -> None:
        place = Place(f"{plural}.{GROUP}", namespace, name)
        known = self.store.get(place)
        assert known is not None
        await self.store.delete(place, lambda _: known.data, known.revision)

    async def role(self, name: str, *rules: dict[str, Any], namespace: str = "") -> None:
        plural = "roles" if namespace else "clusterroles"
        await self.write(plural, name, namespace, {"rules": list(rules)})

    async def bind(
        self, name: str, role: str, *subjects: dict[str, Any], namespace: str = "", kind: str = "ClusterRole"
    ) -> None:
        plural = "rolebindings" if namespace else "clusterrolebindings"
        ref = {"kind": kind, "name": role, "apiGroup": GROUP}
        await self.write(plural, name, namespace, {"roleRef": ref, "subjects": list(subjects)})


def user(name: str) -> dict[str, Any]:
    return {"kind": "User", "name": name}


async def test_nobody_may_anything_until_a_binding_gives_it_and_the_next_request_knows() -> None:
    roles = Roles()
    assert not roles.rbac.allows(JANE, POD)
    await roles.role("reader", GET)
    await roles.bind("jane-reads", "reader", user("jane"))
    assert roles.rbac.allows(JANE, POD)
    assert roles.rbac.allows(JANE, ANYWHERE)
    assert not roles.rbac.allows(JANE, POD._replace(verb="list"))
    assert not roles.rbac.allows(User("bob"), POD)

    await roles.role("reader", {**GET, "verbs": ["list"]})
    assert not roles.rbac.allows(JANE, POD)
    await roles.role("reader", GET)
    assert roles.rbac.allows(JANE, POD)
    await roles.delete("clusterrolebindings", "jane-reads")
    assert not roles.rbac.allows(JANE, POD)


async def test_a_binding_in_a_namespace_gives_nothing_elsewhere() -> None:
    roles = Roles()
    await roles.role("reader", GET)
    await roles.bind("here", "reader", user("jane"), namespace="shop")
    assert roles.rbac.allows(JANE, POD)
    assert not roles.rbac.allows(JANE, POD._replace(namespace="other"))
    assert not roles.rbac.allows(JANE, ANYWHERE)

    await roles.role("local", {**GET, "verbs": ["list"]}, namespace="shop")
    await roles.bind("local", "local", user("jane"), namespace="shop", kind="Role")
    assert roles.rbac.allows(JANE, POD._replace(verb="list", name=""))


@pytest.mark.parametrize(
    ("subject", "who", "is_meant"),
    [
        (user("jane"), JANE, True),
        (user("devs"), JANE, False),
        ({"kind": "Group", "name": "devs"}, JANE, True),
        ({"kind": "Group", "name": "jane"}, JANE, False),
        (
            {"kind": "ServiceAccount", "name": "robot", "namespace": "a"},
            User("system:serviceaccount:a:robot"),
            True,
        ),
        (
            {"kind": "ServiceAccount", "name": "robot", "namespace": "a"},
            User("system:serviceaccount:b:robot"),
            False,
        ),
        ({"kind": "ServiceAccount", "name": "robot"}, User("system:serviceaccount:shop:robot"), True),
        ({"kind": "Else", "name": "jane"}, JANE, False),
    ],
)
async def test_a_binding_is_meant_for_users_groups_and_service_accounts(
    subject: dict[str, Any], who: User, is_meant: bool
) -> None:
    roles = Roles()
    await roles.role("reader", GET)
    await roles.bind("here", "reader", user("somebody-else"), subject, namespace="shop")
    assert roles.rbac.allows(who, POD) is is_meant
    assert roles.rbac.decide(who, POD).is_allowed is is_meant


async def test_rules_with_names_give_those_alone_and_never_all() -> None:
    roles = Roles()
    await roles.role("one", {**GET, "verbs": ["get", "list", "create"], "resourceNames": ["web"]})
    await roles.role("two", {**GET, "resourceNames": ["db"]})
    await roles.bind("one", "one", user("jane"))
    await roles.bind("two", "two", user("jane"))
    assert roles.rbac.allows(JANE, POD)
    assert roles.rbac.allows(JANE, POD._replace(name="db"))
    assert not roles.rbac.allows(JANE, POD._replace(name="other"))
    assert not roles.rbac.allows(JANE, POD._replace(verb="list", name=""))
    assert not roles.rbac.allows(JANE, POD._replace(verb="create", name=""))
    assert not roles.rbac.allows(JANE, POD._replace(name="*")), "a star in a request is a name"


async def test_paths_are_given_by_the_cluster_alone() -> None:
    roles = Roles()
    rule = {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}
    await roles.role("logs", rule)
    await roles.bind("here", "logs", user("jane"), namespace="shop")
    logs = Attributes("get", path="/logs/a")
    assert not roles.rbac.allows(JANE, logs)
    await roles.bind("all", "logs", user("jane"))
    assert roles.rbac.allows(JANE, logs)
    assert not roles.rbac.allows(JANE, Attributes("post", path="/logs/a"))


async def test_the_masters_may_everything() -> None:
    rbac = Roles().rbac
    chief = User("chief", ("system:masters",))
    assert rbac.allows(chief, POD)
    assert rbac.decide(chief, Attributes("*", path="/")) == (True, "")


async def test_a_decision_says_what_allowed_it_or_which_role_is_not_there() -> None:
    roles = Roles()
    await roles.bind("dangling", "absent", user("jane"), namespace="shop")
    assert roles.rbac.decide(JANE, POD) == (
        False,
        'rbac: RBAC: clusterrole.rbac.authorization.k8s.io "absent" not found',
    )
    await roles.role("reader", GET)
    await roles.bind(
        "here", "reader", {"kind": "ServiceAccount", "name": "x"}, user("jane"), namespace="shop"
    )
    assert roles.rbac.decide(JANE, POD) == (
        True,
        'RBAC: allowed by RoleBinding "here/shop" of ClusterRole "reader" to User "jane"',
    )
    held = roles.rbac.held(JANE, "shop")
    assert len(held.rules) == 1
    assert held.errors == ['clusterrole.rbac.authorization.k8s.io "absent" not found']


async def test_whatever_is_asked_in_whatever_order_the_quick_answer_is_the_thorough_one() -> None:
    roles = Roles()
    await roles.role("a", GET, {**GET, "resources": ["pods/log", "*/scale"], "verbs": ["*"]})
    await roles.role("b", {**GET, "resources": ["secrets"], "resourceNames": ["x"]}, namespace="shop")
    await roles.bind("a", "a", {"kind": "Group", "name": "devs"}, namespace="shop")
    await roles.bind("b", "b", user("jane"), namespace="shop", kind="Role")
    for _ in range(2):
        for who in (JANE, User("jane"), User("bob", ("devs",)), User("nobody")):
            for verb in ("get", "list", "*"):
                for resource in ("pods", "secrets", "*"):
                    for below in ("", "log", "scale"):
                        for namespace in ("", "shop", "other"):
                            for name in ("", "x", "y"):
                                asked = Attributes(verb, "", resource, below, namespace, name)
                                assert (
                                    roles.rbac.allows(who, asked) == roles.rbac.decide(who, asked).is_allowed
                                )


async def test_what_is_asked_once_and_never_again_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rbac, "_MOST_KEPT", 10)
    roles = Roles()
    await roles.role("a", GET, {"verbs": ["get"], "nonResourceURLs": ["*"]})
    await roles.bind("a", "a", user("jane"))
    for number in range(50):
        for name in (f"n{number}", f"n{number}" + "x" * 100_000):
            assert roles.rbac.allows(JANE, POD._replace(namespace=name))
            assert not roles.rbac.allows(JANE, POD._replace(verb="delete", namespace=name))
            assert not roles.rbac.allows(JANE, POD._replace(resource=name))
            assert roles.rbac.allows(JANE, Attributes("get", path=f"/{name}"))
    (grants,) = roles.rbac._users.values()
    kept = [*grants.sources, *("".join(about) for about in grants.names), *(path for _, path in grants.paths)]
    assert len(kept) <= 30
    assert sum(map(len, kept)) < 1_000
