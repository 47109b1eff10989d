"""Decides who must be looked at when an object comes, changes or goes: who owns whom.

The graph holds every object of the cluster by its uid, as far as the watches have told, and for each uid
that is named as an owner, those that name it.  An owner that is not known is no node: whether it exists is
for ``garbage.py`` to ask.  The promises:

1. An object is looked at when one of its owners is not known, is not what the reference says, or is being
   deleted and waits for it; and when one of its owners goes.
2. An owner that waits for its dependents is looked at whenever one of them goes, lets it go, or stops
   blocking it.
3. The cost of a change grows with the number of its own owners and dependents, and with nothing else.

Pure.  Fed by the watches of ``garbage.py``, which also does what is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from setpoint.api.names import Resource
from setpoint.api.wire import Metadata, Owner

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Node:
    """An object: where its kind is kept, and its metadata."""

    resource: Resource
    metadata: Metadata

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def owners(self) -> tuple[Owner, ...]:
        return self.metadata.owner_references or ()

    @property
    def is_deleted(self) -> bool:
        """Whether its deletion has begun."""
        return self.metadata.deletion_timestamp is not None

    @property
    def waits(self) -> bool:
        """Whether it is being deleted, after its dependents."""
        return self.is_deleted and FOREGROUND in (self.metadata.finalizers or ())

    @property
    def orphans(self) -> bool:
        """Whether it is being deleted, and its dependents are to stay."""
        return self.is_deleted and ORPHAN in (self.metadata.finalizers or ())

    def blocks(self, owner: str) -> bool:
        """Whether the owner of this uid may not go before it."""
        return any(each.uid == owner and each.block_owner_deletion for each in self.owners)

    def is_meant_by(self, owner: Owner, namespace: str) -> bool:
        """Whether this is what an owner reference in that namespace names."""
        group = owner.api_version.rpartition("/")[0]
        metadata, resource = self.metadata, self.resource
        return (group, owner.kind, owner.name, owner.uid) == (
            resource.group,
            resource.kind,
            metadata.name,
            metadata.uid,
        ) and metadata.namespace in ("", namespace)

    def is_elsewhere(self, namespace: str) -> bool:
        """Whether it can own nothing in that namespace, being in another one itself."""
        return self.metadata.namespace not in ("", namespace)


class Graph:
    """Who owns whom."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # by the uid of the owner, known or not

    def __repr__(self) -> str:
        return f"<Graph of {len(self._nodes)} objects, {len(self._dependents)} of them or others own some>"

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> Iterator[Node]:
        """Those that name this uid as an owner."""
        return (self._nodes[each] for each in self._dependents.get(uid, ()))

    def is_blocked(self, uid: str) -> bool:
        """Whether some dependent must go before the owner of this uid."""
        return any(each.blocks(uid) for each in self.dependents(uid))

    def put(self, resource: Resource, metadata: Metadata) -> list[str]:
        """An object is so, now; the uids of those who must be looked at for it."""
        node, old = Node(resource, metadata), self._nodes.get(metadata.uid)
        self._nodes[node.uid] = node
        was = {} if old is None else {each.uid: each for each in old.owners}
        now = {each.uid: each for each in node.owners}
        for uid in was.keys() - now.keys():
            self._forget(uid, node.uid)
        for uid in now:
            self._dependents.setdefault(uid, {})[node.uid] = None
        found: dict[str, None] = {}
        if node.is_deleted:
            if old is None or old.metadata.finalizers != metadata.finalizers or not old.is_deleted:
                found[node.uid] = None
        elif any(self._is_doubtful(node, each) for uid, each in now.items() if was.get(uid) != each):
            found[node.uid] = None
        if node.waits and (old is None or not old.waits):
            found |= dict.fromkeys(self._dependents.get(node.uid, ()))
        if old is not None and old.owners != node.owners:
            found |= {each.uid: None for each in self._waiting_owners(old)}
        return list(found)

    def drop(self, uid: str) -> list[str]:
        """An object is gone; the uids of those who must be looked at for it."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return []
        for owner in node.owners:
            self._forget(owner.uid, uid)
        return [*self._dependents.get(uid, ()), *(each.uid for each in self._waiting_owners(node))]

    def drop_kind(self, resource: Resource) -> list[str]:
        """A kind is no longer served; the uids of those who must be looked at for it."""
        gone = [uid for uid, node in self._nodes.items() if node.resource == resource]
        return list(dict.fromkeys(each for uid in gone for each in self.drop(uid)))

    def _is_doubtful(self, node: Node, reference: Owner) -> bool:
        owner = self._nodes.get(reference.uid)
        return owner is None or owner.waits or not owner.is_meant_by(reference, node.metadata.namespace)

    def _waiting_owners(self, node: Node) -> Iterator[Node]:
        owners = (self._nodes.get(each.uid) for each in node.owners)
        return (owner for owner in owners if owner is not None and owner.waits)

    def _forget(self, owner: str, dependent: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is not None:
            dependents.pop(dependent, None)
            if not dependents:
                del self._dependents[owner]
