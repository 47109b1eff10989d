"""What paths and methods mean: ``http/routing.py``."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from setpoint.server.authorization.attributes import Attributes
from setpoint.server.http.request_info import read, request_info
from setpoint.server.http.routing import NoPage, Route, route
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


def routed(method: str, target: str, resources: Resources = RESOURCES) -> tuple[Route, Mapping[str, str]]:
    return route(request_info(method, read(target)), resources)


def asked(method: str, target: str) -> tuple[str, str, str, str, str]:
    found, _ = routed(method, target)
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
        found, query = routed("GET", f"/api/v1/watch/namespaces/n/pods/{name}")
        assert (found.verb, found.name) == ("watch", "")
        assert query["fieldSelector"] == selector


def test_the_old_watch_of_one_object_is_of_no_other_whatever_its_selector_says() -> None:
    for selector in ("a=b,metadata.name=p", "metadata.name==p"):
        _, query = routed("GET", f"/api/v1/watch/namespaces/n/pods/p?fieldSelector={selector}")
        assert query["fieldSelector"] == selector
    for selector in ("a=b", "metadata.name=q", "metadata.name!=p", "a!=b\\", "a!=b\\,metadata.name=p", "a"):
        with pytest.raises(StatusError) as refused:
            routed("GET", f"/api/v1/watch/namespaces/n/pods/p?fieldSelector={selector}")
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
        ("GET", "/apis//v1/secrets"),
        ("GET", "/apis//v1/namespaces/n/secrets/s"),
        ("GET", "/apis/example.com//foos"),
        ("GET", "/apis/example.com/v1//foos"),
        ("GET", "/apis/example.com/v1/watch"),
        ("GET", "/apis/example.com/v1/proxy"),
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


def test_a_route_says_nothing_of_what_is_not_asked() -> None:
    assert Route("list", RESOURCES.all()[0]).name == ""


# ── What is authorized is what is served ────────────────────────────────────────────────────────────

# Names that mean something in a path, or are the beginning of what does.
WORDS = ("proxy", "watch", "status", "finalize", "namespaces", "scale", "pods", "widgets", "secrets", "log")


def confusable() -> Resources:
    """The built-in kinds, and custom ones whose plurals are words of the path, in both scopes."""
    resources = served()
    status = Subresource("status", "X", ("get", "patch", "update"))
    for scope in (True, False):
        group = "in.example.com" if scope else "all.example.com"
        for plural in WORDS:
            made = resource(
                group, "v1", plural, "X", namespaced=scope, subresources=(status,), is_custom=True
            )
            resources.set_custom(f"{plural}.{group}", [made])
    return resources


CONFUSABLE = confusable()
ALL = [one for one in CONFUSABLE.all() if one.is_custom or one.plural in WORDS]
SEGMENTS = (
    *(
        *WORDS,
        "api",
        "apis",
        "v1",
        "in.example.com",
        "all.example.com",
        "a",
        "n",
        "nodes",
        "exec",
        "system:x",
    ),
    *("", ".", "..", "%2e%2e", "%2E", "a%2Fb", "a%25", "%70roxy", "n%C3%A9", "a%00", "%", " "),
)
QUERIES = (
    *("", "", "?watch", "?watch=false", "?watch=1&watch=0", "?limit=1", "?fieldSelector=metadata.name%3Da"),
    *("?fieldSelector=metadata.name!%3Da", "?fieldSelector=a%3Db&fieldSelector=metadata.name%3Da"),
)
METHODS = ("GET", "GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "get")


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str]:
    """A documented path of some resource, with up to two segments added, replaced or dropped."""
    one = draw(st.sampled_from(ALL))
    path = ["apis", one.group, one.version] if one.group else ["api", one.version]
    path += draw(st.sampled_from(([], [], ["watch"], ["proxy"])))
    if (draw(st.integers(0, 3)) > 0) == one.namespaced:
        path += ["namespaces", "n"]
    path += [one.plural, *draw(st.sampled_from(([], ["a"], ["a", "status"], ["n", "proxy", "x"])))]
    for _ in range(draw(st.sampled_from((0, 1, 2)))):
        at, width = draw(st.integers(0, len(path))), draw(st.sampled_from((0, 1)))
        path[at : at + width] = draw(st.sampled_from(([], *([each] for each in SEGMENTS))))
    end = draw(st.sampled_from(("", "", "/", "//")))
    return draw(st.sampled_from(METHODS)), f"/{'/'.join(path)}{end}{draw(st.sampled_from(QUERIES))}"


def paths_of(found: Route, query: Mapping[str, str]) -> list[str]:
    """Every path that may lead there: the one that Kubernetes documents, and the older one of a watch."""
    one = found.resource
    root = f"/apis/{one.group}/{one.version}" if one.group else f"/api/{one.version}"
    within = f"/namespaces/{found.namespace}" if found.namespace else ""
    ends = [part for part in (one.plural, found.name, found.subresource, found.below) if part]
    paths = [f"{root}{within}/{'/'.join(ends)}"]
    if found.verb == "watch":
        paths.append(f"{root}/watch{within}/{one.plural}")
        if query.get("fieldSelector", "").startswith("metadata.name="):
            name = query["fieldSelector"].removeprefix("metadata.name=")
            paths.append(f"{root}/watch{within}/{one.plural}/{name}")
    return paths


@settings(max_examples=500)
@given(requests())
@example(("GET", "/apis/all.example.com/v1/proxy/widgets"))
@example(("DELETE", "/apis/all.example.com/v1/proxy/widgets"))
@example(("GET", "/apis/in.example.com/v1/namespaces/n/status"))
@example(("GET", "/apis//v1/secrets"))
@example(("GET", "/apis/in.example.com/v1/namespaces/a"))
@example(("GET", "/api/v1/namespaces/n/namespaces"))
def test_what_is_authorized_is_what_is_served(request: tuple[str, str]) -> None:
    event(check_request(*request))


def check_request(method: str, target: str) -> str:
    """What became of it; fails where something else is served than is authorized.  Also for ``make fuzz``."""
    try:
        info = request_info(method, read(target))
        if not info.is_resource:
            return "not a resource"
        found, narrowed = route(info, CONFUSABLE)
    except StatusError as refused:
        return f"refused with {refused.code}"
    check_same(info.attributes, found, narrowed)
    # Nothing is reached by an alias: the decoded path, without one slash at its end, leads there alone.
    path = unquote(target.partition("?")[0])
    assert path.removesuffix("/") in paths_of(found, narrowed), target
    return f"served: {found.verb}"


def check_same(allowed: Attributes, found: Route, narrowed: Mapping[str, str]) -> None:
    one = found.resource
    assert (allowed.group, allowed.resource, allowed.subresource) == (
        one.group,
        one.plural,
        found.subresource,
    )
    assert found.verb in (allowed.verb, "connect")
    assert found.verb != "connect" or one.subresource(found.subresource) is not None
    if found.name:
        assert allowed.name == found.name
    elif allowed.name:  # authorized for one object, so a list or watch shows no other
        assert narrowed["fieldSelector"] == f"metadata.name={allowed.name}"
    if (one.group, one.plural) == ("", "namespaces"):
        assert allowed.namespace in ("", allowed.name)
    else:
        assert allowed.namespace == found.namespace
    assert bool(found.namespace) <= one.namespaced
