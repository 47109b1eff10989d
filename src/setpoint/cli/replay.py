"""``setpoint replay PLAN.json``: runs one plan that ``setpoint prove`` has kept, and tells all.

With ``--cluster`` it does so on a cluster that runs, in namespaces of its own, as ``setpoint prove`` does.

Exit codes: 0, the operator survives it now; 1, it does not, or two runs of it differed; 2, the fault no
longer finds a place to strike, or the plan or its operator cannot be run, so that nothing is shown.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from setpoint.cli.loading import CannotLoad
from setpoint.cli.prove import (
    CannotBeAsked,
    Proven,
    Proving,
    cluster_of,
    cluster_options,
    exit_code,
    subjects,
    told,
)

if TYPE_CHECKING:
    from setpoint.client.config import Config
    from setpoint.testing.proof.kept import Kept
    from setpoint.testing.proof.report import Report

_HELP = """Run one plan again.

PLAN.json is what `setpoint prove` has written for a failure: the plan, and what the proof was told.  It is
run twice, judged as it was then, and told whole.

\b
    setpoint replay .setpoint/proof/webapp-operator-O3-E2-1.json
    setpoint replay PLAN.json --operator webapp.py
    setpoint replay PLAN.json --cluster --context kind-kind

With --cluster it is run on a real cluster, in namespaces setpoint-proof-* that are deleted again, and what
needs Setpoint's own server cannot be run.
"""


@click.command(cls=Proving, help=_HELP)
@click.argument("plan", metavar="PLAN.json", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--operator",
    metavar="OPERATOR.py",
    type=click.Path(path_type=Path),
    help="The operator; the one that the plan names, unless given.",
)
@cluster_options
def replay(
    *,
    plan: Path,
    operator: Path | None,
    cluster: bool,
    kubeconfig: Path | None,
    context: str | None,
    yes: bool,
) -> None:
    from setpoint.testing.proof.kept import read_kept  # noqa: PLC0415 - much code, for this command alone

    config = cluster_of(kubeconfig, context, is_asked=cluster, is_meant=yes)
    try:
        kept = read_kept(plan.read_bytes())
        report = _replayed(kept, operator, config, anywhere=True)
    except CannotLoad:
        raise
    except ValueError as error:
        raise CannotBeAsked(f"replay {plan}: {error}") from error
    click.echo(told(report))
    if kept.how.is_on_cluster and config is None:
        click.echo("\nIt was found on a cluster, and this was not one: --cluster runs it there.", err=True)
    sys.exit(exit_code([report]))


def replayed(plan: str | bytes, operator: Path | None = None, cluster: Config | None = None) -> Report:
    """Run a plan that was kept, with the operator that it names, or that is in this file.

    On a ``cluster``, only if that is on this machine; else in process.
    """
    from setpoint.testing.proof.kept import read_kept  # noqa: PLC0415

    return _replayed(read_kept(plan), operator, cluster, anywhere=False)


def _replayed(kept: Kept, operator: Path | None, cluster: Config | None, *, anywhere: bool) -> Report:
    from setpoint.testing.proof.prove import replay as run  # noqa: PLC0415

    found = _subject(kept, operator)
    if cluster is None:
        return run(found.make, kept, clouds=found.clouds)
    from setpoint.testing.proof.real_proof import replay_on_cluster  # noqa: PLC0415

    return replay_on_cluster(found.make, cluster, kept, anywhere=anywhere, clouds=found.clouds)


def _subject(kept: Kept, operator: Path | None) -> Proven:
    """The operator that a plan is of."""
    if operator is None and not kept.operator:
        raise ValueError("it names no operator: give --operator OPERATOR.py")
    file = operator or Path(kept.operator)
    if operator is None and not file.is_file():
        raise ValueError(
            f"its operator was in {file}, where nothing is any more: give --operator OPERATOR.py"
        )
    found = subjects(file, kept.how.allow_network, kept.how.allow_program)
    named = [each for each in found if each.name == kept.name] if kept.name else found
    if len(named) == 1:
        return named[0]
    names = ", ".join(each.name for each in found)
    if not kept.name:
        raise ValueError(f'it does not say of which operator it is ("name"), and in {file} there are {names}')
    raise ValueError(
        f"it is of the operator {kept.name}, and in {file} there is {names}: give --operator the file of "
        f"{kept.name}"
    )
