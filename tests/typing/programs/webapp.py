"""What an author writes, without a line for the type checker's sake: a kind, and the objects made from it."""

from typing import Annotated

from setpoint.api import Bounds, Condition, CustomResource, LabelSelector, Model, ObjectMeta, crd_of
from setpoint.kube.apps.v1 import Deployment, DeploymentSpec
from setpoint.kube.core.v1 import (
    Container,
    ContainerPort,
    PodSpec,
    PodTemplateSpec,
    Service,
    ServicePort,
    ServiceSpec,
)


class WebAppSpec(Model):
    image: str
    replicas: Annotated[int, Bounds(ge=0)] = 1
    port: Annotated[int, Bounds(ge=1, le=65535)] = 80


class WebAppStatus(Model):
    available_replicas: int = 0
    ready: bool = False
    conditions: list[Condition] = []


class WebApp(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: WebAppSpec
    status: WebAppStatus = WebAppStatus()


def desired_deployment(webapp: WebApp) -> Deployment:
    labels = {"app": webapp.metadata.name or ""}
    return Deployment(
        metadata=ObjectMeta(name=webapp.metadata.name, labels=labels),
        spec=DeploymentSpec(
            replicas=webapp.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels),
                spec=PodSpec(
                    containers=[
                        Container(
                            name="web",
                            image=webapp.spec.image,
                            ports=[ContainerPort(container_port=webapp.spec.port)],
                        )
                    ]
                ),
            ),
        ),
    )


def desired_service(webapp: WebApp) -> Service:
    return Service(
        metadata=ObjectMeta(name=webapp.metadata.name),
        spec=ServiceSpec(
            selector={"app": webapp.metadata.name or ""},
            ports=[ServicePort(port=80, target_port=webapp.spec.port)],
        ),
    )


def look(webapp: WebApp, deployment: Deployment) -> None:
    webapp.status.available_replicas = deployment.status.available_replicas or 0
    webapp.status.ready = webapp.status.available_replicas == webapp.spec.replicas


webapp = WebApp(metadata=ObjectMeta(name="shop"), spec=WebAppSpec(image="shop:1"))
look(webapp, desired_deployment(webapp))
assert not webapp.status.ready
assert desired_service(webapp).spec.ports
assert crd_of(WebApp)["metadata"]["name"] == "webapps.demo.setpoint.dev"
