"""``setpoint completion SHELL``: what a shell must be told to complete our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_HELP = """Print the lines that teach a shell to complete setpoint's commands and options.

\b
    bash:  echo 'eval "$(setpoint completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(setpoint completion zsh)"' >> ~/.zshrc
    fish:  setpoint completion fish > ~/.config/fish/completions/setpoint.fish
"""


@click.command(help=_HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, /, *, shell: str) -> None:
    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"click cannot complete in {shell}")
    try:
        script = found(ctx.find_root().command, {}, "setpoint", "_SETPOINT_COMPLETE").source()
    except RuntimeError as error:  # bash is too old, or is not there
        raise click.ClickException(str(error)) from error
    click.echo(script)
