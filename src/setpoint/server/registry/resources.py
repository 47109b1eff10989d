"""What is served: a ``Resource`` is a kind at one version, with the strategy that treats its objects.

Decides: what a strategy may decide.  The flow through it (decode → default → admit → validate → store) is
``flow.py``'s; the strategies are ``builtins.py``'s and ``crd/``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from setpoint.server.registry.types import Type
from setpoint.server.statuses import FieldError, qualified

Object = dict[str, Any]


class Column(NamedTuple):
    """A column of ``kubectl get``."""

    name: str
    type: str
    format: str = ""
    description: str = ""
    priority: int = 0
    json_path: str = ""  # of a custom kind


_CONNECTIONS = frozenset({"attach", "exec", "portforward", "proxy"})


@dataclass(frozen=True, slots=True)
class Subresource:
    """What lies below an object: ``status``, ``scale``, …"""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""  # of the kind, where it is not the resource's own
    version: str = ""

    @property
    def is_connection(self) -> bool:
        """Whether it leads to what runs: it is admitted as CONNECT, by whatever method it is asked for."""
        return self.name in _CONNECTIONS


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """A kind at one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    type: Type = field(repr=False)
    strategy: Strategy = field(repr=False)
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    columns: tuple[Column, ...] = field(default=(), repr=False)
    is_custom: bool = False
    stored_as: str = ""  # the store's name for it, where another version or group shares it
    since: int = (
        0  # the revision from which objects are stored as this schema has them; older ones are revived
    )
    deprecation: str = ""  # the warning that every request of this version gets
    family: Family | None = field(default=None, repr=False)  # of a kind that may have several versions

    # Made of the above, and asked for in every request.
    api_version: str = field(init=False, repr=False)
    qualified: str = field(init=False, repr=False)  # ``deployments.apps``, as messages name it
    stored: str = field(init=False, repr=False)  # the store's name for it
    head: bytes = field(init=False, repr=False)  # how the bytes of its objects begin

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        full = qualified(self.plural, self.group)
        head = f'{{"kind":"{self.kind}","apiVersion":"{api_version}",'
        for name, value in (
            ("api_version", api_version),
            ("qualified", full),
            ("stored", self.stored_as or full),
            ("head", head.encode()),
        ):
            object.__setattr__(self, name, value)

    def subresource(self, name: str) -> Subresource | None:
        return next((one for one in self.subresources if one.name == name), None)


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """The versions of a kind, served or not; objects of a custom one are stored in one of them."""

    storage: str  # the apiVersion of that one; none where objects are stored as they are written
    members: Mapping[str, Resource] = field(repr=False)  # by apiVersion
    webhook: Mapping[str, Any] | None = field(default=None, repr=False)  # that converts between them


class Decoded(NamedTuple):
    """An object that was read from a request's body, and what the reader noticed."""

    object: Object
    unknown: list[
        str
    ]  # texts as fieldValidation shows them: unknown field "spec.foo", duplicate field "data"


NameRule = Literal["subdomain", "label", "label-1035", "path segment"]


def _nothing() -> None:
    """Nothing was reserved."""


class Reservation(NamedTuple):
    """Something only one object may have, held while a write is under way: one of the two is called."""

    undo: Callable[[], None] = _nothing  # the write failed
    settle: Callable[[], None] = _nothing  # it is stored: what the old state had and the new has not is free


class Strategy(Protocol):
    """How objects of one kind are treated.  Everything works on plain JSON; nothing here waits or stores.

    A method that changes an object changes it in place.
    """

    # Decisions that are one word.
    allows_unconditional_update: bool
    allows_create_on_update: bool
    returns_deleted: bool  # DELETE answers with the object, not with a Status
    has_generation: bool
    default_policy: str  # of deletion: "Background", or "Orphan"
    orphan_warnings: tuple[str, ...]  # said where that policy was not asked for
    is_virtual: bool  # nothing is stored: creating one is a question
    name_rule: NameRule

    def conform(self, obj: Object) -> Decoded:
        """Only what its type has: unknown fields are dropped and named, wrong types refused."""

    def default(self, obj: Object) -> None:
        """Fill in what was left out."""

    def prepare_create(self, obj: Object) -> None:
        """Wipe what a creator may not set (status), set what the kind sets itself."""

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        """Keep from ``old`` what this request may not change, decide the generation."""

    def validate_create(self, obj: Object) -> list[FieldError]: ...

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[FieldError]:
        """What is wrong with an object; with what is excused, since it was so before."""

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        """What a good server says about an object that it takes."""

    def revive(self, obj: Object) -> Object:
        """An object that was stored in this version, under another schema, as the present one has it."""

    def adopt(self, obj: Object) -> Object:
        """An object of another version of the kind, with what this one has of it; nothing is filled in."""

    def emit(self, obj: Object) -> Object:
        """The object as it is stored and answered: empty values written or left out as Go would."""

    def reserve(self, obj: Object, old: Object | None) -> Reservation:
        """Take what only one object may have (an address, a port), writing it into ``obj``."""

    def release(self, obj: Object) -> Reservation:
        """What an object has that goes: free once it is gone."""

    def prepare_delete(self, obj: Object) -> None:
        """What a deletion does to the object before anything else: a finalizer of the server's own."""

    def fields(self, obj: Object) -> dict[str, str]:
        """What field selectors may name, beside metadata.name and metadata.namespace."""

    def selectable_fields(self) -> Sequence[str]:
        """The names of those."""


class PlainStrategy:
    """What most kinds do; strategies begin from it."""

    allows_unconditional_update: bool = True
    allows_create_on_update: bool = False
    returns_deleted: bool = False
    has_generation: bool = False
    default_policy: str = "Background"
    orphan_warnings: tuple[str, ...] = ()
    is_virtual: bool = False
    name_rule: NameRule = "subdomain"

    def warnings(self, obj: Object, old: Object | None) -> list[str]:  # noqa: ARG002
        return []

    def reserve(self, obj: Object, old: Object | None) -> Reservation:  # noqa: ARG002
        return Reservation()

    def release(self, obj: Object) -> Reservation:  # noqa: ARG002
        return Reservation()

    def prepare_delete(self, obj: Object) -> None: ...

    def revive(self, obj: Object) -> Object:
        return obj

    def adopt(self, obj: Object) -> Object:
        return obj

    def fields(self, obj: Object) -> dict[str, str]:  # noqa: ARG002
        return {}

    def selectable_fields(self) -> Sequence[str]:
        return ()
