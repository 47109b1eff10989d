"""The promises of ``client/forwarding.py``: real connections through a peer that speaks port-forward."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from setpoint.api.names import Key
from setpoint.client.forwarding import forward_local, port_forward, port_forward_call
from setpoint.errors import Forbidden, StreamFailed
from setpoint.net.listen import Answer
from setpoint.net.transport import WebSocket
from tests.client.kubelet import Kubelet, connected

POD = Key("shop", "web-0")

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[int]:
    """What runs in the pod: a server on a port."""
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(one(reader, writer)))

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def one_line(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"you said " + await reader.readline())


def test_what_is_asked_for() -> None:
    call = port_forward_call(POD, 8080)
    assert call.target == "/api/v1/namespaces/shop/pods/web-0/portforward?ports=8080"
    assert call.upgrade == ("v4.channel.k8s.io",)
    assert call.doing == "forward to v1 Pod shop/web-0:8080"


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(ValueError, match="1 to 65535"):
        port_forward_call(POD, port)


async def test_bytes_go_to_the_port_and_come_back() -> None:
    data = bytes(range(256)) * 2000
    async with (
        listening(echo) as port,
        connected(Kubelet()) as open_,
        port_forward(open_, POD, port) as connection,
    ):
        writing = asyncio.ensure_future(connection.write(data))
        back = b""
        while len(back) < len(data):
            back += await connection.read()
        await writing
        assert back == data
        await connection.close()
        assert await connection.read() == b""


async def test_what_the_pod_closes_ends() -> None:
    async with (
        listening(one_line) as port,
        connected(Kubelet()) as open_,
        port_forward(open_, POD, port) as connection,
    ):
        await connection.write(b"hello\n")
        assert b"".join([data async for data in connection]) == b"you said hello\n"


async def unused_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


async def test_a_port_where_nobody_listens_is_a_failure_in_the_servers_words() -> None:
    port = await unused_port()
    async with connected(Kubelet()) as open_, port_forward(open_, POD, port) as connection:
        with pytest.raises(StreamFailed, match=f"error forwarding port {port} to pod: Connect call failed"):
            await connection.read()


def cutting() -> Kubelet:
    async def talk(websocket: WebSocket) -> None:
        await websocket.send(b"\x00\x90\x1fpart")
        websocket._stream._req.transport.abort()  # type: ignore[attr-defined]

    kubelet = Kubelet()
    kubelet.answer = Answer(talk=talk, subprotocol="v4.channel.k8s.io")
    return kubelet


async def test_a_connection_that_is_cut_is_a_failure() -> None:
    async with connected(cutting()) as open_, port_forward(open_, POD, 8080) as connection:
        assert await connection.read() == b"part"
        with pytest.raises(StreamFailed, match="broken off: the connection was cut"):
            await connection.read()
        with pytest.raises(StreamFailed, match="broken off"):
            await connection.write(b"x")


async def test_a_refusal_is_the_servers_own() -> None:
    kubelet = Kubelet()
    kubelet.answer = Answer(403, {}, b'{"kind":"Status","reason":"Forbidden","message":"no"}')
    async with connected(kubelet) as open_:
        with pytest.raises(Forbidden):
            async with port_forward(open_, POD, 8080):
                pass


async def test_a_local_port_leads_to_the_pods_port_for_many_connections_at_once() -> None:
    async def talk(index: int, local: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.write(b"%d" % index * 50_000)
        writer.write_eof()
        heard = await reader.readexactly(50_000 * len(b"%d" % index))
        writer.close()
        await writer.wait_closed()
        return heard

    async with (
        listening(echo) as port,
        connected(Kubelet()) as open_,
        forward_local(open_, POD, port) as local,
    ):
        heard = await asyncio.gather(*(talk(index, local) for index in range(10)))

    assert heard == [b"%d" % index * 50_000 for index in range(10)]


async def test_a_local_connection_ends_when_the_pods_does() -> None:
    async with (
        listening(one_line) as port,
        connected(Kubelet()) as open_,
        forward_local(open_, POD, port) as local,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.write(b"hello\n")
        assert await reader.read() == b"you said hello\n"
        writer.close()
        await writer.wait_closed()


async def test_a_local_side_that_will_send_no_more_still_hears_the_answer() -> None:
    async def answer_at_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(b"answer")

    async with (
        listening(answer_at_the_end) as port,
        connected(Kubelet()) as open_,
        forward_local(open_, POD, port) as local,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.write(b"ask!")
        writer.write_eof()
        assert await reader.read() == b"answer"
        writer.close()
        await writer.wait_closed()


async def test_a_local_side_that_left_is_noticed_by_the_pod_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("setpoint.client.forwarding._LINGER", 0.01)
    left = asyncio.Event()

    async def waiting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            assert await reader.read() == b""
        left.set()

    async with (
        listening(waiting) as port,
        connected(Kubelet()) as open_,
        forward_local(open_, POD, port) as local,
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.close()
        await left.wait()
        await writer.wait_closed()


async def test_a_connection_that_fails_is_reset_and_said_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kubelet = Kubelet()
    async with (
        listening(echo) as port,
        connected(kubelet) as open_,
        forward_local(open_, POD, port) as local,
    ):
        good_reader, good_writer = await asyncio.open_connection("127.0.0.1", local)
        good_writer.write(b"a")
        assert await good_reader.readexactly(1) == b"a"

        kubelet.answer = Answer(
            403, {}, b'{"kind":"Status","reason":"Forbidden","message":"no more of these"}'
        )
        bad_reader, bad_writer = await asyncio.open_connection("127.0.0.1", local)
        with pytest.raises(ConnectionResetError):
            await bad_reader.read()
        bad_writer.close()

        good_writer.write(b"b")
        assert await good_reader.readexactly(1) == b"b"
        good_writer.close()
        await good_writer.wait_closed()

    assert "no more of these" in caplog.text


async def test_leaving_ends_every_connection() -> None:
    async with listening(echo) as port, connected(Kubelet()) as open_:
        async with forward_local(open_, POD, port) as local:
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(b"a")
            assert await reader.readexactly(1) == b"a"
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", local)


async def test_an_error_in_the_block_comes_out_as_it_was_raised() -> None:
    async with connected(Kubelet()) as open_:
        with pytest.raises(KeyError):
            async with forward_local(open_, POD, 8080):
                raise KeyError("mine")
