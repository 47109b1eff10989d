"""``setpoint prove OPERATOR.py``: looks for what an operator does not survive; nothing outside is touched.

With ``--cluster`` it does so on a cluster that runs, in namespaces of its own: asked first, unless the
cluster is on this machine or ``--yes`` was said.

Exit codes: 0, nothing was found; 1, something was, or two runs of one plan differed; 2, nothing was found,
but so many of the listed plans were inconclusive that little is proven, or the operator called something
outside of the cluster, which was refused; 2 also where an option cannot be
understood, what it says cannot be done, or the operator cannot be imported, and then nothing is proven.  What
fails is kept as a plan file, for ``setpoint replay``, and as a test beside it; a warning, by which no test
fails, as a plan file alone.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from setpoint.cli.loading import CannotLoad, Loaded, load
from setpoint.cli.params import Known, NewFile, Seconds, Spec
from setpoint.cli.progress import shown
from setpoint.errors import SetpointError

if TYPE_CHECKING:
    from setpoint.client.config import Config
    from setpoint.operator import Operator
    from setpoint.testing.proof.cloud import Cloud
    from setpoint.testing.proof.plans import Step
    from setpoint.testing.proof.process import Subject
    from setpoint.testing.proof.report import Failure, Report

F = TypeVar("F", bound=Callable[..., object])

_FOLDER = Path(".setpoint") / "proof"

_HELP = """Look for what an operator does not survive.

OPERATOR.py is run in a cluster in this process, in virtual time: first undisturbed, then with a crash, a lost
answer, an old view and so on at every step it takes.  It must end where it ends without, and then keep still.

\b
    setpoint prove webapp.py
    setpoint prove webapp.py --budget 10m --seed 7 --junit proof.xml --html proof.html
    setpoint prove webapp.py --steps life.yaml --controllers all
    setpoint prove webapp.py --cluster --context kind-kind

With --cluster the operator still runs here, but the API server is that of a real cluster, and time is real:
a plan takes seconds.  Each has a namespace of its own, setpoint-proof-*, and the operator sees and writes
nothing else; namespaces and definitions are deleted again.  Faults that need Setpoint's own server are
skipped, by name.

Sockets, DNS lookups and programs of the operator are refused (exit code 2): a setpoint.testing.Cloud stands
for a system outside of the cluster.  --allow-network and --allow-program make exceptions.
"""

_PROMISE = """OPERATOR.py would run against {server} ({origin}), which is not on this machine.
There, namespaces setpoint-proof-* are made and deleted, and so are definitions that are missing; everything
else is left alone.  """


class CannotBeAsked(click.ClickException, ValueError):
    """What was asked for cannot be done, so that nothing is known of the operator."""

    exit_code = 2  # 1 says that something was found


class _NotLoaded(CannotLoad):
    """There is no operator of which anything could be known."""

    exit_code = CannotBeAsked.exit_code


class Proving(click.Command):
    """A command whose exit code says what was found: where it comes to none, it must not look like that."""

    def invoke(self, ctx: click.Context) -> object:
        from setpoint.cli.main import told as told_of  # noqa: PLC0415 - which asks for us

        try:
            return super().invoke(ctx)
        except CannotLoad as error:
            raise _NotLoaded(error.message, error.trace) from error
        except SetpointError as error:
            if ctx.find_root().params.get("debug"):
                raise
            raise CannotBeAsked(told_of(error)) from error


def _classes() -> Sequence[str]:
    from setpoint.testing.proof.prove import CLASSES  # noqa: PLC0415 - much code, where a name is to be checked

    return CLASSES


def _oracles() -> Sequence[str]:
    from setpoint.testing.proof.oracles import ids  # noqa: PLC0415

    return ids()


def _controllers() -> Sequence[str]:
    from setpoint.builtin.controllers import ALL  # noqa: PLC0415

    return ["all", *ALL]


def cluster_options(command: F) -> F:
    """The options that say on which cluster; read by ``cluster_of``."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask, where the cluster is not on this machine."),
        click.option("--context", help="Which of them to use; the current one unless given."),
        click.option(
            "--kubeconfig", type=click.Path(path_type=Path), help="Where the clusters are described."
        ),
        click.option(
            "--cluster", is_flag=True, help="Do it on the cluster that kubeconfig or the pod names."
        ),
    ):
        command = option(command)
    return command


