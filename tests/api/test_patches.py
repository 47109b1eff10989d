"""The promises of ``api/patches.py``: tables from the RFCs, and hypothesis for what tables miss."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api.patches import (
    APPLY_CONTENT_TYPE,
    JsonPatch,
    MergePatch,
    Op,
    PatchError,
    StrategicPatch,
    apply_merge,
    apply_patch,
    carry,
    diff,
    merge_diff,
    patch_between,
    same,
)

# Few names and values, so that both sides often share something; "/" and "~" need escaping in paths.
names = st.sampled_from(["name", "type", "a", "b", "c", "/", "~", "~1", "", "0"])
scalars = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5]) | st.sampled_from("xyz")
)
values = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=6) | st.dictionaries(names, below, max_size=5),
    max_leaves=25,
)
objects = st.dictionaries(names, values, max_size=5)
keyed_lists = st.lists(
    st.fixed_dictionaries({"name": st.integers(0, 12).map(str)}, optional={"a": scalars, "b": values}),
    max_size=10,
    unique_by=lambda item: str(item["name"]),
)
big_values = values | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(below) for name, below in value.items() if below is not None}
    return (
        [without_nulls(below) for below in value if below is not None] if isinstance(value, list) else value
    )


def size(ops: list[Op]) -> int:
    return len(JsonPatch(ops).encode())


@given(big_values, big_values)
def test_a_diff_applied_gives_the_other_value(a: Any, b: Any) -> None:
    assert same(apply_patch(diff(a, b), a), b)


@given(keyed_lists, keyed_lists)
def test_a_diff_of_lists_with_keys_applied_gives_the_other_list(a: Any, b: Any) -> None:
    assert same(apply_patch(diff({"items": a}, {"items": b}), {"items": a}), {"items": b})


@given(st.permutations(range(8)), st.sets(st.integers(0, 7)))
def test_a_diff_of_shuffled_lists_applied_gives_the_other_list(order: list[int], gone: set[int]) -> None:
    before = [{"name": str(i), "text": "a text long enough not to be worth repeating"} for i in range(8)]
    after = [before[i] for i in order if i not in gone]

    ops = diff(before, after)

    assert apply_patch(ops, before) == after
    assert len([op for op in ops if op["op"] == "move"]) < max(1, len(after)), "the longest run stays put"


@given(objects, objects)
def test_the_diff_of_a_value_with_itself_is_empty(a: Any, b: Any) -> None:
    assert diff(a, copy.deepcopy(a)) == []
    assert bool(diff(a, b)) is not same(a, b)


@given(st.lists(values, max_size=8), st.lists(values, max_size=8))
def test_the_diff_of_two_lists_is_never_longer_than_replacing_the_list(a: Any, b: Any) -> None:
    assert same(a, b) or size(diff(a, b)) <= size([{"op": "replace", "path": "", "value": b}])


@given(objects, objects)
def test_an_object_is_never_replaced_by_an_object(a: Any, b: Any) -> None:
    def outside_lists(path: str) -> Any:
        """The value of ``a`` at a path, or None where the way leads through a list."""
        value: Any = a
        for step in path.split("/")[1:]:
            if not isinstance(value, dict):
                return None
            value = value.get(step.replace("~1", "/").replace("~0", "~"))
        return value

    for op in diff(a, b):
        if op["op"] == "replace" and isinstance(op["value"], dict):
            assert not isinstance(outside_lists(op["path"]), dict)


@given(values, objects)
def test_a_merge_diff_applied_gives_the_other_value_if_that_holds_no_null(a: Any, b: Any) -> None:
    b = without_nulls(b)
    assert same(apply_merge(merge_diff(a, b), a), b)


def test_a_null_cannot_be_said_in_a_merge_patch_and_removes_the_field() -> None:
    assert apply_merge(merge_diff({"a": 1}, {"a": None}), {"a": 1}) == {}
    assert merge_diff({"a": None}, {"a": None, "b": 1}) == {"b": 1}, "a null on both sides is not touched"


@given(values, values)
def test_the_patch_between_two_values_is_exact_and_the_shorter_of_the_two(a: Any, b: Any) -> None:
    patch = patch_between(a, b)
    if isinstance(patch, MergePatch):
        assert same(apply_merge(patch.body, a), b)
        assert len(patch.encode()) <= size(diff(a, b))
    else:
        assert same(apply_patch(patch.ops, a), b)


def test_the_patch_between_objects_merges_fields_and_names_one_item_of_a_long_list() -> None:
    before: dict[str, Any] = {"spec": {"replicas": 1, "args": [f"--flag-{i}=value" for i in range(20)]}}
    scaled = {"spec": {**before["spec"], "replicas": 2}}
    shorter = {"spec": {**before["spec"], "args": before["spec"]["args"][1:]}}

    assert patch_between(before, scaled) == MergePatch({"spec": {"replicas": 2}})
    assert patch_between(before, shorter) == JsonPatch([{"op": "remove", "path": "/spec/args/0"}])
    assert patch_between(before, before) == MergePatch({})


@given(values, values)
def test_nothing_passed_in_is_changed_and_nothing_is_shared_with_what_comes_out(a: Any, b: Any) -> None:
    ops, merge = diff(a, b), merge_diff(a, b)
    before = copy.deepcopy((a, b, ops, merge))

    results = [ops, merge, apply_patch(ops, a), apply_merge(merge, a), carry(a, b, a)]

    assert (a, b, ops, merge) == before
    inputs = containers(a) | containers(b)
    for result in results:
        assert not inputs & containers(result)
    assert not containers(results[0]) & containers(results[2]), "a patch stays a value of its own"


def containers(value: Any) -> set[int]:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return set() if below is None else {id(value)}.union(*map(containers, below))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(
            list(range(10)), list(range(1, 10)), [{"op": "remove", "path": "/0"}], id="first of ten removed"
        ),
        pytest.param(
            {"l": list("abcdefgh")},
            {"l": list("abcXdefgh")},
            [{"op": "add", "path": "/l/3", "value": "X"}],
            id="one added in the middle",
        ),
        pytest.param(
            [{"name": n, "image": f"registry.example/{n}:1"} for n in "abcd"],
            [{"name": n, "image": f"registry.example/{n}:{2 if n == 'c' else 1}"} for n in "bcd"],
            [
                {"op": "remove", "path": "/0"},
                {"op": "replace", "path": "/1/image", "value": "registry.example/c:2"},
            ],
            id="one removed, one changed, by name",
        ),
        pytest.param(
            [{"name": n, "image": f"registry.example/{n}:1"} for n in "abcd"],
            [{"name": n, "image": f"registry.example/{n}:1"} for n in "bcda"],
            [{"op": "move", "from": "/0", "path": "/3"}],
            id="one moved to the end",
        ),
        pytest.param(
            [{"x": n, "text": "long enough to matter"} for n in "abcd"],
            [{"x": n, "text": "long enough to matter"} for n in "aBcd"],
            [{"op": "replace", "path": "/1/x", "value": "B"}],
            id="without a key, changed between the same neighbours",
        ),
        pytest.param({"a": 1}, {"a": 1.0}, [], id="1 is 1.0"),
        pytest.param(
            {"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}], id="1 is not true"
        ),
        pytest.param(
            [0, [1], {}],
            [0, [True], {}],
            [{"op": "replace", "path": "/1", "value": [True]}],
            id="inside a list",
        ),
        pytest.param({"a": None}, {}, [{"op": "remove", "path": "/a"}], id="null is not absence"),
        pytest.param(
            {"a": {}}, {"a": []}, [{"op": "replace", "path": "/a", "value": []}], id="object to list"
        ),
        pytest.param(
            {"a/b~c": 1},
            {"a/b~c": 2},
            [{"op": "replace", "path": "/a~1b~0c", "value": 2}],
            id="names are escaped",
        ),
    ],
)
def test_a_diff_says_only_what_changed(a: Any, b: Any, expected: list[Op]) -> None:
    assert diff(a, b) == expected


def test_conditions_are_followed_by_their_type() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    other = {"type": "Scheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}

    assert diff([ready, other], [other, {**ready, "status": "False"}]) == [
        {"op": "move", "from": "/1", "path": "/0"},
        {"op": "replace", "path": "/1/status", "value": "False"},
    ]


def test_the_key_that_tells_items_apart_may_be_given() -> None:
    long = "long enough that a move is shorter than the item, in its JSON form, would be"
    a = [{"host": "a", "name": "1", "x": long}, {"host": "b", "name": "2", "x": long}]
    b = [{"host": "b", "name": "1", "x": long}, {"host": "a", "name": "2", "x": long}]

    ops = diff(a, b, keys=["host"])

    assert ops[0] == {"op": "move", "from": "/1", "path": "/0"}
    assert {op["path"] for op in ops[1:]} == {"/0/name", "/1/name"}


def test_a_list_with_thousands_of_edits_is_replaced() -> None:
    long = "long enough that a move is shorter than the item itself in its JSON form would be"
    a = [f"{i} {long}" for i in range(2000)]
    b = [a[i * 7919 % 2000] for i in range(2000)]
    assert [op["op"] for op in diff(a, b)] == ["replace"]


# RFC 6902, appendix A: document, patch, and the result or None where the patch must fail.
RFC_6902 = [
    ('{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux"}]', '{"baz":"qux","foo":"bar"}'),
    ('{"foo":["bar","baz"]}', '[{"op":"add","path":"/foo/1","value":"qux"}]', '{"foo":["bar","qux","baz"]}'),
    ('{"baz":"qux","foo":"bar"}', '[{"op":"remove","path":"/baz"}]', '{"foo":"bar"}'),
    ('{"foo":["bar","qux","baz"]}', '[{"op":"remove","path":"/foo/1"}]', '{"foo":["bar","baz"]}'),
    (
        '{"baz":"qux","foo":"bar"}',
        '[{"op":"replace","path":"/baz","value":"boo"}]',
        '{"baz":"boo","foo":"bar"}',
    ),
    (
        '{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}',
        '[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]',
        '{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}',
    ),
    (
        '{"foo":["all","grass","cows","eat"]}',
        '[{"op":"move","from":"/foo/1","path":"/foo/3"}]',
        '{"foo":["all","cows","eat","grass"]}',
    ),
    (
        '{"baz":"qux","foo":["a",2,"c"]}',
        '[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]',
        '{"baz":"qux","foo":["a",2,"c"]}',
    ),
    ('{"baz":"qux"}', '[{"op":"test","path":"/baz","value":"bar"}]', None),
    (
        '{"foo":"bar"}',
        '[{"op":"add","path":"/child","value":{"grandchild":{}}}]',
        '{"foo":"bar","child":{"grandchild":{}}}',
    ),
    ('{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux","xyz":123}]', '{"foo":"bar","baz":"qux"}'),
    ('{"foo":"bar"}', '[{"op":"add","path":"/baz/bat","value":"qux"}]', None),
    ('{"/":9,"~1":10}', '[{"op":"test","path":"/~01","value":10}]', '{"/":9,"~1":10}'),
    ('{"/":9,"~1":10}', '[{"op":"test","path":"/~01","value":"10"}]', None),
    (
        '{"foo":["bar"]}',
        '[{"op":"add","path":"/foo/-","value":["abc","def"]}]',
        '{"foo":["bar",["abc","def"]]}',
    ),
]


@pytest.mark.parametrize(("document", "patch", "expected"), RFC_6902)
def test_the_examples_of_rfc_6902_hold(document: str, patch: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(PatchError):
            apply_patch(json.loads(patch), json.loads(document))
    else:
        assert apply_patch(json.loads(patch), json.loads(document)) == json.loads(expected)


# RFC 7386, appendix A: original, patch, result.
RFC_7386 = [
    ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
    ('{"a":"b"}', '{"a":null}', "{}"),
    ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
    ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
    ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
    ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
    ('["a","b"]', '["c","d"]', '["c","d"]'),
    ('{"a":"b"}', '["c"]', '["c"]'),
    ('{"a":"foo"}', "null", "null"),
    ('{"a":"foo"}', '"bar"', '"bar"'),
    ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
    ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
    ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
]


@pytest.mark.parametrize(("document", "patch", "expected"), RFC_7386)
def test_the_examples_of_rfc_7386_hold(document: str, patch: str, expected: str) -> None:
    assert apply_merge(json.loads(patch), json.loads(document)) == json.loads(expected)


@pytest.mark.parametrize(
    ("op", "why"),
    [
        ({"op": "remove", "path": "/x"}, "there is no 'x'"),
        ({"op": "replace", "path": "/x", "value": 1}, "there is no 'x'"),
        ({"op": "test", "path": "/x", "value": None}, "there is no 'x'"),
        ({"op": "copy", "from": "/x", "path": "/y"}, "there is no 'x'"),
        ({"op": "move", "from": "/x", "path": "/x"}, "there is no 'x'"),
        ({"op": "remove", "path": ""}, "the whole document cannot be removed"),
        ({"op": "remove", "path": "/list/-"}, "'-' is no index into a list"),
        ({"op": "remove", "path": "/list/3"}, "index 3 is past the end of the list"),
        ({"op": "remove", "path": "/list/99999999999999999999"}, "is past the end of the list"),
        ({"op": "remove", "path": "/list/" + "9" * 5000}, "is past the end of the list"),
        ({"op": "add", "path": "/list/4", "value": 0}, "index 4 is past the end of the list"),
        ({"op": "add", "path": "/list/01", "value": 0}, "'01' is no index into a list"),
        ({"op": "add", "path": "/list/-1", "value": 0}, "'-1' is no index into a list"),
        ({"op": "add", "path": "/list/²", "value": 0}, "'²' is no index into a list"),
        ({"op": "add", "path": "/list/", "value": 0}, "'' is no index into a list"),
        ({"op": "add", "path": "/text/x", "value": 0}, "a string holds no 'x'"),
        ({"op": "test", "path": "/text/0", "value": 0}, "a string holds no '0'"),
        ({"op": "test", "path": "/true", "value": 1}, "is not the one that the test expects"),
        ({"op": "move", "from": "/object", "path": "/object/below"}, "a value cannot be moved into itself"),
        ({"op": "add", "path": "x", "value": 1}, "a path starts with /"),
        ({"op": "add", "path": "/~2", "value": 1}, "~ is written ~0"),
        ({"op": "add", "path": "/~", "value": 1}, "~ is written ~0"),
        ({"op": "add", "path": "/x"}, "the operation has no 'value'"),
        ({"op": "move", "path": "/x"}, "the operation has no 'from'"),
        ({"op": "add", "value": 1}, "the operation has no 'path'"),
        ({"op": "merge", "path": ""}, "there is no operation 'merge'"),
        ({"path": ""}, "there is no operation None"),
        ("add", "an operation is an object, not a string"),
    ],
)
def test_an_operation_that_cannot_be_performed_is_named_with_its_reason(op: Any, why: str) -> None:
    document = {"list": [1, 2, 3], "text": "x", "object": {}, "true": True}
    before = copy.deepcopy(document)

    with pytest.raises(PatchError) as caught:
        apply_patch([{"op": "add", "path": "/new", "value": 1}, op], document)

    assert why in str(caught.value)
    assert str(caught.value).startswith("patch operation 1 at ")
    assert (caught.value.index, document) == (1, before), "all or nothing"


def test_a_failed_test_does_not_show_the_value() -> None:
    with pytest.raises(PatchError) as caught:
        apply_patch([{"op": "test", "path": "/password", "value": "guess"}], {"password": "secret"})
    assert "secret" not in str(caught.value)
    assert "guess" not in str(caught.value)


def test_replace_move_and_copy_at_the_root() -> None:
    assert apply_patch([{"op": "replace", "path": "", "value": [1]}], {}) == [1]
    assert apply_patch([{"op": "move", "from": "/a", "path": ""}], {"a": [1]}) == [1]
    assert apply_patch([{"op": "copy", "from": "", "path": "/a"}], {"b": 1}) == {"b": 1, "a": {"b": 1}}


def test_a_carried_change_leaves_what_the_other_copy_holds_besides() -> None:
    onto = {
        "spec": {"containers": [{"name": "a", "new": 1}, {"name": "b", "image": "x", "new": 2}], "new": 3},
        "new": 4,
    }
    before = {"spec": {"containers": [{"name": "a"}, {"name": "b", "image": "x"}]}}
    after = {"spec": {"containers": [{"name": "b", "image": "y"}, {"name": "c"}]}}

    assert carry(before, after, onto) == {
        "spec": {"containers": [{"name": "b", "image": "y", "new": 2}, {"name": "c"}], "new": 3},
        "new": 4,
    }


def test_an_item_of_another_name_inherits_nothing_from_the_one_in_its_place() -> None:
    assert carry([{"name": "a"}], [{"name": "b"}], [{"name": "a", "new": 1}]) == [{"name": "b"}]
    assert carry([{"x": "a"}], [{"x": "b"}], [{"x": "a", "new": 1}]) == [{"x": "b", "new": 1}], (
        "no key: it changed"
    )


def test_a_default_that_the_other_copy_lacks_is_written_only_if_it_changed() -> None:
    before = {"metadata": {}, "spec": {"replicas": 1}, "status": {"ready": False}}
    scaled = {**before, "spec": {"replicas": 2}}
    ready = {**before, "status": {"ready": True}}

    assert carry(before, before, {"spec": {}}) == {"spec": {}}
    assert carry(before, scaled, {"spec": {}}) == {"spec": {"replicas": 2}}
    assert carry(before, ready, {"spec": {}, "status": None}) == {"spec": {}, "status": {"ready": True}}


def test_a_changed_list_of_which_the_other_copy_is_no_match_is_written_whole() -> None:
    assert carry({"l": [1, 2]}, {"l": [2]}, {"l": [1]}) == {"l": [2]}
    assert carry({"l": [1, 2]}, {"l": [2]}, {"l": None}) == {"l": [2]}


@given(values, values)
def test_a_change_carried_onto_where_it_came_from_is_the_change(a: Any, b: Any) -> None:
    assert same(carry(a, b, a), b)


@given(objects, objects, objects)
def test_a_change_can_be_carried_onto_anything(a: Any, b: Any, c: Any) -> None:
    before = copy.deepcopy((a, b, c))
    carried = carry(a, b, c)
    assert (a, b, c) == before
    assert not containers(carried) & (containers(a) | containers(b) | containers(c))
    for name in c.keys() - a.keys() - b.keys():
        assert same(carried[name], c[name])


def test_a_patch_knows_its_content_type_and_its_bytes() -> None:
    class Quantity:
        def to_wire(self) -> str:
            return "100m"

    assert JsonPatch([]).content_type == "application/json-patch+json"
    assert MergePatch({}).content_type == "application/merge-patch+json"
    assert StrategicPatch({}).content_type == "application/strategic-merge-patch+json"
    assert APPLY_CONTENT_TYPE == "application/apply-patch+yaml"
    assert JsonPatch(diff({}, {"a": 1})).encode() == b'[{"op":"add","path":"/a","value":1}]'
    assert MergePatch({"a": None}).encode() == b'{"a":null}'
    assert StrategicPatch({"cpu": Quantity()}).encode() == b'{"cpu":"100m"}'
    with pytest.raises(TypeError, match="a patch holds JSON values, not object"):
        MergePatch({"a": object()}).encode()
