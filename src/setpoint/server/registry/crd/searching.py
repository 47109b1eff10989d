"""Where a pattern is found in a text, as Go finds it, and in how many steps.

All ways through the pattern are walked at once, so that no pattern takes exponential time.  Where each thing
that is found is sought for to the end of the text, it takes the square of it: so the steps are told to
``spending.py``.  ``patterns.py`` says what Go refuses.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

from setpoint.server.registry.crd.patterns import BadPattern, compiled, parsed_pattern
from setpoint.server.registry.crd.spending import toil

_TOO_LARGE: Final = 20_000  # steps of a pattern


def found_in(text: str, pattern: str, most: int = -1) -> list[str]:
    """What was found, from left to right, and at most so many.  Raises ``BadPattern``."""
    compiled(pattern)  # what Go refuses is refused
    if most == 0:
        return []
    found = []
    last = -1
    for start, end in _walked(_program(pattern), text, most):
        if start == end == last:
            continue  # Go leaves out what is empty right after what was found
        found.append(text[start:end])
        last = end
        if len(found) == most:
            break
    return found


# ── Walking all ways at once ────────────────────────────────────────────────────────────────────────


class _Step(NamedTuple):
    kind: str  # any, one, set, split, at, jump, match
    value: Any = None
    next: tuple[int, ...] = ()


@lru_cache(256)
def _program(pattern: str) -> list[_Step]:
    found = parsed_pattern(pattern)
    if found is None:
        raise BadPattern(f"error parsing regexp: too hard for this server: `{pattern}`")
    steps: list[_Step] = []
    _emit(found, steps, found.state.flags)
    steps.append(_Step("match"))
    return steps


def _emit(parsed: Any, steps: list[_Step], flags: int) -> None:
    if len(steps) > _TOO_LARGE:
        raise BadPattern("error parsing regexp: expression too large")
    for operator, argument in parsed:
        match str(operator):
            case "LITERAL" | "NOT_LITERAL" | "IN" | "ANY" as name:
                steps.append(_Step("one", _tester(name, argument, flags)))
            case "BRANCH":
                _branch(argument[1], steps, flags)
            case "SUBPATTERN":
                _, add, drop, body = argument
                _emit(body, steps, (flags | add) & ~drop)
            case "MAX_REPEAT" | "MIN_REPEAT" as name:
                _repeat(argument, steps, flags, is_greedy=name == "MAX_REPEAT")
            case "AT":
                steps.append(_Step("at", str(argument)))
            case _:
                raise BadPattern(f"error parsing regexp: {operator} is unknown to this server")


def _branch(ways: list[Any], steps: list[_Step], flags: int) -> None:
    ends = []
    for place, way in enumerate(ways):
        is_last = place == len(ways) - 1
        split = len(steps)
        if not is_last:
            steps.append(_Step("split"))
        _emit(way, steps, flags)
        ends.append(len(steps))
        steps.append(_Step("jump"))
        if not is_last:
            steps[split] = _Step("split", None, (split + 1, len(steps)))
    for one in ends:
        steps[one] = _Step("jump", None, (len(steps),))


def _repeat(argument: Any, steps: list[_Step], flags: int, *, is_greedy: bool) -> None:
    least, most, body = argument
    for _ in range(int(least)):
        _emit(body, steps, flags)
    if str(most) == "MAXREPEAT":
        split = len(steps)
        steps.append(_Step("split"))
        _emit(body, steps, flags)
        steps.append(_Step("jump", None, (split,)))
        ways = (split + 1, len(steps))
        steps[split] = _Step("split", None, ways if is_greedy else ways[::-1])
        return
    splits = []
    for _ in range(int(most) - int(least)):
        splits.append(len(steps))
        steps.append(_Step("split"))
        _emit(body, steps, flags)
    for one in splits:
        ways = (one + 1, len(steps))
        steps[one] = _Step("split", None, ways if is_greedy else ways[::-1])


def _tester(name: str, argument: Any, flags: int) -> Any:
    """Whether a character fits, asked of ``re`` itself, which knows classes and cases."""
    if name == "ANY":
        return (lambda _: True) if flags & re.DOTALL else (lambda one: one != "\n")
    if name == "LITERAL" and not flags & re.IGNORECASE:
        wanted = chr(argument)
        return lambda one: one == wanted
    parts = [(name, argument)] if name == "IN" else [("LITERAL", argument)]
    body = "".join(_written(part) for one in parts for part in (one[1] if name == "IN" else [one]))
    body = ("^" if name == "NOT_LITERAL" else "") + body
    fits = re.compile(f"[{body}]", re.ASCII | (flags & re.IGNORECASE)).match
    return lru_cache(1024)(lambda one: fits(one) is not None)


_CATEGORIES: Final = {
    "CATEGORY_DIGIT": "\\d", "CATEGORY_NOT_DIGIT": "\\D", "CATEGORY_SPACE": "\\t\\n\\f\\r ",
    "CATEGORY_NOT_SPACE": "\\S", "CATEGORY_WORD": "\\w", "CATEGORY_NOT_WORD": "\\W",
}  # fmt: skip


def _written(part: tuple[Any, Any]) -> str:
    operator, argument = part
    match str(operator):
        case "LITERAL":
            return re.escape(chr(argument))
        case "RANGE":
            return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
        case "NEGATE":
            return "^"
    return _CATEGORIES[str(argument)]


def _walked(steps: list[_Step], text: str, most: int) -> list[tuple[int, int]]:
    """Leftmost, and of those the one that ``re`` would prefer."""
    found: list[tuple[int, int]] = []
    start = 0
    while start <= len(text) and (most < 0 or len(found) <= most):
        span = _first(steps, text, start)
        if span is None:
            break
        found.append(span)
        start = span[1] if span[1] > span[0] else span[1] + 1
    return found


_PAUSE: Final = 1000  # steps, between two that are told


def _first(steps: list[_Step], text: str, start: int) -> tuple[int, int] | None:
    work = 0
    threads: list[tuple[int, int]] = []  # a step, and where its way began; the preferred first
    best: tuple[int, int] | None = None
    for place in range(start, len(text) + 1):
        following: list[tuple[int, int]] = []
        seen: set[int] = set()
        if best is None:
            threads = [*threads, (0, place)]
        if not threads:
            break
        one = text[place] if place < len(text) else ""
        for step, began in threads:
            if _follow(steps, step, (text, place, began, one), seen, following):
                best = (began, place)
                break  # whatever is less preferred is forgotten
        threads = following
        work += 1 + len(seen)
        if work > _PAUSE:
            toil(work)
            work = 0
    toil(1 + work)
    return best


def _follow(
    steps: list[_Step],
    first: int,
    at: tuple[str, int, int, str],
    seen: set[int],
    following: list[tuple[int, int]],
) -> bool:
    """Whether the way is at its end here; else where it goes with the next character."""
    text, place, began, one = at
    stack = [first]
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        step = steps[number]
        if step.kind == "match":
            return True
        if step.kind == "one":
            if one and step.value(one):
                following.append((number + 1, began))
        elif step.kind == "at":
            if _is_at(step.value, text, place):
                stack.append(number + 1)
        else:
            stack.extend(reversed(step.next))
    return False


def _is_word(one: str) -> bool:
    return one.isascii() and (one.isalnum() or one == "_")


def _is_at(what: str, text: str, place: int) -> bool:
    before, after = text[place - 1 : place] if place else "", text[place : place + 1]
    match what:
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return place == 0
        case "AT_END" | "AT_END_STRING":
            return place == len(text)
    is_edge = _is_word(before) != _is_word(after)
    return is_edge if what == "AT_BOUNDARY" else not is_edge
