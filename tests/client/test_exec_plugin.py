"""The rules of ``client/exec_plugin.py`` and ``client/exec_credential.py``, with real programs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.client import exec_plugin
from setpoint.client.exec_credential import (
    VERSIONS,
    ExecPlugin,
    Issued,
    cluster_info,
    exec_info,
    read_answer,
)
from setpoint.client.exec_plugin import MAX_ANSWER, run
from setpoint.errors import CredentialError
from setpoint.net.trust import CertificatePair

CANARY = "s3cr3t-canary"
V1, V1BETA1 = VERSIONS

Script = Callable[..., ExecPlugin]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Makes a plugin of Python code."""

    def make(code: str, **settings: Any) -> ExecPlugin:
        path = tmp_path / "plugin"
        path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{code}\n")
        path.chmod(0o755)
        return ExecPlugin(str(path), **({"interactive_mode": "Never"} | settings))

    return make


def printing(answer: object) -> str:
    return f"print({json.dumps(json.dumps(answer))})"


def credential(version: str = V1, **status: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "ExecCredential", "status": status}


async def ask(plugin: ExecPlugin, *, timeout: float = 30, cluster: dict[str, Any] | None = None) -> Issued:
    return await run(plugin, cluster or {}, "use context 'dev'", timeout)


async def refused(plugin: ExecPlugin, *, timeout: float = 30) -> str:
    """What is said of a plugin that failed; nothing of what it printed."""
    with pytest.raises(CredentialError) as caught:
        await ask(plugin, timeout=timeout)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    said = str(caught.value)
    assert said.startswith(f"use context 'dev': run credential plugin {plugin.command}: ")
    return said


# What it is told, and what it may answer


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_plugin_gives_a_token(script: Script, version: str) -> None:
    plugin = script(printing(credential(version, token="t")), api_version=version)
    assert await ask(plugin) == Issued("t")


async def test_a_plugin_gives_a_certificate_and_an_expiry(script: Script) -> None:
    answer = credential(
        clientCertificateData="CERT", clientKeyData="KEY", expirationTimestamp="2030-01-01T01:00:00+01:00"
    )
    assert await ask(script(printing(answer))) == Issued(
        certificate=CertificatePair(b"CERT", b"KEY"), expires=datetime(2030, 1, 1, tzinfo=UTC)
    )


ECHO = """
seen = {"args": sys.argv[1:], "env": os.environ["FROM_KUBECONFIG"], "path": bool(os.environ.get("PATH")),
        "info": json.loads(os.environ["KUBERNETES_EXEC_INFO"]), "stdin": sys.stdin.read()}
print(json.dumps({"apiVersion": seen["info"]["apiVersion"], "kind": "ExecCredential",
                  "status": {"token": json.dumps(seen)}}))
"""


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_plugin_gets_its_arguments_its_environment_and_the_cluster(
    script: Script, version: str
) -> None:
    plugin = script(
        ECHO,
        args=("get-token", "--x=1"),
        env=(("FROM_KUBECONFIG", "yes"),),
        api_version=version,
        provide_cluster_info=True,
    )
    cluster = cluster_info(
        server="https://x:6443",
        ca=b"CA",
        tls_server_name="n",
        insecure=False,
        proxy_url="",
        config={"audience": "a"},
    )
    seen = json.loads((await ask(plugin, cluster=cluster)).token)
    assert seen == {
        "args": ["get-token", "--x=1"],
        "env": "yes",
        "path": True,
        "stdin": "",
        "info": {
            "apiVersion": version,
            "kind": "ExecCredential",
            "spec": {
                "interactive": False,
                "cluster": {
                    "server": "https://x:6443",
                    "tls-server-name": "n",
                    "certificate-authority-data": "Q0E=",
                    "config": {"audience": "a"},
                },
            },
        },
    }


