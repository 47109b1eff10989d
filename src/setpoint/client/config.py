"""Decides where the server is and who we are.

``Config`` is a value: everything that is needed to connect, and nothing live.  It comes from

1. a path that the program names; else
2. the files listed in ``KUBECONFIG``, merged as kubectl merges them (``kubeconfig.py``); else
3. the service account of the pod we run in; else
4. ``~/.kube/config``.

A named context rules out the pod, which has none.  Files in ``KUBECONFIG`` that do not exist, or say nothing,
are skipped; if that leaves none, the pod is tried and the home directory is not, as with kubectl.

What cannot work is refused when it is loaded, with an error that names the file and the context: a damaged
authority, a key that belongs to another certificate, a certificate that has expired.  Secrets appear in no
error and no ``repr``.

Credentials go to a plain ``http://`` server only on this machine.  Kubernetes' own client leaves them out
without a word, and one wonders why one is nobody; sending them would show them to the network.

Not here: reading files again as they rotate, and running credential plugins (``auth.py``).
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from setpoint.client import kubeconfig
from setpoint.client.addresses import checked_server, is_on_this_machine
from setpoint.client.exec_credential import ExecPlugin, plugin_of
from setpoint.client.files import is_there, read_file
from setpoint.client.impersonation import Impersonation, is_header_value
from setpoint.client.proxy import checked_proxy, proxy_for
from setpoint.clock import SystemClock
from setpoint.errors import ConfigError, CredentialError
from setpoint.net.trust import CertificatePair, expires_at, show_certificate, ssl_context
from setpoint.version import VERSION

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Material:
    """What a config's files held when they were read, together with what it has inline."""

    token: str = field(default="", repr=False)
    ca: bytes | None = None
    certificate: CertificatePair | None = None


