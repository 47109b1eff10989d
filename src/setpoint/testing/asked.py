"""Reads from a request what it asks for: the verb, the resource, the object.

The way back from ``api/requests.py``: there a verb becomes a method and a path, here those become a verb.
Pure; used by ``faults.py``.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from setpoint.api.patches import APPLY_CONTENT_TYPE
from setpoint.api.wire import Malformed, read_metadata
from setpoint.net.transport import Request


class Asked(NamedTuple):
    """What a request asks for.  A path that is no resource has no ``plural``."""

    verb: str  # Kubernetes' word, as RBAC spells it, but for apply, which RBAC calls patch
    group: str = ""
    version: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        resource = ".".join(filter(None, (self.plural, self.group)))
        what = "/".join(filter(None, (resource, self.subresource)))
        key = "/".join(filter(None, (self.namespace, self.name)))
        return " ".join(filter(None, (self.verb, what, key)))

    @property
    def is_write(self) -> bool:
        return self.verb not in {"get", "list", "watch"}


def read_request(request: Request) -> Asked:
    """What is asked for.  The name of what is to be made is in the body."""
    url = urlsplit(request.target)
    namespace = name = subresource = ""
    match [unquote(part) for part in url.path.split("/") if part]:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            group, version, rest = "", "", []
    match rest:
        case ["namespaces", name, ("status" | "finalize") as subresource]:
            plural = "namespaces"
        case ["namespaces", namespace, plural, *where]:
            name, subresource = _named(where)
        case [plural, *where]:
            name, subresource = _named(where)
        case _:
            plural = ""
    query = parse_qs(url.query)
    verb = _verb(request, named=bool(name), watches=query.get("watch") in (["true"], ["1"]))
    if verb == "create" and not name:
        name = _name_in(request.body)
    return Asked(verb, group, version, plural, namespace, name, subresource)


def _named(where: list[str]) -> tuple[str, str]:
    return "".join(where[:1]), "/".join(where[1:])


def _verb(request: Request, *, named: bool, watches: bool) -> str:
    match request.method:
        case "GET" if watches:
            return "watch"
        case "GET":
            return "get" if named else "list"
        case "POST":
            return "create"
        case "PUT":
            return "update"
        case "PATCH" if request.headers.get("Content-Type") == APPLY_CONTENT_TYPE:
            return "apply"
        case "PATCH":
            return "patch"
        case "DELETE":
            return "delete" if named else "deletecollection"
        case other:
            return other.lower()


def _name_in(body: bytes | None) -> str:
    try:
        return read_metadata(body or b"").name
    except Malformed:
        return ""
