"""What kinds this server has, and where it keeps them.

``Discovery.find`` turns a kind into its resource.  It asks the server once and remembers; a kind that is
not remembered makes it ask again, once, because a CustomResourceDefinition may have been installed since.
Callers that ask at the same time share one question.

Servers since 1.27 answer with everything in two documents (aggregated discovery); older ones need one
question per group and version.  Which of the two came back shows in the answer itself.  A group whose own
server is down is left out of the answer, and its kinds are then unknown until it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from setpoint.api.decoders import prepare
from setpoint.api.names import GroupVersionKind, Resource
from setpoint.errors import ApiError, BadAnswer, UnknownKind

M = TypeVar("M")

Fetch = Callable[[str, str], Awaitable[bytes]]  # path, Accept → body

_AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)


class _Model(msgspec.Struct, rename="camel"):
    """Go writes null for a list that is empty, so every list may be None."""


class _Kind(_Model):
    kind: str | None = None


class _Subresource(_Model):
    subresource: str


class _Resource(_Model):
    resource: str
    response_kind: _Kind | None = None
    scope: str = "Namespaced"
    singular_resource: str | None = None
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None
    subresources: list[_Subresource] | None = None


class _Version(_Model):
    version: str
    resources: list[_Resource] | None = None


class _Named(_Model):
    name: str | None = None


class _Group(_Model):
    metadata: _Named | None = None
    versions: list[_Version] | None = None


class _LegacyVersion(_Model):
    group_version: str


class _LegacyGroup(_Model):
    name: str
    versions: list[_LegacyVersion] | None = None


class _Root(_Model):
    """An answer to /api or /apis: aggregated groups (items), or the older lists of versions and groups."""

    kind: str
    items: list[_Group] | None = None
    versions: list[str] | None = None
    groups: list[_LegacyGroup] | None = None


class _LegacyResource(_Model):
    name: str
    kind: str
    namespaced: bool
    singular_name: str | None = None
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


class _LegacyResources(_Model):
    group_version: str
    resources: list[_LegacyResource] | None = None


class Discovery:
    """The kinds of one server, asked for when first needed."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._known: dict[GroupVersionKind, Resource] | None = None
        self._asking: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Discovery {'not asked yet' if self._known is None else f'{len(self._known)} kinds'}>"

    async def find(self, gvk: GroupVersionKind) -> Resource:
        """Where objects of this kind are kept."""
        if self._known is None or gvk not in self._known:
            await self.refresh()
        found = (self._known or {}).get(gvk)
        if found is None:
            raise UnknownKind(f"find the resource of {gvk}", self._nearest(gvk))
        return found

    async def resources(self) -> list[Resource]:
        """Every resource the server has, in its order of preference."""
        if self._known is None:
            await self.refresh()
        return list((self._known or {}).values())

    async def refresh(self) -> None:
        """Ask the server anew; callers at the same time share one question."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="setpoint-discovery")
            self._asking.add_done_callback(self._asked)
        # Shielded: one caller giving up must not take the answer from the others.
        await asyncio.shield(self._asking)

    async def close(self) -> None:
        """Stop asking, if a question is under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking = None
        if not task.cancelled():
            task.exception()  # seen: whoever awaits refresh() is told; nobody may be left to await it

    async def _ask(self) -> None:
        found: list[Resource] = []
        for path in ("/api", "/apis"):
            root = _read(path, await self._fetch(path, _AGGREGATED), _Root)
            if root.kind == "APIGroupDiscoveryList":
                found.extend(_aggregated(root))
            else:
                found.extend(await self._legacy(path, root))
        known: dict[GroupVersionKind, Resource] = {}
        for resource in found:
            known.setdefault(resource.gvk, resource)
        self._known = known

    async def _legacy(self, path: str, root: _Root) -> list[Resource]:
        paths = [f"{path}/{version}" for version in root.versions or ()]
        paths += [f"{path}/{v.group_version}" for group in root.groups or () for v in group.versions or ()]
        found: list[Resource] = []
        for part in paths:
            try:
                body = await self._fetch(part, "application/json")
            except ApiError as error:
                if error.code in {404, 503}:  # its own server is down, or it went away while we asked
                    continue
                raise
            found.extend(_legacy_resources(_read(part, body, _LegacyResources)))
        return found

    def _nearest(self, gvk: GroupVersionKind) -> str:
        known = self._known or {}
        others = sorted({k.api_version for k in known if k.kind == gvk.kind})
        if others:
            return f"the server has {gvk.kind} only in {', '.join(others)}"
        return "the server has no such kind; is its CustomResourceDefinition installed?"


def _aggregated(root: _Root) -> Iterator[Resource]:
    for group in root.items or ():
        name = (group.metadata and group.metadata.name) or ""
        for version in group.versions or ():
            for one in version.resources or ():
                kind = one.response_kind
                if kind is None or not kind.kind:  # a path with subresources only
                    continue
                yield Resource(
                    group=name,
                    version=version.version,
                    kind=kind.kind,
                    plural=one.resource,
                    namespaced=one.scope == "Namespaced",
                    singular=one.singular_resource or "",
                    short_names=tuple(one.short_names or ()),
                    categories=tuple(one.categories or ()),
                    verbs=tuple(one.verbs or ()),
                    subresources=tuple(sub.subresource for sub in one.subresources or ()),
                )


def _legacy_resources(answer: _LegacyResources) -> Iterator[Resource]:
    group, _, version = answer.group_version.rpartition("/")
    resources = answer.resources or []
    for one in resources:
        if "/" in one.name:
            continue
        yield Resource(
            group=group,
            version=version,
            kind=one.kind,
            plural=one.name,
            namespaced=one.namespaced,
            singular=one.singular_name or "",
            short_names=tuple(one.short_names or ()),
            categories=tuple(one.categories or ()),
            verbs=tuple(one.verbs or ()),
            subresources=tuple(_parts_of(one.name, resources)),
        )


def _parts_of(plural: str, resources: Iterable[_LegacyResource]) -> Iterator[str]:
    for one in resources:
        parent, slash, part = one.name.partition("/")
        if slash and parent == plural:
            yield part


def _read(path: str, body: bytes, model: type[M]) -> M:
    try:
        return msgspec.json.decode(body, type=model)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(f"get {path}", f"not a discovery document: {error}") from error


prepare(_Root, _LegacyResources)
