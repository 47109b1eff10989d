"""The promises of ``api/model.py`` and ``api/metaclass.py``, one test to each."""

from __future__ import annotations

import copy
import enum
import gzip
import json
import pickle
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Optional

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import field

from setpoint.api.int_or_string import IntOrString
from setpoint.api.meta import PartialObjectMetadata
from setpoint.api.metaclass import ModelMeta, plural_of, wire_name
from setpoint.api.model import (
    Model,
    Object,
    ObjectMeta,
    as_read,
    decode,
    encode,
    from_wire,
    merged,
    to_wire,
)
from setpoint.api.names import GroupVersionKind, Resource
from setpoint.api.quantity import Quantity
from setpoint.api.times import Duration, MicroTime, Time
from setpoint.errors import DecodeError
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import Pod, Secret, Service

RECORDED = Path(__file__).parent.parent / "kube_models" / "data" / "objects.jsonl.gz"


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Port(Model):
    name: str
    number: int = 80
    protocol: str | None = None


class Required(Model):
    items: list[Port]
    table: dict[str, int]
    inner: list[Required] = []


class ShopSpec(Model):
    image: str
    replicas: Annotated[int, "of the shop"] = 1
    weight: float = 0.5
    public: bool = False
    ports: list[Port] = []
    labels: dict[str, str] = {}
    limits: dict[str, Quantity] | None = None
    target: IntOrString | None = None
    colour: Colour = Colour.RED
    mode: Literal["fast", "safe"] = "safe"
    patience: Duration | None = None
    certificate: bytes | None = None
    extra: dict[str, Any] | None = None
    from_: str | None = None


class ShopStatus(Model):
    ready: bool = False
    available_replicas: int = 0
    message: str | None = None
    since: Time | None = None
    renewed: MicroTime | None = None


class Shop(Object, group="shop.example.com", version="v1", short_names=["sh"]):
    spec: ShopSpec
    status: ShopStatus = ShopStatus()


MINIMAL = {
    "apiVersion": "shop.example.com/v1",
    "kind": "Shop",
    "metadata": {},
    "spec": {
        "image": "shop:1",
        "replicas": 1,
        "weight": 0.5,
        "public": False,
        "ports": [],
        "labels": {},
        "colour": "red",
        "mode": "safe",
    },
    "status": {"ready": False, "availableReplicas": 0},
}


def shop(**spec: Any) -> Shop:
    return Shop(spec=ShopSpec(image="shop:1", **spec))


def written(model: object) -> Any:
    return json.loads(encode(model))


# What is written.


def test_none_is_left_out_and_every_other_value_is_written_even_where_it_equals_its_default() -> None:
    assert written(shop()) == MINIMAL


def test_a_status_that_falls_back_to_its_defaults_is_seen_to_fall() -> None:
    it = shop()
    it.status.available_replicas, it.status.ready = 3, True
    it.status.available_replicas, it.status.ready = 0, False
    assert written(it)["status"] == {"ready": False, "availableReplicas": 0}


def test_empty_lists_and_maps_are_written_at_any_depth() -> None:
    class Deep(Model):
        many: list[Deeper] = field(default_factory=list)
        named: dict[str, Deeper] = field(default_factory=dict)

    class Deeper(Model):
        items: list[str] = []
        table: dict[str, int] = {}

    empty: dict[str, Any] = {"items": [], "table": {}}
    assert written(Deep()) == {"many": [], "named": {}}
    assert written(Deep(many=[Deeper()], named={"a": Deeper()})) == {"many": [empty], "named": {"a": empty}}


def test_none_inside_a_list_or_map_is_null_for_it_has_its_place_there() -> None:
    class Sparse(Model):
        items: list[int | None] = []

    assert written(Sparse(items=[1, None])) == {"items": [1, None]}
    assert written({"raw": None}) == {"raw": None}


