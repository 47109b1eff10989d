"""``golang.py``: integers are parsed as Go parses them, and nowhere in another way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint.server
from setpoint.server.golang import parse_int
from setpoint.server.server import ApiServer
from tests.server.http.asking import MAPS, Asking, config_map

SERVER = Path(setpoint.server.__file__).parent
ODD = ("1_0", " 1", "1 ", "1\n", "\u0663", "\uff11", "0x1", "1e1", "1.0", "--1", "+", "-", "a", "\u00b2")


@pytest.mark.parametrize("text", ODD)
def test_what_go_does_not_parse_is_refused_in_its_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"strconv\.ParseInt: parsing .*: invalid syntax"):
        parse_int(text)


@given(st.integers(-(2**70), 2**70), st.sampled_from(["", "0", "000"]), st.sampled_from([32, 64]))
def test_a_number_is_itself_or_out_of_range(number: int, zeros: str, bits: int) -> None:
    text = f"{'-' if number < 0 else ''}{zeros}{abs(number)}"
    if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        assert parse_int(text, bits) == number
    else:
        with pytest.raises(ValueError, match="value out of range"):
            parse_int(text, bits)


@given(st.text(max_size=12))
def test_no_text_but_ascii_digits_with_a_sign_is_a_number(text: str) -> None:
    try:
        found = parse_int(text)
    except ValueError:
        return
    assert set(text.lstrip("+-")) <= set("0123456789")
    assert int(text) == found


def test_a_number_of_a_million_digits_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="value out of range"):
        parse_int("9" * 1_000_000)


@pytest.mark.parametrize(
    "name", ["limit", "timeoutSeconds", "gracePeriodSeconds", "tailLines", "sinceSeconds"]
)
async def test_a_number_in_a_query_is_a_number_of_go(name: str) -> None:
    async with ApiServer() as server:
        ask = Asking(server.transport())
        await ask.create(MAPS, config_map("a"))
        for text in ODD:
            said = "".join(f"%{byte:02x}" for byte in text.encode())
            match name:
                case "gracePeriodSeconds":
                    got = await ask("DELETE", f"{MAPS}/a?{name}={said}")
                case "tailLines" | "sinceSeconds":
                    got = await ask.get(f"/api/v1/namespaces/default/pods/p/log?{name}={said}")
                case _:
                    got = await ask.get(f"{MAPS}?{name}={said}")
            assert (got.status, "invalid syntax" in got.message) == (400, True), (text, got.body)


def test_no_other_code_of_the_server_parses_numbers_of_clients() -> None:
    """Where ``int`` or ``float`` may fail, they are given text that nobody has looked at yet."""
    found = [
        f"{file.relative_to(SERVER)}:{call.lineno}"
        for file in sorted(SERVER.rglob("*.py"))
        for block in ast.walk(ast.parse(file.read_text()))
        if isinstance(block, ast.Try) and any(map(_catches_value_error, block.handlers))
        for statement in block.body
        for call in ast.walk(statement)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("int", "float")
    ]
    assert not found, f"int() takes 1_0, spaces and the digits of every script; use golang.parse_int: {found}"


def _catches_value_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return bool(caught & {"ValueError", "Exception", "BaseException"})
