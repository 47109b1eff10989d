"""The parts of objects that have a kind of their own: scale, eviction, token.

What is sent to and read from each; the verbs are in ``client.py``.  ``status`` needs nothing here: it is the
object itself, and every verb takes ``subresource="status"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from setpoint.api.decoders import prepare
from setpoint.api.forms import form_of_object, key_of
from setpoint.api.model import Object
from setpoint.api.names import Key
from setpoint.api.requests import Propagation, delete_options
from setpoint.api.times import Time
from setpoint.errors import DecodeError


@dataclass(frozen=True, slots=True)
class Scale:
    """How many an object is to have, how many it has, and which those are."""

    replicas: int
    current_replicas: int = 0
    selector: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a service account; its value is not shown."""

    value: str = field(repr=False)
    expires: Time


class _ScaleNumbers(msgspec.Struct):
    replicas: int = 0
    selector: str = ""


class _Version(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Scale(msgspec.Struct):
    spec: _ScaleNumbers
    metadata: _Version
    status: _ScaleNumbers = msgspec.field(default_factory=_ScaleNumbers)


class _TokenStatus(msgspec.Struct, rename="camel"):
    token: str
    expiration_timestamp: str


class _TokenRequest(msgspec.Struct):
    status: _TokenStatus


def scale_patch(replicas: int, resource_version: str | None) -> dict[str, object]:
    """The merge patch that asks for so many; with a version, only if nobody changed the object since."""
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        raise ValueError(f"replicas is to be a number from 0 on, not {replicas!r}")
    patch: dict[str, object] = {"spec": {"replicas": replicas}}
    if resource_version:
        patch["metadata"] = {"resourceVersion": resource_version}
    return patch


def read_scale(doing: str, data: bytes) -> Scale:
    try:
        scale = msgspec.json.decode(data, type=_Scale)
    except msgspec.DecodeError as error:
        raise DecodeError(doing, f"the answer is no Scale: {error}") from error
    return Scale(
        scale.spec.replicas, scale.status.replicas, scale.status.selector, scale.metadata.resource_version
    )


def eviction(
    key: Key, *, propagation: Propagation | None, grace_period: int | None, uid: str | None, dry_run: bool
) -> bytes:
    """Asks for a pod to go, if its disruption budget has room."""
    options = delete_options(propagation=propagation, grace_period=grace_period, uid=uid, dry_run=dry_run)
    return msgspec.json.encode(
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            **({"deleteOptions": msgspec.Raw(options)} if options else {}),
        }
    )


def token_request(
    audiences: Sequence[str], seconds: int | None, bound_to: Object | dict[str, Any] | None
) -> bytes:
    spec: dict[str, object] = {"audiences": list(audiences)}
    if seconds is not None:
        spec["expirationSeconds"] = seconds
    if bound_to is not None:
        gvk, name = form_of_object(bound_to).gvk, key_of(bound_to).name
        uid = bound_to.metadata.uid if isinstance(bound_to, Object) else bound_to["metadata"].get("uid")
        known = {"uid": uid} if uid else {}
        spec["boundObjectRef"] = {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": name, **known}
    return msgspec.json.encode(
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    )


def read_token(doing: str, data: bytes) -> Token:
    try:
        status = msgspec.json.decode(data, type=_TokenRequest).status
    except msgspec.DecodeError as error:
        raise DecodeError(doing, "the answer holds no token") from error
    return Token(status.token, Time.from_wire(status.expiration_timestamp))


prepare(_Scale, _TokenRequest)
