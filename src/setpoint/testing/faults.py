"""Makes the way to the API server bad on purpose, by rule or by hand, and counts what it did.

``Faults`` stands around a transport, so it knows what each request is about; ``proxy.py`` stands in the
network and knows only bytes.  Promises:

1. Without rules it changes nothing.  A rule that is removed is as if it had never been.
2. A rule strikes the requests that match it, from a given occurrence on, so often, or by a seeded chance; its
   ``count`` says how often it did, so that a test can show that its fault happened.
3. What was refused, dropped or stalled has not reached the server.  What lost its answer was carried out.
4. Watches that are open already are struck as well: held, doubled, cut.
5. Every request is noted in ``requests``, struck or not.

Rules are tried in the order in which they were made; the first that ends a request wins.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias, TypedDict, Unpack, cast

from setpoint.api.forms import Form, form_of
from setpoint.api.meta import Status, StatusDetails
from setpoint.api.model import Object, encode
from setpoint.api.wire import LineSplitter
from setpoint.client.auth import Credentials
from setpoint.client.config import Config
from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.transport import Request, Response, Transport, WebSocket, Whole
from setpoint.testing.asked import Asked, read_request

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


# --- rules -------------------------------------------------------------------------------------------------


class Where(TypedDict, total=False):
    """Which requests are meant: all, unless told.

    ``verb`` is Kubernetes' word, or "read" or "write" for all of a sort.  ``kind`` is a class, a form, or the
    plural in the path.  ``subresource=""`` means the object itself and none of its parts.
    """

    verb: str
    kind: type[Object] | Form[Any] | str
    subresource: str
    namespace: str
    name: str


class Match(Where, total=False):
    """Of those requests, the first ``skip`` pass, then ``times`` are struck, each with ``chance``."""

    skip: int
    times: int
    chance: float


@dataclass(frozen=True, slots=True)
class Refuse:
    code: int
    reason: str
    message: str
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    pass


@dataclass(frozen=True, slots=True)
class Stall:
    pass


@dataclass(frozen=True, slots=True)
class Delay:
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    instead: Refuse | None


@dataclass(frozen=True, slots=True)
class Hold:
    pass


@dataclass(frozen=True, slots=True)
class Double:
    pass


Action: TypeAlias = Refuse | Drop | Stall | Delay | LoseAnswer | Hold | Double


class Rule:
    """A fault in force.  ``remove`` it, or use it as a context manager that does."""

    def __init__(
        self, action: Action, match: Match, *, chance: Callable[[], float], forget: Callable[[Rule], None]
    ) -> None:
        self.action = action
        self.count = 0  # how often it struck
        self.removed = asyncio.Event()
        self._match = match
        self._place = _place(match["kind"]) if "kind" in match else None
        self._chance = chance
        self._forget = forget
        self._matched = 0

    def __repr__(self) -> str:
        return f"<Rule {self.action} for {dict(self._match) or 'everything'}: struck {self.count} times>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """End the fault; what it held goes on.  Removing twice is fine."""
        self.removed.set()
        self._forget(self)

    def strikes(self, asked: Asked) -> bool:
        """Whether this one is struck; it is counted if so."""
        if not self._means(asked):
            return False
        self._matched += 1
        is_its_turn = self._matched > self._match.get("skip", 0) and self.count < self._match.get(
            "times", self._matched
        )
        if is_its_turn and self._chance() < self._match.get("chance", 1.0):
            self.count += 1
            return True
        return False

    def _means(self, asked: Asked) -> bool:
        match = self._match
        return (
            ("verb" not in match or _is_verb(match["verb"], asked))
            and (self._place is None or _is_in(self._place, asked))
            and match.get("subresource", asked.subresource) == asked.subresource
            and match.get("namespace", asked.namespace) == asked.namespace
            and match.get("name", asked.name) == asked.name
        )


def _place(kind: type[Object] | Form[Any] | str) -> tuple[str | None, str]:
    """The group, where it is known, and the plural in the path."""
    if isinstance(kind, str):
        return None, kind
    form = form_of(kind)
    if form.resource is None:
        raise ValueError(f"a fault for {form.gvk}: say its plural, as it stands in the path")
    return form.resource.group, form.resource.plural


def _is_in(place: tuple[str | None, str], asked: Asked) -> bool:
    group, plural = place
    return plural == asked.plural and group in (None, asked.group)


def _is_verb(verb: str, asked: Asked) -> bool:
    if verb in {"read", "write"}:
        return asked.is_write == (verb == "write")
    return verb == asked.verb


# --- the transport -----------------------------------------------------------------------------------------


class Faults:
    """A transport around another one, which it disturbs::

        async with Faults.of(config) as faults, Client(config, transport=faults) as client:
            with faults.refuse(503, verb="write", times=3) as rule:
                ...
            assert rule.count == 3

    ``seed`` makes ``chance`` the same in every run.
    """

    def __init__(self, transport: Transport, *, seed: int = 0) -> None:
        self.requests: list[Asked] = []
        self._transport = transport
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._rules: list[Rule] = []
        self._streams: set[_Stream] = set()

    @classmethod
    def of(cls, config: Config, *, seed: int = 0) -> Faults:
        """Around the network, as the user that ``config`` says."""
        return cls(_Connected(config), seed=seed)

    def __repr__(self) -> str:
        return f"<Faults: {len(self._rules)} rules, {len(self.requests)} requests, {self.watches} watches>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Remove every rule, and close the connections that ``of`` opened."""
        self.clear()
        if isinstance(self._transport, _Connected):
            await self._transport.close()

    def clear(self) -> None:
        """Remove every rule."""
        for rule in list(self._rules):
            rule.remove()

    # Faults of requests.

    def refuse(
        self,
        code: int,
        *,
        reason: str | None = None,
        message: str = "refused by a fault",
        retry_after: int | None = None,
        **match: Unpack[Match],
    ) -> Rule:
        """Answer with an error status; the server is not asked."""
        said = _REASONS.get(code, "") if reason is None else reason
        return self._add(Refuse(code, said, message, retry_after), match)

    def drop(self, **match: Unpack[Match]) -> Rule:
        """Fail to connect: ConnectionFailed, and nothing was sent."""
        return self._add(Drop(), match)

    def stall(self, **match: Unpack[Match]) -> Rule:
        """Send nothing and answer nothing until the rule is removed, and then AnswerLost."""
        return self._add(Stall(), match)

    def delay(self, before: float = 0.0, after: float = 0.0, **match: Unpack[Match]) -> Rule:
        """Be slow: wait so many seconds before it is sent, or with the answer."""
        return self._add(Delay(before, after), match)

    def lose_answer(self, code: int | None = None, **match: Unpack[Match]) -> Rule:
        """Have the request carried out, then say AnswerLost, or answer with this error status instead."""
        instead = None if code is None else Refuse(code, _REASONS.get(code, ""), "gave up by a fault")
        return self._add(LoseAnswer(instead), match)

    # Faults of watches, those that are open too.

    def hold(self, **where: Unpack[Where]) -> Rule:
        """Bring nothing, not even bookmarks, until the rule is removed; then all that was held."""
        return self._add(Hold(), cast("Match", where))

    def double(self, **match: Unpack[Match]) -> Rule:
        """Bring events twice."""
        return self._add(Double(), match)

    def cut(self, code: int | None = None, **where: Unpack[Where]) -> int:
        """Break off the watches that are open now, or end them with an ERROR event; says how many."""
        meant = Rule(Drop(), cast("Match", where), chance=lambda: 0.0, forget=lambda _: None)
        struck = [stream for stream in self._streams if meant.strikes(stream.asked)]
        error = None if code is None else error_event(Refuse(code, _REASONS.get(code, ""), "cut by a fault"))
        for stream in struck:
            stream.cut(error)
        return len(struck)

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._streams)

    # What the rules do.

    async def __call__(self, request: Request) -> Response:
        asked = read_request(request)
        self.requests.append(asked)
        late, lost = 0.0, None
        for rule in self.striking(asked, Refuse, Drop, Stall, Delay, LoseAnswer):
            match rule.action:
                case Delay(before, after):
                    await asyncio.sleep(before)
                    late += after
                case Refuse() as refuse:
                    return Refused(refuse, asked)
                case Drop():
                    raise ConnectionFailed(str(asked), "dropped by a fault before it was sent")
                case Stall():
                    await rule.removed.wait()
                    raise AnswerLost(str(asked), "stalled by a fault")
                case LoseAnswer() as lose:
                    lost = lose
        response = await self._transport(request)
        if lost is not None:
            await _read_away(response)
            if lost.instead is None:
                raise AnswerLost(str(asked), "its answer was lost by a fault")
            return Refused(lost.instead, asked)
        if late:
            await asyncio.sleep(late)
        if asked.verb != "watch" or response.status != 200:
            return response
        stream = _Stream(response, asked, self)
        self._streams.add(stream)
        return stream

    def striking(self, asked: Asked, *actions: type[Action]) -> Iterator[Rule]:
        """The rules with one of these actions that strike this request, or this event of its watch."""
        for rule in list(self._rules):
            if isinstance(rule.action, actions) and rule.strikes(asked):
                yield rule

    def closed(self, stream: _Stream) -> None:
        """A watch has ended."""
        self._streams.discard(stream)

    def _add(self, action: Action, match: Match) -> Rule:
        rule = Rule(action, match, chance=self._random.random, forget=self._forget)
        self._rules.append(rule)
        return rule

    def _forget(self, rule: Rule) -> None:
        if rule in self._rules:
            self._rules.remove(rule)
        for stream in self._streams:
            stream.wake()


