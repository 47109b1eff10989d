"""Requests that nobody thought of: valid ones of every kind, bent somewhere, and bytes by chance.

Whatever it is, the answer is Kubernetes' and the log stays empty.  What is tried is the same every time, and
a failure is shrunk to the smallest request that shows it.  ``SETPOINT_FUZZ`` says how many times as much to
try.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import logging
import os
import random
import traceback
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.api.yaml import dump
from setpoint.server.registry.facts import resources
from setpoint.server.server import ApiServer
from tests.server.http.asking import DEFINITIONS, MAPS, Asking, Got, config_map, until_served
from tests.server.registry.recordings import kind_of, rows
from tests.server.test_limits import (
    APPLY,
    FOOS,
    JSON,
    JSON_PATCH,
    MERGE,
    PROTOBUF,
    STRATEGIC,
    YAML,
    definition,
    is_proper,
)

TIMES = int(os.environ.get("SETPOINT_FUZZ", "1"))
MEDIA = (JSON, YAML, PROTOBUF, MERGE, JSON_PATCH, STRATEGIC, APPLY)


def often(examples: int) -> settings:
    return settings(
        derandomize=True,
        database=None,
        max_examples=examples * TIMES,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


# ── The server ──────────────────────────────────────────────────────────────────────────────────────


class Logged(logging.Handler):
    """What was logged that should not have been."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def taken(self) -> str:
        told = ""
        for record in self.records:
            told += record.getMessage()
            if record.exc_info and record.exc_info[1]:
                told += "\n" + "".join(traceback.format_exception(record.exc_info[1])[-3:])
        self.records.clear()
        return told


class World:
    """One server for all: its loop stands still between two requests."""

    def __init__(self, runner: asyncio.Runner, ask: Asking, logged: Logged) -> None:
        self._runner = runner
        self._ask = ask
        self._logged = logged

    def ask(
        self, method: str, target: str, body: bytes | None = None, media: str = JSON, accept: str = ""
    ) -> Got:
        headers = {"Accept": accept} if accept else {}
        if body is not None:
            headers["Content-Type"] = media
        got = self._runner.run(self._ask(method, target, body, headers))
        told = self._logged.taken()
        assert not told, told
        assert is_proper(got), (got.status, got.body[:500])
        return got


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    logged = Logged()
    logging.getLogger().addHandler(logged)
    stack = AsyncExitStack()

    async def begin() -> Asking:
        server = await stack.enter_async_context(ApiServer(source=random.Random(7)))
        ask = Asking(server.transport())
        await ask.create(MAPS, config_map("a", k="v"))
        await ask.create(DEFINITIONS, definition("foos", "Foo"))
        await until_served(ask, FOOS)
        foo = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {"b": [1]}}
        await ask.create(FOOS, foo)
        for each in CORPUS:
            await ask("POST", each.collection, each.obj)
        return ask

    with asyncio.Runner() as runner:
        yield World(runner, runner.run(begin()), logged)
        runner.run(stack.aclose())
    logging.getLogger().removeHandler(logged)


# ── What is asked ───────────────────────────────────────────────────────────────────────────────────


class Kind(NamedTuple):
    """A kind with a valid object, and one in which every field is set, as JSON and as protobuf."""

    collection: str
    obj: dict[str, Any]
    full: dict[str, Any]
    message: bytes

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.obj['metadata'].get('name', 'a')}"


def _corpus() -> list[Kind]:
    sent = {kind_of(row["sent"]): row["sent"] for row in rows("defaulted")}
    full = {kind_of(row["object"]): row for row in rows("messages")}
    found = []
    for each in resources():
        kind = (each.group, each.version, each.kind)
        root = f"/apis/{each.group}" if each.group else "/api"
        within = "/namespaces/default" if each.namespaced else ""
        row = full[kind]
        plain = {"apiVersion": row["object"]["apiVersion"], "kind": each.kind, "metadata": {"name": "a"}}
        found.append(
            Kind(
                f"{root}/{each.version}{within}/{each.plural}",
                sent.get(kind, plain),
                row["object"],
                base64.b64decode(row["protobuf"]),
            )
        )
    return found


CORPUS = _corpus()

