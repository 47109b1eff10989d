"""What things are called: kinds, resources and keys.

A *kind* is what an object says it is (``apiVersion`` and ``kind``); a *resource* is where the server
keeps objects of that kind (the plural in the URL, and its scope); a *key* is one object's place in it.
Plain values, compared by content.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple


class Key(NamedTuple):
    """One object's place among its kind; ``namespace`` is "" where the kind is cluster-scoped."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class GroupVersionKind(NamedTuple):  # a tuple, for it is the key of many a dict
    """What an object says it is; ``group`` is "" for the core kinds."""

    group: str
    version: str
    kind: str

    @staticmethod
    def of(api_version: str, kind: str) -> GroupVersionKind:
        """From an object's own words: ``of("apps/v1", "Deployment")``."""
        return _kind(api_version, kind)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


@lru_cache(maxsize=1_000)  # there are few, and every object says its own
def _kind(api_version: str, kind: str) -> GroupVersionKind:
    group, slash, version = api_version.rpartition("/")
    if not version or not kind or (slash and not group) or "/" in group:
        raise ValueError(
            f"apiVersion {api_version!r} and kind {kind!r} name no kind (as in apps/v1, Deployment)"
        )
    return GroupVersionKind(group, version, kind)


@dataclass(frozen=True)
class Resource:
    """Where a server keeps the objects of one kind."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @cached_property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural
