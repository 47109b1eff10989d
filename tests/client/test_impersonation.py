"""The rules of ``client/impersonation.py``."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.client.impersonation import Impersonation, is_header_value


def test_only_what_is_said_becomes_a_header() -> None:
    assert Impersonation("jane").headers() == {"Impersonate-User": "jane"}


def test_every_group_and_value_is_a_line_of_its_header() -> None:
    jane = Impersonation("jane", "42", ("dev", "ops"), {"scopes": ("view", "edit"), "empty": ()})
    assert jane.headers() == {
        "Impersonate-User": "jane",
        "Impersonate-Uid": "42",
        "Impersonate-Group": "dev\nops",
        "Impersonate-Extra-scopes": "view\nedit",
    }


def test_what_cannot_be_in_a_header_name_is_percent_encoded_and_so_is_percent() -> None:
    headers = Impersonation("jane", extra={"acme.com/a b%é": ("x",)}).headers()
    assert headers["Impersonate-Extra-acme.com%2Fa%20b%25%C3%A9"] == "x"


@given(st.text(min_size=1))
def test_a_key_can_be_read_back_from_its_header(key: str) -> None:
    names = list(Impersonation("jane", extra={key: ("x",)}).headers())
    prefix, name = names[1][: len("Impersonate-Extra-")], names[1][len("Impersonate-Extra-") :]
    assert (prefix, unquote(name)) == ("Impersonate-Extra-", key)
    assert name.isascii()
    assert not set(name) & set(' ",/:;<=>?@[\\]{}\n')


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "\0", "\x7f"])
def test_a_name_that_would_end_the_header_line_cannot_be_sent(name: str) -> None:
    assert not is_header_value(name)
    assert not Impersonation(name).is_sendable()
    assert not Impersonation("jane", name).is_sendable()
    assert not Impersonation("jane", groups=("dev", name)).is_sendable()
    assert not Impersonation("jane", extra={"k": (name,)}).is_sendable()
    assert Impersonation("jané", "u", ("dev",), {"k": ("v",)}).is_sendable()
