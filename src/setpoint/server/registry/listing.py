"""Which objects a list shows: selectors, pages over one snapshot, and the table of resourceVersion rules.

Pure but for the store it reads.  Promises: all pages of one list are one snapshot; a page that can no longer
be given is 410 with a token to go on inconsistently; what is asked wrongly is refused in Kubernetes' words.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from setpoint.api.decoders import prepare
from setpoint.api.selectors import FieldSelection, LabelSelection
from setpoint.server.golang import parse_int
from setpoint.server.registry.conversion import converted
from setpoint.server.registry.converting import is_by_webhook
from setpoint.server.registry.requests import Ask, Listed, is_true, options_invalid
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.statuses import (
    FieldError,
    StatusError,
    bad_request,
    expired,
    unsupported,
    version_too_large,
)
from setpoint.server.storage.objects import order
from setpoint.server.storage.protocol import Compacted, Place, Record, Store

_TOO_OLD = "The resourceVersion for the provided list is too old."
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may show "
    "up in the list."
)
_MATCHES = ("Exact", "NotOlderThan")


class ListOptions(NamedTuple):
    """What a list or a watch asks for, read from its query and checked."""

    version: int | None  # None: not said
    match: str
    limit: int
    continue_token: str
    sends_initial_events: bool | None
    allows_bookmarks: bool
    timeout: int | None


def list_options(query: Mapping[str, str], *, is_watch: bool) -> ListOptions:
    errors: list[FieldError] = []
    said, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    initial = is_true(query["sendInitialEvents"]) if "sendInitialEvents" in query else None
    if initial is not None:
        if not is_watch:
            errors.append(
                FieldError("forbidden", "sendInitialEvents", "sendInitialEvents is forbidden for list")
            )
        elif match != "NotOlderThan":
            told = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            errors.append(FieldError("forbidden", "resourceVersionMatch", told))
    if match:
        errors += _match_errors(match, said, query, is_watch=is_watch, initial=initial)
    if errors:
        raise options_invalid("ListOptions", errors)
    return ListOptions(
        version=_version(said, is_watch=is_watch),
        match=match,
        limit=max(_number(query, "limit") or 0, 0),
        continue_token=query.get("continue", ""),
        sends_initial_events=initial,
        allows_bookmarks=is_true(query.get("allowWatchBookmarks", "")),
        timeout=_number(query, "timeoutSeconds"),
    )


def _match_errors(
    match: str, said: str, query: Mapping[str, str], *, is_watch: bool, initial: bool | None
) -> list[FieldError]:
    if is_watch:
        if initial is None:
            told = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors = [FieldError("forbidden", "resourceVersionMatch", told)]
            if match != "NotOlderThan":
                errors.append(unsupported("resourceVersionMatch", match, ["NotOlderThan"]))
            return errors
        return []
    errors = []
    if not said:
        told = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        errors.append(FieldError("forbidden", "resourceVersionMatch", told))
    if query.get("continue"):
        told = "resourceVersionMatch is forbidden when continue is provided"
        errors.append(FieldError("forbidden", "resourceVersionMatch", told))
    if match not in _MATCHES:
        errors.append(unsupported("resourceVersionMatch", match, [*_MATCHES, ""]))
    if match == "Exact" and said == "0":
        told = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        errors.append(FieldError("forbidden", "resourceVersionMatch", told))
    return errors


def _version(said: str, *, is_watch: bool) -> int | None:
    if not said:
        return None
    if not (said.isascii() and said.isdigit() and len(said) < 20):
        problem = "value out of range" if said.isascii() and said.isdigit() else "invalid syntax"
        why = f'resourceVersion: Invalid value: "{said}": strconv.ParseUint: parsing "{said}": {problem}'
        if is_watch:
            raise StatusError(500, "", why)
        raise bad_request(f"invalid resource version: {why}")
    return int(said)


def _number(query: Mapping[str, str], name: str) -> int | None:
    said = query.get(name, "")
    if not said:
        return None
    try:
        return parse_int(said)
    except ValueError as error:
        raise bad_request(str(error)) from None


# ── Selectors ───────────────────────────────────────────────────────────────────────────────────────

Matches = Callable[[bytes], bool]  # is an object with these bytes selected?

_decode = msgspec.json.decode


class _Labelled(msgspec.Struct, gc=False):
    class _Metadata(msgspec.Struct, gc=False):
        labels: dict[str, str] | None = None

    metadata: _Metadata


_labelled = msgspec.json.Decoder(_Labelled)


class Selector:
    """A label and a field selector of one request; without either, everything is selected."""

    def __init__(self, ask: Ask) -> None:
        labels, fields = ask.query.get("labelSelector", ""), ask.query.get("fieldSelector", "")
        self._resource = ask.resource
        try:
            self._labels = LabelSelection.parse(labels) if labels else None
        except ValueError as error:
            raise bad_request(str(error)) from None
        try:
            self._fields = FieldSelection.parse(fields) if fields else None
        except ValueError as error:
            raise bad_request(str(error)) from None
        if self._fields is not None:
            _check_fields(self._fields, self._resource)

    @property
    def is_empty(self) -> bool:
        return self._labels is None and self._fields is None

    @property
    def needs_conversion(self) -> bool:
        """Whether it goes by fields of objects that a webhook converts: those must be converted first."""
        return (
            self._fields is not None
            and is_by_webhook(self._resource)
            and any(not one.field.startswith("metadata.") for one in self._fields.requirements)
        )

    @property
    def name(self) -> str:
        """The one name that can match, where the selector says so."""
        if self._fields is None:
            return ""
        return next(
            (
                one.value
                for one in self._fields.requirements
                if one.field == "metadata.name" and one.operator == "="
            ),
            "",
        )

    def matches(self, record: Record) -> bool:
        if self._labels is not None:
            labels = _labelled.decode(record.data).metadata.labels
            if not self._labels.matches(labels or {}):
                return False
        if self._fields is not None:
            return self._fields.matches(_fields_of(record, self._resource))
        return True


def _fields_of(record: Record, resource: Resource) -> dict[str, str]:
    place = record.place
    fields = {"metadata.name": place.name, "metadata.namespace": place.namespace}
    if resource.strategy.selectable_fields():
        found: Object = _decode(record.data)
        if resource.is_custom and not record.data.startswith(resource.head):
            found = converted(found, resource)
        fields.update(resource.strategy.fields(found))
    return fields


def _check_fields(selection: FieldSelection, resource: Resource) -> None:
    known = ["metadata.name", "metadata.namespace", *resource.strategy.selectable_fields()]
    for one in selection.requirements:
        if one.field in known:
            continue
        if resource.is_custom or len(known) > 2:
            raise bad_request(f"field label not supported: {one.field}")
        raise bad_request(
            f'"{one.field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )


# ── Pages ───────────────────────────────────────────────────────────────────────────────────────────


class _Token(msgspec.Struct, omit_defaults=True):
    v: str
    rv: int
    start: str
    left: int | None = None  # objects that follow, where that is known; Kubernetes' token has none


def _write_token(revision: int, after: Record, left: int | None) -> str:
    start = (
        f"{after.place.namespace}/{after.place.name}\0" if after.place.namespace else f"{after.place.name}\0"
    )
    return _encode(_Token("meta.k8s.io/v1", revision, start, left))


def _encode(made: _Token) -> str:
    token = msgspec.json.encode(made)
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _read_token(text: str) -> _Token:
    try:
        token = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Token)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise bad_request("invalid continue token: continue key is not valid: encoding is invalid") from None
    if token.v != "meta.k8s.io/v1":
        raise bad_request(
            f'continue key is not valid: server does not recognize this encoded version "{token.v}"'
        )
    if not token.start or ".." in token.start.split("/"):
        raise bad_request("continue key is not valid: the start is not a valid key")
    return token


Present = Callable[[Resource, Sequence[Record]], Awaitable[list[Record]]]


async def list_objects(store: Store, ask: Ask, present: Present | None = None) -> Listed:
    """A list, or a page of one, as it is stored; but as ``present`` has it where that is selected by."""
    options, selector = list_options(ask.query, is_watch=False), Selector(ask)
    if options.continue_token:
        found = await _rest(store, ask, options)
    else:
        found = await _first(store, ask, options)
    records: Iterable[Record] = found.records
    if present is not None and selector.needs_conversion:
        records = await present(ask.resource, list(records))
    listed = _page(records, found, selector)
    if listed.continue_token:
        store.hold(listed.revision)
    return listed


class _Found(NamedTuple):
    """What a page is taken from."""

    records: Iterable[Record]
    revision: int
    limit: int
    left: int | None = None  # of ``records``, where that is known


async def _first(store: Store, ask: Ask, options: ListOptions) -> _Found:
    """What a list begins with."""
    version, stored, namespace = options.version, ask.resource.stored, ask.namespace
    if version is not None and version > store.revision:
        raise version_too_large(version, store.revision)
    limit = 0 if version == 0 and not options.match else options.limit  # "any version" is never in pages
    is_exact = options.match == "Exact" or (version and options.limit and not options.match)
    if is_exact and version:
        revision = version
    elif not limit:
        return _Found(store.listed(stored, namespace), store.revision, 0)
    else:
        revision = store.revision
    try:
        records = await store.listed_from(stored, namespace, revision, None)
    except Compacted:
        raise expired(_TOO_OLD) from None
    return _Found(records, revision, limit, store.count(stored, namespace, revision) if limit else None)


async def _rest(store: Store, ask: Ask, options: ListOptions) -> _Found:
    """What a list goes on with."""
    if options.version:
        raise bad_request("specifying resource version is not allowed when using continue")
    token = _read_token(options.continue_token)
    stored, namespace, after = ask.resource.stored, ask.namespace, _order(token.start)
    # Below zero: the client was told that its list expired, and goes on inconsistently.
    revision = store.revision if token.rv < 0 else token.rv
    try:
        records = await store.listed_from(stored, namespace, revision, after)
    except Compacted:
        rest = await store.listed_from(stored, namespace, store.revision, after)
        left = sum(1 for _ in rest)
        again = _encode(_Token("meta.k8s.io/v1", -1, token.start, left)) if left else ""
        raise expired(_CONTINUE_TOO_OLD, continue_token=again) from None
    return _Found(records, revision, options.limit, token.left)


def _order(start: str) -> tuple[str, str]:
    """Where in a list a token goes on."""
    namespace, separator, name = start.rstrip("\0").partition("/")
    return order(Place("", namespace, name) if separator else Place("", "", namespace))


def _page(records: Iterable[Record], found: _Found, selector: Selector) -> Listed:
    """As many as are wanted at once.  Whether there is a next page is known from one more."""
    selected = records if selector.is_empty else filter(selector.matches, records)
    limit, revision = found.limit, found.revision
    if not limit:
        return Listed(revision, list(selected))
    page = list(islice(selected, limit + 1))
    if len(page) <= limit:
        return Listed(revision, page)
    page.pop()
    # The token carries how many are left: to count them would cost as much as to list them.
    left = found.left - limit if selector.is_empty and found.left is not None else None
    if left is not None and left <= 0:  # the token was not ours, or the list went on inconsistently
        left = None
    return Listed(revision, page, _write_token(revision, page[-1], left), left)


prepare(_Token)