@click.command(cls=Proving, help=_HELP)
@click.argument("operator", metavar="OPERATOR.py", type=click.Path(path_type=Path))
@click.option(
    "--budget",
    type=Seconds(),
    help="CPU time to spend in all; unless given, 60s for each operator, and 5m of real time on a cluster.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of all chance; the same gives the same."
)
@click.option(
    "--only",
    multiple=True,
    type=Known("class of faults", _classes),
    metavar="CLASS",
    help="Only these faults: E1, V6, ...",
)
@click.option(
    "--without",
    multiple=True,
    type=Known("oracle", _oracles),
    metavar="ORACLE",
    help="Not judged by these: O10, ...",
)
@click.option("--keeps", multiple=True, metavar="RESOURCE", help="Its objects are meant to stay.")
@click.option(
    "--history",
    multiple=True,
    metavar="RESOURCE",
    help="Its objects record the past and are not compared: controllerrevisions.apps, ...",
)
@click.option(
    "--controllers",
    multiple=True,
    type=Known("controller", _controllers),
    metavar="NAME",
    help="Controllers of every cluster that run in this one: deployment-controller, ..., or all.",
)
@click.option(
    "--steps",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="What the user does: a list in YAML or JSON, or lists by operator. Unless given: from the schema.",
)
@click.option(
    "--example",
    type=Spec(),
    metavar="JSON",
    help="The spec to begin with, where the schema says too little.",
)
@click.option(
    "--allow-network",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Let the operator reach this address, or Unix socket; all others are refused.",
)
@click.option(
    "--allow-program",
    multiple=True,
    metavar="NAME",
    help="Let the operator run this program; all others are refused.",
)
@click.option("--junit", type=NewFile(), help="Write the outcome there, for a CI.")
@click.option("--html", "page", type=NewFile(), help="Write it there, as a page.")
@cluster_options
def prove(
    *,
    operator: Path,
    budget: float | None,
    seed: int,
    only: tuple[str, ...],
    without: tuple[str, ...],
    keeps: tuple[str, ...],
    history: tuple[str, ...],
    controllers: tuple[str, ...],
    steps: Path | None,
    example: dict[str, Any] | None,
    allow_network: tuple[str, ...],
    allow_program: tuple[str, ...],
    junit: Path | None,
    page: Path | None,
    cluster: bool,
    kubeconfig: Path | None,
    context: str | None,
    yes: bool,
) -> None:
    from setpoint.testing.proof.report import as_html, as_junit  # noqa: PLC0415 - much code, for this alone

    if cluster and controllers:
        raise click.UsageError("--controllers are for a cluster in this process; a real one has its own")
    config = cluster_of(kubeconfig, context, is_asked=cluster, is_meant=yes)
    how: dict[str, Any] = {
        "seed": seed,
        "only": only,
        "without": without,
        "keeps": keeps,
        "history": history,
        "example": example,
        "allow_network": allow_network,
        "allow_program": allow_program,
    }
    if controllers:
        how["controllers"] = True if "all" in controllers else controllers
    again = _again(kubeconfig, context) if cluster else ""
    reports = []
    lives = _steps(steps)
    proven = subjects(operator, allow_network, allow_program)
    if isinstance(lives, dict) and (unknown := lives.keys() - {each.name for each in proven}):
        known = ", ".join(each.name for each in proven)
        raise CannotBeAsked(f"--steps: there is no operator {', '.join(sorted(unknown))}: there are {known}")
    budget = budget / len(proven) if budget and proven else budget
    for each in proven:
        how["steps"] = lives.get(each.name) if isinstance(lives, dict) else lives
        try:
            report = _in_process(each, budget, how) if config is None else _on(config, each, budget, how)
        except ValueError as error:
            raise CannotBeAsked(f"prove {each.name} of {operator}: {error}") from error
        reports.append(report)
        click.echo(told(report))
        _keep(operator, each, report, again)
    _written(junit, lambda: as_junit(*reports))
    _written(page, lambda: as_html(*reports))
    sys.exit(exit_code(reports))


def _written(path: Path | None, text: Callable[[], str]) -> None:
    if path is not None:
        try:
            path.write_text(text())
        except OSError as error:
            raise click.ClickException(f"write {path}: {error.strerror}; give another place") from error


def exit_code(reports: Sequence[Report]) -> int:
    if any(report.alarms or report.broken for report in reports):
        return 1
    return 0 if all(report.is_good for report in reports) else 2


def told(report: Report) -> str:
    """All of it, as wide as the terminal is; how to replay a failure is told by who keeps it."""
    from setpoint.testing.proof.report import WIDTH  # noqa: PLC0415

    return report.text(max(80, shutil.get_terminal_size((WIDTH, 0)).columns), repro=False)


def _steps(file: Path | None) -> tuple[Step, ...] | dict[str, tuple[Step, ...]] | None:
    """What a user does, from a file: with every operator, or by the names of operators."""
    from setpoint.api import yaml  # noqa: PLC0415
    from setpoint.testing.proof.kept import read_steps  # noqa: PLC0415

    if file is None:
        return None
    try:
        given = yaml.load(file.read_bytes())
        if isinstance(given, dict) and given and all(isinstance(each, list) for each in given.values()):
            return {name: read_steps(each) for name, each in given.items()}
        return read_steps(given)
    except ValueError as error:
        raise click.BadParameter(f"{file}: {error}", param_hint="'--steps'") from error


def _in_process(subject: Proven, budget: float | None, how: dict[str, Any]) -> Report:
    from setpoint.testing.proof.prove import BUDGET  # noqa: PLC0415
    from setpoint.testing.proof.prove import prove as run  # noqa: PLC0415

    seconds = budget or BUDGET
    with shown(subject.name, seconds, time.process_time) as show:
        return run(subject.make, budget=seconds, clouds=subject.clouds, on_progress=show, **how)


