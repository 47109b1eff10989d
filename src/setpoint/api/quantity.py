"""Decides what a resource quantity is worth, and how Kubernetes writes it.

Promises:

1. Arithmetic is exact: no value ever passes through a float.
2. ``str()`` is the canonical text: no fraction, the largest suffix that loses nothing, the family of
   suffixes (``format``) it was written in.  ``1.5Gi`` prints as ``1536Mi``, ``0.5`` as ``500m``.
3. A sum or difference keeps the left side's format, unless the left side is zero.
4. What was read from the wire is written back as it was read; what was made here is written
   canonically, which is how the server would store it, so an intent compares equal to its object.

As in Kubernetes, finer than a nano is rounded up (away from zero), and a number with a binary suffix
is capped at 2^63-1.  Three things differ on purpose.  Go keeps some texts that are not canonical as
its own string (``1.234``, ``+5``, ``5E3``); we print ``1234m``, ``5``, ``5e3``.  Go drops the suffix
beyond exa and exbi (``1000E`` prints as ``1``); we keep the value.  And Go reads a number without
digits (``Ki``, ``-``) as zero, and wraps huge exponents around; we refuse both.

Read and written by the model layer through ``from_wire`` and ``to_wire``.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Literal, Self, get_args

Format = Literal["BinarySI", "DecimalSI", "DecimalExponent"]
"""The families of suffixes: ``12Mi``, ``12M`` and ``12e6``."""

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")  # the place is the power of 1024

_TEXT: Final = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?)0*([0-9]{1,10})")

# Kubernetes' own words for what can be wrong with a text.
_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

_CAP: Final = Decimal(2**63 - 1)
_NANO: Final = Decimal("1e-9")
_MOST_DIGITS: Final = 1000  # keeps a short text such as 1e2000000000 from becoming gigabytes
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)  # never rounds what we do with it


class Quantity:
    """An exact amount: ``Quantity("1.5Gi")``, ``Quantity(2)``, ``Quantity(1 << 30, "BinarySI")``.

    Equal and ordered by value, also with plain ints: ``Quantity("1Ki") == Quantity(1024) == 1024``.
    """

    OPENAPI: ClassVar[dict[str, object]] = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": (
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
            r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
        ),
        "x-kubernetes-int-or-string": True,
    }

    __slots__ = ("_amount", "_format", "_wire")  # a dataclass would be taken for an object by msgspec

    _wire: str | int | None  # as it was read, if it was

    def __init__(self, value: str | int | Decimal | Quantity, format: Format | None = None) -> None:  # noqa: A002
        own: Format
        match value:
            case str():
                amount, own = _parse(value)
            case Quantity():
                amount, own = value.as_decimal(), value.format
            case Decimal() if value.is_finite():
                amount, own = _rounded_up(value), "DecimalSI"
            case int() if not isinstance(value, bool):
                amount, own = Decimal(value), "DecimalSI"
            case _:
                raise TypeError(
                    f"cannot make a quantity of {value!r}; write it as text or an int, as in '500m'"
                )
        if format is not None and format not in get_args(Format):
            raise ValueError(
                f"no such format of quantities: {format!r} (there are {', '.join(get_args(Format))})"
            )
        self._amount, self._format, self._wire = amount, format or own, None

    @classmethod
    def from_wire(cls, value: object) -> Self:
        """From a JSON string or number; blanks around the text are allowed, as in Kubernetes."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"a quantity is text or a number, as in '500m' or 2, not {value!r}")  # noqa: TRY004
        # A JSON number such as 0.5 reached us as a float: its shortest text is what was written.
        made = cls(value if isinstance(value, int) else str(value).strip())
        made._wire = value if isinstance(value, int) else str(value)
        return made

    def to_wire(self) -> str | int:
        return str(self) if self._wire is None else self._wire

    def __str__(self) -> str:
        return _canonical(self._amount, self._format)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    @property
    def format(self) -> Format:
        """The family of suffixes it is printed with, as far as they fit."""
        return self._format

    @property
    def value(self) -> int:
        """The amount as an int, rounded up (away from zero)."""
        return int(self._amount.to_integral_value(ROUND_UP))

    @property
    def milli_value(self) -> int:
        """The amount in thousandths as an int, rounded up (away from zero)."""
        return int(self._amount.scaleb(3, _EXACT).to_integral_value(ROUND_UP))

    def as_decimal(self) -> Decimal:
        """The exact amount.  Mind the context: Decimal's own operators round to its precision."""
        return self._amount

    def __hash__(self) -> int:
        return hash(self._amount)

    def __bool__(self) -> bool:
        return bool(self._amount)

    def __eq__(self, other: object) -> bool:
        return NotImplemented if (right := _amount(other)) is None else self._amount == right

    def __lt__(self, other: Quantity | int) -> bool:
        return NotImplemented if (right := _amount(other)) is None else self._amount < right

    def __le__(self, other: Quantity | int) -> bool:
        return NotImplemented if (right := _amount(other)) is None else self._amount <= right

    def __gt__(self, other: Quantity | int) -> bool:
        return NotImplemented if (right := _amount(other)) is None else self._amount > right

    def __ge__(self, other: Quantity | int) -> bool:
        return NotImplemented if (right := _amount(other)) is None else self._amount >= right

    def __add__(self, other: Quantity | int) -> Quantity:
        if (right := _amount(other)) is None:
            return NotImplemented
        return Quantity(_EXACT.add(self._amount, right), self._format_with(other))

    def __sub__(self, other: Quantity | int) -> Quantity:
        if (right := _amount(other)) is None:
            return NotImplemented
        return Quantity(_EXACT.subtract(self._amount, right), self._format_with(other))

    def __radd__(self, other: int) -> Quantity:  # sum() begins with the int 0
        return NotImplemented if _amount(other) is None else Quantity(other) + self

    def __rsub__(self, other: int) -> Quantity:
        return NotImplemented if _amount(other) is None else Quantity(other) - self

    def _format_with(self, right: Quantity | int) -> Format:
        return right.format if not self and isinstance(right, Quantity) else self._format

    def __mul__(self, times: int) -> Quantity:
        if not isinstance(times, int):
            return NotImplemented
        return Quantity(_EXACT.multiply(self._amount, Decimal(times)), self._format)

    __rmul__ = __mul__

    def __truediv__(self, other: Quantity) -> Fraction:
        """How many times ``other`` goes into this, exactly: a share of a capacity."""
        if not isinstance(other, Quantity):
            return NotImplemented
        return Fraction(self._amount) / Fraction(other._amount)

    def __neg__(self) -> Quantity:
        return Quantity(_EXACT.minus(self._amount), self._format)

    def __pos__(self) -> Quantity:
        return self

    def __abs__(self) -> Quantity:
        return Quantity(self._amount.copy_abs(), self._format)


