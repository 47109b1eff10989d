"""A write, step by step: decode → default → admit → validate → store.  Those steps that need no store.

Every function takes plain objects and changes them in place, or refuses with a ``StatusError``;
``registry.py`` calls them and stores the result.  What differs from kind to kind is the strategy's to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from setpoint.server.golang import quoted
from setpoint.server.registry.certificates import settle_conditions
from setpoint.server.registry.conversion import versions_of
from setpoint.server.registry.emit import told
from setpoint.server.registry.managed.managers import Filter, Versions, resets, track_update
from setpoint.server.registry.metadata import begin, carry_over, dedupe_owners, keep_deletion
from setpoint.server.registry.patience import TooLong
from setpoint.server.registry.requests import Ask, WriteOptions
from setpoint.server.registry.resources import Decoded, Object, Resource
from setpoint.server.registry.validation.metadata import metadata_errors, metadata_update_errors
from setpoint.server.registry.volumes import settle_phase
from setpoint.server.statuses import (
    MODIFIED,
    MOST_TOLD,
    FieldError,
    StatusError,
    bad_request,
    conflict,
    invalid,
    too_large,
)
from setpoint.server.storage.protocol import Encode

MOST_BYTES: Final = 3 * 2**19  # of an object as it is stored: what etcd takes
_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


def check_fields(decoded: Decoded, resource: Resource, options: WriteOptions) -> list[str]:
    """What fieldValidation makes of fields that the type does not have: an error, warnings, or nothing."""
    if not decoded.unknown or options.validation == "Ignore":
        return []
    texts = _first(decoded.unknown)
    if options.validation == "Strict":
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"strict decoding error: {', '.join(texts)}"
        )
    return texts


def _first(texts: Sequence[str]) -> list[str]:
    """Those that there is room for."""
    kept: list[str] = []
    left = MOST_TOLD
    for one in texts:
        if left <= 0:
            break
        left -= len(one)
        kept.append(one)
    return kept


def check_place(obj: Object, ask: Ask) -> None:
    """The object is where the URL says: its namespace is filled in, another one refused."""
    metadata = obj.setdefault("metadata", {})
    if not ask.resource.namespaced:
        if metadata.get("namespace"):
            raise bad_request(_OTHER_NAMESPACE)
        metadata.pop("namespace", None)
        return
    said = metadata.get("namespace") or ask.namespace
    if said != ask.namespace:
        raise bad_request(_OTHER_NAMESPACE)
    metadata["namespace"] = said


def check_name(obj: Object, ask: Ask) -> None:
    """An update names what the URL names."""
    said = obj["metadata"].get("name", "")
    if not said:
        raise bad_request(
            f"the name of the object ({ask.name} based on URL) was undeterminable: name must be provided"
        )
    if said != ask.name:
        raise bad_request(f"the name of the object ({said}) does not match the name on the URL ({ask.name})")


def begun(
    obj: Object,
    ask: Ask,
    options: WriteOptions,
    *,
    uid: str,
    now: str,
    is_tracked: bool = False,
) -> tuple[Object, list[str]]:
    """A new object as it is before anybody else has a say in it; and warnings.

    ``is_tracked``: an apply has said who owns what.
    """
    resource = ask.resource
    doubled = dedupe_owners(obj)
    begin(obj, uid=uid, now=now)
    empty: list[tuple[Object, str]] = []
    if not resource.is_custom:
        obj, empty = told(obj, resource.type)  # owned is also what Go writes though nobody said it
    if not is_tracked:
        _track(obj, None, ask, options, now)
    for holder, name in empty:
        holder[name] = None
    return obj, doubled


def created(
    obj: Object, ask: Ask, warnings: list[str], *, is_trusted: bool = False
) -> tuple[Object, list[str]]:
    """A new object as it will be stored, without its version; and warnings, with those there were.

    ``is_trusted``: it is our own, and not judged.
    """
    resource, strategy = ask.resource, ask.resource.strategy
    if strategy.has_generation:
        obj["metadata"]["generation"] = 1
    strategy.prepare_create(obj)
    if resource.qualified == _SIGNING_REQUESTS:
        obj["spec"] = {**(obj.get("spec") or {}), **_asked_by(ask)}
    if not is_trusted:
        refuse(resource, obj, [*metadata_errors(obj, resource), *strategy.validate_create(obj)], warnings)
        warnings = [*warnings, *strategy.warnings(obj, None)]
    obj["metadata"]["resourceVersion"] = "0"  # its place among the others; the store says which it is
    return strategy.emit(obj), warnings


def check_no_version(said: str) -> None:
    """What is new has no version yet.  The store refuses one, last of all: a dry run goes by without."""
    if said.isascii() and said.isdigit() and said.strip("0"):  # what is no number is passed over, as in Go
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")


_SIGNING_REQUESTS = "certificatesigningrequests.certificates.k8s.io"


def _asked_by(ask: Ask) -> Object:
    """Who signs must know who asked, whatever the request says of itself."""
    user = ask.user
    extra = {name: list(values) for name, values in user.extra.items()}
    return {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}


def changing(
    new: Object,
    old: Object,
    ask: Ask,
    options: WriteOptions,
    *,
    now: str,
    is_tracked: bool,
    versions: Versions | None = None,
) -> tuple[Object, list[str]]:
    """An object that takes the place of another, before anybody else has a say in it; and warnings.

    ``versions``: how both are told in others, where a webhook had to be asked.
    """
    resource = ask.resource
    doubled = dedupe_owners(new)
    carry_over(new, old)
    empty: list[tuple[Object, str]] = []
    if not resource.is_custom:
        is_cleared = new["metadata"].get("managedFields") == []
        new, empty = told(new, resource.type)
        if is_cleared:
            new["metadata"]["managedFields"] = []  # which says something, and is not written
    if not is_tracked:
        _track(new, old, ask, options, now, versions)
    for holder, name in empty:
        holder[name] = None
    keep_deletion(new, old)
    if resource.qualified == _SIGNING_REQUESTS and ask.subresource:
        settle_conditions(new, old, ask.subresource, now)
    if resource.qualified == "persistentvolumes" and ask.subresource == "status":
        settle_phase(new, old, now)
    return new, doubled


def updated(new: Object, old: Object, ask: Ask, warnings: list[str]) -> tuple[Object, list[str]]:
    """The next state of an object, with the version of the old one; and warnings, with those there were."""
    resource, strategy = ask.resource, ask.resource.strategy
    before = new["metadata"].get("generation")
    strategy.prepare_update(new, old, ask.subresource)
    try:
        found = [
            *metadata_update_errors(new, old, resource),
            *strategy.validate_update(new, old, ask.subresource),
        ]
        warnings = [*warnings, *(str(one) for one in found if one.is_excused)]
        refuse(resource, new, [one for one in found if not one.is_excused], warnings)
        warnings = [*warnings, *strategy.warnings(new, old)]
    except TooLong:  # then all of this is done again
        new["metadata"]["generation"] = before
        raise
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    return strategy.emit(new), warnings


def _track(  # noqa: PLR0917 - a write, as it is
    new: Object,
    old: Object | None,
    ask: Ask,
    options: WriteOptions,
    now: str,
    versions: Versions | None = None,
) -> None:
    """Who wrote what: into ``managedFields``."""
    track_update(
        new,
        old,
        manager=options.manager,
        api_version=ask.resource.api_version,
        subresource=ask.subresource,
        now=now,
        type=ask.resource.type,
        only=tracked_fields(ask.resource, ask.subresource),
        versions=versions or versions_of(ask.resource),
    )


def tracked_fields(resource: Resource, subresource: str) -> Filter:
    """The fields that a write to this endpoint can come to own."""
    has_status = resource.subresource("status") is not None
    return resets(resource.group, resource.kind, subresource, has_status=has_status)


def refuse(
    resource: Resource, obj: Object, errors: Sequence[FieldError], warnings: Sequence[str] = ()
) -> None:
    if errors:
        group = "" if resource.stored_as == "events" else resource.group  # named as it is stored
        refusal = invalid(obj.get("kind") or resource.kind, group, obj["metadata"].get("name", ""), errors)
        refusal.warnings = tuple(warnings)
        raise refusal


def check_uid(new: Object, old: Object, resource: Resource, *, is_dry_run: bool = False) -> None:
    """Whoever puts an object where another of its name is now is refused."""
    uid, found = new["metadata"].get("uid"), old["metadata"]
    if uid and uid != found["uid"]:
        raise _unmet(resource, found, "UID", uid, is_dry_run=is_dry_run)


def check_meant(named: Object, old: Object, resource: Resource, *, is_dry_run: bool) -> None:
    """Whoever names the uid or the version of the object that is meant is refused where it is another."""
    check_uid(named, old, resource, is_dry_run=is_dry_run)
    said, found = named["metadata"].get("resourceVersion"), old["metadata"]
    if said and said != found["resourceVersion"]:
        raise _unmet(resource, found, "ResourceVersion", said, is_dry_run=is_dry_run)


def _unmet(resource: Resource, found: Object, what: str, said: str, *, is_dry_run: bool) -> StatusError:
    """``found`` is the metadata of the object; what is only tried does not reach the root of the store."""
    key = _storage_key(resource, found).removeprefix("/registry" if is_dry_run else "")
    return conflict(
        resource.plural,
        resource.group,
        found["name"],
        f"StorageError: invalid object, Code: 4, Key: {key}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {said}, "
        f"{what} in object meta: {found['uid' if what == 'UID' else 'resourceVersion']}",
    )


def check_version(new: Object, old: Object, resource: Resource) -> None:
    """Whoever names the version that it saw is refused where there is a newer one.

    What counts is what webhooks and policies left of it: they may take it away.
    """
    said, found = new["metadata"].get("resourceVersion") or "0", old["metadata"]
    if not (said.isascii() and said.isdigit()):
        raise StatusError(500, "", f"strconv.ParseUint: parsing {quoted(said)}: invalid syntax")
    is_named = said.strip("0") != ""
    if not is_named and not resource.strategy.allows_unconditional_update:
        wrong = FieldError("invalid", "metadata.resourceVersion", "must be specified for an update", 0)
        raise invalid(resource.plural, resource.group, found["name"], [wrong])
    if is_named and said.lstrip("0") != found["resourceVersion"]:
        raise conflict(resource.plural, resource.group, found["name"], MODIFIED)


# Where etcd keeps what is not kept under its own name.
_KEPT_UNDER: Final = {
    "endpoints": "services/endpoints",
    "ingresses.networking.k8s.io": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
_WITH_GROUP: Final = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})


def _storage_key(resource: Resource, metadata: Object) -> str:
    has_group = resource.group in _WITH_GROUP or (resource.is_custom and resource.group)
    parts = [
        "registry",
        *([resource.group] if has_group else []),
        _KEPT_UNDER.get(resource.qualified, resource.plural),
    ]
    parts += [metadata["namespace"]] if resource.namespaced else []
    return "/" + "/".join([*parts, metadata["name"]])


def encoder(obj: Object, *, is_going: bool = False) -> Encode:
    """Writes an object down, once its revision is known.  One that is going may be of any size."""

    def encode(revision: int) -> bytes:
        obj["metadata"]["resourceVersion"] = str(revision)
        data = msgspec.json.encode(obj)
        if len(data) > MOST_BYTES and not is_going:
            raise too_large(MOST_BYTES)
        return data

    return encode
