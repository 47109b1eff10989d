"""The command ``setpoint``: how it tells of errors, and that it helps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from setpoint.cli.main import main, told
from setpoint.errors import ConfigError, ConnectionFailed, NotFound


def test_a_failure_is_told_in_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    result = CliRunner().invoke(
        main, ["models", "--kubeconfig", str(missing), "--output", str(tmp_path / "m")]
    )
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert str(missing) in result.output
    assert "Traceback" not in result.output


def test_debug_shows_where_a_failure_came_from(tmp_path: Path) -> None:
    arguments = ["--debug", "models", "--kubeconfig", str(tmp_path / "none"), "--output", str(tmp_path / "m")]
    with pytest.raises(ConfigError):
        CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_every_command_says_what_it_does() -> None:
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(limit=60).endswith("."), name
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_a_command_is_read_when_it_is_asked_for() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import sys, setpoint.cli.main; print(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
    )
    read = {name for name in told.stdout.split() if name.startswith("setpoint.")}
    assert read == {"setpoint.cli", "setpoint.cli.main", "setpoint.errors", "setpoint.version"}


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert CliRunner().invoke(main, ["--version"]).output == f"setpoint {version('setpoint')}\n"


def test_an_error_names_the_command_that_may_help() -> None:
    refused = told(ConnectionFailed("get /api", "127.0.0.1:1 refuses connections"))
    assert refused.splitlines() == [
        "get /api: 127.0.0.1:1 refuses connections (is the server up, and is this its address?)",
        "Try: kubectl cluster-info; or, for a cluster of your own: setpoint up",
    ]
    assert told(NotFound("get v1 Pod shop/web", "not found")) == "get v1 Pod shop/web: not found"


def test_where_no_cluster_is_named_it_says_how_to_have_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    result = CliRunner().invoke(main, ["models", "--output", str(tmp_path / "m")])
    assert result.exit_code == 1
    assert "KUBECONFIG is not set" in result.output
    assert "for a cluster of your own: setpoint up" in result.output
