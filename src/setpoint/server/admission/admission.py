"""Admission: everything that may change or refuse a write between its defaults and the store.

    changing:  built-in rules → mutating policies → mutating webhooks (once more, where one changed it)
    judging:   built-in rules → validating policies → validating webhooks → quotas

``Admission`` knows which configurations there are, and keeps what it has read of them until one is written;
``is_idle`` tells in one look-up that nobody has anything to say about a kind, which is how it is nearly
always.  Nothing here waits but for webhooks, and nothing is held meanwhile: the writer tries again if
somebody else was faster.

Fed by ``registry.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from setpoint.server.admission.attributes import Attributes
from setpoint.server.admission.plugins import LIMITED, PLUGINS, SECURED, SECURITY, Plugin
from setpoint.server.authorization.authorizer import AlwaysAllow, Authorizer
from setpoint.server.registry.admission import admit, judge
from setpoint.server.registry.conversion import ConversionError, converted
from setpoint.server.registry.converting import Converter, is_by_webhook
from setpoint.server.registry.flow import encoder, tracked_fields
from setpoint.server.registry.managed.managers import track_update
from setpoint.server.registry.metadata import Names
from setpoint.server.registry.patience import in_time
from setpoint.server.registry.resources import Object, Reservation, Resource
from setpoint.server.registry.served import Resources
from setpoint.server.statuses import StatusError, internal
from setpoint.server.storage.protocol import Changed, Place, Store

if TYPE_CHECKING:
    from setpoint.server.admission.calling import Caller
    from setpoint.server.admission.matching import Matching
    from setpoint.server.admission.policies import Policy
    from setpoint.server.admission.webhooks import Hook

_GROUP: Final = "admissionregistration.k8s.io"
_MUTATING: Final = f"mutatingwebhookconfigurations.{_GROUP}"
_VALIDATING: Final = f"validatingwebhookconfigurations.{_GROUP}"
_BINDINGS: Final = {  # policies by the name of their kind
    f"validatingadmissionpolicies.{_GROUP}": f"validatingadmissionpolicybindings.{_GROUP}",
    f"mutatingadmissionpolicies.{_GROUP}": f"mutatingadmissionpolicybindings.{_GROUP}",
}
_JUDGING, _CHANGING = _BINDINGS
_CONFIGURED: Final = (_MUTATING, _VALIDATING, *_BINDINGS.values())
_LIMITS, _QUOTAS = "limitranges", "resourcequotas"
_LOOKS, _LOOK_AGAIN = 10, 0.15  # how often, and after how many seconds, the default account is looked for
_LATER: Final = ("resourceVersion", "uid", "creationTimestamp")  # of a new object, not yet there to be seen
_decode = msgspec.json.decode


class Admission:
    """What a server's writes go through.

    ``services`` says where the Services are that webhooks are behind: "namespace/name" (or with ":port") →
    "host:port".  ``plugins`` are the built-in rules that are gone by.
    """

    def __init__(
        self,
        store: Store,
        resources: Resources,
        *,
        names: Names,
        now: Callable[[], str],
        authorizer: Authorizer | None = None,
        services: Mapping[str, str] | None = None,
        plugins: Sequence[Plugin] = PLUGINS,
    ) -> None:
        self._store = store
        self._resources = resources
        self.uid = names.uid
        self._now = now
        self._authorizer = authorizer or AlwaysAllow()
        self._generated = names.generated
        self._services = services
        self._plugins = frozenset(plugins)
        self._caller: Caller | None = None
        self.converter = Converter(lambda: self.caller, names.uid)
        self._idle: dict[str, bool] = {}  # by the store's names
        self._hooks: dict[str, list[Hook]] = {}
        self._policies: dict[str, list[Policy]] = {}
        for name in (*_CONFIGURED, *_BINDINGS, _LIMITS, _QUOTAS):
            store.on_write(name, self._forget)

    def __repr__(self) -> str:
        return f"<Admission by {', '.join(sorted(self._plugins)) or 'nothing built in'}>"

    def _forget(self) -> None:
        self._idle.clear()
        self._hooks.clear()
        self._policies.clear()

    async def close(self) -> None:
        if self._caller is not None:
            await self._caller.close()

    def is_idle(self, resource: Resource) -> bool:
        """Whether nobody has anything to say about objects of this kind."""
        idle = self._idle.get(resource.stored)
        if idle is None:
            idle = self._idle[resource.stored] = not (
                any(self._store.listed(name) for name in _CONFIGURED)
                or ("PodSecurity" in self._plugins and resource.stored in SECURED)
                or ("ServiceAccount" in self._plugins and resource.stored == "pods")
                or ("LimitRanger" in self._plugins and resource.stored in LIMITED and self._has(_LIMITS))
                or ("ResourceQuota" in self._plugins and resource.namespaced and self._has(_QUOTAS))
            )
        return idle

    def _has(self, stored: str) -> bool:
        return bool(self._store.listed(stored))

    # ── The two halves ──────────────────────────────────────────────────────────────────────────────

    async def mutated(self, asked: Attributes, warnings: list[str]) -> tuple[Object, list[str]]:
        """What everybody makes of the object; and what was said about it, after what was said before."""
        try:
            await self._fill(asked)
            await self._change(asked)
        except StatusError as refused:
            refused.warnings = (*warnings, *asked.warnings, *refused.warnings)
            raise
        told, asked.warnings = asked.warnings, []
        return asked.object or {}, [*warnings, *told]

    async def _change(self, asked: Attributes) -> None:
        """By policies and webhooks; once more, where one of them changed something."""
        policies, hooks = self._read_policies(_CHANGING, asked), self._read(_MUTATING, asked)
        if not policies and not hooks:
            return
        from setpoint.server.admission import policies as by_policies  # noqa: PLC0415 - only where there are any
        from setpoint.server.admission import webhooks as by_webhooks  # noqa: PLC0415
        from setpoint.server.admission.cel_authorizer import asking  # noqa: PLC0415
        from setpoint.server.admission.settling import metadata_of, settle  # noqa: PLC0415

        before = metadata_of(asked.object)
        asked.is_complete = False
        first, second = by_policies.Rounds(), by_webhooks.Rounds()
        for is_second in (False, True):
            first.is_second = second.is_second = is_second
            if is_second:
                await self._fill(asked)
            if policies:
                with asking(self._authorizer, asked.user):
                    await by_policies.mutate(policies, asked, self, first)
            if hooks:
                await by_webhooks.mutate(hooks, asked, self, second)
            if not (first.is_again_wanted or second.is_again_wanted):
                break
        asked.is_complete = True
        settle(asked, before, self._generated)

    async def judged(
        self, asked: Attributes, obj: Object | None, warnings: list[str], held: Reservation | None = None
    ) -> list[str]:
        """What was said about an object that everybody agrees to; else a refusal, and nothing is held."""
        asked.object = obj
        try:
            self._judge(asked)
            if policies := self._read_policies(_JUDGING, asked):
                from setpoint.server.admission import policies as by_policies  # noqa: PLC0415
                from setpoint.server.admission.cel_authorizer import asking  # noqa: PLC0415

                with asking(self._authorizer, asked.user):
                    await by_policies.validate(policies, asked, self)
            if hooks := self._read(_VALIDATING, asked):
                from setpoint.server.admission.webhooks import validate  # noqa: PLC0415

                await validate(hooks, asked, self)
            if self.is_charged(asked):
                self._charged(asked)
        except StatusError as refused:
            refused.warnings = (*warnings, *asked.warnings, *refused.warnings)
            if held is not None:
                held.undo()
            raise
        except BaseException:
            if held is not None:
                held.undo()
            raise
        return [*warnings, *asked.warnings]

    # ── Built-in rules ──────────────────────────────────────────────────────────────────────────────

    async def _fill(self, asked: Attributes) -> None:
        """What an object does not say, in the order in which Kubernetes' plug-ins fill it in."""
        if asked.subresource or asked.object is None:
            return
        if asked.resource.stored == "pods" and asked.operation == "CREATE":
            await self._fill_pod(asked, asked.object)
        admit(asked.resource.stored, asked.object, self.look, asked.old)

    async def _fill_pod(self, asked: Attributes, pod: Object) -> None:
        """What its containers do not say, and who it runs as."""
        if "LimitRanger" in self._plugins and (ranges := self._listed(_LIMITS, asked.namespace)):
            from setpoint.server.admission import limits  # noqa: PLC0415

            limits.fill(pod, ranges)
        if "ServiceAccount" in self._plugins:
            from setpoint.server.admission import accounts  # noqa: PLC0415

            if not accounts.is_mirror(pod):
                account = await self._account(asked, accounts.name_account(pod))
                accounts.fill(pod, account, self._generated)

    async def _account(self, asked: Attributes, name: str) -> Object:
        """The default one is waited for: a namespace gets it a moment after it is made."""
        place = Place("serviceaccounts", asked.namespace, name)
        for _ in range(_LOOKS if name == "default" else 1):
            if (record := self._store.get(place)) is not None:
                found: Object = _decode(record.data)
                return found
            if name == "default":
                await asyncio.sleep(_LOOK_AGAIN)
        raise asked.refusal(
            f'error looking up service account {asked.namespace}/{name}: serviceaccount "{name}" not found'
        )

    def _judge(self, asked: Attributes) -> None:
        stored = asked.resource.stored
        is_new = asked.operation == "CREATE" and not asked.subresource
        if stored in LIMITED and asked.object is not None and "LimitRanger" in self._plugins:
            self._judge_limits(asked, is_new=is_new)
        if stored == "pods" and is_new and "ServiceAccount" in self._plugins:
            self._judge_account(asked)
        if stored in SECURED and "PodSecurity" in self._plugins:
            self._judge_security(asked)
        if asked.object is not None:
            judge(stored, asked.object, asked.old, self.look, asked.subresource)

    def _judge_limits(self, asked: Attributes, *, is_new: bool) -> None:
        is_resized = asked.subresource == "resize"
        is_claim = asked.resource.stored == "persistentvolumeclaims" and not asked.subresource
        if not (is_new or is_resized or is_claim) or asked.operation == "DELETE":
            return
        if asked.old is not None and asked.old["metadata"].get("deletionTimestamp"):
            return
        if ranges := self._listed(_LIMITS, asked.namespace):
            from setpoint.server.admission import limits  # noqa: PLC0415

            check = limits.claim_refusal if is_claim else limits.pod_refusal
            if told := check(asked.object or {}, ranges):
                raise asked.refusal(told)

    def _judge_account(self, asked: Attributes) -> None:
        from setpoint.server.admission import accounts  # noqa: PLC0415

        pod = asked.object or {}
        if accounts.is_mirror(pod):
            told = accounts.mirror_refusal(pod)
        else:
            name = pod["spec"].get("serviceAccountName", "")
            record = self._store.get(Place("serviceaccounts", asked.namespace, name))
            if record is None:
                told = f'serviceaccount "{name}" not found'
                told = f"error looking up service account {asked.namespace}/{name}: {told}"
            else:
                told = accounts.secrets_refusal(pod, _decode(record.data))
        if told:
            raise asked.refusal(told)

    def _judge_security(self, asked: Attributes) -> None:
        """Most namespaces say nothing about it, which their bytes tell."""
        if asked.resource.stored == "namespaces":
            if SECURITY not in str((asked.object or {}).get("metadata", {}).get("labels")):
                return
            from setpoint.server.admission import security  # noqa: PLC0415

            security.judge_namespace(asked, self._listed("pods", asked.name))
            return
        record = self._store.get(Place("namespaces", "", asked.namespace))
        if record is not None and SECURITY.encode() in record.data:
            from setpoint.server.admission import security  # noqa: PLC0415

            security.judge(asked, _decode(record.data)["metadata"].get("labels") or {})

    def is_charged(self, asked: Attributes) -> bool:
        """Whether quotas count what is written."""
        if "ResourceQuota" not in self._plugins or not self._has(_QUOTAS):
            return False
        from setpoint.server.admission import quotas  # noqa: PLC0415

        return quotas.is_counted(asked)

    async def charge(self, asked: Attributes) -> None:
        """Add to what is used; again, where somebody else did so meanwhile, but to no quota twice.

        What was judged may be refused here, where others have used up what was left.  Once it is charged it
        has to be written: nobody gives it back.
        """
        done: set[str] = set()
        while True:
            try:
                for quota in self._charged(asked, done):
                    await self._write_usage(quota)
                    done.add(quota["metadata"]["name"])
            except Changed:
                continue
            return

    def _charged(self, asked: Attributes, done: Collection[str] = ()) -> list[Object]:
        """The quotas that change, but for those that are done.  Raises a refusal."""
        from setpoint.server.admission import quotas  # noqa: PLC0415

        records = self._store.listed(_QUOTAS, asked.namespace)
        left = [_decode(one.data) for one in records if one.place.name not in done]
        return quotas.charged(left, asked)

    async def _write_usage(self, quota: Object) -> None:
        resource = self._resources.builtin("", "v1", _QUOTAS)
        place = Place(_QUOTAS, quota["metadata"]["namespace"], quota["metadata"]["name"])
        record = self._store.get(place)
        if record is None:
            return
        track_update(
            quota,
            _decode(record.data),
            manager="kube-apiserver",
            api_version="v1",
            subresource="status",
            now=self._now(),
            type=resource.type,
            only=tracked_fields(resource, "status"),
        )
        seen = int(quota["metadata"]["resourceVersion"])
        await self._store.update(place, encoder(resource.strategy.emit(quota)), seen)

    def _listed(self, stored: str, namespace: str) -> list[Object]:
        return [_decode(one.data) for one in self._store.listed(stored, namespace)]

    def look(self, stored: str, name: str = "") -> list[Object]:
        """Objects of a kind that is in no namespace: all, or the one of this name."""
        if not name:
            return self._listed(stored, "")
        record = self._store.get(Place(stored, "", name))
        return [] if record is None else [_decode(record.data)]

    # ── What webhooks need ──────────────────────────────────────────────────────────────────────────

    @property
    def caller(self) -> Caller:
        from setpoint.server.admission.calling import Caller  # noqa: PLC0415

        if self._caller is None:
            self._caller = Caller(self._services)
        return self._caller

    def _read(self, stored: str, asked: Attributes) -> Sequence[Hook]:
        found = self._hooks.get(stored)
        if found is None:
            found = self._hooks[stored] = []
            if configurations := self._listed(stored, ""):
                from setpoint.server.admission.webhooks import read_hooks  # noqa: PLC0415

                found += read_hooks(configurations)
        # Whoever guards the configurations could not be taken away again.
        return () if asked.resource.group == _GROUP else found

    def _read_policies(self, stored: str, asked: Attributes) -> Sequence[Policy]:
        found = self._policies.get(stored)
        if found is None:
            found = self._policies[stored] = []
            if bindings := self._listed(_BINDINGS[stored], ""):
                from setpoint.server.admission.policies import read_policies  # noqa: PLC0415

                found += read_policies(self._listed(stored, ""), bindings)
        return () if asked.resource.group == _GROUP else found

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        found = (one for one in self._resources.all() if (one.api_version, one.kind) == (api_version, kind))
        return next(found, None)

    async def objects(self, resource: Resource, namespace: str, name: str) -> list[Object]:
        """Those of one kind, in its version: the one of that name, or all.  Raises ``ConversionError``."""
        records = self._store.listed(resource.stored, namespace if resource.namespaced else "")
        found = [_decode(one.data) for one in records if not name or one.place.name == name]
        if is_by_webhook(resource):
            return await self.converter.read(found, resource)
        return [
            one if one["apiVersion"] == resource.api_version else converted(one, resource) for one in found
        ]

    def matched(self, matching: Matching, asked: Attributes) -> Resource | None:
        return matching.matched(asked, self._labels, self._equivalents)

    def _labels(self, namespace: str) -> Mapping[str, str]:
        found = self.namespace(namespace)
        labels: Mapping[str, str] = {} if found is None else found["metadata"].get("labels") or {}
        return labels

    def namespace(self, name: str) -> Object | None:
        record = self._store.get(Place("namespaces", "", name))
        return None if record is None else _decode(record.data)

    def _equivalents(self, resource: Resource) -> Sequence[Resource]:
        return [one for one in self._resources.all() if one.stored == resource.stored]

    async def converted(self, obj: Object | None, asked: Attributes, resource: Resource) -> Object | None:
        if obj is None:
            return None
        if asked.body is not None:
            return obj
        shown: Object = _decode(msgspec.json.encode(asked.resource.strategy.emit(obj)))
        if obj is asked.object and asked.operation == "CREATE":
            unknown = ("resourceVersion",) if asked.is_complete else _LATER
            for name in unknown:
                shown["metadata"].pop(name, None)
        if resource is asked.resource:
            return shown
        if not is_by_webhook(resource):
            return converted(shown, resource)
        try:
            return (await self.converter.read([shown], resource))[0]
        except ConversionError as error:
            raise internal(str(error)) from None

    async def is_meant(self, hook: Hook, asked: Attributes, request: Callable[[], Object]) -> bool:
        if not hook.conditions:
            return True
        from setpoint.server.admission.cel_authorizer import asking  # noqa: PLC0415
        from setpoint.server.admission.conditions import meant  # noqa: PLC0415

        with asking(self._authorizer, asked.user):
            seen = request()
            return await in_time(lambda: meant(hook.conditions, asked, seen, is_ignored=hook.is_ignored))
