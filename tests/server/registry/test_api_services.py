"""Who answers for each version of a group."""

from __future__ import annotations

from typing import Any

from setpoint.server.registry import api_services, facts

Object = dict[str, Any]


def test_each_built_in_version_is_answered_for_but_that_of_api_services() -> None:
    served = {(one.group, one.version) for one in facts.resources()}
    made = api_services.built_in((one.group, one.version) for one in facts.resources())
    told = {(one["spec"].get("group", ""), one["spec"]["version"]) for one in made}
    assert served - told == {("apiregistration.k8s.io", "v1")}
    assert len(made) == len(told)


def test_a_version_is_answered_for_as_long_as_a_definition_serves_it() -> None:
    def definition(*versions: tuple[str, bool]) -> Object:
        told = [{"name": name, "served": is_served} for name, is_served in versions]
        return {"spec": {"group": "g.example.com", "versions": told}}

    first, second = definition(("v1", True), ("v2", False)), definition(("v1", True))
    assert list(api_services.of_definitions([first, second])) == ["v1.g.example.com"]
    assert api_services.of_definitions([]) == {}


def test_what_others_made_is_left_alone() -> None:
    definition = {"spec": {"group": "g", "versions": [{"name": "v1", "served": True}]}}
    made = api_services.of_definitions([definition])
    assert api_services.is_of_definitions(made["v1.g"])
    assert not api_services.is_of_definitions({"metadata": {}})
    assert not api_services.is_of_definitions(api_services.built_in([("apps", "v1")])[0])
