"""What a rule may cost: sizes from the schema, numbers from the expression, and who is refused.

That the numbers are Kubernetes' is shown by ``tests/conformance`` (the cost of each rule).
"""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.server.registry.crd import cel, costs
from setpoint.server.registry.crd.checking import escaped
from setpoint.server.registry.crd.definition import update_errors
from setpoint.server.registry.crd.schema_rules import schema_errors
from setpoint.server.registry.crd.schemas import Schema
from tests.server.registry.crd_cases import INT, TEXT, obj, rule, ruled

NAME: Schema = {"type": "string", "maxLength": 10}
NAMES: Schema = {"type": "array", "maxItems": 10, "items": NAME}
PAIRS = "self.all(x, self.all(y, x == y || x.contains(y)))"


def cost(text: str, schema: Schema) -> int:
    checked = cel.compiled(rule(text), schema, is_root=False).checked
    bound = costs.bounds(schema, escaped, is_root=False)
    assert checked is not None
    assert bound is not None
    return costs.estimated(checked.source, checked.facts, bound)


@pytest.mark.parametrize(
    ("schema", "most"),
    [
        (NAME, 40),  # a character has up to four bytes
        (TEXT, 3 * 2**20 - 2),
        ({"type": "string", "enum": ["a", "abc"]}, 3),
        ({"type": "string", "format": "date-time"}, 32),
        (NAMES, 10),
        ({"type": "array", "items": INT}, (3 * 2**20 - 2) // 2),
        ({"type": "object", "additionalProperties": INT}, (3 * 2**20 - 2) // 7),
        ({"type": "object", "additionalProperties": INT, "maxProperties": 4}, 4),
        ({"type": "array", "maxItems": -3, "items": INT}, 0),
        (INT, 0),
    ],
)
def test_a_schema_bounds_its_values_and_else_a_request_does(schema: Schema, most: int) -> None:
    found = costs.bounds(schema, escaped, is_root=False)
    assert found is not None
    assert found.most == most


def test_what_rules_cannot_see_has_no_bounds() -> None:
    assert costs.bounds({"x-kubernetes-preserve-unknown-fields": True}, escaped, is_root=False) is None


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("true", 0),
        ("self.n > 1", 3),
        ("has(self.name)", 1),
        ("self.name == 'abc'", 3),
        ("self.name.matches('^a+$')", 2 + 5),
        ("self.names.all(x, x == self.name)", 2 + 10 * (2 + 1 + 7) + 1),
        ("self.n > 1 ? self.name == 'a' : self.names.all(x, true)", 3 + max(3, 2 + 10 * (2 + 1) + 1)),
        ("self.for == 'a'", 3),
    ],
)
def test_a_rule_costs_what_it_looks_at_as_often_as_it_can(text: str, most: int) -> None:
    schema = obj(n=INT, name=NAME, names=NAMES, **{"for": NAME})
    assert cost(text, schema) == most


def test_a_loop_without_a_bound_is_as_long_as_a_request() -> None:
    assert cost("self.all(x, x > 1)", {"type": "array", "items": INT}) > 5 * 2**20


def test_places_that_grew_out_of_one_share_their_ends() -> None:
    """As in cel-go: the inner list is taken to be as long as the name that is read in its loop."""
    short: Schema = {"type": "array", "maxItems": 3, "items": NAME}
    schema = obj(objs={"type": "array", "maxItems": 2, "items": obj(name=NAME, list=short)})
    in_the_loop = cost("self.objs.all(o, o.list.all(i, i == o.name))", schema)
    outside = cost("self.objs.all(o, o.list.all(i, i == self.objs[0].name))", schema)
    assert in_the_loop > 2 * outside


def test_a_rule_beyond_its_budget_is_refused_and_told_by_how_much() -> None:
    many: Schema = {"type": "array", "maxItems": 1000, "items": NAME}
    found = schema_errors(obj(spec=ruled(many, rule(PAIRS))), "schema", has_status=False)
    assert [one.path for one in found] == ["schema.properties[spec].x-kubernetes-validations[0].rule"]
    assert found[0].detail.startswith("estimated rule cost exceeds budget by factor of ")
    assert "adding maxItems, maxProperties, and maxLength" in found[0].detail
    assert not schema_errors(obj(spec=ruled(NAMES, rule(PAIRS))), "schema", has_status=False)


def test_a_rule_counts_as_often_as_its_place_can_occur() -> None:
    each = ruled(NAME, rule("self.matches('^[a-z]+$')"))
    bound: Schema = {"type": "array", "maxItems": 1000, "items": each}
    assert not schema_errors(obj(spec=bound), "schema", has_status=False)
    free: Schema = {"type": "array", "items": {"type": "array", "items": each}}
    found = schema_errors(obj(spec=free), "schema", has_status=False)
    assert "estimated rule cost" in found[0].detail


def test_rules_that_are_too_much_together_are_refused_and_the_dearest_named() -> None:
    fields = {f"f{place}": ruled({**NAMES, "maxItems": 500 - place}, rule(PAIRS)) for place in range(20)}
    found = schema_errors(obj(**fields), "schema", has_status=False)
    together = [one for one in found if one.detail.startswith("contributed to")]
    assert [one.path for one in together] == [
        f"schema.properties[f{place}].x-kubernetes-validations[0].rule" for place in range(4)
    ]
    assert found[-1].path == "schema"
    assert "total for entire OpenAPIv3 schema exceeds budget" in found[-1].detail


def test_a_schema_that_was_there_before_is_not_refused_for_one_rule() -> None:
    many: Schema = {"type": "array", "maxItems": 1000, "items": NAME}
    schema = obj(spec=ruled(many, rule(PAIRS)))
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
    crd: dict[str, Any] = {
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
        "status": {"storedVersions": ["v1"]},
    }
    assert not update_errors(crd, crd)
    changed = {**version, "schema": {"openAPIV3Schema": {**schema, "description": "other"}}}
    assert update_errors({**crd, "spec": {**crd["spec"], "versions": [changed]}}, crd)
