"""Which resource and verb a path and a method mean, as Kubernetes reads them.

``read`` takes a target apart; ``route`` finds what it asks of the resources that are served.  What is
refused is refused here: encoded slashes and control characters, names that are no path segment, methods
that a resource does not have.  A group that nobody knows is ``NoPage``, which is not a Status: clients
tell the two apart.

Pure.  Used by ``app.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_plus

from setpoint.api.selectors import FieldRequirement, FieldSelection
from setpoint.server.golang import valid_text
from setpoint.server.registry.requests import Verb
from setpoint.server.registry.resources import Resource
from setpoint.server.registry.served import Resources
from setpoint.server.statuses import StatusError, bad_request, method_not_allowed, not_found, not_served

_SLASH: Final = re.compile(r"%2f", re.IGNORECASE)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_FALSE: Final = ("false", "0")

_COLLECTION: Final[Mapping[str, Verb]] = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT: Final[Mapping[str, Verb]] = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_BELOW: Final[Mapping[str, Verb]] = {**_OBJECT, "POST": "create"}


class NoPage(StatusError):
    """Nothing is known at this path: ``404 page not found``, as plain text."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found")


class Target(NamedTuple):
    """A request's target, taken apart.  A slash at the end makes no difference."""

    path: tuple[str, ...]
    query: Mapping[str, str]  # the first value of each


class Route(NamedTuple):
    """What is asked of a resource."""

    verb: Verb
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    below: str = ""  # what follows a proxy


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


def route(method: str, target: Target, resources: Resources) -> tuple[Route, Mapping[str, str]]:
    """What is asked, and the query to read it with.  The path begins with ``api`` or ``apis``."""
    path, query = target
    group, rest = ("", path[1:]) if path[0] == "api" else (path[1] if len(path) > 1 else "", path[2:])
    version, rest = rest[0], rest[1:]
    is_old_watch = len(rest) > 1 and rest[0] == "watch"
    if is_old_watch:
        if method != "GET":
            raise method_not_allowed()
        rest = rest[1:]
    place = _place(rest, group)
    resource = resources.find(group, version, place.plural)
    if resource is None:
        raise _unknown(group, resources)
    if is_old_watch:
        _check_scope(resource, place, is_old_watch=True)
        return Route("watch", resource, place.namespace), _narrowed(query, place.name)
    _check_scope(resource, place)
    for what, said in (("Name", place.name), ("Namespace", place.namespace)):
        if said in (".", "..") or "%" in said:
            why = "may not contain '%'" if "%" in said else f"may not be '{said}'"
            raise bad_request(f'{what} parameter invalid: "{said}": {why}')
    verb = _verb(method, resource, place, query)
    return Route(verb, resource, place.namespace, place.name, place.subresource, place.below), query


class _Place(NamedTuple):
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    below: str = ""


def _place(rest: tuple[str, ...], group: str) -> _Place:
    """The words of a path below group and version."""
    namespace = ""
    if rest and rest[0] == "namespaces" and len(rest) > 2:
        is_below_namespace = not group and rest[2] in ("status", "finalize") and len(rest) == 3
        if not is_below_namespace:
            namespace, rest = rest[1], rest[2:]
            if not namespace:
                raise not_served()
    if not rest or "" in rest:
        raise not_served()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    return _Place(rest[0], namespace, name, subresource, "/".join(rest[3:]))


def _unknown(group: str, resources: Resources) -> StatusError:
    """A group that is built in says what it has not; of any other nothing is known."""
    is_builtin = any(
        not one.is_custom for each, versions in resources.groups() if each == group
        for one in resources.of(group, versions[0])
    )  # fmt: skip
    return not_served() if is_builtin else NoPage()


def _check_scope(resource: Resource, place: _Place, *, is_old_watch: bool = False) -> None:
    is_too_long = bool(place.below) and (resource.is_custom or place.subresource != "proxy")
    is_wrong = bool(place.namespace) > resource.namespaced or is_too_long
    if resource.namespaced and not place.namespace and place.name:
        is_wrong = True
    if is_old_watch and place.subresource:
        is_wrong = True
    if is_wrong:
        raise NoPage() if resource.is_custom else not_served()


def _narrowed(query: Mapping[str, str], name: str) -> Mapping[str, str]:
    """A watch of one object is a watch that selects it.  Raises 400 for a selector that does not."""
    if not name:
        return query
    one = FieldRequirement("metadata.name", "=", name)
    asked = query.get("fieldSelector", "")
    if not asked:
        return {**query, "fieldSelector": str(one)}
    try:
        is_selected = one in FieldSelection.parse(asked).requirements
    except ValueError as error:
        raise bad_request(str(error)) from None
    if not is_selected:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    return query


def _verb(method: str, resource: Resource, place: _Place, query: Mapping[str, str]) -> Verb:
    if method == "HEAD" and resource.is_custom:
        method = "GET"
    if place.subresource:
        return _verb_below(method, resource, place)
    if place.name:
        verb = _OBJECT.get(method)
        if not set(_OBJECT.values()) & set(resource.verbs):
            raise not_served()
    elif resource.namespaced and not place.namespace:
        verb = _COLLECTION.get(method)
        if "list" not in resource.verbs:
            raise not_served()
        if verb != "list":
            raise NoPage() if resource.is_custom else method_not_allowed()
    else:
        verb = _COLLECTION.get(method)
    if verb == "list" and is_watch(query):
        verb = "watch"
    if verb is None or verb not in resource.verbs:
        raise _not_allowed(verb or "", resource)
    return verb


def _verb_below(method: str, resource: Resource, place: _Place) -> Verb:
    below = resource.subresource(place.subresource)
    if below is None:
        if resource.is_custom:
            raise not_found(resource.plural, resource.group, place.name)
        raise not_served()
    verb = _BELOW.get("GET" if method in ("HEAD", "OPTIONS") and below.name == "proxy" else method)
    if verb is None or verb not in below.verbs:
        raise _not_allowed(verb or "", resource)
    return "connect" if below.is_connection else verb


def _not_allowed(verb: str, resource: Resource) -> StatusError:
    if not resource.is_custom:
        return method_not_allowed()
    return StatusError(
        405,
        "MethodNotAllowed",
        f'{verb} is not supported on resources of kind "{resource.qualified}"',
        details={"group": resource.group, "kind": resource.plural},
    )
