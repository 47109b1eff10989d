"""The rules of ``api/selectors.py``.

``data/selectors.json`` holds what Kubernetes' own code (apimachinery v0.37) answered.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api.selectors import (
    FieldRequirement,
    FieldSelection,
    LabelSelection,
    Operator,
    Requirement,
    field_selection,
    label_key_errors,
    label_selection,
    label_value_errors,
)

TABLE: dict[str, list[Any]] = json.loads((Path(__file__).parent / "data/selectors.json").read_text())

keys = st.sampled_from(["a", "b", "in", "notin", "exists", "app.kubernetes.io/name", "A_b-c.d"])
words = st.sampled_from(["", "x", "y", "in", "notin", "x_y", "1.0"])
numbers = st.integers(0, 2).map(str)
labels = st.dictionaries(keys, words | numbers, max_size=4)


def of(operator: Operator, values: st.SearchStrategy[tuple[str, ...]]) -> st.SearchStrategy[Requirement]:
    return st.builds(Requirement, keys, st.just(operator), values)


requirements = st.one_of(
    *(of(operator, st.tuples(words)) for operator in ("=", "==", "!=")),
    *(of(operator, st.lists(words, min_size=1, max_size=3).map(tuple)) for operator in ("in", "notin")),
    *(of(operator, st.just(())) for operator in ("exists", "!")),
    *(of(operator, st.tuples(numbers)) for operator in ("gt", "lt")),
)
label_selections = st.lists(requirements, max_size=4).map(lambda them: LabelSelection(tuple(them)))
field_selections = st.lists(
    st.builds(
        FieldRequirement,
        st.sampled_from(["metadata.name", "status.phase", "a!b"]),
        st.sampled_from(["=", "!="]),
        st.text(max_size=5),
    ),
    max_size=3,
).map(lambda them: FieldSelection(tuple(them)))


def naive(requirement: Requirement, has: Mapping[str, str]) -> bool:
    """What the documentation says of each operator, in sets."""
    values, value = set(requirement.values), {has[requirement.key]} if requirement.key in has else set()
    match requirement.operator:
        case "=" | "==" | "in":
            return bool(value & values)
        case "!=" | "notin":
            return not value & values
        case "exists":
            return bool(value)
        case "!":
            return not value
        case "gt":
            return any(one.isdigit() and int(one) > int(two) for one in value for two in values)
        case "lt":
            return any(one.isdigit() and int(one) < int(two) for one in value for two in values)


def answers(parse: Callable[[Any], LabelSelection | FieldSelection], rows: list[Any]) -> list[Any]:
    return [[written, has, str(parse(written)), parse(written).matches(has)] for written, has, *_ in rows]


def refusals(parse: Callable[[Any], object], rows: list[Any]) -> list[Any]:
    said = []
    for written, _ in rows:
        with pytest.raises(ValueError) as refused:
            parse(written)
        said.append([written, str(refused.value)])
    return said


def test_label_selectors_are_read_printed_and_matched_as_kubernetes_does() -> None:
    assert answers(LabelSelection.parse, TABLE["labels"]) == TABLE["labels"]


def test_a_wrong_label_selector_is_refused_in_kubernetes_words() -> None:
    assert refusals(LabelSelection.parse, TABLE["label_errors"]) == TABLE["label_errors"]


def test_selector_objects_are_read_printed_and_matched_as_kubernetes_does() -> None:
    assert answers(LabelSelection.from_object, TABLE["objects"]) == TABLE["objects"]


def test_a_wrong_selector_object_is_refused_in_kubernetes_words() -> None:
    assert refusals(LabelSelection.from_object, TABLE["object_errors"]) == TABLE["object_errors"]


def test_field_selectors_are_read_printed_and_matched_as_kubernetes_does() -> None:
    assert answers(FieldSelection.parse, TABLE["fields"]) == TABLE["fields"]


def test_a_wrong_field_selector_is_refused_in_kubernetes_words() -> None:
    assert refusals(FieldSelection.parse, TABLE["field_errors"]) == TABLE["field_errors"]


@given(label_selections)
def test_parsing_a_printed_label_selection_gives_it_back(selection: LabelSelection) -> None:
    assert LabelSelection.parse(str(selection)) == selection


@given(label_selections, labels)
def test_a_label_selection_matches_where_every_requirement_holds(
    selection: LabelSelection, has: dict[str, str]
) -> None:
    assert selection.matches(has) == all(naive(each, has) for each in selection.requirements)


@given(field_selections)
def test_parsing_a_printed_field_selection_gives_it_back(selection: FieldSelection) -> None:
    assert FieldSelection.parse(str(selection)) == selection


@given(field_selections, st.dictionaries(st.sampled_from(["metadata.name", "a!b"]), st.text(max_size=2)))
def test_a_field_selection_matches_where_every_requirement_holds(
    selection: FieldSelection, has: dict[str, str]
) -> None:
    expected = all(
        (has.get(each.field, "") == each.value) == (each.operator == "=") for each in selection.requirements
    )
    assert selection.matches(has) == selection.matches(has.get) == expected


@given(st.text("ab=!<>(), \tin-/.", max_size=20))
def test_any_text_is_a_label_selector_or_a_value_error(text: str) -> None:
    try:
        selection = LabelSelection.parse(text)
    except ValueError:
        return
    assert LabelSelection.parse(str(selection)) == selection


@given(st.text("ab=!\\,", max_size=12))
def test_any_text_is_a_field_selector_or_a_value_error(text: str) -> None:
    try:
        selection = FieldSelection.parse(text)
    except ValueError:
        return
    assert FieldSelection.parse(str(selection)) == selection


@pytest.mark.parametrize(
    ("text", "value", "matches"),
    [
        ("a>5", "6", True),
        ("a>5", "5", False),
        ("a<5", "5", False),
        ("a<5", "4", True),
        ("a<5", "-4", True),
        ("a>5", "six", False),
        ("a>5", "6_0", False),
        ("a>5", "9223372036854775808", False),
        ("a>5", None, False),
        ("a<5", None, False),
    ],
)
def test_greater_and_less_compare_whole_numbers_of_64_bits(
    text: str, value: str | None, matches: bool
) -> None:
    assert LabelSelection.parse(text).matches({} if value is None else {"a": value}) == matches


def test_the_order_of_writing_does_not_matter() -> None:
    assert LabelSelection.parse("b in (y,x,y),a=1") == LabelSelection.parse(" a = 1 , b in (x,y) ")
    assert FieldSelection.parse("b=1,a==2") == FieldSelection.parse("a=2,b=1")


def test_a_missing_selector_object_selects_nothing_and_an_empty_one_everything() -> None:
    nothing, everything = LabelSelection.from_object(None), LabelSelection.from_object({})
    assert not nothing.matches({})
    assert not nothing.matches({"nothing": "x"})
    assert everything.matches(None)
    assert str(everything) == ""


def test_nothing_stays_nothing_when_it_is_sent_as_text() -> None:
    assert LabelSelection.parse(str(LabelSelection.NOTHING)) == LabelSelection.NOTHING


@dataclass
class Expression:
    key: str
    operator: str
    values: list[str] | None = None


@dataclass
class Model:
    """As the generated LabelSelector of meta v1 looks."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = field(default=None)


