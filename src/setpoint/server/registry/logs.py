"""The logs of pods: which part is asked for, of which container, and who has it.

The server has no logs: in a cluster the kubelet of the pod's node does, and here whoever was given as
``Logs``.  Where nobody was, the answer is that of a server that cannot reach the kubelet.

What is asked is read, judged and refused as kube-apiserver does it.  Asked by ``http/app.py``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn, Protocol

import msgspec

from setpoint.api.logs import LogPart
from setpoint.server.golang import parse_int
from setpoint.server.registry.instants import canonical
from setpoint.server.registry.requests import Ask
from setpoint.server.registry.resources import Object
from setpoint.server.registry.served import Resources
from setpoint.server.statuses import FieldError, StatusError, bad_request, invalid, not_found
from setpoint.server.storage.protocol import Record

_KUBELET_PORT: Final = 10250


class Logs(Protocol):
    """Who has the logs."""

    async def read(self, pod: bytes, container: str, part: LogPart, /) -> AsyncGenerator[bytes, None]:
        """The log in pieces, until it ends; ValueError says why there is none, in a kubelet's words."""


class Objects(Protocol):
    """What is needed of the registry."""

    def find(self, ask: Ask) -> Record: ...

    @property
    def resources(self) -> Resources: ...


async def open_log(
    ask: Ask, objects: Objects, logs: Logs | None, now: datetime
) -> AsyncGenerator[bytes, None] | None:
    """The log that is asked for; None where the pod is on no node yet, and there is none."""
    query = ask.query
    part = _part(query, ask.name, now)
    record = objects.find(msgspec.structs.replace(ask, subresource=""))
    pod: Object = msgspec.json.decode(record.data)
    container = container_of(pod, query.get("container", ""))
    node = pod["spec"].get("nodeName", "")
    if not node:
        return None
    known = node_of(ask, objects, node)
    if logs is None:
        _unreachable(known, ask, container)
    try:
        return await logs.read(record.data, container, part)
    except ValueError as error:
        raise bad_request(str(error)) from error


# ── What is asked for ───────────────────────────────────────────────────────────────────────────────


def _part(query: Mapping[str, str], name: str, now: datetime) -> LogPart:
    since_time = _time(query)
    since_seconds, tail, limit = (
        _number(query, each) for each in ("sinceSeconds", "tailLines", "limitBytes")
    )
    errors: list[FieldError] = []
    if tail is not None and tail < 0:
        errors.append(FieldError("invalid", "tailLines", "must be greater than or equal to 0", tail))
    if limit is not None and limit < 1:
        errors.append(FieldError("invalid", "limitBytes", "must be greater than 0", limit))
    if since_seconds is not None and since_time is not None:
        told = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        errors.append(FieldError("forbidden", "[]", told))
    elif since_seconds is not None and since_seconds < 1:
        errors.append(FieldError("invalid", "sinceSeconds", "must be greater than 0", since_seconds))
    if "stream" in query:
        errors.append(FieldError("forbidden", "stream", "may not be specified"))
    if errors:
        raise invalid("PodLogOptions", "", name, errors)
    since = since_time if since_seconds is None else now - timedelta(seconds=since_seconds)
    follow, previous, timestamps = (_is_said(query, each) for each in ("follow", "previous", "timestamps"))
    return LogPart(follow, previous, timestamps, since, tail, limit)


def _number(query: Mapping[str, str], name: str) -> int | None:
    said = query.get(name, "")
    if not said:
        return None
    try:
        return parse_int(said)
    except ValueError as error:
        raise bad_request(str(error)) from None


def _time(query: Mapping[str, str]) -> datetime | None:
    said = query.get("sinceTime", "")
    if not said:
        return None
    try:
        moment = canonical(said, False)
    except ValueError as error:
        raise bad_request(str(error)) from None
    return None if moment is None else datetime.fromisoformat(moment)


def _is_said(query: Mapping[str, str], name: str) -> bool:
    """As an option in a query is read: whatever does not say no says yes."""
    return name in query and query[name].lower() not in ("false", "0")


# ── Of what ─────────────────────────────────────────────────────────────────────────────────────────


def container_of(pod: Object, wanted: str) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    kinds = ("initContainers", "containers", "ephemeralContainers")
    names = [each["name"] for kind in kinds for each in spec.get(kind) or ()]
    if not wanted:
        if len(spec["containers"]) == 1:
            return str(spec["containers"][0]["name"])
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
        )
    if wanted not in names:
        raise bad_request(f"container {wanted} is not valid for pod {name}")
    return wanted


def node_of(ask: Ask, objects: Objects, name: str) -> dict[str, Any]:
    nodes = objects.resources.builtin("", "v1", "nodes")
    try:
        record = objects.find(Ask("get", nodes, "", name))
    except StatusError:
        raise not_found(ask.resource.plural, "", name) from None  # it says pods there, too
    found: dict[str, Any] = msgspec.json.decode(record.data)
    return found


def place_of(node: dict[str, Any]) -> str:
    """Where its kubelet listens."""
    status = node.get("status") or {}
    addresses = [each.get("address", "") for each in status.get("addresses") or ()]
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or _KUBELET_PORT
    return f"{addresses[0] if addresses else node['metadata']['name']}:{port}"


def _unreachable(node: dict[str, Any], ask: Ask, container: str) -> NoReturn:
    place = place_of(node)
    path = f"containerLogs/{ask.namespace}/{ask.name}/{container}"
    raise StatusError(500, "", f'Get "https://{place}/{path}": dial tcp {place}: connect: connection refused')
