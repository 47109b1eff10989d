"""What is in a Secret is in no report, story, plan file or golden file: the same canary as for the logs."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api import ObjectMeta, yaml
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import Secret
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.kept import How, keep
from setpoint.testing.proof.lab import Lab
from setpoint.testing.proof.plans import At, Change, Crash, Create, Interfere, Plan, Step
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.redaction import Redactor, redacted_kept, redacted_state
from setpoint.testing.proof.report import as_html, as_junit
from setpoint.testing.proof.states import difference
from tests.canary import CANARY, assert_unseen
from tests.cli.cats import invoke
from tests.mutants.widgets import Widget, change, child, create, delete, operator_of

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ENCODED = base64.b64encode(CANARY.encode()).decode()


def given_secret(value: str = CANARY) -> dict[str, Any]:
    annotations = {LAST_APPLIED: f'{{"stringData":{{"key":"{value}"}}}}'}
    metadata = {"name": "given", "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": value}}


PATCH = {"stringData": {"key": f"{CANARY}-2"}, "data": {"other": ENCODED}}
STEPS: tuple[Step, ...] = (
    Create(given_secret()),
    create(),
    Change("v1", "Secret", "given", PATCH),
    change(text="b"),
    delete(),
)
cloud = Cloud("vault")
done: set[str] = set()


async def careless(widget: Widget, ctx: Context) -> None:
    """Is content with what it has tried once, and tells everybody the password."""
    version = f"{widget.metadata.uid} {widget.metadata.generation}"
    if version in done:
        return
    done.add(version)
    password = f"{CANARY}-{widget.spec.text}"
    await ctx.apply(Secret(metadata=ObjectMeta(name="made"), string_data={"password": password}))
    await ctx.apply(child(widget, text=password))
    if await cloud.get("it") is None:
        await cloud.create("it", password=password)
    if widget.spec.text == "b":
        raise RuntimeError(f"{password!r} is too short")


def make() -> Any:
    done.clear()
    return operator_of(careless)


def test_no_secret_is_in_a_report_of_any_form() -> None:
    report = prove(
        make,
        steps=STEPS,
        clouds=[cloud],
        only=["none", "E3", "E2"],
        most_plans=25,
        objects=[given_secret("x" + CANARY)],
    )
    assert report.failures, "there is something to tell"
    found = " ".join(str(finding) for failure in report.failures for finding in failure.findings)
    assert "secrets default/made" in found + str(report), "of the Secret, too"
    assert_unseen(str(report), as_junit(report), as_html(report), *map(str, report.failures))


def test_no_secret_is_in_what_the_command_prints_and_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    operator = tmp_path / "cats.py"
    operator.write_text(
        f"""
from setpoint import Context, Operator
from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.kube.core.v1 import Secret

class Spec(Model):
    size: int = 1

