"""What is to happen in a run, as data: the user's steps, and the faults with the place where each strikes.

A fault is placed at the n-th time that something happens, named by what it is and not by when: ``At("apply
deployments.apps default/web", 2)``.  So a plan still means the same when the code around it has changed.
*Effects* are what the operator asks others to do: writes, and calls of a ``Cloud``.  What its reconciles read
from the server or a ``Cloud`` is a place as well: ``"get secrets default/key"``, ``"list secrets default"``.
*Events* are what its watches bring: ``"MODIFIED deployments.apps default/web"``.

Each class of fault says which of the study's classes it is (``E1`` … ``X1``), whether an operator must bear
it (``is_hostile``: a warning only), and whether others act in it (``is_racy``: then the end need not be that
of the reference, and other oracles judge).

Pure.  Plans are made by ``sweep.py`` or by hand, carried out by ``director.py``, kept in files as JSON.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, TypeAlias

import msgspec

Json: TypeAlias = Any


class At(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """The n-th time that this happens."""

    what: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.what} #{self.nth}"


REDACTED: Final = "<redacted>"
SECRET_FIELDS: Final = ("data", "stringData")


def redacted_patch(kind: str, patch: dict[str, Any]) -> dict[str, Any]:
    """A patch of an object, or a whole one, as it may be shown: without the values of a Secret."""
    if kind != "Secret":
        return patch
    shown = {
        field: {key: None if value is None else REDACTED for key, value in patch[field].items()}
        for field in SECRET_FIELDS
        if isinstance(patch.get(field), dict)
    }
    return {**patch, **shown}


# ---- what a user does ------------------------------------------------------------------------------


class Create(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Make an object, in wire form."""

    object: dict[str, Json]

    def __str__(self) -> str:
        return f"create {_name_of(self.object)}"


class Change(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Change an object by a merge patch.

    Where it ``may_fail``, it asks for what cannot be (an image that there is none of): the operator need not
    come to rest with it, and how it is then is nobody's to judge; only that it can be undone.
    """

    api_version: str
    kind: str
    name: str
    patch: dict[str, Json]
    namespace: str = "default"
    subresource: str = ""  # "status", as the controller of a built-in kind does
    may_fail: bool = False

    def __str__(self) -> str:
        what = f"{self.kind}/{self.subresource}" if self.subresource else self.kind
        patch = redacted_patch(self.kind, self.patch)
        said = f"change {what} {self.name}: {msgspec.json.encode(patch).decode()}"
        return f"{said}, which may fail" if self.may_fail else said


class Delete(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Delete an object; that it is gone already is no failure.

    With ``while_down``, when no operator runs; it is started again afterwards.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = "default"
    while_down: bool = False  # heeded in the steps of a plan; a fault that acts for the user has its own way

    def __str__(self) -> str:
        said = f"delete {self.kind} {self.name}"
        return f"{said} while the operator is down" if self.while_down else said


class Pass(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Let time pass."""

    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:g} s pass"


Step: TypeAlias = Create | Change | Delete | Pass


# ---- faults of what the operator asks for -----------------------------------------------------------


class Fault(msgspec.Struct, frozen=True, tag=True, omit_defaults=True, kw_only=True):
    """Something that goes wrong, once, at a place."""

    at: At
    strikes_events: ClassVar[bool] = False
    _others_act: ClassVar[bool] = False

    @property
    def id(self) -> str:
        """Its class, as the study names it."""
        raise NotImplementedError

    @property
    def is_hostile(self) -> bool:
        """Whether it is more than an operator must bear."""
        return False

    @property
    def is_racy(self) -> bool:
        """Whether others act in it: then the end need not be that of the reference."""
        return self._others_act

    @property
    def replicas(self) -> int:
        """How many of the operator it needs, to show what it can: with a leader among several."""
        return 1


class Crash(Fault, frozen=True, tag=True):
    """The process dies and starts again, with nothing in its memory; the user may act while it is down."""

    when: Literal["before", "after"] = "before"
    down: tuple[Step, ...] = ()
    away: float = 1.0

    @property
    def id(self) -> str:
        return "E1" if self.when == "before" else "E2"

    @property
    def is_racy(self) -> bool:
        return bool(self.down)

    def __str__(self) -> str:
        meanwhile = f", and while it is down: {'; '.join(map(str, self.down))}" if self.down else ""
        return f"crash {self.when} {self.at}{meanwhile}"


class Refuse(Fault, frozen=True, tag=True):
    """It is not done: an error status, or no connection where ``code`` is 0."""

    code: int = 500
    times: int = 1

    @property
    def id(self) -> str:
        return "E3"

    def __str__(self) -> str:
        how = f"{self.code} at" if self.code else "no connection at"
        return f"{how} {self.at}" + (f", {self.times} times" if self.times > 1 else "")


