"""Who reads a hundred watches: every event is seen, however it is cut, and a watch that ended goes on."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bench import server
from bench.watchers import Watch


class Line:
    """The other end, which keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def sendall(self, data: bytes) -> None:
        self.asked.append(data)


def watch(events: int) -> tuple[Watch, Line]:
    asked = {"events": events, "version": "7", "headers": {}, "path": "/secrets", "url": "https://here:1"}
    line = Line()
    return Watch(asked, cast("Any", line)), line


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def event(number: int) -> bytes:
    named = b'{"type":"ADDED","object":{"metadata":{"name":"seen-%d","resourceVersion":"%d",' % (
        number,
        100 + number,
    )
    return named + b'"uid":"%s"}}}\n' % (b"0" * 60)


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_name_is_seen_however_chunks_and_reads_cut_it(size: int) -> None:
    said = b"".join(event(number) for number in range(9))
    sent = chunked(*(said[at : at + 50] for at in range(0, len(said), 50)))
    reading, _ = watch(9)
    for at in range(0, len(sent), size):
        reading.take(sent[at : at + size], now=float(at))
    assert reading.left == 0
    assert None not in reading.seen


def test_a_watch_that_the_server_ended_goes_on_after_the_last_version_it_saw() -> None:
    reading, line = watch(3)
    reading.take(chunked(event(0), event(1)) + b"0\r\n\r\n", now=1.0)
    assert reading.resumed == 1
    assert b"resourceVersion=101 " in line.asked[0]
    reading.take(b"HTTP/1.1 200 OK\r\n\r\n" + chunked(event(1), event(2)), now=2.0)
    assert reading.seen == [1.0, 1.0, 2.0], "what comes again was seen before"


def test_events_that_never_came_are_an_error_that_says_what_was_seen() -> None:
    told = [{"seen": [[1.0, None]], "cpu": 0.1, "resumed": 3, "lost": 0}]
    with pytest.raises(server.Lost, match=r"1 of 2 events came.*ended watches 3 times"):
        server._late([0.5, 0.6], told, seconds=1.0)


def test_a_figure_that_a_round_lacks_is_the_median_of_the_others() -> None:
    assert server.medians([{"a": 1.0}, {"a": 3.0, "b": 5.0}]) == {"a": 2.0, "b": 5.0}
