"""What an author writes: kinds, and functions that bring the world to what their objects ask for.

    operator = Operator("webapp-operator")

    @operator.controller(WebApp, owns=[Deployment, Service])
    async def reconcile(webapp: WebApp, ctx: Context) -> None: ...

    @operator.finalizer(WebApp)
    async def clean_up(webapp: WebApp, ctx: Context) -> None: ...

Both functions may be ``async`` or plain, and a reconciler may declare children (``yield`` or return them).
An operator only describes; it runs when it is added to a manager.  The longhand of one controller::

    builder(manager).named("webapp").for_(WebApp).owns(Deployment).owns(Service).complete(
        Authored(means, WebApp, reconcile, finalizer=…, owned=[Deployment, Service])
    )

where ``Authored`` is a Reconciler (``controller/authored.py`` says what it does around each call), and
``means`` are the manager's client and metrics, the operator's field manager, and a recorder of Events.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar, Unpack, cast, overload

from setpoint.api.crd import CustomResource, crd_of
from setpoint.api.forms import Form, form_of
from setpoint.api.keywords import check_keywords
from setpoint.api.names import GroupVersionKind
from setpoint.client.client import Client
from setpoint.controller.authored import Authored, Finalizer, Function
from setpoint.controller.builder import Builder, ControllerOptions, WatchOptions, builder
from setpoint.controller.children import Child, Ready
from setpoint.controller.context import Context, Means
from setpoint.controller.controller import Controller
from setpoint.controller.finalizer import check_name
from setpoint.controller.generations import GenerationTracker
from setpoint.controller.mapping import Mapped
from setpoint.controller.permissions import as_rules, needed
from setpoint.controller.recorder import Recorder
from setpoint.controller.result import Request, Result
from setpoint.controller.signatures import check_mapper, check_reconciler, takes_two
from setpoint.controller.sync_context import SyncContext
from setpoint.manager.manager import Manager
from setpoint.net.transport import Request as HttpRequest
from setpoint.net.transport import Response

T = TypeVar("T")
Answer: TypeAlias = Result | Sequence[Child | Ready | Result] | None
A = TypeVar("A", bound=Awaitable[Answer] | AsyncIterable[Child | Ready | Result])
S = TypeVar("S", bound=Result | Iterable[Child | Ready | Result] | None)
Kind: TypeAlias = type[Any] | Form[Any]
Mapper: TypeAlias = Callable[[Any], Mapped] | Callable[[Any, Client], Awaitable[Iterable[Request]]]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Options(ControllerOptions, WatchOptions, total=False):
    """How a controller works, and which objects of its kind it is for; see the builder."""


class Decorator(Generic[T]):
    """Takes an author's function, and gives it back as it was."""

    def __init__(self, kind: type[T] | Form[T], take: Callable[[Function], None]) -> None:
        self._kind = kind
        self._take = take

    @overload
    def __call__(self, function: Callable[[T, Context], A], /) -> Callable[[T, Context], A]: ...

    @overload
    def __call__(self, function: Callable[[T, SyncContext], S], /) -> Callable[[T, SyncContext], S]: ...

    def __call__(self, function: Any, /) -> Any:
        if isinstance(function, type) or not callable(function):
            raise TypeError(f"{function!r} cannot reconcile: give a function of an object and a context")
        check_reconciler(function, self._kind)
        self._take(function)
        return function


@dataclass
class _Controller:
    """One controller, as it was described."""

    kind: Kind
    name: str
    function: Function | None
    owns: tuple[Kind, ...] = ()
    watches: Mapping[Kind, Mapper] = field(default_factory=dict)
    every: float | None = None
    verify: bool | None = None
    build: Callable[[Builder, Manager], object] | None = None
    options: Options = field(default_factory=Options)

    @property
    def gvk(self) -> GroupVersionKind:
        return form_of(self.kind).gvk


