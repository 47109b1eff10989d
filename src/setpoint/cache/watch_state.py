"""Decides what follows what while a kind is listed and watched.  Pure: states, what was said, effects.

A *state* says what to do next: stream the initial list, fetch a page, watch, or rest.  What came of it is
*said* to ``advance``, which answers with the next state and the *effects* on the store.  The promises:

1. The first list is consistent: it asks for no version, so a restart never goes back in time.
2. A list is staged and swapped in whole.  One that breaks off is forgotten.
3. A watch that the server ends in order, that breaks or falls silent goes on from the last version seen,
   without a list.
4. A version too old to go on from is listed again at once; a second time within ``quiet``, after a rest.
5. The initial list is streamed (WatchList) and the same stream goes on as the watch.  A server that refuses,
   falls silent or ends the stream before the list is whole is listed page by page, from then on.
6. A list older than what the store has seen is not swapped in.  When the server insists, the sixth is: its
   past was replaced, as by an etcd restored from a backup.
7. Failures are waited out: ``first_wait``, doubling to ``longest_wait``, times [1, 2); anew after ``quiet``.
   As long as the server asks for, if that is longer, but no longer than ``longest_wait``.
8. A watch that broke, ended early or could not be opened goes on from just before the last change seen, its
   *witness*: the server must send that change again, and then nothing up to the version that the store has
   reached.  If it sends something else, its past was replaced.  So two pasts are never mixed, also where new
   writes have come beyond the old version.  Where nothing was ever seen, all is listed again.

No clock, chance or connection here: they come in with what is said.  ``reflector.py`` drives it over a
client; ``informer.py`` carries out the effects on ``store.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

import msgspec

from setpoint.api.names import Key
from setpoint.api.wire import Snapshot
from setpoint.cache.versions import is_older, later, latest, number

STALLS = 3  # silent connections in a row, then the watch itself is doubted: its version may lie in the future
DOUBTS = 5  # lists in a row that are older than the store, before one is believed


@dataclass(frozen=True, slots=True)
class Timing:
    """How long things may take, in seconds."""

    first_wait: float = 0.8
    longest_wait: float = 30.0
    quiet: float = 120.0  # without a failure, and the waits begin anew
    progress: float = 30.0  # what an initial stream may be silent for, or take to end once changes arrive
    check: float = 10.0  # what a server may take to send the last change again; it has it in memory
    liveness: float = 90.0  # what a watch may be silent for; servers send a bookmark about once a minute


TIMING = Timing()


# ---- states ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """What outlives a connection."""

    version: str = ""  # what the store had reached when the present list or watch began
    streams: bool = True  # the server is believed to stream initial lists
    failures: int = 0
    failed_at: float = float("-inf")
    stalls: int = 0
    doubts: int = 0


@dataclass(frozen=True, slots=True)
class Streaming:
    """To do: open a watch that first sends all there is; its events are staged until the bookmark."""

    known: Known
    is_settling: bool = False  # changes arrive already, so the list is over, and the bookmark is due
    newest: Snapshot | None = field(default=None, compare=False)  # of those that are staged


@dataclass(frozen=True, slots=True)
class Listing:
    """To do: fetch the first page, or the one that ``token`` stands for."""

    known: Known
    token: str = ""
    is_paged: bool = True
    newest: Snapshot | None = field(default=None, compare=False)  # of those that are staged


@dataclass(frozen=True, slots=True)
class Witness:
    """The last change seen of a scope, or the newest object of its list."""

    snapshot: Snapshot
    is_deletion: bool = False
    is_listed: bool = False

    @property
    def version(self) -> str:
        return self.snapshot.metadata.resource_version

    @property
    def before(self) -> str:
        """The version just before it; "" if there is none to watch from."""
        count = number(self.version)
        return str(count - 1) if count is not None and count > 1 else ""

    def is_same(self, snapshot: Snapshot, *, is_deletion: bool) -> bool:
        mine, theirs = self.snapshot.metadata, snapshot.metadata
        is_known = (mine.uid, mine.key, mine.resource_version, self.is_deletion) == (
            *(theirs.uid, theirs.key, theirs.resource_version, is_deletion),
        )
        # Two pasts may have changed one object at the same version; hardly to the same content and times.
        return is_known and _is_equal(self.snapshot.data, snapshot.data)


@dataclass(frozen=True, slots=True)
class Watching:
    """To do: watch from ``version`` on; if it ``is_checking``, from before the witness, which must come."""

    version: str
    known: Known
    witness: Witness | None = field(default=None, compare=False)
    is_checking: bool = False
    is_resumed: bool = False  # the witness came, and nothing after it yet

    @property
    def starts_at(self) -> str:
        """The version to watch from."""
        return self.witness.before if self.is_checking and self.witness is not None else self.version


@dataclass(frozen=True, slots=True)
class Resting:
    """To do: wait, then go on."""

    seconds: float
    then: Streaming | Listing | Watching

    @property
    def known(self) -> Known:
        return self.then.known


State: TypeAlias = Streaming | Listing | Watching | Resting


def begin(known: Known = Known()) -> Streaming | Listing:  # noqa: B008 - it is frozen
    """The state in which nothing is listed yet, or all must be listed again."""
    return Streaming(known) if known.streams else Listing(known)


# ---- what is said ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sent:
    """Objects of the initial list arrived, in a stream."""

    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """Objects were added or modified, in this order."""

    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """An object was deleted, or is no longer selected."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Marked:
    """All up to this version has been sent; in an initial stream, perhaps all that there was."""

    version: str
    ends_list: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A page arrived."""

    snapshots: tuple[Snapshot, ...]
    version: str
    token: str = ""  # of the next page


@dataclass(frozen=True, slots=True)
class Closed:
    """The server ended the connection in order."""

    at: float
    chance: float = 0.0  # in [0, 1)
    is_fruitless: bool = False  # it brought nothing, and ended as soon as it began
    is_early: bool = False  # before the time that was asked for: the server may be shutting down


class How(Enum):
    """The ways to fail that are answered differently."""

    BROKEN = "the server was not reached, or the connection broke"
    ERRED = "the server failed, or has too much to do"
    STALLED = "nothing arrived in time"
    REFUSED = "the request makes no sense to the server, or its answer none to us"
    EXPIRED = "the version or token is too old to go on from"
    DENIED = "not permitted, or no such kind, until somebody changes that"


@dataclass(frozen=True, slots=True)
class Failed:
    """What was to be done could not be done."""

    how: How
    at: float
    chance: float = 0.0  # in [0, 1)
    retry_after: float = 0.0  # the server's own wish


@dataclass(frozen=True, slots=True)
class Rested:
    """The rest is over."""


Said: TypeAlias = Sent | Changed | Removed | Marked | Listed | Closed | Failed | Rested


# ---- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stage:
    """Keep these for the swap."""

    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True, slots=True)
class Unstage:
    """Keep this one no longer: it was deleted while the list was sent."""

    key: Key


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop all that is staged."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Put what is staged in the place of all that is known; the store is then at this version."""

    version: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """Drop all that is staged: the list is older than the store."""

    version: str
    known: str


