"""Who may do what by the roles and bindings that are stored.

Promises:

1. A user may do what a rule says of a role that is bound to it, or to a group of its; in the whole cluster
   or in one namespace, as the binding is; and nothing else.  ``system:masters`` may do everything.
2. A binding or role that was written counts from the next request on.
3. What was decided once is a look into a dict until a role or binding is written: a request of a user that is
   known costs no walk over rules.

Fed by the store; asked by ``http/app.py`` and the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.authorizer import MASTERS, Decision, Held
from setpoint.server.authorization.rules import Rule, is_about, is_about_path
from setpoint.server.golang import quoted
from setpoint.server.registry.requests import User
from setpoint.server.storage.protocol import Place, Record, Store

GROUP: Final = "rbac.authorization.k8s.io"
_ROLES: Final = {"Role": f"roles.{GROUP}", "ClusterRole": f"clusterroles.{GROUP}"}
_BINDINGS: Final = f"rolebindings.{GROUP}"
_CLUSTER_BINDINGS: Final = f"clusterrolebindings.{GROUP}"
_MOST_USERS: Final = 1_000
_MOST_KEPT: Final = 10_000  # decisions of one user; roles and bindings
_LONGEST_KEPT: Final = 1_000  # characters of what is asked: what is longer is decided each time anew

_EVERY: Final = frozenset({"*"})  # in place of names: all objects, also those that have none yet
_T = TypeVar("_T")


class _Named(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""


class _Ref(msgspec.Struct, frozen=True, gc=False):
    kind: str = ""
    name: str = ""


class _Subject(msgspec.Struct, frozen=True, gc=False):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class _Binding(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    metadata: _Named
    role_ref: _Ref
    subjects: tuple[_Subject, ...] | None = ()


class _Role(msgspec.Struct, frozen=True):
    rules: tuple[Rule, ...] | None = ()


class _Source(NamedTuple):
    """A binding that applies to a user: through which subject, and the rules that it gives."""

    binding: _Binding
    subject: _Subject
    rules: Sequence[Rule] | None  # None where the role is not there


class _Grants:
    """What one user was found to have."""

    __slots__ = ("names", "paths", "sources")

    def __init__(self) -> None:
        self.sources: dict[str, list[_Source]] = {}  # by namespace; "" has those of the whole cluster
        self.names: dict[tuple[str, ...], frozenset[str]] = {}  # by verb, group, resource, part, namespace
        self.paths: dict[tuple[str, str], bool] = {}


class Rbac:
    """Judges by roles."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # What is read from the store, by place, with the revision that it was read at.
        self._read: dict[Place, tuple[int, Any]] = {}
        self._users: dict[tuple[str, tuple[str, ...]], _Grants] = {}
        for resource in (*_ROLES.values(), _BINDINGS, _CLUSTER_BINDINGS):
            store.on_write(resource, self._users.clear)

    def __repr__(self) -> str:
        return f"<Rbac, {len(self._users)} users known>"

    def allows(self, user: User, asked: Attributes) -> bool:
        if MASTERS in user.groups:
            return True
        key = user.name, user.groups
        grants = self._users.get(key)
        if grants is None:
            if len(self._users) >= _MOST_USERS:
                self._users.clear()
            grants = self._users[key] = _Grants()
        if asked.path is not None:
            if len(asked.path) > _LONGEST_KEPT:
                return self.decide(user, asked).is_allowed
            return self._allows_path(user, grants, asked.verb, asked.path)
        about = asked[:5]
        names = grants.names.get(about)
        if names is None:
            if sum(map(len, about)) > _LONGEST_KEPT:
                return self.decide(user, asked).is_allowed
            if len(grants.names) >= _MOST_KEPT:
                grants.names.clear()
            names = grants.names[about] = self._names(user, grants, asked)
        return names is _EVERY or asked.name in names

    def _names(self, user: User, grants: _Grants, asked: Attributes) -> frozenset[str]:
        found: set[str] = set()
        what = asked.verb, asked.group, asked.resource, asked.subresource
        for source in self._sources(user, asked.namespace, grants):
            for rule in source.rules or ():
                if is_about(rule, *what):
                    if not rule.resource_names:
                        return _EVERY
                    found.update(rule.resource_names)
        return frozenset(found)

    def _allows_path(self, user: User, grants: _Grants, verb: str, path: str) -> bool:
        found = grants.paths.get((verb, path))
        if found is None:
            if len(grants.paths) >= _MOST_KEPT:
                grants.paths.clear()
            found = grants.paths[verb, path] = any(
                is_about_path(rule, verb, path)
                for source in self._sources(user, "", grants)
                for rule in source.rules or ()
            )
        return found

    def decide(self, user: User, asked: Attributes) -> Decision:
        if MASTERS in user.groups:
            return Decision(True)
        errors = []
        for source in self._sources(user, asked.namespace):
            if source.rules is None:
                errors.append(_absent(source.binding.role_ref))
            elif any(_is_allowed(rule, asked) for rule in source.rules):
                return Decision(True, f"RBAC: allowed by {_described(source)}")
        return Decision(False, f"rbac: RBAC: {_joined(errors)}" if errors else "")

    def held(self, user: User, namespace: str) -> Held:
        sources = list(self._sources(user, namespace))
        return Held(
            [rule for source in sources for rule in source.rules or ()],
            [_absent(source.binding.role_ref) for source in sources if source.rules is None],
        )

    def rules_of(self, kind: str, name: str, namespace: str) -> Sequence[Rule] | None:
        resource = _ROLES.get(kind)
        if resource is None:
            return None
        record = self._store.get(Place(resource, namespace if kind == "Role" else "", name))
        return None if record is None else self._decoded(record, _read_role).rules or ()

    # ── Bindings that apply ─────────────────────────────────────────────────────────────────────────

    def _sources(self, user: User, namespace: str, grants: _Grants | None = None) -> Iterator[_Source]:
        """Those of the cluster, then those of the namespace, each by name."""
        known = grants.sources if grants is not None else {}
        for where in ("", namespace) if namespace else ("",):
            found = known.get(where)
            if found is None:
                if len(known) >= _MOST_KEPT:
                    known.clear()
                found = known[where] = list(self._applying(user, where))
            yield from found

    def _applying(self, user: User, namespace: str) -> Iterator[_Source]:
        resource = _BINDINGS if namespace else _CLUSTER_BINDINGS
        for record in self._store.listed(resource, namespace):
            binding = self._decoded(record, _read_binding)
            for subject in binding.subjects or ():
                if _is_meant(user, subject, namespace):
                    ref = binding.role_ref
                    yield _Source(binding, subject, self.rules_of(ref.kind, ref.name, namespace))
                    break

    def _decoded(self, record: Record, read: Callable[[bytes], _T]) -> _T:
        kept = self._read.get(record.place)
        if kept is not None and kept[0] == record.revision:
            found: _T = kept[1]
            return found
        if len(self._read) >= _MOST_KEPT:
            self._read.clear()
        found = read(record.data)
        self._read[record.place] = record.revision, found
        return found


