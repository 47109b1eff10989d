"""Decides whether a term of a ResourceQuota's scope means an object by the classes that it names.  Pure.

Of pods that is their PriorityClass; of claims their VolumeAttributesClasses, of which there may be several
while one takes the place of another.  ``NotIn`` also means an object that names none, as in a label selector.

Here, below both who refuse what is too much (``server/admission``) and who count what is used (``builtin``),
so that they count the same objects.
"""

from __future__ import annotations

from collections.abc import Collection


def is_meant(operator: str, values: Collection[str], names: Collection[str]) -> bool:
    """``names`` are those of the object's classes."""
    match operator:
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return any(name in values for name in names)
    return not names or any(name not in values for name in names)
