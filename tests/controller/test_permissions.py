"""``controller/permissions.py``: the rules that declarations need."""

from __future__ import annotations

from setpoint.api.forms import form_of, untyped
from setpoint.controller.permissions import Permission, as_rules, needed
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import ConfigMap

DEPLOYMENT = form_of(Deployment)
READ = ["get", "list", "watch"]


def verbs_of(*permissions: Permission) -> dict[str, list[str]]:
    return {f"{rule['apiGroups'][0]} {rule['resources'][0]}": rule["verbs"] for rule in as_rules(permissions)}


def test_a_controller_reads_its_kind_writes_its_status_and_tells_what_happened() -> None:
    assert verbs_of(*needed(DEPLOYMENT, owns=(), watches=(), cleans_up=False)) == {
        "apps deployments": READ,
        "apps deployments/finalizers": ["update"],
        "apps deployments/status": ["patch"],
        "events.k8s.io events": ["create", "patch"],
    }


def test_a_clean_up_writes_the_finalizer() -> None:
    found = verbs_of(*needed(DEPLOYMENT, owns=(), watches=(), cleans_up=True))
    assert found["apps deployments"] == [*READ, "patch"]


def test_children_are_made_changed_and_pruned_and_what_is_watched_is_read() -> None:
    things = form_of(untyped("example.com/v1", "Proxy"))
    found = verbs_of(*needed(DEPLOYMENT, owns=[things], watches=[form_of(ConfigMap)], cleans_up=False))
    assert found["example.com proxies"] == [*READ, "create", "patch", "delete"], "as kubectl guesses it"
    assert found[" configmaps"] == READ


def test_rules_are_one_for_each_resource_with_all_verbs_in_order() -> None:
    both = [
        Permission("b", "x", ("delete", "get")),
        Permission("a", "y", ("zap",)),
        Permission("b", "x", ("list",)),
    ]
    assert as_rules(both) == [
        {"apiGroups": ["a"], "resources": ["y"], "verbs": ["zap"]},
        {"apiGroups": ["b"], "resources": ["x"], "verbs": ["get", "list", "delete"]},
    ]
