"""The control planes that tests run against: the real one, or Setpoint's own in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, cast

from setpoint.builtin.controllers import ALL
from setpoint.server.server import SERVICES
from setpoint.testing.embedded import EmbeddedControlPlane
from setpoint.testing.kube import ControlPlane
from tests.conformance.in_memory import InMemoryPlane

_RANGE: Final = "--service-cluster-ip-range="
_TOKENS: Final = "--token-auth-file="
# What kube-controller-manager runs; tests bring a node of their own.
IN_MANAGER: Final = tuple(name for name in ALL if name != "node-stand-in")


class NewPlane(Protocol):
    """Makes a control plane, not started yet."""

    def __call__(
        self, *, api_server_args: Sequence[str] = (), controller_manager: bool = False
    ) -> ControlPlane: ...


def new_in_memory(*, api_server_args: Sequence[str] = (), controller_manager: bool = False) -> ControlPlane:
    """Ours, asked without a socket."""
    return _ours(InMemoryPlane, api_server_args, controller_manager)


def new_embedded(*, api_server_args: Sequence[str] = (), controller_manager: bool = False) -> ControlPlane:
    """Ours, over a socket."""
    return _ours(EmbeddedControlPlane, api_server_args, controller_manager)


def _ours(kind: type[EmbeddedControlPlane], args: Sequence[str], controllers: bool) -> ControlPlane:
    """Of kube-apiserver's flags ours knows two, and the others are about caches that it does not have."""
    ranges = [arg.removeprefix(_RANGE) for arg in args if arg.startswith(_RANGE)]
    tokens = [arg.removeprefix(_TOKENS) for arg in args if arg.startswith(_TOKENS)]
    plane = kind(
        controllers=IN_MANAGER if controllers else (),
        service_range=ranges[0] if ranges else SERVICES,
        token_file=tokens[0] if tokens else None,
    )
    # It lacks what needs.py lists, and nothing else that these tests use.
    return cast("ControlPlane", plane)
