"""The rules of ``api/status.py``: which refusal is which error."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from setpoint import errors
from setpoint.api.status import refusal


def body(**fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", **fields}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (405, "MethodNotAllowed", errors.MethodNotAllowed),
        (406, "NotAcceptable", errors.NotAcceptable),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Gone", errors.Gone),
        (410, "Expired", errors.Expired),
        (413, "RequestEntityTooLarge", errors.RequestTooLarge),
        (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.InternalError),
        (500, "ServerTimeout", errors.ServerTimeout),
        (503, "ServiceUnavailable", errors.ServiceUnavailable),
        (504, "Timeout", errors.ServerTimeout),
        (502, "", errors.ServerError),
        (410, "", errors.Expired),
        (418, "IAmATeapot", errors.ApiError),
    ],
)
def test_the_reason_decides_and_where_there_is_none_the_code(code: int, reason: str, expected: type) -> None:
    error = refusal("get v1 Pod web", code, body(code=code, reason=reason, message="why"))
    assert type(error) is expected
    assert (error.code, error.reason, error.message) == (code, reason, "why")


def test_an_object_that_is_not_there_and_a_kind_that_is_not_served_are_two_errors() -> None:
    object_missing = body(
        code=404, reason="NotFound", message='pods "x" not found', details={"name": "x", "kind": "pods"}
    )
    kind_missing = body(
        code=404, reason="NotFound", message="the server could not find the requested resource", details={}
    )
    assert type(refusal("", 404, object_missing)) is errors.NotFound
    assert type(refusal("", 404, kind_missing)) is errors.KindNotServed
    assert type(refusal("", 404, b"404 page not found\n")) is errors.KindNotServed
    assert not issubclass(errors.KindNotServed, errors.NotFound), (
        "or a missing CRD would pass for a deleted object"
    )


def test_an_apply_conflict_lists_managers_and_fields() -> None:
    causes = [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.a"},
        {"reason": "FieldManagerConflict", "message": 'conflict with "upd" using v1', "field": ".data.b"},
    ]
    error = refusal(
        "apply v1 ConfigMap a", 409, body(code=409, reason="Conflict", details={"causes": causes})
    )
    assert isinstance(error, errors.ApplyConflict)
    assert error.conflicts == (("m1", ".data.a"), ("upd", ".data.b"))
    assert "force=True" in str(error)


def test_an_invalid_object_says_where() -> None:
    causes = [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.image"}]
    error = refusal("", 422, body(code=422, reason="Invalid", details={"causes": causes}))
    assert error.causes == (errors.Cause("spec.image", "FieldValueRequired", "Required value"),)


def test_an_expired_list_offers_a_fresh_token() -> None:
    error = refusal("", 410, body(code=410, reason="Expired", metadata={"continue": "abc"}))
    assert error.continue_token == "abc"


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [
        ("7", {}, 7),
        (None, {"retryAfterSeconds": 3}, 3),
        ("soon", {"retryAfterSeconds": 3}, 3),
        (None, {}, None),
    ],
)
def test_when_to_come_back_is_read_from_the_header_or_the_details(
    header: str | None, details: dict[str, int], expected: float | None
) -> None:
    error = refusal("", 429, body(code=429, details=details), retry_after=header)
    assert error.retry_after == expected


@pytest.mark.parametrize(
    "rubbish", [b"", b"<html>bad\n gateway</html>", b"\xff\xfe", b'{"kind":"Pod"}', b'"x"', b"{"]
)
def test_what_is_no_status_is_told_in_its_own_words_and_cut(rubbish: bytes) -> None:
    error = refusal("get v1 Pod web", 502, rubbish + b"x" * 10_000 if rubbish else rubbish)
    assert isinstance(error, errors.ServerError)
    assert 0 < len(error.message) <= 500
    assert "\n" not in error.message


def test_a_refusal_about_a_secret_keeps_the_fields_and_drops_the_values() -> None:
    causes = [
        {"reason": "FieldValueInvalid", "message": 'Invalid value: "hunter2"', "field": "data.password"}
    ]
    said = body(
        code=422, reason="Invalid", message='Secret "s" is invalid: "hunter2"', details={"causes": causes}
    )
    error = refusal("create v1 Secret s", 422, said, secretive=True)
    assert "hunter2" not in f"{error} {error!r} {error.causes}"
    assert "data.password" in str(error)


def test_an_error_says_what_was_being_done_what_happened_and_what_to_do() -> None:
    error = refusal(
        "update apps/v1 Deployment shop/web", 409, body(code=409, reason="Conflict", message="it changed")
    )
    assert str(error).startswith("update apps/v1 Deployment shop/web: it changed (read it again")


def test_an_error_survives_pickling() -> None:
    error = refusal(
        "get v1 Pod web", 429, body(code=429, reason="TooManyRequests", message="later"), retry_after="2"
    )
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.retry_after, copy.code) == (type(error), str(error), 2.0, 429)
