"""The place of a proof on a real cluster: what must be there before it begins, and is taken away after it.

1. Nothing is left: namespaces are waited for, and definitions that were not there are taken away again,
   unless somebody else has used them meanwhile.  Of several proofs at once on one cluster, the last to end
   takes them away.  What stays all the same is in ``left``, with why and what to do.
2. What cannot be kept apart from the rest of the cluster is refused before anything is run: kinds that belong
   to no namespace, steps in more than one, steps that wait for longer than anybody would.

Entered by ``real_proof.py``; one run is ``real_world.py``'s.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from setpoint.api.forms import untyped
from setpoint.api.meta import is_true
from setpoint.api.names import Resource
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.errors import AlreadyExists, DeadlineExceeded, NotFound, SetpointError
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.kube.core.v1 import Namespace
from setpoint.testing.faults import Faults
from setpoint.testing.isolation import Allowed, Isolation
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.plans import Change, Create, Delete, Pass, Step
from setpoint.testing.proof.process import Subject
from setpoint.testing.proof.real_world import LABEL, PREFIX, Ground
from setpoint.testing.proof.states import status_defaults
from setpoint.testing.waiting import eventually

LONGEST: Final = 60.0  # seconds that a plan or a test may wait for: there, they take as long as they say
_PATIENCE = 60.0  # seconds until a definition is served, or a namespace gone


class Site:
    """One proof's part of a cluster."""

    def __init__(
        self,
        make: Callable[[], Subject],
        config: Config,
        steps: tuple[Step, ...],
        clouds: tuple[Cloud, ...],
        allowed: Allowed | None = None,
    ) -> None:
        isolation = Isolation(allowed)
        self.make = partial(isolation.call, make)
        self.allowed, self.refused = isolation.allowed, isolation.refused
        self.steps = steps
        self.server = config.server
        self._config = config
        self._inside = namespace_of(steps)
        self._clouds = clouds
        self._id = secrets.token_hex(4)
        self.left: list[str] = []  # what could not be taken away

    @asynccontextmanager
    async def ground(self) -> AsyncIterator[Ground]:
        """The cluster, with the operator's definitions; afterwards as it was before."""
        async with Faults.of(self._config) as way:
            client = Client(self._config, transport=way, on_warning=lambda _text: None)
            made: list[str] = []
            try:
                await client.create(self._sign())
                made += [
                    crd["metadata"]["name"] for crd in self.make().crds() if await self._define(client, crd)
                ]
                for name in made:
                    await served(client, name)
                yield await self._begun(way, client)
            finally:
                await self._leave(client, made)

    async def _begun(self, way: Faults, client: Client) -> Ground:
        await client.discovery.refresh()
        resources: dict[tuple[str, str], Resource] = {}
        for each in await client.discovery.resources():
            resources.setdefault((each.group, each.plural), each)
        kinds = {(kind.group, kind.kind) for kind in self.make().kinds}
        primaries = [each for each in resources.values() if (each.group, each.kind) in kinds]
        _check(primaries)
        return Ground(
            self.make,
            way,
            client,
            resources,
            frozenset(map(str, primaries)),
            inside=self._inside,
            clouds=self._clouds,
            proof=self._id,
            defaults=status_defaults(self.make().crds()),
            allowed=self.allowed,
            refused=self.refused,
        )

    def _sign(self) -> Namespace:
        """An empty namespace, by which other proofs on the cluster know that this one goes on."""
        sign = Namespace()
        sign.metadata.name, sign.metadata.labels = f"{PREFIX}{self._id}", {LABEL: self._id}
        return sign

    async def _define(self, client: Client, crd: dict[str, Any]) -> bool:
        """Have a definition be there; whether a proof has made it.  Any other is used as it is, and stays."""
        metadata = crd["metadata"]
        labels = {**(metadata.get("labels") or {}), LABEL: self._id}
        while True:
            try:
                await client.create({**crd, "metadata": {**metadata, "labels": labels}})
            except AlreadyExists:
                found = await ignore_not_found(client.get(CustomResourceDefinition, metadata["name"]))
                if found is not None and found.metadata.deletion_timestamp is None:
                    return LABEL in (found.metadata.labels or {})
                await _gone(client, metadata["name"])  # another proof takes it away: it is not there for us
            else:
                return True

    async def _leave(self, client: Client, made: Iterable[str]) -> None:
        """Wait until our namespaces are gone, and take our definitions away."""
        try:
            await ignore_not_found(client.delete(Namespace, f"{PREFIX}{self._id}"))
            await self._are_gone(client)
            if any(await client.list(Namespace, labels=LABEL)):
                return  # of another proof, which takes the definitions away when it ends
            for name in made:
                with suppress(NotFound):
                    await self._undefine(client, name)
        except (AssertionError, SetpointError) as error:
            self.left.append(
                f"something of the proof is left on the cluster ({error}): look again later, and then "
                f"kubectl delete namespace,crd -l {LABEL}"
            )

    async def _are_gone(self, client: Client) -> None:
        async def gone() -> bool:
            return not await client.list(Namespace, labels={LABEL: self._id})

        await eventually(gone, timeout=_PATIENCE, what="the namespaces of the proof are gone")

    async def _undefine(self, client: Client, name: str) -> None:
        found = await client.get(CustomResourceDefinition, name)
        kind = untyped(f"{found.spec.group}/{found.spec.versions[0].name}", found.spec.names.kind)
        if others := [each for each in await client.list(kind) if not self._is_ours(each)]:
            self.left.append(f"the definition {name} stays: by now there are {len(others)} objects of others")
            return
        await client.delete(CustomResourceDefinition, name)
        await _gone(client, name)

    def _is_ours(self, obj: dict[str, Any]) -> bool:
        return str(obj["metadata"].get("namespace", "")).startswith(f"{PREFIX}{self._id}")


