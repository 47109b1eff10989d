"""What becomes of a definition: names, conditions, approval, and the end."""

from __future__ import annotations

import copy
from typing import Any

from setpoint.server.registry.crd import lifecycle
from tests.server.registry.crd_cases import crd

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def definition(plural: str = "things", kind: str = "Thing", **names: Any) -> dict[str, Any]:
    made = crd()
    made["metadata"]["name"] = f"{plural}.cases.example.com"
    named = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    made["spec"]["names"] = named | names
    made["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    return made


def settled(crd: dict[str, Any], *others: dict[str, Any], now: str = NOW) -> dict[str, Any]:
    return {**crd, "status": lifecycle.status_of(crd, others, now=now)}


def said(crd: dict[str, Any], kind: str) -> tuple[str, str, str]:
    found = lifecycle.condition(crd, kind)
    assert found is not None
    return found["status"], found["reason"], found["message"]


def test_a_definition_whose_names_are_free_is_established() -> None:
    made = settled(definition(shortNames=["th"], categories=["all"]))
    assert said(made, "NamesAccepted") == ("True", "NoConflicts", "no conflicts found")
    assert said(made, "Established") == (
        "True",
        "InitialNamesAccepted",
        "the initial names have been accepted",
    )
    assert made["status"]["acceptedNames"] == made["spec"]["names"]
    assert made["status"]["storedVersions"] == ["v1"]
    assert lifecycle.is_established(made)


def test_a_settled_definition_stays_as_it_is() -> None:
    made = settled(definition())
    assert settled(copy.deepcopy(made), now=LATER) == made


def test_a_kind_that_another_definition_holds_is_not_accepted() -> None:
    holder = settled(definition())
    made = settled(definition("objects"), holder)
    assert said(made, "NamesAccepted") == ("False", "ListKindConflict", '"ThingList" is already in use')
    assert said(made, "Established") == ("False", "NotAccepted", "not all names are accepted")
    assert made["status"]["acceptedNames"] == {"plural": "objects", "kind": ""}
    assert not lifecycle.is_established(made)


def test_a_kind_of_another_group_is_in_nobodys_way() -> None:
    other = settled(definition())
    other["spec"]["group"] = "elsewhere.example.com"
    assert lifecycle.is_established(settled(definition(), other))


def test_names_are_accepted_when_they_fall_free() -> None:
    waiting = settled(definition("objects"), settled(definition()))
    made = settled(waiting, now=LATER)
    assert lifecycle.is_established(made)
    changed = lifecycle.condition(made, "Established")
    assert changed is not None
    assert changed["lastTransitionTime"] == LATER


def test_once_established_a_definition_stays_so_when_a_new_name_is_taken() -> None:
    holder = settled(definition("objects", "Object", shortNames=["th", "tg"]))
    made = settled(definition())
    made["spec"]["names"]["shortNames"] = ["th", "tg"]
    made = settled(made, holder, now=LATER)
    assert said(made, "NamesAccepted") == (
        "False",
        "ShortNamesConflict",
        '["th" is already in use, "tg" is already in use]',
    )
    assert lifecycle.is_established(made)


def test_a_protected_group_says_whether_it_was_approved() -> None:
    made = definition()
    made["spec"]["group"] = "cases.k8s.io"
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, trial"}
    assert said(settled(made), "KubernetesAPIApprovalPolicyConformant") == (
        "False",
        "UnapprovedAnnotation",
        'not approved: "unapproved, trial"',
    )


def test_a_schema_that_is_not_structural_is_said_to_be_so() -> None:
    made = definition()
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"properties": {}}
    assert said(settled(made), "NonStructuralSchema") == (
        "True",
        "Violations",
        "spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root",
    )


def test_the_end_of_a_definition_is_told_in_its_status() -> None:
    made = settled(definition())
    going = {**made, "status": lifecycle.terminating_status(made, now=LATER)}
    assert said(going, "Terminating") == (
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    )
    gone = {**made, "status": lifecycle.terminated_status(going, now=LATER)}
    assert said(gone, "Terminating") == ("False", "InstanceDeletionCompleted", "removed all instances")
    never = {**made, "status": lifecycle.terminated_status(definition(), now=LATER)}
    assert said(never, "Terminating") == ("False", "NeverEstablished", "resource was never established")
