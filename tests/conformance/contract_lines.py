"""The lines of the contract, each as something that can be shown to hold while a fault strikes.

A ``Line`` has two sides.  The operator's (``add_to``) is code that relies on the line; it may run in this
process or, as ``python -m tests.conformance.contract_lines FOLDER NAME NAMESPACE``, in another that a test
can kill or pause.  The user's is in three steps: ``before`` the fault, ``during`` it, and ``after`` it, which
ends when the line has been seen to hold.

The two meet in the cluster, and in a folder: what happens in an operator is written down in a journal, and
a gate keeps its reconciles from ending.  ``test_contract_faults.py`` brings lines and faults together.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Protocol

from setpoint.api import (
    Condition,
    CustomResource,
    MergePatch,
    Model,
    Object,
    ObjectMeta,
    crd_of,
    find_condition,
)
from setpoint.api.names import Key
from setpoint.cache import Timing
from setpoint.client.client import Client, ignore_not_found
from setpoint.controller import Request, Result, builder
from setpoint.controller.context import Context
from setpoint.errors import ApiError, SetpointError, TransportError
from setpoint.kube.core.v1 import ConfigMap, Secret
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.manager import Manager
from setpoint.operator import Operator
from setpoint.testing.waiting import eventually

# So that no test waits long when a watch has broken.
TIMING = Timing(first_wait=0.05, longest_wait=0.3)


# ---- what happened ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened in an operator."""

    at: float  # of a clock that all processes share
    who: str
    line: int
    what: str
    key: str = ""
    said: str = ""


class Journal:
    """What happened, in order, in all processes; and the gates at which reconciles are held."""

    def __init__(self, folder: Path, who: str) -> None:
        self.who = who
        self._folder = folder
        self._file = folder / "journal"

    def note(self, line: int, what: str, key: str = "", said: str = "") -> None:
        entry = json.dumps(asdict(Note(time.monotonic(), self.who, line, what, key, said)))
        with self._file.open("a") as file:
            file.write(entry + "\n")

    def notes(self, line: int, what: str = "", key: str = "", who: str = "") -> list[Note]:
        entries = self._file.read_text().splitlines() if self._file.exists() else []
        notes = [Note(**json.loads(entry)) for entry in entries]
        return [
            note
            for note in notes
            if note.line == line
            and (not what or note.what == what)
            and (not key or note.key == key)
            and (not who or note.who == who)
        ]

    def close_gate(self, line: int) -> None:
        self._gate(line).touch()

    def open_gate(self, line: int) -> None:
        self._gate(line).unlink(missing_ok=True)

    async def pass_gate(self, line: int) -> None:
        await eventually(lambda: not self._gate(line).exists(), timeout=60)

    def _gate(self, line: int) -> Path:
        return self._folder / f"gate-{line}"


class Stage(Protocol):
    """Where a line is shown: what its user can do."""

    @property
    def user(self) -> Client: ...

    @property
    def leader(self) -> str:
        """Who works just now."""

    async def crash(self) -> None:
        """Have the operator die without a word, where the fault did not do that already."""

    async def restart(self) -> None:
        """Have it come back, where nobody else has taken over."""

    async def end(self) -> None:
        """Have it end in order."""


# ---- a line ----------------------------------------------------------------------------------------


