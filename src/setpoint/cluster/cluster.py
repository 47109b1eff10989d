"""A cluster, put together: the API server, and the built-in controllers as clients of it in the same loop.

    async with Cluster() as cluster:
        await cluster.client.create(deployment)            # its pods will run

    async with Cluster("data") as cluster, cluster.serve(port=6443) as served:
        served.kubeconfig                                  # for kubectl and everyone else

Promises:

1. Inside the ``async with`` the server answers and the controllers work: their caches are synced.
2. The controllers meet the server as any client does, without a socket, with the administrator's credential.
3. If a controller's machinery fails, the block is cancelled and leaving it raises the error; what a
   reconciler raises is retried, as in any manager.
4. With no controllers there is an API server alone, and none of their code is read.

Driven by ``cli/up.py``, ``cli/dev.py``, ``cli/demo.py``, ``testing/embedded.py`` and tests.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from setpoint.clock import Clock
from setpoint.server.admission.plugins import PLUGINS
from setpoint.server.server import SERVICES, ApiServer, Authorization, Served

if TYPE_CHECKING:  # the API server alone needs no client, and must start without one
    from setpoint.client.client import Client

_NAME: Final = "setpoint-cluster"
_NODE: Final = "node-stand-in"
_ACCOUNTS: Final = "serviceaccount-controller"
# Those who give the server's certificate to others.
_PUBLISHERS: Final = frozenset(
    {"root-ca-certificate-publisher-controller", "serviceaccount-token-controller"}
)
_GRACE: Final = 5.0  # seconds that reconciles under way have when the cluster ends


class Cluster:
    """A control plane.  ``data`` is a directory to keep it in; without one it ends with the block.

    ``controllers`` names those to run (``setpoint.builtin.CONTROLLERS``): all, unless told.  ``clock``,
    ``token``, ``source``, ``service_range``, ``authorization``, ``token_file`` and ``services`` are the
    server's.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        controllers: Iterable[str] | None = None,
        clock: Clock | None = None,
        token: str = "",
        source: random.Random | None = None,
        service_range: str = SERVICES,
        authorization: Authorization = "rbac",
        token_file: str | Path | None = None,
        services: Mapping[str, str] | None = None,
    ) -> None:
        self._controllers = None if controllers is None else list(controllers)
        has_accounts = self._controllers is None or _ACCOUNTS in self._controllers
        self.server: Final = ApiServer(
            data,
            clock=clock,
            token=token,
            source=source,
            service_range=service_range,
            authorization=authorization,
            token_file=token_file,
            services=services,
            # It refuses pods until their namespace has a "default" account, which somebody has to make.
            admission=(*PLUGINS, "ServiceAccount") if has_accounts else PLUGINS,
        )
        self._clock = clock
        self._open = AsyncExitStack()

    def __repr__(self) -> str:
        return f"<Cluster of {self.server!r}>"

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.server)
            if self._controllers != []:
                await self._start(stack)
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.__aexit__(kind, error, trace)

    @cached_property
    def client(self) -> Client:
        """The administrator's, without a socket."""
        from setpoint.client.client import Client  # noqa: PLC0415 - promise 4

        return Client(transport=self.server.transport())

    def serve(
        self, host: str = "127.0.0.1", port: int = 0, *, grace: float = _GRACE
    ) -> AbstractAsyncContextManager[Served]:
        """Listen with TLS for the time of an ``async with`` block; port 0 takes a free one."""
        return self.server.serve(host, port, grace=grace)

    async def _start(self, stack: AsyncExitStack) -> None:
        from setpoint.builtin.controllers import ALL, add_controllers  # noqa: PLC0415 - promise 4
        from setpoint.builtin.node_logs import NodeLogs  # noqa: PLC0415
        from setpoint.client.client import Client  # noqa: PLC0415
        from setpoint.manager.manager import Manager  # noqa: PLC0415

        names = list(ALL) if self._controllers is None else self._controllers
        client = Client(transport=self.server.transport(), on_warning=_unheard)
        manager = Manager(client=client, name=_NAME, graceful_shutdown=_GRACE)
        is_given = not _PUBLISHERS.isdisjoint(names)
        pem = self.server.secrets.authority.certificate_pem.decode() if is_given else ""
        add_controllers(manager, names, clock=self._clock, root_ca=pem)
        if _NODE in names:
            self.server.app.logs = NodeLogs(manager.cache)
        await stack.enter_async_context(manager)


def _unheard(_text: str) -> None:
    """Endpoints are kept up although they are deprecated: there is nothing that anyone should do."""
