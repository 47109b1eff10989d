"""The benches' own parts: what is replayed is what Kubernetes would say; a report says what was measured."""

from __future__ import annotations

import json
import ssl
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers import growth, objects, report, short, sync
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
    context = ssl.create_default_context(cafile=server.ca_file)
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
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


def test_the_exponent_of_a_line_is_one_and_of_a_square_two() -> None:
    assert growth.exponent([10, 40, 160], [2, 8, 32]) == pytest.approx(1)
    assert growth.exponent([10, 40, 160], [100, 1600, 25600]) == pytest.approx(2)


def result(contestant: str, **figures: float) -> dict[str, object]:
    return {"work": "sync", "case": "20,000 Workloads", "contestant": contestant, **figures}


def test_the_report_has_the_ratio_of_ours_to_theirs_and_says_where_we_lose() -> None:
    results = [
        result("setpoint", cpu=2.0, wall=3.0),
        result("controller-runtime, typed", cpu=4.0, wall=3.0),
        result("controller-runtime, unstructured", cpu=10.0, wall=3.0),
    ]
    assert report.ratio_of(results, "sync", "Workloads", "cpu", "controller-runtime, typed") == 0.5
    assert report.ratio_of(results, "sync", "Workloads", "cpu", "nobody") is None
    lines = [line for line in report.page(results) if "| CPU |" in line]
    assert "| 0.50 | **missed** |" in lines[0]
    assert "| 0.20 | met |" in lines[1]
    assert list(report.losses(results)) == ["Nowhere, this time."]
    assert "CPU to fill a cache of custom resources | 0.50 |" in "\n".join(report.headlines(results))
    assert "controller-runtime, typed" in report.chart(results)


def test_where_a_peer_is_better_is_said_of_each_figure() -> None:
    results = [
        result("limit: curl", cpu=0.1, wall=0.1),
        result("setpoint", cpu=2.0, wall=3.0, bytes_per_object=100),
        result("setpoint, metadata", cpu=1.0, wall=1.0),
        result("someone", cpu=1.0, wall=2.9, bytes_per_object=120),
        result("someone, metadata", cpu=1.2, wall=0.5),
    ]
    assert list(report.losses(results)) == [
        "- Filling a cache, 20,000 Workloads: **wall s**: someone, metadata 0.50",
        "- Filling a cache, 20,000 Workloads: **CPU s**: someone 0.50",
    ]
    rates = [{**each, "work": "watch", "events_per_second": each.get("cpu", 0)} for each in results]
    assert any("events/s" in line for line in report.losses(rates))


def test_who_was_given_a_part_of_the_objects_is_marked() -> None:
    results = [result("setpoint", cpu=2.0, objects=8), result("slow", cpu=9.0, objects=2)]
    page = "\n".join(report.tables(results, report.WORKS["sync"][1]))
    assert "| slow \\*2 | 9.00 | 4.50 |" in page
    assert "multiplied" in page


def test_what_grows_has_its_exponents_in_the_table_and_among_the_promises() -> None:
    grown = [
        {
            "work": "growth",
            "case": f"sync, {size} objects",
            "contestant": "setpoint",
            "cpu": size / 10,
            "wall": size / 5,
            "peak_megabytes": 50.0,
        }
        for size in (10, 40, 160)
    ]
    results = growth.with_exponents("sync", (10, 40, 160), grown)
    assert "| sync: exponent | **1.00** | **1.00** | **0.00** |" in list(report.growth(results))
    assert "| growth, sync | cpu: exponent |  | at most 1 | 1.00 | met |" in list(report.bars(results))


def test_what_is_committed_is_what_the_report_makes_of_what_was_measured() -> None:
    results = report.load()
    readme = report.README.read_text()
    assert report.BEGIN in readme
    assert report.with_headlines(readme, results) == readme, "python -m bench.peers.report writes it anew"
    if results:
        assert report.PAGE.read_text() == "\n".join(report.page(results)) + "\n"
        assert report.CHART.read_text() == report.chart(results)


@pytest.mark.parametrize(("now", "failures"), [(2.5, 0), (2.7, 1)])
def test_the_short_form_fails_where_cpu_is_thirty_percent_above_its_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: float, failures: int
) -> None:
    baselines = tmp_path / "baselines.toml"
    baselines.write_text("queue = 2.0\n")
    monkeypatch.setattr(short, "BASELINES", baselines)
    noisy = iter([9.0, now, now, 0.1, now] * 2)  # one round in five is far off
    monkeypatch.setattr(short, "CASES", {"queue": (lambda: next(noisy), lambda: 1.0)})
    assert short.main(write=False) == failures


def test_no_path_of_the_machine_is_in_what_is_committed() -> None:
    ours = [str(Path.home()), tempfile.gettempdir(), str(report.ROOT)]
    assert not [line for line in map(json.dumps, report.load()) if any(path in line for path in ours)]
