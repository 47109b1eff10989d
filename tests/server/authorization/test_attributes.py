"""``authorization/attributes.py``: what a request asks for, and the words in which it is refused."""

from __future__ import annotations

import pytest

from setpoint.server.authorization.attributes import Attributes, read_attributes, refusal
from setpoint.server.http.routing import read
from setpoint.server.registry.requests import User

BOB = User("bob")


@pytest.mark.parametrize(
    ("method", "target", "asked"),
    [
        ("GET", "/api/v1/pods", Attributes("list", "", "pods")),
        ("HEAD", "/api/v1/pods", Attributes("list", "", "pods")),
        ("GET", "/api/v1/pods?watch=1", Attributes("watch", "", "pods")),
        ("GET", "/api/v1/pods?watch=false", Attributes("list", "", "pods")),
        ("GET", "/api/v1/namespaces/a/pods/b", Attributes("get", "", "pods", "", "a", "b")),
        ("GET", "/api/v1/namespaces/a/pods/b/log", Attributes("get", "", "pods", "log", "a", "b")),
        ("GET", "/api/v1/namespaces/a/pods/b/proxy/c", Attributes("get", "", "pods", "proxy", "a", "b")),
        (
            "POST",
            "/apis/apps/v1/namespaces/a/deployments",
            Attributes("create", "apps", "deployments", "", "a"),
        ),
        (
            "PUT",
            "/apis/apps/v1/namespaces/a/deployments/b/status",
            Attributes("update", "apps", "deployments", "status", "a", "b"),
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b",
            Attributes("patch", "apps", "deployments", "", "a", "b"),
        ),
        ("DELETE", "/api/v1/nodes/n", Attributes("delete", "", "nodes", "", "", "n")),
        ("DELETE", "/api/v1/nodes", Attributes("deletecollection", "", "nodes")),
        ("OPTIONS", "/api/v1/nodes", Attributes("", "", "nodes")),
        # A namespace lies in itself.
        ("GET", "/api/v1/namespaces", Attributes("list", "", "namespaces")),
        ("GET", "/api/v1/namespaces/a", Attributes("get", "", "namespaces", "", "a", "a")),
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            Attributes("update", "", "namespaces", "finalize", "a", "a"),
        ),
        # One that is selected by its name is asked for alone.
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx", Attributes("list", "", "pods", name="x")),
        (
            "GET",
            "/api/v1/pods?fieldSelector=a%3Db,metadata.name%3D%3Dx&watch",
            Attributes("watch", "", "pods", name="x"),
        ),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%21%3Dx", Attributes("list", "", "pods")),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3D..", Attributes("list", "", "pods")),
        ("GET", "/api/v1/pods?fieldSelector=a!%3Db\\,metadata.name%3Dx", Attributes("list", "", "pods")),
        ("GET", "/api/v1/pods?fieldSelector=a,metadata.name%3Dx", Attributes("list", "", "pods")),
        ("GET", "/api/v1/pods/y?fieldSelector=metadata.name%3Dx", Attributes("get", "", "pods", name="y")),
        # Verbs in the path.
        ("GET", "/api/v1/watch/namespaces/a/pods/b", Attributes("watch", "", "pods", "", "a", "b")),
        ("GET", "/api/v1/watch/pods", Attributes("watch", "", "pods")),
        # Paths that are no resources.
        ("GET", "/", Attributes("get", path="/")),
        ("GET", "/api", Attributes("get", path="/api")),
        ("GET", "/api/v1", Attributes("get", path="/api/v1")),
        ("GET", "/apis/apps/v1", Attributes("get", path="/apis/apps/v1")),
        ("POST", "/metrics", Attributes("post", path="/metrics")),
        ("GET", "/apiv1/a/b/c", Attributes("get", path="/apiv1/a/b/c")),
    ],
)
def test_a_request_is_read_as_rules_are_written(method: str, target: str, asked: Attributes) -> None:
    path, query = read(target)
    assert read_attributes(method, path, query) == asked


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
