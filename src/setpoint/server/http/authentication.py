"""Who asks: the user behind a request's credentials, or nobody.

A client certificate comes first, then a bearer token.  Without a credential only health and the version may
be asked for; with a wrong one, nothing.  Then whom the request asks to be taken for, where its sender may.

What the credentials mean is in ``server/authentication``.  Used by ``app.py``.
"""

from __future__ import annotations

from typing import Final

from setpoint.net.transport import Request
from setpoint.server.authentication import names
from setpoint.server.authentication.certificates import Certificates
from setpoint.server.authentication.impersonation import Impersonation, is_wanted, wanted
from setpoint.server.authentication.tokens import BearerTokens, Unknown
from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.authorizer import Authorizer
from setpoint.server.http import upgrades
from setpoint.server.registry.requests import User
from setpoint.server.statuses import unauthorized

ANONYMOUS: Final = User(names.ANONYMOUS, (names.UNAUTHENTICATED,))
_OPEN: Final = frozenset({("version",), ("healthz",), ("livez",), ("readyz",)})


def _bearer(shown: str) -> str:
    """The token that is shown; "" where there is none.  Other schemes are no credentials here."""
    scheme, _, rest = shown.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def _beside(request: Request) -> str:
    """A token that came in place of a WebSocket's subprotocol; "" where there is none.  Raises 401."""
    if not request.upgrade:
        return ""
    try:
        return upgrades.token(request)
    except upgrades.BadToken:
        raise unauthorized() from None


class Authenticator:
    """Tells who asks."""

    def __init__(self, tokens: BearerTokens, certificates: Certificates, authorizer: Authorizer) -> None:
        self._tokens = tokens
        self._certificates = certificates
        self._impersonation = Impersonation(authorizer)

    def __repr__(self) -> str:
        return f"<Authenticator with {self._tokens!r}>"

    def sender(self, request: Request, path: tuple[str, ...]) -> User:
        """Whose credentials these are.  Raises 401."""
        if request.certificate is not None:
            user = self._certificates.user(request.certificate)
            if user is not None:
                return user
        token = _bearer(request.headers.get("Authorization", "")) or _beside(request)
        if token:
            try:
                return self._tokens.user(token)
            except Unknown:
                raise unauthorized() from None
        if request.certificate is None and path in _OPEN:
            return ANONYMOUS
        raise unauthorized()

    def is_acting(self, request: Request) -> bool:
        """Whether it asks to be taken for somebody else."""
        return is_wanted(request.headers)

    def acting(self, request: Request, sender: User, asked: Attributes) -> User:
        """The sender, or whom it asks to be taken for.  Raises 403."""
        other = wanted(request.headers)
        return sender if other is None else self._impersonation.user(sender, other, asked)
