"""A kind for the tests of the cache, and its objects as bytes."""

from __future__ import annotations

import json
from typing import Any

from setpoint.api.model import Model, Object
from setpoint.api.wire import Snapshot


class ThingSpec(Model):
    node: str | None = None
    images: list[str] | None = None


class Thing(Object, group="demo.setpoint.dev", version="v1", plural="things"):
    spec: ThingSpec = ThingSpec()


def thing(
    name: str = "a",
    version: int | str = 1,
    *,
    namespace: str = "shop",
    uid: str = "",
    spec: Any = None,
    **metadata: Any,
) -> dict[str, Any]:
    """An object as a server sends it."""
    return {
        "apiVersion": "demo.setpoint.dev/v1",
        "kind": "Thing",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-of-{name}",
            "resourceVersion": str(version),
            **metadata,
        },
        "spec": spec or {},
    }


def snapshot(name: str = "a", version: int | str = 1, **more: Any) -> Snapshot:
    return Snapshot.of(json.dumps(thing(name, version, **more)).encode())
