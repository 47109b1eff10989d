"""Reads files that people name in configurations, and says what is wrong with those that cannot be read."""

from __future__ import annotations

from pathlib import Path

from setpoint.errors import ConfigError


def read_file(path: Path, what: str, doing: str, error_type: type[ConfigError] = ConfigError) -> bytes:
    """The file's bytes, read blocking; ``what`` is how an error speaks of it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise error_type(doing, f"{what} does not exist", advice="correct the path") from None
    except IsADirectoryError:
        raise error_type(doing, f"{what} is a directory, not a file", advice="correct the path") from None
    except PermissionError:
        raise error_type(
            doing, f"{what} may not be read by this user", advice="change its owner or mode"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise error_type(doing, f"{what} cannot be read: {why}", advice="correct the path") from None


def is_there(path: Path) -> bool:
    """Whether there is something to open, even if opening it will fail and say why."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return True
