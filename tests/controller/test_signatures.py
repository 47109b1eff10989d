"""Functions with wrong parameters are refused when they are passed; the error shows the right signature."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import pytest

from setpoint import Client, Context, Manager, Operator, Request, SyncContext, builder, metadata_only, untyped
from setpoint.api import Object, PartialObjectMetadata
from setpoint.kube.core.v1 import ConfigMap, Pod
from tests.controller.cluster import Child, Cluster, Parent

if TYPE_CHECKING:
    from somewhere_else import Unknown  # type: ignore[import-not-found]


async def one(parent: Parent) -> None: ...


async def three(parent: Parent, ctx: Context, more: int) -> None: ...


async def keyword(parent: Parent, *, ctx: Context) -> None: ...


async def swapped(ctx: Context, parent: Parent) -> None: ...


async def of_another(child: Child, ctx: Context) -> None: ...


async def of_dicts(parent: dict[str, Any], ctx: Context) -> None: ...


async def async_with_sync_context(parent: Parent, ctx: SyncContext) -> None: ...


def plain_with_context(parent: Parent, ctx: Context) -> None: ...


@functools.wraps(of_another)
def hidden(*args: Any) -> Any: ...


WRONG: list[tuple[Callable[..., Any], str]] = [
    (one, r"^one\(parent: Parent\) cannot reconcile demo.setpoint.dev/v1 Parent: it is called with the obj"),
    (one, r"the object and the context; write `async def one\(parent: Parent, ctx: Context\)`"),
    (three, "it is called with the object and the context"),
    (keyword, "it is called with the object and the context"),
    (swapped, "its object will be a Parent, not a Context"),
    (of_another, "its object will be a Parent, not a Child"),
    (of_dicts, "its object will be a Parent, not a dict"),
    (async_with_sync_context, "its context will be a Context, not a SyncContext"),
    (plain_with_context, r"will be a SyncContext, not a Context; write `def plain_with_context\("),
    (functools.partial(three, more=1, parent=Parent()), "it is called with the object and the context"),
]  # fmt: skip


@pytest.mark.parametrize("register", ["controller", "finalizer"])
@pytest.mark.parametrize(("function", "said"), WRONG, ids=lambda each: getattr(each, "__name__", ""))
def test_a_reconciler_with_the_wrong_parameters_is_refused_at_its_decoration(
    function: Any, said: str, register: str
) -> None:
    operator = Operator("op")
    with pytest.raises(TypeError, match=said):
        getattr(operator, register)(Parent)(function)
    assert not operator.kinds, "nothing was registered"


async def right(parent: Parent, ctx: Context) -> None: ...


async def bare(parent, ctx): ...  # type: ignore[no-untyped-def]


async def with_default(parent: Parent, ctx: Context, more: int = 1) -> None: ...


async def of_any_object(obj: Object, ctx: Context | None) -> None: ...


async def of_anything(obj: Any, ctx: object) -> None: ...


async def with_an_unknown_name(obj: Unknown, ctx: Unknown) -> None: ...


async def generates(parent: Parent, ctx: Context) -> AsyncIterator[Child]:
    yield Child()


def generates_plainly(parent: Parent, ctx: SyncContext) -> Iterator[Child]:
    yield Child()


async def variadic(*args: Any) -> None: ...


class Named(Protocol):
    @property
    def kind(self) -> str: ...


async def of_a_protocol(obj: Named, ctx: Context) -> None: ...


class CallMe:
    async def __call__(self, parent: Parent, ctx: Context) -> None: ...

    async def method(self, parent: Parent, ctx: Context) -> None: ...


RIGHT: list[Callable[..., Any]] = [
    right,
    bare,
    with_default,
    of_any_object,
    of_anything,
    with_an_unknown_name,
    generates,
    generates_plainly,
    variadic,
    of_a_protocol,
    CallMe(),
    CallMe().method,
    functools.partial(three, more=1),
    lambda *_: None,
]


@pytest.mark.parametrize("function", RIGHT, ids=lambda each: getattr(each, "__name__", "object"))
def test_a_reconciler_that_can_be_called_passes(function: Any) -> None:
    Operator("op").controller(Parent)(function)
    Operator("op").finalizer(Parent)(function)


class Fields(TypedDict):
    kind: str


def test_the_other_forms_of_a_kind_are_compared_with_what_is_passed() -> None:
    async def of_fields(obj: Fields, ctx: Context) -> None: ...

    async def of_metadata(obj: PartialObjectMetadata, ctx: Context) -> None: ...

    for_dicts = Operator("op").controller(untyped("v1", "Node"))
    for_dicts(of_dicts)
    for_dicts = Operator("op").controller(untyped("v1", "Node"))
    for_dicts(of_fields)  # type: ignore[arg-type]
    Operator("op").controller(metadata_only(Parent))(of_metadata)
    with pytest.raises(TypeError, match=r"not a Parent; write `async def right\(obj: dict\[str"):
        Operator("op").controller(untyped("v1", "Node"))(right)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="will be a PartialObjectMetadata, not a Parent"):
        Operator("op").controller(metadata_only(Parent))(right)  # type: ignore[arg-type]


def no_parameter() -> list[Request]:
    return []


def of_pods(pod: Pod) -> list[Request]:
    return []


def plain_with_client(settings: ConfigMap, client: Client) -> list[Request]:
    return []


async def with_client(settings: ConfigMap, client: Client) -> list[Request]:
    return []


def of_settings(settings: ConfigMap) -> list[Request]:
    return []


@pytest.mark.parametrize(
    ("mapper", "said"),
    [
        (
            no_parameter,
            r"^no_parameter\(\) cannot map v1 ConfigMap: it is called with the object; write `def ",
        ),
        (of_pods, "its object will be a ConfigMap, not a Pod"),
        (
            plain_with_client,
            r"it takes a client, .*`async def plain_with_client\(configmap: ConfigMap, client",
        ),
        (lambda _, client: [client], "it takes a client"),
        ([], "give a function that returns Requests"),
    ],
)
def test_a_mapper_with_the_wrong_parameters_is_refused_where_it_is_declared(mapper: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Operator("op").controller(Parent, watches={ConfigMap: mapper})


async def test_a_builder_refuses_them_too() -> None:
    manager = Manager(client=Client(transport=Cluster()))
    with pytest.raises(TypeError, match="cannot map"):
        builder(manager).for_(Parent).watches(ConfigMap, no_parameter)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="it is called with the object"):
        builder(manager).for_(Parent).watches(ConfigMap, with_client)  # type: ignore[arg-type]
    builder(manager).for_(Parent).watches(ConfigMap, of_settings)


def test_mappers_that_can_be_called_pass() -> None:
    Operator("op").controller(Parent, watches={ConfigMap: of_settings, Pod: lambda _: []})
    Operator("op").controller(Parent, watches={ConfigMap: with_client})
