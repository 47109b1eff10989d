"""What THREAT_MODEL.md promises of a whole server, where no other file shows it: one test to a promise."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from setpoint.net import listen
from setpoint.net.tls import Authority
from setpoint.net.transport import Request
from setpoint.net.trust import CertificatePair, server_context
from setpoint.server.authentication.tokens import BearerTokens
from setpoint.server.registry.requests import User
from setpoint.server.server import ApiServer
from tests.canary import CANARY, assert_unseen
from tests.server.hooks import Hooks, hooks_behind, made
from tests.server.hooks import ask as ask_server
from tests.server.http.asking import MAPS, Asking, Got, config_map
from tests.server.test_limits import Wire, Wires, wired

SECRETS = "/api/v1/namespaces/default/secrets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


# ── Transport ───────────────────────────────────────────────────────────────────────────────────────


async def test_it_listens_on_this_machine_alone_unless_told() -> None:
    async with ApiServer() as server, server.serve() as served:
        assert served.address.host == "127.0.0.1"
        assert served.url.startswith("https://")


@pytest.mark.parametrize("offered", [["h2", "http/1.1"], ["h2"], ["http/1.1"], []])
async def test_http_2_is_not_spoken(offered: list[str]) -> None:
    async with ApiServer() as server, server.serve() as served:
        context = ssl.create_default_context(cadata=server.secrets.authority.certificate_pem.decode())
        if offered:
            context.set_alpn_protocols(offered)
        _, writer = await asyncio.open_connection("127.0.0.1", served.address.port, ssl=context)
        chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        writer.transport.abort()
        assert chosen == ("http/1.1" if "http/1.1" in offered else None)


async def test_tls_older_than_1_2_is_not_spoken() -> None:
    async with ApiServer() as server:
        assert server.secrets.server_context().minimum_version == ssl.TLSVersion.TLSv1_2


async def test_plain_http_is_not_spoken() -> None:
    async with ApiServer() as server, server.serve() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.address.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        said = b""
        with suppress(ConnectionError):
            said = await reader.read()
        writer.transport.abort()
        assert not said.startswith(b"HTTP/")


async def test_answers_are_not_for_pages_of_another_origin() -> None:
    async with ApiServer() as server:
        ask = Asking(server.transport())
        for method in ("GET", "OPTIONS"):
            got = await ask(method, MAPS, None, {"Origin": "https://evil.example"})
            assert not [name for name in got.headers if name.lower().startswith("access-control-")]


# ── Who somebody is ─────────────────────────────────────────────────────────────────────────────────


async def test_every_server_has_a_token_and_an_authority_of_its_own() -> None:
    async with ApiServer() as one, ApiServer() as other:
        assert len(one.token) >= 43, "256 bits of chance"
        assert one.token != other.token
        assert one.secrets.authority.certificate_pem != other.secrets.authority.certificate_pem
        assert one.secrets.signing_key.id != other.secrets.signing_key.id


def test_given_tokens_are_compared_in_constant_time_and_kept_as_digests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    tokens = BearerTokens({"first": User("a"), "second": User("b"), "third": User("c")})
    for shown in ("first", "third", "t", ""):
        compared.clear()
        with suppress(Exception):
            tokens.user(shown)
        assert set(compared) == {(32, 32)}, "digests, whatever the length of what was shown"
        assert len(compared) % 3 == 0, "all of them, whichever it is"
    assert "second" not in str(vars(tokens))


# ── What somebody may do ────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def who_may_list_one() -> AsyncIterator[Asking]:
    """The administrator's way to a server with the Secrets a and b, on which Bob may list a."""
    rule = {"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "one"}
    bob = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}
    async with ApiServer() as server:
        ask = Asking(server.transport())
        await ask.create(ROLES, {"metadata": {"name": "one"}, "rules": [rule]})
        await ask.create(BINDINGS, {"metadata": {"name": "one"}, "roleRef": role, "subjects": [bob]})
        for name in ("a", "b"):
            await ask.create(SECRETS, {"metadata": {"name": name}})
        yield ask


async def test_no_selector_by_chance_shows_more_than_may_be_listed() -> None:
    chance = random.Random(0)
    fields, signs = ("metadata.name", "metadata.namespace", "type", ""), ("=", "!=", "==", "\\", "")
    values, between = ("a", "b", "x", "default", "\\\\", ""), (",", ",", "\\,", "\\\\,", ",,")
    shown = 0

    def term() -> str:
        return chance.choice(fields) + chance.choice(signs) + chance.choice(values)

    async with who_may_list_one() as ask:
        for _ in range(3_000):
            selector = "".join(term() + chance.choice(between) for _ in range(chance.randrange(3))) + term()
            got = await ask.get(f"{SECRETS}?fieldSelector={selector}", Impersonate_User="bob")
            assert got.status in (200, 400, 403), selector
            if got.status == 200:
                shown += len(got.json["items"])
                assert {each["metadata"]["name"] for each in got.json["items"]} <= {"a"}, selector
    assert shown > 10


