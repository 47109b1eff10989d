"""Which kind is filled in by what.

- ``default(group, version, kind, obj)``: fill in what was left out, in place; kinds without defaults stay
  as they are.  Done twice it does nothing more.  The object has passed ``conform``.
- ``after_uid(group, version, kind, obj)``: what a new object gets once it has its uid and its time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from setpoint.server.registry.defaults import cluster, core, pods, workloads
from setpoint.server.registry.resources import Object

_Default = Callable[[Object], None]


def default(group: str, version: str, kind: str, obj: Object) -> None:
    fill = _DEFAULTS.get((group, version, kind))
    if fill is not None:
        fill(obj)


def after_uid(group: str, version: str, kind: str, obj: Object) -> None:
    fill = _AFTER_UID.get((group, version, kind))
    if fill is not None:
        fill(obj)


_ADMISSION: Final = "admissionregistration.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_DEFAULTS: Final[dict[tuple[str, str, str], _Default]] = {
    ("", "v1", "Endpoints"): core.endpoints,
    ("", "v1", "LimitRange"): core.limit_range,
    ("", "v1", "Namespace"): core.namespace,
    ("", "v1", "Node"): core.node,
    ("", "v1", "PersistentVolume"): core.persistent_volume,
    ("", "v1", "PersistentVolumeClaim"): core.persistent_volume_claim,
    ("", "v1", "Pod"): pods.pod,
    ("", "v1", "PodTemplate"): core.pod_template,
    ("", "v1", "ReplicationController"): core.replication_controller,
    ("", "v1", "Secret"): core.secret,
    ("", "v1", "Service"): core.service,
    ("apps", "v1", "DaemonSet"): workloads.daemon_set,
    ("apps", "v1", "Deployment"): workloads.deployment,
    ("apps", "v1", "ReplicaSet"): workloads.replica_set,
    ("apps", "v1", "StatefulSet"): workloads.stateful_set,
    ("batch", "v1", "CronJob"): workloads.cron_job,
    ("batch", "v1", "Job"): workloads.job,
    (_ADMISSION, "v1", "MutatingAdmissionPolicy"): cluster.admission_policy,
    (_ADMISSION, "v1", "MutatingAdmissionPolicyBinding"): cluster.admission_binding,
    (_ADMISSION, "v1", "MutatingWebhookConfiguration"): cluster.mutating_webhooks,
    (_ADMISSION, "v1", "ValidatingAdmissionPolicy"): cluster.admission_policy,
    (_ADMISSION, "v1", "ValidatingAdmissionPolicyBinding"): cluster.admission_binding,
    (_ADMISSION, "v1", "ValidatingWebhookConfiguration"): cluster.validating_webhooks,
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): cluster.custom_resource_definition,
    ("apiregistration.k8s.io", "v1", "APIService"): cluster.api_service,
    ("authentication.k8s.io", "v1", "TokenRequest"): cluster.token_request,
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): cluster.autoscaler_v1,
    ("autoscaling", "v2", "HorizontalPodAutoscaler"): cluster.autoscaler_v2,
    ("certificates.k8s.io", "v1", "PodCertificateRequest"): cluster.pod_certificate_request,
    ("discovery.k8s.io", "v1", "EndpointSlice"): cluster.endpoint_slice,
    (_FLOW, "v1", "FlowSchema"): cluster.flow_schema,
    (_FLOW, "v1", "PriorityLevelConfiguration"): cluster.priority_level,
    ("networking.k8s.io", "v1", "IngressClass"): cluster.ingress_class,
    ("networking.k8s.io", "v1", "NetworkPolicy"): cluster.network_policy,
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"): cluster.role_binding,
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"): cluster.role_binding,
    ("resource.k8s.io", "v1", "ResourceClaim"): cluster.resource_claim,
    ("resource.k8s.io", "v1", "ResourceClaimTemplate"): cluster.resource_claim_template,
    ("scheduling.k8s.io", "v1", "PriorityClass"): cluster.priority_class,
    ("storage.k8s.io", "v1", "CSIDriver"): cluster.csi_driver,
    ("storage.k8s.io", "v1", "StorageClass"): cluster.storage_class,
}
_AFTER_UID: Final[dict[tuple[str, str, str], _Default]] = {
    ("apps", "v1", "DaemonSet"): workloads.daemon_set_after_uid,
    ("batch", "v1", "Job"): workloads.job_after_uid,
    ("resource.k8s.io", "v1", "ResourceSlice"): cluster.device_taints,
}
