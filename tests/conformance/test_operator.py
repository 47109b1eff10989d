"""Operators on the real kube-apiserver: what is sent, what is not, and what is left alone."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest

from setpoint.api import (
    Bounds,
    Condition,
    CustomResource,
    JsonPatch,
    LabelSelector,
    MergePatch,
    Model,
    ObjectMeta,
    find_condition,
    is_true,
)
from setpoint.api.names import Key
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.children import Children, Ready
from setpoint.controller.context import LABEL, Context
from setpoint.controller.result import Result
from setpoint.controller.sync_context import SyncContext
from setpoint.errors import AlreadyOwned, Conflict, NotFound, RetryLater, SetpointError
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.kube.apps.v1 import Deployment, DeploymentSpec
from setpoint.kube.core.v1 import (
    ConfigMap,
    Container,
    ContainerPort,
    EnvVar,
    EnvVarSource,
    Namespace,
    ObjectFieldSelector,
    PodSpec,
    PodTemplateSpec,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from setpoint.kube.events.v1 import Event
from setpoint.manager.manager import Manager
from setpoint.operator import Operator
from setpoint.testing.faults import Faults
from setpoint.testing.kube import ControlPlane
from setpoint.testing.waiting import eventually


class GardenSpec(Model):
    image: str = "garden:1"
    replicas: Annotated[int, Bounds(ge=0)] = 1
    port: Annotated[int, Bounds(ge=1, le=65535)] = 80


class GardenStatus(Model):
    available_replicas: int = 0
    ready: bool = False
    observed_generation: int | None = None
    conditions: list[Condition] = []


class Garden(CustomResource, group="operator.setpoint.dev", version="v1"):
    spec: GardenSpec = GardenSpec()
    status: GardenStatus = GardenStatus()


class Here:
    """An admin's client, and a namespace of its own, in which operators run."""

    def __init__(self, config: Config, client: Client, namespace: str) -> None:
        self.config = config
        self.client = client
        self.namespace = namespace

    async def make(self, name: str = "web", **spec: Any) -> Garden:
        metadata = ObjectMeta(name=name, namespace=self.namespace)
        return await self.client.create(Garden(metadata=metadata, spec=GardenSpec(**spec)))

    async def get(self, kind: type[Any] = Garden, name: str = "web") -> Any:
        return await self.client.get(kind, name, namespace=self.namespace)

    async def versions(self) -> list[str]:
        """Of the garden, and what it owns."""
        return [(await self.get(kind)).metadata.resource_version for kind in (Garden, Deployment, Service)]

    async def is_gone(self, kind: type[Any] = Garden, name: str = "web") -> bool:
        try:
            await self.get(kind, name)
        except NotFound:
            return True
        return False

    @asynccontextmanager
    async def running(self, operator: Operator) -> AsyncIterator[Running]:
        async with Faults.of(self.config) as faults, Client(self.config, transport=faults) as client:
            manager = Manager(client=client, namespaces=[self.namespace])
            operator.add_to(manager)
            async with manager:
                yield Running(manager, faults)


class Running:
    """An operator that runs, and what it asked of the server."""

    def __init__(self, manager: Manager, faults: Faults) -> None:
        self.manager = manager
        self.faults = faults

    def requests(self) -> list[str]:
        """All but watches."""
        return [str(each) for each in self.faults.requests if each.verb != "watch"]

    def writes(self) -> list[str]:
        return [str(each) for each in self.faults.requests if each.is_write and each.plural != "events"]

    async def settled(self) -> list[str]:
        """Wait until no request was made for a while; all that were."""
        count = -1
        async with asyncio.timeout(30):
            while len(self.requests()) != count:
                count = len(self.requests())
                await asyncio.sleep(0.5)
        return self.requests()

    async def look_at(self, garden: Garden) -> None:
        """Have a garden reconciled, and wait until that is done."""
        (controller,) = self.manager.controllers
        key = Key(garden.metadata.namespace or "", garden.metadata.name or "")
        before = controller.last_look(key)
        controller.look_at(key)
        await eventually(lambda: controller.last_look(key) is not before)


