"""Answers those who ask from outside how this process is: /healthz, /readyz, /metrics.

1. They are answered in a thread of its own, so that a stuck event loop is told of and not suffered: when the
   loop has not turned for ``REPORT_AFTER`` seconds, the log says where it is blocked (``blocked_loop.py``);
   after ``STUCK_AFTER`` seconds /healthz fails.
2. /readyz fails while anything is not as it should be, and names it; ``?verbose`` also names what is well.
   Each check can be asked for alone (/readyz/NAME) or left out (``?exclude=NAME``), as in Kubernetes.
3. Checks and metrics are read in the event loop whose state they are about, never beside it.
4. Whoever asks gets an answer in bounded time, from a bounded number of connections.
5. Secured, metrics are served over TLS alone (``serving.py``), and to those alone whom the API server lets
   get ``/metrics`` (``visitors.py``).  Open to more than this machine and not secured, the log says so.

What the checks are is for those who add them (``manager.py``); what the metrics are is in ``metrics.py``.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import parse_qs, urlsplit

from setpoint.errors import ConfigError
from setpoint.manager.blocked_loop import BlockedLoop
from setpoint.manager.lifecycle import Group
from setpoint.manager.visitors import Visitors
from setpoint.metrics import Metrics
from setpoint.net.listen import Address, Answer, serve
from setpoint.net.transport import Request

T = TypeVar("T")
Check: TypeAlias = Callable[[], str | None]  # what is wrong, in a few words; None: nothing

REPORT_AFTER = 1.0
STUCK_AFTER = 10.0
LOOP_NAME = "event-loop"
_CHECK_TIMEOUT = 0.8  # a kubelet waits for a second
_METRICS_TIMEOUT = 8.0  # a Prometheus waits for ten
_STOP_TIMEOUT = 5.0
_MOST_CONNECTIONS = 64
_LONGEST_CONNECTION = 90.0
_SLOWEST = 10.0  # seconds that a request may take to come, and TLS to be agreed on
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})
_TEXT = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}

log = logging.getLogger("setpoint.probes")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of some checks; ``failed`` by name, with what is wrong."""

    passed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    def text(self, word: str, *, verbose: bool) -> str:
        """As Kubernetes words it."""
        if not self.failed and not verbose:
            return "ok"
        lines = [f"[+]{name} ok" for name in self.passed]
        lines += [f"[-]{name} failed: {why}" for name, why in self.failed.items()]
        return "\n".join([*lines, f"{word} check {'failed' if self.failed else 'passed'}", ""])


def judge(checks: Mapping[str, Check]) -> Verdict:
    """Make the checks; one that raises has failed."""
    passed, failed = [], {}
    for name, check in checks.items():
        try:
            wrong = check()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is wrong
            wrong = f"{type(error).__name__}: {error}"
        if wrong is None:
            passed.append(name)
        else:
            failed[name] = " ".join(wrong.split())
    return Verdict(tuple(passed), failed)


def parse_address(text: str) -> tuple[str, int]:
    """``host:port``; ``:8081`` is every interface, and ``8081`` this machine alone."""
    host, colon, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{text!r} is no address: write host:port, or :port for every interface")
    if not colon:
        return "127.0.0.1", int(port)
    return host.removeprefix("[").removesuffix("]"), int(port)


