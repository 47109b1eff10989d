"""Decides whom a TLS connection trusts, and which certificate it shows.

Promises:

1. The server is checked against the given authorities, or the machine's own where none are given; it goes
   unchecked only with ``insecure=True``.
2. What Go accepts as an authority is accepted here: an intermediate alone, or an old one without key
   identifiers.  A kubeconfig that works with kubectl works with us, on every Python.
3. A certificate or key that cannot work is refused when it is given, with a ValueError that says why and
   shows nothing of it, instead of as a failed handshake later.
4. A private key touches no disk where the system offers memory, and nobody is ever asked for a passphrase.

Not here: where the bytes come from and when they are read anew (``client/auth.py``), and making certificates
(``tls.py``).
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"

_UTC_TIME, _VERSION = 0x17, 0xA0  # DER tags


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A client certificate (or chain, leaf first) and its private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def ssl_context(
    *, ca: bytes | None = None, insecure: bool = False, certificate: CertificatePair | None = None
) -> ssl.SSLContext:
    """TLS for a client that trusts ``ca`` (PEM) and shows ``certificate``."""
    # Not create_default_context: from Python 3.13 on it demands key identifiers, and many clusters have none.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an intermediate may be the authority, as in Go
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca is None:
        context.load_default_certs()
    else:
        _load_authorities(context, ca)
    if certificate is not None:
        show_certificate(context, certificate)
    return context


def server_context(certificate: CertificatePair) -> ssl.SSLContext:
    """TLS for a server that shows ``certificate``, and speaks HTTP/1.1 alone: HTTP/2 is not offered."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    show_certificate(context, certificate)
    return context


def show_certificate(context: ssl.SSLContext, pair: CertificatePair) -> None:
    """Let connections made with ``context`` show this certificate when asked for one."""
    if not _pem_certificates(pair.certificate):
        raise ValueError("the certificate is not PEM (-----BEGIN CERTIFICATE-----)")
    if b"PRIVATE KEY-----" not in pair.key:
        raise ValueError("the key is not PEM (-----BEGIN PRIVATE KEY-----)")
    try:
        with _as_file(pair.certificate + b"\n" + pair.key) as path:
            context.load_cert_chain(path, password=_no_passphrase)
    except ssl.SSLError as error:
        if error.reason in {"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"}:
            raise ValueError("the key does not belong to the certificate") from None
        raise ValueError(f"the certificate or the key is damaged ({_reason(error)})") from None


def expires_at(certificate: bytes) -> datetime | None:
    """When the first certificate in ``certificate`` (PEM) stops being good; None if it cannot be told.

    Read from the DER by hand: the library that could do it takes longer to import than everything else that
    a program does to connect.
    """
    found = _pem_certificates(certificate)
    try:
        der = ssl.PEM_cert_to_DER_cert(found[0].decode("ascii")) if found else b""
        signed = _elements(_elements(der)[0][1])[0][1]
        fields = _elements(signed)
        # version (if any), serial, algorithm, issuer, validity
        _, validity = fields[4 if fields[0][0] == _VERSION else 3]
        tag, text = _elements(validity)[1]
        return _time(tag, text.decode("ascii"))
    except (ValueError, IndexError):
        return None


def _pem_certificates(data: bytes) -> list[bytes]:
    """The PEM blocks of certificates in a text."""
    blocks = []
    end = 0
    while (start := data.find(_BEGIN, end)) >= 0 and (found := data.find(_END, start)) >= 0:
        end = found + len(_END)
        blocks.append(data[start:end])
    return blocks


def _load_authorities(context: ssl.SSLContext, ca: bytes) -> None:
    # Only the blocks: what bundles say around them, in whatever encoding, is not for OpenSSL.
    blocks = _pem_certificates(ca)
    if not blocks:
        raise ValueError("it holds no PEM certificate (-----BEGIN CERTIFICATE-----)")
    try:
        context.load_verify_locations(cadata=b"\n".join(blocks).decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError(f"it holds a damaged PEM certificate ({_reason(error)})") from None


def _no_passphrase() -> str:
    # Without this, OpenSSL would stop the program to ask at the terminal.
    raise ValueError("the key is protected by a passphrase; give one that is not (openssl pkey -in … -out …)")


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """``data`` under a path for as long as it is read: Python's ssl takes keys only from files.

    In memory where the system can, so that keys touch no disk and a read-only container is no obstacle.
    """
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile() as file:  # readable by us alone, and gone afterwards
            file.write(data)
            file.flush()
            yield file.name


def _reason(error: ssl.SSLError | UnicodeDecodeError) -> str:
    return (error.reason or "not readable").replace("_", " ").lower()


def _elements(der: bytes) -> list[tuple[int, bytes]]:
    """The elements that stand one after another in ``der``, each as its tag and its content."""
    found, position = list[tuple[int, bytes]](), 0
    while position < len(der):
        tag, length, position = der[position], der[position + 1], position + 2
        if length & 0x80:  # the long form: so many bytes of length follow
            size = length & 0x7F
            length = int.from_bytes(der[position : position + size], "big")
            position += size
        found.append((tag, der[position : position + length]))
        position += length
    return found


def _time(tag: int, text: str) -> datetime:
    """``YYMMDDHHMMSSZ`` until 2049, ``YYYYMMDDHHMMSSZ`` after (RFC 5280, 4.1.2.5)."""
    if tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    if not text.endswith("Z"):
        raise ValueError("a certificate's times are in UTC")
    return datetime.fromisoformat(f"{text[:8]}T{text[8:]}")
