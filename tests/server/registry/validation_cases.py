"""Objects that are right, and many ways to make them wrong.

``KINDS`` names a right object of every kind; ``CASES`` says, kind by kind, what is changed in it.  The same
requests were sent to a real kube-apiserver (``record_validation.py``) and are sent to our registry
(``test_validation.py``): what both answer is compared.

A change is a path (``spec/template/spec/containers/0/image``; ``~1`` for a slash within a name) and a value.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Final, NamedTuple

Object = dict[str, Any]
Change = dict[str, Any]

DROP: Final = "$drop"  # in place of a value: the field is left out
LABELS: Final = {"app": "web"}


class Kind(NamedTuple):
    api_version: str
    plural: str
    namespaced: bool
    base: Object  # without apiVersion, kind, metadata


class Case(NamedTuple):
    kind: str
    verb: str  # create, update, or the subresource that an update is sent to
    changes: Change

    @property
    def key(self) -> str:
        return f"{self.verb} {json.dumps(self.changes, separators=(',', ':'))}"


def long(text: str, times: int) -> Object:
    """A long text, written short."""
    return {"$repeat": [text, times]}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        if "$repeat" in value:
            text, times = value["$repeat"]
            return text * times
        return {key: _value(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_value(one) for one in value]
    return value


def changed(obj: Object, changes: Change) -> Object:
    """The object with the changes made."""
    result = copy.deepcopy(obj)
    for path, value in changes.items():
        *parents, last = [part.replace("~1", "/") for part in path.split("/")]
        holder: Any = result
        for part in parents:
            holder = holder[int(part)] if isinstance(holder, list) else holder.setdefault(part, {})
        if value == DROP:
            if isinstance(holder, list):
                del holder[int(last)]
            else:
                holder.pop(last, None)
        elif isinstance(holder, list):
            if last == "+":
                holder.append(_value(value))
            else:
                holder[int(last)] = _value(value)
        else:
            holder[last] = _value(value)
    return result


def right(kind: str, name: str) -> Object:
    """A right object."""
    known = KINDS[kind]
    metadata = {"name": name, **({"namespace": "default"} if known.namespaced else {})}
    return {
        "apiVersion": known.api_version,
        "kind": kind.partition(" ")[0],
        "metadata": metadata,
    } | copy.deepcopy(known.base)


def name_of(kind: str) -> str:
    return NAMES.get(kind, "thing")


_POD: Object = {"containers": [{"name": "c", "image": "nginx"}]}
_TEMPLATE: Object = {"metadata": {"labels": LABELS}, "spec": _POD}
_SELECTOR: Object = {"matchLabels": LABELS}
_CLAIM: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_HOOK: Object = {
    "name": "a.example.com",
    "clientConfig": {"service": {"name": "s", "namespace": "default", "path": "/x"}},
    "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
_JOB: Object = {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}
# A request that is signed by its own key, which nobody has.
_REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHT01FSUNBUUF3RHpFTk1Bc0dBMVVFQXd3RWFtRnVaVEFx"
    "TUFVR0F5dGxjQU1oQUZqbGFoK0w2NFo1ekZ3OApnQktPeGtDNzNjK1FmaGI2b25Bbms3dXU3eDY3b0FBd0JRWURLMlZ3QTBF"
    "QUROZGgzZFJnd3lhQ3hnOEZYeHQzCjFubnFHR2VQNFplWVRxWDFFYnlCbWdhOGVmNTMvbXR3VlRoM3ZlUVhtcGhJMFZHcHF1"
    "UlJtRjZkZnQveGpqQTQKQ2c9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)

KINDS: Final[dict[str, Kind]] = {
    "Pod": Kind("v1", "pods", True, {"spec": _POD}),
    "Pod gated": Kind(
        "v1", "pods", True, {"spec": {**_POD, "schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}}}
    ),
    "Pod sized": Kind(
        "v1",
        "pods",
        True,
        {
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "nginx",
                        "resources": {
                            "requests": {"cpu": "1"},
                            "limits": {"cpu": "2", "ephemeral-storage": "1Gi"},
                        },
                    }
                ]
            }
        },
    ),
    "PodTemplate": Kind("v1", "podtemplates", True, {"template": _TEMPLATE}),
    "ReplicationController": Kind(
        "v1", "replicationcontrollers", True, {"spec": {"selector": LABELS, "template": _TEMPLATE}}
    ),
    "Deployment": Kind(
        "apps/v1", "deployments", True, {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}
    ),
    "ReplicaSet": Kind(
        "apps/v1", "replicasets", True, {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}
    ),
    "StatefulSet": Kind(
        "apps/v1",
        "statefulsets",
        True,
        {
            "spec": {
                "serviceName": "s",
                "selector": _SELECTOR,
                "template": _TEMPLATE,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _CLAIM}],
            }
        },
    ),
    "DaemonSet": Kind(
        "apps/v1", "daemonsets", True, {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}
    ),
    "ControllerRevision": Kind("apps/v1", "controllerrevisions", True, {"data": {"a": 1}, "revision": 1}),
    "Job": Kind("batch/v1", "jobs", True, {"spec": _JOB}),
    "Job waiting": Kind("batch/v1", "jobs", True, {"spec": {**_JOB, "suspend": True}}),
    "CronJob": Kind(
        "batch/v1", "cronjobs", True, {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": _JOB}}}
    ),
    "Service": Kind("v1", "services", True, {"spec": {"selector": LABELS, "ports": [{"port": 80}]}}),
    "Service there": Kind(
        "v1",
        "services",
        True,
        {"spec": {"selector": LABELS, "clusterIP": "10.0.0.50", "ports": [{"port": 80}]}},
    ),
    "Service node": Kind(
        "v1",
        "services",
        True,
        {"spec": {"type": "NodePort", "clusterIP": "10.0.0.51", "ports": [{"port": 80, "nodePort": 30051}]}},
    ),
    "Service balanced": Kind(
        "v1",
        "services",
        True,
        {
            "spec": {
                "type": "LoadBalancer",
                "externalTrafficPolicy": "Local",
                "clusterIP": "10.0.0.52",
                "healthCheckNodePort": 30053,
                "ports": [{"port": 80, "nodePort": 30052}],
            }
        },
    ),
    "Service headless": Kind("v1", "services", True, {"spec": {"clusterIP": "None", "selector": LABELS}}),
    "Service external": Kind(
        "v1", "services", True, {"spec": {"type": "ExternalName", "externalName": "a.b"}}
    ),
    "Endpoints": Kind(
        "v1", "endpoints", True, {"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}]}
    ),
    "EndpointSlice": Kind(
        "discovery.k8s.io/v1",
        "endpointslices",
        True,
        {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.1.1"]}],
            "ports": [{"name": "http", "port": 80}],
        },
    ),
    "Ingress": Kind(
        "networking.k8s.io/v1",
        "ingresses",
        True,
        {
            "spec": {
                "rules": [
                    {
                        "host": "a.example.com",
                        "http": {
                            "paths": [
                                {
                                    "path": "/",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "s", "port": {"number": 80}}},
                                }
                            ]
                        },
                    }
                ]
            }
        },
    ),
    "IngressClass": Kind(
        "networking.k8s.io/v1", "ingressclasses", False, {"spec": {"controller": "example.com/c"}}
    ),
    "NetworkPolicy": Kind(
        "networking.k8s.io/v1",
        "networkpolicies",
        True,
        {"spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}]}},
    ),
    "PersistentVolumeClaim": Kind("v1", "persistentvolumeclaims", True, {"spec": _CLAIM}),
    "PersistentVolume": Kind(
        "v1",
        "persistentvolumes",
        False,
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/data"},
            }
        },
    ),
    "StorageClass": Kind("storage.k8s.io/v1", "storageclasses", False, {"provisioner": "example.com/p"}),
    "CSIDriver": Kind("storage.k8s.io/v1", "csidrivers", False, {"spec": {}}),
    "CSINode": Kind(
        "storage.k8s.io/v1",
        "csinodes",
        False,
        {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}},
    ),
    "VolumeAttachment": Kind(
        "storage.k8s.io/v1",
        "volumeattachments",
        False,
        {"spec": {"attacher": "example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}},
    ),
    "VolumeAttributesClass": Kind(
        "storage.k8s.io/v1",
        "volumeattributesclasses",
        False,
        {"driverName": "example.com", "parameters": {"a": "b"}},
    ),
    "CSIStorageCapacity": Kind("storage.k8s.io/v1", "csistoragecapacities", True, {"storageClassName": "s"}),
    "PodDisruptionBudget": Kind(
        "policy/v1", "poddisruptionbudgets", True, {"spec": {"minAvailable": 1, "selector": _SELECTOR}}
    ),
    "ResourceQuota": Kind("v1", "resourcequotas", True, {"spec": {"hard": {"pods": "5"}}}),
    "LimitRange": Kind(
        "v1", "limitranges", True, {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}
    ),
    "HorizontalPodAutoscaler": Kind(
        "autoscaling/v2",
        "horizontalpodautoscalers",
        True,
        {
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "maxReplicas": 3,
            }
        },
    ),
    "HorizontalPodAutoscaler v1": Kind(
        "autoscaling/v1",
        "horizontalpodautoscalers",
        True,
        {
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "maxReplicas": 3,
            }
        },
    ),
    "PriorityClass": Kind("scheduling.k8s.io/v1", "priorityclasses", False, {"value": 10}),
    "Role": Kind(
        "rbac.authorization.k8s.io/v1",
        "roles",
        True,
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ),
    "ClusterRole": Kind(
        "rbac.authorization.k8s.io/v1",
        "clusterroles",
        False,
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ),
    "RoleBinding": Kind(
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
        True,
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "a"}],
        },
    ),
    "ClusterRoleBinding": Kind(
        "rbac.authorization.k8s.io/v1",
        "clusterrolebindings",
        False,
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "a"}],
        },
    ),
    "ConfigMap": Kind("v1", "configmaps", True, {"data": {"a": "b"}}),
    "ConfigMap fixed": Kind("v1", "configmaps", True, {"data": {"a": "b"}, "immutable": True}),
    "Secret": Kind("v1", "secrets", True, {"data": {"a": "Yg=="}}),
    "Secret fixed": Kind("v1", "secrets", True, {"data": {"a": "Yg=="}, "immutable": True}),
    "ServiceAccount": Kind("v1", "serviceaccounts", True, {}),
    "Namespace": Kind("v1", "namespaces", False, {}),
    "Node": Kind("v1", "nodes", False, {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}}),
    "Event": Kind(
        "v1", "events", True, {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}
    ),
    "Event new": Kind(
        "events.k8s.io/v1",
        "events",
        True,
        {
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "example.com/c",
            "reportingInstance": "i",
            "action": "Act",
            "reason": "Because",
            "type": "Normal",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        },
    ),
    "Lease": Kind(
        "coordination.k8s.io/v1",
        "leases",
        True,
        {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
    ),
    "CertificateSigningRequest": Kind(
        "certificates.k8s.io/v1",
        "certificatesigningrequests",
        False,
        {
            "spec": {
                "request": _REQUEST,
                "signerName": "example.com/signer",
                "usages": ["client auth"],
            }
        },
    ),
    "ValidatingWebhookConfiguration": Kind(
        "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", False, {"webhooks": [_HOOK]}
    ),
    "MutatingWebhookConfiguration": Kind(
        "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", False, {"webhooks": [_HOOK]}
    ),
    "RuntimeClass": Kind("node.k8s.io/v1", "runtimeclasses", False, {"handler": "h"}),
}
NAMES: Final = {
    "Pod gated": "gated",
    "Pod sized": "sized",
    "Job waiting": "waiting",
    "Service node": "node",
    "Service balanced": "balanced",
    "Service headless": "headless",
    "Service external": "external",
    "ConfigMap fixed": "fixed",
    "Secret fixed": "fixed",
    "Service there": "there",
    "Namespace": "space",
    "HorizontalPodAutoscaler v1": "first",
    "Event new": "new",
}

# ── What goes wrong in every kind ───────────────────────────────────────────────────────────────────

_METADATA: Final[list[Change]] = [
    {"metadata/name": "Bad_Name"},
    {"metadata/name": "with.dots"},
    {"metadata/name": "1digit"},
    {"metadata/name": long("a", 64)},
    {"metadata/name": long("a", 254)},
    {"metadata/name": "a:b"},
    {"metadata/name": "a%b"},
    {"metadata/name": DROP},
    {"metadata/name": DROP, "metadata/generateName": "Bad_"},
]
_METADATA_ONCE: Final[list[Change]] = [
    {"metadata/labels": {"bad key": "v"}},
    {"metadata/labels": {"k": "bad value"}},
    {"metadata/labels": {"a/b/c": "v"}},
    {"metadata/labels": {"/b": "v"}},
    {"metadata/labels": {"Upper.Case/b": "v"}},
    {"metadata/labels": {"k": long("v", 64)}},
    {"metadata/annotations": {"bad key": "v"}},
    {"metadata/annotations": {"k": long("v", 262144)}},
    {"metadata/annotations": {"UPPER/Case": "fine"}},
    {"metadata/finalizers": ["nodomain"]},
    {"metadata/finalizers": ["bad finalizer/x"]},
    {"metadata/finalizers": ["orphan", "foregroundDeletion"]},
    {"metadata/finalizers": ["example.com/fine"]},
    {"metadata/ownerReferences": [{}]},
    {"metadata/ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
    {"metadata/ownerReferences": [{"apiVersion": "a/b/c", "kind": "Pod", "name": "p", "uid": "u"}]},
    {"metadata/ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}]},
    {
        "metadata/ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True},
            {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "v", "controller": True},
        ]
    },
    {"metadata/generateName": "Bad_"},
    {"metadata/managedFields": [{"manager": "m", "operation": "Nope", "apiVersion": "v1"}]},
]

# ── Pods ────────────────────────────────────────────────────────────────────────────────────────────

_C: Final = "spec/containers/0"


_POD_CHANGES: Final[list[Change]] = [
    {"spec/containers": []},
    {"spec/containers": DROP},
    {"spec": DROP},
    {f"{_C}/name": DROP},
    {f"{_C}/name": "Bad_Name"},
    {f"{_C}/name": long("c", 64)},
    {f"{_C}/image": DROP},
    {f"{_C}/image": " nginx"},
    {"spec/containers/+": {"name": "c", "image": "i"}},
    {f"{_C}/imagePullPolicy": "Sometimes"},
    {f"{_C}/terminationMessagePolicy": "Nope"},
    {f"{_C}/ports": [{"containerPort": 0}]},
    {f"{_C}/ports": [{"containerPort": 70000}]},
    {f"{_C}/ports": [{"containerPort": 80, "protocol": "tcp"}]},
    {f"{_C}/ports": [{"containerPort": 80, "name": "Bad_Name"}]},
    {f"{_C}/ports": [{"containerPort": 80, "name": "toolongportname16"}]},
    {f"{_C}/ports": [{"containerPort": 80, "name": "a--b-"}]},
    {f"{_C}/ports": [{"containerPort": 80, "name": "123"}]},
    {f"{_C}/ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81, "name": "http"}]},
    {f"{_C}/ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]},
    {f"{_C}/ports": [{"containerPort": 80, "hostPort": 70000}]},
    {f"{_C}/ports": [{"containerPort": 80}, {"containerPort": 80}]},
    {f"{_C}/ports": [{"containerPort": 80, "hostIP": "1.2.3.4"}]},
    {"spec/hostNetwork": True, f"{_C}/ports": [{"containerPort": 80, "hostPort": 81}]},
    {f"{_C}/env": [{"value": "v"}]},
    {f"{_C}/env": [{"name": "1bad"}]},
    {f"{_C}/env": [{"name": "a=b"}]},
    {f"{_C}/env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
    {f"{_C}/env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A):2"}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {}}]},
    {f"{_C}/env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.restartPolicy"}}}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['ab']"}}}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name['ab']"}}}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.nope"}}}]},
    {
        f"{_C}/env": [
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}
        ]
    },
    {f"{_C}/env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "Bad_", "key": ""}}}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b c"}}}]},
    {f"{_C}/env": [{"name": "A", "valueFrom": {"secretKeyRef": {"key": "x"}}}]},
    {
        f"{_C}/env": [
            {
                "name": "A",
                "valueFrom": {
                    "secretKeyRef": {"name": "a", "key": "x"},
                    "configMapKeyRef": {"name": "a", "key": "x"},
                },
            }
        ]
    },
    {f"{_C}/envFrom": [{}]},
    {f"{_C}/envFrom": [{"configMapRef": {}}]},
    {f"{_C}/envFrom": [{"configMapRef": {"name": "Bad_"}, "prefix": "1="}]},
    {f"{_C}/envFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]},
    {f"{_C}/volumeMounts": [{"name": "nope", "mountPath": "/x"}]},
    {f"{_C}/volumeMounts": [{"mountPath": "/x"}]},
    {"spec/volumes": [{"name": "v", "emptyDir": {}}], f"{_C}/volumeMounts": [{"name": "v"}]},
    {
        "spec/volumes": [{"name": "v", "emptyDir": {}}],
        f"{_C}/volumeMounts": [{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}],
    },
    {
        "spec/volumes": [{"name": "v", "emptyDir": {}}],
        f"{_C}/volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "/abs/../x"}],
    },
    {
        "spec/volumes": [{"name": "v", "emptyDir": {}}],
        f"{_C}/volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "a", "subPathExpr": "b"}],
    },
    {
        "spec/volumes": [{"name": "v", "emptyDir": {}}],
        f"{_C}/volumeMounts": [{"name": "v", "mountPath": "/x", "mountPropagation": "Bidirectional"}],
    },
    {
        "spec/volumes": [{"name": "v", "emptyDir": {}}],
        f"{_C}/volumeMounts": [{"name": "v", "mountPath": "/x", "mountPropagation": "Nope"}],
    },
    {
        "spec/volumes": [{"name": "v", "emptyDir": {}}],
        f"{_C}/volumeMounts": [{"name": "v", "mountPath": "/x", "recursiveReadOnly": "Enabled"}],
    },
    {
        "spec/volumes": [{"name": "v", "emptyDir": {}}],
        f"{_C}/volumeDevices": [{"name": "v", "devicePath": "/dev/../x"}],
    },
    {f"{_C}/volumeDevices": [{"name": "nope"}]},
    {"spec/volumes": [{"name": "v"}]},
    {"spec/volumes": [{"emptyDir": {}}]},
    {"spec/volumes": [{"name": "Bad_", "emptyDir": {}}]},
    {"spec/volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
    {"spec/volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
    {"spec/volumes": [{"name": "v", "emptyDir": {"sizeLimit": "-1"}}]},
    {"spec/volumes": [{"name": "v", "hostPath": {"path": ""}}]},
    {"spec/volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]},
    {"spec/volumes": [{"name": "v", "hostPath": {"path": "/a", "type": "Nope"}}]},
    {"spec/volumes": [{"name": "v", "secret": {}}]},
    {"spec/volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 512}}]},
    {"spec/volumes": [{"name": "v", "secret": {"secretName": "s", "items": [{"mode": -1}]}}]},
    {"spec/volumes": [{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "../x"}]}}]},
    {"spec/volumes": [{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "/x"}]}}]},
    {"spec/volumes": [{"name": "v", "configMap": {}}]},
    {"spec/volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "..x"}]}}]},
    {"spec/volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
    {"spec/volumes": [{"name": "v", "nfs": {"path": "x"}}]},
    {"spec/volumes": [{"name": "v", "downwardAPI": {"items": [{}]}}]},
    {
        "spec/volumes": [
            {"name": "v", "downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "nope"}}]}}
        ]
    },
    {
        "spec/volumes": [
            {
                "name": "v",
                "downwardAPI": {"items": [{"path": "x", "resourceFieldRef": {"resource": "limits.cpu"}}]},
            }
        ]
    },
    {"spec/volumes": [{"name": "v", "projected": {"sources": [{"secret": {}}]}}]},
    {"spec/volumes": [{"name": "v", "projected": {"sources": [{"configMap": {}, "secret": {"name": "s"}}]}}]},
    {
        "spec/volumes": [
            {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 5}}]}}
        ]
    },
    {"spec/volumes": [{"name": "v", "projected": {"sources": [], "defaultMode": 512}}]},
    {"spec/volumes": [{"name": "v", "csi": {}}]},
    {"spec/volumes": [{"name": "v", "csi": {"driver": "Bad_"}}]},
    {"spec/volumes": [{"name": "v", "ephemeral": {}}]},
    {"spec/volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
    {"spec/volumes": [{"name": "v", "image": {"pullPolicy": "Nope"}}]},
    {"spec/volumes": [{"name": "v", "gitRepo": {"repository": "r", "directory": ".."}}]},
    {"spec/volumes": [{"name": "v", "rbd": {}}]},
    {"spec/volumes": [{"name": "v", "iscsi": {}}]},
    {f"{_C}/resources": {"limits": {"cpu": "-1"}}},
    {f"{_C}/resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
    {f"{_C}/resources": {"requests": {"memory": "1.5Gi"}, "limits": {"memory": "1Gi"}}},
    {f"{_C}/resources": {"requests": {"nope": "1"}}},
    {f"{_C}/resources": {"requests": {"example.com/gpu": "1"}}},
    {f"{_C}/resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}},
    {f"{_C}/resources": {"limits": {"example.com/gpu": "1500m"}}},
    {f"{_C}/resources": {"limits": {"bad key": "1"}}},
    {f"{_C}/resources": {"limits": {"storage": "1"}}},
    {f"{_C}/resources": {"limits": {"requests.example.com/gpu": "1"}}},
    {f"{_C}/resources": {"limits": {"kubernetes.io/nope": "1"}}},
    {f"{_C}/resources": {"limits": {"hugepages-2Mi": "3Mi"}}},
    {f"{_C}/resources": {"limits": {"memory": "100m"}}},
    {f"{_C}/resources": {"claims": [{"name": "nope"}]}},
    {f"{_C}/resizePolicy": [{"resourceName": "nope", "restartPolicy": "nope"}]},
    {f"{_C}/livenessProbe": {}},
    {f"{_C}/livenessProbe": {"httpGet": {"port": 0}}},
    {f"{_C}/livenessProbe": {"httpGet": {"port": "Bad_Port"}}},
    {f"{_C}/livenessProbe": {"httpGet": {"port": 80, "scheme": "ftp"}}},
    {f"{_C}/livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b", "value": ""}]}}},
    {f"{_C}/livenessProbe": {"httpGet": {"port": 80}, "tcpSocket": {"port": 80}}},
    {f"{_C}/livenessProbe": {"exec": {}}},
    {f"{_C}/livenessProbe": {"tcpSocket": {"port": 0}}},
    {f"{_C}/livenessProbe": {"grpc": {"port": 0}}},
    {f"{_C}/livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}},
    {f"{_C}/livenessProbe": {"tcpSocket": {"port": 1}, "initialDelaySeconds": -1, "timeoutSeconds": -1}},
    {f"{_C}/livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": -1, "failureThreshold": -2}},
    {f"{_C}/livenessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 0}},
    {f"{_C}/readinessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 1}},
    {f"{_C}/startupProbe": {"tcpSocket": {"port": 1}, "successThreshold": 3}},
    {f"{_C}/lifecycle": {"preStop": {}}},
    {f"{_C}/lifecycle": {"postStart": {"exec": {}}}},
    {f"{_C}/lifecycle": {"preStop": {"sleep": {"seconds": 100}}}},
    {f"{_C}/lifecycle": {"stopSignal": "SIGTERM"}},
    {f"{_C}/restartPolicy": "Nope"},
    {f"{_C}/securityContext": {"runAsUser": -1, "runAsGroup": -1}},
    {f"{_C}/securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
    {f"{_C}/securityContext": {"procMount": "Nope"}},
    {f"{_C}/securityContext": {"procMount": "Unmasked"}},
    {f"{_C}/securityContext": {"seccompProfile": {}}},
    {f"{_C}/securityContext": {"seccompProfile": {"type": "Localhost"}}},
    {f"{_C}/securityContext": {"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "x"}}},
    {f"{_C}/securityContext": {"appArmorProfile": {"type": "Nope"}}},
    {f"{_C}/securityContext": {"appArmorProfile": {"type": "Localhost"}}},
    {"spec/initContainers": [{"name": "c", "image": "i"}]},
    {"spec/initContainers": [{"name": "i", "image": "i", "readinessProbe": {"tcpSocket": {"port": 1}}}]},
    {
        "spec/initContainers": [
            {"name": "i", "image": "i", "lifecycle": {"preStop": {"exec": {"command": ["a"]}}}}
        ]
    },
    {"spec/initContainers": [{"image": "i"}]},
    {"spec/initContainers": [{"name": "i", "image": "i", "restartPolicy": "Nope"}]},
    {"spec/initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always", "livenessProbe": {}}]},
    {"spec/ephemeralContainers": [{"name": "e", "image": "i"}]},
    {"spec/restartPolicy": "Nope"},
    {"spec/dnsPolicy": "Nope"},
    {"spec/dnsPolicy": "None"},
    {"spec/dnsPolicy": "None", "spec/dnsConfig": {"searches": ["a"]}},
    {"spec/dnsConfig": {"nameservers": ["nope", "1.1.1.1", "2.2.2.2", "3.3.3.3"]}},
    {"spec/dnsConfig": {"searches": ["Bad!"], "options": [{}]}},
    {"spec/nodeSelector": {"bad key": "v"}},
    {"spec/nodeName": "Bad_"},
    {"spec/hostname": "Bad_"},
    {"spec/subdomain": "Bad_"},
    {"spec/serviceAccountName": "Bad_"},
    {"spec/activeDeadlineSeconds": 0},
    {"spec/terminationGracePeriodSeconds": -1},
    {"spec/priorityClassName": "Bad_"},
    {"spec/runtimeClassName": "Bad_"},
    {"spec/preemptionPolicy": "Nope"},
    {"spec/hostAliases": [{"ip": "nope", "hostnames": ["Bad_"]}]},
    {"spec/hostAliases": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]},
    {"spec/imagePullSecrets": [{"name": ""}]},
    {"spec/imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
    {"spec/tolerations": [{"key": "bad key", "operator": "Exists"}]},
    {"spec/tolerations": [{"operator": "Equal"}]},
    {"spec/tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
    {"spec/tolerations": [{"key": "a", "operator": "Nope"}]},
    {"spec/tolerations": [{"key": "a", "value": "bad value"}]},
    {"spec/tolerations": [{"key": "a", "effect": "Nope"}]},
    {"spec/tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]},
    {"spec/readinessGates": [{"conditionType": "bad type"}]},
    {"spec/schedulingGates": [{"name": "a"}, {"name": "a"}]},
    {"spec/schedulingGates": [{"name": "bad name"}]},
    {"spec/schedulingGates": [{"name": "a"}], "spec/nodeName": "n"},
    {"spec/shareProcessNamespace": True, "spec/hostPID": True},
    {"spec/os": {"name": "nope"}},
    {"spec/os": {"name": "windows"}, "spec/hostPID": True},
    {"spec/securityContext": {"fsGroup": -1, "runAsUser": -1, "supplementalGroups": [-1]}},
    {"spec/securityContext": {"sysctls": [{"name": "bad name", "value": "1"}, {"value": "1"}]}},
    {"spec/securityContext": {"fsGroupChangePolicy": "Nope"}},
    {"spec/securityContext": {"supplementalGroupsPolicy": "Nope"}},
    {
        "spec/affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
        }
    },
    {
        "spec/affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "a", "operator": "Nope"},
                                {"key": "bad key", "operator": "In"},
                                {"key": "a", "operator": "Exists", "values": ["x"]},
                                {"key": "a", "operator": "Gt"},
                            ],
                            "matchFields": [{"key": "nope", "operator": "Exists"}],
                        }
                    ]
                }
            }
        }
    },
    {
        "spec/affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
                ]
            }
        }
    },
    {
        "spec/affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["Bad_"]}]}
        }
    },
    {
        "spec/affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 101,
                        "podAffinityTerm": {
                            "topologyKey": "bad key",
                            "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Nope"}]},
                        },
                    }
                ]
            }
        }
    },
    {"spec/topologySpreadConstraints": [{}]},
    {
        "spec/topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0},
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        ]
    },
    {
        "spec/topologySpreadConstraints": [
            {
                "maxSkew": 0,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "minDomains": 2,
                "matchLabelKeys": ["a"],
                "nodeAffinityPolicy": "Nope",
            }
        ]
    },
    {"spec/overhead": {"cpu": "-1"}},
    {"spec/resourceClaims": [{"name": "a"}]},
    {"spec/resourceClaims": [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "Bad_"}]},
    {"spec/hostUsers": False, "spec/hostPID": True},
    {"spec/setHostnameAsFQDN": True},
    {"spec/nodeSelector": {"beta.kubernetes.io/os": "linux"}},
    {"metadata/annotations": {"controller.kubernetes.io/pod-deletion-cost": "x"}},
    {"metadata/annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}},
    {"spec/resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "500m"}}},
    {"spec/priority": 5},
]
_POD_UPDATES: Final[list[Change]] = [
    {f"{_C}/image": "other"},
    {f"{_C}/image": ""},
    {f"{_C}/name": "other"},
    {"spec/containers/+": {"name": "d", "image": "i"}},
    {f"{_C}/env": [{"name": "A", "value": "1"}]},
    {"spec/nodeName": "n"},
    {"spec/restartPolicy": "Never"},
    {"spec/activeDeadlineSeconds": 5},
    {"spec/tolerations": []},
    {"spec/tolerations/+": {"key": "a", "operator": "Exists"}},
    {"spec/terminationGracePeriodSeconds": 5},
    {"spec/schedulingGates": [{"name": "a"}]},
    {f"{_C}/resources": {"requests": {"cpu": "1"}}},
    {"metadata/labels": {"a": "b"}},
    {"metadata/labels": {"a": "b c"}},
    {"metadata/annotations": {"kubernetes.io/config.mirror": "x"}},
    {"spec/serviceAccountName": "other"},
]


def _in_template(changes: Change) -> Change:
    return {
        path.replace("metadata/annotations", "spec/template/metadata/annotations", 1)
        if path.startswith("metadata")
        else f"spec/template/{path}": value
        for path, value in changes.items()
    }


_TEMPLATE_CHANGES: Final[list[Change]] = [
    {"spec/template": DROP},
    {"spec/template/metadata": DROP},
    {"spec/template/metadata/labels": {"app": "other"}},
    {"spec/template/metadata/labels": {"app": "web", "bad key": "x"}},
    {"spec/template/metadata/annotations": {"bad key": "x"}},
    {"spec/template/spec/containers": []},
    {"spec/template/spec/containers/0/image": DROP},
    {"spec/template/spec/containers/0/image": " padded "},
    {"spec/template/spec/restartPolicy": "Never"},
    {"spec/template/spec/activeDeadlineSeconds": 5},
    {"spec/template/spec/ephemeralContainers": [{"name": "e", "image": "i"}]},
    {"spec/template/spec/terminationGracePeriodSeconds": -1},
    {"spec/template/spec/containers/0/env": [{"name": "A"}, {"name": "A"}]},
    {"spec/template/spec/containers/0/volumeMounts": [{"name": "nope", "mountPath": "/x"}]},
]
_SELECTORS: Final[list[Change]] = [
    {"spec/selector": DROP},
    {"spec/selector": {}},
    {"spec/selector": {"matchLabels": {"bad key": "x"}}},
    {"spec/selector": {"matchLabels": {"app": "bad value"}}},
    {"spec/selector": {"matchExpressions": [{"key": "app", "operator": "Nope"}]}},
    {"spec/selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
    {"spec/selector": {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]}},
    {"spec/selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["bad value"]}]}},
]


def _hook_changes() -> list[Change]:
    h, r = "webhooks/0", "webhooks/0/rules/0"
    return [
        {f"{h}/name": "short"},
        {f"{h}/name": DROP},
        {f"{h}/name": "Bad_.example.com"},
        {f"{h}/sideEffects": DROP},
        {f"{h}/sideEffects": "Some"},
        {f"{h}/admissionReviewVersions": DROP},
        {f"{h}/admissionReviewVersions": ["v2"]},
        {f"{h}/admissionReviewVersions": ["v1", "v1"]},
        {f"{h}/admissionReviewVersions": ["v1", "1x"]},
        {f"{h}/failurePolicy": "Nope"},
        {f"{h}/matchPolicy": "Nope"},
        {f"{h}/timeoutSeconds": 0},
        {f"{h}/timeoutSeconds": 31},
        {f"{h}/clientConfig": {}},
        {f"{h}/clientConfig/url": "https://a.example.com"},
        {f"{h}/clientConfig": {"url": "http://u@a.example.com/?q=1#f"}},
        {f"{h}/clientConfig": {"url": "https:///x"}},
        {f"{h}/clientConfig": {"url": "https://a.example.com/x"}},
        {f"{h}/clientConfig/service": {}},
        {f"{h}/clientConfig/service/port": 0},
        {f"{h}/clientConfig/service/path": "x"},
        {f"{h}/clientConfig/service/path": "//"},
        {f"{h}/clientConfig/service/path": "/a//Bad_"},
        {f"{h}/namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        {f"{h}/objectSelector": {"matchLabels": {"bad key": "x"}}},
        {f"{r}/operations": []},
        {f"{r}/operations": ["*", "CREATE"]},
        {f"{r}/operations": ["create"]},
        {f"{r}/apiGroups": DROP},
        {f"{r}/apiGroups": ["*", "apps"]},
        {f"{r}/apiVersions": DROP},
        {f"{r}/apiVersions": ["*", "v1"]},
        {f"{r}/apiVersions": [""]},
        {f"{r}/resources": DROP},
        {f"{r}/resources": [""]},
        {f"{r}/resources": ["*/*", "pods"]},
        {f"{r}/resources": ["*", "pods"]},
        {f"{r}/resources": ["pods/*", "pods/status"]},
        {f"{r}/resources": ["*/status", "pods/status"]},
        {f"{r}/scope": "Nope"},
        {"webhooks/+": _HOOK},
        {f"{h}/matchConditions": [{"name": "", "expression": ""}]},
        {
            f"{h}/matchConditions": [
                {"name": "bad name", "expression": "true"},
                {"name": "a", "expression": "true"},
            ]
        },
    ]


CREATES: Final[dict[str, list[Change]]] = {
    "Pod": _POD_CHANGES,
    "PodTemplate": [
        {"template": DROP},
        {"template/metadata/labels": {"bad key": "x"}},
        {"template/spec/containers": []},
        {"template/spec/restartPolicy": "Nope"},
    ],
    "ReplicationController": [
        {"spec": DROP},
        {"spec/replicas": -1},
        {"spec/minReadySeconds": -1},
        {"spec/selector": DROP},
        {"spec/selector": {"app": "other"}},
        *_TEMPLATE_CHANGES,
    ],
    "Deployment": [
        {"spec": DROP},
        {"spec/replicas": -1},
        {"spec/minReadySeconds": -1},
        {"spec/revisionHistoryLimit": -1},
        {"spec/progressDeadlineSeconds": -1},
        {"spec/progressDeadlineSeconds": 5, "spec/minReadySeconds": 5},
        {"spec/strategy": {"type": "Nope"}},
        {"spec/strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        {"spec/strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
        {"spec/strategy": {"rollingUpdate": {"maxSurge": -1, "maxUnavailable": "abc"}}},
        {"spec/strategy": {"rollingUpdate": {"maxSurge": "150%", "maxUnavailable": "150%"}}},
        *[_in_template(one) for one in _POD_CHANGES if "spec" not in one][1::6],
        *_SELECTORS,
        *_TEMPLATE_CHANGES,
    ],
    "ReplicaSet": [
        {"spec/replicas": -1, "spec/minReadySeconds": -1},
        *_SELECTORS,
        *_TEMPLATE_CHANGES,
    ],
    "StatefulSet": [
        {"spec": DROP},
        {"spec/replicas": -1},
        {"spec/minReadySeconds": -1},
        {"spec/revisionHistoryLimit": -1},
        {"spec/serviceName": DROP},
        {"spec/serviceName": "Bad_"},
        {"spec/podManagementPolicy": "Nope"},
        {"spec/updateStrategy": {"type": "Nope"}},
        {"spec/updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
        {"spec/updateStrategy": {"rollingUpdate": {"partition": -1}}},
        {"spec/updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
        {"spec/updateStrategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
        {"spec/persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Nope"}},
        {"spec/ordinals": {"start": -1}},
        {"spec/volumeClaimTemplates/0/spec": {}},
        {"spec/volumeClaimTemplates/0/metadata/name": DROP},
        {"spec/template/spec/containers/0/volumeMounts": [{"name": "data", "mountPath": "/x"}]},
        {"metadata/name": long("a", 60)},
        *_SELECTORS,
        *_TEMPLATE_CHANGES,
    ],
    "DaemonSet": [
        {"spec/minReadySeconds": -1},
        {"spec/revisionHistoryLimit": -1},
        {"spec/updateStrategy": {"type": "Nope"}},
        {"spec/updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
        {"spec/updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}},
        {"spec/updateStrategy": {"rollingUpdate": {"maxUnavailable": "200%"}}},
        *_SELECTORS,
        *_TEMPLATE_CHANGES,
    ],
    "ControllerRevision": [{"revision": -1}, {"data": DROP}, {"data": [1]}, {"data": "x"}],
    "Job": [
        {"spec": DROP},
        {"spec/parallelism": -1, "spec/completions": -1},
        {"spec/backoffLimit": -1},
        {"spec/activeDeadlineSeconds": -1},
        {"spec/ttlSecondsAfterFinished": -1},
        {"spec/completionMode": "Nope"},
        {"spec/completionMode": "Indexed"},
        {"spec/completionMode": "Indexed", "spec/completions": 2, "spec/parallelism": 100001},
        {"spec/backoffLimitPerIndex": 1},
        {"spec/maxFailedIndexes": 1},
        {"spec/podReplacementPolicy": "Nope"},
        {"spec/managedBy": "nope"},
        {"spec/managedBy": long("a", 70)},
        {"spec/selector": {"matchLabels": {"a": "b"}}},
        {"spec/manualSelector": True},
        {"spec/manualSelector": True, "spec/selector": {"matchLabels": {"a": "b"}}},
        {"spec/template/spec/restartPolicy": DROP},
        {"spec/template/spec/restartPolicy": "Always"},
        {"spec/template/spec/restartPolicy": "Nope"},
        {"spec/template/spec/containers": []},
        {"spec/podFailurePolicy": {"rules": [{}]}},
        {
            "spec/podFailurePolicy": {
                "rules": [{"action": "Nope", "onExitCodes": {"operator": "Nope", "values": []}}]
            }
        },
        {
            "spec/podFailurePolicy": {
                "rules": [
                    {
                        "action": "FailJob",
                        "onExitCodes": {"operator": "In", "values": [0, 3, 2, 2], "containerName": "x"},
                    }
                ]
            }
        },
        {
            "spec/podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "bad type", "status": "x"}]}]
            },
            "spec/template/spec/restartPolicy": "OnFailure",
        },
        {"spec/successPolicy": {"rules": []}},
        {"spec/successPolicy": {"rules": []}, "spec/completionMode": "Indexed", "spec/completions": 2},
        {
            "spec/successPolicy": {"rules": [{}, {"succeededIndexes": "5-3"}, {"succeededCount": 3}]},
            "spec/completionMode": "Indexed",
            "spec/completions": 2,
        },
    ],
    "CronJob": [
        {"spec": DROP},
        {"spec/schedule": DROP},
        {"spec/schedule": "nope"},
        {"spec/schedule": "* * * *"},
        {"spec/schedule": "* * * * * *"},
        {"spec/schedule": "60 * * * *"},
        {"spec/schedule": "* 24 * * *"},
        {"spec/schedule": "* * 0 * *"},
        {"spec/schedule": "* * * 13 *"},
        {"spec/schedule": "* * * * 8"},
        {"spec/schedule": "5-1 * * * *"},
        {"spec/schedule": "*/0 * * * *"},
        {"spec/schedule": "a * * * *"},
        {"spec/schedule": "1-2-3 * * * *"},
        {"spec/schedule": "1/2/3 * * * *"},
        {"spec/schedule": "@daily"},
        {"spec/schedule": "@every 1h30m"},
        {"spec/schedule": "@every x"},
        {"spec/schedule": "@nope"},
        {"spec/schedule": "0 0 1 JAN MON-FRI"},
        {"spec/schedule": "TZ=UTC * * * * *"},
        {"spec/timeZone": ""},
        {"spec/timeZone": "Local"},
        {"spec/timeZone": "Mars/Olympus"},
        {"spec/timeZone": "../x"},
        {"spec/timeZone": "Europe/Berlin"},
        {"spec/concurrencyPolicy": "Nope"},
        {"spec/startingDeadlineSeconds": -1},
        {"spec/successfulJobsHistoryLimit": -1, "spec/failedJobsHistoryLimit": -1},
        {"spec/jobTemplate/spec/selector": {"matchLabels": {"a": "b"}}},
        {"spec/jobTemplate/spec/manualSelector": True},
        {"spec/jobTemplate/spec/template/spec/restartPolicy": "Always"},
        {"spec/jobTemplate/spec/template/spec/containers": []},
        {"metadata/name": long("a", 53)},
    ],
    "Service": [
        {"spec": DROP},
        {"spec/ports": DROP},
        {"spec/ports": [], "spec/clusterIP": "None"},
        {"spec/type": "Nope"},
        {"spec/type": "ExternalName"},
        {"spec/type": "ExternalName", "spec/externalName": "Bad_"},
        {"spec/type": "ExternalName", "spec/externalName": "a.example.com"},
        {"spec/type": "ExternalName", "spec/externalName": "a.b", "spec/clusterIP": "10.0.0.9"},
        {"spec/externalName": "a.example.com"},
        {"spec/ports": [{"port": 80}, {"port": 81}]},
        {"spec/ports": [{"port": 0}]},
        {"spec/ports": [{"port": 70000, "targetPort": 70000}]},
        {"spec/ports": [{"port": 80, "targetPort": "Bad_"}]},
        {"spec/ports": [{"port": 80, "protocol": "tcp"}]},
        {"spec/ports": [{"port": 80, "name": "Bad_"}]},
        {"spec/ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]},
        {"spec/ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]},
        {"spec/ports": [{"port": 80, "nodePort": 30500}]},
        {"spec/ports": [{"port": 80, "appProtocol": "bad proto"}]},
        {"spec/type": "NodePort", "spec/ports": [{"port": 80, "nodePort": 80}]},
        {"spec/type": "NodePort", "spec/ports": [{"port": 80, "nodePort": -1}]},
        {
            "spec/type": "NodePort",
            "spec/ports": [
                {"name": "a", "port": 80, "nodePort": 30001},
                {"name": "b", "port": 81, "nodePort": 30001},
            ],
        },
        {"spec/type": "NodePort", "spec/clusterIP": "None"},
        {"spec/type": "LoadBalancer", "spec/clusterIP": "None"},
        {"spec/clusterIP": "nope"},
        {"spec/clusterIP": "1.2.3.4"},
        {"spec/clusterIP": "10.0.0.1"},
        {"spec/clusterIP": "10.0.0.0"},
        {"spec/clusterIP": "10.0.0.255"},
        {"spec/clusterIP": "10.0.0.9", "spec/clusterIPs": ["10.0.0.8"]},
        {"spec/clusterIPs": ["10.0.0.9"]},
        {"spec/clusterIP": "10.0.0.9", "spec/clusterIPs": ["10.0.0.9", "10.0.0.10"]},
        {"spec/clusterIP": "None", "spec/clusterIPs": ["None", "10.0.0.10"]},
        {"spec/clusterIP": "2001:db8::1"},
        {"spec/ipFamilies": ["IPv4", "IPv4"]},
        {"spec/ipFamilies": ["Nope"]},
        {"spec/ipFamilies": ["IPv6"]},
        {"spec/ipFamilyPolicy": "Nope"},
        {"spec/ipFamilyPolicy": "RequireDualStack"},
        {"spec/ipFamilyPolicy": "PreferDualStack"},
        {"spec/sessionAffinity": "Nope"},
        {
            "spec/sessionAffinity": "ClientIP",
            "spec/sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}},
        },
        {
            "spec/sessionAffinity": "ClientIP",
            "spec/sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}},
        },
        {"spec/sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
        {"spec/externalTrafficPolicy": "Local"},
        {"spec/type": "NodePort", "spec/externalTrafficPolicy": "Nope"},
        {"spec/internalTrafficPolicy": "Nope"},
        {"spec/healthCheckNodePort": 30100},
        {"spec/type": "LoadBalancer", "spec/externalTrafficPolicy": "Local", "spec/healthCheckNodePort": 80},
        {"spec/loadBalancerSourceRanges": ["10.0.0.0/8"]},
        {"spec/type": "LoadBalancer", "spec/loadBalancerSourceRanges": ["nope"]},
        {"spec/loadBalancerClass": "example.com/x"},
        {"spec/type": "LoadBalancer", "spec/loadBalancerClass": "bad class"},
        {"spec/allocateLoadBalancerNodePorts": True},
        {"spec/externalIPs": ["nope"]},
        {"spec/externalIPs": ["127.0.0.1"]},
        {"spec/externalIPs": ["0.0.0.0"]},
        {"spec/externalIPs": ["1.2.3.4"]},
        {"spec/selector": {"bad key": "x"}},
        {"spec/trafficDistribution": "Nope"},
        {"spec/trafficDistribution": "PreferClose"},
        {"spec/clusterIP": "None", "spec/sessionAffinity": "ClientIP"},
    ],
    "Endpoints": [
        {"subsets": [{}]},
        {"subsets/0/addresses/0/ip": DROP},
        {"subsets/0/addresses/0/ip": "nope"},
        {"subsets/0/addresses/0/ip": "127.0.0.1"},
        {"subsets/0/addresses/0/ip": "0.0.0.0"},
        {"subsets/0/addresses/0/ip": "169.254.1.1"},
        {"subsets/0/addresses/0/ip": "224.0.0.1"},
        {"subsets/0/addresses/0/hostname": "Bad_"},
        {"subsets/0/addresses/0/nodeName": "Bad_"},
        {"subsets/0/ports/0/port": 0},
        {"subsets/0/ports/0/protocol": "tcp"},
        {"subsets/0/ports/0/name": "Bad_"},
        {"subsets/0/ports/+": {"port": 81}},
    ],
    "EndpointSlice": [
        {"addressType": DROP},
        {"addressType": "Nope"},
        {"addressType": "FQDN"},
        {"addressType": "IPv6"},
        {"endpoints": DROP},
        {"endpoints/0/addresses": []},
        {"endpoints/0/addresses": ["nope"]},
        {"endpoints/0/addresses": ["2001:db8::1"]},
        {"endpoints/0/addresses": ["127.0.0.1"]},
        {"endpoints/0/nodeName": "Bad_"},
        {"endpoints/0/hostname": "Bad_"},
        {"endpoints/0/hints": {"forZones": [{"name": "a"}, {"name": "a"}]}},
        {"endpoints/0/deprecatedTopology": {"bad key": "x"}},
        {"ports/0/name": "Bad_"},
        {"ports/0/protocol": "tcp"},
        {"ports/0/appProtocol": "bad proto"},
        {"ports/+": {"name": "http", "port": 81}},
    ],
    "Ingress": [
        {"spec": DROP},
        {"spec/rules": []},
        {"spec/rules/0/host": "1.2.3.4"},
        {"spec/rules/0/host": "Bad_"},
        {"spec/rules/0/host": "a.*.com"},
        {"spec/rules/0/host": "*.example.com"},
        {"spec/rules/0/http/paths": []},
        {"spec/rules/0/http/paths/0/pathType": DROP},
        {"spec/rules/0/http/paths/0/pathType": "Nope"},
        {"spec/rules/0/http/paths/0/path": "x"},
        {"spec/rules/0/http/paths/0/path": "/a//b/../%2f/."},
        {"spec/rules/0/http/paths/0/path": DROP},
        {
            "spec/rules/0/http/paths/0/pathType": "ImplementationSpecific",
            "spec/rules/0/http/paths/0/path": "x",
        },
        {"spec/rules/0/http/paths/0/backend": {}},
        {"spec/rules/0/http/paths/0/backend": DROP},
        {"spec/rules/0/http/paths/0/backend/service/name": DROP},
        {"spec/rules/0/http/paths/0/backend/service/name": "Bad_"},
        {"spec/rules/0/http/paths/0/backend/service/port": {}},
        {"spec/rules/0/http/paths/0/backend/service/port": {"name": "a", "number": 1}},
        {"spec/rules/0/http/paths/0/backend/service/port": {"number": 70000}},
        {"spec/rules/0/http/paths/0/backend/service/port": {"name": "Bad_"}},
        {"spec/rules/0/http/paths/0/backend/resource": {"kind": "K", "name": "n"}},
        {"spec/rules/0/http/paths/0/backend": {"resource": {"apiGroup": "Bad_", "kind": "a/b", "name": ""}}},
        {"spec/defaultBackend": {}},
        {"spec/tls": [{"hosts": ["Bad_"], "secretName": "Bad_"}]},
        {"spec/tls": [{"hosts": ["*.com.*"]}]},
        {"spec/ingressClassName": "Bad_"},
        {"spec/ingressClassName": "a", "metadata/annotations": {"kubernetes.io/ingress.class": "b"}},
        {"metadata/annotations": {"kubernetes.io/ingress.class": "b"}},
    ],
    "IngressClass": [
        {"spec": DROP},
        {"spec/controller": "nope"},
        {"spec/controller": "Bad_/x"},
        {"spec/controller": long("a", 251)},
        {"spec/parameters": {}},
        {"spec/parameters": {"kind": "K", "name": "n", "scope": "Nope"}},
        {"spec/parameters": {"kind": "K", "name": "n", "scope": "Namespace"}},
        {"spec/parameters": {"kind": "K", "name": "n", "namespace": "x", "scope": "Cluster"}},
        {"spec/parameters": {"kind": "K", "name": "n"}},
    ],
    "NetworkPolicy": [
        {"spec/podSelector": {"matchLabels": {"bad key": "x"}}},
        {"spec/ingress/0/from": [{}]},
        {"spec/ingress/0/from": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]},
        {"spec/ingress/0/from": [{"ipBlock": {}}]},
        {"spec/ingress/0/from": [{"ipBlock": {"cidr": "nope"}}]},
        {"spec/ingress/0/from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/8", "nope"]}}]},
        {"spec/ingress/0/from": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]},
        {"spec/ingress/0/ports": [{"port": 0}]},
        {"spec/ingress/0/ports": [{"port": "Bad_"}]},
        {"spec/ingress/0/ports": [{"port": 80, "protocol": "tcp"}]},
        {"spec/ingress/0/ports": [{"port": 80, "endPort": 70}]},
        {"spec/ingress/0/ports": [{"port": "http", "endPort": 70}]},
        {"spec/ingress/0/ports": [{"endPort": 70}]},
        {"spec/policyTypes": ["Nope"]},
        {"spec/policyTypes": ["Ingress", "Egress", "Ingress"]},
        {"spec/egress": [{"to": [{}]}]},
    ],
    "PersistentVolumeClaim": [
        {"spec": DROP},
        {"spec/accessModes": DROP},
        {"spec/accessModes": ["Nope"]},
        {"spec/accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]},
        {"spec/resources": DROP},
        {"spec/resources/requests/storage": "0"},
        {"spec/resources/requests/storage": "-1Gi"},
        {"spec/resources/requests/storage": "1.5"},
        {"spec/resources/requests/storage": "100m"},
        {"spec/storageClassName": "Bad_"},
        {"spec/volumeMode": "Nope"},
        {"spec/selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        {"spec/dataSource": {"kind": "Pod", "name": ""}},
        {"spec/dataSource": {"kind": "VolumeSnapshot", "name": "s", "apiGroup": "snapshot.storage.k8s.io"}},
        {"spec/volumeAttributesClassName": "Bad_"},
    ],
    "PersistentVolume": [
        {"spec": DROP},
        {"spec/accessModes": DROP},
        {"spec/accessModes": ["Nope"]},
        {"spec/capacity": DROP},
        {"spec/capacity": {"cpu": "1"}},
        {"spec/capacity": {"storage": "0"}},
        {"spec/capacity": {"storage": "-1"}},
        {"spec/hostPath": DROP},
        {"spec/hostPath": {"path": ""}},
        {"spec/hostPath": {"path": "/"}, "spec/persistentVolumeReclaimPolicy": "Recycle"},
        {"spec/nfs": {"server": "s", "path": "/x"}},
        {"spec/persistentVolumeReclaimPolicy": "Nope"},
        {"spec/storageClassName": "Bad_"},
        {"spec/volumeMode": "Nope"},
        {"spec/hostPath": DROP, "spec/csi": {}},
        {"spec/hostPath": DROP, "spec/csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {}}},
        {"spec/hostPath": DROP, "spec/local": {"path": "/x"}},
        {"spec/nodeAffinity": {}},
        {"spec/nodeAffinity": {"required": {"nodeSelectorTerms": []}}},
        {"spec/claimRef": {"name": "c", "namespace": "default"}},
    ],
    "StorageClass": [
        {"provisioner": DROP},
        {"provisioner": "bad provisioner"},
        {"reclaimPolicy": "Recycle"},
        {"volumeBindingMode": "Nope"},
        {"parameters": {"": "x"}},
        {"allowedTopologies": [{"matchLabelExpressions": [{"key": "bad key", "values": []}]}]},
        {"allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": ["b", "b"]}]}]},
    ],
    "CSIDriver": [
        {"spec/fsGroupPolicy": "Nope"},
        {"spec/volumeLifecycleModes": ["Nope"]},
        {"spec/tokenRequests": [{"audience": "a", "expirationSeconds": 1}, {"audience": "a"}]},
    ],
    "VolumeAttributesClass": [
        {"driverName": DROP},
        {"driverName": "bad driver"},
        {"parameters": DROP},
    ],
    "CSIStorageCapacity": [
        {"storageClassName": DROP},
        {"storageClassName": "Bad_"},
        {"capacity": "-1"},
        {"nodeTopology": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
    ],
    "CSINode": [
        {"spec/drivers/0/name": DROP},
        {"spec/drivers/0/name": "Bad_"},
        {"spec/drivers/0/nodeID": DROP},
        {"spec/drivers/+": {"name": "d.example.com", "nodeID": "n"}},
        {"spec/drivers/0/topologyKeys": ["bad key", "a", "a"]},
        {"spec/drivers/0/allocatable": {"count": -1}},
    ],
    "VolumeAttachment": [
        {"spec": DROP},
        {"spec/attacher": DROP},
        {"spec/source": {}},
        {"spec/source": {"persistentVolumeName": ""}},
        {"spec/nodeName": DROP},
    ],
    "PodDisruptionBudget": [
        {"spec": DROP},
        {"spec/maxUnavailable": 1},
        {"spec/minAvailable": -1},
        {"spec/minAvailable": "abc"},
        {"spec/minAvailable": "150%"},
        {"spec/minAvailable": DROP, "spec/maxUnavailable": "150%"},
        {"spec/minAvailable": DROP},
        {"spec/selector": {"matchLabels": {"bad key": "x"}}},
        {"spec/selector": DROP},
        {"spec/selector": {}},
        {"spec/unhealthyPodEvictionPolicy": "Nope"},
    ],
    "ResourceQuota": [
        {"spec/hard": {"nope": "1"}},
        {"spec/hard": {"bad key": "1"}},
        {"spec/hard": {"pods": "-1"}},
        {"spec/hard": {"pods": "1500m"}},
        {"spec/hard": {"requests.cpu": "1", "count/deployments.apps": "1"}},
        {"spec/scopes": ["Nope"]},
        {"spec/scopes": ["BestEffort", "NotBestEffort"]},
        {"spec/scopes": ["BestEffort"], "spec/hard": {"requests.cpu": "1"}},
        {"spec/scopeSelector": {"matchExpressions": [{"scopeName": "Nope", "operator": "Exists"}]}},
        {"spec/scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}},
        {
            "spec/scopeSelector": {
                "matchExpressions": [{"scopeName": "BestEffort", "operator": "In", "values": ["x"]}]
            }
        },
    ],
    "LimitRange": [
        {"spec/limits/0/type": "Nope"},
        {"spec/limits/0/type": DROP},
        {"spec/limits/+": {"type": "Container"}},
        {"spec/limits/0/max": {"nope": "1"}},
        {"spec/limits/0/min": {"cpu": "2"}},
        {"spec/limits/0/default": {"cpu": "2"}},
        {"spec/limits/0/defaultRequest": {"cpu": "2"}},
        {"spec/limits/0/default": {"cpu": "1"}, "spec/limits/0/defaultRequest": {"cpu": "1500m"}},
        {"spec/limits/0/maxLimitRequestRatio": {"cpu": "500m"}},
        {"spec/limits/0/min": {"cpu": "500m"}, "spec/limits/0/maxLimitRequestRatio": {"cpu": "5"}},
        {"spec/limits/0/type": "Pod", "spec/limits/0/default": {"cpu": "1"}},
        {"spec/limits/0/type": "PersistentVolumeClaim"},
    ],
    "HorizontalPodAutoscaler": [
        {"spec": DROP},
        {"spec/maxReplicas": DROP},
        {"spec/maxReplicas": -1},
        {"spec/minReplicas": 0},
        {"spec/minReplicas": -1},
        {"spec/minReplicas": 5},
        {"spec/scaleTargetRef": {}},
        {"spec/scaleTargetRef/kind": "a/b"},
        {"spec/scaleTargetRef/apiVersion": "a/b/c"},
        {"spec/scaleTargetRef/apiVersion": DROP},
        {"spec/metrics": [{}]},
        {"spec/metrics": [{"type": "Nope"}]},
        {"spec/metrics": [{"type": "Resource"}]},
        {"spec/metrics": [{"type": "Resource", "resource": {"target": {}}}]},
        {"spec/metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Nope"}}}]},
        {
            "spec/metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 0, "averageValue": "1"},
                    },
                }
            ]
        },
        {
            "spec/metrics": [
                {"type": "Pods", "pods": {"metric": {}, "target": {"type": "Value", "value": "-1"}}}
            ]
        },
        {
            "spec/metrics": [
                {"type": "Object", "object": {"metric": {"name": "a/b"}, "target": {"type": "Value"}}}
            ]
        },
        {
            "spec/metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "m"},
                        "target": {"type": "Value", "value": "1", "averageValue": "1"},
                    },
                    "pods": {
                        "metric": {"name": "x"},
                        "target": {"type": "AverageValue", "averageValue": "1"},
                    },
                }
            ]
        },
        {"spec/metrics": [{"type": "ContainerResource", "containerResource": {"target": {"type": "Value"}}}]},
        {"spec/behavior": {"scaleUp": {"stabilizationWindowSeconds": -1, "policies": []}}},
        {"spec/behavior": {"scaleDown": {"stabilizationWindowSeconds": 3601, "selectPolicy": "Nope"}}},
        {"spec/behavior": {"scaleDown": {"policies": [{"type": "Nope", "value": 0, "periodSeconds": 0}]}}},
        {"spec/behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}}},
    ],
    "HorizontalPodAutoscaler v1": [
        {"spec/maxReplicas": DROP},
        {"spec/minReplicas": 5},
        {"spec/targetCPUUtilizationPercentage": 0},
    ],
    "PriorityClass": [
        {"value": 1000000001},
        {"metadata/name": "system-x"},
        {"preemptionPolicy": "Nope"},
        {"value": DROP},
    ],
    "Role": [
        {"rules": [{}]},
        {"rules/0/verbs": []},
        {"rules/0/apiGroups": DROP},
        {"rules/0/resources": DROP},
        {"rules/0/nonResourceURLs": ["/x"]},
        {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
    ],
    "ClusterRole": [
        {"rules": [{}]},
        {"rules/0/nonResourceURLs": ["/x"]},
        {"aggregationRule": {}},
        {
            "aggregationRule": {
                "clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
            }
        },
    ],
    "RoleBinding": [
        {"roleRef": DROP},
        {"roleRef/kind": "Nope"},
        {"roleRef/apiGroup": "nope"},
        {"roleRef/name": DROP},
        {"roleRef/name": "a/b"},
        {"subjects/0/kind": "Nope"},
        {"subjects/0/kind": DROP},
        {"subjects/0/name": DROP},
        {"subjects/0/name": "Bad_"},
        {"subjects/0/apiGroup": "nope"},
        {"subjects/0": {"kind": "User", "name": "x", "apiGroup": "nope"}},
        {"subjects": []},
    ],
    "ClusterRoleBinding": [
        {"roleRef/kind": "Role"},
        {"roleRef/name": DROP},
        {"subjects/0": {"kind": "ServiceAccount", "name": "x"}},
        {"subjects/0": {"kind": "Group", "name": "x", "apiGroup": "nope"}},
    ],
    "ConfigMap": [
        {"data": {"bad key": "x"}},
        {"data": {"..": "x"}},
        {"data": {"..a": "x"}},
        {"data": {"": "x"}},
        {"data": {"k": long("v", 1048577)}},
        {"binaryData": {"a": "Yg=="}},
        {"binaryData": {"bad key": "Yg=="}},
    ],
    "Secret": [
        {"data": {"bad key": "Yg=="}},
        {"stringData": {"bad key": "x"}},
        {"type": "kubernetes.io/tls"},
        {"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}},
        {"type": "kubernetes.io/dockerconfigjson"},
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "bm9wZQ=="}},
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": ""}},
        {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "e30="}},
        {"type": "kubernetes.io/dockercfg"},
        {"type": "kubernetes.io/basic-auth"},
        {"type": "kubernetes.io/ssh-auth"},
        {"type": "kubernetes.io/service-account-token"},
        {"data": {"k": long("dmFsdWV2YWx1ZXZh", 90000)}},
    ],
    "ServiceAccount": [{"secrets": [{"name": "a"}]}],
    "Namespace": [{"spec": {"finalizers": ["nodomain"]}}, {"spec": {"finalizers": ["example.com/x"]}}],
    "Node": [
        {"spec/taints": [{"key": "bad key", "effect": "NoSchedule"}]},
        {"spec/taints": [{"key": "a", "value": "bad value", "effect": "Nope"}]},
        {"spec/taints": [{"key": "a"}]},
        {"spec/taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]},
        {"spec/podCIDRs": ["nope"], "spec/podCIDR": "nope"},
        {"status": {"capacity": {"cpu": "-1"}}},
    ],
    "Event": [
        {"involvedObject": {}},
        {"involvedObject/namespace": "other"},
        {"involvedObject": DROP},
        {"type": "Nope"},
        {"eventTime": "2026-01-01T00:00:00.000000Z"},
    ],
    "Event new": [
        {"eventTime": DROP},
        {"reportingController": DROP},
        {"reportingController": "bad controller"},
        {"reportingInstance": DROP},
        {"reportingInstance": long("i", 129)},
        {"action": DROP},
        {"reason": DROP},
        {"type": "Nope"},
        {"note": long("n", 1025)},
        {"deprecatedCount": 1},
        {"deprecatedFirstTimestamp": "2026-01-01T00:00:00Z"},
        {"series": {"count": 1}},
        {"regarding/namespace": "other"},
        {"regarding": DROP},
    ],
    "Lease": [
        {"spec": DROP},
        {"spec/leaseDurationSeconds": 0},
        {"spec/leaseTransitions": -1},
        {"spec/strategy": "nope"},
        {"spec/preferredHolder": "x"},
    ],
    "CertificateSigningRequest": [
        {"spec/request": DROP},
        {"spec/request": "bm9wZQ=="},
        {"spec/usages": DROP},
        {"spec/usages": ["nope"]},
        {"spec/usages": ["client auth", "client auth"]},
        {"spec/signerName": DROP},
        {"spec/signerName": "nope"},
        {"spec/signerName": "kubernetes.io/legacy-unknown"},
        {"spec/expirationSeconds": 5},
    ],
    "ValidatingWebhookConfiguration": _hook_changes(),
    "MutatingWebhookConfiguration": [*_hook_changes()[::5], {"webhooks/0/reinvocationPolicy": "Nope"}],
    "RuntimeClass": [
        {"handler": DROP},
        {"handler": "Bad_"},
        {"overhead": {"podFixed": {"cpu": "-1"}}},
        {"scheduling": {"nodeSelector": {"bad key": "x"}}},
        {"scheduling": {"tolerations": [{"key": "a", "operator": "Nope"}]}},
    ],
}

UPDATES: Final[dict[str, list[Change]]] = {
    "Pod": _POD_UPDATES,
    "Pod gated": [
        {"spec/nodeSelector/c": "d"},
        {"spec/nodeSelector/a": "other"},
        {"spec/nodeSelector": DROP},
        {"spec/schedulingGates": []},
        {"spec/schedulingGates": [{"name": "other"}]},
        {"spec/tolerations/+": {"key": "a", "operator": "Exists"}},
    ],
    "PodTemplate": [{"template/spec/containers": []}, {"template/metadata/labels": {"a": "b"}}],
    "ReplicationController": [{"spec/selector": {"app": "other"}}, {"spec/replicas": -1}],
    "Deployment": [
        {"spec/selector": {"matchLabels": {"app": "other"}}},
        {
            "spec/selector": {"matchLabels": {"app": "other"}},
            "spec/template/metadata/labels": {"app": "other"},
        },
        {"spec/template/metadata/labels": {"app": "other"}},
        {"spec/replicas": -1},
        {"spec/template/spec/containers/0/image": "other"},
        {"spec/paused": True},
        {"metadata/labels": {"bad key": "x"}},
        {"metadata/finalizers": ["nodomain"]},
        {"metadata/resourceVersion": "1"},
    ],
    "ReplicaSet": [
        {
            "spec/selector": {"matchLabels": {"app": "other"}},
            "spec/template/metadata/labels": {"app": "other"},
        },
        {"spec/replicas": 2},
    ],
    "StatefulSet": [
        {"spec/serviceName": "other"},
        {"spec/podManagementPolicy": "Parallel"},
        {"spec/volumeClaimTemplates/0/spec/resources/requests/storage": "2Gi"},
        {"spec/volumeClaimTemplates": []},
        {
            "spec/selector": {"matchLabels": {"app": "other"}},
            "spec/template/metadata/labels": {"app": "other"},
        },
        {"spec/revisionHistoryLimit": 3},
        {"spec/replicas": 3},
        {"spec/template/spec/containers/0/image": "other"},
        {"spec/updateStrategy": {"type": "OnDelete"}},
        {"spec/ordinals": {"start": 1}},
        {"spec/minReadySeconds": 5},
    ],
    "DaemonSet": [
        {
            "spec/selector": {"matchLabels": {"app": "other"}},
            "spec/template/metadata/labels": {"app": "other"},
        },
        {"spec/template/spec/containers/0/image": "other"},
    ],
    "ControllerRevision": [{"data": {"a": 2}}, {"revision": 2}],
    "Job": [
        {"spec/completions": 3},
        {"spec/parallelism": 3},
        {"spec/parallelism": -1},
        {"spec/completionMode": "Indexed"},
        {"spec/selector": {"matchLabels": {"a": "b"}}},
        {"spec/template/spec/containers/0/image": "other"},
        {"spec/template/metadata/labels/a": "b"},
        {"spec/backoffLimit": 3},
        {"spec/suspend": True},
        {
            "spec/podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "X", "status": "True"}]}]
            }
        },
        {"spec/managedBy": "example.com/x"},
    ],
    "Job waiting": [
        {"spec/suspend": False},
        {"spec/template/spec/nodeSelector": {"a": "b"}},
        {"spec/template/spec/tolerations": [{"key": "a", "operator": "Exists"}]},
        {"spec/template/spec/containers/0/resources": {"requests": {"cpu": "1"}}},
        {"spec/template/metadata/annotations": {"a": "b"}},
        {"spec/template/spec/containers/0/image": "other"},
    ],
    "CronJob": [
        {"spec/schedule": "nope"},
        {"spec/schedule": "@hourly"},
        {"spec/timeZone": "Mars/Olympus"},
        {"spec/jobTemplate/spec/template/spec/containers/0/image": "other"},
    ],
    "Service there": [
        {"spec/clusterIP": "10.0.0.77"},
        {"spec/clusterIP": "10.0.0.77", "spec/clusterIPs": ["10.0.0.77"]},
        {"spec/clusterIP": "", "spec/clusterIPs": DROP},
        {"spec/clusterIP": DROP, "spec/clusterIPs": DROP},
        {"spec/clusterIP": "None", "spec/clusterIPs": ["None"]},
        {"spec/ipFamilies": ["IPv6"]},
        {"spec/ipFamilies": DROP, "spec/ipFamilyPolicy": DROP},
        {"spec/type": "NodePort"},
        {"spec/type": "LoadBalancer"},
        {"spec/type": "ExternalName", "spec/externalName": "a.b"},
        {"spec/type": "ExternalName"},
        {"spec/ports": []},
        {"spec/ports/0/port": 81},
        {"spec/ports/0/nodePort": 30001},
        {"spec/loadBalancerClass": "example.com/x"},
        {"spec/selector": {"bad key": "x"}},
    ],
    "Service node": [
        {"spec/type": "ClusterIP"},
        {"spec/type": "ExternalName", "spec/externalName": "a.b"},
        {"spec/ports/0/nodePort": DROP},
        {"spec/ports/0/nodePort": 30060},
        {"spec/type": "LoadBalancer"},
        {"spec/ports/0/port": 81},
        {"spec/ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]},
    ],
    "Service balanced": [
        {"spec/healthCheckNodePort": 30060},
        {"spec/healthCheckNodePort": DROP},
        {"spec/externalTrafficPolicy": "Cluster"},
        {"spec/type": "NodePort"},
        {"spec/type": "ClusterIP"},
        {"spec/loadBalancerClass": "example.com/x"},
        {"spec/allocateLoadBalancerNodePorts": False},
    ],
    "Service headless": [
        {"spec/clusterIP": "10.0.0.53", "spec/clusterIPs": ["10.0.0.53"]},
        {"spec/clusterIP": DROP, "spec/clusterIPs": DROP},
        {"spec/selector": DROP},
        {"spec/type": "NodePort"},
        {"spec/type": "ExternalName", "spec/externalName": "a.b"},
        {"spec/ports": [{"port": 80}]},
    ],
    "Service external": [
        {"spec/externalName": "Bad_"},
        {"spec/type": "ClusterIP"},
        {"spec/type": "ClusterIP", "spec/ports": [{"port": 80}], "spec/externalName": DROP},
        {"spec/type": "ClusterIP", "spec/clusterIP": "10.0.0.54", "spec/ports": [{"port": 80}]},
    ],
    "VolumeAttributesClass": [{"driverName": "other.com"}, {"parameters": {"a": "c"}}],
    "CSIStorageCapacity": [{"storageClassName": "other"}, {"capacity": "1Gi"}],
    "Endpoints": [{"subsets/0/addresses/0/ip": "nope"}, {"subsets": DROP}],
    "EndpointSlice": [{"addressType": "IPv6", "endpoints": []}, {"endpoints/0/addresses": ["nope"]}],
    "Ingress": [{"spec/rules/0/http/paths/0/pathType": "Nope"}, {"spec/rules": []}],
    "IngressClass": [{"spec/controller": "example.com/other"}],
    "NetworkPolicy": [{"spec/podSelector": {"matchLabels": {"bad key": "x"}}}],
    "PersistentVolumeClaim": [
        {"spec/resources/requests/storage": "2Gi"},
        {"spec/resources/requests/storage": "500Mi"},
        {"spec/accessModes": ["ReadWriteMany"]},
        {"spec/storageClassName": "other"},
        {"spec/volumeName": "pv"},
        {"spec/volumeMode": "Block"},
        {"metadata/labels": {"a": "b"}},
    ],
    "PersistentVolume": [
        {"spec/hostPath/path": "/other"},
        {"spec/capacity/storage": "2Gi"},
        {"spec/volumeMode": "Block"},
        {"spec/persistentVolumeReclaimPolicy": "Delete"},
    ],
    "StorageClass": [
        {"provisioner": "example.com/other"},
        {"parameters": {"a": "b"}},
        {"reclaimPolicy": "Retain"},
        {"volumeBindingMode": "WaitForFirstConsumer"},
        {"allowVolumeExpansion": True},
        {"mountOptions": ["a"]},
    ],
    "CSIDriver": [{"spec/attachRequired": False}, {"spec/volumeLifecycleModes": ["Ephemeral"]}],
    "CSINode": [{"spec/drivers/0/nodeID": "other"}],
    "VolumeAttachment": [{"spec/nodeName": "other"}],
    "PodDisruptionBudget": [{"spec/minAvailable": 2}, {"spec/minAvailable": -1}, {"spec/selector": {}}],
    "ResourceQuota": [{"spec/scopes": ["BestEffort"]}, {"spec/hard/pods": "-1"}],
    "LimitRange": [{"spec/limits/0/min": {"cpu": "2"}}],
    "HorizontalPodAutoscaler": [{"spec/maxReplicas": 0}, {"spec/minReplicas": 9}],
    "PriorityClass": [{"value": 11}, {"preemptionPolicy": "Never"}, {"description": "x"}],
    "Role": [{"rules": [{}]}],
    "RoleBinding": [
        {"roleRef/name": "other"},
        {"roleRef/kind": "ClusterRole"},
        {"subjects/0/kind": "Nope"},
    ],
    "ClusterRoleBinding": [{"roleRef/name": "other"}],
    "ConfigMap": [{"data": {"bad key": "x"}}, {"immutable": True}, {"data": {"a": "c"}}],
    "ConfigMap fixed": [
        {"data": {"a": "c"}},
        {"immutable": False},
        {"immutable": DROP},
        {"binaryData": {"b": "Yg=="}},
    ],
    "Secret": [{"type": "kubernetes.io/tls"}, {"type": "Other"}, {"data": {"a": "Yw=="}}],
    "Secret fixed": [{"data": {"a": "Yw=="}}, {"immutable": False}, {"stringData": {"a": "c"}}],
    "ServiceAccount": [{"metadata/labels": {"bad key": "x"}}],
    "Namespace": [{"metadata/labels": {"bad key": "x"}}, {"spec/finalizers": []}],
    "Node": [
        {"spec/podCIDR": "10.3.0.0/24", "spec/podCIDRs": ["10.3.0.0/24"]},
        {"spec/providerID": "x"},
        {"spec/taints": [{"key": "a"}]},
        {"spec/unschedulable": True},
    ],
    "Event": [{"involvedObject/namespace": "other"}, {"message": "m"}, {"count": 5}],
    "Event new": [
        {"reason": "Other"},
        {"note": "n"},
        {"type": "Warning"},
        {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}},
        {"series": {"count": 1}},
    ],
    "Lease": [{"spec/leaseDurationSeconds": 0}, {"spec/holderIdentity": "you"}],
    "CertificateSigningRequest": [
        {"status": {"conditions": [{"type": "Approved", "status": "True"}]}},
        {"status": {"certificate": "bm9wZQ=="}},
        {"spec/usages": ["nope"]},
    ],
    "ValidatingWebhookConfiguration": [
        {"webhooks/0/sideEffects": "Some"},
        {"webhooks/0/failurePolicy": "Nope"},
    ],
    "RuntimeClass": [{"handler": "other"}],
}

STATUSES: Final[dict[str, list[Change]]] = {
    "Pod": [
        {"status/conditions": [{"type": "bad type", "status": "True"}]},
        {"status/podIP": "1.2.3.4"},
        {"status/podIPs": [{"ip": "nope"}], "status/podIP": "nope"},
        {"status/phase": "Running"},
    ],
    "ReplicationController": [{"status": {"replicas": -1}}, {"status": {"replicas": 1, "readyReplicas": 2}}],
    "Deployment": [
        {"status": {"replicas": -1}},
        {"status": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "updatedReplicas": 2}},
        {"status": {"observedGeneration": -1, "collisionCount": -1}},
        {"status": {"replicas": 2, "readyReplicas": 1}},
    ],
    "ReplicaSet": [{"status": {"replicas": 1, "readyReplicas": 2, "fullyLabeledReplicas": 2}}],
    "StatefulSet": [
        {"status": {"replicas": 1, "readyReplicas": 2, "currentReplicas": 2, "updatedReplicas": -1}}
    ],
    "DaemonSet": [
        {
            "status": {
                "currentNumberScheduled": -1,
                "numberMisscheduled": -1,
                "desiredNumberScheduled": -1,
                "numberReady": -1,
            }
        }
    ],
    "Job": [
        {"status": {"active": -1}},
        {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Failed", "status": "True"}]}},
        {"status": {"ready": 2}},
        {"status": {"completionTime": "2026-01-01T00:00:00Z"}},
        {"status": {"uncountedTerminatedPods": {"succeeded": ["a", "a", ""]}}},
    ],
    "Service there": [
        {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
    ],
    "Ingress": [
        {"status": {"loadBalancer": {"ingress": [{"ip": "nope"}]}}},
        {"status": {"loadBalancer": {"ingress": [{"hostname": "1.2.3.4"}]}}},
        {"status": {"loadBalancer": {"ingress": [{"hostname": "Bad_"}]}}},
    ],
    "PodDisruptionBudget": [
        {"status/disruptionsAllowed": -1},
        {"status/conditions": [{"type": "", "status": "Nope"}]},
        {
            "status/conditions": [
                {"type": "bad type", "reason": "bad reason", "lastTransitionTime": None, "message": ""}
            ]
        },
    ],
    "HorizontalPodAutoscaler": [{"status": {"currentReplicas": -1, "desiredReplicas": -1}}],
    "CertificateSigningRequest": [
        {"status": {"conditions": [{"type": "Approved", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Failed", "status": "False"}]}},
        {"status": {"conditions": [{"status": "Nope"}]}},
        {"status": {"certificate": "bm9wZQ=="}},
    ],
    "Namespace": [{"status/phase": "Terminating"}],
    "Node": [{"status": {"capacity": {"cpu": "-1"}}}, {"status": {"allocatable": {"pods": "1500m"}}}],
    "PersistentVolumeClaim": [{"status": {"phase": "Bound", "capacity": {"storage": "-1"}}}],
    "ResourceQuota": [{"status": {"hard": {"nope": "1"}, "used": {"pods": "-1"}}}],
}


# Below other subresources.
BELOW: Final[dict[str, list[tuple[str, Change]]]] = {
    "Pod": [
        ("ephemeralcontainers", {"spec/ephemeralContainers": [{"name": "e", "image": "i"}]}),
        ("ephemeralcontainers", {"spec/ephemeralContainers": [{"name": "c", "image": "i"}]}),
        ("ephemeralcontainers", {"spec/ephemeralContainers": [{"image": "i", "targetContainerName": "x"}]}),
        (
            "ephemeralcontainers",
            {"spec/ephemeralContainers": [{"name": "e", "image": "i", "ports": [{"containerPort": 80}]}]},
        ),
        (
            "ephemeralcontainers",
            {
                "spec/ephemeralContainers": [
                    {"name": "e", "image": "i", "livenessProbe": {"tcpSocket": {"port": 1}}}
                ]
            },
        ),
    ],
    "Pod sized": [
        ("resize", {f"{_C}/resources/requests/cpu": "1500m"}),
        ("resize", {f"{_C}/resources/requests/cpu": "3"}),
        ("resize", {f"{_C}/resources/limits/cpu": DROP}),
        ("resize", {f"{_C}/resources": DROP}),
        ("resize", {f"{_C}/resources/limits/ephemeral-storage": "2Gi"}),
        ("resize", {f"{_C}/image": "other"}),
        ("resize", {"spec/nodeName": "n"}),
    ],
    "Namespace": [("finalize", {"spec/finalizers": ["nodomain"]}), ("finalize", {"spec/finalizers": []})],
    "CertificateSigningRequest": [
        ("approval", {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}),
        ("approval", {"status": {"conditions": [{"type": "Approved", "status": "False"}]}}),
        ("approval", {"status": {"conditions": [{"type": "Approved"}]}}),
        (
            "approval",
            {
                "status": {
                    "conditions": [
                        {"type": "Approved", "status": "True"},
                        {"type": "Denied", "status": "True"},
                    ]
                }
            },
        ),
    ],
}


def cases() -> list[Case]:
    found = [Case("ConfigMap", verb, change) for verb in ("create", "update") for change in _METADATA_ONCE]
    for kind in KINDS:
        if " " not in kind or kind == "Event new":
            found += [Case(kind, "create", change) for change in _METADATA]
        found += [Case(kind, "create", change) for change in [{}, *CREATES.get(kind, [])]]
        found += [Case(kind, "update", change) for change in [{}, *UPDATES.get(kind, [])]]
        found += [Case(kind, "status", change) for change in STATUSES.get(kind, [])]
        found += [Case(kind, below, change) for below, change in BELOW.get(kind, [])]
    return found
