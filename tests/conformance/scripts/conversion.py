"""Custom kinds of several versions, which a webhook converts into one another."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from typing import Any

from tests.conformance.asking import APPLY, MERGE, Json, Put, Script, Step
from tests.conformance.scripts.reading import TABLE

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


def _rewritten() -> list[Step]:
    """A kind is moved to another version by writing its objects anew; then the old version goes."""
    group = "rewrite.example.com"
    one, two = _sizes(group, "v1"), _sizes(group, "v2")
    path = f"{_DEFINITIONS}/sizes.{group}"
    both = [_version("v1", _SIZE), _version("v2", _WIDTH, storage=True)]
    alone = [_version("v2", _WIDTH, storage=True)]
    return [
        *_defined(group, "/convert"),
        Step("POST", one, _size(group, "v1", "a"), name="made"),
        Step("PATCH", path, {"spec": {"versions": both}}, MERGE, is_quiet=True),
        # A moment passes until a server stores in the other version: what is written before may be in either.
        Step("POST", two, _size(group, "v2", "w"), is_quiet=True),
        Step("GET", path, until_has='"storedVersions":["v1","v2"]', is_quiet=True),
        Step("GET", f"{one}/a", name="before"),
        Step("PUT", f"{one}/a", Put("before"), name="rewritten"),
        Step("PATCH", f"{path}/status", {"status": {"storedVersions": ["v2"]}}, MERGE, is_quiet=True),
        Step("PATCH", path, {"spec": {"versions": alone, "conversion": {"strategy": "None", "webhook": None}}}, MERGE, is_quiet=True),
        Step("GET", one, until=404, is_quiet=True),
        Step("GET", f"{two}/a", name="without v1"),
        Step("PATCH", f"{two}/a", {"spec": {"width": 8}}, MERGE, name="changed without v1", only=("apiVersion", "spec")),
        Step("DELETE", path, is_quiet=True),
    ]  # fmt: skip


def _dropped(group: str, **spec: Json) -> list[Step]:
    """A version goes though an object is stored in it: nobody can tell what that object is in another."""
    one, two = _sizes(group, "v1"), _sizes(group, "v2")
    path = f"{_DEFINITIONS}/sizes.{group}"
    before = [_version("v1", _SIZE), _version("v2", _WIDTH, storage=True)]
    probe = {"name": "Probe", "type": "string", "jsonPath": ".spec.kind"}  # shows when v1 is stored
    after = [_version("v1", _SIZE, storage=True, additionalPrinterColumns=[probe]), _version("v2", _WIDTH)]
    elsewhere = one.replace("${namespace}", "default")
    return [
        *_defined(group, "/convert", versions=before, **spec),
        Step("POST", two, _size(group, "v2", "left"), name="left"),
        Step("POST", two, _size(group, "v2", "left-too"), is_quiet=True),
        Step("POST", two, _size(group, "v2", "moved"), is_quiet=True),
        Step("PATCH", path, {"spec": {"versions": after}}, MERGE, is_quiet=True),
        Step("GET", one, headers={"Accept": TABLE}, until_has="Probe", is_quiet=True),
        Step("PATCH", f"{two}/moved", {"metadata": {"labels": {"is": "moved"}}}, MERGE, is_quiet=True),
        Step("PATCH", f"{path}/status", {"status": {"storedVersions": ["v1"]}}, MERGE, is_quiet=True),
        Step("PATCH", path, {"spec": {"versions": after[:1]}}, MERGE, is_quiet=True),
        Step("GET", two, until=404, is_quiet=True),
        Step("GET", f"{one}/left", until=500, name="read"),
        Step("GET", f"{one}/left?resourceVersion=0", name="read at any version"),
        Step("GET", f"{one}/moved", name="another is read"),
        Step("PATCH", f"{one}/left", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="patched"),
        Step("PUT", f"{one}/left", _size(group, "v1", "left", metadata={"resourceVersion": "${left.metadata.resourceVersion}"}), name="put"),
        Step("POST", one, _size(group, "v1", "left"), name="made again"),
        Step("PATCH", f"{one}/moved", {"spec": {"size": 3}}, MERGE, name="another is patched"),
        Step("DELETE", f"{one}/left", name="deleted"),
        Step("GET", one, name="listed"),
        Step("GET", f"{one}?limit=1", name="listed in pages"),
        Step("GET", f"{elsewhere}?limit=1", name="listed in pages elsewhere"),
        Step("GET", f"{one}?resourceVersion=0", name="listed at any version"),
        Step("GET", elsewhere, name="listed elsewhere"),
        Step("GET", f"{one}?watch=true&timeoutSeconds=1", name="watched"),
        Step("GET", f"{one}?watch=true&timeoutSeconds=1&resourceVersion=${{left.metadata.resourceVersion}}", name="watched from then on"),
        Step("DELETE", one, name="all deleted"),
        Step("PATCH", path, {"spec": {"versions": after}}, MERGE, is_quiet=True),
        Step("GET", two, until=200, is_quiet=True),
        Step("GET", f"{one}/left", name="read with its version again"),
        Step("DELETE", path, is_quiet=True),
        Step("GET", path, until=404, is_quiet=True),
    ]  # fmt: skip


def _gone() -> list[Step]:
    """A definition goes though nobody converts its objects any more."""
    group = "gone.example.com"
    path = f"{_DEFINITIONS}/sizes.{group}"
    versions = [_version("v1", _SIZE), _version("v2", _WIDTH, storage=True)]
    broken = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": _client("/convert/error"), "conversionReviewVersions": ["v1"]},
    }
    return [
        *_defined(group, "/convert", versions=versions),
        Step("POST", _sizes(group, "v2"), _size(group, "v2", "a"), is_quiet=True),
        Step("PATCH", path, {"spec": {"conversion": broken}}, MERGE, is_quiet=True),
        Step("GET", f"{_sizes(group, 'v1')}/a", until=500, is_quiet=True),
        Step("DELETE", f"{_sizes(group, 'v1')}/a", name="an object in v1"),
        Step("DELETE", path, is_quiet=True),
        Step("GET", path, until=404, name="gone"),
    ]  # fmt: skip


def _selected() -> list[Step]:
    """Field selectors go by the version that is asked for."""
    group = "select.example.com"
    versions = [
        _version("v1", _SIZE, storage=True, selectableFields=[{"jsonPath": ".spec.size"}]),
        _version("v2", _WIDTH, selectableFields=[{"jsonPath": ".spec.width"}]),
    ]
    one, two = _sizes(group, "v1"), _sizes(group, "v2")
    return [
        *_defined(group, "/convert", versions=versions),
        *(
            Step("POST", two, _size(group, "v2", name, spec={"width": width}), name=name, is_quiet=True)
            for name, width in (("a", 1), ("b", 2))
        ),
        Step("GET", f"{one}?fieldSelector=spec.size%3D2", name="in v1"),
        Step("GET", f"{two}?fieldSelector=spec.width%3D2", name="in v2"),
        Step("GET", f"{two}?fieldSelector=spec.width%3D3", name="none in v2"),
        Step("GET", f"{two}?fieldSelector=spec.size%3D2", name="of v1 in v2"),
        Step("GET", f"{two}?fieldSelector=spec.width%3D2&watch=true&timeoutSeconds=1", name="watched in v2"),
        Step("GET", f"{two}?fieldSelector=spec.width%3D2&watch=true&timeoutSeconds=1&resourceVersion=${{a.metadata.resourceVersion}}", name="watched in v2 from then on"),
        Step("DELETE", f"{two}?fieldSelector=spec.width%3D2", name="deleted in v2"),
        Step("GET", one, name="left"),
    ]  # fmt: skip


def _params() -> list[Step]:
    """A policy is given its parameters in the version that it names."""
    group, here = "params.example.com", {"matchLabels": {"kubernetes.io/metadata.name": "${namespace}"}}
    root, maps = (
        "/apis/admissionregistration.k8s.io/v1",
        "/api/v1/namespaces/${namespace}/configmaps?dryRun=All",
    )
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    policy = {
        "metadata": {"name": "${namespace}"},
        "spec": {
            "paramKind": {"apiVersion": f"{group}/v2", "kind": "Size"},
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
            "validations": [
                {
                    "expression": "object.data.width == string(params.spec.width)",
                    "messageExpression": "'not ' + string(params.spec.width)",
                }
            ],
        },
    }
    ref = {"name": "a", "namespace": "${namespace}", "parameterNotFoundAction": "Deny"}
    binding = {
        "metadata": {"name": "${namespace}"},
        "spec": {"policyName": "${namespace}", "paramRef": ref, "validationActions": ["Deny"]},
    }
    return [
        *_defined(group, "/convert"),
        Step("POST", _sizes(group, "v1"), _size(group, "v1", "a", spec={"size": 7}), is_quiet=True),
        Step("POST", f"{root}/validatingadmissionpolicies", policy, is_quiet=True),
        Step("POST", f"{root}/validatingadmissionpolicybindings", binding, is_quiet=True),
        Step("POST", maps, {"metadata": {"name": "m"}, "data": {"width": "8"}}, until_has="not 7", name="another width"),
        Step("POST", maps, {"metadata": {"name": "m"}, "data": {"width": "7"}}, name="this width"),
        Step("DELETE", f"{root}/validatingadmissionpolicybindings/${{namespace}}", is_quiet=True),
        Step("DELETE", f"{root}/validatingadmissionpolicies/${{namespace}}", is_quiet=True),
    ]  # fmt: skip


def _one_way() -> list[Step]:
    """What is written can be stored, but not shown."""
    group = "oneway.example.com"
    one, two = _sizes(group, "v1"), _sizes(group, "v2")
    return [
        *_defined(group, "/convert/one-way"),
        Step("POST", two, _size(group, "v2", "a"), name="made"),
        Step("POST", f"{two}?dryRun=All", _size(group, "v2", "b"), name="made dry"),
        Step("GET", f"{one}/a", name="stored"),
        Step("PATCH", f"{two}/c?fieldManager=me", _size(group, "v2", "c"), APPLY, name="applied"),
        Step("GET", one, name="all that are stored"),
        # Who owns fields in v2 cannot be told what became of them.
        Step("PATCH", f"{one}/a?fieldManager=it", {"spec": {"size": 5}}, MERGE, name="changed in v1"),
        Step("PUT", f"{one}/a?fieldManager=it", Put("changed in v1", {"spec": {"size": 6}}), name="put in v1"),
        Step("PATCH", f"{one}/a?fieldManager=me&force=true", _size(group, "v1", "a", spec={"size": 7}), APPLY, name="applied in v1"),
        Step("GET", f"{one}/a", name="left in v1"),
    ]  # fmt: skip


def _owned(path: str, group: str) -> list[Step]:
    """A field has its owners in whatever version they name it."""
    status = {"type": "object", "properties": {"seen": {"type": "string"}}}

    def version(name: str, spec: Json, *, storage: bool = False) -> Json:
        made = _version(name, spec, storage=storage, subresources={"status": {}})
        made["schema"]["openAPIV3Schema"]["properties"]["status"] = status
        return made

    versions = [version("v1", _SIZE, storage=True), version("v2", _WIDTH), version("v3", _WIDTH)]
    one, two = _sizes(group, "v1"), _sizes(group, "v2")

    def applied(
        version: str, name: str, manager: str, *, query: str = "", told: str = "", **spec: Json
    ) -> Step:
        target = f"{_sizes(group, version)}/{name}?fieldManager={manager}{query}"
        told = told or f"{name}: {manager} applies {spec or 'nothing'} in {version}{query}"
        return Step("PATCH", target, _size(group, version, name, spec=spec), APPLY, name=told)

    return [
        *_defined(group, path, versions=versions),
        Step("GET", _sizes(group, "v3"), until=200, is_quiet=True),
        applied("v1", "a", "one", size=4),
        applied("v2", "a", "two", width=5, query="&dryRun=All"),
        applied("v2", "a", "two", width=5),
        applied("v2", "a", "two", width=4),
        applied("v1", "a", "one", size=6),
        applied("v1", "a", "one", size=4, told="a: one applies the same"),
        applied("v1", "a", "one"),
        applied("v2", "a", "two", width=7),
        applied("v2", "a", "two"),
        Step("GET", f"{one}/a", name="a in the end"),
        # One applier in two versions.
        applied("v1", "b", "one", size=1),
        applied("v2", "b", "one", width=2),
        applied("v2", "b", "one", kind="broad"),
        applied("v1", "b", "one", size=3, kind="broad"),
        applied("v2", "b", "one", kind="broad", told="b: one applies without the width"),
        Step("GET", f"{one}/b", name="b in the end"),
        # Taken by force, in either direction.
        applied("v1", "c", "one", size=1, kind="broad"),
        applied("v2", "c", "two", width=2, query="&force=true"),
        applied("v1", "c", "one", size=3, query="&force=true"),
        # Owned by those who do not apply.
        Step("POST", f"{one}?fieldManager=maker", _size(group, "v1", "d"), name="d: made in v1"),
        Step("PATCH", f"{two}/d?fieldManager=changer", {"spec": {"width": 3}}, MERGE, name="d: changed in v2"),
        applied("v1", "d", "one", size=4),
        applied("v1", "d", "one", size=4, query="&force=true"),
        applied("v2", "d", "two", width=5),
        # In three versions.
        applied("v1", "e", "one", size=1, kind="broad"),
        applied("v2", "e", "two", width=1, kind="broad"),
        applied("v3", "e", "three", width=1),
        applied("v1", "e", "one", kind="broad"),
        applied("v2", "e", "two", kind="broad"),
        applied("v3", "e", "three"),
        # What a version's endpoint does not write it does not own, either.
        Step("PATCH", f"{two}/e/status?fieldManager=seer", {"status": {"seen": "yes"}}, MERGE, name="e: status in v2"),
        Step("GET", f"{one}/e", name="e before"),
        Step("PUT", f"{one}/e?fieldManager=putter", Put("e before", {"status": {"seen": "no"}}), name="e: put in v1"),
        Step("PATCH", f"{one}/e/status?fieldManager=one", {"apiVersion": f"{group}/v1", "kind": "Size", "metadata": {"name": "e"}, "status": {"seen": "no"}}, APPLY, name="e: status applied in v1"),
        Step("PATCH", f"{one}/e/status?fieldManager=one&force=true", {"apiVersion": f"{group}/v1", "kind": "Size", "metadata": {"name": "e"}, "status": {"seen": "no"}}, APPLY, name="e: status applied in v1 by force"),
        Step("GET", f"{two}/e", name="e in the end"),
        # Its annotations and labels are the same in every version, if the webhook leaves them so.
        Step("PATCH", f"{one}/f?fieldManager=one", _size(group, "v1", "f", metadata={"labels": {"a": "b", "c": "d"}}), APPLY, name="f: labels in v1"),
        Step("PATCH", f"{two}/f?fieldManager=two", _size(group, "v2", "f", metadata={"labels": {"a": "x"}}, spec={}), APPLY, name="f: other labels in v2"),
        Step("PATCH", f"{two}/f?fieldManager=two", _size(group, "v2", "f", metadata={"labels": {"a": "b"}}, spec={}), APPLY, name="f: the same labels in v2"),
        applied("v1", "f", "one", size=1),
        Step("DELETE", f"{_DEFINITIONS}/sizes.{group}", is_quiet=True),
    ]  # fmt: skip


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


def _mistyped() -> list[Step]:
    steps: list[Step] = []
    words = "text number null empty objects metadata labels label annotation result status message"
    for word in words.split():
        group = f"t-{word}.example.com"
        steps += [
            *_defined(group, f"/convert/types/{word}"),
            Step("POST", _sizes(group, "v1"), _size(group, "v1", "a"), is_quiet=True),
            Step("GET", f"{_sizes(group, 'v2')}/a", name=f"{word}: read"),
            Step("POST", _sizes(group, "v2"), _size(group, "v2", "b"), name=f"{word}: made"),
        ]
    return steps


SCRIPTS = [
    Script("conversion by webhook", _between()),
    Script("conversion asked for", _asked()),
    Script("conversion and storage", _migrated()),
    Script("conversion and rewriting", _rewritten()),
    Script(
        "conversion from a version that is gone",
        _dropped("dropped.example.com", conversion={"strategy": "None"}),
    ),
    Script("conversion by webhook from a version that is gone", _dropped("unhooked.example.com")),
    Script("conversion and deletion", _gone()),
    Script("conversion and field selectors", _selected()),
    Script("conversion of parameters", _params()),
    Script("conversion one way", _one_way()),
    Script("conversion and owners", _owned("/convert", "owners.example.com")),
    Script("conversion and owners by a webhook that labels", _owned("/convert/labels", "labels.example.com")),
    Script("conversion answers of wrong types", _mistyped()),
    Script("conversion failing", _failing()),
]