class Probes:
    """The servers that answer, and the heartbeat that they watch."""

    group = Group.SERVERS
    name = "probes"

    def __init__(
        self,
        metrics: Metrics,
        *,
        health_address: str = "",
        metrics_address: str = "",
        visitors: Visitors | None = None,
        certificate: str | Path | None = None,
        report_after: float = REPORT_AFTER,
        stuck_after: float = STUCK_AFTER,
    ) -> None:
        """With ``visitors`` metrics are secured; ``certificate`` is a folder with tls.crt and tls.key."""
        self.health: dict[str, Check] = {}
        self.ready: dict[str, Check] = {}
        self.health_at: Address | None = None  # where they listen, once they do
        self.metrics_at: Address | None = None
        self._wanted = {
            word: parse_address(text)
            for word, text in (("health", health_address), ("metrics", metrics_address))
            if text
        }
        if visitors is not None and self._wanted.get("health") == self._wanted.get("metrics", ""):
            raise ValueError(
                f"{metrics_address!r} is the address of health too, and a kubelet shows no token: "
                "give secured metrics another one"
            )
        if certificate is not None and visitors is None:
            raise ValueError("a certificate is for secured metrics alone")
        self._visitors = visitors
        self._certificate = None if certificate is None else Path(certificate)
        self._metrics = metrics
        self._stuck_after = stuck_after
        self._report_after = min(report_after, stuck_after)
        self._beat_every = self._report_after / 4
        self._beat_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0
        self._listening = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Probes at {self.health_at or 'no address'}, metrics at {self.metrics_at or 'no address'}>"

    @property
    def is_wanted(self) -> bool:
        return bool(self._wanted)

    async def wait_ready(self) -> None:
        await self._listening.wait()

    async def run(self) -> None:
        """Answer until cancelled."""
        self._loop, self._thread_id = asyncio.get_running_loop(), threading.get_ident()
        self._beat()
        began: asyncio.Future[_Running] = self._loop.create_future()
        ended: asyncio.Future[None] = self._loop.create_future()
        thread = threading.Thread(
            target=self._run_thread, args=(self._loop, began, ended), name="setpoint-probes", daemon=True
        )
        thread.start()
        try:
            await asyncio.shield(began)
            self._listening.set()
            for what, at in (("health", self.health_at), ("metrics", self.metrics_at)):
                if at is not None:
                    log.info("%s at %s", what, at)
            if (at := self.metrics_at) and self._visitors is None and at.host not in _HERE:
                log.warning(
                    "metrics at %s are open to everybody who can reach it; secured (--metrics-secure), they "
                    "are for those whom the API server lets get /metrics",
                    at,
                )
            while True:
                self._beat()
                await asyncio.sleep(self._beat_every)
        finally:
            began.add_done_callback(_stop)
            with suppress(TimeoutError):
                await asyncio.wait_for(ended, _STOP_TIMEOUT)
                thread.join(_STOP_TIMEOUT)  # it said its last word

    def _beat(self) -> None:
        self._beat_at = time.monotonic()

    # From here on, in the thread.

    def _run_thread(
        self,
        main: asyncio.AbstractEventLoop,
        began: asyncio.Future[_Running],
        ended: asyncio.Future[None],
    ) -> None:
        def tell(future: asyncio.Future[T], result: T | BaseException) -> None:
            def told() -> None:
                if not future.done():
                    if isinstance(result, BaseException):
                        future.set_exception(result)
                    else:
                        future.set_result(result)

            with suppress(RuntimeError):  # that loop is closed: nobody waits
                main.call_soon_threadsafe(told)

        try:
            asyncio.run(self._serve(lambda running: tell(began, running)))
        except Exception as error:  # noqa: BLE001 - told where it is awaited
            tell(began, error)
        finally:
            tell(ended, None)

    async def _serve(self, tell: Callable[[_Running], None]) -> None:
        routes: dict[tuple[str, int], set[str]] = {}
        for word, place in self._wanted.items():
            routes.setdefault(place, set()).add(word)
        stop = asyncio.Event()
        async with AsyncExitStack() as servers:
            for place, words in routes.items():
                address = await servers.enter_async_context(self._listen(place, words))
                self.health_at = address if "health" in words else self.health_at
                self.metrics_at = address if "metrics" in words else self.metrics_at
            tell(_Running(asyncio.get_running_loop(), stop))
            watching = asyncio.create_task(self._watch())
            await stop.wait()
            watching.cancel()

    @asynccontextmanager
    async def _listen(self, place: tuple[str, int], words: set[str]) -> AsyncIterator[Address]:
        host, port = place
        is_secured = words == {"metrics"} and self._visitors is not None

        async def app(request: Request) -> Answer:
            return await self._answer(request, words)

        servers = AsyncExitStack()
        try:
            address = await servers.enter_async_context(
                serve(
                    app,
                    host=host,
                    port=port,
                    ssl_context=self._tls() if is_secured else None,
                    slowest=_SLOWEST,
                    grace=1.0,
                    max_body=0,
                    most_connections=_MOST_CONNECTIONS,
                    longest_connection=_LONGEST_CONNECTION,
                )
            )
        except OSError as error:
            raise ConfigError(
                f"serve {' and '.join(sorted(words))} on {host}:{port}",
                error.strerror or str(error),
                advice="choose another address",
            ) from error
        async with servers:
            yield address

    def _tls(self) -> Callable[[], ssl.SSLContext]:
        from setpoint.manager.serving import Certificate  # noqa: PLC0415 - many need none

        return Certificate(self._certificate)

    async def _answer(self, request: Request, words: set[str]) -> Answer:
        url = urlsplit(request.target)
        part, _, name = url.path.strip("/").partition("/")
        if request.method not in {"GET", "HEAD"}:
            return _text(405, "GET it\n")
        if part == "metrics" and not name and "metrics" in words:
            if self._visitors is not None and (refused := await self._refusal(self._visitors, request)):
                return refused
            return await self._expose()
        if part in {"healthz", "readyz"} and "health" in words:
            return await self._probe(part, name, parse_qs(url.query, keep_blank_values=True))
        return _text(404, "not found\n")

    async def _refusal(self, visitors: Visitors, request: Request) -> Answer | None:
        """What is answered to who may not get /metrics."""
        shown = request.headers.get("Authorization", "")
        try:
            said = await self._in_main_loop(lambda: visitors.judge(shown, "/metrics"), _METRICS_TIMEOUT)
        except TimeoutError:
            return _text(503, "the API server was not asked in time who you are\n")
        if said.is_yes:
            return None
        answer = _text(said.code, f"{said.text}\n")
        return (
            Answer(401, {**_TEXT, "WWW-Authenticate": "Bearer"}, answer.body) if said.code == 401 else answer
        )

    async def _expose(self) -> Answer:
        async def exposition() -> bytes:
            return self._metrics.exposition()

        try:
            body = await self._in_main_loop(exposition, _METRICS_TIMEOUT)
        except TimeoutError:
            return _text(503, f"{self._stuck() or 'the event loop is busy'}\n")
        return Answer(200, {"Content-Type": Metrics.content_type}, body)

    async def _probe(self, part: str, name: str, query: Mapping[str, list[str]]) -> Answer:
        checks = self.health if part == "healthz" else self.ready
        wanted = {each: check for each, check in checks.items() if name in ("", each)}
        for excluded in query.get("exclude", ()):
            wanted.pop(excluded, None)
        asks_loop = (
            part == "healthz" and name in ("", LOOP_NAME) and LOOP_NAME not in query.get("exclude", ())
        )
        if name and not wanted and not asks_loop:
            return _text(404, f"{part} has no check {name}\n")
        verdict = await self._judge(wanted, is_liveness=part == "healthz")
        if asks_loop:
            stuck = self._stuck()
            verdict = Verdict(
                verdict.passed if stuck else (LOOP_NAME, *verdict.passed),
                {LOOP_NAME: stuck, **verdict.failed} if stuck else verdict.failed,
            )
        text = verdict.text(part, verbose="verbose" in query)
        return _text(500 if verdict.failed else 200, text)

    async def _judge(self, checks: Mapping[str, Check], *, is_liveness: bool) -> Verdict:
        async def judged() -> Verdict:
            return judge(checks)

        try:
            return await self._in_main_loop(judged, _CHECK_TIMEOUT)
        except TimeoutError:
            # A loop that is busy for a second is no reason to kill a process, but it is not at work either.
            return Verdict() if is_liveness else Verdict((), dict.fromkeys(checks, "the event loop is busy"))

    async def _in_main_loop(self, ask: Callable[[], Awaitable[T]], timeout: float) -> T:
        async def asked() -> T:
            return await ask()

        if self._loop is None:
            raise AssertionError("the thread runs only while the loop does")
        answer = asyncio.run_coroutine_threadsafe(asked(), self._loop)
        return await asyncio.wait_for(asyncio.wrap_future(answer), timeout)

    def _stuck(self) -> str:
        """For how long the loop has been stuck; "" if it is not."""
        seconds = time.monotonic() - self._beat_at
        return f"the event loop has been stuck for {seconds:.1f} s" if seconds > self._stuck_after else ""

    async def _watch(self) -> None:
        """Say in the log where the loop is blocked."""
        blocked = BlockedLoop(self._report_after, self._stuck_after)
        while True:
            await asyncio.sleep(self._beat_every)
            line = blocked.look(time.monotonic() - self._beat_at, self._stack)
            if line is not None:
                log.log(line.level, "%s", line.text)

    def _stack(self) -> traceback.StackSummary:
        """What the thread of the loop does."""
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - its documented name
        return traceback.extract_stack(frame) if frame is not None else traceback.StackSummary()


@dataclass(frozen=True, slots=True)
class _Running:
    """The thread's loop, and what ends it."""

    loop: asyncio.AbstractEventLoop
    stopped: asyncio.Event


def _stop(began: asyncio.Future[_Running]) -> None:
    if began.exception() is None:
        running = began.result()
        with suppress(RuntimeError):  # it has ended
            running.loop.call_soon_threadsafe(running.stopped.set)


def _text(status: int, text: str) -> Answer:
    return Answer(status, _TEXT, text.encode())
