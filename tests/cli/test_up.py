"""``setpoint up``: a process that says when it is ready, serves, and ends when told to."""

from __future__ import annotations

import base64
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from setpoint.api.yaml import load
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.trust import ssl_context
from tests.server.http.asking import MAPS, Asking, config_map

READY = re.compile(
    r"ready at (https://127\.0\.0\.1:\d+) after [\d.]+ s; try: kubectl --kubeconfig (\S+) get namespaces\n"
)


class Up(NamedTuple):
    process: subprocess.Popen[str]
    url: str
    kubeconfig: Path


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "setpoint.cli.main", "up", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def up(*arguments: str) -> Iterator[Up]:
    """A server that is ready; ended by SIGTERM, and it must end well."""
    process = start(*arguments)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = READY.fullmatch(line)
        assert found, line or process.communicate()[1]
        yield Up(process, found[1], Path(found[2]))
        process.terminate()
        assert process.wait(30) == 0, process.communicate()[1]
    finally:
        process.kill()
        process.communicate()


def asking(kubeconfig: Path) -> tuple[HttpTransport, dict[str, str]]:
    told = load(kubeconfig.read_text())
    cluster, user = told["clusters"][0]["cluster"], told["users"][0]["user"]
    context = ssl_context(ca=base64.b64decode(cluster["certificate-authority-data"]))
    transport = HttpTransport(Endpoint(cluster["server"], ssl_context=lambda: context))
    return transport, {"Authorization": f"Bearer {user['token']}"}


async def test_it_serves_what_its_kubeconfig_leads_to() -> None:
    with up() as server:
        assert stat.S_IMODE(server.kubeconfig.stat().st_mode) == 0o600
        transport, headers = asking(server.kubeconfig)
        async with transport:
            got = await Asking(transport)("GET", "/api/v1/namespaces/default", headers=headers)
            assert got.json["kind"] == "Namespace"
            assert (await Asking(transport)("GET", "/api/v1/namespaces")).status == 401
    assert not server.kubeconfig.exists(), "what was in memory is gone, and so is the way to it"


@pytest.mark.slow
async def test_what_is_in_a_directory_outlives_the_process(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    with up("--data", str(data)) as server:
        assert server.kubeconfig == data / "kubeconfig"
        transport, headers = asking(server.kubeconfig)
        async with transport:
            assert (await Asking(transport)("POST", MAPS, config_map("a"), headers)).status == 201
        second = start("--data", str(data))
        _, told = second.communicate(timeout=30)
        assert second.returncode == 1
        assert "another server has it open" in told
        assert "Traceback" not in told
    with up("--data", str(data), "--kubeconfig", str(tmp_path / "mine")) as server:
        assert server.kubeconfig == tmp_path / "mine"
        transport, headers = asking(server.kubeconfig)
        async with transport:
            assert (await Asking(transport)("GET", f"{MAPS}/a", headers=headers)).status == 200


@pytest.mark.slow
def test_a_port_that_is_taken_is_told_in_a_sentence() -> None:
    with up() as server:
        second = start("--port", server.url.rpartition(":")[2])
        _, told = second.communicate(timeout=30)
        assert second.returncode == 1
        assert told.startswith("Error: listen on 127.0.0.1:")
        assert "Traceback" not in told


async def test_a_token_that_is_given_is_used() -> None:
    with up("--token", "hush") as server:
        transport, _ = asking(server.kubeconfig)
        async with transport:
            got = await Asking(transport)("GET", "/api", headers={"Authorization": "Bearer hush"})
            assert got.status == 200


def arguments_of(pid: int) -> str:
    """What every user of the machine can see of a process."""
    return subprocess.check_output(["ps", "-ww", "-o", "args=", "-p", str(pid)], text=True)


@pytest.mark.parametrize("how", ["file", "variable"])
async def test_a_token_can_be_given_where_no_list_of_processes_shows_it(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--controllers", "none"]
    if how == "file":
        (tmp_path / "token").write_text("hush\n")
        arguments += ["--token-file", str(tmp_path / "token")]
    else:
        monkeypatch.setenv("SETPOINT_TOKEN", "hush")
    with up(*arguments) as server:
        transport, _ = asking(server.kubeconfig)
        async with transport:
            got = await Asking(transport)("GET", "/api", headers={"Authorization": "Bearer hush"})
            assert got.status == 200
        shown = arguments_of(server.process.pid)
        assert "setpoint" in shown
        assert "hush" not in shown


@pytest.mark.parametrize(("content", "more"), [("", ()), ("a b", ()), ("a", ("--token", "b"))])
def test_a_token_that_is_none_or_two_is_told_in_a_sentence(
    content: str, more: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(content)
    process = start("--token-file", str(tmp_path / "token"), *more)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "--token-file" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_word(number: signal.Signals) -> None:
    process = start()
    assert process.stdout is not None
    assert READY.fullmatch(process.stdout.readline())
    os.kill(process.pid, number)
    out, told = process.communicate(timeout=30)
    assert (process.returncode, out, told) == (0, "", "")


async def test_who_is_in_the_file_of_tokens_may_do_what_roles_say(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text('secret-of-eve,eve,1,"guests"\n')
    with up("--controllers", "none", "--token-auth-file", str(tokens)) as server:
        transport, _ = asking(server.kubeconfig)
        async with transport:
            got = await Asking(transport)("GET", MAPS, headers={"Authorization": "Bearer secret-of-eve"})
            assert got.status == 403


async def test_with_always_allow_everyone_with_a_credential_may_do_everything(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("secret-of-eve,eve,1\n")
    arguments = ("--controllers", "none", "--authorization", "always-allow", "--token-auth-file", str(tokens))
    with up(*arguments) as server:
        transport, _ = asking(server.kubeconfig)
        async with transport:
            got = await Asking(transport)("GET", MAPS, headers={"Authorization": "Bearer secret-of-eve"})
            assert got.status == 200


def test_a_file_of_tokens_that_is_none_is_told_in_a_sentence(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("who?\n")
    process = start("--controllers", "none", "--token-auth-file", str(tokens))
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert errors.startswith("Error: read ")
    assert "line 1 is not token,user,uid" in errors


def test_a_controller_that_there_is_not_is_told_with_those_that_are() -> None:
    process = start("--controllers", "nobody")
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "there is no controller nobody: choose among *, none," in errors


def test_a_service_that_is_told_wrong_is_refused_in_a_sentence() -> None:
    process = start("--service", "shop=127.0.0.1:9443")
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "shop=127.0.0.1:9443 is not NAMESPACE/NAME=HOST:PORT" in errors
