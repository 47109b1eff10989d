"""The rules of ``client/config.py``, on real files."""

from __future__ import annotations

import base64
import json
import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from setpoint.client.config import Config, default_user_agent
from setpoint.client.exec_credential import ExecPlugin
from setpoint.client.impersonation import Impersonation
from setpoint.errors import ConfigError, CredentialError
from setpoint.net.tls import Authority, Identity

CANARY = "s3cr3t-canary"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("cluster-ca")


@pytest.fixture(scope="module")
def jane(authority: Authority) -> Identity:
    return authority.issue("jane", client=True)


def write(
    path: Path,
    *,
    name: str = "dev",
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    namespace: str = "",
) -> Path:
    """A kubeconfig with one context."""
    content = {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443"} | (cluster or {})}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1))
    return path


def service_account(folder: Path, *, ca: bytes | None = None) -> Path:
    folder.mkdir()
    (folder / "token").write_text("in-cluster-token\n")
    (folder / "namespace").write_text("team-a\n")
    if ca is not None:
        (folder / "ca.crt").write_bytes(ca)
    return folder


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def refused(load: Callable[[], object]) -> str:
    """What is said of a config that cannot be used; nothing of its secrets, anywhere."""
    with pytest.raises(ConfigError) as caught:
        load()
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert encoded(CANARY.encode()).rstrip("=") not in str(caught.value)
    return str(caught.value)


# Where it comes from


def test_a_named_path_goes_before_everything(tmp_path: Path) -> None:
    env = {"KUBECONFIG": str(write(tmp_path / "env", name="env")), **IN_POD}
    named = write(tmp_path / "named", name="named")
    assert Config.load(named, env=env).server == "https://named.example:6443"


def test_kubeconfig_goes_before_the_pod_and_the_pod_before_home(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", name="home")
    env = {"HOME": str(tmp_path), "KUBECONFIG": str(write(tmp_path / "env", name="env")), **IN_POD}
    pod = service_account(tmp_path / "account")
    assert Config.load(env=env, service_account=pod).server == "https://env.example:6443"
    env["KUBECONFIG"] = ""
    assert Config.load(env=env, service_account=pod).server == "https://10.96.0.1:443"
    del env["KUBERNETES_SERVICE_HOST"]
    assert Config.load(env=env, service_account=pod).server == "https://home.example:6443"


def test_a_named_context_rules_out_the_pod(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", name="home")
    env = {"HOME": str(tmp_path), **IN_POD}
    config = Config.load(context="home", env=env, service_account=service_account(tmp_path / "account"))
    assert config.server == "https://home.example:6443"


def test_files_of_kubeconfig_are_merged_and_missing_empty_and_repeated_ones_skipped(tmp_path: Path) -> None:
    first = write(tmp_path / "first", name="a", user={"token": "first"})
    second = write(tmp_path / "second", name="a", user={"token": "second"})
    third = write(tmp_path / "third", name="b", user={"token": "third"})
    empty = tmp_path / "empty"
    empty.touch()
    env = {"KUBECONFIG": f":{tmp_path}/missing:{empty}:{first}::{first}:{second}:{third}:"}
    assert Config.load(env=env).token == "first"
    assert Config.load(context="b", env=env).token == "third"


def test_relative_entries_of_kubeconfig_count_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: Authority
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    write(tmp_path / "config", cluster={"certificate-authority": "ca.crt"})
    monkeypatch.chdir(tmp_path)
    assert Config.load(env={"KUBECONFIG": "config"}).certificate_authority == str(tmp_path / "ca.crt")


def test_a_kubeconfig_that_leads_nowhere_leaves_the_pod_but_not_home(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", name="home")
    pod = service_account(tmp_path / "account")
    env = {"HOME": str(tmp_path), "KUBECONFIG": "/dev/null", **IN_POD}
    assert Config.load(env=env, service_account=pod).origin == "the service account of this pod"
    said = refused(lambda: Config.load(env={"HOME": str(tmp_path), "KUBECONFIG": "~/nowhere"}))
    assert "KUBECONFIG is ~/nowhere, where nothing exists" in said
    assert "~ means nothing there" in said


def test_when_nothing_is_found_every_place_is_named(tmp_path: Path) -> None:
    said = refused(lambda: Config.load(env={"HOME": str(tmp_path)}))
    assert "KUBECONFIG is not set" in said
    assert "KUBERNETES_SERVICE_HOST is not set" in said
    assert f"{tmp_path}/.kube/config does not exist" in said
    assert "set KUBECONFIG" in said


def test_a_pod_without_a_token_is_told_why(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), **IN_POD}
    for said in (
        refused(lambda: Config.load(env=env, service_account=tmp_path)),
        refused(lambda: Config.in_cluster(env=env, service_account=tmp_path)),
    ):
        assert f"{tmp_path}/token does not exist; is automountServiceAccountToken false?" in said


def test_the_config_of_a_pod(tmp_path: Path, authority: Authority) -> None:
    folder = service_account(tmp_path / "account", ca=authority.certificate_pem)
    config = Config.in_cluster(env=IN_POD, service_account=folder)
    assert config.server == "https://10.96.0.1:443"
    assert config.namespace == "team-a"
    assert config.certificate_authority == str(folder / "ca.crt")
    assert config.read().token == "in-cluster-token"
    elsewhere = Config.in_cluster(env={**IN_POD, "POD_NAMESPACE": "team-b"}, service_account=folder)
    assert elsewhere.namespace == "team-b"


def test_the_server_of_a_pod_may_have_an_ipv6_address(tmp_path: Path) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    config = Config.in_cluster(env=env, service_account=service_account(tmp_path / "account"))
    assert config.server == "https://[fd00::1]:6443"


def test_a_kubeconfig_may_be_given_as_text_or_path(tmp_path: Path) -> None:
    path = write(tmp_path / "config", namespace="team-a")
    for given in (
        path,
        str(path),
        path.read_text(),
        path.read_bytes(),
        json.dumps(json.loads(path.read_text())),
    ):
        config = Config.from_kubeconfig(given)
        assert (config.server, config.namespace) == ("https://dev.example:6443", "team-a")


def test_everything_a_kubeconfig_says_arrives(tmp_path: Path, authority: Authority, jane: Identity) -> None:
    (tmp_path / "token").write_text("t")
    cluster = {
        "server": "https://rancher.example/k8s/clusters/c-1/",
        "tls-server-name": "k8s.internal",
        "certificate-authority-data": encoded(authority.certificate_pem),
        "proxy-url": "http://proxy:3128",
        "disable-compression": True,
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    }
    user = {
        "client-certificate-data": encoded(jane.certificate_pem),
        "client-key-data": encoded(jane.key_pem),
        "token": "inline",
        "tokenFile": "token",
        "as": "joe",
        "as-uid": "7",
        "as-groups": ["dev"],
        "as-user-extra": {"k": ["v"]},
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "args": ["a"],
            "env": [{"name": "N", "value": "V"}],
            "installHint": "hint",
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        },
    }
    config = Config.load(write(tmp_path / "config", cluster=cluster, user=user, namespace="ns"))
    assert config == Config(
        server="https://rancher.example/k8s/clusters/c-1",
        namespace="ns",
        certificate_authority_data=authority.certificate_pem,
        tls_server_name="k8s.internal",
        proxy_url="http://proxy:3128",
        disable_compression=True,
        client_certificate_data=jane.certificate_pem,
        client_key_data=jane.key_pem,
        token="inline",
        token_file=str(tmp_path / "token"),
        impersonate=Impersonation("joe", "7", ("dev",), {"k": ["v"]}),
        exec=ExecPlugin(
            command=str(tmp_path / "plugin"),
            args=("a",),
            env=(("N", "V"),),
            api_version="client.authentication.k8s.io/v1",
            interactive_mode="Never",
            install_hint="hint",
            provide_cluster_info=True,
            cluster_config={"audience": "a"},
        ),
        origin=f"context 'dev' of kubeconfig {tmp_path}/config, user 'dev'",
    )


def test_a_context_without_a_namespace_is_in_default(tmp_path: Path) -> None:
    assert Config.load(write(tmp_path / "config")).namespace == "default"


# What it means


def test_a_token_file_goes_before_a_token_which_helps_out_when_it_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    config = Config("https://x", token="inline", token_file=str(file))
    assert config.read().token == "inline"
    file.write_text("  from-file\n")
    assert config.read().token == "from-file"


def test_inline_data_goes_before_a_path(authority: Authority, jane: Identity) -> None:
    config = Config(
        "https://x",
        certificate_authority="/missing",
        certificate_authority_data=authority.certificate_pem,
        client_certificate="/missing",
        client_certificate_data=jane.certificate_pem,
        client_key="/missing",
        client_key_data=jane.key_pem,
    )
    assert not config.has_files
    assert config.read().ca == authority.certificate_pem


def test_other_credentials_go_before_a_plugin() -> None:
    plugin = ExecPlugin("p")
    assert Config("https://x", exec=plugin).uses_plugin
    assert not Config("https://x", exec=plugin, token="t").uses_plugin
    assert not Config("https://x", exec=plugin, username="u").uses_plugin
    assert not Config("https://x", exec=plugin, client_certificate="c", client_key="k").uses_plugin


def test_the_proxy_of_the_cluster_goes_before_the_environments() -> None:
    env = {"HTTPS_PROXY": "http://env:1", "NO_PROXY": "*.internal"}
    assert Config("https://x.example", proxy_url="http://own:1").proxy(env) == "http://own:1"
    assert Config("https://x.internal", proxy_url="http://own:1").proxy(env) == "http://own:1"
    assert Config("https://x.example").proxy(env) == "http://env:1"
    assert Config("https://x.internal").proxy(env) is None


def test_every_request_says_which_program_asks_and_whom_it_acts_as() -> None:
    assert Config("https://x", user_agent="mine/1").headers() == {"User-Agent": "mine/1"}
    assert re.fullmatch(r"setpoint(/[\w.+]+)? python/3\.\d+ \w+", default_user_agent())
    acting = Config("https://x", impersonate=Impersonation("joe", groups=("a", "b")))
    assert acting.headers() == {
        "User-Agent": default_user_agent(),
        "Impersonate-User": "joe",
        "Impersonate-Group": "a\nb",
    }


@pytest.mark.parametrize("server", ["http://localhost:8001", "http://127.0.0.1:8001", "http://[::1]:8001"])
def test_credentials_go_to_plain_http_on_this_machine(server: str) -> None:
    assert not Config(server, token="t").is_tls


@pytest.mark.parametrize(
    "secret", [{"token": CANARY}, {"username": "u", "password": CANARY}, {"exec": ExecPlugin("p")}]
)
def test_credentials_do_not_go_to_plain_http_elsewhere(secret: dict[str, Any]) -> None:
    said = refused(lambda: Config("http://10.0.0.1:8080", **secret))
    assert "credentials would travel to http://10.0.0.1:8080 for all to read" in said
    assert "https://" in said


def test_plain_http_elsewhere_without_credentials_is_fine() -> None:
    assert Config("http://in-memory").server == "http://in-memory"


def test_no_secret_is_in_a_repr() -> None:
    config = Config(
        "https://x.example",
        namespace="ns",
        token=CANARY,
        client_certificate="/c",
        client_key_data=CANARY.encode(),
        proxy_url=f"http://u:{CANARY}@proxy:1",
        exec=ExecPlugin("p", args=(CANARY,), env=(("A", CANARY),), cluster_config={"a": CANARY}),
    )
    shown = repr(config)
    assert CANARY not in shown
    assert "server='https://x.example'" in shown
    assert "token=…" in shown
    assert "password" not in shown, "what is not set is not shown"
    assert CANARY not in repr(replace(config, token="", username="u", password=CANARY))
    assert CANARY not in repr(Config("https://x", token=CANARY).read())


# What cannot work


@pytest.mark.parametrize(
    "server",
    ["", "k8s.example:6443", "ftp://k8s.example", "https://", "https://[x", "https://h:p", "https://h:0"],
)
def test_a_server_that_is_no_address_is_refused(server: str) -> None:
    assert "write https://host:port" in refused(lambda: Config(server))


def test_a_server_with_a_password_is_refused_and_not_shown() -> None:
    assert "no user in it" in refused(lambda: Config(f"https://jane:{CANARY}@k8s.example"))


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    said = refused(lambda: Config.load(tmp_path / "missing"))
    assert f"{tmp_path}/missing: it does not exist" in said


def test_a_directory_in_place_of_a_file_is_refused_by_name(tmp_path: Path) -> None:
    assert "is a directory" in refused(lambda: Config.load(tmp_path))
    assert "is a directory" in refused(lambda: Config.load(env={"KUBECONFIG": str(tmp_path)}))
    path = write(tmp_path / "config", user={"tokenFile": "."})
    assert f"tokenFile {tmp_path} is a directory" in refused(lambda: Config.load(path))


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Root may read everything: step down for a moment."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_file_that_may_not_be_read_is_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "config")
    path.chmod(0)
    with as_ordinary_user():
        said = refused(lambda: Config.load(env={"KUBECONFIG": str(path)}))
    assert f"{path}: it may not be read by this user" in said


def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "config", user={"tokenFile": "/a\0b"})
    assert "cannot be read" in refused(lambda: Config.load(path))
    assert "Not a directory" in refused(lambda: Config.load(env={"KUBECONFIG": f"{path}/below"}))


@pytest.mark.parametrize(
    ("where", "field"),
    [
        ("cluster", "certificate-authority-data"),
        ("user", "client-certificate-data"),
        ("user", "client-key-data"),
    ],
)
def test_bad_base64_is_refused_by_field(tmp_path: Path, where: str, field: str) -> None:
    path = write(tmp_path / "config", **{where: {field: f"{CANARY}!"}})  # type: ignore[arg-type]
    said = refused(lambda: Config.load(path))
    assert f"context 'dev' of kubeconfig {path}" in said
    assert f"{field} is not base64" in said


def test_base64_may_be_broken_over_lines(tmp_path: Path, authority: Authority) -> None:
    data = encoded(authority.certificate_pem)
    folded = "\n".join(data[start : start + 64] for start in range(0, len(data), 64))
    path = write(tmp_path / "config", cluster={"certificate-authority-data": folded})
    assert Config.load(path).certificate_authority_data == authority.certificate_pem


def test_an_expired_certificate_is_refused_with_its_date(tmp_path: Path, authority: Authority) -> None:
    old = authority.issue("jane", client=True, valid_for=timedelta(days=-3))
    user = {"client-certificate": "jane.crt", "client-key-data": encoded(old.key_pem)}
    (tmp_path / "jane.crt").write_bytes(old.certificate_pem)
    path = write(tmp_path / "config", user=user)
    said = refused(lambda: Config.load(path))
    assert f"context 'dev' of kubeconfig {path}, user 'dev'" in said
    assert re.search(rf"client-certificate {tmp_path}/jane.crt expired on \d{{4}}-\d\d-\d\d at", said)
    assert "get a new one" in said


def test_a_key_of_another_certificate_is_refused(
    tmp_path: Path, authority: Authority, jane: Identity
) -> None:
    joe = authority.issue("joe", client=True)
    user = {
        "client-certificate-data": encoded(jane.certificate_pem),
        "client-key-data": encoded(joe.key_pem),
    }
    said = refused(lambda: Config.load(write(tmp_path / "config", user=user)))
    assert "client-certificate-data cannot be used: the key does not belong to the certificate" in said


def test_an_authority_that_is_no_pem_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(CANARY)
    path = write(tmp_path / "config", cluster={"certificate-authority": "ca.crt"})
    said = refused(lambda: Config.load(path))
    assert f"certificate-authority {tmp_path}/ca.crt cannot be used: it holds no PEM certificate" in said
    inline = write(tmp_path / "inline", cluster={"certificate-authority-data": encoded(CANARY.encode())})
    assert "certificate-authority-data cannot be used" in refused(lambda: Config.load(inline))


@pytest.mark.parametrize("content", ["", " \n", f"{CANARY}\nsecond line", f"{CANARY}\0", "tökén"])
def test_a_token_file_without_a_token_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content)
    path = write(tmp_path / "config", user={"tokenFile": "token"})
    said = refused(lambda: Config.load(path))
    assert f"tokenFile {tmp_path}/token" in said
    assert f"context 'dev' of kubeconfig {path}" in said


