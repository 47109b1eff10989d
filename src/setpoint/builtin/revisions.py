"""Names what a template is, and keeps the history of what a StatefulSet or DaemonSet was.

A *hash* is a short name for a template: the same template has the same, in any process.  Two templates may
share one; then the owner counts the collision, and the count goes into the hash.

A *ControllerRevision* holds a template as a patch.  Of several with the same content the newest number
counts: going back to an older template gives its revision the next number, and no second one is made.

``next_revision`` and ``surplus`` are pure; ``History`` carries out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from setpoint.api.model import Object, ObjectMeta, from_wire, to_wire
from setpoint.api.patches import MergePatch
from setpoint.api.selectors import LabelSelection
from setpoint.builtin.pods import reference
from setpoint.builtin.pods_claims import claim
from setpoint.builtin.pods_means import Means
from setpoint.client.client import ignore_not_found
from setpoint.errors import AlreadyExists
from setpoint.kube.apps.v1 import ControllerRevision
from setpoint.kube.core.v1 import PodTemplateSpec

REVISION_LABEL: Final = "controller-revision-hash"
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # no vowels and no lookalikes, as in Kubernetes' own names


def hash_of(template: PodTemplateSpec | Mapping[str, Any], collisions: int | None = None) -> str:
    """A short name for a template; with the count of collisions, another."""
    text = json.dumps(to_wire(template), sort_keys=True, separators=(",", ":"))
    seed = text if collisions is None else f"{text}{collisions}"
    number = 0x811C9DC5  # FNV-1a, 32 bits
    for byte in seed.encode():
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return safe(str(number))


def safe(text: str) -> str:
    """The text in letters of which no words are made."""
    return "".join(_ALPHABET[ord(letter) % len(_ALPHABET)] for letter in text)


# ---- revisions -------------------------------------------------------------------------------------


def as_patch(template: PodTemplateSpec) -> dict[str, Any]:
    """A template as a revision holds it."""
    return {"spec": {"template": {"$patch": "replace", **to_wire(template)}}}


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The template that a revision holds."""
    held = dict(revision.data["spec"]["template"])
    held.pop("$patch", None)
    return from_wire(PodTemplateSpec, held)


def oldest_first(revisions: Collection[ControllerRevision]) -> list[ControllerRevision]:
    return sorted(revisions, key=lambda each: (each.revision or 0, each.metadata.name or ""))


@dataclass(frozen=True, slots=True)
class Same:
    """A revision that holds the template already; ``renumbered`` if it must be given the next number."""

    revision: ControllerRevision
    renumbered: int | None = None


def next_revision(revisions: Sequence[ControllerRevision], template: PodTemplateSpec) -> Same | int:
    """The revision that holds the template, or the number of the one to be made."""
    ordered = oldest_first(revisions)
    number = (ordered[-1].revision or 0) + 1 if ordered else 1
    wanted = as_patch(template)
    same = [each for each in ordered if each.data == wanted]
    if not same:
        return number
    newest = same[-1]
    return Same(newest, None if newest is ordered[-1] else number)


def surplus(
    revisions: Sequence[ControllerRevision], live: Collection[str], limit: int | None
) -> list[ControllerRevision]:
    """The oldest revisions beyond the limit, of those that nothing runs at any more."""
    unused = [each for each in oldest_first(revisions) if each.metadata.name not in live]
    return unused[: max(0, len(unused) - (10 if limit is None else limit))]


class History:
    """The revisions of one owner."""

    def __init__(self, means: Means, owner: Object, *, hash_label: str) -> None:
        self._means = means
        self._owner = owner
        self._hash_label = hash_label

    async def revisions(self, selector: LabelSelection) -> list[ControllerRevision]:
        return oldest_first(await claim(self._means, self._owner, selector, ControllerRevision))

    async def current(
        self, revisions: Sequence[ControllerRevision], template: PodTemplateSpec, collisions: int
    ) -> tuple[ControllerRevision, int]:
        """The newest revision, which holds the template, and the collisions that were met until now."""
        found = next_revision(revisions, template)
        if isinstance(found, int):
            return await self._make(template, found, collisions)
        if found.renumbered is None:
            return found.revision, collisions
        patch = MergePatch({"revision": found.renumbered})
        return await self._means.client.patch(found.revision, patch), collisions

    async def _make(
        self, template: PodTemplateSpec, number: int, collisions: int
    ) -> tuple[ControllerRevision, int]:
        while True:
            made = self._new(template, number, collisions)
            try:
                return await self._means.client.create(made), collisions
            except AlreadyExists:
                there = await ignore_not_found(
                    self._means.client.live.get(
                        ControllerRevision, made.metadata.name or "", namespace=made.metadata.namespace
                    )
                )
                if there is not None and there.data == made.data:
                    return there, collisions
                collisions += 1

    def _new(self, template: PodTemplateSpec, number: int, collisions: int) -> ControllerRevision:
        owner = self._owner.metadata
        name = hash_of(template, collisions)
        labels = {**(template.metadata.labels or {}), self._hash_label: name}
        return ControllerRevision(
            metadata=ObjectMeta(
                name=f"{owner.name}-{name}",
                namespace=owner.namespace,
                labels=labels,
                annotations=dict(owner.annotations or {}) or None,
                owner_references=[reference(self._owner)],
            ),
            data=as_patch(template),
            revision=number,
        )

    async def truncate(
        self, revisions: Sequence[ControllerRevision], live: Collection[str], limit: int | None
    ) -> None:
        for each in surplus(revisions, live, limit):
            await ignore_not_found(self._means.client.delete(each, uid=each.metadata.uid or ""))
