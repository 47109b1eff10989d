"""Decides what a server-side apply makes of an object, and who owns what afterwards.

The promises:

1. What is applied is in the result, and its applier owns it.
2. A field that another manager owns and whose value would change is a conflict, unless it is forced; then
   its owner loses it.  The same value is no conflict: it is owned together.
3. What the applier applied before and no longer does is removed, unless somebody else owns it too.
4. Applied again without a difference, nothing changes, not even the time.
5. An object that nobody's fields are known of was written before the first apply: ``before-first-apply``
   owns it all.
6. ``kubectl`` may take over what it applied client-side (the last-applied annotation says what), without
   force; the annotation is then kept up to date.

The result is neither defaulted nor checked: the flow of a write does that with it, as with any object.  It
shares nothing with what came in but entries of managedFields, which nobody changes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from setpoint.api.patches import same
from setpoint.server.golang import encoded, quoted
from setpoint.server.registry.managed import sets
from setpoint.server.registry.managed.managers import (
    BEFORE_FIRST_APPLY,
    Entry,
    Filter,
    Managed,
    Manager,
    MisfitError,
    Versions,
    Written,
    decode,
    encode,
    fitting,
    resets,
    take,
    update,
)
from setpoint.server.registry.managed.sets import BadFieldsError, Fields, Path
from setpoint.server.registry.managed.typed import (
    compare_whole,
    copied,
    fields_of,
    is_custom,
    merge,
    misfits,
    remove,
    with_named_members,
    zero,
)
from setpoint.server.registry.types import Type
from setpoint.server.statuses import MOST_TOLD, StatusError, bad_request

Object = dict[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_LARGEST_ANNOTATIONS: Final = 256 * 1024  # bytes of all names and values

_STRIPPED: Final = sets.union(
    {"f:apiVersion": {}, "f:kind": {}},
    {
        "f:metadata": {
            ".": {},
            **{
                "f:" + name: {}
                for name in (
                    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName",
                    "generation", "managedFields", "resourceVersion",
                )
            },
        }
    },
)  # fmt: skip


class Conflict(NamedTuple):
    """A field that another manager owns."""

    manager: Manager
    path: Path


class _ConflictsError(Exception):
    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts


def apply(
    live: Object | None,
    intent: Object,
    *,
    manager: str,
    api_version: str,
    subresource: str,
    force: bool,
    now: str,
    type: Type,  # noqa: A002 - the word of the whole registry
    kind: str = "",
    only: Filter | None = None,
    versions: Versions | None = None,
) -> Object:
    """The object that an apply of ``intent`` leaves, with its managedFields; ``live`` is None if it makes it.

    ``kind`` is that of the endpoint; left out, it is the live object's.  ``only`` is ``resets(...)`` of
    the endpoint.  Raises StatusError: 400 for another type or version, 409 for conflicts, 500 for an intent
    that does not fit its type, or for fields that cannot be told in another of the ``versions``, in which
    somebody owns some.
    """
    kind = kind or (live or intent).get("kind", "")
    if (_text(intent, "apiVersion"), _text(intent, "kind")) != (api_version, kind):
        raise bad_request(f"invalid object type: {_type_text(intent)}")
    if only is None:
        only = resets(api_version.rpartition("/")[0], kind, subresource)
    there = live if live is not None else {"metadata": {}, **zero(type)}
    try:
        managed = decode(there["metadata"].get("managedFields"))
    except BadFieldsError as error:
        raise StatusError(500, "", f"failed to decode managed fields: {error}") from None
    if not managed:
        first = Manager(BEFORE_FIRST_APPLY, "Update", api_version, subresource)
        update(managed, Written(zero(type), there, api_version, type, only), first, now)
    _check(intent, type)
    applier = Manager(manager or "unknown", "Apply", "", subresource)
    asked = _Asked(intent, applier, api_version, now, type, only, versions)
    try:
        return _decided(there, managed, asked, is_kubectl=manager == "kubectl", force=force)
    except MisfitError as error:
        raise StatusError(500, "", str(error)) from None


def _decided(there: Object, managed: Managed, asked: _Asked, *, is_kubectl: bool, force: bool) -> Object:
    managed = fitting(managed, asked.written(there, there))
    try:
        result = _applied(there, managed, asked, force=force)
    except _ConflictsError as error:
        conflicts = error.conflicts
        if is_kubectl:
            allowed = _applied_by_client(there, asked.version, asked.type)
            if allowed is not None:
                conflicts = [one for one in conflicts if not sets.has(allowed, one.path)]
        if conflicts:
            raise _refusal(conflicts) from None
        result = _applied(there, managed, asked, force=True)
    return _with_last_applied(result, asked.intent) if is_kubectl else result


class _Asked(NamedTuple):
    intent: Object
    applier: Manager
    version: str
    now: str
    type: Type
    only: Filter
    versions: Versions | None

    def written(self, live: Object, new: Object) -> Written:
        return Written(live, new, self.version, self.type, self.only, self.versions)


def _applied(live: Object, before: Managed, asked: _Asked, *, force: bool) -> Object:
    intent, applier, version, now, type_, only, _ = asked
    managed = dict(before)
    last = managed.get(applier)
    managed[applier] = Entry(only(fields_of(intent, type_)), version, last.time if last else None)
    new = merge(live, intent, type_)
    if last is not None and last.fields:
        new = _pruned(new, managed, last, asked)
    written = asked.written(live, new)
    if not force:
        conflicts = [
            Conflict(one, path)
            for one in sorted(managed, key=lambda one: one.text)
            if one != applier
            for changed in (written.at(managed[one].version)[0],)
            for path in sets.paths(sets.intersection(managed[one].fields, changed))
        ]
        if conflicts:
            raise _ConflictsError(conflicts)
    take(managed, written, but=applier)
    time = (last.time if last else None) if _is_same(live, new, type_) else now
    fields = sets.difference(managed.pop(applier).fields, _STRIPPED)
    if last is not None and (last.fields, last.version, last.time) == (fields, version, time):
        managed[applier] = last
    elif fields:
        managed[applier] = Entry(fields, version, time)
    metadata = {name: copied(value) for name, value in new["metadata"].items() if name != "managedFields"}
    if managed:
        metadata["managedFields"] = encode(managed)
    rest = {name: copied(value) for name, value in new.items() if name != "metadata"}
    return {**rest, "metadata": metadata}


def _pruned(merged: Object, managed: Managed, last: Entry, asked: _Asked) -> Object:
    """Without what the applier applied last and nobody owns now.

    What goes is found in the version that was applied last, and given back in those in which it is owned.
    """
    owned: dict[str, list[Fields]] = {}
    for entry in managed.values():
        owned.setdefault(entry.version, []).append(entry.fields)
    is_one_version = list(owned) == [last.version]  # what is applied now is among them
    if is_one_version and not sets.difference(last.fields, managed[asked.applier].fields):
        return merged
    at = partial(_told, asked.written(merged, merged))
    whole, type_ = at(merged, last.version, "failed to convert merged object to last applied version")
    dropped = with_named_members(last.fields, type_)
    # Removing a field removes all below it: first see what would stay, and give back what is claimed.
    base, pruned = whole, remove(whole, dropped, type_) or {}
    for version in sorted(owned, key=lambda one: one != last.version):
        failing = f"failed add back owned items: failed to convert {{}} object at version {version}"
        base, here = at(base, version, failing.format("merged"))
        pruned, _ = at(pruned, version, failing.format("pruned"))
        claimed = with_named_members(sets.union_of(owned[version]), here)
        gone = sets.difference(_members(base, here), sets.union(_members(pruned, here), claimed))
        pruned = remove(base, gone, here) or {}
    # What went with it although the applier never applied it comes back too.
    failing = "failed add back dangling items: failed to convert pruned object to last applied version"
    pruned, _ = at(pruned, last.version, failing)
    gone = sets.intersection(sets.difference(_members(whole, type_), _members(pruned, type_)), dropped)
    return at(remove(whole, gone, type_), asked.version)[0]


def _told(written: Written, obj: Object, version: str, failing: str = "") -> tuple[Object, Type]:
    """What is pruned in another version, and its type there."""
    try:
        return written.told(obj, version), written.type_at(version) or written.type
    except MisfitError as error:
        told = f"{failing}: {error}" if failing else str(error)
        raise MisfitError(f"failed to prune fields: {told}") from None


def _members(obj: Object, type_: Type) -> Fields:
    return with_named_members(fields_of(obj, type_), type_)


def _is_same(live: Object, new: Object, type_: Type) -> bool:
    # What true and 1 are is not in doubt where every field has a type.
    return same(live, new) if is_custom(type_) else live == new


# ── Refusals ────────────────────────────────────────────────────────────────────────────────────────


def _check(intent: Object, type_: Type) -> None:
    metadata = intent.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        raise bad_request("metadata.managedFields must be nil")
    wrong = misfits(intent, type_)
    if wrong:
        about = metadata if isinstance(metadata, dict) else {}
        named = f"{_text(about, 'namespace')}/{_text(about, 'name')}; {_type_text(intent)}"
        said = wrong[0] if len(wrong) == 1 else "\n  ".join(["errors:", *wrong])
        raise StatusError(500, "", f"failed to create typed patch object ({named}): {said}")


def _type_text(obj: Object) -> str:
    group, _, version = _text(obj, "apiVersion").rpartition("/")
    return f"{group}/{version}, Kind={_text(obj, 'kind')}"


def _text(obj: Object, name: str) -> str:
    value = obj.get(name)
    return value if isinstance(value, str) else ""


def _refusal(conflicts: list[Conflict]) -> StatusError:
    """Of all of them, as far as there is room to tell."""
    causes = []
    lines: list[str] = []
    by: Manager | None = None
    left = MOST_TOLD
    for one in conflicts:
        if left <= 0:
            break
        named, path = _named(one.manager), sets.path_text(one.path)
        left -= len(named) + len(path)
        causes.append({"reason": "FieldManagerConflict", "message": f"conflict with {named}", "field": path})
        if one.manager != by:
            by = one.manager
            lines.append(f"conflicts with {named}:")
        lines.append(f"- {path}")
    said = f"{len(conflicts)} conflicts: " + "\n".join(lines)
    if len(conflicts) == 1:
        said = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    return StatusError(409, "Conflict", f"Apply failed with {said}", details={"causes": causes})


def _named(manager: Manager) -> str:
    text = quoted(manager.name)
    if manager.subresource:
        text += f" with subresource {quoted(manager.subresource)}"
    return f"{text} using {manager.version}" if manager.operation == "Update" else text


# ── From client-side apply to server-side apply ─────────────────────────────────────────────────────


def _applied_by_client(live: Object, api_version: str, type_: Type) -> Fields | None:
    """What kubectl applied from the client and is still as it was applied; None if that is not known."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    if not text:
        return None
    try:
        last = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    if not isinstance(last, dict) or last.get("apiVersion") != api_version or misfits(last, type_):
        return None
    changed, removed = compare_whole(last, live, type_)
    return sets.difference(sets.difference(fields_of(last, type_), changed), removed)


def _with_last_applied(obj: Object, intent: Object) -> Object:
    annotations = obj["metadata"].get("annotations")
    if not annotations or not annotations.get(LAST_APPLIED):
        return obj
    said = dict(intent)
    metadata = intent.get("metadata") or {}
    if metadata.get("annotations") is not None:
        kept = {name: value for name, value in metadata["annotations"].items() if name != LAST_APPLIED}
        said["metadata"] = {**metadata, "annotations": kept}
    text = encoded(said) + "\n"
    others = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
    size = sum(len(name.encode()) + len(value.encode()) for name, value in others.items())
    if size + len(LAST_APPLIED) + len(text.encode()) <= _LARGEST_ANNOTATIONS:
        others[LAST_APPLIED] = text
    return {**obj, "metadata": {**obj["metadata"], "annotations": others}}
