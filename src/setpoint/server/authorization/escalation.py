"""Nobody gives what it has not: who writes a role or a binding holds the rules that it gives.

Unless it may ``escalate`` the role, or ``bind`` the role that a binding names; ``system:masters`` may anyway.
An update that only touches finalizers and owners (the garbage collector's) is not judged.  A certificate is
such a gift too: ``signers.py``.

Decides on plain objects; called by ``registry/registry.py`` before an object is validated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from setpoint.api.patches import same
from setpoint.server.authorization import signers
from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.authorizer import MASTERS, Authorizer
from setpoint.server.authorization.rbac import GROUP
from setpoint.server.authorization.rules import EVERYTHING, Rule, described, in_brackets, missing
from setpoint.server.golang import quoted
from setpoint.server.registry.requests import Ask, User
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.statuses import StatusError, forbidden, not_found

_ROLES: Final = ("roles", "clusterroles")
_BINDINGS: Final = ("rolebindings", "clusterrolebindings")
_TO_CLUSTER_ADMINS: Final = "must have cluster-admin privileges to use the aggregationRule"
_OF_COLLECTORS: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields")


def check(new: Object, old: Object | None, ask: Ask, authorizer: Authorizer) -> None:
    """Raises 403 where the write would give away what its writer has not."""
    resource = ask.resource
    if resource.qualified == signers.REQUESTS:
        signers.check(new, old, ask, authorizer)
    if resource.qualified == signers.BUNDLES and not (old is not None and _is_collecting(new, old)):
        signers.check_bundle(new, ask, authorizer)
    if resource.group != GROUP or MASTERS in ask.user.groups:
        return
    if old is not None and _is_collecting(new, old):
        return
    if resource.plural in _ROLES:
        _check_role(new, old, ask, authorizer)
    elif resource.plural in _BINDINGS:
        _check_binding(new, ask, authorizer)


def _check_role(new: Object, old: Object | None, ask: Ask, authorizer: Authorizer) -> None:
    resource, user = ask.resource, ask.user
    name = "" if old is None and ask.verb == "create" else ask.name
    escalates = Attributes("escalate", GROUP, resource.plural, "", ask.namespace, name)
    if authorizer.allows(user, escalates):
        return
    rules = msgspec.convert(new.get("rules") or (), tuple[Rule, ...])
    _check_held(rules, new, ask, authorizer)
    is_aggregating = _aggregates(new) or (old is not None and _aggregates(old))
    if is_aggregating and missing(authorizer.held(user, "").rules, EVERYTHING):
        raise _refused(resource, new, _TO_CLUSTER_ADMINS)


def _check_binding(new: Object, ask: Ask, authorizer: Authorizer) -> None:
    ref = new.get("roleRef") or {}
    kind, name = ref.get("kind", ""), ref.get("name", "")
    plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
    if plural is None:
        raise StatusError(500, "", f"unsupported role reference kind: {quoted(kind)}")
    binds = Attributes("bind", ref.get("apiGroup", ""), plural, "", ask.namespace, name)
    if authorizer.allows(ask.user, binds):
        return
    rules = authorizer.rules_of(kind, name, ask.namespace)
    if rules is None:
        raise not_found(ask.resource.plural, GROUP, name)
    _check_held(rules, new, ask, authorizer)


def _check_held(rules: Sequence[Rule], new: Object, ask: Ask, authorizer: Authorizer) -> None:
    held = authorizer.held(ask.user, ask.namespace)
    lacking = missing(held.rules, rules)
    if not lacking:
        return
    told = f"{_who(ask.user)} is attempting to grant RBAC permissions not currently held:\n"
    told += "\n".join(described(lacking))
    if held.errors:
        told += f"; resolution errors: [{_aggregated(held.errors)}]"
    raise _refused(ask.resource, new, told)


def _aggregated(errors: Sequence[str]) -> str:
    once = list(dict.fromkeys(errors))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def _who(user: User) -> str:
    return f"user {quoted(user.name)} (groups={in_brackets(user.groups)})"


def _refused(resource: Resource, obj: Object, told: str) -> StatusError:
    metadata = obj["metadata"]
    # One that is generated is given later.
    name = "" if metadata.get("generateName") else metadata.get("name", "")
    return forbidden(resource.plural, resource.group, name, told)


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_collecting(new: Object, old: Object) -> bool:
    """Whether all else is as it was."""
    return same(_without(new), _without(old))


def _without(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _OF_COLLECTORS}
    return {**obj, "metadata": metadata}
