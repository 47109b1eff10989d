"""A plan that failed, as it is kept: in a file, for ``replay``, and as a test.

With the plan goes what its verdict depends on: which operator of which file, and what the proof was told, as
far as a file can hold it.  Rules are code: the file names them, and who replays must give them again.

Pure.  Written by ``cli/prove.py``; read by ``prove.py`` (``replay``).
"""

from __future__ import annotations

from typing import Any

import msgspec

from setpoint.testing.proof.plans import Plan, Step


class How(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a proof was told, as far as a file can hold it."""

    seed: int | None = None  # of the run without faults, against which others are judged; None: the plan's
    keeps: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    at_most: tuple[tuple[str, int], ...] = ()
    controllers: tuple[str, ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    rules: tuple[str, ...] = ()  # what the author's own say


class Kept(Plan, frozen=True, omit_defaults=True):
    """A plan, and all it takes to come to the same verdict again."""

    name: str = ""  # of the operator, where its file has several
    how: How = How()


def keep(plan: Plan, how: How, *, operator: str = "", name: str = "") -> Kept:
    """A plan of this proof; ``operator`` is the file that it is in."""
    fields = msgspec.structs.asdict(plan)
    return Kept(**{**fields, "operator": operator or plan.operator, "name": name, "how": how})


def read_kept(data: str | bytes) -> Kept:
    """A plan from JSON; ValueError says what is wrong with it."""
    try:
        return msgspec.json.decode(data, type=Kept)
    except msgspec.MsgspecError as error:
        raise ValueError(f"this is no plan: {error}") from error


def read_steps(value: Any) -> tuple[Step, ...]:
    """What a user does, from a list in wire form; ValueError says what is wrong with it."""
    try:
        return msgspec.convert(value, tuple[Step, ...])
    except msgspec.MsgspecError as error:
        raise ValueError(f"these are no steps: {error}") from error


def as_test(kept: Kept, title: str, operator: str) -> str:
    """A test file that shows the failure; ``operator`` is the way from there to the operator's file."""
    plan = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(kept, operator="")), indent=2)
    name = "".join(each if each.isalnum() else "_" for each in f"{title} {kept}").lower()
    while "__" in name:
        name = name.replace("__", "_")
    return (
        f'"""What an operator did not survive: {_plain(str(kept))}."""\n\n'
        "from pathlib import Path\n\n"
        "from setpoint.cli.replay import replayed\n\n"
        f"OPERATOR = Path(__file__).parent / {operator!r}\n"
        f'PLAN = r"""\n{plan.decode()}\n"""\n\n\n'
        f"def test_{name[:90].strip('_')}() -> None:\n"
        "    report = replayed(PLAN, OPERATOR)\n"
        "    assert report.is_good, str(report)\n"
    )


def _plain(text: str) -> str:
    """A text that can stand in a docstring."""
    return text.replace("\\", "").replace('"', "'")
