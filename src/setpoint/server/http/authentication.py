"""Who asks: the user behind a request's credentials, or nobody.

A bearer token is known or not; comparing it takes as long whatever it is.  Without a credential only
health and the version may be asked for; with a wrong one, nothing.

An ``Authenticator`` is a function, so that client certificates and service accounts can stand beside
``Tokens``. Used by ``app.py``.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final, TypeAlias
from urllib.parse import unquote

from setpoint.net.transport import Request
from setpoint.server.registry.requests import User
from setpoint.server.statuses import unauthorized

# The user; None for who shows nothing.  Raises 401 where what is shown is wrong.
Authenticator: TypeAlias = Callable[[Request], User | None]

ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))
_AS: Final = "Impersonate-User"
_AS_GROUP: Final = "Impersonate-Group"
_AS_UID: Final = "Impersonate-Uid"
_AS_EXTRA: Final = "Impersonate-Extra-"
_OPEN: Final = frozenset({"version", "healthz", "livez", "readyz"})


class Tokens:
    """Users by their bearer tokens.  Only digests are kept."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = [(_digest(token), user) for token, user in users.items()]

    def __repr__(self) -> str:
        return f"<Tokens of {len(self._users)} users>"

    def __call__(self, request: Request) -> User | None:
        shown = request.headers.get("Authorization")
        if shown is None:
            return None
        scheme, _, token = shown.partition(" ")
        if scheme.lower() == "bearer":
            digest, found = _digest(token.strip()), None
            for known, user in self._users:
                if hmac.compare_digest(known, digest):
                    found = user
            if found is not None:
                return found
        raise unauthorized()


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()


def authenticate(request: Request, path: tuple[str, ...], authenticator: Authenticator) -> User:
    """The user, or 401.  Whoever has a credential may act as somebody else."""
    user = authenticator(request)
    if user is not None:
        return _acting(request) or user
    if path and path[0] in _OPEN:
        return ANONYMOUS
    raise unauthorized()


def _acting(request: Request) -> User | None:
    """Whom the request asks to be taken for."""
    name = request.headers.get(_AS)
    if not name:
        return None
    said = request.headers.get(_AS_GROUP, "").replace("\n", ",")  # one for each group, joined on the way here
    groups = tuple(one.strip() for one in said.split(",") if one.strip())
    extra = {
        unquote(header[len(_AS_EXTRA) :]).lower(): (value,)
        for header, value in request.headers.items()
        if header.title().startswith(_AS_EXTRA)
    }
    return User(name, (*groups, "system:authenticated"), request.headers.get(_AS_UID, ""), extra)
