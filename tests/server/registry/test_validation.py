"""What our registry says to the cases of ``validation_cases.py`` is what a real kube-apiserver said.

Where it is not, on purpose, ``DIFFERENT`` says why.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from setpoint.clock import SystemClock
from setpoint.server.registry.allocation import Allocations
from setpoint.server.registry.bootstrap import bootstrap
from setpoint.server.registry.builtins import builtin_resources
from setpoint.server.registry.registry import Registry
from setpoint.server.registry.requests import Ask
from setpoint.server.registry.served import Resources
from setpoint.server.statuses import StatusError
from setpoint.server.storage.memory import MemoryStore
from tests.server.registry.validation_answers import RECORDED, Answer, answer
from tests.server.registry.validation_cases import KINDS, Case, Object, cases, changed, name_of, right

# By kind, and by how the case's key begins: why our answer is another one.
_DRY = "a dry run of the real server hands out what it could not hand out in earnest; ours refuses it"
_EMPTY = "an empty list is not kept apart from none"
DIFFERENT: dict[tuple[str, str], str] = {
    ("Pod", 'create {"spec/containers/0/securityContext":{"privileged":true'): (
        "privileged containers are allowed, as in every real cluster; the recorded server was started without"
    ),
    ("ReplicationController", 'create {"metadata/name":{"$repeat":["a",254]}}'): "it alone counts bytes",
    ("ReplicationController", 'create {"metadata/name":"$drop","metadata/generateName"'): (
        "it alone does not look at generateName"
    ),
    ("Job", 'create {"metadata/name":'): "its labels are made, and refused, together with its template's",
    ("Job", 'create {"spec/successPolicy":{"rules":[]}}'): _EMPTY,
    ("Ingress", 'create {"spec/rules":[]}'): _EMPTY,
    ("Ingress", 'update {"spec/rules":[]}'): _EMPTY,
    ("LimitRange", 'create {"metadata/name":"$drop"}'): "it alone is given a name where it has none",
    ("Service", 'create {"spec/type":"NodePort","spec/ports":[{"port":80,"nodePort"'): _DRY,
    ("Service", 'create {"spec/type":"NodePort","spec/ports":[{"name":"a"'): (
        "two ports of one Service that want the same number are found before numbers are handed out"
    ),
    ("Service", 'create {"spec/clusterIP":"10.0.0.1"}'): _DRY,
    ("Service", 'create {"spec/type":"LoadBalancer","spec/externalTrafficPolicy":"Local"'): _DRY,
}


class Above(random.Random):
    """Gives a Service that asks for no address one that no case asks for."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return super().randrange(max(start, 100), stop, step)


class Asking:
    """A registry of its own, in which every kind's right object is made when it is first needed."""

    def __init__(self) -> None:
        self.resources = Resources(builtin_resources(Allocations(source=Above())))
        self.registry = Registry(MemoryStore(), self.resources, clock=SystemClock())
        self._there: dict[str, Object] = {}

    async def ask(self, case: Case) -> Answer:
        if case.verb == "create":
            sent = changed(right(case.kind, name_of(case.kind)), case.changes)
            return answer(*await self._send("create", case.kind, sent))
        there = self._there.get(case.kind)
        if there is None:
            code, there, _ = await self._send(
                "create", case.kind, right(case.kind, name_of(case.kind)), is_dry=False
            )
            assert code == 201, there
            self._there[case.kind] = there
        sent = changed(there, case.changes)
        return answer(
            *await self._send("update", case.kind, sent, "" if case.verb == "update" else case.verb)
        )

    async def _send(
        self, verb: str, kind: str, sent: Object, subresource: str = "", *, is_dry: bool = True
    ) -> tuple[int, dict[str, Any], list[str]]:
        known = KINDS[kind]
        group, _, version = known.api_version.rpartition("/")
        resource = self.resources.find(group, version, known.plural)
        assert resource is not None
        ask = Ask(
            verb,  # type: ignore[arg-type]  # the verbs come from a recording
            resource,
            namespace="default" if known.namespaced else "",
            name=name_of(kind) if verb == "update" else "",
            subresource=subresource,
            body=json.dumps(sent).encode(),
            content_type="application/json",
            query={"dryRun": "All"} if is_dry else {},
            user_agent="probe/1",
        )
        try:
            answered = await (self.registry.create if verb == "create" else self.registry.update)(ask)
        except StatusError as refused:
            return refused.code, refused.status, []
        return answered.code, json.loads(answered.data), list(answered.warnings)


def _is_different(case: Case) -> bool:
    return any(case.kind == kind and case.key.startswith(start) for kind, start in DIFFERENT)


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, str], Answer]:
    """Every answer of ours."""

    async def gather() -> dict[tuple[str, str], Answer]:
        asking = Asking()
        await bootstrap(asking.registry)
        return {(case.kind, case.key): await asking.ask(case) for case in cases()}

    return asyncio.run(gather())


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_is_refused_and_taken_as_by_a_real_server(
    kind: str, answers: dict[tuple[str, str], Answer]
) -> None:
    recorded = json.loads(RECORDED.read_text())[kind]
    wrong = {}
    for case in cases():
        if case.kind == kind and not _is_different(case) and answers[kind, case.key] != recorded[case.key]:
            wrong[case.key] = {"real": recorded[case.key], "ours": answers[kind, case.key]}
    assert not wrong, json.dumps(wrong, indent=1)


def test_every_difference_that_is_listed_is_one(answers: dict[tuple[str, str], Answer]) -> None:
    recorded = json.loads(RECORDED.read_text())
    real = {
        (kind, start)
        for case in cases()
        for kind, start in DIFFERENT
        if case.kind == kind
        and case.key.startswith(start)
        and answers[kind, case.key] != recorded[kind][case.key]
    }
    assert set(DIFFERENT) == real
