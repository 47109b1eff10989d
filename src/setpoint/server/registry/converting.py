"""Custom kinds whose versions a webhook converts into one another: ConversionReview.

An object is stored in one version.  Read or written in another it is sent to the webhook that its definition
names, and what comes back is held to what Kubernetes holds it to: as many objects, of that version, of the
same kind, name, namespace and uid; of metadata only labels and annotations may be others.

``conversion.py`` has what needs no webhook.  Fed by ``registry.py``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from setpoint.server.golang import quoted
from setpoint.server.registry.bodies import go_kind
from setpoint.server.registry.conversion import (
    ConversionError,
    converted,
    is_stored_otherwise,
    member,
    stored,
)
from setpoint.server.registry.managed.managers import MisfitError, Versions
from setpoint.server.registry.resources import Object, Resource

if TYPE_CHECKING:
    from setpoint.server.admission.calling import Caller, Form

_GROUP: Final = "apiextensions.k8s.io"
_SECONDS: Final = 30
_MOST_TOLD: Final = 2048  # bytes of an object that is none
_KNOWN: Final = ("v1", "v1beta1")
_SAME: Final = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))
_encode = msgspec.json.encode
_T = TypeVar("_T")


def is_by_webhook(resource: Resource) -> bool:
    """Whether versions of its kind are converted by a webhook."""
    return resource.family is not None and resource.family.webhook is not None


class Converter:
    """Asks the webhooks of definitions."""

    def __init__(self, caller: Callable[[], Caller], uid: Callable[[], str]) -> None:
        self._caller = caller
        self._uid = uid

    async def read(self, objects: Sequence[Object], resource: Resource) -> list[Object]:
        """Objects as they are stored, in the resource's version."""
        revived = [_revived(one, resource) for one in objects]
        others = [one for one in revived if one["apiVersion"] != resource.api_version]
        made = iter(await self._convert(others, resource) if others else ())
        strategy = resource.strategy
        return [
            strategy.emit(one if one["apiVersion"] == resource.api_version else strategy.adopt(next(made)))
            for one in revived
        ]

    async def written(self, obj: Object, resource: Resource) -> Object:
        """An object that was written in the resource's version, as it is stored."""
        if resource.family is None or not is_stored_otherwise(resource):
            return stored(obj, resource)
        storage = resource.family.members[resource.family.storage]
        made = (await self._convert([obj], storage))[0]
        kept = storage.strategy.emit(storage.strategy.adopt(made))
        return {"apiVersion": kept["apiVersion"], **kept}

    async def versions(self, resource: Resource, new: Object, old: Object) -> Versions:
        """How two states of an object are told in each version in which fields of it are owned."""
        members = _members(resource)
        entries = old["metadata"].get("managedFields") or ()
        others = {one.get("apiVersion") for one in entries} - {resource.api_version}
        found: dict[tuple[int, str], Object] = {}
        failed: dict[str, str] = {}

        def told(obj: Object, version: str) -> Object:
            if version in failed:
                raise MisfitError(failed[version])
            return found.get((id(obj), version), obj)

        for name in sorted(name for name in others if name in members):
            try:
                found[id(old), name], found[id(new), name] = await self._convert([old, new], members[name])
            except ConversionError as error:
                failed[name] = str(error)
        return Versions({name: one.type for name, one in members.items()}, told)

    def telling(self, resource: Resource) -> Telling:
        """For a decision that needs objects of the resource's version in others."""
        return Telling(self._convert, resource)

    async def _convert(self, objects: Sequence[Object], resource: Resource) -> list[Object]:
        from setpoint.server.admission.calling import CallError, read_answer  # noqa: PLC0415 - only with webhooks

        webhook = resource.family.webhook if resource.family is not None else None
        kind = f"{objects[0]['apiVersion']}, Kind={objects[0]['kind']}"
        failed = f"conversion webhook for {kind}"
        if webhook is None:
            raise ConversionError(f"{failed} failed: there is none")
        version = next((one for one in webhook.get("conversionReviewVersions") or () if one in _KNOWN), None)
        if version is None:
            raise ConversionError("no supported conversion review versions")
        uid, caller = self._uid(), self._caller()
        try:
            body = _review(uid, resource.api_version, [_without_version(one) for one in objects], version)
            answer = await caller.call(caller.target(webhook.get("clientConfig") or {}), body, _SECONDS)
            found = _objects(read_answer(answer, _form(version)), uid, version)
        except CallError as error:
            raise ConversionError(f"{failed} failed: {error}") from None
        if len(found) != len(objects):
            raise ConversionError(f"{failed} returned {len(found)} objects, expected {len(objects)}")
        for after in found:
            if told := _unread(after):
                raise ConversionError(told)
        is_one = len(objects) == 1
        for place, (before, after) in enumerate(zip(objects, found, strict=True)):
            if told := _version_error(before, after, resource):
                word = "object" if is_one else "converted object"
                raise ConversionError(f"{failed} returned invalid {word} at index {place}: {told}")
            where = "" if is_one else f" at index {place}"
            if told := _identity_error(before, after):
                word = "object" if is_one else "converted object"
                raise ConversionError(f"{failed} returned invalid {word}{where}: {told}")
            if told := _restore(before, after):
                word = "metadata" if is_one else "metadata in object"
                raise ConversionError(f"{failed} returned invalid {word}{where}: {told}")
        return found