def test_to_wire_gives_the_values_that_encode_writes() -> None:
    it = shop(ports=[Port(name="web")], limits={"cpu": Quantity("100m")}, target="25%", certificate=b"\x00")
    it.status.since = Time.parse("2026-01-02T03:04:05Z")
    it.status.renewed = MicroTime.parse("2026-01-02T03:04:05Z")
    assert to_wire(it) == written(it)
    assert to_wire(it)["status"]["renewed"] == "2026-01-02T03:04:05.000000Z"
    assert to_wire(it)["spec"]["limits"] == {"cpu": "100m"}


def test_api_version_and_kind_come_first_and_need_not_be_given() -> None:
    assert list(to_wire(shop()))[:3] == ["apiVersion", "kind", "metadata"]
    assert (shop().api_version, shop().kind) == ("shop.example.com/v1", "Shop")


def test_what_cannot_be_json_is_refused_by_its_type() -> None:
    with pytest.raises(TypeError, match="a complex cannot be written as JSON"):
        encode({"x": 1j})


# Names.


@pytest.mark.parametrize(
    ("attribute", "wire"),
    [
        ("available_replicas", "availableReplicas"),
        ("from_", "from"),
        ("continue_", "continue"),
        ("image", "image"),
    ],
)
def test_snake_case_is_camel_case_on_the_wire(attribute: str, wire: str) -> None:
    assert wire_name(attribute) == wire
    by_msgspec = msgspec.defstruct("S", [attribute], rename="camel")
    assert by_msgspec.__struct_encode_fields__ == (wire,), "with and without `rename` must agree"


