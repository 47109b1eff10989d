"""The server's refusals, turned into our errors.

A refusal is a ``Status`` object with a code, a reason and details; from old servers, proxies and unknown
paths it is plain text.  ``refusal`` turns either into the one error of ``setpoint.errors`` that callers
tell apart.  The reason decides; where there is none, the code does.

What was sent may come back in a refusal (the server quotes invalid values), so a refusal about a kind
that holds secrets keeps the fields and drops the values.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from setpoint import errors
from setpoint.errors import ApiError, Cause

_TEXT_LIMIT = 500  # a proxy's error page is not worth more


class _Cause(msgspec.Struct):
    reason: str | None = None
    message: str | None = None
    field: str | None = None


class _Details(msgspec.Struct, rename="camel"):
    name: str | None = None
    kind: str | None = None
    causes: list[_Cause] | None = None
    retry_after_seconds: float | None = None


class _ListMeta(msgspec.Struct):
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Status(msgspec.Struct):
    kind: str | None = None
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None
    metadata: _ListMeta | None = None


_decoder = msgspec.json.Decoder(_Status)

_BY_REASON: Mapping[str, type[ApiError]] = {
    "BadRequest": errors.BadRequest,
    "Unauthorized": errors.Unauthorized,
    "Forbidden": errors.Forbidden,
    "NotFound": errors.NotFound,
    "MethodNotAllowed": errors.MethodNotAllowed,
    "NotAcceptable": errors.NotAcceptable,
    "Conflict": errors.Conflict,
    "AlreadyExists": errors.AlreadyExists,
    "Gone": errors.Gone,
    "Expired": errors.Expired,
    "RequestEntityTooLarge": errors.RequestTooLarge,
    "UnsupportedMediaType": errors.UnsupportedMediaType,
    "Invalid": errors.Invalid,
    "TooManyRequests": errors.TooManyRequests,
    "InternalError": errors.InternalError,
    "ServiceUnavailable": errors.ServiceUnavailable,
    "ServerTimeout": errors.ServerTimeout,
    "Timeout": errors.ServerTimeout,
}

_BY_CODE: Mapping[int, type[ApiError]] = {
    400: errors.BadRequest,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.KindNotServed,  # with no reason given it is the router that answered, not a registry
    405: errors.MethodNotAllowed,
    406: errors.NotAcceptable,
    409: errors.Conflict,
    410: errors.Expired,
    413: errors.RequestTooLarge,
    415: errors.UnsupportedMediaType,
    422: errors.Invalid,
    429: errors.TooManyRequests,
    500: errors.InternalError,
    503: errors.ServiceUnavailable,
    504: errors.ServerTimeout,
}


def refusal(
    doing: str, code: int, body: bytes, *, retry_after: str | None = None, secretive: bool = False
) -> ApiError:
    """The error that an answer with an error status (or a watch's ERROR event) stands for."""
    status = _parse(body)
    if status is None:
        text = " ".join(body[: _TEXT_LIMIT * 4].decode("utf-8", "replace").split())[:_TEXT_LIMIT]
        status = _Status(message=text or f"HTTP {code} without a word")
    code = status.code or code
    details = status.details or _Details()
    causes = tuple(
        Cause(cause.field or "", cause.reason or "", cause.message or "") for cause in details.causes or ()
    )
    message = status.message or f"HTTP {code}"
    if secretive and code in _MAY_QUOTE:
        causes = tuple(Cause(cause.field, cause.reason, _HIDDEN) for cause in causes)
        fields = ", ".join(cause.field for cause in causes if cause.field)
        message = f"refused{f' at {fields}' if fields else ''}: {_HIDDEN}"
    return _class_for(code, status.reason or "", details, causes)(
        doing,
        message,
        code=code,
        reason=status.reason or "",
        causes=causes,
        retry_after=_seconds(retry_after, details.retry_after_seconds),
        continue_token=(status.metadata and status.metadata.continue_) or "",
    )


_MAY_QUOTE = frozenset({400, 422, 500})
_HIDDEN = "the server's words are not shown, they may quote the secret"


def _parse(body: bytes) -> _Status | None:
    try:
        status = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return status if status.kind == "Status" else None


def _class_for(code: int, reason: str, details: _Details, causes: tuple[Cause, ...]) -> type[ApiError]:
    found = _BY_REASON.get(reason) or _BY_CODE.get(code) or (errors.ServerError if code >= 500 else ApiError)
    if found is errors.NotFound and not details.name:
        return errors.KindNotServed
    if found is errors.Conflict and any(cause.reason == "FieldManagerConflict" for cause in causes):
        return errors.ApplyConflict
    return found


def _seconds(header: str | None, detail: float | None) -> float | None:
    """Retry-After: the header where it is a number of seconds, else what the details say."""
    if header is not None and header.strip().isdigit():
        return float(header)
    return detail
