"""The command ``setpoint``: what can be done from a shell.  ``main.py`` holds it together."""

from __future__ import annotations

__all__: list[str] = []
