"""Keeps a Deployment and a Service for every WebApp, and says in its status how it goes.

    setpoint demo                                           shows it at work, in a cluster of its own
    setpoint dev examples/webapp/webapp.py                  runs it so, loaded again whenever you save it
    setpoint run examples/webapp/webapp.py --install-crds   runs it on your cluster
    python examples/webapp/webapp.py                        prints the definition of its kind

Change the Deployment by hand, or delete it, and it comes back: what is desired is applied again.  The same
operator written in the classic form, by hand, is in ``longhand.py``.
"""

from typing import Annotated

from setpoint import Context, Operator
from setpoint.api import (
    Bounds,
    Condition,
    CustomResource,
    LabelSelector,
    Length,
    Model,
    ObjectMeta,
    PrinterColumn,
    ScalePaths,
    Time,
    crd_of,
    set_condition,
    yaml,
)
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

# The kind.


class WebAppSpec(Model):
    image: Annotated[str, Length(min=1)]
    replicas: Annotated[int, Bounds(ge=0)] = 1
    port: Annotated[int, Bounds(ge=1, le=65535)] = 80


class WebAppStatus(Model):
    available_replicas: int = 0
    ready: bool = False
    conditions: list[Condition] = []


class WebApp(
    CustomResource,
    group="demo.setpoint.dev",
    version="v1",
    scale=ScalePaths(status_path=".status.availableReplicas"),
    printer_columns=[
        PrinterColumn("Image", ".spec.image"),
        PrinterColumn("Wanted", ".spec.replicas"),
        PrinterColumn("Available", ".status.availableReplicas"),
        PrinterColumn("Ready", ".status.ready"),
    ],
):
    """A web application: an image, and how many of it."""

    spec: WebAppSpec
    status: WebAppStatus = WebAppStatus()


# What there should be.


def labels_of(webapp: WebApp) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": webapp.metadata.name or "",
        "app.kubernetes.io/managed-by": "webapp-operator",
    }


def desired_deployment(webapp: WebApp) -> Deployment:
    labels = labels_of(webapp)
    web = Container(
        name="web", image=webapp.spec.image, ports=[ContainerPort(container_port=webapp.spec.port)]
    )
    return Deployment(
        metadata=ObjectMeta(name=webapp.metadata.name, namespace=webapp.metadata.namespace, labels=labels),
        spec=DeploymentSpec(
            replicas=webapp.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[web])),
        ),
    )


def desired_service(webapp: WebApp) -> Service:
    labels = labels_of(webapp)
    port = ServicePort(port=webapp.spec.port, target_port=webapp.spec.port)
    return Service(
        metadata=ObjectMeta(name=webapp.metadata.name, namespace=webapp.metadata.namespace, labels=labels),
        spec=ServiceSpec(selector=labels, ports=[port]),
    )


# How it goes.


def report(webapp: WebApp, deployment: Deployment, *, now: Time) -> None:
    """Put into the WebApp's status what its Deployment says."""
    seen = deployment.status
    available = seen.available_replicas or 0
    is_current = (seen.observed_generation or 0) >= (deployment.metadata.generation or 0)
    is_updated = (seen.updated_replicas or 0) == webapp.spec.replicas
    webapp.status.available_replicas = available
    webapp.status.ready = is_current and is_updated and available == webapp.spec.replicas
    condition = Condition(
        type="Ready",
        status="True" if webapp.status.ready else "False",
        reason="AllAvailable" if webapp.status.ready else "Progressing",
        message=f"{available} of {webapp.spec.replicas} are available",
        observed_generation=webapp.metadata.generation,
    )
    set_condition(webapp.status.conditions, condition, now=now)


# The operator.

operator = Operator("webapp-operator")


@operator.controller(WebApp, owns=[Deployment, Service])
async def reconcile(webapp: WebApp, ctx: Context) -> None:
    deployment = await ctx.apply(desired_deployment(webapp))  # ours, and no write if nothing changes
    await ctx.apply(desired_service(webapp))
    report(webapp, deployment, now=ctx.now())  # written at the end, if it changed


if __name__ == "__main__":
    print(yaml.dump(crd_of(WebApp)), end="")
