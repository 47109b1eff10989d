"""Built-in admission: limit ranges, quotas, classes, and what a namespace says about the pods in it."""

from __future__ import annotations

from tests.conformance.asking import APPLY, MERGE, Json, Put, Script, Step

_CORE = "/api/v1/namespaces/${namespace}"
_PODS = f"{_CORE}/pods"
_MAPS = f"{_CORE}/configmaps"
_CLAIMS = f"{_CORE}/persistentvolumeclaims"
_APPS = "/apis/apps/v1/namespaces/${namespace}"
_BATCH = "/apis/batch/v1/namespaces/${namespace}"


def _container(name: str = "a", **more: Json) -> Json:
    return {"name": name, "image": "i", **more}


def _asking(requests: Json = None, limits: Json = None, name: str = "a") -> Json:
    resources = {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}
    return _container(name, resources=resources)


def _pod(name: str, *containers: Json, **spec: Json) -> Json:
    metadata = {"name": name, **spec.pop("metadata", {})}
    return {"metadata": metadata, "spec": {"containers": list(containers) or [_container()], **spec}}


def _made(name: str, *containers: Json, dry: bool = False, **spec: Json) -> Step:
    path = f"{_PODS}?dryRun=All" if dry else _PODS
    return Step("POST", path, _pod(name, *containers, **spec), name=name)


# ── Limit ranges ────────────────────────────────────────────────────────────────────────────────────


def _limited(*limits: Json) -> list[Step]:
    """A limit range, which the real server takes a moment to go by: a pod without anything tells."""
    return [
        Step("POST", f"{_CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": list(limits)}})
    ]


def _probed(expected: int) -> Step:
    """A pod that is refused once the limits are known."""
    asks = [_asking({"cpu": "900", "memory": "900Gi"}, {"cpu": "900", "memory": "900Gi"})]
    return Step("POST", f"{_PODS}?dryRun=All", _pod("probe", *asks), until=expected, is_quiet=True)


def _limits() -> list[Step]:
    container = {
        "type": "Container",
        "default": {"cpu": "500m", "memory": "512Mi"},
        "defaultRequest": {"cpu": "100m", "memory": "64Mi"},
        "min": {"cpu": "50m"},
        "max": {"cpu": "2", "memory": "1Gi"},
        "maxLimitRequestRatio": {"cpu": "10"},
    }
    whole = {"type": "Pod", "max": {"cpu": "3", "memory": "2Gi"}, "min": {"memory": "1Mi"}}
    claim = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}}
    side = {**_asking({"cpu": "1"}, {"cpu": "1"}, "side"), "restartPolicy": "Always"}
    return [
        *_limited(container, whole, claim),
        _probed(403),
        _made("silent"),
        _made("said", _asking({"cpu": "200m"}), _container("b")),
        _made("only-limits", _asking(None, {"cpu": "300m"})),
        _made("annotated", metadata={"annotations": {"a": "b"}}),
        _made("initiated", _container(), initContainers=[_container("i")]),
        _made("little", _asking({"cpu": "10m"}, {"cpu": "20m"})),
        _made("much", _asking({"cpu": "3"}, {"cpu": "3"})),
        _made("much-memory", _asking(None, {"memory": "3Gi"})),
        _made("far-apart", _asking({"cpu": "60m"}, {"cpu": "2"})),
        _made("too-many", *[_asking({"cpu": "1500m"}, {"cpu": "1500m"}, name) for name in "abc"]),
        _made("sided", _asking({"cpu": "2"}, {"cpu": "2"}), _container("b"), initContainers=[side]),
        Step(
            "PATCH",
            f"{_PODS}/silent",
            {"metadata": {"labels": {"a": "b"}}},
            MERGE,
            name="changed",
            only=("kind",),
        ),
        *(
            Step(
                "POST",
                _CLAIMS,
                {
                    "metadata": {"name": f"c{place}"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
                },
                name=f"a claim of {size}",
            )
            for place, size in enumerate(("500Mi", "5Gi", "20Gi"))
        ),
        Step("DELETE", f"{_CORE}/limitranges/l", is_quiet=True),
    ]


# ── Quotas ──────────────────────────────────────────────────────────────────────────────────────────


def _quota(name: str, hard: Json, used: Json | None = None, **spec: Json) -> list[Step]:
    """A quota, with the status that its controller would give it."""
    path = f"{_CORE}/resourcequotas"
    status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}}
    return [
        Step("POST", path, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}, is_quiet=True),
        Step("PATCH", f"{path}/{name}/status", status, MERGE, is_quiet=True),
    ]


