"""``setpoint why``: how the answer of a running operator is worded."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from setpoint.api.names import Key
from setpoint.cli.main import main
from setpoint.cli.why import worded
from setpoint.manager.why import WhyServer

KEY = Key("shop", "web")


def told(**more: Any) -> dict[str, Any]:
    controller = {
        "name": "webapp",
        "is_working": True,
        "problems": [],
        "object": {
            "uid": "u",
            "resourceVersion": "101",
            "generation": 2,
            "deletionTimestamp": None,
            "finalizers": [],
        },
        "running_for": None,
        "next_in": None,
        "failures": 0,
        "looks": [],
        **more,
    }
    return {"operator": "shop-operator", "pid": 7, "controllers": [controller], "watches": []}


def look(**more: Any) -> dict[str, Any]:
    return {
        "id": "a-1",
        "ago": 3.0,
        "seconds": 0.25,
        "result": "success",
        "error": "",
        "failures": 0,
        "reasons": ["apps/v1 Deployment shop/web MODIFIED"],
        **more,
    }


def lines(*answers: dict[str, Any]) -> list[str]:
    return list(worded("webapp", KEY, list(answers)))


def test_it_says_what_was_seen_is_waited_for_and_was_done() -> None:
    assert lines(told(looks=[look(), look(ago=1.0, result="requeue_after", reasons=[])], next_in=29.0)) == [
        "webapp shop/web, by shop-operator (process 7)",
        "  seen:   resourceVersion 101, generation 2",
        "  now:    next look in 29.0 s",
        "  1.0 s ago: requeue_after in 0.250 s, for no known reason",
        "  3.0 s ago: success in 0.250 s, for apps/v1 Deployment shop/web MODIFIED",
    ]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "now:    not looked at yet"),
        ({"looks": [look()]}, "now:    waits for a change"),
        ({"running_for": 4.0}, "now:    being reconciled for 4.0 s"),
        ({"is_working": False}, "now:    the controller does not work"),
        ({"next_in": 5.0, "failures": 3}, "now:    backs off after 3 failures; next look in 5.0 s"),
        ({"object": None}, "seen:   no such object"),
        ({"problems": ["watch: forbidden"]}, "stands: watch: forbidden"),
        (
            {"looks": [look(ago=7200.0)]},
            "2 h ago: success in 0.250 s, for apps/v1 Deployment shop/web MODIFIED",
        ),
        ({"looks": [look(error="no answer", failures=3)]}, "    no answer (3 in a row)"),
    ],
)
def test_each_state_has_its_words(more: dict[str, Any], line: str) -> None:
    assert f"  {line}" in lines(told(**more))


def test_an_object_that_is_going_says_what_holds_it() -> None:
    seen = told()["controllers"][0]["object"] | {"deletionTimestamp": "now", "finalizers": ["a/b"]}
    assert "  seen:   resourceVersion 101, generation 2, deleted now, held by a/b" in lines(told(object=seen))


def test_a_watch_in_trouble_is_told() -> None:
    answer = told() | {
        "watches": [{"scope": "v1 Pod", "problem": "403"}, {"scope": "v1 Node", "problem": None}]
    }
    assert "  watch:  v1 Pod: 403" in lines(answer)
    assert not [line for line in lines(answer) if "Node" in line]


def test_it_says_who_leads() -> None:
    assert lines(told() | {"is_leading": True, "leader": "me"})[0].endswith(", which leads")
    assert lines(told() | {"is_leading": False, "leader": "a"})[0].endswith(", which stands by for a")


def test_a_kind_that_nobody_is_for_is_told_apart_from_one_that_is_watched() -> None:
    nobody = {"operator": "o", "pid": 7, "controllers": [], "known": ["webapp"], "watched_by": []}
    assert lines(nobody) == ["no controller is for webapp; there are: webapp"]
    assert lines(nobody | {"watched_by": ["shop"]}) == [
        "webapp is only watched, by: shop; ask about the object it belongs to"
    ]


@contextmanager
def running(where: Path) -> Iterator[None]:
    """A WhyServer in a thread, as in another process."""
    up, done = threading.Event(), threading.Event()

    def answer(_: str, key: Key) -> dict[str, Any]:
        return {name: value for name, value in told().items() if name != "operator"} | {"key": str(key)}

    async def serve() -> None:
        server = WhyServer("shop-operator", answer, where=where)
        task = asyncio.create_task(server.run())
        await server.wait_ready()
        up.set()
        while not done.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.wait([task])

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert up.wait(30)
        yield
    finally:
        done.set()
        thread.join(30)


def test_a_running_operator_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with running(tmp_path / "setpoint"):
        result = CliRunner().invoke(main, ["why", "webapp", "shop/web"])
        assert result.exit_code == 0, result.output
        assert result.output.startswith("webapp shop/web, by shop-operator (process 7)")
        result = CliRunner().invoke(main, ["why", "webapp", "node-1", "-o", "json"])
        assert json.loads(result.output)[0]["key"] == "node-1"
        result = CliRunner().invoke(main, ["why", "webapp", "shop/web", "--operator", "another"])
        assert "no operator 'another' of this user runs here" in result.output


def test_where_nobody_runs_it_is_said_where_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    result = CliRunner().invoke(main, ["why", "webapp", "shop/web"])
    assert result.exit_code == 1
    assert "kubectl exec" in result.output


@pytest.mark.parametrize("key", ["/web", "shop/", "a/b/c", ""])
def test_what_is_no_key_is_refused(key: str) -> None:
    result = CliRunner().invoke(main, ["why", "webapp", key])
    assert result.exit_code == 1
    assert "NAMESPACE/NAME" in result.output
