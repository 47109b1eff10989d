"""Holds the objects of one kind, as bytes and metadata; one writer, many readers.

The promises:

1. Only a ``Writer`` changes a store, and there is one to a store.  Who is handed a ``Store`` can only read.
2. A list is swapped in whole: readers see the old one or the new one, and the difference comes out as
   changes, deletions first, in which every vanished object is DELETED exactly once.
3. An object never goes back: an event older than what is held, or than the object's deletion, is ignored.
   (Where versions cannot be compared, what was said last counts.)
4. An object that was deleted and made again is DELETED, then ADDED, also where both were missed.
5. Indexes always agree with the objects.

Nothing here waits, so that nothing is ever seen half done; all of it belongs to one thread.  Fed by
``informer.py``, read through ``cache.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from setpoint.api.names import Key
from setpoint.api.selectors import FieldSelection, LabelSelection
from setpoint.api.wire import Snapshot
from setpoint.cache.index import Index, by_owner
from setpoint.cache.paths import has_fields
from setpoint.cache.versions import is_older, later, latest, number

REMEMBERED_DELETIONS = 1_000

_Objects: TypeAlias = dict[str, dict[str, Snapshot]]  # by namespace, then by name


class Seen(NamedTuple):
    """A change, as listeners hear of it; a DELETED one's ``old`` is the object as it last was."""

    type: Literal["ADDED", "UPDATED", "DELETED", "RESYNC"]
    old: Snapshot | None
    new: Snapshot | None
    initial: bool = False  # it was there when the listener, or the store, began

    @property
    def snapshot(self) -> Snapshot:
        """The object as it is, or as it last was."""
        snapshot = self.old if self.new is None else self.new
        if snapshot is None:
            raise AssertionError("a change is about an object")
        return snapshot

    @property
    def key(self) -> Key:
        return self.snapshot.key


@dataclass(frozen=True, slots=True)
class Query:
    """Which objects; all of them where nothing is said."""

    namespace: str = ""
    labels: LabelSelection = field(default_factory=LabelSelection)
    fields: FieldSelection = field(default_factory=FieldSelection)
    owner: str = ""  # a uid
    index: Mapping[str, str] = field(default_factory=dict)  # name → value

    def filters(self, snapshot: Snapshot) -> bool:
        """Whether an object has the labels and fields that are wanted."""
        return self.labels.matches(snapshot.metadata.labels) and has_fields(snapshot, self.fields)

    def is_owned(self, snapshot: Snapshot) -> bool:
        """Whether an object has the owner that is wanted."""
        owners = snapshot.metadata.owner_references or ()
        return not self.owner or any(owner.uid == self.owner for owner in owners)


@dataclass(slots=True)
class _Contents:
    """What the store and its writer share."""

    objects: _Objects = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    owners: Index | None = None  # made when first asked for: few kinds are looked up so
    version: str = ""
    is_synced: bool = False
    size: int = 0

    def all_indexes(self) -> list[Index]:
        indexes = list(self.indexes.values())
        return indexes if self.owners is None else [*indexes, self.owners]


