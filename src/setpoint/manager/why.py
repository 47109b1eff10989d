"""Tells on request why an object is as it is: what was last seen of it, done about it, and is waited for.

A running operator listens on a socket that only its own user can reach; ``setpoint why`` asks there.

1. The journal is bounded: the last ``LOOKS`` reconciles of each of the last ``KEYS`` keys.
2. An answer has no object's data in it, only what is known about the work: versions, reasons, errors, times.
3. Whoever asks gets an answer in bounded time.  Nothing of this can stop the operator: where no socket can be
   made, that is logged.

The socket is ``OPERATOR-PID.sock`` in a folder of the user's own: ``setpoint`` in XDG_RUNTIME_DIR, or
``setpoint-UID`` where temporary files are.  One question and one answer, each a line of JSON.

Fed by the controllers; asked by ``cli/why.py``, which also words the answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import stat
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

from setpoint.api.names import GroupVersionKind, Key
from setpoint.cache.cache import Cache
from setpoint.controller.controller import ControllerStats
from setpoint.controller.worker import Looked
from setpoint.errors import ConfigError
from setpoint.manager.lifecycle import Group

LOOKS = 10
KEYS = 2_000
_MOST_ASKED = 4 * 2**10
_MOST_ANSWERED = 4 * 2**20
_MOST_CONNECTIONS = 8
_TIMEOUT = 5.0
_LONGEST_PATH = 100  # of a socket, in bytes; Linux takes 107, macOS 103

log = logging.getLogger("setpoint.why")


class Journal:
    """What came of the last reconciles."""

    def __init__(self, *, looks: int = LOOKS, keys: int = KEYS) -> None:
        self._looks = looks
        self._keys = keys
        self._entries: dict[tuple[str, Key], deque[Looked]] = {}  # the key looked at last stands last

    def __repr__(self) -> str:
        return f"<Journal of {len(self._entries)} keys>"

    def record(self, controller: str, request: Key, looked: Looked) -> None:
        """A reconcile has ended."""
        looks = self._entries.pop((controller, request), None) or deque(maxlen=self._looks)
        looks.append(looked)
        self._entries[controller, request] = looks
        if len(self._entries) > self._keys:
            del self._entries[next(iter(self._entries))]

    def of(self, controller: str, request: Key) -> Sequence[Looked]:
        """The last ones, the newest last."""
        return tuple(self._entries.get((controller, request), ()))


class Explained(Protocol):
    """What must be known of a controller."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> Sequence[GroupVersionKind]:
        """What it watches, the kind it is for first."""

    def stats(self) -> ControllerStats: ...


def explain(
    kind: str, key: Key, *, controllers: Iterable[Explained], cache: Cache, journal: Journal, now: float
) -> dict[str, Any]:
    """All that is known about one object, as JSON."""
    known = list(controllers)
    concerned = [each for each in known if each.name == kind.lower() or _is_called(each.kinds[:1], kind)]
    if not concerned:
        watching = [each.name for each in known if _is_called(each.kinds, kind)]
        return {"controllers": [], "watched_by": watching, "known": [each.name for each in known]}
    return {
        "controllers": [_told(each, key, cache, journal, now) for each in concerned],
        "watches": [
            {
                "scope": str(each.scope),
                "is_synced": each.is_synced,
                "silent_for": round(each.last_event_age_seconds, 3),
                "problem": None if each.problem is None else str(each.problem),
            }
            for each in cache.stats()
            if any(each.scope.gvk in controller.kinds for controller in concerned)
        ],
    }


def _is_called(kinds: Sequence[GroupVersionKind], name: str) -> bool:
    """Whether a name is that of one of the kinds: ``WebApp``, ``webapps``, ``webapps.demo.dev``."""
    word, _, group = name.lower().partition(".")
    for gvk in kinds:
        singular = gvk.kind.lower()
        plurals = {singular, f"{singular}s", f"{singular}es", f"{singular[:-1]}ies"}
        if word in plurals and group in ("", gvk.group):
            return True
    return False


def _told(controller: Explained, key: Key, cache: Cache, journal: Journal, now: float) -> dict[str, Any]:
    stats, looks = controller.stats(), journal.of(controller.name, key)
    again_in = looks[-1].again_in if looks else None
    return {
        "name": controller.name,
        "is_working": stats.is_working,
        "problems": list(stats.problems),
        "object": _seen(controller.kinds[:1], key, cache),
        "running_for": stats.running.get(key),
        "next_in": None if again_in is None else round(max(0.0, looks[-1].at + again_in - now), 3),
        "failures": looks[-1].failures if looks else 0,
        "looks": [
            {
                "id": look.id,
                "ago": round(now - look.at, 3),
                "seconds": round(look.seconds, 6),
                "result": look.came_to,
                "error": look.error,
                "failures": look.failures,
                "reasons": [str(reason) for reason in look.reasons],
                "wrote": [str(written) for written in look.wrote],
            }
            for look in looks
        ],
    }


