"""The kind that mutants and their twins are for, and what a user does with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from setpoint.api import Condition, CustomResource, Model, ObjectMeta, crd_of
from setpoint.api.names import GroupVersionKind
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.manager import Manager
from setpoint.operator import Operator
from setpoint.testing.proof.plans import Change, Create, Delete, Step

API = "test.setpoint.dev/v1"


class WidgetSpec(Model):
    replicas: int = 1
    text: str = "a"


class WidgetStatus(Model):
    phase: str = ""
    done: str = ""
    count: int = 0
    attempts: int = 0
    id: str = ""
    conditions: list[Condition] = []


class Widget(CustomResource, group="test.setpoint.dev", version="v1"):
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus = WidgetStatus()


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 1, "text": "a", **spec},
    }


def create(name: str = "w", **spec: Any) -> Step:
    return Create(widget(name, **spec))


def change(name: str = "w", **spec: Any) -> Step:
    return Change(API, "Widget", name, {"spec": spec})


def delete(name: str = "w") -> Step:
    return Delete(API, "Widget", name)


def config_map(name: str, **metadata: Any) -> Step:
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", **metadata},
    }
    return Create(obj)


def change_map(name: str, patch: dict[str, Any]) -> Step:
    return Change("v1", "ConfigMap", name, patch)


def delete_map(name: str) -> Step:
    return Delete("v1", "ConfigMap", name)


def child(owner: Widget, suffix: str = "", **data: str) -> ConfigMap:
    name = f"{owner.metadata.name}{suffix}"
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=owner.metadata.namespace), data=data)


def operator_of(
    reconcile: Callable[[Widget, Context], Any],
    clean_up: Callable[[Widget, Context], Any] | None = None,
    *,
    owns: bool = True,
    **options: Any,
) -> Operator:
    """An operator of one function, and perhaps a clean-up."""
    operator = Operator("widgets")
    operator.controller(Widget, owns=[ConfigMap] if owns else [], **options)(reconcile)
    if clean_up is not None:
        operator.finalizer(Widget, name="test.setpoint.dev/widget")(clean_up)
    return operator


class Longhand:
    """An operator that adds itself to a manager by hand."""

    name = "widgets"

    def __init__(self, add: Callable[[Manager], object], kind: type[CustomResource] = Widget) -> None:
        self.add_to = add
        self._kind = kind
        self.kinds = [GroupVersionKind("test.setpoint.dev", "v1", kind.__name__)]

    def crds(self) -> list[dict[str, Any]]:
        return [crd_of(self._kind)]
