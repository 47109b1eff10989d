"""Asks the real kube-apiserver about every case of ``crd_cases.py`` and writes down what it says.

    python -m tests.server.registry.record_crds

Needs the binaries that ``make kube`` builds.  ``test_crd_recorded.py`` compares ours with what it writes.
"""

from __future__ import annotations

import copy
import http.client
import json
import re
import ssl
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from setpoint.api import yaml
from setpoint.testing.kube import ControlPlane
from tests.server.registry.crd_answers import Answer, field_crd, of_field
from tests.server.registry.crd_cases import CHANGES, DEFINITIONS, GROUP, RATCHETS, RULES, VALUES, Schema

RECORDED = Path(__file__).parent / "recorded" / "crds.json"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_THINGS = f"/apis/{GROUP}/v1/namespaces/default/things"
_DRY = "?dryRun=All"
MARKER = "marker"


class Real:
    """A server, asked over one connection."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        else:
            with tempfile.TemporaryDirectory() as folder:
                pair = Path(folder) / "pair"
                pair.write_bytes(
                    b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"])
                )
                context.load_cert_chain(pair)
        address = urlsplit(cluster["server"])
        self._connection = http.client.HTTPSConnection(str(address.hostname), address.port, context=context)

    def close(self) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any, list[str]]:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        response = self._connection.getresponse()
        data = response.read()
        warned = [re.sub(r"\\(.)", r"\1", one[7:-1]) for one in response.headers.get_all("Warning") or ()]
        try:
            return response.status, json.loads(data), warned
        except ValueError:
            return response.status, data.decode(), warned

    def install(self, definition: Schema) -> None:
        """Define, and wait until the schema that is served is the new one."""
        name = definition["metadata"]["name"]
        code, found, _ = self.ask("GET", f"{_CRDS}/{name}")
        if code == 404:
            code, said, _ = self.ask("POST", _CRDS, definition)
        else:
            new = copy.deepcopy(definition)
            new["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
            code, said, _ = self.ask("PUT", f"{_CRDS}/{name}", new)
        assert code in (200, 201), said
        fields = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
            "properties"
        ]
        marker = next(one for one in fields if one.startswith(MARKER))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self.ask("POST", _THINGS + _DRY, of_field(marker, "x"))[0] == 422:
                return
            time.sleep(0.05)
        raise TimeoutError(f"{name} is not served as it was last defined")

    def answer(self, method: str, path: str, name: str, body: Any) -> Answer:
        code, said, warned = self.ask(method, path, body)
        if code in (200, 201):
            return [code, said.get("spec", {}).get(name), sorted(warned)]
        return _refusal(code, said, warned)


def _refusal(code: int, said: Any, warned: list[str]) -> Answer:
    if code == 422:
        found = said["details"].get("causes") or []
        return [code, sorted([one["field"], one["reason"], one["message"]] for one in found), sorted(warned)]
    return [code, said["message"]]


_GENERATIONS = iter(range(1, 10**6))


def marked(fields: dict[str, Schema]) -> Schema:
    """A definition whose schema can be told from all before it: only it refuses its marker."""
    return field_crd({**fields, f"{MARKER}{next(_GENERATIONS)}": {"type": "string", "maxLength": 0}})


def values(real: Real) -> Iterator[tuple[str, list[Answer]]]:
    for kind, cases in (("values", VALUES), ("rules", RULES)):
        real.install(marked({name: schema for name, (schema, _) in cases.items()}))
        for name, (_, given) in cases.items():
            yield (
                f"{kind}.{name}",
                [real.answer("POST", _THINGS + _DRY, name, of_field(name, one)) for one in given],
            )


def changes(real: Real) -> Iterator[tuple[str, list[Answer]]]:
    real.install(marked({name: schema for name, (schema, _) in CHANGES.items()}))
    for name, (_, pairs) in CHANGES.items():
        yield f"changes.{name}", [_changed(real, name, old, new) for old, new in pairs]


def _changed(real: Real, name: str, old: Any, new: Any) -> Answer:
    body = of_field(name, old) if old is not None else of_field("none", None)
    body["spec"].pop("none", None)
    code, said, _ = real.ask("POST", _THINGS, body)
    assert code == 201, said
    try:
        return _put(real, name, said, new)
    finally:
        real.ask("DELETE", f"{_THINGS}/a")


def _put(real: Real, name: str, stored: Any, new: Any) -> Answer:
    body = of_field(name, new)
    body["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    return real.answer("PUT", f"{_THINGS}/a{_DRY}", name, body)


def ratchets(real: Real) -> Iterator[tuple[str, list[Answer]]]:
    free = {"x-kubernetes-preserve-unknown-fields": True}
    for name, (schema, pairs) in RATCHETS.items():
        answers = []
        for old, new in pairs:
            real.install(marked({name: free}))
            code, said, _ = real.ask("POST", _THINGS, of_field(name, old))
            assert code == 201, said
            real.install(marked({name: schema}))
            answers.append(_put(real, name, said, new))
            real.ask("DELETE", f"{_THINGS}/a")
        yield f"ratchets.{name}", answers


def definitions(real: Real) -> Iterator[tuple[str, list[Answer]]]:
    for name, body in DEFINITIONS.items():
        code, said, warned = real.ask("POST", _CRDS + _DRY, body)
        answer = [code, None, sorted(warned)] if code == 201 else _refusal(code, said, warned)
        yield f"definitions.{name}", [answer]


def record(real: Real) -> dict[str, list[Answer]]:
    found = dict(definitions(real))
    for part in (values, changes, ratchets):
        found |= dict(part(real))
    return found


def main() -> None:
    with ControlPlane() as kube, closing(Real(Path(kube.kubeconfig))) as real:
        found = record(real)
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(found[name], ensure_ascii=False, separators=(',', ':'))}"
        for name in sorted(found)
    )
    RECORDED.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
