"""Controllers on the real kube-apiserver: a child for every parent, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from setpoint import errors
from setpoint.api import CustomResource, Model, ObjectMeta, OwnerReference, crd_of
from setpoint.api.names import Key
from setpoint.api.patches import MergePatch
from setpoint.api.requests import Call
from setpoint.client import Client, Config, ignore_not_found
from setpoint.client.sender import Answer
from setpoint.controller.builder import Builder, builder
from setpoint.controller.client import ReconcileClient
from setpoint.controller.controller import Controller
from setpoint.controller.predicates import selected
from setpoint.controller.result import Request, Result
from setpoint.errors import ApiError
from setpoint.kube.core.v1 import ConfigMap, Namespace, ServiceAccount
from setpoint.net.transport import Transport
from setpoint.testing.faults import Faults
from setpoint.testing.kube import ControlPlane
from tests.conformance.planes import NewPlane
from tests.controller.world import Process, running, until

PARENT = {"role": "parent"}


class Writes:
    """Counts the writes of a process, and lets it crash after some of them."""

    def __init__(self, crash_after: int | None = None) -> None:
        self.made: list[str] = []
        self.happened = 0
        self.crashed = asyncio.Event()
        self._crash_after = crash_after

    def before(self, call: Call) -> None:
        if self.crashed.is_set():
            raise errors.TerminalError("a process that crashed writes nothing")
        self.made.append(call.doing)

    def answered(self, call: Call, answer: Answer) -> None:  # noqa: ARG002 - the protocol's
        self.happened += 1
        if self.happened == self._crash_after:
            self.crashed.set()

    def refused(self, call: Call, error: ApiError) -> None:
        """Nothing happened."""

    def unknown(self, call: Call) -> None:
        """Nobody knows."""


class Families:
    """Keeps a child ConfigMap for each parent, with the same data, and notes its name on the parent."""

    def __init__(self, client: ReconcileClient) -> None:
        self.client = client
        self.now: set[Request] = set()
        self.most_at_once = 0
        self.looks = 0
        self.is_asleep = False

    async def reconcile(self, request: Request) -> Result:
        assert request not in self.now, "a key is never reconciled twice at once"
        self.now.add(request)
        self.most_at_once = max(self.most_at_once, len(self.now))
        self.looks += 1
        try:
            return Result() if self.is_asleep else await self._reconcile(request)
        finally:
            self.now.remove(request)

    async def _reconcile(self, request: Request) -> Result:
        parent = await ignore_not_found(self.client.get(ConfigMap, request.name, namespace=request.namespace))
        if parent is None or not is_parent(parent):
            return Result()
        # Named by the server: a child that was made, and is not seen yet, would be made again.
        children = await self.client.list(ConfigMap, namespace=request.namespace, owner=parent.metadata.uid)
        if not children:
            child = await self.client.create(child_of(parent))
        else:
            child = children[0]
        if child.data != parent.data:
            child.data = parent.data
            await self.client.update(child)
        if (parent.metadata.annotations or {}).get("child") != child.metadata.name:
            note = {"metadata": {"annotations": {"child": child.metadata.name}}}
            await self.client.patch(parent, MergePatch(note))
        return Result()


def is_parent(obj: ConfigMap) -> bool:
    return (obj.metadata.labels or {}).get("role") == "parent"


def child_of(parent: ConfigMap) -> ConfigMap:
    owner = OwnerReference(
        api_version="v1",
        kind="ConfigMap",
        name=parent.metadata.name or "",
        uid=parent.metadata.uid or "",
        controller=True,
    )
    metadata = ObjectMeta(
        generate_name="child-", namespace=parent.metadata.namespace, owner_references=[owner]
    )
    return ConfigMap(metadata=metadata, data=parent.data)


def new_parent(name: str, namespace: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=PARENT), data=data)


async def families(client: Client, namespace: str) -> dict[str, list[Any]]:
    """Each parent's children, by what is in them: what must be equal to its own in the end."""
    everything = await client.list(ConfigMap, namespace=namespace)
    found: dict[str, list[Any]] = {each.metadata.name or "": [] for each in everything if is_parent(each)}
    for each in everything:
        for owner in each.metadata.owner_references or ():
            found.setdefault(owner.name, []).append(each.data)
    return found


