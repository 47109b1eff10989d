"""Bad input and too much of it: each refused as Kubernetes does, in bounded time and memory, and never a 500.

Most of it is asked in memory, where a body is what it is; what is about sockets is asked over TLS, byte by
byte.  ``test_fuzz.py`` asks what nobody thought of.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import gzip
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from setpoint.net.trust import ssl_context
from setpoint.server import server as server_module
from setpoint.server.registry.flow import MOST_BYTES
from setpoint.server.server import ApiServer
from tests.server.http.asking import DEFINITIONS, MAPS, Asking, Got, config_map, until_served

JSON, YAML = "application/json", "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
FOOS = "/apis/example.com/v1/namespaces/default/foos"
HEAD = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},'
FOO = b'{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"x"},'


@pytest.fixture(autouse=True)
def nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A client's mistake is not ours: no warning, and no trace."""
    yield
    logged = [record.getMessage() for record in caplog.get_records("call") if record.levelno > logging.INFO]
    assert not logged, logged


def definition(plural: str, kind: str, group: str = "example.com", **spec: object) -> dict[str, Any]:
    """A namespaced kind whose spec takes anything, unless told."""
    schema = {
        "type": "object",
        "properties": {"spec": spec or {"x-kubernetes-preserve-unknown-fields": True}},
    }
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [served],
        },
    }


@asynccontextmanager
async def asking() -> AsyncIterator[Asking]:
    """A server with a ConfigMap ``a`` and a Foo ``f``; it ends with all that it began."""
    async with ApiServer() as server:
        ask = Asking(server.transport())
        await ask.create(MAPS, config_map("a", k="v"))
        await ask.create(DEFINITIONS, definition("foos", "Foo"))
        await until_served(ask, FOOS)
        await ask.create(FOOS, {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}})
        yield ask
        assert "0 watches" in repr(server.app)


async def refused(  # noqa: PLR0917 - a request, in the order it is written
    ask: Asking, code: int, method: str, target: str, body: bytes | None = None, media: str = JSON
) -> Got:
    """Ask what is to be refused; the answer is a Status that says so."""
    got = await ask(method, target, body, {"Content-Type": media} if body is not None else {})
    told = f"{method} {target[:60]} {(body or b'')[:60]!r}: {got.status} {got.body[:200]!r}"
    assert got.status == code, told
    assert (got.json["kind"], got.json["status"], got.json["code"]) == ("Status", "Failure", code), told
    assert len(got.body) < 10 * 2**20, told
    return got


# ── Sizes ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_body_of_more_than_three_mebibytes_is_refused_unread() -> None:
    async with asking() as ask:
        for media in (JSON, YAML, PROTOBUF):
            got = await refused(ask, 413, "POST", MAPS, b"x" * (3 * 2**20 + 1), media)
            assert got.message == "Request entity too large: limit is 3145728"
        await refused(ask, 400, "POST", MAPS, b" " * (3 * 2**20))


async def test_an_object_does_not_grow_beyond_what_is_stored_and_can_still_be_deleted() -> None:
    async with asking() as ask:
        most = MOST_BYTES - 2000
        await ask.create(FOOS, json.loads(FOO + b'"spec":{"a":"' + b"x" * most + b'"}}'))
        more = b'{"spec":{"b":"' + b"x" * 4000 + b'"}}'
        got = await refused(ask, 413, "PATCH", f"{FOOS}/x", more, MERGE)
        assert got.message == f"Request entity too large: limit is {MOST_BYTES}"
        assert "b" not in (await ask.get(f"{FOOS}/x")).json["spec"]
        assert (await ask("DELETE", f"{FOOS}/x")).status == 200
        await refused(ask, 413, "POST", FOOS, FOO + b'"spec":{"a":"' + b"x" * MOST_BYTES + b'"}}')


async def test_a_json_patch_has_at_most_ten_thousand_operations_and_copies_at_most_three_mebibytes() -> None:
    async with asking() as ask:
        test = {"op": "test", "path": "/kind", "value": "Foo"}
        await refused(ask, 413, "PATCH", f"{FOOS}/f", json.dumps([test] * 10_001).encode(), JSON_PATCH)
        assert (await patched(ask, [test] * 10_000)).status == 200
        bomb = [{"op": "add", "path": "/spec", "value": {"x": "y" * 100}}]
        bomb += [{"op": "copy", "from": "/spec", "path": f"/spec/a{number}"} for number in range(40)]
        assert (await patched(ask, bomb)).status == 422


