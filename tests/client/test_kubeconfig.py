"""The rules of ``client/kubeconfig.py``, as kubectl has them."""

from __future__ import annotations

import json
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.client.kubeconfig import Kubeconfig, choose, merge, parse
from setpoint.errors import ConfigError

CANARY = "s3cr3t-canary"


def kubeconfig(
    *contexts: str,
    current: str = "",
    origin: str = "/etc/kube/config",
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
) -> Kubeconfig:
    """Each context is a cluster, a user and a context of that name."""
    content = {
        "kind": "Config",
        "apiVersion": "v1",
        "current-context": current,
        "clusters": [
            {"name": name, "cluster": {"server": f"https://{name}", **(cluster or {})}} for name in contexts
        ],
        "users": [{"name": name, "user": user or {}} for name in contexts],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in contexts],
    }
    return parse(json.dumps(content), origin)


def refused(text: str, origin: str = "/home/jane/.kube/config") -> str:
    """What is said of a kubeconfig that cannot be used; nothing of its secrets, anywhere."""
    with pytest.raises(ConfigError) as caught:
        choose(parse(text, origin))
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def test_the_first_definition_of_a_name_wins_whole() -> None:
    first = kubeconfig("a", user={"username": "first"}, cluster={"tls-server-name": "first"})
    second = kubeconfig("a", user={"username": "second", "password": "x"}, cluster={"proxy-url": "http://p"})
    merged = merge([first, second])
    assert merged.users["a"].username == "first"
    assert merged.users["a"].password == "", "nothing of the second definition is mixed in"
    assert merged.clusters["a"].tls_server_name == "first"
    assert merged.clusters["a"].proxy_url == ""


def test_the_first_current_context_wins_and_an_empty_one_says_nothing() -> None:
    files = [kubeconfig("a"), kubeconfig("b", current="b"), kubeconfig("c", current="c")]
    assert merge(files).current_context == "b"


def test_a_context_may_use_clusters_and_users_of_other_files() -> None:
    context = parse("contexts: [{name: x, context: {cluster: a, user: b}}]\ncurrent-context: x", "/1")
    choice = choose(merge([context, kubeconfig("a"), kubeconfig("b", user={"token": "t"})]))
    assert (choice.cluster.server, choice.user.token) == ("https://a", "t")


def test_nothing_merged_is_nothing() -> None:
    assert merge([]) == Kubeconfig((), {}, {}, {}, "")


names = st.sampled_from(["a", "b", "c", "d"])
entries = st.dictionaries(names, st.integers(), max_size=4)


@given(st.lists(st.tuples(entries, st.sampled_from(["", "a", "b"])), max_size=5))
def test_merging_gives_every_name_to_the_first_file_that_has_it(
    files: list[tuple[dict[str, int], str]],
) -> None:
    parsed = [
        parse(
            json.dumps(
                {
                    "clusters": [{"name": n, "cluster": {"server": str(v)}} for n, v in found.items()],
                    "users": [{"name": n, "user": {"token": str(v)}} for n, v in found.items()],
                    "contexts": [{"name": n, "context": {"namespace": str(v)}} for n, v in found.items()],
                    "current-context": current,
                }
            ),
            f"/{number}",
        )
        for number, (found, current) in enumerate(files)
    ]
    merged = merge(parsed)
    everything = {name for found, _ in files for name in found}
    assert set(merged.clusters) == set(merged.users) == set(merged.contexts) == everything
    for name in everything:
        first = str(next(found[name] for found, _ in files if name in found))
        assert merged.clusters[name].server == first
        assert merged.users[name].token == first
        assert merged.contexts[name].namespace == first
    assert merged.current_context == next((current for _, current in files if current), "")
    assert merge([merged]) == merged


def test_relative_paths_count_from_the_file_they_stand_in() -> None:
    user = {"client-certificate": "a.crt", "client-key": "../a.key", "tokenFile": "/abs/token"}
    first = kubeconfig("a", origin="/one/config", cluster={"certificate-authority": "pki/ca.crt"}, user=user)
    second = kubeconfig("b", origin="/two/config", cluster={"certificate-authority": "pki/ca.crt"})
    merged = merge([first, second])
    assert merged.clusters["a"].certificate_authority == "/one/pki/ca.crt"
    assert merged.clusters["b"].certificate_authority == "/two/pki/ca.crt"
    assert merged.users["a"].client_certificate == "/one/a.crt"
    assert merged.users["a"].client_key == "/one/../a.key"
    assert merged.users["a"].token_file == "/abs/token"
    assert merged.users["b"].token_file == ""


@pytest.mark.parametrize(
    ("command", "resolved"),
    [("plugin", "plugin"), ("./plugin", "/one/plugin"), ("bin/p", "/one/bin/p"), ("/opt/p", "/opt/p")],
)
def test_a_plugin_with_a_slash_counts_from_its_file_and_one_without_is_left_to_path(
    command: str, resolved: str
) -> None:
    plugin = kubeconfig("a", origin="/one/config", user={"exec": {"command": command}}).users["a"].exec
    assert plugin is not None
    assert plugin.command == resolved


def test_the_named_context_goes_before_the_current_one() -> None:
    both = kubeconfig("a", "b", current="a")
    assert choose(both).cluster.server == "https://a"
    assert choose(both, "b").cluster.server == "https://b"


def test_a_context_may_do_without_a_user() -> None:
    text = "clusters: [{name: c, cluster: {server: https://x}}]\ncontexts: [{name: x, context: {cluster: c}}]"
    assert choose(parse(text, "/f"), "x").user.token == ""


