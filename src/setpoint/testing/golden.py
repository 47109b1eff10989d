"""Compares what a test found with what was found before, and kept in a file for people to read.

The file is YAML.  What counts are its values, not how it is laid out.  A file that is not there fails the
test: who writes what he compares with has compared nothing.  Values of Secrets are neither written nor
compared: such files are committed.  ``update`` writes it, which the option
``--setpoint-update`` of ``plugin.py`` asks for; read the difference before you commit it.
"""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import Any

from setpoint.api import yaml
from setpoint.testing.proof.redaction import redacted_state


def assert_matches(snapshot: dict[str, Any], path: Path | str, *, update: bool = False) -> None:
    """AssertionError, with the difference, unless the file holds this ``snapshot`` of a cluster."""
    __tracebackhide__ = True
    file = Path(path)
    got = yaml.dump(_sorted(redacted_state(snapshot)))
    if update:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(got, encoding="utf-8")
        return
    if not file.exists():
        raise AssertionError(f"compare with {file}: it is not there; pytest --setpoint-update writes it")
    expected = yaml.dump(_sorted(redacted_state(yaml.load(file.read_bytes()) or {})))
    if got != expected:
        lines = unified_diff(
            expected.splitlines(), got.splitlines(), f"{file}, as kept", "as it is now", lineterm=""
        )
        raise AssertionError(
            f"compare with {file}: it is not the same (pytest --setpoint-update keeps what is now)\n"
            + "\n".join(lines)
        )


def _sorted(value: Any) -> Any:
    """The order of keys says nothing."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
