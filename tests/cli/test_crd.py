"""``setpoint crd``: definitions on standard output, and nothing else."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from setpoint.api import yaml
from setpoint.cli.main import main
from tests.pages import ROOT

TWO = """
from setpoint import Context, Operator
from setpoint.api import CustomResource, Model

class Spec(Model):
    size: int = 1

class Cat(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: Spec = Spec()

class Dog(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: Spec = Spec()

operator = Operator("pets")

@operator.controller(Cat)
async def feed(cat: Cat, ctx: Context) -> None: ...

@operator.controller(Dog)
async def walk(dog: Dog, ctx: Context) -> None: ...
"""


def crd(path: Path) -> Result:
    return CliRunner().invoke(main, ["crd", str(path)])


def test_it_prints_every_definition_as_a_document() -> None:
    result = crd(ROOT / "examples" / "webapp" / "webapp.py")
    assert result.exit_code == 0
    (definition,) = yaml.load_all(result.output)
    assert definition["metadata"]["name"] == "webapps.demo.setpoint.dev"


def test_several_kinds_are_several_documents(tmp_path: Path) -> None:
    (tmp_path / "pets.py").write_text(TWO)
    documents = yaml.load_all(crd(tmp_path / "pets.py").output)
    assert [each["spec"]["names"]["kind"] for each in documents] == ["Cat", "Dog"]


SHARED = (
    TWO
    + """
other = Operator("vet")

@other.controller(Cat)
async def heal(cat: Cat, ctx: Context) -> None: ...

class OlderCat(CustomResource, group="demo.setpoint.dev", version="v1beta1", kind="Cat", storage=False):
    spec: Spec = Spec()

@other.controller(OlderCat, name="older")
async def heal_older(cat: OlderCat, ctx: Context) -> None: ...
"""
)


def test_a_kind_that_two_operators_share_is_printed_once_with_all_of_its_versions(tmp_path: Path) -> None:
    (tmp_path / "pets.py").write_text(SHARED)
    documents = yaml.load_all(crd(tmp_path / "pets.py").output)
    assert [each["spec"]["names"]["kind"] for each in documents] == ["Cat", "Dog"]
    assert [each["name"] for each in documents[0]["spec"]["versions"]] == ["v1", "v1beta1"]


def test_an_operator_of_kinds_that_are_no_classes_has_none(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(
        "from setpoint import Operator, untyped\n"
        "operator = Operator('plain')\n"
        "@operator.controller(untyped('v1', 'ConfigMap'))\n"
        "async def reconcile(config, ctx): ...\n"
    )
    result = crd(tmp_path / "plain.py")
    assert result.exit_code == 1
    assert "none of its kinds is a class" in result.output