async def patched(ask: Asking, operations: list[Any]) -> Got:
    body = json.dumps(operations).encode()
    return await ask("PATCH", f"{FOOS}/f", body, {"Content-Type": JSON_PATCH})


# ── Depth ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("depth", [251, 1_000, 10_001, 500_000])
async def test_what_nests_too_deep_is_refused_in_every_format(depth: int) -> None:
    opened, closed = b'{"a":' * depth, b"1" + b"}" * depth
    async with asking() as ask:
        for body in (b"[" * depth + b"]" * depth, b"[" * depth, HEAD + b'"data":' + opened + closed + b"}"):
            await refused(ask, 400, "POST", MAPS, body)
        await refused(ask, 400, "POST", FOOS, FOO + b'"spec":' + opened + closed + b"}")
        await refused(ask, 400, "PUT", f"{FOOS}/f", FOO + b'"spec":' + opened + closed + b"}")
        owned = b'"fieldsType":"FieldsV1","fieldsV1":' + opened + closed
        managed = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","managedFields":[{' + owned
        await refused(ask, 400, "POST", MAPS, managed + b"}]}}")
        for media in (MERGE, STRATEGIC, JSON_PATCH, APPLY):
            target = f"{MAPS}/a?fieldManager=test"
            await refused(ask, 400, "PATCH", target, b'{"data":' + opened + closed + b"}", media)
        await refused(ask, 400, "DELETE", f"{MAPS}/a", opened + closed)
        if depth < 100_000:  # YAML is read slowly, and stops being read as soon
            await refused(ask, 400, "POST", MAPS, b"[" * depth + b"]" * depth, YAML)
            await refused(ask, 400, "POST", MAPS, b"{a: " * depth + b"1" + b"}" * depth, YAML)
            lines = b"\n".join(b" " * at + b"a:" for at in range(min(depth, 1_000)))
            await refused(ask, 400, "POST", MAPS, lines, YAML)


async def test_what_nests_as_deep_as_it_may_is_read_and_written_in_every_form() -> None:
    deep: Any = 1
    for _ in range(240):
        deep = {"a": deep}
    async with asking() as ask:
        made = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "deep"}, "spec": deep}
        await ask.create(FOOS, made)
        for accept in (JSON, YAML, f"{JSON};as=Table;v=v1;g=meta.k8s.io", f"{JSON};pretty=1"):
            assert (await ask.get(f"{FOOS}/deep", accept)).status == 200
        got = await ask("PATCH", f"{FOOS}/deep?fieldManager=m&force=1", made, {"Content-Type": APPLY})
        assert got.status == 200, got.body
        assert (await ask("DELETE", f"{FOOS}/deep")).status == 200


async def test_a_json_patch_cannot_build_what_no_body_could_bring() -> None:
    async with asking() as ask:
        steps = [{"op": "add", "path": "/spec" + "/a" * at, "value": {}} for at in range(1_200)]
        assert (await patched(ask, steps)).status == 422
        copies = [{"op": "add", "path": "/spec", "value": {"a": {}}}]
        copies += [{"op": "copy", "from": "/spec/a", "path": "/spec/a" + "/a" * at} for at in range(1, 400)]
        assert (await patched(ask, copies)).status == 422
        assert "spec" not in (await ask.get(f"{FOOS}/f")).json


async def test_a_schema_may_nest_as_a_body_may_and_no_deeper() -> None:
    async with asking() as ask:
        for depth, code in ((110, 201), (130, 400)):
            deep: Any = {"type": "string"}
            for _ in range(depth):
                deep = {"type": "object", "properties": {"a": deep}}
            got = await ask("POST", DEFINITIONS, definition(f"bars{depth}", f"Bar{depth}", **deep))
            assert got.status == code, got.body[:200]
        await until_served(ask, FOOS.replace("foos", "bars110"))
        assert (await ask.get("/openapi/v3/apis/example.com/v1")).status == 200


# ── Protobuf ────────────────────────────────────────────────────────────────────────────────────────


def varint(number: int) -> bytes:
    more = number >> 7
    return bytes([number & 0x7F | 0x80]) + varint(more) if more else bytes([number])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, raw)


