"""How a scene looks on a terminal.  A function of the scene and of the terminal's size, and of nothing else.

1. It never is taller or wider than the terminal: what does not fit is counted, not wrapped.
2. The height is shared: a part that needs less than its share leaves the rest to the others.
3. Where an object has more children than there is room for, those of one kind become one line.
4. An error in the operator's file stands above everything, as long as it lasts.

Fed by ``watching.py`` through ``dev.py``, which draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from setpoint.cli.shown import STATES, Ended, Item, Node, Queue, Scene, because, seconds, state, wrote
from setpoint.controller.readiness import State

_MARKS: dict[State, tuple[str, str]] = {
    "Current": ("●", "green"),
    "InProgress": ("◐", "yellow"),
    "Failed": ("✗", "red"),
    "Terminating": ("◌", "dim"),
}
_WORST_FIRST: tuple[State, ...] = ("Failed", "InProgress", "Terminating", "Current")
_RESULTS = {"success": "green", "error": "red", "requeue": "yellow", "requeue_after": "cyan"}
_MOST_ENDED = 20
_MOST_TOLD = 4  # lines of the newest error; of others, one
_FOLDED = 3  # children of one kind, from which on they may become one line
_LEAST = 4  # lines, below which a part is not worth its title


def render(scene: Scene, width: int, height: int) -> RenderableType:
    """The scene, in so many columns and lines."""
    head = [*_head(scene)]
    trace = [Text(line, "red") for line in scene.notice.trace.splitlines()] if scene.notice.is_bad else []
    trace = trace[-max(3, height // 3) :]
    room = max(1, height - len(head) - len(trace))
    ended = [*_ended(scene.ended, width)][: height // 3]
    queues = [line for queue in scene.queues for line in _queue(queue)]
    lines = [Text(line, "dim") for line in scene.lines[-max(1, height // 6) :]]
    wanted = [max(1, sum(map(len, scene.trees))), len(ended), len(queues), len(lines)]
    shown = min(sum(map(bool, wanted)), max(1, room // _LEAST))  # parts, the most important first
    while sum(map(bool, wanted)) > shown:
        wanted[max(index for index, want in enumerate(wanted) if want)] = 0
    for_trees, for_ended, for_queues, for_lines = share(wanted, room - shown)
    parts: list[RenderableType] = [*head, *trace, _rule("objects"), *objects(scene.trees, for_trees)]
    if for_queues:
        parts += [_rule("queue"), *cut(queues, for_queues)]
    if for_ended:
        parts += [_rule("last reconciles"), *ended[:for_ended]]
    if for_lines:
        parts += [_rule("log"), *lines[-for_lines:]]
    return Group(*(_one_line(part) for part in parts))


def share(wanted: Sequence[int], room: int) -> list[int]:
    """How many of ``room`` lines each gets: what it wants, or an even part of what the others leave."""
    given = [0] * len(wanted)
    hungry = [index for index, want in enumerate(wanted) if want]
    while hungry and room:
        part = max(1, room // len(hungry))
        for index in list(hungry):
            more = min(part, wanted[index] - given[index], room)
            given[index] += more
            room -= more
            if given[index] == wanted[index]:
                hungry.remove(index)
    return given


def cut(lines: Sequence[Text], room: int) -> list[Text]:
    """So many of the lines; the last says how many more there are."""
    if len(lines) <= room:
        return list(lines)
    return [*lines[: max(0, room - 1)], Text(f"… and {len(lines) - max(0, room - 1)} more", "dim")]


# The parts.


def objects(trees: Sequence[Node], room: int) -> list[Text]:
    """The objects as a tree; folded where it does not fit."""
    if not trees:
        return [Text("none yet: apply one with kubectl, or begin with --manifest", "dim")]
    is_folded = sum(map(len, trees)) > room
    return cut([line for node in trees for line in _branch(node, "", "", "", is_folded=is_folded)], room)


def _branch(node: Node, first: str, rest: str, namespace: str, *, is_folded: bool) -> Iterator[Text]:
    item = node.item
    yield _object(item, first, namespace)
    below: list[Node | Text] = []
    for kind, group in groupby(node.children, key=lambda child: child.item.kind.kind):
        children = list(group)
        below += [_folded(kind, children)] if is_folded and len(children) >= _FOLDED else children
    for number, child in enumerate(below, 1):
        branch, trunk = ("└─ ", "   ") if number == len(below) else ("├─ ", "│  ")
        if isinstance(child, Text):
            yield Text(rest + branch, "dim").append_text(child)
        else:
            yield from _branch(child, rest + branch, rest + trunk, item.key.namespace, is_folded=is_folded)


def _object(item: Item, guide: str, namespace: str) -> Text:
    mark, colour = _MARKS[item.readiness.state]
    name = item.key.name if item.key.namespace == namespace else str(item.key)
    line = Text(guide, "dim")
    line.append(f"{mark} ", colour).append(f"{item.kind.kind} ").append(name, "bold")
    return line.append(f"  {state(item.readiness)}", "dim" if item.readiness else colour)


def _folded(kind: str, nodes: Sequence[Node]) -> Text:
    counts = Counter(node.item.readiness.state for node in nodes)
    worst = next(each for each in _WORST_FIRST if counts[each])
    mark, colour = _MARKS[worst]
    said = ", ".join(f"{counts[each]} {STATES[each]}" for each in _WORST_FIRST if counts[each])
    return (
        Text("", "not dim").append(f"{mark} ", colour).append(f"{len(nodes)} x {kind}  ").append(said, "dim")
    )


def _queue(queue: Queue) -> Iterator[Text]:
    line = Text(f"{queue.controller}  ", "bold")
    if not queue.is_working:
        yield line.append("does not work", "red")
        yield from (Text(f"  {problem}", "red") for problem in queue.problems)
        return
    line.append(f"{queue.due} due, {queue.delayed} delayed", "default")
    for key, running in queue.running:
        line.append(f"  ▸ {key}", "cyan").append(f" for {seconds(running)}", "dim")
    for key, due_in, failures in queue.waiting:
        line.append(f"  {key} ", "yellow" if failures else "")
        line.append("now" if due_in <= 0 else f"in {seconds(due_in)}", "dim")
        if failures:
            line.append(f", {failures} failed", "red")
    yield line


def _ended(ended: Sequence[Ended], width: int) -> Iterator[Text]:
    """A line for each, and some for what it raised; those that raise the same again and again are one."""
    ended = ended[:_MOST_ENDED]
    who = max((len(_who(each)) for each in ended), default=0)
    result = max((len(each.looked.came_to) for each in ended), default=0)
    is_first_error = True
    for (_, error), group in groupby(ended, key=lambda each: (_who(each), each.looked.error or id(each))):
        each, *others = group
        looked, namespace = each.looked, each.key.namespace
        line = Text(f"{each.at}  ", "dim")
        line.append(_who(each).ljust(who + 2), "not dim bold")
        line.append(looked.came_to.ljust(result + 2), f"not dim {_RESULTS.get(looked.came_to, '')}")
        line.append(f"{seconds(looked.seconds):>6}  ← {because(looked, namespace)}  ")
        if looked.wrote:
            line.append(f"→ {', '.join(wrote(looked, namespace))}", "not dim")
        if others:
            line.append(f"({len(others) + 1} times)", "not dim red")
        yield line
        if looked.error:
            again = "" if looked.again_in is None else f"; again after {seconds(looked.again_in)}"
            told = wrap(f"{error}{again}", max(20, width - 10))
            most = _MOST_TOLD if is_first_error else 1
            yield from (Text(f"{'':>10}{part}", "red") for part in told[:most])
            is_first_error = False


def _who(ended: Ended) -> str:
    return f"{ended.controller} {ended.key}"


def _head(scene: Scene) -> Iterator[Text]:
    yield Text("setpoint dev ", "bold").append(scene.title, "bold cyan").append(f"  {scene.server}", "dim")
    yield Text(f"kubectl --kubeconfig {scene.kubeconfig} get all -A    (Ctrl-C ends)", "dim")
    yield Text(scene.notice.text, "bold red" if scene.notice.is_bad else "green")


def _rule(title: str) -> Rule:
    return Rule(Text(title, "bold"), align="left", style="dim")


def _one_line(part: RenderableType) -> RenderableType:
    if isinstance(part, Text):
        part.no_wrap, part.overflow = True, "ellipsis"
    return part
