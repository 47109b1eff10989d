"""What the server itself adds to a new object, and what it refuses because of what else there is.

``admit`` adds: the classes that it names none of, tolerations, protection.  Priorities and run times of pods,
where their node is, storage of claims, classes of ingresses; a class that is named and is not there is
refused.  Nobody owns what is filled in here: managedFields are set before.

``judge`` refuses, when everybody has had a say: a second default priority, a claim that grows and may not, a
pod whose overhead is not that of its run time, or that outgrows its node.

Pure but for the look into the store, which is handed in; in place.  Fed by ``registry.py``, and by
``server/admission`` where others have a say too.

Not here: webhooks, policies, limit ranges, quotas, pod security (``server/admission``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from setpoint.api.quantity import Quantity
from setpoint.server.registry import pods, runtimes
from setpoint.server.registry.beginnings import PRIORITIES, add_taint, add_tolerations, protect
from setpoint.server.registry.resources import Object
from setpoint.server.statuses import StatusError, forbidden


class Look(Protocol):
    """Into the store, at a kind that is in no namespace."""

    def __call__(self, stored: str, name: str = "") -> Sequence[Object]:
        """All objects that are stored under this name; or the one that is called so, if there is one."""


_PRIORITIES: Final = "priorityclasses.scheduling.k8s.io"
_RUNTIMES: Final = "runtimeclasses.node.k8s.io"
_STORAGE: Final = "storageclasses.storage.k8s.io"
_DEFAULT_STORAGE: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_INGRESS: Final = ("ingressclass.kubernetes.io/is-default-class",)
_OLD_STORAGE: Final = "volume.beta.kubernetes.io/storage-class"
_OLD_INGRESS: Final = "kubernetes.io/ingress.class"
_TOPOLOGY: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def admit(stored: str, obj: Object, look: Look, old: Object | None = None) -> None:
    """Fill in an object, new where there is no ``old`` one.  Kinds without classes stay as they are."""
    if old is not None:
        if stored == "pods":
            _changed_pod(obj["spec"], old["spec"])
    elif (found := _ADMITTED.get(stored)) is not None:
        found(obj, look)


def judge(stored: str, obj: Object, old: Object | None, look: Look, subresource: str = "") -> None:
    """Refuse an object, new where there is no ``old`` one, that does not go with what there is."""
    found = _JUDGED.get(f"{stored}/{subresource}" if subresource else stored)
    if found is not None:
        found(obj, old, look)


def add_topology(obj: Object, node: str, look: Look) -> None:
    """A pod that is on a node, or the Binding that brings it there, has the labels of the node's place."""
    labels = _labels(_named(node, "nodes", look))
    place = {name: labels[name] for name in _TOPOLOGY if name in labels}
    if place:
        obj["metadata"]["labels"] = {**_labels(obj), **place}


def _labels(obj: Object | None) -> Mapping[str, str]:
    found: Mapping[str, str] = ((obj or {}).get("metadata") or {}).get("labels") or {}
    return found


# ── Pods and their priorities ───────────────────────────────────────────────────────────────────────


def _pod(obj: Object, look: Look) -> None:
    spec = obj["spec"]
    name = spec.get("priorityClassName")
    if not name:
        chosen = _default_priority(look)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    else:
        chosen = _named(name, _PRIORITIES, look)
        if chosen is None and name not in PRIORITIES:
            raise _refused(obj, f"no PriorityClass with name {name} was found")
    chosen = chosen or {"value": PRIORITIES.get(name or "", 0)}
    _fill(obj, "priority", chosen["value"], "integer value of priority")
    policy = chosen.get("preemptionPolicy") or "PreemptLowerPriority"
    _fill(obj, "preemptionPolicy", policy, "string value of PreemptionPolicy")
    add_tolerations(spec)
    if told := runtimes.fill(spec, _runtime(obj, look)):
        raise _refused(obj, told)
    if spec.get("nodeName"):
        add_topology(obj, spec["nodeName"], look)


def _changed_pod(spec: Object, before: Object) -> None:
    """What was filled in when it was made is not taken away by who does not know of it."""
    for name in ("priority", "preemptionPolicy"):
        if spec.get(name) is None and before.get(name) is not None:
            spec[name] = before[name]
    add_tolerations(spec)


def _judge_pod(obj: Object, old: Object | None, look: Look) -> None:
    if old is None and (told := runtimes.overhead_refusal(obj["spec"], _runtime(obj, look))):
        raise _refused(obj, told)


