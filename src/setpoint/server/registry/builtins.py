"""The built-in kinds: one strategy for all of them, and tables that say where one differs from the others.

Decides: which part of an object a request may change, when the generation rises, what a new object begins
with.  What is filled in, refused and written comes from ``defaults``, ``validation`` and ``emit``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from setpoint.api.patches import same
from setpoint.server.golang import parse_int
from setpoint.server.registry import facts, pods, selectable, volumes
from setpoint.server.registry.allocation import Allocations, carry_over
from setpoint.server.registry.beginnings import add_tolerations, begin, drop_topology, name_secrets
from setpoint.server.registry.conform import WrongType, conform
from setpoint.server.registry.defaults import table as defaults
from setpoint.server.registry.defaults.workloads import TEMPLATE_GENERATION
from setpoint.server.registry.emit import emit
from setpoint.server.registry.metadata import bump_generation, keep
from setpoint.server.registry.resources import (
    Decoded,
    Family,
    NameRule,
    Object,
    PlainStrategy,
    Reservation,
    Resource,
)
from setpoint.server.registry.types import Type
from setpoint.server.statuses import FieldError, qualified

# Where a kind differs from most others.
_CONDITIONAL = 1  # an update must name the version that it saw
_CREATED = 2  # an update of what is not there creates it
_RETURNED = 4  # a deletion answers with the object
_UNCOUNTED = 8  # it has no generation
_LATER = 16  # its generation begins with its first change
_ONCE = 32  # its generation never rises
_TRAITS: Mapping[str, int] = {
    "configmaps": _UNCOUNTED,
    "endpoints": _CREATED | _UNCOUNTED,
    "events": _CREATED | _UNCOUNTED,
    "limitranges": _CREATED | _UNCOUNTED,
    "namespaces": _RETURNED | _UNCOUNTED,
    "nodes": _UNCOUNTED,
    "persistentvolumeclaims": _RETURNED | _UNCOUNTED,
    "persistentvolumes": _RETURNED | _UNCOUNTED,
    "pods": _RETURNED,
    "podtemplates": _RETURNED,
    "resourcequotas": _RETURNED | _UNCOUNTED,
    "secrets": _UNCOUNTED,
    "serviceaccounts": _RETURNED | _UNCOUNTED,
    "services": _CREATED | _RETURNED | _UNCOUNTED,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _CONDITIONAL,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _CONDITIONAL,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _CONDITIONAL,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _CONDITIONAL,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _CONDITIONAL,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _CONDITIONAL,
    "customresourcedefinitions.apiextensions.k8s.io": _CONDITIONAL,
    "apiservices.apiregistration.k8s.io": _CONDITIONAL | _UNCOUNTED,
    "controllerrevisions.apps": _UNCOUNTED,
    "certificatesigningrequests.certificates.k8s.io": _UNCOUNTED,
    "leases.coordination.k8s.io": _CONDITIONAL | _CREATED | _UNCOUNTED,
    "runtimeclasses.node.k8s.io": _CONDITIONAL | _CREATED | _UNCOUNTED,
    "poddisruptionbudgets.policy": _CONDITIONAL,
    "clustertrustbundles.certificates.k8s.io": _CONDITIONAL | _UNCOUNTED,
    "podcertificaterequests.certificates.k8s.io": _CONDITIONAL | _UNCOUNTED,
    "ipaddresses.networking.k8s.io": _UNCOUNTED,
    "servicecidrs.networking.k8s.io": _UNCOUNTED,
    "storageversionmigrations.storagemigration.k8s.io": _CONDITIONAL | _UNCOUNTED,
    "clusterrolebindings.rbac.authorization.k8s.io": _CREATED | _UNCOUNTED,
    "clusterroles.rbac.authorization.k8s.io": _CREATED | _UNCOUNTED,
    "rolebindings.rbac.authorization.k8s.io": _CREATED | _UNCOUNTED,
    "roles.rbac.authorization.k8s.io": _CREATED | _UNCOUNTED,
    "deviceclasses.resource.k8s.io": _RETURNED,
    "devicetaintrules.resource.k8s.io": _CONDITIONAL,
    "resourceclaims.resource.k8s.io": _RETURNED | _UNCOUNTED,
    "resourceclaimtemplates.resource.k8s.io": _RETURNED | _UNCOUNTED,
    "resourceslices.resource.k8s.io": _RETURNED,
    "csidrivers.storage.k8s.io": _CONDITIONAL | _RETURNED | _LATER,
    "csinodes.storage.k8s.io": _CONDITIONAL | _RETURNED | _UNCOUNTED,
    "csistoragecapacities.storage.k8s.io": _CONDITIONAL | _UNCOUNTED,
    "storageclasses.storage.k8s.io": _RETURNED | _UNCOUNTED,
    "volumeattachments.storage.k8s.io": _CONDITIONAL | _RETURNED | _UNCOUNTED,
    "volumeattributesclasses.storage.k8s.io": _RETURNED | _UNCOUNTED,
    "priorityclasses.scheduling.k8s.io": _ONCE,
}
_NAME_RULES: Mapping[str, NameRule] = {
    "namespaces": "label",
    "services": "label",
    "statefulsets.apps": "label",
    "apiservices.apiregistration.k8s.io": "path segment",
    "clustertrustbundles.certificates.k8s.io": "path segment",
    "events": "path segment",
    "ipaddresses.networking.k8s.io": "path segment",
    "poddisruptionbudgets.policy": "path segment",
    "certificatesigningrequests.certificates.k8s.io": "path segment",
    "roles.rbac.authorization.k8s.io": "path segment",
    "rolebindings.rbac.authorization.k8s.io": "path segment",
    "clusterroles.rbac.authorization.k8s.io": "path segment",
    "clusterrolebindings.rbac.authorization.k8s.io": "path segment",
}
_ORPHANED = frozenset({"jobs.batch", "replicationcontrollers"})
_ORPHAN_WARNINGS = {
    "jobs.batch": (
        (
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
            "remove them or set propagationPolicy=Orphan to suppress this warning"
        ),
    )
}
_STORED_AS = {("events.k8s.io", "events"): "events"}
# What of the metadata a write to /status leaves as it is; most kinds let all of it be written there.
_METADATA = ("annotations", "finalizers", "labels", "ownerReferences")
_STAYS: Mapping[str, tuple[str, ...]] = {
    "deployments.apps": ("labels",),
    "apiservices.apiregistration.k8s.io": _METADATA,
    "csinodes.storage.k8s.io": _METADATA,
    "devicetaintrules.resource.k8s.io": _METADATA,
    "flowschemas.flowcontrol.apiserver.k8s.io": _METADATA,
    "podcertificaterequests.certificates.k8s.io": _METADATA,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _METADATA,
    "resourceclaims.resource.k8s.io": _METADATA,
    "servicecidrs.networking.k8s.io": _METADATA,
    "storageversionmigrations.storagemigration.k8s.io": _METADATA,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _METADATA,
    "volumeattachments.storage.k8s.io": _METADATA,
}
# What of the metadata counts as a change, as all of the rest of an object does.
_COUNTED = {"deployments.apps": "annotations", "endpointslices.discovery.k8s.io": "labels"}


class BuiltinStrategy(PlainStrategy):
    """One built-in kind."""

    def __init__(self, served: facts.Served, kind_type: Type, allocations: Allocations) -> None:
        self._kind = (served.group, served.version, served.kind)
        self._type = kind_type
        self._has_status = any(one.name == "status" for one in served.subresources)
        self._allocations = allocations
        stored = _stored_as(served)
        self._stored = stored
        traits = _TRAITS.get(stored, 0)
        self.is_virtual = "get" not in served.verbs and "list" not in served.verbs
        self.allows_unconditional_update = not traits & _CONDITIONAL
        self.allows_create_on_update = bool(traits & _CREATED)
        self.returns_deleted = bool(traits & _RETURNED)
        self.has_generation = not traits & _UNCOUNTED
        self._is_counted_later = bool(traits & _LATER)
        self._is_counted_once = bool(traits & _ONCE)
        self.name_rule = _NAME_RULES.get(qualified(served.plural, served.group), "subdomain")
        self.default_policy = "Orphan" if stored in _ORPHANED else "Background"
        self.orphan_warnings = _ORPHAN_WARNINGS.get(stored, ())

    def __repr__(self) -> str:
        return f"<BuiltinStrategy of {self._stored}>"

    def conform(self, obj: Object) -> Decoded:
        decoded = conform(obj, self._type)
        if self._stored == "daemonsets.apps":
            _check_count(decoded.object)
        return decoded

    def default(self, obj: Object) -> None:
        defaults.default(*self._kind, obj)

    def emit(self, obj: Object) -> Object:
        return emit(obj, self._type)

    def fields(self, obj: Object) -> dict[str, str]:
        return selectable.fields(self._stored, self._kind[0], obj)

    def selectable_fields(self) -> Sequence[str]:
        return selectable.names(self._stored, self._kind[0])

    def prepare_create(self, obj: Object) -> None:
        if self._has_status and self._stored not in _STATUS_STAYS:
            obj.pop("status", None)
        if self._is_counted_later:
            obj["metadata"].pop("generation", None)
        defaults.after_uid(*self._kind, obj)
        begin(self._stored, obj)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            _only(new, old, "status")
            for name in _STAYS.get(self._stored, ()):
                keep(new["metadata"], old["metadata"], name)
            if self._stored == "pods":
                pods.keep_status(new, old)
            return
        part = _PARTS.get(subresource)
        if part is not None:
            part(new, old)
            return
        if self._has_status:
            _put(new, "status", old.get("status"))
        prepare = _PREPARATIONS.get(self._stored)
        if prepare is not None:
            prepare(new, old)
        if self._stored == "daemonsets.apps":
            self._count_template(new, old)
        if self.has_generation and not self._is_counted_once and self._is_other(new, old):
            bump_generation(new)

    def _count_template(self, new: Object, old: Object) -> None:
        """A DaemonSet counts its templates in an annotation, which nobody else may set."""
        count = parse_int((old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "1"))
        if not same(self.emit(new)["spec"]["template"], self.emit(old)["spec"]["template"]):
            count += 1
        annotations = new["metadata"].get("annotations") or {}
        new["metadata"]["annotations"] = {**annotations, TEMPLATE_GENERATION: str(count)}

    def _is_other(self, new: Object, old: Object) -> bool:
        """Whether what is wanted has changed, not what is said about it."""
        part = _COUNTED.get(self._stored)
        if part and not same(new["metadata"].get(part) or {}, old["metadata"].get(part) or {}):
            return True
        return not same(self._wanted(new), self._wanted(old))

    def _wanted(self, obj: Object) -> Object:
        return {name: value for name, value in self.emit(obj).items() if name not in ("metadata", "status")}

    def validate_create(self, obj: Object) -> list[FieldError]:
        from setpoint.server.registry.validation import table  # noqa: PLC0415 - many files, needed late

        return table.errors(*self._kind, obj)

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[FieldError]:
        from setpoint.server.registry.validation import table  # noqa: PLC0415

        return table.update_errors(*self._kind, new, old, subresource)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        from setpoint.server.registry.validation import table  # noqa: PLC0415

        return table.warnings(*self._kind, obj, old)

    def reserve(self, obj: Object, old: Object | None) -> Reservation:
        return self._allocations.reserve(obj, old) if self._stored == "services" else Reservation()

    def release(self, obj: Object) -> Reservation:
        if self._stored != "services":
            return Reservation()
        return Reservation(settle=partial(self._allocations.release, obj))


def _check_count(daemon_set: Object) -> None:
    """What counts the templates is a number, in its plainest form."""
    annotations = (daemon_set.get("metadata") or {}).get("annotations") or {}
    said = annotations.get(TEMPLATE_GENERATION)
    if said is None:
        return
    try:
        annotations[TEMPLATE_GENERATION] = str(parse_int(said))
    except ValueError as error:
        raise WrongType(str(error)) from None


_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class DefinitionStrategy(BuiltinStrategy):
    """CustomResourceDefinitions, whose rules a server without any never loads."""

    def validate_create(self, obj: Object) -> list[FieldError]:
        from setpoint.server.registry.crd import definition  # noqa: PLC0415

        return definition.errors(obj)

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[FieldError]:
        from setpoint.server.registry.crd import definition  # noqa: PLC0415

        return definition.update_errors(new, old, subresource)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        from setpoint.server.registry.crd import definition  # noqa: PLC0415

        return definition.warnings(obj, old)

    def prepare_delete(self, obj: Object) -> None:
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if _CRD_FINALIZER not in finalizers and not obj["metadata"].get("deletionTimestamp"):
            finalizers.append(_CRD_FINALIZER)


_CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
# Kinds whose creator may set the status: a kubelet registers its Node so.
_STATUS_STAYS = frozenset({"nodes"})


# ── What an update of one part leaves alone ─────────────────────────────────────────────────────────


def _put(holder: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        holder.pop(name, None)
    else:
        holder[name] = value


def _only(new: Object, old: Object, part: str) -> None:
    """Everything but metadata and one part is as it was."""
    for name in {*new, *old} - {"metadata", "kind", "apiVersion", part}:
        _put(new, name, old.get(name))


def _finalize(new: Object, old: Object) -> None:
    finalizers = (new.get("spec") or {}).get("finalizers")
    new["spec"] = {**(old.get("spec") or {})}
    _put(new["spec"], "finalizers", finalizers)
    _put(new, "status", old.get("status"))


def _approve(new: Object, old: Object) -> None:
    conditions = (new.get("status") or {}).get("conditions")
    new["spec"] = old["spec"]
    new["status"] = {**(old.get("status") or {})}
    _put(new["status"], "conditions", conditions)


def _ephemeral(new: Object, old: Object) -> None:
    added = (new.get("spec") or {}).get("ephemeralContainers")
    new["spec"] = {**old["spec"]}
    _put(new["spec"], "ephemeralContainers", added)
    _leave_the_rest(new, old)


def _resize(new: Object, old: Object) -> None:
    pods.resize(new, old)
    _leave_the_rest(new, old)


def _leave_the_rest(new: Object, old: Object) -> None:
    for name in _METADATA:
        keep(new["metadata"], old["metadata"], name)
    _put(new, "status", old.get("status"))
    if not same(new["spec"], old["spec"]):
        bump_generation(new)


_PARTS: Mapping[str, Callable[[Object, Object], None]] = {
    "finalize": _finalize,
    "approval": _approve,
    "ephemeralcontainers": _ephemeral,
    "resize": _resize,
}


def _keep_spec_finalizers(new: Object, old: Object) -> None:
    new.setdefault("spec", {})["finalizers"] = (old.get("spec") or {}).get("finalizers") or []


def _keep_spec(new: Object, old: Object) -> None:
    new["spec"] = old["spec"]


def _store_versions(new: Object, old: Object) -> None:
    del old
    stored = new.setdefault("status", {}).setdefault("storedVersions", None) or []
    for one in new["spec"].get("versions") or []:
        if one.get("storage") and one["name"] not in stored:
            new["status"] = {**new["status"], "storedVersions": [*stored, one["name"]]}


def _keep_of_pod(new: Object, old: Object) -> None:
    add_tolerations(new["spec"])
    pods.keep_resources(new["spec"], old["spec"])


def _fill_sources(new: Object, old: Object) -> None:
    volumes.fill_sources(new.setdefault("spec", {}), old["spec"])


def _name_secrets(new: Object, old: Object) -> None:
    del old
    name_secrets(new)


def _drop_topology(new: Object, old: Object) -> None:
    del old
    drop_topology(new)


_PREPARATIONS: Mapping[str, Callable[[Object, Object], None]] = {
    "endpointslices.discovery.k8s.io": _drop_topology,
    "pods": _keep_of_pod,
    "namespaces": _keep_spec_finalizers,
    "persistentvolumeclaims": _fill_sources,
    "serviceaccounts": _name_secrets,
    "services": carry_over,
    "certificatesigningrequests.certificates.k8s.io": _keep_spec,
    "customresourcedefinitions.apiextensions.k8s.io": _store_versions,
}


# ── All of them ─────────────────────────────────────────────────────────────────────────────────────


def builtin_resources(allocations: Allocations) -> Iterable[Resource]:
    """Every resource of Kubernetes that this server serves."""
    autoscalers: dict[str, Resource] = {}
    family = Family("", autoscalers)
    for served in facts.resources():
        kind_type = facts.type_of(served.group, served.version, served.kind)
        made = DefinitionStrategy if _stored_as(served) == _DEFINITIONS else BuiltinStrategy
        resource = Resource(
            group=served.group,
            version=served.version,
            plural=served.plural,
            kind=served.kind,
            namespaced=served.namespaced,
            verbs=served.verbs,
            type=kind_type,
            strategy=made(served, kind_type, allocations),
            singular=served.singular,
            list_kind=served.list_kind or f"{served.kind}List",
            short_names=served.short_names,
            categories=served.categories,
            subresources=served.subresources,
            columns=served.columns,
            stored_as=_STORED_AS.get((served.group, served.plural), ""),
            deprecation=served.deprecation,
            family=family if served.group == "autoscaling" else None,
        )
        if resource.family is not None:
            autoscalers[resource.api_version] = resource
        yield resource


def _stored_as(served: facts.Served) -> str:
    plain = f"{served.plural}.{served.group}" if served.group else served.plural
    return _STORED_AS.get((served.group, served.plural), plain)
