"""Webhooks of admission: which are asked about a request, in what order, and what becomes of their answers.

1. Mutating ones are asked one after another, by the names of their configurations; each sees what the one
   before it left.  What a patch left is read as an object of its kind again, and filled in.
2. When one of them changed something, those that were asked before and want to be (``IfNeeded``) are asked
   once more, after the built-in rules.
3. Validating ones are asked all at once; the first, in their order, that says no is the answer.
4. A webhook that cannot be asked refuses the request, unless its ``failurePolicy`` is Ignore.

Fed by ``admission.py``; asks through ``calling.py``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from setpoint.api.patches import same
from setpoint.server.admission import reviews
from setpoint.server.admission.attributes import Attributes, read_again
from setpoint.server.admission.calling import Caller, CallError, NoClient, read_answer
from setpoint.server.admission.matching import Matching, read_matching
from setpoint.server.golang import quoted
from setpoint.server.registry import patching
from setpoint.server.registry.bodies import go_kind, read_json
from setpoint.server.registry.doubled import plain
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.statuses import StatusError, internal

log = logging.getLogger("setpoint.server")


class Condition(Protocol):
    """A match condition."""

    def __call__(self, asked: Attributes, request: Object) -> bool: ...


class Hook(NamedTuple):
    """One webhook of a configuration."""

    name: str
    key: str
    matching: Matching
    is_ignored: bool  # when it cannot be asked
    is_reinvoked: bool
    seconds: int
    client: Mapping[str, Any]
    versions: tuple[str, ...]
    conditions: tuple[Mapping[str, str], ...]


def read_hooks(configurations: Iterable[Object]) -> list[Hook]:
    """All of them, in the order in which they are asked."""
    found = []
    for configuration in sorted(configurations, key=lambda one: str(one["metadata"]["name"])):
        for place, hook in enumerate(configuration.get("webhooks") or ()):
            found.append(_read_hook(hook, f"{configuration['metadata']['name']}/{hook['name']}/{place}"))
    return found


def _read_hook(hook: Mapping[str, Any], key: str) -> Hook:
    return Hook(
        hook["name"],
        key,
        read_matching(hook, "rules"),
        hook.get("failurePolicy") == "Ignore",
        hook.get("reinvocationPolicy") == "IfNeeded",
        hook.get("timeoutSeconds") or 10,
        hook["clientConfig"],
        tuple(hook.get("admissionReviewVersions") or ()),
        tuple(hook.get("matchConditions") or ()),
    )


class Around(Protocol):
    """What webhooks need of the server."""

    @property
    def caller(self) -> Caller: ...

    def uid(self) -> str: ...

    def matched(self, matching: Matching, asked: Attributes) -> Resource | None: ...

    async def converted(self, obj: Object | None, asked: Attributes, resource: Resource) -> Object | None:
        """What a webhook is shown of an object, in the version that it wants."""

    async def is_meant(self, hook: Hook, asked: Attributes, request: Callable[[], Object]) -> bool:
        """Whether its match conditions hold."""


@dataclass(slots=True)
class Rounds:
    """What was asked in the first round, and must be asked again in the second."""

    is_second: bool = False
    is_again_wanted: bool = False  # something was changed
    again: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)  # and want to be asked again if something changes
    left: Object | None = None  # the object, as the last one left it

    def changed(self) -> None:
        self.again |= self.asked
        self.asked.clear()


class _Unasked(Exception):
    """A webhook that could not be asked; the text says why, ``brief`` without anything that it said."""

    def __init__(self, told: str, brief: str) -> None:
        super().__init__(told)
        self.brief = brief


async def mutate(hooks: Sequence[Hook], asked: Attributes, around: Around, rounds: Rounds) -> None:
    if rounds.is_second and not same(rounds.left, asked.object):
        rounds.changed()  # a built-in rule has
    try:
        for hook in hooks:
            await _mutate_by(hook, asked, around, rounds)
    finally:
        rounds.left = None if asked.object is None else patching.copied(asked.object)


async def _mutate_by(hook: Hook, asked: Attributes, around: Around, rounds: Rounds) -> None:
    resource = around.matched(hook.matching, asked)
    if resource is None or (rounds.is_second and hook.key not in rounds.again):
        return
    shown = await _shown(asked, resource, around)
    request = reviews.request(asked, resource, *shown, around.uid())
    if not await around.is_meant(hook, asked, lambda: request):
        return
    try:
        verdict = await _asked(hook, request, asked, around, is_mutating=True)
        is_changed = await _patch(hook, verdict, shown[0], asked, resource, around)
    except _Unasked as error:
        if not hook.is_ignored:
            raise _failed(hook, error) from None
        _pass_over(hook, error)
        is_changed = False
    if is_changed:
        rounds.changed()
        rounds.is_again_wanted = True
    if hook.is_reinvoked:
        rounds.asked.add(hook.key)


async def _patch(  # noqa: PLR0917 - an answer, and what it is about
    hook: Hook,
    verdict: reviews.Verdict,
    shown: Object | None,
    asked: Attributes,
    resource: Resource,
    around: Around,
) -> bool:
    """Whether the webhook changed the object."""
    if not verdict.patch:
        return False
    try:
        operations = plain(read_json(verdict.patch))[0]
    except ValueError as error:
        raise _bad_patch(f"received undecodable patch in webhook response: {error}") from None
    if why := _no_patch(operations):
        raise _bad_patch(f"received undecodable patch in webhook response: {why}")
    if not operations:
        return False
    if shown is None:
        told = f"admission webhook {quoted(hook.name)} attempted to modify the object, which is not supported"
        raise internal(f"{told} for this operation")
    if verdict.patch_type != "JSONPatch":
        raise _bad_patch(f"unsupported patch type {quoted(verdict.patch_type)}")
    operations = [one or {} for one in operations]
    left, failed = patching.perform_operations(operations, shown)
    if failed is not None:
        raise internal(failed.why)
    if same(left, shown):
        return False
    await _take(left, asked, resource, around)
    return True


def _no_patch(operations: Any) -> str:
    """Why Go reads no patch there; nothing if it reads one."""
    wrong, go = operations, "Patch"
    if operations is None or isinstance(operations, list):
        others = (one for one in operations or () if one is not None and not isinstance(one, dict))
        wrong, go = next(others, None), "Operation"
    if wrong is None:
        return ""
    return f"json: cannot unmarshal {go_kind(wrong)} into Go value of type jsonpatch.{go}"


def _bad_patch(told: str) -> _Unasked:
    return _Unasked(told, "its patch is no JSON patch")


async def _take(left: Object, asked: Attributes, resource: Resource, around: Around) -> None:
    read = read_again(left, asked, resource)
    if asked.body is None and resource is not asked.resource:
        back = await around.converted(read, asked, asked.resource)
        read = read if back is None else back
    asked.object = read


async def validate(hooks: Sequence[Hook], asked: Attributes, around: Around) -> None:
    calls: list[Awaitable[StatusError | None]] = []
    for hook in hooks:
        resource = around.matched(hook.matching, asked)
        if resource is None:
            continue
        request = reviews.request(asked, resource, *await _shown(asked, resource, around), around.uid())
        if await around.is_meant(hook, asked, lambda request=request: request):  # type: ignore[misc]
            calls.append(_refusal(hook, request, asked, around))
    if not calls:
        return
    refusals = await asyncio.gather(*calls)
    first = next((one for one in refusals if one is not None), None)
    if first is not None:
        raise first


async def _refusal(hook: Hook, request: Object, asked: Attributes, around: Around) -> StatusError | None:
    try:
        await _asked(hook, request, asked, around, is_mutating=False)
    except StatusError as refused:
        return refused
    except _Unasked as error:
        if not hook.is_ignored:
            return _failed(hook, error)
        _pass_over(hook, error)
    return None


def _pass_over(hook: Hook, error: _Unasked) -> None:
    log.warning("webhook %s is passed over, as its failurePolicy says: %s", hook.name, error.brief)


def _failed(hook: Hook, error: _Unasked) -> StatusError:
    return internal(f"failed calling webhook {quoted(hook.name)}: {error}")


async def _shown(
    asked: Attributes, resource: Resource, around: Around
) -> tuple[Object | None, Object | None]:
    return (
        await around.converted(asked.object, asked, resource),
        await around.converted(asked.old, asked, resource),
    )


async def _asked(
    hook: Hook, request: Object, asked: Attributes, around: Around, *, is_mutating: bool
) -> reviews.Verdict:
    """What the webhook says, if it does not say no.  Raises ``_Unasked``, or its refusal."""
    caller = around.caller
    try:
        version = reviews.review_version(hook.versions)
        body = reviews.written(request, version)
        answer = await caller.call(caller.target(hook.client), body, hook.seconds)
    except reviews.BadReview as error:
        raise _Unasked(str(error), str(error)) from None
    except NoClient as error:
        raise _Unasked(f"could not get REST client: {error}", error.brief) from None
    except CallError as error:
        raise _Unasked(f"failed to call webhook: {error}", error.brief) from None
    verdict = _read(answer, request["uid"], version, is_mutating=is_mutating)
    asked.warnings.extend(verdict.warnings)
    if not verdict.is_allowed:
        raise reviews.denial(hook.name, verdict.status)
    return verdict


def _read(answer: bytes, uid: str, version: str, *, is_mutating: bool) -> reviews.Verdict:
    try:
        found = read_answer(answer, reviews.form(version))
        return reviews.read(found, uid, version, is_mutating=is_mutating)
    except CallError as error:
        raise _Unasked(f"failed to call webhook: {error}", error.brief) from None
    except reviews.BadReview as error:
        told = f"received invalid webhook response: {error}"
        raise _Unasked(told, "its answer is not one to what it was asked") from None
