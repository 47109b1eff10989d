"""What operators are tested with, and Setpoint itself.

The pytest fixture ``kube`` gives a running ``ControlPlane``: etcd and a real kube-apiserver.
``EmbeddedControlPlane`` is Setpoint's own API server in that place.  ``Node`` makes its pods run, ``Faults``
and ``Proxy`` make the way there bad, ``eventually`` waits for what comes of it.  ``prove`` looks for what an
operator does not survive; ``Lab``, the fixture ``cluster``, is a cluster in virtual time for one test, and
``assert_matches`` compares what is in it with a file.

The names here are fetched when first used: pytest loads ``setpoint.testing.plugin`` wherever Setpoint is
installed, and a test run that asks for none of this must not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setpoint.builtin.node_pods import Exits, Outcome, Runs, Waits, usual_outcome
    from setpoint.testing.asked import Asked
    from setpoint.testing.embedded import EmbeddedControlPlane
    from setpoint.testing.faults import Faults, Rule
    from setpoint.testing.golden import assert_matches
    from setpoint.testing.isolation import ExternalCallRefused
    from setpoint.testing.kube import Binaries, ControlPlane, StartFailed, binaries
    from setpoint.testing.node import Node
    from setpoint.testing.privileges import Privileges, least_privilege
    from setpoint.testing.proof.cloud import Cloud
    from setpoint.testing.proof.lab import Lab
    from setpoint.testing.proof.plans import Plan
    from setpoint.testing.proof.prove import prove, replay
    from setpoint.testing.proof.real_proof import prove_on_cluster
    from setpoint.testing.proof.report import Report
    from setpoint.testing.proof.trial import Trial
    from setpoint.testing.proxy import Proxy
    from setpoint.testing.virtual_time import LoopClock, VirtualTimeLoop
    from setpoint.testing.waiting import eventually

__all__ = [
    "Asked",
    "Binaries",
    "Cloud",
    "ControlPlane",
    "EmbeddedControlPlane",
    "Exits",
    "ExternalCallRefused",
    "Faults",
    "Lab",
    "LoopClock",
    "Node",
    "Outcome",
    "Plan",
    "Privileges",
    "Proxy",
    "Report",
    "Rule",
    "Runs",
    "StartFailed",
    "Trial",
    "VirtualTimeLoop",
    "Waits",
    "assert_matches",
    "binaries",
    "eventually",
    "least_privilege",
    "prove",
    "prove_on_cluster",
    "replay",
    "usual_outcome",
]

_HOMES = {
    "builtin.node_pods": ("Exits", "Outcome", "Runs", "Waits", "usual_outcome"),
    "testing.asked": ("Asked",),
    "testing.embedded": ("EmbeddedControlPlane",),
    "testing.faults": ("Faults", "Rule"),
    "testing.golden": ("assert_matches",),
    "testing.isolation": ("ExternalCallRefused",),
    "testing.kube": ("Binaries", "ControlPlane", "StartFailed", "binaries"),
    "testing.node": ("Node",),
    "testing.privileges": ("Privileges", "least_privilege"),
    "testing.proof.cloud": ("Cloud",),
    "testing.proof.lab": ("Lab",),
    "testing.proof.plans": ("Plan",),
    "testing.proof.prove": ("prove", "replay"),
    "testing.proof.real_proof": ("prove_on_cluster",),
    "testing.proof.report": ("Report",),
    "testing.proof.trial": ("Trial",),
    "testing.proxy": ("Proxy",),
    "testing.virtual_time": ("LoopClock", "VirtualTimeLoop"),
    "testing.waiting": ("eventually",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"setpoint.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
