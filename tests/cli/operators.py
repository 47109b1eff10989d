"""A small operator for tests of the commands that run one, and a folder to change it in."""

from __future__ import annotations

from pathlib import Path

OPERATOR = """
from neighbour import WORD
from setpoint import Context, Operator
from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.kube.core.v1 import ConfigMap

class GreetingSpec(Model):
    text: str = "hello"

class Greeting(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: GreetingSpec = GreetingSpec()

operator = Operator("greeting-operator")

@operator.controller(Greeting, owns=[ConfigMap])
async def reconcile(greeting: Greeting, ctx: Context) -> None:
    print("the word is", WORD)
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=greeting.metadata.name), data={"text": WORD}))
"""
GREETING = """
apiVersion: demo.setpoint.dev/v1
kind: Greeting
metadata: {name: hello, namespace: default}
"""


class Folder:
    """The files of an operator, as somebody edits them."""

    def __init__(self, path: Path) -> None:
        self.operator = path / "greeting.py"
        self.neighbour = path / "neighbour.py"
        self.manifest = path / "greeting.yaml"
        self.operator.write_text(OPERATOR)
        self.say("one")
        self.manifest.write_text(GREETING)

    def say(self, word: str) -> None:
        save(self.neighbour, f"WORD = {word!r}\n")


def save(path: Path, text: str) -> None:
    """Write a file as editors do: another, which then takes its place."""
    other = path.with_name(f".{path.name}.swp")
    other.write_text(text)
    other.replace(path)
