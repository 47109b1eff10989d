"""``setpoint replay PLAN.json``: runs one plan that ``setpoint prove`` has kept, and tells all.

Exit codes: 0, the operator survives it now; 1, it does not, or two runs of it differed; 2, the fault no
longer finds a place to strike, so that nothing is shown.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from setpoint.cli.prove import exit_code, subjects, told

if TYPE_CHECKING:
    from setpoint.testing.proof.report import Report

_HELP = """Run one plan again.

PLAN.json is what `setpoint prove` has written for a failure: the plan, and what the proof was told.  It is
run twice, judged as it was then, and told whole.
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
    try:
        report = replayed(plan.read_bytes(), operator)
    except ValueError as error:
        raise click.ClickException(f"{plan}: {error}") from error
    click.echo(told(report))
    sys.exit(exit_code([report]))


def replayed(plan: str | bytes, operator: Path | None = None) -> Report:
    """Run a plan that was kept, with the operator that it names, or that is in this file."""
    from setpoint.testing.proof.kept import read_kept  # noqa: PLC0415 - much code, for this command alone
    from setpoint.testing.proof.prove import replay as run  # noqa: PLC0415

    kept = read_kept(plan)
    if operator is None and not kept.operator:
        raise ValueError("it names no operator: give --operator OPERATOR.py")
    found = subjects(operator or Path(kept.operator))
    named = [each for each in found if each.name == kept.name] if kept.name else found
    if len(named) != 1:
        names = ", ".join(each.name for each in found)
        raise ValueError(
            f"it is of the operator {kept.name or '(unnamed)'}, and in the file there are {names}"
        )
    return run(named[0].make, kept, clouds=named[0].clouds)
