"""Decides what of a status is written, and writes it: the difference alone, once, at the end of a reconcile.

1. The status as it was read is compared with the status as it was left.  No difference: nothing is sent.
2. What is sent is a merge patch of the difference, so that fields which others write stay.
3. Conditions are merged by type.  Those that others keep stay: also those that came meanwhile, and those that
   the author left out of the list.  Taken away is only what managedFields say is ours.
4. A patch says which version it is of.  If that is no longer the newest (409), the object is read again and
   the same difference is made to what is there now.
5. ``lastTransitionTime`` moves only when a condition's status changes, whatever the author wrote there.
6. ``observedGeneration`` is that of the object which was reconciled: of a condition when its content changed,
   of the status when the reconcile ended (by returning, or by an error that no retry mends) and no other
   controller of the operator has yet to process it (``generations.py``).
7. An object made anew under the same name never gets the status of the old one.  The version sees to that:
   a uid in a patch of the status of a custom resource is ignored by the server.

All but ``write_status`` is pure.  ``operator.py`` calls it when a reconcile has returned or raised.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

from setpoint.api.forms import Form, Untyped
from setpoint.api.meta import Condition
from setpoint.api.model import Object, encode, to_wire
from setpoint.api.names import Key
from setpoint.api.patches import MergePatch, apply_merge, merge_diff, same
from setpoint.api.times import Time
from setpoint.api.wire import Snapshot
from setpoint.cache.cache import AsHeld
from setpoint.client.client import Client
from setpoint.controller.apply import Path
from setpoint.controller.owners import in_metadata
from setpoint.errors import Conflict, KindNotServed, NotFound

Wire: TypeAlias = dict[str, Any]

_TRIES = 5
_CONDITIONS = "conditions"
_OBSERVED = "observedGeneration"
_TRANSITION = "lastTransitionTime"


def status_of(obj: object) -> Wire:
    """The status of an object in hand, in wire form and as a copy."""
    status = obj.get("status") if isinstance(obj, dict) else getattr(obj, "status", None)
    wire = to_wire(status)
    return wire if isinstance(wire, dict) else {}


# What the author left, put right.


class Observed(NamedTuple):
    """What a reconcile looked at, as far as a status must say it."""

    generation: int | None
    now: Time
    is_done: bool = True  # it has acted on this generation
    says_generation: bool = False  # the kind's status has observedGeneration
    conditions_say_generation: bool = False  # its conditions have


def observed_of(obj: object, generation: int | None, *, now: Time, is_done: bool) -> Observed:
    """What the status of this object may say about the generation that was looked at."""
    if isinstance(obj, Object):
        status = getattr(obj, "status", None)
        conditions = getattr(status, _CONDITIONS, None) or ()
        return Observed(
            generation,
            now,
            is_done,
            says_generation=hasattr(status, "observed_generation"),
            conditions_say_generation=all(isinstance(each, Condition) for each in conditions),
        )
    return Observed(generation, now, is_done, says_generation=_OBSERVED in status_of(obj))


def settle(before: Wire, left: Wire, observed: Observed) -> Wire:
    """The status as the author left it, with the times and generations that it must have."""
    after = dict(left)
    if left.get(_CONDITIONS) and _has_conditions(left):
        known = _by_type(before.get(_CONDITIONS))
        after[_CONDITIONS] = [
            _settle_condition(known.get(each["type"]), each, observed) for each in left[_CONDITIONS]
        ]
    untouched = same(before.get(_OBSERVED), left.get(_OBSERVED))
    if observed.says_generation and observed.is_done and observed.generation is not None and untouched:
        after[_OBSERVED] = observed.generation
    return after


def _settle_condition(known: Wire | None, left: Wire, observed: Observed) -> Wire:
    if known is not None and same(_content(known), _content(left)):
        return known
    condition = dict(left)
    if known is not None and known.get("status") == left.get("status"):
        condition[_TRANSITION] = known.get(_TRANSITION) or left.get(_TRANSITION)
    elif known is not None and known.get(_TRANSITION) == left.get(_TRANSITION):
        condition[_TRANSITION] = None  # of the status that it no longer has
    condition[_TRANSITION] = condition.get(_TRANSITION) or observed.now.to_wire()
    can_say = observed.conditions_say_generation or (known is not None and _OBSERVED in known)
    is_said = left.get(_OBSERVED) not in (None, (known or {}).get(_OBSERVED))
    if can_say and not is_said and observed.generation is not None:
        condition[_OBSERVED] = observed.generation
    return condition


def _content(condition: Wire) -> Wire:
    return {name: value for name, value in condition.items() if name != _TRANSITION}


# The difference.


@dataclass(frozen=True, slots=True)
class Change:
    """What a reconcile made of a status."""

    fields: Wire  # a merge patch of all but the conditions
    conditions: Mapping[str, Wire | None]  # by type; None: taken away

    def patch(self, live: Wire) -> Wire:
        """The merge patch that makes this change to the status that is there now."""
        if not self.conditions:
            return self.fields
        return {**self.fields, _CONDITIONS: merge_conditions(live.get(_CONDITIONS), self.conditions)}

    def less_observed(self, live: Wire) -> Change:
        """The change without its observedGeneration, if another controller wrote a newer one meanwhile."""
        mine, theirs = self.fields.get(_OBSERVED), live.get(_OBSERVED)
        if not (isinstance(mine, int) and isinstance(theirs, int) and mine < theirs):
            return self
        return Change(_without(self.fields, (_OBSERVED,)), self.conditions)

    def written(self) -> dict[Path, bytes]:
        """Which fields it sets, and to what: for telling whether they go back and forth."""
        conditions = {
            ("f:status", "f:conditions", f'k:{{"type":"{name}"}}'): encode(condition)
            for name, condition in self.conditions.items()
        }
        return {path: encode(value) for path, value in leaves(self.fields, ("f:status",))} | conditions


def change_between(before: Wire, after: Wire, *, ours: Collection[str] = ()) -> Change | None:
    """What changed; None: nothing.  ``ours`` are the types of conditions that are ours to take away."""
    if encode(before) == encode(after):  # as most looks leave it
        return None
    by_type = _has_conditions(before) and _has_conditions(after)
    apart = (_CONDITIONS,) if by_type else ()
    fields = merge_diff(_without(before, apart), _without(after, apart))
    conditions = _condition_changes(before, after, ours) if by_type else {}
    return Change(fields, conditions) if fields or conditions else None


def with_defaults(change: Change, after: Wire, stored: Wire) -> Change:
    """The change, with plain values that the server does not have, for those who read it.

    A class adds them by its defaults, and that alone is no change; but a status that is written says them.
    """
    defaults = {
        name: value
        for name, value in after.items()
        if name not in stored and name not in change.fields and not isinstance(value, dict | list)
    }
    return Change({**change.fields, **defaults}, change.conditions)


def merge_conditions(live: object, ours: Mapping[str, Wire | None]) -> list[Wire]:
    """The conditions there are, with ours in place of those of their type; all others stay as they are."""
    there: list[Wire] = live if isinstance(live, list) else []
    merged = []
    for condition in there:
        kind: Any = condition.get("type") if isinstance(condition, dict) else None
        if kind not in ours:
            merged.append(condition)
        elif (mine := ours[kind]) is not None:
            merged.append(_keeping_time(mine, condition))
    known = _by_type(there)
    merged += [mine for kind, mine in ours.items() if mine is not None and kind not in known]
    return merged


def _keeping_time(mine: Wire, there: Wire) -> Wire:
    """Somebody may have set the same status before us: then it changed at that time."""
    if mine.get("status") == there.get("status") and there.get(_TRANSITION):
        return {**mine, _TRANSITION: there[_TRANSITION]}
    return mine


def conditions_of(obj: object, manager: str) -> set[str]:
    """The types of the conditions that a manager has set, by what managedFields say."""
    types: set[str] = set()
    for entry in in_metadata(cast("Any", obj), "managed_fields") or ():
        plain = isinstance(entry, dict)
        if (entry.get("manager") if plain else entry.manager) == manager:
            fields = (entry.get("fieldsV1") if plain else entry.fields_v1) or {}
            steps = (fields.get("f:status") or {}).get("f:conditions") or ()
            types.update(json.loads(step[2:]).get("type") for step in steps if step.startswith("k:"))
    return types


def _condition_changes(before: Wire, after: Wire, ours: Collection[str]) -> dict[str, Wire | None]:
    old, new = _by_type(before.get(_CONDITIONS)), _by_type(after.get(_CONDITIONS))
    gone: dict[str, Wire | None] = {kind: None for kind in old if kind not in new and kind in ours}
    return gone | {kind: each for kind, each in new.items() if not same(old.get(kind), each)}


def _has_conditions(status: Wire) -> bool:
    """Whether ``conditions`` are what the word means: objects, each with a type of its own, or none yet."""
    conditions = status.get(_CONDITIONS)
    if conditions is None:
        return True
    return isinstance(conditions, list) and len(_by_type(conditions)) == len(conditions)


def _by_type(conditions: object) -> dict[str, Wire]:
    return {
        each["type"]: each
        for each in (conditions if isinstance(conditions, list) else ())
        if isinstance(each, dict) and isinstance(each.get("type"), str)
    }


def _without(status: Wire, names: tuple[str, ...]) -> Wire:
    return {name: value for name, value in status.items() if name not in names}


def holds_list(patch: Any) -> bool:
    """Whether a merge patch replaces a list."""
    return isinstance(patch, list) or (isinstance(patch, dict) and any(map(holds_list, patch.values())))


def leaves(patch: Wire, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The fields that a merge patch sets, and to what."""
    for name, below in patch.items():
        if isinstance(below, dict) and below:
            yield from leaves(below, (*path, f"f:{name}"))
        else:
            yield (*path, f"f:{name}"), below


