"""What operators apply, in all the shapes that managedFields know; and what a real kube-apiserver made of it.

``data/applied.json`` holds each intent's answer.  tests/conformance/test_apply.py records it::

    RECORD=1 pytest tests/conformance/test_apply.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from setpoint.api import Bounds, CustomResource, ListType, MapType, Model

RECORDED = Path(__file__).parent / "data" / "applied.json"
MANAGER = "garden-operator"


class Port(Model):
    port: int
    protocol: str = "TCP"
    label: str | None = None


class Soil(Model):
    acid: float = 7.0
    kind: str = "loam"


class GardenSpec(Model):
    beds: Annotated[int, Bounds(ge=0)] = 1
    ports: Annotated[list[Port], ListType("map", keys=["port", "protocol"])] = []
    plants: Annotated[list[str], ListType("set")] = []
    notes: list[str] = []
    soil: Soil | None = None
    origin: Annotated[dict[str, str], MapType("atomic")] | None = None
    colours: dict[str, str] | None = None
    layers: dict[str, Soil] | None = None


class Garden(CustomResource, group="demo.setpoint.dev", version="v1"):
    """Every shape of field that a schema can have."""

    spec: GardenSpec = GardenSpec()


def _garden(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "demo.setpoint.dev/v1", "kind": "Garden", "metadata": {"name": name}, "spec": spec}


OWNER = {
    "apiVersion": "demo.setpoint.dev/v1",
    "kind": "Garden",
    "name": "owner",
    "uid": "5ea50f6e-0d5c-4b0c-8a3c-2f1f5f6a7b8c",
    "controller": True,
    "blockOwnerDeletion": True,
}

_POD = {
    "containers": [
        {
            "name": "web",
            "image": "web:1",
            "args": ["--port", "80"],
            "command": [],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
            "securityContext": {},
            "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        },
        {"name": "side", "image": "side:1"},
    ],
    "initContainers": [{"name": "first", "image": "first:1"}],
    "volumes": [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "web"}}],
    "tolerations": [],
    "nodeSelector": {"disk": "ssd"},
    "serviceAccountName": "web",
}

# Their first apply makes them, and the second changes nothing: `changes` must say so.
QUIET: dict[str, dict[str, Any]] = {
    "deployment": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "labels": {"app.kubernetes.io/name": "web"},
            "annotations": {},
            "finalizers": ["demo.setpoint.dev/a", "demo.setpoint.dev/b"],
            "ownerReferences": [OWNER],
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": _POD},
        },
    },
    "service": {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": 80}, {"name": "b", "port": 81}],
            "externalIPs": [],
        },
    },
    "config map": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web", "labels": {"a": "b"}},
        "data": {"a.b": "1", "empty": ""},
    },
    "empty config map": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "empty"}, "data": {}},
    "secret": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "data": {"a": "MQ=="}},
    "service account": {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "web"},
        "imagePullSecrets": [{"name": "b"}, {"name": "a"}],
    },
    "role": {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "web"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
    },
    "ingress": {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web"},
        "spec": {
            "rules": [
                {
                    "host": "a.example",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "web", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ]
        },
    },
    "garden": _garden(
        "full",
        beds=0,
        ports=[{"port": 80}, {"port": 80, "protocol": "UDP", "label": "x"}, {"port": 9}],
        plants=["rose", "ivy"],
        notes=["a", "b", "a"],
        soil={"acid": 6.5},
        origin={"a": "b"},
        colours={"x": "red", "dotted.name/y": "blue"},
        layers={"top": {"kind": "sand"}},
    ),
}

# The server writes these in another way than they were sent: whether they change anything is unsure.
UNSURE: dict[str, dict[str, Any]] = {
    "quantity": {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota"},
        "spec": {"hard": {"cpu": "1000m"}},
    },
    "default in an atomic field": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "downward"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "image": "web:1",
                            "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        }
                    ]
                },
            },
        },
    },
    "text in a secret": {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "text"},
        "stringData": {"a": "1"},
    },
    "empty list with keys": _garden("no-ports", ports=[]),
    "nothing": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}},
    "nothing but defaults": _garden("defaults"),
    "defaults in an entry": _garden("layers", layers={"deep": {}}),
    "empty text": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "text"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {"name": "web", "image": "web:1", "env": [{"name": "A", "value": ""}]},
                    ]
                },
            },
        },
    },
    "null": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "null"},
        "data": {"a": "1"},
        "binaryData": None,
    },
}


def recorded() -> dict[str, dict[str, Any]]:
    """What the server answered to each intent."""
    found: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())
    return found
