"""The promises of ``cache/index.py``, and the paths of ``cache/paths.py``."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from setpoint.api.forms import form_of, untyped
from setpoint.api.names import Key
from setpoint.cache.index import FromMetadata, by_field, by_function, by_metadata, by_owner
from setpoint.cache.paths import field
from tests.cache.objects import Thing, snapshot

SPEC = {
    "node": "n1",
    "replicas": 3,
    "paused": True,
    "nothing": None,
    "containers": [{"image": "a", "ports": [80, 81]}, {"image": "b"}, {"image": "a"}, {}],
    "a.b": "dotted",
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("spec.node", ("n1",)),
        (".spec.node", ("n1",)),
        ("spec.replicas", ("3",)),
        ("spec.paused", ("true",)),
        ("spec.nothing", ()),
        ("spec.nothing.more", ()),
        ("spec.missing", ()),
        ("missing.altogether", ()),
        ("spec.node.more", ()),
        ("spec.containers[*].image", ("a", "b")),
        ("spec.containers[*].ports[*]", ("80", "81")),
        ("spec.containers.image", ()),
        ('spec["a.b"]', ("dotted",)),
        ("spec", ()),
        ("metadata.name", ("a",)),
        ("metadata.namespace", ("shop",)),
        ("metadata.uid", ("uid-of-a",)),
        ("metadata.labels.app", ("web",)),
    ],
)
def test_a_path_gives_the_values_at_it_as_text(path: str, values: tuple[str, ...]) -> None:
    assert field(path)(snapshot("a", 1, spec=SPEC, labels={"app": "web"})) == values


@pytest.mark.parametrize("path", ["", ".", "a..b", "[*]", "a b", "a[0]", 'a["b'])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is no path to a field"):
        field(path)


def test_an_index_follows_its_objects() -> None:
    index = by_field("spec.node")
    index.put(snapshot("a", 1, spec={"node": "n1"}))
    index.put(snapshot("b", 1, spec={"node": "n1"}))
    assert index.keys("n1") == {Key("shop", "a"), Key("shop", "b")}
    index.put(snapshot("a", 2, spec={"node": "n2"}))
    assert (index.keys("n1"), index.keys("n2")) == ({Key("shop", "b")}, {Key("shop", "a")})
    index.drop(Key("shop", "a"))
    index.drop(Key("shop", "b"))
    index.drop(Key("shop", "never"))
    assert index.values() == []
    assert repr(index) == "<Index spec.node: 0 objects by 0 values>"


def test_a_function_gets_the_object_in_its_own_form() -> None:
    def typed(obj: Thing) -> list[str]:
        return obj.spec.images or []

    def plain(obj: dict[str, Any]) -> list[str]:
        return [obj["kind"]]

    seen = snapshot("a", 1, spec={"images": ["x", "y", "x"]})
    index = by_function("images", typed, form_of(Thing))
    index.put(seen)
    assert index.values() == ["x", "y"]
    index = by_function("kind", plain, untyped("demo.setpoint.dev/v1", "Thing"))
    index.put(seen)
    assert index.values() == ["Thing"]


def test_a_function_of_metadata_needs_no_object() -> None:
    given = FromMetadata(lambda metadata: [metadata.name, metadata.namespace, metadata.name])
    index = by_metadata("places", given)
    index.put(snapshot("a", 1))
    assert index.values() == ["a", "shop"]
    assert index.definition == given, "so that two declarations of it are one"


def test_owners_are_found_by_uid() -> None:
    index = by_owner()
    owners = [{"uid": "u1"}, {"uid": "u2"}, {"uid": "u1"}]
    index.put(snapshot("a", 1, ownerReferences=owners))
    assert index.values() == ["u1", "u2"]


def test_a_function_that_raises_leaves_its_object_out_and_says_which(caplog: Any) -> None:
    def odd(obj: Thing) -> list[str]:
        if obj.spec.node == "bad":
            raise ZeroDivisionError
        return ["fine"]

    counted = []
    index = by_function("odd", odd, form_of(Thing))
    index.on_error = lambda: counted.append(1)
    index.put(snapshot("a", 1))
    index.put(snapshot("b", 1))
    with caplog.at_level(logging.ERROR):
        index.put(snapshot("a", 2, spec={"node": "bad"}))
    assert index.keys("fine") == {Key("shop", "b")}
    assert counted == [1]
    assert "shop/a" in caplog.text


def test_a_text_where_several_values_belong_is_a_mistake(caplog: Any) -> None:
    index = by_function("odd", lambda obj: str(obj.spec.node), form_of(Thing))
    index.put(snapshot("a", 1))
    assert index.values() == []
    assert "not several of them" in caplog.text


def test_a_function_that_changes_its_mind_leaves_no_traces() -> None:
    answers = iter([["x"], ["y"], ["z"]])
    index = by_function("moody", lambda _: next(answers), form_of(Thing))
    index.put(snapshot("a", 1))
    index.put(snapshot("a", 2))
    assert index.values() == ["y"]
    index.drop(Key("shop", "a"))
    assert index.values() == []
