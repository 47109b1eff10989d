"""Decides which proxy, if any, a request goes through.

The rules are those of Go's ``http.ProxyFromEnvironment``, so that one environment means the same to kubectl
and to us:

1. ``HTTPS_PROXY`` for https, ``HTTP_PROXY`` for http; the name in lower case counts where that one is empty.
2. This machine (``localhost``, 127.0.0.0/8, ::1) is never reached through a proxy.
3. ``NO_PROXY`` lists exceptions, separated by commas: ``*`` (everything); an address, or a network as
   ``10.0.0.0/8``; a domain, which covers its subdomains too; ``.domain``, which covers the subdomains alone.
   An address or domain may name a port, and then counts for that port only.  What makes no sense is skipped.

Where Go would be silent we are not: a proxy that cannot be used is an error, never a direct connection.
No socket and no environment here; both come in as arguments.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import TypeAlias
from urllib.parse import urlsplit

from setpoint.client.addresses import split_url
from setpoint.errors import ConfigError

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS = {"http": 80, "https": 443}


def proxy_for(url: str, env: Mapping[str, str]) -> str | None:
    """The proxy that ``env`` prescribes for ``url``; None means: connect directly."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    name = f"{parts.scheme.upper()}_PROXY"
    said = _either(env, name)
    if parts.scheme not in _PORTS or not said or not _wants_proxy(host, port, _either(env, "NO_PROXY")):
        return None
    if name == "HTTP_PROXY" and env.get("REQUEST_METHOD"):
        raise ConfigError(
            f"read {name}",
            "it cannot be trusted in a CGI program, where a request's Proxy header sets it; use HTTPS_PROXY",
        )
    return checked_proxy(said, f"read {name}")


def checked_proxy(text: str, doing: str) -> str:
    """``text`` as the URL of a proxy that we can use; ``host:port`` alone means http."""
    parts = split_url(text if "://" in text else f"http://{text}")
    if parts is None:
        # The text itself is not shown: a proxy's URL may hold a password.
        raise ConfigError(doing, "it is not the URL of a proxy; write http://host:port")
    if parts.scheme not in _PORTS:
        raise ConfigError(
            doing,
            f"{parts.scheme} proxies cannot be used, only http and https ones; name one of those, "
            "or list the server in NO_PROXY to connect directly",
        )
    return parts.geturl()


def _wants_proxy(host: str, port: int, no_proxy: str) -> bool:
    address = _address(host.partition("%")[0])  # fe80::1%eth0: the zone does not count
    if host == "localhost" or (address is not None and address.is_loopback):
        return False
    return not any(_covers(entry, host, port, address) for entry in _entries(no_proxy))


def _entries(no_proxy: str) -> Iterator[str]:
    return (entry for part in no_proxy.split(",") if (entry := part.strip().lower()))


def _covers(entry: str, host: str, port: int, address: _Address | None) -> bool:
    """Whether one word of NO_PROXY speaks of this server."""
    if entry == "*":
        return True
    if network := _network(entry):
        return address is not None and address in network
    name, only_port = _split_port(entry)
    if only_port not in {"", str(port)}:
        return False
    if listed := _address(name):
        return listed == address
    if address is not None or not name:
        return False
    domain = name[1:] if name.startswith("*.") else name
    return host.endswith(domain) if domain.startswith(".") else f".{host}".endswith(f".{domain}")


def _split_port(entry: str) -> tuple[str, str]:
    """``host:port``, ``[v6]:port`` or a bare host, split; anything else is left whole."""
    host, colon, port = entry.rpartition(":")
    if not colon or entry.endswith("]"):
        return entry, ""
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], port
    return (entry, "") if ":" in host else (host, port)


def _address(text: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # 1.2.3.4 may also be written ::ffff:1.2.3.4
    return getattr(address, "ipv4_mapped", None) or address


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    base, slash, bits = text.partition("/")
    if not slash or not bits.isdecimal():
        return None
    try:
        return ipaddress.ip_network(f"{base}/{bits}", strict=False)
    except ValueError:
        return None


def _either(env: Mapping[str, str], name: str) -> str:
    return env.get(name) or env.get(name.lower()) or ""
