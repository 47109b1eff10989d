"""Who takes part, and how their programs are made: each with its own tools, outside of the work tree.

A contestant's folder (``bench/contestants/<name>``) holds its program and what that is made from; where
it was built before from the very same, it is not built again.  A contestant whose tools are missing (no Go,
no Rust) is left out, and the report says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from bench import pythons

FOLDER: Final = Path(__file__).parent.parent / "contestants"
_LONGEST: Final = 1800.0  # seconds that a cold build may take


class Missing(Exception):
    """What it takes to build a contestant is not here."""


@dataclass(frozen=True)
class Contestant:
    """One way of one framework to do the work: a program, and how it is asked."""

    name: str  # as the report has it
    program: str  # the folder
    asked: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    slow: int = 1  # how many times less it is given, where figures are for each object or event

    def command(self) -> list[str]:
        return _BUILT[self.program]()


def version(program: str) -> str:
    """Of the framework itself, as its folder pins it."""
    folder = FOLDER / program
    if program == "setpoint":
        return metadata.version("setpoint")
    if program == "controller_runtime":
        return _word_after(folder / "go.mod", "sigs.k8s.io/controller-runtime")
    if program == "kube_rs":
        return _word_after(folder / "Cargo.toml", "kube = { version =").strip('=",')
    return _word_after(folder / "requirements.in", f"{program}==")


def _word_after(file: Path, words: str) -> str:
    for line in file.read_text().splitlines():
        if (at := line.find(words)) >= 0:
            return line[at + len(words) :].split()[0].strip()
    return "?"


# ---- how each is built -----------------------------------------------------------------------------


def _setpoint() -> list[str]:
    return [sys.executable, str(FOLDER / "setpoint" / "main.py")]


def _yardstick() -> list[str]:
    return [sys.executable, str(FOLDER / "yardstick" / "main.py")]


def _controller_runtime() -> list[str]:
    source = FOLDER / "controller_runtime"

    def make(folder: Path) -> None:
        go = [_tool("go"), "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
        _run([*go, "-o", str(folder / "contestant"), "."], source, CGO_ENABLED="0")

    made_of = [source / name for name in ("go.mod", "go.sum", "main.go")]
    return [str(_kept("controller-runtime", made_of, make) / "contestant")]


def _kube_rs() -> list[str]:
    source = FOLDER / "kube_rs"

    def make(folder: Path) -> None:
        # the libraries, which are most of the work, stay built between changes of the program
        libraries = _cache() / "kube-rs-libraries"
        _run([_tool("cargo"), "build", "--release", "--locked"], source, CARGO_TARGET_DIR=str(libraries))
        folder.mkdir(parents=True)
        shutil.copy2(libraries / "release" / "contestant", folder / "contestant")

    made_of = [source / "Cargo.toml", source / "Cargo.lock", source / "src" / "main.rs"]
    return [str(_kept("kube-rs", made_of, make) / "contestant")]


def _python(program: str) -> Callable[[], list[str]]:
    """A program with a virtual environment of its own, and nothing of ours."""
    source = FOLDER / program

    def command() -> list[str]:
        locked = source / "requirements.txt"

        def make(folder: Path) -> None:
            _run([sys.executable, "-m", "venv", str(folder)], source)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
            _run([*pip, "install", "--require-hashes", "--requirement", str(locked)], source)

        # two Pythons of one version may be built differently, and then one is much faster
        build = hashlib.sha256(pythons.own().encode()).hexdigest()[:8]
        kept = _kept(f"{program}-python{platform.python_version()}-{build}", [locked], make)
        return [str(kept / "bin" / "python"), str(source / "main.py")]

    return cache(command)


_BUILT: Final[dict[str, Callable[[], list[str]]]] = {
    "setpoint": _setpoint,
    "yardstick": _yardstick,
    "controller_runtime": cache(_controller_runtime),
    "kube_rs": cache(_kube_rs),
    "kopf": _python("kopf"),
    "kubernetes": _python("kubernetes"),
}


def present(contestants: list[Contestant]) -> Iterator[Contestant]:
    """Those that can take part here; it is said of the others why not."""
    for contestant in contestants:
        try:
            contestant.command()
        except Missing as missing:
            print(json.dumps({"contestant": contestant.name, "not_run": str(missing)}), flush=True)
        else:
            yield contestant


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"there is no {name} on PATH")
    return found


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setpoint" / "bench"


def _kept(name: str, made_of: list[Path], make: Callable[[Path], None]) -> Path:
    """The folder with this content: as it was left by an earlier run, or made now."""
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in made_of)).hexdigest()[:16]
    folder = _cache() / f"{name}-{digest}"
    if not (folder / ".whole").exists():
        _cache().mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)  # what an interrupted run left
        print(f"bench: building {name}, once", file=sys.stderr)
        make(folder)
        (folder / ".whole").touch()
    return folder


def _run(command: list[str], folder: Path, **environment: str) -> None:
    with tempfile.TemporaryFile() as said:
        ran = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=said,
            stderr=said,
            check=False,
            timeout=_LONGEST,
        )
        said.seek(0)
        if ran.returncode:
            raise Missing(f"{' '.join(command)}: {said.read().decode(errors='replace')[-2_000:]}")
