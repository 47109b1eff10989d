"""Asks a server what nobody thought of, for as long as it is told: no 500, no hang, no growth.

    python -m tests.fuzz.run --seconds 600 --seed 1

A round is a new server, some thousands of requests to it in memory, some hundreds of connections to its
socket, and a listing of everything there is.  What fails is shown with the round that shows it again
(``--seed S --round N``), and the run goes on; it ends with one line of JSON.  Memory is compared between
rounds, each of which has let go of all that it had.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import logging
import math
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path

from setpoint.net import listen
from setpoint.server.http.app import MAX_BODY
from setpoint.server.server import ApiServer
from tests.fuzz.chance import Chance
from tests.fuzz.targets import TENANT, Asked, connection, kubeconfigs, many, paths, pieces
from tests.server.http.asking import DEFINITIONS, MAPS, Asking, Got, config_map, until_served
from tests.server.test_fuzz import BARS, CORPUS, Logged
from tests.server.test_limits import BY_DESIGN, FOOS, JSON, definition, is_proper

LONGEST = 10.0  # seconds that any one request may take
_RBAC = "rbac.authorization.k8s.io"
_BINDINGS = f"/apis/{_RBAC}/v1/namespaces/default/rolebindings"
_TENANCY = {
    "metadata": {"name": "tenancy"},
    "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": TENANT}],
    "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "admin"},
}
BARS_AT = FOOS.replace("foos", "bars")


class Findings:
    """What was asked, what came back, and what should not have."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.slowest = (0.0, "")  # seconds of work, and of what
        self.found: dict[str, str] = {}  # by where it went wrong: once each

    def wrong(self, where: str, told: str) -> None:
        if where not in self.found:
            self.found[where] = told
            print(f"── {where}\n{told}", flush=True)  # noqa: T201


