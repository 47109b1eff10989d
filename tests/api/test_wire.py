"""The promises of ``api/wire.py``: nothing lost, nothing pinned, rubbish refused."""

from __future__ import annotations

import itertools
import json
import random
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api.names import Key
from setpoint.api.wire import (
    INITIAL_EVENTS_END,
    LineSplitter,
    Malformed,
    Metadata,
    Owner,
    Page,
    Snapshot,
    read_frame,
    read_metadata,
    split_page,
    strip_managed_fields,
    told_apart,
)

# As a kube-apiserver wrote it, shortened.
POD = (
    b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-8jqzv","generateName":"web-","namespace":"shop",'
    b'"uid":"663f969b-7325-4f5c-a549-5b1ad2afddb3","resourceVersion":"283","generation":1,'
    b'"creationTimestamp":"2026-11-15T21:33:14Z","deletionTimestamp":"2026-11-15T21:40:00Z",'
    b'"labels":{"app.kubernetes.io/name":"web"},"annotations":{"prometheus.io/port":"8080"},'
    b'"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"0ef609bd","controller":true,'
    b'"blockOwnerDeletion":true}],"finalizers":["shop.example/drain"],"managedFields":[{"manager":"kubelet"}]},'
    b'"spec":{"containers":[{"name":"web","image":"web:1"}]},"status":{"phase":"Running"}}'
)
BOOKMARK = (
    b'{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"285","creationTimestamp":null,'
    b'"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}'
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(), below, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text().filter(lambda name: name != "metadata"), values, max_size=4)


def written(value: Any, spaces: bool) -> bytes:
    return json.dumps(value, separators=None if spaces else (",", ":"), ensure_ascii=False).encode()


# ── Objects ─────────────────────────────────────────────────────────────────────────────────────────


def test_metadata_is_read_without_the_rest() -> None:
    assert read_metadata(POD) == Metadata(
        name="web-8jqzv",
        namespace="shop",
        uid="663f969b-7325-4f5c-a549-5b1ad2afddb3",
        resource_version="283",
        generation=1,
        creation_timestamp="2026-11-15T21:33:14Z",
        deletion_timestamp="2026-11-15T21:40:00Z",
        labels={"app.kubernetes.io/name": "web"},
        annotations={"prometheus.io/port": "8080"},
        owner_references=(Owner("apps/v1", "ReplicaSet", "web", "0ef609bd", True, True),),
        finalizers=("shop.example/drain",),
    )


_tricky = st.sampled_from(
    ['},"spec":{', ',"managedFields":[', "}]}", "]", ',"metadata":{"name":"', "a", "\\", '"']
)
_managers: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries({"manager": _tricky, "fieldsV1": st.just({"f:spec": {}}) | st.just({"x": [{}]})}),
    max_size=2,
)
_metadata = st.fixed_dictionaries(
    {},
    optional={
        "name": _tricky,
        "uid": _tricky,
        "resourceVersion": st.just("7"),
        "annotations": st.dictionaries(_tricky | st.just("spec"), _tricky, max_size=2),
        "finalizers": st.lists(_tricky, max_size=2),
        "managedFields": _managers,
        "spec": st.fixed_dictionaries({"spec": st.dictionaries(_tricky, _tricky, max_size=1)}),
    },
)
_whole = st.fixed_dictionaries(
    {},
    optional={
        "kind": _tricky,
        "metadata": _metadata,
        "spec": st.dictionaries(_tricky | st.just("metadata"), _metadata | _tricky, max_size=2),
        "template": st.fixed_dictionaries({"metadata": _metadata, "spec": _metadata}),
        "managedFields": _managers,
    },
)


@given(_whole, st.booleans(), st.randoms(use_true_random=False))
def test_whatever_order_an_object_is_written_in_its_metadata_is_the_same(
    whole: dict[str, Any], spaces: bool, chance: random.Random
) -> None:
    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: shuffled(value[name]) for name in chance.sample(list(value), len(value))}

    data = written(shuffled(whole), spaces)
    assert read_metadata(data) == msgspec.json.decode(data, type=_WithMetadata).metadata


class _WithMetadata(msgspec.Struct):
    metadata: Metadata = Metadata()


