"""The rules of ``api/openapi.py``, on schemas as CustomResourceDefinitions and Go types publish them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from setpoint.api.names import Resource
from setpoint.api.openapi import (
    ANY,
    BOOL,
    BYTES,
    FLOAT,
    INT,
    INT_OR_STRING,
    QUANTITY,
    STR,
    TIME,
    Presence,
    Struct,
    Type,
    dict_of,
    is_builtin,
    list_of,
    read,
    stable,
)
from setpoint.api.quantity import Quantity

ALWAYS, OPTIONAL, REQUIRED = Presence.ALWAYS, Presence.OPTIONAL, Presence.REQUIRED
TEXT = {"type": "string"}
META = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1."
DEMO = ("demo.setpoint.dev", "v1")


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def document(group: str = DEMO[0], version: str = DEMO[1], /, **kinds: Mapping[str, Any]) -> dict[str, Any]:
    """What a server publishes about CustomResourceDefinitions."""
    package = ".".join(reversed(group.split(".")))
    schemas: dict[str, Any] = {}
    for kind, schema in kinds.items():
        own = {
            "apiVersion": TEXT,
            "kind": TEXT,
            "metadata": {"allOf": [{"$ref": f"{META}ObjectMeta"}], "default": {}},
        }
        names = [{"group": group, "version": version, "kind": kind}]
        lists = [{"group": group, "version": version, "kind": f"{kind}List"}]
        schemas[f"{package}.{version}.{kind}"] = {
            **schema,
            "type": "object",
            "properties": own | schema.get("properties", {}),
            "x-kubernetes-group-version-kind": names,
        }
        schemas[f"{package}.{version}.{kind}List"] = {
            **an_object(items={"type": "array", "items": {}}, metadata={"$ref": f"{META}ListMeta"}),
            "x-kubernetes-group-version-kind": lists,
        }
    return {"components": {"schemas": schemas}}


def structs(*kinds: Resource, **schemas: Mapping[str, Any]) -> dict[str, Struct]:
    return {struct.type.name: struct for struct in read([document(**schemas)], kinds, {DEMO})}


def fields(struct: Struct) -> dict[str, tuple[Type, Presence]]:
    return {field.wire: (field.type, field.presence) for field in struct.fields}


def spec_fields(**properties: Any) -> dict[str, Type]:
    """The types that the fields of a spec are read as."""
    made = structs(Web=an_object(spec=an_object(**properties)))
    return {field.wire: field.type for field in made["WebSpec"].fields}


def nested(name: str) -> Type:
    return Type(name, ".demo_setpoint_dev.v1")


# Types.


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (TEXT, STR),
        ({"type": "string", "format": "date-time"}, TIME),
        ({"type": "string", "format": "byte"}, BYTES),
        ({"type": "string", "format": "uuid"}, STR),
        ({"type": "string", "enum": ["A", "B"]}, STR),
        ({"type": "integer", "format": "int64"}, INT),
        ({"type": "number"}, FLOAT),
        ({"type": "boolean"}, BOOL),
        ({"type": "array", "items": TEXT}, list_of(STR)),
        ({"type": "array", "items": {"type": "array", "items": TEXT}}, list_of(list_of(STR))),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, dict_of(INT)),
        ({"type": "object"}, dict_of(ANY)),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, dict_of(ANY)),
        ({"type": "object", "additionalProperties": True}, dict_of(ANY)),
        ({**an_object(kind=TEXT), "x-kubernetes-embedded-resource": True}, dict_of(ANY)),
        ({"x-kubernetes-preserve-unknown-fields": True}, ANY),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, TEXT]}, INT_OR_STRING),
        (Quantity.OPENAPI, QUANTITY),
    ],
)
def test_every_type_of_schema_has_its_type_in_python(schema: Any, expected: Type) -> None:
    assert spec_fields(field=schema) == {"field": expected}


def test_what_meta_v1_has_is_not_made_again() -> None:
    requirement = an_object(key=TEXT, operator=TEXT, values={"type": "array", "items": TEXT})
    requirement["required"] = ["key", "operator"]
    selector = an_object(
        matchExpressions={"type": "array", "items": requirement},
        matchLabels={"type": "object", "additionalProperties": TEXT},
    )
    condition = an_object(
        lastTransitionTime={"type": "string", "format": "date-time"},
        message={"type": "string", "maxLength": 32768},
        observedGeneration={"type": "integer", "format": "int64"},
        reason=TEXT,
        status={"type": "string", "enum": ["True", "False", "Unknown"]},
        type=TEXT,
    )
    condition["required"] = ["lastTransitionTime", "message", "reason", "status", "type"]
    assert spec_fields(selector=selector, conditions={"type": "array", "items": condition}) == {
        "selector": Type("LabelSelector", "setpoint.api.meta"),
        "conditions": list_of(Type("Condition", "setpoint.api.meta")),
    }


def test_a_condition_that_may_lack_its_reason_is_not_that_of_meta_v1() -> None:
    loose = an_object(
        lastTransitionTime={"type": "string", "format": "date-time"},
        message=TEXT,
        observedGeneration={"type": "integer"},
        reason=TEXT,
        status=TEXT,
        type=TEXT,
    )
    assert spec_fields(condition=loose) == {"condition": nested("WebSpecCondition")}


def test_a_field_that_msgspec_cannot_name_is_left_out() -> None:
    assert spec_fields(**{'a"b': TEXT, "a\\b": TEXT, "a\nb": TEXT, "\ud800": TEXT, "a'b": TEXT}) == {
        "a'b": STR
    }


# Names.


def test_nested_schemas_are_named_after_their_place() -> None:
    port = an_object(number={"type": "integer"})
    spec = an_object(
        ports={"type": "array", "items": port}, tls=an_object(**{"secret-name": an_object(a=TEXT)})
    )
    assert set(structs(Web=an_object(spec=spec))) == {
        "Web",
        "WebSpec",
        "WebSpecPorts",
        "WebSpecTls",
        "WebSpecTlsSecretName",
    }


def test_nested_schemas_that_are_the_same_are_one_class_named_after_the_shallowest_place() -> None:
    here = {**an_object(name=TEXT), "description": "one"}
    there = {**an_object(name={**TEXT, "description": "its name"}), "description": "another"}
    spec = an_object(a=an_object(deep=here), b=there)
    made = structs(Web=an_object(spec=spec))
    assert set(made) == {"Web", "WebSpec", "WebSpecA", "WebSpecB"}
    assert fields(made["WebSpecA"])["deep"][0] == nested("WebSpecB")


def test_a_field_called_description_is_a_difference() -> None:
    one, other = an_object(description=TEXT), an_object(description={"type": "integer"})
    assert len(structs(Web=an_object(spec=an_object(a=one, b=other)))) == 4


def test_what_is_the_same_in_two_kinds_is_a_class_of_each() -> None:
    """Otherwise installing one CustomResourceDefinition would rename the classes of another."""
    kind = an_object(spec=an_object(name=TEXT))
    assert set(structs(Web=kind, App=kind)) == {"App", "AppSpec", "Web", "WebSpec"}


def test_no_two_classes_have_one_name() -> None:
    spec = an_object(ab=an_object(c=an_object(x=TEXT)), abC=an_object(y=TEXT))
    made = structs(Web=an_object(spec=spec), WebSpec=an_object(spec=an_object(z=TEXT)))
    assert set(made) == {
        "Web",
        "WebSpec",
        "WebSpec2",
        "WebSpec2Ab",
        "WebSpec2AbC",
        "WebSpec2AbC2",
        "WebSpecSpec",
    }
    assert made["WebSpec"].gvk is not None, "a kind keeps its name"


def test_lists_of_a_kind_have_no_class() -> None:
    assert set(structs(Web=an_object())) == {"Web"}


def test_groups_are_modules_by_their_whole_name() -> None:
    made = read(
        [document("cert-manager.io", "v1beta1", Issuer=an_object())], [], {("cert-manager.io", "v1beta1")}
    )
    assert [struct.type for struct in made] == [Type("Issuer", ".cert_manager_io.v1beta1")]


def test_only_the_groups_wanted_are_read() -> None:
    both = [document(Web=an_object()), document("other.dev", "v1", App=an_object())]
    assert [struct.type.name for struct in read(both, [], {DEMO})] == ["Web"]


def test_the_order_of_documents_and_properties_changes_nothing() -> None:
    port = an_object(name=TEXT)
    whole = document(
        Web=an_object(spec=an_object(a=port, b=port, c=an_object(d=port)), status=an_object(e=port)),
        App=an_object(spec=an_object(z=TEXT, y=an_object(x=TEXT))),
    )
    expected = read([whole], [], {DEMO})
    for seed in range(20):
        assert read([shuffled(whole, random.Random(seed))], [], {DEMO}) == expected


def shuffled(value: Any, rng: random.Random) -> Any:
    if not isinstance(value, dict):
        return value
    names = list(value)
    rng.shuffle(names)
    return {name: shuffled(value[name], rng) for name in names}


# Presence.


def test_metadata_is_inherited_and_spec_and_status_are_always_there() -> None:
    web = structs(Web=an_object(spec=an_object(a=TEXT), status=an_object(b=TEXT)))["Web"]
    assert fields(web) == {"spec": (nested("WebSpec"), ALWAYS), "status": (nested("WebStatus"), ALWAYS)}


def test_a_spec_that_needs_something_must_be_given() -> None:
    spec = {**an_object(image=TEXT), "required": ["image"]}
    assert fields(structs(Web={**an_object(spec=spec), "required": ["spec"]})["Web"])["spec"][1] is REQUIRED
    assert fields(structs(Web=an_object(spec=spec))["Web"])["spec"][1] is OPTIONAL, "it may be missing"


def test_a_status_that_would_be_refused_is_left_out() -> None:
    """Where there is no status subresource, what is created is checked with its status."""
    status = {**an_object(phase={"type": "string", "enum": ["Up"]}), "required": ["phase"]}
    web = an_object(status=status)
    with_subresource = Resource(*DEMO, "Web", "webs", subresources=("status",))
    assert fields(structs(Web=web)["Web"])["status"][1] is OPTIONAL
    assert fields(structs(with_subresource, Web=web)["Web"])["status"][1] is ALWAYS


def test_required_fields_must_be_given_but_for_lists_and_maps() -> None:
    spec = an_object(
        text=TEXT,
        number={"type": "integer"},
        part=an_object(a=TEXT),
        list={"type": "array", "items": TEXT},
        map={"type": "object", "additionalProperties": TEXT},
        filled={"type": "integer", "default": 3},
        nothing={"type": "string", "nullable": True},
    )
    spec["required"] = [*spec["properties"]]
    presences = {
        name: presence for name, (_, presence) in fields(structs(Web=an_object(spec=spec))["WebSpec"]).items()
    }
    assert presences == {
        "text": REQUIRED,
        "number": REQUIRED,
        "part": REQUIRED,
        "list": ALWAYS,
        "map": ALWAYS,
        "filled": OPTIONAL,
        "nothing": OPTIONAL,
    }


def test_what_only_a_status_holds_can_be_made_from_nothing() -> None:
    replica = {**an_object(name=TEXT, up={"type": "boolean"}), "required": ["name", "up"]}
    shared = {**an_object(host=TEXT), "required": ["host"]}
    status = an_object(
        count={"type": "integer"},
        at={"type": "string", "format": "date-time"},
        phase={"type": "string", "enum": ["Up"]},
        replicas={"type": "array", "items": replica},
        shared=shared,
    )
    status["required"] = [*status["properties"]]
    made = structs(Web=an_object(spec=an_object(shared=shared), status=status))
    assert {wire: presence for wire, (_, presence) in fields(made["WebStatus"]).items()} == {
        "count": ALWAYS,
        "at": OPTIONAL,  # there is no zero time
        "phase": OPTIONAL,  # "" would be refused
        "replicas": ALWAYS,
        "shared": OPTIONAL,
    }
    assert {presence for _, presence in fields(made["WebStatusReplicas"]).values()} == {ALWAYS}
    assert fields(made["WebSpecShared"])["host"][1] is REQUIRED, "a user writes it too"


# What comes with Kubernetes.


def go_document() -> dict[str, Any]:
    """Types with names, as Kubernetes' own groups publish them."""
    package = "io.k8s.api.batch.v1"
    template = "io.k8s.api.core.v1.PodTemplateSpec"
    return {
        "components": {
            "schemas": {
                f"{package}.Job": {
                    **an_object(
                        apiVersion=TEXT,
                        kind=TEXT,
                        metadata={"allOf": [{"$ref": f"{META}ObjectMeta"}], "default": {}},
                        spec={"allOf": [{"$ref": f"#/components/schemas/{package}.JobSpec"}], "default": {}},
                    ),
                    "x-kubernetes-group-version-kind": [{"group": "batch", "version": "v1", "kind": "Job"}],
                },
                f"{package}.JobSpec": {
                    **an_object(template={"allOf": [{"$ref": f"#/components/schemas/{template}"}]}),
                    "required": ["template"],
                },
                template: an_object(
                    metadata={"allOf": [{"$ref": f"{META}ObjectMeta"}], "default": {}},
                    spec={"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]},
                ),
                "io.k8s.api.core.v1.PodSpec": an_object(hostname=TEXT),
                "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": an_object(name=TEXT),
            }
        }
    }


def test_builtin_kinds_have_modules_by_the_first_word_of_their_group_and_bring_what_they_hold() -> None:
    made = {struct.type: struct for struct in read([go_document()], [], {("batch", "v1")}, builtin=True)}
    core, batch = "setpoint.kube.core.v1", "setpoint.kube.batch.v1"
    assert set(made) == {
        Type("Job", batch),
        Type("JobSpec", batch),
        Type("PodSpec", core),
        Type("PodTemplateSpec", core),
    }
    assert fields(made[Type("Job", batch)])["spec"][1] is REQUIRED
    template = fields(made[Type("PodTemplateSpec", core)])
    assert {presence for _, presence in template.values()} == {ALWAYS}, (
        "a template is an object in the making"
    )


def test_elsewhere_what_is_built_in_comes_from_setpoint_kube() -> None:
    made = read([go_document()], [], {("batch", "v1")})
    assert {struct.type for struct in made} == {Type("Job", ".batch.v1"), Type("JobSpec", ".batch.v1")}
    (spec,) = (struct for struct in made if struct.type.name == "JobSpec")
    assert fields(spec)["template"][0] == Type("PodTemplateSpec", "setpoint.kube.core.v1")


def test_a_document_tells_whether_its_kinds_are_built_in() -> None:
    assert is_builtin(go_document(), ("batch", "v1"))
    assert not is_builtin(document(Web=an_object()), DEMO)


TREE = "dev.setpoint.demo.v1.Tree"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (TEXT, STR),
        ({"type": "object", "additionalProperties": TEXT}, dict_of(STR)),
        ({"$ref": f"#/components/schemas/{TREE}"}, ANY),
        ({"type": "array", "items": {"$ref": f"#/components/schemas/{TREE}"}}, list_of(ANY)),
    ],
)
def test_a_name_for_what_is_no_struct_is_that_type(schema: Any, expected: Type) -> None:
    whole = document(Web=an_object(spec=an_object(tree={"$ref": f"#/components/schemas/{TREE}"})))
    whole["components"]["schemas"][TREE] = schema
    spec = next(struct for struct in read([whole], [], {DEMO}) if struct.type.name == "WebSpec")
    assert fields(spec)["tree"] == (expected, OPTIONAL)


def test_a_reference_to_nothing_is_anything() -> None:
    whole = document(Web=an_object(spec=an_object(a={"$ref": "#/components/schemas/gone.v1.Gone"})))
    spec = next(struct for struct in read([whole], [], {DEMO}) if struct.type.name == "WebSpec")
    assert fields(spec)["a"] == (ANY, OPTIONAL)


def test_stable_versions_promise_to_stay() -> None:
    assert [v for v in ("v1", "v2", "v10", "v1beta1", "v2alpha3", "v1.1", "latest") if stable(v)] == [
        "v1",
        "v2",
        "v10",
    ]
