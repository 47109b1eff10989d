"""Records what ``setpoint demo`` prints, and puts it into README.md.

    python -m tools.readme

The tests compare README with a run of their own, by ``plain``: but for addresses and times, it must be the
same.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"

_BLOCK = re.compile(r"(<!-- python -m tools\.readme -->\n```\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)


def shown_in_readme() -> str:
    """The run that README shows."""
    found = _BLOCK.search(README.read_text())
    if found is None:
        raise SystemExit("README.md has no block after <!-- python -m tools.readme -->")
    return found[2]


def plain(text: str) -> str:
    """The text, without what differs from run to run."""
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    text = re.sub(r"\d+\.\d+ s\b", "SECONDS", text)
    return re.sub(r"So does \S+:", "So does OPERATOR:", text)  # where it is differs from checkout to wheel


def main() -> None:
    command = [sys.executable, "-m", "setpoint.cli.main", "demo", "--exit"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stdout + ran.stderr)
    if plain(ran.stdout) != plain(shown_in_readme()):
        README.write_text(_BLOCK.sub(lambda found: found[1] + ran.stdout + found[3], README.read_text()))


if __name__ == "__main__":
    main()
