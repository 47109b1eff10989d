"""The API through its app: what every answer has, and what is refused before the registry is asked."""

from __future__ import annotations

import gzip
import logging
import re
from typing import Any

import msgspec
import pytest

from setpoint.api.yaml import load
from setpoint.net.transport import Request
from setpoint.server.http.app import MAX_BODY
from setpoint.server.registry.requests import Ask
from setpoint.server.server import ApiServer
from setpoint.server.storage.memory import MemoryStore
from tests.server.http.asking import MAPS, PARTIAL, PARTIAL_LIST, TABLE, Asking, asking, config_map


async def test_every_answer_carries_what_clients_look_for() -> None:
    async with asking() as ask:
        for target in (
            "/version",
            "/healthz",
            "/api/v1/pods",
            "/nope",
            "/apis",
            "/api/v1/foos",
            f"{MAPS}/none",
        ):
            got = await ask.get(target)
            assert re.fullmatch(r"[0-9a-f-]{36}", got.headers["Audit-Id"]), target
            assert got.headers["Cache-Control"] == "no-cache, private"
            assert got.headers["X-Kubernetes-Pf-Flowschema-Uid"]
            assert got.headers["X-Kubernetes-Pf-Prioritylevel-Uid"]


async def test_an_audit_id_that_is_given_comes_back_unless_it_is_rubbish() -> None:
    async with asking() as ask:
        assert (await ask.get("/version", Audit_Id="mine")).headers["Audit-Id"] == "mine"
        assert (await ask.get("/version", Audit_Id="x" * 999)).headers["Audit-Id"] != "x" * 999
        assert "é" not in (await ask.get("/version", Audit_Id="é")).headers["Audit-Id"]


async def test_who_shows_no_credential_gets_health_and_version_and_nothing_else() -> None:
    async with ApiServer() as server:
        ask = Asking(server.transport(token=""))
        for target in ("/version", "/healthz", "/livez", "/readyz?verbose"):
            assert (await ask.get(target)).status == 200, target
        for target in ("/", "/api", "/apis", "/api/v1/pods", "/openapi/v3", "/nope"):
            got = await ask.get(target)
            assert (got.status, got.json["reason"]) == (401, "Unauthorized"), target
            assert "X-Kubernetes-Pf-Flowschema-Uid" not in got.headers


async def test_an_unknown_group_is_a_page_that_is_not_there_and_an_unknown_resource_a_status() -> None:
    async with asking() as ask:
        for target in (
            "/nope",
            "/apis/nope",
            "/apis/nope/v1",
            "/apis/nope/v1/foos",
            "/healthz/nope",
            "/openapi",
        ):
            got = await ask.get(target)
            assert (got.status, got.body) == (404, b"404 page not found\n"), target
            assert got.headers["Content-Type"] == "text/plain; charset=utf-8"
        for target in (
            "/api/v2",
            "/api/v1/foos",
            "/apis/apps/v9",
            "/apis/apps/v9/foos",
            "/apis/apps/v1/foos",
        ):
            got = await ask.get(target)
            assert (got.status, got.json["details"]) == (404, {}), target
            assert got.message == "the server could not find the requested resource"


async def test_a_host_that_is_not_ours_is_refused() -> None:
    async with asking() as ask:
        got = await ask.get("/version", Host="evil.example")
        assert (got.status, got.json["kind"]) == (403, "Status")
        assert (await ask.get("/version", Host="localhost:6443")).status == 200


async def test_people_get_json_that_they_can_read() -> None:
    async with asking() as ask:
        await ask.create(MAPS, config_map("a", k="v"))
        compact = (await ask.get(f"{MAPS}/a")).body
        assert compact.startswith(b'{"kind":"ConfigMap","apiVersion":"v1",')
        assert compact.endswith(b"}\n")
        pretty = (await ask.get(f"{MAPS}/a?pretty=true")).body
        assert pretty.startswith(b'{\n  "kind": "ConfigMap",\n  "apiVersion": "v1",\n')
        assert msgspec.json.decode(pretty) == msgspec.json.decode(compact)
        for agent in ("curl/8", "Wget/1", "Mozilla/5.0 (X11)"):
            assert (await ask.get(f"{MAPS}/a", User_Agent=agent)).body == pretty
        assert (await ask.get(f"{MAPS}/a?pretty=0", User_Agent="curl/8")).body == compact
        assert (await ask.get(f"{MAPS}/none", User_Agent="curl/8")).body.startswith(b'{\n  "kind": "Status"')


