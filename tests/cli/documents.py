"""A server that has nothing but documents: discovery and OpenAPI, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

META = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1."


@contextmanager
def serving(answers: Mapping[str, Any], folder: Path) -> Iterator[Path]:
    """Answer those paths with those documents, bytes or codes; gives the kubeconfig that leads there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path, 404)
            code = answer if isinstance(answer, int) else 200
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield kubeconfig(folder, f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()


def kubeconfig(folder: Path, server: str) -> Path:
    file = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "current-context": "c",
    }
    file.write_text(json.dumps(config))
    return file


def published(group: str, version: str, kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The OpenAPI document of a CustomResourceDefinition."""
    name = ".".join([*reversed(group.split(".")), version, kind])
    own = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": f"{META}ObjectMeta"}]},
    }
    return {
        "components": {
            "schemas": {
                name: {
                    **schema,
                    "type": "object",
                    "properties": own | schema.get("properties", {}),
                    "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": kind}],
                }
            }
        }
    }


def answers(*served: tuple[str, str, str, str, Mapping[str, Any]]) -> dict[str, Any]:
    """What a server with these kinds (group, version, kind, plural, document) answers to each path."""
    paths = {f"apis/{group}/{version}": document for group, version, _, _, document in served}
    groups = [
        {
            "metadata": {"name": group},
            "versions": [
                {
                    "version": version,
                    "resources": [
                        {
                            "resource": plural,
                            "responseKind": {"group": group, "version": version, "kind": kind},
                            "scope": "Namespaced",
                            "singularResource": kind.lower(),
                            "verbs": ["get"],
                            "subresources": [{"subresource": "status"}],
                        }
                    ],
                }
            ],
        }
        for group, version, kind, plural, _ in served
    ]
    return {
        "/api": {"kind": "APIGroupDiscoveryList", "items": []},
        "/apis": {"kind": "APIGroupDiscoveryList", "items": groups},
        "/openapi/v3": {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}},
        **{f"/openapi/v3/{path}": document for path, document in paths.items()},
    }
