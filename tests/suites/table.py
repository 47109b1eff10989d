"""What the suites said, judged and written down: where two servers differ, and why; the tables of the page.

Pure: results and reasons come in, lines go out.  Fed by ``__main__.py``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tests.suites.controller_runtime import AGAIN, Outcomes

Way: TypeAlias = Literal["envtest", "existing", "python"]
Results: TypeAlias = dict[tuple[Way, str, str], Outcomes]  # by way, package and server

_BEGIN: Final = "<!-- from here on written by `make suites` -->"
_GO: Final[Mapping[Way, str]] = {
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
        used, ran = {reason for _, reason in explained}, {package for _, package, _ in results}
        idle = [one for one in reasons if one.package in ran and one not in used and not one.is_sometimes]
        wrong += [f"reasons.toml: nothing is so any more: {one}" for one in idle]
    return explained, wrong


def page(text: str, sections: Mapping[str, Sequence[str]]) -> str:
    """The page, with these sections of its last part written anew, or added."""
    kept, _, last = text.partition(_BEGIN)
    written = dict(_sections(last)) | {title: "\n".join(lines).strip() for title, lines in sections.items()}
    return "\n\n".join([kept + _BEGIN, *(f"### {title}\n\n{body}" for title, body in written.items())]) + "\n"


def _sections(text: str) -> Iterator[tuple[str, str]]:
    for each in f"\n{text}".split("\n### ")[1:]:
        title, _, body = each.partition("\n")
        yield title, body.strip()


def controller_runtime(
    results: Results, explained: Sequence[tuple[Odd, Reason]], versions: Mapping[str, str]
) -> Iterator[str]:
    yield from (_with(versions), "")
    for way, title in _GO.items():
        yield from (f"{title}:", "", *_table(results, way), "")
    yield from (_tried_again(results, _GO), "", "What does not pass, or not on both:", "")
    yield from _reasons([each for each in explained if each[0].way in _GO])


def helm(compared: Sequence[Compared], versions: Mapping[str, str]) -> Iterator[str]:
    yield from (_with(versions), "", "| command | said and left |", "| --- | --- |")
    for one in compared:
        yield f"| {_told(one)} | {'the same' if one.is_same else 'something else'} |"


def clients(
    results: Results,
    explained: Sequence[tuple[Odd, Reason]],
    versions: Mapping[str, str],
    *,
    unreachable: Sequence[str] = (),
) -> Iterator[str]:
    """``unreachable`` are suites that could not be fetched."""
    yield from (_with(versions), "", *_table(results, "python"), "")
    for each in unreachable:
        yield from (f"{each} was not run: its suite cannot be fetched.", "")
    yield from (_tried_again(results, ["python"]), "", "What does not pass, or not on both:", "")
    yield from _reasons([each for each in explained if each[0].way == "python"])


def _with(versions: Mapping[str, str]) -> str:
    return f"With {', '.join(f'{name} {version}' for name, version in versions.items())}."


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


def _tried_again(results: Results, ways: Collection[Way]) -> str:
    counts = dict.fromkeys(("kube", "setpoint"), 0)
    for (way, _, server), outcomes in results.items():
        if way not in ways:
            continue
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
