"""The rules of ``client/proxy.py``, as Go's ``http.ProxyFromEnvironment`` has them."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.client.proxy import checked_proxy, proxy_for
from setpoint.errors import ConfigError

PROXY = "http://proxy.corp:3128"


@pytest.mark.parametrize(
    ("url", "env", "proxy"),
    [
        ("https://k8s.example:6443", {}, None),
        ("https://k8s.example:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://k8s.example:6443", {"https_proxy": PROXY}, PROXY),
        ("https://k8s.example:6443", {"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, PROXY),
        ("https://k8s.example:6443", {"HTTPS_PROXY": "", "https_proxy": PROXY}, PROXY),
        ("https://k8s.example:6443", {"HTTP_PROXY": PROXY}, None),
        ("http://k8s.example", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://k8s.example", {"HTTPS_PROXY": PROXY}, None),
        ("https://k8s.example", {"HTTPS_PROXY": "proxy.corp:3128"}, PROXY),
        ("https://k8s.example", {"HTTPS_PROXY": "proxy.corp"}, "http://proxy.corp"),
        ("https://k8s.example", {"HTTPS_PROXY": "https://u:p@proxy:1"}, "https://u:p@proxy:1"),
    ],
)
def test_the_proxy_is_the_one_of_the_scheme(url: str, env: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(url, env) == proxy


@pytest.mark.parametrize(
    "url", ["https://localhost:6443", "https://127.0.0.1:6443", "https://127.9.9.9", "https://[::1]:6443"]
)
def test_this_machine_is_never_reached_through_a_proxy(url: str) -> None:
    assert proxy_for(url, {"HTTPS_PROXY": PROXY}) is None


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("*", "https://any.example", True),
        ("x, * ,y", "https://any.example", True),
        ("example.com", "https://example.com", True),
        ("example.com", "https://api.example.com:6443", True),
        ("EXAMPLE.com", "https://API.example.COM", True),
        ("example.com", "https://badexample.com", False),
        (".example.com", "https://api.example.com", True),
        (".example.com", "https://example.com", False),
        ("*.example.com", "https://api.example.com", True),
        ("*.example.com", "https://example.com", False),
        ("*example.com", "https://api.example.com", False),
        ("example.com:6443", "https://example.com:6443", True),
        ("example.com:443", "https://example.com", True),
        ("example.com:80", "https://example.com", False),
        ("example.com:", "https://example.com", True),
        ("10.0.0.1", "https://10.0.0.1:6443", True),
        ("10.0.0.1", "https://10.0.0.2:6443", False),
        ("10.0.0.1:6443", "https://10.0.0.1:6443", True),
        ("10.0.0.1:443", "https://10.0.0.1:6443", False),
        ("10.0.0.0/8", "https://10.200.3.4", True),
        ("10.1.2.3/8", "https://10.200.3.4", True),
        ("10.0.0.0/8", "https://11.0.0.1", False),
        ("10.0.0.0/255.0.0.0", "https://10.0.0.1", False),
        ("10.0.0.0/8", "https://ten.example", False),
        ("fd00::/8", "https://[fd12::1]:6443", True),
        ("fd00::1", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("[fd00::1]:443", "https://[fd00::1]:6443", False),
        ("10.0.0.1", "https://[::ffff:10.0.0.1]", True),
        ("fe80::1", "https://[fe80::1%25eth0]", True),
        ("0.0.1", "https://10.0.0.1", False),
        ("", "https://a.example", False),
        (",,  ,", "https://a.example", False),
        (":443", "https://a.example", False),
        ("[broken", "https://a.example", False),
    ],
)
def test_no_proxy_lists_the_exceptions(no_proxy: str, url: str, direct: bool) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        assert (proxy_for(url, {"HTTPS_PROXY": PROXY, name: no_proxy}) is None) is direct


@given(st.ip_addresses(), st.integers(0, 128))
def test_an_address_is_excepted_by_every_network_it_is_in_and_by_itself(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, bits: int
) -> None:
    bits = min(bits, address.max_prefixlen)
    if getattr(address, "scope_id", None) or getattr(address, "ipv4_mapped", None):
        return
    host = f"[{address}]" if address.version == 6 else str(address)
    for entry in (f"{address}/{bits}", str(address), f"{host}:6443", f"x.example,{address}"):
        assert proxy_for(f"https://{host}:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": entry}) is None


labels = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)


@given(st.lists(labels, min_size=1, max_size=4), st.lists(labels, min_size=1, max_size=3))
def test_a_domain_excepts_itself_and_what_ends_in_it_after_a_dot(host: list[str], domain: list[str]) -> None:
    env = {"HTTPS_PROXY": PROXY, "NO_PROXY": ".".join(domain)}
    is_below = host[-len(domain) :] == domain
    expected = None if is_below or host == ["localhost"] else PROXY
    assert proxy_for(f"https://{'.'.join(host)}", env) == expected


@given(st.text(max_size=40))
def test_no_exception_list_is_ever_an_error(no_proxy: str) -> None:
    assert proxy_for("https://a.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}) in {None, PROXY}


def test_a_socks_proxy_is_refused_by_name_and_its_password_not_shown() -> None:
    with pytest.raises(ConfigError, match="socks5 proxies cannot be used") as caught:
        proxy_for("https://k8s.example", {"HTTPS_PROXY": "socks5://user:canary@proxy:1080"})
    assert "HTTPS_PROXY" in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["http://", "http://user:canary@:1", "http://[canary", "http://h:canary", "h:0"]
)
def test_what_is_no_proxy_is_an_error_and_not_a_direct_connection(text: str) -> None:
    with pytest.raises(ConfigError, match="not the URL of a proxy") as caught:
        checked_proxy(text, "read proxy-url")
    assert "canary" not in str(caught.value)


def test_the_proxy_of_a_cgi_program_is_not_trusted_for_plain_http() -> None:
    with pytest.raises(ConfigError, match="CGI"):
        proxy_for("http://k8s.example", {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"})
    assert proxy_for("https://k8s.example", {"HTTPS_PROXY": PROXY, "REQUEST_METHOD": "GET"}) == PROXY
