"""The cells of storage, RBAC, admission, certificates and the smaller groups."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from setpoint.server.http.cells.reading import (
    NONE,
    UNSET,
    Cells,
    Printer,
    age,
    at,
    condition,
    created,
    flag,
    human,
    is_deleting,
    is_true,
    items,
    joined,
    labels,
    name,
    number,
    text,
)
from setpoint.server.registry.resources import Object

# ── storage ─────────────────────────────────────────────────────────────────────────────────────────


def storage_class(obj: Object, now: datetime) -> Cells:
    return [
        name(obj),
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy", otherwise="Delete"),
        text(obj, "volumeBindingMode", otherwise="Immediate"),
        flag(obj, "allowVolumeExpansion"),
        created(obj, now),
    ]


def csi_driver(obj: Object, now: datetime) -> Cells:
    tokens = at(obj, "spec", "tokenRequests")
    return [
        name(obj),
        flag(obj, "spec", "attachRequired", otherwise=True),
        flag(obj, "spec", "podInfoOnMount"),
        flag(obj, "spec", "storageCapacity"),
        UNSET if tokens is None else joined(text(one, "audience") for one in tokens),
        flag(obj, "spec", "requiresRepublish"),
        joined(items(obj, "spec", "volumeLifecycleModes")) or NONE,
        created(obj, now),
    ]


def csi_node(obj: Object, now: datetime) -> Cells:
    return [name(obj), len(items(obj, "spec", "drivers")), created(obj, now)]


def volume_attachment(obj: Object, now: datetime) -> Cells:
    return [
        name(obj),
        text(obj, "spec", "attacher"),
        text(obj, "spec", "source", "persistentVolumeName"),
        text(obj, "spec", "nodeName"),
        flag(obj, "status", "attached"),
        created(obj, now),
    ]


def volume_attributes_class(obj: Object, now: datetime) -> Cells:
    return [name(obj), text(obj, "driverName"), created(obj, now)]


# ── rbac ────────────────────────────────────────────────────────────────────────────────────────────


def role_binding(obj: Object, now: datetime) -> Cells:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for one in items(obj, "subjects"):
        kind, called = text(one, "kind"), text(one, "name")
        if kind in subjects:
            subjects[kind].append(
                f"{text(one, 'namespace')}/{called}" if kind == "ServiceAccount" else called
            )
    role = f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}"
    return [name(obj), role, created(obj, now), *(joined(found, ", ") for found in subjects.values())]


# ── admission ───────────────────────────────────────────────────────────────────────────────────────


def webhooks(obj: Object, now: datetime) -> Cells:
    return [name(obj), len(items(obj, "webhooks")), created(obj, now)]


def validating_policy(obj: Object, now: datetime) -> Cells:
    return [name(obj), len(items(obj, "spec", "validations")), _param_kind(obj), created(obj, now)]


def mutating_policy(obj: Object, now: datetime) -> Cells:
    return [name(obj), len(items(obj, "spec", "mutations")), _param_kind(obj), created(obj, now)]


def _param_kind(obj: Object) -> str:
    found = at(obj, "spec", "paramKind")
    return UNSET if found is None else f"{text(found, 'apiVersion')}/{text(found, 'kind')}"


def policy_binding(obj: Object, now: datetime) -> Cells:
    given, shown = at(obj, "spec", "paramRef"), UNSET
    if called := text(given, "name"):
        shown = f"{text(given, 'namespace', otherwise='*')}/{called}"
    elif (found := at(given, "selector")) is not None:
        shown = _go_selector(found)
    return [name(obj), text(obj, "spec", "policyName"), shown, created(obj, now)]


def _go_selector(found: object) -> str:
    """As Go prints the struct: that is what is shown."""
    pairs = sorted((at(found, "matchLabels") or {}).items())
    match = "".join(f"{key}: {value}," for key, value in pairs)
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{text(one, 'key')},Operator:{text(one, 'operator')},"
        f"Values:[{' '.join(items(one, 'values'))}],}},"
        for one in items(found, "matchExpressions")
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{match}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


# ── certificates ────────────────────────────────────────────────────────────────────────────────────


def signing_request(obj: Object, now: datetime) -> Cells:
    seconds = at(obj, "spec", "expirationSeconds")
    return [
        name(obj),
        created(obj, now),
        text(obj, "spec", "signerName", otherwise=NONE),
        text(obj, "spec", "username"),
        NONE if seconds is None else human(seconds),
        _signing_state(obj),
    ]


def _signing_state(obj: Object) -> str:
    found = {text(one, "type") for one in items(obj, "status", "conditions")}
    state = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    if "Failed" in found:
        state += ",Failed"
    return f"{state},Issued" if text(obj, "status", "certificate") else state


def trust_bundle(obj: Object, _: datetime) -> Cells:
    return [name(obj), text(obj, "spec", "signerName", otherwise=NONE)]


def pod_certificate_request(obj: Object, _: datetime) -> Cells:
    state = "Pending"
    for one in items(obj, "status", "conditions"):
        if text(one, "type") in ("Issued", "Denied", "Failed"):
            state = text(one, "type")
    return [
        name(obj),
        text(obj, "spec", "podName"),
        text(obj, "spec", "serviceAccountName"),
        text(obj, "spec", "nodeName"),
        text(obj, "spec", "signerName"),
        state,
        labels(at(obj, "spec", "unverifiedUserAnnotations")),
    ]


# ── the smaller groups ──────────────────────────────────────────────────────────────────────────────


def lease(obj: Object, now: datetime) -> Cells:
    return [name(obj), text(obj, "spec", "holderIdentity"), created(obj, now)]


def runtime_class(obj: Object, now: datetime) -> Cells:
    return [name(obj), text(obj, "handler"), created(obj, now)]


def priority_class(obj: Object, now: datetime) -> Cells:
    value, is_default = number(obj, "value"), flag(obj, "globalDefault")
    return [name(obj), value, is_default, created(obj, now), text(obj, "preemptionPolicy")]


def definition(obj: Object, _: datetime) -> Cells:
    versions = sorted(
        f"{text(one, 'name')}{'(storage)' if at(one, 'storage') else ''}"
        for one in items(obj, "spec", "versions")
        if at(one, "served")
    )
    return [
        name(obj),
        text(obj, "spec", "scope"),
        joined(versions),
        text(obj, "metadata", "creationTimestamp", otherwise="0001-01-01T00:00:00Z"),
        text(obj, "spec", "group"),
        text(obj, "spec", "names", "kind"),
        joined(items(obj, "spec", "names", "shortNames")),
        is_true(obj, "Established"),
    ]


def api_service(obj: Object, now: datetime) -> Cells:
    behind, found = at(obj, "spec", "service"), condition(obj, "Available")
    status = "Unknown"
    if found is not None:
        status, reason = text(found, "status"), text(found, "reason")
        if status != "True" and reason:
            status += f" ({reason})"
    service = "Local" if behind is None else f"{text(behind, 'namespace')}/{text(behind, 'name')}"
    return [name(obj), service, status, created(obj, now)]


def flow_schema(obj: Object, now: datetime) -> Cells:
    method, dangling = at(obj, "spec", "distinguisherMethod"), condition(obj, "Dangling")
    return [
        name(obj),
        text(obj, "spec", "priorityLevelConfiguration", "name"),
        number(obj, "spec", "matchingPrecedence"),
        NONE if method is None else text(method, "type"),
        created(obj, now),
        "?" if dangling is None else text(dangling, "status"),
    ]


def priority_level(obj: Object, now: datetime) -> Cells:
    limited = at(obj, "spec", "limited")
    queuing = at(limited, "limitResponse", "queuing")
    queues = ("queues", "handSize", "queueLengthLimit")
    return [
        name(obj),
        text(obj, "spec", "type"),
        NONE if limited is None else number(limited, "nominalConcurrencyShares"),
        *(NONE if queuing is None else number(queuing, one) for one in queues),
        created(obj, now),
    ]


def migration(obj: Object, _: datetime) -> Cells:
    status = "Unknown"
    for one in items(obj, "status", "conditions"):
        if one.get("status") == "True" and one.get("type") in ("Running", "Failed", "Succeeded"):
            status = one["type"]
    about = at(obj, "spec", "resource")
    resource = joined(filter(None, (text(about, "resource"), text(about, "group"))), ".")
    return [name(obj), resource, status]


# ── resource.k8s.io ─────────────────────────────────────────────────────────────────────────────────


def named(obj: Object, now: datetime) -> Cells:
    return [name(obj), created(obj, now)]


def resource_claim(obj: Object, now: datetime) -> Cells:
    states = ["deleted"] if is_deleting(obj) else []
    if at(obj, "status", "allocation") is not None:
        states.append("allocated")
        if items(obj, "status", "reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return [name(obj), joined(states), created(obj, now)]


def resource_slice(obj: Object, now: datetime) -> Cells:
    node, driver = text(obj, "spec", "nodeName"), text(obj, "spec", "driver")
    return [name(obj), node, driver, text(obj, "spec", "pool", "name"), created(obj, now)]


def device_taint(obj: Object, now: datetime) -> Cells:
    taint = at(obj, "spec", "taint")
    added = at(taint, "timeAdded")
    return [
        name(obj),
        text(taint, "key"),
        text(taint, "value"),
        text(taint, "effect"),
        "" if added is None else age(added, now),
        created(obj, now),
    ]


_ADMISSION: Final = "admissionregistration.k8s.io"
PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    (_ADMISSION, "MutatingAdmissionPolicy"): mutating_policy,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): policy_binding,
    (_ADMISSION, "MutatingWebhookConfiguration"): webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy"): validating_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): policy_binding,
    (_ADMISSION, "ValidatingWebhookConfiguration"): webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definition,
    ("apiregistration.k8s.io", "APIService"): api_service,
    ("certificates.k8s.io", "CertificateSigningRequest"): signing_request,
    ("certificates.k8s.io", "ClusterTrustBundle"): trust_bundle,
    ("certificates.k8s.io", "PodCertificateRequest"): pod_certificate_request,
    ("coordination.k8s.io", "Lease"): lease,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): flow_schema,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): priority_level,
    ("node.k8s.io", "RuntimeClass"): runtime_class,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): role_binding,
    ("rbac.authorization.k8s.io", "RoleBinding"): role_binding,
    ("resource.k8s.io", "DeviceClass"): named,
    ("resource.k8s.io", "DeviceTaintRule"): device_taint,
    ("resource.k8s.io", "ResourceClaim"): resource_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): named,
    ("resource.k8s.io", "ResourceSlice"): resource_slice,
    ("scheduling.k8s.io", "PriorityClass"): priority_class,
    ("storage.k8s.io", "CSIDriver"): csi_driver,
    ("storage.k8s.io", "CSINode"): csi_node,
    ("storage.k8s.io", "StorageClass"): storage_class,
    ("storage.k8s.io", "VolumeAttachment"): volume_attachment,
    ("storage.k8s.io", "VolumeAttributesClass"): volume_attributes_class,
    ("storagemigration.k8s.io", "StorageVersionMigration"): migration,
}
