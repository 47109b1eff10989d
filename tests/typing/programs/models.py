"""What a type checker knows about models, and which mistakes it finds.

Each ``type: ignore`` is a mistake that must be found: strict mypy complains of one that is not needed.
"""

from __future__ import annotations

from typing import Any, assert_type

from setpoint.api import (
    Condition,
    CustomResource,
    Model,
    Object,
    ObjectMeta,
    PrinterColumn,
    Quantity,
    Rule,
    Time,
    as_read,
    crd_of,
    decode,
    encode,
    field,
    from_wire,
    is_true,
    merged,
    schema_of,
    set_condition,
    to_wire,
)


class Port(Model):
    number: int = 80
    name: str  # a field without default may follow one with


class ShopSpec(Model, rules=[Rule("self.size > 0")]):
    size: int = 1
    image: str
    ports: list[Port] = []
    limits: dict[str, Quantity] = field(default_factory=dict)
    cluster_ip: str | None = field(name="clusterIP", default=None)


class ShopStatus(Model):
    ready: bool = False
    conditions: list[Condition] = []


class Shop(
    CustomResource,
    group="shop.example.com",
    version="v1",
    short_names=["sh"],
    printer_columns=[PrinterColumn("Size", ".spec.size")],
):
    spec: ShopSpec
    status: ShopStatus = ShopStatus()


class Plain(Object, group="shop.example.com", version="v1", plural="plain"):
    data: dict[str, str] = {}


shop = Shop(metadata=ObjectMeta(name="a"), spec=ShopSpec(image="i", ports=[Port(name="web")]))

assert_type(shop.spec.size, int)
assert_type(shop.metadata.name, str | None)
assert_type(shop.spec.ports, list[Port])
assert_type(Shop.decode(encode(shop)), Shop)
assert_type(Shop.resource.plural, str)
assert_type(from_wire(Shop, to_wire(shop)), Shop)
assert_type(decode(list[Port], b"[]"), list[Port])
assert_type(merged(shop), bytes)
assert_type(as_read(shop), bytes | None)
assert_type(crd_of(Shop), dict[str, Any])
assert_type(schema_of(Port), dict[str, Any])
assert_type(is_true(shop.status.conditions, "Ready"), bool)

now = Time.parse("2026-01-01T00:00:00Z")
set_condition(shop.status.conditions, Condition(type="Ready", status="True", reason="Up"), now=now)


def mistakes() -> None:
    Shop()  # type: ignore[call-arg]
    Shop(spec=ShopSpec())  # type: ignore[call-arg]
    ShopSpec(image=1)  # type: ignore[arg-type]
    ShopSpec(image="i", colour="red")  # type: ignore[call-arg]
    Port(80, "web")  # type: ignore[call-arg]
    shop.spec.size = "large"  # type: ignore[assignment]
    shop.satus = ShopStatus()  # type: ignore[attr-defined]
    shop.metadata.name.upper()  # type: ignore[union-attr]
    is_true(shop.spec.conditions, "Ready")  # type: ignore[attr-defined]
    set_condition(shop.status.conditions, Condition(type="A", status="True"), now=now)  # type: ignore[call-arg]
    crd_of(Plain)  # type: ignore[arg-type]
