"""JSON as a server writes it: made up from its schemas, and compared with what we write back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from setpoint.api.names import GroupVersionKind

Strategy = st.SearchStrategy[Any]

_TEXT = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=8)
_DAYS = st.dates().filter(lambda day: day.year > 0)
_SECONDS = st.tuples(_DAYS, st.times()).map(lambda pair: f"{pair[0]}T{pair[1].replace(microsecond=0)}")
_FREE = st.recursive(
    st.booleans() | _TEXT, lambda inner: st.dictionaries(_TEXT, inner, max_size=2), max_leaves=3
)

_REFERENCE = "#/components/schemas/"
_SCALARS: dict[str, Strategy] = {
    "Quantity": st.sampled_from(["0", "1", "1500m", "1.5Gi", "2e3", "-3", "100n", "12E", 7]),
    "IntOrString": st.integers(0, 65535) | st.sampled_from(["25%", "http"]),
    "Time": _SECONDS.map(lambda text: f"{text}Z"),
    "MicroTime": _SECONDS.map(lambda text: f"{text}.000120Z"),
    "RawExtension": st.dictionaries(_TEXT, _FREE, max_size=2),
    "FieldsV1": st.dictionaries(_TEXT, _FREE, max_size=2),
    "JSON": _FREE,
    "JSONSchemaPropsOrArray": st.sampled_from([{"type": "string"}, [{"type": "string"}]]),
    "JSONSchemaPropsOrBool": st.sampled_from([{"type": "string"}, True]),
    "JSONSchemaPropsOrStringArray": st.sampled_from([{"type": "string"}, ["a"]]),
}
_FORMATS: dict[str, Strategy] = {
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "byte": st.sampled_from(["", "AA==", "AP8=", "c2V0cG9pbnQ="]),
}


def title(said: Mapping[str, Any]) -> str:
    return f"{said['kind']}-{said['metadata'].get('name', '')}"


def lost(said: Any, written: Any, path: str = "") -> list[str]:
    """Where a value that was said is not written; null says as much as nothing, and more may be written."""
    return list(_lost(said, written, path))


def _lost(said: Any, written: Any, path: str) -> Iterator[str]:
    match said, written:
        case None, _:
            return
        case dict(), dict():
            for name, value in said.items():
                yield from _lost(value, written.get(name), f"{path}.{name}")
        case list(), list() if len(said) == len(written):
            for index, (one, other) in enumerate(zip(said, written, strict=True)):
                yield from _lost(one, other, f"{path}[{index}]")
        case int() | float(), int() | float() if said == written and bool not in {type(said), type(written)}:
            return  # JSON has one kind of number
        case _ if type(said) is not type(written) or said != written:
            yield f"{path}: {said!r} became {written!r}"


class Schemas:
    """Makes up objects from a server's schemas; each schema's strategy is made once."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._made: dict[tuple[str, int], Strategy] = {}

    def objects_of(self, gvk: GroupVersionKind) -> Strategy:
        """Objects of a kind, with any fields its schema has."""
        wanted = [{"group": gvk.group, "kind": gvk.kind, "version": gvk.version}]
        name = next(
            name
            for name, schema in self._schemas.items()
            if schema.get("x-kubernetes-group-version-kind") == wanted
        )
        said = {"apiVersion": gvk.api_version, "kind": gvk.kind}
        return self._named(name, 6).map(lambda body: {**body, **said})

    def _named(self, name: str, depth: int) -> Strategy:
        short = name.rpartition(".")[2]
        if short in _SCALARS:
            return _SCALARS[short]
        if (name, depth) not in self._made:
            self._made[name, depth] = self._struct(self._schemas[name], depth)
        return self._made[name, depth]

    def _struct(self, schema: Mapping[str, Any], depth: int) -> Strategy:
        parts = schema.get("properties", {})
        fields = {name: self._value(part, depth - 1) for name, part in parts.items()}
        # What is no pointer in Go is written even if it is empty; the schema then says so.
        always = {*schema.get("required", ()), *(n for n, p in parts.items() if p.get("default") == {})}
        optional = sorted(set(fields) - always) if depth > 0 else []
        # Few of many: what is drawn stays small, and every field has its turn.
        some = st.lists(st.sampled_from(optional), max_size=4, unique=True) if optional else st.just([])

        @st.composite
        def draw_struct(draw: st.DrawFn) -> dict[str, Any]:
            return {name: draw(fields[name]) for name in [*sorted(always), *draw(some)]}

        return draw_struct()

    def _value(self, schema: Mapping[str, Any], depth: int) -> Strategy:
        if "allOf" in schema:
            return self._value(schema["allOf"][0], depth)
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(_REFERENCE)
            return st.deferred(lambda: self._named(name, depth))
        if "format" in schema:
            return _FORMATS[schema["format"]]
        match schema["type"]:
            case "string":
                return st.sampled_from(schema["enum"]) | _TEXT if "enum" in schema else _TEXT
            case "boolean":
                return st.booleans()
            case "integer":
                return _FORMATS["int64"]
            case "array":
                return st.lists(self._value(schema["items"], depth), max_size=2) | st.none()
            case "object" if "additionalProperties" in schema:
                return st.dictionaries(_TEXT, self._value(schema["additionalProperties"], depth), max_size=2)
        raise AssertionError(f"a schema of a shape not met before: {schema}")