async def test_yaml_is_written_for_who_wants_it_errors_too() -> None:
    async with asking() as ask:
        await ask.create(MAPS, config_map("a", k="v"))
        got = await ask.get(f"{MAPS}/a", accept="application/yaml")
        assert got.headers["Content-Type"] == "application/yaml"
        assert got.body.startswith(b"apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n")
        missing = load((await ask.get(f"{MAPS}/none", accept="application/yaml")).body)
        assert (missing["kind"], missing["code"]) == ("Status", 404)


async def test_large_answers_are_packed_for_who_takes_that() -> None:
    async with asking() as ask:
        await ask.create(MAPS, config_map("large", k="v" * 200_000))
        plain = await ask.get(f"{MAPS}/large")
        assert "Content-Encoding" not in plain.headers
        packed = await ask.get(f"{MAPS}/large", Accept_Encoding="gzip, deflate")
        assert (packed.headers["Content-Encoding"], packed.headers["Vary"]) == ("gzip", "Accept-Encoding")
        assert gzip.decompress(packed.body) == plain.body
        small = await ask.get("/api/v1/namespaces/default", Accept_Encoding="gzip")
        assert "Content-Encoding" not in small.headers


async def test_a_body_that_is_too_long_is_a_status() -> None:
    async with asking() as ask:
        got = await ask("POST", MAPS, b"x" * (MAX_BODY + 1))
        assert (got.status, got.json["reason"]) == (413, "RequestEntityTooLarge")
        assert got.message == "Request entity too large: limit is 3145728"


async def test_a_packed_body_is_refused() -> None:
    async with asking() as ask:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        got = await ask("POST", MAPS, gzip.compress(msgspec.json.encode(config_map("a"))), headers)
        assert (got.status, got.json["reason"]) == (415, "UnsupportedMediaType")