def test_names_that_are_not_plain_camel_case_are_given_by_field_or_class() -> None:
    class Exposed(Model, rename={"external_ips": "externalIPs"}):
        cluster_ip: str | None = field(name="clusterIP", default=None)
        external_ips: list[str] = []
        session_affinity: str = "None"

    it = Exposed(cluster_ip="10.0.0.1")
    assert written(it) == {"clusterIP": "10.0.0.1", "externalIPs": [], "sessionAffinity": "None"}
    assert from_wire(Exposed, written(it)) == it


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("WebApp", "webapps"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Box", "boxes"),
        ("Mesh", "meshes"),
    ],
)
def test_a_plural_is_guessed_as_kubernetes_tools_do(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def test_a_class_says_which_kind_it_stands_for() -> None:
    assert Shop.gvk == GroupVersionKind("shop.example.com", "v1", "Shop")
    assert Shop.resource == Resource(
        "shop.example.com", "v1", "Shop", "shops", namespaced=True, singular="shop", short_names=("sh",)
    )


def test_a_kind_needs_a_version() -> None:
    with pytest.raises(TypeError, match="Half does not say its version"):

        class Half(Object, group="a.b"):
            pass


def test_a_subclass_of_a_kind_is_of_that_kind() -> None:
    class Bigger(Shop):
        more: int = 1

    assert Bigger.gvk == Shop.gvk
    assert Bigger(spec=ShopSpec(image="x")).kind == "Shop"


def test_a_field_cannot_take_the_name_of_what_every_kind_has() -> None:
    with pytest.raises(TypeError, match=r"Bad\.resource: .* call the field resource_"):

        class Bad(Object, group="a.b", version="v1"):
            resource: str = ""  # type: ignore[assignment,misc]


# Fields and defaults.


def test_fields_are_keyword_only_and_required_ones_may_follow_those_with_defaults() -> None:
    class Late(Model):
        early: int = 1
        late: str

    assert Late(late="x").early == 1
    with pytest.raises(TypeError):
        Late("x")  # type: ignore[call-arg,arg-type]


def test_defaults_are_not_shared_between_instances() -> None:
    class Nested(Model):
        port: Port = Port(name="web", number=8080)
        ports: list[Port] = [Port(name="a")]
        table: dict[str, list[int]] = {"a": [1]}
        made: list[int] = field(default_factory=list)
        plain: ShopStatus = ShopStatus()

    one = Nested()
    one.port.number = 1
    one.ports[0].number = 2
    one.ports.append(Port(name="b"))
    one.table["a"].append(3)
    one.made.append(4)
    one.plain.ready = True
    assert Nested() == Nested(
        port=Port(name="web", number=8080),
        ports=[Port(name="a")],
        table={"a": [1]},
        made=[],
        plain=ShopStatus(),
    )


def test_a_default_is_kept_as_it_was_when_the_class_was_made() -> None:
    shared = [1]

    class Kept(Model):
        items: list[int] = shared

    shared.append(2)
    assert Kept().items == [1]


def test_metadata_is_always_there() -> None:
    it = shop()
    it.metadata.name = "a"
    assert shop().metadata.name is None


@pytest.mark.parametrize("annotation", ["int | None", "Optional[int]", "Annotated[dict[str, int] | None, 1]"])
def test_a_field_that_may_be_none_needs_a_default_for_none_is_never_on_the_wire(annotation: str) -> None:
    with pytest.raises(TypeError, match=r"Bad\.x may be None and has no default: write `= None`"):
        ModelMeta("Bad", (Model,), {"__annotations__": {"x": annotation}})
    value = eval(annotation, {"Optional": Optional, "Annotated": Annotated})
    with pytest.raises(TypeError, match="write `= None`"):
        ModelMeta("Bad", (Model,), {"__annotations__": {"x": value}})


@pytest.mark.parametrize(
    "annotation", ["list[int | None]", "dict[str, Optional[int]]", "NoneSuch", "Literal['None']"]
)
def test_none_deeper_inside_a_type_needs_no_default(annotation: str) -> None:
    ModelMeta("Good", (Model,), {"__annotations__": {"x": annotation}})


def test_class_variables_are_no_fields() -> None:
    class Plain(Model):
        limit: ClassVar[list[int]] = [1]
        size: int = 2

    assert Plain.limit == [1]
    assert written(Plain()) == {"size": 2}


def test_a_misspelt_attribute_is_refused_on_objects_as_on_models() -> None:
    with pytest.raises(AttributeError, match="Shop has no field 'satus'"):
        shop().satus = ShopStatus()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        shop().status.raedy = True  # type: ignore[attr-defined]


def test_annotations_left_as_a_function_are_read_as_python_3_14_leaves_them() -> None:
    def body(namespace: dict[str, Any]) -> dict[str, Any]:
        annotations = namespace.pop("__annotations__")
        return {"__module__": __name__, **namespace, "__annotate_func__": lambda _format: annotations}

    spec = ModelMeta(
        "LazySpec",
        (Model,),
        body(
            {
                "__module__": __name__,
                "__annotations__": {"size": int, "tags": list[str]},
                "size": 3,
                "tags": [],
            }
        ),
    )
    kind = ModelMeta(
        "Lazy",
        (Object,),
        body({"__annotations__": {"spec": spec}, "spec": spec()}),
        group="a.b",
        version="v1",
    )
    assert written(kind()) == {
        "apiVersion": "a.b/v1",
        "kind": "Lazy",
        "metadata": {},
        "spec": {"size": 3, "tags": []},
    }
    with pytest.raises(TypeError, match="write `= None`"):
        ModelMeta("Bad", (Model,), body({"__annotations__": {"x": int | None}}))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is new in 3.12")
def test_a_type_alias_stands_for_its_type() -> None:
    namespace: dict[str, Any] = {"Model": Model, "__name__": __name__}
    program = "type Ports = list[int]\nclass M(Model):\n    ports: Ports"
    exec(compile(program, "aliases", "exec", dont_inherit=True), namespace)
    assert from_wire(namespace["M"], {"ports": None}).ports == []


# What is read.


def test_reading_keeps_the_bytes_and_reads_buffers_of_any_kind() -> None:
    data = encode(shop())
    for buffer in (data, bytearray(data), memoryview(data)):
        assert Shop.decode(buffer) == shop()
        assert as_read(Shop.decode(buffer)) == data
    assert as_read(shop()) is None


def test_an_item_of_a_list_without_apiversion_and_kind_is_of_its_class() -> None:
    it = Shop.decode(b'{"metadata":{"name":"a"},"spec":{"image":"x"}}')
    assert (it.api_version, it.kind) == ("shop.example.com/v1", "Shop")


def test_another_kind_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"example\.com/v1 Shop ns/a: this is v1 Pod"):
        Shop.decode(
            b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"ns"},"spec":{"image":"x"}}'
        )


