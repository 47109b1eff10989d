"""What becomes of a definition: whether its names are free, whether it is served, how it goes.

``status_of`` looks at a definition and at all others and says what its status should be; asked again with
that status, it says the same.  A name that another definition of the group holds is not accepted, and until
all are, nothing is served; once served, a definition stays served.

Pure.  The registry writes the status and serves what ``is_established``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from setpoint.server.golang import quoted
from setpoint.server.registry.crd.schemas import copied
from setpoint.server.registry.crd.structural import structural_errors
from setpoint.server.registry.resources import Object

APPROVAL = "api-approved.kubernetes.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_HELP = "see https://github.com/kubernetes/enhancements/pull/1111"
_NAMES = ("plural", "singular", "shortNames", "kind", "listKind", "categories")

Condition = dict[str, Any]


def condition(crd: Object, kind: str) -> Condition | None:
    conditions: Sequence[Condition] = (crd.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == kind), None)


def is_true(crd: Object, kind: str) -> bool:
    found = condition(crd, kind)
    return found is not None and found.get("status") == "True"


def is_established(crd: Object) -> bool:
    """Is it served?"""
    return is_true(crd, "Established")


def served_versions(crd: Object) -> list[dict[str, Any]]:
    """The versions that requests may name, as the definition lists them."""
    return [one for one in crd["spec"].get("versions") or () if one.get("served")]


def storage_version(crd: Object) -> str:
    return next((str(one["name"]) for one in crd["spec"].get("versions") or () if one.get("storage")), "")


def status_of(crd: Object, others: Iterable[Object], *, now: str) -> dict[str, Any]:
    """The status that a definition should have among the others."""
    status: dict[str, Any] = copied(crd.get("status") or {})
    status["conditions"] = list(status.get("conditions") or ())
    wanted = {name: value for name in _NAMES if (value := crd["spec"]["names"].get(name))}
    accepted = status.get("acceptedNames") or {}
    if {name: value for name, value in accepted.items() if value} != wanted:
        names, names_condition = _judged_names(crd, wanted, accepted, others)
        status["acceptedNames"] = names
        _set(status, names_condition, now)
        established = condition({"status": status}, "Established")
        if established is None:
            _set(status, _condition("Established", "False", "NotAccepted", "not all names are accepted"), now)
    structure = _structure_condition(crd)
    if structure is None:
        status["conditions"] = [
            one for one in status["conditions"] if one.get("type") != "NonStructuralSchema"
        ]
    else:
        _set(status, structure, now)
    if (approved := approval_condition(crd)) is not None:
        _set(status, approved, now)
    if is_true({"status": status}, "NamesAccepted") and not is_true({"status": status}, "Established"):
        told = "the initial names have been accepted"
        _set(status, _condition("Established", "True", "InitialNamesAccepted", told), now)
    return status


def deleting_status(crd: Object, *, now: str) -> dict[str, Any]:
    """The status once it is asked to go."""
    told = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    return _with(crd, _condition("Terminating", "True", "InstanceDeletionPending", told), now)


def terminating_status(crd: Object, *, now: str) -> dict[str, Any]:
    """The status while its objects are being deleted."""
    told = "CustomResource deletion is in progress"
    return _with(crd, _condition("Terminating", "True", "InstanceDeletionInProgress", told), now)


def terminated_status(crd: Object, *, now: str) -> dict[str, Any]:
    """The status when no object is left."""
    if not is_established(crd):
        told = "resource was never established"
        return _with(crd, _condition("Terminating", "False", "NeverEstablished", told), now)
    done = _condition("Terminating", "False", "InstanceDeletionCompleted", "removed all instances")
    return _with(crd, done, now)


def stuck_status(crd: Object, why: str, *, now: str) -> dict[str, Any]:
    """The status when objects do not go: they have finalizers."""
    told = f"could not confirm zero CustomResources remaining: {why}"
    return _with(crd, _condition("Terminating", "True", "InstanceDeletionCheck", told), now)


def _with(crd: Object, new: Condition, now: str) -> dict[str, Any]:
    status: dict[str, Any] = copied(crd.get("status") or {})
    status["conditions"] = list(status.get("conditions") or ())
    _set(status, new, now)
    return status


def _condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _set(status: dict[str, Any], new: Condition, now: str) -> None:
    """Put a condition in place; its time changes with its status alone."""
    for one in status["conditions"]:
        if one.get("type") == new["type"]:
            if one.get("status") != new["status"] or not one.get("lastTransitionTime"):
                one["lastTransitionTime"] = now
            one |= {name: new[name] for name in ("status", "reason", "message")}
            return
    status["conditions"].append(
        {
            "type": new["type"],
            "status": new["status"],
            "lastTransitionTime": now,
            "reason": new["reason"],
            "message": new["message"],
        }
    )


# ── Names ───────────────────────────────────────────────────────────────────────────────────────────


def _judged_names(
    crd: Object, wanted: dict[str, Any], accepted: dict[str, Any], others: Iterable[Object]
) -> tuple[dict[str, Any], Condition]:
    resources, kinds = _taken(crd, others)
    names: dict[str, Any] = {}
    reason = told = ""
    for word, conflict, taken in (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        new, old = wanted.get(word), accepted.get(word)
        if wrong := _in_use(new, old, taken):
            reason, told = conflict, wrong
            new = old
        if new or word in ("plural", "kind"):
            names[word] = new or ""
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    if reason:
        return names, _condition("NamesAccepted", "False", reason, told)
    return names, _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")


def _taken(crd: Object, others: Iterable[Object]) -> tuple[set[str], set[str]]:
    """The names and the kinds that definitions of the group hold."""
    resources, kinds = set[str](), set[str]()
    for other in others:
        if other["spec"].get("group") != crd["spec"].get("group"):
            continue
        held = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {held.get("plural") or "", held.get("singular") or "", *(held.get("shortNames") or ())}
        kinds |= {held.get("kind") or "", held.get("listKind") or ""}
    return resources - {""}, kinds - {""}


def _in_use(new: Any, old: Any, taken: set[str]) -> str:
    """What is said of names that others hold; what is ours already is never in use."""
    if isinstance(new, list) or isinstance(old, list):
        held = [one for one in new or () if one not in (old or ()) and one in taken]
        said = [f"{quoted(one)} is already in use" for one in held]
        return said[0] if len(said) == 1 else f"[{', '.join(said)}]" if said else ""
    return f"{quoted(new)} is already in use" if new and new != old and new in taken else ""


# ── Schemas and approval ────────────────────────────────────────────────────────────────────────────


def _structure_condition(crd: Object) -> Condition | None:
    errors = []
    if crd["spec"].get("preserveUnknownFields"):
        errors.append("spec.preserveUnknownFields: Invalid value: true: must be false")
    for place, version in enumerate(crd["spec"].get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            path = f"spec.versions[{place}].schema.openAPIV3Schema"
            errors += [str(one) for one in structural_errors(schema, path)]
    if not errors:
        return None
    said = list(dict.fromkeys(errors))
    told = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    return _condition("NonStructuralSchema", "True", "Violations", told)


def is_protected(group: str) -> bool:
    """Groups of Kubernetes' own domains need an approval."""
    return any(group == one or group.endswith(f".{one}") for one in ("k8s.io", "kubernetes.io"))


def approval(crd: Object) -> tuple[str, str]:
    """The state of a definition's approval, and what is said of it."""
    found = ((crd.get("metadata") or {}).get("annotations") or {}).get(APPROVAL, "")
    if not found:
        return "MissingAnnotation", f'protected groups must have approval annotation "{APPROVAL}", {_HELP}'
    if found.startswith("unapproved"):
        return "UnapprovedAnnotation", f"not approved: {quoted(found)}"
    try:
        address = urlsplit(found)
    except ValueError:
        address = urlsplit("")
    if address.scheme and address.netloc:
        return "ApprovedAnnotation", f"approved in {found}"
    return "InvalidAnnotation", (
        f'protected groups must have approval annotation "{APPROVAL}" with either a URL or '
        f'a reason starting with "unapproved", {_HELP}'
    )


def approval_condition(crd: Object) -> Condition | None:
    if not is_protected(crd["spec"].get("group", "")):
        return None
    state, told = approval(crd)
    status = "True" if state == "ApprovedAnnotation" else "False"
    return _condition("KubernetesAPIApprovalPolicyConformant", status, state, told)
