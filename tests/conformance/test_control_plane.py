"""The promises of ``testing/kube.py`` that only the real programs can show."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from setpoint.net.tls import Identity
from setpoint.testing.kube import KUBERNETES, ControlPlane, StartFailed, binaries

# --- the shared control plane


def test_kubectl_reads_the_stamped_version_of_itself_and_of_the_server(kube: ControlPlane) -> None:
    seen = json.loads(kubectl(kube, "version", "-o", "json"))

    for side in ("clientVersion", "serverVersion"):
        version = seen[side]
        assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}."), side
        if "KUBEBUILDER_ASSETS" not in os.environ:
            assert version["gitVersion"] == KUBERNETES, side


def test_kubectl_creates_and_reads_an_object(kube: ControlPlane, namespace: str) -> None:
    kubectl(kube, "create", "configmap", "settings", "--from-literal=colour=blue", "-n", namespace)

    read = json.loads(kubectl(kube, "get", "configmap", "settings", "-o", "json", "-n", namespace))
    assert read["data"] == {"colour": "blue"}


def test_a_pod_can_be_created_without_a_controller_manager(kube: ControlPlane, namespace: str) -> None:
    kubectl(kube, "run", "web", "--image=web", "-n", namespace)

    assert "web" in kubectl(kube, "get", "pods", "-n", namespace)


def test_a_stranger_may_ask_for_health_and_nothing_else(kube: ControlPlane) -> None:
    assert ask(kube, "/readyz", who=None)[0] == 200
    assert ask(kube, "/version", who=None)[0] == 401
    assert ask(kube, "/api/v1/namespaces", who=None)[0] == 401


def test_a_new_user_may_nothing_until_its_groups_do(kube: ControlPlane) -> None:
    nobody = kube.client_certificate("nobody")
    chief = kube.client_certificate("chief", groups=("system:masters",))

    status, answer = ask(kube, "/api/v1/namespaces", who=nobody)
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert 'User "nobody" cannot list' in answer["message"]
    assert ask(kube, "/api/v1/namespaces", who=chief)[0] == 200


def test_etcd_does_not_know_the_users_of_the_api_server(kube: ControlPlane) -> None:
    """Not even the administrator may go around the API server; and etcd speaks nothing but TLS."""
    context = ssl.create_default_context(cafile=kube.folder / "etcd-ca.crt")
    context.load_cert_chain(kube.admin_certificate, kube.admin_key)
    connection = http.client.HTTPSConnection("127.0.0.1", kube._etcd_port, timeout=10, context=context)

    def health() -> int:
        connection.request("GET", "/health")
        return connection.getresponse().status

    with contextlib.closing(connection), pytest.raises((ssl.SSLError, ConnectionError)):
        health()


def test_files_are_for_their_owner_alone(kube: ControlPlane) -> None:
    assert kube.folder.stat().st_mode & 0o077 == 0
    for key in kube.folder.glob("*.key"):
        assert key.stat().st_mode & 0o077 == 0, key
    assert kube.kubeconfig.stat().st_mode & 0o077 == 0


# --- control planes of their own


def test_a_restarted_api_server_has_the_same_address_and_data(own: ControlPlane) -> None:
    url = own.url
    kubectl(own, "create", "configmap", "kept")

    own.stop_api_server()
    with pytest.raises(OSError, match="refused"):
        ask(own, "/readyz")
    own.start_api_server()

    assert own.url == url
    assert "kept" in kubectl(own, "get", "configmaps", "-o", "name")


def test_compaction_expires_a_continue_token_once_the_api_server_forgot_too(own: ControlPlane) -> None:
    _, page = ask(own, "/api/v1/namespaces?limit=1")
    following = f"/api/v1/namespaces?limit=1&continue={page['metadata']['continue']}"
    assert ask(own, following)[0] == 200

    revision = own.compact()
    own.stop_api_server()
    own.start_api_server()

    assert int(page["metadata"]["resourceVersion"]) < revision
    status, answer = ask(own, following)
    assert (status, answer["reason"]) == (410, "Expired")


def test_stop_leaves_no_process_and_no_file_and_may_be_repeated() -> None:
    control_plane = ControlPlane()
    with control_plane as kube:
        processes = list(kube._processes.values())
        folder = kube.folder
        assert repr(kube) == f"<ControlPlane at {kube.url}, running etcd, kube-apiserver>"

    control_plane.stop()

    assert [process.returncode is not None for process in processes] == [True, True]
    assert not folder.exists()
    control_plane.start()
    assert ask(control_plane, "/readyz")[0] == 200, "it may be started again"
    control_plane.stop()


async def test_it_runs_as_an_async_context_manager_with_flags_of_ones_own(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("open-sesame,ali,1,system:masters\n")

    async with ControlPlane(api_server_args=[f"--token-auth-file={tokens}"]) as kube:
        assert ask(kube, "/api/v1/namespaces", who=None, token="open-sesame")[0] == 200
        assert ask(kube, "/api/v1/namespaces", who=None, token="closed")[0] == 401


def test_a_flag_the_api_server_does_not_know_is_shown_as_its_log_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the logs are kept

    with pytest.raises(StartFailed, match=r"(?s)start kube-apiserver: .*unknown flag: --no-such-flag"):
        ControlPlane(api_server_args=["--no-such-flag"]).start()


def test_a_port_taken_at_the_last_moment_is_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first start of this etcd finds its port taken; so says the real one."""
    real, tried = binaries(), tmp_path / "tried"
    for name in ("kube-apiserver", "kubectl"):
        (tmp_path / name).symlink_to(real.folder / name)
    (tmp_path / "etcd").write_text(
        f"#!{sys.executable}\n"
        "import os, pathlib, socket, subprocess, sys\n"
        f"tried, real = pathlib.Path({str(tried)!r}), {str(real.etcd)!r}\n"
        "if not tried.exists():\n"
        "    tried.touch()\n"
        "    url = next(flag for flag in sys.argv if flag.startswith('--listen-client-urls='))\n"
        "    taker = socket.create_server(('127.0.0.1', int(url.rpartition(':')[2])))\n"
        "    sys.exit(subprocess.call([real, *sys.argv[1:]]))\n"
        "os.execv(real, [real, *sys.argv[1:]])\n"
    )
    (tmp_path / "etcd").chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    with ControlPlane() as kube:
        assert tried.exists()
        assert ask(kube, "/readyz")[0] == 200