class Lose(Fault, frozen=True, tag=True):
    """It is done, and the answer is an error status, or lost where ``code`` is 0."""

    code: int = 0

    @property
    def id(self) -> str:
        return "E4"

    def __str__(self) -> str:
        return f"done, but {self.code or 'the answer is lost'} at {self.at}"


class Throttle(Fault, frozen=True, tag=True):
    """For a while everything is answered with 429 and Retry-After."""

    seconds: float = 20.0
    retry_after: int = 5

    @property
    def id(self) -> str:
        return "E5"

    def __str__(self) -> str:
        return f"429 for {self.seconds:g} s from {self.at}"


class Slow(Fault, frozen=True, tag=True):
    """It is done, and the answer comes after so long that nobody waits for it any more."""

    seconds: float = 120.0

    @property
    def id(self) -> str:
        return "E6"

    def __str__(self) -> str:
        return f"answered after {self.seconds:g} s at {self.at}"


# ---- faults of what the operator sees ---------------------------------------------------------------


class Freeze(Fault, frozen=True, tag=True):
    """Watches of these resources bring nothing for a while, and lists for a cache wait; () means all.

    The user may act meanwhile, and every object is looked at again every ten seconds.
    """

    resources: tuple[str, ...] = ()
    seconds: float = 16.0
    meanwhile: tuple[Step, ...] = ()

    @property
    def is_racy(self) -> bool:
        return bool(self.meanwhile)

    @property
    def id(self) -> str:
        return "V4" if len(self.resources) == 1 and self.seconds <= 1 else "V1"

    def __str__(self) -> str:
        what = " and ".join(self.resources) or "everything"
        user = f" ({'; '.join(map(str, self.meanwhile))})" if self.meanwhile else ""
        return f"the view of {what} stands still for {self.seconds:g} s from {self.at}{user}"


class Merge(Fault, frozen=True, tag=True):
    """An event is held until the next of the same object, and only that is brought."""

    strikes_events: ClassVar[bool] = True
    seconds: float = 10.0  # the longest that it is held

    @property
    def id(self) -> str:
        return "V2"

    def __str__(self) -> str:
        return f"unseen: {self.at}"


class Swap(Fault, frozen=True, tag=True):
    """From an event on, a kind is seen only after another: both happened in the other order."""

    strikes_events: ClassVar[bool] = True
    seconds: float = 10.0  # the longest that it is held

    @property
    def id(self) -> str:
        return "V4"

    def __str__(self) -> str:
        return f"seen after what came later: {self.at}"


class Double(Fault, frozen=True, tag=True):
    """An event is brought twice."""

    strikes_events: ClassVar[bool] = True

    @property
    def id(self) -> str:
        return "V3"

    def __str__(self) -> str:
        return f"twice: {self.at}"


class Cut(Fault, frozen=True, tag=True):
    """The connection of a watch breaks before an event; with ``expire`` its history is gone as well."""

    strikes_events: ClassVar[bool] = True
    expire: bool = False
    away: float = 5.0  # seconds in which it cannot be opened again

    @property
    def id(self) -> str:
        return "V6" if self.expire else "V5"

    def __str__(self) -> str:
        at_once = "" if self.away else ", and can be opened at once"
        how = " and history is compacted" if self.expire else at_once
        return f"the watch breaks before {self.at}{how}"


class Silence(Fault, frozen=True, tag=True):
    """From an event on, a connection brings nothing, and does not end."""

    strikes_events: ClassVar[bool] = True

    @property
    def id(self) -> str:
        return "V7"

    def __str__(self) -> str:
        return f"the watch falls silent before {self.at}"


class Break(Fault, frozen=True, tag=True):
    """A watch ends with an ERROR event instead of an event."""

    strikes_events: ClassVar[bool] = True
    code: int = 500

    @property
    def id(self) -> str:
        return "V8"

    def __str__(self) -> str:
        return f"an ERROR event {self.code} instead of {self.at}"


class Travel(Fault, frozen=True, tag=True):
    """The process dies, and after its restart sees these resources as they were so many writes ago.

    With ``allowed``, only where it asks for what a server may answer from an old cache (resourceVersion=0):
    that is no more than Kubernetes promises, and not hostile.
    """

    back: int = 1
    resources: tuple[str, ...] = ()
    seconds: float = 5.0
    allowed: bool = False

    @property
    def is_hostile(self) -> bool:
        return not self.allowed

    @property
    def id(self) -> str:
        return "V9a" if self.allowed else "V9"

    def __str__(self) -> str:
        what = " and ".join(self.resources) or "everything"
        how = ", where it allows that," if self.allowed else ""
        return f"restart after {self.at}, seeing {what} as {self.back} writes ago{how} for {self.seconds:g} s"


