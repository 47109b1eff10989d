"""Webhooks for tests of the embedded server: a server of them in the same loop, and what it converts."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setpoint.net import listen
from setpoint.net.tls import Authority, Identity
from setpoint.net.transport import Request
from setpoint.server.server import ApiServer

Json = dict[str, Any]
Answerer = Callable[[Json], Json]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def ask(server: ApiServer, method: str, target: str, body: Json | None = None) -> tuple[int, Json]:
    content = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    sent = None if body is None else json.dumps(body).encode()
    response = await server.transport()(Request(method, target, content if sent else {}, sent))
    return response.status, json.loads(await response.read())


async def made(server: ApiServer, target: str, body: Json) -> Json:
    status, found = await ask(server, "POST", target, body)
    assert status == 201, found
    return found


async def served(server: ApiServer, target: str) -> None:
    async with asyncio.timeout(10):
        while (await ask_text(server, target))[0] != 200:  # it is served a moment later
            await asyncio.sleep(0)


async def ask_text(server: ApiServer, target: str) -> tuple[int, bytes]:
    response = await server.transport()(Request("GET", target))
    return response.status, await response.read()


# ── A server of webhooks ────────────────────────────────────────────────────────────────────────────


def sealed(tmp_path: Path, host: str) -> tuple[Authority, Identity, ssl.SSLContext]:
    """Who vouches for a host, its certificate, and what to listen with."""
    authority = Authority.create()
    identity = authority.issue("hooks", hosts=[host], server=True)
    file = tmp_path / "hooks.pem"
    file.write_bytes(identity.key_pem + identity.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return authority, identity, context


@dataclass
class Hooks:
    """A webhook server in this loop, behind the Service default/hooks."""

    answer: Answerer = field(default=lambda _: {"allowed": True})
    asked: list[Json] = field(default_factory=list)
    address: str = ""
    authority: str = ""
    certificate: str = ""  # its own
    meeting: asyncio.Barrier | None = None  # of the first two that are asked

    async def __call__(self, request: Request) -> listen.Answer:
        review = json.loads(request.body or b"{}")
        self.asked.append(review["request"])
        if self.meeting is not None and len(self.asked) <= 2:
            await self.meeting.wait()
        response = {"uid": review["request"]["uid"], **self.answer(review["request"])}
        body = {"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}
        return listen.Answer(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    def configuration(self, **hook: Any) -> Json:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
        service = {"namespace": "default", "name": "hooks", "path": "/here"}
        return {
            "metadata": {"name": "hooks"},
            "webhooks": [
                {
                    "name": "hooks.example.com",
                    "clientConfig": {"service": service, "caBundle": self.authority},
                    "rules": [rule],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    **hook,
                }
            ],
        }


@asynccontextmanager
async def hooks_behind(tmp_path: Path, host: str = "hooks.default.svc") -> AsyncIterator[Hooks]:
    authority, identity, context = sealed(tmp_path, host)
    hooks = Hooks(
        authority=base64.b64encode(authority.certificate_pem).decode(),
        certificate=base64.b64encode(identity.certificate_pem).decode(),
    )
    async with listen.serve(hooks, host="127.0.0.1", port=0, ssl_context=context, grace=0.1) as address:
        hooks.address = f"127.0.0.1:{address.port}"
        yield hooks


# ── What it converts ────────────────────────────────────────────────────────────────────────────────


def definition(hooks: Hooks) -> Json:
    def version(name: str, field: str, *, storage: bool) -> Json:
        number = {"type": "integer"}
        spec = {"type": "object", "properties": {field: number, "count": number}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": storage, "schema": schema}

    service = {"namespace": "default", "name": "hooks", "path": "/convert"}
    webhook = {"clientConfig": {"service": service, "caBundle": hooks.authority}}
    return {
        "metadata": {"name": "sizes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "sizes", "kind": "Size"},
            "conversion": {
                "strategy": "Webhook",
                "webhook": {**webhook, "conversionReviewVersions": ["v1"]},
            },
            "versions": [version("v1", "size", storage=True), version("v2", "width", storage=False)],
        },
    }


def converted(request: Json) -> Json:
    """Size is the same in v1 as width is in v2."""
    wanted = request["desiredAPIVersion"]
    names = {"width": "size"} if wanted.endswith("v1") else {"size": "width"}
    made = [
        {
            **one,
            "apiVersion": wanted,
            "spec": {names.get(name, name): value for name, value in (one.get("spec") or {}).items()},
        }
        for one in request["objects"]
    ]
    return {"convertedObjects": made, "result": {"status": "Success"}}
