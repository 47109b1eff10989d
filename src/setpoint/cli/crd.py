"""``setpoint crd OPERATOR.py``: the CustomResourceDefinitions of an operator's kinds, as YAML."""

from __future__ import annotations

from pathlib import Path

import click

_HELP = """Print the CustomResourceDefinitions of the operators of a Python file, as YAML.

\b
    setpoint crd webapp.py
    setpoint crd webapp.py | kubectl apply -f -
    setpoint crd webapp.py > crds.yaml

No cluster is asked.  Kinds that are not Python classes have none: they are somebody else's.
"""


@click.command(help=_HELP)
@click.argument("operator", metavar="OPERATOR.py", type=click.Path(path_type=Path))
def crd(*, operator: Path) -> None:
    from setpoint.api import yaml  # noqa: PLC0415 - --help needs none of this
    from setpoint.cli.loading import load  # noqa: PLC0415

    definitions = load(operator).crds()
    if not definitions:
        raise click.ClickException(
            f"{operator}: none of its kinds is a class; begin one with class X(CustomResource, …)"
        )
    click.echo(yaml.dump_all(definitions), nl=False)
