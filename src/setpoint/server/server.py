"""An API server, put together: a store, the registry on it, the app on that; in memory, or on a port.

    async with ApiServer() as server:
        client = Client(transport=server.transport())  # in this process, without a socket

    async with ApiServer("data") as server, server.serve(port=6443) as served:
        served.kubeconfig  # for kubectl and everyone else

Promises:

1. Inside the ``async with`` the server is whole: the objects that every cluster has are there, and what
   custom definitions serve is served.
2. Leaving it ends everything in order: streams end, requests under way finish, the store is closed.
3. Nothing is shared between servers: any number of them run in one process.
4. In memory, with a clock that is turned by hand, the same requests give the same answers.

Fed by ``cli/up.py`` and by tests.
"""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, get_args

import msgspec

from setpoint.clock import Clock, SystemClock
from setpoint.net import listen
from setpoint.net.loopback import Loopback
from setpoint.server.access import Access
from setpoint.server.admission.admission import Admission
from setpoint.server.admission.plugins import PLUGINS, Plugin
from setpoint.server.authentication.certificates import Certificates
from setpoint.server.authentication.tokens import BearerTokens, read_token_file
from setpoint.server.authorization import defaults
from setpoint.server.authorization.authorizer import AlwaysAllow, Authorizer
from setpoint.server.authorization.rbac import Rbac
from setpoint.server.http.app import MAX_BODY, Api
from setpoint.server.http.authentication import Authenticator
from setpoint.server.http.health import Health
from setpoint.server.http.hosts import Hosts
from setpoint.server.http.inflight import Limits
from setpoint.server.registry.allocation import Allocations
from setpoint.server.registry.bootstrap import bootstrap, establish_range
from setpoint.server.registry.builtins import builtin_resources
from setpoint.server.registry.crds import Definitions
from setpoint.server.registry.metadata import Names, timestamp
from setpoint.server.registry.registry import Registry
from setpoint.server.registry.requests import ADMIN
from setpoint.server.registry.served import Resources
from setpoint.server.secrets import NAMES, Secrets
from setpoint.server.storage.memory import MemoryStore
from setpoint.server.storage.protocol import Store
from setpoint.server.storage.sqlite import SqliteStore

if TYPE_CHECKING:
    from setpoint.server.authentication.accounts import Accounts

SERVICES: Final = "10.0.0.0/24"  # as kube-apiserver has it, unless told otherwise
Authorization = Literal["rbac", "always-allow"]
AUTHORIZATIONS: Final = get_args(Authorization)
_SLOWEST = 30.0  # seconds that a request may take to arrive
_LONGEST_IDLE = 90.0  # seconds that a connection is kept between two requests, as kube-apiserver does
_MOST_CONNECTIONS = 10_000


@dataclass(frozen=True, slots=True)
class Served:
    """A server on a port."""

    address: listen.Address
    kubeconfig: str

    @property
    def url(self) -> str:
        return str(self.address)


