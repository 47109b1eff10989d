"""A whole server: on a port with TLS, in a directory, in memory; started, stopped, started again."""

from __future__ import annotations

import asyncio
import random
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from setpoint.api.yaml import load
from setpoint.client.config import Config
from setpoint.clock import ManualClock
from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.transport import Request
from setpoint.net.trust import ssl_context
from setpoint.server.secrets import write_private
from setpoint.server.server import ApiServer, Served
from setpoint.server.storage.folder import CannotOpen
from tests.server.http.asking import MAPS, Asking, config_map


def over(served: Served, server: ApiServer) -> HttpTransport:
    context = ssl_context(ca=server.secrets.authority.certificate_pem)
    return HttpTransport(Endpoint(served.url, ssl_context=lambda: context))


async def test_it_is_reached_over_tls_with_its_kubeconfig() -> None:
    async with ApiServer() as server, server.serve() as served:
        config = Config.from_kubeconfig(served.kubeconfig.encode())
        assert config.server == served.url
        async with over(served, server) as transport:
            headers = {"Authorization": f"Bearer {server.token}"}
            got = await Asking(transport)("GET", "/api/v1/namespaces/default", headers=headers)
            assert got.json["metadata"]["name"] == "default"
            assert (await Asking(transport)("GET", "/api")).status == 401


async def test_it_is_known_by_every_name_that_it_has() -> None:
    async with ApiServer() as server, server.serve() as served:
        context = ssl_context(ca=server.secrets.authority.certificate_pem)
        named = f"https://localhost:{served.address.port}"
        async with HttpTransport(Endpoint(named, ssl_context=lambda: context)) as transport:
            assert (await Asking(transport)("GET", "/healthz")).body == b"ok"


async def test_what_is_refused_before_the_app_is_a_status_too() -> None:
    async with ApiServer() as server, server.serve() as served, over(served, server) as transport:
        known = {"Authorization": f"Bearer {server.token}"}
        got = await Asking(transport)("POST", MAPS, b"x" * (3 * 2**20 + 1), known)
        assert (got.status, got.json["reason"]) == (413, "RequestEntityTooLarge")
        got = await Asking(transport)("POST", MAPS, b"x" * 5_000)
        assert (got.status, got.json["reason"]) == (401, "Unauthorized"), "of a stranger nothing is read"
        assert got.headers["Audit-Id"]


async def test_leaving_ends_watches_and_requests_in_order() -> None:
    async with ApiServer() as server:
        async with server.serve(grace=30) as served:
            transport = over(served, server)
            headers = {"Authorization": f"Bearer {server.token}"}
            response = await transport(Request("GET", f"{MAPS}?watch=1", headers))
            reading = asyncio.ensure_future(response.read())
            await asyncio.sleep(0)
        assert await reading == b""
        with pytest.raises((ConnectionFailed, AnswerLost)):
            await transport(Request("GET", "/healthz"))
        await transport.close()