@pytest.mark.parametrize(
    "data",
    [
        b'{"kind":"A","metadata":{"name":"a","managedFields":[{"manager":"m"}],"uid":"u"},"spec":{}}',
        b'{"kind":"A","metadata":{"name":"a","managedFields":[{"manager":"}]}"}],"uid":"u"},"spec":{}}',
        b'{"kind":"A","metadata":{"name":"a","managedFields":[{"manager":"}]},"}],"uid":"u"},"spec":{}}',
        b'{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"x":[{}]},"manager":"m"}],"uid":"u"},"spec":{}}',
        b'{"kind":"A","status":{"a":{}},"spec":{"b":{}},"metadata":{"name":"a","uid":"u"}}',
        b'{"kind":"A","template":{"metadata":{"name":"b"},"spec":{}},"metadata":{"name":"a","uid":"u"}}',
        b'{"kind":"A","list":[{"metadata":{"name":"b"},"spec":{}}],"metadata":{"name":"a","uid":"u"}}',
    ],
)
def test_metadata_is_read_whole_from_servers_that_write_in_another_order(data: bytes) -> None:
    assert read_metadata(data) == Metadata(name="a", uid="u")


def test_what_comes_after_the_metadata_is_not_looked_at() -> None:
    """It is proven when it is read; to do so for every change costs more than all the rest."""
    custom = b'{"kind":"Thing","metadata":{"annotations":{},"name":"web-8jqzv"},"spec":{"broken"}}'
    assert read_metadata(custom).name == "web-8jqzv"
    assert read_metadata(POD.replace(b'"phase"', b"phase")) == read_metadata(POD)


def test_what_an_object_does_not_say_is_none_or_empty() -> None:
    nothing = Metadata()
    assert read_metadata(b"{}") == read_metadata(b'{"metadata":{}}') == nothing
    nulls = b'{"metadata":{"labels":null,"annotations":null,"ownerReferences":null,"finalizers":null}}'
    assert read_metadata(nulls) == nothing
    assert (nothing.labels, nothing.finalizers, nothing.controller, nothing.key) == (
        None,
        None,
        None,
        Key("", ""),
    )


def test_a_snapshot_is_an_object_s_bytes_with_its_key_and_version() -> None:
    snapshot = Snapshot.of(POD)
    assert (snapshot.key, snapshot.metadata.resource_version) == (Key("shop", "web-8jqzv"), "283")
    assert snapshot.data is POD


def test_the_controller_is_the_owner_that_says_so() -> None:
    helper, controller = Owner(name="helper"), Owner(name="web", controller=True)
    assert Metadata(owner_references=(helper, controller)).controller == controller
    assert Metadata(owner_references=(helper,)).controller is None


# ── Lists ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_page_knows_its_version_its_continuation_and_what_remains() -> None:
    page = split_page(
        b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"abc","remainingItemCount":7},'
        b'"items":[{"a": 1}, {"b":2}]}'
    )
    assert page == Page([b'{"a": 1}', b'{"b":2}'], "9", "abc", 7, "v1", "PodList")


def test_the_last_page_has_no_continuation() -> None:
    page = split_page(b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":null}')
    assert (page.items, page.continue_token, page.remaining) == ([], "", None)


@given(st.lists(values, max_size=6), st.booleans())
def test_the_items_of_a_page_are_what_was_sent(items: list[Any], spaces: bool) -> None:
    page = split_page(written({"kind": "List", "metadata": {}, "items": items}, spaces))
    assert page.items == [written(item, spaces) for item in items]


def test_an_item_does_not_pin_its_page() -> None:
    tracemalloc.start()
    try:
        kept = split_page(b'{"items":[{"small":1},"' + b"x" * 5_000_000 + b'"]}').items[0]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept == b'{"small":1}'
    assert held < 1_000_000


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "truncated"),
        (b'{"items":[{"a":1},', "truncated"),
        (b"<html>502 Bad Gateway</html>", "malformed"),
        (b'{"kind":"Status","metadata":{}}', "a Status without items"),
        (b'{"items":{}}', "Expected `array | null`, got `object` - at `$.items`"),
        (b"[" * 100_000, "Expected `object`"),
        (b'{"items":' + b"[" * 100_000, "recursion"),
    ],
)
def test_what_is_no_list_is_malformed(data: bytes, why: str) -> None:
    with pytest.raises(Malformed, match=f"no Kubernetes list in these {len(data)} bytes: ") as caught:
        split_page(data)
    assert why in str(caught.value)


