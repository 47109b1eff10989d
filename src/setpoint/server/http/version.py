"""What we say we are: the Kubernetes release whose API this is, in the form that clients parse."""

from __future__ import annotations

import platform
import sys
from typing import Final

import msgspec

from setpoint.server.registry.facts import release

_ARCHITECTURES: Final = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}


def version() -> bytes:
    major, minor, _ = release().removeprefix("v").split(".")
    machine = platform.machine()
    return msgspec.json.encode(
        {
            "major": major,
            "minor": minor,
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": str(int(minor) - 1),
            "gitVersion": release(),
            "gitCommit": "unknown",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "none",
            "compiler": "setpoint",
            "platform": f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}",
        }
    )