async def test_a_selector_that_only_looks_like_one_name_opens_no_list() -> None:
    async with who_may_list_one() as ask:

        async def listed(selector: str) -> Got:
            return await ask.get(f"{SECRETS}?fieldSelector={selector}", Impersonate_User="bob")

        assert [each["metadata"]["name"] for each in (await listed("metadata.name=a")).json["items"]] == ["a"]
        for selector in (
            "metadata.namespace!=x\\,metadata.name=a",
            "metadata.name!=x\\,metadata.name=a",
            "metadata.name!=x",
            "metadata.namespace=default",
            "metadata.name=b",
            "x,metadata.name=a",
        ):
            assert (await listed(selector)).status == 403, selector
        by_path = SECRETS.replace("/v1/", "/v1/watch/") + "/a?timeoutSeconds=1&fieldSelector="
        for selector in ("metadata.namespace!=x\\", "metadata.namespace=default"):
            assert (await ask.get(by_path + selector, Impersonate_User="bob")).status == 400, selector


async def test_there_are_no_metrics_and_no_debug_pages() -> None:
    async with ApiServer() as server:
        ask, stranger = Asking(server.transport()), Asking(server.transport(""))
        for path in ("/metrics", "/metrics/slis", "/debug/pprof", "/debug/pprof/profile", "/logs", "/flagz"):
            assert (await ask.get(path)).body == b"404 page not found\n", path
            assert (await stranger.get(path)).status == 401, path


# ── What a stranger can make it hold ────────────────────────────────────────────────────────────────


def anonymous(wire: Wire, *lines: bytes) -> bytes:
    first = (b"POST " + MAPS.encode() + b" HTTP/1.1", b"Host: 127.0.0.1", *lines, b"", b"")
    return b"\r\n".join(first)


@pytest.mark.parametrize(
    ("lines", "sent"),
    [
        ((b"Content-Length: 3000000",), b""),
        ((b"Content-Length: 3000000", b"Expect: 100-continue"), b""),
        ((b"Content-Length: 3000000", b"Authorization: Bearer wrong"), b""),
        ((b"Transfer-Encoding: chunked",), b"2000\r\n" + b"x" * 0x2000 + b"\r\n"),
    ],
)
async def test_a_stranger_is_refused_by_its_head_and_nothing_of_its_body_is_kept(
    lines: tuple[bytes, ...], sent: bytes
) -> None:
    async with wired() as wires, wires() as wire:
        await wire.send(anonymous(wire, *lines) + sent)
        code, body = await wire.answer()
        assert (code, json.loads(body)["reason"]) == (401, "Unauthorized")


async def test_bodies_that_a_stranger_sends_at_once_are_not_kept_while_it_waits() -> None:
    one = b"x" * 3_000_000
    async with wired() as wires, wires() as wire:
        await wire.send(anonymous(wire, b"Content-Length: 3000000") + one[:1_000_000])
        assert (await wire.answer())[0] == 401
        await wire.send(one[1_000_000:] + (anonymous(wire, b"Content-Length: 3000000") + one) * 3)
        assert await wire.is_cut(), "the connection ends with the first refusal"


async def test_a_small_body_of_a_stranger_is_refused_like_any_request() -> None:
    async with wired() as wires, wires() as wire:
        for _ in range(3):
            await wire.send(anonymous(wire, b"Content-Length: 2") + b"{}")
            assert (await wire.answer())[0] == 401


async def test_who_is_known_may_send_what_is_allowed_in_any_framing() -> None:
    async with wired() as wires, wires() as wire:
        body = json.dumps({"metadata": {"generateName": "a-"}, "data": {"k": "x" * 900_000}}).encode()
        for lines, sent in (
            ((b"Content-Length: %d" % len(body),), body),
            ((b"Transfer-Encoding: chunked",), b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)),
        ):
            await wire.send(wire.head(b"POST", MAPS.encode() + b"?dryRun=All", *lines) + sent)
            assert (await wire.answer())[0] == 201


# ── What nobody sees ────────────────────────────────────────────────────────────────────────────────


async def test_no_secret_reaches_a_log_or_a_repr(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG)
    canary = CANARY
    async with ApiServer(tmp_path) as server, server.serve() as served:
        ask = Asking(server.transport())
        await ask.create(SECRETS, {"metadata": {"name": "a"}, "stringData": {"k": canary}})
        await ask.create(ACCOUNTS, {"metadata": {"name": "robot"}})
        issued = await ask.create(f"{ACCOUNTS}/robot/token", {})
        for body in (
            b'{"metadata":{"name":"b"},"stringData":{"k":"' + canary.encode() + b'"',
            b'{"metadata":{"name":"B!"},"stringData":{"k":"' + canary.encode() + b'"}}',
            b'{"metadata":{"name":"c"},"data":{"k":"' + canary.encode() + b'"}}',
        ):
            await ask("POST", SECRETS, body, {"Content-Type": "application/json"})
        for headers in ({"Authorization": f"Bearer {canary}"}, {"Authorization": f"Basic {canary}"}):
            assert (await ask.get(f"{MAPS}?x={canary}", **headers)).status == 401
        review = {"spec": {"token": canary}}
        await ask.create("/apis/authentication.k8s.io/v1/tokenreviews", review)
        wires = Wires(server, served.address.port)
        for sent in (
            b"GET /?token=%b HTTP/9.9\r\n\r\n",
            b"%b\r\n\r\n",
            b"POST / HTTP/1.1\r\nX: %b\r\nX y: z\r\n\r\n",
        ):
            async with wires() as wire:
                await wire.send(sent % canary.encode())
                await wire.answer()
        shown = [
            repr(each)
            for each in (
                server,
                server.app,
                server.registry,
                server.secrets,
                served.address,
                server.registry.store,
            )
        ]
    said = caplog.text + "".join(shown)
    assert_unseen(said)
    for secret in (server.token, issued["status"]["token"], "PRIVATE KEY"):
        assert secret not in said


