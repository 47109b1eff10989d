"""Which plans to run: every effect and event of the reference, with every single fault that can strike there.

The order is by what is likely to be found: crashes and lost answers first, then refusals, then what the
operator sees, then what others do; within a class, in the order of effects.  What a reconcile reads can only
be refused, a few times for each sort of read: there are many, and one is much like another.  ``pairs`` puts
two faults together, where one alone is known not to show everything.  So that a budget that is too small for
all leaves no class out, ``in_turn`` has a few of each come first.  What may be put together in any way, in
the whole life or a part of it, is ``combinable``'s and ``parts``' to say; ``drawn.py`` draws from it.

A *cell* is a class of fault at one sort of effect or event (whatever its occurrence): coverage is told in
cells.  What a run came to is told in *outcomes*.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from setpoint.testing.proof.plans import (
    MARK,
    NEEDS_LEADER,
    Alter,
    AnyFault,
    At,
    Break,
    Change,
    ClockStep,
    Compact,
    Crash,
    Create,
    Cut,
    Delete,
    Double,
    Freeze,
    Hide,
    Interfere,
    LeaseDeleted,
    Linger,
    Lose,
    Merge,
    Overlap,
    Pass,
    Plan,
    Refuse,
    Restart,
    Rotate,
    Silence,
    Slow,
    SlowClock,
    Starve,
    Step,
    Swap,
    Throttle,
    Travel,
    Unadmitted,
    Uncollected,
    Unrenewed,
    Unwritable,
)
from setpoint.testing.proof.trace import Effect, Run, Written

CODES = (409, 500, 504, 403, 422, 503, 0)  # no 404: that what is there is not there is a lie, and no failure
UNREAD = (500, 403, 503, 0)  # as reads are refused
READS = 4  # so many of a verb and a resource are refused, with each code
FREEZES = (16.0, 301.0, 3601.0)
JUMPS = (-3600.0, 3600.0, -60.0, 60.0)  # of a calendar
ASLEEP = 3600.0  # seconds, by which a clock that never goes back may be ahead then
BACK = 6  # so many of the states before are returned to, and of one resource half as many
GUARDS: tuple[tuple[Literal["Fail", "Ignore"], bool], ...] = (
    ("Fail", False),
    ("Fail", True),
    ("Ignore", True),
)
NOBODY = "00000000-0000-4000-8000-000000000000"  # a uid
TWICE = 5  # more often than the client tries again by itself


@dataclass(frozen=True, slots=True)
class Cell:
    """A class of fault, at a sort of place."""

    fault: str
    what: str

    def __str__(self) -> str:
        return f"{self.fault} at {self.what}"


def cell_of(plan: Plan) -> Cell:
    return Cell(plan.id, " + ".join(fault.at.what for fault in plan.faults))


def cells_of(plan: Plan) -> Iterator[Cell]:
    """Those of each of its faults alone."""
    return (Cell(fault.id, fault.at.what) for fault in plan.faults)


def singles(reference: Run, steps: tuple[Step, ...], *, only: frozenset[str] = frozenset()) -> Iterator[Plan]:
    """One fault each."""
    seed = reference.plan.seed
    for faults in _columns(reference, steps):
        for fault in faults:
            if not only or fault.id in only:
                yield Plan(steps, (fault,), seed, replicas=fault.replicas)


def _columns(reference: Run, steps: tuple[Step, ...]) -> Iterator[list[AnyFault]]:
    """Class by class, so that a short budget has seen something of each that matters."""
    effects = reference.effects
    api = [effect for effect in effects if not effect.is_external]
    external = [effect for effect in effects if effect.is_external]
    resources = sorted({_resource(at.what) for at in reference.events})
    written = sorted({_resource(effect.at.what) for effect in api})
    objects = _Objects.of(reference, steps)
    asked = [(effect, objects.at(effect)) for effect in effects if objects.known]
    yield [Crash(at=effect.at, when="after") for effect in effects]
    yield [Crash(at=effect.at, when="before") for effect in effects]
    yield [Lose(at=effect.at, code=code) for code in (0, 504) for effect in effects]
    yield [Crash(at=effect.at, when="after", down=(obj.delete,)) for effect, obj in asked]
    yield [Interfere(at=effect.at, steps=(obj.delete,)) for effect, obj in asked]
    yield [Interfere(at=effect.at, steps=(obj.delete,), when="after") for effect, obj in asked]
    yield [Interfere(at=effect.at, steps=(obj.delete, obj.create), when="after") for effect, obj in asked]
    yield [
        Freeze(at=effect.at, resources=(each,), seconds=FREEZES[0]) for effect in effects for each in written
    ]
    yield [Refuse(at=effect.at, code=code) for code in CODES[:3] for effect in effects if _may(effect, code)]
    yield [Refuse(at=effect.at, code=code, times=TWICE) for code in (500, 504) for effect in api]
    yield _unread(reference)
    yield [Merge(at=at) for at in reference.events]
    yield [Cut(at=at, expire=True) for at in reference.events]
    yield [Cut(at=at) for at in reference.events]
    yield [Cut(at=at, away=0.0) for at in reference.events]
    yield [Double(at=at) for at in reference.events]
    yield [Swap(at=at) for at in reference.events]
    yield [Interfere(at=effect.at, steps=(change,)) for effect, obj in asked for change in obj.changes[:1]]
    yield _marks(reference)
    yield _meddling(reference)
    yield _lingering(reference, objects)
    yield [Hide(at=effect.at) for effect in external if effect.at.what.startswith("create ")]
    yield [Throttle(at=effect.at) for effect in api]
    yield [Slow(at=effect.at) for effect in api]
    yield [Freeze(at=effect.at, seconds=FREEZES[0]) for effect in effects]
    yield [Freeze(at=effect.at, resources=(each,), seconds=1.0) for effect in effects for each in resources]
    yield [Restart(at=effect.at) for effect in api]
    yield [Compact(at=effect.at) for effect in api]
    yield [Unwritable(at=effect.at) for effect in api]
    yield [
        Unadmitted(at=effect.at, policy=policy, is_slow=is_slow)
        for policy, is_slow in GUARDS
        for effect in api
        if not effect.at.what.startswith("delete")
    ]
    yield [Break(at=at, code=code) for code in (500, 504) for at in reference.events]
    yield [Silence(at=at) for at in reference.events]
    yield [Uncollected(at=effect.at) for effect in effects]
    yield [ClockStep(at=effect.at, seconds=seconds) for seconds in JUMPS for effect in effects]
    yield [ClockStep(at=effect.at, seconds=ASLEEP, clock="steady") for effect in effects]
    yield [SlowClock(at=effect.at) for effect in effects]
    yield [Rotate(at=effect.at) for effect in api]
    yield [Overlap(at=effect.at) for effect in effects]
    yield [Unrenewed(at=effect.at, code=code) for code in (500, 409, 0) for effect in effects]
    yield [LeaseDeleted(at=effect.at) for effect in effects]
    yield [Refuse(at=effect.at, code=code) for code in CODES[3:] for effect in effects]
    yield [
        Freeze(at=effect.at, resources=(each,), seconds=FREEZES[1]) for effect in effects for each in written
    ]
    yield [
        Freeze(at=effect.at, resources=(each,), seconds=FREEZES[2])
        for each in written
        for effect in [first for first in api if _resource(first.at.what) == each][:1]
    ]
    others = [each for each in resources if each not in objects.resources]
    yield [Starve(at=effect.at, resources=(each,)) for effect in api for each in others]
    yield [Travel(at=effect.at, back=back, allowed=True) for back in (1, 3) for effect in effects]
    yield [Travel(at=effect.at, back=back) for effect in effects for back in _back(reference, effect)]
    yield [
        Travel(at=effect.at, back=back, resources=(each,))
        for each in resources
        for effect in effects
        for back in _back(reference, effect, each)
    ]
    yield _alterations(reference)


def _unread(reference: Run) -> list[AnyFault]:
    """What a reconcile reads is refused, so often that it hears of that, where the client tries again."""
    sorts: dict[tuple[str, str], list[Effect]] = {}
    for read in reference.reads:
        verb, resource, *_ = read.at.what.split(" ")
        sorts.setdefault((verb, resource), []).append(read)
    return [
        Refuse(at=read.at, code=code, times=1 if read.is_external or code == 403 else TWICE)
        for code in UNREAD
        for reads in sorts.values()
        for read in (reads[number] for number in _evenly(len(reads), READS))
    ]


def _marks(reference: Run) -> list[AnyFault]:
    """Another program puts a label on an object that is there, just before the operator writes it."""
    label = {"metadata": {"labels": {MARK: "was-here"}}}
    return [
        Interfere(at=effect.at, steps=(_change(obj, label),), by="other")
        for effect, obj in _named(reference)
        if not _has_made(reference, effect, obj["metadata"])
    ]


def _has_made(reference: Run, effect: Effect, metadata: dict[str, Any]) -> bool:
    place = f"{_resource(effect.at.what)} {metadata.get('namespace', '')}/{metadata['name']}"
    return any(
        write.type == "ADDED" and write.place == place and effect.time <= write.time <= effect.ended
        for write in reference.writes
    )


def _meddling(reference: Run) -> list[AnyFault]:
    """Another program changes or deletes a child, as soon as the operator has written it; of those that it
    watches, for nobody else need notice.
    """
    watched = {_resource(at.what) for at in reference.events}
    found: list[AnyFault] = []
    for effect, obj in _named(reference):
        resource = _resource(effect.at.what)
        metadata = obj["metadata"]
        if resource not in watched or not metadata.get("ownerReferences"):
            continue
        delete = Delete(obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace", ""))
        steps: list[Step] = [_change(obj, patch) for patch in _drift(obj)]
        found += [
            Interfere(at=effect.at, steps=(step,), when="after", by="other") for step in (*steps, delete)
        ]
    return found


def _lingering(reference: Run, objects: _Objects) -> list[AnyFault]:
    """Another program's finalizer stands on an object that is deleted later on: on what the user made, from
    the first effect and from before each that writes to it; on a child, from when it is made.
    """
    lives: dict[str, list[Written]] = {}
    for write in filter(_is_inside, reference.writes):
        key = "/".join(filter(None, (write.namespace, write.name)))
        lives.setdefault(f"{write.resource} {key}", []).append(write)
    found: list[AnyFault] = []
    for place, writes in lives.items():
        obj = _decoded(writes[0])
        identity = obj["apiVersion"], obj["kind"], writes[0].name, writes[0].namespace
        on_it = [effect for effect in reference.effects if effect.at.what.partition(" ")[2] == place]
        if writes[0].by.startswith("operator"):
            made = [effect for effect in on_it[:1] if _goes_later(writes, effect.ended)]
            found += [Linger(*identity, at=effect.at, when="after") for effect in made]
        elif identity[:2] in objects.known:
            living = [effect for effect in reference.effects if _goes_later(writes, effect.time)]
            there = [effect for effect in living if effect is living[0] or effect in on_it]
            found += [Linger(*identity, at=effect.at) for effect in there]
    return found


def _goes_later(lives: list[Written], moment: float) -> bool:
    """Whether an object, of which these are all writes, was there at a moment, and was deleted later."""
    before = [write for write in lives if write.time <= moment]
    if not before or before[-1].type == "DELETED" or b'"deletionTimestamp"' in before[-1].data:
        return False
    return any(write.type == "DELETED" for write in lives[len(before) :])


def _drift(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Patches of what an operator asks for in a child, as somebody makes them by hand."""
    if data := obj.get("data"):
        yield {"data": {next(iter(data)): "ZHJpZnRlZA=="}}  # fits a Secret too
    replicas = (obj.get("spec") or {}).get("replicas")
    if isinstance(replicas, int):
        yield {"spec": {"replicas": replicas + 1}}


