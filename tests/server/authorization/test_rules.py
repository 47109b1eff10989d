"""``authorization/rules.py``: what a rule allows, and which rules hold others."""

from __future__ import annotations

import pytest

from setpoint.server.authorization.rules import EVERYTHING, Rule, described, is_about, is_about_path, missing

PODS = Rule(("get", "list"), ("",), ("pods", "pods/log"))
SCALES = Rule(("*",), ("*",), ("*/scale",))
NAMED = Rule(("get",), ("",), ("secrets",), ("a", "b"))
PATHS = Rule(("get",), non_resource_urls=("/healthz", "/logs/*"))


@pytest.mark.parametrize(
    ("rule", "asked", "is_so"),
    [
        (PODS, ("get", "", "pods", ""), True),
        (PODS, ("get", "", "pods", "log"), True),
        (PODS, ("get", "", "pods", "exec"), False),
        (PODS, ("watch", "", "pods", ""), False),
        (PODS, ("get", "apps", "pods", ""), False),
        (PODS, ("get", "", "pod", ""), False),
        (SCALES, ("patch", "apps", "deployments", "scale"), True),
        (SCALES, ("patch", "apps", "deployments", ""), False),
        (SCALES, ("patch", "apps", "scale", ""), False),
        (EVERYTHING[0], ("whatever", "x", "y", "z"), True),
        (EVERYTHING[1], ("get", "", "pods", ""), False),
        (Rule(), ("get", "", "pods", ""), False),
        (Rule(None, None, None), ("", "", "", ""), False),
    ],
)
def test_a_rule_is_about_verbs_on_resources_of_groups(
    rule: Rule, asked: tuple[str, str, str, str], is_so: bool
) -> None:
    assert is_about(rule, *asked) is is_so


@pytest.mark.parametrize(
    ("rule", "path", "is_so"),
    [
        (PATHS, "/healthz", True),
        (PATHS, "/healthz/ping", False),
        (PATHS, "/logs/", True),
        (PATHS, "/logs/a/b", True),
        (PATHS, "/logs", False),
        (EVERYTHING[1], "/anything", True),
        (EVERYTHING[0], "/anything", False),
        (PODS, "/pods", False),
    ],
)
def test_a_rule_is_about_paths_and_all_below_a_star(rule: Rule, path: str, is_so: bool) -> None:
    assert is_about_path(rule, "get", path) is is_so
    assert not is_about_path(PATHS, "post", path)


@pytest.mark.parametrize(
    ("held", "wanted", "lacking"),
    [
        ([PODS], [Rule(("get",), ("",), ("pods",))], []),
        ([PODS], [Rule(("get",), ("",), ("pods",), ("a",))], []),
        ([NAMED], [Rule(("get",), ("",), ("secrets",), ("a",))], []),
        ([NAMED], [Rule(("get",), ("",), ("secrets",))], [Rule(("get",), ("",), ("secrets",))]),
        ([PODS], [Rule(("*",), ("",), ("pods",))], [Rule(("*",), ("",), ("pods",))]),
        ([SCALES], [Rule(("get",), ("apps",), ("deployments/scale",))], []),
        (
            [SCALES],
            [Rule(("get",), ("apps",), ("deployments",))],
            [Rule(("get",), ("apps",), ("deployments",))],
        ),
        ([PATHS], [Rule(("get",), non_resource_urls=("/logs/a", "/logs/*"))], []),
        ([PATHS], [Rule(("get",), non_resource_urls=("/*",))], [Rule(("get",), non_resource_urls=("/*",))]),
        (EVERYTHING, [PODS, SCALES, NAMED, PATHS, *EVERYTHING], []),
        (
            [],
            [PODS],
            [Rule((verb,), ("",), (one,)) for one in ("pods", "pods/log") for verb in ("get", "list")],
        ),
        # One rule does not make up for another: both halves must be held by one.
        (
            [Rule(("get",), ("",), ("a",)), Rule(("list",), ("",), ("b",))],
            [Rule(("get",), ("",), ("b",))],
            [Rule(("get",), ("",), ("b",))],
        ),
    ],
)
def test_what_is_not_held_is_missing_bit_by_bit(
    held: list[Rule], wanted: list[Rule], lacking: list[Rule]
) -> None:
    assert missing(held, wanted) == lacking


def test_what_is_missing_is_told_with_its_verbs_together() -> None:
    lacking = missing([], [PODS, NAMED, PATHS])

    assert described(lacking) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}',
        '{NonResourceURLs:["/healthz"], Verbs:["get"]}',
        '{NonResourceURLs:["/logs/*"], Verbs:["get"]}',
    ]


MANY = tuple(f"x{number}" for number in range(300))


@pytest.mark.parametrize("held", [[], [PODS], [Rule(("*",), ("*",), MANY[1:])]])
def test_a_rule_of_billions_of_parts_is_missing_whole(held: list[Rule]) -> None:
    wanted = Rule(MANY, MANY, MANY, MANY, MANY)

    assert missing(held, [PATHS, wanted]) == [
        Rule(("get",), non_resource_urls=("/healthz",)),
        Rule(("get",), non_resource_urls=("/logs/*",)),
        wanted,
    ]


def test_a_rule_of_billions_of_parts_is_held_by_many_that_share_it() -> None:
    wanted = Rule(MANY, MANY, MANY, MANY)
    halves = [Rule(("*",), ("*",), MANY[:150]), Rule(("*",), ("*",), MANY[150:])]

    assert missing(halves, [wanted]) == []
    assert missing(halves[1:], [wanted]) == [wanted]


def test_rules_that_could_be_compared_in_billions_of_ways_are_missing() -> None:
    held = [Rule((one,), (one,), (one,), (one,)) for one in MANY]

    assert missing(held, [Rule(MANY, MANY, MANY, MANY)] * 2) == [Rule(MANY, MANY, MANY, MANY)] * 2


def test_many_small_rules_are_compared_with_many_held_in_time() -> None:
    held = [Rule(("get",), ("",), (f"r{number}",)) for number in range(5_000)]

    assert missing(held, held) == []