def test_missing_files_of_credentials_are_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "config", user={"tokenFile": "t"})
    assert f"tokenFile {tmp_path}/t does not exist" in refused(lambda: Config.load(path))
    path = write(tmp_path / "config", user={"client-certificate": "c", "client-key": "k"})
    assert f"client-certificate {tmp_path}/c does not exist" in refused(lambda: Config.load(path))
    path = write(tmp_path / "config", cluster={"certificate-authority": "ca"})
    assert f"certificate-authority {tmp_path}/ca does not exist" in refused(lambda: Config.load(path))


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"token": CANARY, "username": "u", "password": CANARY}, "both a token and a username"),
        ({"client-certificate-data": encoded(b"x")}, "client-certificate is given without its key"),
        ({"token": f"a\n{CANARY}"}, "the token holds what cannot be in a token"),
        ({"as-groups": ["a"]}, "given without a user"),
        ({"as": "a\nb"}, "control characters"),
    ],
)
def test_credentials_that_contradict_themselves_are_refused(
    tmp_path: Path, user: dict[str, Any], said: str
) -> None:
    path = write(tmp_path / "config", user=user)
    assert said in refused(lambda: Config.load(path))


def test_not_verifying_a_server_whose_authority_is_given_is_refused(tmp_path: Path) -> None:
    cluster = {"insecure-skip-tls-verify": True, "certificate-authority-data": encoded(b"x")}
    path = write(tmp_path / "config", cluster=cluster)
    assert "insecure-skip-tls-verify says not to use it" in refused(lambda: Config.load(path))


