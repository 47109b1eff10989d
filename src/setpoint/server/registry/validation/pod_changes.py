"""What is wrong with changing a pod: its spec, its ephemeral containers, its status."""

from __future__ import annotations

from typing import Any, Final

from setpoint.api.selectors import label_key_errors
from setpoint.server.golang import same
from setpoint.server.registry.beginnings import qos_class
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.containers import check_image_is_trimmed
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.pods import MIRROR, check_own
from setpoint.server.registry.validation.scheduling import check_tolerations

Json = dict[str, Any]

_MAY_CHANGE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_update(new: Object, old: Object, found: Found) -> None:
    check_own(new, found)
    _check_annotation_changes(new, old, found)
    spec, before = new["spec"], old["spec"]
    for field in ("containers", "initContainers"):
        if not _check_container_changes(
            spec.get(field) or [], before.get(field) or [], f"spec.{field}", found
        ):
            return
    _check_deadline_change(spec, before, found)
    _check_toleration_changes(spec.get("tolerations") or [], before.get("tolerations") or [], found)
    gates = {one.get("name") for one in before.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in gates:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            found.forbidden(f"spec.schedulingGates[{index}].name", detail)
    if before.get("schedulingGates"):
        now, then = spec.get("nodeSelector"), before.get("nodeSelector") or {}
        if any((now or {}).get(key) != value for key, value in then.items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            found.invalid("spec.nodeSelector", now, detail)
    munged = _with_what_may_change(spec, before)
    if not same(munged, before):
        kind = internals.part_type("", "v1", "Pod", "spec")
        changed = internals.difference(before, munged, kind)
        found.forbidden("spec", f"pod updates may not change fields other than {_MAY_CHANGE}\n{changed}")


def _with_what_may_change(spec: Json, before: Json) -> Json:
    """The new spec with the old values of what may change: what still differs may not."""
    munged = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            munged[field] = [
                {**one, "image": old.get("image", "")}
                for one, old in zip(spec[field], before.get(field) or (), strict=False)
            ]
    kept = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    grace = before.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        kept.append("terminationGracePeriodSeconds")
    if before.get("schedulingGates"):
        kept += ["nodeSelector", "affinity"]
    for field in kept:
        if before.get(field) is None:
            munged.pop(field, None)
        else:
            munged[field] = before[field]
    return munged


def _check_annotation_changes(new: Object, old: Object, found: Found) -> None:
    fresh = (new["metadata"].get("annotations") or {}).get(MIRROR)
    before = (old["metadata"].get("annotations") or {}).get(MIRROR)
    if fresh != before:
        verb = "add" if before is None else "remove or update"
        found.forbidden(f"metadata.annotations[{MIRROR}]", f"may not {verb} mirror pod annotation")


def _check_container_changes(new: list[Json], old: list[Json], path: str, found: Found) -> bool:
    if len(new) != len(old):
        found.forbidden(path, "pod updates may not add or remove containers")
        return False
    for index, one in enumerate(new):
        if not one.get("image"):
            found.required(f"{path}[{index}].image")
        check_image_is_trimmed(one, f"{path}[{index}]", found)
    return True


def _check_deadline_change(spec: Json, before: Json, found: Found) -> None:
    path, value, old = (
        "spec.activeDeadlineSeconds",
        spec.get("activeDeadlineSeconds"),
        before.get("activeDeadlineSeconds"),
    )
    if value is None:
        if old is not None:
            found.invalid(path, None, "must not update from a positive integer to nil value")
        return
    if not 0 <= value < 2**31:
        found.invalid(path, value, "must be between 0 and 2147483647, inclusive")
    if old is not None and old < value:
        found.invalid(path, value, "must be less than or equal to previous value")


def _toleration(one: Json) -> tuple[str, ...]:
    """All of it but how long."""
    return tuple(one.get(field, "") for field in ("key", "operator", "value", "effect"))


def _check_toleration_changes(new: list[Json], old: list[Json], found: Found) -> None:
    there = set(map(_toleration, new))
    for one in old:
        if _toleration(one) not in there:
            found.forbidden(
                "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
            )
    if new:
        check_tolerations(new, "spec.tolerations", found)


def check_ephemeral_update(new: Object, old: Object, found: Found) -> None:
    check_own(new, found)
    path = "spec.ephemeralContainers"
    there = {one.get("name"): one for one in new["spec"].get("ephemeralContainers") or ()}
    for one in old["spec"].get("ephemeralContainers") or ():
        kept = there.get(one.get("name"))
        if kept is None:
            found.forbidden(path, f'existing ephemeral containers "{one.get("name")}" may not be removed\n')
        elif not same(kept, one):
            kind = internals.part_type("", "v1", "Pod", "spec", "ephemeralContainers")
            changed = internals.difference(one, kept, kind)
            detail = f'existing ephemeral containers "{one.get("name")}" may not be changed\n{changed}'
            found.forbidden(path, detail)


def check_resize(new: Object, old: Object, found: Found) -> None:
    """What a pod and its containers ask for may change, as long as the pod stays of its class."""
    check_own(new, found)
    spec, before = new["spec"], old["spec"]
    status = old.get("status") or {}
    if (status.get("qosClass") or qos_class(before)) != qos_class(spec):
        detail = "Pod QOS Class may not change as a result of resizing"
        found.invalid("spec", status.get("qosClass", ""), detail)
    _check_resized_whole(spec, before, found)
    if not _has_same_containers(spec, before, found):
        return
    for field in ("initContainers", "containers"):
        pairs = zip(spec.get(field) or (), before.get(field) or (), strict=True)
        for index, (one, other) in enumerate(pairs):
            for side in _lost(one, other):
                path = f"spec.{field}[{index}].resources.{side}"
                found.forbidden(path, f"resource {side} cannot be removed")
    for one, other in zip(spec["containers"], before["containers"], strict=True):
        if not same(_not_resizable(one), _not_resizable(other)):
            found.forbidden("spec", "only cpu and memory resources are mutable")
    pairs = zip(spec.get("initContainers") or (), before.get("initContainers") or (), strict=True)
    for index, (one, other) in enumerate(pairs):
        _check_resized_first(one, other, f"spec.initContainers[{index}]", found)


def _check_resized_whole(spec: Json, before: Json, found: Found) -> None:
    """What all of a pod asks for."""
    for side in _lost(spec, before):
        found.forbidden(f"spec.resources.{side}", f"pod-level resource {side} cannot be removed")
    now, then = (_not_resizable({"resources": one.get("resources")}) for one in (spec, before))
    if not same(now, then):
        found.forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _check_resized_first(one: Json, other: Json, path: str, found: Found) -> None:
    """A container that initializes."""
    if not same(_not_resizable(one), _not_resizable(other)):
        detail = "only cpu and memory resources for init or sidecar containers are mutable"
        found.forbidden(path, detail)
    if one.get("restartPolicy") == "Always" or same(one, other):
        return
    for policy in one.get("resizePolicy") or ():
        if policy.get("restartPolicy") == "RestartContainer":
            detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            found.forbidden(path, detail)


def _has_same_containers(spec: Json, before: Json, found: Found) -> bool:
    """Whether all are there, in their order."""
    is_same = True
    for field in ("containers", "initContainers"):
        now, then = ([one.get("name") for one in each.get(field) or ()] for each in (spec, before))
        if len(now) != len(then):
            found.forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
        for index, name in enumerate(then):
            if len(now) == len(then) and now[index] != name:
                path = f"spec.{field}[{index}].name"
                found.forbidden(path, f"{field} may not be renamed or reordered on resize")
        is_same = is_same and now == then
    return is_same


def _lost(one: Json, other: Json) -> list[str]:
    """Of which amounts there is less than there was: not how much, but whether."""
    now, then = one.get("resources") or {}, other.get("resources") or {}
    return [side for side in ("requests", "limits") if set(then.get(side) or ()) - set(now.get(side) or ())]


def _not_resizable(container: Json) -> Json:
    resources = container.get("resources") or {}
    kept = {**container, "resources": None, "claims": resources.get("claims") or []}
    for side in ("limits", "requests"):
        amounts = resources.get(side) or {}
        kept[side] = {name: value for name, value in amounts.items() if name not in ("cpu", "memory")}
    return kept


_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")


def check_pod_status(new: Object, old: Object, found: Found) -> None:
    del old
    status = new.get("status") or {}
    for index, condition in enumerate(status.get("conditions") or ()):
        at, kind = f"status.conditions[{index}]", condition.get("type", "")
        generation = condition.get("observedGeneration", 0)
        if generation < 0:
            found.invalid(f"{at}.observedGeneration", generation, "must be a non-negative integer")
        if kind not in _SYSTEM_CONDITIONS:
            found.told(f"{at}.Type", kind, label_key_errors(kind))
    first, several = status.get("podIP", ""), status.get("podIPs") or []
    for index, one in enumerate(several):
        found.told(f"status.podIPs[{index}]", one.get("ip", ""), texts.ip(one.get("ip", "")))
    if bool(first) != bool(several):
        shown = [{"IP": one.get("ip", "")} for one in several] or None
        detail = "podIP and podIPs must either both be set or both be unset"
        found.invalid("status.podIPs", shown, detail)
    elif several and several[0].get("ip") != first:
        found.invalid("status.podIPs[0].ip", several[0].get("ip", ""), "must be equal to `podIP`")
