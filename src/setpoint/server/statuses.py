"""How this server says no: a ``Status`` with a code, a reason, a message and details, as Kubernetes words it.

``StatusError`` is raised anywhere below a request and becomes its answer; the functions beside it make the
ones that clients tell apart.  ``FieldError`` is one thing wrong with one field; a list of them makes one
``invalid``.

Decides: codes, reasons and wording.  Not here: when to say no (registry), how an answer is sent (http).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from setpoint.server.golang import joined, shown

Json = dict[str, Any]


class StatusError(Exception):
    """A refusal, ready to be sent."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Json | None = None,
        headers: dict[str, str] | None = None,
        metadata: Json | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}
        self.warnings: tuple[str, ...] = ()  # said beside the refusal
        self.metadata = metadata or {}

    @property
    def status(self) -> Json:
        """The object that is sent: ``details`` and ``reason`` are left out where there are none."""
        said: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            said["reason"] = self.reason
        if self.details is not None:
            said["details"] = self.details
        said["code"] = self.code
        return said


# ── One field ───────────────────────────────────────────────────────────────────────────────────────

ErrorType = Literal[
    "required",
    "invalid",
    "not supported",
    "forbidden",
    "duplicate",
    "too long",
    "too many",
    "type",
    "not found",
    "internal",
]
_REASONS: Final[dict[str, tuple[str, str]]] = {
    "required": ("FieldValueRequired", "Required value"),
    "invalid": ("FieldValueInvalid", "Invalid value"),
    "not supported": ("FieldValueNotSupported", "Unsupported value"),
    "forbidden": ("FieldValueForbidden", "Forbidden"),
    "duplicate": ("FieldValueDuplicate", "Duplicate value"),
    "too long": ("FieldValueTooLong", "Too long"),
    "too many": ("FieldValueTooMany", "Too many"),
    "type": ("FieldValueTypeInvalid", "Invalid value"),
    "not found": ("FieldValueNotFound", "Not found"),
    "internal": ("InternalError", "Internal error"),
}
_WITH_VALUE: Final = frozenset({"invalid", "not supported", "duplicate", "type", "not found", "too many"})
OMITTED: Final = object()  # in place of a value: it is not shown


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field, worded as Kubernetes words it."""

    type: ErrorType
    path: str  # as in spec.containers[0].image
    detail: str = ""
    value: Any = field(default=OMITTED, repr=False)
    is_excused: bool = False  # it was so before, and is only warned about

    @property
    def body(self) -> str:
        """The text without the field's name."""
        text = _REASONS[self.type][1]
        if self.type in _WITH_VALUE and self.value is not OMITTED:
            text = f"{text}: {shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"

    @property
    def cause(self) -> Json:
        return {"reason": _REASONS[self.type][0], "message": self.body, "field": self.path}


def unsupported(path: str, value: object, supported: Sequence[str]) -> FieldError:
    """A value that is none of those there are."""
    return FieldError(
        "not supported", path, "supported values: " + ", ".join(shown(one) for one in supported), value
    )


# ── The refusals that clients tell apart ────────────────────────────────────────────────────────────


def qualified(resource: str, group: str) -> str:
    """``deployments.apps``; the core group has no dot."""
    return f"{resource}.{group}" if group else resource


def _about(kind: str, group: str, name: str) -> Json:
    details: Json = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details


def not_found(resource: str, group: str, name: str) -> StatusError:
    return StatusError(
        404,
        "NotFound",
        f'{qualified(resource, group)} "{name}" not found',
        details=_about(resource, group, name),
    )


def not_served() -> StatusError:
    """A path that no resource is served at."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: str, group: str, name: str, *, prefix: str = "") -> StatusError:
    return StatusError(
        409,
        "AlreadyExists",
        f'{prefix}{qualified(resource, group)} "{name}" already exists',
        details=_about(resource, group, name),
    )


def conflict(resource: str, group: str, name: str, why: str) -> StatusError:
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}',
        details=_about(resource, group, name),
    )


MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """One or several fields are wrong; ``kind`` is the Kind."""
    causes = _causes(errors)
    said = joined([f"{one['field']}: {one['message']}" for one in causes])
    details = _about(kind, group, name)
    details["causes"] = causes
    return StatusError(
        422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {said}', details=details
    )


MOST_TOLD: Final = 2**20  # characters of what is wrong: each text may show all of a large object


def _causes(errors: Sequence[FieldError]) -> list[Json]:
    """Every error, until that is too much to tell; then that there are more."""
    causes: list[Json] = []
    left = MOST_TOLD
    for one in errors:
        if left <= 0:
            told = "errors, of which the first are told"
            causes.append(FieldError("too many", "<nil>", told, len(errors)).cause)
            break
        cause = one.cause
        left -= len(cause["field"]) + len(cause["message"])
        causes.append(cause)
    return causes


def forbidden(
    resource: str, group: str, name: str, why: str, *, causes: list[Json] | None = None
) -> StatusError:
    details = _about(resource, group, name)
    if causes:
        details["causes"] = causes
    named = f' "{name}"' if name else ""
    return StatusError(
        403, "Forbidden", f"{qualified(resource, group)}{named} is forbidden: {why}", details=details
    )


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def internal(message: str) -> StatusError:
    return StatusError(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        details={"causes": [{"message": message}]},
    )


def method_not_allowed() -> StatusError:
    return StatusError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={}
    )


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def too_large(limit: int) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media_type(*accepted: str) -> StatusError:
    return StatusError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
    )


def not_acceptable(*accepted: str) -> StatusError:
    return StatusError(
        406, "NotAcceptable", "only the following media types are accepted: " + ", ".join(accepted)
    )


def expired(message: str, *, continue_token: str = "") -> StatusError:
    return StatusError(
        410, "Expired", message, metadata={"continue": continue_token} if continue_token else {}
    )


def too_many_requests(message: str, retry_after: int, *, causes: list[Json] | None = None) -> StatusError:
    details: Json = {"retryAfterSeconds": retry_after} if retry_after else {}
    if causes:
        details["causes"] = causes
    return StatusError(
        429,
        "TooManyRequests",
        message,
        details=details,
        headers={"Retry-After": str(retry_after)} if retry_after else {},
    )


def version_too_large(asked: int, current: int) -> StatusError:
    """A version from the future: the client comes again in a second."""
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        headers={"Retry-After": "1"},
    )
