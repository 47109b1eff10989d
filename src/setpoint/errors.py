"""Every error that Setpoint raises on purpose, as one tree.

    SetpointError
    ├── ApiError                     the server answered, and refused
    │   ├── BadRequest               400  the request makes no sense to the server
    │   ├── Unauthorized             401  the server does not know who we are
    │   ├── Forbidden                403  it knows, and we may not
    │   ├── NotFound                 404  no such object
    │   ├── KindNotServed            404  the server has no such kind or subresource
    │   ├── MethodNotAllowed         405  the kind has no such verb
    │   ├── NotAcceptable            406  no common format for the answer
    │   ├── Conflict                 409  the object changed after it was read
    │   │   ├── AlreadyExists        409  create of a name that is taken
    │   │   └── ApplyConflict        409  apply of fields that others manage
    │   ├── Gone                     410  the thing asked for is no longer kept
    │   │   └── Expired              410  a resourceVersion or continue token too old to go on from
    │   ├── RequestTooLarge          413
    │   ├── UnsupportedMediaType     415
    │   ├── Invalid                  422  the object breaks its schema; `causes` says where
    │   ├── TooManyRequests          429
    │   └── ServerError              5xx  the server failed
    │       ├── InternalError        500
    │       ├── ServiceUnavailable   503
    │       └── ServerTimeout        500/504  it gave up; the request may still have happened
    ├── TransportError               no whole answer arrived
    │   ├── ConnectionFailed         nothing was sent: the request did not happen
    │   ├── AnswerLost               it was sent: the request may have happened
    │   ├── BadAnswer                an answer arrived that is not HTTP, JSON or Kubernetes
    │   └── DeadlineExceeded         the caller's time ran out
    ├── WatchStalled                 a watch was silent for longer than its liveness deadline
    ├── NotSynced                    a cache does not hold all of a kind yet; says which, and why
    ├── NotDeclared                  a read of something that no cache was told to hold
    ├── LeadershipLost               another replica may lead by now: a write was refused, or we ended
    ├── StreamFailed                 an exec or port-forward stream ended with an error
    ├── QueueShutDown                a work queue has no more keys to hand out
    ├── TerminalError                raised by a reconciler: failed, and no retry before the object changes
    ├── RetryLater                   raised by a reconciler: it waits for something outside; no failure
    ├── AlreadyOwned                 an object that was to be ours has another controller
    ├── ConfigError                  where and who could not be worked out
    │   └── CredentialError          a token file or credential plugin gave nothing usable
    ├── UnknownKind                  neither a model nor the server knows the kind
    ├── DecodeError                  bytes that do not fit the model they were read into
    ├── SchemaError                  a model that cannot be a structural schema (raised at class creation)
    ├── CannotOpen                   a data directory that no server can use; lives in setpoint.server
    ├── StartFailed                  a control plane for tests did not start; lives in setpoint.testing
    ├── CloudError                   what stands for a system outside did not do it; lives in setpoint.testing
    └── ExternalCallRefused          code under test wanted to leave its process; lives in setpoint.testing

What the embedded server says no with (``server/statuses.py``) is not here: it leaves the server as an answer.
A user's wrong argument is a plain TypeError or ValueError; a broken promise of our own is an
AssertionError with a sentence, never caught.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


class SetpointError(Exception):
    """Anything Setpoint raises on purpose: what was being done, what happened, what to do."""

    advice: str = ""  # the class's, unless the one who raises knows better

    def __init__(self, doing: str, message: str, *, advice: str | None = None) -> None:
        super().__init__(doing, message)  # args stay plain: repr and pickle work
        self.doing = doing
        self.message = message
        if advice is not None:
            self.advice = advice

    def __str__(self) -> str:
        said = f"{self.doing}: {self.message}" if self.doing else self.message
        return f"{said} ({self.advice})" if self.advice else said


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason among several, as the server lists them in ``details.causes``."""

    field: str = ""
    reason: str = ""
    message: str = ""


class ApiError(SetpointError):
    """The API server refused a request."""

    code: int = 0
    reason: str = ""

    def __init__(
        self,
        doing: str,
        message: str,
        *,
        code: int | None = None,
        reason: str | None = None,
        causes: tuple[Cause, ...] = (),
        retry_after: float | None = None,
        continue_token: str = "",
    ) -> None:
        super().__init__(doing, message)
        self.code = type(self).code if code is None else code
        self.reason = type(self).reason if reason is None else reason
        self.causes = causes
        self.retry_after = retry_after
        self.continue_token = continue_token  # a fresh one, where an expired list offers it

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, self.__dict__


