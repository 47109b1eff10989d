"""What is wrong with an object of a built-in kind: which rules it has, kind by kind.

Decides: which rules a request meets.  What each rule looks at, and in which order, is the modules' beside
this one; how a finding is worded is ``found.py``'s.  Everything works on plain JSON that was defaulted
before.  A kind without rules here is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import (
    admission,
    admission_policies,
    autoscaling,
    certificates,
    config,
    cron_jobs,
    jobs,
    networking,
    oddities,
    pod_changes,
    pods,
    policy,
    rbac,
    registered,
    services,
    storage,
    workloads,
)
from setpoint.server.registry.validation.found import Found, once
from setpoint.server.statuses import FieldError

Check = Callable[[Object, Found], None]
Compare = Callable[[Object, Object, Found], None]

_RBAC: Final = "rbac.authorization.k8s.io"
_STORAGE: Final = "storage.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"

_NEW: Final[dict[tuple[str, str], Check]] = {
    ("", "Pod"): pods.check_pod,
    ("", "PodTemplate"): pods.check_pod_template,
    ("", "ReplicationController"): workloads.check_controller,
    ("", "Service"): services.check_service,
    ("", "Endpoints"): networking.check_endpoints,
    ("", "PersistentVolumeClaim"): storage.check_claim,
    ("", "PersistentVolume"): storage.check_volume,
    ("", "ResourceQuota"): policy.check_quota,
    ("", "LimitRange"): policy.check_limit_range,
    ("", "ConfigMap"): config.check_config_map,
    ("", "Secret"): config.check_secret,
    ("", "Namespace"): config.check_namespace,
    ("", "Node"): config.check_node,
    ("", "Event"): config.check_event,
    ("", "Binding"): pods.check_binding,
    ("events.k8s.io", "Event"): config.check_new_event,
    ("apps", "Deployment"): workloads.check_deployment,
    ("apps", "ReplicaSet"): workloads.check_replica_set,
    ("apps", "StatefulSet"): workloads.check_stateful_set,
    ("apps", "DaemonSet"): workloads.check_daemon_set,
    ("apps", "ControllerRevision"): workloads.check_revision,
    ("batch", "Job"): jobs.check_job,
    ("batch", "CronJob"): cron_jobs.check_cron_job,
    ("autoscaling", "HorizontalPodAutoscaler"): autoscaling.check_autoscaler,
    ("policy", "PodDisruptionBudget"): policy.check_budget,
    ("scheduling.k8s.io", "PriorityClass"): policy.check_priority_class,
    ("discovery.k8s.io", "EndpointSlice"): networking.check_slice,
    (_NETWORKING, "Ingress"): networking.check_ingress,
    (_NETWORKING, "IngressClass"): networking.check_ingress_class,
    (_NETWORKING, "NetworkPolicy"): networking.check_policy,
    (_STORAGE, "StorageClass"): storage.check_class,
    (_STORAGE, "VolumeAttributesClass"): storage.check_attributes_class,
    (_STORAGE, "CSIDriver"): storage.check_csi_driver,
    (_STORAGE, "CSINode"): storage.check_csi_node,
    (_STORAGE, "CSIStorageCapacity"): storage.check_storage_capacity,
    (_STORAGE, "VolumeAttachment"): storage.check_attachment,
    (_RBAC, "Role"): rbac.check_role,
    (_RBAC, "ClusterRole"): rbac.check_cluster_role,
    (_RBAC, "RoleBinding"): rbac.check_role_binding,
    (_RBAC, "ClusterRoleBinding"): rbac.check_cluster_role_binding,
    (_ADMISSION, "ValidatingWebhookConfiguration"): admission.check_webhooks,
    (_ADMISSION, "MutatingWebhookConfiguration"): admission.check_webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy"): admission_policies.check_validating_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): admission_policies.check_validating_binding,
    (_ADMISSION, "MutatingAdmissionPolicy"): admission_policies.check_mutating_policy,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): admission_policies.check_mutating_binding,
    ("coordination.k8s.io", "Lease"): config.check_lease,
    ("certificates.k8s.io", "CertificateSigningRequest"): certificates.check_request,
    ("certificates.k8s.io", "ClusterTrustBundle"): certificates.check_bundle,
    ("apiregistration.k8s.io", "APIService"): registered.check_api_service,
    (_NETWORKING, "IPAddress"): registered.check_address,
    (_NETWORKING, "ServiceCIDR"): registered.check_range,
    ("storagemigration.k8s.io", "StorageVersionMigration"): registered.check_migration,
    ("node.k8s.io", "RuntimeClass"): config.check_runtime_class,
}


def _nothing(new: Object, old: Object, found: Found) -> None:
    """An update of this kind is not looked at."""


# Where changing an object is not the same as making it again; by subresource, "" for the object itself.
_CHANGED: Final[dict[tuple[str, str, str], Compare]] = {
    ("", "Pod", ""): pod_changes.check_pod_update,
    ("", "Pod", "status"): pod_changes.check_pod_status,
    ("", "Pod", "resize"): pod_changes.check_resize,
    ("", "Pod", "ephemeralcontainers"): pod_changes.check_ephemeral_update,
    ("", "ReplicationController", "status"): workloads.check_replicas_status,
    ("", "Service", ""): services.check_service_update,
    ("", "Service", "status"): services.check_service_status,
    ("", "Endpoints", ""): networking.check_endpoints_update,
    ("", "PersistentVolumeClaim", ""): storage.check_claim_update,
    ("", "PersistentVolumeClaim", "status"): storage.check_claim_status,
    ("", "PersistentVolume", ""): storage.check_volume_update,
    ("", "ResourceQuota", ""): policy.check_quota_update,
    ("", "ResourceQuota", "status"): policy.check_quota_status,
    ("", "ConfigMap", ""): config.check_config_map_update,
    ("", "Secret", ""): config.check_secret_update,
    ("", "Namespace", ""): _nothing,
    ("", "Namespace", "finalize"): config.check_namespace_finalize,
    ("", "Namespace", "status"): config.check_namespace_status,
    ("", "Node", ""): config.check_node_update,
    ("", "Node", "status"): config.check_node_update,
    ("", "Event", ""): config.check_event_update,
    ("events.k8s.io", "Event", ""): config.check_new_event_update,
    ("apps", "Deployment", ""): workloads.check_deployment_update,
    ("apps", "Deployment", "status"): workloads.check_deployment_status,
    ("apps", "ReplicaSet", ""): workloads.check_replica_set_update,
    ("apps", "ReplicaSet", "status"): workloads.check_replicas_status,
    ("apps", "StatefulSet", ""): workloads.check_stateful_set_update,
    ("apps", "StatefulSet", "status"): workloads.check_stateful_set_status,
    ("apps", "DaemonSet", ""): workloads.check_daemon_set_update,
    ("apps", "DaemonSet", "status"): workloads.check_daemon_set_status,
    ("apps", "ControllerRevision", ""): workloads.check_revision_update,
    ("batch", "Job", ""): jobs.check_job_update,
    ("batch", "Job", "status"): jobs.check_job_status,
    ("batch", "CronJob", ""): cron_jobs.check_cron_job_update,
    ("autoscaling", "HorizontalPodAutoscaler", "status"): autoscaling.check_autoscaler_status,
    ("policy", "PodDisruptionBudget", "status"): policy.check_budget_status,
    ("scheduling.k8s.io", "PriorityClass", ""): policy.check_priority_class_update,
    ("discovery.k8s.io", "EndpointSlice", ""): networking.check_slice_update,
    (_NETWORKING, "Ingress", ""): networking.check_ingress_update,
    (_NETWORKING, "Ingress", "status"): networking.check_ingress_status,
    (_NETWORKING, "IngressClass", ""): networking.check_ingress_class_update,
    (_STORAGE, "StorageClass", ""): storage.check_class_update,
    (_STORAGE, "VolumeAttributesClass", ""): storage.check_attributes_class_update,
    (_STORAGE, "CSIDriver", ""): storage.check_csi_driver_update,
    (_STORAGE, "CSINode", ""): storage.check_csi_node_update,
    (_STORAGE, "CSIStorageCapacity", ""): storage.check_storage_capacity_update,
    (_STORAGE, "VolumeAttachment", ""): storage.check_attachment_update,
    (_RBAC, "RoleBinding", ""): rbac.check_role_binding_update,
    (_RBAC, "ClusterRoleBinding", ""): rbac.check_cluster_role_binding_update,
    ("certificates.k8s.io", "CertificateSigningRequest", ""): certificates.check_request_update,
    ("certificates.k8s.io", "CertificateSigningRequest", "status"): certificates.check_request_status,
    ("certificates.k8s.io", "CertificateSigningRequest", "approval"): certificates.check_request_approval,
    ("certificates.k8s.io", "ClusterTrustBundle", ""): certificates.check_bundle_update,
    ("apiregistration.k8s.io", "APIService", "status"): registered.check_api_service_status,
    (_NETWORKING, "IPAddress", ""): registered.check_address_update,
    (_NETWORKING, "ServiceCIDR", ""): registered.check_range_update,
    ("storagemigration.k8s.io", "StorageVersionMigration", ""): registered.check_migration_update,
    ("node.k8s.io", "RuntimeClass", ""): config.check_runtime_class_update,
}
_WHOLE: Final = ("", "scale")  # what is changed there is the object itself


def errors(group: str, version: str, kind: str, obj: Object) -> list[FieldError]:
    """Of a new object."""
    del version
    check = _NEW.get((group, kind))
    if check is None:
        return []
    found = Found()
    check(obj, found)
    return once(found.errors)


def update_errors(  # noqa: PLR0917 - who calls unpacks a kind
    group: str, version: str, kind: str, new: Object, old: Object, subresource: str
) -> list[FieldError]:
    """Of an object that takes another's place."""
    compare = _CHANGED.get((group, kind, subresource))
    if compare is None and subresource in _WHOLE:
        if subresource == "scale":
            compare = _CHANGED.get((group, kind, ""))
        if compare is None:
            return errors(group, version, kind, new)
    if compare is None:
        return []
    found = Found()
    compare(new, old, found)
    return once(found.errors)


def warnings(group: str, version: str, kind: str, obj: Object, old: Object | None) -> list[str]:
    """What is odd, but taken."""
    del version
    notice = oddities.NOTICES.get((group, kind))
    return notice(obj, old) if notice is not None else []
