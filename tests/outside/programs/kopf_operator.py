# mypy: ignore-errors
"""An operator of kopf: for every Crate a ConfigMap, a timer that counts, and a finalizer."""

from __future__ import annotations

import kopf
import kubernetes

GROUP = "kopf.setpoint.dev"


@kopf.on.startup()
def configure(settings, **_) -> None:
    settings.posting.level = 100  # no Events: the test looks at the objects
    settings.persistence.finalizer = f"{GROUP}/finalizer"
    settings.watching.server_timeout = 30
    kubernetes.config.load_kube_config()


@kopf.on.create(GROUP, "v1", "crates")
def create(name, namespace, spec, body, **_):
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-content"},
        "data": {"text": spec["text"]},
    }
    kopf.adopt(child, owner=body)
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, child)
    return {"child": child["metadata"]["name"]}


@kopf.on.update(GROUP, "v1", "crates", field="spec.text")
def update(name, namespace, new, patch, **_) -> None:
    kubernetes.client.CoreV1Api().patch_namespaced_config_map(
        f"{name}-content", namespace, {"data": {"text": new}}
    )
    patch.status["text"] = new


@kopf.on.delete(GROUP, "v1", "crates")
def delete(name, namespace, **_) -> None:
    kubernetes.client.CoreV1Api().delete_namespaced_config_map(f"{name}-content", namespace)


@kopf.timer(GROUP, "v1", "crates", interval=0.5)
def count(status, patch, **_) -> None:
    if status.get("counted", 0) < 3:
        patch.status["counted"] = status.get("counted", 0) + 1


@kopf.index(GROUP, "v1", "crates")
def texts(name, spec, **_):
    return {spec["text"]: name}


@kopf.on.event("", "v1", "configmaps", labels={"watched": "yes"})
def seen(name, namespace, annotations, **_) -> None:
    if "seen-by" not in annotations:
        kubernetes.client.CoreV1Api().patch_namespaced_config_map(
            name, namespace, {"metadata": {"annotations": {"seen-by": "kopf"}}}
        )
