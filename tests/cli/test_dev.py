"""``setpoint dev``, as somebody uses it: on a real terminal, and with its output sent elsewhere."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pexpect
from click.testing import CliRunner
from pexpect.popen_spawn import PopenSpawn

from setpoint.cli.main import main
from tests.cli.operators import OPERATOR, Folder, save
from tests.cli.terminal import terminal


def test_on_a_terminal_it_draws_follows_saves_and_the_size_and_ends_in_order(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    arguments = ("--manifest", str(folder.manifest), "--controllers", "none")
    with terminal("dev", str(folder.operator), *arguments) as shown:
        shown.sees("greeting-operator")
        shown.sees("└─ ● ConfigMap hello")
        shown.sees("→ apply ConfigMap hello")
        shown.sees("the word is one")

        shown.resize(60, 20)
        shown.sees(f"objects {'─' * 52}", end="[^─]")

        save(folder.operator, OPERATOR + "\ndef (\n")
        shown.sees("SyntaxError")
        folder.say("two")
        save(folder.operator, OPERATOR)
        shown.sees("greeting.py was loaded again")
        shown.sees("the word is two")

        shown.interrupt()
        shown.sees("ended in order")
        assert shown.status() == 0


def test_with_its_output_sent_elsewhere_it_tells_a_line_of_each_event(tmp_path: Path) -> None:
    folder, kubeconfig = Folder(tmp_path), tmp_path / "kubeconfig"
    options = ["--controllers", "none", "--manifest", str(folder.manifest), "--kubeconfig", str(kubeconfig)]
    command = [sys.executable, "-m", "setpoint.cli.main", "dev", str(folder.operator), *options]
    process = PopenSpawn(command, encoding="utf-8", timeout=60)
    try:
        process.expect("greeting-operator runs on https://127.0.0.1:")
        process.expect_exact(f"kubectl --kubeconfig {kubeconfig} get all -A")
        process.expect("the word is one")
        process.expect("wrote apply ConfigMap default/hello")
        folder.say("two")
        process.expect("greeting.py was loaded again")
        process.expect("the word is two")
        process.kill(signal.SIGINT)
        process.expect("ended in order")
        process.expect(pexpect.EOF)
        assert process.proc.wait(30) == 0
    finally:
        process.proc.kill()
        process.proc.communicate()


def test_a_file_that_is_broken_from_the_start_is_told_and_nothing_starts(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.operator.write_text("def (\n")
    result = CliRunner().invoke(main, ["dev", str(folder.operator)])
    assert result.exit_code == 1
    assert "SyntaxError" in result.output
    assert "could not be imported; see above" in result.output


def test_an_unknown_controller_is_told_with_those_that_are_there(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    result = CliRunner().invoke(main, ["dev", str(folder.operator), "--controllers", "nonsense"])
    assert result.exit_code == 2
    assert "there is no controller nonsense: choose among *, none," in result.output