@pytest.fixture(scope="module")
def gardens(kube: ControlPlane) -> ControlPlane:
    """A server that knows Gardens."""

    async def install() -> None:
        async with Client(Config.from_kubeconfig(kube.kubeconfig)) as client:
            (definition,) = _operator_of_gardens().crds()
            await client.apply(definition, force=True)

            async def is_served() -> bool:
                found = await client.get(CustomResourceDefinition, "gardens.operator.setpoint.dev")
                await client.list(Garden)
                return is_true(found.status.conditions, "Established")

            await eventually(is_served)

    asyncio.run(install())
    return kube


def _operator_of_gardens() -> Operator:
    operator = Operator("garden-operator")

    async def reconcile(garden: Garden, ctx: Context) -> None: ...

    operator.controller(Garden)(reconcile)
    return operator


@asynccontextmanager
async def here(kube: ControlPlane) -> AsyncIterator[Here]:
    config = Config.from_kubeconfig(kube.kubeconfig)
    async with Client(config) as client:
        namespace = f"test-{secrets.token_hex(4)}"
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        yield Here(config, client, namespace)


def deployment(garden: Garden) -> Deployment:
    labels = {"app": garden.metadata.name or ""}
    own_name = EnvVarSource(field_ref=ObjectFieldSelector(field_path="metadata.name"))
    container = Container(
        name="web",
        image=garden.spec.image,
        env=[
            EnvVar(name="A", value="1"),
            EnvVar(name="NAME", value_from=own_name),
        ],  # the server adds apiVersion
        ports=[ContainerPort(container_port=garden.spec.port)],
    )
    return Deployment(
        metadata=ObjectMeta(name=garden.metadata.name, labels=labels),
        spec=DeploymentSpec(
            replicas=garden.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container])
            ),
        ),
    )


def service(garden: Garden) -> Service:
    ports = [ServicePort(port=80, target_port=garden.spec.port)]
    spec = ServiceSpec(selector={"app": garden.metadata.name or ""}, ports=ports)
    return Service(metadata=ObjectMeta(name=garden.metadata.name), spec=spec)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def web_operator() -> Operator:
    operator = Operator("garden-operator")

    @operator.controller(Garden, owns=[Deployment, Service])
    async def reconcile(garden: Garden, ctx: Context) -> Result | None:
        applied = await ctx.apply(deployment(garden))
        await ctx.apply(service(garden))
        garden.status.available_replicas = applied.status.available_replicas or 0
        garden.status.ready = garden.status.available_replicas == garden.spec.replicas
        ctx.set_condition("Ready", garden.status.ready, "Counted")
        return None

    return operator


# Applying.


