"""The pytest fixtures of Setpoint; loaded by pytest wherever Setpoint is installed.

``kube`` is one control plane for the whole test run, started when the first test asks for it.  Where its
programs are missing, or it does not get ready, those tests fail: a skipped test proves nothing.

``cluster`` is a fresh cluster for each test, in this process and in virtual time; ``operator`` runs operators
in it.

Nothing of ours is imported until a fixture is used.  Drives ``kube.py`` and ``proof/lab.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from setpoint.testing.kube import ControlPlane
    from setpoint.testing.proof.lab import Lab


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


@pytest.fixture
def cluster() -> Iterator[Lab]:
    """A cluster of this test's own, in which an hour passes at once; plain calls, nothing to await."""
    from setpoint.testing.proof.lab import Lab  # noqa: PLC0415 - costs nothing until used

    with Lab() as lab:
        yield lab


@pytest.fixture
def operator(cluster: Lab) -> Callable[..., None]:
    """A function that runs an operator in the test's ``cluster``."""
    return cluster.run