async def settled(client: Client, namespace: str) -> dict[str, list[Any]]:
    """Wait until every parent has one child like it, noted on it; and give the families."""
    async with asyncio.timeout(60):
        while True:
            everything = await client.list(ConfigMap, namespace=namespace)
            parents = [each for each in everything if is_parent(each)]
            found = await families(client, namespace)
            if all(
                found[each.metadata.name or ""] == [each.data]
                and (each.metadata.annotations or {}).get("child")
                for each in parents
            ):
                return found
            await asyncio.sleep(0.05)


@asynccontextmanager
async def house(kube: ControlPlane) -> AsyncIterator[tuple[Client, str]]:
    """An administrator's client, and a namespace."""
    async with Client(Config.from_kubeconfig(kube.kubeconfig)) as client:
        namespace = f"test-{secrets.token_hex(4)}"
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        yield client, namespace


def describe(process: Process, namespace: str) -> Builder:
    return (
        builder(process)
        .named("families")
        .for_(ConfigMap, namespaces=[namespace], when=selected(PARENT))
        .owns(ConfigMap, namespaces=[namespace])
    )


@asynccontextmanager
async def operator(
    config: Config,
    namespace: str,
    writes: Writes | None = None,
    transport: Transport | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Families, Controller, Writes]]:
    """A process of its own: its client, its cache, its controller."""
    writes = writes or Writes()
    async with Client(config, transport=transport) as client:
        process = Process(client)
        process.client = process.client.observed_by(writes)
        reconciler = Families(process.client)
        controller = describe(process, namespace).with_options(**options).complete(reconciler)
        async with running(process):
            yield reconciler, controller, writes


def admin(kube: ControlPlane) -> Config:
    return Config.from_kubeconfig(kube.kubeconfig)


async def quiet(controller: Controller) -> None:
    """Wait until nothing is to be done any more."""
    await until(lambda: controller.is_working and not controller.stats().running and not _waiting(controller))


def _waiting(controller: Controller) -> int:
    queue = controller.stats().queue
    return sum(queue.depth.values()) + queue.delayed


async def test_drift_is_put_back_and_at_the_fixed_point_nothing_is_written(kube: ControlPlane) -> None:
    async with house(kube) as (client, namespace):
        await client.create(new_parent("ada", namespace, colour="red"))
        async with operator(admin(kube), namespace) as (_, controller, writes):
            await settled(client, namespace)
            child = await child_named(client, namespace, "ada")

            await client.patch(
                ConfigMap, child, MergePatch({"data": {"colour": "pink"}}), namespace=namespace
            )
            assert await settled(client, namespace) == {"ada": [{"colour": "red"}]}
            await client.delete(ConfigMap, child, namespace=namespace)
            await eventually(lambda: children(client, namespace), lambda found: child not in found)
            assert await settled(client, namespace) == {"ada": [{"colour": "red"}]}
            await client.patch(
                ConfigMap, "ada", MergePatch({"data": {"colour": "blue"}}), namespace=namespace
            )
            assert await settled(client, namespace) == {"ada": [{"colour": "blue"}]}

            await quiet(controller)
            written = len(writes.made)
            controller.look_at(Key(namespace, "ada"))
            await quiet(controller)
            assert len(writes.made) == written


async def child_named(client: Client, namespace: str, parent: str) -> str:
    found = await client.get(ConfigMap, parent, namespace=namespace)
    return (found.metadata.annotations or {})["child"]


async def children(client: Client, namespace: str) -> list[str]:
    everything = await client.list(ConfigMap, namespace=namespace)
    return [each.metadata.name or "" for each in everything if each.metadata.owner_references]


async def eventually(ask: Callable[[], Awaitable[Any]], wanted: Callable[[Any], bool]) -> Any:
    async with asyncio.timeout(60):
        while not wanted(found := await ask()):
            await asyncio.sleep(0.02)
        return found


