"""Which loop a test runs in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setpoint.testing.virtual_time import VirtualTimeLoop

__all__ = ["VirtualTimeLoop", "loop_options"]


def loop_options(virtual: bool) -> Mapping[str, Any]:
    return {"loop_factory": VirtualTimeLoop} if virtual else {}
