"""The report says what was measured, what was not and why, and nothing more; all on made-up results."""

from __future__ import annotations

import json
import platform
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as runner
from bench import server
from bench.peers import bars, contestants, growth, machine, report, results, short
from bench.peers.chart import chart

GO = "controller-runtime, typed"


def result(contestant: str, **figures: Any) -> dict[str, Any]:
    return {"work": "sync", "case": "20,000 Workloads", "contestant": contestant, **figures}


def lines_of(found: list[dict[str, Any]]) -> str:
    return "\n".join(report.page(found))


def losses(found: list[dict[str, Any]]) -> list[str]:
    return [line for _, line in report.losses(found)]


# ---- what is compared ------------------------------------------------------------------------------


def test_the_report_has_the_ratio_of_ours_to_theirs_and_says_where_we_lose() -> None:
    found = [
        result("setpoint", cpu=2.0, wall=3.0),
        result(GO, cpu=4.0, wall=3.0),
        result("controller-runtime, unstructured", cpu=10.0, wall=3.0),
    ]
    assert results.ratio_of(found, "sync", "Workloads", "cpu", GO) == 0.5
    assert results.ratio_of(found, "sync", "Workloads", "cpu", "nobody") is None
    rows = [line for line in bars.bars(found) if "Workloads | CPU |" in line]
    assert "| 0.50 | **missed** |" in rows[0]
    assert "| 0.20 | met |" in rows[1]
    assert "Nowhere, this time." in lines_of(found)
    assert "CPU to fill a cache of custom resources | 0.50 | not measured |" in "\n".join(
        report.headlines(found)
    )
    assert GO in chart(found)


def test_no_other_case_stands_in_for_the_one_that_was_promised() -> None:
    recorded = [
        {**result(who, cpu=cpu), "case": "100,000 Workloads, recorded"}
        for who, cpu in (("setpoint", 1.0), (GO, 9.0))
    ]
    failed = [result("setpoint", cpu=1.0), result(GO, failed="it ended with 1")]
    for found in (recorded, failed + recorded):
        assert results.ratio_of(found, "sync", "Workloads", "cpu", GO) is None
    assert results.ratio_of(recorded, "sync", "Workloads, recorded", "cpu", GO) == pytest.approx(1 / 9)


def test_a_promise_that_was_not_measured_is_said_to_be_so() -> None:
    rows = list(bars.bars([]))
    promised = len(bars.BARS) + len(bars.ABSOLUTE) + sum(map(len, growth.JUDGED.values()))
    assert len(rows) == promised + len(server.BARS)
    assert all("| not measured | |" in row for row in rows)
    failed = [result("setpoint", cpu=1.0), result("kopf", failed="it ended with 1")]
    assert "| not measured: it failed | |" in next(
        row for row in bars.bars(failed) if "Workloads | CPU | kopf" in row
    )
    assert chart([]).count("not measured") == 4


def test_where_a_peer_is_better_is_said_of_each_figure() -> None:
    found = [
        result("limit: curl", cpu=0.1, wall=0.1),
        result("setpoint", cpu=2.0, wall=3.0, bytes_per_object=100),
        result("setpoint, metadata", cpu=1.0, wall=1.0),
        result("someone", cpu=1.0, wall=2.9, bytes_per_object=120),
        result("someone, metadata", cpu=1.2, wall=0.5),
    ]
    assert losses(found) == [
        "- Filling a cache, 20,000 Workloads: **wall s**: someone, metadata 0.50",
        "- Filling a cache, 20,000 Workloads: **CPU s**: someone 0.50",
    ]
    rates = [{**each, "work": "watch", "events_per_second": each.get("cpu", 0)} for each in found]
    assert any("events/s" in line for line in losses(rates))
    assert "Figures in which a peer is ahead: 2" in "\n".join(report.headlines(found))


