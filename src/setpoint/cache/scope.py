"""Which objects one watch brings, and what keeps it from bringing them.

A ``Scope`` is a value: two declarations of equal scope share one watch.  A ``Problem`` is what stands in the
way of one, in words that say what to do: which verb on which kind, and the RBAC rule that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from setpoint.api.names import GroupVersionKind, Resource
from setpoint.api.selectors import FieldSelection, LabelSelection
from setpoint.api.wire import Snapshot
from setpoint.cache.paths import has_fields
from setpoint.errors import Forbidden, SetpointError

VERBS = ("get", "list", "watch")  # what a cache needs; get is for live reads of what it does not hold


@dataclass(frozen=True, slots=True)
class Scope:
    """Some or all objects of a kind."""

    gvk: GroupVersionKind
    namespace: str = ""  # "" is all of them
    labels: LabelSelection = field(default_factory=LabelSelection)
    fields: FieldSelection = field(default_factory=FieldSelection)
    metadata_only: bool = False
    strip_managed_fields: bool = False

    def __str__(self) -> str:
        parts = [str(self.gvk)]
        parts += [f"in namespace {self.namespace}"] if self.namespace else []
        parts += [f"with {self.labels}"] if self.selects_labels else []
        parts += [f"where {self.fields}"] if self.fields.requirements else []
        parts += ["(metadata only)"] if self.metadata_only else []
        return " ".join(parts)

    @property
    def selects_labels(self) -> bool:
        return bool(self.labels.requirements)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out but other namespaces."""
        return not self.selects_labels and not self.fields.requirements

    def selects(self, snapshot: Snapshot) -> bool:
        """Whether an object is one of those."""
        metadata = snapshot.metadata
        return (
            self.namespace in ("", metadata.namespace)
            and self.labels.matches(metadata.labels)
            and has_fields(snapshot, self.fields)
        )

    def serves(self, other: Scope) -> bool:
        """Whether a watch of this scope brings all that one of the other would."""
        full = replace(
            other,
            metadata_only=self.metadata_only and other.metadata_only,
            strip_managed_fields=self.strip_managed_fields and other.strip_managed_fields,
        )
        return self == full


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a scope is not being watched just now."""

    scope: Scope
    verb: str
    error: SetpointError
    resource: Resource | None = None  # None where the server does not know the kind

    def __str__(self) -> str:
        if not self.rule:
            return str(self.error)
        where = f"a Role in namespace {self.scope.namespace}" if self.scope.namespace else "a ClusterRole"
        return f"{self.error}; add to the rules of {where}: {self.rule}"

    @property
    def rule(self) -> str:
        """The RBAC rule that is missing, as an item of a role's ``rules``; "" where it is something else."""
        if not isinstance(self.error, Forbidden) or self.resource is None:
            return ""
        return rbac_rule(self.resource.group, self.resource.plural, VERBS)


def rbac_rule(group: str, plural: str, verbs: Iterable[str]) -> str:
    """One item of a role's ``rules``, in YAML."""
    return f'- {{apiGroups: ["{group}"], resources: ["{plural}"], verbs: [{", ".join(verbs)}]}}'
