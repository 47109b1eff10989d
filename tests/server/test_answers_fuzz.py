"""Answers of webhooks that nobody thought of: malformed, mistyped, too long, for another, changing too much.

A webhook is somebody else's program.  Whatever it answers, a client gets an answer of Kubernetes', in time;
nothing is logged that is our mistake; and what is stored stays an object of its kind, with the name, the uid
and the place that it had.  What is tried is the same every time, and a failure is shrunk to the smallest
answer that shows it.  ``SETPOINT_FUZZ`` says how many times as much to try.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import logging
import random
import ssl
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.net import listen
from setpoint.net.tls import Authority
from setpoint.net.transport import Request
from setpoint.server.server import ApiServer
from tests.server.http.asking import DEFINITIONS, MAPS, Asking, Got, until_served
from tests.server.test_fuzz import Logged, often

Json = Any
_HOOKS = "/apis/admissionregistration.k8s.io/v1"
_THINGS = "/apis/fuzzed.example.com/{}/namespaces/default/things"
_SECONDS = 30.0  # in which every request is answered, many times over


class Said(NamedTuple):
    status: int
    body: bytes
    content_type: str = "application/json"


Answerer = Callable[[Json], Said]


def allowed(review: Json) -> Said:
    return written(review, {"allowed": True})


def converted(review: Json) -> Said:
    """As it is, in the version that is wanted."""
    request = review["request"]
    made = [{**one, "apiVersion": request["desiredAPIVersion"]} for one in request["objects"]]
    return written(review, {"convertedObjects": made, "result": {"status": "Success"}})


def written(review: Json, response: Json) -> Said:
    head = {name: review[name] for name in ("kind", "apiVersion")}
    return Said(200, json.dumps({**head, "response": {"uid": review["request"]["uid"], **response}}).encode())


class World:
    """A server and a webhook that answers as it is told; their loop stands still between two requests."""

    def __init__(self, runner: asyncio.Runner, ask: Asking, logged: Logged) -> None:
        self._runner = runner
        self.asking = ask
        self._logged = logged
        self.answer: Answerer = allowed
        self.convert: Answerer = converted
        self.made = 0

    async def __call__(self, request: Request) -> listen.Answer:
        review = json.loads(request.body or b"{}")
        said = (self.convert if review["kind"] == "ConversionReview" else self.answer)(review)
        return listen.Answer(said.status, {"Content-Type": said.content_type}, said.body)

    def ask(self, method: str, target: str, body: Json = None) -> Got:
        """An answer, and nothing that the server's log would have to say about it."""

        async def asked() -> Got:
            async with asyncio.timeout(_SECONDS):
                return await self.asking(method, target, body)

        got = self._runner.run(asked())
        told = self._logged.taken()
        passed_over = "is passed over, as its failurePolicy says"
        assert not told or passed_over in told, told
        assert got.status < 400 or got.json["kind"] == "Status", got.body[:500]
        assert got.status < 500 or "see the server's log" not in got.message, got.body[:500]
        return got

    def name(self) -> str:
        self.made += 1
        return f"n{self.made}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    logged = Logged()
    logging.getLogger().addHandler(logged)
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        made = runner.run(_begun(stack, runner, logged, tmp_path_factory.mktemp("hooks")))
        yield made
        runner.run(stack.aclose())
    logging.getLogger().removeHandler(logged)


