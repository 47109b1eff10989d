"""Asks a server in this process, and gives what came back as one value."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from setpoint.net.transport import Request, Transport
from setpoint.server.server import ApiServer

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Got(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def message(self) -> str:
        return str(self.json["message"])


class Asking:
    """GET and the others, by name."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def __call__(
        self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Got:
        sent = {"User-Agent": "test", **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            body = msgspec.json.encode(body)
            sent.setdefault("Content-Type", "application/json")
        response = await self._transport(Request(method, target, sent, body))
        return Got(response.status, response.headers, await response.read())

    async def get(self, target: str, accept: str = "", **headers: str) -> Got:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self("GET", target, headers={**({"Accept": accept} if accept else {}), **sent})

    async def create(self, collection: str, body: Any) -> Any:
        got = await self("POST", collection, body)
        assert got.status == 201, got.body
        return got.json


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def definition(*versions: dict[str, Any]) -> dict[str, Any]:
    names = {"plural": "foos", "kind": "Foo", "shortNames": ["fo"], "categories": ["all"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions)},
    }


def version(name: str, *, storage: bool = False, **more: Any) -> dict[str, Any]:
    spec = {"type": "object", "description": "what is wanted", "properties": {"size": {"type": "integer"}}}
    schema = {"type": "object", "description": "A Foo.", "properties": {"spec": spec}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


async def until_served(ask: Asking, path: str) -> None:
    while (await ask.get(path)).status != 200:
        await asyncio.sleep(0.01)


@asynccontextmanager
async def asking() -> AsyncIterator[Asking]:
    async with ApiServer() as server:
        yield Asking(server.transport())
