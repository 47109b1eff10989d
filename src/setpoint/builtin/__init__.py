"""The controllers that every cluster has, written with this runtime: what kube-controller-manager does.

``add_controllers(manager)`` adds all of them, ``add_controllers(manager, names)`` those that are named.
"""

from setpoint.builtin.controllers import ALL, CONTROLLERS, add_controllers

__all__ = ["ALL", "CONTROLLERS", "add_controllers"]