async def test_protobuf_that_was_cut_or_bent_anywhere_is_refused_or_read_and_never_a_fault() -> None:
    good = envelope("v1", "ConfigMap", field(1, field(1, b"pb")) + field(2, field(1, b"k") + field(2, b"v")))
    async with asking() as ask:
        bent = [good[:at] for at in range(len(good))]
        bent += [
            good[:at] + bytes([to]) + good[at + 1 :] for at in range(len(good)) for to in (0, 127, 128, 255)
        ]
        for body in bent:
            got = await ask("POST", f"{MAPS}?dryRun=All", body, {"Content-Type": PROTOBUF})
            assert got.status in (201, 400, 422), (body, got.body)
        for length in (b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x7f", b"\xff" * 20):
            await refused(ask, 400, "POST", MAPS, b"k8s\0\x12" + length, PROTOBUF)
        await refused(ask, 400, "POST", MAPS, envelope("v1", "ConfigMap", b"\x0b" * 1_000), PROTOBUF)
        await refused(ask, 415, "POST", FOOS, envelope("example.com/v1", "Foo", b""), PROTOBUF)


async def test_protobuf_that_nests_without_end_is_refused() -> None:
    raw = b""
    for _ in range(3_000):
        raw = field(26, raw)  # "not", in a JSON schema
    schema = field(2, field(7, field(4, field(1, raw))))
    async with asking() as ask:
        body = envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", schema)
        await refused(ask, 400, "POST", DEFINITIONS, body, PROTOBUF)


# ── Values ──────────────────────────────────────────────────────────────────────────────────────────


async def test_numbers_that_json_has_not_are_refused() -> None:
    async with asking() as ask:
        for text in (b"NaN", b"Infinity", b"-Infinity", b"00", b"0x1", b"+1", b"1.", b".5", b"1e", b"tru"):
            await refused(ask, 400, "POST", FOOS, FOO + b'"spec":{"a":' + text + b"}}")
            await refused(ask, 400, "PATCH", f"{FOOS}/f", b'{"spec":{"a":' + text + b"}}", MERGE)
        for text in (b".nan", b".inf", b"-.inf"):
            yaml = b"apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: x}\nspec: {a: " + text + b"}"
            await refused(ask, 400, "POST", FOOS, yaml, YAML)


async def test_a_huge_number_is_refused_where_a_number_is_read_and_bent_where_it_is_not() -> None:
    huge = (b"9" * 5_000, b"-" + b"9" * 5_000, b"1e999", b"18446744073709551616", b"9223372036854775808")
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    async with asking() as ask:
        for text in huge:
            sized = b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"replicas":'
            await refused(ask, 400, "POST", deployments, sized + text + b"}}")
            grace = b'{"gracePeriodSeconds":' + text + b"}"
            await refused(ask, 400, "DELETE", f"{MAPS}/a", grace)
            got = await ask("POST", f"{FOOS}?dryRun=All", FOO + b'"spec":{"a":' + text + b"}}")
            assert got.status in (201, 400), got.body[:200]


async def test_digits_without_end_are_text_where_they_are_quoted_and_refused_where_they_are_not() -> None:
    digits = "9" * 5_000
    yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: %s}"
    async with asking() as ask:
        for text in (digits, f"-{digits}", f"0x{digits}", f"1e{digits}"):
            await refused(ask, 400, "POST", MAPS, (yaml % text).encode(), YAML)
        got = await ask("POST", MAPS, (yaml % f"'{digits}'").encode(), {"Content-Type": YAML})
        assert (got.status, got.json["data"]["a"]) == (201, digits)
        assert f"a: '{digits}'" in (await ask.get(f"{MAPS}/x", YAML)).body.decode()


@pytest.mark.parametrize("value", ["", "null", "other/v1", "v2", "x"])
async def test_no_patch_takes_from_an_object_what_it_is(value: str) -> None:
    said = "null" if value == "null" else f'"{value}"'
    async with asking() as ask:
        for field in ("apiVersion", "kind"):
            for path in (f"{MAPS}/a", f"{FOOS}/f"):
                for media in (MERGE, STRATEGIC, JSON_PATCH, APPLY):
                    change = f'{{"{field}":{said},"metadata":{{"labels":{{"a":"b"}}}}}}'
                    if media == JSON_PATCH:
                        change = f'[{{"op":"replace","path":"/{field}","value":{said}}}]'
                    got = await ask(
                        "PATCH", f"{path}?fieldManager=m", change.encode(), {"Content-Type": media}
                    )
                    assert got.status in (200, 400, 415, 422), got.body
                    shown = (await ask.get(path)).json
                    assert shown["kind"] in ("ConfigMap", "Foo")
                    assert shown["apiVersion"] in ("v1", "example.com/v1")