@dataclass(frozen=True, repr=False)
class Config:
    """Where a server is and who we are there.  Fields are named as in a kubeconfig.

    ``Config.load()`` finds it as kubectl would; ``Config(server="https://…", token="…")`` says it outright.
    A field that ends in ``_data`` goes before the path of the same name, and ``token_file`` before ``token``.
    """

    server: str
    namespace: str = "default"
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""
    disable_compression: bool = False
    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: bytes = b""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    impersonate: Impersonation | None = None
    exec: ExecPlugin | None = None
    exec_timeout: float = 60.0
    user_agent: str = ""
    origin: str = ""  # for errors: which context of which kubeconfig this came from

    def __post_init__(self) -> None:
        object.__setattr__(self, "server", checked_server(self.server, self.doing))
        if self.proxy_url:
            checked_proxy(self.proxy_url, f"{self.doing}: read proxy-url")
        self._check_credentials()
        self._check_impersonation()

    def __repr__(self) -> str:
        said = (each for each in fields(self) if getattr(self, each.name) != each.default)
        return f"Config({', '.join(f'{each.name}={self._shown(each.name)}' for each in said)})"

    def _shown(self, name: str) -> str:
        return repr(getattr(self, name)) if name in _SHOWN else "…"

    @property
    def doing(self) -> str:
        """How errors about this config begin."""
        return f"use {self.origin}" if self.origin else "use the given Config"

    @property
    def is_tls(self) -> bool:
        return self.server.startswith("https://")

    @property
    def has_files(self) -> bool:
        """Whether anything comes from files, which may change while we run."""
        return bool(
            self.token_file
            or (self.certificate_authority and not self.certificate_authority_data)
            or (self.client_certificate and not self.client_certificate_data)
            or (self.client_key and not self.client_key_data)
        )

    @property
    def uses_plugin(self) -> bool:
        """Whether the plugin is asked: other credentials go before it."""
        return self.exec is not None and not self._has_own_credentials

    @property
    def _has_own_credentials(self) -> bool:
        return bool(self.token or self.token_file or self.username or self.password or self._has_certificate)

    @property
    def _has_certificate(self) -> bool:
        return bool(self.client_certificate or self.client_certificate_data)

    def headers(self) -> dict[str, str]:
        """What every request says of us, whatever the credentials."""
        named = {"User-Agent": self.user_agent or default_user_agent()}
        return named if self.impersonate is None else {**named, **self.impersonate.headers()}

    def proxy(self, env: Mapping[str, str] | None = None) -> str | None:
        """The proxy to go through: the cluster's own, else what the environment says."""
        if self.proxy_url:
            return checked_proxy(self.proxy_url, f"{self.doing}: read proxy-url")
        return proxy_for(self.server, os.environ if env is None else env)

    # Where it comes from

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        context: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        service_account: Path = SERVICE_ACCOUNT,
    ) -> Self:
        """Find the config as the top of this file says."""
        if path is not None:
            return cls.from_kubeconfig(Path(path).expanduser(), context)
        env = os.environ if env is None else env
        listed = [Path(each) for each in dict.fromkeys(env.get("KUBECONFIG", "").split(os.pathsep)) if each]
        if merged := _merged(listed):
            return cls._chosen(merged, context)
        why_not = _why_not_in_cluster(env, service_account) if context is None else "a context was named"
        if not why_not:
            return cls.in_cluster(env=env, service_account=service_account)
        home = [] if env.get("KUBECONFIG") else [_home(env) / ".kube" / "config"]
        if merged := _merged(home):
            return cls._chosen(merged, context)
        raise ConfigError(
            "find a Kubernetes server",
            f"KUBECONFIG is {_listing(listed)}; no pod's service account ({why_not})"
            + "".join(f"; {each} does not exist or says nothing" for each in home),
            advice="set KUBECONFIG, or name a kubeconfig, or run in a pod",
        )

    @classmethod
    def from_kubeconfig(cls, source: str | bytes | os.PathLike[str], context: str | None = None) -> Self:
        """Read one kubeconfig: a path, or the text itself (bytes, or text of several lines or in braces)."""
        if isinstance(source, bytes) or (
            isinstance(source, str) and ("\n" in source or source.startswith("{"))
        ):
            return cls._chosen(kubeconfig.parse(source, "given as text"), context)
        return cls._chosen(_parsed(Path(source)), context)

    @classmethod
    def in_cluster(
        cls, *, env: Mapping[str, str] | None = None, service_account: Path = SERVICE_ACCOUNT
    ) -> Self:
        """The server of the pod we run in, as the pod's service account."""
        env = os.environ if env is None else env
        if why_not := _why_not_in_cluster(env, service_account):
            raise ConfigError("use the service account of this pod", why_not)
        host, port = env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]
        authority = service_account / "ca.crt"
        return cls(
            server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
            namespace=env.get("POD_NAMESPACE") or _namespace_of(service_account),
            # Without one, the machine's own authorities vouch for the server, as client-go has it.
            certificate_authority=str(authority) if is_there(authority) else "",
            token_file=str(service_account / "token"),
            origin="the service account of this pod",
        ).check()

    @classmethod
    def _chosen(cls, files: kubeconfig.Kubeconfig, context: str | None) -> Self:
        choice = kubeconfig.choose(files, context)
        doing, cluster, user = f"use {choice.origin}", choice.cluster, choice.user
        return cls(
            server=cluster.server,
            namespace=choice.namespace or "default",
            certificate_authority=cluster.certificate_authority,
            certificate_authority_data=_decoded(
                doing, "certificate-authority-data", cluster.certificate_authority_data
            ),
            tls_server_name=cluster.tls_server_name,
            insecure_skip_tls_verify=cluster.insecure_skip_tls_verify,
            proxy_url=cluster.proxy_url,
            disable_compression=cluster.disable_compression,
            client_certificate=user.client_certificate,
            client_certificate_data=_decoded(doing, "client-certificate-data", user.client_certificate_data),
            client_key=user.client_key,
            client_key_data=_decoded(doing, "client-key-data", user.client_key_data),
            token=user.token.strip(),
            token_file=user.token_file,
            username=user.username,
            password=user.password,
            impersonate=_impersonation(doing, user),
            exec=plugin_of(user.exec, _for_plugins(cluster), doing) if user.exec else None,
            origin=choice.origin,
        ).check()

    # What it says

    def read(self) -> Material:
        """Read the files, blocking, and put them with what is inline."""
        certificate = None
        if self._has_certificate:
            certificate = CertificatePair(
                self.client_certificate_data or self._file("client-certificate", self.client_certificate),
                self.client_key_data or self._file("client-key", self.client_key),
            )
        ca = self.certificate_authority_data or None
        if ca is None and self.certificate_authority and self.is_tls:
            path = Path(self.certificate_authority)
            ca = read_file(path, f"certificate-authority {path}", self.doing)
        return Material(self._read_token(), ca, certificate)

    def ssl_context(
        self, ca: bytes | None, certificate: CertificatePair | None, now: datetime
    ) -> ssl.SSLContext:
        """TLS as this config wants it; refuses what could not work."""
        try:
            context = ssl_context(ca=ca, insecure=self.insecure_skip_tls_verify)
        except ValueError as error:
            named = _named(
                "certificate-authority", self.certificate_authority, self.certificate_authority_data
            )
            raise ConfigError(
                self.doing, f"{named} cannot be used: {error}", advice="get the server's CA as PEM"
            ) from None
        if certificate is not None:
            self.check_expiry(certificate, now)
            try:
                show_certificate(context, certificate)
            except ValueError as error:
                raise CredentialError(
                    self.doing,
                    f"{self._certificate_named} cannot be used: {error}",
                    advice="get the pair anew from whoever issued it",
                ) from None
        return context

    def check_expiry(self, certificate: CertificatePair, now: datetime) -> None:
        """A server says no more than "Unauthorized" of an expired certificate; so we say it first."""
        expires = expires_at(certificate.certificate)
        if expires is not None and expires <= now:
            raise CredentialError(
                self.doing,
                f"{self._certificate_named} expired on {expires:%Y-%m-%d at %H:%M:%S} UTC, "
                f"and it is now {now:%Y-%m-%d, %H:%M:%S}",
                advice="get a new one from whoever issued it, or set the clock right",
            )

    @property
    def _certificate_named(self) -> str:
        if not self._has_certificate:
            return "the plugin's certificate"
        return _named("client-certificate", self.client_certificate, self.client_certificate_data)

    def _read_token(self) -> str:
        if not self.token_file:
            return self.token
        try:
            held = self._file("tokenFile", self.token_file)
        except CredentialError:
            if self.token:
                return self.token
            raise
        token = held.decode(errors="replace").strip()
        if not token or not token.isascii() or not is_header_value(token):
            what = "holds what cannot be a token" if token else "is empty"
            raise CredentialError(
                self.doing, f"tokenFile {self.token_file} {what}", advice="write a token to it"
            )
        return token

    def _file(self, what: str, path: str) -> bytes:
        return read_file(Path(path), f"{what} {path}", self.doing, CredentialError)

    def check(self) -> Self:
        """Read and try everything in it once, and give it back; what cannot work is an error."""
        material = self.read()
        if self.is_tls:
            self.ssl_context(material.ca, material.certificate, SystemClock().utc())
        return self

    def _check_credentials(self) -> None:
        if (self.token or self.token_file) and (self.username or self.password):
            raise ConfigError(
                self.doing, "both a token and a username are given", advice="keep one of the two"
            )
        if self._has_certificate and not (self.client_key or self.client_key_data):
            raise ConfigError(
                self.doing, "client-certificate is given without its key", advice="add client-key"
            )
        if not is_header_value(self.token):
            raise CredentialError(
                self.doing, "the token holds what cannot be in a token", advice="copy it anew"
            )
        if self.insecure_skip_tls_verify and (self.certificate_authority or self.certificate_authority_data):
            raise ConfigError(
                self.doing,
                "certificate-authority is given, and insecure-skip-tls-verify says not to use it",
                advice="remove insecure-skip-tls-verify",
            )
        has_credentials = self._has_own_credentials or self.exec is not None
        if has_credentials and not self.is_tls and not is_on_this_machine(self.server):
            raise ConfigError(
                self.doing,
                f"credentials would travel to {self.server} for all to read",
                advice="use https://, or remove the credentials",
            )

    def _check_impersonation(self) -> None:
        act_as = self.impersonate
        if act_as is None:
            return
        if not act_as.user:
            raise ConfigError(self.doing, "whom to impersonate is not said", advice="add `as`")
        if not act_as.is_sendable():
            raise ConfigError(
                self.doing, "a name to impersonate holds control characters", advice="remove them"
            )


