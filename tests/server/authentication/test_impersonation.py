"""``authentication/impersonation.py``: who may be taken for whom; its words are in tests/conformance."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from setpoint.server.authentication.impersonation import Impersonation
from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.authorizer import Decision, Held
from setpoint.server.authorization.rules import Rule
from setpoint.server.registry.requests import User
from setpoint.server.statuses import StatusError

LIST = Attributes("list", "", "pods")
ROBOT = User("system:serviceaccount:shop:robot", extra={"authentication.kubernetes.io/node-name": ("n1",)})


class Allows:
    """Allows what is listed as ``verb resource name``, and remembers what it was asked."""

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed
        self.asked: list[str] = []

    def allows(self, user: User, asked: Attributes) -> bool:  # noqa: ARG002
        below = f"/{asked.subresource}" if asked.subresource else ""
        said = f"{asked.verb} {asked.resource}{below} {asked.name}".strip()
        self.asked.append(said)
        return said in self._allowed

    def decide(self, user: User, asked: Attributes) -> Decision:  # noqa: ARG002
        return Decision(False)

    def held(self, user: User, namespace: str) -> Held:  # noqa: ARG002
        return Held(())

    def rules_of(self, kind: str, name: str, namespace: str) -> Sequence[Rule] | None:  # noqa: ARG002
        return None


def acting(allows: Allows, other: User, sender: User = ROBOT) -> User:
    return Impersonation(allows).user(sender, other, LIST)


def test_each_thing_that_is_wished_for_must_be_allowed() -> None:
    eve = User("eve", ("a", "b"), "7", {"scopes": ("x", "y")})
    needed = [
        "impersonate users eve",
        "impersonate uids 7",
        "impersonate groups a",
        "impersonate groups b",
        "impersonate userextras/scopes x",
        "impersonate userextras/scopes y",
    ]
    assert acting(Allows(*needed), eve) == User("eve", ("a", "b", "system:authenticated"), "7", eve.extra)
    for missing in needed:
        with pytest.raises(StatusError) as refused:
            acting(Allows(*(one for one in needed if one != missing)), eve)
        assert refused.value.code == 403


def test_the_constrained_way_needs_the_right_to_do_it_as_another_too() -> None:
    needed = ["impersonate-on:user-info:list pods", "impersonate:user-info users ann"]
    assert acting(Allows(*needed), User("ann")).name == "ann"
    for missing in needed:
        with pytest.raises(StatusError):
            acting(Allows(*(one for one in needed if one != missing)), User("ann"))
    with pytest.raises(StatusError):
        acting(
            Allows(*needed, "impersonate:user-info groups system:masters"), User("ann", ("system:masters",))
        )


@pytest.mark.parametrize(
    ("name", "needed", "groups"),
    [
        (
            "system:serviceaccount:a:b",
            ["impersonate-on:serviceaccount:list pods", "impersonate:serviceaccount serviceaccounts b"],
            ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"),
        ),
        (
            "system:node:n2",
            ["impersonate-on:arbitrary-node:list pods", "impersonate:arbitrary-node nodes n2"],
            ("system:nodes", "system:authenticated"),
        ),
        (
            "system:node:n1",
            ["impersonate-on:associated-node:list pods", "impersonate:associated-node nodes *"],
            ("system:nodes", "system:authenticated"),
        ),
        (
            "system:serviceaccount:a:b",
            ["impersonate serviceaccounts b"],
            ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"),
        ),
    ],
)
def test_accounts_and_nodes_have_ways_of_their_own_and_the_groups_that_they_always_have(
    name: str, needed: list[str], groups: tuple[str, ...]
) -> None:
    assert acting(Allows(*needed), User(name)).groups == groups
    for missing in needed:
        with pytest.raises(StatusError):
            acting(Allows(*(one for one in needed if one != missing)), User(name))


def test_only_what_runs_on_a_node_is_associated_with_it() -> None:
    allows = Allows("impersonate-on:associated-node:list pods", "impersonate:associated-node nodes *")
    with pytest.raises(StatusError):
        acting(allows, User("system:node:n2"))
    with pytest.raises(StatusError):
        acting(allows, User("system:node:n1"), User("jane", extra=ROBOT.extra))


def test_anonymous_is_not_authenticated_and_who_says_so_is_not_either() -> None:
    allows = Allows(
        "impersonate users system:anonymous",
        "impersonate users x",
        "impersonate groups system:unauthenticated",
    )
    assert acting(allows, User("system:anonymous")).groups == ("system:unauthenticated",)
    assert acting(allows, User("x", ("system:unauthenticated",))).groups == ("system:unauthenticated",)


def test_the_masters_are_not_asked_about() -> None:
    allows = Allows()
    assert acting(allows, User("x"), User("chief", ("system:masters",))).name == "x"
    assert not allows.asked
