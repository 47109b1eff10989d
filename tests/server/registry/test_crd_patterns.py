"""The promises of ``crd/patterns.py``: patterns of users run on RE2, in bounded time, or are refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from setpoint.server.registry.crd import formats, patterns
from setpoint.server.registry.crd.patterns import NoEngine, TextTooLong, compiled
from setpoint.server.registry.crd.schema_rules import schema_errors
from setpoint.server.registry.crd.validate import problems
from setpoint.server.registry.patience import PATIENCE, QUICK, Patience, TooLong
from setpoint.server.registry.quantities import canonical
from tests.server.deadlines import within
from tests.server.registry.crd_cases import obj, texts

NESTED = "^([a-z0-9]{1,63}[.]?){1,10}$"


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    compiled.cache_clear()
    monkeypatch.setattr(patterns, "load", lambda: None)
    yield
    compiled.cache_clear()


@pytest.mark.usefixtures("no_engine")
def test_without_an_engine_a_definition_with_a_pattern_is_refused_with_what_to_install() -> None:
    for pattern in ("^a+$", "a", NESTED):
        refused = schema_errors(obj(spec=obj(a=texts(pattern=pattern))), "schema", has_status=False)
        assert [one.path for one in refused] == ["schema.properties[spec].properties[a].pattern"]
        assert "pip install 'setpoint[patterns]'" in refused[0].detail


@pytest.mark.usefixtures("no_engine")
def test_without_an_engine_a_value_is_refused_with_what_to_install() -> None:
    with pytest.raises(NoEngine, match=r"setpoint\[patterns\]"):
        compiled("a")
    (problem,) = problems(texts(pattern="^a$"), "a")
    assert "setpoint[patterns]" in str(problem)
    assert not problems(texts(), "a")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (NESTED, "a" * 120 + "!"),
        ("^(a|aa)+$", "a" * 20_000 + "b"),
        ("^(a?){50}a{50}$", "a" * 49),
        ("(x+x+)+y", "x" * 20_000),
        (".*.*.*.*=$", "x" * 20_000),
    ],
)
def test_a_pattern_that_is_slow_elsewhere_takes_no_time(pattern: str, text: str) -> None:
    with within(20):
        assert not compiled(pattern)(text)


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("^a+$", ["a", "aaa"]),
        ("^[[:alpha:]]$", ["a", "x", "A"]),
        ("^\\d{2}$", ["12"]),
        ("^x\\z", ["x"]),
        ("(?i)ABC", ["abc"]),
        ("^[^/]*$", ["", "a", "aaa", "a\n", "12", "१२", "x", "x\n", "abc", "A", "é", "\n"]),
        ("^\\pL$", ["a", "x", "A", "é"]),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern: str, matched: list[str]) -> None:
    given = ("", "a", "aaa", "a\n", "12", "१२", "x", "x\n", "abc", "A", "é", "a/b", "\n")
    assert [text for text in given if compiled(pattern)(text)] == matched


def test_a_text_that_is_too_long_for_its_pattern_is_refused_with_the_limit() -> None:
    with pytest.raises(TextTooLong, match=r"at most [0-9]+ bytes"):
        compiled("((a?b?){30}){30}c")("a" * 1_000_000)
    (problem,) = problems(texts(pattern="((a?b?){30}){30}c"), "a" * 1_000_000)
    assert "at most" in str(problem)


def test_a_match_that_may_take_long_leaves_the_event_loop() -> None:
    test = compiled("((a?b?){30}){30}c")
    token = PATIENCE.set(Patience(QUICK))
    try:
        test("ab" * 10)
        with pytest.raises(TooLong):
            test("ab" * 1_000)
    finally:
        PATIENCE.reset(token)


@pytest.mark.parametrize("name", sorted(formats.FORMATS))
def test_every_format_is_decided_in_time_whatever_the_value(name: str) -> None:
    check = formats.checker(name)
    assert check is not None
    with within(20):
        for letter in ' a0.-@"<>\\:%\té[':
            for text in (letter * 5_000, letter * 5_000 + "x", "x" + letter * 5_000 + "\0"):
                check(text)


@pytest.mark.parametrize(
    "text", ["0" * 1_200 + "x", "0" * 9_000 + "x", "0." + "0" * 9_000 + "!", "9" * 100_000]
)
def test_what_is_no_quantity_is_refused_at_once(text: str) -> None:
    with within(20), pytest.raises(ValueError, match="quantit"):
        canonical(text)