_read_role: Final = msgspec.json.Decoder(_Role).decode
_read_binding: Final = msgspec.json.Decoder(_Binding).decode


def _is_meant(user: User, subject: _Subject, namespace: str) -> bool:
    match subject.kind:
        case "User":
            return user.name == subject.name
        case "Group":
            return subject.name in user.groups
        case "ServiceAccount":
            where = subject.namespace or namespace
            return bool(where) and user.name == f"system:serviceaccount:{where}:{subject.name}"
    return False


def _is_allowed(rule: Rule, asked: Attributes) -> bool:
    if asked.path is not None:
        return is_about_path(rule, asked.verb, asked.path)
    if not is_about(rule, asked.verb, asked.group, asked.resource, asked.subresource):
        return False
    return not rule.resource_names or asked.name in rule.resource_names


def _described(source: _Source) -> str:
    """``ClusterRoleBinding "a" of ClusterRole "b" to Group "c"``."""
    binding, subject, ref = source.binding, source.subject, source.binding.role_ref
    where = binding.metadata.namespace
    name = f"{binding.metadata.name}/{where}" if where else binding.metadata.name
    who = subject.name
    if subject.kind == "ServiceAccount":
        who = f"{subject.name}/{subject.namespace or where}"
    return f"{binding.kind} {quoted(name)} of {ref.kind} {quoted(ref.name)} to {subject.kind} {quoted(who)}"


def _absent(ref: _Ref) -> str:
    if ref.kind not in _ROLES:
        return f"unsupported role reference kind: {quoted(ref.kind)}"
    return f"{ref.kind.lower()}.{GROUP} {quoted(ref.name)} not found"


def _joined(errors: list[str]) -> str:
    once = list(dict.fromkeys(errors))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"
