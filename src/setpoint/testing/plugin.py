"""The pytest fixtures of Setpoint; loaded by pytest wherever Setpoint is installed.

``kube`` is one control plane for the whole test run, started when the first test asks for it.  Where its
programs are missing, or it does not get ready, those tests fail: a skipped test proves nothing.

``cluster`` is a fresh cluster for each test, in this process and in virtual time; ``operator`` runs operators
in it, ``fault`` and ``freeze`` disturb them, ``eventually`` waits for what comes of it.  With
``--setpoint-cluster kube`` it is a namespace of a real control plane instead, and time is real.  A ``Cloud``
among the names of the test's module is empty when the test begins, and known to its cluster.
``@pytest.mark.cluster(controllers=True)`` has the controllers of every cluster run in it, with ``replicas=2``
each operator runs twice.  A test that fails is reported with the story of what happened in its cluster; one
whose faults did not strike fails, and so does one whose operator wanted to reach something outside.

``virtual_time`` runs a coroutine in which a minute passes at once, with no cluster at all.

A project may have fixtures of these names itself, which then count.  A ``cluster`` of its own that is a
``Lab`` is what the others act on; where it is something else, they act on ``setpoint_cluster``.  Options
carry our name because pytest loads this everywhere, beside plugins that we do not know.

Nothing of ours is imported until a fixture is used.  Drives ``kube.py``, ``virtual_time.py``,
``proof/lab.py`` and ``proof/real_lab.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from setpoint.testing.kube import ControlPlane
    from setpoint.testing.proof.cloud import Cloud
    from setpoint.testing.proof.lab import Lab

_LAB = "setpoint.testing.proof.lab"  # a test run that has not read it has no lab
_made = pytest.StashKey["Lab"]()  # the lab of a test, from when it is there


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("setpoint")
    group.addoption(
        "--setpoint-cluster",
        choices=["memory", "kube"],
        default="memory",
        help="what the fixture `cluster` is: in this process and in virtual time, or a real kube-apiserver",
    )
    group.addoption(
        "--setpoint-update",
        action="store_true",
        help="write the files that cluster.assert_matches(path) would compare with",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "cluster(controllers, replicas, allow_network, allow_program): which built-in controllers run in the "
        "fixture `cluster` (True: all), how many of each operator (several elect a leader), and which "
        "addresses and programs it and `virtual_time` may reach",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Have a test fail whose faults did not strike: it has not shown what it says."""
    result = yield
    for _name, lab in _labs(item):
        lab.assert_isolated()
        lab.assert_struck()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have a test that failed tell what happened in its clusters."""
    report = yield
    if report.failed and report.when != "teardown":
        for name, lab in _labs(item):
            report.sections.append((f"what happened in `{name}`", lab.story()))
    return report


def _labs(item: pytest.Item) -> Iterable[tuple[str, Lab]]:
    """The labs of a test, each once, and what the test calls it."""
    labs: dict[int, tuple[str, Lab]] = {}
    if _LAB in sys.modules:
        made = item.stash.get(_made, None)  # there before the test has it, and where only `operator` has
        for name, each in [*getattr(item, "funcargs", {}).items(), ("cluster", made)]:
            if isinstance(each, _lab_class()):
                labs.setdefault(id(each), (name, each))
    return labs.values()


def _lab_class() -> type[Lab]:
    from setpoint.testing.proof.lab import Lab  # noqa: PLC0415 - costs nothing until used

    return Lab


@pytest.fixture(scope="session")
def kube() -> Iterator[ControlPlane]:
    """A running etcd and kube-apiserver, shared by all tests: give each its own namespace."""
    yield from _running(controller_manager=False)


@pytest.fixture(scope="session")
def setpoint_control_plane() -> Iterator[ControlPlane]:
    """What ``cluster`` is a namespace of, if it is real: with controllers, or nothing would be collected."""
    yield from _running(controller_manager=True)


def _running(*, controller_manager: bool) -> Iterator[ControlPlane]:
    from setpoint.testing.kube import ControlPlane, StartFailed  # noqa: PLC0415 - costs nothing until used

    control_plane = ControlPlane(controller_manager=controller_manager)
    try:
        control_plane.start()
    except StartFailed as failure:
        pytest.fail(str(failure), pytrace=False)
    try:
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture
def setpoint_cluster(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """``cluster``, under a name that no other project has."""
    with _lab(request) as lab:
        request.node.stash[_made] = lab
        yield lab


def _lab(request: pytest.FixtureRequest) -> Lab:
    marker = request.node.get_closest_marker("cluster")
    asked = {} if marker is None else marker.kwargs
    controllers, replicas = asked.get("controllers", False), asked.get("replicas", 1)
    allowed = _allowed(request)
    folder, update = request.path.parent, request.config.getoption("--setpoint-update")
    clouds = _clouds(request)
    if request.config.getoption("--setpoint-cluster") == "memory":
        return _lab_class()(
            clouds=clouds, controllers=controllers, replicas=replicas, folder=folder, update=update, **allowed
        )
    from setpoint.client.config import Config  # noqa: PLC0415
    from setpoint.testing.proof.real_lab import RealLab  # noqa: PLC0415

    config = Config.load(request.getfixturevalue("setpoint_control_plane").kubeconfig)
    return RealLab(
        config,
        unavailable=pytest.skip,
        clouds=clouds,
        node=bool(controllers),
        folder=folder,
        update=update,
        **allowed,
    )


def _allowed(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What of the outside may be reached in a test, as its marker says."""
    marker = request.node.get_closest_marker("cluster")
    asked = {} if marker is None else marker.kwargs
    return {name: asked.get(name, ()) for name in ("allow_network", "allow_program")}


