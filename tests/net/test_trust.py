"""The rules of ``net/trust.py``, with real handshakes."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from setpoint.net import trust
from setpoint.net.tls import Authority, Identity
from setpoint.net.trust import CertificatePair, expires_at, ssl_context

OPEN_FILES = Path("/proc/self/fd")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("cluster-ca")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Identity:
    return authority.issue("server", hosts=("k8s.example", "127.0.0.1"), server=True)


@pytest.fixture(scope="module")
def client(authority: Authority) -> CertificatePair:
    return pair(authority.issue("jane", client=True))


def pair(identity: Identity) -> CertificatePair:
    return CertificatePair(identity.certificate_pem, identity.key_pem)


def listening(identity: Identity, *, client_ca: bytes | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.show_certificate(context, pair(identity))
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca.decode())
    return context


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "k8s.example") -> ssl.SSLObject:
    """Both ends in memory, until each is satisfied; the server's end is returned."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    steps: list[Callable[[], None]] = [ours.do_handshake, theirs.do_handshake] * 4
    for step in steps:
        try:
            step()
        except ssl.SSLWantReadError:
            continue
    return theirs


def test_a_server_is_trusted_through_the_given_authority(authority: Authority, server: Identity) -> None:
    theirs = handshake(ssl_context(ca=authority.certificate_pem), listening(server))
    assert theirs.version() == "TLSv1.3"


def test_a_server_of_another_authority_is_refused(server: Identity) -> None:
    other = Authority.create("cluster-ca")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(ssl_context(ca=other.certificate_pem), listening(server))


def test_a_server_under_another_name_is_refused(authority: Authority, server: Identity) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"other\.example"):
        handshake(ssl_context(ca=authority.certificate_pem), listening(server), "other.example")


def test_without_an_authority_the_machines_own_decide(server: Identity) -> None:
    context = ssl_context()
    assert context.verify_mode == ssl.CERT_REQUIRED
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, listening(server))


def test_the_server_goes_unchecked_only_when_asked(server: Identity) -> None:
    handshake(ssl_context(insecure=True), listening(server), "whatever.example")


def test_the_client_certificate_is_shown(
    authority: Authority, server: Identity, client: CertificatePair
) -> None:
    ours = ssl_context(ca=authority.certificate_pem, certificate=client)
    theirs = handshake(ours, listening(server, client_ca=authority.certificate_pem))
    shown = theirs.getpeercert()
    assert shown is not None
    assert (("commonName", "jane"),) in shown["subject"]


def test_several_authorities_and_the_words_between_them_are_fine(
    authority: Authority, server: Identity
) -> None:
    other = Authority.create("other")
    bundle = b"\xc5ngstr\xf6m CA\n" + other.certificate_pem + b"# and\n" + authority.certificate_pem
    handshake(ssl_context(ca=bundle), listening(server))


def test_an_authority_without_key_identifiers_or_its_own_root_is_enough() -> None:
    root, middle, leaf = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    intermediate = bare_certificate("middle", middle, issuer="root", signer=root, is_authority=True)
    certificate = bare_certificate("leaf", leaf, issuer="middle", signer=middle)
    handshake(ssl_context(ca=intermediate), listening(Identity(certificate, key_pem(leaf))))


def bare_certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    is_authority: bool = False,
    expires: datetime | None = None,
) -> bytes:
    """A certificate as old tools make them: no key identifiers, no usages."""
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, expires or now) - timedelta(days=1))
        .not_valid_after(expires or now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("k8s.example")]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey, passphrase: bytes | None = None) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption(),
    )


@pytest.mark.parametrize("ca", [b"", b"canary", b"-----BEGIN PRIVATE KEY-----canary"])
def test_an_authority_that_is_no_pem_is_refused(ca: bytes) -> None:
    with pytest.raises(ValueError, match="holds no PEM certificate") as caught:
        ssl_context(ca=ca)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("inside", [b"canary", b"Y2FuYXJ5", b"\xff\xfe"])
def test_a_damaged_authority_is_refused(inside: bytes) -> None:
    with pytest.raises(ValueError, match="damaged PEM certificate") as caught:
        ssl_context(ca=b"-----BEGIN CERTIFICATE-----\n" + inside + b"\n-----END CERTIFICATE-----\n")
    assert "canary" not in str(caught.value)


def test_a_key_of_another_certificate_is_refused(authority: Authority, client: CertificatePair) -> None:
    other = authority.issue("joe", client=True)
    with pytest.raises(ValueError, match="the key does not belong to the certificate"):
        ssl_context(certificate=CertificatePair(client.certificate, other.key_pem))


def test_a_certificate_or_key_that_is_no_pem_is_refused(client: CertificatePair) -> None:
    with pytest.raises(ValueError, match="the certificate is not PEM"):
        ssl_context(certificate=CertificatePair(b"canary", client.key))
    with pytest.raises(ValueError, match="the key is not PEM"):
        ssl_context(certificate=CertificatePair(client.certificate, b"canary"))
    broken = b"-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n"
    with pytest.raises(ValueError, match="damaged") as caught:
        ssl_context(certificate=CertificatePair(client.certificate, broken))
    assert "canary" not in str(caught.value)


def test_a_key_under_a_passphrase_is_refused_and_nobody_is_asked() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = bare_certificate("jane", key, issuer="jane", signer=key)
    with pytest.raises(ValueError, match="protected by a passphrase"):
        ssl_context(certificate=CertificatePair(certificate, key_pem(key, b"canary")))


def test_keys_are_shown_in_no_repr(client: CertificatePair) -> None:
    assert "PRIVATE" not in repr(client)


def test_where_memory_files_are_missing_a_private_temporary_one_serves(
    client: CertificatePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    ssl_context(certificate=client)


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="this system does not list its open files")
def test_no_descriptor_is_left_open(client: CertificatePair) -> None:
    before = set(OPEN_FILES.iterdir())
    ssl_context(certificate=client)
    assert set(OPEN_FILES.iterdir()) == before


@pytest.mark.parametrize("year", [1999, 2026, 2049, 2050, 2200])
def test_the_expiry_is_read_from_the_first_certificate(year: int) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    expires = datetime(year, 3, 4, 5, 6, 7, tzinfo=UTC)
    first = bare_certificate("a", key, issuer="a", signer=key, expires=expires)
    second = bare_certificate("b", key, issuer="b", signer=key)
    assert expires_at(b"words\n" + first + second) == expires


@given(st.binary(max_size=200))
def test_what_is_no_certificate_has_no_expiry(rubbish: bytes) -> None:
    assert expires_at(rubbish) is None
    assert expires_at(ssl.DER_cert_to_PEM_cert(rubbish).encode()) is None


@given(st.data())
def test_a_damaged_certificate_never_breaks_the_reading_of_its_expiry(data: st.DataObject) -> None:
    der = bytearray(ssl.PEM_cert_to_DER_cert(DAMAGED.decode()))
    for _ in range(data.draw(st.integers(1, 4))):
        der[data.draw(st.integers(0, len(der) - 1))] = data.draw(st.integers(0, 255))
    found = expires_at(ssl.DER_cert_to_PEM_cert(bytes(der)).encode())
    assert found is None or found.tzinfo is not None


DAMAGED = Authority.create("to-be-damaged").certificate_pem
