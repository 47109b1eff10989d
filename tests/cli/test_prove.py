"""``setpoint prove`` and ``setpoint replay``: what they print, write and answer with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from setpoint.cli.prove import exit_code
from setpoint.server.registry.crd import engine, programs
from setpoint.testing.proof.report import Report
from tests.cli.cats import OPERATOR, elsewhere, invoke


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cats.py"


@pytest.mark.slow
def test_an_operator_that_survives_is_told_so(operator: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "False"))
    ran = invoke("prove", str(operator), "--only", "E2", "--budget", "60s")
    assert ran.exit_code == 0, ran.output
    assert "ok cats" in ran.output
    assert re.search(
        r"^(\d+) of \1 plans with faults tried \(single-fault: \1 of \1\)$", ran.output, re.MULTILINE
    ), ran.output


def test_what_fails_is_told_kept_and_can_be_replayed(operator: Path, tmp_path: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "True"))
    junit, page = tmp_path / "proof.xml", tmp_path / "proof.html"
    ran = invoke("prove", str(operator), "--only", "E3", "--junit", str(junit), "--html", str(page))
    assert ran.exit_code == 1, ran.output
    assert "FAIL O3" in ran.output
    assert "<failure" in junit.read_text()
    assert "report = replay(make, " in junit.read_text(), "whoever has but that can run it again"
    assert "<table>" in page.read_text()
    assert "replay(make, " not in ran.output, "where there is a file that says it"
    assert "repro:  setpoint replay .setpoint/proof/cats-O3-E3-1.json" in ran.output
    (kept, *_) = sorted((tmp_path / ".setpoint" / "proof").glob("*.json"))
    again = invoke("replay", str(kept))
    assert again.exit_code == 1, again.output
    assert "FAIL O3" in again.output


@pytest.mark.slow
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


def test_a_warning_is_kept_as_a_plan_and_not_as_a_test_which_it_would_not_fail(
    operator: Path, tmp_path: Path
) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "True"))
    steps = tmp_path / "steps.yaml"
    steps.write_text(
        """
- type: Create
  object: {apiVersion: demo.setpoint.dev/v1, kind: Cat, metadata: {name: tom, namespace: default}}
- {type: Change, api_version: demo.setpoint.dev/v1, kind: Cat, name: tom, patch: {spec: {size: 2}}}
"""
    )
    ran = invoke("prove", str(operator), "--only", "M1", "--steps", str(steps))
    assert ran.exit_code == 0, ran.output
    assert "WARN " in ran.output
    assert "repro:  setpoint replay .setpoint/proof/cats-" in ran.output
    assert "test:" not in ran.output
    assert [each.suffix for each in (tmp_path / ".setpoint" / "proof").iterdir()] == [".json"]


DOGS = """
dogs = Operator("dogs")

class Dog(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: Spec = Spec()

@dogs.controller(Dog, owns=[ConfigMap])
async def walk(dog: Dog, ctx: Context) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=dog.metadata.name), data={"size": str(dog.spec.size)}))
"""


@pytest.mark.slow
def test_each_of_two_operators_of_a_file_can_have_steps_of_its_own(operator: Path, tmp_path: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "False") + DOGS)
    steps = tmp_path / "steps.yaml"
    steps.write_text("""
dogs:
- type: Create
  object: {apiVersion: demo.setpoint.dev/v1, kind: Dog, metadata: {name: rex, namespace: default}}
""")
    ran = invoke("prove", str(operator), "--only", "E2", "--budget", "40s", "--steps", str(steps))
    assert ran.exit_code == 0, ran.output
    assert "ok cats" in ran.output
    assert "ok dogs" in ran.output
    steps.write_text("birds: [{type: Pass, seconds: 1}]")
    ran = invoke("prove", str(operator), "--steps", str(steps))
    assert ran.exit_code == 2
    assert "no operator birds: there are cats, dogs" in ran.output


@pytest.mark.slow
def test_a_definition_that_the_server_refuses_is_told_with_the_servers_reason(
    operator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ruled = (
        OPERATOR.replace("REMEMBERS", "False")
        + """
from typing import Annotated
from setpoint.api import Rule

class BirdSpec(Model):
    size: Annotated[int, Rule("self < 9")] = 1

