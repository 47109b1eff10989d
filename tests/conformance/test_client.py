"""The client against the real kube-apiserver: every verb, on built-in kinds and on a kind of our own."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest

from setpoint import errors
from setpoint.api import (
    Bounds,
    CustomResource,
    JsonPatch,
    MergePatch,
    Model,
    Object,
    ObjectMeta,
    ScalePaths,
    StrategicPatch,
    crd_of,
)
from setpoint.api.forms import metadata_only, untyped
from setpoint.api.meta import LabelSelector
from setpoint.client import Bookmark, Change, Client, Config, Impersonation, ignore_not_found
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.kube.apps.v1 import Deployment, DeploymentSpec
from setpoint.kube.core.v1 import (
    ConfigMap,
    Container,
    Namespace,
    Pod,
    PodSpec,
    PodTemplateSpec,
    Secret,
    ServiceAccount,
)
from setpoint.kube.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from setpoint.testing.kube import ControlPlane
from tests.conformance.planes import NewPlane


class ShelfSpec(Model):
    size: Annotated[int, Bounds(ge=0)] = 1
    colour: str | None = None


class ShelfStatus(Model):
    books: int = 0
    selector: str = ""


class Shelf(
    CustomResource,
    group="library.setpoint.dev",
    version="v1",
    plural="shelves",
    scale=ScalePaths(spec_path=".spec.size", status_path=".status.books", selector_path=".status.selector"),
):
    """Where books stand."""

    spec: ShelfSpec = ShelfSpec()
    status: ShelfStatus = ShelfStatus()


@asynccontextmanager
async def connected(kube: ControlPlane, **options: Any) -> AsyncIterator[tuple[Client, str]]:
    """An admin's client, and a namespace of its own."""
    async with Client(Config.from_kubeconfig(kube.kubeconfig), **options) as client:
        namespace = f"test-{secrets.token_hex(4)}"
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        yield client, namespace


async def install_shelves(client: Client) -> None:
    await client.apply(crd_of(Shelf), force=True)
    async with client.watch(
        CustomResourceDefinition, fields={"metadata.name": "shelves.library.setpoint.dev"}
    ) as watch:
        async for change in watch:
            conditions = change.object.status.conditions or []
            if any(c.type == "Established" and c.status == "True" for c in conditions):
                break
    # Established is said a moment before every path is served.
    await eventually(lambda: client.list(Shelf))


async def eventually(ask: Any, *, timeout: float = 30) -> Any:
    """Ask until it is no longer refused."""
    async with asyncio.timeout(timeout):
        while True:
            try:
                return await ask()
            except (errors.KindNotServed, errors.Forbidden, errors.TooManyRequests):
                await asyncio.sleep(0.05)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def web(name: str = "web") -> Deployment:
    labels = {"app": name}
    return Deployment(
        metadata=ObjectMeta(name=name),
        spec=DeploymentSpec(
            replicas=2,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels),
                spec=PodSpec(containers=[Container(name="web", image="web:1")]),
            ),
        ),
    )


class OldSpec(Model):
    replicas: int = 0


class OldDeployment(Object, group="apps", version="v1", kind="Deployment", plural="deployments"):
    """A class that knows less than the server does."""

    spec: OldSpec = OldSpec()


# Each verb, on a built-in kind


