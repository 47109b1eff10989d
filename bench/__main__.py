"""Runs the benches named, or all of them; each says what it found in JSON lines.

Everything is kept in ``docs/benchmarks.jsonl`` and written up in ``docs/benchmarks.md``: Setpoint beside its
peers (sync, watch, reconcile, …: ``bench/peers``), its server beside the real one, and the others (decode,
schedule, …), which compare one part with a yardstick.  A run of all of them replaces what was known; a run of
some, only what it measured.  Whatever goes wrong in one is told, and the others go on; then it ends with 1.
All of it runs with the fastest Python that is here (``bench/pythons.py``).

    python -m bench
    python -m bench sync queue
    python -m bench --short         for CI: has anything become dearer than the committed baselines say?
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import bench
from bench import pythons
from bench.measure import say
from setpoint.testing.kube import StartFailed, binaries

PEERS: Final = ("sync", "watch", "reconcile", "queue", "startup", "restart", "steady", "growth")
SERVERS: Final = ("server",)  # of what has no peers, this first
BY_NAME: Final = {
    "cache",
    "controller",
}  # only where asked for: sync and reconcile measure the same, and more
NOT_BENCHES: Final = {"__main__", "measure", "stub", "contestants", "peers", "pythons", "watchers"}
NEED_CLUSTER: Final = {*PEERS, *SERVERS, "controller"} - {"watch", "queue"}  # the Makefile has the same
NEED_CURL: Final = {"sync"}


class Unable(Exception):
    """What it takes to run a bench is not here."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", help="which; where none is named, all that say something new")
    parser.add_argument("--short", action="store_true", help="only the ratios that CI watches")
    parser.add_argument("--write", action="store_true", help="with --short: write the baselines anew")
    parser.add_argument(
        "--python", metavar="PATH", help="which Python; where none is named, the fastest here"
    )
    asked = parser.parse_args()
    if asked.short:
        from bench.peers import short

        sys.exit(short.main(write=asked.write))
    pythons.hand_over(asked.python, asked.names)
    alone = sorted({module.name for module in pkgutil.iter_modules(bench.__path__)} - NOT_BENCHES)
    known = [*PEERS, *alone]
    if unknown := sorted(set(asked.names) - set(known)):
        sys.exit(f"there is no bench {', '.join(unknown)}; there are {', '.join(known)}")
    names = asked.names or [*PEERS, *SERVERS, *sorted(set(alone) - {*SERVERS, *BY_NAME})]
    if failed := run(names, is_whole=not asked.names):
        sys.exit("\n".join(f"failed: {name}: {why}" for name, why in failed.items()))


def run(names: list[str], *, is_whole: bool) -> dict[str, str]:
    """One after the other; which of them failed, and why."""
    from bench.peers import machine

    run_id, began = machine.run_id(), time.monotonic()
    failed = {}
    for number, name in enumerate(names, 1):
        since = time.monotonic()
        say(f"{name} ({number} of {len(names)})")
        if why := attempt(name, run_id, is_whole=is_whole):
            failed[name] = why
        say(f"{name} {'failed after' if why else 'took'} {time.monotonic() - since:.0f} s")
    say(f"all together took {time.monotonic() - began:.0f} s")
    return failed


def attempt(name: str, run_id: str, *, is_whole: bool) -> str:
    """Measure, keep and report; why that failed, or nothing."""
    from bench.peers import report, results

    began = time.monotonic()
    try:
        found = (beside if name in PEERS else by_itself)(name)
    except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
        if not isinstance(error, Unable):
            traceback.print_exc()
        found = [{"work": name, "failed": _in_few_words(error)}]
    try:
        # Asked for a part that could not be measured, one keeps what was known of it.
        if is_whole or any("failed" not in each for each in found):
            results.keep(name, found, run=run_id, is_whole=is_whole, seconds=time.monotonic() - began)
            report.write()
    except Exception as error:  # noqa: BLE001 - what was measured is on the screen, and the others go on
        traceback.print_exc()
        return f"the report could not be written: {type(error).__name__}"
    return "; ".join(
        f"{each['contestant']}, {each['case']}: {each['failed']}" if "case" in each else each["failed"]
        for each in found
        if "failed" in each
    )


def _in_few_words(error: Exception) -> str:
    """For everyone to read: nothing of this machine is in it."""
    said = str(error).partition("\n")[0]
    paths = (str(Path.home()), tempfile.gettempdir(), str(Path(__file__).parent.parent))
    if not said or any(path in said for path in paths if path != "/"):
        return type(error).__name__
    return said if isinstance(error, Unable) else f"{type(error).__name__}: {said}"


def beside(name: str) -> list[dict[str, Any]]:
    """Run it with the peers; whoever cannot take part is in the results, too."""
    _require(name)
    module = importlib.import_module(f"bench.peers.{name}")
    results: list[dict[str, Any]] = module.run()
    return [*results, *absent(name, module)]


def _require(name: str) -> None:
    if name in NEED_CLUSTER:
        try:
            binaries()
        except StartFailed as missing:
            say(str(missing))
            raise Unable("there is no kube-apiserver with etcd: `make kube` builds them, with Go") from None
    if name in NEED_CURL and shutil.which("curl") is None:
        raise Unable(
            "there is no curl on PATH, which is the limit that everyone is compared with: install it"
        )


def absent(name: str, module: Any) -> Iterator[dict[str, Any]]:
    """Those of its contestants that cannot be built here, and why."""
    from bench.peers.contestants import Missing

    entered = [*getattr(module, "CONTESTANTS", ())]
    entered += [each for some in getattr(module, "CASES", {}).values() for each in some]
    for each in {each.name: each for each in entered}.values():
        try:
            each.command()
        except Missing as missing:
            said = str(missing)  # of a build that failed it is long, and full of paths
            why = said if "/" not in said else "it could not be built; what was said is in the bench's output"
            yield {"work": name, "contestant": each.name, "not_run": why}


def by_itself(name: str) -> list[dict[str, Any]]:
    """Run it in a process of its own; what it found are the lines it printed."""
    _require(name)
    ran = subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False, stdout=subprocess.PIPE)
    print(ran.stdout.decode(), end="", flush=True)
    if ran.returncode:
        raise Unable(f"python -m bench.{name} ended with {ran.returncode}; it said why")
    lines = [line for line in ran.stdout.splitlines() if line.startswith(b"{")]
    return [{"work": name, **json.loads(line)} for line in lines]


if __name__ == "__main__":
    main()
