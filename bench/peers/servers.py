"""The servers contestants work against: the real kube-apiserver with etcd, and the recorded one.

The real one is loaded behind its back, straight into etcd, a hundred objects at a time: twenty thousand in
seconds, and the same for every contestant to the byte.  Both say, for the verification, what a contestant
must have found: how many objects, the sum of their versions, the sum of their first ports.

Contestants are a user of their own to the real one, an administrator as we are; its audit log has that user's
requests, every one, and nobody else's.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.peers import objects
from bench.peers.process import line
from setpoint.testing.kube import ControlPlane

_AT_ONCE: Final = 100  # puts in one transaction of etcd
_SERVED: Final = 60.0  # seconds that a new kind, or new objects, may take to be served
_ANSWERED: Final = 60.0  # seconds that one answer may take
_NAMESPACE: Final = "shop"
PART: Final = "shop-part"  # the namespace with as many objects as the slow are given
_LATER: Final = {429, 503, 504}  # what an API server says that has much to take in
_USER: Final = "contestant"
_AUDIT: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [_USER]}, {"level": "None"}],
}
_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
Expected = dict[str, int]


def writes(asked: Counter[str]) -> int:
    """How many of the requests may have changed something."""
    return sum(asked[verb] for verb in _WRITES)


class Recorded:
    """The recorded server, in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], told: dict[str, str], folder: Path) -> None:
        self._process = process
        self.url = told["server"]
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_text(told["authority"])
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(_kubeconfig(self.url, told["authority"].encode())))

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        self._process.stdin.flush()

    def requests(self) -> Counter[str]:
        """What was asked so far, by verb."""
        self.tell("requests")
        return Counter(json.loads(line(self._process, longest=_ANSWERED)))

    def curl(self) -> list[str]:
        return ["--cacert", str(self.ca_file), "-H", "Authorization: Bearer a-token"]


@contextmanager
def recorded(
    count: int,
    events: int = 0,
    *,
    kinds: Sequence[str] = ("Workload",),
    lists: Sequence[str] = ("whole", "stream"),
) -> Iterator[Recorded]:
    """With everything encoded that ``kinds`` and ``lists`` name; the rest, when it is first asked for."""
    asked = json.dumps({"objects": count, "events": events, "kinds": kinds, "lists": lists})
    command = [sys.executable, "-m", "bench.peers.recorded", asked]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process,
    ):
        assert process.stdin is not None
        try:
            yield Recorded(process, json.loads(line(process)), Path(folder))
        finally:
            process.stdin.close()


def expected_of_recording(count: int, events: int = 0) -> Expected:
    last = dict.fromkeys(range(count), 0)
    for number in range(count):
        last[number] = objects.FIRST_VERSION + number
    for each in range(max(0, events - count), events):
        last[each % count] = objects.FIRST_VERSION + count + 1 + each
    return {"count": count, "versions": sum(last.values()), "ports": count * objects.PORT}


