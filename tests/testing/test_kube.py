"""What ``testing/kube.py``, its plugin and ``tests/kube/build`` promise, as far as it shows without Go.

The programs here are small scripts that fail in the ways real ones do.  A script that holds a pipe open tells
that it lives; the end of the pipe, that it is gone.  The rest is in ``tests/conformance``.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from setpoint.testing.kube import ETCD, KUBERNETES, ControlPlane, StartFailed, binaries, port_was_taken

BUILD = Path(__file__).parents[1] / "kube" / "build"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


# --- finding the programs


def test_the_programs_are_taken_from_kubebuilder_assets_first(assets: Path) -> None:
    for name in PROGRAMS:
        program(assets / name)

    assert binaries().etcd == assets / "etcd"
    assert binaries(controller_manager=True).kube_controller_manager == assets / "kube-controller-manager"


def test_assets_that_lack_a_program_give_way_to_what_was_built(assets: Path, cache: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        program(assets / name)
    built = cache / machine_folder()
    for name in PROGRAMS:
        program(built / name)

    assert binaries().folder == assets
    assert binaries(controller_manager=True).folder == built


def test_missing_programs_are_named_with_where_they_were_looked_for_and_what_to_do(
    assets: Path, cache: Path
) -> None:
    program(assets / "etcd")

    with pytest.raises(StartFailed) as failure:
        binaries()

    assert f"{assets} lacks kube-apiserver, kubectl;" in str(failure.value)
    assert f"{cache / machine_folder()} lacks etcd, kube-apiserver, kubectl." in str(failure.value)
    assert "Run `make kube`" in str(failure.value)


def test_the_versions_are_those_of_the_go_module() -> None:
    module = (BUILD.parent / "go.mod").read_text()
    required = dict(re.findall(r"^\t(\S+) (v\S+)", module, re.MULTILINE))
    twins = set(re.findall(r"=> k8s\.io/\S+ (v\S+)", module))

    assert required["k8s.io/kubernetes"] == KUBERNETES
    assert required["go.etcd.io/etcd/server/v3"] == ETCD
    assert twins == {KUBERNETES.replace("v1.", "v0.")}, "every staging module is of the same release"


# --- the build script


def test_the_build_does_nothing_when_its_cache_is_whole(cache: Path) -> None:
    for name in PROGRAMS:
        program(cache / machine_folder() / name)

    done = build()

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"kube: {cache / machine_folder()} is complete, nothing to build\n"


def test_the_build_does_nothing_when_kubebuilder_assets_is_whole(assets: Path, cache: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        program(assets / name)

    done = build()

    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert f"KUBEBUILDER_ASSETS={assets}" in done.stdout
    assert not cache.exists()


def test_the_build_says_so_when_there_is_no_go(tools: Path, cache: Path) -> None:
    done = build()

    assert done.returncode == 1
    assert re.search(r"needs Go 1\.\d+\.\d+ or newer, and there is no go on PATH", done.stderr)
    assert not cache.exists()


@pytest.mark.parametrize(
    "script",
    ["echo go1.20.3", "echo 'go: go.mod requires go >= 1.99 (GOTOOLCHAIN=local)' >&2; exit 1"],
    ids=["too old to know go.mod", "too old, and says so itself"],
)
def test_the_build_says_so_when_go_is_too_old(tools: Path, cache: Path, script: str) -> None:
    program(tools / "go", script)

    done = build()

    assert done.returncode == 1
    assert re.search(r"needs Go 1\.\d+\.\d+ or newer; this one says: (1\.20\.3|go: go\.mod)", done.stderr)
    assert not cache.exists()


def test_a_build_that_fails_leaves_nothing_that_looks_whole(tools: Path, cache: Path) -> None:
    """This go builds etcd, and then fails."""
    program(
        tools / "go",
        """
        case "$*" in
          *GOVERSION*) echo go1.99.0 ;;
          *etcd*) while [ "$1" != -o ]; do shift; done; : >"$2" ;;
          *) exit 7 ;;
        esac""",
    )

    assert build().returncode == 7
    assert [entry.name for entry in cache.iterdir() if entry.name != ".lock"] == []


# --- starting and failing


def test_a_failed_start_says_what_failed_and_keeps_only_the_logs(assets: Path, scratch: Path) -> None:
    program(assets / "etcd", "echo out of luck; exit 3")
    program(assets / "kube-apiserver")
    program(assets / "kubectl")
    control_plane = ControlPlane()

    with pytest.raises(StartFailed) as failure:
        control_plane.start()

    assert str(failure.value) == (
        f"start etcd: it ended with exit code 3. The logs are kept in {control_plane.logs};"
        f" etcd.log ends with:\n  out of luck"
    )
    (folder,) = scratch.iterdir()
    assert [entry.name for entry in folder.iterdir()] == ["logs"], "no key is left behind"
    assert (control_plane.logs / "etcd.log").read_text() == "out of luck\n"
    control_plane.stop()
    assert folder.exists(), "a stop after the failure leaves the logs too"


def test_a_program_that_cannot_be_run_is_named(assets: Path, scratch: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        program(assets / name).write_text("this is no program")

    with pytest.raises(StartFailed, match=r"start etcd: \S+/etcd cannot be run: .*Exec format error"):
        ControlPlane().start()


def test_a_part_that_never_gets_ready_is_ended_at_the_deadline(pipe: Path, scratch: Path) -> None:
    lives = Pipe(pipe)

    with pytest.raises(
        StartFailed, match=r"start etcd: not ready after 0.5 s; GET https://127\.0\.0\.1:\d+/he"
    ):
        ControlPlane(timeout=0.5).start()

    lives.wait_for_the_end()


def test_a_taken_port_is_tried_again_elsewhere_a_few_times(assets: Path, scratch: Path) -> None:
    ports = assets / "ports"
    program(
        assets / "etcd",
        f"""
        for flag; do case $flag in --listen-client-urls=*) echo "${{flag##*:}}" >>{ports} ;; esac; done
        echo listen tcp: bind: address already in use; exit 1""",
    )
    program(assets / "kube-apiserver")
    program(assets / "kubectl")

    with pytest.raises(StartFailed, match="start etcd: somebody else took its port"):
        ControlPlane().start()

    tried = ports.read_text().split()
    assert len(tried) == len(set(tried)) == 5


def test_a_taken_port_is_told_from_other_failures() -> None:
    taken = "failed to create listener: listen tcp 127.0.0.1:6443: bind: address already in use"

    assert port_was_taken(taken)
    assert not port_was_taken("bind: permission denied")


# --- stopping


def test_stopping_what_never_started_does_nothing() -> None:
    control_plane = ControlPlane()

    control_plane.stop()
    control_plane.stop()

    assert repr(control_plane) == "<ControlPlane stopped, running nothing>"


def test_a_cancelled_start_ends_its_processes_and_leaves_nothing(pipe: Path, scratch: Path) -> None:
    async def cancel_once_it_runs() -> None:
        lives = Pipe(pipe)
        starting = asyncio.ensure_future(ControlPlane().__aenter__())
        await asyncio.to_thread(lives.wait_for_the_start)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        lives.wait_for_the_end()

    asyncio.run(cancel_once_it_runs())

    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_an_owner_that_dies(pipe: Path, scratch: Path, ended_by: signal.Signals) -> None:
    lives = Pipe(pipe)
    owner = subprocess.Popen(
        [sys.executable, "-c", "from setpoint.testing.kube import ControlPlane; ControlPlane().start()"]
    )
    try:
        lives.wait_for_the_start()
        owner.send_signal(ended_by)
        lives.wait_for_the_end()
    finally:
        owner.kill()
        owner.wait()


# --- the plugin


def test_the_fixture_fails_rather_than_skips_when_programs_are_missing(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kube): pass\n")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "1 error" in done.stdout
    assert f"{cache / machine_folder()} lacks etcd, kube-apiserver, kubectl. Run `make kube`" in done.stdout
    assert "Traceback" not in done.stdout


def test_the_plugin_costs_nothing_until_a_fixture_is_used() -> None:
    loaded = "import sys, setpoint.testing.plugin; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)

    assert "setpoint.testing.plugin" in done.stdout.split()
    assert {"setpoint.testing.kube", "cryptography"}.isdisjoint(done.stdout.split())


# --- what the tests stand on


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, so that the machine's own stays out of these tests."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("SETPOINT_KUBE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    return tmp_path / "assets"


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where control planes keep their files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def pipe(assets: Path) -> Path:
    """An etcd that holds this pipe open, never gets ready, and lives until it is ended."""
    path = assets / "pipe"
    program(assets / "etcd", f"exec 9>{path}; echo up >&9; exec sleep 600")
    program(assets / "kube-apiserver")
    program(assets / "kubectl")
    os.mkfifo(path)
    return path


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with what the build needs, but no go."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in (
        "awk",
        "bash",
        "chmod",
        "dirname",
        "env",
        "head",
        "mkdir",
        "mktemp",
        "rm",
        "sort",
        "tr",
        "uname",
    ):
        found = shutil.which(name)
        assert found, name
        (folder / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    return folder


class Pipe:
    """The reading end: says whether any process still holds the other."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait_for_the_start(self) -> None:
        assert self._next() == b"up\n"

    def wait_for_the_end(self) -> None:
        while self._next():
            pass
        os.close(self._fd)

    def _next(self) -> bytes:
        ready, _, _ = select.select([self._fd], [], [], 30)
        assert ready, "nothing happened within 30 s"
        return os.read(self._fd, 100)


def program(path: Path, script: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def build() -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUILD], capture_output=True, text=True, check=False, timeout=60)


def machine_folder() -> str:
    system, machine = os.uname().sysname.lower(), os.uname().machine
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    return f"{KUBERNETES}-{ETCD}-{system}-{arch}"
