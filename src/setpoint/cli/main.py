"""The command ``setpoint``: a group of commands, each in a file of its own, read when it is asked for.

What went wrong on purpose (``SetpointError``) is told in a sentence, with a command that may help, and ends
with exit code 1, or 2 where 1 means something else (``prove.py``); ``--debug`` shows where it came from.
Anything else is a bug, and shows its traceback.
"""

from __future__ import annotations

from importlib import import_module

import click

from setpoint.errors import (
    ConfigError,
    ConnectionFailed,
    Forbidden,
    SetpointError,
    Unauthorized,
)
from setpoint.version import VERSION

_NAMES = ("completion", "crd", "demo", "dev", "models", "prove", "replay", "run", "up", "why")

# What may help, by what went wrong.
_TRY: dict[type[SetpointError], str] = {
    ConfigError: "kubectl config view; or, for a cluster of your own: setpoint up",
    ConnectionFailed: "kubectl cluster-info; or, for a cluster of your own: setpoint up",
    Forbidden: "kubectl auth can-i --list",
    Unauthorized: "kubectl auth whoami",
}


def told(error: SetpointError) -> str:
    """An error for people: what happened, and the command that may help."""
    command = next((command for kind, command in _TRY.items() if isinstance(error, kind)), "")
    return f"{error}\nTry: {command}" if command else str(error)


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, in the module of that name."""
        if cmd_name not in self.commands and cmd_name in _NAMES:
            self.add_command(getattr(import_module(f"setpoint.cli.{cmd_name}"), cmd_name))
        return self.commands.get(cmd_name)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SetpointError as error:
            if ctx.params["debug"]:
                raise
            raise click.ClickException(told(error)) from error


_HELP = """Level-triggered Kubernetes controllers in Python, and a cluster to try them in.

\b
    setpoint demo              watch an operator at work, in a cluster in this process
    setpoint dev webapp.py     run yours so, loaded again whenever it is saved
    setpoint run webapp.py     run it on the cluster that kubectl would use
    setpoint up                a cluster alone, for kubectl and everyone else
"""


@click.group(cls=_Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="setpoint %(version)s")
@click.option("--debug", is_flag=True, help="Show where an error came from.")
def main(*, debug: bool) -> None:
    pass


if __name__ == "__main__":
    main()
