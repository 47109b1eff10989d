"""Whom a request was meant for: names that are ours, and no others.

A page of a stranger's can make a browser ask any address, and a name of its own can be made to lead to
this one (DNS rebinding); the browser then names the stranger's host.  So a request is taken only where
``Host`` is an IP address, a loopback name, or a name that our certificate has.

Pure.  Used by ``app.py``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from setpoint.server.statuses import StatusError

_MOST_KEPT = 1000
_LONGEST = 260  # a name of 253 and a port


class Hosts:
    """The names we answer to."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in names)
        self._good: set[str] = set()  # texts that were found to be ours

    def check(self, host: str) -> None:
        """Raises 403.  A request that names no host was not made by a browser."""
        if not host or host in self._good:
            return
        if len(host) > _LONGEST or not self._is_ours(_without_port(host).lower().rstrip(".")):
            raise StatusError(
                403, "Forbidden", f'the host "{host[:253]}" is not a name of this server', details={}
            )
        if len(self._good) < _MOST_KEPT:
            self._good.add(host)

    def _is_ours(self, name: str) -> bool:
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name)  # an address cannot be made to lead elsewhere
        except ValueError:
            return False
        return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, separator, port = host.rpartition(":")
    return name if separator and port.isascii() and port.isdigit() else host
