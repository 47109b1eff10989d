"""The logs of pods where nothing really runs: that a container started, was ready, exited, and its own lines.

What a container has written follows from how the pod is told to be, and from the annotation ``LOGS``; nothing
is kept.  A log that is followed goes on until its container has exited or the pod is gone.  Where there is no
log, the reasons are a kubelet's, in its words.

Given to the API server by whoever runs it beside the node stand-in (``cluster/cluster.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from datetime import datetime
from typing import Final

from setpoint.api.logs import LogLine, LogPart, chosen_lines
from setpoint.cache.cache import Cache
from setpoint.cache.store import Seen
from setpoint.kube.core.v1 import (
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
)

LOGS: Final = "node.setpoint.dev/logs"
"""The lines that each container of the pod writes when it starts."""

_WAITS: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class NodeLogs:
    """Reads the logs of pods; ``cache`` tells of their changes."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def read(self, pod: bytes, container: str, part: LogPart) -> AsyncGenerator[bytes, None]:
        """The log in pieces; ValueError if there is none."""
        known = Pod.decode(pod)
        log = lines_of(known, container, previous=part.previous)
        return _limited(self._pieces(known, container, log, part), part)

    async def _pieces(
        self, pod: Pod, container: str, log: list[LogLine], part: LogPart
    ) -> AsyncGenerator[bytes, None]:
        yield b"".join(line.encode(timestamps=part.timestamps) for line in chosen_lines(log, part))
        told = set(log)
        if not part.follow or part.previous:
            return
        uid, restarts = pod.metadata.uid, _restarts(pod, container)
        heard: asyncio.Queue[Seen] = asyncio.Queue()
        declaration = self._cache.declare(Pod)
        end = declaration.listen(
            lambda seen: heard.put_nowait(seen) if seen.snapshot.metadata.uid == uid else None
        )
        try:
            is_there = True
            while is_there and _is_running(pod, container):
                seen = await heard.get()
                pod, is_there = Pod.decode(seen.snapshot.data), seen.new is not None
                new = [line for line in _written(pod, container, restarts) if line not in told]
                if new:
                    yield b"".join(line.encode(timestamps=part.timestamps) for line in new)
                told.update(new)
        finally:
            end()
            declaration.close()


async def _limited(pieces: AsyncGenerator[bytes, None], part: LogPart) -> AsyncGenerator[bytes, None]:
    left = part.limit_bytes
    try:
        async for piece in pieces:
            yield piece if left is None else piece[:left]
            if left is not None and (left := left - len(piece)) <= 0:
                return
    finally:
        await pieces.aclose()


# ---- what was written ------------------------------------------------------------------------------


def lines_of(pod: Pod, container: str, *, previous: bool = False) -> list[LogLine]:
    """What a container has written so far; ValueError, as a kubelet words it, if it has no log."""
    status, name = _status(pod, container), pod.metadata.name
    if status is None:
        raise ValueError(f'container "{container}" in pod "{name}" is not available')
    last, state = status.last_state.terminated, status.state
    if previous:
        if last is None or not last.container_id:
            raise ValueError(f'previous terminated container "{container}" in pod "{name}" not found')
        return list(_of_run(pod, status, last))
    if state.running is not None:
        return list(_of_run(pod, status, state.running))
    ended = next((each for each in (state.terminated, last) if each is not None and each.container_id), None)
    if ended is not None:
        return list(_of_run(pod, status, ended))
    if state.terminated is not None or last is not None:
        raise ValueError(f'container "{container}" in pod "{name}" is terminated')
    if state.waiting is not None:
        reason = state.waiting.reason or ""
        why = _WAITS.get(reason, reason)
        raise ValueError(f'container "{container}" in pod "{name}" is waiting to start: {why}')
    raise ValueError(f'container "{container}" in pod "{name}" is waiting to start - no logs yet')


def _of_run(
    pod: Pod, status: ContainerStatus, run: ContainerStateRunning | ContainerStateTerminated
) -> Iterator[LogLine]:
    """From its start to its end, if that has come."""
    started = run.started_at or pod.status.start_time
    if started is None:
        return
    yield LogLine(started, f"{status.name}: started ({status.image}; nothing really runs here)")
    for text in (pod.metadata.annotations or {}).get(LOGS, "").splitlines():
        yield LogLine(started, text)
    if isinstance(run, ContainerStateTerminated):
        yield LogLine(run.finished_at or started, f"{status.name}: exited with code {run.exit_code}")
    elif (ready := _ready_since(pod)) is not None and status.ready:
        yield LogLine(max(ready, started), f"{status.name}: ready")


def _written(pod: Pod, container: str, restarts: int) -> list[LogLine]:
    """What the container has written that was restarted so often, as far as that is still known."""
    status = _status(pod, container)
    if status is None:
        return []
    if status.restart_count == restarts:
        run = status.state.running or status.state.terminated or status.last_state.terminated
    else:
        run = status.last_state.terminated if status.restart_count == restarts + 1 else None
    return [] if run is None else list(_of_run(pod, status, run))


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    all_of_them = (
        *(pod.status.container_statuses or ()),
        *(pod.status.init_container_statuses or ()),
        *(pod.status.ephemeral_container_statuses or ()),
    )
    return next((each for each in all_of_them if each.name == container), None)


def _restarts(pod: Pod, container: str) -> int:
    status = _status(pod, container)
    return 0 if status is None else status.restart_count


def _is_running(pod: Pod, container: str) -> bool:
    status = _status(pod, container)
    return status is not None and status.state.running is not None


def _ready_since(pod: Pod) -> datetime | None:
    ready = next((each for each in pod.status.conditions or () if each.type == "Ready"), None)
    return ready.last_transition_time if ready is not None and ready.status == "True" else None
