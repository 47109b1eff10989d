"""The promises of ``cache/cache.py`` and ``cache/declaration.py``, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from setpoint import errors
from setpoint.api.forms import metadata_only, untyped
from setpoint.api.meta import PartialObjectMetadata
from setpoint.api.model import as_read
from setpoint.api.names import Key
from setpoint.cache.cache import Cache
from setpoint.cache.store import Seen
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.kube.core.v1 import Namespace, Secret
from setpoint.net.transport import Request, Response
from tests.cache.objects import Thing
from tests.cache.server import Server
from tests.cache.wire import until
from tests.peer import Peer, Reply, status

pytestmark = pytest.mark.virtual_time

PLAIN = untyped("demo.setpoint.dev/v1", "Thing")


def made(server: Server, **options: Any) -> Cache:
    return Cache(Client(Config(server="http://localhost", namespace="shop"), transport=server), **options)


@asynccontextmanager
async def caching(server: Server, **declared: Any) -> AsyncIterator[Cache]:
    """A cache that holds Things, synced."""
    async with made(server) as cache:
        cache.declare(Thing, **declared)
        await cache.wait_synced()
        yield cache


def names(things: list[Thing]) -> list[str]:
    return [f"{each.metadata.namespace}/{each.metadata.name}" for each in things]


# Reading


async def test_objects_are_read_without_asking_the_server() -> None:
    server = Server()
    server.put("a", spec={"node": "n1"})
    server.put("b", namespace="lab")
    async with caching(server) as cache:
        asked = len(server.requests)
        assert (await cache.get(Thing, "a")).spec.node == "n1"
        assert (await cache.get(Thing, "b", namespace="lab")).metadata.namespace == "lab"
        assert names(await cache.list(Thing)) == ["lab/b", "shop/a"]
        assert names(await cache.list(Thing, namespace="shop")) == ["shop/a"]
        with pytest.raises(errors.NotFound, match=r'get demo.setpoint.dev/v1 Thing shop/x: .*"x" not found'):
            await cache.get(Thing, "x")
        assert len(server.requests) == asked


async def test_changing_what_was_read_never_changes_the_cache() -> None:
    server = Server()
    server.put("a", spec={"node": "n1", "images": ["x"]}, labels={"app": "web"})
    async with caching(server) as cache:
        read = await cache.get(Thing, "a")
        read.spec.node = "n2"
        (read.spec.images or []).append("y")
        (read.metadata.labels or {}).clear()
        again = await cache.get(Thing, "a")
        assert (again.spec.node, again.spec.images, again.metadata.labels) == ("n1", ["x"], {"app": "web"})
        (listed,) = await cache.list(Thing)
        assert listed is not again
        assert listed == again


async def test_all_forms_of_a_kind_are_read_from_the_one_copy() -> None:
    server = Server()
    server.put("a", spec={"node": "n1", "unknown": 1})
    async with made(server) as cache:
        cache.declare(Thing)
        cache.declare(metadata_only(Thing))
        await cache.wait_synced()
        assert len(server.requests) == 1
        plain = await cache.get(_with_resource(), "a")
        assert plain["spec"] == {"node": "n1", "unknown": 1}
        partial = await cache.get(metadata_only(Thing), "a")
        assert isinstance(partial, PartialObjectMetadata)
        assert (partial.kind, partial.api_version) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        typed = await cache.get(Thing, "a")
        assert b"unknown" in (as_read(typed) or b""), "and an update loses nothing"
        assert len(server.requests) == 1


def _with_resource() -> Any:
    form = untyped("demo.setpoint.dev/v1", "Thing")
    form.resource = Thing.resource
    return form


async def test_lists_choose_by_labels_fields_owner_and_index() -> None:
    server = Server()
    owner = [{"apiVersion": "v1", "kind": "Thing", "name": "o", "uid": "u1"}]
    server.put("a", spec={"node": "n1"}, labels={"app": "web"})
    server.put("b", spec={"node": "n2"}, labels={"app": "web"}, ownerReferences=owner)
    server.put("c", spec={"node": "n1"}, namespace="lab")
    async with caching(server, indexes=["spec.node"]) as cache:
        assert names(await cache.list(Thing, labels="app=web")) == ["shop/a", "shop/b"]
        assert names(await cache.list(Thing, labels={"app": "web"}, fields="spec.node=n1")) == ["shop/a"]
        assert names(await cache.list(Thing, owner="u1")) == ["shop/b"]
        assert names(await cache.list(Thing, index={"spec.node": "n1"})) == ["lab/c", "shop/a"]
        with pytest.raises(ValueError, match="no index 'x'"):
            await cache.list(Thing, index={"x": "1"})


async def test_an_index_by_function_gets_typed_objects() -> None:
    def images(obj: Thing) -> list[str]:
        return obj.spec.images or []

    server = Server()
    server.put("a", spec={"images": ["x", "y"]})
    async with caching(server, indexes={"image": images}) as cache:
        assert names(await cache.list(Thing, index={"image": "y"})) == ["shop/a"]
        server.put("b", spec={"images": ["y"]})
        await until(lambda: cache.peek(Thing, Key("shop", "b")) is not None)
        assert names(await cache.list(Thing, index={"image": "y"})) == ["shop/a", "shop/b"]
        cache.declare(Thing, indexes={"image": images})
        with pytest.raises(ValueError, match="another definition"):
            cache.declare(Thing, indexes={"image": lambda _: []})


async def test_an_index_of_one_declaration_is_there_for_all_of_the_kind() -> None:
    server = Server()
    server.put("a", spec={"node": "n1"})
    async with caching(server) as cache:
        cache.declare(Thing, namespaces=["shop"], indexes=["spec.node"])
        await cache.wait_synced()
        assert names(await cache.list(Thing, index={"spec.node": "n1"})) == ["shop/a"]


@pytest.mark.parametrize("wrong", ["spec.node", ["a b"]])
async def test_an_index_that_is_none_is_refused_when_declared(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"indexes=|no path"):
        made(Server()).declare(Thing, indexes=wrong)


async def test_a_read_waits_until_the_copy_is_whole() -> None:
    server = Server()
    server.put("a")
    async with made(server) as cache:
        cache.declare(Thing)
        assert names(await cache.list(Thing)) == ["shop/a"]


async def test_a_read_of_what_never_comes_ends_with_the_reason() -> None:
    server = Server()
    server.refuse = lambda _: status(403, "Forbidden", "you may not")
    async with made(server, sync_timeout=10) as cache:
        cache.declare(Thing)
        with pytest.raises(
            errors.NotSynced, match=r"Thing: .*you may not; add to the rules of a ClusterRole: .*things"
        ):
            await cache.get(Thing, "a")


async def test_a_cache_that_is_left_cannot_be_read() -> None:
    async with caching(Server()) as cache:
        pass
    for use in (lambda: cache.get(Thing, "a"), lambda: cache.list(Thing)):
        with pytest.raises(RuntimeError, match="closed"):
            await use()
    with pytest.raises(RuntimeError, match="closed"):
        cache.declare(Thing)
    with pytest.raises(RuntimeError, match="once"):
        await cache.__aenter__()


# What is not declared


async def test_what_is_not_declared_is_read_live_and_starts_no_watch() -> None:
    server = Server()
    server.put("a", spec={"node": "n1"}, labels={"app": "web"})
    server.put("b", spec={"node": "n2"})
    async with made(server) as cache:
        assert (await cache.get(Thing, "a")).spec.node == "n1"
        assert names(await cache.list(Thing, labels="app=web")) == ["shop/a"]
        assert names(await cache.list(Thing, fields="spec.node=n2")) == ["shop/b"]
        assert names(await cache.list(Thing, owner="u1")) == []
        with pytest.raises(errors.NotFound):
            await cache.get(Thing, "x")
        with pytest.raises(ValueError, match=r"no index 'spec.node'"):
            await cache.list(Thing, index={"spec.node": "n1"})
        assert server.watches == []


async def test_metadata_of_what_is_selected_by_fields_are_asked_for_with_the_fields() -> None:
    """Else the server's answer would not show that it is among what is declared."""
    server, accepted = Server(), list[str]()
    server.put("a", spec={"node": "n1"})

    async def seen(request: Request) -> Response:
        accepted.append(request.headers["Accept"])
        return await server(request)

    async with Cache(Client(Config(server="http://localhost", namespace="shop"), transport=seen)) as cache:
        cache.declare(Thing, fields={"spec.node": "n1"})
        await cache.wait_synced()
        found = await cache.get_live(metadata_only(Thing), Key("shop", "a"))
        assert found.metadata.name == "a"
        assert "PartialObjectMetadata" not in accepted[-1]


