"""What the servers of the benches know: what was asked, what was encoded, what was changed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from bench.peers import objects, reconcile, steady
from bench.peers.process import Failed
from bench.peers.recorded import Recording
from bench.peers.servers import Audited, Real, writes


def entry(request: str, verb: str, stage: str = "ResponseComplete") -> str:
    return json.dumps({"auditID": request, "verb": verb, "stage": stage}) + "\n"


def test_every_request_counts_once_whether_it_has_ended_or_not(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(entry("a", "list") + entry("b", "watch", "ResponseStarted") + entry("c", "patch"))
    audited = Audited(log)
    assert audited.verbs() == {"list": 1, "watch": 1, "patch": 1}
    half = entry("d", "create")
    with log.open("a") as more:
        more.write(entry("b", "watch") + half[:10])
    assert audited.verbs() == {"list": 1, "watch": 1, "patch": 1}
    with log.open("a") as more:
        more.write(half[10:])
    assert audited.verbs()["create"] == 1


def test_whatever_may_change_something_is_a_write() -> None:
    assert writes(Counter(get=1, list=2, watch=4)) == 0
    assert writes(Counter(get=1, create=2, update=4, patch=8, delete=16, deletecollection=32)) == 62


@pytest.mark.parametrize("kind", ["Pod", "Workload"])
def test_what_is_prepared_is_not_encoded_when_it_is_asked_for(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording(1_200, 30)
    recording.prepare(kind, ["whole", "pages", "stream"])

    def encode(*_: object, **__: object) -> bytes:
        raise AssertionError("encoded inside the clock")

    monkeypatch.setattr(objects, "json_of", encode)
    monkeypatch.setattr(objects, "protobuf_of", encode)
    for encoding in ("json", "protobuf") if kind == "Pod" else ("json",):
        for limit, begin in ((0, 0), (500, 0), (500, 500), (500, 1000)):
            assert recording.page(kind, encoding, limit, begin)
        assert recording.streamed(kind, encoding)
        assert recording.changes(kind, encoding)


class Answers:
    """A cluster with one WebApp and its child."""

    def __init__(self, status: dict[str, Any]) -> None:
        self._status = status

    def ask(self, _: str, path: str) -> Any:
        if path.endswith("configmaps"):
            metadata = {"name": "webapp-0", "ownerReferences": [{"uid": "1"}]}
            return {"items": [{"metadata": metadata, "data": {"image": "a", "replicas": "1"}}]}
        metadata = {"name": "webapp-0", "uid": "1"}
        webapp = {"metadata": metadata, "spec": {"image": "a", "replicas": 1}, "status": self._status}
        return {"items": [webapp]}


def test_a_reconcile_is_whole_only_with_all_of_its_status() -> None:
    reconcile.check("someone", cast("Real", Answers({"observedImage": "a", "replicas": 1})), "shop", 1)
    for status in ({"observedImage": "a"}, {"observedImage": "a", "replicas": 2}):
        with pytest.raises(Failed, match="whole work"):
            reconcile.check("someone", cast("Real", Answers(status)), "shop", 1)


class Refuses:
    def connection(self) -> None:
        raise ConnectionRefusedError("nobody is there")


def test_a_change_that_cannot_be_made_is_not_the_contestants_fault() -> None:
    changes = steady.Changes(cast("Real", Refuses()), "shop", count=1, events=1)
    changes.check()
    for thread in changes.start():
        thread.join(10)
    with pytest.raises(Failed, match="changes could not be made: nobody is there"):
        changes.check()
