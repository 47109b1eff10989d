"""Where, when and with what it was measured: what a reader needs to judge a number by.

No name of a machine and no path is in it.  Versions are those of the programs that ran, by their own word.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench import pythons
from bench.peers import contestants
from setpoint.testing.kube import StartFailed, binaries

ROOT: Final = Path(__file__).parent.parent.parent
IN_MEMORY: Final = {"tmpfs", "ramfs"}  # where fsync does nothing
_MOUNTS: Final = Path("/proc/mounts")
_PROGRAMS: Final = ("setpoint", "controller_runtime", "kube_rs", "kopf", "kubernetes")


def run_id() -> str:
    """What every result of this run carries: the commit, whether something was changed since, and when."""
    commit = _said("git", "rev-parse", "--short", "HEAD", folder=ROOT) or "no commit"
    changed = _said("git", "status", "--porcelain", "--", "src", "bench", folder=ROOT)
    return f"{commit}{' and changes' if changed else ''}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


def machine() -> dict[str, Any]:
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "gigabytes": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        # what follows the first dash is whose kernel it is
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "filesystem": filesystem(Path(tempfile.gettempdir())),
        "pythons": pythons.measured(),
        "versions": {name: said for name, said in _versions().items() if said},
    }


def processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def filesystem(folder: Path, mounts: str | None = None) -> str:
    """Of which type it is; nothing where the system does not say."""
    if mounts is None:
        mounts = _MOUNTS.read_text() if _MOUNTS.exists() else ""
    types = {Path(line.split()[1]): line.split()[2] for line in mounts.splitlines()}
    for parent in (folder.resolve(), *folder.resolve().parents):
        if parent in types:
            return types[parent]
    return ""


def _versions() -> dict[str, str]:
    try:
        folder = binaries().folder  # perhaps that of KUBEBUILDER_ASSETS, whose versions are its own
    except StartFailed:
        servers = {}
    else:
        servers = {
            "kube-apiserver": _last_word(_said(str(folder / "kube-apiserver"), "--version")),
            "etcd": _last_word(_said(str(folder / "etcd"), "--version")),
        }
    go = contestants.FOLDER / "controller_runtime"  # its module asks for one
    return {
        **servers,
        "curl": " ".join(_said("curl", "--version").split()[1:2]),
        "Go": _said("go", "env", "GOVERSION", folder=go).removeprefix("go"),
        "Rust": " ".join(_said("rustc", "--version").split()[1:2]),
        **{name.replace("_", "-"): contestants.version(name) for name in _PROGRAMS},
    }


def _last_word(said: str) -> str:
    first = said.partition("\n")[0].split()
    return first[-1] if first else ""


def _said(*command: str, folder: Path = ROOT) -> str:
    """Its answer, where there is such a program."""
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True).stdout.strip()


def described(where: dict[str, Any]) -> str:
    """As one line of the report."""
    if not where:
        return ""
    versions = ", ".join(f"{name} {said}" for name, said in where.get("versions", {}).items())
    disk = where.get("filesystem", "")
    kept = f"files on {disk}" + (", where fsync does nothing" if disk in IN_MEMORY else "")
    return (
        f"{where['cores']} cores ({where['processor']}), {where['gigabytes']} GB, {where['system']}, "
        f"{kept}; {pythons.described(where['pythons'])}, {versions}"
    )