async def test_our_own_mistake_is_a_500_whose_trace_is_in_the_log_without_the_body(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ApiServer() as server:

        async def fails(ask: Ask) -> Any:
            raise ZeroDivisionError

        monkeypatch.setattr(server.registry, "create", fails)
        with caplog.at_level(logging.ERROR):
            got = await Asking(server.transport())("POST", f"{MAPS}?a=b", config_map("a", secret="hush"))
        assert (got.status, got.json["reason"]) == (500, "InternalError")
        assert "ZeroDivisionError" in caplog.text
        assert "hush" not in caplog.text
        assert "ZeroDivisionError" not in got.body.decode()


async def test_warnings_are_headers_of_their_own() -> None:
    async with asking() as ask:
        got = await ask("POST", f"{MAPS}?dryRun=All", {**config_map("w"), 'foo "x" \\ é': 1, "dat": 2})
        assert got.status == 201
        said = set(got.headers["Warning"].split(", "))
        assert said == {
            '299 - "unknown field \\"dat\\""',
            '299 - "unknown field \\"foo \\\\\\"x\\\\\\" \\\\\\\\ é\\""',
        }


async def test_a_deprecated_resource_warns_in_every_answer() -> None:
    async with asking() as ask:
        got = await ask.get("/api/v1/namespaces/default/endpoints")
        told = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
        assert got.headers["Warning"] == told


async def test_a_table_has_the_columns_and_a_row_for_each() -> None:
    async with asking() as ask:
        await ask.create(MAPS, config_map("a", k="v"))
        await ask.create(MAPS, config_map("b"))
        table = (await ask.get(MAPS, accept=f"{TABLE},application/json")).json
        assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert [row["cells"][:2] for row in table["rows"]] == [["a", 1], ["b", 0]]
        assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        assert table["rows"][0]["object"]["metadata"]["name"] == "a"
        one = (await ask.get(f"{MAPS}/a?includeObject=Object", accept=TABLE)).json
        assert one["metadata"] == {"resourceVersion": one["rows"][0]["object"]["metadata"]["resourceVersion"]}
        assert one["rows"][0]["object"]["data"] == {"k": "v"}
        none = (await ask.get(f"{MAPS}?includeObject=None&limit=1", accept=TABLE)).json
        assert none["rows"][0]["object"] is None
        assert none["metadata"]["remainingItemCount"] >= 1
        assert none["metadata"]["continue"]
        wrong = await ask.get(f"{MAPS}?includeObject=Foo", accept=TABLE)
        assert (wrong.status, wrong.json["reason"]) == (400, "BadRequest")


async def test_metadata_alone_of_one_and_of_many() -> None:
    async with asking() as ask:
        made = await ask.create(MAPS, config_map("a", k="v"))
        one = (await ask.get(f"{MAPS}/a", accept=PARTIAL)).json
        assert one == {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": made["metadata"],
        }
        many = (await ask.get(MAPS, accept=PARTIAL_LIST)).json
        assert many["kind"] == "PartialObjectMetadataList"
        assert one in many["items"]
        assert (await ask.get(MAPS, accept=PARTIAL)).status == 406
        assert (await ask.get(f"{MAPS}/a", accept=PARTIAL_LIST)).status == 406


async def test_items_of_a_list_do_not_say_their_kind() -> None:
    async with asking() as ask:
        await ask.create(MAPS, config_map("a", k="v"))
        listed = (await ask.get(MAPS)).json
        assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
        assert [set(item) for item in listed["items"] if item["metadata"]["name"] == "a"] == [
            {"metadata", "data"}
        ]
        assert "continue" not in listed["metadata"]
        empty = (await ask.get("/api/v1/namespaces/nobody/configmaps")).body
        assert re.fullmatch(
            rb'\{"kind":"ConfigMapList","apiVersion":"v1","metadata":\{"resourceVersion":"\d+"\},"items":\[\]\}\n',
            empty,
        )


async def test_a_deletion_answers_with_a_status_in_whatever_form() -> None:
    async with asking() as ask:
        await ask.create(MAPS, config_map("a"))
        got = await ask("DELETE", f"{MAPS}/a", headers={"Accept": TABLE})
        assert (got.json["kind"], got.json["status"]) == ("Status", "Success")


async def test_the_version_is_one_that_clients_parse() -> None:
    async with asking() as ask:
        got = (await ask.get("/version")).json
        assert (got["major"], got["minor"], got["gitVersion"]) == ("1", "37", "v1.37.1")
        assert (await ask("POST", "/version")).status == 405


async def test_the_root_lists_what_there_is_to_ask_for() -> None:
    async with asking() as ask:
        paths = (await ask.get("/")).json["paths"]
        assert paths == sorted(paths)
        for path in paths:
            assert (await ask.get(path)).status == 200, path


async def test_health_is_told_check_by_check() -> None:
    async with asking() as ask:
        assert (await ask.get("/readyz")).body == b"ok"
        told = (await ask.get("/livez?verbose&exclude=storage")).body.decode().splitlines()
        assert told == ["[+]ping ok", "[+]storage excluded: ok", "livez check passed"]
        assert (await ask.get("/readyz/storage")).body == b"ok"
        assert (await ask("POST", "/healthz")).status == 200


async def test_a_store_that_cannot_write_is_not_ready_and_strangers_are_not_told_why() -> None:
    class Full(MemoryStore):
        def trouble(self) -> str:
            return "no space left"

    async with ApiServer(store=Full()) as server:
        ask = Asking(server.transport())
        told = await ask.get("/readyz")
        assert told.status == 500
        assert told.body.decode().splitlines() == [
            "[+]ping ok",
            "[-]storage failed: reason withheld",
            "readyz check failed",
        ]


async def test_the_app_is_asked_as_it_is_by_a_transport() -> None:
    async with ApiServer(token="given") as server:
        answer = await server.app(Request("GET", "/api/v1", {"Authorization": "Bearer given"}))
        assert answer.status == 200
