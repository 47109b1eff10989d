"""What is asked for when a log is, as kube-apiserver judges it, and what it says where it has none."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from setpoint.api.logs import LogPart
from setpoint.clock import ManualClock
from setpoint.server.server import ApiServer
from tests.server.http.asking import Asking, Got

PODS = "/api/v1/namespaces/default/pods"
NOW = datetime(2030, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.virtual_time


class Given:
    """Logs that say what was asked of them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, LogPart]] = []

    async def read(self, pod: bytes, container: str, part: LogPart) -> AsyncGenerator[bytes, None]:
        assert b'"name":"one"' in pod
        self.asked.append((container, part))
        if part.previous:
            raise ValueError(f'previous terminated container "{container}" in pod "one" not found')

        async def pieces() -> AsyncGenerator[bytes, None]:
            yield b"hello\n"
            yield b"world\n"

        return pieces()


def pod(name: str, node: str = "", containers: str = "c", init: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": each, "image": "i"} for each in containers],
        "initContainers": [{"name": each, "image": "i"} for each in init],
    }
    return {"metadata": {"name": name}, "spec": {**spec, "nodeName": node} if node else spec}


@asynccontextmanager
async def asking(logs: Given | None = None) -> AsyncGenerator[Asking, None]:
    async with ApiServer(clock=ManualClock(NOW)) as server:
        server.app.logs = logs
        ask = Asking(server.transport())
        await ask.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        status = {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}
        got = await ask(
            "PATCH",
            "/api/v1/nodes/n1/status",
            {"status": status},
            {"Content-Type": "application/merge-patch+json"},
        )
        assert got.status == 200, got.body
        yield ask


async def log(given: Given | None, query: str = "", **made: str) -> Got:
    async with asking(given) as ask:
        await ask.create(PODS, pod("one", **{"node": "n1", **made}))
        return await ask.get(f"{PODS}/one/log?{query}")


async def test_a_log_is_plain_text_of_the_only_container() -> None:
    given = Given()
    got = await log(given)
    assert (got.status, got.body) == (200, b"hello\nworld\n")
    assert got.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert given.asked == [("c", LogPart())]


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("follow=true&timestamps=1", LogPart(follow=True, timestamps=True)),
        ("follow=false&previous=0", LogPart()),
        ("follow=", LogPart(follow=True)),
        ("tailLines=0&limitBytes=7", LogPart(tail_lines=0, limit_bytes=7)),
        ("sinceSeconds=60", LogPart(since=datetime(2029, 12, 31, 23, 59, tzinfo=UTC))),
        ("sinceTime=2029-12-31T12:00:00Z", LogPart(since=datetime(2029, 12, 31, 12, tzinfo=UTC))),
    ],
)
async def test_which_part_is_asked_for(query: str, part: LogPart) -> None:
    given = Given()
    assert (await log(given, query)).status == 200
    assert given.asked == [("c", part)]


@pytest.mark.parametrize(
    ("query", "code", "told"),
    [
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z",
            422,
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ("stream=Stdout", 422, "stream: Forbidden: may not be specified"),
        ("tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("sinceTime=x", 400, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("container=x", 400, "container x is not valid for pod one"),
        ("previous=true", 400, 'previous terminated container "c" in pod "one" not found'),
    ],
)
async def test_what_cannot_be_had_is_refused_in_kubernetes_words(query: str, code: int, told: str) -> None:
    got = await log(Given(), query)
    named = 'PodLogOptions "one" is invalid: ' if code == 422 else ""
    assert (got.status, got.message) == (code, named + told)


async def test_of_several_containers_one_must_be_named() -> None:
    got = await log(Given(), containers="ab", init="ij")
    told = "a container name must be specified for pod one, choose one of: [i j a b]"
    assert (got.status, got.message) == (400, told)
    given = Given()
    assert (await log(given, "container=i", containers="ab", init="ij")).status == 200
    assert given.asked[0][0] == "i"


async def test_a_pod_that_is_on_no_node_has_written_nothing() -> None:
    got = await log(Given(), node="")
    assert (got.status, got.body) == (204, b"")


async def test_of_a_pod_or_a_node_that_is_not_there_nothing_is_known() -> None:
    got = await log(Given(), node="gone")
    assert (got.status, got.message) == (404, 'pods "gone" not found')
    async with asking() as ask:
        got = await ask.get(f"{PODS}/nope/log")
        assert (got.status, got.message) == (404, 'pods "nope" not found')


async def test_where_nobody_has_logs_the_kubelet_cannot_be_reached() -> None:
    got = await log(None)
    told = 'Get "https://192.0.2.1:10250/containerLogs/default/one/c": dial tcp 192.0.2.1:10250: '
    assert (got.status, got.message) == (500, told + "connect: connection refused")
    assert (await log(None, "container=x")).status == 400


async def test_a_log_is_only_read() -> None:
    async with asking(Given()) as ask:
        await ask.create(PODS, pod("one", "n1"))
        for method in ("POST", "PUT", "DELETE"):
            assert (await ask(method, f"{PODS}/one/log")).status == 405
