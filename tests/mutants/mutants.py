"""All mutants, and how they are told of."""

from __future__ import annotations

import sys

from tests.mutants.apart import APART
from tests.mutants.framework import MORE
from tests.mutants.needed import NEEDED
from tests.mutants.operators import MUTANTS, Mutant

__all__ = ["ALL", "Mutant", "say"]

ALL: tuple[Mutant, ...] = (*MUTANTS, *MORE, *NEEDED, *APART)


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
