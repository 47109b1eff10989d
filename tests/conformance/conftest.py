"""Which server these tests are run against: ``--server kube`` (the real one) or ``setpoint`` (ours).

``kube`` is one control plane for the whole run, ``new_plane`` makes further ones, for a test that restarts
its own or must meet nobody else's objects.  What only the real one has is listed in ``needs.py``; the tests
that need it are left out where it is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from setpoint.testing.kube import ControlPlane, StartFailed
from tests.conformance.needs import is_slow, need_of
from tests.conformance.planes import NewPlane, new_embedded

_HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "what the conformance tests run against: a real kube-apiserver, or Setpoint's own server"
    parser.addoption("--server", choices=["kube", "setpoint"], default="kube", help=told)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line("markers", "needs(what): only the real control plane has it")


@pytest.hookimpl(tryfirst=True)  # -m is to see the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        test = getattr(item, "originalname", None) or item.name
        if item.path.parent != _HERE:
            continue
        if (need := need_of(item.path.name, test)) is not None:
            item.add_marker(pytest.mark.needs(need))
        if is_slow(item.path.name, test):
            item.add_marker(pytest.mark.slow)
    if config.getoption("--server") == "setpoint":
        left_out = [item for item in items if item.get_closest_marker("needs") is not None]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item.get_closest_marker("needs") is None]


@pytest.fixture(scope="session")
def new_plane(pytestconfig: pytest.Config) -> NewPlane:
    """Makes a control plane of one's own, not started yet."""
    return ControlPlane if pytestconfig.getoption("--server") == "kube" else new_embedded


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
