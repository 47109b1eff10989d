"""What a server warns of: what is taken, and is likely not meant.

Decides: which texts go with an answer.  The request succeeds all the same.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any, Final

from setpoint.api.selectors import label_value_errors
from setpoint.server.golang import quoted
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import texts

Json = dict[str, Any]
Notice = Callable[[Object, Object | None], list[str]]

_NAMED: Final = (
    "metadata.name: this is used in {}, which can result in surprising behavior; a DNS label is "
    "recommended: {}"
)
_OLD_LABELS: Final = {
    old: f'deprecated since {since}; use "{new}" instead'
    for old, since, new in (
        ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
        ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
        ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
    )
}
_OLD_ANNOTATIONS: Final = {
    old: f'non-functional in {since}; use the "{field}" field instead'
    for old, since, field in (
        ("scheduler.alpha.kubernetes.io/critical-pod", "v1.16+", "priorityClassName"),
        ("security.alpha.kubernetes.io/sysctls", "v1.11+", "sysctls"),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "v1.11+", "sysctls"),
    )
}
_OLD_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"


def _name(obj: Object, use: str) -> list[str]:
    errors = texts.label(obj["metadata"].get("name", ""))
    return [_NAMED.format(use, f"[{' '.join(errors)}]")] if errors else []


# ── Pods ────────────────────────────────────────────────────────────────────────────────────────────


def _pod(obj: Object, old: Object | None) -> list[str]:
    if old is not None:
        return []
    return [*_name(obj, "the Pod's hostname"), *_spec(obj, "")]


def _spec(holder: Json, path: str) -> list[str]:
    """Of a pod, or of the template of one: ``path`` is empty, or ends with a dot."""
    spec = holder.get("spec") or {}
    annotations = (holder.get("metadata") or {}).get("annotations") or {}
    at = f"{path}spec"
    found = [
        f"{at}.nodeSelector[{key}]: {_OLD_LABELS[key]}"
        for key in spec.get("nodeSelector") or ()
        if key in _OLD_LABELS
    ]
    affinity = spec.get("affinity") or {}
    found += _node_affinity(affinity.get("nodeAffinity") or {}, f"{at}.affinity.nodeAffinity")
    for index, one in enumerate(spec.get("topologySpreadConstraints") or ()):
        key, place = one.get("topologyKey"), f"{at}.topologySpreadConstraints[{index}]"
        if key in _OLD_LABELS:
            found.append(f"{place}.topologyKey: {key} is {_OLD_LABELS[key]}")
        if one.get("labelSelector") is None:
            found.append(f"{place}.labelSelector: {_NO_SELECTOR}")
    found += [
        f"{path}metadata.annotations[{key}]: {told}"
        for key, told in _OLD_ANNOTATIONS.items()
        if key in annotations
    ]
    for index, volume in enumerate(spec.get("volumes") or ()):
        found += [
            f"{at}.volumes[{index}].{kind}: {told}"
            for kind, told in _OLD_VOLUMES.items()
            if volume.get(kind) is not None
        ]
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            found += _claim_spec(
                template.get("spec") or {}, f"{at}.volumes[{index}].ephemeral.volumeClaimTemplate.spec"
            )
    found += _twice(spec.get("hostAliases"), f"{at}.hostAliases", "ip")
    secrets = spec.get("imagePullSecrets") or []
    found += _twice(secrets, f"{at}.imagePullSecrets", "name")
    found += [
        f'{at}.imagePullSecrets[{index}].name: invalid empty name ""'
        for index, one in enumerate(secrets)
        if not one.get("name")
    ]
    found += _fractions(spec.get("overhead"), f"{at}.overhead")
    found += _seccomp(spec, _SECCOMP_POD, annotations, path)
    for place, container in _containers(spec, at):
        found += _seccomp(container, _SECCOMP + container.get("name", ""), annotations, path)
        found += _container(container, place)
    found += _ports(spec, at)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        told = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{at}.terminationGracePeriodSeconds: {told}")
    found += _affinity(affinity, f"{at}.affinity")
    for index, one in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        found += _address(one, f"{at}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found += _address(alias.get("ip", ""), f"{at}.hostAliases[{index}].ip")
    return found


def _seccomp(holder: Json, key: str, annotations: Json, path: str) -> list[str]:
    """Of a pod, or a container, that has its profile where it used to be."""
    if key not in annotations or (holder.get("securityContext") or {}).get("seccompProfile") is not None:
        return []
    told = 'non-functional in v1.27+; use the "seccompProfile" field instead'
    return [f"{path}metadata.annotations[{key}]: {told}"]


def _node_affinity(affinity: Json, path: str) -> list[str]:
    when = "DuringSchedulingIgnoredDuringExecution"
    required, preferred = f"required{when}", f"preferred{when}"
    found = []
    for index, term in enumerate((affinity.get(required) or {}).get("nodeSelectorTerms") or ()):
        found += _node_term(term, f"{path}.{required}.nodeSelectorTerms[{index}]")
    for index, one in enumerate(affinity.get(preferred) or ()):
        term, at = one.get("preference") or {}, f"{path}.{preferred}[{index}].preference"
        found += _node_term(term, at, is_judged=True)
    return found


def _node_term(term: Json, path: str, *, is_judged: bool = False) -> list[str]:
    """``is_judged``: its values, which validation does not look at."""
    found = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key, at = expression.get("key", ""), f"{path}.matchExpressions[{index}]"
        if key in _OLD_LABELS:
            found.append(f"{at}.key: {key} is {_OLD_LABELS[key]}")
        for place, value in enumerate(expression.get("values") or () if is_judged else ()):
            errors = label_value_errors(value)
            found += [f"{at}.values[{place}]: {value} is invalid, {told}" for told in errors]
    return found


def _containers(spec: Json, path: str) -> Iterator[tuple[str, Json]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, one in enumerate(spec.get(kind) or ()):
            yield f"{path}.{kind}[{index}]", one


def _twice(items: list[Json] | None, path: str, field: str) -> list[str]:
    found, seen = [], set()
    for index, one in enumerate(items or ()):
        value = one.get(field, "")
        if value in seen:
            found.append(f"{path}[{index}].{field}: duplicate {field} {quoted(value)}")
        seen.add(value)
    return found


def _fractions(amounts: dict[str, str] | None, path: str) -> list[str]:
    """Bytes do not come in parts."""
    return [
        f"{path}[{name}]: fractional byte value {quoted(amounts[name])} is invalid, must be an integer"
        for name in ("memory", "ephemeral-storage", "storage")
        if amounts and name in amounts and texts.quantity(amounts[name]).milli_value % 1000
    ]


def _container(one: Json, path: str) -> list[str]:
    resources = one.get("resources") or {}
    found = []
    for name in ("memory", "ephemeral-storage"):
        for side in ("limits", "requests"):
            amounts = resources.get(side) or {}
            if name in amounts:
                found += _fractions({name: amounts[name]}, f"{path}.resources.{side}")
    seen: set[str] = set()
    for index, variable in enumerate(one.get("env") or ()):
        name, value = variable.get("name", ""), variable.get("value", "")
        own = f"$({name})"
        if name not in seen:
            seen.add(name)
        elif variable.get("valueFrom") is not None or value == own or own not in value:
            told = f"hides previous definition of {quoted(name)}, which may be dropped when using apply"
            found.append(f"{path}.env[{index}]: {told}")
    return found


# Each is told with each that is like it; the header has room for fewer.
_MOST_ALIKE: Final = 100
_MOST_TOLD: Final = 1000


def _ports(spec: Json, path: str) -> list[str]:
    found: list[str] = []
    seen: dict[tuple[int, str], list[tuple[str, Json]]] = {}
    named: dict[str, str] = {}
    again: list[str] = []
    for place, container in _containers(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            at = f"{place}.ports[{index}]"
            host, address = port.get("hostPort", 0), port.get("hostIP", "")
            if address and not host:
                found.append(f"{at}: hostIP set without hostPort: {_port(port)}")
            others = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for other_at, other in others if len(found) < _MOST_TOLD else ():
                their_host, their_address = other.get("hostPort", 0), other.get("hostIP", "")
                if (host, address) == (their_host, their_address):
                    found.append(f"{at}: duplicate port definition with {other_at}")
                elif not host or not their_host:
                    found.append(f"{at}: overlapping port definition with {other_at}")
                elif host == their_host and bool(address) != bool(their_address):
                    found.append(f"{at}: dangerously ambiguous port definition with {other_at}")
            if len(others) < _MOST_ALIKE:
                others.append((at, port))
            name = port.get("name", "")
            if name in named:
                first = named[name]
                told = f"services and probes that select ports by name will use {first}"
                again.append(f"{at}: duplicate port name {quoted(name)} with {first}, {told}")
            elif name:
                named[name] = at
    return found + again


def _port(port: Json) -> str:
    fields = ("name", "hostPort", "containerPort", "protocol", "hostIP")
    zero: dict[str, Any] = {"hostPort": 0, "containerPort": 0}
    shown = [f"{one[0].upper()}{one[1:]}:{port.get(one, zero.get(one, ''))}" for one in fields]
    return "{" + " ".join(shown) + "}"


def _affinity(affinity: Json, path: str) -> list[str]:
    found = []
    for kind in ("podAffinity", "podAntiAffinity"):
        rules, required = affinity.get(kind) or {}, "requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(rules.get(required) or ()):
            if term.get("labelSelector") is None:
                found.append(f"{path}.{kind}.{required}[{index}].labelSelector: {_NO_SELECTOR}")
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        for index, one in enumerate(rules.get(preferred) or ()):
            if (one.get("podAffinityTerm") or {}).get("labelSelector") is None:
                at = f"{path}.{kind}.{preferred}[{index}].podAffinityTerm.labelSelector"
                found.append(f"{at}: {_NO_SELECTOR}")
    return found


# ── What makes pods ─────────────────────────────────────────────────────────────────────────────────


def _has_changed(obj: Object, old: Object | None) -> bool:
    return old is None or obj["metadata"].get("generation") != old["metadata"].get("generation")


def _template(path: str, *, is_named: bool = True) -> Notice:
    """Of what makes pods from a template there."""

    def notice(obj: Object, old: Object | None) -> list[str]:
        if not _has_changed(obj, old):
            return []
        holder: Any = obj
        for name in path.split("."):
            holder = (holder or {}).get(name)
        found = _name(obj, "Pod names and hostnames") if is_named and old is None else []
        return found + _spec(holder or {}, f"{path}.")

    return notice


def _stateful_set(obj: Object, old: Object | None) -> list[str]:
    found = _template("spec.template", is_named=False)(obj, old)
    tail = "" if old is None else ".Spec"
    for index, claim in enumerate(obj["spec"].get("volumeClaimTemplates") or ()):
        found += _claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}]{tail}")
    if (obj["spec"].get("revisionHistoryLimit") or 0) < 0:
        told = "a negative value retains all historical revisions; a value >= 0 is recommended"
        found.append(f"spec.revisionHistoryLimit: {told}")
    return found


def _job_spec(spec: Json, path: str) -> list[str]:
    found = []
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    if spec.get("completionMode") == "Indexed" and completions > 100_000 and parallelism > 10_000:
        found.append(
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    return found + _spec(spec.get("template") or {}, f"{path}.template.")


def _job(obj: Object, old: Object | None) -> list[str]:
    if not _has_changed(obj, old):
        return []
    return [*(_name(obj, "Pod names and hostnames") if old is None else []), *_job_spec(obj["spec"], "spec")]


def _cron_job(obj: Object, old: Object | None) -> list[str]:
    found = _name(obj, "Pod names and hostnames") if old is None else []
    if _has_changed(obj, old):
        job = (obj["spec"].get("jobTemplate") or {}).get("spec") or {}
        found += _job_spec(job, "spec.jobTemplate.spec")
    if old is not None and "TZ" in obj["spec"].get("schedule", ""):
        found.append(
            "cannot use TZ or CRON_TZ in spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )
    return found


# ── Services and the network ────────────────────────────────────────────────────────────────────────


def _address(text: str, path: str) -> list[str]:
    found = texts.address(text)
    if found is None or texts.ip(text):
        return (
            [f"{path}: non-standard IP address {quoted(text)} is invalid: use {quoted(str(found))}"]
            if found
            else []
        )
    if found.version == 6 and str(found) != text:
        told = f"IPv6 address {quoted(text)} should be in RFC 5952 canonical format ({quoted(str(found))})"
        return [f"{path}: {told}"]
    return []


def _service(obj: Object, old: Object | None) -> list[str]:
    del old
    spec, annotations = obj["spec"], obj["metadata"].get("annotations") or {}
    found, kind, outside = [], spec.get("type"), spec.get("externalIPs") or []
    is_headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    hints = "service.kubernetes.io/topology-aware-hints"
    if hints in annotations:
        found.append(
            f"annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"
        )
    if spec.get("clusterIP") not in (None, "", "None"):
        for index, one in enumerate(spec.get("clusterIPs") or ()):
            found += _address(one, f"spec.clusterIPs[{index}]")
    if is_headless:
        ignored = {
            "loadBalancerIP": spec.get("loadBalancerIP"),
            "externalIPs": outside,
            "SessionAffinity": spec.get("sessionAffinity") != "None",
        }
        found += [
            f"spec.{field} is ignored for headless services" for field, value in ignored.items() if value
        ]
    for index, one in enumerate(outside):
        found += _address(one, f"spec.externalIPs[{index}]")
    if outside and not is_headless and kind != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("loadBalancerIP"):
        found += _address(spec["loadBalancerIP"], "spec.loadBalancerIP")
    if kind == "ExternalName" and outside:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _ingress(obj: Object, old: Object | None) -> list[str]:
    name = "kubernetes.io/ingress.class"
    is_set = name in (obj["metadata"].get("annotations") or {})
    if old is None and is_set and obj["spec"].get("ingressClassName") is None:
        return [f"annotation \"{name}\" is deprecated, please use 'spec.ingressClassName' instead"]
    return []


def _slice(obj: Object, old: Object | None) -> list[str]:
    if old is None and obj.get("addressType") == "FQDN":
        return ["spec.addressType: FQDN endpoints are deprecated"]
    return []


# ── Storage and data ────────────────────────────────────────────────────────────────────────────────


def _claim_spec(spec: Json, path: str) -> list[str]:
    amounts = (spec.get("resources") or {}).get("requests") or {}
    return _fractions(
        {key: value for key, value in amounts.items() if key == "storage"}, f"{path}.resources.requests"
    )


def _claim(obj: Object, old: Object | None) -> list[str]:
    if old is not None and obj.get("status") != old.get("status"):
        return []  # a change of its status, which says nothing of the rest
    name = "volume.beta.kubernetes.io/storage-class"
    told = f'metadata.annotations[{name}]: deprecated since v1.8; use "storageClassName" attribute instead'
    is_old = name in (obj["metadata"].get("annotations") or {})
    return [*([told] if is_old else []), *_claim_spec(obj["spec"], "spec")]


def _volume(obj: Object, old: Object | None) -> list[str]:
    del old
    spec = obj["spec"]
    found = []
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        found.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the "
            "recommended approach is to use dynamic provisioning."
        )
    found += [f"spec.{kind}: {told}" for kind, told in _OLD_VOLUMES.items() if spec.get(kind) is not None]
    return found


def _quota(obj: Object, old: Object | None) -> list[str]:
    del old
    hard, found = (obj.get("spec") or {}).get("hard") or {}, []
    for name in ("cpu", "memory", "ephemeral-storage"):
        asked = f"requests.{name}"
        if asked not in hard and name != "ephemeral-storage":
            asked = name
        limit = f"limits.{name}"
        if asked in hard and limit in hard and texts.quantity(hard[asked]) > texts.quantity(hard[limit]):
            found.append(f"ResourceQuota {asked} ({hard[asked]}) should be less than {limit} ({hard[limit]})")
    return found


def _secret(obj: Object, old: Object | None) -> list[str]:
    del old
    if obj.get("type") != "kubernetes.io/tls":
        return []
    data = obj.get("data") or {}
    if not {"tls.crt", "tls.key"} <= data.keys():
        return []  # which is refused
    for key, word in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN " not in base64.b64decode(data.get(key) or ""):
            return [f"tls: failed to find any PEM data in {word} input"]
    return []


NOTICES: Final[dict[tuple[str, str], Notice]] = {
    ("", "Pod"): _pod,
    ("", "PodTemplate"): _template("template", is_named=False),
    ("", "ReplicationController"): _template("spec.template"),
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _volume,
    ("", "ResourceQuota"): _quota,
    ("apps", "Deployment"): _template("spec.template"),
    ("apps", "ReplicaSet"): _template("spec.template"),
    ("apps", "DaemonSet"): _template("spec.template", is_named=False),
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("discovery.k8s.io", "EndpointSlice"): _slice,
    ("networking.k8s.io", "Ingress"): _ingress,
}