_SHOWN = {each.name for each in fields(Config)} - {
    "certificate_authority_data",  # no secret, but long
    "proxy_url",
    "client_certificate_data",
    "client_key_data",
    "token",
    "password",
}


def default_user_agent() -> str:
    """``setpoint/0.1.0 python/3.11 linux``."""
    return f"setpoint/{VERSION} python/{sys.version_info.major}.{sys.version_info.minor} {sys.platform}"


def _merged(paths: Sequence[Path]) -> kubeconfig.Kubeconfig | None:
    """What the files that exist say together; None if that is nothing."""
    merged = kubeconfig.merge([_parsed(path) for path in paths if is_there(path)])
    return merged if merged.clusters or merged.users or merged.contexts or merged.current_context else None


def _parsed(path: Path) -> kubeconfig.Kubeconfig:
    path = path.absolute()
    return kubeconfig.parse(read_file(path, "it", f"load kubeconfig {path}"), str(path))


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or "~").expanduser()


def _listing(listed: Sequence[Path]) -> str:
    if not listed:
        return "not set"
    names = ":".join(map(str, listed))
    tilde = ", and ~ means nothing there" if "~" in names else ""
    return f"{names}, where nothing exists or says anything{tilde}"


def _why_not_in_cluster(env: Mapping[str, str], service_account: Path) -> str:
    """Why there is no pod's service account to use; "" if there is one."""
    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        if not env.get(name):
            return f"{name} is not set"
    token = service_account / "token"
    return "" if is_there(token) else f"{token} does not exist; is automountServiceAccountToken false?"


def _namespace_of(service_account: Path) -> str:
    try:
        return (service_account / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"


def _decoded(doing: str, field_name: str, text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(
            doing,
            f"{field_name} is not base64",
            advice=f"encode it, or use {field_name.removesuffix('-data')}",
        ) from None


def _impersonation(doing: str, user: kubeconfig.User) -> Impersonation | None:
    if not (user.as_ or user.as_uid or user.as_groups or user.as_user_extra):
        return None
    if not user.as_:
        raise ConfigError(
            doing, "as-uid, as-groups or as-user-extra is given without a user", advice="add `as`"
        )
    return Impersonation(user.as_, user.as_uid, tuple(user.as_groups), user.as_user_extra)


def _for_plugins(cluster: kubeconfig.Cluster) -> Any:
    return next(
        (each.extension for each in cluster.extensions if each.name == kubeconfig.EXEC_EXTENSION), None
    )


def _named(field_name: str, path: str, data: bytes) -> str:
    """How an error speaks of something that is inline or in a file."""
    return f"{field_name}-data" if data else f"{field_name} {path}"
