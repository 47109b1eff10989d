"""Imports the file of an operator, and knows which files it was made from.

1. The file is a module of its own name, with its folder first on the path, as Python does for a script.
2. What the file raises is shown from the file on: how we came to import it is nobody's concern.
3. Loaded again, everything that the file brought with it from its own folder or the working directory is read
   anew.  If that fails, all modules are as they were before.
4. What is on disk counts, not what was compiled from it: two saves within a second can be of one size.

Used by ``run.py``, ``crd.py`` and ``dev.py``; when to load again is decided in ``reload.py``.
"""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from sysconfig import get_paths
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from setpoint.operator import Operator


class CannotLoad(click.ClickException, ValueError):
    """The file is not there, is no operator, or raises; ``trace`` says where, if it does."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.trace, err=True, nl=False)
        super().show(file)


@dataclass(frozen=True)
class Loaded:
    """The operators of a file, and all modules of theirs that came with it."""

    path: Path
    operators: tuple[Operator, ...]
    modules: Mapping[str, ModuleType]

    @property
    def files(self) -> frozenset[Path]:
        """What it was made from."""
        return frozenset({self.path, *(file for each in self.modules.values() if (file := _file(each)))})

    def crds(self) -> list[dict[str, Any]]:
        """The CustomResourceDefinitions of its kinds; of one that several operators share, once."""
        from setpoint.operator import crds_of  # noqa: PLC0415 - --help and completion need none of it

        return crds_of(self.operators)


def load(path: Path, before: Loaded | None = None) -> Loaded:
    """Import a file with its operators; ``before`` is what it was until now."""
    if not path.is_file():
        near = sorted(each.name for each in path.parent.glob("*.py"))[:5] if path.parent.is_dir() else []
        hint = f"; there are: {', '.join(near)}" if near else ""
        raise CannotLoad(f"{path}: there is no such file{hint}")
    path = path.absolute()
    former = dict(before.modules) if before is not None else {}
    for name in former:
        sys.modules.pop(name, None)
    known = set(sys.modules)
    try:
        module = _imported(path)
        operators = operators_of(module, path)
    except BaseException:
        for name in set(sys.modules) - known:
            if _is_theirs(sys.modules[name], path):
                del sys.modules[name]
        sys.modules.update(former)
        raise
    brought = {name: sys.modules[name] for name in set(sys.modules) - known}
    return Loaded(
        path, tuple(operators), {name: each for name, each in brought.items() if _is_theirs(each, path)}
    )


def operators_of(module: ModuleType, path: Path) -> list[Operator]:
    """The operators of a module, in the order in which they stand there."""
    from setpoint.operator import Operator  # noqa: PLC0415 - --help and completion need none of it

    found = {id(value): value for value in vars(module).values() if isinstance(value, Operator)}
    if not found:
        raise CannotLoad(
            f'{path}: there is no Operator in it; write operator = Operator("{path.stem}") '
            "and decorate functions with @operator.controller(…)"
        )
    return list(found.values())


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_module_name(path), path)
    if spec is None or spec.loader is None:
        raise CannotLoad(f"{path}: is not a Python file (its name does not end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()  # a neighbour may be new
    linecache.checkcache()  # tracebacks show what is there now
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # promise 4
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - shown as a whole
        raise CannotLoad(f"{path}: could not be imported; see above", _told(error, path)) from None
    finally:
        sys.dont_write_bytecode = writes
    return module


def _module_name(path: Path) -> str:
    """The file's own; unless Python knows another module by it."""
    name = path.stem if path.stem.isidentifier() else "operator_file"
    while name in sys.modules:
        name += "_"
    return name


def _is_theirs(module: ModuleType, path: Path) -> bool:
    """Whether it belongs to the author of the file, who may change it: not what was installed."""
    file = _file(module)
    if file is None or {"site-packages", "dist-packages"} & {*file.parts}:
        return False
    if any(file.is_relative_to(place) for place in _NOT_THEIRS):
        return False
    return any(file.is_relative_to(home) for home in (path.parent, path.resolve().parent, Path.cwd()))


_NOT_THEIRS = (Path(__file__).parent.parent, *(Path(get_paths()[each]) for each in ("stdlib", "platstdlib")))


def _file(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).absolute() if isinstance(file, str) else None


def _told(error: BaseException, path: Path) -> str:
    """The traceback, from the file on."""
    told = traceback.TracebackException.from_exception(error)
    frames = list(told.stack)
    ours = next((n for n, frame in enumerate(frames) if Path(frame.filename) == path), len(frames))
    told.stack = traceback.StackSummary.from_list(frames[ours:])
    return "".join(told.format())