async def test_half_of_a_character_is_replaced_and_nul_is_kept_out_of_names() -> None:
    async with asking() as ask:
        for number, text in enumerate((b"\\ud800", b"\\udc00\\ud800", b"\xed\xa0\x80", b"\xff")):
            body = HEAD.replace(b'"x"', b'"h%d"' % number) + b'"data":{"a":"' + text + b'"}}'
            got = await ask("POST", MAPS, body, {"Content-Type": JSON})
            assert got.status == 201, got.body
            assert "\ufffd" in got.json["data"]["a"]
            assert (await ask.get(f"{MAPS}/h{number}")).body == got.body
            await refused(ask, 422, "POST", MAPS, HEAD.replace(b"x", text) + b'"data":{}}')
        for text in (b"\\u0000", b"a\\u0000", b"..", b".", b"a/b", b"a%2fb", b"A", b"-a", b"a" * 254):
            await refused(ask, 422, "POST", MAPS, HEAD.replace(b"x", text) + b'"data":{}}')
        await refused(ask, 400, "POST", MAPS, HEAD.replace(b"x", b"\0") + b'"data":{}}')


async def test_aliases_in_yaml_are_refused_before_they_grow() -> None:
    bomb = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [%b]\n" % (98 + at, 98 + at, b",".join([b"*%c" % (97 + at)] * 9)) for at in range(8)
    )
    async with asking() as ask:
        for body in (bomb, b"a: &a [1]\nb: *a\n", b"&a [*a]", b"a: *nobody", b"<<: *a"):
            await refused(ask, 400, "POST", MAPS, body, YAML)
            await refused(ask, 400, "PATCH", f"{MAPS}/a?fieldManager=m", body, APPLY)


@pytest.mark.parametrize(
    "body", [b"!!python/object/apply:os.system ['true']", b"!mine {a: 1}", b"? [a]\n: b", b"{{a: b}: c}",
             b"\xff\xfe\xff", b"a: !!binary x", b"a: b: c", b"- a\nb: c", b"'", b"a: \0"]
)  # fmt: skip
async def test_yaml_that_is_no_json_is_refused(body: bytes) -> None:
    async with asking() as ask:
        await refused(ask, 400, "POST", MAPS, body, YAML)


async def test_a_key_that_is_there_twice_is_as_field_validation_says() -> None:
    twice = HEAD + b'"data":{"a":"1","a":"2"}}'
    yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: '1', a: '2'}"
    async with asking() as ask:
        for body, media in ((twice, JSON), (yaml, YAML)):
            for asked in ("Ignore", "Warn", "Strict", ""):
                target = f"{MAPS}?dryRun=All&fieldValidation={asked}"
                got = await ask("POST", target, body, {"Content-Type": media})
                assert got.status == (400 if asked == "Strict" else 201), got.body
                assert ("Warning" in got.headers) == (asked in ("Warn", ""))
        await refused(ask, 422, "POST", f"{MAPS}?fieldValidation=Odd", twice)
        many = HEAD + b'"data":{' + b",".join([b'"a":"1"'] * 100_000) + b"}}"
        got = await ask("POST", f"{MAPS}?dryRun=All", many, {"Content-Type": JSON})
        assert got.status == 201
        assert len(got.headers["Warning"]) < 10_000


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {"": ""}, [None], True, 2**64, {"a": None}, "\0"])
async def test_metadata_of_any_type_is_refused_or_taken_by_every_verb(value: Any) -> None:
    async with asking() as ask:
        for path in ("metadata", "metadata.labels", "metadata.finalizers", "metadata.ownerReferences",
                     "metadata.name", "metadata.managedFields", "kind"):  # fmt: skip
            for collection, name in ((MAPS, "a"), (FOOS, "f")):
                obj = (await ask.get(f"{collection}/{name}")).json
                first, _, second = path.partition(".")
                obj[first] = {**obj["metadata"], second: value} if second else value
                body = json.dumps(obj).encode()
                for method, media in (("PUT", JSON), ("PUT", YAML), ("PATCH", MERGE), ("PATCH", APPLY)):
                    force = "&force=true" if media == APPLY else ""
                    target = f"{collection}/{name}?dryRun=All&fieldManager=m{force}"
                    got = await ask(method, target, body, {"Content-Type": media})
                    assert is_proper(got), (path, value, method, media, got.body)
                got = await ask("POST", f"{collection}?dryRun=All", body, {"Content-Type": JSON})
                assert is_proper(got), (path, value, got.body)


