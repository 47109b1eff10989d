"""Custom kinds of several versions, which a webhook converts into one another."""

from __future__ import annotations

from typing import Any

from tests.conformance.asking import APPLY, MERGE, Json, Put, Script, Step

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SIZE = {
    "type": "object",
    "properties": {"size": {"type": "integer"}, "kind": {"type": "string", "default": "plain"}},
}
_WIDTH = {
    "type": "object",
    "properties": {"width": {"type": "integer"}, "kind": {"type": "string", "default": "wide"}},
}


def _version(name: str, spec: Json, *, storage: bool = False, **more: Json) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": storage, "schema": schema, **more}


def _client(path: str) -> Json:
    return {"url": "${hooks.url}" + path, "caBundle": "${hooks.ca}"}


def _definition(group: str, path: str, **spec: Json) -> Json:
    names = {"plural": "sizes", "singular": "size", "kind": "Size", "listKind": "SizeList"}
    webhook = {"clientConfig": _client(path), "conversionReviewVersions": ["v1"]}
    return {
        "metadata": {"name": f"sizes.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [_version("v1", _SIZE, storage=True), _version("v2", _WIDTH)],
            **spec,
        },
    }


def _defined(group: str, path: str, **spec: Json) -> list[Step]:
    return [
        Step("POST", _DEFINITIONS, _definition(group, path, **spec), is_quiet=True),
        Step("GET", f"{_DEFINITIONS}/sizes.{group}", until_says="Established=True", is_quiet=True),
        *(Step("GET", _sizes(group, version), until=200, is_quiet=True) for version in ("v1", "v2")),
    ]


def _sizes(group: str, version: str) -> str:
    return f"/apis/{group}/{version}/namespaces/${{namespace}}/sizes"


def _size(group: str, version: str, name: str, **more: Any) -> Json:
    spec = {"size": 1} if version == "v1" else {"width": 2}
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "Size",
        "metadata": {"name": name, **more.pop("metadata", {})},
        "spec": more.pop("spec", spec),
    }


def _between() -> list[Step]:
    group = "convert.example.com"
    one, two = _sizes(group, "v1"), _sizes(group, "v2")
    return [
        *_defined(group, "/convert"),
        Step("POST", one, _size(group, "v1", "a"), name="made in v1"),
        Step("GET", f"{two}/a", name="read in v2"),
        Step("POST", two, _size(group, "v2", "b"), name="made in v2"),
        Step("GET", f"{one}/b", name="read in v1"),
        Step("GET", one, name="listed in v1"),
        Step("GET", two, name="listed in v2"),
        Step("GET", f"{two}?labelSelector=none%3Dsuch", name="none in v2"),
        Step("PUT", f"{two}/b", Put("made in v2", {"spec": {"width": 7}}), name="put in v2"),
        Step("PATCH", f"{two}/a", {"spec": {"width": 5}}, MERGE, name="patched in v2"),
        Step("GET", f"{one}/a", name="read in v1 after that"),
        Step("PATCH", f"{two}/b", {"spec": {"width": 7}}, MERGE, name="patched to the same"),
        Step(
            "PATCH",
            f"{two}/c?fieldManager=me",
            _size(group, "v2", "c"),
            APPLY,
            name="applied in v2",
        ),
        Step(
            "PATCH",
            f"{two}/c?fieldManager=me",
            _size(group, "v2", "c", spec={"width": 9}),
            APPLY,
            name="applied in v2 again",
        ),
        Step("POST", f"{two}?dryRun=All", _size(group, "v2", "d"), name="dry in v2"),
        Step("GET", f"{two}?watch=true&timeoutSeconds=1&resourceVersion=0", lines=3, name="watched in v2"),
        Step("DELETE", f"{two}/c", name="deleted in v2"),
        Step(
            "POST", two, _size(group, "v2", "e", metadata={"finalizers": ["example.com/held"]}), name="held"
        ),
        Step("DELETE", f"{two}/e", name="held and deleted"),
        Step("PATCH", f"{two}/e", {"metadata": {"finalizers": None}}, MERGE, name="let go"),
        Step("DELETE", two, name="all deleted in v2"),
        Step("DELETE", f"{_DEFINITIONS}/sizes.{group}", is_quiet=True),
    ]


def _asked() -> list[Step]:
    """The real server asks about an object more than once: for itself, and for those who watch."""
    group = "asked.example.com"
    return [
        *_defined(group, "/convert"),
        Step("POST", _sizes(group, "v1"), _size(group, "v1", "a"), name="made in v1"),
        Step("GET", f"{_sizes(group, 'v2')}/a", name="read in v2"),
        Step("ASKED", "/convert", name="asked about v1", lines=1),
    ]


def _migrated() -> list[Step]:
    group = "migrate.example.com"
    one, two = _sizes(group, "v1"), _sizes(group, "v2")
    path = f"{_DEFINITIONS}/sizes.{group}"
    versions = [_version("v1", _SIZE), _version("v2", _WIDTH, storage=True)]
    later = [_version("v1", _SIZE, deprecated=True), _version("v2", _WIDTH, storage=True)]
    alone = [_version("v2", _WIDTH, storage=True)]
    return [
        *_defined(group, "/convert"),
        Step("POST", one, _size(group, "v1", "a"), name="made in v1"),
        Step("PATCH", path, {"spec": {"versions": versions}}, MERGE, name="v2 is stored", only=("kind",)),
        Step("POST", two, _size(group, "v2", "w"), is_quiet=True),
        Step("GET", path, name="the stored versions", only=("status",)),
        Step("GET", f"{one}/a", name="a in v1"),
        Step("GET", f"{two}/a", name="a in v2"),
        Step(
            "PATCH",
            path,
            {"spec": {"versions": alone}},
            MERGE,
            name="v1 is still stored",
            only=("kind", "message"),
        ),
        Step(
            "PATCH",
            f"{path}/status",
            {"status": {"storedVersions": ["v2"]}},
            MERGE,
            name="v1 is migrated",
            only=("kind",),
        ),
        Step("PATCH", path, {"spec": {"versions": later}}, MERGE, name="v1 is deprecated", only=("kind",)),
        Step("GET", "/apis/migrate.example.com", name="the group"),
        Step("DELETE", path, is_quiet=True),
    ]


def _failing() -> list[Step]:
    paths = [
        "/convert/failed",
        "/convert/unsaid",
        "/convert/few",
        "/convert/same",
        "/convert/name",
        "/convert/labels",
        "/convert/uid",
        "/convert/nothing",
        "/convert/error",
        "/garbage",
        "/nothing",
    ]
    steps: list[Step] = []
    for place, path in enumerate(paths):
        group = f"f{place}.example.com"
        steps += [
            *_defined(group, path),
            Step("POST", _sizes(group, "v1"), _size(group, "v1", "a"), is_quiet=True),
            Step("GET", f"{_sizes(group, 'v2')}/a", name=f"{path}: read"),
            Step("GET", _sizes(group, "v2"), name=f"{path}: listed"),
            Step("POST", _sizes(group, "v2"), _size(group, "v2", "b"), name=f"{path}: made"),
            Step("PATCH", f"{_sizes(group, 'v2')}/a", {"spec": {"width": 3}}, MERGE, name=f"{path}: patched"),
        ]
    return steps


SCRIPTS = [
    Script("conversion by webhook", _between()),
    Script("conversion asked for", _asked()),
    Script("conversion and storage", _migrated()),
    Script("conversion failing", _failing()),
]
