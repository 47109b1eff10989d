"""Objects as rows of a Table, or as their metadata alone: for ``kubectl get`` and metadata informers.

A row is the cells that ``printers.py`` computes and, as the client asks (``includeObject``), the object's
metadata, the object, or nothing.  Objects come in and go out as bytes: metadata is cut out, never written
anew.

Pure: the present comes in as an argument.  Used by ``app.py`` and ``watches.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from setpoint.api.decoders import prepare
from setpoint.server.registry.defaults.workloads import TEMPLATE_GENERATION
from setpoint.server.registry.resources import Column, Resource
from setpoint.server.statuses import StatusError, bad_request

if TYPE_CHECKING:
    from setpoint.server.http.cells.reading import Row

Include = Literal["Metadata", "Object", "None"]
_INCLUDES: Final[dict[str, Include]] = {
    "": "Metadata",
    "Metadata": "Metadata",
    "Object": "Object",
    "None": "None",
}


class _Cut(msgspec.Struct, gc=False):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_DAEMON_SET = b'{"kind":"DaemonSet","apiVersion":"apps/v1",'
_cut = msgspec.json.Decoder(_Cut)
_encode = msgspec.json.encode


def include_of(query: Mapping[str, str]) -> Include:
    asked = query.get("includeObject", "")
    found = _INCLUDES.get(asked)
    if found is None:
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{asked}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return found


def partial(data: bytes, version: str = "v1") -> bytes:
    """An object's metadata, as an object."""
    head = f'{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{version}","metadata":'.encode()
    metadata = bytes(_cut.decode(data).metadata)
    if data.startswith(_DAEMON_SET):
        metadata = _without_count(metadata)
    return b"%b%b}" % (head, metadata)


def _without_count(metadata: bytes) -> bytes:
    """The count of a DaemonSet's templates is an annotation of the object in its version alone."""
    found = msgspec.json.decode(metadata)
    annotations = found.get("annotations") or {}
    annotations.pop(TEMPLATE_GENERATION, None)
    if not annotations:
        found.pop("annotations", None)
    return _encode(found)


def partial_list(metadata: bytes, items: Sequence[bytes], version: str = "v1") -> bytes:
    head = f'{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/{version}","metadata":'.encode()
    return b'%b%b,"items":[%b]}' % (head, metadata, b",".join(partial(one, version) for one in items))


def table(
    resource: Resource,
    metadata: bytes,
    items: Sequence[bytes],
    *,
    now: datetime,
    include: Include = "Metadata",
    version: str = "v1",
    is_list: bool = True,
) -> bytes:
    """``metadata`` is the list's; of a single object, see ``metadata_of_one``."""
    found = table_rows(resource, items, now=now, include=include, version=version, is_list=is_list)
    before, after = framed(metadata, found, version)
    return b"%b%b%b" % (before, columns(resource), after)


def as_scale(workload: Resource) -> Resource:
    """What a table of a Scale is made by; ``workload`` is any kind whose first column is its name."""
    named = {one.name: one for one in workload.columns}
    counted = [Column(one, "integer", description="replicas") for one in ("Desired", "Available")]
    return replace(
        workload, group="autoscaling", kind="Scale", columns=(named["Name"], *counted, named["Age"])
    )


def framed(metadata: bytes, found: bytes, version: str) -> tuple[bytes, bytes]:
    """A table without its columns: what stands before them, and after."""
    head = f'{{"kind":"Table","apiVersion":"meta.k8s.io/{version}","metadata":'.encode()
    return b'%b%b,"columnDefinitions":' % (head, metadata), b',"rows":[%b]}' % found


def metadata_of_one(data: bytes) -> bytes:
    """A table of one object is at that object's version."""
    version = msgspec.json.decode(_cut.decode(data).metadata, type=_Version).resourceVersion
    return f'{{"resourceVersion":"{version}"}}'.encode() if version else b"{}"


class _Version(msgspec.Struct, gc=False):
    resourceVersion: str = ""  # noqa: N815 - as it is written


def columns(resource: Resource) -> bytes:
    return _encode(
        [
            {
                "name": one.name,
                "type": one.type,
                "format": one.format,
                "description": one.description,
                "priority": one.priority,
            }
            for one in resource.columns
        ]
    )


def table_rows(
    resource: Resource,
    items: Sequence[bytes],
    *,
    now: datetime,
    include: Include,
    version: str = "v1",
    is_list: bool = True,
) -> bytes:
    """The rows, as the inside of a JSON list."""
    objects: list[dict[str, Any]] = [msgspec.json.decode(one) for one in items]
    from setpoint.server.http.printers import rows  # noqa: PLC0415 - of every kind, and for people alone

    found = rows(resource, objects, now, is_list=is_list)
    return b",".join(_row(row, data, include, version) for row, data in zip(found, items, strict=True))


def _row(row: Row, data: bytes, include: Include, version: str) -> bytes:
    shown = partial(data, version) if include == "Metadata" else data if include == "Object" else b"null"
    conditions = b',"conditions":%b' % _encode([row.condition]) if row.condition else b""
    return b'{"cells":%b%b,"object":%b}' % (_encode(row.cells), conditions, shown)


def check_single(kind: str, resource: Resource) -> None:
    """One object is not a list of metadata."""
    if kind == "partial list":
        told = "you requested PartialObjectMetadataList, but the requested object is not a list"
        told += f" ({_go_type(resource, resource.kind)})"
        raise StatusError(406, "NotAcceptable", told)


def check_list(kind: str, resource: Resource) -> None:
    if kind == "partial":
        told = "you requested PartialObjectMetadata, but the requested object is a list"
        told += f" ({_go_type(resource, resource.list_kind or resource.kind + 'List')})"
        raise StatusError(406, "NotAcceptable", told)


def _go_type(resource: Resource, kind: str) -> str:
    """As the real server names what it holds."""
    if resource.is_custom:
        return "*unstructured.Unstructured" + ("List" if kind != resource.kind else "")
    return f"*{resource.group.partition('.')[0] or 'core'}.{kind}"


prepare(_Version)