class Line:
    """One line; those below rely on ConfigMaps being copied to Secrets, unless they say otherwise."""

    number: ClassVar[int]
    workers: ClassVar[int] = 1

    def __init__(self, namespace: str, journal: Journal) -> None:
        self.namespace = namespace
        self.journal = journal

    # The operator's side.

    def add_to(self, manager: Manager) -> None:
        async def look(request: Request) -> Result | None:
            self.note("begin", request.name)
            try:
                return await self.reconcile(manager.client, request)
            finally:
                self.note("end", request.name)

        (
            builder(manager)
            .named(f"line-{self.number}")
            .for_(ConfigMap, namespaces=[self.namespace])
            .watches(Secret, self.concerns, namespaces=[self.namespace], metadata_only=False)
            .with_options(workers=self.workers)
            .complete(look)
        )

    def concerns(self, secret: Secret) -> list[Key]:
        return [Key(self.namespace, secret.metadata.name or "")]

    async def reconcile(self, client: Client, request: Request) -> Result | None:
        await self.copy(client, request)
        return None

    async def copy(self, client: Client, request: Request) -> None:
        original = await self.original(client, request)
        if original is None:
            await ignore_not_found(client.delete(Secret, request.name, namespace=self.namespace))
            return
        await self.pass_on(client, request, original)

    async def original(self, client: Client, request: Request) -> dict[str, str] | None:
        found = await ignore_not_found(client.get(ConfigMap, request.name, namespace=self.namespace))
        data = None if found is None else found.data or {}
        self.note("saw", request.name, "nothing" if data is None else data.get("value", ""))
        return data

    async def pass_on(self, client: Client, request: Request, data: dict[str, str]) -> None:
        encoded = {key: value.encode() for key, value in data.items()}
        await client.apply(Secret(metadata=self.named(request.name), data=encoded), force=True)

    # The user's side.

    async def before(self, at: Stage) -> None:
        await self.write(at, "a", value="old")
        await self.is_copied(at, "a", "old")

    async def during(self, at: Stage) -> None:
        await self.write(at, "a", value="new")

    async def after(self, at: Stage) -> None:
        await self.is_copied(at, "a", "new")

    # What both need.

    def named(self, name: str) -> ObjectMeta:
        return ObjectMeta(name=name, namespace=self.namespace)

    def note(self, what: str, key: str = "", said: str = "") -> None:
        self.journal.note(self.number, what, key, said)

    def notes(self, what: str = "", key: str = "", who: str = "") -> list[Note]:
        return self.journal.notes(self.number, what, key, who)

    async def write(self, at: Stage, name: str, **data: str) -> None:
        await at.user.apply(ConfigMap(metadata=self.named(name), data=data), force=True)

    async def is_copied(self, at: Stage, name: str, value: str) -> None:
        async def there() -> bool:
            secret = await at.user.get(Secret, name, namespace=self.namespace)
            return (secret.data or {}).get("value") == value.encode()

        await eventually(there, what=f"{name} is copied as {value}")

    async def is_no_more(self, at: Stage, name: str) -> None:
        async def gone() -> bool:
            found = await ignore_not_found(at.user.get(Secret, name, namespace=self.namespace))
            return found is None

        await eventually(gone, what=f"the copy of {name} is gone")


class OneAtATime(Line):
    """1. A key is never reconciled twice at once; changes meanwhile mean exactly one more look."""

    number = 1
    workers = 4

    def concerns(self, secret: Secret) -> list[Key]:
        del secret
        return []

    async def reconcile(self, client: Client, request: Request) -> Result | None:
        data = await self.original(client, request)
        if request.name == "a":
            await self.journal.pass_gate(self.number)
        while True:  # to fail would mean a look more, and looks are counted
            try:
                await self.pass_on(client, request, data or {})
            except (ApiError, TransportError):
                await asyncio.sleep(0.02)
            else:
                return None

    async def before(self, at: Stage) -> None:
        self.journal.close_gate(self.number)
        await self.write(at, "a", value="0")
        await eventually(lambda: self.notes("saw", "a", at.leader))

    async def during(self, at: Stage) -> None:
        for value in range(1, 5):
            await self.write(at, "a", value=str(value))

    async def after(self, at: Stage) -> None:
        await eventually(lambda: self.notes("saw", "a", at.leader))
        await self.write(at, "a", value="last")
        await self.write(at, "fence")  # when this is seen, so is all before it
        await eventually(lambda: self.notes("end", "fence", at.leader))
        assert len(self.notes("begin", "a", at.leader)) == 1, "it is in its worker's hands"
        is_there = self.notes("saw", "a", at.leader)[0].said == "last"
        self.journal.open_gate(self.number)
        await self.is_copied(at, "a", "last")
        await eventually(lambda: len(self.notes("begin", "a", at.leader)) == len(self.ended(at)))
        assert is_there or len(self.ended(at)) == 2, "however many changes, one more look"

    def ended(self, at: Stage) -> list[Note]:
        notes = [note for note in self.notes(key="a", who=at.leader) if note.what in ("begin", "end")]
        for one, other in pairwise(notes):
            assert (one.what, other.what) in (("begin", "end"), ("end", "begin")), "twice at once"
        return [note for note in notes if note.what == "end"]