def test_no_server_outlives_an_owner_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = (
        "import sys; from setpoint.testing.kube import ControlPlane\n"
        "kube = ControlPlane(); kube.start(); print(kube._etcd_port, kube._api_port, flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        ports = [int(port) for port in owner.stdout.readline().split()]
        owner.kill()

    assert len(ports) == 2
    for port in ports:
        wait_until_nobody_listens(port)


def test_with_a_controller_manager_controllers_run() -> None:
    with ControlPlane(controller_manager=True) as kube:
        kubectl(kube, "create", "namespace", "brief")
        kubectl(kube, "create", "deployment", "web", "--image=web", "--replicas=2")
        kubectl(kube, "wait", "deployment/web", "--for=jsonpath={.status.replicas}=2", "--timeout=60s")
        kubectl(kube, "delete", "namespace", "brief", "--timeout=60s")

        assert "brief" not in kubectl(kube, "get", "namespaces", "-o", "name")


# --- what the tests stand on


@pytest.fixture
def namespace(kube: ControlPlane) -> str:
    name = f"test-{secrets.token_hex(4)}"
    kubectl(kube, "create", "namespace", name)
    return name


@pytest.fixture(scope="module")
def own() -> Iterator[ControlPlane]:
    """A control plane to restart and compact, which would disturb the tests that share one."""
    with ControlPlane() as control_plane:
        yield control_plane


def wait_until_nobody_listens(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            return
        except OSError:  # accepted by a server that is just dying
            pass
        assert time.monotonic() < deadline, f"port {port} still answers after 30 s"
        time.sleep(0.05)


def kubectl(kube: ControlPlane, *args: str) -> str:
    # Discovery is cached in files by server address, and addresses come back.
    with tempfile.TemporaryDirectory() as cache:
        command = [
            str(kube.binaries.kubectl),
            f"--kubeconfig={kube.kubeconfig}",
            f"--cache-dir={cache}",
            *args,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
    return done.stdout


def ask(
    kube: ControlPlane, path: str, *, who: Identity | str | None = "admin", token: str = ""
) -> tuple[int, Any]:
    """GET ``path`` as the administrator, as another user, or as a stranger."""
    context = ssl.create_default_context(cafile=kube.ca_file)
    if who == "admin":
        context.load_cert_chain(kube.admin_certificate, kube.admin_key)
    elif isinstance(who, Identity):
        with tempfile.NamedTemporaryFile() as file:
            file.write(who.certificate_pem + who.key_pem)
            file.flush()
            context.load_cert_chain(file.name)
    port = int(kube.url.rpartition(":")[2])
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    is_json = response.headers.get_content_type() == "application/json"
    return response.status, json.loads(body) if is_json else body.decode()