class Operator:
    """The controllers of one program.

    ``name`` is the field manager of all that it applies, and part of the names of its finalizers.
    """

    def __init__(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} cannot name an operator: use at most 63 of a-z, 0-9 and '-', as in webapp-operator"
            )
        self.name = name
        self._controllers: list[_Controller] = []
        self._finalizers: dict[GroupVersionKind, tuple[Kind, Finalizer]] = {}

    def __repr__(self) -> str:
        kinds = ", ".join(dict.fromkeys(str(gvk) for gvk in self._kinds()))
        return f"<Operator {self.name} of {kinds or 'nothing yet'}>"

    # Describing.

    def controller(
        self,
        kind: type[T] | Form[T],
        *,
        owns: Iterable[Kind] = (),
        watches: Mapping[Kind, Mapper] | None = None,
        name: str = "",
        every: float | None = None,
        verify: bool | None = None,
        build: Callable[[Builder, Manager], object] | None = None,
        **options: Unpack[Options],
    ) -> Decorator[T]:
        """Have a function called for every object of a kind, whenever something about it may have changed.

        ``owns`` are the kinds of its children: a change of one brings up the object it belongs to.
        ``watches`` maps objects of other kinds to those that they concern: ``{ConfigMap: users_of}``, where
        ``users_of`` takes the object (and the client, if it is ``async`` and takes two) and gives Requests.
        ``every`` so many seconds all objects are looked at anyway.  With ``verify`` each reconcile begins
        with the object as the server has it now and not as the cache does, for one more request, so that an
        old view makes nothing outside that nobody takes away again.  Unless said, it is on where the kind has
        a clean-up, and off elsewhere.

        Of the options, ``workers``, ``timeout``, ``backoff`` and the like are the controller's; ``when``,
        ``labels``, ``namespaces`` and the like say which objects of the kind it is for.  ``build`` is given
        the builder, for whatever else it can do.
        """
        form = form_of(kind)
        check_keywords("Operator.controller", options, _options())
        for watched, mapper in (watches or {}).items():
            check_mapper(mapper, watched, client=True)

        def take(function: Function) -> None:
            self._add(
                _Controller(
                    kind,
                    name or form.gvk.kind.lower(),
                    function,
                    tuple(owns),
                    dict(watches or {}),
                    every,
                    verify,
                    build,
                    options,
                )
            )

        return Decorator(kind, take)

    def finalizer(self, kind: type[T] | Form[T], *, name: str = "") -> Decorator[T]:
        """Have a function called before an object of a kind goes: as often as it takes, until it returns.

        The object is held by a finalizer, which is added before the first reconcile and removed after the
        function has returned None (or ``Result()``).  ``name`` is what the server knows the finalizer by;
        objects keep it, so do not change it while there are any.
        """
        gvk = form_of(kind).gvk
        called = check_name(name or f"{self.name}.setpoint.dev/cleanup")

        def take(function: Function) -> None:
            if gvk in self._finalizers:
                raise ValueError(f"{self.name} has a finalizer for {gvk} already: have it do both")
            self._check_finalizer(gvk, [each.name for each in self._controllers if each.gvk == gvk])
            self._finalizers[gvk] = (kind, Finalizer(called, function))

        return Decorator(kind, take)

    @property
    def kinds(self) -> list[GroupVersionKind]:
        """What it has controllers and clean-ups for."""
        return list(dict.fromkeys(self._kinds()))

    def crds(self) -> list[dict[str, Any]]:
        """The CustomResourceDefinitions of its kinds, in wire form; of those that are Python classes."""
        return crds_of([self])

    def classes(self) -> list[Kind]:
        """The kinds that it has controllers and clean-ups for, as they were given."""
        return [each.kind for each in self._controllers] + [kind for kind, _ in self._finalizers.values()]

    def rules(self) -> list[dict[str, Any]]:
        """The RBAC rules that what it declares needs, as the ``rules`` of a ClusterRole, in wire form.

        To know what ``build`` adds, it calls that function, with a manager that never runs.  What a
        reconciler asks for besides, through ``ctx.client``, is to be added; ``least_privilege`` of
        ``setpoint.testing`` tells what is missing.
        """
        manager = Manager(client=Client(transport=_send_nothing), name=self.name)
        described = [*self._controllers, *self._only_finalizers()]
        return as_rules(
            permission
            for each, built in [(each, _build(each, manager)) for each in described]
            for permission in needed(
                form_of(each.kind),
                owns=built.owned,
                watches=built.watched,
                cleans_up=each.gvk in self._finalizers,
            )
        )

    # Running.

    def add_to(self, manager: Manager) -> list[Controller]:
        """Have a manager run all of it."""
        controllers = [*self._controllers, *self._only_finalizers()]
        if not controllers:
            raise ValueError(
                f"{self.name} has no controller: decorate a function with @operator.controller(Kind)"
            )
        recorder = manager.add(Recorder(manager.plain_client, utc=manager.clock.utc))
        trackers: dict[tuple[str, str], list[GenerationTracker]] = {}  # by group and kind
        return [
            self._add_controller(
                manager, recorder, each, trackers.setdefault((each.gvk.group, each.gvk.kind), [])
            )
            for each in controllers
        ]

    def _add_controller(
        self,
        manager: Manager,
        recorder: Recorder,
        described: _Controller,
        trackers: list[GenerationTracker],
    ) -> Controller:
        tracker = GenerationTracker(trackers) if self._shares_kind(described) else None
        means = Means(
            controller=described.name,
            client=manager.client,
            metrics=manager.metrics.controller(described.name, workers=described.options.get("workers", 1)),
            field_manager=self.name,
            label=label_value(self.name, described.name),
            recorder=recorder,
            utc=manager.clock.utc,
            generations=tracker,
        )
        finalizer = self._finalizers.get(described.gvk)
        if finalizer is not None and type(form_of(finalizer[0])) is not type(form_of(described.kind)):
            raise ValueError(f"{described.gvk} is reconciled in one form and cleaned up in another: use one")
        authored = Authored(
            means,
            form_of(described.kind),
            described.function,
            finalizer=None if finalizer is None else finalizer[1],
            owned=[form_of(kind) for kind in described.owns],
            verify=described.verify,
        )
        controller = _build(described, manager).complete(authored)
        if tracker is not None and controller.primary is not None:
            controller.primary.on_change = tracker.on_change
            tracker.connect(selects=controller.primary.declaration.selects, reconcile=controller.look_at)
        return controller

    def _shares_kind(self, described: _Controller) -> bool:
        """Whether the kind, in any version, has another controller that reconciles it."""
        same_kind = [
            each
            for each in self._controllers
            if (each.gvk.group, each.gvk.kind) == (described.gvk.group, described.gvk.kind)
        ]
        return described in same_kind and len(same_kind) > 1

    def _add(self, described: _Controller) -> None:
        for other in self._controllers:
            if other.name == described.name:
                raise ValueError(
                    f"{self.name} has a controller {other.name!r} already: give this one another, with name=…"
                )
        if (gvk := described.gvk) in self._finalizers:
            same_kind = [each.name for each in self._controllers if each.gvk == gvk]
            self._check_finalizer(gvk, [*same_kind, described.name])
        self._controllers.append(described)

    def _check_finalizer(self, gvk: GroupVersionKind, controllers: list[str]) -> None:
        """Refuse a finalizer beside several controllers.

        A clean-up must not run while another controller still makes what it takes away: within one controller
        the queue sees to that, across several nothing does.
        """
        if len(controllers) > 1:
            raise ValueError(
                f"{gvk} has a finalizer and the controllers {' and '.join(controllers)}: which of them is to "
                "clean up? put them into one, or into two operators"
            )

    def _only_finalizers(self) -> list[_Controller]:
        """Kinds that have a clean-up; where that is all they have, a controller is needed for it."""
        return [
            _Controller(kind, gvk.kind.lower(), None)
            for gvk, (kind, _) in self._finalizers.items()
            if all(each.gvk != gvk for each in self._controllers)
        ]

    def _kinds(self) -> list[GroupVersionKind]:
        return [each.gvk for each in self._controllers] + list(self._finalizers)


