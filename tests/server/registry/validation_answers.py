"""An answer to a case, in the short form that is recorded and compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

RECORDED: Final = Path(__file__).parent / "recorded" / "validation.json"
Answer = list[Any]  # the code; then, if there are any, causes, the message and warnings
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_GENERATED: Final = re.compile(r"Bad_[a-z0-9]{5}\b")
_EVERY: Final = "v1 Endpoints is deprecated"  # said of every request, before it is looked at
# Texts that many answers hold, word for word, and what stands for each in a recorded answer.
_PHRASES: Final = {
    "<subdomain>": (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
        r"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    ),
    "<label>": (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
        "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
        "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    ),
    "<key>": (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    ),
    "<value>": (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
        "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ),
    "<not negative>": "must be greater than or equal to 0",
}
_REASONS: Final = {
    "FieldValueRequired": "R",
    "FieldValueInvalid": "I",
    "FieldValueNotSupported": "S",
    "FieldValueForbidden": "F",
    "FieldValueDuplicate": "D",
    "FieldValueNotFound": "N",
    "FieldValueTooLong": "L",
    "FieldValueTooMany": "M",
}
_LONG: Final = re.compile(r"(.)\1{40,}")


def answer(code: int, body: dict[str, Any], warnings: list[str]) -> Answer:
    found: Answer = [code]
    said = [_plain(one) for one in warnings if not one.startswith(_EVERY)]
    if code >= 400:
        causes = (body.get("details") or {}).get("causes") or []
        texts = [[_reason(one), one.get("field", ""), _plain(one.get("message", ""))] for one in causes]
        found.append(texts)
        message = _plain(body["message"])
        name = _plain((body.get("details") or {}).get("name", ""))
        joined = list(dict.fromkeys(f"{field}: {text}" for _, field, text in texts))
        made = joined[0] if len(joined) == 1 else f"[{', '.join(joined)}]"
        head, _, tail = message.partition(f'"{name}" is invalid: ')
        found.append(head.strip() if tail == made and causes else message)
        if said:
            found.append(said)
    elif said:
        found += [[], "", said]
    return found


def _reason(cause: dict[str, str]) -> str:
    reason = cause.get("reason", "")
    return _REASONS.get(reason, reason)


def _plain(text: str) -> str:
    """Without what differs from run to run, and short."""
    for short, phrase in _PHRASES.items():
        text = text.replace(phrase, short)
    named = _GENERATED.sub("Bad_MADE", _UID.sub("UID", text))
    return _LONG.sub(lambda match: f"{match[1]}*{len(match[0])}", named)
