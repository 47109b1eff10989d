"""What a user does with an operator, where nobody says: found by running it without faults.

For each kind that the operator is for, the life of one object (``workload.py``), without what the server does
not take, and with the deletion of a child of each sort that was made.  Of several kinds the lives are one
within the other: what is made first is there until all others are gone.  What is never changed or deleted so
is told: every field of a spec, and every sort of child, by name and with why.

Where a schema has very many fields, those are changed that the operator reads (``reads.py``), also when it
first does so after a change, and a few of the others.

Of kinds other than the first a schema may say too little.  Where the object is refused, or never comes to
rest when it is made, its kind is left out, and that is told.  A change that it does not come to rest after is
left out and told too, unless the operator fails by a mistake in its code.  All else is for oracles to judge.

Runs ``world.py``; asked by ``prove.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from setpoint.api.names import GroupVersionKind
from setpoint.testing.proof.controllers import owned
from setpoint.testing.proof.plans import Change, Create, Delete, Plan, Step
from setpoint.testing.proof.process import Subject
from setpoint.testing.proof.reads import recorded
from setpoint.testing.proof.states import leaves
from setpoint.testing.proof.trace import Checkpoint, Run
from setpoint.testing.proof.workload import choose, fields, served, usual_steps
from setpoint.testing.proof.world import Prepared

_END = 3  # steps: it is deleted, made again, and deleted while the operator is down
_ROUNDS: Final = 4  # of finding out what is read
_STEPS: Final = "give steps=… (--steps FILE)"


@dataclass(slots=True)
class Usual:
    """What a user does, kind by kind."""

    begins: list[Step] = field(default_factory=list)
    children: list[Step] = field(default_factory=list)
    ends: list[Step] = field(default_factory=list)
    creates: list[Step] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # kinds, fields and children, and why

    @property
    def steps(self) -> tuple[Step, ...]:
        return (*self.begins, *self.children, *self.ends)


def usual(prepared: Prepared, example: dict[str, Any] | None = None, *, seed: int = 0) -> Usual:
    """The life of an object of each kind; ``example`` is the spec of the first, or specs by kind."""
    operator = prepared.make()
    crds = primary(operator.crds(), operator.kinds)
    if not crds:
        raise ValueError(
            "the operator defines no kind to make objects of: say what a user does, with steps=… "
            "(--steps FILE)"
        )
    found = Usual()
    specs = _by_kind(crds, example)
    for number, crd in enumerate(crds):
        kind = _kind(crd)[1]
        name = "sample" if not number else f"sample-{number + 1}"
        life, run, unread = _life(prepared, crd, specs.get(kind), name, creates=found.creates, seed=seed)
        before, is_sure, left = len(found.creates), not number or kind in specs, list[tuple[Step, str]]()
        while not is_sure and (point := _in_vain(run, before)):  # those that follow may be so because of it
            vain = point.step - 1 - before
            left.append((life[vain], f"it does not come to rest then: {point.why_not}"))
            life = (*life[:vain], *life[vain + 1 :])
            run = prepared.run(Plan((*found.creates, *life), (), seed))
        refused = {taken - before: why for taken, why in _refused(run).items()}
        if 0 in refused and is_sure:
            why = (
                "the schema says too little to make one" if kind not in specs else "the example is not right"
            )
            raise ValueError(
                f"{refused[0]}: {why}; give example={{…}} (--example JSON), a spec that the server takes, or "
                "steps=… (--steps FILE)"
            )
        if not is_sure and (why := refused.get(0) or _restless(run, before)):
            found.skipped[kind] = f'{why}; give example={{"{kind}": {{…}}}} (--example JSON)'
            continue
        # Of several kinds, it is not known which of them the operator makes objects for.
        if len(crds) == 1 and kind not in specs and (why := _rejected(operator, crd, run, life[0])):
            raise ValueError(why)
        left += [(life[taken], f"the change is {why.partition(':')[0]}") for taken, why in refused.items()]
        _add(found, life, refused, run)
        found.skipped |= _unchanged(crd, [step for step in life if step in found.begins], left, unread)
    return found


def _life(
    prepared: Prepared, crd: dict[str, Any], spec: Any, name: str, *, creates: Sequence[Step], seed: int
) -> tuple[tuple[Step, ...], Run, dict[str, str]]:
    """What is done with one object, a run of it, and which fields are not changed in it, and why."""
    group, kind = _kind(crd)
    _api_version, _kind_name, schema = served(crd)
    reads: frozenset[str] = frozenset()
    for _ in range(_ROUNDS):
        whole = usual_steps(crd, spec, name=name)
        unread = choose(schema, _created(whole), reads)
        life = usual_steps(crd, spec, name=name, without=unread) if unread else whole
        plan = Plan((*creates, *life), (), seed)
        if not unread:
            return life, prepared.run(plan), {}
        with recorded() as seen:
            run = prepared.run(plan)
        paths = seen.of(group, kind)
        known, reads = reads, reads | {path.partition(".")[2] for path in paths if path.startswith("spec.")}
        if reads == known:
            break
    return life, run, unread


def _created(steps: Sequence[Step]) -> dict[str, Any]:
    """The spec of the object that is made first."""
    spec: dict[str, Any] = next(step.object["spec"] for step in steps if isinstance(step, Create))
    return spec


def _rejected(operator: Subject, crd: dict[str, Any], run: Run, create: Step) -> str:
    """That an operator which makes objects makes none of this one, whatever becomes of its spec: then only
    its errors are tried, and nothing is proven.  "" if it makes some, or does nothing, as oracles tell.
    """
    _api_version, kind, schema = served(crd)
    resource = f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"
    has_made = any(write.type == "ADDED" and write.by.startswith("operator") for write in run.writes)
    is_still = all(point.is_settled for point in run.checkpoints)
    errors = [look.error for look in run.looks if look.error]
    makes = sorted(owned(operator) - {resource, "events", "events.events.k8s.io"})
    if has_made or not is_still or not makes or not (run.effects or errors) or not isinstance(create, Create):
        return ""
    said = [*errors, *_messages(run, resource)]
    spec = create.object["spec"]
    named = [
        name
        for name in schema.get("properties", {})
        if any(_has_word(text, name) or _has_word(text, _snake(name)) for text in said)
    ]
    fields = ", ".join(f'"{name}": …' for name in named or schema.get("properties", {}))
    why = f" ({said[0]})" if said else ""
    return (
        f"nothing is proven: the operator makes no {' and no '.join(makes)} of the generated {kind} "
        f"{msgspec.json.encode(spec).decode()}{why}; give example={{{fields}}} (--example JSON), a spec that "
        "it accepts, or steps=… (--steps FILE)"
    )


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _messages(run: Run, resource: str) -> list[str]:
    """What the status of the object says: its conditions first, that are not true."""
    texts: list[str] = []
    for point in run.checkpoints:
        for called, obj in point.state.items():
            status = obj.get("status") if called.startswith(f"{resource} ") else None
            texts += [
                f"{condition.get('reason', '')}: {condition.get('message', '')}"
                for condition in (status or {}).get("conditions") or ()
                if condition.get("status") != "True"
            ]
            texts += [value for path, value in leaves(status or {}) if isinstance(value, str) and value]
    return list(dict.fromkeys(texts))


def _add(found: Usual, life: tuple[Step, ...], refused: dict[int, str], run: Run) -> None:
    found.creates.append(life[0])
    found.begins += [step for taken, step in enumerate(life[:-_END]) if taken not in refused]
    children, skipped = _children(run)
    found.children += [step for step in children if step not in found.children]
    found.skipped |= skipped
    # The end of a life stays, refused or not: that it cannot be made again is for oracles to judge.
    found.ends[:0] = life[-_END:]


def primary(crds: Sequence[dict[str, Any]], kinds: Sequence[GroupVersionKind]) -> Sequence[dict[str, Any]]:
    """The definitions of what the operator is for; the first, where it says of none that it is."""
    known = {(kind.group, kind.kind) for kind in kinds}
    return [crd for crd in crds if _kind(crd) in known] or crds[:1]


def _kind(crd: dict[str, Any]) -> tuple[str, str]:
    return crd["spec"]["group"], crd["spec"]["names"]["kind"]


def _by_kind(crds: Sequence[dict[str, Any]], example: dict[str, Any] | None) -> dict[str, Any]:
    """The specs to begin with, of those kinds that one was given for."""
    kinds = [_kind(crd)[1] for crd in crds]
    if example is None:
        return {}
    if example and example.keys() <= set(kinds):
        return example
    _api_version, first, schema = served(crds[0])
    is_open = "properties" not in schema or schema.get("x-kubernetes-preserve-unknown-fields", False)
    unknown = example.keys() - schema.get("properties", {}).keys()
    if unknown and not (is_open and unknown.isdisjoint(kinds)):
        wrong = ", ".join(sorted(unknown.difference(kinds) or unknown))
        raise ValueError(
            f"the example: {wrong}: {first} has no such field; give example={{…}} "
            f"(--example JSON), the spec of a {first}, or specs by kind, of {', '.join(kinds)}"
        )
    return {first: example}


def _unchanged(
    crd: dict[str, Any],
    taken: Sequence[Step],
    left: Sequence[tuple[Step, str]],
    unread: dict[str, str],
) -> dict[str, str]:
    """The fields of a spec that none of the steps that are ``taken`` changes, and why; some were ``left``,
    others are ``unread``.
    """
    _api_version, kind, schema = served(crd)
    spec = _created(taken)
    changes = [step for step in taken if isinstance(step, Change)]
    patches = [step.patch["spec"] for step in changes]
    misused = {name for step in changes if step.may_fail for name in step.patch["spec"]}
    reasons = [(step.patch["spec"], why) for step, why in left if isinstance(step, Change)]
    found = {}
    for path, patch, why_not in fields(schema, spec):
        if patch not in patches and path not in misused:
            refusal = next((why for refused, why in reasons if refused == patch), why_not)
            why = unread.get(path, refusal)
            found[f"{kind} spec.{path}"] = f"{why}; {_STEPS}"
    if schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        found[f"{kind} spec"] = f"the schema does not say what is in it; {_STEPS}"
    return found


def _children(run: Run) -> tuple[list[Step], dict[str, str]]:
    """Deletions of what the operator makes: each comes back; and which of its sorts have none, and why."""
    kinds: dict[str, Step] = {}
    skipped: dict[str, str] = {}
    for write in run.writes:
        if write.type != "ADDED" or not write.by.startswith("operator"):
            continue
        obj = msgspec.json.decode(write.data)
        if "apiVersion" not in obj:
            continue  # it is outside
        if obj["metadata"].get("generateName"):
            skipped[write.resource] = "the server makes up its name"
        elif not write.namespace:
            skipped[write.resource] = f"it is in no namespace; {_STEPS}"
        else:
            kinds[write.resource] = Delete(obj["apiVersion"], obj["kind"], write.name, write.namespace)
    return list(kinds.values()), {
        f"deletion of {resource}": why for resource, why in skipped.items() if resource not in kinds
    }


def _refused(run: Run) -> dict[int, str]:
    """Which of the user's steps were refused, and how."""
    refused: dict[int, str] = {}
    taken = 0
    for line in run.lines:
        if line.lane != "user":
            continue
        if line.what.startswith("refused with "):
            refused[taken - 1] = line.what
        else:
            taken += 1
    return refused


def _restless(run: Run, before: int) -> str:
    """Why the object that is made after so many steps does not come to rest; "" if it does, or if that is for
    a mistake, which oracles judge.
    """
    point = next((each for each in run.checkpoints if each.step == before + 1), None)
    if point is None or point.is_settled or _is_mistaken(run, point):
        return ""
    return f"after {point.what!r}: {point.why_not}"


def _in_vain(run: Run, before: int) -> Checkpoint | None:
    """The first change of the life that begins after so many steps that does not come to rest, and by no
    mistake; None if all do, or the object itself does not.
    """
    for point in run.checkpoints:
        if point.step > before and not point.is_settled:
            is_change = isinstance(run.plan.steps[point.step - 1], Change)
            if not is_change or _is_mistaken(run, point):
                continue
            return None if _restless(run, before) else point
    return None


def _is_mistaken(run: Run, point: Checkpoint) -> bool:
    """Whether it is for a mistake in the code that the operator has not come to rest."""
    failed = [look for look in run.looks if point.began <= look.time <= point.time]
    return bool(run.spins or run.errors) or any(look.is_bug for look in failed)
