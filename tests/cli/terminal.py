"""A real terminal, for tests of the commands that draw on one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pexpect

_STYLE = r"(?:\x1b\[[0-9;]*m)*"  # may stand between any two characters


class Terminal:
    """A command on a terminal of so many columns and lines."""

    def __init__(self, child: pexpect.spawn[str]) -> None:
        self._child = child

    def sees(self, text: str, end: str = "") -> None:
        """Wait until ``text`` is shown, in whatever colours, followed by the pattern ``end``."""
        try:
            self._child.expect(_STYLE.join(map(re.escape, text)) + _STYLE + end)
        except (pexpect.TIMEOUT, pexpect.EOF):
            shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._child.before or "")
            raise AssertionError(f"{text!r} was not shown; but: {shown[-3000:]}") from None

    def resize(self, width: int, height: int) -> None:
        self._child.setwinsize(height, width)

    def interrupt(self) -> None:
        self._child.sendcontrol("c")

    def status(self) -> int | None:
        """Wait for the end; the exit code."""
        self._child.expect(pexpect.EOF)
        self._child.wait()
        return self._child.exitstatus


@contextmanager
def terminal(*arguments: str, width: int = 120, height: int = 40) -> Iterator[Terminal]:
    """``setpoint`` with these arguments; it ends with the block, whatever happens."""
    env = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "KUBECONFIG"):
        env.pop(name, None)
    child = pexpect.spawn(
        sys.executable,
        ["-m", "setpoint.cli.main", *arguments],
        env=env,
        dimensions=(height, width),
        encoding="utf-8",
        timeout=60,
    )
    try:
        yield Terminal(child)
    finally:
        child.close(force=True)
