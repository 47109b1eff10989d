"""Our own server, in the place of a real control plane."""

from __future__ import annotations

import http.client
import ssl
import threading
from urllib.parse import urlsplit

import pytest

from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.kube.core.v1 import Namespace
from setpoint.testing.embedded import EmbeddedControlPlane


async def names_at(plane: EmbeddedControlPlane) -> set[str]:
    async with Client(Config.from_kubeconfig(plane.kubeconfig)) as client:
        return {str(one.metadata.name) for one in await client.list(Namespace)}


async def test_started_means_usable() -> None:
    async with EmbeddedControlPlane() as plane:
        assert "default" in await names_at(plane)


async def test_what_is_written_outlives_the_api_server_and_not_the_control_plane() -> None:
    plane = EmbeddedControlPlane()
    with plane:
        url = plane.url
        async with Client(Config.from_kubeconfig(plane.kubeconfig)) as client:
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}})
        plane.stop_api_server()
        plane.start_api_server()
        assert plane.url == url
        assert "kept" in await names_at(plane)
    with plane:
        assert "kept" not in await names_at(plane)


def test_who_shows_nothing_is_let_in_nowhere() -> None:
    with EmbeddedControlPlane() as plane:
        at = urlsplit(plane.url)
        context = ssl.create_default_context(cafile=str(plane.ca_file))
        connection = http.client.HTTPSConnection(at.hostname or "", at.port, context=context)
        connection.request("GET", "/api/v1/namespaces")
        assert connection.getresponse().status == 401
        connection.close()


def test_stop_leaves_no_thread_and_no_file_and_may_be_repeated() -> None:
    before = threading.active_count()
    plane = EmbeddedControlPlane()
    with plane:
        folder = plane.folder
        assert folder.stat().st_mode & 0o077 == 0
        assert plane.kubeconfig.stat().st_mode & 0o077 == 0
    plane.stop()
    assert not folder.exists()
    assert threading.active_count() == before


def test_it_is_started_once_and_asked_only_then() -> None:
    plane = EmbeddedControlPlane()
    with pytest.raises(RuntimeError, match="start it first"):
        plane.compact()
    with plane, pytest.raises(RuntimeError, match="started already"):
        plane.start()


def test_any_number_run_beside_each_other() -> None:
    with EmbeddedControlPlane() as one, EmbeddedControlPlane() as other:
        assert one.url != other.url
        assert one.ca_pem != other.ca_pem
