"""What a real kube-apiserver did, done again: ownership, apply and patches, from its recordings.

``tests/conformance/managed_fields.py`` and ``patches.py`` made them, and hold the same against a live server.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from setpoint.api.patches import apply_patch
from setpoint.server.registry.managed.typed import field_type
from setpoint.server.registry.patching import patched
from setpoint.server.registry.resources import Resource
from setpoint.server.registry.types import Type
from setpoint.server.statuses import StatusError
from tests.server.registry.managed_steps import Object, differences, misses, taken, type_for

HERE = Path(__file__).parent / "recorded"
MEDIA = {"merge": "merge-patch", "strategic": "strategic-merge-patch", "json": "json-patch"}


def recorded(name: str) -> list[Any]:
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


LIVES = recorded("managed_fields.jsonl")
PATCHED = recorded("patches.jsonl")


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life["kind"])
def test_every_step_of_an_objects_life_ends_as_it_did(life: Object) -> None:
    read: Any = None
    reads = [read := apply_patch(change, read) for change in life["reads"]]
    for number, step in enumerate(life["steps"]):
        before, after = reads[number], reads[number + 1]
        step.setdefault("after", after)
        mine = taken(step, before, life["apiVersion"], life["kind"])
        assert not differences(step, mine, after), f"step {number}: {step}"


@pytest.mark.parametrize("table", PATCHED, ids=lambda table: table["live"]["kind"])
def test_every_patch_does_what_it_did(table: Object) -> None:
    live = table["live"]
    resource = cast(
        "Resource",
        SimpleNamespace(is_custom=live["kind"] == "Thing", type=type_for(live["apiVersion"], live["kind"])),
    )
    for case in table["cases"]:
        try:
            mine = patched(
                live, json.dumps(case["patch"]).encode(), f"application/{MEDIA[case['kind']]}+json", resource
            )
        except StatusError as refused:
            mine = refused.status
        if case["code"] >= 400:
            assert mine == case["after"], case
            continue
        metadata = {name: value for name, value in live["metadata"].items() if name not in UNDECIDED}
        after = apply_patch(case["changed"], {**live, "metadata": metadata})
        mine["metadata"] = {name: value for name, value in mine["metadata"].items() if name not in UNDECIDED}
        mine.pop("status", None)
        assert not misses(after, known(mine, resource.type)), case


def known(value: Any, type_: Type) -> Any:
    """A value without the fields that its type has not: whoever decodes it drops them."""
    if isinstance(value, dict) and type_.form == "struct":
        return {
            name: known(below, field_type(type_, name) or type_)
            for name, below in value.items()
            if field_type(type_, name) is not None
        }
    if isinstance(value, list) and type_.item is not None:
        return [known(item, type_.item) for item in value]
    return value


UNDECIDED = ("managedFields", "generation", "resourceVersion")
