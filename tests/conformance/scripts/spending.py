"""What CEL rules cost as they are evaluated: each is put where it is just affordable, and once more, where it is not.

A row is how often, and the expression: so often it costs a little less than the million that a rule may cost on one
object, and once more is too much.  Most of the million is spent beforehand, on something that is dear and takes no time.
"""

# ruff: noqa: E501 - a table of rules: one row is one line
from __future__ import annotations

from typing import Final

from tests.conformance.asking import Json, Script, Step
from tests.conformance.scripts.definitions import CRDS, definition
from tests.conformance.scripts.expressions import SCHEMA, SPEC, batched, rows

_GROUP: Final = "spending.example.com"
_BEFORE: Final = "sets.contains(lists.range(1000), lists.range(900))"
_COSTS: Final = r"""
3064 self.n == 7 && self.d > 1.0 && self.b && self.n + 1 < 9 && -self.n < 0 && !(self.n == 8) && self.name != "x" && self.name > self.text
4457 has(self.name) && has(self.obj.a) && !has(self.absent) && self.obj.a == "in" && (self.b ? self.name : self.text) == "abc" && (self.b ? self.obj : self.obj).a == "in"
2650 self.list[0] == "b" && self.map["one"] == "1" && self.map.one == "1" && self.ints[self.zero] == 3 && self.list[self.n - 7] == "b" && self.lists[0][1] == 2 && [1, 2, 3][self.zero] == 1
1442 "a" in self.list && self.name in ["abc", "x"] && "one" in self.map && !(self.n in []) && self.list == ["b", "a", "c", "a"] && self.map != {"a": "b"} && [self.name, "x"] == ["abc", "x"] && {"a": self.n} == {"a": 7}
508 self.list.all(x, x != "") && self.list.exists(x, x == "c") && self.list.exists_one(x, x == "c") && self.list.map(x, x + x).size() == 4 && self.list.filter(x, x == "a").size() == 2 && self.map.all(k, self.map[k] != "") && self.list.map(x, 1).size() == 4
2043 self.text.startsWith("Hello") && self.text.endsWith("ü") && self.text.contains("World") && self.text.matches("[A-Z][a-z]+") && self.name + self.text != "" && self.text.size() == 20 && size(self.data) == 5 && bytes(self.text) != b"" && string(self.data) == "hello"
1581 self.text.charAt(4) == "o" && self.text.indexOf("o") == 4 && self.text.lowerAscii() != "" && self.text.replace("l", "L") != "" && self.text.split(" ").size() == 4 && self.text.substring(7) != "" && self.text.trim() != "" && self.list.join("-") != "" && strings.quote(self.text) != "" && "%s %s".format([self.name, self.n]) != ""
2228 self.text.find("[0-9]+") == "42" && self.text.findAll("[a-z]+").size() > 1 && self.ints.isSorted() == false && self.ints.sum() == 6 && self.list.max() == "c" && self.list.indexOf("c") == 2 && self.list.lastIndexOf("a") == 3
2001 url(self.url).getHost() != "" && isURL(self.url) && quantity(self.quantity).isGreaterThan(quantity("1")) && quantity("1") == quantity("1") && isQuantity(self.quantity) && sign(quantity(self.quantity)) == 1 && semver(self.version).major() == 1 && semver("1.2.3").compareTo(semver(self.version)) == 1 && isSemver(self.version)
"""


def _rule(count: int, row: str) -> Json:
    rules = [{"rule": f"{_BEFORE} && lists.range({count}).all(i, {row})", "message": "too dear"}]
    return {**SCHEMA, "x-kubernetes-validations": rules}


def _steps(plural: str, fields: dict[str, Json], specs: dict[str, Json]) -> list[Step]:
    """A kind with these fields, and objects of it with these specs, none of which is kept."""
    kind = plural[:-1].capitalize()
    whole = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    path = f"/apis/{_GROUP}/v1/namespaces/${{namespace}}/{plural}"
    about = {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": {"name": "a"}}
    told = ("kind", "reason", "message", "details")
    return [
        Step(
            "POST",
            CRDS,
            definition(plural, kind, whole, group=_GROUP),
            only=("kind", "message"),
            name=f"{plural} defined",
        ),
        Step("GET", f"{CRDS}/{plural}.{_GROUP}", until_says="Established=True", is_quiet=True),
        Step("GET", path, until=200, is_quiet=True),
        *(
            Step("POST", path + "?dryRun=All", {**about, "spec": spec}, only=told, name=name)
            for name, spec in specs.items()
        ),
        Step("DELETE", f"{CRDS}/{plural}.{_GROUP}", is_quiet=True),
    ]


def _each() -> list[Step]:
    steps = []
    for place, batch in enumerate(batched(rows(_COSTS), 3)):
        fields: dict[str, Json] = {}
        for number, row in enumerate(batch):
            often, _, text = row.partition(" ")
            fields[f"right{number}"] = _rule(int(often), text)
            fields[f"dear{number}"] = _rule(int(often) + 1, text)
        steps += _steps(f"k{place}s", fields, {f"{name} of {place}": {name: SPEC} for name in fields})
    return steps


def _together() -> list[Step]:
    """What all rules on one object cost, and their messages."""
    dear = "sets.contains(lists.range(700), lists.range(700))"  # 491,423
    message = {"rule": f"!{dear}", "message": "m", "messageExpression": f"{dear} ? 'yes' : 'no'"}
    dearer = {
        "rule": "self < 0",
        "message": "m",
        "messageExpression": "sets.contains(lists.range(1001), lists.range(1001)) ? 'yes' : 'no'",
    }
    one: Json = {"type": "integer", "x-kubernetes-validations": [{"rule": dear, "message": "dear"}]}
    fields: dict[str, Json] = {
        "many": {"type": "array", "maxItems": 20, "items": one},
        "messages": {"type": "array", "maxItems": 8, "items": {"type": "integer", "x-kubernetes-validations": [message]}},
        "late": {"type": "array", "maxItems": 8, "items": {"type": "integer", "x-kubernetes-validations": [{"rule": dear}] * 3 + [message]}},
        "message": {"type": "array", "maxItems": 2, "items": {"type": "integer", "x-kubernetes-validations": [dearer]}},
    }  # fmt: skip
    specs: dict[str, Json] = {
        "few": {"many": [1] * 20}, "messages": {"messages": [1] * 8},
        "late messages": {"late": [1] * 8}, "a dear message": {"message": [1, 2]},
    }  # fmt: skip
    return _steps("togethers", fields, specs)


SCRIPTS = [Script("the cost of evaluating", _each()), Script("the budget of an object", _together())]