ODD: list[Any] = [
    *(None, True, 0, 1, -1, 1.5, 2**31, 2**63, 2**64, -(2**63) - 1, 1e300),
    *("", "a", "A", "é", "\0", "\n", "..", "%", "1", "a/b", "-1", "*", "{}", "a=b", "0x1", "x" * 300),
    *("1Gi", "1e9999Gi", "-1h", "2000-01-01T00:00:00Z", "9" * 400, "10%", "a.b/c", "1.2.3.4/33"),
    *([], [None], [[]], [{}], ["a", "a"], [1], [{"name": "a"}, {"name": "a"}], [{"name": 1}]),
    *({}, {"": ""}, {"a": None}, {"a": {"b": []}}, {"$patch": "delete"}, {"f:a": {}}, {"name": "a"}),
]
odd: st.SearchStrategy[Any] = st.sampled_from(ODD)
kinds = st.sampled_from(CORPUS)
kept = st.sampled_from(["", "&dryRun=All"])
options = st.sampled_from(
    ["", "&force=true", "&fieldValidation=Strict", "&fieldValidation=Ignore", "&dryRun=x", "&pretty=1"]
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Everything in a value: what holds it, and where."""
    found: list[tuple[Any, Any]] = []
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        found.append((value, key))
        found += places(inner)
    return found


@st.composite
def bent(draw: st.DrawFn, value: Any) -> Any:
    """A value with something else in up to three places."""
    made = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        found = places(made)
        if not found:
            break
        holder, key = found[draw(st.integers(0, len(found) - 1))]
        match draw(st.integers(0, 9)):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 2 if isinstance(holder, dict):
                name = draw(st.sampled_from(["", "a", "x" * 300, "é", "$patch", "metadata"]))
                holder[name] = copy.deepcopy(holder[key])
            case _:
                holder[key] = copy.deepcopy(draw(odd))
    return made


@st.composite
def torn(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes, cut or changed in a few places."""
    made = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(made) - 1, 0)))
        match draw(st.integers(0, 3)):
            case 0:
                del made[at:]
            case 1:
                made[at : at + 1] = draw(st.binary(max_size=4))
            case 2:
                made[at:at] = made[at : at + draw(st.integers(1, 30))]
            case _:
                made[at : at + draw(st.integers(1, 30))] = b""
    return bytes(made)


@often(500)
@given(st.data())
def test_an_object_of_any_kind_with_odd_values_is_taken_or_refused(world: World, data: st.DataObject) -> None:
    kind = data.draw(kinds)
    obj = data.draw(bent(data.draw(st.sampled_from([kind.obj, kind.full]))))
    body, media = json.dumps(obj).encode(), JSON
    if data.draw(st.booleans()):
        body, media = dump(obj).encode(), YAML
    query = f"?fieldManager=m{data.draw(kept)}{data.draw(options)}".replace("&force=true", "")
    if data.draw(st.booleans()):
        world.ask("POST", kind.collection + query, body, media)
    else:
        world.ask("PUT", kind.path + query, body, media)


@often(400)
@given(st.data())
def test_a_patch_of_any_kind_with_odd_values_is_taken_or_refused(world: World, data: st.DataObject) -> None:
    kind = data.draw(kinds)
    path = data.draw(st.sampled_from([kind.path, f"{kind.path}/status", f"{kind.path}/scale", f"{FOOS}/a"]))
    media = data.draw(st.sampled_from([MERGE, STRATEGIC, APPLY]))
    obj = data.draw(bent(data.draw(st.sampled_from([kind.obj, kind.full, {"spec": {"a": {"b": [1]}}}]))))
    query = f"?fieldManager=m{data.draw(kept)}{data.draw(options)}"
    world.ask("PATCH", path + query, json.dumps(obj).encode(), media)


pointers = st.lists(
    st.sampled_from(
        ["metadata", "labels", "spec", "data", "a", "0", "-", "-1", "~0", "~1", "", "é", "managedFields"]
    ),
    max_size=4,
).map(lambda steps: "".join(f"/{step}" for step in steps))
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]), "path": pointers},
    optional={"from": pointers, "value": odd},
)


