"""Who is let in, and under which host: ``http/authentication.py``, ``http/hosts.py``."""

from __future__ import annotations

from datetime import timedelta
from ssl import PEM_cert_to_DER_cert

import pytest

from setpoint.clock import SystemClock
from setpoint.net.headers import Headers
from setpoint.net.tls import Authority
from setpoint.net.transport import Request
from setpoint.server.authentication.certificates import Certificates
from setpoint.server.authentication.tokens import BearerTokens
from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.authorizer import AlwaysAllow
from setpoint.server.http.authentication import ANONYMOUS, Authenticator
from setpoint.server.http.hosts import Hosts
from setpoint.server.registry.requests import ADMIN, User
from setpoint.server.statuses import StatusError

BOB = User("bob")
TOKENS = BearerTokens({"hush": ADMIN, "psst": BOB})
AUTHENTICATOR = Authenticator(TOKENS, Certificates(SystemClock()), AlwaysAllow())
AUTHORITY = Authority.create()
PODS = Attributes("list", resource="pods")


def shows(authorization: str) -> Request:
    return Request("GET", "/", {"Authorization": authorization})


def certificate(name: str, *groups: str, days: float = 1) -> bytes:
    issued = AUTHORITY.issue(name, organizations=groups, client=True, valid_for=timedelta(days=days))
    return PEM_cert_to_DER_cert(issued.certificate_pem.decode())


def test_a_token_is_its_user() -> None:
    assert AUTHENTICATOR.sender(shows("Bearer hush"), ("api",)) == ADMIN
    assert AUTHENTICATOR.sender(shows("bearer psst"), ("api",)) == BOB


@pytest.mark.parametrize("shown", ["Bearer wrong", "Bearer h\u00fcsh", "bearer a b", "Bearer a.b.c"])
@pytest.mark.parametrize("path", ["api", "healthz"])
def test_a_wrong_credential_opens_nothing(shown: str, path: str) -> None:
    with pytest.raises(StatusError) as refused:
        AUTHENTICATOR.sender(shows(shown), (path,))
    assert (refused.value.code, refused.value.message) == (401, "Unauthorized")


@pytest.mark.parametrize("shown", ["Bearer ", "Bearer", "Basic hush", "", "hush"])
def test_what_is_no_token_is_no_credential(shown: str) -> None:
    assert AUTHENTICATOR.sender(shows(shown), ("healthz",)) == ANONYMOUS
    with pytest.raises(StatusError) as refused:
        AUTHENTICATOR.sender(shows(shown), ("api",))
    assert refused.value.code == 401


def test_a_certificate_is_its_common_name_and_its_organizations_are_groups() -> None:
    user = AUTHENTICATOR.sender(Request("GET", "/", certificate=certificate("jane", "a", "b")), ("api",))

    assert (user.name, user.groups) == ("jane", ("a", "b", "system:authenticated"))
    (credential,) = user.extra["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")


def test_a_certificate_comes_before_a_token() -> None:
    request = shows("Bearer psst")._replace(certificate=certificate("jane"))
    assert AUTHENTICATOR.sender(request, ("api",)).name == "jane"


@pytest.mark.parametrize("path", ["api", "healthz"])
def test_a_certificate_that_ran_out_while_its_connection_lasted_opens_nothing(path: str) -> None:
    with pytest.raises(StatusError) as refused:
        AUTHENTICATOR.sender(Request("GET", "/", certificate=certificate("jane", days=-1)), (path,))
    assert refused.value.code == 401


def test_a_token_helps_where_the_certificate_ran_out() -> None:
    request = shows("Bearer psst")._replace(certificate=certificate("jane", days=-1))
    assert AUTHENTICATOR.sender(request, ("api",)) == BOB


def test_whom_a_request_asks_to_be_taken_for_is_read_from_its_headers() -> None:
    headers = [
        ("impersonate-user", "eve"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b, c"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Reason%2fWhy", "x"),
        ("Impersonate-Extra-Reason%2FWhy", "y"),
    ]
    request = Request("GET", "/", Headers(headers))

    assert AUTHENTICATOR.is_acting(request)
    user = AUTHENTICATOR.acting(request, BOB, PODS)

    assert (user.name, user.groups, user.uid) == ("eve", ("a", "b, c", "system:authenticated"), "7")
    assert user.extra == {"reason/why": ("x", "y")}


def test_who_asks_for_no_user_asks_for_nobody() -> None:
    assert not AUTHENTICATOR.is_acting(shows("Bearer hush"))
    assert AUTHENTICATOR.acting(shows("Bearer hush"), BOB, PODS) == BOB
    alone = Request("GET", "/", {"Impersonate-Group": "a"})
    with pytest.raises(StatusError, match="without impersonating a user name") as refused:
        AUTHENTICATOR.acting(alone, BOB, PODS)
    assert refused.value.code == 400


@pytest.mark.parametrize("path", [("version",), ("healthz",), ("livez",), ("readyz",)])
def test_health_and_version_are_open_to_all(path: tuple[str, ...]) -> None:
    assert AUTHENTICATOR.sender(Request("GET", "/"), path) == ANONYMOUS


@pytest.mark.parametrize(
    "path", [("",), ("api",), ("apis",), ("openapi", "v3"), ("nope",), ("livez", "ping"), ("openid",)]
)
def test_nothing_else_is(path: tuple[str, ...]) -> None:
    with pytest.raises(StatusError):
        AUTHENTICATOR.sender(Request("GET", "/"), path)


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
    [
        *(
            "evil.example",
            "evil.example:6443",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "x" * 9999,
        ),
        # A name of ours, and kept as it was sent: so it is no longer than a name.
        *("localhost" + "." * 9999, "[::1]" + "x" * 9999, "localhost:" + "0" * 9999),
    ],
)
def test_any_other_host_is_a_strangers(host: str) -> None:
    with pytest.raises(StatusError) as refused:
        OURS.check(host)
    assert refused.value.code == 403
    assert len(refused.value.message) < 400