async def _begun(stack: AsyncExitStack, runner: asyncio.Runner, logged: Logged, folder: Path) -> World:
    authority = Authority.create()
    identity = authority.issue("hooks", hosts=["hooks.default.svc"], server=True)
    file = folder / "hooks.pem"
    file.write_bytes(identity.key_pem + identity.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    world: World

    async def answer(request: Request) -> listen.Answer:
        return await world(request)

    address = await stack.enter_async_context(
        listen.serve(answer, host="127.0.0.1", port=0, ssl_context=context, grace=0.1)
    )
    services = {"default/hooks": f"127.0.0.1:{address.port}"}
    server = await stack.enter_async_context(ApiServer(services=services, source=random.Random(7)))
    world = World(runner, Asking(server.transport()), logged)
    client = {
        "service": {"namespace": "default", "name": "hooks"},
        "caBundle": base64.b64encode(authority.certificate_pem).decode(),
    }
    await _configure(world, client)
    return world


async def _configure(world: World, client: Json) -> None:
    """Webhooks for objects by their label ``at``, and a kind that is converted."""
    ask = world.asking
    rule = {"apiVersions": ["*"], "operations": ["CREATE", "UPDATE"]}
    rules = [
        {**rule, "apiGroups": [""], "resources": ["configmaps"]},
        {**rule, "apiGroups": ["fuzzed.example.com"], "resources": ["things"]},
    ]
    for kind in ("mutating", "validating"):
        hooks = [
            {
                "name": f"{policy.lower()}.{kind}.example.com",
                "clientConfig": client,
                "rules": rules,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": policy,
                "objectSelector": {"matchLabels": {"at": f"{kind}-{policy.lower()}"}},
            }
            for policy in ("Fail", "Ignore")
        ]
        configuration = {"metadata": {"name": "hooks"}, "webhooks": hooks}
        await ask.create(f"{_HOOKS}/{kind}webhookconfigurations", configuration)
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, "text": {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")
    ]
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    definition = {
        "metadata": {"name": "things.fuzzed.example.com"},
        "spec": {
            "group": "fuzzed.example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }
    await ask.create(DEFINITIONS, definition)
    await until_served(ask, _THINGS.format("v1"))


# ── What is answered ────────────────────────────────────────────────────────────────────────────────

_texts = st.one_of(
    st.sampled_from(["", "x", "v1", "JSONPatch", "a" * 300, "é", "\x00", "\ud800", "kube-system", "n\nn"]),
    st.text(max_size=5),
)
_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    _texts,
)
_fields = st.sampled_from(
    ["metadata", "name", "namespace", "uid", "labels", "data", "spec", "kind", "apiVersion", "managedFields"]
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(_texts, _fields), inner, max_size=3)
    ),
    max_leaves=6,
)
_metadata = [
    *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"),
    *("deletionGracePeriodSeconds", "generateName", "selfLink", "labels", "annotations", "finalizers"),
    *("ownerReferences", "managedFields"),
]
_paths = st.one_of(
    st.sampled_from([f"/metadata/{name}" for name in _metadata]),
    st.sampled_from(
        ["", "/", "/metadata", "/kind", "/apiVersion", "/data", "/data/a", "/spec", "/spec/size"]
    ),
    st.sampled_from(["/metadata/labels/at", "/metadata/managedFields/0/fieldsV1", "/metadata/finalizers/-"]),
    st.text(max_size=5),
)
_operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "replace", "remove", "move", "copy", "test"]), "path": _paths},
    optional={"value": _values, "from": _paths},
)
_patches = st.one_of(st.lists(_operations, max_size=4), st.lists(_values, max_size=2), _values)


def encoded(patch: Json) -> str:
    return base64.b64encode(_dumped(patch)).decode()


def _dumped(value: Json) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


_statuses = st.fixed_dictionaries(
    {},
    optional={
        "code": st.one_of(st.integers(-1, 1100), _values),
        "message": st.one_of(_texts, _values),
        "reason": st.one_of(st.sampled_from(["AlreadyExists", "Conflict", "NotFound", "Expired"]), _values),
        "details": st.one_of(
            _values,
            st.fixed_dictionaries({"retryAfterSeconds": st.integers(-1, 5), "causes": st.lists(_values)}),
        ),
        "metadata": _values,
    },
)  # fmt: skip
_responses = st.fixed_dictionaries(
    {},
    optional={
        "allowed": st.one_of(st.just(True), st.just(True), st.booleans(), _values),
        "status": st.one_of(_statuses, _values),
        "patchType": st.one_of(st.just("JSONPatch"), st.just("JSONPatch"), _values),
        "patch": st.one_of(_patches.map(encoded), _patches.map(encoded), _values, st.text(max_size=8)),
        "warnings": st.one_of(st.lists(_values, max_size=3), _values),
        "auditAnnotations": _values,
        "uid": st.one_of(st.just("other"), _values),
        "convertedObjects": _values,
        "result": st.one_of(_statuses, st.just({"status": "Success"}), _values),
    },
)


