"""The recorded life is replayed whole, and the server that answers it today says what was said then."""

from __future__ import annotations

from tests.conformance.recordings import answers
from tests.conformance.scripts.recorded import codes, exchanges

LIFE = "a recorded life"


def test_each_of_its_exchanges_is_replayed_once() -> None:
    assert exchanges() == list(range(305))


def test_each_is_answered_with_the_code_that_it_was_answered_with_then() -> None:
    said = {step[4:]: answer["status"] for step, answer in answers()[LIFE]}
    assert {name: said[name] for name in codes()} == codes()
