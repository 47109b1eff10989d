"""``setpoint why KIND NS/NAME``: asks a running operator about an object, and words the answer.

What is known, and how it is asked for, is in ``manager/why.py``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from setpoint.api.names import Key

_HELP = """Ask a running operator about an object: what it last saw, did, and waits for.

\b
    setpoint why webapp shop/web
    kubectl exec deploy/webapp-operator -- setpoint why webapp shop/web

It asks the operators that run on this machine as this user.
"""


@click.command(help=_HELP)
@click.argument("kind")
@click.argument("key", metavar="[NAMESPACE/]NAME")
@click.option("--operator", default="", help="Ask only the operator of this name.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or for programs.",
)
def why(kind: str, key: str, operator: str, output: str) -> None:
    from setpoint.api.names import Key  # noqa: PLC0415 - --help and completion need none of this
    from setpoint.manager.why import folder, sockets  # noqa: PLC0415

    namespace, slash, name = key.rpartition("/")
    if not name or (slash and not namespace) or "/" in namespace:
        raise click.ClickException(f"{key!r}: write NAMESPACE/NAME, or NAME for what is in no namespace")
    found = sockets(operator)
    if not found:
        which = f"no operator {operator!r}" if operator else "no operator"
        raise click.ClickException(
            f"{which} of this user runs here (its socket would be in {folder()}); "
            "for one in a pod: kubectl exec POD -- setpoint why …"
        )
    answers = asyncio.run(_ask_all(found, kind, Key(namespace, name)))
    if output == "json":
        click.echo(json.dumps(answers, indent=2))
        return
    for line in worded(kind, Key(namespace, name), answers):
        click.echo(line)


async def _ask_all(paths: list[Path], kind: str, key: Key) -> list[dict[str, Any]]:
    from setpoint.manager.why import ask  # noqa: PLC0415

    answers = await asyncio.gather(*(ask(path, kind, key) for path in paths))
    return [answer for answer in answers if answer]


def worded(kind: str, key: Key, answers: list[dict[str, Any]]) -> Iterator[str]:
    """The answers, line by line."""
    if not any(answer.get("controllers") for answer in answers):
        yield from _unknown(kind, answers)
    for answer in answers:
        for controller in answer.get("controllers", ()):
            yield f"{controller['name']} {key}, by {_who(answer)}"
            yield from (f"  {line}" for line in _about(controller, answer.get("watches", ())))


def _unknown(kind: str, answers: list[dict[str, Any]]) -> Iterator[str]:
    known = sorted({name for answer in answers for name in answer.get("known", ())})
    watching = sorted({name for answer in answers for name in answer.get("watched_by", ())})
    if watching:
        yield f"{kind} is only watched, by: {', '.join(watching)}; ask about the object it belongs to"
    else:
        yield f"no controller is for {kind}; there are: {', '.join(known) or 'none'}"


def _who(answer: dict[str, Any]) -> str:
    who = f"{answer['operator']} (process {answer['pid']})"
    if "is_leading" not in answer:
        return who
    if answer["is_leading"]:
        return f"{who}, which leads"
    return f"{who}, which stands by for {answer['leader'] or 'nobody yet'}"


def _about(controller: dict[str, Any], watches: list[dict[str, Any]]) -> Iterator[str]:
    yield f"seen:   {_seen(controller['object'])}"
    yield f"now:    {_now(controller)}"
    for problem in controller["problems"]:
        yield f"stands: {problem}"
    for watch in watches:
        if watch["problem"] and watch["problem"] not in controller["problems"]:
            yield f"watch:  {watch['scope']}: {watch['problem']}"
    for look in reversed(controller["looks"]):
        because = "; ".join(look["reasons"]) or "no known reason"
        yield f"{_ago(look['ago'])}: {look['result']} in {look['seconds']:.3f} s, for {because}"
        if look["error"]:
            again = f" ({look['failures']} in a row)" if look["failures"] > 1 else ""
            yield f"    {look['error']}{again}"
        yield from (f"    wrote: {written}" for written in look.get("wrote", ()))


def _seen(seen: dict[str, Any] | None) -> str:
    if seen is None:
        return "no such object"
    told = f"resourceVersion {seen['resourceVersion']}, generation {seen['generation']}"
    if seen["deletionTimestamp"]:
        held = ", held by " + ", ".join(seen["finalizers"]) if seen["finalizers"] else ""
        told += f", deleted {seen['deletionTimestamp']}{held}"
    return told


def _now(controller: dict[str, Any]) -> str:
    if controller["running_for"] is not None:
        return f"being reconciled for {controller['running_for']:.1f} s"
    if not controller["is_working"]:
        return "the controller does not work"
    if controller["next_in"] is not None and controller["failures"]:
        return (
            f"backs off after {controller['failures']} failures; next look in {controller['next_in']:.1f} s"
        )
    if controller["next_in"] is not None:
        return f"next look in {controller['next_in']:.1f} s"
    return "waits for a change" if controller["looks"] else "not looked at yet"


def _ago(seconds: float) -> str:
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.1f} s ago"
