"""Requests that were once recorded, replayed: a life of many kinds, and the least that each kind needs.

The life is of 305 exchanges with a real server, in three parts: objects of all sorts, webhooks and policies,
and what is left when the past is forgotten.  Each is here (``exchange`` is its number) with the code that it
was answered with; between them stand, quietly, requests that were not recorded, and waits for what is late.
One is not as it was: a list that a server refused while it was getting ready is asked for until it is.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.conformance.asking import Json, Script, Step

_FILE: Final = Path(__file__).parent.parent / "recorded" / "requests.json.xz"


@cache
def requests() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lzma.decompress(_FILE.read_bytes()))
    return found


def _golden() -> list[Step]:
    steps = [
        Step(
            one["method"],
            one["path"],
            one.get("text"),
            name=one.get("name", ""),
            headers=one["headers"],
            content_type=one["headers"].get("Content-Type", ""),
            until=one.get("until", 0),
            until_says=f"{one['until_true']}=True" if "until_true" in one else "",
            is_quiet=one.get("is_quiet", False),
            is_anonymous=one.get("is_anonymous", False),
            only=tuple(one.get("only", ())),
        )
        for one in requests()["golden"]
    ]
    # What is there from the beginning comes last: it has many uids, and others are numbered after them.
    return sorted(steps, key=lambda step: step.path.endswith(("/clusterroles", "/clusterrolebindings")))


def codes() -> dict[str, int]:
    """What each exchange was answered with, by the name of its step."""
    return {one["name"]: one["status"] for one in requests()["golden"] if "status" in one}


def exchanges() -> list[int]:
    """The numbers of those that are replayed."""
    return sorted(one["exchange"] for one in requests()["golden"] if "exchange" in one)


_PLURALS: Final = {"Endpoints": "endpoints", "NetworkPolicy": "networkpolicies", "Ingress": "ingresses"}
_CLUSTER: Final = {
    "StorageClass", "PersistentVolume", "Node", "PriorityClass", "IngressClass", "ClusterRole", "APIService",
    "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
}  # fmt: skip


def path_of(obj: Json) -> str:
    version, kind = obj["apiVersion"], obj["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    lower = kind.lower()
    plural = _PLURALS.get(kind) or (f"{lower}es" if lower.endswith("ss") else f"{lower}s")
    return f"{root}/{plural}" if kind in _CLUSTER else f"{root}/namespaces/${{namespace}}/{plural}"


def _defaulting() -> list[Step]:
    steps = []
    for obj in requests()["defaulting"]:
        text = json.dumps(obj).replace('"namespace": "default"', '"namespace": "${namespace}"')
        name = f"{obj['kind']} {obj['metadata']['name'].replace('.', '-')}"
        steps.append(Step("POST", path_of(obj), text, name=name))
        if obj["kind"] != "APIService":  # somebody looks whether it is there, and says so in its status
            steps.append(Step("GET", f"{path_of(obj)}/{obj['metadata']['name']}", name=f"{name} read"))
    return steps


SCRIPTS = [Script("a recorded life", _golden(), is_alone=True), Script("defaulting", _defaulting())]