async def test_create_get_update_and_delete_a_built_in(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        made = await client.create(config_map("a", x="1"), namespace=namespace)
        assert made.metadata.uid
        with pytest.raises(errors.AlreadyExists):
            await client.create(config_map("a"), namespace=namespace)

        read = await client.get(ConfigMap, "a", namespace=namespace)
        assert read == made
        read.data = {"x": "2"}
        changed = await client.update(read)
        assert changed.data == {"x": "2"}
        with pytest.raises(errors.Conflict, match="read it again"):
            await client.update(read)

        await client.delete(changed)
        with pytest.raises(errors.NotFound):
            await client.get(ConfigMap, "a", namespace=namespace)
        await ignore_not_found(client.delete(ConfigMap, "a", namespace=namespace))


async def test_generate_name_makes_a_name(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        made = await client.create(ConfigMap(metadata=ObjectMeta(generate_name="a-")), namespace=namespace)
        assert (made.metadata.name or "").startswith("a-")


async def test_dicts_and_metadata_alone_work_without_a_class(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        metadata = {"name": "a", "namespace": namespace}
        made = await client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "1"}}
        )
        made["data"]["x"] = "2"
        assert (await client.update(made))["data"] == {"x": "2"}
        kind = untyped("v1", "ConfigMap")
        assert (await client.get(kind, "a", namespace=namespace))["data"] == {"x": "2"}
        (only,) = await client.list(kind, namespace=namespace)
        assert (only["kind"], only["apiVersion"]) == ("ConfigMap", "v1")

        alone = await client.get(metadata_only(ConfigMap), "a", namespace=namespace)
        assert alone.metadata.resource_version
        (listed,) = await client.list(metadata_only(kind), namespace=namespace)
        assert listed.metadata == alone.metadata
        patched = await client.patch(
            metadata_only(ConfigMap),
            "a",
            MergePatch({"metadata": {"labels": {"a": "b"}}}),
            namespace=namespace,
        )
        assert patched.metadata.labels == {"a": "b"}
        await client.delete(metadata_only(ConfigMap), "a", namespace=namespace)


