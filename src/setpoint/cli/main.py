"""The command ``setpoint``: a group of commands, each in a file of its own, read when it is asked for.

What went wrong on purpose (``SetpointError``) is told in a sentence and ends with exit code 1; ``--debug``
shows where it came from.  Anything else is a bug, and shows its traceback.
"""

from __future__ import annotations

from importlib import import_module

import click

from setpoint.errors import SetpointError

_NAMES = ("models", "run", "up", "why")


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
            raise click.ClickException(str(error)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="setpoint", message="setpoint %(version)s")
@click.option("--debug", is_flag=True, help="Show where an error came from.")
def main(*, debug: bool) -> None:
    """Level-triggered Kubernetes controllers in Python."""


if __name__ == "__main__":
    main()
