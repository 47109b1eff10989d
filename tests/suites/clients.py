"""The suites of Python's clients, kopf, kr8s, lightkube and kubernetes_asyncio: where they come from, how
they are run against a server, what they say.

All four are installed as ``requirements.txt`` locks them, in an environment of their own.  Two of them
publish their suites: those come from PyPI, checked by the lock.  The others keep theirs in git, at a commit
named here; who cannot reach GitHub names another place in ``LIGHTKUBE_GIT`` or ``KUBERNETES_ASYNCIO_GIT``.

A suite is run as it was published, by its own options but for time limits, on a cluster with controllers and
our node stand-in, furnished as those of kind and k3s are, for which the suites are written: something runs in
kube-system, and the administrator has a certificate.  What else a suite takes for granted is put right by a
plug-in (``plugins/``).
Not here: which server it is, and the table (``__main__.py``).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from tests.outside import environment
from tests.suites.building import CACHE, run
from tests.suites.controller_runtime import AGAIN, TRIES, Outcome, Outcomes

_HERE: Final = Path(__file__).parent
_LOCK: Final = _HERE / "requirements.txt"
_LONGEST: Final = 900.0  # seconds for one suite on one server
_REPORT: Final = "report.xml"
ADMIN: Final = "kubernetes-admin"  # kind's


@dataclass(frozen=True)
class Suite:
    """One of theirs."""

    tests: tuple[str, ...]  # those that need a cluster
    options: tuple[str, ...]  # of pytest
    git: str = ""  # where they are, when they are not published
    commit: str = ""


SUITES: Final = {
    "kopf": Suite(("tests/e2e",), ("--only-e2e", "--timeout=90", "-p", "given_openssl")),
    "kr8s": Suite(
        ("kr8s/tests/test_api.py", "kr8s/tests/test_auth.py", "kr8s/tests/test_objects.py"),
        ("--override-ini=addopts=", "--timeout=20", "-p", "given_cluster"),
    ),
    "lightkube": Suite(
        ("e2e-tests",),
        ("--timeout=60",),
        "https://github.com/gtsystem/lightkube",
        "2f41260dc98af0cd3f62a526539a72cd8289af73",
    ),
    "kubernetes-asyncio": Suite(
        ("kubernetes_asyncio/e2e_test",),
        ("--timeout=60", "-p", "given_tests"),
        "https://github.com/tomplus/kubernetes_asyncio",
        "cb0b819d0666538dc02f39a858e251834f980d4e",
    ),
}


class Unreachable(Exception):
    """A suite could not be fetched."""


def version(name: str) -> str:
    """The one that is locked."""
    return _locked(name).split()[0].removeprefix(f"{name}==")


def edition(name: str) -> str:
    """The version, and where the suite is not published with it, the suite's."""
    commit = SUITES[name].commit[:12]
    return f"{version(name)}{f' (its suite: {commit})' if commit else ''}"


def _locked(name: str) -> str:
    """The lock's lines about a package."""
    found = re.search(rf"^{re.escape(name)}==[^\n]+\n(?: +--hash[^\n]+\n)+", _LOCK.read_text(), re.MULTILINE)
    assert found, f"requirements.txt locks no {name}"
    return found[0]


