"""Outside programs that must be fetched or built, kept between runs: a virtual environment, others in Go and
Java.

They are made anew when what they are made from changes.  They lie outside the work tree, beside the
programs of ``make kube``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_LONGEST: Final = 900.0  # seconds: a cold build fetches and compiles all of client-go


def python(locked: Path = _HERE / "requirements.txt") -> Path:
    """A Python that has what is locked, and nothing of ours."""

    def make(folder: Path) -> None:
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        _run([*pip, "install", "--require-hashes", "--requirement", str(locked)])

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return _kept(f"python{version}", [locked], make) / "bin" / "python"


def controller(which: str = "") -> Path:
    """The program in ``controller/``, or in a folder of it."""
    source, name = _HERE / "controller", which or "controller"

    def make(folder: Path) -> None:
        go = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
        environment = {**os.environ, "CGO_ENABLED": "0"}
        _run([*go, "-o", str(folder / name), f"./{which}"], cwd=source, env=environment)

    made_of = [source / "go.mod", source / "go.sum", source / which / "main.go"]
    return _kept(name, made_of, make) / name


def java() -> list[str]:
    """What runs the program in ``programs/fabric8``: its class, with the libraries that its pom names."""
    source = _HERE / "programs" / "fabric8"
    pom, program = source / "pom.xml", source / "Watcher.java"

    def make(folder: Path) -> None:
        libraries = f"-DoutputDirectory={folder / 'libraries'}"
        _run(["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", libraries])
        _run(["javac", "-d", str(folder), "-cp", str(folder / "libraries" / "*"), str(program)])

    folder = _kept("fabric8", [pom, program], make)
    return ["java", "-cp", os.pathsep.join([str(folder), str(folder / "libraries" / "*")]), "Watcher"]


def _kept(name: str, made_of: list[Path], make: Callable[[Path], None]) -> Path:
    """The folder with this content: as it was left by an earlier run, or made now."""
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in made_of)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setpoint" / "outside"
    folder = cache / f"{name}-{digest}"
    if not (folder / ".whole").exists():
        cache.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)  # what an interrupted run left
        make(folder)
        (folder / ".whole").touch()
    return folder


def _run(command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    with tempfile.TemporaryFile() as said:
        ran = subprocess.run(
            command, cwd=cwd, env=env, stdout=said, stderr=said, check=False, timeout=_LONGEST
        )
        said.seek(0)
        assert ran.returncode == 0, f"{' '.join(command)}: {said.read().decode()[-2_000:]}"
