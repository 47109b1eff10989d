"""Runs the benches named, or all of them; each says what it found in JSON lines.

Setpoint beside its peers (sync, watch, reconcile, …: ``bench/peers``) is kept in ``docs/benchmarks.jsonl``
and written up in ``docs/benchmarks.md``.  The others (decode, schedule, …) compare one part with a yardstick.

    python -m bench
    python -m bench sync queue
    python -m bench --short         for CI: has anything become dearer than the committed baselines say?
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import subprocess
import sys
import time
from typing import Any, Final

import bench
from setpoint.testing.kube import StartFailed, binaries

PEERS: Final = ("sync", "watch", "reconcile", "queue", "startup", "restart", "steady", "growth")
SERVERS: Final = ("server",)  # what it prints is in the report, too
BY_NAME: Final = {
    "cache",
    "controller",
}  # only where asked for: sync and reconcile measure the same, and more
NOT_BENCHES: Final = {"__main__", "measure", "stub", "contestants", "peers"}
NEEDS_NO_CLUSTER: Final = {"watch", "queue"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", help="which; where none is named, all that say something new")
    parser.add_argument("--short", action="store_true", help="only the ratios that CI watches")
    parser.add_argument("--write", action="store_true", help="with --short: write the baselines anew")
    asked = parser.parse_args()
    if asked.short:
        from bench.peers import short

        sys.exit(short.main(write=asked.write))
    alone = sorted({module.name for module in pkgutil.iter_modules(bench.__path__)} - NOT_BENCHES)
    known = [*PEERS, *alone]
    if unknown := sorted(set(asked.names) - set(known)):
        sys.exit(f"there is no bench {', '.join(unknown)}; there are {', '.join(known)}")
    failed = []
    for name in asked.names or [*PEERS, *SERVERS, *sorted(set(alone) - {*SERVERS, *BY_NAME})]:
        began = time.monotonic()
        if not (beside if name in PEERS else by_itself)(name):
            failed.append(name)
        print(f"bench: {name} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def beside(name: str) -> bool:
    """Run it with the peers, and write the report anew."""
    from bench.peers import report

    if name not in NEEDS_NO_CLUSTER:
        try:
            binaries()
        except StartFailed as missing:
            print(json.dumps({"bench": name, "not_run": str(missing)}), flush=True)
            return True
    results: list[dict[str, Any]] = importlib.import_module(f"bench.peers.{name}").run()
    report.keep(name, results)
    report.write()
    return not any("failed" in result for result in results)


def by_itself(name: str) -> bool:
    """Run it in a process of its own; what it prints of the server goes into the report."""
    ran = subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False, stdout=subprocess.PIPE)
    print(ran.stdout.decode(), end="", flush=True)
    if name in SERVERS and not ran.returncode:
        from bench.peers import report

        report.keep(name, [{"work": name, **json.loads(ran.stdout.splitlines()[-1])}])
        report.write()
    return not ran.returncode


if __name__ == "__main__":
    main()
