"""Runs an operator with exactly the RBAC rules that it declares, and says which are missing and which unused.

    async with Cluster() as cluster, least_privilege(cluster.server, operator.rules()) as allowed:
        async with Client(transport=allowed) as client:
            ...                                  # the operator, and what it is to do

1. Inside, who asks through ``allowed`` is a service account that has these rules, in all namespaces or in the
   ones that are named, and no others but those that everybody has.
2. Leaving raises ``AssertionError`` if anything was refused: it names what, and the rule to add.  Where the
   body raised, as it does when what it waits for may not be made, its error stays, and has that as a note.
3. ``unused`` are verbs that were given and not asked for: perhaps they need not be.

The judge is the server's own RBAC; what it says in a refusal is what is told here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from setpoint.cache.scope import rbac_rule
from setpoint.net.transport import Request, Response, Transport
from setpoint.server.server import ApiServer
from setpoint.testing.asked import Asked, read_request

_NAMESPACE: Final = "default"
_GROUP: Final = "rbac.authorization.k8s.io"
_JSON: Final = {"Content-Type": "application/json"}

# The refusals of RBAC, in Kubernetes' words.
_CANNOT: Final = re.compile(
    r'cannot (?P<verb>\S+) (?:path "(?P<path>[^"]+)"|resource "(?P<resource>[^"]+)" in API group '
    r'"(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]+)")?)'
)
_GIVES: Final = "is attempting to grant RBAC permissions not currently held:"
_AGGREGATES: Final = "must have cluster-admin privileges to use the aggregationRule"
_SIGNS: Final = re.compile(r'not permitted to (?P<verb>\S+) requests with signerName "(?P<name>[^"]+)"')
_WORDS: Final = {
    "APIGroups": "apiGroups",
    "Resources": "resources",
    "ResourceNames": "resourceNames",
    "NonResourceURLs": "nonResourceURLs",
    "Verbs": "verbs",
}


class Right(NamedTuple):
    """One verb on one resource, ``patch`` on ``apps``, ``deployments/status``; or on a path."""

    group: str
    resource: str
    verb: str
    name: str = ""  # "" is all objects
    path: str = ""
    namespace: str = ""  # "" is the whole cluster
    instead: str = ""  # of what was to be given on in a role or binding: what would do in its place

    def __str__(self) -> str:
        what = f"path {self.path}" if self.path else f"{self.resource} of API group {self.group!r}"
        name = f" named {self.name!r}" if self.name else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        does = f"give what it does not have: {self.verb}" if self.instead else self.verb
        return f"{does} {what}{name}{where}"


class Privileges:
    """A transport of somebody who has certain rules; it remembers what was asked, and what was refused."""

    def __init__(
        self, transport: Transport, rules: Iterable[Mapping[str, Any]], *, is_confined: bool = False
    ) -> None:
        self._transport = transport
        self._is_confined = is_confined
        self.given = frozenset(_rights(rules))
        self.used: Counter[Right] = Counter()
        self.refused: Counter[Right] = Counter()

    def __repr__(self) -> str:
        return f"<Privileges {len(self.given)} given, {len(self.used)} used, {len(self.refused)} missing>"

    async def __call__(self, request: Request) -> Response:
        response = await self._transport(request)
        asked = read_request(request)
        self.used[_right(request, asked)] += 1
        if response.status == 403:
            message = str(json.loads(await response.read()).get("message", ""))
            for right in _lacking(message, asked):
                # Who has its rules everywhere gets one more of those.
                self.refused[right if self._is_confined else right._replace(namespace="")] += 1
        return response

    @property
    def missing(self) -> list[str]:
        """The rules to add, as items of a role's ``rules``."""
        return list(dict.fromkeys(rule for rules in self._to_add().values() for rule in rules))

    @property
    def unused(self) -> list[Right]:
        """What was given and not asked for; who creates by apply asks for ``patch``, and needs ``create``.

        Nor is asked for what is had only to be given on in roles, nor ``escalate`` and ``bind``.
        """
        asked = {*self.used, *(right._replace(verb="create") for right in self.used if right.verb == "patch")}
        return sorted(right for right in self.given if not any(_is_in(one, right) for one in asked))

    def check(self) -> None:
        """Raises where something was refused."""
        if self.refused:
            raise AssertionError(self.told)

    @property
    def told(self) -> str:
        """What was refused, and the rules to add; "" where nothing was."""
        if not self.refused:
            return ""
        refused = sorted(self.refused.items())
        told = [f"refused: {'; '.join(f'cannot {right} ({count} times)' for right, count in refused)}"]
        for namespace, rules in self._to_add().items():
            told += [f"add to the rules of {self._role(namespace)}:", *(f"  {rule}" for rule in rules)]
        told += dict.fromkeys(f"or: {right.instead}" for right, _ in refused if right.instead)
        return "\n".join(told)

    def _to_add(self) -> dict[str, list[str]]:
        """The rules, by the namespace of their role."""
        verbs: dict[Right, list[str]] = {}
        for right in sorted(self.refused):
            found = verbs.setdefault(right._replace(verb="", instead=""), [])
            found += [] if right.verb in found else [right.verb]
        rules: dict[str, list[str]] = {}
        for right, found in verbs.items():
            rules.setdefault(right.namespace, []).append(_rule(right, found))
        return rules

    def _role(self, namespace: str) -> str:
        if namespace:
            return f"its Role in namespace {namespace}"
        if self._is_confined:
            return "a ClusterRole (or, of kinds in namespaces, ask in its own alone: Manager(namespaces=...))"
        return "its ClusterRole"