def _back(reference: Run, effect: Effect, resource: str = "") -> list[int]:
    """How many writes ago it was otherwise, as seen from an effect: to before each of the last few writes, or
    of the last few of a resource; what lies between two of them looks the same.
    """
    before = [write for write in reference.writes if write.time <= effect.ended and _is_inside(write)]
    if not before:
        return []
    last = before[-1].revision
    found = [write.revision for write in before if not resource or write.resource == resource]
    return [last - revision + 1 for revision in found[-(BACK // 2 if resource else BACK) :]][::-1]


def _is_inside(write: Written) -> bool:
    """Whether the server wrote it, and not a cloud."""
    return b'"apiVersion"' in write.data


def _alterations(reference: Run) -> list[AnyFault]:
    """One field that others depend on is spoiled in a child, as soon as the operator has written it."""
    return [
        Alter(at=effect.at, step=_change(obj, patch))
        for effect, obj in _named(reference)
        for patch in _spoiled(obj)
    ]


def _named(reference: Run) -> Iterator[tuple[Effect, dict[str, Any]]]:
    """The effects on objects whose names are known, each with how the object was first written."""
    objects: dict[tuple[str, str, str], dict[str, Any]] = {}
    for write in reference.writes:
        obj = msgspec.json.decode(write.data)
        if "apiVersion" in obj:
            objects.setdefault((write.resource, write.namespace, write.name), obj)
    for effect in reference.effects:
        verb, what, *key = effect.at.what.split(" ")
        namespace, _, name = key[0].rpartition("/") if key else ("", "", "")
        found = objects.get((what.partition("/")[0], namespace, name))
        if verb != "delete" and found is not None:
            yield effect, found


def _change(obj: dict[str, Any], patch: dict[str, Any]) -> Change:
    metadata = obj["metadata"]
    return Change(obj["apiVersion"], obj["kind"], metadata["name"], patch, metadata.get("namespace", ""))


def _spoiled(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Patches that spoil what others go by."""
    metadata = obj["metadata"]
    if owners := metadata.get("ownerReferences"):
        yield {"metadata": {"ownerReferences": None}}
        yield {"metadata": {"ownerReferences": [{**owners[0], "uid": NOBODY}]}}
        for label in list(metadata.get("labels") or ())[:1]:
            yield {"metadata": {"labels": {label: "spoiled"}}}


def thinned(plans: list[Plan], most: int) -> Iterator[Plan]:
    """Of each class at most so many, spread evenly."""
    return (plans[number] for number in _spread(plans, most))


def in_turn(*groups: list[Plan], first: int) -> Iterator[Plan]:
    """All plans of these groups, but ``first`` so many of each class, spread evenly; then the rest."""
    early = [_spread(plans, first) for plans in groups]
    for plans, numbers in zip(groups, early, strict=True):
        yield from (plans[number] for number in numbers)
    for plans, taken in zip(groups, map(set, early), strict=True):
        yield from (plan for number, plan in enumerate(plans) if number not in taken)


def _spread(plans: list[Plan], most: int) -> list[int]:
    """Which plans are the ones, if of each class at most so many are taken, evenly."""
    classes: dict[str, list[int]] = {}
    for number, plan in enumerate(plans):
        classes.setdefault(plan.id, []).append(number)
    return [those[place] for those in classes.values() for place in _evenly(len(those), most)]


def _evenly(count: int, most: int) -> list[int]:
    """At most so many of the numbers below ``count``, the first among them."""
    return [place * count // min(most, count) for place in range(min(most, count))]


def pairs(reference: Run, steps: tuple[Step, ...]) -> Iterator[Plan]:
    """Two faults each, of the kinds that hide from one."""
    seed = reference.plan.seed
    effects = [effect.at for effect in reference.effects]
    objects = _Objects.of(reference, steps)
    for number, at in enumerate(effects):
        again = At(at.what, at.nth + 1)  # which is only sure to come if the first was not done
        first = Crash(at=at, when="after" if again in effects else "before")
        yield Plan(steps, (first, Crash(at=again, when="after")), seed)
        for later in effects[number + 1 : number + 3]:
            yield Plan(steps, (Crash(at=at, when="after"), Crash(at=later, when="after")), seed)
    for effect in reference.effects if objects.known else ():
        for event in reference.events:
            for change in objects.at(effect).changes[:1]:
                acts = Interfere(at=effect.at, steps=(change,), when="after")
                yield Plan(steps, (acts, Merge(at=event)), seed)
    for at in effects:
        yield Plan(steps, (Lose(at=at), Freeze(at=at, resources=(_resource(at.what),))), seed)
    for number, effect in enumerate(reference.effects):
        # Who takes over has not seen the last thing that the leader did.
        last = reference.effects[max(0, number - 1)]
        since = last if last.look == effect.look else effect
        yield Plan(steps, (Freeze(at=since.at, seconds=FREEZES[1]), Overlap(at=effect.at)), seed)


def combinable(reference: Run, steps: tuple[Step, ...]) -> list[list[AnyFault]]:
    """What may strike together, class by class; nothing, where it does not even come to rest without.

    What is never seen again is not mended by a restart, and stands alone.  So do leases and slow clocks:
    where one process waits for another to go, what strikes the view of the former is not over when it leads.
    """
    if not all(point.is_settled for point in reference.checkpoints):
        return []
    alone = (*NEEDS_LEADER, SlowClock, Starve)
    return [each for each in _columns(reference, steps) if each and not isinstance(each[0], alone)]


def parts(steps: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    """The lives that leave something out: all but some steps in a row; the first is always there.

    What was asked for though it may fail is always taken back.
    """
    return [
        steps[:first] + steps[last:]
        for first in range(1, len(steps))
        for last in range(first + 1, len(steps) + 1)
        if not _may_fail(steps[first - 1])
    ]


def outcomes(run: Run) -> set[tuple[str, str]]:
    """What came of all that the operator asked for, and of its looks; each once."""
    asked = {(effect.at.what, effect.came_to) for effect in run.effects}
    return asked | {(look.controller, look.error.partition(":")[0] or look.came_to) for look in run.looks}


def _may_fail(step: Step) -> bool:
    return isinstance(step, Change) and step.may_fail


def _may(effect: Effect, code: int) -> bool:
    """Whether it can be refused so; outside, a conflict says that the thing is there: a lie."""
    return code != 409 or not effect.is_external


def _resource(what: str) -> str:
    """Of an effect or an event; of a subresource, whose it is."""
    return what.split(" ")[1].partition("/")[0]


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of the user's, and what can be done to it at any time; deletion is the sharpest weapon."""

    create: Create
    delete: Delete
    changes: tuple[Change, ...]

    @classmethod
    def of(cls, create: Create, steps: tuple[Step, ...]) -> _Object:
        kind, metadata = _kind(create), create.object["metadata"]
        changes = tuple(step for step in steps if isinstance(step, Change) and _kind(step) == kind)
        return cls(create, Delete(*kind, metadata["name"], metadata.get("namespace", "default")), changes)


@dataclass(frozen=True, slots=True)
class _Objects:
    """What the user's steps are about: the first object, and the first of every other custom kind."""

    known: dict[tuple[str, str], _Object]
    resources: frozenset[str]  # theirs
    steps: tuple[Step, ...]
    began: tuple[tuple[float, int], ...]  # when each step was taken

    @classmethod
    def of(cls, reference: Run, steps: tuple[Step, ...]) -> _Objects:
        known: dict[tuple[str, str], _Object] = {}
        for step in steps:
            if isinstance(step, Create) and (not known or _is_custom(step)):
                known.setdefault(_kind(step), _Object.of(step, steps))
        written = [write for write in reference.writes if write.by == "user"]
        resources = {write.resource for write in written if _kind(Create(_decoded(write))) in known}
        began = tuple((point.began, point.step) for point in reference.checkpoints)
        return cls(known, frozenset(resources), steps, began)

    def at(self, effect: Effect) -> _Object:
        """The one that the user was about when it came to an effect."""
        taken = max((step for began, step in self.began if began <= effect.time), default=0)
        kinds = (_kind(step) for step in reversed(self.steps[:taken]) if not isinstance(step, Pass))
        first = next(iter(self.known))
        return self.known[next((kind for kind in kinds if kind in self.known), first)]


def _kind(step: Create | Change | Delete) -> tuple[str, str]:
    if isinstance(step, Create):
        return step.object["apiVersion"], step.object["kind"]
    return step.api_version, step.kind


def _is_custom(step: Create) -> bool:
    """Whether it is no kind of Kubernetes' own: an object that an operator is for, and not one to help it."""
    group = step.object["apiVersion"].rpartition("/")[0]
    return "." in group and not group.endswith(".k8s.io")


def _decoded(write: Written) -> dict[str, Any]:
    obj: dict[str, Any] = msgspec.json.decode(write.data)
    return obj
