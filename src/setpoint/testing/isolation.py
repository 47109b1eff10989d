"""Keeps code under test inside this process: refuses its sockets, name lookups and programs.

    isolation = Isolation(Allowed.of(network=["db.local:5432"], programs=["git"]))
    with isolation:
        ...  # what runs here, and every task and thread that it starts

1. A Python audit hook sees the call, whichever library makes it: ``socket``, asyncio, ``requests``, httpx.
2. Only the code of the block is refused: its context, tasks with a copy of that, what it hands to a pool of
   threads, and threads started there, for as long as they live.  Everybody else connects as ever.
3. A refused call raises ``ExternalCallRefused`` and is recorded in ``refused``: code that catches the error
   is found all the same.
4. ``exempt`` lifts the isolation for our own connection, that of a client to its API server.

Not seen: C libraries with sockets of their own (libpq, gRPC, libcurl).  What a program that is allowed does
is not seen either.  Lookups of this machine's own name, and what ``platform`` and ``uuid`` ask it, pass.

Entered by ``proof/process.py`` for every operator, by ``cli/prove.py`` while a file is imported, and by
``plugin.py`` for ``virtual_time``.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from functools import cache, wraps
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from sysconfig import get_paths
from types import FrameType, TracebackType
from typing import Any, Final, NoReturn, Self, TypeVar
from weakref import WeakKeyDictionary

from setpoint.errors import SetpointError

T = TypeVar("T")

_LOOPBACK: Final = ("127.0.0.1", "::1")
_MAX_REFUSED: Final = 100  # different ones that are recorded
_ABOUT_THE_MACHINE: Final = {"ctypes.util", "platform", "uuid"}  # the standard library, reading facts
_FORK: Final = "fork"  # as a program is called that is a copy of this one


class ExternalCallRefused(SetpointError):
    """Code under test tried to reach something outside of this process."""

    advice = "model the system with setpoint.testing.Cloud"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One call that was refused."""

    doing: str  # "connect to 203.0.113.7:443"
    where: str  # the line that asked for it: "webapp.py:31, in reconcile"
    option: str  # "network" or "program": what would allow it
    value: str

    def error(self) -> ExternalCallRefused:
        advice = (
            f"{ExternalCallRefused.advice}, or allow it: --allow-{self.option} {self.value}, "
            f"allow_{self.option}=[{self.value!r}]"
        )
        doing = f"{self.doing} ({self.where})" if self.where else self.doing
        return ExternalCallRefused(doing, "refused: nothing outside may be touched here", advice=advice)

    def __str__(self) -> str:
        return str(self.error())


