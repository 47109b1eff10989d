"""The rules of ``client/discovery.py``: which kinds a server has."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from setpoint.api.names import GroupVersionKind, Resource
from setpoint.client.discovery import Discovery
from setpoint.errors import BadAnswer, ServiceUnavailable, UnknownKind

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


def aggregated(group: str, version: str, *resources: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": group}, "versions": [{"version": version, "resources": list(resources)}]}


AGGREGATED: dict[str, Any] = {
    "/api": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            aggregated(
                "",
                "v1",
                {
                    "resource": "pods",
                    "responseKind": {"group": "", "version": "", "kind": "Pod"},
                    "scope": "Namespaced",
                    "singularResource": "pod",
                    "verbs": ["get", "list"],
                    "shortNames": ["po"],
                    "categories": ["all"],
                    "subresources": [{"subresource": "log", "responseKind": None, "verbs": ["get"]}],
                },
                {"resource": "nodes", "responseKind": {"kind": "Node"}, "scope": "Cluster", "verbs": None},
            )
        ],
    },
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            aggregated("apps", "v1", {"resource": "deployments", "responseKind": {"kind": "Deployment"}})
        ],
    },
}

LEGACY: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {
                "name": "pods",
                "singularName": "pod",
                "namespaced": True,
                "kind": "Pod",
                "verbs": ["get", "list"],
                "shortNames": ["po"],
                "categories": ["all"],
            },
            {"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
            {"name": "nodes", "singularName": "", "namespaced": False, "kind": "Node", "verbs": None},
        ],
    },
    "/apis": {
        "kind": "APIGroupList",
        "groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1"}, {"groupVersion": "apps/v0"}]}],
    },
    "/apis/apps/v1": {
        "groupVersion": "apps/v1",
        "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}],
    },
}


class Server:
    """Answers from a table of documents; a path that is not in it is a group whose own server is down."""

    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents = documents
        self.asked: list[str] = []

    async def fetch(self, path: str, _accept: str) -> bytes:
        self.asked.append(path)
        await asyncio.sleep(0)
        if path not in self.documents:
            raise ServiceUnavailable(f"get {path}", "down")
        return json.dumps(self.documents[path]).encode()


@pytest.mark.parametrize("documents", [AGGREGATED, LEGACY], ids=["aggregated", "legacy"])
async def test_both_forms_of_discovery_give_the_same_resources(documents: dict[str, Any]) -> None:
    found = await Discovery(Server(documents).fetch).resources()
    assert found == [
        Resource("", "v1", "Pod", "pods", True, "pod", ("po",), ("all",), ("get", "list"), ("log",)),
        Resource("", "v1", "Node", "nodes", namespaced=False),
        Resource("apps", "v1", "Deployment", "deployments"),
    ]


async def test_a_server_is_asked_once_and_remembered() -> None:
    server = Server(AGGREGATED)
    discovery = Discovery(server.fetch)
    assert (await discovery.find(DEPLOYMENT)).plural == "deployments"
    await discovery.find(GroupVersionKind("", "v1", "Node"))
    assert server.asked == ["/api", "/apis"]


async def test_an_unknown_kind_makes_it_ask_again_once() -> None:
    server = Server(dict(AGGREGATED))
    discovery = Discovery(server.fetch)
    await discovery.resources()
    webapp = GroupVersionKind("demo.setpoint.dev", "v1", "WebApp")
    with pytest.raises(UnknownKind, match="is its CustomResourceDefinition installed"):
        await discovery.find(webapp)
    assert server.asked.count("/apis") == 2

    crd = aggregated("demo.setpoint.dev", "v1", {"resource": "webapps", "responseKind": {"kind": "WebApp"}})
    server.documents["/apis"] = {"kind": "APIGroupDiscoveryList", "items": [crd]}
    assert (await discovery.find(webapp)).plural == "webapps"
    assert server.asked.count("/apis") == 3


async def test_an_unknown_version_of_a_known_kind_says_which_there_are() -> None:
    with pytest.raises(UnknownKind, match="the server has Deployment only in apps/v1"):
        await Discovery(Server(AGGREGATED).fetch).find(GroupVersionKind("apps", "v1beta1", "Deployment"))


async def test_callers_at_the_same_time_share_one_question() -> None:
    server = Server(AGGREGATED)
    discovery = Discovery(server.fetch)
    await asyncio.gather(*(discovery.find(DEPLOYMENT) for _ in range(10)))
    assert server.asked == ["/api", "/apis"]


async def test_one_caller_giving_up_does_not_take_the_answer_from_the_others() -> None:
    discovery = Discovery(Server(AGGREGATED).fetch)
    hasty, patient = (
        asyncio.create_task(discovery.find(DEPLOYMENT)),
        asyncio.create_task(discovery.find(DEPLOYMENT)),
    )
    await asyncio.sleep(0)
    hasty.cancel()
    assert (await patient).plural == "deployments"


async def test_a_failed_question_is_asked_anew_by_the_next_caller() -> None:
    server = Server({})
    discovery = Discovery(server.fetch)
    with pytest.raises(ServiceUnavailable):
        await discovery.find(DEPLOYMENT)
    server.documents = AGGREGATED
    assert (await discovery.find(DEPLOYMENT)).plural == "deployments"


async def test_rubbish_in_place_of_discovery_is_said_to_be_that() -> None:
    with pytest.raises(BadAnswer, match="get /api: not a discovery document"):
        await Discovery(Server({"/api": ["rubbish"]}).fetch).resources()