class ApiServer:
    """Kubernetes' API.  ``data`` is a directory to keep it in; without one it ends with the server.

    ``source`` is where names and uids come from: a seeded one gives the same twice.  ``service_range`` is
    where Services get their addresses from.  ``store``, in place of ``data``, is one that is open already; it
    is closed with the server.

    ``services`` says where the Services are that webhooks are behind: "namespace/name" (or
    "namespace/name:port") → "host:port".  ``admission`` names the built-in rules that writes go through;
    ServiceAccount is not among them unless told, since it refuses pods until somebody makes accounts.
    ``limits`` says how many requests may be under way, and for how long; kube-apiserver's, unless told.
    """

    registry: Registry
    app: Api

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        clock: Clock | None = None,
        token: str = "",
        source: random.Random | None = None,
        service_range: str = SERVICES,
        store: Store | None = None,
        authorization: Authorization = "rbac",
        token_file: str | Path | None = None,
        services: Mapping[str, str] | None = None,
        admission: Sequence[Plugin] = PLUGINS,
        limits: Limits | None = None,
    ) -> None:
        if authorization not in AUTHORIZATIONS:
            raise ValueError(f"authorization is one of {', '.join(AUTHORIZATIONS)}, not {authorization!r}")
        self._authorization = authorization
        self._services = dict(services or {})
        self._plugins = tuple(admission)
        self._limits = limits
        self._users = {} if token_file is None else read_token_file(token_file)
        self._store = store
        self._data = None if data is None else Path(data)
        self._clock = clock or SystemClock()
        self._given_token = token
        self._source = source
        self._service_range = service_range
        self._open = AsyncExitStack()

    def __repr__(self) -> str:
        return f"<ApiServer in {self._data or 'memory'}>"

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            store = self._store or (
                MemoryStore() if self._data is None else await SqliteStore.open(self._data)
            )
            stack.push_async_callback(store.close)
            allocations = Allocations(self._service_range, source=self._source)
            resources = Resources(builtin_resources(allocations))
            names = Names(self._source)
            access = self._access(store, names)
            admission = Admission(
                store,
                resources,
                names=names,
                now=lambda: timestamp(self._clock.utc()),
                authorizer=access.authorizer,
                services=self._services,
                plugins=self._plugins,
            )
            stack.push_async_callback(admission.close)
            self.registry = Registry(
                store, resources, clock=self._clock, names=names, access=access, admission=admission
            )
            allocations.load(msgspec.json.decode(one.data) for one in store.listed("services"))
            definitions = Definitions(self.registry)
            definitions.load()
            await bootstrap(self.registry)
            now = self.registry.now()
            await asyncio.gather(
                defaults.establish(store, uid=names.uid, now=now),
                establish_range(store, self._service_range, uid=names.uid, now=now),
            )
            definitions.start()
            stack.push_async_callback(definitions.stop)
            self.app = Api(
                self.registry,
                Authenticator(access.tokens, Certificates(self._clock), access.authorizer),
                health=Health({"storage": self.registry.store.trouble}),
                hosts=Hosts(NAMES),
                limits=self._limits,
            )
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.app.finish()
        finally:
            await self._open.aclose()

    def _access(self, store: Store, names: Names) -> Access:
        authorizer: Authorizer = Rbac(store) if self._authorization == "rbac" else AlwaysAllow()

        def accounts() -> Accounts:
            from setpoint.server.authentication.accounts import Accounts  # noqa: PLC0415 - many ask for none

            return Accounts(store, lambda: self.secrets.signing_key, clock=self._clock, jti=names.uid)

        return Access(authorizer, BearerTokens({**self._users, self.token: ADMIN}, accounts))

    @cached_property
    def secrets(self) -> Secrets:
        return Secrets(self._data, self._given_token)

    @cached_property
    def token(self) -> str:
        """The administrator's."""
        return self.secrets.token

    def transport(self, token: str | None = None) -> Loopback:
        """A way to ask this server from this process; as the administrator, unless another token is given.

        What asks for nothing in particular shows no credential: ``token=""``.
        """
        shown = self.token if token is None else token
        headers = {"Authorization": f"Bearer {shown}"} if shown else {}
        transport = Loopback(self.app, headers=headers, max_body=MAX_BODY, refuse=self.app.refuse)
        self._open.push_async_callback(transport.close)
        return transport

    @asynccontextmanager
    async def serve(
        self, host: str = "127.0.0.1", port: int = 0, *, grace: float = 5.0
    ) -> AsyncIterator[Served]:
        """Listen with TLS for the time of an ``async with`` block; port 0 takes a free one."""
        async with listen.serve(
            self.app,
            host=host,
            port=port,
            ssl_context=self.secrets.server_context([host]),
            grace=grace,
            max_body=MAX_BODY,
            most_body=self.app.most_body,
            slowest=_SLOWEST,
            longest_idle=_LONGEST_IDLE,
            most_connections=_most_connections(),
            refuse=self.app.refuse,
            leaving=self.app.end_watches,
        ) as address:
            yield Served(address, self.secrets.kubeconfig(str(address)))


def _most_connections() -> int:
    """As many as there are files to open, but for those that the server itself needs."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return min(_MOST_CONNECTIONS, max(files - 100, 50))