def test_metadata_alone_is_read_from_any_kind() -> None:
    it = PartialObjectMetadata.decode(encode(shop()))
    assert (it.kind, it.metadata) == ("Shop", ObjectMeta())


def test_null_is_absent_where_the_class_has_no_room_for_it() -> None:
    it = Shop.decode(
        b'{"metadata":null,"spec":{"image":null,"replicas":null,"ports":[{"name":null,"protocol":null}],"labels":null},'
        b'"status":null}'
    )
    assert it == Shop(spec=ShopSpec(image="", ports=[Port(name="")]))


def test_go_s_null_for_an_empty_list_or_map_that_must_be_there_is_an_empty_one() -> None:
    it = decode(Required, b'{"items":null,"table":null,"inner":[{"items":null,"table":{"a":null}}]}')
    assert it == Required(items=[], table={}, inner=[Required(items=[], table={"a": 0})])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"metadata":{"name":"a"},"spec":{"image":1}}', "Shop a: spec.image: expected `str`, got `int`"),
        (b'{"spec":{"image":"x","ports":[{"name":null},{"name":3}]}}', "spec.ports[1].name: expected `str`"),
        (b'{"spec":{}}', "spec: object missing required field `image`"),
        (b'{"spec":{"image":"x","limits":{"cpu":"one"}}}', "spec.limits[...]: "),
        (b"[]", "read shop.example.com/v1 Shop: Expected `object`, got `array`"),
        (b'{"spec":', "Input data was truncated"),
        (b"", "Input data was truncated"),
        (b"\xff", "malformed"),
        (b'{"unknown":' + b"[" * 100_000, "maximum recursion depth"),
    ],
)
def test_bytes_that_do_not_fit_are_refused_by_kind_object_and_field(data: bytes, said: str) -> None:
    with pytest.raises(DecodeError) as refused:
        Shop.decode(data)
    assert said in str(refused.value)


def test_an_error_about_a_secret_shows_nothing_of_it() -> None:
    with pytest.raises(DecodeError) as refused:
        Secret.decode(b'{"metadata":{"name":"s"},"data":{"password":"hunter2 is no base64"}}')
    assert "hunter2" not in str(refused.value)


def test_decode_reads_any_type_made_of_models() -> None:
    assert decode(list[Port], b'[{"name":"a"}]') == [Port(name="a")]
    with pytest.raises(DecodeError, match=r"\[0\]"):
        decode(list[Port], b"[1]")


def test_from_wire_keeps_what_the_class_does_not_know() -> None:
    it = from_wire(Shop, {"spec": {"image": "x", "novel": 1}})
    assert json.loads(merged(it))["spec"] == {"image": "x", "novel": 1}


# Copies.


def copies(it: Shop) -> list[Shop]:
    replaced: Shop = it.__replace__(metadata=it.metadata)
    return [copy.copy(it), copy.deepcopy(it), pickle.loads(pickle.dumps(it)), replaced]


def test_copies_and_pickles_keep_the_bytes_and_equality_and_repr_do_not_look() -> None:
    it = Shop.decode(encode(shop()))
    for each in copies(it):
        assert each == it == shop()
        assert as_read(each) == as_read(it)
        assert repr(each) == repr(shop())
    assert all(as_read(each) is None for each in copies(shop()))


