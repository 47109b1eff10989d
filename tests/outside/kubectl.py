"""Runs kubectl, and makes of what it said something that two servers can be compared by.

A script is lines of kubectl's arguments.  ``|`` hands the output on, ``NAME=value`` in front sets a variable
of the environment, ``until`` in front repeats the line until it succeeds, ``#`` begins a comment.
``Kubectl.follow`` is for what does not end by itself.

Masked is what differs between two runs against one server: times, ages, uids, resource versions, addresses,
allocated ports, drawn suffixes, the width of columns, which follows the width of ages, and what a server
happens to say of its own repairs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from setpoint.api.yaml import load
from setpoint.testing.kube import binaries
from tests.outside.servers import Server

MANIFESTS: Final = Path(__file__).parent / "manifests"
DEADLINE: Final = 60.0  # seconds that one command may take

_MASKS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000( UTC)?"), "<time>"),
    (re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
    (re.compile(r'(resourceVersion"?: ?)"\d+"'), r"\1<version>"),
    (re.compile(r"(Resource Version: +)\d+"), r"\1<version>"),
    (re.compile(r"(?<![\w.])10\.\d+\.\d+\.\d+(?![\w.])"), "<ip>"),
    (re.compile(r"(?<!\d)3[0-2]\d{3}(?!\d)"), "<port>"),
    (re.compile(r"(?<=\s)(\d{1,2}m(\d+s)?|\d+s|\d+d)(?= ago|\s|$|\))", re.MULTILINE), "<age>"),
    (re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "<drawn>"),
    (re.compile(r"/\S*/(LIVE|MERGED)-\d+/"), r"<folder>/\1/"),  # where kubectl diff puts its files
    (re.compile(r"\b(kubernetes-)?admin\b"), "<admin>"),  # each server has a name of its own for it
    (re.compile(r"(goVersion|compiler)\"?: \S+"), r"\1"),  # ours says that it is not made of Go
    (re.compile(r"(?<=\S) {2,}"), "  "),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
    # Parts of kube-apiserver itself, which speak when they happen to look between two writes of its own.
    (re.compile(r"^  .*  (ip|port)allocator-repair-controller  .*\n", re.MULTILINE), ""),
    (re.compile(r"^Events:\n  Type .*\n  ---- .*\n(?!  )", re.MULTILINE), "Events:  <none>\n"),
)


class Ran(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def canonical(text: str, url: str) -> str:
    """``text`` without what differs between two runs."""
    text = text.replace(url, "<url>").replace(url.removeprefix("https://"), "<address>")
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def _in_order(text: str) -> str:
    """Managers stand in the order of their times, which are whole seconds: here by their names."""
    found = load(text)
    for each in found.get("items", [found]):
        each["metadata"]["managedFields"].sort(
            key=lambda one: (one["manager"], one["operation"], one.get("subresource", ""))
        )
    return json.dumps(found, indent=1, sort_keys=True)


class Kubectl:
    """kubectl for one server and one namespace; ``homes`` has a folder for each server, and the manifests.

    ``program`` is another that takes --kubeconfig and --namespace, in place of kubectl.
    """

    def __init__(self, server: Server, homes: Path, namespace: str, *, program: Path | None = None) -> None:
        self.server = server
        self.home = homes / server.name
        self.folder = homes / MANIFESTS.name
        self.namespace = namespace
        self._program = program or binaries().kubectl

    def __call__(self, line: str, *, stdin: str = "", deadline: float = DEADLINE) -> Ran:
        """Run one line, and wait until it ends."""
        err, code = "", 0
        for command in line.split(" | "):
            arguments, environment = self._command(command)
            ran = subprocess.run(
                arguments,
                env=environment,
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                cwd=self.folder,
                timeout=deadline,
            )
            stdin, err, code = ran.stdout, err + ran.stderr, code or ran.returncode
        return Ran(code, stdin, err)

    def ok(self, line: str, *, stdin: str = "") -> str:
        """Run one line that must succeed; its output."""
        ran = self(line, stdin=stdin)
        assert ran.code == 0, f"kubectl {line}: {ran}"
        return ran.out

    def until(self, line: str) -> Ran:
        """Run one line until it succeeds: a new kind is served a moment after it says so."""
        deadline = time.monotonic() + DEADLINE
        while (ran := self(line)).code:
            assert time.monotonic() < deadline, f"kubectl {line}: {ran}"
        return ran

    def merge(self, which: str, patch: Mapping[str, Any]) -> None:
        """Patch ``which``, by a merge patch."""
        self.ok(f"patch {which} --type=merge -p {shlex.quote(json.dumps(patch))}")

    def transcript(self, script: str) -> list[str]:
        """Run a script; what a reader of the terminal would have seen, masked."""
        seen: list[str] = []
        for line in script.splitlines():
            command = line.strip().removeprefix("until ")
            if command and not command.startswith("#"):
                ran = self.until(command) if line.startswith("until ") else self(command)
                seen.extend(self.shown(command, ran))
        return seen

    def shown(self, line: str, ran: Ran) -> list[str]:
        out = _in_order(ran.out) if "--show-managed-fields" in line else ran.out
        lines = [f"$ kubectl {line}", *canonical(out, self.server.url).splitlines()]
        told = canonical(ran.err, self.server.url).splitlines()
        # Several wrong fields come in the order of a Go map, which is none.
        lines += [f"! {each}" for each in (sorted(told) if "* " in ran.err else told)]
        return [*lines, f"exit {ran.code}"] if ran.code else lines

    @contextlib.contextmanager
    def follow(self, line: str) -> Iterator[Following]:
        """Start what goes on until it is ended; it is ended with the block."""
        arguments, environment = self._command(line)
        process = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
        )
        try:
            yield Following(process, self.server.url)
        finally:
            process.kill()
            process.communicate()

    def _command(self, line: str) -> tuple[list[str], dict[str, str]]:
        words = shlex.split(line)
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "KUBECACHEDIR": str(self.home)}
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        where = ["--kubeconfig", str(self.server.kubeconfig), "--namespace", self.namespace]
        return [str(self._program), *where, *words], environment


class Following:
    """A kubectl that has not ended, and what it has said."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process = process
        self._url = url
        self._said = b""

    @property
    def said(self) -> list[str]:
        return canonical(self._said.decode(), self._url).splitlines()

    def until(self, pattern: str) -> None:
        """Wait until a line has the pattern in it."""
        self._read(lambda: any(re.search(pattern, line) for line in self._whole()), pattern)

    def lines(self, count: int) -> list[str]:
        """Wait until it has said this many lines."""
        self._read(lambda: len(self._whole()) >= count, f"{count} lines")
        return self.said

    def end(self) -> int:
        """Wait until it has ended by itself."""
        self._read(lambda: False, "its end", ended=True)
        return self._process.wait(DEADLINE)

    def _whole(self) -> list[str]:
        return self._said.decode().split("\n")[:-1]

    def _read(self, done: Callable[[], bool], what: str, *, ended: bool = False) -> None:
        assert self._process.stdout is not None
        deadline = time.monotonic() + DEADLINE
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not done():
                left = deadline - time.monotonic()
                assert left > 0, f"waiting for {what}; so far: {self._said.decode()[-2_000:]}"
                if selector.select(left):
                    data = os.read(self._process.stdout.fileno(), 65_536)
                    if not data and ended:
                        return
                    assert data, f"it ended before {what}: {self._said.decode()[-2_000:]}"
                    self._said += data
