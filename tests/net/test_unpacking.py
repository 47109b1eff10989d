"""The promises of ``net/unpacking.py``."""

from __future__ import annotations

import gzip
import random
import zlib

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


@pytest.mark.parametrize("most", [5_000, 10**6])
def test_much_may_come_at_once(most: int) -> None:
    plain = random.Random(1).randbytes(100_000)
    assert unpacked(gzip.compress(plain) * 3, 10**6, most) == plain * 3
    assert unpacked(gzip.compress(b"x") * 3_000, 10**6, most) == b"x" * 3_000


def test_what_several_members_hold_together_is_no_longer_than_asked_for_either() -> None:
    assert unpacked(gzip.compress(b"hello") * 3, 10**6, 7) == b"hello" * 3


def test_nothing_that_has_come_waits_for_what_comes_next() -> None:
    packed = gzip.compress(bytes(3_000) + b"hello" * 300)
    for size in range(len(packed)):
        unpacking = Unpacking()
        found = unpacking.unpack(packed[:size], 7)
        while unpacking.has_more:
            found += unpacking.unpack(b"", 7)
        assert found == zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(packed[:size])


def test_a_small_piece_that_holds_much_is_not_unpacked_at_once() -> None:
    unpacking = Unpacking()
    assert len(unpacking.unpack(gzip.compress(bytes(10**7)), 1_000)) == 1_000
    assert unpacking.has_more
    assert unpacking.is_cut_short


@pytest.mark.parametrize(
    "packed",
    [b"nope", gzip.compress(b"x") + b"nope", gzip.compress(b"xx")[:-8] + bytes(8)],
    ids=["no", "no more", "not whole"],
)
def test_what_is_not_gzip_is_said_to_be_none(packed: bytes) -> None:
    with pytest.raises(NotGzip):
        unpacked(packed, 3, 100)


def test_what_ends_too_early_is_known_to() -> None:
    unpacking = Unpacking()
    assert not unpacking.is_cut_short, "nothing at all was never packed"
    unpacking.unpack(gzip.compress(b"hello")[:-1], 100)
    assert unpacking.is_cut_short


def test_one_member_of_two_is_not_the_whole() -> None:
    unpacking = Unpacking()
    unpacking.unpack(gzip.compress(b"hello") * 2, 5)
    assert unpacking.is_cut_short


def test_what_turns_bad_later_has_no_more() -> None:
    """Whoever asks for more as long as there is some would ask for ever."""
    packed = bytearray(gzip.compress(bytes(1_000)))
    packed[-8] ^= 1
    unpacking = Unpacking()
    assert len(unpacking.unpack(bytes(packed), 999)) == 999
    with pytest.raises(NotGzip):
        unpacking.unpack(b"", 999)
    assert not unpacking.has_more
    assert unpacking.is_cut_short
