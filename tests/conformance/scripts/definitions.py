"""CustomResourceDefinitions: what may be defined, and how objects of a defined kind live."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from tests.conformance.asking import APPLY, JSON_PATCH, MERGE, STRATEGIC, Json, Put, Script, Step
from tests.conformance.scripts.reading import PARTIAL, TABLE

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(
    plural: str, kind: str, schema: Json, *, group: str, scope: str = "Namespaced", **version: Json
) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
            ],
        },
    }  # fmt: skip


def with_spec(**properties: Json) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


_GROUP = "life.example.com"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "nested": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 7}, "y": {"type": "string", "nullable": True}}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "maxItems": 3},
                "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                    "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "v": {"type": "integer", "default": 1}}}},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
                "when": {"type": "string", "format": "date-time"},
                "ratio": {"type": "number", "multipleOf": 0.5},
                "either": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is fixed"}]},
                "template": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            },
            "x-kubernetes-validations": [
                {"rule": "self.size < 9", "message": "size must be below 9"},
                {"rule": "!has(self.name) || self.name != 'bad'", "messageExpression": "'not ' + self.name", "reason": "FieldValueForbidden", "fieldPath": ".name"},
            ],
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}, "phase": {"type": "string"}}},
    },
}  # fmt: skip


def _life() -> list[Step]:
    path = f"/apis/{_GROUP}/v1/namespaces/${{namespace}}/foos"
    crd = definition(
        "foos", "Foo", SCHEMA, group=_GROUP,
        subresources={"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
        additionalPrinterColumns=[
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "how large"},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        selectableFields=[{"jsonPath": ".spec.mode"}],
    )  # fmt: skip
    crd["spec"]["names"] |= {"shortNames": ["fo"], "categories": ["all"]}

    def foo(called: str, /, **spec: Json) -> Json:
        return {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "Foo",
            "metadata": {"name": called},
            "spec": {"size": 2, **spec},
        }

    bad: dict[str, Json] = {
        "size missing": {"size": None}, "size too small": {"size": 0}, "size too large": {"size": 11}, "rule": {"size": 9},
        "wrong type": {"size": "3"}, "fraction": {"size": 1.5}, "enum": {"mode": "c"}, "pattern": {"name": "A1"}, "short": {"name": "a"},
        "long": {"name": "abcdef"}, "rule with reason": {"name": "bad"}, "port": {"port": True}, "set": {"tags": ["a", "a"]}, "many": {"tags": list("abcd")},
        "map keys": {"items": [{"name": "a"}, {"name": "a"}]}, "no key": {"items": [{"v": 1}]}, "map values": {"map": {"a": "x"}}, "large map": {"map": {"a": 1, "b": 2, "c": 3}},
        "time": {"when": "yesterday"}, "multiple": {"ratio": 0.3}, "neither": {"either": {}}, "both": {"either": {"a": "", "b": ""}},
        "embedded": {"template": {"x": 1}}, "null": {"nested": None}, "null string": {"name": None}, "list for object": {"nested": []},
    }  # fmt: skip
    return [
        Step("POST", CRDS, crd, name="defined"),
        Step("GET", f"{CRDS}/foos.{_GROUP}", until_says="Established=True", name="established"),
        Step("GET", path, until=200, name="empty"),
        Step("GET", f"/apis/{_GROUP}/v1", until=200, name="discovered"),
        Step("GET", f"/apis/{_GROUP}", until=200, name="group"),
        Step("POST", path, foo("a", unknown=1, free={"x": {"y": [1]}}, nested={"z": 1, "y": None}, port="http", items=[{"name": "i"}], ratio=1.5), name="made"),
        Step("POST", path + "?fieldValidation=Strict", foo("b", unknown=1, nested={"zz": 1}), name="strict"),
        Step("POST", path + "?fieldValidation=Ignore", foo("c", unknown=1), name="ignoring"),
        *(Step("POST", path, foo("x", **spec), name=name) for name, spec in bad.items()),
        Step("POST", path, {"apiVersion": f"{_GROUP}/v1", "kind": "Foo", "metadata": {"name": "x"}}, name="no spec"),
        Step("POST", path, {"apiVersion": f"{_GROUP}/v1", "kind": "Foo", "metadata": {"name": "x"}, "spec": []}, name="spec is a list"),
        Step("POST", path, {"apiVersion": f"{_GROUP}/v1", "kind": "Bar", "metadata": {"name": "x"}, "spec": {"size": 1}}, name="other kind"),
        Step("POST", path, {"apiVersion": f"{_GROUP}/v2", "kind": "Foo", "metadata": {"name": "x"}, "spec": {"size": 1}}, name="other version"),
        Step("POST", path, {"metadata": {"name": "x"}, "spec": {"size": 1}}, name="no kind"),
        Step("POST", path, foo("Bad"), name="bad name"),
        Step("POST", path, {**foo("x"), "metadata": {"name": "x", "labels": {"a b": "c"}, "oops": 1}}, name="bad metadata"),
        Step("POST", path, {**foo("d", template={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "oops": 1}, "x": 1}), "status": {"phase": "x"}}, name="embedded object"),
        Step("GET", path + "/a", name="read"),
        Step("PATCH", path + "/a", {"spec": {"size": 3}}, MERGE, name="merge"),
        Step("PATCH", path + "/a", {"spec": {"size": 3}}, MERGE, name="merge again"),
        Step("PATCH", path + "/a", {"spec": {"size": 30}}, MERGE, name="merge invalid"),
        Step("PATCH", path + "/a", [{"op": "replace", "path": "/spec/size", "value": 4}], JSON_PATCH, name="json patch"),
        Step("PATCH", path + "/a", {"spec": {"size": 5}}, STRATEGIC, name="strategic"),
        Step("PATCH", path + "/a", {"spec": {"fixed": "x"}}, MERGE, name="fixed set"),
        Step("PATCH", path + "/a", {"spec": {"fixed": "y"}}, MERGE, name="fixed changed"),
        Step("PATCH", path + "/a", {"metadata": {"labels": {"l": "m"}}}, MERGE, name="labels"),
        Step("PATCH", path + "/a/status", {"status": {"replicas": 3, "phase": "Up", "unknown": 1, "selector": "a=b"}, "spec": {"size": 9}, "metadata": {"labels": {"n": "o"}, "annotations": {"p": "q"}}}, MERGE, name="status"),
        Step("PATCH", path + "/a/status", {"status": {"replicas": "x"}}, MERGE, name="bad status"),
        Step("PATCH", path + "/a", {"status": {"phase": "Down"}}, MERGE, name="status by spec"),
        Step("GET", path + "/a/scale", name="scale"),
        Step("PATCH", path + "/a/scale", {"spec": {"replicas": 7}}, MERGE, name="scaled"),
        Step("PATCH", path + "/a/scale", {"spec": {"replicas": 70}}, MERGE, name="scaled too far"),
        Step("PATCH", path + "/a/scale", {"spec": {"replicas": -1}}, MERGE, name="scaled below nothing"),
        Step("PATCH", path + "/a/scale", {"spec": {"replicas": 6}}, STRATEGIC, name="scaled strategically"),
        Step("PATCH", path + "/a/scale", [{"op": "replace", "path": "/spec/replicas", "value": 6}], JSON_PATCH, name="scaled by a json patch"),
        Step("PUT", path + "/a", foo("a"), name="put without version"),
        Step("PUT", path + "/a", Put("made", {"spec": {"size": 8}}), name="put of old version"),
        Step("PATCH", path + "/a?fieldManager=m", foo("a", items=[{"name": "i", "v": 2}]), APPLY, name="applied with conflict", only=("reason", "code")),
        Step("PATCH", path + "/a?fieldManager=m&force=true", foo("a", items=[{"name": "i", "v": 2}, {"name": "j"}], tags=["t"]), APPLY, name="applied"),
        Step("PATCH", path + "/a?fieldManager=n", {"apiVersion": f"{_GROUP}/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {"tags": ["u"], "items": [{"name": "k"}]}}, APPLY, name="applied by another"),
        Step("PATCH", path + "/a?fieldManager=m", {"apiVersion": f"{_GROUP}/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {"size": 2}}, APPLY, name="given up"),
        Step("PATCH", path + "/a?fieldManager=m", foo("a", nope=1), APPLY, name="applied unknown"),
        Step("PATCH", path + "/new?fieldManager=m", foo("new"), APPLY, name="made by apply"),
        Step("GET", path, name="list"),
        Step("GET", path, headers={"Accept": TABLE}, name="table"),
        Step("GET", path + "/a", headers={"Accept": PARTIAL}, name="metadata"),
        Step("GET", path + "/a", headers={"Accept": "application/yaml"}, as_text=True, name="yaml"),
        Step("GET", path + "/a", headers={"Accept": "application/vnd.kubernetes.protobuf"}, name="protobuf"),
        Step("GET", path + "?fieldSelector=spec.mode%3Da", name="selectable"),
        Step("GET", path + "?fieldSelector=spec.size%3D2", name="not selectable"),
        Step("GET", path + "?watch=1&resourceVersion=${made.metadata.resourceVersion}", lines=3, name="watched"),
        Step("PATCH", path + "/d", {"metadata": {"finalizers": ["example.com/x"]}}, MERGE, name="finalizer"),
        Step("DELETE", path + "/a", name="deleted"),
        Step("DELETE", path, name="all deleted"),
        Step("GET", path, name="what waits"),
        Step("DELETE", f"{CRDS}/foos.{_GROUP}", name="definition deleted"),
        Step("POST", path, foo("late"), until=403, name="too late"),
        Step("PATCH", path + "/d", {"metadata": {"finalizers": None}}, MERGE, name="let go"),
        Step("GET", f"{CRDS}/foos.{_GROUP}", until=404, name="definition gone"),
        Step("GET", path, until=404, name="no longer served"),
    ]  # fmt: skip


def _defining() -> list[Step]:
    group = "bad.example.com"
    schemas: dict[str, Json] = {
        "no type": {"properties": {"spec": {}}},
        "root is a string": {"type": "string"},
        "array without items": with_spec(x={"type": "array"}),
        "items list": with_spec(x={"type": "array", "items": [{"type": "string"}]}),
        "map list without keys": with_spec(x={"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
        "map key not required": with_spec(x={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "properties": {"k": {"type": "string"}}}}),
        "set of objects": with_spec(x={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
        "unknown list type": with_spec(x={"type": "array", "x-kubernetes-list-type": "odd", "items": {"type": "string"}}),
        "properties and additional": with_spec(x={"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        "type in a branch": with_spec(x={"type": "object", "oneOf": [{"type": "object"}]}),
        "undeclared in a branch": with_spec(x={"type": "object", "oneOf": [{"required": ["a"], "properties": {"a": {"minLength": 1}}}]}),
        "default invalid": with_spec(x={"type": "integer", "minimum": 5, "default": 1}),
        "default of wrong type": with_spec(x={"type": "integer", "default": "x"}),
        "default prunes": with_spec(x={"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
        "bad pattern": with_spec(x={"type": "string", "pattern": "(?=a)"}),
        "reference": with_spec(x={"$ref": "#/definitions/x"}),
        "unique items": with_spec(x={"type": "array", "uniqueItems": True, "items": {"type": "string"}}),
        "additional false": with_spec(x={"type": "object", "additionalProperties": False}),
        "metadata rule": {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}},
        "metadata name": {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "a+"}}}}},
        "bad rule": with_spec(x={"type": "string", "x-kubernetes-validations": [{"rule": "self +"}]}),
        "rule of unknown field": with_spec(x={"type": "object", "x-kubernetes-validations": [{"rule": "self.y == 1"}]}),
        "rule not boolean": with_spec(x={"type": "string", "x-kubernetes-validations": [{"rule": "'a'"}]}),
        "rule of wrong types": with_spec(x={"type": "string", "x-kubernetes-validations": [{"rule": "self == 1"}]}),
        "rule without text": with_spec(x={"type": "string", "x-kubernetes-validations": [{"rule": ""}]}),
        "two-line rule message": with_spec(x={"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'", "message": "a\nb"}]}),
        "int-or-string with type": with_spec(x={"type": "string", "x-kubernetes-int-or-string": True}),
        "embedded without type": with_spec(x={"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
        "unknown format": with_spec(x={"type": "string", "format": "odd"}),
        "exclusive without bound": with_spec(x={"type": "integer", "exclusiveMinimum": True}),
    }  # fmt: skip
    good = with_spec(x={"type": "string"})
    base = definition("bars", "Bar", good, group=group)

    def changed(**spec: Json) -> Json:
        return {**base, "spec": {**base["spec"], **spec}}

    def version(name: str, **more: Json) -> Json:
        return {**base["spec"]["versions"][0], "name": name, **more}

    others: dict[str, Json] = {
        "name": {**base, "metadata": {"name": "wrong.bad.example.com"}},
        "no versions": changed(versions=[]),
        "two stored": changed(versions=[version("v1"), version("v2")]),
        "none stored": changed(versions=[version("v1", storage=False)]),
        "none served": changed(versions=[version("v1", served=False)]),
        "same version twice": changed(versions=[version("v1"), version("v1", storage=False)]),
        "bad version": changed(versions=[version("V_1")]),
        "no schema": changed(versions=[{"name": "v1", "served": True, "storage": True}]),
        "scope": changed(scope="Odd"),
        "group": {**changed(group="nodots"), "metadata": {"name": "bars.nodots"}},
        "no kind": changed(names={"plural": "bars"}),
        "upper plural": changed(names={"plural": "Bars", "kind": "Bar"}),
        "list kind": changed(names={"plural": "bars", "kind": "Bar", "listKind": "Bar"}),
        "short name": changed(names={"plural": "bars", "kind": "Bar", "shortNames": ["Upper"]}),
        "preserve": changed(preserveUnknownFields=True),
        "conversion": changed(conversion={"strategy": "Webhook"}),
        "column": changed(versions=[version("v1", additionalPrinterColumns=[{"name": "x", "type": "odd", "jsonPath": "x"}])]),
        "scale path": changed(versions=[version("v1", subresources={"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.x"}})]),
        "selectable": changed(versions=[version("v1", selectableFields=[{"jsonPath": ".spec.absent"}])]),
        "protected group": {**changed(group="x.k8s.io"), "metadata": {"name": "bars.x.k8s.io"}},
    }  # fmt: skip
    return [
        *(Step("POST", CRDS + "?dryRun=All", definition("bars", "Bar", schema, group=group), name=name) for name, schema in schemas.items()),
        *(Step("POST", CRDS + "?dryRun=All", crd, name=f"spec {name}") for name, crd in others.items()),
        Step("POST", CRDS, {**base, "spec": {**base["spec"], "oops": 1}}, name="made"),
        Step("GET", f"{CRDS}/bars.{group}", until_says="Established=True", name="established"),
        Step("GET", f"{CRDS}/bars.{group}", headers={"Accept": TABLE}, name="table"),
        Step("PATCH", f"{CRDS}/bars.{group}", {"spec": {"scope": "Cluster"}}, MERGE, name="scope changed"),
        Step("PATCH", f"{CRDS}/bars.{group}", {"spec": {"group": "other.example.com"}}, MERGE, name="group changed"),
        Step("PATCH", f"{CRDS}/bars.{group}", {"spec": {"names": {"kind": "Baz"}}}, MERGE, name="kind changed"),
        Step("PATCH", f"{CRDS}/bars.{group}", {"spec": {"versions": [version("v2")]}}, MERGE, name="stored version removed"),
        Step("PATCH", f"{CRDS}/bars.{group}", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="labelled"),
        Step("POST", CRDS, {**definition("bazs", "Bar", good, group=group)}, name="kind taken"),
        Step("GET", f"/apis/{group}/v1", until=200, name="what is served"),
        Step("GET", f"{CRDS}/bazs.{group}", until_says="NamesAccepted=False", name="not accepted"),
        Step("DELETE", f"{CRDS}/bazs.{group}", name="deleted"),
        Step("DELETE", f"{CRDS}/bars.{group}", name="deleted too"),
    ]  # fmt: skip


def _versions() -> list[Step]:
    group = "many.example.com"
    schema = with_spec(a={"type": "string"}, b={"type": "integer", "default": 5})
    other = with_spec(a={"type": "string"}, c={"type": "string", "default": "x"})
    crd = definition("things", "Thing", schema, group=group, scope="Cluster")
    crd["spec"]["versions"] += [
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": other}},
        {
            "name": "v1beta1",
            "served": True,
            "storage": False,
            "deprecated": True,
            "schema": {"openAPIV3Schema": schema},
        },
        {"name": "v3", "served": False, "storage": False, "schema": {"openAPIV3Schema": schema}},
    ]
    one, two = f"/apis/{group}/v1/things", f"/apis/{group}/v2/things"

    def thing(version: str, name: str, **spec: Json) -> Json:
        return {"apiVersion": f"{group}/{version}", "kind": "Thing", "metadata": {"name": name}, "spec": spec}

    tighter = with_spec(a={"type": "string", "maxLength": 2}, b={"type": "integer", "default": 6})
    return [
        Step("POST", CRDS, crd, name="defined"),
        Step("GET", f"{CRDS}/things.{group}", until_says="Established=True", name="established"),
        Step("GET", one, until=200, name="empty"),
        Step("GET", two, until=200, name="empty too"),
        Step("GET", f"/apis/{group}", until=200, name="group"),
        Step("POST", one, thing("v1", "a", a="xyz", c="dropped"), name="made"),
        Step("GET", two + "/a", name="in the other version"),
        Step("POST", two, thing("v2", "b", a="x", c="kept?"), name="made in the other"),
        Step("GET", one + "/b", name="in the first"),
        Step("GET", f"/apis/{group}/v1beta1/things/a", name="deprecated"),
        Step("GET", f"/apis/{group}/v3/things", name="not served"),
        Step("POST", two, thing("v1", "c"), name="version of another"),
        Step("PATCH", f"{CRDS}/things.{group}", [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": tighter}], JSON_PATCH, name="tightened"),
        Step("PATCH", one + "/a?dryRun=All", {"spec": {"a": "xyzz"}}, MERGE, until=422, name="refused"),
        Step("PATCH", one + "/a", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="unchanged is let be"),
        Step("PATCH", one + "/a", {"spec": {"b": 1}}, MERGE, name="beside it too"),
        Step("GET", one, name="list"),
        Step("PATCH", two + "/a?fieldManager=m&dryRun=All", thing("v2", "a", c="y"), APPLY, name="applied in the other"),
        Step("DELETE", f"{CRDS}/things.{group}", name="definition deleted"),
        Step("GET", f"{CRDS}/things.{group}", until=404, name="gone"),
    ]  # fmt: skip


def _escaped() -> list[Step]:
    """What a rule misses is named as the rule names it."""
    group = "escaped.example.com"
    fields = {name: {"type": "string"} for name in ("a-b", "c.d", "e__f", "namespace")}
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    rules = (
        "self.a__dash__b",
        "self.c__dot__d",
        "self.e__underscores__f",
        "self.__namespace__",
        "self.free.a__dash__b",
    )
    spec = {
        "type": "object",
        "properties": {**fields, "free": free},
        "x-kubernetes-validations": [{"rule": f"{one} == 'x'"} for one in rules],
    }
    crd = definition("foos", "Foo", {"type": "object", "properties": {"spec": spec}}, group=group)
    path = f"/apis/{group}/v1/namespaces/${{namespace}}/foos"
    foo = {"apiVersion": f"{group}/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {"free": {}}}
    return [
        Step("POST", CRDS, crd, is_quiet=True),
        Step("GET", path, until=200, is_quiet=True),
        Step("POST", path, foo, name="nothing of it"),
        Step("DELETE", f"{CRDS}/foos.{group}", is_quiet=True),
    ]


SCRIPTS = [
    Script("rules about names that are escaped", _escaped()),
    Script("a custom kind", _life()),
    Script("defining", _defining()),
    Script("several versions", _versions()),
]
