"""A kind of one's own: a Python class, and the CustomResourceDefinition that it becomes.

    python examples/webapp.py                        prints the definition
    python examples/webapp.py | kubectl apply -f -   makes your cluster know the kind

No cluster is needed to print it.  ``make demo`` runs this.
"""

from typing import Annotated

from setpoint.api import Bounds, Condition, CustomResource, Model, PrinterColumn, crd_of, yaml


class WebAppSpec(Model):
    image: str
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
    printer_columns=[PrinterColumn("Image", ".spec.image"), PrinterColumn("Ready", ".status.ready")],
):
    """A web application: an image, and how many of it."""

    spec: WebAppSpec
    status: WebAppStatus = WebAppStatus()


if __name__ == "__main__":
    print(yaml.dump(crd_of(WebApp)), end="")
