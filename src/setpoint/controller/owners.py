"""Whom an object belongs to: owner references, written so that the garbage collector understands them.

An owner is in the namespace of what it owns, or in none; the server does not check that, and the garbage
collector then deletes the object as one whose owner is gone.  And at most one owner is the controller: it
alone may change the object.  Both are refused here, with a sentence, before anything is sent.

Objects are typed or plain dicts in wire form, and are changed in place.  Pure: no request here.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from setpoint.api.forms import key_of
from setpoint.api.metaclass import wire_name
from setpoint.api.model import Object, OwnerReference, from_wire, to_wire
from setpoint.api.names import GroupVersionKind, Resource
from setpoint.errors import AlreadyOwned

AnyObject: TypeAlias = Object | dict[str, Any]


def set_controller_reference(
    owner: AnyObject,
    obj: AnyObject,
    *,
    block_owner_deletion: bool = True,
    resource: Resource | None = None,
) -> None:
    """Make ``owner`` the controller of ``obj``: it is deleted with it, and its changes bring up the owner.

    An object of a namespaced kind that does not say its namespace gets the owner's.  AlreadyOwned if it has
    another controller, ValueError if it lives where its owner cannot be.  ``resource`` says where the object
    is kept, for one that is no model.
    """
    reference = _reference(owner, controller=True, block_owner_deletion=block_owner_deletion)
    _check_place(owner, obj, resource)
    _check_controller(reference, obj)
    _put(obj, reference)


def own(owner: Identity, intent: dict[str, Any], resource: Resource) -> bool:
    """Make ``owner`` the controller of what is to be applied, if that is plainly right; whether it was done.

    What ``set_controller_reference`` does, for nearly all that is ever applied, at each look.
    """
    metadata = intent["metadata"]
    is_plain = (
        resource.namespaced
        and owner.namespace == metadata.get("namespace")
        and owner.uid
        and owner.name
        and not metadata.get("ownerReferences")
        and (owner.name != metadata.get("name") or owner.gvk.kind != resource.kind)
    )
    if is_plain:
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner.gvk.api_version,
                "kind": owner.gvk.kind,
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    return bool(is_plain)


def check_controller(owner: AnyObject, obj: AnyObject) -> None:
    """AlreadyOwned if an object has another controller than ``owner``."""
    _check_controller(_reference(owner), obj)


def _check_controller(reference: OwnerReference, obj: AnyObject) -> None:
    other = controller_of(obj)
    if other is None or _is_same(other, reference):
        return
    doing = f"make {owner_text(reference)} the controller of {object_text(obj)}"
    if _name(other) == _name(reference):
        raise AlreadyOwned(
            doing,
            f"it belongs to another of that name (uid {other.uid}, not {reference.uid})",
            advice="one of the two is gone; the garbage collector deletes what is left of it",
        )
    raise AlreadyOwned(
        doing,
        f"{owner_text(other)} is its controller already, and there can be one",
        advice="give the object another name, or have the other let go of it",
    )


def set_owner_reference(owner: AnyObject, obj: AnyObject) -> None:
    """Make ``owner`` one of the owners of ``obj``, which is deleted once all of them are gone."""
    reference = _reference(owner)
    _check_place(owner, obj)
    if not any(_is_same(each, reference) for each in owners_of(obj)):
        _put(obj, reference)


def remove_owner_reference(owner: AnyObject, obj: AnyObject) -> bool:
    """Let go of ``obj``; whether ``owner`` was one of its owners."""
    reference = _reference(owner)
    references = owners_of(obj)
    others = [each for each in references if not _is_same(each, reference)]
    _write(obj, others)
    return len(others) < len(references)


def controller_of(obj: AnyObject) -> OwnerReference | None:
    """The owner that manages this object."""
    return next((owner for owner in owners_of(obj) if owner.controller), None)


def owners_of(obj: AnyObject) -> list[OwnerReference]:
    """All owners of an object."""
    if isinstance(obj, Object):
        return list(obj.metadata.owner_references or ())
    references = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return [from_wire(OwnerReference, reference) for reference in references]


class Identity(NamedTuple):
    """What an object says about which one it is."""

    gvk: GroupVersionKind
    namespace: str
    name: str
    uid: str


def identity_of(obj: AnyObject) -> Identity:
    """Which object this is; "" for what it does not say."""
    key = key_of(obj)
    if isinstance(obj, Object):
        gvk = GroupVersionKind.of(obj.api_version, obj.kind)
    else:
        gvk = GroupVersionKind.of(obj.get("apiVersion") or "", obj.get("kind") or "")
    return Identity(gvk, key.namespace, key.name, in_metadata(obj, "uid") or "")


def in_metadata(obj: AnyObject, attribute: str) -> Any:
    """What an object's metadata say, by the name that it has in Python; None where they do not."""
    if isinstance(obj, Object):
        return getattr(obj.metadata, attribute)
    return (obj.get("metadata") or {}).get(wire_name(attribute))


