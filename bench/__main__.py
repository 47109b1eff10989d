"""Runs the benches named, or all of them, each in a process of its own; each prints one JSON line.

python -m bench
python -m bench decode
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import bench

NOT_BENCHES = {"__main__", "measure", "stub"}


def main() -> None:
    known = sorted({module.name for module in pkgutil.iter_modules(bench.__path__)} - NOT_BENCHES)
    asked = sys.argv[1:] or known
    if unknown := sorted(set(asked) - set(known)):
        sys.exit(f"there is no bench {', '.join(unknown)}; there are {', '.join(known)}")
    failed = [
        name
        for name in asked
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode
    ]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
