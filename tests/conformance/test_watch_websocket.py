"""A watch over a WebSocket says what the same watch over HTTP says, a line in each message.

What is asserted here of frames, subprotocols and tokens was seen at the real server, which is why each test
runs on both.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest

from setpoint.testing.kube import ControlPlane
from tests.conformance.asking import Asker, Step
from tests.conformance.frames import CLOSE, PING, PONG, TEXT, Opened, Refused, opened
from tests.conformance.planes import NewPlane

MAPS = "/api/v1/namespaces/default/configmaps"
ENDING = "watch=1&timeoutSeconds=1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
BEARER = "base64url.bearer.authorization.k8s.io."


class Peer:
    """Opens WebSockets to one server."""

    def __init__(self, plane: ControlPlane) -> None:
        self.asker = Asker(plane)
        self._url = plane.url
        self._known = ssl.create_default_context(cafile=str(plane.ca_file))
        self._known.load_cert_chain(plane.admin_certificate, plane.admin_key)
        self._stranger = ssl.create_default_context(cafile=str(plane.ca_file))

    def open(
        self, target: str, *, protocols: Sequence[str] = (), accept: str = "", is_stranger: bool = False
    ) -> AbstractContextManager[Opened]:
        context = self._stranger if is_stranger else self._known
        return opened(self._url, target, context, protocols=protocols, accept=accept)

    def refused(self, target: str, **more: Any) -> int:
        with pytest.raises(Refused) as error, self.open(target, **more):
            pass
        return error.value.code

    def make(self, collection: str, body: dict[str, Any]) -> dict[str, Any]:
        status, data = self.asker.ask(Step("POST", collection, body))
        assert status == 201, data
        found: dict[str, Any] = json.loads(data)
        return found


@pytest.fixture(scope="module")
def peer(new_plane: NewPlane) -> Iterator[Peer]:
    with new_plane() as plane:
        peer = Peer(plane)
        for name in ("a", "b"):
            peer.make(MAPS, {"metadata": {"name": name, "labels": {"of": "test"}}, "data": {"e": "é<&>"}})
        yield peer
        peer.asker.close()


def until_closed(websocket: Opened) -> list[str]:
    """All messages, each of which is one frame of text; then it is closed in order."""
    found = []
    while (frame := websocket.frame()).kind != CLOSE:
        assert (frame.kind, frame.is_last) == (TEXT, True)
        found.append(frame.data.decode())
    assert frame.data == (1000).to_bytes(2)
    websocket.send(CLOSE, frame.data)
    return found


@pytest.mark.parametrize("accept", ["", TABLE], ids=["objects", "tables"])
@pytest.mark.parametrize(
    "query", ["", "&fieldSelector=metadata.name%3Da", "&allowWatchBookmarks=true", "&labelSelector=of%3Dnone"]
)
def test_each_message_is_a_line_of_the_same_watch(peer: Peer, query: str, accept: str) -> None:
    target = f"{MAPS}?{ENDING}&resourceVersion=0{query}"
    _, data = peer.asker.ask(Step("GET", target, headers={"Accept": accept} if accept else {}))
    with peer.open(target, accept=accept) as websocket:
        messages = until_closed(websocket)
    assert [_without_age(one) for one in messages] == [
        _without_age(line) for line in data.decode().splitlines(keepends=True)
    ]


def _without_age(line: str) -> Any:
    assert line.endswith("\n")
    found = json.loads(line)
    for row in found["object"].get("rows", ()):
        row["cells"] = row["cells"][:-1]
    return found


def test_changes_come_as_they_happen(peer: Peer) -> None:
    with peer.open(f"{MAPS}?watch=1&fieldSelector=metadata.name%3Dlater") as websocket:
        peer.make(MAPS, {"metadata": {"name": "later"}})
        peer.asker.ask(Step("DELETE", f"{MAPS}/later"))
        told = [json.loads(websocket.frame().data)["type"] for _ in range(2)]
    assert told == ["ADDED", "DELETED"]


def test_a_client_that_closes_is_answered_and_what_it_says_is_passed_over(peer: Peer) -> None:
    with peer.open(f"{MAPS}?watch=1&fieldSelector=metadata.name%3Da") as websocket:
        assert websocket.frame().kind == TEXT
        websocket.send(TEXT, b"hello")
        websocket.send(PING, b"there?")
        assert websocket.frame() == (PONG, b"there?", True)
        websocket.send(CLOSE, (1000).to_bytes(2))
        assert websocket.frame().kind == CLOSE


def test_an_older_way_to_ask_for_a_watch_is_known_too(peer: Peer) -> None:
    with peer.open("/api/v1/watch/namespaces/default/configmaps/a?timeoutSeconds=1") as websocket:
        (message,) = until_closed(websocket)
    assert json.loads(message)["object"]["metadata"]["name"] == "a"


@pytest.mark.parametrize("protocol", ["binary.k8s.io", "base64.binary.k8s.io", "foo"])
def test_messages_are_text_whichever_subprotocol_is_offered(peer: Peer, protocol: str) -> None:
    with peer.open(f"{MAPS}?{ENDING}", protocols=[protocol]) as websocket:
        assert websocket.headers["sec-websocket-protocol"] == protocol
        assert len(until_closed(websocket)) == 2


def test_to_choose_among_subprotocols_is_refused(peer: Peer) -> None:
    assert peer.refused(f"{MAPS}?{ENDING}", protocols=("binary.k8s.io", "base64.binary.k8s.io")) == 400


@pytest.mark.parametrize(
    ("target", "accept", "code"),
    [
        (f"{MAPS}?watch=1&resourceVersion=abc", "", 500),
        (f"{MAPS}?watch=1&labelSelector=a%20b%20c", "", 400),
        (f"{MAPS}?watch=1", "text/plain", 406),
        ("/api/v1/namespaces/default/nopes?watch=1", "", 404),
        (MAPS, "", 200),
        (f"{MAPS}/a", "", 200),
    ],
)
def test_what_is_no_watch_or_is_refused_is_answered_without_a_websocket(
    peer: Peer, target: str, accept: str, code: int
) -> None:
    assert peer.refused(target, accept=accept) == code


def test_a_version_that_is_too_old_is_a_message(peer: Peer) -> None:
    peer.asker._forget()
    with peer.open(f"{MAPS}?watch=1&resourceVersion=1") as websocket:
        (message,) = until_closed(websocket)
    told = json.loads(message)
    assert (told["type"], told["object"]["code"]) == ("ERROR", 410)


# ---- a token in place of a subprotocol -------------------------------------------------------------------


@pytest.fixture(scope="module")
def token(peer: Peer) -> str:
    """Of an account that may watch ConfigMaps."""
    namespace = "/api/v1/namespaces/default"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    peer.make(roles, {"metadata": {"name": "watcher"}, "rules": [rule]})
    peer.make(f"{namespace}/serviceaccounts", {"metadata": {"name": "robot"}})
    peer.make(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": "robot"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "watcher"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        },
    )
    made = peer.make(f"{namespace}/serviceaccounts/robot/token", {"spec": {}})
    found = str(made["status"]["token"])
    asked = Step("GET", MAPS, headers={"Authorization": f"Bearer {found}"}, is_anonymous=True)
    deadline = time.monotonic() + 20
    while peer.asker.ask(asked)[0] != 200:  # a new role is not known at once
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def _encoded(token: str) -> str:
    return BEARER + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def test_a_token_may_stand_beside_a_subprotocol(peer: Peer, token: str) -> None:
    target, protocols = f"{MAPS}?{ENDING}", (_encoded(token), "base64.binary.k8s.io")
    with peer.open(target, protocols=protocols, is_stranger=True) as websocket:
        assert websocket.headers["sec-websocket-protocol"] == "base64.binary.k8s.io"
        assert len(until_closed(websocket)) == 2


def test_who_a_token_is_of_may_do_no_more_than_that(peer: Peer, token: str) -> None:
    target = "/api/v1/namespaces/default/secrets?watch=1"
    protocols = (_encoded(token), "base64.binary.k8s.io")
    assert peer.refused(target, protocols=protocols, is_stranger=True) == 403


@pytest.mark.parametrize(
    "protocols",
    [
        ("base64.binary.k8s.io",),
        (_encoded("wrong"), "base64.binary.k8s.io"),
        (f"{BEARER}!", "base64.binary.k8s.io"),
        (BEARER, "base64.binary.k8s.io"),
    ],
    ids=["no token", "a wrong one", "no base64", "an empty one"],
)
def test_without_a_token_that_is_known_nobody_is_let_in(peer: Peer, protocols: tuple[str]) -> None:
    code = peer.refused(f"{MAPS}?{ENDING}", protocols=protocols, is_stranger=True)
    assert code in (401, 403)  # the real server lets strangers in, and they may see nothing


def test_a_token_alone_or_two_of_them_are_refused(peer: Peer, token: str) -> None:
    for protocols in ((_encoded(token),), (_encoded(token), _encoded(token), "binary.k8s.io")):
        assert peer.refused(f"{MAPS}?{ENDING}", protocols=protocols, is_stranger=True) == 401