def object_text(obj: AnyObject) -> str:
    """An object for people: ``apps/v1 Deployment shop/web``."""
    return f"{identity_of(obj).gvk} {key_of(obj)}"


def owner_text(owner: OwnerReference) -> str:
    return f"{owner.kind} {owner.name}"


def _reference(owner: AnyObject, **more: bool) -> OwnerReference:
    me = identity_of(owner)
    if not me.uid or not me.name:
        raise ValueError(
            f"{object_text(owner)} cannot own anything yet: it has no uid; give it as the server gave it"
        )
    gvk = me.gvk
    return OwnerReference(api_version=gvk.api_version, kind=gvk.kind, name=me.name, uid=me.uid, **more)


def _check_place(owner: AnyObject, obj: AnyObject, resource: Resource | None = None) -> None:
    it, me = identity_of(obj), identity_of(owner)
    if (me.gvk, me.namespace, me.name) == (it.gvk, it.namespace, it.name):
        raise ValueError(f"{object_text(owner)} cannot own itself")
    home = me.namespace
    if not home:  # an owner without a namespace may own anything
        return
    resource = resource or getattr(type(obj), "resource", None)
    if resource is not None and not resource.namespaced:
        raise ValueError(
            f"{object_text(owner)} cannot own {object_text(obj)}, which belongs to no namespace: the garbage "
            "collector would delete it; clean it up in a finalizer instead"
        )
    if isinstance(obj, Object) and not obj.metadata.namespace:
        obj.metadata.namespace = home
    place = key_of(obj).namespace
    if not place:
        raise ValueError(
            f"{object_text(obj)} does not say its namespace; what {object_text(owner)} owns is in {home}"
        )
    if place != home:
        raise ValueError(
            f"{object_text(owner)} cannot own {object_text(obj)}, which is in another namespace: the garbage "
            f"collector would delete it; put it into {home}, or clean it up in a finalizer instead"
        )


def _is_same(one: OwnerReference, other: OwnerReference) -> bool:
    """Whether two references are to the same object.

    By uid too: what belongs to a former object of that name is not ours to take over.  Which of the two is
    the former one cannot be told from here: our view of the owner may be the one that is behind.
    """
    return one.uid == other.uid and _name(one) == _name(other)


def _name(reference: OwnerReference) -> tuple[str, str, str]:
    return reference.api_version.rpartition("/")[0], reference.kind, reference.name


def _put(obj: AnyObject, reference: OwnerReference) -> None:
    references = owners_of(obj)
    places = [i for i, each in enumerate(references) if _is_same(each, reference)]
    if places:
        references[places[0]] = reference
    else:
        references.append(reference)
    _write(obj, references)


def _write(obj: AnyObject, references: list[OwnerReference]) -> None:
    if isinstance(obj, Object):
        obj.metadata.owner_references = references or None
        return
    metadata = obj.setdefault("metadata", {})
    if references:
        metadata["ownerReferences"] = to_wire(references)
    else:
        metadata.pop("ownerReferences", None)
