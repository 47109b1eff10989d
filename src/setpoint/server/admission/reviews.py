"""AdmissionReview, as bytes: the question that a webhook gets, and what is read from its answer.

Pure.  Refusals and failures are worded as kube-apiserver words them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from setpoint.server.admission.attributes import Attributes
from setpoint.server.admission.calling import BYTES, CAUSE, DETAILS, LIST_META, STATUS, TEXT, Form, Shape
from setpoint.server.golang import quoted
from setpoint.server.registry.requests import User
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.statuses import StatusError

GROUP: Final = "admission.k8s.io"
_KNOWN: Final = ("v1", "v1beta1")
_RESPONSE: Final = {
    "uid": Shape((str,), "types.UID"),
    "allowed": Shape((bool,), "bool"),
    "status": STATUS,
    "patch": BYTES,
    "patchType": Shape((str,), "v1.PatchType"),
    "auditAnnotations": Shape((dict,), "map[string]string", each=TEXT),
    "warnings": Shape((list,), "[]string", each=TEXT),
}
_MOST_CODE: Final = 999  # what HTTP has room for


def form(version: str) -> Form:
    """Of an answer."""
    versions = (version, *(one for one in _KNOWN if one != version))
    fields = {
        "request": Shape((dict,), f"{version}.AdmissionRequest"),
        "response": Shape((dict,), f"{version}.AdmissionResponse", _RESPONSE),
    }
    return Form(GROUP, "AdmissionReview", versions, fields)


class BadReview(ValueError):
    """An answer that is none; the text says why."""


def review_version(accepted: Sequence[str]) -> str:
    """The first version that both sides know."""
    found = next((one for one in accepted if one in _KNOWN), None)
    if found is None:
        raise BadReview(
            "could not create admission objects: webhook does not accept known AdmissionReview versions "
            "(v1, v1beta1)"
        )
    return found


def request(
    asked: Attributes, resource: Resource, obj: Object | None, old: Object | None, uid: str
) -> Object:
    """What is asked, of an object in the version of ``resource``."""
    meant = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    if asked.body is not None or resource is asked.resource:
        kind = asked.kind
    else:
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    own = asked.resource
    made: Object = {
        "uid": uid,
        "kind": kind,
        "resource": meant,
        "subResource": asked.subresource,
        "requestKind": asked.kind,
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "requestSubResource": asked.subresource,
        "name": asked.name,
        "namespace": asked.namespace,
        "operation": asked.operation,
        "userInfo": user_info(asked.user),
        "object": obj,
        "oldObject": old,
        "dryRun": asked.is_dry_run,
        "options": asked.options,
    }
    unsaid = ("subResource", "requestSubResource", "name", "namespace")
    return {name: value for name, value in made.items() if value or name not in unsaid}


def user_info(user: User) -> Object:
    found: Object = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    found["extra"] = {name: list(values) for name, values in user.extra.items()}
    return {name: value for name, value in found.items() if value}


def written(request: Object, version: str) -> bytes:
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": request}
    )


class Verdict(NamedTuple):
    """What a webhook says."""

    is_allowed: bool
    status: Mapping[str, Any] | None
    warnings: tuple[str, ...]
    patch: bytes
    patch_type: str


def read(answer: Object, uid: str, version: str, *, is_mutating: bool) -> Verdict:
    """Raises ``BadReview``."""
    response = answer.get("response")
    if response is None:
        raise BadReview("webhook response was absent")
    if version == "v1":
        if (said := response.get("uid") or "") != uid:
            raise BadReview(f"expected response.uid={quoted(uid)}, got {quoted(said)}")
        found = f"{_group_version(answer.get('apiVersion') or '')}, Kind={answer.get('kind') or ''}"
        if found != _REVIEW:
            raise BadReview(f"expected webhook response of {_REVIEW}, got {found}")
    patch = base64.b64decode(response.get("patch") or b"")
    kind = response.get("patchType")
    if version == "v1" and is_mutating:
        _check_patch(patch, kind)
    elif version == "v1":
        if patch:
            raise BadReview("validating webhook may not return response.patch")
        if kind is not None:
            raise BadReview("validating webhook may not return response.patchType")
    elif patch:
        kind = "JSONPatch"
    return Verdict(
        bool(response.get("allowed")),
        response.get("status"),
        tuple(one for one in response.get("warnings") or () if one),
        patch if is_mutating else b"",
        kind or "",
    )


_REVIEW: Final = f"{GROUP}/v1, Kind=AdmissionReview"


def _group_version(text: str) -> str:
    return text if "/" in text else f"/{text}"


def _check_patch(patch: bytes, kind: str | None) -> None:
    if patch and kind is None:
        raise BadReview("webhook returned response.patch but not response.patchType")
    if not patch and kind is not None:
        raise BadReview("webhook returned response.patchType but not response.patch")
    if kind == "":
        raise BadReview('webhook returned invalid response.patchType of ""')


def denial(name: str, status: Mapping[str, Any] | None) -> StatusError:
    """What a client is told when a webhook says no: in the webhook's own words, as far as it has any."""
    said = status or {}
    by = f"admission webhook {quoted(name)} denied the request"
    why = said.get("message") or said.get("reason")
    code = said.get("code") or 0
    return StatusError(
        min(max(code, 400), _MOST_CODE),
        said.get("reason") or "",
        f"{by}: {why}" if why else f"{by} without explanation",
        details=_known(said.get("details")),
        metadata=_read_fields(said.get("metadata") or {}, LIST_META),
    )


def _known(details: Mapping[str, Any] | None) -> Object | None:
    """What Go reads of details."""
    if details is None:
        return None
    known = _read_fields(details, DETAILS)
    if "causes" in known:
        known["causes"] = [_read_fields(one or {}, CAUSE) for one in known["causes"]]
    return known


def _read_fields(value: Mapping[str, Any], shape: Shape) -> Object:
    return {name: value[name] for name in shape.fields if value.get(name)}
