"""Decides which failures may be tried again, and when.

1. A server that says when to come back (429 or 503 with Retry-After) is asked again then, whatever the
   verb: it did not act on the request.
2. A connection that was never made is tried again, whatever the verb: nothing was sent.
3. A lost answer or a failing server is tried again only where the verb is safe to repeat: reads, apply,
   and anything that is only a dry run.  A repeated create, update or delete could report a conflict with
   itself, or happen twice.  A 500 without a reason is the server's way of refusing some bodies (a field that
   an applied object's schema does not have), which it would refuse again; to a request without a body it
   says that its storage failed.
4. Never past the caller's deadline: a wait that would end after it is not begun.

No clock and no task: ``sender.py`` does the waiting.
"""

from __future__ import annotations

from collections.abc import Callable

from setpoint.errors import (
    AnswerLost,
    ConnectionFailed,
    ServerError,
    ServiceUnavailable,
    SetpointError,
    TooManyRequests,
)

ASKED_TRIES = 10  # as client-go: a server that keeps saying "later" is obeyed this often
OTHER_TRIES = 4  # 0.1, 0.2, 0.4 s between: outlasts a restart of a proxy, not an outage
FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0

SAFE_TO_REPEAT = frozenset({"get", "list", "watch", "apply"})


def wait_before_retry(
    error: SetpointError, *, tries: int, safe: bool, has_body: bool, jitter: Callable[[], float]
) -> float | None:
    """Seconds to wait before try number ``tries + 1``; None if there must be none.

    ``jitter`` gives a number in [0, 1): clients that failed together should not return together.
    """
    if isinstance(error, TooManyRequests | ServiceUnavailable) and error.retry_after is not None:
        return error.retry_after + jitter() * FIRST_WAIT if tries < ASKED_TRIES else None
    repeatable = isinstance(error, ConnectionFailed) or (safe and _passing(error, has_body=has_body))
    if not repeatable or tries >= OTHER_TRIES:
        return None
    if isinstance(error, ServerError | TooManyRequests) and error.retry_after is not None:
        return error.retry_after + jitter() * FIRST_WAIT
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (tries - 1)) * (1 + jitter()) / 2


def _passing(error: SetpointError, *, has_body: bool) -> bool:
    """Whether the same request might fare better a moment later."""
    if isinstance(error, ServerError):
        return error.code != 500 or bool(error.reason) or not has_body
    return isinstance(error, AnswerLost | TooManyRequests)
