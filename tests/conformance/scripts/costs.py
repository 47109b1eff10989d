"""What CEL rules may cost: each is put where it can be evaluated just too often, so that the answer tells its cost.

A row is how often, and the rule: the server says by which factor that is beyond its budget.
"""

# ruff: noqa: E501 - a table of rules: one row is one line
from __future__ import annotations

from typing import Final

from tests.conformance.asking import JSON_PATCH, Json, Script, Step
from tests.conformance.scripts.definitions import CRDS, definition

_GROUP: Final = "cost.example.com"
_SCHEMA: Final[Json] = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "text": {"type": "string", "maxLength": 100},
        "free": {"type": "string"},
        "n": {"type": "integer"},
        "d": {"type": "number"},
        "b": {"type": "boolean"},
        "when": {"type": "string", "format": "date-time"},
        "span": {"type": "string", "format": "duration"},
        "day": {"type": "string", "format": "date"},
        "data": {"type": "string", "format": "byte", "maxLength": 40},
        "e": {"type": "string", "enum": ["abc", "defghij"]},
        "ios": {"x-kubernetes-int-or-string": True},
        "ios2": {"x-kubernetes-int-or-string": True, "maxLength": 9},
        "list": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 30}},
        "ints": {"type": "array", "maxItems": 12, "items": {"type": "integer"}},
        "objs": {
            "type": "array",
            "maxItems": 7,
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {
                    "k": {"type": "string", "maxLength": 5},
                    "v": {"type": "integer"},
                    "inner": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 8}},
                },
            },
        },
        "open": {"type": "array", "items": {"type": "string"}},
        "map": {
            "type": "object",
            "maxProperties": 6,
            "additionalProperties": {"type": "string", "maxLength": 11},
        },
        "imap": {"type": "object", "maxProperties": 6, "additionalProperties": {"type": "integer"}},
        "omap": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"x": {"type": "string", "maxLength": 3}},
            },
        },
        "lists": {
            "type": "array",
            "maxItems": 4,
            "items": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 6}},
        },
        "set": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "maxLength": 30},
        },
        "namespace": {"type": "string", "maxLength": 9},
        "for": {"type": "string"},
    },
}
_RULES: Final = """
12000000 true
4000000 self.n > 3
6000000 self.n == 3
6000000 self.d == 1.5
6000000 self.b
12000000 has(self.text)
2000000 !has(self.text) || self.text.size() < 5
4000000 self.text == "abc"
1000000 self.text == self.name
272728 self.text != self.free
1000000 self.text < self.name
4000000 self.free == "x"
226416 self.text + self.name == "x"
4000000 self.text.startsWith("abc")
1000000 self.text.endsWith(self.name)
285715 self.text.contains("abc")
37038 self.text.contains(self.name)
20 self.free.contains("abcdefghijkl")
142858 self.text.matches("^[a-z]+$")
5 self.free.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
279070 matches(self.text, "abc")
141177 self.text.find("[a-z]+") == "x"
139535 self.text.findAll("[a-z]+").size() < 3
139535 self.text.findAll("[a-z]+", 2).size() < 3
4000000 self.e == "abc"
857143 self.e in ["abc","d"]
857143 self.text in self.list
750000 self.n in self.ints
4000000 "k" in self.map
3000000 self.map["k"] == "v"
3000000 self.map.k == "v"
3000000 self.list[0] == "x"
2400000 self.list[0].size() > 3
279070 self.list.all(x, x != "")
78432 self.list.exists(x, x == self.name)
272728 self.list.exists_one(x, x == "a")
43637 self.list.map(x, x + "a").size() < 3
39345 self.list.map(x, x.size() > 1, x + "a").size() < 3
72728 self.list.filter(x, x.startsWith("a")).size() < 3
58824 self.list.filter(x, x.startsWith("a")).all(y, y.contains("b"))
38217 self.list.map(x, x + "a").all(y, y.contains("b"))
27028 self.list.map(x, x.split(".")).all(y, y.size() > 1)
49587 self.ints.map(x, x * 2).all(y, y < 5)
266667 self.objs.all(o, o.v > 1)
10239 self.objs.all(o, has(o.inner) && o.inner.all(i, i == o.k))
27028 self.objs.all(x, self.objs.exists_one(y, x.k == y.k))
1 self.objs.map(o, o.k).join(",") == "x"
97561 self.list.join() == "a"
60914 self.list.join(self.name) == "a"
363637 self.map.all(k, k.startsWith("a"))
235295 self.map.all(k, self.map[k] == "x")
235295 self.imap.all(k, self.imap[k] > 1)
4 self.omap.all(k, self.omap[k].x == "x")
3 self.open.all(x, x == "a")
97561 self.lists.all(l, l.all(x, x == "a"))
162163 self.lists.map(l, l.size()).sum() < 4
800000 self.ints.sum() < 5
90226 self.list.max() == "a"
800000 self.ints.min() == 1
90910 self.list.isSorted()
857143 self.ints.isSorted()
90226 self.list.indexOf("a") > 1
279070 self.text.indexOf("a") > 1
279070 self.text.lastIndexOf("a", 3) > 1
279070 self.text.lowerAscii() == "a"
32968 self.text.upperAscii().contains(self.name)
230770 self.text.trim() == self.name
279070 self.text.substring(1) == "a"
279070 self.text.substring(1,3) == "a"
144579 self.text.replace("a","bb") == "a"
16575 self.text.replace("a","bb").contains(self.name)
11386 self.text.replace(self.name,"bb").contains(self.name)
11407 self.text.replace("","bb").contains(self.name)
29703 self.text.replace("abc","b", 2).contains(self.name)
7131 self.text.split(",").all(x, x == "a")
126316 self.text.split(",", 3).all(x, x == "a")
142858 self.text.split(",").size() < 4
3000000 self.text.charAt(1) == "a"
3000000 self.text.size() > 3
3000000 size(self.list) > 3
1714286 self.list.size() == self.ints.size()
923077 self.list == ["a"]
750000 self.list + ["a"] == self.list
2400000 self.list == self.set
2400000 self.set == self.set
461539 [1,2,3].all(x, x > 1)
521740 ["a","bcd"].all(x, x == self.name)
342858 {"a":"b"}.all(k, k == "a")
375000 {"a": 1}["a"] == 1
521740 [self.name, self.text].all(x, x.contains("a"))
3000000 self.when > timestamp("2020-01-01T00:00:00Z")
3000000 self.when == timestamp("2020-01-01T00:00:00Z")
3000000 self.span < duration("1h")
2000000 self.day == self.when
3000000 self.when.getFullYear() > 3
4000000 self.data == b"abc"
1714286 string(self.data) == "abc"
250000 bytes(self.text) == self.data
3000000 string(self.n) == "3"
3000000 int(self.text) > 3
3000000 double(self.text) > 3.0
3000000 type(self.ios) == int
4000000 self.ios == 3
4000000 self.ios == "3"
4000000 self.ios2 == "3"
1500000 type(self.ios) == string ? self.ios.size() > 3 : self.ios < 3
39 self.ios.matches("a+")
3000000 dyn(self.text) == "a"
230770 dyn(self.ints).all(x, x == 1)
266667 self.b ? self.n > 1 : self.text.matches("abc")
2400000 (self.b ? self.text : self.name) == "a"
266667 (self.b ? self.list : self.set).all(x, x == "a")
1500000 self.n > 1 && self.text == "abc" && self.b
1500000 self.n > 1 || self.text == "abc" || self.b
857143 self.n + 3 * 4 - 1 > 5 && -self.n < 3 && self.n % 2 == 0
6000000 self == oldSelf
272728 self.text == oldSelf.text
73620 self.list.all(x, x in oldSelf.list)
3000000 url("https://a.b/c").getHost() == "a"
4000000 isURL(self.text)
272728 url(self.text).getScheme() == "https"
200000 url(self.text) == url(self.name)
272728 quantity("1Gi").isLessThan(quantity(self.text))
272728 quantity(self.text) == quantity("1")
285715 isQuantity(self.text)
272728 ip(self.text).family() == 4
272728 ip(self.text) == ip("1.2.3.4")
285715 isIP(self.text)
146342 ip.isCanonical(self.text)
255320 cidr(self.text).containsIP("1.2.3.4")
255320 cidr(self.text).containsIP(ip("1.2.3.4"))
203390 cidr(self.text).containsCIDR(self.name)
240000 cidr(self.text).containsCIDR(cidr("1.2.3.0/24"))
266667 cidr(self.text).ip().family() == 4
139535 cidr(self.text).masked() == cidr(self.text)
272728 cidr(self.text).prefixLength() == 4
285715 isCIDR(self.text)
272728 semver(self.text).major() == 1
285715 isSemver(self.text)
272728 semver(self.text).isLessThan(semver("1.0.0"))
521740 sets.contains(self.list, ["a"])
114286 sets.intersects(self.list, self.set)
58537 sets.equivalent(self.list, self.set)
500000 self.list.slice(0, 2).all(x, x == "a")
196722 self.list.slice(1, self.n).all(x, x == "a")
352942 self.lists.flatten().all(x, x == "a")
521740 self.lists.flatten(2).size() > 3
55046 self.list.distinct().size() == self.list.size()
187500 self.list.reverse().all(x, x == "a")
53098 self.list.sort() == self.list
39604 self.ints.sort().size() > 3
285715 lists.range(5).all(x, x > 2)
1 lists.range(self.n).size() > 3
857143 "%s".format([self.text]) == "a"
226416 self.text.format([1]) == "a"
279070 strings.quote(self.text) == "a"
190477 self.list.all(i, x, x != "" && i < 4)
363637 self.map.all(k, v, v != k)
307693 self.map.exists(k, v, v == "a")
272728 self.list.existsOne(i, x, x == "a")
43637 self.list.transformList(i, x, x + "a").size() < 3
58824 self.list.transformList(i, x, i > 1, x).all(y, y == "a")
3000000 self.?text.orValue("") == "a"
4000000 self.?text.hasValue()
2400000 self.list[?0].orValue("a") == "a"
2400000 optional.of(self.text).value() == "a"
15524 self.list.exists(x, x.matches("^a") && self.objs.all(o, o.k != x))
4000000 self.namespace == "a"
4000000 self.__namespace__ == "a"
379 self.list.all(x, self.list.all(y, self.list.all(z, x == y || y == z)))
14564 self.text.matches(self.name)
750000 !(self.text in ["a","b","c"])
69365 self.list.all(x, x in ["a","b","c"])
1 self.omap.all(k, self.map.exists(j, j == k))
1 self.open.exists(x, self.open.exists(y, x == y))
1 self.free.split(",").all(x, x.size() < 4)
42254 self.objs.filter(o, o.v > 1).map(o, o.k).exists(k, k == self.name)
32968 self.objs.map(o, {"a": o.k}).all(m, m.a == "b")
2000000 timestamp(self.text) < self.when
2000000 duration(self.text) < self.span
1500000 self.when - self.when < self.span
1500000 size(self.map) + size(self.text) > 3
3000000 self.list.first().hasValue()
2000000 self.list[self.n] == "a"
210527 self.n == 1 ? true : self.n == 2 ? self.text == "a" : self.list.all(x, x == "a")
800000 [1, self.n].max() > 2
1 [self.text].min() == "a"
266667 self.objs.all(o, o.inner.all(i, i == o.k && o.v > 1))
9050 self.objs.all(o, o.inner.exists(i, i == o.k) && o.k == "a")
3076 self.objs.all(o, o.inner.map(i, i + o.k).all(z, z == o.k))
181819 self.objs.all(o, o.k == "a" || o.inner.all(i, o.v > 2))
40 self.objs.all(o, self.objs.all(p, o.inner.all(i, p.inner.all(j, i == j || p.k == o.k))))
5173 self.objs.exists(o, self.lists.exists(l, l.exists(x, x == o.k && self.text == x)))
2 self.omap.all(k, self.omap[k].x == k && self.map[k] == self.omap[k].x)
14870 self.map.all(k, v, v == self.name && self.list.all(i, x, x == v || x == k))
7571 self.objs.all(i, o, o.inner.all(j, y, y == o.k && i == j))
15385 oldSelf.objs.all(o, self.objs.exists(p, p.k == o.k && p.inner == o.inner))
14235 self.lists.all(l, l.all(x, l.exists_one(y, y == x)))
56339 self.objs.all(o, [o.k, self.name].all(z, z.contains(o.k)))
33995 self.objs.all(o, {"a": o.k, "b": self.text}.all(z, z == o.k))
4000000 self.for == "x"
69768 self.objs.map(o, o.inner).flatten().all(x, x == self.name)
222223 self.name.matches('a') ? self.text.matches('b') : false
"""


