"""``setpoint completion``: what it prints completes, asked as a shell asks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from setpoint.cli.main import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_prints_a_script_for_the_shell(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_SETPOINT_COMPLETE" in result.output


def test_commands_are_completed() -> None:
    program = "from setpoint.cli.main import main; main(prog_name='setpoint')"
    asked = {"_SETPOINT_COMPLETE": "bash_complete", "COMP_WORDS": "setpoint d", "COMP_CWORD": "1"}
    told = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["plain,demo", "plain,dev"]
