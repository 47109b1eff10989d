"""What is sent for a verb: method, path, query and body.  Values, sendable by anyone.

Paths are built from names that users give, so a name that could change the path's shape is refused here,
before it is sent.  Nothing in this file knows a server, a connection or a credential.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

import msgspec

from setpoint.api.names import GroupVersionKind, Key, Resource

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
FieldValidation: TypeAlias = Literal["Ignore", "Warn", "Strict"]

JSON = "application/json"

_plain = re.compile(r"[A-Za-z0-9._~-]+").fullmatch  # needs no quoting; nearly every name


class Call(msgspec.Struct, frozen=True, gc=False):
    """One request, without the words that depend on who sends it and where."""

    verb: str  # Kubernetes' word, as RBAC spells it
    method: str
    target: str
    said: str = ""  # for errors: "get /version"; where a resource is named, that says it
    accept: str = JSON
    content_type: str = JSON
    body: bytes | None = None
    upgrade: tuple[str, ...] = ()
    resource: Resource | None = None  # what it is about, where it is about objects
    key: Key | None = None
    subresource: str = ""

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def doing(self) -> str:
        """For errors: "update apps/v1 Deployment shop/web".  Put into words only when one is raised."""
        if self.said or self.resource is None:
            return self.said
        return describe(self.verb, self.resource, self.key, self.subresource)

    @property
    def is_secretive(self) -> bool:
        """About a kind that holds secrets: its bodies stay out of errors."""
        return self.resource is not None and is_secretive(self.resource, self.subresource)

    def __repr__(self) -> str:
        return f"<Call {self.method} {self.target}: {self.doing}>"  # never the body


def path_of(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of a collection, an object, or a part of an object."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if namespace:
        root = f"{root}/namespaces/{_segment('namespace', namespace)}"
    path = f"{root}/{resource.plural}"
    if name:
        path = f"{path}/{_segment('name', name)}"
    if subresource:
        path = f"{path}/{subresource}"
    return path


def with_query(path: str, query: Mapping[str, object]) -> str:
    """The path with its parameters."""
    return path + query_of(query)


def query_of(query: Mapping[str, object]) -> str:
    """Parameters, from the question mark on; None and "" are left out, True is as Kubernetes reads it."""
    said = [f"{name}={_text(value)}" for name, value in query.items() if value is not None and value != ""]
    return f"?{'&'.join(said)}" if said else ""


def describe(verb: str, resource: Resource, key: Key | None, subresource: str = "") -> str:
    """What is being done to which object, as every error begins."""
    kind = f"{resource.api_version} {resource.kind}"
    if subresource:
        kind = f"{kind}/{subresource}"
    if key is None or not any(key):
        return f"{verb} {kind}"
    return f"{verb} {kind} {key}" if key.name else f"{verb} {kind} in {key.namespace}"


def is_secretive(kind: GroupVersionKind | Resource, subresource: str = "") -> bool:
    """Whether bodies of this kind hold what must not be seen in a log."""
    return (not kind.group and kind.kind == "Secret") or subresource == "token"


def delete_options(
    *,
    propagation: Propagation | None = None,
    grace_period: int | None = None,
    uid: str | None = None,
    resource_version: str | None = None,
    dry_run: bool = False,
) -> bytes | None:
    """The body of a delete; None where nothing but the default is asked."""
    preconditions = _said(uid=uid, resourceVersion=resource_version)
    options = _said(
        propagationPolicy=propagation,
        gracePeriodSeconds=grace_period,
        preconditions=preconditions or None,
        dryRun=["All"] if dry_run else None,
    )
    if not options:
        return None
    return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", **options})


def _said(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _segment(what: str, text: str) -> str:
    """A user's word as one segment of a path, and never more than one."""
    if _plain(text) and text not in {".", ".."}:
        return text
    if not text or "/" in text or "%" in text or text in {".", ".."}:
        raise ValueError(
            f"{text!r} cannot be the {what} of an object: it may not be '.', '..' or hold '/' or '%'"
        )
    return quote(text, safe=":")


def _text(value: object) -> str:
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return text if _plain(text) else quote(text, safe="")
