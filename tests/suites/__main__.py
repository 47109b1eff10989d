"""``make suites``: others' suites and tools on our server and on the real one, and the tables of it.

    python -m tests.suites                    everything; writes the tables into docs/suites.md
    python -m tests.suites helm python        these parts alone (also: controller-runtime), and their tables
    python -m tests.suites webhook kopf       these packages of controller-runtime, and suites of Python's
                                              clients, alone; writes nothing

It fails if a test ends otherwise on our server than on the real one, or fails on both, and ``reasons.toml``
does not say why; or if a reason is given for what is no longer so.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from setpoint.testing.kube import KUBERNETES, binaries
from tests.outside.servers import NAMES, running
from tests.suites import charts, clients, controller_runtime, table
from tests.suites.clients import SUITES
from tests.suites.controller_runtime import ON_EXISTING, PACKAGES, Outcomes
from tests.suites.envtest import ROOT, assets
from tests.suites.table import Results, Way, judged, page, read_reasons

_PAGE: Final = ROOT / "docs" / "suites.md"
_PARTS: Final = ("controller-runtime", "helm", "python")
_WAYS: Final[tuple[Way, ...]] = ("envtest", "existing")


@contextmanager
def _told(way: Way, server: str, folder: Path) -> Iterator[dict[str, str]]:
    """What a suite's environment says of the server."""
    programs = binaries()
    if way == "envtest":
        ours = assets(folder / "assets", programs.kubectl)
        yield {"KUBEBUILDER_ASSETS": str(programs.folder if server == "kube" else ours)}
        return
    with running(server, folder) as found:
        yield {
            "USE_EXISTING_CLUSTER": "true",
            "KUBECONFIG": str(found.kubeconfig),
            "KUBEBUILDER_ASSETS": str(programs.folder),  # for kubectl
        }


def _run(packages: Sequence[str], folder: Path) -> Results:
    found: Results = {}
    for package in packages:
        controller_runtime.built(package)
    for way in _WAYS:
        for package in packages:
            if way == "existing" and package not in ON_EXISTING:
                continue
            for server in NAMES:
                place = folder / way / package.replace("/", "-") / server
                began = time.monotonic()
                found[way, package, server] = outcomes = _whole(way, package, server, place)
                _say(f"{way} {package} {server}: {_counted(outcomes)} in {time.monotonic() - began:.0f} s")
    return found


def _whole(way: Way, package: str, server: str, folder: Path) -> Outcomes:
    """Ginkgo repeats a test that failed.  One that ends the whole process, by asserting in a goroutine of its
    own, takes the report with it: then all are repeated, on a server of their own.
    """
    for tries in range(controller_runtime.TRIES):
        place = folder / str(tries + 1)
        place.mkdir(parents=True)
        with _told(way, server, place) as told:
            outcomes = controller_runtime.outcomes(package, place, told)
        if outcomes:
            return controller_runtime.repeated(outcomes) if tries else outcomes
    return {}


def _run_clients(names: Sequence[str], folder: Path) -> tuple[Results, list[str]]:
    """What they said, and those that cannot be fetched."""
    found: Results = {}
    unreachable: list[str] = []
    for name in names:
        try:
            clients.source(name)
        except clients.Unreachable as error:
            _say(f"not run: cannot be fetched: {error}")
            unreachable.append(name)
            continue
        for server in NAMES:
            place = folder / "python" / name / server
            place.mkdir(parents=True)
            began = time.monotonic()
            with running(server, place, whole=True, admin=clients.ADMIN, may_warn=True) as cluster:
                outcomes = clients.outcomes(name, place, cluster.kubeconfig, binaries().kubectl)
            if warned := _read(place / "stderr"):  # of ours
                outcomes = {**outcomes, "no warnings": ("failed", warned)}
            found["python", name, server] = outcomes
            _say(f"python {name} {server}: {_counted(outcomes)} in {time.monotonic() - began:.0f} s")
    return found, unreachable


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _counted(outcomes: Outcomes) -> str:
    ends = [outcome for outcome, _ in outcomes.values()]
    return ", ".join(f"{ends.count(each)} {each}" for each in ("passed", "failed", "skipped"))


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - it is a command


def main(arguments: Sequence[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="setpoint-suites-"))
    _say(f"what the suites say is kept in {folder}")
    parts = [each for each in _PARTS if each in arguments or not arguments]
    known = {*_PARTS, *PACKAGES, *SUITES}
    if unknown := [each for each in arguments if each not in known]:
        _say(f"no such suite: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
        return 2
    packages = PACKAGES if "controller-runtime" in parts else [one for one in PACKAGES if one in arguments]
    names = tuple(SUITES) if "python" in parts else [one for one in SUITES if one in arguments]
    results = _run(packages, folder)
    theirs, unreachable = _run_clients(names, folder)
    results |= theirs
    explained, wrong = judged(results, read_reasons(), is_whole=bool(parts))
    for line in wrong:
        _say(line)
    sections: dict[str, list[str]] = {}
    kubernetes = {"Kubernetes": KUBERNETES}
    if "controller-runtime" in parts:
        versions = {**kubernetes, "controller-runtime": controller_runtime.version()}
        sections["controller-runtime"] = list(table.controller_runtime(results, explained, versions))
    if "helm" in parts:
        compared = charts.compared(folder / "helm")
        for one in compared:
            _say(f"helm {one.command}: {'the same' if one.is_same else one.difference}")
            wrong += [] if one.is_same else [one.command]
        sections["Helm"] = list(table.helm(compared, {**kubernetes, "Helm": charts.version()}))
    if "python" in parts:
        versions = {**kubernetes, **{name: clients.edition(name) for name in SUITES}}
        sections["Python's clients"] = list(
            table.clients(results, explained, versions, unreachable=unreachable)
        )
    if sections:
        _PAGE.write_text(page(_PAGE.read_text(), sections))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