async def test_or_it_is_an_error_that_says_how_to_declare_it() -> None:
    async with made(Server(), undeclared="error") as cache:
        with pytest.raises(errors.NotDeclared, match=r"cache.declare\(Thing, namespaces=\['shop'\]\)"):
            await cache.get(Thing, "a")
        with pytest.raises(errors.NotDeclared, match=r"cache.declare\(Thing\)"):
            await cache.list(Thing)


async def test_another_namespace_than_those_declared_is_not_declared() -> None:
    server = Server()
    server.put("a", namespace="lab")
    async with caching(server, namespaces=["shop"]) as cache:
        asked = len(server.requests)
        assert (await cache.get(Thing, "a", namespace="lab")).metadata.name == "a"
        assert len(server.requests) == asked + 1
        assert names(await cache.list(Thing)) == [], "without a namespace: those that are declared"


async def test_secrets_are_held_without_their_data_which_is_read_live() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "shop", "resourceVersion": "5", "uid": "u"},
        "data": {"password": "eA=="},
    }
    partial = {**secret, "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    del partial["data"]

    def answer(request: Request) -> Reply:
        if "watch=true" in request.target:
            return status(422)
        if request.target.split("?")[0].endswith("/s"):
            return Reply(200, secret)
        is_partial = "as=PartialObjectMetadataList" in request.headers["Accept"]
        items = [partial if is_partial else secret]
        return Reply(200, {"metadata": {"resourceVersion": "9"}, "items": items})

    peer = Peer(answer)
    async with Cache(Client(transport=peer), undeclared="error") as cache:
        declaration = cache.declare(Secret, indexes={"name": lambda obj: [obj.metadata.name or ""]})
        await declaration.wait_synced()
        asked = len(peer.requests)
        assert (await cache.get(metadata_only(Secret), "s", namespace="shop")).metadata.uid == "u"
        assert len(await cache.list(metadata_only(Secret), index={"name": "s"})) == 1
        with pytest.raises(ValueError, match="only metadata is held"):
            await cache.list(metadata_only(Secret), fields="type=x")
        live = [request for request in peer.requests[asked:] if "watch" not in request.target]
        assert live == []
        assert (await cache.get(Secret, "s", namespace="shop")).data == {"password": b"x"}
        assert [each.data for each in await cache.list(Secret)] == [{"password": b"x"}]
        held = cache.peek(metadata_only(Secret), Key("shop", "s"))
        assert held is not None
        assert b"password" not in held.data


# Declaring


async def test_what_several_declare_alike_is_watched_once_until_the_last_lets_go() -> None:
    server = Server()
    async with made(server) as cache:
        first, second = cache.declare(Thing), cache.declare(PLAIN)
        await cache.wait_synced()
        assert server.watches == [""]
        first.close()
        first.close()
        await asyncio.sleep(1)
        assert server.watches == [""]
        second.close()
        await until(lambda: server.watches == [])
        again = cache.declare(Thing)
        await again.wait_synced()
        assert server.watches == [""]


async def test_namespaces_come_and_go_while_running() -> None:
    server, heard = Server(), list[Seen]()
    server.put("a", namespace="shop")
    server.put("b", namespace="lab")
    async with made(server) as cache:
        declaration = cache.declare(Thing, namespaces=["shop"])
        declaration.listen(heard.append)
        await declaration.wait_synced()
        assert names(await cache.list(Thing)) == ["shop/a"]
        declaration.add_namespace("lab")
        declaration.add_namespace("lab")
        await declaration.wait_synced()
        assert names(await cache.list(Thing)) == ["lab/b", "shop/a"]
        assert sorted(server.watches) == ["lab", "shop"]
        assert declaration.namespaces == frozenset({"lab", "shop"})
        declaration.remove_namespace("shop")
        declaration.remove_namespace("never")
        await until(lambda: server.watches == ["lab"])
        assert names(await cache.list(Thing)) == ["lab/b"]
        server.put("a", namespace="shop")
        server.put("c", namespace="lab")
        await until(lambda: len(heard) == 3)
        assert [(each.type, str(each.key)) for each in heard] == [
            ("ADDED", "shop/a"),
            ("ADDED", "lab/b"),
            ("ADDED", "lab/c"),
        ]


async def test_a_namespace_that_several_declare_is_watched_until_the_last_lets_go() -> None:
    server = Server()
    async with made(server) as cache:
        first = cache.declare(Thing, namespaces=["shop", "lab"])
        second = cache.declare(Thing, namespaces=["shop"])
        await cache.wait_synced()
        first.close()
        await until(lambda: server.watches == ["shop"])
        second.remove_namespace("shop")
        await until(lambda: server.watches == [])


async def test_kinds_are_declared_before_and_while_it_runs() -> None:
    server = Server()
    server.put("a")
    cache = made(server)
    cache.declare(Thing, namespaces=["shop"])
    assert server.requests == []
    async with cache:
        await cache.wait_synced()
        declaration = cache.declare(Thing, labels="app=web")
        await declaration.wait_synced()
        assert len(server.watches) == 2


async def test_other_selectors_are_other_watches_and_reads_see_what_any_of_them_brings() -> None:
    server = Server()
    server.put("a", labels={"app": "web"})
    server.put("b", labels={"app": "db"})
    server.put("c", labels={"app": "cache"})
    async with made(server) as cache:
        web, db = cache.declare(Thing, labels="app=web"), cache.declare(Thing, labels="app in (db,web)")
        await cache.wait_synced()
        assert names(await cache.list(Thing)) == ["shop/a", "shop/b"]
        assert (await cache.get(Thing, "a")).metadata.name == "a"
        with pytest.raises(errors.NotFound):
            await cache.get(Thing, "c")
        db.close()
        assert names(await cache.list(Thing)) == ["shop/a"]
        everything = cache.declare(Thing)
        await everything.wait_synced()
        assert len(await cache.list(Thing)) == 3
        assert web.is_synced


async def test_a_listener_can_end() -> None:
    server, heard = Server(), list[Seen]()
    async with made(server) as cache:
        declaration = cache.declare(Thing)
        end = declaration.listen(heard.append)
        await declaration.wait_synced()
        end()
        end()
        server.put("a")
        await until(lambda: cache.peek(Thing, Key("shop", "a")) is not None)
        assert heard == []


async def test_a_cache_can_have_namespaces_of_its_own() -> None:
    server = Server()
    server.put("a", namespace="shop")
    server.put("b", namespace="lab")
    async with made(server, namespaces=["lab"]) as cache:
        of_the_caches_own = cache.declare(Thing)
        cache.declare(Thing, namespaces=["shop"])
        await of_the_caches_own.wait_synced()
        assert of_the_caches_own.namespaces == frozenset({"lab"})
        assert cache.declare(Namespace).namespaces is None
        assert names(await cache.list(Thing)) == ["lab/b", "shop/a"]


@pytest.mark.parametrize("namespaces", [[""], "shop"])
def test_namespaces_that_are_none_are_refused(namespaces: Any) -> None:
    with pytest.raises(ValueError, match="namespaces="):
        made(Server()).declare(Thing, namespaces=namespaces)


def test_a_kind_that_is_in_no_namespace_is_declared_without() -> None:
    with pytest.raises(ValueError, match="belongs to no namespace"):
        made(Server()).declare(Namespace, namespaces=["shop"])


def test_one_namespace_more_than_all_is_refused() -> None:
    declaration = made(Server()).declare(Thing)
    assert declaration.namespaces is None
    with pytest.raises(ValueError, match="cannot have"):
        declaration.add_namespace("shop")
    assert repr(declaration) == "<Declaration demo.setpoint.dev/v1 Thing: all namespaces>"


# Syncing and running


async def test_what_is_not_synced_in_time_is_named_with_its_reason() -> None:
    server = Server()
    server.refuse = lambda request: (
        status(403, "Forbidden", "you may not") if "/namespaces/lab/" in request.target else None
    )
    async with made(server) as cache:
        declaration = cache.declare(Thing, namespaces=["shop", "lab"])
        with pytest.raises(errors.NotSynced) as caught:
            await cache.wait_synced(timeout=5)
        said = str(caught.value)
        assert "after 5 s still missing: demo.setpoint.dev/v1 Thing in namespace lab: watch" in said
        assert "Role in namespace lab" in said
        assert "namespace shop" not in said
        (problem,) = declaration.problems
        assert isinstance(problem.error, errors.Forbidden)
        server.refuse = lambda _: None
        await declaration.wait_synced()
        assert declaration.problems == ()


async def test_a_cache_that_was_not_started_says_so() -> None:
    cache = made(Server())
    declaration = cache.declare(Thing)
    with pytest.raises(errors.NotSynced, match="the cache is not running"):
        await declaration.wait_synced(timeout=5)


async def test_one_watch_that_cannot_run_holds_back_no_other() -> None:
    server = Server()
    server.put("a")
    server.refuse = lambda request: status(403, "Forbidden") if "/namespaces/lab/" in request.target else None
    async with made(server) as cache:
        shop = cache.declare(Thing, namespaces=["shop"])
        cache.declare(Thing, namespaces=["lab"])
        await shop.wait_synced()
        assert (await cache.get(Thing, "a", namespace="shop")).metadata.name == "a"


async def test_leaving_the_block_ends_every_watch() -> None:
    server = Server()
    async with caching(server, namespaces=["shop", "lab"]) as cache:
        assert sorted(server.watches) == ["lab", "shop"]
        assert [stats.objects for stats in cache.stats()] == [0, 0]
        assert repr(cache) == "<Cache of http://localhost: 2 watches>"
    assert server.watches == []


async def test_an_error_in_the_block_leaves_as_it_is() -> None:
    server = Server()
    with pytest.raises(KeyError, match="mine"):
        async with caching(server):
            raise KeyError("mine")
    assert server.watches == []


async def test_it_can_run_as_a_task_and_be_cancelled() -> None:
    server = Server()
    cache = made(server)
    cache.declare(Thing)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(cache.run())
        await cache.wait_synced()
        task.cancel()
    assert server.watches == []


async def test_a_broken_promise_of_ours_ends_the_block_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    from setpoint.cache import reflector

    def broken(*_: Any) -> Any:
        raise AssertionError("a bug")

    monkeypatch.setattr(reflector, "advance", broken)
    cache = made(Server())
    cache.declare(Thing)
    with pytest.raises(BaseExceptionGroup) as caught:
        await cache.run()
    assert caught.group_contains(AssertionError, match="a bug")


async def test_what_is_let_go_and_declared_again_while_keeping_is_never_listed_again() -> None:
    server = Server()
    server.put("a", spec={"node": "n1"})
    async with made(server) as cache:
        former = cache.declare(Thing, indexes={"node": lambda thing: [thing.spec.node]})
        other = cache.declare(Secret)
        await former.wait_synced()
        asked = len(server.requests)
        with cache.keeping():
            former.close()
            other.close()
            declared = cache.declare(Thing, indexes={"node": lambda thing: [thing.spec.node + "!"]})
            assert declared.is_synced
        assert len(server.requests) == asked
        assert names(await cache.list(Thing, index={"node": "n1!"})) == ["shop/a"], "an index may be new"
        assert [each.scope.gvk.kind for each in cache.stats()] == ["Thing"], "what nobody needs is let go"
        declared.close()
        assert cache.stats() == []
