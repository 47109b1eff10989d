"""What is beside resources: discovery, version, health, OpenAPI; and what no good client would ask."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from tests.conformance.asking import JSON_PATCH, MERGE, YAML, Script, Step
from tests.conformance.scripts.definitions import CRDS, definition
from tests.conformance.scripts.reading import TABLE
from tests.conformance.scripts.writing import MAPS, config_map

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_GROUPS = (
    "apps", "batch", "autoscaling", "policy", "networking.k8s.io", "storage.k8s.io", "coordination.k8s.io",
    "rbac.authorization.k8s.io", "apiextensions.k8s.io", "discovery.k8s.io", "events.k8s.io", "node.k8s.io",
    "scheduling.k8s.io", "certificates.k8s.io", "admissionregistration.k8s.io", "apiregistration.k8s.io",
    "authentication.k8s.io", "authorization.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
)  # fmt: skip


def _discovery() -> list[Step]:
    return [
        Step("GET", "/api", name="api", only=("kind", "versions")),
        Step("GET", "/apis", name="apis"),
        Step("GET", "/api/v1", name="v1"),
        *(Step("GET", f"/apis/{group}", name=f"group {group.replace('.', '-')}") for group in _GROUPS),
        *(
            Step("GET", f"/apis/{group}/v1", name=f"version {group.replace('.', '-')}")
            for group in _GROUPS
            if group != "autoscaling"
        ),
        Step("GET", "/apis/autoscaling/v2", name="autoscaling v2"),
        Step("GET", "/apis/autoscaling/v1", name="autoscaling v1"),
        Step("GET", "/apis", headers={"Accept": _AGGREGATED}, name="aggregated apis"),
        Step("GET", "/api", headers={"Accept": _AGGREGATED}, name="aggregated api"),
        Step("GET", "/apis", headers={"Accept": _AGGREGATED + ",application/json"}, name="aggregated or not", only=("kind",)),
        Step("GET", "/apis/absent.example.com", name="no group"),
        Step("GET", "/apis/apps/v9", name="no version"),
        Step("POST", "/apis", {}, name="not posted"),
        Step("GET", "/apis", headers={"Accept": "text/plain"}, name="as text"),
        *(
            Step("GET", f"/{path}", headers={"Accept": accept}, name=f"{path.replace('.', '-')} as {form}", only=("message", "kind"))
            for path in ("api", "apis/apps", "apis/apps/v1", "version", ".well-known/openid-configuration", "openid/v1/jwks")
            for form, accept in (("text", "text/plain"), ("either", "text/plain, application/xml;q=0.5"))
        ),
        Step("GET", "/version", headers={"Accept": "application/yaml"}, name="version as yaml"),
        Step("GET", "/openid/v1/jwks", headers={"Accept": "application/json"}, name="keys as json", only=("message", "kind")),
        Step("GET", "/version", name="version", only=("major", "minor", "gitVersion")),
        Step("GET", "/version", is_anonymous=True, name="version for strangers", only=("major",)),
        Step("GET", "/version/", name="version with a slash", only=("kind",)),
        Step("GET", "/openapi/v3", name="openapi", only=("kind",)),
        Step("GET", "/openapi/v3/api/v1", name="openapi of v1", only=("openapi",)),
        Step("GET", "/openapi/v3/absent", name="no openapi"),
        *(Step("GET", f"/{path}", as_text=True, name=path) for path in ("healthz", "livez", "readyz")),
        Step("GET", "/readyz/ping", as_text=True, name="ping"),
        Step("GET", "/readyz/absent", as_text=True, name="no such check"),
        Step("GET", "/readyz?exclude=ping", as_text=True, name="without ping"),
        Step("GET", "/healthz", is_anonymous=True, as_text=True, name="health for strangers"),
        Step("GET", "/api/v1/namespaces", is_anonymous=True, name="nothing for strangers"),
        Step("GET", "/api/v1/namespaces", is_anonymous=True, headers={"Authorization": "Bearer x"}, name="a wrong token"),
        Step("GET", "/absent", name="nothing there"),
        Step("GET", "/api/absent", name="nothing there either"),
        Step("POST", "/healthz", "", name="health posted", as_text=True),
    ]  # fmt: skip


def _registered() -> list[Step]:
    """APIServices, of what is built in and of what is defined; and the addresses of Services."""
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    group, other = "registered.example.com", "things.registered.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    unserved = {"name": "v1alpha1", "served": False, "storage": False, "schema": {"openAPIV3Schema": schema}}
    crd = definition("things", "Thing", schema, group=group)
    crd["spec"]["versions"].append(unserved)
    more = definition("others", "Other", schema, group=group)
    own = {
        "metadata": {"name": f"v9.{group}"},
        "spec": {"group": group, "version": "v9", "groupPriorityMinimum": 10, "versionPriority": 10},
    }
    served = [{"op": "replace", "path": "/spec/versions/1/served", "value": True}]
    return [
        Step("GET", path, name="what is built in"),
        Step("GET", f"{path}/v1.apps", headers={"Accept": TABLE}, name="as a table"),
        Step("GET", f"{path}/v1.apiregistration.k8s.io", name="not itself"),
        Step("GET", "/apis/networking.k8s.io/v1/servicecidrs", until_has="Ready", name="addresses"),
        Step("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", headers={"Accept": TABLE}, name="addresses as a table"),
        Step("POST", path, own, name="ones own"),
        Step("POST", CRDS, crd, is_quiet=True),
        Step("GET", f"{path}/v1.{group}", until=200, name="what is defined"),
        Step("GET", f"{path}/v1alpha1.{group}", name="not what is not served"),
        Step("PATCH", f"{CRDS}/{other}", served, JSON_PATCH, is_quiet=True),
        Step("GET", f"{path}/v1alpha1.{group}", until=200, name="once it is served"),
        Step("POST", CRDS, more, is_quiet=True),
        Step("GET", f"{CRDS}/others.{group}", until_says="Established=True", is_quiet=True),
        Step("DELETE", f"{CRDS}/{other}", is_quiet=True),
        Step("GET", f"{path}/v1alpha1.{group}", until=404, name="when it is gone"),
        Step("GET", f"{path}/v1.{group}", name="what another still serves", only=("kind", "spec")),
        Step("DELETE", f"{CRDS}/others.{group}", is_quiet=True),
        Step("GET", f"{path}/v1.{group}", until=404, name="when all are gone"),
        Step("GET", f"{path}/v9.{group}", name="ones own stays", only=("kind", "spec")),
    ]  # fmt: skip


def _bad_input() -> list[Step]:
    deep, wide = "[" * 20_000, '{"metadata":{"name":"big"},"data":{"k":"%s"}}'
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )  # fmt: skip
    paths = {
        "dots": "/api/v1/namespaces/${namespace}/configmaps/..",
        "two dots": "/api/v1/namespaces/../namespaces",
        "encoded slash": "/api/v1/namespaces/${namespace}/configmaps/a%2Fb",
        "encoded dots": "/api/v1/namespaces/${namespace}/configmaps/%2e%2e",
        "percent": "/api/v1/namespaces/${namespace}/configmaps/a%25b",
        "nothing encoded": "/api/v1/namespaces/${namespace}/configmaps/a%00b",
        "broken escape": "/api/v1/namespaces/${namespace}/configmaps/a%zz",
        "double slash": "/api/v1//namespaces",
        "long": f"/api/v1/namespaces/${{namespace}}/configmaps/{'x' * 2000}",
        "shared prefix": "/api/v1/namespaces/${namespace}/config",
        "upper case": "/api/v1/namespaces/${namespace}/ConfigMaps",
        "not utf-8": "/api/v1/namespaces/${namespace}/configmaps/%ff",
        "only slashes": "///",
    }
    bodies: dict[str, tuple[str | bytes, str]] = {
        "too large": (b" " * (3 * 2**20 + 1), ""),
        "not a number": ('{"metadata":{"name":"x"},"data":{"a":NaN}}', ""),
        "infinite": ('{"metadata":{"name":"x","generation":1e999}}', ""),
        "huge integer": (f'{{"metadata":{{"name":"x","generation":{"9" * 5000}}}}}', ""),
        "beyond 64 bits": ('{"metadata":{"name":"x","generation":9223372036854775808}}', ""),
        "a fraction": ('{"metadata":{"name":"x","generation":1.5}}', ""),
        "not utf-8": (b'{"metadata":{"name":"x"},"data":{"a":"\xff"}}', ""),
        "control character": ('{"metadata":{"name":"x"},"data":{"a":"\x01"}}', ""),
        "yaml aliases": (bomb, YAML),
        "long annotation": (f'{{"metadata":{{"name":"x","annotations":{{"a":"{"x" * 300_000}"}}}}}}', ""),
        "large data": (wide % ("x" * (2**20 + 1)), ""),
        "deep yaml": ("a: " + "[" * 3000, YAML),
        "two documents": ("metadata:\n  name: x\n---\nmetadata:\n  name: z\n", YAML),
    }
    status_only = ("kind", "status", "reason", "code")
    return [
        *(Step("GET", path, name=name) for name, path in paths.items()),
        *(
            Step("POST", MAPS, body, kind or "application/json", name=name, only=status_only)
            for name, (body, kind) in bodies.items()
        ),
        Step("POST", MAPS, deep, name="deep", only=status_only),
        Step("POST", MAPS, '{"metadata":{"name":"lone"},"data":{"a":"\\ud800"}}', name="lone surrogate"),
        Step("POST", MAPS, config_map("a", {"k": "v"}), name="made"),
        Step("PATCH", MAPS + "/a", [{"op": "test", "path": "/data/k", "value": "v"}] * 10_001, JSON_PATCH, name="many operations"),
        Step("PATCH", MAPS + "/a", [{"op": "add", "path": "/data/k", "value": "x" * 1000}] + [{"op": "copy", "from": "/data", "path": f"/data/{i}"} for i in range(30)],
             JSON_PATCH, name="copies", only=status_only),
        Step("PATCH", MAPS + "/a", "[" * 20_000, MERGE, name="deep patch", only=status_only),
        Step("PATCH", MAPS + "/a", '{"data":{"a":NaN}}', MERGE, name="not a number in a patch", only=status_only),
        Step("POST", MAPS, config_map("b"), headers={"Content-Encoding": "gzip"}, name="said to be packed", only=status_only),
        Step("GET", MAPS + "?labelSelector=" + "x" * 5000, name="long selector", only=status_only),
        Step("GET", MAPS + "?limit=99999999999999999999", name="huge limit"),
        Step("GET", MAPS + "?timeoutSeconds=-5", name="timeout below 0", only=("kind",)),
        *(
            Step("GET", f"{path}?timeout={said}", name=f"{name}, {said} for time", only=("kind", "reason", "message", "code"))
            for name, path in (("list", MAPS), ("get", MAPS + "/a"), ("version", "/version"), ("groups", "/apis"))
            for said in ("abc", "5", "5x", "1e3s", "-1s", "5s", "9999h")
        ),
        Step("GET", MAPS + "?watch=1&timeoutSeconds=1&timeout=abc", name="a watch and no time", lines=1),
        Step("GET", MAPS + "?labelSelector=a%zz", name="broken query", only=("kind",)),
        Step("GET", MAPS + "/a", name="still there"),
    ]  # fmt: skip


SCRIPTS = [
    Script("discovery", _discovery(), is_alone=True),
    Script("registered", _registered(), is_alone=True),
    Script("bad input", _bad_input()),
]
