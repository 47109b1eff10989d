"""The rules of ``client/auth.py``: real files, real plugins, a clock that is turned by hand."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from setpoint.client.auth import EARLY, FILES_EVERY, RETRY_AFTER, Credentials
from setpoint.client.config import Config
from setpoint.client.exec_credential import ExecPlugin
from setpoint.clock import ManualClock
from setpoint.errors import ConfigError, CredentialError
from setpoint.net.tls import Authority, Identity

V1 = "client.authentication.k8s.io/v1"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("cluster-ca")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC))


class Plugin:
    """A credential plugin that prints a file and counts its runs."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self._clock = clock
        self._answer, self._runs, self._gate = folder / "answer", folder / "runs", folder / "gate"
        self._path = folder / "plugin"
        self._path.write_text(
            f"#!{sys.executable}\nimport os, pathlib, sys, time\n"
            f"open({str(self._runs)!r}, 'a').write('x')\n"
            f"gate = pathlib.Path({str(self._gate)!r})\n"
            "while gate.exists(): time.sleep(0.001)\n"
            f"answer = pathlib.Path({str(self._answer)!r}).read_text()\n"
            "sys.exit('out of order') if not answer else print(answer)\n"
        )
        self._path.chmod(0o755)
        self._runs.touch()
        self.fails()

    @property
    def config(self) -> Config:
        return Config("https://k8s.example", exec=ExecPlugin(str(self._path), interactive_mode="Never"))

    @property
    def runs(self) -> int:
        return len(self._runs.read_text())

    def gives(
        self, token: str = "", *, identity: Identity | None = None, expires_in: float | None = None
    ) -> None:
        status: dict[str, str] = {"token": token}
        if identity is not None:
            status["clientCertificateData"] = identity.certificate_pem.decode()
            status["clientKeyData"] = identity.key_pem.decode()
        if expires_in is not None:
            status["expirationTimestamp"] = (self._clock.utc() + timedelta(seconds=expires_in)).isoformat()
        self._answer.write_text(json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}))

    def fails(self) -> None:
        self._answer.write_text("")

    def is_slow(self) -> None:
        self._gate.touch()

    def goes_on(self) -> None:
        self._gate.unlink()

    async def is_running(self, runs: int) -> None:
        while True:
            if self.runs == runs:
                return
            await asyncio.sleep(0.005)


@pytest.fixture
def plugin(tmp_path: Path, clock: ManualClock) -> Plugin:
    return Plugin(tmp_path, clock)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def write_pair(folder: Path, identity: Identity) -> None:
    (folder / "tls.crt").write_bytes(identity.certificate_pem)
    (folder / "tls.key").write_bytes(identity.key_pem)


# Credentials that do not change


@pytest.mark.parametrize(
    ("config", "headers"),
    [
        (Config("https://x"), {}),
        (Config("https://x", token="t"), bearer("t")),
        (Config("https://x", username="jané", password="pä:ss"), {"Authorization": "Basic amFuw6k6cMOkOnNz"}),
        (Config("http://localhost", token="t"), bearer("t")),
    ],
)
async def test_fixed_credentials_are_sent_and_asking_again_makes_no_sense(
    config: Config, headers: dict[str, str]
) -> None:
    credentials = Credentials(config)
    first = await credentials.headers()
    assert first == headers
    assert await credentials.headers() is first
    assert await credentials.refresh() is False
    assert await credentials.refresh(first) is False


async def test_an_inline_certificate_is_shown(authority: Authority, clock: ManualClock) -> None:
    jane = authority.issue("jane", client=True)
    credentials = Credentials(
        Config("https://x", client_certificate_data=jane.certificate_pem, client_key_data=jane.key_pem),
        clock=clock,
    )
    assert await credentials.headers() == {}
    pair = credentials.certificate()
    assert pair is not None
    assert (pair.certificate, pair.key) == (jane.certificate_pem, jane.key_pem)
    assert credentials.ssl_context() is credentials.ssl_context()
    assert credentials.generation == 1


