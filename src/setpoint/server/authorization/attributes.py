"""What a request asks for, in the words that rules are written in; and the refusal that names it.

A request is read before anything is looked for, as Kubernetes does: whoever may not see a resource does not
learn whether there is one.

Pure.  Fed by ``http/app.py`` with what ``http/routing.py`` read; judged by an ``Authorizer``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from setpoint.api.selectors import FieldSelection
from setpoint.server.golang import quoted
from setpoint.server.registry.requests import User
from setpoint.server.statuses import StatusError, forbidden

_VERBS: Final = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_PARTS: Final = ("status", "finalize")
_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Attributes(NamedTuple):
    """A verb on a resource; or, where there is a path, on that."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None


def read_attributes(method: str, path: tuple[str, ...], query: Mapping[str, str]) -> Attributes:
    """Of a request.  A namespace lies in itself: who may get it in there may get it."""
    first = path[0]
    if first == "api" and len(path) > 2:
        group, parts = "", path[2:]
    elif first == "apis" and len(path) > 3:
        group, parts = path[1], path[3:]
    else:
        return Attributes(method.lower(), path="/" + "/".join(path))
    if parts[0] in ("watch", "proxy") and len(parts) > 1:
        verb, parts = parts[0], parts[1:]
    else:
        verb = _VERBS.get(method, "")
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_PARTS:
            parts = parts[2:]
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 and verb not in ("watch", "proxy") else ""
    if not name:
        if verb == "get":
            is_watch = "watch" in query and query["watch"].lower() not in ("false", "0")
            verb, name = "watch" if is_watch else "list", _named(query.get("fieldSelector", ""))
        elif verb == "delete":
            verb = "deletecollection"
    return Attributes(verb, group, parts[0], subresource, namespace, name)


def _named(selector: str) -> str:
    """Who selects one object by its name asks for that one alone.

    Read as whoever selects will read it: a comma may be part of a value.
    """
    if "metadata.name" not in selector:
        return ""
    try:
        requirements = FieldSelection.parse(selector).requirements
    except ValueError:
        return ""
    for one in requirements:
        if one.field == "metadata.name" and one.operator == "=":
            name = one.value
            return "" if name in (".", "..") or "/" in name or "%" in name else name
    return ""


def refusal(user: User, asked: Attributes, reason: str = "") -> StatusError:
    """403: who cannot do what, and where; ``reason`` where there is more to say."""
    told = _told(user, asked).translate(_HTML)
    if reason:
        told = f"{told}: {reason}"
    if asked.path is not None:
        refused = StatusError(403, "Forbidden", f"forbidden: {told}", details={})
    else:
        refused = forbidden(asked.resource, asked.group, asked.name, told)
    refused.headers["X-Content-Type-Options"] = "nosniff"
    return refused


def _told(user: User, asked: Attributes) -> str:
    who = f"User {quoted(user.name)} cannot {asked.verb}"
    if asked.path is not None:
        return f"{who} path {quoted(asked.path)}"
    what = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f"in the namespace {quoted(asked.namespace)}" if asked.namespace else "at the cluster scope"
    return f"{who} resource {quoted(what)} in API group {quoted(asked.group)} {where}"
