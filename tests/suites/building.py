"""Builds what others wrote in Go, without taking the machine: two threads, a cache of its own.

The cache lies outside the work tree, beside the programs of ``make kube``, and may be deleted at any time.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setpoint" / "suites"
_LONGEST: Final = 1_800.0  # seconds: a cold build fetches and compiles all of client-go
_SPARING: Final = {"GOMAXPROCS": "2", "CGO_ENABLED": "0"}


def run(command: list[str], *, cwd: Path) -> str:
    """What it says; it must end well."""
    ran = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **_SPARING},
        capture_output=True,
        text=True,
        timeout=_LONGEST,
        check=False,
    )
    assert ran.returncode == 0, f"{' '.join(command)}: {ran.stderr[-2_000:]}"
    return ran.stdout