class Answer(NamedTuple):
    """How a webhook answers: a response with its uid, in a review that may be bent, in bytes that may be."""

    response: Json
    review: Json
    status: int
    content_type: str
    cut: int  # bytes that are kept, and the rest is not sent; 0 for all
    more: bytes

    def said(self, review: Json) -> Said:
        uid = review["request"]["uid"]
        made: Json = self.response
        if isinstance(made, dict):
            made = {"uid": uid, **made}
        head = {name: review[name] for name in ("kind", "apiVersion")}
        body = _dumped({**head, "response": made, **self.review})
        if self.cut:
            body = body[: self.cut]
        return Said(self.status, body + self.more, self.content_type)


_answers = st.builds(
    Answer,
    st.one_of(_responses, _responses, _values),
    st.one_of(
        st.just({}),
        st.just({}),
        st.dictionaries(st.sampled_from(["kind", "apiVersion", "response"]), _values),
    ),
    st.one_of(st.just(200), st.just(200), st.sampled_from([201, 206, 299, 301, 400, 403, 404, 500, 503])),
    st.sampled_from(["application/json", "text/plain", "", "application/vnd.kubernetes.protobuf"]),
    st.one_of(st.just(0), st.just(0), st.just(0), st.integers(1, 100)),
    st.one_of(
        st.just(b""), st.just(b""), st.just(b""), st.binary(max_size=5),
        st.sampled_from([b" " * 2**22, b"[" * 5000, b"\n- a: &b [*b]", b"x" * 2**17]),
    ),
)  # fmt: skip
_changes = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "add", "replace", "remove"]),
        "path": _paths,
        "value": st.one_of(
            st.sampled_from([None, "", "x", "kube-system", 1, [], {}, [{}], {"a": 1}]), _values
        ),
    }
)
_patching = st.builds(
    lambda operations: Answer(
        {"allowed": True, "patchType": "JSONPatch", "patch": encoded(operations)},
        {},
        200,
        "application/json",
        0,
        b"",
    ),
    st.lists(_changes, min_size=1, max_size=3),
)
_any = st.one_of(_answers, _patching)
_kinds = st.sampled_from(["mutating-fail", "mutating-ignore", "validating-fail", "validating-ignore"])


# ── What becomes of it ──────────────────────────────────────────────────────────────────────────────


def config_map(name: str, at: str) -> Json:
    return {"metadata": {"name": name, "labels": {"at": at}}, "data": {"a": "b"}}


def thing(name: str, version: str = "v1", **metadata: Json) -> Json:
    head = {"apiVersion": f"fuzzed.example.com/{version}", "kind": "Thing"}
    return {**head, "metadata": {"name": name, **metadata}, "spec": {"size": 1, "text": "x"}}


def check_object(obj: Json, kind: str, version: str, name: str = "") -> None:
    """It is an object of its kind, in its place, and known by all that an object is known by."""
    metadata = obj["metadata"]
    assert (obj["kind"], obj["apiVersion"]) == (kind, version)
    assert metadata["namespace"] == "default"
    assert metadata["name"] == (name or metadata["name"])
    assert metadata["uid"]
    assert metadata["creationTimestamp"]
    assert int(metadata["resourceVersion"]) > 0
    assert isinstance(metadata.get("managedFields", []), list)
    assert all(isinstance(one, str) for one in (metadata.get("labels") or {}).values())


def check_stored(world: World, target: str, before: Json = None) -> None:
    """What is stored is such an object, is listed so, and can be written as it is."""
    got = world.ask("GET", target)
    if got.status == 404 and before is None:
        return
    assert got.status == 200, got.body[:500]
    stored = got.json
    check_object(stored, stored["kind"], stored["apiVersion"], target.rpartition("/")[2])
    if before is not None:
        for field in ("uid", "creationTimestamp"):
            assert stored["metadata"][field] == before["metadata"][field]
    world.answer, world.convert = allowed, converted
    assert world.ask("PUT", target, stored).status == 200