class NothingIsLost(Line):
    """2. A change seen after a reconcile began leads to another reconcile."""

    number = 2

    async def reconcile(self, client: Client, request: Request) -> Result | None:
        data = await self.original(client, request)
        await self.journal.pass_gate(self.number)
        await self.pass_on(client, request, data or {})  # what it saw, old as it may be
        return None

    async def before(self, at: Stage) -> None:
        self.journal.close_gate(self.number)
        await self.write(at, "a", value="old")
        await eventually(lambda: self.notes("saw", "a", at.leader))

    async def after(self, at: Stage) -> None:
        await eventually(lambda: self.notes("saw", "a", at.leader))
        await self.write(at, "a", value="newer")  # one has read, and has not ended
        self.journal.open_gate(self.number)
        await self.is_copied(at, "a", "newer")
        assert self.notes("saw", "a", at.leader)[-1].said == "newer"


class OwnWrites(Line):
    """3. A reconcile never reads state older than its own controller's last write."""

    number = 3
    steps = 5

    async def reconcile(self, client: Client, request: Request) -> Result | None:
        """Count in a Secret to what is asked for, by patches that would not notice to be behind."""
        goal = int((await self.original(client, request) or {}).get("value", "0"))
        found = await ignore_not_found(client.get(Secret, request.name, namespace=self.namespace))
        count = 0 if found is None else int((found.data or {}).get("value", b"0"))
        self.note("read", request.name, str(count))
        if count >= goal:
            return None
        if found is None:
            await client.create(Secret(metadata=self.named(request.name), data={"value": b"1"}))
        else:
            patch = MergePatch({"stringData": {"value": str(count + 1)}})
            await client.patch(Secret, request.name, patch, namespace=self.namespace)
        self.note("wrote", request.name, str(count + 1))
        return Result(requeue_after=0)

    async def before(self, at: Stage) -> None:
        await self.write(at, "a", value=str(self.steps))
        await self.is_copied(at, "a", str(self.steps))

    async def during(self, at: Stage) -> None:
        await self.write(at, "a", value=str(2 * self.steps))

    async def after(self, at: Stage) -> None:
        await self.write(at, "a", value=str(3 * self.steps))
        await self.is_copied(at, "a", str(3 * self.steps))
        for who in {note.who for note in self.notes()}:
            written = 0
            for note in self.notes(key="a", who=who):
                match note.what:
                    case "wrote":
                        written = int(note.said)
                    case "read":
                        assert int(note.said) >= written, f"{who} read what was there before it wrote"


class CrashLosesNothing(Line):
    """4. A crash at any point loses nothing: after a restart everything is reconciled again."""

    number = 4

    async def before(self, at: Stage) -> None:
        for name in ("stays", "goes", "same"):
            await self.write(at, name, value="old")
            await self.is_copied(at, name, "old")

    async def during(self, at: Stage) -> None:
        await at.crash()
        await self.write(at, "stays", value="new")
        await at.user.delete(Secret, "same", namespace=self.namespace)  # whose original has not changed
        await at.restart()

    async def after(self, at: Stage) -> None:
        await self.is_copied(at, "stays", "new")
        await self.is_copied(at, "same", "old")


