"""Decides when the file of an operator is loaded again, and puts the new operators in the place of the old.

1. A save counts when it is over: nothing has changed since the last look.  Editors that write a new file and
   rename it, and those that remove the old one first, are followed.
2. What cannot be loaded, or installed, or added, is told, and what ran before runs on.
3. The manager and its cache stay: kinds that are still watched are not listed again.  A controller's reads
   are not behind what its former self wrote.
4. All objects are looked at again by the new code.
5. A reconcile that is under way has ``GRACE`` seconds to end.

After something could not be loaded, any Python file of the folder may be what is missing: all are watched.
Driven by ``dev.py``; loading itself is in ``loading.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from setpoint.cli.loading import CannotLoad, Loaded, load
from setpoint.controller.controller import Controller
from setpoint.manager.manager import Manager
from setpoint.manager.supervisor import Runnable
from setpoint.operator import Operator

GRACE = 2.0

Stamp: TypeAlias = (
    tuple[int, int, int] | None
)  # when it was written, its size, and which file; None: not there
Stamps: TypeAlias = Mapping[Path, Stamp]


class Saves:
    """What was on disk when it was read, and at the last look."""

    def __init__(self, read: Stamps) -> None:
        self._read = self._last = read

    def is_due(self, now: Stamps) -> bool:
        """Whether something was saved that is not read yet, and is not being saved still."""
        is_over = now == self._last
        self._last = now
        return is_over and now != self._read


def stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def stamps(paths: Iterable[Path]) -> Stamps:
    return {path: stamp(path) for path in paths}


class Source:
    """The file of an operator and its neighbours, as they were loaded last."""

    def __init__(self, path: Path) -> None:
        self.loaded = load(path)
        self._files = self.loaded.files
        self._saves = Saves(stamps(self._files))

    @property
    def files(self) -> frozenset[Path]:
        """What is watched."""
        return self._files

    def is_due(self) -> bool:
        """Whether it must be loaded again."""
        return self._saves.is_due(stamps(self._files))

    def load(self) -> Loaded:
        """Load it again; CannotLoad says why that cannot be, and what was loaded before counts on."""
        path, before = self.loaded.path, stamps(self._files)  # what is saved from here on is not read yet
        try:
            self.loaded = load(path, self.loaded)
            self._files = self.loaded.files
        except CannotLoad:
            self._files = self._files | {each.absolute() for each in path.parent.glob("*.py")}
            raise
        finally:
            self._saves = Saves({**stamps(self._files - before.keys()), **_of(before, self._files)})
        return self.loaded


def _of(taken: Stamps, files: frozenset[Path]) -> Stamps:
    return {path: each for path, each in taken.items() if path in files}


class Running:
    """The operators that a manager runs, to be replaced by others; ``tell`` hears of each controller."""

    def __init__(self, manager: Manager, tell: Callable[[Controller], None]) -> None:
        self._manager = manager
        self._tell = tell
        self._operators: Sequence[Operator] = ()
        self._added: list[Runnable] = []

    async def replace(self, operators: Sequence[Operator]) -> None:
        """Run these, and no longer the others; if they cannot be added, the others go on."""
        former = {each.name: each for each in self._manager.controllers}
        with self._manager.cache.keeping():
            await self._remove()
            try:
                self._add(operators)
            except Exception:
                await self._remove()
                self._add(self._operators)
                raise
            finally:
                for each in self._manager.controllers:
                    if each.name in former:
                        each.reader.take_over(former[each.name].reader)
        self._operators = operators

    def _add(self, operators: Sequence[Operator]) -> None:
        before = self._manager.runnables
        try:
            for operator in operators:
                operator.add_to(self._manager)
        finally:
            self._added = [each for each in self._manager.runnables if each not in before]
            for runnable in self._added:
                if isinstance(runnable, Controller):
                    self._tell(runnable)

    async def _remove(self) -> None:
        while self._added:
            await self._manager.remove(self._added.pop(), grace=GRACE)
