"""Several streams in one: how the messages of exec, attach and port-forward are put together and taken apart.

Every message begins with the number of its channel.  For exec and attach these are stdin, stdout, stderr, the
outcome (a Status, whole only once the stream has ended) and the size of the terminal.  For port-forward there
is a pair, data and errors, each of which begins with the port's number in two bytes.  A message without data
says that the channel is open, and nothing else.

``v5.channel.k8s.io`` (Kubernetes 1.30 and later) is ``v4.channel.k8s.io`` with one thing more: the message
255, n ends channel n.  Under v4 a command that reads stdin to its end never gets there.

Pure: bytes in, bytes and errors out.  ``streams.py`` sends and receives them.
"""

from __future__ import annotations

import msgspec

from setpoint.api.decoders import prepare
from setpoint.errors import StreamFailed

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"

STDIN, STDOUT, STDERR, OUTCOME, RESIZE = range(5)
_CLOSE = 255
_PORT_SIZE = 2


def frame(channel: int, data: bytes) -> bytes:
    """The message that carries ``data`` on a channel."""
    return bytes((channel,)) + data


def split(message: bytes) -> tuple[int, bytes]:
    """A message's channel and data; an empty message is data for nobody."""
    return (message[0], message[1:]) if message else (-1, b"")


def closing(channel: int) -> bytes:
    """The message that ends a channel from our side; v5 only."""
    return bytes((_CLOSE, channel))


def resizing(width: int, height: int) -> bytes:
    """The message that says how large the terminal is, in characters."""
    if not (0 < width < 2**16 and 0 < height < 2**16):
        raise ValueError(f"a terminal has 1 to 65535 columns and rows, not {width} and {height}")
    return frame(RESIZE, msgspec.json.encode({"Width": width, "Height": height}))


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    status: str
    message: str = ""
    reason: str = ""
    details: _Details | None = None


def exit_code(doing: str, outcome: bytes) -> int:
    """What the command ended with.  One that could not be run, or not to its end, is ``StreamFailed``."""
    try:
        status = msgspec.json.decode(outcome, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = outcome[:200].decode("utf-8", "replace")
        raise StreamFailed(doing, f"the server ended with what is no Status: {said!r}") from None
    if status.status == "Success":
        return 0
    if status.reason == "NonZeroExitCode" and status.details:
        for cause in status.details.causes or ():
            if cause.reason == "ExitCode" and cause.message.isdecimal():
                return int(cause.message)
    raise StreamFailed(doing, status.message or status.reason or "failed, without a word")


class ForwardedPort:
    """One port's pair of channels: what arrives, without the port numbers that stand in front."""

    def __init__(self, doing: str, port: int) -> None:
        self._doing = doing
        self._port = port
        self._fronts = [b"", b""]  # of data and of errors, until whole

    def take(self, message: bytes) -> bytes:
        """The data in a message; words on the error channel are ``StreamFailed``."""
        channel, data = split(message)
        if channel not in (0, 1):
            return b""
        data = self._after_front(channel, data)
        if channel == 1 and data:
            raise StreamFailed(self._doing, data[:500].decode("utf-8", "replace").strip())
        return data

    def _after_front(self, channel: int, data: bytes) -> bytes:
        missing = _PORT_SIZE - len(self._fronts[channel])
        if not missing:
            return data
        self._fronts[channel] += data[:missing]
        front = self._fronts[channel]
        if len(front) == _PORT_SIZE and int.from_bytes(front, "little") != self._port:
            raise StreamFailed(self._doing, f"the server speaks of another port than {self._port}: {front!r}")
        return data[missing:]


prepare(_Status)