class Bird(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: BirdSpec = BirdSpec()

birds = Operator("birds")

@birds.controller(Bird)
async def fly(bird: Bird, ctx: Context) -> None: ...
"""
    )
    operator.write_text(ruled)
    programs._environment.cache_clear()
    monkeypatch.setattr(engine, "load", lambda: None)
    try:
        ran = invoke("prove", str(operator), "--only", "E2", "--budget", "60s")
    finally:
        programs._environment.cache_clear()
    assert ran.exit_code == 2, ran.output
    assert "the server refuses the definition birds.demo.setpoint.dev: " in ran.output
    assert "setpoint[cel]" in ran.output


@pytest.mark.slow
def test_two_operators_of_a_file_are_told_in_one_and_each_plan_knows_its_own(
    operator: Path, tmp_path: Path
) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "True") + DOGS)
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


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[{type: Dance}]", "Dance"),
        ("[{type: Delete}]", "api_version"),
        ("[{type: Create, object: {kind: Cat, metadata: {}}}]", "step 1: an object needs"),
        ("[]", "there are no steps"),
        ("a: [", "line 2"),
        ("\udcff", "UTF-8"),
    ],
)
def test_steps_that_cannot_be_taken_are_refused_with_what_to_give(
    operator: Path, tmp_path: Path, text: str, wrong: str
) -> None:
    steps = tmp_path / "steps.yaml"
    steps.write_bytes(text.encode(errors="surrogateescape"))
    told = refused(operator, "--steps", str(steps))
    assert "'--steps'" in told
    assert "steps.yaml" in told
    assert wrong in told


def test_steps_of_a_kind_that_there_is_none_of_are_refused(operator: Path, tmp_path: Path) -> None:
    operator.write_text(OPERATOR)
    steps = tmp_path / "steps.yaml"
    steps.write_text("[{type: Create, object: {apiVersion: demo/v1, kind: Dog, metadata: {name: rex}}}]")
    ran = invoke("prove", str(operator), "--steps", str(steps))
    assert ran.exit_code == 2
    assert f"prove cats of {operator}: " in ran.output
    assert "no Dog of demo/v1: is its definition among the operator's?" in ran.output


def refused(operator: Path, *options: str) -> str:
    """What is said of options that cannot be understood: all of it in one line, before anything is run."""
    operator.write_text("raise AssertionError('nothing is to be run')")
    ran = invoke("prove", str(operator), *options)
    assert ran.exit_code == 2, ran.output
    assert isinstance(ran.exception, SystemExit), ran.exception
    assert "Error: " in ran.output
    return ran.output


@pytest.mark.parametrize(
    ("given", "wrong"), [("{bad", "JSON is malformed"), ("3", "is not an object"), ("", "truncated")]
)
def test_an_example_that_is_no_spec_is_refused_with_what_to_give(
    operator: Path, given: str, wrong: str
) -> None:
    told = refused(operator, "--example", given)
    assert "'--example'" in told
    assert wrong in told
    assert """give the spec as a JSON object in quotes, '{"replicas": 2}'""" in told


def test_an_example_that_the_server_does_not_take_is_told_to_be_wrong(operator: Path) -> None:
    operator.write_text(OPERATOR)
    ran = invoke("prove", str(operator), "--example", '{"size": "large"}')
    assert ran.exit_code == 2, "nothing was found"
    assert "refused with 422: create Cat sample: the example is not right" in ran.output
    assert "--example JSON" in ran.output


@pytest.mark.parametrize(
    ("option", "name", "told"),
    [
        ("--only", "E22", "there is no class of faults E22: there are none, E1"),
        ("--without", "O99", "there is no oracle O99: there are O1, O2"),
        ("--controllers", "pods", "there is no controller pods: there are all, "),
    ],
)
def test_a_name_that_means_nothing_is_refused(operator: Path, option: str, name: str, told: str) -> None:
    assert f"'{option}': {told}" in refused(operator, option, name)


def test_where_nothing_is_proven_it_does_not_end_well(operator: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "False"))
    ran = invoke("prove", str(operator), "--only", "X1")
    assert ran.exit_code == 2, ran.output
    assert "NOTHING PROVEN" in ran.output


@pytest.mark.parametrize(("inconclusive", "code"), [(2, 0), (3, 2)])
def test_inconclusive_plans_are_held_against_those_that_are_listed_however_many_are_drawn(
    inconclusive: int, code: int
) -> None:
    report = Report("cats", plans=1000, drawn=990, proven=990, inconclusive=["no place"] * inconclusive)
    assert exit_code([report]) == code


@pytest.mark.parametrize("budget", ["soon", "0", "-5s", "nan", "infh", ""])
def test_a_budget_that_is_no_time_is_refused(operator: Path, budget: str) -> None:
    told = refused(operator, "--budget", budget)
    assert "'--budget'" in told
    assert "write 60s, 10m or 1h" in told


@pytest.mark.parametrize("option", ["--junit", "--html"])
def test_that_a_report_cannot_be_written_is_known_before_it_is_made(
    operator: Path, tmp_path: Path, option: str
) -> None:
    assert "there is no folder gone: make it first" in refused(operator, option, "gone/proof.xml")
    assert "is a directory" in refused(operator, option, str(tmp_path))


def test_where_a_plan_cannot_be_kept_that_is_told(operator: Path, tmp_path: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "True"))
    (tmp_path / ".setpoint").write_text("no folder")
    ran = invoke("prove", str(operator), "--only", "E3")
    assert ran.exit_code == 1
    assert "FAIL O3" in ran.output
    assert "Error: keep the plan that failed as .setpoint/proof/cats-" in ran.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "cats.py: there is no such file"),
        ("def", "cats.py: could not be imported; see above"),
        ("1 / 0", "ZeroDivisionError"),
        ("cats = 9", "cats.py: there is no Operator in it"),
    ],
)
def test_of_an_operator_that_cannot_be_loaded_nothing_is_found(
    operator: Path, text: str | None, told: str
) -> None:
    if text is not None:
        operator.write_text(text)
    ran = invoke("prove", str(operator))
    assert ran.exit_code == 2, "1 says that something was found"
    assert told in ran.output


def test_a_cluster_that_is_not_on_this_machine_is_not_touched_unless_that_is_said(
    operator: Path, tmp_path: Path
) -> None:
    operator.write_text(OPERATOR)
    ran = invoke("prove", str(operator), "--cluster", "--kubeconfig", elsewhere(tmp_path))
    assert ran.exit_code == 2
    assert "https://192.0.2.1:6443" in ran.output
    assert "say --yes" in ran.output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--kubeconfig", "gone"), "gone"),
        (("--kubeconfig", "kubeconfig", "--context", "test"), "context 'test'"),
    ],
)
def test_a_cluster_that_nothing_is_known_of_is_told(
    operator: Path, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    operator.write_text(OPERATOR)
    elsewhere(tmp_path)
    ran = invoke("prove", str(operator), "--cluster", *options)
    assert ran.exit_code == 2
    assert isinstance(ran.exception, SystemExit), ran.exception
    assert told in ran.output
    assert "Try: kubectl config view" in ran.output


def test_what_is_for_a_cluster_is_refused_without_one(operator: Path) -> None:
    assert "are for --cluster" in refused(operator, "--context", "prod")


def test_a_real_cluster_has_controllers_of_its_own(operator: Path) -> None:
    operator.write_text(OPERATOR)
    ran = invoke("prove", str(operator), "--cluster", "--controllers", "all")
    assert ran.exit_code == 2
    assert "a real one has its own" in ran.output


CALLER = """
import urllib.request

def call(method: str) -> None:
    request = urllib.request.Request("http://127.0.0.1:PORT/cats/tom", data=b"{}", method=method)
    try:
        urllib.request.urlopen(request, timeout=1).close()
    except Exception:
        if not SWALLOWS:
            raise

class Cat(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: Spec = Spec()

operator = Operator("cats")

@operator.controller(Cat, owns=[ConfigMap])
async def feed(cat: Cat, ctx: Context) -> None:
    call("PUT")
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=cat.metadata.name), data={"size": str(cat.spec.size)}))