class Starve(Fault, frozen=True, tag=True):
    """Watches of a resource bring nothing any more, ever: what does not need it must go on."""

    resources: tuple[str, ...] = ()
    _others_act: ClassVar[bool] = True

    @property
    def id(self) -> str:
        return "V10"

    def __str__(self) -> str:
        return f"nothing of {' and '.join(self.resources)} is seen any more from {self.at}"


# ---- faults of the server ---------------------------------------------------------------------------


class Restart(Fault, frozen=True, tag=True):
    """The API server restarts: connections end, the request under way may have happened."""

    away: float = 3.0

    @property
    def id(self) -> str:
        return "S1"

    def __str__(self) -> str:
        return f"the API server restarts at {self.at}"


class Compact(Fault, frozen=True, tag=True):
    """The server forgets its history, and ends every watch."""

    @property
    def id(self) -> str:
        return "S2"

    def __str__(self) -> str:
        return f"history is compacted at {self.at}"


class Unwritable(Fault, frozen=True, tag=True):
    """The server's disk is full for a while: writes fail with 500."""

    seconds: float = 10.0

    @property
    def id(self) -> str:
        return "S3"

    def __str__(self) -> str:
        return f"nothing can be stored for {self.seconds:g} s from {self.at}"


class Unadmitted(Fault, frozen=True, tag=True):
    """A webhook that guards what is written is away for a while, or so slow that it is not waited for.

    Where its ``policy`` is Fail, writes of the resource fail meanwhile, at once or after ten seconds; where
    it is Ignore, they take that long and are done.  Whatever else is written goes through.
    """

    policy: Literal["Fail", "Ignore"] = "Fail"
    is_slow: bool = False
    seconds: float = 60.0

    @property
    def id(self) -> str:
        return "S4"

    def __str__(self) -> str:
        how = "slow" if self.is_slow else "away"
        return f"a webhook ({self.policy}) is {how} for {self.seconds:g} s from {self.at}"


# ---- what others do -----------------------------------------------------------------------------------


MARK = "example.com/other"  # a label, or a finalizer, that another program puts on


class Interfere(Fault, frozen=True, tag=True):
    """A user, or another program, acts just before or after an effect."""

    steps: tuple[Step, ...]
    when: Literal["before", "after"] = "before"
    by: Literal["user", "other"] = "user"

    @property
    def is_racy(self) -> bool:
        """A label of another's must change nothing; what else others do may call for an answer, or none."""
        return self.by == "user" or not all(map(_is_mark, self.steps))

    @property
    def id(self) -> str:
        return "I1" if self.by == "user" else "I2"

    def __str__(self) -> str:
        return f"{'; '.join(map(str, self.steps))} {self.when} {self.at}"


class Linger(Fault, frozen=True, tag=True):
    """Another program's finalizer stands on an object: when that is deleted, it takes a while to go."""

    api_version: str
    kind: str
    name: str
    namespace: str = "default"
    when: Literal["before", "after"] = "before"  # it is put on
    seconds: float = 31.0  # longer than a pod is given to end

    @property
    def id(self) -> str:
        return "I2"

    def __str__(self) -> str:
        what = f"{self.kind} {self.name}"
        return f"deleted, {what} takes {self.seconds:g} s to go: another's finalizer, {self.when} {self.at}"


class Alter(Fault, frozen=True, tag=True):
    """Something on the way spoils one field that others depend on: an owner reference, a label.

    No program that means well does that: more than an operator must bear, so a warning.
    """

    step: Change
    when: Literal["before", "after"] = "after"

    @property
    def is_hostile(self) -> bool:
        return True

    @property
    def id(self) -> str:
        return "M1"

    def __str__(self) -> str:
        return f"{self.step} {self.when} {self.at}"


class Uncollected(Fault, frozen=True, tag=True):
    """The garbage collector does nothing until the user has taken so many more steps."""

    steps: int = 4

    @property
    def id(self) -> str:
        return "I3"

    def __str__(self) -> str:
        return f"no garbage is collected for {self.steps} steps from {self.at}"


class Overlap(Fault, frozen=True, tag=True):
    """The leader is paused at an effect; another takes over and finishes; then the first wakes up.

    As a process that is stopped, or a machine that is frozen: neither its timers nor what comes for it wake
    it.  When it wakes, all that fell due meanwhile is due, and then comes what has come for it.
    """

    seconds: float = 130.0  # longer than any wait of the runtime's that has an end: 120 for a cache
    _others_act: ClassVar[bool] = True

    @property
    def id(self) -> str:
        return "L1"

    def __str__(self) -> str:
        return f"paused for {self.seconds:g} s before {self.at}, while another leads"


