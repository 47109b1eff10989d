"""CEL by chance: expressions that mostly compile, over a schema that they mostly fit."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.fuzz.chance import Chance

# A value of every type: what a definition gives as default is what its rules are tried on.
DEFAULT: Final[dict[str, Any]] = {
    "s": "a-b.c",
    "i": 3,
    "f": 1.5,
    "o": True,
    "l": ["b", "a"],
    "n": [{"k": "x", "v": 1}],
    "m": {"a": "b"},
    "t": "2030-01-01T00:00:00Z",
    "d": "1h",
    "x": 5,
}
PROPERTIES: Final[dict[str, Any]] = {
    "s": {"type": "string", "maxLength": 20},
    "i": {"type": "integer", "maximum": 100},
    "f": {"type": "number"},
    "o": {"type": "boolean"},
    "l": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10}},
    "n": {
        "type": "array",
        "maxItems": 5,
        "items": {
            "type": "object",
            "properties": {"k": {"type": "string", "maxLength": 9}, "v": {"type": "integer"}},
        },
    },
    "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 9}},
    "t": {"type": "string", "format": "date-time"},
    "d": {"type": "string", "format": "duration"},
    "x": {"x-kubernetes-int-or-string": True},
}

# What gives a value of a kind: a hole is filled with an expression of the kind that it names.
_WAYS: Final[dict[str, tuple[str, ...]]] = {
    "s": ("self.s", "'a'", "'1.2.3.4'", "''", "'é😀'", "self.l[0]", "self.m['a']", "self.n[0].k",
          "string({i})", "{s}.trim()", "{s}.replace({s}, {s})", "{s}.replace({s}, {s}, {i})",
          "{s}.substring({i})", "{s} + {s}", "{s}.substring({i}, {i})", "{s}.charAt({i})",
          "{s}.lowerAscii()", "{s}.upperAscii()", "{l}.join({s})", "{s}.find({s})", "{u}.getHost()",
          "{u}.getEscapedPath()", "'%s %d'.format([{s}, {i}])", "{s}.reverse()",
          "strings.quote({s})", "string({q})", "string({p})", "'%.3e %x'.format([{f}, {i}])",
          "string({t})"),
    "i": ("self.i", "0", "1", "-1", "9223372036854775807", "self.n[0].v", "size({s})", "{l}.size()",
          "{m}.size()", "int({f})", "int({s})", "{s}.indexOf({s})", "{s}.lastIndexOf({s}, {i})",
          "{i} + {i}", "{i} * {i}", "{i} / {i}", "{i} % {i}", "-({i})", "{t}.getHours()",
          "{t}.getFullYear('Europe/Berlin')", "{p}.family()", "{c}.prefixLength()", "{q}.sign()",
          "{q}.compareTo({q})", "{v}.major()", "math.greatest({i}, {i})", "math.abs({i})",
          "math.bitShiftLeft({i}, {i})", "{n}.map(e, e.v).sum()", "{l}.indexOf({s})"),
    "f": ("self.f", "1.5", "1e300", "-0.0", "double({s})", "double({i})", "{f} * {f}", "{f} / {f}",
          "math.ceil({f})", "{q}.asApproximateFloat()", "math.sqrt({f})"),
    "b": ("true", "self.o", "has(self.s)", "has(self.z)", "{s} in {l}", "{s} in {m}", "{s} == {s}",
          "{i} < {i}", "{f} >= {f}", "{l} == {l}", "{s}.startsWith({s})", "{s}.contains({s})",
          "{s}.matches({r})", "!({b})", "{l}.all(e, e != {s})", "{l}.exists(e, e == {s})",
          "{l}.exists_one(e, e > {s})", "{n}.all(e, e.v > {i})", "{m}.all(k, k != {s})",
          "{b} && {b}", "{b} || {b}", "({b} ? {b} : {b})", "isIP({s})", "isURL({s})",
          "isQuantity({s})", "{l}.isSorted()", "sets.contains({l}, {l})", "{c}.containsIP({p})",
          "{q} == {q}", "{q}.isGreaterThan({q})", "{t} < {t}", "{d} > {d}", "{v}.isLessThan({v})",
          "isSemver({s})", "{o}.hasValue()",
          "format.named('dns1123Label').value().validate({s}).hasValue()", "{p}.isLoopback()",
          "{l}.all(i, v, v != {s})", "oldSelf.i <= {i}", "type({s}) == string"),
    "l": ("self.l", "['a', 'b']", "[{s}, {s}]", "{s}.split({s})", "{s}.split({s}, {i})",
          "{s}.findAll({r})", "{n}.map(e, e.k)", "{l}.filter(e, {b})", "{l}.map(e, e + {s})",
          "{l} + {l}", "({b} ? {l} : {l})", "{l}.slice({i}, {i})", "{l}.distinct()", "{l}.sort()",
          "{m}.map(k, k)", "{s}.findAll({r}, {i})"),
    "n": ("self.n", "{n}.filter(e, e.v < {i})", "{n} + {n}"),
    "m": ("self.m", "{{'a': {s}}}", "{l}.transformMap(i, v, i < {i}, v)"),
    "t": ("self.t", "timestamp('2030-01-01T00:00:00Z')", "timestamp({s})", "{t} + {d}",
          "timestamp({i})"),
    "d": ("self.d", "duration('1h30m')", "duration({s})", "{t} - {t}", "{d} + {d}"),
    "q": ("quantity('1.5Gi')", "quantity({s})", "{q}.add({q})", "{q}.sub({i})",
          "quantity(string({i}))"),
    "p": ("ip('fe80::1')", "ip('10.1.2.3')", "ip({s})", "{c}.ip()"),
    "c": ("cidr('10.0.0.0/8')", "cidr({s})", "{c}.masked()"),
    "u": ("url('https://h:1/p?q=1')", "url({s})"),
    "v": ("semver('1.2.3-a+b')", "semver({s})"),
    "o": ("optional.none()", "optional.of({i})", "self.?s", "self.m[?{s}]", "{l}.first()",
          "self.l[?{i}]"),
    "r": ("'^a+$'", "'[a-z]*'", "'(a|b)*c'", "{s}", "'('", "'(?i)x{{2}}'",
          "'^(a|aa)+$'", "'^([a-z]{{1,63}}[.]?){{1,10}}$'", "'(x+x+)+y'", "'((a?b?){{30}}){{30}}c'"),
}  # fmt: skip
_KINDS: Final = "".join(_WAYS)
_HOLE: Final = re.compile(r"\{([a-z])\}")


def expression(chance: Chance, kind: str, depth: int = 0) -> str:
    """Of the kind; now and then of another one."""
    kind = chance.choice(_KINDS) if chance.often(0.03) else kind
    ways = [way for way in _WAYS[kind] if depth < 4 or not _HOLE.search(way)] or _WAYS[kind][:1]
    text = _HOLE.sub(lambda hole: expression(chance, hole[1], depth + 1), chance.choice(ways))
    return text.replace("{{", "{").replace("}}", "}")


def rule(chance: Chance, kind: str = "b") -> str:
    text = expression(chance, kind)
    return chance.torn(text.encode(), most=2).decode("utf-8", "replace") if chance.often(0.05) else text


def schema(chance: Chance) -> dict[str, Any]:
    """A schema whose default its rules are tried on."""
    rules = []
    for _ in range(chance.randint(1, 3)):
        made: dict[str, Any] = {"rule": rule(chance)}
        if chance.often(0.3):
            made["messageExpression"] = rule(chance, "s")
        if chance.often(0.2):
            made["optionalOldSelf"] = True
        rules.append(made)
    return {
        "type": "object",
        "properties": PROPERTIES,
        "default": DEFAULT,
        "x-kubernetes-validations": rules,
    }
