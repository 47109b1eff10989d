"""Bystanders (O14): whether other objects of the operator's kinds end as they would alone.

A plan may have bystanders: objects that are there before the first step, and that no step is about.  One has
the name of the object that the steps are about, in another namespace (``ELSEWHERE``); one has another name,
in the same namespace.

1. After every step the state is that of the steps without bystanders and that of each bystander alone, put
   together.  That finds a list of children that includes those of siblings, and a name outside of the cluster
   that says too little.
2. In another namespace, alone, as much is made as in the first: as many objects of each resource, and the
   same fields in its status that are not empty.  That finds a namespace that is written in the code.  Names
   and values may differ, for they may be made from the namespace.

What the user does to other objects (a Secret that the spec names) is done for each bystander, too.

Objects that several ask for (a shared ConfigMap) are no difference as long as all ask for the same; who owns
them is not compared then.  Bystanders cost four short runs without faults, and one of the whole life.

Planned and asked by ``prove.py``.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from setpoint.testing.proof.oracles import Finding, Reference
from setpoint.testing.proof.plans import Create, Pass, Plan, Step
from setpoint.testing.proof.states import Masked, difference, leaves, mask, varying
from setpoint.testing.proof.trace import USER, Run, State
from setpoint.testing.proof.world import Prepared

ELSEWHERE: Final = "elsewhere"  # the other namespace
BESIDE: Final = "-beside"  # follows the name of the object, whose name is then the beginning of another
_SKIPPED: Final = "bystanders"
_GENERATED: Final = re.compile(r"(.*\*)\d+")
_NUMBER: Final = re.compile(r"(<uid of [^<>]*\*)\d+>")
_NOBODYS: Final = "<uid of nobody>"

Generated: TypeAlias = list[tuple[str, Any]]  # how its name begins, and the object


class Bystanders:
    """Those of one operator, and how each ends alone."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._runs: dict[bytes, Run] = {}
        self._kinds = {(kind.group, kind.kind) for kind in prepared.make().kinds}

    def __repr__(self) -> str:
        return f"<Bystanders: {len(self._runs)} runs>"

    def plan(self, reference: Reference, skipped: dict[str, str]) -> Plan | None:
        """The steps of a reference with bystanders; None where there can be none.

        Which are left out is noted in ``skipped``, and why: the server refuses them, or they do not come to
        rest alone where the steps are helped by objects that they do not have.
        """
        usual, is_helped = reference.run.plan, _is_helped(reference)
        chosen: list[Create] = []
        for group in bystanders_of(usual.steps, self._is_primary):
            alone = self._alone(group, usual)
            names = tuple(f"{step} (" for step in group)
            refused = (each for each in alone.refused if each.startswith(names))
            why = next(refused, "") or (_restless(alone) if is_helped else "")
            if why:
                skipped[f"{_SKIPPED}: {group[-1]}"] = f"it cannot be there alone: {why}"
            else:
                chosen += group
        return msgspec.structs.replace(usual, bystanders=tuple(chosen)) if chosen else None

    def judge(self, run: Run, reference: Reference) -> list[Finding]:
        """What is not as it would be alone; at most one finding."""
        groups = grouped(run.plan.bystanders)
        alone = [self._alone(group, run.plan) for group in groups]
        found = _unsettled(run, alone, groups) or (
            None if _is_helped(reference) else self._otherwise(run.plan, groups[0], alone[0])
        )
        if found is not None:
            return [found]
        masked = self._masked(run.plan, groups)
        found = self._compare(run, reference.run, alone, masked)
        if found is not None and len(groups[0]) > 1:
            # An operator may do something for every namespace: then the others must have that one, too.
            namespace = groups[0][:1]
            usual = self._run(msgspec.structs.replace(run.plan, bystanders=namespace))
            alone[1:] = [self._alone((*namespace, *group), run.plan) for group in groups[1:]]
            found = self._compare(run, usual, alone, masked)
        return [] if found is None else [found]

    def _otherwise(self, plan: Plan, group: tuple[Create, ...], alone: Run) -> Finding | None:
        """That less or more is made in another namespace than in the first; None if it is not so."""
        if len(group) < 2:
            return None
        inside = next(
            step.object["metadata"]["namespace"]
            for step in plan.steps
            if isinstance(step, Create) and step.object["metadata"].get("namespace")
        )
        here = self._alone(tuple(Create(_moved(each.object, namespace=inside)) for each in group[1:]), plan)
        expected, got = _shape(here, inside), _shape(alone, ELSEWHERE)
        for what in sorted(expected.keys() | got.keys()):
            one, other = expected.get(what, 0), got.get(what, 0)
            if one != other:
                counts = f"in namespace {inside}: {one}, in namespace {ELSEWHERE}: {other}"
                return Finding("O14", f"alone in its cluster, {what} {counts}")
        return None

    def _masked(self, plan: Plan, groups: Iterable[tuple[Create, ...]]) -> Masked:
        """What the operator draws by chance for bystanders; nothing, where it draws nothing for others."""
        masked: Masked = frozenset()
        for group in groups if self._prepared.masked else ():
            runs = [
                self._alone(group, msgspec.structs.replace(plan, seed=plan.seed + more)) for more in (0, 1)
            ]
            for points in zip(*(run.checkpoints for run in runs), strict=False):
                masked |= varying([point.state for point in points])
        return masked

    def _alone(self, group: tuple[Create, ...], plan: Plan) -> Run:
        """These alone, with what the user does to other objects meanwhile."""
        steps = tuple(step for step in plan.steps if not _is_about(step, self._is_primary))
        return self._run(Plan(steps, (), plan.seed, bystanders=group))

    def _run(self, plan: Plan) -> Run:
        key = msgspec.json.encode(plan)
        if key not in self._runs:
            self._runs[key] = self._prepared.run(plan)
        return self._runs[key]

    def _compare(self, run: Run, usual: Run, alone: list[Run], masked: Masked) -> Finding | None:
        """The first step after which the state is not that of all parts alone, and what differs then."""
        steps, others = {point.step: point for point in usual.checkpoints}, 0
        for point in run.checkpoints:
            taken = run.plan.steps[point.step - 1 : point.step] if point.step else ()
            others += sum(not _is_about(step, self._is_primary) for step in taken)
            if point.is_blind or point.step not in steps or not steps[point.step].is_settled:
                continue
            parts = [_Part.of(usual, steps[point.step].state)]
            parts += [_Part.of(each, each.checkpoints[others].state) for each in alone]
            if lines := _differences(parts, point.state, masked):
                what = f"after {point.what!r}, with {_named(run.plan.bystanders)} there as well: {lines[0]}"
                return Finding("O14", what, tuple(lines[1:]))
        return None

    def _is_primary(self, api_version: str, kind: str) -> bool:
        return (api_version.rpartition("/")[0], kind) in self._kinds


