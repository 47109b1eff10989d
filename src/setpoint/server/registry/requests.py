"""A request to the registry, and its answer, as values: what http hands down, and what it gets back.

``Ask`` is a request after routing; the functions below read its options from the query as Kubernetes does,
and refuse what it refuses.  Answers are bytes wherever bytes are at hand: a GET is what the store holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from setpoint.server.registry.resources import Resource
from setpoint.server.statuses import FieldError, StatusError, invalid, unsupported
from setpoint.server.storage.protocol import Record

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "connect"]
Validation = Literal["Ignore", "Warn", "Strict"]
_VALIDATIONS: dict[str, Validation] = {"Ignore": "Ignore", "Warn": "Warn", "Strict": "Strict"}
_MOST_MANAGER = 128  # characters of a field manager's name


class User(msgspec.Struct, frozen=True):
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = MappingProxyType({})


ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))


class Ask(msgspec.Struct, frozen=True):
    """What is asked, of which resource."""

    verb: Verb
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    content_type: str = ""
    user: User = ADMIN
    user_agent: str = ""

    def __repr__(self) -> str:  # the body may hold Secrets
        below = f"/{self.subresource}" if self.subresource else ""
        return f"<Ask {self.verb} {self.resource.qualified}{below} {self.namespace}/{self.name}>"


class Answered(NamedTuple):
    """One object.  ``resource`` is None where it is not of the resource asked (a Status, a Scale)."""

    code: int
    data: bytes
    resource: Resource | None = None
    warnings: tuple[str, ...] = ()


class Listed(NamedTuple):
    """Objects of one resource, at one revision."""

    revision: int
    records: list[Record]
    continue_token: str = ""
    remaining: int | None = None
    warnings: tuple[str, ...] = ()


# ── Options of a write ──────────────────────────────────────────────────────────────────────────────


class WriteOptions(NamedTuple):
    """What creates, updates and patches may ask for."""

    is_dry_run: bool
    manager: str
    validation: Validation
    is_forced: bool = False


_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


def write_options(ask: Ask, *, is_apply: bool = False) -> WriteOptions:
    """From the query, each checked; who names no manager is known by its user agent."""
    query = ask.query
    errors = dry_run_errors(query)
    manager = query.get("fieldManager", "")
    if is_apply and not manager:
        errors.append(FieldError("required", "fieldManager", "is required for apply patch"))
    if "force" in query and ask.verb == "patch" and not is_apply:
        errors.append(FieldError("forbidden", "force", "may not be specified for non-apply patch"))
    errors += _manager_errors(manager)
    validation = query.get("fieldValidation", "")
    if validation and validation not in _VALIDATIONS:
        errors.append(unsupported("fieldValidation", validation, ("", *sorted(_VALIDATIONS))))
    if errors:
        raise options_invalid(_OPTIONS[ask.verb], errors)
    return WriteOptions(
        is_dry_run=bool(query.get("dryRun")),
        manager=manager or _from_agent(ask.user_agent),
        validation=_VALIDATIONS.get(validation, "Warn"),
        is_forced=is_true(query.get("force", "")),
    )


def options_invalid(kind: str, errors: list[FieldError]) -> StatusError:
    return invalid(kind, "meta.k8s.io", "", errors)


def dry_run_errors(query: Mapping[str, str]) -> list[FieldError]:
    asked = query.get("dryRun", "")
    return [unsupported("dryRun", [asked], ["All"])] if asked not in ("", "All") else []


def is_true(text: str) -> bool:
    return text in ("1", "t", "T", "true", "TRUE", "True")


def _manager_errors(manager: str) -> list[FieldError]:
    errors = []
    if len(manager) > _MOST_MANAGER:
        errors.append(FieldError("too long", "fieldManager", f"may not be more than {_MOST_MANAGER} bytes"))
    for at, character in enumerate(manager):
        if not character.isprintable():
            told = f"invalid character U+{ord(character):04X} (at position {at})"
            errors.append(FieldError("invalid", "fieldManager", told, manager))
    return errors


def _from_agent(agent: str) -> str:
    """``kubectl/v1.37 (linux)`` is known as kubectl."""
    name = agent.partition("/")[0]
    if name.isprintable():
        return name[:_MOST_MANAGER] or "unknown"
    return "".join(character for character in name if character.isprintable())[:_MOST_MANAGER] or "unknown"