class BacksOffAlone(Line):
    """5. A failing key backs off alone, and never holds back another."""

    number = 5

    async def reconcile(self, client: Client, request: Request) -> Result | None:
        data = await self.original(client, request)
        if data is not None and data.get("value") == "bad":
            raise SetpointError("be good", "it is bad")
        await self.copy(client, request)
        return None

    async def before(self, at: Stage) -> None:
        await self.write(at, "a", value="bad")
        await eventually(lambda: len(self.notes("end", "a", at.leader)) > 2)

    async def during(self, at: Stage) -> None:
        await self.write(at, "b", value="good")

    async def after(self, at: Stage) -> None:
        await self.is_copied(at, "b", "good")
        await self.write(at, "c", value="good")
        await self.is_copied(at, "c", "good")
        await eventually(lambda: len(self.notes("end", "a", at.leader)) > 4)
        self.check_waits(at)
        await self.write(at, "a", value="good")
        await self.is_copied(at, "a", "good")

    def check_waits(self, at: Stage) -> None:
        notes = [note for note in self.notes(key="a", who=at.leader) if note.what in ("begin", "end")]
        ends, begins = notes[1::2], notes[2::2]
        for failures, (end, begin) in enumerate(zip(ends, begins, strict=False), start=1):
            assert begin.at - end.at >= 0.005 * 2 ** (failures - 1) / 2, f"after failure {failures}"


class NothingStarves(Line):
    """6. Start-up work has low priority, but ages: nothing starves."""

    number = 6
    names = tuple(f"old-{number}" for number in range(5))

    def add_to(self, manager: Manager) -> None:
        super().add_to(manager)

        async def hear(request: Request) -> None:
            self.note("heard", request.name)

        builder(manager).named("line-6-hearing").for_(ConfigMap, namespaces=[self.namespace]).complete(hear)

    async def reconcile(self, client: Client, request: Request) -> Result | None:
        await self.journal.pass_gate(self.number)
        done = {note.key for note in self.notes("end", who=self.journal.who)}
        if request.name == "urgent" and not done >= set(self.names):
            return Result(requeue_after=0)  # always there, and always more urgent
        await self.copy(client, request)
        return None

    async def before(self, at: Stage) -> None:
        for name in self.names:
            await self.write(at, name, value="old")
        for name in self.names:
            await self.is_copied(at, name, "old")

    async def during(self, at: Stage) -> None:
        await at.crash()
        self.journal.close_gate(self.number)
        self.note("restart")
        await at.restart()

    async def after(self, at: Stage) -> None:
        await eventually(lambda: self.begun(at), what="the first is in hand")
        await self.write(at, "urgent", value="now")
        await eventually(lambda: self.notes("heard", "urgent", at.leader))
        self.journal.open_gate(self.number)
        await self.is_copied(at, "urgent", "now")
        assert self.begun(at)[1] == "urgent", "what happens now is more urgent than what was there"
        assert set(self.names) <= set(self.begun(at)), "and yet the others get their turn"

    def begun(self, at: Stage) -> list[str]:
        since = self.notes("restart")[-1].at
        return [note.key for note in self.notes("begin", who=at.leader) if note.at > since]


class DeletionsAreDelivered(Line):
    """7. A watch that dies is noticed, or listed again; deletions missed meanwhile are delivered."""

    number = 7

    async def before(self, at: Stage) -> None:
        for name in ("stays", "goes", "comes-back"):
            await self.write(at, name, value="old")
            await self.is_copied(at, name, "old")

    async def during(self, at: Stage) -> None:
        for name in ("goes", "comes-back"):
            await at.user.delete(ConfigMap, name, namespace=self.namespace)
        await self.write(at, "comes-back", value="new")
        await self.write(at, "stays", value="new")

    async def after(self, at: Stage) -> None:
        await self.is_no_more(at, "goes")
        await self.is_copied(at, "comes-back", "new")
        await self.is_copied(at, "stays", "new")


