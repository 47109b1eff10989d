"""What is wrong with amounts of resources: their names, their quantities, requests above limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Final

from setpoint.api.selectors import label_key_errors
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import NEGATIVE, Found

Json = dict[str, Any]
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED: Final = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_QUOTA: Final = frozenset(
    {
        *_COMPUTE,
        *(f"{side}.{one}" for side in ("requests", "limits") for one in _COMPUTE),
        "requests.storage",
        *_COUNTED,
    }
)
_STANDARD: Final = _QUOTA | {"storage"}
_POD_LEVEL: Final = ("cpu", "hugepages-", "memory")


def is_huge_pages(name: str) -> bool:
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_overcommit_allowed(name: str) -> bool:
    return is_native(name) and not is_huge_pages(name)


def _is_extended(name: str) -> bool:
    return (
        not is_native(name) and not name.startswith("requests.") and not label_key_errors(f"requests.{name}")
    )


def is_standard_quota(name: str) -> bool:
    return name in _QUOTA or name.startswith(("hugepages-", "requests.hugepages-"))


def check_name(name: str, path: str, found: Found) -> bool:
    """The name of any resource; whether it can be read at all."""
    if errors := label_key_errors(name):
        found.told(path, name, errors)
        return False
    if (
        "/" not in name
        and name not in _STANDARD
        and not name.startswith(("hugepages-", "requests.hugepages-"))
    ):
        found.invalid(path, name, "must be a standard resource type or fully qualified")
    return True


def check_container_name(name: str, path: str, found: Found) -> None:
    if name in _COMPUTE:
        return
    check_name(name, path, found)
    if "/" not in name:
        if not is_huge_pages(name):
            found.invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not _is_extended(name):
        found.invalid(path, name, "doesn't follow extended resource name standard")


def check_pod_name(name: str, path: str, found: Found) -> None:
    before = len(found.errors)
    check_name(name, path, found)
    if len(found.errors) == before and name not in ("cpu", "memory") and not is_huge_pages(name):
        found.unsupported(path, name, _POD_LEVEL)


def check_quota_name(name: str, path: str, found: Found) -> None:
    check_name(name, path, found)
    if "/" not in name and not is_standard_quota(name):
        found.invalid(path, name, "must be a standard resource for quota")


def check_quantity(name: str, value: str, path: str, found: Found) -> None:
    """An amount of that resource: not negative, and whole where it is counted."""
    amount = texts.quantity(value)
    if amount < 0:
        found.invalid(path, value, NEGATIVE)
    if name not in _COMPUTE and (name in _COUNTED or _is_extended(name)) and amount.milli_value % 1000:
        found.invalid(path, value, "must be an integer")


def _check_pages(name: str, value: str, path: str, found: Found) -> None:
    try:
        size = texts.quantity(name.removeprefix("hugepages-")).value
    except ValueError:
        size = 0
    if size <= 0 or texts.quantity(value).value % size:
        found.invalid(path, value, f"{value} is not positive integer multiple of {name}")


class ClaimNames:
    """The names of a pod's claims, which its containers may use."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    @cached_property
    def told(self) -> str:
        """What is said to a container that uses another."""
        tail = f": {', '.join(sorted(self._names))}" if self._names else " which is empty"
        return f"must be one of the names in pod.spec.resourceClaims{tail}"


def check_requirements(
    requirements: Json,
    claims: ClaimNames,
    path: str,
    found: Found,
    name_rule: Callable[[str, str, Found], None] = check_container_name,
) -> None:
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    for name, value in sorted(limits.items()):
        at = f"{path}.limits[{name}]"
        name_rule(name, at, found)
        check_quantity(name, value, at, found)
        if is_huge_pages(name):
            _check_pages(name, value, at, found)
    for name, value in sorted(requests.items()):
        at = f"{path}.requests[{name}]"
        name_rule(name, at, found)
        check_quantity(name, value, at, found)
        _check_against_limit(name, value, limits.get(name), path, found)
        if is_huge_pages(name):
            _check_pages(name, value, at, found)
    named = {*limits, *requests}
    if any(map(is_huge_pages, named)) and not named & {"cpu", "memory"}:
        found.forbidden(path, "HugePages require cpu or memory")
    if requirements.get("claims"):
        _check_claims(requirements["claims"], claims, f"{path}.claims", found)


def _check_against_limit(name: str, value: str, limit: str | None, path: str, found: Found) -> None:
    allowed = is_overcommit_allowed(name)
    if limit is None:
        if not allowed:
            found.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
    elif not allowed and texts.quantity(value) != texts.quantity(limit):
        found.invalid(f"{path}.requests", value, f"must be equal to {name} limit of {limit}")
    elif texts.quantity(value) > texts.quantity(limit):
        found.invalid(f"{path}.requests", value, f"must be less than or equal to {name} limit of {limit}")


def _check_claims(claims: list[Json], known: ClaimNames, path: str, found: Found) -> None:
    seen: set[str] = set()
    parted: set[str] = set()  # claims of which a request was named
    for index, claim in enumerate(claims):
        at, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            found.required(at)
            continue
        request = claim.get("request")
        key = f"{name}/{request}" if request else name
        if name in seen or key in seen or (not request and name in parted):
            found.duplicate(at, name if name in seen else key)
        seen.add(key)
        if request:
            parted.add(name)
        if name not in known:
            found.missing(at, name, known.told)
