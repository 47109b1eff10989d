"""Bearer tokens: those that are given beforehand, and those of service accounts.

``BearerTokens`` is asked by requests and by TokenReviews alike.  Given ones are compared in a time that tells
nothing, and only their digests are kept.  ``read_token_file`` reads what kube-apiserver's
``--token-auth-file`` reads.

Used by ``http/authentication.py`` and ``registry/reviews.py``.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from setpoint.server.authentication.names import AUTHENTICATED
from setpoint.server.registry.requests import User

if TYPE_CHECKING:
    from setpoint.server.authentication.accounts import Accounts

INVALID: Final = "invalid bearer token"


class Known(NamedTuple):
    """Whose a token is, and for whom it is good."""

    user: User
    audiences: Sequence[str] = ()


class Unknown(Exception):
    """A token that is nobody's; the text says why, without showing it."""


class BearerTokens:
    """Users by their tokens.  ``accounts`` gives what knows those of service accounts, when first needed."""

    def __init__(
        self, given: Mapping[str, User] | None = None, accounts: Callable[[], Accounts] | None = None
    ) -> None:
        self._given = [(_digest(token), user) for token, user in (given or {}).items()]
        self._accounts_of = accounts

    def __repr__(self) -> str:
        return f"<BearerTokens, {len(self._given)} given>"

    @cached_property
    def accounts(self) -> Accounts | None:
        return None if self._accounts_of is None else self._accounts_of()

    def user(self, token: str) -> User:
        """Whose it is, to ask this server with.  Raises ``Unknown``."""
        found = self._find(token)
        if found is not None:
            return found
        return self.review(token, ()).user

    def review(self, token: str, audiences: Sequence[str]) -> Known:
        """Whose it is, where it is good for one of the audiences; [] are the server's own."""
        own = self.accounts.audiences if self.accounts is not None else ()
        good = [one for one in own if one in audiences] if audiences else list(own)
        found = self._find(token)
        if found is not None and (good or not own):
            return Known(found, good)
        if self.accounts is None:
            raise Unknown(INVALID)
        from setpoint.server.authentication.accounts import BadToken  # noqa: PLC0415 - it is there by now

        try:
            account = self.accounts.read(token, audiences)
        except BadToken as bad:
            raise Unknown(f"[{INVALID}, {bad}]" if str(bad) else INVALID) from None
        return Known(account.user, account.audiences)

    def _find(self, token: str) -> User | None:
        digest, found = _digest(token), None
        for known, user in self._given:
            if hmac.compare_digest(known, digest):
                found = user
        return found


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()


def read_token_file(path: str | Path) -> dict[str, User]:
    """Lines of ``token,user,uid,"group1,group2"``; the groups, and what comes after them, may be left out."""
    import csv  # noqa: PLC0415 - needed by few

    users = {}
    with Path(path).open(newline="") as file:
        for number, row in enumerate(csv.reader(file, skipinitialspace=True), 1):
            if not row or not "".join(row).strip():
                continue
            if len(row) < 3 or not row[0]:
                # What is in the line is a secret.
                raise ValueError(f"read {path}: line {number} is not token,user,uid or token,user,uid,groups")
            token, name, uid, *rest = row
            groups = [one.strip() for one in rest[0].split(",")] if rest and rest[0] else []
            users[token] = User(name, (*groups, AUTHENTICATED), uid)
    return users