def _used(name: str) -> Step:
    return Step("GET", f"{_CORE}/resourcequotas/{name}", name=f"used of {name}")


def _quotas() -> list[Step]:
    hard = {
        "pods": "2",
        "requests.cpu": "1",
        "limits.memory": "1Gi",
        "configmaps": "3",
        "count/secrets": "1",
        "services": "2",
        "services.nodeports": "1",
        "services.loadbalancers": "0",
        "persistentvolumeclaims": "2",
        "requests.storage": "5Gi",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
        "count/deployments.apps": "1",
        "requests.example.com/gpu": "2",
    }
    asks = _asking({"cpu": "400m"}, {"memory": "400Mi"})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_container()]}}

    def service(name: str, kind: str, *ports: int) -> Step:
        spec = {"type": kind, "ports": [{"name": f"p{port}", "port": port} for port in ports]}
        return Step(
            "POST", f"{_CORE}/services", {"metadata": {"name": name}, "spec": spec}, name=f"service {name}"
        )

    def claim(name: str, size: str, **spec: Json) -> Step:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
        return Step("POST", _CLAIMS, {"metadata": {"name": name}, "spec": spec}, name=f"claim {name}")

    def deployment(name: str) -> Step:
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        body = {"metadata": {"name": name}, "spec": spec}
        return Step("POST", f"{_APPS}/deployments", body, name=f"deployment {name}")

    return [
        *_quota("q", hard),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": "probe"}}, is_quiet=True),
        # The real server looks at quotas that it was told of; the last of many is told last.
        Step("POST", f"{_PODS}?dryRun=All", _pod("probe"), until=403, is_quiet=True),
        _made("unsaid"),
        _made("half-said", _asking({"cpu": "1m"}), _asking(None, {"memory": "1Mi"}, "b")),
        _made("first", asks),
        _used("q"),
        _made("dry", asks, dry=True),
        _made("too-much", _asking({"cpu": "700m"}, {"memory": "800Mi"})),
        _made("second", asks),
        _made("third", asks),
        Step(
            "PATCH",
            f"{_PODS}/first",
            {"metadata": {"labels": {"a": "b"}}},
            MERGE,
            only=("kind",),
            name="changed",
        ),
        *(
            Step("POST", _MAPS, {"metadata": {"name": f"m{place}"}}, name=f"map {place}")
            for place in range(4)
        ),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": "m9"}}, name="dry map"),
        *(
            Step("POST", f"{_CORE}/secrets", {"metadata": {"name": f"s{place}"}}, name=f"secret {place}")
            for place in (1, 2)
        ),
        service("a", "ClusterIP", 80),
        service("b", "NodePort", 80, 81),
        service("c", "LoadBalancer", 80),
        service("d", "NodePort", 80),
        service("e", "ClusterIP", 80),
        Step(
            "PATCH", f"{_CORE}/services/a", {"spec": {"type": "NodePort"}}, MERGE, name="service a, exposed"
        ),
        claim("a", "3Gi"),
        claim("b", "3Gi"),
        claim("c", "2Gi", storageClassName="gold"),
        claim("d", "1Gi", storageClassName="gold"),
        claim("e", "1Gi"),
        deployment("a"),
        deployment("b"),
        _used("q"),
        Step("DELETE", f"{_PODS}/first", only=("kind",), name="deleted"),
        _used("q"),
        Step("DELETE", f"{_CORE}/resourcequotas/q", is_quiet=True),
    ]


