"""The house has the shape that DESIGN.md draws: who imports whom, what each file says, what doors show.

Imports are read from the source, those inside functions and under TYPE_CHECKING too.  A row that is in
the way is changed here and in DESIGN.md together, with the reason.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from setpoint.errors import SetpointError

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "setpoint"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

BASE = {"errors", "clock", "metrics"}
MAY_IMPORT = {
    "errors": set[str](),
    "clock": set[str](),
    "metrics": set[str](),
    "version": set[str](),
    "api": BASE,
    "net": BASE,
    "queue": BASE,
    "kube": {"api"},
    "client": BASE | {"api", "net", "version"},
    "cache": BASE | {"api", "client"},
    "controller": BASE | {"api", "client", "cache", "queue"},
    "webhook": BASE | {"api", "net"},
    "manager": BASE | {"api", "kube", "net", "client", "cache", "controller", "webhook"},
    "server": BASE | {"api", "net"},  # never client: they meet only as bytes
    "builtin": BASE | {"api", "kube", "client", "cache", "controller"},
}
MAY_IMPORT["operator"] = {*MAY_IMPORT["manager"], "manager"}
MAY_IMPORT["cluster"] = {*MAY_IMPORT["manager"], "manager", "server", "builtin"}
MAY_IMPORT["testing"] = set(MAY_IMPORT)
MAY_IMPORT["cli"] = {*MAY_IMPORT, "testing"}

# Third-party code, and the one place of ours it stands behind (DESIGN.md says why each is here).
HOMES = {
    "aiohttp": ("net/messages.py", "net/upgraded.py", "net/upgrading.py"),
    "cel_expr_python": ("server/registry/crd/engine.py",),
    "click": ("cli/",),
    "cryptography": ("net/tls.py",),
    "httptools": ("net/answering.py", "net/arriving.py"),
    "msgspec": (
        "api/",
        "kube/",
        "client/",
        "server/",
        "cache/paths.py",
        "cache/sharing.py",
        "cache/watch_state.py",
        "queue/schedule.py",
        "testing/proof/",
        "cli/params.py",
    ),
    "opentelemetry": ("manager/tracing.py",),
    "prometheus_client": ("metrics.py",),
    "hypothesis": ("testing/proof/drawn.py", "testing/proof/trial.py"),
    "pytest": ("testing/plugin.py",),
    "rich": ("cli/",),
    "re2": ("server/registry/crd/patterns.py",),
    "yaml": ("api/yaml.py",),
}
# Where the name to install is not the name to import.
DISTRIBUTIONS = {
    "cel_expr_python": "cel-expr-python",
    "opentelemetry": "opentelemetry-api",
    "prometheus_client": "prometheus-client",
    "re2": "google-re2",
    "yaml": "pyyaml",
}

# Files that decide and never do: what they need to know about time and the world comes in as arguments.
PURE = (
    "api/",
    "builtin/cronjobs_schedule.py",
    "builtin/daemonsets_nodes.py",
    "builtin/endpoints_pods.py",
    "builtin/endpoints_slices.py",
    "builtin/garbage_graph.py",
    "builtin/jobs_steps.py",
    "builtin/node_pods.py",
    "builtin/node_status.py",
    "builtin/quota_usage.py",
    "builtin/rollout.py",
    "builtin/selecting.py",
    "builtin/statefulsets_steps.py",
    "builtin/volumes_match.py",
    "cache/index.py",
    "cache/paths.py",
    "cache/scope.py",
    "cache/sharing.py",
    "cache/store.py",
    "cache/versions.py",
    "cache/watch_state.py",
    "cache/writes.py",
    "cli/shown.py",
    "cli/view.py",
    "client/addresses.py",
    "client/channels.py",
    "client/exec_credential.py",
    "client/impersonation.py",
    "client/kubeconfig.py",
    "client/proxy.py",
    "client/retry.py",
    "client/subresources.py",
    "controller/apply.py",
    "controller/event_series.py",
    "controller/hot_loop.py",
    "controller/mapping.py",
    "controller/owners.py",
    "controller/permissions.py",
    "controller/predicates.py",
    "controller/readiness.py",
    "controller/result.py",
    "controller/tracebacks.py",
    "errors.py",
    "kube/",
    "manager/blocked_loop.py",
    "manager/lease_state.py",
    "manager/lifecycle.py",
    "net/answering.py",
    "net/arriving.py",
    "net/headers.py",
    "net/unpacking.py",
    "queue/backoff.py",
    "queue/schedule.py",
    "server/authentication/impersonation.py",
    "server/authorization/attributes.py",
    "server/authorization/escalation.py",
    "server/authorization/rules.py",
    "server/http/request_info.py",
    "server/http/routing.py",
    "server/registry/api_services.py",
    "server/registry/beginnings.py",
    "server/registry/conform.py",
    "server/registry/conversion.py",
    "server/registry/deletion.py",
    "server/registry/emit.py",
    "server/registry/flow.py",
    "server/registry/pods.py",
    "server/registry/selectable.py",
    "server/registry/served.py",
    "server/registry/strategic.py",
    "server/registry/types.py",
    "server/registry/volumes.py",
    "testing/asked.py",
    "testing/proof/matching.py",
    "testing/proof/oracles.py",
    "testing/proof/plans.py",
    "testing/proof/redaction.py",
    "testing/proof/repeatability.py",
    "testing/proof/report.py",
    "testing/proof/states.py",
    "testing/proof/sweep.py",
    "testing/proof/trace.py",
    "testing/proof/workload.py",
)
IMPURE = {
    "aiohttp", "asyncio", "concurrent", "http", "multiprocessing", "os", "random", "secrets", "selectors",
    "signal", "socket", "ssl", "subprocess", "tempfile", "threading", "time", "urllib.request",
}  # fmt: skip
BUT = {"api/decoders.py": {"threading"}}  # a lock, without which threads crash the process

GENERATED = "kube"  # written by `setpoint models`; it has a header of its own
MARK = "Generated by `setpoint models`"


def files() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def name(file: Path) -> str:
    """``api/names.py``: how this test speaks of a file."""
    return file.relative_to(SRC).as_posix()


def module(file: Path) -> str:
    parts = ("setpoint", *file.relative_to(SRC).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part(file: Path) -> str:
    """The folder under ``setpoint`` that a file lives in, or the file itself: ``api``, ``errors``."""
    return file.relative_to(SRC).parts[0].removesuffix(".py")


def is_generated(file: Path) -> bool:
    return part(file) == GENERATED and file.parent != SRC / GENERATED


def is_in(file: Path, places: tuple[str, ...]) -> bool:
    """Is the file one of ``places``, of which those that end in a slash are folders?"""
    return any(
        name(file).startswith(place) if place.endswith("/") else name(file) == place for place in places
    )


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(), filename=str(file))


@cache
def modules() -> dict[str, Path]:
    return {module(file): file for file in files()}


@cache
def imports(file: Path) -> frozenset[str]:
    """Every module a file imports; ``from package import module`` counts as the module."""
    found = set[str]()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(file)}: imports are absolute"
            home = node.module or ""
            for alias in node.names:
                inner = f"{home}.{alias.name}"
                found.add(inner if inner in modules() else home)
    return frozenset(found)


def ours(file: Path) -> set[str]:
    return {each for each in imports(file) if each.split(".")[0] == "setpoint"}


def theirs(file: Path) -> set[str]:
    tops = {each.split(".")[0] for each in imports(file)}
    return tops - {"setpoint"} - sys.stdlib_module_names - {"annotationlib"}  # that one since Python 3.14


@cache
def doors() -> tuple[Path, ...]:
    """The ``__init__.py`` of each part, and the front door."""
    return tuple(file for file in files() if file.name == "__init__.py" and not is_generated(file))


# Who imports whom.


def test_every_part_has_its_row() -> None:
    parts = {part(file) for file in files()} - {"__init__"}
    assert parts <= set(MAY_IMPORT), "say in MAY_IMPORT and in DESIGN.md what the new part may import"


@pytest.mark.parametrize("row", sorted(MAY_IMPORT))
def test_every_import_points_down(row: str) -> None:
    for file in (file for file in files() if part(file) == row):
        reached = {each.split(".")[1] for each in ours(file) if "." in each}
        upward = reached - MAY_IMPORT[row] - {row}
        assert not upward, f"{name(file)} must not import {sorted(upward)}"


def test_no_import_goes_round_in_a_circle() -> None:
    graph = {module(file): ours(file) - {module(file)} for file in files()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("a circle of imports: " + " → ".join(error.args[1]))


def test_inside_the_house_names_come_from_where_they_live() -> None:
    """A door is for users: it imports all that is behind it, so coming in that way makes a circle."""
    for file in files():
        through = {each for each in ours(file) if modules()[each] in doors()} - {module(file)}
        assert not through, (
            f"{name(file)} imports from the door {sorted(through)}; import from the file itself"
        )


def test_pure_files_know_no_clock_no_loop_and_no_network() -> None:
    for file in (file for file in files() if is_in(file, PURE)):
        known = IMPURE - BUT.get(name(file), set())
        impure = {each for each in imports(file) if known & {each, each.split(".")[0]}}
        assert not impure, f"{name(file)} decides and does not do: it must not import {sorted(impure)}"


def test_every_place_named_here_exists() -> None:
    for place in [*PURE, *(place for places in HOMES.values() for place in places)]:
        assert (SRC / place).exists(), f"{place} is named in this test and is not there"


# What others wrote.


def test_third_party_code_stands_behind_its_own_module() -> None:
    for file in files():
        for package in theirs(file):
            assert package in HOMES, (
                f"{name(file)} imports {package}: say in HOMES which file it stands behind"
            )
            assert is_in(file, HOMES[package]), (
                f"{name(file)} imports {package}, whose place is {HOMES[package]}"
            )


def test_what_is_imported_is_what_is_required() -> None:
    optional = [line for lines in PYPROJECT["project"]["optional-dependencies"].values() for line in lines]
    lines = [*PYPROJECT["project"]["dependencies"], *optional]
    required = {re.split(r"[^\w-]", line)[0].lower() for line in lines}
    imported = {DISTRIBUTIONS.get(package, package) for file in files() for package in theirs(file)}
    assert imported - {"pytest"} == required, (
        "pytest is the user's own: only what is for who has it imports it"
    )


def test_every_dependency_carries_its_reason() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    requirement = re.compile(r'^ +"[A-Za-z][\w-]*(\[\w+\])?[<>=~!][^"]*"')
    bare = [line for line in lines if requirement.match(line) and "#" not in line]
    assert not bare, f"each dependency says why it is here: {bare}"


def test_the_lock_holds_every_dependency() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    locked = set(re.findall(r"^([\w-]+)==", lock, re.MULTILINE))
    wanted = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["dependency-groups"]["dev"]]
    missing = {re.split(r"[^\w-]", line)[0].lower() for line in wanted} - locked
    assert not missing, f"run `make lock`: {sorted(missing)} is not in requirements.lock"


def test_what_make_demo_installs_is_a_part_of_the_lock() -> None:
    pinned = re.compile(r"^\S+==\S+", re.MULTILINE)
    whole, part = (
        set(pinned.findall((ROOT / name).read_text()))
        for name in ("requirements.lock", "requirements-run.lock")
    )
    assert part, "run `make lock`"
    assert part <= whole, f"run `make lock`: {sorted(part - whole)} differ"
    needed = {re.split(r"[^\w-]", line)[0].lower() for line in PYPROJECT["project"]["dependencies"]}
    assert needed <= {line.split("==")[0] for line in part}, "run `make lock`"


# What each file says.


def test_every_module_says_what_it_decides() -> None:
    for file in files():
        said = ast.get_docstring(tree(file)) or ""
        if is_generated(file):
            assert MARK in file.read_text()[:400], f"{name(file)} is generated and must say by what"
        else:
            first = said.split("\n\n")[0]
            assert len(first.split()) >= 4, f"{name(file)} must open with what it decides or promises"
            assert first.rstrip("`)")[-1] in ".:", f"{name(file)}: the docstring opens with a whole sentence"


@pytest.mark.parametrize("door", doors(), ids=name)
def test_a_door_shows_sorted_names_that_all_exist(door: Path) -> None:
    opened = importlib.import_module(module(door))
    shown = list(getattr(opened, "__all__", ()))
    assert shown == sorted(shown, key=_order), f"{name(door)}: __all__ is not sorted"
    missing = [each for each in shown if not hasattr(opened, each)]
    assert not missing, f"{name(door)} shows {missing}, which is not there"


@pytest.mark.parametrize("door", doors(), ids=name)
def test_a_door_shows_all_that_it_imports_of_ours(door: Path) -> None:
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree(door))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("setpoint")
        for alias in node.names
    }
    hidden = imported - set(getattr(importlib.import_module(module(door)), "__all__", ()))
    assert not hidden, f"{name(door)} imports {sorted(hidden)} and does not show them in __all__"


def _order(shown: str) -> tuple[int, str]:
    """Constants, classes, functions: the order ruff gives ``__all__``."""
    return (0 if shown.isupper() else 1 if shown[0].isupper() else 2, shown)


# Errors.


def test_the_drawn_tree_of_errors_is_the_real_one() -> None:
    real = {kind.__name__: str(kind.__base__ and kind.__base__.__name__) for kind in _raised(SetpointError)}
    assert _drawn() == real, "draw it in errors.py: every error raised on purpose is there"


def test_an_error_outside_the_tree_is_a_users_wrong_argument() -> None:
    outside = set(_raised(BaseException)) - set(_raised(SetpointError)) - {SetpointError}
    # What is raised inside the server leaves it as an answer, and a budget that is spent ends in a report.
    inside = ("setpoint.server.", "setpoint.testing.proof.budget")
    strange = [
        kind
        for kind in outside
        if not issubclass(kind, TypeError | ValueError) and not kind.__module__.startswith(inside)
    ]
    assert not strange, f"{strange} belongs in the tree of errors.py"


def _raised(top: type[BaseException]) -> Iterator[type[BaseException]]:
    """The errors of ours under ``top``; one with an underscore never leaves its own file."""
    for file in files():
        if not is_generated(file):
            importlib.import_module(module(file))
    for kind in _descendants(top):
        if kind.__module__.split(".")[0] == "setpoint" and not kind.__name__.startswith("_"):
            yield kind


def _descendants(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    for child in kind.__subclasses__():
        yield child
        yield from _descendants(child)


def _drawn() -> dict[str, str]:
    """Each error in the drawing at the top of errors.py → its parent there."""
    drawing = ast.get_docstring(tree(SRC / "errors.py")) or ""
    above = ["SetpointError"]
    parents = dict[str, str]()
    for indent, error in re.findall(r"^ *((?:│   |    )*)[├└]── (\w+)", drawing, re.MULTILINE):
        depth = len(indent) // 4
        parents[error] = above[depth]
        above[depth + 1 :] = [error]
    return parents


# What the repository says around the code.


def test_every_make_verb_is_in_contributing() -> None:
    verbs = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    told = (ROOT / "CONTRIBUTING.md").read_text()
    missing = [verb for verb in verbs if f"`make {verb}`" not in told]
    assert verbs
    assert not missing, f"CONTRIBUTING.md does not tell of make {missing}"


def test_every_command_is_in_the_docs() -> None:
    import click

    from setpoint.cli.main import main

    told = _docs()
    commands = main.list_commands(click.Context(main))
    missing = [command for command in commands if f"setpoint {command}" not in told]
    assert commands
    assert not missing, f"no page of docs/ tells of: setpoint {missing}"


@pytest.mark.parametrize("door", doors(), ids=name)
def test_every_name_a_door_shows_is_in_the_docs(door: Path) -> None:
    told = set(re.findall(r"\w+", _docs()))
    missing = set(getattr(importlib.import_module(module(door)), "__all__", ())) - told
    assert not missing, f"no page of docs/ tells of {sorted(missing)}"


def test_every_page_can_be_found_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    lost = [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in readme]
    assert not lost, f"README.md has no link to docs/{lost}"


def test_every_link_in_the_pages_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "changes").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), (
                f"{page.relative_to(ROOT)} links to {target}, which is not there"
            )


def test_the_life_of_a_request_is_told_by_what_exists() -> None:
    """Each row of DESIGN.md's table names a file, and what in it does the work."""
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (.*?) \|", (ROOT / "DESIGN.md").read_text(), re.MULTILINE)
    assert rows
    for file, told in rows:
        defined = {
            getattr(node, "name", None) or getattr(node, "id", None) for node in ast.walk(tree(SRC / file))
        }
        missing = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", told)))) - defined
        assert not missing, f"DESIGN.md tells of {sorted(missing)} in {file}"


