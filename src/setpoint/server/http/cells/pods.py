"""The cells of a Pod: above all its status in one word, which is told from many.

The phase is the beginning; a reason of the pod's own, a gate that holds it, an init container that is not
done, the containers from the last to the first, and at last the pod's deletion each have a later word.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from setpoint.server.http.cells.reading import (
    NONE,
    Row,
    age,
    at,
    condition,
    created,
    is_deleting,
    is_true,
    items,
    moment,
    name,
    number,
    text,
)
from setpoint.server.registry.resources import Object

_COMPLETED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Restarts:
    """How often, and when last."""

    def __init__(self) -> None:
        self.count = 0
        self._last: datetime | None = None
        self._stamp = ""

    def add(self, status: Any) -> None:
        self.count += number(status, "restartCount")
        stamp = at(status, "lastState", "terminated", "finishedAt")
        finished = moment(stamp)
        if finished is not None and (self._last is None or self._last < finished):
            self._last, self._stamp = finished, stamp

    def told(self, now: datetime) -> str:
        if self.count and self._stamp:
            return f"{self.count} ({age(self._stamp, now)} ago)"
        return str(self.count)


class _Init(dict[str, bool]):
    """Which init containers run on beside the others (``restartPolicy: Always``)."""

    def __init__(self, found: list[Any]) -> None:
        super().__init__((text(one, "name"), at(one, "restartPolicy") == "Always") for one in found)


def pod(obj: Object, now: datetime) -> Row:
    init = _Init(items(obj, "spec", "initContainers"))
    total = len(items(obj, "spec", "containers")) + sum(init.values())
    reason, ready, restarts = _status(obj, init)
    phase = text(obj, "status", "phase")
    if is_deleting(obj) and text(obj, "status", "reason") == "NodeLost":
        reason = "Unknown"
    elif is_deleting(obj) and phase not in _COMPLETED:
        reason = "Terminating"
    addresses = items(obj, "status", "podIPs")
    cells = [
        name(obj),
        f"{ready}/{total}",
        reason,
        restarts.told(now),
        created(obj, now),
        text(addresses[0], "ip", otherwise=NONE) if addresses else NONE,
        text(obj, "spec", "nodeName", otherwise=NONE),
        text(obj, "status", "nominatedNodeName", otherwise=NONE),
        _gates(obj),
    ]
    if phase not in _COMPLETED:
        return Row(cells)
    told = {"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}
    return Row(cells, told)


def _status(obj: Object, init: _Init) -> tuple[str, int, _Restarts]:
    """The reason, how many containers are ready, and the restarts."""
    reason = text(obj, "status", "reason") or text(obj, "status", "phase")
    scheduled = condition(obj, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    all_restarts, lasting_restarts = _Restarts(), _Restarts()
    ready, is_initializing = 0, False
    for position, status in enumerate(items(obj, "status", "initContainerStatuses")):
        lasts = init.get(text(status, "name"), False)
        all_restarts.add(status)
        if lasts:
            lasting_restarts.add(status)
        terminated = at(status, "state", "terminated")
        if terminated is not None and not number(terminated, "exitCode"):
            continue
        if lasts and at(status, "started"):
            ready += bool(at(status, "ready"))
            continue
        reason = _initializing(status, position, len(init))
        is_initializing = True
        break
    if is_initializing and not is_true(obj, "Initialized"):
        return reason, ready, all_restarts
    reason, running = _running(obj, reason, lasting_restarts)
    return reason, ready + running, lasting_restarts


def _initializing(status: Any, position: int, total: int) -> str:
    terminated, waiting = at(status, "state", "terminated"), text(status, "state", "waiting", "reason")
    if terminated is not None:
        return f"Init:{_ended(terminated)}"
    if waiting and waiting != "PodInitializing":
        return f"Init:{waiting}"
    return f"Init:{position}/{total}"


def _ended(terminated: Any) -> str:
    if said := text(terminated, "reason"):
        return said
    if signal := number(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(terminated, 'exitCode')}"


def _running(obj: Object, reason: str, restarts: _Restarts) -> tuple[str, int]:
    running, failed = 0, ""
    for status in reversed(items(obj, "status", "containerStatuses")):
        restarts.add(status)
        terminated = at(status, "state", "terminated")
        if waiting := text(status, "state", "waiting", "reason"):
            reason = waiting
        elif terminated is not None:
            reason = _ended(terminated)
            if number(terminated, "exitCode"):
                failed = reason
        elif at(status, "ready") and at(status, "state", "running") is not None:
            running += 1
    if reason == "Completed":
        if running and is_true(obj, "Ready"):
            reason = "Running"
        elif failed:
            reason = failed
        elif running:
            reason = "NotReady"
    return reason, running


def _gates(obj: Object) -> str:
    gates = items(obj, "spec", "readinessGates")
    if not gates:
        return NONE
    passed = sum(is_true(obj, text(gate, "conditionType")) for gate in gates)
    return f"{passed}/{len(gates)}"