class Telling:
    """Objects in other versions, for a decision that cannot ask for them itself, nor say beforehand which.

    It is begun again with every answer that it lacked: each is asked for once, so it comes to an end.
    """

    def __init__(
        self, convert: Callable[[Sequence[Object], Resource], Awaitable[list[Object]]], resource: Resource
    ) -> None:
        self._convert = convert
        self._resource = resource
        self._known: dict[tuple[bytes, str], Object | ConversionError] = {}
        self.versions = Versions({name: one.type for name, one in _members(resource).items()}, self._told)

    def __repr__(self) -> str:
        return f"<Telling {self._resource.qualified} with {len(self._known)} answers>"

    async def settled(self, decide: Callable[[], _T]) -> _T:
        """What is decided, by what needs the same objects each time that it is begun."""
        while True:
            try:
                return decide()
            except _Untold as missing:
                try:
                    made = await self._convert([missing.obj], _members(self._resource)[missing.version])
                    self._known[missing.key] = made[0]
                except ConversionError as error:
                    self._known[missing.key] = error

    def _told(self, obj: Object, version: str) -> Object:
        hub = self._resource.api_version
        whole = {"kind": self._resource.kind, "apiVersion": hub, "metadata": {}, **obj}
        if hub not in (whole["apiVersion"], version):
            whole = self._told(whole, hub)  # by way of the version that is asked in, as kube-apiserver does
        if whole["apiVersion"] == version:
            return whole
        missing = _Untold(whole, version)
        found = self._known.get(missing.key)
        if found is None:
            raise missing
        if isinstance(found, ConversionError):
            raise MisfitError(str(found))
        return found


class _Untold(Exception):
    """How an object is told in a version is not known yet."""

    def __init__(self, obj: Object, version: str) -> None:
        super().__init__(version)
        self.obj = obj
        self.version = version
        self.key = _encode(obj), version


def _members(resource: Resource) -> Mapping[str, Resource]:
    """The versions of its kind, by their apiVersion."""
    return resource.family.members if resource.family is not None else {}


def _without_version(obj: Object) -> Object:
    """The store knows the version of an object, and it comes to it later."""
    metadata = {name: one for name, one in obj["metadata"].items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}


def _revived(obj: Object, resource: Resource) -> Object:
    """As the schema of the version that it is stored in has it."""
    return converted(obj, member(resource, obj["apiVersion"]))


