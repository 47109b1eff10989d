"""Every built-in kind, from its making to its end; and pods, claims and volumes in more depth.

What is filled in when an object is made, what raises its generation, what a write to its status may change
beside the status, whether an update must name a version and may create, what a deletion answers.

Not here: FlowSchemas, whose status a real server writes a moment later, and PodCertificateRequests.
"""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from typing import Any, Final, NamedTuple

from tests.conformance.asking import MERGE, STRATEGIC, Json, Put, Script, Step

_HERE: Final = "namespaces/${namespace}"
_CORE: Final = "/api/v1"
_PODS: Final = f"{_CORE}/{_HERE}/pods"
_CLAIMS: Final = f"{_CORE}/{_HERE}/persistentvolumeclaims"
_VOLUMES: Final = f"{_CORE}/persistentvolumes"
_THEN: Final = "2020-01-01T00:00:00Z"
_OWNER: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "o",
    "uid": "11111111-2222-3333-4444-555555555555",
}
_TEMPLATE: Final = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i:1"}]},
}
_RUN: Final = {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}
_ONCE: Final = {
    "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
}
_RULE: Final = {
    "apiGroups": ["kinds.example.com"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["things"],
}
_HOOK: Final = {
    "name": "w.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [_RULE],
}
_MATCHED: Final = {"resourceRules": [_RULE]}
_CONDITIONS: Final = {
    "conditions": [
        {"type": "Odd", "status": "True", "lastTransitionTime": _THEN, "reason": "R", "message": "m"}
    ]
}
_DEVICES: Final = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
_BALANCED: Final = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}
_AUTHORITY: Final = """-----BEGIN CERTIFICATE-----
MIIBdzCCAR2gAwIBAgIUIXGJNvEgAYFXiB8ZVb6c9bq9o3swCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFa2luZHMwIBcNMjYxMTE3MTk1MTE4WhgPMjEyNjEwMjQxOTUx
MThaMBAxDjAMBgNVBAMMBWtpbmRzMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
dp1L+Gr/XsigFfzIDqzgVU71rRbjYCzrvCxm4wTJu9M4Ycuf+ZVRLziuOw1CWpfe
q1OZBKjUXsxTvJeIA/tlJaNTMFEwHQYDVR0OBBYEFAMENsTfD9hhS2iX6oV3Zn7n
MVsoMB8GA1UdIwQYMBaAFAMENsTfD9hhS2iX6oV3Zn7nMVsoMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAPNktmdNcsPY9hiWJuJwhDhywGC4IDq6
cKv5V1XJmlhaAiB30FRkbNgnz9huole/u+ztbv4bW6iGtTRykp0mQGFciw==
-----END CERTIFICATE-----
"""


class _Kind(NamedTuple):
    path: str
    body: Json
    change: Json = None  # of what is wanted
    status: Json = None
    name: str = "kinds-a"


def _in(group: str, plural: str, body: Json, change: Json = None, status: Json = None, **more: Any) -> _Kind:
    root = f"/apis/{group}" if "/" in group else _CORE
    return _Kind(f"{root}/{_HERE}/{plural}", body, change, status, **more)


def _of(group: str, plural: str, body: Json, change: Json = None, status: Json = None, **more: Any) -> _Kind:
    """Of a kind that is in no namespace."""
    root = f"/apis/{group}" if "/" in group else _CORE
    return _Kind(f"{root}/{plural}", body, change, status, **more)


