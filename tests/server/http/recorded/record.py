"""Asks the real server for the cells of every shape in ``shapes.jsonl``, and writes them to ``cells.jsonl``.

    python -m tests.server.http.recorded.record

A shape is an object, the collection it is created in, and the status it is given then; the first is the
definition of the custom kind that others are of.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from datetime import UTC, datetime
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from setpoint.testing.kube import ControlPlane

Json = dict[str, Any]
HERE = Path(__file__).parent
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Server:
    def __init__(self, kube: ControlPlane) -> None:
        context = ssl.create_default_context(cafile=kube.ca_file)
        context.load_cert_chain(kube.folder / "admin.crt", kube.admin_key)
        self._connection = HTTPSConnection("127.0.0.1", int(kube.url.rpartition(":")[2]), context=context)

    def ask(self, method: str, path: str, body: Json | None = None, **headers: str) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", **headers}
        self._connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self._connection.getresponse()
        answer = response.read()
        return response.status, json.loads(answer) if answer.startswith(b"{") else answer.decode()

    def do(self, method: str, path: str, body: Json | None = None, **headers: str) -> Any:
        code, answer = self.ask(method, path, body, **headers)
        assert code < 300, (path, answer)
        return answer

    def table(self, path: str) -> tuple[Json, float]:
        """The Table, and the moment it was made: within one second, for ages are told in whole ones."""
        while True:
            began = time.time()
            if began % 1 < 0.8:
                table = self.do("GET", f"{path}?includeObject=Object", Accept=TABLE)
                if int(time.time()) == int(began):
                    return table, began
            time.sleep(0.05)


def create(server: Server, shape: Json) -> str:
    """Its path."""
    made = server.do("POST", shape["collection"], shape["object"])
    path = f"{shape['collection']}/{made['metadata']['name']}"
    if "status" in shape:
        patch = {"Content-Type": "application/merge-patch+json"}
        server.do("PATCH", f"{path}/status", {"status": shape["status"]}, **patch)
    if shape.get("is_deleted"):
        server.do("DELETE", path)
    return path


def record(server: Server, path: str) -> Json:
    table, began = server.table(path)
    row = table["rows"][0]
    seen = row["object"]
    seen["metadata"].pop("managedFields", None)
    kept = {"now": datetime.fromtimestamp(began, UTC).isoformat(), "object": seen, "cells": row["cells"]}
    if "conditions" in row:
        kept["conditions"] = row["conditions"]
    return kept


def signing_request() -> Json:
    """Of a new key each time: nobody's certificate is to be found here."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "someone")])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    pem = base64.b64encode(csr.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": pem, "signerName": "a.com/s", "usages": ["client auth"], "expirationSeconds": 7200}
    return {
        "collection": "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        "object": {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": "csr"},
            "spec": spec,
        },
    }


def shapes() -> list[Json]:
    return [json.loads(line) for line in (HERE / "shapes.jsonl").read_text().splitlines()]


def main() -> None:
    first, *others = shapes()
    with ControlPlane() as kube:
        server = Server(kube)
        paths = [create(server, first)]
        while not _is_served(server, first["object"]):
            time.sleep(0.1)
        paths += [create(server, shape) for shape in (*others, signing_request())]
        paths.append("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps")
        lines = [record(server, path) for path in paths]
        classes, _ = server.table("/apis/storage.k8s.io/v1/storageclasses")
    text = "".join(json.dumps(line, separators=(",", ":"), sort_keys=True) + "\n" for line in lines)
    (HERE / "cells.jsonl").write_text(text)
    names = json.dumps([row["cells"][0] for row in classes["rows"]])
    (HERE / "storage_classes.json").write_text(f"{names}\n")


def _is_served(server: Server, crd: Json) -> bool:
    version = f"/apis/{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}"
    return server.ask("GET", f"{version}/{crd['spec']['names']['plural']}")[0] == 200


if __name__ == "__main__":
    main()
