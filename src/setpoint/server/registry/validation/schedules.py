"""What is wrong with when a CronJob runs: its schedule and its time zone.  In the real parser's words."""

from __future__ import annotations

import re
import zoneinfo
from functools import lru_cache
from typing import Final, NamedTuple

from setpoint.server.golang import parse_int, quoted
from setpoint.server.registry.validation.texts import whole


class _Bounds(NamedTuple):
    least: int
    most: int
    names: dict[str, int]


def _named(text: str, start: int) -> dict[str, int]:
    return {name: start + place for place, name in enumerate(text.split())}


_FIELDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, _named("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Bounds(0, 6, _named("sun mon tue wed thu fri sat", 0)),
)
_DESCRIPTORS: Final = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
)
_DURATION: Final = re.compile(r"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))++|[-+]?0")
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_LONGEST_ZONE: Final = 255


def schedule_error(text: str) -> str:
    """The first thing wrong, or an empty text."""
    if not text:
        return "empty spec string"
    plain = text
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, _, plain = text.partition(" ")
        name = zone.partition("=")[2]
        if not _is_zone(name):
            return f"provided bad location {name}: unknown time zone {name}"
        plain = plain.strip()
    if plain.startswith("@"):
        return _descriptor_error(plain)
    fields = plain.split()
    if len(fields) != 5:
        shown = "[" + " ".join(fields) + "]"
        return f"expected exactly 5 fields, found {len(fields)}: {shown}"
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if error := _range_error(part, bounds):
                return error
    return ""


def _descriptor_error(text: str) -> str:
    if text in _DESCRIPTORS:
        return ""
    if text.startswith("@every "):
        length = text.removeprefix("@every ")
        if _DURATION.fullmatch(length):
            return ""
        return f"failed to parse duration {text}: time: invalid duration {quoted(length)}"
    return f"unrecognized descriptor: {text}"


def _range_error(text: str, bounds: _Bounds) -> str:
    body, *steps = text.split("/")
    low_text, *highs = body.split("-")
    is_single = not highs
    start, end = bounds.least, bounds.most
    if low_text in ("*", "?"):
        is_single = False
    else:
        start, error = _number(low_text, bounds)
        if error:
            return error
        if len(highs) > 1:
            return f"too many hyphens: {text}"
        end = start
        if highs:
            end, error = _number(highs[0], bounds)
            if error:
                return error
    step = 1
    if len(steps) > 1:
        return f"too many slashes: {text}"
    if steps:
        said = whole(steps[0])
        if said is None:
            return _not_a_number(steps[0])
        step = said
        if is_single:
            end = bounds.most
    if start < bounds.least:
        return f"beginning of range ({start}) below minimum ({bounds.least}): {text}"
    if end > bounds.most:
        return f"end of range ({end}) above maximum ({bounds.most}): {text}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {text}"
    if step == 0:
        return f"step of range should be a positive number: {text}"
    return ""


def _number(text: str, bounds: _Bounds) -> tuple[int, str]:
    named = bounds.names.get(text.lower())
    if named is not None:
        return named, ""
    try:
        number = parse_int(text, function="Atoi")
    except ValueError as error:
        return 0, f"failed to parse int from {text}: {error}"
    if number < 0:
        return 0, f"negative number ({number}) not allowed: {text}"
    return number, ""


def _not_a_number(text: str) -> str:
    return f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: invalid syntax"


def zone_error(name: str) -> str:
    if not name:
        return "timeZone must be nil or non-empty string"
    for part in name.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return f"unknown time zone {name}"
    if name.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return "" if _is_zone(name) else f"unknown time zone {name}"


def _is_zone(name: str) -> bool:
    is_known = name == "UTC" or (len(name) <= _LONGEST_ZONE and _is_known(name))
    return is_known or not _is_known("Europe/London")  # without data, any may be


@lru_cache(maxsize=1024)
def _is_known(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
