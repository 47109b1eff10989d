"""``setpoint demo``: what it shows, what README shows of it, and how it ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import click
import pytest

from setpoint.cli import telling
from setpoint.cli.loading import load
from setpoint.cli.running import install
from setpoint.cluster.cluster import Cluster
from tests.cli.terminal import terminal
from tests.pages import ROOT
from tools.readme import plain, shown_in_readme


def test_every_step_is_seen_and_readme_shows_just_that() -> None:
    command = [sys.executable, "-m", "setpoint.cli.main", "demo", "--exit"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert plain(ran.stdout) == plain(shown_in_readme()), "run: python -m tools.readme"


def test_on_a_terminal_it_stays_with_lines_to_try_and_ends_in_order() -> None:
    with terminal("demo") as shown:
        for number in (1, 2, 3, 4):
            shown.sees(f"{number}. ")
            shown.sees("✓")
        shown.sees("Every step was seen.")
        shown.sees("export KUBECONFIG=")
        shown.sees("setpoint dev ")
        shown.interrupt()
        assert shown.status() == 0


async def test_told_to_stop_it_does_not_finish_the_step() -> None:
    stop, ended = asyncio.Event(), list[str]()

    async def step() -> None:
        stop.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("it was cancelled")

    async with asyncio.timeout(30):
        assert not await telling._before(stop, step())
    assert ended == ["it was cancelled"]


async def test_a_step_that_is_not_seen_ends_it_and_says_what_was_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the operator, and without controllers, nothing comes of a WebApp."""
    monkeypatch.setattr(telling, "STEP_TIMEOUT", 0.3)
    async with Cluster(controllers=[]) as cluster:
        await install(cluster.client, load(telling.example()).crds())
        with pytest.raises(
            click.ClickException, match=r"step 1, 'kubectl apply -f webapp.yaml': .*not so within"
        ):
            await telling._tell_all(telling.steps(cluster.client))


def test_the_operator_is_the_example() -> None:
    assert telling.example().read_text() == (ROOT / "examples" / "webapp" / "webapp.py").read_text()
