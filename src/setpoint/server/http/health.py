"""``/healthz``, ``/livez`` and ``/readyz``: is the server well, by checks that can be asked one by one.

A check is a function that gives the reason why not, or "" when all is well.  ``?verbose`` tells of each,
``?exclude=NAME`` leaves one out.  Any method will do, as in Kubernetes.  Pure; used by ``app.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

Check = Callable[[], str]
PATHS: Final = frozenset({"healthz", "livez", "readyz"})


class Told(NamedTuple):
    """A code, and what to say."""

    code: int
    text: str


class Health:
    """The checks, by name, in their order."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks: dict[str, Check] = {"ping": lambda: "", **checks}

    def names(self) -> list[str]:
        return list(self._checks)

    def told(self, path: tuple[str, ...], query: Mapping[str, str]) -> Told | None:
        """Of all, or of the one that the path goes on to; None where there is no such check."""
        which, name = path[0], "/".join(path[1:])
        if name:
            check = self._checks.get(name)
            if check is None:
                return None
            why = check()
            return Told(500, f"internal server error: {why}\n") if why else Told(200, "ok")
        excluded = query.get("exclude", "")
        lines, is_well = [], True
        for each, check in self._checks.items():
            if each == excluded:
                lines.append(f"[+]{each} excluded: ok")
            elif check():  # the reason is not for strangers
                lines.append(f"[-]{each} failed: reason withheld")
                is_well = False
            else:
                lines.append(f"[+]{each} ok")
        if excluded and excluded not in self._checks:
            lines.append(f'warn: some health checks cannot be excluded: no matches for "{excluded}"')
        if not is_well:
            return Told(500, "\n".join([*lines, f"{which} check failed"]) + "\n")
        if "verbose" in query:
            return Told(200, "\n".join([*lines, f"{which} check passed"]) + "\n")
        return Told(200, "ok")
