"""What the pages show of a server, a real one answers: each page is run from top to bottom."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.errors import AlreadyExists
from setpoint.kube.core.v1 import ConfigMap, Namespace
from setpoint.testing.kube import ControlPlane
from tests.pages import PAGES, ROOT, blocks

ASKING = [page for page in PAGES if any(block.awaits for block in blocks(page) if block.language == "python")]


@asynccontextmanager
async def shop(kube: ControlPlane) -> AsyncIterator[Client]:
    """A client of a server with the namespace that all pages use, empty."""
    async with Client(Config.load(kube.kubeconfig)) as client:
        namespace = Namespace()
        namespace.metadata.name = "shop"
        try:
            await client.create(namespace)
        except AlreadyExists:
            await client.delete_collection(ConfigMap, namespace="shop")
        yield client


@pytest.mark.parametrize("page", ASKING, ids=lambda page: page.name)
async def test_a_page_does_what_it_says_on_a_real_server(page: Path, kube: ControlPlane) -> None:
    async with shop(kube) as client:
        names: dict[str, Any] = {"__name__": page.stem, "client": client}
        for block in blocks(page):
            if block.language == "python":
                ran = eval(block.compile(), names)
                if inspect.isawaitable(ran):
                    await ran


def run(*command: str, stdin: str | None = None, **env: str) -> str:
    ran = subprocess.run(command, check=False, cwd=ROOT, input=stdin, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_example_of_pods_finds_the_server_that_kubectl_would(kube: ControlPlane) -> None:
    assert kube.url in run(sys.executable, "examples/pods/pods.py", KUBECONFIG=str(kube.kubeconfig))


def test_kubectl_takes_what_the_example_of_a_kind_prints(kube: ControlPlane, tmp_path: Path) -> None:
    kubectl = (str(kube.binaries.kubectl), f"--kubeconfig={kube.kubeconfig}", f"--cache-dir={tmp_path}")
    definition = run(sys.executable, "examples/webapp/webapp.py")
    run(*kubectl, "apply", "--filename", "-", stdin=definition)
    established = "--for=condition=established"
    run(*kubectl, "wait", established, "--timeout=30s", "customresourcedefinition/webapps.demo.setpoint.dev")