def bystanders_of(steps: Iterable[Step], is_primary: Callable[[str, str], bool]) -> list[tuple[Create, ...]]:
    """The bystanders of a life: in another namespace, one of every kind; in the same, one of the first."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for step in steps:
        if isinstance(step, Create) and _is_about(step, is_primary) and "name" in step.object["metadata"]:
            first.setdefault((step.object["apiVersion"], step.object["kind"]), step.object)
    found: list[tuple[Create, ...]] = []
    inside = [obj for obj in first.values() if obj["metadata"].get("namespace")]
    if inside:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}}
        found.append((Create(namespace), *(Create(_moved(obj, namespace=ELSEWHERE)) for obj in inside)))
    beside = [_moved(obj, name=f"{obj['metadata']['name']}{BESIDE}") for obj in list(first.values())[:1]]
    return [*found, *((Create(obj),) for obj in beside)]


def _is_about(step: Step, is_primary: Callable[[str, str], bool]) -> bool:
    """Whether a step is about an object that the operator is for."""
    if isinstance(step, Create):
        return is_primary(step.object["apiVersion"], step.object["kind"])
    return not isinstance(step, Pass) and is_primary(step.api_version, step.kind)


def _is_helped(reference: Reference) -> bool:
    """Whether there are other objects of the user's, which another namespace does not have."""
    return bool(reference.run.given) or any(
        write.by == USER and write.type == "ADDED" and write.resource not in reference.primaries
        for write in reference.run.writes
    )


def _shape(run: Run, namespace: str) -> dict[str, int]:
    """How many objects of each resource there are in a namespace or in none, and which fields the status of
    those has that the user made.
    """
    counts: dict[str, int] = {}
    asked = {write.place for write in run.writes if write.by == USER}
    for called, obj in run.checkpoints[0].state.items():
        resource, _, key = called.partition(" ")
        where, slash, _name = key.rpartition("/")
        if called == f"namespaces {namespace}" or (slash and "apiVersion" in obj and where != namespace):
            continue
        counts[f"objects of {resource}"] = counts.get(f"objects of {resource}", 0) + 1
        if called in asked:
            said = (".".join(path) for path, value in leaves(obj) if path[0] == "status" and value)
            counts |= {f"{field} of {resource}": 1 for field in said}
    return counts


