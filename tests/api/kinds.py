"""Custom resources that use, between them, all that a schema can say; the real server must take each.

Read by ``test_crd.py`` and by ``tests/conformance/test_crds.py``.
"""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

from setpoint.api import (
    Bounds,
    Condition,
    CustomResource,
    Description,
    Duration,
    EmbeddedResource,
    Format,
    Immutable,
    IntOrString,
    LabelSelector,
    Length,
    ListType,
    MapType,
    MicroTime,
    Model,
    Nullable,
    ObjectMeta,
    Pattern,
    PreserveUnknown,
    PrinterColumn,
    Quantity,
    Rule,
    ScalePaths,
    Time,
    field,
)
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import Affinity, Container, PodTemplateSpec, ResourceRequirements, Volume

# The example of the README.


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


# Every type, every marker.


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 9


class Endpoint(Model):
    """One place to reach."""

    host: Annotated[str, Format("hostname")]
    port: Annotated[int, Format("int32"), Bounds(ge=1, le=65535)] = 443
    """Where it listens."""
    path: str | None = None


class Window(Model, rules=[Rule("self.low <= self.high", message="low is above high", field_path=".low")]):
    low: int = 0
    high: int = 10


class SamplerSpec(Model):
    """All that can be said."""

    # Types.
    text: str
    """What it says,
    on two lines."""
    count: int
    share: float = 0.5
    switch: bool = False
    data: bytes = b"\x00"
    colour: Colour = Colour.RED
    level: Level | None = None
    mode: Literal["fast", "safe"] = "safe"
    amount: Quantity = Quantity("100m")
    since: Time | None = None
    exact: MicroTime | None = None
    patience: Duration = Duration("1h30m")
    target: IntOrString = "25%"
    anything: Any = None
    table: dict[str, Any] | None = None
    labels: dict[str, str] = {}
    limits: dict[str, Quantity] | None = None
    matrix: list[list[int]] | None = None
    sparse: list[int | None] | None = None
    nested: dict[str, list[Endpoint]] | None = None
    selector: LabelSelector | None = None
    window: Window = Window()
    narrow: Window = Window(low=4)
    made: list[str] = field(default_factory=list)
    metadata: ObjectMeta | None = None
    irregular_url: str | None = field(name="irregularURL", default=None)
    from_: str | None = None

    # Markers.
    above: Annotated[float, Bounds(gt=0, lt=1)] = 0.1
    dozens: Annotated[int, Bounds(multiple_of=12)] = 12
    short: Annotated[str, Length(min=1, max=8), Pattern("^[a-z]+$")] = "short"
    few: Annotated[list[Annotated[str, Length(max=63)]], Length(max=3), ListType("set")] = []
    small: Annotated[dict[str, str], Length(min=0, max=2), MapType("atomic")] = {}
    plain: Annotated[list[str], ListType("atomic")] = ["a", "b"]
    endpoints: Annotated[list[Endpoint], ListType("map", keys=["host", "port"]), Length(max=16)] = []
    described: Annotated[str | None, Description("Said by a marker.")] = None
    fixed: Annotated[str, Immutable(), Length(max=100)] = "fixed"
    forever: Annotated[Endpoint, Immutable("an endpoint is for ever")] | None = None
    null: Annotated[int | None, Nullable()] = None
    odd: Annotated[
        int,
        Rule(
            "self % 2 == 1",
            message="must be odd",
            message_expression="'even: ' + (self > 9 ? 'big' : 'small')",
            reason="FieldValueForbidden",
        ),
    ] = 1
    grows: Annotated[int, Rule("!oldSelf.hasValue() || self >= oldSelf.value()", optional_old_self=True)] = 0
    loose: Annotated[Endpoint, PreserveUnknown()] | None = None
    embedded: Annotated[dict[str, Any], EmbeddedResource()] | None = None


class SamplerStatus(Model):
    replicas: int = 0
    selector: str | None = None
    phase: Literal["Pending", "Ready"] | None = None
    observed_generation: int | None = None
    conditions: list[Condition] = []


class Sampler(
    CustomResource,
    group="test.setpoint.dev",
    version="v1",
    plural="samplers",
    singular="sampler",
    short_names=["smp"],
    categories=["all", "setpoint"],
    namespaced=True,
    rules=[Rule("self.metadata.name.size() <= 40", message="the name is too long")],
    printer_columns=[
        PrinterColumn("Count", ".spec.count", description="How many"),
        PrinterColumn("Share", ".spec.share", format="double"),
        PrinterColumn("Phase", ".status.phase"),
        PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Since", ".spec.since", priority=1),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
    ],
    scale=ScalePaths(
        spec_path=".spec.count", status_path=".status.replicas", selector_path=".status.selector"
    ),
    selectable_fields=[".spec.colour", ".spec.switch", ".spec.count"],
    annotations={"example.com/owner": "tests"},
):
    """A sample of everything."""

    spec: SamplerSpec
    status: SamplerStatus = SamplerStatus()


# Kubernetes' own types inside ours.


class RunnerSpec(Model):
    template: PodTemplateSpec
    containers: list[Container] = []
    volumes: list[Volume] | None = None
    affinity: Affinity | None = None
    resources: ResourceRequirements | None = None
    deployment: Deployment | None = None


class Runner(CustomResource, group="test.setpoint.dev", version="v1"):
    spec: RunnerSpec


# A spec that need not be given, no status, no namespace.


class SettingSpec(Model):
    size: Annotated[int, Bounds(ge=1)] = 3
    window: Window = Window(high=5)


class Setting(CustomResource, group="test.setpoint.dev", version="v1alpha1", namespaced=False):
    spec: SettingSpec = SettingSpec()


# Two versions of one kind.


class GadgetSpec(Model):
    size: int = 1


class GadgetSpecV1Beta1(Model):
    size: int | None = None
    deprecated_size: str | None = None


class Gadget(CustomResource, group="test.setpoint.dev", version="v1", short_names=["gd"]):
    spec: GadgetSpec = GadgetSpec()


class GadgetV1Beta1(
    CustomResource,
    group="test.setpoint.dev",
    version="v1beta1",
    kind="Gadget",
    storage=False,
    deprecated="test.setpoint.dev/v1beta1 Gadget is old; use v1",
):
    spec: GadgetSpecV1Beta1 = GadgetSpecV1Beta1()


# A group that Kubernetes has reserved, with leave.


class Approved(
    CustomResource,
    group="setpoint.k8s.io",
    version="v1",
    plural="approvals",
    annotations={"api-approved.kubernetes.io": "unapproved, for tests"},
):
    data: dict[str, str] = {}


ALL: list[tuple[type[CustomResource], ...]] = [
    (WebApp,),
    (Sampler,),
    (Runner,),
    (Setting,),
    (Gadget, GadgetV1Beta1),
    (Approved,),
]
