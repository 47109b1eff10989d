"""Takes the roles and bindings that a real kube-apiserver begins with: part of ``make facts``.

They are kept as it stores them, without what it chose itself (uids, versions, times), in the order in which
it lists them.  ``setpoint.server.authorization.defaults`` reads the result.
"""

from __future__ import annotations

import http.client
import json
import ssl
import zlib
from pathlib import Path
from typing import Any

from setpoint.testing.kube import ControlPlane

GROUP = "/apis/rbac.authorization.k8s.io/v1"
PLURALS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
TABLE = (
    Path(__file__).parent.parent.parent / "src" / "setpoint" / "server" / "authorization" / "defaults.json.z"
)


def defaults(plane: ControlPlane) -> list[list[Any]]:
    """[plural, object] of every role and binding."""
    context = ssl.create_default_context(cafile=plane.ca_file)
    context.load_cert_chain(plane.admin_certificate, plane.admin_key)
    connection = http.client.HTTPSConnection(plane.url.removeprefix("https://"), context=context)
    found = []
    for plural in PLURALS:
        connection.request("GET", f"{GROUP}/{plural}")
        listed = json.loads(connection.getresponse().read())
        kind = listed["kind"].removesuffix("List")
        found += [
            [plural, {"kind": kind, "apiVersion": listed["apiVersion"], **blank(item)}]
            for item in listed["items"]
        ]
    return found


def blank(item: dict[str, Any]) -> dict[str, Any]:
    """Each place where the server put something of its own is kept, empty."""
    metadata = {**item["metadata"], "uid": "", "resourceVersion": "", "creationTimestamp": ""}
    metadata["managedFields"] = [{**one, "time": ""} for one in metadata["managedFields"]]
    return {**item, "metadata": metadata}


def main() -> None:
    with ControlPlane() as plane:
        found = defaults(plane)
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    TABLE.write_bytes(zlib.compress(text, 9))
    print(f"facts: {len(found)} roles and bindings, {TABLE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
