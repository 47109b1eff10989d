"""An operator with webhooks, built with controller-runtime, works unchanged: defaults, refusals, conversion.

It comes in as its own service account, with the token of a TokenRequest, and may do what its role says and no
more.  Its webhooks are named by URL, as envtest does it, and trusted by their own certificate alone.
"""

from __future__ import annotations

import base64
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from setpoint.api.yaml import dump, load
from setpoint.net.tls import Authority
from tests.outside.environment import controller
from tests.outside.kubectl import DEADLINE, Kubectl
from tests.outside.servers import Server

NAMESPACE: Final = "parcels"
FIRST: Final = "parcels.v1.outside.setpoint.dev"  # without a version, kubectl takes the newest
DENIED: Final = re.compile(
    r"^Error from server \(Forbidden\): admission webhook "
    r'"validate\.parcels\.outside\.setpoint\.dev" denied the request: '
)
MISSING: Final = (
    'configmaps "two" is forbidden: User "system:serviceaccount:parcels:parcels" cannot update resource '
    '"configmaps" in API group "" in the namespace "parcels"'
)


@pytest.fixture(scope="module", autouse=True)
def _made() -> None:
    """Built before the first test, whose deadline it must not eat."""
    controller("parcels")


def test_an_operator_with_webhooks_and_a_role_of_its_own(server: Server, homes: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(server, homes, NAMESPACE)
    kubectl.ok(f"create namespace {NAMESPACE}")
    kubectl.ok("apply -f parcels.yaml")
    kubectl.until(f"get {FIRST}")
    with operator(kubectl, tmp_path) as log:
        it_defaults_and_keeps(kubectl)
        it_refuses(kubectl)
        it_converts(kubectl)
        it_does_no_more_than_its_role_says(kubectl, log)


def it_defaults_and_keeps(kubectl: Kubectl) -> None:
    kubectl.ok("create -f -", stdin=parcel("one", text="hello"))
    assert kubectl.ok("get parcel one -o jsonpath={.spec.size}") == "small"
    kubectl.ok("wait --for=create cm/one --timeout=50s")
    kept(kubectl, "one", "hello")
    assert kubectl("create -f -", stdin=parcel("two", text="hello", size="large")).err == (
        "Warning: a large parcel takes longer\n"
    )


def it_refuses(kubectl: Kubectl) -> None:
    kubectl.ok("label parcel one keep=")
    patch = f"patch {FIRST} one --type=merge -p"
    for line, told in (
        (f"""{patch} '{{"spec":{{"text":"fragile"}}}}'""", "nobody carries what is fragile"),
        (f"""{patch} '{{"spec":{{"size":"large"}}}}'""", "a parcel stays small"),
        ("delete parcel one", "it is to be kept"),
    ):
        ran = kubectl(line)
        assert (ran.code, DENIED.sub("", ran.err)) == (1, f"{told}\n")


def it_converts(kubectl: Kubectl) -> None:
    second = "parcels.v2.outside.setpoint.dev"
    assert kubectl.ok(f"get {second} one -o jsonpath={{.spec}}") == '{"message":"hello","size":"small"}'
    kubectl.merge(f"{second} one", {"spec": {"message": "changed"}})
    assert kubectl.ok(f"get {FIRST} one -o jsonpath={{.spec.text}}") == "changed"
    kept(kubectl, "one", "changed")
    stored = "get crd parcels.outside.setpoint.dev -o jsonpath={.status.storedVersions}"
    assert kubectl.ok(stored) == '["v1"]'


def it_does_no_more_than_its_role_says(kubectl: Kubectl, log: Path) -> None:
    account = f"system:serviceaccount:{NAMESPACE}:parcels"
    assert kubectl(f"auth can-i create configmaps --as {account}").out == "yes\n"
    assert kubectl(f"auth can-i create secrets --as {account}").out == "no\n"
    kept(kubectl, "two", "hello")
    rules: list[dict[str, Any]] = json.loads(kubectl.ok("get role parcels -o jsonpath={.rules}"))
    less = [{**one, "verbs": [verb for verb in one["verbs"] if verb != "update"]} for one in rules[3:]]
    kubectl.merge("role parcels", {"rules": [*rules[:3], *less]})
    kubectl.merge(f"{FIRST} two", {"spec": {"text": "unseen"}})
    until(lambda: MISSING in log.read_text().replace('\\"', '"'), "it does not say what it may not")
    assert kubectl.ok("get cm two -o jsonpath={.data.text}") == "hello"
    kubectl.merge("role parcels", {"rules": rules})
    kept(kubectl, "two", "unseen")


def kept(kubectl: Kubectl, name: str, text: str) -> None:
    kubectl.ok(f"wait '--for=jsonpath={{.data.text}}={text}' cm/{name} --timeout=50s")
    kubectl.ok(f"wait '--for=jsonpath={{.status.text}}={text}' parcel/{name} --timeout=50s")


def parcel(name: str, **spec: str) -> str:
    kind = {"apiVersion": "outside.setpoint.dev/v1", "kind": "Parcel"}
    return json.dumps({**kind, "metadata": {"name": name}, "spec": spec})


@contextmanager
def operator(kubectl: Kubectl, folder: Path) -> Iterator[Path]:
    """The operator, until the block is left, when it must end well; what it logs is in the file."""
    pair = Authority.create("parcels").issue("parcels", hosts=["127.0.0.1"], server=True)
    (folder / "tls.crt").write_bytes(pair.certificate_pem)
    (folder / "tls.key").write_bytes(pair.key_pem)
    port, log, kubeconfig = free_port(), folder / "log", folder / "kubeconfig"
    kubeconfig.write_text(as_its_account(kubectl))
    command = [str(controller("parcels")), str(kubeconfig), NAMESPACE, str(port), str(folder)]
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        configure(kubectl, f"https://127.0.0.1:{port}", base64.b64encode(pair.certificate_pem).decode())
        yield log
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    except BaseException:
        print(log.read_text()[-3_000:])  # noqa: T201 - pytest shows it
        raise
    finally:
        process.kill()
        process.communicate()


def configure(kubectl: Kubectl, url: str, authority: str) -> None:
    """Its webhooks, at the paths that controller-runtime gives them; and until they are gone by."""

    def client(path: str) -> dict[str, str]:
        return {"url": f"{url}/{path}", "caBundle": authority}

    convert = {"clientConfig": client("convert"), "conversionReviewVersions": ["v1"]}
    conversion = {"conversion": {"strategy": "Webhook", "webhook": convert}}
    kubectl.merge("crd parcels.outside.setpoint.dev", {"spec": conversion})
    for kind, name, verbs in (
        ("Mutating", "mutate", ["CREATE", "UPDATE"]),
        ("Validating", "validate", ["CREATE", "UPDATE", "DELETE"]),
    ):
        rule = {"apiGroups": ["outside.setpoint.dev"], "apiVersions": ["v1"], "resources": ["parcels"]}
        hook = {
            "name": f"{name}.parcels.outside.setpoint.dev",
            "clientConfig": client(f"{name}-outside-setpoint-dev-v1-parcel"),
            "rules": [{**rule, "operations": verbs}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": "parcels"},
            "webhooks": [hook],
        }
        kubectl.ok("create -f -", stdin=json.dumps(body))
    probe, bad = parcel("probe", text="hello"), parcel("probe", text="fragile")
    dry = "create --dry-run=server -o jsonpath={.spec.size} -f -"
    until(lambda: kubectl(dry, stdin=probe).out == "small", "nothing is defaulted")
    until(lambda: kubectl(dry, stdin=bad).code == 1, "nothing is refused")
    until(lambda: not kubectl("get parcels.v2.outside.setpoint.dev").code, "nothing is converted")


def until(is_so: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not is_so():
        assert time.monotonic() < deadline, complaint


def as_its_account(kubectl: Kubectl) -> str:
    """The administrator's kubeconfig, with the token of the operator's service account in his place."""
    config = load(kubectl.server.kubeconfig.read_text())
    token = kubectl.ok("create token parcels").strip()
    return dump({**config, "users": [{**one, "user": {"token": token}} for one in config["users"]]})


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