def _right(request: Request, asked: Asked) -> Right:
    """What has to be allowed for a request."""
    if not asked.plural:
        return Right("", "", request.method.lower(), path=urlsplit(request.target).path)
    resource = f"{asked.plural}/{asked.subresource}" if asked.subresource else asked.plural
    return Right(asked.group, resource, "patch" if asked.verb == "apply" else asked.verb)


def _is_in(asked: Right, given: Right) -> bool:
    """Whether a right is one that was given; ``*`` stands for anything."""
    here, there = ((one.group, one.resource, one.verb, one.path) for one in (asked, given))
    return all(map(fnmatchcase, here, there))


def _lacking(message: str, asked: Asked) -> Iterator[Right]:
    """What somebody would need who was refused with this message.

    Not every refusal is one of RBAC: admission refuses in other words.
    """
    if found := _CANNOT.search(message):
        yield Right(**{name: text or "" for name, text in found.groupdict().items()})
    elif found := _SIGNS.search(message):
        yield Right("certificates.k8s.io", "signers", found["verb"], name=found["name"])
    elif _AGGREGATES in message:
        yield Right(_GROUP, asked.plural, "escalate")
    elif _GIVES in message:
        is_role = asked.plural.endswith("roles")
        instead = (
            f"the verb escalate on {asked.plural}" if is_role else "the verb bind on the role that it binds"
        )
        for right in _rights(map(_read_rule, message.splitlines()[1:])):
            # A Role has no paths.
            yield right._replace(namespace="" if right.path else asked.namespace, instead=instead)


def _read_rule(line: str) -> dict[str, list[str]]:
    """``{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}``, in wire form."""
    lists = re.findall(r'\b(\w+):\[((?:"[^"]*" ?)*)\]', line)
    return {_WORDS[word]: re.findall(r'"([^"]*)"', texts) for word, texts in lists if word in _WORDS}


def _rights(rules: Iterable[Mapping[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        for verb in rule.get("verbs") or ():
            for path in rule.get("nonResourceURLs") or ():
                yield Right("", "", verb, path=path)
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for name in rule.get("resourceNames") or ("",):
                        yield Right(group, resource, verb, name)


def _rule(right: Right, verbs: Iterable[str]) -> str:
    verbs = ['"*"' if verb == "*" else verb for verb in verbs]
    if right.path:
        return f'- {{nonResourceURLs: ["{right.path}"], verbs: [{", ".join(verbs)}]}}'
    rule = rbac_rule(right.group, right.resource, verbs)
    return rule.replace(", verbs", f', resourceNames: ["{right.name}"], verbs') if right.name else rule


@asynccontextmanager
async def least_privilege(
    server: ApiServer,
    rules: Iterable[Mapping[str, Any]],
    *,
    name: str = "operator",
    namespaces: Iterable[str] | None = None,
) -> AsyncIterator[Privileges]:
    """A service account with these rules on ``server``, as a transport.

    It has them everywhere, by a ClusterRole; or in these ``namespaces`` alone, by a Role in each.
    """
    rules = list(rules)
    admin = server.transport()
    accounts = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts"
    await _create(admin, accounts, {"metadata": {"name": name}})
    if namespaces is None:
        await _give(admin, name, rules, "Cluster", "")
    else:
        for namespace in namespaces:
            await _give(admin, name, rules, "", f"namespaces/{namespace}/")
    made = await _create(admin, f"{accounts}/{name}/token", {})
    transport = server.transport(token=made["status"]["token"])
    privileges = Privileges(transport, rules, is_confined=namespaces is not None)
    try:
        yield privileges
    except BaseException as error:
        # As a note: that something was refused need not be why it failed.
        if privileges.refused:
            error.add_note(privileges.told)
        raise
    privileges.check()


async def _give(admin: Transport, name: str, rules: list[Mapping[str, Any]], scope: str, where: str) -> None:
    """A role with these rules, and its binding; ``scope`` is how the names of their kinds begin."""
    path = f"/apis/{_GROUP}/v1/{where}{scope.lower()}role"
    await _create(admin, f"{path}s", {"metadata": {"name": name}, "rules": rules})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _GROUP, "kind": f"{scope}Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": _NAMESPACE}],
    }
    await _create(admin, f"{path}bindings", binding)


async def _create(transport: Transport, path: str, body: Mapping[str, Any]) -> Any:
    response = await transport(Request("POST", path, _JSON, json.dumps(body).encode()))
    answer = json.loads(await response.read())
    if response.status != 201:
        raise AssertionError(f"POST {path}: {answer.get('message', answer)}")
    return answer