class _Stream:
    """A watch's answer, whose events pass the rules one by one."""

    websocket: WebSocket | None = None

    def __init__(self, response: Response, asked: Asked, faults: Faults) -> None:
        self.asked = asked
        self._response = response
        self._faults = faults
        self._chunks = response.chunks()
        self._splitter = LineSplitter()
        self._passed: deque[bytes] = deque()  # to be read next
        # Not awaited directly: to be interrupted there would lose what is just arriving.
        self._arriving: asyncio.Task[bytes | None] | None = None
        self._is_cut = self._is_over = False
        self._wake = asyncio.Event()

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self])

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._passed and not self._is_over:
            await self._advance()
        if self._passed:
            return self._passed.popleft()
        raise StopAsyncIteration

    async def close(self) -> None:
        self._faults.closed(self)
        if self._arriving is not None:
            self._arriving.cancel()
            await asyncio.gather(self._arriving, return_exceptions=True)
        await self._response.close()

    def wake(self) -> None:
        """Something changed that a reader may wait for."""
        self._wake.set()

    def cut(self, error: bytes | None) -> None:
        if error is not None:
            self._passed.append(error)
            self._is_over = True
        self._is_cut = True
        self.wake()

    async def _advance(self) -> None:
        """Take what arrives next through the rules."""
        arriving = self._arriving = self._arriving or self._next_chunk()
        while not self._is_cut and (not arriving.done() or self._is_held()):
            self._wake.clear()
            await self._wake.wait()
        if self._is_over:
            return
        if self._is_cut:
            raise AnswerLost(str(self.asked), "cut by a fault")
        self._arriving = None
        chunk = arriving.result()
        if chunk is None:
            self._passed.append(self._splitter.rest)
            self._is_over = True
            return
        for line in self._splitter.feed(chunk):
            is_doubled = any(self._faults.striking(self.asked, Double))
            self._passed.extend([line + b"\n"] * (2 if is_doubled else 1))

    def _next_chunk(self) -> asyncio.Task[bytes | None]:
        async def next_chunk() -> bytes | None:
            return await anext(self._chunks, None)

        arriving = asyncio.create_task(next_chunk(), name=f"read {self.asked}")
        arriving.add_done_callback(lambda _: self.wake())
        return arriving

    def _is_held(self) -> bool:
        return any(self._faults.striking(self.asked, Hold))


