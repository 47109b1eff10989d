"""Helm on two clusters: every command of ``helm/commands.txt`` must say the same on both, and leave the same.

The chart is ours, in the style of those that operators are published with: definitions, roles, a webhook's
configuration, hooks, a test, a drawn password, notes.  Both clusters have controllers and our node stand-in,
so that Helm has something to wait for.  Helm comes from the Go module proxy, as ``helm/go.mod`` says.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Final

from tests.outside.kubectl import MANIFESTS, Kubectl
from tests.outside.servers import NAMES, Server, running
from tests.suites.building import CACHE, run
from tests.suites.table import Compared

_FOLDER: Final = Path(__file__).with_name("helm")
_PROGRAM: Final = "helm.sh/helm/v4/cmd/helm"
_NAMESPACE: Final = "library"
_MASKS: Final = (
    (re.compile(r"\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}"), "<time>"),
    (re.compile(r"modifiedAt=\d+"), "modifiedAt=<time>"),
    (re.compile(r"-[0-9bcdfghjklmnpqrstvwxz]{8,10}(?=-<drawn>)"), "-<hash>"),  # each has one of its own
    (re.compile(r'password: "?[A-Za-z0-9+/]+=*"?'), "password: <drawn>"),
)
_MOST_SHOWN: Final = 60  # lines of a difference


def version() -> str:
    found = re.search(r"^\s*helm\.sh/helm/v4 (v\S+)", (_FOLDER / "go.mod").read_text(), re.MULTILINE)
    assert found, "helm/go.mod requires no Helm"
    return found[1]


def built() -> Path:
    """Helm, as a program."""
    digest = hashlib.sha256((_FOLDER / "go.sum").read_bytes()).hexdigest()[:16]
    program = CACHE / f"helm-{version()}-{digest}" / "helm"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(".unfinished")
        build = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
        run([*build, "-o", str(unfinished), _PROGRAM], cwd=_FOLDER)
        unfinished.rename(program)
    return program


def compared(folder: Path) -> list[Compared]:
    """Every command, in order."""
    program = built()
    folder.mkdir(parents=True)
    shutil.copytree(_FOLDER / "chart", folder / MANIFESTS.name / "chart")
    with ExitStack() as stack:
        places = [folder / name for name in NAMES]
        for each in places:
            each.mkdir()
        clusters = [
            stack.enter_context(running(name, place, whole=True))
            for name, place in zip(NAMES, places, strict=True)
        ]
        with ThreadPoolExecutor() as pool:
            ours, theirs = pool.map(lambda each: _told(each, folder, program), clusters)
    return list(_pairs(ours, theirs))


def _told(server: Server, homes: Path, program: Path) -> list[tuple[str, list[str]]]:
    """What each command said there."""
    kubectl = Kubectl(server, homes, _NAMESPACE)
    helm = Kubectl(server, homes, _NAMESPACE, program=program)
    kubectl.ok(f"create namespace {_NAMESPACE}")
    kubectl.ok("wait --for=create serviceaccount/default --timeout=50s")
    told: list[tuple[str, list[str]]] = []
    for line in (_FOLDER / "commands.txt").read_text().splitlines():
        name, _, arguments = line.removeprefix("! ").partition(" ")
        if not line or name == "#":
            continue
        ran = (helm if name == "helm" else kubectl)(arguments, deadline=240.0)
        text = "\n".join(kubectl.shown(arguments, ran)[1:])
        for pattern, mask in _MASKS:
            text = pattern.sub(mask, text)
        lines = text.splitlines()
        if bool(ran.code) != line.startswith("! "):
            lines.append(f"on {server.name} it ended with {ran.code}, which it should not")
        # The kinds of a status come in the order of a Go map, which is none.
        told.append((line, sorted(lines) if arguments.startswith("status") else lines))
    (homes / f"{server.name}.txt").write_text("\n".join(f"$ {one}\n" + "\n".join(said) for one, said in told))
    return told


def _pairs(ours: list[tuple[str, list[str]]], theirs: list[tuple[str, list[str]]]) -> Iterator[Compared]:
    for (command, mine), (_, other) in zip(ours, theirs, strict=True):
        lines = difflib.unified_diff(other, mine, "kube-apiserver", "setpoint", lineterm="", n=3)
        yield Compared(command, mine == other, "\n".join(islice(lines, _MOST_SHOWN)))