def _scopes() -> list[Step]:
    high = {
        "matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
        ]
    }
    return [
        *_quota("best", {"pods": "0"}, scopes=["BestEffort"]),
        *_quota("ending", {"pods": "0"}, scopes=["Terminating"]),
        *_quota("high", {"pods": "0"}, scopeSelector=high),
        *_quota("unknown", {"pods": "5", "count/secrets": "1"}, {"pods": "0"}, scopes=["NotBestEffort"]),
        *_quota("z", {"configmaps": "0"}),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": "probe"}}, until=403, is_quiet=True),
        _made("best-effort"),
        _made("ending", _asking({"cpu": "1"}), activeDeadlineSeconds=5),
        _made("high", _asking({"cpu": "1"}), priorityClassName="system-node-critical"),
        _made("plain", _asking({"cpu": "1"})),
        *_quota("unseen", {"count/secrets": "1", "secrets": "2"}, {"secrets": "0"}),
        Step(
            "POST",
            f"{_CORE}/secrets?dryRun=All",
            {"metadata": {"name": "s"}},
            until=403,
            name="not known yet",
        ),
    ]


def _meaning(scope: str, operator: str, *values: str) -> Json:
    """A scope selector of one term."""
    term = {"scopeName": scope, "operator": operator, **({"values": list(values)} if values else {})}
    return {"matchExpressions": [term]}


def _quota_classes() -> list[Step]:
    """Quotas of the pods, and of the claims, that name a class, or none, or another."""
    asks = _asking({"cpu": "1"})

    def claim(name: str, attributes: str = "") -> Step:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec |= {"volumeAttributesClassName": attributes} if attributes else {}
        return Step("POST", _CLAIMS, {"metadata": {"name": name}, "spec": spec}, name=f"claim {name}")

    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    silver = {"spec": {"volumeAttributesClassName": "silver"}}
    return [
        *_quota(
            "others", {"pods": "1"}, scopeSelector=_meaning("PriorityClass", "NotIn", "system-node-critical")
        ),
        *_quota("classless", {"cpu": "2"}, scopeSelector=_meaning("PriorityClass", "DoesNotExist")),
        *_quota("named", {"memory": "1Gi"}, scopeSelector=_meaning("PriorityClass", "Exists")),
        *_quota(
            "gold",
            {"persistentvolumeclaims": "1"},
            scopeSelector=_meaning("VolumeAttributesClass", "In", "gold"),
        ),
        *_quota(
            "not-gold",
            {"requests.storage": "2Gi"},
            scopeSelector=_meaning("VolumeAttributesClass", "NotIn", "gold"),
        ),
        *_quota(
            "silver",
            {"persistentvolumeclaims": "0"},
            scopeSelector=_meaning("VolumeAttributesClass", "In", "silver"),
        ),
        *_quota("z", {"configmaps": "0"}),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": "probe"}}, until=403, is_quiet=True),
        _made("classless", asks),
        _made("critical", _asking({"cpu": "1", "memory": "1Mi"}), priorityClassName="system-node-critical"),
        _made("unsaid", asks, priorityClassName="system-cluster-critical"),
        _made("other", _asking({"cpu": "1", "memory": "1Mi"}), priorityClassName="system-cluster-critical"),
        _made("classless-too", asks),
        claim("none"),
        claim("a", "gold"),
        claim("b", "gold"),
        claim("c", "bronze"),
        claim("d", "bronze"),
        Step("PATCH", f"{_CLAIMS}/c/status", bound, MERGE, is_quiet=True),
        Step("PATCH", f"{_CLAIMS}/c", silver, MERGE, name="claim c, silver"),
        *(_used(name) for name in ("others", "classless", "named", "gold", "not-gold", "silver")),
    ]


