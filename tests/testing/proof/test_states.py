"""The rules of ``proof/states.py``: what is bound to differ is said in words that do not."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api import crd_of
from setpoint.server.storage.protocol import Place, Record
from setpoint.testing.proof.states import canonical, difference, status_defaults, varying
from tests.mutants.correct import Lamp

UID = "2f1d5c0e-6f0e-4b69-9a7a-5b0c8f3e7a1{}"


def record(number: int, resource: str, name: str, **obj: Any) -> Record:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": UID.format(number),
        "resourceVersion": str(number),
        "creationTimestamp": "2030-01-01T00:00:00Z",
        **obj.pop("metadata", {}),
    }
    data = msgspec.json.encode({"metadata": metadata, **obj})
    return Record(Place(resource, "default", name), number, number, data)


def test_uids_are_said_by_whose_they_are() -> None:
    owner = record(1, "widgets", "w")
    owned = record(2, "pods", "p", metadata={"ownerReferences": [{"uid": UID.format(1)}]})
    state = canonical([owner, owned])
    assert state["pods default/p"]["metadata"]["ownerReferences"] == [{"uid": "<uid of widgets default/w>"}]


def test_names_that_the_server_chose_are_numbered_in_the_order_of_creation() -> None:
    made = {"generateName": "w-"}
    state = canonical([record(5, "pods", "w-aaa", metadata=made), record(3, "pods", "w-zzz", metadata=made)])
    assert list(state) == ["pods default/w-*1", "pods default/w-*2"]


def test_times_and_versions_do_not_count_and_observed_generations_by_how_far_they_are_behind() -> None:
    status = {"observedGeneration": 3, "at": "2031-05-05T01:02:03Z"}
    state = canonical([record(1, "widgets", "w", metadata={"generation": 4}, status=status)])
    assert state["widgets default/w"] == {
        "metadata": {},
        "status": {"observedGeneration": "1 behind", "at": "<time>"},
    }


def test_what_was_there_at_the_beginning_is_left_out_until_it_changes() -> None:
    old = record(1, "widgets", "w")
    assert canonical([old], beginning={old.place: 1}) == {}
    assert canonical([old], beginning={old.place: 0}) != {}


def test_a_difference_names_the_object_and_the_field() -> None:
    one = {"pods default/p": {"spec": {"image": "a"}}, "pods default/q": {}}
    other = {"pods default/p": {"spec": {"image": "b"}}, "pods default/r": {}}
    assert difference(one, other) == [
        "pods default/p: spec.image: expected 'a', got 'b'",
        "pods default/q: missing",
        "pods default/r: should not be there",
    ]


def test_what_varies_between_seeds_is_found_and_masked() -> None:
    states = [
        canonical([record(1, "secrets", "s", data={"password": word, "user": "u"})]) for word in ("a", "b")
    ]
    masked = varying(states)
    assert masked == {("secrets default/s", ("data", "password"))}
    state = canonical([record(1, "secrets", "s", data={"password": "c", "user": "u"})], masked=masked)
    assert state["secrets default/s"]["data"] == {"password": "<varies>", "user": "u"}


def test_the_order_of_conditions_and_the_count_of_revisions_are_nobodys_business() -> None:
    def deployment(revision: str, *types: str) -> Record:
        obj = {
            "metadata": {"uid": "u", "annotations": {"deployment.kubernetes.io/revision": revision}},
            "status": {"conditions": [{"type": each, "status": "True"} for each in types]},
        }
        return Record(Place("deployments.apps", "default", "web"), 1, 1, msgspec.json.encode(obj))

    one = canonical([deployment("1", "Available", "Progressing")])
    assert one == canonical([deployment("2", "Progressing", "Available")])
    assert one != canonical([deployment("1", "Available")])


@given(
    lit=st.booleans(),
    watts=st.sampled_from([40, 60]),
    colours=st.sampled_from([[], ["red"]]),
    left_out=st.sets(st.sampled_from(["lit", "bulb", "bulb.watts", "bulb.colours"])),
)
def test_a_default_that_is_not_stored_is_the_default(
    lit: bool, watts: int, colours: list[str], left_out: set[str]
) -> None:
    whole: dict[str, Any] = {"lit": lit, "bulb": {"watts": watts, "colours": colours}}
    stored: dict[str, Any] = {"lit": lit, "bulb": {"watts": watts, "colours": colours}}
    if "lit" in left_out and not lit:
        del stored["lit"]
    if "bulb.watts" in left_out and watts == 40:
        del stored["bulb"]["watts"]
    if "bulb.colours" in left_out and not colours:
        del stored["bulb"]["colours"]
    if "bulb" in left_out and not stored["bulb"]:
        del stored["bulb"]
    resource, defaults = "lamps.test.setpoint.dev", status_defaults([crd_of(Lamp)])
    one, other = (
        canonical([record(1, resource, "l", **({"status": each} if each else {}))], defaults=defaults)
        for each in (whole, stored)
    )
    assert one == other
    assert one[f"{resource} default/l"]["status"] == whole


def test_a_snapshot_that_nobody_compares_shows_what_is_stored() -> None:
    (lamp,) = canonical([record(1, "lamps.test.setpoint.dev", "l")]).values()
    assert "status" not in lamp
