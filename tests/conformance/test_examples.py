"""The example operators on a real cluster, with controllers and a node: they do what their pages say."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from examples.database import database as database_example
from examples.database.database import Database, DatabaseSpec
from examples.pods.pods import SIDECAR, Controller
from examples.webapp import longhand
from examples.webapp import webapp as webapp_example
from examples.webapp.webapp import WebApp, WebAppSpec
from setpoint.api import (
    CustomResource,
    MergePatch,
    Object,
    ObjectMeta,
    Quantity,
    crd_of,
    find_condition,
    is_true,
)
from setpoint.api.model import to_wire
from setpoint.api.names import Key
from setpoint.builtin.node_pods import Exits, Outcome, usual_outcome
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.controller import Controller as RuntimeController
from setpoint.errors import Invalid, SetpointError
from setpoint.kube.apps.v1 import Deployment, ReplicaSet, StatefulSet
from setpoint.kube.batch.v1 import Job
from setpoint.kube.core.v1 import (
    Container,
    Event,
    Namespace,
    ObjectReference,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    Secret,
    Service,
    ServiceAccount,
)
from setpoint.manager.manager import Manager
from setpoint.testing.faults import Faults
from setpoint.testing.kube import ControlPlane
from setpoint.testing.node import Node
from setpoint.testing.waiting import eventually
from tests.pages import ROOT

T = TypeVar("T", bound=Object)
V = TypeVar("V")


@dataclass
class Shop:
    """A namespace of one's own on a cluster with a node, a ``user``, and ``faults`` before the operator."""

    namespace: str
    user: Client
    operator: Client
    faults: Faults

    async def get(self, kind: type[T], name: str) -> T:
        return await self.user.get(kind, name, namespace=self.namespace)

    async def find(self, kind: type[T], name: str) -> T | None:
        return await ignore_not_found(self.get(kind, name))

    async def list(self, kind: type[T]) -> list[T]:
        return list(await self.user.list(kind, namespace=self.namespace))

    async def patch(self, kind: type[T], name: str, **spec: Any) -> T:
        return await self.user.patch(kind, name, MergePatch({"spec": spec}), namespace=self.namespace)

    async def until(self, kind: type[T], name: str, check: Callable[[T], object], **options: Any) -> T:
        """The object, when what is checked of it is so."""

        async def look() -> T:
            found = await self.get(kind, name)
            assert check(found), found
            return found

        return await self.eventually(look, kind, **options)

    async def until_gone(self, kind: type[T], name: str) -> None:
        async def is_gone() -> bool:
            return await self.find(kind, name) is None

        # The garbage collector looks for new kinds every half minute, and before that knows no owner of them.
        await self.eventually(is_gone, kind, timeout=60, what=f"{kind.__name__} {name} is gone")

    async def eventually(
        self, check: Callable[[], Awaitable[V | None]], *kinds: type[Object], **options: Any
    ) -> V:
        """As ``eventually``; what never comes is told with all there is, for nobody can look afterwards."""
        try:
            return await eventually(check, **options)
        except AssertionError as error:
            error.add_note(await self.told(*kinds))
            raise

    async def told(self, *kinds: type[Object]) -> str:
        """Of these kinds and those that run pods: whose each object is, and its status; and all events."""
        lines: list[str] = []
        all_kinds: list[type[Object]] = [*kinds, Deployment, ReplicaSet, StatefulSet, Job, Pod]
        try:
            for kind in dict.fromkeys(all_kinds):
                lines += [_line(one) for one in await self.list(kind)]
            for event in await self.list(Event):
                what = event.involved_object
                lines.append(f"{what.kind} {what.name} {what.uid}: {event.reason}: {event.message}")
        except SetpointError as error:
            lines.append(str(error))
        return "\n  ".join([f"in {self.namespace}:", *lines])


def _line(one: Object) -> str:
    meta = one.metadata
    owners = ", ".join(owner.uid for owner in meta.owner_references or []) or "nobody"
    going = f", deleted at {meta.deletion_timestamp}" if meta.deletion_timestamp else ""
    known = f"{meta.uid}, of {owners}, generation {meta.generation}{going}"
    return f"{type(one).__name__} {meta.name} ({known}): {json.dumps(to_wire(one).get('status'))}"


