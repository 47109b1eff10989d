"""Watches over WebSockets: how they end, and what a token in place of a subprotocol is.

Whether they say what the real server's say is for ``tests/conformance`` to show.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.transport import Request, WebSocket
from setpoint.net.trust import ssl_context
from setpoint.server.http.upgrades import BadToken, is_wanted, subprotocol, token
from setpoint.server.server import ApiServer
from setpoint.server.statuses import StatusError
from tests.server.http.asking import DEFINITIONS, MAPS, Asking, config_map, definition, until_served, version

BEARER = "base64url.bearer.authorization.k8s.io."
UPGRADE = {"Connection": "keep-alive, Upgrade", "Upgrade": "websocket"}


def offering(*protocols: str) -> Request:
    return Request("GET", MAPS, UPGRADE, upgrade=protocols)


def encoded(text: str) -> str:
    return BEARER + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@asynccontextmanager
async def watched(server: ApiServer, target: str) -> AsyncIterator[WebSocket]:
    """A watch over a WebSocket, of a server that listens for the time of the block."""
    context = ssl_context(ca=server.secrets.authority.certificate_pem)
    async with server.serve() as served:
        transport = HttpTransport(Endpoint(served.url, ssl_context=lambda: context))
        async with transport:
            headers = {"Authorization": f"Bearer {server.token}"}
            response = await transport(Request("GET", target, headers, upgrade=("binary.k8s.io",)))
            assert response.websocket is not None
            yield response.websocket
            await response.close()


async def test_a_client_that_leaves_is_not_watched_for_any_more() -> None:
    async with ApiServer() as server:
        ask = Asking(server.transport())
        await ask.create(MAPS, config_map("a"))
        async with watched(server, f"{MAPS}?watch=1") as websocket:
            assert b'"ADDED"' in (await websocket.receive() or b"")
            (stream,) = server.app._streams
            await websocket.close()
            await stream.closed.wait()
        assert not server.app._streams


async def test_when_the_server_stops_the_client_is_told() -> None:
    async with ApiServer() as server:
        async with watched(server, f"{MAPS}?watch=1") as websocket:
            while not server.app._streams:
                assert await Asking(server.transport()).create(MAPS, {"metadata": {"generateName": "a-"}})
            server.app.end_watches()
            while (message := await websocket.receive()) is not None:
                assert msgspec.json.decode(message)["type"] == "ADDED"
        assert not server.app._streams


async def test_a_watch_of_what_is_not_served_any_more_says_so_and_ends() -> None:
    async with ApiServer() as server:
        ask = Asking(server.transport())
        await ask.create(DEFINITIONS, definition(version("v1", storage=True)))
        foos = "/apis/example.com/v1/namespaces/default/foos"
        await until_served(ask, foos)
        foo = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {}}
        await ask.create(foos, foo)
        async with watched(server, f"{foos}?watch=1") as websocket:
            told = [msgspec.json.decode(await websocket.receive() or b"{}")["type"]]
            assert (await ask("DELETE", f"{DEFINITIONS}/foos.example.com")).status == 200
            while (message := await websocket.receive()) is not None:
                told.append(msgspec.json.decode(message)["type"])
            assert told[0] == "ADDED"
            assert told[-1] == "DELETED"


def test_only_a_request_that_says_so_twice_is_for_a_websocket() -> None:
    assert is_wanted(offering(""))
    assert not is_wanted(offering("")._replace(headers={"Upgrade": "websocket"}))
    assert not is_wanted(offering("")._replace(method="POST"))
    assert not is_wanted(offering())


@pytest.mark.parametrize(
    ("offered", "spoken"), [(("",), ""), (("foo",), "foo"), ((f"{BEARER}YQ", "foo"), "foo")]
)
def test_the_one_subprotocol_that_is_offered_is_spoken(offered: tuple[str, ...], spoken: str) -> None:
    assert subprotocol(offering(*offered)) == spoken


def test_among_several_subprotocols_none_is_chosen() -> None:
    with pytest.raises(StatusError, match="2 were offered: offer one, or none"):
        subprotocol(offering("a", "b"))


@pytest.mark.parametrize("text", ["a", "ab", "abc", "a.b-c_d", "é"])
def test_a_token_is_read_from_among_the_subprotocols(text: str) -> None:
    assert token(offering("foo", encoded(text))) == text


@pytest.mark.parametrize(
    "offered",
    [(encoded("a"),), (encoded("a"), encoded("b"), "foo"), (f"{BEARER}!", "foo"), (f"{BEARER}_w", "foo")],
    ids=["nothing beside it", "two", "no base64", "no text"],
)
def test_a_token_that_cannot_be_read_is_none(offered: tuple[str, ...]) -> None:
    with pytest.raises(BadToken):
        token(offering(*offered))


def test_without_an_upgrade_a_subprotocol_is_no_credential() -> None:
    assert token(offering("foo", encoded("a"))._replace(headers={})) == ""
