"""Owner references: only those that the garbage collector understands."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api import Object, ObjectMeta, OwnerReference
from setpoint.api.model import to_wire
from setpoint.controller.owners import (
    controller_of,
    identity_of,
    own,
    owners_of,
    remove_owner_reference,
    set_controller_reference,
    set_owner_reference,
)
from setpoint.errors import AlreadyOwned
from setpoint.kube.core.v1 import ConfigMap, Namespace, PersistentVolume, PersistentVolumeSpec


class WebApp(Object, group="demo.setpoint.dev", version="v1"):
    pass


def webapp(name: str = "web", *, uid: str | None = "1", namespace: str = "shop") -> WebApp:
    return WebApp(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))


def child(namespace: str | None = "shop") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="web", namespace=namespace))


def test_a_controller_is_set_once_however_often_it_is_set() -> None:
    obj = child()
    set_controller_reference(webapp(), obj)
    set_controller_reference(webapp(), obj)
    assert obj.metadata.owner_references == [
        OwnerReference(
            api_version="demo.setpoint.dev/v1",
            kind="WebApp",
            name="web",
            uid="1",
            controller=True,
            block_owner_deletion=True,
        )
    ]


def test_the_short_way_to_own_an_intent_ends_where_the_long_one_does() -> None:
    short, long = to_wire(child()), to_wire(child())
    assert own(identity_of(webapp()), short, ConfigMap.resource)
    set_controller_reference(webapp(), long)
    assert short == long


@pytest.mark.parametrize(
    ("owner", "obj"),
    [
        (webapp(uid=None), child()),
        (webapp(namespace="other"), child()),
        (webapp(), child(namespace=None)),
        (webapp(), PersistentVolume(metadata=ObjectMeta(name="web"), spec=PersistentVolumeSpec())),
        (webapp(), webapp()),
    ],
    ids=["no uid", "another namespace", "no namespace", "no namespaced kind", "itself"],
)
def test_the_short_way_leaves_what_is_not_plain_to_the_long_one(owner: Object, obj: Object) -> None:
    intent = to_wire(obj)
    assert not own(identity_of(owner), intent, type(obj).resource)
    assert intent == to_wire(obj), "nothing was done"


def test_the_short_way_leaves_what_has_an_owner_to_the_long_one() -> None:
    intent = to_wire(child())
    set_owner_reference(webapp("other", uid="2"), intent)
    assert not own(identity_of(webapp()), intent, ConfigMap.resource)


def test_plain_objects_are_as_good_as_typed_ones() -> None:
    owner = {
        "apiVersion": "demo.setpoint.dev/v1",
        "kind": "WebApp",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
    }
    obj: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "shop"},
    }
    set_controller_reference(owner, obj)
    typed = child()
    set_controller_reference(webapp(), typed)
    assert owners_of(obj) == owners_of(typed)
    assert remove_owner_reference(owner, obj)
    assert "ownerReferences" not in obj["metadata"]


def test_a_second_controller_is_refused_and_named() -> None:
    obj = child()
    set_controller_reference(webapp("first"), obj)
    with pytest.raises(AlreadyOwned, match="WebApp first is its controller already"):
        set_controller_reference(webapp("second", uid="2"), obj)
    assert [owner.name for owner in owners_of(obj)] == ["first"]


def test_what_belongs_to_another_object_of_that_name_is_not_taken_over() -> None:
    obj = child()
    set_controller_reference(webapp(uid="old"), obj)
    with pytest.raises(AlreadyOwned, match="another of that name"):
        set_controller_reference(webapp(uid="new"), obj)


def test_a_second_owner_that_is_no_controller_is_fine() -> None:
    obj = child()
    set_controller_reference(webapp("first"), obj)
    set_owner_reference(webapp("second", uid="2"), obj)
    set_owner_reference(webapp("second", uid="2"), obj)
    assert [owner.name for owner in owners_of(obj)] == ["first", "second"]
    controller = controller_of(obj)
    assert controller is not None
    assert controller.name == "first"


def test_an_owner_that_is_set_again_stays_the_controller() -> None:
    obj = child()
    set_controller_reference(webapp(), obj)
    set_owner_reference(webapp(), obj)
    assert controller_of(obj) is not None


def test_an_owner_in_another_namespace_is_refused() -> None:
    with pytest.raises(ValueError, match=r"in another namespace: the garbage collector would delete it"):
        set_controller_reference(webapp(), child("elsewhere"))


def test_what_belongs_to_no_namespace_has_no_owner_in_one() -> None:
    volume = PersistentVolume(metadata=ObjectMeta(name="v"), spec=PersistentVolumeSpec())
    with pytest.raises(ValueError, match="belongs to no namespace"):
        set_controller_reference(webapp(), volume)


def test_an_owner_without_a_namespace_may_own_anything() -> None:
    owner = Namespace(metadata=ObjectMeta(name="n", uid="1"))
    for obj in (child("anywhere"), Namespace(metadata=ObjectMeta(name="m"))):
        set_controller_reference(owner, obj)
        assert controller_of(obj) is not None


def test_an_object_that_does_not_say_its_namespace_gets_the_owners() -> None:
    obj = child(None)
    set_controller_reference(webapp(), obj)
    assert obj.metadata.namespace == "shop"
    with pytest.raises(ValueError, match="does not say its namespace"):
        set_controller_reference(
            webapp(), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        )


def test_an_owner_that_the_server_never_saw_owns_nothing() -> None:
    with pytest.raises(ValueError, match="it has no uid"):
        set_controller_reference(webapp(uid=None), child())


def test_letting_go_leaves_the_other_owners() -> None:
    obj = child()
    set_owner_reference(webapp("first"), obj)
    set_owner_reference(webapp("second", uid="2"), obj)
    assert remove_owner_reference(webapp("first"), obj)
    assert not remove_owner_reference(webapp("first"), obj)
    assert [owner.name for owner in owners_of(obj)] == ["second"]
