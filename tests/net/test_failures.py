"""What ``net/failures.py`` says of each way in which an exchange can fail, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from setpoint.errors import AnswerLost, BadAnswer, ConnectionFailed, TransportError
from setpoint.net.failures import Way, not_answered
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.listen import Answer, serve
from setpoint.net.tls import Authority
from setpoint.net.transport import Request
from tests.net.peers import (
    OK,
    assert_no_secret,
    at,
    client_context,
    failure,
    for_server,
    forever,
    get,
    head,
    load,
    peer,
    proxying,
    says,
    server_context,
    whole,
)


async def test_a_port_where_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        error = await failure(at(port))

    assert isinstance(error, ConnectionFailed)
    assert str(error) == (
        f"GET /api: 127.0.0.1:{port} refuses connections (is the server up, and is this its address?)"
    )


async def test_a_name_of_several_addresses_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{last}", 1)) for last in (2, 3)]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", addresses)
    error = await failure(HttpTransport(Endpoint("http://several.example:1")))

    assert isinstance(error, ConnectionFailed)
    assert "several.example:1 refuses connections" in str(error)


async def test_a_name_that_does_not_exist() -> None:
    error = await failure(HttpTransport(Endpoint("https://no-such-host.invalid:6443")))

    assert isinstance(error, ConnectionFailed)
    assert "the name no-such-host.invalid is not known" in str(error)


async def test_a_server_that_accepts_and_never_shakes_hands(tmp_path: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await forever()

    async with peer(talk) as port:
        endpoint = Endpoint(f"https://127.0.0.1:{port}", connect_timeout=0.05)
        error = await failure(HttpTransport(endpoint))

    assert isinstance(error, ConnectionFailed)
    assert f"no connection to 127.0.0.1:{port} within 0.05 s" in str(error)


async def test_tls_to_a_port_that_does_not_speak_it() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await reader.read()

    async with peer(talk) as port:
        error = await failure(at(port, "https"))

    assert isinstance(error, ConnectionFailed)
    assert str(error).endswith("does not speak TLS (is it http:// and not https:// there?)")


async def test_a_server_that_hangs_up_during_the_handshake() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    async with peer(talk) as port:
        error = await failure(at(port, "https"))

    assert isinstance(error, ConnectionFailed)
    assert "closed the connection before it was open" in str(error)


async def tls_failure(server: ssl.SSLContext, endpoint: Callable[[int], Endpoint]) -> TransportError:
    async with peer(says(OK), server) as port:
        return await failure(HttpTransport(endpoint(port)))


async def test_a_certificate_of_an_authority_we_do_not_trust(tmp_path: Path) -> None:
    other = client_context(Authority.create("other"))
    error = await tls_failure(
        server_context(for_server(), tmp_path),
        lambda port: Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: other),
    )

    assert isinstance(error, ConnectionFailed)
    assert "no authority that we trust has signed the certificate" in str(error)
    assert "certificate-authority" in str(error)


async def test_a_certificate_for_another_name(tmp_path: Path) -> None:
    context = client_context()
    error = await tls_failure(
        server_context(for_server("kubernetes"), tmp_path),
        lambda port: Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: context),
    )

    assert isinstance(error, ConnectionFailed)
    assert "is not for 127.0.0.1" in str(error)
    assert "tls-server-name" in str(error)


async def test_a_certificate_that_has_expired(tmp_path: Path) -> None:
    context = client_context()
    error = await tls_failure(
        server_context(for_server(valid_for=-timedelta(days=1)), tmp_path),
        lambda port: Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: context),
    )

    assert isinstance(error, ConnectionFailed)
    assert "is not valid now: certificate has expired" in str(error)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_server_that_refuses_our_certificate_has_not_listened(
    tmp_path: Path, version: ssl.TLSVersion, method: str
) -> None:
    context = client_context()
    context.maximum_version = version
    load(context, Authority.create("other").issue("stranger", client=True), tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        server = server_context(for_server(), tmp_path, wants_client=True)
        refusing = asyncio.ensure_future(asyncio.to_thread(refuse, listening, server))
        transport = HttpTransport(Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: context))
        error = await failure(transport, Request(method, "/", {}, b"body"))
        await refusing

    assert isinstance(error, ConnectionFailed)
    assert "does not accept our client certificate" in str(error)


def refuse(listening: socket.socket, context: ssl.SSLContext) -> None:
    """Blocking, as asyncio's own TLS servers hang up without saying why."""
    connection, _ = listening.accept()
    wrapped = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
    with wrapped:
        with pytest.raises(ssl.SSLError):
            wrapped.do_handshake()
        wrapped.shutdown(socket.SHUT_WR)
        raw = socket.socket.recv
        while raw(wrapped, 65536):  # until the client has gone: unread bytes would become a reset
            pass


async def test_a_server_that_hangs_up_without_an_answer() -> None:
    async with peer(says()) as port:
        error = await failure(at(port), Request("POST", "/", {}, b"x"))

    assert isinstance(error, AnswerLost)
    assert "closed the connection without an answer" in str(error)


