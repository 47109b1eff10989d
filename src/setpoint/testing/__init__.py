"""What operators are tested with, and Setpoint itself.

The pytest fixture ``kube`` gives a running ``ControlPlane``: etcd and a real kube-apiserver.

The names here are fetched when first used: pytest loads ``setpoint.testing.plugin`` wherever Setpoint is
installed, and a test run that asks for none of this must not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setpoint.testing.kube import Binaries, ControlPlane, StartFailed, binaries

__all__ = ["Binaries", "ControlPlane", "StartFailed", "binaries"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("setpoint.testing.kube"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