_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_KINDS: Final = [
    _in("v1", "configmaps", {"data": {"a": "b"}}, {"data": {"a": "c"}}),
    _in("v1", "endpoints", {"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]}, {"subsets": []}),
    _in("v1", "events", {"involvedObject": {"kind": "Pod", "name": "a", "namespace": "${namespace}"}, "reason": "R", "message": "m", "type": "Normal"}, {"count": 2}),
    _in("v1", "persistentvolumeclaims", {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}, None, {"phase": "Bound"}),
    _in("v1", "pods", _TEMPLATE, {"spec": {"activeDeadlineSeconds": 9}}, {"phase": "Running"}),
    _in("v1", "podtemplates", {"template": _TEMPLATE}, {"template": {"metadata": {"labels": {"c": "d"}}}}),
    _in("v1", "replicationcontrollers", {"spec": {"replicas": 0, "template": _TEMPLATE}}, {"spec": {"replicas": 1}}, {"replicas": 1}),
    _in("v1", "resourcequotas", {"spec": {"hard": {"services.nodeports": "9"}}}, {"spec": {"hard": {"services.nodeports": "8"}}}, {"hard": {"services.nodeports": "8"}}),
    _in("v1", "limitranges", {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "9Ti"}}]}}),
    _in("v1", "secrets", {"data": {"a": "Yg=="}}, {"data": {"a": "Yw=="}}),
    _in("v1", "serviceaccounts", {"secrets": [{"name": "s", "namespace": "n", "kind": "Secret"}, {"kind": "Secret"}]}, {"secrets": [{"name": "t", "uid": "u"}]}),
    _in("v1", "services", {"spec": {"ports": [{"port": 80}]}}, {"spec": {"sessionAffinity": "ClientIP"}}, _BALANCED),
    _of("v1", "nodes", {}, {"spec": {"unschedulable": True}}, {"phase": "Running"}),
    _of("v1", "persistentvolumes", {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}, {"phase": "Available"}),
    _of("apiregistration.k8s.io/v1", "apiservices", {"spec": {"group": "kinds.example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10}}, {"spec": {"versionPriority": 11}}, name="v1.kinds.example.com"),
    _in("apps/v1", "controllerrevisions", {"data": {}, "revision": 1}, {"revision": 2}),
    _in("apps/v1", "daemonsets", {"spec": _RUN}, {"spec": {"minReadySeconds": 1}}, {"currentNumberScheduled": 1}),
    _in("apps/v1", "deployments", {"spec": _RUN}, {"spec": {"replicas": 2}}, {"replicas": 1}),
    _in("apps/v1", "replicasets", {"spec": _RUN}, {"spec": {"replicas": 2}}, {"replicas": 1}),
    _in("apps/v1", "statefulsets", {"spec": _RUN}, {"spec": {"replicas": 2}}, {"replicas": 1}),
    _in("autoscaling/v2", "horizontalpodautoscalers", {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "a"}}}, {"spec": {"maxReplicas": 4}}, {"currentReplicas": 1}),
    _in("batch/v1", "cronjobs", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _ONCE}}}, {"spec": {"suspend": True}}, {"lastScheduleTime": _THEN}),
    _in("batch/v1", "jobs", {"spec": _ONCE}, {"spec": {"suspend": True}}, {"active": 1, "startTime": _THEN}),
    _of("certificates.k8s.io/v1", "clustertrustbundles", {"spec": {"trustBundle": _AUTHORITY}}, {"spec": {"trustBundle": f"one\n{_AUTHORITY}"}}),
    _in("coordination.k8s.io/v1", "leases", {"spec": {"holderIdentity": "h"}}, {"spec": {"holderIdentity": "i"}}),
    _in("discovery.k8s.io/v1", "endpointslices", {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"], "deprecatedTopology": {"x": "y"}}], "ports": [{"port": 80}]}, {"ports": [{"port": 81}]}),
    _of("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}}, {"spec": {"limited": {"nominalConcurrencyShares": 2}}}, _CONDITIONS),
    _of("networking.k8s.io/v1", "ingressclasses", {"spec": {"controller": "example.com/c"}}, {"spec": {"parameters": {"kind": "K", "name": "n", "scope": "Cluster"}}}),
    _in("networking.k8s.io/v1", "ingresses", {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}, {"spec": {"ingressClassName": "c"}}, _BALANCED),
    _of("networking.k8s.io/v1", "ipaddresses", {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}}}, name="10.98.0.7"),
    _in("networking.k8s.io/v1", "networkpolicies", {"spec": {"podSelector": {}}}, {"spec": {"policyTypes": ["Egress"]}}),
    _of("networking.k8s.io/v1", "servicecidrs", {"spec": {"cidrs": ["10.98.0.0/24"]}}, None, _CONDITIONS),
    _of("node.k8s.io/v1", "runtimeclasses", {"handler": "h"}, {"scheduling": {"nodeSelector": {"a": "b"}}}),
    _in("policy/v1", "poddisruptionbudgets", {"spec": {"minAvailable": 1, "selector": {}}}, {"spec": {"minAvailable": 2}}, {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}),
    _of(_RBAC, "clusterroles", {"rules": []}, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    _of(_RBAC, "clusterrolebindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}}, {"subjects": [{"kind": "User", "name": "u"}]}),
    _in(_RBAC, "roles", {"rules": []}, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    _in(_RBAC, "rolebindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}}, {"subjects": [{"kind": "User", "name": "u"}]}),
    _of("resource.k8s.io/v1", "deviceclasses", {"spec": {}}),
    _of("resource.k8s.io/v1", "devicetaintrules", {"spec": {"deviceSelector": {"driver": "d.example.com"}, "taint": {"key": "example.com/t", "effect": "NoSchedule", "timeAdded": _THEN}}}, {"spec": {"taint": {"value": "v"}}}, _CONDITIONS),
    _in("resource.k8s.io/v1", "resourceclaims", {"spec": _DEVICES}, None, {}),
    _in("resource.k8s.io/v1", "resourceclaimtemplates", {"spec": {"spec": _DEVICES}}),
    _of("resource.k8s.io/v1", "resourceslices", {"spec": {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}, {"spec": {"pool": {"generation": 2}}}),
    _of("scheduling.k8s.io/v1", "priorityclasses", {"value": 5}, {"description": "d"}),
    _of("storage.k8s.io/v1", "csidrivers", {"spec": {"attachRequired": False}}, {"spec": {"requiresRepublish": True}}),
    _of("storage.k8s.io/v1", "csinodes", {"spec": {"drivers": []}}, {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}}),
    _in("storage.k8s.io/v1", "csistoragecapacities", {"storageClassName": "s", "capacity": "1Gi"}, {"capacity": "2Gi"}),
    _of("storage.k8s.io/v1", "storageclasses", {"provisioner": "p"}, {"allowVolumeExpansion": True}),
    _of("storage.k8s.io/v1", "volumeattachments", {"spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}, None, {"attached": True}),
    _of("storage.k8s.io/v1", "volumeattributesclasses", {"driverName": "d.example.com", "parameters": {"a": "b"}}),
    _of("storagemigration.k8s.io/v1", "storageversionmigrations", {"spec": {"resource": {"group": "", "resource": "configmaps"}}}, None, {"resourceVersion": "7"}),
    _of(_ADMISSION, "mutatingadmissionpolicies", {"spec": {"matchConstraints": _MATCHED, "reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/a'}]"}}]}}, {"spec": {"failurePolicy": "Ignore"}}),
    _of(_ADMISSION, "mutatingadmissionpolicybindings", {"spec": {"policyName": "p"}}, {"spec": {"policyName": "q"}}),
    _of(_ADMISSION, "mutatingwebhookconfigurations", {}, {"webhooks": [_HOOK]}),
    _of(_ADMISSION, "validatingadmissionpolicies", {"spec": {"matchConstraints": _MATCHED, "validations": [{"expression": "true"}]}}, {"spec": {"failurePolicy": "Ignore"}}, {"observedGeneration": 1}),
    _of(_ADMISSION, "validatingadmissionpolicybindings", {"spec": {"policyName": "p", "validationActions": ["Deny"]}}, {"spec": {"validationActions": ["Warn"]}}),
    _of(_ADMISSION, "validatingwebhookconfigurations", {}, {"webhooks": [_HOOK]}),
]  # fmt: skip


def _life(kind: _Kind) -> list[Step]:
    plural, at = kind.path.rpartition("/")[2], f"{kind.path}/{kind.name}"
    body = {**kind.body, "metadata": {**kind.body.get("metadata", {}), "name": kind.name}}
    other = {**body, "metadata": {"name": "kinds-b"}}
    said = {"labels": {"l": "m"}, "annotations": {"l": "m"}}
    more = {
        "labels": {"s": "t"},
        "annotations": {"s": "t"},
        "ownerReferences": [_OWNER],
        "finalizers": ["example.com/f"],
    }
    return [
        Step("POST", kind.path, body, name=f"{plural} made"),
        Step("PATCH", at, {"metadata": said}, MERGE, name=f"{plural} labelled"),
        *([] if kind.change is None else [Step("PATCH", at, kind.change, MERGE, name=f"{plural} changed")]),
        *(
            []
            if kind.status is None
            else [Step("PATCH", f"{at}/status", {"metadata": more, "status": kind.status}, MERGE, name=f"{plural} status")]
        ),
        Step("PUT", at, Put(f"{plural} made", {"metadata": {"resourceVersion": None}}), name=f"{plural} put unseen"),
        Step("PUT", f"{kind.path}/kinds-b", other, name=f"{plural} put anew", only=("kind", "reason", "message")),
        Step("PATCH", at, {"metadata": {"finalizers": None}}, MERGE, name=f"{plural} let go", only=("kind",)),
        Step("DELETE", at, name=f"{plural} deleted"),
    ]  # fmt: skip


# ── Pods ────────────────────────────────────────────────────────────────────────────────────────────


def _container(name: str = "c", requests: Json = None, limits: Json = None, **more: Json) -> Json:
    resources = {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}
    return {"name": name, "image": "i:1", **({"resources": resources} if resources else {}), **more}


def _pod(name: str, *containers: Json, labels: Json = None, **spec: Json) -> Step:
    body = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": containers or [_container()], **spec},
    }
    return Step("POST", f"{_PODS}?fieldManager=me", body, name=name)


def _begun() -> list[Step]:
    labels = {"app": "a", "pod-template-hash": "h"}
    selector = {"matchLabels": {"app": "a"}}
    term = {
        "topologyKey": "zone",
        "labelSelector": selector,
        "matchLabelKeys": ["pod-template-hash", "absent"],
        "mismatchLabelKeys": ["app"],
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": selector,
    }
    when = "DuringSchedulingIgnoredDuringExecution"
    affinity = {
        "podAffinity": {
            f"required{when}": [term],
            f"preferred{when}": [{"weight": 1, "podAffinityTerm": term}],
        },
        "podAntiAffinity": {
            f"required{when}": [term],
            f"preferred{when}": [{"weight": 1, "podAffinityTerm": term}],
        },
    }
    old = {
        "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
        "container.seccomp.security.alpha.kubernetes.io/c": "runtime/default",
        "container.seccomp.security.alpha.kubernetes.io/d": "runtime/default",
    }
    arch = {
        "matchExpressions": [{"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["a", "b c"]}]
    }
    ways = {
        "containers": [
            _container(),
            _container("d", securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
        ],
        "affinity": {
            "nodeAffinity": {
                f"required{when}": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]}
                    ]
                },
                f"preferred{when}": [{"weight": 1, "preference": arch}],
            }
        },
        "dnsConfig": {"nameservers": ["2001:DB8::1"]},
        "hostAliases": [{"ip": "::0:1", "hostnames": ["h"]}],
    }
    expressed = {"matchExpressions": [{"key": "pod-template-hash", "operator": "Exists"}]}

    def spread_by(*keys: str, **more: Json) -> Json:
        return [{**spread, "matchLabelKeys": list(keys), **more}]

    return [
        _pod("gated", schedulingGates=[{"name": "example.com/g"}]),
        Step("PATCH", f"{_PODS}/gated", {"spec": {"schedulingGates": None}}, MERGE, name="open"),
        _pod("apart", labels=labels, affinity=affinity),
        _pod("spread", labels=labels, topologySpreadConstraints=spread_by("pod-template-hash", "absent")),
        _pod("spread-by-nothing", labels=labels, topologySpreadConstraints=[spread]),
        _pod("spread-twice", labels=labels, topologySpreadConstraints=spread_by("app")),
        _pod("spread-doubly", labels=labels, topologySpreadConstraints=spread_by("pod-template-hash", "pod-template-hash")),
        _pod("spread-by-both", labels=labels, topologySpreadConstraints=spread_by("pod-template-hash", labelSelector=expressed)),
        _pod("spread-by-a-label-it-lacks", labels={"app": "a"}, topologySpreadConstraints=spread_by("pod-template-hash", labelSelector=expressed)),
        _pod("spread-by-none", labels=labels, topologySpreadConstraints=[{name: value for name, value in spread.items() if name != "labelSelector"}]),
        Step("PATCH", f"{_PODS}/spread", {"metadata": {"labels": {"pod-template-hash": "i"}}}, MERGE, name="another hash"),
        Step("POST", f"{_PODS}?dryRun=All", {"metadata": {"name": "old-ways", "annotations": old}, "spec": ways}, name="old ways"),
        Step("POST", "/apis/apps/v1/namespaces/${namespace}/deployments?dryRun=All", {"metadata": {"name": "old-ways"}, "spec": {"selector": selector, "template": {"metadata": {"labels": {"app": "a"}, "annotations": old}, "spec": ways}}}, name="old ways in a template", only=("kind",)),
    ]  # fmt: skip


def _whole() -> list[Step]:
    """Pods that say what all of them ask for."""
    one, two = (
        _container("a", {"cpu": "100m", "memory": "64Mi"}),
        _container("b", {"cpu": "200m"}, {"cpu": "1", "memory": "1Gi"}),
    )
    first = _container("i", {"cpu": "700m"}, {"cpu": "800m", "memory": "1Gi"})
    beside = _container("s", {"cpu": "150m"}, {"cpu": "300m", "memory": "128Mi"}, restartPolicy="Always")
    limited = [_container(name, None, {"cpu": "1", "memory": "1Gi"}) for name in ("a", "b")]
    huge = _container("a", None, {"hugepages-2Mi": "4Mi", "cpu": "1", "memory": "1Gi"})
    return [
        _pod("limits", one, two, resources={"limits": {"cpu": "2", "memory": "2Gi"}}),
        _pod("requests", one, two, resources={"requests": {"cpu": "1"}}),
        _pod("nothing", one, two, resources={}),
        _pod("nothing-at-all", resources={"requests": {}, "limits": {}}),
        _pod("alone", resources={"limits": {"cpu": "1"}}),
        _pod("guaranteed", resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
        _pod("limited", *limited, resources={"requests": {"cpu": "3"}}),
        _pod("limited-too", *limited, resources={"requests": {"cpu": "2", "memory": "2Gi"}}),
        _pod("first", two, initContainers=[first, beside], resources={"requests": {"memory": "3Gi"}}),
        _pod("beside", two, initContainers=[beside, first], resources={"requests": {"memory": "3Gi"}}),
        _pod("huge", huge, resources={"limits": {"cpu": "2"}}),
        _pod("huge-too", huge, resources={"limits": {"hugepages-2Mi": "8Mi", "cpu": "2"}}),
        _pod("hugely-too-little", huge, resources={"limits": {"hugepages-2Mi": "2Mi"}}),
        _pod("too-little", one, two, resources={"requests": {"cpu": "250m"}}),
        _pod("too-low", one, two, resources={"limits": {"cpu": "500m"}}),
        _pod("odd", one, resources={"requests": {"example.com/x": "1"}}),
        _pod("claimed", one, resources={"claims": [{"name": "x"}], "requests": {"cpu": "1"}}),
        Step("PUT", f"{_PODS}/limits", Put("limits", {"spec": {"resources": None}, "metadata": {"labels": {"a": "b"}}}), name="put without"),
    ]  # fmt: skip


def _resized() -> list[Step]:
    """What pods and their containers ask for, changed."""
    one = _container("a", {"cpu": "1", "memory": "1Gi"})
    first = _container("i", {"cpu": "1"})
    strict = _container(
        "j", {"cpu": "1"}, resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    )
    beside = _container("s", {"cpu": "1"}, restartPolicy="Always")

    def resized(pod: str, name: str, body: Json, kind: str = STRATEGIC) -> Step:
        return Step("PATCH", f"{_PODS}/{pod}/resize?fieldManager=you", body, kind, name=name)

    def noded(name: str) -> list[Step]:
        room = {"status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}}
        return [
            Step("POST", f"{_CORE}/nodes", {"metadata": {"name": name}}, is_quiet=True),
            Step("PATCH", f"{_CORE}/nodes/{name}/status", room, MERGE, is_quiet=True),
        ]

    def asking(field: str, name: str, **resources: Json) -> Json:
        return {"spec": {field: [{"name": name, "resources": resources}]}}

    more = {
        "labels": {"s": "t"},
        "annotations": {"s": "t"},
        "ownerReferences": [_OWNER],
        "finalizers": ["example.com/f"],
    }
    debugged = {"metadata": more, "spec": {"ephemeralContainers": [{"name": "e", "image": "i:1"}]}}
    return [
        _pod("plain", one, initContainers=[first, strict, beside]),
        resized("plain", "a container", asking("containers", "a", requests={"cpu": "2"})),
        resized("plain", "to the same", asking("containers", "a", requests={"cpu": "2"})),
        resized("plain", "a sidecar", asking("initContainers", "s", requests={"cpu": "2"})),
        resized("plain", "one that initializes", asking("initContainers", "i", requests={"cpu": "2"})),
        resized("plain", "one with a policy", asking("initContainers", "j", requests={"cpu": "2"})),
        resized("plain", "of anything else", asking("containers", "a", requests={"ephemeral-storage": "1Gi"})),
        resized("plain", "of anything else beside", asking("initContainers", "s", requests={"ephemeral-storage": "1Gi"})),
        resized("plain", "nothing left", asking("containers", "a", requests={"cpu": None})),
        resized("plain", "nothing left beside", asking("initContainers", "s", requests={"cpu": None})),
        resized("plain", "one more", asking("containers", "z", requests={"cpu": "2"})),
        resized("plain", "another", {"spec": {"containers": [{**one, "name": "z"}]}}, MERGE),
        resized("plain", "another first", {"spec": {"initContainers": [{**first, "name": "z"}, strict, beside]}}, MERGE),
        resized("plain", "fewer first", {"spec": {"initContainers": [first]}}, MERGE),
        resized("plain", "another class", asking("containers", "a", limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "2"})),
        resized("plain", "and its metadata", {"metadata": more, **asking("containers", "a", requests={"cpu": "1500m"})}),
        resized("plain", "all of it", {"spec": {"resources": {"requests": {"cpu": "9"}}}}),
        resized("plain", "and its node", {"spec": {"nodeName": "n"}}),
        _pod("whole", one, resources={"requests": {"cpu": "4", "memory": "4Gi"}}),
        resized("whole", "the whole", {"spec": {"resources": {"requests": {"cpu": "5"}}}}),
        resized("whole", "the whole, less", {"spec": {"resources": {"requests": {"cpu": "100m"}}}}),
        resized("whole", "the whole, left out", {"spec": {"resources": None}}, MERGE),
        resized("whole", "the whole, in part", {"spec": {"resources": {"requests": {"memory": None}}}}, MERGE),
        resized("whole", "the whole, limited", {"spec": {"resources": {"limits": {"cpu": "6"}}}}),
        resized("whole", "a container of the whole", asking("containers", "a", requests={"cpu": "2"})),
        Step("PATCH", f"{_PODS}/plain/ephemeralcontainers", debugged, STRATEGIC, name="debugged"),
        *(step for name in ("resized", "resized-elsewhere") for step in noded(name)),
        _pod("nowhere", one, nodeName="resized-nowhere"),
        resized("nowhere", "on no node", asking("containers", "a", requests={"cpu": "2"})),
        resized("nowhere", "on no node, to the same", asking("containers", "a", requests={"cpu": "1"})),
        Step("PATCH", f"{_CORE}/nodes/resized-elsewhere", {"metadata": {"labels": {"kubernetes.io/os": "windows"}}}, MERGE, is_quiet=True),
        _pod("there", one, nodeName="resized"),
        resized("there", "where there is room", asking("containers", "a", requests={"cpu": "4"})),
        resized("there", "where there is no room", asking("containers", "a", requests={"cpu": "4001m", "memory": "9Gi"})),
        resized("there", "where there is no room for one", asking("containers", "a", requests={"memory": "9Gi"})),
        _pod("elsewhere", one, nodeName="resized-elsewhere"),
        resized("elsewhere", "on another system", asking("containers", "a", requests={"cpu": "2"})),
        *(Step("DELETE", f"{_CORE}/nodes/{name}", is_quiet=True) for name in ("resized", "resized-elsewhere")),
    ]  # fmt: skip


def _reported() -> list[Step]:
    """What a node says of a pod, and what it leaves out."""
    observed = {"type": "Ready", "status": "True", "observedGeneration": 3}
    said = {
        "phase": "Running",
        "qosClass": None,
        "observedGeneration": 2,
        "conditions": [observed, {"type": "example.com/x", "status": "True"}],
    }
    unsaid = {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "False"},
            {"type": "Ready", "status": "False"},
            {"type": "PodScheduled", "status": "True", "observedGeneration": 1},
        ],
    }
    owned = {"name": "owned", "ownerReferences": [_OWNER], "labels": {"a": "b"}}
    return [
        Step("POST", _PODS, {"metadata": owned, "spec": {"containers": [_container()]}}, name="owned"),
        Step("PUT", f"{_PODS}/owned/status", Put("owned", {"metadata": {"ownerReferences": None, "labels": {"c": "d"}, "resourceVersion": None}, "status": said}), name="said"),
        Step("PATCH", f"{_PODS}/owned/status", {"metadata": {"ownerReferences": [{**_OWNER, "name": "other"}]}, "status": {"phase": "Running"}}, MERGE, name="another owner"),
        Step("PUT", f"{_PODS}/owned/status", Put("owned", {"metadata": {"resourceVersion": None}, "status": {**unsaid, "qosClass": None}}), name="unsaid"),
        Step("PUT", f"{_PODS}/owned/status", Put("owned", {"metadata": {"resourceVersion": None}, "status": None}), name="nothing said"),
    ]  # fmt: skip