@asynccontextmanager
async def shop(
    cluster: ControlPlane, *kinds: type[CustomResource], outcome: Callable[[Pod], Outcome] = usual_outcome
) -> AsyncIterator[Shop]:
    config = Config.load(cluster.kubeconfig)
    async with (
        Client(config) as user,
        Node(user, outcome=outcome),
        Faults.of(config) as faults,
        Client(config, transport=faults) as operator,
    ):
        namespace = f"shop-{secrets.token_hex(4)}"
        await user.create(Namespace(metadata=ObjectMeta(name=namespace)))
        await eventually(lambda: user.get(ServiceAccount, "default", namespace=namespace))
        for kind in kinds:
            await user.apply(crd_of(kind), force=True)
            await eventually(lambda kind=kind: _is_served(user, kind))  # type: ignore[misc]
        yield Shop(namespace, user, operator, faults)


async def _is_served(client: Client, kind: type[CustomResource]) -> bool:
    await client.list(kind)
    return True


async def test_what_never_comes_is_told_with_all_there_is(cluster: ControlPlane) -> None:
    async with shop(cluster) as there:
        await there.user.create(pod(there.namespace))
        about = ObjectReference(kind="Pod", name="web", namespace=there.namespace)
        named = ObjectMeta(name="web.1", namespace=there.namespace)
        await there.user.create(
            Event(metadata=named, involved_object=about, reason="Odd", message="it says", type="Normal")
        )
        await there.until(Pod, "web", lambda one: one.status.phase == "Running")
        with pytest.raises(AssertionError) as failed:
            await there.until(Pod, "web", lambda one: one.status.phase == "Failed", timeout=0.1)
        (note,) = failed.value.__notes__
        assert '"phase": "Running"' in note
        assert "Odd: it says" in note


# --- pods: the loop by hand


def pod(namespace: str, name: str = "web", **annotations: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, annotations=annotations),
        spec=PodSpec(containers=[Container(name="web", image="web:1")]),
    )


@asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[None]:
    task = asyncio.create_task(controller.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def sidecars(client: Client, namespace: str, name: str = "web") -> list[str | None]:
    found = await client.get(Pod, name, namespace=namespace)
    return [container.image for container in found.spec.ephemeral_containers or []]


async def test_the_loop_by_hand_gives_a_sidecar_to_who_asks_and_only_once(cluster: ControlPlane) -> None:
    async with shop(cluster) as there:
        client, namespace = there.user, there.namespace
        await client.create(pod(namespace, "early", **{SIDECAR: "proxy:1"}))
        await client.create(pod(namespace, "other"))
        async with running(Controller(client)):
            await client.create(pod(namespace, "late", **{SIDECAR: "proxy:2"}))
            await eventually(lambda: sidecars(client, namespace, "early"))
            await eventually(lambda: sidecars(client, namespace, "late"))
        await Controller(client).run(once=True)  # and again, from the start

        assert await sidecars(client, namespace, "early") == ["proxy:1"]
        assert await sidecars(client, namespace, "late") == ["proxy:2"]
        assert await sidecars(client, namespace, "other") == []


async def test_the_loop_by_hand_tries_again_what_failed(cluster: ControlPlane) -> None:
    async with shop(cluster) as there:
        client, namespace = there.user, there.namespace
        controller = Controller(there.operator)
        with there.faults.refuse(500, kind="pods", subresource="ephemeralcontainers", times=3) as refused:
            async with running(controller):
                await client.create(pod(namespace, **{SIDECAR: "proxy:1"}))
                await eventually(lambda: sidecars(client, namespace))
                # We may see it before the controller has heard that it succeeded.
                await eventually(
                    lambda: controller.queue.stats().failing == 0, what="success forgets the failures"
                )
        assert refused.count == 3


async def test_the_loop_by_hand_hears_of_a_pod_that_is_deleted(
    cluster: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    async with shop(cluster) as there, running(Controller(there.operator)):
        client, namespace = there.user, there.namespace
        await client.create(pod(namespace))
        said = ""

        def has_said(words: str) -> bool:
            nonlocal said
            said += capsys.readouterr().out
            return words in said

        await eventually(lambda: has_said(f"{namespace}/web: Running"))
        await client.delete(Pod, "web", namespace=namespace)
        await eventually(lambda: has_said(f"{namespace}/web: deleted"))


# --- webapp: the same operator in two forms


Form = Callable[[Manager], object]
FORMS = pytest.mark.parametrize(
    "form", [webapp_example.operator.add_to, longhand.add_to], ids=["decorator", "longhand"]
)


def webapp(there: Shop, **spec: Any) -> WebApp:
    return WebApp(
        metadata=ObjectMeta(name="web", namespace=there.namespace),
        spec=WebAppSpec(image="web:1", replicas=2, **spec),
    )


@asynccontextmanager
async def operating(there: Shop, form: Form) -> AsyncIterator[Manager]:
    manager = Manager(client=there.operator, namespaces=[there.namespace])
    form(manager)
    async with manager:
        yield manager


@FORMS
async def test_a_webapp_gets_a_deployment_and_a_service_and_is_ready(
    cluster: ControlPlane, form: Form
) -> None:
    async with shop(cluster, WebApp) as there, operating(there, form):
        made = await there.user.create(webapp(there))
        app = await there.until(WebApp, "web", lambda app: app.status.ready)

        assert app.status.available_replicas == 2
        assert is_true(app.status.conditions, "Ready")
        for child in (await there.get(Deployment, "web"), await there.get(Service, "web")):
            (owner,) = child.metadata.owner_references or []
            assert (owner.uid, owner.controller) == (made.metadata.uid, True)
        assert len(await there.list(Pod)) == 2


@FORMS
async def test_what_is_changed_or_deleted_by_hand_comes_back(cluster: ControlPlane, form: Form) -> None:
    async with shop(cluster, WebApp) as there, operating(there, form):
        await there.user.create(webapp(there))
        await there.until(WebApp, "web", lambda app: app.status.ready)

        # Deleted before it is scaled, while nothing moves: a ReplicaSet that is deleted in the midst of being
        # scaled can leave kube-controller-manager waiting for its pods under its name, and the next one of
        # that name, which the new Deployment makes, then gets no pods until that wait ends after 5 minutes.
        before = await there.get(Deployment, "web")
        await there.user.delete(before)
        await there.until(
            Deployment,
            "web",
            lambda one: one.metadata.uid != before.metadata.uid and one.status.available_replicas == 2,
            what="made again",
        )
        old = await there.get(Service, "web")
        await there.user.delete(old)
        await there.until(Service, "web", lambda one: one.metadata.uid != old.metadata.uid)

        await there.user.scale(Deployment, "web", 5, namespace=there.namespace)
        await there.until(Deployment, "web", lambda one: one.spec.replicas == 2, what="scaled back")
        await there.until(WebApp, "web", lambda app: app.status.ready)


@FORMS
async def test_a_new_image_another_number_and_another_port_are_rolled_out(
    cluster: ControlPlane, form: Form
) -> None:
    async with shop(cluster, WebApp) as there, operating(there, form):
        await there.user.create(webapp(there))
        await there.until(WebApp, "web", lambda app: app.status.ready)

        await there.user.scale(WebApp, "web", 3, namespace=there.namespace)
        await there.patch(WebApp, "web", image="web:2", port=8080)

        def is_done(app: WebApp) -> bool:
            ready = find_condition(app.status.conditions, "Ready")
            is_new = ready is not None and ready.observed_generation == app.metadata.generation
            return is_new and app.status.ready and app.status.available_replicas == 3

        await there.until(WebApp, "web", is_done)
        deployment = await there.get(Deployment, "web")
        assert deployment.spec.template.spec.containers[0].image == "web:2"
        assert deployment.status.updated_replicas == 3
        ports = (await there.get(Service, "web")).spec.ports or []
        assert [(port.port, port.target_port) for port in ports] == [(8080, 8080)]


@FORMS
@pytest.mark.deadline(180)
async def test_a_webapp_that_is_deleted_takes_everything_with_it(cluster: ControlPlane, form: Form) -> None:
    async with shop(cluster, WebApp) as there, operating(there, form):
        await there.user.create(webapp(there))
        await there.until(WebApp, "web", lambda app: app.status.ready)
        await there.user.delete(WebApp, "web", namespace=there.namespace)

        await there.until_gone(Deployment, "web")
        await there.until_gone(Service, "web")

        async def are_gone() -> bool:
            return not await there.list(Pod)

        await there.eventually(are_gone, timeout=60)


@FORMS
async def test_at_its_fixed_point_a_webapp_costs_no_request(cluster: ControlPlane, form: Form) -> None:
    async with shop(cluster, WebApp) as there, operating(there, form) as manager:
        await there.user.create(webapp(there))
        await there.until(WebApp, "web", lambda app: app.status.ready)
        (controller,) = manager.controllers
        await eventually(lambda: is_idle(controller))
        before = [asked for asked in there.faults.requests if asked.verb != "watch"]

        key = (there.namespace, "web")
        for _ in range(3):  # as a resync would
            controller.look_at(Key(*key))
            await eventually(lambda: is_idle(controller))
        after = [asked for asked in there.faults.requests if asked.verb != "watch"]
        assert after == before


@FORMS
async def test_a_webapp_gets_there_whatever_happens_on_the_way(cluster: ControlPlane, form: Form) -> None:
    async with shop(cluster, WebApp) as there:
        there.faults.refuse(500, chance=0.1, times=20)
        there.faults.refuse(409, verb="write", chance=0.2, times=10)
        there.faults.lose_answer(verb="write", chance=0.2, times=10)
        there.faults.double()
        async with operating(there, form):
            await there.user.create(webapp(there))
            await eventually(there.faults.cut)
            await there.until(WebApp, "web", lambda app: app.status.ready, timeout=50)


def is_idle(controller: RuntimeController) -> bool:
    stats = controller.stats()
    return not stats.running and not sum(stats.queue.depth.values()) and not stats.queue.delayed


# --- database


def database(there: Shop, name: str = "orders", **spec: Any) -> Database:
    return Database(
        metadata=ObjectMeta(name=name, namespace=there.namespace),
        spec=DatabaseSpec(**{"version": "17.2", "storage": Quantity("2Gi"), **spec}),
    )


@asynccontextmanager
async def databases(there: Shop) -> AsyncIterator[Manager]:
    async with operating(there, database_example.operator.add_to) as manager:
        yield manager


def is_ready(one: Database) -> bool:
    ready = find_condition(one.status.conditions, "Ready")
    return (
        one.status.phase == "Ready"
        and ready is not None
        and ready.observed_generation == one.metadata.generation
    )


async def password(there: Shop) -> bytes:
    return ((await there.get(Secret, "orders-credentials")).data or {})["password"]


async def test_a_database_gets_a_secret_a_service_and_storage_and_says_how_to_connect(
    cluster: ControlPlane,
) -> None:
    async with shop(cluster, Database) as there, databases(there):
        await there.user.create(database(there, replicas=2))
        one = await there.until(Database, "orders", is_ready)

        assert (one.status.version, one.status.ready_replicas) == ("17.2", 2)
        connection = one.status.connection
        assert connection is not None
        assert connection.host == f"orders.{there.namespace}.svc"
        held = (await there.get(Secret, connection.secret)).data or {}
        assert held["username"] == b"app"
        assert len(held["password"]) >= 24
        assert (await there.get(Service, "orders")).spec.cluster_ip == "None"
        claims = await there.list(PersistentVolumeClaim)
        assert sorted(claim.metadata.name or "" for claim in claims) == ["data-orders-0", "data-orders-1"]
        assert all(
            claim.spec.resources is not None
            and (claim.spec.resources.requests or {})["storage"] == Quantity("2Gi")
            for claim in claims
        )


async def test_a_password_is_made_once_and_what_is_lost_is_not_guessed(cluster: ControlPlane) -> None:
    async with shop(cluster, Database) as there:
        async with databases(there):
            await there.user.create(database(there))
            await there.until(Database, "orders", is_ready)
            first = await password(there)
        async with databases(there):  # a new process
            await there.patch(Database, "orders", replicas=2)
            await there.until(Database, "orders", lambda one: is_ready(one) and one.status.replicas == 2)
            assert await password(there) == first

            kept = await there.get(Secret, "orders-credentials")
            await there.user.delete(kept)
            failed = await there.until(Database, "orders", lambda one: one.status.phase == "Failed")
            reconciled = find_condition(failed.status.conditions, "Reconciled")
            assert reconciled is not None
            assert "restore it" in reconciled.message
            assert await there.find(Secret, "orders-credentials") is None

            backup = Secret(metadata=ObjectMeta(name=kept.metadata.name, namespace=there.namespace))
            backup.data = kept.data  # as a user restores it, without anything that the operator had added
            await there.user.create(backup)
            await there.until(Database, "orders", is_ready)
            assert await password(there) == first


async def test_a_database_is_scaled_and_upgraded(cluster: ControlPlane) -> None:
    async with shop(cluster, Database) as there, databases(there):
        await there.user.create(database(there))
        await there.until(Database, "orders", is_ready)

        await there.user.scale(Database, "orders", 3, namespace=there.namespace)
        await there.until(Database, "orders", lambda one: is_ready(one) and one.status.ready_replicas == 3)

        await there.patch(Database, "orders", version="17.4")
        await there.until(Database, "orders", lambda one: is_ready(one) and one.status.version == "17.4")
        images = {pod.spec.containers[0].image for pod in await there.list(Pod)}
        assert images == {"postgres:17.4"}

        await there.patch(Database, "orders", replicas=1)
        await there.until(Database, "orders", lambda one: is_ready(one) and one.status.ready_replicas == 1)
        assert [pod.metadata.name for pod in await there.list(Pod)] == ["orders-0"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"version": "latest"}, "spec.version"),
        ({"version": "17"}, "spec.version"),
        ({"replicas": 0}, "spec.replicas"),
        ({"replicas": 10}, "spec.replicas"),
        ({"user": "Clerk; drop table"}, "spec.user"),
        ({"database": ""}, "spec.database"),
        ({"storage": "lots"}, "spec.storage"),
    ],
)
async def test_an_invalid_database_is_refused(
    cluster: ControlPlane, spec: dict[str, Any], field: str
) -> None:
    async with shop(cluster, Database) as there:
        wrong = {
            "apiVersion": "demo.setpoint.dev/v1",
            "kind": "Database",
            "metadata": {"name": "orders", "namespace": there.namespace},
            "spec": {"version": "17.2", **spec},
        }
        with pytest.raises(Invalid) as refused:
            await there.user.create(wrong)
        assert field in {cause.field for cause in refused.value.causes}


