"""What paths and methods mean: ``http/routing.py``."""

from __future__ import annotations

import pytest

from setpoint.server.http.routing import NoPage, Route, is_watch, read, route
from setpoint.server.registry import facts
from setpoint.server.registry.resources import Subresource
from setpoint.server.registry.served import Resources
from setpoint.server.statuses import StatusError
from tests.server.http.resources import resource


def served() -> Resources:
    builtin = [
        resource(
            one.group,
            one.version,
            one.plural,
            one.kind,
            namespaced=one.namespaced,
            verbs=one.verbs,
            subresources=one.subresources,
        )
        for one in facts.resources()
    ]
    resources = Resources(builtin)
    status = Subresource("status", "Foo", ("get", "patch", "update"))
    foo = resource("example.com", "v1", "foos", "Foo", subresources=(status,), is_custom=True)
    resources.set_custom("foos.example.com", [foo])
    return resources


RBAC = "/apis/rbac.authorization.k8s.io/v1"
RESOURCES = served()


def asked(method: str, target: str) -> tuple[str, str, str, str, str]:
    found, _ = route(method, read(target), RESOURCES)
    return found.verb, found.resource.plural, found.namespace, found.name, found.subresource


@pytest.mark.parametrize(
    ("method", "target", "means"),
    [
        ("GET", "/api/v1/pods", ("list", "pods", "", "", "")),
        ("GET", "/api/v1/pods/", ("list", "pods", "", "", "")),
        ("GET", "/api/v1/namespaces/n/pods", ("list", "pods", "n", "", "")),
        ("GET", "/api/v1/namespaces/n/pods?watch=1", ("watch", "pods", "n", "", "")),
        ("GET", "/api/v1/namespaces/n/pods?watch", ("watch", "pods", "n", "", "")),
        ("GET", "/api/v1/namespaces/n/pods?watch=False", ("list", "pods", "n", "", "")),
        ("GET", "/api/v1/namespaces/n/pods/p?watch=1", ("get", "pods", "n", "p", "")),
        ("POST", "/api/v1/namespaces/n/pods", ("create", "pods", "n", "", "")),
        ("DELETE", "/api/v1/namespaces/n/pods", ("deletecollection", "pods", "n", "", "")),
        ("PUT", "/api/v1/namespaces/n/pods/p", ("update", "pods", "n", "p", "")),
        ("PATCH", "/api/v1/namespaces/n/pods/p/status", ("patch", "pods", "n", "p", "status")),
        ("POST", "/api/v1/namespaces/n/pods/p/eviction", ("create", "pods", "n", "p", "eviction")),
        ("GET", "/api/v1/namespaces", ("list", "namespaces", "", "", "")),
        ("GET", "/api/v1/namespaces/n", ("get", "namespaces", "", "n", "")),
        ("GET", "/api/v1/namespaces/n/", ("get", "namespaces", "", "n", "")),
        ("PUT", "/api/v1/namespaces/n/finalize", ("update", "namespaces", "", "n", "finalize")),
        ("GET", "/api/v1/namespaces/n/status", ("get", "namespaces", "", "n", "status")),
        ("GET", "/apis/apps/v1/deployments", ("list", "deployments", "", "", "")),
        ("GET", f"{RBAC}/clusterroles/system%3Anode", ("get", "clusterroles", "", "system:node", "")),
        ("GET", "/api/v1/watch/pods", ("watch", "pods", "", "", "")),
        ("GET", "/api/v1/watch/namespaces/n/pods", ("watch", "pods", "n", "", "")),
        ("GET", "/api/v1/watch/namespaces", ("watch", "namespaces", "", "", "")),
        ("GET", "/apis/example.com/v1/namespaces/n/foos/f", ("get", "foos", "n", "f", "")),
        ("HEAD", "/apis/example.com/v1/namespaces/n/foos/f", ("get", "foos", "n", "f", "")),
    ],
)
def test_a_path_and_a_method_mean_a_verb_and_a_place(
    method: str, target: str, means: tuple[str, ...]
) -> None:
    assert asked(method, target) == means


def test_the_old_watch_of_one_object_selects_it() -> None:
    for name, selector in (("p", "metadata.name=p"), ("a%5C", "metadata.name=a\\\\")):
        found, query = route("GET", read(f"/api/v1/watch/namespaces/n/pods/{name}"), RESOURCES)
        assert (found.verb, found.name) == ("watch", "")
        assert query["fieldSelector"] == selector