def _quota_whole() -> list[Step]:
    """A pod that says for all of its containers what they ask for, and one that has an overhead."""
    runtimes = "/apis/node.k8s.io/v1/runtimeclasses"
    heavy = {
        "metadata": {"name": "quota-heavy"},
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "100m", "memory": "8Mi"}},
    }
    both = {"requests": {"cpu": "400m", "memory": "8Mi"}, "limits": {"cpu": "400m", "memory": "64Mi"}}
    asks = _asking({"cpu": "400m"}, {"cpu": "400m", "memory": "64Mi"})
    return [
        Step("POST", runtimes, heavy, is_quiet=True),
        *_quota(
            "q",
            {
                "requests.cpu": "1",
                "limits.cpu": "1",
                "limits.memory": "1Gi",
                "requests.memory": "1Gi",
                "pods": "9",
            },
        ),
        Step("POST", f"{_PODS}?dryRun=All", _pod("probe"), until=403, is_quiet=True),
        _made("whole", resources=both),
        _made("half-whole", resources={"requests": {"cpu": "100m"}}),
        _made("heavy", asks, runtimeClassName="quota-heavy"),
        _used("q"),
        _made(
            "too-heavy",
            _asking({"cpu": "50m"}, {"cpu": "50m", "memory": "1Mi"}),
            runtimeClassName="quota-heavy",
        ),
        Step("DELETE", f"{runtimes}/quota-heavy", is_quiet=True),
    ]


# ── Classes ─────────────────────────────────────────────────────────────────────────────────────────