def test_a_proxy_that_cannot_be_used_is_refused_when_loaded(tmp_path: Path) -> None:
    path = write(tmp_path / "config", cluster={"proxy-url": f"socks5://u:{CANARY}@p:1"})
    said = refused(lambda: Config.load(path))
    assert "read proxy-url: socks5 proxies cannot be used" in said
    assert f"context 'dev' of kubeconfig {path}" in said


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1"}, "exec has no command"),
        ({"command": "p"}, "its apiVersion is ''"),
        (
            {"command": "p", "apiVersion": "client.authentication.k8s.io/v1alpha1"},
            "client.authentication.k8s.io/v1alpha1'; there are client.authentication.k8s.io/v1 and",
        ),
        ({"command": "p", "apiVersion": "client.authentication.k8s.io/v1"}, "interactiveMode is ''"),
        (
            {
                "command": "p",
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "interactiveMode": "Maybe",
            },
            "write one of Never, IfAvailable, Always",
        ),
        (
            {
                "command": "p",
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "env": [{"value": CANARY}],
            },
            "has no name",
        ),
    ],
)
def test_a_plugin_we_cannot_talk_to_is_refused_when_loaded(
    tmp_path: Path, plugin: dict[str, Any], said: str
) -> None:
    path = write(tmp_path / "config", user={"exec": plugin})
    assert said in refused(lambda: Config.load(path))


def test_a_v1beta1_plugin_may_leave_its_mode_unsaid(tmp_path: Path) -> None:
    plugin = {"command": "p", "apiVersion": "client.authentication.k8s.io/v1beta1"}
    config = Config.load(write(tmp_path / "config", user={"exec": plugin}))
    assert config.exec is not None
    assert config.exec.interactive_mode == "IfAvailable"


def test_credential_errors_are_config_errors() -> None:
    assert issubclass(CredentialError, ConfigError)