@operator.finalizer(Cat)
async def bury(cat: Cat, ctx: Context) -> None:
    call("DELETE")
"""


@pytest.fixture
def asked() -> Iterator[tuple[int, list[str]]]:
    """The port of an HTTP server, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            asked.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        do_DELETE = do_PUT  # noqa: N815 - what http.server calls

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            thread.join()


def caller(port: int, *, swallows: bool) -> str:
    begin = OPERATOR[: OPERATOR.index("class Cat(")]
    return begin + CALLER.replace("PORT", str(port)).replace("SWALLOWS", str(swallows))


@pytest.mark.parametrize("swallows", [False, True])
def test_an_operator_with_an_http_client_reaches_no_server_and_is_told_of_clouds(
    operator: Path, tmp_path: Path, asked: tuple[int, list[str]], *, swallows: bool
) -> None:
    port, requests = asked
    operator.write_text(caller(port, swallows=swallows))
    junit, page = tmp_path / "proof.xml", tmp_path / "proof.html"
    ran = invoke(
        *("prove", str(operator), "--only", "E2", "--budget", "60s"),
        "--junit",
        str(junit),
        "--html",
        str(page),
    )
    assert requests == [], "not one request has left the process"
    assert ran.exit_code == 2, ran.output
    assert "NOTHING PROVEN cats" in ran.output
    line = (
        operator.read_text().splitlines().index("        urllib.request.urlopen(request, timeout=1).close()")
    )
    said = f"EXTERNAL CALL connect to 127.0.0.1:{port} (cats.py:{line + 1}, in call): refused"
    assert said in ran.output
    assert "setpoint.testing.Cloud" in ran.output
    assert f"--allow-network 127.0.0.1:{port}" in ran.output
    assert "FAIL" not in ran.output, "what was refused is not held against it"
    assert f"connect to 127.0.0.1:{port}" in junit.read_text()
    assert f"connect to 127.0.0.1:{port}" in page.read_text()


