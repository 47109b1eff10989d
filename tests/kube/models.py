"""Makes ``setpoint.kube`` anew from the real kube-apiserver: what ``make models`` runs.

Starts the control plane, runs ``setpoint models --builtin`` against it, and keeps what the server said,
descriptions left out, as data for the tests that need no server.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from setpoint.cli.main import main
from setpoint.cli.models import documents_of, index_of
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.testing.kube import ControlPlane

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "setpoint" / "kube"
RECORD = ROOT / "tests" / "kube_models" / "data" / "kubernetes.json.gz"


def write_models(kubeconfig: Path, output: Path) -> None:
    """The command itself, with nothing left of what was there before; if it fails, all of it is."""
    with tempfile.TemporaryDirectory() as made:
        arguments = ["models", "--builtin", "--kubeconfig", str(kubeconfig), "--output", made]
        main(arguments, standalone_mode=False)
        for group in output.glob("*/"):
            shutil.rmtree(group)
        shutil.copytree(made, output, dirs_exist_ok=True)


async def said_by_server(kubeconfig: Path) -> dict[str, Any]:
    """The server's version, schemas and resources, as the command sees them."""
    async with Client(Config.load(kubeconfig)) as client:
        documents = await documents_of(client, await index_of(client))
        schemas: dict[str, Any] = {}
        for document in documents.values():
            schemas |= document["components"]["schemas"]
        return {
            "version": json.loads(await client.fetch("/version"))["gitVersion"],
            "schemas": without_descriptions(schemas),
            "resources": [asdict(resource) for resource in await client.discovery.resources()],
        }


def without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        texts = {"description"} if isinstance(value.get("description"), str) else set()
        return {name: without_descriptions(inner) for name, inner in value.items() if name not in texts}
    return [without_descriptions(inner) for inner in value] if isinstance(value, list) else value


def record(said: dict[str, Any]) -> None:
    text = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    RECORD.write_bytes(gzip.compress(text, mtime=0))  # the same words, the same bytes


if __name__ == "__main__":
    with ControlPlane() as plane:
        write_models(plane.kubeconfig, PACKAGE)
        record(asyncio.run(said_by_server(plane.kubeconfig)))
