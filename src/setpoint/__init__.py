"""Setpoint: level-triggered Kubernetes controllers in Python.

The front door.  Objects and how to describe them are in ``setpoint.api``, Kubernetes' own kinds in
``setpoint.kube``, errors in ``setpoint.errors``, and what tests need in ``setpoint.testing``.
"""

from setpoint.api.forms import metadata_only, untyped
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config

__all__ = ["Client", "Config", "ignore_not_found", "metadata_only", "untyped"]