def _amount(value: object) -> Decimal | None:
    """What a quantity or an int is worth; None for anything else."""
    if isinstance(value, Quantity):
        return value.as_decimal()
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else None


@lru_cache(maxsize=1024)  # a cluster's objects repeat few texts
def _parse(text: str) -> tuple[Decimal, Format]:
    try:
        return _read(text)
    except ValueError as error:
        raise ValueError(f"cannot parse '{text}': {error}") from None


def _read(text: str) -> tuple[Decimal, Format]:
    match = _TEXT.fullmatch(text)
    if not text or match is None:
        raise ValueError(_WRONG_FORMAT)
    sign, whole, fraction, suffix = match.groups("")
    format, power = _format_and_power(suffix)  # noqa: A001
    if not whole and not fraction:
        raise ValueError(_WRONG_NUMBER)
    if len(whole) + len(fraction) + (0 if format == "BinarySI" else power) > _MOST_DIGITS:
        raise ValueError(f"{_WRONG_NUMBER}: it has more than {_MOST_DIGITS} digits")
    number = f"{sign}{whole or '0'}.{fraction or '0'}"
    if format != "BinarySI":
        return _rounded_up(Decimal(f"{number}e{power}")), format
    amount = _rounded_up(_EXACT.multiply(Decimal(number), Decimal(1024**power)))
    if amount.copy_abs() > _CAP:
        amount = _CAP.copy_sign(amount)
    return amount, "DecimalSI" if 0 < amount.copy_abs() < 1 else "BinarySI"


def _format_and_power(suffix: str) -> tuple[Format, int]:
    """``Mi`` → BinarySI and the power of 1024; ``M`` or ``e6`` → the power of 10."""
    if suffix in _DECIMAL:
        return "DecimalSI", _DECIMAL[suffix]
    if suffix in _BINARY:
        return "BinarySI", _BINARY.index(suffix)
    if match := _EXPONENT.fullmatch(suffix):
        return "DecimalExponent", int(match[1] + match[2])
    raise ValueError(_WRONG_SUFFIX)


def _rounded_up(amount: Decimal) -> Decimal:
    """Away from zero to a whole number of nanos; plain zero for any zero."""
    if amount.as_tuple().exponent < -9:  # type: ignore[operator]  # finite: always an int
        amount = amount.quantize(_NANO, ROUND_UP, _EXACT)
    return amount or Decimal(0)


def _canonical(amount: Decimal, format: Format) -> str:  # noqa: A002
    if not amount:
        return "0"
    if format == "BinarySI":
        if amount.copy_abs() >= 1024 and amount == amount.to_integral_value():
            return _binary(int(amount))
        format = "DecimalSI"  # noqa: A001  # Kubernetes shows small and broken amounts without binary suffix
    sign, digits, places = amount.as_tuple()
    written = "".join(map(str, digits))
    short = written.rstrip("0")
    exponent = int(places) + len(written) - len(short)
    shown = exponent - exponent % 3
    if format == "DecimalSI":
        shown = min(shown, _DECIMAL["E"])
    suffix = _DECIMAL_SUFFIX[shown] if format == "DecimalSI" else f"e{shown}" if shown else ""
    return f"{'-' * sign}{short}{'0' * (exponent - shown)}{suffix}"


def _binary(number: int) -> str:
    power = 0
    while power < len(_BINARY) - 1 and number % 1024 == 0:
        number //= 1024
        power += 1
    return f"{Decimal(number)}{_BINARY[power]}"  # Decimal: an int's own text stops at 4300 digits
