"""Rules of roles: what one allows, which rules hold others, and how they are written in a refusal.

A rule names verbs, and either resources of groups (perhaps by name) or paths; ``*`` stands for anything.

Pure.  Used by ``rbac.py`` and ``escalation.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from setpoint.api.decoders import prepare
from setpoint.server.golang import quoted

ALL: Final = "*"


class Rule(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One rule of a role, as it is stored."""

    verbs: tuple[str, ...] | None = ()
    api_groups: tuple[str, ...] | None = ()
    resources: tuple[str, ...] | None = ()
    resource_names: tuple[str, ...] | None = ()
    non_resource_urls: tuple[str, ...] | None = msgspec.field(default=(), name="nonResourceURLs")


EVERYTHING: Final = (
    Rule(verbs=(ALL,), api_groups=(ALL,), resources=(ALL,)),
    Rule(verbs=(ALL,), non_resource_urls=(ALL,)),
)


def is_about(rule: Rule, verb: str, group: str, resource: str, subresource: str) -> bool:
    """Whether it allows the verb on the resource; which objects of it, ``resource_names`` say."""
    verbs, groups, resources = rule.verbs or (), rule.api_groups or (), rule.resources or ()
    if verb not in verbs and ALL not in verbs:
        return False
    if group not in groups and ALL not in groups:
        return False
    if ALL in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources


def is_about_path(rule: Rule, verb: str, path: str) -> bool:
    verbs = rule.verbs or ()
    if verb not in verbs and ALL not in verbs:
        return False
    return any(_is_path_in(path, one) for one in rule.non_resource_urls or ())


def _is_path_in(path: str, pattern: str) -> bool:
    return path == pattern or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))


# ── Which rules hold others ─────────────────────────────────────────────────────────────────────────


def missing(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Of the wanted, what is not held, each of one verb on one thing."""
    return [one for rule in wanted for one in _parts(rule) if not any(_holds(each, one) for each in held)]


def _parts(rule: Rule) -> Iterator[Rule]:
    """The same, as rules of one verb, one group, one resource and one name each."""
    verbs = rule.verbs or ()
    for group in rule.api_groups or ():
        for resource in rule.resources or ():
            for verb in verbs:
                for name in rule.resource_names or (None,):
                    names = () if name is None else (name,)
                    yield Rule((verb,), (group,), (resource,), names)
    for path in rule.non_resource_urls or ():
        for verb in verbs:
            yield Rule((verb,), non_resource_urls=(path,))


def _holds(held: Rule, part: Rule) -> bool:
    """Whether a rule holds another that says one thing."""
    names, paths = held.resource_names or (), held.non_resource_urls or ()
    if names and not (part.resource_names and part.resource_names[0] in names):
        return False
    if not all(any(_is_path_in(path, one) for one in paths) for path in part.non_resource_urls or ()):
        return False
    return (
        _has(held.verbs, part.verbs)
        and _has(held.api_groups, part.api_groups)
        and _has_resource(held.resources or (), part.resources)
    )


def _has(held: tuple[str, ...] | None, wanted: tuple[str, ...] | None) -> bool:
    held = held or ()
    return ALL in held or all(one in held for one in wanted or ())


def _has_resource(held: tuple[str, ...], wanted: tuple[str, ...] | None) -> bool:
    if ALL in held:
        return True
    for one in wanted or ():
        _, slash, below = one.partition("/")
        if one not in held and not (slash and f"*/{below}" in held):
            return False
    return True


# ── In words ────────────────────────────────────────────────────────────────────────────────────────


def described(parts: Sequence[Rule]) -> list[str]:
    """What ``missing`` gave, the verbs of one thing together, each once and in order."""
    together: dict[tuple[object, ...], list[str]] = {}
    for one in parts:
        thing: tuple[object, ...] = one.api_groups, one.resources, one.non_resource_urls, one.resource_names
        if one.non_resource_urls:
            thing = (*thing, one.verbs)  # of paths each verb is told alone
        together.setdefault(thing, []).extend(one.verbs or ())
    return sorted({_described(thing, verbs) for thing, verbs in together.items()})


_WORDS: Final = ("APIGroups", "Resources", "NonResourceURLs", "ResourceNames")


def _described(thing: tuple[object, ...], verbs: list[str]) -> str:
    told = [
        f"{word}:{in_brackets(values)}"
        for word, values in zip(_WORDS, thing, strict=False)
        if values and isinstance(values, tuple)
    ]
    return "{" + ", ".join([*told, f"Verbs:{in_brackets(verbs)}"]) + "}"


def in_brackets(texts: Iterable[str]) -> str:
    """As Go prints a list of texts with ``%q``."""
    return "[" + " ".join(map(quoted, texts)) + "]"


prepare(Rule)
