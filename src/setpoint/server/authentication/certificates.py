"""The user behind a client certificate: its common name, and its organizations as groups.

TLS has verified that our authority signed it; that it has not run out since is looked at with each request.

Used by ``http/authentication.py``.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Final

from setpoint.clock import Clock
from setpoint.server.authentication.names import AUTHENTICATED, CREDENTIAL
from setpoint.server.registry.requests import User

_MOST_KEPT: Final = 1_000


class Certificates:
    """Users by their certificates."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[bytes, tuple[User, datetime]] = {}  # by the certificate's bytes

    def __repr__(self) -> str:
        return f"<Certificates, {len(self._known)} known>"

    def user(self, certificate: bytes) -> User | None:
        """None for one that is nobody's, or that has expired."""
        known = self._known.get(certificate)
        if known is None:
            if len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[certificate] = _read(certificate)
        user, expires = known
        return user if user.name and self._clock.utc() <= expires else None


def _read(certificate: bytes) -> tuple[User, datetime]:
    from setpoint.net.tls import read_subject  # noqa: PLC0415 - needed where somebody shows one

    subject = read_subject(certificate)
    credential = f"X509SHA256={sha256(certificate).hexdigest()}"
    groups = (*subject.organizations, AUTHENTICATED)
    return User(subject.common_name, groups, subject.uid, {CREDENTIAL: (credential,)}), subject.expires
