"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: expressions that judge or change what is written.

A policy does nothing by itself: bindings say where it applies, with which parameters, and what follows from a
violation (Deny, Warn, Audit; the last is accepted, and not written anywhere).  What goes wrong in between is
the failure policy's to decide.  Nobody reads the annotations for an audit either, but they may go wrong.

Messages and annotations have nobody to ask what is allowed, and evaluate the variables again: one that asks
has a value in a rule, and none in its message.

Pure but for what is handed in (``Around``); expressions are ``cel.py``'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from setpoint.api.patches import same
from setpoint.api.selectors import LabelSelection
from setpoint.server.admission import reviews
from setpoint.server.admission.attributes import Attributes, read_again, restored
from setpoint.server.admission.cel import (
    Expression,
    Scope,
    Variables,
    activation,
    configuration,
    operations,
    patch_expression,
    without_authorizer,
)
from setpoint.server.admission.conditions import errors_or_none
from setpoint.server.admission.matching import Matching, labels, read_matching
from setpoint.server.golang import joined, quoted
from setpoint.server.registry import patching
from setpoint.server.registry.bodies import no_deeper
from setpoint.server.registry.conform import WrongType
from setpoint.server.registry.conversion import ConversionError
from setpoint.server.registry.crd.programs import CompileError, EvaluationError, OverBudget, Purse
from setpoint.server.registry.managed.typed import copied, merge, misfits
from setpoint.server.registry.patience import in_time
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.registry.types import Type
from setpoint.server.statuses import StatusError

_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_LONGEST_MESSAGE: Final = 5 * 1024
_INTERNAL: Final = "Internal error occurred: "
# Kinds of which there is no schema to apply a part of one by.
_UNDESCRIBED: Final = frozenset(
    {
        "Scale",
        *(f"Pod{one}Options" for one in ("Exec", "Attach", "PortForward", "Proxy")),
        "ServiceProxyOptions",
        "NodeProxyOptions",
    }
)


class Around(Protocol):
    """What policies need of the server."""

    def matched(self, matching: Matching, asked: Attributes) -> Resource | None: ...

    async def converted(self, obj: Object | None, asked: Attributes, resource: Resource) -> Object | None: ...

    def namespace(self, name: str) -> Object | None: ...

    def find_kind(self, api_version: str, kind: str) -> Resource | None: ...

    async def objects(self, resource: Resource, namespace: str, name: str) -> list[Object]:
        """Those of one kind, in its version: the one of that name, or all.  Raises ``ConversionError``."""


class _ConfigError(Exception):
    """A policy that cannot be gone by."""


_FAILED: Final = (_ConfigError, CompileError, EvaluationError, OverBudget)


# ── What is configured ──────────────────────────────────────────────────────────────────────────────


class Binding(NamedTuple):
    name: str
    matching: Matching | None
    params: Mapping[str, Any] | None
    actions: tuple[str, ...]


@dataclass(slots=True)
class Policy:
    """One policy with its bindings; what cannot be compiled is told when it is asked."""

    name: str
    matching: Matching
    is_ignored: bool  # what goes wrong
    is_reinvoked: bool
    param_kind: Mapping[str, str] | None
    conditions: tuple[str, ...]
    spec: Mapping[str, Any]
    bindings: list[Binding] = field(default_factory=list)
    _scope: Scope | None = None
    _variables: list[tuple[str, Expression]] = field(default_factory=list)
    _compiled: dict[str, Expression] = field(default_factory=dict)

    def compiled(self, text: str, *results: str) -> Expression:
        """Raises ``CompileError``."""
        scope = self._declared()
        found = self._compiled.get(text)
        if found is None:
            found = self._compiled[text] = scope.compile(text, *results)
        return found

    def patch(self, text: str, result: str) -> Expression:
        scope = self._declared()
        found = self._compiled.get(text)
        if found is None:
            found = self._compiled[text] = patch_expression(text, scope, result)
        return found

    def _declared(self) -> Scope:
        if self._scope is None:
            scope = Scope(has_params=self.param_kind is not None, has_variables=True)
            for one in self.spec.get("variables") or ():
                expression = scope.compile(one["expression"])
                scope.declare(one["name"], expression.type)
                self._variables.append((one["name"], expression))
            self._scope = scope
        return self._scope

    def values(self, data: Object, purse: Purse) -> Object:
        """The data with the variables."""
        self._declared()
        return {**data, "variables": Variables(dict(self._variables), data, purse)}


