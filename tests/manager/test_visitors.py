"""The promises of ``manager/visitors.py``, asked of a server of ours, and of ``serving.py``."""

from __future__ import annotations

import asyncio
import http.client
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from setpoint import Manager
from setpoint.client.client import Client
from setpoint.errors import ConfigError
from setpoint.manager import serving
from setpoint.manager.probes import Probes
from setpoint.manager.serving import Certificate
from setpoint.manager.visitors import BAD_FOR, GOOD_FOR, RULES, Visitors
from setpoint.metrics import Metrics
from setpoint.net.listen import Address
from setpoint.net.tls import Authority, Identity
from setpoint.net.transport import Request, Response, Transport
from setpoint.server.server import ApiServer
from tests.server.http.asking import Asking

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
READS = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


async def account(admin: Asking, name: str, rules: list[dict[str, Any]] | None = None) -> str:
    """A service account with these rules; its token."""
    await admin.create(ACCOUNTS, {"metadata": {"name": name}})
    if rules is not None:
        await admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subject = {"kind": "ServiceAccount", "namespace": "default", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}
        await admin.create(f"{RBAC}/clusterrolebindings", binding)
    return str((await admin.create(f"{ACCOUNTS}/{name}/token", {}))["status"]["token"])


class World:
    """A server, an operator's account on it, and a clock that is turned by hand."""

    def __init__(self, server: ApiServer, admin: Asking, token: str) -> None:
        self.server = server
        self.admin = admin
        self.asked: list[str] = []
        self.now = 1_000.0
        self.client = Client(transport=self._remembering(server.transport(token)))
        self.visitors = Visitors(self.client, now=lambda: self.now)

    def _remembering(self, transport: Transport) -> Transport:
        async def send(request: Request) -> Response:
            self.asked.append(request.target.partition("?")[0].rpartition("/")[2])
            return await transport(request)

        return send

    async def code(self, token: str) -> int:
        return (await self.visitors.judge(f"Bearer {token}" if token else "", "/metrics")).code


@asynccontextmanager
async def world(rules: list[dict[str, Any]] | None = None) -> AsyncIterator[World]:
    async with ApiServer() as server:
        admin = Asking(server.transport())
        made = World(server, admin, await account(admin, "operator", RULES if rules is None else rules))
        async with made.client:
            yield made


async def test_who_may_get_the_metrics_gets_in_and_nobody_else() -> None:
    async with world() as here:
        assert await here.code(await account(here.admin, "prometheus", READS)) == 200
        assert await here.code(await account(here.admin, "nosy")) == 403
        assert await here.code("wrong") == 401
        assert await here.code("") == 401


@pytest.mark.parametrize(
    "shown", ["", "Bearer", "Bearer ", "Basic dTpw", "bearer \xe9", "Bearer " + "x" * 20_000]
)
async def test_what_is_no_token_is_not_even_asked_about(shown: str) -> None:
    async with world() as here:
        assert (await here.visitors.judge(shown, "/metrics")).code == 401
        assert here.asked == []


async def test_the_server_is_asked_once_in_a_while_and_a_permission_that_was_taken_ends() -> None:
    async with world() as here:
        token = await account(here.admin, "prometheus", READS)
        for _ in range(5):
            assert await here.code(token) == 200
        assert here.asked == ["tokenreviews", "subjectaccessreviews"]
        await here.admin("DELETE", f"{RBAC}/clusterrolebindings/prometheus")
        here.now += GOOD_FOR
        assert await here.code(token) == 403
        here.now += BAD_FOR
        await here.admin("DELETE", f"{ACCOUNTS}/prometheus")
        assert await here.code(token) == 401


async def test_a_permission_that_was_given_is_seen_soon() -> None:
    async with world() as here:
        token = await account(here.admin, "late")
        assert await here.code(token) == 403
        subject = {"kind": "ServiceAccount", "namespace": "default", "name": "late"}
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "late"}
        await here.admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": "late"}, "rules": READS})
        binding = {"metadata": {"name": "late"}, "roleRef": ref, "subjects": [subject]}
        await here.admin.create(f"{RBAC}/clusterrolebindings", binding)
        assert await here.code(token) == 403
        here.now += BAD_FOR
        assert await here.code(token) == 200


async def test_who_cannot_ask_lets_nobody_in_and_says_what_it_lacks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world(rules=[]) as here:
        token = await account(here.admin, "prometheus", READS)
        assert await here.code(token) == 500
        assert "cannot create resource" in caplog.text
        assert "tokenreviews" in caplog.text
        assert token not in caplog.text


