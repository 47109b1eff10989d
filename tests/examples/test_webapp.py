"""What the WebApp examples decide: what there should be, what has drifted, how it goes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from examples.webapp.longhand import drifted, ports_of
from examples.webapp.webapp import (
    WebApp,
    WebAppSpec,
    desired_deployment,
    desired_service,
    labels_of,
    report,
)
from setpoint.api import ObjectMeta, Time, find_condition, to_wire
from setpoint.kube.apps.v1 import Deployment, DeploymentStatus

NOW = Time.of(datetime(2030, 1, 1, tzinfo=UTC))


def webapp(replicas: int = 3) -> WebApp:
    return WebApp(
        metadata=ObjectMeta(name="shop", namespace="web", uid="u", generation=2),
        spec=WebAppSpec(image="shop:1", replicas=replicas, port=8080),
    )


def deployed(**status: int) -> Deployment:
    """Its Deployment, as a server has it."""
    deployment = desired_deployment(webapp())
    deployment.metadata.generation = 5
    deployment.status = DeploymentStatus(**status)  # type: ignore[arg-type]
    return deployment


def test_the_deployment_runs_the_image_so_many_times() -> None:
    spec = desired_deployment(webapp()).spec
    container = spec.template.spec.containers[0]
    assert (spec.replicas, container.image) == (3, "shop:1")
    assert [port.container_port for port in container.ports or []] == [8080]
    assert spec.selector.match_labels == spec.template.metadata.labels == labels_of(webapp())


def test_the_service_leads_to_the_pods_of_the_deployment() -> None:
    service, deployment = desired_service(webapp()), desired_deployment(webapp())
    pods = deployment.spec.template.metadata.labels or {}
    assert (service.spec.selector or {}).items() <= pods.items()
    assert ports_of(service) == [(8080, 8080)]


def test_only_what_is_wanted_is_said() -> None:
    said = to_wire(desired_deployment(webapp()))["spec"]
    assert set(said) == {"replicas", "selector", "template"}


def test_it_is_ready_when_all_are_available() -> None:
    app = webapp()
    report(app, deployed(observed_generation=5, updated_replicas=3, available_replicas=3), now=NOW)
    assert (app.status.ready, app.status.available_replicas) == (True, 3)
    ready = find_condition(app.status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.observed_generation, ready.last_transition_time) == ("True", 2, NOW)


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"observed_generation": 5, "updated_replicas": 3, "available_replicas": 2},
        {"observed_generation": 4, "updated_replicas": 3, "available_replicas": 3},
        {"observed_generation": 5, "updated_replicas": 1, "available_replicas": 3},
    ],
    ids=["nothing yet", "one is missing", "of the spec before", "some of the image before"],
)
def test_it_is_not_ready_before(status: dict[str, int]) -> None:
    app = webapp()
    report(app, deployed(**status), now=NOW)
    assert not app.status.ready
    ready = find_condition(app.status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "Progressing")


def test_none_at_all_is_as_wanted_if_none_are() -> None:
    app = webapp(replicas=0)
    report(app, deployed(observed_generation=5, updated_replicas=0, available_replicas=0), now=NOW)
    assert app.status.ready


def test_what_was_changed_by_hand_is_seen_and_what_others_add_is_not() -> None:
    desired, existing = desired_deployment(webapp()), desired_deployment(webapp())
    existing.spec.paused = True
    existing.spec.template.spec.containers[0].image_pull_policy = "IfNotPresent"
    assert not drifted(existing, desired)

    existing.spec.replicas = 1
    assert drifted(existing, desired)
    existing.spec.replicas = 3
    existing.spec.template.spec.containers[0].image = "other"
    assert drifted(existing, desired)
