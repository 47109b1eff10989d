"""No script depends on chance: what a script asks for is nothing that a server may give to somebody else."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from random import Random

import pytest

from setpoint.server.registry.allocation import DYNAMIC_PORTS, dynamic_offsets
from setpoint.server.server import SERVICES
from tests.conformance.asking import Put, Script, Step
from tests.conformance.scripts import SCRIPTS, protobuf
from tests.conformance.seeds import differing

_NETWORK = ip_network(SERVICES)
_ADDRESS = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])")
_NUMBER = re.compile(r"(?<![0-9A-Za-z.-])[0-9]{5}(?![0-9A-Za-z.])")
# A time in between was, is or will be the present: ``Canonical`` shows it as ``<now>`` in some days only.
_LAST_PAST_DAY = "2026-01-01"
_FIRST_FUTURE_DAY = "2100"
_TIME = re.compile(r"\b([0-9]{4}-[0-9]{2}-[0-9]{2})T[0-9]{2}:[0-9]{2}")


def chances(script: Script) -> list[str]:
    """What the script asks for and a server may have given away, or may see otherwise tomorrow."""
    text = "\n".join(f"{step.path} {_body(step)}" for step in script.steps)
    found = [address for address in _ADDRESS.findall(text) if _is_dynamic(address)]
    if "nodePort" in text:
        found += [number for number in _NUMBER.findall(text) if int(number) in DYNAMIC_PORTS]
    days = _TIME.findall(text)
    for step in script.steps:
        if isinstance(step.body, bytes):
            days += [datetime.fromtimestamp(at, UTC).date().isoformat() for at in protobuf.times(step.body)]
    return found + [day for day in days if _LAST_PAST_DAY < day < _FIRST_FUTURE_DAY]


def _body(step: Step) -> object:
    return step.body.patch if isinstance(step.body, Put) else step.body


def _is_dynamic(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return int(address) - int(_NETWORK.network_address) in dynamic_offsets(_NETWORK)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_asks_for_nothing_that_may_be_given_to_somebody_else(script: Script) -> None:
    assert not chances(script), "ask for an address or port of the static band, or a time that is past"


def test_whatever_may_collide_is_found() -> None:
    for text in (
        '"10.0.0.200"',
        "10.0.0.17",
        '{"nodePort": 30086}',
        "'nodePort': 32767",
        '"2099-01-01T00:00:00Z"',
        '"2026-11-16T04:25:05Z"',
        b"k8s\0\x22\x08\x08\xf1\xc3\xe4\xd0\x06\x10\x00",
    ):
        assert chances(Script("s", [Step("POST", "/", text)])), text
    for text in (
        '"10.0.0.16"',
        "10.0.0.255",
        '{"nodePort": 30011}',
        "10.1.0.200",
        '"2020-01-01T00:00:00Z"',
        b"\x08\x80\xc6\xae\xf0\x05",
    ):
        assert not chances(Script("s", [Step("POST", "/", text)])), text


def test_services_are_answered_alike_whatever_addresses_and_ports_are_drawn() -> None:
    script = [each for each in SCRIPTS if each.name == "services"]
    for seed in range(3):
        assert [found for _, found in differing(Random(seed).randrange(10**6), script)] == [[]]