def test_the_cluster_is_told_only_when_asked_for() -> None:
    info = json.loads(exec_info(ExecPlugin("p"), {"server": "https://x"}, interactive=True))
    assert info["spec"] == {"interactive": True}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (CANARY, "not an ExecCredential"),
        ("", "not an ExecCredential"),
        (f'"{CANARY}"', "not an ExecCredential"),
        (f"[{CANARY!r}]", "not an ExecCredential"),
        (json.dumps({"kind": CANARY, "apiVersion": V1}), "not of kind ExecCredential"),
        (json.dumps({"kind": "ExecCredential", "apiVersion": CANARY}), "it answered in another version"),
        (json.dumps(credential(V1BETA1, token=CANARY)), f"it answered in {V1BETA1}"),
        (json.dumps({"kind": "ExecCredential", "apiVersion": V1}), "neither a token nor a certificate"),
        (json.dumps(credential()), "neither a token nor a certificate"),
        (json.dumps(credential(token="")), "neither a token nor a certificate"),
        (json.dumps(credential(clientCertificateData=CANARY)), "a certificate without its key"),
        (json.dumps(credential(token="t", clientKeyData=CANARY)), "a certificate without its key"),
        (json.dumps(credential(token=f"{CANARY}\n")), "the token it gave holds control characters"),
        (json.dumps(credential(token=[CANARY])), "at `$.status.token`"),
        (json.dumps(credential(token="t", expirationTimestamp=CANARY)), "at `$.status.expirationTimestamp`"),
    ],
)
def test_rubbish_is_refused_and_not_shown(answer: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_answer(answer.encode(), V1)
    assert said in str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@given(st.binary())
def test_no_rubbish_breaks_the_reader(rubbish: bytes) -> None:
    with pytest.raises(ValueError, match="it printed"):
        read_answer(rubbish, V1)


def test_an_expiry_without_a_zone_is_in_utc() -> None:
    answer = json.dumps(credential(token="t", expirationTimestamp="2030-01-01T00:00:00"))
    assert read_answer(answer.encode(), V1).expires == datetime(2030, 1, 1, tzinfo=UTC)


def test_no_repr_shows_an_answer() -> None:
    pair = CertificatePair(b"CERT", CANARY.encode())
    assert CANARY not in repr(Issued(CANARY, pair, datetime.now(UTC) + timedelta(hours=1)))


# What can go wrong


async def test_a_plugin_that_fails_is_told_with_its_exit_code_and_last_words(script: Script) -> None:
    code = f"""
print("{CANARY}")
for number in range(20): print("line", number, file=sys.stderr)
print("\\x1b[31mplease log in\\x1b[0m", "x" * 1000, file=sys.stderr)
sys.exit(3)
"""
    said = await refused(script(code, install_hint="see \x1b[1mhttps://plugin.example"))
    assert "it ended with exit code 3" in said
    assert "please log in" in said
    assert "line 11\n" in said
    assert "line 10\n" not in said, "only the last lines"
    assert "\x1b" not in said
    assert "x" * 400 not in said
    assert "run it by hand" in said
    assert "https://plugin.example" in said


async def test_a_plugin_that_prints_rubbish_is_told_and_its_output_not_shown(script: Script) -> None:
    said = await refused(script(f"print('{CANARY}'); print('careful', file=sys.stderr)"))
    assert "not an ExecCredential" in said
    assert "careful" in said


async def test_a_plugin_ended_by_a_signal_is_told(script: Script) -> None:
    said = await refused(script("os.kill(os.getpid(), 9)"))
    assert "signal 9 ended it; it said nothing on stderr" in said


async def test_a_missing_plugin_is_told_with_how_to_install_it(tmp_path: Path) -> None:
    plugin = ExecPlugin("no-such-plugin-anywhere", interactive_mode="Never", install_hint="brew install it")
    assert "there is no such program in PATH (brew install it)" in await refused(plugin)
    plugin = ExecPlugin(str(tmp_path / "missing"), interactive_mode="Never")
    assert "there is no such program (install it" in await refused(plugin)


async def test_a_plugin_that_is_no_program_is_told(tmp_path: Path, script: Script) -> None:
    plugin, file = script(""), tmp_path / "plugin"
    file.chmod(0o644)
    assert "may not be executed (make it executable" in await refused(plugin)
    file.chmod(0o755)
    file.write_bytes(b"\0\1\2\3")
    assert "could not be started" in await refused(plugin)
    assert "could not be started" in await refused(script("", args=("a\0b",)))


class Life:
    """A pipe that a plugin, and all it starts, hold open for as long as they live."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.code = f"life = open({str(path)!r}, 'wb', buffering=0)\nlife.write(b'x')"

    def close(self) -> None:
        os.close(self._reader)

    async def began(self) -> None:
        await self._until_read(b"x")

    async def ended(self) -> None:
        await self._until_read(b"")

    async def _until_read(self, awaited: bytes) -> None:
        while True:
            with contextlib.suppress(BlockingIOError):  # held open, and nothing written
                if os.read(self._reader, 1) == awaited:
                    return
            await asyncio.sleep(0.01)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "life")
    yield life
    life.close()


async def test_a_plugin_that_hangs_is_killed_with_all_it_started(script: Script, life: Life) -> None:
    code = f"""
print("waiting for a login", file=sys.stderr, flush=True)
{life.code}
if os.fork() == 0:
    time.sleep(1000)
time.sleep(1000)
"""
    asking = asyncio.create_task(refused(script(code), timeout=3))
    await life.began()
    said = await asking
    assert "it did not end within 3 s and was killed" in said
    assert "waiting for a login" in said
    await life.ended()


async def test_an_endless_answer_is_cut_off(script: Script) -> None:
    said = await refused(script(f"while True: sys.stdout.write('{CANARY}' * 1000)"))
    assert f"it printed more than {MAX_ANSWER} bytes and was killed" in said


async def test_a_plugin_that_prints_too_much_has_not_ended_yet() -> None:
    heard = exec_plugin._Listener()
    heard.pipe_data_received(1, b"x" * (MAX_ANSWER + 1))
    assert heard.over.is_set()
    assert not heard.ended.is_set(), "closing now would take the exit code from whoever waits for it"
    heard.process_exited()
    assert heard.ended.is_set()


async def test_of_endless_complaints_only_the_end_is_kept() -> None:
    heard = exec_plugin._Listener()
    for number in range(1000):
        heard.pipe_data_received(2, f"{number:1000}".encode())
    assert len(heard.stderr) < 10_000
    assert heard.stderr.endswith(b" 999")


async def test_endless_complaints_do_not_hold_up_the_answer(script: Script) -> None:
    code = f"for _ in range(2000): sys.stderr.write('x' * 1000)\n{printing(credential(token='t'))}"
    assert (await ask(script(code))).token == "t"


async def test_a_helper_left_behind_does_not_hold_up_the_answer(script: Script, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"""
child = os.fork()
if child == 0:
    time.sleep(1000)
open({str(pid)!r}, "w").write(str(child))
{printing(credential(token="t"))}
"""
    try:
        assert (await ask(script(code))).token == "t"
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


async def test_the_loop_runs_on_while_a_plugin_does(script: Script, tmp_path: Path) -> None:
    """The plugin waits for a file that only the loop can write."""
    go = tmp_path / "go"
    plugin = script(f"while not os.path.exists({str(go)!r}): pass\n{printing(credential(token='t'))}")
    asking = asyncio.create_task(ask(plugin))
    await asyncio.sleep(0)
    go.touch()
    assert (await asking).token == "t"


async def test_a_cancelled_run_kills_the_plugin(script: Script, life: Life) -> None:
    asking = asyncio.create_task(ask(script(f"{life.code}\ntime.sleep(1000)")))
    await life.began()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await life.ended()


async def test_a_plugin_that_needs_a_terminal_is_not_run_without_one(
    script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    plugin = script(f"open({str(ran)!r}, 'w')", interactive_mode="Always")
    with (tmp_path / "stdin").open("w+") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert "it needs a terminal (interactiveMode: Always)" in await refused(plugin)
        monkeypatch.setattr(sys, "stdin", None)
        assert "it needs a terminal" in await refused(plugin)
    assert not ran.exists()


async def test_a_plugin_that_would_like_a_terminal_does_without(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    plugin = script(ECHO, interactive_mode="IfAvailable", env=(("FROM_KUBECONFIG", ""),))
    seen = json.loads((await ask(plugin)).token)
    assert seen["info"]["spec"]["interactive"] is False
    assert seen["stdin"] == ""


async def test_at_a_terminal_the_plugin_may_ask_there(tmp_path: Path) -> None:
    """In a process of its own whose standard input is a terminal."""
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "print('name?', file=sys.stderr, flush=True)\nname = sys.stdin.readline().strip()\n"
        "told = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['interactive']\n"
        "status = {'token': name + str(told)}\n"
        f"print(json.dumps(dict(apiVersion={V1!r}, kind='ExecCredential', status=status)))\n"
    )
    plugin.chmod(0o755)
    program = (
        "import asyncio, sys\n"
        "from setpoint.client.exec_credential import ExecPlugin\n"
        "from setpoint.client.exec_plugin import run\n"
        f"plugin = ExecPlugin({str(plugin)!r}, interactive_mode='Always')\n"
        "print(asyncio.run(run(plugin, {}, 'test', 30)).token)\n"
    )
    ours, theirs = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdin=theirs, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        os.write(ours, b"jane\n")
        stdout, stderr = await process.communicate()
    finally:
        os.close(ours)
        os.close(theirs)
    assert (process.returncode, stdout.decode().strip()) == (0, "janeTrue"), stderr.decode()
    assert b"name?" in stderr, "its questions are seen at once"
