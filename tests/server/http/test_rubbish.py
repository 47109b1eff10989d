"""Whatever is asked, the answer is Kubernetes': never our own mistake, never nothing."""

from __future__ import annotations

import random
import string

import pytest

from tests.server.http.asking import MAPS, TABLE, Asking, asking, config_map

ASKED = 3000
WORDS = [
    "api",
    "apis",
    "v1",
    "apps",
    "namespaces",
    "default",
    "pods",
    "configmaps",
    "a",
    "deployments",
    "status",
    "scale",
    "watch",
    "openapi",
    "v3",
    "healthz",
    "version",
    ".",
    "..",
    "%2e%2e",
    "%2f",
    "%00",
    "%ff",
    "%",
    "é",
    "*",
    "events.k8s.io",
    "events",
    "log",
    "finalize",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
]
NAMES = [
    "watch",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "pretty",
    "hash",
    "verbose",
    "timeoutSeconds",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "includeObject",
    "propagationPolicy",
    "gracePeriodSeconds",
    "orphanDependents",
    "exclude",
]
VALUES = [
    "",
    "a in (",
    *["0", "1", "-1", "true", "abc", "99999999999999999999", "a=b", "!a", "All", "%zz", "%00", "é", "Exact"],
]
ACCEPTS = [
    "",
    TABLE,
    *[
        "*/*",
        "application/json",
        "application/yaml",
        "text/plain",
        ";;;",
        "a/b;q=x,,",
        "application/json;as=",
    ],
]
PATCHES = ["merge-patch+json", "json-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"]
TYPES = ["", "x", *(f"application/{one}" for one in ("json", "yaml", "vnd.kubernetes.protobuf", *PATCHES))]
BODIES = [
    *b'{ {} null [] "x" k8s\x00\x01\x02 {"metadata":3}'.split(), b"", b"\xff\xfe", b"a: &a [*a]", b"1" * 5000,
]  # fmt: skip
METHODS = ["GET", "GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


def target(chance: random.Random) -> str:
    if chance.random() < 0.3:
        base = chance.choice([MAPS, f"{MAPS}/a", "/apis/apps/v1/deployments", "/api/v1/namespaces/default"])
    else:
        base = "/" + "/".join(chance.choices(["", "x" * 300, *WORDS], k=chance.randrange(8)))
    query = [f"{chance.choice(NAMES)}={chance.choice(VALUES)}" for _ in range(chance.randrange(4))]
    if chance.random() < 0.1:
        query.append("".join(chance.choices(string.printable, k=3)))
    return f"{base}?{'&'.join(query)}" if query else base


async def one(ask: Asking, chance: random.Random) -> None:
    method, asked = chance.choice(METHODS), target(chance)
    headers = {"Accept": chance.choice(ACCEPTS), "Content-Type": chance.choice(TYPES)}
    body = chance.choice(BODIES) if method in ("POST", "PUT", "PATCH", "DELETE") else None
    got = await ask(method, asked, body, headers)
    assert got.status != 500 or b"see the server" not in got.body, (method, asked, headers, body)
    assert got.headers["Audit-Id"]
    is_json = got.headers.get("Content-Type") == "application/json"
    if got.status >= 400 and is_json and method != "HEAD":
        assert (got.json["kind"], got.json["code"]) == ("Status", got.status)


@pytest.mark.virtual_time
async def test_no_request_is_too_odd_for_an_answer() -> None:
    chance = random.Random(7)
    async with asking() as ask:
        await ask.create(MAPS, config_map("a", k="v"))
        for _ in range(ASKED):
            await one(ask, chance)
