"""Which server these tests are run against: ``--server kube`` (the real one), ``setpoint`` (ours), or
``memory`` (ours, without a socket between).

``kube`` is one control plane for the whole run; ``cluster`` has controllers, too, and is a file's own;
``new_plane`` makes further ones, for a test that restarts its own or must meet nobody else's objects.  What
only the real one has is listed in ``needs.py``; the tests that need it are left out where it is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from setpoint.testing.kube import ControlPlane, StartFailed
from tests.conformance.in_memory import without_sockets
from tests.conformance.needs import is_slow, need_of, needs_socket
from tests.conformance.planes import NewPlane, new_embedded, new_in_memory

_HERE = Path(__file__).parent
PLANES: dict[str, NewPlane] = {"kube": ControlPlane, "setpoint": new_embedded, "memory": new_in_memory}


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "what to run against: a real kube-apiserver, Setpoint's own server, or that without a socket"
    parser.addoption("--server", choices=[*PLANES], default="kube", help=told)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(what): only the real control plane has it")


@pytest.hookimpl(tryfirst=True)  # -m is to see the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        test = getattr(item, "originalname", None) or item.name
        if item.path.parent != _HERE:
            continue
        if (need := need_of(item.path.name, test)) is not None:
            item.add_marker(pytest.mark.needs(need))
        if config.getoption("--server") == "memory" and needs_socket(item.path.name, test):
            item.add_marker(pytest.mark.needs("a socket"))
        if is_slow(item.path.name, test):
            item.add_marker(pytest.mark.slow)
    if config.getoption("--server") != "kube":
        left_out = [item for item in items if item.get_closest_marker("needs") is not None]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item.get_closest_marker("needs") is None]


@pytest.fixture(scope="session")
def new_plane(pytestconfig: pytest.Config) -> Iterator[NewPlane]:
    """Makes a control plane of one's own, not started yet."""
    server = pytestconfig.getoption("--server")
    with without_sockets() if server == "memory" else nullcontext():
        yield PLANES[server]


@pytest.fixture(scope="module")
def cluster(new_plane: NewPlane) -> Iterator[ControlPlane]:
    """A control plane whose controllers run; pods want a ``Node``."""
    with new_plane(controller_manager=True) as plane:
        yield plane


@pytest.fixture(scope="session")
def kube(new_plane: NewPlane) -> Iterator[ControlPlane]:
    """A running control plane, shared by all tests: give each its own namespace."""
    plane = new_plane()
    try:
        plane.start()
    except StartFailed as failure:
        pytest.fail(str(failure), pytrace=False)
    try:
        yield plane
    finally:
        plane.stop()
