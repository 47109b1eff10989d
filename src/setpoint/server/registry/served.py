"""What is served now: the built-in resources, and the custom ones as their definitions come and go.

One writer (``crds.py``), many readers; ``generation`` changes whenever the set does, so that what is made
from it (discovery, OpenAPI) can be kept until then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from setpoint.server.registry.resources import Resource

_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")


class Resources:
    """Resources by group, version and plural."""

    def __init__(self, builtin: Iterable[Resource]) -> None:
        self._builtin: dict[tuple[str, str, str], Resource] = {}
        for one in builtin:
            self._builtin[one.group, one.version, one.plural] = one
        self._custom: dict[str, list[Resource]] = {}  # by the definition's name
        self._found = dict(self._builtin)
        self.generation = 1
        self._told: list[Callable[[], None]] = []  # those who want to know when the set changes

    def __repr__(self) -> str:
        return f"<Resources {len(self._found)} served, {len(self._custom)} custom definitions>"

    def on_change(self, call: Callable[[], None]) -> None:
        """Call it whenever the set has changed."""
        self._told.append(call)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._found.get((group, version, plural))

    def builtin(self, group: str, version: str, plural: str) -> Resource:
        """One that is always there."""
        return self._builtin[group, version, plural]

    def of(self, group: str, version: str) -> list[Resource]:
        """Those of one group and version, by name."""
        return sorted(
            (one for one in self._found.values() if (one.group, one.version) == (group, version)),
            key=lambda one: one.plural,
        )

    def stored(self, name: str) -> Resource | None:
        """The first that is kept under this name in the store."""
        return next((one for one in self._found.values() if one.stored == name), None)

    def all(self) -> list[Resource]:
        return list(self._found.values())

    def groups(self) -> list[tuple[str, list[str]]]:
        """Every group with its versions, the preferred first; built-in groups come in their own order."""
        versions: dict[str, list[str]] = {}
        for group, version, _ in self._found:
            known = versions.setdefault(group, [])
            if version not in known:
                known.append(version)
        return [(group, sorted(found, key=version_order)) for group, found in versions.items()]

    def set_custom(self, definition: str, resources: list[Resource]) -> None:
        """What one definition serves from now on; [] takes it away."""
        if resources:
            self._custom[definition] = resources
        elif self._custom.pop(definition, None) is None:
            return
        custom = [one for name in sorted(self._custom) for one in self._custom[name]]
        self._found = {**self._builtin, **{(one.group, one.version, one.plural): one for one in custom}}
        self.generation += 1
        for call in self._told:
            call()

    def custom(self) -> dict[str, list[Resource]]:
        return dict(self._custom)


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts versions as Kubernetes prefers them: v2, v1, v1beta1, v1alpha1, then what is not of that form."""
    found = _VERSION.fullmatch(version)
    if not found:
        return (3, 0, 0, version)
    major, stage, minor = int(found[1]), found[2], int(found[3] or 0)
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -major, -minor, "")
