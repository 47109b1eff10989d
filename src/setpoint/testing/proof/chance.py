"""Makes chance repeatable for the time of a run: what ``random``, ``secrets``, ``uuid`` and ``os.urandom``
give comes from a seed.

The operator's own code may draw passwords and ids; two runs of one plan must draw the same.  Nothing outside
of the block is touched, and nothing here is fit for anything secret.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def seeded(seed: int) -> Iterator[random.Random]:
    """The machine's chance comes from a seed inside the block; gives a source for names and uids."""
    state, urandom, system = random.getstate(), os.urandom, random._urandom  # type: ignore[attr-defined]  # noqa: SLF001
    entropy = random.Random(f"entropy {seed}")  # noqa: S311 - it is to be repeatable
    random.seed(seed)
    os.urandom = entropy.randbytes
    random._urandom = entropy.randbytes  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        yield random.Random(f"names {seed}")  # noqa: S311
    finally:
        random.setstate(state)
        os.urandom = urandom
        random._urandom = system  # type: ignore[attr-defined]  # noqa: SLF001
