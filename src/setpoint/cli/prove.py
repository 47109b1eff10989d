"""``setpoint prove OPERATOR.py``: looks for what an operator does not survive; nothing outside is touched.

Exit codes: 0, nothing was found; 1, something was, or two runs of one plan differed; 2, so many plans were
inconclusive that little is proven.  What fails is kept as a plan file, for ``setpoint replay``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

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
"""


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
    "--budget", type=_Seconds(), default="60s", show_default=True, help="How much CPU time to spend."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of all chance; the same gives the same."
)
@click.option("--only", multiple=True, metavar="CLASS", help="Only these faults: E1, V6, ...")
@click.option("--example", metavar="JSON", help="The spec to begin with, where the schema says too little.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write the outcome there, for a CI.")
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write it there, as a page.")
def prove(
    *,
    operator: Path,
    budget: float,
    seed: int,
    only: tuple[str, ...],
    example: str | None,
    junit: Path | None,
    page: Path | None,
) -> None:
    import msgspec  # noqa: PLC0415 - only here

    from setpoint.testing.proof.prove import prove as run  # noqa: PLC0415 - much code, for this command alone
    from setpoint.testing.proof.report import as_html, as_junit  # noqa: PLC0415

    spec = None if example is None else msgspec.json.decode(example)
    is_bad = False
    for each, make in makers(operator):
        report = run(make, budget=budget, seed=seed, only=only, example=spec, on_plan=_progress(budget))
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


def _progress(budget: float) -> Callable[[Report], None]:
    import time  # noqa: PLC0415 - only here

    began = time.process_time()

    def show(report: Report) -> None:
        if sys.stderr.isatty() and report.plans % 5 == 0:
            spent = time.process_time() - began
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