def _build(described: _Controller, manager: Manager) -> Builder:
    """The controller, as far as a builder knows it."""
    watching = {name: described.options[name] for name in _watch_options() & described.options.keys()}  # type: ignore[literal-required]
    working = {name: value for name, value in described.options.items() if name not in watching}
    built = builder(manager).named(described.name).for_(described.kind, **cast("WatchOptions", watching))
    for kind in described.owns:
        built.owns(kind)
    for kind, mapper in described.watches.items():
        built.watches(kind, _with_client(mapper, manager))
    if described.every is not None:
        built.every(described.every)
    if described.build is not None:
        described.build(built, manager)
    return built.with_options(**cast("ControllerOptions", working))


async def _send_nothing(request: HttpRequest) -> Response:
    raise RuntimeError(f"{request.method} {request.target}: this manager only describes, and never runs")


def crds_of(operators: Iterable[Operator]) -> list[dict[str, Any]]:
    """The CustomResourceDefinitions of several operators: one for each kind, with all of its versions."""
    versions: dict[tuple[str, str], list[type[CustomResource]]] = {}
    for kind in dict.fromkeys(kind for operator in operators for kind in operator.classes()):
        if isinstance(kind, type) and issubclass(kind, CustomResource):
            versions.setdefault((kind.gvk.group, kind.gvk.kind), []).append(kind)
    return [crd_of(*classes) for classes in versions.values()]


def label_value(operator: str, controller: str) -> str:
    """What is written on all that a controller applies; at most 63 characters, and not another's."""
    value = f"{operator}.{controller}"
    if len(value) <= 63:
        return value
    return f"{value[:50]}.{hashlib.blake2b(value.encode(), digest_size=6).hexdigest()}"


def _options() -> list[str]:
    """What ``Operator.controller`` takes."""
    named = inspect.signature(Operator.controller).parameters.values()
    return [
        *(each.name for each in named if each.kind is each.KEYWORD_ONLY),
        *sorted(Options.__optional_keys__),
    ]


def _watch_options() -> frozenset[str]:
    return frozenset(WatchOptions.__optional_keys__)


def _with_client(mapper: Mapper, manager: Manager) -> Callable[[Any], Mapped]:
    """The mapper; one that takes two arguments is given the client, whose reads are the cache's."""
    if not takes_two(mapper):
        return cast("Callable[[Any], Mapped]", mapper)
    with_client = cast("Callable[[Any, Client], Awaitable[Iterable[Request]]]", mapper)

    async def ask(obj: Any) -> Iterable[Request]:
        return await with_client(obj, manager.client)

    return ask