# ── Claims and volumes ──────────────────────────────────────────────────────────────────────────────


def _sources() -> list[Step]:
    """What claims are filled from."""

    def claim(name: str, **spec: Json) -> Step:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
        return Step(
            "POST", f"{_CLAIMS}?fieldManager=me", {"metadata": {"name": name}, "spec": spec}, name=name
        )

    pvc, pod = {"kind": "PersistentVolumeClaim", "name": "other"}, {"kind": "Pod", "name": "p"}
    snapshot = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
    populator = {"apiGroup": "example.com", "kind": "Populator", "name": "p"}
    return [
        claim("claim", dataSource=pvc),
        claim("snapshot", dataSource=snapshot),
        claim("populator", dataSource=populator),
        claim("pod", dataSource=pod),
        claim("nameless", dataSource={"kind": "PersistentVolumeClaim"}),
        claim("by-claim", dataSourceRef=pvc),
        claim("by-populator", dataSourceRef=populator),
        claim("by-pod", dataSourceRef=pod),
        claim("elsewhere", dataSourceRef={**populator, "namespace": "default"}),
        claim("both", dataSource=populator, dataSourceRef=populator),
        claim("either", dataSource=snapshot, dataSourceRef=populator),
        claim("both-elsewhere", dataSource=snapshot, dataSourceRef={**snapshot, "namespace": "default"}),
        Step("PATCH", f"{_CLAIMS}/by-populator", {"spec": {"dataSource": None}}, MERGE, name="the older left out", only=("kind", "spec")),
        Step("PATCH", f"{_CLAIMS}/snapshot", {"spec": {"dataSourceRef": None}}, MERGE, name="the newer left out", only=("kind", "spec")),
        Step("PATCH", f"{_CLAIMS}/snapshot", {"spec": {"dataSourceRef": None, "dataSource": None}}, MERGE, name="both left out"),
        Step("PATCH", f"{_CLAIMS}/populator", {"spec": {"dataSource": populator}}, MERGE, name="told later"),
        Step("PATCH", f"{_CLAIMS}/populator", {"spec": {"dataSource": pvc}}, MERGE, name="another told later"),
    ]  # fmt: skip


