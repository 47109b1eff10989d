"""What the guarantees cost in requests, and that the page which lists them is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import setpoint
from bench.guarantees import GUARANTEES, Guarantee, found
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "guarantees.md").read_text()

# Reads and writes, with it and without.
COSTS = {
    "read-your-writes": (0, 2, 2, 5),
    "live check before a deletion": (1, 2, 0, 2),
    "uid and version on a deletion": (1, 2, 1, 2),
    "finalizer first": (0, 3, 0, 2),
    "live check before a reconcile": (1, 0, 0, 0),
    "live check before a clean-up": (2, 2, 0, 2),
    "absence in a clean-up": (3, 2, 2, 2),
    "no swallowed errors": (0, 0, 0, 0),
    "epoch check before a write": (0, 2, 0, 2),
    "no write that changes nothing": (0, 0, 0, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda guarantee: guarantee.name)
def test_a_guarantee_costs_no_more_requests_than_are_known(guarantee: Guarantee) -> None:
    ours, yardstick = found(guarantee, is_on=True), found(guarantee, is_on=False)
    assert (ours.reads, ours.writes, yardstick.reads, yardstick.writes) == COSTS[guarantee.name]


def test_the_page_names_every_cost_that_is_measured() -> None:
    rows = re.findall(r"^\| \*\*.* \| `([^`]+)` \|$", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(["consistent first list", *(each.name for each in GUARANTEES)])


def test_the_page_names_files_and_tests_that_there_are() -> None:
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert tests
    for file, name in tests:
        assert re.search(rf"^(?:async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), name
    for file in re.findall(r"`([a-z]+/\w+\.py)`", PAGE):
        assert (Path(setpoint.__file__).parent / file).exists(), file
