"""Who is let in to a whole server, and to what: certificates over TLS, tokens, roles, and no roles at all."""

from __future__ import annotations

import asyncio
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.tls import Authority, Identity
from setpoint.net.transport import Request
from setpoint.net.trust import CertificatePair, ssl_context
from setpoint.server.server import ApiServer, Authorization, Served
from tests.server.http.asking import DEFINITIONS, MAPS, Asking, config_map
from tests.server.test_limits import definition

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
RULE = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"]}
READS = {"metadata": {"name": "reads"}, "rules": [RULE]}
_DAY = timedelta(days=1)


def showing(user: Identity, served: Served, server: ApiServer) -> HttpTransport:
    pair = CertificatePair(user.certificate_pem, user.key_pem)
    context = ssl_context(ca=server.secrets.authority.certificate_pem, certificate=pair)
    return HttpTransport(Endpoint(served.url, ssl_context=lambda: context))


def binding(*subjects: dict[str, str]) -> dict[str, Any]:
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "reads"}
    return {"metadata": {"name": "reads"}, "roleRef": ref, "subjects": list(subjects)}


async def give_reading(admin: Asking, *subjects: dict[str, str]) -> None:
    await admin.create(f"{RBAC}/clusterroles", READS)
    await admin.create(f"{RBAC}/clusterrolebindings", binding(*subjects))


async def token_of(admin: Asking, name: str) -> str:
    await admin.create(ACCOUNTS, {"metadata": {"name": name}})
    made = await admin.create(f"{ACCOUNTS}/{name}/token", {})
    return str(made["status"]["token"])


async def test_a_certificate_of_our_authority_is_its_user_and_its_groups_are_its_organizations() -> None:
    async with ApiServer() as server, server.serve() as served:
        jane = server.secrets.authority.issue("jane", organizations=("devs", "ops"), client=True)
        async with showing(jane, served, server) as transport:
            who = await Asking(transport).create(WHO, {})
            assert who["status"]["userInfo"]["username"] == "jane"
            assert who["status"]["userInfo"]["groups"] == ["devs", "ops", "system:authenticated"]
            assert (await Asking(transport).get(MAPS)).status == 403
            await give_reading(Asking(server.transport()), {"kind": "Group", "name": "ops"})
            assert (await Asking(transport).get(MAPS)).status == 200


@pytest.mark.parametrize("how", ["of another authority", "to serve with", "expired"])
async def test_any_other_certificate_is_refused(how: str) -> None:
    async with ApiServer() as server, server.serve() as served:
        ours = server.secrets.authority
        match how:
            case "of another authority":
                shown = Authority.create().issue("jane", organizations=("system:masters",), client=True)
            case "to serve with":
                shown = ours.issue("jane", organizations=("system:masters",), hosts=["x"], server=True)
            case _:
                shown = ours.issue("jane", client=True, valid_for=-_DAY)
        async with showing(shown, served, server) as transport:
            with pytest.raises((ConnectionFailed, AnswerLost)):
                await transport(Request("GET", "/healthz"))


async def test_a_service_accounts_token_opens_what_its_roles_say() -> None:
    async with ApiServer() as server:
        admin = Asking(server.transport())
        robot = Asking(server.transport(token=await token_of(admin, "robot")))
        assert (await robot.get(MAPS)).message == (
            'configmaps is forbidden: User "system:serviceaccount:default:robot" cannot list resource '
            '"configmaps" in API group "" in the namespace "default"'
        )
        await give_reading(admin, {"kind": "ServiceAccount", "name": "robot", "namespace": "default"})
        assert (await robot.get(MAPS)).status == 200
        assert (await robot("POST", MAPS, config_map("x"))).status == 403
        await admin("DELETE", f"{ACCOUNTS}/robot")
        assert (await robot.get(MAPS)).status == 401


async def let_robot(admin: Asking, rule: dict[str, list[str]]) -> str:
    """The token of a service account that may do this, everywhere, and nothing else."""
    token = await token_of(admin, "robot")
    await admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": "reads"}, "rules": [rule]})
    robot = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    await admin.create(f"{RBAC}/clusterrolebindings", binding(robot))
    return token


async def define(admin: Asking, plural: str, kind: str, scope: str) -> None:
    made = definition(plural, kind, "ex.com")
    made["spec"]["scope"] = scope
    await admin.create(DEFINITIONS, made)
    async with asyncio.timeout(10):
        while f'"name":"{plural}"'.encode() not in (await admin.get("/apis/ex.com/v1")).body:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_permissions_on_a_kind_reach_no_object_of_a_kind_named_proxy(method: str) -> None:
    async with ApiServer() as server:
        admin = Asking(server.transport())
        await define(admin, "widgets", "Widget", "Cluster")
        await define(admin, "proxy", "Proxy", "Cluster")
        hidden = {"apiVersion": "ex.com/v1", "kind": "Proxy", "metadata": {"name": "widgets"}}
        await admin("POST", "/apis/ex.com/v1/proxy", hidden)
        rule = {"verbs": ["*"], "apiGroups": ["ex.com"], "resources": ["widgets"]}
        robot = Asking(server.transport(token=await let_robot(admin, rule)))
        assert (await robot.get("/apis/ex.com/v1/widgets")).status == 200
        got = await robot(method, "/apis/ex.com/v1/proxy/widgets")
        assert (got.status, got.message) == (
            405,
            'proxy is not supported on resources of kind "widgets.ex.com"',
        )