def _on(config: Config, subject: Proven, budget: float | None, how: dict[str, Any]) -> Report:
    from setpoint.testing.proof.real_proof import BUDGET, prove_on_cluster  # noqa: PLC0415
    from setpoint.testing.proof.report import Report  # noqa: PLC0415

    seconds = budget or BUDGET
    how = {**how, "clouds": subject.clouds, "budget": seconds, "anywhere": True}
    with shown(subject.name, seconds, time.monotonic) as show:
        show(Report(subject.name, doing="preparing the steps"))
        return prove_on_cluster(subject.make, config, on_plan=show, **how)


def cluster_of(
    kubeconfig: Path | None, context: str | None, *, is_asked: bool, is_meant: bool
) -> Config | None:
    """The cluster that is meant, one elsewhere only if that was said; None: none, but one in this process."""
    if not is_asked:
        if kubeconfig or context or is_meant:
            raise click.UsageError(
                "--kubeconfig, --context and --yes are for --cluster; without it none is touched"
            )
        return None
    from setpoint.client.addresses import is_on_this_machine  # noqa: PLC0415
    from setpoint.client.config import Config  # noqa: PLC0415

    config = Config.load(kubeconfig, context)
    if not is_meant and not is_on_this_machine(config.server):
        promise = _PROMISE.format(server=config.server, origin=config.origin or "the pod's own")
        if not sys.stdin.isatty():
            raise CannotBeAsked(f"{promise}If that is meant, say --yes.")
        click.confirm(f"{promise}Go on?", abort=True)
    return config


def _again(kubeconfig: Path | None, context: str | None) -> str:
    """The options that name this cluster once more."""
    said = ["--cluster"]
    said += ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
    return " " + shlex.join([*said, *(["--context", context] if context else [])])


@dataclass(frozen=True)
class Proven:
    """An operator of a file, and what it uses outside of the cluster."""

    name: str
    make: Callable[[], Subject]  # gives it as if the file had just been imported
    clouds: tuple[Cloud, ...]


def subjects(
    path: Path, allow_network: Sequence[str] = (), allow_program: Sequence[str] = ()
) -> list[Proven]:
    """The operators of a file, which is imported as they run: what it may not reach outside is refused."""
    from setpoint.testing.isolation import Allowed, Isolation  # noqa: PLC0415
    from setpoint.testing.proof.memory import remembered  # noqa: PLC0415

    try:
        isolation = Isolation(Allowed.of(allow_network, allow_program))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--allow-network'") from error
    with isolation:
        loaded = load(path)
    for refused in isolation.refused:
        raise CannotBeAsked(f"import {path}: {refused}")
    forget = remembered(loaded.modules.values())
    clouds = _clouds(loaded)

    def maker(operator: Operator) -> Callable[[], Subject]:
        def make() -> Subject:
            forget()
            return operator

        return make

    return [Proven(operator.name, maker(operator), clouds) for operator in loaded.operators]


def _clouds(loaded: Loaded) -> tuple[Cloud, ...]:
    """What the modules of an operator use outside: each is emptied for each run, and struck by faults."""
    from setpoint.testing.proof.cloud import Cloud  # noqa: PLC0415

    found = {
        id(value): value
        for module in loaded.modules.values()
        for value in vars(module).values()
        if isinstance(value, Cloud)
    }
    return tuple(found.values())


def _keep(path: Path, operator: Proven, report: Report, again: str) -> None:
    """Write the plans that failed, and a test for each alarm; ``again`` is what a replay is told besides."""
    for number, failure in enumerate(report.failures, 1):
        file = _FOLDER / f"{operator.name}-{failure.first.oracle}-{failure.plan.id}-{number}.json"
        test = _FOLDER / f"test_{file.stem.replace('-', '_').replace('+', '_')}.py"
        try:
            _FOLDER.mkdir(parents=True, exist_ok=True)
            _write(file, None if failure.is_warning else test, path, failure, report)
        except OSError as error:
            raise click.ClickException(
                f"keep the plan that failed as {file}: {error.strerror}; run it where that can be written"
            ) from error
        click.echo(f"\nrepro:  setpoint replay {shlex.quote(str(file))}{again}")
        if not failure.is_warning:
            click.echo(f"test:   pytest {test}")


def _write(file: Path, test: Path | None, path: Path, failure: Failure, report: Report) -> None:
    from setpoint.testing.proof.kept import as_test, keep  # noqa: PLC0415
    from setpoint.testing.proof.plans import write_plan  # noqa: PLC0415
    from setpoint.testing.proof.redaction import redacted_kept  # noqa: PLC0415

    kept = redacted_kept(keep(failure.plan, report.how, operator=str(path.absolute()), name=report.operator))
    file.write_bytes(write_plan(kept))
    if test is not None:
        way = os.path.relpath(path.absolute(), test.absolute().parent)
        test.write_text(as_test(kept, failure.first.oracle, way))
