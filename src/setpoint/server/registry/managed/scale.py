"""Carries the owners of ``replicas`` between an object and its scale: a view of it, with a type of its own.

``to_scale`` gives the scale the entries of those who own the object's replicas, as owners of the scale's;
``from_scale`` takes what became of them back: who lost the replicas in the scale loses them in the object,
and who gained them there owns them here, with the subresource in the entry.

Called by the scale subresource around ``track_update`` and ``apply`` on the Scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from setpoint.server.registry.managed import sets
from setpoint.server.registry.managed.managers import Entry, Managed, decode, encode
from setpoint.server.registry.managed.sets import Path

Object = dict[str, Any]

SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final = ("f:spec", "f:replicas")


def to_scale(entries: Sequence[Object], paths: Mapping[str, Path | None]) -> list[Object]:
    """The scale's entries.  ``paths`` says, by apiVersion of the object, where its replicas are."""
    scaled: Managed = {}
    for manager, entry in decode(entries).items():
        path = paths.get(entry.version)
        if path is not None and sets.has(entry.fields, path):
            scaled[manager] = Entry(sets.single(_REPLICAS), SCALE_VERSION, entry.time)
    return encode(scaled)


def from_scale(
    scaled: Sequence[Object], entries: Sequence[Object], paths: Mapping[str, Path | None], api_version: str
) -> list[Object]:
    """The object's entries, after the scale's became ``scaled``; ``api_version`` is the object's."""
    after = decode(scaled)
    before = decode(entries)
    result: Managed = {}
    for manager, entry in before.items():
        if entry.version not in paths:
            continue
        path = paths[entry.version]
        if path is None or not sets.has(entry.fields, path):
            result[manager] = entry
        elif manager in after:
            result[manager] = entry
            del after[manager]
        elif fields := sets.difference(entry.fields, sets.single(path)):
            result[manager] = Entry(fields, entry.version, entry.time)
    path = paths.get(api_version)
    for manager, entry in after.items():
        if path is not None and sets.has(entry.fields, _REPLICAS):
            # An updater of the scale is another one than of the object (its version differs), and so its
            # time is not known here; that is how Kubernetes does it.
            time = before[manager].time if manager in before else None
            result[manager] = Entry(sets.single(path), api_version, time)
    return encode(result)
