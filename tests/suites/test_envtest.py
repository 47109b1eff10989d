"""The programs that envtest starts answer to its flags: certificates, port, health, and who a client is."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setpoint.net.tls import Authority
from tests.suites.envtest import assets, flags

_DEADLINE = 30.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(*command: str) -> Iterator[None]:
    process = subprocess.Popen(command)
    try:
        yield
        process.terminate()
        assert process.wait(_DEADLINE) == 0
    finally:
        process.kill()
        process.wait()


def asked(connection: http.client.HTTPConnection, path: str) -> bytes:
    """The answer, once there is one."""
    deadline = time.monotonic() + _DEADLINE
    while True:
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, f"nobody answers {path}"
            connection.close()
            continue
        body = answer.read()
        assert answer.status == 200, body
        return body


def test_a_flag_has_every_value_that_was_given() -> None:
    assert flags(["--a=1", "--b", "--a=2=3"]) == {"a": ["1", "2=3"], "b": [""]}


def test_it_has_none_of_the_flags_of_former_releases(tmp_path: Path) -> None:
    program = assets(tmp_path, Path("kubectl")) / "kube-apiserver"
    assert not subprocess.run([program, "--help"], capture_output=True, check=True).stdout


def test_etcd_is_well(tmp_path: Path) -> None:
    port = free_port()
    program = assets(tmp_path, Path("kubectl")) / "etcd"
    with running(str(program), f"--listen-client-urls=http://127.0.0.1:{port}"):
        assert json.loads(asked(http.client.HTTPConnection("127.0.0.1", port), "/health")) == {
            "health": "true"
        }


def test_a_client_is_whom_its_certificate_names(tmp_path: Path) -> None:
    servers, clients = Authority.create("servers"), Authority.create("clients")
    mine = servers.issue("localhost", hosts=["127.0.0.1"], server=True)
    admin = clients.issue("admin", organizations=["system:masters"], client=True)
    for name, content in {
        "apiserver.crt": mine.certificate_pem,
        "apiserver.key": mine.key_pem,
        "clients.crt": clients.certificate_pem,
        "admin.pem": admin.certificate_pem + admin.key_pem,
    }.items():
        (tmp_path / name).write_bytes(content)
    context = ssl.create_default_context(cadata=servers.certificate_pem.decode())
    context.load_cert_chain(tmp_path / "admin.pem")
    port = free_port()
    program = assets(tmp_path / "assets", Path("kubectl")) / "kube-apiserver"
    told = [f"--cert-dir={tmp_path}", f"--client-ca-file={tmp_path / 'clients.crt'}", f"--secure-port={port}"]
    with running(str(program), *told, "--disable-admission-plugins=ServiceAccount", "--unheard-of=yes"):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
        assert asked(connection, "/healthz") == b"ok"
        found = json.loads(asked(connection, "/api/v1/namespaces"))
        connection.close()
    assert "default" in [one["metadata"]["name"] for one in found["items"]]