def source(name: str) -> Path:
    """Where the suite lies, fetched if it is not there yet."""
    suite = SUITES[name]
    folder = CACHE / f"{name}-{suite.commit[:12] or version(name)}"
    if not (folder / ".whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            _clone(name, suite, folder) if suite.git else _download(name, folder)
        except AssertionError as error:
            raise Unreachable(f"{name}: {error}") from error
        (folder / ".whole").touch()
    return folder


def _download(name: str, folder: Path) -> None:
    wanted = folder / "wanted.txt"
    wanted.write_text(_locked(name))
    pip = [str(environment.python(_LOCK)), "-m", "pip", "--disable-pip-version-check", "--quiet", "download"]
    pip += [
        "--no-deps",
        "--no-binary=:all:",
        "--require-hashes",
        f"--requirement={wanted}",
        f"--dest={folder}",
    ]
    run(pip, cwd=folder)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (inner,) = (each for each in folder.iterdir() if each.is_dir())
    for each in inner.iterdir():
        each.rename(folder / each.name)


def _clone(name: str, suite: Suite, folder: Path) -> None:
    place = os.environ.get(f"{name.upper().replace('-', '_')}_GIT") or suite.git
    git = ["git", f"--git-dir={folder / '.git'}", f"--work-tree={folder}"]
    run(["git", "init", "--quiet", str(folder)], cwd=folder)
    run([*git, "remote", "add", "origin", place], cwd=folder)
    # No more than is looked at: one of them is all of Kubernetes' API, generated.
    run([*git, "fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", suite.commit], cwd=folder)
    run([*git, "checkout", "--quiet", "FETCH_HEAD", "--", *suite.tests], cwd=folder)


def _furnish(kubeconfig: Path, kubectl: Path, folder: Path) -> None:
    """Let that run in kube-system which does in the clusters that the suites are written for."""
    ask = [str(kubectl), f"--kubeconfig={kubeconfig}", "--namespace=kube-system"]
    for each in ("coredns", "metrics-server"):
        run([*ask, "create", "deployment", each, f"--image={each}"], cwd=folder)
        run([*ask, "rollout", "status", f"deployment/{each}", "--timeout=60s"], cwd=folder)


def outcomes(name: str, folder: Path, kubeconfig: Path, kubectl: Path) -> Outcomes:
    """Run a suite; ``folder`` keeps what was said, for those who wonder."""
    suite, python = SUITES[name], environment.python(_LOCK)
    _furnish(kubeconfig, kubectl, folder)
    home = folder / "home"
    home.mkdir()
    own = {
        "HOME": str(home),
        "KUBECONFIG": str(kubeconfig),
        "PATH": os.pathsep.join([str(kubectl.parent), str(python.parent), os.environ["PATH"]]),
        "PYTHONPATH": str(_HERE / "plugins"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KUBE", "PYTEST"))}
    pytest = [str(python.parent / "pytest"), *suite.tests, *suite.options]
    pytest += ["-p", "no:cacheprovider", f"--reruns={TRIES - 1}", "-rR", "--tb=short"]
    pytest += [f"--junitxml={folder / _REPORT}"]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            pytest, cwd=source(name), env=kept | own, stdout=said, stderr=said, process_group=0
        )
        try:
            with suppress(subprocess.TimeoutExpired):  # it leaves no report, then
                process.wait(_LONGEST)
        finally:
            with suppress(ProcessLookupError):  # nor does what it started outlive it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    report, text = folder / _REPORT, (folder / "said").read_text(errors="replace")
    if not report.exists():
        return {"the suite": ("failed", text[-1_500:])}
    return dict(read_report(report.read_text(), text))


def read_report(report: str, said: str) -> Iterator[tuple[str, tuple[Outcome, str]]]:
    """From pytest's report in JUnit's form; what fails before or after a test fails it.

    Which tests were tried again is known from what it said besides.
    """
    again = {
        f"{where.rpartition('/')[2].removesuffix('.py')}.{test}"
        for where, test in re.findall(r"^RERUN (?:\S+::)?(\S+?)::([^:\s]+)", said, re.MULTILINE)
    }
    found: dict[str, tuple[Outcome, str]] = {}
    for case in ET.fromstring(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '')}"
        outcome, words = found.get(name, ("passed", AGAIN if name in again else ""))
        for each in case:
            if each.tag in ("failure", "error"):
                words = "" if outcome == "passed" else words
                outcome, words = "failed", f"{words}{each.get('message') or ''}\n{each.text or ''}"
            elif each.tag == "skipped" and outcome == "passed":
                outcome, words = "skipped", each.get("message") or ""
        found[name] = outcome, words
    yield from found.items()
