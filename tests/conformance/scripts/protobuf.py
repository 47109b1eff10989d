"""Bodies in protobuf, as client-go sends them: each object is made of what the real server itself would write.

``gathered`` asks it for that, once: a dry run of a creation, answered in protobuf, has all fields and no
version, and can be sent as it is.  ``recordings.py`` keeps what it found.  The time of that dry run becomes
``SENT``: a server keeps some of the times that it is sent, and a comparison must not depend on how long ago
the bodies were recorded.
"""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

import base64
import json
import lzma
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.conformance.asking import JSON, Json, Script, Step
from tests.conformance.scripts import recorded
from tests.conformance.scripts.writing import MAPS

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
BODIES: Final = Path(__file__).parent.parent / "recorded" / "protobuf.json.xz"
NAMESPACE: Final = "bodies-in-protobuf"
SENT: Final = 1_577_836_800  # 2020-01-01T00:00:00Z
_TIMESTAMP: Final = re.compile(
    rb"\x08([\x80-\xff]{4}[\x01-\x0f])"
)  # field 1, seconds: five bytes from 1978 to 3058
_PODS: Final = "/api/v1/namespaces/${namespace}/pods"

_POD: Final[Json] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "full", "labels": {"a": "b", "c": ""}, "annotations": {"x/y": "ä\n"}, "finalizers": ["example.com/x"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-0000-0000-0000-000000000001", "controller": True, "blockOwnerDeletion": False}],
    },
    "spec": {
        "nodeSelector": {"k": "v"}, "activeDeadlineSeconds": 2**31 - 1, "serviceAccountName": "default", "priority": 0, "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}],
        "securityContext": {"runAsUser": 0, "runAsNonRoot": False, "fsGroup": 7, "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}], "seccompProfile": {"type": "RuntimeDefault"}},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]}}},
        "tolerations": [{"key": "t", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"a": "b"}}, "minDomains": None}],
        "volumes": [
            {"name": "a", "emptyDir": {"sizeLimit": "1.5Gi"}}, {"name": "b", "configMap": {"name": "c", "items": [{"key": "k", "path": "p", "mode": 256}], "defaultMode": 0}},
            {"name": "c", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 4000}}, {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}},
        ],
        "initContainers": [{"name": "i", "image": "x", "restartPolicy": "Always"}],
        "containers": [{
            "name": "c", "image": "repo/x:1", "command": ["a", ""], "args": [],
            "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
            "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}}],
            "resources": {"limits": {"cpu": "1500m", "memory": "0.5Gi", "example.com/x": "3"}, "requests": {"cpu": "0"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3}, "readinessProbe": {"tcpSocket": {"port": 80}},
            "volumeMounts": [{"name": "a", "mountPath": "/a", "readOnly": False}], "securityContext": {"privileged": False, "capabilities": {"add": ["NET_ADMIN"]}},
        }],
    },
}  # fmt: skip
_OTHERS: Final[list[Json]] = [
    _POD,
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "full"}, "data": {"a": "AAECAw==", "b": ""}, "stringData": {"c": "text"}, "immutable": False},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "full", "generateName": "x-"}, "data": {"a": "b", "b": ""}, "binaryData": {"z": "//8="}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "full"}, "spec": {"selector": {"a": "b"}, "clusterIP": "None", "ports": [{"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 81, "targetPort": 8081, "protocol": "UDP"}]}},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "full"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2024-01-02T03:04:05.678901Z", "renewTime": "2024-01-02T03:04:05.000000Z", "leaseTransitions": 0}},
    {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "full"}, "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3,
     "metrics": [{"type": "Pods", "pods": {"metric": {"name": "m", "selector": {"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}}, "target": {"type": "AverageValue", "averageValue": "1500m"}}}], "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "full"}, "spec": {"rules": [{"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}], "tls": [{"hosts": ["a.b"]}]}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "full"}, "spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}], "ports": [{"port": 80, "endPort": 90}]}, {}]}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "full"}, "spec": {"replicas": 0, "paused": True, "strategy": {"rollingUpdate": {"maxSurge": "30%", "maxUnavailable": 2}}, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}},
]  # fmt: skip


