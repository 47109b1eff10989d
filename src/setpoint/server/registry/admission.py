"""What the server itself adds to a new object: the classes that it names none of, tolerations, protection.

Priorities and run times of pods, storage of claims, classes of ingresses; a class that is named and is not
there is refused.  Nobody owns what is filled in here: managedFields are set before.  Pure but for the look
into the store, which is handed in; in place.

Not here: webhooks, policies, limit ranges, quotas, pod security (``server/admission``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from setpoint.server.registry.beginnings import PRIORITIES, add_taint, add_tolerations, protect
from setpoint.server.registry.resources import Object
from setpoint.server.statuses import StatusError, forbidden

Look = Callable[[str], Sequence[Object]]  # all objects that are stored under this name

_DEFAULT_STORAGE: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_INGRESS: Final = ("ingressclass.kubernetes.io/is-default-class",)
_OLD_STORAGE: Final = "volume.beta.kubernetes.io/storage-class"
_OLD_INGRESS: Final = "kubernetes.io/ingress.class"


def admit(stored: str, obj: Object, look: Look) -> None:
    """Kinds that refer to no class stay as they are."""
    found = _ADMITTED.get(stored)
    if found is not None:
        found(obj, look)


def _pod(obj: Object, look: Look) -> None:
    spec = obj["spec"]
    classes = look("priorityclasses.scheduling.k8s.io")
    name = spec.get("priorityClassName")
    if not name:
        chosen = min(
            (one for one in classes if one.get("globalDefault")),
            key=lambda one: int(one["value"]),
            default=None,
        )
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    else:
        chosen = _named(classes, name)
        if chosen is None and name not in PRIORITIES:
            raise _refused(obj, f"no PriorityClass with name {name} was found")
    chosen = chosen or {"value": PRIORITIES.get(name or "", 0)}
    _fill(obj, "priority", chosen["value"], "integer value of priority")
    policy = chosen.get("preemptionPolicy") or "PreemptLowerPriority"
    _fill(obj, "preemptionPolicy", policy, "string value of PreemptionPolicy")
    add_tolerations(spec)
    runtime = spec.get("runtimeClassName")
    if runtime and _named(look("runtimeclasses.node.k8s.io"), runtime) is None:
        raise _refused(obj, f'pod rejected: RuntimeClass "{runtime}" not found')


def _fill(obj: Object, field: str, computed: int | str, what: str) -> None:
    given = obj["spec"].get(field)
    if given is not None and given != computed:
        raise _refused(
            obj,
            f"the {what} ({given}) must not be provided in pod spec; priority admission controller computed "
            f"{computed} from the given PriorityClass name",
        )
    obj["spec"][field] = computed


def _node(obj: Object, look: Look) -> None:  # noqa: ARG001
    add_taint(obj)


def _volume(obj: Object, look: Look) -> None:  # noqa: ARG001
    protect(obj, "kubernetes.io/pv-protection")


def _attributes_class(obj: Object, look: Look) -> None:  # noqa: ARG001
    protect(obj, "kubernetes.io/vac-protection")


def _claim(obj: Object, look: Look) -> None:
    protect(obj, "kubernetes.io/pvc-protection")
    said = _OLD_STORAGE in (obj["metadata"].get("annotations") or {})
    if said or "storageClassName" in obj.get("spec", {}):
        return
    chosen = _default(look("storageclasses.storage.k8s.io"), _DEFAULT_STORAGE)
    if chosen is not None:
        obj["spec"]["storageClassName"] = chosen["metadata"]["name"]


def _ingress(obj: Object, look: Look) -> None:
    said = _OLD_INGRESS in (obj["metadata"].get("annotations") or {})
    if said or "ingressClassName" in obj.get("spec", {}):
        return
    chosen = _default(look("ingressclasses.networking.k8s.io"), _DEFAULT_INGRESS)
    if chosen is not None:
        obj["spec"]["ingressClassName"] = chosen["metadata"]["name"]


def _default(classes: Sequence[Object], marks: Sequence[str]) -> Object | None:
    """Of several the newest; of those as new, the first by name."""
    found = [one for one in classes if _is_marked(one, marks)]
    newest = max((one["metadata"]["creationTimestamp"] for one in found), default="")
    among = [one for one in found if one["metadata"]["creationTimestamp"] == newest]
    return min(among, key=lambda one: str(one["metadata"]["name"]), default=None)


def _is_marked(one: Object, marks: Sequence[str]) -> bool:
    annotations: Mapping[str, str] = one["metadata"].get("annotations") or {}
    return any(annotations.get(mark) == "true" for mark in marks)


def _named(objects: Sequence[Object], name: str) -> Object | None:
    return next((one for one in objects if one["metadata"]["name"] == name), None)


def _refused(pod: Object, why: str) -> StatusError:
    return forbidden("pods", "", pod["metadata"].get("name", ""), why)


_ADMITTED: Final[Mapping[str, Callable[[Object, Look], None]]] = {
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "pods": _pod,
    "volumeattributesclasses.storage.k8s.io": _attributes_class,
    "ingresses.networking.k8s.io": _ingress,
}
