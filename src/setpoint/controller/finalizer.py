"""Clean up before an object goes: a finalizer holds it until that is done.

    expected flow                                        what the server keeps
    1. the object is made                                no finalizer
    2. its first reconcile: the finalizer is added       the finalizer: the object cannot go without us
    3. reconciles have effects, inside the cluster or outside
    4. somebody deletes it                               deletionTimestamp; it stays
    5. the clean-up runs, as often as it takes
    6. it succeeded: the finalizer is removed            the object goes, once all finalizers are gone

Promises:

1. The finalizer is added before the first reconcile runs, so nothing that a reconcile does is ever orphaned.
2. It is removed only after the clean-up succeeded.  A clean-up that raises, or asks to be looked at again, is
   run again, and so is one that was cut off: it must not mind.
3. Before the clean-up, the object is read from the server: it must be the same (uid) and on its way out.
4. The finalizers of others stay, also those that come and go meanwhile: every change is made to the version
   that was read (409: it is read again).

The deciding part is pure; ``authored.py`` calls the rest in this order.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from setpoint.api.forms import Form, form_of_object
from setpoint.api.patches import JsonPatch
from setpoint.client.client import Client
from setpoint.controller.owners import AnyObject, identity_of, in_metadata
from setpoint.errors import Conflict, NotFound

ObjectT = TypeVar("ObjectT", bound=AnyObject)

_TRIES = 5
_NAME = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*+"
    r"/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


def check_name(name: str) -> str:
    """A finalizer's name, if the server takes it."""
    if not _NAME.fullmatch(name) or len(name.partition("/")[0]) > 253:
        raise ValueError(f"{name!r} cannot name a finalizer: write domain/name, as in example.com/cleanup")
    return name


def finalizers_of(obj: AnyObject) -> list[str]:
    return list(in_metadata(obj, "finalizers") or ())


def is_going(obj: AnyObject) -> bool:
    """Whether somebody deleted it, and only finalizers hold it."""
    return in_metadata(obj, "deletion_timestamp") is not None


def addition(obj: AnyObject, name: str) -> JsonPatch | None:
    """The patch that adds a finalizer to the object as it was read; None if it has it."""
    names = finalizers_of(obj)
    if name in names:
        return None
    add = (
        {"op": "add", "path": "/metadata/finalizers/-", "value": name}
        if names
        else {"op": "add", "path": "/metadata/finalizers", "value": [name]}
    )
    return JsonPatch([_of_version(obj), add])


def removal(obj: AnyObject, name: str) -> JsonPatch | None:
    """The patch that removes a finalizer from the object as it was read; None if it is not there."""
    names = finalizers_of(obj)
    if name not in names:
        return None
    path = f"/metadata/finalizers/{names.index(name)}"
    return JsonPatch(
        [_of_version(obj), {"op": "test", "path": path, "value": name}, {"op": "remove", "path": path}]
    )


def _of_version(obj: AnyObject) -> dict[str, Any]:
    """Not a test, whose failure the server calls 422: to set another version than there is, is a 409."""
    version = in_metadata(obj, "resource_version")
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": version}


async def add_finalizer(client: Client, obj: ObjectT, name: str, *, field_manager: str) -> ObjectT | None:
    """The object with the finalizer; None if it is gone or going."""
    form: Form[ObjectT] = form_of_object(obj)
    current: ObjectT | None = obj
    for left in reversed(range(_TRIES)):
        if current is None or is_going(current):
            return None
        patch = addition(current, name)
        if patch is None:
            return current
        try:
            added: ObjectT = await _send(client, form, current, patch, field_manager)
            return added
        except NotFound:
            return None
        except Conflict:
            if not left:
                raise
        current = await read_live(client, obj)
    raise AssertionError("the last try returns or raises")


async def remove_finalizer(client: Client, obj: AnyObject, name: str, *, field_manager: str) -> None:
    """Let the object go, as far as it is for us."""
    form = form_of_object(obj)
    current: AnyObject | None = obj
    for left in reversed(range(_TRIES)):
        patch = None if current is None else removal(current, name)
        if current is None or patch is None:
            return
        try:
            await _send(client, form, current, patch, field_manager)
        except NotFound:
            return
        except Conflict:
            if not left:
                raise
        else:
            return
        current = await read_live(client, obj)


async def read_live(client: Client, obj: ObjectT) -> ObjectT | None:
    """The same object as the server has it now; None if it is gone, even if another has its name."""
    me = identity_of(obj)
    form: Form[ObjectT] = form_of_object(obj)
    try:
        live = await client.get(form, me.name, namespace=me.namespace or None)
    except NotFound:
        return None
    return live if identity_of(live).uid == me.uid else None


async def _send(client: Client, form: Form[Any], obj: AnyObject, patch: JsonPatch, field_manager: str) -> Any:
    me = identity_of(obj)
    return await client.patch(
        form, me.name, patch, namespace=me.namespace or None, field_manager=field_manager
    )
