"""Makes the table of facts that the embedded server ships: what ``make facts`` runs.

Two sources, neither enough alone:

- Go's reflection over the API types (``types.go``): fields in their order, what is written when empty, how Go
  names a type in its errors, protobuf numbers, patch strategies.
- A real kube-apiserver: which resources it serves and how (discovery), the columns of ``kubectl get``, and
  from its OpenAPI what Go's types do not say: list types and keys, what is owned as a whole, defaults,
  enums, what is required.

The result is JSON, compressed, without descriptions of fields; ``setpoint.server.registry.facts`` reads it
and says what its places mean.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import subprocess
import zlib
from pathlib import Path
from typing import Any

from setpoint.testing.kube import KUBERNETES, ControlPlane

HERE = Path(__file__).parent
TABLE = HERE.parent.parent / "src" / "setpoint" / "server" / "registry" / "facts.json.z"

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
META = "meta.k8s.io/v1"  # where the kinds that every group has (DeleteOptions, Status) are kept once
SPECIAL = {
    "k8s.io/apimachinery/pkg/apis/meta/v1.Time": "time",
    "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime": "microtime",
    "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1": "any",
    "k8s.io/apimachinery/pkg/apis/meta/v1.Duration": "duration",
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "int-or-string",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "any",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON": "any",
    # Each is a schema or something simpler; which of the two, its walkers look at.
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray": "any",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool": "any",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "any",
}


_AS_EVER = {("atomic", None), (None, "granular")}  # what a list and a map are where nothing is said


class Server:
    """Asks a control plane, as its administrator."""

    def __init__(self, plane: ControlPlane) -> None:
        context = ssl.create_default_context(cafile=plane.ca_file)
        context.load_cert_chain(plane.admin_certificate, plane.admin_key)
        self._connection = http.client.HTTPSConnection(plane.url.removeprefix("https://"), context=context)

    def get(self, path: str, accept: str = "application/json") -> tuple[Any, str]:
        """The answer, and the warning that came with it."""
        self._connection.request("GET", path, headers={"Accept": accept})
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise SystemExit(f"facts: GET {path} answered {response.status}: {body.decode()}")
        warned = re.fullmatch(r'299 - "(.*)"', response.headers.get("Warning", ""))
        return json.loads(body), warned[1] if warned else ""


# --- what is served


def resources(server: Server) -> list[list[Any]]:
    """Every resource of every served group and version, in the server's order."""
    found = []
    for root in ("/api", "/apis"):
        for group in server.get(root, AGGREGATED)[0]["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                base = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
                hashes = {
                    one["name"]: one.get("storageVersionHash", "") for one in server.get(base)[0]["resources"]
                }
                for one in version["resources"]:
                    row = resource(server, base, one)
                    found.append([name, version["version"], *row, hashes[one["resource"]]])
    return found


def resource(server: Server, base: str, said: dict[str, Any]) -> list[Any]:
    """A resource's row, from its plural name on."""
    columns: list[Any] = []
    warning = ""
    if "list" in said["verbs"]:
        table, warning = server.get(f"{base}/{said['resource']}", AS_TABLE)
        columns = [
            [one["name"], one["type"], one["format"], one["description"], one["priority"]]
            for one in table["columnDefinitions"]
        ]
    return [
        said["resource"],
        said["responseKind"]["kind"],
        said["singularResource"],
        said["scope"] == "Namespaced",
        said["verbs"],
        said.get("shortNames", []),
        said.get("categories", []),
        [subresource(one) for one in said.get("subresources", [])],
        columns,
        warning,
    ]


def subresource(said: dict[str, Any]) -> list[Any]:
    kind = said["responseKind"]
    return [said["subresource"], kind["kind"], kind["group"], kind["version"], said["verbs"]]


def schemas(server: Server) -> dict[str, Any]:
    """Every schema of every document."""
    found: dict[str, Any] = {}
    for entry in server.get("/openapi/v3")[0]["paths"].values():
        document, _ = server.get(entry["serverRelativeURL"])
        found |= document.get("components", {}).get("schemas", {})
    return found


# --- what Go knows


def go_types() -> dict[str, Any]:
    run = subprocess.run(
        ["go", "run", "-mod=readonly", "."],
        cwd=HERE,
        stdout=subprocess.PIPE,
        check=True,
    )
    known: dict[str, Any] = json.loads(run.stdout)
    return known


def schema_name(go_type: str) -> str:
    """``io.k8s.api.core.v1.Pod`` for ``k8s.io/api/core/v1.Pod``."""
    host, _, rest = go_type.partition("/")
    return ".".join([*reversed(host.split(".")), *rest.split("/")])


class Types:
    """The types that kinds reach, numbered as they are met."""

    def __init__(self, known: dict[str, Any], schemas: dict[str, Any]) -> None:
        self._known = known
        self._schemas = schemas
        self._numbers: dict[str, int] = {}
        self.table: list[Any] = []

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.table)
            self.table.append(None)
            self.table[self._numbers[name]] = self._entry(name)
        return self._numbers[name]

    def _entry(self, name: str) -> list[Any]:
        """[Go's name, what it is] or [Go's name, fields, is it owned as a whole]."""
        said = self._known[name]
        if name in SPECIAL:
            inner = f"{name.rpartition('.')[0]}.JSONSchemaProps"
            has_inner = "JSONSchemaPropsOr" in name
            return [said["go"], SPECIAL[name], *([self.number(inner)] if has_inner else [])]
        if "is" in said:
            return [said["go"], self._expression(said["is"]) + ("!" if said.get("message") else "")]
        schema = self._schemas.get(schema_name(name), {})
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        return [
            said["go"],
            [self._field(one, schema) for one in said.get("fields", ())],
            *([1] if atomic else []),
        ]

    def _expression(self, go: str) -> str:
        """A type expression in which types are numbers: ``[]#7``."""
        return re.sub(r"@([^\]*!]+)!?", lambda match: f"#{self.number(match[1])}", go)

    def _field(self, said: list[Any], schema: dict[str, Any]) -> list[Any]:
        """[name, type, flags, protobuf number, everything rarer].

        Flags: e omitempty, z omitzero, p pointer, r required, a owned as a whole, t told of what it is in any
        case (an atomic list, a granular map).
        """
        name, go, flags, number, strategy, key, through = said
        if go.startswith("*"):
            go, flags = go[1:], flags + "p"
        declared = schema.get("properties", {}).get(name, {})
        if name in schema.get("required", ()):
            flags += "r"
        if declared.get("x-kubernetes-map-type") == "atomic":
            flags += "a"
        if (declared.get("x-kubernetes-list-type"), declared.get("x-kubernetes-map-type")) in _AS_EVER:
            flags += "t"
        rarer = {
            "s": strategy.split(",") if strategy else None,
            "m": key,
            "w": through,
            "l": declared.get("x-kubernetes-list-type"),
            "k": declared.get("x-kubernetes-list-map-keys"),
            "e": declared.get("enum") or _inner(declared).get("enum"),
        }
        rarer = {mark: value for mark, value in rarer.items() if value and value != "atomic"}
        if "default" in declared:
            rarer["d"] = declared["default"]
        return [name, self._expression(go), flags, number, *([rarer] if rarer else [])]


