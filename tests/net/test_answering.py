"""The promises of ``net/answering.py``, on bytes."""

from __future__ import annotations

import random

import pytest

from setpoint.net.answering import Answering

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: a\r\nx: b\r\n\r\nhello"
CHUNKS = (
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;e=f\r\nlo\r\n0\r\nT: t\r\n\r\n"
)
EARLY = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
MUCH = 128 * 2**10


def answered(data: bytes, method: str = "GET", size: int = 2**20) -> tuple[Answering, bytes]:
    answering = Answering()
    answering.expect(method)
    body = b""
    for at in range(0, len(data), size):
        answering.feed(data[at : at + size])
        body += answering.take()
    return answering, body


@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize(("data", "status"), [(LENGTH, 200), (CHUNKS, 201), (EARLY + CHUNKS, 201)])
def test_an_answer_is_whole_in_however_many_pieces_it_comes(data: bytes, status: int, size: int) -> None:
    answering, body = answered(data, size=size)
    assert (answering.status, body, answering.is_whole, answering.can_go_on) == (status, b"hello", True, True)
    assert not answering.broken
    assert not answering.is_beyond
    assert "Link" not in answering.headers(), "an early answer's headers are not the answer's"
    assert "T" not in answering.headers(), "nor is what follows a body"


def test_one_answer_follows_another() -> None:
    answering = Answering()
    for method, data, status in [("GET", LENGTH, 200), ("POST", CHUNKS, 201), ("HEAD", LENGTH[:-5], 200)] * 2:
        answering.expect(method)
        answering.feed(data)
        assert (answering.status, answering.is_whole, answering.is_beyond) == (status, True, False)
        assert answering.take() == (b"" if method == "HEAD" else b"hello")


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize("data", [LENGTH, CHUNKS, b"HTTP/1.1 204 No\r\n\r\n", b"\r\n\r\n", b"x"])
def test_what_comes_after_an_answer_is_not_taken_for_more_of_it_nor_for_another(
    data: bytes, size: int
) -> None:
    answering, body = answered(LENGTH + data, size=size)
    assert (answering.status, body, answering.is_whole) == (200, b"hello", True)
    assert answering.is_beyond or not data.strip()


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body_and_need_not_say_so(status: int) -> None:
    answering, body = answered(b"HTTP/1.1 %d Nothing\r\n\r\n" % status)
    assert (answering.status, body, answering.is_whole, answering.can_go_on) == (status, b"", True, True)


@pytest.mark.parametrize("method", ["HEAD", "CONNECT"])
def test_what_has_no_body_by_what_was_asked_is_whole_with_its_head(method: str) -> None:
    answering, _ = answered(LENGTH[:-5], method)
    assert (answering.is_whole, answering.can_go_on, answering.is_beyond) == (True, True, False)
    answering, body = answered(LENGTH, method)
    assert (answering.is_whole, body, answering.is_beyond) == (True, b"", True)


def test_a_proxy_that_refuses_says_why_in_a_body() -> None:
    answering, body = answered(LENGTH.replace(b"200 OK", b"403 No"), "CONNECT")
    assert (answering.status, body) == (403, b"hello")


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    answering, body = answered(b"HTTP/1.1 200 OK\r\n\r\nhello")
    assert (body, answering.is_whole, answering.ends_with_connection) == (b"hello", False, True)
    answering, _ = answered(LENGTH[:-1])
    assert not answering.ends_with_connection
    answering, _ = answered(b"HTTP/1.1 200 OK\r\n")
    assert not answering.ends_with_connection, "its head may have said more"


@pytest.mark.parametrize(
    "said",
    [
        b"Content-Length: 2\r\nContent-Length: 3",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: identity",
        b"Content-Length: -1",
        b"Content-Length: +1",
        b"Content-Length: 0x5",
        b"Content-Length: 5, 5",
        b"Content-Length: 99999999999999999999999",
        b"X: a\nContent-Length: 0",
        b" folded: x",
        b"X y: z",
        b"X: \0",
    ],
)
def test_an_answer_whose_end_is_in_doubt_is_none(said: bytes) -> None:
    answering, body = answered(b"HTTP/1.1 200 OK\r\n" + said + b"\r\n\r\nhello")
    assert answering.broken
    assert not answering.is_whole
    assert not answering.ends_with_connection or not body


