"""Steps that were taken on a real kube-apiserver, and the same steps taken with our functions.

A ``Step`` is one request with what the real server had before and answered after.  ``taken`` performs it
with ``track_update``, ``apply`` and the scale's translation; ``differences`` says where the two differ.
Times differ by nature and are left out; entries are compared without their order where only time decides.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from setpoint.server.registry.facts import type_of
from setpoint.server.registry.managed.apply import apply
from setpoint.server.registry.managed.managers import Filter, keep_times, resets, track_update
from setpoint.server.registry.managed.scale import SCALE_VERSION, from_scale, to_scale
from setpoint.server.registry.types import NONE, Field, Type
from setpoint.server.statuses import StatusError

Object = dict[str, Any]


class Step(TypedDict):
    verb: Literal["create", "update", "apply"]  # every patch but apply is an update
    manager: str
    subresource: NotRequired[str]
    force: NotRequired[bool]
    sent: NotRequired[Object]  # the body of an apply, or the managedFields that an update carried
    code: int
    after: Object  # the object, or the refusal
    name: NotRequired[str]


# The custom kind of these steps: every list type, an atomic and a granular map, open places, scale, status.
THING_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1},
                "text": {"type": "string"},
                "flag": {"type": "boolean"},
                "ratio": {"type": "number"},
                "maybe": {"type": "string", "nullable": True},
                "port": {"x-kubernetes-int-or-string": True},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "note": {"type": "string"},
                            "tags": {
                                "type": "array",
                                "x-kubernetes-list-type": "set",
                                "items": {"type": "string"},
                            },
                        },
                    },
                },
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
                "list": {"type": "array", "items": {"type": "string"}},
                "plain": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                },
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "structs": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
                    },
                },
                "atomic": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                },
                "nested": {
                    "type": "object",
                    "properties": {
                        "inner": {
                            "type": "object",
                            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                        },
                        "other": {"type": "string"},
                    },
                },
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
                "half": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "string"}},
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "phase": {"type": "string"},
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                    },
                },
            },
        },
    },
}
THING_VERSION = "test.setpoint.dev/v1"


def type_from_schema(schema: Mapping[str, Any]) -> Type:
    """A type from a structural schema, as far as these tests need one."""
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True
    if schema.get("x-kubernetes-int-or-string"):
        return Type("int-or-string")
    match schema.get("type"):
        case "array":
            return Type(
                "list",
                item=type_from_schema(schema["items"]),
                list_type=schema.get("x-kubernetes-list-type", "atomic"),
                map_keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
            )
        case "object" if "additionalProperties" in schema:
            return Type("map", item=type_from_schema(schema["additionalProperties"]))
        case "object" if "properties" in schema:
            fields = {
                name: Field(name, type_from_schema(below), default=below.get("default", NONE))
                for name, below in schema["properties"].items()
            }
            is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
            return Type("struct", fields=fields, is_open=is_open, is_atomic=is_atomic)
        case "object":
            return Type("map", item=Type("any"))
        case "integer":
            return Type("int64")
        case "number":
            return Type("float")
        case "boolean":
            return Type("bool")
        case "string":
            return Type("string")
    return Type("any")


def thing_type() -> Type:
    type_ = type_from_schema(THING_SCHEMA)
    metadata = type_of("", "v1", "ConfigMap").fields["metadata"].type
    type_.fields["apiVersion"] = Field("apiVersion", Type("string"))
    type_.fields["kind"] = Field("kind", Type("string"))
    type_.fields["metadata"] = Field("metadata", metadata)
    return type_


_THING = thing_type()


def type_for(api_version: str, kind: str) -> Type:
    if api_version == THING_VERSION:
        return _THING
    group, _, version = api_version.rpartition("/")
    return type_of(group, version, kind)


# ── Taking a step ───────────────────────────────────────────────────────────────────────────────────

NOW = "2099-01-01T00:00:00Z"  # later than every recorded time


def taken(step: Step, before: Object | None, api_version: str, kind: str) -> Object:
    """The object with its managedFields as our functions make it, or the refusal."""
    try:
        if step.get("subresource") == "scale":
            assert before is not None
            return _scaled(step, before, api_version, kind)
        return _written(step, before, api_version, kind)
    except StatusError as error:
        return error.status


def _written(step: Step, before: Object | None, api_version: str, kind: str) -> Object:
    subresource = step.get("subresource", "")
    type_ = type_for(api_version, kind)
    if step["verb"] == "apply":
        return apply(
            before,
            step.get("sent", {}),
            manager=step["manager"],
            api_version=api_version,
            subresource=subresource,
            force=step.get("force", False),
            now=NOW,
            type=type_,
            kind=kind,
        )
    new = as_decoded(step, before)
    track_update(
        new,
        before,
        manager=step["manager"],
        api_version=api_version,
        subresource=subresource,
        now=NOW,
        type=type_,
        only=_filter(api_version, kind, subresource),
    )
    return new


def _filter(api_version: str, kind: str, subresource: str) -> Filter:
    return resets(api_version.rpartition("/")[0], kind, subresource)


def as_decoded(step: Step, before: Object | None) -> Object:
    """What the request made of the object before the server went on with it: what it answered, less that."""
    new = copy.deepcopy(step["after"])
    metadata = new["metadata"]
    metadata.pop("managedFields", None)
    if "sent" in step and "managedFields" in step["sent"]:
        metadata["managedFields"] = step["sent"]["managedFields"]
    elif before is not None and step["verb"] == "update":
        metadata["managedFields"] = before["metadata"].get("managedFields")
    if before is None and new["kind"] == "Service":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            new["spec"].pop(name, None)  # given by the server, not by the creator
    if before is None and new["kind"] == "Pod":
        for name in ("tolerations", "priority", "preemptionPolicy"):
            new["spec"].pop(name, None)  # admission's
    return new


def _scaled(step: Step, before: Object, api_version: str, kind: str) -> Object:
    paths = {api_version: ("f:spec", "f:size" if kind == "Thing" else "f:replicas")}
    entries = before["metadata"].get("managedFields", [])
    scale: Object = {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {"name": before["metadata"]["name"], "managedFields": to_scale(entries, paths)},
        "spec": {"replicas": before["spec"].get(paths[api_version][1][2:])},
        "status": {"replicas": 0},
    }
    scale_type = type_of("autoscaling", "v1", "Scale")
    if step["verb"] == "apply":
        new = apply(
            scale,
            step.get("sent", {}),
            manager=step["manager"],
            api_version=SCALE_VERSION,
            subresource="scale",
            force=step.get("force", False),
            now=NOW,
            type=scale_type,
            kind="Scale",
        )
    else:
        new = copy.deepcopy(scale)
        new["spec"] = step["after"]["spec"]
        track_update(
            new, scale, manager=step["manager"], api_version=SCALE_VERSION, subresource="scale", now=NOW,
            type=scale_type,
        )  # fmt: skip
    after = copy.deepcopy(before)
    after["spec"][paths[api_version][1][2:]] = new["spec"]["replicas"]
    after["metadata"]["managedFields"] = from_scale(
        new["metadata"].get("managedFields", []), entries, paths, api_version
    )
    if new["spec"] == scale["spec"]:
        keep_times(after, before)
    return after


# ── Comparing ───────────────────────────────────────────────────────────────────────────────────────


def entries_of(obj: Object) -> list[Object]:
    """The entries without their times; whether there is a time is kept."""
    entries = [
        {**entry, "time": "time" in entry} for entry in obj.get("metadata", {}).get("managedFields", [])
    ]
    return sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))


def differences(step: Step, mine: Object, real: Object) -> list[str]:
    """Where our outcome is not the real one.  ``real`` is the object as it was read after the step."""
    if step["code"] == 422:  # the object that was made is invalid: that was for others to find
        return [] if mine.get("kind") != "Status" else [f"refused: {mine['message']}"]
    if step["code"] >= 400:
        told = {name: step["after"].get(name) for name in ("message", "reason", "details", "code")}
        ours = {name: mine.get(name) for name in ("message", "reason", "details", "code")}
        for status in (told, ours):
            causes = (status["details"] or {}).get("causes")
            if causes:  # a map's order decides it there
                status["details"] = {
                    "causes": sorted(causes, key=lambda cause: json.dumps(cause, sort_keys=True))
                }
        return [] if told == ours else [f"refused as {ours}, not as {told}"]
    if mine.get("kind") == "Status":
        return [f"refused: {mine['message']}"]
    wrong = []
    if entries_of(mine) != entries_of(real):
        wrong.append(f"managedFields {entries_of(mine)}, not {entries_of(real)}")
    if step["verb"] == "apply":
        decided = ("status",) if step.get("subresource") == "status" else ("spec", "data", "binaryData")
        wrong += misses(real, {name: mine[name] for name in decided if name in mine})
    return wrong


def misses(real: Any, mine: Any, path: str = "") -> list[str]:
    """Where the real object is not what we made, but for defaults that it has and we have not."""
    if isinstance(mine, dict) and isinstance(real, dict):
        return [
            text
            for name, value in mine.items()
            if value  # what is empty may be left out, and null is nothing
            for text in misses(real.get(name), value, f"{path}.{name}")
        ]
    if isinstance(mine, list) and isinstance(real, list) and len(mine) == len(real):
        return [
            text
            for at, (theirs, ours) in enumerate(zip(real, mine, strict=True))
            for text in misses(theirs, ours, f"{path}[{at}]")
        ]
    if (
        mine == real or ".limits." in path or ".requests." in path
    ):  # quantities are brought into a normal form
        return []
    return [f"{path} is {mine!r}, not {real!r}"]
