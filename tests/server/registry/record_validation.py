"""Asks a real kube-apiserver what it says to every case, and writes the answers down.

    python -m tests.server.registry.record_validation

Run when the cases change.  An answer is a code, its causes, its message where the causes do not make it,
and its warnings.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from setpoint.testing.kube import ControlPlane
from tests.server.registry.validation_answers import RECORDED, Answer, answer
from tests.server.registry.validation_cases import KINDS, Case, Object, cases, changed, name_of, right


class Asking:
    """One connection to the server."""

    def __init__(self, kube: ControlPlane) -> None:
        self._context = ssl.create_default_context(cafile=str(kube.ca_file))
        self._context.load_cert_chain(kube.admin_certificate, kube.admin_key)
        self._netloc = urlsplit(kube.url).netloc
        self._there: dict[str, Object] = {}

    def send(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object, list[str]]:
        connection = http.client.HTTPSConnection(self._netloc, context=self._context)
        data = json.dumps(body).encode() if body is not None else None
        connection.request(method, path, data, {"Content-Type": "application/json", "User-Agent": "probe/1"})
        response = connection.getresponse()
        warnings = [json.loads(one.partition(" - ")[2]) for one in response.headers.get_all("Warning", [])]
        found: Object = json.loads(response.read())
        connection.close()
        return response.status, found, warnings

    def ask(self, case: Case) -> Answer:
        if case.verb == "create":
            sent = changed(right(case.kind, name_of(case.kind)), case.changes)
            return answer(*self.send("POST", f"{path_of(case.kind)}?dryRun=All", sent))
        there = self._there.get(case.kind) or self._make(case.kind)
        sent = changed(there, case.changes)
        below = "" if case.verb == "update" else f"/{case.verb}"
        return answer(*self.send("PUT", f"{path_of(case.kind, name_of(case.kind))}{below}?dryRun=All", sent))

    def _make(self, kind: str) -> Object:
        code, made, _ = self.send("POST", path_of(kind), right(kind, name_of(kind)))
        if code != 201:
            raise SystemExit(f"{kind} cannot be made: {made.get('message')}")
        self._there[kind] = made
        return made


def path_of(kind: str, name: str = "") -> str:
    known = KINDS[kind]
    root = "/apis/" if "/" in known.api_version else "/api/"
    within = "/namespaces/default" if known.namespaced else ""
    return f"{root}{known.api_version}{within}/{known.plural}" + (f"/{name}" if name else "")


def main() -> None:
    recorded: dict[str, dict[str, Any]] = {}
    with ControlPlane() as kube:
        asking = Asking(kube)
        for case in cases():
            recorded.setdefault(case.kind, {})[case.key] = asking.ask(case)
    lines = [
        f"{json.dumps(kind)}: {{\n"
        + ",\n".join(
            f"{json.dumps(key)}: {json.dumps(one, separators=(',', ':'))}" for key, one in found.items()
        )
        + "\n}"
        for kind, found in recorded.items()
    ]
    Path(RECORDED).write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stderr.write(f"{sum(map(len, recorded.values()))} answers\n")


if __name__ == "__main__":
    main()
