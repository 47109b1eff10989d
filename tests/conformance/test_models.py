"""``setpoint models`` against the real kube-apiserver: its own kinds, and a CustomResourceDefinition's."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from setpoint.api.crd import CustomResource, crd_of
from setpoint.api.int_or_string import IntOrString
from setpoint.api.meta import Condition, LabelSelector, ObjectMeta
from setpoint.api.model import Model
from setpoint.api.quantity import Quantity
from setpoint.api.times import Time
from setpoint.cli.main import main
from setpoint.cli.models import index_of
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.testing.kube import ControlPlane
from tests.conformance.planes import NewPlane
from tests.kube.models import PACKAGE, said_by_server, write_models
from tests.kube_models import recorded

NEW_YEAR = Time(2026, 1, 1, tzinfo=UTC)


class Backup(Model):
    at: Time | None = None
    size: Quantity


class GardenSpec(Model):
    cluster_ip: str | None = None
    keep: list[Backup] | None = None
    ports: dict[str, IntOrString] | None = None
    plants: LabelSelector | None = None


class GardenStatus(Model):
    last: Backup | None = None
    grown: int = 0
    conditions: list[Condition] | None = None


class Garden(CustomResource, group="models.setpoint.dev", version="v1"):
    spec: GardenSpec = GardenSpec()
    status: GardenStatus = GardenStatus()


@pytest.fixture(scope="module")
def kube(new_plane: NewPlane) -> Iterator[ControlPlane]:
    """A server of our own: whatever other tests install would show in its schemas."""
    with new_plane() as own:
        yield own


@pytest.fixture(scope="module")
def said(kube: ControlPlane) -> dict[str, Any]:
    said = asyncio.run(said_by_server(kube.kubeconfig))
    if said["version"] != recorded.kubernetes()["version"]:
        pytest.skip(
            f"the models are of {recorded.kubernetes()['version']}, and the server is {said['version']}"
        )
    return said


def builtin_schemas(said: dict[str, Any]) -> dict[str, Any]:
    return {name: schema for name, schema in said["schemas"].items() if name.startswith("io.k8s.")}


def test_the_data_of_the_tests_is_what_the_server_says(said: dict[str, Any]) -> None:
    assert builtin_schemas(said) == builtin_schemas(recorded.kubernetes()), "run `make models`"


def test_the_models_are_what_the_server_gives(
    said: dict[str, Any], kube: ControlPlane, tmp_path: Path
) -> None:
    write_models(kube.kubeconfig, tmp_path)
    kept = {file.relative_to(PACKAGE).as_posix(): file.read_text() for file in PACKAGE.glob("*/*.py")}
    made = {file.relative_to(tmp_path).as_posix(): file.read_text() for file in tmp_path.glob("*/*.py")}
    assert made == kept, "run `make models`"


@pytest.fixture
def gardens(kube: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module that the command makes of a CustomResourceDefinition in the cluster."""
    asyncio.run(install_gardens(kube))
    arguments = [
        "--kubeconfig",
        str(kube.kubeconfig),
        "--output",
        str(tmp_path / "plot"),
        "models.setpoint.dev",
    ]
    main(["models", *arguments], standalone_mode=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("plot.models_setpoint_dev.v1")
    for name in [name for name in sys.modules if name.split(".")[0] == "plot"]:
        del sys.modules[name]


async def install_gardens(kube: ControlPlane) -> None:
    async with Client(Config.load(kube.kubeconfig)) as client, asyncio.timeout(30):
        await client.apply(crd_of(Garden), force=True)
        while ("models.setpoint.dev", "v1") not in await index_of(client):
            await asyncio.sleep(0.05)


async def test_a_custom_resource_is_read_and_written_by_its_made_model(
    kube: ControlPlane, gardens: Any
) -> None:
    garden = gardens.Garden(
        metadata=ObjectMeta(generate_name="g-"),
        spec=gardens.GardenSpec(
            cluster_ip="None",
            keep=[gardens.GardenSpecKeep(at=NEW_YEAR, size=Quantity("1Gi"))],
            ports={"http": "web", "https": 443},
            plants=LabelSelector(match_labels={"kind": "rose"}),
        ),
    )
    async with Client(Config.load(kube.kubeconfig)) as client:
        made = await client.create(garden, namespace="default", field_validation="Strict")
        made.status.grown = 3
        made.status.conditions = [
            Condition(type="Ready", status="True", reason="Grown", last_transition_time=NEW_YEAR)
        ]
        written = await client.update_status(made)
        ours = await client.get(Garden, made.metadata.name, namespace="default")

    assert written.spec == garden.spec
    assert ours.spec.keep == [Backup(at=NEW_YEAR, size=Quantity("1Gi"))]
    assert ours.status.grown == written.status.grown == 3
    assert ours.status.conditions == written.status.conditions
