"""Events reach the server some time, in the form that kubectl shows; and nobody waits for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from setpoint.api import MicroTime, ObjectMeta
from setpoint.client.client import Client
from setpoint.controller.event_series import Happening, New, Reference
from setpoint.controller.recorder import Recorder, name_of, reference_to
from setpoint.errors import ConnectionFailed
from setpoint.kube.core.v1 import ConfigMap
from setpoint.net.transport import Request
from tests.peer import Peer, Reply, status

START = datetime(2030, 1, 1, tzinfo=UTC)


def utc() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())


def happening(note: str = "made it", name: str = "web", **more: Any) -> Happening:
    regarding = more.pop("regarding", Reference("v1", "ConfigMap", "shop", name, "u"))
    return Happening("webapp", regarding, "Normal", "Made", "Reconcile", note, **more)


@asynccontextmanager
async def recording(peer: Peer, **options: Any) -> AsyncIterator[Recorder]:
    recorder = Recorder(Client(transport=peer), instance="pod-1", utc=utc, **options)
    task = asyncio.create_task(recorder.run())
    try:
        await asyncio.sleep(0)
        yield recorder
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def until(peer: Peer, count: int) -> None:
    async with asyncio.timeout(100_000):
        while len(peer.requests) < count:
            await asyncio.sleep(1)


def kept(request: Request) -> Reply:
    return Reply(201 if request.method == "POST" else 200, json.loads(request.body or b"{}"))


@pytest.mark.virtual_time
async def test_an_event_says_who_what_why_and_about_whom() -> None:
    peer = Peer(kept)
    async with recording(peer) as recorder:
        recorder.record(happening(related=Reference("v1", "Pod", "shop", "x")))
        await until(peer, 1)
    assert peer.path() == "/apis/events.k8s.io/v1/namespaces/shop/events"
    sent = peer.sent()
    assert sent.pop("metadata")["name"].startswith("web.")
    assert sent == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingController": "webapp",
        "reportingInstance": "pod-1",
        "type": "Normal",
        "reason": "Made",
        "action": "Reconcile",
        "note": "made it",
        "regarding": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "shop",
            "name": "web",
            "uid": "u",
        },
        "related": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "x"},
    }


@pytest.mark.virtual_time
async def test_what_happens_again_becomes_a_series_and_its_count_is_sent_when_it_is_over() -> None:
    peer = Peer(kept)
    async with recording(peer) as recorder:
        for _ in range(7):
            recorder.record(happening())
            await asyncio.sleep(1)
        await until(peer, 3)
    assert [request.method for request in peer.requests] == ["POST", "PATCH", "PATCH"]
    assert peer.sent(1)["series"] == {"count": 2, "lastObservedTime": "2030-01-01T00:00:01.000000Z"}
    assert peer.sent(2)["series"]["count"] == 7
    assert peer.path(1).rsplit("/", 1)[1] == peer.sent(0)["metadata"]["name"]


@pytest.mark.virtual_time
async def test_an_event_that_the_server_no_longer_has_is_made_again() -> None:
    peer = Peer([Reply(201, {}), status(404, "NotFound", details={"name": "x"}), Reply(201, {})])
    async with recording(peer) as recorder:
        recorder.record(happening())
        recorder.record(happening())
        await until(peer, 3)
    assert peer.sent(2)["series"]["count"] == 2


@pytest.mark.virtual_time
async def test_about_what_belongs_to_no_namespace_it_is_in_default() -> None:
    peer = Peer(kept)
    async with recording(peer) as recorder:
        recorder.record(happening(regarding=Reference("v1", "Node", "", "node-1")))
        await until(peer, 1)
    assert peer.path() == "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.mark.virtual_time
async def test_a_server_that_is_away_is_asked_twelve_times_about_ten_seconds_apart() -> None:
    times: list[float] = []

    def away(_: Request) -> Reply:
        times.append(asyncio.get_running_loop().time())
        raise ConnectionFailed("", "refused")

    peer = Peer(away)
    async with recording(peer) as recorder:
        recorder.record(happening())
        await asyncio.sleep(1000)
    assert 75 < times[-1] < 12 * (12.5 + 10), "tries, and the client's own within each"


@pytest.mark.virtual_time
async def test_it_gets_there_when_the_server_is_back() -> None:
    peer = Peer(
        [status(500), *(status(503, headers={"Retry-After": "1"}) for _ in range(30)), Reply(201, {})]
    )
    async with recording(peer) as recorder:
        recorder.record(happening())
        await until(peer, 12)
        peer.answer = kept
        await until(peer, len(peer.requests) + 1)


@pytest.mark.virtual_time
async def test_what_the_server_refuses_is_not_tried_again_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer = Peer(lambda _: status(403, "Forbidden", "not allowed"))
    async with recording(peer) as recorder:
        for n in range(5):
            recorder.record(happening(name=f"web-{n}"))
        await until(peer, 5)
        await asyncio.sleep(100)
    assert len(peer.requests) == 5
    assert caplog.text.count("not allowed") == 1


@pytest.mark.virtual_time
async def test_that_a_namespace_ends_is_no_refusal_of_events(caplog: pytest.LogCaptureFixture) -> None:
    def answer(request: Request) -> Reply:
        if "/namespaces/ending/" not in request.target:
            return status(403, "Forbidden", "not allowed")
        cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
        return status(403, "Forbidden", "it is being terminated", details={"causes": [cause]})

    peer = Peer(answer)
    async with recording(peer) as recorder:
        recorder.record(happening(regarding=Reference("v1", "ConfigMap", "ending", "web", "u")))
        await until(peer, 1)
        assert "terminated" not in caplog.text
        recorder.record(happening())
        await until(peer, 2)
    assert caplog.text.count("not allowed") == 1, "which is said, though another was refused before"


@pytest.mark.virtual_time
async def test_what_waits_is_bounded_and_nobody_waits_with_it(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(Client(transport=Peer([])), utc=utc, drain=0)
    for n in range(1500):
        recorder.record(happening(name=f"web-{n}"))
    assert recorder.dropped == 500
    assert caplog.text.count("further ones are dropped") == 1


@pytest.mark.virtual_time
async def test_when_it_stops_it_sends_what_is_waiting() -> None:
    peer = Peer(kept)
    async with recording(peer) as recorder:
        for _ in range(5):
            recorder.record(happening())
        recorder.record(happening(name="other"))
    assert [request.method for request in peer.requests].count("POST") == 2
    assert peer.sent()["series"]["count"] == 5


@pytest.mark.virtual_time
async def test_when_it_stops_it_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def stuck(_: Request) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError

    recorder = Recorder(Client(transport=stuck), utc=utc, drain=3)
    task = asyncio.create_task(recorder.run())
    recorder.record(happening())
    await asyncio.sleep(1)
    began = asyncio.get_running_loop().time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.get_running_loop().time() - began == 3
    assert "1 events were not sent" in caplog.text


@pytest.mark.virtual_time
async def test_what_is_too_long_for_the_server_is_cut() -> None:
    peer = Peer(kept)
    async with recording(peer) as recorder:
        recorder.record(happening("ä" * 2000, name="x" * 253))
        await until(peer, 1)
    assert len(peer.sent()["note"].encode()) <= 1024
    assert len(peer.sent()["metadata"]["name"]) <= 253


def test_the_name_of_an_event_is_one_the_server_takes() -> None:
    for name in ("web", "system:node", "A_b", "x" * 253, ":"):
        new = New(happening(name=name), MicroTime.of(START), 1)
        assert name_of(new).replace(".", "").replace("-", "").isalnum()
        assert name_of(new)[0].isalnum()
        assert name_of(new) != name_of(New(new.happening, new.time, 2))


def test_an_event_speaks_of_an_object_by_its_identity() -> None:
    obj = ConfigMap(metadata=ObjectMeta(name="a", namespace="shop", uid="u"))
    assert reference_to(obj) == Reference("v1", "ConfigMap", "shop", "a", "u")
