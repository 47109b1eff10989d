"""What ``tools/facts/record.py`` kept of a real kube-apiserver, and of Go's own writer of protobuf."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

from setpoint.server.registry.facts import resources, type_of
from setpoint.server.registry.types import Type

RECORDED = Path(__file__).parent / "recorded"


def rows(name: str) -> list[dict[str, Any]]:
    text = lzma.decompress((RECORDED / f"{name}.jsonl.xz").read_bytes())
    return [json.loads(line) for line in text.splitlines()]


def kind_of(obj: dict[str, Any]) -> tuple[str, str, str]:
    group, _, version = obj["apiVersion"].rpartition("/")
    return group, version, obj["kind"]


def type_of_object(obj: dict[str, Any]) -> Type:
    return type_of(*kind_of(obj))


@cache
def _served() -> dict[tuple[str, str, str], tuple[str, str, str]]:
    return {(one.group, one.version, one.plural): (one.group, one.version, one.kind) for one in resources()}


def kind_at(path: str) -> tuple[str, str, str]:
    """The kind that is served at a path such as ``/api/v1/namespaces/default/pods``."""
    _, root, *rest = path.split("/")
    group = rest.pop(0) if root == "apis" else ""
    return _served()[group, rest[0], rest[-1]]
