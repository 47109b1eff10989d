"""Admission policies: what their expressions see, what follows from them, and what is refused of them.

A policy takes a moment until the real server goes by it.  So each refuses what has the label ``probe``, and a
script asks for that until it is refused.
"""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from dataclasses import replace
from typing import Any

from setpoint.api.patches import apply_merge
from tests.conformance.asking import MERGE, Json, Script, Step

_ROOT = "/apis/admissionregistration.k8s.io/v1"
_CORE = "/api/v1/namespaces/${namespace}"
_MAPS = f"{_CORE}/configmaps"
_APPS = "/apis/apps/v1/namespaces/${namespace}"
_HERE = {"matchLabels": {"kubernetes.io/metadata.name": "${namespace}"}}
_PROBE = (
    "!(has(object.metadata.labels) && 'probe' in object.metadata.labels "
    "&& object.metadata.labels.probe == '{}')"
)
_MAP_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


def _policy(name: str, *validations: Json, rules: Json = None, **spec: Json) -> Json:
    return {
        "metadata": {"name": "${namespace}-" + name},
        "spec": {
            "matchConstraints": {"resourceRules": rules or [_MAP_RULE], "namespaceSelector": _HERE},
            "validations": [one if isinstance(one, dict) else {"expression": one} for one in validations],
            **spec,
        },
    }


def _binding(name: str, policy: str, *actions: str, **spec: Json) -> Json:
    return {
        "metadata": {"name": "${namespace}-" + name},
        "spec": {
            "policyName": "${namespace}-" + policy,
            "validationActions": list(actions) or ["Deny"],
            **spec,
        },
    }


def _probed(name: str, code: int = 422) -> Step:
    body = {"metadata": {"name": "probe", "labels": {"probe": name}}}
    return Step("POST", f"{_MAPS}?dryRun=All", body, until=code, is_quiet=True)


def _bound(
    name: str, *validations: Json, actions: tuple[str, ...] = ("Deny",), binding: Json = None, **spec: Any
) -> list[Step]:
    """A policy with its binding, and the wait until they are gone by."""
    guard = {"expression": f"request.operation == 'DELETE' || {_PROBE.format(name)}", "message": "probe"}
    policies, bindings = f"{_ROOT}/validatingadmissionpolicies", f"{_ROOT}/validatingadmissionpolicybindings"
    return [
        Step("POST", policies, _policy(name, guard, **spec.pop("guard", {})), is_quiet=True),
        Step("POST", bindings, _binding(name, name), is_quiet=True),
        Step("POST", policies, _policy(f"{name}-x", *validations, **spec), is_quiet=True),
        Step(
            "POST", bindings, _binding(f"{name}-x", f"{name}-x", *actions, **(binding or {})), is_quiet=True
        ),
        _probed(name),
        # The second may come a moment after the first.
        Step(
            "POST", f"{_ROOT}/validatingadmissionpolicies?dryRun=All", _policy("wait", "true"), is_quiet=True
        ),
    ]


def _unbound(name: str) -> list[Step]:
    return [
        Step("DELETE", f"{_ROOT}/validatingadmissionpolicybindings/${{namespace}}-{name}-x", is_quiet=True),
        Step("DELETE", f"{_ROOT}/validatingadmissionpolicybindings/${{namespace}}-{name}", is_quiet=True),
        Step("DELETE", f"{_ROOT}/validatingadmissionpolicies/${{namespace}}-{name}-x", is_quiet=True),
        Step("DELETE", f"{_ROOT}/validatingadmissionpolicies/${{namespace}}-{name}", is_quiet=True),
        _probed(name, 201),
    ]


def _made(name: str, code: int = 0, **more: Json) -> Step:
    body = {"metadata": {"name": name, **more.pop("metadata", {})}, **more}
    return Step("POST", _MAPS, body, name=name, until=code)


def _judging() -> list[Step]:
    validations = [
        "object.metadata.name != 'plain'",
        {"expression": "object.metadata.name != 'told'", "message": "told so"},
        {"expression": "object.metadata.name != 'reasoned'", "message": "no", "reason": "Forbidden"},
        {"expression": "object.metadata.name != 'large'", "reason": "RequestEntityTooLarge"},
        {
            "expression": "object.metadata.name != 'composed'",
            "messageExpression": "'not ' + object.metadata.name",
        },
        {
            "expression": "object.metadata.name != 'miscomposed'",
            "message": "as said",
            "messageExpression": "string(object.metadata.absent.name)",
        },
        "object.metadata.name != 'failing' || object.metadata.absent == 'a'",
        "variables.named != 'varied'",
        "object.metadata.name != 'misvaried' || variables.broken == 'a'",
        "!has(object.data) || object.data.all(key, size(object.data[key]) < 5)",
        "object.metadata.name != 'namespaced' || namespaceObject.metadata.name != '${namespace}'",
        "object.metadata.name != 'asked' || request.userInfo.username != 'admin'",
        "object.metadata.name != 'below' || has(request.subResource)",
        (
            "object.metadata.name != 'allowed' || !authorizer.group('').resource('pods')"
            ".namespace('default').check('create').allowed()"
        ),
        "object.metadata.name != 'requested' || !authorizer.requestResource.check('odd').allowed()",
        {
            "expression": "object.metadata.name != 'account' || authorizer.serviceAccount('default', 'a')"
            ".path('/metrics').check('get').allowed()",
            "message": "not for a",
        },
        "oldObject == null || !has(oldObject.data) || oldObject.data == object.data",
    ]
    variables = [
        {"name": "named", "expression": "object.metadata.name"},
        {"name": "broken", "expression": "object.metadata.absent"},
    ]
    rule = {**_MAP_RULE, "operations": ["CREATE", "UPDATE"]}
    return [
        *_bound("judging", *validations, rules=[rule], variables=variables),
        _made("plain", 422),
        *(
            _made(name)
            for name in (
                "told",
                "reasoned",
                "large",
                "composed",
                "miscomposed",
                "failing",
                "varied",
                "misvaried",
                "namespaced",
                "asked",
                "below",
                "allowed",
                "requested",
                "account",
            )
        ),
        _made("long", data={"a": "12345"}),
        _made("good", data={"a": "1234"}),
        Step("PATCH", f"{_MAPS}/good", {"data": {"a": "b"}}, MERGE, name="changed"),
        Step("DELETE", f"{_MAPS}/good", name="deleted"),
        Step("POST", _MAPS, {"metadata": {"generateName": "plain"}}, name="generated", only=("kind",)),
        *_unbound("judging"),
    ]


