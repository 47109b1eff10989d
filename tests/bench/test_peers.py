"""The benches' own parts: what is replayed is what Kubernetes would say, and who did less is not believed."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Iterator

import pytest

from bench.peers import objects, sync
from bench.peers.contestants import Contestant
from bench.peers.process import Failed, compete
from bench.peers.rounds import medians, verify
from bench.peers.servers import Recorded, expected_of_recording, recorded

COUNT = 40
EVENTS = 100


@pytest.fixture(scope="module")
def server() -> Iterator[Recorded]:
    with recorded(COUNT, EVENTS) as running:
        yield running


def get(server: Recorded, path: str, accept: str = "application/json") -> bytes:
    request = urllib.request.Request(server.url + path, headers={"Accept": accept})
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),  # it is on this machine
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=server.ca_file)),
    )
    with opener.open(request, timeout=10) as answer:
        said: bytes = answer.read()
    return said


def test_a_recorded_list_has_every_object_once_whole_or_in_pages(server: Recorded) -> None:
    whole = json.loads(get(server, "/api/v1/pods"))
    assert len({each["metadata"]["uid"] for each in whole["items"]}) == COUNT
    first = json.loads(get(server, "/api/v1/pods?limit=25"))
    rest = json.loads(get(server, f"/api/v1/pods?limit=25&continue={first['metadata']['continue']}"))
    assert first["items"] + rest["items"] == whole["items"]
    assert "continue" not in rest["metadata"]


def test_a_pod_in_protobuf_is_as_long_as_it_says() -> None:
    pod = objects.protobuf_of(7, 100_100_007)
    assert len(pod) == len(objects.protobuf_of(39_999, 100_139_999))
    event = objects.protobuf_event("ADDED", pod)
    assert int.from_bytes(event[:4], "big") == len(event) - 4
    assert objects.name_of(7).encode() in pod
    assert objects.varint(300) == b"\xac\x02"


@pytest.mark.parametrize("program", ["setpoint", "yardstick"])
def test_a_contestant_is_believed_only_when_it_did_the_whole_work(server: Recorded, program: str) -> None:
    contestant = Contestant(program, program, {"form": "typed"})
    expected = expected_of_recording(COUNT)
    figures = sync.fill(contestant, server, "Workload", expected)
    assert figures["requests"] >= 1
    with pytest.raises(Failed, match="whole work"):
        sync.fill(contestant, server, "Workload", {**expected, "versions": 1})


def test_a_contestant_that_ends_early_has_failed_and_is_quoted() -> None:
    with pytest.raises(Failed, match=r"(?s)ended with 1.*there is no such work"):
        compete("broken", ["sh", "-c", "echo there is no such work >&2; exit 1"], {"work": "sync"})


def test_the_last_versions_are_those_of_the_last_events() -> None:
    expected = expected_of_recording(2, 3)
    first = objects.FIRST_VERSION
    assert expected["versions"] == (first + 2 + 3) + (first + 2 + 2)


def test_what_differs_from_the_expected_is_named() -> None:
    verify("someone", {"count": 3, "more": 1}, {"count": 3})
    with pytest.raises(Failed, match=r"someone did not do the whole work.*count"):
        verify("someone", {"count": 2}, {"count": 3})


def test_rounds_become_medians_and_stay_to_be_seen() -> None:
    assert medians([{"cpu": 3.0}, {"cpu": 1.0}, {"cpu": 2.0}]) == {
        "cpu": 2.0,
        "rounds": {"cpu": [3.0, 1.0, 2.0]},
    }
