"""Decides which of two resourceVersions is the later one.

Kubernetes promises (KEP-5504) that those of one kind are whole numbers that grow.  Where a server's are
something else, none is older than another: what depends on the order is then not done at all, or is done by
waiting for equality, with a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from setpoint.api.wire import Snapshot


def number(version: str) -> int | None:
    """The version as a number; None where it is none, and cannot be compared."""
    return int(version) if version.isdecimal() else None


def is_older(version: str, than: str) -> bool:
    """Whether both can be compared, and the first is the earlier one."""
    if not (version.isdecimal() and than.isdecimal()):
        return False
    if len(version) == len(than) and version.isascii() and than.isascii():  # as it nearly always is
        return version < than
    return int(version) < int(than)


def later(one: str, other: str) -> str:
    """The later of two versions; where they cannot be compared, the one said last."""
    return one if is_older(other, one) else other


def latest(version: str, snapshots: Iterable[Snapshot]) -> str:
    """The latest of a version and those of objects, in the order in which they were said."""
    said = [version, *[snapshot.metadata.resource_version for snapshot in snapshots]]
    whole = "".join(said)
    if whole.isdecimal() and whole.isascii() and len(set(map(len, said))) == 1:  # as it nearly always is
        return max(said)
    return reduce(later, said)
