"""The Database example keeps its data until the last backup, however it is deleted.

The garbage collector is the real one, of kube-controller-manager.
"""

from __future__ import annotations

import secrets
from functools import partial

import pytest

from examples.database import database as example
from examples.database.database import Database, DatabaseSpec
from setpoint.api import MergePatch, Object, ObjectMeta, Quantity, crd_of
from setpoint.builtin.node_pods import Outcome, Waits, usual_outcome
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.controller import set_controller_reference
from setpoint.kube.apps.v1 import StatefulSet
from setpoint.kube.batch.v1 import Job
from setpoint.kube.core.v1 import (
    ConfigMap,
    Namespace,
    PersistentVolumeClaim,
    Pod,
    Secret,
    Service,
    ServiceAccount,
)
from setpoint.manager.manager import Manager
from setpoint.testing.kube import ControlPlane
from setpoint.testing.node import Node
from setpoint.testing.waiting import eventually

NEEDED: tuple[tuple[type[Object], str], ...] = (
    (StatefulSet, "orders"),
    (Service, "orders"),
    (Secret, "orders-credentials"),
    (PersistentVolumeClaim, "data-orders-0"),
    (Pod, "orders-0"),
)


def is_backup(pod: Pod) -> bool:
    return pod.spec.containers[0].name == "backup"


def no_backups_yet(pod: Pod) -> Outcome:
    return Waits() if is_backup(pod) else usual_outcome(pod)


@pytest.mark.deadline(180)
async def test_a_foreground_deletion_takes_nothing_before_the_last_backup(cluster: ControlPlane) -> None:
    namespace = f"shop-{secrets.token_hex(4)}"
    async with Client(Config.load(cluster.kubeconfig)) as user, Node(user, outcome=no_backups_yet) as node:

        async def find(kind: type[Object], name: str) -> Object | None:
            return await ignore_not_found(user.get(kind, name, namespace=namespace))

        async def is_gone(kind: type[Object], name: str) -> bool:
            return await find(kind, name) is None

        async def is_served() -> bool:
            await user.list(Database)
            return True

        await user.create(Namespace(metadata=ObjectMeta(name=namespace)))
        await user.apply(crd_of(Database), force=True)
        await eventually(is_served)
        await eventually(lambda: user.get(ServiceAccount, "default", namespace=namespace))
        manager = Manager(client=user, namespaces=[namespace])
        example.operator.add_to(manager)
        async with manager:
            spec = DatabaseSpec(version="17.2", storage=Quantity("1Gi"))
            orders = await user.create(
                Database(metadata=ObjectMeta(name="orders", namespace=namespace), spec=spec)
            )
            await eventually(lambda: is_ready(user, namespace))

            owned = ConfigMap(metadata=ObjectMeta(name="owned", namespace=namespace))
            set_controller_reference(orders, owned)
            await user.create(owned)
            await user.delete(Database, "orders", namespace=namespace, propagation="Foreground")
            await eventually(
                lambda: is_gone(ConfigMap, "owned"), timeout=90, what="the garbage collector is at work"
            )

            async def backup() -> Pod | None:
                pods = await user.list(Pod, namespace=namespace)
                return next(filter(is_backup, pods), None)

            waiting = await eventually(backup)
            assert await find(Database, "orders") is not None
            for kind, name in NEEDED:
                found = await find(kind, name)
                assert found is not None, f"{kind.__name__} {name} went before the backup"
                assert found.metadata.deletion_timestamp is None, f"{kind.__name__} {name} is going"

            node.outcome = usual_outcome
            poke = MergePatch({"metadata": {"annotations": {"poked": "yes"}}})
            await user.patch(Pod, waiting.metadata.name or "", poke, namespace=namespace)
            await eventually(lambda: is_gone(Database, "orders"), timeout=60)
            for kind, name in NEEDED:
                await eventually(partial(is_gone, kind, name), timeout=60)
            await eventually(partial(is_gone, Job, "orders-final-backup"), timeout=60)
            assert await find(PersistentVolumeClaim, "orders-backup") is not None, "the backup stays"


async def is_ready(user: Client, namespace: str) -> bool:
    return (await user.get(Database, "orders", namespace=namespace)).status.phase == "Ready"
