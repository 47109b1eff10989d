"""Plans drawn by Hypothesis: what a user does, from the kind's schema, and what goes wrong meanwhile.

    trial = Trial(make)

    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(trial.plans())
    def test_it_survives_whatever_is_drawn(plan: Plan) -> None:
        trial.check(plan)

``prove`` tries every fault at every place of one life of an object, then what Hypothesis draws of that life.
Here the life itself is drawn, of an object of the operator's first kind: specs with any value that the schema
allows, changes, deletions, waits, in any order; and up to two faults at places of that life.  Hypothesis
remembers what failed, and makes it smaller: fewer faults, fewer steps, simpler values.  A life without
faults, or in which a user comes in between, is held against a fresh start with its last spec (O4).  A plan
whose faults did not all strike counts neither for nor against: Hypothesis draws another in its place.

Hypothesis is not one of Setpoint's dependencies: who imports this has it.  Faults are drawn by ``drawn.py``,
as in ``prove``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

try:
    from hypothesis import currently_in_test_context, reject
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as missing:
    raise ImportError(
        "plans are drawn by Hypothesis, which is missing: pip install 'setpoint[prove]'"
    ) from missing

from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.controllers import Controllers
from setpoint.testing.proof.drawn import plans
from setpoint.testing.proof.fresh import FreshStarts
from setpoint.testing.proof.options import Options
from setpoint.testing.proof.oracles import Finding, Reference, ids
from setpoint.testing.proof.plans import Change, Create, Delete, Pass, Plan, Step
from setpoint.testing.proof.process import Subject, maker
from setpoint.testing.proof.prove import (
    checked,
    is_excused,
    masked_by_chance,
    real,
    usual_steps_of,
)
from setpoint.testing.proof.report import Failure, Report
from setpoint.testing.proof.sweep import combinable
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.usual import primary
from setpoint.testing.proof.workload import Schema, is_fixed, sample, served
from setpoint.testing.proof.world import Prepared

_WAITS = (5.0, 61.0, 3601.0)
_MOST_STEPS = 5


class Trial:
    """An operator, prepared once, and what it is tried with.

    ``example`` is a spec to begin with, where the schema says too little; all else is ``prove``'s.
    """

    def __init__(
        self,
        operator: Subject | Callable[[], Subject],
        *,
        example: dict[str, Any] | None = None,
        clouds: Sequence[Cloud] = (),
        always: Sequence[Callable[..., object]] = (),
        never: Sequence[Callable[..., object]] = (),
        at_most: Sequence[tuple[str, int]] = (),
        keeps: Sequence[str] = (),
        history: Sequence[str] = (),
        without: Sequence[str] = (),
        objects: Sequence[Any] = (),
        controllers: Controllers = False,
        allow_network: Sequence[str] = (),
        allow_program: Sequence[str] = (),
    ) -> None:
        make = maker(operator)
        made = make()
        self._name = made.name
        self._crds = primary(made.crds(), made.kinds)
        self._example = example
        told = Options(
            clouds=clouds,
            objects=objects,
            always=always,
            never=never,
            at_most=at_most,
            keeps=keeps,
            history=history,
            without=checked(without, ids(), "oracle"),
            controllers=controllers,
            allow_network=allow_network,
            allow_program=allow_program,
        )
        self._rules, self._how = told.rules, told.how
        self._without = frozenset(told.without)
        prepared = Prepared.of(
            make, clouds=clouds, objects=told.objects, controllers=controllers, allowed=self._how.allowed
        )
        usual = usual_steps_of(prepared, example) if self._crds else ()
        self._prepared = replace(prepared, masked=masked_by_chance(prepared, usual))
        self._fresh = FreshStarts(self._prepared)
        self._references: dict[bytes, Reference] = {}

    def __repr__(self) -> str:
        return f"<Trial of {self._name}>"

    # ---- what is drawn

    def lives(self) -> SearchStrategy[tuple[Step, ...]]:
        """What a user may do with one object, from its creation to its deletion."""
        if not self._crds:
            raise ValueError("the operator defines no kind to make objects of: say what a user does, steps=…")
        crd = self._crds[0]
        api_version, kind, schema = served(crd)
        metadata = {"name": "sample", "namespace": "default"}
        if crd["spec"].get("scope") == "Cluster":
            del metadata["namespace"]
        begin = self._example or sample(schema)
        delete = Delete(api_version, kind, "sample")

        def created(spec: dict[str, Any]) -> Step:
            body = {**begin, **spec}
            return Create({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": body})

        def changed(spec: dict[str, Any]) -> Step:
            return Change(api_version, kind, "sample", {"spec": spec})

        fields = {
            name: values(field) for name, field in schema.get("properties", {}).items() if not is_fixed(field)
        }
        specs = st.fixed_dictionaries({}, optional=fields)
        steps: list[Any] = [specs.filter(bool).map(changed), st.sampled_from(_WAITS).map(Pass)]
        if not fields:
            del steps[0]
        again = st.just(delete), specs.map(created)
        life = st.tuples(
            specs.map(created),
            st.lists(st.one_of(*steps, st.tuples(*again)), max_size=_MOST_STEPS),
        )
        return life.map(lambda drawn: (drawn[0], *_flat(drawn[1]), delete))

    def plans(self, *, steps: Sequence[Step] | None = None, most_faults: int = 2) -> SearchStrategy[Plan]:
        """Plans: of these steps, or of steps that are drawn too; with so many faults, or fewer."""
        lives = self.lives() if steps is None else st.just(tuple(steps))

        def struck(life: tuple[Step, ...]) -> SearchStrategy[Plan]:
            found = [fault for each in combinable(self._reference(life).run, life) for fault in each]
            return plans(life, st.sampled_from(found), most=most_faults) if found else st.just(Plan(life))

        return lives.flatmap(struck)

    # ---- how it is judged

    def check(self, plan: Plan) -> None:
        """Run a plan; AssertionError with the story if it is not survived, or if it shows nothing."""
        run, findings = self._judged(plan)
        for refused in self._prepared.refused:
            raise AssertionError(refused)
        wrong = real(findings)
        if findings and not wrong:
            if currently_in_test_context():
                reject()
            raise AssertionError(f"inconclusive: {plan}: {findings[0].what}")
        if wrong and not is_excused(plan, wrong):
            reference = self._reference(plan.steps).run
            failure = Failure(plan, wrong, run, reference=reference)
            raise AssertionError(str(Report(self._name, plan.steps, [failure], plans=1, how=self._how)))

    def _judged(self, plan: Plan) -> tuple[Run, list[Finding]]:
        reference = self._reference(plan.steps)
        if plan.faults:
            run = self._prepared.run(plan, reference=reference.run)
            return run, self._fresh.judge(run, reference, self._without)
        run = self._prepared.run(plan, probe_always=True)
        found = self._fresh.judge(run, reference, self._without)
        if not found and not run.effects and "O13" not in self._without:
            found = [Finding("O13", "the operator does nothing at all in these steps")]
        return run, found

    def _reference(self, steps: tuple[Step, ...]) -> Reference:
        key = msgspec.json.encode(steps)
        if key not in self._references:
            run = self._prepared.run(Plan(steps))
            self._references[key] = Reference(run, self._rules, self._prepared.primaries)
        return self._references[key]


def values(schema: Schema) -> SearchStrategy[Any]:
    """Values that a schema allows, as far as it says; where a pattern or a format rules, a known one."""
    if schema.get("enum"):
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            low = schema.get("minimum", 1 if schema.get("maximum", 1) >= 1 else schema["maximum"])
            return st.integers(low, min(schema.get("maximum", low + 3), low + 3))
        case "string" if not schema.get("format") and not schema.get("pattern"):
            least = max(1, schema.get("minLength", 1))
            return st.text("abc", min_size=least, max_size=min(schema.get("maxLength", least + 2), least + 2))
        case "array":
            least = schema.get("minItems", 0)
            most = min(schema.get("maxItems", least + 2), least + 2)
            return st.lists(values(schema.get("items", {})), min_size=least, max_size=most)
        case "object" if schema.get("properties"):
            return _objects(schema)
        case _:
            return st.just(sample(schema))


def _objects(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    properties, required = schema["properties"], set(schema.get("required", ()))
    drawn = {name: values(field) for name, field in properties.items()}
    return st.fixed_dictionaries(
        {name: each for name, each in drawn.items() if name in required},
        optional={name: each for name, each in drawn.items() if name not in required},
    )


def _flat(steps: list[Any]) -> list[Step]:
    found: list[Step] = []
    for each in steps:
        found += each if isinstance(each, tuple) else [each]
    return found