def test_a_selector_may_be_a_model() -> None:
    model = Model({"app": "web"}, [Expression("tier", "In", ["a", "b"]), Expression("old", "DoesNotExist")])
    assert str(LabelSelection.from_object(model)) == "app=web,!old,tier in (a,b)"
    assert label_selection(model) == LabelSelection.from_object(model)
    assert LabelSelection.from_object(Model()) == LabelSelection()


def test_a_selection_is_made_of_whatever_a_caller_writes() -> None:
    written = LabelSelection.parse("app=web")
    assert (
        label_selection("app=web") == label_selection({"app": "web"}) == label_selection(written) == written
    )
    named = FieldSelection.parse("metadata.name=x")
    assert (
        field_selection("metadata.name=x")
        == field_selection({"metadata.name": "x"})
        == field_selection(named)
        == named
    )


@pytest.mark.parametrize("value", [None, 5, ["a=b"]])
def test_what_is_no_selection_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot select by labels with"):
        label_selection(value)
    with pytest.raises(TypeError, match="cannot select by fields with"):
        field_selection(value)


def test_a_label_that_is_no_text_is_a_type_error_that_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="label 'app' must be text, not 1"):
        label_selection({"app": 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"goes through LabelSelection\.from_object"):
        label_selection({"matchLabels": {"app": "web"}})  # type: ignore[dict-item]


def test_labels_to_equal_are_checked() -> None:
    with pytest.raises(ValueError, match='values\\[0\\]\\[app\\]: Invalid value: "a b"'):
        LabelSelection.of({"app": "a b"})


@pytest.mark.parametrize("name", ["a=b", "a,b", "a!", "a\\b"])
def test_a_field_that_could_not_be_written_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no field is called"):
        FieldSelection.of({name: "x"})


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match='operator: Unsupported value: "~"'):
        Requirement("a", "~")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "key", ["simple", "A_b.c-1", "example.com/Name", "a" * 63, "a" * 253 + "/" + "b" * 63]
)
def test_a_good_label_key_has_no_errors(key: str) -> None:
    assert label_key_errors(key) == []


@pytest.mark.parametrize(
    ("key", "beginnings"),
    [
        ("", ["name part must be non-empty", "name part must consist of"]),
        ("a/b/c", ["a valid label key must consist of"]),
        ("/b", ["prefix part must be non-empty"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("é" * 32, ["name part must be no more than 63 bytes", "name part must consist of"]),
        ("a" * 254 + "/b", ["prefix part must be no more than 253 bytes"]),
        ("Example.com/b", ["prefix part a lowercase RFC 1123 subdomain must consist of"]),
        ("b\n", ["name part must consist of"]),
    ],
)
def test_a_bad_label_key_is_told_what_is_wrong(key: str, beginnings: list[str]) -> None:
    errors = label_key_errors(key)
    assert len(errors) == len(beginnings)
    assert all(error.startswith(beginning) for error, beginning in zip(errors, beginnings, strict=True))


@pytest.mark.parametrize(
    ("value", "count"),
    [("", 0), ("a_b.c-1", 0), ("a" * 63, 0), ("a" * 64, 1), ("-a", 1), ("a\n", 1), ("é" * 32, 2)],
)
def test_a_label_value_is_checked(value: str, count: int) -> None:
    assert len(label_value_errors(value)) == count
