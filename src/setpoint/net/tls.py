"""Makes certificates, and signs: a small authority, the identities it vouches for, and a key for tokens.

Promises:

1. What an authority issues verifies against it under the strictest rules of OpenSSL and Go: key usages,
   key identifiers and subject alternative names are all there.
2. A certificate is good for what was asked for and nothing else: ``client``, ``server``, or both.
3. Private keys stay in memory, and out of every ``repr``; who writes one to a file chooses its mode.
4. ``SigningKey`` signs as ES256 does (RFC 7518), and names itself as Kubernetes names its keys.

Kubernetes reads a client certificate as a user: the common name is the user's name, each organization a
group.  ``organizations=("system:masters",)`` therefore makes an administrator.

Not here: files, renewal, tokens, and trust in authorities that are not ours.  Used by ``testing/kube.py`` and
``server/secrets.py``.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Clocks of two machines differ; a certificate made this second must not lie in the other's future.
_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and the key that proves it is ours, both PEM."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)


class Authority:
    """A certificate authority: whoever trusts ``certificate_pem`` trusts what it issues."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    def __repr__(self) -> str:
        return f"<Authority {self._certificate.subject.rfc4514_string()}>"

    @classmethod
    def create(
        cls, common_name: str = "setpoint-ca", *, valid_for: timedelta = timedelta(days=365)
    ) -> Authority:
        """Make a new authority, with a key of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name, ())
        certificate = (
            _builder(name, issuer=name, key=key, valid_for=valid_for)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def load(cls, identity: Identity) -> Authority:
        """One that was kept.  Raises ValueError for what is no authority of this kind."""
        certificate = x509.load_pem_x509_certificate(identity.certificate_pem)
        key = serialization.load_pem_private_key(identity.key_pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise ValueError("the authority's key does not belong to its certificate")
        return cls(certificate, key)

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def identity(self) -> Identity:
        """To be kept, with its key; ``load`` takes it."""
        return Identity(self.certificate_pem, _key_pem(self._key))

    @property
    def expires(self) -> datetime:
        return self._certificate.not_valid_after_utc

    def issue(
        self,
        common_name: str,
        *,
        organizations: Iterable[str] = (),
        hosts: Iterable[str] = (),
        client: bool = False,
        server: bool = False,
        valid_for: timedelta = timedelta(days=365),
    ) -> Identity:
        """Vouch for ``common_name``, with a new key.

        ``hosts`` are the names and IP addresses a server answers to.  A negative ``valid_for`` gives a
        certificate that expired that long ago, for testing what happens then.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(
                _name(common_name, organizations),
                issuer=self._certificate.subject,
                key=key,
                valid_for=valid_for,
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        # An empty list of usages would not mean "none": it is not even well formed.
        if usages := _usages(client=client, server=server):
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if names := [_general_name(host) for host in hosts]:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Identity(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a certificate is about."""

    common_name: str
    organizations: tuple[str, ...]
    uid: str
    expires: datetime


_UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")  # Kubernetes' own, for a user's uid


def read_subject(certificate: bytes) -> Subject:
    """Of a certificate in DER, which TLS has verified."""
    found = x509.load_der_x509_certificate(certificate)

    def values(oid: x509.ObjectIdentifier) -> list[str]:
        return [str(one.value) for one in found.subject.get_attributes_for_oid(oid)]

    return Subject(
        common_name=next(iter(values(NameOID.COMMON_NAME)), ""),
        organizations=tuple(values(NameOID.ORGANIZATION_NAME)),
        uid=next(iter(values(_UID)), ""),
        expires=found.not_valid_after_utc,
    )


def is_authority(certificate: bytes) -> bool:
    """Whether a certificate in DER may sign others.  Raises ValueError where it cannot be read."""
    try:
        found = x509.load_der_x509_certificate(certificate)
        return found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False
    except (x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from None


def organizations_asked(request: bytes) -> list[str]:
    """What a request for a certificate, in PEM, says that its subject is in; nothing if it cannot be read."""
    try:
        found = x509.load_pem_x509_csr(request)
    except ValueError:
        return []
    return [str(one.value) for one in found.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


class SigningKey:
    """A key of our own to sign with, and to know what we signed."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self._public = key.public_key()
        public = self._public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.id = _base64url(hashlib.sha256(public).digest())

    def __repr__(self) -> str:
        return f"<SigningKey {self.id}>"

    @classmethod
    def create(cls) -> SigningKey:
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def load(cls, pem: bytes) -> SigningKey:
        """One that was kept.  Raises ValueError for what is no key of this kind."""
        key = serialization.load_pem_private_key(pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
            raise ValueError("the key is not one of the curve P-256")
        return cls(key)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self._key)

    @property
    def public(self) -> dict[str, str]:
        """The public half, as a JSON Web Key."""
        numbers = self._public.public_numbers()
        return {
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": "ES256",
            "x": _base64url(numbers.x.to_bytes(32)),
            "y": _base64url(numbers.y.to_bytes(32)),
        }

    def sign(self, data: bytes) -> bytes:
        r, s = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)

    def has_signed(self, data: bytes, signature: bytes) -> bool:
        if len(signature) != 64:
            return False
        pair = encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
        try:
            self._public.verify(pair, data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _builder(
    subject: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid_for: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    expires = now + valid_for
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, expires) - _SKEW)
        .not_valid_after(expires)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str, organizations: Iterable[str]) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _usages(*, client: bool, server: bool) -> list[x509.ObjectIdentifier]:
    asked = ((client, ExtendedKeyUsageOID.CLIENT_AUTH), (server, ExtendedKeyUsageOID.SERVER_AUTH))
    return [usage for wanted, usage in asked if wanted]


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
