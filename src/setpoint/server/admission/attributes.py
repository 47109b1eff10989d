"""What is admitted: an operation on an object, by a user, with everything that rules and reviews look at.

``Attributes`` holds the object in the version of the request; ``view`` is what others are shown of it, as the
server would write it.  Values only; ``object`` is replaced by whoever changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from setpoint.server.golang import encoded, quoted
from setpoint.server.registry.bodies import HEADER, go_kind
from setpoint.server.registry.conform import WrongType, conform, restore
from setpoint.server.registry.protobuf import is_kind
from setpoint.server.registry.requests import Ask, User
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.statuses import StatusError, forbidden, internal

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
META: Final = "meta.k8s.io/v1"
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class Part(Protocol):
    """What a subresource shows of an object: a Scale."""

    @property
    def kind(self) -> Resource: ...

    def offered(self, new: Object, old: Object) -> tuple[Object, Object]:
        """To those who may change it, with who owns it; to the others it is only ``shown``."""

    def shown(self, obj: Object) -> Object: ...

    def taken(self, obj: Object, part: Object) -> Object:
        """``obj`` with what somebody made of its part."""


@dataclass(slots=True, eq=False)
class Attributes:
    """One request to be admitted."""

    operation: Operation
    resource: Resource
    name: str
    namespace: str  # of a Namespace, its own name
    user: User
    object: Object | None
    old: Object | None
    options: Object | None  # None for a connection: what it asks for is its object
    subresource: str = ""
    is_dry_run: bool = False
    body: Resource | None = None  # the kind of the object, where it is not the resource's own: a Scale
    is_complete: bool = True  # else a new object has no uid yet
    warnings: list[str] = field(default_factory=list)

    @property
    def kind(self) -> Object:
        """As a review names it."""
        of = self.body or self.resource
        return {"group": of.group, "version": of.version, "kind": of.kind}

    def refusal(self, why: str) -> StatusError:
        """A plug-in's refusal."""
        return forbidden(self.resource.plural, self.resource.group, self.name or "Unknown", why)


def of_request(
    operation: Operation,
    obj: Object | None,
    old: Object | None,
    ask: Ask,
    *,
    options: Object | None = None,
    is_dry_run: bool = False,
    body: Resource | None = None,
) -> Attributes:
    """What a request wants to make of ``old``; where it is about many objects it names none."""
    about = obj if obj is not None else old
    name = (
        ""
        if ask.verb == "deletecollection"
        else ask.name or ((about or {}).get("metadata") or {}).get("name", "")
    )
    namespace = ask.namespace
    if ask.resource.stored == "namespaces":
        namespace = name
    return Attributes(
        operation,
        ask.resource,
        name,
        namespace,
        ask.user,
        obj,
        old,
        options_of(operation, ask.query) if options is None else options,
        ask.subresource,
        is_dry_run,
        body,
    )


def read_again(left: Any, asked: Attributes, resource: Resource, *, is_strict: bool = False) -> Object:
    """What somebody made of the object, in the version of ``resource``, read and filled in as if it had been
    sent; a body that is of a kind of its own, as that.

    Fields that its type lacks are dropped; where it is read strictly, they are refused.
    """
    if not isinstance(left, dict):
        told = f"json: cannot unmarshal array into Go value of type {HEADER}"
        raise internal(f"couldn't get version/kind; json parse error: {told}")
    own = asked.body or resource
    left = _of_its_kind(left, own)
    try:
        read = resource.strategy.conform(left) if asked.body is None else conform(left, asked.body.type)
    except WrongType as wrong:
        raise internal(str(wrong)) from None
    if is_strict and read.unknown and not own.is_custom:  # nothing is known of those that are
        # A patched body is in the order of its names.
        raise internal("strict decoding error: " + ", ".join(sorted(read.unknown)))
    return read.object if asked.body is not None else _filled(read.object, resource)


def restored(left: Object, asked: Attributes, resource: Resource) -> Object:
    """The same of what was not written down in between.  Raises ``WrongType``, in the converter's words."""
    own = asked.body or resource
    if own.is_custom:
        return read_again(left, asked, resource)
    read = restore(left, own.type).object
    return read if asked.body is not None else _filled(read, resource)


def _filled(read: Object, resource: Resource) -> Object:
    if not read.get("metadata"):
        read["metadata"] = {}  # as Go has it: there is no object without
    resource.strategy.default(read)
    return read


def _of_its_kind(left: Object, own: Resource) -> Object:
    """What somebody made of an object of this kind, if it still is one."""
    for name in ("apiVersion", "kind"):
        if left.get(name) is not None and not isinstance(left[name], str):
            found = go_kind(left[name])
            told = f"json: cannot unmarshal {found} into Go struct field .{name} of type string"
            raise internal(f"couldn't get version/kind; json parse error: {told}")
    version, kind = left.get("apiVersion") or "", left.get("kind") or ""
    if own.is_custom:
        _check_custom(left, version, kind, own)
        return left
    version, kind = version or own.api_version, kind or own.kind
    if (version, kind) == (own.api_version, own.kind):
        return {**left, "apiVersion": version, "kind": kind}
    if not is_kind(version, kind):
        told = f"no kind {quoted(kind)} is registered for version {quoted(version)}"
        raise internal(f'{told} in scheme "pkg/runtime/scheme.go:111"')
    wanted = f"{own.group.partition('.')[0] or 'core'}.{own.kind}"
    told = f"converting ({version.rpartition('/')[2]}.{kind}) to ({wanted}): unknown conversion"
    raise StatusError(500, "", told)


def _check_custom(left: Object, version: str, kind: str, own: Resource) -> None:
    if not kind:
        raise internal(f"Object 'Kind' is missing in '{encoded(left)}'")
    if version != own.api_version:
        group, _, short = version.rpartition("/")
        told = f"{group}/{short}, Kind={kind} is unstructured and is not suitable for converting to"
        raise StatusError(500, "", f"{told} {quoted(own.api_version)}")


def options_of(operation: Operation, query: Mapping[str, str]) -> Object:
    """The options of a write, as an object."""
    options: Object = {"kind": _OPTIONS[operation], "apiVersion": META}
    if query.get("dryRun"):
        options["dryRun"] = [query["dryRun"]]
    for name in ("fieldManager", "fieldValidation"):
        if query.get(name):
            options[name] = query[name]
    return options


def deletion_options(body: Mapping[str, object]) -> Object:
    """Those of a deletion, as they were sent."""
    names = ("gracePeriodSeconds", "preconditions", "orphanDependents", "propagationPolicy", "dryRun")
    found = {name: body[name] for name in names if body.get(name) is not None}
    return {"kind": "DeleteOptions", "apiVersion": META, **found}
