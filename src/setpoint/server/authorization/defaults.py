"""The roles and bindings that every cluster begins with, as kube-apiserver has them.

They are a table in the wheel, ``defaults.json.z``, made by ``tools/facts/roles.py`` from a real one.  Each
time a server starts, those that are not there are made, and what one of them lacks (rules, subjects) is added
to it, unless it is annotated with ``rbac.authorization.kubernetes.io/autoupdate: "false"``; what somebody has
added stays.

As there, ``admin``, ``edit`` and ``view`` have no rules of their own: a controller gathers them
(``builtin/aggregation.py``).
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from setpoint.server.authorization.rbac import GROUP
from setpoint.server.authorization.rules import Rule, missing
from setpoint.server.storage.protocol import Encode, Place, Store

Object = dict[str, Any]
_TABLE: Final = "defaults.json.z"
_AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"


def defaults() -> list[tuple[Place, Object]]:
    """Each with its place; uids, versions and times are empty."""
    packed = Path(__file__).with_name(_TABLE).read_bytes()
    rows: list[tuple[str, Object]] = msgspec.json.decode(zlib.decompress(packed))
    return [
        (Place(f"{plural}.{GROUP}", obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), obj)
        for plural, obj in rows
    ]


async def establish(store: Store, *, uid: Callable[[], str], now: str) -> None:
    """Make those that are not there, all at once: on a disk that is one wait, and not one for each."""
    writes: list[Awaitable[object]] = []
    for place, obj in defaults():
        record = store.get(place)
        if record is None:
            metadata = obj["metadata"]
            metadata["uid"], metadata["creationTimestamp"] = uid(), now
            for one in metadata["managedFields"]:
                one["time"] = now
            writes.append(store.create(place, _encoder(obj)))
        elif (mended := _mended(msgspec.json.decode(record.data), obj)) is not None:
            writes.append(store.update(place, _encoder(mended), record.revision))
    await asyncio.gather(*writes)


def _encoder(obj: Object) -> Encode:
    def encode(revision: int) -> bytes:
        obj["metadata"]["resourceVersion"] = str(revision)
        return msgspec.json.encode(obj)

    return encode


def _mended(kept: Object, wanted: Object) -> Object | None:
    """With what it lacks; None where it lacks nothing, or nobody may touch it."""
    if (kept["metadata"].get("annotations") or {}).get(_AUTOUPDATE) != "true":
        return None
    if all(kept.get(part) == wanted.get(part) for part in ("rules", "subjects")):
        return None  # as nearly all are, at nearly every start
    if "roleRef" in wanted:
        lacking = [one for one in wanted.get("subjects") or () if one not in (kept.get("subjects") or ())]
        part = "subjects"
    else:
        held, all_of = (msgspec.convert(one.get("rules") or (), tuple[Rule, ...]) for one in (kept, wanted))
        lacking = [_wire(rule) for rule in missing(held, all_of)]
        part = "rules"
    return {**kept, part: [*(kept.get(part) or ()), *lacking]} if lacking else None


def _wire(rule: Rule) -> Object:
    said: Object = msgspec.to_builtins(rule)
    return {name: list(values) for name, values in said.items() if values}