def test_a_deep_copy_shares_nothing() -> None:
    it = Shop.decode(encode(shop(ports=[Port(name="a")])))
    other = copy.deepcopy(it)
    other.spec.ports[0].name = "b"
    other.metadata.name = "c"
    assert it.spec.ports[0].name == "a"
    assert it.metadata.name is None


def test_repr_says_what_is_set() -> None:
    assert repr(Port(name="a")) == "Port(name='a', number=80)"


# Updates.


def test_an_object_that_was_made_here_is_sent_as_it_is() -> None:
    assert merged(shop()) == encode(shop())


def test_an_object_left_as_it_was_read_is_sent_as_it_was_read() -> None:
    read = {
        "apiVersion": "shop.example.com/v1",
        "kind": "Shop",
        "spec": {"image": "x", "novel": [1]},
        "odd": None,
    }
    assert json.loads(merged(from_wire(Shop, read))) == read


def test_what_did_not_change_is_sent_in_the_words_it_was_read_in() -> None:
    it = Shop.decode(
        b'{"apiVersion":"shop.example.com/v1","kind":"Shop","spec":{"image":"x","novel":1.50},"odd":1e2}'
    )
    it.metadata.labels = {"app": "a"}
    sent = merged(it)
    assert b'"spec":{"image":"x","novel":1.50}' in sent
    assert b'"odd":1e2' in sent
    assert json.loads(sent)["metadata"] == {"labels": {"app": "a"}}


def test_unknown_fields_survive_an_update_at_any_depth() -> None:
    it = from_wire(
        Shop,
        {
            "metadata": {"name": "a", "novel": 1},
            "spec": {"image": "x", "novel": {"deep": True}, "ports": [{"name": "a", "novel": 2}]},
            "novel": 3,
        },
    )
    it.spec.replicas = 5
    it.spec.ports[0].number = 443
    it.metadata.labels = {"app": "a"}
    assert json.loads(merged(it)) == {
        "apiVersion": "shop.example.com/v1",
        "kind": "Shop",
        "metadata": {"name": "a", "novel": 1, "labels": {"app": "a"}},
        "spec": {
            "image": "x",
            "novel": {"deep": True},
            "ports": [{"name": "a", "novel": 2, "number": 443}],
            "replicas": 5,
        },
        "novel": 3,
    }


def test_list_items_that_moved_take_along_what_is_unknown() -> None:
    it = from_wire(
        Shop, {"spec": {"image": "x", "ports": [{"name": name, "novel": name.upper()} for name in "abc"]}}
    )
    it.spec.ports = [Port(name="new"), it.spec.ports[2], it.spec.ports[0]]
    it.spec.ports[1].number = 1
    assert json.loads(merged(it))["spec"]["ports"] == [
        {"name": "new", "number": 80},
        {"name": "c", "novel": "C", "number": 1},
        {"name": "a", "novel": "A"},
    ]


def test_what_was_set_to_none_is_removed() -> None:
    it = from_wire(
        Shop, {"spec": {"image": "x", "target": 1, "novel": 2}, "status": {"message": "m", "novel": 3}}
    )
    it.spec.target = it.status.message = None
    sent = json.loads(merged(it))
    assert (sent["spec"], sent["status"]) == ({"image": "x", "novel": 2}, {"novel": 3})


def test_an_update_sends_what_changed_since_the_object_was_read_also_from_a_copy() -> None:
    it = copy.deepcopy(from_wire(Shop, {"spec": {"image": "x", "novel": 1}}))
    it.spec.image = "y"
    assert json.loads(merged(it))["spec"] == {"image": "y", "novel": 1}


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]


KINDS: dict[str, type[Object]] = {
    "Deployment": Deployment,
    "Pod": Pod,
    "Secret": Secret,
    "Service": Service,
}
OBJECTS = [said for said in recorded() if said["kind"] in KINDS]