def _actions() -> list[Step]:
    return [
        *_bound(
            "warning",
            "object.metadata.name != 'warned'",
            {"expression": "object.metadata.name != 'warned'", "message": "second"},
            actions=("Warn", "Audit"),
        ),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": "warned"}}, name="warned"),
        *_unbound("warning"),
        *_bound(
            "auditing",
            "object.metadata.name != 'audited'",
            actions=("Audit",),
            auditAnnotations=[{"key": "who", "valueExpression": "'me'"}],
        ),
        _made("audited"),
        *_unbound("auditing"),
        *_bound("ignoring", "object.metadata.absent.name == 'a'", failurePolicy="Ignore"),
        _made("ignored"),
        *_unbound("ignoring"),
        *_bound(
            "meant",
            "false",
            matchConditions=[{"name": "named", "expression": "object.metadata.name == 'meant'"}],
        ),
        _made("meant", 422),
        _made("not-meant"),
        *_unbound("meant"),
        *_bound(
            "mismeant",
            "false",
            matchConditions=[{"name": "named", "expression": "object.metadata.absent == 'a'"}],
        ),
        _made("mismeant", 422),
        *_unbound("mismeant"),
        *_bound("named", "false", rules=[{**_MAP_RULE, "resourceNames": ["named"]}]),
        _made("named", 422),
        _made("not-named"),
        *_unbound("named"),
        *_bound(
            "narrowed",
            "false",
            binding={"matchResources": {"objectSelector": {"matchLabels": {"at": "home"}}}},
        ),
        _made("narrowed", 422, metadata={"labels": {"at": "home"}}),
        _made("not-narrowed"),
        *_unbound("narrowed"),
    ]


def _params() -> list[Step]:
    kind: dict[str, Any] = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    rules = [{**_MAP_RULE, "operations": ["CREATE"], "resources": ["secrets"]}]
    path = f"{_CORE}/secrets?dryRun=All"

    def asked(name: str, code: int = 0) -> Step:
        return Step("POST", path, {"metadata": {"name": name}}, name=name, until=code)

    told = {
        "expression": "params == null || object.metadata.name != params.data.name",
        "messageExpression": "'not ' + params.data.name",
    }
    return [
        _made("one", data={"name": "first"}, metadata={"labels": {"of": "params"}}),
        _made("two", data={"name": "second"}, metadata={"labels": {"of": "params"}}),
        *_bound(
            "params",
            told,
            rules=rules,
            binding={"paramRef": {"name": "one", "parameterNotFoundAction": "Deny"}},
            **kind,
        ),
        asked("first", 422),
        asked("second"),
        *_unbound("params"),
        *_bound(
            "selected",
            told,
            rules=rules,
            binding={
                "paramRef": {"selector": {"matchLabels": {"of": "params"}}, "parameterNotFoundAction": "Deny"}
            },
            **kind,
        ),
        asked("second", 422),
        asked("third"),
        *_unbound("selected"),
        *_bound(
            "missing",
            told,
            rules=rules,
            binding={
                "paramRef": {"name": "absent", "namespace": "default", "parameterNotFoundAction": "Deny"}
            },
            **kind,
        ),
        asked("absent", 422),
        *_unbound("missing"),
        *_bound(
            "allowed",
            told,
            rules=rules,
            binding={"paramRef": {"name": "absent", "parameterNotFoundAction": "Allow"}},
            **kind,
        ),
        asked("anything"),
        *_unbound("allowed"),
        *_bound("unreferred", "params == null", rules=rules, **kind),
        asked("unreferred"),
        *_unbound("unreferred"),
        *_bound(
            "unknown",
            "true",
            rules=rules,
            paramKind={"apiVersion": "absent.example.com/v1", "kind": "Absent"},
            binding={"paramRef": {"name": "a", "parameterNotFoundAction": "Allow"}},
        ),
        asked("unknown-kind", 422),
        *_unbound("unknown"),
    ]


