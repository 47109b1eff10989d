"""What a real server said: its schemas and resources, and objects it answered with."""

from __future__ import annotations

import gzip
import importlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from setpoint import kube
from setpoint.api.model import Object
from setpoint.api.names import GroupVersionKind, Resource

DATA = Path(__file__).parent / "data"
PACKAGE = Path(kube.__file__).parent


@cache
def kubernetes() -> dict[str, Any]:
    """``version``, ``schemas`` and ``resources``; ``make models`` writes them."""
    said: dict[str, Any] = json.loads(gzip.decompress((DATA / "kubernetes.json.gz").read_bytes()))
    return said


def resources() -> list[Resource]:
    return msgspec.convert(kubernetes()["resources"], list[Resource])


@cache
def objects() -> list[dict[str, Any]]:
    """Objects of many kinds and shapes, as the server wrote them."""
    lines = gzip.decompress((DATA / "objects.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def modules() -> list[str]:
    """Every generated module: ``setpoint.kube.apps.v1``."""
    return [f"setpoint.kube.{file.parent.name}.{file.stem}" for file in sorted(PACKAGE.glob("*/v*.py"))]


@cache
def kinds() -> dict[GroupVersionKind, type[Object]]:
    """Every generated kind."""
    found = (
        each
        for name in modules()
        for each in vars(importlib.import_module(name)).values()
        if isinstance(each, type) and issubclass(each, Object) and each.__module__ == name
    )
    return {each.gvk: each for each in found}
