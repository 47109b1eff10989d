"""CEL: hundreds of expressions, each asked for its value, or for what is wrong with it.

A row of ``_VALUES`` is an expression on ``self``.  It becomes a rule that never holds, whose message shows its value;
where it has no value, the refusal says why; those of ``_FAILING`` never have one, or none that has a text.  A row of
``_WRONG`` is refused when the rule is written.
"""

# ruff: noqa: E501 - a table of expressions: one row is one line
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from tests.conformance.asking import Json, Script, Step
from tests.conformance.scripts.definitions import CRDS, definition

_GROUP: Final = "values.example.com"
SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "text": {"type": "string", "maxLength": 100},
        "n": {"type": "integer"},
        "zero": {"type": "integer"},
        "big": {"type": "integer", "format": "int64"},
        "d": {"type": "number"},
        "whole": {"type": "number"},
        "b": {"type": "boolean"},
        "when": {"type": "string", "format": "date-time"},
        "span": {"type": "string", "format": "duration"},
        "day": {"type": "string", "format": "date"},
        "data": {"type": "string", "format": "byte", "maxLength": 40},
        "ios": {"x-kubernetes-int-or-string": True},
        "iosText": {"x-kubernetes-int-or-string": True},
        "list": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10}},
        "ints": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
        "doubles": {"type": "array", "maxItems": 5, "items": {"type": "number"}},
        "times": {"type": "array", "maxItems": 3, "items": {"type": "string", "format": "date-time"}},
        "set": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 10}},
        "mapList": {
            "type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "maxLength": 5}, "v": {"type": "integer"}}},
        },
        "objs": {"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}, "b": {"type": "integer"}}}},
        "map": {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "string", "maxLength": 10}},
        "imap": {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "integer"}},
        "obj": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 10}, "missing": {"type": "string", "maxLength": 10}, "null": {"type": "string", "nullable": True, "maxLength": 10}}},
        "maybe": {"type": "string", "nullable": True, "maxLength": 10},
        "absent": {"type": "string", "maxLength": 10},
        "absentInt": {"type": "integer"},
        "absentList": {"type": "array", "maxItems": 3, "items": {"type": "integer"}},
        "absentTime": {"type": "string", "format": "date-time"},
        "lists": {"type": "array", "maxItems": 3, "items": {"type": "array", "maxItems": 3, "items": {"type": "integer"}}},
        "namespace": {"type": "string", "maxLength": 9},
        "for": {"type": "string", "maxLength": 9},
        "dash-ed": {"type": "string", "maxLength": 9},
        "dot.ted": {"type": "string", "maxLength": 9},
        "sla/sh": {"type": "string", "maxLength": 9},
        "under__score": {"type": "string", "maxLength": 9},
        "url": {"type": "string", "maxLength": 60},
        "quantity": {"type": "string", "maxLength": 10},
        "ip": {"type": "string", "maxLength": 40},
        "cidr": {"type": "string", "maxLength": 45},
        "version": {"type": "string", "maxLength": 30},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    },
}  # fmt: skip
SPEC: Final[Json] = {
    "name": "abc", "text": "Hello, World! 42 äöü", "n": 7, "zero": 0, "big": 9223372036854775807, "d": 1.5, "whole": 3, "b": True,
    "when": "2024-02-29T12:34:56.789Z", "span": "1h30m", "day": "2024-02-29", "data": "aGVsbG8=", "ios": 3, "iosText": "80%",
    "list": ["b", "a", "c", "a"], "ints": [3, 1, 2], "doubles": [1, 2.5], "times": ["2020-01-01T00:00:00Z", "2021-01-01T00:00:00+02:00"],
    "set": ["x", "y"], "mapList": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "objs": [{"a": "x", "b": 1}, {"a": "y"}],
    "map": {"one": "1", "two": "2"}, "imap": {"one": 1}, "obj": {"a": "in", "null": None}, "maybe": None, "lists": [[1, 2], [3], []],
    "namespace": "ns", "for": "four", "dash-ed": "dash", "dot.ted": "dot", "sla/sh": "slash", "under__score": "under",
    "url": "https://user:pw@example.com:8080/a%20b/c?x=1&y=2&x=3#f", "quantity": "1.5Gi", "ip": "192.168.0.1", "cidr": "10.1.2.3/8", "version": "1.2.3-rc.1+b5",
    "free": {"any": {"thing": 1}}, "embedded": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e"}, "data": {}},
}  # fmt: skip

