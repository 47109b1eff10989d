"""What lies beside plain reading and writing: scale, binding, eviction, and questions that store nothing.

Each is a small function over the registry's verbs.  ``status`` and its like are not here: they are updates of
a part, which the strategy judges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from setpoint.api.patches import APPLY_CONTENT_TYPE
from setpoint.api.selectors import LabelSelection
from setpoint.clock import Clock
from setpoint.server.access import Access
from setpoint.server.admission.attributes import Part
from setpoint.server.registry import bodies, decoding, deletion, flow, placement
from setpoint.server.registry.admission import add_topology
from setpoint.server.registry.facts import type_of
from setpoint.server.registry.managed.apply import apply
from setpoint.server.registry.managed.managers import track_update
from setpoint.server.registry.managed.scale import from_scale, to_scale
from setpoint.server.registry.patching import perform, read
from setpoint.server.registry.requests import Answered, Ask, WriteOptions, write_options
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.registry.reviews import review
from setpoint.server.registry.served import Resources
from setpoint.server.statuses import (
    MODIFIED,
    FieldError,
    StatusError,
    bad_request,
    conflict,
    invalid,
    not_found,
    not_served,
)
from setpoint.server.storage.protocol import Changed, Place, Record, Store

_encode = msgspec.json.encode
_decode = msgspec.json.decode
_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
# Updates of a part of the object itself, which its strategy judges.
PARTS = frozenset({"status", "approval", "finalize", "ephemeralcontainers", "resize"})


class Verbs(Protocol):
    """What subresources need of the registry, which is such a thing."""

    @property
    def store(self) -> Store: ...

    @property
    def resources(self) -> Resources: ...

    @property
    def access(self) -> Access: ...

    @property
    def clock(self) -> Clock: ...

    def now(self) -> str: ...

    def look(self, stored: str, name: str = "") -> Sequence[Object]: ...

    async def live(self, ask: Ask) -> tuple[Record, Object]: ...

    async def delete(self, ask: Ask, *, is_trusted: bool = False) -> Answered: ...

    async def change(
        self,
        ask: Ask,
        options: WriteOptions,
        wanted: Callable[[Object], Object],
        warnings: list[str],
        *,
        is_put: bool = False,
        is_tracked: bool = False,
        part: Part | None = None,
    ) -> Answered: ...

    async def admit_body(
        self, ask: Ask, obj: Object, kind: Resource, fill: Callable[[Object], Object] = ...
    ) -> tuple[Object, list[str]]: ...


class Subresources:
    """Answers what is asked of a subresource, or of a kind that is only a question."""

    def __init__(self, registry: Verbs) -> None:
        self._registry = registry

    async def answer(self, ask: Ask) -> Answered:
        if ask.subresource == "scale":
            return await self._scale(ask)
        if ask.subresource == "binding" or ask.resource.plural == "bindings":
            return await self._bind(ask)
        if ask.subresource == "eviction":
            return await self._evict(ask)
        if ask.resource.strategy.is_virtual:
            return review(ask, self._registry.access, self._registry.now())
        if ask.subresource == "token":
            return await self._token(ask)
        raise not_served()

    async def _token(self, ask: Ask) -> Answered:
        from setpoint.server.registry import accounts as asked_of  # noqa: PLC0415 - not asked for by many

        registry = self._registry
        accounts = registry.access.tokens.accounts
        if accounts is None:
            raise not_served()
        kind = _plain(ask.resource, "authentication.k8s.io", "v1", "TokenRequest")
        store, now = registry.store, registry.clock.utc()
        request, warnings = asked_of.read_request(ask, kind, now)
        request, more = await registry.admit_body(
            ask, request, kind, lambda left: asked_of.of_account(left, ask, accounts, store, now)
        )
        answer = asked_of.create_token(request, ask, kind, accounts, store, now)
        return Answered(201, answer, None, (*warnings, *more))

    # ── Scale ───────────────────────────────────────────────────────────────────────────────────────

    async def _scale(self, ask: Ask) -> Answered:
        registry, resource = self._registry, ask.resource
        scaling = scaling_of(resource)
        if ask.verb == "get":
            return Answered(200, _encode(scaling.scale_of((await registry.live(ask))[1])))
        is_apply = ask.verb == "patch" and bodies.media_type(ask.content_type) == APPLY_CONTENT_TYPE
        options = write_options(ask, is_apply=is_apply)
        part = _ScalePart(resource, scaling)

        def wanted(old: Object) -> Object:
            """The object with the replicas, and the owners, that the scale has after the request."""
            paths = _replicas_paths(resource)
            entries = old["metadata"].get("managedFields") or []
            before = part.shown(old)
            before["metadata"]["managedFields"] = to_scale(entries, paths)
            after = _changed_scale(before, ask, options, registry.now())
            part.owners = tuple(one["metadata"].get("managedFields") or [] for one in (after, before))
            new: Object = _decode(_encode(old))
            scaling.set_replicas(new, _checked_replicas(after, old, resource))
            if entries:
                owned = after["metadata"].get("managedFields") or []
                new["metadata"]["managedFields"] = from_scale(owned, entries, paths, resource.api_version)
            return new

        answered = await registry.change(ask, options, wanted, [], is_tracked=True, part=part)
        return Answered(200, _encode(scaling.scale_of(_decode(answered.data))), None, answered.warnings)

    # ── Pods: where they run, and whether they may be moved ──────────────────────────────────────────

    async def _bind(self, ask: Ask) -> Answered:
        registry, options = self._registry, write_options(ask)
        kind = _plain(ask.resource, "", "v1", "Binding")
        binding = _of_request(decoding.read_plain(ask, kind), ask, kind, registry.now())
        target = binding.get("target") or {}
        if ask.subresource and target.get("kind") == "Node":
            add_topology(binding, target.get("name") or "", registry.look)
        binding, warnings = await registry.admit_body(ask, binding, kind)
        target, name = binding.get("target") or {}, ask.name or binding["metadata"].get("name", "")
        if binding["metadata"].get("name", "") != name:
            raise bad_request("name in URL does not match name in Binding object")
        if told := placement.target_refusal(target):
            raise StatusError(500, "", told)
        pods = registry.resources.builtin("", "v1", "pods")
        pod = msgspec.structs.replace(ask, resource=pods, name=name, subresource="binding")

        def bound(old: Object) -> Object:
            flow.check_meant(binding, old, pods, is_dry_run=options.is_dry_run)
            if why := placement.unbindable(old):
                raise conflict("pods/binding", "", name, why)
            new: Object = _decode(_encode(old))
            new["spec"]["nodeName"] = target["name"]
            new.setdefault("status", {}).pop("nominatedNodeName", None)
            placement.copy_metadata(binding["metadata"], new["metadata"])
            placement.set_condition(new["status"], {"type": "PodScheduled", "status": "True"}, registry.now())
            return new

        await self._rewrite(pod, bound, is_dry_run=options.is_dry_run)
        return Answered(201, _encode(_SUCCESS), None, tuple(warnings))

    async def _rewrite(self, ask: Ask, wanted: Callable[[Object], Object], *, is_dry_run: bool) -> str:
        """A change that the server itself makes: nobody owns it, nothing is validated.

        Gives the version of the object then.
        """
        registry = self._registry
        while True:
            record, old = await registry.live(ask)
            new = wanted(old)
            if is_dry_run or new == old:
                return str(record.revision)
            emitted = ask.resource.strategy.emit(new)
            try:
                record = await registry.store.update(record.place, flow.encoder(emitted), record.revision)
            except Changed:
                continue
            return str(record.revision)

    async def _evict(self, ask: Ask) -> Answered:
        registry, is_tried = self._registry, write_options(ask).is_dry_run
        body = _plain(ask.resource, "policy", "v1", "Eviction")
        eviction = decoding.read_plain(ask, body)
        if (eviction.get("metadata") or {}).get("name", "") != ask.name:
            raise bad_request("name in URL does not match name in Eviction object")
        eviction = _of_request(eviction, ask, body, registry.now())
        eviction, warnings = await registry.admit_body(ask, eviction, body)
        options = placement.tried(eviction.get("deleteOptions") or {}, is_dry_run=is_tried)
        await self._move(msgspec.structs.replace(ask, verb="delete", subresource=""), options)
        return Answered(201, _encode(_SUCCESS), None, tuple(warnings))

    async def _move(self, ask: Ask, options: Object) -> None:
        """Delete a pod, if no budget forbids it.

        One that was let go because of how it was is deleted only as it was.
        """
        is_dry_run = deletion.delete_options(options).is_dry_run
        has_version = (options.get("preconditions") or {}).get("resourceVersion") is not None
        while True:
            _, pod = await self._registry.live(ask)
            is_free, must_be_seen = placement.is_free(pod)
            budget = None if is_free else self._budget_of(pod)
            if budget is not None:
                must_be_seen = placement.is_spared(pod, budget)
                if not must_be_seen:
                    await self._take_budget(pod, budget["metadata"]["name"], is_dry_run=is_dry_run)
            is_asked_for = has_version and budget is None  # a budget goes by what it saw itself
            seen = pod["metadata"]["resourceVersion"] if must_be_seen and not is_asked_for else ""
            try:
                await self._take_away(ask, placement.only_as(options, seen))
            except StatusError as refused:
                if refused.code != 409 or not seen or has_version:
                    raise
                if budget is not None:
                    raise placement.still_processed(budget["metadata"]["name"]) from None
                continue
            return

    async def _take_away(self, ask: Ask, options: Object) -> None:
        """Say on a pod why it goes, and delete it."""
        given, now = deletion.delete_options(options), self._registry.now()

        def disrupted(old: Object) -> Object:
            deletion.check_preconditions(old, ask.resource, given)
            new: Object = _decode(_encode(old))
            placement.set_condition(new.setdefault("status", {}), placement.EVICTED, now)
            return new

        version = await self._rewrite(ask, disrupted, is_dry_run=given.is_dry_run)
        if given.version is not None:
            options = placement.only_as(options, version)
        body = _encode({"kind": "DeleteOptions", "apiVersion": "v1", **options})
        asked = msgspec.structs.replace(ask, body=body, content_type="application/json")
        await self._registry.delete(asked, is_trusted=True)

    def _budget_of(self, pod: Object) -> Object | None:
        registry = self._registry
        budgets = registry.resources.builtin("policy", "v1", "poddisruptionbudgets")
        labels = pod["metadata"].get("labels") or {}
        found: list[Object] = []
        for record in registry.store.listed(budgets.stored, pod["metadata"]["namespace"]):
            budget = _decode(record.data)
            selector = (budget.get("spec") or {}).get("selector")
            if selector is not None and LabelSelection.from_object(selector).matches(labels):
                found.append(budget)
        if len(found) > 1:
            told = "This pod has more than one PodDisruptionBudget, "
            raise StatusError(500, "", told + "which the eviction subresource does not support.")
        return found[0] if found else None

    async def _take_budget(self, pod: Object, name: str, *, is_dry_run: bool) -> None:
        """Have a budget know of an eviction, if it has room; however often somebody else is faster."""
        registry = self._registry
        budgets = registry.resources.builtin("policy", "v1", "poddisruptionbudgets")
        place = Place(budgets.stored, pod["metadata"]["namespace"], name)
        while True:
            record = registry.store.get(place)
            if record is None:
                raise not_found(budgets.plural, budgets.group, name)
            budget: Object = _decode(record.data)
            placement.check_room(budget)
            if is_dry_run:
                return
            status = budget["status"]
            status["disruptionsAllowed"] -= 1
            if not status["disruptionsAllowed"]:
                placement.spend(status, registry.now())
            status.setdefault("disruptedPods", {})[pod["metadata"]["name"]] = registry.now()
            try:
                await registry.store.update(
                    place, flow.encoder(budgets.strategy.emit(budget)), record.revision
                )
            except Changed:
                continue
            return


# ── Scaling ─────────────────────────────────────────────────────────────────────────────────────────


class Scaling(Protocol):
    """How a Scale is made of an object."""

    @property
    def path(self) -> tuple[str, ...]:
        """Of the replicas, in managedFields."""

    def scale_of(self, obj: Object, *, is_written: bool = False) -> Object: ...

    def set_replicas(self, obj: Object, replicas: int) -> None: ...


class _BuiltinScaling:
    """Of the built-in kinds, which all keep their replicas in the same place."""

    path = ("f:spec", "f:replicas")

    def scale_of(self, obj: Object, *, is_written: bool = False) -> Object:  # noqa: ARG002
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        status: Object = {"replicas": (obj.get("status") or {}).get("replicas", 0)}
        if spec.get("selector"):
            status["selector"] = _selector_text(spec["selector"])
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: metadata[name] for name in names if name in metadata},
            "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
            "status": status,
        }

    def set_replicas(self, obj: Object, replicas: int) -> None:
        obj["spec"]["replicas"] = replicas


def scaling_of(resource: Resource) -> Scaling:
    found: Scaling | None = getattr(resource.strategy, "scaled", None)
    return found or _BuiltinScaling()


class _ScalePart:
    """The Scale of an object, for those who have a say in its change."""

    def __init__(self, resource: Resource, scaling: Scaling) -> None:
        self._resource = resource
        self._scaling = scaling
        self.kind = _plain(resource, "autoscaling", "v1", "Scale")
        self.owners: tuple[list[Object], ...] = [], []  # after the request, and before

    def offered(self, new: Object, old: Object) -> tuple[Object, Object]:
        after, before = self.shown(new), self.shown(old)
        for scale, owners in zip((after, before), self.owners, strict=True):
            if owners:
                scale["metadata"]["managedFields"] = owners
        return after, before

    def shown(self, obj: Object) -> Object:
        return self._scaling.scale_of(obj, is_written=True)

    def taken(self, obj: Object, part: Object) -> Object:
        self._scaling.set_replicas(obj, _replicas(part, obj["metadata"]["name"], self._resource))
        return obj


def _of_request(body: Object, ask: Ask, kind: Resource, now: str) -> Object:
    """The body of a request, as those see it who have a say in it.

    What the server says about objects is not the client's to say, but for the one that a Binding means.
    """
    flow.check_place(body, ask)
    wiped = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
    for name in wiped if ask.subresource == "binding" else (*wiped, "uid"):
        body["metadata"].pop(name, None)
    track_update(
        body,
        None,
        manager=write_options(ask).manager,
        api_version=kind.api_version,
        subresource=ask.subresource,
        now=now,
        type=kind.type,
    )
    return body


def _replicas_paths(resource: Resource) -> dict[str, tuple[str, ...] | None]:
    """Of each version, in managedFields; a version of a custom kind may have no scale."""
    if resource.family is None:
        return {resource.api_version: scaling_of(resource).path}
    versions = resource.family.members.items()
    return {
        name: scaling_of(one).path if one.subresource("scale") is not None else None for name, one in versions
    }


def _selector_text(selector: Object) -> str:
    if "matchLabels" in selector or "matchExpressions" in selector:
        return str(LabelSelection.from_object(selector))
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


def _changed_scale(before: Object, ask: Ask, options: WriteOptions, now: str) -> Object:
    """What a PUT, a patch or an apply makes of a scale, with its owners."""
    resource = _plain(ask.resource, "autoscaling", "v1", "Scale")
    if bodies.media_type(ask.content_type) == APPLY_CONTENT_TYPE:
        intent, _ = decoding.read_intent(ask, options.validation)
        return apply(
            before,
            intent,
            manager=options.manager,
            api_version=resource.api_version,
            subresource="scale",
            force=options.is_forced,
            now=now,
            type=resource.type,
            kind="Scale",
        )
    if ask.verb == "patch":
        changed = perform(read(ask.body, ask.content_type, ask.resource), before, resource)
        after = decoding.plain_patched(changed, resource, before)
    else:
        after = decoding.read_plain(ask, resource)
    after.setdefault("metadata", {})
    track_update(
        after,
        before,
        manager=options.manager,
        api_version=resource.api_version,
        subresource="scale",
        now=now,
        type=resource.type,
    )
    return after


def _checked_replicas(scale: Object, old: Object, resource: Resource) -> int:
    metadata, name = scale.get("metadata") or {}, old["metadata"]["name"]
    if metadata.get("name", name) != name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
    said = metadata.get("resourceVersion", "")
    if said and said != old["metadata"]["resourceVersion"]:
        raise conflict(resource.plural, resource.group, name, MODIFIED)
    if metadata.get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
        raise conflict(
            resource.plural, resource.group, name, "Precondition failed: UID in precondition differs"
        )
    return _replicas(scale, name, resource)


def _replicas(scale: Object, name: str, resource: Resource) -> int:
    """What is too few for a custom kind is judged with the rest of the object."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if type(replicas) is not int or (replicas < 0 and not resource.is_custom):
        told = "must be greater than or equal to 0"
        raise invalid("Scale", "autoscaling", name, [FieldError("invalid", "spec.replicas", told, replicas)])
    return replicas


def _plain(resource: Resource, group: str, version: str, kind: str) -> Resource:
    """A kind that is only a body: of the resource, but with a type of its own."""
    return Resource(
        group=group,
        version=version,
        plural=resource.plural,
        kind=kind,
        namespaced=resource.namespaced,
        verbs=(),
        type=type_of(group, version, kind),
        strategy=resource.strategy,
    )