def _refused() -> list[Step]:
    """Policies and bindings that cannot be."""
    policies, bindings = (f"{_ROOT}/validatingadmissionpolic{one}?dryRun=All" for one in ("ies", "ybindings"))

    def policy(name: str, *validations: Json, **spec: Json) -> Step:
        return Step("POST", policies, _policy("x", *validations, **spec), name=name)

    def binding(name: str, **spec: Json) -> Step:
        return Step(
            "POST",
            bindings,
            {"metadata": {"name": "x"}, "spec": {"policyName": "p", "validationActions": ["Deny"], **spec}},
            name=name,
        )

    return [
        policy("nothing"),
        policy("an empty one", ""),
        policy("bad syntax", "object."),
        policy("an unknown name", "objekt.x == 1"),
        policy("an unknown field", "request.x == 1"),
        policy("not a bool", "object.metadata.name + 'x'"),
        policy("any type", "object.metadata.name"),
        policy("no params", "params.x == 1"),
        policy("params", "params.x == 1", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
        policy("a bad kind of params", "true", paramKind={"apiVersion": "a/b/c", "kind": "config map"}),
        policy("no kind of params", "true", paramKind={}),
        policy("an unknown variable", "variables.x == 1"),
        policy(
            "variables",
            "variables.x == 1",
            variables=[{"name": "x", "expression": "1"}, {"name": "y", "expression": "variables.x + 1"}],
        ),
        policy(
            "a variable of another type", "variables.x == 'a'", variables=[{"name": "x", "expression": "1"}]
        ),
        policy(
            "bad variables",
            "true",
            variables=[
                {"name": "a-b", "expression": "1"},
                {"name": "", "expression": ""},
                {"name": "z", "expression": "variables.later"},
            ],
        ),
        policy("a bad message", {"expression": "true", "message": "a\nb", "messageExpression": "1"}),
        policy("blank messages", {"expression": "true", "message": " ", "messageExpression": " "}),
        policy("a bad reason", {"expression": "true", "reason": "Odd"}),
        policy("a bad failure policy", "true", failurePolicy="Odd"),
        policy(
            "bad annotations",
            "true",
            auditAnnotations=[
                {"key": "a", "valueExpression": "1"},
                {"key": "a", "valueExpression": ""},
                {"key": "b c", "valueExpression": "null"},
            ],
        ),
        policy(
            "bad conditions",
            "true",
            matchConditions=[{"name": "a", "expression": "1"}, {"name": "a", "expression": "true"}],
        ),
        policy("no rules", "true", matchConstraints={}),
        policy(
            "bad rules",
            "true",
            matchConstraints={
                "matchPolicy": "Odd",
                "resourceRules": [{"operations": ["ODD"], "resourceNames": ["a/b", "c", "c"]}],
            },
        ),
        policy("an authorizer misused", "authorizer.check('get').allowed()"),
        policy("half an authorizer", "authorizer.group('').resource('pods')"),
        policy(
            "an authorizer in a message",
            {"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"},
        ),
        policy(
            "a namespace that is typed",
            "namespaceObject.metadata.labels['a'] == 'b' && namespaceObject.metadata.odd == 1",
        ),
        binding("a binding"),
        binding("no actions", validationActions=[]),
        binding("bad actions", validationActions=["Deny", "Warn", "Odd", "Deny"]),
        binding("no policy", policyName=""),
        binding("a bad policy", policyName="A_b"),
        binding("bad params", paramRef={"name": "a", "selector": {}, "parameterNotFoundAction": "Odd"}),
        binding("no params at all", paramRef={}),
        binding("bad resources", matchResources={"matchPolicy": "Odd"}),
    ]


# ── Mutating ────────────────────────────────────────────────────────────────────────────────────────


def _changed_by(name: str, *mutations: Json, **spec: Json) -> list[Step]:
    policy = {
        "metadata": {"name": "${namespace}-" + name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [{**_MAP_RULE, "operations": ["CREATE", "UPDATE"]}],
                "namespaceSelector": _HERE,
            },
            "matchConditions": [
                {"name": "named", "expression": f"object.metadata.name.startsWith('{name}')"}
            ],
            "mutations": list(mutations),
            "reinvocationPolicy": "Never",
            **spec,
        },
    }
    binding = {"metadata": {"name": "${namespace}-" + name}, "spec": {"policyName": "${namespace}-" + name}}
    return [
        Step("POST", f"{_ROOT}/mutatingadmissionpolicies", policy, is_quiet=True),
        Step("POST", f"{_ROOT}/mutatingadmissionpolicybindings", binding, is_quiet=True),
    ]


def _patch(expression: str) -> Json:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def _apply(expression: str) -> Json:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def _changing() -> list[Step]:
    return [
        *_changed_by(
            "patched", _patch("[JSONPatch{op: 'add', path: '/data', value: {'a': object.metadata.name}}]")
        ),
        *_changed_by(
            "escaped",
            _patch(
                "[JSONPatch{op: 'add', value: 'b', "
                "path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/a')}]"
            ),
        ),
        *_changed_by(
            "applied",
            _apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}, data: {'from': 'policy'}}"),
        ),
        *_changed_by(
            "both",
            _apply("Object{data: {'one': '1'}}"),
            _patch(
                "[JSONPatch{op: 'test', path: '/data/one', value: '1'}, "
                "JSONPatch{op: 'replace', path: '/data/one', value: '2'}]"
            ),
        ),
        *_changed_by("tested", _patch("[JSONPatch{op: 'test', path: '/data/absent', value: '1'}]")),
        *_changed_by("untestable", _patch("[JSONPatch{op: 'test', path: '/absent/one', value: '1'}]")),
        *_changed_by("chosen", _patch("has(object.data) ? [JSONPatch{op: 'remove', path: '/data'}] : []")),
        *_changed_by(
            "varied",
            _patch("[JSONPatch{op: 'add', path: '/data', value: {'v': variables.value}}]"),
            variables=[{"name": "value", "expression": "object.metadata.name + '!'"}],
        ),
        *_changed_by("broken", _patch("[JSONPatch{op: 'remove', path: '/data/absent'}]")),
        *_changed_by(
            "failing", _patch("[JSONPatch{op: 'add', path: '/data', value: object.metadata.absent}]")
        ),
        *_changed_by(
            "ignored", _patch("[JSONPatch{op: 'remove', path: '/data/absent'}]"), failurePolicy="Ignore"
        ),
        *_changed_by("mistyped", _patch("[JSONPatch{op: 'add', path: '/data', value: {'a': 1}}]")),
        *_changed_by("last", _patch("[JSONPatch{op: 'remove', path: '/data/absent'}]")),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": "last"}}, until=403, is_quiet=True),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": "broken"}}, until=403, is_quiet=True),
        *(
            _made(name)
            for name in (
                "patched",
                "applied",
                "both",
                "untestable",
                "varied",
                "broken",
                "failing",
                "ignored",
                "mistyped",
                "other",
            )
        ),
        _made("escaped", metadata={"labels": {"x": "y"}}),
        _made("chosen", data={"a": "b"}),
        _made("tested", data={"a": "b"}),
        _made("applied2", data={"mine": "yes"}, metadata={"labels": {"mine": "yes"}}),
        Step("PATCH", f"{_MAPS}/applied", {"data": {"more": "yes"}}, MERGE, name="changed"),
        Step("DELETE", f"{_MAPS}/applied", name="deleted"),
    ]