def _default_priorities() -> list[Step]:
    """Of priority classes one at most is the default."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"

    def priority(name: str, **more: Json) -> Json:
        return {"metadata": {"name": name}, "value": 7, **more}

    default = {"globalDefault": True}
    applied = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **priority("c", **default)}
    return [
        *(
            step
            for name in ("system-cluster-critical", "system-node-critical")
            for step in (
                Step("GET", f"{path}/{name}", name=name, only=("value", "description")),
                Step("DELETE", f"{path}/{name}", name=f"{name} deleted"),
                Step("DELETE", f"{path}/{name}?dryRun=All", name=f"{name} deleted, dry"),
            )
        ),
        Step("DELETE", f"{path}?dryRun=All", name="all deleted, dry", only=("kind",)),
        Step("POST", path, priority("a", **default), name="the default"),
        Step("POST", f"{path}?dryRun=All", priority("probe", **default), until=403, is_quiet=True),
        Step("POST", path, priority("b", **default), name="a second default"),
        Step("POST", f"{path}?dryRun=All", priority("b", **default), name="a second default, dry"),
        Step("POST", path, priority("a", **default), name="the default once more"),
        Step("POST", path, priority("a"), name="the default once more, plain"),
        Step("POST", path, priority("B", **default), name="a bad second default"),
        Step("POST", path, priority("b"), name="b"),
        Step("PATCH", f"{path}/b", default, MERGE, name="b as a second default"),
        Step("PUT", f"{path}/b", Put("b", default), name="b put as a second default"),
        Step("PATCH", f"{path}/c?fieldManager=m", applied, APPLY, name="a second default applied"),
        Step("PATCH", f"{path}/a", {"description": "d"}, MERGE, name="the default, described"),
        Step("PATCH", f"{path}/a", {"globalDefault": False}, MERGE, name="no default"),
        Step("PATCH", f"{path}/b?dryRun=All", default, MERGE, until=200, is_quiet=True),
        Step("PATCH", f"{path}/b", default, MERGE, name="b as the default"),
    ]


def _growing() -> list[Step]:
    """A claim grows once it is bound, if its class allows it."""
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}

    def storage(name: str, **more: Json) -> Step:
        return Step("POST", classes, {"metadata": {"name": name}, "provisioner": "p", **more}, is_quiet=True)

    def claim(name: str, *, old: str | None = None, **spec: Json) -> list[Step]:
        annotations = {} if old is None else {"volume.beta.kubernetes.io/storage-class": old}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "v",
            **spec,
        }
        made = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
        return [
            Step("POST", _CLAIMS, made, name=f"{name} made", only=("kind",)),
            Step("PATCH", f"{_CLAIMS}/{name}/status", bound, MERGE, name=f"{name} bound", only=("kind",)),
        ]

    def sized(name: str, size: str, query: str = "", **options: Json) -> Step:
        more = {"spec": {"resources": {"requests": {"storage": size}}}}
        return Step(
            "PATCH", f"{_CLAIMS}/{name}{query}", more, MERGE, **{"name": f"{name} of {size}", **options}
        )

    names = {"grows": "growing-grows", "stays": "growing-stays", "silent": "growing-silent"}
    unbound = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": names["grows"],
    }
    return [
        storage(names["grows"], allowVolumeExpansion=True),
        storage(names["stays"], allowVolumeExpansion=False),
        storage(names["silent"]),
        *(step for name, used in names.items() for step in claim(name, storageClassName=used)),
        *claim("classless", storageClassName=""),
        *claim("absent", storageClassName="growing-absent"),
        *claim("old", old=names["grows"]),
        *claim("old-stays", old=names["stays"]),
        *claim("both", old=names["grows"], storageClassName=names["stays"]),
        Step("POST", _CLAIMS, {"metadata": {"name": "unbound"}, "spec": unbound}, is_quiet=True),
        sized("grows", "2Gi", "?dryRun=All", until=200, is_quiet=True),
        *(
            sized(name, "2Gi")
            for name in (*names, "classless", "absent", "old", "old-stays", "both", "unbound")
        ),
        sized("stays", "1Gi"),
        sized("stays", "1024Mi"),
        sized("stays", "512Mi"),
        sized("stays", "2Gi", "?dryRun=All"),
        Step(
            "PATCH",
            f"{_CLAIMS}/stays",
            {"metadata": {"labels": {"a": "b"}}},
            MERGE,
            name="stays, labelled",
            only=("kind", "spec"),
        ),
        *_quota("q", {"requests.storage": "20Gi"}, {"requests.storage": "12Gi"}),
        sized("stays", "3Gi"),
        *(Step("DELETE", f"{classes}/{name}", is_quiet=True) for name in names.values()),
    ]


def _runtimes() -> list[Step]:
    """What the class of its run time makes of a pod."""
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    tolerations = [
        {"key": "sandbox", "operator": "Exists"},
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
        {"key": "t", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
    ]
    classes: dict[str, Json] = {
        "heavy": {"overhead": {"podFixed": {"cpu": "100m", "memory": "64Mi"}}},
        "empty": {"overhead": {}},
        "light": {},
        "placed": {"scheduling": {"nodeSelector": {"disk": "ssd", "arch": "x"}, "tolerations": tolerations}},
        "tolerant": {"scheduling": {"tolerations": [{"operator": "Exists"}]}},
        "nowhere": {"scheduling": {}},
        "all": {
            "overhead": {"podFixed": {"cpu": "1"}},
            "scheduling": {"nodeSelector": {"disk": "ssd"}, "tolerations": tolerations[:1]},
        },
    }

    def run(name: str, used: str | None, **spec: Json) -> Step:
        spec |= {} if used is None else {"runtimeClassName": f"runtimes-{used}" if used else ""}
        return Step("POST", f"{_PODS}?dryRun=All", _pod("p", **spec), name=name)

    mine = [
        {"key": "sandbox", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
        {"key": "a", "operator": "Equal", "value": "c", "effect": "NoSchedule"},
        {"key": "a", "value": "b", "effect": "NoSchedule"},
        {"key": "t", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10},
        {"key": "t", "operator": "Exists", "effect": "NoExecute"},
        {"key": "u", "operator": "Exists"},
        {"key": "u", "operator": "Exists"},
    ]
    return [
        *(
            Step(
                "POST",
                path,
                {"metadata": {"name": f"runtimes-{name}"}, "handler": "h", **more},
                is_quiet=True,
            )
            for name, more in classes.items()
        ),
        *(run(name, name) for name in classes),
        run("heavy, as it says", "heavy", overhead={"cpu": "0.1", "memory": "65536Ki"}),
        run("heavy, as it says in part", "heavy", overhead={"cpu": "100m"}),
        run("heavier", "heavy", overhead={"cpu": "200m", "memory": "64Mi"}),
        run("heavy, though empty", "heavy", overhead={}),
        run("light, but heavy", "light", overhead={"cpu": "1"}),
        run("empty, but heavy", "empty", overhead={"cpu": "1"}),
        run("heavy without a class", None, overhead={"cpu": "1"}),
        run("badly heavy without a class", None, overhead={"Bad_Name!": "1"}),
        run("placed, and agreeing", "placed", nodeSelector={"disk": "ssd", "own": "x"}),
        run("placed elsewhere", "placed", nodeSelector={"disk": "hdd"}),
        run("placed, and tolerant", "placed", tolerations=mine),
        run("tolerant, and more", "tolerant", tolerations=mine),
        run("nowhere, and tolerant", "nowhere", tolerations=mine),
        run("absent", "absent"),
        run("absent and heavy", "absent", overhead={"cpu": "1"}),
        *(Step("DELETE", f"{path}/runtimes-{name}", is_quiet=True) for name in classes),
    ]


# ── Pod security ────────────────────────────────────────────────────────────────────────────────────

_SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_BAD: dict[str, Json] = {
    "plain": {"containers": [_container()]},
    "two": {"containers": [_container(), _container("b")], "initContainers": [_container("i")]},
    "safe": {"containers": [_container(securityContext=_SAFE)]},
    "capabilities": {
        "containers": [
            _container(securityContext={"capabilities": {"add": ["SYS_ADMIN", "CHOWN"], "drop": ["ALL"]}})
        ]
    },
    "host": {"hostNetwork": True, "hostPID": True, "hostIPC": True, "containers": [_container()]},
    "paths": {
        "containers": [_container()],
        "volumes": [
            {"name": "v", "hostPath": {"path": "/"}},
            {"name": "n", "nfs": {"server": "s", "path": "/"}},
        ],
    },
    "ports": {
        "containers": [
            _container(ports=[{"containerPort": 80, "hostPort": 80}, {"containerPort": 90, "hostPort": 90}])
        ]
    },
    "probes": {"containers": [_container(livenessProbe={"httpGet": {"port": 80, "host": "example.com"}})]},
    "proc": {"hostUsers": False, "containers": [_container(securityContext={"procMount": "Unmasked"})]},
    "selinux": {
        "securityContext": {"seLinuxOptions": {"type": "odd", "user": "u"}},
        "containers": [_container(securityContext={"seLinuxOptions": {"role": "r"}})],
    },
    "seccomp": {
        "securityContext": {"seccompProfile": {"type": "Unconfined"}},
        "containers": [_container(securityContext={"seccompProfile": {"type": "Unconfined"}})],
    },
    "sysctls": {
        "securityContext": {
            "sysctls": [
                {"name": "kernel.shm_rmid_forced", "value": "1"},
                {"name": "kernel.odd", "value": "1"},
            ]
        },
        "containers": [_container()],
    },
    "apparmor": {
        "securityContext": {"appArmorProfile": {"type": "Unconfined"}},
        "containers": [_container()],
    },
    "windows": {"os": {"name": "windows"}, "containers": [_container()]},
    "root": {
        "securityContext": {"runAsNonRoot": False, "runAsUser": 0},
        "containers": [_container(securityContext={**_SAFE, "runAsUser": 0})],
    },
    "escalating": {"containers": [_container(securityContext={**_SAFE, "allowPrivilegeEscalation": True})]},
    "mixed": {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            _container(
                securityContext={
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
                }
            )
        ],
    },
}


def _labelled(**labels: str | None) -> Step:
    said = {f"pod-security.kubernetes.io/{name.replace('_', '-')}": value for name, value in labels.items()}
    return Step(
        "PATCH",
        "/api/v1/namespaces/${namespace}",
        {"metadata": {"labels": said}},
        MERGE,
        name=f"labels {said}",
        only=("kind", "message", "details"),
    )


def _all(prefix: str) -> list[Step]:
    return [
        Step(
            "POST",
            f"{_PODS}?dryRun=All",
            {"metadata": {"name": name}, "spec": spec},
            name=f"{prefix} {name}",
            only=("kind", "message", "reason", "details"),
        )
        for name, spec in _BAD.items()
    ]


def _wait(level: str, code: int) -> Step:
    """Until the real server goes by the labels."""
    which = {"baseline": "host", "restricted": "plain", "none": "host"}[level]
    return Step(
        "POST",
        f"{_PODS}?dryRun=All",
        {"metadata": {"name": "w"}, "spec": _BAD[which]},
        until=code,
        is_quiet=True,
    )


def _security() -> list[Step]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": _BAD["host"]}
    selector = {"matchLabels": {"a": "b"}}
    job = {"template": {"spec": {**_BAD["host"], "restartPolicy": "Never"}}}
    return [
        _made("running", _container(), hostNetwork=True),
        _made("running2", _container(), hostNetwork=True),
        _made("quiet", _container()),
        _labelled(enforce="odd", warn="odder", audit="oddest", enforce_version="1"),
        _labelled(enforce="baseline"),
        _wait("baseline", 403),
        *_all("baseline"),
        Step(
            "PATCH",
            f"{_PODS}/running",
            {"metadata": {"labels": {"a": "b"}}},
            MERGE,
            name="old one, labelled",
            only=("kind",),
        ),
        Step(
            "PATCH",
            f"{_PODS}/running",
            {"spec": {"containers": [{**_container(), "image": "j"}]}},
            MERGE,
            name="old one, changed",
            only=("kind", "message"),
        ),
        _labelled(enforce="restricted"),
        _wait("restricted", 403),
        *_all("restricted"),
        _labelled(enforce="restricted", enforce_version="v1.20"),
        _wait("restricted", 403),
        *_all("restricted v1.20"),
        _labelled(enforce=None, enforce_version=None, warn="restricted", warn_version="v1.30"),
        _wait("none", 201),
        *_all("warned"),
        Step(
            "POST",
            f"{_APPS}/deployments?dryRun=All",
            {"metadata": {"name": "d"}, "spec": {"selector": selector, "template": template}},
            name="deployment",
            only=("kind",),
        ),
        Step(
            "POST",
            f"{_BATCH}/jobs?dryRun=All",
            {"metadata": {"name": "j"}, "spec": job},
            name="job",
            only=("kind",),
        ),
        Step(
            "POST",
            f"{_BATCH}/cronjobs?dryRun=All",
            {"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}},
            name="cron job",
            only=("kind",),
        ),
        Step(
            "POST",
            "/api/v1/namespaces?dryRun=All",
            {"metadata": {"name": "n", "labels": {"pod-security.kubernetes.io/enforce": "odd"}}},
            name="a namespace",
            only=("kind", "message", "details"),
        ),
    ]


def _put_anew() -> list[Step]:
    """A pod that is put as it was first said, without what it was given."""
    said = _pod("p", _container(terminationMessagePath="/dev/termination-log"))
    changed = {**said, "spec": {**said["spec"], "containers": [_container(image="j")]}}
    another = {**said, "metadata": {"name": "p", "uid": "11111111-2222-3333-4444-555555555555"}}
    high = {**said["spec"], "priorityClassName": "system-node-critical"}
    return [
        Step("POST", _PODS, said, name="made"),
        Step("PUT", f"{_PODS}/p", said, name="put anew"),
        Step("PUT", f"{_PODS}/p", another, name="another put"),
        Step("PUT", f"{_PODS}/p?dryRun=All", another, name="another put, dry"),
        Step("PUT", f"{_PODS}/p", changed, name="put with another image"),
        Step("PUT", f"{_PODS}/p", {**said, "spec": high}, name="put with a priority"),
        Step(
            "PATCH", f"{_PODS}/p", {"spec": {"priority": None, "tolerations": None}}, MERGE, name="taken away"
        ),
        Step("PATCH", f"{_PODS}/p", {"spec": {"preemptionPolicy": "Never"}}, MERGE, name="another policy"),
        Step("PATCH", f"{_PODS}/p", {"spec": {"overhead": {"cpu": "1"}}}, MERGE, name="an overhead later"),
        Step("GET", f"{_PODS}/p", name="as it is"),
    ]


SCRIPTS = [
    Script("plugin limit ranges", _limits()),
    Script("plugin quotas", _quotas()),
    Script("plugin quota scopes", _scopes()),
    Script("plugin quota classes", _quota_classes()),
    Script("plugin quota of whole pods", _quota_whole()),
    Script("plugin default priorities", _default_priorities(), is_alone=True),
    Script("plugin growing claims", _growing()),
    Script("plugin run times", _runtimes()),
    Script("plugin pods put anew", _put_anew()),
    Script("plugin pod security", _security()),
]