def read_policies(policies: Iterable[Object], bindings: Iterable[Object]) -> list[Policy]:
    """Those that are bound, in the order of their names."""
    found = {one["metadata"]["name"]: _read_policy(one) for one in policies}
    for one in sorted(bindings, key=lambda each: str(each["metadata"]["name"])):
        spec = one["spec"]
        policy = found.get(spec["policyName"])
        if policy is not None:
            policy.bindings.append(
                Binding(
                    one["metadata"]["name"],
                    _read_matching(spec["matchResources"]) if spec.get("matchResources") else None,
                    spec.get("paramRef"),
                    tuple(spec.get("validationActions") or ()),
                )
            )
    return [found[name] for name in sorted(found) if found[name].bindings]


def _read_matching(constraints: Mapping[str, Any]) -> Matching:
    found = read_matching(constraints, "resourceRules", "excludeResourceRules")
    return found if found.rules else found._replace(is_about_all=True)


def _read_policy(obj: Object) -> Policy:
    spec = obj["spec"]
    return Policy(
        obj["metadata"]["name"],
        _read_matching(spec.get("matchConstraints") or {}),
        spec.get("failurePolicy") == "Ignore",
        spec.get("reinvocationPolicy") == "IfNeeded",
        spec.get("paramKind"),
        tuple(one["expression"] for one in spec.get("matchConditions") or ()),
        spec,
    )


# ── Where they apply ────────────────────────────────────────────────────────────────────────────────


class _Case(NamedTuple):
    """A policy that is asked about a request, through one binding, with one of its parameters."""

    policy: Policy
    binding: Binding | None  # None where the policy itself cannot be gone by
    resource: Resource
    param: Object | None
    error: str = ""  # why it cannot be asked


async def _cases(policies: Sequence[Policy], asked: Attributes, around: Around) -> list[_Case]:
    found = []
    for policy in policies:
        resource = around.matched(policy.matching, asked)
        if resource is None:
            continue
        if (error := _kind_error(policy, around)) is not None:
            found.append(_Case(policy, None, resource, None, f"failed to configure policy: {error}"))
            continue
        for binding in policy.bindings:
            if binding.matching is not None and around.matched(binding.matching, asked) is None:
                continue
            try:
                params = await _params(policy, binding, asked, around)
            except _ConfigError as error:
                told = f"failed to configure binding: {error}"
                found.append(_Case(policy, binding, resource, None, told))
                continue
            found += [_Case(policy, binding, resource, param) for param in params]
    return found


def _kind_error(policy: Policy, around: Around) -> str | None:
    kind = policy.param_kind
    if kind is None or around.find_kind(kind["apiVersion"], kind["kind"]) is not None:
        return None
    version = kind["apiVersion"] if "/" in kind["apiVersion"] else f"/{kind['apiVersion']}"
    return f"failed to find resource referenced by paramKind: '{version}, Kind={kind['kind']}'"


async def _params(
    policy: Policy, binding: Binding, asked: Attributes, around: Around
) -> Sequence[Object | None]:
    kind, ref = policy.param_kind, binding.params
    if kind is None or ref is None:
        return [None]
    resource = around.find_kind(kind["apiVersion"], kind["kind"])
    if resource is None:
        return []  # as was told
    namespace = ref.get("namespace") or ""
    if resource.namespaced:
        namespace = namespace or asked.namespace
        if not namespace:
            raise _ConfigError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
    elif namespace:
        raise _ConfigError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    name = ref.get("name") or ""
    try:
        found = await around.objects(resource, namespace, name)
    except ConversionError as error:
        raise _ConfigError(str(error)) from None
    if not name:
        selection = LabelSelection.from_object(ref.get("selector") or {})
        found = [one for one in found if selection.matches(labels(one))]
    if not found and ref.get("parameterNotFoundAction") == "Deny":
        raise _ConfigError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found


