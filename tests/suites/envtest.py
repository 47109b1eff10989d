"""What envtest starts, played by our server: programs kube-apiserver and etcd, with the flags that it gives.

    KUBEBUILDER_ASSETS=<folder> go test ./...       # after assets(folder)

``kube-apiserver`` is our server in memory, on the port, with the certificates and for the client authority
that it is told; ``etcd`` only says that it is well, since our server needs none.  A flag that is not known
here is passed over: envtest's own tests set some that change nothing they look at.

Not here: kubectl, which is linked from where ``make kube`` put it.  Fed by ``suites.py``.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import ssl
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

ROOT: Final = Path(__file__).parents[2]
_PROGRAM: Final = """#!/bin/sh
PYTHONPATH={root}${{PYTHONPATH:+:$PYTHONPATH}} exec {python} -m tests.suites.envtest {name} "$@"
"""


def assets(folder: Path, kubectl: Path) -> Path:
    """The folder, with the three programs that envtest looks for."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("kube-apiserver", "etcd"):
        program = folder / name
        program.write_text(
            _PROGRAM.format(root=shlex.quote(str(ROOT)), python=shlex.quote(sys.executable), name=name)
        )
        program.chmod(0o755)
    link = folder / "kubectl"
    link.unlink(missing_ok=True)
    link.symlink_to(kubectl)
    return folder


def flags(arguments: Iterable[str]) -> dict[str, list[str]]:
    """``--name=value``, each as often as it was given."""
    found = defaultdict[str, list[str]](list)
    for each in arguments:
        name, _, value = each.removeprefix("--").partition("=")
        found[name].append(value)
    return found


async def _serve(told: dict[str, list[str]]) -> None:
    from setpoint.server.admission.plugins import PLUGINS, Plugin
    from setpoint.server.secrets import Secrets
    from setpoint.server.server import ApiServer

    certificates = Path(told["cert-dir"][-1])

    class Given(Secrets):
        """The certificate that envtest made, and the authority whose clients it lets in."""

        def server_context(self, hosts: Iterable[str] = ()) -> ssl.SSLContext:  # noqa: ARG002 - they are in it
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.set_alpn_protocols(["http/1.1"])
            context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
            if authorities := told.get("client-ca-file"):
                context.verify_mode = ssl.CERT_OPTIONAL
                context.load_verify_locations(authorities[-1])
            return context

    refused = {each for one in told.get("disable-admission-plugins", ()) for each in one.split(",")}
    plugins = [each for each in (*PLUGINS, "ServiceAccount") if each not in refused]
    server = ApiServer(
        authorization="always-allow" if "AlwaysAllow" in told.get("authorization-mode", ()) else "rbac",
        admission=cast("Sequence[Plugin]", plugins),
        service_range=told.get("service-cluster-ip-range", ["10.0.0.0/24"])[-1],
    )
    server.secrets = Given()
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    host, port = told.get("bind-address", ["127.0.0.1"])[-1], int(told["secure-port"][-1])
    async with server, server.serve(host, port):
        await stop.wait()


class _Well(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"health":"true"}')

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nobody asked."""


def main(name: str, arguments: Sequence[str]) -> None:
    if "--help" in arguments:  # envtest looks there for flags of former releases: it has none of them
        return
    told = flags(arguments)
    if name == "kube-apiserver":
        asyncio.run(_serve(told))
        return
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    where = urlsplit(told["listen-client-urls"][-1])
    HTTPServer((where.hostname or "127.0.0.1", where.port or 0), _Well).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
