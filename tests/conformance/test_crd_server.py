"""Definitions, and objects of the kinds that they define, are answered as recorded, by either server.

Against the real one this proves that the recordings are true; against ours, that the whole server, and not
only the pieces that ``tests/server/registry`` looks at, answers as the real one does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from setpoint.testing.kube import ControlPlane
from tests.server.registry.crd_answers import Answer
from tests.server.registry.crd_cases import VALUES
from tests.server.registry.record_crds import RECORDED, Real, changes, definitions, ratchets, values

Part = Callable[[Real], Iterator[tuple[str, list[Answer]]]]


@pytest.mark.parametrize("part", [definitions, values, changes, ratchets])
def test_custom_kinds_are_answered_as_recorded(
    kube: ControlPlane, pytestconfig: pytest.Config, part: Part
) -> None:
    recorded: dict[str, list[Answer]] = json.loads(RECORDED.read_text())
    is_ours = pytestconfig.getoption("--server") == "setpoint"
    with closing(Real(Path(kube.kubeconfig))) as server:
        for name, answers in part(server):
            for place, (found, wanted) in enumerate(zip(answers, recorded[name], strict=True)):
                if is_ours and (_has_whole_float(name, place) or _is_warned_refusal(wanted)):
                    continue
                assert found == wanted, f"{name}, number {place}"


def _has_whole_float(name: str, place: int) -> bool:
    """Ours takes 1.0 for the integer that it is written as from the start, and not from the next read on."""
    case = VALUES.get(name.removeprefix("values."))
    return case is not None and _holds_whole_float(case[1][place])


def _holds_whole_float(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_holds_whole_float, value))
    if isinstance(value, dict):
        return any(map(_holds_whole_float, value.values()))
    return isinstance(value, float) and value.is_integer()


def _is_warned_refusal(wanted: Answer) -> bool:
    """Ours does not warn of unknown fields in what it refuses for other reasons."""
    return wanted[0] == 422 and bool(wanted[2])
