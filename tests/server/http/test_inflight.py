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
PODS = "/api/v1/namespaces/default/pods"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
ALLOTTED = "Timeout: request did not complete within the allotted timeout"
REQUESTED = "Timeout: request did not complete within requested timeout - context deadline exceeded"


class Gate:
    """Stands before some methods, such as a registry's verbs: who comes waits until it is opened."""

    def __init__(self, owner: object, *names: str) -> None:
        self._is_open = asyncio.Event()
        self._waiting = 0
        for name in names:
            setattr(owner, name, self._before(getattr(owner, name)))

    def _before(self, answer: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def waited(*asked: Any) -> Any:
            self._waiting += 1
            try:
                await self._is_open.wait()
            finally:
                self._waiting -= 1
            return await answer(*asked)

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
        gate = Gate(server.registry, "create")
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
        gate = Gate(server.registry, "list")
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
        gate = Gate(server.registry, "create")
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
        gate = Gate(server.registry, "create")
        leaving = created(alice, "a")
        await gate.holds(1)
        leaving.cancel()
        await asyncio.wait([leaving])
        gate.open()
        assert (await alice("POST", MAPS, config_map("a"))).status == 201


async def test_who_asks_for_a_connection_to_a_pod_is_counted_as_who_writes(tmp_path: Path) -> None:
    async with limited(tmp_path, writes=0) as server:
        alice = Asking(server.transport(ALICE))
        for what in ("exec", "attach", "portforward", "proxy"):
            assert is_turned_away(await alice("POST", f"{PODS}/a/{what}")), what
            assert is_turned_away(await alice.get(f"{PODS}/a/{what}")), what


# ── How long ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("query", "read", "write"),
    [
        ("", 60, 34),
        ("?timeout=5s", 5, 5),
        ("?timeout=34s", 34, 34),
        ("?timeout=50s", 50, 34),
        ("?timeout=1m30s", 60, 34),
        ("?timeout=0s", 60, 34),
        ("?timeout=-3s", 60, 34),
    ],
)
async def test_a_request_that_is_not_done_in_time_is_given_up(query: str, read: float, write: float) -> None:
    told = REQUESTED if write < read else ALLOTTED
    async with ApiServer() as server:
        ask = Asking(server.transport())
        verbs = ("create", "update", "patch", "delete", "delete_collection", "get", "list")
        gate = Gate(server.registry, *verbs)
        for method, target, body, seconds, message in (
            ("POST", MAPS, config_map("a"), write, told),
            ("PUT", f"{MAPS}/a", config_map("a"), write, told),
            ("PATCH", f"{MAPS}/a", {}, write, told),
            ("DELETE", f"{MAPS}/a", None, write, told),
            ("DELETE", MAPS, None, read, ALLOTTED),
            ("GET", MAPS, None, read, ALLOTTED),
            ("GET", f"{MAPS}/a", None, read, ALLOTTED),
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
                    "message": message,
                    "reason": "Timeout",
                    "details": {},
                    "code": 504,
                },
            )
            await gate.holds(0)


@pytest.mark.virtual_time
async def test_who_waits_for_a_connection_to_a_pod_is_given_up_in_time() -> None:
    async with ApiServer() as server:
        Gate(server.registry.admission, "mutated")  # as a webhook would
        began = asyncio.get_running_loop().time()
        got = await Asking(server.transport())("POST", f"{PODS}/a/exec")
        assert (got.status, got.message) == (504, ALLOTTED)
        assert asyncio.get_running_loop().time() - began == pytest.approx(60, abs=0.01)


@pytest.mark.virtual_time
async def test_a_pod_that_was_seen_to_go_is_gone_though_who_deleted_it_was_given_up() -> None:
    async with ApiServer(admission=()) as server:
        ask = Asking(server.transport())
        spec = {"containers": [{"name": "a", "image": "i:1"}]}
        await ask.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec})
        gate = Gate(server.registry.store, "delete")
        assert (await ask("DELETE", f"{PODS}/a")).status == 504
        assert (await ask.get(f"{PODS}/a")).json["metadata"]["deletionTimestamp"]
        gate.open()
        await asyncio.sleep(1)
        assert (await ask.get(f"{PODS}/a")).status == 404


@pytest.mark.virtual_time
async def test_what_a_quota_was_charged_for_is_made_though_who_asked_for_it_was_given_up() -> None:
    async with ApiServer() as server:
        ask = Asking(server.transport())
        hard = {"hard": {"configmaps": "5"}}
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": hard}
        await ask.create(QUOTAS, quota)
        status = {"status": {**hard, "used": {"configmaps": "0"}}}
        merge = {"Content-Type": "application/merge-patch+json"}
        assert (await ask("PATCH", f"{QUOTAS}/q/status", status, merge)).status == 200
        gate = Gate(server.registry.store, "create")
        assert (await ask("POST", MAPS, config_map("a"))).status == 504
        assert (await ask.get(f"{QUOTAS}/q")).json["status"]["used"] == {"configmaps": "1"}
        gate.open()
        await asyncio.sleep(1)
        assert (await ask.get(f"{MAPS}/a")).status == 200


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
