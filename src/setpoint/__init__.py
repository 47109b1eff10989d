"""Setpoint: level-triggered Kubernetes controllers in Python.

The front door.  Objects and how to describe them are in ``setpoint.api``, Kubernetes' own kinds in
``setpoint.kube``, errors in ``setpoint.errors``, and what tests need in ``setpoint.testing``.

Everything is fetched when it is first used: a program that merely asks the server for something must not pay
for a manager, nor a server for a client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setpoint.api.forms import metadata_only, untyped
    from setpoint.client.client import Client, ignore_not_found
    from setpoint.client.config import Config
    from setpoint.controller.builder import builder
    from setpoint.controller.children import Children, Ready
    from setpoint.controller.context import Context
    from setpoint.controller.owners import set_controller_reference
    from setpoint.controller.readiness import is_ready
    from setpoint.controller.result import Request, Result
    from setpoint.controller.sync_context import SyncContext
    from setpoint.errors import RetryLater, TerminalError
    from setpoint.manager.lease_state import LeaderElection
    from setpoint.manager.manager import Manager
    from setpoint.operator import Operator

__all__ = [
    "Children",
    "Client",
    "Config",
    "Context",
    "LeaderElection",
    "Manager",
    "Operator",
    "Ready",
    "Request",
    "Result",
    "RetryLater",
    "SyncContext",
    "TerminalError",
    "builder",
    "ignore_not_found",
    "is_ready",
    "metadata_only",
    "set_controller_reference",
    "untyped",
]

_HOMES = {
    "api.forms": ("metadata_only", "untyped"),
    "client.client": ("Client", "ignore_not_found"),
    "client.config": ("Config",),
    "controller.builder": ("builder",),
    "controller.children": ("Children", "Ready"),
    "controller.context": ("Context",),
    "controller.owners": ("set_controller_reference",),
    "controller.readiness": ("is_ready",),
    "controller.result": ("Request", "Result"),
    "controller.sync_context": ("SyncContext",),
    "errors": ("RetryLater", "TerminalError"),
    "manager.lease_state": ("LeaderElection",),
    "manager.manager": ("Manager",),
    "operator": ("Operator",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"setpoint.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
