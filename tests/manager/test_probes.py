"""The promises of ``manager/probes.py``, over real sockets and with a loop that is really stuck."""

from __future__ import annotations

import asyncio
import http.client
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from setpoint.errors import ConfigError
from setpoint.manager.probes import REPORT_AFTER, STUCK_AFTER, Probes, Verdict, judge, parse_address
from setpoint.metrics import Metrics
from setpoint.net.listen import Address


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[Probes]:
    probes = Probes(Metrics(), **{"health_address": "127.0.0.1:0", **options})
    task = asyncio.create_task(probes.run())
    try:
        await asyncio.wait(
            {task, waiting := asyncio.ensure_future(probes.wait_ready())}, return_when="FIRST_COMPLETED"
        )
        waiting.cancel()
        if task.done():
            task.result()
        yield probes
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, ConfigError):
            await task


def ask(at: Address | None, path: str, method: str = "GET") -> tuple[int, str]:
    """Blocks: not to be called in the loop that is asked about."""
    assert at is not None
    connection = http.client.HTTPConnection(at.host, at.port, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


async def get(at: Address | None, path: str, method: str = "GET") -> tuple[int, str]:
    return await asyncio.to_thread(ask, at, path, method)


def fine() -> str | None:
    return None


def wrong() -> str | None:
    return "the cache of v1 Pod is not there yet"


def test_a_check_that_raises_has_failed_and_says_how() -> None:
    def raises() -> str | None:
        raise LookupError("no worker")

    def exits() -> str | None:
        sys.exit(3)

    assert judge({"a": fine, "b": wrong, "c": raises, "d": exits}) == Verdict(
        ("a",),
        {"b": "the cache of v1 Pod is not there yet", "c": "LookupError: no worker", "d": "SystemExit: 3"},
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("127.0.0.1:8081", ("127.0.0.1", 8081)),
        ("8081", ("127.0.0.1", 8081)),
        (":8081", ("", 8081)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:80", ("localhost", 80)),
    ],
)
def test_an_address_is_host_and_port(text: str, meant: tuple[str, int]) -> None:
    assert parse_address(text) == meant


@pytest.mark.parametrize("text", ["localhost", "a:b", ":70000", ":", "a:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        parse_address(text)


async def test_health_is_ok_and_says_what_it_looked_at_when_asked() -> None:
    async with running() as probes:
        probes.health["workers"] = fine
        assert await get(probes.health_at, "/healthz") == (200, "ok")
        assert await get(probes.health_at, "/healthz?verbose") == (
            200,
            "[+]event-loop ok\n[+]workers ok\nhealthz check passed\n",
        )


async def test_readiness_names_what_is_not_ready() -> None:
    async with running() as probes:
        probes.ready |= {"controllers": fine, "caches": wrong}
        status, text = await get(probes.health_at, "/readyz")
        assert status == 500
        assert text.splitlines() == [
            "[+]controllers ok",
            "[-]caches failed: the cache of v1 Pod is not there yet",
            "readyz check failed",
        ]
        assert (await get(probes.health_at, "/healthz"))[0] == 200


async def test_a_check_can_be_asked_for_alone_or_left_out() -> None:
    async with running() as probes:
        probes.ready |= {"controllers": fine, "caches": wrong}
        assert (await get(probes.health_at, "/readyz/controllers"))[0] == 200
        assert (await get(probes.health_at, "/readyz/caches"))[0] == 500
        assert (await get(probes.health_at, "/readyz?exclude=caches"))[0] == 200
        assert (await get(probes.health_at, "/readyz/nonsense"))[0] == 404
        assert (await get(probes.health_at, "/healthz/event-loop"))[0] == 200


async def test_metrics_are_served_as_prometheus_wants_them() -> None:
    async with running(metrics_address="127.0.0.1:0") as probes:
        assert probes.metrics_at == probes.health_at, "one server, where one address is given for both"
        status, text = await get(probes.metrics_at, "/metrics")
        assert status == 200
        assert "process_start_time_seconds" in text


async def test_each_address_answers_only_what_it_is_for() -> None:
    async with running(metrics_address="localhost:0") as probes:
        assert probes.metrics_at != probes.health_at
        assert (await get(probes.health_at, "/metrics"))[0] == 404
        assert (await get(probes.metrics_at, "/healthz"))[0] == 404
        assert (await get(probes.metrics_at, "/metrics"))[0] == 200


async def test_only_questions_are_answered() -> None:
    async with running() as probes:
        assert (await get(probes.health_at, "/healthz", "POST"))[0] == 405
        assert (await get(probes.health_at, "/healthz", "HEAD")) == (200, "")
        assert (await get(probes.health_at, "/"))[0] == 404


async def test_a_taken_address_is_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"serve health on 127.0.0.1:{port}: .*in use"):
            async with running(health_address=f"127.0.0.1:{port}"):
                raise AssertionError("unreachable")


async def test_a_stuck_event_loop_fails_liveness_and_the_log_says_where(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(stuck_after=0.2, metrics_address="127.0.0.1:0") as probes:
        probes.health["workers"] = probes.ready["caches"] = fine
        seen: list[tuple[int, str]] = []
        noticed = threading.Event()

        def is_stuck() -> bool:
            seen.append(ask(probes.health_at, "/healthz"))
            return seen[-1][0] == 500

        def look() -> None:
            until(is_stuck)
            seen.append(ask(probes.health_at, "/readyz"))
            until(lambda: "hold_up_the_loop" in caplog.text)
            noticed.set()

        def hold_up_the_loop() -> None:
            threading.Thread(target=look).start()
            assert noticed.wait(30), seen

        hold_up_the_loop()
        *_, stuck, unready = seen
        assert "[-]event-loop failed: the event loop has been stuck for" in stuck[1]
        assert unready[0] == 500
        assert "[-]caches failed: the event loop is busy" in unready[1]

        async with asyncio.timeout(30):
            while (await get(probes.health_at, "/healthz"))[0] != 200:
                pass


async def test_a_blocked_event_loop_is_logged_with_its_stack_long_before_it_fails_liveness(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(report_after=0.05, stuck_after=300) as probes:

        def block_the_loop() -> None:
            until(lambda: "block_the_loop" in caplog.text)

        block_the_loop()
        assert "the event loop has been blocked for" in caplog.text
        assert (await get(probes.health_at, "/healthz"))[0] == 200


async def test_a_blocked_event_loop_is_logged_where_nothing_is_served_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(health_address="", report_after=0.05) as probes:
        assert probes.health_at is None

        def block_the_loop() -> None:
            until(lambda: "block_the_loop" in caplog.text)

        block_the_loop()


def test_it_is_logged_after_a_second_unless_told() -> None:
    assert (REPORT_AFTER, STUCK_AFTER) == (1.0, 10.0)


def until(condition: Callable[[], Any]) -> None:
    for _ in range(10_000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it never came about")


async def test_when_it_ends_nobody_listens_and_no_thread_is_left() -> None:
    async with running() as probes:
        at = probes.health_at
    assert at is not None
    with pytest.raises(OSError):
        socket.create_connection((at.host, at.port), timeout=5)
    assert "setpoint-probes" not in [thread.name for thread in threading.enumerate() if thread.is_alive()]
