"""A controller in one sentence; every word states its longhand.

    builder(manager).for_(WebApp).owns(Deployment).owns(Service).complete(reconciler)

is

    controller = Controller(
        "webapp",
        reconciler,
        [
            Kind(manager.cache, WebApp, to_itself),
            Kind(manager.cache, Deployment, to_owner(WebApp)),
            Kind(manager.cache, Service, to_owner(WebApp)),
        ],
        cache=manager.cache,
        metrics=manager.metrics,
    )
    manager.add(controller)

Nothing is declared, and nothing starts, before ``build`` or ``complete``.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack

from setpoint.api.forms import Form, form_of
from setpoint.api.keywords import check_keywords
from setpoint.cache.cache import Cache
from setpoint.controller.controller import Controller
from setpoint.controller.mapping import Mapped, Mapper, to_itself, to_keys, to_owner
from setpoint.controller.predicates import Predicate, anything
from setpoint.controller.result import Reconciler, Request, Result
from setpoint.controller.signatures import check_mapper
from setpoint.controller.sources import Kind, KindOptions, Source, Stream, Timer
from setpoint.metrics import Metrics
from setpoint.queue.workqueue import LOW_PRIORITY

T = TypeVar("T")
Keys: TypeAlias = Callable[[], Iterable[Request] | Awaitable[Iterable[Request]]]


class Manager(Protocol):
    """What is needed of a manager."""

    @property
    def cache(self) -> Cache: ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def is_leading(self) -> bool:
        """Whether what needs leadership may start just now; True where there is no election."""

    def add(self, runnable: Controller, /) -> object:
        """Run it when its time comes."""


class WatchOptions(KindOptions, total=False):
    """Which changes of a kind matter, how urgent they are, and which objects the cache keeps for it."""

    when: Predicate
    priority: int


class ControllerOptions(TypedDict, total=False):
    """How a controller works; see ``Controller``."""

    workers: int
    timeout: float | None
    grace: float
    backoff: Callable[[int], float] | None
    sync_timeout: float
    needs_leadership: bool


def builder(manager: Manager) -> Builder:
    """Begin to describe a controller of this manager."""
    return Builder(manager)


class Builder:
    """A controller being described."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._name = ""
        self._form: Form[Any] | None = None
        self._filter = anything
        self._options: ControllerOptions = {}
        self._sources: list[Callable[[], Source]] = []
        self._primary: Kind | None = None
        self.owned: list[Form[Any]] = []  # the kinds given to owns()
        self.watched: list[Form[Any]] = []  # those given to watches(), and of sources given to reads()

    def __repr__(self) -> str:
        return f"<Builder of {self._name or self._form or 'nothing yet'}, {len(self._sources)} sources>"

    def named(self, name: str) -> Self:
        """``Controller(name, …)``; unless it is said, the kind in small letters."""
        self._name = name
        return self

    def for_(self, kind: type[Any] | Form[Any], **options: Unpack[WatchOptions]) -> Self:
        """``Kind(manager.cache, kind, to_itself)``: the kind whose objects are reconciled, once."""
        check_keywords("Builder.for_", options, WatchOptions.__optional_keys__)
        if self._form is not None:
            raise ValueError(
                f"this controller is for {self._form.gvk} already: use watches() for {form_of(kind).gvk}"
            )
        self._form = form_of(kind)

        def make() -> Source:
            self._primary = self._kind(kind, to_itself, options)
            return self._primary

        self._sources.insert(0, make)
        return self

    def owns(
        self, kind: type[Any] | Form[Any], *, any_owner: bool = False, **options: Unpack[WatchOptions]
    ) -> Self:
        """``Kind(manager.cache, kind, to_owner(the kind of for_, any_owner=…))``.

        A change of an object leads to its controller, by owner reference; with ``any_owner``, to each owner.
        """
        check_keywords("Builder.owns", options, ["any_owner", *WatchOptions.__optional_keys__])
        self._sources.append(
            lambda: self._kind(kind, to_owner(self._owner(kind), any_owner=any_owner), options)
        )
        self.owned.append(form_of(kind))
        return self

    def watches(
        self, kind: type[T] | Form[T], mapper: Callable[[T], Mapped], **options: Unpack[WatchOptions]
    ) -> Self:
        """``Kind(manager.cache, kind, to_keys(kind, mapper))``.

        The mapper says which requests an object concerns; it is asked of the object as it was and as it is,
        and may be ``async``.
        """
        check_keywords("Builder.watches", options, WatchOptions.__optional_keys__)
        check_mapper(mapper, kind)
        self._sources.append(lambda: self._kind(kind, to_keys(kind, mapper), options))
        self.watched.append(form_of(kind))
        return self

    def streams(self, function: Callable[[], AsyncIterable[Request]], *, priority: int = 0) -> Self:
        """``Stream(function)``: keys from an async generator of the author's own."""
        return self.reads(Stream(function, priority=priority))

    def every(self, seconds: float, keys: Keys | None = None, *, priority: int = LOW_PRIORITY) -> Self:
        """``Timer(seconds, keys)``; without ``keys``, those of all objects of the kind of ``for_``."""
        self._sources.append(lambda: Timer(seconds, keys or self._primary_keys(), priority=priority))
        return self

    def reads(self, source: Source) -> Self:
        """Any other source: a ``Channel``, or one of the author's own.  ``when`` does not reach it."""
        self._sources.append(lambda: source)
        if isinstance(source, Kind):
            self.watched.append(source.form)
        return self

    def when(self, predicate: Predicate) -> Self:
        """Only these changes matter, of every kind: ``Kind(…, when=predicate & its own)``."""
        self._filter = _both(self._filter, predicate)
        return self

    def with_options(self, **options: Unpack[ControllerOptions]) -> Self:
        """``Controller(…, workers=…, timeout=…)``."""
        check_keywords("Builder.with_options", options, ControllerOptions.__optional_keys__)
        self._options |= options
        return self

    def build(self, reconciler: Reconciler | Reconcile) -> Controller:
        """The controller, which is yet to be given to the manager."""
        name = self._name or (self._form.gvk.kind.lower() if self._form is not None else "")
        if not name or not self._sources:
            raise ValueError("a controller is for something: for_(Kind), or named(…) and a source")
        needs_leadership = self._options.get("needs_leadership", True)
        sources: list[Source] = []
        try:
            for make in self._sources:
                sources.append(make())  # noqa: PERF401 - those made are closed if a later one fails
            return Controller(
                name,
                as_reconciler(reconciler),
                sources,
                cache=self._manager.cache,
                metrics=self._manager.metrics,
                may_start=(lambda: self._manager.is_leading) if needs_leadership else (lambda: True),
                **self._options,
            )
        except BaseException:
            for source in sources:
                source.close()
            raise

    def complete(self, reconciler: Reconciler | Reconcile) -> Controller:
        """``manager.add(build(reconciler))``, and the controller."""
        controller = self.build(reconciler)
        self._manager.add(controller)
        return controller

    def _kind(self, kind: type[Any] | Form[Any], mapper: Mapper, options: WatchOptions) -> Kind:
        when = _both(self._filter, options.get("when", anything))
        filtered: WatchOptions = {**options, "when": when}
        return Kind(self._manager.cache, kind, mapper, **filtered)

    def _owner(self, kind: type[Any] | Form[Any]) -> Form[Any]:
        if self._form is None:
            raise ValueError(f"who owns {form_of(kind).gvk}? say for_(Kind) too")
        return self._form

    def _primary_keys(self) -> Keys:
        if self._primary is None:
            raise ValueError("every() of which objects? say for_(Kind) too, or give keys")
        return self._primary.keys


def _both(one: Predicate, other: Predicate) -> Predicate:
    return other if one is anything else one if other is anything else one & other


Reconcile: TypeAlias = Callable[[Request], Awaitable[Result | None]]


@dataclass(frozen=True, slots=True)
class _Function:
    """A function in the place of a reconciler."""

    function: Reconcile

    async def reconcile(self, request: Request, /) -> Result | None:
        return await self.function(request)


def as_reconciler(given: Reconciler | Reconcile) -> Reconciler:
    """A reconciler; a function stands for one that has only this to do."""
    if isinstance(given, type):
        raise TypeError(f"{given.__name__} is a class: give an object of it, {given.__name__}(…)")
    if hasattr(given, "reconcile"):
        return given
    if callable(given):
        return _Function(given)
    raise TypeError(f"{given!r} cannot reconcile: give an object with `async def reconcile(self, request)`")
