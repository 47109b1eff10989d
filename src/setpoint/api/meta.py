"""The types of meta/v1: what objects of every group share, and how their conditions are kept.

Metadata itself is part of every object and lives in ``model.py``; it can be had from here too.

Conditions are a list with one entry to a type.  ``set_condition`` keeps three promises:

1. ``last_transition_time`` moves only when ``status`` changes.
2. ``observed_generation``, ``reason`` and ``message`` are always those of the newest look; a newest look
   that does not say its generation leaves the one known.
3. It says whether anything changed, so that an unchanged status need not be written.

There is no clock here: the present comes in as ``now``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, TypeVar

from setpoint.api.model import ManagedFieldsEntry, Model, Object, ObjectMeta, OwnerReference
from setpoint.api.times import Time

__all__ = [
    "APIGroup",
    "APIResource",
    "APIResourceList",
    "Condition",
    "DeleteOptions",
    "FieldSelectorRequirement",
    "GroupResource",
    "GroupVersionForDiscovery",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ListMeta",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
    "PartialObjectMetadata",
    "Preconditions",
    "ServerAddressByClientCIDR",
    "Status",
    "StatusCause",
    "StatusDetails",
    "find_condition",
    "is_true",
    "set_condition",
]


class Conditional(Protocol):
    """What every kind of condition has: this file's, and those that built-in kinds have of their own."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...


AnyCondition = TypeVar("AnyCondition", bound=Conditional)


class PartialObjectMetadata(Object):
    """An object of any kind, of which only the metadata is known."""

    api_version: str = "meta.k8s.io/v1"
    kind: str = "PartialObjectMetadata"


class ListMeta(Model):
    """What a list says about itself; ``continue_`` asks for its next page."""

    resource_version: str | None = None
    continue_: str | None = None
    remaining_item_count: int | None = None
    self_link: str | None = None


class LabelSelectorRequirement(Model):
    """One condition on labels: In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Model):
    """Chooses objects by their labels; all of it must hold, and an empty one chooses everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class FieldSelectorRequirement(Model):
    """One condition on a field: In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: list[str] | None = None


class GroupResource(Model):
    """A resource, whatever its version."""

    group: str
    resource: str


class Condition(Model):
    """One aspect of an object's state, as last seen; put it where it belongs with ``set_condition``."""

    type: str
    status: str  # "True", "False" or "Unknown"
    reason: str  # one word in CamelCase, for programs
    message: str = ""  # a sentence, for people
    last_transition_time: Time | None = None
    observed_generation: int | None = None

    # The server's own bounds, of which a Python type can say only a part.
    OPENAPI: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "message": {"type": "string", "maxLength": 32768},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "type": {
                "type": "string",
                "maxLength": 316,
                "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            },
        },
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    }


class StatusCause(Model):
    """One reason for a refusal, and the field it is about."""

    field: str | None = None
    message: str | None = None
    reason: str | None = None


class StatusDetails(Model):
    """What a refusal is about."""

    causes: list[StatusCause] | None = None
    group: str | None = None
    kind: str | None = None
    name: str | None = None
    retry_after_seconds: int | None = None
    uid: str | None = None


class Status(Model):
    """The server's answer where there is no object to give."""

    api_version: str = "v1"
    kind: str = "Status"
    metadata: ListMeta = ListMeta()
    status: str | None = None
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: StatusDetails | None = None


class Preconditions(Model):
    """What must still be true of an object for it to be deleted."""

    resource_version: str | None = None
    uid: str | None = None


class DeleteOptions(Model):
    """How to delete."""

    api_version: str = "v1"
    kind: str = "DeleteOptions"
    dry_run: list[str] | None = None
    grace_period_seconds: int | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None


class APIResource(Model):
    """A resource, as older discovery lists it."""

    kind: str
    name: str
    namespaced: bool
    singular_name: str
    verbs: list[str]
    categories: list[str] | None = None
    group: str | None = None
    short_names: list[str] | None = None
    storage_version_hash: str | None = None
    version: str | None = None


class APIResourceList(Model):
    """The resources of one group and version, as older discovery lists them."""

    api_version: str = "v1"
    kind: str = "APIResourceList"
    group_version: str
    resources: list[APIResource]


class GroupVersionForDiscovery(Model):
    """A version of a group, both as a path (``apps/v1``) and alone."""

    group_version: str
    version: str


class ServerAddressByClientCIDR(Model, rename={"client_cidr": "clientCIDR"}):
    """Where to reach the server, by where one is."""

    client_cidr: str
    server_address: str


class APIGroup(Model, rename={"server_address_by_client_cidrs": "serverAddressByClientCIDRs"}):
    """A group and its versions."""

    api_version: str = "v1"
    kind: str = "APIGroup"
    name: str
    versions: list[GroupVersionForDiscovery]
    preferred_version: GroupVersionForDiscovery | None = None
    server_address_by_client_cidrs: list[ServerAddressByClientCIDR] | None = None


def find_condition(conditions: Iterable[AnyCondition] | None, type: str) -> AnyCondition | None:  # noqa: A002
    """The condition of this type, if there is one; built-in kinds' own conditions are found as well."""
    return next((condition for condition in conditions or () if condition.type == type), None)


def is_true(conditions: Iterable[Conditional] | None, type: str) -> bool:  # noqa: A002
    """Whether there is a condition of this type, and its status is True."""
    found = find_condition(conditions, type)
    return found is not None and found.status == "True"


def set_condition(conditions: list[Condition], condition: Condition, *, now: Time) -> bool:
    """Put a condition into the list in place of the one of its type; say whether anything changed."""
    known = find_condition(conditions, condition.type)
    if known is None:
        new = copy.copy(condition)
        new.last_transition_time = condition.last_transition_time or now
        conditions.append(new)
        return True
    before = copy.copy(known)
    if known.status != condition.status:
        known.status = condition.status
        known.last_transition_time = condition.last_transition_time or now
    known.reason, known.message = condition.reason, condition.message
    if condition.observed_generation is not None:
        known.observed_generation = condition.observed_generation
    return known != before
