"""When the file of an operator is loaded again, and how new operators take the place of old ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from setpoint.cli.developing import Following
from setpoint.cli.loading import CannotLoad
from setpoint.cli.reload import Saves, Source, stamps
from setpoint.cli.watching import Watching
from setpoint.cluster.cluster import Cluster
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.manager import Manager
from setpoint.testing.waiting import eventually
from tests.cli.operators import GREETING, OPERATOR, Folder, save

A, B = Path("a"), Path("b")


# When.


def test_a_save_counts_when_it_is_over() -> None:
    saves = Saves({A: (1, 10, 7)})
    assert not saves.is_due({A: (1, 10, 7)})
    assert not saves.is_due({A: (2, 0, 7)}), "it may be written to still"
    assert not saves.is_due({A: (3, 12, 7)}), "it was"
    assert saves.is_due({A: (3, 12, 7)})


def test_a_file_that_is_gone_for_a_moment_is_being_saved() -> None:
    saves = Saves({A: (1, 10, 7)})
    assert not saves.is_due({A: None})
    assert not saves.is_due({A: (2, 10, 8)})
    assert saves.is_due({A: (2, 10, 8)})


def test_what_is_put_back_as_it_was_is_no_save() -> None:
    saves = Saves({A: (1, 10, 7), B: None})
    assert not saves.is_due({A: (1, 10, 7), B: (1, 1, 1)})
    assert not saves.is_due({A: (1, 10, 7), B: None})
    assert not saves.is_due({A: (1, 10, 7), B: None})


def is_due(source: Source) -> bool:
    """Whether a save is followed; that it is over shows at the second look."""
    return [source.is_due(), source.is_due()][1]


def test_a_save_of_a_neighbour_is_followed_and_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    source = Source(folder.operator)
    assert not is_due(source)
    folder.say("two")
    assert is_due(source)
    source.load()
    assert not is_due(source)


def test_after_a_failure_what_is_missing_may_be_a_new_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    source = Source(folder.operator)
    save(folder.operator, "import missing\n" + OPERATOR)
    assert is_due(source)
    with pytest.raises(CannotLoad):
        source.load()
    assert not is_due(source), "it is not tried again and again"
    folder.neighbour.unlink()
    assert is_due(source), "the neighbours of before count, too"
    with pytest.raises(CannotLoad):
        source.load()
    save(tmp_path / "missing.py", "")
    folder.say("two")
    save(folder.operator, "import missing\n" + OPERATOR)
    assert is_due(source)
    assert tmp_path / "missing.py" in {each.resolve() for each in source.load().files}


# How.


@asynccontextmanager
async def following(folder: Folder) -> AsyncIterator[tuple[Following, Manager, list[str]]]:
    """The operator of a folder at work, in a cluster without controllers of its own."""
    lines: list[str] = []
    async with Cluster(controllers=[]) as cluster:
        watching = Watching(cluster.client, lines.append)
        manager = Manager(client=cluster.client)
        follows = Following(Source(folder.operator), (folder.manifest,), manager, watching)
        async with asyncio.timeout(60), watching.cache, manager:
            await follows.start()
            yield follows, manager, lines


async def said(manager: Manager, word: str) -> None:
    async def is_said() -> bool:
        return (await manager.plain_client.get(ConfigMap, "hello")).data == {"text": word}

    await eventually(is_said)


async def test_new_code_takes_the_place_of_old_and_the_caches_stay_warm(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    async with following(folder) as (follows, manager, lines):
        await said(manager, "one")
        watches = [manager.cache.holds(gvk) for gvk in manager.controllers[0].kinds]
        folder.say("two")
        notice = await follows.reload()
        assert not notice.is_bad
        assert "greeting.py was loaded again" in notice.text
        await said(manager, "two")
        assert [manager.cache.holds(gvk) for gvk in manager.controllers[0].kinds] == watches
        assert any("wrote apply ConfigMap default/hello" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("def (", "SyntaxError"),
        (OPERATOR + OPERATOR[OPERATOR.index("@operator") :], "has a controller 'greeting' already"),
        (
            OPERATOR.replace('version="v1"', 'version="v1", namespaced=False'),
            "kubectl delete crd greetings.demo.setpoint.dev",
        ),
        (OPERATOR[: OPERATOR.index("@operator")], "has no controller"),
    ],
)
async def test_what_is_wrong_is_told_and_what_ran_before_runs_on(
    tmp_path: Path, text: str, wrong: str
) -> None:
    folder = Folder(tmp_path)
    async with following(folder) as (follows, manager, _):
        await said(manager, "one")
        save(folder.operator, text)
        notice = await follows.reload()
        assert notice.is_bad
        assert "what ran before runs on" in notice.text
        assert wrong in notice.text
        await manager.plain_client.delete(ConfigMap, "hello")
        await said(manager, "one")
        save(folder.operator, OPERATOR)
        folder.say("two")
        assert not (await follows.reload()).is_bad
        await said(manager, "two")


async def test_a_changed_definition_is_installed(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    async with following(folder) as (follows, _, _):
        save(
            folder.operator,
            OPERATOR.replace('text: str = "hello"', 'text: str = "hello"\n    loud: bool = True'),
        )
        assert not (await follows.reload()).is_bad
        save(folder.manifest, GREETING + "spec: {loud: false}\n")
        assert not (await follows.apply_again()).is_bad


async def test_a_manifest_that_is_none_is_told_in_a_sentence(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    async with following(folder) as (follows, _, _):
        for text, wrong in (
            ("a: [", "greeting.yaml: line 2"),
            ("a: 1", 'greeting.yaml: document 1: an object needs "apiVersion" and "kind"'),
            ("", "greeting.yaml: there is no object in it"),
        ):
            save(folder.manifest, text)
            notice = await follows.apply_again()
            assert notice.is_bad
            assert wrong in notice.text


def test_stamps_of_what_is_not_there_are_none(tmp_path: Path) -> None:
    assert stamps([tmp_path / "none"]) == {tmp_path / "none": None}