# What kube-apiserver answers with 500, word for word.
BY_DESIGN = (
    "resourceVersion should not be set on objects to be created",
    "failed to create typed patch object",
    "failed to create manager for existing fields",
    "strconv.ParseUint",  # of a watch's resourceVersion
    "unknown patch type",
    "unable to find api field",
    "expected a []interface {}",
    "list element types are not identical",
    "does not contain declared merge key",
    "target.kind: Unsupported value",  # of a Binding
    "target.name: Required value",
)


def is_proper(got: Got) -> bool:
    """An answer, or a refusal that is the client's; or one of those that Kubernetes calls its own."""
    if got.status < 500 or got.status == 504:
        return got.status < 400 or got.headers["Content-Type"] != JSON or got.json["kind"] == "Status"
    return any(text in got.message for text in BY_DESIGN)


# ── Paths and queries ───────────────────────────────────────────────────────────────────────────────


async def test_a_path_is_read_in_one_way_only() -> None:
    async with asking() as ask:
        for name in (
            "..",
            ".",
            "%2e%2e",
            "a%2Fb",
            "a%2fb",
            "%252f",
            "a%00",
            "a%0a",
            "%",
            "%zz",
            "%ff",
            "a%5cb",
        ):
            for method in ("GET", "DELETE", "PUT", "PATCH"):
                body = None if method in ("GET", "DELETE") else b"{}"
                got = await ask(method, f"{MAPS}/{name}", body, {"Content-Type": MERGE})
                assert got.status in (400, 404, 415), (method, name, got.body)
        for target in (
            "/api/v1/namespaces/../secrets",
            "/api/v1/namespaces/default/../../secrets",
            "/../api",
        ):
            assert (await ask.get(target)).status in (400, 404)
        for target in (
            "",
            "*",
            "api",
            "http://evil.example/api",
            "?",
            "#",
            "/" + "a/" * 30_000,
            "/\udcff",
        ):
            assert (await ask.get(target)).status in (400, 404, 405), target


async def test_kinds_that_share_the_beginning_of_a_name_see_nothing_of_each_other() -> None:
    kinds = (
        ("foosbar", "FooBar", "example.com"),
        ("foos", "Foo", "example.com.au"),
        ("fo", "Fo", "example.com"),
    )
    async with asking() as ask:
        for plural, kind, group in kinds:
            await ask.create(DEFINITIONS, definition(plural, kind, group))
            collection = f"/apis/{group}/v1/namespaces/default/{plural}"
            await until_served(ask, collection)
            await ask.create(
                collection, {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "o"}}
            )
        assert [one["metadata"]["name"] for one in (await ask.get(FOOS)).json["items"]] == ["f"]
        for plural, kind, group in kinds:
            listed = (await ask.get(f"/apis/{group}/v1/{plural}")).json["items"]
            assert [(one["kind"], one["metadata"]["name"]) for one in listed] == [(kind, "o")]
        assert (await ask("DELETE", FOOS)).status == 200
        watched = await ask.get("/apis/example.com/v1/foosbar?watch=1&timeoutSeconds=1")
        assert [json.loads(line)["object"]["kind"] for line in watched.body.splitlines()] == ["FooBar"]
        await ask.create("/api/v1/namespaces", {"metadata": {"name": "def"}})
        assert (await ask.get(f"/api/v1/namespaces/def/{MAPS.rpartition('/')[2]}")).json["items"] == []


async def test_selectors_of_any_length_and_shape_are_read_or_refused() -> None:
    async with asking() as ask:
        for selector in (",".join(f"k{at}=v" for at in range(5_000)), f"a in ({','.join('v' * 9_000)})"):
            got = await ask.get(f"{MAPS}?labelSelector={selector}")
            assert (got.status, got.json["items"]) == (200, [])
        for selector in (
            "(" * 9_000,
            "!" * 9_000,
            "a in (" * 9_000,
            "a=b=" * 9_000,
            "a" * 9_000,
            "a in (",
            "a=%00",
        ):
            for query in ("labelSelector", "fieldSelector"):
                for more in ("", "&watch=1&timeoutSeconds=1"):
                    await refused(ask, 400, "GET", f"{MAPS}?{query}={selector}{more}")
                await refused(ask, 400, "DELETE", f"{MAPS}?{query}={selector}")
        selector = ",".join(["metadata.name=a"] * 9_000)
        assert len((await ask.get(f"{MAPS}?fieldSelector={selector}")).json["items"]) == 1
        await refused(ask, 400, "GET", f"{MAPS}?fieldSelector=metadata.name=a" + "\\" * 9_001)
        assert len((await ask.get(MAPS)).json["items"]) == 1, "nothing was deleted"


