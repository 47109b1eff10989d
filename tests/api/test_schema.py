"""The promises of ``api/schema.py``, ``api/markers.py`` and ``api/docs.py``, one test to each."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import math
import uuid
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from msgspec import field

from setpoint.api.int_or_string import IntOrString
from setpoint.api.markers import (
    Bounds,
    Description,
    EmbeddedResource,
    Format,
    Immutable,
    Length,
    ListType,
    MapType,
    Marker,
    Nullable,
    Pattern,
    PreserveUnknown,
    Rule,
)
from setpoint.api.meta import Condition
from setpoint.api.metaclass import ModelMeta
from setpoint.api.model import Model, Object, ObjectMeta, from_wire
from setpoint.api.quantity import Quantity
from setpoint.api.schema import schema_of
from setpoint.api.times import Duration, MicroTime, Time
from setpoint.errors import SchemaError
from setpoint.kube.apiextensions.v1 import JSONSchemaProps
from setpoint.kube.core.v1 import Container, PodTemplateSpec

STR, INT = {"type": "string"}, {"type": "integer", "format": "int64"}
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Port(Model):
    name: str
    number: int = 80


PORT = {
    "type": "object",
    "properties": {"name": STR, "number": {**INT, "default": 80}},
    "required": ["name"],
}


def holder_of(hint: Any, **default: Any) -> ModelMeta:
    """``class Holder(Model): wrong: hint = default``."""
    return ModelMeta(
        "Holder", (Model,), {"__module__": __name__, "__annotations__": {"wrong": hint}, **default}
    )


# Types.


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, STR),
        (int, INT),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (bytes, {"type": "string", "format": "byte"}),
        (Time, {"type": "string", "format": "date-time"}),
        (MicroTime, {"type": "string", "format": "date-time"}),
        (Duration, STR),
        (Quantity, Quantity.OPENAPI),
        (IntOrString, INT_OR_STRING),
        (int | str | None, INT_OR_STRING),
        (str | None, STR),
        (Any, ANYTHING),
        (dict[str, Any], {"type": "object", **ANYTHING}),
        (dict[str, int], {"type": "object", "additionalProperties": INT}),
        (dict[str, int | None], {"type": "object", "additionalProperties": {**INT, "nullable": True}}),
        (list[str], {"type": "array", "items": STR}),
        (list[list[Any]], {"type": "array", "items": {"type": "array", "items": ANYTHING}}),
        (Literal["a", "b"], {**STR, "enum": ["a", "b"]}),
        (Literal[1, 2], {**INT, "enum": [1, 2]}),
        (Literal["a", "b"] | None, {**STR, "enum": ["a", "b"]}),
        (Colour, {**STR, "enum": ["red", "blue"]}),
        (Level, {**INT, "enum": [1]}),
        (Port, PORT),
        (list[Port], {"type": "array", "items": PORT}),
    ],
    ids=str,
)
def test_every_type_has_its_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


def test_conditions_are_a_map_by_type_with_the_bounds_of_the_server() -> None:
    schema = schema_of(list[Condition])
    assert schema["x-kubernetes-list-type"] == "map"
    assert schema["x-kubernetes-list-map-keys"] == ["type"]
    assert schema["items"]["required"] == ["lastTransitionTime", "message", "reason", "status", "type"]
    assert schema["items"]["properties"]["status"]["enum"] == ["True", "False", "Unknown"]


def test_what_a_class_says_of_itself_is_not_shared_with_what_is_made_of_it() -> None:
    schema_of(Condition)["properties"].clear()
    assert "type" in Condition.OPENAPI["properties"]


def test_metadata_inside_an_object_keeps_what_a_template_needs() -> None:
    kept = schema_of(PodTemplateSpec)["properties"]["metadata"]["properties"]
    assert {"labels", "annotations", "name"} <= set(kept)


def test_kubernetes_own_types_are_complete_and_carry_no_defaults_of_go() -> None:
    schema = schema_of(Container)
    assert schema["required"] == ["name"]
    assert (
        schema["properties"]["resources"]["properties"]["limits"]["additionalProperties"] == Quantity.OPENAPI
    )
    assert schema["properties"]["ports"]["items"]["properties"]["containerPort"] == INT
    assert "default" not in str(schema)


def test_an_object_inside_an_object_is_an_embedded_resource() -> None:
    class Kept(Object, group="a.b", version="v1"):
        size: int = 1

    assert schema_of(Kept) == {
        "type": "object",
        "properties": {
            "apiVersion": STR,
            "kind": STR,
            "metadata": {"type": "object"},
            "size": {**INT, "default": 1},
        },
        "x-kubernetes-embedded-resource": True,
    }


class Loop(Model):
    inner: Loop | None = None


class LongLoop(Model):
    between: list[Between] | None = None


class Between(Model):
    back: dict[str, LongLoop] | None = None


class Typed(TypedDict):
    a: int


@dataclasses.dataclass
class Data:
    a: int


class Plain(msgspec.Struct):
    a: int


class Named(NamedTuple):
    a: int


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (dict[int, str], "the keys of a JSON object are str, not int; write dict[str, T]"),
        (dict, "write dict[str, T], or dict[str, Any] for anything"),
        (list, "write list[T]"),
        (set[str], 'write Annotated[list[T], ListType("set")]'),
        (frozenset[str], 'write Annotated[list[T], ListType("set")]'),
        (tuple[int, str], "write list[T], or a Model"),
        (object, "write Any"),
        (Named, "write list[T], or a Model"),
        (Port | Container, "write an optional field for each, or Any"),
        (int | float, "write an optional field for each, or Any"),
        (Literal["a", 1], "must be all str or all int"),
        (Literal[True], "must be all str or all int"),
        (dt.datetime, "write setpoint.api.Time or MicroTime"),
        (dt.date, 'write Annotated[str, Format("date")]'),
        (dt.timedelta, "write setpoint.api.Duration"),
        (decimal.Decimal, "write setpoint.api.Quantity"),
        (uuid.UUID, 'write Annotated[str, Format("uuid")]'),
        (bytearray, "write bytes"),
        (Loop, "Loop contains itself, and no structural schema can; write Any"),
        (LongLoop, "LongLoop contains itself"),
        (JSONSchemaProps, "Holder.wrong: JSONSchemaProps has no structural schema; write dict[str, Any]"),
        (Typed, "make it a setpoint.api.Model"),
        (Data, "make it a setpoint.api.Model"),
        (Plain, "make it a setpoint.api.Model"),
        (complex, "make it a setpoint.api.Model"),
    ],
    ids=str,
)
def test_a_type_without_a_schema_is_refused_by_field_with_what_to_write_instead(hint: Any, said: str) -> None:
    holder = holder_of(hint)
    with pytest.raises(SchemaError) as refused:
        schema_of(holder)
    assert said in str(refused.value)


def test_the_field_that_is_refused_is_named_with_its_class_however_deep() -> None:
    class Deep(Model):
        tags: set[str]

    class Upper(Model):
        inner: list[Annotated[Deep, Nullable()]]

    globals()["Deep"] = Deep
    with pytest.raises(
        SchemaError, match=r"schema of Deep\.tags: set\[str\] has no structural schema; write "
    ):
        schema_of(Upper)


def test_a_name_that_is_not_known_is_named() -> None:
    class Lost(Model):
        where: Nowhere | None = None  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SchemaError, match="the name 'Nowhere' in its annotations is not known"):
        schema_of(Lost)


# Required, optional, default.


def test_a_field_is_required_or_has_a_default_or_may_be_absent() -> None:
    class Fields(Model):
        needed: str
        given: int = 3
        absent: int | None = None
        also_needed: list[str]

    assert schema_of(Fields) == {
        "type": "object",
        "properties": {
            "needed": STR,
            "given": {**INT, "default": 3},
            "absent": INT,
            "alsoNeeded": {"type": "array", "items": STR},
        },
        "required": ["needed", "alsoNeeded"],
    }


def test_defaults_are_in_wire_form_and_whole_to_the_depth() -> None:
    class Defaults(Model):
        colour: Colour = Colour.RED
        data: bytes = b"\x00"
        since: Time = Time.parse("2026-01-01T00:00:00Z")
        amount: Quantity = Quantity("1")
        port: Port = Port(name="web")
        ports: list[Port] = [Port(name="a", number=1)]
        made: list[str] = field(default_factory=list)
        flag: bool = False

    properties = schema_of(Defaults)["properties"]
    assert {name: part["default"] for name, part in properties.items()} == {
        "colour": "red",
        "data": "AA==",
        "since": "2026-01-01T00:00:00Z",
        "amount": "1",
        "port": {"name": "web", "number": 80},
        "ports": [{"name": "a", "number": 1}],
        "made": [],
        "flag": False,
    }


def test_a_default_that_is_another_each_time_is_refused() -> None:
    class Fresh(Model):
        token: str = field(default_factory=lambda: str(uuid.uuid4()))

    with pytest.raises(SchemaError, match=r"schema of Fresh\.token: its default is another each time"):
        schema_of(Fresh)


@pytest.mark.parametrize(
    ("hint", "default", "said"),
    [
        (Annotated[int, Bounds(ge=1)], 0, "0 is below minimum 1"),
        (Annotated[int, Bounds(gt=1)], 1, "1 is below minimum 1"),
        (Annotated[int, Bounds(le=1)], 2, "2 is above maximum 1"),
        (Annotated[float, Bounds(lt=1)], 1.0, "1.0 is above maximum 1"),
        (Annotated[int, Bounds(multiple_of=3)], 4, "4 is no multiple of 3"),
        (Annotated[str, Length(min=1)], "", "0 is below minLength 1"),
        (Annotated[str, Pattern("^a")], "b", "'b' does not match ^a"),
        (Annotated[list[int], Length(max=1)], [1, 2], "2 is above maxItems 1"),
        (list[Annotated[int, Bounds(ge=1)]], [1, 0], "0 is below minimum 1"),
        (Annotated[dict[str, str], Length(min=1)], {}, "0 is below minProperties 1"),
        (dict[str, Annotated[str, Length(max=1)]], {"a": "bb"}, "2 is above maxLength 1"),
        (Literal["a"], "b", "'b' is none of ['a']"),
        (int, "1", "'1' is no integer"),
        (int, True, "True is no integer"),
        (list[str], ["a", 1], "1 is no string"),
    ],
    ids=str,
)
def test_a_default_that_its_own_schema_refuses_is_an_error(hint: Any, default: Any, said: str) -> None:
    holder = holder_of(hint, wrong=default)
    with pytest.raises(SchemaError) as refused:
        schema_of(holder)
    assert f"Holder.wrong: its default is refused by its own schema: {said}" in str(refused.value)


def test_null_is_a_fine_default_where_a_list_may_hold_it() -> None:
    schema = schema_of(holder_of(list[int | None], wrong=[1, None]))
    assert schema["properties"]["wrong"]["default"] == [1, None]


# Markers.


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Annotated[int, Bounds(ge=0, le=9)], {**INT, "minimum": 0, "maximum": 9}),
        (
            Annotated[float, Bounds(gt=0, lt=1)],
            {
                "type": "number",
                "minimum": 0,
                "exclusiveMinimum": True,
                "maximum": 1,
                "exclusiveMaximum": True,
            },
        ),
        (Annotated[int, Bounds(multiple_of=2)], {**INT, "multipleOf": 2}),
        (Annotated[int, Bounds(ge=0)] | None, {**INT, "minimum": 0}),
        (Annotated[int | None, Bounds(ge=0)], {**INT, "minimum": 0}),
        (Annotated[str, Length(1, 2)], {**STR, "minLength": 1, "maxLength": 2}),
        (Annotated[list[str], Length(max=2)], {"type": "array", "items": STR, "maxItems": 2}),
        (
            Annotated[dict[str, str], Length(min=1)],
            {"type": "object", "additionalProperties": STR, "minProperties": 1},
        ),
        (list[Annotated[str, Length(min=1)]], {"type": "array", "items": {**STR, "minLength": 1}}),
        (Annotated[str, Pattern("^a(?:b|c)$")], {**STR, "pattern": "^a(?:b|c)$"}),
        (Annotated[str, Format("ipv4")], {**STR, "format": "ipv4"}),
        (Annotated[int, Format("int32")], {"type": "integer", "format": "int32"}),
        (Annotated[int | None, Nullable()], {**INT, "nullable": True}),
        (Annotated[str, Description("what")], {**STR, "description": "what"}),
        (Annotated[str, msgspec.Meta(description="what")], {**STR, "description": "what"}),
        (Annotated[str, "somebody else's note"], STR),
        (Annotated[Port, PreserveUnknown()], {**PORT, **ANYTHING}),
        (
            Annotated[dict[str, Any], EmbeddedResource()],
            {"type": "object", "x-kubernetes-embedded-resource": True, **ANYTHING},
        ),
        (
            Annotated[list[str], ListType("set")],
            {"type": "array", "items": STR, "x-kubernetes-list-type": "set"},
        ),
        (
            Annotated[list[Port], ListType("map", keys=["name", "number"])],
            {
                "type": "array",
                "items": PORT,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "number"],
            },
        ),
        (Annotated[Port, MapType("atomic")], {**PORT, "x-kubernetes-map-type": "atomic"}),
        (
            Annotated[str, Immutable()],
            {
                **STR,
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "this field is immutable"}
                ],
            },
        ),
        (
            Annotated[
                int,
                Rule("self > 0", message="m"),
                Rule(
                    "self < oldSelf",
                    message_expression="'m'",
                    reason="FieldValueForbidden",
                    field_path=".x",
                    optional_old_self=True,
                ),
            ],
            {
                **INT,
                "x-kubernetes-validations": [
                    {"rule": "self > 0", "message": "m"},
                    {
                        "rule": "self < oldSelf",
                        "messageExpression": "'m'",
                        "reason": "FieldValueForbidden",
                        "fieldPath": ".x",
                        "optionalOldSelf": True,
                    },
                ],
            },
        ),
    ],
    ids=str,
)
def test_every_marker_has_its_words_in_the_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (Annotated[str, Bounds(ge=0)], "Bounds is for int and float, not for str"),
        (Annotated[IntOrString, Bounds(ge=0)], "not for an int or str"),
        (Annotated[int, Length(max=1)], "Length is for str, list and dict, not for int"),
        (Annotated[bytes, Length(max=1)], "not for bytes"),
        (Annotated[Port, Length(max=1)], "not for a Model"),
        (Annotated[int, Pattern("a")], "Pattern is for str, not for int"),
        (Annotated[bool, Format("x")], "Format is for str, int and float, not for bool"),
        (Annotated[list[str], PreserveUnknown()], "not for a list"),
        (
            Annotated[dict[str, str], EmbeddedResource()],
            "EmbeddedResource is for dict[str, Any]",
        ),
        (Annotated[dict[str, str], ListType("set")], "ListType is for list, not for a dict"),
        (Annotated[list[Port], ListType("set")], 'write "map" for models'),
        (Annotated[list[Port], ListType("map", keys=["nick"])], "has the key 'nick'"),
        (Annotated[list[str], ListType("map", keys=["a"])], "none: the items are no models"),
        (Annotated[str, MapType("atomic")], "MapType is for dict and Model, not for str"),
        (Annotated[Any, Rule("self == 1")], "a Rule needs a typed value, not Any"),
        (Annotated[int, msgspec.Meta(ge=0)], "write Bounds, Length or Pattern"),
    ],
    ids=str,
)
def test_a_marker_that_does_not_fit_is_refused_by_field(hint: Any, said: str) -> None:
    holder = holder_of(hint)
    with pytest.raises(SchemaError) as refused:
        schema_of(holder)
    assert "schema of Holder.wrong: " in str(refused.value)
    assert said in str(refused.value)


def test_the_keys_of_a_list_map_must_be_scalars_that_every_item_has() -> None:
    class Item(Model):
        maybe: str | None = None
        nested: Port

    for key, said in [("maybe", "needs 'maybe' in every item"), ("nested", "str, int, float or bool")]:
        with pytest.raises(SchemaError, match=said):
            schema_of(Annotated[list[Item], ListType("map", keys=[key])])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Bounds(ge=1, gt=1), "one of ge and gt"),
        (lambda: Bounds(multiple_of=0), "above 0"),
        (lambda: Length(min=2, max=1), "fits nothing"),
        (lambda: Length(min=-1), "fits nothing"),
        (lambda: Bounds(le=math.inf), "leave out what has no bound"),
        (lambda: Pattern("("), "is no regular expression"),
        (lambda: Pattern("(?=a)"), r"uses \(\?=, which the server's RE2 does not know"),
        (lambda: Pattern(r"(a)\1"), r"uses \\1"),
        (lambda: ListType("map"), "takes keys"),
        (lambda: ListType("set", keys=["a"]), "takes keys"),
        (lambda: Rule(" "), "needs a CEL expression"),
        (lambda: Rule("a\nb"), "needs a message"),
        (lambda: Rule("a", message="b\nc"), "one line"),
    ],
)
def test_a_marker_that_makes_no_sense_is_refused_where_it_is_written(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_an_escaped_backslash_before_a_digit_is_no_back_reference() -> None:
    assert Pattern(r"\\1").regex == r"\\1"


def test_rules_of_a_class_hold_for_its_values_and_for_those_of_subclasses() -> None:
    class Window(Model, rules=[Rule("self.low <= self.high")]):
        low: int = 0
        high: int = 1

    class Wider(Window, rules=[Rule("self.high < 10")]):
        pass

    assert [rule["rule"] for rule in schema_of(Wider)["x-kubernetes-validations"]] == [
        "self.low <= self.high",
        "self.high < 10",
    ]


def test_a_new_marker_needs_no_change_elsewhere() -> None:
    class Title(Marker, frozen=True):
        text: str

        def write(self, schema: dict[str, Any]) -> None:
            schema["title"] = self.text

    assert schema_of(Annotated[str, Title("T")]) == {"type": "string", "title": "T"}


def test_markers_do_not_stop_what_is_stored_from_being_read() -> None:
    class Narrowed(Model):
        size: Annotated[int, Bounds(le=1)] = 0
        name: Annotated[str, Length(max=1), Pattern("^a$")] = "a"

    assert from_wire(Narrowed, {"size": 9, "name": "long"}) == Narrowed(size=9, name="long")


# Descriptions.


class Documented(Model):
    """What it is.

    In full.
    """

    first: int
    """The first,
    on two lines."""
    second: Annotated[str, Description("The second.")] = "x"
    third: Port | None = None
    """The third."""
    bare: int = 0
    limit = 1
    """Of no field."""

    class Inner(Model):
        deep: int = 0
        """Deep."""


class Inherited(Documented):
    """More of it."""

    more: int = 0
    """More."""


def test_docstrings_of_classes_and_texts_below_fields_are_descriptions() -> None:
    schema = schema_of(Documented)
    assert schema["description"] == "What it is.\n\nIn full."
    said = {name: part.get("description") for name, part in schema["properties"].items()}
    assert said == {
        "first": "The first,\non two lines.",
        "second": "The second.",
        "third": "The third.",
        "bare": None,
    }
    assert schema_of(Documented.Inner)["properties"]["deep"]["description"] == "Deep."


def test_descriptions_are_inherited_field_by_field() -> None:
    schema = schema_of(Inherited)
    assert schema["description"] == "More of it."
    assert schema["properties"]["first"]["description"] == "The first,\non two lines."
    assert schema["properties"]["more"]["description"] == "More."


def test_a_class_in_a_function_has_its_descriptions_too() -> None:
    class Local(Model):
        field: int = 0
        """Local."""

    assert schema_of(Local)["properties"]["field"]["description"] == "Local."


def test_a_class_without_source_has_no_descriptions_of_fields() -> None:
    namespace: dict[str, Any] = {"Model": Model, "__name__": "nowhere"}
    exec("class Unseen(Model):\n    size: int = 0\n    '''Lost.'''", namespace)
    assert schema_of(namespace["Unseen"])["properties"]["size"] == {**INT, "default": 0}


def test_descriptions_can_be_left_out() -> None:
    assert "description" not in str(schema_of(Documented, descriptions=False))


def test_object_meta_has_no_description_of_ours() -> None:
    assert "description" not in schema_of(ObjectMeta)


def test_a_text_in_place_of_a_list_is_not_taken_for_its_letters() -> None:
    with pytest.raises(TypeError, match=r"write keys=\['name'\]"):
        ListType("map", keys="name")