@dataclass(frozen=True, slots=True)
class Put:
    """The objects are now as given; one that is given twice, as the last time."""

    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True, slots=True)
class Drop:
    """The object is no more; given is how it last was."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Reach:
    """The store is now at this version, without a change."""

    version: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """The server's past is another than the one that the store follows."""

    evidence: str


Effect: TypeAlias = Stage | Unstage | Forget | Swap | Doubt | Put | Drop | Reach | Replaced


# ---- the table -------------------------------------------------------------------------------------


def advance(state: State, said: Said, timing: Timing = TIMING) -> tuple[State, list[Effect]]:
    """The next state, and what the store must do."""
    match state, said:
        case Watching(is_checking=True), Changed() | Removed() | Marked():
            return _check(state, said, timing)
        case Watching(is_resumed=True), Changed() | Removed():
            return _resumed(state, said, timing)
        case Watching(is_checking=True), Failed(How.STALLED):  # the witness never came
            return _rest(_left(state), said, timing, begin), []
        case Watching(), Changed(snapshots):
            return _seen(state, *snapshots), [Put(snapshots)]
        case Watching(), Removed(snapshot):
            return _seen(state, snapshot, is_deletion=True), [Drop(snapshot)]
        case Watching(), Marked(version):
            return replace(state, version=later(state.version, version)), [Reach(version)]
        case Watching(), Closed(is_fruitless=False, is_early=is_early):
            return _checking(state) if is_early else _again(state), []
        case Watching(), Closed():  # a server that closes at once must not be asked at once
            return _rest(_left(state), said, timing, lambda known: _checking(replace(state, known=known))), []
        case Watching(), Failed(How.EXPIRED) if _is_calm(state.known, said, timing):
            return begin(_failed(_left(state), said, timing)), []
        case Watching(), Failed(How.EXPIRED | How.REFUSED):
            return _rest(_left(state), said, timing, begin), []
        case Watching(), Failed(How.STALLED):
            return _stalled(state, said, timing), []
        case Watching(), Failed():
            return _rest(_left(state), said, timing, lambda known: _checking(replace(state, known=known))), []

        case Streaming(), Sent(snapshots):
            return replace(state, newest=_newest(state.newest, snapshots)), [Stage(snapshots)]
        case Streaming(), Changed(snapshots):
            settling = replace(state, is_settling=True, newest=_newest(state.newest, snapshots))
            return settling, [Stage(snapshots)]
        case Streaming(), Removed(snapshot):
            return replace(state, is_settling=True), [Unstage(snapshot.key)]
        case Streaming(known), Marked(version, ends_list=True):
            return _swap(known, version, state.newest, timing)
        case Streaming(), Marked():
            return state, []
        case Streaming(known), Failed(How.STALLED | How.REFUSED):
            return Listing(replace(known, streams=False)), [Forget()]
        case Streaming(known), Closed():
            return _rest(replace(known, streams=False), said, timing, Listing), [Forget()]
        case Streaming(known), Failed(How.ERRED | How.EXPIRED):  # perhaps only its stream fails
            return _rest(known, said, timing, Listing), [Forget()]
        case Streaming(known), Failed():
            return _rest(known, said, timing, begin), [Forget()]

        case Listing(known), Listed(snapshots, version, token=""):
            following, effects = _swap(known, version, _newest(state.newest, snapshots), timing)
            return following, [Stage(snapshots), *effects]
        case Listing(), Listed(snapshots, token=token):
            return replace(state, token=token, newest=_newest(state.newest, snapshots)), [Stage(snapshots)]
        case Listing(known, token, is_paged=True), Failed(How.EXPIRED) if token:
            return Listing(known, is_paged=False), [Forget()]  # too many pages for the server's memory
        case Listing(known), Failed():
            return _rest(known, said, timing, begin), [Forget()]

        case Resting(then=then), Rested():
            return then, []
    raise AssertionError(f"{said!r} cannot be said while {state!r}")


