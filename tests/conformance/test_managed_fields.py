"""Ownership, apply and patches as our functions decide them, held against a real kube-apiserver."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from setpoint.server.registry.patching import patched
from setpoint.server.registry.resources import Resource
from setpoint.server.statuses import StatusError
from setpoint.testing.kube import ControlPlane
from tests.conformance import patches
from tests.conformance.managed_fields import KINDS, Kind, Life, Server, live, run, scripts
from tests.conformance.patches import BASES, MEDIA
from tests.server.registry.managed_steps import Object, differences, taken, type_for


@pytest.fixture(scope="module")
def server(kube: ControlPlane) -> Iterator[Server]:
    server = Server(kube)
    yield server
    server.close()


def check(life: Life) -> None:
    for number, step in enumerate(life.steps):
        before, after = life.reads[number], life.reads[number + 1]
        mine = taken(step, before, life.kind.api_version, life.kind.kind)
        wrong = differences(step, mine, after or {})
        assert not wrong, f"step {number} of {life.kind.kind}: {json.dumps(step)[:2000]}: {wrong}"
        # A custom object's is sorted by name, all over, and so is one that went through a scale.
        if step["code"] < 400 and "scale" not in life.kind.subresources:
            assert written(mine) == written(after or {}), "fields are written in their order"


def written(obj: Object) -> list[str]:
    """The sets of an object, as they are written."""
    return sorted(json.dumps(entry["fieldsV1"]) for entry in obj["metadata"].get("managedFields", []))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_managers_come_to_own_what_they_own_on_the_real_server(server: Server, kind: Kind, seed: int) -> None:
    life = run(server, kind, f"random-{seed}", random.Random(seed), 14)
    assert len(life.steps) > 5
    check(life)


@pytest.mark.parametrize("name", scripts())
def test_what_chance_would_hardly_make_ends_as_on_the_real_server(server: Server, name: str) -> None:
    kind, writes = scripts()[name]
    check(live(server, name, kind, writes))


@pytest.mark.parametrize("kind", MEDIA)
@pytest.mark.parametrize("path", BASES, ids=lambda path: path.rpartition("/")[2])
def test_patches_do_what_they_do_on_the_real_server(server: Server, path: str, kind: str) -> None:
    base = BASES[path]
    there = patches.prepared(server, path)
    is_custom = base["kind"] == "Thing"
    resource = cast(
        "Resource", SimpleNamespace(is_custom=is_custom, type=type_for(base["apiVersion"], base["kind"]))
    )
    rng = random.Random(5)
    for _ in range(1 if is_custom and kind == "strategic" else 60):
        patch = patches.patch_of(rng, kind, base["kind"])
        mine = performed(there, patch, kind, resource)
        if mine["kind"] == "Status":
            assert is_refused_so(server, path, kind, patch, mine), (patch, mine)
            continue
        case = patches.performed(server, path, kind, patch)
        code, back = patches.written_back(server, path, mine)
        if case["code"] == 200:
            assert code == 200, (patch, back)
            assert patches.essential(back) == patches.essential(case["after"]), patch
        elif case["code"]:
            assert code >= 400, (patch, mine, case["after"])


def performed(there: Object, patch: Any, kind: str, resource: Resource) -> Object:
    try:
        return patched(there, json.dumps(patch).encode(), MEDIA[kind], resource)
    except StatusError as refused:
        return refused.status


def is_refused_so(server: Server, path: str, kind: str, patch: Any, status: Object) -> bool:
    """Of several mistakes in a patch the real server finds one or the other first: it is asked again."""
    for _ in range(200):
        case = patches.performed(server, path, kind, patch)
        if case["code"] == 0 or case["after"] == status:  # 0: it fell over
            return True
    return False