class Unrenewed(Fault, frozen=True, tag=True):
    """Renewals of the lease are refused until it is over."""

    code: int = 500
    _others_act: ClassVar[bool] = True

    @property
    def id(self) -> str:
        return "L2"

    def __str__(self) -> str:
        return f"the lease cannot be renewed ({self.code}) from {self.at}"


class LeaseDeleted(Fault, frozen=True, tag=True):
    """Somebody deletes the Lease while its holder leads: ``kubectl delete lease``."""

    _others_act: ClassVar[bool] = True

    @property
    def id(self) -> str:
        return "L3"

    def __str__(self) -> str:
        return f"the lease is deleted before {self.at}"


class ClockStep(Fault, frozen=True, tag=True):
    """A clock of the operator's machine jumps: somebody sets its calendar; or it has slept, and the clock
    that never goes back has jumped ahead, and the calendar with it.
    """

    seconds: float = -60.0
    clock: Literal["calendar", "steady"] = "calendar"

    @property
    def id(self) -> str:
        return "C1"

    @property
    def replicas(self) -> int:
        """By its calendar a leader must not be deceived; that its lease is over it may well think."""
        return 2 if self.clock == "calendar" else 1

    def __str__(self) -> str:
        what = "the calendar" if self.clock == "calendar" else "the steady clock"
        return f"{what} jumps by {self.seconds:+g} s at {self.at}"


class SlowClock(Fault, frozen=True, tag=True):
    """The clocks of the operator's machine are slow for a while: what it waits for takes longer."""

    pace: float = 0.5
    seconds: float = 120.0

    @property
    def id(self) -> str:
        return "C1"

    @property
    def replicas(self) -> int:
        return 2

    def __str__(self) -> str:
        return f"clocks go at {self.pace:g} of their pace for {self.seconds:g} s from {self.at}"


class Rotate(Fault, frozen=True, tag=True):
    """The token is another from now on, and the old one is refused."""

    @property
    def id(self) -> str:
        return "C2"

    def __str__(self) -> str:
        return f"the token changes at {self.at}"


class Hide(Fault, frozen=True, tag=True):
    """What was made outside of the cluster cannot be found for a while."""

    seconds: float = 30.0

    @property
    def id(self) -> str:
        return "X1"

    def __str__(self) -> str:
        return f"what {self.at} made is not found for {self.seconds:g} s"


AnyFault: TypeAlias = (
    Crash
    | Refuse
    | Lose
    | Throttle
    | Slow
    | Freeze
    | Merge
    | Swap
    | Double
    | Cut
    | Silence
    | Break
    | Travel
    | Starve
    | Restart
    | Compact
    | Unwritable
    | Unadmitted
    | Interfere
    | Linger
    | Alter
    | Uncollected
    | Overlap
    | Unrenewed
    | LeaseDeleted
    | ClockStep
    | SlowClock
    | Rotate
    | Hide
)

NEEDS_LEADER: Final = (Overlap, Unrenewed, LeaseDeleted)  # faults that need two replicas and a lease


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run: what the user does, what goes wrong, and the seed of all chance."""

    steps: tuple[Step, ...] = ()
    faults: tuple[AnyFault, ...] = ()
    seed: int = 0
    operator: str = ""  # the file that it was made for
    replicas: int = 1  # of the operator; more than one elect a leader, as faults of leadership always have it
    bystanders: tuple[Create, ...] = ()  # there before the first step; no step is about them

    def __str__(self) -> str:
        struck = "; then ".join(map(str, self.faults)) or "no fault"
        return f"{struck}, beside other objects" if self.bystanders else struck

    @property
    def id(self) -> str:
        """The classes of its faults: ``E1``, or for a pair of them ``E1+V1``; crash upon crash is ``E7``."""
        if len(self.faults) > 1 and all(isinstance(fault, Crash) for fault in self.faults):
            return "E7"
        return "+".join(fault.id for fault in self.faults) or "none"

    @property
    def is_racy(self) -> bool:
        return any(fault.is_racy for fault in self.faults)

    @property
    def is_hostile(self) -> bool:
        return any(fault.is_hostile for fault in self.faults)


def write_plan(plan: Plan) -> bytes:
    """A plan as JSON, for people to read too."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def _is_mark(step: Step) -> bool:
    """Whether it only puts on a label that means nothing to the operator."""
    metadata = step.patch.get("metadata") if isinstance(step, Change) and len(step.patch) == 1 else None
    return (
        isinstance(metadata, dict) and metadata.keys() == {"labels"} and metadata["labels"].keys() == {MARK}
    )


def _name_of(obj: dict[str, Json]) -> str:
    metadata = obj.get("metadata") or {}
    return f"{obj.get('kind', 'object')} {metadata.get('name') or metadata.get('generateName', '') + '*'}"
