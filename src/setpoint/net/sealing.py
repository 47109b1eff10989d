"""TLS between a connection's bytes and who talks on it.

asyncio has the same, for every kind of protocol, and a request spends more time in it than in encrypting; and
under uvloop a server cannot begin it before the peer's first words have gone to somebody else.  What is
decided about certificates, names, versions and ciphers is the context's, and OpenSSL's.

Promises:

1. Nothing is given to who talks before the handshake is done, and nothing that was not decrypted whole.
2. The end is told (``eof_received``) only where the peer said goodbye: bytes that stop coming may have been
   cut off by anybody.
3. Closing says goodbye and does not wait for the peer's.
4. Who breaks TLS is cut: what was not sent yet does not wait for a peer that takes nothing.
5. A connection that says nothing holds little: what comes is put where all of a loop's put it, and looked at
   before anything else comes.

Used by ``dialing.py`` and ``listen.py``; talks to a transport of asyncio, or to another of its own kind (a
proxy over TLS).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

_READ: Final = 256 * 2**10  # bytes that one read of a socket brings at most
_RECORD: Final = 16 * 2**10  # bytes that one record of TLS holds at most
_WRITE: Final = 256 * 2**10  # bytes that are encrypted at a time


class Sealed(asyncio.Transport, asyncio.BufferedProtocol):
    """A protocol to what carries the bytes, and a transport to who talks."""

    _raw: asyncio.Transport

    def __init__(self, talking: asyncio.Protocol, tls: ssl.SSLContext, name: str | None) -> None:
        """To the server of this name; without one, we are the server."""
        super().__init__()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.opened.add_done_callback(_seen)
        self._talking = talking
        self._arrived, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.wrap_bio(self._arrived, self._leaving, name is None, name)
        self._buffer = _room()
        self._unsent: list[bytes] = []  # that OpenSSL does not take yet
        self._is_open = False  # between the handshake and the end
        self._is_over = False

    # ── For what carries the bytes ──────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        self._shake_hands()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the protocol's
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._arrived.write(self._buffer[:nbytes])
        if self._is_open:
            self._read()
        elif not self._is_over:
            self._shake_hands()

    def data_received(self, data: bytes) -> None:
        """The same, from another of our kind."""
        for at in range(0, len(data), _READ):
            piece = data[at : at + _READ]
            self._buffer[: len(piece)] = piece
            self.buffer_updated(len(piece))

    def eof_received(self) -> None:
        self._raw.abort()  # TLS has no half of a connection

    def connection_lost(self, exc: Exception | None) -> None:
        was_open = self._is_open
        self._is_open, self._is_over = False, True
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionResetError("it hung up while TLS was agreed on"))
        elif was_open:
            self._talking.connection_lost(exc)

    def pause_writing(self) -> None:
        self._talking.pause_writing()

    def resume_writing(self) -> None:
        self._talking.resume_writing()

    # ── For who talks ───────────────────────────────────────────────────────────────────────────────

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_over:
            return
        if len(data) <= _WRITE and not self._unsent:
            self._seal(bytes(data))
            return
        view = memoryview(data)
        self._unsent += [bytes(view[at : at + _WRITE]) for at in range(0, len(view), _WRITE)]
        self._send_rest()

    def abort(self) -> None:
        self._is_over = True
        self._raw.abort()

    def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            with contextlib.suppress(ssl.SSLError):  # it waits for the peer's, or has nothing to end
                self._tls.unwrap()
            self._flush()
            self._raw.close()

    def is_closing(self) -> bool:
        return self._is_over or self._raw.is_closing()

    def pause_reading(self) -> None:
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._raw.resume_reading()

    def is_reading(self) -> bool:
        return self._raw.is_reading()

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size() + len(self._unsent)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls if name == "ssl_object" else self._raw.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._talking = cast("asyncio.Protocol", protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._talking

    # ── In between ──────────────────────────────────────────────────────────────────────────────────

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except (ssl.SSLError, ValueError) as error:
            self._flush()  # the alert that says why
            self._fail(error)
        else:
            self._flush()
            self._is_open = True
            self._talking.connection_made(self)
            if not self.opened.done():
                self.opened.set_result(None)
            if self._arrived.pending:
                self._read()

    def _read(self) -> None:
        """Give what has come whole: in one piece, for whoever gets it does as much for a small one."""
        pieces, is_end, failed = [], False, None
        try:
            while self._arrived.pending:
                piece = self._tls.read(_RECORD)
                if not piece:
                    is_end = True
                    break
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            failed = error  # after what came before it, which may be a whole answer
        if self._leaving.pending:  # OpenSSL has something to say of its own
            self._flush()
        if self._unsent and failed is None:
            self._send_rest()
        if pieces:
            self._talking.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if failed is not None:
            self._fail(failed)
        elif is_end:
            self._talking.eof_received()
            self.close()

    def _seal(self, data: bytes) -> None:
        try:
            self._tls.write(data)
        except ssl.SSLWantReadError:  # it has something to agree on first
            self._unsent.append(data)
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._raw.write(self._leaving.read())

    def _send_rest(self) -> None:
        unsent, self._unsent = self._unsent, []
        for piece in unsent:
            if self._unsent:
                self._unsent.append(piece)
            elif not self._is_over:
                self._seal(piece)

    def _flush(self) -> None:
        if self._leaving.pending:
            self._raw.write(self._leaving.read())

    def _fail(self, error: Exception) -> None:
        was_open = self._is_open
        self._is_open, self._is_over = False, True
        if not self.opened.done():
            self.opened.set_exception(error)
            self._raw.close()
        else:
            self._raw.abort()
            if was_open:
                self._talking.connection_lost(error)


_ROOMS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview]] = WeakKeyDictionary()


def _room() -> memoryview:
    """The running loop's: a read is over before the next begins."""
    loop = asyncio.get_running_loop()
    room = _ROOMS.get(loop)
    if room is None:
        room = _ROOMS[loop] = memoryview(bytearray(_READ))
    return room


def _seen(opened: asyncio.Future[None]) -> None:
    """Who opens it may have given up before there was anything to wait for."""
    if not opened.cancelled():
        opened.exception()