def _clouds(request: pytest.FixtureRequest) -> tuple[Cloud, ...]:
    """What a test's module knows of outside: a lab empties it, or a test would find what another left."""
    from setpoint.testing.proof.cloud import Cloud  # noqa: PLC0415 - costs nothing until used

    module = getattr(request.node, "module", None)  # what is no function of a module has none
    names = {} if module is None else vars(module)
    return tuple({id(each): each for each in names.values() if isinstance(each, Cloud)}.values())


@pytest.fixture
def cluster(setpoint_cluster: Lab) -> Lab:
    """A cluster of this test's own, in which an hour passes at once; plain calls, nothing to await."""
    return setpoint_cluster


def _cluster(request: pytest.FixtureRequest) -> Lab:
    """The test's ``cluster``; ours, where the project calls something else by that name."""
    given = request.getfixturevalue("cluster")
    return given if isinstance(given, _lab_class()) else request.getfixturevalue("setpoint_cluster")


@pytest.fixture
def operator(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Run an operator in the test's cluster: ``operator(make)``."""
    return _cluster(request).run


@pytest.fixture
def fault(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Place a fault, which strikes when it comes to what it waits for: ``fault(Crash(at=At(...)))``."""
    return _cluster(request).fault


@pytest.fixture
def freeze(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Have operators see nothing new for a while: ``freeze("configmaps", seconds=60)``."""
    return _cluster(request).freeze


@pytest.fixture
def eventually(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Let the cluster's time pass until a check gives something true: ``eventually(is_ready)``."""
    return _cluster(request).eventually


@pytest.fixture
def virtual_time(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Run a coroutine in which a minute passes at once: ``virtual_time(main())``; for what has no sockets."""
    import asyncio  # noqa: PLC0415 - costs nothing until used

    from setpoint.testing.isolation import Allowed, Isolation  # noqa: PLC0415
    from setpoint.testing.virtual_time import VirtualTimeLoop  # noqa: PLC0415

    isolation = Isolation(Allowed.of(*_allowed(request).values()))

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        result = runner.run(work)
        for refused in isolation.refused:  # an error that the coroutine caught
            raise AssertionError(refused)
        return result

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        with isolation:
            runner.get_loop()  # which takes the context that all its tasks begin with
        yield run
