"""What ``kubectl get`` shows of an object: a row of cells, as many as its resource has columns.

The built-in kinds have printers of their own (``cells/``); what has none shows its name and when it was
created. Custom kinds show their name and what the JSON paths of their columns find.

Pure: the present comes in as an argument.  Used by ``tables.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from setpoint.server.http.cells import core, networks, others, workloads
from setpoint.server.http.cells.reading import Cells, Printer, Row, age, at, moment, name, text
from setpoint.server.registry.crd.jsonpath import Read, reader
from setpoint.server.registry.resources import Column, Object, Resource

_PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    **core.PRINTERS,
    **workloads.PRINTERS,
    **networks.PRINTERS,
    **others.PRINTERS,
}
_IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_WAS_DEFAULT: Final = "storageclass.beta.kubernetes.io/is-default-class"


def rows(resource: Resource, objects: Sequence[Object], now: datetime, *, is_list: bool = True) -> list[Row]:
    """A row for each."""
    if resource.is_custom:
        return [Row(_custom(resource, obj, now)) for obj in objects]
    printer = _PRINTERS.get((resource.group, resource.kind), _plain)
    found = [_row(printer(obj, now)) for obj in objects]
    if is_list and resource.qualified == "storageclasses.storage.k8s.io":
        _mark_default(objects, found)
    return found


def _row(printed: Cells | Row) -> Row:
    return printed if isinstance(printed, Row) else Row(printed)


def _plain(obj: Object, _: datetime) -> Cells:
    return [name(obj), text(obj, "metadata", "creationTimestamp", otherwise="0001-01-01T00:00:00Z")]


def _mark_default(objects: Sequence[Object], found: list[Row]) -> None:
    """Of several default classes the newest is used; of those as new, the first by name."""
    defaults = [
        position
        for position, obj in enumerate(objects)
        if "true" in (at(obj, "metadata", "annotations", one) for one in (_IS_DEFAULT, _WAS_DEFAULT))
    ]
    if defaults:
        newest = max(text(objects[one], "metadata", "creationTimestamp") for one in defaults)
        among = [one for one in defaults if text(objects[one], "metadata", "creationTimestamp") == newest]
        used = min(among, key=lambda one: name(objects[one]))
        found[used].cells[0] += " (default)"


# ── Custom kinds ────────────────────────────────────────────────────────────────────────────────────


def _custom(resource: Resource, obj: Object, now: datetime) -> Cells:
    return [name(obj), *(_cell(column, obj, now) for column in resource.columns[1:])]


def _cell(column: Column, obj: Object, now: datetime) -> Any:
    found = _reader(column.json_path)(obj)
    if not found:
        return None
    value = found[0]
    match column.type:
        case "string":
            return _shown(value)
        case "date":
            if not isinstance(value, str):
                return None
            return age(value, now) if moment(value) is not None else "<invalid>"
        case "integer" if _is_number(value):
            return int(value)
        case "number" if _is_number(value):
            return float(value)
        case "boolean" if isinstance(value, bool):
            return value
    return None


@lru_cache(maxsize=4096)
def _reader(path: str) -> Read:
    """A path that cannot be read finds nothing."""
    try:
        return reader(path)
    except ValueError:
        return lambda _: []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """As Go prints a value: text as it is, numbers its way, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, float):
        is_long = math.fabs(value) >= 1e21 or not value.is_integer()
        return repr(value) if is_long else str(int(value))
    written = json.dumps(_plain_numbers(value), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    for character in "<>&":  # Go's JSON is made for pages
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(one) for one in value]
    if isinstance(value, float) and value.is_integer() and math.fabs(value) < 1e21:
        return int(value)
    return value
