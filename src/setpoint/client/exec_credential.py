"""What a credential plugin is told, and what it may answer: Kubernetes' ExecCredential, v1 and v1beta1.

Values and their checks; no process here.  ``config.py`` makes an ``ExecPlugin`` of a kubeconfig's entry,
``exec_plugin.py`` runs it.  An answer is a secret: whatever is wrong with one is said without showing it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from setpoint.api.decoders import prepare
from setpoint.client.impersonation import is_header_value
from setpoint.client.kubeconfig import Exec
from setpoint.errors import ConfigError
from setpoint.net.trust import CertificatePair

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
MODES = ("Never", "IfAvailable", "Always")

_EVERY_VERSION = {*VERSIONS, f"{GROUP}/v1alpha1"}


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A credential plugin, as a kubeconfig's ``exec`` describes it."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = VERSIONS[0]
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    provide_cluster_info: bool = False
    cluster_config: Any = field(default=None, repr=False)  # the cluster's extension for plugins, as JSON


@dataclass(frozen=True, slots=True)
class Issued:
    """What a plugin answered."""

    token: str = field(default="", repr=False)
    certificate: CertificatePair | None = None
    expires: datetime | None = None


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    status: _Status | None = None


def plugin_of(entry: Exec, cluster_config: Any, doing: str) -> ExecPlugin:
    """The plugin that a kubeconfig asks for, if it is one we can talk to."""
    if not entry.command:
        raise ConfigError(doing, "exec has no command", advice="name the credential plugin")
    doing = f"{doing}: exec plugin {entry.command}"
    if entry.api_version not in VERSIONS:
        raise ConfigError(
            doing,
            f"its apiVersion is {entry.api_version!r}; there are {' and '.join(VERSIONS)}",
            advice="update the plugin, and with it the entry in the kubeconfig",
        )
    # v1 wants the mode said; before, it was IfAvailable unless said.
    mode = entry.interactive_mode or ("" if entry.api_version == VERSIONS[0] else "IfAvailable")
    if mode not in MODES:
        raise ConfigError(
            doing, f"its interactiveMode is {mode!r}", advice=f"write one of {', '.join(MODES)}"
        )
    if not all(each.name for each in entry.env):
        raise ConfigError(doing, "a variable in its env has no name", advice="give it one")
    return ExecPlugin(
        command=entry.command,
        args=tuple(entry.args),
        env=tuple((each.name, each.value) for each in entry.env),
        api_version=entry.api_version,
        interactive_mode=mode,
        install_hint=entry.install_hint,
        provide_cluster_info=entry.provide_cluster_info,
        cluster_config=cluster_config,
    )


def exec_info(plugin: ExecPlugin, cluster: Mapping[str, Any], *, interactive: bool) -> str:
    """What the plugin is told, as JSON in KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = dict(cluster)
    return msgspec.json.encode(
        {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    ).decode()


def cluster_info(
    *,
    server: str,
    ca: bytes | None,
    tls_server_name: str,
    insecure: bool,
    proxy_url: str,
    config: Any,
) -> dict[str, Any]:
    """A cluster as plugins are told of it; what is not set is left out."""
    said = {
        "server": server,
        "tls-server-name": tls_server_name,
        "insecure-skip-tls-verify": insecure,
        "certificate-authority-data": base64.b64encode(ca or b"").decode(),
        "proxy-url": proxy_url,
        "config": config,
    }
    return {name: value for name, value in said.items() if value}


def read_answer(stdout: bytes, api_version: str) -> Issued:
    """What a plugin printed, understood; a ValueError says what is wrong with it, and shows none of it."""
    try:
        answer = msgspec.json.decode(stdout, type=_Answer)
    except msgspec.MsgspecError as error:  # names places and types, never values
        raise ValueError(f"it printed something that is not an ExecCredential: {error}") from None
    except UnicodeDecodeError:
        raise ValueError("it printed something that is not text") from None
    if answer.kind != "ExecCredential":
        raise ValueError("it printed JSON that is not of kind ExecCredential")
    if answer.api_version != api_version:
        other = answer.api_version if answer.api_version in _EVERY_VERSION else "another version"
        raise ValueError(
            f"it answered in {other}, and the kubeconfig says apiVersion: {api_version}; make them agree"
        )
    status = answer.status or _Status()
    certificate, key = status.client_certificate_data or "", status.client_key_data or ""
    if bool(certificate) != bool(key):
        raise ValueError("it gave a certificate without its key, or a key without its certificate")
    if not status.token and not certificate:
        raise ValueError("it gave neither a token nor a certificate")
    if not is_header_value(status.token or ""):
        raise ValueError("the token it gave holds control characters")
    expires = status.expiration_timestamp
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    pair = CertificatePair(certificate.encode(), key.encode()) if certificate else None
    return Issued(status.token or "", pair, expires)


prepare(_Answer)