def _review(uid: str, wanted: str, objects: Sequence[Object], version: str) -> bytes:
    request = {"uid": uid, "desiredAPIVersion": wanted, "objects": objects}
    empty: dict[str, Any] = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}
    review = {"kind": "ConversionReview", "apiVersion": f"{_GROUP}/{version}"}
    return msgspec.json.encode({**review, "request": request, "response": empty})


def _form(version: str) -> Form:
    from setpoint.server.admission.calling import STATUS, Form, Shape  # noqa: PLC0415

    response = {
        "uid": Shape((str,), "types.UID"),
        "convertedObjects": Shape((list,), "[]runtime.RawExtension"),
        "result": STATUS,
    }
    versions = (version, *(one for one in _KNOWN if one != version))
    fields = {"response": Shape((dict,), f"{version}.ConversionResponse", response)}
    return Form(_GROUP, "ConversionReview", versions, fields)


def _objects(review: Mapping[str, Any], uid: str, version: str) -> list[Object]:
    """Those that came back.  Raises ``CallError``."""
    from setpoint.server.admission.calling import CallError  # noqa: PLC0415

    if version == "v1":
        said = review.get("apiVersion") or ""
        found = f"{said if '/' in said else '/' + said}, Kind={review.get('kind') or ''}"
        wanted = f"{_GROUP}/v1, Kind=ConversionReview"
        if found != wanted:
            raise CallError(f"expected webhook response of {wanted}, got {found}")
    response = review.get("response")
    if response is None:
        raise CallError("no response provided")
    if version == "v1" and (response.get("uid") or "") != uid:
        raise CallError(f"expected response.uid={quoted(uid)}, got {quoted(response.get('uid') or '')}")
    result = response.get("result") or {}
    if result.get("status") != "Success":
        told = f"response.result.status was '{result.get('status', '')}', not 'Success'"
        raise CallError(result.get("message") or told)
    return list(response.get("convertedObjects") or ())


def _unread(after: Any) -> str:
    """Why what came back is no object at all."""
    if after is None:
        return "unexpected end of JSON input"
    if not isinstance(after, dict):
        kind = go_kind(after)
        return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    if not after.get("kind"):
        seen = msgspec.json.encode(after)[:_MOST_TOLD].decode("utf-8", "replace")
        return f"Object 'Kind' is missing in '{seen}'"
    return ""


def _version_error(before: Object, after: Object, resource: Resource) -> str:
    if (got := after.get("apiVersion")) != resource.api_version:
        return f"invalid groupVersion (expected {resource.api_version}, received {got})"
    if (got := after.get("kind")) != before["kind"]:
        return f"invalid kind (expected {before['kind']}, received {got})"
    return ""


def _identity_error(before: Object, after: Object) -> str:
    was, said = before["metadata"], after.get("metadata")
    for field, word in _SAME:
        now = said.get(field, "") if isinstance(said, dict) else ""
        if was.get(field, "") != now:
            return f"must have the same {word}: {was.get(field, '')} != {now}"
    return ""


def _restore(before: Object, after: Object) -> str:
    """Of metadata keep only labels and annotations; what is wrong with those."""
    said = after.get("metadata")
    if not isinstance(said, dict):
        return "missing metadata in converted object"
    metadata = dict(before["metadata"])
    for field in ("labels", "annotations"):
        metadata.pop(field, None)
        values = said.get(field)
        if values is None:
            continue
        if not isinstance(values, dict):
            return f"invalid metadata.{field} of type {_go_type(values)} in converted object"
        for name, value in values.items():
            if not isinstance(value, str):
                told = f"metadata.{field}[{name}] must be a string, but is {_go_type(value)}"
                return f"{told} in converted object"
        metadata[field] = values
    after["metadata"] = metadata
    return ""


_GO_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def _go_type(value: Any) -> str:
    return _GO_TYPES.get(type(value), "<nil>")
