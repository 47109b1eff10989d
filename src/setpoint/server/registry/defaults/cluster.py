"""Defaults of all other groups: access, storage, scheduling, networks, scaling, devices, extensions."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.resources import Object

_RBAC: Final = "rbac.authorization.k8s.io"


def _unless_said(obj: Object, **values: Any) -> None:
    for name, value in values.items():
        if obj.get(name) is None:
            obj[name] = value


# --- networking.k8s.io, discovery.k8s.io


def network_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            _unless_said(port, protocol="TCP")


def ingress_class(obj: Object) -> None:
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None:
        _unless_said(parameters, scope="Cluster")


def endpoint_slice(obj: Object) -> None:
    for port in obj.get("ports") or ():
        _unless_said(port, name="", protocol="TCP")


# --- autoscaling


_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"  # where v1 keeps what it has no fields for


def autoscaler_v1(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _unless_said(spec, minReplicas=1)
    if not ((obj.get("metadata") or {}).get("annotations") or {}).get(_METRICS):
        _unless_said(spec, targetCPUUtilizationPercentage=80)


def autoscaler_v2(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _unless_said(spec, minReplicas=1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        up = [_policy("Pods", 4), _policy("Percent", 100)]
        behavior["scaleUp"] = _rules(behavior.get("scaleUp"), up, stabilizationWindowSeconds=0)
        behavior["scaleDown"] = _rules(behavior.get("scaleDown"), [_policy("Percent", 100)])


def _policy(kind: str, value: int) -> Object:
    return {"type": kind, "value": value, "periodSeconds": 15}


def _rules(said: Object | None, policies: list[Object], **more: int) -> Object:
    rules = dict(said or {})
    _unless_said(rules, selectPolicy="Max", policies=policies, **more)
    return rules


# --- rbac.authorization.k8s.io


def role_binding(obj: Object) -> None:
    role = obj.setdefault("roleRef", {})
    if not role.get("apiGroup"):
        role["apiGroup"] = _RBAC
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = _RBAC


# --- storage.k8s.io, scheduling.k8s.io


def storage_class(obj: Object) -> None:
    _unless_said(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def csi_driver(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _unless_said(
        spec,
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
        preventPodSchedulingIfMissing=False,
    )
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def priority_class(obj: Object) -> None:
    _unless_said(obj, preemptionPolicy="PreemptLowerPriority")


# --- flowcontrol.apiserver.k8s.io


def flow_schema(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def priority_level(obj: Object) -> None:
    spec = obj.get("spec") or {}
    if spec.get("exempt") is not None:
        _unless_said(spec["exempt"], nominalConcurrencyShares=0, lendablePercent=0)
    limited = spec.get("limited")
    if limited is not None:
        _unless_said(limited, nominalConcurrencyShares=30, lendablePercent=0)
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for name, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                if not queuing.get(name):
                    queuing[name] = value


# --- resource.k8s.io


def resource_claim(obj: Object) -> None:
    _claim_spec(obj.get("spec") or {})
    allocation = ((obj.get("status") or {}).get("allocation") or {}).get("devices") or {}
    for result in allocation.get("results") or ():
        _tolerations(result)


def resource_claim_template(obj: Object) -> None:
    _claim_spec((obj.get("spec") or {}).get("spec") or {})


def _claim_spec(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for one in [request.get("exactly"), *(request.get("firstAvailable") or ())]:
            if one is not None:
                _counted(one)


def _counted(request: Object) -> None:
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
    _tolerations(request)


def _tolerations(holder: Object) -> None:
    for toleration in holder.get("tolerations") or ():
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"


def device_taints(obj: Object) -> None:
    """Of a ResourceSlice: when it was tainted is when it was made, unless said."""
    now = obj["metadata"].get("creationTimestamp")
    for device in (obj.get("spec") or {}).get("devices") or ():
        for taint in device.get("taints") or ():
            if taint.get("timeAdded") is None and now:
                taint["timeAdded"] = now


# --- authentication.k8s.io


def token_request(obj: Object) -> None:
    _unless_said(obj.setdefault("spec", {}), expirationSeconds=3600)


# --- certificates.k8s.io


def pod_certificate_request(obj: Object) -> None:
    _unless_said(obj.setdefault("spec", {}), maxExpirationSeconds=86400)


# --- admissionregistration.k8s.io


def validating_webhooks(obj: Object) -> None:
    for webhook in obj.get("webhooks") or ():
        _webhook(webhook)


def mutating_webhooks(obj: Object) -> None:
    for webhook in obj.get("webhooks") or ():
        _webhook(webhook)
        _unless_said(webhook, reinvocationPolicy="Never")


def _webhook(webhook: Object) -> None:
    _unless_said(
        webhook,
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector={},
        objectSelector={},
        timeoutSeconds=10,
    )
    _service_port(webhook.get("clientConfig"))
    for rule in webhook.get("rules") or ():
        _unless_said(rule, scope="*")


def _service_port(config: Object | None) -> None:
    service = config.get("service") if config else None
    if service is not None:
        _unless_said(service, port=443)


def admission_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _unless_said(spec, failurePolicy="Fail")
    if spec.get("matchConstraints") is not None:
        _matched(spec["matchConstraints"])


def admission_binding(obj: Object) -> None:
    spec = obj.get("spec") or {}
    if spec.get("matchResources") is not None:
        _matched(spec["matchResources"])


def _matched(resources: Object) -> None:
    _unless_said(resources, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for rule in [*(resources.get("resourceRules") or ()), *(resources.get("excludeResourceRules") or ())]:
        _unless_said(rule, scope="*")


# --- apiextensions.k8s.io, apiregistration.k8s.io


def custom_resource_definition(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    names = spec["names"] = spec.get("names") or {}
    kind = names.get("kind") or ""
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    _unless_said(spec, conversion={"strategy": "None"})
    webhook = spec["conversion"].get("webhook")
    if webhook:
        _service_port(webhook.get("clientConfig"))
    status = obj.setdefault("status", {})
    if not status.get("storedVersions"):
        stored = [one.get("name", "") for one in spec.get("versions") or () if one.get("storage")]
        if stored:
            status["storedVersions"] = stored[:1]


def api_service(obj: Object) -> None:
    _service_port(obj.get("spec"))
