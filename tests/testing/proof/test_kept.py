"""The promises of ``proof/kept.py``: what is no plan is refused, and what is kept as a test can be run."""

from __future__ import annotations

import ast

import pytest

from setpoint.testing.proof.kept import How, as_call, as_test, keep, read_kept, read_steps, told_again
from setpoint.testing.proof.plans import At, Crash, Pass, Plan, write_plan
from tests.mutants.widgets import create, delete

PLAN = Plan((create(), delete()), (Crash(at=At("apply configmaps default/w")),), 7)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "truncated"),
        ("{}", "there are no steps"),
        ('{"steps": [{"type": "Dance"}]}', "Dance"),
        ('{"steps": [{"type": "Create", "object": {"kind": "Cat"}}]}', "step 1: an object needs"),
    ],
)
def test_what_is_no_plan_is_refused_with_why_and_what_to_give(text: str, wrong: str) -> None:
    with pytest.raises(
        ValueError, match=rf"this is no plan: .*{wrong}.*; give a file that setpoint prove has"
    ):
        read_kept(text)


def test_steps_are_read_in_wire_form() -> None:
    assert read_steps([{"type": "Pass", "seconds": 5}]) == (Pass(5.0),)
    with pytest.raises(ValueError, match=r"these are no steps: .*give a list of Create"):
        read_steps({"type": "Pass"})


def test_what_is_said_again_counts_and_all_else_is_as_it_was() -> None:
    kept = keep(PLAN, How(keeps=("secrets",), without=("O3",)))
    assert told_again(kept, has_rules=False, keeps=None, without=()) == How(seed=7, keeps=("secrets",))


@pytest.mark.parametrize("is_on_cluster", [False, True])
def test_a_test_replays_where_the_plan_was_found(is_on_cluster: bool) -> None:
    kept = keep(PLAN, How(is_on_cluster=is_on_cluster), operator="cats.py")
    assert read_kept(write_plan(kept)) == kept
    text = as_test(kept, "O3", "../cats.py")
    called = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (replayed,) = [each for each in called if ast.unparse(each.func) == "replayed"]
    cluster = ["Config.load()"] if is_on_cluster else []
    assert [ast.unparse(each) for each in replayed.args] == ["PLAN", "OPERATOR", *cluster]
    assert ("import Config" in text) is is_on_cluster


@pytest.mark.parametrize("is_on_cluster", [False, True])
def test_a_call_replays_where_the_plan_was_found_with_its_clouds(is_on_cluster: bool) -> None:
    kept = keep(PLAN, How(is_on_cluster=is_on_cluster))
    called = [node for node in ast.walk(ast.parse("\n".join(as_call(kept, ["my-dns"])))) if _is_replay(node)]
    (replayed,) = called
    assert isinstance(replayed, ast.Call)
    *given, plan = replayed.args
    assert [ast.unparse(each) for each in given] == ["make", *(["Config.load()"] if is_on_cluster else [])]
    assert read_kept(ast.literal_eval(plan)) == kept
    assert [ast.unparse(each) for each in replayed.keywords] == ["clouds=[my_dns]"]


def _is_replay(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("replay")