def _changing_parts() -> list[Step]:
    """Bodies that are not the resource's own kind: a Binding, an Eviction, a Scale."""

    def about(group: str, resource: str) -> Json:
        rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]}
        rule["operations"] = ["CREATE", "UPDATE"]
        return {"matchConstraints": {"resourceRules": [rule], "namespaceSelector": _HERE}}

    pods, deployments = f"{_CORE}/pods", f"{_APPS}/deployments"
    spec = {"containers": [{"name": "a", "image": "b"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    elsewhere = "[JSONPatch{op: 'replace', path: '/target/name', value: 'elsewhere'}]"
    mistyped = "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 'many'}]"
    return [
        *_changed_by("bound", _patch(elsewhere), **about("", "pods/binding")),
        *_changed_by("applied", _apply("Object{target: Object.target{name: 'applied'}}"), **about("", "pods/binding")),
        *_changed_by("scaled", _apply("Object{spec: Object.spec{replicas: 3}}"), **about("apps", "deployments/scale")),
        *_changed_by("resized", _patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 4}]"), **about("apps", "deployments/scale")),
        *_changed_by("mistyped", _patch(mistyped), **about("apps", "deployments/scale")),
        *_changed_by("last", _patch("[JSONPatch{op: 'remove', path: '/data/absent'}]")),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": "last"}}, until=403, is_quiet=True),
        *(Step("POST", pods, {"metadata": {"name": name}, "spec": spec}, is_quiet=True) for name in ("bound", "applied")),
        *(Step("POST", deployments, {"metadata": {"name": name}, "spec": deployment}, is_quiet=True) for name in ("scaled", "resized", "mistyped")),
        *(
            Step("POST", f"{pods}/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}, name=f"{name} to a node")
            for name in ("bound", "applied")
        ),
        Step("GET", f"{pods}/bound", name="bound elsewhere", shape=lambda pod: pod["spec"].get("nodeName")),
        Step("GET", f"{pods}/applied", name="applied elsewhere", shape=lambda pod: pod["spec"].get("nodeName")),
        *(
            Step("PATCH", f"{deployments}/{name}/scale", {"spec": {"replicas": 2}}, MERGE, name=f"{name} to two")
            for name in ("scaled", "resized", "mistyped")
        ),
    ]  # fmt: skip


def _changing_whole() -> list[Step]:
    """What is owned as a whole cannot be applied by a policy."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    about = {"matchConstraints": {"resourceRules": [rule], "namespaceSelector": _HERE}}
    expressions = {
        "map": "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}",
        "list": "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a', operator: 'Exists'}]}}",
        "two": "Object{spec: Object.spec{nodeSelector: {'a': 'b'}, tolerations: []}}",
        "below": "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', args: ['x']}]}}",
        "deep": "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', env: [Object.spec.containers.env{name: 'e', valueFrom: Object.spec.containers.env.valueFrom{fieldRef: Object.spec.containers.env.valueFrom.fieldRef{fieldPath: 'metadata.name'}}}]}]}}",
        "granular": "Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsNonRoot: true}}, metadata: Object.metadata{labels: {'a': 'b'}}}",
        "empty": "Object{spec: Object.spec{nodeSelector: {}}}",
    }
    spec = {"containers": [{"name": "a", "image": "b"}]}
    return [
        *(step for name, expression in expressions.items() for step in _changed_by(name, _apply(expression), **about)),
        *_changed_by("last", _patch("[JSONPatch{op: 'remove', path: '/data/absent'}]")),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": "last"}}, until=403, is_quiet=True),
        *(Step("POST", f"{_CORE}/pods", {"metadata": {"name": name}, "spec": spec}, name=name) for name in expressions),
    ]  # fmt: skip


def _failing_to_change() -> list[Step]:
    """What is not what it should be, and what follows: a refusal, nothing, or the next mutation."""
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["deployments"],
    }
    ignored = {"failurePolicy": "Ignore"}
    misspelt = _apply("Object{spec: Object.spec{replicass: 3}}")
    mistyped = _apply("Object{spec: Object.spec{replicas: 'many'}}")
    misnamed = _apply("Object{spec: Object.metadata{}}")
    labelled = _patch("[JSONPatch{op: 'add', path: '/metadata/labels', value: {'by': 'policy'}}]")
    unread = _patch("[JSONPatch{op: 'remove', path: '/spec/absent'}]")
    unknown = _patch("[JSONPatch{op: 'add', path: '/spec/foo', value: 1}]")
    labels = "object.metadata.?labels.n.orValue('') + 'x'"
    counted = _patch(f"[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{'n': {labels}}}}}]")
    failed = _patch("[JSONPatch{op: 'test', path: '/metadata/name', value: 'other'}]")

    def containers(text: str) -> Json:
        text = text.replace("Container", "Object.spec.template.spec.containers")
        spec = f"Object.spec.template.spec{{containers: {text}}}"
        return _apply(f"Object{{spec: Object.spec{{template: Object.spec.template{{spec: {spec}}}}}}}")

    def by(name: str, *mutations: Json, ref: Json = None, **spec: Json) -> tuple[str, list[Step]]:
        about = {
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": _HERE},
            "matchConditions": [{"name": "named", "expression": f"object.metadata.name == '{name}'"}],
        }
        policy, binding = _changed_by(name, *mutations, **(about | spec))
        return name, [policy, replace(binding, body=apply_merge({"spec": {"paramRef": ref}}, binding.body))]

    def seen(name: str) -> list[Step]:
        """The wait until all are gone by that came before."""
        return [
            *_changed_by(name, _patch("[JSONPatch{op: 'remove', path: '/data/absent'}]")),
            Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": name}}, until=403, is_quiet=True),
        ]

    def unbound(name: str) -> Step:
        return Step("DELETE", f"{_ROOT}/mutatingadmissionpolicybindings/${{namespace}}-{name}", is_quiet=True)

    policies = [
        by("misspelt", misspelt),
        by("misspelt-ignored", misspelt, **ignored),
        by("misspelt-items", containers("[Container{name: 'a', imagee: 'x'}, Container{name: 'b', imagee: 'x'}]")),
        by("mistyped", mistyped),
        by("mistyped-ignored", mistyped, **ignored),
        by("halved", _apply("Object{spec: Object.spec{replicas: 2.5}}")),
        by("halved-ignored", _apply("Object{spec: Object.spec{replicas: 2.5}}"), **ignored),
        by("measured", containers("[Container{name: 'a', resources: Container.resources{limits: {'cpu': 'lots'}}}]")),
        by("of-another-kind", _apply("Object{kind: 'Other', metadata: Object.metadata{labels: {'by': 'policy'}}}")),
        by("next", misspelt, labelled, unread, **ignored),
        by("every", misspelt, labelled, unread),
        by("unknown", unknown),
        by("unknown-ignored", unknown, **ignored),
        by("unknown-twice", _patch("[JSONPatch{op: 'add', path: '/spec/foo', value: 1}, JSONPatch{op: 'add', path: '/bar', value: {'a': 'b'}}]")),
        by("unknown-after-unread", unread, unknown),
        by("misnamed", misnamed),
        by("misnamed-ignored", misnamed, **ignored),
        by("misnamed-items", containers("[Container.item{name: 'a'}]")),
        by("misnamed-items-joined", containers("[Container.item{name: 'a'}] + [Container.item{name: 'b', image: 'c'}]")),
        by("misnamed-items-mapped", containers("['a'].map(one, Container.item{name: one})")),
        by("misnamed-entries", _apply("Object{metadata: Object.metadata{labels: {'a': Object.b{}}}}")),
        by("misnamed-value", _patch("[JSONPatch{op: 'add', path: '/spec', value: Object.spec{template: Object.template{}}}]")),
        by("named-value", _patch("[JSONPatch{op: 'add', path: '/metadata/labels', value: Object.metadata.labels{a: 'b'}}]")),
        by("null", _apply("has(object.absent) ? Object{} : null")),
        by("an-operation-that-is-a-number", _patch("[JSONPatch{op: object.spec.replicas, path: '/a'}]")),
        by("an-odd-field", _patch("[JSONPatch{op: 'add', path: '/a', odd: object.metadata.name}]")),
        by("no-operation", _patch("[JSONPatch{path: '/a'}]")),
        by("no-path", _patch("[JSONPatch{op: 'remove'}]")),
        by("no-from", _patch("[JSONPatch{op: 'move', path: '/a'}]")),
        by("no-value", _patch("[JSONPatch{op: 'add', path: '/metadata/labels'}]")),
        by("null-value", _patch("[JSONPatch{op: 'add', path: '/metadata/labels', value: null}]")),
        by("null-among-patches", _patch("[has(object.absent) ? JSONPatch{op: 'add'} : null]")),
        by("a-number-escaped", _patch("[JSONPatch{op: 'add', path: jsonpatch.escapeKey(object.spec.replicas)}]")),
        by("counted", counted, reinvocationPolicy="IfNeeded"),
        by("counted-once", counted),
        by("counted-by-a-test", failed, counted, reinvocationPolicy="IfNeeded"),
        by("counted-though-unread", counted, unread, reinvocationPolicy="IfNeeded", **ignored),
        by("unmeant", labelled, matchConditions=[{"name": "named", "expression": "object.metadata.name == 'unmeant' && object.metadata.absent == 'a'"}]),
    ]  # fmt: skip
    alone = [  # which are about everything
        by("unfound", labelled, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, ref={"name": "absent", "parameterNotFoundAction": "Deny"}),
        by("of-no-kind", labelled, paramKind={"apiVersion": "absent.example.com/v1", "kind": "Absent"}, ref={"name": "a", "parameterNotFoundAction": "Allow"}),
    ]  # fmt: skip
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}

    def shaped(answer: Json) -> Json:
        """A refusal, or what a policy may have changed."""
        if answer["kind"] == "Status":
            return answer
        names = [one["name"] for one in answer["spec"]["template"]["spec"]["containers"]]
        return [answer["kind"], answer["metadata"].get("labels"), answer["spec"]["replicas"], names]

    def made(name: str) -> Step:
        body = {"metadata": {"name": name}, "spec": deployment}
        return Step("POST", f"{_APPS}/deployments?dryRun=All", body, name=name, shape=shaped)

    steps = [
        *(step for _, steps in policies for step in steps),
        *seen("last"),
        *(made(name) for name, _ in policies),
    ]
    for name, bound in alone:
        steps += [*bound, *seen(f"seen-{name}"), made(name), unbound(name), unbound(f"seen-{name}")]
        steps.append(
            Step(
                "POST",
                f"{_MAPS}?dryRun=All",
                {"metadata": {"name": f"seen-{name}"}},
                until=201,
                is_quiet=True,
            )
        )
    return steps


def _unconverted() -> list[Step]:
    """Policies about a version in which an object is not to be had; and a kind that is not built in."""
    group, definitions = "policed.example.com", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    sizes = f"/apis/{group}/v1/namespaces/${{namespace}}/sizes"
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    client = {"url": "${hooks.url}/convert/failed", "caBundle": "${hooks.ca}"}
    definition = {
        "metadata": {"name": f"sizes.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "sizes", "singular": "size", "kind": "Size", "listKind": "SizeList"},
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": schema}
                for name in ("v1", "v2")
            ],
        },
    }

    def about(name: str, version: str) -> Json:
        rule = {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": ["CREATE"],
            "resources": ["sizes"],
        }
        meant = {"objectSelector": {"matchLabels": {"by": name}}, "namespaceSelector": _HERE}
        return {"matchConditions": [], "matchConstraints": {"resourceRules": [rule], **meant}}

    def made(name: str, code: int = 0) -> Step:
        metadata = {"name": name, "labels": {"by": name}}
        body = {"apiVersion": f"{group}/v1", "kind": "Size", "metadata": metadata, "spec": {"size": 1}}
        return Step("POST", f"{sizes}?dryRun=All", body, name=name, until=code)

    labelled = _patch("[JSONPatch{op: 'add', path: '/metadata/labels/x', value: 'y'}]")
    odd = _patch("[JSONPatch{op: 'add', path: '/spec/odd', value: 1}]")
    judges = {"judged-fail": "Fail", "judged-ignore": "Ignore"}
    return [
        Step("POST", definitions, definition, is_quiet=True),
        Step("GET", f"{definitions}/sizes.{group}", until_says="Established=True", is_quiet=True),
        Step("GET", sizes, until=200, is_quiet=True),
        *_changed_by("changed-fail", labelled, **about("changed-fail", "v2")),
        *_changed_by("changed-ignore", labelled, failurePolicy="Ignore", **about("changed-ignore", "v2")),
        *_changed_by("odd", odd, **about("odd", "v1")),
        *_changed_by("misspelt", _apply("Object{spec: Object.spec{sizee: 1}}"), **about("misspelt", "v1")),
        *(
            Step("POST", f"{_ROOT}/validatingadmissionpolicies", _policy(name, "true", failurePolicy=failure, **about(name, "v2")), is_quiet=True)
            for name, failure in judges.items()
        ),
        *(Step("POST", f"{_ROOT}/validatingadmissionpolicybindings", _binding(name, name, "Warn"), is_quiet=True) for name in judges),
        made("changed-fail", 403),
        made("changed-ignore"),
        made("judged-fail", 422),
        made("judged-ignore"),
        made("misspelt", 403),
        made("odd"),
    ]  # fmt: skip


def _refused_changes() -> list[Step]:
    def policy(name: str, *mutations: Json, **spec: Json) -> Step:
        found = _changed_by("x", *mutations, **spec)[0]
        return Step("POST", f"{found.path}?dryRun=All", found.body, name=name)

    patches = {
        "a map for a patch": "[{'op': 'add', 'path': '/a'}]",
        "another message": "[Foo{op: 'add'}]",
        "another message inside": "[JSONPatch{op: 'add', path: '/a', value: Foo{a: 1}}]",
        "another field": "[JSONPatch{operation: 'add'}]",
        "any other field": "[JSONPatch{operation: object.metadata.name}]",
        "a number for an operation": "[JSONPatch{op: 'add', path: 1}]",
        "nothing for an operation": "[JSONPatch{op: null, path: '/a'}]",
        "one patch": "JSONPatch{op: 'add', path: '/a'}",
        "an object for a patch": "[Object{}]",
        "messages of two kinds": "[JSONPatch{op: 'add'}, Object{}]",
        "a patch and nothing": "[JSONPatch{op: 'add'}, null]",
        "a patch or none": "true ? [JSONPatch{op: 'add', path: '/a'}] : []",
        "patches added": "[JSONPatch{op: 'add', path: '/a'}] + [JSONPatch{op: 'add', path: '/b'}]",
        "patches mapped": "['a'].map(one, JSONPatch{op: 'add', path: '/' + one})",
        "anything for a patch": "[object]",
        "a number to escape": "[JSONPatch{op: 'add', path: jsonpatch.escapeKey(1)}]",
        "nothing to escape": "[JSONPatch{op: 'add', path: jsonpatch.escapeKey()}]",
        "another function": "[JSONPatch{op: 'add', path: jsonpatch.unescape('a')}]",
        "a field of a patch": "[JSONPatch{op: JSONPatch{op: 'add'}.op + 1}]",
        "a field of no patch": "[JSONPatch{op: JSONPatch{op: 'add'}.odd}]",
        "many mistakes": "[JSONPatch{op: 1, path: 2, from: x, value: Foo{}}]",
    }
    applied = {
        "a map for an object": "{'spec': {'replicas': 3}}",
        "a part for an object": "Object.spec{replicas: 3}",
        "a patch for an object": "JSONPatch{op: 'add', path: '/a'}",
        "another object": "Other{spec: 1}",
        "anything for an object": "object",
        "null for an object": "null",
        "an object or null": "true ? Object{} : null",
        "null or an object": "true ? null : Object{}",
        "an object or a map": "true ? Object{} : {}",
        "an object or anything": "true ? Object{} : object",
        "a list of objects": "[Object{}]",
        "an optional that is not": "Object{?spec: Object.spec{}}",
        "an optional": "Object{?spec: optional.of(Object.spec{})}",
        "fields of many kinds": "Object{a: 1, b: 'x', c: [1], d: {'a': 'b'}, e: null}",
        "items of two kinds": "Object{a: [Object.a{}, Object.b{}]}",
        "an object and a map": "Object{} == {} ? Object{} : Object{}",
        "an object and its part": "Object{} == Object.spec{} ? Object{} : Object{}",
        "a field of an object": "Object{a: 1}.a == 1 ? Object{} : Object{}",
        "whether there is a field": "has(Object{a: 1}.b) ? Object{} : Object{}",
        "lines": "Object{\n  spec: Foo{\n    a: 1\n  }\n}",
    }
    return [
        policy("nothing"),
        policy("no patch", {"patchType": "JSONPatch"}),
        policy("another patch", {"patchType": "Odd"}),
        policy("both patches", {**_patch("[]"), "applyConfiguration": {"expression": "Object{}"}}),
        policy("an empty one", _patch("")),
        policy("bad syntax", _patch("[")),
        policy("an unknown name", _patch("[JSONPatch{op: x, path: '/a'}]")),
        policy("deletions", _patch("[]"), matchConstraints={"resourceRules": [_MAP_RULE]}),
        policy("no reinvocation", _patch("[]"), reinvocationPolicy="Odd"),
        *(policy(name, _patch(text)) for name, text in patches.items()),
        *(policy(name, _apply(text)) for name, text in applied.items()),
        policy("a message in a variable", _apply("Object{}"), variables=[{"name": "a", "expression": "Object{}"}]),
        policy("a message in a condition", _apply("Object{}"), matchConditions=[{"name": "a", "expression": "Object{} != null"}]),
        policy("an escape in a condition", _apply("Object{}"), matchConditions=[{"name": "a", "expression": "jsonpatch.escapeKey('a') == 'a'"}]),
    ]  # fmt: skip


# ── What they cost ──────────────────────────────────────────────────────────────────────────────────

_DEAR = "sets.contains(lists.range(700), lists.range(700))"  # 491,423 of the million an expression may cost
_CHECK = "authorizer.path('/{}').check('get').allowed()"  # 350,000


def _checks(number: int) -> str:
    return " && ".join(_CHECK.format(each) for each in range(number))


def _when(name: str, expression: str) -> str:
    return f"object.metadata.name != '{name}' || ({expression})"


def _asked(name: str, code: int = 0) -> Step:
    """Nothing is kept of it, so it can be asked again."""
    return Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"name": name}}, name=name, until=code)


def _spending() -> list[Step]:
    """The budget of one expression, and that of all of a policy."""

    rules = [{**_MAP_RULE, "operations": ["CREATE"]}]
    each = [
        _when("once", f"{_DEAR} && 1 == 2"),
        _when("twice", f"{_DEAR} && {_DEAR} && 1 == 2"),
        _when("thrice", f"{_DEAR} && {_DEAR} && {_DEAR}"),
        _when("checks2", f"{_checks(2)} && 1 == 2"),
        _when("checks3", _checks(3)),
        {
            "expression": "object.metadata.name != 'message'",
            "message": "as said",
            "messageExpression": f"({_DEAR} && {_DEAR} && {_DEAR}) ? 'yes' : 'no'",
        },
        _when("variable", "variables.dear && 1 == 2"),
        _when("variables", "variables.dear && variables.dear && variables.dear && 1 == 2"),
        _when("too-dear", "variables.tooDear"),
    ]
    variables = [
        {"name": "dear", "expression": _DEAR},
        {"name": "tooDear", "expression": f"{_DEAR} && {_DEAR} && {_DEAR}"},
    ]
    together = [{"expression": f"{_DEAR} && {_DEAR}", "message": f"rule {number}"} for number in range(11)]
    conditions = [
        {"name": f"c{number}", "expression": f"{_DEAR} && {_DEAR} && object.metadata.name != 'skipped'"}
        for number in range(3)
    ]
    return [
        *_bound("spending", *each, rules=rules, variables=variables),
        _asked("once", 422),
        *(
            _asked(name)
            for name in (
                "twice",
                "thrice",
                "checks2",
                "checks3",
                "message",
                "variable",
                "variables",
                "too-dear",
                "none",
            )
        ),
        *_unbound("spending"),
        *_bound("ten", *together[:10], rules=rules),
        _asked("ten"),
        *_unbound("ten"),
        *_bound("eleven", *together, rules=rules),
        _asked("eleven", 422),
        *_unbound("eleven"),
        *_bound("eleven-ignored", *together, rules=rules, failurePolicy="Ignore"),
        _asked("eleven-ignored"),
        *_unbound("eleven-ignored"),
        *_bound("two-conditions", "false", rules=rules, matchConditions=conditions[:2]),
        _asked("two-conditions", 422),
        _asked("skipped"),
        *_unbound("two-conditions"),
        *_bound("conditions", "false", rules=rules, matchConditions=conditions),
        _asked("conditions", 422),
        *_unbound("conditions"),
    ]


def _asking() -> list[Step]:
    """What an authorizer is asked, and says."""

    pods = "authorizer.group('').resource('pods').namespace('${namespace}')"
    account = "authorizer.serviceAccount('${namespace}', 'reader')"
    here = f"{account}.group('').resource('pods').namespace('${{namespace}}')"
    said = [
        ("allowed", f"{pods}.check('create').allowed()"),
        ("reason", f"{pods}.check('create').reason()"),
        ("errored", f"{pods}.check('create').errored()"),
        ("error", f"{pods}.check('create').error()"),
        ("named", f"{pods}.name('a').subresource('exec').check('create').allowed()"),
        ("everywhere", "authorizer.group('').resource('pods').check('list').allowed()"),
        ("request", "authorizer.requestResource.check('create').allowed()"),
        ("requested", "authorizer.requestResource.subresource('x').check('odd').allowed()"),
        ("path", "authorizer.path('/healthz').check('get').allowed()"),
        ("account", f"{account}.group('').resource('pods').check('get').allowed()"),
        ("account-here", f"{here}.check('get').allowed()"),
        ("account-named", f"{here}.name('a').check('get').reason()"),
        ("account-other", f"{here}.check('list').allowed()"),
        ("account-reason", f"{account}.path('/metrics').check('get').reason()"),
        (
            "selected",
            f"{here}.fieldSelector('metadata.name=a').labelSelector('a in (b)').check('get').allowed()",
        ),
        ("misselected", f"{here}.fieldSelector('not a selector').check('get').allowed()"),
        ("bad-account", "authorizer.serviceAccount('A b', 'c').path('/').check('get').allowed()"),
        ("bad-path", "authorizer.path('').check('get').allowed()"),
    ]
    # An authorizer may be asked in an expression, and not in a message: what it says comes in a variable.
    variables = [{"name": name.replace("-", "_"), "expression": f"string({text})"} for name, text in said]
    rules = [{**_MAP_RULE, "operations": ["CREATE"]}]
    validations = [
        {
            "expression": f"object.metadata.name != '{name}' || variables.{name.replace('-', '_')} == 'x'",
            "messageExpression": f"'said ' + variables.{name.replace('-', '_')}",
        }
        for name, _ in said
    ]
    bools = [
        _when(name, text if not text.endswith(("reason()", "error()")) else f"{text} == ''")
        for name, text in said
    ]
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}"
    may = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "${namespace}"}
    refers = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    reading = {
        "user": "system:serviceaccount:${namespace}:reader",
        "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "${namespace}"},
    }
    review = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return [
        Step("POST", f"{role}/roles", {"metadata": {"name": "reader"}, "rules": [may]}, is_quiet=True),
        Step(
            "POST",
            f"{role}/rolebindings",
            {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": refers},
            is_quiet=True,
        ),
        Step("POST", review, {"spec": reading}, until_allowed=True, is_quiet=True),
        *_bound("asking", *validations, rules=rules, variables=variables),
        _asked("allowed", 422),
        *(_asked(name) for name, _ in said[1:]),
        *_unbound("asking"),
        *_bound("deciding", *bools, rules=rules),
        _asked("account", 422),
        *(_asked(name) for name, _ in said if name != "account"),
        *_unbound("deciding"),
    ]


def _annotating() -> list[Step]:
    """Nobody reads them here, but they may fail, and then what is asked fails."""
    dear = " && ".join([_DEAR] * 3)
    fails = [{"key": "who", "valueExpression": "string(object.metadata.absent)"}]
    return [
        *_bound("unread", actions=("Deny",), auditAnnotations=fails),
        _made("unread", 422),
        *_unbound("unread"),
        *_bound("unread-ignored", actions=("Deny",), auditAnnotations=fails, failurePolicy="Ignore"),
        _made("unread-ignored"),
        *_unbound("unread-ignored"),
        *_bound(
            "absent",
            actions=("Audit",),
            auditAnnotations=[{"key": "who", "valueExpression": "null"}],
        ),
        _made("absent"),
        *_unbound("absent"),
        *_bound(
            "dear-note",
            actions=("Audit",),
            auditAnnotations=[{"key": "who", "valueExpression": f"{dear} ? 'a' : 'b'"}],
        ),
        _made("dear-note", 422),
        *_unbound("dear-note"),
    ]


# ── Connections ─────────────────────────────────────────────────────────────────────────────────────


def _connecting() -> list[Step]:
    """Policies about who connects to what: they see the options, and may change them."""

    def rule(subresource: str) -> Json:
        return {**_MAP_RULE, "operations": ["CONNECT"], "resources": [f"pods/{subresource}"]}

    def changed(name: str, mutation: Json, subresource: str) -> list[Step]:
        constraints = {"resourceRules": [rule(subresource)], "namespaceSelector": _HERE}
        return _changed_by(name, mutation, matchConstraints=constraints, matchConditions=[])

    pods = f"{_CORE}/pods"
    validations = [
        "object.command[0] != 'rm'",
        {
            "expression": "!has(object.stdin) || !object.stdin",
            "messageExpression": "'no input for ' + request.name",
        },
        "request.operation == 'CONNECT' && request.kind.kind == 'PodExecOptions' && request.subResource == 'exec'",
        "object.command[0] != 'old' || oldObject == null",
        "object.command[0] != 'who' || request.userInfo.username != 'admin'",
        "object.command[0] != 'named' || object.metadata.name == 'p'",
        "object.command[0] != 'kind' || (object.kind == 'PodExecOptions' && object.apiVersion == 'v1')",
    ]
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    asked = [(name, f"command={name}") for name in ("ls", "old", "who", "named", "kind")]
    return [
        Step("POST", pods, pod, is_quiet=True),
        *_bound("connecting", *validations, rules=[rule("exec")]),
        Step("POST", f"{pods}/p/exec?command=rm", name="rm", until=422),
        Step("POST", f"{pods}/p/exec?command=ls&stdin=1", name="with input"),
        *(Step("POST", f"{pods}/p/exec?{query}", name=name) for name, query in asked),
        Step("POST", f"{pods}/p/attach", name="not about attach"),
        *_unbound("connecting"),
        *changed("attached", _patch("[JSONPatch{op: 'add', path: '/container', value: 'other'}]"), "attach"),
        *changed("executed", _apply("Object{container: 'other'}"), "exec"),
        Step("POST", f"{pods}/p/attach", name="attach changed", until_has="other"),
        Step("POST", f"{pods}/p/exec?command=ls", name="exec not changed", until_has="no corresponding"),
    ]  # fmt: skip


def _deletions() -> list[Step]:
    """Who refuses the deletion of many objects names none of them."""
    kept = {"expression": "request.operation != 'DELETE'", "message": "kept"}
    return [
        Step("POST", _MAPS, {"metadata": {"name": "a"}}, is_quiet=True),
        *_bound("deletions", kept),
        Step("DELETE", f"{_MAPS}/a", name="one"),
        Step("DELETE", f"{_MAPS}?fieldSelector=metadata.name%3Da", name="many"),
        *_unbound("deletions"),
    ]


SCRIPTS = [
    Script("policies about deletions", _deletions()),
    Script("policies judging", _judging()),
    Script("policies and their actions", _actions()),
    Script("policies with parameters", _params()),
    Script("policies refused", _refused()),
    Script("policies changing", _changing()),
    Script("policies changing parts", _changing_parts()),
    Script("policies changing what is whole", _changing_whole()),
    Script("policies failing to change", _failing_to_change()),
    Script("policies about other versions", _unconverted()),
    Script("policies refused that change", _refused_changes()),
    Script("policies spending", _spending()),
    Script("policies asking", _asking()),
    Script("policies annotating", _annotating()),
    Script("policies about connections", _connecting()),
]