def _phases() -> list[Step]:
    """Since when volumes are as they are."""
    volume = {
        "metadata": {"name": "phases-a"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        },
    }

    def told(name: str, **status: Json) -> Step:
        return Step(
            "PATCH", f"{_VOLUMES}/phases-a/status", {"status": status}, MERGE, name=name, only=("status",)
        )

    return [
        Step("POST", _VOLUMES, volume, name="made", only=("status",)),
        told("at a time of its own", lastPhaseTransitionTime=_THEN),
        told("available", phase="Available"),
        told("back then", lastPhaseTransitionTime=_THEN),
        told("bound, back then too", phase="Bound", lastPhaseTransitionTime=_THEN),
        told("released, another time", phase="Released", lastPhaseTransitionTime="2021-01-01T00:00:00Z"),
        told("no time", lastPhaseTransitionTime=None),
        told("failed, no time", phase="Failed", lastPhaseTransitionTime=None, reason="R"),
        Step("DELETE", f"{_VOLUMES}/phases-a", is_quiet=True),
    ]  # fmt: skip


# ── Who vouches for signers ─────────────────────────────────────────────────────────────────────────


def _trusted() -> list[Step]:
    path, roles = "/apis/certificates.k8s.io/v1/clustertrustbundles", f"/apis/{_RBAC}"
    jane = {"Impersonate-User": "jane"}
    group = {"apiGroups": ["certificates.k8s.io"]}
    rule = {**group, "resources": ["clustertrustbundles"], "verbs": ["*"]}
    attest = {**group, "resources": ["signers"], "resourceNames": ["example.com/*"], "verbs": ["attest"]}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "${namespace}"}

    def bundle(name: str, signer: str = "") -> Json:
        return {
            "metadata": {"name": name},
            "spec": {"trustBundle": _AUTHORITY, **({"signerName": signer} if signer else {})},
        }

    own = bundle("example.com:signer:a", "example.com/signer")
    return [
        Step("POST", f"{roles}/clusterroles", {"metadata": {"name": "${namespace}"}, "rules": [rule]}, is_quiet=True),
        Step("POST", f"{roles}/clusterrolebindings", {"metadata": {"name": "${namespace}"}, "roleRef": ref, "subjects": [{"kind": "User", "name": "jane"}]}, is_quiet=True),
        Step("GET", path, headers=jane, until=200, is_quiet=True),
        Step("POST", path, bundle("of-nobody"), headers=jane, name="of nobody"),
        Step("POST", path, own, headers=jane, name="of a signer"),
        Step("POST", path, own, name="of a signer, by the administrator"),
        Step("PATCH", f"{path}/example.com:signer:a", {"metadata": {"labels": {"a": "b"}}}, MERGE, headers=jane, name="labelled"),
        Step("PATCH", f"{path}/example.com:signer:a", {"metadata": {"finalizers": ["example.com/f"]}}, MERGE, headers=jane, name="finalized"),
        Step("PATCH", f"{path}/example.com:signer:a", {"metadata": {"finalizers": None}}, MERGE, headers=jane, is_quiet=True),
        Step("PATCH", f"{roles}/clusterroles/${{namespace}}", {"rules": [rule, attest]}, MERGE, is_quiet=True),
        Step("POST", path, bundle("example.com:signer:b", "example.com/signer"), headers=jane, until=201, name="of a signer whom she vouches for"),
        Step("POST", path, bundle("example.org:signer:b", "example.org/signer"), headers=jane, name="of another signer"),
        *(Step("DELETE", f"{path}/{name}", is_quiet=True) for name in ("of-nobody", "example.com:signer:a", "example.com:signer:b")),
    ]  # fmt: skip