@pytest.mark.parametrize(
    "chunk", [b"g\r\nx", b"-1\r\nx", b"1\nx\n", b"1\r\nxx\r\n", b"fffffffffffffffff\r\n"]
)
def test_chunks_that_make_no_sense_are_no_body(chunk: bytes) -> None:
    answering, _ = answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n")
    assert answering.broken
    assert not answering.is_whole


@pytest.mark.parametrize("status", [b"99", b"000", b"099", b"2000", b"abc", b"-20"])
def test_a_status_is_of_three_digits(status: bytes) -> None:
    answering, _ = answered(b"HTTP/1.1 " + status + b" Odd\r\nContent-Length: 0\r\n\r\n")
    assert answering.broken
    assert not answering.has_head, "whoever gets it would take it for a good one"
    assert not answering.is_whole


@pytest.mark.parametrize("size", [1_000, 2**16])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"y" * (MUCH + 1), id="a header that does not end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"y" * MUCH + b"\r\n\r\n", id="a long header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * (MUCH // 5) + b"\r\n", id="many headers"),
        pytest.param(b"HTTP/1.1 200 " + b"y" * (MUCH + 1), id="many words"),
        pytest.param(b"HTTP/1.1 100 Go on\r\nX: y\r\n\r\n" * (MUCH // 5), id="early answers without end"),
        pytest.param(CHUNKS[:-4] + b"T: t\r\n" * (MUCH // 5), id="a body that is followed by too much"),
        pytest.param(CHUNKS[:-4] + b"\r\nT: " + b"t" * (2 * MUCH), id="a trailer that does not end"),
    ],
)
def test_a_head_is_not_kept_without_end(data: bytes, size: int) -> None:
    answering, _ = answered(data, size=size)
    assert "too long" in answering.broken


def test_a_long_head_is_too_long_when_it_comes_at_once_too() -> None:
    answering, _ = answered(b"HTTP/1.1 200 OK\r\nX: " + b"y" * MUCH + b"\r\nContent-Length: 2\r\n\r\nok")
    assert "too long" in answering.broken
    assert not answering.has_head


def test_a_long_body_is_not_taken_for_a_long_head() -> None:
    size = 4 * MUCH
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size)
    answering, body = answered(data, size=1_000)
    assert (answering.broken, len(body), answering.is_whole) == ("", size, True)


def test_a_connection_that_is_to_be_closed_does_not_go_on() -> None:
    for data in (
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    ):
        answering, _ = answered(data)
        assert (answering.is_whole, answering.can_go_on) == (True, False)


def test_an_upgrade_leaves_what_follows_its_head_as_it_came() -> None:
    head = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    answering, _ = answered(head + b"\x81\x00more")
    assert (answering.status, answering.is_whole, answering.rest) == (101, True, b"\x81\x00more")


def test_whatever_comes_is_told_and_never_raised() -> None:
    dice = random.Random(1)
    for _ in range(3_000):
        data = bytearray(dice.choice((LENGTH, CHUNKS, EARLY + LENGTH, LENGTH + CHUNKS)))
        for _ in range(dice.randint(0, 4)):
            data[dice.randrange(len(data))] = dice.choice(b"\0\r\n :;0123456789aZ\xff")
        method = dice.choice(("GET", "HEAD", "CONNECT"))
        in_one, body = answered(bytes(data), method)
        in_many, same = answered(bytes(data), method, size=dice.randint(1, 9))
        told = (in_one.status, in_one.is_whole, bool(in_one.broken))
        assert told == (in_many.status, in_many.is_whole, bool(in_many.broken)), bytes(data)
        assert body == same or in_one.broken, bytes(data)
