"""What the suites said, judged and written down: where two servers differ, and why; the tables of the page.

Pure: results and reasons come in, lines go out.  Fed by ``__main__.py``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tests.suites.controller_runtime import AGAIN, Outcomes

Way: TypeAlias = Literal["envtest", "existing"]
Results: TypeAlias = dict[tuple[Way, str, str], Outcomes]  # by way, package and server

_BEGIN: Final = "<!-- from here on written by `make suites` -->"
_WAYS: Final[Mapping[Way, str]] = {
    "envtest": "The suites start servers themselves, from `KUBEBUILDER_ASSETS`",
    "existing": "The suites find one that runs, by `USE_EXISTING_CLUSTER=true` and `KUBECONFIG`",
}
_REASONS: Final = Path(__file__).with_name("reasons.toml")


@dataclass(frozen=True)
class Reason:
    """Why a test does not pass, or not on both servers.  ``*`` stands for anything."""

    way: str
    package: str
    test: str
    why: str
    is_sometimes: bool = False  # so on some machines only

    def covers(self, odd: Odd) -> bool:
        return (
            fnmatchcase(odd.way, self.way)
            and odd.package == self.package
            and fnmatchcase(odd.test.replace("[", "("), self.test.replace("[", "("))
        )


@dataclass(frozen=True)
class Odd:
    """A test that ends otherwise on our server, or fails on both."""

    way: Way
    package: str
    test: str
    kube: str
    ours: str
    said: str

    def __str__(self) -> str:
        ends = f"{self.kube} on kube-apiserver, {self.ours} on setpoint"
        return f"{self.way} {self.package}: {self.test}: {ends}: {self.said[:1_500]}"


@dataclass(frozen=True)
class Compared:
    """A command that was run on both servers."""

    command: str
    is_same: bool
    difference: str = ""


def read_reasons() -> list[Reason]:
    rows = tomllib.loads(_REASONS.read_text()).get("reason", [])
    return [
        Reason(row.get("way", "*"), row["package"], row["test"], row["why"], row.get("sometimes", False))
        for row in rows
    ]


def odd(results: Results) -> Iterator[Odd]:
    for (way, package, server), theirs in results.items():
        if server != "kube":
            continue
        ours = results[way, package, "setpoint"]
        for test in dict.fromkeys((*theirs, *ours)):
            (their_end, their_words), (our_end, our_words) = (
                one.get(test, ("not run", "")) for one in (theirs, ours)
            )
            if their_end != our_end or our_end == "failed":
                yield Odd(way, package, test, their_end, our_end, our_words or their_words)


def judged(
    results: Results, reasons: Sequence[Reason], *, is_whole: bool
) -> tuple[list[tuple[Odd, Reason]], list[str]]:
    """What is odd, with its reason; and what is wrong: odd without one, or a reason for nothing."""
    explained: list[tuple[Odd, Reason]] = []
    wrong: list[str] = []
    for each in odd(results):
        found = next((reason for reason in reasons if reason.covers(each)), None)
        if found is None:
            wrong.append(str(each))
        else:
            explained.append((each, found))
    if is_whole:
        used = {reason for _, reason in explained}
        idle = [one for one in reasons if one not in used and not one.is_sometimes]
        wrong += [f"reasons.toml: nothing is so any more: {one}" for one in idle]
    return explained, wrong


def page(
    text: str,
    results: Results,
    explained: Sequence[tuple[Odd, Reason]],
    compared: Sequence[Compared],
    *,
    versions: Mapping[str, str],
    minutes: int,
) -> str:
    """The page, with its last part written anew."""
    kept = text.partition(_BEGIN)[0]
    those = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [
        _BEGIN,
        "",
        f"With {those}, in {minutes} minutes on two cores.",
        "",
        "### controller-runtime",
        "",
    ]
    for way, title in _WAYS.items():
        lines += [f"{title}:", "", *_table(results, way), ""]
    lines += [_tried_again(results), "", "What does not pass, or not on both:", "", *_reasons(explained), ""]
    lines += ["### Helm", "", "| command | said and left |", "| --- | --- |"]
    lines += [f"| {_told(one)} | {'the same' if one.is_same else 'something else'} |" for one in compared]
    return kept + "\n".join([*lines, ""])


def _told(one: Compared) -> str:
    command = one.command.removeprefix("! ")
    return f"`{command}`{', which is refused' if command != one.command else ''}"


def _table(results: Results, way: Way) -> Iterator[str]:
    yield "| package | tests | kube-apiserver: pass | fail | skip | setpoint: pass | fail | skip |"
    yield "| --- | --: | --: | --: | --: | --: | --: | --: |"
    sums = [0] * 7
    for each_way, package, server in results:
        if each_way != way or server != "kube":
            continue
        theirs, ours = _counts(results[way, package, "kube"]), _counts(results[way, package, "setpoint"])
        row = [sum(theirs), *theirs, *ours]
        sums = [one + another for one, another in zip(sums, row, strict=True)]
        yield f"| {package} | {' | '.join(map(str, row))} |"
    yield f"| all | {' | '.join(map(str, sums))} |"


def _counts(outcomes: Outcomes) -> list[int]:
    ends = [end for end, _ in outcomes.values()]
    return [ends.count(each) for each in ("passed", "failed", "skipped")]


def _tried_again(results: Results) -> str:
    counts = dict.fromkeys(("kube", "setpoint"), 0)
    for (_, _, server), outcomes in results.items():
        counts[server] += sum(said == AGAIN for end, said in outcomes.values() if end == "passed")
    return (
        f"Passed at the second or third try, of all these: {counts['kube']} on kube-apiserver, "
        f"{counts['setpoint']} on setpoint."
    )


def _reasons(explained: Sequence[tuple[Odd, Reason]]) -> Iterator[str]:
    """Those of one reason together."""
    together: dict[Reason, list[Odd]] = {}
    for each, reason in explained:
        together.setdefault(reason, []).append(each)
    if not together:
        yield "Nothing."
    for reason, those in together.items():
        ends = sorted({f"{one.kube} on kube-apiserver, {one.ours} on setpoint" for one in those})
        tests = "1 test" if len(those) == 1 else f"{len(those)} tests"
        yield f"- {reason.package}, {tests} ({'; '.join(ends)}): {reason.why}"
