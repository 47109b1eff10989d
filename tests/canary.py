"""A value that nobody may print: whatever holds a secret is given it, and all output is searched."""

from __future__ import annotations

import base64
import html
import json

CANARY = "c4n4ry-hunter2"
FORMS = (
    CANARY,
    base64.b64encode(CANARY.encode()).decode(),
    CANARY.encode().hex(),
    json.dumps(CANARY)[1:-1],
    html.escape(CANARY),
)


def assert_unseen(*texts: str) -> None:
    """No form of the canary is in any of these."""
    for text in texts:
        for form in FORMS:
            before, found, after = text.partition(form)
            assert not found, f"{before[-80:]}[{form}]{after[:80]}"