class OnlyItsController(Line):
    """8. A missing CRD stops only the controller that needs it, loudly; it starts when the thing appears."""

    number = 8

    def __init__(self, namespace: str, journal: Journal) -> None:
        super().__init__(namespace, journal)

        class Unheard(CustomResource, group=f"{namespace}.setpoint.dev", version="v1"):
            """A kind that nobody knows yet."""

            spec: dict[str, str] = {}

        self.kind = Unheard

    def add_to(self, manager: Manager) -> None:
        super().add_to(manager)

        async def look(request: Request) -> None:
            self.note("unheard", request.name)

        waiting = builder(manager).named("line-8-unheard").for_(self.kind, namespaces=[self.namespace])
        waiting.complete(look)
        logging.getLogger("setpoint.controller.line-8-unheard").addHandler(_Saying(self))

    async def before(self, at: Stage) -> None:
        await super().before(at)
        await eventually(lambda: any("Unheard" in note.said for note in self.notes("said", who=at.leader)))

    async def after(self, at: Stage) -> None:
        await super().after(at)
        assert not self.notes("unheard")
        await at.user.apply(crd_of(self.kind), force=True)
        first = self.kind(metadata=self.named("first"))
        await eventually(lambda: at.user.create(first))
        await eventually(lambda: self.notes("unheard", "first", at.leader))


class _Saying(logging.Handler):
    """Writes into a line's journal what is said aloud."""

    def __init__(self, line: Line) -> None:
        super().__init__(logging.ERROR)
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        self._line.note("said", said=record.getMessage())


# ---- 9 to 11 are about what an author writes -------------------------------------------------------


class BulbSpec(Model):
    colour: str = "white"


class BulbStatus(Model):
    shines: str = ""
    conditions: list[Condition] = []


class Bulb(CustomResource, group="faults.setpoint.dev", version="v1"):
    """Shines in its colour: a ConfigMap says so."""

    spec: BulbSpec
    status: BulbStatus = BulbStatus()


class Authored(Line):
    """A bulb is lit by a function and a context."""

    def operator(self) -> Operator:
        operator = Operator(f"line-{self.number}")

        @operator.controller(
            Bulb,
            name=f"line-{self.number}",
            namespaces=[self.namespace],
            build=lambda builder, _: builder.owns(ConfigMap, namespaces=[self.namespace]),
        )
        async def reconcile(bulb: Bulb, ctx: Context) -> None:
            name = bulb.metadata.name or ""
            self.note("begin", name, ",".join(bulb.metadata.finalizers or []))
            shade = ConfigMap(metadata=ObjectMeta(name=name), data={"colour": bulb.spec.colour})
            await ctx.apply(shade)
            bulb.status.shines = bulb.spec.colour
            ctx.set_condition("Lit", True, "Shining", bulb.spec.colour)
            self.note("lit", name, bulb.spec.colour)

        return operator

    def add_to(self, manager: Manager) -> None:
        self.operator().add_to(manager)

    async def before(self, at: Stage) -> None:
        await self.light(at, "a")
        await self.shines(at, "a", "red")

    async def during(self, at: Stage) -> None:
        await self.paint(at, "a", "blue")

    async def light(self, at: Stage, name: str) -> None:
        await at.user.create(Bulb(metadata=self.named(name), spec=BulbSpec(colour="red")))

    async def paint(self, at: Stage, name: str, colour: str) -> None:
        patch = MergePatch({"spec": {"colour": colour}})
        await at.user.patch(Bulb, name, patch, namespace=self.namespace)

    async def bulb(self, at: Stage, name: str = "a") -> Bulb:
        return await at.user.get(Bulb, name, namespace=self.namespace)

    async def shade(self, at: Stage, name: str = "a") -> ConfigMap:
        return await at.user.get(ConfigMap, name, namespace=self.namespace)

    async def shines(self, at: Stage, name: str, colour: str) -> None:
        async def so() -> bool:
            bulb, shade = await self.bulb(at, name), await self.shade(at, name)
            return bulb.status.shines == colour == (shade.data or {})["colour"]

        await eventually(so, what=f"{name} shines {colour}")