@pytest.mark.parametrize("name", ["9lives", "a.b", "x" * 41])
async def test_a_database_whose_name_cannot_be_its_services_is_refused(
    cluster: ControlPlane, name: str
) -> None:
    async with shop(cluster, Database) as there:
        with pytest.raises(Invalid, match="named after it"):
            await there.user.create(database(there, name))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"version": "18.1"}, "major version"),
        ({"version": "17.1"}, "no way back"),
        ({"storage": "4Gi"}, "immutable"),
        ({"user": "other"}, "immutable"),
    ],
)
async def test_a_change_that_cannot_be_made_is_refused(
    cluster: ControlPlane, spec: dict[str, Any], why: str
) -> None:
    async with shop(cluster, Database) as there:
        await there.user.create(database(there))
        with pytest.raises(Invalid, match=why):
            await there.patch(Database, "orders", **spec)


async def test_what_passes_by_itself_is_waited_for_and_told_meanwhile(cluster: ControlPlane) -> None:
    async with shop(cluster, Database) as there, databases(there):
        with there.faults.refuse(503, verb="write", kind=StatefulSet) as refused:
            await there.user.create(database(there))

            def waits(one: Database) -> bool:
                reconciled = find_condition(one.status.conditions, "Reconciled")
                return reconciled is not None and reconciled.reason == "Waiting"

            await there.until(Database, "orders", waits)
            assert refused.count
        await there.until(Database, "orders", is_ready)


