"""Many watches in one small process, for ``server.py``: notes when each event came, and nothing else.

Twenty thousand events a second are more than one event loop with an HTTP library can read in time; it would
be itself that it measures, and the server would end the watches it does not read.  So several of these share
the watches, and each decrypts what comes and searches it for names.  Times are of the system's monotonic
clock, which all processes share.

A server ends the watches of whom it cannot keep up with: kube-apiserver does, when it has too little CPU for
all of them.  A watch that ended goes on after the last version it saw, as any client's would; how often that
was is told, and the events it saw later for it are late.

Told in one JSON argument.  Says ``ready`` when the server has answered every watch; then, in a JSON line,
when each watch saw each event, how often one went on, and how many CPU seconds it took to read them.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import ssl
import sys
import time
from typing import Any, Final
from urllib.parse import urlsplit

NAME: Final = "seen-"
_NAME: Final = re.compile(rb'"name":"seen-(\d+)"')
# Between two chunks, which may part an event anywhere; no such bytes are in JSON.
_BETWEEN: Final = re.compile(rb"\r\n[1-9a-fA-F][0-9a-fA-F]*\r\n")
_END: Final = b"\r\n0\r\n\r\n"  # of an answer in chunks
_VERSION: Final = b'"resourceVersion":"'
_LONGEST: Final = 64  # bytes of what is searched for, with what may stand inside, and some
_AT_ONCE: Final = 1 << 16


def tls(authority: str, certificate: list[str] | None) -> ssl.SSLContext:
    """Who trusts this authority, and shows this certificate and key."""
    context = ssl.create_default_context(cafile=authority)
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return context


class Watch:
    """One connection, and when it saw each event."""

    def __init__(self, asked: dict[str, Any], secured: ssl.SSLSocket) -> None:
        self.secured = secured
        self.seen: list[float | None] = [None] * asked["events"]
        self.left: int = asked["events"]
        self.resumed = 0
        self.is_lost = False
        self._asked = asked
        self._version: str = asked["version"]
        self._rest = b""

    def ask(self) -> None:
        """For what came after the last version seen."""
        headers = "".join(f"{name}: {value}\r\n" for name, value in self._asked["headers"].items())
        target = f"{self._asked['path']}?watch=1&resourceVersion={self._version}"
        host = urlsplit(self._asked["url"]).netloc
        self.secured.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n".encode())

    def read(self) -> None:
        """All there is."""
        while not self.is_lost:
            try:
                data = self.secured.recv(_AT_ONCE)
            except ssl.SSLWantReadError:
                return
            except OSError:
                data = b""
            self.is_lost = not data
            self.take(data, time.monotonic())

    def take(self, data: bytes, now: float) -> None:
        data = _BETWEEN.sub(b"", self._rest + data)  # a name may come in two pieces
        end = 0
        for match in _NAME.finditer(data):
            end = match.end()
            if self.seen[int(match[1])] is None:
                self.seen[int(match[1])] = now
                self.left -= 1
        begins = data.rfind(_VERSION, 0, len(data) - _LONGEST) + len(_VERSION)
        if begins >= len(_VERSION):
            self._version = data[begins : data.index(b'"', begins)].decode()
        self._rest = data[max(end, len(data) - _LONGEST) :]
        if _END in self._rest:
            self._rest = b""
            self.resumed += 1
            self.ask()


def begin(asked: dict[str, Any], context: ssl.SSLContext) -> Watch:
    """A watch that the server has answered."""
    url = urlsplit(asked["url"])
    assert url.hostname is not None
    plain = socket.create_connection((url.hostname, url.port or 443), timeout=asked["seconds"])
    watch = Watch(asked, context.wrap_socket(plain, server_hostname=url.hostname))
    watch.ask()
    said = b""
    while b"\r\n\r\n" not in said:
        more = watch.secured.recv(_AT_ONCE)
        said += more
        if not more or not said.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"watch {asked['path']}: the server answered {said[:300]!r}")
    watch.take(said.partition(b"\r\n\r\n")[2], time.monotonic())
    watch.secured.setblocking(False)
    return watch


def main() -> None:
    asked = json.loads(sys.argv[1])
    context = tls(asked["authority"], asked["certificate"])
    watches = [begin(asked, context) for _ in range(asked["watches"])]
    print("ready", flush=True)
    deadline, spent = time.monotonic() + asked["seconds"], time.process_time()
    with selectors.DefaultSelector() as ready:
        for watch in watches:
            ready.register(watch.secured, selectors.EVENT_READ, watch)
        # A lost connection will see nothing more, and without it there is no percentile of all.
        while any(watch.left for watch in watches) and not any(watch.is_lost for watch in watches):
            found = ready.select(deadline - time.monotonic())
            if time.monotonic() >= deadline:
                break
            for key, _ in found:
                key.data.read()
    said = {
        "seen": [watch.seen for watch in watches],
        "resumed": sum(watch.resumed for watch in watches),
        "lost": sum(watch.is_lost for watch in watches),
        "cpu": time.process_time() - spent,
    }
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
