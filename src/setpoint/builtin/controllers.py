"""Which controllers there are, by the names that kube-controller-manager gives them; and a node for the pods.

    manager = Manager(client=client)
    add_controllers(manager)                                        # all
    add_controllers(manager, ["garbage-collector-controller"])      # this one alone

All that are added together share one recorder of Events.  What each does is in the module of its subject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from setpoint.builtin import (
    accounts,
    aggregation,
    cronjobs,
    daemonsets,
    deployments,
    disruption,
    endpoints,
    endpointslices,
    events,
    garbage,
    jobs,
    jobs_ttl,
    namespaces,
    node,
    nodes,
    quota,
    replicasets,
    statefulsets,
    tokens,
    volumes,
    volumes_protection,
)
from setpoint.builtin.parts import Manager, Parts, parts_of
from setpoint.clock import Clock

CONTROLLERS: Final[Mapping[str, Callable[[Parts], object]]] = {
    "clusterrole-aggregation-controller": aggregation.add_to,
    "cronjob-controller": cronjobs.add_to,
    "daemonset-controller": daemonsets.add_to,
    "deployment-controller": deployments.add_to,
    "disruption-controller": disruption.add_to,
    "endpoints-controller": endpoints.add_to,
    "endpointslice-controller": endpointslices.add_to,
    "event-ttl-controller": events.add_to,  # kube-apiserver does this one by itself
    "garbage-collector-controller": garbage.add_to,
    "job-controller": jobs.add_to,
    "namespace-controller": namespaces.add_to,
    "node-lifecycle-controller": nodes.add_to,
    "node-stand-in": node.add_to,  # a scheduler and a kubelet, as far as anyone can see
    "persistentvolume-binder-controller": volumes.add_to,
    "persistentvolume-protection-controller": volumes_protection.add_volumes_to,
    "persistentvolumeclaim-protection-controller": volumes_protection.add_claims_to,
    "replicaset-controller": replicasets.add_to,
    "replicationcontroller-controller": replicasets.add_replication_controllers_to,
    "resourcequota-controller": quota.add_to,
    "root-ca-certificate-publisher-controller": accounts.add_publisher_to,
    "serviceaccount-controller": accounts.add_accounts_to,
    "serviceaccount-token-controller": tokens.add_to,
    "statefulset-controller": statefulsets.add_to,
    "ttl-after-finished-controller": jobs_ttl.add_to,
}
ALL: Final = tuple(CONTROLLERS)


def add_controllers(
    manager: Manager, names: Iterable[str] = ALL, *, clock: Clock | None = None, root_ca: str = ""
) -> None:
    """Add the controllers of these names to a manager, which has yet to run or does so already.

    ``root_ca`` is the certificate, as PEM, that every namespace is given to know the server by; unless it is
    said, the one by which the manager's own client knows it.
    """
    wanted = list(dict.fromkeys(names))
    if unknown := [name for name in wanted if name not in CONTROLLERS]:
        raise ValueError(f"there is no controller {', '.join(unknown)}: choose among {', '.join(ALL)}")
    if wanted:
        known = manager.client.config.certificate_authority_data.decode()
        parts = parts_of(manager, clock, root_ca=root_ca or known)
        for name in wanted:
            CONTROLLERS[name](parts)