async def test_what_does_not_pass_is_told_and_not_tried_again_until_something_changes(
    cluster: ControlPlane,
) -> None:
    async with shop(cluster, Database) as there, databases(there) as manager:
        (controller,) = manager.controllers
        with there.faults.refuse(422, verb="write", kind=StatefulSet) as refused:
            await there.user.create(database(there))
            await there.until(Database, "orders", lambda one: one.status.phase == "Failed")
            await eventually(lambda: is_idle(controller), what="no retry is planned")
            assert refused.count
        await there.patch(Database, "orders", replicas=2)
        await there.until(Database, "orders", is_ready)


@pytest.mark.deadline(180)
async def test_a_database_that_is_deleted_is_backed_up_first(cluster: ControlPlane) -> None:
    async with shop(cluster, Database) as there, databases(there):
        await there.user.create(database(there))
        await there.until(Database, "orders", is_ready)
        uid = (await there.get(Database, "orders")).metadata.uid
        with there.faults.hold(kind=Job):
            await there.user.delete(Database, "orders", namespace=there.namespace)
            job = await there.until(
                Job, "orders-final-backup", lambda job: is_true(job.status.conditions, "Complete")
            )
            assert (await there.get(Database, "orders")).metadata.deletion_timestamp is not None
            await there.get(StatefulSet, "orders")
        assert f"orders-{uid}.dump" in (job.spec.template.spec.containers[0].command or [])[-1]

        await there.until_gone(Database, "orders")
        for kind, name in ((StatefulSet, "orders"), (Service, "orders"), (Secret, "orders-credentials")):
            await there.until_gone(kind, name)
        await there.get(PersistentVolumeClaim, "orders-backup")


