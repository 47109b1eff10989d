"""The soak: hours of work and misfortune in minutes, with figures; every violation of a promise fails it.

    python -m tests.soak.run                 # every part, at full size
    python -m tests.soak.run keys kills      # these parts
    python -m tests.soak.run keys --size 1000

Each part starts its own server and operator, as processes on the loopback interface, and prints lines of
JSON: for its progress, and one for its result.  The exit code is 0, or 1 after a violation.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.soak import faults, load
from tests.soak.world import Violation, say

Part = Callable[..., Awaitable[dict[str, Any]]]
PARTS: dict[str, Part] = {
    "keys": load.keys,
    "watches": load.watches,
    "lists": load.lists,
    "kills": faults.kills,
    "stops": faults.stops,
    "slow": faults.slow,
    "big": faults.big,
    "etcd": faults.etcd,
    "crashes": faults.crashes,
}


async def run(name: str, *size: int) -> bool:
    """Run one part; whether it held."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"soak-{name}-", ignore_cleanup_errors=True) as folder:
        try:
            figures = await PARTS[name](Path(folder), *size)
        except Exception as error:  # noqa: BLE001 - the other parts run, whatever it is
            seconds = round(time.monotonic() - began)
            for each in _leaves(error):
                if isinstance(each, Violation):
                    say(soak=name, result="VIOLATION", problem=str(each), seconds=seconds)
                else:
                    traceback.print_exception(each)
                    say(soak=name, result="BROKEN", problem=repr(each), seconds=seconds)
            return False
    say(soak=name, result="ok", **figures)
    return True


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"which of {', '.join(PARTS)}; all unless given"
    )
    parser.add_argument("--size", type=int, help="how many, instead of the full size of the part")
    asked = parser.parse_args()
    for name in asked.parts:
        if name not in PARTS:
            parser.error(f"there is no part {name!r}: there are {', '.join(PARTS)}")
    os.nice(5)
    size = [] if asked.size is None else [asked.size]
    held = [asyncio.run(run(name, *size)) for name in asked.parts or PARTS]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
