"""What kubectl alone looks at: a Scale as a table, events of two groups, who wants a certificate."""

from __future__ import annotations

from setpoint.api.yaml import load
from tests.outside.kubectl import MANIFESTS
from tests.server.http.asking import TABLE, asking

APPS = "/apis/apps/v1/namespaces/default/deployments"
CORE, EVENTS = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"


async def test_a_scale_has_columns_of_its_own() -> None:
    async with asking() as ask:
        labels = {"a": "b"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        await ask.create(APPS, {"metadata": {"name": "web"}, "spec": spec})
        table = (await ask.get(f"{APPS}/web/scale", TABLE)).json
        assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
        assert table["rows"][0]["cells"][:3] == ["web", 2, 0]
        assert table["rows"][0]["object"]["metadata"]["name"] == "web"


async def test_open_types_are_called_by_their_names_in_openapi() -> None:
    async with asking() as ask:
        core = (await ask.get("/openapi/v3/api/v1")).json["components"]["schemas"]
        entry = core["io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry"]["properties"]
        assert entry["fieldsV1"]["allOf"][0]["$ref"].endswith("meta.v1.FieldsV1")
        claim = core["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]["accessModes"]
        assert "ReadWriteOnce" in claim["items"]["enum"]
        assert "enum" not in claim


async def test_an_event_is_found_by_what_it_is_about_whichever_group_it_was_written_in() -> None:
    async with asking() as ask:
        about = {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "default"}
        event = {
            "metadata": {"name": "e"},
            "regarding": about,
            "reason": "Tried",
            "action": "Try",
            "type": "Normal",
            "reportingController": "example.com/tries",
            "reportingInstance": "one",
            "eventTime": "2026-01-01T00:00:00.000000Z",
        }
        await ask.create(EVENTS, event)
        for selector in ("involvedObject.name=a", "involvedObject.kind=Pod,reportingComponent!=b"):
            assert len((await ask.get(f"{CORE}?fieldSelector={selector}")).json["items"]) == 1
        assert len((await ask.get(f"{EVENTS}?fieldSelector=regarding.name=a")).json["items"]) == 1
        assert (await ask.get(f"{CORE}?fieldSelector=involvedObject.name=b")).json["items"] == []


async def test_a_signing_request_says_who_asked_whatever_it_says_itself() -> None:
    async with asking() as ask:
        manifest = load((MANIFESTS / "csr.yaml").read_text())
        manifest["spec"]["username"] = "somebody"
        made = await ask.create("/apis/certificates.k8s.io/v1/certificatesigningrequests", manifest)
        assert made["spec"]["username"] == "kubernetes-admin"
        assert "system:masters" in made["spec"]["groups"]
