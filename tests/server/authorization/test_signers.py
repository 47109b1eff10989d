"""Who may approve and sign requests for certificates, asked of a server."""

from __future__ import annotations

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.server.http.asking import Asking, asking

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPROVED = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Because"}]}}


def request(organization: str = "team", signer: str = "example.com/signer") -> dict[str, Any]:
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    text = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": text, "signerName": signer, "usages": ["client auth"]}
    return {"metadata": {"name": "a"}, "spec": spec}


async def let(ask: Asking, *names: str) -> None:
    """Jane may write approvals; and approve for these signers."""
    approvals = {"resources": ["certificatesigningrequests/approval"], "verbs": ["*"]}
    signers = {"resources": ["signers"], "resourceNames": list(names), "verbs": ["approve"]}
    rules = [{"apiGroups": ["certificates.k8s.io"], **one} for one in (approvals, signers)]
    await ask.create(f"{RBAC}/clusterroles", {"metadata": {"name": "jane"}, "rules": rules})
    about = {"roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "jane"}}
    subject = {"apiGroup": GROUP, "kind": "User", "name": "jane"}
    await ask.create(
        f"{RBAC}/clusterrolebindings", {"metadata": {"name": "jane"}, **about, "subjects": [subject]}
    )


async def approve(ask: Asking) -> tuple[int, str]:
    headers = {**MERGE, "Impersonate-User": "jane"}
    got = await ask("PATCH", f"{REQUESTS}/a/approval", APPROVED, headers)
    return got.status, got.json.get("message", "")


async def test_who_may_write_an_approval_and_not_approve_for_the_signer_is_refused() -> None:
    async with asking() as ask:
        await ask.create(REQUESTS, request())
        await let(ask, "example.com/another", "example.org/*")
        code, told = await approve(ask)
        assert code == 403
        assert 'user not permitted to approve requests with signerName "example.com/signer"' in told


async def test_who_may_approve_for_the_signer_or_for_all_of_its_domain_approves() -> None:
    for name in ("example.com/signer", "example.com/*"):
        async with asking() as ask:
            await ask.create(REQUESTS, request())
            await let(ask, name)
            assert (await approve(ask))[0] == 200


async def test_nobody_asks_for_a_certificate_of_the_masters() -> None:
    async with asking() as ask:
        signer = "kubernetes.io/kube-apiserver-client"
        got = await ask("POST", REQUESTS, request("system:masters", signer))
        assert got.status == 403
        assert got.message.endswith(f"use of {signer} signer with system:masters group is not allowed")
        assert (await ask("POST", REQUESTS, request("team", signer))).status == 201
