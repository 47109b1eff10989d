"""The proof: an operator, a cluster and all that can go wrong between them, in one process and virtual time.

prove.py      runs the reference, then plan after plan, and judges; the way in; ``options.py``: all it takes
plans.py      what happens in a run, as data: steps of a user, and faults with their places
sweep.py      which plans there are; ``drawn.py`` has Hypothesis draw more
usual.py      what a user does, where nobody says; ``workload.py`` is the life of one object
world.py      carries out one plan: server, processes, user, clock
trial.py      lives and faults that Hypothesis draws, for tests of one's own
real_proof.py the same on a real cluster; ``real_site.py`` is its place there, ``real_world.py`` one plan
director.py   has faults strike; ``seam.py`` is where, ``pace.py`` has clocks go wrong
oracles.py    what is right and wrong
report.py     tells it; ``kept.py`` is what is kept of a failure, for ``replay`` and as a test
lab.py        the same world by hand, for one test
"""

from setpoint.testing.proof.cloud import Cloud, CloudError
from setpoint.testing.proof.lab import Lab
from setpoint.testing.proof.oracles import Finding
from setpoint.testing.proof.plans import (
    Alter,
    At,
    Break,
    Change,
    ClockStep,
    Compact,
    Crash,
    Create,
    Cut,
    Delete,
    Double,
    Freeze,
    Hide,
    Interfere,
    LeaseDeleted,
    Linger,
    Lose,
    Merge,
    Overlap,
    Pass,
    Plan,
    Refuse,
    Restart,
    Rotate,
    Silence,
    Slow,
    SlowClock,
    Starve,
    Swap,
    Throttle,
    Travel,
    Unadmitted,
    Uncollected,
    Unrenewed,
    Unwritable,
)
from setpoint.testing.proof.prove import prove, replay
from setpoint.testing.proof.report import Failure, Report

__all__ = [
    "Alter",
    "At",
    "Break",
    "Change",
    "ClockStep",
    "Cloud",
    "CloudError",
    "Compact",
    "Crash",
    "Create",
    "Cut",
    "Delete",
    "Double",
    "Failure",
    "Finding",
    "Freeze",
    "Hide",
    "Interfere",
    "Lab",
    "LeaseDeleted",
    "Linger",
    "Lose",
    "Merge",
    "Overlap",
    "Pass",
    "Plan",
    "Refuse",
    "Report",
    "Restart",
    "Rotate",
    "Silence",
    "Slow",
    "SlowClock",
    "Starve",
    "Swap",
    "Throttle",
    "Travel",
    "Unadmitted",
    "Uncollected",
    "Unrenewed",
    "Unwritable",
    "prove",
    "replay",
]
