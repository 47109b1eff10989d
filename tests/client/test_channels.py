"""The rules of ``client/channels.py``."""

from __future__ import annotations

import json

import pytest

from setpoint.client.channels import ForwardedPort, closing, exit_code, frame, resizing, split
from setpoint.errors import StreamFailed


def test_a_message_begins_with_its_channel() -> None:
    assert frame(2, b"abc") == b"\x02abc"
    assert split(b"\x02abc") == (2, b"abc")
    assert split(b"\x01") == (1, b""), "a channel is open"
    assert split(b"") == (-1, b"")


def test_closing_and_resizing_are_messages_of_their_own() -> None:
    assert closing(0) == b"\xff\x00"
    assert json.loads(resizing(80, 24)[1:]) == {"Width": 80, "Height": 24}
    assert resizing(80, 24)[0] == 4


@pytest.mark.parametrize("size", [(0, 24), (80, 0), (-1, 24), (80, 65536)])
def test_a_terminal_of_impossible_size_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="columns and rows"):
        resizing(*size)


def test_success_is_exit_code_zero() -> None:
    assert exit_code("exec", b'{"metadata":{},"status":"Success"}') == 0


def test_an_exit_code_stands_among_the_causes() -> None:
    status = {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "details": {
            "causes": [{"reason": "Other", "message": "1"}, {"reason": "ExitCode", "message": "137"}]
        },
    }
    assert exit_code("exec", json.dumps(status).encode()) == 137


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (b'{"status":"Failure","reason":"InternalError","message":"no such container"}', "no such container"),
        (b'{"status":"Failure","reason":"NonZeroExitCode","message":"code lost"}', "code lost"),
        (b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":null}}', "NonZeroExitCode"),
        (b'{"status":"Failure"}', "failed, without a word"),
        (b"command terminated", "no Status: 'command terminated'"),
        (b"\xff\xfe", "no Status"),
    ],
)
def test_an_outcome_without_an_exit_code_is_a_failure(outcome: bytes, said: str) -> None:
    with pytest.raises(StreamFailed, match=said):
        exit_code("exec", outcome)


def test_port_numbers_are_taken_off_the_front_of_both_channels() -> None:
    port = ForwardedPort("forward", 8080)
    taken = [port.take(message) for message in (b"\x00\x90\x1f", b"\x01\x90\x1f", b"\x00abc", b"\x00", b"")]
    assert taken == [b"", b"", b"abc", b"", b""]


def test_a_port_number_may_come_in_pieces_and_data_with_it() -> None:
    port = ForwardedPort("forward", 8080)
    assert [port.take(message) for message in (b"\x00\x90", b"\x00\x1fabc", b"\x07what")] == [
        b"",
        b"abc",
        b"",
    ]


def test_words_on_the_error_channel_are_a_failure() -> None:
    port = ForwardedPort("forward", 8080)
    with pytest.raises(StreamFailed, match="forward: connection refused"):
        port.take(b"\x01\x90\x1fconnection refused\n")


def test_another_port_than_asked_for_is_a_failure() -> None:
    with pytest.raises(StreamFailed, match="another port than 8080"):
        ForwardedPort("forward", 8080).take(b"\x00\x50\x00")
