"""The promises of ``net/unpacking.py``."""

from __future__ import annotations

import gzip
import random

import pytest

from setpoint.net.unpacking import NotGzip, Unpacking


def unpacked(packed: bytes, size: int, most: int) -> bytes:
    unpacking = Unpacking()
    found = []
    for at in range(0, len(packed), size):
        found.append(unpacking.unpack(packed[at : at + size], most))
        while unpacking.has_more:
            found.append(unpacking.unpack(b"", most))
    assert not unpacking.is_cut_short
    assert all(len(piece) <= most for piece in found)
    return b"".join(found)


@pytest.mark.parametrize("size", [1, 13, 10**6])
@pytest.mark.parametrize("most", [1, 100, 10**6])
@pytest.mark.parametrize(
    "plain", [b"", b"hello", bytes(20_000), random.Random(1).randbytes(3_000)], ids=["0", "5", "zeros", "any"]
)
def test_what_was_packed_comes_out_in_pieces_no_longer_than_asked_for(
    plain: bytes, size: int, most: int
) -> None:
    assert unpacked(gzip.compress(plain), size, most) == plain
    assert unpacked(gzip.compress(plain) * 3, size, most) == plain * 3


def test_a_small_piece_that_holds_much_is_not_unpacked_at_once() -> None:
    unpacking = Unpacking()
    assert len(unpacking.unpack(gzip.compress(bytes(10**7)), 1_000)) == 1_000
    assert unpacking.has_more
    assert unpacking.is_cut_short


@pytest.mark.parametrize(
    "packed", [b"nope", gzip.compress(b"x") + b"nope", gzip.compress(b"xx")[:-8] + bytes(8)]
)
def test_what_is_not_gzip_is_said_to_be_none(packed: bytes) -> None:
    with pytest.raises(NotGzip):
        unpacked(packed, 3, 100)


def test_what_ends_too_early_is_known_to() -> None:
    unpacking = Unpacking()
    assert not unpacking.is_cut_short, "nothing at all was never packed"
    unpacking.unpack(gzip.compress(b"hello")[:-1], 100)
    assert unpacking.is_cut_short
