"""How log lines look: the promises of ``manager/logs.py``."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from setpoint.api.names import Key
from setpoint.controller.worker import Log, Look, looking
from setpoint.manager.logs import JsonFormatter, TextFormatter, configure

WORDS: dict[str, Any] = {
    "controller": "webapp",
    "controller_kind": "WebApp",
    "namespace": "shop",
    "object_name": "web",
    "reconcile_id": "1a2b-3",
}


def record(
    message: str = "made it", *args: Any, level: int = logging.INFO, **extra: Any
) -> logging.LogRecord:
    made = logging.getLogger("test").makeRecord(
        "setpoint.controller.webapp", level, "here.py", 1, message, args, None, extra=extra
    )
    made.created, made.msecs = 1_893_456_000.25, 250.0
    return made


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    line = JsonFormatter().format(made)
    assert "\n" not in line
    return dict(json.loads(line))


def test_json_has_the_keys_of_controller_runtime() -> None:
    assert as_json(record("made %d", 3, **WORDS)) == {
        "level": "info",
        "ts": "2030-01-01T00:00:00.250Z",
        "logger": "setpoint.controller.webapp",
        "msg": "made 3",
        "controller": "webapp",
        "controllerKind": "WebApp",
        "namespace": "shop",
        "name": "web",
        "reconcileID": "1a2b-3",
    }


def test_text_says_when_how_bad_about_what_and_what() -> None:
    assert TextFormatter().format(record("made it", **WORDS)) == (
        "2030-01-01T00:00:00.250Z INFO    webapp shop/web: made it  controllerKind=WebApp reconcileID=1a2b-3"
    )


def test_an_error_comes_with_where_it_was_raised() -> None:
    made = record("it failed", level=logging.ERROR)
    try:
        WORDS["no such thing"]
    except LookupError:
        made.exc_info = sys.exc_info()
    line = as_json(made)
    assert line["error"] == "'no such thing'"
    assert "test_logs.py" in line["stacktrace"]
    assert "\n    Traceback" in TextFormatter().format(made)


def test_a_message_of_several_lines_cannot_pass_for_another_line() -> None:
    forged = "x\n2030-01-01T00:00:00.250Z INFO    webapp: all is well"
    for line in TextFormatter().format(record(forged)).split("\n")[1:]:
        assert line.startswith("    ")
    assert "\n" not in TextFormatter().format(record("x", field="a\nb"))


def test_whatever_is_logged_during_a_reconcile_says_which_one() -> None:
    reader: Any = None  # nothing is read
    look = Look("webapp", Key("shop", "web"), "1a2b-3", (), 0, reader, Log(logging.getLogger(), WORDS))
    with looking(look):
        line = as_json(record("from a library"))
    assert (line["controller"], line["name"], line["reconcileID"]) == ("webapp", "web", "1a2b-3")
    assert "reconcileID" not in as_json(record("later"))


@pytest.mark.parametrize(
    ("message", "extra", "secret"),
    [
        ("Authorization: Bearer abcdef0123456789", {}, "abcdef0123456789"),
        ("got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0x.c2lnbmF0dXJl", {}, "c2lnbmF0dXJl"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", {}, "MIIE"),
        ("login", {"password": "hunter22"}, "hunter22"),
        ("login", {"request": {"headers": {"authorization": "hunter22"}}}, "hunter22"),
        ("login", {"api_key": "hunter22", "tokens": ["hunter22"]}, "hunter22"),
    ],
)
def test_secrets_are_left_out(message: str, extra: dict[str, Any], secret: str) -> None:
    made = record(message, **extra)
    assert secret not in JsonFormatter().format(made)
    assert secret not in TextFormatter().format(made)


def test_what_json_does_not_know_is_written_as_text() -> None:
    assert as_json(record("x", key=Key("a", "b"), number=3, nothing=None)) | {"ts": ""} == {
        "level": "info",
        "ts": "",
        "logger": "setpoint.controller.webapp",
        "msg": "x",
        "key": "a/b",
        "number": 3,
        "nothing": None,
    }


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def untouched() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("untouched")
def test_colour_only_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream, coloured in ((Terminal(), True), (io.StringIO(), False)):
        configure("text", stream=stream)
        logging.getLogger("x").error("bad")
        assert ("\x1b[" in stream.getvalue()) is coloured
    monkeypatch.setenv("NO_COLOR", "1")
    configure("text", stream=(quiet := Terminal()))
    logging.getLogger("x").error("bad")
    assert "\x1b[" not in quiet.getvalue()


@pytest.mark.usefixtures("untouched")
def test_the_level_is_that_of_the_process() -> None:
    configure("json", level="WARNING", stream=(stream := io.StringIO()))
    logging.getLogger("x").info("not this")
    logging.getLogger("x").warning("this")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["this"]
