"""The functions that a CEL rule may call in Kubernetes, and their types, one line each.

``a.(b)`` is called on an ``a``; ``A`` and ``B`` stand for any type.  ``overloads`` gives those of a name.
``checking.py`` reads this; what they do is ``functions.py``'s.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

_TEXT: Final = """
_&&_ (bool,bool)->bool
_||_ (bool,bool)->bool
!_ (bool)->bool
@not_strictly_false (bool)->bool
__not_strictly_false__ (bool)->bool
_?_:_ (bool,A,A)->A
_==_ (A,A)->bool
_!=_ (A,A)->bool
-_ (int)->int | (double)->double
_+_ (int,int)->int | (uint,uint)->uint
_+_ (double,double)->double | (string,string)->string | (bytes,bytes)->bytes
_+_ (list(A),list(A))->list(A) | (duration,duration)->duration | (timestamp,duration)->timestamp
_+_ (duration,timestamp)->timestamp
_-_ (int,int)->int | (uint,uint)->uint | (double,double)->double | (timestamp,timestamp)->duration
_-_ (timestamp,duration)->timestamp | (duration,duration)->duration
_*_ (int,int)->int | (uint,uint)->uint | (double,double)->double
_/_ (int,int)->int | (uint,uint)->uint | (double,double)->double
_%_ (int,int)->int | (uint,uint)->uint
@in (A,list(A))->bool | (A,map(A,B))->bool
_[_] (list(A),int)->A | (map(A,B),A)->B
_[_] (optional(list(A)),int)->optional(A) | (optional(map(A,B)),A)->optional(B)
_[?_] (list(A),int)->optional(A) | (map(A,B),A)->optional(B)
_[?_] (optional(list(A)),int)->optional(A) | (optional(map(A,B)),A)->optional(B)
size (string)->int | (bytes)->int | (list(A))->int | (map(A,B))->int
size string.()->int | bytes.()->int | list(A).()->int | map(A,B).()->int
type (A)->type(A)
dyn (A)->dyn
int (int)->int | (uint)->int | (double)->int | (string)->int | (timestamp)->int | (duration)->int
uint (uint)->uint | (int)->uint | (double)->uint | (string)->uint
double (double)->double | (int)->double | (uint)->double | (string)->double
bool (bool)->bool | (string)->bool
string (string)->string | (bool)->string | (bytes)->string | (int)->string | (uint)->string | (double)->string
string (duration)->string | (timestamp)->string | (net.IP)->string | (net.CIDR)->string
bytes (bytes)->bytes | (string)->bytes
timestamp (timestamp)->timestamp | (string)->timestamp | (int)->timestamp
duration (duration)->duration | (string)->duration
matches (string,string)->bool | string.(string)->bool
contains string.(string)->bool
startsWith string.(string)->bool
endsWith string.(string)->bool
getFullYear timestamp.()->int | timestamp.(string)->int
getMonth timestamp.()->int | timestamp.(string)->int
getDayOfYear timestamp.()->int | timestamp.(string)->int
getDayOfMonth timestamp.()->int | timestamp.(string)->int
getDate timestamp.()->int | timestamp.(string)->int
getDayOfWeek timestamp.()->int | timestamp.(string)->int
getHours timestamp.()->int | timestamp.(string)->int | duration.()->int
getMinutes timestamp.()->int | timestamp.(string)->int | duration.()->int
getSeconds timestamp.()->int | timestamp.(string)->int | duration.()->int
getMilliseconds timestamp.()->int | timestamp.(string)->int | duration.()->int
optional.of (A)->optional(A)
optional.ofNonZeroValue (A)->optional(A)
optional.none ()->optional(A)
optional.unwrap (list(optional(A)))->list(A)
unwrapOpt list(optional(A)).()->list(A)
hasValue optional(A).()->bool
value optional(A).()->A
or optional(A).(optional(A))->optional(A)
orValue optional(A).(A)->A
first list(A).()->optional(A)
last list(A).()->optional(A)
charAt string.(int)->string
indexOf string.(string)->int | string.(string,int)->int | list(A).(A)->int
lastIndexOf string.(string)->int | string.(string,int)->int | list(A).(A)->int
join list(string).()->string | list(string).(string)->string
lowerAscii string.()->string
upperAscii string.()->string
replace string.(string,string)->string | string.(string,string,int)->string
split string.(string)->list(string) | string.(string,int)->list(string)
substring string.(int)->string | string.(int,int)->string
trim string.()->string
format string.(list(dyn))->string
strings.quote (string)->string
sets.contains (list(A),list(A))->bool
sets.equivalent (list(A),list(A))->bool
sets.intersects (list(A),list(A))->bool
find string.(string)->string
findAll string.(string)->list(string) | string.(string,int)->list(string)
isSorted list(int).()->bool | list(uint).()->bool | list(double).()->bool | list(bool).()->bool
isSorted list(duration).()->bool | list(timestamp).()->bool | list(string).()->bool | list(bytes).()->bool
sum list(int).()->int | list(uint).()->uint | list(double).()->double | list(duration).()->duration
min list(int).()->int | list(uint).()->uint | list(double).()->double | list(bool).()->bool
min list(duration).()->duration | list(timestamp).()->timestamp
min list(string).()->string | list(bytes).()->bytes
max list(int).()->int | list(uint).()->uint | list(double).()->double | list(bool).()->bool
max list(duration).()->duration | list(timestamp).()->timestamp
max list(string).()->string | list(bytes).()->bytes
slice list(A).(int,int)->list(A)
flatten list(list(A)).()->list(A) | list(dyn).(int)->list(dyn)
distinct list(A).()->list(A)
reverse list(A).()->list(A)
sort list(int).()->list(int) | list(uint).()->list(uint) | list(double).()->list(double)
sort list(bool).()->list(bool) | list(duration).()->list(duration) | list(timestamp).()->list(timestamp)
sort list(string).()->list(string) | list(bytes).()->list(bytes)
@sortByAssociatedKeys list(A).(list(int))->list(A) | list(A).(list(uint))->list(A)
@sortByAssociatedKeys list(A).(list(double))->list(A) | list(A).(list(bool))->list(A)
@sortByAssociatedKeys list(A).(list(duration))->list(A) | list(A).(list(timestamp))->list(A)
@sortByAssociatedKeys list(A).(list(string))->list(A) | list(A).(list(bytes))->list(A)
cel.@mapInsert (map(A,B),A,B)->map(A,B) | (map(A,B),map(A,B))->map(A,B)
lists.range (int)->list(int)
url (string)->kubernetes.URL
isURL (string)->bool
getScheme kubernetes.URL.()->string
getHost kubernetes.URL.()->string
getHostname kubernetes.URL.()->string
getPort kubernetes.URL.()->string
getEscapedPath kubernetes.URL.()->string
getQuery kubernetes.URL.()->map(string,list(string))
quantity (string)->kubernetes.Quantity
isQuantity (string)->bool
sign (kubernetes.Quantity)->int
isGreaterThan kubernetes.Quantity.(kubernetes.Quantity)->bool | kubernetes.Semver.(kubernetes.Semver)->bool
isLessThan kubernetes.Quantity.(kubernetes.Quantity)->bool | kubernetes.Semver.(kubernetes.Semver)->bool
compareTo kubernetes.Quantity.(kubernetes.Quantity)->int | kubernetes.Semver.(kubernetes.Semver)->int
asApproximateFloat kubernetes.Quantity.()->double
asInteger kubernetes.Quantity.()->int
isInteger kubernetes.Quantity.()->bool
add kubernetes.Quantity.(kubernetes.Quantity)->kubernetes.Quantity
add kubernetes.Quantity.(int)->kubernetes.Quantity
sub kubernetes.Quantity.(kubernetes.Quantity)->kubernetes.Quantity
sub kubernetes.Quantity.(int)->kubernetes.Quantity
ip (string)->net.IP | net.CIDR.()->net.IP
isIP (string)->bool
ip.isCanonical (string)->bool
family net.IP.()->int
isUnspecified net.IP.()->bool
isLoopback net.IP.()->bool
isLinkLocalMulticast net.IP.()->bool
isLinkLocalUnicast net.IP.()->bool
isGlobalUnicast net.IP.()->bool
cidr (string)->net.CIDR
isCIDR (string)->bool
containsIP net.CIDR.(string)->bool | net.CIDR.(net.IP)->bool
containsCIDR net.CIDR.(string)->bool | net.CIDR.(net.CIDR)->bool
masked net.CIDR.()->net.CIDR
prefixLength net.CIDR.()->int
semver (string)->kubernetes.Semver | (string,bool)->kubernetes.Semver
isSemver (string)->bool | (string,bool)->bool
major kubernetes.Semver.()->int
minor kubernetes.Semver.()->int
patch kubernetes.Semver.()->int
validate kubernetes.NamedFormat.(string)->optional(list(string))
format.named (string)->optional(kubernetes.NamedFormat)
"""
_FORMATS: Final = (
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix",
    "dns1123SubdomainPrefix", "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime",
)  # fmt: skip
_ORDERED: Final = ("int", "uint", "double")  # compare with one another
_COMPARED: Final = (*_ORDERED, "bool", "string", "bytes", "timestamp", "duration")


class Type(NamedTuple):
    """A CEL type; a variable begins with a capital letter, an object is named by its place in the schema."""

    name: str
    of: tuple[Type, ...] = ()

    def __str__(self) -> str:
        shown = {"null": "null", "optional": "optional_type"}.get(self.name, self.name)
        return f"{shown}({', '.join(map(str, self.of))})" if self.of else shown


class Overload(NamedTuple):
    target: Type | None
    arguments: tuple[Type, ...]
    result: Type


@cache
def overloads(function: str) -> tuple[Overload, ...]:
    return tuple(_table().get(function, ()))


@cache
def _table() -> dict[str, list[Overload]]:
    table: dict[str, list[Overload]] = {}
    for line in _TEXT.strip().splitlines():
        name, _, rest = line.partition(" ")
        table.setdefault(name, []).extend(_overload(one.strip()) for one in rest.split(" | "))
    for name in _FORMATS:
        table[f"format.{name}"] = [Overload(None, (), Type("kubernetes.NamedFormat"))]
    for sign in ("_<_", "_<=_", "_>_", "_>=_"):
        pairs = [(one, one) for one in _COMPARED] + [(a, b) for a in _ORDERED for b in _ORDERED if a != b]
        table[sign] = [Overload(None, (Type(a), Type(b)), Type("bool")) for a, b in pairs]
    return table


def _overload(text: str) -> Overload:
    called, _, result = text.rpartition("->")
    target, dot, arguments = called.rpartition(".(")
    if not dot:
        arguments = called.removeprefix("(")
    arguments = arguments.removesuffix(")")
    return Overload(
        parsed(target) if target else None,
        tuple(parsed(one) for one in _split(arguments)) if arguments else (),
        parsed(result),
    )


def parsed(text: str) -> Type:
    """``list(string)`` as a type."""
    name, bracket, rest = text.partition("(")
    return Type(name, tuple(parsed(one) for one in _split(rest[:-1]))) if bracket else Type(name)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for place, one in enumerate(text):
        depth += (one == "(") - (one == ")")
        if one == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
