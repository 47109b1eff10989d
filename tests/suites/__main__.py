"""``make suites``: others' suites and tools on our server and on the real one, and the tables of it.

    python -m tests.suites                    everything; writes the tables into docs/suites.md
    python -m tests.suites client webhook     these packages of controller-runtime alone; writes nothing

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
from tests.suites import charts, controller_runtime
from tests.suites.controller_runtime import ON_EXISTING, PACKAGES, Outcomes
from tests.suites.envtest import ROOT, assets
from tests.suites.table import Results, Way, judged, page, read_reasons

_PAGE: Final = ROOT / "docs" / "suites.md"
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
                place.mkdir(parents=True)
                began = time.monotonic()
                with _told(way, server, place) as told:
                    outcomes = controller_runtime.outcomes(package, place, told)
                found[way, package, server] = outcomes
                _say(f"{way} {package} {server}: {_counted(outcomes)} in {time.monotonic() - began:.0f} s")
    return found


def _counted(outcomes: Outcomes) -> str:
    ends = [outcome for outcome, _ in outcomes.values()]
    return ", ".join(f"{ends.count(each)} {each}" for each in ("passed", "failed", "skipped"))


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - it is a command


def main(arguments: Sequence[str]) -> int:
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="setpoint-suites-"))
    _say(f"what the suites say is kept in {folder}")
    packages = arguments or PACKAGES
    results = _run(packages, folder)
    explained, wrong = judged(results, read_reasons(), is_whole=not arguments)
    for line in wrong:
        _say(line)
    if arguments:
        return bool(wrong)
    compared = charts.compared(folder / "helm")
    for one in compared:
        _say(f"helm {one.command}: {'the same' if one.is_same else one.difference}")
    versions = {
        "Kubernetes": KUBERNETES,
        "controller-runtime": controller_runtime.version(),
        "Helm": charts.version(),
    }
    minutes = round((time.monotonic() - began) / 60)
    text = page(_PAGE.read_text(), results, explained, compared, versions=versions, minutes=minutes)
    _PAGE.write_text(text)
    return bool(wrong) or not all(one.is_same for one in compared)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
