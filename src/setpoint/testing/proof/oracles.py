"""What is right and wrong: each oracle looks at a run, and finds what must not be.

Each has an id, what it means when it fails, and what usually mends it.  All are functions of what happened
(``trace.Run``) and of what happened without faults (``Reference``), and of nothing else.

    O1  converges           after the last fault everything comes to rest, in time and with few looks
    O2  stays still         then nothing is written: not later, not after a restart
    O3  same state          as without faults, after every step
    O4  fresh start         the same as if only the last spec had ever been asked for
    O5  same deeds          as many objects made and deleted as without faults
    O6  no leaks            when the objects are deleted, nothing of theirs is left
    O7  finalizers          are released, and not put on what is being deleted
    O8  rules               of the author (``always``); no owner is in another namespace, what others wrote is
                            not lost, and no child is left for want of an owner
    O9  spec reached        what was asked for last is what was acted on
    O10 load                requests are not many more than without faults, and wait where they are told to
    O11 errors              none that nobody handles, none that is swallowed, and no mistakes in the code
    O12 one leader          nothing is done by who leads no longer
    O13 not vacuous         the fault struck and the steps were taken; else nothing is proven
    O14 isolation           other objects of the kind end as they would alone (``bystanders.py``)

Runs in which others act (``Plan.is_racy``) need not end as without faults: O3 and O5 do not judge them.  O4
does (``fresh.py``): by which way it came to its spec must not matter.
What is left when the objects are gone, and is without faults too, is told of where there are none: what is
outside by O6, what nobody owns by O8.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from setpoint.testing.proof.plans import MARK, Alter, Freeze, Linger, Merge, Starve, Throttle
from setpoint.testing.proof.states import difference
from setpoint.testing.proof.trace import (
    CLAIMS,
    CONTROLLERS,
    OTHER,
    USER,
    Checkpoint,
    Effect,
    Run,
    State,
    Written,
)

_LOOKS = (5, 20)  # times as many as without faults, and so many more
_REQUESTS = (3, 80)  # one that tells each failure in its status needs more than 60, when the disk is full


@dataclass(frozen=True, slots=True)
class Meaning:
    """What it says about an operator that an oracle fails."""

    title: str
    cause: str
    remedy: str


MEANINGS: Final[dict[str, Meaning]] = {
    "O1": Meaning(
        "does not come to rest",
        "a reconcile fails for ever, or waits for something that never comes",
        "raise errors, so that they are retried, and decide from what is there, not from what should be",
    ),
    "O2": Meaning(
        "writes though nothing has changed",
        "what is written differs each time (a timestamp, an order, chance), or a write was given up on",
        "write only what differs (ctx.apply, ctx.set_condition); keep lastTransitionTime while status stays",
    ),
    "O3": Meaning(
        "ends in another state than without the fault",
        "a step that was cut short is not taken again, or an error is taken for success",
        "make each reconcile bring everything to where it should be, whatever the last one managed to do",
    ),
    "O4": Meaning(
        "its state depends on the way that led there",
        "what a former spec asked for is not taken away, a new spec is not acted on, or what another process "
        "began is taken for done",
        "declare children (yield or return them) so that others are pruned; decide from what is there, and "
        "not from what was written down about it",
    ),
    "O5": Meaning(
        "makes or deletes more than without the fault",
        "something is deleted, or made again, on the strength of an old view",
        "give children names that follow from the object; delete by uid; verify before what cannot be undone",
    ),
    "O6": Meaning(
        "leaves something behind",
        "an effect before the finalizer was written, or a finalizer removed before all was cleaned up",
        "use @operator.finalizer: it holds the object from before the first effect until after the clean-up",
    ),
    "O7": Meaning(
        "keeps an object from going, or holds on to one that goes",
        "the clean-up needs something that is not there, or the finalizer is put back",
        "let the clean-up succeed when there is nothing to clean up",
    ),
    "O8": Meaning(
        "breaks a rule",
        "something was made twice, or for nobody, or changed as it must not be, though perhaps mended later",
        "give what is made an owner, and a name that follows from the object: making it again is refused",
    ),
    "O9": Meaning(
        "has not acted on the last spec",
        "a change was not seen, or was taken for one's own",
        "decide from the object as it is now; do not filter events by who made them",
    ),
    "O10": Meaning(
        "asks too much of the server",
        "it retries without waiting, or does not wait as long as it is told to",
        "let errors reach the queue, which backs off, and honour Retry-After",
    ),
    "O11": Meaning(
        "has an error that nobody handles",
        "a mistake that shows only when something goes wrong, an error that is caught and forgotten, or a "
        "task that nobody awaits",
        "look at the traceback; raise again what you cannot mend; give every task a parent",
    ),
    "O12": Meaning(
        "acts while another leads",
        "work goes on after the lease is lost",
        "write through the manager's client, which checks the lease before each write",
    ),
    "O13": Meaning(
        "proves nothing",
        "the fault found no place to strike, or the steps were not all taken",
        "run the sweep again: the operator has changed since the plan was made",
    ),
    "O14": Meaning(
        "does not keep objects apart",
        "a namespace that is written in the code, a list that includes the children of other objects, or a "
        "name that two objects share",
        "use the object's own namespace, list children with owned=True, and name what is outside of the "
        "cluster by namespace and name, or by uid",
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one run."""

    oracle: str
    what: str
    details: tuple[str, ...] = ()
    is_grave: bool = False  # something was destroyed: not even a hostile fault excuses that

    @property
    def meaning(self) -> Meaning:
        return MEANINGS[self.oracle]

    def __str__(self) -> str:
        return f"{self.oracle} {self.meaning.title}: {self.what}"


