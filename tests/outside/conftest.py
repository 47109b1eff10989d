"""Both servers, for the whole run, and the folder in which outside programs are kept between runs."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

import pytest

from setpoint.net.tls import Authority
from setpoint.testing.kube import StartFailed
from tests.outside.kubectl import MANIFESTS, Kubectl
from tests.outside.servers import NAMES, Server, running


@pytest.fixture(scope="session")
def setpoint_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running("setpoint", tmp_path_factory.mktemp("setpoint")) as server:
        yield server


@pytest.fixture(scope="session")
def kube_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    try:
        with running("kube", tmp_path_factory.mktemp("kube")) as server:
            yield server
    except StartFailed as failure:
        pytest.fail(str(failure), pytrace=False)


@pytest.fixture(params=NAMES)
def server(request: pytest.FixtureRequest) -> Server:
    """One server, then the other."""
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


_MOST_SHOWN: Final = 400  # lines of a difference


class Both:
    """kubectl for both servers, in a namespace of the same name on each."""

    def __init__(self, ours: Kubectl, theirs: Kubectl) -> None:
        self.ours = ours
        self.theirs = theirs

    def agree(self, script: str, *, shown: Callable[[str], bool] = bool) -> None:
        """Run the script against both: kubectl must say the same, in the lines that are to be shown."""
        with ThreadPoolExecutor() as pool:
            ours, theirs = pool.map(lambda each: each.transcript(script), (self.ours, self.theirs))
        self.same([line for line in ours if shown(line)], [line for line in theirs if shown(line)])

    def same(self, ours: list[str], theirs: list[str]) -> None:
        if ours != theirs:
            compared = difflib.unified_diff(theirs, ours, "kube-apiserver", "setpoint", lineterm="", n=4)
            pytest.fail("\n".join(islice(compared, _MOST_SHOWN)), pytrace=False)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kubectl keeps what it learnt of each server, and where it finds the manifests."""
    folder = tmp_path_factory.mktemp("homes")
    copied = Path(shutil.copytree(MANIFESTS, folder / MANIFESTS.name))
    pair = Authority.create("outside").issue("example.org", server=True)
    (copied / "tls.crt").write_bytes(pair.certificate_pem)
    (copied / "tls.key").write_bytes(pair.key_pem)
    return folder


class NewBoth(Protocol):
    def __call__(self, namespace: str) -> Both: ...


@pytest.fixture
def new_both(setpoint_server: Server, kube_server: Server, homes: Path) -> NewBoth:
    """Makes a namespace on both servers."""

    def make(namespace: str) -> Both:
        both = Both(*(Kubectl(each, homes, namespace) for each in (setpoint_server, kube_server)))
        for kubectl in (both.ours, both.theirs):
            kubectl.ok(f"create namespace {namespace}")
        return both

    return make