def _objects() -> Iterator[Json]:
    for obj in recorded.requests()["defaulting"]:
        # A Service would bring an address that was given to no one; a LimitRange is for the pods after it; an
        # APIService has the name of what it serves.
        if obj["kind"] not in ("Service", "LimitRange", "APIService"):
            text = json.dumps(obj).replace("dflt", "sent")  # the others are there too
            yield json.loads(text.replace('"namespace": "default"', f'"namespace": "{NAMESPACE}"'))
    yield from _OTHERS


def gathered(ask: Callable[[Step], tuple[int, bytes]]) -> list[dict[str, str]]:
    """What a real server writes of each object: its path, what it is, and the bytes."""
    found = []
    ask(Step("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}))
    for obj in _objects():
        path = recorded.path_of(obj).replace("${namespace}", NAMESPACE)
        step = Step("POST", f"{path}?dryRun=All", obj, headers={"Accept": PROTOBUF})
        status, data = ask(step)
        if status != 201:
            raise AssertionError(f"{path}: {status} {data[:300]!r}")
        name = f"{obj['kind']} {obj['metadata']['name'].replace('.', '-')}"
        found.append({"name": name, "path": path, "body": base64.b64encode(_sent_long_ago(data)).decode()})
    return found


def _sent_long_ago(data: bytes) -> bytes:
    """The same message, with ``SENT`` for every time of the last day; no length changes."""
    now = time.time()

    def replaced(found: re.Match[bytes]) -> bytes:
        is_present = now - 86_400 < _seconds(found[1]) <= now + 86_400
        return b"\x08" + _varint(SENT) if is_present else found[0]

    return _TIMESTAMP.sub(replaced, data)


def times(data: bytes) -> list[int]:
    """Every time in a message, in seconds since 1970; possibly a few other numbers that look like one."""
    return [_seconds(varint) for varint in _TIMESTAMP.findall(data)]


def _seconds(varint: bytes) -> int:
    return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(varint))


@cache
def _bodies() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(lzma.decompress(BODIES.read_bytes()))
    return found


def _written() -> list[Step]:
    steps = []
    for one in _bodies():
        body = base64.b64decode(one["body"])
        kind, _, name = one["name"].partition(" ")
        path = f"{one['path']}/{name}"
        steps.append(Step("POST", one["path"], body, PROTOBUF, name=one["name"]))
        if kind != "Endpoints":  # of which is warned
            only = ("kind", "message", "code")
            steps.append(Step("PUT", path, body, PROTOBUF, name=f"{one['name']} put", only=only))
        if kind.endswith("WebhookConfiguration"):  # nobody else is to be asked about
            steps.append(Step("DELETE", path, is_quiet=True))
    return steps


# ---- by hand ---------------------------------------------------------------------------------------------


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def wrapped(raw: bytes, version: str, kind: str, *, encoding: str = "", media: str = "") -> bytes:
    """A message as Kubernetes sends it: with its kind, behind four bytes that say what it is."""
    about = _field(1, version.encode()) + _field(2, kind.encode())
    more = (_field(3, encoding.encode()) if encoding else b"") + (_field(4, media.encode()) if media else b"")
    return b"k8s\0" + _field(1, about) + _field(2, raw) + more


def _config_map(name: str, **data: str) -> bytes:
    entries = b"".join(
        _field(2, _field(1, key.encode()) + _field(2, value.encode())) for key, value in data.items()
    )
    return _field(1, _field(1, name.encode())) + entries


def _odd() -> list[Step]:
    good = wrapped(_config_map("a", k="v"), "v1", "ConfigMap")
    bodies: dict[str, bytes] = {
        "another kind": wrapped(_config_map("x"), "v1", "Secret"),
        "another group": wrapped(_config_map("x"), "apps/v1", "Deployment"),
        "no such kind": wrapped(_config_map("x"), "v1", "Nonesuch"),
        "no such version": wrapped(_config_map("x"), "v7", "ConfigMap"),
        "no kind": wrapped(_config_map("no-kind"), "", ""),
        "empty": wrapped(b"", "v1", "ConfigMap"),
        "unknown fields": wrapped(
            _config_map("unknown", k="v") + _field(99, b"x") + _field(98, 7), "v1", "ConfigMap"
        ),
        "a field twice": wrapped(
            _config_map("twice", k="v", K="w") + _field(2, _field(1, b"k") + _field(2, b"last")),
            "v1",
            "ConfigMap",
        ),
        "said to be protobuf inside": wrapped(_config_map("inside"), "v1", "ConfigMap", media=PROTOBUF),
    }
    options = {
        "no options": wrapped(b"", "v1", "DeleteOptions"),
        "grace": wrapped(_field(1, 0), "v1", "DeleteOptions"),
        "orphans": wrapped(_field(4, b"Orphan"), "v1", "DeleteOptions"),
        "a wrong uid": wrapped(
            _field(2, _field(1, b"00000000-0000-0000-0000-000000000009")), "v1", "DeleteOptions"
        ),
        "a dry run": wrapped(_field(5, b"All"), "v1", "DeleteOptions"),
        "a wrong policy": wrapped(_field(4, b"Odd"), "v1", "DeleteOptions"),
    }
    pod = "p"
    binding = wrapped(
        _field(1, _field(1, b"p")) + _field(2, _field(1, b"Node") + _field(3, b"n")), "v1", "Binding"
    )
    eviction = wrapped(_field(1, _field(1, b"p")), "policy/v1", "Eviction")
    scale = wrapped(_field(1, _field(1, b"d")) + _field(2, _field(1, 4)), "autoscaling/v1", "Scale")
    deployment = {
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "x"}]},
            },
        },
    }
    deployments = "/apis/apps/v1/namespaces/${namespace}/deployments"
    return [
        Step("POST", MAPS, good, PROTOBUF, name="good"),
        Step("PUT", MAPS + "/a", wrapped(_config_map("a", k="w"), "v1", "ConfigMap"), PROTOBUF, name="put"),
        Step("PUT", MAPS + "/a", wrapped(_config_map("b", k="w"), "v1", "ConfigMap"), PROTOBUF, name="put of another name"),
        *(Step("POST", MAPS, body, PROTOBUF, name=name) for name, body in bodies.items()),
        *(Step("DELETE", MAPS + "/a" + ("?dryRun=All" if "wrong" in name else ""), body, PROTOBUF, name=f"delete with {name}") if "wrong" in name else
          step for name, body in options.items() for step in (
              Step("POST", MAPS, {"metadata": {"name": f"d-{name.replace(' ', '-')}"}}, is_quiet=True),
              Step("DELETE", f"{MAPS}/d-{name.replace(' ', '-')}", body, PROTOBUF, name=f"delete with {name}"))),
        Step("POST", MAPS, good[:-3], PROTOBUF, name="cut short", only=("kind", "reason", "code")),
        Step("POST", MAPS, good[4:], PROTOBUF, name="without its beginning", only=("kind", "reason", "code")),
        Step("POST", MAPS, b"", PROTOBUF, name="nothing", only=("kind", "reason", "code")),
        Step("POST", MAPS, b'{"metadata":{"name":"x"}}', PROTOBUF, name="JSON", only=("kind", "reason", "code")),
        Step("POST", MAPS, good, JSON, name="said to be JSON", only=("kind", "reason", "code")),
        Step("PATCH", MAPS + "/a", good, PROTOBUF, name="a patch"),
        Step("POST", _PODS, {"metadata": {"name": pod}, "spec": {"containers": [{"name": "c", "image": "x"}]}}, is_quiet=True),
        Step("POST", f"{_PODS}/p/binding", binding, PROTOBUF, name="bound"),
        Step("GET", f"{_PODS}/p", name="is bound"),
        Step("POST", f"{_PODS}/p/eviction", eviction, PROTOBUF, name="evicted"),
        Step("POST", deployments, deployment, is_quiet=True),
        Step("PUT", f"{deployments}/d/scale", scale, PROTOBUF, name="scaled"),
    ]  # fmt: skip


SCRIPTS = [Script("bodies in protobuf", _written()), Script("odd protobuf", _odd())]