@dataclass(frozen=True, slots=True)
class View:
    """All objects at one moment, for rules: ``always=[lambda view: len(view.of("Pod")) <= 3]``."""

    objects: dict[str, dict[str, Any]]  # by resource, namespace and name
    things: dict[str, dict[str, Any]]  # outside of the cluster, by cloud and id

    def of(self, kind: str, **labels: str) -> list[dict[str, Any]]:
        """The objects of a kind, with these labels."""
        return [
            obj
            for obj in self.objects.values()
            if obj.get("kind") == kind
            and all((obj["metadata"].get("labels") or {}).get(key) == value for key, value in labels.items())
        ]


Rule = Callable[[View], object]  # true: all is well
Change = Callable[[dict[str, Any], dict[str, Any]], object]  # an object before and after; true: must not be


@dataclass(frozen=True, slots=True)
class Rules:
    """What an author promises besides."""

    always: tuple[Rule, ...] = ()
    never: tuple[Change, ...] = ()
    at_most: tuple[tuple[str, int], ...] = ()  # of a kind, or of a cloud, so many at any time
    keeps: tuple[str, ...] = ()  # resources whose objects are meant to stay
    history: tuple[str, ...] = ()  # resources whose objects record the past: O3 and O4 do not compare them


@dataclass(slots=True)
class Reference:
    """What happens without faults."""

    run: Run
    rules: Rules = field(default_factory=Rules)
    primaries: frozenset[str] = frozenset()  # resources that the operator is for

    @property
    def looks(self) -> int:
        return len(self.run.looks)

    def state(self, step: int) -> State:
        return next((point.state for point in self.run.checkpoints if point.step == step), {})


Oracle = Callable[[Run, Reference], Iterable[Finding]]


def judge(run: Run, reference: Reference, *, without: frozenset[str] = frozenset()) -> list[Finding]:
    """What is wrong with a run, the weightiest first; nothing, if it is as it should be."""
    found = [
        finding
        for name, oracle in ORACLES.items()
        if name not in without
        for finding in oracle(run, reference)
    ]
    return sorted(found, key=lambda finding: _WEIGHT.index(finding.oracle))


_WEIGHT = ["O13", "O12", "O8", "O6", "O14", "O5", "O3", "O7", "O1", "O9", "O2", "O4", "O11", "O10"]