def _inner(declared: dict[str, Any]) -> dict[str, Any]:
    found = declared.get("items") or declared.get("additionalProperties") or {}
    return found if isinstance(found, dict) else {}


def kinds(known: dict[str, str], types: Types, served: set[str]) -> dict[str, int]:
    """Kinds of the served versions; those that every group has once, under meta.k8s.io."""
    shared = {"WatchEvent", "PartialObjectMetadata", "PartialObjectMetadataList", "Table"}
    found = {}
    for kind, go in sorted(known.items()):
        version, _, name = kind.rpartition("/")
        version = version.removeprefix("/")
        if go.startswith("k8s.io/apimachinery/"):
            if version == "v1" or (version == META and name in shared):
                found[f"{META}/{name}"] = types.number(go)
        elif version in served:
            found[f"{version}/{name}"] = types.number(go)
    return found


def main() -> None:
    known = go_types()
    with ControlPlane() as plane:
        server = Server(plane)
        served = resources(server)
        types = Types(known["types"], schemas(server))
    versions = {f"{group}/{version}" if group else version for group, version, *_ in served}
    table = {
        "release": KUBERNETES,
        "kinds": kinds(known["kinds"], types, versions),
        "resources": served,
        "types": types.table,
    }
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    TABLE.write_bytes(zlib.compress(text, 9))
    print(f"facts: {len(served)} resources, {len(types.table)} types, {TABLE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
