"""The command ``setpoint``: a group of commands, each in a file of its own.

What went wrong on purpose (``SetpointError``) is told in a sentence and ends with exit code 1; ``--debug``
shows where it came from.  Anything else is a bug, and shows its traceback.
"""

from __future__ import annotations

import click

from setpoint.cli.models import models
from setpoint.cli.run import run
from setpoint.cli.why import why
from setpoint.errors import SetpointError


class _Commands(click.Group):
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


for command in (models, run, why):
    main.add_command(command)

if __name__ == "__main__":
    main()
