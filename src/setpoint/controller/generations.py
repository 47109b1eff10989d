"""Which generation of an object each controller of its kind has processed.

Several controllers of an operator may reconcile one kind, and its status has one ``observedGeneration``.

1. A generation is written there only when no other controller owes it.
2. A controller owes a generation while its watch has not delivered it, and while a change that passed its
   ``when`` waits to be processed.  It owes nothing for objects and changes that its watch or ``when``
   leaves out.
3. A controller has processed a generation when its reconcile ended and its status is written: who reads the
   new ``observedGeneration`` reads what all of them wrote.
4. A controller that had to withhold a generation reconciles the object again when nobody owes it any more,
   unless another has written it.

All is in memory: after a restart each controller processes every object again, and owes it until then.
Pure.  Fed by ``sources.py`` and ``authored.py``, connected by ``operator.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from setpoint.api.names import Key
from setpoint.api.wire import Snapshot
from setpoint.cache.store import Seen


@dataclass(slots=True)
class _Progress:
    """How far one controller is with one object."""

    snapshot: Snapshot  # as its watch last delivered it
    due: int = 0  # the newest generation that it has to process
    processed: int = 0
    is_withheld: bool = False  # it would have written a generation that another controller owed


class GenerationTracker:
    """How far one controller is with the objects of its kind.

    ``peers`` is the list of all trackers of the kind, which this one joins.
    """

    def __init__(self, peers: list[GenerationTracker]) -> None:
        self._peers = peers
        self._objects: dict[Key, _Progress] = {}
        self._selects: Callable[[Snapshot], bool] = lambda _: True
        self._reconcile: Callable[[Key], None] = lambda _: None
        peers.append(self)

    def connect(self, *, selects: Callable[[Snapshot], bool], reconcile: Callable[[Key], None]) -> None:
        """Give it the controller: which objects it watches, and how to have one reconciled again."""
        self._selects = selects
        self._reconcile = reconcile

    def on_change(self, seen: Seen, matters: bool) -> None:
        """The watch delivered a change; ``matters``: it is about to be queued."""
        key, snapshot = seen.key, seen.new
        if snapshot is None:
            self._objects.pop(key, None)
            self._wake_withheld(key)
            return
        known = self._objects.get(key)
        is_same = known is not None and known.snapshot.metadata.uid == snapshot.metadata.uid
        if known is None or not is_same or _generation(snapshot) < _generation(known.snapshot):
            # An older generation of the same object: the cluster was restored from a backup.
            known = self._objects[key] = _Progress(snapshot)
        known.snapshot = snapshot
        if snapshot.metadata.deletion_timestamp is not None:
            known.due = 0  # an object that is terminating is cleaned up, not reconciled
        elif matters:
            known.due = max(known.due, _generation(snapshot))
        self._wake_withheld(key)

    def may_observe(self, key: Key, uid: str, generation: int) -> bool:
        """Whether no other controller owes this generation of an object."""
        mine = self._of(key, uid)
        snapshot = None if mine is None else mine.snapshot
        return not any(peer.owes(key, uid, generation, snapshot) for peer in self._peers if peer is not self)

    def processed(self, key: Key, uid: str, generation: int, *, is_withheld: bool, is_written: bool) -> None:
        """A reconcile of a generation has ended, and its status is written.

        ``is_withheld``: all but ``observedGeneration``, because another controller owed it.  ``is_written``:
        the status says this generation now.  Neither: the controller's class of the kind has no such field.
        """
        mine = self._of(key, uid)
        if mine is None:
            return  # gone meanwhile, or not delivered yet: then it is processed again
        mine.processed = max(mine.processed, generation)
        mine.is_withheld = is_withheld
        if is_written:
            for peer in self._peers:
                peer.release(key, uid, generation)
        self._wake_withheld(key)

    def owes(self, key: Key, uid: str, generation: int, snapshot: Snapshot | None) -> bool:
        """Whether it is yet to process a generation; ``snapshot`` is the object as the asker has it."""
        known = self._of(key, uid)
        if known is not None and known.processed >= generation:
            return False
        if known is None or _generation(known.snapshot) < generation:
            return snapshot is None or self._selects(snapshot)
        return known.processed < known.due

    def release(self, key: Key, uid: str, generation: int) -> None:
        """Another controller has written this generation: there is nothing to withhold up to it."""
        known = self._of(key, uid)
        if known is not None and known.processed <= generation:
            known.is_withheld = False

    def wake(self, key: Key) -> bool:
        """Have the object reconciled again, if a generation of it was withheld that may be written now."""
        known = self._objects.get(key)
        if known is None or not known.is_withheld:
            return False
        if not self.may_observe(key, known.snapshot.metadata.uid, known.processed):
            return False
        known.is_withheld = False
        self._reconcile(key)
        return True

    def _of(self, key: Key, uid: str) -> _Progress | None:
        known = self._objects.get(key)
        return known if known is not None and known.snapshot.metadata.uid == uid else None

    def _wake_withheld(self, key: Key) -> None:
        """Have one controller write what was withheld: more are not needed."""
        any(peer.wake(key) for peer in self._peers)


def _generation(snapshot: Snapshot) -> int:
    return snapshot.metadata.generation
