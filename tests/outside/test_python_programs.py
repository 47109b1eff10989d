"""What others wrote in Python works unchanged: programs of the official client, operators of kopf."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.outside.environment import python
from tests.outside.kubectl import Kubectl
from tests.outside.servers import Server

PROGRAMS = Path(__file__).parent / "programs"
CRATE = """
apiVersion: kopf.setpoint.dev/v1
kind: Crate
metadata: {name: one}
spec: {text: hello}
"""


def test_the_official_client_does_its_work(server: Server) -> None:
    command = [str(python()), str(PROGRAMS / "official_client.py"), str(server.kubeconfig), "official-client"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=plain())
    assert ran.returncode == 0, ran.stderr[-3_000:]


def test_an_operator_of_kopf_keeps_its_objects(server: Server, homes: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(server, homes, "kopf")
    kubectl.ok("create namespace kopf")
    kubectl.ok("apply -f crate-crd.yaml")
    kubectl.until("get crates")
    with kopf(server, tmp_path / "log"):
        kubectl.ok("apply -f -", stdin=CRATE)
        wait(kubectl, "jsonpath={.status.create.child}=one-content crate/one")
        wait(kubectl, "jsonpath={.status.counted}=3 crate/one")
        assert kubectl.ok("get crate one -o jsonpath={.metadata.finalizers}") == (
            '["kopf.setpoint.dev/finalizer"]'
        )
        assert "kopf.zalando.org/last-handled-configuration" in kubectl.ok("get crate one -o yaml")
        owner = kubectl.ok("get cm one-content -o jsonpath={.metadata.ownerReferences[0].name}")
        assert owner == "one"
        kubectl.merge("crate one", {"spec": {"text": "changed"}})
        wait(kubectl, "jsonpath={.data.text}=changed cm/one-content")
        wait(kubectl, "jsonpath={.status.text}=changed crate/one")
        kubectl.ok("create cm noticed")
        kubectl.ok("label cm noticed watched=yes")
        wait(kubectl, "jsonpath={.metadata.annotations.seen-by}=kopf cm/noticed")
        kubectl.ok("delete crate one --wait=false")
        wait(kubectl, "delete crate/one")
        assert kubectl("get cm one-content").code == 1


def wait(kubectl: Kubectl, condition: str) -> None:
    kubectl.ok(f"wait --timeout=40s --for={condition}")


@contextmanager
def kopf(server: Server, log: Path) -> Iterator[None]:
    """The operator, until the block is left; it must not have failed, and must end when it is told to."""
    command = [str(python()), "-m", "kopf", "run", "--namespace=kopf", "--standalone", "--log-format=full"]
    environment = {**plain(), "KUBECONFIG": str(server.kubeconfig)}
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, str(PROGRAMS / "kopf_operator.py")], stdout=said, stderr=said, env=environment
        )
    try:
        yield
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        assert "[ERROR" not in log.read_text(), log.read_text()[-3_000:]
    except BaseException:
        print(log.read_text()[-3_000:])  # noqa: T201 - pytest shows it
        raise
    finally:
        process.kill()
        process.communicate()


def plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KUBE"))}


@pytest.fixture(scope="module", autouse=True)
def _made() -> None:
    """Made before the first test, whose deadline it must not eat."""
    python()
