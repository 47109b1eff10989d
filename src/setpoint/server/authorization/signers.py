"""Who may approve a request for a certificate, who may sign it, and who vouches for a signer.

Each request names its signer.  To approve or deny one takes the verb ``approve`` on that signer, to write its
certificate or its conditions the verb ``sign``; a rule may name all signers of a domain, ``example.com/*``.
And nobody asks the cluster's own signer for a certificate of ``system:masters``: it could not be taken back.
To write a ClusterTrustBundle of a signer takes the verb ``attest`` on it.

Pure.  Used by ``escalation.py``, which is asked before anything is written.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.authorizer import MASTERS, Authorizer
from setpoint.server.golang import quoted, same
from setpoint.server.registry.requests import Ask
from setpoint.server.registry.resources import Object
from setpoint.server.statuses import forbidden

BUNDLES: Final = "clustertrustbundles.certificates.k8s.io"
REQUESTS: Final = "certificatesigningrequests.certificates.k8s.io"
_GROUP: Final = "certificates.k8s.io"
_CLIENTS: Final = "kubernetes.io/kube-apiserver-client"
_VERBS: Final = {"approval": "approve", "status": "sign"}


def check(new: Object, old: Object | None, ask: Ask, authorizer: Authorizer) -> None:
    """Raises 403."""
    spec = (new if old is None else old).get("spec") or {}
    signer = str(spec.get("signerName", ""))
    if old is None:
        if signer == _CLIENTS and MASTERS in _organizations(str(spec.get("request") or "")):
            raise _refused(ask, new, f"use of {_CLIENTS} signer with {MASTERS} group is not allowed")
        return
    verb = _VERBS.get(ask.subresource)
    if verb is None or (verb == "sign" and _is_same_answer(new, old)):
        return
    if not _may(verb, signer, ask, authorizer):
        raise _refused(ask, old, f"user not permitted to {verb} requests with signerName {quoted(signer)}")


def check_bundle(new: Object, ask: Ask, authorizer: Authorizer) -> None:
    """Raises 403."""
    signer = str((new.get("spec") or {}).get("signerName", ""))
    if signer and not _may("attest", signer, ask, authorizer):
        raise _refused(ask, new, f"user not permitted to attest for signerName {quoted(signer)}")


def _may(verb: str, signer: str, ask: Ask, authorizer: Authorizer) -> bool:
    of_domain = f"{signer.partition('/')[0]}/*"
    asked = (Attributes(verb, _GROUP, "signers", name=name) for name in (signer, of_domain))
    return any(authorizer.allows(ask.user, one) for one in asked)


def _is_same_answer(new: Object, old: Object) -> bool:
    now, then = new.get("status") or {}, old.get("status") or {}
    return all(same(now.get(name) or None, then.get(name) or None) for name in ("certificate", "conditions"))


def _organizations(request: str) -> list[str]:
    from setpoint.net.tls import organizations_asked  # noqa: PLC0415 - large, and rarely asked for

    try:
        return organizations_asked(base64.b64decode(request))
    except binascii.Error:
        return []


def _refused(ask: Ask, obj: Object, why: str) -> Exception:
    return forbidden(ask.resource.plural, ask.resource.group, obj["metadata"].get("name", ""), why)
