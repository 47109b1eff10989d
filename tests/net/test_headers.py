"""The promises of ``net/headers.py``."""

from __future__ import annotations

from setpoint.net.headers import Headers, lines


def test_names_are_found_in_any_case() -> None:
    headers = Headers([("Content-Type", "text/plain")])
    assert headers["content-type"] == headers["CONTENT-TYPE"] == "text/plain"
    assert headers.get("Content-type") == "text/plain"
    assert headers.get("Accept") is None
    assert headers.get("Accept", "any") == "any"
    assert "CONTENT-type" in headers
    assert "Accept" not in headers


def test_what_came_several_times_is_one_text_and_can_be_had_one_by_one() -> None:
    headers = Headers([("Accept", "a, b"), ("X", "y"), ("ACCEPT", "c")])
    assert headers["Accept"] == "a, b, c"
    assert headers.get("accept") == "a, b, c"
    assert headers.every("accept") == ["a, b", "c"]
    assert headers.every("x") == ["y"]
    assert headers.every("z") == []
    assert list(headers) == ["Accept", "X"]
    assert len(headers) == 2


def test_a_family_of_names_is_found_by_its_beginning() -> None:
    headers = Headers([("Impersonate-User", "x"), ("Accept", "impersonate-")])
    assert headers.has_any("impersonate-")
    assert not headers.has_any("accept-")


def test_values_are_not_shown() -> None:
    assert repr(Headers([("Authorization", "Bearer secret")])) == "<Headers Authorization>"


def test_what_is_on_lines_of_its_own_is_a_field_of_its_own() -> None:
    assert list(lines({"Warning": "one\ntwo", "X": ""})) == [
        ("Warning", "one"),
        ("Warning", "two"),
        ("X", ""),
    ]
