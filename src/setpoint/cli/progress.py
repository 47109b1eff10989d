"""How far a proof is, on standard error: a bar on a terminal, lines elsewhere; both from the first moment on.

Nothing of it is on standard output or in a report.  Lines come seldom: the longer it takes, the seldomer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from setpoint.testing.proof.report import Report

_LINE_EVERY: Final = 5.0  # seconds, at first
_SELDOMER: Final = 1.1  # the next line comes when so many times as long has passed
_BAR_EVERY: Final = 0.1  # seconds


def estimate(report: Report, spent: float, budget: float, trying: float) -> float:
    """Seconds that are left: those of the budget, or fewer where all planned plans will be tried before.

    ``trying`` is for how long plans have been tried.
    """
    left = max(0.0, budget - spent)
    if report.attempted and report.doing == "trying plans":
        each = trying / report.attempted
        left = min(left, each * (report.planned - report.attempted))
    return left


def line(report: Report, spent: float, budget: float, left: float) -> str:
    """How far it is, in one line."""
    plans = f"{report.attempted} of {report.planned} plans" if report.planned else "no plans yet"
    return (
        f"{report.doing or 'starting'}: {plans}, {len(report.alarms)} failures; "
        f"{spent:.0f} of {budget:.0f} s, at most {left:.0f} s left"
    )


@contextmanager
def shown(
    name: str,
    budget: float,
    clock: Callable[[], float],
    *,
    out: TextIO | None = None,
    wall: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[Report], None]]:
    """Gives what is to be called with the report, as often as one likes; ``clock`` is the budget's."""
    out = out or sys.stderr
    began = clock()
    trying: list[float] = []  # when the first plan was tried

    def told(report: Report) -> tuple[float, str]:
        spent = clock() - began
        if report.doing == "trying plans" and not trying:
            trying.append(spent)
        left = estimate(report, spent, budget, spent - trying[0] if trying else 0.0)
        return spent, line(report, spent, budget, left)

    if out.isatty():
        with _bar(name, budget, out) as draw:
            yield _seldom(lambda report: draw(*told(report)), wall, lambda _passed: _BAR_EVERY)
    else:

        def write(report: Report) -> None:
            print(f"{name}: {told(report)[1]}", file=out, flush=True)

        yield _seldom(write, wall, lambda passed: max(_LINE_EVERY, passed * (_SELDOMER - 1)))


def _seldom(
    show: Callable[[Report], None], wall: Callable[[], float], pause: Callable[[float], float]
) -> Callable[[Report], None]:
    """Have something shown at once, and then after a pause each time, which depends on the time passed."""
    began = due = wall()

    def maybe(report: Report) -> None:
        nonlocal due
        now = wall()
        if now >= due:
            due = now + pause(now - began)
            show(report)

    return maybe


@contextmanager
def _bar(name: str, budget: float, out: TextIO) -> Iterator[Callable[[float, str], None]]:
    from rich.console import Console  # noqa: PLC0415 - without a terminal there is nothing to draw on
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    texts = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*texts, console=Console(file=out), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(name, total=budget, told="starting")

        def draw(spent: float, told: str) -> None:
            bar.update(task, completed=min(budget, spent), told=told, refresh=True)

        bar.refresh()
        yield draw
