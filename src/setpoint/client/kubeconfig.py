"""Decides what kubeconfig files say, taken together.

As kubectl reads them:

1. The first file that defines a cluster, user or context under some name defines it whole; later definitions
   of that name are not even mixed in.
2. The first file that names a current-context names it for all.
3. A relative path counts from the file it stands in.  A plugin's command does so only if it has a slash; else
   it is looked up in PATH.

Whatever is wrong is an error that names the file, the entry and the field, lists what there is to choose
from, and never repeats what may be a secret.  Only the entries that are chosen are looked at closely, so a
broken cluster nobody asked for stops no one.

No file is opened here and no environment read: ``config.py`` brings the texts and makes a ``Config`` of what
is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar

import msgspec

from setpoint.api.decoders import prepare
from setpoint.errors import ConfigError

EXEC_EXTENSION = "client.authentication.k8s.io/exec"  # a cluster's own words to a credential plugin

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?").fullmatch

# What took the place of the ways to authenticate that Kubernetes once had built in.
_INSTEAD_OF_PROVIDER = {
    "gcp": "install gke-gcloud-auth-plugin and run `gcloud container clusters get-credentials` again",
    "azure": "install kubelogin from Azure and run `kubelogin convert-kubeconfig`",
    "oidc": "use an exec plugin instead, such as kubelogin (`kubectl oidc-login setup` shows the entry)",
}

T = TypeVar("T")


class Extension(msgspec.Struct, frozen=True):
    """Something a kubeconfig carries for others."""

    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """Where a server is, and how to know it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[Extension] = []


class EnvVar(msgspec.Struct, frozen=True):
    """A variable of a plugin's environment."""

    name: str = ""
    value: str = ""

    def __repr__(self) -> str:
        return f"EnvVar({self.name!r}, …)"


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A credential plugin."""

    command: str = ""
    args: list[str] = []
    env: list[EnvVar] = []
    api_version: str = ""
    interactive_mode: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False

    def __repr__(self) -> str:
        return f"Exec({self.command!r}, …)"


class AuthProvider(msgspec.Struct, frozen=True):
    """A way to authenticate from before there were credential plugins."""

    name: str = ""


class User(msgspec.Struct, frozen=True, rename="kebab"):
    """Who we are."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    username: str = ""
    password: str = ""
    auth_provider: AuthProvider | None = None
    exec: Exec | None = None

    def __repr__(self) -> str:
        return f"User({', '.join(name for name in self.__struct_fields__ if getattr(self, name))}: …)"


