"""The promises of ``net/arriving.py``, on bytes."""

from __future__ import annotations

import gc

import pytest

from setpoint.net.arriving import SMALL, Arrived, Arriving
from setpoint.net.transport import Request

POST = b"POST /a?b=%20c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def piece_by_piece(arriving: Arriving, data: bytes, size: int = 1) -> list[Arrived]:
    return [
        each for at in range(0, len(data), size) for each in arriving.feed(data[at : at + size])
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_request_is_whole_in_however_many_pieces_it_comes(size: int) -> None:
    found = piece_by_piece(Arriving(5), POST + GET + POST, size)
    assert [(one.request.method, one.request.target, one.request.body) for one in found] == [
        ("POST", "/a?b=%20c", b"hello"),
        ("GET", "/", None),
        ("POST", "/a?b=%20c", b"hello"),
    ]
    assert found[0].request.headers["host"] == "x"
    assert not any(one.is_last or one.is_old or one.is_too_long for one in found)


def test_chunks_are_one_body() -> None:
    sent = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    (found,) = piece_by_piece(Arriving(5), sent, 4)
    assert found.request.body == b"abcde"


@pytest.mark.parametrize(
    "said",
    [
        b"Content-Length: 2\r\nContent-Length: 3",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Content-Length: -1",
        b"Content-Length: +1",
        b"Content-Length: 99999999999999999999999",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: gzip, chunked",
        b"Content-Length: " + b"0" * 5_000 + b"3",
        b"X: a\nContent-Length: 0",
        b" folded: x",
        b"X y: z",
        b"X: \0",
        b"Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 3",
        b"Upgrade: websocket\r\nConnection: upgrade\r\nTransfer-Encoding: chunked",
    ],
)
def test_a_request_whose_end_is_in_doubt_is_none_and_neither_is_what_follows(said: bytes) -> None:
    arriving = Arriving(100)
    assert not arriving.feed(b"POST / HTTP/1.1\r\nHost: x\r\n" + said + b"\r\n\r\nabc" + GET)
    assert arriving.broken
    assert not arriving.feed(GET)


@pytest.mark.parametrize("size", [100, 10_000_000])
@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nX: ", b"GET /"])
def test_a_head_without_end_is_not_kept(sent: bytes, size: int) -> None:
    arriving = Arriving(100)
    arriving.feed(sent)
    for _ in range(200_000 // size + 1):
        arriving.feed(b"a" * size)
    assert arriving.broken == "the head is too long"


def test_chunks_are_not_for_http_1_0() -> None:
    arriving = Arriving(100)
    sent = b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert not arriving.feed(sent + GET)
    assert arriving.broken


def test_what_follows_a_body_is_not_taken_for_headers() -> None:
    sent = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nImpersonate-User: x\r\n\r\n"
    (found,) = Arriving(5).feed(sent)
    assert found.request.body == b"ab"
    assert list(found.request.headers) == ["Transfer-Encoding"]


@pytest.mark.parametrize("trailer", [b"X: ", b"X: y\r\n", b"Y"])
def test_what_follows_a_body_without_end_is_not_kept(trailer: bytes) -> None:
    arriving = Arriving(5)
    arriving.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n")
    for _ in range(200):
        arriving.feed(trailer * (1_000 // len(trailer)))
    assert arriving.broken == "the head is too long"


@pytest.mark.parametrize("size", [1_000, 100_000])
@pytest.mark.parametrize("field", [b"X: " + b"a" * 90_000 + b"\r\n", b"X: y\r\n" * 18_000])
def test_a_head_is_as_long_as_it_is_in_however_many_pieces_it_comes(field: bytes, size: int) -> None:
    arriving = Arriving(5)
    (found,) = piece_by_piece(arriving, b"GET / HTTP/1.1\r\n" + field + b"\r\n", size)
    assert len(found.request.headers["x"]) > 50_000


def test_many_requests_at_once_are_not_one_head() -> None:
    arriving = Arriving(100_000)
    sent = (b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000) * 3
    found = [arriving.feed(piece) for piece in (sent[:5], sent[5:200_100], sent[200_100:])]
    assert [len(each) for each in found] == [0, 2, 1]


def test_a_connection_between_two_requests_holds_nothing_of_the_last_ones_body() -> None:
    body = bytes(100_000)
    arriving = Arriving(len(body))
    assert arriving.feed(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    held = [each for each in gc.get_referents(arriving.__dict__) if isinstance(each, list)]
    assert not any(held)


def test_many_headers_are_as_long_as_one() -> None:
    arriving = Arriving(100)
    fields = b"".join(b"X%d: %b\r\n" % (at, b"a" * 1_000) for at in range(500))
    assert not arriving.feed(b"GET / HTTP/1.1\r\n" + fields + b"\r\n")
    assert arriving.broken


def test_a_body_that_will_be_too_long_is_known_before_it_comes_and_dropped_as_it_does() -> None:
    arriving = Arriving(4)
    assert not arriving.feed(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n")
    assert arriving.is_in_body
    assert arriving.is_too_long
    (found,) = arriving.feed(b"hello")
    assert found.is_too_long
    assert found.request.body is None
    (found,) = arriving.feed(b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nfine")
    assert not found.is_too_long


def test_a_body_of_chunks_is_too_long_once_it_is() -> None:
    arriving, told = Arriving(4), []
    for sent in (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"2\r\nde\r\n"):
        arriving.feed(sent)
        told.append(arriving.is_too_long)
    assert told == [False, True]
    (found,) = arriving.feed(b"0\r\n\r\n")
    assert found.is_too_long


def test_how_long_a_body_may_be_is_asked_of_its_head_before_any_of_it_is_kept() -> None:
    asked: list[str] = []

    def most_body(request: Request) -> int:
        assert request.body is None
        asked.append(request.target)
        return 10 * SMALL if request.headers.get("who") == "friend" else SMALL

    arriving = Arriving(5 * SMALL, most_body=most_body)
    head = b"POST /%d HTTP/1.1\r\nWho: %b\r\nContent-Length: %d\r\n\r\n"
    for number, (who, length, is_too_long) in enumerate(
        [
            (b"friend", 5 * SMALL, False),
            (b"friend", 5 * SMALL + 1, True),
            (b"stranger", SMALL, False),
            (b"stranger", SMALL + 1, True),
        ]
    ):
        assert not arriving.feed(head % (number, who, length))
        assert arriving.is_too_long == is_too_long
        (found,) = arriving.feed(b"x" * length)
        assert found.is_too_long == is_too_long
        assert (found.request.body is None) == is_too_long
    assert asked == ["/0", "/1", "/3"], "what is small is anybody's"
    chunks = (
        b"POST /4 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n" + b"x" * 4097 + b"\r\n0\r\n\r\n"
    )
    (found,) = arriving.feed(chunks)
    assert found.is_too_long
    assert asked[-1] == "/4"


def test_a_request_tells_how_much_is_kept_of_it() -> None:
    (found,) = Arriving(5).feed(POST)
    assert len(b"/ahellohostxcontent-length5") <= found.size <= len(POST)


def test_who_asks_first_is_known_until_the_body_has_come() -> None:
    arriving = Arriving(100)
    arriving.feed(b"POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n")
    assert arriving.expects_leave
    arriving.feed(b"ok")
    assert not arriving.expects_leave


@pytest.mark.parametrize(
    ("sent", "is_last", "is_old"),
    [
        (GET, False, False),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", True, False),
        (b"GET / HTTP/1.0\r\n\r\n", True, True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False, True),
        (b"CONNECT x:1 HTTP/1.1\r\n\r\n", True, False),
    ],
)
def test_what_the_connection_does_after_the_answer_is_said_by_the_request(
    sent: bytes, *, is_last: bool, is_old: bool
) -> None:
    (found,) = Arriving(100).feed(sent)
    assert (found.is_last, found.is_old) == (is_last, is_old)


def test_an_upgrade_is_told_and_what_follows_is_read_as_ever() -> None:
    arriving = Arriving(100)
    wanted = b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: %b\r\nSec-WebSocket-Protocol: a, b\r\n\r\n"
    found = arriving.feed(wanted % b"websocket" + wanted % b"h2c" + GET)
    assert [one.request.upgrade for one in found] == [("a", "b"), (), ()]


def test_the_clients_certificate_is_told_with_each_request() -> None:
    found = Arriving(100, b"der").feed(GET + GET)
    assert [one.request.certificate for one in found] == [b"der", b"der"]


def test_bytes_that_are_no_text_survive() -> None:
    (found,) = Arriving(100).feed(b"GET / HTTP/1.1\r\nX: \xff\xc3\xa9\r\n\r\n")
    assert found.request.headers["x"].encode("utf-8", "surrogateescape") == b"\xff\xc3\xa9"
