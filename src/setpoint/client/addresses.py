"""Decides whether a text is the address of a server, and what may be said of it.

An address that is refused is shown only where it cannot hold a password.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit, urlunsplit

from setpoint.errors import ConfigError


def split_url(url: str) -> SplitResult | None:
    """A URL's parts; None where it has no scheme, host or possible port."""
    try:
        parts = urlsplit(url)
        return parts if parts.scheme and parts.hostname and parts.port != 0 else None
    except ValueError:  # unbalanced brackets, or a port that is no number
        return None


def checked_server(server: str, doing: str) -> str:
    """``server`` as every path is put behind it: scheme, host and port, perhaps a path, and no slash."""
    parts = split_url(server)
    if parts is None or parts.scheme not in {"http", "https"} or "@" in parts.netloc:
        shown = "the server" if "@" in server else repr(server)
        raise ConfigError(
            doing,
            f"{shown} is not the address of a server",
            advice="write https://host:port, and no user in it",
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def is_on_this_machine(server: str) -> bool:
    """Whether what is sent there passes no network."""
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
