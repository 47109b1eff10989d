"""What our server says to the cases of ``crd_cases.py``, in the form in which the real one's are recorded.

An answer is a code, then what was stored of the field, or the causes of the refusal, sorted: Go walks maps in
any order.  Warnings come last.
"""

from __future__ import annotations

import copy
from typing import Any

from setpoint.server.registry.conform import WrongType, wrong_type
from setpoint.server.registry.crd import definition
from setpoint.server.registry.crd.resource import CustomStrategy, resources_of
from setpoint.server.registry.crd.schemas import Schema
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.registry.validation.metadata import metadata_errors
from setpoint.server.statuses import FieldError
from tests.server.registry.crd_cases import GROUP, crd

Answer = list[Any]


def field_crd(fields: dict[str, Schema]) -> Schema:
    """A definition with a field of the spec for every case."""
    return crd({"type": "object", "properties": fields})


def of_field(name: str, value: Any) -> Object:
    """An object with one field."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
        "spec": {name: copy.deepcopy(value)},
    }


def causes(errors: list[FieldError]) -> list[list[str]]:
    """Each once, in order: the field, the reason and the text."""
    return sorted([one.cause["field"], one.cause["reason"], one.cause["message"]] for one in errors)


class Ours:
    """Answers for one definition."""

    def __init__(self, definition: Schema) -> None:
        self.resource: Resource = resources_of(definition)[0]
        assert isinstance(self.resource.strategy, CustomStrategy)
        self.strategy = self.resource.strategy

    def create(self, name: str, value: Any) -> Answer:
        obj = of_field(name, value)
        try:
            decoded = self.strategy.conform(obj)
        except WrongType as error:
            return [400, wrong_type(error, "Thing", "v1").message]
        self.strategy.default(obj)
        self.strategy.prepare_create(obj)
        errors = self.strategy.validate_create(obj)
        return self._answer(201, name, obj, errors, decoded.unknown)

    def update(self, name: str, old: Any, new: Any) -> Answer:
        before = of_field(name, old) if old is not None else of_field("none", None)
        self.strategy.conform(before)
        self.strategy.default(before)
        after = of_field(name, new)
        decoded = self.strategy.conform(after)
        self.strategy.default(after)
        before["metadata"]["generation"] = after["metadata"]["generation"] = 1
        self.strategy.prepare_update(after, before, "")
        found = self.strategy.validate_update(after, before, "")
        errors = [one for one in found if not one.is_excused]
        warnings = [str(one) for one in found if one.is_excused] + self.strategy.warnings(after, before)
        return self._answer(200, name, after, errors, decoded.unknown + warnings)

    def _answer(
        self, code: int, name: str, obj: Object, errors: list[FieldError], unknown: list[str]
    ) -> Answer:
        if errors:
            return [422, causes(errors), sorted(unknown)]
        return [code, self.strategy.emit(obj).get("spec", {}).get(name), sorted(unknown)]


def define(body: Schema, definitions: Resource) -> Answer:
    """What is said to a definition."""
    obj = copy.deepcopy(body)
    try:
        obj = definitions.strategy.conform(obj).object
    except WrongType as error:
        return [400, wrong_type(error, "CustomResourceDefinition", "v1").message]
    definitions.strategy.default(obj)
    definitions.strategy.prepare_create(obj)
    errors = [*metadata_errors(obj, definitions), *definition.errors(obj)]
    if errors:
        return [422, causes(errors), []]
    return [201, None, sorted(definition.warnings(obj, None))]