async def test_json_merge_and_strategic_patches(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await client.create(web(), namespace=namespace)
        replace = JsonPatch([{"op": "replace", "path": "/spec/replicas", "value": 5}])
        assert (await client.patch(Deployment, "web", replace, namespace=namespace)).spec.replicas == 5
        merge = MergePatch({"metadata": {"annotations": {"a": "b"}}})
        assert (await client.patch(Deployment, "web", merge, namespace=namespace)).metadata.annotations == {
            "a": "b"
        }
        side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
        patched = await client.patch(Deployment, "web", StrategicPatch(side), namespace=namespace)
        assert patched.spec.template.spec is not None
        assert {c.name for c in patched.spec.template.spec.containers} == {"web", "side"}

        failing = JsonPatch([{"op": "test", "path": "/spec/replicas", "value": 1}])
        with pytest.raises(errors.Invalid):
            await client.patch(Deployment, "web", failing, namespace=namespace)


async def test_apply_makes_changes_gives_up_and_conflicts(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        first = await client.apply(config_map("a", x="1", y="1"), namespace=namespace, field_manager="one")
        same = await client.apply(config_map("a", x="1", y="1"), namespace=namespace, field_manager="one")
        assert same.metadata.resource_version == first.metadata.resource_version
        less = await client.apply(config_map("a", x="1"), namespace=namespace, field_manager="one")
        assert less.data == {"x": "1"}, "what is no longer wished for is given up"

        with pytest.raises(errors.ApplyConflict) as raised:
            await client.apply(config_map("a", x="2"), namespace=namespace, field_manager="two")
        assert raised.value.conflicts == (("one", ".data.x"),)
        taken = await client.apply(
            config_map("a", x="2"), namespace=namespace, field_manager="two", force=True
        )
        assert taken.data == {"x": "2"}


async def test_dry_run_changes_nothing(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await client.create(config_map("a"), namespace=namespace, dry_run=True)
        await client.apply(config_map("b"), namespace=namespace, dry_run=True)
        kept = await client.create(config_map("c"), namespace=namespace)
        await client.delete(kept, dry_run=True)
        assert [one.metadata.name for one in await client.list(ConfigMap, namespace=namespace)] == ["c"]


async def test_field_validation_is_the_servers(kube: ControlPlane, caplog: pytest.LogCaptureFixture) -> None:
    async with connected(kube) as (client, namespace):
        wrong: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": namespace},
            "dat": {},
        }
        with pytest.raises(errors.BadRequest, match='unknown field "dat"'):
            await client.create(wrong, field_validation="Strict")
        await client.create(wrong, field_validation="Warn", dry_run=True)
        await client.create(wrong, field_validation="Warn", dry_run=True)
        assert [record.getMessage() for record in caplog.records] == ['unknown field "dat"'], (
            "warned of, once"
        )


async def test_delete_options_are_obeyed(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        made = await client.create(config_map("a"), namespace=namespace)
        with pytest.raises(errors.Conflict):
            await client.delete(made, uid="00000000-0000-0000-0000-000000000000")
        with pytest.raises(errors.Conflict):
            await client.delete(made, resource_version="1")
        await client.delete(made, uid=made.metadata.uid or "", propagation="Foreground")
        left = await client.get(ConfigMap, "a", namespace=namespace)
        assert left.metadata.finalizers == ["foregroundDeletion"]


async def test_delete_collection_takes_the_selected(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        for name, app in [("a", "x"), ("b", "x"), ("c", "y")]:
            labelled = config_map(name)
            labelled.metadata.labels = {"app": app}
            await client.create(labelled, namespace=namespace)
        await client.delete_collection(ConfigMap, namespace=namespace, labels="app in (x)")
        assert [one.metadata.name for one in await client.list(ConfigMap, namespace=namespace)] == ["c"]


async def test_lists_select_and_page(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        for number in range(25):
            labelled = config_map(f"c-{number:02}")
            labelled.metadata.labels = {"odd": str(number % 2)}
            await client.create(labelled, namespace=namespace)
        names = [f"c-{number:02}" for number in range(25)]
        assert [
            one.metadata.name for one in await client.list(ConfigMap, namespace=namespace, page_size=4)
        ] == names
        assert [
            one.metadata.name async for one in client.list(ConfigMap, namespace=namespace, page_size=7)
        ] == names
        odd = await client.list(ConfigMap, namespace=namespace, labels={"odd": "1"}, page_size=5)
        assert [one.metadata.name for one in odd] == names[1::2]
        (one,) = await client.list(ConfigMap, namespace=namespace, fields={"metadata.name": "c-03"})
        assert one.metadata.name == "c-03"
        with pytest.raises(errors.BadRequest, match=r"not a known field selector|field label not supported"):
            await client.list(ConfigMap, namespace=namespace, fields="data.x=y")


async def test_watch_sees_what_happens_after_a_list(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await client.create(config_map("old"), namespace=namespace)
        listed = await client.list(ConfigMap, namespace=namespace)
        made = await client.create(config_map("a"), namespace=namespace)
        made.data = {"x": "1"}
        await client.delete(await client.update(made))
        async with client.watch(
            ConfigMap, namespace=namespace, resource_version=listed.resource_version
        ) as watch:
            changes = [change async for change, _ in azip(aiter(watch), 3)]
        assert [(c.type, c.object.metadata.name) for c in changes] == [
            ("ADDED", "a"),
            ("MODIFIED", "a"),
            ("DELETED", "a"),
        ]


async def azip(source: AsyncIterator[Any], count: int) -> AsyncIterator[tuple[Any, int]]:
    for index in range(count):
        yield await anext(source), index


async def test_initial_events_are_streamed_and_end_with_a_bookmark(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        for name in ("a", "b"):
            await client.create(config_map(name), namespace=namespace)
        async with client.watch(ConfigMap, namespace=namespace, initial_events=True) as watch:
            events = watch.events()
            first = [await anext(events) for _ in range(3)]
            assert {e.object.metadata.name for e in first if isinstance(e, Change)} == {"a", "b"}
            assert isinstance(first[2], Bookmark)
            assert first[2].initial_events_end
            await client.create(config_map("c"), namespace=namespace)
            later = await anext(aiter(watch))
            assert later.object.metadata.name == "c"


async def test_a_watch_goes_on_across_a_restart_of_the_server(new_plane: NewPlane) -> None:
    # A restarted server's cache knows nothing older than the restart; without it, the history counts.
    with new_plane(api_server_args=("--watch-cache-sizes=configmaps#0",)) as own:
        async with Client(Config.from_kubeconfig(own.kubeconfig)) as client:
            await eventually(lambda: client.get(Namespace, "default"))
            start = await client.list(ConfigMap, namespace="default")
            async with client.watch(
                ConfigMap, namespace="default", resource_version=start.resource_version
            ) as watch:
                changes = aiter(watch)
                await client.create(config_map("before"), namespace="default")
                assert (await anext(changes)).object.metadata.name == "before"
                await asyncio.to_thread(own.stop_api_server)
                await asyncio.to_thread(own.start_api_server)
                await client.create(config_map("after"), namespace="default")
                seen = await anext(changes)
                assert (seen.type, seen.object.metadata.name) == ("ADDED", "after"), "and nothing twice"


async def test_a_list_in_pages_survives_compaction(new_plane: NewPlane) -> None:
    # Without the cache's own snapshots, so that a compacted page is gone at once.
    with new_plane(api_server_args=("--feature-gates=ListFromCacheSnapshot=false",)) as own:
        async with Client(Config.from_kubeconfig(own.kubeconfig)) as client:
            for number in range(6):
                await client.create(config_map(f"c-{number}"), namespace="default")
            listing = client.list(
                ConfigMap, namespace="default", page_size=2, fields="metadata.name!=kube-root-ca.crt"
            )
            pages = listing.pages()
            names = [one.metadata.name for one in await anext(pages)]
            await client.create(config_map("zz"), namespace="default")
            await asyncio.to_thread(own.compact)
            async for page in pages:
                names += [one.metadata.name for one in page]
            assert names == [*(f"c-{number}" for number in range(6)), "zz"]
            assert not listing.is_consistent
            assert listing.resource_version == ""


async def test_an_expired_version_is_an_error_of_its_own(new_plane: NewPlane) -> None:
    with new_plane() as own:
        async with Client(Config.from_kubeconfig(own.kubeconfig)) as client:
            listed = await client.list(ConfigMap, namespace="default")
            await client.create(config_map("a"), namespace="default")
            await client.create(config_map("b"), namespace="default")
            await asyncio.to_thread(own.compact)
            await asyncio.to_thread(own.stop_api_server)
            await asyncio.to_thread(own.start_api_server)
            async with client.watch(
                ConfigMap, namespace="default", resource_version=listed.resource_version
            ) as watch:
                with pytest.raises(errors.Expired):
                    await anext(aiter(watch))


# Subresources of built-ins


async def test_status_scale_and_eviction(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        made = await client.create(web(), namespace=namespace)
        made.status.replicas = 2
        made.spec.replicas = 9
        updated = await client.update_status(made)
        assert (updated.status.replicas, updated.spec.replicas) == (2, 2), "the status and nothing else"

        scale = await client.get_scale(Deployment, "web", namespace=namespace)
        assert (scale.replicas, scale.current_replicas, scale.selector) == (2, 2, "app=web")
        assert (await client.scale(Deployment, "web", 4, namespace=namespace)).replicas == 4
        with pytest.raises(errors.Conflict):
            await client.scale(
                Deployment, "web", 5, namespace=namespace, resource_version=scale.resource_version
            )

        pod = Pod(
            metadata=ObjectMeta(name="p", labels={"app": "p"}),
            spec=PodSpec(containers=[Container(name="c", image="i")]),
        )
        await client.create(pod, namespace=namespace)
        await client.evict("p", namespace=namespace)
        assert await ignore_not_found(client.get(Pod, "p", namespace=namespace)) is None


async def test_a_service_account_is_given_a_token(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await client.create(ServiceAccount(metadata=ObjectMeta(name="robot")), namespace=namespace)
        token = await client.create_token("robot", namespace=namespace, seconds=600)
        claims = json.loads(base64.urlsafe_b64decode(token.value.split(".")[1] + "=="))
        assert claims["sub"] == f"system:serviceaccount:{namespace}:robot"
        with pytest.raises(errors.Invalid):
            await client.create_token("robot", namespace=namespace, seconds=1)


async def test_a_full_disruption_budget_is_too_many_requests(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        labels = {"app": "p"}
        pod = await client.create(
            Pod(
                metadata=ObjectMeta(name="p", labels=labels),
                spec=PodSpec(containers=[Container(name="c", image="i")]),
            ),
            namespace=namespace,
        )
        pod.status.phase = "Running"
        await client.update_status(pod)
        await client.create(
            PodDisruptionBudget(
                metadata=ObjectMeta(name="b"),
                spec=PodDisruptionBudgetSpec(min_available=1, selector=LabelSelector(match_labels=labels)),
            ),
            namespace=namespace,
        )
        with pytest.raises(errors.TooManyRequests, match="disruption budget"):
            await client.evict("p", namespace=namespace, timeout=5)


# A kind of our own


async def test_every_verb_on_a_kind_of_our_own(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await install_shelves(client)
        shelf = await client.create(Shelf(metadata=ObjectMeta(name="s")), namespace=namespace)
        assert shelf.spec.size == 1
        with pytest.raises(errors.Invalid) as raised:
            await client.create(
                Shelf(metadata=ObjectMeta(name="t"), spec=ShelfSpec(size=-1)), namespace=namespace
            )
        assert raised.value.causes[0].field == "spec.size"

        shelf.spec.size = 3
        shelf = await client.update(shelf)
        shelf.status.books = 2
        shelf = await client.update_status(shelf)
        assert (shelf.spec.size, shelf.status.books, shelf.metadata.generation) == (3, 2, 2)
        assert (await client.scale(Shelf, "s", 5, namespace=namespace)).replicas == 5

        patched = await client.patch(Shelf, "s", MergePatch({"spec": {"colour": "red"}}), namespace=namespace)
        assert patched.spec.colour == "red"
        patched = await client.patch(
            Shelf, "s", JsonPatch([{"op": "remove", "path": "/spec/colour"}]), namespace=namespace
        )
        assert patched.spec.colour is None
        with pytest.raises(errors.UnsupportedMediaType):
            await client.patch(Shelf, "s", StrategicPatch({}), namespace=namespace)

        wish = Shelf(metadata=ObjectMeta(name="s"), spec=ShelfSpec(size=7))
        with pytest.raises(errors.ApplyConflict):
            await client.apply(wish, namespace=namespace, field_manager="two")
        applied = await client.apply(wish, namespace=namespace, field_manager="two", force=True)
        assert applied.spec.size == 7

        listed = await client.list(Shelf, namespace=namespace)
        assert [one.metadata.name for one in listed] == ["s"]
        assert len(await client.list(metadata_only(Shelf), namespace=namespace)) == 1
        assert (await client.get(untyped("library.setpoint.dev/v1", "Shelf"), "s", namespace=namespace))[
            "spec"
        ]["size"] == 7
        async with client.watch(
            Shelf, namespace=namespace, resource_version=listed.resource_version
        ) as watch:
            await client.delete(Shelf, "s", namespace=namespace)
            assert (await anext(aiter(watch))).type == "DELETED"
        await client.create(Shelf(metadata=ObjectMeta(name="u")), namespace=namespace)
        await client.delete_collection(Shelf, namespace=namespace)
        assert await client.list(Shelf, namespace=namespace) == []


async def test_a_kind_installed_after_discovery_is_found(kube: ControlPlane) -> None:
    async with connected(kube) as (client, _):
        with pytest.raises(errors.UnknownKind):
            await client.list(untyped("late.setpoint.dev/v1", "Late"))

        class Late(CustomResource, group="late.setpoint.dev", version="v1"):
            pass

        with pytest.raises(errors.KindNotServed, match="CustomResourceDefinition installed"):
            await client.list(Late)
        await client.create(crd_of(Late))

        async def found() -> Any:
            try:
                return await client.list(untyped("late.setpoint.dev/v1", "Late"))
            except errors.UnknownKind as error:
                raise errors.KindNotServed("", "") from error

        assert await eventually(found) == []


async def test_unknown_fields_survive_an_update(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await client.create(web(), namespace=namespace)
        before = await client.get(untyped("apps/v1", "Deployment"), "web", namespace=namespace)
        old = await client.get(OldDeployment, "web", namespace=namespace)
        old.spec.replicas = 3
        await client.update(old)
        after = await client.get(untyped("apps/v1", "Deployment"), "web", namespace=namespace)
        assert after["spec"] == before["spec"] | {"replicas": 3}


# Who we are


async def test_impersonation_is_who_the_server_sees(kube: ControlPlane) -> None:
    jane = Impersonation("jane", groups=("a", "b"))
    config = replace(Config.from_kubeconfig(kube.kubeconfig), impersonate=jane)
    async with Client(config) as client:
        with pytest.raises(errors.Forbidden, match='User "jane" cannot list resource "configmaps"'):
            await client.list(ConfigMap, namespace="default")
        review = await client.create({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        assert review["status"]["userInfo"]["groups"] == ["a", "b", "system:authenticated"]


async def test_a_rotated_token_is_read_anew(new_plane: NewPlane, tmp_path: Path) -> None:
    users = tmp_path / "tokens.csv"
    users.write_text("first,one,1\nsecond,two,2\n")
    with new_plane(api_server_args=(f"--token-auth-file={users}",)) as own:
        async with Client(Config.from_kubeconfig(own.kubeconfig)) as admin:
            await allow_reading(admin, "one", "two")
        token = tmp_path / "token"
        token.write_text("first")
        config = with_user(own, {"tokenFile": str(token)})
        async with Client(config) as client:
            assert await whoami(client) == "one"
            token.write_text("rotten")
            with pytest.raises(errors.Unauthorized):
                await until_changed(client, "one")
            token.write_text("second")
            assert await until_changed(client, "one") == "two"


async def test_an_exec_plugin_is_asked_anew_after_a_401(new_plane: NewPlane, tmp_path: Path) -> None:
    users = tmp_path / "tokens.csv"
    users.write_text("second,two,2\n")
    counter = tmp_path / "asked"
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"""#!{sys.executable}
import json, pathlib
asked = pathlib.Path({str(counter)!r})
asked.write_text((asked.read_text() if asked.exists() else "") + ".")
token = "stale" if asked.read_text() == "." else "second"
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                   "status": {{"token": token}}}}))
"""
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    with new_plane(api_server_args=(f"--token-auth-file={users}",)) as own:
        async with Client(Config.from_kubeconfig(own.kubeconfig)) as admin:
            await allow_reading(admin, "two")
        entry = {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": str(plugin),
                "interactiveMode": "Never",
            }
        }
        async with Client(with_user(own, entry)) as client:
            assert await whoami(client) == "two"
            assert await whoami(client) == "two"
        assert counter.read_text() == "..", "once at first, once after the 401"


def with_user(kube: ControlPlane, user: dict[str, Any]) -> Config:
    ca = base64.b64encode(kube.ca_pem if isinstance(kube.ca_pem, bytes) else kube.ca_pem.encode()).decode()
    text = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": kube.url, "certificate-authority-data": ca}}],
            "users": [{"name": "c", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
    )
    return Config.from_kubeconfig(text)


async def allow_reading(admin: Client, *users: str) -> None:
    subjects = [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"} for user in users]
    await admin.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"readers-{secrets.token_hex(4)}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": subjects,
        }
    )


async def whoami(client: Client) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await eventually(lambda: client.create(review))
    name: str = answer["status"]["userInfo"]["username"]
    return name


async def until_changed(client: Client, name: str) -> str:
    async with asyncio.timeout(45):
        while (seen := await whoami(client)) == name:
            await asyncio.sleep(0.1)
    return seen


# Bad names and unknown kinds


async def test_a_secret_is_read_and_never_shown(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        with pytest.raises(errors.Invalid) as raised:
            await client.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": "s", "namespace": namespace},
                    "type": "kubernetes.io/tls",
                    "stringData": {"tls.crt!": "canary"},
                }
            )
        assert "canary" not in str(raised.value)
        made = await client.create(
            Secret(metadata=ObjectMeta(name="s"), data={"k": b"canary"}), namespace=namespace
        )
        assert made.data == {"k": b"canary"}
