"""A server that replays: lists and watches of as many objects as asked for, encoded before anyone asks.

It stands in where the real kube-apiserver would be the limit: a hundred thousand objects, and events at full
speed.  It knows Pods (JSON and protobuf) and Workloads (JSON), pages, streamed lists and watches, and as much
of discovery as clients ask for; every other list is empty and every other watch silent.  Each connection has
a thread that mostly waits inside OpenSSL, so that this process is never what others wait for.

Told ``go`` on standard input, it sends the events, to whoever watches or begins to; told ``requests``, it
prints what was asked for so far; told ``rest``, there are no events any more.  It prints one JSON line when
it is ready, with all of ``kinds`` encoded, whole, in pages or as a stream as ``lists`` says, and the events;
it ends with its standard input.

    python -m bench.peers.recorded '{"objects": 1000, "events": 20000, "kinds": ["Pod"], "lists": ["whole"]}'
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from bench.peers import objects
from bench.stub import server_context
from setpoint.net.tls import Authority

_PIECE: Final = 1 << 18  # bytes given to OpenSSL at once
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_PAGE: Final = 500  # objects in a page, as all ask that ask for pages
_VERBS: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]


class Recording:
    """Everything that can be asked for, encoded when it is prepared or first asked for, and kept."""

    def __init__(self, count: int, events: int) -> None:
        self.count = count
        self.events = events
        self._lock = threading.Lock()

    @property
    def version(self) -> int:
        return objects.FIRST_VERSION + self.count

    def prepare(self, kind: str, lists: Iterable[str]) -> None:
        """So that nobody waits for it inside the clock."""
        for encoding in ("json", "protobuf") if kind == "Pod" else ("json",):
            if "whole" in lists:
                self.page(kind, encoding, 0, 0)
            if "pages" in lists:
                for begin in range(0, self.count, _PAGE):
                    self.page(kind, encoding, _PAGE, begin)
            if "stream" in lists:
                self.streamed(kind, encoding)
            if self.events:
                self.changes(kind, encoding)

    def page(self, kind: str, encoding: str, limit: int, begin: int) -> bytes:
        with self._lock:  # two at once would make the same twice
            return self._page(kind, encoding, limit, begin)

    def streamed(self, kind: str, encoding: str) -> bytes:
        with self._lock:
            return self._streamed(kind, encoding)

    def changes(self, kind: str, encoding: str) -> bytes:
        with self._lock:
            return self._changes(kind, encoding)

    @cache  # noqa: B019 - there is one recording, and it lives as long as the process
    def _page(self, kind: str, encoding: str, limit: int, begin: int) -> bytes:
        end = min(begin + limit, self.count) if limit else self.count
        token = str(end) if end < self.count else ""
        numbers = range(begin, end)
        if encoding == "protobuf":
            pods = (objects.protobuf_of(number, objects.FIRST_VERSION + number) for number in numbers)
            return objects.protobuf_list(pods, self.version, token)
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if token:
            metadata |= {"continue": token, "remainingItemCount": self.count - end}
        group = "v1" if kind == "Pod" else f"{objects.GROUP}/v1"
        head = json.dumps({"kind": f"{kind}List", "apiVersion": group, "metadata": metadata})
        items = b",".join(
            objects.json_of(kind, number, objects.FIRST_VERSION + number, is_item=True) for number in numbers
        )
        return b'%s,"items":[%s]}\n' % (head[:-1].encode(), items)

    @cache  # noqa: B019
    def _streamed(self, kind: str, encoding: str) -> bytes:
        return b"".join(objects.chunked(self._initial(kind, encoding)))

    def _initial(self, kind: str, encoding: str) -> Iterator[bytes]:
        for number in range(self.count):
            yield _event(kind, encoding, "ADDED", number, objects.FIRST_VERSION + number)
        bookmark = objects.protobuf_bookmark if encoding == "protobuf" else None
        yield bookmark(self.version) if bookmark else objects.json_bookmark(kind, self.version)

    @cache  # noqa: B019
    def _changes(self, kind: str, encoding: str) -> bytes:
        numbers = ((each % self.count, self.version + 1 + each) for each in range(self.events))
        return b"".join(objects.chunked(_event(kind, encoding, "MODIFIED", *each) for each in numbers))


def _event(kind: str, encoding: str, type_: str, number: int, version: int) -> bytes:
    if encoding == "protobuf":
        return objects.protobuf_event(type_, objects.protobuf_of(number, version))
    return objects.json_event(type_, objects.json_of(kind, number, version))


# ---- discovery -------------------------------------------------------------------------------------


def _resource(name: str, kind: str, *, namespaced: bool = True) -> dict[str, Any]:
    return {
        "name": name,
        "singularName": kind.lower(),
        "namespaced": namespaced,
        "kind": kind,
        "verbs": _VERBS,
    }


_GROUP_VERSION: Final = {"groupVersion": f"{objects.GROUP}/v1", "version": "v1"}
_GROUP: Final = {"name": objects.GROUP, "versions": [_GROUP_VERSION], "preferredVersion": _GROUP_VERSION}
DISCOVERY: Final[dict[str, dict[str, Any]]] = {
    "/version": {"major": "1", "minor": "37", "gitVersion": "v1.37.1", "platform": "linux/amd64"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
    "/api/v1": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "v1",
        "resources": [
            _resource("pods", "Pod"),
            _resource("configmaps", "ConfigMap"),
            _resource("namespaces", "Namespace", namespaced=False),
        ],
    },
    f"/apis/{objects.GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_GROUP},
    f"/apis/{objects.GROUP}/v1": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{objects.GROUP}/v1",
        "resources": [_resource("workloads", "Workload"), _resource("webapps", "WebApp")],
    },
}


# ---- serving ---------------------------------------------------------------------------------------


class Server:
    """Threads, one to a connection."""

    def __init__(self, recording: Recording, context: ssl.SSLContext) -> None:
        self._recording = recording
        self._context = context
        self._lock = threading.Lock()
        self.requests = Counter[str]()
        self.go = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"https://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with (
                self._context.wrap_socket(connection, server_side=True) as secured,
                secured.makefile("rb") as reading,
            ):
                while (line := reading.readline()).strip():
                    headers = _headers(reading)
                    reading.read(int(headers.get("content-length", "0")))
                    self._answer(secured, line.split()[1].decode(), headers.get("accept", ""))
        except OSError:
            pass  # it left: that is how watches end

    def _answer(self, to: ssl.SSLSocket, target: str, accept: str) -> None:
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        path = url.path.rstrip("/")
        kind = {"pods": "Pod", "workloads": "Workload"}.get(path.rpartition("/")[2], "")
        is_watch = query.get("watch", "") in {"true", "1", "True"}
        with self._lock:
            verb = "watch" if is_watch else "list" if kind else "other"
            self.requests[verb] += 1
        encoding = "protobuf" if _PROTOBUF in accept and kind == "Pod" else "json"
        if is_watch:
            self._watch(to, kind, encoding, is_list="sendInitialEvents" in query)
        elif kind:
            limit, begin = int(query.get("limit", "0")), int(query.get("continue", "0"))
            page = self._recording.page(kind, encoding, limit, begin)
            _send(to, [_head(encoding, len(page)), page])
        elif path in DISCOVERY:
            _send_json(to, 200, DISCOVERY[path])
        elif path.startswith(("/api/v1/", f"/apis/{objects.GROUP}/v1/")):
            metadata = {"resourceVersion": str(self._recording.version)}
            _send_json(to, 200, {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": []})
        else:
            _send_json(to, 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

    def _watch(self, to: ssl.SSLSocket, kind: str, encoding: str, *, is_list: bool) -> None:
        changes = self._recording.changes(kind, encoding) if kind and self._recording.events else b""
        _send(to, [_head(encoding, None)])
        if kind and is_list:
            _send(to, [self._recording.streamed(kind, encoding)])
        if changes:
            self.go.wait()
            _send(to, [changes])
        to.recv(1)  # until it leaves
        raise ConnectionResetError


def _headers(reading: Any) -> dict[str, str]:
    found = {}
    while (line := reading.readline().strip()) != b"":
        name, _, value = line.decode().partition(":")
        found[name.lower()] = value.strip()
    return found


def _head(encoding: str, length: int | None) -> bytes:
    is_watch = length is None
    protobuf = f"{_PROTOBUF};stream=watch" if is_watch else _PROTOBUF
    content = "application/json" if encoding == "json" else protobuf
    size = "Transfer-Encoding: chunked" if is_watch else f"Content-Length: {length}"
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content}\r\n{size}\r\n\r\n".encode()


def _send_json(to: ssl.SSLSocket, status: int, document: dict[str, Any]) -> None:
    body = json.dumps(document).encode()
    head = (
        f"HTTP/1.1 {status} {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    _send(to, [head.encode(), body])


def _send(to: ssl.SSLSocket, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        view = memoryview(piece)
        for begin in range(0, len(view), _PIECE):
            to.sendall(view[begin : begin + _PIECE])


def main() -> None:
    asked = json.loads(sys.argv[1])
    authority = Authority.create()
    recording = Recording(asked["objects"], asked["events"])
    for kind in asked["kinds"]:
        recording.prepare(kind, asked["lists"])
    server = Server(recording, server_context(authority))
    print(json.dumps({"server": server.url, "authority": authority.certificate_pem.decode()}), flush=True)

    def requests() -> None:
        print(json.dumps(server.requests), flush=True)

    commands: dict[str, Callable[[], None]] = {
        "go": server.go.set,
        "rest": server.go.clear,
        "requests": requests,
    }
    for line in sys.stdin:
        commands[line.strip()]()


if __name__ == "__main__":
    main()
