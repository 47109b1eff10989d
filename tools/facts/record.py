"""Records what the real kube-apiserver makes of objects and bodies: what tests/server/registry compares with.

- ``defaulted.jsonl.xz``: every object of ``objects.yaml`` as it was sent, and as the server stored it.
- ``bodies.jsonl.xz``: the bodies of ``bodies.yaml``, good and bad, and what was said to each.
- ``messages.jsonl.xz``: an object of every kind with every field set, as JSON and as protobuf, by Go itself.

Run after ``build.py`` when the release changes: ``make facts``.
"""

from __future__ import annotations

import http.client
import json
import lzma
import re
import ssl
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from setpoint.api import yaml
from setpoint.server.registry import facts
from setpoint.testing.kube import ControlPlane

HERE = Path(__file__).parent
RECORDED = HERE.parent.parent / "tests" / "server" / "registry" / "recorded"


class Server:
    """Asks a control plane, as its administrator."""

    def __init__(self, plane: ControlPlane) -> None:
        context = ssl.create_default_context(cafile=plane.ca_file)
        context.load_cert_chain(plane.admin_certificate, plane.admin_key)
        self._connection = http.client.HTTPSConnection(plane.url.removeprefix("https://"), context=context)

    def post(self, path: str, body: bytes, content_type: str) -> tuple[int, Any, list[str]]:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        self._connection.request("POST", path, body, headers)
        response = self._connection.getresponse()
        warnings = [
            re.sub(r"\\(.)", r"\1", one.removeprefix('299 - "').removesuffix('"'))
            for one in response.headers.get_all("Warning", [])
        ]
        return response.status, json.loads(response.read()), warnings


# --- objects


def defaulted(server: Server) -> Iterable[dict[str, Any]]:
    served = {(one.group, one.version, one.kind): one for one in facts.resources()}
    for number, sent in enumerate(yaml.load_all((RECORDED / "objects.yaml").read_bytes())):
        sent.setdefault("metadata", {}).setdefault("name", f"object-{number}")
        group, _, version = sent["apiVersion"].rpartition("/")
        one = served[group, version, sent["kind"]]
        base = f"/apis/{group}/{version}" if group else f"/api/{version}"
        path = f"{base}/namespaces/default/{one.plural}" if one.namespaced else f"{base}/{one.plural}"
        status, stored, _ = server.post(path, json.dumps(sent).encode(), "application/json")
        if status != 201:
            raise SystemExit(f"facts: the server refused {json.dumps(sent)}: {stored['message']}")
        stored["metadata"].pop("managedFields", None)
        yield {"sent": sent, "stored": stored}


# --- bodies

JSON, YAML = "application/json", "application/yaml"


def asked() -> Iterable[tuple[str, str, str]]:
    """(resource, content type, body)."""
    cases = yaml.load((RECORDED / "bodies.yaml").read_bytes())
    core = "/api/v1/namespaces/default"
    for body in cases["configmaps"]:
        yield f"{core}/configmaps", JSON, body
    for body in cases["yaml"]:
        yield f"{core}/configmaps", YAML, body
    for spec in cases["pods"]:
        yield f"{core}/pods", JSON, f'{{"metadata":{{"name":"a"}},"spec":{spec}}}'
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    for text in map(json.dumps, cases["times"]):
        about = '"metadata":{"name":"a"},"involvedObject":{"namespace":"default"}'
        yield f"{core}/events", JSON, f'{{{about},"lastTimestamp":{text}}}'
        yield leases, JSON, f'{{"metadata":{{"name":"a"}},"spec":{{"renewTime":{text}}}}}'
    for amount in cases["quantities"]:
        limits = f'[{{"type":"Container","max":{{"cpu":{amount}}}}}]'
        yield f"{core}/limitranges", JSON, f'{{"metadata":{{"name":"a"}},"spec":{{"limits":{limits}}}}}'


def bodies(server: Server) -> Iterable[dict[str, Any]]:
    for path, content_type, body in asked():
        status, said, warnings = server.post(f"{path}?dryRun=All", body.encode(), content_type)
        yield {
            "path": path,
            "type": content_type,
            "body": body,
            "status": status,
            "message": said["message"] if status == 400 else "",
            "texts": [one for one in warnings if re.match(r"(unknown|duplicate) field|line [0-9]+:", one)],
            "object": said if status == 201 else None,
        }


# --- messages


def messages() -> Iterable[dict[str, Any]]:
    kinds = [
        {"kind": kind, "apiVersion": f"{group}/{version}" if group else version}
        for group, version, kind in facts.kinds()
        if group != "meta.k8s.io" and not kind.endswith(("List", "Options"))
    ]
    kinds.append({"kind": "DeleteOptions", "apiVersion": "v1"})
    run = subprocess.run(
        ["go", "run", "-mod=readonly", "./messages"],
        cwd=HERE,
        input="\n".join(map(json.dumps, kinds)).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    for line in run.stdout.splitlines():
        made = json.loads(line)
        yield {"object": made["object"], "protobuf": made["protobuf"]}


def keep(name: str, rows: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in rows)
    (RECORDED / name).write_bytes(lzma.compress(text.encode(), preset=9))


def main() -> None:
    keep("messages.jsonl.xz", messages())
    with ControlPlane() as plane:
        server = Server(plane)
        keep("bodies.jsonl.xz", bodies(server))
        keep("defaulted.jsonl.xz", defaulted(server))


if __name__ == "__main__":
    main()
