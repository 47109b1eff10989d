"""``route``: the resource that serves a request, and the verb; or the refusal, as Kubernetes words it.

The path is not parsed here: verb, group, resource, namespace, name and subresource are those of the
``RequestInfo`` that was authorized.  Refused here are empty segments, names that are no path segment, and
methods that a resource does not have.  A group that nobody knows is ``NoPage``, which is not a Status:
clients tell the two apart.

Pure.  Used by ``app.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from setpoint.api.selectors import FieldRequirement, FieldSelection
from setpoint.server.http.request_info import PATH_VERBS, RequestInfo
from setpoint.server.registry.requests import Verb
from setpoint.server.registry.resources import Resource
from setpoint.server.registry.served import Resources
from setpoint.server.statuses import StatusError, bad_request, method_not_allowed, not_found, not_served

_COLLECTION: Final = frozenset({"list", "watch", "create", "deletecollection"})
_OBJECT: Final = frozenset({"get", "update", "patch", "delete"})


class NoPage(StatusError):
    """Nothing is known at this path: ``404 page not found``, as plain text."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found")


class Route(NamedTuple):
    """What is asked of a resource."""

    verb: Verb
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    below: str = ""  # what follows a proxy


def route(info: RequestInfo, resources: Resources) -> tuple[Route, Mapping[str, str]]:
    """What serves the request, and the query to read it with.  The request names a resource."""
    if "" in info.path:
        raise not_served() if info.path[0] == "api" else NoPage()
    resource = resources.find(info.group, info.version, info.resource)
    if resource is None or _is_path_verb_alone(info) or (info.is_namespace_itself and info.group):
        raise _unknown(info.group, resources)
    # Namespaces are cluster-scoped, though a Role in a namespace can allow reading that one.
    namespace = "" if info.is_namespace_itself else info.namespace
    _check_scope(resource, info, namespace)
    if info.is_verb_in_path:
        return _route_path_verb(info, resource, namespace)
    for what, said in (("Name", info.name), ("Namespace", namespace)):
        if said in (".", "..") or "%" in said:
            why = "may not contain '%'" if "%" in said else f"may not be '{said}'"
            raise bad_request(f'{what} parameter invalid: "{said}": {why}')
    verb = _verb(info, resource, namespace)
    return Route(verb, resource, namespace, info.name, info.subresource, "/".join(info.rest)), info.query


def _is_path_verb_alone(info: RequestInfo) -> bool:
    """``…/v1/watch``: a verb without a resource, even where a resource has that name, as in Kubernetes."""
    return info.resource in PATH_VERBS and not info.is_verb_in_path and not info.namespace


def _route_path_verb(
    info: RequestInfo, resource: Resource, namespace: str
) -> tuple[Route, Mapping[str, str]]:
    """``watch/…``, which is another way to write a watch.  ``proxy/…`` is gone from Kubernetes."""
    if info.verb != "watch":
        raise _not_allowed(info.verb, resource) if resource.is_custom else not_served()
    if info.method != "GET":
        raise method_not_allowed()
    return Route("watch", resource, namespace), _narrowed(info.query, info.name)


def _unknown(group: str, resources: Resources) -> StatusError:
    """A group that is built in says what it has not; of any other nothing is known."""
    is_builtin = any(
        not one.is_custom for each, versions in resources.groups() if each == group
        for one in resources.of(group, versions[0])
    )  # fmt: skip
    return not_served() if is_builtin else NoPage()


def _check_scope(resource: Resource, info: RequestInfo, namespace: str) -> None:
    is_too_long = bool(info.rest) and (resource.is_custom or info.subresource != "proxy")
    is_wrong = bool(namespace) > resource.namespaced or is_too_long
    if resource.namespaced and not namespace and info.name:
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


def _verb(info: RequestInfo, resource: Resource, namespace: str) -> Verb:
    """The verb that was authorized, where the resource has it; ``connect`` for what opens a connection."""
    if info.subresource:
        return _subresource_verb(info, resource)
    if info.name:
        allowed = _OBJECT
        if not _OBJECT & set(resource.verbs):
            raise not_served()
    else:
        allowed = _COLLECTION
        if resource.namespaced and not namespace:
            if "list" not in resource.verbs:
                raise not_served()
            if info.verb not in ("list", "watch"):
                raise NoPage() if resource.is_custom else method_not_allowed()
    is_head = info.method == "HEAD" and not resource.is_custom
    if is_head or info.verb not in allowed or info.verb not in resource.verbs:
        raise _not_allowed(info.verb, resource)
    return cast("Verb", info.verb)


def _subresource_verb(info: RequestInfo, resource: Resource) -> Verb:
    below = resource.subresource(info.subresource)
    if below is None:
        if resource.is_custom:
            raise not_found(resource.plural, resource.group, info.name)
        raise not_served()
    if below.name == "proxy" and info.method in ("HEAD", "OPTIONS"):
        return "connect"
    is_head = info.method == "HEAD" and not resource.is_custom
    if is_head or info.verb not in below.verbs:
        raise _not_allowed(info.verb, resource)
    return "connect" if below.is_connection else cast("Verb", info.verb)


def _not_allowed(verb: str, resource: Resource) -> StatusError:
    if not resource.is_custom:
        return method_not_allowed()
    return StatusError(
        405,
        "MethodNotAllowed",
        f'{verb} is not supported on resources of kind "{resource.qualified}"',
        details={"group": resource.group, "kind": resource.plural},
    )