async def test_a_connection_that_is_reset_instead_of_answered() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # on, zero seconds: closing sends a reset
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    async with peer(talk) as port:
        error = await failure(at(port))

    assert isinstance(error, AnswerLost)
    assert "broke before an answer came: Connection reset by peer" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart", id="length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\npart", id="chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", id="chunks"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 999\r\n\r\n"
            + gzip.compress(b"x" * 999)[:15],
            id="gzip",
        ),
    ],
)
async def test_a_body_that_ends_too_early_is_lost(answer: bytes) -> None:
    async with peer(says(answer)) as port:
        error = await failure(at(port))

    assert isinstance(error, AnswerLost)
    assert "broke before the whole answer had come" in str(error)


async def test_a_head_that_ends_too_early_is_lost() -> None:
    async with peer(says(b"HTTP/1.1 200 OK\r\nContent-")) as port:
        assert isinstance(await failure(at(port)), AnswerLost)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", id="another protocol"),
        pytest.param(b"\x15\x03\x01\x00\x02\x02\x46", id="a TLS alert"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", id="no number"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", id="a long header"),
    ],
)
async def test_an_answer_that_is_not_http_is_bad(answer: bytes) -> None:
    async with peer(says(answer)) as port:
        error = await failure(at(port), Request("GET", "/", {"Authorization": "Bearer hush"}))

    assert isinstance(error, BadAnswer)
    assert "is not HTTP" in str(error)
    assert len(str(error)) < 400


async def test_headers_without_end_are_bad() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while not writer.is_closing():
            writer.write(b"X: y\r\n" * 1000)
            await writer.drain()

    async with peer(talk) as port:
        assert isinstance(await failure(at(port)), BadAnswer)


async def test_a_body_longer_than_agreed_is_bad() -> None:
    async def app(request: Request) -> Answer:
        return Answer(body=b"x" * 1001)

    async with serve(app) as address:
        error = await failure(HttpTransport(Endpoint(str(address), max_body=1000)))
        async with HttpTransport(Endpoint(str(address), max_body=1001)) as transport:
            assert len(await whole(transport, get())) == 1001

    assert isinstance(error, BadAnswer)
    assert "longer than 1000 bytes" in str(error)


async def test_a_small_body_that_unpacks_to_gigabytes_is_not_unpacked() -> None:
    bomb = gzip.compress(bytes(50 * 2**20), 9)

    async def app(request: Request) -> Answer:
        return Answer(headers={"Content-Encoding": "gzip"}, body=bomb)

    assert len(bomb) < 60_000
    async with serve(app) as address:
        error = await failure(HttpTransport(Endpoint(str(address), max_body=2**20)))

    assert isinstance(error, BadAnswer)


async def test_gzip_is_asked_for_and_unpacked() -> None:
    async def app(request: Request) -> Answer:
        assert request.headers["Accept-Encoding"] == "gzip"
        return Answer(headers={"Content-Encoding": "gzip"}, body=gzip.compress(b"hello"))

    async with serve(app) as address, at(address.port) as transport:
        assert await whole(transport, get()) == b"hello"


async def test_a_body_that_is_not_the_gzip_it_is_said_to_be_is_bad() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"
    async with peer(says(answer)) as port:
        error = await failure(at(port))

    assert isinstance(error, BadAnswer)
    assert "gzip" in str(error)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "asks who we are"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "would not connect to 10.0.0.1:6443: 403"),
        (b"", "broke off before it had connected to 10.0.0.1:6443"),
    ],
)
async def test_a_proxy_that_refuses_means_nothing_was_sent(answer: bytes, said: str) -> None:
    async with peer(proxying([], answer)) as port:
        endpoint = Endpoint("https://10.0.0.1:6443", proxy=f"http://me:hush@127.0.0.1:{port}")
        error = await failure(HttpTransport(endpoint), Request("POST", "/", {}, b"x"))

    assert isinstance(error, ConnectionFailed)
    assert f"the proxy 127.0.0.1:{port} {said}" in str(error)
    assert_no_secret(error)


async def test_a_proxy_that_is_not_there() -> None:
    endpoint = Endpoint("https://10.0.0.1:6443", proxy="http://me:hush@127.0.0.1:1")
    error = await failure(HttpTransport(endpoint))

    assert isinstance(error, ConnectionFailed)
    assert "the proxy 127.0.0.1:1 cannot be reached" in str(error)
    assert_no_secret(error)


@pytest.mark.parametrize("is_first", [False, True])
def test_only_the_first_request_of_a_connection_can_be_unheard_for_our_certificates_sake(
    is_first: bool,
) -> None:
    """Later, the server had accepted it, and may have acted on what it was asked since."""
    error = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED]")
    error.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    said = not_answered("GET /", Way("127.0.0.1:1", "127.0.0.1"), error, is_first=is_first)
    assert isinstance(said, ConnectionFailed if is_first else AnswerLost)


async def test_a_certificate_that_is_refused_after_an_answer_may_have_been_good_for_another() -> None:
    asked = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(OK)
        await head(reader)
        asked.set()
        await forever()

    error = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_EXPIRED]")
    error.reason = "TLSV13_ALERT_CERTIFICATE_EXPIRED"
    async with peer(talk) as port, at(port) as transport:
        assert await whole(transport, get()) == b"ok"
        asking = asyncio.ensure_future(transport(Request("POST", "/")))
        await asked.wait()
        (connection,) = transport._connections
        connection.connection_lost(error)
        with pytest.raises(AnswerLost):
            await asking
