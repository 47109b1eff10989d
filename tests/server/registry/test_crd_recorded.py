"""Custom kinds are treated as the real kube-apiserver treats them: its answers to every case are recorded."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from setpoint.server.golang import encoded
from setpoint.server.registry.allocation import Allocations
from setpoint.server.registry.builtins import builtin_resources
from setpoint.server.registry.resources import Resource
from tests.server.registry.crd_answers import Answer, Ours, define, field_crd
from tests.server.registry.crd_cases import CHANGES, DEFINITIONS, RATCHETS, RULES, VALUES
from tests.server.registry.record_crds import RECORDED


@cache
def recorded() -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = json.loads(RECORDED.read_text())
    return found


def written(answers: list[Answer]) -> list[str]:
    """As text: 1, 1.0 and true are three things."""
    return [encoded(one) for one in answers]


@cache
def definitions() -> Resource:
    found = builtin_resources(Allocations())
    return next(one for one in found if one.plural == "customresourcedefinitions")


@cache
def ours(kind: str) -> Ours:
    cases: dict[str, Any] = {"values": VALUES, "rules": RULES, "changes": CHANGES}[kind]
    return Ours(field_crd({name: schema for name, (schema, _) in cases.items()}))


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_pruned_defaulted_and_judged_as_by_the_real_server(name: str) -> None:
    answers = [ours("values").create(name, one) for one in VALUES[name][1]]
    assert written(answers) == written(recorded()[f"values.{name}"])


@pytest.mark.parametrize("name", RULES)
def test_a_rule_holds_or_fails_as_on_the_real_server(name: str) -> None:
    answers = [ours("rules").create(name, one) for one in RULES[name][1]]
    assert written(answers) == written(recorded()[f"rules.{name}"])


@pytest.mark.parametrize("name", CHANGES)
def test_a_rule_about_the_old_value_holds_or_fails_as_on_the_real_server(name: str) -> None:
    answers = [ours("changes").update(name, old, new) for old, new in CHANGES[name][1]]
    assert written(answers) == written(recorded()[f"changes.{name}"])


@pytest.mark.parametrize("name", RATCHETS)
def test_what_did_not_change_may_stay_wrong_as_on_the_real_server(name: str) -> None:
    schema, pairs = RATCHETS[name]
    answers = [Ours(field_crd({name: schema})).update(name, old, new) for old, new in pairs]
    assert written(answers) == written(recorded()[f"ratchets.{name}"])


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_is_taken_or_refused_as_by_the_real_server(name: str) -> None:
    assert written([define(DEFINITIONS[name], definitions())]) == written(recorded()[f"definitions.{name}"])
