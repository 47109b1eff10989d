"""Rules about what an object was: which value a value is compared with, and when there is none.

A rule that speaks of ``oldSelf`` is asked only where there is an old value that belongs to the new one: by field,
by key in a map, and by its keys in a list of that type.  With ``optionalOldSelf`` it is asked of new values, too.
"""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from typing import Final

from tests.conformance.asking import APPLY, JSON_PATCH, MERGE, Json, Script, Step
from tests.conformance.scripts.definitions import CRDS, definition, with_spec

_GROUP: Final = "changing.example.com"
_TOLD: Final = ("kind", "reason", "message", "details", "spec", "status")


def _ruled(type_: str, *rules: Json, **schema: Json) -> Json:
    said = [one if isinstance(one, dict) else {"rule": one} for one in rules]
    return {"type": type_, **schema, "x-kubernetes-validations": said}


def _optional(rule: str, **more: Json) -> Json:
    return {"rule": rule, "optionalOldSelf": True, **more}


def _keyed(keys: list[str], *rules: Json, items: tuple[Json, ...] = (), **properties: Json) -> Json:
    """A list whose items have keys, with rules about each of them and about the whole."""
    fields = {key: {"type": "string", "maxLength": 5} for key in keys} | properties
    item = _ruled("object", *items, properties=fields, required=keys)
    if not items:
        del item["x-kubernetes-validations"]
    typed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    found = _ruled("array", *rules, items=item, maxItems=5, **typed)
    if not rules:
        del found["x-kubernetes-validations"]
    return found


