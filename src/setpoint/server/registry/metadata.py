"""What the server itself writes into ``metadata``: names, uid, times, generation; what an update keeps.

Pure: time and randomness are handed in, so that a server in a test gives the same names twice.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import msgspec

from setpoint.server.registry.resources import Object

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words
_SUFFIX = 5
_MOST_BASE = 63 - _SUFFIX
_ENCODER = msgspec.json.Encoder(order="sorted")


class Names:
    """Where uids and generated names come from."""

    def __init__(self, source: random.Random | None = None) -> None:
        self._random = source or random.Random()  # noqa: S311 - it tells objects apart and is no secret

    def uid(self) -> str:
        return uuid4(self._random.getrandbits(128))

    def generated(self, base: str) -> str:
        suffix = "".join(self._random.choices(_ALPHABET, k=_SUFFIX))
        return base[:_MOST_BASE] + suffix


_VARIANT, _VARIANT_BITS = 0x8000 << 48, 0xC000 << 48
_VERSION, _VERSION_BITS = 0x4000 << 64, 0xF000 << 64


def uuid4(bits: int) -> str:
    """A random UUID of 128 bits, written down; the library's own takes eight times as long."""
    text = f"{bits & ~(_VARIANT_BITS | _VERSION_BITS) | _VARIANT | _VERSION:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def timestamp(moment: datetime) -> str:
    """As metadata carries times, which are in UTC: whole seconds, Z."""
    return moment.isoformat()[:19] + "Z"


def begin(obj: Object, *, uid: str, now: str) -> None:
    """What every new object gets, and what its creator may not set."""
    metadata = obj["metadata"]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(name, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = now


def dedupe_owners(obj: Object) -> list[str]:
    """Owners that are named twice are named once; and what is said of it."""
    owners = obj["metadata"].get("ownerReferences")
    if not isinstance(owners, list) or len(owners) < 2:
        return []
    kept: dict[bytes, Any] = {}
    doubled: dict[str, None] = {}
    for one in owners:
        encoded = _ENCODER.encode(one)
        if encoded in kept:
            doubled[str(one.get("uid", ""))] = None
        else:
            kept[encoded] = one
    if not doubled:
        return []
    obj["metadata"]["ownerReferences"] = list(kept.values())
    uids = ", ".join(doubled)
    told = (
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
        "and may reject such requests as early as 1.24; please fix your requests; "
        f"duplicate UID(s) observed: {uids}"
    )
    return [told]


def carry_over(new: Object, old: Object) -> None:
    """What an update leaves as it was, whatever it says."""
    fresh, kept = new["metadata"], old["metadata"]
    fresh.setdefault("uid", kept["uid"])
    if not fresh["uid"]:
        fresh["uid"] = kept["uid"]
    for name in ("creationTimestamp", "generation", "selfLink"):
        keep(fresh, kept, name)


def keep_deletion(new: Object, old: Object) -> None:
    """When an object goes is not changed by an update; who says otherwise only comes to own the field."""
    fresh, kept = new["metadata"], old["metadata"]
    if "deletionTimestamp" in kept:
        fresh["deletionTimestamp"] = kept["deletionTimestamp"]
    if fresh.get("deletionGracePeriodSeconds") is None:
        keep(fresh, kept, "deletionGracePeriodSeconds")


def keep(fresh: dict[str, Any], kept: dict[str, Any], name: str) -> None:
    """As it was; what was not there is not there."""
    if name in kept:
        fresh[name] = kept[name]
    else:
        fresh.pop(name, None)


def is_deleting(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def bump_generation(obj: Object) -> None:
    metadata = obj["metadata"]
    metadata["generation"] = metadata.get("generation", 0) + 1
