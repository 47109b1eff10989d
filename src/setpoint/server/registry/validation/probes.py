"""What is wrong with a container's probes and hooks."""

from __future__ import annotations

from typing import Any

from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import Found

Json = dict[str, Any]


def check_handler(handler: Json, grace: int | None, path: str, found: Found) -> None:
    """What a probe or a hook does: exactly one thing."""
    kinds = [
        kind for kind in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if handler.get(kind) is not None
    ]
    if not kinds:
        found.required(path, "must specify a handler type")
        return
    first, *others = kinds
    action, at = handler[first], f"{path}.{first}"
    match first:
        case "exec":
            if not action.get("command"):
                found.required(f"{at}.command")
        case "httpGet":
            _check_http_get(action, at, found)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace is not None and not 0 <= seconds <= grace:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                found.invalid(at, seconds, detail)
        case _:
            found.told(f"{at}.port", action.get("port", 0), texts.port_or_name(action.get("port", 0)))
    for kind in others:
        found.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")


def _check_http_get(action: Json, at: str, found: Found) -> None:
    if not action.get("path"):
        found.required(f"{at}.path")
    port = action.get("port", 0)
    found.told(f"{at}.port", port, texts.port_or_name(port))
    found.one_of(f"{at}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        found.told(f"{at}.httpHeaders", name, texts.header_name(name))


def check_probe(probe: Json, kind: str, grace_period: int | None, path: str, found: Found) -> None:
    check_handler({**probe, "sleep": None}, grace_period, path, found)
    for field in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        found.not_negative(f"{path}.{field}", probe.get(field))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        found.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if kind == "readinessProbe":
        if grace is not None:
            at = f"{path}.terminationGracePeriodSeconds"
            found.invalid(at, grace, "must not be set for readinessProbes")
    elif (threshold := probe.get("successThreshold", 0)) != 1:
        found.invalid(f"{path}.successThreshold", threshold, "must be 1")
