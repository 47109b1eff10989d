"""The promises of ``net/http.py``, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from setpoint.errors import AnswerLost, ConfigError, ConnectionFailed
from setpoint.net.dialing import split_url
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.listen import Answer, serve
from setpoint.net.transport import Request
from tests.net.peers import (
    OK,
    Talk,
    assert_no_secret,
    at,
    authority,
    client_context,
    counting,
    echo,
    failure,
    for_server,
    forever,
    get,
    head,
    load,
    peer,
    proxying,
    pump,
    says,
    server_context,
    whole,
)


async def test_a_request_goes_out_as_written_and_the_answer_comes_back_whole() -> None:
    async with serve(echo) as address, HttpTransport(Endpoint(str(address), user_agent="me/1")) as transport:
        request = Request("PUT", "/api/v1/x%2Fy?a=b%20c", {"Content-Type": "text/plain"}, b"body")
        response = await transport(request)
        body = await response.read()

    assert response.status == 200
    assert response.headers["x-seen"] == response.headers["X-Seen"] == "yes"
    assert body.startswith(b"PUT /api/v1/x%2Fy?a=b%20c ")
    assert b"('user-agent', 'me/1')" in body
    assert b"('content-type', 'text/plain')" in body
    assert body.endswith(b"body")
    assert response.websocket is None


async def test_a_server_may_have_a_path_that_stands_before_every_target() -> None:
    async with serve(echo) as address, HttpTransport(Endpoint(f"{address}/k8s/clusters/c-1/")) as transport:
        body = await whole(transport, get("/api"))

    assert body.startswith(b"GET /k8s/clusters/c-1/api ")


@pytest.mark.parametrize("status", [301, 404, 409, 500, 503])
async def test_an_error_status_or_redirect_is_an_answer(status: int) -> None:
    async def app(request: Request) -> Answer:
        return Answer(status, {"Location": "/elsewhere"}, b"why")

    async with serve(app) as address, at(address.port) as transport:
        response = await transport(get())
        assert (response.status, await response.read()) == (status, b"why")


async def test_a_header_of_several_lines_is_sent_several_times() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await head(reader))
        writer.write(OK)

    async with peer(talk) as port, at(port) as transport:
        await (await transport(Request("GET", "/", {"Impersonate-Group": "a\nb", "X": "y"}))).read()

    lines = seen[0].split(b"\r\n")
    assert [line for line in lines if line.startswith(b"Impersonate-Group")] == [
        b"Impersonate-Group: a",
        b"Impersonate-Group: b",
    ]
    assert b"X: y" in lines


async def test_a_header_that_came_several_times_is_joined() -> None:
    answer = b'HTTP/1.1 200 OK\r\nWarning: 299 - "a"\r\nWARNING: 299 - "b"\r\nContent-Length: 0\r\n\r\n'
    async with peer(says(answer)) as port, at(port) as transport:
        response = await transport(get())

    assert response.headers["warning"] == '299 - "a", 299 - "b"'
    assert dict(response.headers)["Warning"] == '299 - "a", 299 - "b"'
    assert "Nothing" not in response.headers
    assert response.headers.get("Nothing") is None
    assert len(response.headers) == 2


async def test_cookies_are_forgotten() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            seen.append(await head(reader))
            writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")

    async with peer(talk) as port, at(port) as transport:
        for _ in range(2):
            await whole(transport, get())

    assert b"ookie" not in seen[1]


async def test_the_environment_is_not_asked_for_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with peer(says(OK)) as port, at(port) as transport:
        assert await whole(transport, get()) == b"ok"


async def test_a_body_of_many_megabytes_goes_and_comes() -> None:
    async def app(request: Request) -> Answer:
        return Answer(body=request.body or b"")

    body = bytes(range(256)) * 4096 * 5
    async with serve(app) as address, at(address.port) as transport:
        assert await whole(transport, Request("POST", "/", {}, body)) == body


async def test_chunks_come_as_they_are_sent_and_lines_may_be_of_any_length() -> None:
    go_on = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await go_on.wait()
        writer.write(b"100000\r\n" + b"x" * 0x100000 + b"\r\n0\r\n\r\n")
        await forever()

    async with peer(talk) as port, at(port) as transport:
        chunks = (await transport(get())).chunks()
        assert await anext(chunks) == b"first"
        go_on.set()
        assert sum([len(chunk) async for chunk in chunks]) == 0x100000


async def test_hundreds_of_streams_are_open_at_once() -> None:
    async def app(request: Request) -> Answer:
        async def body() -> AsyncIterator[bytes]:
            yield b"."
            await forever()

        return Answer(body=body())

    async with serve(app) as address, at(address.port) as transport:
        responses = await asyncio.gather(*(transport(get()) for _ in range(200)))
        assert [await anext(response.chunks()) for response in responses] == [b"."] * 200
        for response in responses:
            await response.close()


async def test_leaving_a_stream_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n.\r\n")
        assert await reader.read() == b""
        gone.set()

    async with peer(talk) as port, at(port) as transport:
        response = await transport(get())
        assert await anext(response.chunks()) == b"."
        await response.close()
        await response.close()
        await gone.wait()


async def test_leaving_a_stream_over_tls_does_not_wait_for_the_peers_goodbye(tmp_path: Path) -> None:
    gone = asyncio.Event()
    context = client_context()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n.\r\n")
        await forever()

    async with peer(deaf, server_context(for_server(), tmp_path)) as server:

        async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, to_there = await asyncio.open_connection("127.0.0.1", server)
            forwarding = asyncio.ensure_future(pump(there, writer))
            while (data := await reader.read(65536)) and not left.is_set():
                to_there.write(data)
            while data:  # our goodbye, which never reaches the server
                data = await reader.read(65536)
            gone.set()
            to_there.transport.abort()
            await forwarding

        left = asyncio.Event()
        async with peer(between) as port:
            endpoint = Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: context)
            async with HttpTransport(endpoint) as transport:
                response = await transport(get())
                assert await anext(response.chunks()) == b"."
                left.set()
                await response.close()
                async with asyncio.timeout(10):
                    await gone.wait()


async def test_cancelling_a_request_closes_its_connection() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        asked.set()
        assert await reader.read() == b""
        gone.set()

    async with peer(talk) as port, at(port) as transport:
        request = asyncio.ensure_future(transport(get()))
        await asked.wait()
        request.cancel()
        await gone.wait()
        with pytest.raises(asyncio.CancelledError):
            await request


async def test_cancelling_does_not_wait_for_a_peer_that_no_longer_listens(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        asked.set()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await forever()

    context = client_context()
    async with peer(talk, server_context(for_server(), tmp_path)) as port:
        transport = HttpTransport(Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: context))
        request = asyncio.ensure_future(transport(get()))
        await asked.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        # A connection still saying goodbye would be an unclosed one when the test ends.
        await transport.close()


async def test_cancelling_a_read_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart")
        assert await reader.read() == b""
        gone.set()

    async with peer(talk) as port, at(port) as transport:
        response = await transport(get())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await response.read()
        await gone.wait()


async def test_a_connection_is_used_again_after_its_answer_was_read() -> None:
    connections: list[int] = []
    async with peer(counting(connections)) as port, at(port) as transport:
        for _ in range(3):
            await whole(transport, get())

    assert len(connections) == 1


async def test_tls_connections_are_kept_while_the_context_is_the_same_and_not_longer(tmp_path: Path) -> None:
    connections: list[int] = []
    contexts = [client_context()] * 3 + [client_context()] * 2
    waiting = iter(contexts)
    async with peer(counting(connections), server_context(for_server(), tmp_path)) as port:
        endpoint = Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: next(waiting))
        async with HttpTransport(endpoint) as transport:
            for _ in contexts:
                await whole(transport, get())

    assert len(connections) == 2, "one for each context"


async def test_a_connection_that_was_in_use_while_the_context_changed_is_not_kept(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            if b"/slow" in await head(reader):
                await go_on.wait()
            writer.write(OK)

    current = client_context()
    async with peer(talk, server_context(for_server(), tmp_path)) as port:
        endpoint = Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: current)
        async with HttpTransport(endpoint) as transport:
            await whole(transport, get())
            slow = asyncio.ensure_future(whole(transport, get("/slow")))
            await asyncio.sleep(0)
            current = client_context()
            await whole(transport, get())
            go_on.set()
            assert await slow == b"ok"
            assert [kept.tls for kept in transport._idle] == [current]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_a_request_on_a_kept_connection_that_dies_is_lost_and_not_sent_again(method: str) -> None:
    requests: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await head(reader))
        writer.write(OK)
        requests.append(await head(reader))  # and hang up: it may have been acted on

    async with peer(talk) as port, at(port) as transport:
        await whole(transport, get())
        with pytest.raises(AnswerLost, match="closed the connection without an answer"):
            await transport(Request(method, "/second"))

    assert len(requests) == 2


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_closing_tells_whoever_waits_for_an_answer_that_it_is_lost(scheme: str, tmp_path: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
        await forever()

    tls = server_context(for_server("127.0.0.1"), tmp_path) if scheme == "https" else None
    context = client_context()
    async with peer(talk, tls) as port:
        transport = HttpTransport(Endpoint(f"{scheme}://127.0.0.1:{port}", ssl_context=lambda: context))
        chunks = (await transport(get())).chunks()
        assert await anext(chunks) == b"he"
        waiting = asyncio.ensure_future(anext(chunks))
        await asyncio.sleep(0)
        await transport.close()
        with pytest.raises(AnswerLost):
            await waiting


async def test_a_closed_transport_says_so() -> None:
    transport = at(1)
    await transport.close()
    await transport.close()
    with pytest.raises(RuntimeError, match="GET /: this client is closed"):
        await transport(get())


async def test_tls_server_name_says_which_name_to_verify(tmp_path: Path) -> None:
    context = client_context()
    async with peer(says(OK), server_context(for_server("kubernetes"), tmp_path)) as port:
        endpoint = Endpoint(
            f"https://127.0.0.1:{port}", ssl_context=lambda: context, server_hostname="kubernetes"
        )
        async with HttpTransport(endpoint) as transport:
            assert await whole(transport, get()) == b"ok"


async def test_a_name_may_end_with_a_dot_though_no_certificate_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def here(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    context = client_context()
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", here)
    async with peer(says(OK), server_context(for_server("api.example"), tmp_path)) as port:
        endpoint = Endpoint(f"https://api.example.:{port}", ssl_context=lambda: context)
        async with HttpTransport(endpoint) as transport:
            assert await whole(transport, get()) == b"ok"


async def test_a_rotated_client_certificate_is_used_from_the_next_request_on(tmp_path: Path) -> None:
    names: list[object] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await head(reader)
            names.append(writer.get_extra_info("peercert")["subject"][0][0][1])
            writer.write(OK)

    contexts = []
    for name in ("first", "second"):
        contexts.append(client_context())
        load(contexts[-1], authority().issue(name, client=True), tmp_path)
    current = contexts[0]
    async with peer(talk, server_context(for_server(), tmp_path, wants_client=True)) as port:
        endpoint = Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: current)
        async with HttpTransport(endpoint) as transport:
            await whole(transport, get())
            current = contexts[1]
            await whole(transport, get())

    assert names == ["first", "second"]


async def test_a_proxy_is_told_where_to_and_who_and_hears_nothing_else(tmp_path: Path) -> None:
    seen: list[bytes] = []
    context = client_context()
    async with (
        peer(proxying(seen)) as proxy,
        peer(counting([]), server_context(for_server(), tmp_path)) as port,
    ):
        endpoint = Endpoint(
            f"https://127.0.0.1:{port}", ssl_context=lambda: context, proxy=f"http://me:pw@127.0.0.1:{proxy}"
        )
        async with HttpTransport(endpoint) as transport:
            for _ in range(2):
                request = Request("GET", "/", {"Authorization": "Bearer hush"})
                assert await whole(transport, request) == b"ok"

    assert len(seen) == 1, "the tunnel is kept"
    assert seen[0].startswith(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n".encode())
    assert b"Proxy-Authorization: Basic bWU6cHc=" in seen[0]
    assert b"hush" not in seen[0]


async def test_a_proxy_of_a_server_without_tls_is_told_where_to_in_each_request() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            seen.append(await head(reader))
            writer.write(OK)

    async with peer(talk) as proxy:
        endpoint = Endpoint("http://10.0.0.1:8080/k8s/", proxy=f"http://me:p%40w@127.0.0.1:{proxy}")
        async with HttpTransport(endpoint) as transport:
            for _ in range(2):
                assert await whole(transport, get("/api?x=1")) == b"ok"

    assert seen[0] == seen[1]
    lines = seen[0].split(b"\r\n")
    assert lines[0] == b"GET http://10.0.0.1:8080/k8s/api?x=1 HTTP/1.1"
    assert b"Host: 10.0.0.1:8080" in lines
    assert b"Proxy-Authorization: Basic bWU6cEB3" in lines


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_may_be_reached_over_tls(scheme: str, tmp_path: Path) -> None:
    seen: list[bytes] = []
    context = client_context()
    identity = server_context(for_server(), tmp_path)
    server = identity if scheme == "https" else None
    talk = proxying(seen) if scheme == "https" else counting([])
    async with peer(talk, identity) as proxy, peer(counting([]), server) as port:
        endpoint = Endpoint(
            f"{scheme}://127.0.0.1:{port}",
            ssl_context=lambda: context,
            proxy=f"https://me:pw@127.0.0.1:{proxy}",
        )
        async with HttpTransport(endpoint) as transport:
            for _ in range(2):
                assert await whole(transport, get()) == b"ok"
    assert len(seen) == (scheme == "https")


async def test_what_a_proxy_says_before_it_is_asked_is_not_the_servers() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n" + OK)
        await forever()

    context = client_context()
    async with peer(talk) as proxy:
        endpoint = Endpoint(
            "https://127.0.0.1:1", ssl_context=lambda: context, proxy=f"http://127.0.0.1:{proxy}"
        )
        error = await failure(HttpTransport(endpoint))
    assert isinstance(error, ConnectionFailed)
    assert "broke off before it had connected" in str(error)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request("GET", "/a b"), "target"),
        (Request("GET", "/ HTTP/1.1\r\nX: y\r\n\r\nGET /"), "target"),
        (Request("GET", "/\xe4"), "target"),
        (Request("GET\r\n", "/"), "target"),
        (Request("GET", "@elsewhere/"), "target"),  # behind a proxy, the server would be a user's name
        (Request("GET", ""), "target"),
        (Request("GET", "/", {"X": "a\r\nY: b"}), "'X'"),
        (Request("GET", "/", {"X": "a\0"}), "'X'"),
        (Request("GET", "/", {"X: y\r\nZ": "a"}), "not a header"),
        (Request("GET", "/", {"X y": "a"}), "not a header"),
        (Request("POST", "/", {"Transfer-Encoding": "chunked"}, b"0\r\n\r\n"), "Transfer-Encoding"),
    ],
)
async def test_what_would_become_another_request_is_not_sent(request_: Request, said: str) -> None:
    connections: list[int] = []
    async with peer(counting(connections)) as port, at(port) as transport:
        with pytest.raises(ValueError, match=said):
            await transport(request_)
    assert not connections


async def test_a_header_takes_the_place_of_our_own_and_none_says_how_long_the_body_is() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            seen.append(await head(reader))
            writer.write(OK)
            await reader.readexactly(2)

    async with peer(talk) as port, at(port) as transport:
        for headers in ({"host": "elsewhere", "ACCEPT": "x/y", "Content-Length": "7"}, {}):
            await whole(transport, Request("POST", "/", headers, b"{}"))

    first, second = (sorted(line.lower() for line in one.split(b"\r\n") if b":" in line) for one in seen)
    assert first == [
        b"accept-encoding: gzip",
        b"accept: x/y",
        b"content-length: 2",
        b"host: elsewhere",
        b"user-agent: setpoint",
    ]
    assert b"accept: */*" in second
    assert b"content-length: 2" in second


@pytest.mark.parametrize(("method", "said"), [("GET", 0), ("HEAD", 0), ("POST", 1), ("DELETE", 1)])
async def test_a_request_that_might_have_a_body_says_that_it_has_none(method: str, said: int) -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await head(reader))
        writer.write(OK)

    async with peer(talk) as port, at(port) as transport:
        await (await transport(Request(method, "/"))).close()
    assert seen[0].count(b"Content-Length: 0\r\n") == said


async def test_the_headers_that_are_remembered_are_few_and_forgotten_at_the_end() -> None:
    async with serve(echo) as address, at(address.port) as transport:
        for number in range(200):
            request = Request("GET", "/", {"Authorization": f"Bearer {number}"})
            assert f"Bearer {number}".encode() in await whole(transport, request)
        assert len(transport._written) <= 64
    assert not transport._written


def test_loading_it_loads_nothing_that_only_websockets_need() -> None:
    code = "import sys, setpoint.net.http; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"aiohttp", "yarl", "multidict", "cryptography"} & set(done.stdout.split())


@pytest.mark.parametrize("talk", [says(), says(b"rubbish\r\n\r\n"), says(OK[:-1])])
@pytest.mark.parametrize("upgrade", [(), ("v5.channel.k8s.io",)])
async def test_no_error_shows_the_credentials_that_were_sent(talk: Talk, upgrade: tuple[str, ...]) -> None:
    request = Request("GET", "/?command=hush", {"Authorization": "Bearer hush"}, upgrade=upgrade)
    async with peer(talk) as port:
        assert_no_secret(await failure(at(port), request))


async def test_no_repr_shows_credentials() -> None:
    endpoint = Endpoint("https://10.0.0.1:6443", proxy="http://me:hush@127.0.0.1:1")
    assert "hush" not in repr(endpoint) + repr(HttpTransport(endpoint))
    assert "hush" not in repr(split_url("http://me:hush@127.0.0.1:1"))

    async with serve(echo) as address, at(address.port) as transport:
        response = await transport(Request("GET", "/?command=hush", {"Authorization": "Bearer hush"}))
        assert repr(response) == "<200 to GET />"
        await response.close()


@pytest.mark.parametrize(
    "server",
    [
        "",
        "10.0.0.1:6443",
        "ftp://10.0.0.1",
        "https://",
        "https://u:hush@h",
        "https://h?q=1",
        "https://h#f",
        "https://h:x",
        "https://h:99999",
        "https://a..b",
        "https://a b",
        f"https://{'a' * 64}.b",
        "https://[::1",
    ],
)
async def test_a_server_address_that_makes_no_sense_is_refused_at_once(server: str) -> None:
    with pytest.raises(ConfigError) as caught:
        HttpTransport(Endpoint(server))
    assert_no_secret(caught.value)


@pytest.mark.parametrize("proxy", ["socks5://u:hush@10.0.0.1:1080", "10.0.0.1:3128"])
async def test_a_proxy_of_an_unknown_kind_is_refused_at_once(proxy: str) -> None:
    with pytest.raises(ConfigError, match="proxy address") as caught:
        HttpTransport(Endpoint("https://10.0.0.1", proxy=proxy))
    assert_no_secret(caught.value)


async def test_a_request_that_is_no_longer_wanted_is_not_sent() -> None:
    """Its check is asked when there is a connection: what changed while that was made is seen."""
    wanted, asked = True, 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if not wanted:
            raise LookupError("no longer wanted")

    seen: list[str] = []

    async def app(request: Request) -> Answer:
        seen.append(request.target)
        return Answer(body=b"done")

    async with serve(app) as address, at(address.port) as transport:
        asking = asyncio.ensure_future(transport(Request("PATCH", "/unwanted", {}, b"{}", (), check)))
        await asyncio.sleep(0)
        assert asked == 0, "there is no connection yet"
        wanted = False
        with pytest.raises(LookupError, match="no longer wanted"):
            await asking
        assert await whole(transport, get("/wanted")) == b"done"
        with pytest.raises(LookupError, match="no longer wanted"):
            await transport(Request("PATCH", "/unwanted", {}, b"{}", (), check))
        wanted = True
        assert await whole(transport, Request("PATCH", "/fine", {}, b"{}", (), check)) == b"done"
        assert len(transport._connections) == 1, "what was not asked leaves the connection as it was"
    assert seen == ["/wanted", "/fine"]


async def test_nothing_runs_between_the_check_and_the_first_byte() -> None:
    """What would run in between is what the check cannot know of."""
    turns: list[str] = []

    async with serve(echo) as address, at(address.port) as transport:
        await whole(transport, get())
        (connection,) = transport._connections
        write = connection.transport.write

        def written(data: bytes) -> None:
            turns.append("written")
            write(data)

        def check() -> None:
            asyncio.get_running_loop().call_soon(turns.append, "another's turn")
            turns.append("asked")

        connection.transport.write = written  # type: ignore[method-assign,assignment]
        await whole(transport, Request("PUT", "/", {}, b"x" * 100_000, (), check))

    assert turns[:2] == ["asked", "written"]
    assert "another's turn" in turns
