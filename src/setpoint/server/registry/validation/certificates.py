"""What is wrong with a CertificateSigningRequest, with approving and answering one; with bundles of trust."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from setpoint.server.golang import quoted, same
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import Found

Json = dict[str, Any]
_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_LEGACY: Final = "kubernetes.io/legacy-unknown"
_TERMINAL: Final = ("Approved", "Denied", "Failed")
# One space, then anything: a second ``+`` would try each way to share the spaces out.
_REQUEST: Final = re.compile(rb"-----BEGIN (NEW )?CERTIFICATE REQUEST-----\s[A-Za-z0-9+/=\s]+-----END")
_CERTIFICATE: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----")


def check_request(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    request, usages, signer = spec.get("request"), spec.get("usages") or [], spec.get("signerName", "")
    if not _REQUEST.search(base64.b64decode(request or "")):
        found.invalid("spec.request", request or None, "PEM block type must be CERTIFICATE REQUEST")
    if not usages:
        found.required("spec.usages")
    for index, usage in enumerate(usages):
        found.one_of(f"spec.usages[{index}]", usage, _USAGES)
    seen: set[str] = set()
    for index, usage in enumerate(usages):
        found.unique(f"spec.usages[{index}]", usage, seen)
    if signer == _LEGACY:
        detail = "the legacy signerName is not allowed via this API version"
        found.invalid("spec.signerName", signer, detail)
    else:
        check_signer(signer, "spec.signerName", found)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        found.invalid("spec.expirationSeconds", seconds, detail)
    _check_conditions((obj.get("status") or {}).get("conditions") or [], found)


def check_signer(name: str, path: str, found: Found) -> None:
    """``example.com/signer``."""
    if not name:
        found.required(path)
        return
    domain, slash, tail = name.partition("/")
    if not slash or "/" in tail:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        found.invalid(path, name, detail)
        return
    for part in domain.split("."):
        if errors := texts.label(part):
            found.told(path, domain, [f"validating label {quoted(part)}: {told}" for told in errors])
            break
    if "." not in domain:
        detail = "should be a domain with at least two segments separated by dots"
        found.invalid(path, domain, detail)
    for part in tail.split("."):
        if errors := texts.subdomain(part.lower()):
            found.told(path, tail, [f"validating label {quoted(part)}: {told}" for told in errors])
            break


def _check_conditions(conditions: list[Json], found: Found) -> None:
    path = "status.conditions"
    seen: set[str] = set()
    for index, one in enumerate(conditions):
        at, kind, status = f"{path}[{index}]", one.get("type", ""), one.get("status", "")
        if not kind:
            found.required(f"{at}.type")
        allowed = ("True",) if kind in _TERMINAL else ("False", "True", "Unknown")
        found.some_of(f"{at}.status", status, allowed)
        found.unique(f"{at}.type", kind, seen)
    if {"Approved", "Denied"} <= seen:
        both = [f'conditions[{{"type": "{kind}"}}]' for kind in ("Approved", "Denied")]
        told = f"must specify at most one of: `{both[0]}`, `{both[1]}`"
        found.invalid(path, f"{{{', '.join(both)}}}", told)


def _of(obj: Object, kind: str) -> list[Json]:
    return [one for one in (obj.get("status") or {}).get("conditions") or () if one.get("type") == kind]


def _check_update(new: Object, old: Object, found: Found, *, approves: bool, answers: bool) -> None:
    check_request(new, found)
    path = "status.conditions"
    for kind in _TERMINAL:
        if len(_of(new, kind)) < len(_of(old, kind)):
            found.forbidden(path, f'updates may not remove a condition of type "{kind}"')
    if not approves:
        for kind in ("Approved", "Denied"):
            now, then = _of(new, kind), _of(old, kind)
            if len(now) > len(then):
                found.forbidden(path, f'updates may not add a condition of type "{kind}"')
            elif len(now) == len(then) and not same(now, then):
                found.forbidden(path, f'updates may not modify a condition of type "{kind}"')
    now_text = (new.get("status") or {}).get("certificate") or ""
    then_text = (old.get("status") or {}).get("certificate") or ""
    if now_text == then_text:
        return
    if not answers:
        found.forbidden("status.certificate", "updates may not set certificate content")
        return
    if then_text:
        found.forbidden("status.certificate", "updates may not modify existing certificate content")
    if not now_text:
        return
    blocks = _CERTIFICATE.findall(base64.b64decode(now_text).decode(errors="replace"))
    other = [one for one in blocks if one != "CERTIFICATE"]
    told = "must contain at least one CERTIFICATE PEM block" if not blocks else ""
    if other:
        told = f"only CERTIFICATE PEM blocks are allowed, found {quoted(other[0])}"
    if told:
        found.invalid("status.certificate", "<certificate data>", told)


def check_request_update(new: Object, old: Object, found: Found) -> None:
    _check_update(new, old, found, approves=False, answers=False)


def check_request_status(new: Object, old: Object, found: Found) -> None:
    _check_update(new, old, found, approves=False, answers=True)


def check_request_approval(new: Object, old: Object, found: Found) -> None:
    _check_update(new, old, found, approves=True, answers=False)


# ── Bundles of trust ────────────────────────────────────────────────────────────────────────────────

_MOST_BUNDLE: Final = 2**20
_BEGIN, _END, _DASHES = "-----BEGIN ", "-----END ", "-----"


def check_bundle(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    _check_bundle_name(obj["metadata"].get("name", ""), spec.get("signerName", ""), found)
    _check_anchors(spec.get("trustBundle", ""), found)


def check_bundle_update(new: Object, old: Object, found: Found) -> None:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    _check_bundle_name(new["metadata"].get("name", ""), spec.get("signerName", ""), found)
    if spec.get("trustBundle") != before.get("trustBundle"):
        _check_anchors(spec.get("trustBundle", ""), found)
    found.unchanged("spec.signerName", spec.get("signerName", ""), before.get("signerName", ""))


def _check_bundle_name(name: str, signer: str, found: Found) -> None:
    """``example.com:signer:name`` where it is of ``example.com/signer``."""
    if not name:
        return
    prefix = f"{signer.replace('/', ':')}:" if signer else ""
    if not signer and ":" in name:
        detail = 'ClusterTrustBundle without signer name must not have ":" in its name'
        found.invalid("metadata.name", name, detail)
    elif not name.startswith(prefix):
        detail = f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        found.invalid("metadata.name", name, detail)
    else:
        found.told("metadata.name", name, texts.subdomain(name.removeprefix(prefix)))
    if signer:
        check_signer(signer, "spec.signerName", found)


def _check_anchors(bundle: str, found: Found) -> None:
    path = "spec.trustBundle"
    if len(bundle.encode()) > _MOST_BUNDLE:
        found.too_long(path, _MOST_BUNDLE)
        return
    anchors: dict[bytes, list[int]] = {}
    wrong = []
    for index, (kind, headed, data) in enumerate(_blocks(bundle)):
        if detail := _anchor_error(kind, data, is_headed=headed):
            wrong.append(f"entry {index} {detail}")
        else:
            anchors.setdefault(data, []).append(index)
    if not wrong and not anchors:
        wrong.append("at least one trust anchor must be provided")
    elif not wrong:
        several = (" ".join(map(str, places)) for places in anchors.values() if len(places) > 1)
        wrong = [f"duplicate trust anchor (indices [{places}])" for places in several]
    found.told(path, "<value omitted>", wrong)


def _anchor_error(kind: str, data: bytes, *, is_headed: bool) -> str:
    from setpoint.net.tls import is_authority  # noqa: PLC0415 - large, and rarely asked for

    if kind != "CERTIFICATE":
        return f"has bad block type: {kind}"
    if is_headed:
        return "has PEM block headers"
    try:
        return "" if is_authority(data) else "does not have the CA bit set"
    except ValueError:
        return "does not parse as X.509"


def _blocks(text: str) -> Iterator[tuple[str, bool, bytes]]:
    """The blocks of PEM in a text: what each is, whether it has headers, and its bytes."""
    kind, lines = "", list[str]()
    for each in text.splitlines():
        line = each.rstrip()
        if line.startswith(_BEGIN) and line.endswith(_DASHES):
            kind, lines = line[len(_BEGIN) : -len(_DASHES)], []
        elif kind and line == f"{_END}{kind}{_DASHES}":
            headers = [one for one in lines if ":" in one]
            body = "".join(one for one in lines if ":" not in one)
            with suppress(binascii.Error):  # Go reads on after it
                yield kind, bool(headers), base64.b64decode(body, validate=True)
            kind = ""
        elif kind:
            lines.append(line)
