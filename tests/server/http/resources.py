"""Resources for tests that look at nothing but their names."""

from __future__ import annotations

from typing import Any, cast

from setpoint.server.registry.resources import PlainStrategy, Resource, Strategy
from setpoint.server.registry.types import Type

ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def resource(group: str, version: str, plural: str, kind: str, **more: Any) -> Resource:
    strategy = cast("Strategy", PlainStrategy())
    given = {"namespaced": True, "verbs": ALL, "type": Type("struct"), "strategy": strategy, **more}
    return Resource(group, version, plural, kind, **given)