async def test_no_child_is_made_twice_while_the_cache_has_not_seen_the_first(kube: ControlPlane) -> None:
    """Each look reads the cache, and makes a child of no fixed name where it sees none."""
    async with house(kube) as (client, namespace), Faults.of(admin(kube)) as faults:
        names = [f"parent-{number}" for number in range(10)]
        for name in names:
            await client.create(new_parent(name, namespace, of=name))
        async with operator(admin(kube), namespace, workers=4, transport=faults) as (
            reconciler,
            controller,
            _,
        ):
            reconciler.is_asleep = True
            await until(lambda: reconciler.looks == len(names))
            reconciler.is_asleep = False
            with faults.hold(kind=ConfigMap) as held:
                for _ in range(3):
                    for name in names:
                        controller.look_at(Key(namespace, name))
                    await asyncio.sleep(0.1)
                await eventually(lambda: children(client, namespace), lambda found: len(found) >= len(names))
            assert held.count, "something was held back"
            assert await settled(client, namespace) == {name: [{"of": name}] for name in names}
            await quiet(controller)
            assert len(await children(client, namespace)) == len(names)
            assert 1 < reconciler.most_at_once <= 4


async def test_what_went_with_its_last_finalizer_is_not_read_any_more(kube: ControlPlane) -> None:
    """The answer to that write has the version before it, which the cache has seen already."""
    async with house(kube) as (client, namespace), Faults.of(admin(kube)) as faults:
        parent = new_parent("ada", namespace)
        parent.metadata.finalizers = ["test.setpoint.dev/hold"]
        await client.create(parent)
        await client.delete(ConfigMap, "ada", namespace=namespace)
        async with Client(admin(kube), transport=faults) as plain:
            process = Process(plain)
            process.cache.declare(ConfigMap, namespaces=[namespace])
            async with process.cache:
                dying = await process.client.get(ConfigMap, "ada", namespace=namespace)
                with faults.hold(kind=ConfigMap):
                    dying.metadata.finalizers = None
                    await process.client.update(dying)
                    listed = await process.client.list(ConfigMap, namespace=namespace)
                    assert "ada" not in {each.metadata.name for each in listed}
                    with pytest.raises(errors.NotFound):
                        await process.client.get(ConfigMap, "ada", namespace=namespace)


@pytest.mark.parametrize("crash_after", [1, 2, 3, 5])
async def test_a_crash_at_any_point_loses_nothing(kube: ControlPlane, crash_after: int) -> None:
    async with house(kube) as (client, namespace):
        for name in ("ada", "bob", "cid"):
            await client.create(new_parent(name, namespace, of=name))
        writes = Writes(crash_after)
        async with operator(admin(kube), namespace, writes, grace=0, workers=2):
            await asyncio.wait_for(writes.crashed.wait(), timeout=60)
        await client.create(new_parent("dan", namespace, of="dan"))
        await client.patch(ConfigMap, "ada", MergePatch({"data": {"of": "nobody"}}), namespace=namespace)
        await client.delete(ConfigMap, "cid", namespace=namespace)
        async with operator(admin(kube), namespace):
            found = await settled(client, namespace)
        assert {name: found[name] for name in ("ada", "bob", "dan")} == {
            "ada": [{"of": "nobody"}],
            "bob": [{"of": "bob"}],
            "dan": [{"of": "dan"}],
        }


# A permission, or a kind, that is missing.


async def allow(client: Client, namespace: str, user: str, resources: list[str]) -> None:
    rule = {
        "apiGroups": [""],
        "resources": resources,
        "verbs": ["get", "list", "watch", "create", "update", "patch"],
    }
    group = "rbac.authorization.k8s.io"
    metadata = {"name": "operator", "namespace": namespace}
    await client.apply(
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}, force=True
    )
    await client.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "operator"},
        },
        force=True,
    )


def said(caplog: pytest.LogCaptureFixture, controller: str) -> list[str]:
    """The errors that a controller has told of."""
    records = [each for each in caplog.records if each.name == f"setpoint.controller.{controller}"]
    return [each.getMessage() for each in records if each.levelno == logging.ERROR]


