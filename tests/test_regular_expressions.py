"""Every regular expression in the tree takes linear time, whatever text it is given.

The expressions are collected from the syntax trees of the sources and from the loaded modules.  For each one,
hostile texts are derived from its own parse tree: a prefix that leads to a repetition, one or two characters
repeated many times, and a tail that fails.  A text that takes suspiciously long is measured at more lengths.
"""

from __future__ import annotations

import ast
import importlib
import math
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import setpoint

ROOT = Path(setpoint.__file__).parent
METHODS = frozenset({"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"})

# Patterns that only exist at run time, with the reason why each is harmless.
DYNAMIC = {
    "api/markers.py": "the author's own pattern, compiled to find mistakes and never matched",
    "api/schema.py": "the author's own pattern, matched only with the author's own default",
    "server/registry/crd/engine.py": "a table, which is found in the loaded module",
    "server/registry/crd/formats.py": "the shapes of UUIDs, which are found in the loaded module",
    "server/registry/crd/searching.py": "one character class, which is matched with one character",
    "server/registry/instants.py": "compiled patterns of the same module",
    "testing/proof/usual.py": "a literal between two assertions of one character each",
    "testing/proof/report.py": "a literal between two assertions of one character each",
}


# ── Collecting ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Expression:
    """A pattern, and the methods that are called on it."""

    where: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]

    def __str__(self) -> str:
        return f"{self.where} {self.pattern.pattern!r}"


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Calls of the functions of ``re`` that take a pattern, and which function each calls."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=function)):
                if function in METHODS or function == "compile":
                    yield node, function


def pattern_of(call: ast.Call, function: str, names: dict[str, Any]) -> re.Pattern[Any] | None:
    """The pattern of a call, if it consists of constants of its module."""
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(function, 2)
    flags = [each.value for each in call.keywords if each.arg == "flags"] or call.args[place : place + 1]
    try:
        pattern, *rest = (
            eval(compile(ast.Expression(each), "pattern", "eval"), dict(names))
            for each in (call.args[0], *flags)
        )
    except NameError:
        return None
    return re.compile(pattern, *rest) if isinstance(pattern, str | bytes) else None


