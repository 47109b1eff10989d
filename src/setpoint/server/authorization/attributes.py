"""``Attributes``: what a request asks for, in the words that rules are written in; and the 403 that names it.

``http/request_info.py`` parses them from a request before any resource is looked up: whoever may not see a
resource does not learn whether there is one.

Pure.  Decided on by an ``Authorizer``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from setpoint.server.golang import quoted
from setpoint.server.registry.requests import User
from setpoint.server.statuses import StatusError, forbidden

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
