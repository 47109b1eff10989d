"""What others wrote in Go works unchanged: a small operator built with controller-runtime.

Its typed client sends protobuf, its cache is filled by a watch with initial events, it owns, applies and
patches, writes status and Events, holds a finalizer, and leads by a Lease.
"""

from __future__ import annotations

import selectors
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.outside.environment import controller
from tests.outside.kubectl import DEADLINE, Kubectl
from tests.outside.servers import Server


@pytest.fixture(scope="module", autouse=True)
def _made() -> None:
    """Built before the first test, whose deadline it must not eat."""
    controller()


def test_an_operator_of_controller_runtime_keeps_its_objects(
    server: Server, homes: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(server, homes, "controller-runtime")
    kubectl.ok("create namespace controller-runtime")
    kubectl.ok("apply -f box-crd.yaml")
    kubectl.until("get boxes")
    kubectl.ok("apply -f box.yaml")  # there before the operator is: its first list must show it
    with ExitStack() as second:
        with operator(server, tmp_path / "first"):
            waiting = second.enter_context(operator(server, tmp_path / "second", leads=False))
            kept(kubectl, "hello")
            with kubectl.follow("get events --field-selector reason=Kept --watch") as events:
                events.until("hello is kept")
            kubectl.ok("delete cm one-content")
            kubectl.ok("wait --for=create cm/one-content --timeout=50s")
            change(kubectl, "changed")
            first = kubectl.ok("get lease boxes -o jsonpath={.spec.holderIdentity}")
            assert first
        until_it_leads(waiting)
        assert kubectl.ok("get lease boxes -o jsonpath={.spec.holderIdentity}") != first
        change(kubectl, "another")
        kubectl.ok("delete box one --wait=false")
        kubectl.ok("wait --for=delete box/one --timeout=50s")
        assert kubectl.ok("get cm one-note -o jsonpath={.data.text}") == "another"


def change(kubectl: Kubectl, text: str) -> None:
    kubectl.merge("box one", {"spec": {"text": text}})
    kept(kubectl, text)


def kept(kubectl: Kubectl, text: str) -> None:
    """The operator has seen the text, and everything follows it."""
    for line in (
        f"wait '--for=jsonpath={{.status.text}}={text}' box/one --timeout=50s",
        "wait --for=condition=Ready box/one --timeout=50s",
        f"wait '--for=jsonpath={{.data.text}}={text}' cm/one-content --timeout=50s",
    ):
        kubectl.ok(line)
    assert kubectl.ok("get box one -o jsonpath={.metadata.finalizers}") == '["outside.setpoint.dev/note"]'
    owner = "{.metadata.ownerReferences[0].kind}/{.metadata.ownerReferences[0].controller}"
    assert kubectl.ok(f"get cm one-content -o jsonpath={owner}") == "Box/true"
    manager = "{.metadata.managedFields[0].manager}/{.metadata.managedFields[0].operation}"
    assert kubectl.ok(f"get service one -o jsonpath={manager}") == "boxes/Apply"


@contextmanager
def operator(server: Server, log: Path, *, leads: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    """The operator, until the block is left; it must end well when it is told to."""
    command = [str(controller()), str(server.kubeconfig), "controller-runtime"]
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    try:
        if leads:
            until_it_leads(process)
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    except BaseException:
        print(log.read_text()[-3_000:])  # noqa: T201 - pytest shows it
        raise
    finally:
        process.kill()
        process.communicate()


def until_it_leads(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    deadline = time.monotonic() + DEADLINE
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        assert selector.select(deadline - time.monotonic()), "it does not come to lead"
    assert process.stdout.readline() == b"leading\n"