class Store:
    """The objects of one kind, to read."""

    def __init__(self, contents: _Contents) -> None:
        self._contents = contents

    def __repr__(self) -> str:
        state = f"at version {self.version or 'unknown'}" if self.is_synced else "not synced"
        return f"<Store {len(self)} objects, {self.bytes} bytes, {state}>"

    def __len__(self) -> int:
        return sum(map(len, self._contents.objects.values()))

    def __iter__(self) -> Iterator[Snapshot]:
        for objects in self._contents.objects.values():
            yield from objects.values()

    @property
    def bytes(self) -> int:
        """What the objects weigh, without their metadata."""
        return self._contents.size

    @property
    def version(self) -> str:
        """The newest version seen, on an object or a bookmark; "" before the first list."""
        return self._contents.version

    @property
    def is_synced(self) -> bool:
        """Whether a whole list has been swapped in."""
        return self._contents.is_synced

    @property
    def indexes(self) -> Mapping[str, Index]:
        return self._contents.indexes

    def get(self, key: Key) -> Snapshot | None:
        objects = self._contents.objects.get(key.namespace)
        return None if objects is None else objects.get(key.name)

    def select(self, query: Query = Query()) -> list[Snapshot]:  # noqa: B008 - it is frozen
        """The objects that a query means, by namespace and name."""
        found = self._candidates(query)
        if query.labels.requirements or query.fields.requirements:
            found = filter(query.filters, found)
        return sorted(found, key=_place)

    def _candidates(self, query: Query) -> Iterable[Snapshot]:
        indexed = sorted(self._indexed(query), key=len)
        if not indexed:
            return self._contents.objects.get(query.namespace, {}).values() if query.namespace else self
        keys = set(indexed[0]).intersection(*indexed[1:])
        snapshots = (self.get(key) for key in keys if not query.namespace or key.namespace == query.namespace)
        return (snapshot for snapshot in snapshots if snapshot is not None)

    def _indexed(self, query: Query) -> Iterator[AbstractSet[Key]]:
        """For each part of a query that an index answers, the keys."""
        for name, value in query.index.items():
            yield self._index(name).keys(value)
        if query.owner:
            yield self._by_owner().keys(query.owner)
        for requirement in query.fields.requirements:
            index = self.indexes.get(requirement.field)
            # Those without the field are in no index, and those of a function say nothing of fields.
            if index is not None and index.is_of_field and requirement.operator == "=" and requirement.value:
                yield index.keys(requirement.value)

    def _index(self, name: str) -> Index:
        try:
            return self.indexes[name]
        except KeyError:
            known = ", ".join(sorted(self.indexes)) or "none"
            raise ValueError(
                f"there is no index {name!r} (there are: {known}); declare the kind with indexes=[{name!r}]"
            ) from None

    def _by_owner(self) -> Index:
        contents = self._contents
        if contents.owners is None:
            contents.owners = by_owner()
            for snapshot in self:
                contents.owners.put(snapshot)
        return contents.owners


