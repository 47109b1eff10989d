"""Parses a request's method and target into a ``RequestInfo``: the one reading of a path.

The authorizer gets ``RequestInfo.attributes`` and the router gets the same ``RequestInfo``, so what is
authorized is what is served.  The rules are those of Kubernetes' RequestInfoFactory:

1. ``/api/{version}/…`` and ``/apis/{group}/{version}/…`` name resources; any other path stands for itself.
2. The word after the version is a verb where it is ``watch`` or ``proxy`` and something follows it.
3. ``namespaces/{namespace}/{resource}`` is in a namespace, but ``namespaces/{name}/status`` and
   ``namespaces/{name}/finalize`` are subresources of the namespace, in every group.
4. A list or watch whose field selector requires ``metadata.name`` is authorized for that name alone.

Encoded slashes and control characters are refused here: no path can be read in two ways.  One slash at the
end makes no difference.  Empty segments are kept; the router serves no path that has one.

Pure.  Used by ``app.py`` and ``routing.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_plus

from setpoint.api.selectors import FieldSelection
from setpoint.server.authorization.attributes import Attributes
from setpoint.server.golang import valid_text
from setpoint.server.statuses import bad_request, not_served

_SLASH: Final = re.compile(r"%2f", re.IGNORECASE)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_FALSE: Final = ("false", "0")

_VERBS: Final = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
PATH_VERBS: Final = ("watch", "proxy")
_NAMESPACE_SUBRESOURCES: Final = ("status", "finalize")


class Target(NamedTuple):
    """A request's target: the segments of its path, decoded, and its query."""

    path: tuple[str, ...]
    query: Mapping[str, str]  # the first value of each


class RequestInfo(NamedTuple):
    """What a request asks for.  ``version`` and what follows it are empty where no resource is named."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""  # of a namespace itself: its own name, so that a Role in it can allow reading it
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()  # what follows the subresource; with a verb in the path, what follows the name
    is_verb_in_path: bool = False
    is_namespace_itself: bool = False  # namespaces/{name}, rather than something in that namespace
    selected_name: str = ""  # what the field selector of a list or watch requires metadata.name to be

    @property
    def attributes(self) -> Attributes:
        """The same, for the authorizer."""
        if not self.is_resource:
            return Attributes(self.verb, path="/" + "/".join(self.path))
        name = self.name or self.selected_name
        return Attributes(self.verb, self.group, self.resource, self.subresource, self.namespace, name)


_NO_QUERY: Final[Mapping[str, str]] = {}


def read(target: str) -> Target:
    path, _, query = valid_text(target).partition("?")
    if not path.startswith("/"):
        raise bad_request("the target of the request is no path")
    if "%" in path:
        if _BAD_ESCAPE.search(path):
            raise bad_request("the path has an escape that is none")
        if _SLASH.search(path):
            raise not_served()  # no name has a slash in it, and a path is not to be read in two ways
        path = unquote(path, errors="replace")
    if _CONTROL.search(path):
        raise bad_request("the path has a control character in it")
    segments = path.split("/")
    if len(segments) > 2 and not segments[-1]:
        segments.pop()
    return Target(tuple(segments[1:]), _values(query) if query else _NO_QUERY)


def _values(query: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in query.split("&"):
        if not pair or ";" in pair:  # as Go does
            continue
        name, _, value = pair.partition("=")
        if "%" in name or "+" in name:
            name = unquote_plus(name)
        if name not in values:
            values[name] = unquote_plus(value) if "%" in value or "+" in value else value
    return values


def is_watch(query: Mapping[str, str]) -> bool:
    """``watch`` alone is enough, and only false and 0 mean no."""
    return "watch" in query and query["watch"].lower() not in _FALSE


def request_info(method: str, target: Target) -> RequestInfo:
    """What is asked for; nothing is looked up, so it is known before anything may be revealed."""
    path, query = target
    if path[0] == "api" and len(path) > 2:
        group, version, parts = "", path[1], path[2:]
    elif path[0] == "apis" and len(path) > 3:
        group, version, parts = path[1], path[2], path[3:]
    else:
        return RequestInfo(method, path, query, method.lower())
    is_verb_in_path = parts[0] in PATH_VERBS and len(parts) > 1
    if is_verb_in_path:
        verb, parts = parts[0], parts[1:]
    else:
        verb = _VERBS.get(method, "")
    namespace, is_namespace_itself = "", False
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        is_namespace_itself = len(parts) == 2 or parts[2] in _NAMESPACE_SUBRESOURCES
        if not is_namespace_itself:
            parts = parts[2:]
    name = parts[1] if len(parts) > 1 else ""
    subresource, rest = ("", parts[2:]) if is_verb_in_path else ("".join(parts[2:3]), parts[3:])
    selected = ""
    if not name:
        if verb == "get":
            verb, selected = "watch" if is_watch(query) else "list", _selected(query.get("fieldSelector", ""))
        elif verb == "delete":
            verb = "deletecollection"
    return RequestInfo(
        method,
        path,
        query,
        verb,
        True,
        group,
        version,
        parts[0],
        namespace,
        name,
        subresource,
        rest,
        is_verb_in_path,
        is_namespace_itself,
        selected,
    )


def _selected(selector: str) -> str:
    """The name that a field selector requires; parsed as the list will parse it."""
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
