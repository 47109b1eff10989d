"""How many there are of a custom object, and how many there should be: what its ``scale`` subresource names.

Pure.  ``Scaled`` holds the paths of a version; the registry reads and writes through it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from setpoint.server.golang import printed, quoted
from setpoint.server.registry.resources import Object
from setpoint.server.statuses import FieldError, internal

_MOST: Final = 2**31 - 1
_GO: Final = {
    bool: "bool", str: "string", float: "float64", list: "[]interface {}",
    dict: "map[string]interface {}", type(None): "<nil>",
}  # fmt: skip


class Scaled(NamedTuple):
    """Where a version keeps its replicas."""

    spec: str  # as in .spec.replicas
    status: str
    selector: str = ""

    def scale_of(self, obj: Object, *, is_written: bool = False) -> Object:
        """The Scale of an object, which must say how many are wanted, unless that is being written."""
        if not is_written and _found(obj, self.spec) is None:
            raise internal(f"the spec replicas field {quoted(self.spec)} does not exist")
        metadata = obj["metadata"]
        kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        status: dict[str, Any] = {"replicas": _count(obj, self.status)}
        if self.selector and isinstance(found := _found(obj, self.selector), str) and found:
            status["selector"] = found
        spec = {"replicas": replicas} if (replicas := _count(obj, self.spec)) else {}
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: metadata[name] for name in kept if metadata.get(name)},
            "spec": spec,
            "status": status,
        }

    @property
    def path(self) -> tuple[str, ...]:
        """Of the replicas, in managedFields."""
        return tuple(f"f:{step}" for step in _steps(self.spec))

    def set_replicas(self, obj: Object, replicas: int) -> None:
        holder: Any = obj
        *steps, last = _steps(self.spec)
        for step in steps:
            if not isinstance(holder.get(step), dict):
                holder[step] = {}
            holder = holder[step]
        holder[last] = replicas

    def errors(self, obj: Object, *, with_spec: bool = True) -> list[FieldError]:
        """What is wrong with the counts of an object; /status does not look at what is wanted."""
        errors: list[FieldError] = []
        for path in (self.spec, self.status)[0 if with_spec else 1 :]:
            found = _found(obj, path, None)
            wrong = _wrong(obj, path, "int64", lambda one: type(one) is int)
            if wrong:
                errors.append(FieldError("invalid", path, wrong, 0))
            elif found is not None and found < 0:
                errors.append(FieldError("invalid", path, "should be a non-negative integer", found))
            elif found is not None and found > _MOST:
                errors.append(FieldError("invalid", path, f"should be less than or equal to {_MOST}", found))
        if self.selector and (
            wrong := _wrong(obj, self.selector, "string", lambda one: isinstance(one, str))
        ):
            errors.append(FieldError("invalid", self.selector, wrong, ""))
        return errors


def _steps(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _found(obj: Object, path: str, missing: Any = None) -> Any:
    found: Any = obj
    for step in _steps(path):
        if not isinstance(found, dict) or step not in found:
            return missing
        found = found[step]
    return found


def _count(obj: Object, path: str) -> int:
    found = _found(obj, path)
    return found if type(found) is int else 0


def _wrong(obj: Object, path: str, wanted: str, fits: Any) -> str:
    """As Go says it of a value that is not what it should be, or of what cannot be looked into."""
    found: Any = obj
    walked: list[str] = []
    for step in _steps(path):
        if found is None:
            return ""
        if not isinstance(found, dict):
            return _accessor([*walked, step], found, "map[string]interface{}")
        if step not in found:
            return ""
        walked.append(step)
        found = found[step]
    return "" if fits(found) else _accessor(walked, found, wanted)


def _accessor(walked: list[str], found: Any, wanted: str) -> str:
    kind = "int64" if type(found) is int else _GO.get(type(found), "int64")
    return f".{'.'.join(walked)} accessor error: {printed(found)} is of the type {kind}, expected {wanted}"
