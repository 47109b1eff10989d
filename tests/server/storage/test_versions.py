"""Lists at old revisions, from any place on: ``storage/versions.py``."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.server.storage import versions
from setpoint.server.storage.objects import Objects, order
from setpoint.server.storage.protocol import Event, Place, Record
from setpoint.server.storage.versions import Versions

RESOURCES, SPACES, NAMES = ("pods", "nodes"), ("", "a", "a-b"), ("", "x", "x-y", "y")
places = st.builds(Place, st.sampled_from(RESOURCES), st.sampled_from(SPACES), st.sampled_from(NAMES[1:]))


class World:
    """Objects and their versions, and what was there at each revision."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.versions = Versions(self.objects, 1)
        self.revision = 1
        self.then: dict[int, list[Record]] = {1: []}

    def write(self, place: Place, *, is_deleted: bool = False, data: bytes = b"x") -> None:
        previous = self.objects.get(place)
        if is_deleted and previous is None:
            return
        self.revision += 1
        record = Record(place, self.revision, previous.created if previous else self.revision, data)
        if is_deleted:
            self.objects.remove(place)
            self.versions.note(Event("DELETED", record, previous))
        else:
            self.objects.put(record)
            self.versions.note(Event("MODIFIED" if previous else "ADDED", record, previous))
        self.then[self.revision] = list(self.objects)

    def expected(
        self, revision: int, resource: str, namespace: str, after: tuple[str, str] | None
    ) -> list[Record]:
        found = [
            one
            for one in self.then[revision]
            if one.place.resource == resource and namespace in ("", one.place.namespace)
        ]
        found.sort(key=lambda one: order(one.place))
        return [one for one in found if after is None or order(one.place) > after]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(places, st.booleans()), max_size=30),
    st.integers(0, 30),
    st.integers(0, 30),
    st.tuples(st.sampled_from(SPACES), st.sampled_from(NAMES)),
)
def test_a_list_at_a_revision_is_what_was_there_then_whatever_was_forgotten_before(
    writes: list[tuple[Place, bool]], held: int, forgotten: int, start: tuple[str, str]
) -> None:
    world = World()
    for number, (place, is_deleted) in enumerate(writes):
        world.write(place, is_deleted=is_deleted)
        if number == held:
            world.versions.hold(world.revision, now=0)
    world.versions.forget(min(forgotten, world.revision), now=1)
    assert world.versions.floor <= max(1, forgotten)
    for revision in range(world.versions.floor, world.revision + 1):
        for resource in RESOURCES:
            for namespace in SPACES:
                whole = world.expected(revision, resource, namespace, None)
                assert list(world.versions.listed_from(resource, namespace, revision, None)) == whole
                assert world.versions.count(resource, namespace, revision) == len(whole)
                after = order(Place(resource, *start))
                rest = list(world.versions.listed_from(resource, namespace, revision, after))
                assert rest == world.expected(revision, resource, namespace, after)


def test_what_no_list_needs_is_forgotten_and_leaves_nothing_behind() -> None:
    world = World()
    for name in ("x", "y"):
        world.write(Place("pods", "a", name))
        world.write(Place("pods", "a", name), is_deleted=True)
    world.versions.forget(world.revision, now=0)
    assert len(world.versions) == 0
    assert not world.versions._resources


def test_a_list_under_way_keeps_what_it_needs_until_it_is_left_alone() -> None:
    world = World()
    world.write(Place("pods", "a", "x"))
    listed = world.revision
    world.versions.hold(listed, now=0)
    world.write(Place("pods", "a", "x"), is_deleted=True)
    world.versions.forget(world.revision, now=versions._HOLD_SECONDS - 1)
    assert [one.place.name for one in world.versions.listed_from("pods", "", listed, None)] == ["x"]
    world.versions.forget(world.revision, now=versions._HOLD_SECONDS + 1)
    assert world.versions.floor > listed


def test_lists_under_way_keep_no_more_than_their_share() -> None:
    world = World()
    world.versions.hold(world.revision, now=0)
    size = versions._MAX_BYTES // 8
    for _ in range(20):
        world.write(Place("pods", "a", "x"), data=b"x" * size)
        world.versions.forget(world.revision, now=0)
    assert len(world.versions) <= 8


def test_only_so_many_lists_are_remembered() -> None:
    world = World()
    for revision in range(versions._MAX_HOLDS + 5):
        world.versions.hold(revision, now=0)
    assert len(world.versions._holds) == versions._MAX_HOLDS
    assert 0 not in world.versions._holds, "the one not asked for the longest went"
