"""The verbs of the registry on a store in memory: what is written, what is refused, what is left alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from setpoint.clock import ManualClock
from setpoint.server.registry.allocation import Allocations
from setpoint.server.registry.bootstrap import bootstrap
from setpoint.server.registry.builtins import builtin_resources
from setpoint.server.registry.crds import Definitions
from setpoint.server.registry.metadata import Names
from setpoint.server.registry.registry import Registry
from setpoint.server.registry.requests import Answered, Ask, Listed, Verb
from setpoint.server.registry.resources import Object
from setpoint.server.registry.served import Resources
from setpoint.server.statuses import StatusError
from setpoint.server.storage.memory import MemoryStore
from setpoint.server.storage.protocol import Place, Unwritable

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Server:
    """A registry, asked as http asks it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.clock = ManualClock()
        resources = Resources(builtin_resources(Allocations(source=random.Random(1))))
        self.registry = Registry(self.store, resources, clock=self.clock, names=Names(random.Random(1)))
        self.definitions = Definitions(self.registry)

    async def ask(
        self,
        verb: Verb,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        agent: str = "test",
        **query: str,
    ) -> Answered:
        asked = self.asked(verb, path, body, content_type=content_type, agent=agent, **query)
        answer = await getattr(self.registry, verb)(asked)
        assert isinstance(answer, Answered)
        return answer

    def asked(
        self,
        verb: Verb,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        agent: str = "test",
        **query: str,
    ) -> Ask:
        """``group/version/plural/namespace/name/subresource``, core with an empty group."""
        group, version, plural, namespace, name, below = (*path.split("/"), *[""] * 6)[:6]
        resource = self.registry.resources.find(group, version, plural)
        assert resource is not None, path
        return Ask(
            verb,
            resource,
            namespace=namespace,
            name=name,
            subresource=below,
            query=query,
            body=msgspec.json.encode(body) if body is not None else b"",
            content_type=content_type,
            user_agent=agent,
        )

    async def do(self, verb: Verb, path: str, body: Any = None, **options: Any) -> Object:
        found: Object = msgspec.json.decode((await self.ask(verb, path, body, **options)).data)
        return found

    async def names(self, path: str, **query: str) -> list[str]:
        listed = await self.registry.list(self.asked("list", path, **query))
        return [one.place.name for one in listed.records]

    async def refused(self, verb: Verb, path: str, body: Any = None, **options: Any) -> StatusError:
        with pytest.raises(StatusError) as refused:
            await self.ask(verb, path, body, **options)
        return refused.value


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    await bootstrap(server.registry)
    server.definitions.load()
    server.definitions.start()
    try:
        yield server
    finally:
        await server.definitions.stop()


CMS = "/v1/configmaps/default"


def configmap(name: str = "a", **data: str) -> Object:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


def pod(name: str = "p", **spec: Any) -> Object:
    container = {"name": "c", "image": "i:1"}
    return {"metadata": {"name": name, "labels": {"app": "x"}}, "spec": {"containers": [container], **spec}}


# --- creating


async def test_what_is_created_has_a_uid_a_version_a_time_and_an_owner_of_its_fields() -> None:
    async with serving() as server:
        made = await server.do("create", CMS, configmap(k="v"), agent="kubectl/v1.37")

        metadata = made["metadata"]
        assert metadata["uid"]
        assert int(metadata["resourceVersion"]) == server.store.revision
        assert metadata["creationTimestamp"] == "2030-01-01T00:00:00Z"
        (entry,) = metadata["managedFields"]
        assert (entry["manager"], entry["fieldsV1"]) == ("kubectl", {"f:data": {".": {}, "f:k": {}}})


async def test_a_generated_name_that_is_taken_is_generated_again() -> None:
    async with serving() as server:
        foreseen = Names(random.Random(7))
        server.registry = Registry(
            server.store, server.registry.resources, clock=server.clock, names=Names(random.Random(7))
        )
        taken = foreseen.generated("x-")
        await server.store.create(Place("configmaps", "default", taken), lambda _: b'{"metadata":{}}')

        made = await server.do("create", CMS, {"metadata": {"generateName": "x-"}})

        assert made["metadata"]["name"].startswith("x-")
        assert made["metadata"]["name"] != taken


async def test_what_exists_is_not_created() -> None:
    async with serving() as server:
        await server.do("create", CMS, configmap())

        refused = await server.refused("create", CMS, configmap())

        assert (refused.code, refused.reason) == (409, "AlreadyExists")
        assert refused.message == 'configmaps "a" already exists'


