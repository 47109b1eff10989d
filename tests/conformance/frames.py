"""A WebSocket client that sees every frame as it was sent.  The standard library's alone, and blocking."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from urllib.parse import urlsplit

TEXT: Final = 1
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10
_MASKED: Final = 0x80
_PATIENCE: Final = 20.0  # seconds


class Frame(NamedTuple):
    kind: int
    data: bytes
    is_last: bool  # of its message


class Refused(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Opened:
    """A connection that became a WebSocket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._came = b""
        head = self._until(b"\r\n\r\n").decode().split("\r\n")
        code = int(head[0].split()[1])
        if code != 101:
            raise Refused(code)
        fields = dict(line.split(": ", 1) for line in head[1:] if line)
        self.headers = {name.lower(): value for name, value in fields.items()}

    def frame(self) -> Frame:
        first, second = self._read(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", self._read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self._read(8))
        return Frame(first & 0x0F, self._read(length), bool(first & 0x80))

    def send(self, kind: int, data: bytes = b"") -> None:
        """A short one, with a mask that masks nothing."""
        self._connection.sendall(bytes([0x80 | kind, _MASKED | len(data)]) + bytes(4) + data)

    def _more(self) -> None:
        came = self._connection.recv(65536)
        if not came:
            raise ConnectionError("the connection was cut")
        self._came += came

    def _read(self, size: int) -> bytes:
        while len(self._came) < size:
            self._more()
        read, self._came = self._came[:size], self._came[size:]
        return read

    def _until(self, end: bytes) -> bytes:
        while end not in self._came:
            self._more()
        return self._read(self._came.index(end) + len(end))


@contextmanager
def opened(
    url: str, target: str, context: ssl.SSLContext, *, protocols: Sequence[str] = (), accept: str = ""
) -> Iterator[Opened]:
    """A WebSocket for the time of a block.  Raises ``Refused``."""
    at = urlsplit(url)
    fields = {
        "Host": at.netloc,
        "Origin": url,  # without one the real server refuses
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        **({"Sec-WebSocket-Protocol": ", ".join(protocols)} if protocols else {}),
        **({"Accept": accept} if accept else {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with (
        socket.create_connection((at.hostname or "", at.port or 443), timeout=_PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname=at.hostname) as connection,
    ):
        connection.sendall(f"GET {target} HTTP/1.1\r\n{head}\r\n".encode())
        yield Opened(connection)
