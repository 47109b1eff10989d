"""``setpoint prove`` and ``setpoint replay``: what they print, write and answer with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

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


def test_what_fails_is_kept_as_a_test_that_fails_until_the_operator_is_mended(
    operator: Path, tmp_path: Path
) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "True"))
    invoke("prove", str(operator), "--only", "E3")
    (test, *_) = sorted((tmp_path / ".setpoint" / "proof").glob("test_*.py"))
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    environment = {**os.environ, "COLUMNS": "200"}
    red = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)
    assert red.returncode == 1, red.stdout + red.stderr
    assert "FAIL O3" in red.stdout
    operator.write_text(OPERATOR.replace("REMEMBERS", "False"))
    green = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)
    assert green.returncode == 0, green.stdout + green.stderr


def test_two_operators_of_a_file_are_told_in_one_and_each_plan_knows_its_own(
    operator: Path, tmp_path: Path
) -> None:
    second = """
dogs = Operator("dogs")

class Dog(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: Spec = Spec()

@dogs.controller(Dog, owns=[ConfigMap])
async def walk(dog: Dog, ctx: Context) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=dog.metadata.name), data={"size": str(dog.spec.size)}))
"""
    operator.write_text(OPERATOR.replace("REMEMBERS", "True") + second)
    junit = tmp_path / "proof.xml"
    ran = invoke("prove", str(operator), "--only", "E3", "--junit", str(junit))
    assert ran.exit_code == 1, ran.output
    suites = {each.get("name"): each.get("failures") for each in ET.parse(junit).iter("testsuite")}
    assert suites.keys() == {"cats", "dogs"}
    assert suites["dogs"] == "0"
    (kept, *_) = sorted((tmp_path / ".setpoint" / "proof").glob("cats-*.json"))
    again = invoke("replay", str(kept))
    assert "FAIL cats" in again.output
    assert "dogs" not in again.output


def test_a_cloud_of_the_file_is_emptied_for_each_run_and_struck_by_faults(operator: Path) -> None:
    outside = """
from setpoint.testing import Cloud

cloud = Cloud("dns")
names = Operator("names")

@names.controller(Cat)
async def name(cat: Cat, ctx: Context) -> None:
    if await cloud.get(cat.metadata.name) is None:
        await cloud.create(cat.metadata.name)

@names.finalizer(Cat)
async def clean_up(cat: Cat, ctx: Context) -> None:
    await cloud.delete(cat.metadata.name)
"""
    before, _, _ = OPERATOR.partition("operator = ")
    operator.write_text(before + outside)
    ran = invoke("prove", str(operator), "--only", "X1")
    assert "BROKEN" not in ran.output
    assert "1 of 1 cells" in ran.output


def test_what_the_user_does_is_read_from_a_file(operator: Path, tmp_path: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "True"))
    steps = tmp_path / "steps.yaml"
    steps.write_text(
        """
- type: Create
  object: {apiVersion: demo.setpoint.dev/v1, kind: Cat, metadata: {name: tom, namespace: default}}
- {type: Delete, api_version: demo.setpoint.dev/v1, kind: Cat, name: tom}
"""
    )
    ran = invoke("prove", str(operator), "--only", "E3", "--steps", str(steps), "--without", "O2")
    assert "configmaps default/tom" in ran.output
    (kept, *_) = sorted((tmp_path / ".setpoint" / "proof").glob("*.json"))
    assert '"without": [' in kept.read_text()
    steps.write_text("[{type: Dance}]")
    ran = invoke("prove", str(operator), "--steps", str(steps))
    assert ran.exit_code == 1
    assert "these are no steps" in ran.output


def test_a_class_of_faults_that_there_is_none_of_is_refused(operator: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "False"))
    ran = invoke("prove", str(operator), "--only", "E22")
    assert ran.exit_code == 1
    assert "no class of faults E22: there are none, E1" in ran.output


def test_where_nothing_is_proven_it_does_not_end_well(operator: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "False"))
    ran = invoke("prove", str(operator), "--only", "X1")
    assert ran.exit_code == 2, ran.output
    assert "NOTHING PROVEN" in ran.output


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


def test_a_real_cluster_has_controllers_of_its_own(operator: Path) -> None:
    operator.write_text(OPERATOR)
    ran = invoke("prove", str(operator), "--cluster", "--controllers", "all")
    assert ran.exit_code == 2
    assert "a real one has its own" in ran.output
