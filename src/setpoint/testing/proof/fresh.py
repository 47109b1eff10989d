"""Fresh starts (O4): whether the state that a run has come to is that of its last spec alone.

Each state that the user's steps lead to is held against a run in which its objects, as they are asked for,
are made on an empty cluster.  Of runs with faults, those in which others act are held against it too: a user
who comes in between, or a leader that follows another, may lead to other states than the reference has, but
to none that a fresh start would not come to.  Only such states are looked at: what is as in the reference is
known.

Not held against anything: what a user has helped with other objects, which a fresh start does not have; what
is being deleted; what was not waited for, or is never seen (V10); what another program has changed or deleted
(I2, M1), to which there may be an answer, or none; and faults of an operator to which the way matters without
any, as is told then.

A fresh start costs a run, and is made once for each spec.  Asked by ``prove.py`` and ``trial.py``; on a
cluster by ``real_proof.py``, of runs without faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from setpoint.testing.proof.oracles import Finding, Reference, fresh_start, judge
from setpoint.testing.proof.plans import Alter, Create, Interfere, Plan, Starve
from setpoint.testing.proof.trace import OTHER, USER, Checkpoint, Run, Written
from setpoint.testing.proof.world import Prepared

_MOST: Final = 100  # that are remembered; any can be made again


class FreshStarts:
    """Those of one operator."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._known: dict[bytes, Run] = {}

    def __repr__(self) -> str:
        return f"<FreshStarts: {len(self._known)} known>"

    def judge(self, run: Run, reference: Reference, without: frozenset[str] = frozenset()) -> list[Finding]:
        """What is wrong with a run, by all oracles.

        Where a fault has done harm already, its state is a part of that, and no fresh start is asked for.
        """
        found = judge(run, reference, without=without)
        if "O4" in without:
            return found
        if not run.plan.faults:
            return found + self._against(reference.run, reference)
        if found or not is_comparable(run.plan):
            return found
        found = self._against(run, reference)
        is_usual = bool(found) and bool(self._against(reference.run, reference))
        return [] if is_usual else found  # what is so without faults is told of there

    def _against(self, run: Run, reference: Reference) -> list[Finding]:
        for point, plan in fresh_plans(run, reference):
            if found := list(fresh_start(point, self._start(plan), reference.rules)):
                return found
        return []

    def _start(self, plan: Plan) -> Run:
        key = msgspec.json.encode(plan)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[key] = self._prepared.run(plan)
        return found


def is_comparable(plan: Plan) -> bool:
    """Whether others act in it, none of whom does what a fresh start would not have."""
    return plan.is_racy and not any(
        isinstance(fault, Alter | Starve)
        or (isinstance(fault, Interfere) and fault.by == OTHER and fault.is_racy)
        for fault in plan.faults
    )


def fresh_plans(run: Run, reference: Reference) -> Iterator[tuple[Checkpoint, Plan]]:
    """The states that a run has come to, and for each the plan that makes its objects at once; with faults,
    only of those that are not as in the reference.
    """
    for point in run.checkpoints[1:]:
        is_known = bool(run.plan.faults) and point.state == reference.state(point.step)
        if is_known or not point.is_settled or point.is_blind:
            continue
        wanted = [write for write in _living(run, point.time) if write.resource in reference.primaries]
        if not wanted or any(map(_is_going, wanted)) or _is_helped(run, point.time, reference.primaries):
            continue
        creates = tuple(Create(_as_new(msgspec.json.decode(write.data))) for write in wanted)
        yield point, Plan(creates, (), reference.run.plan.seed)


def _is_helped(run: Run, moment: float, primaries: frozenset[str]) -> bool:
    """Whether the user had made or changed other objects by then, which a fresh start would not have."""
    return any(
        write.by == USER and write.type != "DELETED" and write.resource not in primaries
        for write in run.writes
        if write.time <= moment
    )


def _is_going(write: Written) -> bool:
    return "deletionTimestamp" in msgspec.json.decode(write.data)["metadata"]


def _living(run: Run, moment: float) -> list[Written]:
    """What was there at a moment, as it was last written."""
    living: dict[str, Written] = {}
    for write in run.writes:
        if write.time > moment:
            break
        if write.type == "DELETED":
            living.pop(write.place, None)
        else:
            living[write.place] = write
    return list(living.values())


def _as_new(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as a user would write it."""
    metadata = obj["metadata"]
    kept = {
        name: metadata[name] for name in ("name", "namespace", "labels", "annotations") if name in metadata
    }
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": kept}
