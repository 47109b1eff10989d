"""kubectl cannot tell our server from kube-apiserver: what it prints is the same, masked as kubectl.py says.

Each file in ``scripts/`` is run against both, in a namespace of its own name.  What a script cannot do, since
it takes two programs at once, is told here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.outside.conftest import Both, NewBoth
from tests.outside.kubectl import Kubectl

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))
# Ours has no descriptions of built-in kinds: they would be most of the wheel.
WITHOUT_DESCRIPTIONS = {"explains"}
HOLD = {"metadata": {"finalizers": ["example.com/hold"]}}
LET_GO = {"metadata": {"finalizers": None}}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_says_the_same(script: Path, new_both: NewBoth) -> None:
    shown = is_no_description if script.stem in WITHOUT_DESCRIPTIONS else bool
    new_both(script.stem).agree(script.read_text(), shown=shown)


def is_no_description(line: str) -> bool:
    return not re.match(r"    |$|DESCRIPTION", line) or "\t<" in line or "enum:" in line


def test_it_watches(new_both: NewBoth) -> None:
    def watched(kubectl: Kubectl) -> list[str]:
        kubectl.ok("create cm first --from-literal=a=1")
        with kubectl.follow("get cm -w") as following:
            following.lines(2)
            for line in ("create cm second", "label cm second a=b", "delete cm first"):
                count = len(following.said)
                kubectl.ok(line)
                following.lines(count + 1)
            shown = following.said
        kubectl.ok("label cm second pick=me")
        with kubectl.follow("get cm -w -l pick=me -o json --output-watch-events") as following:
            following.until("ADDED")
            kubectl.ok("label cm second pick=other --overwrite")
            following.until("DELETED")
            shown += following.said
        kubectl.ok("create deployment seen --image=nginx")
        with kubectl.follow("get deployments -w --output-watch-events") as following:
            following.until("seen")
            kubectl.ok("scale deployment seen --replicas=2")
            following.until("MODIFIED")
            shown += following.said
        return shown

    agree_on(new_both("watches"), watched)


def test_it_waits(new_both: NewBoth) -> None:
    status = {"replicas": 1, "readyReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]}
    waits: tuple[tuple[str, Callable[[Kubectl], object]], ...] = (
        (
            "--for=condition=Available deployment/web",
            lambda kubectl: kubectl.merge("deployment web --subresource=status", {"status": status}),
        ),
        (
            "--for=jsonpath={.spec.replicas}=4 deployment/web",
            lambda kubectl: kubectl.ok("scale deployment web --replicas=4"),
        ),
        ("--for=delete cm/held", lambda kubectl: kubectl.merge("cm held", LET_GO)),
        ("--for=create cm/later", lambda kubectl: kubectl.ok("create cm later")),
    )

    def waited(kubectl: Kubectl) -> list[str]:
        kubectl.ok("create deployment web --image=nginx")
        kubectl.ok("create cm held")
        kubectl.merge("cm held", HOLD)
        kubectl.ok("delete cm held --wait=false")
        shown = []
        for line, change in waits:
            with kubectl.follow(f"wait {line} --timeout=50s -v=6") as following:
                following.until("watch=true|404 Not Found")  # it looks: from now on it waits
                change(kubectl)
                code = following.end()
                shown += [f"{line}: {code}", *(each for each in following.said if each.endswith(" met"))]
        return shown

    agree_on(new_both("waits"), waited)


def test_a_deletion_is_waited_for(new_both: NewBoth) -> None:
    def deleted(kubectl: Kubectl) -> list[str]:
        kubectl.ok("create cm held")
        kubectl.merge("cm held", HOLD)
        with kubectl.follow("delete cm held --timeout=50s") as following:
            following.until("deleted")
            assert "deletionTimestamp" in kubectl.ok("get cm held -o yaml")
            kubectl.merge("cm held", LET_GO)
            return [str(following.end()), *following.said]

    agree_on(new_both("a-deletion"), deleted)


def test_it_is_told_of_health_and_of_itself(new_both: NewBoth) -> None:
    both = new_both("health")
    for kubectl in (both.ours, both.theirs):
        health = kubectl.ok("get --raw /readyz?verbose")
        assert re.search(r"^\[\+\]ping ok$", health, re.MULTILINE)
        assert health.endswith("readyz check passed\n")
        assert "system:masters" in kubectl.ok("auth whoami")
        assert "system:masters" in kubectl.ok("auth whoami -o jsonpath={.status.userInfo.groups}")
        assert "*.*" in kubectl.ok("auth can-i --list")


def agree_on(both: Both, story: Callable[[Kubectl], list[str]]) -> None:
    both.same(story(both.ours), story(both.theirs))
