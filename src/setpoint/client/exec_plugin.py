"""Runs a credential plugin once: a program that prints who we are.

Promises:

1. The event loop never waits for the plugin, and nobody waits past the deadline: a plugin that hangs is
   killed, with everything it started.
2. What it prints is bounded: an endless answer is cut off and refused.
3. Whatever goes wrong is a ``CredentialError`` that names the command, what it did, its last words on stderr
   and what to do.  What it printed on stdout is never shown, nor are its arguments and environment: all of
   them may hold secrets.

What it is told and may answer: ``exec_credential.py``.  When to run it, and how long its answer is good for,
is decided in ``auth.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from setpoint.client.exec_credential import ExecPlugin, Issued, exec_info, read_answer
from setpoint.errors import CredentialError

MAX_ANSWER = 2**20  # bytes; a token or a certificate chain is a few thousand
LAST_WORDS = 10  # lines of stderr shown
_STDERR_KEPT = 8 * 2**10
_LINE_SHOWN = 300  # characters
_LINGER = (
    1.0  # seconds for output to end after the plugin itself has: a helper it left may hold the pipe open
)


async def run(plugin: ExecPlugin, cluster: Mapping[str, Any], doing: str, timeout: float) -> Issued:
    """Run the plugin and read what it prints.  ``doing`` begins every error."""
    doing = f"{doing}: run credential plugin {plugin.command}"
    interactive = _is_interactive(plugin, doing)
    info = exec_info(plugin, cluster, interactive=interactive)
    ended = await _run(plugin, {"KUBERNETES_EXEC_INFO": info}, doing, timeout, interactive=interactive)
    if ended.code != 0:
        how = f"it ended with exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code} ended it"
        raise _failed(doing, plugin, how, ended.stderr)
    try:
        return read_answer(ended.stdout, plugin.api_version)
    except ValueError as error:
        raise _failed(doing, plugin, str(error), ended.stderr) from None


def _is_interactive(plugin: ExecPlugin, doing: str) -> bool:
    """Whether the plugin may talk to whoever sits at the terminal."""
    if plugin.interactive_mode == "Never":
        return False
    at_terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not at_terminal:
        raise CredentialError(
            doing,
            "it needs a terminal (interactiveMode: Always), and standard input is none",
            advice="run this program in a terminal, or use credentials that need no one to ask",
        )
    return at_terminal


@dataclass(frozen=True, slots=True)
class _Ended:
    code: int
    stdout: bytes = field(repr=False)
    stderr: bytes


class _Listener(asyncio.SubprocessProtocol):
    """Hears what the plugin prints, and that it ended."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.over = asyncio.Event()  # the process ended, or printed too much
        self.ended = asyncio.Event()  # the process ended
        self.silent = asyncio.Event()  # and its output ended too

    def is_too_long(self) -> bool:
        return len(self.stdout) > MAX_ANSWER

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            self.stderr += data
            del self.stderr[:-_STDERR_KEPT]
        elif not self.is_too_long():
            self.stdout += data
        if self.is_too_long():
            self.over.set()

    def process_exited(self) -> None:
        self.over.set()
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 how a pipe closed tells nothing
        self.over.set()
        self.ended.set()
        self.silent.set()


async def _run(
    plugin: ExecPlugin, env: Mapping[str, str], doing: str, timeout: float, *, interactive: bool
) -> _Ended:
    loop = asyncio.get_running_loop()
    try:
        transport, heard = await loop.subprocess_exec(
            _Listener,
            plugin.command,
            *plugin.args,
            # At a terminal the plugin asks its questions there; else it must not wait for anyone.
            stdin=None if interactive else subprocess.DEVNULL,
            stderr=None if interactive else subprocess.PIPE,
            env={**os.environ, **dict(plugin.env), **env},
            # A session of its own can be killed with all that it started; but it would have no terminal.
            start_new_session=not interactive,
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL among the arguments
        raise _not_started(doing, plugin, error) from None
    try:
        async with asyncio.timeout(timeout):
            await heard.over.wait()
        if not heard.is_too_long():
            await _briefly(heard.silent)
    except TimeoutError:
        raise _failed(
            doing, plugin, f"it did not end within {timeout:g} s and was killed", heard.stderr
        ) from None
    finally:
        await _end(transport, heard, whole_session=not interactive)
    if heard.is_too_long():
        raise _failed(doing, plugin, f"it printed more than {MAX_ANSWER} bytes and was killed", heard.stderr)
    code = transport.get_returncode()
    if code is None:
        raise AssertionError("a plugin that is over has an exit code")
    return _Ended(code, bytes(heard.stdout), bytes(heard.stderr))


async def _end(transport: asyncio.SubprocessTransport, heard: _Listener, *, whole_session: bool) -> None:
    """Leave nothing of the plugin running, and nothing open."""
    if transport.get_returncode() is None:
        with contextlib.suppress(ProcessLookupError):
            if whole_session:
                os.killpg(transport.get_pid(), signal.SIGKILL)
            else:
                transport.kill()
        await _briefly(heard.ended)
    transport.close()
    await _briefly(heard.silent)


async def _briefly(event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER):
            await event.wait()


def _not_started(doing: str, plugin: ExecPlugin, error: OSError | ValueError) -> CredentialError:
    if isinstance(error, FileNotFoundError):
        where = "" if "/" in plugin.command else " in PATH"
        hint = _printable(plugin.install_hint)
        return CredentialError(
            doing,
            f"there is no such program{where}",
            advice=hint or "install it where this program runs, or use credentials that need no plugin",
        )
    if isinstance(error, PermissionError):
        return CredentialError(doing, "it may not be executed", advice="make it executable: chmod +x")
    why = error.strerror if isinstance(error, OSError) else str(error)
    return CredentialError(doing, f"it could not be started: {why}")


def _failed(doing: str, plugin: ExecPlugin, what: str, stderr: bytes | bytearray) -> CredentialError:
    words = _last_words(stderr)
    said = f"; its last words on stderr:\n{words}\n" if words else "; it said nothing on stderr"
    hint = _printable(plugin.install_hint)
    return CredentialError(
        doing,
        what + said,
        advice="run it by hand to see what it needs; it may want a new login" + (f"; {hint}" if hint else ""),
    )


def _last_words(stderr: bytes | bytearray) -> str:
    lines = [_printable(line)[:_LINE_SHOWN] for line in bytes(stderr).decode(errors="replace").splitlines()]
    return "\n".join(f"  {line}" for line in [line for line in lines if line][-LAST_WORDS:])


def _printable(text: str) -> str:
    """Without what could move a terminal's cursor or change its colours."""
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()
