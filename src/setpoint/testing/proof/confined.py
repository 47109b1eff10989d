"""A way to a real cluster that ends at one namespace, and looks as if that were another.

Who asks through it speaks of the namespace ``inside`` (``default``) and means ``outside``, one that was made
for this run alone.  Plans and traces so say the same everywhere, and an operator that watches the whole
cluster sees, and changes, nothing of anyone else's.

Promises:

1. Nothing is written outside of the namespace: such a request is refused with 403 and noted in ``strayed``.
   Reviews, which change nothing, pass.
2. Lists and watches of all namespaces are of this one; what belongs to no namespace is read as it is.
3. Every write that was done is told of, with the version that came of it, before who asked hears of it.
4. ``compacted`` and ``is_full`` are as if the server had forgotten its history, or had no room: for who asks
   here, and for nobody else.

Made by ``real_world.py``, for the operator under the ``Seam`` and for the user beside it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import msgspec

from setpoint.api.names import Resource
from setpoint.api.wire import LineSplitter
from setpoint.net.transport import Request, Response, Transport, WebSocket, Whole
from setpoint.testing.asked import Asked, read_request
from setpoint.testing.faults import Refuse, Refused

_REVIEWS: Final = frozenset(
    {
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
        "tokenreviews",
    }
)


class Told(msgspec.Struct, rename="camel"):
    """What a write's answer says of the object."""

    uid: str = ""
    name: str = ""
    generate_name: str = ""
    resource_version: str = ""


class _Details(msgspec.Struct):
    uid: str = ""


class _Answer(msgspec.Struct):
    metadata: Told = msgspec.field(default_factory=Told)
    details: _Details | None = None


class Bounds:
    """One namespace of a real cluster, and what a fault has done to the way there."""

    def __init__(self, inside: str, outside: str, resources: Mapping[tuple[str, str], Resource]) -> None:
        self.inside = inside
        self.outside = outside
        self.resources = resources  # by group and plural
        self.strayed: list[str] = []
        self.compacted = 0
        self.is_full = False

    def is_cluster_wide(self, asked: Asked) -> bool:
        """Whether it is about a kind that belongs to no namespace."""
        found = self.resources.get((asked.group, asked.plural))
        return found is not None and not found.namespaced


class Confined:
    """A transport; ``told`` hears of every write that was done."""

    def __init__(
        self,
        inner: Transport,
        bounds: Bounds,
        told: Callable[[Asked, Told], None] = lambda _asked, _told: None,
        *,
        is_disturbed: bool = False,
    ) -> None:
        self._inner = inner
        self._bounds = bounds
        self._told = told
        self._is_disturbed = is_disturbed  # promise 4 is for the operator; the user is left alone

    async def __call__(self, request: Request) -> Response:
        asked, bounds = read_request(request), self._bounds
        if not asked.plural or asked.plural in _REVIEWS:
            return await self._inner(request)
        if asked.is_write and (strays := self._strays(asked)):
            bounds.strayed.append(f"{asked} ({strays})")
            return _refusal(403, "Forbidden", f"a proof keeps to its namespace, and {strays}", asked)
        if self._is_disturbed and asked.is_write and bounds.is_full:
            return _refusal(500, "InternalError", "no space left on the device", asked)
        if self._is_disturbed and asked.verb == "watch" and self._is_forgotten(request):
            return _refusal(410, "Expired", "too old resource version", asked)
        response = await self._inner(self._outward(request, asked))
        if asked.verb == "watch" or asked.subresource == "log" or response.websocket is not None:
            return _Lines(response, bounds)
        body = (await response.read()).replace(bounds.outside.encode(), bounds.inside.encode())
        await response.close()
        if asked.is_write and response.status < 300 and "dryRun" not in request.target:
            self._told(asked, _told(body))
        return Whole(response.status, response.headers, body)

    def _strays(self, asked: Asked) -> str:
        if self._bounds.is_cluster_wide(asked):
            return f"{asked.plural} belong to none"
        if not asked.namespace:
            return "this is about all of them"
        return "" if asked.namespace == self._bounds.inside else f"{asked.namespace} is another"

    def _is_forgotten(self, request: Request) -> bool:
        version = parse_qs(urlsplit(request.target).query).get("resourceVersion", [""])[0]
        return version.isdigit() and 0 < int(version) < self._bounds.compacted

    def _outward(self, request: Request, asked: Asked) -> Request:
        """The request, as the server is to see it."""
        bounds = self._bounds
        path, _, query = request.target.partition("?")
        if asked.plural == "namespaces":
            if asked.name == bounds.inside:
                path = path.replace(f"/namespaces/{asked.name}", f"/namespaces/{bounds.outside}")
        elif asked.namespace == bounds.inside:
            path = path.replace(f"/namespaces/{asked.namespace}/", f"/namespaces/{bounds.outside}/", 1)
        elif not asked.namespace and not bounds.is_cluster_wide(asked):
            at = path.rindex(f"/{asked.plural}")
            path = f"{path[:at]}/namespaces/{bounds.outside}{path[at:]}"
        for name in ("metadata.namespace=", "involvedObject.namespace="):
            query = query.replace(quote(name + bounds.inside, safe=""), quote(name + bounds.outside, safe=""))
        body = None if request.body is None else _renamed(request.body, bounds.inside, bounds.outside)
        return request._replace(target=f"{path}?{query}" if query else path, body=body)


class _Lines:
    """An answer that goes on, line by line."""

    def __init__(self, response: Response, bounds: Bounds) -> None:
        self._response = response
        self._names = bounds.outside.encode(), bounds.inside.encode()

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def websocket(self) -> WebSocket | None:
        return self._response.websocket

    async def read(self) -> bytes:
        return (await self._response.read()).replace(*self._names)

    async def chunks(self) -> AsyncIterator[bytes]:
        splitter = LineSplitter()
        async for chunk in self._response.chunks():
            lines = [line.replace(*self._names) + b"\n" for line in splitter.feed(chunk)]
            if lines:
                yield b"".join(lines)

    async def close(self) -> None:
        await self._response.close()


def _renamed(body: bytes, old: str, new: str) -> bytes:
    """JSON, in which whatever is called a namespace is the other one; all else as it is."""
    try:
        read = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body
    return msgspec.json.encode(_in(read, old, new))


def _in(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {
            name: new if name == "namespace" and each == old else _in(each, old, new)
            for name, each in value.items()
        }
    return [_in(each, old, new) for each in value] if isinstance(value, list) else value


def _told(body: bytes) -> Told:
    """Whose write it was, and to which version; a deletion may answer with the uid alone."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError:
        return Told()
    if answer.details is not None and answer.details.uid:
        answer.metadata.uid = answer.details.uid
    return answer.metadata


def _refusal(code: int, reason: str, message: str, asked: Asked) -> Response:
    return Refused(Refuse(code, reason, message), asked)
