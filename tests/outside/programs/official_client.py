# mypy: ignore-errors
"""A program of the official Python client: objects, watches, patches, apply, custom kinds, dynamic client.

Run by its own Python, with a kubeconfig and a namespace; it says nothing and ends with 0 where all is as
Kubernetes has it.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import yaml
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError
from kubernetes.utils import create_from_yaml

SECONDS = 20  # that anything here may take
MANIFESTS = Path(__file__).parent.parent / "manifests"


def main(kubeconfig: str, namespace: str) -> None:
    config.load_kube_config(kubeconfig)
    client.CoreV1Api().create_namespace({"metadata": {"name": namespace}})
    objects(namespace)
    refusals(namespace)
    watching(namespace)
    pages(namespace)
    workloads(namespace)
    manifests(namespace)
    custom(namespace)
    dynamically(namespace)
    questions()


def objects(namespace: str) -> None:
    core = client.CoreV1Api()
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a", labels={"app": "a"}), data={"k": "v"})
    made = core.create_namespaced_config_map(namespace, body)
    assert made.metadata.uid
    assert made.metadata.creation_timestamp.tzinfo is not None
    made.data["k"] = "w"
    changed = core.replace_namespaced_config_map("a", namespace, made)
    assert changed.data == {"k": "w"}
    patched = core.patch_namespaced_config_map("a", namespace, {"data": {"more": "x", "k": None}})
    assert patched.data == {"more": "x"}
    patched = core.patch_namespaced_config_map(
        "a", namespace, [{"op": "add", "path": "/data/third", "value": "y"}]
    )
    assert patched.data == {"more": "x", "third": "y"}
    assert core.list_namespaced_config_map(namespace, label_selector="app=a").items[0].data == patched.data
    assert [one.metadata.name for one in core.list_namespace().items].count(namespace) == 1
    secret = core.create_namespaced_secret(
        namespace, client.V1Secret(metadata=client.V1ObjectMeta(generate_name="s-"), string_data={"a": "b"})
    )
    assert secret.data == {"a": "Yg=="}
    assert secret.metadata.name.startswith("s-")
    core.delete_namespaced_config_map("a", namespace)
    core.delete_collection_namespaced_secret(namespace)
    assert core.list_namespaced_secret(namespace).items == []


def refusals(namespace: str) -> None:
    core = client.CoreV1Api()
    assert code(lambda: core.read_namespaced_config_map("none", namespace)) == (404, "Not Found")
    made = core.create_namespaced_config_map(namespace, {"metadata": {"name": "stale"}})
    core.patch_namespaced_config_map("stale", namespace, {"data": {"a": "1"}})
    assert code(lambda: core.replace_namespaced_config_map("stale", namespace, made))[0] == 409
    assert code(lambda: core.create_namespaced_config_map(namespace, made))[0] in (409, 500)
    assert code(lambda: core.create_namespaced_config_map(namespace, {"metadata": {"name": "B"}}))[0] == 422


def code(call: object) -> tuple[int, str]:
    try:
        call()
    except ApiException as refused:
        return refused.status, refused.reason
    raise AssertionError("it was not refused")


def watching(namespace: str) -> None:
    core = client.CoreV1Api()
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "seen"}, "data": {"n": "0"}})
    core.patch_namespaced_config_map("seen", namespace, {"data": {"n": "1"}})
    core.delete_namespaced_config_map("seen", namespace)
    seen = []
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=SECONDS
    ):
        seen.append((event["type"], event["object"].metadata.name, event["object"].data["n"]))
        if event["type"] == "DELETED":
            stream.stop()
    assert seen == [("ADDED", "seen", "0"), ("MODIFIED", "seen", "1"), ("DELETED", "seen", "1")], seen


def pages(namespace: str) -> None:
    core = client.CoreV1Api()
    for number in range(5):
        labels = {"page": "yes"}
        core.create_namespaced_config_map(namespace, {"metadata": {"name": f"p{number}", "labels": labels}})
    first = core.list_namespaced_config_map(namespace, limit=2, field_selector="metadata.name!=stale")
    names, token = [one.metadata.name for one in first.items], first.metadata._continue
    while token:
        page = core.list_namespaced_config_map(
            namespace, limit=2, _continue=token, field_selector="metadata.name!=stale"
        )
        names += [one.metadata.name for one in page.items]
        token = page.metadata._continue
    assert names == ["p0", "p1", "p2", "p3", "p4"], names


def workloads(namespace: str) -> None:
    apps, core = client.AppsV1Api(), client.CoreV1Api()
    labels = {"app": "web"}
    container = client.V1Container(
        name="main", image="nginx", resources=client.V1ResourceRequirements(requests={"cpu": "0.5"})
    )
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels=labels), template=template)
    made = apps.create_namespaced_deployment(
        namespace, client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    )
    assert made.spec.replicas == 1
    assert made.spec.strategy.rolling_update.max_surge == "25%"
    assert made.spec.template.spec.containers[0].resources.requests == {"cpu": "500m"}
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    scale.spec.replicas = 3
    assert apps.replace_namespaced_deployment_scale("web", namespace, scale).spec.replicas == 3
    made = apps.read_namespaced_deployment("web", namespace)
    assert (made.spec.replicas, made.metadata.generation) == (3, 2)
    made.status.replicas = 3
    apps.replace_namespaced_deployment_status("web", namespace, made)
    assert apps.read_namespaced_deployment_status("web", namespace).status.replicas == 3
    ports = [client.V1ServicePort(port=80, target_port="http")]
    service = core.create_namespaced_service(
        namespace,
        client.V1Service(
            metadata=client.V1ObjectMeta(name="web"), spec=client.V1ServiceSpec(ports=ports, selector=labels)
        ),
    )
    assert service.spec.cluster_ip
    apps.delete_namespaced_deployment("web", namespace, propagation_policy="Foreground")
    going = apps.read_namespaced_deployment("web", namespace)
    assert going.metadata.finalizers == ["foregroundDeletion"]
    assert going.metadata.deletion_timestamp is not None


def manifests(namespace: str) -> None:
    create_from_yaml(client.ApiClient(), str(MANIFESTS / "kinds.yaml"), namespace=namespace)
    assert client.BatchV1Api().read_namespaced_cron_job("nightly", namespace).spec.suspend is False
    scaler = client.AutoscalingV1Api().read_namespaced_horizontal_pod_autoscaler("web", namespace)
    assert scaler.spec.target_cpu_utilization_percentage == 60
    binding = client.RbacAuthorizationV1Api().read_namespaced_role_binding("reader", namespace)
    assert binding.subjects[0].name == "robot"
    event = client.CoreV1Api().create_namespaced_event(
        namespace,
        client.CoreV1Event(
            metadata=client.V1ObjectMeta(name="e"),
            involved_object=client.V1ObjectReference(kind="Pod", name="bare", namespace=namespace),
            reason="Tried",
            type="Normal",
            action="Try",
            event_time=datetime.now(UTC),
            reporting_component="example.com/tries",
            reporting_instance="one",
        ),
    )
    assert client.EventsV1Api().read_namespaced_event("e", namespace).reason == event.reason


def custom(namespace: str) -> None:
    definition = yaml.safe_load((MANIFESTS / "box-crd.yaml").read_text())
    definition["metadata"]["name"] = "boxes.client.setpoint.dev"
    definition["spec"]["group"] = "client.setpoint.dev"
    extensions = client.ApiextensionsV1Api()
    extensions.create_custom_resource_definition(definition)
    stream = watch.Watch()
    for event in stream.stream(
        extensions.list_custom_resource_definition,
        field_selector="metadata.name=boxes.client.setpoint.dev",
        timeout_seconds=SECONDS,
    ):
        conditions = event["object"].status.conditions or []
        if any(one.type == "Established" and one.status == "True" for one in conditions):
            stream.stop()
    custom_api = client.CustomObjectsApi()
    where = ("client.setpoint.dev", "v1", namespace, "boxes")
    box = {"apiVersion": "client.setpoint.dev/v1", "kind": "Box", "metadata": {"name": "one"}}
    box["spec"] = {"text": "hello", "unknown": 1}
    made = eventually(lambda: custom_api.create_namespaced_custom_object(*where, box))
    assert made["spec"] == {"text": "hello", "size": 1}
    custom_api.patch_namespaced_custom_object_status(*where, "one", {"status": {"text": "hello"}})
    assert custom_api.get_namespaced_custom_object(*where, "one")["status"] == {"text": "hello"}
    assert len(custom_api.list_namespaced_custom_object(*where)["items"]) == 1
    assert custom_api.get_namespaced_custom_object_scale(*where, "one")["spec"] == {"replicas": 1}
    bad = {**box, "metadata": {"name": "bad"}, "spec": {"text": "UPPER"}}
    assert code(lambda: custom_api.create_namespaced_custom_object(*where, bad))[0] == 422


def eventually(call: object) -> object:
    """A definition is served a moment after it says so: ask until it is, a number of times."""
    for _ in range(200):
        try:
            return call()
        except ApiException as refused:
            if refused.status != 404:
                raise
        client.VersionApi().get_code()  # takes its time
    return call()


def dynamically(namespace: str) -> None:
    found = dynamic.DynamicClient(client.ApiClient())
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    intent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    applied = maps.server_side_apply(intent, namespace=namespace, field_manager="one")
    assert applied.metadata.managedFields[0].operation == "Apply"
    other = {**intent, "data": {"a": "2"}}
    try:
        maps.server_side_apply(other, namespace=namespace, field_manager="two")
    except ConflictError as refused:
        told = refused.summary()
    else:
        told = "nothing"
    assert 'conflict with "one": .data.a' in told, told
    forced = maps.server_side_apply(other, namespace=namespace, field_manager="two", force_conflicts=True)
    assert forced.data.a == "2"
    boxes = found.resources.get(api_version="client.setpoint.dev/v1", kind="Box")
    box = {"apiVersion": "client.setpoint.dev/v1", "kind": "Box", "metadata": {"name": "two"}}
    boxes.create(body={**box, "spec": {"text": "dynamic"}}, namespace=namespace)
    assert boxes.get(name="two", namespace=namespace).spec.size == 1
    for event in boxes.watch(namespace=namespace, timeout=SECONDS):
        if event["object"].metadata.name == "two":
            break
    patch = {"spec": {"size": 2}}
    changed = boxes.patch(
        name="two", namespace=namespace, body=patch, content_type="application/merge-patch+json"
    )
    assert changed.metadata.generation == 2
    boxes.delete(name="two", namespace=namespace)
    try:
        boxes.get(name="two", namespace=namespace)
    except NotFoundError:
        pass
    else:
        raise AssertionError("it is still there")


def questions() -> None:
    assert client.VersionApi().get_code().major == "1"
    assert "apps" in [group.name for group in client.ApisApi().get_api_versions().groups]
    attributes = client.V1ResourceAttributes(verb="get", resource="pods")
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
    )
    answer = client.AuthorizationV1Api().create_self_subject_access_review(review)
    assert answer.status.allowed


if __name__ == "__main__":
    main(*sys.argv[1:])
