"""CEL rules: what the recordings do not show of them."""

from __future__ import annotations

import json
import resource

import pytest

from setpoint.server.registry.crd import cel, engine, programs, spending
from setpoint.server.registry.crd.natives import native
from setpoint.server.registry.crd.patterns import BadPattern, compiled
from setpoint.server.registry.crd.schema_rules import schema_errors
from tests.server.deadlines import within
from tests.server.registry.crd_cases import INT, TEXT, lists, obj, rule, ruled


def test_without_an_engine_a_rule_is_refused_and_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    programs._environment.cache_clear()
    monkeypatch.setattr(engine, "load", lambda: None)
    try:
        refused = schema_errors(obj(spec=ruled(obj(a=INT), rule("self.a > 1"))), "schema", has_status=False)
        assert [one.path for one in refused] == ["schema.properties[spec].x-kubernetes-validations[0].rule"]
        assert programs.MISSING in refused[0].detail
    finally:
        programs._environment.cache_clear()


def test_a_rule_that_takes_too_long_refuses_the_object() -> None:
    schema = ruled(lists(TEXT), rule("self.all(x, self.exists(y, x == y + 'z') || true)"))
    found = cel.rules(schema, is_root=False)
    assert found is not None
    errors = found.errors([str(one) for one in range(1000)], None)
    assert [one.detail.partition(":")[0] for one in errors] == ["'operation cancelled"]


def test_all_rules_of_an_object_may_cost_so_much_together_and_no_more() -> None:
    found = cel.rules(lists(ruled(lists(INT), rule("sets.contains(self, self)"))), is_root=False)
    assert found is not None
    errors = found.errors([list(range(700))] * 40, None)  # 490,000 for each, of ten million
    assert [one.path for one in errors] == ["[20]"]
    assert errors[0].detail == (
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )


def test_a_message_sees_what_was_only_where_a_rule_speaks_of_it() -> None:
    says = rule("self > 9", messageExpression="'was ' + string(oldSelf)")
    for others, told in (((), "failed rule: self > 9"), ((rule("self >= oldSelf"),), "was 1")):
        found = cel.rules(ruled(INT, says, *others), is_root=False)
        assert found is not None
        assert [one.detail for one in found.errors(2, 1)] == [told]


def test_a_list_that_would_fill_the_memory_is_never_made() -> None:
    for text in (
        "lists.range(self * 1000000000).size() > 1",
        "[[self]].map(a, a + a).map(a, a + a)" + ".map(a, a + a)" * 20 + "[0].size() > 1",
        "'a'.replace('', '%s').size() > 1" % ("x" * 10) + " && lists.range(100000).map(i, 'abcdefghij')"
        ".join(lists.range(1000).map(i, 'abcdefghij').join()).size() > 1",
    ):
        found = cel.compiled(rule(text), INT, is_root=False).rule
        assert found is not None, text
        with pytest.raises(programs.EvaluationError, match="actual cost limit exceeded"):
            found.evaluate({"self": 7}, programs.Purse())


BIG = {
    "o": {"a": {str(number): {"x": number} for number in range(10_000)}},
    "s": "a" * 100_000,
    "l": [""] * 10_000,
    "d": ["a" * 100_000] * 50,
    "m": [{"k": str(number)} for number in range(10_000)],
}
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
BIG_SCHEMA = {
    "type": "object",
    "properties": {
        "o": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": ANY}},
        "s": TEXT,
        "l": {"type": "array", "items": TEXT},
        "d": {"type": "array", "items": TEXT},
        "m": {
            "type": "array",
            "items": {"type": "object", "properties": {"k": TEXT}},
        },
    },
}


@pytest.mark.parametrize(
    "text",
    [
        # What costs little, and is much: to compare, to look through, to write.
        "lists.range(900).all(i, self.o == oldSelf.o)",
        "lists.range(900).all(i, [self.m] != [oldSelf.m] || true)",
        "lists.range(9000).map(i, self.d[0]).join().size() > 0",
        "lists.range(9000).map(i, self.d[0]).join(',').size() > 0",
        "'%s'.format([lists.range(9000).map(i, self.d[0])]).size() > 0",
        "lists.range(9000).all(i, '%s'.format([self.s]).size() > 0)",
        "lists.range(900).all(i, '%s'.format([self.o]).size() > 0)",
        "lists.range(900).all(i, self.l.indexOf('x') < 0)",
        "lists.range(900).all(i, self.l.lastIndexOf('x') < 0)",
        "lists.range(900).all(i, self.l.isSorted())",
        "lists.range(900).all(i, self.l.max() == '')",
        "lists.range(900).all(i, sets.contains([self.o], [oldSelf.o]))",
        "lists.range(900).all(i, [self.o, self.o].distinct().size() == 1)",
        "lists.range(900).all(i, self.l.exists(j, v, true))",
        "lists.range(900).all(i, self.o.a.exists(k, true))",
        "lists.range(900).all(i, [self.l, self.l].flatten().size() > 0)",
        "lists.range(900).map(i, self.l + self.l).size() > 0",
        "lists.range(900).map(i, 'aaaaaaaaaa'.replace('a', self.s)).size() > 0",
        "[1].map(a, [a, a])" + ".map(a, [a, a])" * 18 + " == [2].map(a, [a, a])" + ".map(a, [a, a])" * 18,
        "self.s.findAll('a.*b|a').size() > 0",
    ],
)
def test_what_costs_little_and_is_much_ends_before_it_is_done(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spending, "WORK_LIMIT", 300_000)  # as the data are a tenth of what they may be
    found = cel.compiled(rule(text), BIG_SCHEMA, is_root=False).rule
    assert found is not None, text
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    old = json.loads(json.dumps(BIG))
    with within(60), pytest.raises(programs.EvaluationError, match="actual cost limit exceeded"):
        found.evaluate({"self": BIG, "oldSelf": old}, programs.Purse())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "KiB"


