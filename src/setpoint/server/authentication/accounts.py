"""Tokens of service accounts: making one, and knowing one again.

A token is a JWT that the server signs with a key of its own.  It says for which account it was made, for whom
it is good (audiences), until when, and to which object it is bound.

Promises:

1. A token is good while it has not expired, its account is the one that it was made for (by uid), and the
   pod, Secret or Node that it is bound to is there and the same.  What is being deleted still counts for a
   minute after its time, as in Kubernetes.
2. A signature is verified once; everything that can change is looked at each time.
3. A token for other audiences opens nothing here.

Not here: who may ask for one (RBAC on ``serviceaccounts/token``), and the request's own rules
(``registry/accounts.py``).  Keys are ``net/tls.py``'s.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from setpoint.clock import Clock
from setpoint.server.authentication.names import ACCOUNT, AUTHENTICATED, CREDENTIAL, account_groups
from setpoint.server.authorization.rules import in_brackets
from setpoint.server.registry.requests import User
from setpoint.server.statuses import not_found
from setpoint.server.storage.protocol import Place, Store

ISSUER: Final = "https://kubernetes.default.svc"
_LEEWAY: Final = timedelta(minutes=1)
_MOST_KEPT: Final = 1_000
_MOST_LENGTH: Final = 2**16  # characters of what may be a token
_PREFIX: Final = "authentication.kubernetes.io/"
_INVALIDATED: Final = "service account token has been invalidated"

Json = dict[str, Any]


class Key(Protocol):
    """What is needed of ``net.tls.SigningKey``, which is read late."""

    id: str

    @property
    def public(self) -> dict[str, str]: ...

    def sign(self, data: bytes) -> bytes: ...

    def has_signed(self, data: bytes, signature: bytes) -> bool: ...


class BadToken(Exception):
    """It is no good; the text says why, where that may be told, and shows nothing of it."""


class Account(NamedTuple):
    """A service account, by a token that is good."""

    user: User
    audiences: Sequence[str]


class Bound(NamedTuple):
    """What a token is bound to."""

    kind: str  # pod, secret, node
    name: str
    uid: str


class _Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    uid: str = ""
    deletion_timestamp: datetime | None = None


class _Object(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata


_read_object: Final = msgspec.json.Decoder(_Object).decode


class Accounts:
    """The tokens of one server's service accounts.  ``key`` gives the key, when it is first needed."""

    def __init__(self, store: Store, key: Callable[[], Key], *, clock: Clock, jti: Callable[[], str]) -> None:
        self._store = store
        self._key_of = key
        self._clock = clock
        self._jti = jti
        self.issuer = ISSUER
        self.audiences: Sequence[str] = (ISSUER,)
        self._known: dict[bytes, _Known] = {}  # by the digests of tokens

    def __repr__(self) -> str:
        return f"<Accounts of {self.issuer}>"

    @property
    def key(self) -> Key:
        return self._key_of()

    # ── Making one ──────────────────────────────────────────────────────────────────────────────────

    def issue(
        self,
        account: Mapping[str, Any],
        *,
        audiences: Sequence[str],
        seconds: int,
        bound: Sequence[Bound] = (),
        warn_after: int = 0,
    ) -> str:
        """A token for an account, which is the ServiceAccount's metadata."""
        now = int(self._clock.utc().timestamp())
        about: Json = {"namespace": account["namespace"]}
        for one in bound:
            named = {"name": one.name, "uid": one.uid} if one.uid else {"name": one.name}
            about[one.kind] = named
        about["serviceaccount"] = {"name": account["name"], "uid": account["uid"]}
        if warn_after:
            about["warnafter"] = now + warn_after
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuer,
            "jti": self._jti(),
            "kubernetes.io": dict(sorted(about.items())),
            "nbf": now,
            "sub": f"{ACCOUNT}{account['namespace']}:{account['name']}",
        }
        key = self.key
        head = _encoded({"alg": "ES256", "kid": key.id})
        signed = f"{head}.{_encoded(claims)}"
        return f"{signed}.{_base64url(key.sign(signed.encode()))}"

    # ── Knowing it again ────────────────────────────────────────────────────────────────────────────

    def read(self, token: str, audiences: Sequence[str] = ()) -> Account:
        """Whose it is.  Raises ``BadToken``."""
        if len(token) > _MOST_LENGTH:
            raise BadToken
        digest = sha256(token.encode(errors="replace")).digest()
        known = self._known.get(digest)
        if known is None:
            known = _Known(self._verify(token))
            if len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
            self._known[digest] = known
        wanted = audiences or self.audiences
        good = [one for one in known.audiences if one in wanted]
        if not good:
            raise BadToken(
                f"token audiences {in_brackets(known.audiences)} is invalid for the target audiences "
                f"{in_brackets(wanted)}"
            )
        now = self._clock.utc()
        if now > known.last:
            raise BadToken("service account token has expired")
        if now < known.first:
            raise BadToken("service account token is not valid yet")
        self._check_objects(known, now)
        return Account(known.user, good)

    def _verify(self, token: str) -> Json:
        """Its claims, which are ours: nobody else can have signed them."""
        parts = token.split(".")
        if len(parts) != 3:
            raise BadToken
        try:
            claims = _decoded(parts[1])
            head = _decoded(parts[0])
            signature = _bytes(parts[2])
        except (ValueError, msgspec.DecodeError, RecursionError):
            raise BadToken from None
        if not isinstance(claims, dict) or not isinstance(head, dict) or claims.get("iss") != self.issuer:
            raise BadToken
        key = self.key
        if head.get("kid", key.id) != key.id:
            raise BadToken("invalid signature, no keys found")
        if head.get("alg") != "ES256" or not key.has_signed(f"{parts[0]}.{parts[1]}".encode(), signature):
            raise BadToken("go-jose/go-jose: error in cryptographic primitive")
        return claims

    def _check_objects(self, known: _Known, now: datetime) -> None:
        """That all it depends on is there; what has not changed since it was last looked at still is."""
        for need in known.needs:
            record = self._store.get(need.place)
            if record is None:
                raise BadToken(need.absent)
            if record.revision == need.seen:
                continue
            found = _read_object(record.data).metadata
            if found.uid != need.uid:
                raise BadToken(need.other.format(found.uid))
            if found.deletion_timestamp is None:
                need.seen = record.revision
            elif found.deletion_timestamp < now - _LEEWAY:
                raise BadToken(need.gone)