async def test_nothing_is_created_in_a_namespace_that_is_not_there_or_going() -> None:
    async with serving() as server:
        missing = await server.refused("create", "/v1/configmaps/nope", configmap())
        await server.do("create", "/v1/namespaces", {"metadata": {"name": "going"}})
        await server.do("delete", "/v1/namespaces//going")
        going = await server.refused("create", "/v1/configmaps/going", configmap())

        assert (missing.code, missing.message) == (404, 'namespaces "nope" not found')
        assert (going.code, going.details["causes"][0]["reason"]) == (403, "NamespaceTerminating")  # type: ignore[index]  # it has details


async def test_a_dry_run_stores_nothing_and_has_no_version() -> None:
    async with serving() as server:
        before = server.store.revision

        made = await server.do("create", CMS, configmap(), dryRun="All")

        assert "resourceVersion" not in made["metadata"]
        assert server.store.revision == before


async def test_unknown_fields_are_refused_warned_of_or_dropped_as_field_validation_says() -> None:
    async with serving() as server:
        body = {**configmap(), "foo": 1}

        strict = await server.refused("create", CMS, body, fieldValidation="Strict")
        warned = await server.ask("create", CMS, body)
        ignored = await server.ask(
            "create", CMS, {**body, "metadata": {"name": "b"}}, fieldValidation="Ignore"
        )

        assert 'strict decoding error: unknown field "foo"' in strict.message
        assert warned.warnings == ('unknown field "foo"',)
        assert ignored.warnings == ()
        assert b"foo" not in warned.data


# --- changing


async def test_an_update_of_an_older_version_is_a_conflict() -> None:
    async with serving() as server:
        seen = await server.do("create", CMS, configmap())
        await server.do("patch", f"{CMS}/a", {"data": {"x": "1"}}, content_type=MERGE)

        refused = await server.refused("update", f"{CMS}/a", {**seen, "data": {"y": "1"}})

        assert (refused.code, refused.reason) == (409, "Conflict")


async def test_an_update_without_a_version_takes_the_last_word_where_kubernetes_allows_it() -> None:
    async with serving() as server:
        await server.do("create", CMS, configmap())
        changed = await server.do("update", f"{CMS}/a", configmap(y="1"))
        lease = {"metadata": {"name": "l"}}
        await server.do("update", "coordination.k8s.io/v1/leases/default/l", lease)  # an update may create it

        refused = await server.refused("update", "coordination.k8s.io/v1/leases/default/l", lease)

        assert changed["data"] == {"y": "1"}
        assert "must be specified for an update" in refused.message


async def test_a_write_that_changes_nothing_has_no_version_and_no_event() -> None:
    async with serving() as server:
        made = await server.do("create", CMS, configmap(k="v"))
        server.clock.turn(60)
        revision = server.store.revision

        put = await server.do("update", f"{CMS}/a", made)
        patched = await server.do("patch", f"{CMS}/a", {"data": {"k": "v"}}, content_type=MERGE)

        assert put == patched == made
        assert server.store.revision == revision


async def test_the_generation_rises_with_the_spec_and_not_with_the_status() -> None:
    async with serving() as server:
        path = "apps/v1/deployments/default"
        await server.do("create", path, deployment())

        labelled = await server.do(
            "patch", f"{path}/d", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE
        )
        scaled = await server.do("patch", f"{path}/d", {"spec": {"replicas": 5}}, content_type=MERGE)
        told = await server.do("patch", f"{path}/d/status", {"status": {"replicas": 5}}, content_type=MERGE)

        assert [one["metadata"]["generation"] for one in (labelled, scaled, told)] == [1, 2, 2]
        assert told["status"]["replicas"] == 5


async def test_the_main_endpoint_leaves_the_status_and_the_status_endpoint_the_spec() -> None:
    async with serving() as server:
        path = "apps/v1/deployments/default"
        await server.do("create", path, deployment())
        both = {"spec": {"replicas": 7}, "status": {"replicas": 7}}

        by_status = await server.do("patch", f"{path}/d/status", both, content_type=MERGE)
        by_main = await server.do("patch", f"{path}/d", {"status": {"replicas": 1}}, content_type=MERGE)

        assert (by_status["spec"]["replicas"], by_status["status"]["replicas"]) == (2, 7)
        assert by_main["status"]["replicas"] == 7


def deployment() -> Object:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    selector = {"matchLabels": {"app": "x"}}
    return {"metadata": {"name": "d"}, "spec": {"replicas": 2, "selector": selector, "template": template}}