async def test_permissions_on_namespaces_status_list_no_kind_named_status() -> None:
    async with ApiServer() as server:
        admin = Asking(server.transport())
        await define(admin, "status", "Status", "Namespaced")
        within = "/apis/ex.com/v1/namespaces/default/status"
        hidden = {"apiVersion": "ex.com/v1", "kind": "Status", "metadata": {"name": "hidden"}}
        await admin("POST", within, hidden)
        rule = {"verbs": ["*"], "apiGroups": ["ex.com"], "resources": ["namespaces/status"]}
        robot = Asking(server.transport(token=await let_robot(admin, rule)))
        for path in (within, f"{within}/hidden"):
            got = await robot.get(path)
            assert got.status == 404, got.body


async def test_a_group_without_a_name_is_no_alias_of_the_core_group() -> None:
    async with ApiServer() as server:
        admin = Asking(server.transport())
        await admin.create("/api/v1/namespaces/default/secrets", {"metadata": {"name": "hidden"}})
        rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["secrets"]}
        robot = Asking(server.transport(token=await let_robot(admin, rule)))
        assert (await robot.get("/api/v1/secrets")).status == 200
        for asker in (admin, robot):
            got = await asker.get("/apis//v1/secrets")
            assert (got.status, got.body) == (404, b"404 page not found\n")


async def test_a_watch_is_authorized_when_it_begins_and_goes_on() -> None:
    async with ApiServer() as server:
        admin = Asking(server.transport())
        await give_reading(admin, {"kind": "User", "name": "jane"})
        headers = {"Impersonate-User": "jane"}
        watch = await server.transport()(Request("GET", f"{MAPS}?watch=1", headers))
        events = aiter(watch.chunks())
        await admin("DELETE", f"{RBAC}/clusterrolebindings/reads")
        assert (await admin("GET", MAPS, headers=headers)).status == 403
        await admin.create(MAPS, config_map("later"))
        async with asyncio.timeout(10):
            assert b"later" in await anext(events)
        await watch.close()


async def test_tokens_stay_good_across_a_restart_and_the_key_is_its_owners_alone(tmp_path: Path) -> None:
    async with ApiServer(tmp_path) as server:
        token = await token_of(Asking(server.transport()), "robot")
        keys = (await Asking(server.transport()).get("/openid/v1/jwks")).json
    assert stat.S_IMODE((tmp_path / "service-accounts.key").stat().st_mode) == 0o600
    async with ApiServer(tmp_path) as server:
        who = await Asking(server.transport(token=token)).create(WHO, {})
        assert who["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
        assert (await Asking(server.transport()).get("/openid/v1/jwks")).json == keys
    async with ApiServer() as other:
        await Asking(other.transport()).create(ACCOUNTS, {"metadata": {"name": "robot"}})
        assert (await Asking(other.transport(token=token)).get("/api")).status == 401


async def test_without_a_token_asked_for_no_key_is_made(tmp_path: Path) -> None:
    async with ApiServer(tmp_path) as server:
        await Asking(server.transport()).create(MAPS, config_map("x"))
    assert not (tmp_path / "service-accounts.key").exists()


async def test_always_allow_allows_always() -> None:
    async with ApiServer(authorization="always-allow") as server:
        admin = Asking(server.transport())
        robot = Asking(server.transport(token=await token_of(admin, "robot")))
        assert (await robot("POST", MAPS, config_map("x"))).status == 201
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        await robot.create(f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "rules": [everything]})
        assert (await Asking(server.transport(token="")).get(MAPS)).status == 401, "who you are still counts"
        may = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}}
        said = await robot.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", may)
        assert said["status"] == {"allowed": True}


async def test_a_review_that_says_its_kind_twice_the_second_time_null_is_answered_with_it() -> None:
    question = b'{"kind":"SelfSubjectRulesReview","kind":null,"spec":{"namespace":"default"}}'
    async with ApiServer(authorization="always-allow") as server:
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        json = {"Content-Type": "application/json"}
        said = await Asking(server.transport())("POST", path, question, json)
        assert (said.status, said.json["kind"]) == (201, "SelfSubjectRulesReview")


async def test_another_authorization_is_refused_and_the_known_ones_are_named() -> None:
    wrong: Authorization = "none"  # type: ignore[assignment]
    with pytest.raises(ValueError, match="one of rbac, always-allow, not 'none'"):
        ApiServer(authorization=wrong)


async def test_users_of_a_token_file_are_let_in(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('psst,bob,7,"readers"\n')
    async with ApiServer(token_file=file) as server:
        bob = Asking(server.transport(token="psst"))
        assert (await bob.get(MAPS)).status == 403
        await give_reading(Asking(server.transport()), {"kind": "Group", "name": "readers"})
        assert (await bob.get(MAPS)).status == 200
        who = await bob.create(WHO, {})
        assert who["status"]["userInfo"]["uid"] == "7"


async def test_roles_of_a_new_server_are_there_and_nothing_of_theirs_is_secret() -> None:
    async with ApiServer() as server:
        roles = (await Asking(server.transport()).get(f"{RBAC}/clusterroles")).json["items"]
        assert {"cluster-admin", "admin", "edit", "view"} <= {one["metadata"]["name"] for one in roles}
