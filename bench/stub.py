"""A server for ``bench.client``, in a process of its own: TLS, and the same answers to everyone.

GET gives one ConfigMap of 1 KB; POST gives back what it was sent.  It prints one JSON line (its address, and
the authority to trust) and serves until its standard input ends.

    python -m bench.stub
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import tempfile
from pathlib import Path

from setpoint.net.listen import Answer, serve
from setpoint.net.tls import Authority
from setpoint.net.transport import Request

JSON = {"Content-Type": "application/json"}


def config_map() -> bytes:
    """1 KB, as a kube-apiserver writes one."""
    return json.dumps(
        {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "name": "settings",
                "namespace": "shop",
                "uid": "663f969b-7325-4b0e-9c0f-8f5a3c1d2e4f",
                "resourceVersion": "283",
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {"app": "web", "tier": "front"},
            },
            "data": {f"setting-{number}": "value " * 10 for number in range(10)},
        },
        separators=(",", ":"),
    ).encode()


async def app(request: Request) -> Answer:
    if request.method == "POST":
        return Answer(201, JSON, request.body or b"")
    return Answer(200, JSON, config_map())


def server_context(authority: Authority) -> ssl.SSLContext:
    identity = authority.issue("stub", hosts=("127.0.0.1",), server=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "identity.pem"
        file.write_bytes(identity.certificate_pem + identity.key_pem)
        context.load_cert_chain(file)
    return context


async def main() -> None:
    authority = Authority.create()
    async with serve(app, ssl_context=server_context(authority), grace=0.1) as address:
        print(
            json.dumps({"server": str(address), "authority": authority.certificate_pem.decode()}), flush=True
        )
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
