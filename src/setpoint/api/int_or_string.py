"""Decides what an int-or-string stands for.

Ports, and the bounds of rolling updates and disruption budgets, are a number or a text.  On the wire
and in Python they are just that, so there is no class here: the alias, its schema, and the one rule
that needs care, which is how a percentage of a total is rounded.  A bool is neither.

Used by models as an annotation, and by whoever resolves ``maxUnavailable: 25%``.
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

IntOrString: TypeAlias = int | str

OPENAPI: Final[dict[str, object]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}

_INT: Final = re.compile(r"[+-]?0*[0-9]{1,19}")
_INT64: Final = range(-(2**63), 2**63)


def scaled_value(value: IntOrString | None, total: int, *, round_up: bool) -> int:
    """A number as it is, a percentage as its part of ``total``: ``("25%", 10, round_up=True)`` → 3.

    Other texts are refused with Kubernetes' words: ``"5"`` is neither a number nor a percentage.
    """
    if value is None:
        raise ValueError("nil value for IntOrString")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f"a number or a percentage is needed, as in 3 or '25%', not {value!r}")
    if isinstance(value, int):
        return value
    percent, sign, rest = value.rpartition("%")
    if not sign or rest:
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    hundredths = _atoi(percent, shown=value) * total
    return -(-hundredths // 100) if round_up else hundredths // 100


def _atoi(text: str, *, shown: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        problem = "invalid syntax"
    elif _INT.fullmatch(text) is None or int(text) not in _INT64:
        problem = "value out of range"
    else:
        return int(text)
    raise ValueError(
        f"invalid value for IntOrString: invalid value {_quoted(shown)}: "
        f"strconv.Atoi: parsing {_quoted(text)}: {problem}"
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
