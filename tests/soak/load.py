"""Much of everything: keys that come and go, watches, and long lists in pages under churn."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cluster import Process
from setpoint.api.forms import metadata_only
from setpoint.client.config import Config
from tests.soak.world import (
    LAMPS,
    MAPS,
    NAMESPACE,
    ROOT,
    Violation,
    World,
    config_map,
    lamp,
    megabytes,
    say,
    world,
)

AT_ONCE = 48  # keys in hand
GROWTH, SLACK = 1.15, 24.0  # how much memory may grow after the first part: a factor, and megabytes


async def keys(folder: Path, count: int = 100_000) -> dict[str, Any]:
    """Create, wait for the operator's status, and delete, so many times; memory stays what it was."""
    step = max(1, count // 10)
    async with world(folder) as made:
        run = _Keys(made, count, step)
        began = time.monotonic()
        await run.run()
        seconds = time.monotonic() - began
        left = await made.client.list(LAMPS, namespace=NAMESPACE)
        if left:
            raise Violation(f"{len(left)} Lamps are left")
        curves = {name: [megabytes for _, megabytes in curve] for name, curve in run.curves.items()}
        for name, curve in curves.items():
            settled = max(curve[: len(curve) // 2 + 1])
            if curve[-1] > settled * GROWTH + SLACK:
                raise Violation(f"the {name}'s memory grows with keys that are gone: {curve} MB")
        cpu = {"server": Process(made.server).cpu_seconds, "operator": Process(made.operator).cpu_seconds}
        return {
            "keys": run.done,
            "seconds": round(seconds),
            "keys_per_s": round(run.done / seconds),
            "rss_mb": curves,
            "cpu_s": {name: round(spent) for name, spent in cpu.items()},
            "log_lines": made.logged("operator").count("\n"),
        }


class _Keys:
    """Keys on their way: created, reconciled, deleted, seen to be gone."""

    def __init__(self, made: World, count: int, step: int) -> None:
        self._made, self._count, self._step = made, count, step
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self.done = 0
        self.curves: dict[str, list[tuple[int, float]]] = {"server": [], "operator": []}

    async def run(self) -> None:
        watching = asyncio.create_task(self._watch())
        self._sample()
        try:
            numbers = iter(range(self._count))
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(self._work(numbers))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _work(self, numbers: Any) -> None:
        client = self._made.client
        for number in numbers:
            name = f"key-{number}"
            has_child = number % 2 == 0  # often enough that bounded memories are full before the end
            seen = self._waiting[name] = asyncio.get_running_loop().create_future()
            await client.create(lamp(name, name, child=has_child))
            try:
                async with asyncio.timeout(120):
                    await seen
            except TimeoutError:
                raise Violation(f"{name} was created, and the operator has not set its status") from None
            await client.delete(LAMPS, name, namespace=NAMESPACE)
            if has_child:
                await client.delete(MAPS, name, namespace=NAMESPACE)
            self.done += 1
            if self.done % self._step == 0:
                self._sample()

    def _sample(self) -> None:
        for name, pid in (("server", self._made.server), ("operator", self._made.operator)):
            self.curves[name].append((self.done, megabytes(pid)))
        say(
            soak="keys", done=self.done, **{f"{name}_mb": curve[-1][1] for name, curve in self.curves.items()}
        )

    async def _watch(self) -> None:
        async with self._made.client.watch(LAMPS, namespace=NAMESPACE) as events:
            async for event in events:
                self._note(event.object)

    def _note(self, obj: Any) -> None:
        if (obj.get("status") or {}).get("value") == obj["spec"]["value"]:
            seen = self._waiting.pop(obj["metadata"]["name"], None)
            if seen is not None and not seen.done():
                seen.set_result(None)


# ── Watches ─────────────────────────────────────────────────────────────────────────────────────────

READERS = 5  # processes that share the watches
EVENTS = 20


async def watches(folder: Path, count: int = 5_000) -> dict[str, Any]:
    """So many watches at once: each sees every event."""
    async with world(folder, operator=False) as made:
        idle = megabytes(made.server)
        page = await made.client.list_page(MAPS, namespace=NAMESPACE, page_size=1)
        config = Config.load(made.kubeconfig)
        material = config.read()
        authority = folder / "ca.crt"
        authority.write_bytes(material.ca or b"")
        asked = {
            "url": config.server,
            "headers": {**config.headers(), "Authorization": f"Bearer {material.token}"},
            "authority": str(authority),
            "certificate": None,
            "path": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
            "version": page.resource_version,
            "watches": count // READERS,
            "events": EVENTS,
            "seconds": 300,
        }
        began = time.monotonic()
        command = (sys.executable, "-m", "bench.watchers", json.dumps(asked))
        pipe = asyncio.subprocess.PIPE
        readers = [
            await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=pipe, limit=1 << 30)
            for _ in range(READERS)
        ]
        try:
            for reader in readers:
                assert reader.stdout is not None
                if await reader.stdout.readline() != b"ready\n":
                    raise Violation("a process could not open its watches; it said why")
            opened, full = time.monotonic() - began, megabytes(made.server)
            say(soak="watches", opened_s=round(opened, 1), server_mb=full)
            sent = []
            for number in range(EVENTS):
                sent.append(time.monotonic())
                await made.client.create(config_map(f"seen-{number}", "x"))
            told = [json.loads((await reader.communicate())[0]) for reader in readers]
        finally:
            for reader in readers:
                if reader.returncode is None:
                    reader.kill()
                    await reader.wait()
        during = megabytes(made.server)
    late = sorted(
        at - since
        for each in told
        for seen in each["seen"]
        for since, at in zip(sent, seen, strict=True)
        if at is not None
    )
    wanted = EVENTS * (count // READERS) * READERS
    if len(late) != wanted:
        raise Violation(f"{len(late)} of {wanted} events came to the watches")
    return {
        "watches": count,
        "events": wanted,
        "opened_s": round(opened, 1),
        "event_p50_ms": round(late[len(late) // 2] * 1000),
        "event_p99_ms": round(late[len(late) * 99 // 100] * 1000),
        "resumed": sum(each["resumed"] for each in told),
        "server_mb": {"idle": idle, "opened": full, "after": during},
        "kb_per_watch": round((full - idle) * 1024 / count, 1),
    }


# ── Long lists ──────────────────────────────────────────────────────────────────────────────────────

LISTERS, TIMES, PAGE = 12, 2, 1000
_NAME = re.compile(rb'"name":"([^"]+)"')


async def lists(folder: Path, count: int = 200_000) -> dict[str, Any]:
    """So many objects, listed in pages by several clients under churn: each list is one moment, and whole."""
    async with world(folder, operator=False) as made:
        began = time.monotonic()
        await _fill(made, count)
        filled, full = time.monotonic() - began, megabytes(made.server)
        say(soak="lists", filled=count, seconds=round(filled), server_mb=full)
        churn = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.soak.churn", str(made.kubeconfig)),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert churn.stdout is not None
        await churn.stdout.readline()  # it has begun
        began = time.monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                often = [group.create_task(_list_often(made, number)) for number in range(LISTERS)]
        finally:
            said, _ = await churn.communicate(b"end\n")
        seconds, after = time.monotonic() - began, megabytes(made.server)
    lives = json.loads(said)
    listed = [each for task in often for each in task.result()]
    for each in listed:
        _check_list(each, lives, count)
    pages = sorted(seconds for each in listed for seconds in each.seconds)
    return {
        "objects": count,
        "filled_s": round(filled),
        "lists": len(listed),
        "pages": len(pages),
        "page_p50_ms": round(pages[len(pages) // 2] * 1000),
        "page_p99_ms": round(pages[len(pages) * 99 // 100] * 1000),
        "versions": len({each.version for each in listed}),
        "churned": len(lives),
        "seconds": round(seconds),
        "server_mb": {"filled": full, "after": after},
    }


async def _fill(made: World, count: int) -> None:
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await made.client.create(config_map(f"stays-{number}", "x"))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


@dataclass
class _Listed:
    """One list, of all its pages."""

    version: int
    names: list[str]
    seconds: list[float]  # that each page took


async def _list_often(made: World, number: int) -> list[_Listed]:
    await asyncio.sleep(number / 4)  # so that they are of different versions
    return [await _list_all(made) for _ in range(TIMES)]


async def _list_all(made: World) -> _Listed:
    listed, versions, token = _Listed(0, [], []), set[str](), ""
    while not listed.seconds or token:
        began = time.monotonic()
        page = await made.client.list_page(
            metadata_only(MAPS), token, namespace=NAMESPACE, page_size=PAGE, timeout=60
        )
        listed.seconds.append(time.monotonic() - began)
        listed.names += [found[1].decode() for each in page.items if (found := _NAME.search(each))]
        versions.add(page.resource_version)
        token = page.continue_token
    if len(versions) != 1:
        raise Violation(f"the pages of one list are of the versions {sorted(versions)}")
    listed.version = int(versions.pop())
    return listed


def _check_list(listed: _Listed, lives: dict[str, tuple[int, int | None]], count: int) -> None:
    """It holds what was there at its version, each object once."""
    names = set(listed.names)
    if len(listed.names) != len(names):
        raise Violation("an object is in two pages of one list")
    stays = sum(name.startswith("stays-") for name in names)
    if stays != count:
        raise Violation(f"{stays} of {count} objects were listed")
    for name, (since, until) in lives.items():
        if name in names and since > listed.version:
            raise Violation(f"{name} is in the list of {listed.version}, and was created at {since}")
        if name not in names and since <= listed.version and (until is None or listed.version <= until):
            raise Violation(f"{name} is not in the list of {listed.version}, and was there from {since} on")
