"""The promises of ``server/http/inflight.py``: how many requests are under way, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from setpoint.net.transport import Request
from setpoint.server.http.inflight import Limits, seconds_allowed
from setpoint.server.registry.requests import Ask
from setpoint.server.server import ApiServer
from setpoint.server.statuses import StatusError
from tests.server.http.asking import MAPS, Asking, Got, config_map

ALICE = "the-token-of-alice"


class Gate:
    """Stands before some verbs of a server: who comes waits until it is opened."""

    def __init__(self, server: ApiServer, *verbs: str) -> None:
        self._is_open = asyncio.Event()
        self._waiting = 0
        for verb in verbs:
            setattr(server.registry, verb, self._before(getattr(server.registry, verb)))

    def _before(self, answer: Callable[[Ask], Awaitable[Any]]) -> Callable[[Ask], Awaitable[Any]]:
        async def waited(ask: Ask) -> Any:
            self._waiting += 1
            try:
                await self._is_open.wait()
            finally:
                self._waiting -= 1
            return await answer(ask)

        return waited

    def open(self) -> None:
        self._is_open.set()

    async def holds(self, count: int) -> None:
        while self._waiting != count:
            await asyncio.sleep(0)


@asynccontextmanager
async def limited(folder: Path, **limits: Any) -> AsyncIterator[ApiServer]:
    """A server that lets Alice, who is no administrator, do everything."""
    known = folder / "tokens.csv"
    known.write_text(f"{ALICE},alice,1\n")
    async with ApiServer(authorization="always-allow", token_file=known, limits=Limits(**limits)) as server:
        yield server


def created(ask: Asking, name: str) -> asyncio.Task[Got]:
    return asyncio.create_task(ask("POST", MAPS, config_map(name)))


def is_turned_away(got: Got) -> bool:
    """As the real one does it: no Status, but text."""
    told = (got.status, got.headers.get("Retry-After"), got.headers["Content-Type"], got.body)
    text = b"Too many requests, please try again later.\n"
    return told == (429, "1", "text/plain; charset=utf-8", text)


# ── How many ────────────────────────────────────────────────────────────────────────────────────────


async def test_of_writes_so_many_are_under_way_and_one_more_is_told_to_come_again(tmp_path: Path) -> None:
    async with limited(tmp_path, writes=2) as server:
        alice = Asking(server.transport(ALICE))
        gate = Gate(server, "create")
        under_way = [created(alice, "a"), created(alice, "b")]
        await gate.holds(2)
        assert is_turned_away(await alice("POST", MAPS, config_map("c")))
        for method, more in (("PUT", "/a"), ("PATCH", "/a"), ("DELETE", "/a"), ("DELETE", "")):
            assert is_turned_away(await alice(method, MAPS + more, b"{}")), "all that is no read is a write"
        assert (await alice.get(MAPS)).status == 200, "reads are counted apart"
        gate.open()
        assert [(await each).status for each in under_way] == [201, 201]
        assert (await alice("POST", MAPS, config_map("c"))).status == 201


async def test_of_reads_so_many_are_under_way_and_watches_and_health_are_none_of_them(tmp_path: Path) -> None:
    async with limited(tmp_path, reads=1) as server:
        transport = server.transport(ALICE)
        alice = Asking(transport)
        gate = Gate(server, "list")
        under_way = asyncio.create_task(alice.get(MAPS))
        await gate.holds(1)
        assert is_turned_away(await alice.get(MAPS))
        assert is_turned_away(await alice.get("/api/v1/namespaces/default"))
        assert (await alice("POST", MAPS, config_map("a"))).status == 201, "writes are counted apart"
        watches = [await transport(Request("GET", f"{MAPS}?watch=1")) for _ in range(3)]
        assert [each.status for each in watches] == [200, 200, 200]
        for path in ("/livez", "/readyz", "/version", "/api/v1", "/openapi/v3"):
            assert (await alice.get(path)).status == 200, path
        gate.open()
        assert (await under_way).status == 200
        assert (await alice.get(MAPS)).status == 200, "for watches take no place"
        for each in watches:
            await each.close()


async def test_administrators_are_let_in_however_many_are_under_way(tmp_path: Path) -> None:
    async with limited(tmp_path, writes=1) as server:
        alice, admin = Asking(server.transport(ALICE)), Asking(server.transport())
        gate = Gate(server, "create")
        under_way = [created(alice, "a"), created(admin, "b"), created(admin, "c")]
        await gate.holds(3)
        assert is_turned_away(await alice("POST", MAPS, config_map("d")))
        gate.open()
        assert [(await each).status for each in under_way] == [201] * 3


async def test_whoever_is_taken_for_another_is_counted_as_that_one(tmp_path: Path) -> None:
    async with limited(tmp_path, reads=0) as server:
        admin = Asking(server.transport())
        assert (await admin.get(MAPS)).status == 200
        assert is_turned_away(await admin.get(MAPS, Impersonate_User="alice"))


async def test_a_request_gives_its_place_back_however_it_ends(tmp_path: Path) -> None:
    async with limited(tmp_path, reads=1, writes=1) as server:
        alice = Asking(server.transport(ALICE))
        for method, body, code in (("GET", None, 404), ("DELETE", None, 404), ("PUT", b"{", 400)):
            for _ in range(2):
                assert (await alice(method, f"{MAPS}/none", body)).status == code
        gate = Gate(server, "create")
        leaving = created(alice, "a")
        await gate.holds(1)
        leaving.cancel()
        await asyncio.wait([leaving])
        gate.open()
        assert (await alice("POST", MAPS, config_map("a"))).status == 201


# ── How long ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("query", "seconds"),
    [("", 60), ("?timeout=5s", 5), ("?timeout=1m30s", 60), ("?timeout=0s", 60), ("?timeout=-3s", 60)],
)
async def test_a_request_that_is_not_done_in_time_is_given_up(query: str, seconds: float) -> None:
    async with ApiServer() as server:
        ask = Asking(server.transport())
        gate = Gate(server, "create", "get", "list")
        for method, target, body in (
            ("POST", MAPS, config_map("a")),
            ("GET", MAPS, None),
            ("GET", f"{MAPS}/a", None),
        ):
            began = asyncio.get_running_loop().time()
            got = await ask(method, target + query, body)
            assert asyncio.get_running_loop().time() - began == pytest.approx(seconds, abs=0.01)
            assert (got.status, got.json) == (
                504,
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Failure",
                    "message": "Timeout: request did not complete within the allotted timeout",
                    "reason": "Timeout",
                    "details": {},
                    "code": 504,
                },
            )
            await gate.holds(0)


@pytest.mark.virtual_time
async def test_a_watch_lasts_as_long_as_it_says_whatever_a_request_may_take() -> None:
    async with ApiServer(limits=Limits(seconds=1)) as server:
        began = asyncio.get_running_loop().time()
        got = await Asking(server.transport()).get(f"{MAPS}?watch=1&timeoutSeconds=90&timeout=2s")
        assert got.status == 200
        assert asyncio.get_running_loop().time() - began == pytest.approx(90, abs=0.01)


async def test_what_runs_out_of_time_inside_is_our_own_mistake(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(ask: Ask) -> Any:
        await asyncio.sleep(0)  # one that waits, and is given so much time
        raise TimeoutError

    async with ApiServer() as server:
        monkeypatch.setattr(server.registry, "get", fails)
        assert (await Asking(server.transport()).get(f"{MAPS}/a")).status == 500
        assert "TimeoutError" in caplog.text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("abc", 'time: invalid duration "abc"'),
        ("5", 'time: missing unit in duration "5"'),
        ("5x", 'time: unknown unit "x" in duration "5x"'),
        ("9" * 5_000 + "s", f'time: invalid duration "{"9" * 5_000}s"'),
    ],
)
def test_a_time_that_is_none_is_refused_in_gos_words(said: str, told: str) -> None:
    with pytest.raises(StatusError) as refused:
        seconds_allowed({"timeout": said}, 60)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    assert refused.value.message == f"invalid timeout specified in the request URL - {told}"


def test_no_time_is_all_there_is() -> None:
    assert seconds_allowed({}, 60) == seconds_allowed({"timeout": ""}, 60) == 60
