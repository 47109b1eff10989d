"""What lies where, held against a plain dict that is sorted each time."""

from __future__ import annotations

import random

from setpoint.server.storage.objects import Objects, order
from setpoint.server.storage.protocol import Place, Record


def test_whatever_is_put_and_removed_is_listed_as_a_sorted_dict_would() -> None:
    chance = random.Random(0)
    objects, plain = Objects(), dict[Place, Record]()
    for revision in range(3_000):
        place = Place(
            chance.choice(["a", "ab", "a.b"]),
            chance.choice(["", "n", "n-1", "n0"]),
            chance.choice("abcdefgh") + chance.choice(["", "-", ".", "0"]),
        )
        if place in plain and chance.random() < 0.5:
            objects.remove(place)
            del plain[place]
        else:
            objects.put(record := Record(place, revision, revision, b""))
            plain[place] = record
        assert objects.get(place) == plain.get(place)
        if revision % 50 == 0:
            _check(objects, plain)
            _check(Objects(chance.sample(list(plain.values()), len(plain))), plain)
    for place in list(plain):
        objects.remove(place)
    assert len(objects) == 0
    assert not objects._resources, "and nothing is left behind"


def _check(objects: Objects, plain: dict[Place, Record]) -> None:
    assert len(objects) == len(plain)
    assert set(objects) == set(plain.values())
    for resource in ("a", "ab", "a.b", "b"):
        for namespace in ("", "n", "n-1", "n0", "x"):
            expected = [
                record
                for record in sorted(plain.values(), key=lambda record: order(record.place))
                if record.place.resource == resource and namespace in {"", record.place.namespace}
            ]
            assert objects.listed(resource, namespace) == expected


def test_the_order_is_that_of_the_bytes_of_namespace_slash_name() -> None:
    places = [Place("r", namespace, name) for namespace in ("a", "a-b", "a0") for name in ("x", "x-y", "x.y")]
    assert sorted(places, key=order) == sorted(places, key=lambda place: f"{place.namespace}/{place.name}")
