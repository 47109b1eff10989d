"""Which fields of its objects an operator reads, found by watching attribute access on models.

    with recorded() as reads:
        prepared.run(plan)
    reads.of("batch.tutorial.kubebuilder.io", "CronJob")  # {"spec", "spec.schedule", "spec.jobTemplate", …}

A path has the names of the schema: ``ports[].name`` of an item of a list, ``sites.*.name`` of one of a map.
Only code outside of this package counts, in any thread.  What is handed on, copied, compared or serialized as
a whole is read as a whole: its own path is noted, and no path in it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from setpoint.api.model import Model, Object

_PACKAGE: Final = "setpoint"


class Reads:
    """The paths that were read, by kind."""

    def __init__(self) -> None:
        self._paths: dict[tuple[str, str], set[str]] = {}
        self._known: dict[int, tuple[Any, tuple[str, str], str]] = {}  # models in an object, by their ids
        self._names: dict[type[Any], dict[str, str]] = {}  # of the fields of a class, on the wire

    def __repr__(self) -> str:
        return f"<Reads: {sum(map(len, self._paths.values()))} paths of {len(self._paths)} kinds>"

    def of(self, group: str, kind: str) -> frozenset[str]:
        return frozenset(self._paths.get((group, kind), ()))

    def note(self, model: Model, name: str, value: Any) -> None:
        """Code of the operator's has read this attribute."""
        known = self._known.get(id(model))
        if known is None:
            if not isinstance(model, Object):
                return
            gvk = getattr(type(model), "gvk", None)
            if gvk is None:
                return
            known = (model, (gvk.group, gvk.kind), "")
        _, kind, path = known
        wire = self._wire_names(type(model)).get(name)
        if wire is not None:
            path = f"{path}.{wire}" if path else wire
            self._paths.setdefault(kind, set()).add(path)
            self._follow(value, kind, path)

    def _follow(self, value: Any, kind: tuple[str, str], path: str) -> None:
        """Know the models in a value by where they are."""
        if isinstance(value, Model):
            self._known[id(value)] = (value, kind, path)  # held, so that no other has its id
        elif isinstance(value, list):
            for item in value:
                self._follow(item, kind, f"{path}[]")
        elif isinstance(value, dict):
            for item in value.values():
                self._follow(item, kind, f"{path}.*")

    def _wire_names(self, model: type[Any]) -> dict[str, str]:
        found = self._names.get(model)
        if found is None:
            names = zip(model.__struct_fields__, model.__struct_encode_fields__, strict=True)
            found = self._names[model] = dict(names)
        return found


@contextmanager
def recorded() -> Iterator[Reads]:
    """Note what is read of every model while in the block; it is slower meanwhile."""
    reads = Reads()

    def noting(self: Model, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if name[0] != "_" and not _is_ours(sys._getframe(1).f_globals.get("__name__", "")):  # noqa: SLF001
            reads.note(self, name, value)
        return value

    Model.__getattribute__ = noting  # type: ignore[method-assign,assignment]
    try:
        yield reads
    finally:
        del Model.__getattribute__


def _is_ours(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
