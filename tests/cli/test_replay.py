"""``setpoint replay``: what it makes of a plan file, of whichever operator, and where it runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from setpoint.testing.proof.kept import How, keep
from setpoint.testing.proof.plans import AnyFault, At, Crash, Create, Plan, Slow, write_plan
from tests.cli.cats import OPERATOR, elsewhere, invoke

CAT = {
    "apiVersion": "demo.setpoint.dev/v1",
    "kind": "Cat",
    "metadata": {"name": "tom", "namespace": "default"},
}
APPLIED = At("apply configmaps default/tom")


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cats.py"
    path.write_text(OPERATOR.replace("REMEMBERS", "False"))
    return path


def kept(operator: Path, fault: AnyFault, *, name: str = "cats", how: How | None = None) -> str:
    """A plan file."""
    file = operator.with_name("plan.json")
    plan = Plan((Create(CAT),), (fault,))
    file.write_bytes(write_plan(keep(plan, how or How(), operator=str(operator), name=name)))
    return str(file)


def refused(*options: str) -> str:
    ran = invoke("replay", *options)
    assert ran.exit_code == 2, ran.output
    assert isinstance(ran.exception, SystemExit), ran.exception
    return ran.output


def test_what_is_survived_now_is_told_so(operator: Path) -> None:
    ran = invoke("replay", kept(operator, Crash(at=APPLIED)))
    assert ran.exit_code == 0, ran.output
    assert "ok cats" in ran.output


@pytest.mark.parametrize(
    "text", ["[]", "{}", "{", '{"steps": [{"type": "Dance"}]}', "from pathlib import Path"]
)
def test_a_file_that_is_no_plan_is_refused_with_what_to_give(
    operator: Path, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    told = refused(str(file), "--operator", str(operator))
    assert f"replay {file}: this is no plan: " in told
    assert ".setpoint/proof/*.json" in told


def test_a_plan_of_another_operator_is_refused_with_both_names(operator: Path) -> None:
    plan = kept(operator, Crash(at=APPLIED), name="dogs")
    told = refused(plan)
    assert (
        f"it is of the operator dogs, and in {operator} there is cats: give --operator the file of dogs"
        in told
    )


def test_a_plan_that_says_of_no_operator_whose_it_is_is_taken_where_there_is_one(operator: Path) -> None:
    plan = kept(operator, Crash(at=APPLIED), name="")
    assert invoke("replay", plan).exit_code == 0
    operator.write_text(operator.read_text() + "\nmore = Operator('more')\n")
    assert "there are cats, more" in refused(plan)


def test_an_operator_that_has_moved_is_asked_for(operator: Path) -> None:
    plan = kept(operator, Crash(at=APPLIED))
    moved = operator.rename(operator.with_name("moved.py"))
    assert f"its operator was in {operator}, where nothing is any more: give --operator" in refused(plan)
    assert invoke("replay", plan, "--operator", str(moved)).exit_code == 0
    assert "there is no such file" in refused(plan, "--operator", "gone.py")


def test_an_operator_that_cannot_be_imported_is_shown_with_where(operator: Path) -> None:
    plan = kept(operator, Crash(at=APPLIED))
    operator.write_text("1 / 0")
    told = refused(plan)
    assert "ZeroDivisionError" in told
    assert "cats.py: could not be imported; see above" in told


def test_a_cluster_elsewhere_is_not_touched_unless_that_is_said(operator: Path, tmp_path: Path) -> None:
    plan = kept(operator, Crash(at=APPLIED))
    assert "say --yes" in refused(plan, "--cluster", "--kubeconfig", elsewhere(tmp_path))
    ran = invoke("replay", plan, "--context", "prod")
    assert ran.exit_code == 2
    assert "are for --cluster" in ran.output


def test_what_cannot_be_had_on_a_cluster_is_said_before_anything_is_asked_of_it(
    operator: Path, tmp_path: Path
) -> None:
    here = elsewhere(tmp_path, "https://127.0.0.1:9")
    told = refused(kept(operator, Slow(at=APPLIED)), "--cluster", "--kubeconfig", here)
    assert "E6 needs time that can be put forward; replay it in process" in told


def test_what_was_found_on_a_cluster_and_is_run_in_process_says_so(operator: Path) -> None:
    ran = invoke("replay", kept(operator, Crash(at=APPLIED), how=How(is_on_cluster=True)))
    assert ran.exit_code == 0, ran.output
    assert "It was found on a cluster, and this was not one: --cluster runs it there." in ran.output
