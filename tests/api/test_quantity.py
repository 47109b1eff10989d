"""The rules of ``api/quantity.py``.

``data/quantity.json`` holds what Kubernetes' own code (apimachinery v0.37) answered.
"""

import copy
import json
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api.quantity import Format, Quantity
from tests.server.deadlines import within

TABLE: dict[str, list[Any]] = json.loads((Path(__file__).parent / "data/quantity.json").read_text())

suffixes = st.sampled_from(
    [
        "",
        "n",
        "u",
        "m",
        "k",
        "M",
        "G",
        "T",
        "P",
        "E",
        "Ki",
        "Mi",
        "Gi",
        "Ti",
        "Pi",
        "Ei",
        "e3",
        "E-6",
        "e20",
        "e+7",
    ]
)
texts = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.from_regex(r"\A[0-9]{1,20}(\.[0-9]{0,12})?\Z"),
    suffixes,
)
quantities = st.builds(Quantity, texts)


def exact(quantity: Quantity) -> Fraction:
    return Fraction(quantity.as_decimal())


def test_texts_are_read_and_printed_as_kubernetes_does() -> None:
    ours = [[text, str(Quantity(text)), Quantity(text).format] for text, *_ in TABLE["canonical"]]
    assert ours == TABLE["canonical"]


def test_what_is_no_quantity_is_refused_in_kubernetes_words() -> None:
    for text, words in TABLE["errors"]:
        with pytest.raises(ValueError) as refused:
            Quantity(text)
        assert str(refused.value) == f"cannot parse '{text}': {words}"


@pytest.mark.parametrize("text", ["", "-", ".", "Ki", "+e3"])
def test_a_number_without_digits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot parse"):
        Quantity(text)


@pytest.mark.parametrize("text", ["1e1001", "1e2000000000", "9" * 1001, "1e4294967296"])
def test_a_text_that_would_fill_the_memory_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="more than 1000 digits"):
        Quantity(text)


@pytest.mark.parametrize(
    "text", ["1" * 1_000_000 + "x", "1." + "1" * 1_000_000 + "x", "1Ki" + "1" * 1_000_000 + "x"]
)
def test_digits_without_end_are_refused_at_once(text: str) -> None:
    with within(20), pytest.raises(ValueError, match="cannot parse"):
        Quantity(text)


def test_a_tiny_exponent_rounds_up_to_a_nano_at_once() -> None:
    assert str(Quantity("1e-2000000000")) == "1e-9"


def test_arithmetic_gives_what_kubernetes_gives() -> None:
    wrong = []
    for left, operator, right, text, format_ in TABLE["arithmetic"]:
        a = Quantity(left)
        result = (
            a * right if operator == "*" else a + Quantity(right) if operator == "+" else a - Quantity(right)
        )
        if [str(result), result.format] != [text, format_]:
            wrong.append((left, operator, right, result, text))
    assert not wrong


@given(quantities)
def test_parsing_what_was_printed_gives_the_same_value(quantity: Quantity) -> None:
    again = Quantity(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity), "canonical text is its own canonical text"


@given(texts)
def test_equal_values_of_one_format_print_alike(text: str) -> None:
    quantity = Quantity(text)
    assert str(quantity + 0) == str(quantity) == str(Quantity(quantity.as_decimal(), quantity.format))


@given(quantities)
def test_the_printed_number_is_whole(quantity: Quantity) -> None:
    assert "." not in str(quantity)


@given(quantities, quantities, st.integers(-(10**6), 10**6))
def test_arithmetic_is_exact(a: Quantity, b: Quantity, times: int) -> None:
    assert exact(a + b) == exact(a) + exact(b)
    assert exact(a - b) == exact(a) - exact(b)
    assert exact(a * times) == exact(times * a) == exact(a) * times
    assert exact(-a) == -exact(a)
    assert exact(abs(a)) == abs(exact(a))
    assert exact(sum([a, b])) == exact(a) + exact(b)  # type: ignore[arg-type]
    if b:
        assert a / b == exact(a) / exact(b)


@given(quantities, quantities)
def test_order_and_equality_are_by_value(a: Quantity, b: Quantity) -> None:
    assert (a < b, a <= b, a == b, a >= b, a > b) == (
        exact(a) < exact(b),
        exact(a) <= exact(b),
        exact(a) == exact(b),
        exact(a) >= exact(b),
        exact(a) > exact(b),
    )
    assert a != b or hash(a) == hash(b)


def test_an_int_stands_for_itself() -> None:
    assert Quantity("1Ki") == 1024
    assert hash(Quantity("1Ki")) == hash(1024)
    assert Quantity("500m") < 1 < Quantity("1500m") > 1
    assert str(1 + Quantity("500m")) == "1500m"
    assert str(2 - Quantity("500m")) == "1500m"
    assert Quantity(0) == 0
    assert not Quantity("0Gi")