class FixedPoint(Authored):
    """9. At its fixed point a reconcile writes nothing."""

    number = 9

    async def after(self, at: Stage) -> None:
        await self.shines(at, "a", "blue")
        await self.looked(at)  # now at the latest, everything is as it should be
        shade = await self.shade(at)
        bulb = await self.looked(at)
        await self.looked(at)
        assert (await self.shade(at)).metadata.resource_version == shade.metadata.resource_version
        assert (await self.bulb(at)).status == bulb.status

    async def looked(self, at: Stage) -> Bulb:
        """Have it looked at once more, by a change that asks for nothing; the bulb as that left it."""
        looks = len(self.notes("lit", "a", at.leader))
        poke = MergePatch({"metadata": {"annotations": {"poked": str(looks)}}})
        poked = await at.user.patch(Bulb, "a", poke, namespace=self.namespace)
        await eventually(lambda: len(self.notes("lit", "a", at.leader)) > looks)
        bulb = await self.bulb(at)
        assert bulb.metadata.resource_version == poked.metadata.resource_version, "it was written to"
        return bulb


class StatusMerges(Authored):
    """10. Status is written as the difference alone: others' conditions stay; transitions are right."""

    number = 10

    async def during(self, at: Stage) -> None:
        bulb = await self.bulb(at)
        lit = find_condition(bulb.status.conditions, "Lit")
        assert lit is not None
        theirs = Condition(
            type="Theirs",
            status="True",
            reason="Because",
            message="",
            last_transition_time=lit.last_transition_time,
        )
        bulb.status.conditions.append(theirs)
        await eventually(lambda: at.user.update_status(bulb))
        await self.paint(at, "a", "blue")
        self.lit = lit

    async def after(self, at: Stage) -> None:
        await self.shines(at, "a", "blue")
        bulb = await self.bulb(at)
        lit = find_condition(bulb.status.conditions, "Lit")
        assert find_condition(bulb.status.conditions, "Theirs") is not None
        assert lit is not None
        assert (lit.message, lit.observed_generation) == ("blue", bulb.metadata.generation)
        assert lit.last_transition_time == self.lit.last_transition_time, "it was lit all the time"


class FinalizerHolds(Authored):
    """11. A finalizer is added before the first side effect, and removed only after clean-up succeeded."""

    number = 11

    def operator(self) -> Operator:
        operator = super().operator()

        @operator.finalizer(Bulb)
        async def switch_off(bulb: Bulb, ctx: Context) -> None:
            name = bulb.metadata.name or ""
            failed = self.notes("stuck", name, self.journal.who)
            live = await ctx.client.live.get(Bulb, name, namespace=self.namespace)
            self.note("held" if live.metadata.finalizers else "free", name)
            await ctx.delete(ConfigMap, name)
            if len(failed) < 2:
                self.note("stuck", name)
                raise SetpointError("switch the bulb off", "the switch is stuck")
            self.note("off", name)

        return operator

    async def during(self, at: Stage) -> None:
        await at.user.delete(Bulb, "a", namespace=self.namespace)
        await self.light(at, "b")

    async def after(self, at: Stage) -> None:
        await self.shines(at, "b", "red")

        async def gone() -> bool:
            return await ignore_not_found(self.bulb(at)) is None

        await eventually(gone)
        assert await ignore_not_found(self.shade(at)) is None
        assert self.notes("off", "a", at.leader), "it went only after the clean-up had succeeded"
        assert not self.notes("free", "a"), "until then it was held"
        assert all(note.said for note in self.notes("begin")), "held before the first side effect"