# ── Watches ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("line", [b'{"type":"%s","object":%s}', b' { "type" : "%s" , "object" : %s } \r'])
@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "SOMETHING_NEW"])
def test_a_frame_is_its_type_its_object_and_the_object_s_metadata(line: bytes, kind: str) -> None:
    frame = read_frame(line % (kind.encode(), POD))
    assert (frame.type, frame.object, frame.metadata) == (kind, POD, read_metadata(POD))


def test_a_bookmark_says_how_far_the_watch_has_come_and_that_the_initial_list_is_over() -> None:
    metadata = read_frame(b'{"type":"BOOKMARK","object":%s}' % BOOKMARK).metadata
    assert (metadata.resource_version, metadata.annotations) == ("285", {INITIAL_EVENTS_END: "true"})


def test_a_frame_may_hold_more_and_in_any_order() -> None:
    expected = read_frame(b'{"type":"ADDED","object":{"x":1}}')
    assert expected.object == b'{"x":1}'
    for line in (
        b'{"object":{"x":1},"type":"ADDED"}',
        b'{"type":"ADDED","object":{"x":1},"more":{"object":2}}',
    ):
        assert read_frame(line) == expected


@given(objects, st.sampled_from(["ADDED", "ERROR", "other"]), st.booleans())
def test_the_object_of_a_frame_is_what_was_sent(obj: dict[str, Any], kind: str, spaces: bool) -> None:
    frame = read_frame(written({"type": kind, "object": obj}, spaces))
    assert (frame.type, frame.object) == (kind, written(obj, spaces))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "truncated"),
        (b"Bad Gateway", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"type":"ADDED"}', "missing required field `object`"),
        (b'{"type":7,"object":{}}', "Expected `str`, got `int` - at `$.type`"),
        (b'{"type":"ADDED","object":7}', "Expected `object`, got `int`"),
        (b'{"type":"ADDED","object":{"metadata":{}}', "truncated"),
        (b'{"type":"ADDED","object":{"metadata":{}}}}', "malformed"),
        (b'{"type":"ADDED","object":{"metadata":{}}]', "malformed"),
        (b'{"type":"ADDED","object":{"metadata":{}},"object"}', "malformed"),
        (
            b'{"type":"ADDED","object":{"metadata":{"name":7}}}',
            "Expected `str`, got `int` - at `$.metadata.name`",
        ),
        (b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}', "utf-8"),
        (b'{"type":"ADDED","object":' + b'{"a":' * 100_000, "recursion"),
    ],
)
def test_what_is_no_watch_event_is_malformed(line: bytes, why: str) -> None:
    with pytest.raises(Malformed, match=f"no watch event in this line of {len(line)} bytes: ") as caught:
        read_frame(line)
    assert why in str(caught.value)


@pytest.mark.parametrize("read", [read_metadata, split_page, read_frame, Snapshot.of])
def test_what_is_malformed_is_not_shown(read: Any) -> None:
    with pytest.raises(Malformed) as caught:
        read(b'{"type":"ADDED","object":{"metadata":"s3cret"},"items":"s3cret","metadata":"s3cret"}')
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_bookmark_may_end_the_initial_events() -> None:
    end = b'{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}'
    assert read_frame(end).ends_initial_events
    assert not read_frame(end.replace(b"true", b"false")).ends_initial_events
    assert not read_frame(b'{"type":"BOOKMARK","object":{"metadata":{}}}').ends_initial_events


# ── managedFields ───────────────────────────────────────────────────────────────────────────────────


def test_an_object_without_its_managed_fields_is_otherwise_as_it_was() -> None:
    whole = {
        "kind": "Thing",
        "metadata": {
            "name": "a",
            "managedFields": [{"manager": "x", "fieldsV1": {"f:spec": {}}}],
            "uid": "u",
        },
        "spec": {"managedFields": "not those", "size": 1.5, "text": "ü\n", "none": None},
    }
    stripped = strip_managed_fields(json.dumps(whole).encode())
    whole["metadata"].pop("managedFields")  # type: ignore[attr-defined]
    assert json.loads(stripped) == whole


