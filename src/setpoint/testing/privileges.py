"""Runs an operator with exactly the RBAC rules that it declares, and says which are missing and which unused.

    async with Cluster() as cluster, least_privilege(cluster.server, operator.rules()) as allowed:
        async with Client(transport=allowed) as client:
            ...                                  # the operator, and what it is to do

1. Inside, who asks through ``allowed`` is a service account that has these rules in all namespaces, and no
   others but those that everybody has.
2. Leaving raises ``AssertionError`` if anything was refused: it names what, and the rule to add.
3. ``unused`` are verbs that were given and not asked for: perhaps they need not be.

The judge is the server's own RBAC; what it says in a refusal is what is told here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from setpoint.cache.scope import rbac_rule
from setpoint.net.transport import Request, Response, Transport
from setpoint.server.server import ApiServer
from setpoint.testing.asked import read_request

_NAMESPACE: Final = "default"
_REFUSED: Final = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
)
_JSON: Final = {"Content-Type": "application/json"}


class Right(NamedTuple):
    """One verb on one resource: ``patch`` on ``apps``, ``deployments/status``."""

    group: str
    resource: str
    verb: str


class Privileges:
    """A transport of somebody who has certain rules; it remembers what was asked, and what was refused."""

    def __init__(self, transport: Transport, rules: Iterable[Mapping[str, Any]]) -> None:
        self._transport = transport
        self.given = frozenset(_rights(rules))
        self.used: Counter[Right] = Counter()
        self.refused: Counter[Right] = Counter()

    def __repr__(self) -> str:
        return f"<Privileges {len(self.given)} given, {len(self.used)} used, {len(self.refused)} missing>"

    async def __call__(self, request: Request) -> Response:
        response = await self._transport(request)
        asked = read_request(request)
        if asked.plural:
            resource = f"{asked.plural}/{asked.subresource}" if asked.subresource else asked.plural
            verb = "patch" if asked.verb == "apply" else asked.verb
            self.used[Right(asked.group, resource, verb)] += 1
        if response.status == 403:
            self._note(await response.read())
        return response

    def _note(self, body: bytes) -> None:
        # Not every refusal is one of RBAC: admission refuses in other words.
        found = _REFUSED.search(str(json.loads(body).get("message", "")))
        if found is not None:
            self.refused[Right(found["group"], found["resource"], found["verb"])] += 1

    @property
    def missing(self) -> list[str]:
        """The rules to add, as items of a role's ``rules``."""
        verbs: dict[tuple[str, str], list[str]] = {}
        for right in sorted(self.refused):
            verbs.setdefault((right.group, right.resource), []).append(right.verb)
        return [rbac_rule(group, resource, found) for (group, resource), found in verbs.items()]

    @property
    def unused(self) -> list[Right]:
        """What was given and not asked for; who creates by apply asks for ``patch``, and needs ``create``."""
        asked = {*self.used, *(right._replace(verb="create") for right in self.used if right.verb == "patch")}
        return sorted(right for right in self.given if right not in asked)

    def check(self) -> None:
        """Raises where something was refused."""
        if not self.refused:
            return
        told = [
            f"cannot {right.verb} {right.resource} of API group {right.group!r} ({count} times)"
            for right, count in sorted(self.refused.items())
        ]
        rules = "\n".join(f"  {rule}" for rule in self.missing)
        raise AssertionError(f"refused: {'; '.join(told)}\nadd to the rules of its ClusterRole:\n{rules}")


def _rights(rules: Iterable[Mapping[str, Any]]) -> Iterable[Right]:
    for rule in rules:
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for verb in rule.get("verbs") or ():
                    yield Right(group, resource, verb)


@asynccontextmanager
async def least_privilege(
    server: ApiServer, rules: Iterable[Mapping[str, Any]], *, name: str = "operator"
) -> AsyncIterator[Privileges]:
    """A service account with these rules on ``server``, as a transport."""
    rules = list(rules)
    admin = server.transport()
    rbac, group = "/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    accounts = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts"
    await _create(admin, accounts, {"metadata": {"name": name}})
    await _create(admin, f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": _NAMESPACE}],
    }
    await _create(admin, f"{rbac}/clusterrolebindings", binding)
    made = await _create(admin, f"{accounts}/{name}/token", {})
    privileges = Privileges(server.transport(token=made["status"]["token"]), rules)
    yield privileges
    privileges.check()


async def _create(transport: Transport, path: str, body: Mapping[str, Any]) -> Any:
    response = await transport(Request("POST", path, _JSON, json.dumps(body).encode()))
    answer = json.loads(await response.read())
    if response.status != 201:
        raise AssertionError(f"POST {path}: {answer.get('message', answer)}")
    return answer