def converges(run: Run, reference: Reference) -> Iterable[Finding]:
    if run.spins:
        yield Finding("O1", f"time stands still: {run.spins}")
        return
    if run.stuck:
        yield Finding("O1", run.stuck[0])
        return
    for point in run.checkpoints:
        if not point.is_settled:
            yield Finding("O1", f"after {point.what!r}: {point.why_not}")
            return
    if not run.plan.faults:
        return  # how many it takes without a fault is what others are held against
    times, more = _LOOKS
    most = times * max(reference.looks, len(run.plan.steps)) + more
    if len(run.looks) > most + _looks_of_faults(run) + 4 * len(_doomed(run.writes)):
        yield Finding("O1", f"{len(run.looks)} looks, where {reference.looks} do without a fault")


def _looks_of_faults(run: Run) -> int:
    """Looks that the fault itself asks for."""
    slow = [fault for fault in run.plan.faults if isinstance(fault, Freeze | Linger | Merge | Throttle)]
    return sum(int(fault.seconds * (6 if isinstance(fault, Merge) else 1)) for fault in slow)


def stays_still(run: Run, _reference: Reference) -> Iterable[Finding]:
    if _is_starved(run):
        return  # what it would have done when told, it does when it looks next
    for point in run.checkpoints:
        if point.restless:
            yield Finding("O2", f"after {point.what!r}: {point.restless[0]}", tuple(point.restless[1:5]))
            return


def same_state(run: Run, reference: Reference) -> Iterable[Finding]:
    if run.plan.is_racy:
        return
    for point in run.checkpoints:
        if (
            point.is_settled
            and not point.is_blind
            and (lines := _differences(reference.state(point.step), point.state, reference.rules.history))
        ):
            yield Finding("O3", f"after {point.what!r}: {lines[0]}", tuple(lines[1:]))
            return


def _differences(expected: State, got: State, exempt: Collection[str] = ()) -> list[str]:
    """What differs, without the marks of other programs and without objects of ``exempt`` resources."""
    one, other = (
        {called: obj for called, obj in _unmarked(state).items() if called.split(" ", 1)[0] not in exempt}
        for state in (expected, got)
    )
    return difference(one, other)


def _unmarked(state: State) -> State:
    """Without the label, or the finalizer, that another program has put on."""
    return {
        called: {**obj, "metadata": _without_mark(obj["metadata"])} if _is_marked(obj) else obj
        for called, obj in state.items()
    }


def _is_marked(obj: dict[str, Any]) -> bool:
    metadata = obj.get("metadata") or {}
    return MARK in (metadata.get("labels") or ()) or MARK in (metadata.get("finalizers") or ())


def _without_mark(metadata: dict[str, Any]) -> dict[str, Any]:
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != MARK}
    held = [name for name in metadata.get("finalizers") or () if name != MARK]
    rest = {name: value for name, value in metadata.items() if name not in ("labels", "finalizers")}
    return rest | ({"labels": labels} if labels else {}) | ({"finalizers": held} if held else {})


def same_deeds(run: Run, reference: Reference) -> Iterable[Finding]:
    if run.plan.is_racy or any(isinstance(fault, Alter) for fault in run.plan.faults):
        return  # what was spoiled may have to go and come again
    if not run.checkpoints:
        return
    last = run.checkpoints[-1]
    upto = next((point.writes for point in reference.run.checkpoints if point.step == last.step), None)
    found = _excess(_deeds(reference.run.writes[:upto]), _deeds(run.writes))
    for gravest in sorted(found, key=lambda finding: not finding.is_grave)[:1]:
        others = [finding.what for finding in found if finding is not gravest]
        yield replace(gravest, details=tuple(others[:4]))


def _excess(usual: dict[tuple[str, str], int], deeds: dict[tuple[str, str], int]) -> list[Finding]:
    """What was done more often than usual, each with whether something was destroyed by that."""
    found: list[Finding] = []
    for (type_, place), count in sorted(deeds.items(), reverse=True):
        expected = usual.get((type_, place), 0)
        if count > expected:
            verb = "made" if type_ == "ADDED" else "deleted"
            what = f"{place} was {verb} {count} times, and without the fault {expected}"
            # To take away what was made too much is no harm; what is outside is not ours to make twice.
            made_more = deeds.get(("ADDED", place), 0) - usual.get(("ADDED", place), 0)
            is_loss = type_ == "DELETED" and count - expected > made_more
            found.append(Finding("O5", what, is_grave=is_loss or place.endswith(" *")))
    return found