def _seen(state: Watching, *snapshots: Snapshot, is_deletion: bool = False) -> Watching:
    last = snapshots[-1]
    is_new = is_older(state.version, last.metadata.resource_version)
    witness = Witness(last, is_deletion) if is_new else state.witness
    return Watching(latest(state.version, snapshots), state.known, witness)


def _newest(known: Snapshot | None, snapshots: tuple[Snapshot, ...]) -> Snapshot | None:
    """The newest of those, by version; where versions cannot be compared, any."""
    found = known
    for each in snapshots:
        if found is None or is_older(found.metadata.resource_version, each.metadata.resource_version):
            found = each
    return found


def _checking(state: Watching) -> Watching | Streaming | Listing:
    """Watch on after the connection was lost, from before the witness: it shows that the past is the same."""
    if number(state.version) is None:
        return _again(state)
    if state.witness is None or not state.witness.before:
        return begin(state.known)
    return replace(state, is_checking=True)


def _check(state: Watching, said: Changed | Removed | Marked, timing: Timing) -> tuple[State, list[Effect]]:
    """Whether what a resumed watch brings first is the witness, and nothing else that should be known."""
    witness = state.witness
    if witness is None:
        raise AssertionError("a watch is checked by its witness")
    if isinstance(said, Marked):
        return (state, []) if is_older(said.version, witness.version) else _replaced(state, witness)
    first, *others = said.snapshots if isinstance(said, Changed) else (said.snapshot,)
    if is_older(first.metadata.resource_version, witness.version):
        checked = state  # nobody asked for it
    elif witness.is_same(first, is_deletion=isinstance(said, Removed)):
        checked = replace(state, is_checking=False, is_resumed=True)
    else:
        return _replaced(state, witness)
    return advance(checked, Changed(tuple(others)), timing) if others else (checked, [])