@pytest.mark.parametrize(
    "data",
    [
        b'{"metadata":{"name":"a"},"spec":{"n": 1}}',
        b'{"metadata":{"name":"a"},"spec":{"managedFields": 1}}',
        b'{"data":"\\"managedFields\\""}',
        b'"managedFields"',
    ],
)
def test_what_has_no_managed_fields_stays_as_it_is(data: bytes) -> None:
    assert strip_managed_fields(data) is data


# ── Lines ───────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.data())
def test_however_a_stream_is_cut_the_lines_are_the_same(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"\n".join(lines)
    cuts = data.draw(st.lists(st.integers(0, len(stream))).map(sorted))
    splitter, seen = LineSplitter(limit=20), []

    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        seen += splitter.feed(stream[start:end])

    assert [*seen, splitter.rest] == stream.split(b"\n")


@pytest.mark.parametrize("size", [1, 3, 11, 100])
def test_a_line_over_the_limit_is_refused_however_it_is_cut(size: int) -> None:
    stream = b"0123456789\n" + b"01234567890\n" + b"1\n"
    splitter = LineSplitter(limit=10)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]

    with pytest.raises(Malformed, match="a line has no end after 10 bytes"):
        list(map(splitter.feed, chunks))


def test_an_endless_line_is_refused_before_it_fills_the_memory() -> None:
    splitter, endless = LineSplitter(limit=1_000_000), itertools.repeat(b"x" * 64_000, 100)

    with pytest.raises(Malformed):
        list(map(splitter.feed, endless))

    assert len(splitter.rest) < 1_100_000


def test_a_huge_line_in_tiny_chunks_is_put_together() -> None:
    splitter, line = LineSplitter(), b"0123456789" * 50_000
    for at in range(0, len(line), 7):
        assert splitter.feed(line[at : at + 7]) == []
    assert repr(splitter) == "<LineSplitter 500000 bytes waiting for their line end>"
    assert splitter.feed(b"\n") == [line]
    assert splitter.rest == b""


# What an apply looks at.


def applied(**changes: Any) -> bytes:
    metadata = {"name": "a", "resourceVersion": "1", "managedFields": [{"manager": "m"}]}
    whole = {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "spec": {"size": 1}, "status": {}}
    for path, value in changes.items():
        *way, last = path.split("_")
        place: Any = whole
        for step in way:
            place = place[step]
        place[last] = value
    return json.dumps(whole).encode()


def test_a_status_a_version_and_the_order_of_fields_do_not_tell_objects_apart() -> None:
    managers = [{"manager": "m"}, {"manager": "kcm", "subresource": "status"}]
    assert told_apart(applied(status={"ready": True}, metadata_resourceVersion="2")) == told_apart(applied())
    assert told_apart(applied(metadata_managedFields=managers))[0] == told_apart(applied())[0]
    turned = json.dumps(dict(reversed(json.loads(applied()).items()))).encode()
    assert told_apart(turned) == told_apart(applied())


def test_an_item_of_a_list_which_does_not_say_its_kind_is_the_same_object() -> None:
    item = {
        name: value for name, value in json.loads(applied()).items() if name not in ("apiVersion", "kind")
    }
    assert told_apart(json.dumps(item).encode()) == told_apart(applied())


@pytest.mark.parametrize("change", [{"spec": {"size": 2}}, {"metadata_labels": {"a": "b"}}, {"data": {}}])
def test_all_else_tells_objects_apart(change: dict[str, Any]) -> None:
    assert told_apart(applied(**change))[0] != told_apart(applied())[0]


def test_managers_tell_objects_apart_but_for_those_of_a_subresource() -> None:
    assert told_apart(applied(metadata_managedFields=[{"manager": "n"}]))[1] != told_apart(applied())[1]
    of_status = {"manager": "kcm", "subresource": "status"}
    assert told_apart(applied(metadata_managedFields=[of_status]))[1] == b""
    assert told_apart(applied(metadata_managedFields=[]))[1] == b""
    assert told_apart(applied(metadata_managedFields=None))[1] == b""
