"""Decides how long to wait after a key failed again.

1. The first failure waits 5 ms; each further one in a row waits twice as long, 5 min at most.
2. Jitter only shortens, by up to half: keys that failed together do not return together.
3. Any number of failures has an answer.

No clock, no chance and no memory here: ``workqueue.py`` counts the failures of each key and forgets them.
"""

from __future__ import annotations

from collections.abc import Callable

FIRST = 0.005
LONGEST = 300.0

_ENOUGH = 1000  # doublings: more than any ``longest`` needs, fewer than overflow a float


def delay_after(
    failures: int, *, first: float = FIRST, longest: float = LONGEST, jitter: Callable[[], float]
) -> float:
    """Seconds to wait after so many failures in a row, this one included.

    ``jitter`` gives a number in [0, 1).
    """
    if failures < 1:
        raise ValueError(f"a wait follows a failure, and {failures} is none")
    return min(longest, first * 2.0 ** min(failures - 1, _ENOUGH)) * (1 + jitter()) / 2