def test_what_it_costs_to_read_everything_once_has_a_column_where_it_was_measured() -> None:
    assert "keeps the bytes" in lines_of([])
    without = [result("setpoint", cpu=1.0), result(GO, cpu=2.0)]
    assert "to read all" not in "\n".join(report.tables(without, "sync", report.WORKS["sync"][1]))
    found = [result("setpoint", cpu=1.0, checked_cpu=3.0), result(GO, cpu=2.0, checked_cpu=0.3)]
    page = lines_of(found)
    assert "| CPU s to read all, typed | to ours |" in page
    assert "**CPU s to read all, typed**: controller-runtime, typed 0.10" in page


# ---- who was given a part, and who is missing -------------------------------------------------------


def test_who_was_given_a_part_is_marked_as_extrapolated_in_the_table_the_chart_and_the_readme() -> None:
    found = [
        result("setpoint", cpu=2.0, objects=8, settled_megabytes=80.0),
        result("kopf", cpu=9.0, objects=2, settled_megabytes=20.0),
    ]
    page = lines_of(found)
    assert "| kopf \\* (2 objects) | 9.00 | 4.50 | 20 |  |" in page, "its memory is of the part: no ratio"
    assert "extrapolated" in page
    assert "settled MB" not in "\n".join(losses(found))
    assert ">kopf *<" in chart(found)
    assert "| 0.22 \\* |" in "\n".join(report.headlines(found))
    rate = [{"work": "watch", "events": 40, "contestant": "setpoint"}, {"events": 5, "contestant": "kopf"}]
    assert results.is_part(rate[1], rate[0])


def test_a_contestant_that_did_not_run_is_named_with_the_reason() -> None:
    found = [result("setpoint", cpu=1.0), {"work": "sync", "contestant": GO, "not_run": "there is no go"}]
    assert f"- sync: {GO}: there is no go" in lines_of(found)
    assert "cloudcoil: 0.8, the current one, needs Python 3.14" in lines_of([])


def test_those_who_cannot_be_built_are_found_and_no_path_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_go() -> list[str]:
        raise contestants.Missing("there is no go on PATH")

    def broken() -> list[str]:
        raise contestants.Missing("/somewhere/bin/cargo build: error")

    monkeypatch.setitem(contestants._BUILT, "controller_runtime", no_go)
    monkeypatch.setitem(contestants._BUILT, "kube_rs", broken)
    monkeypatch.setitem(contestants._BUILT, "kopf", lambda: ["kopf"])
    monkeypatch.setitem(contestants._BUILT, "kubernetes", lambda: ["kubernetes"])
    from bench.peers import watch

    found = {each["contestant"]: each["not_run"] for each in runner.absent("watch", watch)}
    assert found["controller-runtime, typed, JSON"] == "there is no go on PATH"
    assert found["kube-rs, typed"].startswith("it could not be built")
    assert not {"setpoint", "kopf"} & found.keys()


# ---- runs ------------------------------------------------------------------------------------------