async def _data(case: _Case, asked: Attributes, around: Around) -> Object:
    """Raises ``_ConfigError`` where the object is not to be had in the version that the policy is about."""
    try:
        obj = await around.converted(asked.object, asked, case.resource)
        old = await around.converted(asked.old, asked, case.resource)
    except StatusError as refused:
        raise _ConfigError(refused.message.removeprefix(_INTERNAL)) from None
    request = reviews.request(asked, case.resource, obj, old, "")
    namespace = None
    if asked.namespace and asked.resource.stored != "namespaces":
        namespace = around.namespace(asked.namespace)
        if namespace is not None:
            hidden = ("managedFields", "ownerReferences")
            metadata = {name: one for name, one in namespace["metadata"].items() if name not in hidden}
            namespace = {
                "metadata": metadata,
                "spec": namespace.get("spec"),
                "status": namespace.get("status"),
            }
    data = activation(obj, old, request, namespace)
    if case.policy.param_kind is not None:
        data["params"] = case.param
    return data


def _is_meant(case: _Case, data: Object) -> bool:
    """Whether the match conditions hold.  Raises ``_ConfigError`` where they have no value."""
    has_params = case.policy.param_kind is not None
    try:
        errors = errors_or_none(case.policy.conditions, data, has_params=has_params)
    except OverBudget as error:
        errors = [str(error)]
    if errors and not case.policy.is_ignored:
        raise _ConfigError(joined(errors))
    return errors is not None and not errors


# ── Judging ─────────────────────────────────────────────────────────────────────────────────────────


class _Decision(NamedTuple):
    message: str
    reason: str = ""
    is_always_denied: bool = False  # whatever the actions of the binding


async def validate(policies: Sequence[Policy], asked: Attributes, around: Around) -> None:
    """Raises the first refusal; what is only to be warned about is."""
    denied: list[tuple[_Case, _Decision]] = []
    for case in await _cases(policies, asked, around):
        if case.error:
            if not case.policy.is_ignored:
                denied.append((case, _Decision(case.error)))
            continue
        for decision in await _decisions(case, asked, around):
            actions = case.binding.actions if case.binding is not None else ()
            if decision.is_always_denied or "Deny" in actions:
                denied.append((case, decision))
            if "Warn" in actions and not decision.is_always_denied:
                told = f"Validation failed for ValidatingAdmissionPolicy {_named(case)}: {decision.message}"
                asked.warnings.append(told)
    if denied:
        case, decision = denied[0]
        told = f"ValidatingAdmissionPolicy {_named(case)} denied request: {decision.message}"
        refused = asked.refusal(told)
        refused.reason = decision.reason or "Invalid"
        refused.code = _CODES.get(refused.reason, 422)
        refused.details = {**(refused.details or {}), "causes": [{"message": told}]}
        raise refused


def _named(case: _Case) -> str:
    named = f"'{case.policy.name}'"
    return named if case.binding is None else f"{named} with binding '{case.binding.name}'"


async def _decisions(case: _Case, asked: Attributes, around: Around) -> list[_Decision]:
    """What a policy has against a request."""
    try:
        data = await _data(case, asked, around)
    except _ConfigError as error:
        told = f"failed to configure binding: failed to convert object version: {error}"
        return [] if case.policy.is_ignored else [_Decision(told, is_always_denied=True)]
    return await in_time(lambda: _judged(case, data))


def _judged(case: _Case, data: Object) -> list[_Decision]:
    policy = case.policy
    purse = Purse()
    try:
        if not _is_meant(case, data):
            return []
        verdicts = _verdicts(policy, policy.values(data, purse), purse)
        data = without_authorizer(data)
        return [*_told(policy, policy.values(data, purse), purse, verdicts), *_notes_failed(policy, data)]
    except (_ConfigError, CompileError, OverBudget) as error:
        return [] if policy.is_ignored else [_Decision(str(error))]


class _Verdict(NamedTuple):
    """Whether a rule holds, or why it has no value."""

    rule: Mapping[str, Any]
    holds: bool
    error: str = ""


def _verdicts(policy: Policy, data: Object, purse: Purse) -> list[_Verdict]:
    """Raises ``OverBudget``."""
    found = []
    for rule in policy.spec.get("validations") or ():
        try:
            value = policy.compiled(rule["expression"], "bool")(data, purse)
            found.append(_Verdict(rule, value is True))
        except (CompileError, EvaluationError) as error:
            found.append(_Verdict(rule, False, str(error)))
    return found


