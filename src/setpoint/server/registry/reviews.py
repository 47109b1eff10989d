"""Questions that store nothing: who am I, whose is this token, may somebody do something, what may I do.

Each is a body with a ``spec`` that is answered by its ``status``.

Called by ``subresources.py``; what there is to know is in ``server/access.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from setpoint.server.access import Access
from setpoint.server.authentication.tokens import Unknown
from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.authorizer import Authorizer
from setpoint.server.golang import Struct
from setpoint.server.registry import decoding, flow
from setpoint.server.registry.managed.managers import track_update
from setpoint.server.registry.requests import Answered, Ask, User, write_options
from setpoint.server.registry.resources import Object
from setpoint.server.statuses import FieldError, bad_request, invalid, not_served

_ONE_OF: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_LISTED: Final = ("In", "NotIn")  # operators that need values
_BARE: Final = ("Exists", "DoesNotExist")  # and those that have none
_GROUP: Final = "authorization.k8s.io"


def review(ask: Ask, access: Access, now: str) -> Answered:
    """The question with its answer."""
    answer = _ANSWERS.get(ask.resource.kind)
    if answer is None:
        raise not_served()
    options, emit = write_options(ask), ask.resource.strategy.emit
    decoded = decoding.decode(ask)
    warnings = flow.check_fields(decoded, ask.resource, options)
    obj = decoded.object
    flow.check_place(obj, ask)
    obj = emit(obj)
    obj.pop("status", None)
    track_update(
        obj,
        None,
        manager=options.manager,
        api_version=ask.resource.api_version,
        subresource="",
        now=now,
        type=ask.resource.type,
    )
    if ask.resource.kind == "SelfSubjectReview":
        obj["metadata"] = {"creationTimestamp": now}
    status = answer(obj, ask, access)
    if ask.resource.kind == "SelfSubjectRulesReview":
        named = {"kind": ask.resource.kind, "apiVersion": ask.resource.api_version}
        obj = {**named, "metadata": {}, "spec": {}}
    obj["status"] = status
    return Answered(201, msgspec.json.encode(emit(obj)), ask.resource, tuple(warnings))


# ── Who ─────────────────────────────────────────────────────────────────────────────────────────────


def _who(obj: Object, ask: Ask, access: Access) -> Object:
    del obj, access
    return {"userInfo": _shown(ask.user)}


def _whose(obj: Object, ask: Ask, access: Access) -> Object:
    del ask
    spec = obj.get("spec") or {}
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    try:
        known = access.tokens.review(spec["token"], spec.get("audiences") or ())
    except Unknown as unknown:
        return {"user": {}, "error": str(unknown)}
    return {"authenticated": True, "user": _shown(known.user), "audiences": list(known.audiences)}


def _shown(user: User) -> Object:
    said: Object = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        said["uid"] = user.uid
    if user.extra:
        said["extra"] = {key: list(values) for key, values in user.extra.items()}
    return said


# ── May ─────────────────────────────────────────────────────────────────────────────────────────────


def _may_i(obj: Object, ask: Ask, access: Access) -> Object:
    spec = obj.get("spec") or {}
    errors = [*_attribute_errors(spec), *_selector_errors(spec), *_metadata_errors(obj)]
    _refuse(errors)
    return _decided(access.authorizer, ask.user, spec)


def _may_they(obj: Object, ask: Ask, access: Access) -> Object:
    spec = obj.get("spec") or {}
    errors = [*_attribute_errors(spec), *_subject_errors(spec), *_selector_errors(spec)]
    if ask.resource.namespaced:
        errors += [*_metadata_errors(obj, besides="namespace"), *_local_errors(spec, ask.namespace)]
    else:
        errors += _metadata_errors(obj)
    _refuse(errors)
    extra = {key.lower(): tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)
    return _decided(access.authorizer, user, spec)


def _decided(authorizer: Authorizer, user: User, spec: Object) -> Object:
    allowed, reason = authorizer.decide(user, _asked(spec))
    status: Object = {"allowed": allowed}
    for name, told in (("reason", reason), ("evaluationError", _selectors_unread(spec))):
        if told:
            status[name] = told
    return status


def _asked(spec: Object) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    said = spec["resourceAttributes"]
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(*(said.get(name, "") for name in names))


def _refuse(errors: list[FieldError]) -> None:
    if errors:
        raise invalid("", _GROUP, "", errors)


def _attribute_errors(spec: Object) -> list[FieldError]:
    path = spec.get("nonResourceAttributes")
    if (path is None) == (spec.get("resourceAttributes") is None):
        return [FieldError("invalid", "spec", _ONE_OF, _as_go(path))]
    return []


def _as_go(path: Object | None) -> Struct | None:
    return None if path is None else Struct(Path=path.get("path", ""), Verb=path.get("verb", ""))


def _subject_errors(spec: Object) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [FieldError("invalid", "spec.user", "at least one of user or group must be specified", "")]


def _selector_errors(spec: Object) -> list[FieldError]:
    errors = []
    for name in ("fieldSelector", "labelSelector"):
        selector = (spec.get("resourceAttributes") or {}).get(name)
        if selector is None:
            continue
        at = f"spec.resourceAttributes.{name}"
        raw, requirements = selector.get("rawSelector", ""), selector.get("requirements")
        if raw and requirements:
            told = "may not specified at the same time as requirements"
            errors.append(FieldError("invalid", f"{at}.rawSelector", told, raw))
        if not raw and not requirements:
            told = f"when {at} is specified, requirements or rawSelector is required"
            errors.append(FieldError("required", f"{at}.requirements", told))
        for place, one in enumerate(requirements or ()):
            errors += _requirement_errors(one, f"{at}.requirements[{place}].values")
    return errors


def _requirement_errors(requirement: Object, at: str) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if operator in _LISTED and not values:
        return [FieldError("required", at, "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in _BARE and values:
        told = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [FieldError("forbidden", at, told)]
    return []


def _selectors_unread(spec: Object) -> str:
    """Which selectors are gone without, since nobody knows what they mean."""
    attributes = spec.get("resourceAttributes") or {}
    return "; ".join(
        f"spec.resourceAttributes.{name} ignored due to parse error"
        for name in ("fieldSelector", "labelSelector")
        if any(
            one.get("operator") not in (*_LISTED, *_BARE)
            for one in (attributes.get(name) or {}).get("requirements") or ()
        )
    )


def _metadata_errors(obj: Object, *, besides: str = "") -> list[FieldError]:
    metadata = obj["metadata"]
    if not any(value for name, value in metadata.items() if name not in ("managedFields", besides)):
        return []
    told = f"must be empty except for {besides}" if besides else "must be empty"
    shown = Struct(metadata, managedFields=[Struct(one) for one in metadata.get("managedFields") or ()])
    return [FieldError("invalid", "metadata", told, shown)]


def _local_errors(spec: Object, namespace: str) -> list[FieldError]:
    said, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors = []
    if said is not None and said.get("namespace", "") != namespace:
        at, there = "spec.resourceAttributes.namespace", said.get("namespace", "")
        errors.append(FieldError("invalid", at, "must match metadata.namespace", there))
    if path is not None:
        told = "disallowed on this kind of request"
        errors.append(FieldError("invalid", "spec.nonResourceAttributes", told, _as_go(path)))
    return errors


# ── What ────────────────────────────────────────────────────────────────────────────────────────────


def _what(obj: Object, ask: Ask, access: Access) -> Object:
    namespace = (obj.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise bad_request("no namespace on request")
    held = access.authorizer.held(ask.user, namespace)
    resources, paths = [], []
    for rule in held.rules:
        if rule.resources:
            said = {
                "verbs": rule.verbs or (),
                "apiGroups": rule.api_groups or (),
                "resources": rule.resources,
                "resourceNames": rule.resource_names or (),
            }
            resources.append({name: list(values) for name, values in said.items() if values})
        if rule.non_resource_urls:
            paths.append({"verbs": list(rule.verbs or ()), "nonResourceURLs": list(rule.non_resource_urls)})
    status: Object = {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
    if held.errors:
        once = list(dict.fromkeys(held.errors))
        status["evaluationError"] = once[0] if len(once) == 1 else f"[{', '.join(once)}]"
    return status


_ANSWERS: Final[Mapping[str, Callable[[Object, Ask, Access], Object]]] = {
    "SelfSubjectReview": _who,
    "TokenReview": _whose,
    "SelfSubjectAccessReview": _may_i,
    "SubjectAccessReview": _may_they,
    "LocalSubjectAccessReview": _may_they,
    "SelfSubjectRulesReview": _what,
}
