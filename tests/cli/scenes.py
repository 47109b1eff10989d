"""Values for the tests of what ``setpoint dev`` shows."""

from __future__ import annotations

from typing import Any

from setpoint.api.names import GroupVersionKind, Key
from setpoint.cli.shown import Ended, Item, Notice, Scene, tree
from setpoint.controller.mapping import Reason
from setpoint.controller.readiness import Readiness, State
from setpoint.controller.worker import Looked, Written

WEBAPP = GroupVersionKind("demo.setpoint.dev", "v1", "WebApp")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
POD = GroupVersionKind("", "v1", "Pod")
SHOP = Key("default", "shop")


def item(
    uid: str, kind: GroupVersionKind = POD, *owners: str, state: State = "Current", reason: str = ""
) -> Item:
    return Item(uid, kind, Key("default", uid), owners, Readiness(state, reason))


def webapp(pods: int) -> list[Item]:
    """A WebApp, its Deployment, and so many pods of that, of which the first is not ready."""
    return [
        item("shop", WEBAPP),
        item("shop-deployment", DEPLOYMENT, "shop"),
        *(
            item(f"pod-{number}", POD, "shop-deployment", state="InProgress" if number == 0 else "Current")
            for number in range(pods)
        ),
    ]


def looked(**facts: Any) -> Looked:
    usual: dict[str, Any] = {
        "id": "1",
        "reasons": (Reason("MODIFIED", DEPLOYMENT, SHOP),),
        "at": 1.0,
        "seconds": 0.012,
        "came_to": "success",
    }
    return Looked(**(usual | facts))


def ended(at: str = "12:00:01", **facts: Any) -> Ended:
    return Ended(at, "webapp", SHOP, looked(**facts))


WROTE = (Written("apply", DEPLOYMENT, SHOP), Written("patch", WEBAPP, SHOP, "status"))


def scene(**facts: Any) -> Scene:
    usual: dict[str, Any] = {
        "title": "webapp-operator",
        "server": "https://127.0.0.1:6443",
        "kubeconfig": "kubeconfig",
        "notice": Notice("webapp.py runs"),
        "trees": tree(webapp(2), [WEBAPP]),
    }
    return Scene(**(usual | facts))
