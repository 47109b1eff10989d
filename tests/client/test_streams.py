"""The promises of ``client/streams.py``, against a peer that really runs commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl, urlsplit

import pytest

from setpoint.api.names import Key
from setpoint.client.streams import attach_call, exec_call, lines, log_call, read_log, run, start
from setpoint.errors import AnswerLost, BadAnswer, Forbidden, NotFound, StreamFailed
from setpoint.net.listen import Answer
from setpoint.net.transport import Request, WebSocket
from tests.client.kubelet import Kubelet, connected

POD = Key("shop", "web-0")
SH = ["sh", "-c"]


def test_an_exec_asks_for_each_word_of_the_command() -> None:
    call = exec_call(POD, ["sh", "-c", "echo a&b"], container="app", stdin=True)
    url = urlsplit(call.target)

    assert (call.method, url.path) == ("GET", "/api/v1/namespaces/shop/pods/web-0/exec")
    assert parse_qsl(url.query) == [
        ("stdin", "true"),
        ("stdout", "true"),
        ("stderr", "true"),
        ("tty", "false"),
        ("container", "app"),
        ("command", "sh"),
        ("command", "-c"),
        ("command", "echo a&b"),
    ]
    assert call.upgrade == ("v5.channel.k8s.io", "v4.channel.k8s.io")
    assert call.doing == "exec v1 Pod shop/web-0"
    assert call.verb == "create", "not to be repeated"


def test_a_terminal_has_one_output() -> None:
    assert "&stderr=false&tty=true" in exec_call(POD, ["sh"], tty=True).target


@pytest.mark.parametrize("command", ["ls -l", [], ""])
def test_a_command_is_a_list_of_words(command: list[str]) -> None:
    with pytest.raises(ValueError, match="a list of words"):
        exec_call(POD, command)


def test_a_log_asks_for_what_was_said_and_no_more() -> None:
    assert log_call(POD).target == "/api/v1/namespaces/shop/pods/web-0/log"
    call = log_call(POD, container="app", follow=True, tail_lines=0, since_time="2026-01-01T00:00:00Z")
    assert parse_qsl(urlsplit(call.target).query) == [
        ("container", "app"),
        ("follow", "true"),
        ("sinceTime", "2026-01-01T00:00:00Z"),
        ("tailLines", "0"),
    ]


@pytest.mark.parametrize("speaks", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_a_command_runs_to_its_end_under_either_protocol(speaks: str) -> None:
    async with connected(Kubelet(speaks=(speaks,))) as open_:
        completed = await run(open_, exec_call(POD, [*SH, "echo out; echo err >&2; exit 3"]))

    assert (completed.exit_code, completed.stdout, completed.stderr) == (3, b"out\n", b"err\n")


async def test_a_command_that_succeeds_has_exit_code_zero() -> None:
    async with connected(Kubelet()) as open_:
        assert (await run(open_, exec_call(POD, ["true"]))).exit_code == 0


async def test_a_command_is_given_its_input_and_the_end_of_it() -> None:
    data = bytes(range(256)) * 8000
    async with connected(Kubelet()) as open_:
        completed = await run(open_, exec_call(POD, ["cat"], stdin=True), stdin=data)

    assert completed.stdout == data


async def test_a_command_may_end_without_reading_its_input() -> None:
    async with connected(Kubelet()) as open_:
        completed = await run(open_, exec_call(POD, [*SH, "exit 4"], stdin=True), stdin=bytes(5_000_000))

    assert completed.exit_code == 4


async def test_input_cannot_be_ended_under_v4_and_it_says_so() -> None:
    async with connected(Kubelet(speaks=("v4.channel.k8s.io",))) as open_:
        with pytest.raises(StreamFailed, match=r"stdin cannot be ended .*1\.30"):
            await run(open_, exec_call(POD, ["cat"], stdin=True), stdin=b"x")


async def test_one_talks_with_a_command_back_and_forth() -> None:
    async with connected(Kubelet()) as open_, start(open_, exec_call(POD, ["cat"], stdin=True)) as process:
        for word in (b"one", b"two"):
            await process.stdin.write(word)
            assert await anext(process.stdout) == word
        await process.stdin.close()
        assert await process.wait() == 0
        assert [data async for data in process.stdout] == []


async def test_outputs_come_together_in_the_order_they_were_printed() -> None:
    command = [*SH, "read x; echo 1; read x; echo 2 >&2; read x; echo 3"]
    seen = []
    async with connected(Kubelet()) as open_, start(open_, exec_call(POD, command, stdin=True)) as process:
        for _ in range(3):
            await process.stdin.write(b"\n")
            seen.append(await anext(process))
        assert [rest async for rest in process] == []

    assert seen == [("stdout", b"1\n"), ("stderr", b"2\n"), ("stdout", b"3\n")]


async def test_outputs_that_waited_keep_their_order() -> None:
    kubelet = ending(b"\x01a", b"\x02b", b"\x01c", b'\x03{"status":"Success"}')
    async with connected(kubelet) as open_, start(open_, exec_call(POD, ["cat"])) as process:
        assert await process.wait() == 0
        assert [data async for _, data in process] == [b"a", b"b", b"c"]


async def test_each_output_may_be_read_alone_and_both_at_once() -> None:
    command = [*SH, "i=0; while [ $i -lt 200 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done; exit 1"]
    async with connected(Kubelet()) as open_, start(open_, exec_call(POD, command)) as process:
        out, err, code = await asyncio.gather(process.stdout.read(), process.stderr.read(), process.wait())

    assert out == b"".join(b"out%d\n" % i for i in range(200))
    assert err == b"".join(b"err%d\n" % i for i in range(200))
    assert code == 1


async def test_output_waits_for_its_reader_after_the_end() -> None:
    async with (
        connected(Kubelet()) as open_,
        start(open_, exec_call(POD, [*SH, "echo a; echo b >&2"])) as process,
    ):
        assert await process.wait() == 0
        assert await process.stdout.read() == b"a\n"
        assert await process.stderr.read() == b"b\n"


async def test_output_that_nobody_reads_is_bounded() -> None:
    command = [*SH, "echo first >&2; read x; head -c 100000 /dev/zero"]
    async with (
        connected(Kubelet()) as open_,
        start(open_, exec_call(POD, command, stdin=True), unread_limit=50_000) as process,
    ):
        assert await anext(process.stderr) == b"first\n"
        await process.stdin.write(b"\n")
        with pytest.raises(StreamFailed, match=r"more than 50000 bytes .*read stdout and stderr both"):
            await anext(process.stderr)


async def test_output_that_is_read_may_be_of_any_length() -> None:
    call = exec_call(POD, ["head", "-c", "500000", "/dev/zero"])
    async with connected(Kubelet()) as open_, start(open_, call, unread_limit=50_000) as process:
        assert sum([len(data) async for data in process.stdout]) == 500_000


async def test_a_reader_gets_at_once_what_another_received_for_it() -> None:
    call = exec_call(POD, [*SH, "echo now >&2; read x; echo done"], stdin=True)
    async with connected(Kubelet()) as open_, start(open_, call) as process:
        reading = asyncio.ensure_future(process.stdout.read())
        await asyncio.sleep(0)  # it is the one that receives
        assert await anext(process.stderr) == b"now\n"
        await process.stdin.write(b"\n")
        assert await reading == b"done\n"


async def test_collected_output_is_bounded() -> None:
    call = exec_call(POD, ["head", "-c", "100000", "/dev/zero"])
    async with connected(Kubelet()) as open_:
        with pytest.raises(StreamFailed, match="printed more than 5000 bytes to stdout"):
            await run(open_, call, output_limit=5000)
        async with start(open_, call) as process:
            with pytest.raises(StreamFailed, match="there are more than 5000 bytes"):
                await process.stdout.read(limit=5000)


async def test_lines_of_an_output() -> None:
    async with (
        connected(Kubelet()) as open_,
        start(open_, exec_call(POD, ["printf", "a\\nb\\n\\nc"])) as process,
    ):
        assert [line async for line in lines(process.stdout)] == [b"a", b"b", b"", b"c"]


async def test_a_terminal_has_the_size_it_is_given() -> None:
    call = exec_call(POD, [*SH, "read x; stty size"], stdin=True, tty=True)
    async with connected(Kubelet()) as open_, start(open_, call) as process:
        await process.resize(132, 43)
        await process.stdin.write(b"\n")
        assert b"43 132" in await process.stdout.read()


async def test_attaching_is_like_running() -> None:
    async def app(request: Request) -> Answer:
        async def talk(websocket: WebSocket) -> None:
            await websocket.send(b"\x01what it prints")
            await websocket.send(b'\x03{"status":"Success"}')

        assert urlsplit(request.target).path.endswith("/web-0/attach")
        return Answer(talk=talk, subprotocol="v5.channel.k8s.io")

    async with connected(app) as open_, start(open_, attach_call(POD)) as process:
        assert await process.stdout.read() == b"what it prints"


async def test_a_command_that_cannot_be_run_fails_with_the_servers_words() -> None:
    async with connected(Kubelet()) as open_:
        with pytest.raises(StreamFailed, match=r"exec v1 Pod shop/web-0: exec failed: no-such: not found"):
            await run(open_, exec_call(POD, ["no-such"]))


def ending(*messages: bytes, cut: bool = False) -> Kubelet:
    """A kubelet that says this and is gone, with or without a word."""

    async def talk(websocket: WebSocket) -> None:
        for message in messages:
            await websocket.send(message)
        if cut:
            websocket._stream._req.transport.abort()  # type: ignore[attr-defined]

    kubelet = Kubelet()
    kubelet.answer = Answer(talk=talk, subprotocol="v5.channel.k8s.io")
    return kubelet


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (False, "the server closed the stream before the command's end was known"),
        (True, "broken off before the command's end was known: the connection was cut"),
    ],
)
async def test_a_stream_that_breaks_off_is_not_taken_for_a_shorter_output(cut: bool, said: str) -> None:
    async with connected(ending(b"\x01part", cut=cut)) as open_:
        with pytest.raises(StreamFailed, match=said):
            await run(open_, exec_call(POD, ["cat"]))
        async with start(open_, exec_call(POD, ["cat"])) as process:
            assert await anext(process.stdout) == b"part"
            for _ in range(2):
                with pytest.raises(StreamFailed, match=said):
                    await anext(process.stdout)
            with pytest.raises(StreamFailed, match=said):
                await process.wait()


async def test_output_after_the_outcome_is_not_lost_and_a_cut_then_does_no_harm() -> None:
    kubelet = ending(b"\x01one", b'\x03{"status":"Success"}', b"\x01two", cut=True)
    async with connected(kubelet) as open_:
        assert (await run(open_, exec_call(POD, ["cat"]))).stdout == b"onetwo"


async def test_a_server_that_never_hangs_up_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setpoint.client.streams._LAST_WORDS", 0.01)

    async def talk(websocket: WebSocket) -> None:
        await websocket.send(b'\x03{"status":"Success"}')
        await websocket.receive()

    kubelet = Kubelet()
    kubelet.answer = Answer(talk=talk, subprotocol="v5.channel.k8s.io")
    async with connected(kubelet) as open_:
        assert (await run(open_, exec_call(POD, ["cat"]))).exit_code == 0


async def test_writing_to_a_command_that_is_gone_says_so() -> None:
    async with (
        connected(ending(b'\x03{"status":"Success"}')) as open_,
        start(open_, exec_call(POD, ["cat"], stdin=True)) as process,
    ):
        assert await process.wait() == 0
        with pytest.raises(StreamFailed, match="the command takes no more input"):
            await process.stdin.write(b"too late")


async def test_a_refused_upgrade_is_the_servers_refusal() -> None:
    kubelet = Kubelet()
    kubelet.answer = Answer(403, {}, b'{"kind":"Status","reason":"Forbidden","message":"no exec for you"}')
    async with connected(kubelet) as open_:
        with pytest.raises(Forbidden, match="exec v1 Pod shop/web-0: no exec for you"):
            await run(open_, exec_call(POD, ["cat"]))


async def test_an_answer_that_is_no_stream_is_bad() -> None:
    kubelet = Kubelet()
    kubelet.answer = Answer(200, {}, b"hello")
    async with connected(kubelet) as open_:
        with pytest.raises(BadAnswer, match="answered 200, and not with a stream"):
            await run(open_, exec_call(POD, ["cat"]))


async def test_a_server_that_chooses_no_protocol_is_not_talked_to() -> None:
    async def talk(websocket: WebSocket) -> None:
        await websocket.receive()

    kubelet = Kubelet()
    kubelet.answer = Answer(talk=talk)
    async with connected(kubelet) as open_:
        with pytest.raises(BadAnswer, match=r"speaks none of v5\.channel"):
            await run(open_, exec_call(POD, ["cat"]))


def logging_(*pieces: bytes, then: BaseException | None = None) -> Kubelet:
    async def log() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
        if then is not None:
            raise then

    kubelet = Kubelet()
    kubelet.log = log
    return kubelet


async def test_a_log_is_lines_pieces_or_one_text() -> None:
    async with connected(logging_(b"one\ntw", b"o\n\nlast")) as open_:
        async with read_log(open_, log_call(POD)) as log:
            assert [line async for line in log] == [b"one", b"two", b"", b"last"]
        async with read_log(open_, log_call(POD)) as log:
            assert b"".join([piece async for piece in log.chunks()]) == b"one\ntwo\n\nlast"
        async with read_log(open_, log_call(POD)) as log:
            assert await log.read() == b"one\ntwo\n\nlast"


async def test_a_followed_log_gives_each_line_as_it_is_printed() -> None:
    printed, left = asyncio.Event(), asyncio.Event()

    async def follow() -> AsyncIterator[bytes]:
        try:
            yield b"one\n"
            await printed.wait()
            yield b"two\nthr"
            await asyncio.get_running_loop().create_future()
        finally:
            left.set()

    kubelet = Kubelet()
    kubelet.log = follow
    async with connected(kubelet) as open_:
        async with read_log(open_, log_call(POD, follow=True)) as log:
            following = aiter(log)
            assert await anext(following) == b"one"
            printed.set()
            assert await anext(following) == b"two"
        await left.wait()


async def test_a_line_without_end_is_a_failure_and_not_a_full_memory() -> None:
    async with (
        connected(logging_(b"x" * 1000, b"x" * 1000)) as open_,
        read_log(open_, log_call(POD), line_limit=1500) as log,
    ):
        with pytest.raises(StreamFailed, match="1500 bytes"):
            await anext(aiter(log))


async def test_a_log_that_is_cut_is_not_taken_for_a_shorter_one(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        connected(logging_(b"one\n", then=RuntimeError("kubelet died"))) as open_,
        read_log(open_, log_call(POD)) as log,
    ):
        with pytest.raises(AnswerLost):
            [line async for line in log]


async def test_the_log_of_a_pod_that_is_not_there() -> None:
    kubelet = Kubelet()
    kubelet.answer = Answer(
        404,
        {},
        b'{"kind":"Status","reason":"NotFound","message":"pods web-0 not found","details":{"name":"web-0"}}',
    )
    async with connected(kubelet) as open_:
        with pytest.raises(NotFound, match="read the log of v1 Pod shop/web-0: pods web-0 not found"):
            async with read_log(open_, log_call(POD)):
                pass
