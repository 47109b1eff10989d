"""A plan that failed, as it is kept: in a file, for ``replay``, as a test, and as a call.

With the plan goes what its verdict depends on: which operator of which file, and what the proof was told, as
far as a file can hold it.  Rules are code: the file names them, and who replays must give them again.

Pure.  Written by ``cli/prove.py`` and told by ``report.py``; read by ``prove.py`` (``replay``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from setpoint.testing.isolation import Allowed
from setpoint.testing.proof.plans import Create, Plan, Step


class How(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a proof was told, as far as a file can hold it."""

    seed: int | None = None  # of the run without faults, against which others are judged; None: the plan's
    keeps: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    at_most: tuple[tuple[str, int], ...] = ()
    controllers: tuple[str, ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    rules: tuple[str, ...] = ()  # what the author's own say
    is_on_cluster: bool = False  # whether it was found on one that runs, and not in process
    history: tuple[str, ...] = ()
    allow_network: tuple[str, ...] = ()  # what the operator may reach outside
    allow_program: tuple[str, ...] = ()

    @property
    def allowed(self) -> Allowed:
        """ValueError says which address is none."""
        return Allowed.of(self.allow_network, self.allow_program)


class Kept(Plan, frozen=True, omit_defaults=True):
    """A plan, and all it takes to come to the same verdict again."""

    name: str = ""  # of the operator, where its file has several
    how: How = How()


def keep(plan: Plan, how: How, *, operator: str = "", name: str = "") -> Kept:
    """A plan of this proof; ``operator`` is the file that it is in."""
    fields = msgspec.structs.asdict(plan)
    return Kept(**{**fields, "operator": operator or plan.operator, "name": name, "how": how})


def told_again(kept: Kept, *, has_rules: bool, **told: Any) -> How:
    """What a replay is told: what the proof was, except for what is said again (and is not None)."""
    how = kept.how
    if how.rules and not has_rules:
        raise ValueError(
            f"the plan was judged by rules, which a file cannot hold ({'; '.join(how.rules)}): "
            "give always=… and never=… as they were given to prove"
        )
    told["seed"] = kept.seed if how.seed is None else how.seed
    return msgspec.structs.replace(how, **{name: each for name, each in told.items() if each is not None})


def read_kept(data: str | bytes) -> Kept:
    """A plan from JSON; ValueError says what is wrong with it."""
    try:
        kept = msgspec.json.decode(data, type=Kept)
        checked_steps(kept.steps)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(
            f"this is no plan: {error}; give a file that setpoint prove has written, .setpoint/proof/*.json"
        ) from error
    return kept


def read_steps(value: Any) -> tuple[Step, ...]:
    """What a user does, from a list in wire form; ValueError says what is wrong with it."""
    try:
        return checked_steps(msgspec.convert(value, tuple[Step, ...]))
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(
            f"these are no steps: {error}; give a list of Create (object), Change (api_version, kind, name, "
            "patch), Delete (api_version, kind, name) and Pass (seconds), each with its type"
        ) from error


def checked_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Steps that can be taken; ValueError says which cannot."""
    if not steps:
        raise ValueError("there are no steps")
    for number, step in enumerate(steps, 1):
        if isinstance(step, Create) and not _is_named(step.object):
            raise ValueError(
                f'step {number}: an object needs "apiVersion", "kind" and "metadata" with a "name"'
            )
    return steps


def _is_named(obj: dict[str, Any]) -> bool:
    metadata = obj.get("metadata")
    return bool(
        obj.get("apiVersion") and obj.get("kind") and isinstance(metadata, dict) and metadata.get("name")
    )


def as_call(kept: Kept, clouds: Iterable[str] = (), *, is_warning: bool = False) -> list[str]:
    """Lines of Python that run it again, where ``make`` is what the proof was given; they can be pasted.

    ``clouds`` are the names of those that it uses; they and rules are in no plan.  A warning fails no test.
    """
    name, given = "replay", "make"
    lines = ["from setpoint.testing import replay"]
    if kept.how.is_on_cluster:
        name, given = "replay_on_cluster", "make, Config.load()"
        lines = [
            "from setpoint.client.config import Config",
            "from setpoint.testing.proof.real_proof import replay_on_cluster",
        ]
    named = ", ".join("".join(each if each.isalnum() else "_" for each in cloud) for cloud in clouds)
    more = f", clouds=[{named}]" if named else ""
    called = f"report = {name}({given}, {msgspec.json.encode(kept).decode()!r}{more})"
    if kept.how.rules:
        lines.append(f"# and always=… and never=…, as they were: {'; '.join(kept.how.rules)}")
    return [*lines, called, "print(report)" if is_warning else "assert report.is_good, str(report)"]


def as_test(kept: Kept, title: str, operator: str) -> str:
    """A test file that shows the failure; ``operator`` is the way from there to the operator's file."""
    plan = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(kept, operator="")), indent=2)
    name = "".join(each if each.isalnum() else "_" for each in f"{title} {kept}").lower()
    while "__" in name:
        name = name.replace("__", "_")
    where, imported, given = "", "", ""
    if kept.how.is_on_cluster:
        where = " on the cluster of the current context, if that is on this machine"
        imported, given = "from setpoint.client.config import Config\n", ", Config.load()"
    return (
        f'"""What an operator did not survive{where}: {_plain(str(kept))}."""\n\n'
        "from pathlib import Path\n\n"
        f"from setpoint.cli.replay import replayed\n{imported}\n"
        f"OPERATOR = Path(__file__).parent / {operator!r}\n"
        f'PLAN = r"""\n{plan.decode()}\n"""\n\n\n'
        f"def test_{name[:90].strip('_')}() -> None:\n"
        f"    report = replayed(PLAN, OPERATOR{given})\n"
        "    assert report.is_good, str(report)\n"
    )


def _plain(text: str) -> str:
    """A text that can stand in a docstring."""
    return text.replace("\\", "").replace('"', "'")
