"""What ``testing/conditions.py`` says of objects, as ``kubectl wait`` does."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.testing.conditions import why_not


def having(*conditions: dict[str, Any], generation: int = 1, **status: Any) -> dict[str, Any]:
    return {"metadata": {"generation": generation}, "status": {**status, "conditions": list(conditions)}}


READY = {"type": "Ready", "status": "True"}
NOT_READY = {"type": "Ready", "status": "False", "reason": "Starting", "message": "1 of 2"}


@pytest.mark.parametrize(
    ("obj", "condition", "why"),
    [
        (having(READY), "Ready", ""),
        (having(READY), "ready=true", ""),
        (having(NOT_READY), "Ready=False", ""),
        (having(NOT_READY), "Ready", "Ready=False (Starting: 1 of 2)"),
        (having(READY), "Ready=False", "Ready=True"),
        (having(READY), "Done", "it has no condition Done; it has Ready=True"),
        ({"metadata": {}}, "Ready", "it has no condition Ready; it has none at all"),
    ],
)
def test_a_condition_has_the_status_that_is_asked_for(obj: dict[str, Any], condition: str, why: str) -> None:
    assert why_not(obj, condition) == why


@pytest.mark.parametrize(
    "old",
    [
        having({**READY, "observedGeneration": 1}, generation=2),
        having(READY, generation=2, observedGeneration=1),
    ],
    ids=["of the condition", "of the status"],
)
def test_what_was_said_of_an_older_generation_does_not_count(old: dict[str, Any]) -> None:
    assert why_not(old, "Ready") == "Ready=True is of generation 1, and the object's is 2"
    old["metadata"]["generation"] = 1
    assert why_not(old, "Ready") == ""