# ── What is refused ─────────────────────────────────────────────────────────────────────────────────

_LOCAL: Final = {
    "version": "v1",
    "group": "refused.example.com",
    "groupPriorityMinimum": 10,
    "versionPriority": 10,
}
_AWAY: Final = {"service": {"namespace": "n", "name": "s"}}


def _refused() -> list[Step]:
    """Rarer kinds, gone wrong; each is only tried."""

    def tried(path: str, name: str, body: Json) -> Step:
        plural = path.rpartition("/")[2]
        return Step(
            "POST", f"/apis/{path}?dryRun=All", {"metadata": {"name": name}, **body}, name=f"{plural} {name}"
        )

    services, addresses = "apiregistration.k8s.io/v1/apiservices", "networking.k8s.io/v1/ipaddresses"
    ranges, bundles = "networking.k8s.io/v1/servicecidrs", "certificates.k8s.io/v1/clustertrustbundles"
    migrations = "storagemigration.k8s.io/v1/storageversionmigrations"
    named, parent = "v1.refused.example.com", {"resource": "services", "name": "s"}
    block = "-----BEGIN {0}-----\n{1}-----END {0}-----\n"
    garbage, headed = (
        block.format("CERTIFICATE", "bm90aGluZw==\n"),
        _AUTHORITY.replace("CERTIFICATE-----\n", "CERTIFICATE-----\na: b\n\n", 1),
    )
    wrong_services: list[Json] = [
        {"groupPriorityMinimum": 0}, {"groupPriorityMinimum": 20001}, {"versionPriority": 0}, {"versionPriority": 1001}, {"version": "V1"}, {"group": "Bad_Group"},
        {"group": ""}, {"caBundle": "eA=="}, {"insecureSkipTLSVerify": True}, {**_AWAY, "insecureSkipTLSVerify": True, "caBundle": "eA=="}, _AWAY, {"service": {}},
        {"service": {"namespace": "n", "name": "s", "port": 70000}},
    ]  # fmt: skip
    wrong_parents: list[Json] = [
        None,
        {},
        {"resource": "a/b", "name": "c/d", "namespace": "e/f", "group": "Bad_Group"},
    ]
    wrong_ranges: list[Json] = [
        None,
        [],
        ["10.9.0.0/24", "10.8.0.0/24"],
        ["10.9.0.1/24"],
        ["10.9.0.0"],
        ["010.9.0.0/24"],
        ["2001:DB8::/64"],
        ["::ffff:10.0.0.0/104"],
        ["10.9.0.0/24", "2001:db8::/64"],
        ["10.9.0.0/24", "x", "y"],
    ]
    wrong_bundles: list[tuple[str, Json]] = [
        ("a", {"trustBundle": ""}), ("a", {"trustBundle": "x"}), ("a", {"trustBundle": _AUTHORITY * 2}), ("a", {"trustBundle": garbage}), ("a", {"trustBundle": headed}),
        ("a", {"trustBundle": block.format("KEY", "bm90aGluZw==\n") + garbage}), ("a", {"trustBundle": _AUTHORITY[:-9]}), ("a:b", {"trustBundle": _AUTHORITY}),
        ("a", {"trustBundle": _AUTHORITY, "signerName": "example.com/s"}), ("example.com:s:Bad", {"trustBundle": _AUTHORITY, "signerName": "example.com/s"}), ("odd:", {"trustBundle": _AUTHORITY, "signerName": "odd"}),
    ]  # fmt: skip
    return [
        *(tried(services, named, {"spec": {**_LOCAL, **one}}) for one in wrong_services),
        tried(services, "v2.refused.example.com", {"spec": _LOCAL}),
        tried(services, "a%b", {"spec": _LOCAL}),
        *(tried(addresses, name, {"spec": {"parentRef": parent}}) for name in ("10.9.0.1", "2001:db8::1", "010.9.0.1", "2001:DB8::1", "::ffff:1.2.3.4", "a")),
        *(tried(addresses, "10.9.0.1", {"spec": {"parentRef": one}}) for one in wrong_parents),
        *(tried(ranges, "a", {"spec": {"cidrs": one}}) for one in wrong_ranges),
        *(tried(bundles, name, {"spec": spec}) for name, spec in wrong_bundles),
        *(tried(migrations, "a", {"spec": {"resource": one}}) for one in ({}, {"resource": "A"}, {"resource": "a", "group": "Bad_Group"})),
        Step("POST", f"/apis/{addresses}", {"metadata": {"name": "10.97.0.1"}, "spec": {"parentRef": parent}}, is_quiet=True),
        Step("PATCH", f"/apis/{addresses}/10.97.0.1", {"spec": {"parentRef": {"name": "t"}}}, MERGE, name="another parent"),
        Step("DELETE", f"/apis/{addresses}/10.97.0.1", is_quiet=True),
        Step("POST", f"/apis/{ranges}", {"metadata": {"name": "refused"}, "spec": {"cidrs": ["10.97.0.0/24"]}}, is_quiet=True),
        *(Step("PATCH", f"/apis/{ranges}/refused?dryRun=All", {"spec": {"cidrs": one}}, MERGE, name=f"another range {number}") for number, one in enumerate(([], ["10.96.0.0/24"], ["10.97.0.0/24", "10.96.0.0/24"], ["10.97.0.0/24", "2001:db8::/64"], ["2001:db8::/64", "10.97.0.0/24"]))),
        Step("DELETE", f"/apis/{ranges}/refused", is_quiet=True),
        Step("POST", f"/apis/{migrations}", {"metadata": {"name": "refused"}, "spec": {"resource": {"resource": "configmaps"}}}, is_quiet=True),
        Step("PATCH", f"/apis/{migrations}/refused", {"spec": {"resource": {"resource": "secrets"}}}, MERGE, name="another resource"),
        Step("DELETE", f"/apis/{migrations}/refused", is_quiet=True),
    ]  # fmt: skip


def _lives() -> list[Step]:
    made = Step("POST", f"{_CORE}/namespaces", {"metadata": {"name": "${namespace}"}}, is_quiet=True)
    return [made, *(step for kind in _KINDS for step in _life(kind))]


SCRIPTS = [
    Script("kinds from beginning to end", _lives(), is_alone=True),
    Script("kinds refused", _refused()),
    Script("pods as they begin", _begun()),
    Script("pods as a whole", _whole()),
    Script("pods resized", _resized()),
    Script("pods reported on", _reported()),
    Script("trust in signers", _trusted()),
    Script("claims filled from others", _sources()),
    Script("volumes by phase", _phases()),
]
