"""What a proof is told: every option of ``prove``, with its default, once.

``by_keywords`` makes a function that takes a value of a class one that takes each of its fields by its name:
so users call it as they would any other, and inside they are one value.

Told by users, ``cli/prove.py`` and tests; read by ``prove.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import msgspec

from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.controllers import Controllers, chosen
from setpoint.testing.proof.kept import How
from setpoint.testing.proof.oracles import Rules, words
from setpoint.testing.proof.plans import Step
from setpoint.testing.proof.process import Subject
from setpoint.testing.proof.report import Report

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def _ignore(_report: Report) -> None:
    pass


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """All that ``prove`` can be told besides the operator; it says what each means."""

    steps: Sequence[Step] | None = None
    example: dict[str, Any] | None = None
    budget: float = 60.0
    seed: int = 0
    clouds: Sequence[Cloud] = ()
    objects: Iterable[Any] = ()
    always: Sequence[Callable[..., object]] = ()
    never: Sequence[Callable[..., object]] = ()
    at_most: Sequence[tuple[str, int]] = ()
    keeps: Sequence[str] = ()
    history: Sequence[str] = ()
    only: Iterable[str] = ()
    without: Iterable[str] = ()
    most_failures: int = 10
    most_plans: int | None = None
    most_of_class: int | None = None
    controllers: Controllers = False
    allow_network: Sequence[str] = ()
    allow_program: Sequence[str] = ()
    is_exhaustive: bool = False
    shrink: bool = True
    on_plan: Callable[[Report], None] = _ignore
    on_progress: Callable[[Report], None] = _ignore

    def __post_init__(self) -> None:
        # They are read more than once, and what is given may be gone after the first time.
        for name in ("objects", "only", "without"):
            msgspec.structs.force_setattr(self, name, tuple(getattr(self, name)))

    @property
    def rules(self) -> Rules:
        return Rules(
            tuple(self.always),
            tuple(self.never),
            tuple(self.at_most),
            tuple(self.keeps),
            tuple(self.history),
        )

    @property
    def how(self) -> How:
        """What of it a plan file can hold."""
        rules = self.rules
        return How(
            self.seed,
            rules.keeps,
            tuple(sorted(self.without)),
            rules.at_most,
            chosen(self.controllers),
            tuple(self.objects),
            tuple(words(rule) for rule in (*self.always, *self.never)),
            history=rules.history,
            allow_network=tuple(self.allow_network),
            allow_program=tuple(self.allow_program),
        )


class Question(Options, frozen=True):
    """A whole question: these options, and the operator, which need not be named."""

    operator: Subject | Callable[[], Subject]


def by_keywords(question: Callable[P, T]) -> Callable[[Callable[[T], R]], Callable[P, R]]:
    """Have a function be told the fields of a class one by one, as the class is."""

    def named(function: Callable[[T], R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: P.args, **told: P.kwargs) -> R:
            return function(question(*args, **told))

        called.__signature__ = signature(question)  # type: ignore[attr-defined]  # what help() shows
        return called

    return named