async def test_at_its_fixed_point_a_reconcile_writes_nothing_and_asks_nothing(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make(replicas=2)
        async with place.running(web_operator()) as running:
            await eventually(lambda: place.get(Service))
            requests = await running.settled()
            assert sorted(each.split()[0] for each in running.writes()) == ["apply", "apply", "patch"], (
                requests
            )
            for _ in range(5):
                await running.look_at(made)
            assert running.requests() == requests


async def test_an_operator_that_starts_anew_ends_at_the_same_fixed_point(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make()
        async with place.running(web_operator()) as running:
            await eventually(lambda: place.get(Service))
            await running.settled()
        versions = [
            (await place.get(kind)).metadata.resource_version for kind in (Garden, Deployment, Service)
        ]
        async with place.running(web_operator()) as running:
            await running.settled()
            unsure = [f"apply deployments.apps {place.namespace}/web"]
            assert running.writes() == unsure, "the field that the server has a default in, once"
            for _ in range(3):
                await running.look_at(made)
            assert running.writes() == unsure
        assert await place.versions() == versions, "and that changed nothing"


async def test_an_object_made_anew_in_a_look_does_not_get_the_status_of_the_old_one(
    gardens: ControlPlane,
) -> None:
    async with here(gardens) as place:
        await place.make()
        operator, seen = Operator("garden-operator"), list[str]()

        @operator.controller(Garden)
        async def reconcile(garden: Garden, ctx: Context) -> None:
            seen.append(garden.metadata.uid or "")
            if len(seen) == 1:
                await place.client.delete(garden)
                await place.make()
                garden.status.available_replicas = 7

        async with place.running(operator) as running:
            await running.settled()
        anew = await place.get()
        assert set(seen[1:]) == {anew.metadata.uid}
        assert anew.status.available_replicas == 0


async def test_children_are_owned_labelled_and_put_back_when_they_drift(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make(replicas=2)
        async with place.running(web_operator()) as running:
            child: Deployment = await eventually(lambda: place.get(Deployment))
            (owner,) = child.metadata.owner_references or []
            assert (owner.uid, owner.controller, owner.kind) == (made.metadata.uid, True, "Garden")
            assert (child.metadata.labels or {})[LABEL] == "garden-operator.garden"
            await running.settled()

            await place.client.scale(Deployment, "web", 7, namespace=place.namespace)
            await eventually(lambda: has_replicas(place, 2))
            await place.client.delete(child)
            await eventually(lambda: is_other(place, child))
            await place.client.patch(made, MergePatch({"spec": {"replicas": 5}}))
            await eventually(lambda: has_replicas(place, 5))


async def has_replicas(place: Here, number: int) -> bool:
    found: Deployment = await place.get(Deployment)
    return found.spec.replicas == number


async def is_other(place: Here, child: Deployment) -> bool:
    found: Deployment = await place.get(Deployment)
    return found.metadata.uid != child.metadata.uid


async def test_what_others_set_stays_and_what_is_no_longer_wanted_is_given_up(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator, data = Operator("garden-operator"), {"a": "1", "b": "2"}

        @operator.controller(Garden, owns=[ConfigMap])
        async def reconcile(garden: Garden, ctx: Context) -> None:
            await ctx.apply(config_map("web", **data))

        async with place.running(operator) as running:
            await eventually(lambda: place.get(ConfigMap))
            theirs = MergePatch({"data": {"theirs": "x"}, "metadata": {"annotations": {"theirs": "x"}}})
            await place.client.patch(ConfigMap, "web", theirs, namespace=place.namespace)
            await running.settled()
            del data["b"]
            await running.look_at(made)
            found: ConfigMap = await place.get(ConfigMap)
            assert found.data == {"a": "1", "theirs": "x"}
            assert found.metadata.annotations == {"theirs": "x"}


async def test_a_secret_is_written_once_and_its_data_are_never_cached(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator = Operator("garden-operator")

        @operator.controller(Garden, owns=[Secret])
        async def reconcile(garden: Garden, ctx: Context) -> None:
            applied = await ctx.apply(Secret(metadata=ObjectMeta(name="web"), string_data={"password": "x"}))
            assert applied.data == {"password": b"x"}

        async with place.running(operator) as running:
            await eventually(lambda: place.get(Secret))
            await running.settled()
            for _ in range(3):
                await running.look_at(made)
            assert [each for each in running.writes() if "secrets" in each] == [
                f"apply secrets {place.namespace}/web"
            ]


async def test_what_another_controls_is_refused_in_a_sentence(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        first, second = await place.make("first"), await place.make("second")
        operator, errors = Operator("garden-operator"), list[str]()

        @operator.controller(Garden, owns=[ConfigMap])
        async def reconcile(garden: Garden, ctx: Context) -> None:
            if garden.metadata.name == "second":
                await eventually(lambda: place.get(ConfigMap, "shared"))
            try:
                await ctx.apply(config_map("shared"))
            except SetpointError as error:
                errors.append(f"{type(error).__name__}: {error}")

        async with place.running(operator) as running:
            await running.settled()
            await running.look_at(second)
            assert errors[-1].startswith(AlreadyOwned.__name__)
            assert "Garden first is its controller already" in errors[-1]
            await running.look_at(first)


async def test_create_or_patch_and_delete(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator, step, seen = Operator("garden-operator"), ["create"], list[Any]()

        def paint(obj: ConfigMap) -> None:
            obj.data = {**(obj.data or {}), "colour": step[0]}
            obj.metadata.finalizers = ["operator.setpoint.dev/x"] if step[0] == "list" else None

        @operator.controller(Garden, owns=[ConfigMap])
        async def reconcile(garden: Garden, ctx: Context) -> None:
            if step[0] == "delete":
                seen.append(await ctx.delete(ConfigMap, "web"))
            else:
                await ctx.create_or_patch(config_map("web", initial="1"), paint)

        async with place.running(operator) as running:
            await running.settled()
            before = running.writes()
            await running.look_at(made)
            assert running.writes() == before, "nothing changed"
            for word in ("patch", "list", "unlist"):
                step[0] = word
                await running.look_at(made)
                found: ConfigMap = await place.get(ConfigMap)
                assert found.data == {"initial": "1", "colour": word}
            step[0] = "delete"
            await running.look_at(made)
            await eventually(lambda: place.is_gone(ConfigMap))
            await running.look_at(made)
        assert seen[0] is True
        assert seen[-1] is False


async def test_a_delete_names_what_was_seen(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator, errors = Operator("garden-operator"), list[type[Exception]]()

        @operator.controller(Garden, owns=[ConfigMap])
        async def reconcile(garden: Garden, ctx: Context) -> None:
            found = await ctx.get(ConfigMap, "web")
            await place.client.patch(
                ConfigMap, "web", MergePatch({"data": {"n": secrets.token_hex(2)}}), namespace=place.namespace
            )
            try:
                await ctx.delete(found)
            except Conflict as error:
                errors.append(type(error))

        await place.client.create(config_map("web"), namespace=place.namespace)
        async with place.running(operator) as running:
            await running.look_at(made)
            assert errors[0] is Conflict
            assert not await place.is_gone(ConfigMap)


# Status.


async def test_a_status_keeps_the_conditions_of_others_and_moves_its_times_only_when_it_must(
    gardens: ControlPlane,
) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator, ready = Operator("garden-operator"), [False]

        @operator.controller(Garden)
        async def reconcile(garden: Garden, ctx: Context) -> None:
            # The whole list anew each time, without a time: as authors do.
            garden.status.conditions = [Condition(type="Ready", status=str(ready[0]), reason="Told")]

        async with place.running(operator) as running:
            await eventually(lambda: has_condition(place, "Ready"))
            theirs = {
                "type": "Theirs",
                "status": "True",
                "reason": "X",
                "message": "",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }
            add = JsonPatch([{"op": "add", "path": "/status/conditions/-", "value": theirs}])
            await place.client.patch(made, add, subresource="status", field_manager="someone-else")
            await running.settled()
            first: Garden = await place.get()
            await asyncio.sleep(1.1)  # times are told in whole seconds
            await running.look_at(made)
            again: Garden = await place.get()
            assert again.metadata.resource_version == first.metadata.resource_version, "nothing was written"

            ready[0] = True
            await place.client.patch(made, MergePatch({"spec": {"replicas": 3}}))
            last: Garden = await eventually(lambda: when_ready(place))
            assert is_true(last.status.conditions, "Theirs")
            before, after = (find_condition(each.status.conditions, "Ready") for each in (first, last))
            assert before is not None
            assert after is not None
            assert after.last_transition_time != before.last_transition_time
            assert (after.observed_generation, last.status.observed_generation) == (2, 2)


async def has_condition(place: Here, kind: str) -> bool:
    return find_condition((await place.get()).status.conditions, kind) is not None


async def when_ready(place: Here) -> Garden | None:
    found: Garden = await place.get()
    return found if is_true(found.status.conditions, "Ready") else None


async def test_a_condition_that_is_ours_can_be_taken_away(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator, kinds = Operator("garden-operator"), ["A", "B"]

        @operator.controller(Garden)
        async def reconcile(garden: Garden, ctx: Context) -> None:
            garden.status.conditions = [Condition(type=kind, status="True", reason="Told") for kind in kinds]

        async with place.running(operator) as running:
            await eventually(lambda: has_condition(place, "B"))
            await running.settled()
            kinds.remove("B")
            await running.look_at(made)
            await eventually(lambda: lacks_condition(place, "B"))
            assert await has_condition(place, "A")


async def lacks_condition(place: Here, kind: str) -> bool:
    return not await has_condition(place, kind)


async def test_a_409_on_the_status_reads_again_and_loses_nothing(gardens: ControlPlane) -> None:
    """Another writer adds conditions all the while; every one of both must be there in the end."""
    async with here(gardens) as place:
        await place.make()
        operator = Operator("garden-operator")

        @operator.controller(Garden)
        async def reconcile(garden: Garden, ctx: Context) -> None:
            number = len([each for each in garden.status.conditions if each.type.startswith("Ours")])
            if number < 10:
                ctx.set_condition(f"Ours{number}", True, "Told")
            await add_condition(place, f"Theirs{secrets.token_hex(3)}")  # between our read and our write

        async with place.running(operator) as running:
            await eventually(lambda: has_condition(place, "Ours9"))
            assert any(each.startswith("get gardens") for each in running.requests()), "there was a conflict"
        found: Garden = await place.get()
        assert {f"Ours{n}" for n in range(10)} <= {each.type for each in found.status.conditions}
        assert len([each for each in found.status.conditions if each.type.startswith("Theirs")]) >= 10


async def add_condition(place: Here, kind: str) -> None:
    value = {
        "type": kind,
        "status": "True",
        "reason": "X",
        "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    current: Garden = await place.get()
    path = "/status/conditions/-" if current.status.conditions else "/status"
    add = {"op": "add", "path": path, "value": value if path.endswith("-") else {"conditions": [value]}}
    await place.client.patch(current, JsonPatch([add]), subresource="status", field_manager="someone-else")


async def test_a_status_is_written_when_reconcile_raised_and_never_to_another_object(
    gardens: ControlPlane,
) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator, replaced = Operator("garden-operator"), list[str]()

        @operator.controller(Garden)
        async def reconcile(garden: Garden, ctx: Context) -> None:
            garden.status.available_replicas = 7
            if garden.metadata.uid == made.metadata.uid and garden.spec.replicas == 2:
                await place.client.delete(made)
                replaced.append((await place.make()).metadata.uid or "")
            elif garden.metadata.uid != made.metadata.uid:
                garden.status.available_replicas = 0
            raise RetryLater(60)

        async with place.running(operator):
            await eventually(lambda: has_available(place, 7))
            await place.client.patch(made, MergePatch({"spec": {"replicas": 2}}))
            await eventually(lambda: bool(replaced))
            await asyncio.sleep(0.5)
            found: Garden = await place.get()
            assert (found.metadata.uid, found.status.available_replicas) == (replaced[0], 0)


async def has_available(place: Here, number: int) -> bool:
    found: Garden = await place.get()
    return found.status.available_replicas == number


# Finalizers.


async def test_a_finalizer_comes_before_the_first_effect_and_goes_after_the_clean_up(
    gardens: ControlPlane,
) -> None:
    async with here(gardens) as place:
        operator, happened, answers = Operator("garden-operator"), list[str](), [RetryLater(0.05), None]

        @operator.controller(Garden, owns=[ConfigMap])
        async def reconcile(garden: Garden, ctx: Context) -> None:
            live: Garden = await place.get()
            assert live.metadata.finalizers
            assert "garden-operator.setpoint.dev/cleanup" in live.metadata.finalizers
            happened.append("reconcile")
            await ctx.apply(config_map("web"))

        @operator.finalizer(Garden)
        async def clean_up(garden: Garden, ctx: Context) -> None:
            happened.append("clean up")
            garden.status.ready = False
            answer = answers.pop(0)
            if answer is not None:
                raise answer

        made = await place.make()
        other = JsonPatch([{"op": "add", "path": "/metadata/finalizers", "value": ["theirs.example/x"]}])
        await place.client.patch(made, other)
        async with place.running(operator) as running:
            await eventually(lambda: place.get(ConfigMap))
            assert running.writes()[0].startswith("patch gardens")
            await place.client.delete(made)
            await eventually(lambda: has_finalizers(place, ["theirs.example/x"]))
            assert happened[-2:] == ["clean up", "clean up"]
            await place.client.patch(made, JsonPatch([{"op": "remove", "path": "/metadata/finalizers/0"}]))
            await eventually(place.is_gone)


async def has_finalizers(place: Here, names: list[str]) -> bool:
    found: Garden = await place.get()
    return found.metadata.finalizers == names


# The declarative form.


async def test_children_are_declared_gated_and_pruned(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator, names = Operator("garden-operator"), ["a", "b"]

        @operator.controller(Garden, owns=[ConfigMap, Deployment])
        async def reconcile(garden: Garden, ctx: Context) -> Children:
            for name in names:
                child = yield config_map(name)
                assert child.metadata.uid
            if garden.spec.replicas > 1:
                yield Ready(deployment(garden))
                yield config_map("after")

        async with place.running(operator) as running:
            await eventually(lambda: place.get(ConfigMap, "b"))
            await running.settled()
            before = running.writes()
            await running.look_at(made)
            assert running.writes() == before

            names[:] = ["b", "c"]
            await running.look_at(made)
            assert await place.is_gone(ConfigMap, "a")
            await place.get(ConfigMap, "c")

            await place.client.patch(made, MergePatch({"spec": {"replicas": 2}}))
            await eventually(lambda: place.get(Deployment))
            await running.settled()
            assert await place.is_gone(ConfigMap, "after"), "no controller manager: it is never ready"
            status = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
            ready = {
                **status,
                "observedGeneration": 1,
                "conditions": [
                    {"type": "Available", "status": "True"},
                    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                ],
            }
            await place.client.patch(
                Deployment,
                "web",
                MergePatch({"status": ready}),
                namespace=place.namespace,
                subresource="status",
            )
            await eventually(lambda: place.get(ConfigMap, "after"))
            await place.client.patch(made, MergePatch({"spec": {"replicas": 1}}))
            await eventually(lambda: place.is_gone(ConfigMap, "after"))
            await eventually(lambda: place.is_gone(Deployment))


# Telling.


async def test_events_are_seen_with_the_object_and_are_counted(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator = Operator("garden-operator")

        @operator.controller(Garden)
        async def reconcile(garden: Garden, ctx: Context) -> None:
            ctx.event("Warning", "Watered", "it was dry", action="Water")

        async with place.running(operator) as running:
            for _ in range(4):
                await running.look_at(made)
        (event,) = await place.client.list(Event, namespace=place.namespace)
        assert (event.type, event.reason, event.action, event.note) == (
            "Warning",
            "Watered",
            "Water",
            "it was dry",
        )
        assert event.regarding is not None
        assert (event.regarding.kind, event.regarding.uid) == ("Garden", made.metadata.uid)
        assert event.reporting_controller == "garden"
        assert event.series is not None
        assert event.series.count >= 4, "the last count is sent at the end"


async def test_a_rival_is_named(gardens: ControlPlane, caplog: pytest.LogCaptureFixture) -> None:
    async with here(gardens) as place:
        await place.make(replicas=2)
        async with place.running(web_operator()) as running:
            await eventually(lambda: place.get(Deployment))

            async def rival() -> bool:
                scaled = MergePatch({"spec": {"replicas": 9}})
                await place.client.patch(
                    Deployment, "web", scaled, namespace=place.namespace, field_manager="rival"
                )
                return "hot loop" in caplog.text

            await eventually(rival)
            assert "spec.replicas was put back each time, and rival undid it" in caplog.text
            value = running.manager.metrics.registry.get_sample_value
            assert value("setpoint_hot_loops_total", {"controller": "garden"}) == 1


# Plain functions.


async def test_plain_functions_work_as_well(gardens: ControlPlane) -> None:
    async with here(gardens) as place:
        made = await place.make()
        operator = Operator("garden-operator")

        @operator.controller(Garden, owns=[ConfigMap], workers=2)
        def reconcile(garden: Garden, ctx: SyncContext) -> None:
            applied = ctx.apply(config_map("web", n=str(garden.spec.replicas)))
            garden.status.ready = ctx.get(ConfigMap, "web").data == applied.data
            ctx.set_condition("Ready", garden.status.ready, "Compared")

        async with place.running(operator) as running:
            await eventually(lambda: has_condition(place, "Ready"))
            assert (await place.get()).status.ready
            requests = await running.settled()
            await running.look_at(made)
            assert running.requests() == requests


# When the way to the server is bad.


async def test_under_faults_nothing_is_leaked_lost_or_torn_down(gardens: ControlPlane) -> None:
    """Requests fail, vanish, or happen without an answer; what is outside must still come out even."""
    async with here(gardens) as place:
        operator, outside, held = Operator("garden-operator"), set[str](), list[bool]()

        @operator.controller(Garden, owns=[ConfigMap], workers=4)
        async def reconcile(garden: Garden, ctx: Context) -> Children:
            held.append("garden-operator.setpoint.dev/cleanup" in (garden.metadata.finalizers or []))
            outside.add(garden.metadata.uid or "")
            for number in range(garden.spec.replicas):
                yield config_map(f"{garden.metadata.name}-{number}")
            ctx.set_condition("Ready", True, "Done")

        @operator.finalizer(Garden)
        async def clean_up(garden: Garden, ctx: Context) -> None:
            outside.discard(garden.metadata.uid or "")

        async def are_ready(replicas: int, names: set[str]) -> bool:
            found = await place.client.list(Garden, namespace=place.namespace)
            maps = await place.client.list(ConfigMap, namespace=place.namespace, labels=LABEL)
            return (
                {each.metadata.name for each in found} == names
                and all(is_true(each.status.conditions, "Ready") for each in found)
                and len(maps) == replicas * len(names)
            )

        async with place.running(operator) as running:
            for code, chance in ((409, 0.1), (500, 0.1), (429, 0.05)):
                running.faults.refuse(code, verb="write", chance=chance)
            lost = running.faults.lose_answer(verb="write", chance=0.1)
            gave_up = running.faults.lose_answer(504, verb="write", chance=0.05)
            running.faults.drop(verb="write", chance=0.1)
            names = {f"web-{number}" for number in range(8)}
            for name in names:
                await place.make(name, replicas=3)
            await eventually(lambda: are_ready(3, names), timeout=60)
            for name in names:
                await place.client.patch(
                    Garden, name, MergePatch({"spec": {"replicas": 2}}), namespace=place.namespace
                )
            await eventually(lambda: are_ready(2, names), timeout=60)
            gone, kept = set(sorted(names)[:4]), set(sorted(names)[4:])
            for name in gone:
                await place.client.delete(Garden, name, namespace=place.namespace)
            await eventually(lambda: only_gardens(place, kept), timeout=60)
            assert lost.count
            assert gave_up.count
            left = await place.client.list(Garden, namespace=place.namespace)
            assert outside == {each.metadata.uid for each in left}, "nothing leaked, nothing torn down"
            assert all(held), "never an effect without the finalizer"
            running.faults.clear()


async def only_gardens(place: Here, names: set[str]) -> bool:
    found = await place.client.list(Garden, namespace=place.namespace)
    return {each.metadata.name for each in found} == names