async def _gone(client: Client, name: str) -> None:
    """Wait until a definition is no more; DeadlineExceeded if it stays."""

    async def gone() -> bool:
        return await ignore_not_found(client.get(CustomResourceDefinition, name)) is None

    try:
        await eventually(gone, timeout=_PATIENCE, what=f"{name} is gone")
    except AssertionError as error:
        raise DeadlineExceeded(f"have {name} go, which is being deleted", str(error)) from error


async def served(client: Client, name: str) -> None:
    """Wait until a kind is served, by the name of its definition; DeadlineExceeded if it never is."""

    async def established() -> bool:
        found = await client.get(CustomResourceDefinition, name)
        return is_true(found.status.conditions or [], "Established")

    try:
        await eventually(established, timeout=_PATIENCE, what=f"{name} is established")
    except AssertionError as error:
        raise DeadlineExceeded(f"have {name} served", str(error)) from error


def _check(primaries: Iterable[Resource]) -> None:
    for each in primaries:
        if not each.namespaced:
            raise ValueError(
                f"{each} belong to no namespace, so that a run could not be kept apart from the rest of "
                "the cluster: prove this operator in process"
            )


def namespace_of(steps: Iterable[Step]) -> str:
    """The one that the steps speak of; ValueError if they cannot be taken on a cluster."""
    found = set[str]()
    for step in steps:
        match step:
            case Pass(seconds=seconds) if seconds > LONGEST:
                raise ValueError(
                    f"{step}: on a cluster they take as long as they say; let at most {LONGEST:g} s pass, or "
                    "prove it in process"
                )
            case Create(object=obj):
                found.add(obj["metadata"].get("namespace", "default"))
            case Change(namespace=namespace) | Delete(namespace=namespace):
                found.add(namespace)
    if len(found) > 1:
        named = ", ".join(sorted(found))
        raise ValueError(f"the steps are in {named}: on a cluster a plan has one namespace")
    return next(iter(found), "default")
