"""The two forms of ``/openapi/v2`` say the same.

Asked of the real server, this shows that our writer makes of its JSON what it makes itself; asked of ours,
that what is sent is what the writer made.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from setpoint.server.http.swagger_protobuf import written
from tests.conformance.asking import Asker, Step
from tests.conformance.planes import NewPlane
from tests.protobuf import fields

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.fixture
def asker(new_plane: NewPlane) -> Iterator[Asker]:
    with new_plane() as plane:
        asker = Asker(plane)
        yield asker
        asker.close()


def test_protobuf_says_what_json_says(asker: Asker) -> None:
    _, text = asker.ask(Step("GET", "/openapi/v2", headers={"Accept": "application/json"}))
    _, data = asker.ask(Step("GET", "/openapi/v2", headers={"Accept": PROTOBUF}))
    document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert _differing(data, written(document)) == []


def _differing(one: bytes, other: bytes) -> list[tuple[bytes, bytes]]:
    """Where two messages differ.  Of YAML in them it counts what it says, and not how it is quoted."""
    if one == other or _is_same_yaml(one, other):
        return []
    try:
        here, there = list(fields(one)), list(fields(other))
    except (ValueError, IndexError):  # they are texts
        return [(one, other)]
    if [number for number, _ in here] != [number for number, _ in there]:
        return [(one, other)]
    found = []
    for (_, mine), (_, yours) in zip(here, there, strict=True):
        if isinstance(mine, bytes) and isinstance(yours, bytes):
            found += _differing(mine, yours)
        elif mine != yours:
            found.append((one, other))
    return found


def _is_same_yaml(one: bytes, other: bytes) -> bool:
    try:
        return one.endswith(b"\n") and bool(yaml.safe_load(one) == yaml.safe_load(other))
    except (yaml.YAMLError, UnicodeDecodeError):  # a message, which happens to end so
        return False
