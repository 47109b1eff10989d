"""``setpoint replay PLAN.json``: runs one plan that ``setpoint prove`` has kept, and tells all."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from setpoint.cli.prove import makers

_HELP = """Run one plan again.

PLAN.json is what `setpoint prove` has written for a failure.  It is run twice, judged, and told whole.
"""


@click.command(help=_HELP)
@click.argument("plan", metavar="PLAN.json", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--operator",
    metavar="OPERATOR.py",
    type=click.Path(path_type=Path),
    help="The operator; the one that the plan names, unless given.",
)
def replay(*, plan: Path, operator: Path | None) -> None:
    from setpoint.testing.proof.plans import read_plan  # noqa: PLC0415
    from setpoint.testing.proof.prove import replay as run  # noqa: PLC0415 - much code, for this command alone

    try:
        kept = read_plan(plan.read_bytes())
    except ValueError as error:
        raise click.ClickException(f"{plan}: {error}") from error
    if operator is None and not kept.operator:
        raise click.ClickException(f"{plan} names no operator: give --operator OPERATOR.py")
    reports = [run(make, kept) for _, make in makers(operator or Path(kept.operator))]
    for report in reports:
        click.echo(str(report))
    sys.exit(0 if all(report.is_good for report in reports) else 1)