_VALUES: Final = r"""
1 + 2 * 3 - 4
7 / 2
-7 / 2
7 % 3
-7 % 3
self.n / self.zero
self.n % self.zero
self.big + 1
-self.big - 2
self.big * 2
1u + 2u
1u - 2u
5u / 2u
5u % 0u
1.5 + 2.25
1.0 / 0.0
-1.0 / 0.0
0.0 / 0.0
self.d * 2.0
self.whole
self.whole / 2.0
self.doubles
self.doubles[0]
self.doubles.sum()
double(self.n) / 2.0
1 < 2
1 < 1.5
1u < 2
self.d > 1
"a" < "b"
"a" < "B"
b"a" < b"b"
true < false
false < true
[1, 2] == [1, 2]
[1] == [2]
{"a": 1} == {"b": 1}
1 != 2
null == null
self.n == 7 && self.zero == 0
self.n == 7 || self.n / self.zero == 1
self.n / self.zero == 1 || self.n == 7
self.n / self.zero == 1 && self.n == 8
self.n / self.zero == 1 && self.n == 7
self.n / self.zero == 1 || self.n == 8
!self.b
self.b ? "yes" : "no"
self.zero == 0 ? 1 : 1 / self.zero
"abc" + "def"
b"abc" + b"def"
[1] + [2, 3]
self.list + ["z"]
"a" in self.list
"q" in self.list
1 in [1, 2]
1 in self.ints
"one" in self.map
"three" in self.map
2 in {1: "a", 2: "b"}
size(self.text)
self.text.size()
size(self.data)
size(self.list)
size(self.map)
size("ä")
size(b"ä")
self.list[0]
self.list[9]
self.list[-1]
self.list[self.n]
self.ints[self.zero]
self.map["one"]
self.map["three"]
self.map.one
self.imap.one + 1
{"a": 1}.a
{"a": 1}["b"]
{1: "a"}[1]
{true: "t"}[true]
[1, 2, 3][1]
[1, 2, 3][3]
[[1, 2], [3]][0][1]
has(self.name)
has(self.absent)
has(self.maybe)
has(self.obj.a)
has(self.obj.missing)
has(self.map.one)
has(self.map.three)
has({"a": 1}.b)
self.absent
self.obj.missing
has(self.absentInt) ? self.absentInt : -1
self.absentInt + 1
int("42")
int("-42")
int("+42")
int(self.text)
int(3.9)
int(-3.9)
int(5u)
int(self.when)
int(self.span)
uint("42")
uint(42)
uint(3.9)
uint(self.name)
double("1.5")
double("1e3")
double("Inf")
double("nan")
double(self.name)
double(3)
double(3u)
bool("true")
bool("T")
bool("0")
bool(self.name)
bool(true)
string(1)
string(1u)
string(1.5)
string(1000000.0)
string(123456.0)
string(1e21)
string(1e-7)
string(0.0001)
string(true)
string(b"abc")
string(self.data)
string(self.when)
string(self.span)
string(timestamp("2020-01-01T00:00:00+02:00"))
string(duration("1h2m3.5s"))
string(duration("-1.5s"))
string(duration("1ns"))
bytes("abc")
bytes("ä")
self.data
self.data == b"hello"
type(1)
type(self.name)
type(self.list)
type(self.obj)
type(self.map)
type(self.when)
type(self.span)
type(self.data)
type(self.d)
type(self.whole)
type(self.ios)
type(self.iosText)
type(null)
type(type(1))
type(1u) == uint
type(self.ios) == int
type(self.iosText) == string
type(timestamp("2020-01-01T00:00:00Z")) == google.protobuf.Timestamp
type([]) == list
type({}) == map
type(optional.none()) == optional_type
type(ip("1.2.3.4"))
type(quantity("1"))
type(url("https://a"))
type(semver("1.2.3"))
type(cidr("1.2.3.4/8"))
self.ios + 1
self.iosText + "x"
self.iosText + 1
self.ios == "3"
self.ios == 3
self.ios < 4
self.iosText < 4
self.ios.size()
size(self.ios)
self.ios.startsWith("a")
self.iosText.startsWith("8")
self.iosText.matches("^[0-9]+%$")
self.ios.matches("3")
-self.iosText
!self.ios
self.iosText * 2
self.ios / 0
self.ios && true
self.ios ? 1 : 2
self.ios in [3]
self.ios in ["3"]
self.ios in {"3": 1}
self.ios[0]
self.ios.foo
has(self.ios.foo)
self.ios.all(x, true)
int(self.iosText)
string(self.ios)
self.ios.lowerAscii()
self.ios.indexOf("a")
self.ios.join()
self.ios.sum()
self.ios.isSorted()
self.ios.min()
self.ios.slice(0, 1)
self.ios.flatten()
self.ios.reverse()
self.ios.find("a")
self.ios.getHours()
self.iosText.getHours()
self.ios.asInteger()
self.ios.family()
self.ios.major()
self.ios.hasValue()
self.ios.value()
self.ios.format([1])
self.iosText.format(dyn(1))
self.ios.charAt(0)
self.iosText.charAt(self.iosText)
self.ios.split(",")
self.ios.trim()
self.ios.replace("a", "b")
self.ios.substring(1)
sets.contains(dyn(self.ios), [1])
isQuantity(self.ios)
isIP(self.ios)
isURL(self.ios)
strings.quote(self.ios)
timestamp(self.iosText)
duration(self.ios)
timestamp(self.ios)
uint(self.iosText)
double(self.iosText)
bool(self.ios)
bytes(self.ios)
-dyn(true)
-dyn([1])
dyn(true) - 1
dyn([1]) * 2
dyn({"a": 1}) < 1
dyn(null) < 1
dyn(true) < 1
dyn(1) == true
dyn(ip("1.2.3.4")) == "1.2.3.4"
dyn(quantity("1")) == 1
dyn("1.2.3.4") == ip("1.2.3.4")
dyn(1) in dyn("a")
dyn(self.when) + 1
dyn(self.span) * 2
dyn(self.name) * 2
dyn(self.name) && true
dyn(1) || true
dyn(1) || false
dyn([3, 1]).sort()
dyn([[1], [2]]).flatten()
dyn({"a": {"b": 1}}).a.b
dyn({"a": {"b": 1}}).a.c
has(dyn({"a": 1}).a.b)
dyn([1, 2]).map(x, x * 2)
dyn(self.set) == ["y", "x"]
quantity("1.0").isInteger()
quantity("1.5Ki").isInteger()
quantity("1.5k").isInteger()
quantity("1k").add(quantity("1000m")).isInteger()
quantity("1000m").add(1).isInteger()
quantity("1e3").isInteger()
quantity("1000e-3").isInteger()
dyn(self.list)[0]
dyn(self.list)["a"]
dyn(self.list)[0.5]
dyn(self.list)[1.0]
dyn(self.list)[1u]
dyn(self.map)[1]
dyn(self.map).one
dyn(self.obj).a
dyn(1).foo
dyn(self.list) == 1
dyn(self.map) == "a"
dyn(1) == "a"
dyn("a") == 1
dyn([1]) == 1
dyn({"a": 1}) == 1
dyn(null) == 1
dyn(1) + "a"
dyn("a") < 1
dyn(null) + 1
dyn([1]) + 1
dyn(1).size()
dyn(1).contains("a")
dyn(1).orValue(2)
dyn(self.when) == "a"
self.text.startsWith("Hello")
self.text.endsWith("ü")
self.text.contains("World")
self.text.matches("[A-Z][a-z]+")
self.text.matches("^[a-z]+$")
matches(self.name, "b")
self.name.matches(self.name)
self.name.matches("(" + self.name)
"".matches("")
"a\nb".matches("a.b")
"a\nb".matches("(?s)a.b")
"ABC".matches("(?i)abc")
"foo123".matches("\\d+$")
self.text.charAt(4)
self.text.charAt(17)
self.text.charAt(20)
self.text.charAt(21)
self.text.charAt(-1)
self.text.indexOf("o")
self.text.indexOf("o", 5)
self.text.indexOf("zzz")
self.text.indexOf("")
self.text.indexOf("", 3)
self.text.indexOf("o", -1)
self.text.indexOf("o", 99)
self.text.lastIndexOf("o")
self.text.lastIndexOf("o", 5)
self.text.lastIndexOf("")
self.text.lastIndexOf("o", -1)
self.text.lastIndexOf("zzz", 3)
self.text.lowerAscii()
self.text.upperAscii()
self.text.replace("l", "L")
self.text.replace("l", "L", 2)
self.text.replace("l", "L", 0)
self.text.replace("l", "L", -1)
self.text.replace("", "-")
self.text.split(" ")
self.text.split(" ", 2)
self.text.split(" ", 0)
self.text.split(" ", -1)
self.name.split("")
self.name.split("", 2)
"".split(",")
self.text.substring(7)
self.text.substring(7, 12)
self.text.substring(12, 7)
self.text.substring(-1)
self.text.substring(99)
self.text.substring(0, 99)
"  \t a b \n ".trim()
self.list.join()
self.list.join("-")
[].join("-")
strings.quote("a\"b\n\\ä")
"%d %s %s".format([1, "a", true])
"%s".format([[1, 2]])
"%s".format([["a", "b"]])
"%s".format([{"a": 1, "b": 2}])
"%s".format([{1: "x"}])
"%s".format([1.5])
"%s".format([[1.5]])
"%s".format([null])
"%s".format([b"abc"])
"%s".format([self.when])
"%s".format([[self.when]])
"%s".format([self.span])
"%s".format([[self.span]])
"%s".format([int])
"%d".format([5u])
"%f".format([1.5])
"%.2f".format([1234567.891])
"%.0f".format([2.5])
"%f".format([1.0 / 0.0])
"%e".format([1234.5])
"%.3e".format([1234.5])
"%e".format([0.00012])
"%b".format([5])
"%b".format([true])
"%b".format([-5])
"%x".format([255])
"%X".format([255])
"%x".format(["abc"])
"%x".format([b"abc"])
"%x".format([-255])
"%o".format([8])
"100%%".format([])
self.text.format([1])
"%d".format([self.ios])
"%d".format([self.iosText])
"%s".format(self.list)
"%s %s".format(self.ints)
"%s %s %s %s".format(self.ints)
self.list.all(x, x != "")
self.list.all(x, x < "c")
self.list.exists(x, x == "c")
self.list.exists(x, x == "q")
self.list.exists_one(x, x == "a")
self.list.exists_one(x, x == "b")
self.list.map(x, x + x)
self.list.map(x, x != "a", x + x)
self.list.filter(x, x == "a")
self.ints.map(x, x * 2)
self.ints.all(x, 6 / (x - 1) > 0)
self.ints.exists(x, 6 / (x - 1) > 0)
self.ints.exists(x, 6 / (x - 1) > 100)
self.ints.map(x, 6 / (x - 1))
self.ints.exists_one(x, 6 / (x - 1) == 3)
self.map.all(k, k.size() == 3)
self.map.exists(k, self.map[k] == "2")
self.map.map(k, self.map[k]).sort()
self.map.filter(k, k == "one")
{"a": 1, "b": 2}.map(k, k).sort()
self.lists.map(l, l.size())
self.lists.map(l, l.map(x, x + 1))
self.objs.map(o, o.a)
self.objs.map(o, o.b)
self.objs.filter(o, has(o.b)).map(o, o.b)
self.mapList.map(m, m.k)
self.mapList.filter(m, m.v > 1)[0].k
[1, 2, 3].map(x, [4, 5].map(y, x * y))
[3, 1].all(x, x > 0) && [1].exists(x, x == 1)
self.list.all(i, x, i < 4 && x != "")
self.list.exists(i, x, i == 2 && x == "c")
self.list.existsOne(i, x, x == "a")
self.list.exists_one(i, x, x == "b")
self.list.transformList(i, x, "%d%s".format([i, x]))
self.list.transformList(i, x, i > 1, x)
self.map.transformList(k, v, k + v).sort()
self.map.all(k, v, k.size() > v.size())
self.map.exists(k, v, v == "2")
self.map.transformMap(k, v, v + v)
self.map.transformMap(k, v, v == "1", v + v)
self.list.transformMap(i, x, x)
self.map.transformMapEntry(k, v, {v: k})
self.list.transformMapEntry(i, x, {x: i})
self.ints.transformMapEntry(i, x, i > 0, {x: i})
self.ints.isSorted()
[1, 2, 3].isSorted()
[].isSorted()
self.times.isSorted()
self.ints.sum()
[].sum()
[1.5, 2.5].sum()
[1u, 2u].sum()
[duration("1h"), duration("2h")].sum()
[9223372036854775807, 1].sum()
self.ints.min()
self.ints.max()
self.list.min()
self.times.max()
[].min()
[].max()
[true, false].max()
self.list.indexOf("a")
self.list.lastIndexOf("a")
self.list.indexOf("q")
self.ints.indexOf(2)
self.ints.slice(0, 2)
self.ints.slice(1, 1)
self.ints.slice(-1, 1)
self.ints.slice(0, 9)
self.lists.flatten()
[[1]].flatten(-1)
self.list.distinct()
self.list.reverse()
self.list.sort()
self.ints.sort()
[2.5, 1.5].sort()
self.times.sort()
self.objs.sortBy(o, o.a).map(o, o.a)
self.ints.sortBy(x, -x)
self.list.sortBy(x, x)
lists.range(3)
lists.range(0)
lists.range(-1)
self.list.first().value()
self.list.last().orValue("none")
[].first().hasValue()
self.set == ["y", "x"]
["y", "x"] == self.set
self.set + ["y", "z"]
self.set == ["x", "x"]
self.set == ["x"]
self.mapList.map(m, m.k) + ["z"]
sets.contains([1, 2, 3], [2])
sets.contains(self.list, ["q"])
sets.equivalent([1, 2], [2, 1, 1])
sets.intersects(self.list, ["a", "q"])
sets.intersects([], [1])
sets.contains([], [])
self.text.find("[0-9]+")
self.text.find("zzz")
self.text.find("(W)(o)")
self.text.findAll("[a-z]+")
self.text.findAll("[a-z]+", 1)
self.text.findAll("[a-z]+", 0)
self.text.findAll("o", -1)
"abab".findAll("")
"aaa".findAll("a*")
"foobarfoo".findAll("foo|bar|foobar")
"a1b22c333".findAll("[a-z]+[0-9]+[a-z]+[0-9]*")
"xaay".find("(a|ab)(c|bcd)?y?")
"aaaa".find("(a+)+$")
"one two".findAll("\\b\\w")
"k=v;k2=v2".findAll("(\\w+)=(\\w+);?")
"αβγ".find("β.*")
self.when.getFullYear()
self.when.getMonth()
self.when.getDayOfYear()
self.when.getDayOfMonth()
self.when.getDate()
self.when.getDayOfWeek()
self.when.getHours()
self.when.getMinutes()
self.when.getSeconds()
self.when.getMilliseconds()
self.when.getHours("America/New_York")
self.when.getHours("+05:30")
self.when.getHours("-05:30")
self.when.getMinutes("-05:30")
self.when.getHours("Nowhere/Land")
self.when.getHours("x:y")
self.when.getDate("Asia/Tokyo")
self.span.getHours()
self.span.getMinutes()
self.span.getSeconds()
self.span.getMilliseconds()
duration("-90s").getMinutes()
self.when + self.span
self.when - self.span
self.when - self.day
self.span + self.span
self.span - duration("2h")
self.span + self.when
self.when > timestamp("2020-01-01T00:00:00Z")
self.span > duration("1h")
self.day
self.day == timestamp("2024-02-29T00:00:00Z")
self.times == [timestamp("2020-01-01T00:00:00Z"), timestamp("2020-12-31T22:00:00Z")]
self.times[1]
timestamp("2020-01-01T00:00:00Z") in self.times
timestamp("9999-12-31T23:59:59Z") + duration("1s")
timestamp("0001-01-01T00:00:00Z") - duration("1s")
timestamp(0)
timestamp(1700000000)
timestamp(self.name)
duration(self.name)
duration("1d" + self.absent)
duration("1h1m1s1ms1us1ns")
duration("1.5h")
duration("0")
timestamp("2024-02-30T00:00:00" + (self.b ? "Z" : ""))
timestamp("2024-02-29t00:00:00" + (self.b ? "z" : ""))
timestamp("2024-02-29 00:00:00" + (self.b ? "Z" : ""))
optional.of(1).value()
optional.none().hasValue()
optional.none().value()
optional.of(1).hasValue()
optional.of(1).orValue(2)
optional.none().orValue(2)
optional.none().or(optional.of(3)).value()
optional.ofNonZeroValue(0).hasValue()
optional.ofNonZeroValue("").hasValue()
optional.ofNonZeroValue([1]).hasValue()
optional.of(1) == optional.of(1)
optional.of(1) == optional.none()
self.?name.value()
self.?absent.hasValue()
self.?absent.orValue("none")
self.?absentInt.orValue(3)
self.?absentList.orValue([])
self.?absentTime.hasValue()
self.?when.value().getFullYear()
self.?obj.a.orValue("none")
self.?obj.?missing.orValue("none")
self.?obj.missing.orValue("none")
self.?maybe.hasValue()
self.list[?0].orValue("none")
self.list[?9].orValue("none")
self.map[?"one"].orValue("none")
self.map[?"three"].orValue("none")
self.?map.one.orValue("none")
self.?list[0].orValue("none")
self.?list[?9].orValue("none")
self.?name.optFlatMap(x, optional.of(x.size())).value()
[optional.of(1), optional.none()].unwrapOpt()
optional.unwrap([optional.of(1), optional.none()])
has(self.?obj.a)
self.__namespace__
self.__for__
self.dash__dash__ed
self.dot__dot__ted
self.sla__slash__sh
self.under__underscores__score
self.embedded.kind
self.embedded.metadata.name
has(self.embedded.metadata)
url(self.url).getScheme()
url(self.url).getHost()
url(self.url).getHostname()
url(self.url).getPort()
url(self.url).getEscapedPath()
url(self.url).getQuery()
url("https://[::1]:80/").getHost()
url("https://[::1]:80/").getHostname()
url("/relative/path").getScheme()
url("https://example.com").getEscapedPath()
url("https://example.com/?a").getQuery()
url("https://example.com") == url("https://example.com")
isURL("https://example.com")
isURL("mailto:a@b")
isURL("//a/b")
isURL("../a")
isURL("http:// a")
isURL("*")
quantity(self.quantity).isGreaterThan(quantity("1Gi"))
quantity("1500m").isLessThan(quantity("2"))
quantity("1k").compareTo(quantity("1000"))
quantity("1Ki").compareTo(quantity("1000"))
quantity("50k").add(quantity("20k")) == quantity("70k")
quantity("50k").add(20).asInteger()
quantity("50k").sub(20000).asInteger()
quantity("50k").sub(quantity("20k")).asInteger()
quantity("50").asInteger()
quantity("50m").asInteger()
quantity("1000m").asInteger()
quantity("1000m").isInteger()
quantity("50").isInteger()
quantity("50k").isInteger()
quantity("9999999999999999999").isInteger()
quantity("1.5").asApproximateFloat()
quantity("1Gi").asApproximateFloat()
sign(quantity("-5"))
sign(quantity("0"))
quantity("1") == quantity("1000m")
quantity("1e3") == quantity("1k")
isQuantity("1k")
isQuantity("1x")
isQuantity("1.5Mi")
isQuantity("")
isQuantity(".5")
isQuantity("5.")
isQuantity("+5")
ip(self.ip).family()
ip("::1").family()
string(ip("2001:db8:0:0::1"))
ip(self.ip).isGlobalUnicast()
ip("127.0.0.1").isLoopback()
ip("0.0.0.0").isUnspecified()
ip("::").isUnspecified()
ip("224.0.0.1").isLinkLocalMulticast()
ip("ff02::1").isLinkLocalMulticast()
ip("169.254.1.1").isLinkLocalUnicast()
ip("fe80::1").isLinkLocalUnicast()
ip("255.255.255.255").isGlobalUnicast()
ip("10.0.0.1").isGlobalUnicast()
ip("fc00::1").isGlobalUnicast()
ip("1.2.3.4") == ip("1.2.3.4")
isIP("1.2.3.4")
isIP("1.2.3")
isIP("::1")
isIP("::ffff:1.2.3.4")
ip.isCanonical("::1")
ip.isCanonical("::0001")
ip.isCanonical("127.0.0.1")
ip.isCanonical("ABCD::")
ip.isCanonical("abc")
cidr(self.cidr).containsIP("10.200.0.1")
cidr(self.cidr).containsIP(ip("11.0.0.1"))
cidr(self.cidr).containsIP("abc")
cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")
cidr("10.1.0.0/16").containsCIDR("10.0.0.0/8")
cidr("10.0.0.0/8").containsCIDR(cidr("10.0.0.0/8"))
cidr("10.0.0.0/8").containsCIDR("::/0")
string(cidr(self.cidr))
string(cidr(self.cidr).masked())
string(cidr(self.cidr).ip())
cidr(self.cidr).prefixLength()
cidr(self.cidr) == cidr("10.1.2.3/8")
isCIDR("10.0.0.0/8")
isCIDR("10.0.0.0")
isCIDR("::/0")
semver(self.version).major()
semver(self.version).minor()
semver(self.version).patch()
semver("1.2.3").isGreaterThan(semver("1.2.3-rc.1"))
semver("1.2.3-rc.2").compareTo(semver("1.2.3-rc.10"))
semver("1.2.3-alpha").compareTo(semver("1.2.3-1"))
semver("1.2.3-a").compareTo(semver("1.2.3-a.b"))
semver("1.2.3").isLessThan(semver("1.10.0"))
semver("1.2.3+a") == semver("1.2.3+b")
semver("1.2.3") == semver("1.2.3")
semver("v1.2", true).minor()
semver("v1", true) == semver("1.0.0")
semver("01.02.03", true).patch()
isSemver("1.2.3")
isSemver("1.2")
isSemver("v1.2", true)
isSemver("1.2.3.4")
format.dns1123Label().validate(self.name).hasValue()
format.dns1123Label().validate("A_b").value()
format.dns1123Subdomain().validate("a..b").value()
format.dns1035Label().validate("1a").value()
format.qualifiedName().validate("a/b/c").value()
format.dns1123LabelPrefix().validate("abc-").hasValue()
format.dns1123SubdomainPrefix().validate("abc-").hasValue()
format.labelValue().validate("-a").value()
format.uri().validate("a b").value()
format.uuid().validate("x").value()
format.uuid().validate("123e4567-e89b-12d3-a456-426614174000").hasValue()
format.byte().validate("%%").value()
format.date().validate("2024-13-01").value()
format.datetime().validate("2024").value()
format.named("uuid").hasValue()
format.named("nothing").hasValue()
format.named("dns1123Label").value().validate("A").hasValue()
"\u00e9\x41\101\n\t\"'\\".size()
'single' + "double" + '''triple''' + r"\raw"
0x10 + 0xFF
1e3
.5
9223372036854775807
-9223372036854775808
[1, 2, 3, ][2]
{"a": 1, }.a
"a" == "a" == true
1 + 1 == 2 ? "a" : "b"
"""
_FAILING: Final = r"""
self.ios.first()
quantity(self.ios)
ip(self.ios)
cidr(self.ios)
url(self.ios)
semver(self.ios)
[?self.?name, ?self.?absent]
{?"a": self.?name, ?"b": self.?absent}
url("not a url")
url("")
url(":foo")
url("https://a b")
url("https://a:b")
url("https://a/%zz")
url("relative")
quantity("abc")
quantity("")
quantity("1x")
quantity("1.2.3")
quantity("1 k")
ip("1.2.3")
ip("1.2.3.4.5")
ip("1.2.3.256")
ip("01.2.3.4")
ip("1.2.3.x")
ip("1..2.3")
ip("abc")
ip("")
ip("::ffff:1.2.3.4")
ip("fe80::1%eth0")
ip("1:2:3")
ip("1:2:3:4:5:6:7:8:9")
ip("1::2::3")
ip("12345::")
ip("g::1")
ip("1:2:3:4:5:6:7:")
ip("::1.2.3.4")
cidr("10.0.0.0")
cidr("10.0.0.0/33")
cidr("10.0.0.0/08")
cidr("10.0.0.0/x")
cidr("10.0.0/8")
cidr("::ffff:10.0.0.0/104")
semver("1.2")
semver("")
semver("v1.2.3")
semver("01.2.3")
semver("1.2.x")
semver("1.2.3-")
semver("1.2.3-01")
semver("1.2.3-ä")
semver("1.2.3+")
semver("1.2-rc", true)
"""