def token(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


async def test_a_continue_token_that_we_did_not_write_leads_nowhere() -> None:
    made = {"v": "meta.k8s.io/v1", "rv": 1, "start": "a\0"}
    async with asking() as ask:
        for text in ("x", "é", "%00", "!!!!", "=", "a" * 9_000, token({}), token([]), token(b"[" * 100_000),
                     token({**made, "v": "\n"}), token({**made, "rv": 1.5}), token({**made, "start": ""}),
                     token({**made, "start": "../../secrets/"}), token({**made, "rv": "1"})):  # fmt: skip
            await refused(ask, 400, "GET", f"{MAPS}?limit=1&continue={text}")
        for revision in (10**6, 2**63, 2**64, 10**30, -1, -5, 0):
            for start in ("a\0", "/a/b/c/", "\0", "\ud800"):
                got = await ask.get(
                    f"{MAPS}?limit=1&continue={token({**made, 'rv': revision, 'start': start})}"
                )
                assert got.status in (200, 400, 410, 504), (revision, start, got.body)


async def test_a_resource_version_that_is_none_or_from_the_future_is_told() -> None:
    async with asking() as ask:
        for said in (
            "-1",
            "abc",
            "9" * 20,
            "9" * 5_000,
            "1.5",
            "1e3",
            "0x1",
            "\u0661",
            "1_0",
            "%00",
            "18446744073709551616",
        ):
            await refused(ask, 400, "GET", f"{MAPS}?resourceVersion={said}")
            got = await ask.get(f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={said}")
            assert is_proper(got), got.body
            body = HEAD[:-2] + b',"resourceVersion":"' + said.encode() + b'"}}'
            got = await ask("PUT", f"{MAPS}/x?dryRun=All", body, {"Content-Type": JSON})
            assert is_proper(got), got.body
        for said in ("9223372036854775807", "9223372036854775808", "9" * 19):
            got = await refused(ask, 504, "GET", f"{MAPS}?resourceVersion={said}")
            assert got.headers["Retry-After"] == "1"
            await refused(ask, 504, "GET", f"{MAPS}/a?resourceVersion={said}")
        for name in ("limit", "timeoutSeconds"):
            for said in ("abc", "9" * 5_000, "1.5", "%00"):
                await refused(ask, 400, "GET", f"{MAPS}?{name}={said}")


async def test_what_a_client_says_of_itself_cannot_write_headers_or_names() -> None:
    async with asking() as ask:
        for name in ("a%0d%0aX-Evil:%20y", "%00", "a" * 129, "%0a", "é" * 129):
            await refused(ask, 422, "POST", f"{MAPS}?fieldManager={name}", HEAD + b'"data":{}}')
        for said in ("a\r\nX-Evil: y", "a\nb", "\udcff", "\0", "x" * 1_000):
            headers = {"Audit-Id": said, "User-Agent": said, "Content-Type": JSON}
            got = await ask("POST", f"{MAPS}?dryRun=All", HEAD + b'"a\\r\\nX-Evil: y":1}', headers)
            assert got.status == 201, got.body
            assert "X-Evil" not in got.headers
            assert all(value.isprintable() for value in got.headers.values()), got.headers


async def test_a_host_that_is_not_ours_is_refused() -> None:
    async with asking() as ask:
        for host in ("evil.example", "localhost.evil.example", "evil.localhost.example:6443", "\udcff", "é",
                     "127.0.0.1.evil.example", "0x7f.1", "a\r\nb", "[", "[evil]", "x" * 9_000):  # fmt: skip
            got = await ask.get("/api", Host=host)
            assert (got.status, got.json["reason"]) == (403, "Forbidden"), host
        for host in ("127.0.0.1:6443", "[::1]:6443", "localhost", "LOCALHOST.:1", "\udcff.localhost"):
            assert (await ask.get("/api", Host=host)).status == 200, host


@pytest.mark.slow
async def test_ten_thousand_bad_requests_leave_nothing_behind() -> None:
    async with asking() as ask:

        async def bad(number: int) -> None:
            tag = f"{number:05}"
            await ask.get(
                f"{MAPS}/no-{tag}?x={tag}", f"application/json;as={tag}", Host=f"{tag}.evil.example"
            )
            await ask.get(f"{MAPS}/no-{tag}?labelSelector=a{tag}", f"application/x-{tag}, */*")
            await ask("POST", MAPS, HEAD + b'"data":{"a":' + tag.encode(), {"Content-Type": JSON})
            body = f'{{"metadata":{{"name":"X{tag}"}}}}'.encode()
            await ask("POST", f"{MAPS}?fieldManager=m{tag}", body, {"Content-Type": JSON, "Audit-Id": tag})
            await ask("PATCH", f"{MAPS}/no-{tag}", b"[{}]", {"Content-Type": JSON_PATCH})

        for number in range(500):  # what is kept on purpose is full after this
            await bad(number)
        gc.collect()
        before = sys.getallocatedblocks()
        for number in range(500, 2_500):
            await bad(number)
        gc.collect()
        grown = sys.getallocatedblocks() - before
        assert grown < 5_000, f"{grown} blocks of memory more after 10,000 bad requests"
        assert len(asyncio.all_tasks()) <= 3


# ── Sockets ─────────────────────────────────────────────────────────────────────────────────────────


class Wire:
    """A connection over TLS, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self.reader = reader
        self.writer = writer
        self._token = token.encode()

    def head(self, method: bytes, target: bytes, *lines: bytes) -> bytes:
        first = (
            b"%b %b HTTP/1.1" % (method, target),
            b"Host: 127.0.0.1",
            b"Authorization: Bearer " + self._token,
        )
        return b"\r\n".join((*first, *lines, b"", b""))

    async def send(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # it may have been cut already
            self.writer.write(data)
            await self.writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        """One answer; 0 where the connection was cut."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            code = int(head.split(b" ", 2)[1])
            length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
            return code, await self.reader.readexactly(int(length[1]) if length else 0)
        except (EOFError, ConnectionError):
            return 0, b""

    async def is_cut(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True


class Wires:
    def __init__(self, server: ApiServer, port: int) -> None:
        self._server = server
        self._port = port
        self._context = ssl_context(ca=server.secrets.authority.certificate_pem)

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Wire]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._context)
        try:
            yield Wire(reader, writer, self._server.token)
        finally:
            writer.transport.abort()

    async def is_well(self) -> bool:
        try:
            async with self() as wire:
                await wire.send(wire.head(b"GET", b"/healthz"))
                return await wire.answer() == (200, b"ok")
        except OSError:  # cut before it had agreed on TLS
            return False


@asynccontextmanager
async def wired() -> AsyncIterator[Wires]:
    async with ApiServer() as server, server.serve(grace=1) as served:
        wires = Wires(server, served.address.port)
        yield wires
        while not await wires.is_well():  # within the test's deadline
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "lines",
    [
        (b"Content-Length: 2", b"Content-Length: 3"),
        (b"Content-Length: 2", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
        (b"Content-Length: -1",),
        (b"Content-Length: 9x",),
        (b"Content-Length: " + b"9" * 30,),
        (b"Transfer-Encoding: xchunked",),
        (b"X: a\nContent-Length: 0",),
        (b" folded: x",),
        (b"X y: z",),
        (b"X: \0",),
    ],
    ids=lambda lines: str(lines[0][:30]),
)
async def test_a_request_whose_end_is_in_doubt_is_refused_and_the_connection_cut(
    lines: tuple[bytes, ...],
) -> None:
    async with wired() as wires, wires() as wire:
        smuggled = wire.head(b"DELETE", MAPS.encode() + b"/a")
        await wire.send(wire.head(b"POST", MAPS.encode(), *lines) + b"{}" + smuggled)
        code, _ = await wire.answer()
        assert code in (0, 400, 413), code
        assert await wire.is_cut()


async def test_requests_that_were_sent_at_once_are_answered_in_turn() -> None:
    async with wired() as wires, wires() as wire:
        await wire.send(b"".join(wire.head(b"GET", b"/healthz/x%d" % at) for at in range(3)) * 30)
        assert [(await wire.answer())[0] for _ in range(90)] == [404] * 90


async def test_a_head_without_end_is_refused() -> None:
    async with wired() as wires:
        for lines in ([b"X: " + b"a" * 200_000], [b"X%d: %b" % (at, b"a" * 1_000) for at in range(20_000)]):
            async with wires() as wire:
                await wire.send(wire.head(b"GET", b"/healthz", *lines))
                assert (await wire.answer())[0] in (0, 400, 431)
        async with wires() as wire:
            await wire.send(wire.head(b"GET", b"/healthz?" + b"a" * 200_000))
            assert (await wire.answer())[0] in (0, 400, 414)


async def test_a_body_that_is_announced_or_goes_on_too_long_is_not_waited_for() -> None:
    async with wired() as wires:
        for lines, piece in (
            (b"Content-Length: 99999999999", b"x" * 2**16),
            (b"Transfer-Encoding: chunked", b""),
        ):
            async with wires() as wire:
                await wire.send(wire.head(b"POST", MAPS.encode(), b"Content-Type: " + JSON.encode(), lines))
                for _ in range(60):
                    await wire.send(piece or b"10000\r\n" + b"x" * 2**16 + b"\r\n")
                code, body = await wire.answer()
                assert code in (0, 413), code
                assert not body or json.loads(body)["reason"] == "RequestEntityTooLarge"


async def test_a_packed_body_is_not_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 2**24)
    async with wired() as wires, wires() as wire:
        for encoding in (b"gzip", b"deflate", b"br", b"gzip, gzip", b"x"):
            lines = (b"Content-Encoding: " + encoding, b"Content-Type: application/json")
            length = b"Content-Length: %d" % len(bomb)
            await wire.send(wire.head(b"POST", MAPS.encode(), *lines, length) + bomb)
            code, body = await wire.answer()
            assert (code, json.loads(body)["reason"]) == (415, "UnsupportedMediaType")


