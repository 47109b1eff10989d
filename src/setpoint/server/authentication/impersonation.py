"""Being taken for somebody else: whom a request asks to be, and whether its sender may.

There are two ways to be allowed.  The old one: the verb ``impersonate`` on the user, on each group and each
further value.  The constrained one, tried first: ``impersonate:<mode>`` on those, and besides
``impersonate-on:<mode>:<verb>`` on what is asked.  The modes are ``user-info``, ``serviceaccount``,
``arbitrary-node`` and ``associated-node``, by whom it is.  The refusal is that of the way that last worked
for the sender, or else of the first one tried.

Used by ``http/authentication.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote

from setpoint.net.headers import Headers, every_value
from setpoint.server.authentication.names import (
    ACCOUNT,
    ANONYMOUS,
    AUTHENTICATED,
    NODE,
    UNAUTHENTICATED,
    account_groups,
)
from setpoint.server.authorization.attributes import Attributes, refusal
from setpoint.server.authorization.authorizer import MASTERS, Authorizer
from setpoint.server.golang import quoted
from setpoint.server.registry.requests import User
from setpoint.server.statuses import StatusError, bad_request

_ANY: Final = "impersonate-"
_AS: Final = "Impersonate-User"
_AS_GROUP: Final = "Impersonate-Group"
_AS_UID: Final = "Impersonate-Uid"
_AS_EXTRA: Final = "Impersonate-Extra-"
_GROUP: Final = "authentication.k8s.io"
_OLD: Final = ""  # the mode that is none
_MODES: Final = ("associated-node", "arbitrary-node", "serviceaccount", "user-info", _OLD)
_MANY: Final = 4  # from so many values on, the right to all of them is looked for first
_MOST_KEPT: Final = 1_000


def is_wanted(headers: Mapping[str, str]) -> bool:
    """Quickly, since nearly no request does."""
    if isinstance(headers, Headers):
        return headers.has_any(_ANY)
    return any(name.lower().startswith(_ANY) for name in headers)


def wanted(headers: Mapping[str, str]) -> User | None:
    """Whom a request asks to be taken for, as it says it; None where it asks for nobody."""
    name = headers.get(_AS, "")
    groups = tuple(every_value(headers, _AS_GROUP))
    uid = headers.get(_AS_UID, "")
    extra: dict[str, tuple[str, ...]] = {}
    for header in headers:
        if header.startswith(_AS_EXTRA):
            key = unquote(header[len(_AS_EXTRA) :].lower())
            extra[key] = (*extra.get(key, ()), *every_value(headers, header))
    if name:
        return User(name, groups, uid, extra)
    if groups or uid or extra:
        raise bad_request(f"requested {_printed(groups, uid, extra)} without impersonating a user name")
    return None


def _printed(groups: tuple[str, ...], uid: str, extra: Mapping[str, tuple[str, ...]]) -> str:
    """The user, as Go prints it with ``%#v``."""
    listed = f"[]string{{{', '.join(map(quoted, groups))}}}" if groups else "[]string(nil)"
    pairs = [
        f"{quoted(key)}:[]string{{{', '.join(map(quoted, values))}}}" for key, values in sorted(extra.items())
    ]
    more = f"map[string][]string{{{', '.join(pairs)}}}" if pairs else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quoted(uid)}, Groups:{listed}, Extra:{more}}}'


