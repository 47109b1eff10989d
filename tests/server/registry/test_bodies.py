"""Bodies are read, and refused, as a real kube-apiserver reads and refuses them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.server.registry import bodies
from setpoint.server.registry.conform import WrongType, conform, wrong_type
from setpoint.server.registry.defaults.table import default
from setpoint.server.registry.doubled import Doubled, plain
from setpoint.server.registry.emit import emit
from setpoint.server.registry.facts import type_of
from setpoint.server.statuses import StatusError
from tests.server.registry.recordings import kind_at, rows

_ASKED = rows("bodies")


def _taken(row: dict[str, Any]) -> tuple[str, list[str], Any]:
    """What we say to a body: (message of a 400, texts of fieldValidation, the object)."""
    group, version, kind = kind_at(row["path"])
    kind_type = type_of(group, version, kind)
    try:
        read = bodies.read_object(row["body"].encode(), row["type"], group, version, kind)
        decoded = conform(read.object, kind_type)
    except StatusError as error:
        return f"{error.message}" if error.code == 400 else repr(error), [], None
    except WrongType as error:
        return wrong_type(error, kind, version).message, [], None
    default(group, version, kind, decoded.object)
    return "", [*read.unknown, *decoded.unknown], emit(decoded.object, kind_type)


@pytest.mark.parametrize(
    "row", _ASKED, ids=[f"{row['path'].split('/')[-1]}-{row['body'][:60]}" for row in _ASKED]
)
def test_a_body_is_taken_as_the_real_server_takes_it(row: dict[str, Any]) -> None:
    message, texts, obj = _taken(row)
    assert message == row["message"]
    assert texts == row["texts"]
    if row["object"] is not None:
        assert _decoded(obj) == _decoded(row["object"])


def _decoded(obj: dict[str, Any]) -> dict[str, Any]:
    """Without what later steps set."""
    named = {name: obj["metadata"].get(name) for name in ("name", "labels", "annotations")}
    if obj["kind"] == "Pod":
        return {"metadata": named, "containers": obj["spec"]["containers"]}
    return obj | {"metadata": named}


def test_another_media_type_is_refused() -> None:
    with pytest.raises(StatusError) as refused:
        bodies.read(b"{}", "text/plain", "Pod")
    assert refused.value.code == 415
    for accepted in ("", "application/json", "Application/JSON; charset=utf-8"):
        assert bodies.read(b"{}", accepted, "Pod").value == {}


def test_what_nests_too_deep_is_refused() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    for body in (
        deep,
        b'{"a":' + deep + b"}",
        b'{"a":1,"a":' + deep + b"}",
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
    ):
        with pytest.raises(StatusError) as refused:
            bodies.read(body, "application/json", "Pod")
        assert refused.value.code == 400
        assert "exceeded max depth" in refused.value.message
    just = b"[" * bodies.DEEPEST + b"]" * bodies.DEEPEST
    assert bodies.read(just, "application/json", "Pod").value


def test_yaml_is_read_as_json_where_it_is_json() -> None:
    assert bodies.read_yaml(b' {"a":\t[1, "\\u0041"]}') == ({"a": [1, "A"]}, [])
    assert bodies.read_yaml(b"{a: yes}\n---\nb: 1") == ({"a": True}, [])
    assert bodies.read_yaml(b'{"a": 1,\n "a": 2}') == ({"a": 2}, ['line 2: key "a" already set in map'])


def test_yaml_that_would_grow_is_refused() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(StatusError) as refused:
        bodies.read("\n".join(lines).encode(), "application/yaml", "Pod")
    assert refused.value.code == 400


def test_a_number_of_many_digits_is_no_trouble() -> None:
    for text in ("1" * 10_000, "-" + "1" * 300, "1e300", "0." + "1" * 10_000):
        body = f'{{"a":{text}}}'.encode()
        assert msgspec.json.encode(bodies.read(body, "application/json", "Pod").value)


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert bodies.read(b'{"a":"\xff"}', "application/json", "Pod").value == {"a": "\ufffd"}


def test_a_custom_object_says_what_it_is() -> None:
    def refused(body: str) -> str:
        with pytest.raises(StatusError) as error:
            bodies.read_custom(body.encode(), "application/json", "example.com", "v1", "Foo")
        assert error.value.code == 400
        return error.value.message

    assert refused('{"metadata": {"name": "z"}, "spec": {"size": 1}}') == (
        "the object provided is unrecognized (must be of type Foo): Object 'Kind' is missing in "
        '\'{"metadata": {"name": "z"}, "spec": {"size": 1}}\' ({"metadata": {"name": "z"}, "s ...)'
    )
    assert refused('{"kind":"Foo","apiVersion":"example.com/v2"}') == (
        "the API version in the data (example.com/v2) "
        "does not match the expected API version (example.com/v1)"
    )
    body = b'{"kind":"Foo","apiVersion":"example.com/v1","spec":{"a":1,"a":2},"spec":{"b":[{"c":1,"c":2}]}}'
    read = bodies.read_custom(body, "application/json", "example.com", "v1", "Foo")
    assert read.unknown == [
        'duplicate field "spec.a"',
        'duplicate field "spec"',
        'duplicate field "spec.b[0].c"',
    ]
    assert read.object["spec"] == {"b": [{"c": 2}]}


# --- any JSON at all

_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(_JSON, st.booleans(), st.booleans())
def test_any_json_is_read_as_it_was_written(value: Any, ascii_only: bool, spaced: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1 if spaced else None)
    assert bodies.read_json(text.encode()) == value


@given(st.lists(st.tuples(_TEXT, _JSON), min_size=1, max_size=4), st.data())
def test_a_key_that_appears_twice_is_never_lost_silently(
    pairs: list[tuple[str, Any]], data: st.DataObject
) -> None:
    twice = data.draw(st.sampled_from(pairs))
    written = "{" + ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in [*pairs, twice]) + "}"
    read = bodies.read_json(written.encode())
    assert isinstance(read, Doubled)
    value, texts = plain(read)
    assert value == dict([*pairs, twice])
    assert texts


@given(st.binary(max_size=40))
def test_no_bytes_make_anything_but_a_value_or_a_400(body: bytes) -> None:
    for media in (bodies.JSON, bodies.YAML, bodies.PROTOBUF):
        assert _code(body, media) in (200, 400)


def _code(body: bytes, media: str) -> int:
    try:
        read = bodies.read(body, media, "Pod")
    except StatusError as error:
        return error.code
    msgspec.json.encode(read.value)
    return 200


def test_yaml_aliases_are_refused() -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &d {x: y}\nother: *d\n"

    with pytest.raises(StatusError, match="aliases are not taken here") as refused:
        bodies.read_object(body, "application/yaml", "", "v1", "ConfigMap")

    assert refused.value.code == 400