def uses(tree: ast.AST) -> dict[str, set[str]]:
    """The methods that a module calls, by the name of what it calls them on."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr=method):
                if method in METHODS:
                    found.setdefault(name, set()).add(method)
    return found


def names_of(tree: ast.AST) -> dict[ast.Call, str]:
    """The names that the results of calls are assigned to."""
    found: dict[ast.Call, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                found[call] = name
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call() as call):
                found[call] = name
    return found


def bound_methods(tree: ast.AST) -> dict[ast.Call, str]:
    """The method of ``re.compile(…).method``."""
    return {
        node.value: node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call)
    }


def patterns_in(value: Any, depth: int = 0) -> Iterator[tuple[re.Pattern[Any], set[str]]]:
    """Compiled patterns in a value of a module, and the method that is bound, if one is."""
    if isinstance(value, re.Pattern):
        yield value, set()
    elif isinstance(bound := getattr(value, "__self__", None), re.Pattern):
        yield bound, {value.__name__}
    elif depth < 4:
        inner: Sequence[Any] = ()
        if isinstance(value, FunctionType):
            inner = [cell.cell_contents for cell in value.__closure__ or ()]
        elif isinstance(value, dict):
            inner = [*value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            inner = [*value]
        for each in inner:
            yield from patterns_in(each, depth + 1)


def collect() -> tuple[list[Expression], set[str]]:
    """Every expression, and the modules with patterns that only exist at run time."""
    found: dict[tuple[str, Any, int], Expression] = {}
    dynamic = set()

    def add(file: str, at: str | int, pattern: re.Pattern[Any], methods: set[str]) -> None:
        key = file, pattern.pattern, pattern.flags
        before = found[key].methods if key in found else frozenset()
        found[key] = Expression(f"{file}:{at}", pattern, before | (METHODS & methods or METHODS))

    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text())
        if not any(
            isinstance(node, ast.Import) and any(each.name == "re" for each in node.names)
            for node in ast.walk(tree)
        ):
            continue
        module = importlib.import_module(".".join(("setpoint", *Path(file).with_suffix("").parts)))
        used, assigned, bound = uses(tree), names_of(tree), bound_methods(tree)
        for call, function in calls(tree):
            pattern = pattern_of(call, function, vars(module))
            if pattern is None:
                dynamic.add(file)
            elif function != "compile":
                add(file, call.lineno, pattern, {function})
            elif call in bound:
                add(file, call.lineno, pattern, {bound[call]})
            else:
                add(file, call.lineno, pattern, used.get(assigned.get(call, ""), set()))
        for name, value in vars(module).items():
            for pattern, methods in patterns_in(value):
                if (file, pattern.pattern, pattern.flags) not in found and not isinstance(value, ModuleType):
                    add(file, name, pattern, methods or used.get(name, set()))
    return [*found.values()], dynamic


EXPRESSIONS, WITH_DYNAMIC = collect()


# ── Hostile texts ───────────────────────────────────────────────────────────────────────────────────

_LETTERS = "a0 -_.:/\"'\\,;<>()[]{}@%$#!&=+*?|^~`AxXzZ19eEmskKn\t\n\r\0\x1f\x7f\x85éµÿ१\u2028\ud800😀"


class Hostile:
    """Texts that are likely to make one expression slow."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._is_bytes = isinstance(pattern.pattern, bytes)
        source = pattern.pattern.decode("latin-1") if self._is_bytes else pattern.pattern
        flags = pattern.flags & ~re.UNICODE if self._is_bytes else pattern.flags
        self._atoms: list[Callable[[str], bool]] = []
        self._prefixes: dict[str, None] = {"": None}
        self._bodies: dict[str, None] = {}
        self._flags = flags & (re.ASCII | re.IGNORECASE | re.DOTALL)
        self._literals: dict[str, None] = {}
        parsed = re._parser.parse(source, flags)  # type: ignore[attr-defined]
        self.is_bounded = parsed.getwidth()[1] <= _FEW
        whole = self._walk(parsed, "")
        self._prefixes[whole] = None
        letters = dict.fromkeys((*self._literals, *_LETTERS))
        if self._is_bytes:
            letters = {each: None for each in letters if ord(each) < 0x100}
        kinds: dict[tuple[bool, ...], str] = {}
        for letter in letters:
            kinds.setdefault(tuple(atom(letter) for atom in self._atoms), letter)
        self.letters = [*kinds.values()]

    def texts(self) -> Iterator[tuple[str, str, str]]:
        """Prefix, pump and tail."""
        if self.is_bounded:
            return  # a match looks at a few characters only
        tails = ("", "\0", "!")
        few = [*dict.fromkeys((*self.letters[:24], *self._bodies))]
        yield from product(islice(self._prefixes, 4), few, tails)
        again = [prefix + each for prefix in islice(self._prefixes, 4) if prefix for each in ("", *few)]
        pairs = ["".join(each) for each in islice(product(self.letters[:12], repeat=2), 144)]
        yield from product([""], [*dict.fromkeys((*again, *pairs))], tails[:2])

    def text(self, parts: tuple[str, str, str], count: int) -> str | bytes:
        prefix, pump, tail = parts
        made = prefix + pump * count + tail
        return made.encode("latin-1") if self._is_bytes else made

    def _walk(self, parsed: Any, before: str) -> str:
        """A short text that the nodes match; notes their characters, and where repetitions begin."""
        made = ""
        for operator, argument in parsed:
            name = str(operator)
            if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
                made += self._letter(name, argument)
            elif name == "SUBPATTERN":
                made += self._walk(argument[3], before + made)
            elif name == "ATOMIC_GROUP":
                made += self._walk(argument, before + made)
            elif name == "BRANCH":
                ways = [self._walk(each, before + made) for each in argument[1]]
                made += ways[0]
            elif name in ("ASSERT", "ASSERT_NOT"):
                self._walk(argument[1], before + made)
            elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                least, most, body = argument
                if int(most) > 1:
                    self._prefixes[before + made] = None
                once = self._walk(body, before + made)
                self._bodies[once] = None
                made += once * min(int(least), 20)
        return made

    def _letter(self, name: str, argument: Any) -> str:
        if name == "ANY":
            test = re.compile(".", self._flags).match
        elif name == "IN":
            body = "".join(self._member(each) for each in argument)
            test = re.compile(f"[{body}]", self._flags).match
        else:
            letter = re.escape(chr(argument))
            self._literals[chr(argument)] = None
            test = re.compile(f"[{'^' if name == 'NOT_LITERAL' else ''}{letter}]", self._flags).match
        self._atoms.append(lambda each: test(each) is not None)
        preferred = [chr(argument)] if name == "LITERAL" else "a0A -"
        return next((each for each in (*preferred, *_LETTERS) if test(each)), "")

    def _member(self, member: Any) -> str:
        operator, argument = member
        match str(operator):
            case "LITERAL":
                self._literals[chr(argument)] = None
                return re.escape(chr(argument))
            case "RANGE":
                self._literals.update(dict.fromkeys(map(chr, argument)))
                return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
            case "NEGATE":
                return "^"
        categories = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}
        _, *negated, category = str(argument).split("_")
        letter = categories[category]
        return "\\" + (letter.upper() if negated else letter)