class Writer:
    """The one that may change a store."""

    def __init__(self) -> None:
        self._contents = _Contents()
        self.store = Store(self._contents)
        self._staged: _Objects = {}
        # When what is not there was last known not to be there: the newest deletions, and everything else.
        self._gone: dict[Key, str] = {}
        self._absent_at = ""
        self.is_distrusting = False

    def __repr__(self) -> str:
        return f"<Writer of {self.store!r}, {sum(map(len, self._staged.values()))} staged>"

    def add_index(self, index: Index, *, anew: bool = False) -> None:
        """Have one more index, or ``anew`` one in place of another; what is there is entered now."""
        known = self._contents.indexes.get(index.name)
        if known is None or (anew and known.definition != index.definition):
            for snapshot in self.store:
                index.put(snapshot)
            self._contents.indexes[index.name] = index
        elif known.definition != index.definition:
            raise ValueError(f"there is an index {index.name!r} already, of another definition")

    # A list, from its first page to the swap.

    def stage(self, snapshots: Iterable[Snapshot]) -> None:
        held = self._contents.objects
        for snapshot in snapshots:
            namespace, name = snapshot.metadata.namespace, snapshot.metadata.name
            known = held[namespace].get(name) if namespace in held else None
            if known is None or self.is_distrusting or not _is_same(known, snapshot):
                known = snapshot  # what did not change is held once, while both lists are
            self._staged.setdefault(namespace, {})[name] = known

    def unstage(self, key: Key) -> None:
        self._staged.get(key.namespace, {}).pop(key.name, None)

    def forget(self) -> None:
        self._staged = {}

    def distrust(self) -> None:
        """Until the next swap, take no version for a proof that an object is the same."""
        self.forget()
        self.is_distrusting = True

    def swap(self, version: str) -> list[Seen]:
        """Put what is staged in the place of all there was; the difference."""
        contents = self._contents
        after, self._staged = self._staged, {}
        self._gone, self._absent_at = {}, version
        is_same = _is_equal if self.is_distrusting else _is_same
        seen = list(_difference(contents.objects, after, is_same, initial=not contents.is_synced))
        self.is_distrusting = False
        contents.objects, contents.version, contents.is_synced = after, version, True
        contents.size = sum(len(snapshot.data) for snapshot in self.store)
        for index in contents.all_indexes():
            for change in seen:
                if change.new is None:
                    index.drop(change.key)
                else:
                    index.put(change.new)
        return seen

    # A change at a time.

    def put(self, *snapshots: Snapshot) -> list[Seen]:
        """The objects are now as given, one after the other."""
        contents = self._contents
        contents.version = latest(contents.version, snapshots)
        indexes, seen = contents.all_indexes(), list[Seen]()
        for snapshot in snapshots:
            metadata = snapshot.metadata
            namespace, name, version = metadata.namespace, metadata.name, metadata.resource_version
            held = contents.objects.get(namespace)
            old = None if held is None else held.get(name)
            if old is None:
                absent_at = self._gone.get(metadata.key, self._absent_at)
                if version and (version == absent_at or is_older(version, absent_at)):
                    continue
                seen.append(Seen("ADDED", None, snapshot))
            elif _is_same(old, snapshot) or is_older(version, old.metadata.resource_version):
                continue
            elif old.metadata.uid != metadata.uid:
                seen += Seen("DELETED", old, None), Seen("ADDED", None, snapshot)
            else:
                seen.append(Seen("UPDATED", old, snapshot))
            if held is None:
                held = contents.objects[namespace] = {}
            held[name] = snapshot
            contents.size += len(snapshot.data) - (len(old.data) if old is not None else 0)
            for index in indexes:
                index.put(snapshot)
        return seen

    def drop(self, snapshot: Snapshot) -> list[Seen]:
        """The object is no more; given is how it last was."""
        contents, key, version = self._contents, snapshot.key, snapshot.metadata.resource_version
        self.reach(version)
        old = self.store.get(key)
        if old is not None and is_older(version, old.metadata.resource_version):
            return []
        self._remember_gone(key, version)
        if old is None:
            return []
        objects = contents.objects[key.namespace]
        del objects[key.name]
        if not objects:
            del contents.objects[key.namespace]
        contents.size -= len(old.data)
        for index in contents.all_indexes():
            index.drop(key)
        return [Seen("DELETED", snapshot, None)]

    def reach(self, version: str) -> None:
        """All up to this version has been seen."""
        self._contents.version = later(self._contents.version, version)

    def _remember_gone(self, key: Key, version: str) -> None:
        self._gone.pop(key, None)
        self._gone[key] = version
        if len(self._gone) > REMEMBERED_DELETIONS:
            oldest = next(iter(self._gone))
            self._absent_at = later(self._absent_at, self._gone.pop(oldest))


def _difference(
    before: _Objects, after: _Objects, is_same: Callable[[Snapshot, Snapshot], bool], *, initial: bool
) -> Iterator[Seen]:
    for namespace, objects in before.items():
        now = after.get(namespace, {})
        for name, old in objects.items():
            new = now.get(name)
            if new is None or new.metadata.uid != old.metadata.uid:
                yield Seen("DELETED", old, None)
    for namespace, objects in after.items():
        then = before.get(namespace, {})
        for name, new in objects.items():
            known = then.get(name)
            if known is None or known.metadata.uid != new.metadata.uid:
                yield Seen("ADDED", None, new, initial)
            elif not is_same(known, new):
                yield Seen("UPDATED", known, new)


def _is_same(one: Snapshot, other: Snapshot) -> bool:
    first, second = one.metadata, other.metadata
    return first.resource_version == second.resource_version and first.uid == second.uid


def _is_equal(one: Snapshot, other: Snapshot) -> bool:
    return _is_same(one, other) and one.data == other.data


def is_impossible(change: Seen, reached: str) -> bool:
    """Whether a list brings an object, as new, that a store which had reached this version must have held.

    Then the list is of another past: what last changed at or before a version was there at that version.
    """
    if change.new is None or change.initial:
        return False
    version = number(change.new.metadata.resource_version)
    had = number(reached)
    return version is not None and had is not None and version <= had


def _place(snapshot: Snapshot) -> tuple[str, str]:
    return snapshot.metadata.namespace, snapshot.metadata.name
