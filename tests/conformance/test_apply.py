"""What ``changes`` says, held against a real kube-apiserver, whose versions tell what an apply did."""

from __future__ import annotations

import copy
import json
import os
import random
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from setpoint.api import crd_of
from setpoint.client import Client, Config
from setpoint.controller.apply import changes
from setpoint.errors import ApiError
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.testing.kube import ControlPlane
from setpoint.testing.waiting import eventually
from tests.controller.intents import MANAGER, QUIET, RECORDED, UNSURE, Garden, recorded

Wire = dict[str, Any]


@asynccontextmanager
async def connected(kube: ControlPlane) -> AsyncIterator[tuple[Client, str]]:
    async with Client(Config.from_kubeconfig(kube.kubeconfig)) as client:
        namespace = f"test-{secrets.token_hex(4)}"
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        await client.apply(crd_of(Garden), force=True)
        await eventually(lambda: is_established(client))
        await eventually(lambda: is_listed(client))
        yield client, namespace


async def is_established(client: Client) -> bool:
    definition = await client.get(CustomResourceDefinition, "gardens.demo.setpoint.dev")
    conditions = definition.status.conditions or []
    return any(each.type == "Established" and each.status == "True" for each in conditions)


async def is_listed(client: Client) -> bool:
    await client.list(Garden)
    return True


async def apply(client: Client, namespace: str, intent: Wire) -> Wire:
    return await client.apply(intent, namespace=namespace, force=True, field_manager=MANAGER)


def version(obj: Wire) -> str:
    return str(obj["metadata"]["resourceVersion"])


async def test_what_is_recorded_is_what_the_server_answers(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        answers = {name: await apply(client, namespace, intent) for name, intent in (QUIET | UNSURE).items()}
    if os.environ.get("RECORD"):
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text(json.dumps(answers, indent=1) + "\n")
    known = recorded()
    assert answers.keys() == known.keys()
    for name, answer in answers.items():
        assert fields(answer) == fields(known[name]), name


def fields(obj: Wire) -> list[Wire]:
    return [each["fieldsV1"] for each in obj["metadata"].get("managedFields", ())]


@pytest.mark.parametrize("name", QUIET)
async def test_at_its_fixed_point_an_intent_is_known_to_change_nothing(kube: ControlPlane, name: str) -> None:
    async with connected(kube) as (client, namespace):
        intent = QUIET[name]
        first = await apply(client, namespace, intent)
        assert changes(intent, first, MANAGER) == []
        assert version(await apply(client, namespace, intent)) == version(first)


async def test_nothing_is_ever_taken_for_unchanged_that_an_apply_changes(kube: ControlPlane) -> None:
    """Random intents and random meddling: whenever we would not have sent, sending must change nothing."""
    rng = random.Random(7)
    rounds = quiet = loud = 0
    async with connected(kube) as (client, namespace):
        for name in ("deployment", "service", "config map", "garden", "service account"):
            intent = copy.deepcopy(QUIET[name])
            intent["metadata"].pop("finalizers", None)
            live = await apply(client, namespace, intent)
            for _ in range(60):
                choice = rng.random()
                try:
                    if choice < 0.3:
                        live = await meddle(client, namespace, live, rng)
                    elif choice < 0.7:
                        intent = mutated(intent if rng.random() < 0.5 else QUIET[name], rng)
                except ApiError:
                    continue
                expected = changes(intent, live, MANAGER)
                try:
                    answer = await apply(client, namespace, intent)
                except ApiError:
                    continue
                rounds += 1
                if not expected:
                    quiet += 1
                    assert version(answer) == version(live), (intent, live, answer)
                elif version(answer) != version(live):
                    loud += 1
                live = answer
    assert quiet > rounds / 10, "it must be able to say no-op"
    assert loud > rounds / 10, "and there must be changes to miss"


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for step, below in children:
        yield from nodes(below, (*path, step))


def mutated(intent: Wire, rng: random.Random) -> Wire:
    """The intent with a field less, another value, or another order somewhere."""
    made = copy.deepcopy(intent)
    made["metadata"].pop("finalizers", None)
    paths = [path for path in nodes(made) if path and path[0] not in ("apiVersion", "kind")]
    paths = [path for path in paths if path not in {("metadata",), ("metadata", "name")}]
    if not paths:
        return made
    *holders, last = rng.choice(paths)
    holder: Any = made
    for step in holders:
        holder = holder[step]
    value = holder[last]
    match rng.randrange(3):
        case 0:
            del holder[last]
        case 1 if isinstance(value, list):
            rng.shuffle(value)
        case 1 if isinstance(value, str):
            holder[last] = value + "x"
        case 1 if isinstance(value, int):
            holder[last] = value + 1
        case 2 if isinstance(value, list) and value:
            value.append(copy.deepcopy(value[0]))
        case 2 if isinstance(value, dict):
            value["x"] = "y"
    return made


async def meddle(client: Client, namespace: str, live: Wire, rng: random.Random) -> Wire:
    """Somebody else changes the object."""
    theirs = mutated({name: value for name, value in live.items() if name != "status"}, rng)
    theirs["metadata"] = {
        **live["metadata"],
        **{k: theirs["metadata"].get(k) for k in ("labels", "annotations")},
    }
    theirs["metadata"] = {name: value for name, value in theirs["metadata"].items() if value is not None}
    return await client.update(theirs, namespace=namespace, field_manager="someone-else")
