"""Which RBAC rules controllers need, by what they declare: nothing more, and nothing that is hard to see.

- Its own kind is read, its status written; with a clean-up, its finalizers too.
- Kinds that it owns are read, made, changed and pruned; kinds that it watches are read.
- What happened is told as Events.

What a reconciler does besides, with a client of its own, only its author knows.  Leader election has a rule
of its own, in one namespace (``manager/lease.py``).

Pure.  Fed by ``operator.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from setpoint.api.forms import Form
from setpoint.api.metaclass import plural_of

READ: Final = ("get", "list", "watch")
OWN: Final = (*READ, "create", "patch", "delete")
_ORDER: Final = (*READ, "create", "update", "patch", "delete", "deletecollection")


class Permission(NamedTuple):
    """Verbs on a resource of a group; ``deployments`` or ``deployments/status``."""

    group: str
    resource: str
    verbs: tuple[str, ...]


def needed(
    kind: Form[Any], *, owns: Iterable[Form[Any]], watches: Iterable[Form[Any]], cleans_up: bool
) -> Iterator[Permission]:
    """What one controller needs."""
    group, plural = _place(kind)
    yield Permission(group, plural, (*READ, "patch") if cleans_up else READ)
    yield Permission(group, f"{plural}/status", ("patch",))
    # Where owners may be blocked only by who may update their finalizers, children are made by nobody else.
    yield Permission(group, f"{plural}/finalizers", ("update",))
    for owned in owns:
        yield Permission(*_place(owned), OWN)
    for watched in watches:
        yield Permission(*_place(watched), READ)
    yield Permission("events.k8s.io", "events", ("create", "patch"))


def _place(kind: Form[Any]) -> tuple[str, str]:
    """Its group and plural; what is not known without a server is guessed as kubectl would."""
    plural = kind.resource.plural if kind.resource is not None else plural_of(kind.gvk.kind)
    return kind.gvk.group, plural


def as_rules(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """As the ``rules`` of a role: one for each resource, in order."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for one in permissions:
        verbs.setdefault((one.group, one.resource), set()).update(one.verbs)
    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            "verbs": sorted(found, key=lambda verb: _ORDER.index(verb) if verb in _ORDER else len(_ORDER)),
        }
        for (group, resource), found in sorted(verbs.items())
    ]
