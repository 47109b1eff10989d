"""Protobuf is read as Go writes it: an object of every kind, with every field set."""

from __future__ import annotations

import base64
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.server.registry import bodies, protobuf
from setpoint.server.registry.conform import conform
from setpoint.server.registry.emit import emit
from setpoint.server.registry.facts import resources, type_of
from setpoint.server.registry.types import Type
from setpoint.server.statuses import StatusError
from tests.server.registry.recordings import kind_of, rows, type_of_object

_MESSAGES = rows("messages")


@pytest.mark.parametrize("row", _MESSAGES, ids=[f"{row['object']['kind']}" for row in _MESSAGES])
def test_every_field_of_every_kind_is_read(row: dict[str, Any]) -> None:
    wanted = row["object"]
    kind_type = type_of_object(wanted)
    read = conform(protobuf.read(base64.b64decode(row["protobuf"])), kind_type)
    assert read.unknown == []
    assert emit(read.object, kind_type) == wanted


def test_every_served_kind_is_among_them() -> None:
    assert {(one.group, one.version, one.kind) for one in resources()} <= {
        kind_of(row["object"]) for row in _MESSAGES
    }


@pytest.mark.parametrize("row", _MESSAGES, ids=[f"{row['object']['kind']}" for row in _MESSAGES])
def test_the_same_objects_conform_and_are_written_as_they_are(row: dict[str, Any]) -> None:
    kind_type = type_of_object(row["object"])
    _check_every_field_is_said(row["object"], kind_type)
    decoded = conform(row["object"], kind_type)
    assert decoded.unknown == []
    assert emit(decoded.object, kind_type) == row["object"]


def _check_every_field_is_said(obj: dict[str, Any], kind_type: Type) -> None:
    missing = kind_type.fields.keys() - obj.keys()
    assert not missing, f"{kind_type.name} lacks {missing}"


def _deployment() -> bytes:
    row = next(row for row in _MESSAGES if row["object"]["kind"] == "Deployment")
    return base64.b64decode(row["protobuf"])


def test_a_zero_that_json_would_not_write_is_left_out() -> None:
    # metadata {name: "a", generation: 0}, immutable absent, as Go writes a ConfigMap
    metadata = b"\x0a\x01a" + b"\x38\x00"
    raw = b"\x0a" + bytes([len(metadata)]) + metadata
    named = b"\x0a\x02v1\x12\x09ConfigMap"
    body = b"k8s\x00\x0a" + bytes([len(named)]) + named + b"\x12" + bytes([len(raw)]) + raw
    assert protobuf.read(body) == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}


def _field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def _lease(year: int) -> bytes:
    """A Lease whose times are at the beginning of a year, as Go writes one."""
    seconds = int((datetime(year, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    number, said = seconds % 2**64, bytearray(b"\x08")
    while number >= 0x80:
        said.append(number & 0x7F | 0x80)
        number >>= 7
    said.append(number)
    spec = _field(3, bytes(said)) + _field(4, bytes(said))  # acquireTime, renewTime
    metadata = _field(1, b"a") + _field(8, bytes(said))  # creationTimestamp
    named = _field(1, b"coordination.k8s.io/v1") + _field(2, b"Lease")
    return b"k8s\x00" + _field(1, named) + _field(2, _field(1, metadata) + _field(2, spec))


@given(st.integers(1, 9999))
@example(1)
@example(999)
def test_a_time_has_four_digits_of_year_and_is_taken_as_one(year: int) -> None:
    if year == 1970:
        return  # both fields zero: no time at all
    read = protobuf.read(_lease(year))
    assert read["metadata"]["creationTimestamp"] == f"{year:04}-01-01T00:00:00Z"
    assert read["spec"]["renewTime"] == f"{year:04}-01-01T00:00:00.000000Z"
    conform(read, type_of("coordination.k8s.io", "v1", "Lease"))


def test_a_kind_that_is_not_known_is_named_and_nothing_else() -> None:
    named = b"\x0a\x02v1\x12\x03Foo"
    body = b"k8s\x00\x0a" + bytes([len(named)]) + named + b"\x12\x02\x0a\x00"
    assert protobuf.read(body) == {"kind": "Foo", "apiVersion": "v1"}


@given(st.data())
def test_a_message_cut_short_or_damaged_is_refused_or_read_but_never_breaks(data: st.DataObject) -> None:
    whole = _deployment()
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = data.draw(
        st.sampled_from(
            [
                whole[:at],
                whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :],
                whole[:at] + whole[at + 1 :],
            ]
        )
    )
    with suppress(ValueError):
        assert isinstance(protobuf.read(damaged)["kind"], str)


def test_a_message_without_end_is_refused() -> None:
    kind_type = type_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    path = [kind_type.fields["spec"]]
    for name in ("versions", "schema", "openAPIV3Schema", "not"):
        holder = path[-1].type.item or path[-1].type
        path.append(holder.fields[name])
    message = b""
    for _ in range(3000):
        message = _within(path[-1].number, message)
    for field in reversed(path[:-1]):
        message = _within(field.number, message)
    named = _within(1, b"apiextensions.k8s.io/v1") + _within(2, b"CustomResourceDefinition")
    body = b"k8s\x00" + _within(1, named) + _within(2, message)
    with pytest.raises(ValueError, match="nesting too deep"):
        protobuf.read(body)
    with pytest.raises(StatusError) as refused:
        bodies.read(body, bodies.PROTOBUF, "CustomResourceDefinition")
    assert refused.value.code == 400


def _within(number: int, message: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(message)) + message


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])
