"""``authorization/attributes.py``: what a request asks for, and the words in which it is refused."""

from __future__ import annotations

from setpoint.server.authorization.attributes import Attributes, refusal
from setpoint.server.registry.requests import User

BOB = User("bob")


def test_a_refusal_names_who_cannot_do_what_and_where() -> None:
    refused = refusal(BOB, Attributes("patch", "apps", "deployments", "status", "shop", "web"), "why")

    assert refused.message == (
        'deployments.apps "web" is forbidden: User "bob" cannot patch resource "deployments/status" in API '
        'group "apps" in the namespace "shop": why'
    )
    assert refused.details == {"name": "web", "group": "apps", "kind": "deployments"}
    assert (refused.code, refused.reason) == (403, "Forbidden")


def test_a_refusal_of_a_path_is_no_html() -> None:
    refused = refusal(User("<b>"), Attributes("get", path="/a&b"))
    assert refused.message == 'forbidden: User "&lt;b&gt;" cannot get path "/a&amp;b"'
    assert refused.details == {}