_WRONG: Final = r"""
int(dyn([1]))
string(dyn([1]))
string(dyn(null))
dyn(self.name) - "a"
dyn([1, "a"]).map(x, type(x))
1.0 == 1
1u == 1
self.n == 7.0
[1, 2] == [1.0, 2.0]
{"a": 1} == {"a": 1.0}
1.0 in [1, 2]
{1: "a"}[1u]
has(self.obj.null)
self.maybe == null
self.obj.null == null
int(1e19)
int(18446744073709551615u)
uint(-1)
uint(-0.5)
string(b"\xff")
self.ios - "a"
dyn(true) + true
dyn([1]) < [2]
dyn({}) + {}
dyn("a").contains(1)
dyn(1) in 2
self.ints.includes(2)
self.list.includes("q")
self.name.includes("abc")
[[1, [2, [3]]]].flatten(1)
[[1, [2, [3]]]].flatten(2)
[1, 1.0, 2].distinct()
self.mapList == [{"k": "b", "v": 2}, {"k": "a", "v": 1}]
-duration("1h")
true ? false ? 1 : 2 : 3
self.nothing
self.name.nothing
self.obj.nothing
self.list.nothing
self.objs[0].nothing
self.objs.all(o, o.nothing)
self.map.all(k, self.map[k].nothing)
self.free.any
self.embedded.data
self.embedded.metadata.labels
oldSelf.nothing
nothing
nothing.at.all
nothing(1)
self.nothing()
self.name + 1
self.name + self.n
1 + 1u
1 + 1.0
self.n + self.d
self.n == "7"
self.name == 1
self.list == "a"
self.list == [1]
self.n == null
self.name == null
self.obj == null
self.when == null
self.n < "a"
self.list < self.list
!self.n
-self.name
self.n && true
self.b || 1
self.n ? 1 : 2
self.b ? 1 : "a"
self.list["a"]
self.map[1]
self.n[0]
self.name[0]
self.obj["a"]
"a" in self.n
1 in self.list
1 in self.map
size(self.n)
self.n.size()
self.name.startsWith(1)
self.name.matches(1)
self.name.matches("(")
self.name.matches("a{2000}")
self.name.matches("(?=a)")
self.name.find("(")
self.name.findAll("[")
self.list.all(x, x)
self.list.all(x, x == 1)
self.list.all(x)
self.list.all(1, true)
self.list.all(x.y, true)
self.list.map(x)
self.list.map(x, y)
self.list.filter(x, 1)
self.n.all(x, true)
self.name.exists(x, true)
self.list.all(i, i, true)
self.list.transformMapEntry(i, x, x)
has(self)
has(1)
has(self.nothing)
has(self.name.nothing)
has(self.list[0])
has(nothing.x)
[1, "a"]
[1, 1.0]
[1, null]
{"a": 1, "b": "c"}
{"a": 1, 2: 3}
{1.5: 1}
{"a": 1}.all(k, k == 1)
[[1], ["a"]]
duration("1x")
duration("abc")
timestamp("yesterday")
timestamp("2020-01-01")
int("abc")
uint("-1")
double("x")
bool("x")
type(nothing)
math.greatest(1, 2)
math.abs(-1)
cel.bind(x, 1, x)
base64.encode(b"a")
"abc".reverse()
strings.quote(1)
sets.contains([1], ["a"])
sets.contains(1, [1])
self.list.sum()
self.objs.min()
self.objs.sort()
self.b.isSorted()
quantity("1").sign()
quantity(1)
quantity("1") + quantity("2")
quantity("1") < quantity("2")
ip(1)
ip("1.2.3.4").nothing()
ip("1.2.3.4") == "1.2.3.4"
cidr("10.0.0.0/8").containsIP(1)
url("https://a").getQuery().nothing[0].nothing
semver("1.2.3", "true")
format.nothing()
format.named(1)
"%d".format(["a"])
"%s".format([])
"%s".format([1, 2])
"%z".format([1])
"%".format([1])
"%.f".format([1.5])
"%.9".format([1.5])
"%f".format([1])
"%e".format([1])
"%b".format([1.5])
"%x".format([1.5])
"%o".format(["a"])
"%s".format([optional.of(1)])
"%s".format(["a"], 1)
optional.of(1).orValue("a")
optional.of(1) + 1
optional.of()
optional.none().nothing()
self.?nothing
self.?name.nothing
self.?list.nothing
self.list[?"a"]
self.name.optMap(x, x)
self.?name.optMap(1, 1)
self.?name.optMap(x, x)
self.?name.optMap(x, nothing)
[?1]
{?"a": 1}
self.when + self.when
self.when + 1
self.when == "2020-01-01T00:00:00Z"
self.span == "1h"
self.day < self.span
self.data == "hello"
self.when.getFullYear(1)
self.when.nothing()
authorizer
request
object
self.namespace.nothing
self.dash-ed
self.dot.ted
self.for.nothing
self.under__score
self.embedded.spec
self.mapList["a"]
self.set["x"]
self.
self..name
self.name ==
(self.name
self.name)
self.name == "a
self.name == 'a' b
1 +
+ 1
&& true
true &&
[1, 2
{"a": }
{"a" 1}
self[
self.name.
self.list.all(x,
1 2
a.b.c(
"\q"
"\u12"
b"\u0041"
0x
1.e3
1e
99999999999999999999
18446744073709551616u
-9223372036854775809
for
self.if
let x = 1
x -> x
self.name = "a"
self.n++
self.n ** 2
self.name like "a"
not true
true and false
self.b ? 1
@x
#comment
self.name;
`name`
self.`name`
self.`nothing`
Object{}
kubernetes.Quantity{}
self.list.exists_one(x, 1)
self.list.transformList(i, x)
self.list.sortBy(x)
self.list.sortBy(x, [x])
self.objs.sortBy(o, o)
1.all(x, true)
self.list.map(x, x, x, x)
dyn(1, 2)
type()
size()
size(1, 2)
int()
"a".contains()
"a".contains("b", "c")
self.ints.slice(1)
self.ints.flatten("a")
lists.range("a")
self.ints.indexOf("a")
self.list.join(1)
self.ints.join()
"""