class _Need(msgspec.Struct):
    """An object that a token depends on, and what is said where it is missing, another, or gone."""

    place: Place
    uid: str
    absent: str
    other: str
    gone: str
    seen: int = 0  # the revision at which it was well


class _Known:
    """A token that we signed."""

    __slots__ = ("audiences", "first", "last", "needs", "user")

    def __init__(self, claims: Json) -> None:
        self.audiences: Sequence[str] = claims["aud"]
        self.first = _instant(claims["nbf"]) - _LEEWAY
        self.last = _instant(claims["exp"]) + _LEEWAY
        self.user = _user(claims)
        self.needs = list(_needs(claims["kubernetes.io"]))


def _needs(about: Json) -> Iterator[_Need]:
    namespace, account = about["namespace"], about["serviceaccount"]
    yield _Need(
        Place("serviceaccounts", namespace, account["name"]),
        account["uid"],
        not_found("serviceaccounts", "", account["name"]).message,
        f"service account UID ({{}}) does not match claim ({account['uid']})",
        f"service account {namespace}/{account['name']} has been deleted",
    )
    for kind in ("secret", "pod", "node"):
        bound = about.get(kind)
        if bound is None or (kind == "node" and "pod" in about):  # a pod's node is only told
            continue
        yield _Need(
            Place(f"{kind}s", "" if kind == "node" else namespace, bound["name"]),
            bound["uid"],
            _INVALIDATED,
            f"{kind} UID ({{}}) does not match service account {kind} ref claim ({bound['uid']})",
            _INVALIDATED,
        )


def _user(claims: Json) -> User:
    about = claims["kubernetes.io"]
    extra = {CREDENTIAL: (f"JTI={claims['jti']}",)}
    for kind in ("node", "pod"):
        if (bound := about.get(kind)) is not None:
            extra[f"{_PREFIX}{kind}-name"] = (bound["name"],)
            if bound.get("uid"):
                extra[f"{_PREFIX}{kind}-uid"] = (bound["uid"],)
    namespace = about["namespace"]
    return User(
        claims["sub"],
        (*account_groups(namespace), AUTHENTICATED),
        about["serviceaccount"]["uid"],
        dict(sorted(extra.items())),
    )


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _encoded(value: Json) -> str:
    return _base64url(msgspec.json.encode(value))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """Raises ValueError for what is not base64url, or has padding."""
    if "=" in text:
        raise ValueError("padded")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _decoded(text: str) -> Any:
    return msgspec.json.decode(_bytes(text))