@pytest.mark.parametrize("said", OBJECTS, ids=lambda said: f"{said['kind']}-{said['metadata']['name']}")
def test_recorded_objects_are_sent_back_unchanged(said: dict[str, Any]) -> None:
    it = from_wire(KINDS[said["kind"]], said)
    assert json.loads(merged(it)) == said
    it.metadata.annotations = {"touched": "yes"}
    assert json.loads(merged(it)) == {
        **said,
        "metadata": {**said["metadata"], "annotations": {"touched": "yes"}},
    }


MAPS = {"limits", "requests"}  # their names are the user's


def with_unknown(value: Any, word: str) -> Any:
    """The value, with a field that no class knows in every object of it."""
    if isinstance(value, dict):
        known = {name: item if name in MAPS else with_unknown(item, word) for name, item in value.items()}
        return {**known, word: "survives"}
    return [with_unknown(item, word) for item in value] if isinstance(value, list) else value


@given(st.data())
def test_unknown_fields_in_recorded_objects_survive_changes_of_containers(data: st.DataObject) -> None:
    said = data.draw(st.sampled_from([each for each in OBJECTS if each["kind"] == "Pod"]))
    read = json.loads(json.dumps(said))
    read["spec"]["containers"] = with_unknown(read["spec"]["containers"], "xUnknown")
    pod = from_wire(Pod, read)
    assert pod.spec is not None
    for container in pod.spec.containers:
        container.image = data.draw(st.sampled_from(["a:1", "b:2", container.image]))
    pod.spec.containers = data.draw(st.permutations(pod.spec.containers))
    sent = {each["name"]: each for each in json.loads(merged(pod))["spec"]["containers"]}
    for before in read["spec"]["containers"]:
        image = next(c.image for c in pod.spec.containers if c.name == before["name"])
        assert sent[before["name"]] == {**before, "image": image}


# Any instance.


texts = st.text(max_size=8)
ports = st.builds(Port, name=texts, number=st.integers(-(2**63), 2**63 - 1), protocol=st.none() | texts)
specs = st.builds(
    ShopSpec,
    image=texts,
    replicas=st.integers(0, 9),
    weight=st.floats(allow_nan=False, allow_infinity=False),
    public=st.booleans(),
    ports=st.lists(ports, max_size=3),
    labels=st.dictionaries(texts, texts, max_size=3),
    limits=st.none() | st.dictionaries(texts, st.integers(0, 10**6).map(Quantity), max_size=2),
    target=st.none() | st.integers(0, 9) | texts,
    colour=st.sampled_from(Colour),
    mode=st.sampled_from(["fast", "safe"]),
    certificate=st.none() | st.binary(max_size=4),
    from_=st.none() | texts,
)
statuses = st.builds(
    ShopStatus, ready=st.booleans(), available_replicas=st.integers(0, 9), message=st.none() | texts
)
shops = st.builds(Shop, spec=specs, status=statuses)


@given(shops)
def test_whatever_is_written_reads_back_the_same(it: Shop) -> None:
    assert Shop.decode(encode(it)) == it
    assert from_wire(Shop, to_wire(it)) == it


@given(shops, shops)
def test_an_update_holds_every_typed_change_and_loses_nothing_unknown(before: Shop, after: Shop) -> None:
    read = to_wire(before)
    read["xUnknown"] = read["spec"]["xUnknown"] = read["metadata"]["xUnknown"] = 1
    it = from_wire(Shop, read)
    it.spec, it.status = after.spec, after.status
    sent = json.loads(merged(it))
    assert from_wire(Shop, sent) == it
    assert sent["xUnknown"] == sent["spec"]["xUnknown"] == sent["metadata"]["xUnknown"] == 1


def test_the_repr_of_a_secret_shows_no_values() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "canary"}
    metadata = ObjectMeta(name="s", namespace="shop", annotations=annotations)
    secret = Secret(metadata=metadata, data={"password": b"canary"}, string_data={"user": "canary"})
    assert repr(secret) == "Secret(shop/s, password=…, user=…)"
    assert "canary" not in repr([secret])