async def test_a_certificate_that_expired_while_we_ran_is_told_after_a_401(
    authority: Authority, clock: ManualClock
) -> None:
    jane = authority.issue("jane", client=True, valid_for=timedelta(hours=1))
    config = Config("https://x", client_certificate_data=jane.certificate_pem, client_key_data=jane.key_pem)
    credentials = Credentials(config, clock=clock)
    used = await credentials.headers()
    assert await credentials.refresh(used) is False
    clock.turn(3601)
    assert await credentials.headers() is used, "the server has the last word"
    with pytest.raises(CredentialError, match="client-certificate-data expired on"):
        await credentials.refresh(used)


async def test_the_context_may_be_asked_for_before_the_headers(authority: Authority) -> None:
    credentials = Credentials(Config("https://x", certificate_authority_data=authority.certificate_pem))
    assert credentials.ssl_context().verify_mode == ssl.CERT_REQUIRED


# Files that rotate


async def test_a_token_file_is_read_again_as_it_rotates(tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    credentials = Credentials(Config("https://x", token_file=str(file)), clock=clock)
    first = await credentials.headers()
    assert first == bearer("one")
    file.write_text("two\n")
    clock.turn(FILES_EVERY / 2)
    assert await credentials.headers() is first, "not due yet"
    clock.turn(FILES_EVERY / 2)
    assert await credentials.headers() == bearer("two")


async def test_a_token_swapped_by_symbolic_link_is_noticed(tmp_path: Path, clock: ManualClock) -> None:
    """As the kubelet does it: ``token`` → ``..data/token``, and ``..data`` is replaced in one step."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "token").symlink_to("..data/token")
    credentials = Credentials(Config("https://x", token_file=str(tmp_path / "token")), clock=clock)
    assert await credentials.headers() == bearer("one")
    (tmp_path / "..tmp").symlink_to("two")
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    clock.turn(FILES_EVERY)
    assert await credentials.headers() == bearer("two")


async def test_after_a_401_a_token_file_is_read_at_once(tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = Credentials(Config("https://x", token_file=str(file)), clock=clock)
    used = await credentials.headers()
    assert await credentials.refresh(used) is False, "the same token would be refused again"
    file.write_text("two")
    assert await credentials.refresh(used) is True
    assert await credentials.headers() == bearer("two")
    assert await credentials.refresh(used) is True, "others have taken their place already"


async def test_a_token_file_that_is_gone_for_a_moment_changes_nothing(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = Credentials(Config("https://x", token_file=str(file)), clock=clock)
    first = await credentials.headers()
    file.unlink()
    clock.turn(FILES_EVERY)
    with caplog.at_level(logging.WARNING, "setpoint.client"):
        assert await credentials.headers() is first
        assert await credentials.headers() is first
    assert len(caplog.records) == 1, "said once for each look, not for each request"
    assert f"tokenFile {file} does not exist" in caplog.text
    file.write_text("two")
    clock.turn(RETRY_AFTER)
    assert await credentials.headers() == bearer("two")


async def test_a_missing_token_file_is_an_error_at_first_and_after_a_401(
    tmp_path: Path, clock: ManualClock
) -> None:
    file = tmp_path / "token"
    credentials = Credentials(Config("https://x", token_file=str(file)), clock=clock)
    with pytest.raises(CredentialError, match="does not exist"):
        await credentials.headers()
    file.write_text("one")
    used = await credentials.headers()
    file.unlink()
    with pytest.raises(CredentialError, match="does not exist"):
        await credentials.refresh(used)
    assert await credentials.headers() is used


async def test_a_rotated_certificate_brings_a_new_context(
    tmp_path: Path, authority: Authority, clock: ManualClock
) -> None:
    write_pair(tmp_path, authority.issue("one", client=True))
    config = Config(
        "https://x", client_certificate=str(tmp_path / "tls.crt"), client_key=str(tmp_path / "tls.key")
    )
    credentials = Credentials(config, clock=clock)
    used = await credentials.headers()
    context = credentials.ssl_context()
    clock.turn(FILES_EVERY)
    assert await credentials.headers() is used
    assert credentials.ssl_context() is context, "nothing changed"

    two = authority.issue("two", client=True)
    write_pair(tmp_path, two)
    assert await credentials.refresh(used) is True
    assert credentials.ssl_context() is not context
    assert credentials.generation == 2
    pair = credentials.certificate()
    assert pair is not None
    assert pair.certificate == two.certificate_pem


async def test_a_certificate_replaced_before_its_key_waits_for_the_key(
    tmp_path: Path, authority: Authority, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    write_pair(tmp_path, authority.issue("one", client=True))
    config = Config(
        "https://x", client_certificate=str(tmp_path / "tls.crt"), client_key=str(tmp_path / "tls.key")
    )
    credentials = Credentials(config, clock=clock)
    await credentials.headers()
    context = credentials.ssl_context()

    two = authority.issue("two", client=True)
    (tmp_path / "tls.crt").write_bytes(two.certificate_pem)
    clock.turn(FILES_EVERY)
    await credentials.headers()
    assert credentials.ssl_context() is context
    assert "the key does not belong to the certificate" in caplog.text

    (tmp_path / "tls.key").write_bytes(two.key_pem)
    clock.turn(RETRY_AFTER)
    await credentials.headers()
    assert credentials.ssl_context() is not context


async def test_a_rotated_authority_brings_a_new_context(
    tmp_path: Path, authority: Authority, clock: ManualClock
) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(authority.certificate_pem)
    credentials = Credentials(Config("https://x", certificate_authority=str(file)), clock=clock)
    await credentials.headers()
    context = credentials.ssl_context()
    file.write_bytes(authority.certificate_pem + Authority.create("next-ca").certificate_pem)
    clock.turn(FILES_EVERY)
    await credentials.headers()
    assert credentials.ssl_context() is not context
    assert len(credentials.ssl_context().get_ca_certs()) == 2


# Plugins


async def test_a_plugins_answer_without_an_expiry_is_kept(plugin: Plugin, clock: ManualClock) -> None:
    plugin.gives("one")
    credentials = Credentials(plugin.config, clock=clock)
    first = await credentials.headers()
    assert first == bearer("one")
    clock.turn(1_000_000)
    assert await credentials.headers() is first
    assert plugin.runs == 1


@pytest.mark.parametrize(("life", "kept"), [(3600, 3600 - EARLY), (100, 90)])
async def test_a_plugin_runs_again_shortly_before_its_answer_expires(
    plugin: Plugin, clock: ManualClock, life: float, kept: float
) -> None:
    plugin.gives("one", expires_in=life)
    credentials = Credentials(plugin.config, clock=clock)
    await credentials.headers()
    plugin.gives("two", expires_in=2 * life)
    clock.turn(kept - 0.5)
    assert await credentials.headers() == bearer("one")
    clock.turn(1)
    assert await credentials.headers() == bearer("two")
    assert plugin.runs == 2


async def test_a_plugin_that_keeps_its_own_cache_does_not_run_for_every_request(
    plugin: Plugin, clock: ManualClock
) -> None:
    plugin.gives("one", expires_in=100)
    credentials = Credentials(plugin.config, clock=clock)
    first = await credentials.headers()
    clock.turn(91)
    for _ in range(5):
        assert await credentials.headers() is first
    assert plugin.runs == 2, "and next when a tenth of what is left has passed"


async def test_a_plugin_whose_clock_is_behind_does_not_run_for_every_request(
    plugin: Plugin, clock: ManualClock
) -> None:
    plugin.gives("one", expires_in=-3600)
    credentials = Credentials(plugin.config, clock=clock)
    for _ in range(5):
        assert await credentials.headers() == bearer("one")
    assert plugin.runs == 1


async def test_concurrent_callers_share_one_run(plugin: Plugin, clock: ManualClock) -> None:
    plugin.gives("one")
    credentials = Credentials(plugin.config, clock=clock)
    answers = await asyncio.gather(*(credentials.headers() for _ in range(20)))
    assert answers == [bearer("one")] * 20
    assert plugin.runs == 1


async def test_concurrent_callers_share_one_failure(plugin: Plugin, clock: ManualClock) -> None:
    credentials = Credentials(plugin.config, clock=clock)
    answers = await asyncio.gather(*(credentials.headers() for _ in range(20)), return_exceptions=True)
    assert plugin.runs == 1
    for answer in answers:
        assert isinstance(answer, CredentialError)
        assert "out of order" in str(answer)
        assert "run it by hand" in str(answer)
    plugin.gives("one")
    assert await credentials.headers() == bearer("one"), "the next caller tries again"


async def test_concurrent_401s_share_one_run(plugin: Plugin, clock: ManualClock) -> None:
    plugin.gives("one")
    credentials = Credentials(plugin.config, clock=clock)
    used = await credentials.headers()
    assert await asyncio.gather(*(credentials.refresh(used) for _ in range(20))) == [False] * 20
    assert plugin.runs == 2, "the same token: asking again makes no sense"
    plugin.gives("two")
    assert await asyncio.gather(*(credentials.refresh(used) for _ in range(20))) == [True] * 20
    assert plugin.runs == 3
    assert await credentials.refresh(used) is True
    assert plugin.runs == 3, "a late 401 of the old token"
    assert await credentials.headers() == bearer("two")


async def test_a_401_during_a_look_at_files_alone_still_runs_the_plugin(
    plugin: Plugin, tmp_path: Path, authority: Authority, clock: ManualClock
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    plugin.gives("one")
    config = Config("https://x", exec=plugin.config.exec, certificate_authority=str(tmp_path / "ca.crt"))
    credentials = Credentials(config, clock=clock)
    used = await credentials.headers()
    plugin.gives("two")
    clock.turn(FILES_EVERY)
    looked, refreshed = await asyncio.gather(credentials.headers(), credentials.refresh(used))
    assert (looked, refreshed) == (bearer("one"), True)
    assert await credentials.headers() == bearer("two")
    assert plugin.runs == 2


async def test_looks_at_files_do_not_put_off_the_plugin(
    plugin: Plugin, tmp_path: Path, authority: Authority, clock: ManualClock
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    plugin.gives("one", expires_in=100)
    config = Config("https://x", exec=plugin.config.exec, certificate_authority=str(tmp_path / "ca.crt"))
    credentials = Credentials(config, clock=clock)
    for _ in range(9):
        assert await credentials.headers() == bearer("one")
        clock.turn(FILES_EVERY)
    plugin.gives("two", expires_in=100)
    assert await credentials.headers() == bearer("two")
    assert plugin.runs == 2


async def test_while_the_old_answer_is_good_nobody_waits_for_the_new_one(
    plugin: Plugin, clock: ManualClock
) -> None:
    plugin.gives("one", expires_in=100)
    credentials = Credentials(plugin.config, clock=clock)
    await credentials.headers()
    clock.turn(95)
    plugin.is_slow()
    looking = asyncio.create_task(credentials.headers())
    await plugin.is_running(2)
    plugin.gives("two", expires_in=100)
    assert await credentials.headers() == bearer("one")

    clock.turn(10)
    waiting = asyncio.create_task(credentials.headers())
    await asyncio.sleep(0)
    assert not waiting.done(), "expired: now one has to wait"
    plugin.goes_on()
    assert await looking == await waiting == bearer("two")
    assert plugin.runs == 2


async def test_a_plugin_that_fails_while_its_last_answer_is_good_is_logged_and_tried_later(
    plugin: Plugin, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    plugin.gives("one", expires_in=100)
    credentials = Credentials(plugin.config, clock=clock)
    await credentials.headers()
    plugin.fails()
    clock.turn(91)
    for _ in range(3):
        assert await credentials.headers() == bearer("one")
    assert plugin.runs == 2
    assert "out of order" in caplog.text
    clock.turn(10)
    with pytest.raises(CredentialError, match="out of order"):
        await credentials.headers()


async def test_a_plugin_that_fails_after_a_401_is_an_error(plugin: Plugin, clock: ManualClock) -> None:
    plugin.gives("one")
    credentials = Credentials(plugin.config, clock=clock)
    used = await credentials.headers()
    plugin.fails()
    with pytest.raises(CredentialError, match="exit code 1"):
        await credentials.refresh(used)


async def test_a_caller_who_gives_up_does_not_take_the_login_from_the_others(
    plugin: Plugin, clock: ManualClock
) -> None:
    plugin.gives("one")
    plugin.is_slow()
    credentials = Credentials(plugin.config, clock=clock)
    first = asyncio.create_task(credentials.headers())
    await plugin.is_running(1)
    second = asyncio.create_task(credentials.headers())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    plugin.goes_on()
    assert await second == bearer("one")
    assert plugin.runs == 1


async def test_a_login_that_outlasts_every_caller_is_there_for_the_next(
    plugin: Plugin, clock: ManualClock
) -> None:
    plugin.gives("one")
    plugin.is_slow()
    credentials = Credentials(plugin.config, clock=clock)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(credentials.headers(), 0.01)
    plugin.goes_on()
    assert await credentials.headers() == bearer("one")
    assert plugin.runs == 1


async def test_closing_ends_a_login_under_way(plugin: Plugin, clock: ManualClock) -> None:
    plugin.is_slow()
    credentials = Credentials(plugin.config, clock=clock)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(credentials.headers(), 0.01)
    await credentials.close()
    await credentials.close()


async def test_a_certificate_from_a_plugin_is_shown_and_rotates(
    plugin: Plugin, authority: Authority, clock: ManualClock
) -> None:
    one, two = authority.issue("one", client=True), authority.issue("two", client=True)
    plugin.gives(identity=one, expires_in=100)
    credentials = Credentials(plugin.config, clock=clock)
    used = await credentials.headers()
    assert used == {}
    context = credentials.ssl_context()
    pair = credentials.certificate()
    assert pair is not None
    assert pair.certificate == one.certificate_pem

    plugin.gives(identity=two, expires_in=200)
    assert await credentials.refresh(used) is True
    assert credentials.ssl_context() is not context
    pair = credentials.certificate()
    assert pair is not None
    assert pair.key == two.key_pem
    assert credentials.generation == 2


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda one, two: Identity(one.certificate_pem, two.key_pem), "the key does not belong"),
        (lambda one, _: Identity(b"rubbish", one.key_pem), "the certificate is not PEM"),
    ],
)
async def test_a_certificate_from_a_plugin_that_cannot_work_is_refused(
    plugin: Plugin,
    authority: Authority,
    clock: ManualClock,
    broken: Callable[[Identity, Identity], Identity],
    said: str,
) -> None:
    one, two = authority.issue("one", client=True), authority.issue("two", client=True)
    plugin.gives(identity=broken(one, two))
    credentials = Credentials(plugin.config, clock=clock)
    with pytest.raises(CredentialError, match=f"the plugin's certificate cannot be used: {said}"):
        await credentials.headers()


async def test_an_expired_certificate_from_a_plugin_is_told_with_its_date(
    plugin: Plugin, authority: Authority, clock: ManualClock
) -> None:
    plugin.gives(identity=authority.issue("one", client=True, valid_for=timedelta(days=-1)))
    with pytest.raises(CredentialError, match="the plugin's certificate expired on"):
        await Credentials(plugin.config, clock=clock).headers()


async def test_a_plugin_is_not_run_where_other_credentials_are_given(
    plugin: Plugin, clock: ManualClock
) -> None:
    config = Config("https://x", token="t", exec=plugin.config.exec)
    credentials = Credentials(config, clock=clock)
    assert await credentials.headers() == bearer("t")
    assert await credentials.refresh() is False
    assert plugin.runs == 0


async def test_the_deadline_of_a_plugin_is_the_configs(plugin: Plugin, clock: ManualClock) -> None:
    plugin.is_slow()
    config = Config("https://x", exec=plugin.config.exec, exec_timeout=0.2)
    with pytest.raises(CredentialError, match=r"did not end within 0\.2 s"):
        await Credentials(config, clock=clock).headers()


async def test_a_damaged_authority_is_an_error_and_no_hang(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "ca.crt").write_text("rubbish")
    config = Config("https://x", certificate_authority=str(tmp_path / "ca.crt"))
    for credentials in (Credentials(config, clock=clock), Credentials(config)):
        with pytest.raises(ConfigError, match="holds no PEM certificate"):
            await credentials.headers()
        with pytest.raises(ConfigError, match="holds no PEM certificate"):
            credentials.ssl_context()


def test_a_repr_says_whose_they_are_and_no_secret() -> None:
    shown = repr(Credentials(Config("https://x", token="s3cr3t-canary", origin="context 'dev'")))
    assert shown == "<Credentials for context 'dev', generation 0>"