@often(200)
@given(answer=_any, at=_kinds)
def test_whatever_a_webhook_answers_of_a_new_object_it_is_whole_or_not_there(
    world: World, answer: Answer, at: str
) -> None:
    name, world.answer = world.name(), answer.said
    got = world.ask("POST", MAPS, config_map(name, at))
    world.answer = allowed
    if got.status == 201:
        made = got.json
        check_object(made, "ConfigMap", "v1")
        check_stored(world, f"{MAPS}/{made['metadata']['name']}")
        world.ask("DELETE", f"{MAPS}/{made['metadata']['name']}")
    else:
        assert world.ask("GET", f"{MAPS}/{name}").status == 404


@often(150)
@given(answer=_any, at=_kinds)
def test_whatever_a_webhook_answers_of_a_change_the_object_stays_the_one_it_is(
    world: World, answer: Answer, at: str
) -> None:
    name, world.answer = world.name(), allowed
    before = world.ask("POST", MAPS, config_map(name, "nobody")).json
    world.answer = answer.said
    got = world.ask("PUT", f"{MAPS}/{name}", {**config_map(name, at), "data": {"a": "c"}})
    world.answer = allowed
    if got.status == 200:
        check_object(got.json, "ConfigMap", "v1", name)
    else:
        assert world.ask("GET", f"{MAPS}/{name}").json == before
    check_stored(world, f"{MAPS}/{name}", before)
    world.ask("DELETE", f"{MAPS}/{name}")


@often(100)
@given(answer=_any, at=_kinds)
def test_whatever_a_webhook_answers_of_a_custom_object_it_is_whole_or_not_there(
    world: World, answer: Answer, at: str
) -> None:
    name, path, world.answer = world.name(), _THINGS.format("v1"), answer.said
    got = world.ask("POST", path, thing(name, labels={"at": at}))
    world.answer = allowed
    if got.status == 201:
        made = got.json
        check_object(made, "Thing", "fuzzed.example.com/v1")
        check_stored(world, f"{path}/{made['metadata']['name']}")
        world.ask("DELETE", f"{path}/{made['metadata']['name']}")
    else:
        assert world.ask("GET", f"{path}/{name}").status == 404


@st.composite
def _bent(draw: st.DrawFn) -> Callable[[Json], Json]:
    """Objects as they were converted, each changed somewhere; perhaps one more, or one less."""
    field = draw(st.sampled_from([None, "metadata", "spec", "kind", "apiVersion", "status"]))
    below = draw(st.one_of(st.none(), st.sampled_from([*_metadata, "size", "text"])))
    value, count = draw(_values), draw(st.integers(-1, 1))

    def bend(objects: Json) -> Json:
        made = copy.deepcopy(objects)
        for one in made:
            if field is not None and below is not None and isinstance(one.get(field), dict):
                one[field][below] = value
            elif field is not None:
                one[field] = value
        return made[:-1] if count < 0 else [*made, *made[:count]]

    return bend


@pytest.mark.slow
@often(200)
@given(answer=_answers, bend=st.one_of(st.none(), _bent()), is_written=st.booleans())
def test_whatever_a_webhook_answers_of_a_conversion_what_is_stored_stays_whole(
    world: World, answer: Answer, bend: Callable[[Json], Json] | None, is_written: bool
) -> None:
    name, first, second = world.name(), _THINGS.format("v1"), _THINGS.format("v2")
    world.answer, world.convert = allowed, converted
    before = world.ask("POST", first, thing(name)).json

    def bent(review: Json) -> Said:
        good = json.loads(converted(review).body)["response"]
        return written(review, {**good, "convertedObjects": (bend or list)(good["convertedObjects"])})

    world.convert = answer.said if bend is None else bent
    if is_written:
        got = world.ask("PUT", f"{second}/{name}", {**thing(name, "v2"), "spec": {"size": 2}})
    else:
        got = world.ask("GET", f"{second}/{name}")
        world.ask("GET", second)
    world.convert = converted
    if got.status == 200:
        check_object(got.json, "Thing", "fuzzed.example.com/v2", name)
    if got.status != 200 or not is_written:
        assert world.ask("GET", f"{first}/{name}").json == before
    check_stored(world, f"{first}/{name}", before)
    world.ask("DELETE", f"{first}/{name}")
