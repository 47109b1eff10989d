"""Lets objects share what they have in common: of equal labels, owners and the like, one is kept.

Ten Pods of a ReplicaSet have the same owner and the same labels; each read from its own bytes, they are ten
copies, and most of what metadata costs.  The tables are bounded and simply begun anew when they are full:
objects then share with those that come after, and nothing else depends on it.

The values are shared by objects that have nothing to do with each other, so nobody may change them.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import force_setattr

from setpoint.api.wire import Metadata

LIMIT = 10_000


class Sharing:
    """What has been seen, each once."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._seen: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<Sharing {len(self._seen)} values>"

    def share(self, metadata: Metadata) -> None:
        """Replace what is equal to something seen before by that; while nobody else holds the metadata."""
        seen = self._seen
        if len(seen) > self._limit:
            seen.clear()
        # Written out: this is done for every object that arrives.
        if labels := metadata.labels:
            force_setattr(metadata, "labels", seen.setdefault(tuple(labels.items()), labels))
        if notes := metadata.annotations:
            force_setattr(metadata, "annotations", seen.setdefault(tuple(notes.items()), notes))
        if owners := metadata.owner_references:
            force_setattr(metadata, "owner_references", seen.setdefault(owners, owners))
        if finalizers := metadata.finalizers:
            force_setattr(metadata, "finalizers", seen.setdefault(finalizers, finalizers))
        if namespace := metadata.namespace:
            force_setattr(metadata, "namespace", seen.setdefault(namespace, namespace))
        if created := metadata.creation_timestamp:
            force_setattr(metadata, "creation_timestamp", seen.setdefault(created, created))