@pytest.mark.parametrize(
    "text",
    [
        "self.o == oldSelf.o",
        "self.l.indexOf('x') < 0 && self.l.isSorted()",
        "self.s.lastIndexOf('a') == 99999",
        "self.s.lastIndexOf(self.s.substring(1, 40000) + 'b' + self.s.substring(1, 40000)) < 0",
        "'%s'.format([self.s]).size() == 100000",
        "self.l.join(',').size() == 9999",
        "self.m.all(e, e.k != '')",
        "!('b' in self.l)",
    ],
)
def test_what_is_large_is_judged_once_or_twice(text: str) -> None:
    found = cel.compiled(rule(text), BIG_SCHEMA, is_root=False).rule
    assert found is not None, text
    old = json.loads(json.dumps(BIG))
    with within(60):
        assert found.evaluate({"self": BIG, "oldSelf": old}, programs.Purse()) is True


def test_an_expression_ends_in_time_whatever_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending, "_LONGEST", -1.0)
    found = cel.compiled(rule("lists.range(20000).all(i, i >= 0)"), INT, is_root=False).rule
    assert found is not None
    with pytest.raises(programs.EvaluationError, match="actual cost limit exceeded"):
        found.evaluate({"self": 7}, programs.Purse())


def test_all_that_judges_an_object_works_so_much_together_and_no_more() -> None:
    purse = programs.Purse()
    purse.pay(1, spending.WORK_BUDGET)
    with pytest.raises(spending.OverBudget):
        purse.pay(1, 1)


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("int(self) == 0", False),
        ("uint(self) == 0u", False),
        ("duration(self) == duration('0s')", False),
        ("double(self) > 0.0", False),
        ("double(self + 'x') > 0.0", False),
        ("isSemver(self + '.0.0')", False),
        ("isSemver('1.0.0-' + self)", False),
        ("isQuantity(self + 'x')", False),
        ("int('0' + self.substring(1).replace('1', '0')) == 0", True),
        ("duration('1.' + self + 's') > duration('1s')", True),
    ],
)
def test_digits_without_end_are_no_number_and_take_no_time(text: str, is_so: bool) -> None:
    found = cel.compiled(rule(text), TEXT, is_root=False).rule
    assert found is not None, text
    with within(20):
        try:
            assert found.evaluate({"self": "1" * 1_000_000}, programs.Purse()) is is_so
        except programs.EvaluationError:
            assert not is_so


@pytest.mark.parametrize("text", ["1" * 1_000_000, "1" * 1_000_000 + "weeks", "1 " * 500_000])
def test_digits_without_end_are_no_duration(text: str) -> None:
    schema = {"type": "string", "format": "duration"}
    made = native(schema)
    assert made is not None
    with within(20):
        assert isinstance(made(text), programs.EvaluationError)


def test_a_lone_surrogate_in_a_text_refuses_the_object_and_does_not_break() -> None:
    found = cel.rules(ruled(TEXT, rule("self == 'x' || self.matches('(a+)+b')")), is_root=False)
    assert found is not None
    assert len(found.errors("\ud800" * 300, None)) == 1


@pytest.mark.parametrize(
    "text", ["(" * 5000 + "true" + ")" * 5000, "true && " * 20_000 + "true", "self == '\ud800'", "\x00", "'"]
)
def test_an_expression_that_no_engine_takes_is_refused_and_does_not_break(text: str) -> None:
    found = cel.compiled(rule(text), INT, is_root=False)
    assert found.rule is None
    assert [one.word for one in found.issues] == ["rule"]


def test_a_hard_pattern_is_tested_on_a_long_text_in_linear_time() -> None:
    assert not compiled("^(a|aa)+$")("a" * 20_000 + "b")
    assert not compiled("(x+x+)+y")("x" * 20_000)
    assert compiled("^a*b$")("a" * 20_000 + "b")


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("(", "error parsing regexp: missing closing ): `(`"),
        ("[a", "error parsing regexp: missing closing ]: `[a`"),
        ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
        ("(?=x)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        ("*", "error parsing regexp: missing argument to repetition operator: `*`"),
        ("a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
    ],
)
def test_a_bad_pattern_is_refused_in_gos_words(pattern: str, told: str) -> None:
    with pytest.raises(BadPattern) as refused:
        compiled(pattern)
    assert str(refused.value) == told
