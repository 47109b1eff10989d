"""The promises of ``api/crd.py``; ``tests/conformance/test_crds.py`` asks the real server."""

from __future__ import annotations

import copy
import json
from typing import Annotated, Any, cast

import pytest

from setpoint.api.crd import CustomResource, CustomResourceMeta, PrinterColumn, ScalePaths, crd_of
from setpoint.api.markers import Bounds, Rule
from setpoint.api.model import Model, encode
from setpoint.errors import SchemaError
from tests.api.kinds import ALL, Approved, Gadget, GadgetV1Beta1, Runner, Sampler, Setting, WebApp, WebAppSpec


class ThingSpec(Model):
    size: int = 1
    colour: str | None = None
    ports: list[int] = []
    free: dict[str, Any] = {}


class ThingStatus(Model):
    size: int = 0
    selector: str = ""


def define(name: str = "Thing", **keywords: Any) -> type[CustomResource]:
    """``class Thing(CustomResource, ...)`` with a spec and a status."""
    body = {
        "__module__": __name__,
        "__annotations__": {"spec": ThingSpec, "status": ThingStatus},
        "spec": ThingSpec(),
        "status": ThingStatus(),
    }
    names = {"group": "a.b", "version": "v1", **keywords}
    return cast("type[CustomResource]", CustomResourceMeta(name, (CustomResource,), body, **names))


def version(*classes: type[CustomResource]) -> dict[str, Any]:
    found: dict[str, Any] = crd_of(*classes)["spec"]["versions"][0]
    return found


