"""The cells of ``kubectl get``: ours against those that the real server gave for the same objects."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from setpoint.server.http.cells.reading import human
from setpoint.server.http.printers import rows
from setpoint.server.registry import facts
from setpoint.server.registry.resources import Column, Resource
from tests.server.http.recorded.record import shapes
from tests.server.http.resources import resource

RECORDED = Path(__file__).parent / "recorded"
ROWS = [json.loads(line) for line in (RECORDED / "cells.jsonl").read_text().splitlines()]


def resource_of(obj: dict[str, Any]) -> Resource:
    """A built-in one as the facts have it, else the custom one that was recorded."""
    group, _, version = obj["apiVersion"].rpartition("/")
    for one in facts.resources():
        if (one.group, one.version, one.kind) == (group, version, obj["kind"]):
            return resource(group, version, one.plural, one.kind, columns=one.columns)
    found = shapes()[0]["object"]["spec"]["versions"][0]["additionalPrinterColumns"]
    columns = [Column(one["name"], one["type"], json_path=one["jsonPath"]) for one in found]
    name = Column("Name", "string")
    return resource(group, version, "things", obj["kind"], columns=(name, *columns), is_custom=True)


def _id(row: dict[str, Any]) -> str:
    return f"{row['object']['kind']} {row['object']['metadata']['name']}"


@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_cells_are_those_of_the_real_server(row: dict[str, Any]) -> None:
    found = resource_of(row["object"])
    [printed] = rows(found, [row["object"]], datetime.fromisoformat(row["now"]), is_list=False)
    assert printed.cells == row["cells"]
    assert ([printed.condition] if printed.condition else None) == row.get("conditions")


def test_every_kind_that_is_served_with_columns_was_recorded() -> None:
    seen = {(row["object"]["apiVersion"].rpartition("/")[0], row["object"]["kind"]) for row in ROWS}
    wanted = {(one.group, one.kind) for one in facts.resources() if one.columns}
    missing = wanted - seen
    assert missing == NOT_RECORDED


# What the real server has none of, or gives none to look at without more than it.
NOT_RECORDED = {
    ("", "ComponentStatus"),
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("certificates.k8s.io", "PodCertificateRequest"),
    ("resource.k8s.io", "DeviceTaintRule"),
}


def test_every_printer_takes_an_object_that_has_nothing() -> None:
    bookmark = {"metadata": {"resourceVersion": "5"}}
    for one in facts.resources():
        if one.columns:
            found = resource(one.group, one.version, one.plural, one.kind, columns=one.columns)
            [row] = rows(found, [bookmark], datetime.now(UTC))
            is_ip = one.kind == "IPAddress"  # which has a cell more than it has columns, there too
            assert len(row.cells) == len(one.columns) + is_ip, one.kind


def test_of_a_list_of_storage_classes_the_default_is_marked() -> None:
    recorded = [row["object"] for row in ROWS if row["object"]["kind"] == "StorageClass"]
    objects = sorted(recorded, key=lambda one: str(one["metadata"]["name"]))
    shown = rows(resource_of(objects[0]), objects, datetime.now(UTC))
    assert [row.cells[0] for row in shown] == json.loads((RECORDED / "storage_classes.json").read_text())


@pytest.mark.parametrize(
    ("length", "told"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-1.5), "0s"),
        (timedelta(seconds=119.9), "119s"),
        (timedelta(seconds=120), "2m"),
        (timedelta(seconds=599), "9m59s"),
        (timedelta(minutes=10, seconds=30), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=59), "7h59m"),
        (timedelta(hours=8, minutes=30), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2), "2d"),
        (timedelta(days=7, hours=23), "7d23h"),
        (timedelta(days=8), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=731), "2y1d"),
        (timedelta(days=365 * 8 + 10), "8y"),
    ],
)
def test_a_length_of_time_is_told_in_two_or_three_figures(length: timedelta, told: str) -> None:
    assert human(length.total_seconds()) == told
