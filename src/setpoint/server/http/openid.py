"""What others need to verify a service account's token by themselves: the issuer, and its public key.

Pure.  Used by ``app.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from setpoint.server.authentication.accounts import Accounts

_CONFIGURATION: Final = (".well-known", "openid-configuration")
_KEYS: Final = ("openid", "v1", "jwks")
PATHS: Final = (_CONFIGURATION, _KEYS)


def document(path: tuple[str, ...], accounts: Accounts, host: str) -> tuple[str, bytes]:
    """Its media type, and the document.  ``host`` is the name by which we were asked."""
    if path == _KEYS:
        return "application/jwk-set+json", msgspec.json.encode({"keys": [accounts.key.public]})
    return "application/json", msgspec.json.encode(
        {
            "issuer": accounts.issuer,
            "jwks_uri": f"https://{host}/{'/'.join(_KEYS)}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }
    )
