"""Who is let in, and under which host: ``http/authentication.py``, ``http/hosts.py``."""

from __future__ import annotations

import pytest

from setpoint.net.transport import Request
from setpoint.server.http.authentication import ANONYMOUS, Tokens, authenticate
from setpoint.server.http.hosts import Hosts
from setpoint.server.registry.requests import ADMIN, User
from setpoint.server.statuses import StatusError

BOB = User("bob")
TOKENS = Tokens({"hush": ADMIN, "psst": BOB})


def shows(authorization: str) -> Request:
    return Request("GET", "/", {"Authorization": authorization})


def test_a_token_is_its_user() -> None:
    assert authenticate(shows("Bearer hush"), ("api",), TOKENS) == ADMIN
    assert authenticate(shows("bearer psst"), ("api",), TOKENS) == BOB


@pytest.mark.parametrize(
    "shown", ["Bearer wrong", "Bearer ", "Bearer", "Basic hush", "", "Bearer h\u00fcsh", "hush"]
)
@pytest.mark.parametrize("path", ["api", "healthz"])
def test_a_wrong_credential_opens_nothing(shown: str, path: str) -> None:
    with pytest.raises(StatusError) as refused:
        authenticate(shows(shown), (path,), TOKENS)
    assert (refused.value.code, refused.value.message) == (401, "Unauthorized")


def test_whoever_has_a_credential_may_act_as_another() -> None:
    headers = {"Authorization": "Bearer hush", "Impersonate-User": "eve", "Impersonate-Group": "a, b"}

    user = authenticate(Request("GET", "/", headers), ("api",), TOKENS)

    assert (user.name, user.groups) == ("eve", ("a", "b", "system:authenticated"))
    with pytest.raises(StatusError):
        authenticate(Request("GET", "/", {"Impersonate-User": "eve"}), ("api",), TOKENS)


@pytest.mark.parametrize("path", [("version",), ("healthz",), ("livez", "ping"), ("readyz",)])
def test_health_and_version_are_open_to_all(path: tuple[str, ...]) -> None:
    assert authenticate(Request("GET", "/"), path, TOKENS) == ANONYMOUS


@pytest.mark.parametrize("path", [("",), ("api",), ("apis",), ("openapi", "v3"), ("nope",)])
def test_nothing_else_is(path: tuple[str, ...]) -> None:
    with pytest.raises(StatusError):
        authenticate(Request("GET", "/"), path, TOKENS)


def test_tokens_are_not_shown() -> None:
    assert "hush" not in repr(TOKENS)
    assert "hush" not in str(vars(TOKENS))


OURS = Hosts(["kubernetes.default.svc", "Example.test"])


@pytest.mark.parametrize(
    "host",
    [
        "",
        "localhost",
        "localhost:6443",
        "LOCALHOST.",
        "a.localhost:1",
        "127.0.0.1:6443",
        "10.0.0.1",
        "[::1]:6443",
        "[::1]",
        "kubernetes.default.svc",
        "example.test:443",
    ],
)
def test_addresses_loopback_names_and_our_own_are_ours(host: str) -> None:
    OURS.check(host)
    OURS.check(host)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:6443", "localhost.evil.example", "127.0.0.1.evil.example", "x" * 9999],
)
def test_any_other_host_is_a_strangers(host: str) -> None:
    with pytest.raises(StatusError) as refused:
        OURS.check(host)
    assert refused.value.code == 403
    assert len(refused.value.message) < 400
