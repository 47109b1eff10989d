"""The verbs of ``client/client.py``, and what ``client/sender.py`` does for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from setpoint import errors
from setpoint.api.forms import metadata_only, untyped
from setpoint.api.meta import ObjectMeta, PartialObjectMetadata
from setpoint.api.model import Model, Object
from setpoint.api.names import Key
from setpoint.api.patches import JsonPatch, MergePatch, StrategicPatch
from setpoint.api.requests import Call
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.client.sender import Answer, Nobody, Sender
from setpoint.net import listen
from setpoint.net.transport import Request
from tests.peer import FOREVER, Peer, Reply, status


class ThingSpec(Model):
    size: int = 0


class Thing(Object, group="demo.setpoint.dev", version="v1", plural="things"):
    spec: ThingSpec = ThingSpec()


class Planet(Object, group="demo.setpoint.dev", version="v1", plural="planets", namespaced=False):
    pass


class Secret(Object, group="", version="v1", plural="secrets"):
    pass


def thing(name: str = "a", version: str = "1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "demo.setpoint.dev/v1",
        "kind": "Thing",
        "metadata": {"name": name, "namespace": "default", "resourceVersion": version},
        "spec": spec,
    }


ROOT = "/apis/demo.setpoint.dev/v1"
DISCOVERY = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {"name": "demo.setpoint.dev"},
            "versions": [
                {"version": "v1", "resources": [{"resource": "things", "responseKind": {"kind": "Thing"}}]},
            ],
        }
    ],
}


def answering(*replies: Any) -> Peer:
    return Peer(
        [reply if isinstance(reply, Reply | errors.SetpointError) else Reply(200, reply) for reply in replies]
    )


# Reading


async def test_get_reads_an_object_in_the_form_it_is_asked_in() -> None:
    discovery = Reply(200, DISCOVERY)
    peer = answering(thing(size=3), discovery, discovery, thing(size=3), thing())
    client = Client(transport=peer)

    typed = await client.get(Thing, "a")
    assert isinstance(typed, Thing)
    assert typed.spec.size == 3

    plain = await client.get(untyped("demo.setpoint.dev/v1", "Thing"), "a")
    assert plain["spec"] == {"size": 3}

    peer.answer = lambda _: Reply(
        200, {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}}
    )
    partial = await client.get(metadata_only(Thing), "a")
    assert isinstance(partial, PartialObjectMetadata)
    assert "as=PartialObjectMetadata;" in peer.requests[-1].headers["Accept"]


async def test_an_object_is_looked_for_in_the_namespace_given_or_the_contexts() -> None:
    peer = Peer(lambda _: Reply(200, thing()))
    client = Client(transport=peer)
    await client.get(Thing, "a")
    assert peer.path() == f"{ROOT}/namespaces/default/things/a"
    await client.get(Thing, "a", namespace="shop", subresource="status", resource_version="0")
    assert peer.path() == f"{ROOT}/namespaces/shop/things/a/status"
    assert peer.query() == {"resourceVersion": "0"}


async def test_a_kind_without_namespaces_refuses_one() -> None:
    peer = Peer(
        lambda _: Reply(
            200, {"apiVersion": "demo.setpoint.dev/v1", "kind": "Planet", "metadata": {"name": "x"}}
        )
    )
    client = Client(transport=peer)
    await client.get(Planet, "x")
    assert peer.path() == f"{ROOT}/planets/x"
    for refused in (
        client.get(Planet, "x", namespace="shop"),
        client.delete_collection(Planet, namespace="shop"),
    ):
        with pytest.raises(ValueError, match="belongs to no namespace"):
            await refused


async def test_an_empty_name_never_becomes_a_request_for_the_collection() -> None:
    client = Client(transport=Peer([]))
    for asked in (client.get(Thing, ""), client.delete(Thing, ""), client.patch(Thing, "", MergePatch({}))):
        with pytest.raises(ValueError, match="its name is empty"):
            await asked


async def test_what_is_no_kind_is_refused_with_advice() -> None:
    client = Client(transport=Peer([]))
    for kind in (ThingSpec, int, Object):
        with pytest.raises(TypeError, match=r"untyped|names a kind"):
            await client.get(kind, "a")


async def test_ignore_not_found_gives_none_for_a_missing_object_and_nothing_else() -> None:
    missing = status(404, "NotFound", details={"name": "a"})
    client = Client(transport=answering(missing, thing(), Reply(404, b"404 page not found")))
    assert await ignore_not_found(client.get(Thing, "a")) is None
    assert await ignore_not_found(client.get(Thing, "a")) is not None
    with pytest.raises(errors.KindNotServed):
        await ignore_not_found(client.get(Thing, "a"))


# Writing


async def test_create_posts_to_the_collection_and_gives_what_the_server_made_of_it() -> None:
    peer = answering(Reply(201, thing(version="7", size=1)))
    made = await Client(transport=peer).create(Thing(metadata=ObjectMeta(name="a")), namespace="shop")
    assert made.metadata.resource_version == "7"
    request = peer.requests[0]
    assert (request.method, peer.path()) == ("POST", f"{ROOT}/namespaces/shop/things")
    assert peer.sent()["spec"] == {"size": 0}, "written even where it equals its default"
    assert peer.query() == {"fieldManager": "setpoint"}


async def test_every_write_takes_dry_run_field_manager_and_field_validation() -> None:
    peer = Peer(lambda _: Reply(200, thing()))
    client = Client(transport=peer)
    given = Thing(metadata=ObjectMeta(name="a"))
    await client.create(given, dry_run=True, field_manager="me", field_validation="Strict")
    await client.update(given, dry_run=True, field_manager="me", field_validation="Strict")
    await client.apply(given, dry_run=True, field_manager="me", field_validation="Strict")
    await client.patch(
        Thing, "a", MergePatch({}), dry_run=True, field_manager="me", field_validation="Strict"
    )
    for index in range(4):
        assert peer.query(index) == {"dryRun": "All", "fieldManager": "me", "fieldValidation": "Strict"}


async def test_update_sends_what_the_class_does_not_know_along() -> None:
    unknown = thing(size=1) | {"future": {"x": 1}}
    peer = answering(unknown, thing(size=2))
    client = Client(transport=peer)
    read = await client.get(Thing, "a")
    read.spec.size = 2
    await client.update(read)
    assert peer.requests[1].method == "PUT"
    assert peer.sent()["future"] == {"x": 1}
    assert peer.sent()["spec"] == {"size": 2}


async def test_update_status_changes_the_status_subresource() -> None:
    peer = answering(thing())
    await Client(transport=peer).update_status(Thing(metadata=ObjectMeta(name="a")))
    assert peer.path() == f"{ROOT}/namespaces/default/things/a/status"


async def test_writes_take_plain_dicts() -> None:
    peer = Peer(
        lambda request: Reply(200, DISCOVERY if request.target in {"/api", "/apis"} else thing(size=5))
    )
    client = Client(transport=peer)
    for write in (client.create, client.update, client.apply):
        assert (await write(thing(size=5)))["spec"] == {"size": 5}
        assert peer.sent()["spec"] == {"size": 5}
    with pytest.raises(ValueError, match="apiVersion"):
        await client.create({"metadata": {"name": "a"}})


async def test_an_object_and_a_namespace_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="which one is meant"):
        await Client(transport=Peer([])).create(
            Thing(metadata=ObjectMeta(name="a", namespace="x")), namespace="y"
        )


async def test_apply_sends_the_wish_with_its_manager_and_force() -> None:
    peer = answering(thing())
    await Client(transport=peer).apply(Thing(metadata=ObjectMeta(name="a")), force=True)
    assert peer.requests[0].headers["Content-Type"] == "application/apply-patch+yaml"
    assert (peer.requests[0].method, peer.query()) == ("PATCH", {"fieldManager": "setpoint", "force": "true"})


async def test_an_intent_in_wire_form_is_applied_and_answered_in_the_form_that_is_asked_for() -> None:
    peer = answering(thing(size=5))
    applied = await Client(transport=peer).apply_intent(
        Thing, Key("x", "a"), {"spec": {"size": 5}}, force=True
    )
    assert isinstance(applied, Thing)
    assert (peer.requests[0].method, peer.sent()) == ("PATCH", {"spec": {"size": 5}})
    assert peer.requests[0].target.partition("?")[0].endswith("/namespaces/x/things/a")


async def test_apply_of_what_was_read_is_refused_since_it_would_claim_every_field() -> None:
    read = thing()
    read["metadata"]["managedFields"] = [{"manager": "m"}]
    client = Client(transport=answering(read))
    with pytest.raises(ValueError, match="would claim every field"):
        await client.apply(await client.get(Thing, "a"))
    with pytest.raises(ValueError, match="would claim every field"):
        await client.apply(read)


@pytest.mark.parametrize(
    ("patch", "content_type"),
    [
        (MergePatch({"spec": {"size": 1}}), "application/merge-patch+json"),
        (JsonPatch([{"op": "remove", "path": "/spec"}]), "application/json-patch+json"),
        (StrategicPatch({"spec": {"size": 1}}), "application/strategic-merge-patch+json"),
    ],
)
async def test_patch_takes_each_of_the_three_kinds(
    patch: JsonPatch | MergePatch | StrategicPatch, content_type: str
) -> None:
    peer = Peer(lambda _: Reply(200, thing()))
    client = Client(transport=peer)
    assert isinstance(await client.patch(Thing, "a", patch), Thing)
    assert peer.requests[0].headers["Content-Type"] == content_type
    assert isinstance(
        await client.patch(Thing(metadata=ObjectMeta(name="a")), patch, subresource="status"), Thing
    )
    assert peer.path().endswith("/things/a/status")


async def test_delete_says_how_and_which_one_is_meant() -> None:
    peer = Peer(lambda _: Reply(200, {"kind": "Status", "status": "Success"}))
    client = Client(transport=peer)
    await client.delete(Thing, "a")
    assert (peer.requests[0].method, peer.requests[0].body) == ("DELETE", None)
    await client.delete(
        Thing(metadata=ObjectMeta(name="b", namespace="shop")), propagation="Orphan", uid="u-1"
    )
    assert peer.path() == f"{ROOT}/namespaces/shop/things/b"
    assert peer.sent() == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": "u-1"},
    }


async def test_delete_collection_asks_for_a_namespace() -> None:
    peer = Peer(lambda _: Reply(200, {}))
    client = Client(transport=peer)
    with pytest.raises(ValueError, match="say in which namespace"):
        await client.delete_collection(Thing)
    await client.delete_collection(Thing, namespace="shop", labels={"app": "web"}, grace_period=0)
    assert peer.path() == f"{ROOT}/namespaces/shop/things"
    assert peer.query() == {"labelSelector": "app=web"}
    assert peer.sent()["gracePeriodSeconds"] == 0


# Subresources


async def test_scale_reads_and_asks_for_replicas() -> None:
    answer = {
        "kind": "Scale",
        "metadata": {"resourceVersion": "9"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=web"},
    }
    peer = Peer(lambda _: Reply(200, answer))
    client = Client(transport=peer)
    scale = await client.get_scale(Thing, "a")
    assert (scale.replicas, scale.current_replicas, scale.selector) == (3, 2, "app=web")
    await client.scale(Thing, "a", 3, resource_version="9")
    assert peer.path() == f"{ROOT}/namespaces/default/things/a/scale"
    assert peer.sent() == {"spec": {"replicas": 3}, "metadata": {"resourceVersion": "9"}}
    with pytest.raises(ValueError, match="from 0 on"):
        await client.scale(Thing, "a", -1)


async def test_evict_posts_an_eviction_and_a_full_budget_is_too_many_requests() -> None:
    peer = answering(Reply(201, {}), status(429, "TooManyRequests", "budget"))
    client = Client(transport=peer)
    await client.evict("web-1", namespace="shop", grace_period=5)
    assert peer.path() == "/api/v1/namespaces/shop/pods/web-1/eviction"
    assert peer.sent()["deleteOptions"]["gracePeriodSeconds"] == 5
    with pytest.raises(errors.TooManyRequests, match="create v1 Pod/eviction shop/web-1: budget"):
        await client.evict("web-1", namespace="shop")


async def test_a_token_is_given_and_not_shown() -> None:
    answer = {"status": {"token": "canary", "expirationTimestamp": "2026-01-01T00:00:00Z"}}
    peer = answering(Reply(201, answer), Reply(201, {"status": {"token": 5, "x": "canary"}}))
    client = Client(transport=peer)
    token = await client.create_token("builder", audiences=["a"], seconds=600)
    assert token.value == "canary"
    assert "canary" not in repr(token)
    assert peer.sent()["spec"] == {"audiences": ["a"], "expirationSeconds": 600}
    with pytest.raises(errors.DecodeError) as raised:
        await client.create_token("builder")
    assert "canary" not in str(raised.value)


async def test_a_token_is_bound_to_an_object_in_either_form() -> None:
    answer = {"status": {"token": "t", "expirationTimestamp": "2026-01-01T00:00:00Z"}}
    peer = answering(Reply(201, answer), Reply(201, answer))
    client = Client(transport=peer)
    await client.create_token("builder", bound_to=Secret(metadata=ObjectMeta(name="s", uid="u")))
    secret = {"apiVersion": "v1", "kind": "Secret", "name": "s"}
    assert peer.sent()["spec"]["boundObjectRef"] == {**secret, "uid": "u"}
    plain = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    await client.create_token("builder", bound_to=plain)
    assert peer.sent()["spec"]["boundObjectRef"] == secret


# Failures


@pytest.mark.virtual_time
async def test_a_server_that_says_later_is_asked_again_then() -> None:
    later = status(429, "TooManyRequests", headers={"Retry-After": "2"})
    peer = answering(later, later, Reply(201, thing()))
    before = asyncio.get_running_loop().time()
    await Client(transport=peer).create(Thing(metadata=ObjectMeta(name="a")))
    assert asyncio.get_running_loop().time() - before >= 4
    assert len(peer.requests) == 3


@pytest.mark.virtual_time
async def test_a_create_whose_answer_was_lost_is_not_repeated_and_a_get_is() -> None:
    peer = answering(errors.AnswerLost("", "reset"), errors.AnswerLost("", "reset"), thing())
    client = Client(transport=peer)
    with pytest.raises(errors.AnswerLost, match=r"create demo.setpoint.dev/v1 Thing default/a: reset"):
        await client.create(Thing(metadata=ObjectMeta(name="a")))
    assert len(peer.requests) == 1
    await client.get(Thing, "a")
    assert len(peer.requests) == 3


@pytest.mark.virtual_time
async def test_no_retry_waits_past_the_callers_deadline() -> None:
    peer = Peer(lambda _: status(503, "ServiceUnavailable", headers={"Retry-After": "30"}))
    before = asyncio.get_running_loop().time()
    with pytest.raises(errors.ServiceUnavailable):
        await Client(transport=peer).get(Thing, "a", timeout=10)
    assert len(peer.requests) == 1
    assert asyncio.get_running_loop().time() - before < 1, "a wait that cannot help is not begun"


@pytest.mark.virtual_time
async def test_a_server_that_never_answers_ends_in_deadline_exceeded() -> None:
    peer = Peer(lambda _: Reply(200, [b"{", FOREVER]))
    with pytest.raises(errors.DeadlineExceeded, match=r"get .* Thing default/a: no answer within 5 s"):
        await Client(transport=peer).get(Thing, "a", timeout=5)


@pytest.mark.virtual_time
async def test_a_deadline_leaves_its_task_to_go_on() -> None:
    peer = Peer(lambda _: Reply(200, [FOREVER]))
    async with asyncio.timeout(60):
        with pytest.raises(errors.DeadlineExceeded):
            await Client(transport=peer).get(Thing, "a", timeout=5)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(5)


@pytest.mark.virtual_time
async def test_a_deadline_ends_with_its_request() -> None:
    await Client(transport=answering(thing())).get(Thing, "a", timeout=5)
    await asyncio.sleep(10)


@pytest.mark.virtual_time
async def test_a_deadline_of_the_callers_own_that_passes_first_is_the_callers() -> None:
    peer = Peer(lambda _: Reply(200, [FOREVER]))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await Client(transport=peer).get(Thing, "a", timeout=60)


@pytest.mark.virtual_time
async def test_who_is_cancelled_at_the_deadline_is_cancelled() -> None:
    peer = Peer(lambda _: Reply(200, [FOREVER]))
    loop = asyncio.get_running_loop()
    asking = asyncio.create_task(Client(transport=peer).get(Thing, "a", timeout=5))
    await asyncio.sleep(0)
    loop.call_at(loop.time() + 5, asking.cancel)  # in the same turn of the loop
    await asyncio.wait([asking])
    assert asking.cancelled()
    assert asking.cancelling() == 1, "the deadline takes back its own cancellation, and no other"


@pytest.mark.virtual_time
async def test_credentials_that_never_come_are_not_taken_for_a_silent_server() -> None:
    class Hanging(Nobody):
        async def headers(self) -> Mapping[str, str]:
            await asyncio.Event().wait()
            return {}

    peer = Peer([])
    call = Call("get", "GET", "/version", "get /version")
    with pytest.raises(errors.DeadlineExceeded, match=r"get /version: no credentials within 5 s.*plugin"):
        await Sender(peer, Hanging(), {}, 60).send(call, 5)
    assert peer.requests == []


async def test_a_path_that_could_name_another_server_is_refused() -> None:
    peer = Peer([])
    with pytest.raises(ValueError, match="begins with a slash"):
        await Client(transport=peer).fetch("@elsewhere.example/version")
    assert peer.requests == []


async def test_a_patch_that_does_not_say_its_kind_is_refused() -> None:
    unclear: Any = {"spec": {"size": 3}}
    with pytest.raises(TypeError, match="a dict does not say what kind of patch it is"):
        await Client(transport=Peer([])).patch(Thing, "a", unclear)


async def test_an_answer_that_is_no_object_says_so() -> None:
    client = Client(transport=Peer(lambda _: Reply(200, b"<html>")))
    with pytest.raises(errors.DecodeError):
        await client.get(Thing, "a")
    with pytest.raises(errors.BadAnswer, match="the answer is no list"):
        await client.list(Thing)


@pytest.mark.parametrize("kind", [Thing, metadata_only(Thing), untyped("demo.setpoint.dev/v1", "Thing")])
async def test_an_answer_that_is_not_utf_8_says_so(kind: Any) -> None:
    def answer(request: Request) -> Reply:
        return Reply(
            200, DISCOVERY if request.target in {"/api", "/apis"} else b'{"metadata":{"name":"\xff"}}'
        )

    with pytest.raises(errors.DecodeError, match=r"read .*utf-8"):
        await Client(transport=Peer(answer)).get(kind, "a")


async def test_a_redirect_is_not_followed() -> None:
    client = Client(transport=Peer(lambda _: Reply(302, b"", {"Location": "https://elsewhere"})))
    with pytest.raises(errors.ApiError, match="redirects to https://elsewhere, which is not followed"):
        await client.get(Thing, "a")


async def test_secrets_are_in_no_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    said = {"causes": [{"field": "data.password", "message": 'Invalid value: "canary"'}]}
    replies = [
        status(422, "Invalid", 'Secret "s" is invalid: data: Invalid value: "canary"', details=said),
        status(400, "BadRequest", "cannot be handled: canary"),
        Reply(200, b'{"data": "canary'),
    ]
    client = Client(transport=answering(*replies))
    caplog.set_level(logging.DEBUG)
    for _ in range(3):
        with pytest.raises(errors.SetpointError) as raised:
            await client.create(Secret(metadata=ObjectMeta(name="s", annotations={"a": "canary"})))
        assert "canary" not in f"{raised.value} {raised.value!r}"
    assert "canary" not in caplog.text


async def test_each_warning_of_the_server_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    header = '299 - "unknown field \\"spec.foo\\"", 299 - "v1beta1 is deprecated"'
    client = Client(transport=Peer(lambda _: Reply(200, thing(), {"Warning": header})))
    for _ in range(3):
        await client.get(Thing, "a")
    assert [record.getMessage() for record in caplog.records] == [
        'unknown field "spec.foo"',
        "v1beta1 is deprecated",
    ]


async def test_whoever_wants_to_hear_warnings_is_told_each_once(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    reply = Reply(200, thing(), {"Warning": '299 - "v1beta1 is deprecated"'})
    client = Client(transport=Peer(lambda _: reply), on_warning=heard.append)
    for _ in range(2):
        await client.get(Thing, "a")
    assert heard == ["v1beta1 is deprecated"]
    assert not caplog.records


# Lists


def page(*names: str, token: str = "", version: str = "10") -> Reply:
    return Reply(
        200,
        {
            "kind": "ThingList",
            "apiVersion": "demo.setpoint.dev/v1",
            "metadata": {"resourceVersion": version, "continue": token},
            "items": [thing(name) for name in names],
        },
    )


EXPIRED = status(410, "Expired", metadata={"continue": "fresh"})


async def test_a_list_gives_all_objects_over_any_number_of_pages() -> None:
    peer = answering(page("a", "b", token="t"), page("c"), page("a", token="t"), page("b"))
    client = Client(transport=peer)
    found = await client.list(Thing, labels={"app": "web"}, fields="metadata.name!=x", page_size=2)
    assert [one.metadata.name for one in found] == ["a", "b", "c"]
    assert found.resource_version == "10"
    assert peer.query(0) == {"labelSelector": "app=web", "fieldSelector": "metadata.name!=x", "limit": "2"}
    assert peer.query(1)["continue"] == "t"
    assert peer.path(0) == f"{ROOT}/things", "of all namespaces"
    assert [one.metadata.name async for one in client.list(Thing, namespace="shop")] == ["a", "b"]
    assert peer.path() == f"{ROOT}/namespaces/shop/things"


async def test_plain_objects_of_a_list_say_what_they_are() -> None:
    items = {
        "kind": "ThingList",
        "metadata": {"resourceVersion": "1"},
        "items": [{"metadata": {"name": "a"}}],
    }
    discovery = Reply(200, DISCOVERY)
    client = Client(transport=answering(discovery, discovery, items))
    (only,) = await client.list(untyped("demo.setpoint.dev/v1", "Thing"))
    assert (only["apiVersion"], only["kind"]) == ("demo.setpoint.dev/v1", "Thing")


async def test_a_list_whose_pages_expired_starts_over_so_that_it_stays_one_snapshot() -> None:
    peer = answering(
        page("a", token="t"), EXPIRED, page("b", token="u", version="20"), page("c", version="20")
    )
    found = await Client(transport=peer).list(Thing)
    assert ([one.metadata.name for one in found], found.resource_version) == (["b", "c"], "20")


async def test_an_iteration_whose_pages_expired_goes_on_without_repeating_and_says_so() -> None:
    peer = answering(page("a", token="t"), EXPIRED, page("b", version="20"))
    listing = Client(transport=peer).list(Thing)
    assert [one.metadata.name async for one in listing] == ["a", "b"]
    assert peer.query()["continue"] == "fresh"
    assert not listing.is_consistent
    assert listing.resource_version == "", "no watch can start from here"


async def test_a_list_that_expires_again_and_again_ends() -> None:
    peer = Peer(lambda request: EXPIRED if "continue" in request.target else page("a", token="t"))
    with pytest.raises(errors.Expired):
        await Client(transport=peer).list(Thing)


def test_a_client_says_which_server_it_is_of() -> None:
    assert "Client of" in repr(Client(transport=Peer([])))


# Observing writes


class Diary:
    """Writes down what an observer is told."""

    def __init__(self, *, closed: bool = False) -> None:
        self.lines: list[str] = []
        self.closed = closed

    def before(self, call: Call) -> None:
        if self.closed:
            raise RuntimeError("no more writes")
        self.lines.append(f"before {call.verb} {call.key}")

    def answered(self, call: Call, answer: Answer) -> None:
        self.lines.append(f"answered {call.verb} {answer.status}")

    def refused(self, call: Call, error: errors.ApiError) -> None:
        self.lines.append(f"refused {call.verb} {error.code}")

    def unknown(self, call: Call) -> None:
        self.lines.append(f"unknown {call.verb}")


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(201, thing()), "answered create 201"),
        (status(409, "AlreadyExists"), "refused create 409"),
        (status(500, "InternalError"), "unknown create"),
        (errors.AnswerLost("", "reset"), "unknown create"),
        (Reply(201, [b"{", FOREVER]), "unknown create"),
    ],
    ids=["answered", "refused", "server failed", "answer lost", "deadline"],
)
async def test_an_observer_sees_every_write_and_what_came_of_it(
    reply: Reply | errors.SetpointError, told: str
) -> None:
    diary = Diary()
    client = Client(transport=Peer([reply])).observed_by(diary)
    with suppress(errors.SetpointError):
        await client.create(Thing(metadata=ObjectMeta(name="a")))
    assert diary.lines == ["before create default/a", told]


async def test_an_observer_is_told_of_a_cancelled_write() -> None:
    diary = Diary()
    client = Client(transport=Peer([Reply(201, [FOREVER])])).observed_by(diary)
    writing = asyncio.create_task(client.create(Thing(metadata=ObjectMeta(name="a"))))
    while not diary.lines:
        await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert diary.lines[-1] == "unknown create"


async def test_an_observer_may_refuse_a_write_before_it_is_sent_and_does_not_see_reads() -> None:
    peer = Peer(lambda _: Reply(200, thing()))
    client = Client(transport=peer).observed_by(Diary(closed=True))
    await client.get(Thing, "a")
    for write in (
        client.create(Thing(metadata=ObjectMeta(name="a"))),
        client.patch(Thing, "a", MergePatch({})),
        client.delete(Thing, "a"),
        client.scale(Thing, "a", 1),
        client.evict("a"),
    ):
        with pytest.raises(RuntimeError, match="no more writes"):
            await write
    assert len(peer.requests) == 1


async def test_closing_a_client_ends_its_watches() -> None:
    async def nothing() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async def app(_: Request) -> listen.Answer:
        return listen.Answer(200, body=nothing())

    async with listen.serve(app, grace=0) as address:
        client = Client(Config(str(address)))
        watch = client.watch(Thing, resource_version="1")
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.wait([waiting], timeout=0.2)
        await client.close()
        with pytest.raises(RuntimeError, match="this client is closed"):
            await waiting
        await watch.close()


@pytest.mark.parametrize(("disabled", "wanted"), [(False, "gzip"), (True, "identity")])
async def test_gzip_is_asked_for_unless_the_kubeconfig_says_otherwise(disabled: bool, wanted: str) -> None:
    asked = []

    async def app(request: Request) -> listen.Answer:
        asked.append(request.headers["Accept-Encoding"])
        return listen.Answer(404)

    async with (
        listen.serve(app, grace=0) as address,
        Client(Config(str(address), disable_compression=disabled)) as client,
    ):
        with pytest.raises(errors.SetpointError):
            await client.get(Thing, "a")
    assert asked
    assert set(asked) == {wanted}
