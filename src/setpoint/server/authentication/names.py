"""Names of users and groups that Kubernetes gives by itself."""

from __future__ import annotations

from typing import Final

ANONYMOUS: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ACCOUNT: Final = "system:serviceaccount:"
NODE: Final = "system:node:"
CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"  # which token or certificate it was


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups that every service account of a namespace is in."""
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"