async def test_what_is_kept_is_there_again_and_so_are_the_secrets(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with ApiServer(data) as server:
        made = await Asking(server.transport()).create(MAPS, config_map("a", k="v"))
        kept = (server.token, server.secrets.authority.certificate_pem)
    async with ApiServer(data) as server:
        assert (await Asking(server.transport()).get(f"{MAPS}/a")).json == made
        assert (server.token, server.secrets.authority.certificate_pem) == kept
    for name in ("ca.key", "ca.crt", "token"):
        assert stat.S_IMODE((data / name).stat().st_mode) == 0o600
    async with ApiServer(data, token="given") as server:
        assert server.token == "given"
    async with ApiServer(data) as server:
        assert server.token == kept[0], "a token that was given is not kept"


async def test_a_second_server_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    async with ApiServer(tmp_path / "data"):
        with pytest.raises(CannotOpen, match="another server has it open"):
            async with ApiServer(tmp_path / "data"):
                pass


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("ca.crt", "every kubeconfig and certificate"),
        ("ca.key", "every kubeconfig and certificate"),
        ("token", "the administrator's kubeconfig"),
        ("service-accounts.key", "every service account's token"),
    ],
)
@pytest.mark.parametrize("damage", ["emptied", "rubbish", "cut short", "a directory"])
async def test_a_secret_that_is_damaged_is_refused_and_not_replaced(
    name: str, ends: str, damage: str, tmp_path: Path
) -> None:
    async with ApiServer(tmp_path) as server:
        kept = server.secrets.authority.certificate_pem, server.secrets.signing_key.id
    file = tmp_path / name
    whole = file.read_bytes()
    file.unlink()
    match damage:
        case "emptied":
            file.touch()
        case "rubbish":
            file.write_bytes(b"hunter2 \xff\0")
        case "cut short":
            file.write_bytes(whole[: len(whole) // 2] if name != "token" else b"")
        case _:
            file.mkdir()
    with pytest.raises(CannotOpen) as refused:
        async with ApiServer(tmp_path):
            raise AssertionError("it was served")
    told = str(refused.value)
    assert f"read {file if name != 'ca.key' else tmp_path / 'ca.crt'}: " in told
    assert "put back a copy" in told
    assert "delete it" in told
    assert ends in told
    assert "hunter2" not in told
    if file.is_dir():
        file.rmdir()
    file.write_bytes(whole)
    async with ApiServer(tmp_path) as server:
        assert kept == (server.secrets.authority.certificate_pem, server.secrets.signing_key.id)


async def test_a_secret_that_was_deleted_is_made_anew(tmp_path: Path) -> None:
    async with ApiServer(tmp_path) as server:
        first = server.secrets.authority.certificate_pem, server.secrets.signing_key.id, server.token
    for name in ("ca.crt", "service-accounts.key", "token"):
        (tmp_path / name).unlink()
    async with ApiServer(tmp_path) as server, server.serve() as served, over(served, server) as transport:
        made = server.secrets.authority.certificate_pem, server.secrets.signing_key.id, server.token
        assert not set(first) & set(made)
        assert (await Asking(transport)("GET", "/healthz")).status == 200


async def test_many_servers_share_nothing() -> None:
    async with ApiServer() as one, ApiServer() as other:
        await Asking(one.transport()).create(MAPS, config_map("a"))
        assert (await Asking(other.transport()).get(f"{MAPS}/a")).status == 404
        assert (await Asking(other.transport(token=one.token)).get("/api")).status == 401


async def test_the_same_requests_give_the_same_answers_where_time_and_chance_are_given() -> None:
    async def answers() -> list[bytes]:
        clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
        async with ApiServer(clock=clock, source=random.Random(7)) as server:
            ask = Asking(server.transport())
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}
            made = [(await ask("POST", MAPS, body)).body for _ in range(3)]
            clock.turn(60)
            return [*made, (await ask.get(MAPS)).body]

    assert await answers() == await answers()


async def test_after_it_was_left_nothing_can_be_asked() -> None:
    async with ApiServer() as server:
        transport = server.transport()
    with pytest.raises(ConnectionFailed):
        await transport(Request("GET", "/healthz"))


async def test_the_kubeconfig_is_what_kubectl_reads() -> None:
    async with ApiServer(token="hush") as server:
        told = load(server.secrets.kubeconfig("https://127.0.0.1:1"))
        assert told["users"][0]["user"] == {"token": "hush"}
        assert told["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
        assert told["current-context"] == told["contexts"][0]["name"]
        assert "hush" not in repr(server)
        assert "hush" not in repr(server.secrets)


def test_a_private_file_is_its_owners_alone_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o644)
    write_private(path, b"after")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"after", 0o600)
    assert list(tmp_path.iterdir()) == [path]


_READY = """
import asyncio, sys
from setpoint.server.server import ApiServer

async def main() -> None:
    async with ApiServer() as server, server.serve():
        loaded = set(sys.argv[1:]) & set(sys.modules)
        assert not loaded, loaded

asyncio.run(main())
"""
# Each takes long to read, and the first answer needs none of them.
_LATE = (
    "aiohttp",
    "yaml",
    "setpoint.api.crd",
    "setpoint.client.client",
    "setpoint.server.http.openapi",
    "setpoint.server.http.printers",
    "setpoint.server.registry.crd.cel",
    "setpoint.server.registry.crd.definition",
    "setpoint.server.registry.validation.table",
)


async def test_it_is_ready_before_anything_is_read_that_only_later_requests_need() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _READY, *_LATE)
    assert await process.wait() == 0