def test_every_line_says_of_which_run_it_is_and_a_work_is_always_of_one(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    results.keep("sync", [result("setpoint"), result(GO)], run="first", is_whole=False, file=file)
    results.keep("queue", [{"work": "queue"}], run="first", is_whole=False, file=file)
    results.keep("sync", [result("setpoint")], run="second", is_whole=False, file=file)
    found = results.load(file)
    assert results.runs(found) == {"first": ["queue"], "second": ["sync"]}
    assert len([each for each in found if each["work"] == "sync"]) == 2, "the machine, and one result"
    assert "Not everything is of one run" in lines_of(found)


def test_a_whole_run_leaves_nothing_of_others_once_its_first_result_is_there(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    for work in ("sync", "queue"):
        results.keep(work, [{"work": work}], run="first", is_whole=False, file=file)
    results.keep("sync", [{"work": "sync"}], run="second", is_whole=True, file=file)
    results.keep("watch", [{"work": "watch"}], run="second", is_whole=True, file=file)
    assert results.runs(results.load(file)) == {"second": ["sync", "watch"]}


def test_a_run_is_known_by_its_commit_and_time_and_a_machine_by_no_name() -> None:
    assert re.fullmatch(r".+, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", machine.run_id())
    said = json.dumps(machine.machine())
    assert not [path for path in (str(Path.home()), tempfile.gettempdir(), str(machine.ROOT)) if path in said]
    assert machine.machine()["pythons"][0][0] == platform.python_version()


def test_files_in_memory_are_known_and_said_loudly() -> None:
    mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /fast tmpfs rw 0 0\n"
    assert machine.filesystem(Path("/fast/here"), mounts) == "tmpfs"
    assert machine.filesystem(Path("/slow"), mounts) == "ext4"
    assert "fsync does nothing" in machine.described({**machine.machine(), "filesystem": "tmpfs"})


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the report goes, instead of into the work tree."""
    (tmp_path / "README.md").write_text(f"{report.BEGIN}\n{report.END}\n")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "benchmarks.jsonl")
    for name, file in {"PAGE": "page.md", "CHART": "chart.svg", "README": "README.md"}.items():
        monkeypatch.setattr(report, name, tmp_path / file)
    return tmp_path


@pytest.mark.parametrize("is_empty", [True, False], ids=["an empty file", "no file"])
def test_where_nothing_was_measured_nothing_is_written_and_one_is_told_what_to_run(
    written: Path, *, is_empty: bool
) -> None:
    if is_empty:
        results.RESULTS.write_text("")
    before = {each: each.read_text() for each in written.iterdir()}
    with pytest.raises(SystemExit, match=r"nothing was measured.*make bench") as ended:
        report.main()
    assert isinstance(ended.value.code, str), "which is told, and ends with 1"
    assert {each: each.read_text() for each in written.iterdir()} == before


def test_whatever_goes_wrong_in_one_work_the_others_go_on_and_it_is_named(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beside(name: str) -> list[dict[str, Any]]:
        if name == "sync":
            raise ZeroDivisionError(f"in {tempfile.gettempdir()}/a-file")
        return [{"work": name, "case": "keys", "contestant": "setpoint", "cpu": 1.0}]

    monkeypatch.setattr(runner, "beside", beside)
    assert runner.run(["sync", "queue"], is_whole=True) == {"sync": "ZeroDivisionError"}
    assert "**It failed:** ZeroDivisionError" in (written / "page.md").read_text()
    assert [each["work"] for each in results.load() if "cpu" in each] == ["queue"]


def test_a_part_that_could_not_be_measured_leaves_what_was_known_of_it(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.keep("sync", [result("setpoint", cpu=1.0)], run="first", is_whole=False)
    before = results.RESULTS.read_text()
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(runner, "binaries", lambda: None)
    assert "no curl on PATH" in runner.run(["sync"], is_whole=False)["sync"]
    assert results.RESULTS.read_text() == before


# ---- growth ----------------------------------------------------------------------------------------

SIZES = (10, 40, 160)


def grown(cost: Any) -> list[dict[str, Any]]:
    sizes = [
        {
            "work": "growth",
            "case": f"sync, {size} objects",
            "contestant": "setpoint",
            "cpu": cost(size),
            "wall": 3.0 + size,
            "peak_megabytes": 50.0,
        }
        for size in SIZES
    ]
    return growth.with_exponents("sync", SIZES, sizes)


@pytest.mark.parametrize(
    ("cost", "exponent"),
    [(lambda n: n / 10, 1), (lambda n: 100 + n / 10, 1), (lambda n: n * n, 2), (lambda _: 7, 0)],
)
def test_the_exponent_of_a_line_is_one_whatever_its_base_and_of_a_square_two(
    cost: Any, exponent: int
) -> None:
    found = next(each for each in grown(cost) if each.get("figure") == "cpu")
    assert found["exponent"] == pytest.approx(exponent, abs=0.01)


def test_a_base_does_not_hide_what_grows_too_fast() -> None:
    found = next(each for each in grown(lambda n: 1000 + n**1.5) if each.get("figure") == "cpu")
    assert found["exponent"] > growth.LINEAR


def test_what_grows_has_its_base_and_exponent_in_the_table_and_among_the_promises() -> None:
    found = grown(lambda n: n / 10)
    page = list(report.growth(found))
    assert "| **base** | 3.00 | 0.00 | 0.00 |" in page
    assert "| **exponent** | 1.00 | 1.00 | 0.00 |" in page
    assert "| growth, sync | exponent of CPU |  | at most 1.05 | 1.00 | met |" in list(bars.bars(found))


def test_what_should_not_grow_at_all_is_judged_as_a_whole() -> None:
    sizes = [{"work": "growth", "get_microseconds": cost} for cost in (100.0, 130.0, 210.0)]
    found = growth.with_exponents("server", SIZES, sizes)[-1]
    assert found["exponent"] > growth.FLAT, "more than twice, at 16 times the objects"


# ---- what is committed -----------------------------------------------------------------------------


def test_what_is_committed_is_what_the_report_makes_of_what_was_measured() -> None:
    found = results.load()
    readme = report.README.read_text()
    assert report.BEGIN in readme
    assert report.with_headlines(readme, found) == readme, "python -m bench.peers.report writes it anew"
    if found:
        assert report.PAGE.read_text() == lines_of(found) + "\n"
        assert report.CHART.read_text() == chart(found)


def test_no_path_of_the_machine_is_in_what_is_committed() -> None:
    ours = [str(Path.home()), tempfile.gettempdir(), str(machine.ROOT)]
    assert not [line for line in map(json.dumps, results.load()) if any(path in line for path in ours)]


def test_no_measured_ratio_is_typed_in_the_readme() -> None:
    head, _, rest = report.README.read_text().partition(report.BEGIN)
    typed = head + rest.partition(report.END)[2]
    assert not re.findall(r"\d+\.\d+ times|\d+\.\d+ the (?:CPU|time|memory)", typed)


def test_the_makefile_builds_a_cluster_for_the_works_that_want_one_and_no_other() -> None:
    said = re.search(r"^WANT_KUBE := (.*)$", (machine.ROOT / "Makefile").read_text(), re.MULTILINE)
    assert said is not None
    assert set(said[1].split()) == runner.NEED_CLUSTER


# ---- the short form --------------------------------------------------------------------------------


@pytest.fixture
def baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "baselines.toml"
    file.write_text('["one"]\nqueue = 2.0\n["another"]\nqueue = 1.0\n')
    monkeypatch.setattr(short, "BASELINES", file)
    monkeypatch.setattr(short, "processor", lambda: "one")
    return file


@pytest.mark.parametrize(("now", "failures"), [(2.5, 0), (2.7, 1)])
def test_the_short_form_fails_where_cpu_is_thirty_percent_above_its_baseline(
    baselines: Path, monkeypatch: pytest.MonkeyPatch, now: float, failures: int
) -> None:
    noisy = [9.0, now, now, 0.1, now]  # one round in five is far off, either way
    monkeypatch.setattr(short, "CASES", {"queue": lambda: [*noisy]})
    assert short.main(write=False) == failures


@pytest.mark.parametrize(("processor", "failures"), [("one", 0), ("another", 1), ("unknown", 0)])
def test_a_processor_has_baselines_of_its_own_and_an_unknown_one_the_highest(
    baselines: Path, monkeypatch: pytest.MonkeyPatch, processor: str, failures: int
) -> None:
    monkeypatch.setattr(short, "processor", lambda: processor)
    monkeypatch.setattr(short, "CASES", {"queue": lambda: [2.0]})
    assert short.main(write=False) == failures
    short.main(write=True)
    assert short.main(write=False) == 0
    assert '["one"]\nqueue = 2.0\n' in baselines.read_text(), "of another processor they stay"


def test_without_a_baseline_the_short_form_fails_and_says_how_to_write_one(
    baselines: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(short, "CASES", {"queue": lambda: [2.0], "look": lambda: [1.0]})
    assert short.main(write=False) == 1
    assert "no baseline of look" in (said := capsys.readouterr().err)
    assert "python -m bench --short --write" in said
    assert short.main(write=True) == 0
    assert short.main(write=False) == 0
    assert "look = 1.0" in baselines.read_text()