class OneLeader(Line):
    """12. No reconcile starts after the lease may have been lost, and writes of a lost epoch are refused."""

    number = 12

    async def reconcile(self, client: Client, request: Request) -> Result | None:
        original = await self.original(client, request)
        if original is not None:
            await self.pass_on(client, request, {**original, "by": self.journal.who})
            self.note("signed", request.name)
        return None

    async def after(self, at: Stage) -> None:
        await self.is_copied(at, "a", "new")
        await self.write(at, "b", value="new")
        await self.is_copied(at, "b", "new")
        signers = [note.who for note in self.notes("signed")]
        changes = sum(one != other for one, other in pairwise(signers))
        assert changes <= 1, f"who was followed came back: {signers}"
        assert signers[-1] == at.leader


class Notes(Object, group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True):
    """A class that knows nothing of a ConfigMap but its metadata."""


class UnknownFieldsSurvive(Line):
    """13. Unknown fields survive: update sends what was read, with the typed difference applied."""

    number = 13

    async def reconcile(self, client: Client, request: Request) -> Result | None:
        notes = await ignore_not_found(client.get(Notes, request.name, namespace=self.namespace))
        if notes is not None and (notes.metadata.annotations or {}).get("seen") != "yes":
            notes.metadata.annotations = {**(notes.metadata.annotations or {}), "seen": "yes"}
            await client.update(notes)
        return None

    async def before(self, at: Stage) -> None:
        await self.write(at, "a", value="old")
        await self.is_annotated(at, "a", "old")

    async def during(self, at: Stage) -> None:
        patch = MergePatch({"data": {"value": "new"}, "metadata": {"annotations": {"seen": None}}})
        await at.user.patch(ConfigMap, "a", patch, namespace=self.namespace)
        await self.write(at, "b", value="made meanwhile")

    async def after(self, at: Stage) -> None:
        await self.is_annotated(at, "a", "new")
        await self.is_annotated(at, "b", "made meanwhile")

    async def is_annotated(self, at: Stage, name: str, value: str) -> None:
        async def so() -> bool:
            found = await at.user.get(ConfigMap, name, namespace=self.namespace)
            assert found.data == {"value": value}
            return (found.metadata.annotations or {}).get("seen") == "yes"

        await eventually(so, what=f"{name} is annotated, and keeps {value}")


class EverythingEnds(Line):
    """14. Every wait has a deadline and every task a parent."""

    number = 14

    async def during(self, at: Stage) -> None:
        await super().during(at)
        async with asyncio.timeout(10):
            await at.end()
        await at.restart()


LINES: tuple[type[Line], ...] = (
    OneAtATime,
    NothingIsLost,
    OwnWrites,
    CrashLosesNothing,
    BacksOffAlone,
    NothingStarves,
    DeletionsAreDelivered,
    OnlyItsController,
    FixedPoint,
    StatusMerges,
    FinalizerHolds,
    OneLeader,
    UnknownFieldsSurvive,
    EverythingEnds,
)


def namespace_of(world: str, line: type[Line]) -> str:
    return f"{world}-{line.number}"


def lines(world: str, journal: Journal) -> Iterator[Line]:
    for line in LINES:
        yield line(namespace_of(world, line), journal)


# ---- one of two replicas ---------------------------------------------------------------------------


def election(namespace: str, who: str) -> LeaderElection:
    return LeaderElection("operator", namespace, who, lease_duration=3, renew_deadline=2.0, retry_period=0.2)


async def main(folder: str, who: str, world: str) -> None:
    """Run all lines at once, while leading."""
    journal = Journal(Path(folder), who)
    async with Client(timeout=5) as client:
        lease = election(namespace_of(world, OneLeader), who)
        manager = Manager(client=client, leader_election=lease, timing=TIMING, graceful_shutdown=2)
        for line in lines(world, journal):
            line.add_to(manager)
        await manager.run(handle_signals=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