def test_the_old_watch_of_one_object_is_of_no_other_whatever_its_selector_says() -> None:
    for selector in ("a=b,metadata.name=p", "metadata.name==p"):
        _, query = route(
            "GET", read(f"/api/v1/watch/namespaces/n/pods/p?fieldSelector={selector}"), RESOURCES
        )
        assert query["fieldSelector"] == selector
    for selector in ("a=b", "metadata.name=q", "metadata.name!=p", "a!=b\\", "a!=b\\,metadata.name=p", "a"):
        with pytest.raises(StatusError) as refused:
            route("GET", read(f"/api/v1/watch/namespaces/n/pods/p?fieldSelector={selector}"), RESOURCES)
        assert refused.value.code == 400, selector


@pytest.mark.parametrize(
    ("method", "target", "code"),
    [
        ("GET", "/api/v1/foos", 404),
        ("GET", "/api/v2/pods", 404),
        ("GET", "/apis/apps/v9/foos", 404),
        ("GET", "/api/v1//pods", 404),
        ("GET", "/api/v1/pods/p", 404),
        ("GET", "/api/v1/namespaces//pods", 404),
        ("GET", "/api/v1/namespaces/n/nodes", 404),
        ("GET", "/api/v1/namespaces/n/nodes/x", 404),
        ("GET", "/api/v1/namespaces/n/../kube-system", 404),
        ("GET", "/api/v1/namespaces/n/pods/p/nope", 404),
        ("GET", "/api/v1/namespaces/n/pods/p/status/more", 404),
        ("GET", "/api/v1/bindings", 404),
        ("GET", "/api/v1/watch/pods/p", 404),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews/x", 404),
        ("GET", "/apis/example.com/v1/namespaces/n/foos/f/nope", 404),
        ("GET", "/api/v1/namespaces/n%2Fpods", 404),
        ("GET", "/api/v1/namespaces/n/pods/a%2fb", 404),
        ("GET", "/api/v1/namespaces/n/pods/..", 400),
        ("GET", "/api/v1/namespaces/n/pods/%2e%2E", 400),
        ("GET", "/api/v1/namespaces/n/pods/.", 400),
        ("GET", "/api/v1/namespaces/n/pods/a%25b", 400),
        ("GET", "/api/v1/namespaces/n/pods/a%00b", 400),
        ("GET", "/api/v1/namespaces/n/pods/%zz", 400),
        ("POST", "/api/v1/namespaces/n/pods/p", 405),
        ("POST", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("PUT", "/api/v1/namespaces/n/pods", 405),
        ("HEAD", "/api/v1/namespaces/n/pods", 405),
        ("OPTIONS", "/api/v1/namespaces/n/pods", 405),
        ("FOO", "/api/v1/namespaces/n/pods", 405),
        ("GET", "/api/v1/namespaces/n/bindings", 405),
        ("DELETE", "/api/v1/namespaces/n/pods/p/status", 405),
        ("POST", "/api/v1/watch/pods", 405),
        ("DELETE", "/apis/example.com/v1/namespaces/n/foos/f/status", 405),
    ],
)
def test_what_is_not_there_is_refused_with_a_status(method: str, target: str, code: int) -> None:
    with pytest.raises(StatusError) as refused:
        asked(method, target)
    assert refused.value.code == code
    assert not isinstance(refused.value, NoPage)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/apis/nope.example.com/v1/foos"),
        ("GET", "/apis/example.com/v9/foos"),
        ("GET", "/apis/example.com/v1/bars"),
        ("GET", "/apis/example.com/v1/foos/f"),
        ("POST", "/apis/example.com/v1/foos"),
    ],
)
def test_of_a_group_that_is_not_built_in_nothing_is_said_but_that_there_is_no_page(
    method: str, target: str
) -> None:
    with pytest.raises(NoPage):
        asked(method, target)


def test_a_custom_resource_is_named_where_a_method_is_not_allowed() -> None:
    with pytest.raises(StatusError) as refused:
        asked("DELETE", "/apis/example.com/v1/namespaces/n/foos/f/status")
    assert refused.value.message == 'delete is not supported on resources of kind "foos.example.com"'
    assert refused.value.details == {"group": "example.com", "kind": "foos"}


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


def test_a_route_says_nothing_of_what_is_not_asked() -> None:
    assert Route("list", RESOURCES.all()[0]).name == ""
