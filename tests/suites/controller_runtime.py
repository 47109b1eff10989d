"""controller-runtime's own suites: where they come from, how they are run against a server, what they say.

They come from the Go module proxy, at the version that ``tests/outside/controller`` uses, and are built once
into a cache beside the programs of ``make kube``.  A package is run in one of two ways:

- ``envtest``: its suite starts servers itself, from the programs in KUBEBUILDER_ASSETS (``envtest.py``);
- ``existing``: it finds one that runs, by USE_EXISTING_CLUSTER and KUBECONFIG.

Outcomes are by test: a spec of Ginkgo, or a Go test (with its subtests, of which only the leaves count).
Not here: which server it is, and the table (``__main__.py``).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from tests.suites.building import CACHE, run

_CONTROLLER: Final = Path(__file__).parents[1] / "outside" / "controller"
MODULE: Final = "sigs.k8s.io/controller-runtime"
LONGEST: Final = 900  # seconds for one package on one server
TRIES: Final = 3  # of a spec: some race with the server, and lose when it is fast

# Those whose tests ask a server for something; leaderelection has no tests of its own, manager has them.
PACKAGES: Final = (
    "builder",
    "cache",
    "client",
    "client/apiutil",
    "cluster",
    "controller",
    "controller/controllerutil",
    "envtest",
    "handler",
    "internal/controller",
    "internal/recorder",
    "internal/testing/controlplane",
    "manager",
    "manager/internal/integration",
    "metrics/filters",
    "reconcile",
    "source",
    "webhook",
)
ON_EXISTING: Final = ("builder", "cache", "client", "manager", "webhook")  # also asked of one that runs

Outcome: TypeAlias = Literal["passed", "failed", "skipped"]
Outcomes: TypeAlias = Mapping[str, tuple[Outcome, str]]  # by test: how it ended, and what it said
_ENDS: Final[dict[str, Outcome]] = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_STATES: Final[dict[str, Outcome]] = {"passed": "passed", "skipped": "skipped", "pending": "skipped"}
_REPORT: Final = "report.json"
AGAIN: Final = "at another try"  # what is said of a spec that passed so
_ENDED: Final = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \(")
_STARTED: Final = re.compile(r"^=== (?:RUN|CONT|NAME) +(\S+)")


def version() -> str:
    """The one that ``tests/outside/controller`` requires."""
    found = re.search(rf"^\s*{re.escape(MODULE)} (v\S+)$", (_CONTROLLER / "go.mod").read_text(), re.MULTILINE)
    assert found, "controller/go.mod requires no controller-runtime"
    return found[1]


def source() -> Path:
    """The module with its tests, where they may write."""
    folder = CACHE / f"controller-runtime-{version()}"
    if not (folder / ".whole").exists():
        told = run(["go", "mod", "download", "-json", MODULE], cwd=_CONTROLLER)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(json.loads(told)["Dir"], folder, copy_function=shutil.copyfile)
        for each in (folder, *folder.rglob("*")):
            is_run = each.is_dir() or each.suffix == ".sh"  # a module's zip keeps no modes
            each.chmod(0o755 if is_run else 0o644)
        (folder / ".whole").touch()
    return folder


def built(package: str) -> Path:
    """The package's tests, as a program."""
    program = CACHE / f"controller-runtime-{version()}-tests" / f"{package.replace('/', '-')}.test"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(".unfinished")
        run(["go", "test", "-c", "-o", str(unfinished), f"./pkg/{package}"], cwd=source())
        unfinished.rename(program)
    return program


def outcomes(package: str, folder: Path, told: Mapping[str, str]) -> Outcomes:
    """Run a package's tests; ``told`` is its environment's, and says where the server is.

    ``folder`` keeps what was said, for those who wonder.
    """
    report = folder / _REPORT
    command = [
        str(built(package)),
        "-test.v",
        f"-test.timeout={LONGEST}s",
        f"-ginkgo.timeout={LONGEST - 30}s",
    ]
    command += [f"-ginkgo.json-report={report}", "-ginkgo.no-color", f"-ginkgo.flake-attempts={TRIES}"]
    mark = f"SETPOINT_SUITE={secrets.token_hex(8)}"
    patient = {"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": "2m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT": "2m"}
    scratch = folder / "tmp"  # which the suites do not always empty
    scratch.mkdir()
    own = {**patient, **told, "TMPDIR": str(scratch), **dict([mark.split("=")])}
    environment = {**_without_credentials(os.environ), **own}
    with (folder / "said").open("wb") as said, _ending(mark):
        subprocess.run(
            command,
            cwd=source() / "pkg" / package,
            env=environment,
            stdout=said,
            stderr=said,
            timeout=LONGEST + 30,
            check=False,
        )
    return read(folder)


def repeated(outcomes: Outcomes) -> Outcomes:
    """What a whole suite came to that was run again."""
    return {name: (end, why or AGAIN) for name, (end, why) in outcomes.items()}


def read(folder: Path) -> Outcomes:
    """What a run left there."""
    text, report = (folder / "said").read_text(errors="replace"), folder / _REPORT
    specs = read_specs(json.loads(report.read_text())) if report.exists() else {}
    return {**dict(read_tests(text)), **specs}


@contextmanager
def _ending(mark: str) -> Iterator[None]:
    """Ends what a suite leaves running: some forget their servers, which have process groups of their own."""
    try:
        yield
    finally:
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark.encode() in (place / "environ").read_bytes().split(b"\0"):
                    os.kill(int(place.name), signal.SIGKILL)


def _without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """Of any cluster that the user has: the suites write and delete."""
    ours = ("KUBECONFIG", "KUBEBUILDER_ASSETS", "USE_EXISTING_CLUSTER", "KUBERNETES_SERVICE_HOST")
    return {name: value for name, value in environment.items() if name not in ours}


def read_specs(report: list[Any]) -> Outcomes:
    """From Ginkgo's report; a spec has the name of all that it stands in."""
    found: dict[str, tuple[Outcome, str]] = {}
    for suite in report:
        for spec in suite["SpecReports"] or ():
            failed = (spec.get("Failure") or {}).get("Message", "")
            tries = AGAIN if spec.get("NumAttempts", 1) > 1 else ""
            if spec["LeafNodeType"] != "It":
                if spec["State"] not in _STATES:  # what comes before or after all of them
                    found[spec["LeafNodeType"]] = "failed", failed
                continue
            texts = [*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]]
            name = " ".join(texts)
            while name in found:  # of a table whose entries have the same name
                name += " (again)"
            found[name] = _STATES.get(spec["State"], "failed"), failed or tries
    return found


def read_tests(said: str) -> Iterator[tuple[str, tuple[Outcome, str]]]:
    """From what Go says with -v: those tests that have no tests below them, and run no suite of Ginkgo's."""
    ended: dict[str, Outcome] = {}
    lines: dict[str, list[str]] = {}
    suites, current = set[str](), ""
    for line in said.splitlines():
        if begun := _STARTED.match(line):
            current = begun[1]
            continue
        if line.startswith("Running Suite:"):
            suites.add(current)
        if end := _ENDED.match(line):
            current = end[2]
            ended[current] = _ENDS[end[1]]
            continue
        lines.setdefault(current, []).append(line)
    for name, outcome in ended.items():
        if name not in suites and not any(other.startswith(f"{name}/") for other in ended):
            yield name, (outcome, "\n".join(lines.get(name, ())[:40]))
