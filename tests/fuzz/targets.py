"""What is asked of a server by chance, parser by parser: each target is a function from chance to requests.

What comes back must be Kubernetes' answer: never our own mistake, never nothing, and nothing in the log.
``run.py`` asks for minutes, ``test_fuzz.py`` a bounded number of times.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from setpoint.api.yaml import dump
from setpoint.client.config import Config
from setpoint.errors import ConfigError
from setpoint.net.arriving import Arriving
from tests.fuzz import expressions
from tests.fuzz.chance import WORDS, Chance
from tests.server.http import test_routing
from tests.server.http.asking import DEFINITIONS, MAPS
from tests.server.test_fuzz import BARS, CORPUS, OPTIONS, Kind
from tests.server.test_limits import (
    APPLY,
    FOOS,
    JSON,
    JSON_PATCH,
    MERGE,
    PROTOBUF,
    STRATEGIC,
    YAML,
    definition,
)

FORMS: Final = (
    *("", JSON, YAML, PROTOBUF, "*/*", "application/*", "text/plain", "application/json;stream=watch"),
    *(f"application/json;as={each};v=v1;g=meta.k8s.io" for each in ("Table", "PartialObjectMetadata", "x")),
    *("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json;q=0.5", ",;,=;q=9"),
)
PARAMETERS: Final = (
    *("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch"),
    *("sendInitialEvents", "pretty", "includeObject", "timeoutSeconds", "allowWatchBookmarks", "dryRun"),
    *(
        "fieldManager",
        "fieldValidation",
        "force",
        "gracePeriodSeconds",
        "propagationPolicy",
        "orphanDependents",
    ),
    *("timeout", "container", "follow", "tailLines", "sinceSeconds", "sinceTime", "limitBytes", "watch"),
)


class Asked(NamedTuple):
    """One request."""

    method: str
    target: str
    body: bytes | None = None
    headers: dict[str, str] = {}  # a NamedTuple's default, never changed


Target = Callable[[Chance], Asked]


def _kept(chance: Chance) -> str:
    """Mostly not: what is stored is read by later ones, and should stay little."""
    return "" if chance.often(0.2) else "dryRun=All&"


def _options(chance: Chance) -> str:
    more = {chance.choice(PARAMETERS): chance.text(2) for _ in range(chance.one(0, 0, 0, 1, 2))}
    return "&".join(["fieldManager=m", *(f"{name}={_escaped(chance, said)}" for name, said in more.items())])


def _escaped(chance: Chance, text: str) -> str:
    """As a query has it; now and then as it is."""
    if chance.often(0.8):
        return quote(text.encode("utf-8", "surrogatepass"), safe="=,!()")
    return text.encode("utf-8", "replace").decode()


def _path(chance: Chance, kind: Kind) -> str:
    if chance.often(0.05):
        return f"{FOOS}/a"
    return kind.path + chance.one(
        "", "", "", "/status", "/scale", "/eviction", "/binding", "/token", "/log", "/x"
    )


def objects(chance: Chance) -> Asked:
    """Objects of every kind, bent, in every format."""
    kind: Kind = chance.choice(CORPUS)
    obj = chance.bent(chance.one(kind.obj, kind.full))
    media = chance.one(JSON, JSON, YAML, PROTOBUF)
    match media:
        case "application/yaml":
            body = dump(obj).encode("utf-8", "surrogatepass")
            body = chance.torn(body) if chance.often(0.4) else body
        case "application/vnd.kubernetes.protobuf":
            body = chance.torn(kind.message, most=chance.one(2, 20))
        case _:
            body = chance.json(obj)
    query = f"?{_kept(chance)}{_options(chance)}"
    if chance.often(0.6):
        return Asked("POST", kind.collection + query, body, {"Content-Type": media})
    return Asked("PUT", _path(chance, kind) + query, body, {"Content-Type": media})


def patches(chance: Chance) -> Asked:
    """The four kinds of patch."""
    kind: Kind = chance.choice(CORPUS)
    media = chance.one(MERGE, STRATEGIC, APPLY, JSON_PATCH)
    if media == JSON_PATCH:
        steps = [_operation(chance, kind) for _ in range(chance.randrange(6))]
        body = chance.json(chance.bent(steps) if chance.often(0.2) else steps)
    elif media == APPLY and chance.often(0.5):
        body = dump(chance.bent(kind.full)).encode("utf-8", "surrogatepass")
    else:
        obj = chance.bent(chance.one(kind.obj, kind.full, {"spec": {"a": [1]}, "$retainKeys": ["a"]}))
        body = chance.json(obj)
    query = f"?{_kept(chance)}{chance.one('', 'force=true&')}{_options(chance)}"
    return Asked("PATCH", _path(chance, kind) + query, body, {"Content-Type": media})


def _operation(chance: Chance, kind: Kind) -> Any:
    def pointer() -> str:
        value, steps = chance.one(kind.obj, kind.full), []
        while isinstance(value, dict | list) and value and chance.often(0.8):
            step = chance.choice([*value]) if isinstance(value, dict) else chance.randrange(len(value))
            value = value[step]
            steps.append(str(step).replace("~", "~0").replace("/", "~1"))
        if chance.often(0.3):
            steps.append(chance.one("-", "-1", "0", "99", "x", "~", "~2", "", "é"))
        return "".join(f"/{step}" for step in steps)

    made = {"op": chance.one("add", "remove", "replace", "move", "copy", "test", "x"), "path": pointer()}
    if chance.often(0.9):
        made |= {"value": chance.value(2), "from": pointer()}
    return made


def queries(chance: Chance) -> Asked:
    """Selectors, pages, versions, and in which form."""
    kind: Kind = chance.choice(CORPUS)
    asked = []
    for _ in range(chance.randrange(5)):
        name = chance.choice(PARAMETERS)
        if name == "watch":
            continue  # its own: a watch does not end by itself
        asked.append(f"{name}={_escaped(chance, _said(chance, name))}")
    if chance.often(0.005):  # which takes its second
        asked = ["watch=1", "timeoutSeconds=1", *(one for one in asked if not one.startswith("timeout"))]
    accept = chance.choice(FORMS) if chance.often(0.7) else chance.text(6).encode("ascii", "ignore").decode()
    target = chance.one(
        kind.collection, kind.path, "/api/v1/pods", "/apis", "/openapi/v3", "/version", "/healthz"
    )
    method = chance.one("GET", "GET", "GET", "GET", "DELETE", "HEAD")
    if method == "DELETE":
        asked.append("dryRun=All")
        target = chance.one(kind.collection, kind.path)
    return Asked(
        method, f"{target}?{'&'.join(asked)}", None, {"Accept": accept.replace("\n", " ").replace("\0", "")}
    )


def _said(chance: Chance, name: str) -> str:
    match name:
        case "continue" if chance.often(0.7):
            token = {"v": "meta.k8s.io/v1", "rv": chance.one(1, 5, 10**6, 2**63), "start": chance.text(2)}
            made = chance.json(chance.bent(token) if chance.often(0.5) else token)
            return base64.urlsafe_b64encode(made).rstrip(b"=").decode()
        case "labelSelector" | "fieldSelector" if chance.often(0.6):
            signs = ("=", "==", "!=", " in (a,b)", " notin (a)", " in ()", "", " in (", ">1", "<x")
            return ",".join(
                f"{chance.one('', '!')}{chance.choice(WORDS)}{chance.choice(signs)}{chance.one('', 'a', '1')}"
                for _ in range(chance.randint(1, 4))
            )
        case "limit" | "timeoutSeconds" | "resourceVersion" if chance.often(0.6):
            return str(chance.one(0, 1, -1, 5, 2**31, 2**63, 2**64, 1.5, "01", "+1", "1_0"))
    return chance.text(4)


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "d",
    "required": ["a"],
    "properties": {
        "a": {
            "type": "string",
            "maxLength": 9,
            "minLength": 0,
            "pattern": "^(a|b)*$",
            "default": "a",
            "enum": ["a"],
        },
        "b": {
            "type": "array",
            "maxItems": 3,
            "items": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
        "c": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "d": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "multipleOf": 2}},
        "e": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "f": {"type": "string", "format": "date-time", "nullable": True},
        "g": {"oneOf": [{"required": ["h"]}, {"not": {"required": ["i"]}}], "type": "object"},
    },
    "x-kubernetes-validations": [
        {"rule": "self.a == oldSelf.a || size(self.b) < 3", "message": "m", "optionalOldSelf": False},
        {
            "rule": "self.b.all(x, x.k.matches('^a+$'))",
            "messageExpression": "'no ' + self.a",
            "fieldPath": ".a",
        },
    ],
}
COLUMNS: Final = [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]


def definitions(chance: Chance) -> Asked:
    """Definitions of custom kinds: schemas, rules, names, columns."""
    made: Any = json.loads(json.dumps(BARS))
    version = made["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"spec": SCHEMA}}
    version["additionalPrinterColumns"] = COLUMNS
    version["subresources"] = {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.d",
            "statusReplicasPath": ".status.r",
            "labelSelectorPath": ".status.s",
        },
    }
    within = chance.one(made, version, version["schema"]["openAPIV3Schema"], SCHEMA)
    bent = chance.bent(within)
    if within is SCHEMA:
        version["schema"]["openAPIV3Schema"]["properties"]["spec"] = bent
    elif within is made:
        made = bent
    elif within is version:
        made["spec"]["versions"][0] = bent
    else:
        version["schema"]["openAPIV3Schema"] = bent
    return Asked("POST", f"{DEFINITIONS}?dryRun=All", chance.json(made), {"Content-Type": JSON})


def rules(chance: Chance) -> Asked:
    """Rules in CEL, compiled, costed, and tried on the default of their schema."""
    made = definition("bazs", "Baz", **expressions.schema(chance))
    return Asked("POST", f"{DEFINITIONS}?dryRun=All", json.dumps(made).encode(), {"Content-Type": JSON})


def policies(chance: Chance) -> Asked:
    """The same in a policy."""
    matched = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["configmaps"],
    }
    conditions = ("matchConditions", "variables", "validations", "auditAnnotations")
    made: dict[str, Any] = {
        "matchConstraints": {"resourceRules": [matched]},
        "validations": [{"expression": "true"}],
    }
    match chance.choice(conditions):
        case "matchConditions":
            made["matchConditions"] = [{"name": "c", "expression": _of_object(chance)}]
        case "variables":
            made["variables"] = [{"name": "v", "expression": _of_object(chance, chance.one("s", "l", "i"))}]
            made["validations"] = [{"expression": "variables.v == variables.v"}]
        case "validations":
            said = _of_object(chance, "s")
            made["validations"] = [{"expression": _of_object(chance), "messageExpression": said}]
        case _:
            made["auditAnnotations"] = [{"key": "k", "valueExpression": _of_object(chance, "s")}]
    target = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All"
    body = json.dumps({"metadata": {"name": "a"}, "spec": made}).encode()
    return Asked("POST", target, body, {"Content-Type": JSON})


def _of_object(chance: Chance, kind: str = "b") -> str:
    roots = ("object.data", "oldObject.data", "object.metadata", "request.object.data")
    return expressions.rule(chance, kind).replace("self", chance.choice(roots))


def customs(chance: Chance) -> Asked:
    """Objects of custom kinds, one with a schema and one that takes anything."""
    collection = chance.one(FOOS, FOOS.replace("foos", "bars"))
    kind = "Foo" if collection == FOOS else "Bar"
    made = {
        "apiVersion": "example.com/v1",
        "kind": kind,
        "metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["a.b/c"]},
        "spec": {"a": "a", "b": [1], "c": "5", "d": {"x": "y"}},
    }
    obj = chance.bent(chance.bent(made))
    if chance.often(0.5):
        return Asked(
            "POST", f"{collection}?dryRun=All&{_options(chance)}", chance.json(obj), {"Content-Type": JSON}
        )
    media = chance.one(MERGE, APPLY)
    return Asked(
        "PATCH", f"{collection}/a?{_kept(chance)}fieldManager=m", chance.json(obj), {"Content-Type": media}
    )


TENANT: Final = "tenant"  # who has all in its namespace that can be given there, and is judged by rules
_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"


def lengths(chance: Chance) -> Asked:
    """Lists as long as a body allows, where they are compared, multiplied, sorted or put into words."""
    names = [
        f"x{number}" for number in range(30_000 if chance.often(0.05) else chance.one(1, 30, 300, 3_000))
    ]
    kind: Kind = chance.choice(CORPUS)
    match chance.randrange(5):
        case 0:
            few = names[: chance.one(1, 300, 3_000)]
            rule = {"verbs": few, "apiGroups": few, "resources": few}
            rule |= {"resourceNames": few} if chance.often(0.5) else {}
            made = {"metadata": {"name": "a"}, "rules": [rule] * chance.one(1, 1, 3)}
            return Asked("POST", f"{_ROLES}?dryRun=All", json.dumps(made).encode(), {"Content-Type": JSON})
        case 1:
            metadata: dict[str, Any] = {"finalizers": [f"a.b/{name}" for name in names]}
        case 2:
            word = chance.one("$setElementOrder", "$deleteFromPrimitiveList")
            metadata = {f"{word}/finalizers": names[::-1], "finalizers": names[::-1]}
        case 3:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "a"}
            metadata = {"ownerReferences": [{**owner, "uid": name} for name in names]}
        case _:
            metadata = {"labels": dict.fromkeys(names, "a"), "annotations": {"a": "1" * len(names)}}
    if chance.often(0.5):
        body = json.dumps({"metadata": metadata}).encode()
        media = chance.one(STRATEGIC, MERGE, APPLY)
        return Asked("PATCH", f"{kind.path}?dryRun=All&fieldManager=m", body, {"Content-Type": media})
    obj = {**kind.obj, "metadata": {**kind.obj["metadata"], **metadata}}
    return Asked("POST", f"{kind.collection}?dryRun=All", json.dumps(obj).encode(), {"Content-Type": JSON})


def deletions(chance: Chance) -> Asked:
    kind: Kind = chance.choice(CORPUS)
    body = chance.json(chance.bent(OPTIONS))
    media = chance.one(JSON, YAML, PROTOBUF)
    target = chance.one(kind.path, kind.path, kind.collection)
    return Asked("DELETE", f"{target}?dryRun=All&{_options(chance)}", body, {"Content-Type": media})


_RESOURCE: Final = {
    "verb": "get",
    "resource": "pods",
    "namespace": "a",
    "group": "*",
    "name": "x",
    "fieldSelector": {"rawSelector": "a=b"},
    "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
}
_SUBJECT: Final = {"user": "a", "groups": ["b"], "extra": {"c": ["d"]}, "resourceAttributes": _RESOURCE}
REVIEWS: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("authorization.k8s.io", "subjectaccessreviews", _SUBJECT),
    ("authorization.k8s.io", "selfsubjectaccessreviews", {"nonResourceAttributes": {"path": "/x"}}),
    ("authorization.k8s.io", "selfsubjectrulesreviews", {"namespace": "default"}),
    ("authentication.k8s.io", "tokenreviews", {"token": "a.b.c", "audiences": ["x"]}),
    ("authentication.k8s.io", "selfsubjectreviews", {}),
)
_CLAIMS: Final = {
    "aud": ["https://kubernetes.default.svc"],
    "exp": 4102444800,
    "iat": 1,
    "nbf": 1,
    "iss": "https://kubernetes.default.svc",
    "sub": "system:serviceaccount:default:a",
    "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "a", "uid": "u"}},
}


def credentials(chance: Chance) -> Asked:
    """Tokens of every shape, whom to be taken for, and reviews of both."""
    group, plural, spec = chance.choice(REVIEWS)
    if plural == "tokenreviews" and chance.often(0.8):
        spec = {"token": _jwt(chance), "audiences": [chance.text(1)]}
    body = chance.json(chance.bent({"kind": "", "apiVersion": "", "metadata": {}, "spec": spec}))
    headers = {"Content-Type": JSON}
    match chance.randrange(4):
        case 0:
            headers["Authorization"] = f"{chance.one('Bearer', 'bearer', 'Basic', '')} {_jwt(chance)}"
        case 1:
            for name in ("User", "Group", "Uid", "Extra-a%2fb", "Extra-", "x"):
                if chance.often(0.5):
                    headers[f"Impersonate-{name}"] = _line(chance.text(3))
    headers = {name: _line(value) for name, value in headers.items()}
    return Asked("POST", f"/apis/{group}/v1/{plural}", body, headers)


def _line(text: str) -> str:
    return "".join(each for each in text if each.isprintable()).encode("ascii", "replace").decode()


def _jwt(chance: Chance) -> str:
    def part(value: Any) -> str:
        made = chance.json(chance.bent(value) if chance.often(0.5) else value)
        return base64.urlsafe_b64encode(made).rstrip(b"=" if chance.often(0.9) else b"").decode()

    head = {"alg": chance.one("ES256", "none", "HS256", None), "kid": chance.text(1), "typ": "JWT"}
    parts = [part(head), part(_CLAIMS), part({}) if chance.often(0.5) else "A" * 86]
    return ".".join(parts[: chance.one(3, 3, 3, 2, 1)] + ["x"] * chance.one(0, 0, 1))


FORMATS: Final = (
    *("bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "duration", "email", "hexcolor"),
    *("hostname", "ipv4", "ipv6", "isbn", "k8s-long-name", "k8s-short-name", "mac", "rgbcolor", "ssn"),
    *("uri", "uuid", "uuid4"),
)
PATTERNS: Final = (
    *("^([a-z0-9]{1,63}[.]?){1,10}$", "^(a|aa)+$", "(x+x+)+y", "^(a?){50}a{50}$", ".*.*.*=$"),
    *("((a?b?){30}){30}c", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "\\pL{1,90}!", "^(\\s*a?)*$"),
)


def hostile_text(chance: Chance) -> str:
    """A few characters repeated very often, and a tail that fails: what makes backtracking slow."""
    pump = chance.one(
        "0", "a", " ", "1.", "a.", "a-", "x", "ab", "\\", '"', "<", "@", ":", "%", "é", "0m", "1h"
    )
    count = chance.one(30, 120, 1_200, 5_000, 20_000)
    return chance.one("", "", "a", "0", "1.") + pump * count + chance.one("", "x", "!", "\0", "@a")


def hostile(chance: Chance) -> Asked:
    """Values that are slow to match, wherever something is matched."""
    text = hostile_text(chance)
    match chance.randrange(6):
        case 0:
            resources = {chance.one("limits", "requests"): {chance.one("cpu", "memory", text): text}}
            container = {"name": "c", "image": "i", "resources": resources}
            body: Any = {"metadata": {"name": "a"}, "spec": {"containers": [container]}}
            target = "/api/v1/namespaces/default/pods"
        case 1:
            other = {"name": chance.one("c", text), "image": text, "env": [{"name": text, "value": "x"}]}
            body = {"metadata": {"name": "a"}, "spec": {"containers": [other]}}
            target = "/api/v1/namespaces/default/pods"
        case 2:
            place = chance.one("name", "generateName", "labels", "annotations", "finalizers")
            value: Any = {"labels": {text: text}, "annotations": {text: text}, "finalizers": [text]}.get(
                place, text
            )
            body, target = {"metadata": {"name": "a", place: value}}, MAPS
        case 3:
            parameter = chance.one("labelSelector", "fieldSelector", "resourceVersion", "limit")
            return Asked("GET", f"{MAPS}?{parameter}={quote(text[:6_000])}")
        case _:
            word = (
                {"format": chance.choice(FORMATS)}
                if chance.often(0.5)
                else {"pattern": chance.choice(PATTERNS)}
            )
            schema: dict[str, Any] = {
                "type": "object",
                "properties": {"a": {"type": "string", **word, "default": text}},
            }
            body, target = definition("bazs", "Baz", **schema), DEFINITIONS
    return Asked("POST", f"{target}?dryRun=All", chance.json(body), {"Content-Type": JSON})


TARGETS: Final[dict[str, Target]] = {
    "objects": objects,
    "patches": patches,
    "queries": queries,
    "definitions": definitions,
    "rules": rules,
    "policies": policies,
    "customs": customs,
    "lengths": lengths,
    "deletions": deletions,
    "credentials": credentials,
    "hostile": hostile,
}

# ── Bytes of a connection ───────────────────────────────────────────────────────────────────────────


def connection(chance: Chance, token: str) -> bytes:
    """What one client sends: a few requests at once, torn somewhere."""
    sent = b"".join(_request(chance, token) for _ in range(chance.randint(1, 5)))
    return chance.torn(sent) if chance.often(0.7) else sent


def _request(chance: Chance, token: str) -> bytes:
    body = chance.json(chance.value())
    fields = ["Host: 127.0.0.1"]
    if chance.often(0.8):
        fields.append(f"Authorization: Bearer {token}")
    sent = b""
    match chance.randrange(6):
        case 0 | 1:
            fields.append(f"Content-Length: {len(body) + chance.one(0, 0, 0, 0, 1, -1, 10**9)}")
            sent = body
        case 2 | 3:
            fields.append(
                chance.one("Transfer-Encoding: chunked", "Transfer-Encoding: Chunked", "TE: chunked")
            )
            sent = _chunks(chance, body)
        case 4:
            fields += ["Connection: upgrade", f"Upgrade: {chance.one('websocket', 'h2c', 'x')}"]
    more = (
        *(
            "Expect: 100-continue",
            "Connection: close",
            "Content-Encoding: gzip",
            "Content-Type: application/json",
        ),
        *(
            "Transfer-Encoding: identity",
            "Content-Length: 0",
            "X: " + "y" * 9_000,
            " folded: x",
            "Trailer: X",
        ),
    )
    fields += [chance.choice(more) for _ in range(chance.one(0, 0, 1, 3))]
    method = chance.one("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "PRI", "X")
    target = chance.one(
        "/healthz", "/api/v1/namespaces", MAPS, f"{MAPS}?limit=1", "*", "http://x/", "/%zz", ""
    )
    if method in ("POST", "PUT", "PATCH", "DELETE"):
        target = f"{MAPS}?dryRun=All"
    version = chance.one(*["HTTP/1.1"] * 8, "HTTP/1.0", "HTTP/2.0", "")
    head = "\r\n".join([f"{method} {target} {version}", *fields, "", ""])
    return head.encode() + sent


def _chunks(chance: Chance, body: bytes) -> bytes:
    made, at = b"", 0
    while at < len(body):
        size = chance.randint(1, 40)
        piece = body[at : at + size]
        at += size
        made += b"%x%b\r\n%b\r\n" % (len(piece), chance.one(b"", b"", b";x=y"), piece)
    return made + chance.one(b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"")


def pieces(chance: Chance) -> None:
    """Where requests end does not depend on how their bytes come in."""
    sent = connection(chance, "t")
    found = []
    for size in (len(sent) or 1, 1, chance.randint(2, 50)):
        arriving = Arriving(3 * 2**20, most_body=lambda _: 10_000)
        whole = [each for at in range(0, len(sent), size) for each in arriving.feed(sent[at : at + size])]
        told = [(one.request.method, one.request.target, one.request.body, one.is_too_long) for one in whole]
        found.append((told, bool(arriving.broken)))
    assert found[0] == found[1] == found[2], sent


# ── A kubeconfig ────────────────────────────────────────────────────────────────────────────────────

_CLUSTER: Final = {
    "server": "https://127.0.0.1:1",
    "certificate-authority-data": "QQ==",
    "tls-server-name": "x",
    "proxy-url": "http://p",
    "insecure-skip-tls-verify": False,
}
_PLUGIN: Final = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "x",
    "args": ["y"],
    "env": [{"name": "n", "value": "hunter2"}],
    "interactiveMode": "Never",
}
_USER: Final = {
    "token": "hunter2",
    "client-certificate-data": "QQ==",
    "username": "u",
    "password": "hunter2",
    "as": "x",
    "as-groups": ["g"],
    "exec": _PLUGIN,
}
_KUBECONFIG: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "clusters": [{"name": "a", "cluster": _CLUSTER}],
    "users": [{"name": "a", "user": _USER}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a", "namespace": "n"}}],
}


def paths(chance: Chance) -> None:
    """Paths near those of some resource: what is authorized is what is served."""
    one = chance.choice(test_routing.ALL)
    path = ["apis", one.group, one.version] if one.group else ["api", one.version]
    path += chance.one([], [], ["watch"], ["proxy"], ["namespaces", "n"], ["namespaces", "n"])
    path += [one.plural, *chance.one([], ["a"], ["a", "status"])]
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(path) + 1)
        path[at : at + chance.randrange(2)] = [chance.choice(test_routing.SEGMENTS)]
    target = f"/{'/'.join(path)}{chance.one('', '', '/', '//')}{chance.choice(test_routing.QUERIES)}"
    test_routing.check_request(chance.choice(test_routing.METHODS), target)


def kubeconfigs(chance: Chance) -> None:
    """A kubeconfig is read, or refused in words that show no secret."""
    is_bent = chance.often(0.7)  # then a secret may stand where none is expected
    text = dump(chance.bent(_KUBECONFIG) if is_bent else _KUBECONFIG).encode("utf-8", "surrogatepass")
    if not is_bent or chance.often(0.4):
        text = chance.torn(text)
    try:
        shown = repr(Config.from_kubeconfig(text))
    except ConfigError as error:
        shown = str(error)
    assert is_bent or "hunter2" not in shown, shown


def many(chance: Chance, count: int) -> Iterator[tuple[str, Asked]]:
    """Requests of every target in turn."""
    for number in range(count):
        name = [*TARGETS][number % len(TARGETS)]
        asked = TARGETS[name](chance)
        user = chance.one("", "", "", "", "", TENANT, TENANT, "nobody")
        yield name, asked._replace(headers={**asked.headers, **({"Impersonate-User": user} if user else {})})
