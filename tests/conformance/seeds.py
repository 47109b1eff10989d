"""Runs every script many times on our server, each time with other addresses, ports, names and uids.

    python -m tests.conformance.seeds                          every script, 200 seeds
    python -m tests.conformance.seeds --runs 20 --first 40     seeds 40 to 59
    python -m tests.conformance.seeds services "a recorded life"

The server draws whatever it chooses for itself from the seed, so a seed shows the same again.  Every
difference from the recording that ``differences.toml`` does not list is printed with its seed; the last line
counts them.  A script that passes with some seeds only depends on chance.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from random import Random
from typing import Any

from setpoint.cluster.cluster import Cluster
from setpoint.testing import embedded
from tests.conformance.asking import Asker, Difference, Script, differences
from tests.conformance.planes import new_embedded
from tests.conformance.recordings import answers, asker_for, listed
from tests.conformance.scripts import SCRIPTS
from tests.conformance.webhooks import webhooks


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Have every server that starts meanwhile draw from the seed."""
    module: Any = embedded
    source = Random(seed)
    module.Cluster = partial(Cluster, source=source)
    try:
        yield
    finally:
        module.Cluster = Cluster


def differing(seed: int, scripts: Sequence[Script]) -> Iterator[tuple[Script, list[Difference]]]:
    """What each script is answered otherwise than recorded, with one seed."""
    webhooks().forget()
    with seeded(seed), new_embedded() as plane:
        shared = Asker(plane)
        for script in scripts:
            try:
                with asker_for(script, shared, new_embedded) as asker:
                    found = differences(script.name, answers()[script.name], asker.run(script))
            except AssertionError as error:
                found = [Difference(script.name, "", str(error), "", "")]
            known = [each for each in listed() if fnmatchcase(script.name, each.script)]
            yield script, [one for one in found if not any(each.covers(one) for each in known)]
        shared.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run every conformance script with many seeds.")
    parser.add_argument("--runs", type=int, default=200, help="how many seeds (200)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("scripts", nargs="*", help="names of scripts; all, if none is given")
    options = parser.parse_args(arguments)
    scripts = [script for script in SCRIPTS if not options.scripts or script.name in options.scripts]
    failed: Counter[str] = Counter()
    start = time.monotonic()
    for seed in range(options.first, options.first + options.runs):
        for script, found in differing(seed, scripts):
            if found:
                failed[script.name] += 1
                print(f"seed {seed}: {script.name}", *found[:5], sep="\n    ", flush=True)  # noqa: T201
        print(f"seed {seed} done after {time.monotonic() - start:.0f} s", flush=True)  # noqa: T201
    summary = ", ".join(f"{name} {count}" for name, count in failed.most_common()) or "none"
    print(f"{len(scripts)} scripts, {options.runs} seeds; with differences: {summary}")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