# ── What it calls ───────────────────────────────────────────────────────────────────────────────────


async def test_a_webhook_that_redirects_is_not_followed() -> None:
    reached: list[Request] = []

    async def inside(request: Request) -> listen.Answer:
        reached.append(request)
        return listen.Answer(body=b"{}")

    authority = Authority.create()
    shown = authority.issue("hooks", hosts=["hooks.default.svc"], server=True)
    context = server_context(CertificatePair(shown.certificate_pem, shown.key_pem))
    async with listen.serve(inside) as other:

        async def redirect(_: Request) -> listen.Answer:
            return listen.Answer(307, {"Location": f"{other}/metadata"}, b"")

        async with (
            listen.serve(redirect, ssl_context=context) as there,
            ApiServer(services={"default/hooks": f"127.0.0.1:{there.port}"}) as server,
        ):
            hooks = Hooks(authority=base64.b64encode(authority.certificate_pem).decode())
            await made(server, HOOKS, hooks.configuration())
            status, told = await ask_server(server, "POST", MAPS, {"metadata": {"name": "a"}})
    assert status == 500
    assert "failed calling webhook" in told["message"]
    assert reached == []


async def test_a_webhook_sees_no_credential_of_who_asked(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        await made(server, HOOKS, hooks.configuration())
        await made(server, MAPS, {"metadata": {"name": "a"}})
        assert server.token not in json.dumps(hooks.asked)


async def test_a_request_that_waits_for_a_webhook_ends_in_time(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        await made(server, HOOKS, hooks.configuration(timeoutSeconds=30))
        hooks.meeting = asyncio.Barrier(2)  # of two, and one is asked
        status, told = await ask_server(server, "POST", f"{MAPS}?timeout=300ms", {"metadata": {"name": "a"}})
        assert (status, told["reason"]) == (504, "Timeout")
        assert (await ask_server(server, "GET", f"{MAPS}/a"))[0] == 404


async def test_of_what_a_webhook_says_only_so_much_is_read(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        await made(server, HOOKS, hooks.configuration())
        hooks.answer = lambda _: {"allowed": True, "warnings": ["x" * (3 * 2**20)]}
        status, told = await ask_server(server, "POST", MAPS, {"metadata": {"name": "a"}})
    assert status == 500
    assert "failed calling webhook" in told["message"]
    assert len(told["message"]) < 10_000


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "file:///etc/passwd", "https://u:p@127.0.0.1/x", "x"])
async def test_a_webhook_is_reached_over_tls_or_not_at_all(url: str) -> None:
    async with ApiServer() as server:
        hook = {
            "name": "a.b.c",
            "clientConfig": {"url": url},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        status, _ = await ask_server(server, "POST", HOOKS, {"metadata": {"name": "a"}, "webhooks": [hook]})
        assert status == 422


# ── What is kept ────────────────────────────────────────────────────────────────────────────────────


async def test_no_name_or_value_is_taken_for_sql(tmp_path: Path) -> None:
    names = ["a'b", 'a"b', "a;DROP TABLE objects;--", "a\\b", "a?b", "a`b", "'||(select 1)||'"]
    async with ApiServer(tmp_path) as server:
        ask = Asking(server.transport())
        for name in names:
            rule = {"verbs": [name], "apiGroups": [name], "resources": [name]}
            await ask.create(ROLES, {"metadata": {"name": name}, "rules": [rule]})
        before = (await ask.get(ROLES)).json["items"]
    async with ApiServer(tmp_path) as server:
        after: list[Any] = (await Asking(server.transport()).get(ROLES)).json["items"]
    assert before == after
    assert set(names) <= {each["metadata"]["name"] for each in after}


async def test_what_is_in_a_list_is_what_may_be_read_and_nothing_beside_it() -> None:
    async with ApiServer() as server:
        ask = Asking(server.transport())
        await ask.create(MAPS, config_map("a", k="v"))
        await ask.create("/api/v1/namespaces", {"metadata": {"name": "default2"}})
        await ask.create("/api/v1/namespaces/default2/configmaps", config_map("b", k="v"))
        names = [each["metadata"]["name"] for each in (await ask.get(MAPS)).json["items"]]
        assert names == ["a"]
        for path in (f"{MAPS}/../../default2/configmaps/b", f"{MAPS}/..%2f..%2fdefault2%2fconfigmaps%2fb"):
            assert (await ask.get(path)).status in (400, 404)