def _told(policy: Policy, data: Object, purse: Purse, verdicts: Sequence[_Verdict]) -> list[_Decision]:
    """All messages are composed, and paid for, before any is needed: too dear ones refuse what holds, too."""
    spent = ""
    messages: list[str] = []
    try:
        messages = [_message(policy, one.rule, data, purse) for one in verdicts]
    except OverBudget as error:
        spent = f"failed messageExpression: {error}"
    found = []
    for place, one in enumerate(verdicts):
        if one.error or spent:
            if not policy.is_ignored:
                found.append(_Decision(one.error or spent))
        elif not one.holds:
            found.append(_Decision(messages[place], one.rule.get("reason") or "Invalid"))
    return found


def _message(policy: Policy, rule: Mapping[str, Any], data: Object, purse: Purse) -> str:
    """Raises ``OverBudget``."""
    told: Any = ""
    if text := rule.get("messageExpression"):
        try:
            told = policy.compiled(text)(data, purse)
        except (CompileError, EvaluationError):
            told = ""
    told = told.strip() if isinstance(told, str) else ""
    if len(told.encode()) > _LONGEST_MESSAGE or "\n" in told:
        told = ""
    return told or (rule.get("message") or "").strip() or f"failed expression: {rule['expression'].strip()}"


def _notes_failed(policy: Policy, data: Object) -> list[_Decision]:
    """What kept annotations for an audit from having a value; their budget is their own.

    Raises ``OverBudget``.
    """
    notes = policy.spec.get("auditAnnotations") or ()
    purse = Purse()
    data = policy.values(data, purse) if notes else data
    found = []
    for one in notes:
        try:
            policy.compiled(one["valueExpression"], "string", "null_type")(data, purse)
        except (CompileError, EvaluationError) as error:
            if not policy.is_ignored:
                found.append(_Decision(str(error), is_always_denied=True))
    return found


# ── Changing ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Rounds:
    """Which policies are asked again in the second round."""

    is_second: bool = False
    is_again_wanted: bool = False
    again: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    left: Object | None = None

    def changed(self) -> None:
        self.again |= self.asked
        self.asked.clear()


class _Failure(NamedTuple):
    """What kept a policy from changing an object."""

    case: _Case
    why: str
    reason: str = "Invalid"

    def __str__(self) -> str:
        if self.case.binding is None:
            return f"policy {quoted(self.case.policy.name)} denied request: {self.why}"
        return f"policy {_named(self.case)} denied request: {self.why}"


async def mutate(policies: Sequence[Policy], asked: Attributes, around: Around, rounds: Rounds) -> None:
    """``asked.object`` becomes what the policies make of it.  Raises a refusal that names all that failed."""
    if rounds.is_second and not same(rounds.left, asked.object):
        rounds.changed()
    cases = await _cases(policies, asked, around)
    failures = [_Failure(case, case.error, "Forbidden") for case in cases if case.error]
    for case in cases:
        if not case.error:
            failures += await _mutate_by(case, asked, around, rounds)
    if rounds.is_again_wanted:
        rounds.changed()
    rounds.left = None if asked.object is None else patching.copied(asked.object)
    if failures := [one for one in failures if not one.case.policy.is_ignored]:
        raise _not_changed(failures, asked)


def _not_changed(failures: Sequence[_Failure], asked: Attributes) -> StatusError:
    """Its reason is not that of its code."""
    told = [str(one) for one in failures]
    refused = asked.refusal(told[0])
    refused.message, refused.reason = told[0], failures[0].reason
    refused.details = {**(refused.details or {}), "causes": [{"message": one} for one in told]}
    return refused


async def _mutate_by(case: _Case, asked: Attributes, around: Around, rounds: Rounds) -> list[_Failure]:
    try:
        data = await _data(case, asked, around)
    except _ConfigError as error:
        told = f"failed to configure policy: {error}"
        return [_Failure(case._replace(binding=None), told, "Forbidden")]
    try:
        if not await in_time(lambda: _is_meant(case, data)):
            return []
    except _FAILED as error:
        return [_Failure(case, str(error))]
    param = (case.param or {}).get("metadata") or {}
    bound = "" if case.binding is None else case.binding.name
    key = f"{case.policy.name}/{bound}/{param.get('namespace', '')}/{param.get('name', '')}"
    if rounds.is_second and key not in rounds.again:
        return []
    before, failures = data["object"], []
    for mutation in case.policy.spec.get("mutations") or ():
        if data["object"] is None:
            continue
        try:
            data["object"] = await _mutated(mutation, case, data, asked, around)
        except _FAILED as error:
            failures.append(_Failure(case, str(error)))  # the next may do better
        else:
            rounds.is_again_wanted = True  # whether it made a difference or not
    if data["object"] is not None and not same(before, data["object"]):
        rounds.changed()
    if case.policy.is_reinvoked:
        rounds.asked.add(key)
    return failures