async def test_bytes_that_are_no_text_are_answered() -> None:
    async with wired() as wires:
        for target in (MAPS.encode() + b"/\xff\xfe", b"/\xc3\xa9", MAPS.encode() + b"?labelSelector=\xff"):
            async with wires() as wire:
                await wire.send(wire.head(b"GET", target, b"User-Agent: \xff", b"Accept: \xff, */*"))
                assert (await wire.answer())[0] in (400, 404)
    async with wired() as wires, wires() as wire:
        body = b'{"metadata":{"generateName":"a-"}}'
        lines = (b"User-Agent: \xff/\xfe", b"Audit-Id: \xff", b"Content-Length: %d" % len(body))
        await wire.send(wire.head(b"POST", MAPS.encode(), *lines) + body)
        assert (await wire.answer())[0] == 201
        await wire.send(b"GET /api HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n")
        assert (await wire.answer())[0] == 403


@pytest.mark.parametrize(
    "said", [b"\x16\x03\x01", b"FOO\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 5_000, b"\r\n" * 50]
)
async def test_what_is_no_http_hurts_nobody(said: bytes) -> None:
    async with wired() as wires, wires() as wire:
        await wire.send(said)
        await wire.send(wire.head(b"GET", b"/healthz"))
        assert (await wire.answer())[0] in (0, 200, 400)


async def test_methods_that_nobody_knows_are_refused() -> None:
    async with wired() as wires, wires() as wire:
        for method in (b"TRACE", b"PROPFIND", b"CONNECT"):
            await wire.send(wire.head(method, MAPS.encode()))
            assert (await wire.answer())[0] in (400, 404, 405), method


async def test_who_sends_slowly_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_SLOWEST", 0.2)
    async with wired() as wires:
        async with wires() as wire:
            await wire.send(b"GET /healthz HTTP/1.1\r\nHost: 127")
            assert await wire.is_cut()
        async with wires() as wire:
            await wire.send(wire.head(b"POST", MAPS.encode(), b"Content-Length: 100") + b"{")
            code, body = await wire.answer()
            assert (code, json.loads(body)["reason"]) == (408, "Timeout")


async def test_who_goes_away_in_the_middle_leaves_nothing_running() -> None:
    async with ApiServer() as server, server.serve(grace=1) as served:
        wires = Wires(server, served.address.port)
        for sent in (
            b"GET /heal",
            b"POST " + MAPS.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        ):
            async with wires() as wire:
                await wire.send(sent)
        for _ in range(20):
            async with wires() as wire:
                await wire.send(wire.head(b"GET", MAPS.encode() + b"?watch=1&sendInitialEvents=false"))
                await wire.send(wire.head(b"GET", MAPS.encode() + b"?watch=1"))
                await wire.reader.readuntil(b"\r\n\r\n")
        while "0 watches" not in repr(server.app):
            await asyncio.sleep(0.01)
        assert await wires.is_well()


async def test_connections_beyond_the_limit_are_cut_and_the_rest_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "_MOST_CONNECTIONS", 2)
    async with wired() as wires, wires() as one:
        async with wires() as other:
            for wire in (one, other):
                await wire.send(wire.head(b"GET", b"/healthz"))
                assert (await wire.answer())[0] == 200
            with pytest.raises(OSError):  # before anything is agreed on
                async with wires():
                    pass
            await one.send(one.head(b"GET", b"/healthz"))
            assert (await one.answer())[0] == 200
        while not await wires.is_well():  # the place of the second is free again, as soon as it is seen to be
            await asyncio.sleep(0.01)
