"""``serviceaccounts/token``: a token is asked for and made.

The request's own rules: how long, for whom, bound to what.  Making the token is
``authentication/accounts.py``'s; nothing is stored.

Called by ``subresources.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from setpoint.server.authentication.accounts import Accounts, Bound
from setpoint.server.golang import quoted
from setpoint.server.registry import bodies, flow
from setpoint.server.registry.conform import WrongType, conform, wrong_type
from setpoint.server.registry.defaults import table as defaults
from setpoint.server.registry.emit import emit
from setpoint.server.registry.managed.managers import track_update
from setpoint.server.registry.metadata import timestamp
from setpoint.server.registry.requests import Ask, write_options
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.statuses import FieldError, bad_request, conflict, invalid, not_found
from setpoint.server.storage.protocol import Place, Store

_GROUP, _KIND = "authentication.k8s.io", "TokenRequest"
_LEAST: Final = 10 * 60
_MOST: Final = 2**32
# Tokens that are mounted into pods ask for this long, and get a year: old clients do not read them anew.
_MOUNTED: Final = 3607
_EXTENDED: Final = 365 * 24 * 60 * 60
_PLURALS: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def read_request(ask: Ask, kind: Resource, now: datetime) -> tuple[Object, list[str]]:
    """What is asked for, before anybody has a say in it, and warnings; ``kind`` is the TokenRequest's."""
    options, type_ = write_options(ask), kind.type
    read = bodies.read_object(ask.body, ask.content_type, _GROUP, "v1", _KIND)
    try:
        decoded = conform(read.object, type_)
    except WrongType as wrong:
        raise wrong_type(wrong, _KIND, "v1") from None
    decoded = decoded._replace(unknown=[*read.unknown, *decoded.unknown])
    warnings = flow.check_fields(decoded, kind, options)
    request = decoded.object
    flow.check_place(request, ask)
    defaults.default(_GROUP, "v1", _KIND, request)
    request = emit(request, type_)
    track_update(
        request,
        None,
        manager=options.manager,
        api_version=f"{_GROUP}/v1",
        subresource="token",
        now=timestamp(now),
        type=type_,
    )
    return request, warnings


def of_account(request: Object, ask: Ask, accounts: Accounts, store: Store, now: datetime) -> Object:
    """The request with what it leaves to the account that it is for."""
    metadata, spec = request.setdefault("metadata", {}), request.setdefault("spec", {})
    defaults.default(_GROUP, "v1", _KIND, request)  # once more, where somebody took them away
    _check_name(metadata, ask)
    account = _found(store, "serviceaccounts", ask.namespace, ask.name)["metadata"]
    if metadata.get("uid") and metadata["uid"] != account["uid"]:
        told = (
            f"the UID in the token request ({metadata['uid']}) does not match the UID of the service "
            f"account ({account['uid']})"
        )
        raise conflict(_KIND, _GROUP, ask.name, told)
    spec["audiences"] = spec.get("audiences") or list(accounts.audiences)
    request["metadata"] = {
        **metadata,
        "name": ask.name,
        "namespace": ask.namespace,
        "uid": account["uid"],
        "creationTimestamp": timestamp(now),
    }
    return request


def create_token(  # noqa: PLR0917 - a request, and what it is answered from
    request: Object, ask: Ask, kind: Resource, accounts: Accounts, store: Store, now: datetime
) -> bytes:
    """The answer to a request that everybody agrees to, with the token."""
    spec = request["spec"]
    account = _found(store, "serviceaccounts", ask.namespace, ask.name)["metadata"]
    seconds = spec["expirationSeconds"]
    _check_spec(spec)
    bound = _bound(spec.get("boundObjectRef"), ask, store)
    is_extended = (
        seconds == _MOUNTED
        and any(one.kind == "pod" for one in bound)
        and set(spec["audiences"]) <= set(accounts.audiences)
    )
    token = accounts.issue(
        account,
        audiences=spec["audiences"],
        seconds=_EXTENDED if is_extended else seconds,
        bound=bound,
        warn_after=seconds if is_extended else 0,
    )
    expires = timestamp(now + timedelta(seconds=seconds))
    request["status"] = {"token": token, "expirationTimestamp": expires}
    return msgspec.json.encode(emit(request, kind.type))


def _check_name(metadata: Object, ask: Ask) -> None:
    if metadata.get("name") and metadata["name"] != ask.name:
        told = "must match the service account name if specified"
        wrong = FieldError("invalid", "metadata.name", told, metadata["name"])
        raise invalid(_KIND, _GROUP, ask.name, [wrong])


def _check_spec(spec: Object) -> None:
    at, seconds = "spec.expirationSeconds", spec["expirationSeconds"]
    errors = []
    if seconds < _LEAST:
        told = "may not specify a duration less than 10 minutes"
        errors.append(FieldError("invalid", at, told, seconds))
    if seconds > _MOST:
        told = "may not specify a duration larger than 2^32 seconds"
        errors.append(FieldError("invalid", at, told, seconds))
    if errors:
        raise invalid(_KIND, _GROUP, "", errors)


def _bound(ref: Object | None, ask: Ask, store: Store) -> Sequence[Bound]:
    """What the token is bound to; a pod's tells its node too."""
    if ref is None:
        return ()
    group, _, version = ref.get("apiVersion", "").rpartition("/")
    kind, name = ref.get("kind", ""), ref.get("name", "")
    plural = None if group else _PLURALS.get(kind)
    if plural is None:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = _found(store, plural, "" if kind == "Node" else ask.namespace, name)
    if kind == "Pod" and found["spec"].get("serviceAccountName", "") != ask.name:
        raise bad_request(
            f"cannot bind token for serviceaccount {quoted(ask.name)} to pod running with different "
            "serviceaccount name."
        )
    uid = found["metadata"]["uid"]
    if ref.get("uid") and ref["uid"] != uid:
        told = (
            f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise conflict(kind, group, name, told)
    bound = [Bound(kind.lower(), name, uid)]
    if kind == "Pod" and (node := found["spec"].get("nodeName")):
        record = store.get(Place("nodes", "", node))
        known = "" if record is None else msgspec.json.decode(record.data)["metadata"]["uid"]
        bound.append(Bound("node", node, known))
    return bound


def _found(store: Store, plural: str, namespace: str, name: str) -> Object:
    record = store.get(Place(plural, namespace, name))
    if record is None:
        raise not_found(plural, "", name)
    found: Object = msgspec.json.decode(record.data)
    return found