async def test_a_missing_permission_stops_only_the_controller_that_needs_it_until_it_is_granted(
    kube: ControlPlane, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kubeconfig = tmp_path / "operator.yaml"
    user = f"operator-{secrets.token_hex(4)}"
    kubeconfig.write_text(kube.kubeconfig_for(kube.client_certificate(user)))
    seen: list[Request] = []

    async def reconcile(request: Request) -> None:
        seen.append(request)

    async with house(kube) as (client, namespace):
        await allow(client, namespace, user, ["configmaps"])
        await client.create(new_parent("ada", namespace, colour="red"))
        async with Client(Config.from_kubeconfig(kubeconfig)) as limited:
            process = Process(limited)
            describe(process, namespace).complete(Families(process.client))
            needy = (
                builder(process)
                .named("needy")
                .for_(ConfigMap, namespaces=[namespace], when=selected(PARENT))
                .owns(ServiceAccount, namespaces=[namespace])
                .complete(reconcile)
            )
            async with running(process):
                await settled(client, namespace)
                await until(lambda: said(caplog, "needy"))
                (line,) = said(caplog, "needy")
                for word in ("v1 ServiceAccount", user, "cannot", 'resources: ["serviceaccounts"]', "watch"):
                    assert word in line
                assert namespace in line
                assert not seen

                await allow(client, namespace, user, ["configmaps", "serviceaccounts"])
                await until(lambda: seen == [Key(namespace, "ada")], within=60)
                assert needy.is_working
                assert needy.problems == ()


class BedSpec(Model):
    flowers: int = 0


class Bed(CustomResource, group="garden.setpoint.dev", version="v1", plural="beds"):
    """Where flowers grow."""

    spec: BedSpec = BedSpec()


async def test_a_missing_crd_stops_only_the_controller_that_needs_it_until_it_is_installed(
    kube: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Request] = []

    async def reconcile(request: Request) -> None:
        seen.append(request)

    async with house(kube) as (client, namespace):
        await client.create(new_parent("ada", namespace, colour="red"))
        process = Process(client)
        describe(process, namespace).complete(Families(process.client))
        gardener = builder(process).for_(Bed, namespaces=[namespace]).complete(reconcile)
        async with running(process):
            await settled(client, namespace)
            await until(lambda: said(caplog, "bed"))
            (line,) = said(caplog, "bed")
            assert "garden.setpoint.dev/v1 Bed" in line
            assert "CustomResourceDefinition" in line

            await client.apply(crd_of(Bed), force=True)
            bed = Bed(metadata=ObjectMeta(name="roses", namespace=namespace), spec=BedSpec(flowers=3))
            await eventually(lambda: created(client, bed), bool)
            await until(lambda: seen == [Key(namespace, "roses")], within=60)
            assert gardener.is_working
        await client.delete(untyped_crd(), "beds.garden.setpoint.dev")


def untyped_crd() -> Any:
    from setpoint.api.forms import untyped

    return untyped("apiextensions.k8s.io/v1", "CustomResourceDefinition")


async def created(client: Client, obj: Any) -> bool:
    with suppress(errors.KindNotServed):
        await client.create(obj)
        return True
    return False


# The server goes away and comes back.


@pytest.mark.deadline(180)
async def test_an_api_server_that_is_restarted_is_waited_for_and_nothing_is_lost(new_plane: NewPlane) -> None:
    with new_plane() as own:
        async with house(own) as (client, namespace):
            await client.create(new_parent("ada", namespace, colour="red"))
            async with operator(admin(own), namespace) as (_, controller, _):
                await settled(client, namespace)
                await asyncio.to_thread(own.stop_api_server)
                controller.look_at(Key(namespace, "ada"))
                await asyncio.to_thread(own.start_api_server)
                await client.patch(
                    ConfigMap, "ada", MergePatch({"data": {"colour": "blue"}}), namespace=namespace
                )
                await client.create(new_parent("bob", namespace, colour="green"))
                assert await settled(client, namespace) == {
                    "ada": [{"colour": "blue"}],
                    "bob": [{"colour": "green"}],
                }
                assert controller.problems == ()