def _seen(kinds: Sequence[GroupVersionKind], key: Key, cache: Cache) -> dict[str, Any] | None:
    """What the cache has of the object; None if it is not there."""
    for gvk in kinds:
        for informer in cache.holds(gvk):
            snapshot = informer.store.get(key)
            if snapshot is not None:
                metadata = snapshot.metadata
                return {
                    "uid": metadata.uid,
                    "resourceVersion": metadata.resource_version,
                    "generation": metadata.generation,
                    "deletionTimestamp": metadata.deletion_timestamp,
                    "finalizers": list(metadata.finalizers or ()),
                }
    return None


# The socket.


def folder(env: Mapping[str, str] | None = None) -> Path:
    """Where this user's operators have their sockets."""
    env = os.environ if env is None else env
    runtime = env.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "setpoint"
    return Path(tempfile.gettempdir()) / f"setpoint-{os.getuid()}"


def make_folder(path: Path) -> None:
    """Make it, for this user alone.  One that others can write to is refused: they could answer for us."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigError(
            f"use the folder {path} for sockets",
            "it is not a folder that is this user's alone",
            advice="remove it, or set XDG_RUNTIME_DIR",
        )


class WhyServer:
    """Answers questions as long as it runs."""

    group = Group.SERVERS
    name = "why"

    def __init__(
        self, operator: str, answer: Callable[[str, Key], dict[str, Any]], *, where: Path | None = None
    ) -> None:
        self._operator = operator
        self._answer = answer
        self._folder = folder() if where is None else where
        self._serving: set[asyncio.Task[None]] = set()
        self._done = asyncio.Event()
        self.path: Path | None = None  # of the socket, while there is one

    def __repr__(self) -> str:
        return f"<WhyServer at {self.path or 'no address'}>"

    async def wait_ready(self) -> None:
        """Wait until it listens, or is known not to."""
        await self._done.wait()

    async def run(self) -> None:
        """Answer until cancelled."""
        try:
            make_folder(self._folder)
            listening, path = self._listen()
            server = await asyncio.start_unix_server(self._accept, sock=listening, limit=_MOST_ASKED)
        except (OSError, ConfigError) as error:
            log.warning("`setpoint why` cannot ask this process: %s", error)
            self._done.set()
            return
        self.path = path
        self._done.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.path = None
            server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)
            await server.wait_closed()
            with suppress(OSError):
                path.unlink()

    def _listen(self) -> tuple[socket.socket, Path]:
        """A socket that listens, and its name.  It gets that last: who has one and is silent is removed."""
        listening = socket.socket(socket.AF_UNIX)
        made = self._folder / f".{token_hex(4)}"
        try:
            listening.bind(os.fspath(made))
            made.chmod(0o600)
            listening.listen()
            return listening, self._publish(made)
        except BaseException:
            listening.close()
            raise
        finally:
            made.unlink(missing_ok=True)

    def _publish(self, made: Path) -> Path:
        """Give a socket the first name that is free."""
        stem = f"{self._operator}-{os.getpid()}"
        stem = stem[-max(8, _LONGEST_PATH - len(bytes(self._folder)) - len("/-00.sock")) :].lstrip("-.")
        for number in count():
            path = self._folder / (f"{stem}.sock" if number == 0 else f"{stem}-{number}.sock")
            if not _is_answered(path):
                with suppress(FileExistsError):  # somebody was faster
                    path.hardlink_to(made)
                    return path
        raise AssertionError("there are always more numbers")

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) >= _MOST_CONNECTIONS:
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT):
                writer.write(json.dumps(self._respond(await reader.readline())).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, TimeoutError) as error:
            log.debug("a question was not answered: %s", error)
        except Exception:
            log.exception("a question could not be answered")
        finally:
            writer.close()

    def _respond(self, line: bytes) -> dict[str, Any]:
        asked = json.loads(line)
        try:
            kind, namespace, name = (str(asked[word]) for word in ("kind", "namespace", "name"))
        except (KeyError, TypeError):
            return {"error": "a question has kind, namespace and name"}
        told = self._answer(kind, Key(namespace, name))
        return {"operator": self._operator, "pid": os.getpid(), **told}


# Asking.


def _is_answered(path: Path) -> bool:
    """Whether somebody listens there; what one that was killed left behind is removed."""
    if _listens(path):
        return True
    # Another may take the name just now, and must not be removed in place of the dead.
    taken = path.with_name(f".{token_hex(4)}")
    with suppress(FileNotFoundError):
        path.rename(taken)
        if _listens(taken):
            with suppress(FileExistsError):
                path.hardlink_to(taken)
        taken.unlink()
    return path.exists()


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_TIMEOUT)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # it has too much to do
    return True


def sockets(operator: str = "", *, where: Path | None = None) -> list[Path]:
    """The sockets of the operators that are running, of one name or all."""
    home = folder() if where is None else where
    return sorted(
        path
        for path in (home.glob("*.sock") if home.is_dir() else ())
        if (not operator or path.name.startswith(f"{operator}-")) and _is_answered(path)
    )


async def ask(path: Path, kind: str, key: Key) -> dict[str, Any] | None:
    """What the operator behind a socket answers; None if nobody is there any more."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(path, limit=_MOST_ANSWERED)
            try:
                question = {"kind": kind, "namespace": key.namespace, "name": key.name}
                writer.write(json.dumps(question).encode() + b"\n")
                answer = await reader.readline()
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    except (ConnectionRefusedError, FileNotFoundError):
        return None
    return dict(json.loads(answer)) if answer else None
