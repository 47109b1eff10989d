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
6. A list older than what the store has seen is not swapped in.  When the server insists (its past was
   replaced, by a backup perhaps), the sixth is.
7. Failures are waited out: ``first_wait``, doubling to ``longest_wait``, times [1, 2); anew after ``quiet``.
   As long as the server asks for, if that is longer, but no longer than ``longest_wait``.

No clock, chance or connection here: they come in with what is said.  ``reflector.py`` drives it over a
client; ``informer.py`` carries out the effects on ``store.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from setpoint.api.names import Key
from setpoint.api.wire import Snapshot
from setpoint.cache.versions import is_older, later, latest

STALLS = 3  # silent connections in a row, then the watch itself is doubted: its version may lie in the future
DOUBTS = 5  # lists in a row that are older than the store, before one is believed


@dataclass(frozen=True, slots=True)
class Timing:
    """How long things may take, in seconds."""

    first_wait: float = 0.8
    longest_wait: float = 30.0
    quiet: float = 120.0  # without a failure, and the waits begin anew
    progress: float = 30.0  # what an initial stream may be silent for, or take to end once changes arrive
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


@dataclass(frozen=True, slots=True)
class Listing:
    """To do: fetch the first page, or the one that ``token`` stands for."""

    known: Known
    token: str = ""
    is_paged: bool = True


@dataclass(frozen=True, slots=True)
class Watching:
    """To do: watch from ``version`` on."""

    version: str
    known: Known


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


Effect: TypeAlias = Stage | Unstage | Forget | Swap | Doubt | Put | Drop | Reach


# ---- the table -------------------------------------------------------------------------------------


def advance(state: State, said: Said, timing: Timing = TIMING) -> tuple[State, list[Effect]]:
    """The next state, and what the store must do."""
    match state, said:
        case Watching(), Changed(snapshots):
            return _seen(state, *snapshots), [Put(snapshots)]
        case Watching(), Removed(snapshot):
            return _seen(state, snapshot), [Drop(snapshot)]
        case Watching(), Marked(version):
            return Watching(later(state.version, version), state.known), [Reach(version)]
        case Watching(), Closed(is_fruitless=False):
            return _again(state), []
        case Watching(), Closed():  # a server that closes at once must not be asked at once
            return _rest(_left(state), said, timing, lambda known: _again(replace(state, known=known))), []
        case Watching(), Failed(How.EXPIRED) if _is_calm(state.known, said, timing):
            return begin(_failed(_left(state), said, timing)), []
        case Watching(), Failed(How.EXPIRED | How.REFUSED):
            return _rest(_left(state), said, timing, begin), []
        case Watching(), Failed(How.STALLED):
            return _stalled(state, said, timing), []
        case Watching(), Failed():
            return _rest(_left(state), said, timing, lambda known: _again(replace(state, known=known))), []

        case Streaming(), Sent(snapshots):
            return state, [Stage(snapshots)]
        case Streaming(), Changed(snapshots):
            return _settling(state), [Stage(snapshots)]
        case Streaming(), Removed(snapshot):
            return _settling(state), [Unstage(snapshot.key)]
        case Streaming(known), Marked(version, ends_list=True):
            return _swap(known, version, timing)
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
            following, effects = _swap(known, version, timing)
            return following, [Stage(snapshots), *effects]
        case Listing(known, is_paged=is_paged), Listed(snapshots, token=token):
            return Listing(known, token, is_paged), [Stage(snapshots)]
        case Listing(known, token, is_paged=True), Failed(How.EXPIRED) if token:
            return Listing(known, is_paged=False), [Forget()]  # too many pages for the server's memory
        case Listing(known), Failed():
            return _rest(known, said, timing, begin), [Forget()]

        case Resting(then=then), Rested():
            return then, []
    raise AssertionError(f"{said!r} cannot be said while {state!r}")


def _seen(state: Watching, *snapshots: Snapshot) -> Watching:
    return Watching(latest(state.version, snapshots), state.known)


def _settling(state: Streaming) -> Streaming:
    return state if state.is_settling else Streaming(state.known, is_settling=True)


def _again(state: Watching) -> Watching | Streaming | Listing:
    """Watch on from where it ended; from no version at all, that could miss something."""
    return state if state.version not in ("", "0") else begin(state.known)


def _swap(known: Known, version: str, timing: Timing) -> tuple[State, list[Effect]]:
    if is_older(version, known.version) and known.doubts < DOUBTS:
        wait = timing.first_wait * 2.0**known.doubts
        return Resting(wait, begin(replace(known, doubts=known.doubts + 1))), [Doubt(version, known.version)]
    return Watching(version, replace(known, version=version, stalls=0, doubts=0)), [Swap(version)]


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
    return _rest(known, failed, timing, lambda known: _again(replace(state, known=known)))


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