async def _mutated(
    mutation: Mapping[str, Any], case: _Case, data: Object, asked: Attributes, around: Around
) -> Object:
    """The object after one mutation.  Raises one of ``_FAILED``, or what no failure policy is asked about."""
    resource = case.resource
    if mutation["patchType"] == "JSONPatch":
        left = await in_time(lambda: _patched(mutation["jsonPatch"]["expression"], case, data))
        read = read_again(left, asked, resource, is_strict=True)
    else:
        text, kind = mutation["applyConfiguration"]["expression"], asked.body or resource
        merged = await in_time(lambda: _applied(text, case, data, kind))
        try:
            read = restored(merged, asked, resource)
        except WrongType as wrong:
            told = f"unable to convert unstructured object to {_kind_text(kind)}: {wrong}"
            raise _ConfigError(told) from None
    return await _taken(read, asked, resource, around)


def _patched(text: str, case: _Case, data: Object) -> Any:
    purse = Purse()
    patch = operations(case.policy.patch(text, "list(JSONPatch)"), case.policy.values(data, purse), purse)
    left, failed = patching.perform_operations(patch, data["object"])
    if failed is not None and failed.is_test:
        return data["object"]  # then nothing of the patch is wanted
    if failed is not None:
        raise _ConfigError(f"JSON Patch: {failed.why}")
    return left


def _applied(text: str, case: _Case, data: Object, kind: Resource) -> Object:
    """Nobody owns what a policy sets."""
    purse = Purse()
    wanted = configuration(case.policy.patch(text, "Object"), case.policy.values(data, purse), purse)
    wanted = {**wanted, "apiVersion": kind.api_version, "kind": kind.kind}
    try:
        no_deeper(wanted)  # with every policy it could hold all that there is, one level further down
    except ValueError as error:
        raise _ConfigError(f"error applying patch: {error}") from None
    unfit = "error applying patch: failed to convert {} object to typed object: {}"
    if kind.kind in _UNDESCRIBED:
        raise _ConfigError(unfit.format("patch", f"no corresponding type for {_kind_text(kind)}"))
    if wrong := misfits(wanted, kind.type):
        raise _ConfigError(unfit.format("patch", _listed(wrong)))
    if whole := list(_whole(wanted, kind.type, "")):
        told = f"may not mutate atomic arrays, maps or structs: {', '.join(whole)}"
        raise _ConfigError(f"error applying patch: invalid ApplyConfiguration: {told}")
    if wrong := misfits(data["object"], kind.type, allow_duplicates=True):
        raise _ConfigError(unfit.format("original", _listed(wrong)))
    merged: Object = copied(merge(data["object"], wanted, kind.type))
    return merged


def _listed(wrong: Sequence[str]) -> str:
    return wrong[0] if len(wrong) == 1 else "\n  ".join(["errors:", *wrong])


def _kind_text(kind: Resource) -> str:
    return f"{kind.group}/{kind.version}, Kind={kind.kind}"


def _whole(value: Any, type_: Type, path: str) -> Iterator[str]:
    """Where a value is owned as a whole, of which a policy cannot set a part."""
    match value, type_.form:
        case dict(), "struct" | "map" if type_.is_atomic:
            yield path
        case list(), "list" if type_.list_type == "atomic":
            yield path
        case dict(), "struct":
            for name, one in value.items():
                if name in type_.fields:
                    yield from _whole(one, type_.fields[name].type, f"{path}.{name}")
        case dict(), "map" if type_.item is not None:
            for name, one in value.items():
                yield from _whole(one, type_.item, f"{path}.{name}")
        case list(), "list" if type_.item is not None:
            for place, one in enumerate(value):
                yield from _whole(one, type_.item, f"{path}[{place}]")


async def _taken(read: Object, asked: Attributes, resource: Resource, around: Around) -> Object:
    """What a policy left becomes the object; and is seen by the next."""
    if resource is asked.resource:
        asked.object = read
        seen = await around.converted(read, asked, resource)
        return read if seen is None else seen
    back = await around.converted(read, asked, asked.resource)
    asked.object = read if back is None else back
    return read
