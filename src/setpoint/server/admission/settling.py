"""What stays as it is, whatever webhooks and policies make of an object.

When they have had their say, as in kube-apiserver:

1. Owners of fields that cannot be read are those that there were before, and the client is told.
2. An owner that is named twice is named once, and the client is told.
3. An object is in the namespace of its request; one that is said to be in another is refused.
4. A new object that has lost its name gets one, if it has the beginning of one.
5. A changed object keeps its uid and its times.

Pure; ``asked.object`` is changed in place.  Called by ``admission.py``.  Not here: whether the version that
they left is the one that is changed (``flow.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from setpoint.server.admission.attributes import Attributes
from setpoint.server.registry.flow import check_place
from setpoint.server.registry.managed.managers import decode
from setpoint.server.registry.managed.sets import BadFieldsError
from setpoint.server.registry.metadata import carry_over, dedupe_owners, keep_deletion
from setpoint.server.registry.requests import Ask
from setpoint.server.registry.resources import Object

_BAD_OWNERS: Final = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated "
    "mutating admission controller; please fix your requests: "
)


def metadata_of(obj: Object | None) -> Object:
    """As it is before anybody has had a say."""
    return dict((obj or {}).get("metadata") or {})


def settle(asked: Attributes, before: Object, generated: Callable[[str], str]) -> None:
    """``before`` is ``metadata_of``; ``generated`` makes a name from its beginning.  Raises a refusal."""
    obj = asked.object
    if obj is None or asked.body is not None:
        return
    metadata = obj["metadata"]
    _settle_owners(metadata, before.get("managedFields"), asked)
    asked.warnings += [_after_admission(told) for told in dedupe_owners(obj)]
    check_place(obj, Ask("update", asked.resource, asked.namespace))
    if asked.operation == "CREATE":
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generated(metadata["generateName"])
    elif asked.old is not None:
        carry_over(obj, asked.old)
        keep_deletion(obj, asked.old)


def _settle_owners(metadata: Object, before: Any, asked: Attributes) -> None:
    found = metadata.get("managedFields")
    if not found or found == before:
        return
    try:
        decode(found, trusted=False)
    except BadFieldsError as error:
        asked.warnings.append(f"{_BAD_OWNERS}{error}")
        metadata["managedFields"] = before


def _after_admission(told: str) -> str:
    return told.replace("duplicate entries;", "duplicate entries after mutating admission happens;", 1)