def _kubeconfig(url: str, authority: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "bench",
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(authority).decode(),
                },
            }
        ],
        "users": [{"name": "bench", "user": {"token": "a-token"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }


class Real:
    """kube-apiserver and etcd, and what a bench asks of them."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self.url = plane.url
        self.kubeconfig = folder / "kubeconfig"
        user = plane.client_certificate(_USER, ("system:masters",))
        self.kubeconfig.write_text(plane.kubeconfig_for(user))
        self._audited = Audited(folder / "audit.log")
        self._context = ssl.create_default_context(cafile=plane.ca_file)
        self._context.load_cert_chain(plane.admin_certificate, plane.admin_key)
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),  # it is on this machine
            urllib.request.HTTPSHandler(context=self._context),
        )

    def curl(self) -> list[str]:
        plane = self._plane
        files = {"--cacert": plane.ca_file, "--cert": plane.admin_certificate, "--key": plane.admin_key}
        return [str(word) for pair in files.items() for word in pair]

    def ask(self, method: str, path: str, document: dict[str, Any] | None = None) -> Any:
        body = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method=method)
        with self._opener.open(request, timeout=_ANSWERED) as answer:
            return json.loads(answer.read())

    def connection(self) -> http.client.HTTPSConnection:
        """One of one's own, which stays open."""
        where = self.url.removeprefix("https://")
        return http.client.HTTPSConnection(where, context=self._context, timeout=_ANSWERED)

    def define(self, kind: str) -> None:
        """Make the kind known, and wait until it is served."""
        self.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", objects.definition(kind))
        deadline = time.monotonic() + _SERVED
        while True:
            try:
                self.ask("GET", f"/apis/{objects.GROUP}/v1/{kind.lower()}s?limit=1")
            except urllib.error.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def load(self, kind: str, count: int, part: int) -> tuple[Expected, Expected]:
        """So many of them into etcd, a part in a namespace of its own; what it takes to have found them all,
        and that part."""
        for namespace in (_NAMESPACE, PART):
            self._create_namespace(namespace)
        group = "" if kind == "Pod" else f"{objects.GROUP}/"
        prefix = f"/registry/{group}{objects.PLURALS[kind]}"
        for begin in range(0, count, 1000):
            stored = {}
            for number in range(begin, min(begin + 1000, count)):
                namespace = PART if number < part else _NAMESPACE
                stored[f"{prefix}/{namespace}/{objects.name_of(number)}"] = _stored(kind, number, namespace)
            self._put(stored)
        self._wait(lambda: self.expected(kind)["count"], count, f"{kind}s")
        return self.expected(kind), self.expected(kind, PART)

    def _wait(self, found: Callable[[], int], count: int, what: str) -> None:
        """Until the API server has all of them in memory.

        A hundred that came in one transaction have one version: whoever listed while the API server had
        taken in a part of them would never be told of the rest, since a watch begins after that version.
        """
        deadline = time.monotonic() + _SERVED
        have = 0
        while have != count:
            try:
                have = found()
            except urllib.error.HTTPError as refused:
                if refused.code not in _LATER:
                    raise
            if time.monotonic() > deadline:
                raise RuntimeError(f"the API server has {have} of {count} {what}")
            time.sleep(0.2)

    def _create_namespace(self, name: str) -> None:
        try:
            self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        except urllib.error.HTTPError as refused:
            if refused.code != http.client.CONFLICT:  # it is there
                raise

    def _put(self, values: dict[str, bytes]) -> None:
        """Past the API server, which learns of it from etcd as of any write."""
        puts = [
            {"requestPut": {"key": _b64(key.encode()), "value": _b64(value)}} for key, value in values.items()
        ]
        for begin in range(0, len(puts), _AT_ONCE):
            self._etcd("/v3/kv/txn", {"success": puts[begin : begin + _AT_ONCE]})

    def _etcd(self, path: str, document: dict[str, Any]) -> None:
        self._plane._etcd.call(path, document)  # noqa: SLF001 - it has the certificate

    def load_webapps(self, namespace: str, count: int) -> None:
        """A namespace with WebApps that nobody has looked at."""
        self._create_namespace(namespace)
        prefix = f"/registry/{objects.GROUP}/webapps/{namespace}/"
        self._put({f"{prefix}webapp-{n}": objects.webapp(namespace, n) for n in range(count)})
        path = f"/apis/{objects.GROUP}/v1/namespaces/{namespace}/webapps?resourceVersion=0"
        self._wait(lambda: len(self.ask("GET", path)["items"]), count, "WebApps")

    def clear(self, namespace: str) -> None:
        """Nothing of it is left, at once."""
        for resource in (f"{objects.GROUP}/webapps", "configmaps"):
            prefix = f"/registry/{resource}/{namespace}/".encode()
            end = prefix[:-1] + bytes([prefix[-1] + 1])
            self._etcd("/v3/kv/deleterange", {"key": _b64(prefix), "range_end": _b64(end)})

    def expected(self, kind: str, namespace: str = "") -> Expected:
        where = f"namespaces/{namespace}/{objects.PLURALS[kind]}" if namespace else objects.PLURALS[kind]
        items: list[Any] = []
        token = ""
        while True:
            page = self.ask("GET", f"{objects.PATHS[kind]}/{where}?limit=2000&continue={token}")
            items += [int(each["metadata"]["resourceVersion"]) for each in page["items"]]
            token = page["metadata"].get("continue", "")
            if not token:
                break
        return {"count": len(items), "versions": sum(items), "ports": len(items) * objects.PORT}

    def requests(self) -> Counter[str]:
        """What contestants asked so far, by verb, whatever it was for."""
        time.sleep(0.2)  # an answer is logged just after it was given
        return self._audited.verbs()


class Audited:
    """An audit log that grows."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0  # bytes
        self._verbs: dict[str, str] = {}  # by request: one that streams is logged when it begins and ends

    def verbs(self) -> Counter[str]:
        with self._file.open("rb") as log:
            log.seek(self._read)
            whole, end, _ = log.read().rpartition(b"\n")
        self._read += len(whole + end)
        for entry in map(json.loads, whole.splitlines()):
            self._verbs[entry["auditID"]] = entry["verb"]
        return Counter(self._verbs.values())


@contextmanager
def real() -> Iterator[Real]:
    with tempfile.TemporaryDirectory() as folder:
        policy, log = Path(folder) / "audit.json", Path(folder) / "audit.log"
        policy.write_text(json.dumps(_AUDIT))
        log.touch()
        audit = (f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-maxsize=100000")
        etcd = ("--quota-backend-bytes=4294967296", "--max-txn-ops=1000")
        with ControlPlane(api_server_args=audit, etcd_args=etcd) as plane:
            yield Real(plane, Path(folder))


def _stored(kind: str, number: int, namespace: str) -> bytes:
    document = json.loads(objects.json_of(kind, number, objects.FIRST_VERSION))
    document["metadata"]["namespace"] = namespace
    del document["metadata"]["resourceVersion"]  # etcd has it
    return json.dumps(document, separators=(",", ":")).encode()


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