async def test_an_apply_creates_then_changes_then_gives_up() -> None:
    async with serving() as server:
        options = {"content_type": APPLY, "fieldManager": "m"}

        made = await server.ask("patch", f"{CMS}/a", configmap(x="1", y="1"), **options)
        changed = await server.do("patch", f"{CMS}/a", configmap(x="2"), **options)
        again = await server.do("patch", f"{CMS}/a", configmap(x="2"), **options)

        assert made.code == 201
        assert changed["data"] == {"x": "2"}
        assert again == changed


async def test_an_apply_over_anothers_field_is_a_conflict_unless_forced() -> None:
    async with serving() as server:
        await server.do("create", CMS, configmap(x="1"), agent="other")

        refused = await server.refused(
            "patch", f"{CMS}/a", configmap(x="2"), content_type=APPLY, fieldManager="m"
        )
        forced = await server.do(
            "patch", f"{CMS}/a", configmap(x="2"), content_type=APPLY, fieldManager="m", force="true"
        )

        assert refused.message == 'Apply failed with 1 conflict: conflict with "other" using v1: .data.x'
        assert forced["data"] == {"x": "2"}


async def test_a_scale_changes_the_replicas_and_owns_them() -> None:
    async with serving() as server:
        path = "apps/v1/deployments/default"
        await server.do("create", path, deployment())

        scale = await server.do(
            "patch", f"{path}/d/scale", {"spec": {"replicas": 9}}, content_type=MERGE, agent="hpa"
        )

        found = await server.do("get", f"{path}/d")
        assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == (
            "Scale",
            {"replicas": 9},
            "app=x",
        )
        assert found["spec"]["replicas"] == 9
        owners = {(one["manager"], one.get("subresource")): one for one in found["metadata"]["managedFields"]}
        assert owners["hpa", "scale"]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}


# --- deleting


async def test_the_last_finalizer_takes_the_object_with_it() -> None:
    async with serving() as server:
        body = configmap()
        body["metadata"]["finalizers"] = ["a.b/c"]
        await server.do("create", CMS, body)
        waiting = await server.do("delete", f"{CMS}/a")

        await server.do("patch", f"{CMS}/a", {"metadata": {"finalizers": None}}, content_type=MERGE)

        assert waiting["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:00Z"
        assert (await server.refused("get", f"{CMS}/a")).code == 404


async def test_a_namespace_goes_when_it_is_finalized() -> None:
    async with serving() as server:
        await server.do("create", "/v1/namespaces", {"metadata": {"name": "n"}})
        going = await server.do("delete", "/v1/namespaces//n")

        await server.do("update", "/v1/namespaces//n/finalize", {**going, "spec": {}})

        assert going["status"]["phase"] == "Terminating"
        assert (await server.refused("get", "/v1/namespaces//n")).code == 404
        assert (await server.refused("delete", "/v1/namespaces//default")).code == 403


async def test_a_collection_is_deleted_by_its_selector() -> None:
    async with serving() as server:
        for name, labels in (("a", {"x": "1"}), ("b", {"x": "1"}), ("c", {})):
            await server.do("create", CMS, {"metadata": {"name": name, "labels": labels}})
        asked = server.asked("deletecollection", CMS, labelSelector="x=1")

        gone = await server.registry.delete_collection(asked)

        assert isinstance(gone, Listed)
        assert [one.place.name for one in gone.records] == ["a", "b"]
        assert await server.names(CMS) == ["c"]


async def test_a_pod_is_bound_once() -> None:
    async with serving() as server:
        path = "/v1/pods/default"
        await server.do("create", path, pod())
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}

        done = await server.ask("create", f"{path}/p/binding", binding)
        refused = await server.refused("create", f"{path}/p/binding", binding)

        assert (done.code, refused.code) == (201, 409)
        bound = await server.do("get", f"{path}/p")
        assert bound["spec"]["nodeName"] == "n1"
        assert bound["status"]["conditions"][0]["type"] == "PodScheduled"


async def test_an_eviction_is_refused_where_a_budget_forbids_it() -> None:
    async with serving() as server:
        path, budgets = "/v1/pods/default", "policy/v1/poddisruptionbudgets/default"
        await server.do("create", path, pod(nodeName="n1"))
        runs = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await server.do("patch", f"{path}/p/status", {"status": runs}, content_type=MERGE)
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
        await server.do("create", budgets, {"metadata": {"name": "b"}, "spec": spec})
        status = {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1}
        await server.do("patch", f"{budgets}/b/status", {"status": status}, content_type=MERGE)
        eviction = {"metadata": {"name": "p"}}

        refused = await server.refused("create", f"{path}/p/eviction", eviction)
        status["disruptionsAllowed"] = 1
        await server.do("patch", f"{budgets}/b/status", {"status": status}, content_type=MERGE)
        await server.ask("create", f"{path}/p/eviction", eviction)

        assert (refused.code, refused.details["causes"][0]["reason"]) == (429, "DisruptionBudget")  # type: ignore[index]  # it has details
        assert (await server.do("get", f"{path}/p"))["metadata"]["deletionGracePeriodSeconds"] == 30