class Cat(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: Spec = Spec()

operator = Operator("cats")
fed = {{}}

@operator.controller(Cat, owns=[Secret])
async def feed(cat: Cat, ctx: Context) -> None:
    if cat.metadata.generation == fed.get(cat.metadata.uid):
        return
    if cat.spec.size > 1:
        fed[cat.metadata.uid] = cat.metadata.generation
    data = {{"k": "{CANARY}" + str(cat.spec.size)}}
    await ctx.apply(Secret(metadata=ObjectMeta(name=cat.metadata.name), string_data=data))
"""
    )
    steps = tmp_path / "steps.yaml"
    metadata = {"name": "tom", "namespace": "default"}
    cat = {"apiVersion": "demo.setpoint.dev/v1", "kind": "Cat", "metadata": metadata}
    grown = {"api_version": cat["apiVersion"], "kind": "Cat", "name": "tom", "patch": {"spec": {"size": 2}}}
    steps.write_bytes(
        msgspec.json.encode(
            [
                {"type": "Create", "object": given_secret()},
                {"type": "Create", "object": cat},
                {"type": "Change", "api_version": "v1", "kind": "Secret", "name": "given", "patch": PATCH},
                {"type": "Change", **grown},
            ]
        )
    )
    junit, page = tmp_path / "proof.xml", tmp_path / "proof.html"
    ran = invoke(
        *("prove", str(operator), "--only", "E3", "--steps", str(steps), "--budget", "60s"),
        *("--junit", str(junit), "--html", str(page)),
    )
    assert ran.exit_code == 1, ran.output
    assert "secrets default/tom: data.k: expected <redacted>, got another value" in ran.output
    kept = [each.read_text() for each in (tmp_path / ".setpoint" / "proof").iterdir()]
    assert kept
    assert_unseen(ran.output, junit.read_text(), page.read_text(), *kept)
    again = invoke("replay", str(next((tmp_path / ".setpoint" / "proof").glob("*.json"))))
    assert again.exit_code == 1, again.output
    assert_unseen(again.output)


def test_no_secret_is_in_the_story_of_a_test_or_in_a_golden_file(tmp_path: Path) -> None:
    with Lab(folder=tmp_path, update=True, clouds=(cloud,)) as lab:
        lab.run(make)
        lab.create(given_secret())
        lab.change(Secret, "given", PATCH)
        lab.create(Widget(metadata=ObjectMeta(name="w", namespace="default")))
        lab.get(Secret, "made")
        lab.assert_matches("golden.yaml")
        with pytest.raises(AssertionError) as caught:
            lab.wait_for(Secret, "given", lambda _secret: False, timeout=1)
        golden = yaml.load((tmp_path / "golden.yaml").read_bytes())
        kept = golden["secrets default/given"], golden["secrets default/made"]
        assert kept[0]["data"] == {"key": "<redacted>", "other": "<redacted>"}
        assert_unseen(lab.story(), str(caught.value), str(kept))
        assert lab.snapshot()["secrets default/given"]["data"]["other"] == ENCODED, "a test may look itself"


def test_a_golden_file_from_before_still_matches(tmp_path: Path) -> None:
    file = tmp_path / "golden.yaml"
    file.write_text(f"secrets default/a:\n  apiVersion: v1\n  kind: Secret\n  data:\n    key: {ENCODED}\n")
    with Lab(folder=tmp_path) as lab:
        lab.create(Secret(metadata=ObjectMeta(name="a"), string_data={"key": CANARY}))
        with pytest.raises(AssertionError) as caught:
            lab.assert_matches("golden.yaml")  # its metadata and type differ
    assert_unseen(str(caught.value).partition("golden.yaml: it is not")[2].partition("\n\n")[0])


encoded = st.binary(min_size=1).map(lambda each: base64.b64encode(each).decode())
secrets = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Secret"),
        "metadata": st.just({"name": "s", "namespace": "default"}),
    },
    optional={
        "data": st.dictionaries(st.sampled_from("abc"), encoded),
        "stringData": st.dictionaries(st.sampled_from("abc"), st.text(min_size=1)),
    },
)


def _values(plan: Any) -> list[str]:
    found: list[str] = []
    for step in (*plan.steps, *(each for fault in plan.faults for each in getattr(fault, "steps", ()))):
        obj = step.object if isinstance(step, Create) else step.patch
        found += [value for field in ("data", "stringData") for value in (obj.get(field) or {}).values()]
    return found


@given(st.lists(secrets, min_size=1, max_size=4))
def test_a_kept_plan_has_other_values_and_the_same_ones_where_they_were_the_same(
    given_secrets: list[dict[str, Any]],
) -> None:
    first, *others = given_secrets
    steps: tuple[Step, ...] = (Create(first), *(Change("v1", "Secret", "s", each) for each in others))
    plan = Plan(steps, (Interfere(at=At("x"), steps=steps), Crash(at=At("x"))))
    before = _values(plan)
    after = _values(redacted_kept(keep(plan, How(objects=(first,)))))
    assert _values(plan) == before, "the plan itself is as it was"
    assert len(before) == len(after)
    assert not set(before) & set(after) or not before
    assert len(set(before)) >= len(set(after))
    for one, other in zip(before, after, strict=True):
        assert all((one == again) <= (other == same) for again, same in zip(before, after, strict=True))


@given(secrets, secrets)
def test_a_difference_of_secrets_shows_no_value(one: dict[str, Any], other: dict[str, Any]) -> None:
    lines = difference({"secrets default/s": one}, {"secrets default/s": other}, most=100)
    for line in lines:
        said = line.split(": ", 2)[2]
        assert said in {
            "expected <redacted>, got another value",
            "expected <redacted>, got nothing",
            "expected nothing, got <redacted>",
            "expected nothing, got {}",
            "expected {}, got nothing",
        }
    assert not difference(redacted_state({"secrets a": one}), redacted_state({"secrets a": one}))


def test_names_and_short_values_are_left_in_the_story() -> None:
    with Lab() as lab:
        data = {"host": "default", "user": "ab", "key": CANARY}
        lab.create(Secret(metadata=ObjectMeta(name="s", namespace="default"), string_data=data))
        redactor = Redactor(lab.trace)
    said = f"configmaps default/ab {CANARY} {ENCODED}"
    assert redactor.text(said) == "configmaps default/ab <redacted> <redacted>"
