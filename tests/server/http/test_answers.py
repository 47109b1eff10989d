"""Answers in bytes: warnings, lists, YAML; and health, check by check."""

from __future__ import annotations

import gzip

import msgspec
import pytest

from setpoint.server.http.answers import answered, list_pieces, warning_header, written
from setpoint.server.http.health import Health, Told
from setpoint.server.registry.requests import Listed
from setpoint.server.storage.protocol import Place, Record
from tests.server.http.resources import resource


@pytest.mark.parametrize(
    ("warnings", "header"),
    [
        (["plain"], '299 - "plain"'),
        (["one", "two", "one"], '299 - "one"\n299 - "two"'),
        (['say "it" \\ now'], '299 - "say \\"it\\" \\\\ now"'),
        (["two\nlines", "one"], '299 - "one"'),
        (["\x00", ""], ""),
        (["x" * 300], f'299 - "{"x" * 300}"'),
    ],
)
def test_a_warning_is_one_line_with_its_quotes_escaped(warnings: list[str], header: str) -> None:
    assert warning_header(warnings) == header


def test_warnings_that_are_too_much_together_are_cut_and_then_left_out() -> None:
    found = warning_header([f"{number} " + "x" * 1000 for number in range(50)]).split("\n")
    assert len(found) == 16
    assert all(len(one) == len('299 - ""') + 256 for one in found)


def record(name: str, kind: str = "Foo") -> Record:
    data = msgspec.json.encode({"kind": kind, "apiVersion": "example.com/v1", "metadata": {"name": name}})
    return Record(Place("foos", "", name), 1, 1, data)


def test_a_list_of_a_built_in_kind_leaves_out_what_the_list_says() -> None:
    foos = resource("example.com", "v1", "foos", "Foo", list_kind="FooList")
    body = b"".join(list_pieces(Listed(7, [record("a"), record("b")], "token", 3), foos))
    assert msgspec.json.decode(body) == {
        "kind": "FooList",
        "apiVersion": "example.com/v1",
        "metadata": {"resourceVersion": "7", "continue": "token", "remainingItemCount": 3},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    }


def test_a_list_of_a_custom_kind_leaves_out_nothing() -> None:
    foos = resource("example.com", "v1", "foos", "Foo", list_kind="Foos", is_custom=True)
    body = msgspec.json.decode(b"".join(list_pieces(Listed(7, [record("a")]), foos)))
    assert body["kind"] == "Foos"
    assert body["metadata"] == {"resourceVersion": "7", "continue": ""}
    assert body["items"][0]["kind"] == "Foo"


def test_yaml_is_by_key_and_reads_back() -> None:
    assert written(b'{"b":{"z":1,"a":"017"},"a":["x"]}', "application/yaml", pretty=False) == (
        b"a:\n- x\nb:\n  a: '017'\n  z: 1\n"
    )


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 2000])
@pytest.mark.parametrize("encodings", ["", "gzip"])
def test_a_list_is_whole_however_many_pieces_it_is_sent_in(count: int, encodings: str) -> None:
    foos = resource("example.com", "v1", "foos", "Foo", list_kind="FooList")
    records = [record(f"{number}-{'x' * 100}") for number in range(count)]
    answer = answered(200, list_pieces(Listed(7, records), foos), encodings=encodings)
    assert isinstance(answer.body, bytes)
    is_packed = answer.headers.get("Content-Encoding") == "gzip"
    assert is_packed == (bool(encodings) and count == 2000)
    body = gzip.decompress(answer.body) if is_packed else answer.body
    assert body.endswith(b"\n")
    assert [one["metadata"]["name"] for one in msgspec.json.decode(body)["items"]] == [
        each.place.name for each in records
    ]


def test_a_small_answer_is_not_packed() -> None:
    assert "Content-Encoding" not in answered(200, b"x" * 1000, encodings="gzip").headers
    assert answered(200, b"x" * 200_000, encodings="gzip").headers["Content-Encoding"] == "gzip"


def test_a_check_that_fails_says_so_and_not_why() -> None:
    health = Health({"disk": lambda: "it is on fire", "rest": lambda: ""})
    told = health.told(("readyz",), {})
    assert told == Told(500, "[+]ping ok\n[-]disk failed: reason withheld\n[+]rest ok\nreadyz check failed\n")
    assert health.told(("readyz",), {"exclude": "disk"}) == Told(200, "ok")
    assert health.told(("readyz", "rest"), {}) == Told(200, "ok")
    assert health.told(("readyz", "none"), {}) is None
    alone = health.told(("livez", "disk"), {})
    assert alone is not None
    assert alone.code == 500
