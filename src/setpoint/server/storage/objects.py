"""What lies where now: the current objects, found by their place and listed in order.

Promises:

1. ``get`` is a look into dicts; ``listed`` never sorts.
2. The order is that of the bytes of ``namespace/name``, as Kubernetes lists: ``a-b/x`` comes before ``a/x``.
3. Resources and namespaces are compared whole: ``foos`` never shows in a list of ``foo``.

No revisions are decided here, and nothing waits.  Fed and read by ``reads.py``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping

from setpoint.server.storage.protocol import Place, Record


def order(place: Place) -> tuple[str, str]:
    """What the places of one resource are sorted by."""
    return place.namespace + "/", place.name


class _Shelf:
    """The objects of one resource in one namespace."""

    __slots__ = ("names", "records")

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}  # the truth
        self.names: list[str] = []  # its keys, sorted


class _Resource:
    """The shelves of one resource; one without objects is taken away."""

    __slots__ = ("count", "namespaces", "shelves")

    def __init__(self) -> None:
        self.count = 0  # objects
        self.shelves: dict[str, _Shelf] = {}
        self.namespaces: list[str] = []  # its keys, each with the slash that orders them, sorted


class Objects:
    """The current objects of all resources."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._resources: dict[str, _Resource] = {}
        self._count = 0
        for record in records:
            self._shelf(record.place).records[record.place.name] = record
        for resource in self._resources.values():
            for shelf in resource.shelves.values():
                shelf.names = sorted(shelf.records)
                resource.count += len(shelf.names)
            self._count += resource.count

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Objects {self._count} of {len(self._resources)} resources>"

    def __iter__(self) -> Iterator[Record]:
        for resource in sorted(self._resources):
            yield from self.listed(resource)

    def get(self, place: Place) -> Record | None:
        resource = self._resources.get(place.resource)
        shelf = resource.shelves.get(place.namespace) if resource else None
        return shelf.records.get(place.name) if shelf else None

    def listed(self, resource: str, namespace: str = "") -> list[Record]:
        """By namespace and name; namespace "" gives all."""
        found = self._resources.get(resource)
        if found is None:
            return []
        if namespace:
            shelf = found.shelves.get(namespace)
            return [shelf.records[name] for name in shelf.names] if shelf else []
        listed: list[Record] = []
        for slashed in found.namespaces:
            shelf = found.shelves[slashed[:-1]]
            records = shelf.records
            listed += [records[name] for name in shelf.names]
        return listed

    def shelf(self, resource: str, namespace: str) -> tuple[list[str], Mapping[str, Record]]:
        """The sorted names of one namespace, and the objects by name: as they are kept, not to be changed."""
        found = self._resources.get(resource)
        shelf = found.shelves.get(namespace) if found else None
        return (shelf.names, shelf.records) if shelf else ([], {})

    def namespaces(self, resource: str) -> list[str]:
        """Those that have objects, each with a slash, sorted: as they are kept, not to be changed."""
        found = self._resources.get(resource)
        return found.namespaces if found else []

    def count(self, resource: str, namespace: str = "") -> int:
        """How many are listed; namespace "" counts all."""
        found = self._resources.get(resource)
        if found is None:
            return 0
        if not namespace:
            return found.count
        shelf = found.shelves.get(namespace)
        return len(shelf.names) if shelf else 0

    def put(self, record: Record) -> None:
        """Lay it where it belongs, in place of what is there."""
        shelf, name = self._shelf(record.place), record.place.name
        if name not in shelf.records:
            insort(shelf.names, name)
            self._count += 1
            self._resources[record.place.resource].count += 1
        shelf.records[name] = record

    def remove(self, place: Place) -> None:
        """Take away what is there, which there must be."""
        resource = self._resources[place.resource]
        shelf = resource.shelves[place.namespace]
        del shelf.records[place.name]
        del shelf.names[bisect_left(shelf.names, place.name)]
        self._count -= 1
        resource.count -= 1
        if shelf.records:
            return
        del resource.shelves[place.namespace]
        del resource.namespaces[bisect_left(resource.namespaces, place.namespace + "/")]
        if not resource.shelves:
            del self._resources[place.resource]

    def _shelf(self, place: Place) -> _Shelf:
        """The one where it belongs, made where there is none."""
        resource = self._resources.get(place.resource)
        if resource is None:
            resource = self._resources[place.resource] = _Resource()
        shelf = resource.shelves.get(place.namespace)
        if shelf is None:
            shelf = resource.shelves[place.namespace] = _Shelf()
            insort(resource.namespaces, place.namespace + "/")
        return shelf
