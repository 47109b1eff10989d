"""A webhook server for both servers to ask: over TLS, in this process, on a thread of its own.

What it answers is in the path that it is asked at: ``/allow``, ``/deny`` and so on are in ``ANSWERS``.  It
remembers what it was asked, by path, so that a script can compare that too (``Step("ASKED", "/allow")``).
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from setpoint.net.tls import Authority

Json: TypeAlias = Any
SERVICE: Final = "hooks"  # the Service, in any namespace, that leads here


class Said(NamedTuple):
    status: int
    body: bytes
    content_type: str = "application/json"


Answerer: TypeAlias = Callable[[Json], Said]


def _review(review: Json, response: Json, **more: Json) -> Said:
    said = {"apiVersion": review["apiVersion"], "kind": review["kind"], **more}
    return Said(200, json.dumps({**said, "response": {"uid": review["request"]["uid"], **response}}).encode())


def _allowed(**response: Json) -> Answerer:
    return lambda review: _review(review, {"allowed": True, **response})


def _denied(**status: Json) -> Answerer:
    return lambda review: _review(review, {"allowed": False, **({"status": status} if status else {})})


def _patched_by(patch: Json, **more: Json) -> Answerer:
    written = base64.b64encode(json.dumps(patch).encode()).decode()
    return _allowed(**{"patchType": "JSONPatch", "patch": written, **more})


def _patched(*operations: Json, **more: Json) -> Answerer:
    return _patched_by(list(operations), **more)


def _counted(review: Json) -> Said:
    """One more in a label each time that it is asked."""
    labels = review["request"]["object"]["metadata"].get("labels") or {}
    count = str(int(labels.get("count", "0")) + 1)
    operation = {"op": "add", "path": "/metadata/labels", "value": {**labels, "count": count}}
    return _patched(operation)(review)


def _add(path: str, value: Json) -> Json:
    return {"op": "add", "path": path, "value": value}


_THEN: Final = "2000-01-01T00:00:00Z"


def _owner(**more: Json) -> Json:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "time": _THEN}
    return [{**entry, "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}, **more}]


# What a webhook may do to metadata, and to what an object is.
METADATA: Final[dict[str, list[Json]]] = {
    "none": [{"op": "remove", "path": "/metadata"}],
    "null": [_add("/metadata", None)],
    "text": [_add("/metadata", "x")],
    "no-name": [{"op": "remove", "path": "/metadata/name"}],
    "empty-name": [_add("/metadata/name", "")],
    "bad-name": [_add("/metadata/name", "A B")],
    "number-name": [_add("/metadata/name", 1)],
    "generated": [{"op": "remove", "path": "/metadata/name"}, _add("/metadata/generateName", "g-")],
    "no-namespace": [{"op": "remove", "path": "/metadata/namespace"}],
    "other-namespace": [_add("/metadata/namespace", "elsewhere")],
    "uid": [_add("/metadata/uid", "u")],
    "no-uid": [_add("/metadata/uid", "")],
    "creation": [_add("/metadata/creationTimestamp", _THEN)],
    "no-creation": [_add("/metadata/creationTimestamp", None)],
    "bad-creation": [_add("/metadata/creationTimestamp", "x")],
    "version": [_add("/metadata/resourceVersion", "5")],
    "no-version": [_add("/metadata/resourceVersion", "")],
    "zero-version": [_add("/metadata/resourceVersion", "0")],
    "bad-version": [_add("/metadata/resourceVersion", "x")],
    "generation": [_add("/metadata/generation", 7)],
    "bad-generation": [_add("/metadata/generation", "x")],
    "deletion": [_add("/metadata/deletionTimestamp", _THEN)],
    "grace": [_add("/metadata/deletionGracePeriodSeconds", 5)],
    "link": [_add("/metadata/selfLink", "/x")],
    "no-owners": [{"op": "remove", "path": "/metadata/managedFields"}],
    "empty-owners": [_add("/metadata/managedFields", [])],
    "null-owners": [_add("/metadata/managedFields", None)],
    "text-owners": [_add("/metadata/managedFields", "x")],
    "an-owner": [_add("/metadata/managedFields", _owner())],
    "bad-operation": [_add("/metadata/managedFields", _owner(operation="x"))],
    "bad-version-owner": [_add("/metadata/managedFields", _owner(apiVersion=""))],
    "no-fields-type": [_add("/metadata/managedFields", _owner(fieldsType=""))],
    "bad-fields-type": [_add("/metadata/managedFields", _owner(fieldsType="x"))],
    "labels": [_add("/metadata/labels", {"a": "b"})],
    "number-label": [_add("/metadata/labels", {"a": 1})],
    "null-label": [_add("/metadata/labels", {"a": None})],
    "no-labels": [_add("/metadata/labels", None)],
    "references": [_add("/metadata/ownerReferences", [{"uid": "a"}])],
    "doubled-references": [
        _add("/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "a"}] * 2)
    ],
    "finalizer": [_add("/metadata/finalizers", ["not one"])],
    "unknown": [_add("/metadata/unknown", "x")],
    "kind": [_add("/kind", "Secret")],
    "odd-kind": [_add("/kind", "Odd")],
    "no-kind": [{"op": "remove", "path": "/kind"}],
    "number-kind": [_add("/kind", 1)],
    "api-version": [_add("/apiVersion", "v2")],
    "no-api-version": [{"op": "remove", "path": "/apiVersion"}],
    "all": [{"op": "replace", "path": "", "value": {"data": {"a": "b"}}}],
    "a-list": [{"op": "replace", "path": "", "value": []}],
    "a-text": [{"op": "replace", "path": "", "value": "x"}],
    "added": [_add("", {"data": {}})],
}
# Patches that are none, or cannot be performed.
OPERATIONS: Final[dict[str, Json]] = {
    "text": "x",
    "number": [1],
    "null": [None],
    "nothing": [{}],
    "no-path": [{"op": "add", "value": 1}],
    "number-path": [{"op": "add", "path": 1, "value": 1}],
    "no-path-removed": [{"op": "remove"}],
    "no-path-replaced": [{"op": "replace", "value": 1}],
    "no-path-tested": [{"op": "test", "value": 1}],
    "number-op": [{"op": 1, "path": "/data"}],
    "no-from": [{"op": "move", "path": "/data"}],
    "number-from": [{"op": "copy", "path": "/data", "from": 1}],
    "absent-from": [{"op": "move", "path": "/data", "from": "/absent"}],
    "no-value": [{"op": "add", "path": "/data"}],
    "absent-holder": [_add("/absent/a", "b")],
    "absent-replaced": [{"op": "replace", "path": "/absent", "value": "x"}],
    "below-text": [_add("/metadata/name/a", "b")],
    "no-slash": [_add("data", {})],
    "deep": [_add("/data", {"a": json.loads("[" * 300 + "]" * 300)})],
}


def _converted(review: Json) -> Said:
    """Between v1 with ``spec.size`` and v2 with ``spec.width``."""
    request = review["request"]
    wanted, made = request["desiredAPIVersion"], []
    for obj in request["objects"]:
        spec = dict(obj.get("spec") or {})
        old, new = ("width", "size") if wanted.endswith("/v1") else ("size", "width")
        if old in spec:
            spec[new] = spec.pop(old)
        made.append({**obj, "apiVersion": wanted, "spec": spec})
    return _conversion(review, {"convertedObjects": made, "result": {"status": "Success"}})


def _conversion(review: Json, response: Json) -> Said:
    said = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
    return Said(200, json.dumps({**said, "response": {"uid": review["request"]["uid"], **response}}).encode())


def _one_way(review: Json) -> Said:
    """Only into v1."""
    if review["request"]["desiredAPIVersion"].endswith("/v1"):
        return _converted(review)
    return _conversion(review, {"result": {"status": "Failed", "message": "there is no way back"}})


def _with_metadata(change: Callable[[Json], Json]) -> Answerer:
    """Converted, each with what is made of its metadata."""

    def answer(review: Json) -> Said:
        said = json.loads(_converted(review).body)
        for obj in said["response"]["convertedObjects"]:
            obj["metadata"] = change(obj["metadata"])
        return Said(200, json.dumps(said).encode())

    return answer


def _changed_name(review: Json) -> Said:
    answer = json.loads(_converted(review).body)
    for obj in answer["response"]["convertedObjects"]:
        obj["metadata"]["name"] = "other"
    return Said(200, json.dumps(answer).encode())


def _labelled(review: Json) -> Said:
    answer = json.loads(_converted(review).body)
    for obj in answer["response"]["convertedObjects"]:
        obj["metadata"] = {**obj["metadata"], "labels": {"by": "webhook"}, "annotations": {"seen": "yes"}}
        obj["metadata"]["finalizers"] = ["example.com/none"]
    return Said(200, json.dumps(answer).encode())


def _slow(review: Json) -> Said:
    time.sleep(2)
    return _allowed()(review)


ANSWERS: Final[dict[str, Answerer]] = {
    "/": _allowed(),
    "/allow": _allowed(),
    "/allow/again": _allowed(),
    "/audit": _allowed(auditAnnotations={"who": "me"}, warnings=["careful", 'very "careful"']),
    "/deny": _denied(
        code=418,
        reason="Nope",
        message="no way",
        details={"causes": [{"reason": "X", "message": "m", "field": "f"}], "name": "n"},
    ),
    "/deny/other": _denied(message="the other one"),
    "/deny/reason": _denied(reason="Because"),
    "/deny/plain": _denied(),
    "/deny/success": _denied(code=200, status="Success", message="all well"),
    "/deny/warning": lambda review: _review(
        review, {"allowed": False, "status": {"message": "no"}, "warnings": ["told you"]}
    ),
    "/error": lambda _: Said(500, b"boom", "text/plain"),
    "/error/json": lambda _: Said(500, b'{"a":1}'),
    "/error/status": lambda _: Said(
        403, b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"go away","code":403}'
    ),
    "/missing": lambda _: Said(404, b"nothing here", "text/plain"),
    "/teapot": lambda _: Said(418, b"tea", "text/plain"),
    "/unavailable": lambda _: Said(503, b"later", "text/plain"),
    "/empty": lambda _: Said(200, b""),
    "/garbage": lambda _: Said(200, b"hello"),
    "/null": lambda _: Said(200, b"null"),
    "/list": lambda _: Said(200, b"[]"),
    "/nothing": lambda _: Said(200, b"{}"),
    "/bad/kind": lambda review: _review({**review, "kind": "Review"}, {"allowed": True}),
    "/bad/version": lambda review: _review(
        {**review, "apiVersion": "admission.k8s.io/v1beta1"}, {"allowed": True}
    ),
    "/bad/uid": lambda review: _review({**review, "request": {"uid": "zz"}}, {"allowed": True}),
    "/bad/response": lambda review: Said(
        200, json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"]}).encode()
    ),
    "/bad/types": lambda review: _review(review, {"allowed": "yes"}),
    "/bad/types/code": _denied(code="418", message="no"),
    "/bad/types/code/large": _denied(code=2**31),
    "/bad/types/code/broken": _denied(code=1.5),
    "/bad/types/message": _denied(message=1),
    "/bad/types/reason": _denied(reason=["a"]),
    "/bad/types/status": _allowed(status="Failure"),
    "/bad/types/status/status": _denied(status=True),
    "/bad/types/details": _denied(details="x"),
    "/bad/types/details/name": _denied(details={"name": 1}),
    "/bad/types/details/retry": _denied(details={"retryAfterSeconds": "x"}),
    "/bad/types/causes": _denied(details={"causes": "x"}),
    "/bad/types/cause": _denied(details={"causes": ["x"]}),
    "/bad/types/cause/field": _denied(details={"causes": [{"field": 1}]}),
    "/bad/types/metadata": _denied(metadata="x"),
    "/bad/types/metadata/continue": _denied(metadata={"continue": 1}),
    "/bad/types/warnings": _allowed(warnings="careful"),
    "/bad/types/warning": _allowed(warnings=["careful", 1]),
    "/bad/types/warning/null": _allowed(warnings=[None, "careful"]),
    "/bad/types/warning/control": _allowed(warnings=["care\nful", "\x00", "a" * 300]),
    "/bad/types/audit": _allowed(auditAnnotations={"who": 1}),
    "/bad/types/patch": _allowed(patch="?"),
    "/bad/types/patch/type": _allowed(patchType=1),
    "/bad/types/uid": lambda review: _review({**review, "request": {"uid": 1}}, {"allowed": True}),
    "/bad/types/request": lambda review: _review(review, {"allowed": True}, request="x"),
    "/deny/unknown": _denied(code=403, message="no", other=1, details={"other": 1, "kind": "k", "uid": "u"}),
    "/deny/code": _denied(code=999, message="no"),
    "/deny/status": _denied(code=403, message="no", kind="Odd", apiVersion="odd/v1"),
    "/error/long": lambda _: Said(500, b"x" * 2000 + b" \xc3\xa9" * 2000, "text/plain"),
    "/error/long/forbidden": lambda _: Said(403, b"y" * 5000, "text/plain"),
    "/error/long/status": lambda _: Said(
        403,
        b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"' + b"z" * 5000 + b'"}',
    ),
    "/bad/patch": _allowed(patchType="JSONPatch", patch=base64.b64encode(b"nonsense").decode()),
    "/bad/patch/path": _patched({"op": "remove", "path": "/data/absent"}),
    "/bad/patch/test": _patched({"op": "test", "path": "/metadata/name", "value": "other"}),
    "/bad/patch/op": _patched({"op": "shout", "path": "/metadata/name", "value": "other"}),
    "/bad/patch/type": _patched(_add("/data", {"a": 1})),
    "/bad/patch/kind": _patched(_add("/data", {"a": "b"}), patchType="MergePatch"),
    "/bad/patch/untyped": lambda review: _review(
        review, {"allowed": True, "patch": base64.b64encode(b"[]").decode()}
    ),
    "/bad/patch/unpatched": _allowed(patchType="JSONPatch"),
    "/bad/patch/nameless": _patched(_add("/metadata/name", "other")),
    "/patch/none": _patched(),
    "/patch/data": _patched(_add("/data", {"patched": "yes"})),
    "/patch/more": _patched(_add("/data/more", "still")),
    "/patch/unknown": _patched(_add("/unknown", {"a": "b"})),
    "/patch/labels": _patched(_add("/metadata/labels", {"patched": "yes"})),
    "/patch/count": _counted,
    "/patch/pod": _patched(
        _add("/spec/containers/-", {"name": "side", "image": "side"}),
        _add("/metadata/annotations", {"side": "car"}),
    ),
    "/patch/priority/absent": _patched(_add("/spec/priorityClassName", "absent")),
    "/patch/priority/system": _patched(_add("/spec/priorityClassName", "system-node-critical")),
    "/patch/priority/whole": _patched(
        _add("/spec/priorityClassName", "system-node-critical"), _add("/spec/priority", 2000001000)
    ),
    "/patch/runtime/absent": _patched(_add("/spec/runtimeClassName", "absent")),
    "/patch/tolerations": _patched(_add("/spec/tolerations", [])),
    "/patch/finalizers": _patched({"op": "remove", "path": "/metadata/finalizers"}),
    "/patch/target": _patched({"op": "replace", "path": "/target/name", "value": "elsewhere"}),
    "/patch/replicas": _patched({"op": "replace", "path": "/spec/replicas", "value": 3}),
    "/patch/replicas/text": _patched({"op": "replace", "path": "/spec/replicas", "value": "many"}),
    "/patch/replicas/negative": _patched({"op": "replace", "path": "/spec/replicas", "value": -1}),
    "/patch/audiences": _patched(_add("/spec/audiences", ["b"])),
    "/patch/spec": _patched({"op": "remove", "path": "/spec"}),
    "/patch/size": _patched(_add("/spec/size", 5)),
    "/patch/container": _patched(_add("/container", "other")),
    "/patch/ports/text": _patched(_add("/ports", ["x"])),
    "/patch/invalid": _patched(_add("/metadata/labels", {"not a label": "!"})),
    **{f"/metadata/{name}": _patched(*operations) for name, operations in METADATA.items()},
    **{f"/operations/{name}": _patched_by(operations) for name, operations in OPERATIONS.items()},
    "/slow": _slow,
    "/convert": _converted,
    "/convert/one-way": _one_way,
    "/convert/types/text": lambda review: _conversion(
        review, {"convertedObjects": ["x"], "result": {"status": "Success"}}
    ),
    "/convert/types/number": lambda review: _conversion(
        review, {"convertedObjects": [1], "result": {"status": "Success"}}
    ),
    "/convert/types/null": lambda review: _conversion(
        review, {"convertedObjects": [None], "result": {"status": "Success"}}
    ),
    "/convert/types/empty": lambda review: _conversion(
        review, {"convertedObjects": [{}], "result": {"status": "Success"}}
    ),
    "/convert/types/objects": lambda review: _conversion(
        review, {"convertedObjects": {}, "result": {"status": "Success"}}
    ),
    "/convert/types/metadata": _with_metadata(lambda _: "x"),
    "/convert/types/labels": _with_metadata(lambda metadata: {**metadata, "labels": "x"}),
    "/convert/types/label": _with_metadata(lambda metadata: {**metadata, "labels": {"a": 1}}),
    "/convert/types/annotation": _with_metadata(lambda metadata: {**metadata, "annotations": {"a": None}}),
    "/convert/types/result": lambda review: _conversion(review, {"result": "Success"}),
    "/convert/types/status": lambda review: _conversion(review, {"result": {"status": 1}}),
    "/convert/types/message": lambda review: _conversion(
        review, {"result": {"status": "Failed", "message": 1}}
    ),
    "/convert/failed": lambda review: _conversion(
        review, {"convertedObjects": [], "result": {"status": "Failed", "message": "cannot do it"}}
    ),
    "/convert/unsaid": lambda review: _conversion(review, {"result": {"status": "Failed"}}),
    "/convert/few": lambda review: _conversion(
        review, {"convertedObjects": [], "result": {"status": "Success"}}
    ),
    "/convert/same": lambda review: _conversion(
        review, {"convertedObjects": review["request"]["objects"], "result": {"status": "Success"}}
    ),
    "/convert/name": _changed_name,
    "/convert/labels": _labelled,
    "/convert/uid": lambda review: _conversion({**review, "request": {"uid": "zz"}}, {"result": {}}),
    "/convert/nothing": lambda review: Said(
        200, json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"]}).encode()
    ),
    "/convert/error": lambda _: Said(500, b"boom", "text/plain"),
}  # fmt: skip


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Who does not trust us, or does not wait, breaks off; the tests say what they saw."""


