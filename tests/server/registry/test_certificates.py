"""The conditions of a request for a certificate: who decides, who answers, and since when."""

from __future__ import annotations

from typing import Any

from setpoint.server.registry.certificates import settle_conditions

NOW, THEN = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"


def request(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {}, "status": {"conditions": list(conditions)}}


def condition(kind: str, at: str | None = None, **more: str) -> dict[str, Any]:
    times = {"lastUpdateTime": at, "lastTransitionTime": at} if at else {}
    return {"type": kind, "status": "True", **times, **more}


def settled(new: dict[str, Any], old: dict[str, Any], subresource: str = "approval") -> list[dict[str, Any]]:
    settle_conditions(new, old, subresource, NOW)
    found: list[dict[str, Any]] = new["status"]["conditions"]
    return found


def test_a_condition_that_says_no_time_is_of_now() -> None:
    assert settled(request(condition("Approved")), request()) == [condition("Approved", NOW)]


def test_a_condition_that_says_a_time_is_of_that() -> None:
    assert settled(request(condition("Approved", THEN)), request()) == [condition("Approved", THEN)]


def test_what_was_so_before_is_so_since_then() -> None:
    (found,) = settled(request(condition("Approved", message="new")), request(condition("Approved", THEN)))
    assert (found["lastTransitionTime"], found["lastUpdateTime"]) == (THEN, NOW)


def test_who_answers_leaves_what_was_decided_and_adds_its_own() -> None:
    decided = condition("Approved", THEN, message="yes")
    new = request(condition("Failed"), condition("Approved", message="other"))
    assert settled(new, request(decided), "status") == [condition("Failed", NOW), decided]


def test_an_object_without_a_status_has_nothing_to_settle() -> None:
    new: dict[str, Any] = {"metadata": {}}
    settle_conditions(new, request(), "status", NOW)
    assert new == {"metadata": {}}
