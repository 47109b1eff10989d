"""``http/request_info.py``: what a request asks for, as Kubernetes' RequestInfoFactory reads it."""

from __future__ import annotations

import pytest

from setpoint.server.authorization.attributes import Attributes
from setpoint.server.http.request_info import is_watch, read, request_info


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
        ("GET", "/api/v1/watch/namespaces/a", Attributes("watch", "", "namespaces", "", "a", "a")),
        ("DELETE", "/apis/g/v1/proxy/widgets", Attributes("proxy", "g", "widgets")),
        ("GET", "/apis/g/v1/proxy/widgets/w/x", Attributes("proxy", "g", "widgets", name="w")),
        ("GET", "/apis/g/v1/namespaces/a/proxy/b", Attributes("get", "g", "proxy", "", "a", "b")),
        ("GET", "/apis/g/v1/namespaces/a/status", Attributes("get", "g", "namespaces", "status", "a", "a")),
        ("GET", "/apis/g/v1/namespaces/a/status/b", Attributes("get", "g", "namespaces", "status", "a", "a")),
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
    assert request_info(method, read(target)).attributes == asked


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("a=1&a=2&b", {"a": "1", "b": ""}),
        ("a=x%20y+z&%61b=c", {"a": "x y z", "ab": "c"}),
        ("a;b&c=d", {"c": "d"}),
        ("", {}),
        ("&&a=%zz", {"a": "%zz"}),
    ],
)
def test_of_each_parameter_the_first_value_counts(query: str, values: dict[str, str]) -> None:
    assert read(f"/?{query}").query == values


@pytest.mark.parametrize(
    ("query", "expected"), [({}, False), ({"watch": "0"}, False), ({"watch": "no"}, True)]
)
def test_watch_is_meant_unless_it_is_false(query: dict[str, str], expected: bool) -> None:
    assert is_watch(query) is expected
