"""What an authorizer is asked: may this user do that, which rules has it.  And the one that says yes to all.

``rbac.py`` has the other.  Used by ``http/app.py``, and by the registry for what depends on it: reviews, and
who may write which role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.rules import EVERYTHING, Rule
from setpoint.server.registry.requests import User

MASTERS: Final = "system:masters"  # who is in it may do everything, whatever roles say


class Decision(NamedTuple):
    """Whether it may, and why: what allowed it, or what went wrong while looking."""

    is_allowed: bool
    reason: str = ""


class Held(NamedTuple):
    """The rules that a user has, and what went wrong while looking for them."""

    rules: Sequence[Rule]
    errors: Sequence[str] = ()


class Authorizer(Protocol):
    """Judges users."""

    def allows(self, user: User, asked: Attributes) -> bool:
        """The decision alone, quickly."""

    def decide(self, user: User, asked: Attributes) -> Decision:
        """The decision with its reason."""

    def held(self, user: User, namespace: str) -> Held:
        """What it may do in a namespace, cluster-wide rights included; "" for those alone."""

    def rules_of(self, kind: str, name: str, namespace: str) -> Sequence[Rule] | None:
        """Those of a Role or a ClusterRole; None where there is none of that name."""


class AlwaysAllow:
    """Everybody may do everything."""

    def __repr__(self) -> str:
        return "<AlwaysAllow>"

    def allows(self, user: User, asked: Attributes) -> bool:  # noqa: ARG002
        return True

    def decide(self, user: User, asked: Attributes) -> Decision:  # noqa: ARG002
        return Decision(True)

    def held(self, user: User, namespace: str) -> Held:  # noqa: ARG002
        return Held(EVERYTHING)

    def rules_of(self, kind: str, name: str, namespace: str) -> Sequence[Rule] | None:  # noqa: ARG002
        return EVERYTHING