class Context(msgspec.Struct, frozen=True):
    """A cluster, a user there, and a namespace to be in."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str = ""
    cluster: Cluster = Cluster()


class _NamedUser(msgspec.Struct):
    name: str = ""
    user: User = User()


class _NamedContext(msgspec.Struct):
    name: str = ""
    context: Context = Context()


class _File(msgspec.Struct, rename="kebab"):
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []
    current_context: str = ""


class Kubeconfig(NamedTuple):
    """One kubeconfig file, or several merged; ``origins`` lists the files."""

    origins: tuple[str, ...]
    clusters: Mapping[str, Cluster]
    users: Mapping[str, User]
    contexts: Mapping[str, Context]
    current_context: str


class Choice(NamedTuple):
    """What a context stands for."""

    origin: str  # for errors: which context of which files
    cluster: Cluster
    user: User
    namespace: str


def parse(text: str | bytes, origin: str) -> Kubeconfig:
    """What one file says.  ``origin`` is its absolute path, or any other name for errors."""
    from setpoint.api import yaml  # noqa: PLC0415 - in a pod nobody reads YAML, and loading it takes a while

    doing = f"load kubeconfig {origin}"
    try:
        content = _without_nulls(yaml.load(text))
    except ValueError as error:
        raise ConfigError(
            doing,
            f"it cannot be read as YAML: {_unquoted(error)}",
            advice="mind the indentation, and quote text that begins with a sign or holds ': '",
        ) from None
    if content is None:
        content = {}
    if not isinstance(content, dict) or content.get("kind", "Config") != "Config":
        raise ConfigError(doing, "it is not a kubeconfig", advice="one has clusters, users and contexts")
    try:
        file = msgspec.convert(content, _File)
    except msgspec.ValidationError as error:
        # msgspec names the place and the types, and no values.
        raise ConfigError(doing, str(error), advice="text that looks like a number needs quotes") from None
    folder = PurePath(origin).parent if PurePath(origin).is_absolute() else None
    return Kubeconfig(
        (origin,),
        _by_name(
            doing, "cluster", ((each.name, _cluster_at(folder, each.cluster)) for each in file.clusters)
        ),
        _by_name(doing, "user", ((each.name, _user_at(folder, each.user)) for each in file.users)),
        _by_name(doing, "context", ((each.name, each.context) for each in file.contexts)),
        file.current_context,
    )


def merge(files: Sequence[Kubeconfig]) -> Kubeconfig:
    """What several files say together: the first to define a name wins."""
    clusters, users, contexts = dict[str, Cluster](), dict[str, User](), dict[str, Context]()
    for file in reversed(files):
        clusters |= file.clusters
        users |= file.users
        contexts |= file.contexts
    return Kubeconfig(
        tuple(origin for file in files for origin in file.origins),
        clusters,
        users,
        contexts,
        next((file.current_context for file in files if file.current_context), ""),
    )


def choose(kubeconfig: Kubeconfig, context: str | None = None) -> Choice:
    """The cluster and user of ``context``, or of the current one."""
    where = ":".join(kubeconfig.origins)
    name = context or kubeconfig.current_context
    if not name:
        raise ConfigError(
            f"load kubeconfig {where}",
            f"it names no current-context; {_known('contexts', kubeconfig.contexts)}",
            advice="pass context=, or run `kubectl config use-context`",
        )
    doing = f"use context {name!r} of kubeconfig {where}"
    chosen = _look_up(doing, "context", name, kubeconfig.contexts)
    cluster = _look_up(doing, "cluster", chosen.cluster, kubeconfig.clusters)
    # A context may do without a user: the server then decides what nobody may do.
    user = _look_up(doing, "user", chosen.user, kubeconfig.users) if chosen.user else User()
    if not cluster.server:
        raise ConfigError(doing, f"cluster {chosen.cluster!r} has no server", advice="add server: https://…")
    if chosen.namespace and not _DNS_LABEL(chosen.namespace):
        raise ConfigError(
            doing,
            f"{chosen.namespace!r} cannot be a namespace",
            advice="a namespace is made of lower-case letters, digits and '-'",
        )
    if user.auth_provider is not None:
        raise ConfigError(
            doing,
            f"user {chosen.user!r} has auth-provider {user.auth_provider.name!r}, which is not supported",
            advice=_INSTEAD_OF_PROVIDER.get(user.auth_provider.name, "use an exec plugin instead"),
        )
    origin = f"context {name!r} of kubeconfig {where}"
    return Choice(
        f"{origin}, user {chosen.user!r}" if chosen.user else origin, cluster, user, chosen.namespace
    )


def _look_up(doing: str, what: str, name: str, among: Mapping[str, T]) -> T:
    if not name:
        raise ConfigError(doing, f"it names no {what}; {_known(f'{what}s', among)}")
    if name not in among:
        raise ConfigError(doing, f"there is no {what} {name!r}; {_known(f'{what}s', among)}")
    return among[name]


def _known(what: str, names: Iterable[str]) -> str:
    listed = ", ".join(repr(name) for name in sorted(names))
    return f"known {what}: {listed}" if listed else f"there are no {what} at all"


def _by_name(doing: str, what: str, entries: Iterable[tuple[str, T]]) -> dict[str, T]:
    found = dict[str, T]()
    for name, entry in entries:
        if not name:
            raise ConfigError(doing, f"a {what} has no name", advice="give it one")
        if name in found:
            raise ConfigError(doing, f"{what} {name!r} is defined twice", advice="remove one of the two")
        found[name] = entry
    return found


def _cluster_at(folder: PurePath | None, cluster: Cluster) -> Cluster:
    return msgspec.structs.replace(
        cluster, certificate_authority=_absolute(folder, cluster.certificate_authority)
    )


def _user_at(folder: PurePath | None, user: User) -> User:
    plugin = user.exec
    if plugin is not None and "/" in plugin.command:
        plugin = msgspec.structs.replace(plugin, command=_absolute(folder, plugin.command))
    return msgspec.structs.replace(
        user,
        client_certificate=_absolute(folder, user.client_certificate),
        client_key=_absolute(folder, user.client_key),
        token_file=_absolute(folder, user.token_file),
        exec=plugin,
    )


def _absolute(folder: PurePath | None, path: str) -> str:
    return str(folder / path) if folder is not None and path else path


def _unquoted(error: ValueError) -> str:
    """What a YAML reader found, and where, but for what it quotes of the text: that may be a secret."""
    where, colon, what = str(error).partition(": ")
    tells_nothing = what.startswith("the key ") or not any(quote in what for quote in "'\"&")
    return f"{where}{colon}{what}" if tells_nothing else where


def _without_nulls(value: Any) -> Any:
    """Null means "not said" anywhere; kubectl writes ``clusters: null`` where it has none."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value if each is not None]
    return value


prepare(_File)