T = TypeVar("T")


def batched(all_: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (all_[place : place + size] for place in range(0, len(all_), size))


def rows(text: str) -> list[str]:
    return [one for one in text.splitlines() if one]


def _kind(rules: Sequence[Json], plural: str, schema: Json = SCHEMA) -> Json:
    whole = {"type": "object", "properties": {"spec": {**schema, "x-kubernetes-validations": rules}}}
    return definition(plural, plural[:-1].capitalize(), whole, group=_GROUP)


def _values_of(body: Json) -> Json:
    """By the number of the rule, what was said of it."""
    found = {}
    for cause in (body.get("details") or {}).get("causes") or ():
        number = re.search(r"#(\d+)", cause["message"])
        found[number[1] if number else cause["message"]] = cause["message"]
    return found or body.get("message", body.get("kind"))


def _wrong_of(body: Json) -> Json:
    found: dict[str, list[str]] = {}
    for cause in (body.get("details") or {}).get("causes") or ():
        place = re.search(r"validations\[(\d+)\]", cause["field"])
        told = re.sub(r"selfType\d+", "selfType", cause["message"])  # a number at random
        found.setdefault(place[1] if place else cause["field"], []).append(told)
    return {name: sorted(told) for name, told in found.items()} or body.get("message", body.get("kind"))


def _values() -> list[Step]:
    steps = []
    values = [_shown(place, row) for place, row in enumerate(rows(_VALUES))]
    failing = [_shown(1000 + place, row, has_text=False) for place, row in enumerate(rows(_FAILING))]
    for place, rules in enumerate(batched([*values, *failing], 50)):
        plural = f"v{place}s"
        path = f"/apis/{_GROUP}/v1/namespaces/${{namespace}}/{plural}"
        obj = {"apiVersion": f"{_GROUP}/v1", "kind": f"V{place}", "metadata": {"name": "a"}, "spec": SPEC}
        steps += [
            Step("POST", CRDS, _kind(rules, plural), shape=_wrong_of, name=f"defined {place}"),
            Step("GET", f"{CRDS}/{plural}.{_GROUP}", until_says="Established=True", is_quiet=True),
            Step("GET", path, until=200, is_quiet=True),
            Step("POST", path, obj, shape=_values_of, name=f"values {place}"),
            Step("DELETE", f"{CRDS}/{plural}.{_GROUP}", is_quiet=True),
        ]
    return steps


def _shown(number: int, row: str, *, has_text: bool = True) -> Json:
    rule = {"rule": f"[{row}].size() == 0", "message": f"#{number}"}
    return {**rule, "messageExpression": f'"#{number} %s".format([{row}])'} if has_text else rule


def _wrong() -> list[Step]:
    return [
        Step(
            "POST",
            CRDS + "?dryRun=All",
            _kind([{"rule": row} for row in batch], "wrongs"),
            shape=_wrong_of,
            name=f"wrong {place}",
        )
        for place, batch in enumerate(batched(rows(_WRONG), 30))
    ]


SCRIPTS = [Script("the values of expressions", _values()), Script("what is wrong with expressions", _wrong())]
