"""``setpoint prove`` and ``setpoint replay``: what they print, write and answer with."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from setpoint.cli.main import main

OPERATOR = """
from setpoint import Context, Operator
from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.kube.core.v1 import ConfigMap

class Spec(Model):
    size: int = 1

class Cat(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: Spec = Spec()

operator = Operator("cats")
fed = {}

@operator.controller(Cat, owns=[ConfigMap])
async def feed(cat: Cat, ctx: Context) -> None:
    if REMEMBERS and cat.metadata.generation == fed.get(cat.metadata.uid):
        return
    fed[cat.metadata.uid] = cat.metadata.generation
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=cat.metadata.name), data={"size": str(cat.spec.size)}))
"""


def invoke(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cats.py"


def test_an_operator_that_survives_is_told_so(operator: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "False"))
    ran = invoke("prove", str(operator), "--only", "E2", "--budget", "20s")
    assert ran.exit_code == 0, ran.output
    assert "ok cats" in ran.output


def test_what_fails_is_told_kept_and_can_be_replayed(operator: Path, tmp_path: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "True"))
    junit, page = tmp_path / "proof.xml", tmp_path / "proof.html"
    ran = invoke("prove", str(operator), "--only", "E3", "--junit", str(junit), "--html", str(page))
    assert ran.exit_code == 1, ran.output
    assert "FAIL O3" in ran.output
    assert "<failure" in junit.read_text()
    assert "<table>" in page.read_text()
    (kept, *_) = sorted((tmp_path / ".setpoint" / "proof").glob("*.json"))
    again = invoke("replay", str(kept))
    assert again.exit_code == 1, again.output
    assert "FAIL O3" in again.output


def test_a_budget_that_is_no_time_is_refused(operator: Path) -> None:
    operator.write_text(OPERATOR)
    ran = invoke("prove", str(operator), "--budget", "soon")
    assert ran.exit_code == 2
    assert "write 60s, 10m or 1h" in ran.output


def test_a_file_that_is_no_plan_is_refused(operator: Path, tmp_path: Path) -> None:
    operator.write_text(OPERATOR)
    plan = tmp_path / "plan.json"
    plan.write_text("[]")
    ran = invoke("replay", str(plan), "--operator", str(operator))
    assert ran.exit_code == 1
    assert "this is no plan" in ran.output


def test_a_cluster_that_is_not_on_this_machine_is_not_touched_unless_that_is_said(
    operator: Path, tmp_path: Path
) -> None:
    operator.write_text(OPERATOR)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        """{apiVersion: v1, kind: Config, current-context: prod,
        contexts: [{name: prod, context: {cluster: prod, user: me}}],
        clusters: [{name: prod, cluster: {server: "https://192.0.2.1:6443"}}],
        users: [{name: me, user: {}}]}"""
    )
    ran = invoke("prove", str(operator), "--cluster", "--kubeconfig", str(kubeconfig))
    assert ran.exit_code == 1
    assert "https://192.0.2.1:6443" in ran.output
    assert "say --yes" in ran.output


def test_what_is_for_a_cluster_is_refused_without_one(operator: Path) -> None:
    operator.write_text(OPERATOR)
    ran = invoke("prove", str(operator), "--context", "prod")
    assert ran.exit_code == 2
    assert "are for --cluster" in ran.output
