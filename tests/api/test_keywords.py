"""An unknown keyword is refused where it is written; the error names the class, and what was meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint import Client, Manager, Operator, builder
from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.api.keywords import suggestion
from setpoint.kube.apps.v1 import Deployment, DeploymentSpec
from tests.controller.cluster import Cluster


class LampSpec(Model):
    colour: str
    switch_off_after: int = 0


class Lamp(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: LampSpec


@pytest.mark.parametrize(
    ("cls", "fields", "said"),
    [
        (LampSpec, {"color": "red"}, "LampSpec has no field 'color'; did you mean 'colour'?"),
        (LampSpec, {"switchOffAfter": 1}, "no field 'switchOffAfter'; did you mean 'switch_off_after'?"),
        (LampSpec, {"bulb": "x"}, "LampSpec has no field 'bulb'; there are colour, switch_off_after"),
        (LampSpec, {}, "LampSpec: Missing required argument 'colour'"),
        (Lamp, {"spce": None}, "Lamp has no field 'spce'; did you mean 'spec'?"),
        (Lamp, {"apiVersion": "v1"}, "Lamp has no field 'apiVersion'; did you mean 'api_version'?"),
        (ObjectMeta, {"nmae": "x"}, "ObjectMeta has no field 'nmae'; did you mean 'name'?"),
        (DeploymentSpec, {"replica": 1}, "DeploymentSpec has no field 'replica'; did you mean 'replicas'?"),
    ],
)
def test_a_model_names_its_class_and_the_field_that_was_meant(
    cls: type[Any], fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError) as raised:
        cls(**fields)
    assert said in str(raised.value)


def test_a_model_that_is_given_values_without_names_says_its_class() -> None:
    with pytest.raises(TypeError, match="LampSpec: Extra positional arguments"):
        LampSpec("red")  # type: ignore[call-arg]


def test_an_attribute_that_is_no_field_is_suggested_too() -> None:
    with pytest.raises(AttributeError, match="Lamp has no field 'sepc'; did you mean 'spec'"):
        Lamp(spec=LampSpec(colour="")).sepc = 1  # type: ignore[attr-defined]


@given(st.sampled_from(sorted(ObjectMeta.__struct_fields__)), st.data())
def test_every_field_is_suggested_for_a_misspelling_of_it(field: str, data: st.DataObject) -> None:
    dropped = data.draw(st.integers(0, len(field) - 1))
    misspelt = field[:dropped] + field[dropped + 1 :] + "_"
    with pytest.raises(TypeError, match=r"^ObjectMeta has no field '") as raised:
        ObjectMeta(**{misspelt: None})
    assert "did you mean" in str(raised.value)


def test_a_class_names_itself_and_the_keyword_that_was_meant() -> None:
    with pytest.raises(TypeError, match="class Shop has no option 'versoin'; did you mean 'version'"):

        class Shop(CustomResource, group="demo.setpoint.dev", versoin="v1"):
            pass

    with pytest.raises(TypeError, match="class Shelf has no option 'printer_colums'; did you mean 'pr"):

        class Shelf(CustomResource, group="demo.setpoint.dev", version="v1", printer_colums=[]):
            pass


def test_an_option_of_a_controller_is_refused_at_its_declaration() -> None:
    operator = Operator("op")
    with pytest.raises(TypeError, match=r"controller has no option 'wokers'; did you mean 'workers'"):
        operator.controller(Lamp, wokers=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no option 'own'; did you mean 'owns'"):
        operator.controller(Lamp, own=[Deployment])  # type: ignore[call-arg]


async def test_so_is_an_option_of_a_builder() -> None:
    made = builder(Manager(client=Client(transport=Cluster())))
    with pytest.raises(TypeError, match=r"Builder\.for_ has no option 'label'; did you mean 'labels'"):
        made.for_(Lamp, label={})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"owns has no option 'any_owners'; did you mean 'any_owner'"):
        made.owns(Lamp, any_owners=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Builder\.watches has no option 'wehn'; did you mean 'when'"):
        made.watches(Lamp, lambda _: [], wehn=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"with_options has no option 'worker'; did you mean 'workers'"):
        made.with_options(worker=2)  # type: ignore[call-arg]


def test_where_nothing_is_known_nothing_is_suggested() -> None:
    assert suggestion("x", []) == ""
