"""The broker survives; and the mistakes that were made in what it is ported from are found."""

from __future__ import annotations

import pytest

from setpoint.testing.proof.plans import Change, Create, Delete, Step
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.report import Report
from tests.ported.broker import Mistake, brokers

API = "ported.setpoint.dev/v1"
CONTROLLERS = ["statefulset-controller", "persistentvolume-binder-controller", "node-stand-in"]
BROKER = {"apiVersion": API, "kind": "Broker", "metadata": {"name": "b", "namespace": "default"}}
LIFE: list[Step] = [
    Create({**BROKER, "spec": {"replicas": 1, "storage": "10Gi"}}),
    Change(API, "Broker", "b", {"spec": {"storage": "15Gi"}}),
    Delete(API, "Broker", "b"),
]


def proven(mistake: Mistake, *only: str, **how: int) -> Report:
    """The claims of a StatefulSet stay when it goes, as they do without the operator."""
    return prove(
        lambda: brokers(mistake),
        steps=LIFE,
        controllers=CONTROLLERS,
        keeps=["persistentvolumeclaims"],
        only=only,
        without=["O4"],
        **how,  # type: ignore[arg-type]
    )


@pytest.mark.slow
def test_the_broker_survives() -> None:
    report = proven("", most_of_class=1)  # of every class there is
    assert report.is_good, str(report)


@pytest.mark.slow
def test_claims_grow_though_the_operator_crashed_before_it_changed_them() -> None:
    """rabbitmq/cluster-operator#782"""
    report = proven("by_template", "E2", most_plans=12)
    assert report.failures, str(report)
    assert "persistentvolumeclaims default/data-b-0" in str(report.failures[0].first), str(report)


@pytest.mark.slow
def test_an_old_view_of_the_size_deletes_nothing_even_if_it_is_believed() -> None:
    """rabbitmq/cluster-operator#653, from which the runtime's look at the live object keeps it."""
    report = proven("any_difference", "V9", most_plans=20)
    assert report.is_good, str(report)
    assert not report.inconclusive, str(report)