def _deeds(writes: Sequence[Written]) -> dict[tuple[str, str], int]:
    """How often each object was made and deleted by the operator, or in its consequence; not by the user.

    A deletion is the deed of who asked for it, whoever then takes off the last finalizer.
    What is made for an owner that is gone does no harm: nobody had told the operator yet, and the garbage
    collector takes it away.
    """
    counts: dict[tuple[str, str], int] = {}
    doomed = _doomed(writes) | _theirs(writes)
    asked: dict[str, str] = {}  # uid → who has asked for its deletion
    for write in writes:
        if write.type == "MODIFIED":
            if b'"deletionTimestamp"' in write.data:
                asked.setdefault(_metadata(write.data).get("uid", ""), write.by)
            continue
        uid = _metadata(write.data).get("uid", "")
        by = asked.get(uid, write.by) if write.type == "DELETED" else write.by
        if by not in (USER, OTHER) and uid not in doomed:
            deed = (write.type, _name(write))
            counts[deed] = counts.get(deed, 0) + 1
    return counts


def _theirs(writes: Sequence[Written]) -> set[str]:
    """The uids of what the built-in controllers made: a pod may be started as often as they like."""
    made = [write for write in writes if write.by == CONTROLLERS and write.type == "ADDED"]
    return {_metadata(write.data).get("uid", "") for write in made if write.resource != CLAIMS}


def _doomed(writes: Sequence[Written]) -> set[str]:
    """The uids of what was made for an owner that was gone."""
    living: set[str] = set()
    doomed: set[str] = set()
    for write in writes:
        metadata = _metadata(write.data) if write.type != "MODIFIED" else {}
        uid = metadata.get("uid", "")
        if write.type == "ADDED":
            owners = [owner["uid"] for owner in metadata.get("ownerReferences") or ()]
            if owners and not living.intersection(owners):
                doomed.add(uid)
            living.add(uid)
        elif write.type == "DELETED":
            living.discard(uid)
    return doomed


def _name(write: Written) -> str:
    obj = msgspec.json.decode(write.data)
    metadata = obj.get("metadata", {}) if isinstance(obj, dict) else {}
    prefix = metadata.get("generateName") if isinstance(metadata, dict) else None
    if prefix:
        return f"{write.resource} {write.namespace}/{prefix}*"
    if not write.namespace and not metadata:
        return f"{write.resource} *"  # what is outside may have any id
    return write.place


def no_leaks(run: Run, reference: Reference) -> Iterable[Finding]:
    """When no primary is left, everything that was made for them is gone."""
    if not run.checkpoints:
        return
    last = run.checkpoints[-1]
    made = _made_of(last.state, run.writes, reference) if run.plan.faults else _made_for(run, reference)
    if not last.is_settled or set(_primaries(last.state, reference)).difference(made):
        return
    kept = set(reference.state(last.step)) if not run.plan.is_racy else _kept(reference)
    if not run.plan.faults:
        kept = {called for called in kept if "apiVersion" in last.state.get(called, {})}
    left = [called for called in made if called not in kept]
    if left:
        yield Finding("O6", f"{left[0]} is left when nobody asks for it any more", tuple(left[1:5]))


def _kept(reference: Reference) -> set[str]:
    """What stays by intention: it does without faults too."""
    return set(reference.run.checkpoints[-1].state) if reference.run.checkpoints else set()


def _made_of(state: State, writes: Iterable[Written], reference: Reference) -> list[str]:
    """What the operator has made, of what is in a state and is not meant to stay."""
    made = {_called(write) for write in writes if _is_making(write)}
    return [
        called
        for called in state
        if called.split(" ", 1)[0] not in reference.rules.keeps
        and (called in made or any(called.startswith(name) for name in made if name[-1] in "* "))
    ]


def _is_making(write: Written) -> bool:
    return write.by.startswith("operator") and write.type == "ADDED"