def _crd(schema: Json) -> Json:
    whole = {"type": "object", "properties": {"spec": schema}}
    return definition("costs", "Cost", whole, group=_GROUP)


def _often(times: int, rule: str) -> Json:
    """A list of so many, each with the rule."""
    item = {**_SCHEMA, "x-kubernetes-validations": [{"rule": rule}]}
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    return _crd({"type": "array", "maxItems": times, **keys, "items": item})


def _each() -> list[Step]:
    rows = [line.partition(" ") for line in _RULES.strip().splitlines()]
    return [
        Step(
            "POST",
            CRDS + "?dryRun=All",
            _often(int(times), rule),
            name=rule,
            only=("kind", "reason", "message", "details"),
        )
        for times, _, rule in rows
    ]


def _together() -> list[Step]:
    """Rules that are cheap enough by themselves, messages, places without a bound, and what was there before."""
    text = {"type": "string", "maxLength": 100}
    dear = {"rule": "self.all(x, self.all(y, x == y || x.contains(y)))"}

    def lists(count: int, most: int) -> Json:
        """Each a little shorter than the one before, so that there is no doubt which cost most."""
        one = {"type": "array", "items": text, "x-kubernetes-validations": [dear]}
        fields = {f"l{place}": {**one, "maxItems": most - place} for place in range(count)}
        return {"type": "object", "properties": fields}

    message = {
        "rule": "self.size() > 1",
        "messageExpression": "self.map(x, self.map(y, x + y).join()).join()",
    }
    unbound = {
        "type": "array",
        "items": {**text, "x-kubernetes-validations": [{"rule": "self.matches('^a+$')"}]},
    }
    mapped = {
        "type": "object",
        "additionalProperties": {
            "type": "array",
            "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]},
        },
    }
    path = f"{CRDS}/costs.{_GROUP}"
    where = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
    schemas: dict[str, Json] = {
        "one": lists(1, 70), "one too large": lists(1, 90), "many": lists(20, 75), "many too large": lists(3, 3000), "five": lists(5, 78),
        "a message": {"type": "array", "maxItems": 300, "items": text, "x-kubernetes-validations": [message]},
        "without a bound": unbound, "without any bound": mapped, "not bound at all": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "x-kubernetes-validations": [
            {"rule": "self.all(a, a.all(b, self.all(c, c.all(d, b != d || true))))"}]},
        "a bound of 0": {"type": "array", "maxItems": 0, "items": text, "x-kubernetes-validations": [dear]},
    }  # fmt: skip
    return [
        *(Step("POST", CRDS + "?dryRun=All", _crd(schema), name=name, only=("kind", "reason", "message", "details")) for name, schema in schemas.items()),
        Step("POST", CRDS, _crd(lists(3, 50)), is_quiet=True),
        Step("GET", path, until_says="Established=True", is_quiet=True),
        Step("PATCH", path, [{"op": "replace", "path": where, "value": lists(3, 3000)}], JSON_PATCH, name="made too costly", only=("kind", "reason", "message", "details")),
        Step("PATCH", path, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], JSON_PATCH, name="labelled", only=("kind",)),
        Step("DELETE", path, is_quiet=True),
    ]  # fmt: skip


SCRIPTS = [Script("the cost of each rule", _each()), Script("the cost of rules together", _together())]
