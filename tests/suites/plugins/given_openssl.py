# mypy: ignore-errors
"""A plug-in of pytest for kopf's suite: oscrypto, which makes its certificates, can read OpenSSL's version.

What is published of it takes 3.0.15 for no version at all, since it looks for single digits; kopf's own runs
have it from a commit that is right.
"""

from __future__ import annotations

import importlib
import re
from unittest import mock

_search = re.search
_SINGLE, _ANY = r"\b(\d\.\d\.\d[a-z]*)\b", r"\b(\d+\.\d+\.\d+[a-z]*)\b"


def _patient(pattern, text, flags=0):
    return _search(_ANY if pattern == _SINGLE else pattern, text, flags)


with mock.patch("re.search", _patient):
    importlib.import_module("oscrypto._openssl._libcrypto_cffi")