def test_the_example_of_the_readme_gives_this_definition() -> None:
    definition = crd_of(WebApp)
    [only] = definition["spec"].pop("versions")
    assert definition == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "webapps.demo.setpoint.dev"},
        "spec": {
            "group": "demo.setpoint.dev",
            "names": {"kind": "WebApp", "listKind": "WebAppList", "plural": "webapps", "singular": "webapp"},
            "scope": "Namespaced",
        },
    }
    schema = only.pop("schema")["openAPIV3Schema"]
    assert only == {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    assert schema["required"] == ["spec"]
    properties = schema["properties"]
    assert properties["metadata"] == {"type": "object"}
    assert properties["spec"]["properties"]["port"] == {
        "type": "integer",
        "format": "int64",
        "minimum": 1,
        "maximum": 65535,
        "default": 80,
    }
    assert "default" not in properties["status"], "a status is the controller's to write"


def test_all_names_are_in_the_definition() -> None:
    definition = crd_of(Sampler)
    assert definition["metadata"]["annotations"] == {"example.com/owner": "tests"}
    assert definition["spec"]["names"] == {
        "kind": "Sampler",
        "listKind": "SamplerList",
        "plural": "samplers",
        "singular": "sampler",
        "shortNames": ["smp"],
        "categories": ["all", "setpoint"],
    }
    assert crd_of(Setting)["spec"]["scope"] == "Cluster"


def test_a_docstring_describes_the_kind() -> None:
    schema = version(Sampler)["schema"]["openAPIV3Schema"]
    assert schema["description"] == "A sample of everything."
    assert schema["properties"]["spec"]["properties"]["text"]["description"] == "What it says,\non two lines."


def test_a_rule_of_the_class_is_at_the_root() -> None:
    schema = version(Sampler)["schema"]["openAPIV3Schema"]
    assert schema["x-kubernetes-validations"][0]["message"] == "the name is too long"


def test_status_is_a_subresource_where_there_is_one() -> None:
    assert version(WebApp)["subresources"] == {"status": {}}
    assert "subresources" not in version(Setting)


def test_columns_take_the_type_of_their_field() -> None:
    assert version(Sampler)["additionalPrinterColumns"] == [
        {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "description": "How many"},
        {"name": "Share", "type": "number", "jsonPath": ".spec.share", "format": "double"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Since", "type": "date", "jsonPath": ".spec.since", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def test_scale_and_selectable_fields_are_in_the_version() -> None:
    assert version(Sampler)["subresources"]["scale"] == {
        "specReplicasPath": ".spec.count",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    assert version(Sampler)["selectableFields"][0] == {"jsonPath": ".spec.colour"}


def test_several_versions_are_one_definition_with_one_stored() -> None:
    spec = crd_of(Gadget, GadgetV1Beta1)["spec"]
    assert [(v["name"], v["storage"], v["served"]) for v in spec["versions"]] == [
        ("v1", True, True),
        ("v1beta1", False, True),
    ]
    assert spec["versions"][1]["deprecated"] is True
    assert "is old; use v1" in spec["versions"][1]["deprecationWarning"]
    assert spec["names"]["shortNames"] == ["gd"], "as the stored version says"


@pytest.mark.parametrize("kinds", ALL, ids=lambda kinds: kinds[0].__name__)
def test_the_same_classes_give_the_same_definition_and_nothing_is_shared(
    kinds: tuple[type[CustomResource], ...],
) -> None:
    first = crd_of(*kinds)
    before = encode(first)
    first["spec"]["versions"][0]["schema"].clear()
    assert encode(crd_of(*kinds)) == before


@pytest.mark.parametrize("kinds", ALL, ids=lambda kinds: kinds[0].__name__)
def test_every_definition_is_plain_json(kinds: tuple[type[CustomResource], ...]) -> None:
    assert json.loads(encode(crd_of(*kinds))) == crd_of(*kinds)


def test_every_node_of_a_schema_has_what_makes_it_structural() -> None:
    def check(schema: dict[str, Any], path: str) -> None:
        untyped = {"x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"} & set(schema)
        assert "type" in schema or untyped, path
        for name, part in schema.get("properties", {}).items():
            check(part, f"{path}.{name}")
        for word in ("items", "additionalProperties"):
            if word in schema:
                check(schema[word], f"{path}.{word}")

    for kinds in ALL:
        check(version(*kinds)["schema"]["openAPIV3Schema"], kinds[0].__name__)


# What is refused when the class is made.


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"group": "nodot"}, "group 'nodot' must be a domain with a dot"),
        ({"group": "Upper.Case"}, "must be a domain with a dot"),
        (
            {"group": "apps.k8s.io"},
            "or give the annotation api-approved.kubernetes.io",
        ),
        ({"version": "V1"}, "version 'V1' must be made of a-z"),
        ({"kind": "Web_App"}, "kind 'web_app' must be made of a-z"),
        ({"plural": "Things"}, "plural 'Things' must be made of"),
        ({"singular": "1thing"}, "singular '1thing' must be"),
        ({"short_names": ["t_t"]}, "short_names 't_t' must be"),
        ({"categories": ["All"]}, "categories 'All' must be"),
        ({"plural": "t" * 64}, "up to 63"),
        ({"printer_columns": [PrinterColumn("A", "spec.size")]}, "must begin with a dot"),
        (
            {"printer_columns": [PrinterColumn("A", ".spec.size", type=cast("Any", "int"))]},
            "has the type 'int'",
        ),
        (
            {"printer_columns": [PrinterColumn("A", ".spec.sizes")]},
            "there is no .spec.sizes on the wire: no 'sizes' among colour, free, ports, size",
        ),
        (
            {"scale": ScalePaths(spec_path=".size", status_path=".status.size")},
            "'.size' must be plain and under '.spec.'",
        ),
        ({"scale": ScalePaths(spec_path=".spec.size", status_path=".spec.size")}, "under '.status.'"),
        ({"scale": ScalePaths(spec_path=".spec.ports[0]", status_path=".status.size")}, "must be plain"),
        (
            {"scale": ScalePaths(spec_path=".spec.colour", status_path=".status.size")},
            ".spec.colour must be integer",
        ),
        ({"scale": ScalePaths()}, "there is no .spec.replicas on the wire"),
        (
            {
                "scale": ScalePaths(
                    spec_path=".spec.size", status_path=".status.size", selector_path=".status.size"
                )
            },
            ".status.size must be string",
        ),
        ({"selectable_fields": [".metadata.name"]}, "must be a plain path such as '.spec.color'"),
        ({"selectable_fields": [".spec.ports"]}, ".spec.ports must be string or integer or boolean"),
        ({"selectable_fields": [".spec.size", ".spec.size"]}, "up to 8 paths, each once"),
        ({"rules": [Rule("self.spec.size > 0")], "selectable_fields": [".spec.no"]}, "there is no .spec.no"),
    ],
    ids=str,
)
def test_what_a_server_would_refuse_is_refused_at_once(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError) as refused:
        define(**keywords)
    assert "define Thing: " in str(refused.value)
    assert said in str(refused.value)


