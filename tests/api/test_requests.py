"""The rules of ``api/requests.py``: what is sent for a verb."""

from __future__ import annotations

import json

import pytest

from setpoint.api.names import GroupVersionKind, Key, Resource
from setpoint.api.requests import Call, delete_options, describe, is_secretive, path_of, with_query

PODS = Resource("", "v1", "Pod", "pods")
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (path_of(PODS), "/api/v1/pods"),
        (path_of(PODS, "shop"), "/api/v1/namespaces/shop/pods"),
        (path_of(PODS, "shop", "web"), "/api/v1/namespaces/shop/pods/web"),
        (path_of(PODS, "shop", "web", "log"), "/api/v1/namespaces/shop/pods/web/log"),
        (path_of(NODES, "", "n1"), "/api/v1/nodes/n1"),
        (path_of(DEPLOYMENTS, "shop", "web"), "/apis/apps/v1/namespaces/shop/deployments/web"),
        (path_of(NODES, "", "system:node:é"), "/api/v1/nodes/system:node:%C3%A9"),
    ],
)
def test_a_path_names_the_resource_the_object_and_its_part(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../secrets/x", "a%2fb"])
def test_a_name_that_would_change_the_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        path_of(PODS, "shop", name)
    with pytest.raises(ValueError, match="cannot be the namespace"):
        path_of(PODS, name, "web")


def test_a_query_leaves_out_what_is_not_said_and_escapes_the_rest() -> None:
    assert with_query("/x", {"a": None, "b": ""}) == "/x"
    assert (
        with_query("/x", {"watch": True, "l": "a in (b,c)&d", "n": 5})
        == "/x?watch=true&l=a%20in%20%28b%2Cc%29%26d&n=5"
    )


def test_an_error_begins_with_what_was_done_to_which_object() -> None:
    assert describe("update", DEPLOYMENTS, Key("shop", "web")) == "update apps/v1 Deployment shop/web"
    assert describe("get", PODS, Key("shop", "web"), "log") == "get v1 Pod/log shop/web"
    assert describe("list", NODES, Key("", "")) == "list v1 Node"
    assert describe("list", PODS, Key("shop", "")) == "list v1 Pod in shop"


def test_a_call_says_what_it_does_in_its_own_words_or_by_its_resource() -> None:
    assert Call("get", "GET", "/version", "get /version").doing == "get /version"
    assert Call("get", "GET", "/x", resource=PODS, key=Key("shop", "web")).doing == "get v1 Pod shop/web"
    assert Call("get", "GET", "/x", "read its log", resource=PODS).doing == "read its log"


def test_secrets_and_tokens_are_secretive() -> None:
    assert is_secretive(Resource("", "v1", "Secret", "secrets"))
    assert is_secretive(Resource("", "v1", "ServiceAccount", "serviceaccounts"), "token")
    assert not is_secretive(PODS)
    assert Call("get", "GET", "/x", resource=Resource("", "v1", "Secret", "secrets")).is_secretive
    assert not Call("get", "GET", "/version").is_secretive
    assert not is_secretive(Resource("vault.example.com", "v1", "Secret", "secrets")), "someone else's kind"


def test_delete_options_say_only_what_was_asked() -> None:
    assert delete_options() is None
    said = json.loads(delete_options(propagation="Foreground", grace_period=0, uid="u", dry_run=True) or b"")
    assert said == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
        "dryRun": ["All"],
    }


def test_a_kind_is_read_from_an_objects_own_words() -> None:
    assert GroupVersionKind.of("apps/v1", "Deployment") == GroupVersionKind("apps", "v1", "Deployment")
    assert GroupVersionKind.of("v1", "Pod").api_version == "v1"
    for api_version, kind in [("", "Pod"), ("v1", ""), ("/v1", "Pod"), ("a/b/c", "Pod"), ("apps/", "X")]:
        with pytest.raises(ValueError, match="name no kind"):
            GroupVersionKind.of(api_version, kind)
