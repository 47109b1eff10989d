"""Match conditions: whether a webhook or a policy is meant, by expressions over the request.

All must hold; one that does not decides alone.  One that has no value is left to the failure policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from setpoint.server.admission.attributes import Attributes
from setpoint.server.admission.cel import Expression, Scope, activation
from setpoint.server.golang import joined
from setpoint.server.registry.crd.programs import CompileError, EvaluationError, OverBudget, Purse
from setpoint.server.registry.crd.spending import CONDITIONS_BUDGET
from setpoint.server.registry.resources import Object


def meant(
    conditions: Sequence[Mapping[str, str]], asked: Attributes, request: Object, *, is_ignored: bool
) -> bool:
    """Raises a refusal where a condition has no value, unless that is to be ignored."""
    data = activation(request["object"], request["oldObject"], request, None)
    try:
        errors = errors_or_none([one["expression"] for one in conditions], data)
    except OverBudget as error:
        errors = [str(error)]
    if errors is None:
        return False
    if errors and not is_ignored:
        raise asked.refusal(joined(errors))
    return not errors


def errors_or_none(
    texts: Sequence[str], data: dict[str, Any], *, has_params: bool = False
) -> list[str] | None:
    """None where one does not hold; else what kept others from having a value.  Raises ``OverBudget``.

    All are evaluated, and paid for, before any is looked at.
    """
    purse = Purse(CONDITIONS_BUDGET)
    errors, holds = [], True
    for text in texts:
        try:
            holds = _compiled(text, has_params)(data, purse) is not False and holds
        except (CompileError, EvaluationError) as error:
            errors.append(str(error))
    return errors if holds else None


@lru_cache(1024)
def _compiled(text: str, has_params: bool) -> Expression:
    return Scope(has_params=has_params).compile(text, "bool")
