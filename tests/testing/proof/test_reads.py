"""The promises of ``proof/reads.py`` and ``workload.choose``: the life of an object follows what is read."""

from __future__ import annotations

import msgspec

from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.api.model import Model as Base
from setpoint.controller.context import Context
from setpoint.kube.batch.v1 import Job, JobSpec, JobTemplateSpec
from setpoint.kube.core.v1 import PodTemplateSpec
from setpoint.operator import Operator
from setpoint.testing.proof.plans import Change
from setpoint.testing.proof.reads import recorded
from setpoint.testing.proof.usual import usual
from setpoint.testing.proof.workload import choose
from setpoint.testing.proof.world import Prepared

EXAMPLE = {
    "template": {"spec": {"template": {"spec": {"containers": [{"name": "a"}], "restartPolicy": "Never"}}}}
}


class Port(Model):
    name: str = "http"
    number: int = 80


class BatchSpec(Model):
    suspend: bool = False
    note: str = "a"
    late: int = 1
    ports: list[Port] = []
    template: JobTemplateSpec


class Batch(CustomResource, group="test.setpoint.dev", version="v1"):
    spec: BatchSpec


def batches() -> Operator:
    operator = Operator("batches")

    @operator.controller(Batch, owns=[Job])
    async def reconcile(batch: Batch, ctx: Context) -> None:
        if batch.spec.suspend:
            assert batch.spec.late, "which is read only then"
            return
        job = Job(metadata=ObjectMeta(name=batch.metadata.name), spec=batch.spec.template.spec)
        await ctx.apply(job)

    return operator


def test_what_is_read_is_noted_by_its_path_and_what_is_handed_on_as_a_whole() -> None:
    template = JobTemplateSpec(spec=JobSpec(template=PodTemplateSpec()))
    batch = Batch(metadata=ObjectMeta(name="b"), spec=BatchSpec(ports=[Port()], template=template))
    with recorded() as reads:
        assert [port.number for port in batch.spec.ports] == [80]
        assert msgspec.json.encode(batch.spec.template)
    kind = ("test.setpoint.dev", "Batch")
    assert reads.of(*kind) == {"spec", "spec.ports", "spec.ports[].number", "spec.template"}
    assert batch.spec.suspend is False
    assert "spec.suspend" not in reads.of(*kind), "nothing is noted afterwards"
    assert "__getattribute__" not in vars(Base)


def test_a_life_changes_what_the_operator_reads_and_a_few_fields_of_the_rest() -> None:
    made = usual(Prepared.of(batches), EXAMPLE)
    changed = [step.patch["spec"] for step in made.steps if isinstance(step, Change) and "spec" in step.patch]
    assert {"suspend": True} in changed
    assert {"late": 2} in changed, "it is first read after a change"
    assert any("template" in patch for patch in changed), "what is handed on is changed, too"
    assert len(made.steps) < 40, "however many fields a PodTemplate has"
    whole = [why for why in made.skipped.values() if "reads spec.template.spec as a whole" in why]
    assert len(whole) > 100, "and what is not changed is named with why"


def test_of_a_small_schema_every_field_is_changed() -> None:
    schema = {"properties": {f"f{number}": {"type": "integer"} for number in range(30)}}
    assert choose(schema, {}, ()) == {}


def test_the_number_of_changes_depends_on_what_is_read_and_not_on_the_size_of_the_schema() -> None:
    def changed(size: int) -> int:
        inner = {f"f{number}": {"type": "integer"} for number in range(size)}
        part = {"type": "object", "properties": inner}
        schema = {"properties": {"whole": part, "unread": part, "read": {"type": "integer"}}}
        return 2 * size + 1 - len(choose(schema, {}, {"whole", "read"}))

    assert changed(100) == changed(1_000) == 9
