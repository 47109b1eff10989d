"""How a scene looks, on terminals of several sizes."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from setpoint.api.names import Key
from setpoint.cli.shown import Notice, Queue, Scene, tree
from setpoint.cli.view import render, share
from setpoint.controller.mapping import Reason
from tests.cli.scenes import SHOP, WEBAPP, WROTE, ended, scene, webapp


def drawn(shown: Scene, width: int = 100, height: int = 30) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, height=height, color_system=None).print(render(shown, width, height))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def part(lines: list[str], title: str) -> list[str]:
    """The lines below a title."""
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{title} ─"))
    rest = lines[start + 1 :]
    return rest[: next((number for number, line in enumerate(rest) if line.endswith("──")), len(rest))]


def test_objects_are_a_tree_with_their_readiness() -> None:
    assert part(drawn(scene()), "objects") == [
        "● WebApp default/shop  ready",
        "└─ ● Deployment shop-deployment  ready",
        "   ├─ ◐ Pod pod-0  in progress",
        "   └─ ● Pod pod-1  ready",
    ]


def test_where_there_is_no_object_it_says_how_to_get_one() -> None:
    (line,) = part(drawn(scene(trees=())), "objects")
    assert "kubectl" in line


def test_children_of_one_kind_become_one_line_where_there_is_no_room() -> None:
    shown = scene(trees=tree(webapp(50), [WEBAPP]))
    assert part(drawn(shown), "objects")[2] == "   └─ ◐ 50 x Pod  1 in progress, 49 ready"


def test_what_does_not_fit_at_all_is_counted() -> None:
    apps = [node for n in range(40) for node in tree(webapp(0), [WEBAPP])]
    lines = part(drawn(scene(trees=tuple(apps)), height=20), "objects")
    assert lines[-1] == f"… and {80 - len(lines) + 1} more"


def test_a_queue_says_what_runs_and_what_waits_until_when() -> None:
    busy = Queue("webapp", True, (), 1, 2, ((SHOP, 0.3),), ((Key("default", "b"), 4.2, 3), (SHOP, -1, 0)))
    assert part(drawn(scene(queues=(busy,))), "queue") == [
        "webapp  1 due, 2 delayed  ▸ default/shop for 300 ms  default/b in 4.2 s, 3 failed  default/shop now"
    ]


def test_a_controller_that_does_not_work_says_why() -> None:
    idle = Queue("webapp", False, ("watch WebApp: forbidden",), 0, 0, (), ())
    assert part(drawn(scene(queues=(idle,))), "queue") == [
        "webapp  does not work",
        "  watch WebApp: forbidden",
    ]


def test_a_reconcile_says_why_how_long_and_what_it_wrote() -> None:
    (line,) = part(drawn(scene(ended=(ended(wrote=WROTE),)), width=130), "last reconciles")
    assert line == (
        "12:00:01  webapp default/shop  success   12 ms  ← Deployment shop MODIFIED  "
        "→ apply Deployment shop, patch WebApp/status shop"
    )


def test_reconciles_that_raise_the_same_again_and_again_are_one() -> None:
    failed = [ended(came_to="error", error="ValueError: no", again_in=0.5, reasons=(Reason("retry"),))] * 3
    assert part(drawn(scene(ended=(*failed, ended()))), "last reconciles") == [
        "12:00:01  webapp default/shop  error     12 ms  ← retry  (3 times)",
        "          ValueError: no; again after 500 ms",
        "12:00:01  webapp default/shop  success   12 ms  ← Deployment shop MODIFIED",
    ]


def test_the_newest_error_is_told_at_length() -> None:
    failed = ended(came_to="error", error="ValueError: " + "long " * 40)
    assert len(part(drawn(scene(ended=(failed,))), "last reconciles")) == 4


def test_what_is_wrong_with_the_file_stands_above_everything() -> None:
    trace = 'File "webapp.py", line 3\n    def (\nSyntaxError: invalid syntax'
    lines = drawn(scene(notice=Notice("webapp.py cannot be loaded", is_bad=True, trace=trace)))
    assert lines[2:6] == ["webapp.py cannot be loaded", *trace.splitlines()]


@pytest.mark.parametrize(("width", "height"), [(200, 60), (80, 24), (40, 12), (20, 6), (10, 4)])
def test_it_never_is_taller_or_wider_than_the_terminal(width: int, height: int) -> None:
    queues = tuple(Queue(f"c{n}", True, (), 1, 2, ((SHOP, 0.3),), ()) for n in range(5))
    failed = ended(came_to="error", error="no " * 100)
    crowded = scene(
        trees=tree(webapp(100), [WEBAPP]),
        queues=queues,
        ended=(failed, ended(wrote=WROTE)) * 10,
        lines=("a very long line " * 20,) * 30,
        notice=Notice("bad", is_bad=True, trace="trace\n" * 50),
    )
    lines = drawn(crowded, width, height)
    assert len(lines) <= max(height, 8)
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("wanted", "room", "given"),
    [
        ([3, 2, 1], 10, [3, 2, 1]),
        ([30, 2, 1], 10, [7, 2, 1]),
        ([30, 30, 30], 9, [3, 3, 3]),
        ([30, 0, 30], 9, [5, 0, 4]),
        ([5, 5], 0, [0, 0]),
    ],
)
def test_the_height_is_shared(wanted: list[int], room: int, given: list[int]) -> None:
    assert share(wanted, room) == given