@pytest.mark.slow
def test_an_address_that_is_allowed_is_reached(operator: Path, asked: tuple[int, list[str]]) -> None:
    port, requests = asked
    operator.write_text(caller(port, swallows=False))
    ran = invoke("prove", str(operator), "--only", "none", "--allow-network", f"127.0.0.1:{port}")
    assert "PUT /cats/tom" in requests, ran.output
    assert "EXTERNAL CALL" not in ran.output


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import socket; socket.create_connection(('203.0.113.7', 443))", "connect to 203.0.113.7:443"),
        ("import os; os.system('true')", "run sh -c true"),
    ],
)
@pytest.mark.parametrize("swallows", [False, True])
def test_a_file_that_reaches_outside_when_it_is_imported_is_refused(
    operator: Path, line: str, said: str, *, swallows: bool
) -> None:
    if swallows:
        line = f"try:\n    {line}\nexcept Exception:\n    pass\n"
    operator.write_text(OPERATOR.replace("REMEMBERS", "False") + line)
    ran = invoke("prove", str(operator))
    assert ran.exit_code == 2, ran.output
    assert said in ran.output
    assert "setpoint.testing.Cloud" in ran.output


def test_what_is_no_address_cannot_be_allowed(operator: Path) -> None:
    operator.write_text(OPERATOR.replace("REMEMBERS", "False"))
    ran = invoke("prove", str(operator), "--allow-network", "https://example.com/")
    assert ran.exit_code == 2
    assert "give HOST, HOST:PORT" in ran.output


@pytest.mark.slow
def test_what_a_file_counts_and_draws_is_the_same_in_every_run(operator: Path) -> None:
    drawing = """
import itertools, random, time, uuid
from datetime import datetime, timezone

class State:
    looked = 0

numbers, drawn = itertools.count(1), random.Random()

def draw(key):
    State.looked += 1
    if key not in values:
        now = datetime.now(timezone.utc)
        values[key] = f"{next(numbers)} {drawn.random()} {now} {time.time()} {uuid.uuid1()} {State.looked}"
    return values[key]

values = {}
"""
    text = OPERATOR.replace("REMEMBERS", "False").replace(
        '"size": str(cat.spec.size)', '"size": draw((cat.metadata.uid, cat.spec.size))'
    )
    operator.write_text(drawing + text)
    ran = invoke(
        "prove", str(operator), "--only", "E3", "--budget", "60s", "--without", "O2", "--without", "O4"
    )
    assert "NOT REPEATABLE" not in ran.output
    assert "BROKEN" not in ran.output
    assert "plans with faults tried" in ran.output, "it came to the faults"
