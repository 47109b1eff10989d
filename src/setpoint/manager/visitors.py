"""Who may read what this process tells of itself, as the API server says.

A visitor shows the token that it would show to the API server.  A TokenReview says whose it is, a
SubjectAccessReview whether RBAC lets it get the path: ``nonResourceURLs: [/metrics]``, verb ``get``.

Promises:

1. Nobody gets in without a yes to both: no token, a wrong one, and a server that cannot be asked are all no.
2. A yes is believed for ``GOOD_FOR`` seconds and a no for ``BAD_FOR``: who scrapes asks the server little,
   and a permission that was taken away ends soon.
3. Strangers cannot make us ask the server much: so many questions at a time, and the rest waits.
4. No token is kept or shown: answers are remembered by its digest.

``RULES`` are what this process itself needs.  Not here: HTTP and TLS.  Used by ``probes.py``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from setpoint.errors import SetpointError

if TYPE_CHECKING:
    from setpoint.client.client import Client
    from setpoint.kube.authentication.v1 import UserInfo

GOOD_FOR: Final = 60.0
BAD_FOR: Final = 10.0
_MOST_KEPT: Final = 1_000
_MOST_ASKED: Final = 4  # questions at a time
_MOST_TOKEN: Final = 16 * 2**10  # characters: longer ones are none

RULES: Final[list[dict[str, Any]]] = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]

log = logging.getLogger("setpoint.probes")


class Answer(NamedTuple):
    """Whether somebody may; if not, what is said, as HTTP and in words."""

    code: int
    text: str = ""

    @property
    def is_yes(self) -> bool:
        return self.code == 200


class Visitors:
    """Asks the API server about whoever comes."""

    def __init__(self, client: Client, *, now: Callable[[], float] = monotonic) -> None:
        self._client = client
        self._now = now
        self._asking = asyncio.Semaphore(_MOST_ASKED)
        self._known: dict[bytes, tuple[float, Answer]] = {}  # until when, by digests

    def __repr__(self) -> str:
        return f"<Visitors, {len(self._known)} known>"

    async def judge(self, authorization: str, path: str) -> Answer:
        """Whether who shows this (the value of ``Authorization``) may get the path."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > _MOST_TOKEN or not token.isascii():
            return Answer(401, "Unauthorized: show a bearer token")
        digest = sha256(f"{path}\n{token}".encode()).digest()
        if (found := self._remembered(digest)) is not None:
            return found
        async with self._asking:
            if (found := self._remembered(digest)) is not None:  # somebody asked meanwhile
                return found
            try:
                answer = await self._ask(token, path)
            except SetpointError as error:
                log.error("who may get %s could not be asked: %s", path, error)  # noqa: TRY400 - it says it all
                return Answer(500, "the API server could not be asked who you are; see the log")
        self._remember(digest, answer)
        return answer

    async def _ask(self, token: str, path: str) -> Answer:
        from setpoint.kube.authentication.v1 import TokenReview, TokenReviewSpec  # noqa: PLC0415 - few ask

        review = await self._client.create(TokenReview(spec=TokenReviewSpec(token=token)))
        user = review.status.user
        if not review.status.authenticated or not user.username:
            return Answer(401, "Unauthorized: the API server does not know this token")
        if await self._may(user, path):
            return Answer(200)
        return Answer(403, f"Forbidden: {user.username} may not get {path}")

    async def _may(self, user: UserInfo, path: str) -> bool:
        from setpoint.kube.authorization.v1 import (  # noqa: PLC0415
            NonResourceAttributes,
            SubjectAccessReview,
            SubjectAccessReviewSpec,
        )

        spec = SubjectAccessReviewSpec(
            user=user.username,
            groups=user.groups,
            uid=user.uid,
            extra=user.extra,
            non_resource_attributes=NonResourceAttributes(path=path, verb="get"),
        )
        return (await self._client.create(SubjectAccessReview(spec=spec))).status.allowed

    def _remembered(self, digest: bytes) -> Answer | None:
        until, answer = self._known.get(digest, (0.0, None))
        return answer if self._now() < until else None

    def _remember(self, digest: bytes, answer: Answer) -> None:
        self._known.pop(digest, None)
        if len(self._known) >= _MOST_KEPT:
            del self._known[next(iter(self._known))]
        self._known[digest] = self._now() + (GOOD_FOR if answer.is_yes else BAD_FOR), answer