def test_null_says_nothing_and_unknown_fields_are_left_alone() -> None:
    text = """
    preferences: {colors: true}
    clusters: null
    users:
    contexts:
    - {name: x, context: {namespace: null, extensions: [{name: y, extension: {z: 1}}]}, future: 1}
    """
    parsed = parse(text, "/f")
    assert parsed.clusters == {}
    assert parsed.contexts["x"].namespace == ""
    assert parse("", "/f") == Kubeconfig(("/f",), {}, {}, {}, "")


def test_broken_yaml_is_told_with_file_and_line() -> None:
    said = refused(f"users:\n- name: a\n  user:\n    token: {CANARY}: x\n")
    assert "/home/jane/.kube/config" in said
    assert "line 4" in said
    assert "quote" in said


@pytest.mark.parametrize(
    "text",
    [
        f"password: *{CANARY}",
        f"password: !{CANARY} x",
        f"password: !x {CANARY}",
        f"password: '{CANARY}",
        f"password: [{CANARY}",
        f"password: \0{CANARY}",
        f"password: {CANARY}\n--- 2",
        CANARY,
        f"[{CANARY}]",
        f"kind: {CANARY}",
        f"users: {CANARY}",
        f"users: [{CANARY}]",
        f"users: [{{name: a, user: {CANARY}}}]",
        f"users: [{{name: a, user: {{token: [{CANARY}]}}}}]",
        f"users: [{{name: a, user: {{exec: {{args: {CANARY}}}}}}}]",
        f"users: [{{name: a, user: {{exec: {{env: [{CANARY}]}}}}}}]",
        f"clusters: [{{name: a, cluster: {{insecure-skip-tls-verify: {CANARY}}}}}]",
    ],
)
def test_no_broken_kubeconfig_shows_its_secrets(text: str) -> None:
    assert "/home/jane/.kube/config" in refused(text)


def test_a_file_that_is_something_else_is_told_so() -> None:
    assert "is not a kubeconfig" in refused("kind: Deployment\nmetadata: {name: x}")
    assert "is not a kubeconfig" in refused("- a list")


def test_a_field_of_the_wrong_type_is_named() -> None:
    said = refused("users: [{name: a, user: {token: 12345}}]")
    assert "$.users[0].user.token" in said
    assert "quotes" in said
    assert "12345" not in said


def test_an_unknown_context_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        choose(kubeconfig("b", "a", current="a"), "c")
    assert "context 'c'" in str(caught.value)
    assert "known contexts: 'a', 'b'" in str(caught.value)
    assert "/etc/kube/config" in str(caught.value)


def test_no_current_context_is_told_with_the_known_ones_and_how_to_name_one() -> None:
    with pytest.raises(ConfigError) as caught:
        choose(kubeconfig("b", "a"))
    assert "no current-context; known contexts: 'a', 'b'" in str(caught.value)
    assert "use-context" in str(caught.value)
    assert "there are no contexts at all" in refused("kind: Config")


def test_an_unknown_cluster_or_user_is_told_with_the_known_ones() -> None:
    text = "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nusers: [{name: v}]\n"
    assert "there is no cluster 'c'; known clusters: 'd'" in refused(text + "clusters: [{name: d}]")
    said = refused(text + "clusters: [{name: c, cluster: {server: https://x}}]")
    assert "there is no user 'u'; known users: 'v'" in said


def test_missing_fields_are_told() -> None:
    text = "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
    assert "cluster 'c' has no server (add server: https://…)" in refused(text + "clusters: [{name: c}]")
    assert "it names no cluster" in refused("current-context: x\ncontexts: [{name: x}]")
    assert "a user has no name" in refused("users: [{user: {}}]")


def test_a_name_defined_twice_in_one_file_is_told() -> None:
    assert "user 'a' is defined twice" in refused("users: [{name: a}, {name: a}]")
    assert "the key 'users' is already there" in refused("users: []\nusers: []")


def test_a_namespace_that_cannot_be_is_told() -> None:
    text = "current-context: x\nclusters: [{name: c, cluster: {server: https://x}}]\n"
    assert "'A_b'" in refused(text + "contexts: [{name: x, context: {cluster: c, namespace: A_b}}]")


@pytest.mark.parametrize(
    ("provider", "advice"),
    [
        ("gcp", "gke-gcloud-auth-plugin"),
        ("azure", "kubelogin"),
        ("oidc", "exec plugin"),
        ("x", "exec plugin"),
    ],
)
def test_an_auth_provider_is_told_with_what_took_its_place(provider: str, advice: str) -> None:
    user = {"auth-provider": {"name": provider, "config": {"id-token": CANARY}}}
    with pytest.raises(ConfigError, match=f"auth-provider '{provider}'") as caught:
        choose(kubeconfig("a", current="a", user=user))
    assert advice in str(caught.value)
    assert CANARY not in str(caught.value)


def test_what_nobody_chose_may_be_incomplete() -> None:
    text = "clusters: [{name: other}]\nusers: [{name: other, user: {auth-provider: {name: gcp}}}]"
    assert choose(merge([kubeconfig("a", current="a"), parse(text, "/f")])).cluster.server == "https://a"


def test_no_repr_shows_a_secret() -> None:
    user = {
        "token": CANARY,
        "password": CANARY,
        "client-key-data": CANARY,
        "exec": {"command": "p", "args": [CANARY], "env": [{"name": "A", "value": CANARY}]},
    }
    parsed = kubeconfig("a", current="a", user=user)
    assert CANARY not in repr(parsed)
    assert CANARY not in repr(choose(parsed))
    plugin = parsed.users["a"].exec
    assert plugin is not None
    assert CANARY not in f"{plugin!r} {plugin.env!r}"
