"""``authorizer`` in CEL: whether the user of a request, or a service account, may do something.

    authorizer.group('apps').resource('deployments').namespace('a').check('create').allowed()
    authorizer.path('/healthz').check('get').allowed()
    authorizer.requestResource.check('custom').allowed()

To the evaluator these are maps that collect what is asked; ``check`` asks it of the authorizer that
``asking`` has set for the time of an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.authorizer import Authorizer
from setpoint.server.registry.crd.signatures import Overload, Type
from setpoint.server.registry.crd.values import EvaluationError
from setpoint.server.registry.patience import at_home
from setpoint.server.registry.requests import User
from setpoint.server.registry.validation import texts

AUTHORIZER: Final = Type("kubernetes.authorization.Authorizer")
RESOURCE: Final = Type("kubernetes.authorization.ResourceCheck")
_PATH: Final = Type("kubernetes.authorization.PathCheck")
_GROUP: Final = Type("kubernetes.authorization.GroupCheck")
_DECISION: Final = Type("kubernetes.authorization.Decision")
_TEXT, _BOOL = Type("string"), Type("bool")
_ASKED: ContextVar[tuple[Authorizer, User]] = ContextVar("authorizer")
_NAMES: Final = ("group", "resource", "subresource", "namespace", "name")

Value = dict[str, Any]


@contextmanager
def asking(authorizer: Authorizer, user: User) -> Iterator[None]:
    """Expressions that are evaluated meanwhile ask this authorizer about this user."""
    token = _ASKED.set((authorizer, user))
    try:
        yield
    finally:
        _ASKED.reset(token)


def _with(name: str) -> Any:
    return lambda value, text: {**value, name: text}


def _with_some(name: str) -> Any:
    def call(value: Value, text: str) -> Value:
        if not text.strip():
            raise EvaluationError(f"{name} must not be empty")
        return {**value, name: text}

    return call


def _account(value: Value, namespace: str, name: str) -> Value:
    if texts.subdomain(name):
        raise EvaluationError("Invalid service account name")
    if texts.label(namespace):
        raise EvaluationError("Invalid service account namespace")
    return {**value, "user": f"system:serviceaccount:{namespace}:{name}", "in": namespace}


def _check(value: Value, verb: str) -> Value:
    authorizer, user = _ASKED.get()
    if "user" in value:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{value['in']}", "system:authenticated")
        user = User(value["user"], groups)
    said = {name: value[name] for name in _NAMES if name in value}
    asked = Attributes(verb, **said, path=value.get("path"))
    decision = at_home(lambda: authorizer.decide(user, asked))
    return {"allowed": decision.is_allowed, "reason": decision.reason}


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "path": _with_some("path"),
    "group": _with("group"),
    "serviceAccount": _account,
    "resource": _with_some("resource"),
    "subresource": _with("subresource"),
    "namespace": _with("namespace"),
    "name": _with("name"),
    "fieldSelector": _with("fieldSelector"),
    "labelSelector": _with("labelSelector"),
    "check": _check,
    "allowed": lambda value: value["allowed"],
    "reason": lambda value: value["reason"],
    "errored": lambda _: False,
    "error": lambda _: "",
}
OVERLOADS: Final[Mapping[str, tuple[Overload, ...]]] = {
    "path": (Overload(AUTHORIZER, (_TEXT,), _PATH),),
    "group": (Overload(AUTHORIZER, (_TEXT,), _GROUP),),
    "serviceAccount": (Overload(AUTHORIZER, (_TEXT, _TEXT), AUTHORIZER),),
    "resource": (Overload(_GROUP, (_TEXT,), RESOURCE),),
    **{
        name: (Overload(RESOURCE, (_TEXT,), RESOURCE),)
        for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    },
    "check": (Overload(_PATH, (_TEXT,), _DECISION), Overload(RESOURCE, (_TEXT,), _DECISION)),
    "allowed": (Overload(_DECISION, (), _BOOL),),
    "errored": (Overload(_DECISION, (), _BOOL),),
    "reason": (Overload(_DECISION, (), _TEXT),),
    "error": (Overload(_DECISION, (), _TEXT),),
}