class Refused(Whole):
    """An answer that no server gave."""

    def __init__(self, refuse: Refuse, asked: Asked) -> None:
        headers = {"Content-Type": "application/json"}
        if refuse.retry_after is not None:
            headers["Retry-After"] = str(refuse.retry_after)
        super().__init__(refuse.code, headers, _status(refuse, asked))


def _status(refuse: Refuse, asked: Asked | None = None) -> bytes:
    """The body of a refusal, in Kubernetes' words."""
    details = None
    if asked is not None:
        details = StatusDetails(
            name=asked.name or None, group=asked.group or None, kind=asked.plural or None,
            retry_after_seconds=refuse.retry_after,
        )  # fmt: skip
    return encode(
        Status(
            status="Failure",
            code=refuse.code,
            reason=refuse.reason or None,
            message=refuse.message,
            details=details,
        )
    )


def error_event(refuse: Refuse) -> bytes:
    """The last line of a watch that ends with an error."""
    return b'{"type":"ERROR","object":' + _status(refuse) + b"}\n"


async def _read_away(response: Response) -> None:
    try:
        await response.read()
    finally:
        await response.close()


class _Connected:
    """The network, with the credentials that a client given a transport does not send."""

    def __init__(self, config: Config) -> None:
        self._who = Credentials(config)
        self._http = HttpTransport(
            Endpoint(
                server=config.server,
                ssl_context=self._who.ssl_context if config.is_tls else None,
                server_hostname=config.tls_server_name or None,
                proxy=config.proxy(),
            )
        )

    async def __call__(self, request: Request) -> Response:
        headers = {**request.headers, **await self._who.headers()}
        return await self._http(request._replace(headers=headers))

    async def close(self) -> None:
        await self._http.close()
