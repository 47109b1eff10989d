"""Calls webhooks over TLS: where one is, whom it must show itself to be, and what went wrong in Go's words.

A ``Caller`` belongs to one server.  A webhook is named by a URL, or by a Service, whose address is looked up
among those that the server was told (``services``: "namespace/name" or "namespace/name:port" → "host:port");
there is no network of pods to find it in.  Connections are kept per address and authority, to those webhooks
that were asked last.

Promises: a call ends by its deadline, and no other call ends it; nothing but TLS is spoken; the HTTP library
is loaded with the first call.  Used for admission and for the conversion of custom kinds.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from setpoint.errors import AnswerLost, BadAnswer, ConnectionFailed, TransportError
from setpoint.net.transport import Request
from setpoint.net.trust import ssl_context
from setpoint.server.golang import quoted
from setpoint.server.registry.bodies import HEADER, go_kind, read_json, read_yaml
from setpoint.server.registry.doubled import plain

if TYPE_CHECKING:
    from setpoint.net.http import HttpTransport

_MOST_BYTES: Final = 3 * 2**20  # of an answer
_MOST_TOLD: Final = 2048  # bytes of an answer that is none, as client-go has it
_MOST_YAML: Final = 2**16  # bytes of an answer that is no JSON: YAML is read slowly
_KEPT: Final = 32  # connections to so many webhooks, while nobody asks more of them at once
_ADMISSION_AGENT: Final = "kube-apiserver-admission"
_ANSWERS: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: (
        "the server was unable to return a response in the time allotted, but may still be processing "
        "the request"
    ),
}


class CallError(Exception):
    """A webhook could not be asked, or gave no answer; the text is Go's, and may quote what it did answer.

    ``brief`` quotes nothing: an answer may hold what is no log's to keep.
    """

    def __init__(self, told: str, brief: str = "") -> None:
        super().__init__(told)
        self.brief = brief or told


class NoClient(CallError):
    """What is configured of a webhook does not do to ask it."""


class Target(NamedTuple):
    """Where a webhook is."""

    url: str  # as errors name it, without the query
    address: str  # host:port; "" for a Service that nobody told where it is
    host: str  # whom its certificate must be for
    path: str
    authority: str  # base64, as configured
    unresolved: str = ""  # what is said of a Service that is not known


@dataclass(slots=True)
class _Line:
    """The connections to one webhook, and how many calls are on them."""

    transport: HttpTransport
    calls: int = 0


class Caller:
    """Asks webhooks; ``close`` ends its connections."""

    def __init__(self, services: Mapping[str, str] | None = None) -> None:
        self._services = dict(services or {})
        self._lines: dict[tuple[str, str, str], _Line] = {}  # last asked last

    def __repr__(self) -> str:
        return f"<Caller with {len(self._lines)} webhooks>"

    async def close(self) -> None:
        kept, self._lines = self._lines, {}
        for line in kept.values():
            await line.transport.close()

    def target(self, client: Mapping[str, Any]) -> Target:
        """From a ``clientConfig``."""
        authority = client.get("caBundle") or ""
        if service := client.get("service"):
            name, namespace = service["name"], service["namespace"]
            port, path = service.get("port") or 443, service.get("path") or ""
            host = f"{name}.{namespace}.svc"
            known = self._services
            address = known.get(f"{namespace}/{name}:{port}") or known.get(f"{namespace}/{name}") or ""
            path = f"/{path.lstrip('/')}"
            told = f"service {quoted(name)} not found"
            return Target(f"https://{host}:{port}{path}", address, host, path, authority, told)
        url = urlsplit(client.get("url") or "")
        path = f"/{url.path.lstrip('/')}"
        host = url.hostname or ""
        where = f"[{host}]" if ":" in host else host
        return Target(f"https://{url.netloc}{path}", f"{where}:{url.port or 443}", host, path, authority)

    async def call(
        self, target: Target, body: bytes, seconds: int, *, agent: str = _ADMISSION_AGENT
    ) -> bytes:
        """The body of the answer.  Raises ``CallError``."""
        query = f"?timeout={seconds}s"
        posting = f"Post {quoted(target.url + query)}: "
        if not target.address:
            raise CallError(posting + target.unresolved)
        request = Request(
            "POST",
            target.path + query,
            {
                "Host": urlsplit(target.url).netloc,
                "User-Agent": agent,
                "Accept": "application/json, */*",
                "Content-Type": "application/json",
            },
            body,
        )
        try:
            async with self._line(target) as transport, asyncio.timeout(seconds):
                response = await transport(request)
                answer = await response.read()
        except TimeoutError:
            raise CallError(f"{posting}context deadline exceeded") from None
        except (ssl.SSLError, ValueError):
            told = "unable to load root certificates: unable to parse bytes as PEM block"
            raise NoClient(told) from None
        except TransportError as error:
            raise CallError(posting + _told(error, target)) from None
        if not 200 <= response.status <= 206:
            told = _refused(response.status, response.headers.get("Content-Type", ""), answer)
            raise CallError(told, f"it answered with status {response.status}")
        if not answer:
            kind = response.headers.get("Content-Type", "application/json")
            told = f"0-length response with status code: {response.status} and content type: {kind}"
            raise CallError(told)
        return answer

    @asynccontextmanager
    async def _line(self, target: Target) -> AsyncIterator[HttpTransport]:
        """Connections to a webhook, which are not closed under a call."""
        key = target.address, target.host, target.authority
        line = self._lines.pop(key, None) or _Line(_transport(target))
        self._lines[key] = line
        line.calls += 1
        try:
            yield line.transport
        finally:
            line.calls -= 1
            await self._forget_oldest()

    async def _forget_oldest(self) -> None:
        """Let go of those that were not asked for the longest, of which nobody is asked now."""
        while len(self._lines) > _KEPT:
            oldest = next((key for key, line in self._lines.items() if not line.calls), None)
            if oldest is None:
                return  # the next of them to end comes here, too
            await self._lines.pop(oldest).transport.close()


def _transport(target: Target) -> HttpTransport:
    from setpoint.net.http import Endpoint, HttpTransport  # noqa: PLC0415 - only where there are webhooks

    # As Go has it, the bundle may be the webhook's own certificate: envtest gives that.
    context = ssl_context(ca=base64.b64decode(target.authority) if target.authority else None)
    return HttpTransport(
        Endpoint(
            f"https://{target.address}",
            ssl_context=lambda: context,
            server_hostname=target.host,
            max_body=_MOST_BYTES,
        )
    )


def _told(error: TransportError, target: Target) -> str:
    """A failed exchange, as Go tells it."""
    cause = error.__cause__
    match error, cause:
        case ConnectionFailed(), ssl.SSLCertVerificationError():
            return f"tls: failed to verify certificate: x509: {_not_trusted(cause, target)}"
        case ConnectionFailed(), OSError(errno=errno.ECONNREFUSED):
            return f"dial tcp {target.address}: connect: connection refused"
        case ConnectionFailed(), OSError(strerror=str()) if cause.errno:
            return f"dial tcp {target.address}: {_system(cause)}"
        case AnswerLost(), _:
            return "EOF"
        case BadAnswer(), _:
            return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
    return error.message


def _system(error: OSError) -> str:
    if error.errno is not None and error.errno < 0:  # of the resolver
        return f"lookup failed: {error.strerror}"
    return f"connect: {(error.strerror or '').lower()}"


def _not_trusted(error: ssl.SSLCertVerificationError, target: Target) -> str:
    if error.verify_code in (62, 64):
        is_address = error.verify_code == 64
        if is_address:
            return f"cannot validate certificate for {target.host} because it doesn't contain any IP SANs"
        return f"certificate is not valid for any names, but wanted to match {target.host}"
    if error.verify_code == 10:
        return "certificate has expired or is not yet valid"
    return "certificate signed by unknown authority"


def _refused(status: int, content_type: str, body: bytes) -> str:
    """What client-go says of an answer that is none of those it wants."""
    is_text = not content_type or content_type.partition(";")[0].strip().startswith("text/")
    said = body[:_MOST_TOLD].decode("utf-8", "replace").strip() if is_text else "unknown"
    if not is_text and (told := _status(body)):
        return told
    if status in _ANSWERS:
        return _ANSWERS[status]
    if status in (403, 406, 415):
        return said
    if status >= 500:
        return f"an error on the server ({quoted(said)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _status(body: bytes) -> str:
    """The message of a Status, where the body is one."""
    try:
        found = plain(read_json(body))[0]
    except ValueError:
        return ""
    is_one = isinstance(found, dict) and (found.get("kind"), found.get("apiVersion")) == ("Status", "v1")
    return str(found.get("message") or "") if is_one and found.get("status") != "Success" else ""


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────


class Shape(NamedTuple):
    """What a value must be, as Go reads it."""

    kinds: tuple[type, ...]  # of JSON
    go: str  # its type
    fields: Mapping[str, Shape] = MappingProxyType({})
    each: Shape | None = None  # of every item


TEXT: Final = Shape((str,), "string")
_INT32: Final = Shape((int,), "int32")
CAUSE: Final = Shape(
    (dict,),
    "v1.StatusCause",
    {"reason": Shape((str,), "v1.CauseType"), "message": TEXT, "field": TEXT},
)
DETAILS: Final = Shape(
    (dict,),
    "v1.StatusDetails",
    {
        **dict.fromkeys(("name", "group", "kind"), TEXT),
        "uid": Shape((str,), "types.UID"),
        "causes": Shape((list,), "[]v1.StatusCause", each=CAUSE),
        "retryAfterSeconds": _INT32,
    },
)
LIST_META: Final = Shape(
    (dict,),
    "v1.ListMeta",
    {
        **dict.fromkeys(("selfLink", "resourceVersion", "continue"), TEXT),
        "remainingItemCount": Shape((int,), "int64"),
    },
)
STATUS: Final = Shape(
    (dict,),
    "v1.Status",
    {
        **dict.fromkeys(("kind", "apiVersion", "status", "message"), TEXT),
        "metadata": LIST_META,
        "reason": Shape((str,), "v1.StatusReason"),
        "details": DETAILS,
        "code": _INT32,
    },
)
BYTES: Final = Shape((str,), "[]uint8")
_MOST: Final = {"int32": 2**31, "int64": 2**63}


class Form(NamedTuple):
    """What an answer must be: ``versions`` are those that Kubernetes knows, the wanted one first."""

    group: str
    kind: str
    versions: tuple[str, ...]
    fields: Mapping[str, Shape]


def read_answer(body: bytes, form: Form) -> dict[str, Any]:
    """An answer as its form has it; what it says of its own kind may be missing.  Raises ``CallError``."""
    try:
        return _formed(_read(body), form)
    except CallError as error:
        raise CallError(str(error), f"its answer is no {form.kind}") from None


def _formed(found: Any, form: Form) -> dict[str, Any]:
    if not isinstance(found, dict):
        told = f"json: cannot unmarshal {go_kind(found)} into Go value of type {HEADER}"
        raise CallError(f"couldn't get version/kind; json parse error: {told}")
    wanted = f"{form.group}/{form.versions[0]}"
    version, kind = found.get("apiVersion") or wanted, found.get("kind") or form.kind
    known = [f"{form.group}/{one}" for one in form.versions]
    if kind != form.kind or version not in known:
        where = 'in scheme "pkg/runtime/scheme.go:111"'
        raise CallError(
            f"no kind {quoted(str(kind))} is registered for version {quoted(str(version))} {where}"
        )
    for name, value in found.items():
        if name in form.fields:
            _check(value, form.fields[name], name, form.kind)
    if version != wanted:
        short = version.rpartition("/")[2]
        raise CallError(f"converting ({short}.{kind}) to ({form.versions[0]}.{kind}): unknown conversion")
    return found


def _read(body: bytes) -> Any:
    try:
        found = plain(read_json(body))[0]
    except ValueError as error:
        try:
            if len(body) > _MOST_YAML:
                raise
            found = read_yaml(body).value  # which Go reads too
        except ValueError:
            raise CallError(f"couldn't get version/kind; json parse error: {error}") from None
    return {} if found is None else found


def _check(value: Any, shape: Shape, path: str, owner: str) -> None:
    """Raises ``CallError`` of the first value, in the order they came in, that Go would not read."""
    if value is None:
        return
    if told := _unread(value, shape):
        where = f"Go struct field {owner}.{path} of type {shape.go}"
        raise CallError(f"json: cannot unmarshal {told} into {where}")
    if shape is BYTES and (at := _not_base64(value)) is not None:
        raise CallError(f"illegal base64 data at input byte {at}")
    if shape.each is not None:
        for one in value.values() if isinstance(value, dict) else value:
            _check(one, shape.each, path, owner)
    for name, one in value.items() if shape.fields else ():
        if name in shape.fields:
            _check(one, shape.fields[name], f"{path}.{name}", shape.go.rpartition(".")[2])


def _unread(value: Any, shape: Shape) -> str:
    """What a value is, where it is not what it must be."""
    kind = go_kind(value)
    if shape.go in _MOST and kind == "number":
        is_whole = isinstance(value, int) and -_MOST[shape.go] <= value < _MOST[shape.go]
        return "" if is_whole else f"number {value}"
    return "" if type(value) in shape.kinds else kind


def _not_base64(text: str) -> int | None:
    """Where it ceases to be what Go decodes."""
    plain_text = text.replace("\r", "").replace("\n", "")  # which Go passes over
    try:
        base64.b64decode(plain_text, validate=True)
    except ValueError:
        wrong = re.search(r"[^A-Za-z0-9+/=\r\n]", text)
        return wrong.start() if wrong else len(text) // 4 * 4
    return None
