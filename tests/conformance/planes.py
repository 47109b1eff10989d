"""The control planes that tests run against: the real one, or Setpoint's own in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, cast

from setpoint.testing.embedded import EmbeddedControlPlane
from setpoint.testing.kube import ControlPlane

_RANGE: Final = "--service-cluster-ip-range="


class NewPlane(Protocol):
    """Makes a control plane, not started yet."""

    def __call__(self, *, api_server_args: Sequence[str] = ()) -> ControlPlane: ...


def new_embedded(*, api_server_args: Sequence[str] = ()) -> ControlPlane:
    """Ours; of kube-apiserver's flags it knows one, and the others are about caches that it does not have."""
    ranges = [arg.removeprefix(_RANGE) for arg in api_server_args if arg.startswith(_RANGE)]
    plane = EmbeddedControlPlane(service_range=ranges[0]) if ranges else EmbeddedControlPlane()
    # It lacks what needs.py lists, and nothing else that these tests use.
    return cast("ControlPlane", plane)