def _made_for(run: Run, reference: Reference) -> list[str]:
    """What the operator has made for objects, of what is there in the end and is not meant to stay.

    What there was before the first object is the operator's own.
    """
    writes = run.writes
    first = next((at for at, each in enumerate(writes) if each.resource in reference.primaries), len(writes))
    own = {
        f"{_called(write)}{write.name}" if _called(write)[-1] == " " else _called(write)
        for write in writes[:first]
        if _is_making(write)
    }
    made = _made_of(run.checkpoints[-1].state, writes[first:], reference)
    return [called for called in made if called not in own]


def _called(write: Written) -> str:
    """What a state calls it; ends with "*", or " ", where the rest may be any."""
    name = _name(write).replace(" /", " ", 1)  # of no namespace
    return f"{write.resource} " if name == f"{write.resource} *" else name


def _primaries(state: State, reference: Reference) -> list[str]:
    return [called for called in state if called.split(" ", 1)[0] in reference.primaries]


def finalizers(run: Run, reference: Reference) -> Iterable[Finding]:
    own: set[tuple[str, str]] = set()  # resources, and what the operator puts on their objects
    for write in run.writes:
        if not write.by.startswith("operator") or b'"finalizers"' not in write.data:
            continue
        before = {} if write.before is None else _metadata(write.before)
        added = set(_metadata(write.data).get("finalizers") or ()) - set(before.get("finalizers") or ())
        own |= {(write.resource, name) for name in added}
        if added and before.get("deletionTimestamp"):
            yield Finding("O7", f"{min(added)} was put on {write.place}, which was being deleted")
            return
    for point in run.checkpoints[-1:]:
        is_end = point.step == len(run.plan.steps)
        for called in _primaries(point.state, reference):
            metadata = point.state[called].get("metadata", {})
            resource = called.split(" ", 1)[0]
            held = [name for name in metadata.get("finalizers") or () if (resource, name) in own]
            usual = reference.state(point.step).get(called, {}).get("metadata", {}).get("deletionTimestamp")
            # What is not released yet when the user has not done all may wait for just that.
            if metadata.get("deletionTimestamp") and held and (is_end or not usual):
                yield Finding("O7", f"{called} is deleted and cannot go: {', '.join(held)}")
                return


def rules(run: Run, reference: Reference) -> Iterable[Finding]:
    promised = reference.rules
    owners: dict[str, tuple[str, str]] = {}  # uid → namespace and name
    view = View(dict(run.given), {})
    foreign: dict[str, set[str]] = {}  # labels and annotations that others put on
    for write in run.writes:
        if lost := _lost(write, foreign):
            yield Finding("O8", f"{lost} of {write.place}, which another had written, was lost by {write.by}")
            return
        obj = msgspec.json.decode(write.data)
        is_outside = "apiVersion" not in obj
        shelf = view.things if is_outside else view.objects
        before = shelf.get(write.place)
        if write.type == "DELETED":
            shelf.pop(write.place, None)
        else:
            shelf[write.place] = obj
        if not is_outside:
            metadata = obj["metadata"]
            owners[metadata.get("uid", "")] = (write.namespace, write.place)
            for owner in metadata.get("ownerReferences") or ():
                namespace, place = owners.get(owner["uid"], ("", ""))
                if namespace and namespace != write.namespace:
                    yield Finding("O8", f"{write.place} is owned by {place}, in another namespace")
                    return
        for what, most in promised.at_most:
            count = sum(key.startswith(f"{what} ") for key in shelf) if is_outside else _wanted(view, what)
            if count > most:
                yield Finding("O8", f"{count} {what} at once, and at most {most} may be ({write.place})")
                return
        for change in promised.never:
            if before is not None and write.type == "MODIFIED" and change(before, obj):
                yield Finding("O8", f"{words(change)}: {write.place} was changed as it never may be")
                return
        for rule in promised.always:
            if not rule(view):
                yield Finding("O8", f"{words(rule)} does not hold after {write.type} {write.place}")
                return
    yield from _unowned(run, reference)


