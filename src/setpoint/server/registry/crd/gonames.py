"""Parts of a definition as Go prints its internal types: some refusals show them, under Go's own names."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.golang import Struct
from setpoint.server.registry.crd.schemas import Schema

_WORDS: Final[dict[str, tuple[str, Any]]] = {
    "id": ("ID", ""),
    "$schema": ("Schema", ""),
    "$ref": ("Ref", None),
    "description": ("Description", ""),
    "type": ("Type", ""),
    "nullable": ("Nullable", False),
    "format": ("Format", ""),
    "title": ("Title", ""),
    "default": ("Default", None),
    "maximum": ("Maximum", None),
    "exclusiveMaximum": ("ExclusiveMaximum", False),
    "minimum": ("Minimum", None),
    "exclusiveMinimum": ("ExclusiveMinimum", False),
    "maxLength": ("MaxLength", None),
    "minLength": ("MinLength", None),
    "pattern": ("Pattern", ""),
    "maxItems": ("MaxItems", None),
    "minItems": ("MinItems", None),
    "uniqueItems": ("UniqueItems", False),
    "multipleOf": ("MultipleOf", None),
    "enum": ("Enum", None),
    "maxProperties": ("MaxProperties", None),
    "minProperties": ("MinProperties", None),
    "required": ("Required", None),
    "items": ("Items", None),
    "allOf": ("AllOf", None),
    "oneOf": ("OneOf", None),
    "anyOf": ("AnyOf", None),
    "not": ("Not", None),
    "properties": ("Properties", None),
    "additionalProperties": ("AdditionalProperties", None),
    "patternProperties": ("PatternProperties", None),
    "dependencies": ("Dependencies", None),
    "additionalItems": ("AdditionalItems", None),
    "definitions": ("Definitions", None),
    "externalDocs": ("ExternalDocs", None),
    "example": ("Example", None),
    "x-kubernetes-preserve-unknown-fields": ("XPreserveUnknownFields", None),
    "x-kubernetes-embedded-resource": ("XEmbeddedResource", False),
    "x-kubernetes-int-or-string": ("XIntOrString", False),
    "x-kubernetes-list-map-keys": ("XListMapKeys", None),
    "x-kubernetes-list-type": ("XListType", None),
    "x-kubernetes-map-type": ("XMapType", None),
    "x-kubernetes-validations": ("XValidations", None),
}
_AT_ROOT: Final = (
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum",
    "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required",
    "Items",
    "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
)  # fmt: skip
ONLY_AT_ROOT: Final = (
    f"only [{' '.join(_AT_ROOT)}] fields are allowed at the root of the schema "
    "if the status subresource is enabled"
)


def is_allowed_at_root(word: str) -> bool:
    return word not in _WORDS or _WORDS[word][0] in _AT_ROOT


def go_schema(schema: Schema | None) -> Any:
    """A schema under the names of Go's fields, in their order."""
    if schema is None:
        return None
    shown = Struct()
    for word, (name, empty) in _WORDS.items():
        value = schema.get(word)
        shown[name] = empty if value is None else _shown(word, value)
    return shown


def _shown(word: str, value: Any) -> Any:
    match word:
        case "properties" | "patternProperties" | "definitions":
            return {name: go_schema(one) for name, one in value.items()}
        case "allOf" | "anyOf" | "oneOf":
            return [go_schema(one) for one in value]
        case "not":
            return go_schema(value)
        case "items":
            is_list = isinstance(value, list)
            return Struct(
                Schema=None if is_list else go_schema(value),
                JSONSchemas=[go_schema(one) for one in value] if is_list else None,
            )
        case "additionalProperties" | "additionalItems":
            if isinstance(value, bool):
                return Struct(Allows=value, Schema=None)
            return Struct(Allows=True, Schema=go_schema(value))
        case "x-kubernetes-validations":
            return [go_rule(one) for one in value]
    return value


def go_rule(rule: dict[str, Any]) -> Struct:
    return Struct(
        {
            "Rule": rule.get("rule") or "",
            "Message": rule.get("message") or "",
            "MessageExpression": rule.get("messageExpression") or "",
            "Reason": rule.get("reason"),
            "FieldPath": rule.get("fieldPath") or "",
            "OptionalOldSelf": rule.get("optionalOldSelf"),
        }
    )


def go_versions(versions: list[dict[str, Any]], common: frozenset[str]) -> list[Struct]:
    """``common``: what all versions share has moved away from them."""
    return [
        Struct(
            {
                "Name": one.get("name") or "",
                "Served": bool(one.get("served")),
                "Storage": bool(one.get("storage")),
                "Deprecated": bool(one.get("deprecated")),
                "DeprecationWarning": one.get("deprecationWarning"),
                "Schema": None
                if "schema" in common or one.get("schema") is None
                else Struct(OpenAPIV3Schema=go_schema(one["schema"].get("openAPIV3Schema"))),
                "Subresources": None
                if "subresources" in common
                else _go_subresources(one.get("subresources")),
                "AdditionalPrinterColumns": None
                if "additionalPrinterColumns" in common
                else [_go_column(column) for column in one.get("additionalPrinterColumns") or ()] or None,
                "SelectableFields": None
                if "selectableFields" in common
                else [
                    Struct(JSONPath=path.get("jsonPath") or "") for path in one.get("selectableFields") or ()
                ]
                or None,
            }
        )
        for one in versions
    ]


def _go_subresources(below: dict[str, Any] | None) -> Any:
    if below is None:
        return None
    scale = below.get("scale")
    return Struct(
        Status={} if below.get("status") is not None else None,
        Scale=scale
        and Struct(
            SpecReplicasPath=scale.get("specReplicasPath") or "",
            StatusReplicasPath=scale.get("statusReplicasPath") or "",
            LabelSelectorPath=scale.get("labelSelectorPath"),
        ),
    )


def _go_column(column: dict[str, Any]) -> Struct:
    return Struct(
        Name=column.get("name") or "",
        Type=column.get("type") or "",
        Format=column.get("format") or "",
        Description=column.get("description") or "",
        Priority=column.get("priority") or 0,
        JSONPath=column.get("jsonPath") or "",
    )
