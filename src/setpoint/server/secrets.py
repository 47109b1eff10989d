"""What a server proves itself with and whom it lets in: its authority and certificate, its token, its key.

With a data directory they are kept there, readable by their owner alone, so that a kubeconfig stays good
when the server is started again; without one they end with the process.  An authority that is about to
expire is made anew.  What is there and cannot be read is never replaced: that would put an end to every
kubeconfig and token that others hold, without a word.  It is refused (``CannotOpen``), before anything is
served.

Not here: making certificates (``net/tls.py``).  Used by ``server.py``.
"""

from __future__ import annotations

import base64
import os
import secrets
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from setpoint.net.trust import CertificatePair, server_context
from setpoint.server.storage.folder import CannotOpen

if TYPE_CHECKING:
    from setpoint.net.tls import Authority, SigningKey

# The names by which the server may be called, from here and as pods would call it.
NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_CA: Final = ("ca.crt", "ca.key")
_SIGNING: Final = "service-accounts.key"
_WHY: Final = "it is damaged, and not what this server wrote there"
_ADDRESSES: Final = ("127.0.0.1", "::1", "10.0.0.1")
_LASTS: Final = timedelta(days=3650)
_LEFT: Final = timedelta(days=30)  # less than this is too little to go on with


class Secrets:
    """One server's: kept in ``folder``, where there is one.  A token that is given is used, and not kept."""

    def __init__(self, folder: Path | None = None, token: str = "") -> None:
        self._folder = folder
        self.token = token or _kept_token(folder)
        if folder is not None:
            # What is kept is read now, so that what is damaged is told at the start and not in a request.
            if (folder / _CA[0]).exists():
                _ = self.authority
            if (folder / _SIGNING).exists():
                _ = self.signing_key

    def __repr__(self) -> str:
        return f"<Secrets in {self._folder or 'memory'}>"

    @cached_property
    def authority(self) -> Authority:
        """Made when it is first asked for: a server without a socket needs none."""
        from setpoint.net.tls import Authority  # noqa: PLC0415 - reading it takes longer than all the rest

        authority = _kept_authority(self._folder) if self._folder is not None else None
        if authority is None:
            authority = Authority.create(valid_for=_LASTS)
            if self._folder is not None:
                kept = authority.identity
                certificate, key = (self._folder / name for name in _CA)
                write_private(key, kept.key_pem)  # first: a key without a certificate was never shown
                write_private(certificate, kept.certificate_pem)
        return authority

    @cached_property
    def signing_key(self) -> SigningKey:
        """Signs the tokens of service accounts; made when one is first asked for."""
        from setpoint.net.tls import SigningKey  # noqa: PLC0415

        kept = None if self._folder is None else self._folder / _SIGNING
        if kept is not None:
            try:
                return SigningKey.load(kept.read_bytes())
            except FileNotFoundError:
                pass
            except (OSError, ValueError, TypeError) as error:  # TypeError: it asks for a passphrase
                ended = "every service account's token ends"
                raise _damaged(kept, error, ended) from None
        key = SigningKey.create()
        if kept is not None:
            write_private(kept, key.key_pem)
        return key

    def server_context(self, hosts: Iterable[str] = ()) -> ssl.SSLContext:
        """TLS with a certificate of our own, for a server that is called by our names and ``hosts``.

        A client may show a certificate of our authority, and need not; one of another's ends the handshake.
        (kube-apiserver goes on, and answers 401 or takes the token beside it.  Python's ssl verifies or does
        not ask at all: it has no way to take what it could not verify and tell us so.)
        """
        named = dict.fromkeys((*NAMES, *_ADDRESSES, *hosts))
        identity = self.authority.issue("kube-apiserver", hosts=named, server=True)
        context = server_context(CertificatePair(identity.certificate_pem, identity.key_pem))
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.authority.certificate_pem.decode())
        return context

    def kubeconfig(self, url: str) -> str:
        """A kubeconfig, complete in itself, that makes its reader an administrator."""
        authority = base64.b64encode(self.authority.certificate_pem).decode()
        return _KUBECONFIG.format(server=_quoted(url), authority=authority, token=_quoted(self.token))


# Written by hand: reading the library that could takes a tenth of the time in which a server is ready.
_KUBECONFIG: Final = """\
apiVersion: v1
kind: Config
clusters:
- name: setpoint
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: setpoint
  user:
    token: {token}
contexts:
- name: setpoint
  context:
    cluster: setpoint
    user: setpoint
current-context: setpoint
"""


def _quoted(text: str) -> str:
    """As JSON writes it, which is YAML too."""
    return msgspec.json.encode(text).decode()


def _kept_authority(folder: Path) -> Authority | None:
    from setpoint.net.tls import Authority, Identity  # noqa: PLC0415

    certificate, key = (folder / name for name in _CA)
    if not certificate.exists():
        return None
    try:
        authority = Authority.load(Identity(certificate.read_bytes(), key.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        ended = f"with {key.name}: every kubeconfig and certificate that it was made for ends"
        raise _damaged(certificate, error, ended) from None
    return authority if authority.expires - datetime.now(UTC) > _LEFT else None


def _kept_token(folder: Path | None) -> str:
    if folder is None:
        return secrets.token_urlsafe(32)
    file = folder / "token"
    if file.exists():
        try:
            if (kept := file.read_text("ascii").strip()).isprintable() and kept:
                return kept
            wrong: Exception = ValueError()
        except (OSError, ValueError) as error:
            wrong = error
        raise _damaged(file, wrong, "the administrator's kubeconfig ends")
    made = secrets.token_urlsafe(32)
    write_private(file, made.encode() + b"\n")
    return made


def _damaged(file: Path, error: Exception, ended: str) -> CannotOpen:
    """Shows nothing of what is in it."""
    why = error.strerror or "it cannot be read" if isinstance(error, OSError) else _WHY
    return CannotOpen(
        f"read {file}: {why}; put back a copy of it, or delete it and a new one is made ({ended})"
    )


def write_private(path: Path, content: bytes) -> None:
    """A file that only its owner may read, whole or not at all; what was there before is replaced."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
