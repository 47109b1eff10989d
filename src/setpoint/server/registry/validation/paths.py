"""What is wrong with a path in a file system: relative, absolute, upwards."""

from __future__ import annotations

from setpoint.server.registry.validation.found import Found


def check_no_backsteps(path: str, at: str, found: Found) -> None:
    if ".." in path.split("/"):
        found.invalid(at, path, "must not contain '..'")


def check_descending(path: str, at: str, found: Found) -> None:
    if path.startswith("/"):
        found.invalid(at, path, "must be a relative path")
    check_no_backsteps(path, at, found)


def check_not_reserved(path: str, at: str, found: Found) -> None:
    check_descending(path, at, found)
    if path.startswith("..") and not path.startswith("../"):
        found.invalid(at, path, "must not start with '..'")