def _unowned(run: Run, reference: Reference) -> Iterable[Finding]:
    """What was made for an object that is gone, and has no owner that is: nobody will ever take it away.

    With faults, O6 tells what is left.
    """
    if run.plan.faults or not run.checkpoints:
        return
    last = run.checkpoints[-1]
    made = _made_for(run, reference)
    if not last.is_settled or set(_primaries(last.state, reference)).difference(made):
        return
    for called in made:
        obj = last.state[called]
        if "apiVersion" in obj:
            owners = [owner.get("name", "") for owner in obj["metadata"].get("ownerReferences") or ()]
            why = f"is owned by {', '.join(owners)}" if owners else "has no owner"
            resource = called.split(" ", 1)[0]
            yield Finding(
                "O8",
                f"{called} is left when nobody asks for it any more, for it {why}: ctx.apply sets one; if it "
                f"is meant to stay, say keeps=[{resource!r}]",
            )
            return


def _wanted(view: View, kind: str) -> int:
    """How many there are of a kind; without those whose owners are gone, which wait for the collector."""
    found = view.of(kind)
    if len(found) < 2:
        return len(found)
    living = {obj["metadata"].get("uid") for obj in view.objects.values()}
    owners = [[owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()] for obj in found]
    return sum(not uids or not living.isdisjoint(uids) for uids in owners)


def _lost(write: Written, foreign: dict[str, set[str]]) -> str:
    """What of another's is lost by a write of the operator."""
    if write.by == OTHER and write.before is not None:
        before, after = (_marks(_metadata(data)) for data in (write.before, write.data))
        foreign.setdefault(write.place, set()).update(after - before)
        foreign[write.place] -= before - after
    theirs = foreign.pop(write.place, set()) if write.type == "DELETED" else foreign.get(write.place)
    if not theirs or write.before is None or not write.by.startswith("operator"):
        return ""
    if write.type == "DELETED":  # it goes with its last finalizer, and with all labels
        return min((mark for mark in theirs if mark.startswith("finalizer ")), default="")
    return min(theirs & (_marks(_metadata(write.before)) - _marks(_metadata(write.data))), default="")


def _marks(metadata: dict[str, Any]) -> set[str]:
    parts = ("labels", "annotations", "finalizers")
    return {f"{part[:-1]} {name}" for part in parts for name in metadata.get(part) or ()}


def words(function: Callable[..., object]) -> str:
    """What a rule is called: as its author says, or by its name."""
    return (function.__doc__ or function.__name__).strip().splitlines()[0]


def spec_reached(run: Run, reference: Reference) -> Iterable[Finding]:
    for point in run.checkpoints:
        if not point.is_settled:
            return
        for called in () if point.is_blind else _primaries(point.state, reference):
            behind = _behind(point.state[called])
            usual = _behind(reference.state(point.step).get(called, {}))
            if behind and (not usual or run.plan.is_racy) and not _is_starved(run):
                yield Finding("O9", f"{called} after {point.what!r}: observedGeneration is {behind}")
                return


def _behind(obj: dict[str, Any]) -> str:
    observed = (obj.get("status") or {}).get("observedGeneration")
    return observed if isinstance(observed, str) and observed != "current" else ""


def _is_starved(run: Run) -> bool:
    return any(isinstance(fault, Starve) for fault in run.plan.faults)


def load(run: Run, reference: Reference) -> Iterable[Finding]:
    if run.early:
        yield Finding("O10", f"{len(run.early)} requests came too early: {run.early[0]}")
        return
    if run.crowds:
        yield Finding("O10", f"they come back all at once when the server was away: {run.crowds[0]}")
        return
    times, more = _REQUESTS
    if not run.plan.faults:
        return  # what it asks for without a fault is what others are held against
    failing = {(look.controller, look.key) for look in run.looks if look.error}
    more *= max(1, len(run.plan.faults)) * max(1, len(failing))  # each key backs off by itself
    if any(isinstance(fault, Throttle) for fault in run.plan.faults):
        more += 60
    more += 2 * _looks_of_faults(run) + 4 * len(_doomed(run.writes))
    most = times * reference.run.requests + more
    if run.requests > most:
        yield Finding("O10", f"{run.requests} requests, where {reference.run.requests} do without a fault")


def errors(run: Run, reference: Reference) -> Iterable[Finding]:
    for error in run.errors:
        yield Finding("O11", error)
        return
    usual = {look.error for look in reference.run.looks}
    for look in run.looks:
        if look.is_bug and look.error not in usual:
            yield Finding("O11", f"{look.controller} {look.key}: {look.error}")
            return
    if not run.plan.is_racy:
        yield from _swallowed(run, reference)