def test_a_quantity_equals_no_other_thing() -> None:
    assert Quantity(1) != "1"
    assert Quantity(1) != True  # noqa: E712
    with pytest.raises(TypeError):
        Quantity(1) + "1"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ("1Gi", "1M", "1074741824"),
        ("1M", "1Ki", "1001024"),
        ("0", "1Gi", "1Gi"),
        ("1Gi", "0", "1Gi"),
        ("0Ki", "2k", "2k"),
    ],
)
def test_a_sum_keeps_the_left_format_unless_the_left_is_zero(left: str, right: str, text: str) -> None:
    assert str(Quantity(left) + Quantity(right)) == text


def test_sum_adds_quantities_up() -> None:
    assert str(sum([Quantity("1Gi"), Quantity("512Mi")])) == "1536Mi"


@given(quantities)
def test_value_is_the_amount_rounded_away_from_zero(quantity: Quantity) -> None:
    for whole, factor in ((quantity.value, 1), (quantity.milli_value, 1000)):
        beyond = abs(whole) - abs(exact(quantity)) * factor
        assert 0 <= beyond < 1
        assert whole * exact(quantity) >= 0


@pytest.mark.parametrize(
    ("value", "format_", "text"),
    [
        (1 << 30, "BinarySI", "1Gi"),
        (10**9, "DecimalSI", "1G"),
        (1500, "DecimalExponent", "1500"),
        (2000, "DecimalExponent", "2e3"),
        (1000, "BinarySI", "1k"),
    ],
)
def test_an_int_is_printed_in_the_format_asked_for(value: int, format_: Format, text: str) -> None:
    assert str(Quantity(value, format_)) == text


def test_amounts_beyond_the_largest_suffix_keep_their_value() -> None:
    assert str(Quantity("1000E")) == "1000E"
    assert str(Quantity("1Ei") * 2048) == "2048Ei"
    assert str(Quantity("1Ki") * 10**5000).endswith("Ei")


@pytest.mark.parametrize("value", [0.5, True, None, b"1", Decimal("NaN")])
def test_what_is_not_exact_text_or_an_int_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="write it as text or an int"):
        Quantity(value)


def test_a_decimal_is_taken_exactly_and_rounded_up_to_a_nano() -> None:
    assert str(Quantity(Decimal("0.25"))) == "250m"
    assert str(Quantity(Decimal("1e-12"))) == "1n"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="no such format"):
        Quantity(1, "Roman")  # type: ignore[arg-type]


@pytest.mark.parametrize("wire", ["0.5", "500m", "+5", "1.234", " 1 ", "1024Ki", 2])
def test_what_was_read_from_the_wire_is_written_as_it_was_read(wire: str | int) -> None:
    assert Quantity.from_wire(wire).to_wire() == wire


@pytest.mark.parametrize(("value", "wire"), [("0.5", "500m"), (2, "2"), ("1.5Gi", "1536Mi")])
def test_what_was_made_here_is_written_canonically(value: str | int, wire: str) -> None:
    assert Quantity(value).to_wire() == wire


def test_the_result_of_arithmetic_forgets_how_its_parts_were_written() -> None:
    assert (Quantity.from_wire("0.5") + 0).to_wire() == "500m"
    assert (-Quantity.from_wire("0.5")).to_wire() == "-500m"


def test_a_json_fraction_is_read_as_it_was_written() -> None:
    assert Quantity.from_wire(0.1) == Quantity("100m")
    assert Quantity.from_wire(0.1).to_wire() == "0.1"


@pytest.mark.parametrize("wire", [None, True, [], {}, float("nan"), float("inf"), "ten", ""])
def test_what_cannot_be_a_quantity_on_the_wire_is_a_value_error(wire: object) -> None:
    with pytest.raises(ValueError, match="quantit"):
        Quantity.from_wire(wire)


class Resources(msgspec.Struct):
    limits: dict[str, Quantity]
    size: Quantity | None = None


def test_msgspec_reads_and_writes_it_through_the_two_hooks() -> None:
    wire = b'{"limits":{"cpu":"0.5","gpu":2},"size":"1Gi"}'
    read = msgspec.json.decode(wire, type=Resources, dec_hook=lambda _, value: Quantity.from_wire(value))
    assert read == Resources({"cpu": Quantity("500m"), "gpu": Quantity(2)}, Quantity("1Gi"))
    assert msgspec.json.encode(read, enc_hook=lambda value: value.to_wire()) == wire


def test_a_quantity_cannot_be_changed_and_survives_copy_and_pickle() -> None:
    quantity = Quantity.from_wire("0.5")
    with pytest.raises(AttributeError):
        quantity.format = "BinarySI"  # type: ignore[misc]
    for twin in (copy.deepcopy(quantity), pickle.loads(pickle.dumps(quantity))):
        assert twin == quantity
        assert (twin.format, twin.to_wire()) == ("DecimalSI", "0.5")


def test_repr_can_be_pasted() -> None:
    assert repr(Quantity("1.5Gi")) == "Quantity('1536Mi')"
