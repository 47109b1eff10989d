"""A bounded part of ``make fuzz``, the same each time; and what longer runs found, so that it stays found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from setpoint.server.server import ApiServer
from tests.fuzz.run import BARS_AT, Findings, Round
from tests.server.http.asking import DEFINITIONS, Asking, until_served
from tests.server.test_fuzz import BARS
from tests.server.test_limits import definition


@pytest.mark.parametrize("seed", ["a", pytest.param("b", marks=pytest.mark.slow)])
async def test_whatever_is_asked_by_chance_is_answered_as_kubernetes_answers(seed: str) -> None:
    findings = Findings()
    await Round(seed, findings).run(requests=700, connections=60, values=100)
    assert not findings.found, "\n".join(findings.found.values())
    assert findings.asked.total() > 1_000
    assert {"200", "201", "400", "401", "404", "409", "422"} <= set(findings.statuses), "all kinds were asked"


async def test_the_same_seed_asks_the_same() -> None:
    one, other = Findings(), Findings()
    for findings in (one, other):
        await Round("c", findings).run(requests=140, connections=5, values=5)
    assert (one.asked, one.statuses) == (other.asked, other.statuses)


# ── What was found ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "spec",
    [
        {"a": "a", "b": [{"": 1}]},
        {"a": "a", "unknown": {"": {"": 1}}},
        {"a": {"": "x"}},
        {"": {"": [[{"": 1}]]}},
    ],
)
async def test_a_field_without_a_name_is_pruned_like_any_other(spec: Any) -> None:
    """A custom object with an empty key in a list, or below a field that is unknown, was a 500."""
    async with ApiServer() as server:
        ask = Asking(server.transport())
        await ask.create(DEFINITIONS, BARS)
        await until_served(ask, BARS_AT)
        made = {"apiVersion": "example.com/v1", "kind": "Bar", "metadata": {"name": "x"}, "spec": spec}
        for validation in ("Strict", "Warn", "Ignore"):
            got = await ask("POST", f"{BARS_AT}?dryRun=All&fieldValidation={validation}", made)
            assert got.status in (201, 400, 422), got.body
            if got.status == 201:
                assert '"":' not in json.dumps(got.json["spec"])


async def test_a_default_with_a_field_without_a_name_is_judged() -> None:
    """The same in a schema's default."""
    async with ApiServer() as server:
        ask = Asking(server.transport())
        inner = {"type": "object", "properties": {"b": {"type": "string"}}}
        listed = {"type": "array", "items": inner, "default": [{"": 1}]}
        made = definition("bazs", "Baz", type="object", properties={"a": listed})
        got = await ask("POST", DEFINITIONS, made)
        assert got.status in (201, 422), got.body


async def test_a_loop_that_counts_may_stand_in_one_that_gathers() -> None:
    """A rule with ``exists_one`` inside of ``filter`` was a 500."""
    async with ApiServer() as server:
        ask = Asking(server.transport())
        rule = {"rule": "[1, 2, 3].filter(e, [1, 2].exists_one(x, x > 1)).size() == 3"}
        schema = {"type": "object", "default": {"a": "x"}, "properties": {"a": {"type": "string"}}}
        made = definition("bazs", "Baz", "example.com", **schema, **{"x-kubernetes-validations": [rule]})
        got = await ask("POST", DEFINITIONS, made)
        assert got.status == 201, got.body