def _swallowed(run: Run, reference: Reference) -> Iterable[Finding]:
    """What failed in a reconcile that told nobody, was not tried again until all was still, and is missed."""
    silent = {look.id for look in run.looks if not look.error}
    failed = [effect for effect in run.effects if effect.has_failed and effect.look in silent]
    for point in run.checkpoints if failed else ():
        if not point.is_settled or point.is_blind:
            continue
        last = {effect.at.what: effect for effect in run.effects if effect.time <= point.time}
        expected, state = reference.state(point.step), _unmarked(point.state)
        for effect in failed:
            if last.get(effect.at.what) is effect and (what := _missed(effect, expected, state)):
                came_to = f"{effect.at} came to {effect.came_to}, and its reconcile ended as if it had not"
                yield Finding("O11", f"{came_to}; it was not tried again, and {what}")
                return


def _missed(effect: Effect, expected: State, state: State) -> str:
    """How the objects that an effect is on are not as they are without faults; "" if they are."""
    _verb, what, *key = effect.at.what.split(" ", 2)
    resource, name = what.partition("/")[0], "".join(key)

    def meant(called: str) -> bool:
        return called.split(" ", 1)[0] == resource and (
            effect.is_external or called == f"{resource} {name}" or name[-1:] == "*"
        )

    should = {called: obj for called, obj in expected.items() if meant(called)}
    lines = difference(should, {called: obj for called, obj in state.items() if meant(called)})
    return next(iter(lines), "")


def one_leader(run: Run, _reference: Reference) -> Iterable[Finding]:
    """A process that was overtaken never comes back: one that leads again is another."""
    if run.overlaps:
        yield Finding("O12", run.overlaps[0])
        return
    acting, overtaken = 0, set[int]()
    for process, what in run.done:
        if process == acting:
            continue
        if process in overtaken:
            yield Finding("O12", f"{what} by process {process}, after process {acting} had acted")
            return
        overtaken.add(acting)
        acting = process


def not_vacuous(run: Run, reference: Reference) -> Iterable[Finding]:
    """Where others act, a step may come too late; else it is refused only if it says what cannot be."""
    usual = reference.run.refused if run.plan.faults else ()
    refused = [] if run.plan.is_racy else [step for step in run.refused if step not in usual]
    if refused:
        yield Finding("O13", f"a step was refused: {refused[0]}")
    elif len(run.fired) < len(run.plan.faults):
        missing = [str(fault) for fault in run.plan.faults if str(fault) not in run.fired]
        yield Finding("O13", f"it never came to: {next(iter(missing), 'all of them')}")


ORACLES: Final[dict[str, Oracle]] = {
    "O1": converges,
    "O2": stays_still,
    "O3": same_state,
    "O5": same_deeds,
    "O6": no_leaks,
    "O7": finalizers,
    "O8": rules,
    "O9": spec_reached,
    "O10": load,
    "O11": errors,
    "O12": one_leader,
    "O13": not_vacuous,
}


def fresh_start(point: Checkpoint, fresh: Run, promised: Rules | None = None) -> Iterable[Finding]:
    """O4: what a sequence of steps led to, against the last spec alone; but for what is meant to stay, and
    for history.
    """
    if point.is_blind:
        return  # it was not waited for
    if not fresh.checkpoints or not fresh.checkpoints[-1].is_settled:
        yield Finding("O4", f"the spec after {point.what!r} does not come to rest on an empty cluster")
        return
    exempt = () if promised is None else (*promised.keeps, *promised.history)
    if lines := _differences(fresh.checkpoints[-1].state, point.state, exempt):
        yield Finding("O4", f"after {point.what!r}, against a fresh start: {lines[0]}", tuple(lines[1:]))


def _metadata(data: bytes) -> dict[str, Any]:
    found = msgspec.json.decode(data)
    metadata: dict[str, Any] = found.get("metadata", {}) if "apiVersion" in found else {}
    return metadata


def ids() -> Sequence[str]:
    """All of them, in order."""
    return list(MEANINGS)
