"""What a new server begins with: the namespaces, priorities, APIServices and Service that every cluster has.

Made through the registry like anything else, but for the range of addresses, which begins with its status;
what is already there stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from setpoint.server.registry import api_services, facts
from setpoint.server.registry.beginnings import PRIORITIES
from setpoint.server.registry.flow import encoder
from setpoint.server.registry.registry import Registry
from setpoint.server.registry.requests import Ask
from setpoint.server.registry.resources import Object
from setpoint.server.storage.protocol import Place, Store

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_KUBERNETES: Object = {
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "type": "ClusterIP",
        "clusterIP": "10.0.0.1",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
    },
}
_NETWORKING = "networking.k8s.io"
_CRITICAL = "Used for system critical pods that must"
_DESCRIBED = {
    "system-cluster-critical": "run in the cluster, but can be moved to another node if necessary.",
    "system-node-critical": "not be moved from their current node.",
}


async def bootstrap(registry: Registry) -> None:
    """What lies nowhere comes together: on a disk that is one wait, and not one for each."""
    namespaces = [_create(registry, "namespaces", "", {"metadata": {"name": name}}) for name in _NAMESPACES]
    priorities = [
        _create(registry, "priorityclasses", "", _priority(name, value), group="scheduling.k8s.io")
        for name, value in PRIORITIES.items()
    ]
    served = ((one.group, one.version) for one in facts.resources())
    apis = [
        _create(registry, "apiservices", "", one, group=api_services.GROUP)
        for one in api_services.built_in(served)
    ]
    await asyncio.gather(*namespaces, *priorities, *apis)
    await _create(registry, "services", "default", _KUBERNETES)


async def establish_range(store: Store, network: str, *, uid: Callable[[], str], now: str) -> None:
    """The addresses that Services have, told as an object."""
    place = Place(f"servicecidrs.{_NETWORKING}", "", "kubernetes")
    if store.get(place) is not None:
        return
    version = f"{_NETWORKING}/v1"
    told = {"apiVersion": version, "time": now, "fieldsType": "FieldsV1"}
    owned: Object = {"f:lastTransitionTime": {}, "f:message": {}, "f:status": {}, "f:type": {}}
    status = {"f:conditions": {'k:{"type":"Ready"}': {".": {}, **owned}}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": now, "reason": ""}
    obj: Object = {
        "kind": "ServiceCIDR",
        "apiVersion": version,
        "metadata": {
            "name": place.name,
            "uid": uid(),
            "resourceVersion": "",
            "creationTimestamp": now,
            "managedFields": [
                {
                    "manager": "kubernetes-service-cidr-controller",
                    "operation": "Apply",
                    **told,
                    "fieldsV1": {"f:status": status},
                    "subresource": "status",
                },
                {
                    "manager": "kube-apiserver",
                    "operation": "Update",
                    **told,
                    "fieldsV1": {"f:spec": {"f:cidrs": {}}},
                },
            ],
        },
        "spec": {"cidrs": [network]},
        "status": {"conditions": [{**ready, "message": "Kubernetes default Service CIDR is ready"}]},
    }
    await store.create(place, encoder(obj))


def _priority(name: str, value: int) -> Object:
    return {"metadata": {"name": name}, "value": value, "description": f"{_CRITICAL} {_DESCRIBED[name]}"}


async def _create(registry: Registry, plural: str, namespace: str, obj: Object, *, group: str = "") -> None:
    resource = registry.resources.builtin(group, "v1", plural)
    if registry.store.get(Place(resource.stored, namespace, obj["metadata"]["name"])) is not None:
        return  # before it is given an address that it has already
    ask = Ask(
        "create",
        resource,
        namespace=namespace,
        body=msgspec.json.encode(obj),
        content_type="application/json",
        user_agent="kube-apiserver",
    )
    await registry.establish(ask)
