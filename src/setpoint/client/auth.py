"""Decides what proves who we are, now: ``Credentials`` is the live side of a ``Config``.

Four promises:

1. ``headers`` costs one comparison while nothing is due.  Files are read again every ten seconds, in a
   thread, and compared whole: a time stamp can lie, and the kubelet swaps symbolic links.  A plugin is run
   again shortly before its answer expires.
2. Any number of callers share one look at files and plugin, and its failure too.  While the credentials in
   hand are still good, nobody but the one who looks has to wait.
3. A look that fails changes nothing: what is in use stays in use for as long as it is good, and the failure
   is logged.  A file may be gone for a moment, or a certificate be replaced before its key.
4. A rotated certificate or authority brings a new ``ssl.SSLContext``; while nothing changed it is the same.

How the client and the transport use it::

    credentials = Credentials(config)
    transport = HttpTransport(Endpoint(config.server, ssl_context=credentials.ssl_context, ...))

    headers = await credentials.headers()  # before each request: brings the certificate up to date, too
    if status == 401 and await credentials.refresh(headers):
        ...  # ask once more, with new headers

The transport asks for ``ssl_context`` whenever it may open a connection.  A context that is another object
than before holds another certificate, so the connections kept from before are not used for it.

Not here: which credentials there are (``config.py``) and how a plugin is run (``exec_plugin.py``).
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from collections.abc import Mapping
from copy import copy
from math import inf
from typing import NamedTuple

from setpoint.client import exec_plugin
from setpoint.client.config import Config, Material
from setpoint.client.exec_credential import ExecPlugin, Issued, cluster_info
from setpoint.clock import Clock, SystemClock
from setpoint.errors import ConfigError
from setpoint.net.trust import CertificatePair

FILES_EVERY = 10.0  # seconds; the kubelet renews a token minutes before it expires
RETRY_AFTER = 10.0  # seconds, when a look failed and what is in use is still good
EARLY = 60.0  # seconds before its expiry that a plugin's answer is renewed, or a tenth of its life
SOONEST = 1.0  # seconds; a plugin whose clock is wrong must not run for every request

_log = logging.getLogger("setpoint.client")


class _Proof(NamedTuple):
    """All that proves who we are, and to whom."""

    token: str
    certificate: CertificatePair | None
    ca: bytes | None


class Credentials:
    """Who we are, kept up to date."""

    def __init__(self, config: Config, *, clock: Clock | None = None) -> None:
        self.generation = 0  # grows with each new certificate or authority
        self._config = config
        self._clock = clock or SystemClock()
        # In use.  A look replaces these together, or not at all.
        self._material: Material | None = None
        self._issued = Issued()
        self._proof: _Proof | None = None
        self._headers: Mapping[str, str] = {}
        self._context: ssl.SSLContext | None = None
        # By the clock: when to look again, when to run the plugin in doing so, how long all this is good.
        self._due = self._plugin_due = self._good_until = -inf
        # Looks are numbered.  A thorough one ran the plugin, where there is one.
        self._lock = asyncio.Lock()  # held by the one who looks
        self._last_look = self._last_thorough = 0
        self._looking: asyncio.Task[None] | None = None
        self._failure: ConfigError | None = None  # of the last look

    def __repr__(self) -> str:
        return f"<Credentials for {self._config.origin or self._config.server}, generation {self.generation}>"

    async def headers(self) -> Mapping[str, str]:
        """The headers that say who we are.  The same object for as long as they are the same."""
        now = self._clock.now()
        if now >= self._due and not (now < self._good_until and self._lock.locked()):
            await self._look_once()
        return self._headers

    async def refresh(self, used: Mapping[str, str] | None = None) -> bool:
        """After a 401: True if there is something new by now, so that asking again makes sense.

        ``used`` are the headers that were refused.  If others have taken their place there is nothing to do.
        """
        before = self._headers
        if used is not None and used is not before:
            return True
        if self._config.has_files or self._config.uses_plugin:
            await self._look_once(refused=True)
        if self._headers is not before:
            return True
        if certificate := self.certificate():
            self._config.check_expiry(certificate, self._clock.utc())
        return False

    def certificate(self) -> CertificatePair | None:
        """The client certificate in use."""
        return self._proof.certificate if self._proof else None

    def ssl_context(self) -> ssl.SSLContext:
        """TLS with the certificate and authorities in use, for connections that are opened now."""
        if self._context is None:  # nobody asked for headers yet: this once, wait for the files
            material = self._config.read()
            self._context = self._tls(_Proof(material.token, material.certificate, material.ca))
        return self._context

    async def close(self) -> None:
        """Stop looking, if a look is under way."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    # Looking

    async def _look_once(self, *, refused: bool = False) -> None:
        """Look, unless someone did while we waited for our turn: then share what came of it."""
        came_after = self._last_look
        async with self._lock:
            if self._looking is not None and not self._looking.done():
                await asyncio.wait([self._looking])  # begun by someone who did not stay to see its end
            if (self._last_thorough if refused else self._last_look) <= came_after:
                # Not the caller's own: one who runs out of time must not take a login away from the others.
                self._looking = asyncio.create_task(
                    self._numbered_look(refused=refused), name="setpoint-login"
                )
                self._looking.add_done_callback(_seen)
                await asyncio.shield(self._looking)
            elif self._failure is not None:
                raise copy(self._failure)

    async def _numbered_look(self, *, refused: bool) -> None:
        thorough = refused or not self._config.uses_plugin or self._clock.now() >= self._plugin_due
        try:
            await self._look(thorough=thorough, refused=refused)
        except ConfigError as error:
            self._count(thorough, copy(error))  # a copy, for the traceback would keep every frame alive
            raise
        # Cancelled, a look is not counted: whoever waits next looks again.
        self._count(thorough, None)

    def _count(self, thorough: bool, failure: ConfigError | None) -> None:
        self._failure = failure
        self._last_look += 1
        if thorough:
            self._last_thorough = self._last_look

    async def _look(self, *, thorough: bool, refused: bool) -> None:
        try:
            await self._update(run_plugin=thorough and self._config.uses_plugin)
        except ConfigError as error:
            now = self._clock.now()
            if refused or now >= self._good_until:
                raise
            _log.warning("%s; the credentials from before stay in use", error)
            self._due = now + RETRY_AFTER

    async def _update(self, *, run_plugin: bool) -> None:
        config = self._config
        material = self._material
        if material is None or config.has_files:
            material = await asyncio.to_thread(config.read)
        issued = self._issued
        if run_plugin and config.exec is not None:
            issued = await self._ask(config.exec, material)
        proof = _Proof(
            material.token or issued.token, material.certificate or issued.certificate, material.ca
        )
        context = self._context
        if config.is_tls and (self._proof is None or proof[1:] != self._proof[1:]):
            context = await asyncio.to_thread(self._tls, proof)
        # From here on nothing fails, and nobody else runs in between.
        if proof != self._proof:
            self._headers = _headers(config, proof.token)
        if context is not self._context:
            self.generation += 1
        self._material, self._issued, self._proof, self._context = material, issued, proof, context
        if run_plugin or not config.uses_plugin:
            self._plugin_due, self._good_until = self._times(issued)
        files_due = self._clock.now() + FILES_EVERY if config.has_files else inf
        self._due = min(files_due, self._plugin_due)

    def _tls(self, proof: _Proof) -> ssl.SSLContext:
        return self._config.ssl_context(proof.ca, proof.certificate, self._clock.utc())

    def _times(self, issued: Issued) -> tuple[float, float]:
        """When the plugin is to run again, and until when its answer is good."""
        if issued.expires is None:
            return inf, inf
        now, left = self._clock.now(), (issued.expires - self._clock.utc()).total_seconds()
        return now + max(SOONEST, left - min(EARLY, left / 10)), now + left

    async def _ask(self, plugin: ExecPlugin, material: Material) -> Issued:
        config = self._config
        cluster = cluster_info(
            server=config.server,
            ca=material.ca,
            tls_server_name=config.tls_server_name,
            insecure=config.insecure_skip_tls_verify,
            proxy_url=config.proxy_url,
            config=plugin.cluster_config,
        )
        return await exec_plugin.run(plugin, cluster, config.doing, config.exec_timeout)


def _headers(config: Config, token: str) -> Mapping[str, str]:
    if token:
        return {"Authorization": f"Bearer {token}"}
    if config.username or config.password:
        pair = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    return {}


def _seen(look: asyncio.Task[None]) -> None:
    """Whoever waits is told; nobody may be left to wait."""
    if not look.cancelled():
        look.exception()