def test_a_bad_field_is_refused_when_the_class_is_made_by_class_and_field() -> None:
    class BadSpec(Model):
        tags: set[str]

    globals()["BadSpec"] = BadSpec
    with pytest.raises(SchemaError, match=r"BadSpec\.tags: set\[str\] has no structural schema; write "):

        class Bad(CustomResource, group="a.b", version="v1"):
            spec: BadSpec


def test_a_bad_default_is_refused_when_the_class_is_made() -> None:
    class ZeroSpec(Model):
        size: Annotated[int, Bounds(ge=1)] = 0

    globals()["ZeroSpec"] = ZeroSpec
    with pytest.raises(SchemaError, match=r"ZeroSpec\.size: its default is refused by its own schema"):

        class Zero(CustomResource, group="a.b", version="v1"):
            spec: ZeroSpec


class Early(CustomResource, group="a.b", version="v1"):
    spec: LateSpec


class LateSpec(Model):
    size: int = 1


def test_a_class_may_name_one_that_is_defined_further_down() -> None:
    assert version(Early)["schema"]["openAPIV3Schema"]["required"] == ["spec"]


def test_a_name_that_is_never_defined_is_named_when_the_definition_is_asked_for() -> None:
    class Lost(CustomResource, group="a.b", version="v1"):
        spec: NeverDefined  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SchemaError, match="the name 'NeverDefined' in its annotations is not known"):
        crd_of(Lost)


def test_a_base_without_a_version_is_no_kind_and_not_checked() -> None:
    class Shared(CustomResource):
        owner: str = ""

    class Real(Shared, group="a.b", version="v1"):
        pass

    assert "owner" in version(Real)["schema"]["openAPIV3Schema"]["properties"]
    with pytest.raises(TypeError, match="is no CustomResource with a group and version"):
        crd_of(Shared)


def test_a_class_knows_its_subresources() -> None:
    assert WebApp.resource.subresources == ("status",)
    assert Sampler.resource.subresources == ("status", "scale")
    assert Setting.resource.subresources == ()


def test_a_subclass_of_a_kind_is_defined_as_it_is() -> None:
    class Richer(Sampler):
        more: int = 0

    assert version(Richer)["additionalPrinterColumns"] == version(Sampler)["additionalPrinterColumns"]


def test_a_path_into_what_anything_may_be_is_not_checked() -> None:
    define(printer_columns=[PrinterColumn("A", ".spec.free.a.b"), PrinterColumn("B", ".metadata.labels.app")])


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"version": "v2"}, "2 of 2 versions are stored; say storage=False for all but one"),
        ({"storage": False}, "two classes have the same version"),
        ({"version": "v2", "storage": False, "group": "c.d"}, "its versions differ in group: ['a.b', 'c.d']"),
        ({"version": "v2", "storage": False, "namespaced": False}, "differ in namespaced"),
        ({"version": "v2", "storage": False, "plural": "thingies"}, "differ in plural"),
    ],
    ids=str,
)
def test_classes_that_are_not_versions_of_one_kind_are_refused(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError) as refused:
        crd_of(define(), define(**keywords))
    assert said in str(refused.value)


def test_no_class_and_no_stored_version_are_refused() -> None:
    with pytest.raises(SchemaError, match="0 of 1 versions are stored"):
        crd_of(define(storage=False))
    with pytest.raises(SchemaError, match="0 of 0"):
        crd_of()
    with pytest.raises(TypeError, match="is no CustomResource"):
        crd_of(WebAppSpec)  # type: ignore[arg-type]


def test_a_custom_resource_is_used_as_any_other_object() -> None:
    app = WebApp(spec=WebAppSpec(image="i"))
    assert WebApp.decode(encode(app)) == app
    assert copy.deepcopy(app) == app
    assert WebApp.resource.plural == "webapps"
    assert Runner.gvk.api_version == "test.setpoint.dev/v1"
    assert Approved(data={"a": "b"}).data == {"a": "b"}


@pytest.mark.parametrize("keyword", ["short_names", "categories", "selectable_fields"])
def test_a_text_in_place_of_a_list_is_not_taken_for_its_letters(keyword: str) -> None:
    with pytest.raises(TypeError, match=rf"write {keyword}=\['wa'\]"):
        define(**{keyword: "wa"})
