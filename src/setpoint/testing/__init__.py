"""What operators are tested with, and Setpoint itself.

The pytest fixture ``kube`` gives a running ``ControlPlane``: etcd and a real kube-apiserver.
``EmbeddedControlPlane`` is Setpoint's own API server in that place.  ``Node`` makes its pods run, ``Faults``
and ``Proxy`` make the way there bad, ``eventually`` waits for what comes of it.

The names here are fetched when first used: pytest loads ``setpoint.testing.plugin`` wherever Setpoint is
installed, and a test run that asks for none of this must not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setpoint.testing.asked import Asked
    from setpoint.testing.embedded import EmbeddedControlPlane
    from setpoint.testing.faults import Faults, Rule
    from setpoint.testing.kube import Binaries, ControlPlane, StartFailed, binaries
    from setpoint.testing.node import Node
    from setpoint.testing.pod_steps import Exits, Outcome, Runs, Waits, usual_outcome
    from setpoint.testing.proxy import Proxy
    from setpoint.testing.waiting import eventually

__all__ = [
    "Asked",
    "Binaries",
    "ControlPlane",
    "EmbeddedControlPlane",
    "Exits",
    "Faults",
    "Node",
    "Outcome",
    "Proxy",
    "Rule",
    "Runs",
    "StartFailed",
    "Waits",
    "binaries",
    "eventually",
    "usual_outcome",
]

_HOMES = {
    "asked": ("Asked",),
    "embedded": ("EmbeddedControlPlane",),
    "faults": ("Faults", "Rule"),
    "kube": ("Binaries", "ControlPlane", "StartFailed", "binaries"),
    "node": ("Node",),
    "pod_steps": ("Exits", "Outcome", "Runs", "Waits", "usual_outcome"),
    "proxy": ("Proxy",),
    "waiting": ("eventually",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"setpoint.testing.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
