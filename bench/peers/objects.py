"""The objects that everyone is given, made from one Pod that was recorded from a kube-apiserver.

6 KB as JSON, 4 KB as protobuf, managedFields included.  Names, uids, versions, addresses and nodes differ,
ten share an owner; whatever is put in is as long as what was there, so that the lengths inside protobuf stay
true.  A Workload is a custom resource with the same content.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parent.parent / "data"
GROUP: Final = "bench.setpoint.dev"
FIRST_VERSION: Final = 100_100_000
PORT: Final = 8080  # the first of the first container
PLURALS: Final = {"Pod": "pods", "Workload": "workloads"}
PATHS: Final = {"Pod": "/api/v1", "Workload": f"/apis/{GROUP}/v1"}

_POD: Final = (
    (DATA / "pod.json")
    .read_bytes()
    .strip()
    .replace(b'"resourceVersion":"283"', b'"resourceVersion":"100000283"')
)
_POD_PROTOBUF: Final = (DATA / "pod.pb").read_bytes()
_TYPES: Final = {
    "Pod": b'"kind":"Pod","apiVersion":"v1",',
    "Workload": b'"apiVersion":"bench.setpoint.dev/v1","kind":"Workload",',
}


def json_of(kind: str, number: int, version: int, *, is_item: bool = False) -> bytes:
    """The object as kube-apiserver writes it: an item in a list of a built-in kind does not name its kind."""
    made = _made(_POD, number, version)
    return made if is_item and kind == "Pod" else b"{" + _TYPES[kind] + made[1:]


def protobuf_of(number: int, version: int) -> bytes:
    """The Pod as a bare protobuf message."""
    return _made(_POD_PROTOBUF, number, version)


def name_of(number: int) -> str:
    return f"web-{number // 10:010x}-{number:05x}"


def _made(template: bytes, number: int, version: int) -> bytes:
    made = template
    for old, new in (
        (b"663f969b-7325", b"%08x-7325" % number),  # its uid
        (b"8jqzv", b"%05x" % number),  # the end of its name
        (b"100000283", b"%09d" % version),
        (b"0ef609bd", b"%08x" % (number // 10)),  # the uid of its owner
        (b"68bfd54d59", b"%010x" % (number // 10)),  # the hash in its owner's name, and in its label
        (b"10.1.0.17", b"10.%d.%d.%d" % (number // 900 % 10, number // 90 % 10, 10 + number % 90)),
        (b"worker-1", b"node-%03d" % (number % 200)),
        (b"kube-api-access-rbj76", b"kube-api-access-%05x" % number),
    ):
        made = made.replace(old, new)
    return made


def webapp(namespace: str, number: int) -> bytes:
    """A WebApp as etcd has it, that nobody has looked at."""
    return json.dumps(
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "WebApp",
            "metadata": {
                "name": f"webapp-{number}",
                "namespace": namespace,
                "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{namespace}/{number}")),
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "generation": 1,
            },
            "spec": {"image": str(number), "replicas": 1},
        }
    ).encode()


# ---- protobuf, as far as lists and watches need it -------------------------------------------------


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def enveloped(kind: str, content: bytes) -> bytes:
    """What stands around every protobuf object: a magic number, its kind, and the message."""
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, kind.encode())) + field(2, content)


def protobuf_list(items: Iterable[bytes], version: int, token: str) -> bytes:
    metadata = field(2, b"%d" % version) + field(3, token.encode())
    return enveloped("PodList", field(1, metadata) + b"".join(field(2, item) for item in items))


def protobuf_event(type_: str, pod: bytes) -> bytes:
    event = field(1, type_.encode()) + field(2, field(1, enveloped("Pod", pod)))
    return len(event).to_bytes(4, "big") + event


def protobuf_bookmark(version: int) -> bytes:
    annotation = field(1, b"k8s.io/initial-events-end") + field(2, b"true")
    return protobuf_event("BOOKMARK", field(1, field(6, b"%d" % version) + field(12, annotation)))


def json_event(type_: str, content: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), content)


def json_bookmark(kind: str, version: int) -> bytes:
    metadata = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
    # kube-apiserver's own has a spec without containers: typed readers must find what they need
    rest = b'"metadata":%s,"spec":{"containers":null},"status":{}}' % json.dumps(metadata).encode()
    return json_event("BOOKMARK", b"{" + _TYPES[kind] + rest)


def chunked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Each piece in a chunk of its own, as a server sends them that flushes every event."""
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)


# ---- what a server needs to know of the custom kinds -----------------------------------------------


def definition(kind: str) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind that takes what it is given."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": anything, "status": anything},
                        }
                    },
                    "subresources": {"status": {}},
                }
            ],
        },
    }