def breaks_backups(pod: Pod) -> Outcome:
    return Exits(1) if pod.spec.containers[0].name == "backup" else usual_outcome(pod)


@pytest.mark.deadline(180)
async def test_a_backup_that_fails_keeps_the_database_until_somebody_decides(cluster: ControlPlane) -> None:
    async with shop(cluster, Database, outcome=breaks_backups) as there, databases(there):
        await there.user.create(database(there))
        await there.until(Database, "orders", is_ready)
        await there.user.delete(Database, "orders", namespace=there.namespace)

        def has_failed(one: Database) -> bool:
            backed_up = find_condition(one.status.conditions, "BackedUp")
            return backed_up is not None and backed_up.reason == "Failed"

        await there.until(Database, "orders", has_failed, timeout=90)
        await there.get(StatefulSet, "orders")

        await there.patch(Database, "orders", finalBackup=False)
        await there.until_gone(Database, "orders")


async def test_a_database_that_wants_no_backup_goes_at_once(cluster: ControlPlane) -> None:
    async with shop(cluster, Database) as there, databases(there):
        await there.user.create(database(there, final_backup=False))
        await there.until(Database, "orders", is_ready)
        await there.user.delete(Database, "orders", namespace=there.namespace)
        await there.until_gone(Database, "orders")
        assert await there.find(Job, "orders-final-backup") is None


# --- as a program


@pytest.mark.parametrize(
    ("file", "make", "check"),
    [
        ("webapp/webapp.py", webapp, lambda app: app.status.ready),
        ("database/database.py", database, is_ready),
    ],
    ids=["webapp", "database"],
)
async def test_an_operator_runs_as_its_page_says(
    cluster: ControlPlane, file: str, make: Callable[[Shop], Object], check: Callable[[Any], object]
) -> None:
    async with shop(cluster) as there:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "setpoint.cli.main", "run", f"examples/{file}"),
            *("--install-crds", "--namespace", there.namespace),
            cwd=ROOT,
            env={"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.folder)},
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            made = await eventually(lambda: there.user.create(make(there)))
            await there.until(type(made), made.metadata.name or "", check)
            process.send_signal(signal.SIGTERM)
            _, said = await process.communicate()
            assert process.returncode == 0, said.decode()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
