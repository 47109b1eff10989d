"""What claims are filled from, and since when volumes are as they are."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.server.registry.volumes import fill_sources, settle_phase

Object = dict[str, Any]

CLAIM = {"kind": "PersistentVolumeClaim", "name": "c"}
POPULATOR = {"apiGroup": "example.com", "kind": "Populator", "name": "p"}


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"dataSource": CLAIM}, {"dataSource": CLAIM, "dataSourceRef": CLAIM}),
        ({"dataSourceRef": POPULATOR}, {"dataSource": POPULATOR, "dataSourceRef": POPULATOR}),
        ({"dataSource": POPULATOR}, {}),  # which the older field has no room for
        ({"dataSourceRef": {**POPULATOR, "namespace": "n"}}, {}),
        ({}, {}),
    ],
)
def test_what_a_claim_is_filled_from_is_in_both_fields(said: Object, kept: Object) -> None:
    spec = dict(said)
    fill_sources(spec)
    assert spec == kept


def test_a_claim_that_is_filled_stays_so_when_one_of_them_is_left_out() -> None:
    filled = {"dataSource": POPULATOR, "dataSourceRef": POPULATOR}
    for name in filled:
        spec: Object = {name: POPULATOR}
        fill_sources(spec, filled)
        assert spec == filled


@pytest.mark.parametrize(
    ("said", "since"),
    [
        ({"phase": "Available"}, "now"),
        ({"phase": "Available", "lastPhaseTransitionTime": "then"}, "now"),
        ({"phase": "Available", "lastPhaseTransitionTime": "told"}, "told"),
        ({"phase": "Pending"}, "then"),
        ({"phase": "Pending", "lastPhaseTransitionTime": "told"}, "told"),
    ],
)
def test_since_when_a_volume_is_as_it_is_need_not_be_said(said: Object, since: str) -> None:
    new: Object = {"status": said}
    settle_phase(new, {"status": {"phase": "Pending", "lastPhaseTransitionTime": "then"}}, "now")
    assert new["status"]["lastPhaseTransitionTime"] == since
