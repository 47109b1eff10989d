"""The promises of ``controller/tracebacks.py``."""

from __future__ import annotations

from contextlib import suppress

from setpoint.api.names import Key
from setpoint.controller.tracebacks import Tracebacks

WEB, API = Key("shop", "web"), Key("shop", "api")


def raised(error: Exception) -> Exception:
    with suppress(Exception):
        raise error
    return error


def test_the_same_error_at_the_same_place_is_new_once_for_each_key() -> None:
    seen = Tracebacks()
    assert [seen.is_new(key, raised(OSError("no"))) for key in (WEB, WEB, API, WEB, API)] == [
        True,
        False,
        True,
        False,
        False,
    ]


def test_other_words_are_the_same_error_and_another_type_is_not() -> None:
    seen = Tracebacks()
    assert seen.is_new(WEB, raised(OSError("no")))
    assert not seen.is_new(WEB, raised(OSError("no, 3 times")))
    assert seen.is_new(WEB, raised(KeyError("no")))


def test_another_place_is_another_error_in_a_group_and_behind_another_error_too() -> None:
    seen = Tracebacks()
    here, there = raised(OSError("no")), OSError("no")
    assert seen.is_new(WEB, raised(ExceptionGroup("a group", [OSError(), KeyError()])))
    assert seen.is_new(WEB, raised(ExceptionGroup("a group", [here, KeyError()])))
    behind = RuntimeError("failed")
    behind.__cause__ = here
    assert seen.is_new(WEB, behind)
    behind.__cause__ = there
    assert seen.is_new(WEB, behind)


def test_an_error_whose_causes_are_a_circle_is_no_trap() -> None:
    error = OSError("no")
    error.__context__ = KeyError("no")
    error.__context__.__context__ = error
    assert Tracebacks().is_new(WEB, error)


def test_after_a_success_it_is_new_and_what_is_remembered_is_bounded() -> None:
    seen = Tracebacks(remembered=2)
    error = raised(OSError("no"))
    assert seen.is_new(WEB, error)
    seen.forget(WEB)
    assert seen.is_new(WEB, error)
    for number in range(10):
        seen.is_new(Key("shop", str(number)), error)
    assert repr(seen) == "<Tracebacks of 2 keys>"
    assert seen.is_new(WEB, error)
