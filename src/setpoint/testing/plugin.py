"""The pytest fixtures of Setpoint; loaded by pytest wherever Setpoint is installed.

``kube`` is one control plane for the whole test run, started when the first test asks for it.  Where its
programs are missing, or it does not get ready, those tests fail: a skipped test proves nothing.

``cluster`` is a fresh cluster for each test, in this process and in virtual time; ``operator`` runs operators
in it.  With ``--setpoint-cluster kube`` it is a namespace of a real control plane instead, and time is real.
``@pytest.mark.cluster(controllers=True)`` has the controllers of every cluster run in it.  The option carries
our name because pytest loads this everywhere, beside plugins that we do not know.

Nothing of ours is imported until a fixture is used.  Drives ``kube.py``, ``proof/lab.py`` and
``proof/real_lab.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from setpoint.testing.kube import ControlPlane
    from setpoint.testing.proof.lab import Lab


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("setpoint").addoption(
        "--setpoint-cluster",
        choices=["memory", "kube"],
        default="memory",
        help="what the fixture `cluster` is: in this process and in virtual time, or a real kube-apiserver",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "cluster(controllers): which built-in controllers run in the fixture `cluster`; True: all"
    )


@pytest.fixture(scope="session")
def kube() -> Iterator[ControlPlane]:
    """A running etcd and kube-apiserver, shared by all tests: give each its own namespace."""
    from setpoint.testing.kube import ControlPlane, StartFailed  # noqa: PLC0415 - costs nothing until used

    control_plane = ControlPlane()
    try:
        control_plane.start()
    except StartFailed as failure:
        pytest.fail(str(failure), pytrace=False)
    try:
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture(scope="session")
def setpoint_kube_cluster() -> Iterator[ControlPlane]:
    """What ``cluster`` is a namespace of, if it is real: with controllers, or nothing would be collected."""
    from setpoint.testing.kube import ControlPlane, StartFailed  # noqa: PLC0415 - costs nothing until used

    control_plane = ControlPlane(controller_manager=True)
    try:
        control_plane.start()
    except StartFailed as failure:
        pytest.fail(str(failure), pytrace=False)
    try:
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A cluster of this test's own, in which an hour passes at once; plain calls, nothing to await."""
    marker = request.node.get_closest_marker("cluster")
    controllers = marker.kwargs.get("controllers", False) if marker is not None else False
    if request.config.getoption("--setpoint-cluster") == "memory":
        from setpoint.testing.proof.lab import Lab  # noqa: PLC0415 - costs nothing until used

        with Lab(controllers=controllers) as lab:
            yield lab
        return
    from setpoint.client.config import Config  # noqa: PLC0415
    from setpoint.testing.proof.real_lab import RealLab  # noqa: PLC0415

    plane = request.getfixturevalue("setpoint_kube_cluster")
    config = Config.load(plane.kubeconfig)
    with RealLab(config, unavailable=pytest.skip, node=bool(controllers)) as real:
        yield real


@pytest.fixture
def operator(cluster: Lab) -> Callable[..., None]:
    """A function that runs an operator in the test's ``cluster``."""
    return cluster.run
