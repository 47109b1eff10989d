"""``setpoint run``: which file, which operators, and what is said when there are none."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from setpoint.cli.loading import load
from setpoint.cli.main import main
from setpoint.cli.running import operate, run_to_the_end
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.context import Context
from setpoint.errors import ConnectionFailed
from setpoint.manager.manager import Manager
from setpoint.net.transport import Request
from setpoint.operator import Operator
from tests.controller.cluster import Cluster, Parent, until
from tests.peer import Reply

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: me, user: {}}]
"""
OPERATOR = """
from setpoint import untyped
from setpoint.operator import Operator

operator = Operator("shop-operator")
again = operator

@operator.controller(untyped("v1", "ConfigMap"))
async def reconcile(config, ctx):
    pass
"""


def invoke(tmp_path: Path, *arguments: str) -> Result:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    return CliRunner().invoke(main, ["run", *arguments, "--kubeconfig", str(kubeconfig)])


def written(tmp_path: Path, text: str, name: str = "shop.py") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = invoke(tmp_path, str(tmp_path / "none.py"))
    assert result.exit_code == 1
    assert "none.py: there is no such file" in result.output


def test_a_file_without_an_operator_is_told_what_to_write(tmp_path: Path) -> None:
    result = invoke(tmp_path, str(written(tmp_path, "x = 1")))
    assert result.exit_code == 1
    assert 'there is no Operator in it; write operator = Operator("shop")' in result.output


def test_what_the_file_raises_is_shown_from_the_file_on(tmp_path: Path) -> None:
    written(tmp_path, "def fail():\n    raise LookupError('gone')\n", "helper.py")
    result = invoke(tmp_path, str(written(tmp_path, "import helper\n\nhelper.fail()\n")))
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert 'shop.py", line 3' in lines[1]
    assert "LookupError: gone" in result.output
    assert "could not be imported; see above" in result.output
    assert "importlib" not in result.output
    assert "cli/run.py" not in result.output


@pytest.mark.parametrize("text", ["def x(:\n", "import not_installed_anywhere\n"])
def test_a_file_that_is_no_python_or_lacks_a_module_says_so(tmp_path: Path, text: str) -> None:
    result = invoke(tmp_path, str(written(tmp_path, text)))
    assert result.exit_code == 1
    assert 'shop.py", line 1' in result.output
    assert "Error" in result.output


def test_every_operator_of_a_file_is_found_once(tmp_path: Path) -> None:
    path = written(tmp_path, OPERATOR + '\nother = Operator("bank-operator")\n')
    assert [each.name for each in load(path).operators] == ["shop-operator", "bank-operator"]


@pytest.mark.parametrize("name", ["operator.py", "json.py", "my-operator.py"])
def test_a_file_may_be_called_like_a_module_of_pythons_own(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, OPERATOR, name)
    assert [each.name for each in load(path).operators] == ["shop-operator"]


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    written(tmp_path, "NAME = 'shop-operator'\n", "neighbour.py")
    path = written(tmp_path, OPERATOR.replace('"shop-operator"', "__import__('neighbour').NAME"))
    assert [each.name for each in load(path).operators] == ["shop-operator"]


def test_a_wrong_address_is_told_in_a_sentence(tmp_path: Path) -> None:
    result = invoke(tmp_path, str(written(tmp_path, OPERATOR)), "--health", "nonsense")
    assert result.exit_code == 1
    assert "'nonsense' is no address" in result.output
    assert "Traceback" not in result.output


def test_an_operator_without_controllers_is_told_what_to_write(tmp_path: Path) -> None:
    text = 'from setpoint.operator import Operator\noperator = Operator("shop-operator")\n'
    result = invoke(tmp_path, str(written(tmp_path, text)))
    assert result.exit_code == 1
    assert "has no controller" in result.output


def test_what_is_left_hanging_does_not_keep_the_process(tmp_path: Path) -> None:
    """A thread that never ends, and a task that cannot be cancelled: the process still ends."""
    import subprocess

    script = """
import asyncio, threading
from setpoint.cli import running
running.EXIT_TIMEOUT = 0.2
async def deaf():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
async def main():
    threading.Thread(target=threading.Event().wait).start()
    asyncio.create_task(deaf())
    await asyncio.sleep(0)
running.run_to_the_end(main())
"""
    ended = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
    assert ended.returncode == 1


BLOCKING = """
import time
from setpoint import untyped
from setpoint.operator import Operator

operator = Operator("shop-operator")

async def keys():
    wait_for_a_database()
    yield

def wait_for_a_database():
    time.sleep(60)

@operator.controller(untyped("v1", "ConfigMap"), build=lambda builder, manager: builder.streams(keys))
async def reconcile(config, ctx):
    pass
"""


def test_a_blocked_event_loop_is_logged_with_its_stack(tmp_path: Path) -> None:
    import subprocess

    operator, kubeconfig = written(tmp_path, BLOCKING), written(tmp_path, KUBECONFIG, "kubeconfig")
    command = [sys.executable, "-m", "setpoint.cli.main", "run", str(operator)]
    command += ["--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        give_up = threading.Timer(60, process.kill)
        give_up.start()
        assert process.stderr is not None
        lines: list[str] = []
        while not any("in wait_for_a_database" in line for line in lines) and process.poll() is None:
            lines.append(process.stderr.readline())
        give_up.cancel()
        process.kill()
    assert any("the event loop has been blocked for" in line for line in lines), lines


def test_where_nothing_hangs_the_process_goes_on() -> None:
    async def main() -> None: ...

    run_to_the_end(main())
    assert not [each for each in threading.enumerate() if isinstance(each, threading.Timer)]


def test_errors_of_the_file_are_clicks_own() -> None:
    with pytest.raises(click.ClickException):
        load(Path("none.py"))


@pytest.mark.virtual_time
async def test_it_says_where_it_runs_once_the_server_has_answered(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server, is_down, asked = Cluster(), True, 0
    operator = Operator("op")

    @operator.controller(Parent)
    async def reconcile(parent: Parent, ctx: Context) -> None: ...

    async def transport(request: Request) -> Reply:
        nonlocal asked
        asked += 1
        if is_down:
            raise ConnectionFailed("connect", "refused")
        return await server(request)

    client = Client(Config(server="https://there", namespace="shop"), transport=transport)
    manager = Manager(client=client, name="op")
    operator.add_to(manager)
    running = asyncio.create_task(operate(client, manager, [operator], install_crds=False))
    await until(lambda: asked > 5)
    assert "op connects to https://there" in caplog.text
    assert "runs on" not in caplog.text
    is_down = False
    await until(lambda: "op runs on https://there; controllers: parent" in caplog.text)
    manager.stop()
    await running
