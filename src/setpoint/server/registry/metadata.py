"""What the server itself writes into ``metadata``: names, uid, times, generation; what an update keeps.

Pure: time and randomness are handed in, so that a server in a test gives the same names twice.
"""

from __future__ import annotations

import random
import uuid
from datetime import datetime
from typing import Any

from setpoint.server.registry.resources import Object

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words
_SUFFIX = 5
_MOST_BASE = 63 - _SUFFIX


class Names:
    """Where uids and generated names come from."""

    def __init__(self, source: random.Random | None = None) -> None:
        self._random = source or random.SystemRandom()

    def uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def generated(self, base: str) -> str:
        suffix = "".join(self._random.choices(_ALPHABET, k=_SUFFIX))
        return base[:_MOST_BASE] + suffix


def timestamp(moment: datetime) -> str:
    """As metadata carries times: whole seconds, Z."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


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
    kept: list[Any] = []
    doubled: list[str] = []
    for one in owners:
        if one in kept:
            doubled.append(str(one.get("uid", "")))
        else:
            kept.append(one)
    if not doubled:
        return []
    obj["metadata"]["ownerReferences"] = kept
    uids = ", ".join(dict.fromkeys(doubled))
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
        _keep(fresh, kept, name)
    if "deletionTimestamp" in kept:
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            _keep(fresh, kept, name)


def _keep(fresh: dict[str, Any], kept: dict[str, Any], name: str) -> None:
    if name in kept:
        fresh[name] = kept[name]
    else:
        fresh.pop(name, None)


def is_deleting(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def bump_generation(obj: Object) -> None:
    metadata = obj["metadata"]
    metadata["generation"] = metadata.get("generation", 0) + 1
