"""What it costs to import Setpoint and the models most programs need, against its two largest libraries.

Each measurement is a fresh process, in which the interpreter's own start is not counted and every module
is found compiled, as after an install; contestants take turns, and the median of the rounds' ratios counts.

    python -m bench.imports
"""

from __future__ import annotations

import json
import tempfile
from functools import partial
from statistics import median
from typing import Any

from bench.measure import compared, in_fresh_process, in_turn

ROUNDS = 15
OURS = "import setpoint, setpoint.kube.apps.v1, setpoint.kube.core.v1"
YARDSTICK = "import aiohttp, msgspec"


def run(statements: str, compiled: str) -> Any:
    """Run in isolation (-I): the environment might forbid that compiled files are kept."""
    return in_fresh_process("-I", "-X", f"pycache_prefix={compiled}", "-c", statements)


def cpu_seconds(statement: str, compiled: str) -> float:
    timed = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
    return float(run(timed, compiled))


def check(compiled: str) -> None:
    loaded = run(f"{OURS}\nimport sys, json; print(json.dumps(sorted(sys.modules)))", compiled)
    assert {"setpoint.kube.apps.v1", "setpoint.kube.core.v1"} <= set(loaded)
    assert "setpoint.kube.batch.v1" not in loaded, "importing one module of models must not import all"


def main() -> None:
    with tempfile.TemporaryDirectory() as compiled:
        check(compiled)
        pairs = in_turn(
            ROUNDS, partial(cpu_seconds, OURS, compiled), partial(cpu_seconds, YARDSTICK, compiled)
        )
    print(
        json.dumps(
            {
                "bench": "imports",
                "milliseconds": round(median(ours for ours, _ in pairs) * 1000, 1),
                **compared(pairs),
                "times_yardstick_at_most": 1.5,
            }
        )
    )


if __name__ == "__main__":
    main()
