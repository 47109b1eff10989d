"""What objects are: plain data, no I/O, no asyncio.

Define a kind with ``CustomResource`` and ``Model``, say more about its fields with the markers (``Bounds``,
``Rule``, …), and get its definition with ``crd_of``.  ``setpoint.api.yaml`` reads and writes YAML.

Everything is fetched when it is first used, as at the front door: the server needs little of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import field

if TYPE_CHECKING:
    from setpoint.api.crd import CustomResource, PrinterColumn, ScalePaths, crd_of
    from setpoint.api.forms import Form, key_of, metadata_only, untyped
    from setpoint.api.int_or_string import IntOrString, scaled_value
    from setpoint.api.markers import (
        Bounds,
        Description,
        EmbeddedResource,
        Format,
        Immutable,
        Length,
        ListType,
        MapType,
        Nullable,
        Pattern,
        PreserveUnknown,
        Rule,
    )
    from setpoint.api.meta import (
        Condition,
        LabelSelector,
        LabelSelectorRequirement,
        ListMeta,
        ManagedFieldsEntry,
        ObjectMeta,
        OwnerReference,
        PartialObjectMetadata,
        Status,
        find_condition,
        is_true,
        set_condition,
    )
    from setpoint.api.model import Model, Object, as_read, decode, encode, from_wire, merged, to_wire
    from setpoint.api.names import GroupVersionKind, Key, Resource
    from setpoint.api.patches import (
        JsonPatch,
        MergePatch,
        StrategicPatch,
        apply_merge,
        apply_patch,
        diff,
        merge_diff,
        patch_between,
    )
    from setpoint.api.quantity import Quantity
    from setpoint.api.schema import schema_of
    from setpoint.api.selectors import FieldSelection, LabelSelection
    from setpoint.api.times import Duration, MicroTime, Time

__all__ = [
    "Bounds",
    "Condition",
    "CustomResource",
    "Description",
    "Duration",
    "EmbeddedResource",
    "FieldSelection",
    "Form",
    "Format",
    "GroupVersionKind",
    "Immutable",
    "IntOrString",
    "JsonPatch",
    "Key",
    "LabelSelection",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Length",
    "ListMeta",
    "ListType",
    "ManagedFieldsEntry",
    "MapType",
    "MergePatch",
    "MicroTime",
    "Model",
    "Nullable",
    "Object",
    "ObjectMeta",
    "OwnerReference",
    "PartialObjectMetadata",
    "Pattern",
    "PreserveUnknown",
    "PrinterColumn",
    "Quantity",
    "Resource",
    "Rule",
    "ScalePaths",
    "Status",
    "StrategicPatch",
    "Time",
    "apply_merge",
    "apply_patch",
    "as_read",
    "crd_of",
    "decode",
    "diff",
    "encode",
    "field",
    "find_condition",
    "from_wire",
    "is_true",
    "key_of",
    "merge_diff",
    "merged",
    "metadata_only",
    "patch_between",
    "scaled_value",
    "schema_of",
    "set_condition",
    "to_wire",
    "untyped",
]

_HOMES = {
    "crd": ("CustomResource", "PrinterColumn", "ScalePaths", "crd_of"),
    "forms": ("Form", "key_of", "metadata_only", "untyped"),
    "int_or_string": ("IntOrString", "scaled_value"),
    "markers": (
        "Bounds",
        "Description",
        "EmbeddedResource",
        "Format",
        "Immutable",
        "Length",
        "ListType",
        "MapType",
        "Nullable",
        "Pattern",
        "PreserveUnknown",
        "Rule",
    ),
    "meta": (
        "Condition",
        "LabelSelector",
        "LabelSelectorRequirement",
        "ListMeta",
        "ManagedFieldsEntry",
        "ObjectMeta",
        "OwnerReference",
        "PartialObjectMetadata",
        "Status",
        "find_condition",
        "is_true",
        "set_condition",
    ),
    "model": ("Model", "Object", "as_read", "decode", "encode", "from_wire", "merged", "to_wire"),
    "names": ("GroupVersionKind", "Key", "Resource"),
    "patches": (
        "JsonPatch",
        "MergePatch",
        "StrategicPatch",
        "apply_merge",
        "apply_patch",
        "diff",
        "merge_diff",
        "patch_between",
    ),
    "quantity": ("Quantity",),
    "schema": ("schema_of",),
    "selectors": ("FieldSelection", "LabelSelection"),
    "times": ("Duration", "MicroTime", "Time"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"setpoint.api.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