# ── Measuring ───────────────────────────────────────────────────────────────────────────────────────

_FEW = 64  # characters: whatever an expression does with so few, it does it quickly
_SUSPICIOUS = 2e-7  # seconds for one character: linear time is far below, quadratic far above
_MEASURABLE = 0.002  # seconds
_LONG = 50_000  # repetitions: quadratic time would have shown long before
_DEADLINE = 1.0  # seconds of CPU for one text, which only exponential or cubic time reaches
_EXPONENT = 1.5  # of the length: 1 is linear, 2 quadratic

Run = Callable[[Any], object]


def runs(pattern: re.Pattern[Any], methods: frozenset[str]) -> list[Run]:
    """One function for each way in which the methods go over a text."""
    nothing: Any = b"" if isinstance(pattern.pattern, bytes) else ""
    found: list[Run] = [
        getattr(pattern, each) for each in ("match", "fullmatch", "search") if each in methods
    ]
    if methods - {"match", "fullmatch", "search"}:
        found.append(lambda text: pattern.sub(nothing, text))
    return found


class TooSlow(Exception):
    """One text took more CPU than any linear expression can."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raises ``TooSlow`` in the middle of a match; ``re`` checks for signals while it backtracks."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds_of(run: Run, text: str | bytes) -> float:
    start = time.process_time()
    run(text)
    return time.process_time() - start


def exponent_of(run: Run, text: Callable[[int], str | bytes], count: int) -> float:
    """The power of the length with which the time grows."""
    while (base := min(seconds_of(run, text(count)) for _ in range(3))) < _MEASURABLE:
        count *= 2
        if count > _LONG:
            return 0.0  # it was noise: even this takes no time
    long = min(seconds_of(run, text(8 * count)) for _ in range(2))
    return math.log(long / base, 8)


def slow_texts(pattern: re.Pattern[Any], methods: frozenset[str]) -> Iterator[str]:
    """Descriptions of the texts for which the expression takes more than linear time."""
    hostile = Hostile(pattern)
    for run, parts in product(runs(pattern, methods), hostile.texts()):
        text = partial(hostile.text, parts)
        count = max(500, 2_000 // (len(parts[1]) or 1))
        sample = text(count)
        try:
            with cpu_limit(_DEADLINE):
                if seconds_of(run, sample) < _SUSPICIOUS * len(sample):
                    continue
                exponent = min(exponent_of(run, text, count) for _ in range(2))  # the least noisy of two
        except TooSlow:
            exponent = math.inf
        if exponent > _EXPONENT:
            prefix, pump, tail = parts
            yield f"time grows with the power {exponent:.1f} of n in {prefix!r} + n * {pump!r} + {tail!r}"


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_every_regular_expression_takes_linear_time(expression: Expression) -> None:
    slow = next(slow_texts(expression.pattern, expression.methods), None)
    assert slow is None, slow


def test_every_regular_expression_is_collected() -> None:
    assert len(EXPRESSIONS) > 150
    assert set(DYNAMIC) == WITH_DYNAMIC, "patterns that only exist at run time need a reason in DYNAMIC"
    named = [
        path
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.ImportFrom) and node.module == "re")
        or (isinstance(node, ast.Import) and any(each.name == "re" and each.asname for each in node.names))
    ]
    assert not named, "the functions of re are called as re.name, so that this test can find them"


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"([+-]?)0*([0-9]*)(\.[0-9]*)?([eEinumkKMGTP]*[-+]?[0-9]*)", "fullmatch"),
        (r"^([a-z0-9]{1,63}[.]?){1,10}$", "search"),
        (r'\s*(?:(?:"(?:[^"\\]|\\.)*"|[^"<>@,;:\\()\[\]]*)\s*)?<([^<>]+)>\s*', "fullmatch"),
        (r"(a+)+b", "match"),
        (r"\s+$", "search"),
        (r"\beyJ[\w-]{8,}\.[\w-]{8,}", "sub"),
    ],
)
def test_an_expression_that_takes_more_is_found(pattern: str, method: str) -> None:
    assert next(slow_texts(re.compile(pattern), frozenset({method})), None)


def test_an_expression_that_takes_linear_time_is_not_accused() -> None:
    for pattern in (r"[a-z]+(?:\.[a-z]+)*", r"[0-9]*+x", r"a.c", r"(?:[^\\]|\\.)*"):
        assert next(slow_texts(re.compile(pattern), frozenset({"match", "fullmatch"})), None) is None
