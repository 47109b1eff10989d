"""The API as an app: a request in, an answer out; HTTP's side of every resource, and what is beside them.

Each request goes the same way: is it meant for us (``hosts.py``), who asks (``authentication.py``), may it
(``server/authorization``), what is asked (``routing.py``), in which form (``negotiate.py``), then the
registry, then the answer in bytes (``answers.py``).

Promises:

1. Every answer is Kubernetes': a refusal is a Status, and so is our own mistake, whose trace is in the log
   alone.
2. No body and no credential is ever logged.
3. ``end_watches`` ends every stream in order, so that a server can stop without cutting anyone.
4. Of who is not known no body is kept that is not small (``most_body``): it is refused by its head.
5. Only so many requests are answered at once, and none for longer than it may take (``inflight.py``).

Fed by ``net/listen.py`` or ``net/loopback.py``; drained into the registry.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

import msgspec

from setpoint.clock import within
from setpoint.net.arriving import SMALL
from setpoint.net.listen import Answer
from setpoint.net.transport import Request
from setpoint.server.authorization.attributes import refusal
from setpoint.server.authorization.authorizer import MASTERS
from setpoint.server.golang import valid_text
from setpoint.server.http import openid, upgrades
from setpoint.server.http.answers import (
    answered,
    is_pretty,
    list_metadata,
    list_pieces,
    page_not_found,
    plain,
    refused,
    written,
)
from setpoint.server.http.authentication import ANONYMOUS, Authenticator
from setpoint.server.http.discovery import WHOLE, Discovery
from setpoint.server.http.health import PATHS, Health
from setpoint.server.http.hosts import Hosts
from setpoint.server.http.inflight import InFlight, Limits, seconds_allowed
from setpoint.server.http.negotiate import (
    JSON,
    Form,
    Negotiator,
    check_accepted,
    of_discovery,
    of_refusal,
    of_stream,
)
from setpoint.server.http.request_info import RequestInfo, read, request_info
from setpoint.server.http.routing import NoPage, Route, route
from setpoint.server.http.tables import (
    as_scale,
    check_list,
    check_single,
    include_of,
    metadata_of_one,
    partial,
    partial_list,
    table,
)
from setpoint.server.http.version import version
from setpoint.server.http.watches import Frames, Lines, Stream, WatchStream
from setpoint.server.registry import connecting
from setpoint.server.registry.logs import Logs, open_log
from setpoint.server.registry.metadata import uuid4
from setpoint.server.registry.registry import Registry
from setpoint.server.registry.requests import Answered, Ask, Listed, User
from setpoint.server.registry.resources import Resource
from setpoint.server.statuses import (
    StatusError,
    internal,
    method_not_allowed,
    not_served,
    too_large,
    unauthorized,
    unsupported_media_type,
)
from setpoint.server.storage.protocol import StorageError

if TYPE_CHECKING:
    from setpoint.server.http.openapi import OpenApi

log = logging.getLogger("setpoint.server")

MAX_BODY: Final = 3 * 2**20
# Tools look whether these are there: where they are, the server itself keeps the peace among its clients.
_FAIRNESS: Final = {
    "X-Kubernetes-Pf-Flowschema-Uid": "5e8b57ec-6a5d-4f3c-9a9d-1f0b2d1f7c51",
    "X-Kubernetes-Pf-Prioritylevel-Uid": "0c3b9f0e-2f5c-4c6e-8f0a-6d1f6f1f8b52",
}
_SCALE: Final = b'{"kind":"Scale",'
_MOST_AUDIT: Final = 128  # characters of an id that a client chose


class Api:
    """The app.  ``registry`` has the objects; the rest is about HTTP."""

    def __init__(
        self,
        registry: Registry,
        authenticator: Authenticator,
        *,
        health: Health,
        hosts: Hosts,
        limits: Limits | None = None,
    ) -> None:
        self._registry = registry
        self._authenticator = authenticator
        self._health = health
        self._hosts = hosts
        self._negotiator = Negotiator()
        self._discovery = Discovery(registry.resources)
        self._frames = Frames(registry.clock.utc)
        self._in_flight = InFlight(limits or Limits())
        self._streams: set[Stream] = set()
        self.logs: Logs | None = None  # who has the logs of pods; unless told, nobody that can be reached
        self._version = version()
        registry.resources.on_change(self._end_unserved)
        self._ids = random.Random()  # noqa: S311 - they only tell requests apart

    def __repr__(self) -> str:
        return f"<Api of {self._registry!r}, {len(self._streams)} watches>"

    @cached_property
    def _openapi(self) -> OpenApi:
        from setpoint.server.http.openapi import OpenApi  # noqa: PLC0415 - large, and asked for late

        return OpenApi(self._registry.resources)

    def end_watches(self) -> None:
        for stream in list(self._streams):
            stream.end()

    def _end_unserved(self) -> None:
        """A resource that is not served any more is not watched any more."""
        for stream in list(self._streams):
            watched = stream.resource
            if self._registry.resources.find(watched.group, watched.version, watched.plural) is None:
                stream.end_after_events()  # the last of which say that its objects are gone

    async def finish(self, grace: float = 1.0) -> None:
        """End every watch, and wait until those who read them have seen it."""
        streams = list(self._streams)
        self.end_watches()
        with suppress(TimeoutError), within(grace):
            for stream in streams:
                await stream.closed.wait()

    async def __call__(self, request: Request) -> Answer:
        try:
            answer = await self._answer(request)
        except NoPage:
            answer = page_not_found()
        except StatusError as error:
            answer = self._refused(request, error)
        except StorageError as error:
            log.error("%s %s: %s", request.method, _path(request), error)  # noqa: TRY400 - its text says it all
            answer = self._refused(request, internal(str(error)))
        except Exception:
            log.exception("%s %s: a request failed that should not have", request.method, _path(request))
            answer = self._refused(request, internal("see the server's log"))
        return self._finished(request, answer)

    def refuse(self, request: Request, code: int, why: str) -> Answer:
        """For what is refused before it reaches us: too long, too slow."""
        match code:
            case 413:
                is_known = self._sender(request) is not None
                error = too_large(self.most_body(request)) if is_known else unauthorized()
            case 408:
                error = StatusError(408, "Timeout", f"Timeout: {why}", details={})
            case _:
                error = internal(why)
        return self._finished(request, self._refused(request, error))

    def most_body(self, request: Request) -> int:
        """How long a request's body may be, by its head: who sends it is asked before it is read."""
        return SMALL if self._sender(request) in (None, ANONYMOUS) else MAX_BODY

    def _sender(self, request: Request) -> User | None:
        """Who asks; None where nobody is let in."""
        try:
            path = read(request.target).path
        except StatusError:
            path = ()
        try:
            return self._authenticator.sender(request, path)
        except StatusError:
            return None

    def _refused(self, request: Request, error: StatusError) -> Answer:
        form = of_refusal(request.headers.get("Accept", ""))
        query = read_query(request)
        return refused(error, form, pretty=is_pretty(form, query, request.headers.get("User-Agent", "")))

    def _finished(self, request: Request, answer: Answer) -> Answer:
        headers = {**answer.headers, "Audit-Id": self._audit_id(request)}
        if answer.status != 401:
            headers |= _FAIRNESS
        return replace(answer, headers=headers)

    def _audit_id(self, request: Request) -> str:
        given = request.headers.get("Audit-Id", "")
        if given and len(given) <= _MOST_AUDIT and given.isascii() and given.isprintable():
            return given
        return uuid4(self._ids.getrandbits(128))

    # ── Which way ───────────────────────────────────────────────────────────────────────────────────

    async def _answer(self, request: Request) -> Answer:
        self._hosts.check(valid_text(request.headers.get("Host", "")))
        info = request_info(request.method, read(request.target))
        user = self._authorized(request, info)
        if info.is_resource:
            return await self._resource(request, info, user)
        path = info.path
        first = path[0]
        seconds_allowed(info.query, 0)  # nothing is waited for, and yet a time that is none is refused
        if first in ("api", "apis"):
            return self._described(request, info)
        if first in PATHS:
            told = self._health.told(path, info.query)
            if told is None:
                raise NoPage
            return plain(told.code, told.text)
        if first == "version" and len(path) == 1:
            check_accepted(request.headers.get("Accept", ""), JSON)
            return self._document(request, info, self._version, always_pretty=True)
        if first == "openapi" and len(path) > 1:
            return self._openapi_document(request, info)
        if path in openid.PATHS:
            return self._openid_document(request, path)
        if path == ("",):
            return self._document(
                request, info, msgspec.json.encode({"paths": self._paths()}), always_pretty=True
            )
        raise NoPage

    def _authorized(self, request: Request, info: RequestInfo) -> User:
        """Who asks, and may: 401 or 403 otherwise.  A watch that was begun goes on, whatever changes."""
        authenticator = self._authenticator
        sender = authenticator.sender(request, info.path)
        is_acting = authenticator.is_acting(request)
        if MASTERS in sender.groups and not is_acting:
            return sender
        asked = info.attributes
        user = authenticator.acting(request, sender, asked) if is_acting else sender
        authorizer = self._registry.access.authorizer
        if not authorizer.allows(user, asked):
            raise refusal(user, asked, authorizer.decide(user, asked).reason)
        return user

    # ── Resources ───────────────────────────────────────────────────────────────────────────────────

    async def _resource(self, request: Request, info: RequestInfo, user: User) -> Answer:
        found, query = route(info, self._registry.resources)
        if found.verb == "connect":
            return await self._connect(request, found, user)
        headers = request.headers
        form = self._negotiator.form(
            headers.get("Accept", ""),
            is_custom=found.resource.is_custom,
            is_many=found.verb in ("list", "watch"),
        )
        if request.body and headers.get("Content-Encoding", "identity") != "identity":
            raise unsupported_media_type(
                "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
            )
        agent = headers.get("User-Agent", "")
        ask = Ask(
            found.verb,
            found.resource,
            found.namespace,
            found.name,
            found.subresource,
            query,
            request.body or b"",
            headers.get("Content-Type", ""),
            user,
            agent,
        )
        if found.verb == "watch":
            return self._watch(ask, form, request)
        if found.subresource == "log":
            return await self._log(ask)
        pretty = is_pretty(form, query, agent)
        encodings = headers.get("Accept-Encoding", "")
        return await self._in_flight.answered(
            ask, lambda: self._asked(ask, form, pretty=pretty, encodings=encodings)
        )

    async def _asked(self, ask: Ask, form: Form, *, pretty: bool, encodings: str) -> Answer:
        registry = self._registry
        match ask.verb:
            case "get":
                check_single(form.kind, ask.resource)
                return self._object(await registry.get(ask), form, ask, pretty=pretty, encodings=encodings)
            case "list":
                check_list(form.kind, ask.resource)
                return self._list(await registry.list(ask), form, ask, pretty=pretty, encodings=encodings)
            case "create":
                answer = await registry.create(ask)
            case "update":
                answer = await registry.update(ask)
            case "patch":
                answer = await registry.patch(ask)
            case "delete":
                answer = await registry.delete(ask)
            case "deletecollection":
                deleted = await registry.delete_collection(ask)
                return self._list(deleted, form, ask, pretty=pretty, encodings=encodings)
        return self._object(answer, form, ask, pretty=pretty, encodings=encodings)

    def _object(self, answer: Answered, form: Form, ask: Ask, *, pretty: bool, encodings: str) -> Answer:
        data = answer.data
        resource = answer.resource
        if resource is None and data.startswith(_SCALE):
            resource = as_scale(self._registry.resources.builtin("apps", "v1", "deployments"))
        if resource is not None and form.kind != "object":
            data = self._shown(data, resource, form, ask)
        body = written(data, form.media, pretty=pretty)
        warnings = _warnings(ask.resource, answer.warnings)
        return answered(answer.code, body, form.media, warnings=warnings, encodings=encodings)

    def _shown(self, data: bytes, resource: Resource, form: Form, ask: Ask) -> bytes:
        if form.kind == "table":
            return table(
                resource,
                metadata_of_one(data),
                [data],
                now=self._registry.clock.utc(),
                include=include_of(ask.query),
                version=form.version,
                is_list=False,
            )
        return partial(data, form.version)

    def _list(self, listed: Listed, form: Form, ask: Ask, *, pretty: bool, encodings: str) -> Answer:
        resource = ask.resource
        warnings = _warnings(resource, listed.warnings)
        if form.kind == "object" and form.media == JSON and not pretty:
            pieces = list_pieces(listed, resource)
            return answered(200, pieces, warnings=warnings, encodings=encodings)
        items = [record.data for record in listed.records]
        if form.kind == "object":
            data = b"".join(list_pieces(listed, resource))
        elif form.kind == "table":
            data = table(
                resource,
                list_metadata(listed),
                items,
                now=self._registry.clock.utc(),
                include=include_of(ask.query),
                version=form.version,
            )
        else:
            data = partial_list(list_metadata(listed), items, form.version)
        body = written(data, form.media, pretty=pretty)
        return answered(200, body, form.media, warnings=warnings, encodings=encodings)

    def _watch(self, ask: Ask, form: Form, request: Request) -> Answer:
        lines = Lines(self._frames, ask.resource, of_stream(form), include_of(ask.query))
        watching = self._registry.watch(ask)
        if upgrades.is_wanted(request):
            watching.close()  # it would be granted; it is opened when the connection is a WebSocket
            spoken = upgrades.subprotocol(request)

            def opened() -> Stream:
                again = self._registry.watch(ask)
                return WatchStream(again, ask.resource, lines.one_by_one(again), self._streams)

            return Answer(101, talk=upgrades.talk(opened), subprotocol=spoken)
        stream = WatchStream(watching, ask.resource, lines.of(watching), self._streams)
        answer = answered(200, b"", warnings=_warnings(ask.resource, ()))
        return Answer(200, answer.headers, stream)

    async def _connect(self, request: Request, found: Route, user: User) -> Answer:
        """There is no connection to what runs in a pod; who asks for one waits at most for webhooks."""
        path, _, query = request.target.partition("?")
        below = f"/{found.below}" if found.below else ""
        if path.endswith("/") and not below.endswith("/"):
            below += "/"
        ask = Ask("connect", found.resource, found.namespace, found.name, found.subresource, user=user)
        values = parse_qs(valid_text(query), keep_blank_values=True)
        is_upgrade = "upgrade" in request.headers.get("Connection", "").lower()
        is_create = request.method == "POST"

        async def refuse() -> Answer:
            raise await connecting.refused(
                ask, values, below, self._registry, is_create=is_create, is_upgrade=is_upgrade
            )

        return await self._in_flight.answered(ask, refuse)

    async def _log(self, ask: Ask) -> Answer:
        found = await open_log(ask, self._registry, self.logs, self._registry.clock.utc())
        if found is None:
            return Answer(204, {"Cache-Control": "no-cache, private"}, b"")
        return Answer(200, plain(200, "").headers, Stream(ask.resource, found, self._streams))

    # ── Beside them ─────────────────────────────────────────────────────────────────────────────────

    def _described(self, request: Request, info: RequestInfo) -> Answer:
        """Groups, versions and resources."""
        if request.method != "GET":
            raise method_not_allowed()
        path, resources = info.path, self._registry.resources
        if len(path) == 1:
            return self._roots(request, info)
        if path[0] == "apis" and len(path) == 2:
            found = self._discovery.group(path[1])
            if found is None:
                raise NoPage
            return self._document(request, info, found, is_negotiated=True)
        else:
            group, version = ("", path[1]) if path[0] == "api" else (path[1], path[2])
            found = self._discovery.version(group, version)
            if found is None:
                is_builtin = any(not one.is_custom for one in resources.all() if one.group == group)
                raise not_served() if is_builtin else NoPage()
        return self._document(request, info, found)

    def _roots(self, request: Request, info: RequestInfo) -> Answer:
        root = info.path[0]
        form = of_discovery(request.headers.get("Accept", ""), root)
        if form.kind != "discovery":
            return self._document(
                request, info, self._versions(request) if root == "api" else self._discovery.groups()
            )
        whole = self._discovery.whole(root)
        headers = {"Cache-Control": "public", "ETag": whole.etag, "Vary": "Accept"}
        if whole.etag in request.headers.get("If-None-Match", ""):
            return Answer(304, headers)
        answer = answered(
            200,
            written(whole.data, form.media, pretty=False),
            encodings=request.headers.get("Accept-Encoding", ""),
        )
        vary = ", ".join(dict.fromkeys(("Accept", answer.headers.get("Vary", "Accept"))))
        media = WHOLE.replace(JSON, form.media)
        return Answer(200, {**answer.headers, **headers, "Vary": vary, "Content-Type": media}, answer.body)

    def _versions(self, request: Request) -> bytes:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": valid_text(request.headers.get("Host", ""))}
        return msgspec.json.encode(
            {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}
        )

    def _document(
        self,
        request: Request,
        info: RequestInfo,
        data: bytes,
        *,
        always_pretty: bool = False,
        is_negotiated: bool = False,  # what is refused is refused as for a custom kind, in other words
    ) -> Answer:
        if request.method != "GET":
            raise method_not_allowed()
        headers = request.headers
        accept = headers.get("Accept", "")
        form = Form() if always_pretty else self._negotiator.form(accept, is_custom=is_negotiated)
        pretty = always_pretty or is_pretty(form, info.query, headers.get("User-Agent", ""))
        body = written(data, form.media, pretty=pretty)
        return answered(200, body, form.media, encodings=headers.get("Accept-Encoding", ""))

    def _openapi_document(self, request: Request, info: RequestInfo) -> Answer:
        found = self._openapi.answer(info.path[1:], info.query, request.headers)
        if found is None:
            raise NoPage
        headers = dict(found.headers)
        headers.setdefault("Cache-Control", "no-cache, private")
        body = found.body
        packed = answered(200, body, encodings=request.headers.get("Accept-Encoding", ""))
        if "Content-Encoding" in packed.headers and isinstance(packed.body, bytes):
            headers |= {"Content-Encoding": "gzip", "Vary": "Accept, Accept-Encoding"}
            body = packed.body
        return Answer(found.code, headers, body)

    def _openid_document(self, request: Request, path: tuple[str, ...]) -> Answer:
        accounts = self._registry.access.tokens.accounts
        if accounts is None:
            raise NoPage
        if request.method != "GET":
            raise method_not_allowed()
        host = valid_text(request.headers.get("Host", ""))
        media, body = openid.document(path, accounts, host)
        check_accepted(request.headers.get("Accept", ""), media)
        return Answer(200, {"Cache-Control": "public, max-age=3600", "Content-Type": media}, body)

    def _paths(self) -> list[str]:
        """What there is to ask for."""
        paths = [
            "/version",
            *(f"/{'/'.join(path)}" for path in openid.PATHS),
            "/openapi/v3",
            "/api",
            "/apis",
            *(f"/openapi/v3/{one}" for one in self._openapi.names()),
        ]
        for group, versions in self._registry.resources.groups():
            root = f"/apis/{group}" if group else "/api"
            paths += [root, *(f"{root}/{version}" for version in versions)]
        for which in PATHS:
            paths += [f"/{which}", *(f"/{which}/{name}" for name in self._health.names())]
        return sorted(set(paths))


def _warnings(resource: Resource, more: tuple[str, ...]) -> tuple[str, ...]:
    return (resource.deprecation, *more) if resource.deprecation else more


def _path(request: Request) -> str:
    return request.target.partition("?")[0]


def read_query(request: Request) -> Mapping[str, str]:
    """Also of a target that cannot be read."""
    try:
        return read("/?" + request.target.partition("?")[2]).query
    except StatusError:
        return {}
