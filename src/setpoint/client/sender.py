"""Sends a call: says who we are, waits and tries again where that is right, turns refusals into errors.

Between the verbs (``client.py``, ``listing.py``, ``watching.py``), which know objects and no connections, and
the transport, which knows connections and no Kubernetes.  Every call leaves here as an answer with a good
status, or as an error of ``setpoint.errors`` that begins with what was being done.

Which failures are tried again is decided in ``retry.py``; when credentials are read anew, in ``auth.py``.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import random
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from setpoint.api.requests import Call
from setpoint.api.status import refusal
from setpoint.client.retry import SAFE_TO_REPEAT, wait_before_retry
from setpoint.clock import Deadline
from setpoint.errors import (
    ApiError,
    DeadlineExceeded,
    ServerError,
    SetpointError,
    TransportError,
    Unauthorized,
)
from setpoint.net.transport import Request, Response, Transport

Guard: TypeAlias = Callable[[Call], None]  # may raise: then the call is not sent, or not sent again

warnings_log = logging.getLogger("setpoint.warnings")

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_REMEMBERED_WARNINGS = 1_000


class Credentials(Protocol):
    """Who we are: headers that say so, and a way to get new ones."""

    async def headers(self) -> Mapping[str, str]: ...

    async def refresh(self, used: Mapping[str, str]) -> bool:
        """After a 401 to these headers: True if there are others by now, so that asking again makes sense."""


class Nobody:
    """No credentials."""

    async def headers(self) -> Mapping[str, str]:
        return {}

    async def refresh(self, used: Mapping[str, str]) -> bool:  # noqa: ARG002 - the protocol's
        return False


class Observer(Protocol):
    """Sees every write before it is sent, and then exactly one of the three things that may come of it."""

    def before(self, call: Call) -> None:
        """May raise: then nothing is sent."""

    def answered(self, call: Call, answer: Answer) -> None:
        """It happened."""

    def refused(self, call: Call, error: ApiError) -> None:
        """It did not happen."""

    def unknown(self, call: Call) -> None:
        """No answer came, or the server gave up half-way: it may have happened, or may yet."""


class Answer(NamedTuple):
    """A whole answer with a good status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Sender:
    """One server, as one user."""

    def __init__(
        self,
        transport: Transport,
        credentials: Credentials,
        headers: Mapping[str, str],
        timeout: float,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self._transport = transport
        self._credentials = credentials
        self._headers = dict(headers)
        self._timeout = timeout
        self._on_warning = on_warning or _log_warning
        self._warned: dict[str, None] = {}
        self._observer: Observer | None = None
        self._guards: tuple[Guard, ...] = ()

    def through(self, wrap: Callable[[Transport], Transport]) -> Sender:
        """The same server and user, by way of what is put around the transport."""
        twin = copy.copy(self)
        twin._transport = wrap(self._transport)  # noqa: SLF001 - a copy of ourselves
        return twin

    def guarded_by(self, guard: Guard) -> Sender:
        """The same server and user; the guard is asked before every try of a write that goes this way."""
        twin = copy.copy(self)
        twin._guards = (*self._guards, guard)  # noqa: SLF001 - a copy of ourselves
        return twin

    def observed_by(self, observer: Observer) -> Sender:
        """The same server and user, with an observer of the writes that go this way."""
        twin = copy.copy(self)
        twin._observer = observer  # noqa: SLF001 - a copy of ourselves
        return twin

    async def send(self, call: Call, timeout: float | None = None) -> Answer:
        """Send the call and read the whole answer."""
        if self._observer is None or not call.is_write:
            return _answer(*await self._in_time(call, timeout))
        self._ask_guards(call)
        self._observer.before(call)
        try:
            answer = _answer(*await self._in_time(call, timeout))
        except ApiError as error:
            if isinstance(error, ServerError):
                self._observer.unknown(call)
            else:
                self._observer.refused(call, error)
            raise
        except BaseException:  # cancelled, too: the request may be on its way
            self._observer.unknown(call)
            raise
        self._observer.answered(call, answer)
        return answer

    async def open(self, call: Call, timeout: float | None = None) -> Response:
        """Send the call and leave the body to be read as it arrives.  The deadline covers the opening."""
        response, _ = await self._in_time(call, timeout, whole=False)
        return response

    async def _in_time(
        self, call: Call, timeout: float | None, *, whole: bool = True
    ) -> tuple[Response, bytes]:
        seconds = self._timeout if timeout is None else timeout
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        last: SetpointError | None = None
        who: Mapping[str, str] | None = None
        tries, refreshed = 0, False
        try:
            with Deadline(loop, deadline):
                while True:
                    tries += 1
                    who = await self._credentials.headers()
                    self._ask_guards(call)  # at the last moment, and again before each further try
                    try:
                        return await self._exchange(call, who, whole=whole)
                    except ApiError as error:
                        last = error
                    except TransportError as error:
                        last = error.during(call.doing)
                    if (
                        isinstance(last, Unauthorized)
                        and not refreshed
                        and await self._credentials.refresh(who)
                    ):
                        refreshed = True
                        continue
                    wait = wait_before_retry(
                        last,
                        tries=tries,
                        safe=_is_safe(call),
                        has_body=call.body is not None,
                        jitter=random.random,
                    )
                    if wait is None or loop.time() + wait >= deadline:
                        raise last
                    await asyncio.sleep(wait)
        except TimeoutError:
            if who is None:
                raise DeadlineExceeded(
                    call.doing,
                    f"no credentials within {seconds:g} s, so nothing was sent",
                    advice="run this context's credential plugin by hand to see what it waits for",
                ) from None
            before = f"; before that: {last.message}" if last else ""
            raise DeadlineExceeded(call.doing, f"no answer within {seconds:g} s{before}") from last

    def _ask_guards(self, call: Call) -> None:
        if self._guards and (
            call.is_write or call.upgrade
        ):  # a command in a pod is a GET that changes things
            for guard in self._guards:
                guard(call)

    async def _exchange(self, call: Call, who: Mapping[str, str], *, whole: bool) -> tuple[Response, bytes]:
        """One try: a good answer, and its body if the whole of it is wanted."""
        headers = {"Accept": call.accept, **self._headers, **who}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        check = partial(self._ask_guards, call) if self._guards and call.is_write else None
        response = await self._transport(
            Request(call.method, call.target, headers, call.body, call.upgrade, check)
        )
        if "Warning" in response.headers:
            self._warn_once(response.headers["Warning"])
        is_good = response.status < 300
        if is_good and not whole:
            return response, b""
        try:
            body = await response.read()
        finally:
            await response.close()
        if not is_good:
            raise _refused(call, response, body)
        return response, body

    def _warn_once(self, header: str) -> None:
        """Tell of a server's warnings, each once.  The oldest are forgotten, so that memory stays bounded."""
        for quoted in _WARNING.findall(header):
            text = re.sub(r"\\(.)", r"\1", quoted)
            if text not in self._warned:
                self._warned[text] = None
                if len(self._warned) > _REMEMBERED_WARNINGS:
                    del self._warned[next(iter(self._warned))]
                self._on_warning(text)


def _log_warning(text: str) -> None:
    warnings_log.warning("%s", text)


def _answer(response: Response, body: bytes) -> Answer:
    return Answer(response.status, response.headers, body)


def _refused(call: Call, response: Response, body: bytes) -> SetpointError:
    if response.status < 400:
        where = response.headers.get("Location", "elsewhere")
        return ApiError(
            call.doing, f"the server redirects to {where}, which is not followed", code=response.status
        )
    return refusal(
        call.doing,
        response.status,
        body,
        retry_after=response.headers.get("Retry-After"),
        secretive=call.is_secretive,
    )


def _is_safe(call: Call) -> bool:
    return call.verb in SAFE_TO_REPEAT or "dryRun=All" in call.target
