"""``setpoint models``, against a server that answers over HTTP with the documents of custom resources."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from setpoint.api.meta import Condition
from setpoint.api.model import to_wire
from setpoint.api.quantity import Quantity
from setpoint.cli.main import main
from setpoint.cli.models import documents_of
from setpoint.client.client import Client
from setpoint.net.transport import Request
from tests.cli.documents import answers, published, serving
from tests.peer import Peer, Reply

TEXT = {"type": "string"}
CONDITION = Condition.OPENAPI
WEBAPP = {
    "properties": {
        "spec": {
            "type": "object",
            "required": ["image", "ports"],
            "properties": {
                "image": TEXT,
                "clusterIP": TEXT,
                "from": TEXT,
                "memory": Quantity.OPENAPI,
                "ports": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["number"],
                        "properties": {"number": {"type": "integer"}, "int": {"type": "integer"}},
                    },
                },
                "env": {"type": "object", "additionalProperties": TEXT},
                "values": {"x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "required": ["ready"],
            "properties": {
                "ready": {"type": "boolean"},
                "conditions": {"type": "array", "items": CONDITION},
            },
        },
    },
    "required": ["spec"],
}
DEMO = ("demo.setpoint.dev", "v1", "WebApp", "webapps")
OTHER = ("other.dev", "v1beta1", "Model", "models")
BATCH = ("batch", "v1", "Job", "jobs")
SERVER = answers(
    (*DEMO, published("demo.setpoint.dev", "v1", "WebApp", WEBAPP)),
    (*OTHER, published("other.dev", "v1beta1", "Model", {"properties": {"spec": {"type": "object"}}})),
    (*BATCH, {"components": {"schemas": {"io.k8s.api.batch.v1.Job": {
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "batch", "version": "v1", "kind": "Job"}],
    }}}}),
)  # fmt: skip


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    with serving(SERVER, tmp_path) as file:
        yield file


def run(kubeconfig: Path, output: Path, *arguments: str) -> Result:
    where = ["--kubeconfig", str(kubeconfig), "--output", str(output)]
    return CliRunner().invoke(main, ["models", *where, *arguments])


def files(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*.py")}


@pytest.fixture
def package(kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The package that the command has written, ready for import."""
    assert run(kubeconfig, tmp_path / "shop" / "made").exit_code == 0
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "shop.made"
    for name in [name for name in sys.modules if name.split(".")[0] == "shop"]:
        del sys.modules[name]


def test_every_group_that_does_not_come_with_kubernetes_becomes_a_module(
    kubeconfig: Path, tmp_path: Path
) -> None:
    output = tmp_path / "models"
    result = run(kubeconfig, output)
    assert result.exit_code == 0, result.output
    assert files(output) == {
        "__init__.py",
        "demo_setpoint_dev/__init__.py",
        "demo_setpoint_dev/v1.py",
        "other_dev/__init__.py",
        "other_dev/v1beta1.py",
    }
    assert result.output.splitlines() == [
        f"{output}/demo_setpoint_dev/v1.py  WebApp",
        f"{output}/other_dev/v1beta1.py  Model",
    ]


def test_groups_may_be_named(kubeconfig: Path, tmp_path: Path) -> None:
    assert run(kubeconfig, tmp_path / "a", "other.dev").exit_code == 0
    assert run(kubeconfig, tmp_path / "b", "demo.setpoint.dev/v1", "batch").exit_code == 0
    assert {name for name in files(tmp_path / "a") if "/v" in name} == {"other_dev/v1beta1.py"}
    assert {name for name in files(tmp_path / "b") if "/v" in name} == {
        "batch/v1.py",
        "demo_setpoint_dev/v1.py",
    }


def test_the_models_read_and_write_objects(package: str) -> None:
    made: Any = importlib.import_module(f"{package}.demo_setpoint_dev.v1")
    said = {
        "apiVersion": "demo.setpoint.dev/v1",
        "kind": "WebApp",
        "metadata": {"name": "web"},
        "spec": {
            "image": "nginx",
            "clusterIP": "None",
            "from": "here",
            "memory": "1Gi",
            "ports": [{"number": 80, "int": 1}],
            "values": [1, {"a": None}],
        },
        "status": {"ready": True, "conditions": []},
    }
    webapp = made.WebApp.decode(json.dumps(said).encode())
    assert webapp.spec.cluster_ip == "None"
    assert webapp.spec.from_ == "here"
    assert webapp.spec.memory == Quantity("1Gi")
    assert webapp.spec.ports == [made.WebAppSpecPorts(number=80, int_=1)]
    assert to_wire(webapp) == said
    assert made.WebApp.resource.plural == "webapps"
    assert made.WebApp.resource.subresources == ("status",)


def test_a_kind_may_be_called_model(package: str) -> None:
    made: Any = importlib.import_module(f"{package}.other_dev.v1beta1")
    assert to_wire(made.Model()) == {
        "apiVersion": "other.dev/v1beta1",
        "kind": "Model",
        "metadata": {},
        "spec": {},
    }


