"""What is wrong with an object as large as a body may be is found in time, and told in bounded length.

Each object here is made so that somebody compares everything in it with everything else, or shows all of it
in each of many errors: done so, none of them comes to its end.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from setpoint.server.admission.cel import Scope
from setpoint.server.admission.usage import pod_demand
from setpoint.server.registry.conform import conform
from setpoint.server.registry.crd import validate
from setpoint.server.registry.crd.ratcheting import Correlated
from setpoint.server.registry.crd.resource import CustomStrategy, resources_of
from setpoint.server.registry.crd.signatures import Type
from setpoint.server.registry.doubled import Doubled, plain
from setpoint.server.registry.facts import type_of
from setpoint.server.registry.flow import check_fields
from setpoint.server.registry.managed.apply import apply
from setpoint.server.registry.managed.managers import MOST_UPDATERS, track_update
from setpoint.server.registry.managed.sets import Fields, ordered, union, union_of
from setpoint.server.registry.managed.typed import misfits
from setpoint.server.registry.paths import Path
from setpoint.server.registry.requests import WriteOptions
from setpoint.server.registry.resources import Decoded, Resource
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.admission import check_conditions
from setpoint.server.registry.validation.found import MOST, Found, once
from setpoint.server.registry.validation.metadata import common_errors
from setpoint.server.registry.validation.table import errors, update_errors
from setpoint.server.statuses import FieldError, StatusError, invalid
from tests.server.deadlines import within
from tests.server.registry.crd_cases import INT, TEXT, crd, lists, maps, obj

Object = dict[str, Any]
SECONDS = 60.0
MANY = 30_000
NAMES = [f"n{number}" for number in range(MANY)]
MOST_TEXT = 16 * 2**20  # characters of a refusal: the first error may show all of an object, twice


def told(found: list[FieldError]) -> list[str]:
    """The texts of a refusal, which is not too long."""
    refusal = invalid("Kind", "", "a", found)
    causes = (refusal.details or {})["causes"]
    assert len(refusal.message) + sum(len(one["message"]) for one in causes) < MOST_TEXT
    return [f"{one['field']}: {one['message']}" for one in causes]


def pod(**spec: Any) -> Object:
    container = {
        "name": "c",
        "image": "i",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always",
        **spec.pop("container", {}),
    }
    filled = {
        "containers": [container],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
    }
    return {"metadata": {"name": "p"}, "spec": {**filled, **spec}}


# ── Objects ─────────────────────────────────────────────────────────────────────────────────────────


def quota_of_scopes() -> Object:
    hard = {f"hugepages-{name}": "1" for name in NAMES}
    return {"metadata": {}, "spec": {"hard": hard, "scopes": ["Terminating", *NAMES] * 2}}


def quota_that_selects() -> Object:
    hard = {f"hugepages-{name}": "1" for name in NAMES}
    terms = [{"scopeName": "Terminating", "operator": "Exists"}] * MANY
    return {"metadata": {}, "spec": {"hard": hard, "scopeSelector": {"matchExpressions": terms}}}


def pod_of_claims() -> Object:
    wanted = [{"name": name, "request": "r"} for name in NAMES] + [{"name": name} for name in NAMES]
    known = [{"name": f"k{name}", "resourceClaimName": "c"} for name in NAMES]
    return pod(container={"resources": {"claims": wanted}}, resourceClaims=known)


def pod_of_containers_with_claims() -> Object:
    known = [{"name": name, "resourceClaimName": "c"} for name in NAMES]
    [one] = pod(container={"resources": {"claims": [{"name": "n1"}]}})["spec"]["containers"]
    return pod(containers=[{**one, "name": name} for name in NAMES[:5000]], resourceClaims=known)


def pod_of_mounts() -> Object:
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in NAMES]
    devices = [{"name": f"d{name}", "devicePath": f"/d{name}"} for name in NAMES]
    return pod(container={"volumeMounts": mounts, "volumeDevices": devices})


def pod_of_label_keys() -> Object:
    term = {
        "labelSelector": {"matchExpressions": [{"key": name, "operator": "Exists"} for name in NAMES] * 2},
        "matchLabelKeys": NAMES,
        "mismatchLabelKeys": NAMES,
        "topologyKey": "k",
    }
    return pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def pod_of_a_long_name() -> Object:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
    volumes = [{"name": name, "ephemeral": {"volumeClaimTemplate": template}} for name in NAMES[:10_000]]
    return {**pod(volumes=volumes), "metadata": {"name": "p" * 2**20}}


def set_of_volumes() -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    template["spec"]["volumes"] = [{"name": f"v{name}", "emptyDir": {}} for name in NAMES]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    return {
        "metadata": {"name": "s"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": name}, "spec": claim} for name in NAMES],
        },
    }


def hook_of_segments() -> Object:
    service = {"name": "s", "namespace": "n", "path": "/" * 2**20}
    return {"metadata": {"name": "h"}, "webhooks": [{"name": "h", "clientConfig": {"service": service}}]}


def request_of_spaces() -> Object:
    begin = b"-----BEGIN CERTIFICATE REQUEST-----" + b" " * 2**20
    return {"metadata": {"name": "r"}, "spec": {"request": base64.b64encode(begin).decode()}}


@pytest.mark.parametrize(
    ("group", "kind", "make"),
    [
        ("", "ResourceQuota", quota_of_scopes),
        ("", "ResourceQuota", quota_that_selects),
        ("", "Pod", pod_of_claims),
        ("", "Pod", pod_of_containers_with_claims),
        ("", "Pod", pod_of_mounts),
        ("", "Pod", pod_of_label_keys),
        ("", "Pod", pod_of_a_long_name),
        ("apps", "StatefulSet", set_of_volumes),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", hook_of_segments),
        ("certificates.k8s.io", "CertificateSigningRequest", request_of_spaces),
    ],
)
def test_a_large_object_is_judged_in_time(group: str, kind: str, make: Callable[[], Object]) -> None:
    obj = make()
    with within(SECONDS):
        told(errors(group, "v1", kind, obj))


# ── Changes ─────────────────────────────────────────────────────────────────────────────────────────


def node_of_addresses() -> tuple[Object, Object]:
    addresses = [{"type": "InternalIP", "address": name} for name in [*NAMES, "n1"]]
    return {"metadata": {}, "status": {"addresses": addresses}}, {"metadata": {}}


def pod_of_tolerations() -> tuple[Object, Object]:
    tolerations = [{"key": name, "operator": "Exists"} for name in NAMES]
    return pod(tolerations=tolerations), pod(tolerations=tolerations[::-1])


def pod_of_variables() -> tuple[Object, Object]:
    def variables(value: str) -> Object:
        return {"env": [{"name": name, "value": f"{value}{place % 97}"} for place, name in enumerate(NAMES)]}

    return pod(container=variables("x")), pod(container=variables("y"))


def service_of_addresses() -> tuple[Object, Object]:
    addresses = [f"1.{place >> 16}.{place >> 8 & 255}.{place & 255}" for place in range(MANY)]
    ranges = [f"{one}/32" for one in addresses]
    spec = {
        "type": "LoadBalancer",
        "ports": [{"port": 1, "targetPort": 1, "protocol": "TCP"}],
        "externalIPs": addresses,
        "loadBalancerSourceRanges": ranges,
    }
    old = {**spec, "externalIPs": addresses[::-1], "loadBalancerSourceRanges": ranges[::-1]}
    return {"metadata": {}, "spec": spec}, {"metadata": {}, "spec": old}


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("Node", node_of_addresses),
        ("Pod", pod_of_tolerations),
        ("Pod", pod_of_variables),
        ("Service", service_of_addresses),
    ],
)
def test_a_large_change_is_judged_in_time(kind: str, make: Callable[[], tuple[Object, Object]]) -> None:
    new, old = make()
    with within(SECONDS):
        told(update_errors("", "v1", kind, new, old, ""))


def test_many_owners_that_all_control_are_told_in_time() -> None:
    owners = [
        {"apiVersion": "v1", "kind": "K", "name": name, "uid": name, "controller": True} for name in NAMES
    ]
    owners[0]["name"] = "n" * 2**20
    with within(SECONDS):
        found = told(common_errors({"ownerReferences": owners}))
    assert found[0].startswith("metadata.ownerReferences: Invalid value: [{")
    assert found[-1].startswith("<nil>: Too many: ")


# ── The same texts ──────────────────────────────────────────────────────────────────────────────────


def test_the_errors_of_scopes_stay_in_their_order() -> None:
    spec = {"hard": {"services": "1"}, "scopes": ["odd", "Terminating", "NotTerminating", "odd"]}
    shown = '["odd","Terminating","NotTerminating","odd"]'
    assert told(errors("", "v1", "ResourceQuota", {"metadata": {}, "spec": spec})) == [
        f"spec.scopes: Invalid value: {shown}: unsupported scope",
        f"spec.scopes: Invalid value: {shown}: unsupported scope applied to resource",
        f"spec.scopes: Invalid value: {shown}: conflicting scopes",
    ]


def test_claims_that_overlap_and_claims_that_are_not_there_are_told_in_their_order() -> None:
    wanted = [{"name": "a", "request": "r"}, {"name": "a"}, {"name": "a", "request": "r"}, {"name": "c"}, {}]
    known = [{"name": name, "resourceClaimName": "x"} for name in ("b", "a")]
    at = "spec.containers[0].resources.claims"
    obj = pod(container={"resources": {"claims": wanted}}, resourceClaims=known)
    assert told(errors("", "v1", "Pod", obj)) == [
        f'{at}[1]: Duplicate value: "a"',
        f'{at}[2]: Duplicate value: "a"',
        f'{at}[3]: Not found: "c": must be one of the names in pod.spec.resourceClaims: a, b',
        f"{at}[4]: Required value",
    ]


def test_an_address_that_a_node_has_twice_is_told_once() -> None:
    twice = {"type": "InternalIP", "address": "1.2.3.4"}
    new = {"metadata": {}, "status": {"addresses": [twice, {**twice, "type": "Hostname"}, dict(twice)]}}
    assert told(update_errors("", "v1", "Node", new, {"metadata": {}}, "status")) == [
        'status.addresses[2]: Duplicate value: {"Address":"1.2.3.4","Type":"InternalIP"}'
    ]


def test_what_is_found_twice_is_said_once_whatever_shows_it() -> None:
    found = Found()
    both = ["a"]
    for value in (both, both, ["a"], ["b"], "a", "a", 1, True, None, None):
        found.invalid("spec.a", value, "no")
    found.required("spec.a")
    found.required("spec.a")
    texts_of = [str(one) for one in found.errors]
    assert [str(one) for one in once(found.errors)] == list(dict.fromkeys(texts_of))


def test_of_more_errors_than_there_is_room_for_the_first_are_told_and_the_rest_is_counted() -> None:
    found = [FieldError("invalid", f"a[{place}]", "no", "x" * 2**18) for place in range(10)]
    telling = told(found)
    assert len(telling) == 5
    assert telling[0].startswith("a[0]: Invalid value: ")
    assert telling[-1] == "<nil>: Too many: 10: errors, of which the first are told"


def test_a_large_difference_shows_all_from_the_first_change_to_the_last() -> None:
    kind = internals.part_type("", "v1", "ConfigMap")
    data = dict.fromkeys(sorted(NAMES)[:2000], "x")
    new = {"metadata": {}, "data": {**data, "n10": "y", "n1000": "y"}}
    with within(SECONDS):
        shown = internals.difference({"metadata": {}, "data": data}, new, kind)
    lines = ["".join(line.split()) for line in shown.splitlines()]
    half = len(lines) // 2
    assert (lines[0], lines[half - 1]) == ('-"n10":"x",', '-"n1000":"x",')
    assert (lines[half], lines[-1]) == ('+"n10":"y",', '+"n1000":"y",')


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 5000])
def test_numbers_of_any_length_are_read(digits: str) -> None:
    assert texts.whole(digits) is None
    assert texts.whole("0" * 5000 + "12") == 12
    assert texts.network(f"10.0.0.0/{digits}") is None
    assert texts.amount(f"{digits}%") > 100
    rule = {"rules": [{"succeededIndexes": digits}]}
    spec = {"completions": 1, "completionMode": "Indexed", "successPolicy": rule, "template": {}}
    found = told(errors("batch", "v1", "Job", {"metadata": {"name": "j"}, "spec": spec}))
    assert any("cannot convert string to integer for index" in one for one in found)


# ── Customs ─────────────────────────────────────────────────────────────────────────────────────────

VERY_LONG = "k" * 1_500_000
LONG = "k" * 100_000


def custom(schema: Object) -> CustomStrategy:
    strategy = resources_of(crd(schema))[0].strategy
    assert isinstance(strategy, CustomStrategy)
    return strategy


def thing(**spec: Any) -> Object:
    return {"apiVersion": "cases.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


def test_a_list_of_many_wrong_items_is_judged_in_time() -> None:
    wrong = thing(sizes=["x"] * MANY)
    with within(SECONDS):
        found = custom(maps(lists(INT))).validate_create(wrong)
    assert len(found) > 10_000
    assert told(found)[:2] == [
        f'spec.sizes[{place}]: Invalid value: "string": '
        f'spec.sizes[{place}] in body must be of type integer: "string"'
        for place in range(2)
    ]


def test_problems_below_a_long_key_are_kept_until_there_are_enough() -> None:
    found = custom(maps(lists(INT))).validate_create(thing(**{LONG: ["x"] * 1000}))
    assert found[0].path == f"spec.{LONG}[0]"
    assert sum(len(one.path) + len(one.detail) for one in found) < MOST + 3 * len(LONG)


def test_the_path_to_a_schema_counts_for_each_of_its_problems() -> None:
    found = validate.field_errors(validate.problems(lists(INT), ["x"] * 1000), LONG)
    assert found[0].path == f"{LONG}.[0]"
    assert sum(len(one.path) + len(one.detail) for one in found) < MOST + 2 * len(LONG)


def test_paths_are_written_out_only_for_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    write = Path.__str__

    def counted(path: Path) -> str:
        if path.is_told:
            written.append(path)
        return write(path)

    monkeypatch.setattr(Path, "__str__", counted)
    either = {"anyOf": [INT, TEXT], "oneOf": [INT, TEXT], "not": {"type": "number"}}
    schema = maps(lists(either))
    same = {"a": [1.5] * 1000}
    new = {**same, LONG: ["x"] * 1000 + [True]}
    found = validate.problems(schema, new, correlated=Correlated(new, {**same, LONG: []}, schema))
    assert {str(one.path) for one in found} == {f".{LONG}[1000]"}
    assert len(written) < 20


@pytest.mark.slow
def test_what_fits_is_taken_however_much_would_be_wrong_with_it_otherwise() -> None:
    dates = lists({"type": "string", "format": "date"})
    wrong = [f"n{place}" for place in range(MOST // 100 + 1)]
    with within(SECONDS):
        assert validate.problems({"anyOf": [dates, lists(TEXT)]}, wrong) == []
        assert validate.problems({"not": dates}, wrong) == []
        assert validate.problems({"allOf": [dates, lists(TEXT)]}, wrong) != []


def test_as_many_unknown_fields_as_a_body_holds_are_pruned_in_time_and_the_first_are_told() -> None:
    sent = thing(**{f"n{place}": None for place in range(10 * MANY)})
    with within(SECONDS):
        read = custom(obj(size=INT)).conform(sent)
    assert read.object["spec"] == {}
    assert read.unknown == sorted(f'unknown field "spec.n{place}"' for place in range(100))


def test_as_many_nulls_as_a_body_holds_are_pruned_in_time() -> None:
    sent = thing(**{f"n{place}": None for place in range(10 * MANY)})
    with within(SECONDS):
        read = custom(maps(INT)).conform(sent)
    assert (read.object["spec"], read.unknown) == ({}, [])


@pytest.mark.parametrize("schema", [maps(obj()), maps(lists(obj())), maps({"type": "array"})])
def test_unknown_fields_below_a_long_key_are_told_in_bounded_length(schema: Object) -> None:
    many = dict.fromkeys(NAMES[:1000], 1)
    inner: Any = many if schema["additionalProperties"]["type"] == "object" else [many]
    read = custom(schema).conform(thing(**{LONG: inner}))
    assert many == {}
    assert read.unknown[0].startswith(f'unknown field "spec.{LONG}')
    assert sum(map(len, read.unknown)) < 2**20 + 2 * len(LONG)


EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


def test_what_is_dropped_below_a_long_key_of_a_builtin_kind_is_found_in_time() -> None:
    review = type_of("authorization.k8s.io", "v1", "SubjectAccessReview")
    with within(SECONDS):
        read = conform({"spec": {"extra": {VERY_LONG: ["x"] * (10 * MANY)}, "odd": 1}}, review)
    assert read.unknown == ['unknown field "spec.odd"']


def test_keys_that_stand_twice_below_a_long_key_are_told_in_time_and_in_bounded_length() -> None:
    twice = Doubled([("a", 1)] * (10 * MANY))
    with within(SECONDS):
        value, told = plain({VERY_LONG: [0] * (10 * MANY) + [twice]})
    assert value[VERY_LONG][-1] == {"a": 1}
    assert told == [f'duplicate field "{VERY_LONG}[{10 * MANY}].a"']


def test_objects_inside_an_object_below_a_long_key_are_read_and_judged_in_time() -> None:
    wrong = [{"metadata": {"odd": 1, "name": "a/b"}} for _ in range(MANY)]
    with within(SECONDS):
        read = custom(maps(lists(EMBEDDED))).conform(thing(**{VERY_LONG: wrong}))
        found = custom(maps(lists(EMBEDDED))).validate_create(read.object)
    where = f"spec[{VERY_LONG}][0]"
    assert read.unknown[0] == f'unknown field "{where}.metadata.odd"'
    assert [one.path for one in found[:3]] == [
        f"{where}.{name}" for name in ("apiVersion", "kind", "metadata.name")
    ]
    assert sum(map(len, read.unknown)) + sum(len(one.path) for one in found) < 2 * MOST + 8 * len(VERY_LONG)


def test_sets_and_maps_below_a_long_key_are_judged_in_time() -> None:
    sets = {**lists(INT), "x-kubernetes-list-type": "set"}
    with within(SECONDS):
        found = custom(maps(lists(sets))).validate_create(thing(**{VERY_LONG: [[1, 1]] * MANY}))
    assert found[0].path == f"spec[{VERY_LONG}][0][1]"
    assert sum(len(one.path) for one in found) < MOST + 2 * len(VERY_LONG)


def unknown_fields() -> tuple[Decoded, Resource]:
    [kind] = resources_of(crd())
    return Decoded({}, [f'unknown field "{name}.{LONG}"' for name in NAMES[:100]]), kind


def test_a_refusal_for_unknown_fields_is_of_bounded_length() -> None:
    with pytest.raises(StatusError) as refused:
        check_fields(*unknown_fields(), WriteOptions(False, "m", "Strict"))
    assert f'strict decoding error: unknown field "n0.{LONG}", unknown field "n1.' in refused.value.message
    assert len(refused.value.message) < 2**20 + 2 * len(LONG)


def test_warnings_of_unknown_fields_are_of_bounded_length() -> None:
    warnings = check_fields(*unknown_fields(), WriteOptions(False, "m", "Warn"))
    assert warnings[0] == f'unknown field "n0.{LONG}"'
    assert sum(map(len, warnings)) < 2**20 + 2 * len(LONG)


# ── Owners of fields ────────────────────────────────────────────────────────────────────────────────

CONFIG_MAP = type_of("", "v1", "ConfigMap")
POD = type_of("", "v1", "Pod")
NOW = "2026-01-01T00:00:00Z"


def entry(manager: str, operation: str, fields: Object) -> Object:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": NOW,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def config_map(data: Object, managers: list[Object]) -> Object:
    metadata = {"name": "a", "managedFields": managers}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_a_union_of_many_is_that_of_one_after_another() -> None:
    many: list[Fields] = [
        {"f:a": {}},
        {"f:a": {"f:b": {}}},
        {"f:a": {".": {}, "f:c": {}}},
        {"f:d": {"f:e": {}}},
        {},
    ]
    one_by_one: Fields = {}
    for fields in many:
        one_by_one = union(one_by_one, fields)
    assert union_of(many) == one_by_one
    assert union_of([]) == {}


def test_as_many_managers_as_a_body_allows_are_folded_in_time() -> None:
    managers = [entry(name, "Update", {"f:data": {f"f:{name}": {}}}) for name in NAMES]
    old = config_map(dict.fromkeys(NAMES, "x"), managers)
    new = {**old, "metadata": dict(old["metadata"])}
    with within(SECONDS):
        track_update(new, old, manager="m", api_version="v1", subresource="", now=NOW, type=CONFIG_MAP)
    kept = new["metadata"]["managedFields"]
    assert len(kept) == MOST_UPDATERS
    [ancient] = [one for one in kept if one["manager"] == "ancient-changes"]
    assert len(ancient["fieldsV1"]["f:data"]) == MANY - MOST_UPDATERS + 1


@pytest.mark.slow
def test_what_many_appliers_claim_is_gathered_in_time() -> None:
    managers = [entry(name, "Apply", {"f:data": {f"f:{name}": {}}}) for name in NAMES]
    mine = entry("m", "Apply", {"f:data": {"f:mine": {}}})
    data = {**dict.fromkeys(NAMES, "x"), "mine": "x"}
    live = config_map(data, [*managers, mine])
    intent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"other": "x"}}
    with within(SECONDS):
        result = apply(
            live, intent, manager="m", api_version="v1", subresource="", force=False, now=NOW, type=CONFIG_MAP
        )
    assert result["data"] == {**dict.fromkeys(NAMES, "x"), "other": "x"}


def test_conflicts_below_a_long_key_are_told_in_bounded_length() -> None:
    long, amounts = "c" * 2**20, {f"example.com/{name}": "1" for name in NAMES}
    element = f'k:{{"name":"{long}"}}'
    owned: Fields = {"f:resources": {"f:limits": {f"f:{name}": {} for name in amounts}}}
    live = pod(container={"name": long, "resources": {"limits": amounts}})
    live |= {"apiVersion": "v1", "kind": "Pod"}
    live["metadata"]["managedFields"] = [
        entry("other", "Apply", {"f:spec": {"f:containers": {element: {".": {}, "f:name": {}, **owned}}}})
    ]
    wanted = {"name": long, "resources": {"limits": dict.fromkeys(amounts, "2")}}
    intent = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [wanted]}}
    with within(SECONDS), pytest.raises(StatusError) as refused:
        apply(live, intent, manager="m", api_version="v1", subresource="", force=False, now=NOW, type=POD)
    assert refused.value.message.startswith(f'Apply failed with {MANY} conflicts: conflicts with "other":')
    assert len(refused.value.message) < MOST_TEXT


def test_misfits_below_a_long_key_are_told_in_bounded_length() -> None:
    ports = [{"containerPort": place, "hostPort": "x"} for place in range(MANY)]
    wrong = {"spec": {"containers": [{"name": "c" * 2**20, "ports": ports}]}}
    with within(SECONDS):
        found = misfits(wrong, POD)
    assert 0 < sum(map(len, found)) < MOST_TEXT


def test_elements_of_a_set_are_put_in_order_however_long_they_are() -> None:
    long = "x" * 1000
    fields: Object = {f'v:"{long}b"': {}, f'v:"{long}a"': {}, 'v:"b"': {}}
    assert list(ordered(fields)) == ['v:"b"', f'v:"{long}a"', f'v:"{long}b"']


@pytest.mark.slow
def test_what_as_many_containers_as_a_body_allows_ask_for_is_added_up_in_time() -> None:
    def containers(**more: str) -> list[Object]:
        return [
            {"name": name, "resources": {"requests": {f"example.com/{name}": "1", "cpu": "1"}}, **more}
            for name in NAMES
        ]

    sidecars = containers(restartPolicy="Always")
    spec = {"containers": containers(), "initContainers": [*sidecars, *containers()]}
    with within(SECONDS):
        demand = pod_demand(spec, "requests")
    assert len(demand) == MANY + 1
    assert (str(demand["cpu"]), str(demand["example.com/n0"])) == ("60k", "2")


def test_a_pod_asks_for_its_containers_or_for_the_highest_of_those_that_come_before() -> None:
    def asking(cpu: str, memory: str = "1", **more: str) -> Object:
        return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}

    before = [asking("5"), asking("1", "9", restartPolicy="Always"), asking("6", "2"), asking("2")]
    demand = pod_demand({"containers": [asking("2"), asking("1")], "initContainers": before}, "requests")
    assert {name: str(one) for name, one in demand.items()} == {"cpu": "7", "memory": "11"}


# ── Expressions ─────────────────────────────────────────────────────────────────────────────────────


def test_expressions_beside_many_variables_are_compiled_in_time() -> None:
    scope = Scope(has_variables=True)
    for place in range(200_000):
        scope.declare(f"v{place}", Type("int"))
    with within(SECONDS):
        for place in range(1000):
            assert scope.compile(f"variables.v{place} > 1", "bool").type == Type("bool")


def test_conditions_beyond_the_most_there_may_be_are_not_compiled() -> None:
    found = Found()
    conditions = [{"name": name, "expression": "true"} for name in NAMES]
    with within(SECONDS):
        check_conditions([*conditions[:64], {"name": "", "expression": "("}, *conditions], "at", found)
    assert told(found.errors) == ["at: Too many: 30065: must have at most 64 items"]


@pytest.mark.parametrize("most", ["1e400", "1e900"])
def test_ratios_of_amounts_beyond_all_numbers_are_told(most: str) -> None:
    limit = {"type": "Container", "max": {"cpu": most}, "min": {"cpu": "1n"}}
    fine, far = ({**limit, "maxLimitRequestRatio": {"cpu": one}} for one in ("2", most))
    assert told_of_limits(fine) == []
    [found] = told_of_limits({**far, "min": {"cpu": "2"}})
    assert found.endswith("is greater than max/min = 4611686018427387904.000000")


def told_of_limits(limit: Object) -> list[str]:
    found = errors("", "v1", "LimitRange", {"metadata": {}, "spec": {"limits": [limit]}})
    return told(found) if found else []