class Round:
    """One server and what is asked of it.  The same seed asks the same."""

    def __init__(self, seed: str, findings: Findings) -> None:
        self.chance = Chance(seed)
        self._seed = seed
        self._findings = findings
        self._logged = Logged()

    async def run(self, requests: int, connections: int, values: int, until: float = math.inf) -> None:
        """Ask so many; after ``until``, of the clock that never goes back, no further ones."""
        root = logging.getLogger()
        root.addHandler(self._logged)
        try:
            async with ApiServer(source=Chance(f"{self._seed} names")) as server:
                ask = Asking(server.transport())
                await self._fill(ask)
                self._logged.taken()
                for name, asked in many(self.chance, requests):
                    if time.monotonic() > until:
                        break
                    await self._ask(ask, name, asked)
                await self._connect(server, connections)
                await self._list(ask)
                for task in asyncio.all_tasks():
                    if "_respond" in repr(task.get_coro()):
                        self._findings.wrong("a task was left", repr(task))
        finally:
            root.removeHandler(self._logged)
        for _ in range(values):
            for check in (pieces, kubeconfigs, paths):
                self._findings.asked[check.__name__] += 1
                try:
                    check(self.chance)
                except Exception as error:  # noqa: BLE001 - whatever it is, it should not have been
                    self._findings.wrong(f"{check.__name__}: {_where(error)}", traceback.format_exc()[-3000:])

    async def _fill(self, ask: Asking) -> None:
        await ask.create(MAPS, config_map("a", k="v"))
        await ask.create(DEFINITIONS, definition("foos", "Foo"))
        await ask.create(DEFINITIONS, BARS)
        for path in (FOOS, BARS_AT):
            await until_served(ask, path)
        for path, kind in ((FOOS, "Foo"), (BARS_AT, "Bar")):
            made = {
                "apiVersion": "example.com/v1",
                "kind": kind,
                "metadata": {"name": "a"},
                "spec": {"a": "a"},
            }
            await ask.create(path, made)
        for each in CORPUS:
            await ask("POST", each.collection, each.obj)
        await ask.create(_BINDINGS, _TENANCY)

    async def _ask(self, ask: Asking, name: str, asked: Asked) -> Got | None:
        findings = self._findings
        findings.asked[name] += 1
        began = time.process_time()  # what a watch waits is no work
        got, told = None, ""
        try:
            async with asyncio.timeout(LONGEST):
                got = await ask(*asked)
        except TimeoutError:
            told = f"no answer in {LONGEST:g} s"
        except Exception:  # noqa: BLE001 - likewise
            told = traceback.format_exc()[-2000:]
        shown = f"{name}: {asked.method} {asked.target[:100]}, {len(asked.body or b'')} bytes"
        took = round(time.process_time() - began, 3)
        findings.slowest = max(findings.slowest, (took, shown))
        if took > LONGEST:  # a blocked event loop sees no timeout
            told += f"it took {took} s of work"
        logged = self._logged.taken()
        if got is not None:
            findings.statuses[str(got.status)] += 1
            if not _is_proper(got):
                told += f"{got.status} {got.body[:500]!r}"
            elif got.status == 500:
                findings.statuses["500 in kube-apiserver's own words"] += 1
        if logged or told:
            where = next((line for line in reversed(logged.splitlines()) if "  File" in line), "")
            where = where.strip() or told[:80]
            shown = f"{asked.method} {asked.target}\n{asked.headers}\n{asked.body!r}"
            findings.wrong(f"{name}: {where}", f"{self._seed}\n{shown}\n{told}\n{logged}")
        return got

    async def _connect(self, server: ApiServer, connections: int) -> None:
        app = server.app
        async with listen.serve(
            app, max_body=MAX_BODY, most_body=app.most_body, slowest=5, refuse=app.refuse, grace=0.1
        ) as address:
            for _ in range(connections):
                self._findings.asked["connections"] += 1
                sent = connection(self.chance, server.token)
                try:
                    async with asyncio.timeout(LONGEST):
                        said = await _converse(address.port, sent)
                except TimeoutError:
                    self._findings.wrong(f"no end in {LONGEST:g} s", f"{self._seed}\n{sent!r}")
                    continue
                heads = [line for line in said.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
                codes = [int(line.split(b" ", 2)[1]) for line in heads]
                self._findings.statuses.update(map(str, codes))
                logged = self._logged.taken()
                if logged or any(code >= 500 for code in codes):
                    self._findings.wrong(
                        f"connection: {logged[-200:]}", f"{self._seed}\n{sent!r}\n{said[-600:]!r}"
                    )

    async def _list(self, ask: Asking) -> None:
        """What was let in can be read in every form."""
        for each in [*(kind.collection for kind in CORPUS), FOOS, BARS_AT, DEFINITIONS]:
            for form in (
                "application/json",
                "application/yaml",
                "application/json;as=Table;v=v1;g=meta.k8s.io",
            ):
                got = await self._ask(ask, "list", Asked("GET", each, None, {"Accept": form}))
                if got is not None and got.status not in (200, 404, 405):
                    self._findings.wrong(
                        f"{each} cannot be listed", f"{self._seed}\n{form}\n{got.body[:500]!r}"
                    )


async def _converse(port: int, sent: bytes) -> bytes:
    """Send it all, say that this was all, and read whatever comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        with suppress(ConnectionError):
            writer.write(sent)
            writer.write_eof()
            return await reader.read()
        return b""
    finally:
        writer.transport.abort()


def _is_proper(got: Got) -> bool:
    """In whatever form it is."""
    if got.status == 500:
        return any(text in got.body.decode("utf-8", "replace") for text in BY_DESIGN)
    return not got.body or got.headers.get("Content-Type") != JSON or is_proper(got)  # HEAD has no body


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"


def resident() -> int:
    """Bytes of memory that this process has, once it has given back what it can."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--round", type=int, default=None, help="this one alone")
    asked = parser.parse_args()
    findings, memory, began, number = Findings(), list[int](), time.monotonic(), asked.round or 0
    while time.monotonic() - began < asked.seconds:
        asyncio.run(Round(f"{asked.seed}:{number}", findings).run(4_500, 300, 200, began + asked.seconds))
        memory.append(resident())
        number += 1
        if asked.round is not None:
            break
    grown = memory[-1] - memory[min(2, len(memory) - 1)]  # what is loaded late is there by the third
    told = {
        "seconds": round(time.monotonic() - began),
        "rounds": len(memory),
        "asked": dict(findings.asked),
        "total": findings.asked.total(),
        "statuses": dict(sorted(findings.statuses.items())),
        "slowest": findings.slowest,
        "resident_mb": [round(each / 2**20) for each in (memory[0], memory[-1])],
        "grown_mb_since_third_round": round(grown / 2**20, 1),
        "wrong": len(findings.found),
    }
    print(json.dumps(told))  # noqa: T201
    return bool(findings.found) or grown > 64 * 2**20


if __name__ == "__main__":
    sys.exit(main())