async def test_many_who_come_at_once_are_asked_about_once() -> None:
    async with world() as here:
        token = await account(here.admin, "prometheus", READS)
        assert set(await asyncio.gather(*(here.code(token) for _ in range(20)))) == {200}
        assert here.asked == ["tokenreviews", "subjectaccessreviews"]


async def test_strangers_do_not_fill_the_memory_and_no_token_is_kept() -> None:
    async with world() as here:
        for number in range(1_100):
            await here.code(f"hunter{number}")
        assert repr(here.visitors) == "<Visitors, 1000 known>"
        assert "hunter" not in str(vars(here.visitors))


# ── Served ──────────────────────────────────────────────────────────────────────────────────────────


def scrape(at: Address | None, token: str = "", context: ssl.SSLContext | None = None) -> tuple[int, str]:
    assert at is not None
    if context is None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(at.host, at.port, timeout=30, context=context)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


async def test_a_managers_metrics_are_for_those_whom_the_server_lets_get_them() -> None:
    async with ApiServer() as server:
        admin = Asking(server.transport())
        operator = await account(admin, "operator", RULES)
        good, nosy = await account(admin, "prometheus", READS), await account(admin, "nosy")
        async with Client(transport=server.transport(operator)) as client:
            manager = Manager(client=client, metrics_address="127.0.0.1:0", metrics_secure=True)
            async with manager:
                at = manager.probes.metrics_at
                assert str(at).startswith("https://")
                status, text = await asyncio.to_thread(scrape, at, good)
                assert status == 200
                assert "process_start_time_seconds" in text
                assert await asyncio.to_thread(scrape, at) == (401, "Unauthorized: show a bearer token\n")
                refused = "Forbidden: system:serviceaccount:default:nosy may not get /metrics\n"
                assert await asyncio.to_thread(scrape, at, nosy) == (403, refused)


async def test_health_and_secured_metrics_do_not_share_an_address() -> None:
    async with world() as here:
        with pytest.raises(ValueError, match="give secured metrics another one"):
            Manager(client=here.client, health_address=":8080", metrics_address=":8080", metrics_secure=True)
        with pytest.raises(ValueError, match="for secured metrics alone"):
            Manager(client=here.client, metrics_address=":8080", metrics_certificate="tls")


@pytest.mark.parametrize(("address", "is_told"), [("127.0.0.1:0", False), (":0", True), ("0.0.0.0:0", True)])
async def test_metrics_that_are_open_to_everybody_are_told_so(
    address: str, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    probes = Probes(Metrics(), metrics_address=address)
    task = asyncio.create_task(probes.run())
    await probes.wait_ready()
    task.cancel()
    await asyncio.wait({task})
    told = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert bool(told) == is_told
    assert all("--metrics-secure" in each for each in told)


# ── The certificate ─────────────────────────────────────────────────────────────────────────────────


def keep(folder: Path, identity: Identity) -> None:
    (folder / "tls.crt").write_bytes(identity.certificate_pem)
    (folder / "tls.key").write_bytes(identity.key_pem)


async def test_a_given_certificate_is_shown_and_its_successor_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "LOOK_EVERY", 0.0)
    first, second = Authority.create("first"), Authority.create("second")
    trusting = [ssl.create_default_context(cadata=each.certificate_pem.decode()) for each in (first, second)]
    keep(tmp_path, first.issue("metrics", hosts=["127.0.0.1"], server=True))
    async with world() as here:
        manager = Manager(
            client=here.client,
            metrics_address="127.0.0.1:0",
            metrics_secure=True,
            metrics_certificate=tmp_path,
        )
        async with manager:
            at = manager.probes.metrics_at
            assert (await asyncio.to_thread(scrape, at, "", trusting[0]))[0] == 401
            keep(tmp_path, second.issue("metrics", hosts=["127.0.0.1"], server=True))
            assert (await asyncio.to_thread(scrape, at, "", trusting[1]))[0] == 401
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.to_thread(scrape, at, "", trusting[0])


def test_a_certificate_that_cannot_be_used_is_told_and_the_last_good_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "LOOK_EVERY", 0.0)
    with pytest.raises(ConfigError, match=r"read tls\.crt and tls\.key of .*No such file"):
        Certificate(tmp_path)
    authority = Authority.create()
    keep(tmp_path, authority.issue("metrics", server=True))
    certificate = Certificate(tmp_path)
    good = certificate()
    assert certificate() is good, "what has not changed is not read again"
    (tmp_path / "tls.key").write_bytes(authority.issue("other", server=True).key_pem)
    assert certificate() is good
    assert "the key does not belong to the certificate" in caplog.text
    assert "the last good certificate is still shown" in caplog.text
    keep(tmp_path, authority.issue("renewed", server=True))
    assert certificate() is not good