class BadRequest(ApiError):
    """The request makes no sense to the server."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """The server does not know who we are."""

    code, reason = 401, "Unauthorized"
    advice = "check the credentials of this context; a token or certificate may have expired"


class Forbidden(ApiError):
    """The server knows who we are, and we may not."""

    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    """No such object."""

    code, reason = 404, "NotFound"


class KindNotServed(ApiError):
    """The server has no such kind or subresource.  Not a NotFound: it says nothing about any object."""

    code, reason = 404, "NotFound"
    advice = "is its CustomResourceDefinition installed, and does it serve this version?"


class MethodNotAllowed(ApiError):
    """The kind has no such verb."""

    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    """The server has no format that we accept."""

    code, reason = 406, "NotAcceptable"


class Conflict(ApiError):
    """The object changed after it was read."""

    code, reason = 409, "Conflict"
    advice = "read it again and decide afresh; do not resend the same body"


class AlreadyExists(Conflict):
    """Create of a name that is taken."""

    reason = "AlreadyExists"
    advice = ""


class ApplyConflict(Conflict):
    """Apply of fields that other managers own; ``conflicts`` lists (manager, field)."""

    advice = "leave those fields out, or take them with force=True"

    @property
    def conflicts(self) -> tuple[tuple[str, str], ...]:
        return tuple((_manager(cause.message), cause.field) for cause in self.causes)


class Gone(ApiError):
    """The thing asked for is no longer kept."""

    code, reason = 410, "Gone"


class Expired(Gone):
    """A resourceVersion or continue token too old to go on from."""

    reason = "Expired"
    advice = "list again from the start"


class RequestTooLarge(ApiError):
    """The body is over the server's limit."""

    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """The server does not read the format we sent."""

    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """The object breaks its schema; ``causes`` says where."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    """The server, or a disruption budget, asks us to come back later."""

    code, reason = 429, "TooManyRequests"


class ServerError(ApiError):
    """The server failed."""

    code = 500


class InternalError(ServerError):
    """The server, or a webhook it called, failed."""

    reason = "InternalError"


class ServiceUnavailable(ServerError):
    """The server, or one behind it, is not there just now."""

    code, reason = 503, "ServiceUnavailable"


class ServerTimeout(ServerError):
    """The server gave up; the request may still have happened."""

    code, reason = 504, "Timeout"


class TransportError(SetpointError):
    """No whole answer arrived."""

    def during(self, doing: str) -> Self:
        """The same error, told from above: a transport knows what went wrong, but not what it was for."""
        self.doing = doing
        self.args = (doing, self.message)
        return self


class ConnectionFailed(TransportError):
    """Nothing was sent: the request did not happen."""

    advice = "is the server up, and is this its address?"


class AnswerLost(TransportError):
    """The request was sent and no answer came: it may have happened."""


class BadAnswer(TransportError):
    """An answer arrived that is not HTTP, JSON or Kubernetes."""


class DeadlineExceeded(TransportError):
    """The caller's time ran out; if the request was sent, it may have happened."""


class WatchStalled(SetpointError):
    """A watch was silent for longer than its liveness deadline."""


class NotSynced(SetpointError):
    """A cache does not hold all of a kind yet."""


class NotDeclared(SetpointError):
    """A read of something that no cache was told to hold."""


class LeadershipLost(SetpointError):
    """We do not lead, or may not any more: what was to be written was not sent."""

    advice = "end the process and start it anew: another replica may be at work"


class StreamFailed(SetpointError):
    """An exec or port-forward stream ended with an error."""


class QueueShutDown(SetpointError):
    """A work queue was shut down and has no more keys to hand out: how a worker's loop ends."""


class TerminalError(SetpointError):
    """A reconciler failed in a way that no retry mends: it is looked at again when something changes."""

    def __init__(self, message: str = "") -> None:
        super().__init__("", message or "it failed, and trying again would not help")
        self.args = (self.message,)


class RetryLater(SetpointError):
    """A reconciler waits for something outside: it is looked at again in ``seconds``, and nothing failed."""

    def __init__(self, seconds: float, message: str = "") -> None:
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"retry later, but when? {seconds} is no number of seconds")
        super().__init__("", message or "something is not there yet")
        self.args = (seconds, self.message)
        self.seconds = seconds


class AlreadyOwned(SetpointError):
    """An object that was to be ours has another controller."""


class ConfigError(SetpointError):
    """Where the server is, or who we are, could not be worked out."""


class CredentialError(ConfigError):
    """A token file or credential plugin gave nothing usable."""


class UnknownKind(SetpointError):
    """Neither a model nor the server knows the kind."""


class DecodeError(SetpointError):
    """Bytes that do not fit the model they were read into."""


class SchemaError(SetpointError):
    """A model that cannot be a structural schema."""


def _manager(message: str) -> str:
    """The manager in a conflict's text, ``conflict with "m" using v1`` → ``m``."""
    _, quote, rest = message.partition('"')
    return rest.partition('"')[0] if quote else message
