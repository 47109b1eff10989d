"""The built-in rules by name, and what each is about; the rules themselves are loaded where they apply."""

from __future__ import annotations

from typing import Final, Literal

Plugin = Literal["LimitRanger", "PodSecurity", "ResourceQuota", "ServiceAccount"]
PLUGINS: Final[tuple[Plugin, ...]] = ("LimitRanger", "PodSecurity", "ResourceQuota")  # unless told otherwise

LIMITED: Final = frozenset({"pods", "persistentvolumeclaims"})  # by limit ranges
SECURITY: Final = "pod-security.kubernetes.io/"  # what labels about pod security begin with
SECURED: Final = frozenset({
    "namespaces", "pods", "podtemplates", "replicationcontrollers", "cronjobs.batch", "jobs.batch",
    "daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps",
})  # fmt: skip
