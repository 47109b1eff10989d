"""Reading: lists, selectors, pages, watches, and the forms in which they can be had."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from tests.conformance.asking import MERGE, Script, Step
from tests.conformance.scripts.writing import DEPLOYMENTS, MAPS, PODS, config_map, deployment, pod, service

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIALS = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def _five() -> list[Step]:
    return [
        Step("POST", MAPS, config_map(f"m{i}", {"i": str(i)}, labels={"i": str(i), "g": "xy"[i % 2]}), name=f"m{i}", is_quiet=True)
        for i in range(5)
    ]  # fmt: skip


def _listing() -> list[Step]:
    queries = {
        "all": "",
        "page": "?limit=2",
        "next page": "?limit=2&continue=${page.metadata.continue}",
        "last page": "?limit=2&continue=${next page.metadata.continue}",
        "bad limit": "?limit=x",
        "limit below 0": "?limit=-1",
        "bad continue": "?limit=2&continue=x",
        "continue and version": "?limit=2&continue=${page.metadata.continue}&resourceVersion=1",
        "version 0": "?resourceVersion=0&limit=2",
        "exact": "?resourceVersion=${m2.metadata.resourceVersion}&resourceVersionMatch=Exact",
        "exact page": "?resourceVersion=${m2.metadata.resourceVersion}&resourceVersionMatch=Exact&limit=1",
        "not older": "?resourceVersion=${m2.metadata.resourceVersion}&resourceVersionMatch=NotOlderThan",
        "exact 0": "?resourceVersion=0&resourceVersionMatch=Exact",
        "match without version": "?resourceVersionMatch=Exact",
        "bad match": "?resourceVersion=1&resourceVersionMatch=Odd",
        "bad version": "?resourceVersion=abc",
        "version below 0": "?resourceVersion=-1",
        "initial events": "?sendInitialEvents=true",
        "equal": "?labelSelector=g%3Dx",
        "double equal": "?labelSelector=g%3D%3Dx",
        "not equal": "?labelSelector=g!%3Dx",
        "in": "?labelSelector=i+in+(1,2)",
        "not in": "?labelSelector=i+notin+(1,2)",
        "has": "?labelSelector=g",
        "has not": "?labelSelector=!g",
        "greater": "?labelSelector=i%3E2",
        "greater than a word": "?labelSelector=i%3Ex",
        "two": "?labelSelector=g%3Dx,i%3D2",
        "broken selector": "?labelSelector=a+b",
        "bad value": "?labelSelector=a%3D-x-",
        "open set": "?labelSelector=a+in+(b",
        "selected page": "?labelSelector=g%3Dx&limit=1",
        "by name": "?fieldSelector=metadata.name%3Dm1",
        "by not name": "?fieldSelector=metadata.name!%3Dm1",
        "by namespace": "?fieldSelector=metadata.namespace%3Delsewhere",
        "by an unknown field": "?fieldSelector=data.i%3D1",
        "broken field selector": "?fieldSelector=foo",
        "pretty is no option of the list": "?pretty=false&limit=1",
    }
    steps = [Step("GET", MAPS + query, name=name) for name, query in queries.items()]
    more = [
        Step("GET", "/api/v1/namespaces/absent/configmaps", name="no namespace"),
        Step("GET", "/api/v1/namespaces/absent/configmaps/x", name="no object in no namespace"),
        Step("GET", MAPS + "/m1?resourceVersion=${m1.metadata.resourceVersion}", name="get at version"),
        Step("GET", MAPS + "/m1?resourceVersion=99999999999", name="get of the future"),
        Step("GET", MAPS + "/m1?resourceVersion=x", name="get of no version"),
        Step("GET", MAPS + "/absent", name="absent"),
        Step("GET", "/api/v1/configmaps?fieldSelector=metadata.namespace%3D${namespace}&limit=2", name="across namespaces"),
        Step("GET", "/api/v1/namespaces/${namespace}/frobs", name="no such resource"),
        Step("GET", "/api/v2/namespaces", name="no such version"),
        Step("GET", "/apis/frob.example.com/v1/frobs", name="no such group"),
        Step("GET", "/api/v1/namespaces/${namespace}/nodes", name="cluster-scoped in a namespace"),
        Step("GET", "/api/v1/namespaces/${namespace}/configmapsx", name="a longer name"),
        Step("GET", MAPS + "/m1/extra/parts", name="too deep"),
        Step("GET", MAPS + "/", name="slash"),
        Step("HEAD", MAPS + "/m1", name="head"),
        Step("OPTIONS", MAPS + "/m1", name="options"),
        Step("FROB", MAPS + "/m1", name="unknown method"),
    ]  # fmt: skip
    return [*_five(), *steps, *more]


def _pod_selectors() -> list[Step]:
    return [
        Step("POST", PODS, pod("a"), name="a", is_quiet=True),
        Step("POST", PODS, pod("b", nodeName="n1", restartPolicy="Never"), name="b", is_quiet=True),
        *(
            Step("GET", f"{PODS}?fieldSelector={one}", name=one)
            for one in (
                "spec.nodeName%3Dn1", "spec.nodeName%3D", "status.phase%3DPending", "status.phase!%3DPending",
                "spec.restartPolicy%3DNever", "spec.schedulerName%3Ddefault-scheduler", "status.podIP%3D",
                "spec.serviceAccountName%3Ddefault", "spec.hostNetwork%3Dfalse", "status.nominatedNodeName%3D",
                "spec.containers%3Dx",
            )
        ),
    ]  # fmt: skip


def _watching() -> list[Step]:
    since = "resourceVersion=${m0.metadata.resourceVersion}"
    return [
        *_five(),
        Step("PATCH", MAPS + "/m1", {"data": {"x": "y"}}, MERGE, name="changed", is_quiet=True),
        Step("PATCH", MAPS + "/m2", {"metadata": {"labels": {"g": "y"}}}, MERGE, name="moved", is_quiet=True),
        Step("DELETE", MAPS + "/m3", name="deleted", is_quiet=True),
        Step("GET", f"{MAPS}?watch=true&{since}", lines=7, name="everything"),
        Step("GET", f"{MAPS}?watch=1&{since}&labelSelector=g%3Dx", lines=3, name="selected"),
        Step("GET", f"{MAPS}?watch=1&{since}&labelSelector=g%3Dy", lines=5, name="entered"),
        Step("GET", f"{MAPS}?watch=1&{since}&fieldSelector=metadata.name%3Dm1", lines=2, name="by name"),
        Step("GET", f"{MAPS}?watch=1&timeoutSeconds=1", name="from the present"),
        Step("GET", f"{MAPS}?watch=1&resourceVersion=0&labelSelector=i%3D0", lines=1, name="from 0"),
        Step("GET", f"{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan", lines=5, name="initial events"),
        Step("GET", f"{MAPS}?watch=1&sendInitialEvents=true&timeoutSeconds=1", name="initial events without match"),
        Step("GET", f"{MAPS}?watch=1&sendInitialEvents=false&timeoutSeconds=1&resourceVersionMatch=NotOlderThan&{since}&fieldSelector=metadata.name%3Dm1", name="no initial events"),
        Step("GET", f"{MAPS}?watch=1&resourceVersionMatch=Exact&{since}&timeoutSeconds=1", name="match without initial events"),
        Step("GET", f"{MAPS}/m1?watch=1&{since}", lines=2, name="of one"),
        Step("GET", f"/api/v1/watch/namespaces/${{namespace}}/configmaps?{since}", lines=7, name="by the old path"),
        Step("GET", f"/api/v1/watch/namespaces/${{namespace}}/configmaps/m1?{since}", lines=2, name="of one by the old path"),
        Step("GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=abc", name="bad version"),
        Step("GET", f"{MAPS}?watch=1&timeoutSeconds=x", name="bad timeout"),
        Step("GET", f"{MAPS}?watch=maybe&timeoutSeconds=1", name="odd flag"),
        Step("GET", f"{MAPS}?watch=1&{since}", headers={"Accept": TABLE}, lines=3, name="as tables"),
        Step("GET", f"{MAPS}?watch=1&{since}", headers={"Accept": PARTIAL}, lines=3, name="as metadata"),
        Step("GET", f"{MAPS}?watch=1&{since}", headers={"Accept": "application/yaml"}, lines=1, name="as yaml"),
        Step("GET", f"{MAPS}?watch=1&{since}", headers={"Accept": "application/json;stream=watch"}, lines=1, name="as a stream"),
    ]  # fmt: skip


def _forms() -> list[Step]:
    one, accepts = MAPS + "/a", {
        "json": "application/json", "yaml": "application/yaml", "anything": "*/*", "text": "text/plain",
        "text or anything": "text/html,*/*;q=0.1", "cbor": "application/cbor", "table": TABLE, "metadata": PARTIAL,
        "table of v1beta1": "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        "table of another group": "application/json;as=Table;v=v1;g=frob",
        "list of metadata of one": PARTIALS, "status": "application/json;as=Status;v=v1;g=meta.k8s.io",
        "nothing": "application/json;as=",
    }  # fmt: skip
    steps = [
        Step("POST", MAPS, config_map("a", {"k": "v\nw", "é": ""}), name="bad key"),
        Step(
            "POST", MAPS, config_map("a", {"k": "v\nw: <&>", "l": "é"}, creationTimestamp=None), name="made"
        ),
    ]
    steps += [Step("GET", one, headers={"Accept": accept}, name=name) for name, accept in accepts.items()]
    steps += [
        Step("GET", MAPS, headers={"Accept": accept}, name=f"list as {name}")
        for name, accept in accepts.items()
        if name in {"yaml", "text", "table", "metadata", "list of metadata of one"}
    ]
    return [
        *steps,
        Step("GET", one + "?pretty=true", as_text=True, name="pretty"),
        Step("GET", one + "?pretty=false", as_text=True, name="not pretty"),
        Step("GET", one, headers={"User-Agent": "curl/8"}, as_text=True, name="curl"),
        Step("GET", one, headers={"User-Agent": "Mozilla/5.0"}, as_text=True, name="browser"),
        Step("GET", one, headers={"Accept": "application/yaml"}, as_text=True, name="as yaml"),
        Step("GET", MAPS + "?pretty=true", as_text=True, name="pretty list"),
        Step("GET", one, as_text=True, name="as it is"),
        Step("GET", MAPS + "/absent", headers={"Accept": "application/yaml"}, as_text=True, name="yaml error"),
        Step("GET", MAPS + "/absent", headers={"Accept": TABLE}, name="error and table"),
        Step("POST", MAPS, config_map("b"), headers={"Accept": TABLE}, name="create as table"),
        Step("POST", MAPS, config_map("c"), headers={"Accept": PARTIAL}, name="create as metadata"),
        Step("GET", MAPS + "?includeObject=Object", headers={"Accept": TABLE}, name="table with objects"),
        Step("GET", MAPS + "?includeObject=None", headers={"Accept": TABLE}, name="table without"),
        Step("GET", MAPS + "?includeObject=Odd", headers={"Accept": TABLE}, name="table with what"),
    ]  # fmt: skip


_KINDS: dict[str, tuple[str, object]] = {
    "configmaps": (MAPS, config_map("a", {"k": "v"})),
    "pods": (PODS, {**pod("a", nodeName="n1", initContainers=[{"name": "i", "image": "i"}]), "status": {}}),
    "deployments": (DEPLOYMENTS, deployment("a")),
    "services": ("/api/v1/namespaces/${namespace}/services", service("a", type="NodePort")),
    "secrets": ("/api/v1/namespaces/${namespace}/secrets", {"metadata": {"name": "a"}, "stringData": {"a": "b"}}),
    "serviceaccounts": ("/api/v1/namespaces/${namespace}/serviceaccounts", {"metadata": {"name": "a"}}),
    "persistentvolumeclaims": ("/api/v1/namespaces/${namespace}/persistentvolumeclaims", {"metadata": {"name": "a"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    "resourcequotas": ("/api/v1/namespaces/${namespace}/resourcequotas", {"metadata": {"name": "a"}, "spec": {"hard": {"pods": "5000"}}}),
    "limitranges": ("/api/v1/namespaces/${namespace}/limitranges", {"metadata": {"name": "a"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "90"}}]}}),
    "replicationcontrollers": ("/api/v1/namespaces/${namespace}/replicationcontrollers", {"metadata": {"name": "a"}, "spec": {
        "replicas": 0, "template": deployment("a")["spec"]["template"]}}),
    "endpoints": ("/api/v1/namespaces/${namespace}/endpoints", {"metadata": {"name": "a"}, "subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]}),
    "events": ("/api/v1/namespaces/${namespace}/events", {"metadata": {"name": "a"}, "involvedObject": {"kind": "Pod", "name": "a", "namespace": "${namespace}"},
        "reason": "R", "message": "M", "type": "Normal"}),
    "replicasets": ("/apis/apps/v1/namespaces/${namespace}/replicasets", {"metadata": {"name": "a"}, "spec": {
        key: deployment("a")["spec"][key] for key in ("selector", "template", "replicas")}}),
    "statefulsets": ("/apis/apps/v1/namespaces/${namespace}/statefulsets", {"metadata": {"name": "a"}, "spec": {**deployment("a")["spec"], "serviceName": "s"}}),
    "daemonsets": ("/apis/apps/v1/namespaces/${namespace}/daemonsets", {"metadata": {"name": "a"}, "spec": {
        key: deployment("a")["spec"][key] for key in ("selector", "template")}}),
    "jobs": ("/apis/batch/v1/namespaces/${namespace}/jobs", {"metadata": {"name": "a"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}),
    "cronjobs": ("/apis/batch/v1/namespaces/${namespace}/cronjobs", {"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}}),
    "ingresses": ("/apis/networking.k8s.io/v1/namespaces/${namespace}/ingresses", {"metadata": {"name": "a"}, "spec": {
        "rules": [{"host": "a.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}}),
    "networkpolicies": ("/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies", {"metadata": {"name": "a"}, "spec": {"podSelector": {"matchLabels": {"a": "b"}}}}),
    "horizontalpodautoscalers": ("/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers", {"metadata": {"name": "a"}, "spec": {
        "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}}),
    "poddisruptionbudgets": ("/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets", {"metadata": {"name": "a"}, "spec": {"minAvailable": "50%", "selector": {}}}),
    "roles": ("/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles", {"metadata": {"name": "a"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    "rolebindings": ("/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings", {"metadata": {"name": "a"}, "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}, "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]}),
    "leases": ("/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases", {"metadata": {"name": "a"}, "spec": {"holderIdentity": "h"}}),
    "endpointslices": ("/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices", {"metadata": {"name": "a"}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}]}),
    "nodes": ("/api/v1/nodes", {"metadata": {"name": "table-a"}}),
    "namespaces": ("/api/v1/namespaces", {"metadata": {"name": "table-a"}}),
    "persistentvolumes": ("/api/v1/persistentvolumes", {"metadata": {"name": "table-a"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"}}}),
    "storageclasses": ("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "table-a", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"}),
    "clusterroles": ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "table-a"}, "rules": []}),
    "clusterrolebindings": ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"metadata": {"name": "table-a"}, "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "table-a"}}),
    "priorityclasses": ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "table-a"}, "value": 5}),
    "runtimeclasses": ("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "table-a"}, "handler": "h"}),
    "ingressclasses": ("/apis/networking.k8s.io/v1/ingressclasses", {"metadata": {"name": "table-a"}, "spec": {"controller": "example.com/c"}}),
    "csidrivers": ("/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": "table-a"}, "spec": {}}),
    "validatingwebhookconfigurations": ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"metadata": {"name": "table-a"}}),
    "certificatesigningrequests": ("/apis/certificates.k8s.io/v1/certificatesigningrequests", {"metadata": {"name": "table-a"}, "spec": {
        "request": "x", "signerName": "example.com/s", "usages": ["client auth"]}}),
}  # fmt: skip


def _tables() -> list[Step]:
    steps = []
    for kind, (path, body) in _KINDS.items():
        steps += [
            Step("POST", path, body, name=f"{kind} made"),
            Step("GET", f"{path}/{'table-a' if 'namespace}' not in path else 'a'}",
                 headers={"Accept": TABLE}, name=f"{kind} table"),
            Step("DELETE", f"{path}/table-a", name=f"{kind} deleted")
            if "namespace}" not in path else Step("GET", path, headers={"Accept": TABLE}, name=f"{kind} tables"),
        ]  # fmt: skip
    steps += [
        Step("PATCH", PODS + "/a/status", {"status": {"phase": "Running", "podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.4"}], "conditions": [
            {"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "web", "ready": True, "restartCount": 2, "image": "i", "imageID": "",
            "state": {"running": {}}}]}}, MERGE, name="pod runs"),
        Step("GET", PODS + "/a", headers={"Accept": TABLE}, name="pod running"),
        Step("PATCH", PODS + "/a/status", {"status": {"containerStatuses": [{"name": "web", "ready": False, "restartCount": 3, "image": "i", "imageID": "",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}, MERGE, name="pod waits"),
        Step("GET", PODS + "/a", headers={"Accept": TABLE}, name="pod waiting"),
        Step("PATCH", DEPLOYMENTS + "/a/status", {"status": {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}}, MERGE, name="deployed"),
        Step("GET", DEPLOYMENTS + "/a", headers={"Accept": TABLE}, name="deployment ready"),
    ]  # fmt: skip
    return steps


SCRIPTS = [
    Script("listing", _listing()),
    Script("pod selectors", _pod_selectors()),
    Script("watching", _watching()),
    Script("forms", _forms()),
    Script("tables", _tables()),
]
