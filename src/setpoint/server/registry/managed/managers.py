"""Keeps the record of who wrote which field: ``metadata.managedFields`` after a create, update or patch.

The promises:

1. Whoever changes a field owns it, and nobody else does any longer; a field that is gone has no owner.
2. An entry's time changes when its manager writes something, not when others take fields from it.
3. A client that leaves managedFields out, or sends what cannot be read, changes nothing in it; one empty
   entry (``[{}]``), or an empty list for a built-in kind, clears it: it stays empty until the next apply.
4. Ten managers that update are kept apart; the oldest are folded into ``ancient-changes``.
5. Nobody owns an object's identity or its versions, nor what the request could not have written (status
   on the object itself, spec on its status).

Decides: entries, their order, and what an update makes of them.  ``apply.py`` decides what an apply does;
the flow of a write calls ``track_update`` on the object as it was decoded and defaulted, before it is
prepared, and ``keep_times`` when it is ready to be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from setpoint.server.golang import quoted
from setpoint.server.registry.facts import type_of
from setpoint.server.registry.managed import sets
from setpoint.server.registry.managed.sets import BadFieldsError, Fields
from setpoint.server.registry.managed.typed import compare, fitted, is_custom, misfits, zero
from setpoint.server.registry.types import Type

Object = dict[str, Any]
Filter = Callable[[Fields], Fields]

_encode = msgspec.json.encode

MOST_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"
BEFORE_FIRST_APPLY: Final = "before-first-apply"


class Manager(NamedTuple):
    """Whom an entry is about.  An applier is the same one in whatever version it applies."""

    name: str
    operation: str  # Apply or Update
    version: str  # apiVersion; empty for an applier
    subresource: str

    @property
    def text(self) -> str:
        """What managers are sorted by."""
        said = {"manager": self.name, "operation": self.operation}
        if self.version:
            said["apiVersion"] = self.version
        if self.subresource:
            said["subresource"] = self.subresource
        return _encode(said).decode()


class MisfitError(ValueError):
    """An object does not fit another version of its kind, in which somebody owns fields of it."""


class Versions(NamedTuple):
    """Of a kind that has several: the type of each, by its apiVersion, and how an object is told in it.

    ``told`` raises ``MisfitError`` where nobody can say it.
    """

    types: Mapping[str, Type]
    told: Callable[[Object, str], Object]


class Entry(NamedTuple):
    """What a manager owns."""

    fields: Fields
    version: str
    time: str | None
    wire: Object | None = None  # the entry as it was read, while it is unchanged


Managed = dict[Manager, Entry]


# ── What a request may not write ────────────────────────────────────────────────────────────────────


def excluding(*paths: Sequence[str]) -> Filter:
    """Leaves out these fields and everything below them."""
    roots: Fields = {}
    for path in paths:
        roots = sets.union(roots, sets.single(tuple("f:" + name for name in path)))
    return lambda fields: sets.without(fields, roots)


def _everything(fields: Fields) -> Fields:
    return fields


_STATUS: Final = excluding(["status"])
_SPEC: Final = excluding(["spec"])
_SPEC_AND_METADATA: Final = excluding(["spec"], ["metadata"])
_RESETS: Final[Mapping[tuple[str, str, str], Filter]] = {
    ("apps", "Deployment", "status"): excluding(["spec"], ["metadata", "labels"]),
    ("", "Pod", "status"): excluding(
        ["spec"], ["metadata", "deletionTimestamp"], ["metadata", "ownerReferences"]
    ),
    ("", "Namespace", "finalize"): _STATUS,
    ("certificates.k8s.io", "CertificateSigningRequest", ""): excluding(["spec"], ["status"]),
    ("certificates.k8s.io", "CertificateSigningRequest", "status"): excluding(
        ["spec"], ["status", "conditions"]
    ),
    ("certificates.k8s.io", "CertificateSigningRequest", "approval"): excluding(
        ["spec"], ["status", "certificate"]
    ),
}
# Built-in kinds whose status endpoint lets the metadata be written too.
_METADATA_WITH_STATUS: Final = frozenset(
    {"DaemonSet", "ReplicaSet", "StatefulSet", "HorizontalPodAutoscaler", "CronJob", "Job", "Namespace",
     "Node", "PersistentVolume", "PersistentVolumeClaim", "ReplicationController", "ResourceQuota",
     "Service", "Ingress", "PodDisruptionBudget"}
)  # fmt: skip
_GROUPS: Final = frozenset({"", "apps", "autoscaling", "batch", "networking.k8s.io", "policy"})


def resets(group: str, kind: str, subresource: str, *, has_status: bool = True) -> Filter:
    """What a request to this endpoint may come to own, of all that it seems to change.

    ``has_status`` is False for a custom kind without a status subresource: there, status is plain data.
    """
    special = _RESETS.get((group, kind, subresource))
    if special is not None:
        return special
    if subresource == "status":
        return _SPEC if group in _GROUPS and kind in _METADATA_WITH_STATUS else _SPEC_AND_METADATA
    return _STATUS if not subresource and has_status else _everything


# ── Reading and writing entries ─────────────────────────────────────────────────────────────────────


def decode(entries: Any, *, trusted: bool = True) -> Managed:
    """The entries of an object; raises BadFieldsError where one cannot be read.

    ``trusted`` is False for what a client sent: its sets are brought into their canonical form.
    """
    managed: Managed = {}
    for place, entry in enumerate(entries or ()):
        operation, version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in {"Apply", "Update"}:
            raise BadFieldsError("operation must be `Apply` or `Update`")
        if not version:
            raise BadFieldsError("apiVersion must not be empty")
        if (kind := entry.get("fieldsType") or "") != "FieldsV1":
            told = f"invalid fieldsType {quoted(kind)} in" if kind else "missing fieldsType in"
            raise BadFieldsError(f"{told} managed fields entry {place}")
        fields = entry.get("fieldsV1") or {}
        manager = Manager(
            entry.get("manager", ""),
            operation,
            "" if operation == "Apply" else version,
            entry.get("subresource", ""),
        )
        if trusted:
            managed[manager] = Entry(fields, version, entry.get("time"), entry)
        else:
            managed[manager] = Entry(sets.read(fields), version, entry.get("time"))
    return managed


def encode(managed: Managed) -> list[Object]:
    """The entries, in their order: operation, time, name, version, subresource."""
    return [
        entry.wire if entry.wire is not None else _wire(manager, entry)
        for manager, entry in sorted(managed.items(), key=_place)
    ]


def _place(item: tuple[Manager, Entry]) -> tuple[str, str, str, str, str]:
    manager, entry = item
    return manager.operation, entry.time or "", manager.name, entry.version, manager.subresource


def _wire(manager: Manager, entry: Entry) -> Object:
    wire: Object = {}
    if manager.name:
        wire["manager"] = manager.name
    wire["operation"] = manager.operation
    wire["apiVersion"] = entry.version
    if entry.time is not None:
        wire["time"] = entry.time
    wire["fieldsType"] = "FieldsV1"
    wire["fieldsV1"] = sets.in_order(entry.fields)
    if manager.subresource:
        wire["subresource"] = manager.subresource
    return wire


# ── An update ───────────────────────────────────────────────────────────────────────────────────────


def track_update(
    new: Object,
    old: Object | None,
    *,
    manager: str,
    api_version: str,
    subresource: str,
    now: str,
    type: Type,  # noqa: A002 - the word of the whole registry
    only: Filter | None = None,
    versions: Versions | None = None,
) -> None:
    """Sets the managedFields of ``new``, which a create (``old`` is None), update or patch made of ``old``.

    Both are as they are emitted: decoded, defaulted, empty values written as Go writes them.  ``only`` is
    ``resets(...)`` of the endpoint; left out, it is that of a kind with a status.  Where the fields of one
    of ``versions`` cannot be told in another, in which somebody owns some, owners stay who they are.
    """
    metadata: Object = new["metadata"]
    before: Sequence[Object] = (old["metadata"].get("managedFields") or ()) if old is not None else ()
    sent = metadata.pop("managedFields", None)
    if sent == [] and is_custom(type):
        sent = None  # custom objects lose empty lists of metadata before anybody looks at them
    managed = _known(sent, before, subresource)
    if not managed and old is not None:
        return  # cleared, or from before there was tracking: it starts with the first apply
    if only is None:
        only = resets(_group(api_version), new.get("kind", ""), subresource)
    updater = Manager(manager or "unknown", "Update", api_version, subresource)
    was = old if old is not None else zero(type)
    written = Written(was, new, api_version, type, only, versions)
    try:
        managed = fitting(managed, written)
        update(managed, written, updater, now)
    except MisfitError:
        managed = _readable(before)
    except ValueError:
        pass  # an item that nothing can name: validation has its say, and until then owners stay who they are
    if managed:
        metadata["managedFields"] = encode(managed)


class Written:
    """What a write changed, in each version in which somebody owns fields."""

    def __init__(  # noqa: PLR0917 - a write, as it is
        self,
        old: Object,
        new: Object,
        version: str,
        type_: Type,
        only: Filter,
        versions: Versions | None = None,
    ) -> None:
        self.old = old
        self.version = version
        self.type = type_
        self._new = new
        self._only = only
        self._versions = versions
        self._found: dict[str, tuple[Fields, Fields]] = {}
        self._fits: set[str] = set()

    def type_at(self, version: str) -> Type | None:
        """None for a version that there is no more."""
        if version == self.version:
            return self.type
        if self._versions is not None:
            return self._versions.types.get(version)
        return self.type if is_custom(self.type) or _is_served(version, self._new) else None

    def told(self, obj: Object, version: str) -> Object:
        """An object of the kind in another version.  Raises ``MisfitError`` where it is none of it."""
        if self._versions is None or obj.get("apiVersion", self.version) == version:
            return obj
        found, type_ = self._versions.told(obj, version), self._versions.types[version]
        if is_custom(type_) and (wrong := misfit(found, type_)):
            raise MisfitError(wrong)
        return found

    def check_old(self, version: str) -> None:
        """Raises ``MisfitError`` where what there was is none of a version."""
        if version not in self._fits:
            self.told(self.old, version)
            self._fits.add(version)

    def at(self, version: str) -> tuple[Fields, Fields]:
        """Which fields changed and which went.  Raises ``MisfitError``."""
        if self._versions is None or version not in self._versions.types:
            version = self.version
        if version not in self._found:
            self._found[version] = self._compared(version, self._versions)
        return self._found[version]

    def _compared(self, version: str, versions: Versions | None) -> tuple[Fields, Fields]:
        old, new, type_ = self.old, self._new, self.type
        if versions is not None and version != self.version:
            try:
                new = self.told(new, version)
            except MisfitError as error:
                raise MisfitError(f"failed to convert new object: {error}") from None
            old, type_ = versions.told(old, version), versions.types[version]
            if is_custom(type_):  # what an endpoint may not write is known in its own version alone
                return compare(old, new, type_)
        changed, removed = compare(old, new, type_)
        return self._only(changed), self._only(removed)


def misfit(obj: Object, type_: Type) -> str:
    """Why an object is none of a version; nothing if it is one."""
    wrong = misfits(obj, type_)
    return wrong[0] if len(wrong) == 1 else "\n  ".join(["errors:", *wrong]) if wrong else ""


def update(managed: Managed, written: Written, updater: Manager, now: str) -> None:
    """Moves what changed to ``updater``."""
    changed, _ = written.at(written.version)
    take(managed, written)
    if changed:
        mine = managed.get(updater)
        fields = changed if mine is None else sets.union(changed, mine.fields)
        managed[updater] = Entry(fields, updater.version, now)
    _fold(managed)


def take(managed: Managed, written: Written, *, but: Manager | None = None) -> None:
    """Takes from every manager (``but`` one) what it owns of what changed or went."""
    for manager, entry in list(managed.items()):
        if manager == but:
            continue
        changed, removed = written.at(entry.version)
        fields = sets.difference(sets.difference(entry.fields, changed), removed)
        if not fields:
            del managed[manager]
        elif fields is not entry.fields:
            managed[manager] = Entry(fields, entry.version, entry.time)


def fitting(managed: Managed, written: Written) -> Managed:
    """The entries as they would be, had the type always been what it is; only custom kinds' types change.

    Of a built-in kind, without those of versions that are not served.  Of a custom one nobody can say what
    became of such fields: raises ``MisfitError``, as of what does not fit its version.
    """
    if not is_custom(written.type):
        return {manager: one for manager, one in managed.items() if written.type_at(one.version) is not None}
    result: Managed = {}
    for manager, entry in managed.items():
        type_ = written.type_at(entry.version)
        if type_ is None:
            raise MisfitError(f"request to convert CR to an invalid group/version: {entry.version}")
        if type_ is not written.type:
            written.check_old(entry.version)
        fields = fitted(entry.fields, type_)
        result[manager] = entry if fields is entry.fields else Entry(fields, entry.version, entry.time)
    return result


def _is_served(api_version: str, obj: Object) -> bool:
    """Whether objects of this built-in kind are served in a version."""
    group, _, version = api_version.rpartition("/")
    try:
        type_of(group, version, obj.get("kind", ""))
    except KeyError:
        return False
    return True


def _known(sent: Any, before: Sequence[Object], subresource: str) -> Managed:
    """The entries to start from: those that the request sent, if it may and can, else those there are."""
    if subresource or sent is None or sent == before:
        return _readable(before)
    if sent in ([], [{}]):
        return {}
    try:
        return decode(sent, trusted=False) or _readable(before)
    except (BadFieldsError, AttributeError, TypeError):
        return _readable(before)


def _readable(entries: Sequence[Object]) -> Managed:
    try:
        return decode(entries)
    except BadFieldsError:
        return {}


def _group(api_version: str) -> str:
    group, slash, _ = api_version.rpartition("/")
    return group if slash else ""


def _fold(managed: Managed) -> None:
    """Keeps the updaters to ten: the oldest of a version become one."""
    updaters = [manager for manager in managed if manager.operation == "Update"]
    left = len(updaters)
    if left <= MOST_UPDATERS:
        return
    updaters.sort(key=lambda manager: (managed[manager].time or "", manager.text))
    first: dict[str, Manager] = {}  # by version: it is renamed when a second one joins it
    folded: dict[Manager, list[Fields]] = {}
    for manager in updaters:
        if left <= MOST_UPDATERS:
            break
        entry = managed[manager]
        bucket = Manager(ANCIENT, "Update", entry.version, "")
        if entry.version not in first:
            first[entry.version] = manager
            continue
        if bucket not in managed:
            managed[bucket] = managed.pop(first[entry.version])
        folded.setdefault(bucket, [managed[bucket].fields]).append(entry.fields)
        managed[bucket] = Entry(managed[bucket].fields, entry.version, entry.time)
        if manager != bucket:
            del managed[manager]
        left -= 1
    for bucket, fields in folded.items():
        managed[bucket] = managed[bucket]._replace(fields=sets.union_of(fields))


# ── When the object is ready to be stored ───────────────────────────────────────────────────────────


def keep_times(new: Object, old: Object) -> None:
    """Puts the old times back where nothing but times differs, so that the write is none.

    Called on the object as it would be stored: defaults, normal forms and what the kind itself resets may
    have made it what it was.
    """
    after, before = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not after or not before or len(after) != len(before) or after == before:
        return
    if any(_timeless(a) != _timeless(b) for a, b in zip(after, before, strict=True)):
        return
    if _rest(new) == _rest(old):
        new["metadata"]["managedFields"] = before


def _timeless(entry: Object) -> Object:
    return {name: value for name, value in entry.items() if name != "time"}


def _rest(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