PROGRAM = """
from setpoint.api.meta import Condition, ObjectMeta
from setpoint.api.quantity import Quantity
from shop.made.demo_setpoint_dev.v1 import WebApp, WebAppSpec, WebAppSpecPorts
from shop.made.other_dev.v1beta1 import Model

webapp = WebApp(
    metadata=ObjectMeta(name="web"),
    spec=WebAppSpec(image="nginx", memory=Quantity("1Gi"), ports=[WebAppSpecPorts(number=80)]),
)
ready: bool = webapp.status.ready
conditions: list[Condition] | None = webapp.status.conditions
number: int = webapp.spec.ports[0].number
name: str | None = Model().metadata.name
"""


@pytest.mark.slow
def test_the_models_pass_a_strict_type_check(package: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        str(tmp_path),
        "program.py",
    ]
    shown = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert shown.returncode == 0, shown.stdout


def test_running_it_again_changes_nothing_and_leaves_the_users_own_words(
    kubeconfig: Path, tmp_path: Path
) -> None:
    output = tmp_path / "models"
    run(kubeconfig, output)
    module = output / "demo_setpoint_dev" / "v1.py"
    before = module.read_text()
    (output / "__init__.py").write_text("# ours\n")
    module.write_text("# overwritten by hand\n")

    assert run(kubeconfig, output).exit_code == 0
    assert (output / "__init__.py").read_text() == "# ours\n"
    assert module.read_text() == before


def test_a_group_that_the_server_lacks_is_answered_with_those_it_has(
    kubeconfig: Path, tmp_path: Path
) -> None:
    result = run(kubeconfig, tmp_path / "models", "demo.setpoint.dev/v2")
    assert result.exit_code == 1
    assert result.output == (
        "Error: the server has no group demo.setpoint.dev/v2; it has batch, demo.setpoint.dev, other.dev\n"
    )
    assert not (tmp_path / "models").exists()


def test_a_server_without_custom_resources_says_so(tmp_path: Path) -> None:
    document = SERVER["/openapi/v3/apis/batch/v1"]
    with serving(answers((*BATCH, document)), tmp_path) as kubeconfig:
        result = run(kubeconfig, tmp_path / "models")
    assert result.exit_code == 1
    assert "install a CustomResourceDefinition first" in result.output


def test_a_server_without_openapi_v3_gets_a_sentence(tmp_path: Path) -> None:
    with serving({}, tmp_path) as kubeconfig:
        result = run(kubeconfig, tmp_path / "models")
    assert result.exit_code == 1
    assert result.output.startswith("Error: get /openapi/v3: ")
    assert result.output.count("\n") == 1


@pytest.mark.parametrize(
    ("path", "answer", "sentence"),
    [
        ("/openapi/v3", b"{", "get /openapi/v3: not JSON: "),
        ("/openapi/v3", ["no", "object"], "get /openapi/v3: not an index of OpenAPI documents"),
        ("/openapi/v3", {"paths": []}, "get /openapi/v3: not an index of OpenAPI documents"),
        ("/openapi/v3/apis/other.dev/v1beta1", [], "v1beta1: not an OpenAPI document with schemas"),
        ("/apis", [], "get /apis: not a discovery document: "),
    ],
)
def test_an_answer_that_makes_no_sense_gets_a_sentence(
    path: str, answer: Any, sentence: str, tmp_path: Path
) -> None:
    with serving(SERVER | {path: answer}, tmp_path) as kubeconfig:
        result = run(kubeconfig, tmp_path / "models")
    assert result.exit_code == 1
    assert sentence in result.output
    assert result.output.count("\n") == 1


def test_a_group_whose_own_server_is_down_is_left_out(tmp_path: Path) -> None:
    down = {"/openapi/v3/apis/other.dev/v1beta1": 503}
    with serving(SERVER | down, tmp_path) as kubeconfig:
        result = run(kubeconfig, tmp_path / "models")
    assert result.exit_code == 0, result.output
    assert "Left out: get /openapi/v3/apis/other.dev/v1beta1" in result.stderr
    assert "other_dev/v1beta1.py" not in files(tmp_path / "models")


def test_a_group_asked_for_whose_own_server_is_down_is_an_error(tmp_path: Path) -> None:
    down = {"/openapi/v3/apis/other.dev/v1beta1": 503}
    with serving(SERVER | down, tmp_path) as kubeconfig:
        result = run(kubeconfig, tmp_path / "models", "other.dev")
    assert result.exit_code == 1
    assert "the server of other.dev is down" in result.output


def test_a_place_that_cannot_be_written_to_gets_a_sentence(kubeconfig: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "other_dev").write_text("a file where a folder should be")
    result = run(kubeconfig, tmp_path / "models", "other.dev")
    assert result.exit_code == 1
    assert result.output == f"Error: write {tmp_path}/models/other_dev/__init__.py: File exists\n"


async def test_a_document_that_changed_since_the_index_was_read_is_no_failure() -> None:
    def answer(request: Request) -> Reply:
        stale = "?" in request.target
        return (
            Reply(301, b"", {"Location": "/elsewhere"})
            if stale
            else Reply(200, {"components": {"schemas": {}}})
        )

    client = Client(transport=Peer(answer))
    found = await documents_of(
        client, {("demo.setpoint.dev", "v1"): "/openapi/v3/apis/demo.setpoint.dev/v1?hash=OLD"}
    )
    assert list(found) == [("demo.setpoint.dev", "v1")]
