"""One object, two versions: Events of two groups, autoscalers of two versions, custom kinds of several.

A built-in object is stored as it was written and shown as it is asked for.  A custom one is stored in the
version that its definition says: with what that version's schema knows of it, whichever version it was
written in.  Read, it gets that version's defaults, and another version shows what its own schema knows.
Where its definition has that version no more, nobody can read it.

Pure.
"""

from __future__ import annotations

import msgspec

from setpoint.server.registry.autoscalers import to_v1, to_v2
from setpoint.server.registry.managed.managers import Versions
from setpoint.server.registry.resources import Object, Resource

_EVENT_FIELDS = {  # core/v1 → events.k8s.io/v1; the other names are the same
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_decode = msgspec.json.decode
_encode = msgspec.json.encode


class ConversionError(Exception):
    """An object was not converted; the text is kube-apiserver's."""


def member(resource: Resource, api_version: str) -> Resource:
    """A custom kind in the version that an object of it is stored in.  Raises ``ConversionError``."""
    if resource.family is None:
        return resource
    found = resource.family.members.get(api_version)
    if found is None:
        raise ConversionError(f"request to convert CR from an invalid group/version: {api_version}")
    return found


def stray(data: bytes, resource: Resource) -> str:
    """Why an object is not read that is stored in a version that its definition has not."""
    if data.startswith(resource.head) or not resource.is_custom:
        return ""
    try:
        member(resource, _decode(data)["apiVersion"])
    except ConversionError as error:
        return str(error)
    return ""


def converted(obj: Object, resource: Resource) -> Object:
    """The object in the resource's version.  Raises ``ConversionError``."""
    was = obj["apiVersion"]
    made: Object = {"kind": resource.kind, "apiVersion": resource.api_version}
    made |= {name: value for name, value in obj.items() if name not in made}
    if resource.is_custom:
        written = member(resource, was)
        made = written.strategy.revive(made)
        if written.api_version != resource.api_version:
            made = resource.strategy.adopt(made)
        return resource.strategy.emit(made)
    if was == resource.api_version:
        return made
    if resource.kind == "Event":
        names = _EVENT_FIELDS if resource.group else {new: old for old, new in _EVENT_FIELDS.items()}
        made = {names.get(name, name): value for name, value in made.items()}
    elif resource.kind == "HorizontalPodAutoscaler":
        to_v1(made) if resource.version == "v1" else to_v2(made)
    return resource.strategy.emit(made)


def is_stored_otherwise(resource: Resource) -> bool:
    """Whether what is written in this version is stored in another."""
    return resource.family is not None and resource.family.storage not in ("", resource.api_version)


def stored(obj: Object, resource: Resource) -> Object:
    """An object that was written in the resource's version, as it is stored."""
    if resource.family is None or not is_stored_otherwise(resource):
        return obj
    storage = resource.family.members[resource.family.storage]
    copy: Object = _decode(_encode(obj))
    made = storage.strategy.emit(storage.strategy.adopt(copy))
    # Begun otherwise than ``Resource.head``: what is left out is filled in whenever it is read.
    return {"apiVersion": made["apiVersion"], **made}


def shown(kept: Object, resource: Resource) -> Object:
    """What a reader will see of an object that is about to be stored."""
    return converted(kept, resource) if is_stored_otherwise(resource) else kept


def versions_of(resource: Resource) -> Versions | None:
    """The versions of a kind in which fields of its objects may be owned, where there can be several."""
    family = resource.family
    if family is None:
        return None

    def told(obj: Object, api_version: str) -> Object:
        """In another version; a custom object is the same in each."""
        if resource.is_custom:
            return obj
        whole = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}, **obj}
        return converted(whole, family.members[api_version])

    return Versions({name: one.type for name, one in family.members.items()}, told)
