"""What is served, told to clients: groups, versions, resources; in one document, or one by one.

The documents are made when first asked for and kept until the set of resources changes.  The whole (v2)
has an ETag, so that a client that knows it already is told so with 304.

Pure.  Fed by ``registry/served.py``; used by ``app.py``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from hashlib import sha256, sha512
from typing import Any, Final, NamedTuple

import msgspec

from setpoint.server.registry.facts import resources
from setpoint.server.registry.resources import Resource, Subresource
from setpoint.server.registry.served import Resources

Json = dict[str, Any]
WHOLE: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Whole(NamedTuple):
    data: bytes
    etag: str


class Discovery:
    """Documents about ``resources``, each made once for each set of them."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._generation = 0
        self._kept: dict[str, Any] = {}

    def _keep(self, name: str, make: Callable[[], Any]) -> Any:
        if self._generation != self._resources.generation:
            self._generation = self._resources.generation
            self._kept.clear()
        found = self._kept.get(name)
        if found is None:
            found = make()
            if found is not None:  # asking for what there is not must not fill the memory
                self._kept[name] = found
        return found

    def whole(self, root: str) -> Whole:
        """All of ``/api`` or ``/apis``, in one."""

        def make() -> Whole:
            items = [
                self._group(group, versions)
                for group, versions in self._resources.groups()
                if bool(group) == (root == "apis")
            ]
            data = _encoded(
                {
                    "kind": "APIGroupDiscoveryList",
                    "apiVersion": "apidiscovery.k8s.io/v2",
                    "metadata": {},
                    "items": items,
                }
            )
            return Whole(data, f'"{sha512(data).hexdigest().upper()}"')

        found: Whole = self._keep(f"whole {root}", make)
        return found

    def _group(self, group: str, versions: list[str]) -> Json:
        return {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_discovered(one) for one in self._resources.of(group, version)],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }

    def groups(self) -> bytes:
        """``/apis``, as it was before there was one document."""

        def make() -> bytes:
            found = [_legacy_group(group, versions) for group, versions in self._resources.groups() if group]
            return _encoded({"kind": "APIGroupList", "apiVersion": "v1", "groups": found})

        data: bytes = self._keep("groups", make)
        return data

    def group(self, name: str) -> bytes | None:
        """``/apis/NAME``; None where there is no such group."""

        def make() -> bytes | None:
            versions = dict(self._resources.groups()).get(name)
            if not name or versions is None:
                return None
            return _encoded({"kind": "APIGroup", "apiVersion": "v1", **_legacy_group(name, versions)})

        data: bytes | None = self._keep(f"group {name}", make)
        return data

    def version(self, group: str, version: str) -> bytes | None:
        """``/api/v1``, ``/apis/apps/v1``; None where there is no such version."""

        def make() -> bytes | None:
            found = self._resources.of(group, version)
            if not found:
                return None
            named = {"groupVersion": f"{group}/{version}" if group else version}
            head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {}), **named}
            return _encoded({**head, "resources": [row for one in found for row in _legacy_resource(one)]})

        name = f"version {group}/{version}"
        data: bytes | None = self._keep(name, make)
        return data


def _encoded(value: Json) -> bytes:
    return msgspec.json.encode(value)


def _kind(resource: Resource, below: Subresource | None = None) -> Json:
    """Empty parts mean the parent's; custom resources always say theirs."""
    kind = resource.kind if below is None else below.kind
    if below is not None and below.version:
        return {"group": below.group, "version": below.version, "kind": kind}
    if resource.is_custom:
        return {"group": resource.group, "version": resource.version, "kind": kind}
    return {"group": "", "version": "", "kind": kind}


def _discovered(resource: Resource) -> Json:
    found: Json = {
        "resource": resource.plural,
        "responseKind": _kind(resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    }
    if resource.short_names:
        found["shortNames"] = resource.short_names
    if resource.categories:
        found["categories"] = resource.categories
    if resource.subresources:
        found["subresources"] = [
            {"subresource": one.name, "responseKind": _kind(resource, one), "verbs": one.verbs}
            for one in resource.subresources
        ]
    return found


def _legacy_group(group: str, versions: list[str]) -> Json:
    known = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": known, "preferredVersion": known[0]}


def _legacy_resource(resource: Resource) -> list[Json]:
    first: Json = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    }
    if resource.short_names:
        first["shortNames"] = resource.short_names
    if resource.categories:
        first["categories"] = resource.categories
    if stored := _storage_version_hash(resource):
        first["storageVersionHash"] = stored
    rows = [first]
    for below in resource.subresources:
        row: Json = {
            "name": f"{resource.plural}/{below.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if below.version:
            row |= {"group": below.group, "version": below.version}
        rows.append({**row, "kind": below.kind, "verbs": below.verbs})
    return rows


@cache
def _built_in() -> dict[tuple[str, str, str], str]:
    return {(one.group, one.version, one.plural): one.storage_version_hash for one in resources()}


def _storage_version_hash(resource: Resource) -> str:
    """Names the version that objects are stored in: it changes when that does."""
    if not resource.is_custom:
        return _built_in().get((resource.group, resource.version, resource.plural), "")
    named = f"{resource.group}/{resource.version}/{resource.kind}"
    return base64.b64encode(sha256(named.encode()).digest()[:8]).decode()
