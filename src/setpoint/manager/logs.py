"""How log lines look: JSON for machines, text for people.

1. What a line is about is in fields of its own, under controller-runtime's names: ``controller``,
   ``controllerKind``, ``namespace``, ``name``, ``reconcileID``.  Whatever is logged during a reconcile has
   them, with any logger; other ``extra`` fields go along.
2. Every line of JSON is one line.  In text, what goes on over several lines is indented, so that no message
   can pass for another line.
3. Tokens, passwords and keys that stray into a line are left out.  This is a net below those who must not log
   them in the first place, and it has holes.
4. Text is coloured only on a terminal, and not where NO_COLOR is set.

Only ``configure`` touches the process's logging, and only the command line calls it; a program that uses a
Manager has its own logging, and may use the formatters.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import IO, Any, Literal, TypeAlias, cast

from setpoint.controller.worker import current_look

Format: TypeAlias = Literal["json", "text"]

# How fields are called inside, where "name" is the logger's own, and how outside.
_NAMES = {
    "object_name": "name",
    "reconcile_id": "reconcileID",
    "controller_kind": "controllerKind",
    "controller_group": "controllerGroup",
}
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_SECRET_FIELD = re.compile(
    r"token|passw|secret(?!_?name)|authorization|credential|private_?key|api_?key", re.IGNORECASE
)


def _hide_token(found: re.Match[str]) -> str:
    parts = found[0].split(".")
    is_token = any(
        "eyJ" in first and len(first) >= 11 and len(second) >= 8 for first, second in pairwise(parts)
    )
    return "…" if is_token else found[0]


_Replacement: TypeAlias = str | Callable[[re.Match[str]], str]
_SECRETS: tuple[tuple[re.Pattern[str], _Replacement], ...] = (
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE), r"\1 …"),
    (re.compile(r"\beyJ[\w.-]*+"), _hide_token),  # perhaps a JSON Web Token
    (re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|\Z)", re.DOTALL), r"\1…\2"),
)
_COLOURS = {"DEBUG": "2", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}


def configure(format: Format = "text", *, level: str = "INFO", stream: IO[str] | None = None) -> None:  # noqa: A002 - the option's name
    """Have all log lines of this process look so."""
    stream = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter(colour=_is_colourful(stream)))
    logging.basicConfig(level=level, handlers=[handler], force=True)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """What a line is about, by the names that are shown."""
    look = current_look()
    about = {} if look is None else dict(look.log.extra or {})
    about |= {name: value for name, value in vars(record).items() if name not in _OWN}
    return {_NAMES.get(name, name): _shown(name, value) for name, value in about.items() if value != ""}


def take_object(fields: dict[str, Any]) -> str:
    """The object that a line is about, as ``namespace/name``, taken out of its fields; "" for none."""
    namespace, name = fields.pop("namespace", ""), fields.pop("name", "")
    return f"{namespace}/{name}" if namespace and name else str(name)


def without_secrets(text: str) -> str:
    """The text, less what looks like a secret."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


class JsonFormatter(logging.Formatter):
    """A line of JSON, as zap writes it for controller-runtime."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "level": record.levelname.lower(),
            "ts": _moment(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "logger": record.name,
            "msg": without_secrets(record.getMessage()),
        }
        line |= {name: value for name, value in fields_of(record).items() if name not in line}
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = without_secrets(str(record.exc_info[1]))
            line["stacktrace"] = without_secrets(self.formatException(record.exc_info))
        if record.stack_info:
            line["stacktrace"] = without_secrets(record.stack_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """When, how bad, about which object, what; then what else is known."""

    def __init__(self, *, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        fields = fields_of(record)
        controller = fields.pop("controller", None)
        about = f"{controller or record.name} {take_object(fields)}".rstrip()
        rest = " ".join(f"{each}={value}" for each, value in fields.items())
        said = without_secrets(record.getMessage())
        for more in (record.exc_info and self.formatException(record.exc_info), record.stack_info):
            if more:
                said += f"\n{without_secrets(more)}"
        first, *others = said.splitlines() or [""]
        level = self._painted(f"{record.levelname:<7}", _COLOURS.get(record.levelname, ""))
        when = f"{_moment(record):%Y-%m-%dT%H:%M:%S}.{int(record.msecs):03d}Z"
        line = f"{self._painted(when, '2')} {level} {self._painted(about, '1')}: {first}"
        if rest:
            line += "  " + self._painted(" ".join(rest.splitlines()), "2")
        return "\n    ".join([line, *others])

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour and colour else text


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _shown(name: str, value: object) -> object:
    if _SECRET_FIELD.search(name):
        return "…"
    if isinstance(value, Mapping):
        return {str(key): _shown(str(key), each) for key, each in value.items()}
    if type(value) in (list, tuple, set):
        return [_shown("", each) for each in cast("Iterable[object]", value)]
    if value is None or isinstance(value, bool | int | float):
        return value
    return without_secrets(str(value))


def _is_colourful(stream: IO[str]) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
