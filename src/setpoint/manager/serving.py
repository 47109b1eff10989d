"""The certificate that the metrics are served with: one that is given, or one that this process makes.

Promises: a given one (``tls.crt`` and ``tls.key`` in a folder, as a Secret is mounted) is read again as it
is renewed, within ``LOOK_EVERY`` seconds and without a restart; one that cannot be used is told at the start,
and later in the log, while the last good one goes on serving.  A made one is for encryption alone: nobody can
verify it.

Used by ``probes.py``.
"""

from __future__ import annotations

import logging
import ssl
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Final

from setpoint.errors import ConfigError
from setpoint.net.trust import CertificatePair, server_context

LOOK_EVERY: Final = 10.0
_LASTS: Final = timedelta(days=3650)

log = logging.getLogger("setpoint.probes")


class Certificate:
    """Gives the TLS of the moment: ``certificate()``."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._pair: CertificatePair | None = None
        self._looked = 0.0
        self._context = _made() if folder is None else self._read(folder)

    def __repr__(self) -> str:
        return f"<Certificate {self._folder or 'of our own'}>"

    def __call__(self) -> ssl.SSLContext:
        if self._folder is not None and monotonic() - self._looked >= LOOK_EVERY:
            try:
                self._context = self._read(self._folder)
            except ConfigError as error:
                log.error("%s; the last good certificate is still shown", error)  # noqa: TRY400 - it says it all
        return self._context

    def _read(self, folder: Path) -> ssl.SSLContext:
        self._looked = monotonic()
        try:
            pair = CertificatePair((folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes())
            if pair == self._pair:
                return self._context
            context = server_context(pair)
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise ConfigError(
                f"read tls.crt and tls.key of {folder}",
                why,
                advice="mount a Secret of type kubernetes.io/tls",
            ) from None
        self._pair = pair
        return context


def _made() -> ssl.SSLContext:
    from setpoint.net.tls import Authority  # noqa: PLC0415 - large, and few need it

    hosts = ("localhost", "127.0.0.1", "::1")
    made = Authority.create("setpoint-metrics").issue(
        "setpoint-metrics", hosts=hosts, server=True, valid_for=_LASTS
    )
    return server_context(CertificatePair(made.certificate_pem, made.key_pem))
