"""What a DELETE does to an object: gone at once, marked and waiting for its finalizers, or left as it was.

Pure: an object, the options and the time in; a decision out.  Kubernetes' rules of preconditions, propagation
policies and grace periods, with its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from setpoint.server.golang import parse_int
from setpoint.server.registry.metadata import bump_generation, is_deleting, timestamp
from setpoint.server.registry.requests import is_true, options_invalid
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.statuses import FieldError, bad_request, conflict, unsupported

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_POLICIES = ("Foreground", "Background", "Orphan")


class DeleteOptions(NamedTuple):
    """What a DELETE asks for."""

    is_dry_run: bool = False
    grace: int | None = None
    policy: str = ""  # "" where none was named
    uid: str | None = None
    version: str | None = None
    orphans: bool | None = None  # the deprecated orphanDependents


def delete_options(given: Mapping[str, Any]) -> DeleteOptions:
    """What was given, checked."""
    dry_run, policy = given.get("dryRun") or [], given.get("propagationPolicy")
    orphans, grace = given.get("orphanDependents"), given.get("gracePeriodSeconds")
    errors: list[FieldError] = []
    if dry_run and dry_run != ["All"]:
        errors.append(unsupported("dryRun", dry_run, ["All"]))
    if policy is not None and orphans is not None:
        told = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(FieldError("invalid", "propagationPolicy", told, policy))
    elif policy is not None and policy not in _POLICIES:
        errors.append(unsupported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    if errors:
        raise options_invalid("DeleteOptions", errors)
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        is_dry_run=bool(dry_run),
        grace=1 if grace is not None and grace < 0 else grace,
        policy=policy or "",
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        orphans=orphans,
    )


def from_query(query: Mapping[str, str]) -> dict[str, Any]:
    """What is given without a body.  A body, even an empty object, stands alone, as in Kubernetes."""
    found: dict[str, Any] = {}
    if query.get("dryRun"):
        found["dryRun"] = [query["dryRun"]]
    if "propagationPolicy" in query:
        found["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        found["orphanDependents"] = is_true(query["orphanDependents"])
    if query.get("gracePeriodSeconds"):
        try:
            found["gracePeriodSeconds"] = parse_int(query["gracePeriodSeconds"])
        except ValueError as error:
            raise bad_request(str(error)) from None
    return found


class Decision(NamedTuple):
    """``gone``: remove it.  ``marked``: write ``object``.  ``unchanged``: it is being deleted already."""

    does: Literal["gone", "marked", "unchanged"]
    object: Object


def check_preconditions(obj: Object, resource: Resource, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    if options.uid is not None and options.uid != metadata["uid"]:
        told = _mismatch("UID", options.uid, metadata["uid"], "deleted and then recreated")
        raise conflict(resource.kind, resource.group, metadata["name"], told)
    if options.version is not None and options.version != metadata["resourceVersion"]:
        told = _mismatch("ResourceVersion", options.version, metadata["resourceVersion"], "modified")
        raise conflict(resource.kind, resource.group, metadata["name"], told)


def _mismatch(what: str, said: str, found: str, happened: str) -> str:
    return (
        f"the {what} in the precondition ({said}) does not match the {what} in record ({found}). "
        f"The object might have been {happened}"
    )


def mark(obj: Object) -> tuple[str | None, int | None]:
    """When an object goes, and how long it was given."""
    metadata = obj["metadata"]
    return metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")


def decide(obj: Object, resource: Resource, options: DeleteOptions, now: datetime) -> Decision:
    """``obj`` is changed in place where it is marked."""
    metadata = obj["metadata"]
    grace = grace_of(obj, resource, options)
    finalizers = _finalizers(metadata.get("finalizers") or [], resource, options)
    if is_deleting(obj):
        return _again(obj, grace, finalizers, options)
    holds = list(obj["spec"].get("finalizers") or []) if _is_namespace(resource) else []
    waits = grace or finalizers or holds
    if not waits and not _is_pod(resource):
        return Decision("gone", obj)
    metadata["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
    if _is_namespace(resource):
        obj.setdefault("status", {})["phase"] = "Terminating"
    elif resource.stored == _DEFINITIONS:
        from setpoint.server.registry.crd import lifecycle  # noqa: PLC0415 - definitions alone have one

        obj["status"] = lifecycle.deleting_status(obj, now=timestamp(now))
    else:
        metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation", 0) > 0 and resource.stored != _DEFINITIONS:
        bump_generation(obj)
    _set_finalizers(metadata, finalizers)
    return Decision("marked" if waits else "gone", obj)


def _again(obj: Object, grace: int, finalizers: list[str], options: DeleteOptions) -> Decision:
    """Deleted while being deleted: it may only come sooner, or wait for other finalizers."""
    metadata = obj["metadata"]
    before = metadata.get("deletionGracePeriodSeconds") or 0
    changes = finalizers != (metadata.get("finalizers") or [])
    _set_finalizers(metadata, finalizers)
    if options.grace is not None and grace < before:
        if grace == 0 and not finalizers:
            metadata["deletionGracePeriodSeconds"] = 0
            return Decision("gone", obj)
        began = datetime.fromisoformat(metadata["deletionTimestamp"]) - timedelta(seconds=before)
        metadata["deletionTimestamp"] = timestamp(max(began + timedelta(seconds=grace), began))
        metadata["deletionGracePeriodSeconds"] = grace
        return Decision("marked", obj)
    if not before and not finalizers and not (obj.get("spec") or {}).get("finalizers"):
        return Decision("gone", obj)
    return Decision("marked" if changes else "unchanged", obj)


_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def _is_namespace(resource: Resource) -> bool:
    return not resource.group and resource.plural == "namespaces"


def _is_pod(resource: Resource) -> bool:
    return not resource.group and resource.plural == "pods"


def grace_of(obj: Object, resource: Resource, options: DeleteOptions) -> int:
    """Only pods wait; one that runs nowhere, or has ended, does not."""
    if not _is_pod(resource):
        return 0
    if not obj["spec"].get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    if options.grace is not None:
        return options.grace
    asked: int = obj["spec"].get("terminationGracePeriodSeconds", 30)
    return 1 if asked < 0 else asked


def _finalizers(found: list[str], resource: Resource, options: DeleteOptions) -> list[str]:
    """With the garbage collector's own, as the policy wants them."""
    policy = options.policy
    if not policy and options.orphans is not None:
        policy = "Orphan" if options.orphans else "Background"
    if not policy:
        policy = "Orphan" if ORPHAN in found else "Foreground" if FOREGROUND in found else ""
    policy = policy or resource.strategy.default_policy
    kept = [one for one in found if one not in (ORPHAN, FOREGROUND)]
    if policy == "Orphan":
        kept.append(ORPHAN)
    if policy == "Foreground":
        kept.append(FOREGROUND)
    return kept


def _set_finalizers(metadata: dict[str, Any], finalizers: list[str]) -> None:
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def is_finished(obj: Object, resource: Resource) -> bool:
    """Whether an object that is being deleted waits for nothing any more."""
    metadata = obj["metadata"]
    return (
        is_deleting(obj)
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not (_is_namespace(resource) and (obj.get("spec") or {}).get("finalizers"))
    )