def test_a_change_is_one_fragment_of_a_known_sort() -> None:
    fragments = [file for file in (ROOT / "changes").iterdir() if file.name != "README.md"]
    for fragment in fragments:
        assert re.fullmatch(r"[a-z0-9-]+\.(new|fix|change|removal)\.md", fragment.name), fragment.name
        assert len(fragment.read_text().strip().split("\n\n")) == 1, (
            f"{fragment.name}: one change, one paragraph"
        )


def test_the_project_speaks_only_of_itself() -> None:
    """No paths of the machine it was written on, no hosts of package registries: they are nobody else's."""
    foreign = re.compile(
        r"(?<![\w.~-])/(?:root|work|tmp/\w)|pypi\.org|pythonhosted|proxy\.golang|sum\.golang"
    )
    for file in _committed():
        try:
            text = file.read_text()
        except UnicodeDecodeError:
            continue  # recorded bytes
        found = None if file == Path(__file__) else foreign.search(text)
        assert found is None, f"{file.relative_to(ROOT)} speaks of {found.group() if found else ''}"


def _committed() -> Iterator[Path]:
    ignored = {line.strip("/\n") for line in (ROOT / ".gitignore").read_text().splitlines()} | {".git"}
    for file in ROOT.rglob("*"):
        if file.is_file() and not ignored & set(file.relative_to(ROOT).parts):
            yield file


def _docs() -> str:
    return "\n".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))
