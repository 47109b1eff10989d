"""A way to a real cluster that ends at one namespace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import msgspec
import pytest

from setpoint.api.names import Resource
from setpoint.client.addresses import is_on_this_machine
from setpoint.net.transport import Request, Response, WebSocket
from setpoint.testing.asked import Asked
from setpoint.testing.proof.confined import Bounds, Confined, Told
from setpoint.testing.proof.real_proof import prove_on_cluster

RESOURCES = {
    (each.group, each.plural): each
    for each in (
        Resource("", "v1", "ConfigMap", "configmaps"),
        Resource("", "v1", "Namespace", "namespaces", namespaced=False),
        Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False),
    )
}


class Answer:
    websocket: WebSocket | None = None
    headers: Mapping[str, str] = {}
    status = 200

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def read(self) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body[:40]
        yield self._body[40:]

    async def close(self) -> None:
        pass


class Server:
    """Notes what it is asked, and answers with an object of its namespace."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        metadata = b'{"metadata":{"name":"c","namespace":"proof-1","uid":"u","resourceVersion":"7"}}\n'
        return Answer(
            b'{"type":"ADDED","object":' + metadata[:-1] + b"}\n" if "watch" in request.target else metadata
        )


def ask(
    method: str, target: str, body: object = None, **how: bool
) -> tuple[Server, Bounds, Response, list[Told]]:
    server, bounds, told = Server(), Bounds("default", "proof-1", RESOURCES), list[Told]()
    bounds.compacted = 5
    bounds.is_full = how.pop("is_full", False)

    def tell(asked: Asked, answer: Told) -> None:
        told.append(answer)

    way = Confined(server, bounds, tell, **how)
    data = None if body is None else msgspec.json.encode(body)
    return server, bounds, asyncio.run(_ask(way, Request(method, target, {}, data))), told


async def _ask(way: Confined, request: Request) -> Response:
    return await way(request)


def test_the_namespace_is_another_in_path_and_body_and_the_same_in_the_answer() -> None:
    body = {"metadata": {"name": "c", "namespace": "default"}, "data": {"namespace": "elsewhere"}}
    server, bounds, response, told = ask("POST", "/api/v1/namespaces/default/configmaps", body)
    (asked,) = server.asked
    assert asked.target == "/api/v1/namespaces/proof-1/configmaps"
    assert msgspec.json.decode(asked.body or b"") == {
        "metadata": {"name": "c", "namespace": "proof-1"},
        "data": {"namespace": "elsewhere"},
    }
    assert b'"namespace":"default"' in asyncio.run(response.read())
    assert [(each.uid, each.resource_version) for each in told] == [("u", "7")]
    assert not bounds.strayed


def test_a_list_of_all_namespaces_is_of_this_one() -> None:
    server, *_ = ask("GET", "/api/v1/configmaps?limit=500")
    assert server.asked[0].target == "/api/v1/namespaces/proof-1/configmaps?limit=500"


def test_a_watch_brings_whole_lines_in_the_words_of_who_asks() -> None:
    _, _, response, _ = ask("GET", "/api/v1/configmaps?watch=true&resourceVersion=9")

    async def lines() -> list[bytes]:
        return [chunk async for chunk in response.chunks()]

    (line,) = asyncio.run(lines())
    assert msgspec.json.decode(line)["object"]["metadata"]["namespace"] == "default"


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        ("DELETE", "/api/v1/namespaces/default"),
        ("DELETE", "/api/v1/configmaps"),
        ("PATCH", "/api/v1/namespaces/kube-system/configmaps/c"),
    ],
)
def test_nothing_is_written_outside_of_it(method: str, target: str) -> None:
    server, bounds, response, _ = ask(method, target, {})
    assert response.status == 403
    assert not server.asked
    assert len(bounds.strayed) == 1


def test_reviews_and_reads_of_what_is_elsewhere_pass() -> None:
    for method, target in (
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("GET", "/api/v1/namespaces/kube-system/configmaps/c"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin"),
    ):
        server, bounds, response, _ = ask(method, target, None if method == "GET" else {})
        assert (response.status, server.asked[0].target, bounds.strayed) == (200, target, [])


def test_history_is_forgotten_and_the_disk_full_for_the_operator_alone() -> None:
    watch = "/api/v1/configmaps?watch=true&resourceVersion=4"
    write = "/api/v1/namespaces/default/configmaps"
    assert ask("GET", watch, is_disturbed=True)[2].status == 410
    assert ask("GET", watch.replace("=4", "=5"), is_disturbed=True)[2].status == 200
    assert ask("GET", watch)[2].status == 200
    assert ask("POST", write, {}, is_disturbed=True, is_full=True)[2].status == 500
    assert ask("POST", write, {}, is_full=True)[2].status == 200


@pytest.mark.parametrize(
    ("server", "is_here"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://[::1]:6443", True),
        ("https://localhost", True),
        ("https://192.0.2.1:6443", False),
        ("https://localhost.example.com", False),
        ("https://127.0.0.1.example.com", False),
    ],
)
def test_only_the_loopback_is_this_machine(server: str, is_here: bool) -> None:
    assert is_on_this_machine(server) is is_here


def test_a_cluster_elsewhere_is_not_touched_unless_that_is_said() -> None:
    from setpoint.client.config import Config
    from tests.mutants.operators import marked_before

    with pytest.raises(ValueError, match="say anywhere=True"):
        prove_on_cluster(lambda: marked_before(wrong=False), Config(server="https://192.0.2.1:6443"))