Refused = dict[str, Refusal]  # by what they say, in the order of the first of each


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be reached all the same: addresses, paths of Unix sockets, programs."""

    addresses: frozenset[tuple[str, int | None]] = frozenset()
    paths: frozenset[str] = frozenset()
    programs: frozenset[str] = frozenset()

    @classmethod
    def of(cls, network: Iterable[str] = (), programs: Iterable[str] = ()) -> Self:
        """Read ``HOST``, ``HOST:PORT`` and paths of sockets; ValueError says what is none of them."""
        addresses, paths = set[tuple[str, int | None]](), set[str]()
        for each in network:
            if each.startswith(("/", "@")):
                paths.add(each)
            else:
                addresses.add(_read_address(each))
        addresses |= {(ip, port) for host, port in addresses if host == "localhost" for ip in _LOOPBACK}
        return cls(frozenset(addresses), frozenset(paths), frozenset(programs))

    def has_host(self, host: str) -> bool:
        """Whether a name may be looked up: some port of it is allowed."""
        return any(_plain(host) == known for known, _ in self.addresses)

    def has(self, host: str, port: int | None) -> bool:
        plain = _plain(host)
        return (plain, None) in self.addresses or (plain, port) in self.addresses


def _read_address(text: str) -> tuple[str, int | None]:
    host, port = text, ""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
        if not port:
            host = ""
    if not host or "/" in text or (port and not (port.isascii() and port.isdigit() and int(port) < 65536)):
        raise ValueError(f"{text!r} is no address: give HOST, HOST:PORT or the path of a Unix socket")
    return _plain(host), int(port) if port else None


def _plain(host: str) -> str:
    """A host in the one form in which it is compared."""
    host = host.lower().removesuffix(".").partition("%")[0]
    try:
        ip = ip_address(host)
    except ValueError:
        return host
    return str((isinstance(ip, IPv6Address) and ip.ipv4_mapped) or ip)


class Isolation:
    """What code may reach, and what it was refused; the block of a ``with`` is such code.

    Refusals are recorded in ``refused``, and in those of other isolations that ``also`` want to know.
    """

    def __init__(
        self, allowed: Allowed | None = None, refused: Refused | None = None, *also: Refused
    ) -> None:
        self.allowed = Allowed() if allowed is None else allowed
        self.refused: Refused = {} if refused is None else refused
        self._records = (self.refused, *also)
        self._resolved: set[tuple[str, int | None]] = set()  # addresses of names that are allowed
        self._tokens: list[Token[Isolation | None]] = []

    def __repr__(self) -> str:
        return f"<Isolation: {len(self.refused)} calls refused>"

    def __enter__(self) -> Self:
        _install()
        self._tokens.append(_current.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())

    def call(self, function: Callable[[], T]) -> T:
        """Call a function inside, unless the caller is isolated already."""
        if _current.get() is not None:
            return function()
        with self:
            return function()

    def enter_context(self) -> None:
        """Isolate the current context for good: that of a task, say."""
        _install()
        _current.set(self)

    # ---- asked by the audit hook

    def connect(self, verb: str, address: Any) -> None:
        """Whether a socket may reach, or be found at, an address."""
        if isinstance(address, str | bytes):
            path = os.fsdecode(address).replace("\0", "@", 1)
            if path not in self.allowed.paths:
                self._refuse(f"{verb} the Unix socket {path}", "network", path)
            return
        host, port = _host_and_port(address)
        if (
            not self.allowed.has(host, port)
            and not {(_plain(host), port), (_plain(host), None)} & self._resolved
        ):
            self._refuse(f"{verb} {_joined(host, port)}", "network", _joined(host, port))

    def look_up(self, host: Any, port: Any = None) -> None:
        """Whether a name may be looked up; what has the form of an address needs no lookup."""
        name = os.fsdecode(host) if isinstance(host, str | bytes) else ""
        if not name or _is_ip(name) or name == socket.gethostname():
            return
        if not self.allowed.has_host(name):
            value = _joined(name, port if isinstance(port, int) and port else None)
            self._refuse(f"look up {name}", "network", value)
        ports = {each for known, each in self.allowed.addresses if known == _plain(name)}
        with exempt():
            found = socket.getaddrinfo(name, None)
        self._resolved |= {(_plain(str(each[4][0])), allowed) for each in found for allowed in ports}

    def run_program(self, program: Any, shown: str = "") -> None:
        name = (
            Path(os.fsdecode(program)).name
            if isinstance(program, str | bytes | os.PathLike)
            else str(program)
        )
        if name in self.allowed.programs or _asks_about_the_machine():
            return
        self._refuse(f"run {shown or name}", "program", name)

    def _refuse(self, doing: str, option: str, value: str) -> NoReturn:
        refusal = Refusal(doing, _where(), option, value)
        for record in self._records:
            if len(record) < _MAX_REFUSED:
                record.setdefault(str(refusal), refusal)
        raise refusal.error()


@contextmanager
def exempt() -> Iterator[None]:
    """Lift the isolation for the time of the block: what is reached there is our own."""
    token = _current.set(_NOBODY)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Isolation | None:
    """The isolation that this code runs in; None where it may reach everything."""
    found = _current.get()
    if found is None:
        found = _threads.get(threading.current_thread())
    return None if found is _NOBODY else found


_NOBODY: Final = Isolation()
_current: ContextVar[Isolation | None] = ContextVar("setpoint_isolation", default=None)
_threads: WeakKeyDictionary[threading.Thread, Isolation] = WeakKeyDictionary()  # started inside of one


# ---- the hook


def _audit(event: str, args: tuple[Any, ...], checks: dict[str, Callable[..., None]]) -> None:
    check = checks.get(event)
    if check is not None and (isolation := current()) is not None:
        check(isolation, *args)


def _reaches(verb: str) -> Callable[..., None]:
    """A check of a socket that reaches, or is found at, an address; None: it is connected already."""

    def check(isolation: Isolation, used: Any, address: Any) -> None:
        try:
            if address is not None:
                isolation.connect(verb, address)
        except ExternalCallRefused:
            used.close()  # as libraries do themselves, but for an OSError alone
            raise

    return check


def _shell(isolation: Isolation, command: Any) -> None:
    isolation.run_program("sh", f"sh -c {os.fsdecode(command)}")


def _popen(isolation: Isolation, executable: Any, args: Any, *_rest: Any) -> None:
    given = args if isinstance(args, list | tuple) else [args]
    shown = " ".join(os.fsdecode(each) for each in given[:3] if isinstance(each, str | bytes | os.PathLike))
    isolation.run_program(executable or (given[0] if given else ""), shown)


_CHECKS: Final[dict[str, Callable[..., None]]] = {
    "socket.connect": _reaches("connect to"),
    "socket.sendto": _reaches("send to"),
    "socket.sendmsg": _reaches("send to"),
    "socket.bind": _reaches("listen at"),
    "socket.getaddrinfo": lambda isolation, host, port, *_rest: isolation.look_up(host, port),
    "socket.gethostbyname": lambda isolation, host: isolation.look_up(host),
    "socket.gethostbyaddr": lambda isolation, host: isolation.look_up(host),
    "subprocess.Popen": _popen,
    "os.exec": lambda isolation, path, *_rest: isolation.run_program(path),
    "os.fork": lambda isolation: isolation.run_program(_FORK),
    "os.forkpty": lambda isolation: isolation.run_program(_FORK),
    "os.posix_spawn": lambda isolation, path, *_rest: isolation.run_program(path),
    "os.spawn": lambda isolation, _mode, path, *_rest: isolation.run_program(path),
    "os.system": _shell,
    "setpoint.fork_exec": lambda isolation, argv: isolation.run_program(argv[0] if argv else ""),
}


@cache
def _install() -> None:
    """Add the hook to this process, once: Python has no way to remove one."""
    checks = _CHECKS  # by the end of the process, the names of a module are gone
    audit = _audit

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in checks:
            audit(event, args, checks)

    sys.addaudithook(hook)
    _audit_multiprocessing()
    _follow_threads()


def _follow_threads() -> None:
    """Have threads, and what is handed to a pool of them, be isolated as who started them is."""
    start = threading.Thread.start
    submit: Any = ThreadPoolExecutor.submit

    @wraps(start)
    def started(thread: threading.Thread) -> None:
        if (isolation := current()) is not None:
            _threads[thread] = isolation
        start(thread)

    @wraps(submit)
    def submitted(pool: ThreadPoolExecutor, function: Any, /, *args: Any, **named: Any) -> Any:
        isolation = current()
        if isolation is None:
            return submit(pool, function, *args, **named)
        with exempt():  # its threads are everybody's
            return submit(pool, _isolated, isolation, function, *args, **named)

    threading.Thread.start = started  # type: ignore[assignment, method-assign]
    ThreadPoolExecutor.submit = submitted  # type: ignore[assignment, method-assign]


def _isolated(isolation: Isolation, function: Callable[..., T], /, *args: Any, **named: Any) -> T:
    token = _current.set(isolation)
    try:
        return function(*args, **named)
    finally:
        _current.reset(token)


def _audit_multiprocessing() -> None:
    """Have the hook see what ``multiprocessing`` starts with ``spawn``: Python has no event for that."""
    try:
        import _posixsubprocess as posix  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    fork_exec = posix.fork_exec

    def audited(args: Any, *rest: Any) -> int:
        sys.audit("setpoint.fork_exec", args)
        return fork_exec(args, *rest)

    posix.fork_exec = audited


# ---- words


def _host_and_port(address: Any) -> tuple[str, int | None]:
    if isinstance(address, tuple) and len(address) >= 2 and isinstance(address[1], int):
        host = address[0]
        return os.fsdecode(host) if isinstance(host, str | bytes) else repr(host), address[1]
    return repr(address), None


def _joined(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host and port is not None else host
    return shown if port is None else f"{shown}:{port}"


def _is_ip(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - how the standard library does it
    while frame is not None:
        yield frame
        frame = frame.f_back


def _asks_about_the_machine() -> bool:
    return any(frame.f_globals.get("__name__") in _ABOUT_THE_MACHINE for frame in _frames())


def _where() -> str:
    """The innermost line that is neither ours, nor the standard library's, nor installed; "" if none is."""
    for frame in _frames():
        file = frame.f_code.co_filename
        if not file.startswith("<") and not file.startswith(_NOT_THEIRS) and "site-packages" not in file:
            return f"{Path(file).name}:{frame.f_lineno}, in {frame.f_code.co_name}"
    return ""


_NOT_THEIRS: Final = (
    str(Path(__file__).parent.parent),
    *(get_paths()[name] for name in ("stdlib", "platstdlib")),
)