# Writing it.


@dataclass(frozen=True, slots=True)
class Target:
    """The object whose status it is, as it was read."""

    form: Form[Any]
    key: Key
    uid: str
    version: str
    status: Wire
    subresource: str = "status"


async def write_status(
    client: Client, target: Target, change: Change, *, field_manager: str
) -> Snapshot | None:
    """Send the change; the object as the server then has it, or None if it is gone."""
    form = AsHeld(target.form)
    version, status, subresource = target.version, target.status, target.subresource
    for left in reversed(range(_TRIES)):
        body: Wire = {"metadata": {"resourceVersion": version}, "status": change.patch(status)}
        try:
            return await client.patch(
                form,
                target.key.name,
                MergePatch(body),
                namespace=target.key.namespace or None,
                subresource=subresource,
                field_manager=field_manager,
            )
        except NotFound:
            return None
        except KindNotServed:
            if not subresource:
                raise
            subresource = ""  # the kind keeps its status in the object itself
            continue
        except Conflict:
            if not left:
                raise
        live = await _read_again(client, target)
        if live is None:
            return None
        version, status = live["metadata"].get("resourceVersion") or "", status_of(live)
        change = change.less_observed(status)
        if same(apply_merge(change.patch(status), status), status):
            return form.decode(encode(live))
    raise AssertionError("the last try returns or raises")


async def _read_again(client: Client, target: Target) -> Wire | None:
    try:
        live = await client.get(
            Untyped(target.form.gvk, target.form.resource),
            target.key.name,
            namespace=target.key.namespace or None,
        )
    except NotFound:
        return None
    return live if live["metadata"].get("uid") == target.uid else None
