"""The promises of ``net/tls.py``, checked by OpenSSL itself: a handshake in memory, no socket."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from setpoint.net.tls import Authority, Identity, SigningKey, read_subject


def test_a_server_certificate_is_trusted_by_name_and_address_under_strict_rules(tmp_path: Path) -> None:
    authority = Authority.create()
    identity = authority.issue("api", hosts=("127.0.0.1", "::1", "api.test"), server=True)

    for host in ("127.0.0.1", "::1", "api.test"):
        handshake(tmp_path, authority, server=identity, host=host)


def test_a_server_certificate_is_refused_for_a_host_it_does_not_name(tmp_path: Path) -> None:
    authority = Authority.create()
    identity = authority.issue("api", hosts=("127.0.0.1",), server=True)

    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        handshake(tmp_path, authority, server=identity, host="127.0.0.2")


def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    identity = Authority.create().issue("api", hosts=("api.test",), server=True)

    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, Authority.create(), server=identity, host="api.test")


def test_a_client_certificate_carries_the_user_and_its_groups(tmp_path: Path) -> None:
    authority = Authority.create()
    server = authority.issue("api", hosts=("api.test",), server=True)
    admin = authority.issue("admin", organizations=("system:masters", "ops"), client=True)

    seen = handshake(tmp_path, authority, server=server, client=admin, host="api.test")

    assert [pair for part in seen["subject"] for pair in part] == [
        ("organizationName", "system:masters"),
        ("organizationName", "ops"),
        ("commonName", "admin"),
    ]


def test_a_client_certificate_cannot_serve(tmp_path: Path) -> None:
    authority = Authority.create()
    identity = authority.issue("api", hosts=("api.test",), client=True)

    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        handshake(tmp_path, authority, server=identity, host="api.test")


def test_a_server_certificate_cannot_act_as_a_client(tmp_path: Path) -> None:
    authority = Authority.create()
    server = authority.issue("api", hosts=("api.test",), server=True)

    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        handshake(tmp_path, authority, server=server, client=server, host="api.test")


def test_an_expired_certificate_can_be_made_and_is_refused(tmp_path: Path) -> None:
    authority = Authority.create()
    identity = authority.issue("api", hosts=("api.test",), server=True, valid_for=timedelta(hours=-1))

    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        handshake(tmp_path, authority, server=identity, host="api.test")


def test_an_issued_certificate_cannot_issue_others(tmp_path: Path) -> None:
    authority = Authority.create()
    leaf = authority.issue("leaf", client=True, server=True)
    key = load_pem_private_key(leaf.key_pem, password=None)
    assert isinstance(key, EllipticCurvePrivateKey)
    rogue = Authority(load_pem_x509_certificate(leaf.certificate_pem), key)
    issued = rogue.issue("api", hosts=("api.test",), server=True)
    chain = Identity(issued.certificate_pem + leaf.certificate_pem, issued.key_pem)

    with pytest.raises(ssl.SSLCertVerificationError, match="invalid CA certificate"):
        handshake(tmp_path, authority, server=chain, host="api.test")


def test_a_private_key_does_not_show_in_a_repr() -> None:
    authority = Authority.create("ca")
    identity = authority.issue("admin")

    assert "PRIVATE" not in repr(identity)
    assert repr(authority) == "<Authority CN=ca>"


def handshake(
    folder: Path,
    trusted: Authority,
    *,
    server: Identity,
    host: str,
    client: Identity | None = None,
) -> dict[str, Any]:
    """Shake hands in memory; what the server saw of the client's certificate."""
    serving, asking = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (serving, asking):
        context.load_verify_locations(cadata=trusted.certificate_pem.decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    load(serving, server, folder / "server.pem")
    if client is not None:
        serving.verify_mode = ssl.CERT_REQUIRED
        load(asking, client, folder / "client.pem")

    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = asking.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = serving.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):  # TLS 1.3 needs two rounds; four leave room for alerts
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return theirs.getpeercert() or {}


def load(context: ssl.SSLContext, identity: Identity, path: Path) -> None:
    path.write_bytes(identity.certificate_pem + identity.key_pem)
    context.load_cert_chain(path)


def test_an_authority_that_was_kept_vouches_as_before() -> None:
    kept = Authority.create().identity
    again = Authority.load(kept)
    assert again.certificate_pem == kept.certificate_pem
    assert again.identity == kept
    issued = load_pem_x509_certificate(again.issue("someone", client=True).certificate_pem)
    issued.verify_directly_issued_by(load_pem_x509_certificate(kept.certificate_pem))
    assert again.expires > datetime.now(UTC)
    assert "PRIVATE" not in repr(again)


def test_an_authority_with_anothers_key_is_refused() -> None:
    one, other = Authority.create().identity, Authority.create().identity
    with pytest.raises(ValueError, match="does not belong"):
        Authority.load(Identity(one.certificate_pem, other.key_pem))


def test_the_subject_of_a_certificate_is_its_user_and_its_groups() -> None:
    issued = Authority.create().issue("jane", organizations=("b", "a"), client=True)
    subject = read_subject(ssl.PEM_cert_to_DER_cert(issued.certificate_pem.decode()))

    assert (subject.common_name, subject.organizations, subject.uid) == ("jane", ("b", "a"), "")
    assert timedelta(days=364) < subject.expires - datetime.now(UTC) < timedelta(days=366)


def test_a_key_knows_what_it_has_signed_and_nothing_else() -> None:
    key, other = SigningKey.create(), SigningKey.create()
    signature = key.sign(b"said")

    assert len(signature) == 64, "as ES256 writes it"
    assert key.has_signed(b"said", signature)
    assert not key.has_signed(b"said!", signature)
    assert not other.has_signed(b"said", signature)
    for broken in (b"", signature[:-1], signature + b"0", bytes(64), b"\xff" * 64):
        assert not key.has_signed(b"said", broken)


def test_a_key_is_the_same_after_it_was_kept_and_shows_only_its_public_half() -> None:
    key = SigningKey.create()
    kept = SigningKey.load(key.key_pem)

    assert (kept.id, kept.public) == (key.id, key.public)
    assert kept.has_signed(b"said", key.sign(b"said"))
    assert {"kty", "crv", "alg", "kid", "use", "x", "y"} == set(key.public)
    assert repr(key) == f"<SigningKey {key.id}>"


@pytest.mark.parametrize("pem", [b"", b"rubbish"])
def test_what_is_no_key_is_not_loaded(pem: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        SigningKey.load(pem)