@often(200)
@given(
    st.sampled_from([f"{MAPS}/a", f"{FOOS}/a", "/api/v1/namespaces/default"]),
    st.lists(operations, max_size=6),
)
def test_any_operations_are_performed_or_refused(world: World, path: str, steps: list[Any]) -> None:
    world.ask("PATCH", f"{path}?dryRun=All", json.dumps(steps).encode(), JSON_PATCH)


@often(400)
@given(st.data())
def test_torn_bytes_of_any_kind_and_format_are_read_or_refused(world: World, data: st.DataObject) -> None:
    kind = data.draw(kinds)
    media = data.draw(st.sampled_from([JSON, YAML, PROTOBUF, PROTOBUF]))
    whole = kind.message if media == PROTOBUF else json.dumps(kind.full).encode()
    if media == YAML:
        whole = dump(kind.obj).encode()
    world.ask("POST", f"{kind.collection}?dryRun=All", data.draw(torn(whole)), media)


@often(200)
@given(
    st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    st.sampled_from(MEDIA),
    st.binary(max_size=200),
    kinds,
)
def test_any_bytes_as_any_media_type_are_refused(
    world: World, method: str, media: str, body: bytes, kind: Kind
) -> None:
    target = kind.collection if method == "POST" else kind.path
    world.ask(method, f"{target}?dryRun=All&fieldManager=m", body, media)
    world.ask(method, f"{target}?dryRun=All&fieldManager=m", b"k8s\0" + body, PROTOBUF)


OPTIONS = {
    "kind": "DeleteOptions",
    "apiVersion": "v1",
    "gracePeriodSeconds": 0,
    "dryRun": ["All"],
    "propagationPolicy": "Orphan",
    "preconditions": {"uid": "a", "resourceVersion": "1"},
}


@often(200)
@given(kinds, bent(OPTIONS))
def test_odd_options_of_a_deletion_are_taken_or_refused(world: World, kind: Kind, body: Any) -> None:
    if isinstance(body, dict) and body.get("dryRun") == ["All"]:
        world.ask("DELETE", kind.path, json.dumps(body).encode())
    world.ask("DELETE", f"{kind.path}?dryRun=All", json.dumps(body).encode())


NAMES = ("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch",
         "sendInitialEvents", "pretty", "includeObject", "timeoutSeconds", "allowWatchBookmarks")  # fmt: skip
queries = st.lists(
    st.tuples(st.sampled_from(NAMES), st.one_of(st.text("ab=!,()in0 .<>\\", max_size=8), st.sampled_from(
        ["", "1", "0", "true", "Exact", "NotOlderThan", "a in (b)", "%00", "%ff", "metadata.name=a"]))),
    max_size=4,
)  # fmt: skip


@often(400)
@given(
    kinds, queries, st.sampled_from(["", "Table", "PartialObjectMetadataList", "PartialObjectMetadata", "é"])
)
def test_any_query_of_a_list_is_answered_or_refused(world: World, kind: Kind, query: Any, form: str) -> None:
    asked = "&".join(f"{name}={value}" for name, value in query)
    world.ask("GET", f"{kind.collection}?{asked}")
    world.ask("DELETE", f"{kind.collection}?{asked}&dryRun=All")


SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string", "maxLength": 3, "pattern": "^a*$", "default": "a"},
        "b": {"type": "array", "items": {"type": "integer", "minimum": 1}, "x-kubernetes-list-type": "set"},
        "c": {"x-kubernetes-int-or-string": True},
        "d": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "x-kubernetes-validations": [{"rule": "self.a != 'x'", "message": "no"}],
}
BARS = definition("bars", "Bar", **SPEC)


@often(250)
@given(bent(BARS))
def test_odd_definitions_are_taken_or_refused(world: World, body: Any) -> None:
    world.ask("POST", f"{DEFINITIONS}?dryRun=All", json.dumps(body).encode())


@pytest.mark.parametrize("form", [JSON, YAML, f"{JSON};as=Table;v=v1;g=meta.k8s.io"])
def test_after_all_that_everything_can_be_listed(world: World, form: str) -> None:
    for kind in CORPUS:
        assert world.ask("GET", kind.collection, accept=form).status in (200, 404, 405), kind.collection