def _judge_resize(obj: Object, old: Object | None, look: Look) -> None:
    """A pod stays on its node, which must have room for what it asks for now."""
    spec, metadata = obj["spec"], obj["metadata"]
    name = spec.get("nodeName")
    if not name or old is None or metadata.get("generation") == old["metadata"].get("generation"):
        return
    node = _named(name, "nodes", look)
    if node is None:
        raise _refused(obj, f'node "{name}" not found')
    system = _labels(node).get("kubernetes.io/os", "linux")
    if system != "linux":
        told = f'pod resize is only supported on linux nodes, node "{name}" is "{system}"'
        raise _refused(obj, told, "UnsupportedPlatform")
    asked, room = pods.all_requests(spec), (node.get("status") or {}).get("allocatable") or {}
    zero, wrong = Quantity(0), []
    cpu, memory = (Quantity(room.get(one) or 0) for one in ("cpu", "memory"))
    if (wanted := asked.get("cpu", zero)) > cpu:
        wrong.append(f"cpu, requested: {wanted.milli_value}, allocatable: {cpu.milli_value}")
    if (wanted := asked.get("memory", zero)) > memory:
        wrong.append(f"memory, requested: {wanted.value}, allocatable: {memory.value}")
    if wrong:
        told = f"node didn't have enough allocatable resources: {'; '.join(wrong)}"
        raise _refused(obj, told, "NodeCapacity")


def _runtime(pod: Object, look: Look) -> Object | None:
    name = pod["spec"].get("runtimeClassName")
    if not name:
        return None
    found = _named(name, _RUNTIMES, look)
    if found is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    return found


def _default_priority(look: Look) -> Object | None:
    """Of several, which can only be made at the same moment, the lowest."""
    defaults = [one for one in look(_PRIORITIES) if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one["value"]), default=None)


def _judge_priority(obj: Object, old: Object | None, look: Look) -> None:
    default = _default_priority(look) if obj.get("globalDefault") else None
    if default is None:
        return
    name, already = obj["metadata"]["name"], default["metadata"]["name"]
    if old is None or already != name:
        told = f"PriorityClass {already} is already marked as default. Only one default can exist"
        raise forbidden("priorityclasses", "scheduling.k8s.io", name, told)


def _fill(obj: Object, field: str, computed: int | str, what: str) -> None:
    given = obj["spec"].get(field)
    if given is not None and given != computed:
        raise _refused(
            obj,
            f"the {what} ({given}) must not be provided in pod spec; priority admission controller computed "
            f"{computed} from the given PriorityClass name",
        )
    obj["spec"][field] = computed


# ── Other kinds ─────────────────────────────────────────────────────────────────────────────────────


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
    chosen = _default(look(_STORAGE), _DEFAULT_STORAGE)
    if chosen is not None:
        obj["spec"]["storageClassName"] = chosen["metadata"]["name"]


def _judge_claim(obj: Object, old: Object | None, look: Look) -> None:
    """A claim grows when it is bound, and its class says that what it is bound to can."""
    if old is None or _size(obj) <= _size(old):
        return
    name = obj["metadata"]["name"]
    if (old.get("status") or {}).get("phase") != "Bound":
        told = "Only bound persistent volume claims can be expanded"
        raise forbidden("persistentvolumeclaims", "", name, told)
    used = _storage_class(obj)
    found = _named(used, _STORAGE, look) if used and used == _storage_class(old) else None
    if found is None or not found.get("allowVolumeExpansion"):
        told = (
            "only dynamically provisioned pvc can be resized and "
            "the storageclass that provisions the pvc must support resize"
        )
        raise forbidden("persistentvolumeclaims", "", name, told)


def _size(claim: Object) -> Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return Quantity(requests.get("storage") or 0)


def _storage_class(claim: Object) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    name: str = annotations.get(_OLD_STORAGE, claim["spec"].get("storageClassName") or "")
    return name


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


def _named(name: str, stored: str, look: Look) -> Object | None:
    return next(iter(look(stored, name)), None) if name else None


def _refused(pod: Object, why: str, cause: str = "") -> StatusError:
    causes = [{"reason": cause}] if cause else None
    return forbidden("pods", "", pod["metadata"].get("name", ""), why, causes=causes)


_ADMITTED: Final[Mapping[str, Callable[[Object, Look], None]]] = {
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "pods": _pod,
    "volumeattributesclasses.storage.k8s.io": _attributes_class,
    "ingresses.networking.k8s.io": _ingress,
}
_JUDGED: Final[Mapping[str, Callable[[Object, Object | None, Look], None]]] = {
    "persistentvolumeclaims": _judge_claim,
    "pods": _judge_pod,
    "pods/resize": _judge_resize,
    _PRIORITIES: _judge_priority,
}
