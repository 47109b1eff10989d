"""Faults: processes killed and stopped under load, slow peers, objects as large as they may be."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
import socket
import ssl
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final

from setpoint.client.config import Config
from setpoint.errors import ApiError
from setpoint.server.server import _SLOWEST
from tests.soak.world import (
    LAMPS,
    NAMESPACE,
    ROOT,
    Violation,
    World,
    Writers,
    is_alive,
    lamp,
    megabytes,
    say,
    until,
    world,
)

WRITERS, LAMPS_WRITTEN = 4, 24
CONVERGES: Final = 90.0  # seconds within which the operator must have done all there is to do
CHECK_EVERY: Final = 10
AT_WORK: Final = 0.7  # of the operator's kills so many come when it is at work; the others at any moment


async def kills(folder: Path, count: int = 200) -> dict[str, Any]:
    """``kill -9`` of operator and server, so many times each, at random moments, under writers."""
    chance, killed = random.Random(16), Counter[str]()
    took: list[float] = []
    began = time.monotonic()
    async with world(folder) as made:
        writers = Writers(made, WRITERS, LAMPS_WRITTEN)
        while killed.total() < 2 * count:
            async with writers.writing():
                for _ in range(min(CHECK_EVERY, 2 * count - killed.total())):
                    left = {who: count - killed[who] for who in ("operator", "server")}
                    who = chance.choices(list(left), list(left.values()))[0]
                    if who == "operator" and chance.random() < AT_WORK:
                        await wait_for_work(made)
                    await asyncio.sleep(chance.uniform(0.0, 0.5))
                    await kill(made, who)
                    killed[who] += 1
            took.append(await writers.check(CONVERGES))
            if len(took) % 5 == 0:
                say(soak="kills", **killed, acknowledged=writers.acknowledged, converged_s=round(took[-1], 1))
        memory = {"server_mb": megabytes(made.server), "operator_mb": megabytes(made.operator)}
        restarts = made.restarts
    if writers.acknowledged < killed.total():
        raise Violation(f"{writers.acknowledged} writes were acknowledged: too few to show anything")
    return {
        "killed": dict(killed),
        "operator_exits": restarts,
        "acknowledged": writers.acknowledged,
        "unanswered": writers.unanswered,
        "conflicts": writers.refused,
        "checks": len(took),
        "longest_until_converged_s": round(max(took), 1),
        "seconds": round(time.monotonic() - began),
        **memory,
    }


async def wait_for_work(made: World) -> None:
    """Until the operator has reconciled what was written after now."""
    page = await made.client.list_page(LAMPS, namespace=NAMESPACE)
    since = int(page.resource_version)

    async def has_worked() -> bool:
        await made.keep_operator()
        return any(
            int(each["metadata"]["resourceVersion"]) > since
            and (each.get("status") or {}).get("value") == each["spec"]["value"]
            for each in await made.client.list(LAMPS, namespace=NAMESPACE)
        )

    await until("the operator reconciles under writers", has_worked, CONVERGES, every=0.05)


async def kill(made: World, who: str) -> None:
    """Kill a process, and start it again."""
    await made.keep_operator()
    pid: int = getattr(made, who)
    with suppress(ProcessLookupError):  # it ended just now
        os.kill(pid, signal.SIGKILL)

    async def is_gone() -> bool:
        return not is_alive(pid)

    await until("a killed process is gone", is_gone, 10, every=0.005)
    if who == "server":
        await made.start_server()
    else:
        await made.start_operator()


async def stops(folder: Path, longest: int = 60) -> dict[str, Any]:
    """SIGSTOP of the server under writers, longer each time: no event is lost, the operator recovers."""
    lengths = [seconds for seconds in (1, 3, 10, 30, 60) if seconds <= longest]
    took: list[float] = []
    async with world(folder) as made:
        writers = Writers(made, WRITERS, LAMPS_WRITTEN)
        page = await made.client.list_page(LAMPS, namespace=NAMESPACE)
        seen: set[int] = set()
        watching = asyncio.create_task(_note_versions(made, page.resource_version, seen))
        async with AsyncExitStack() as stack:
            stack.callback(watching.cancel)
            for seconds in lengths:
                async with writers.writing():
                    await asyncio.sleep(1)
                    os.kill(made.server, signal.SIGSTOP)
                    try:
                        await asyncio.sleep(seconds)
                    finally:
                        os.kill(made.server, signal.SIGCONT)
                    await asyncio.sleep(1)
                took.append(await writers.check(CONVERGES))
                say(soak="stops", stopped_s=seconds, converged_s=round(took[-1], 1))

            async def has_seen_all() -> object:
                if watching.done():
                    raise Violation(f"the watch ended: {watching.exception()!r}")
                return (
                    not (missing := writers.revisions.keys() - seen) or f"{len(missing)} events are missing"
                )

            await until("a watch has every acknowledged write", has_seen_all, 60)
        restarts = made.logged("operator").count("restarting")
    return {
        "stopped_s": lengths,
        "acknowledged": writers.acknowledged,
        "unanswered": writers.unanswered,
        "events_seen": len(seen),
        "until_converged_s": [round(each, 1) for each in took],
        "operator_restarts": restarts,
    }


async def _note_versions(made: World, version: str, seen: set[int]) -> None:
    async with made.client.watch(LAMPS, namespace=NAMESPACE, resource_version=version) as events:
        async for event in events:
            seen.add(int(event.object["metadata"]["resourceVersion"]))


# ── Slow peers ──────────────────────────────────────────────────────────────────────────────────────


async def slow(folder: Path, count: int = 200) -> dict[str, Any]:
    """Watches that nobody reads and requests that arrive by the byte: others are served, memory is bounded.

    ``count`` of each.  Meanwhile 12 MB of events are written, more than a watch that is not read may keep.
    """
    async with world(folder) as made, AsyncExitStack() as stack:
        peers = _Peers(made)
        stack.callback(peers.close)
        await made.client.create(lamp("first", "first", note="x" * 1000))
        before = megabytes(made.server)
        for _ in range(count):
            peers.watch_unread()
        for number in range(count):
            peers.send_slowly(number)
        dripping = asyncio.create_task(peers.drip())
        stack.callback(dripping.cancel)
        latencies, began = [], time.monotonic()
        for number in range(240):
            sent = time.monotonic()
            await made.client.create(lamp(f"busy-{number}", f"v{number}", note=f"{number:05}" * 10_000))
            got = await made.client.get(LAMPS, f"busy-{number}", namespace=NAMESPACE)
            latencies.append(time.monotonic() - sent)
            if got["spec"]["value"] != f"v{number}":
                raise Violation(f"busy-{number} is {got['spec']['value']!r}")
        during = megabytes(made.server)

        async def has_converged() -> object:
            late = [
                each["metadata"]["name"]
                for each in await made.client.list(LAMPS, namespace=NAMESPACE)
                if (each.get("status") or {}).get("value") != each["spec"]["value"]
            ]
            return not late or f"{len(late)} Lamps are late, such as {late[0]}"

        converged = await until("the operator converges beside slow peers", has_converged, CONVERGES)

        async def are_ended() -> object:
            return not peers.slow or f"{len(peers.slow)} of {count} are still read"

        await until("the server ends requests that arrive slowly", are_ended, 3 * _SLOWEST, every=1)
        seconds = time.monotonic() - began
        dripped, ended = peers.dripped, peers.ended
    # Each event once, and for each watch what a socket and its buffer hold; not each event for each watch.
    allowed = before + 12 * 8 + count * 1.5
    if during > allowed:
        raise Violation(
            f"the server holds {during} MB beside {count} slow readers; {allowed:.0f} are allowed"
        )
    latencies.sort()
    return {
        "unread_watches": count,
        "slow_requests": count,
        "bytes_dripped": dripped,
        "slow_requests_ended": ended,
        "server_mb": {"before": before, "during": during},
        "write_and_read_ms": {
            "p50": round(latencies[len(latencies) // 2] * 1000),
            "p99": round(latencies[-3] * 1000),
        },
        "until_converged_s": round(converged, 1),
        "seconds": round(seconds),
    }


class _Peers:
    """Connections of clients that do not keep up."""

    def __init__(self, made: World) -> None:
        config = Config.load(made.kubeconfig)
        self._host, self._port = config.server.removeprefix("https://").rstrip("/").rsplit(":", 1)
        self._context = ssl._create_unverified_context()  # it is our own server, on loopback
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in config.headers().items())
        token = config.read().token
        if token:
            self._headers += f"Authorization: Bearer {token}\r\n"
        self._unread: list[ssl.SSLSocket] = []
        self.slow: list[tuple[ssl.SSLSocket, bytes]] = []  # and what is yet to be sent
        self.dripped = 0
        self.ended = 0

    def watch_unread(self) -> None:
        path = f"/apis/soak.setpoint.dev/v1/namespaces/{NAMESPACE}/lamps?watch=1"
        sender = self._connect()
        sender.sendall(f"GET {path} HTTP/1.1\r\nHost: {self._host}\r\n{self._headers}\r\n".encode())
        self._unread.append(sender)

    def send_slowly(self, number: int) -> None:
        """Of one half the headers come slowly, of the other the body."""
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        body = b'{"metadata":{"name":"slow-%d"},"data":{"a":"%s"}}' % (number, b"x" * 5000)
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\n{self._headers}Content-Length: {len(body)}\r\n"
        whole = head.encode() + b"Content-Type: application/json\r\n\r\n" + body
        at_once = 40 if number % 2 else len(whole) - len(body) + 10
        sender = self._connect()
        sender.sendall(whole[:at_once])
        sender.setblocking(False)
        self.slow.append((sender, whole[at_once:]))

    async def drip(self) -> None:
        """A byte of each, twice a second."""
        while True:
            for index, (sender, rest) in enumerate(self.slow):
                try:
                    self.dripped += sender.send(rest[:1])
                    self.slow[index] = (sender, rest[1:])
                except OSError:
                    self.ended += 1
                    sender.close()
                    self.slow[index] = (sender, b"")
            self.slow = [(sender, rest) for sender, rest in self.slow if rest]
            await asyncio.sleep(0.5)

    def close(self) -> None:
        for sender in [*self._unread, *(sender for sender, _ in self.slow)]:
            sender.close()

    def _connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection((self._host, int(self._port)), timeout=30)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        return self._context.wrap_socket(plain, server_hostname=self._host)


# ── Large objects ───────────────────────────────────────────────────────────────────────────────────

LARGEST: Final = 1_500_000  # bytes; etcd's limit for a request is 1.5 MiB
TOO_LARGE: Final = 4 << 20


async def big(folder: Path, count: int = 40) -> dict[str, Any]:
    """Objects of 1.5 MB: written, changed, listed, watched and reconciled without a byte lost."""
    async with world(folder) as made:
        client, hashes = made.client, dict[str, str]()
        page = await client.list_page(LAMPS, namespace=NAMESPACE)
        began = time.monotonic()
        for number in range(count):
            note = random.Random(number).randbytes(LARGEST // 2).hex()[: LARGEST - 700]
            got = await client.create(lamp(f"big-{number}", f"v{number}", note=note))
            hashes[f"big-{number}"] = hashlib.sha256(note.encode()).hexdigest()
            if got["spec"]["note"] != note:
                raise Violation(f"big-{number}: the answer is not what was sent")
        written = time.monotonic() - began
        refused = ""
        try:
            await client.create(lamp("too-big", "x", note="x" * TOO_LARGE))
        except ApiError as error:
            refused = f"{type(error).__name__} {error.code}"
        else:
            raise Violation(f"an object of {TOO_LARGE} bytes was accepted")

        async def has_converged() -> object:
            listed = await client.list(LAMPS, namespace=NAMESPACE, page_size=10)
            for each in listed:
                name = each["metadata"]["name"]
                if hashlib.sha256(each["spec"]["note"].encode()).hexdigest() != hashes[name]:
                    raise Violation(f"{name} is not what was written")
            late = [
                each for each in listed if (each.get("status") or {}).get("value") != each["spec"]["value"]
            ]
            return (len(listed) == count and not late) or f"{len(late)} of {len(listed)} Lamps are late"

        converged = await until("the operator reconciles large objects", has_converged, CONVERGES, every=1)
        added = await _watched(made, page.resource_version, count, hashes)
        memory = {"server_mb": megabytes(made.server), "operator_mb": megabytes(made.operator)}
        for name in hashes:
            await client.delete(LAMPS, name, namespace=NAMESPACE)
    return {
        "objects": count,
        "bytes_each": LARGEST,
        "written_s": round(written, 1),
        "until_converged_s": round(converged, 1),
        "watched": added,
        "refused": refused,
        **memory,
    }


async def _watched(made: World, version: str, count: int, hashes: dict[str, str]) -> int:
    """A watch from the beginning gives each, whole."""
    added = set[str]()
    async with asyncio.timeout(CONVERGES):
        async with made.client.watch(LAMPS, namespace=NAMESPACE, resource_version=version) as events:
            async for event in events:
                name = event.object["metadata"]["name"]
                if hashlib.sha256(event.object["spec"]["note"].encode()).hexdigest() != hashes[name]:
                    raise Violation(f"the event of {name} is not what was written")
                added.add(name)
                if len(added) == count:
                    break
    return len(added)


# ── What the tests have already, at length ──────────────────────────────────────────────────────────


async def crashes(folder: Path, count: int = 1000) -> dict[str, Any]:
    """The crash tests of the store and of the server at length, and the log torn at every byte."""
    tests = ["tests/server/storage", "tests/server/test_kill.py"]
    more = {"SETPOINT_CRASHES": str(count), "SETPOINT_TORN": "1"}
    return await _pytest(folder, tests, more)


async def etcd(folder: Path, _: int = 1) -> dict[str, Any]:
    """A real etcd restored from an older snapshot, under a cache that has seen more; needs ``make kube``."""
    return await _pytest(folder, ["tests/conformance/test_restored_etcd.py"], {})


async def _pytest(folder: Path, tests: list[str], more: dict[str, str]) -> dict[str, Any]:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", *tests, "--basetemp", str(folder / "pytest")),
        cwd=ROOT,
        env=os.environ | more,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Violation(said[-3000:])
    return {"tests": said.strip().rpartition("\n")[2], "seconds": round(time.monotonic() - began)}