_SPEC: Final[dict[str, Json]] = {
    "fixed": _ruled("string", {"rule": "self == oldSelf", "message": "fixed is fixed"}, maxLength=20),
    "rising": _ruled("integer", {"rule": "self >= oldSelf", "messageExpression": "oldSelf == 6 ? 'not below 6' : 'not below what it was'", "reason": "FieldValueForbidden"}),
    "first": _ruled("integer", _optional("oldSelf.hasValue() || self == 1", message="begins with 1"), _optional("oldSelf.orValue(self) <= self")),
    "told": _ruled("integer", _optional("self == oldSelf.orValue(7)", messageExpression="oldSelf.hasValue() ? 'was another' : 'begins with 7'", reason="FieldValueInvalid")),
    "kept": _ruled("object", "!has(oldSelf.a) || has(self.a)", {"rule": "!has(oldSelf.b) || self.b == oldSelf.b", "fieldPath": ".b", "message": "b stays"}, properties={"a": {"type": "string", "maxLength": 5}, "b": {"type": "string", "maxLength": 5}}),
    "items": _keyed(["name"], "size(self) >= size(oldSelf)", items=({"rule": "self.v >= oldSelf.v", "fieldPath": ".v", "message": "v rises"}, _optional("oldSelf.hasValue() || self.v < 10", message="begins below 10")), v={"type": "integer"}, inner=_ruled("object", "self.x == oldSelf.x", properties={"x": {"type": "integer", "default": 0}})),
    "pairs": _keyed(["a", "b"], items=("!has(oldSelf.v) || has(self.v) && self.v >= oldSelf.v",), v={"type": "integer"}),
    "map": {"type": "object", "maxProperties": 5, "additionalProperties": _ruled("integer", {"rule": "self >= oldSelf", "message": "values rise"}, _optional("oldSelf.hasValue() || self != 3", message="none begins with 3"))},
    "set": _ruled("array", "oldSelf.all(one, one in self)", items={"type": "string", "maxLength": 5}, maxItems=5, **{"x-kubernetes-list-type": "set"}),
    "atomic": _ruled("array", "self.size() != oldSelf.size() || self == oldSelf", items={"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}, maxItems=5),
    "maybe": _ruled("string", "self != oldSelf || self == 'same'", nullable=True, maxLength=5),
    "strict": _ruled("string", {"rule": "self.startsWith('a')", "message": "an a first"}, maxLength=5),
    "mixed": _ruled("integer", {"rule": "self < 5 || self == oldSelf", "message": "below 5, or as before"}),
}  # fmt: skip


def _schema(**spec: Json) -> Json:
    whole = with_spec(**spec)
    whole["x-kubernetes-validations"] = [
        {"rule": "!has(oldSelf.spec) || has(self.spec)", "message": "a spec stays"},
        {"rule": "self.metadata.name == oldSelf.metadata.name"},
        {"rule": "!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase != 'Done' || self.status.phase == 'Done'", "message": "done is done"},
    ]  # fmt: skip
    whole["properties"]["status"] = {
        "type": "object",
        "properties": {"phase": _ruled("string", "oldSelf == 'New' || self != 'New'", maxLength=10)},
    }
    return whole


def _changing() -> list[Step]:
    path = f"/apis/{_GROUP}/v1/namespaces/${{namespace}}/changes"
    about = {"apiVersion": f"{_GROUP}/v1", "kind": "Change"}

    def made(name: str, **spec: Json) -> Step:
        body = {**about, "metadata": {"name": name}, "spec": spec}
        return Step("POST", path, body, name=f"made {name}", only=_TOLD)

    def now(name: str, what: str, **spec: Json) -> Step:
        return Step("PATCH", f"{path}/{name}", {"spec": spec}, MERGE, name=f"{name}: {what}", only=_TOLD)

    def status(what: str, phase: str | None) -> Step:
        return Step("PATCH", f"{path}/stated/status", {"status": {"phase": phase}}, MERGE, name=f"stated: {what}", only=_TOLD)  # fmt: skip

    crd = definition("changes", "Change", _schema(**_SPEC), group=_GROUP, subresources={"status": {}})
    looser = {**_SPEC, "strict": {"type": "string"}, "mixed": {"type": "integer"}}
    before = definition("changes", "Change", _schema(**looser), group=_GROUP, subresources={"status": {}})

    def item(name: str, v: int, x: int | None = None) -> Json:
        return {"name": name, "v": v, **({} if x is None else {"inner": {"x": x}})}

    return [
        Step("POST", CRDS, before, name="defined", only=("kind", "message", "details")),
        Step("GET", f"{CRDS}/changes.{_GROUP}", until_says="Established=True", is_quiet=True),
        Step("GET", path, until=200, is_quiet=True),
        made("old", strict="bad", mixed=9, fixed="a"),
        Step("PATCH", f"{CRDS}/changes.{_GROUP}", {"spec": crd["spec"]}, MERGE, name="stricter", only=("kind", "message", "details")),
        Step("POST", f"{path}?dryRun=All", {**about, "metadata": {"name": "wait"}, "spec": {"strict": "bad"}}, until=422, is_quiet=True),
        now("old", "another field", rising=1),
        now("old", "what was bad, made worse", strict="worse"),
        now("old", "as bad as before", strict="bad", mixed=9),
        now("old", "mixed, changed", mixed=8),
        now("old", "made good", strict="a", mixed=1),
        # A real one tries a write on what it remembers first, and warns of what was already bad there.
        Step("GET", f"{path}/old?resourceVersion=0", until_has='"strict":"a"', is_quiet=True),
        now("old", "bad again", strict="bad", mixed=7),
        made("plain", fixed="a", rising=5),
        now("plain", "another", fixed="b"),
        now("plain", "falling", rising=4),
        now("plain", "rising", rising=6),
        now("plain", "left out", fixed=None, rising=None),
        now("plain", "as new", fixed="c", rising=1),
        made("second", first=2),
        made("first", first=1),
        now("first", "rising", first=3),
        now("first", "falling", first=2),
        now("first", "left out", first=None),
        now("first", "again, not with 1", first=5),
        made("told", told=8),
        made("seven", told=7),
        now("seven", "another", told=8),
        made("kept", kept={"a": "x", "b": "y"}),
        now("kept", "without a", kept={"a": None}),
        now("kept", "another b", kept={"b": "z"}),
        now("kept", "without b", kept={"b": None}),
        now("kept", "nothing", kept=None),
        made("ten", items=[item("a", 1), item("b", 10)]),
        made("items", items=[item("a", 1, 1), item("b", 2)]),
        now("items", "turned around", items=[item("b", 2), item("a", 1, 1)]),
        now("items", "one falls", items=[item("b", 1), item("a", 1, 1)]),
        now("items", "one inner changes", items=[item("b", 2), item("a", 1, 2)]),
        now("items", "one comes, too high", items=[item("b", 2), item("a", 1, 1), item("c", 11)]),
        now("items", "one comes", items=[item("c", 3), item("b", 2), item("a", 1, 1)]),
        now("items", "another for it", items=[item("d", 0), item("b", 2), item("a", 1, 1)]),
        now("items", "fewer", items=[item("b", 2)]),
        now("items", "twice the same", items=[item("b", 2), item("b", 3), item("a", 1, 1)]),
        Step("PATCH", f"{path}/items", [{"op": "replace", "path": "/spec/items/0/v", "value": -1}], JSON_PATCH, name="items: patched", only=_TOLD),
        Step("PATCH", f"{path}/items?fieldManager=me", {**about, "metadata": {"name": "items"}, "spec": {"items": [item("b", 0)]}}, APPLY, name="items: applied in conflict", only=_TOLD),
        Step("PATCH", f"{path}/items?fieldManager=me&force=true", {**about, "metadata": {"name": "items"}, "spec": {"items": [item("b", 0)]}}, APPLY, name="items: applied", only=_TOLD),
        made("pairs", pairs=[{"a": "x", "b": "y", "v": 1}, {"a": "x", "b": "z", "v": 5}]),
        now("pairs", "values changed places", pairs=[{"a": "x", "b": "z", "v": 1}, {"a": "x", "b": "y", "v": 5}]),
        now("pairs", "rising", pairs=[{"a": "x", "b": "z", "v": 6}, {"a": "x", "b": "y", "v": 2}]),
        now("pairs", "without", pairs=[{"a": "x", "b": "z"}]),
        made("map3", map={"a": 3}),
        made("map", map={"a": 1, "b.c": 2, "d/e": 5}),
        now("map", "falling", map={"a": 0, "b.c": 1, "d/e": 4}),
        now("map", "one comes", map={"f": 3}),
        now("map", "one goes", map={"a": None}),
        now("map", "and comes again", map={"a": 0}),
        made("set", set=["a", "b"]),
        now("set", "another order, and one more", set=["c", "b", "a"]),
        now("set", "one less", set=["c", "b"]),
        made("atomic", atomic=[{"name": "a"}]),
        now("atomic", "another", atomic=[{"name": "b"}]),
        now("atomic", "longer", atomic=[{"name": "b"}, {"name": "c"}]),
        made("maybe", maybe=None),
        now("maybe", "something", maybe="x"),
        now("maybe", "the same", maybe="x", fixed="a"),
        now("maybe", "nothing", maybe=None),
        made("stated"),
        status("begun", "New"),
        status("going on", "Going"),
        status("new again", "New"),
        status("done", "Done"),
        status("not done", "Going"),
        status("nothing", None),
        Step("PUT", f"{path}/stated", {**about, "metadata": {"name": "stated"}}, name="stated: without a spec", only=_TOLD),
        made("whole", fixed="a"),
        Step("PATCH", f"{path}/whole", {"spec": None}, MERGE, name="whole: without a spec", only=_TOLD),
        Step("PATCH", f"{path}/whole", {"spec": {"fixed": "b", "set": ["a", "a"], "rising": "x"}}, MERGE, name="whole: several wrongs", only=_TOLD),
        Step("DELETE", f"{CRDS}/changes.{_GROUP}", is_quiet=True),
    ]  # fmt: skip


def _refused() -> list[Step]:
    """Rules about the past that can never be asked, or not so."""

    def crd(name: str, **spec: Json) -> Step:
        body = definition("refuseds", "Refused", with_spec(**spec), group=_GROUP)
        return Step(
            "POST", f"{CRDS}?dryRun=All", body, name=name, only=("kind", "reason", "message", "details")
        )

    text = {"type": "string", "maxLength": 5}
    of_old = _ruled("string", "self == oldSelf", maxLength=5)
    optional = _ruled("string", _optional("oldSelf.hasValue() || self == 'a'"), maxLength=5)
    return [
        crd("in an atomic list", x={"type": "array", "maxItems": 3, "items": of_old}),
        crd("in a set", x={"type": "array", "maxItems": 3, "items": of_old, "x-kubernetes-list-type": "set"}),
        crd("optional, in a set", x={"type": "array", "maxItems": 3, "items": optional, "x-kubernetes-list-type": "set"}),
        crd("optional, in an atomic list", x={"type": "array", "maxItems": 3, "items": optional}),
        crd("below an atomic list", x={"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {"y": of_old}}}),
        crd("in a list by key, below an atomic list", x={"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {"y": _keyed(["name"], items=("self.name == oldSelf.name",))}}}),
        crd("in an atomic struct", x={"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"y": of_old}}),
        crd("in an atomic map", x={"type": "object", "x-kubernetes-map-type": "atomic", "maxProperties": 3, "additionalProperties": of_old}),
        crd("on an atomic map", x=_ruled("object", "self == oldSelf", maxProperties=3, additionalProperties=text, **{"x-kubernetes-map-type": "atomic"})),
        crd("on a set", x=_ruled("array", "self == oldSelf", maxItems=3, items=text, **{"x-kubernetes-list-type": "set"})),
        crd("in a map", x={"type": "object", "maxProperties": 3, "additionalProperties": of_old}),
        crd("optional without the past", x=_ruled("string", _optional("self == 'a'"), maxLength=5)),
        crd("not optional, and said so", x=_ruled("string", {"rule": "self == oldSelf", "optionalOldSelf": False}, maxLength=5)),
        crd("not optional, without the past", x=_ruled("string", {"rule": "self == 'a'", "optionalOldSelf": False}, maxLength=5)),
        crd("optional, taken for a value", x=_ruled("string", _optional("self == oldSelf"), maxLength=5)),
        crd("optional, by field", x=_ruled("object", _optional("oldSelf.?a.orValue('x') == self.a"), properties={"a": text})),
        crd("optional, by a field that is none", x=_ruled("object", _optional("oldSelf.?b.orValue('x') == self.a"), properties={"a": text})),
        crd("optional, with another type", x=_ruled("integer", _optional("self == oldSelf.orValue('x')"))),
        crd("optional, mapped", x=_ruled("integer", _optional("oldSelf.optMap(o, o <= self).orValue(true)"))),
        crd("a value, taken for optional", x=_ruled("string", "oldSelf.hasValue()", maxLength=5)),
        crd("only in the message", x=_ruled("string", {"rule": "self == 'a'", "messageExpression": "'was ' + oldSelf"}, maxLength=5)),
        crd("optional, only in the message", x=_ruled("string", _optional("self == 'a'", messageExpression="'was ' + oldSelf.orValue('')"), maxLength=5)),
        crd("both in the message", x=_ruled("string", {"rule": "self == oldSelf", "messageExpression": "'was ' + oldSelf"}, maxLength=5)),
        crd("the name of a variable", x=_ruled("array", "self.all(oldSelf, oldSelf == 'a')", maxItems=3, items=text)),
        crd("a path to a field", x=_ruled("object", {"rule": "self.a == oldSelf.a", "fieldPath": ".a"}, {"rule": "true", "fieldPath": ".b"}, {"rule": "true", "fieldPath": "a"}, {"rule": "true", "fieldPath": ".a.b"}, {"rule": "true", "fieldPath": "['a']"}, {"rule": "true", "fieldPath": " "}, properties={"a": text})),
        crd("a path through a map and a list", x=_ruled("object", {"rule": "true", "fieldPath": ".m.k"}, {"rule": "true", "fieldPath": ".m['k.l']"}, {"rule": "true", "fieldPath": ".l[0]"}, {"rule": "true", "fieldPath": ".l"}, properties={"m": {"type": "object", "additionalProperties": text}, "l": {"type": "array", "items": text}})),
        crd("a bad reason", x=_ruled("string", {"rule": "self == oldSelf", "reason": "Odd"}, maxLength=5)),
        crd("below allOf", x={"type": "string", "maxLength": 5, "allOf": [{"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}]}),
    ]  # fmt: skip


SCRIPTS = [Script("what was", _changing()), Script("rules about what was", _refused())]
