"""Makes chance repeatable for the time of a run: what ``random``, ``secrets``, ``uuid`` and ``os.urandom``
give comes from a seed, also to a ``random.Random()`` that is made in a run.

The operator's own code may draw passwords and ids; two runs of one plan must draw the same.  Nothing outside
of the block is touched, and nothing here is fit for anything secret.
"""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_BY_TIME: Final = ("_generate_time_safe", "_UuidCreate", "_last_timestamp")  # of uuid: how uuid1 is made


@contextmanager
def seeded(seed: int) -> Iterator[random.Random]:
    """The machine's chance comes from a seed inside the block; gives a source for names and uids."""
    state, urandom, system = random.getstate(), os.urandom, random._urandom  # type: ignore[attr-defined]  # noqa: SLF001
    entropy = random.Random(f"entropy {seed}")  # noqa: S311 - it is to be repeatable
    random.seed(seed)
    os.urandom = entropy.randbytes
    random._urandom = entropy.randbytes  # type: ignore[attr-defined]  # noqa: SLF001
    reseed, seed_all = random.Random.seed, random.seed
    by_time = {name: getattr(uuid, name) for name in _BY_TIME if hasattr(uuid, name)}

    def seed_again(source: random.Random, a: Any = None, version: int = 2) -> None:
        reseed(source, entropy.getrandbits(64) if a is None else a, version)

    random.Random.seed = seed_again  # type: ignore[assignment, method-assign]
    random.seed = random._inst.seed  # noqa: SLF001
    for name in by_time:  # uuid1 then goes by time.time_ns and random
        setattr(uuid, name, None)
    try:
        yield random.Random(f"names {seed}")  # noqa: S311
    finally:
        random.Random.seed = reseed  # type: ignore[method-assign]
        random.seed = seed_all
        for name, value in by_time.items():
            setattr(uuid, name, value)
        random.setstate(state)
        os.urandom = urandom
        random._urandom = system  # type: ignore[attr-defined]  # noqa: SLF001
