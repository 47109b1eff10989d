"""What one plan of the proof costs: an operator with three children, every single fault of six classes.

A plan is a whole run: a server, an operator, four steps of a user, a fault, and the looks that show that
nothing stirs.  The yardstick is the same run without a fault.  Nothing may fail, and every fault must strike.

    python -m bench.proof
"""

from __future__ import annotations

import json

from bench.measure import cpu_seconds
from setpoint.api import ObjectMeta
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.testing.proof.plans import Plan, Step
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.world import Prepared
from tests.mutants.widgets import Widget, change, create, delete, delete_map, operator_of

CLASSES = ("E1", "E2", "E3", "E4", "V2", "V6")
STEPS: tuple[Step, ...] = (create(), change(text="b"), delete_map("w-1"), delete())


async def reconcile(widget: Widget, ctx: Context) -> None:
    for number in range(3):
        name = ObjectMeta(name=f"{widget.metadata.name}-{number}")
        await ctx.apply(ConfigMap(metadata=name, data={"text": widget.spec.text}))
    widget.status.done = widget.spec.text


def main() -> None:
    report = prove(lambda: operator_of(reconcile), steps=STEPS, only=CLASSES, budget=600, is_exhaustive=True)
    assert report.is_good, report
    assert not report.inconclusive
    prepared = Prepared.of(lambda: operator_of(reconcile))
    plain = min(cpu_seconds(lambda: prepared.run(Plan(STEPS))) for _ in range(10))
    print(
        json.dumps(
            {
                "bench": "proof",
                "plans": report.plans,
                "plans_per_cpu_second": round(report.plans / report.seconds, 1),
                "milliseconds_per_plan": round(1000 * report.seconds / report.plans, 1),
                "times_a_run_without_a_fault": round(report.seconds / report.plans / plain, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