# --- definitions


def definition(*, minimum: int = 1) -> Object:
    size = {"type": "integer", "minimum": minimum, "default": 3}
    spec = {"type": "object", "properties": {"size": size}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "kind": "Foo"}
    return {
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


CRDS = "apiextensions.k8s.io/v1/customresourcedefinitions"
FOOS = "example.com/v1/foos/default"


async def until_served(server: Server, *, is_served: bool = True) -> None:
    async with asyncio.timeout(5):
        while (server.registry.resources.find("example.com", "v1", "foos") is not None) != is_served:
            await asyncio.sleep(0)


def foo(name: str = "f", **spec: Any) -> Object:
    return {"kind": "Foo", "apiVersion": "example.com/v1", "metadata": {"name": name}, "spec": spec}


async def test_a_definition_is_established_and_its_objects_are_pruned_defaulted_and_judged() -> None:
    async with serving() as server:
        await server.do("create", CRDS, definition())
        await until_served(server)

        made = await server.do("create", FOOS, foo(bar=1))
        refused = await server.refused("create", FOOS, foo("g", size=0))

        assert made["spec"] == {"size": 3}
        assert "spec.size in body should be greater than or equal to 1" in refused.message


async def test_a_deleted_definition_takes_its_objects_with_it() -> None:
    async with serving() as server:
        await server.do("create", CRDS, definition())
        await until_served(server)
        await server.do("create", FOOS, foo())

        await server.do("delete", f"{CRDS}//foos.example.com")
        await until_served(server, is_served=False)

        assert not server.store.listed("foos.example.com")
        assert (await server.refused("get", f"{CRDS}//foos.example.com")).code == 404


@pytest.mark.virtual_time
async def test_a_deleted_definition_waits_for_the_finalizers_of_its_objects() -> None:
    async with serving() as server:
        await server.do("create", CRDS, definition())
        await until_served(server)
        held = foo()
        held["metadata"]["finalizers"] = ["a.b/c"]
        await server.do("create", FOOS, held)

        going = await server.do("delete", f"{CRDS}//foos.example.com")
        await asyncio.sleep(5)
        assert (await server.do("get", f"{FOOS}/f"))["metadata"]["deletionTimestamp"]
        await server.do("patch", f"{FOOS}/f", {"metadata": {"finalizers": None}}, content_type=MERGE)
        await asyncio.sleep(5)

        assert going["metadata"]["finalizers"]
        assert (await server.refused("get", f"{CRDS}//foos.example.com")).code == 404


async def test_an_object_of_an_older_schema_is_read_by_the_new_one() -> None:
    async with serving() as server:
        await server.do("create", CRDS, definition())
        await until_served(server)
        await server.do("create", FOOS, foo())
        newer = definition()["spec"]["versions"]
        newer[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] = {
            "type": "string",
            "default": "red",
        }
        generation = server.registry.resources.generation
        await server.do(
            "patch", f"{CRDS}//foos.example.com", {"spec": {"versions": newer}}, content_type=MERGE
        )
        async with asyncio.timeout(5):
            while server.registry.resources.generation == generation:
                await asyncio.sleep(0)

        assert (await server.do("get", f"{FOOS}/f"))["spec"] == {"size": 3, "color": "red"}


# --- fields that are owned in ways of their own


async def test_a_daemon_set_counts_its_templates_and_who_leaves_the_count_out_owns_it() -> None:
    count = "deprecated.daemonset.template.generation"
    path = "apps/v1/daemonsets/default"

    def daemon_set(image: str) -> Object:
        template = {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        }
        return {
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }

    async with serving() as server:
        made = await server.do("create", path, daemon_set("i:1"))
        assert made["metadata"]["annotations"] == {count: "1"}
        changed = await server.do("update", f"{path}/d", daemon_set("i:2"), agent="other")
        assert changed["metadata"]["annotations"] == {count: "2"}
        owned = {
            one["manager"]: one["fieldsV1"]["f:metadata"] for one in changed["metadata"]["managedFields"]
        }
        assert owned["other"] == {"f:annotations": {f"f:{count}": {}}}
        bad = daemon_set("i:3")
        bad["metadata"]["annotations"] = {count: "three"}
        refused = await server.refused("update", f"{path}/d", bad)
        assert refused.code == 400
        assert refused.message.endswith('strconv.ParseInt: parsing "three": invalid syntax')


async def test_a_pod_that_goes_at_once_is_seen_to_go_before_it_is_gone() -> None:
    async with serving() as server:
        made = await server.do("create", "/v1/pods/default", pod())
        watch = server.store.watch("pods", "", int(made["metadata"]["resourceVersion"]))
        await server.do("delete", "/v1/pods/default/p", gracePeriodSeconds="0")
        events = await watch.next()
        assert [event.type for event in events] == ["MODIFIED", "DELETED"]
        marked = msgspec.json.decode(events[0].record.data)["metadata"]
        assert marked["deletionGracePeriodSeconds"] == 0
        watch.close()


async def test_what_its_last_finalizer_held_is_gone_as_it_was_stored() -> None:
    async with serving() as server:
        held = configmap()
        held["metadata"]["finalizers"] = ["example.com/x"]
        await server.do("create", CMS, held)
        marked = await server.do("delete", f"{CMS}/a")
        watch = server.store.watch("configmaps", "", int(marked["metadata"]["resourceVersion"]))
        answer = await server.do("patch", f"{CMS}/a", {"metadata": {"finalizers": None}}, content_type=MERGE)
        assert "finalizers" not in answer["metadata"]
        (event,) = await watch.next()
        assert event.type == "DELETED"
        assert msgspec.json.decode(event.record.data)["metadata"]["finalizers"] == ["example.com/x"]
        watch.close()


async def test_who_says_another_time_of_deletion_owns_it_and_changes_nothing() -> None:
    async with serving() as server:
        held = configmap()
        held["metadata"]["finalizers"] = ["example.com/x"]
        await server.do("create", CMS, held)
        going = (await server.do("delete", f"{CMS}/a"))["metadata"]["deletionTimestamp"]
        patch = {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}
        patched = await server.do("patch", f"{CMS}/a", patch, content_type=MERGE, agent="late")
        assert patched["metadata"]["deletionTimestamp"] == going
        owned = {one["manager"]: one["fieldsV1"] for one in patched["metadata"]["managedFields"]}
        assert owned["late"] == {"f:metadata": {"f:deletionTimestamp": {}}}


# ── Askers that go away ─────────────────────────────────────────────────────────────────────────────

SERVICES = "/v1/services/default"
_PLACE = Place("services", "default", "a")


def _service(name: str) -> Object:
    spec = {"clusterIP": "10.0.0.7", "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


class _Commit:
    """A write of the store that is on its way when who asked for it goes away; ``error`` is how it ends."""

    def __init__(self, server: Server, write: str, error: Exception | None = None) -> None:
        self._does = getattr(server.store, write)
        self._begun, self._goes_on, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._error = error

    async def __call__(self, place: Place, *args: Any) -> Any:
        if place != _PLACE:
            return await self._does(place, *args)
        self._begun.set()
        await self._goes_on.wait()
        try:
            if self._error is not None:
                raise self._error
            return await self._does(place, *args)
        finally:
            self._ended.set()

    async def without(self, asking: Coroutine[Any, Any, Answered]) -> None:
        task = asyncio.create_task(asking)
        await self._begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        self._goes_on.set()
        async with asyncio.timeout(10):
            await self._ended.wait()
        await asyncio.sleep(0)  # whoever waits for it hears of it


async def test_an_address_stays_taken_though_who_asked_for_it_went_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as server:
        commit = _Commit(server, "create")
        monkeypatch.setattr(server.store, "create", commit)
        await commit.without(server.ask("create", SERVICES, _service("a")))
        assert server.store.get(_PLACE) is not None, "it was committed"
        refused = await server.refused("create", SERVICES, _service("b"))
        assert "provided IP is already allocated" in refused.message


async def test_an_address_is_free_again_where_the_write_of_who_went_away_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as server:
        commit = _Commit(server, "create", Unwritable("no space left"))
        monkeypatch.setattr(server.store, "create", commit)
        await commit.without(server.ask("create", SERVICES, _service("a")))
        assert (await server.ask("create", SERVICES, _service("b"))).code == 201


async def test_the_address_of_what_is_deleted_is_free_though_who_deleted_it_went_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as server:
        await server.ask("create", SERVICES, _service("a"))
        commit = _Commit(server, "delete")
        monkeypatch.setattr(server.store, "delete", commit)
        await commit.without(server.ask("delete", f"{SERVICES}/a"))
        assert server.store.get(_PLACE) is None, "it is gone"
        assert (await server.ask("create", SERVICES, _service("b"))).code == 201
