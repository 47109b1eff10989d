"""Decides how an image is pulled where nobody said: always if it may have moved, else when it is missing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_WORD: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*+"
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*+|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE: Final = re.compile(
    rf"(?:{_HOST}/)?{_WORD}(?:/{_WORD})*+"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*+:[0-9a-fA-F]{32,})?"
)
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")


@lru_cache(maxsize=1024)
def pull_policy(image: str) -> str:
    """``Always`` for the tag latest, said or not; what is no image's name is not known to have moved."""
    match = None if _IDENTIFIER.fullmatch(image) else _REFERENCE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"
