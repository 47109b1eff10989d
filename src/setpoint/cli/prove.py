"""``setpoint prove OPERATOR.py``: looks for what an operator does not survive; nothing outside is touched.

With ``--cluster`` it does so on a cluster that runs, in namespaces of its own: asked first, unless the
cluster is on this machine or ``--yes`` was said.

Exit codes: 0, nothing was found; 1, something was, or two runs of one plan differed; 2, so many plans were
inconclusive that little is proven.  What fails is kept as a plan file, for ``setpoint replay``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from setpoint.cli.loading import load

if TYPE_CHECKING:
    from setpoint.operator import Operator
    from setpoint.testing.proof.process import Subject
    from setpoint.testing.proof.report import Report

_FOLDER = Path(".setpoint") / "proof"
_MOST_INCONCLUSIVE = 0.2  # of the plans

_HELP = """Look for what an operator does not survive.

OPERATOR.py is run in a cluster in this process, in virtual time: first undisturbed, then with a crash, a lost
answer, an old view and so on at every step it takes.  It must end where it ends without, and then keep still.

\b
    setpoint prove webapp.py
    setpoint prove webapp.py --budget 10m --seed 7 --junit proof.xml --html proof.html
    setpoint prove webapp.py --cluster --context kind-kind

With --cluster the operator still runs here, but the API server is that of a real cluster, and time is real:
a plan takes seconds.  Each has a namespace of its own, setpoint-proof-*, and the operator sees and writes
nothing else; namespaces and definitions are deleted again.  Faults that need Setpoint's own server are
skipped.
"""

_PROMISE = """OPERATOR.py would be proven on {server} ({origin}), which is not on this machine.
There, namespaces setpoint-proof-* are made and deleted, and so are definitions that are missing; everything
else is left alone.  """


class _Seconds(click.ParamType[float]):
    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        text = str(value)
        scale = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
        try:
            return float(text[:-1]) * scale if scale else float(text)
        except ValueError:
            self.fail(f"{text!r} is no time: write 60s, 10m or 1h", param, ctx)


@click.command(help=_HELP)
@click.argument("operator", metavar="OPERATOR.py", type=click.Path(path_type=Path))
@click.option(
    "--budget",
    type=_Seconds(),
    help="How much CPU time to spend, 60s unless given; on a cluster how much time, 5m unless given.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of all chance; the same gives the same."
)
@click.option("--only", multiple=True, metavar="CLASS", help="Only these faults: E1, V6, ...")
@click.option("--example", metavar="JSON", help="The spec to begin with, where the schema says too little.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write the outcome there, for a CI.")
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write it there, as a page.")
@click.option("--cluster", is_flag=True, help="Prove it on the cluster that kubeconfig or the pod names.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Where the clusters are described.")
@click.option("--context", help="Which of them to use; the current one unless given.")
@click.option("--yes", is_flag=True, help="Do not ask, where the cluster is not on this machine.")
def prove(
    *,
    operator: Path,
    budget: float | None,
    seed: int,
    only: tuple[str, ...],
    example: str | None,
    junit: Path | None,
    page: Path | None,
    cluster: bool,
    kubeconfig: Path | None,
    context: str | None,
    yes: bool,
) -> None:
    import msgspec  # noqa: PLC0415 - only here

    from setpoint.testing.proof.report import as_html, as_junit  # noqa: PLC0415 - much code, for this alone

    if not cluster and (kubeconfig or context or yes):
        raise click.UsageError(
            "--kubeconfig, --context and --yes are for --cluster; without it none is touched"
        )
    run = _on_cluster(kubeconfig, context, is_meant=yes) if cluster else _in_process
    spec = None if example is None else msgspec.json.decode(example)
    is_bad = False
    for each, make in makers(operator):
        try:
            report = run(make, budget=budget, seed=seed, only=only, example=spec)
        except ValueError as error:
            raise click.ClickException(f"{operator}: {error}") from error
        click.echo("\r\x1b[K", err=True, nl=False)
        click.echo(str(report))
        _keep(operator, each, report)
        if junit is not None:
            junit.write_text(as_junit(report))
        if page is not None:
            page.write_text(as_html(report))
        is_bad = is_bad or not report.is_good
        if not is_bad and len(report.inconclusive) > _MOST_INCONCLUSIVE * report.plans:
            sys.exit(2)
    sys.exit(1 if is_bad else 0)


class _Run(Protocol):
    def __call__(
        self,
        make: Callable[[], Subject],
        *,
        budget: float | None,
        seed: int,
        only: tuple[str, ...],
        example: dict[str, Any] | None,
    ) -> Report: ...


def _in_process(make: Callable[[], Subject], *, budget: float | None, **how: Any) -> Report:
    from setpoint.testing.proof.prove import BUDGET  # noqa: PLC0415
    from setpoint.testing.proof.prove import prove as run  # noqa: PLC0415

    seconds = budget or BUDGET
    return run(make, budget=seconds, on_plan=_progress(seconds, time.process_time), **how)


def _on_cluster(kubeconfig: Path | None, context: str | None, *, is_meant: bool) -> _Run:
    """What proves on a cluster: on one elsewhere only if that is meant."""
    from setpoint.client.config import Config  # noqa: PLC0415
    from setpoint.testing.proof.real_proof import (  # noqa: PLC0415
        BUDGET,
        is_on_this_machine,
        prove_on_cluster,
    )

    config = Config.load(kubeconfig, context)
    if not is_meant and not is_on_this_machine(config.server):
        promise = _PROMISE.format(server=config.server, origin=config.origin or "the pod's own")
        if not sys.stdin.isatty():
            raise click.ClickException(f"{promise}If that is meant, say --yes.")
        click.confirm(f"{promise}Go on?", abort=True)

    def run(make: Callable[[], Subject], *, budget: float | None, **how: Any) -> Report:
        seconds = budget or BUDGET
        shown = _progress(seconds, time.monotonic)
        return prove_on_cluster(make, config, anywhere=True, budget=seconds, on_plan=shown, **how)

    return run


def makers(path: Path) -> list[tuple[Operator, Callable[[], Subject]]]:
    """The operators of a file, each with a function that gives it as if the file had just been imported."""
    from setpoint.testing.proof.memory import remembered  # noqa: PLC0415

    loaded = load(path)
    forget = remembered(loaded.modules.values())

    def maker(operator: Operator) -> Callable[[], Subject]:
        def make() -> Subject:
            forget()
            return operator

        return make

    return [(operator, maker(operator)) for operator in loaded.operators]


def _progress(budget: float, clock: Callable[[], float]) -> Callable[[Report], None]:
    began = clock()

    def show(report: Report) -> None:
        if sys.stderr.isatty() and report.plans % 5 == 0:
            spent = clock() - began
            click.echo(
                f"\r\x1b[K{report.plans} plans, {report.covered} of {len(report.cells)} cells, "
                f"{len(report.failures)} failures, {spent:.0f} of {budget:.0f} s",
                err=True,
                nl=False,
            )

    return show


def _keep(path: Path, operator: Operator, report: Report) -> None:
    """Write the plans that failed, and a test for each."""
    import msgspec  # noqa: PLC0415

    from setpoint.testing.proof.plans import write_plan  # noqa: PLC0415
    from setpoint.testing.proof.report import as_test  # noqa: PLC0415

    for number, failure in enumerate(report.failures, 1):
        _FOLDER.mkdir(parents=True, exist_ok=True)
        file = _FOLDER / f"{operator.name}-{failure.first.oracle}-{failure.plan.id}-{number}.json"
        file.write_bytes(write_plan(msgspec.structs.replace(failure.plan, operator=str(path.absolute()))))
        click.echo(f"\nrepro:  setpoint replay {file}\nas a test:\n\n{as_test(failure)}")
