# ruff: noqa: E501  # texts of rules stand on one line
"""Schemas, values and definitions that a server is asked about, ours and the real one alike.

``VALUES`` are schemas of one field and values for it; ``RULES`` the same with CEL rules; ``CHANGES`` are values
that take another's place; ``RATCHETS`` that of a value that was wrong already; ``DEFINITIONS`` are whole
definitions, most of them wrong.  ``record_crds.py`` asks the real server and writes down what it says;
``test_crd_recorded.py`` asks ours.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

GROUP = "cases.example.com"


def obj(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


INT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TEXT: Schema = {"type": "string"}
BOOL: Schema = {"type": "boolean"}


def texts(**words: Any) -> Schema:
    return {"type": "string", **words}


def ints(**words: Any) -> Schema:
    return {"type": "integer", **words}


def numbers(**words: Any) -> Schema:
    return {"type": "number", **words}


def lists(item: Schema, **words: Any) -> Schema:
    return {"type": "array", "items": item, **words}


def maps(item: Schema | bool, **words: Any) -> Schema:
    return {"type": "object", "additionalProperties": item, **words}


_ANY: list[Any] = [1, -1, 0, 1.0, 1.5, "x", "", True, False, None, [], [1], {}, {"a": 1}, 10**20, 1e30, -0.5]

VALUES: dict[str, tuple[Schema, list[Any]]] = {
    "integer": (INT, _ANY),
    "int32": (ints(format="int32"), [1, 2**31, -(2**31) - 1, 1.5, "x", 2.0]),
    "int64": (ints(format="int64"), [1, 2**63 - 1, 2**63, 1e18, 1e19, "x"]),
    "number": (NUMBER, _ANY),
    "float": (numbers(format="float"), [1, 1.5, 1e39, "x"]),
    "double": (numbers(format="double"), [1, 1e300, "x", True]),
    "text": (TEXT, _ANY),
    "boolean": (BOOL, _ANY),
    "object": (obj(), _ANY),
    "array": (lists(INT), [*_ANY, ["a"], [None], [[1]], [1, 1.5]]),
    "nullable": (texts(nullable=True), ["x", None, 1]),
    "nullableint": (ints(nullable=True, minimum=3), [None, 2, 3]),
    "nullableenum": (texts(nullable=True, enum=["a"]), [None, "a", "b"]),
    "either": ({"x-kubernetes-int-or-string": True}, _ANY),
    "eitherpattern": ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"}, ["5%", 5, "x"]),
    "eithermax": ({"x-kubernetes-int-or-string": True, "maximum": 3}, [2, 4, "x"]),
    "eitherall": (
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        [1, "x", True, 1.5],
    ),
    "free": ({"x-kubernetes-preserve-unknown-fields": True}, _ANY),
    "preserved": (
        {**obj(a=INT, b=obj(c=INT)), "x-kubernetes-preserve-unknown-fields": True},
        [{"a": 1, "z": {"y": 1}, "b": {"c": 1, "d": 2}}, {"a": "x"}],
    ),
    "bounds": (ints(minimum=1, maximum=10), [0, 1, 10, 11, 5.5, "x"]),
    "open": (ints(minimum=1, maximum=10, exclusiveMinimum=True, exclusiveMaximum=True), [1, 2, 9, 10]),
    "numberbounds": (numbers(minimum=0.5, maximum=1e9), [0, 0.5, 0.4, 2e9, 1e9, 3]),
    "numberopen": (numbers(minimum=1.5, exclusiveMinimum=True), [1, 1.5, 2]),
    "multiple": (ints(multipleOf=3), [3, 4, 0, -6, 4.5]),
    "multipleofnumber": (numbers(multipleOf=0.1), [0.3, 0.25, 1, 3]),
    "oddminimum": (ints(minimum=0.5), [0, 1]),
    "length": (texts(minLength=2, maxLength=4), ["a", "ab", "abcd", "abcde", "éééé", "ééééé", "日本"]),
    "lengthone": (texts(maxLength=1), ["ab"]),
    "pattern": (texts(pattern="^a+$"), ["a", "aa", "b", "a\n", ""]),
    "patternhard": (texts(pattern="^(a|b|ab)*c$"), ["abc", "abab" * 20, "c"]),
    "patternunicode": (texts(pattern="^\\pL+$"), ["日本", "a1"]),
    "patternclass": (texts(pattern="^[[:alpha:]]+\\d$"), ["ab1", "ab"]),
    "patternshort": (texts(pattern="b", maxLength=2), ["ab", "a", "aaab"]),
    "enum": (texts(enum=["a", "b"]), ["a", "c", 1, None]),
    "enumint": (ints(enum=[1, 2]), [1, 3, 1.0, 1.5, "x"]),
    "enumfloat": (numbers(enum=[1.5, 2]), [1.5, 2, 2.0, 3, 2.5]),
    "enumbool": ({"type": "boolean", "enum": [True]}, [True, False]),
    "enumlist": (lists(INT, enum=[[1], [2]]), [[1], [3]]),
    "items": (
        lists(ints(minimum=1), minItems=1, maxItems=2),
        [[], [1], [1, 2], [1, 2, 3], [0, 0, 0], ["x", 0]],
    ),
    "itemone": (lists(INT, maxItems=1), [[1, 2]]),
    "itemsnull": (lists(texts(nullable=True)), [[None, "a"], [1]]),
    "itemsdefault": (lists(ints(default=3)), [[None, 1]]),
    "count": (
        maps(INT, minProperties=1, maxProperties=2),
        [{}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": "x"}],
    ),
    "closed": ({"type": "object", "additionalProperties": False}, [{}, {"a": 1}]),
    "opened": (maps(True), [{}, {"a": 1}, {"a": {"b": 1}}]),
    "mapofmaps": (
        maps(maps(ints(minimum=1))),
        [{"a": {"b": 1}}, {"a": {"b": 0}}, {"a": 1}, {"a.b": {"c d": 0}}],
    ),
    "mapofobjects": (maps(obj(x=INT)), [{"a": {"x": 1, "y": 2}}, {"a": {"x": "1"}}, {"a": None}]),
    "mapnull": (maps(texts(nullable=True)), [{"a": None}]),
    "mapdefault": (maps(obj(x=ints(default=5))), [{"a": {}}, {"a": None}]),
    "required": (
        {**obj(a=INT, b=TEXT), "required": ["a", "b"]},
        [{}, {"a": 1}, {"a": 1, "b": "x"}, {"b": None}],
    ),
    "nested": (
        obj(a=obj(b=obj(c=ints(minimum=2)))),
        [{"a": {"b": {"c": 1, "d": 1}}}, {"a": {"b": []}}, {"a": "x"}],
    ),
    "unknown": (obj(a=INT), [{"a": 1, "z": 1}, {"z": {"y": [1]}}]),
    "unknownlist": (lists(obj(a=INT)), [[{"a": 1, "b": 2}, {"c": 3}]]),
    "unknowninwrong": (TEXT, [{"a": {"b": 1}}, [{"a": 1}], [[{"a": 1}]]]),
    "defaults": (
        obj(
            a=texts(default="x"),
            b=ints(default=0),
            c={**obj(d=ints(default=1)), "default": {}},
            e=obj(f=ints(default=2)),
        ),
        [{}, {"a": None, "b": None}, {"c": {}}, {"e": {}}, {"c": None, "e": None}],
    ),
    "defaultnull": (
        obj(a=texts(default="x", nullable=True), b=texts(nullable=True), c=TEXT),
        [{"a": None, "b": None, "c": None}],
    ),
    "defaultlist": (obj(a=lists(obj(b=ints(default=1)), default=[{}])), [{}, {"a": [{}, {"b": 2}]}]),
    "set": (
        lists(TEXT, **{"x-kubernetes-list-type": "set"}),
        [["a", "b"], ["a", "a", "a"], ["a", "b", "a", "b"], [1, 1]],
    ),
    "setofints": (lists(INT, **{"x-kubernetes-list-type": "set"}), [[1, 1], [1, 2], [1, 1.0]]),
    "setofmaps": (
        lists({**obj(a=INT), "x-kubernetes-map-type": "atomic"}, **{"x-kubernetes-list-type": "set"}),
        [[{"a": 1}, {"a": 1}], [{"a": 1}, {"a": 2}]],
    ),
    "listmap": (
        lists(
            {**obj(n=TEXT, v=INT), "required": ["n"]},
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]},
        ),
        [
            [{"n": "a"}, {"n": "b"}],
            [{"n": "a"}, {"n": "a"}],
            [{}, {}],
            [{"n": "a"}, "x"],
            [{"n": "a", "z": 1}],
        ],
    ),
    "listmaptwo": (
        lists(
            {**obj(n=TEXT, p=texts(default="TCP")), "required": ["n"]},
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "p"]},
        ),
        [[{"n": "a"}, {"n": "a", "p": "UDP"}], [{"n": "a"}, {"n": "a", "p": "TCP"}]],
    ),
    "embedded": (
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "x", "foo": 1, "labels": {}},
                "spec": {"any": 1},
            },
            {"apiVersion": "v1"},
            {},
            {"apiVersion": "", "kind": ""},
            {"apiVersion": "a/b/c", "kind": "pod_x"},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c d"}}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 1}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": "x"},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b", "namespace": "Foo"}},
            "x",
        ],
    ),
    "embeddedlist": (
        lists({**obj(spec=obj(a=INT)), "x-kubernetes-embedded-resource": True}),
        [
            [{"apiVersion": "v1", "kind": "A", "metadata": {"z": 1}, "spec": {"a": 1, "b": 1}, "status": 1}],
            [{}],
        ],
    ),
    "anyof": (
        {**obj(a=INT, b=INT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{}, {"a": 1}, {"a": 1, "b": 2}],
    ),
    "oneof": (
        {**obj(a=INT, b=INT), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{}, {"a": 1}, {"a": 1, "b": 2}],
    ),
    "allof": (ints(allOf=[{"minimum": 2}, {"maximum": 5}]), [1, 3, 6]),
    "allofnone": (ints(allOf=[{"minimum": 9}, {"maximum": 5}]), [7]),
    "not": (texts(**{"not": {"enum": ["x"]}}), ["x", "y"]),
    "anyofbest": (
        {
            **obj(kind=TEXT, size=INT),
            "anyOf": [
                {"properties": {"kind": {"enum": ["a"]}, "size": {"minimum": 5}}},
                {"properties": {"kind": {"enum": ["b"]}}},
            ],
        },
        [{"kind": "a", "size": 1}, {"kind": "c", "size": 9}, {"kind": "b"}, {}],
    ),
    "oneofbest": (ints(oneOf=[{"minimum": 10}, {"maximum": 3}, {"enum": [5]}]), [7, 5, 2, 11]),
    "formatdate": (texts(format="date"), ["2020-02-29", "2019-02-29", "x", "", 1, [], True]),
    "formatdatetime": (
        texts(format="date-time"),
        [
            "2020-01-01T00:00:00Z",
            "2020-01-01T00:00:00+01:00",
            "2020-01-01t00:00:00.5z",
            "2020-01-01",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:00:60Z",
            5,
        ],
    ),
    "formatduration": (
        texts(format="duration"),
        ["1h", "1h2m3.5s", "3 weeks", "-1s", "1", "x", "1d", "5 apples"],
    ),
    "formatbyte": (texts(format="byte"), ["YQ==", "YQ", "", "a b=", "////"]),
    "formaturi": (
        texts(format="uri"),
        [
            "http://a/b",
            "/a",
            "a",
            "mailto:x",
            "http://a b",
            "http://[::1]:80/",
            "http://a:x/",
            "http://a/%zz",
            "",
        ],
    ),
    "formatemail": (texts(format="email"), ["a@b", "A <a@b.c>", "a", "a@", "@b", "a b@c", "a.b+c@d.e"]),
    "formathostname": (
        texts(format="hostname"),
        ["a", "a.b", "a.bc", "a-b.com", "-a", "a-b-c", "a_b", "1.2.3.4", ""],
    ),
    "formatipv4": (
        texts(format="ipv4"),
        ["1.2.3.4", "01.2.3.4", "1.2.3", "::1", "256.1.1.1", "::ffff:1.2.3.4"],
    ),
    "formatipv6": (texts(format="ipv6"), ["::1", "1.2.3.4", "fe80::1%eth0", "1::2::3"]),
    "formatcidr": (texts(format="cidr"), ["10.0.0.0/8", "10.0.0.0", "10.0.0.0/33", "::/0", "10.0.0.1/08"]),
    "formatmac": (
        texts(format="mac"),
        ["00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301", "00:00:5e:00:53", "x"],
    ),
    "formatuuid": (
        texts(format="uuid"),
        ["6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B8109DAD11D180B400C04FD430C8", "x"],
    ),
    "formatuuid4": (
        texts(format="uuid4"),
        ["f47ac10b-58cc-4372-a567-0e02b2c3d479", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"],
    ),
    "formatisbn": (texts(format="isbn"), ["978-0321751041", "0321751043", "0321751044"]),
    "formatcreditcard": (texts(format="creditcard"), ["4111 1111 1111 1111", "4111 1111 1111 1112"]),
    "formatssn": (texts(format="ssn"), ["111-22-3333", "111223333", "111 22 3333"]),
    "formathexcolor": (texts(format="hexcolor"), ["#fff", "fff", "#ffff", "#FFFFFF"]),
    "formatrgbcolor": (texts(format="rgbcolor"), ["rgb(1,2,3)", "rgb(1, 2, 300)"]),
    "formatbson": (texts(format="bsonobjectid"), ["507f1f77bcf86cd799439011", "x"]),
    "formatshortname": (texts(format="k8s-short-name"), ["a-b", "A", "a.b", "a" * 64]),
    "formatlongname": (texts(format="k8s-long-name"), ["a.b", "A", "a..b"]),
    "formatpassword": (texts(format="password"), ["x", 1]),
    "formatunknown": (texts(format="frob"), ["x", 1, []]),
    "formatonlist": (lists(TEXT, format="date"), [["x"]]),
    "deep": (
        obj(a=lists(obj(b=maps(lists(ints(minimum=1)))))),
        [{"a": [{"b": {"k": [0, 1]}}, {"b": {"k": 3}}]}],
    ),
    "several": (
        {**obj(a=ints(minimum=2), b=texts(maxLength=1), c=texts(enum=["x"])), "required": ["d"]},
        [{"a": 1, "b": "xx", "c": "y"}],
    ),
}


def rule(text: str, **words: Any) -> Schema:
    return {"rule": text, **words}


def ruled(schema: Schema, *rules: Schema) -> Schema:
    return {**schema, "x-kubernetes-validations": list(rules)}


SHORT: Schema = {"type": "string", "maxLength": 40}  # what rules cost is estimated from what values may be


def few(item: Schema, **words: Any) -> Schema:
    return lists(item, maxItems=5, **words)


def some(item: Schema) -> Schema:
    return maps(item, maxProperties=5)


RULES: dict[str, tuple[Schema, list[Any]]] = {
    "compare": (
        ruled(obj(a=INT, b=INT), rule("self.a < self.b")),
        [{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1}, {}],
    ),
    "message": (ruled(obj(a=INT), rule("self.a < 9", message="a must be small")), [{"a": 9}, {"a": 1}]),
    "composed": (
        ruled(obj(a=INT), rule("self.a < 9", messageExpression="'a is ' + (self.a > 5 ? 'big' : 'small')")),
        [{"a": 9}],
    ),
    "composedempty": (ruled(obj(a=INT), rule("self.a < 9", message="m", messageExpression="''")), [{"a": 9}]),
    "composedfails": (
        ruled(obj(a=INT, b=SHORT), rule("self.a < 9", message="m", messageExpression="self.b")),
        [{"a": 9}, {"a": 9, "b": "said"}],
    ),
    "forbidden": (
        ruled(obj(a=INT), rule("self.a < 9", reason="FieldValueForbidden", message="no")),
        [{"a": 9}],
    ),
    "requiredreason": (
        ruled(obj(a=INT), rule("has(self.a)", reason="FieldValueRequired", message="no")),
        [{}],
    ),
    "duplicate": (ruled(obj(a=INT), rule("self.a < 9", reason="FieldValueDuplicate")), [{"a": 9}]),
    "fieldpath": (
        ruled(obj(a=obj(b=INT)), rule("self.a.b < 9", fieldPath=".a.b", message="no")),
        [{"a": {"b": 9}}],
    ),
    "fieldpathkey": (
        ruled(obj(a=some(INT)), rule("self.a['x'] < 9", fieldPath=".a['x']", message="no")),
        [{"a": {"x": 9}}],
    ),
    "scalar": (ruled(ints(), rule("self < 9")), [9, 1]),
    "text": (ruled(SHORT, rule("self.startsWith('a')")), ["ab", "b"]),
    "list": (ruled(few(INT), rule("self.all(x, x > 0)", message="positive")), [[1], [0]]),
    "unique": (ruled(few(SHORT), rule("self.all(x, self.exists_one(y, x == y))")), [["a", "b"], ["a", "a"]]),
    "map": (ruled(some(INT), rule("self.all(k, self[k] > 0)")), [{"a": 1}, {"a": 0}]),
    "inkeys": (ruled(some(INT), rule("'a' in self")), [{"a": 1}, {"b": 1}]),
    "items": (few(ruled(obj(a=INT), rule("self.a > 0"))), [[{"a": 1}, {"a": 0}]]),
    "values": (some(ruled(ints(), rule("self > 0"))), [{"x": 1, "y": 0}]),
    "number": (ruled(obj(n=NUMBER), rule("self.n + 0.5 > 2.0")), [{"n": 2}, {"n": 1}, {"n": 1.75}]),
    "numberint": (ruled(obj(n=NUMBER), rule("self.n > 2")), [{"n": 2}, {"n": 3}]),
    "time": (
        ruled(obj(t=texts(format="date-time")), rule("self.t > timestamp('2020-01-01T00:00:00Z')")),
        [{"t": "2021-01-01T00:00:00Z"}, {"t": "2019-01-01T00:00:00Z"}],
    ),
    "date": (
        ruled(obj(t=texts(format="date")), rule("self.t.getFullYear() > 2020")),
        [{"t": "2021-01-01"}, {"t": "2019-01-01"}],
    ),
    "duration": (
        ruled(obj(d=texts(format="duration")), rule("self.d > duration('1h')")),
        [{"d": "2h"}, {"d": "1m"}],
    ),
    "bytes": (ruled(obj(b=texts(format="byte")), rule("self.b == b'ab'")), [{"b": "YWI="}, {"b": "YQ=="}]),
    "either": (
        ruled(
            obj(p={"x-kubernetes-int-or-string": True}),
            rule("type(self.p) == int ? self.p < 9 : self.p.size() < 3"),
        ),
        [{"p": 1}, {"p": 9}, {"p": "ab"}, {"p": "abc"}],
    ),
    "eitherwrong": (
        ruled(obj(p={"x-kubernetes-int-or-string": True}), rule("self.p < 9")),
        [{"p": 1}, {"p": "x"}],
    ),
    "escaped": (
        ruled(
            obj(**{"my-field": INT, "namespace": TEXT, "a.b": INT}),
            rule("self.my__dash__field > 0 && self.__namespace__ != 'x' && self.a__dot__b > 0"),
        ),
        [{"my-field": 1, "namespace": "y", "a.b": 1}, {"my-field": 0, "namespace": "y", "a.b": 1}],
    ),
    "optional": (ruled(obj(a=INT), rule("self.?a.orValue(0) > 0")), [{"a": 1}, {}, {"a": 0}]),
    "nullable": (
        ruled(obj(a=texts(nullable=True)), rule("!has(self.a) || self.a != 'x'")),
        [{"a": None}, {"a": "x"}, {}],
    ),
    "divide": (ruled(obj(a=INT), rule("1 / self.a > 0")), [{"a": 0}, {"a": 1}]),
    "index": (ruled(obj(l=few(INT)), rule("self.l[2] > 0")), [{"l": [1]}, {"l": [1, 1, 1]}]),
    "strings": (
        ruled(
            SHORT,
            rule(
                "self.split(',').size() == 2 && self.lowerAscii() == self && self.trim() == self && self.indexOf(',') == 1"
            ),
        ),
        ["a,b", "A,b", "a"],
    ),
    "matches": (ruled(SHORT, rule("self.matches('^[a-z]+$')")), ["ab", "A"]),
    "find": (
        ruled(SHORT, rule("self.find('[0-9]+') == '12' && self.findAll('[0-9]').size() == 2")),
        ["a12", "a1"],
    ),
    "format": (ruled(obj(a=INT), rule("'%d'.format([self.a]) == '5'")), [{"a": 5}, {"a": 6}]),
    "sets": (
        ruled(few(SHORT), rule("sets.contains(self, ['a']) && !sets.intersects(self, ['z'])")),
        [["a", "b"], ["b"], ["a", "z"]],
    ),
    "lists": (
        ruled(few(INT), rule("self.isSorted() && self.sum() < 10 && self.max() < 9 && self.indexOf(1) == 0")),
        [[1, 2], [2, 1], [1, 9]],
    ),
    "quantity": (
        ruled(SHORT, rule("isQuantity(self) && quantity(self).isLessThan(quantity('1Gi'))")),
        ["500Mi", "2Gi", "x"],
    ),
    "quantityadd": (
        ruled(
            SHORT,
            rule(
                "quantity(self).add(quantity('1')).compareTo(quantity('3')) == 0 && quantity(self) == quantity('2000m')"
            ),
        ),
        ["2", "3"],
    ),
    "ip": (
        ruled(SHORT, rule("isIP(self) && ip(self).family() == 4 && cidr('10.0.0.0/8').containsIP(self)")),
        ["10.1.2.3", "11.1.1.1", "::1", "x"],
    ),
    "url": (
        ruled(
            SHORT, rule("isURL(self) && url(self).getScheme() == 'https' && url(self).getHost() == 'a:80'")
        ),
        ["https://a:80/b", "http://a:80/", "x"],
    ),
    "semver": (
        ruled(SHORT, rule("isSemver(self) && semver(self).isGreaterThan(semver('1.2.3'))")),
        ["1.3.0", "1.2.3", "1.2.3-rc1", "x"],
    ),
    "twovariables": (
        ruled(some(INT), rule("self.all(k, v, v > 0 && k != 'x')")),
        [{"a": 1}, {"a": 0}, {"x": 1}],
    ),
    "places": (ruled(few(INT), rule("self.all(i, v, v > i)")), [[1, 2], [1, 1]]),
    "macros": (
        ruled(few(obj(n=SHORT, v=INT)), rule("self.filter(x, x.v > 0).map(x, x.n).exists(n, n == 'a')")),
        [[{"n": "a", "v": 1}], [{"n": "a", "v": 0}], [{"n": "b", "v": 1}]],
    ),
    "setequal": (
        ruled(
            obj(
                a=few(SHORT, **{"x-kubernetes-list-type": "set"}),
                b=few(SHORT, **{"x-kubernetes-list-type": "set"}),
            ),
            rule("self.a == self.b"),
        ),
        [{"a": ["x", "y"], "b": ["y", "x"]}, {"a": ["x"], "b": ["y"]}],
    ),
    "meta": (
        ruled(
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
            rule("self.metadata.name == 'x' && self.kind == 'Pod'"),
        ),
        [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
            {"apiVersion": "v1", "kind": "Job", "metadata": {"name": "x"}},
        ],
    ),
    "blocked": (
        ruled(obj(a=ints(maximum=5), b=texts(maxLength=2)), rule("self.a < 3")),
        [{"a": 9, "b": "x"}, {"a": 9, "b": "xxx"}],
    ),
    "several": (
        ruled(obj(a=INT), rule("self.a > 1"), rule("self.a > 2", message="two")),
        [{"a": 0}, {"a": 2}],
    ),
    "trim": (ruled(obj(a=INT), rule("  self.a > 1  ", message="  spaced  ")), [{"a": 0}]),
    "ternary": (
        ruled(obj(a=INT, b=SHORT), rule("has(self.b) ? self.a == self.b.size() : self.a == 0")),
        [{"a": 1, "b": "x"}, {"a": 1}, {"a": 0}],
    ),
}

# A field's schema, then pairs of an old value and a new one.
CHANGES: dict[str, tuple[Schema, list[tuple[Any, Any]]]] = {
    "immutable": (
        ruled(SHORT, rule("self == oldSelf", message="fixed")),
        [("a", "a"), ("a", "b"), (None, "a")],
    ),
    "grows": (
        ruled(obj(a=INT), rule("self.a >= oldSelf.a")),
        [({"a": 1}, {"a": 2}), ({"a": 2}, {"a": 1}), (None, {"a": 1})],
    ),
    "optionalold": (
        ruled(
            obj(a=INT),
            rule("oldSelf.hasValue() ? self.a >= oldSelf.value().a : self.a < 5", optionalOldSelf=True),
        ),
        [({"a": 1}, {"a": 2}), ({"a": 2}, {"a": 1}), (None, {"a": 9}), (None, {"a": 0})],
    ),
    "listmap": (
        few(
            ruled({**obj(n=SHORT, v=INT), "required": ["n"]}, rule("self.v >= oldSelf.v")),
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]},
        ),
        [
            ([{"n": "a", "v": 1}, {"n": "b", "v": 5}], [{"n": "b", "v": 4}, {"n": "a", "v": 2}]),
            ([{"n": "a", "v": 1}], [{"n": "c", "v": 0}]),
        ],
    ),
    "mapvalues": (some(ruled(ints(), rule("self >= oldSelf"))), [({"a": 2}, {"a": 1}), ({"a": 2}, {"b": 1})]),
}

# A field's schema, values stored under no schema, and what is then written under this one.
RATCHETS: dict[str, tuple[Schema, list[tuple[Any, Any]]]] = {
    "minimum": (
        obj(a=ints(minimum=5), b=INT),
        [({"a": 1}, {"a": 1, "b": 2}), ({"a": 1}, {"a": 2}), ({"a": 1}, {"a": 1})],
    ),
    "pattern": (
        obj(a=lists(texts(pattern="^x")), b=INT),
        [({"a": ["y"]}, {"a": ["y"], "b": 1}), ({"a": ["y"]}, {"a": ["y", "z"]})],
    ),
    "listmap": (
        lists(
            {**obj(n=TEXT, v=ints(minimum=5)), "required": ["n"]},
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]},
        ),
        [
            ([{"n": "a", "v": 1}], [{"n": "b", "v": 9}, {"n": "a", "v": 1}]),
            ([{"n": "a", "v": 1}], [{"n": "a", "v": 2}]),
        ],
    ),
    "set": (
        lists(TEXT, **{"x-kubernetes-list-type": "set"}),
        [(["a", "a"], ["a", "a", "b"]), (["a"], ["a", "a"])],
    ),
    "required": ({**obj(a=INT, b=INT), "required": ["a"]}, [({"b": 1}, {"b": 1}), ({"b": 1}, {"b": 2})]),
    "rule": (
        ruled(obj(a=INT, b=obj(c=INT)), rule("self.a > 5")),
        [({"a": 1}, {"a": 1}), ({"a": 1}, {"a": 2}), ({"a": 1}, {"a": 1, "b": {"c": 1}})],
    ),
    "length": (
        obj(a=texts(maxLength=1), b=INT),
        [({"a": "xx"}, {"a": "xx", "b": 1}), ({"a": "xx"}, {"a": "xy"})],
    ),
    "anyof": (
        {**obj(a=INT, b=INT), "anyOf": [{"required": ["a"]}]},
        [({"b": 1}, {"b": 1}), ({"b": 1}, {"b": 2})],
    ),
}


# ── Definitions ─────────────────────────────────────────────────────────────────────────────────────


def crd(
    schema: Schema | None = None, *, root: Schema | None = None, spec: Schema | None = None, **version: Any
) -> Schema:
    """A definition of ``Thing``: the schema of its spec or of its root, and what its one version says beside it."""
    root = root or obj(spec=schema or obj(x=INT))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": root},
                    **version,
                }
            ],
            **(spec or {}),
        },
    }


def _versions(*versions: Schema) -> Schema:
    plain = crd()["spec"]["versions"][0]
    return crd(spec={"versions": [{**plain, **one} for one in versions]})


def _named(name: str, **metadata: Any) -> Schema:
    made = crd()
    made["metadata"] = {"name": name, **metadata}
    return made


def _in_group(group: str, **annotations: str) -> Schema:
    made = crd(spec={"group": group})
    made["metadata"] = {"name": f"things.{group}", **({"annotations": annotations} if annotations else {})}
    return made


def _columns(*columns: Schema) -> Schema:
    return crd(additionalPrinterColumns=list(columns))


def _junction(**words: Any) -> Schema:
    return crd({**obj(a=INT), **words})


_KEYS = "x-kubernetes-list-map-keys"
_LIST = "x-kubernetes-list-type"
_MAP = "x-kubernetes-map-type"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_EITHER = "x-kubernetes-int-or-string"

DEFINITIONS: dict[str, Schema] = {
    "plain": crd(),
    "name": _named("other.cases.example.com"),
    "no names": crd(spec={"names": {}}),
    "bad names": crd(
        spec={
            "names": {
                "plural": "things",
                "kind": "Thing_",
                "listKind": "Thing_",
                "shortNames": ["T"],
                "categories": ["Z z"],
            }
        }
    ),
    "same kinds": crd(
        spec={"names": {"plural": "things", "kind": "Thing", "listKind": "Thing", "singular": "Thing"}}
    ),
    "no scope": crd(spec={"scope": None}),
    "bad scope": crd(spec={"scope": "Galaxy"}),
    "no versions": crd(spec={"versions": []}),
    "no storage": _versions({"storage": False}),
    "two storages": _versions({}, {"name": "v2"}),
    "same names": _versions({}, {"storage": False}),
    "bad version": _versions({"name": "V1"}),
    "two versions": _versions({}, {"name": "v2", "storage": False}),
    "two schemas": _versions(
        {}, {"name": "v2", "storage": False, "schema": {"openAPIV3Schema": {"type": "string"}}}
    ),
    "two columns": _versions(
        {"additionalPrinterColumns": [{"name": "A", "type": "x", "jsonPath": ".a"}]},
        {"name": "v2", "storage": False},
    ),
    "two without storage": _versions(
        {"storage": False},
        {
            "name": "v2",
            "storage": False,
            "schema": {"openAPIV3Schema": obj(status=obj(a=INT))},
            "subresources": {"status": {}},
        },
    ),
    "no schema": _versions({"schema": None}),
    "empty schema": _versions({"schema": {}}),
    "group without dot": _in_group("cases"),
    "group in capitals": _in_group("Cases.example.com"),
    "protected": _in_group("cases.k8s.io"),
    "protected and wrong": _in_group("cases.k8s.io", **{"api-approved.kubernetes.io": "yes"}),
    "protected and unapproved": _in_group(
        "cases.k8s.io", **{"api-approved.kubernetes.io": "unapproved, trial"}
    ),
    "protected and approved": _in_group(
        "cases.k8s.io", **{"api-approved.kubernetes.io": "https://example.com/1"}
    ),
    "preserving": crd(spec={"preserveUnknownFields": True}),
    "deprecation": crd(deprecationWarning="x"),
    "deprecated": crd(deprecated=True, deprecationWarning=""),
    "deprecated at length": crd(deprecated=True, deprecationWarning="x" * 257),
    "deprecated with lines": crd(deprecated=True, deprecationWarning="a\nb"),
    "columns": _columns({"name": "A", "type": "integer", "jsonPath": ".spec.x"}),
    "bad columns": _columns(
        {"name": "", "type": "foo", "jsonPath": "spec", "format": "zz"},
        {"name": "B", "type": "", "jsonPath": ""},
    ),
    "scale": crd(subresources={"scale": {"specReplicasPath": ".spec.x", "statusReplicasPath": ".status.x"}}),
    "bad scale": crd(
        subresources={
            "scale": {"specReplicasPath": "x", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".foo"}
        }
    ),
    "empty scale": crd(subresources={"scale": {"specReplicasPath": "", "statusReplicasPath": ""}}),
    "selectable": crd(selectableFields=[{"jsonPath": ".spec.x"}]),
    "bad selectable": crd(
        selectableFields=[
            {"jsonPath": one}
            for one in (".spec.y", ".spec.x", ".spec.x", ".spec", "spec", ".metadata.name", "", ".spec['x']")
        ]
    ),
    "many selectable": crd(
        obj(**{f"a{one}": INT for one in range(9)}),
        selectableFields=[{"jsonPath": f".spec.a{one}"} for one in range(9)],
    ),
    "status at root": crd(root={**obj(status=obj(a=INT)), "maxProperties": 3}, subresources={"status": {}}),
    "status and enough": crd(root={**obj(status=obj()), "required": ["spec"]}, subresources={"status": {}}),
    "webhook": crd(spec={"conversion": {"strategy": "Webhook"}}),
    "bad conversion": crd(
        spec={"conversion": {"strategy": "Zed", "webhook": {"conversionReviewVersions": ["v1"]}}}
    ),
    "none with webhook": crd(
        spec={
            "conversion": {
                "strategy": "None",
                "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]},
            }
        }
    ),
    "webhook over http": crd(
        spec={
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v9", "v9"], "clientConfig": {"url": "http://x"}},
            }
        }
    ),
    "webhook of nobody": crd(
        spec={
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {}},
            }
        }
    ),
    # What is structural.
    "root string": crd(root=TEXT),
    "root without type": crd(root={"properties": {"spec": INT}}),
    "root nullable": crd(root={**obj(), "nullable": True}),
    "root open": crd(root={"type": "object", "additionalProperties": TEXT}),
    "root preserving": crd(root={"type": "object", _PRESERVE: True}),
    "no type": crd(obj(a={}, b={"properties": {"c": {}}})),
    "no items": crd(obj(a={"type": "array"})),
    "items without type": crd(obj(a=lists({}))),
    "items as list": crd(obj(a={"type": "array", "items": [INT]})),
    "metadata": crd(root=obj(metadata=obj(labels=obj()))),
    "metadata name": crd(root=obj(metadata=obj(name=texts(maxLength=5)))),
    "metadata wrong": crd(root=obj(metadata=TEXT, kind=INT, apiVersion=INT)),
    "metadata described": crd(root=obj(metadata={"type": "object", "description": "x"})),
    "any of types": _junction(anyOf=[{"type": "integer"}, {"type": "string"}]),
    "any of everything": _junction(
        anyOf=[
            {
                "type": "object",
                "default": {},
                "title": "t",
                "description": "d",
                "nullable": True,
                _PRESERVE: True,
                "additionalProperties": TEXT,
                _LIST: "set",
                _KEYS: ["a"],
                _MAP: "atomic",
                _EMBEDDED: True,
                _EITHER: True,
            }
        ]
    ),
    "all of unknown": crd(
        root={
            **obj(spec=obj(a=INT)),
            "allOf": [{"properties": {"spec": {"properties": {"b": {"minimum": 1}}}, "z": {}}}],
        }
    ),
    "not with items": crd(
        root={**obj(spec=obj(a=INT)), "not": {"properties": {"spec": {"items": {"minimum": 1}}}}}
    ),
    "nested metadata": crd(root={**obj(), "anyOf": [{"properties": {"metadata": {"minProperties": 1}}}]}),
    "nested rules": _junction(allOf=[{"x-kubernetes-validations": [{"rule": "true"}]}]),
    "either and more": crd(obj(a={_EITHER: True, _PRESERVE: True, _EMBEDDED: True})),
    "either by pattern": crd(obj(a={_EITHER: True, "anyOf": [{"type": "integer"}, {"type": "string"}]})),
    "either by all of": crd(
        obj(
            a={_EITHER: True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"minimum": 1}]}
        )
    ),
    "either wrong way": crd(obj(a={_EITHER: True, "anyOf": [{"type": "string"}, {"type": "integer"}]})),
    "embedded without type": crd(obj(a={_EMBEDDED: True})),
    "embedded string": crd(obj(a={"type": "string", _EMBEDDED: True})),
    "embedded empty": crd(obj(a={"type": "object", _EMBEDDED: True})),
    "embedded open": crd(
        obj(a={"type": "object", _EMBEDDED: True, "additionalProperties": TEXT, _PRESERVE: True})
    ),
    "embedded in metadata": crd(
        obj(a={**obj(metadata={"type": "object", _EMBEDDED: True, _PRESERVE: True}), _EMBEDDED: True})
    ),
    "bad pattern": crd(obj(a=texts(pattern="("), b=texts(pattern="(?=x)"), c=texts(pattern="a**"))),
    # Words.
    "bad types": crd(obj(a={"type": "foo"}, b={"type": "null"})),
    "not supported": crd(
        {
            **obj(),
            "$ref": "#/x",
            "definitions": {"a": TEXT},
            "patternProperties": {"a": TEXT},
            "dependencies": {"a": ["b"]},
            "id": "x",
            "additionalItems": True,
        }
    ),
    "schema word": crd({**obj(), "$schema": "x"}),
    "unique items": crd(obj(a=lists(INT, uniqueItems=True))),
    "both properties": crd(
        obj(a={**obj(b=INT), "additionalProperties": TEXT}, c={**obj(b=INT), "additionalProperties": True})
    ),
    "not preserving": crd(obj(a={"type": "object", _PRESERVE: False})),
    "bad map type": crd(obj(a=texts(**{_MAP: "zz"}), b={_MAP: "atomic", _PRESERVE: True})),
    "bad list type": crd(
        obj(a=texts(**{_LIST: "set"}), b=lists(TEXT, **{_LIST: "zz"}), c={_LIST: "set", _PRESERVE: True})
    ),
    "set of objects": crd(
        obj(a=lists(obj(), **{_LIST: "set"}), b=lists(lists(INT, **{_LIST: "set"}), **{_LIST: "set"}))
    ),
    "set of atomic objects": crd(obj(a=lists({**obj(), _MAP: "atomic"}, **{_LIST: "set"}))),
    "set of nulls": crd(obj(a=lists(texts(nullable=True), **{_LIST: "set"}))),
    "map without keys": crd(obj(a=lists(obj(n=TEXT), **{_LIST: "map"}))),
    "map of texts": crd(obj(a=lists(TEXT, **{_LIST: "map", _KEYS: ["n"]}))),
    "map without items": crd(obj(a={"type": "array", _LIST: "map", _KEYS: ["n"]})),
    "map keys": crd(
        obj(
            a=lists(
                {**obj(n=texts(nullable=True), o=obj()), "nullable": True, "required": ["o"]},
                **{_LIST: "map", _KEYS: ["n", "q", "o", "n"]},
            )
        )
    ),
    "keys without map": crd(
        obj(a=lists(obj(n=TEXT), **{_KEYS: ["n"]}), b=lists(obj(n=TEXT), **{_LIST: "set", _KEYS: ["n"]}))
    ),
    "formats": crd(
        obj(
            a=texts(format="frob"),
            b=ints(format="date"),
            c=numbers(format="int32"),
            d=lists(TEXT, format="x"),
        )
    ),
    # Defaults.
    "wrong default": crd(obj(a=texts(default=5), b=ints(default=1, minimum=2))),
    "unpruned default": crd(obj(a={**obj(b=INT), "default": {"c": 1}})),
    "nested default": crd(obj(a={**obj(b=ints(default="x")), "default": {}})),
    "default in items": crd(obj(a=lists(texts(default=1)))),
    "default in metadata": crd(root=obj(metadata=obj(name=texts(default="x")), kind=texts(default="x"))),
    "default of embedded": crd(
        obj(a={"type": "object", _EMBEDDED: True, _PRESERVE: True, "default": {"kind": "x"}})
    ),
    "default against a rule": crd(obj(a=ruled(ints(default=5), rule("self < 3", message="small")))),
    "default null": crd(obj(a=texts(default=None, nullable=True))),
    # Rules.
    "rule words": crd(
        ruled(
            obj(),
            rule(""),
            rule("true", message=" "),
            rule("true", message="a\nb"),
            rule("true\n&& true"),
            rule("true", reason="Foo"),
            rule("true", fieldPath=".nope"),
            rule("true", messageExpression=" "),
            rule("true", fieldPath=" "),
        )
    ),
    "rule undefined field": crd(ruled(obj(a=INT), rule("self.b > 1"))),
    "rule undeclared": crd(ruled(obj(a=INT), rule("other.b > 1"))),
    "rule unknown function": crd(ruled(obj(a=INT), rule("frob(self.a)"))),
    "rule wrong types": crd(ruled(obj(a=INT, b=TEXT), rule("self.a == self.b"))),
    "rule wrong sum": crd(ruled(obj(a=INT, b=TEXT), rule("self.a + self.b > 1"))),
    "rule wrong method": crd(ruled(obj(a=INT), rule("self.a.startsWith('x')"))),
    "rule not bool": crd(ruled(obj(a=INT), rule("self.a"))),
    "rule syntax": crd(ruled(obj(a=INT), rule("self.a >"))),
    "rule parenthesis": crd(ruled(obj(a=INT), rule("(self.a > 1"))),
    "rule text end": crd(ruled(obj(a=INT), rule("self.a == 'x"))),
    "rule on int": crd(ruled(obj(a=INT), rule("self.a.all(x, x > 1)"))),
    "rule field of int": crd(ruled(obj(a=INT), rule("self.a.b > 1"))),
    "rule mixed list": crd(ruled(obj(a=INT), rule("self.a in [1, 'x']"))),
    "rule ternary": crd(ruled(obj(a=INT), rule("self.a > 1 ? true : 'x'"))),
    "rule two lines": crd(ruled(obj(a=INT), rule("self.a > 1 &&\n self.b > 2", message="m"))),
    "rule several issues": crd(ruled(obj(a=INT), rule("self.b > 1 && self.c > 2"))),
    "rule bad pattern": crd(ruled(obj(a=TEXT), rule("self.a.matches('(')"))),
    "rule bad duration": crd(ruled(obj(a=TEXT), rule("duration('x') > duration('1h')"))),
    "rule bad time": crd(ruled(obj(a=TEXT), rule("timestamp('x') > timestamp('2020-01-01T00:00:00Z')"))),
    "rule null": crd(ruled(obj(a=INT), rule("self.a == null"))),
    "rule preserved": crd(ruled({**obj(a=INT), _PRESERVE: True}, rule("self.b > 1"))),
    "rule root": crd(
        root=ruled(obj(spec=obj(a=INT)), rule("self.metadata.name.size() < 9 && self.spec.a > 1"))
    ),
    "rule root labels": crd(root=ruled(obj(spec=obj(a=INT)), rule("has(self.metadata.labels)"))),
    "rule message type": crd(ruled(obj(a=INT), rule("true", messageExpression="1"))),
    "rule message wrong": crd(ruled(obj(a=INT), rule("true", messageExpression="self.b"))),
    "rule old in list": crd(obj(a=lists(ruled(obj(b=INT), rule("self.b > oldSelf.b"))))),
    "rule old in map": crd(obj(a=maps(ruled(obj(b=INT), rule("self.b > oldSelf.b"))))),
    "rule optional unused": crd(ruled(obj(a=INT), rule("self.a > 1", optionalOldSelf=True))),
    "rule optional wrong": crd(ruled(obj(a=INT), rule("oldSelf.a > 1", optionalOldSelf=True))),
    "rule comparison": crd(
        ruled(obj(a=INT, b=NUMBER), rule("self.a < self.b && self.b < 3 && self.a < 1.5"))
    ),
    "rule double and int": crd(ruled(obj(b=NUMBER), rule("self.b + 1 > 2"))),
    "rule on dyn": crd(
        ruled(obj(p={_EITHER: True}), rule("self.p > 1 && self.p.size() > 2 && self.p == 'x'"))
    ),
    "rule escaped": crd(ruled(obj(**{"a-b": INT}), rule("self.a-b > 1"))),
    "rule map field": crd(ruled(obj(m=maps(INT)), rule("self.m.x > 1 && self.m['y'] > 2"))),
    "rule index": crd(ruled(obj(l=lists(INT)), rule("self.l['x'] > 1"))),
    "rule arity": crd(ruled(obj(a=TEXT), rule("self.a.substring() == 'x'"))),
    "rule bind": crd(ruled(obj(a=INT), rule("cel.bind(x, self.a + 1, x > 1)"))),
    "rule in condition": crd(ruled(obj(a=TEXT), rule("'a' in self.a"))),
}