class Webhooks:
    """A server; ``url`` is where, ``ca`` the authority as a configuration has it."""

    def __init__(self) -> None:
        authority = Authority.create("webhooks")
        hosts = ["127.0.0.1", f"{SERVICE}.default.svc"]
        identity = authority.issue("webhooks", hosts=hosts, server=True)
        self.ca = base64.b64encode(authority.certificate_pem).decode()
        self.other_ca = base64.b64encode(Authority.create("other").certificate_pem).decode()
        self._asked: dict[str, list[Json]] = {}
        self._lock = threading.Lock()
        server = _Server(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "webhooks.pem"
            file.write_bytes(identity.key_pem + identity.certificate_pem)
            context.load_cert_chain(file)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.address = f"127.0.0.1:{server.server_address[1]}"
        self.url = f"https://{self.address}"
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def asked(self, path: str, namespace: str) -> list[Json]:
        """What it was asked at a path about a namespace, oldest first; it forgets what it tells."""
        with self._lock:
            found = self._asked.get(path, [])
            told = [one for one in found if _namespace(one) == namespace]
            self._asked[path] = [one for one in found if _namespace(one) != namespace]
            return told

    def forget(self) -> None:
        """Drop what no script has compared: another run begins without it."""
        with self._lock:
            self._asked.clear()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        remember = self._remember

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path, _, query = self.path.partition("?")
                names = ("Host", "User-Agent", "Accept", "Content-Type", "Accept-Encoding")
                headers = {name: self.headers.get(name, "") for name in names}
                remember(path, {"query": query, "headers": headers, "body": review})
                said = ANSWERS.get(path, lambda _: Said(404, b"", "text/plain"))(review)
                self.send_response(said.status)
                self.send_header("Content-Type", said.content_type)
                self.send_header("Content-Length", str(len(said.body)))
                self.end_headers()
                self.wfile.write(said.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """The tests say what they saw."""

        return Handler

    def _remember(self, path: str, asked: Json) -> None:
        request = asked["body"].get("request") or {}
        labels = ((request.get("object") or {}).get("metadata") or {}).get("labels") or {}
        if "probe" in labels:
            return  # only a look whether the webhook is asked at all
        with self._lock:
            self._asked.setdefault(path, []).append(asked)


def _namespace(asked: Json) -> str:
    request = asked["body"]["request"]
    if "objects" in request:
        return str((request["objects"][0]["metadata"]).get("namespace", ""))
    return str(request.get("namespace", ""))


@cache
def webhooks() -> Webhooks:
    """The one of this process, started when it is first asked for."""
    return Webhooks()
