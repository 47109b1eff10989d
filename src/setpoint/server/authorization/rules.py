"""Rules of roles: what one allows, which rules hold others, and how they are written in a refusal.

A rule names verbs, and either resources of groups (perhaps by name) or paths; ``*`` stands for anything.

Pure.  Used by ``rbac.py`` and ``escalation.py``.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
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
    """Of the wanted, what is not held, each of one verb on one thing; whole where that would be too much."""
    holdings = _Holdings(held)
    found: list[Rule] = []
    room = _MOST_TOLD
    for rule in wanted:
        if not holdings.lack_any(rule):
            continue
        size = _size_of_parts(rule)
        if size > max(room, _size_of(rule)):
            found.append(rule)
        else:
            room -= size
            found += [one for one in _parts(rule) if holdings.lack_any(one)]
    return found


# A small rule can be made of billions of parts.
_MOST_TOLD: Final = 1 << 20  # characters of parts
_MOST_COMPARED: Final = 1 << 20  # choices of what a part may be
_OF_PART: Final = 16  # characters that each is told in at least


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


def _size_of_parts(rule: Rule) -> int:
    """At most so many characters."""
    verbs, names = rule.verbs or (), rule.resource_names or ("",)
    return _size_of_product(verbs, rule.api_groups or (), rule.resources or (), names) + _size_of_product(
        verbs, rule.non_resource_urls or ()
    )


def _size_of_product(*lists: tuple[str, ...]) -> int:
    longest = sum(max(map(len, one), default=0) for one in lists)
    return math.prod(map(len, lists)) * (_OF_PART + longest)


def _size_of(rule: Rule) -> int:
    lists = rule.verbs, rule.api_groups, rule.resources, rule.resource_names, rule.non_resource_urls
    return _OF_PART + sum(len(text) for one in lists for text in one or ())


class _Holdings:
    """Rules, by what they have: a set of them is a number, in which each has a bit."""

    def __init__(self, held: Sequence[Rule]) -> None:
        self._verbs: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        self._resources: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._paths: dict[str, int] = {}
        self._unnamed = 0
        self._left = _MOST_COMPARED
        for place, rule in enumerate(dict.fromkeys(held)):
            bit = 1 << place
            for known, texts in (
                (self._verbs, rule.verbs),
                (self._groups, rule.api_groups),
                (self._resources, rule.resources),
                (self._names, rule.resource_names),
                (self._paths, rule.non_resource_urls),
            ):
                for text in texts or ():
                    known[text] = known.get(text, 0) | bit
            self._unnamed |= 0 if rule.resource_names else bit
        self._patterns = [
            (text.rstrip(ALL), rules) for text, rules in self._paths.items() if text.endswith(ALL)
        ]

    def lack_any(self, rule: Rule) -> bool:
        """Whether a part of it is held by none of them; also where that would take too long to find out."""
        verbs = {self._verbs.get(one, 0) | self._verbs.get(ALL, 0) for one in rule.verbs or ()}
        groups = {self._groups.get(one, 0) | self._groups.get(ALL, 0) for one in rule.api_groups or ()}
        resources = set(map(self._with_resource, rule.resources or ()))
        names = {self._unnamed | self._names.get(one, 0) for one in rule.resource_names or ()}
        paths = {self._unnamed & self._with_path(one) for one in rule.non_resource_urls or ()}
        whole = groups, resources, verbs, names or {self._unnamed}
        return self._are_apart(*whole) or self._are_apart(paths, verbs)

    def _are_apart(self, *sets: set[int]) -> bool:
        """Whether one of each can be chosen so that they have no rule in common."""
        self._left -= math.prod(map(len, sets))
        if self._left < 0:
            return True
        return any(not functools.reduce(operator.and_, chosen) for chosen in itertools.product(*sets))

    def _with_resource(self, resource: str) -> int:
        known = self._resources
        _, slash, below = resource.partition("/")
        return known.get(resource, 0) | known.get(ALL, 0) | (known.get(f"*/{below}", 0) if slash else 0)

    def _with_path(self, path: str) -> int:
        found = self._paths.get(path, 0)
        for prefix, rules in self._patterns:
            if path.startswith(prefix):
                found |= rules
        return found


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
