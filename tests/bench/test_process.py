"""How contestants are measured: at rest, from outside, and with nothing left behind."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from bench.peers.process import Failed, Run, compete

PROLOGUE = """
import json, os, sys, threading, time

def say(at, **counted):
    print(json.dumps({"at": at, **counted}), flush=True)

def pause(at, **counted):
    say(at, **counted)
    if not sys.stdin.readline():
        sys.exit(3)

def burn(seconds):
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass
"""


def run(course: str, work: str = "sync", **more: object) -> Run:
    return compete("someone", [sys.executable, "-c", PROLOGUE + course], {"work": work}, **more)  # type: ignore[arg-type]


def test_what_a_contestant_does_after_a_line_is_not_in_what_was_read_at_it() -> None:
    found = run(
        """
pause("start")
pause("done")
burn(0.3)
pause("settled")
held = b"x" * 40_000_000
pause("checked", count=1)
"""
    )
    assert found.cpu("start", "done") < 0.1
    assert found.cpu("done", "settled") >= 0.3
    assert found.grown("start", "settled") < 10_000_000
    assert found.grown("settled", "checked") >= 40_000_000
    assert found.told["checked"] == {"count": 1}


def test_cpu_is_read_more_finely_than_in_ticks() -> None:
    found = run(
        """
pause("start")
burn(0.003)
pause("done")
pause("settled")
pause("checked")
"""
    )
    assert (found.cpu("start", "done") * 100) % 1 != 0


def test_a_file_that_is_read_is_not_memory_that_was_made(tmp_path: Path) -> None:
    file = tmp_path / "pages"
    file.write_bytes(b"x" * 40_000_000)
    found = run(
        f"""
import mmap
pause("start")
pause("done")
with open({str(file)!r}, "rb") as opened:
    pages = mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ)
sum(pages[at] for at in range(0, len(pages), 4096))
pause("settled")
pause("checked")
"""
    )
    resident = found.marks["settled"].resident - found.marks["start"].resident
    assert resident > 30_000_000
    assert found.grown("start", "settled") < 10_000_000


def test_a_reconcile_is_quiet_when_its_cpu_stands_still() -> None:
    found = run(
        """
def after():
    for _ in range(8):
        burn(0.05)
        time.sleep(0.3)

pause("start")
threading.Thread(target=after).start()
pause("done")
pause("settled")
""",
        work="reconcile",
    )
    assert found.cpu("start", "quiet") >= 0.4
    assert found.wall("done", "quiet") >= 8 * 0.3


def test_marks_are_told_in_the_order_in_which_they_come() -> None:
    seen: list[str] = []
    marks = ("start", "synced", "done", "quiet", "resynced", "resynced, quiet", "settled")
    found = run(
        """
pause("start")
say("synced")
pause("done")
pause("resynced")
pause("settled")
""",
        work="reconcile",
        when={mark: lambda mark=mark: seen.append(mark) for mark in marks},
    )
    assert tuple(seen) == tuple(found.marks) == marks


def test_neither_a_proxy_nor_our_folder_for_files_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://192.0.2.1:1")
    found = run(
        """
proxies = [name for name in os.environ if name.lower().endswith("_proxy")]
pause("start")
pause("done", proxies=proxies, folder=os.environ["TMPDIR"])
open(os.path.join(os.environ["TMPDIR"], "key.pem"), "w").close()
pause("settled")
pause("checked")
"""
    )
    told = found.told["done"]
    assert told["proxies"] == []
    assert told["folder"] != tempfile.gettempdir()
    assert not Path(told["folder"]).exists()


def test_what_is_wrong_elsewhere_ends_the_wait() -> None:
    def broken() -> None:
        raise Failed("the changes could not be made")

    with pytest.raises(Failed, match="someone: the changes could not be made"):
        run('pause("start")\nsys.stdin.readline()\n', work="steady", meanwhile=broken)


def test_who_ends_while_it_is_told_to_go_on_has_failed() -> None:
    with pytest.raises(Failed, match="ended"):
        run('pause("start")\nsay("done")\nos._exit(4)\n')