class Impersonation:
    """Says who may be taken for whom."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._worked: dict[str, str] = {}  # the mode that last worked, by the sender's name

    def user(self, sender: User, other: User, asked: Attributes) -> User:
        """The other, as it is from now on.  Raises 403 where the sender may not be taken for it."""
        if MASTERS in sender.groups:  # nothing is to be looked up for who may do everything
            return _completed(other, _OLD)
        last = self._worked.get(sender.name)
        modes = _MODES if last is None else (last, *(one for one in _MODES if one != last))
        first: StatusError | None = None
        for mode in modes:
            if not _is_mode_for(mode, sender, other):
                continue
            try:
                self._check(mode, sender, other, asked)
            except StatusError as refused:
                first = first or refused
                continue
            if len(self._worked) >= _MOST_KEPT:
                self._worked.clear()
            self._worked[sender.name] = mode
            return _completed(other, mode)
        if first is None:
            raise AssertionError("the old way is for everybody, and it either works or refuses")
        raise first

    def _check(self, mode: str, sender: User, other: User, asked: Attributes) -> None:
        def demand(wish: Attributes) -> None:
            if not self._authorizer.allows(sender, wish):
                raise refusal(sender, wish, self._authorizer.decide(sender, wish).reason)

        if mode:
            on = asked._replace(verb=f"impersonate-on:{mode}:{asked.verb}")
            demand(on)
        verb, group = (f"impersonate:{mode}", _GROUP) if mode else ("impersonate", "")
        demand(_naming(verb, group, mode, other.name))
        if other.uid:
            demand(Attributes(verb, _GROUP, "uids", name=other.uid))
        if other.groups:
            self._check_groups(Attributes(verb, group, "groups"), mode, sender, other.groups, demand)
        if other.extra:
            self._check_extra(Attributes(verb, _GROUP, "userextras"), mode, sender, other.extra, demand)

    def _check_groups(
        self,
        wish: Attributes,
        mode: str,
        sender: User,
        groups: tuple[str, ...],
        demand: Callable[[Attributes], None],
    ) -> None:
        if mode and "" in groups:
            raise refusal(sender, wish, "impersonating the empty string group is not allowed")
        if mode and MASTERS in groups:
            told = "impersonating the system:masters group is not allowed"
            raise refusal(sender, wish._replace(name=MASTERS), told)
        if mode and len(groups) >= _MANY and self._authorizer.allows(sender, wish._replace(name="*")):
            return
        for one in groups:
            demand(wish._replace(name=one))

    def _check_extra(
        self,
        wish: Attributes,
        mode: str,
        sender: User,
        extra: Mapping[str, tuple[str, ...]],
        demand: Callable[[Attributes], None],
    ) -> None:
        if mode and any(not key or not values or "" in values for key, values in extra.items()):
            raise refusal(sender, wish, "impersonating the empty string value in extra is not allowed")
        count = sum(map(len, extra.values()))
        if (
            mode
            and count >= _MANY
            and self._authorizer.allows(sender, wish._replace(subresource="*", name="*"))
        ):
            return
        for key, values in extra.items():
            for value in values:
                demand(wish._replace(subresource=key, name=value))


def _naming(verb: str, group: str, mode: str, name: str) -> Attributes:
    """The right to a user's name; service accounts and nodes are named as what they are."""
    if (account := _account(name)) is not None:
        return Attributes(verb, group, "serviceaccounts", namespace=account[0], name=account[1])
    if mode and (node := _node(name)):
        every = mode == "associated-node"  # of which there is one, whatever its name
        return Attributes(verb, group, "nodes", name="*" if every else node)
    return Attributes(verb, group, "users", name=name)


def _is_mode_for(mode: str, sender: User, other: User) -> bool:
    if mode == _OLD:
        return True
    is_plain = not (other.groups or other.uid or other.extra)
    node, account = _node(other.name), _account(other.name)
    match mode:
        case "associated-node":
            runs_on = sender.extra.get("authentication.kubernetes.io/node-name", ())
            is_account = _account(sender.name) is not None
            return is_plain and bool(node) and is_account and runs_on == (node,)
        case "arbitrary-node":
            return is_plain and bool(node)
        case "serviceaccount":
            return is_plain and account is not None
    return not node and account is None


def _completed(other: User, mode: str) -> User:
    """With the groups that nobody has to ask for."""
    groups = other.groups
    if not groups and (account := _account(other.name)) is not None:
        groups = account_groups(account[0])
    if mode and _node(other.name):
        groups = ("system:nodes",)
    if other.name == ANONYMOUS:
        if UNAUTHENTICATED not in groups:
            groups = (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return User(other.name, groups, other.uid, other.extra)


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user is."""
    if not name.startswith(ACCOUNT):
        return None
    namespace, separator, account = name[len(ACCOUNT) :].partition(":")
    return (namespace, account) if separator and namespace and account and ":" not in account else None


def _node(name: str) -> str:
    return name.removeprefix(NODE) if name.startswith(NODE) else ""
