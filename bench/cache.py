"""What it costs to fill a cache with 20,000 Pods, against reading the same bytes and throwing them away.

The Pods are those of ``bench.decode`` (6 KB each), sent over TLS by a server in another process: as a
streamed list (one chunk to an event, as kube-apiserver sends them), and as pages of 500.  Each contestant is
a fresh process; CPU and wall time begin when it connects and end when it has everything, and memory is what
it then holds more than before.  ``json`` parses each event to a dict and keeps it.

    python -m bench.cache
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench.decode import PAGE, PODS, pages, pod
from bench.measure import in_fresh_process, resident_bytes
from bench.stub import JSON, server_context
from setpoint.api.wire import INITIAL_EVENTS_END, LineSplitter
from setpoint.cache import Cache
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.kube.core.v1 import Pod
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.listen import Answer, serve
from setpoint.net.tls import Authority
from setpoint.net.transport import Request, Response

ROUNDS = 2
STREAM = "/api/v1/pods?watch=true&sendInitialEvents=true"


# ---- the server ------------------------------------------------------------------------------------


def events() -> list[bytes]:
    found = [f'{{"type":"ADDED","object":{pod(number)}}}\n'.encode() for number in range(PODS)]
    end = {"resourceVersion": "90000", "annotations": {INITIAL_EVENTS_END: "true"}}
    last = {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": end}}
    return [*found, json.dumps(last).encode() + b"\n"]


def listed() -> list[bytes]:
    """The pages, each with the token of the next."""
    whole = list(pages())
    return [
        page.replace(b'"metadata":{"resourceVersion":"9"}', _list_metadata(number, len(whole)), 1)
        for number, page in enumerate(whole, 1)
    ]


def _list_metadata(number: int, count: int) -> bytes:
    metadata = {"resourceVersion": "90000"} | ({"continue": str(number)} if number < count else {})
    return b'"metadata":' + json.dumps(metadata).encode()


async def stand() -> None:
    """Serve until standard input ends; where, and whom to trust, is the first line printed."""
    authority, stream, whole = Authority.create(), events(), listed()

    async def flow() -> AsyncIterator[bytes]:
        for event in stream:
            yield event
        await asyncio.Event().wait()

    async def app(request: Request) -> Answer:
        query = parse_qs(urlsplit(request.target).query)
        if "sendInitialEvents" in query:
            return Answer(200, JSON, flow())
        if "watch" in query:
            return Answer(200, JSON, _silence())
        return Answer(200, JSON, whole[int(query.get("continue", ["0"])[0])])

    async with serve(app, ssl_context=server_context(authority), grace=0.1) as address:
        told = {"server": str(address), "authority": authority.certificate_pem.decode()}
        print(json.dumps(told), flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def _silence() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


@contextmanager
def stub() -> Iterator[dict[str, str]]:
    command = [sys.executable, "-m", "bench.cache", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.stdin.close()


# ---- the contestants: each gives what it holds in the end, and a check -----------------------------


Contestant = Callable[[str, str], Coroutine[Any, Any, tuple[Any, int]]]


async def bytes_streamed(server: str, authority: str) -> tuple[Any, int]:
    async with _transport(server, authority) as transport:
        return None, len([None async for _ in _lines(await transport(Request("GET", STREAM)))])


async def json_streamed(server: str, authority: str) -> tuple[Any, int]:
    async with _transport(server, authority) as transport:
        held = [json.loads(line)["object"] async for line in _lines(await transport(Request("GET", STREAM)))]
        return held, len(held)


async def bytes_paged(server: str, authority: str) -> tuple[Any, int]:
    async with _transport(server, authority) as transport:
        for number in range(PODS // PAGE):
            answer = await transport(Request("GET", f"/api/v1/pods?limit={PAGE}&continue={number}"))
            assert len(await answer.read()) > PAGE
        return None, PODS


async def cache_streamed(server: str, authority: str) -> tuple[Any, int]:
    return await _cached(server, authority, stream_lists=True)


async def cache_paged(server: str, authority: str) -> tuple[Any, int]:
    return await _cached(server, authority, stream_lists=False)


async def cache_stripped(server: str, authority: str) -> tuple[Any, int]:
    return await _cached(server, authority, stream_lists=True, strip_managed_fields=True)


CONTESTANTS: dict[str, Contestant] = {
    each.__name__: each
    for each in (
        bytes_streamed,
        cache_streamed,
        cache_stripped,
        json_streamed,
        bytes_paged,
        cache_paged,
    )
}


def _transport(server: str, authority: str) -> HttpTransport:
    context = ssl.create_default_context(cadata=authority)
    return HttpTransport(Endpoint(server, ssl_context=lambda: context))


async def _lines(response: Response) -> AsyncIterator[bytes]:
    """The events up to the bookmark."""
    splitter = LineSplitter()
    async for chunk in response.chunks():
        for line in splitter.feed(chunk):
            if line.startswith(b'{"type": "BOOKMARK"'):
                await response.close()
                return
            yield line


async def _cached(
    server: str, authority: str, *, stream_lists: bool, strip_managed_fields: bool = False
) -> tuple[Any, int]:
    config = Config(server, token="a-token", certificate_authority_data=authority.encode())
    async with Client(config) as client, Cache(client, stream_lists=stream_lists) as cache:
        cache.declare(Pod, strip_managed_fields=strip_managed_fields)
        await cache.wait_synced()
        (stats,) = cache.stats()
        (informer,) = cache.holds(Pod.gvk)
        return informer.store, stats.objects


def compete(name: str, server: str, authority: str) -> None:
    gc.collect()
    before, cpu, wall = resident_bytes(), time.process_time(), time.perf_counter()
    held, count = asyncio.run(CONTESTANTS[name](server, authority))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert count == PODS, f"{name} has {count} of {PODS}"
    gc.collect()
    settled = resident_bytes() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    del held
    print(json.dumps({"cpu": cpu, "wall": wall, "settled": settled, "peak": peak}))


def main() -> None:
    results: dict[str, dict[str, float]] = {}
    with stub() as told:
        for _ in range(ROUNDS):
            for name in CONTESTANTS:
                run = in_fresh_process("-m", "bench.cache", name, told["server"], told["authority"])
                known = results.setdefault(name, run)
                results[name] = {what: min(known[what], run[what]) for what in run}
    streamed, paged = results["bytes_streamed"], results["bytes_paged"]
    print(
        json.dumps(
            {
                "bench": "cache",
                "pods": PODS,
                "bytes_per_pod": len(pod(0)),
                "streamed_cpu_times_bytes": round(results["cache_streamed"]["cpu"] / streamed["cpu"], 2),
                "streamed_cpu_times_bytes_at_most": 2.5,
                "paged_cpu_times_bytes": round(results["cache_paged"]["cpu"] / paged["cpu"], 2),
                "json_cpu_times_bytes": round(results["json_streamed"]["cpu"] / streamed["cpu"], 2),
                "held_bytes_per_raw_byte": round(
                    results["cache_streamed"]["settled"] / PODS / len(pod(0)), 2
                ),
                "held_bytes_per_raw_byte_at_most": 1.25,
                "contestants": {
                    name: {
                        "cpu_seconds": round(run["cpu"], 2),
                        "wall_seconds": round(run["wall"], 2),
                        "bytes_per_pod": round(run["settled"] / PODS),
                        "peak_megabytes": round(run["peak"] / 2**20),
                    }
                    for name, run in results.items()
                },
            }
        )
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            asyncio.run(stand())
        case [name, server, authority]:
            compete(name, server, authority)
        case _:
            main()
