"""Runs Setpoint's own API server where tests would run a real control plane.

    with EmbeddedControlPlane() as kube:
        Client(Config.from_kubeconfig(kube.kubeconfig))

It is asked like ``kube.ControlPlane`` and can stand in its place, with these differences: it is ready in a
fraction of a second and needs no programs; in its kubeconfig the administrator shows a token and not a
certificate.  As there, controllers run where they are asked for: without ``controllers`` nothing is
garbage collected, a deleted namespace stays Terminating, and a Deployment makes no pods.

Promises:

1. Started means usable: what is asked is answered.
2. The server has a thread and an event loop of its own, and is met over TLS on loopback: nothing that a test
   does to its own loop (blocking it, turning its clock) reaches the server.
3. ``stop_api_server`` cuts every connection, and ``start_api_server`` answers at the same address with the
   same data, which lives until ``stop``.

Everything here blocks; ``async with`` does the blocking in a thread.
"""

from __future__ import annotations

import asyncio
import errno
import shutil
import tempfile
import threading
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from setpoint.cluster.cluster import Cluster
from setpoint.net.tls import Identity
from setpoint.server.authorization.authorizer import MASTERS
from setpoint.server.secrets import write_private
from setpoint.server.server import SERVICES, ApiServer, Authorization
from setpoint.testing.kube import free_ports, kubeconfig_of

T = TypeVar("T")

_GRACE = 1.0  # seconds that requests under way have when the server is stopped
_PORT_ATTEMPTS = 5


class EmbeddedControlPlane:
    """An API server of one's own, as a context manager, plain or async; everything is kept in memory.

    ``controllers`` names those to run (``setpoint.builtin.CONTROLLERS``; None: all).  ``service_range`` is
    where Services get their addresses.  ``authorization``, ``token_file`` and ``services`` are
    ``ApiServer``'s.

    Attributes that describe the running server have a meaning only between ``start`` and ``stop``.
    """

    def __init__(
        self,
        *,
        controllers: Iterable[str] | None = (),
        service_range: str = SERVICES,
        authorization: Authorization = "rbac",
        token_file: str | Path | None = None,
        services: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> None:
        self.controllers = None if controllers is None else tuple(controllers)
        self.authorization: Authorization = authorization
        self.token_file = token_file
        self.services = dict(services or {})
        self.service_range = service_range
        self.timeout = timeout
        self._running: _Running | None = None  # there is one exactly while we are started

    def __repr__(self) -> str:
        return f"<EmbeddedControlPlane {f'at {self.url}' if self._running else 'stopped'}>"

    def start(self) -> None:
        if self._running is not None:
            raise RuntimeError(f"{self!r} is started already: stop it first")
        self.folder = Path(tempfile.mkdtemp(prefix="setpoint-"))  # mode 0700
        cluster = Cluster(
            controllers=self.controllers,
            service_range=self.service_range,
            authorization=self.authorization,
            token_file=self.token_file,
            services=self.services,
        )
        running = _Running(cluster, self.timeout)
        try:
            running.start()
            write_private(self.ca_file, running.server.secrets.authority.certificate_pem)
            write_private(self.kubeconfig, running.server.secrets.kubeconfig(running.url).encode())
            admin = _issued(running.server, "admin", (MASTERS,))
            write_private(self.admin_certificate, admin.certificate_pem)
            write_private(self.admin_key, admin.key_pem)
        except BaseException:
            running.stop()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._running = running

    def stop(self) -> None:
        """End the server and forget all data; stopping what is stopped does nothing."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    def stop_api_server(self) -> None:
        """Answer nobody any more: clients lose their connections, the data stays."""
        running = self._started
        running.do(running.close())

    def start_api_server(self) -> None:
        """Answer again, at the same address."""
        running = self._started
        running.do(running.listen())

    def compact(self) -> int:
        """Forget the past, now; the revision from which on it is remembered."""
        running = self._started
        store = running.server.registry.store
        running.do(store.compact(store.revision))
        return store.compacted

    # --- who may come in

    def client_certificate(self, common_name: str, groups: Iterable[str] = ()) -> Identity:
        """A new user; RBAC gives it nothing until a binding does."""
        return _issued(self._started.server, common_name, groups)

    def kubeconfig_for(self, user: Identity) -> str:
        """A kubeconfig, complete in itself, that makes its reader ``user``."""
        return kubeconfig_of(user, self.url, self.ca_pem)

    @property
    def url(self) -> str:
        return self._started.url

    @property
    def token(self) -> str:
        """The administrator's."""
        return self._started.server.token

    @property
    def ca_pem(self) -> bytes:
        return self._started.server.secrets.authority.certificate_pem

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def admin_certificate(self) -> Path:
        return self.folder / "admin.crt"

    @property
    def admin_key(self) -> Path:
        return self.folder / "admin.key"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, as a file."""
        return self.folder / "admin.kubeconfig"

    @property
    def kubeconfig_text(self) -> str:
        return self.kubeconfig.read_text()

    @property
    def _started(self) -> _Running:
        if self._running is None:
            raise RuntimeError(f"{self!r}: start it first")
        return self._running

    # --- with blocks

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)


def _issued(server: ApiServer, common_name: str, groups: Iterable[str]) -> Identity:
    return server.secrets.authority.issue(common_name, organizations=groups, client=True)


class _Running:
    """One cluster, and the thread in which it runs."""

    def __init__(self, cluster: Cluster, timeout: float) -> None:
        self._cluster = cluster
        self._timeout = timeout
        self._port = 0
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._run, name="setpoint-api-server", daemon=True)
        self._listening = AsyncExitStack()
        self._is_there: Future[None] = Future()
        self._ending = asyncio.Event()

    @property
    def server(self) -> ApiServer:
        return self._cluster.server

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._thread.start()
        self._is_there.result(self._timeout)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._port = free_ports(1)[0]
            try:
                self.do(self.listen())
            except OSError as error:  # somebody else was faster
                if error.errno != errno.EADDRINUSE or attempt == _PORT_ATTEMPTS:
                    raise
            else:
                return

    def stop(self) -> None:
        with suppress(RuntimeError):  # its loop is closed: it has ended by itself
            self.loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(self._timeout)

    def _run(self) -> None:
        with self._runner:  # which cancels what is left, and closes the loop
            self._runner.run(self._main())

    async def _main(self) -> None:
        try:
            async with self._cluster, self._listening:
                self._is_there.set_result(None)
                await self._ending.wait()
        except BaseException as error:
            if self._is_there.done():
                raise
            self._is_there.set_exception(error)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the server's loop do something, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(self._timeout)

    async def listen(self) -> None:
        await self._listening.enter_async_context(self.server.serve(port=self._port, grace=_GRACE))

    async def close(self) -> None:
        await self._listening.aclose()