def _resumed(state: Watching, said: Changed | Removed, timing: Timing) -> tuple[State, list[Effect]]:
    """Whether the first change after the witness is one that the store cannot have seen."""
    first, *others = said.snapshots if isinstance(said, Changed) else (said.snapshot,)
    version = first.metadata.resource_version
    if is_older(state.version, version):
        return advance(replace(state, is_resumed=False), said, timing)
    if state.witness is None or not is_older(state.witness.version, version):  # sent twice
        return advance(state, Changed(tuple(others)), timing) if others else (state, [])
    if state.witness.is_listed:
        # Between the newest object of a list and the list itself lie only deletions, of what we never held.
        return begin(_left(state)), []
    return _replaced(state, state.witness, f"{first.key} at resourceVersion {version}")


def _replaced(state: Watching, witness: Witness, other: str = "") -> tuple[State, list[Effect]]:
    known = f"{witness.snapshot.key} at resourceVersion {witness.version}"
    evidence = f"after {known} it has {other}, of which it said nothing" if other else f"it lacks {known}"
    return begin(Known(streams=state.known.streams)), [Replaced(evidence)]


def _is_equal(one: bytes, other: bytes) -> bool:
    """Whether these are the same object; a list leaves out what a watch says of its kind."""
    if one == other:
        return True
    first, second = (msgspec.json.decode(each) for each in (one, other))
    for each in (first, second):
        each.pop("kind", None)
        each.pop("apiVersion", None)
    return bool(first == second)


def _again(state: Watching) -> Watching | Streaming | Listing:
    """Watch on from where it ended; from no version at all, that could miss something."""
    return state if state.version not in ("", "0") else begin(state.known)


def _swap(known: Known, version: str, newest: Snapshot | None, timing: Timing) -> tuple[State, list[Effect]]:
    if is_older(version, known.version) and known.doubts < DOUBTS:
        wait = timing.first_wait * 2.0**known.doubts
        return Resting(wait, begin(replace(known, doubts=known.doubts + 1))), [Doubt(version, known.version)]
    effects: list[Effect] = [Swap(version)]
    if is_older(version, known.version):
        effects.append(Replaced(f"it is at resourceVersion {version}, and was at {known.version}"))
    witness = None if newest is None else Witness(newest, is_listed=True)
    return Watching(version, replace(known, version=version, stalls=0, doubts=0), witness), effects


def _left(state: Watching) -> Known:
    """What is known when a watch is left; the silences before it count only if it brought nothing."""
    if state.version == state.known.version:
        return state.known
    return replace(state.known, version=state.version, stalls=0)


def _stalled(state: Watching, failed: Failed, timing: Timing) -> Resting:
    known = _left(state)
    if known.stalls + 1 >= STALLS:
        return _rest(replace(known, stalls=0), failed, timing, begin)
    known = replace(known, stalls=known.stalls + 1)
    return _rest(known, failed, timing, lambda known: _checking(replace(state, known=known)))


def _is_calm(known: Known, failed: Failed | Closed, timing: Timing) -> bool:
    return failed.at - known.failed_at > timing.quiet


def _failed(known: Known, failed: Failed | Closed, timing: Timing) -> Known:
    failures = 1 if _is_calm(known, failed, timing) else known.failures + 1
    return replace(known, failures=failures, failed_at=failed.at)


def _rest(
    known: Known,
    failed: Failed | Closed,
    timing: Timing,
    then: Callable[[Known], Streaming | Listing | Watching],
) -> Resting:
    known = _failed(known, failed, timing)
    wait = min(timing.longest_wait, timing.first_wait * 2.0 ** min(known.failures - 1, 30))
    # A server that names an hour is not believed: until then the store would be old.
    asked = min(timing.longest_wait, failed.retry_after) if isinstance(failed, Failed) else 0.0
    return Resting(max(asked, wait * (1 + failed.chance)), then(known))
