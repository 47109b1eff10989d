"""Plans that Hypothesis draws: a life of an object or a part of it, and some faults in it.

``by_chance`` is the third phase of a proof: it draws plans and has them tried, for ever.  ``plans`` is what
it draws from; a ``Trial`` draws from the same, with lives of its own.

Two promises:

1. The same seed draws the same plans, whatever else was read or run in this process.
2. Nothing is written, nowhere: Hypothesis keeps no examples.

Plans are drawn in rounds.  Within a round it is fixed what is known: a plan that came to what is not
(``sweep.outcomes``) is a target, around which Hypothesis goes on.  Between rounds, other parts of the life
take their turn; each costs a run without faults.

Hypothesis is not one of Setpoint's dependencies: who imports this has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count, cycle, islice
from typing import Final, TypeVar

try:
    from hypothesis import (
        HealthCheck,
        Phase,
        Verbosity,
        currently_in_test_context,
        given,
        reject,
        settings,
        target,
    )
    from hypothesis import seed as seeded
    from hypothesis import strategies as st
    from hypothesis.errors import Unsatisfiable
    from hypothesis.strategies import SearchStrategy
except ImportError as missing:
    raise ImportError(
        "plans are drawn by Hypothesis, which is missing: pip install 'setpoint[prove]'"
    ) from missing

from setpoint.testing.proof.plans import AnyFault, Plan, Step
from setpoint.testing.proof.sweep import parts

T = TypeVar("T")

ROUND: Final = 100  # plans
_PARTS = 2  # that take their turn in a round
_MOST_FAULTS = 3
_SAME: SearchStrategy[int] = st.just(0)
_SEEDS = 4  # of a plan: names, and how long is waited before a retry, are others

_HOW = settings(
    max_examples=ROUND,
    phases=[Phase.generate, Phase.target],  # what fails is made smaller by who tries it
    database=None,
    derandomize=False,
    deadline=None,
    suppress_health_check=list(HealthCheck),  # a plan takes as long as it takes
    verbosity=Verbosity.quiet,
    print_blob=False,
)


def by_chance(
    steps: tuple[Step, ...],
    faults_of: Callable[[tuple[Step, ...]], Sequence[Sequence[AnyFault]]],
    attempt: Callable[[Plan], set[tuple[str, str]] | None],
    *,
    seed: int,
) -> str:
    """Draw plans for ever, until ``attempt`` raises something that is no Exception; gives why, if it ends.

    ``faults_of`` says what can strike in a life, class by class; ``attempt`` tries a plan, and gives the
    outcomes of its run; None has another drawn in its place.  In a test of Hypothesis' own nothing is drawn:
    chance is that test's.
    """
    if currently_in_test_context():
        return "in a test that Hypothesis runs, chance is that test's: use Trial there"
    turns = cycle(parts(steps) or [steps])
    seeds = [seed + more for more in range(_SEEDS)]
    known: set[tuple[str, str]] = set()
    for number in count():
        lives = [steps, *islice(turns, _PARTS)]
        struck = [
            plans(life, pick(faults).flatmap(pick), least=1, seeds=pick(seeds))
            for life in lives
            if (faults := faults_of(life))
        ]
        if not struck:
            break
        drawn = pick(struck).flatmap(_itself)
        known |= _round(drawn, attempt, known, f"{seed}, round {number}")
    return "there is no place where anything could strike"


def _round(
    drawn: SearchStrategy[Plan],
    attempt: Callable[[Plan], set[tuple[str, str]] | None],
    known: set[tuple[str, str]],
    seed: str,
) -> set[tuple[str, str]]:
    """Have so many plans tried; gives the outcomes of all."""
    found: set[tuple[str, str]] = set()

    @seeded(seed)
    @_HOW
    @given(drawn)
    def one(plan: Plan) -> None:
        came_to = attempt(plan)
        if came_to is None:
            reject()
        found.update(came_to)
        target(len(came_to - known))

    with suppress(Unsatisfiable):  # of all, none struck
        one()
    return found


def plans(
    life: tuple[Step, ...],
    faults: SearchStrategy[AnyFault],
    *,
    least: int = 0,
    most: int = _MOST_FAULTS,
    seeds: SearchStrategy[int] = _SAME,
) -> SearchStrategy[Plan]:
    """Plans of a life with so many faults of these, each at a place of its own; of one process."""
    some = st.lists(faults, min_size=least, max_size=most, unique_by=lambda each: str(each.at))
    return st.tuples(some, seeds).map(lambda drawn: Plan(life, tuple(drawn[0]), drawn[1]))


def _itself(strategy: SearchStrategy[T]) -> SearchStrategy[T]:
    return strategy


def pick(options: Sequence[T]) -> SearchStrategy[T]:
    """One of these, the first being the simplest; by tossing coins.

    A number would not do: Hypothesis prefers those that it finds in the modules read so far, which are others
    in another process, and keeps what it has found in a folder.
    """
    if len(options) == 1:
        return st.just(options[0])
    coins = len(options).bit_length() + 1  # one to spare, so that none is more than twice as likely

    def picked(heads: tuple[bool, ...]) -> T:
        number = sum(head << place for place, head in enumerate(reversed(heads)))
        return options[number * len(options) >> coins]

    return st.tuples(*[st.booleans()] * coins).map(picked)