def grouped(bystanders: Iterable[Create]) -> list[tuple[Create, ...]]:
    """Which of them belong together: the other namespace and what is in it, and each other one."""
    there = [each for each in bystanders if _is_elsewhere(each)]
    beside = [(each,) for each in bystanders if not _is_elsewhere(each)]
    return [tuple(there), *beside] if there else list(beside)


def _is_elsewhere(create: Create) -> bool:
    obj = create.object
    return ELSEWHERE in (obj["metadata"].get("namespace"), obj["metadata"].get("name"))


def _moved(obj: dict[str, Any], **metadata: str) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def _restless(run: Run) -> str:
    return next((point.why_not for point in run.checkpoints if not point.is_settled), "")


def _unsettled(run: Run, alone: Iterable[Run], groups: Iterable[tuple[Create, ...]]) -> Finding | None:
    """That it does not come to rest with bystanders, though it does with the steps alone."""
    for each, group in zip(alone, groups, strict=True):
        if why := _restless(each):
            metadata = group[-1].object["metadata"]
            where = f"{group[-1].object['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
            return Finding("O14", f"{where} does not come to rest, alone in its cluster: {why}")
    if why := _restless(run):
        return Finding("O14", f"it does not come to rest where there are others: {why}")
    return None


def _named(bystanders: Iterable[Create]) -> str:
    names = (each.object for each in bystanders if each.object["kind"] != "Namespace")
    return " and ".join(
        f"{obj['kind']} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}".replace(" /", " ")
        for obj in names
    )


class _Part(NamedTuple):
    """A state, and which of its objects the operator has written."""

    state: State
    written: frozenset[str]

    @classmethod
    def of(cls, run: Run, state: State) -> _Part:
        return cls(state, frozenset(write.place for write in run.writes if write.by != USER))

    def is_untouched(self, called: str) -> bool:
        """Whether it is as the user made it: then it is nothing that the operator asks for."""
        place = called if "/" in called else called.replace(" ", " /", 1)
        return "apiVersion" in self.state[called] and place not in self.written


def _differences(parts: list[_Part], got: State, masked: Masked) -> list[str]:
    """What is not as in the parts put together; a line each."""
    expected: State = {}
    shared: set[str] = set()
    untouched: set[str] = set()
    generated: Generated = []
    lines: list[str] = []
    for part in parts:
        named, made = _split(part.state, masked)
        generated += made
        for called, obj in named.items():
            if called not in expected or called in untouched:
                expected[called] = obj
                (untouched.add if part.is_untouched(called) else untouched.discard)(called)
            elif not part.is_untouched(called):
                shared.add(called)
                one, other = ({called: _unowned(each)} for each in (expected[called], obj))
                lines += [f"{line}, for two ask for it" for line in difference(one, other)]
    there, made = _split(got, masked)
    expected, there = (
        {called: _unowned(obj) if called in shared else obj for called, obj in state.items()}
        for state in (expected, there)
    )
    return lines or difference(expected | _numbered(generated), there | _numbered(made))


def _split(state: State, masked: Masked) -> tuple[State, Generated]:
    """What is named, and what has a name that the server made up; without chance, and without things outside
    that have no name in words.
    """
    state = {called: obj for called, obj in state.items() if _NOBODYS not in called}
    if masked:
        state = copy.deepcopy(state)
        mask(state, masked)
    named: State = {}
    generated: Generated = []
    for called, obj in state.items():
        if found := _GENERATED.fullmatch(called):
            generated.append((found[1], obj))
        else:
            named[called] = obj
    return named, generated


def _numbered(generated: Generated) -> State:
    """Objects with generated names, in an order that does not depend on which was made first."""

    def text(each: tuple[str, Any]) -> tuple[str, str]:
        return each[0], _NUMBER.sub(r"\1>", msgspec.json.encode(each[1], order="sorted").decode())

    counts: dict[str, int] = {}
    state: State = {}
    for prefix, data in sorted(map(text, generated)):
        counts[prefix] = counts.get(prefix, 0) + 1
        state[f"{prefix}{counts[prefix]}"] = msgspec.json.decode(data)
    return state


def _unowned(obj: dict[str, Any]) -> dict[str, Any]:
    """Without owners: of what several ask for, each is one."""
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name != "ownerReferences"}
    return {**obj, "metadata": metadata}
